//! Inputs that are replaced by their kept lines, also if the command is killed.

use crate::common::{Bench, assert_contains_all, expect_failure, expect_refusal, text, url_lines, with_ulimit};
use crate::corpus::{decode, distinct_lines_by_file, encode, gunzip, gzip, read_decoded, zstd};
use crate::live::{RunningCommand, wait_for};
use proptest::prelude::*;
use std::collections::HashSet;
use std::fs::{self, File, Permissions};
use std::io::Write;
#[cfg(unix)]
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[cfg(unix)]
fn inode(bench: &Bench, name: &str) -> u64 {
    bench.path(name).metadata().unwrap().ino()
}

/// Asserts that the folder contains only these files.
#[track_caller]
fn assert_only_files(bench: &Bench, names: &[&str]) {
    let found: HashSet<String> =
        fs::read_dir(bench.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(found, names.iter().map(|&name| name.to_owned()).collect());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Each line is kept once, in the first file that contains it, and the order of lines is unchanged.
    #[test]
    fn files_are_replaced_by_their_kept_lines(
        files in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..80), any::<bool>()), 1..6),
        (threads, chunk, one) in (1..4u8, 1..60u8, any::<bool>()),
    ) {
        let bench = Bench::new(&[]);
        let name = |(i, (_, zipped)): (usize, &(Vec<u8>, bool))| format!("f{i}{}", if *zipped { ".gz" } else { "" });
        let names: Vec<String> = files.iter().enumerate().map(name).collect();
        let lines = |(lines, _): &(Vec<u8>, bool)| -> Vec<u8> {
            lines.iter().flat_map(|line| [&b"x".repeat(usize::from(*line) % 5)[..], &[b'a' + line % 26, b'\n']].concat()).collect()
        };
        let contents: Vec<Vec<u8>> = files.iter().map(lines).collect();
        for (name, contents) in names.iter().zip(&contents) {
            bench.write(name, &encode(name, contents));
        }
        let options = format!("-p 1e-9 -j {threads} --chunk-size {chunk}");
        let expected = distinct_lines_by_file(contents.iter().map(|file| &file[..]));
        // The second run changes nothing.
        for _ in 0..2 {
            let line = match one {
                true => format!("dedup {options} -o {} {}", names[0], names.join(" ")),
                false => format!("dedup {options} --in-place {}", names.join(" ")),
            };
            prop_assert_eq!(bench.run_ok(&line), "");
            let unchanged = contents.iter().skip(1).cloned();
            let expected = if one { [expected.concat()].into_iter().chain(unchanged).collect() } else { expected.clone() };
            for (name, expected) in names.iter().zip(&expected) {
                prop_assert_eq!(&read_decoded(&bench, name), expected, "{}", name);
            }
            assert_only_files(&bench, &names.iter().map(|name| &**name).collect::<Vec<_>>());
        }
    }
}

#[cfg(unix)]
#[test]
fn an_output_may_replace_an_input() {
    let bench = Bench::new(&[("all", b"a\nb\na\n"), ("new", b"b\nc\n"), ("other", b"z\n")]);
    fs::set_permissions(bench.path("all"), Permissions::from_mode(0o604)).unwrap();
    symlink("all", bench.path("link")).unwrap();
    bench.run_ok("dedup -o all all");
    assert_eq!(bench.read("all"), b"a\nb\n");
    // The input may have another path and any position.
    bench.run_ok("dedup -o link --dupes repeats ./all new");
    assert_eq!((bench.read("all"), bench.read("repeats")), (b"a\nb\nc\n".to_vec(), b"b\n".to_vec()));
    bench.run_ok("dedup other all all -o all");
    assert_eq!((bench.read("all"), bench.read("new")), (b"z\na\nb\nc\n".to_vec(), b"b\nc\n".to_vec()));
    assert!(bench.path("link").is_symlink());
    assert_eq!(bench.path("all").metadata().unwrap().mode() & 0o7777, 0o604);
    // The other hard link keeps the old contents.
    fs::hard_link(bench.path("all"), bench.path("hard")).unwrap();
    bench.run_ok("dedup -o hard all new other -q");
    bench.run_ok("dedup -o all all other new other -n 10");
    assert_ne!(inode(&bench, "all"), inode(&bench, "hard"));
    assert_only_files(&bench, &["all", "new", "other", "link", "hard", "repeats"]);

    // The first bytes of the input determine the compression, unless an option does.
    bench.write("x", &gzip(b"a\na\n"));
    bench.run_ok("dedup -o x x new");
    assert_eq!(gunzip(&bench.read("x")), b"a\nb\nc\n");
    bench.run_ok("dedup --compress none -o x x");
    assert_eq!(bench.read("x"), b"a\nb\nc\n");
}

