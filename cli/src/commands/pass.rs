//! What `build`, `check` and the set operations share: a pass over lines that puts them into a set, and one that looks them up.

use crate::engine::lane::lanes;
use crate::engine::sink::{Print, Sink};
use crate::engine::wakes::Wake;
use crate::engine::work::{Act, Keep, Task, Work};
use crate::error::{Error, FAILED, SUCCESS, Stop};
use crate::files;
use crate::input::inputs::Inputs;
use crate::input::lines::{Before, Hashing};
use crate::locked::locked;
use crate::options::{ReadOptions, SelectOptions};
use crate::output::Output;
use crate::progress::Progress;
use crate::seen::tally::Tally;
use crate::seen::{Seen, SharedSeen};
use crate::table::Wish;
use crate::values::LineEnd;
use crossbeam_channel::Receiver;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Who reads lines, and what of them is looked at.
pub struct Pass<'a> {
    pub reading: &'a ReadOptions,
    pub hashing: Hashing,
    pub quiet: bool,
    /// The options for rows that are written, and the end of lines.
    pub wish: Wish,
    pub eol: Option<LineEnd>,
    /// What comes from outside.
    pub wakes: Receiver<Wake>,
}

impl Pass<'_> {
    /// Inserts the lines of the inputs. Returns why it ended before they did.
    pub fn insert(&self, inputs: Inputs, mut seen: Seen, mut tally: Tally) -> Result<(Arc<Work>, Option<Stop>), Error> {
        inputs.left_out.iter().for_each(|why| tally.leave_out(why));
        tally.limit.iter().filter(|limit| limit.stop).for_each(|limit| seen.limit(limit.keys));
        let progress = Progress::new(&inputs.found, inputs.read.clone(), self.quiet, false);
        self.work(inputs, SharedSeen::new(seen), tally, (Act::InsertInOrder, true), None, progress)
    }

    /// Has the sets of grams kept of documents that may be alike. Returns why it ended before the inputs did.
    pub fn collect(&self, inputs: Inputs, seen: SharedSeen, tally: Tally) -> Result<Option<Stop>, Error> {
        let progress = Progress::new(&inputs.found, inputs.read.clone(), self.quiet, false);
        self.work(inputs, seen, tally, (Act::Collect, true), None, progress).map(|(_, stop)| stop)
    }

    /// Looks the lines of the inputs up, and prints those that are `wanted`: that are in the set, or that are not. Returns why it ended
    /// before the inputs did. Without an output nothing is printed. With a tally, lines that are not in the set are inserted,
    /// counted there, and printed once.
    pub fn select(
        &self,
        inputs: Inputs,
        seen: SharedSeen,
        (wanted, inserting): (bool, Option<Tally>),
        options: &SelectOptions,
        output: Option<Output>,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let (SelectOptions { total, any, .. }, quiet) = (*options, self.quiet);
        let act = match inserting {
            Some(_) => (Act::FindNew, true),
            None => (if any { Act::FindOne } else { Act::Find }, wanted),
        };
        let mut tally = inserting.unwrap_or_else(|| Tally::of_search(&seen.look().set, quiet));
        inputs.left_out.iter().for_each(|why| tally.leave_out(why));
        let several = inputs.several;
        let progress = Progress::new(&inputs.found, inputs.read.clone(), quiet, !total && !any || several);
        let progress = progress.of_shared(seen.look().set.shared().map(|set| set.meter(None)), None);
        let (counts, printed) = if total { (output, None) } else { (None, output) };
        let (work, stop) = self.work(inputs, seen, tally, act, printed, progress)?;
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
        seen: SharedSeen,
        tally: Tally,
        (act, wanted): (Act, bool),
        output: Option<Output>,
        progress: Progress,
    ) -> Result<(Arc<Work>, Option<Stop>), Error> {
        let Self { reading, hashing, .. } = self;
        let task = Task {
            threads: reading.threads(),
            hashing: Hashing { decided: act == Act::Collect, ..hashing.clone() },
            on_error: reading.on_error,
            act,
            print: Print {
                wanted,
                kept: wanted,
                before: Before::Nothing,
                total: false,
                wish: self.wish,
                eol: self.eol,
            },
            ahead: reading.ahead(),
        };
        let lanes = lanes(inputs, reading.cut(hashing.format), None);
        let work = Work::new(task, lanes, vec![Sink::new(0, output, None)], seen, tally, None, Keep::default());
        let stop = work.run(&self.wakes, progress)?;
        Ok((work, stop))
    }
}

/// That of grep: 0 if a line is selected, and 1 if none is; 2 if inputs are left out, unless only one line was asked for.
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
