//! Existing files are kept: outputs that are one file, outputs of earlier runs, and two runs with one file.

use crate::common::{Bench, clean, fed, numbers, refused, tells, text};
use crate::corpus::gunzip;
use crate::live::Live;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::{Output, Stdio};

/// The files of a folder and what is in them.
fn files(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(bench.0.path()).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort_unstable();
    files
}

/// Runs with a file as standard output, which keeps what it has.
fn run_into(bench: &Bench, line: &str, output: &str) -> Output {
    let file = File::options().append(true).create(true).open(bench.path(output)).unwrap();
    bench.command(line).stdout(Stdio::from(file)).output().unwrap()
}

#[test]
fn a_run_that_is_refused_leaves_all_files_as_they_are() {
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
        tells(&bench.refused(&format!("dedup {line}")), parts);
        // A link that leads nowhere may have had its file made for a moment.
        assert!(files(&bench) == before, "{line}");
    }
}

#[test]
fn standard_output_is_an_output_as_others() {
    let bench = Bench::new(&[("a", b"a\na\n"), ("o", b"precious\n")]);
    for line in ["dedup --dupes o a", "dedup --dupes /dev/stdout a", "dedup --dupes - a", "dedup -o - --dupes o a"] {
        let output = run_into(&bench, line, "o");
        let message = text(&output.stderr);
        tells(&message, &["cannot write to ", "another output", "standard output"]);
        assert_eq!((output.status.code(), &*bench.read("o")), (Some(2), &b"precious\n"[..]), "{line}");
    }
    // Two outputs in one pipe would be a mixture. What is thrown away may be thrown away twice.
    tells(&bench.refused("dedup --dupes /dev/stdout a"), &["another output", "standard output"]);
    bench.clean("dedup -o /dev/null --dupes /dev/null a");
    assert_eq!(bench.clean("dedup -o - a"), "a\n");
    assert_eq!(bench.clean("dedup -o new --dupes - a"), "a\n");
    assert!(!bench.path("-").exists() && bench.read("new") == b"a\n");
}

#[test]
fn lines_that_are_nowhere_else_are_not_emptied() {
    let bench = Bench::new(&[("a", &numbers(0..1000)), ("b", &numbers(500..1500))]);
    bench.clean("dedup --state s -o new a");
    let (new, state) = (bench.read("new"), bench.read("s"));
    // The run is repeated, and its lines are in the state.
    let message = bench.refused("dedup --state s -o new a");
    tells(&message, &["refusing to overwrite \"new\"", "the state \"s\"", "another file", "--force"]);
    assert!(!message.contains("--resume"), "{message}");
    // The same for what was dropped, whatever the output is.
    bench.write("d", b"dear\n");
    tells(&bench.refused("dedup --state s --dupes d b"), &["refusing to overwrite \"d\""]);
    // The state has another name than the one of the interrupted run.
    let message = bench.refused("dedup --state t -o new --resume a");
    tells(&message, &["there is no state \"t\"", "\"new\" holds lines", "--force"]);
    assert!(bench.read("new") == new && bench.read("s") == state && !bench.path("t").exists());

    // Nor does a run that begins a state.
    tells(&bench.refused("dedup --state first -o new b"), &["refusing to overwrite \"new\"", "the state \"first\""]);
    bench.write("dear", b"dear\n");
    tells(&bench.refused("dedup --state first -o fresh --dupes dear b"), &["refusing to overwrite \"dear\""]);
    assert!(bench.read("new") == new && bench.read("dear") == b"dear\n" && !bench.path("first").exists());

    // A file without lines and a new one are no danger.
    bench.write("empty", b"");
    bench.clean("dedup --state s -o empty b");
    assert!(bench.read("empty") == numbers(1000..1500));
    bench.clean("dedup --state first --force -o new b");
    assert!(bench.read("new") == numbers(500..1500));
    bench.clean("dedup -o new a");
    assert!(bench.read("new") == numbers(0..1000));
    bench.clean("dedup --state s -o new --force a");
    assert_eq!(bench.read("new"), b"");
}

