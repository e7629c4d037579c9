//! What lines are read from: files, pipes and standard input, compressed or not, whole or broken.

use crate::common::{Bench, clean, ended, failed, fed, number, refused, stats, tells, text};
use crate::corpus::{gzip, large, model, zstd};
use crate::live::Live;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

#[test]
fn compressed_inputs_are_known_by_their_contents() {
    let skippable = |magic: u8| [&[magic, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"a\nx"].concat();
    let members = [gzip(b"a\nb"), gzip(b"\nc\n"), gzip(b""), gzip(b"a\nd")].concat();
    let frames = [skippable(0x50), zstd(b"a\nb"), zstd(b"\nc\n"), skippable(0x5F), zstd(b""), zstd(b"a\nd")].concat();
    let bench = Bench::new(&[
        ("members.txt", &members),
        ("frames.gz", &frames),
        ("plain.zst", b"a\nb\nc\na\nd"),
        ("empty.gz", &gzip(b"")),
        ("empty.zst", &zstd(b"")),
    ]);
    for name in ["members.txt", "frames.gz", "plain.zst"] {
        for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 4 "] {
            assert_eq!(bench.clean(&format!("dedup {options}{name}")), "a\nb\nc\nd\n", "{options}{name}");
            assert_eq!(ended(bench.run_with(&format!("dedup {options}-"), name), 0), "a\nb\nc\nd\n");
        }
        assert_eq!(clean(fed(bench.command("dedup"), &bench.read(name))), b"a\nb\nc\nd\n");
    }
    assert_eq!(bench.clean("dedup members.txt empty.gz frames.gz empty.zst plain.zst"), "a\nb\nc\nd\n");
    assert_eq!(bench.clean("dedup empty.gz"), "");
}

#[test]
fn a_compressed_input_of_build_is_not_called_irregular() {
    let bench = Bench::new(&[("a.gz", &gzip(b"a\n"))]);
    for line in ["build -o f a.gz", "dedup --when-full warn a.gz"] {
        let message = bench.refused(line);
        tells(&message, &["\"a.gz\"", "compressed", "-n"]);
        assert!(!message.contains("not a regular file"), "{message}");
    }
}

#[test]
fn standard_input_can_be_a_pipe_or_a_file() {
    let input = large();
    let bench = Bench::new(&[("a", b"first\nb"), ("large", &input)]);
    assert!(clean(fed(bench.command("dedup -n 300000"), &input)) == model(&[&input]));
    assert_eq!(clean(fed(bench.command("dedup -n 10 a -"), b"a\nb\nc")), b"first\nb\na\nc\n");

    // Redirected from a file it is sized, and read from where it stands.
    let mut file = File::open(bench.path("large")).unwrap();
    let mut start = [0; 100_000];
    file.read_exact(&mut start).unwrap();
    let output = bench.command("dedup --stats=json").stdin(file).output().unwrap();
    assert!(output.stdout == model(&[&input[start.len()..]]));
    let stats = stats(&output);
    let keys_at_1e6 = number(&stats, "memory_bytes") * 8.0 / 41.08;
    assert!((1.0..1.1).contains(&(keys_at_1e6 / number(&stats, "lines"))), "{stats}");
}

#[test]
fn a_fifo_is_opened_once() {
    let bench = Bench::new(&[("a", b"a\nb\n")]);
    let fifo = bench.fifo("fifo");
    thread::scope(|scope| {
        scope.spawn(|| fs::write(fifo, b"b\nc"));
        assert_eq!(bench.clean("dedup -n 3 a fifo"), "a\nb\nc\n");
    });
}

