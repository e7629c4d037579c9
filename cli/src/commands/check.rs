//! `bloomline check`: the lines that are in a filter, as grep would print them.

use crate::commands::run::lanes;
use crate::engine::sink::{Print, Sink};
use crate::engine::work::{Act, Keep, Task, Work};
use crate::error::{Error, FAILED, SUCCESS};
use crate::files::{self, Origin};
use crate::input::inputs::Inputs;
use crate::input::lines::{Hashing, What};
use crate::messages::warn;
use crate::options::CheckOptions;
use crate::output::{Output, locked};
use crate::progress::Progress;
use crate::seen::shared::{Address, Shared};
use crate::seen::tally::Tally;
use crate::seen::{KeySet, Seen, SharedSeen};
use crossbeam_channel::never;
use std::os::unix::ffi::OsStrExt;

/// Runs the command.
pub fn run(options: &CheckOptions) -> Result<u8, Error> {
    let reading = &options.reading;
    let own = options.state.as_deref().map(files::of_filter);
    let inputs = Inputs::check(&reading.named(), own.as_slice().as_flattened(), true)?;
    let filter = filter(options)?;
    let excess = filter.made_for().filter(|_| !options.quiet).and_then(|(keys, _)| filter.excess(keys));
    if let Some(excess) = excess {
        warn(&format!("{excess}; build a larger one with -n"));
    }
    let mut tally = Tally::of_search(&filter, options.quiet);
    inputs.left_out.iter().for_each(|why| tally.leave_out(why));
    let several = inputs.several;
    let progress =
        Progress::new(&inputs.found, inputs.read.clone(), options.quiet, !options.total && !options.any || several);
    let origin = options.state.as_deref().map(Origin::of);
    let origins = || inputs.found.iter().map(|input| &input.origin).chain(&origin);
    let output = if options.any { None } else { Some(Output::create(None, origins())?) };
    let (counts, printed) = if options.total { (output, None) } else { (None, output) };
    let task = Task {
        threads: reading.threads(),
        hashing: Hashing {
            end: reading.end(),
            hasher: filter.hasher().clone(),
            what: What::Key(options.key.rule(), None),
        },
        on_error: reading.on_error,
        act: if options.any { Act::FindOne } else { Act::Find },
        print: Print { wanted: !options.invert, annotate: false, count: false },
        ahead: reading.ahead(),
    };
    let lanes = lanes(inputs, reading, None);
    let seen = SharedSeen::new(Seen::new(filter));
    let work = Work::new(task, lanes, vec![Sink::new(0, printed, None)], seen, tally, None, Keep::default());
    let stop = work.run(&never(), progress)?;
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
    if let Some(stop) = stop {
        stop.end()?;
    }
    Ok(exit_code(options, &locked(&work.tally)))
}

fn filter(options: &CheckOptions) -> Result<KeySet, Error> {
    if let Some(address) = Address::of(&options.shared)? {
        return Shared::open(&address).map(|shared| KeySet::Shared(shared.into()));
    }
    KeySet::load_for(options.state.as_deref().expect("it is required"), &options.key.name())
}

/// That of grep: 0 if a line is selected, and 1 if none is; 2 if inputs are left out, unless only one line was asked for.
fn exit_code(options: &CheckOptions, Tally { counts, .. }: &Tally) -> u8 {
    match counts.unique {
        1.. if options.any || counts.left_out == 0 => SUCCESS,
        0 if counts.left_out == 0 => 1,
        _ => FAILED,
    }
}
