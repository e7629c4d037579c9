//! `bloomline compare`: layouts and peers beside each other, by size, share of hits and threads.

mod chart;
mod contender;
mod fingerprints;
mod harness;
mod kinds;
mod loads;
mod machine;
mod measure;
mod options;
mod page;
mod paint;
mod peers;
mod plots;
mod prehashed;
mod progress;
mod rates;
mod result;
mod text;

pub use options::{EXAMPLES, Options};

use crate::error::{Error, SUCCESS};
use crate::figures::readable_size;
use crate::files::{Origin, name};
use crate::output::Target;
use crate::pieces::Crew;
use kinds::{KINDS, Kind};
use loads::{LOADS, LoadKind};
use machine::Machine;
use measure::Method;
use progress::Progress;
use result::{Comparison, Entry};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Instant, SystemTime};

const QUICK_SIZES: [usize; 3] = [256 << 10, 4 << 20, 64 << 20];
const FULL_SIZES: [usize; 4] = [256 << 10, 16 << 20, 256 << 20, 1 << 30];

/// Runs the command.
pub fn run(options: &Options) -> Result<u8, Error> {
    // Before minutes are spent on what cannot be written.
    let from = options.from.as_deref().map(Origin::of);
    let html = options.html.as_deref().map(|path| Target::open(Some(path), None, &from, [])).transpose()?;
    let table = Target::open(None, None, &from, html.iter().map(|html| &html.origin))?;
    let written: Vec<Origin> = html.iter().chain([&table]).map(|target| target.origin.clone()).collect();
    let comparison = match &options.from {
        Some(path) => read(path)?,
        None => measure(options)?,
    };
    if let Some(folder) = &options.svg {
        let failed = |source| Error::Create { output: name(folder), source };
        fs::create_dir_all(folder).map_err(failed)?;
        for plot in plots::all(&comparison)? {
            let path = folder.join(plot.name).with_extension("svg");
            Target::open(Some(&path), None, &from, &written)?
                .begin(0, Crew::default())?
                .write_line(&paint::for_file(&plot.svg))?;
        }
    }
    if let Some(html) = html {
        html.begin(0, Crew::default())?.write_line(&page::page(&comparison)?)?;
    }
    let text = if options.json { json(&comparison) } else { text::text(&comparison) };
    table.begin(0, Crew::default())?.write_line(&text)?;
    Ok(SUCCESS)
}

fn json(comparison: &Comparison) -> String {
    serde_json::to_string(comparison).expect("all keys are strings")
}

fn read(path: &Path) -> Result<Comparison, Error> {
    let failed = |reason: String| Error::Comparison { path: path.to_owned(), reason };
    let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))
}

fn measure(options: &Options) -> Result<Comparison, Error> {
    let started = Instant::now();
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let machine = Machine::detect();
    let kinds = chosen(&options.only)?;
    let load_kinds: Vec<&LoadKind> =
        LOADS.iter().filter(|load| kinds.iter().any(|kind| kind.name == load.contender)).collect();
    let method = Method {
        bits_per_key: options.bits_per_key,
        round_keys: u64::from(options.probes),
        rounds: options.rounds.unwrap_or(if options.full { 7 } else { 3 }),
        threads: thread_counts(options.threads.map_or(machine.cores, usize::from)),
    };
    let mut sizes = options.sizes.clone();
    if sizes.is_empty() {
        sizes.extend_from_slice(if options.full { &FULL_SIZES } else { &QUICK_SIZES });
    }
    sizes.sort_unstable();
    sizes.dedup();
    let largest = sizes[sizes.len() - 1];
    check_memory(largest, kinds.len().max(load_kinds.len()))?;

    let work = |&bytes: &usize| {
        let (contender, load) = method.work(bytes);
        contender * kinds.len() as u64 + load * load_kinds.len() as u64
    };
    let progress = Progress::new(sizes.iter().map(work).sum());
    let (mut rows, mut loads, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for &bytes in &sizes {
        rows.extend(measure::speeds(&method, &kinds, bytes, &progress, &mut left_out)?);
        loads.extend(measure::loads(&method, &load_kinds, bytes, &progress)?);
    }
    let asked: &[f64] = if options.full { &[0.05, 1e-2, 1e-3, 1e-4, 1e-5] } else { &[0.05, 1e-2, 1e-3, 1e-4] };
    let rates = rates::measured(&kinds, asked, method.round_keys / 6, method.round_keys, &mut left_out)?;
    let models = rates::models(&kinds)?;
    drop(progress);

    Ok(Comparison {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date,
        command: command(std::env::args_os()),
        machine,
        bits_per_key: method.bits_per_key,
        round_keys: method.round_keys,
        rounds: method.rounds,
        seconds: started.elapsed().as_secs_f64(),
        contenders: kinds.iter().map(|kind| entry(kind)).collect(),
        left_out,
        rows,
        loads,
        rates,
        models,
    })
}

fn entry(kind: &Kind) -> Entry {
    Entry {
        name: kind.name.to_owned(),
        fixed: kind.build_bytes.is_some(),
        peer: kind.peer.map(str::to_owned),
        interface: kind.interface.to_owned(),
    }
}

/// The kinds with these names. All if there are none.
fn chosen(names: &[String]) -> Result<Vec<&'static Kind>, Error> {
    if let Some(unknown) = names.iter().find(|&name| KINDS.iter().all(|kind| kind.name != name)) {
        let known = KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
        return Err(Error::Contender { name: unknown.clone(), known });
    }
    Ok(KINDS.iter().filter(|kind| names.is_empty() || names.iter().any(|name| name == kind.name)).collect())
}

/// The powers of two below `most`, and `most`.
fn thread_counts(most: usize) -> Vec<usize> {
    let powers = (0..usize::BITS).map(|power| 1 << power);
    powers.take_while(|&threads| threads < most).chain([most]).collect()
}

/// Refuses sizes that do not fit.
fn check_memory(bytes: usize, filters: usize) -> Result<(), Error> {
    let need = measure::memory_needed(bytes, filters);
    match machine::available_bytes() {
        Some(have) if have < need => Err(Error::ComparedMemory {
            size: readable_size(bytes),
            need: readable_size(need as usize),
            have: readable_size(have as usize),
        }),
        _ => Ok(()),
    }
}

/// The command line, with the program's name instead of its path.
fn command(arguments: impl Iterator<Item = OsString>) -> String {
    let arguments = arguments.skip(1).map(|argument| argument.to_string_lossy().into_owned());
    ["bloomline".to_owned()].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}
