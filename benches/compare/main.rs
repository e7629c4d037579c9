//! Layouts and peers beside each other, by size, share of hits and threads.

mod chart;
mod contender;
mod fingerprints;
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
mod rates;
mod recommendation;
mod result;
mod text;

use clap::Parser;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use kinds::{KINDS, Kind};
use loads::{LOADS, LoadKind};
use machine::Machine;
use measure::{Equal, Method};
use options::Options;
use paint::Medium;
use rayon::ThreadPoolBuilder;
use result::{Comparison, Entry};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

const QUICK_SIZES: [usize; 3] = [256 << 10, 4 << 20, 64 << 20];
/// The rate of the filters that are compared at equal rates.
const EQUAL_RATE: f64 = 0.01;
const FULL_SIZES: [usize; 4] = [256 << 10, 16 << 20, 256 << 20, 1 << 30];

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let Options { html, svg, from, .. } = options;
    if let Some(path) = html.as_ref().filter(|_| html == from) {
        return Err(format!("cannot write to {path:?}: it is also an input"));
    }
    let earlier = from.as_deref().map(read).transpose()?;
    if let Some(path) = html {
        // Before minutes are spent on what cannot be written.
        let opened = File::options().create(true).append(true).open(path);
        opened.map_err(|error| format!("cannot write to {path:?}: {error}"))?;
    }
    let comparison = earlier.map_or_else(|| measure(options), Ok)?;
    if let Some(folder) = svg {
        fs::create_dir_all(folder).map_err(|error| format!("cannot make {folder:?}: {error}"))?;
        for plot in plots::all(&comparison) {
            write(&folder.join(plot.name).with_extension("svg"), plot.svg(Medium::File))?;
        }
    }
    if let Some(path) = html {
        write(path, page::page(&comparison))?;
    }
    let text = if options.json { serde_json::to_string(&comparison) } else { Ok(text::text(&comparison)) };
    let text = text.map_err(|error| error.to_string())?;
    writeln!(io::stdout(), "{text}").map_err(|error| format!("cannot write to standard output: {error}"))
}

fn write(path: &Path, text: String) -> Result<(), String> {
    fs::write(path, text + "\n").map_err(|error| format!("cannot write to {path:?}: {error}"))
}

fn read(path: &Path) -> Result<Comparison, String> {
    let text = fs::read(path).map_err(|error| error.to_string());
    let comparison = text.and_then(|text| serde_json::from_slice(&text).map_err(|error| error.to_string()));
    comparison.map_err(|error| format!("cannot read {path:?}: {error}; give the output of --json of this version"))
}

fn measure(options: &Options) -> Result<Comparison, String> {
    let started = Instant::now();
    let date = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let machine = Machine::detect();
    let Options { full, only, .. } = options;
    let kinds: Vec<&Kind> =
        KINDS.iter().filter(|kind| only.is_empty() || only.iter().any(|name| name == kind.name)).collect();
    let load_kinds: Vec<&LoadKind> =
        LOADS.iter().filter(|load| kinds.iter().any(|kind| kind.name == load.contender)).collect();
    let mut sizes = options.sizes.clone();
    if sizes.is_empty() {
        sizes.extend_from_slice(if *full { &FULL_SIZES } else { &QUICK_SIZES });
    }
    sizes.sort_unstable();
    sizes.dedup();
    check_memory(sizes[sizes.len() - 1], kinds.len().max(load_kinds.len()))?;
    // Powers of two, and the most.
    let max = options.threads.map_or(machine.cores, usize::from);
    let threads = (0..usize::BITS).map(|power| 1 << power).take_while(|&threads| threads < max).chain([max]);
    let pools = threads.map(|threads| ThreadPoolBuilder::new().num_threads(threads).build());
    let method = Method {
        bits_per_key: options.bits_per_key,
        round_keys: u64::from(options.probes),
        rounds: options.rounds.unwrap_or(if *full { 7 } else { 3 }),
        pools: pools.collect::<Result<_, _>>().map_err(|error| format!("cannot start threads: {error}"))?,
        // On standard error, if that is a terminal.
        progress: ProgressBar::new(0).with_style(
            ProgressStyle::with_template("{bar:10} {percent} %  {elapsed}  {wide_msg}").expect("the template is right"),
        ),
    };
    // Its filters may need more memory than the size, so the largest is not taken.
    let equal_rate_size = sizes[sizes.len().saturating_sub(2)];
    for &bytes in &sizes {
        let (contender, load) = method.work(bytes);
        let passes = kinds.len() * if bytes == equal_rate_size { 2 } else { 1 };
        method.progress.inc_length(contender * passes as u64 + load * load_kinds.len() as u64);
    }
    let (mut rows, mut loads, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for &bytes in &sizes {
        rows.extend(measure::speeds(&method, &kinds, bytes, Equal::Memory, &mut left_out));
        loads.extend(measure::loads(&method, &load_kinds, bytes)?);
    }
    let rated: Vec<&Kind> = kinds.iter().copied().filter(|kind| kind.for_rate.is_some()).collect();
    let equal_rate_rows = measure::speeds(&method, &rated, equal_rate_size, Equal::Rate(EQUAL_RATE), &mut left_out);
    let requested: &[f64] = if *full { &[0.05, 1e-2, 1e-3, 1e-4, 1e-5] } else { &[0.05, 1e-2, 1e-3, 1e-4] };
    // Calls and batches share a layout.
    let layouts: Vec<&Kind> = kinds.iter().copied().filter(|kind| kind.peer.is_some() || kind.batch).collect();
    let rates = rates::measured(&layouts, requested, method.round_keys / 6, method.round_keys, &mut left_out);
    method.progress.finish_and_clear();
    let arguments = std::env::args_os().skip(1).map(|argument| format!(" {}", argument.to_string_lossy()));
    Ok(Comparison {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date,
        command: format!("compare{}", arguments.collect::<String>()),
        machine,
        bits_per_key: method.bits_per_key,
        round_keys: method.round_keys,
        rounds: method.rounds,
        seconds: started.elapsed().as_secs_f64(),
        contenders: kinds.iter().map(|kind| entry(kind)).collect(),
        left_out,
        rows,
        equal_rate: EQUAL_RATE,
        equal_rate_rows,
        loads,
        rates,
        models: kinds.iter().filter(|kind| kind.peer.is_none() && kind.batch).map(|kind| rates::model(kind)).collect(),
    })
}

fn entry(kind: &Kind) -> Entry {
    Entry {
        name: kind.name.to_owned(),
        fixed: kind.build_bytes.is_some(),
        peer: kind.peer.map(str::to_owned),
        interface: kind.interface.to_owned(),
        batch: kind.batch,
        removes: kind.removes,
    }
}

/// Refuses sizes that do not fit.
fn check_memory(bytes: usize, filters: usize) -> Result<(), String> {
    let need = measure::memory_needed(bytes, filters);
    match machine::available_bytes() {
        Some(have) if have < need => Err(format!(
            "filters of {} take {} together, and {} can be had; choose with --sizes and --only",
            HumanBytes(bytes as u64),
            HumanBytes(need),
            HumanBytes(have)
        )),
        _ => Ok(()),
    }
}
