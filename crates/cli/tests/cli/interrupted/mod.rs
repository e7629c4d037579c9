//! Every mode, interrupted at every moment: killed during a read or a write, between passes and after a rename, ended by a
//! signal, and with a full disk. Then it is resumed or started again. No line is lost, each file has its old or its complete
//! new contents, and the exit code reports the interruption.

pub mod job;
pub mod rows;

use crate::common::random::Random;
use crate::common::{Bench, json_values, with_slashes};
use crate::corpus::decode;
use crate::live::RunningCommand;
use job::*;
use rows::*;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};

/// The moments that interrupt every run are first: file size limits are reached on every machine.
const MOMENTS: [Moment; 9] = [
    Moment::Write(0.2),
    Moment::Full(0.5),
    Moment::Kill(0.0),
    Moment::Signal("TERM", 15, 0.2),
    Moment::Rename,
    Moment::Signal("INT", 2, 0.5),
    Moment::Checkpoint(3),
    Moment::Write(0.8),
    Moment::Kill(0.5),
];

/// The number of runs that each moment interrupted, and the number of runs that ended before.
#[derive(Debug, Default)]
struct Tally(BTreeMap<&'static str, [u32; 2]>);

/// The state of a job that is interrupted repeatedly.
#[derive(Default)]
struct State {
    /// The outputs with their final names.
    named: BTreeMap<String, Vec<u8>>,
    /// The input offset of the state's checkpoint, and the number of bits set in the state.
    input_offset: (u64, u64),
    ones: u64,
}

/// Interrupts a job at each of the moments, and then runs it to its end.
fn check(job: &Job, moments: &[Moment], tally: &mut Tally) {
    let uninterrupted = job.uninterrupted();
    assert!(uninterrupted.files.values().any(|bytes| !bytes.is_empty()), "{}: too easy", job.name);
    job.clear();
    let mut before = State::default();
    for &moment in moments {
        let temporary_files = job.temporary_files();
        let interrupted = job.interrupt(moment, &uninterrupted);
        tally.0.entry(moment.name()).or_default()[usize::from(!interrupted)] += 1;
        if interrupted {
            // Temporary files of an earlier run are removed by the run that writes the file again.
            let has_none = job.temporary_files().is_subset(&temporary_files);
            assert!(
                has_none || !allows_cleanup(moment),
                "{}, {moment:?}: {:?} is left",
                job.name,
                job.temporary_files()
            );
            check_remaining_files(job, moment, &uninterrupted, &mut before);
        } else {
            check_whole(job, &uninterrupted);
            job.clear();
            before = State::default();
        }
    }
    job.check_end(&job.next().output().unwrap());
    check_whole(job, &uninterrupted);
    // Resuming a complete run changes nothing.
    if matches!(job.kind, Kind::Same | Kind::Spread) {
        let files = job.files();
        job.complete(true);
        assert!(
            job.failure.is_some() || job.files() == files,
            "{}: resumed after the end, it changed a file",
            job.name
        );
        check_whole(job, &uninterrupted);
    }
}

/// True if a run can remove its temporary files before it ends.
fn allows_cleanup(moment: Moment) -> bool {
    matches!(moment, Moment::Signal(..) | Moment::Full(_))
}

/// Checks the files of an interrupted run.
#[track_caller]
fn check_remaining_files(job: &Job, moment: Moment, uninterrupted: &Uninterrupted, before: &mut State) {
    let name = &job.name;
    let left = job.remaining_files();
    for (file, bytes) in left.iter().filter(|(file, _)| *file != CHECKPOINTS && *file != "manifest") {
        let ((found, is_whole), (new, _)) = (job.units(file, bytes), job.units(file, &uninterrupted.files[file]));
        let old = match job.kind {
            Kind::InPlace => job.inputs.iter().find(|(input, _)| input == file).map(|(_, bytes)| bytes),
            _ => job.before.as_ref().filter(|_| file == STATE),
        };
        if job.kind == Kind::InPlace || file == STATE && job.kind == Kind::Anew {
            assert!(old == Some(bytes) || found == new, "{name}, {moment:?}: {file} is neither old nor new");
        } else if file.contains('/') {
            // An output with its final name is complete, and no later run changes it.
            assert!(is_whole, "{name}, {moment:?}: {file} is not whole");
            let earlier = before.named.insert(file.clone(), bytes.clone());
            assert!(earlier.is_none_or(|earlier| earlier == *bytes), "{name}, {moment:?}: {file} changed");
        } else if allows_cleanup(moment) && file != STATE {
            // The file may end within a line.
            let begins = new.join(&b'\n').starts_with(&found.join(&b'\n'));
            assert!(begins, "{name}, {moment:?}: {file} has other lines");
        }
    }
    if job.kind == Kind::InPlace {
        let units = |files: Vec<(&String, &Vec<u8>)>| -> HashSet<Vec<u8>> {
            files.into_iter().flat_map(|(file, bytes)| job.units(file, bytes).0).map(|unit| (job.key)(&unit)).collect()
        };
        let all = units(job.inputs.iter().map(|(file, bytes)| (file, bytes)).collect());
        assert_eq!(all.difference(&units(left.iter().collect())).count(), 0, "{name}, {moment:?}: lines are lost");
    }
    if left.contains_key(STATE) {
        let ones = count_state_bits(&job.path(STATE));
        assert!(ones >= before.ones, "{name}, {moment:?}: the state went back");
        before.ones = ones;
    }
    // A state without checkpoints precedes the run.
    if left.contains_key(STATE) && !job.checkpoints().is_empty() {
        let checkpoint = job.checkpoint();
        let input_offset = ["input", "offset"].map(|name| checkpoint[name].as_u64().unwrap()).into();
        assert!(
            input_offset >= before.input_offset,
            "{name}, {moment:?}: from {:?} back to {input_offset:?}",
            before.input_offset
        );
        before.input_offset = input_offset;
    }
}

/// Asserts that the files are those of an uninterrupted run.
#[track_caller]
pub fn check_whole(job: &Job, uninterrupted: &Uninterrupted) {
    let (name, left) = (&job.name, job.remaining_files());
    assert_eq!(job.temporary_files().len(), 0, "{name}: {:?}", job.temporary_files());
    assert!(left.keys().eq(uninterrupted.files.keys()), "{name}: {:?}", left.keys());
    let mut all = [Vec::new(), Vec::new()];
    for (file, bytes) in left.iter().filter(|(file, _)| *file != CHECKPOINTS) {
        let ([found, expected], is_spread) =
            ([bytes, &uninterrupted.files[file]].map(|bytes| job.units(file, bytes)), job.kind == Kind::Spread);
        assert!(found.1, "{name}: {file} is not whole");
        if is_spread && file.contains('/') {
            let name = job.input_of(file);
            let (_, bytes) = job.inputs.iter().find(|(input, _)| input == name).unwrap();
            let own = job.units(name, bytes).0;
            let mut own = own.iter();
            assert!(found.0.iter().all(|unit| own.any(|other| other == unit)), "{name}: {file} has other lines");
            for (all, units) in all.iter_mut().zip([found.0, expected.0]) {
                all.extend(units.iter().map(|unit| (job.key)(unit)));
            }
        } else if !is_spread || file != STATE {
            let same = found.0.iter().zip(&expected.0).take_while(|(a, b)| a == b).count();
            let counts = (found.0.len(), expected.0.len());
            assert!(found == expected, "{name}: {file} differs at {same} of {counts:?}");
        }
    }
    for line in left.get("manifest").map_or(Vec::new(), |lines| json_values(lines)) {
        let output = line["output"].as_str().unwrap();
        assert_eq!(line["output_bytes"], left[&with_slashes(output)].len(), "{name}: {output}");
    }
    all.iter_mut().for_each(|units| units.sort_unstable());
    assert!(all[0] == all[1], "{name}: {} lines, and not {}", all[0].len(), all[1].len());
    assert!(all[0].windows(2).all(|two| two[0] != two[1]), "{name}: a line comes twice");
}

/// Interrupts each job of the table, and asserts that each moment was reached in at least one job.
fn check_all(rows: Vec<Job>, moments: &[Moment]) {
    let moments: Vec<Moment> = moments.iter().copied().filter(Moment::is_possible).collect();
    let mut tally = Tally::default();
    for job in &rows {
        let mut of_job = Tally::default();
        check(job, &moments, &mut of_job);
        eprintln!("{}: {of_job:?}", job.name);
        for name in [Moment::Write(0.0), Moment::Full(0.0)].map(Moment::name) {
            assert!(of_job.0.get(name).is_none_or(|counts| counts[0] > 0), "{}: never {name}", job.name);
        }
        for (name, counts) in of_job.0 {
            tally.0.entry(name).or_default().iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    }
    // This process polls for the other moments and may miss them on a busy machine, so the jobs are run again. Some modes save
    // no checkpoint before their end.
    let missed = |tally: &Tally, moment: &Moment| {
        moment.name() != Moment::Checkpoint(0).name() && tally.0[moment.name()][0] == 0
    };
    let mut again = rows.iter().cycle().take(20 * rows.len());
    while let Some(&moment) = moments.iter().find(|moment| missed(&tally, moment)) {
        let Some(job) = again.next() else { panic!("{tally:?}") };
        check(job, &[moment], &mut tally);
    }
}

/// Defines a test for each part of the table, so that the parts run in parallel.
macro_rules! tests {
    ($($name:ident $rows:ident $(#[$feature:meta])?),* $(,)?) => {
        $(
            $(#[$feature])?
            mod $name {
                use super::*;

                #[test]
                fn each_interruption() {
                    check_all($rows(), &MOMENTS);
                }

                #[test]
                #[ignore = "takes long"]
                fn random_interruptions() {
                    let mut random = Random(0x000B_1004);
                    for _ in 0..4 {
                        check_all($rows(), &moments(&mut random, 16));
                    }
                }
            }
        )*
    };
}

tests! {
    lines lines_with_a_state,
    compressed compressed_lines,
    records records_and_faults,
    folders folders,
    documents documents,
    groups groups,
    in_place in_place,
    stateless without_a_state,
    tables tables #[cfg(feature = "parquet")],
}

/// Checks that runs with separate outputs lose no line if they are killed and not resumed.
fn check_again(tries: u32) {
    let input = join_lines(&lines(20, 20_000), b'\n');
    let distinct: HashSet<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    let mut random = Random(0x000B_1006);
    for try_ in 0..tries {
        for output in ["out", "out.gz", "|"] {
            let bench = Bench::new(&[("in", &input)]);
            let mut all = Vec::new();
            let mut before = 0;
            for part in 0..4 {
                let end = if output == "out.gz" { ".gz" } else { "" };
                let file = format!("{part}{end}");
                let name = if output == "|" { "-" } else { &file };
                let line = format!("dedup -q -p 1e-9 -s state --checkpoint 0.001ms --chunk-size 20000 -o {name}");
                // The input is a file or standard input.
                let mut command = bench.command(&line);
                match part % 2 {
                    0 => command.arg("in"),
                    _ => command.stdin(File::open(bench.path("in")).unwrap()),
                };
                let bytes = || fs::metadata(bench.path(&file)).map_or(0, |file| file.len());
                let limit = random.below(60_000);
                if part == 3 {
                    let output = command.output().unwrap();
                    assert!(output.status.success());
                    all.extend(output.stdout);
                } else if output == "|" {
                    all.extend(RunningCommand::read_and_kill(command, limit as usize));
                } else {
                    signal_when(command.spawn().unwrap(), "KILL", || bytes() > limit);
                }
                if let Ok(bytes) = fs::read(bench.path(&file)) {
                    all.extend(decode(&file, &bytes).0);
                }
                let after = if bench.path(STATE).exists() { count_state_bits(&bench.path(STATE)) } else { 0 };
                assert!(after >= before, "the state went back from {before} to {after}");
                before = after;
            }
            let put_out: HashSet<&[u8]> = all.split_inclusive(|&byte| byte == b'\n').collect();
            let lost = distinct.difference(&put_out).count();
            assert_eq!(lost, 0, "{output}, try {try_}, of {} lines", distinct.len());
        }
    }
}

#[test]
fn a_run_after_a_killed_one_loses_no_line() {
    check_again(2);
}

#[test]
#[ignore = "takes long"]
fn a_run_after_a_killed_one_loses_no_line_12_times() {
    check_again(12);
}
