//! The files that inputs denote: directories, globs and lists.

use crate::common::{
    Bench, assert_contains_all, expect_exit_code, expect_failure, expect_refusal, expect_success, number,
    report_skipped, run_with_stdin, stats, text, with_ulimit,
};
use std::ffi::OsStr;
use std::fs;
#[cfg(unix)]
use std::os::unix::ffi::OsStrExt;
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Creates files, each with its path as its only line.
fn tree(paths: &[&str]) -> Bench {
    let bench = Bench::new(&[]);
    for path in paths {
        fs::create_dir_all(bench.path(path).parent().unwrap()).unwrap();
        bench.write(path, format!("{path}\n").as_bytes());
    }
    bench
}

/// Returns the output lines of a run that must succeed and print nothing on standard error.
#[track_caller]
fn lines(bench: &Bench, line: &str) -> Vec<String> {
    bench.run_ok(line).lines().map(str::to_owned).collect()
}

/// The order is that of `sort` in the C locale: `-` and `.` precede `/`, and letters follow it.
#[cfg(unix)]
#[test]
fn directory_files_are_sorted_by_path_bytes() {
    let paths = ["d/a/z", "d/a/b/c", "d/a-b/x", "d/a.txt", "d/a0", "d/B", "d/a/b.x", "d/ä", "d/Z/1", "d/a/b-/y"];
    let bench = tree(&paths);
    let mut found = Command::new("sh");
    found.args(["-c", "find d -type f | LC_ALL=C sort"]).current_dir(bench.0.path());
    let sorted: Vec<String> = text(&found.output().unwrap().stdout).lines().map(str::to_owned).collect();
    assert_eq!(sorted.len(), paths.len());
    for line in ["dedup d", "dedup d/", "dedup .", "dedup -j 3 --chunk-size 1 d"] {
        assert_eq!(lines(&bench, line), sorted, "{line}");
    }
    // Named inputs are read in the given order.
    let parts = ["d/a0", "d/a/b-/y", "d/a/b.x", "d/a/b/c", "d/a/z", "d/Z/1"];
    assert_eq!(lines(&bench, "dedup d/a0 d/a d/Z"), parts);
}

#[test]
fn all_commands_accept_directories() {
    let bench = tree(&["d/x", "d/e/y", "z"]);
    bench.run_ok("build -o f d");
    assert_eq!(lines(&bench, "check -s f d z"), ["d/e/y", "d/x"]);
    assert_eq!(bench.run_ok("dedup --total d z"), "3\n");
}

#[test]
fn hidden_files_are_skipped_by_default() {
    let bench = tree(&["d/x", "d/.y", "d/.e/z", "d/e/.y.gz", ".h/x", "d/ignored"]);
    bench.write("d/.gitignore", b"ignored\n");
    assert_eq!(lines(&bench, "dedup d"), ["d/ignored", "d/x"]);
    assert_eq!(lines(&bench, "dedup --hidden d"), ["d/.e/z", "ignored", "d/.y", "d/e/.y.gz", "d/ignored", "d/x"]);
    // A named file is read even if it is hidden. A glob does not select hidden files, such as ._y.gz of other systems.
    assert_eq!(lines(&bench, "dedup .h d/.y d/.e"), [".h/x", "d/.y", "d/.e/z"]);
    assert_contains_all(
        &bench.run_err("dedup -g *.gz d"),
        &["the directory \"d\" has no input files", "--glob", "--hidden"],
    );
    assert_eq!(lines(&bench, "dedup --hidden -g *.gz d"), ["d/e/.y.gz"]);
}

