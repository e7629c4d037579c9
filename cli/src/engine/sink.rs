//! A sink: where the lines of one input go to, or those of all.

use crate::encode::Encoder;
use crate::engine::checkpoint::Mark;
use crate::engine::folder::OutputPath;
use crate::engine::lane::Chunk;
use crate::error::Error;
use crate::files;
use crate::input::lines::{Before, Lines};
use crate::output::{Inlet, Output, Piece, Target};
use crate::turns::Turns;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What is printed of lines by their marks.
#[derive(Clone, Copy)]
pub struct Print {
    /// The mark of the lines that are wanted: `true` for what is new or found.
    pub wanted: bool,
    /// What stands before each line.
    pub before: Before,
    /// No line, for their number is.
    pub total: bool,
}

/// Where lines go to, and the chunks that wait to be gathered there.
pub struct Sink {
    pub turns: Turns<Chunk>,
    kept: OnceLock<Output>,
    /// What is not wanted.
    dropped: Option<Output>,
    /// An output in a folder, which is made when its first lines are there.
    own: Option<Own>,
    /// Whether the header of an input is printed. Relaxed: whoever has the turn is alone.
    headed: AtomicBool,
}

/// The output of one input.
pub struct Own {
    pub path: OutputPath,
    /// Its length at the start.
    length: u64,
    /// Relaxed, as below: the checkpoint that reads them waits for the threads.
    whole: AtomicBool,
    /// Whether it has its name.
    named: AtomicBool,
}

impl Sink {
    /// For all lines, from the lane of this number on.
    pub fn new(first: usize, kept: Option<Output>, dropped: Option<Output>) -> Self {
        // A header comes before all else that is printed.
        let headed = AtomicBool::new(kept.as_ref().is_some_and(|kept| kept.length() > 0));
        let kept = kept.map_or_else(OnceLock::new, OnceLock::from);
        Self { turns: Turns::new((first, 0)), kept, dropped, own: None, headed }
    }

    /// For the lines of the lane of this number, from where the output was at `mark`.
    pub fn of_lane(lane: usize, path: OutputPath, mark: &Mark) -> Self {
        let own = Own { path, length: mark.output, whole: AtomicBool::new(mark.whole), named: AtomicBool::new(false) };
        let headed = AtomicBool::new(mark.output > 0);
        Self { turns: Turns::new((lane, 0)), kept: OnceLock::new(), dropped: None, own: Some(own), headed }
    }

    /// The output of its own.
    pub fn own(&self) -> Option<&Own> {
        self.own.as_ref()
    }

    /// The outputs that are open.
    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.kept.get().into_iter().chain(&self.dropped)
    }

    /// Opens the output of its own, unless it is open or whole; whether it did.
    pub fn begin(&self) -> Result<bool, Error> {
        let Some(own) = self.own.as_ref().filter(|own| !own.is_whole() && self.kept.get().is_none()) else {
            return Ok(false);
        };
        // Whoever has the turn is alone here.
        let _ = self.kept.set(own.open()?);
        Ok(true)
    }

    /// Prints lines, and the first header that comes. Returns the pieces that are due with them.
    pub fn print(&self, lines: &Lines, print: Print, live: bool) -> Result<Vec<(&Output, Piece)>, Error> {
        let Print { wanted, before, total } = print;
        let mut pieces = Vec::new();
        let is_first = !lines.header().is_empty() && !self.headed.swap(true, Relaxed);
        let print = |before, mark, out: &mut Inlet<'_>| {
            if is_first {
                lines.print_header(before, out)?;
            }
            lines.print(before, mark, out)
        };
        if let Some(dropped) = &self.dropped {
            let due = dropped.take_in(live, |out| print(Before::Nothing, !wanted, out))?;
            pieces.extend(due.into_iter().map(|piece| (dropped, piece)));
        }
        if let Some(kept) = self.kept.get().filter(|_| !total) {
            let due = kept.take_in(live, |out| print(before, wanted, out))?;
            pieces.extend(due.into_iter().map(|piece| (kept, piece)));
        }
        Ok(pieces)
    }

    /// The end of the lines of an output of its own. Returns the pieces that are left.
    pub fn end(&self) -> Result<Vec<(&Output, Piece)>, Error> {
        let Some(kept) = self.kept.get().filter(|_| self.own.is_some()) else { return Ok(Vec::new()) };
        Ok(kept.end()?.into_iter().map(|piece| (kept, piece)).collect())
    }

    /// Takes note that its own output is whole. That gets its name at once, or by a checkpoint.
    pub fn complete(&self, publish: bool) -> Result<(), Error> {
        let Some(own) = &self.own else { return Ok(()) };
        own.whole.store(true, Relaxed);
        if publish { own.path.publish().map(drop) } else { Ok(()) }
    }

    /// Lets readers see what needs no piece.
    pub fn flush(&self) -> Result<(), Error> {
        self.outputs().try_for_each(Output::flush)
    }

    /// Pieces that are being compressed.
    pub fn under_way(&self) -> usize {
        self.outputs().map(Output::under_way).sum()
    }

    /// Writes and syncs all that was gathered. No thread may be at work on it.
    pub fn settle(&self, encoder: &mut Encoder) -> Result<(), Error> {
        self.outputs().try_for_each(|output| output.settle(encoder))
    }

    /// The lengths of the output and of that for what is not wanted, as far as they are settled or whole.
    pub fn lengths(&self) -> (u64, u64) {
        let start = self.own.as_ref().map_or(0, |own| own.length);
        (self.kept.get().map_or(start, Output::length), self.dropped.as_ref().map_or(0, Output::length))
    }

    /// Writes what is left for outputs that have the lines of all inputs.
    pub fn finish(&self, encoder: &mut Encoder) -> Result<(), Error> {
        if self.own.is_some() { Ok(()) } else { self.outputs().try_for_each(|output| output.finish(encoder)) }
    }

    /// Prints a number in the place of lines.
    pub fn write_number(&self, number: u64) -> Result<(), Error> {
        self.kept.get().map_or(Ok(()), |kept| kept.write_line(number.to_string()))
    }

    /// Removes an output of its own that is not whole.
    pub fn abandon(&self) {
        if let Some(own) = self.own.as_ref().filter(|own| self.kept.get().is_some() && !own.is_whole()) {
            // What cannot be removed is replaced by the next run.
            let _ = fs::remove_file(&own.path.part);
        }
    }
}

impl Own {
    fn open(&self) -> Result<Output, Error> {
        let OutputPath { part, compression, .. } = &self.path;
        let folder = files::folder(part);
        fs::create_dir_all(folder).map_err(|source| Error::Create { output: files::name(folder), source })?;
        Target::of_own(part, *compression, self.length > 0)?.begin(self.length)
    }

    pub fn is_whole(&self) -> bool {
        self.whole.load(Relaxed)
    }

    /// Whether it is whole since the last call.
    pub fn is_unnamed(&self) -> bool {
        self.is_whole() && !self.named.swap(true, Relaxed)
    }
}