#[cfg(unix)]
#[test]
fn file_types_and_modes_are_preserved() {
    let bench = Bench::new(&[("a", b"a\nb\n"), ("b.gz", &gzip(b"b\nc\n")), ("c", &zstd(b"c\nd\nd")), ("empty", b"")]);
    bench.write("gone", b"a\nb\na\n");
    fs::set_permissions(bench.path("c"), Permissions::from_mode(0o640)).unwrap();
    symlink("c", bench.path("link")).unwrap();
    let before = ["a", "empty"].map(|name| inode(&bench, name));
    assert_eq!(bench.run_ok("dedup --in-place a b.gz link empty gone"), "");
    assert_eq!((bench.read("a"), gunzip(&bench.read("b.gz"))), (b"a\nb\n".to_vec(), b"c\n".to_vec()));
    assert_eq!((decode("c.zst", &bench.read("c")).0, bench.read("gone")), (b"d\n".to_vec(), vec![]));
    assert!(bench.read("c").starts_with(b"\x28\xB5\x2F\xFD") && bench.path("link").is_symlink());
    assert_eq!(bench.path("c").metadata().unwrap().mode() & 0o7777, 0o640);
    // A file that loses no line is not written again.
    assert_eq!(["a", "empty"].map(|name| inode(&bench, name)), before);
    // It is written again if --compress changes its compression, which must agree with the name.
    bench.run_ok("dedup --in-place --compress gzip a");
    assert_eq!(gunzip(&bench.read("a")), b"a\nb\n");
    assert_contains_all(
        &bench.run_err("dedup --in-place --compress zstd b.gz"),
        &["\"b.gz\"", "--compress zstd", ".gz"],
    );
    assert_only_files(&bench, &["a", "b.gz", "c", "empty", "gone", "link"]);
}

#[test]
fn nulls_and_lines_without_a_key_have_separate_options() {
    let (null, fault, x) = ("{\"a\":null}\n", "{\"b\":1}\n", "{\"a\":1}\n");
    for (options, stays) in [
        ("--nulls keep --on-error skip", [null, x].concat()),
        ("--nulls skip --on-error keep", [fault, x].concat()),
        ("--nulls keep --on-error keep", [null, fault, x].concat()),
        ("--nulls skip --on-error skip", x.to_owned()),
    ] {
        let bench = Bench::new(&[("in", [null, fault, x].concat().as_bytes())]);
        let total = bench.run_ok(&format!("dedup -q --total --column a {options} in"));
        assert_eq!(total, format!("{}\n", stays.lines().count()), "{options}");
        bench.run_ok(&format!("dedup -q --in-place --column a {options} in"));
        assert_eq!(text(&bench.read("in")), stays, "{options}");
    }
}

#[test]
fn directories_are_deduplicated_in_place() {
    let bench = Bench::new(&[("extra", b"d\ne\n")]);
    fs::create_dir_all(bench.path("in/deep")).unwrap();
    for (name, lines) in [
        ("in/b", &b"b\nc\n"[..]),
        ("in/deep/a", b"a\nb\nb\n"),
        ("in/.bloomline-b.part", b"left"),
        ("in/.hidden", b"c\n"),
    ] {
        bench.write(name, lines);
    }
    // A named directory within another one is read once.
    bench.run_ok("dedup --in-place extra in in/deep");
    let read = |name: &str| text(&bench.read(name));
    assert_eq!((read("in/b"), read("in/deep/a"), read("extra")), ("b\nc\n".into(), "a\n".into(), "d\ne\n".into()));
    assert_eq!(read("in/.hidden"), "c\n");
    // The partial file of a killed run is not an input.
    bench.run_ok("dedup --in-place --hidden in");
    assert_eq!((read("in/.hidden"), read("in/b")), ("c\n".into(), "b\n".into()));
    assert!(!bench.path("in/.bloomline-b.part").exists());
    bench.write("list", b"in/deep\nextra\n");
    bench.write("extra", b"a\n");
    bench.run_ok("dedup --in-place --files-from list");
    assert_eq!(read("extra"), "");
}

