//! `bloomline dedup --state`: runs that continue with the filter of the previous run.

use crate::common::{
    Bench, assert_contains_all, expect_exit_code, expect_refusal, expect_success, report_skipped, run_with_stdin, text,
    url_lines, with_ulimit,
};
use std::fs::{self, File};
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[test]
fn two_runs_with_a_state_equal_one() {
    let (first, second) = (url_lines(0..3000), [url_lines(2000..4000), url_lines(2500..3500)].concat());
    for (options, again) in [
        ("-n 10000 ", "-n 10000 "),
        ("-n 10000 -p 1e-7 --when-full warn ", ""),
        ("-q --memory 1M ", "-q --memory 1M "),
        ("", ""),
        ("-p 1e-7 ", "-p 1e-7 --when-full grow "),
        ("-n 100 --when-full grow --seed 5 ", "--seed 5 "),
    ] {
        let bench = Bench::new(&[("a", &first), ("b", &second)]);
        assert!(expect_success(bench.run(&format!("dedup {options}--state s a"))) == first, "{options}");
        let both =
            expect_success(run_with_stdin(bench.command(&format!("dedup {again}--state s --dupes d -")), &second));
        assert!(both == url_lines(3000..4000), "{options}");
        assert!(bench.read("d") == [url_lines(2000..3000), url_lines(2500..3500)].concat(), "{options}");
        assert_eq!(bench.run_ok(&format!("dedup {again}--total --state s a b")), "0\n");
        assert_eq!(bench.run_ok("check --total -s s a b"), "a:3000\nb:3000\n");
    }
    // A filter of `build` is a state too.
    let bench = Bench::new(&[("a", &first), ("b", &second)]);
    bench.run_ok("build -n 10000 -o s a");
    assert!(expect_success(bench.run("dedup --state s b")) == url_lines(3000..4000));
}

#[test]
fn the_same_command_with_a_state_can_run_every_day() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"a\nb\n")]);
    assert_eq!(bench.run_ok("dedup -n 1 --state s a"), "a\n");
    assert_eq!(bench.run_ok("dedup -n 1 --state s b"), "b\n");
    // The lines are far fewer than planned, so that `--shrink` has an effect.
    let days = [(0..300, 0..300), (200..301, 300..301), (300..302, 301..302)];
    let mut runs = 0;
    let fixed = ["--when-full warn ", "--when-full stop "];
    for size in ["", "-n 20000 ", "-m 64K "] {
        for rate in ["", "-p 0.001 "] {
            for end in ["", "--shrink "] {
                // A fixed size is tested only if it is given, because without -n or -m it would be that of the first day.
                for full in ["", "--when-full grow "].iter().chain(fixed.iter().filter(|_| !size.is_empty())) {
                    let bench = Bench::new(&[]);
                    let line = format!("dedup -q {size}{rate}{end}{full}--state s a");
                    for (lines, new) in &days {
                        bench.write("a", &url_lines(lines.clone()));
                        assert!(expect_success(bench.run(&line)) == url_lines(new.clone()), "{line}");
                    }
                    runs += 1;
                }
            }
        }
    }
    assert_eq!(runs, 40);
}

/// A growing state that is shrunk repeatedly keeps its rate.
#[test]
fn a_state_that_is_shrunk_daily_keeps_its_rate() {
    let bench = Bench::new(&[]);
    for day in 0..30 {
        bench.write("a", &url_lines(2000 * day..2000 * (day + 1)));
        assert!(expect_success(bench.run("dedup -n 100000 -p 0.001 --shrink --state s a")).len() > 1990 * 20);
    }
    let info = bench.json("info --json s");
    assert!((info["max_fpr"].as_f64().unwrap() / 0.001 - 1.0).abs() < 1e-9, "{info}");
}

#[test]
fn every_run_warns_of_a_full_filter() {
    let bench = Bench::new(&[("a", &url_lines(0..10)), ("b", &url_lines(10..3000))]);
    bench.run_ok("dedup -n 1000 --when-full warn --state s a");
    let warning = text(&bench.run("dedup -n 1000 --state s b").stderr);
    assert_eq!((warning.matches("warning").count(), warning.matches('\n').count()), (1, 1), "{warning}");
    assert_contains_all(&warning, &[" 1000 ", "rate", "another state"]);
}