#[cfg(unix)]
#[test]
fn links_are_followed_if_named_or_requested() {
    let bench = tree(&["d/x", "other/y", "file"]);
    for (target, link) in [("../other", "d/folder"), ("../file", "d/file"), ("d", "named"), ("file", "to-file")] {
        symlink(target, bench.path(link)).unwrap();
    }
    assert_eq!(lines(&bench, "dedup d"), ["d/x"]);
    assert_eq!(lines(&bench, "dedup named to-file"), ["d/x", "file"]);
    for follow in ["-L", "--follow"] {
        assert_eq!(lines(&bench, &format!("dedup {follow} d")), ["file", "other/y", "d/x"]);
    }
    // A file that is found by several paths is read once.
    assert_eq!(lines(&bench, "dedup --annotate -L d other named"), ["new\tfile", "new\tother/y", "new\td/x"]);

    symlink("nowhere", bench.path("d/broken")).unwrap();
    symlink("../other", bench.path("other/loop")).unwrap();
    assert_eq!(lines(&bench, "dedup d other"), ["d/x", "other/y"]);
    assert_contains_all(&bench.run_err("dedup -L d"), &["cannot open \"d/broken\": No such file"]);
    let message = bench.run_err("dedup -L other");
    assert_contains_all(&message, &["cannot follow \"other/loop\": it leads back to \"other\"", "leave out --follow"]);
    let output = bench.run("dedup -L --on-error skip d other");
    assert_eq!((output.status.code(), text(&output.stdout).contains("other/y\n")), (Some(1), true));
    assert_contains_all(&text(&output.stderr), &["\"d/broken\"", "cannot follow", "it is skipped"]);
}

#[cfg(unix)]
#[test]
fn pipes_in_directories_are_ignored() {
    let bench = tree(&["d/x"]);
    bench.fifo("d/pipe");
    assert_eq!(lines(&bench, "dedup d"), ["d/x"]);
}

#[test]
fn globs_filter_directory_files() {
    let bench = tree(&["d/a.gz", "d/b.txt", "d/en/c.gz", "d/en/deep/e.gz", "d/fr/en/f.gz", "d/fr/d.txt", "z.txt"]);
    for (globs, expected) in [
        ("-g *.gz", &["d/a.gz", "d/en/c.gz", "d/en/deep/e.gz", "d/fr/en/f.gz"][..]),
        ("--glob !*.gz", &["d/b.txt", "d/fr/d.txt"]),
        ("-g *.gz -g !e.*", &["d/a.gz", "d/en/c.gz", "d/fr/en/f.gz"]),
        // The last matching glob decides.
        ("-g !*.gz -g a*", &["d/a.gz"]),
        ("-g a* -g !*.gz -g *.txt", &["d/b.txt", "d/fr/d.txt"]),
        ("-g *.{txt,zip}", &["d/b.txt", "d/fr/d.txt"]),
        ("-g [ab].*", &["d/a.gz", "d/b.txt"]),
        // Paths are relative to the named directory.
        ("-g en/*.gz", &["d/en/c.gz"]),
        ("-g en/**", &["d/en/c.gz", "d/en/deep/e.gz"]),
        ("-g **/en/*", &["d/en/c.gz", "d/fr/en/f.gz"]),
        ("-g /*.gz", &["d/a.gz"]),
        ("-g !en/", &["d/a.gz", "d/b.txt", "d/fr/d.txt"]),
    ] {
        assert_eq!(lines(&bench, &format!("dedup {globs} d")), expected, "{globs}");
    }
    // Globs do not exclude named files.
    assert_eq!(lines(&bench, "dedup -g !*.txt d/fr z.txt d/fr/d.txt"), ["d/fr/en/f.gz", "z.txt", "d/fr/d.txt"]);
    assert_contains_all(&bench.run_err("dedup -g {a d"), &["--glob", "'{a'", "not closed"]);
}