#[cfg(unix)]
#[test]
fn irreplaceable_files_are_refused_and_unchanged() {
    let bench = Bench::new(&[("a", b"a\na\n"), ("b", b"a\nb\n"), ("list", b"a\nlist\n"), ("zip", b"PK\x03\x04")]);
    fs::hard_link(bench.path("b"), bench.path("hard")).unwrap();
    symlink("a", bench.path("link")).unwrap();
    let files = ["a", "b", "list", "zip"];
    let before = files.map(|name| bench.read(name));
    for (line, parts) in [
        ("dedup --in-place", &["cannot replace standard input", "files or directories"][..]),
        ("dedup --in-place a -", &["cannot replace standard input"]),
        ("dedup --in-place /dev/null", &["cannot replace \"/dev/null\""]),
        ("dedup --in-place a a", &["cannot replace \"a\"", "the same file as \"a\""]),
        ("dedup --in-place a link", &["cannot replace \"link\"", "the same file as \"a\""]),
        ("dedup --in-place b hard", &["\"hard\"", "the same file as \"b\""]),
        ("dedup --in-place --binary .", &["the same file as", "--glob"]),
        ("dedup --in-place --files-from list b", &["\"list\"", "also an input"]),
        ("dedup --in-place -o o a", &["--in-place", "cannot be used with", "--output"]),
        ("dedup --in-place --output-dir o a", &["--in-place", "--output-dir"]),
        ("dedup --in-place --state s a", &["--in-place", "--state"]),
        ("dedup --in-place --dupes d a", &["--in-place", "--dupes"]),
        ("dedup --in-place -v a", &["--in-place", "--invert"]),
        ("dedup --in-place --total a", &["--in-place", "--total"]),
        ("dedup --in-place --annotate a", &["--in-place", "--annotate"]),
        ("dedup --in-place --resume a", &["--in-place", "--resume", "--state"]),
        ("dedup --in-place --redis redis://h --name n a", &["--in-place", "--redis"]),
        ("dedup --state s -o a a", &["\"a\"", "also an input", "--state", "erase them"]),
        ("dedup --state s --resume -o link b a", &["\"link\"", "also an input", "erase them"]),
        ("dedup --redis redis://h --name n -o a a", &["\"a\"", "also an input", "erase them"]),
        ("dedup -v -o a a", &["\"a\"", "also an input"]),
        ("dedup --total -o a b a", &["\"a\"", "also an input"]),
        ("dedup --annotate -o a a", &["\"a\"", "also an input"]),
        ("dedup --dupes a a", &["\"a\"", "also an input"]),
        ("dedup -o a --dupes link a", &["\"link\"", "also an input"]),
        ("dedup -o list --files-from list list", &["\"list\"", "also an input"]),
        ("dedup -o zip --on-error skip zip a", &["\"zip\"", "also an input"]),
    ] {
        assert_contains_all(&expect_failure(&bench.run(line)), parts);
        assert_eq!(files.map(|name| bench.read(name)), before, "{line}");
    }
    // An output may replace a named input, but not a file of a directory.
    fs::create_dir(bench.path("in")).unwrap();
    fs::rename(bench.path("a"), bench.path("in/a")).unwrap();
    assert_contains_all(&bench.run_err("dedup -o in/a in b"), &["\"in/a\"", "also an input"]);
    // An output may not replace the file on standard input.
    let output = bench.command("dedup -o b").stdin(File::open(bench.path("b")).unwrap()).output().unwrap();
    assert_contains_all(&expect_refusal(output), &["\"b\"", "also an input"]);
    assert!(!bench.path("s").exists());
}