#[test]
fn a_state_of_another_filter_is_refused_before_any_output() {
    let bench = Bench::new(&[("a", b"a\n"), ("out", b"precious\n"), ("text", b"plain text\n")]);
    bench.run_ok("dedup -q -n 1000 --when-full warn -p 0.01 --seed 3 --state sized a");
    bench.run_ok("dedup -q -p 0.01 --seed 3 --state growing a");
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
        ("growing", "-n 1000", &["it has its size", "-n asks for another", "leave out the option that differs"]),
        ("growing", "--memory 1M", &["it has its size", "--memory asks for another"]),
        ("growing", "-n 1000 --seed 3 --when-full grow", &["it has its size", "-n asks for another"]),
        ("text", "", &["not a bloomline file"]),
        ("short", "", &["truncated: 100 bytes"]),
    ] {
        let before = bench.read(state);
        let options = if options.is_empty() { String::new() } else { format!("{options} ") };
        for output in ["", "-o out "] {
            let message = bench.run_err(&format!("dedup {options}{output}--state {state} a"));
            assert_contains_all(&message, &[&format!("\"{state}\"")]);
            assert_contains_all(&message, parts);
        }
        assert!(bench.read(state) == before && bench.read("out") == b"precious\n");
    }
}

#[cfg(unix)]
#[test]
fn a_state_that_cannot_be_saved_is_refused_before_any_output() {
    let bench = Bench::new(&[("a", b"a\na\n"), ("out", b"precious\n")]);
    fs::create_dir(bench.path("folder")).unwrap();
    fs::hard_link(bench.path("a"), bench.path("link")).unwrap();
    fs::create_dir(bench.path("locked")).unwrap();
    fs::set_permissions(bench.path("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    let mut states = vec![
        ("nowhere/s", "the folder \"nowhere\": No such file"),
        ("a/s", "the folder \"a\": Not a directory"),
        ("folder", "not a regular file"),
        ("a", "input"),
        ("link", "input"),
        ("/dev/null", "not a regular file"),
        ("out", "another output"),
    ];
    if tempfile::tempfile_in(bench.path("locked")).is_err() {
        states.push(("locked/s", "the folder \"locked\": Permission denied"));
    } else {
        report_skipped("root writes to every folder");
    }
    for (state, why) in states {
        let message = bench.run_err(&format!("dedup -o out --state {state} a"));
        assert_contains_all(&message, &[&format!("\"{state}\""), why]);
    }
    assert_eq!(text(&bench.read("a")), "a\na\n");
    assert_eq!(text(&bench.read("out")), "precious\n");
    // An existing state cannot be an output.
    bench.run_ok("dedup -q --state s a");
    let before = bench.read("s");
    for option in ["-o", "--dupes"] {
        assert_contains_all(
            &bench.run_err(&format!("dedup {option} s --state s a")),
            &["write to \"s\"", "another output"],
        );
    }
    assert!(bench.read("s") == before);
}

/// A save replaces the file, so the other hard link would keep the old state.
#[cfg(unix)]
#[test]
fn a_state_with_several_hard_links_is_refused() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\n")]);
    bench.run_ok("build -n 1000 --no-shrink -o s a");
    bench.run_ok("build -n 1000 --no-shrink -o other b");
    fs::hard_link(bench.path("s"), bench.path("t")).unwrap();
    let before = bench.read("s");
    for line in [
        "dedup --state s -o new b",
        "dedup --state t -o new b",
        "dedup --state t --resume -o new b",
        "corpus --state s -o new b",
        "build --append -o s b",
        "build -o t b",
        "merge other -o s",
    ] {
        assert_contains_all(&bench.run_err(line), &["the file has 2 names (hard links)", "symbolic links or copies"]);
        assert!(!bench.path("new").exists() && !bench.path("s.lock").exists(), "{line}");
    }
    assert!(bench.read("s") == before && bench.read("t") == before);
    assert_eq!(bench.run_ok("check -s t a"), "a\n");
    // The advice works.
    fs::remove_file(bench.path("t")).unwrap();
    symlink("s", bench.path("t")).unwrap();
    assert_eq!(bench.run_ok("dedup --state t b"), "b\n");
    assert_eq!(bench.run_ok("dedup --state s a b"), "");
}

