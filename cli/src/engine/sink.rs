//! A sink: where the lines of one input go to, or those of all.

use crate::encode::Encoder;
use crate::engine::checkpoint::Mark;
use crate::engine::folder;
use crate::engine::lane::Chunk;
use crate::error::Error;
use crate::files;
use crate::input::chunks::BYTE_ORDER_MARK;
use crate::input::lines::{Before, Lines};
use crate::locked::locked;
use crate::output::atomic_file::AtomicFile;
use crate::output::target::Target;
use crate::output::{Inlet, Output, Piece};
use crate::replace::Replaced;
use crate::seen::counts::Counts;
use crate::table::{Saved, Wish};
use crate::turns::Turns;
use crate::values::LineEnd;
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// What is printed of lines by their marks.
#[derive(Clone, Copy)]
pub struct Print {
    /// The mark of the lines that are wanted: `true` for what is new or found.
    pub wanted: bool,
    /// The mark of lines that are kept without a key.
    pub kept: bool,
    /// What stands before each line.
    pub before: Before,
    /// No line, for their number is.
    pub total: bool,
    /// How rows are written.
    pub wish: Wish,
    /// The end of each line, if that is another one than it has.
    pub eol: Option<LineEnd>,
}

impl Print {
    /// The numbers of lines that are printed and that are not, but for those that are left out.
    pub fn numbers(&self, counts: &Counts) -> (u64, u64) {
        let (mut selected, mut others) = (counts.unique, counts.dropped());
        *(if self.kept { &mut selected } else { &mut others }) += counts.kept;
        match (self.before, self.wanted) {
            (Before::Mark, _) => (selected + others, 0),
            (_, true) => (selected, others),
            (_, false) => (others, selected),
        }
    }
}

/// Where lines go to, and the chunks that wait to be gathered there.
pub struct Sink {
    pub turns: Turns<Chunk>,
    kept: OnceLock<Output>,
    /// What is not wanted.
    dropped: Option<Output>,
    /// Whether the header of an input is printed. Relaxed: whoever has the turn is alone.
    headed: AtomicBool,
    of: Of,
}

/// Whose lines go there.
enum Of {
    /// Those of all inputs.
    All,
    /// Those of one, to an output in a folder, which is made when its first lines are there.
    Own(Own),
    /// Those of one, to its place.
    Place(Place),
}

/// An input whose lines take its place.
struct Place {
    /// Whether it is written anew even if nothing is dropped.
    anew: bool,
    /// `None` if it has its new contents, or stays as it is.
    input: Mutex<Option<Replaced>>,
}

