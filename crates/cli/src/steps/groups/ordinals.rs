//! Ordinals: the numbers of lines in the order of the inputs. Lines without a key count.

use crate::system::error::Error;
use crate::system::files;
use std::path::Path;

/// The ordinals of the lines of each input.
#[derive(Clone, Default)]
pub struct Ordinals {
    /// The JSON members that name each input.
    files: Vec<String>,
    starts: Vec<InputStart>,
    /// The number of ordinals so far.
    count: u64,
    /// The number of inputs that are only read; they come first.
    earlier_inputs: usize,
}

/// The ordinal of the first line of an input.
#[derive(Clone, Copy, PartialEq)]
struct InputStart {
    ordinal: u64,
    input: usize,
    /// True if a header precedes the line.
    header: bool,
}

impl Ordinals {
    /// Creates an empty list, for inputs at these paths. The first `earlier_inputs` of them are not read in the last pass.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a Path>, earlier_inputs: usize) -> Self {
        Self { files: paths.into_iter().map(files::members).collect(), earlier_inputs, ..Self::default() }
    }

    /// Returns the ordinal of the first line that the last pass reads.
    pub fn first_own(&self) -> u64 {
        let own = self.starts.iter().find(|start| start.input >= self.earlier_inputs);
        own.map_or(self.count, |start| start.ordinal)
    }

    /// Takes the next lines of an input. Returns the ordinal of the first.
    pub fn take(&mut self, input: usize, header: bool, lines: usize) -> u64 {
        let ordinal = self.count;
        if self.starts.last().is_none_or(|start| start.input != input) {
            self.starts.push(InputStart { ordinal, input, header });
        }
        self.count += lines as u64;
        ordinal
    }

    /// Returns the members of a JSON object that locate a line: `"file":"a","line":1`.
    pub fn reported(&self, ordinal: u64) -> String {
        let start = self.starts[self.starts.partition_point(|start| start.ordinal <= ordinal) - 1];
        let line = ordinal - start.ordinal + u64::from(start.header) + 1;
        format!("{},\"line\":{line}", self.files[start.input])
    }
}

/// The ordinals of the same inputs, read again.
pub struct SecondOrdinals {
    first: Ordinals,
    second: Ordinals,
}

impl SecondOrdinals {
    /// Starts again with inputs that had these ordinals.
    pub fn new(first: Ordinals) -> Self {
        Self { first, second: Ordinals::default() }
    }

    /// Starts again with these inputs, without those that are only read.
    pub fn without_earlier(first: Ordinals) -> Self {
        let earlier_inputs = first.earlier_inputs;
        let starts = first.starts.iter().take_while(|start| start.input < earlier_inputs).copied().collect();
        let second = Ordinals { starts, count: first.first_own(), earlier_inputs, ..Ordinals::default() };
        Self { first, second }
    }

    /// Takes the next lines of an input. Returns the ordinal of the first.
    pub fn take(&mut self, input: usize, header: bool, lines: usize) -> u64 {
        self.second.take(self.second.earlier_inputs + input, header, lines)
    }

    /// True if the inputs had the same numbers of lines both times.
    pub fn is_done(&self) -> bool {
        let Self { first, second } = self;
        first.count == second.count && first.starts == second.starts
    }
}

/// Returns the error for inputs that differ from the first reading.
pub fn changed() -> Error {
    Error::new(
        "an input changed between its first and second reading, so the output may be wrong; copy the inputs first, or pipe them \
         in",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinal_locates_a_line_of_an_input() {
        let mut ordinals = Ordinals::new(["a", "b \"\n", "c", "d"].map(Path::new), 1);
        assert_eq!(
            [(0, 2), (0, 3), (2, 1), (3, 4)].map(|(input, lines)| ordinals.take(input, input == 2, lines)),
            [0, 2, 5, 6]
        );
        let reported = [0, 4, 5, 6, 9].map(|ordinal| ordinals.reported(ordinal));
        let expected = [("a", 1), ("a", 5), ("c", 2), ("d", 1), ("d", 4)];
        assert_eq!(reported, expected.map(|(name, line)| format!("\"file\":\"{name}\",\"line\":{line}")));
        let mut second = SecondOrdinals::new(ordinals);
        [(0, 5), (2, 1), (3, 3)].iter().for_each(|&(input, lines)| _ = second.take(input, input == 2, lines));
        assert!(!second.is_done());
        second.take(3, false, 1);
        assert!(second.is_done());
        assert_eq!(second.first.first_own(), 5);
        let mut own = SecondOrdinals::without_earlier(second.first);
        let read = [(1, 1), (2, 4)].map(|(input, lines)| own.take(input, input == 1, lines));
        assert_eq!(read, [5, 6]);
        assert!(own.is_done());
    }
}