/// Symbolic links and other paths denote the same state, with the same checkpoints.
#[cfg(unix)]
#[test]
fn every_path_of_a_state_resumes_its_run() {
    for (first, second) in [("link", "s"), ("s", "link"), ("link", "./folder/../s"), ("folder/up/s", "link")] {
        let bench = Bench::new(&[("a", b"1\tx\nbad\n2\ty\n")]);
        fs::create_dir(bench.path("folder")).unwrap();
        symlink("..", bench.path("folder/up")).unwrap();
        bench.write("empty", b"");
        bench.run_ok("dedup -f 2 --state s empty");
        symlink("s", bench.path("link")).unwrap();
        bench.run_err(&format!("dedup -f 2 --state {first} -o o a"));
        bench.rewrite("a", b"1\tx\n3\tz\n2\ty\n");
        bench.run_ok(&format!("dedup -f 2 --state {second} --resume -o o a"));
        assert_eq!(text(&bench.read("o")), "1\tx\n3\tz\n2\ty\n");
        assert!(bench.path("link").is_symlink() && !bench.path("link.resume").exists(), "{first} {second}");
    }
}

#[test]
fn inputs_beside_the_state_are_not_removed() {
    for line in ["dedup --state s -o o s.resume", "dedup --state s s.resume"] {
        let bench = Bench::new(&[("s.resume", b"precious\n")]);
        assert_contains_all(&bench.run_err(line), &["write to \"s.resume\"", "input"]);
        assert_eq!(bench.read("s.resume"), b"precious\n", "{line}");
    }
}

#[cfg(unix)]
#[test]
fn unprinted_lines_are_not_saved() {
    if !Path::new("/dev/full").exists() {
        report_skipped("no /dev/full here");
        return;
    }
    let bench = Bench::new(&[("a", &url_lines(0..1000))]);
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let remembered = || text(&bench.run("check --total -s s a").stdout) != "0\n";
    let (to_standard, to_file) = ("write to standard output: No space left", "write to \"/dev/full\": No space left");
    assert_contains_all(
        &expect_refusal(bench.command("dedup --state s a").stdout(full()).output().unwrap()),
        &[to_standard],
    );
    assert!(!remembered());
    assert_contains_all(&bench.run_err("dedup -o /dev/full --state s a"), &[to_file]);
    assert!(!remembered());
    assert_contains_all(&bench.run_err("dedup --dupes /dev/full --state s -o o a a"), &[to_file]);
    assert!(!remembered());
    for options in ["--total ", "--annotate ", "--exact ", "-j 1 --chunk-size 10 "] {
        assert_contains_all(
            &expect_refusal(bench.command(&format!("dedup {options}a")).stdout(full()).output().unwrap()),
            &[to_standard],
        );
    }
}

#[cfg(unix)]
#[test]
fn full_disks_leave_a_state_of_the_written_lines() {
    let bench = Bench::new(&[("a", &url_lines(0..5000))]);
    // The limit of 64 KiB is half of the output, and exceeds the size of the state.
    let mut command = with_ulimit("-f 128", &bench.command("dedup -n 10000 -p 0.001 --state s -o o a"));
    assert_contains_all(&expect_refusal(command.output().unwrap()), &["write to \"o\"", "File too large"]);
    // Only the first checkpoint was saved.
    assert_eq!(expect_exit_code(bench.run("check --total -s s a"), 1), "0\n");
    bench.run_ok("dedup -n 10000 -p 0.001 --state s -o o --resume a");
    assert!(bench.read("o") == url_lines(0..5000));
}