#[test]
fn messages_about_an_interrupted_run_do_not_contradict_each_other() {
    let bench = Bench::new(&[("a", &[&numbers(0..1000)[..], b"no field\n"].concat())]);
    let line = "dedup --field 2 --delimiter / --state s -o new";
    tells(&bench.refused(&format!("{line} a")), &["\"a\", line 1001:"]);
    // By another name it is the same file.
    for path in ["a", "./a", bench.path("a").to_str().unwrap()] {
        tells(&bench.refused(&format!("{line} {path}")), &["refusing to overwrite \"new\"", "with --resume, write to"]);
        tells(&bench.refused(&format!("{line} --resume {path}")), &["line 1001:"]);
    }
    let time = fs::metadata(bench.path("a")).unwrap().modified().unwrap();
    let touched = time + std::time::Duration::from_secs(2);
    File::options().write(true).open(bench.path("a")).unwrap().set_modified(touched).unwrap();
    tells(
        &bench.refused(&format!("{line} --resume a")),
        &["has changed since", "leave out --resume and write to another"],
    );
    let message = bench.refused(&format!("{line} a"));
    assert!(!message.contains("--resume"), "{message}");
    // Both lead on.
    tells(&bench.refused(&format!("{line}.rest a")), &["line 1001:"]);
    File::options().write(true).open(bench.path("a")).unwrap().set_modified(time).unwrap();
}

#[test]
fn a_state_has_its_own_seed() {
    let bench = Bench::new(&[("a", &numbers(0..100)), ("b", &numbers(50..150))]);
    bench.clean("dedup --seed 7 --state s -o o a");
    assert_eq!(bench.clean("dedup --state s b"), text(&numbers(100..150)));
    assert_eq!(bench.json("info --json s")["seed"], 7);
    tells(&bench.refused("dedup --seed 8 --state s b"), &["seed is 7", " 8"]);
}

/// A run that waits for its input. It has read more than a pipe holds, so its locks are taken by then.
fn running(bench: &Bench, line: &str) -> Live {
    let mut live = Live::new(bench.command(line));
    live.say(&b"first\n".repeat(1 << 15));
    live
}

#[test]
fn one_run_at_a_time_writes_to_a_filter() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.clean("build -n 1000 --no-shrink -o f a");
    bench.clean("dedup --state s a");
    symlink("f", bench.path("link")).unwrap();
    for (line, file) in [("dedup --state s -", "s"), ("build --append -o f -", "f"), ("build -n 10 -o link -", "f")] {
        let live = running(&bench, line);
        for other in ["dedup --state", "build --append -o", "merge f -o"] {
            // The target of a merge is not one of its inputs.
            if (other, file) != ("merge f -o", "f") {
                let message =
                    bench.refused(&format!("{other} {file}{}", if other.starts_with('m') { "" } else { " a" }));
                tells(&message, &[&format!("\"{file}\""), "another run is writing to it", "--wait"]);
            }
        }
        // Reading is no danger.
        bench.clean(&format!("check --total -s {file} a"));
        let (code, _, said) = finish(live);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{line}");
        assert!(!bench.path(&format!("{file}.lock")).exists());
    }
    // What a killed run leaves is no lock.
    bench.write("f.lock", b"");
    bench.clean("build --append -o f a");
    assert!(!bench.path("f.lock").exists());
}

/// The name beside the filter may be taken.
#[test]
fn a_file_that_is_no_lock_stays() {
    let bench = Bench::new(&[("a", b"a\n"), ("f.lock", b"precious\n")]);
    bench.clean("build -o g a");
    for line in
        ["dedup --state f a", "dedup --state f f.lock", "build -o f a", "build --wait -o f f.lock", "merge g -o f"]
    {
        let message = bench.refused(line);
        tells(&message, &["cannot use \"f\"", "/f.lock\"", "something else"]);
        assert!(bench.read("f.lock") == b"precious\n" && !bench.path("f").exists(), "{line}");
    }
}