/// Replacing such a file would lose the unread rest.
#[test]
fn broken_files_are_not_replaced() {
    let broken = gzip(&url_lines(0..5000));
    let broken = &broken[..broken.len() / 2];
    for action in ["skip", "keep"] {
        let bench = Bench::new(&[("a.gz", broken), ("b", &url_lines(0..6000)), ("c", b"c\nc\n")]);
        let output = bench.run(&format!("dedup --in-place --on-error {action} a.gz b c missing"));
        assert_eq!(output.status.code(), Some(1));
        assert_contains_all(&text(&output.stderr), &["cannot read \"a.gz\"", "\"missing\""]);
        assert_eq!((bench.read("a.gz"), bench.read("c")), (broken.to_vec(), b"c\n".to_vec()));
        // Lines of the first file are removed from the second only if they were read.
        let (first, rest) = (decoded_part(broken), bench.read("b"));
        assert_eq!([first, rest].concat(), url_lines(0..6000));
        let output = bench.run(&format!("dedup -o a.gz --on-error {action} a.gz c"));
        assert_eq!(output.status.code(), Some(2));
        assert_contains_all(&text(&output.stderr), &["cannot replace \"a.gz\"", "rest"]);
        assert_eq!(bench.read("a.gz"), broken);
        assert_only_files(&bench, &["a.gz", "b", "c"]);
    }
    let bench = Bench::new(&[("a", b"x\tx\nx\tx\n"), ("b", b"x\tx\nfault\n"), ("c", b"c\tc\nc\tc\n")]);
    assert_contains_all(&expect_failure(&bench.run("dedup --in-place -f 2 a b c")), &["no key in \"b\", line 2"]);
    // At most the files before the error are replaced.
    assert_eq!((bench.read("b"), bench.read("c")), (b"x\tx\nfault\n".to_vec(), b"c\tc\nc\tc\n".to_vec()));
    assert!([&b"x\tx\n"[..], b"x\tx\nx\tx\n"].contains(&&bench.read("a")[..]));
    bench.run_ok("dedup -q --in-place -f 2 --on-error keep a b c");
    assert_eq!(
        (bench.read("a"), bench.read("b"), bench.read("c")),
        (b"x\tx\n".to_vec(), b"fault\n".to_vec(), b"c\tc\n".to_vec())
    );
}

/// A record with an unclosed quote contains the rest of its file.
#[test]
fn files_with_unclosed_quotes_are_not_replaced() {
    let open: &[u8] = b"a,1\na,1\nb,\"2\nc,3\nd,4\nb,2\n";
    let bench = Bench::new(&[("open", open), ("c", b"c\nc\n")]);
    let why = ["cannot read \"open\" after line 2: the rest, 4 lines, is one record: a quoted field is not closed"];
    let output = bench.run("dedup --csv --in-place --on-error skip open c");
    assert_eq!(output.status.code(), Some(1));
    assert_contains_all(&text(&output.stderr), &why);
    assert_eq!((text(&bench.read("open")), text(&bench.read("c"))), (text(open), "c\n".to_owned()));
    assert_contains_all(&expect_failure(&bench.run("dedup --csv --in-place open c")), &why);
    let output = bench.run("dedup --csv -o open --on-error skip open c");
    assert_eq!(output.status.code(), Some(2));
    assert_contains_all(&text(&output.stderr), &["cannot replace \"open\"", "rest"]);
    assert_eq!(text(&bench.read("open")), text(open));
    // `--on-error keep` keeps the record, like all lines without a key.
    let output = bench.run("dedup --csv --in-place --on-error keep open c");
    assert_contains_all(
        &text(&output.stderr),
        &["lines without a key: 1; the first is \"open\", line 3: a quoted field is not closed"],
    );
    assert_eq!((output.status.code(), text(&bench.read("open"))), (Some(0), text(&open[4..])));
}

