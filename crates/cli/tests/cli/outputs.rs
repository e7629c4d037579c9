//! Destinations of lines, and runs whose output cannot be written.

use crate::common::{
    Bench, assert_contains_all, expect_refusal, expect_success, report_skipped, run_with_stdin, text, url_lines,
};
use crate::corpus::{gunzip, large, unzstd};
use crate::live::RunningCommand;
use std::fs::{self, File};
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

#[test]
fn options_choose_the_output_of_every_line() {
    let bench =
        Bench::new(&[("a", b"x\ny\nx\n\nx\ny\n"), ("b", b"z\n\n"), ("d", b"what was there, and longer than that\n")]);
    assert_eq!(bench.run_ok("dedup --dupes d a b"), "x\ny\n\nz\n");
    assert_eq!(text(&bench.read("d")), "x\nx\ny\n\n");
    assert_eq!(bench.run_ok("dedup --invert a b"), "x\nx\ny\n\n");
    assert_eq!(bench.run_ok("dedup --annotate a b"), "new\tx\nnew\ty\ndup\tx\nnew\t\ndup\tx\ndup\ty\nnew\tz\ndup\t\n");
    for (options, expected) in [("--total", "4\n"), ("--total --invert", "4\n"), ("--total --dupes d", "4\n")] {
        assert_eq!(bench.run_ok(&format!("dedup {options} a b")), expected, "{options}");
    }
    assert_eq!(bench.run_ok("dedup --total a"), "3\n");
    assert_eq!(text(&bench.read("d")), "x\nx\ny\n\n");
    assert_eq!(bench.run_ok("dedup --total --output o a"), "");
    assert_eq!(text(&bench.read("o")), "3\n");

    for [one, value, other] in [
        ["--dupes", " e", "--invert"],
        ["--dupes", " e", "--annotate"],
        ["--invert", "", "--annotate"],
        ["--total", "", "--annotate"],
    ] {
        assert_contains_all(
            &bench.run_err(&format!("dedup {one}{value} {other} a")),
            &[one, "cannot be used with", other],
        );
    }
    assert!(!bench.path("e").exists());
}

#[test]
fn names_choose_the_compression_of_outputs() {
    let input = [url_lines(0..20_000), url_lines(10_000..30_000)].concat();
    let bench = Bench::new(&[("a", &input), ("empty", b""), ("o.gz", &[b'x'; 1 << 20]), ("o.zst", &[b'x'; 1 << 20])]);
    let (first, repeats) = (url_lines(0..30_000), url_lines(10_000..20_000));
    assert_eq!(bench.run_ok("dedup -o o.gz --dupes d.zst a"), "");
    assert!(gunzip(&bench.read("o.gz")) == first && unzstd(&bench.read("d.zst")) == repeats);
    assert_eq!(bench.run_ok("dedup --output o.zst --dupes d.gz a"), "");
    assert!(unzstd(&bench.read("o.zst")) == first && gunzip(&bench.read("d.gz")) == repeats);
    assert!(bench.read("o.gz").len() < first.len() / 2 && bench.read("o.zst").len() < first.len() / 2);
    // The command can read its own outputs.
    assert!(expect_success(bench.run("dedup o.gz d.zst o.zst")) == first);

    bench.run_ok("dedup -o o.gz --dupes d.zst empty");
    assert!(gunzip(&bench.read("o.gz")).is_empty() && unzstd(&bench.read("d.zst")).is_empty());
    bench.run_ok("dedup -o o.zst --dupes d.gz empty");
    assert!(unzstd(&bench.read("o.zst")).is_empty() && gunzip(&bench.read("d.gz")).is_empty());
    bench.run_ok("dedup --total -o o.gz a");
    assert_eq!(gunzip(&bench.read("o.gz")), b"30000\n");
}

#[test]
fn outputs_of_every_coding_are_read_again() {
    let input = [url_lines(0..20_000), url_lines(10_000..30_000)].concat();
    let bench = Bench::new(&[("a", &input), ("empty", b"")]);
    let (first, repeats) = (url_lines(0..30_000), url_lines(10_000..20_000));
    for (name, dupes, magic) in [
        ("o.xz", "d.bz2", &b"\xFD7zXZ\0"[..]),
        ("o.bz2", "d.xz", b"BZh9"),
        ("o.GZ", "d.Zst", b"\x1F\x8B"),
        ("o.zstd", "d.gzip", b"\x28\xB5\x2F\xFD"),
        ("o.LZ4", "d.lz4", b"\x04\x22\x4D\x18"),
    ] {
        assert_eq!(bench.run_ok(&format!("dedup -o {name} --dupes {dupes} a")), "");
        assert!(bench.read(name).starts_with(magic) && bench.read(name).len() < first.len() / 2, "{name}");
        assert!(expect_success(bench.run(&format!("dedup {name}"))) == first, "{name}");
        assert!(expect_success(bench.run(&format!("dedup {dupes}"))) == repeats, "{dupes}");
        bench.run_ok(&format!("dedup -o {name} empty"));
        assert!(bench.read(name).starts_with(magic), "{name}");
        assert_eq!(bench.run_ok(&format!("dedup {name}")), "", "{name}");
    }
}

