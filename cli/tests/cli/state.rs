//! `bloomline dedup --state`: runs that go on with the filter of the one before.

use crate::common::{Bench, clean, ended, fed, limited, numbers, refused, skipped, tells, text};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

#[test]
fn a_state_makes_two_runs_one() {
    let (first, second) = (numbers(0..3000), [numbers(2000..4000), numbers(2500..3500)].concat());
    for (options, again) in [
        ("-n 10000 ", "-n 10000 "),
        ("-n 10000 -p 1e-7 --when-full warn ", ""),
        ("-q --memory 1M ", "-q --memory 1M "),
        ("", ""),
        ("-p 1e-7 ", "-p 1e-7 --when-full grow "),
        ("-n 100 --when-full grow --seed 5 ", "--seed 5 "),
    ] {
        let bench = Bench::new(&[("a", &first), ("b", &second)]);
        assert!(clean(bench.run(&format!("dedup {options}--state s a"))) == first, "{options}");
        let both = clean(fed(bench.command(&format!("dedup {again}--state s --dupes d -")), &second));
        assert!(both == numbers(3000..4000), "{options}");
        assert!(bench.read("d") == [numbers(2000..3000), numbers(2500..3500)].concat(), "{options}");
        assert_eq!(bench.clean(&format!("dedup {again}--total --state s a b")), "0\n");
        assert_eq!(bench.clean("check --total -s s a b"), "a:3000\nb:3000\n");
    }
    // The filter of `build` is a state as well.
    let bench = Bench::new(&[("a", &first), ("b", &second)]);
    bench.clean("build -n 10000 -o s a");
    assert!(clean(bench.run("dedup --state s b")) == numbers(3000..4000));
}

#[test]
fn the_same_command_with_a_state_runs_every_day() {
    for options in
        ["-n 1000", "-n 1", "-n 1000 --when-full stop", "-n 1000 --when-full warn", "-q --memory 64K --when-full stop"]
    {
        let bench = Bench::new(&[("a", b"a\n"), ("b", b"a\nb\n")]);
        assert_eq!(bench.clean(&format!("dedup {options} --state s a")), "a\n");
        assert_eq!(bench.clean(&format!("dedup {options} --state s b")), "b\n", "{options}");
    }
}

#[test]
fn a_second_run_warns_of_a_full_filter_as_the_first_does() {
    let bench = Bench::new(&[("a", &numbers(0..10)), ("b", &numbers(10..3000))]);
    bench.clean("dedup -n 1000 --when-full warn --state s a");
    let warning = text(&bench.run("dedup -n 1000 --state s b").stderr);
    assert_eq!((warning.matches("warning").count(), warning.matches('\n').count()), (1, 1), "{warning}");
    tells(&warning, &[" 1000 ", "rate", "-n"]);
}

#[test]
fn a_state_of_another_filter_is_refused_before_any_output() {
    let bench = Bench::new(&[("a", b"a\n"), ("out", b"precious\n"), ("text", b"plain text\n")]);
    bench.clean("dedup -q -n 1000 --when-full warn -p 0.01 --seed 3 --state sized a");
    bench.clean("dedup -q -p 0.01 --seed 3 --state growing a");
    bench.write("short", &bench.read("sized")[..100]);
    let size = |options: &str| format!(" {} ", bench.json(&format!("plan --json {options}"))[0]["memory_bytes"]);
    let [sized, more_keys, lower_rate] = ["-n 1000 -p 0.01", "-n 5000 -p 0.01", "-n 1000 -p 1e-6"].map(size);
    for (state, options, parts) in [
        ("sized", "-n 1000 -p 0.01 --seed 0", &["seed is 3", " 0"][..]),
        ("sized", "-n 1000 -p 0.01 --seed 4", &["seed is 3", " 4"]),
        ("sized", "-n 5000 -p 0.01 --seed 3", &["-n", &more_keys, sized.trim_end()]),
        ("sized", "-n 1000 -p 0.0001 --seed 3", &["rate of 0.01", " 0.0001"]),
        ("sized", "-p 0.1", &["rate of 0.01", " 0.1"]),
        ("sized", "-n 1000", &["-n asks", &lower_rate, sized.trim_end()]),
        ("sized", "--memory 1M --seed 3", &[&sized, "bytes"]),
        ("sized", "--when-full grow --seed 3", &["fixed", "cannot grow"]),
        ("growing", "--seed 0", &["seed is 3", " 0"]),
        ("growing", "-n 1000 --when-full warn", &["grows", "never full"]),
        ("growing", "--when-full stop --seed 3", &["grows", "never full"]),
        ("growing", "--when-full warn --seed 3", &["grows", "never full"]),
        ("growing", "-p 0.001 --seed 3", &["rate of 0.01"]),
        ("growing", "--max-fpr 0.02 --seed 3", &["grows", "never full"]),
        ("text", "", &["not a bloomline file"]),
        ("short", "", &["truncated: 100 bytes"]),
    ] {
        let before = bench.read(state);
        let options = if options.is_empty() { String::new() } else { format!("{options} ") };
        for output in ["", "-o out "] {
            let message = bench.refused(&format!("dedup {options}{output}--state {state} a"));
            tells(&message, &[&format!("\"{state}\"")]);
            tells(&message, parts);
        }
        assert!(bench.read(state) == before && bench.read("out") == b"precious\n");
    }
}

