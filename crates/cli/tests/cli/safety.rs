//! Existing files are kept: outputs with the same path, outputs of earlier runs, and simultaneous runs with one file.

use crate::common::{
    Bench, TEMP_VARIABLE, assert_contains_all, expect_refusal, expect_success, run_with_stdin, text, url_lines,
};
use crate::corpus::gunzip;
use crate::live::RunningCommand;
use std::fs::{self, File};
#[cfg(unix)]
use std::os::unix::fs::symlink;
use std::process::{Output, Stdio};

/// Returns the files of a folder with their contents.
fn files(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(bench.0.path()).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort_unstable();
    files
}

/// Runs with a file as standard output, opened without truncating it.
fn run_into(bench: &Bench, line: &str, output: &str) -> Output {
    let file = File::options().append(true).create(true).open(bench.path(output)).unwrap();
    bench.command(line).stdout(Stdio::from(file)).output().unwrap()
}

#[cfg(unix)]
#[test]
fn refused_runs_change_no_file() {
    let bench = Bench::new(&[("a", b"a\na\n"), ("out", b"precious\n"), ("d", b"dear\n")]);
    symlink("nowhere", bench.path("link")).unwrap();
    symlink("out", bench.path("alias")).unwrap();
    let before = files(&bench);
    for (line, parts) in [
        ("-o out --dupes missing/d a", &["\"missing/d\"", "No such file"][..]),
        ("-o out --dupes a a", &["\"a\"", "input"]),
        ("-o out --dupes out a", &["\"out\"", "another output"]),
        ("-o out --dupes alias a", &["\"alias\"", "another output"]),
        ("-o d --dupes . a", &["\".\"", "directory"]),
        ("-o . a", &["\".\"", "directory"]),
        ("--dupes a a", &["\"a\"", "input"]),
        ("-o new --dupes new a", &["\"new\"", "another output"]),
        ("-o new --dupes missing/d a", &["\"missing/d\""]),
        ("-o link --dupes nowhere a", &["\"nowhere\"", "another output"]),
        ("-o new --state new a", &["\"new\"", "another output"]),
        ("--dupes new --state new a", &["\"new\"", "another output"]),
        ("-o s.resume --state s a", &["\"s.resume\"", "another output"]),
        ("-o new --dupes s.resume --state s a", &["\"s.resume\"", "another output"]),
        ("-o s.lock --state s a", &["\"s.lock\"", "another output"]),
        ("-o d --dupes s.lock --state s a", &["\"s.lock\"", "another output"]),
        ("-o out --state missing/s a", &["\"missing/s\""]),
        ("-o out --state d a", &["\"d\"", "not a bloomline file"]),
        ("-o out -n 1 -p 1e-30 a", &["1e-30"]),
        ("-o out --dupes d -n 1 -m 1M a", &["--memory"]),
        ("-o out -m 1000T a", &["memory"]),
    ] {
        assert_contains_all(&bench.run_err(&format!("dedup {line}")), parts);
        // The check of a dangling link must not leave its target.
        assert!(files(&bench) == before, "{line}");
    }
}