#[cfg(unix)]
#[test]
fn lists_name_files_and_directories() {
    let bench = tree(&["d/x", "d/e/y", "z", "a"]);
    bench.write("list", b"z\n\nd\n");
    assert_eq!(lines(&bench, "dedup --files-from list a"), ["a", "z", "d/e/y", "d/x"]);
    bench.write("list", b"z\nd/x");
    assert_eq!(lines(&bench, "dedup --files-from list"), ["z", "d/x"]);
    assert_eq!(expect_success(run_with_stdin(bench.command("dedup --files-from - a"), b"z\n")), b"a\nz\n");
    bench.write("with-stdin", b"z\n-\na\n");
    assert_eq!(expect_success(run_with_stdin(bench.command("dedup --files-from with-stdin"), b"x\n")), b"z\nx\na\n");
    for (line, list) in [("dedup --files-from - -", "z\n"), ("dedup --files-from -", "z\n-\n")] {
        assert_contains_all(
            &expect_refusal(run_with_stdin(bench.command(line), list.as_bytes())),
            &["standard input", "input", "--files-from"],
        );
    }

    // -z applies only to lines. No name contains a NUL, so in a list with a NUL, names end with NUL.
    bench.write("lines", b"1\n2\x003\x00");
    bench.write("nul", b"lines\0\0z\0");
    assert_eq!(bench.run_ok("dedup -z --files-from nul"), "1\n2\x003\0z\n\0");
    assert_eq!(bench.run_ok("dedup --files-from nul"), "1\n2\x003\x00\nz\n");
    bench.write("one", b"lines\0");
    assert_eq!(bench.run_ok("dedup --files-from one"), "1\n2\x003\x00\n");
    for (name, bytes) in [("e\nf", &b"-z"[..]), ("g h", b"--files-from"), ("caf\u{e9}", b"x")] {
        bench.write(name, bytes);
    }
    let odd = OsStr::from_bytes(b"\xFF\xFE");
    if fs::write(bench.0.path().join(odd), "odd\n").is_ok() {
        let list = b"e\nf\0\xFF\xFE\0g h\0caf\xC3\xA9";
        assert_eq!(
            expect_success(run_with_stdin(bench.command("dedup -z --files-from -"), list)),
            b"-z\0odd\n\0--files-from\0x\0"
        );
        assert_eq!(expect_success(run_with_stdin(bench.command("dedup --files-from -"), b"\xFF\xFE\n")), b"odd\n");
    } else {
        report_skipped("the system refuses names that are not UTF-8");
    }

    bench.write("list", b"z\n");
    for line in
        ["dedup --files-from list -o list", "dedup --files-from list --dupes list", "build --files-from list -o list"]
    {
        assert_contains_all(&bench.run_err(line), &["cannot write to \"list\": it is also an input"]);
    }
    bench.write("empty", b"\n\n");
    assert_contains_all(
        &bench.run_err("dedup --files-from empty"),
        &["\"empty\", the list of --files-from, names no input"],
    );
    assert_contains_all(&bench.run_err("dedup --files-from missing a"), &["cannot open \"missing\": No such file"]);
    bench.write("list", b"a\nmissing\n");
    assert_contains_all(&bench.run_err("dedup --files-from list"), &["cannot open \"missing\": No such file"]);
    let output = bench.run("dedup --on-error skip --files-from list");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "a\n"));
}

#[test]
fn a_directory_without_files_is_an_error() {
    let bench = tree(&["a", "d/.hidden"]);
    fs::create_dir(bench.path("empty")).unwrap();
    bench.run_ok("build -o f a");
    for folder in ["empty", "d"] {
        let why = format!("the directory \"{folder}\" has no input files");
        for line in ["dedup -o o", "build -o g"] {
            assert_contains_all(&bench.run_err(&format!("{line} a {folder}")), &[&why]);
            for on_error in ["skip", "keep"] {
                let output = bench.run(&format!("{line} --stats=json --on-error {on_error} a {folder}"));
                assert_eq!((output.status.code(), number(&stats(&output), "inputs_left_out")), (Some(1), 1.0));
                assert_contains_all(&text(&output.stderr), &[&why, "it is skipped"]);
            }
            ["o", "g"].iter().for_each(|output| drop(fs::remove_file(bench.path(output))));
        }
        let output = bench.run(&format!("check -s f {folder} a"));
        assert_eq!(text(&output.stdout), "a\n");
        assert_contains_all(&expect_failure(&output), &[&why]);
    }
}

