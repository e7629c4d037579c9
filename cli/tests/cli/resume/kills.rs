//! Kills and signals at random moments.

use super::job::*;
use crate::common::{Bench, signal, text};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;

/// How kills went.
#[derive(Debug, Default)]
struct Kills {
    tries: u32,
    all: u32,
    /// In a run that had made a checkpoint after its first line and was not yet at its end.
    after_checkpoint: u32,
    /// Between the saving of a checkpoint and that of its state.
    torn: u32,
}

impl Kills {
    /// Else the kills missed what they are to hit, and show nothing.
    fn check(&self, name: &str) {
        eprintln!("{name}: {self:?}");
        assert!(2 * self.all >= self.tries, "{self:?}");
        assert!(5 * self.after_checkpoint >= self.all, "{self:?}");
    }
}

const JOBS: [fn() -> Job; 12] = [
    plain,
    several,
    gzipped,
    zstandards,
    xz_and_bzip2,
    json,
    tables,
    lossy_growing,
    lossy_sized,
    faulty,
    repeats,
    fails,
];

/// Kills and resumes each job again and again.
fn resume_after_kills(tries: u32) {
    let mut random = Random(0x000B_1004);
    let mut kills = Kills { tries, ..Kills::default() };
    for job in JOBS {
        let job = job();
        let (expected, duration) = (job.expected(), job.duration());
        for this in 0..tries / JOBS.len() as u32 {
            job.clear();
            // Where nothing is there, it makes no difference.
            let mut resume = this % 2 == 1 && job.before.is_none();
            let mut place = None;
            for part in 0..6 {
                let child = job.busy(&mut random, resume).spawn().unwrap();
                let output = match part {
                    1 | 4 => kill_at_checkpoint(&job, child, 2 + random.below(3)),
                    _ => kill(child, random.moment(duration)),
                };
                if output.status.signal() != Some(SIGKILL) {
                    job.check_end(&output);
                    // Without, another run would begin.
                    resume = true;
                    break;
                }
                if job.is_whole() {
                    resume = true;
                    break;
                }
                kills.all += 1;
                let left = job.check_state();
                assert!(left.place >= place, "{}: from {place:?} back to {:?}", job.name, left.place);
                kills.after_checkpoint += u32::from(left.place > place.max(Some((0, 0))));
                kills.torn += u32::from(left.torn);
                place = left.place;
                // One that was killed before its first checkpoint left the older state and nothing of its own.
                resume = left.place.is_some() || job.before.is_none();
            }
            job.complete(resume);
            job.check_results(&expected);
            let files = job.files();
            job.complete(true);
            for (path, bytes) in files {
                let same = path.ends_with(CHECKPOINTS) || fs::read(&path).unwrap() == bytes;
                assert!(same, "{}: resumed after the end, it changed {path:?}", job.name);
            }
        }
    }
    kills.check("resumed after kills");
    assert!(kills.torn >= tries / 10, "{kills:?}");
}

/// Sends a signal at any moment, lets the command end, and resumes.
fn resume_after_signals(tries: u32) {
    let mut random = Random(0x000B_1005);
    let (mut ended_by_signal, mut early) = (0, 0);
    let jobs = [plain as fn() -> Job, several, zstandards, repeats];
    for job in jobs {
        let job = job();
        let (expected, duration) = (job.expected(), job.duration());
        for this in 0..tries / jobs.len() as u32 {
            let (name, number) = if this % 2 == 0 { ("TERM", 15) } else { ("INT", 2) };
            job.clear();
            let mut resume = false;
            for _ in 0..3 {
                let child = job.busy(&mut random, resume).spawn().unwrap();
                thread::sleep(random.moment(duration));
                signal(&child, name);
                let output = child.wait_with_output().unwrap();
                if output.status.success() || job.is_whole() {
                    resume = true;
                    break;
                }
                let listened = output.status.signal() != Some(number);
                if listened {
                    assert_eq!(output.status.code(), Some(128 + number), "{}: {}", job.name, text(&output.stderr));
                }
                if !listened || !job.path(CHECKPOINTS).exists() {
                    // Before its work began, and so before it wrote.
                    early += 1;
                    resume &= job.path(CHECKPOINTS).exists();
                    continue;
                }
                ended_by_signal += 1;
                resume = true;
                assert!(!job.check_state().torn, "{}: the state is not that of the last checkpoint", job.name);
                for (so_far, whole) in job.outputs.iter().map(|name| contents(&job.path(name))).zip(&expected) {
                    assert!(whole.starts_with(&so_far), "{}: {} bytes", job.name, so_far.len());
                }
            }
            job.complete(resume);
            job.check_results(&expected);
        }
    }
    eprintln!("resumed after signals: {tries} tries, {ended_by_signal} ended by a signal, {early} before they began");
    assert!(2 * ended_by_signal >= tries, "{ended_by_signal}");
}