fn finish(mut live: Live) -> (Option<i32>, Vec<String>, String) {
    live.hang_up();
    live.end()
}

#[test]
fn a_run_that_waits_comes_after_the_other() {
    let bench = Bench::new(&[]);
    for part in 0..4 {
        bench.write(&format!("a{part}"), &numbers(10_000 * part..10_000 * (part + 1)));
    }
    bench.write("empty", b"");
    bench.clean("build -n 40000 -p 1e-9 --no-shrink -o f empty");
    let children: Vec<_> =
        (0..4).map(|part| bench.command(&format!("build --append --wait -o f a{part}")).spawn().unwrap()).collect();
    children.into_iter().for_each(|child| assert_eq!(clean(child.wait_with_output().unwrap()), b""));
    bench.write("all", &numbers(0..40_000));
    assert_eq!(bench.clean("check --total -s f all"), "40000\n");

    // Each key is new to one of them, and a compressed output is whole.
    let run = |part: u32| bench.command(&format!("dedup --wait -p 1e-9 --state s -o o{part}.gz all")).spawn().unwrap();
    let children: Vec<_> = (0..3).map(run).collect();
    children.into_iter().for_each(|child| assert_eq!(clean(child.wait_with_output().unwrap()), b""));
    let mut outputs: Vec<_> = (0..3).map(|part| gunzip(&bench.read(&format!("o{part}.gz")))).collect();
    outputs.sort_unstable();
    assert!(outputs[2] == numbers(0..40_000) && outputs[0].is_empty() && outputs[1].is_empty());
}

#[test]
fn one_run_at_a_time_writes_to_an_output() {
    let bench = Bench::new(&[("a", b"a\n")]);
    let mut live = running(&bench, "dedup -o o -");
    tells(&bench.refused("dedup -o o a"), &["\"o\"", "another run is writing to it"]);
    tells(&bench.refused("dedup -o p --dupes o a"), &["\"o\"", "another run is writing to it"]);
    live.say(b"second\n");
    assert_eq!(finish(live).0, Some(0));
    assert_eq!(bench.read("o"), b"first\nsecond\n");
    bench.clean("dedup -o o a");
    // A pipe may have many writers.
    assert_eq!(fed(bench.command("dedup -o /dev/stdout"), b"a\n").stdout, b"a\n");
}

#[test]
fn a_folder_that_takes_no_temporary_file_is_refused_before_an_output_is_emptied() {
    let bench = Bench::new(&[("a", b"a\n"), ("out", b"precious\n")]);
    let message = refused(bench.command("dedup --exact -o out a").env("TMPDIR", "missing").output().unwrap());
    tells(&message, &["--exact", "No such file", "TMPDIR"]);
    assert_eq!(bench.read("out"), b"precious\n");
}

/// A file with the name of a begun output may be another program's.
#[test]
fn a_part_that_no_run_began_stays() {
    for state in ["", "--state s ", "--state s --in-order "] {
        let bench = Bench::new(&[]);
        fs::create_dir(bench.path("in")).unwrap();
        bench.write("in/a", b"a\n");
        let line = format!("dedup {state}--output-dir out in");
        let resumed = |line: &str| line.replace("--state s", "--state s --resume");
        bench.write("precious", b"precious\n");
        fs::create_dir(bench.path("out")).unwrap();
        let part = bench.path("out/a.part");
        let told = ["refusing to overwrite \"out/a.part\"", "--force"];
        bench.write("out/a.part", b"foreign\n");
        tells(&bench.refused(&line), &told);
        tells(&bench.refused(&resumed(&line)), &told[..if state.is_empty() { 1 } else { 2 }]);
        assert_eq!(bench.read("out/a.part"), b"foreign\n");
        for target in ["../precious", "../nowhere"] {
            fs::remove_file(&part).unwrap();
            symlink(target, &part).unwrap();
            tells(&bench.refused(&line), &told);
            tells(&bench.refused(&resumed(&line)), &told);
        }
        fs::remove_file(&part).unwrap();
        symlink("../precious", &part).unwrap();
        // The link goes, and what it leads to stays. So does another name of the file.
        bench.clean(&format!("{line} --force"));
        assert_eq!((bench.read("out/a"), bench.read("precious")), (b"a\n".to_vec(), b"precious\n".to_vec()));
        fs::hard_link(bench.path("precious"), &part).unwrap();
        tells(&bench.refused(&line), &["refusing to overwrite \"out/"]);
        bench.clean(&format!("{line} --force"));
        assert_eq!(bench.read("precious"), b"precious\n");
        assert!(!bench.path("nowhere").exists());
    }
}