#[test]
fn names_of_other_codings_are_refused() {
    let bench = Bench::new(&[("a", b"a\n"), ("there.zip", b"what was there")]);
    for name in ["o.zip", "o.lz", "o.tgz", "o.txz", "o.LZMA", "o.Z", "o.7z", "o.br", "there.zip"] {
        let ending = name.rsplit_once('.').unwrap().1.to_lowercase();
        let parts = [&format!("cannot write to \"{name}\""), &*format!("format of .{ending} is not supported"), ".bz2"];
        assert_contains_all(&bench.run_err(&format!("dedup -o {name} a")), &parts);
        assert_contains_all(&bench.run_err(&format!("dedup --dupes {name} a")), &parts);
        assert_eq!(bench.path(name).exists(), name == "there.zip");
    }
    assert_eq!(bench.read("there.zip"), b"what was there");
}

/// Lines must not have the name of a table.
#[test]
fn names_of_other_formats_are_refused() {
    let bench = Bench::new(&[("a", b"a\n"), ("j", b"{\"text\":\"a\"}\n"), ("there.parquet", b"what was there")]);
    let written = ["dedup -o NAME a", "dedup --dupes NAME a", "dedup --total -o NAME a", "in a -o NAME -- a"];
    let reports = ["dedup --pairs NAME a", "dedup --clusters NAME a", "dedup --output-dir d --manifest NAME a"];
    for name in
        ["o.parquet", "o.PQ", "o.parq", "o.parquet.gz", "o.arrow", "o.avro", "o.feather", "o.orc.zst", "there.parquet"]
    {
        for line in written.iter().chain(&reports).chain(&["corpus --against j --report NAME a"]) {
            let parts = [&*format!("to \"{name}\""), "stands for another format", "choose"];
            assert_contains_all(&bench.run_err(&line.replace("NAME", name)), &parts);
            assert_eq!(bench.path(name).exists(), name == "there.parquet", "{line} {name}");
        }
    }
    assert_eq!(bench.read("there.parquet"), b"what was there");
    for name in ["m.gz", "m.jsonl.zst"] {
        assert_contains_all(
            &bench.run_err(&format!("dedup --output-dir d --manifest {name} a")),
            &[name, "another format"],
        );
    }
    assert!(!bench.path("d").exists());
    // A replaced input keeps its format, and so does an output in a folder with the input's name.
    bench.write("x.parquet", b"a\na\n");
    bench.run_ok("dedup -o x.parquet x.parquet");
    bench.run_ok("dedup --in-place x.parquet");
    bench.run_ok("dedup --output-dir d x.parquet");
    assert_eq!((bench.read("x.parquet"), bench.read("d/x.parquet")), (b"a\n".to_vec(), b"a\n".to_vec()));
    // Other names may stand for lines or tables.
    for name in ["o", "o.parquet.part", "o.data", "parquet", ".parquet"] {
        bench.run_ok(&format!("dedup -o {name} a"));
        assert_eq!(bench.read(name), b"a\n");
    }
}

#[test]
fn lines_of_a_slow_pipe_are_printed_early() {
    for (options, new, last) in [
        ("", "", &["unfinished"][..]),
        ("--field 1 ", "", &["unfinished"]),
        ("--exact ", "", &["unfinished"]),
        ("--annotate ", "new\t", &["dup\tone", "new\tunfinished"]),
    ] {
        let bench = Bench::new(&[]);
        let mut running = RunningCommand::new(bench.command(&format!("dedup {options}-")));
        for word in ["one", "two", "three"] {
            running.write_input(format!("{word}\n").as_bytes());
            assert_eq!(running.line(), format!("{new}{word}"));
        }
        // More than one read of a pipe returns.
        let burst: Vec<String> = (100_000..150_000).map(|i| i.to_string()).collect();
        running.write_input((burst.join("\n") + "\n").as_bytes());
        for word in burst {
            assert_eq!(running.line(), format!("{new}{word}"));
        }
        running.write_input(b"one\nunfinished");
        running.close_input();
        let (code, lines, stderr) = running.end();
        assert_eq!((code, stderr.as_str()), (Some(0), ""));
        assert_eq!(lines, last);
    }
}