/// The output of one input.
pub struct Own {
    pub path: AtomicFile,
    /// Its length at the start, and what it was if it is a table.
    length: u64,
    table: Option<Saved>,
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
        Self { turns: Turns::new((first, 0)), kept, dropped, headed, of: Of::All }
    }

    /// For the lines of the lane of this number, from where the output was at `mark`.
    pub fn of_lane(lane: usize, path: AtomicFile, mark: &Mark) -> Self {
        let (length, table) = (mark.output, mark.table.clone());
        let own = Own { path, length, table, whole: AtomicBool::new(mark.whole), named: AtomicBool::new(false) };
        let headed = AtomicBool::new(mark.output > 0);
        Self { turns: Turns::new((lane, 0)), kept: OnceLock::new(), dropped: None, headed, of: Of::Own(own) }
    }

    /// For the lines of the lane of this number, which take the place of its input: if some are dropped, or if it is written `anew`.
    pub fn in_place(lane: usize, input: Replaced, anew: bool) -> Self {
        let of = Of::Place(Place { anew, input: Mutex::new(Some(input)) });
        let headed = AtomicBool::new(false);
        Self { turns: Turns::new((lane, 0)), kept: OnceLock::new(), dropped: None, headed, of }
    }

    /// The output of its own in a folder.
    pub fn own(&self) -> Option<&Own> {
        if let Of::Own(own) = &self.of { Some(own) } else { None }
    }

    /// The outputs that are open.
    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.kept.get().into_iter().chain(&self.dropped)
    }

    /// Opens the output of its own, unless it is open or whole; whether it did.
    pub fn begin(&self) -> Result<bool, Error> {
        let output = match &self.of {
            Of::Own(own) if !own.is_whole() && self.kept.get().is_none() => own.open()?,
            Of::Place(Place { input, .. }) => {
                match locked(input).as_mut().map(Replaced::begin).transpose()?.flatten() {
                    Some(output) => output,
                    None => return Ok(false),
                }
            }
            _ => return Ok(false),
        };
        // Whoever has the turn is alone here.
        let _ = self.kept.set(output);
        Ok(true)
    }

    /// Lets an input stay as it is whose lines would take its place, if its rest is `broken`, or if all of them stay.
    pub fn spare(&self, broken: bool, counts: &Counts) {
        let Of::Place(Place { anew, input }) = &self.of else { return };
        let left_out = counts.blank + counts.faults - counts.kept;
        let dropped = counts.dropped() + left_out + counts.units.shortened;
        if broken || dropped == 0 && !anew {
            *locked(input) = None;
        }
    }

    /// Prints lines, and the first header that comes. Returns the pieces that are due with them.
    pub fn print(&self, lines: &Lines, print: Print, live: bool) -> Result<Vec<(&Output, Piece)>, Error> {
        let Print { wanted, before, total, wish, eol, .. } = print;
        let mut pieces = Vec::new();
        if lines.is_rows() {
            let kept = self.kept.get().filter(|_| !total).map(|kept| (kept, before, wanted));
            let dropped = self.dropped.as_ref().map(|dropped| (dropped, Before::Nothing, !wanted));
            let due = kept.into_iter().chain(dropped);
            let due = due.filter_map(|(output, before, mark)| Some((output, lines.select(before, mark, wish)?)));
            return Ok(due.map(|(output, rows)| (output, output.take_rows(rows))).collect());
        }
        let is_first = !lines.header().is_empty() && !self.headed.swap(true, Relaxed);
        let kept = self.kept.get().filter(|_| !total).map(|kept| (kept, before, wanted));
        let dropped = self.dropped.as_ref().map(|dropped| (dropped, Before::Nothing, !wanted));
        for (output, before, mark) in dropped.into_iter().chain(kept) {
            let begins = output.begins(|| is_first || lines.prints(before, mark));
            let print = |out: &mut Inlet<'_>| {
                if begins && lines.has_byte_order_mark(is_first, before, mark) {
                    out.write_all(BYTE_ORDER_MARK)?;
                }
                if is_first {
                    lines.print_header(before, eol, out)?;
                }
                lines.print(before, mark, eol, out)
            };
            let due = output.take_in(live, print)?;
            pieces.extend(due.into_iter().map(|piece| (output, piece)));
        }
        Ok(pieces)
    }

    /// The end of the lines of an output of its own. Returns the pieces that are left.
    pub fn end(&self) -> Result<Vec<(&Output, Piece)>, Error> {
        let Some(kept) = self.kept.get().filter(|_| !self.has_all()) else { return Ok(Vec::new()) };
        Ok(kept.end()?.into_iter().map(|piece| (kept, piece)).collect())
    }

    /// Takes note that its own output is whole. That gets its name at once, or by a checkpoint.
    pub fn complete(&self, publish: bool) -> Result<(), Error> {
        match &self.of {
            Of::All => Ok(()),
            Of::Own(own) => {
                own.whole.store(true, Relaxed);
                if publish { folder::publish(&own.path).map(drop) } else { Ok(()) }
            }
            Of::Place(Place { input, .. }) => locked(input).take().map_or(Ok(()), Replaced::publish),
        }
    }

    /// Leaves an output of its own out, if it is not begun; whether it did.
    pub fn leave_out(&self) -> bool {
        let Some(own) = self.own().filter(|_| self.kept.get().is_none()) else { return false };
        own.whole.store(true, Relaxed);
        true
    }

    /// Whether the lines of all inputs go there.
    fn has_all(&self) -> bool {
        matches!(self.of, Of::All)
    }

    /// Lets readers see what needs no piece.
    pub fn flush(&self) -> Result<(), Error> {
        self.outputs().try_for_each(Output::flush)
    }

    /// Pieces that are being compressed.
    pub fn under_way(&self) -> usize {
        self.outputs().map(Output::under_way).sum()
    }

    /// Writes all that was gathered. No thread may be at work on it.
    pub fn write_out(&self, encoder: &mut Encoder) -> Result<(), Error> {
        self.outputs().try_for_each(|output| output.write_out(encoder))
    }

    /// Writes and syncs all that was gathered. No thread may be at work on it.
    pub fn settle(&self, encoder: &mut Encoder) -> Result<(), Error> {
        self.outputs().try_for_each(|output| output.settle(encoder))
    }

    /// The lengths of the output and of that for what is not wanted, as far as they are settled or whole.
    pub fn lengths(&self) -> (u64, u64) {
        let start = self.own().map_or(0, |own| own.length);
        (self.kept.get().map_or(start, Output::length), self.dropped.as_ref().map_or(0, Output::length))
    }

    /// The output and that for what is not wanted, if they are tables.
    pub fn tables(&self) -> Result<(Option<Saved>, Option<Saved>), Error> {
        let start = self.own().and_then(|own| own.table.clone());
        let dropped = self.dropped.as_ref().map_or(Ok(None), Output::table)?;
        Ok((self.kept.get().map_or(Ok(start), Output::table)?, dropped))
    }

    /// Writes what is left for outputs that have the lines of all inputs.
    pub fn finish(&self, encoder: &mut Encoder) -> Result<(), Error> {
        if self.has_all() { self.outputs().try_for_each(|output| output.finish(encoder)) } else { Ok(()) }
    }

    /// Prints a number in the place of lines.
    pub fn write_number(&self, number: u64) -> Result<(), Error> {
        self.kept.get().map_or(Ok(()), |kept| kept.write_line(number.to_string()))
    }

    /// Removes outputs for the rows of all inputs that are no whole tables.
    pub fn remove_cut_tables(&self) {
        if self.has_all() {
            self.outputs().for_each(Output::remove_cut_table);
        }
    }

    /// Removes an output of its own that is not whole.
    pub fn abandon(&self) {
        match &self.of {
            Of::Own(own) if self.kept.get().is_some() && !own.is_whole() => {
                // What cannot be removed is replaced by the next run.
                let _ = fs::remove_file(&own.path.part);
            }
            Of::Place(Place { input, .. }) => *locked(input) = None,
            _ => {}
        }
    }
}

impl Own {
    fn open(&self) -> Result<Output, Error> {
        let (part, goes_on) = (&self.path.part, self.length > 0);
        let folder = files::folder(part);
        fs::create_dir_all(folder).map_err(files::failed(folder))?;
        Target::of_part(&self.path, files::name(part), goes_on)?.begin(self.length, self.table.as_ref())
    }

    pub fn is_whole(&self) -> bool {
        self.whole.load(Relaxed)
    }

    /// Whether it is whole since the last call.
    pub fn is_unnamed(&self) -> bool {
        self.is_whole() && !self.named.swap(true, Relaxed)
    }
}