#[test]
fn unreadable_inputs_are_refused_before_any_output() {
    let bench = Bench::new(&[("a", b"a\n"), ("secret", b"secret\n")]);
    for (bad, why) in [("missing", "No such file"), (".", "directory")] {
        tells(&bench.refused(&format!("dedup a {bad}")), &[&format!("\"{bad}\""), why]);
    }
    let stdin = OwnedFd::from(File::open(bench.0.path()).unwrap());
    let output = bench.command("dedup -n 1").stdin(stdin).output().unwrap();
    tells(&refused(output), &["standard input", "directory"]);

    fs::set_permissions(bench.path("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read it all the same.
    if File::open(bench.path("secret")).is_err() {
        tells(&bench.refused("dedup a secret"), &["\"secret\"", "Permission denied"]);
    }
    tells(&bench.refused("dedup two\nlines"), &[r#""two\nlines""#, "No such file"]);
}

#[test]
fn an_input_that_fails_midway_is_an_error_after_what_is_right() {
    // The address 0 of a process cannot be read.
    let broken = "/proc/self/mem";
    if !Path::new(broken).exists() {
        eprintln!("SKIPPED: no {broken} here");
        return;
    }
    let bench = Bench::new(&[("a", b"a\nb\na\n"), ("b", b"c\n")]);
    for threads in ["1", "4"] {
        let output = bench.run(&format!("dedup -n 3 -j {threads} --chunk-size 2 a {broken} b"));
        assert_eq!(output.stdout, b"a\nb\n");
        tells(&failed(&output), &[&format!("cannot read \"{broken}\" after line 0: Input/output error")]);
    }
    tells(&bench.refused(&format!("dedup {broken}")), &[&format!("\"{broken}\""), "Input/output error", "-n"]);
}

/// Inputs that break after `a`, `b`, `a` and a piece of a line, `part`, and how.
fn broken_inputs() -> [(&'static str, Vec<u8>, &'static str); 5] {
    const READABLE: &[u8] = b"a\nb\na\npart";
    const REST: &[u8] = b"of a line\nthat\nis\nlost\n";
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(READABLE).unwrap();
    // Up to here all can be decoded. The byte after it is the first of a block, and no more than its kind.
    encoder.flush().unwrap();
    let flushed = encoder.get_ref().len();
    encoder.write_all(REST).unwrap();
    let truncated_gzip = encoder.finish().unwrap()[..=flushed].to_vec();

    let mut encoder = zstd::Encoder::new(Vec::new(), 0).unwrap();
    encoder.write_all(READABLE).unwrap();
    encoder.flush().unwrap();
    let flushed = encoder.get_ref().len();
    encoder.write_all(REST).unwrap();
    let truncated_zstd = encoder.finish().unwrap()[..=flushed].to_vec();

    // The last block, of the kind 3, which there is not (RFC 1951, 3.2.3), after the ten bytes of the header.
    let mut member = gzip(REST);
    member[10] = 0b111;
    let corrupt_member = [gzip(READABLE), member, gzip(b"never\n")].concat();

    let mut wrong_sum = gzip(READABLE);
    let length = wrong_sum.len();
    wrong_sum[length - 8] ^= 1;
    [
        ("truncated gzip", truncated_gzip, "incomplete"),
        ("truncated zstd", truncated_zstd, "incomplete"),
        ("corrupt member", corrupt_member, "corrupt"),
        ("second member without its header", [gzip(READABLE), gzip(REST)[..5].to_vec()].concat(), "unexpected end"),
        ("wrong checksum", wrong_sum, "checksum"),
    ]
}

#[test]
fn broken_inputs_end_the_run_or_are_read_as_far_as_they_go() {
    for (what, bytes, why) in broken_inputs() {
        let bench = Bench::new(&[("first", b"x\na"), ("bad", &bytes), ("last", b"b\nc\n")]);
        for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 5 "] {
            let run =
                |on_error: &str| bench.run(&format!("dedup -n 100 {options}--on-error {on_error} first bad last"));
            let output = run("fail");
            assert_eq!(text(&output.stdout), "x\na\nb\n", "{what}");
            tells(&failed(&output), &["cannot read \"bad\" after line 3: ", why]);
            // The piece that is kept is the fourth line.
            for (on_error, expected, line) in [("skip", "x\na\nb\nc\n", 3), ("keep", "x\na\nb\npart\nc\n", 4)] {
                let output = run(on_error);
                assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), expected), "{what}");
                let warning = text(&output.stderr);
                assert_eq!((warning.matches("warning").count(), warning.matches('\n').count()), (1, 1), "{warning}");
                tells(&warning, &[&format!("\"bad\" after line {line}: "), why]);
            }
        }
        // From a pipe as from a file.
        let output = fed(bench.command("dedup first - last"), &bytes);
        assert_eq!(text(&output.stdout), "x\na\nb\n", "{what}");
        assert!(failed(&output).contains("cannot read standard input after line 3: "));

        bench.write("f", b"whatever was there");
        assert!(bench.refused("build -n 100 -o f first bad last").contains("\"bad\" after line 3: "));
        assert_eq!(bench.read("f"), b"whatever was there");
        let output = bench.run("build -n 100 --on-error skip -o f first bad last");
        tells(&text(&output.stderr), &["warning", "\"bad\" after line 3: ", why]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
        assert_eq!(bench.clean("check -f f first last"), "x\na\nb\nc\n");
        let output = bench.run("check -f f first bad last");
        assert_eq!(text(&output.stdout), "x\na\na\nb\na\n", "{what}");
        assert!(failed(&output).contains("\"bad\" after line 3: "));
        let output = bench.run("check -f f --on-error skip first bad last");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "x\na\na\nb\na\nb\nc\n"));
        assert!(text(&output.stderr).contains("\"bad\" after line 3: "));
    }
}