#[test]
fn an_existing_output_file_is_replaced() {
    let bench = Bench::new(&[("a", b"a\nb\na\n"), ("out", b"something longer that was there\n")]);
    assert_eq!(bench.run_ok("dedup -o out a"), "");
    assert_eq!(bench.read("out"), b"a\nb\n");

    assert_contains_all(
        &bench.run_err("dedup -o missing/output a"),
        &["write to \"missing/output\"", "the folder \"missing\"", "No such file", "create the folder"],
    );
    // The output is not changed before all inputs are checked.
    assert_contains_all(&bench.run_err("dedup -o out a missing/input"), &["\"missing/input\"", "No such file"]);
    assert_eq!(bench.read("out"), b"a\nb\n");
}

/// The message names the folder in addition to the file, and the remedy.
#[cfg(unix)]
#[test]
fn unwritable_folders_are_named_with_a_remedy() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.run_ok("build -o filter a");
    fs::create_dir(bench.path("locked")).unwrap();
    fs::set_permissions(bench.path("locked"), fs::Permissions::from_mode(0o500)).unwrap();
    let mut folders = vec![
        ("missing", "No such file", "create the folder, or choose another"),
        ("a", "Not a directory", "choose another folder"),
    ];
    // Root can write to every folder except those of the system.
    let is_locked =
        |folder: &Path| File::create_new(folder.join("x")).is_err_and(|error| error.raw_os_error() == Some(13));
    match ["locked", "/sys"].into_iter().find(|folder| is_locked(&bench.path(folder))) {
        Some(folder) => folders.push((folder, "", "allow this user to write there, or choose another folder")),
        None => report_skipped("root writes to every folder"),
    }
    for (folder, why, remedy) in folders {
        let mut commands = vec![
            "dedup -o FOLDER/f a",
            "dedup --dupes FOLDER/f a",
            "dedup --pairs FOLDER/f -o o a",
            "dedup -s FOLDER/f a",
            "dedup --output-dir o --manifest FOLDER/f a",
            "not-in -o FOLDER/f a -- a",
            "build -o FOLDER/f a",
            "merge -o FOLDER/f filter",
        ];
        if folder != "missing" {
            commands.push("dedup --output-dir FOLDER/f a");
            commands.push("dedup --output-dir FOLDER/f/f a");
        }
        for command in commands {
            let message = bench.run_err(&command.replace("FOLDER", folder));
            let named = format!("no file can be created in the folder \"{folder}\": {why}");
            assert_contains_all(&message, &[&format!("write to \"{folder}/f"), &named, remedy]);
        }
    }
    for command in ["dedup --exact a", "dedup -c a", "dedup -c", "build -o new -"] {
        let mut command = bench.command(command);
        command.env("TMPDIR", "missing");
        let message = expect_refusal(run_with_stdin(command, b"a\n"));
        assert_contains_all(
            &message,
            &["temporary file", "No such file", "set TMPDIR to a folder other than \"missing\""],
        );
    }
}

/// A run that fails at its first line leaves no new file.
#[cfg(unix)]
#[test]
fn new_outputs_are_removed_if_a_run_fails_before_its_first_line() {
    let bench = Bench::new(&[("a", b"no field\n"), ("t", b"{\"id\":\"a\"}\n"), ("n", b"{\"id\":1}\n"), ("none", b"")]);
    bench.run_ok("build --json-pointer /id -o texts t");
    let kinds = "the keys can never be equal";
    for (line, why) in [
        ("dedup --json-pointer /id -s texts -o NEW n", kinds),
        ("dedup --json-pointer /id -s texts --dupes NEW n", kinds),
        ("not-in --json-pointer /id -o NEW t -- n", kinds),
        ("in --json-pointer /id -o NEW --total t -- n", kinds),
        ("dedup -f 2 -o NEW a", "no key in"),
        ("dedup -f 2 -o NEW --dupes other a", "no key in"),
        ("dedup -f 2 -s s -o NEW a", "no key in"),
        ("dedup -f 2 -o NEW.gz a", "no key in"),
        ("dedup -f 2 -o NEW.zst --compress zstd:19 a", "no key in"),
        ("dedup -f 2 -c -o NEW a", "no key in"),
        ("dedup -f 2 --pairs NEW -o other a", "no key in"),
        ("dedup -f 2 --keep last -o link a", "no key in"),
    ] {
        let _ = fs::remove_file(bench.path("link"));
        symlink("NEW", bench.path("link")).unwrap();
        assert_contains_all(&bench.run_err(line), &[why]);
        let left = ["NEW", "NEW.gz", "NEW.zst", "other"].into_iter().find(|name| bench.path(name).exists());
        assert_eq!(left, None, "{line}");
        // An existing file is kept.
        bench.write("NEW", b"");
        bench.run_err(line);
        assert!(bench.path("NEW").exists(), "{line}");
        fs::remove_file(bench.path("NEW")).unwrap();
        for name in ["s", "s.resume"] {
            let _ = fs::remove_file(bench.path(name));
        }
    }
    // A successful run creates its outputs even if they are empty.
    for (line, outputs) in [
        ("dedup -o o --dupes d none", &["o", "d"][..]),
        ("dedup --pairs p -o q a", &["p", "q"]),
        ("dedup -s u -o e none", &["e"]),
        ("dedup -c -o c none", &["c"]),
    ] {
        bench.run_ok(line);
        assert!(outputs.iter().all(|output| bench.path(output).exists()), "{line}");
    }
    assert_eq!(bench.run("not-in -o z a -- a").status.code(), Some(1));
    assert_eq!(bench.read("z"), b"");
}

