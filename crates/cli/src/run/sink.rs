//! A sink: the destination of the lines of one input, or of all.

use crate::read::chunks::BYTE_ORDER_MARK;
use crate::read::table::{Saved, TableOptions};
use crate::run::checkpoint::InputProgress;
use crate::run::folder;
use crate::run::input::InputChunk;
use crate::run::lines::Lines;
use crate::run::print::{LineEnd, Prefix};
use crate::seen::counts::LineCounts;
use crate::system::error::Error;
use crate::system::files;
use crate::system::unpoisoned::locked;
use crate::write::atomic_file::AtomicFile;
use crate::write::encode::Encoder;
use crate::write::output::{Output, Piece, PieceWriter};
use crate::write::reorder_buffer::ReorderBuffer;
use crate::write::replace::ReplacedFile;
use crate::write::target::OutputTarget;
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// The selection and the format of printed lines.
#[derive(Clone, Copy, Default)]
pub struct PrintOptions {
    /// The mark of the lines that are selected: `true` selects new or found lines.
    pub selected_mark: bool,
    /// The mark of lines that are kept without a key.
    pub kept: bool,
    /// The prefix of each line.
    pub prefix: Prefix,
    /// True if only the number of lines is printed.
    pub total: bool,
    /// The form in which rows are written.
    pub write_options: TableOptions,
    /// The end of each line, if it is replaced.
    pub eol: Option<LineEnd>,
}

impl PrintOptions {
    /// Selects lines with this mark. Lines that are kept without a key get it, too.
    pub fn for_mark(mark: bool) -> Self {
        Self { selected_mark: mark, kept: mark, ..Self::default() }
    }

    /// Returns the numbers of lines that are printed and that are not, without skipped lines.
    pub fn numbers(&self, counts: &LineCounts) -> (u64, u64) {
        let (mut selected, mut others) = (counts.unique, counts.dropped());
        *(if self.kept { &mut selected } else { &mut others }) += counts.kept;
        match (self.prefix, self.selected_mark) {
            (Prefix::Mark, _) => (selected + others, 0),
            (_, true) => (selected, others),
            (_, false) => (others, selected),
        }
    }
}

/// The destination of lines, and the chunks that wait to be gathered there.
pub struct Sink {
    pub reorder: ReorderBuffer<InputChunk>,
    /// The output of lines that are selected. Outputs are boxed because they are large and few sinks have two.
    kept: OnceLock<Box<Output>>,
    /// The output of lines that are not selected.
    dropped: Option<Box<Output>>,
    owner: OutputOwner,
}

/// The lines that are sent to a sink.
enum OutputOwner {
    /// The lines of all inputs.
    All,
    /// The lines of one input, to an output in a folder, which is created with the first lines.
    Own(InputOutput),
    /// The lines of one input, to replace it.
    InPlace(InPlaceOutput),
}

/// An input that is replaced by its lines.
struct InPlaceOutput {
    /// True if it is rewritten even if nothing is dropped.
    always_rewrite: bool,
    /// `None` once it is replaced, or if it is left unchanged.
    input: Mutex<Option<ReplacedFile>>,
}

/// The output of one input.
pub struct InputOutput {
    pub path: AtomicFile,
    /// Its length at the start, its state if it is a table, and true if a line was printed.
    length: u64,
    table: Option<Saved>,
    begun: bool,
    /// Relaxed, as below: the checkpoint that reads them waits for the threads.
    whole: AtomicBool,
    /// True if `take_newly_complete` has reported it as whole.
    reported: AtomicBool,
}

impl Sink {
    /// Creates the sink of all lines, from input number `first` on.
    pub fn new(first: usize, kept: Option<Output>, dropped: Option<Output>) -> Self {
        let kept = kept.map_or_else(OnceLock::new, |kept| OnceLock::from(Box::new(kept)));
        let dropped = dropped.map(Box::new);
        Self { reorder: ReorderBuffer::new((first, 0)), kept, dropped, owner: OutputOwner::All }
    }

    /// Creates the sink of one input, continuing its output at the checkpoint `reached`.
    pub fn for_input(number: usize, path: AtomicFile, reached: &InputProgress) -> Self {
        let (length, table) = (reached.output, reached.table.clone());
        let own = InputOutput {
            path,
            length,
            table,
            begun: reached.has_begun_output(),
            whole: AtomicBool::new(reached.whole),
            reported: AtomicBool::new(false),
        };
        Self {
            reorder: ReorderBuffer::new((number, 0)),
            kept: OnceLock::new(),
            dropped: None,
            owner: OutputOwner::Own(own),
        }
    }