/// Root can read all folders, so another user runs the command.
#[cfg(unix)]
#[test]
fn unreadable_folders_are_treated_as_unopenable_inputs() {
    let bench = tree(&["d/a/x", "d/b/y", "d/c/z"]);
    let mode = |path: &str, mode| fs::set_permissions(bench.path(path), fs::Permissions::from_mode(mode)).unwrap();
    mode("", 0o777);
    mode("d/b", 0);
    let root = fs::metadata(bench.0.path()).unwrap().uid() == 0;
    if root {
        // Another process copies the binary. If this process wrote it, a child of another test could hold it open for writing,
        // and then it could not be run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_bloomline")).arg(bench.path("bloomline")).status();
        assert!(copied.unwrap().success());
    }
    let run = |line: &str| {
        if !root {
            return bench.run(line);
        }
        let mut command = Command::new(bench.path("bloomline"));
        command.args(line.split(' ')).current_dir(bench.0.path()).uid(65534).gid(65534);
        command.output().unwrap()
    };
    let why = "cannot open \"d/b\": Permission denied";
    assert_contains_all(&expect_refusal(run("dedup d")), &[why]);
    for on_error in ["skip", "keep"] {
        let output = run(&format!("dedup --on-error {on_error} d"));
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "d/a/x\nd/c/z\n"));
        assert_contains_all(&text(&output.stderr), &[why, "it is skipped"]);
    }
    // Excluded folders are not read.
    assert_eq!(expect_success(run("dedup -g !b d")), b"d/a/x\nd/c/z\n");
    assert_eq!(run("build -o f -g !b d").status.code(), Some(0));
    let output = run("check -s f d");
    assert_eq!(text(&output.stdout), "d/a/x\nd/c/z\n");
    assert_contains_all(&expect_failure(&output), &[why]);
    mode("d/b", 0o755);
}

#[test]
fn found_files_are_read_once_and_named_files_each_time() {
    let bench = tree(&["d/e/x", "d/y"]);
    for (inputs, expected) in [
        ("d d/e", &["new\td/e/x", "new\td/y"][..]),
        ("d/e d", &["new\td/e/x", "new\td/y"]),
        ("d ./d d/../d", &["new\td/e/x", "new\td/y"]),
        ("d/y d", &["new\td/y", "new\td/e/x"]),
        ("d d/y", &["new\td/e/x", "new\td/y"]),
        ("d/y d/y d", &["new\td/y", "dup\td/y", "new\td/e/x"]),
        ("d/y d/y", &["new\td/y", "dup\td/y"]),
    ] {
        assert_eq!(lines(&bench, &format!("dedup --annotate {inputs}")), expected, "{inputs}");
    }
    bench.write("list", b"d\nd/e\n");
    assert_eq!(lines(&bench, "dedup --annotate --files-from list d/e"), ["new\td/e/x", "new\td/y"]);
}

#[test]
fn outputs_in_a_directory_are_never_inputs() {
    let bench = tree(&["x", "y"]);
    let empty = |name: &str| fs::File::create(bench.path(name)).unwrap();
    bench.run_ok("dedup -o o --dupes d .");
    // The existing file may be an input, so the command refuses to overwrite it.
    for line in ["dedup -o o .", "dedup --dupes o .", "build -o o ."] {
        assert_contains_all(&bench.run_err(line), &["cannot write to \"o\": it is also an input", "\"./o\"", "--glob"]);
    }
    assert_eq!(text(&bench.read("o")), "x\ny\n");
    bench.run_ok("dedup -o o -g ![od] .");
    bench.run_ok("dedup -o o --dupes d --force .");
    assert_eq!((text(&bench.read("o")).as_str(), bench.read("d").len()), ("x\ny\n", 0));
    ["o", "d"].iter().for_each(|name| fs::remove_file(bench.path(name)).unwrap());
    // The shell truncates the file or appends to it.
    let output = bench.command("dedup .").stdout(empty("o")).output().unwrap();
    assert_eq!((output.status.code(), text(&bench.read("o")).as_str()), (Some(0), "x\ny\n"));
    let appended = fs::File::options().append(true).open(bench.path("o")).unwrap();
    assert_eq!(bench.command("dedup --invert .").stdout(appended).output().unwrap().status.code(), Some(0));
    assert_eq!(text(&bench.read("o")), "x\ny\n");
    let output = bench.command("dedup --annotate -g [xye] .").stderr(empty("e")).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "new\tx\nnew\ty\n"));
}