#[test]
fn standard_output_that_is_an_input_is_refused() {
    let bench = Bench::new(&[("a", b"a\na\n")]);
    let appended = File::options().append(true).open(bench.path("a")).unwrap();
    let output = bench.command("dedup a").stdout(appended).output().unwrap();
    assert_contains_all(&expect_refusal(output), &["standard output", "input", ": \"a\""]);
    assert_eq!(bench.read("a"), b"a\na\n");
}

#[cfg(unix)]
#[test]
fn a_full_output_is_an_error() {
    if !Path::new("/dev/full").exists() {
        report_skipped("no /dev/full here");
        return;
    }
    let bench = Bench::new(&[("a", b"a\n")]);
    assert_contains_all(&bench.run_err("dedup -o /dev/full a"), &["write to \"/dev/full\"", "No space left"]);
}

#[test]
fn closed_pipes_end_the_run_quietly() {
    // The lines exceed the capacity of any pipe, and the input stays open, so only the closed output can end the run.
    let mut child = Bench::new(&[]).command("dedup -n 1000000 -j 2").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let feeder = thread::spawn(move || {
        // The write fails when the command has ended.
        let _ = stdin.write_all(&large());
        stdin
    });
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    drop(feeder.join());
}

/// Only standard output may be closed before the end.
#[cfg(unix)]
#[test]
fn closing_the_pipe_of_repeats_is_an_error() {
    let bench = Bench::new(&[("in", &[url_lines(0..50_000), url_lines(0..50_000)].concat())]);
    let fifo = bench.fifo("fifo");
    let reader = thread::spawn(move || drop(File::open(fifo).unwrap()));
    let output = bench.run("dedup --dupes fifo -o out in");
    reader.join().unwrap();
    assert_contains_all(&expect_refusal(output), &["write to \"fifo\"", "Broken pipe"]);
    // Lines printed before the error are correct.
    assert!(url_lines(0..50_000).starts_with(&bench.read("out")));
}

/// If the output cannot be written, no line is added to the state.
#[cfg(unix)]
#[test]
fn a_closed_output_is_an_error() {
    let bench = Bench::new(&[("a", b"a\nb\n")]);
    bench.run_ok("build -n 10 -o f a");
    let closed = |line: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" {line} >&-"), env!("CARGO_BIN_EXE_bloomline")]);
        shell.current_dir(bench.0.path()).output().unwrap()
    };
    for line in
        ["dedup --state s a", "dedup -o o --dupes - a", "check -s f a", "info f", "plan --table", "--help", "--version"]
    {
        assert_contains_all(&expect_refusal(closed(line)), &["cannot open standard output", "Bad file descriptor"]);
    }
    assert!(!bench.path("s").exists() && !bench.path("s.resume").exists());
    // Standard output is unused, or is /dev/null, even if it is open for reading too.
    expect_success(closed("dedup -o o a"));
    let null = File::options().read(true).write(true).open("/dev/null").unwrap();
    expect_success(bench.command("dedup --state s a").stdout(null).output().unwrap());
}

/// As Windows and macOS have them.
#[test]
fn outputs_whose_names_differ_only_in_case_are_not_mixed() {
    let bench = Bench::new(&[("a", b"a\na\n")]);
    if !bench.path("A").exists() {
        return report_skipped("names that differ in case are those of two files here");
    }
    for line in ["dedup -o out --dupes OUT a", "dedup -o OUT --state out a", "dedup -o o --dupes A a"] {
        assert_contains_all(&bench.run_err(line), &["cannot write to", "also an input"]);
    }
    assert_eq!(bench.read("a"), b"a\na\n");
}