#[test]
fn inputs_that_are_broken_from_the_start_have_no_line() {
    for bytes in [&gzip(b"a\n")[..2], &gzip(b"a\n")[..9], &zstd(b"a\n")[..4], &zstd(b"a\n")[..6]] {
        let bench = Bench::new(&[("bad", bytes), ("last", b"b\n")]);
        let output = bench.run("dedup -n 10 bad last");
        assert!(failed(&output).contains("\"bad\" after line 0: "), "{bytes:?}");
        assert_eq!(output.stdout, b"");
        for on_error in ["skip", "keep"] {
            let output = bench.run(&format!("dedup -n 10 --on-error {on_error} bad last"));
            assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"b\n"[..]), "{bytes:?}");
            assert!(text(&output.stderr).contains("\"bad\" after line 0: "));
        }
    }
}

/// The piece of a line that a broken input ends with may be longer than all that comes after.
#[test]
fn a_live_input_after_a_broken_one_is_read_to_its_end() {
    let bench = Bench::new(&[("broken", &gzip(b"a long first piece")[..30])]);
    for (input, expected) in [("a\n", "a\n"), ("b\na\nb\n", "b\na\n"), ("", "")] {
        let output = fed(bench.command("dedup --on-error skip broken -"), input.as_bytes());
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), expected));
        tells(&text(&output.stderr), &["\"broken\" after line 0: "]);
    }
}

#[test]
fn an_input_that_vanishes_is_broken_from_the_start() {
    for (on_error, code, rest) in [("fail", 2, &[][..]), ("skip", 0, &["c"]), ("keep", 0, &["c"])] {
        let bench = Bench::new(&[("gone", b"b\n"), ("last", b"a\nc\n")]);
        let mut live = Live::new(bench.command(&format!("dedup --on-error {on_error} - gone last")));
        live.say(b"a\n");
        assert_eq!(live.line(), "a");
        fs::remove_file(bench.path("gone")).unwrap();
        live.hang_up();
        let (ended, lines, said) = live.end();
        assert_eq!(
            (ended, &lines[..]),
            (Some(code), &rest.iter().map(|&line| line.to_owned()).collect::<Vec<_>>()[..])
        );
        assert!(said.contains("cannot read \"gone\" after line 0: ") && said.contains("No such file"), "{said}");
    }
}