#[test]
fn a_state_that_cannot_be_saved_is_refused_before_any_output() {
    let bench = Bench::new(&[("a", b"a\na\n"), ("out", b"precious\n")]);
    fs::create_dir(bench.path("folder")).unwrap();
    fs::hard_link(bench.path("a"), bench.path("link")).unwrap();
    fs::create_dir(bench.path("locked")).unwrap();
    fs::set_permissions(bench.path("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    let mut states = vec![
        ("nowhere/s", "No such file"),
        ("folder", "not a regular file"),
        ("a", "input"),
        ("link", "input"),
        ("/dev/null", "not a regular file"),
        ("out", "another output"),
    ];
    if tempfile::tempfile_in(bench.path("locked")).is_err() {
        states.push(("locked/s", "Permission denied"));
    } else {
        skipped("root writes to every folder");
    }
    for (state, why) in states {
        let message = bench.refused(&format!("dedup -o out --state {state} a"));
        tells(&message, &[&format!("\"{state}\""), why]);
    }
    assert_eq!(text(&bench.read("a")), "a\na\n");
    assert_eq!(text(&bench.read("out")), "precious\n");
    // A state that is there is no output.
    bench.clean("dedup -q --state s a");
    let before = bench.read("s");
    for option in ["-o", "--dupes"] {
        tells(&bench.refused(&format!("dedup {option} s --state s a")), &["write to \"s\"", "another output"]);
    }
    assert!(bench.read("s") == before);
}

#[test]
fn an_input_beside_the_state_outlives_the_run() {
    for line in ["dedup --state s -o o s.resume", "dedup --state s s.resume"] {
        let bench = Bench::new(&[("s.resume", b"precious\n")]);
        tells(&bench.refused(line), &["write to \"s.resume\"", "input"]);
        assert_eq!(bench.read("s.resume"), b"precious\n", "{line}");
    }
}

#[test]
fn lines_that_could_not_be_printed_are_not_remembered() {
    if !Path::new("/dev/full").exists() {
        skipped("no /dev/full here");
        return;
    }
    let bench = Bench::new(&[("a", &numbers(0..1000))]);
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let remembered = || text(&bench.run("check --total -s s a").stdout) != "0\n";
    let (to_standard, to_file) = ("write to standard output: No space left", "write to \"/dev/full\": No space left");
    tells(&refused(bench.command("dedup --state s a").stdout(full()).output().unwrap()), &[to_standard]);
    assert!(!remembered());
    tells(&bench.refused("dedup -o /dev/full --state s a"), &[to_file]);
    assert!(!remembered());
    tells(&bench.refused("dedup --dupes /dev/full --state s -o o a a"), &[to_file]);
    assert!(!remembered());
    for options in ["--total ", "--annotate ", "--exact ", "-j 1 --chunk-size 10 "] {
        tells(&refused(bench.command(&format!("dedup {options}a")).stdout(full()).output().unwrap()), &[to_standard]);
    }
}

#[test]
fn a_disk_that_fills_up_leaves_a_state_of_what_is_on_it() {
    let bench = Bench::new(&[("a", &numbers(0..5000))]);
    // Files of at most 64 KiB: half of the output, and more than the state.
    let mut command = limited("-f 128", &bench.command("dedup -n 10000 -p 0.001 --state s -o o a"));
    tells(&refused(command.output().unwrap()), &["write to \"o\"", "File too large"]);
    // No checkpoint was due but the first one.
    assert_eq!(ended(bench.run("check --total -s s a"), 1), "0\n");
    bench.clean("dedup -n 10000 -p 0.001 --state s -o o --resume a");
    assert!(bench.read("o") == numbers(0..5000));
}