/// A path through a folder that the run would create can denote an existing file.
#[cfg(unix)]
#[test]
fn paths_are_resolved_before_they_are_compared() {
    let bench = Bench::new(&[("f", b"{\"text\":\"a b c\"}\n"), ("url", b"redis://127.0.0.1:1\n")]);
    for folder in ["in", "deep"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    bench.write("in/f", b"{\"text\":\"a b c\"}\n");
    bench.write("list", b"in/list\n");
    bench.write("in/list", b"{\"text\":\"g h i\"}\n");
    bench.write("in/g", b"{\"text\":\"d e f\"}\n");
    bench.run_ok("build -o filter f");
    symlink("../in", bench.path("deep/link")).unwrap();
    symlink("nowhere", bench.path("dangling")).unwrap();
    symlink("loop", bench.path("loop")).unwrap();
    let contents =
        || [files(&bench), ["in/f", "in/g", "in/list"].map(|name| (name.to_owned(), bench.read(name))).to_vec()];
    let before = contents();
    let redis = "redis download --redis @url --name x";
    for line in [
        "dedup --output-dir new/.. --force f",
        "dedup --output-dir new/.. f",
        "dedup --output-dir new/../new/.. --force --state s f",
        "dedup --output-dir ./new/.././ --force in/../f",
        "dedup --output-dir deep/link/.. --force f",
        "dedup --output-dir new/.. --force --files-from list",
        "dedup --output-dir new/../in --force --in-order --pairs new/../in/f f",
        "dedup --output-dir new/../in --manifest new/../f f",
        "dedup --output-dir new/../in --manifest in/../in/f --force f",
        "dedup --output-dir new --manifest new/../f f",
        "dedup --output-dir new --state new/../f f",
        "dedup --output-dir new/.. --state g in/g",
        "dedup --output-dir new/.. --state new/../g.part in/g",
        "dedup -o new/../f f",
        "dedup -o o --dupes new/../f f",
        "dedup -o dangling --state nowhere f",
        "dedup -o nowhere --state dangling f",
        "dedup -o loop --state s f",
        "dedup --output-dir loop/x f",
        "corpus --ngram 2 --against f --output-dir new/.. --force in/f",
        "corpus --ngram 2 --against in/f --report new/../in/f -o o f",
        "build -o new/../f f",
        "merge -o new/../filter filter filter",
        "not-in -o new/../f f -- in/f",
        "in -o new/../in/f f -- in/f",
        &format!("{redis} -o new/../url"),
    ] {
        bench.run_err(line);
        assert!(contents() == before && !bench.path("new").exists(), "{line}");
    }
    // The message names both files and does not recommend --force, which would not help.
    for (line, other) in [
        ("dedup --output-dir new/.. f", "\"f\""),
        ("dedup --output-dir deep/link/.. f", "\"f\""),
        ("build -o new/../f f", "\"f\""),
        ("corpus --ngram 2 --against f --output-dir new/.. in/f", "\"f\""),
    ] {
        let message = bench.run_err(line);
        assert_contains_all(&message, &["cannot write to ", "it is also an input, a test", other]);
        assert!(!message.contains("--force"), "{message}");
    }
    // Other files are written, and links are followed as by the system.
    bench.run_ok("dedup --output-dir new/../out f");
    bench.run_ok("dedup --output-dir deep/link/../out2 f");
    assert!(["out/f", "out2/f"].iter().all(|name| bench.read(name) == bench.read("f")));
}

#[cfg(unix)]
#[test]
fn standard_output_is_checked_as_other_outputs() {
    let bench = Bench::new(&[("a", b"a\na\n"), ("o", b"precious\n")]);
    for line in ["dedup --dupes o a", "dedup --dupes /dev/stdout a", "dedup --dupes - a", "dedup -o - --dupes o a"] {
        let output = run_into(&bench, line, "o");
        let message = text(&output.stderr);
        assert_contains_all(&message, &["cannot write to ", "another output", "standard output"]);
        assert_eq!((output.status.code(), &*bench.read("o")), (Some(2), &b"precious\n"[..]), "{line}");
    }
    // Two outputs in one pipe would be mixed. /dev/null may have several outputs.
    assert_contains_all(&bench.run_err("dedup --dupes /dev/stdout a"), &["another output", "standard output"]);
    bench.run_ok("dedup -o /dev/null --dupes /dev/null a");
    assert_eq!(bench.run_ok("dedup -o - a"), "a\n");
    assert_eq!(bench.run_ok("dedup -o new --dupes - a"), "a\n");
    assert!(!bench.path("-").exists() && bench.read("new") == b"a\n");
}

#[test]
fn outputs_with_the_only_copy_of_lines_are_not_truncated() {
    let bench = Bench::new(&[("a", &url_lines(0..1000)), ("b", &url_lines(500..1500))]);
    bench.run_ok("dedup --state s -o new a");
    let (new, state) = (bench.read("new"), bench.read("s"));
    // A repeated run would print nothing, because its lines are in the state.
    let message = bench.run_err("dedup --state s -o new a");
    assert_contains_all(&message, &["refusing to overwrite \"new\"", "the state \"s\"", "another file", "--force"]);
    assert!(!message.contains("--resume"), "{message}");
    // The file of dropped lines is protected too, whatever the output is.
    bench.write("d", b"dear\n");
    assert_contains_all(&bench.run_err("dedup --state s --dupes d b"), &["refusing to overwrite \"d\""]);
    // The state has another name than the state of the first run.
    let message = bench.run_err("dedup --state t -o new --resume a");
    assert_contains_all(&message, &["there is no state \"t\"", "\"new\" holds lines", "--force"]);
    assert!(bench.read("new") == new && bench.read("s") == state && !bench.path("t").exists());

    // A run with a new state does not truncate outputs either.
    assert_contains_all(
        &bench.run_err("dedup --state first -o new b"),
        &["refusing to overwrite \"new\"", "the state \"first\""],
    );
    bench.write("dear", b"dear\n");
    assert_contains_all(
        &bench.run_err("dedup --state first -o fresh --dupes dear b"),
        &["refusing to overwrite \"dear\""],
    );
    assert!(bench.read("new") == new && bench.read("dear") == b"dear\n" && !bench.path("first").exists());

    // Empty and new files can be written.
    bench.write("empty", b"");
    bench.run_ok("dedup --state s -o empty b");
    assert!(bench.read("empty") == url_lines(1000..1500));
    bench.run_ok("dedup --state first --force -o new b");
    assert!(bench.read("new") == url_lines(500..1500));
    bench.run_ok("dedup -o new a");
    assert!(bench.read("new") == url_lines(0..1000));
    bench.run_ok("dedup --state s -o new --force a");
    assert_eq!(bench.read("new"), b"");
}

#[test]
fn messages_about_interrupted_runs_are_consistent() {
    let bench = Bench::new(&[("a", &[&url_lines(0..1000)[..], b"no field\n"].concat())]);
    let line = "dedup --field 2 --delimiter / --state s -o new";
    assert_contains_all(&bench.run_err(&format!("{line} a")), &["\"a\", line 1001:"]);
    // Other paths denote the same file.
    for path in ["a", "./a", bench.path("a").to_str().unwrap()] {
        assert_contains_all(
            &bench.run_err(&format!("{line} {path}")),
            &["refusing to overwrite \"new\"", "with --resume, write to"],
        );
        assert_contains_all(&bench.run_err(&format!("{line} --resume {path}")), &["line 1001:"]);
    }
    let time = fs::metadata(bench.path("a")).unwrap().modified().unwrap();
    let touched = time + std::time::Duration::from_secs(2);
    File::options().write(true).open(bench.path("a")).unwrap().set_modified(touched).unwrap();
    assert_contains_all(
        &bench.run_err(&format!("{line} --resume a")),
        &["has changed since", "leave out --resume and write to another"],
    );
    let message = bench.run_err(&format!("{line} a"));
    assert!(!message.contains("--resume"), "{message}");
    // The advice works.
    assert_contains_all(&bench.run_err(&format!("{line}.rest a")), &["line 1001:"]);
    File::options().write(true).open(bench.path("a")).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_state_keeps_its_seed() {
    let bench = Bench::new(&[("a", &url_lines(0..100)), ("b", &url_lines(50..150))]);
    bench.run_ok("dedup --seed 7 --state s -o o a");
    assert_eq!(bench.run_ok("dedup --state s b"), text(&url_lines(100..150)));
    assert_eq!(bench.json("info --json s")["seed"], 7);
    assert_contains_all(&bench.run_err("dedup --seed 8 --state s b"), &["seed is 7", " 8"]);
}

/// Starts a run that waits for its input. Some of the bytes, which exceed the capacity of the pipe, are read, so the run holds
/// its locks.
fn start_locked_run(bench: &Bench, line: &str) -> RunningCommand {
    let mut running = RunningCommand::new(bench.command(line));
    running.write_input(&b"first\n".repeat(1 << 15));
    running
}

#[test]
fn one_run_at_a_time_writes_to_a_filter() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.run_ok("build -n 1000 --no-shrink -o f a");
    bench.run_ok("dedup --state s a");
    let link = if cfg!(unix) { "link" } else { "f" };
    #[cfg(unix)]
    symlink("f", bench.path(link)).unwrap();
    let linked = format!("build -n 10 -o {link} -");
    for (line, file) in [("dedup --state s -", "s"), ("build --append -o f -", "f"), (&*linked, "f")] {
        let running = start_locked_run(&bench, line);
        for other in ["dedup --state", "build --append -o", "merge f -o"] {
            // A filter is not merged into itself.
            if (other, file) != ("merge f -o", "f") {
                let message =
                    bench.run_err(&format!("{other} {file}{}", if other.starts_with('m') { "" } else { " a" }));
                assert_contains_all(&message, &[&format!("\"{file}\""), "another run is writing to it", "--wait"]);
            }
        }
        // Reading needs no lock.
        bench.run_ok(&format!("check --total -s {file} a"));
        let (code, _, stderr) = finish(running);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{line}");
        assert!(!bench.path(&format!("{file}.lock")).exists());
    }
    // The lock file of a killed run does not lock.
    bench.write("f.lock", b"");
    bench.run_ok("build --append -o f a");
    assert!(!bench.path("f.lock").exists());
}

/// Another program may own a file with the name of a lock file.
#[test]
fn files_that_are_not_locks_are_kept() {
    let bench = Bench::new(&[("a", b"a\n"), ("f.lock", b"precious\n")]);
    bench.run_ok("build -o g a");
    for line in
        ["dedup --state f a", "dedup --state f f.lock", "build -o f a", "build --wait -o f f.lock", "merge g -o f"]
    {
        let message = bench.run_err(line);
        assert_contains_all(&message, &["cannot use \"f\"", "/f.lock\"", "something else"]);
        assert!(bench.read("f.lock") == b"precious\n" && !bench.path("f").exists(), "{line}");
    }
}

fn finish(mut running: RunningCommand) -> (Option<i32>, Vec<String>, String) {
    running.close_input();
    running.end()
}

#[test]
fn waiting_runs_follow_the_lock_holder() {
    let bench = Bench::new(&[]);
    for part in 0..4 {
        bench.write(&format!("a{part}"), &url_lines(10_000 * part..10_000 * (part + 1)));
    }
    bench.write("empty", b"");
    bench.run_ok("build -n 40000 -p 1e-9 --no-shrink -o f empty");
    let children: Vec<_> =
        (0..4).map(|part| bench.command(&format!("build --append --wait -o f a{part}")).spawn().unwrap()).collect();
    children.into_iter().for_each(|child| assert_eq!(expect_success(child.wait_with_output().unwrap()), b""));
    bench.write("all", &url_lines(0..40_000));
    assert_eq!(bench.run_ok("check --total -s f all"), "40000\n");

    // One run prints each key, and compressed outputs are complete.
    let run = |part: u32| bench.command(&format!("dedup --wait -p 1e-9 --state s -o o{part}.gz all")).spawn().unwrap();
    let children: Vec<_> = (0..3).map(run).collect();
    children.into_iter().for_each(|child| assert_eq!(expect_success(child.wait_with_output().unwrap()), b""));
    let mut outputs: Vec<_> = (0..3).map(|part| gunzip(&bench.read(&format!("o{part}.gz")))).collect();
    outputs.sort_unstable();
    assert!(outputs[2] == url_lines(0..40_000) && outputs[0].is_empty() && outputs[1].is_empty());
}

#[test]
fn one_run_at_a_time_writes_to_an_output() {
    let bench = Bench::new(&[("a", b"a\n")]);
    let mut running = start_locked_run(&bench, "dedup -o o -");
    assert_contains_all(&bench.run_err("dedup -o o a"), &["\"o\"", "another run is writing to it"]);
    assert_contains_all(&bench.run_err("dedup -o p --dupes o a"), &["\"o\"", "another run is writing to it"]);
    running.write_input(b"second\n");
    assert_eq!(finish(running).0, Some(0));
    assert_eq!(bench.read("o"), b"first\nsecond\n");
    bench.run_ok("dedup -o o a");
    // Pipes may have several writers.
    #[cfg(unix)]
    assert_eq!(run_with_stdin(bench.command("dedup -o /dev/stdout"), b"a\n").stdout, b"a\n");
}

#[test]
fn missing_temporary_folders_are_refused_before_outputs_are_emptied() {
    let bench = Bench::new(&[("a", b"a\n"), ("out", b"precious\n")]);
    let message =
        expect_refusal(bench.command("dedup --exact -o out a").env(TEMP_VARIABLE, "missing").output().unwrap());
    assert_contains_all(&message, &["--exact", "No such file", TEMP_VARIABLE]);
    assert_eq!(bench.read("out"), b"precious\n");
}

/// Another program may own a file with the name of a partial output.
#[cfg(unix)]
#[test]
fn part_files_of_other_programs_are_kept() {
    for state in ["", "--state s ", "--state s --in-order "] {
        let bench = Bench::new(&[]);
        fs::create_dir(bench.path("in")).unwrap();
        bench.write("in/a", b"a\n");
        let line = format!("dedup {state}--output-dir out in");
        let resumed = |line: &str| line.replace("--state s", "--state s --resume");
        bench.write("precious", b"precious\n");
        fs::create_dir(bench.path("out")).unwrap();
        let part = bench.path("out/a.part");
        let expected = ["refusing to overwrite \"out/a.part\"", "--force"];
        bench.write("out/a.part", b"foreign\n");
        assert_contains_all(&bench.run_err(&line), &expected);
        assert_contains_all(&bench.run_err(&resumed(&line)), &expected[..if state.is_empty() { 1 } else { 2 }]);
        assert_eq!(bench.read("out/a.part"), b"foreign\n");
        for target in ["../precious", "../nowhere"] {
            fs::remove_file(&part).unwrap();
            symlink(target, &part).unwrap();
            assert_contains_all(&bench.run_err(&line), &expected);
            assert_contains_all(&bench.run_err(&resumed(&line)), &expected);
        }
        fs::remove_file(&part).unwrap();
        symlink("../precious", &part).unwrap();
        // The link is removed, and its target is kept. Another hard link of a file is kept too.
        bench.run_ok(&format!("{line} --force"));
        assert_eq!((bench.read("out/a"), bench.read("precious")), (b"a\n".to_vec(), b"precious\n".to_vec()));
        fs::hard_link(bench.path("precious"), &part).unwrap();
        assert_contains_all(&bench.run_err(&line), &["refusing to overwrite \"out/"]);
        bench.run_ok(&format!("{line} --force"));
        assert_eq!(bench.read("precious"), b"precious\n");
        assert!(!bench.path("nowhere").exists());
    }
}

/// A run with a mistyped name of the state must not lose the partial output of the right one.
#[cfg(unix)]
#[test]
fn part_files_of_another_state_are_kept() {
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path("in")).unwrap();
    bench.write("in/a", &[&url_lines(0..1000)[..], b"no field\n"].concat());
    let line = |state: &str| format!("dedup --field 2 --delimiter / --in-order --state {state} --output-dir out in");
    assert_contains_all(&bench.run_err(&line("s")), &["line 1001"]);
    let part = bench.read("out/a.part");
    assert!(!part.is_empty());
    for options in ["", " --resume"] {
        assert_contains_all(
            &bench.run_err(&format!("{}{options}", line("t"))),
            &["refusing to overwrite \"out/a.part\""],
        );
        assert!(bench.read("out/a.part") == part && !bench.path("t").exists());
    }
    // A resumed run does not follow links.
    bench.write("precious", &part);
    fs::remove_file(bench.path("out/a.part")).unwrap();
    symlink("../precious", bench.path("out/a.part")).unwrap();
    assert_contains_all(&bench.run_err(&format!("{} --resume", line("s"))), &["refusing to overwrite \"out/a.part\""]);
    assert!(bench.read("precious") == part);
}

