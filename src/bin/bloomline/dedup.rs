//! `bloomline dedup`: each distinct line once, in input order.

use crate::chunks::Chunks;
use crate::cli::{Dedup, StatsFormat};
use crate::error::Error;
use crate::input::Input;
use crate::output::Output;
use crate::pipeline::{self, Batch};
use crate::report::{Report, readable};
use bloomline::BloomFilter;
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &Dedup) -> Result<(), Error> {
    let started = Instant::now();
    let inputs = if options.files.is_empty() {
        vec![Input::check(Path::new("-"))?]
    } else {
        options.files.iter().map(|path| Input::check(path)).collect::<Result<_, _>>()?
    };
    let expected_keys = match options.expected_keys {
        Some(keys) => keys,
        None => inputs.iter().map(Input::estimate_lines).sum::<Result<u64, _>>()?.max(1),
    };
    let filter = BloomFilter::builder()
        .expected_keys(expected_keys)
        .false_positive_rate(options.fpr)
        .seed(options.seed)
        .build()?;
    let output = Output::create(options.output.as_deref(), &inputs)?;
    let threads = match options.threads {
        Some(threads) => threads.into(),
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let hasher = filter.hasher().clone();
    let chunks = Chunks::new(inputs, options.chunk_size as usize);
    let mut deduper = Deduper { filter, expected_keys, output, new: Vec::new(), lines: 0, unique: 0, bytes: 0 };
    pipeline::run(chunks, &hasher, threads, |batch| deduper.take(batch))?;
    deduper.output.finish()?;
    if let Some(format) = options.stats {
        let Deduper { filter, lines, unique, bytes, .. } = &deduper;
        let report = Report::new(filter, *lines, *unique, *bytes, started.elapsed());
        say(&match format {
            StatsFormat::Text => report.text(),
            StatsFormat::Json => report.json(),
        });
    }
    Ok(())
}

/// The last stage: inserts in order and writes what was new.
struct Deduper {
    filter: BloomFilter,
    expected_keys: u64,
    output: Output,
    new: Vec<bool>,
    lines: u64,
    unique: u64,
    bytes: u64,
}

impl Deduper {
    fn take(&mut self, batch: &Batch) -> Result<(), Error> {
        self.new.resize(batch.hashes().len(), false);
        let unique = self.filter.insert_hashes(batch.hashes(), &mut self.new);
        self.count(batch, unique as u64);
        // Neighbours with the same fate are one piece.
        let (mut lines, mut start) = (0, 0);
        for run in self.new.chunk_by(|a, b| a == b) {
            lines += run.len();
            let end = batch.ends()[lines - 1];
            if run[0] {
                self.output.write(&batch.bytes()[start..end])?;
            }
            start = end;
        }
        Ok(())
    }

    fn count(&mut self, batch: &Batch, unique: u64) {
        let within = self.unique <= self.expected_keys;
        self.lines += batch.hashes().len() as u64;
        self.bytes += batch.bytes().len() as u64;
        self.unique += unique;
        if within && self.unique > self.expected_keys {
            say(&format!(
                "bloomline: warning: passed the {} distinct lines planned for: the false-positive rate is now {} and \
                 rises with every line; plan for more with -n",
                self.expected_keys,
                readable(self.filter.current_fpr()),
            ));
        }
    }
}

/// A message for the user; where standard error is closed, nobody wants it.
fn say(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}
