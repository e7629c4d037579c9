//! A pass over inputs that prints at most to one output: for `build`, `check` and the set operations, and for a first
//! reading.

use crate::engine::lane::lanes;
use crate::engine::pass::insert::Insert;
use crate::engine::pass::look_up::{LookUp, LookUpOnce};
use crate::engine::pass::{Pass, Task};
use crate::engine::sink::{Print, Sink};
use crate::engine::wakes::Wake;
use crate::engine::work::{Keep, Work};
use crate::error::{Error, FAILED, SUCCESS, Stop};
use crate::files;
use crate::input::inputs::Inputs;
use crate::input::lines::{Before, Hashing};
use crate::input::table::Wish;
use crate::locked::locked;
use crate::options::{ReadOptions, SelectOptions};
use crate::output::Output;
use crate::progress::Progress;
use crate::seen::tally::Tally;
use crate::seen::{Seen, SharedSeen};
use crate::values::LineEnd;
use crossbeam_channel::Receiver;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The options of a pass over inputs.
pub struct Scan<'a> {
    pub reading: &'a ReadOptions,
    pub hashing: Hashing,
    pub quiet: bool,
    /// The options for rows that are written, and the end of lines.
    pub wish: Wish,
    pub eol: Option<LineEnd>,
    /// Signals.
    pub wakes: Receiver<Wake>,
}

impl Scan<'_> {
    /// Inserts the lines of the inputs. Returns the reason if it ended before they did.
    pub fn insert(&self, inputs: Inputs, seen: Seen, tally: Tally) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let seen = SharedSeen::new(seen);
        let pass = Insert { seen: seen.clone(), in_order: true };
        self.read(inputs, Arc::new(pass), seen, tally)
    }

    /// Reads the inputs and prints nothing. Returns the reason if it ended before they did.
    pub fn read(
        &self,
        inputs: Inputs,
        pass: Arc<dyn Pass>,
        seen: SharedSeen,
        mut tally: Tally,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        inputs.left_out.iter().for_each(|why| tally.leave_out(why));
        tally.limit.iter().filter(|limit| limit.stop).for_each(|limit| seen.write().limit(limit.keys));
        let progress = Progress::new(&inputs.found, inputs.read.clone(), self.quiet, false);
        self.work(inputs, pass, seen, tally, (true, None), progress)
    }

    /// Looks the lines of the inputs up, and prints the ones in the set, or the others, as `wanted`. Returns the reason
    /// if it ended before the inputs did. Without an output nothing is printed. With a tally, lines that are not in the
    /// set are inserted, counted there, and printed once.
    pub fn select(
        &self,
        inputs: Inputs,
        seen: SharedSeen,
        (wanted, inserting): (bool, Option<Tally>),
        options: &SelectOptions,
        output: Option<Output>,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let (SelectOptions { total, any, .. }, quiet) = (*options, self.quiet);
        let (pass, wanted): (Arc<dyn Pass>, bool) = match inserting {
            Some(_) => (Arc::new(LookUpOnce(Insert { seen: seen.clone(), in_order: true })), true),
            None => (Arc::new(LookUp { seen: seen.clone(), any }), wanted),
        };
        let mut tally = inserting.unwrap_or_else(|| Tally::of_search(&seen.look().set, quiet));
        inputs.left_out.iter().for_each(|why| tally.leave_out(why));
        let several = inputs.several;
        let progress = Progress::new(&inputs.found, inputs.read.clone(), quiet, !total && !any || several);
        let progress = progress.of_shared(seen.look().set.shared().map(|set| set.meter(None)), None);
        let (counts, printed) = if total { (output, None) } else { (None, output) };
        let (work, stop) = self.work(inputs, pass, seen, tally, (wanted, printed), progress)?;
        if let Some(output) = counts {
            for (path, selected) in work.counted() {
                let name =
                    if files::is_standard(&path) { "(standard input)".as_bytes() } else { path.as_os_str().as_bytes() };
                let selected = selected.to_string();
                output.write_line(&if several {
                    [name, selected.as_bytes()].join(&b':')
                } else {
                    selected.into_bytes()
                })?;
            }
        }
        Ok((work, stop))
    }

    fn work(
        &self,
        inputs: Inputs,
        pass: Arc<dyn Pass>,
        seen: SharedSeen,
        tally: Tally,
        (wanted, output): (bool, Option<Output>),
        progress: Progress,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let Self { reading, hashing, wish, eol, .. } = self;
        let print = Print { wanted, kept: wanted, before: Before::Nothing, total: false, wish: *wish, eol: *eol };
        let task = Task {
            threads: reading.threads(),
            hashing: hashing.clone(),
            on_error: reading.on_error,
            print,
            ahead: reading.ahead(),
        };
        let lanes = lanes(inputs, reading.cut(hashing.format), None);
        let work = Work::new(task, pass, lanes, vec![Sink::new(0, output, None)], seen, tally, Keep::default());
        let stop = work.run(&self.wakes, progress)?;
        Ok((work, stop))
    }
}

/// Returns grep's exit code: 0 if a line is selected, and 1 if none is; 2 if inputs are skipped, unless `any` line was found.
pub fn exit_code(work: &Work, stop: Option<Stop>, left_out_before: u64, any: bool) -> Result<u8, Error> {
    match stop.map_or(Ok(SUCCESS), Stop::end)? {
        SUCCESS => {}
        code => return Ok(code),
    }
    let counts = &locked(&work.tally).counts;
    let left_out = counts.left_out + left_out_before;
    Ok(match counts.unique {
        1.. if any || left_out == 0 => SUCCESS,
        0 if left_out == 0 => 1,
        _ => FAILED,
    })
}