#[test]
fn a_state_in_a_directory_is_not_read() {
    let bench = tree(&["x", "y"]);
    bench.run_ok("dedup --state s -o o .");
    bench.write("s.lock", b"");
    // The same run is complete, because the output and the state are not inputs. Another run refuses to empty the output.
    let whole = bench.run("dedup --state s -o o --resume .");
    assert_eq!((whole.status.code(), whole.stdout.len()), (Some(0), 0));
    assert_contains_all(&text(&whole.stderr), &["nothing is left to do"]);
    assert_eq!(text(&bench.read("o")), "x\ny\n");
    assert_contains_all(&bench.run_err("dedup --state s -o o ."), &["refusing to overwrite \"o\""]);
    bench.write("z", b"z\n");
    assert_eq!(bench.run_ok("dedup --state s -g !o ."), "z\n");
    bench.run_ok("dedup --state s -o o --force .");
    assert_eq!(bench.read("o").len(), 0);
    // The commands that query the state or append to it do not read it as an input either.
    assert_eq!(expect_exit_code(bench.run("check -v -s s ."), 1), "");
    let totals = bench.run_ok("check --total -s s .");
    assert_eq!(totals.replace('\\', "/"), "./o:0\n./x:1\n./y:1\n./z:1\n");
    bench.run_ok("build --append -o s .");
    // A folder that contains only a state has no input.
    fs::create_dir(bench.path("state")).unwrap();
    bench.run_ok("dedup --state state/s x");
    assert_contains_all(&bench.run_err("dedup --state state/s state"), &["the directory \"state\" has no input files"]);
}

/// The files of another run's state are not inputs.
#[test]
fn states_of_other_runs_are_refused_or_skipped() {
    let bench = tree(&["d/x", "d/y"]);
    bench.run_ok("dedup --state d/s -o o d");
    let job = b"{\"job\":{\"inputs\":[]}}\n";
    assert_contains_all(&bench.run_err("dedup d"), &["\"d/s\"", "a bloomline filter"]);
    assert_contains_all(&bench.run_err("dedup -g !s d"), &["\"d/s.resume\"", "the checkpoints of a bloomline state"]);
    assert_contains_all(&bench.run_err("dedup --in-place d/s.resume"), &["the checkpoints of a bloomline state"]);
    let output = bench.run("dedup --on-error skip d");
    assert_eq!((text(&output.stdout), output.status.code()), ("d/x\nd/y\n".to_owned(), Some(1)));
    assert_eq!(text(&output.stderr).lines().count(), 2, "{}", text(&output.stderr));
    // Files of other programs are inputs.
    bench.write("jobs", job);
    bench.write("own.resume", b"{\"a\":1}\n");
    assert_eq!(expect_success(bench.run("dedup jobs own.resume")), [&job[..], b"{\"a\":1}\n"].concat());
}