/// Auxiliary inputs are tests, lists, filters, OLD, and files with a server's URL or certificates. No kind of output overwrites
/// them, whatever their path.
#[cfg(unix)]
#[test]
fn auxiliary_inputs_are_never_overwritten() {
    let bench = Bench::new(&[("a", b"{\"text\":\"a\"}\n"), ("names", b"")]);
    for folder in ["read", "hard", "soft", "in"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    bench.write("in/x", b"{\"text\":\"a\"}\n");
    bench.write("in/z", b"{\"text\":\"a\"}\n");
    bench.run_ok("build -o filter a");
    let document = br#"{"text":"one two three four five six seven"}"#;
    let (filter, url) = (bench.read("filter"), &b"redis://127.0.0.1:1\n"[..]);
    // Files in directories that are standard output are excluded instead of refused.
    let outputs = ["STDOUT a", "-o NAME a", "a -o NAME", "-o NAME NAME"];
    let dedup = [&outputs[..], &["--dupes NAME a", "--pairs NAME a", "--clusters NAME a", "--in-place NAME"]].concat();
    let folders = ["--in-place a NAME", "--output-dir FOLDER in/x", "--output-dir new --manifest NAME a"];
    let corpus = [&outputs[..], &["--in-place NAME", "--files-from names --in-place"], &folders].concat();
    let tests =
        [&corpus[..], &["--report NAME a", "--output-dir new --report NAME a", "--in-place --report NAME a"]].concat();
    let lists = [&dedup[..], &["--output-dir FOLDER", "--output-dir new --manifest NAME a"]].concat();
    let shared = ["--force -o NAME a", "--force --dupes NAME a", "STDOUT a"];
    let cases = [
        ("corpus --against read/x", &document[..], &tests[..]),
        ("corpus --against read", document, &tests[1..]),
        ("corpus --against hard/x --glob !x in", document, &tests),
        ("corpus --against -", document, &tests),
        ("corpus --frozen -s soft/x", &filter, &["-o NAME a", "STDOUT a", "--output-dir FOLDER in/x"]),
        ("corpus --files-from read/x", b"a\n", &outputs),
        ("dedup --files-from read/x", b"in/x\n", &lists),
        ("dedup --files-from soft/x", b"in/x\0", &lists),
        ("dedup --files-from -", b"in/x\n", &lists),
        ("dedup --redis @read/x --name n -n 9", url, &shared),
        ("dedup --redis rediss://h --redis-ca read/x --name n -n 9", url, &shared),
        ("check --redis @read/x --name n", url, &["STDOUT a"]),
        ("redis list --redis @read/x", url, &["STDOUT"]),
        ("redis download --redis @read/x --name n", url, &["-o NAME"]),
        ("check -s read/x", &filter, &["STDOUT a"]),
        ("check -s filter --files-from read/x", b"a\n", &["STDOUT"]),
        ("build --files-from read/x", b"a\n", &["-o NAME"]),
        ("merge read/x", &filter, &["-o NAME"]),
        ("not-in read/x", b"b\n", &["-o NAME -- a", "STDOUT -- a"]),
        ("in read", b"b\n", &["-o NAME -- a"]),
        ("not-in --files-from read/x", b"in/x\n", &["-o NAME -- a", "STDOUT -- a"]),
    ];
    let absolute = bench.path("read/x").to_str().unwrap().to_owned();
    // Each kind of output is tested with two of these paths in turn.
    let mut names = ["read/x", "./in/../read/x", &absolute, "hard/x", "soft/x"].into_iter().cycle();
    for (line, contents, writes) in cases {
        if line.contains("--redis") && cfg!(not(feature = "redis")) {
            continue;
        }
        for folder in ["read", "hard", "soft"] {
            let _ = fs::remove_file(bench.path(&format!("{folder}/x")));
        }
        bench.write("read/x", contents);
        fs::hard_link(bench.path("read/x"), bench.path("hard/x")).unwrap();
        symlink("../read/x", bench.path("soft/x")).unwrap();
        for write in writes {
            for name in names.by_ref().take(2) {
                bench.write("names", name.as_bytes());
                let folder = &name[..name.len() - 2];
                let options = write.replace("NAME", name).replace("FOLDER", folder);
                let mut command = bench.command(format!("{line} {}", options.replace("STDOUT", "").trim()).trim());
                if line.ends_with(" -") {
                    command.stdin(File::open(bench.path("read/x")).unwrap());
                }
                if write.contains("STDOUT") {
                    command.stdout(File::options().append(true).open(bench.path(name)).unwrap());
                }
                let output = command.output().unwrap();
                assert!(bench.read("read/x") == contents, "{line} {options}: {output:?}");
                let message = expect_refusal(output);
                let written =
                    if write.contains("STDOUT") { "cannot write to standard output" } else { "cannot write to \"" };
                assert_contains_all(&message, &[written, "a filter or another output of this run: "]);
                assert!(
                    message.matches("/x\"").count() + message.matches("standard").count() >= 2,
                    "{options}: {message}"
                );
            }
        }
    }
    // Auxiliary inputs in a directory are not inputs.
    bench.write("read/x", document);
    for name in ["read/y", "hard/y", "soft/y"] {
        bench.write(name, document);
    }
    bench.run_ok("corpus --against read/x --in-place -L read hard soft");
    assert_eq!((&*bench.read("read/x"), &*bench.read("read/y")), (&document[..], &b""[..]));
    bench.write("read/x", b"in/x\n");
    bench.run_ok("dedup --files-from read/x --in-place read");
    assert_eq!((bench.read("read/x"), bench.read("in/x")), (b"in/x\n".to_vec(), b"{\"text\":\"a\"}\n".to_vec()));
}