/// Where the lines go that must not be lost.
#[derive(Clone, Copy, Debug)]
enum To {
    Pipe,
    /// A new file for each run.
    File,
    /// The same, compressed.
    Gzip,
}

/// Kills a command and runs it again, without `--resume`, and puts together what comes out.
fn run_again_after_kills(tries: u32) {
    let mut random = Random(0x000B_1006);
    let mut kills = Kills { tries, ..Kills::default() };
    let input = ended(&lines(20, 100_000), b'\n');
    let distinct: HashSet<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    let bench = Bench::new(&[("in.txt", &input)]);
    let path = |name: &str| bench.path(name);

    // All that a run puts out, and whether it was killed.
    let run = |to: To, from_stdin: bool, file: &str, more: &[&str], after: Option<Duration>| {
        let mut command = bench.command("dedup -q -p 1e-9 --state");
        command.arg(STATE).args(more);
        if from_stdin {
            command.stdin(File::open(path("in.txt")).unwrap());
        } else {
            command.arg("in.txt");
        }
        if !matches!(to, To::Pipe) {
            command.args(["-o", file]);
        }
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let mut put_out = Vec::new();
        let output = thread::scope(|scope| {
            scope.spawn(|| pipe.read_to_end(&mut put_out).unwrap());
            match after {
                Some(after) => kill(child, after),
                None => child.wait_with_output().unwrap(),
            }
        });
        let killed = output.status.signal() == Some(SIGKILL);
        assert!(killed || output.status.success(), "{}", text(&output.stderr));
        if !matches!(to, To::Pipe) && path(file).exists() {
            put_out = contents(&path(file));
        }
        (put_out, killed)
    };

    for to in [To::Pipe, To::File, To::Gzip] {
        let duration = time_of(|| {
            [STATE, "timed.gz"].iter().for_each(|name| drop(fs::remove_file(path(name))));
            run(to, false, "timed.gz", &["--chunk-size", "700"], None);
        });
        for this in 0..tries / 3 {
            let _ = fs::remove_file(path(STATE));
            let from_stdin = this % 2 == 1;
            let mut all = Vec::new();
            for part in 0..3 {
                let file = format!("part{part}{}", if matches!(to, To::Gzip) { ".gz" } else { "" });
                let _ = fs::remove_file(path(&file));
                let before = path(STATE).exists().then(|| ones(&path(STATE)));
                let checkpoint = random.one_of(&["5ms", "8ms", "12ms", "20ms"]);
                let more = ["--chunk-size", "700", "-j", random.one_of(&["1", "2"]), "--checkpoint", checkpoint];
                let (put_out, killed) = run(to, from_stdin, &file, &more, Some(random.moment(duration)));
                all.extend(put_out);
                if !killed {
                    break;
                }
                kills.all += 1;
                let after = path(STATE).exists().then(|| ones(&path(STATE)));
                assert!(after >= before, "the state went back from {before:?} to {after:?}");
                kills.after_checkpoint += u32::from(after.unwrap_or(0) > before.unwrap_or(0));
            }
            let last = if matches!(to, To::Gzip) { "last.gz" } else { "last" };
            let _ = fs::remove_file(path(last));
            all.extend(run(to, from_stdin, last, &[], None).0);
            let put_out: HashSet<&[u8]> = all.split_inclusive(|&byte| byte == b'\n').collect();
            let lost = distinct.difference(&put_out).count();
            assert_eq!(lost, 0, "{to:?}, try {this}, of {} lines", distinct.len());
        }
    }
    kills.check("run again after kills");
}

#[test]
fn a_resumed_run_ends_as_if_it_had_not_been_killed() {
    resume_after_kills(JOBS.len() as u32);
}

#[test]
#[ignore = "takes long"]
fn a_resumed_run_ends_as_if_it_had_not_been_killed_36_times() {
    resume_after_kills(36);
}

#[test]
fn a_resumed_run_ends_as_if_no_signal_had_come() {
    resume_after_signals(8);
}

#[test]
#[ignore = "takes long"]
fn a_resumed_run_ends_as_if_no_signal_had_come_24_times() {
    resume_after_signals(24);
}

#[test]
fn a_run_after_a_killed_one_loses_no_line() {
    run_again_after_kills(9);
}

#[test]
#[ignore = "takes long"]
fn a_run_after_a_killed_one_loses_no_line_24_times() {
    run_again_after_kills(24);
}