/// A name of the state that is mistyped loses nothing that the right one has claimed.
#[test]
fn the_begun_outputs_of_another_state_stay() {
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path("in")).unwrap();
    bench.write("in/a", &[&numbers(0..1000)[..], b"no field\n"].concat());
    let line = |state: &str| format!("dedup --field 2 --delimiter / --in-order --state {state} --output-dir out in");
    tells(&bench.refused(&line("s")), &["line 1001"]);
    let part = bench.read("out/a.part");
    assert!(!part.is_empty());
    for options in ["", " --resume"] {
        tells(&bench.refused(&format!("{}{options}", line("t"))), &["refusing to overwrite \"out/a.part\""]);
        assert!(bench.read("out/a.part") == part && !bench.path("t").exists());
    }
    // Nor does a run that goes on follow a link.
    bench.write("precious", &part);
    fs::remove_file(bench.path("out/a.part")).unwrap();
    symlink("../precious", bench.path("out/a.part")).unwrap();
    tells(&bench.refused(&format!("{} --resume", line("s"))), &["refusing to overwrite \"out/a.part\""]);
    assert!(bench.read("precious") == part);
}

/// Tests, lists, filters, OLD and the files for a server, whatever writes, and however a file is named.
#[test]
fn what_is_read_besides_the_inputs_is_never_written() {
    let bench = Bench::new(&[("a", b"{\"text\":\"a\"}\n"), ("names", b"")]);
    for folder in ["read", "hard", "soft", "in"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    bench.write("in/x", b"{\"text\":\"a\"}\n");
    bench.clean("build -o filter a");
    let document = br#"{"text":"one two three four five six seven"}"#;
    let (filter, url) = (bench.read("filter"), &b"redis://127.0.0.1:1\n"[..]);
    // What directories have of standard output is left out of them.
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
        ("corpus --against hard/x --glob !x", document, &tests),
        ("corpus --against -", document, &tests),
        ("corpus --frozen -s soft/x", &filter, &["-o NAME a", "STDOUT a", "--output-dir FOLDER in/x"]),
        ("corpus --files-from read/x", b"a\n", &outputs),
        ("dedup --files-from read/x", b"in/x\n", &lists),
        ("dedup --files0-from soft/x", b"in/x\0", &lists),
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
    // Each file is written by two of them in turn.
    let mut names = ["read/x", "./in/../read/x", &absolute, "hard/x", "soft/x"].into_iter().cycle();
    for (line, contents, writes) in cases {
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
                let message = refused(output);
                let written =
                    if write.contains("STDOUT") { "cannot write to standard output" } else { "cannot write to \"" };
                tells(&message, &[written, "a filter or another output of this run: "]);
                assert!(
                    message.matches("/x\"").count() + message.matches("standard").count() >= 2,
                    "{options}: {message}"
                );
            }
        }
    }
    // A directory has none of them as inputs.
    bench.write("read/x", document);
    for name in ["read/y", "hard/y", "soft/y"] {
        bench.write(name, document);
    }
    bench.clean("corpus --against read/x --in-place -L read hard soft");
    assert_eq!((&*bench.read("read/x"), &*bench.read("read/y")), (&document[..], &b""[..]));
    bench.write("read/x", b"in/x\n");
    bench.clean("dedup --files-from read/x --in-place read");
    assert_eq!((bench.read("read/x"), bench.read("in/x")), (b"in/x\n".to_vec(), b"{\"text\":\"a\"}\n".to_vec()));
}