#[test]
fn a_folder_of_outputs_in_a_directory_is_not_read() {
    let bench = tree(&["x", "e/y", "e/z.tmp"]);
    let line = "dedup --state s --output-dir out --manifest m -g !*.tmp .";
    for more in ["", " --force"] {
        assert_eq!(bench.run_ok(&format!("{line}{more}")), "");
        let kept = if more == " --force" { ["", ""] } else { ["x\n", "e/y\n"] };
        assert_eq!(["out/x", "out/e/y"].map(|name| text(&bench.read(name))), kept, "{more}");
        let names = |folder: &str| fs::read_dir(bench.path(folder)).unwrap().count();
        assert_eq!((names("out"), names("out/e")), (2, 1), "{more}");
    }
    assert_contains_all(&bench.run_err(line), &["refusing to overwrite \"out/"]);
    // The named directory itself cannot be the folder of outputs.
    assert_contains_all(&bench.run_err("dedup --output-dir e e"), &["cannot write to ", "it is also an input"]);
}

/// The first run ends at a line without a key, of the same length as its replacement.
#[test]
fn a_run_over_a_directory_is_resumed() {
    let bench = tree(&["d/x", "d/e/y"]);
    bench.write("d/x", b"a\t1\nb\t1\nc-3\n");
    let line = "dedup -n 10 --field 2 --state d/s -o d/o --dupes d/r d";
    assert_contains_all(&bench.run_err(&format!("{line} -g x")), &["\"d/x\", line 3"]);
    assert_eq!((text(&bench.read("d/o")).as_str(), text(&bench.read("d/r")).as_str()), ("a\t1\n", "b\t1\n"));
    bench.rewrite("d/x", b"a\t1\nb\t1\nc\t3\n");
    // Without the glob, the run has another input.
    assert_contains_all(&bench.run_err(&format!("{line} --resume")), &["cannot resume", "/d/x\", not ", "/d/e/y\""]);
    bench.run_ok(&format!("{line} --resume -g x"));
    assert_eq!((text(&bench.read("d/o")).as_str(), text(&bench.read("d/r")).as_str()), ("a\t1\nc\t3\n", "b\t1\n"));
    // The list itself may be a pipe, because only the files that it names are read again.
    bench.write("d/p", b"p\t5\n");
    assert_eq!(
        expect_success(run_with_stdin(bench.command("dedup -n 9 --state t -o q --resume --files-from -"), b"d/p\n")),
        b""
    );
    assert_eq!(text(&bench.read("q")), "p\t5\n");
}

#[test]
fn counts_have_file_names_with_a_directory_or_a_list() {
    let bench = tree(&["d/x", "z"]);
    bench.run_ok("build -o f d");
    bench.write("list", b"z\n");
    for (inputs, expected) in [
        ("d/x", "1\n"),
        ("d", "d/x:1\n"),
        ("d z", "d/x:1\nz:0\n"),
        ("--files-from list d", "d/x:1\nz:0\n"),
        ("--files-from list d/x -v", "d/x:0\nz:1\n"),
    ] {
        let printed = bench.run_ok(&format!("check --total -s f {inputs}"));
        assert_eq!(printed.replace('\\', "/"), expected, "{inputs}");
    }
    assert_eq!(bench.run_ok("check -v --total -s f --files-from list"), "z:1\n");
}

#[cfg(unix)]
#[test]
fn many_files_and_deep_folders_need_few_descriptors() {
    let bench = Bench::new(&[]);
    let deep: String = (0..200).map(|_| "deep/").collect();
    fs::create_dir_all(bench.path(&format!("d/{deep}"))).unwrap();
    bench.write(&format!("d/{deep}x"), b"deep\n");
    (0..2000).for_each(|i| bench.write(&format!("d/{i}"), format!("{i}\n").as_bytes()));
    let names: String = (0..2000).map(|i| format!("d/{i}\n")).collect();
    bench.write("list", names.as_bytes());
    for (inputs, expected) in [("d", "2001\n"), ("-L d", "2001\n"), ("--files-from list", "2000\n")] {
        let mut command = with_ulimit("-n 40", &bench.command(&format!("dedup --total {inputs}")));
        assert_eq!(text(&expect_success(command.output().unwrap())), expected, "{inputs}");
    }
}