    /// Creates the sink of one input that replaces the input if lines are dropped or `always_rewrite` is true.
    pub fn in_place(number: usize, input: ReplacedFile, always_rewrite: bool) -> Self {
        let owner = OutputOwner::InPlace(InPlaceOutput { always_rewrite, input: Mutex::new(Some(input)) });
        Self { reorder: ReorderBuffer::new((number, 0)), kept: OnceLock::new(), dropped: None, owner }
    }

    /// Returns the sink's own output in a folder.
    pub fn own(&self) -> Option<&InputOutput> {
        if let OutputOwner::Own(own) = &self.owner { Some(own) } else { None }
    }

    /// Returns the output of lines that are selected, if it is open.
    fn kept(&self) -> Option<&Output> {
        self.kept.get().map(Box::as_ref)
    }

    /// Returns the outputs that are open.
    fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.kept().into_iter().chain(self.dropped.as_deref())
    }

    /// Opens the sink's own output, unless it is open or whole. Returns true if it opened one.
    pub fn open(&self) -> Result<bool, Error> {
        let output = match &self.owner {
            OutputOwner::Own(own) if !own.is_whole() && self.kept().is_none() => own.open()?,
            OutputOwner::InPlace(InPlaceOutput { input, .. }) => {
                match locked(input).as_mut().map(ReplacedFile::begin).transpose()?.flatten() {
                    Some(output) => output,
                    None => return Ok(false),
                }
            }
            _ => return Ok(false),
        };
        // Only the thread that drains the buffer is here.
        let _ = self.kept.set(Box::new(output));
        Ok(true)
    }

    /// Leaves the input file unchanged if no line was removed, or if reading it failed (`broken`).
    pub fn skip_replace(&self, broken: bool, counts: &LineCounts) {
        let OutputOwner::InPlace(InPlaceOutput { always_rewrite, input }) = &self.owner else { return };
        let left_out = counts.blank + counts.faults - counts.kept;
        let dropped = counts.dropped() + left_out + counts.units.shortened;
        if broken || dropped == 0 && !always_rewrite {
            *locked(input) = None;
        }
    }

    /// Prints lines, after the first header. Returns the pieces that are complete.
    pub fn print(&self, lines: &mut Lines, print: PrintOptions, live: bool) -> Result<Vec<(&Output, Piece)>, Error> {
        let PrintOptions { selected_mark, prefix, total, write_options, eol, .. } = print;
        let mut pieces = Vec::new();
        let kept = self.kept().filter(|_| !total).map(|kept| (kept, prefix, selected_mark));
        let dropped = self.dropped.as_deref().map(|dropped| (dropped, Prefix::Nothing, !selected_mark));
        if lines.batch.is_rows() {
            for (output, prefix, mark) in kept.into_iter().chain(dropped) {
                let rows = lines.select(prefix, mark, write_options);
                pieces.extend(rows.map(|rows| (output, output.take_rows(rows))));
            }
            return Ok(pieces);
        }
        let is_first = !lines.batch.header().is_empty() && !self.outputs().any(Output::has_begun);
        for (output, prefix, mark) in dropped.into_iter().chain(kept) {
            let is_first_write = output.is_first_write(|| is_first || lines.prints(prefix, mark));
            let print = |out: &mut PieceWriter<'_>| {
                if is_first_write && lines.has_byte_order_mark(is_first, prefix, mark) {
                    out.write_all(BYTE_ORDER_MARK)?;
                }
                if is_first {
                    lines.print_header(prefix, eol, out)?;
                }
                lines.print(prefix, mark, eol, out)
            };
            let due = output.take_in(live, print)?;
            pieces.extend(due.into_iter().map(|piece| (output, piece)));
        }
        Ok(pieces)
    }

    /// Ends the sink's own output. Returns the remaining pieces.
    pub fn end(&self) -> Result<Vec<(&Output, Piece)>, Error> {
        let Some(kept) = self.kept().filter(|_| !self.has_all()) else { return Ok(Vec::new()) };
        Ok(kept.end()?.into_iter().map(|piece| (kept, piece)).collect())
    }

    /// Records that the sink's own output is whole. It is renamed at once if `publish`, otherwise by a checkpoint.
    pub fn complete(&self, publish: bool) -> Result<(), Error> {
        match &self.owner {
            OutputOwner::All => Ok(()),
            OutputOwner::Own(own) => {
                own.whole.store(true, Relaxed);
                if publish { folder::publish(&own.path).map(drop) } else { Ok(()) }
            }
            OutputOwner::InPlace(InPlaceOutput { input, .. }) => match locked(input).take() {
                Some(input) => input.publish(),
                None => Ok(()),
            },
        }
    }

    /// Skips the sink's own output, if it is not begun. Returns true if it is skipped.
    pub fn leave_out(&self) -> bool {
        let Some(own) = self.own().filter(|_| self.kept().is_none()) else { return false };
        own.whole.store(true, Relaxed);
        true
    }

    /// True if the lines of all inputs are sent to this sink.
    fn has_all(&self) -> bool {
        matches!(self.owner, OutputOwner::All)
    }

    /// Flushes bytes that were written without pieces.
    pub fn flush(&self) -> Result<(), Error> {
        self.outputs().try_for_each(Output::flush)
    }

    /// Returns the number of pieces that are being compressed.
    pub fn compressing_pieces(&self) -> usize {
        self.outputs().map(Output::compressing_pieces).sum()
    }

    /// Writes all that was gathered, and syncs it with `sync`. No other thread may be using the outputs.
    pub fn write_out(&self, encoder: &mut Encoder, sync: bool) -> Result<(), Error> {
        self.outputs().try_for_each(|output| output.write_out(encoder, sync))
    }

    /// Returns the lengths of the output and of the output for lines that are not selected, as far as they are synced or whole.
    pub fn lengths(&self) -> (u64, u64) {
        let start = self.own().map_or(0, |own| own.length);
        (self.kept().map_or(start, Output::length), self.dropped.as_deref().map_or(0, Output::length))
    }

    /// True for the output, and for the output for lines that are not selected, if a header or a line was printed.
    pub fn begun(&self) -> (bool, bool) {
        let start = self.own().is_some_and(|own| own.begun);
        (self.kept().map_or(start, Output::has_begun), self.dropped.as_deref().is_some_and(Output::has_begun))
    }

    /// Returns the state of the output and of the output for lines that are not selected, if they are tables.
    pub fn tables(&self) -> Result<(Option<Saved>, Option<Saved>), Error> {
        let start = self.own().and_then(|own| own.table.clone());
        let dropped = self.dropped.as_deref().map_or(Ok(None), Output::table)?;
        Ok((self.kept().map_or(Ok(start), Output::table)?, dropped))
    }

    /// Writes the rest of outputs for the lines of all inputs.
    pub fn finish(&self, encoder: &mut Encoder) -> Result<(), Error> {
        if self.has_all() { self.outputs().try_for_each(|output| output.finish(encoder)) } else { Ok(()) }
    }

    /// Closes the files of the outputs, which are finished.
    pub fn close(&self) {
        self.outputs().for_each(Output::close);
    }

    /// Prints a number in place of lines.
    pub fn write_number(&self, number: u64) -> Result<(), Error> {
        match self.kept() {
            Some(kept) => kept.write_line(number.to_string()),
            None => Ok(()),
        }
    }

    /// Keeps outputs without lines if the run is complete. Otherwise removes those that it created, unless a checkpoint has their
    /// bytes.
    pub fn keep_or_remove_unused(&self, is_complete: bool, has_checkpoint: bool) {
        self.outputs()
            .for_each(|output| if is_complete { output.keep() } else { output.remove_unused(has_checkpoint) });
    }

    /// Removes outputs for the rows of all inputs that are incomplete tables.
    pub fn remove_cut_tables(&self) {
        if self.has_all() {
            self.outputs().for_each(Output::remove_cut_table);
        }
    }

    /// Removes the sink's own output if it is incomplete.
    pub fn abandon(&self) {
        match &self.owner {
            OutputOwner::Own(own) if self.kept().is_some() && !own.is_whole() => {
                // If it cannot be removed, the next run replaces it.
                let _ = fs::remove_file(&own.path.part);
            }
            OutputOwner::InPlace(InPlaceOutput { input, .. }) => *locked(input) = None,
            _ => {}
        }
    }
}

impl InputOutput {
    fn open(&self) -> Result<Output, Error> {
        let (part, continues) = (&self.path.part, self.length > 0);
        let folder = files::folder(part);
        fs::create_dir_all(folder).map_err(files::failed(folder))?;
        let target = OutputTarget::open_part(&self.path, files::name(part), continues)?;
        Ok(target.start(self.length, self.table.as_ref())?.continues(self.begun))
    }

    pub fn is_whole(&self) -> bool {
        self.whole.load(Relaxed)
    }

    /// True if it became whole since the last call.
    pub fn take_newly_complete(&self) -> bool {
        self.is_whole() && !self.reported.swap(true, Relaxed)
    }
}