/// If records span lines, removing repeated lines would damage records.
#[test]
fn files_with_multiline_records_are_not_replaced() {
    let warc: &[u8] = b"WARC/1.0\r\nWARC-Type: warcinfo\r\n\r\n";
    let open: &[u8] = b"a,\"x\ny\"\nb,\"x\ny\"\n";
    // The quoted newline is beyond the part of the file that is searched for hints.
    let late = [&b"a,b\n".repeat(100_000)[..], open].concat();
    let table = &open.iter().map(|&byte| if byte == b',' { b'\t' } else { byte }).collect::<Vec<_>>()[..];
    let bench = Bench::new(&[
        ("first", b"a\na\n"),
        ("w", warc),
        ("w.gz", &gzip(warc)),
        ("open.csv", open),
        ("open.csv.gz", &gzip(open)),
        ("late.csv", &late),
        ("open.tsv", table),
    ]);
    let csv = ["quoted fields of \"open.csv", "give --csv, or write to another file"];
    for (line, why) in [
        ("dedup --in-place first w", ["\"w\" is a WARC file", "convert each record to a line"]),
        ("dedup -q --in-place first w.gz", ["\"w.gz\" is a WARC", "with -o"]),
        ("dedup -o w first w", ["\"w\" is a WARC file", "convert each record to a line"]),
        ("corpus --in-place --on-error skip first w", ["\"w\" is a WARC file", "convert each record to a line"]),
        ("dedup --in-place first open.csv", csv),
        ("dedup -q --in-place first open.csv.gz", csv),
        ("dedup --in-place --header -d , -f a first open.csv", csv),
        ("dedup -o open.csv first open.csv", csv),
        ("dedup --in-place first late.csv", ["quoted fields of \"late.csv\"", "give --csv, or"]),
        ("dedup --in-place first open.tsv", ["quoted fields of \"open.tsv\"", "give --csv -d '\\t', or"]),
    ] {
        let before = fs::read_dir(bench.0.path()).unwrap().count();
        let contents =
            || ["first", "w", "w.gz", "open.csv", "open.csv.gz", "late.csv", "open.tsv"].map(|name| bench.read(name));
        let was = contents();
        assert_contains_all(&bench.run_err(line), &[&["nothing is replaced: "], &why[..]].concat());
        assert!(contents() == was && fs::read_dir(bench.0.path()).unwrap().count() == before, "{line}");
    }
    // Quotes within text are harmless, and so are quoted newlines with --csv.
    bench.write("inches.csv", b"5\" disk,a\nb,c\nb,c\n");
    bench.run_ok("dedup --in-place inches.csv");
    assert_eq!(bench.read("inches.csv"), b"5\" disk,a\nb,c\n");
    bench.run_ok("dedup --in-place --csv open.csv");
    bench.run_ok("dedup --csv -o open.csv first open.csv");
    assert_eq!(bench.read("open.csv"), [b"a\n", open].concat());
    // If the input is not replaced, a warning is enough.
    let output = bench.run("dedup -o o open.tsv");
    assert_eq!(output.status.code(), Some(0));
    assert_contains_all(&text(&output.stderr), &["warning: quoted fields of \"open.tsv\""]);
}

/// Returns the complete lines of a truncated gzip file.
fn decoded_part(bytes: &[u8]) -> Vec<u8> {
    let (mut lines, _) = decode("x.gz", bytes);
    lines.truncate(lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
    lines
}

/// Starts a run that has read `all` and waits for the rest of a pipe.
fn start_waiting_run(bench: &Bench) -> (RunningCommand, File) {
    let running = RunningCommand::new(bench.command("dedup -o all all fifo"));
    let mut fifo = File::options().write(true).open(bench.path("fifo")).unwrap();
    fifo.write_all(b"c\n").unwrap();
    wait_for(|| bench.path(".bloomline-all.part").exists());
    (running, fifo)
}

#[cfg(unix)]
#[test]
fn signals_leave_the_old_contents() {
    let bench = Bench::new(&[("all", b"a\nb\na\n")]);
    bench.fifo("fifo");
    for (signal, code) in [("INT", 130), ("TERM", 143), ("KILL", 0)] {
        let (running, fifo) = start_waiting_run(&bench);
        running.signal(signal);
        let ended = running.end();
        assert!(ended.0 == Some(code) || signal == "KILL", "{ended:?}");
        assert_eq!(bench.read("all"), b"a\nb\na\n");
        // Only a killed run leaves its partial file.
        assert_eq!(bench.path(".bloomline-all.part").exists(), signal == "KILL");
        drop(fifo);
    }
    // The next assertion waits until the run creates this file.
    fs::remove_file(bench.path(".bloomline-all.part")).unwrap();
    let (running, fifo) = start_waiting_run(&bench);
    for line in ["dedup -o all all", "dedup --in-place all", "dedup -o all fifo"] {
        if line.ends_with("all") {
            assert_contains_all(&bench.run_err(line), &["\"all\"", "another run is writing to it"]);
        }
    }
    drop(fifo);
    assert_eq!(running.end(), (Some(0), vec![], String::new()));
    assert_eq!(bench.read("all"), b"a\nb\nc\n");
    assert_only_files(&bench, &["all", "fifo"]);
}

#[cfg(unix)]
#[test]
fn files_changed_by_another_program_are_not_replaced() {
    let bench = Bench::new(&[("all", b"a\nb\na\n")]);
    bench.fifo("fifo");
    let (running, fifo) = start_waiting_run(&bench);
    File::options().append(true).open(bench.path("all")).unwrap().write_all(b"late\n").unwrap();
    drop(fifo);
    let (code, _, stderr) = running.end();
    assert_contains_all(&stderr, &["cannot replace \"all\"", "another program changed it"]);
    assert_eq!((code, text(&bench.read("all"))), (Some(2), "a\nb\na\nlate\n".to_owned()));
    assert_only_files(&bench, &["all", "fifo"]);
}

/// The disk has no space for the new contents.
#[cfg(unix)]
#[test]
fn full_disks_leave_the_old_contents() {
    let lines = [url_lines(0..40_000), url_lines(0..40_000)].concat();
    for line in ["dedup --in-place small all", "dedup -o all small all"] {
        let bench = Bench::new(&[("small", b"a\na\n"), ("all", &lines)]);
        let output = with_ulimit("-f 100", &bench.command(line)).output().unwrap();
        assert_contains_all(&expect_failure(&output), &["cannot write to \"all\"", "File too large"]);
        assert!(bench.read("all") == lines);
        assert_only_files(&bench, &["small", "all"]);
    }
}

/// Each file keeps its header, and --keep selects the record that is kept.
#[test]
fn csv_tables_are_replaced() {
    let bench = Bench::new(&[
        ("a", b"id,x\n1,a\n1,\"a\n\"\n"),
        ("b", b"x,id\nb,1\nb,2\n"),
        ("c", b"id,x\n2,c"),
        ("d", b"no,x\n1,a\n"),
    ]);
    bench.run_ok("dedup --in-place --csv --header -f id a b c");
    let read = |name: &str| text(&bench.read(name));
    assert_eq!((read("a"), read("b"), read("c")), ("id,x\n1,a\n".into(), "x,id\nb,2\n".into(), "id,x\n".into()));
    // A file without the column counts as broken.
    let output = bench.run("dedup -q --in-place --csv --header -f id --on-error skip d a");
    assert_eq!((output.status.code(), read("d"), read("a")), (Some(1), "no,x\n1,a\n".into(), "id,x\n1,a\n".into()));
    bench.write("c", b"id,x\n1,new\n3,c\n");
    bench.run_ok("dedup --keep last --csv --header -f id -o a a c");
    assert_eq!(read("a"), "id,x\n1,new\n3,c\n");
    for option in ["-c", "--repeated", "--unique"] {
        assert_contains_all(&bench.run_err(&format!("dedup {option} -o a a")), &["\"a\"", "also an input"]);
        assert_contains_all(
            &bench.run_err(&format!("dedup {option} --in-place a")),
            &["--in-place", "cannot be used with"],
        );
    }
    assert_contains_all(&bench.run_err("dedup --keep last --in-place a"), &["--in-place", "--keep"]);
}

#[cfg(unix)]
#[test]
fn corpora_are_replaced() {
    let document = |text: &str| format!("{{\"text\":\"{text}\"}}\n");
    let long = |word: &str| (0..20).map(|i| format!("{word}{i}")).collect::<Vec<_>>().join(" ");
    let (first, second) = (document(&format!("{}\\n{}", long("a"), long("b"))), document(&long("c")));
    let third = document(&format!("{}\\n{}", long("b"), long("d")));
    let bench = Bench::new(&[("x", (first.clone() + &second).as_bytes()), ("y", (second.clone() + &third).as_bytes())]);
    let before = inode(&bench, "x");
    bench.run_ok("corpus --in-place x y");
    assert_eq!((text(&bench.read("x")), inode(&bench, "x")), (first.clone() + &second, before));
    let cut = text(&bench.read("y"));
    assert!(cut.contains("d19") && !cut.contains("b1") && !cut.contains("c1"), "{cut}");
    bench.run_ok("corpus -o x x y");
    assert_eq!(text(&bench.read("x")), first + &second + &cut);
    bench.run_ok("corpus --annotate --in-place x");
    assert!(text(&bench.read("x")).contains("\"duplicate\":false"));
}
