//! Inputs: files, pipes and standard input, with and without compression, complete and broken.

use crate::common::{
    Bench, assert_contains_all, expect_exit_code, expect_failure, expect_refusal, expect_success, number,
    report_skipped, run_with_stdin, stats, text, url_lines, with_ulimit,
};
use crate::corpus::{bzip2, distinct_lines, gzip, large, xz, zstd};
use crate::live::RunningCommand;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::{fd::OwnedFd, unix::fs::PermissionsExt};
use std::path::Path;
use std::process::Output;
use std::thread;

/// The output of `printf 'a\\nb\\nc\\na\\nd\\n' | bzip2`.
const BY_BZIP2: &[u8] = &[
    0x42, 0x5A, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x7E, 0xAA, 0xBE, 0xA2, 0x00, 0x00, 0x02, 0xC1, 0x00,
    0x00, 0x10, 0x3C, 0x00, 0x20, 0x00, 0x21, 0x83, 0x41, 0x9A, 0x00, 0xC4, 0x1A, 0xE2, 0xEE, 0x48, 0xA7, 0x0A, 0x12,
    0x0F, 0xD5, 0x57, 0xD4, 0x40,
];

#[test]
fn compression_is_detected_by_contents() {
    let skippable = |magic: u8| [&[magic, 0x2A, 0x4D, 0x18, 3, 0, 0, 0][..], b"a\nx"].concat();
    let members = [gzip(b"a\nb"), gzip(b"\nc\n"), gzip(b""), gzip(b"a\nd")].concat();
    let frames = [skippable(0x50), zstd(b"a\nb"), zstd(b"\nc\n"), skippable(0x5F), zstd(b""), zstd(b"a\nd")].concat();
    let streams = [&xz(b"a\nb")[..], &xz(b"\nc\n"), &[0; 4], &xz(b""), &xz(b"a\nd"), &[0; 8]].concat();
    let bench = Bench::new(&[
        ("members.txt", &members),
        ("frames.gz", &frames),
        ("streams.gz", &streams),
        ("streams.xz", &[bzip2(b"a\nb"), bzip2(b"\nc\n"), bzip2(b""), bzip2(b"a\nd")].concat()),
        ("by_bzip2", BY_BZIP2),
        ("plain.zst", b"a\nb\nc\na\nd"),
        ("empty.gz", &gzip(b"")),
        ("empty.zst", &zstd(b"")),
        ("empty.xz", &xz(b"")),
        ("empty.bz2", &bzip2(b"")),
    ]);
    for name in ["members.txt", "frames.gz", "streams.gz", "streams.xz", "by_bzip2", "plain.zst"] {
        for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 4 "] {
            assert_eq!(bench.run_ok(&format!("dedup {options}{name}")), "a\nb\nc\nd\n", "{options}{name}");
            assert_eq!(expect_exit_code(bench.run_with(&format!("dedup {options}-"), name), 0), "a\nb\nc\nd\n");
        }
        assert_eq!(expect_success(run_with_stdin(bench.command("dedup"), &bench.read(name))), b"a\nb\nc\nd\n");
    }
    let all = "members.txt empty.gz frames.gz empty.zst streams.gz empty.xz streams.xz empty.bz2 plain.zst";
    assert_eq!(bench.run_ok(&format!("dedup {all}")), "a\nb\nc\nd\n");
    for name in ["empty.gz", "empty.zst", "empty.xz", "empty.bz2"] {
        assert_eq!(bench.run_ok(&format!("dedup {name}")), "", "{name}");
    }
}

/// A zstd frame with a window of 2 GiB (RFC 8878, 3.1.1), as `zstd --long=31` writes it for large inputs.
#[test]
fn the_longest_zstd_window_is_supported() {
    let (contents, window) = (b"a\nb\na\n", (31 - 10) << 3);
    let block = (contents.len() << 3 | 1).to_le_bytes();
    let frame = [&[0x28, 0xB5, 0x2F, 0xFD, 0, window], &block[..3], contents].concat();
    let bench = Bench::new(&[("a", &frame)]);
    assert_eq!(bench.run_ok("dedup -n 10 a"), "a\nb\n");
}

/// Tape drives pad files with zeros.
#[test]
fn zeros_after_gzip_are_ignored() {
    let padded = |zeros: usize| [&gzip(b"a\n")[..], &gzip(b"b\na\n"), &vec![0; zeros]].concat();
    for zeros in [1, 10_000, 300_000] {
        let bench = Bench::new(&[("padded", &padded(zeros)), ("b", b"c\n")]);
        assert_eq!(bench.run_ok("dedup -n 10 padded b"), "a\nb\nc\n", "{zeros}");
        assert_eq!(
            expect_success(run_with_stdin(bench.command("dedup -n 10"), &bench.read("padded"))),
            b"a\nb\n",
            "{zeros}"
        );
    }
    for (after, why) in [
        ([&padded(512)[..], &gzip(b"c\n")].concat(), "the zeros at the end"),
        ([&padded(512)[..], b"c\n"].concat(), "the zeros at the end"),
        ([&gzip(b"a\nb\na\n")[..], b"no gzip at all"].concat(), "invalid gzip header"),
    ] {
        let output = Bench::new(&[("a", &after)]).run("dedup -n 10 a");
        assert_eq!(output.stdout, b"a\nb\n");
        assert_contains_all(&expect_failure(&output), &["cannot read \"a\" after line 3: ", why]);
    }
}

#[test]
fn unsupported_formats_are_refused() {
    let tar = [&b"a.txt"[..], &[0; 252], b"ustar\x0000", &[0; 248], b"a\n"].concat();
    for (format, head) in [
        ("zip", &b"PK\x03\x04\n"[..]),
        ("7z", b"7z\xBC\xAF\x27\x1C\n"),
        ("compress", b"\x1F\x9D\x90\n"),
        ("legacy lz4", b"\x02\x21\x4C\x18\n"),
        // A build that reads Parquet reports a truncated file instead.
        #[cfg(not(feature = "parquet"))]
        ("Parquet", b"PAR1\x15\x04\x15\x10\x15\x14L\x15\x02\x15\0\x12\0\0\n"),
        ("Arrow", b"ARROW1\0\0\xFF\xFF\xFF\xFF\n"),
        ("Avro", b"Obj\x01\x04\x14avro.codec\x08null\n"),
        ("ORC", b"ORC\x1D\0\0\n"),
        ("SQLite", b"SQLite format 3\0\x10\0\n"),
        ("tar", &tar),
        ("PDF", b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n"),
        ("UTF-16", b"\xFF\xFEa\0\n\0"),
        ("UTF-16", b"a\0 \0l\0i\0n\0e\0 \0w\0i\0t\0h\0o\0u\0t\0 \0a\0n\0 \0e\0n\0d\0"),
        ("a bloomline filter", b"\x89BLOOM\r\n\x02\0\0\0"),
    ] {
        let bench = Bench::new(&[("a", b"a\n"), ("bad", head), ("o", b"what was there\n"), ("bad.gz", &gzip(head))]);
        let (why, advice) = match format {
            "tar" => ("it is a tar archive".to_owned(), "tar -xOf"),
            "Parquet" => ("it is Parquet, which this build does not read".to_owned(), "--features parquet"),
            _ => (format!("it is in the format of {format}, which is not supported"), "gzip, zstd, xz, bzip2 or lz4"),
        };
        assert_contains_all(&bench.run_err("dedup -o o a bad"), &["\"bad\": ", &why, advice]);
        assert_eq!(bench.read("o"), b"what was there\n");
        let output = run_with_stdin(bench.command("dedup -n 10 a -"), head);
        assert_eq!(text(&output.stdout), "a\n");
        assert_contains_all(&expect_failure(&output), &["standard input after line 0: ", &why]);
        let output = bench.run("dedup --on-error skip bad a");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "a\n"));
        assert_contains_all(&text(&output.stderr), &["warning: cannot open \"bad\": ", &why, "it is skipped"]);
        // Within compressed data, the format is detected during reading.
        assert_contains_all(
            &bench.run_err("dedup bad.gz"),
            &["cannot read \"bad.gz\" after line 0: ", &why, "--binary"],
        );
        for on_error in ["skip", "keep"] {
            let output = bench.run(&format!("dedup -q -j 1 --chunk-size 1 --on-error {on_error} bad.gz a"));
            assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "a\n"));
        }
    }
}

fn lz4(contents: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(contents).unwrap();
    encoder.finish().unwrap()
}

type Code = fn(&[u8]) -> Vec<u8>;

const CODINGS: [(&str, Code); 5] = [("gzip", gzip), ("zstd", zstd), ("xz", xz), ("bzip2", bzip2), ("lz4", lz4)];

/// Compressed bytes are not lines, in any combination of formats.
#[test]
fn compressed_data_within_compressed_data_is_refused() {
    let lines = b"a\nb\na\n";
    // The output of `printf 'a\nb\n' | xz --format=lzma`, first bytes of framed snappy, lzip and compress, and a zlib stream.
    let others: [(&str, &[u8]); 6] = [
        ("lzma", b"]\0\0\x80\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x000\x82\x88m4d%\x1F\xFF\xFA9\xC0\0"),
        ("framed snappy", b"\xFF\x06\0\0sNaPpY\x01\x08\0\0\0\0\0\0a\nb\n"),
        ("lzip", b"LZIP\x01\x0C\0\n"),
        ("compress", b"\x1F\x9D\x90a\n"),
        ("zlib", b"x\x9CK\xE4J\xE2\x02\0\x02t\0\xD8"),
        ("UTF-16", b"\xFF\xFEa\0\n\0"),
    ];
    let bench = Bench::new(&[("a", b"a\n")]);
    for (outer, code) in CODINGS {
        for (inner, twice) in CODINGS {
            bench.write("twice", &code(&twice(lines)));
            let why = ["after line 0: ", &format!("it is compressed twice, first by {inner}; "), "--binary"];
            assert_contains_all(&bench.run_err("dedup -n 9 twice"), &why);
            let output = bench.run("dedup -n 9 --on-error skip twice a");
            assert_eq!((text(&output.stdout), output.status.code()), ("a\n".to_owned(), Some(1)), "{outer} {inner}");
            assert!(bench.run("dedup -n 9 --binary twice").stdout.starts_with(&twice(lines)[..4]), "{outer} {inner}");
        }
        assert_contains_all(
            &expect_refusal(run_with_stdin(bench.command("dedup"), &bench.read("twice"))),
            &["it is compressed twice, first by lz4"],
        );
        for (format, bytes) in others {
            bench.write("other", &code(bytes));
            assert_contains_all(
                &bench.run_err("dedup -n 9 other"),
                &["after line 0: ", &format!("it is in the format of {format}")],
            );
        }
    }
    for (format, bytes) in others {
        bench.write("other", bytes);
        assert_contains_all(
            &bench.run_err("dedup other"),
            &["\"other\": ", &format!("it is in the format of {format}")],
        );
    }
    // Brotli has no magic number.
    bench.write("a.br", b"\x8B\x01\x80a\nb\n\x03");
    assert_contains_all(&bench.run_err("dedup a.br"), &["\"a.br\": ", "it is in the format of brotli"]);
    for text in [&b"x^2\n"[..], b"BZh9\n", b"LZIP\n", b"]\n", b"x\xDA\n"] {
        for name in ["text", "text.br"] {
            bench.write(name, text);
            assert_eq!(expect_success(bench.run(&format!("dedup {name}"))), text);
        }
        bench.write("text", &gzip(text));
        assert_eq!(expect_success(bench.run("dedup text")), text);
    }
}

/// In concatenated files, each member, frame or stream may contain compressed data.
#[test]
fn compressed_data_within_a_later_member_is_refused() {
    let bench = Bench::new(&[("last", b"e\n")]);
    for (outer, code) in CODINGS {
        let join = |inner: &[u8]| [code(b"a\nb\n"), code(b""), code(inner), code(b"d\n")].concat();
        for (inner, twice) in CODINGS {
            bench.write("joined", &join(&twice(b"c\n")));
            let twice_by = format!("it is compressed twice, first by {inner}; ");
            for options in ["", "-j 1 --chunk-size 1 "] {
                let output = bench.run(&format!("dedup -n 9 {options}joined"));
                assert_eq!(text(&output.stdout), "a\nb\n", "{outer} {inner} {options}");
                assert_contains_all(&expect_failure(&output), &["\"joined\" after line 2: ", &twice_by, "--binary"]);
            }
            let output = bench.run("dedup -n 9 --on-error skip joined last");
            assert_eq!((text(&output.stdout), output.status.code()), ("a\nb\ne\n".to_owned(), Some(1)));
            let piped = run_with_stdin(bench.command("dedup -n 9"), &bench.read("joined"));
            assert_contains_all(
                &expect_failure(&piped),
                &["standard input after line 2: ", &format!("it is compressed twice, first by {inner}; ")],
            );
            let all = [b"a\nb\n", &twice(b"c\n")[..], b"d\n"].concat();
            assert!(
                expect_success(bench.run("dedup -n 9 --binary joined")) == distinct_lines(&[&all]),
                "{outer} {inner}"
            );
        }
        bench.write("joined", &join(b"PK\x03\x04\n"));
        assert_contains_all(
            &expect_failure(&bench.run("dedup -n 9 joined")),
            &["after line 2: ", "it is in the format of zip"],
        );
        // Text that begins like a magic number, and a magic number in the middle of a member.
        for lines in [&b"BZh9\n"[..], b"x^2\n", b"c\n\x1F\x8B\x08\n"] {
            bench.write("joined", &join(lines));
            assert_eq!(expect_success(bench.run("dedup -n 9 joined")), [b"a\nb\n", lines, b"d\n"].concat(), "{outer}");
        }
    }
}

/// All commands share the code that opens inputs, so one format is enough.
#[test]
fn all_commands_refuse_other_formats_without_binary() {
    let lines = b"PK\x03\x04\n";
    let bench = Bench::new(&[("a", b"a\n"), ("bad", lines), ("bad.gz", &gzip(lines))]);
    bench.run_ok("build -o f a");
    for line in ["build -o g bad", "check -s f bad", "corpus bad", "corpus --json-pointer /a -n 10 -o p bad.gz"] {
        assert_contains_all(&bench.run_err(line), &["it is in the format of zip"]);
    }
    for input in ["bad", "bad.gz"] {
        assert_eq!(expect_success(bench.run(&format!("dedup --binary {input}"))), lines);
    }
    assert_eq!(expect_success(run_with_stdin(bench.command("dedup --binary"), lines)), lines);
    bench.run_ok("build --binary -o g bad");
    assert_eq!(expect_success(bench.run("check --binary -s g bad")), lines);
}

/// A text file may have any name.
#[test]
fn binary_files_named_as_another_format_are_refused() {
    let bench =
        Bench::new(&[("a.parquet", b"a\nb\na\n"), ("b.tar", b""), ("c.orc", b"x\0\x01\n"), ("c", b"x\0\x01\n")]);
    assert_eq!(bench.run_ok("dedup a.parquet b.tar c"), "a\nb\nx\0\u{1}\n");
    assert_contains_all(&bench.run_err("dedup c.orc"), &["\"c.orc\": it is in the format of ORC", "--binary"]);
    assert_eq!(bench.run_ok("dedup --binary c.orc"), "x\0\u{1}\n");
}

#[test]
fn unopenable_inputs_are_skipped_on_request() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\na\n")]);
    fs::create_dir(bench.path("empty")).unwrap();
    for on_error in ["skip", "keep"] {
        let output = bench.run(&format!("dedup --on-error {on_error} --stats a missing empty b"));
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "a\nb\n"));
        let stderr = text(&output.stderr);
        assert_contains_all(
            &stderr,
            &["warning: cannot open \"missing\": No such file", "warning: the directory \"empty\" has no input files"],
        );
        assert_contains_all(&stderr, &["\ninputs left out  2\n"]);
        let output = bench.run(&format!("dedup -q --on-error {on_error} --stats=json a missing"));
        assert_eq!((output.status.code(), number(&stats(&output), "inputs_left_out")), (Some(1), 1.0));
        assert!(!text(&output.stderr).contains("missing"));
        let output = bench.run(&format!("build --on-error {on_error} --stats=json -o f a missing"));
        assert_eq!((output.status.code(), number(&stats(&output), "inputs_left_out")), (Some(1), 1.0));
        assert_contains_all(&text(&output.stderr), &["warning: cannot open \"missing\""]);
        assert_eq!(bench.run_ok("check -s f a"), "a\n");
        // No input is left.
        let output = bench.run(&format!("dedup --on-error {on_error} missing"));
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
    }
    let whole = bench.run("dedup --on-error skip --stats=json a b");
    assert_eq!((whole.status.code(), number(&stats(&whole), "inputs_left_out")), (Some(0), 0.0));
    // Skipped lines without a key do not change the exit code.
    assert_eq!(bench.run("dedup --on-error skip --field 2 a b").status.code(), Some(0));
    assert_contains_all(&bench.run_err("build -o new a missing"), &["\"missing\""]);
    assert!(!bench.path("new").exists());
}

/// A resumed run must have the same inputs as the first run.
#[test]
fn inputs_that_were_missing_before_are_refused_when_resumed() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\n")]);
    let line = "dedup -q --on-error skip -n 1 --when-full stop --state s -o o a late b";
    assert_contains_all(&bench.run_err(line), &["stopped at \"b\", line 1"]);
    bench.write("late", b"late\n");
    assert_contains_all(&bench.run_err(&format!("{line} --resume")), &["cannot resume", "/b\"", "/late\""]);
    assert_eq!(text(&bench.read("o")), "a\n");
}

/// The exit code and the statistics cover the whole run.
#[test]
fn broken_inputs_before_a_checkpoint_count_when_resumed() {
    let bench = Bench::new(&[("broken", &gzip(b"a\n")[..12]), ("b", b"b\n")]);
    let line = "dedup -q -n 1 --when-full stop --on-error skip --stats=json --state s -o o broken missing b";
    let output = bench.run(line);
    assert_eq!((output.status.code(), number(&stats(&output), "inputs_left_out")), (Some(1), 2.0));
    // The next run has another state, and its file of checkpoints is kept.
    bench.write("c", b"c\nd\n");
    let line = line.replace("s -o o", "t -o p") + " c";
    for resume in ["", " --resume"] {
        let output = bench.run(&format!("{line}{resume}"));
        assert_eq!((output.status.code(), number(&stats(&output), "inputs_left_out")), (Some(2), 2.0), "{resume}");
    }
}

/// Returns a gzip file with these bytes, followed by 100 MiB of one byte.
fn endless(start: &[u8], byte: u8) -> Vec<u8> {
    [gzip(start), gzip(&vec![byte; 5 << 20]).repeat(20)].concat()
}

/// A limit in KiB that suffices for the command and most of an endless line.
const LIMIT: u32 = 100_000;

/// Runs with a memory limit in KiB. All threads share one arena of the C library, because the limit counts the addresses
/// that each arena reserves.
#[cfg(target_os = "linux")]
fn run_within(bench: &Bench, kibibytes: u32, line: &str) -> Output {
    let mut command = with_ulimit(&format!("-v {kibibytes}"), &bench.command(line));
    command.env("MALLOC_ARENA_MAX", "1").output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn lines_larger_than_memory_are_reported() {
    let bench = Bench::new(&[("first", b"a\nb\na\n"), ("long", &endless(b"", 0)), ("last", b"c\n")]);
    let why = ["the next line has more than ", " bytes, and there is no memory for more"];
    for options in ["-n 100 -j 2", "-j 1", "-j 2 --field 1"] {
        let run = |on_error: &str| {
            let line = format!("dedup {options} --on-error {on_error} first long last");
            run_within(&bench, LIMIT, &line)
        };
        let output = run("fail");
        assert_eq!(text(&output.stdout), "a\nb\n", "{options}");
        let message = expect_failure(&output);
        assert_contains_all(&message, &["cannot read \"long\" after line 0: ", why[0], why[1]]);
        let bytes = message.split_once(why[0]).unwrap().1.split_once(' ').unwrap().0.parse::<u64>().unwrap();
        assert!((30 << 20..u64::from(LIMIT) << 10).contains(&bytes), "{message}");
        if !options.contains("field") {
            continue;
        }

        let output = run("skip");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "a\nb\nc\n"));
        assert_contains_all(&text(&output.stderr), &["warning: cannot read \"long\" after line 0: ", why[0], why[1]]);
        // The part of the line that fits in memory is kept.
        let output = run("keep");
        assert_eq!(output.status.code(), Some(1));
        assert!(output.stdout.len() > 30 << 20 && output.stdout.ends_with(b"\0\nc\n"), "{}", output.stdout.len());
    }
    let message = expect_failure(&run_within(&bench, LIMIT, "build -n 100 -j 2 -o f first long"));
    assert_contains_all(&message, &["cannot read \"long\" after line 0: ", why[0], why[1]]);
    assert!(!bench.path("f").exists());
}

/// The rest of the input is one record, which is limited by the memory.
#[cfg(target_os = "linux")]
#[test]
fn unclosed_quotes_stay_within_memory() {
    let bench = Bench::new(&[("open", &endless(b"a,\"b\n\"\n1,\"", b'x')), ("last", b"c,d\n")]);
    let why = "cannot read \"open\" after line 2: the next line has more than ";
    let run = |on_error: &str| {
        let line = format!("dedup -n 100 -j 2 --csv -f 2 --on-error {on_error} open last");
        run_within(&bench, LIMIT, &line)
    };
    let output = run("fail");
    assert_eq!(text(&output.stdout), "a,\"b\n\"\n");
    assert_contains_all(&expect_failure(&output), &[why]);
    let output = run("skip");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "a,\"b\n\"\nc,d\n"));
    assert_contains_all(&text(&output.stderr), &[why]);
    let output = run("keep");
    assert!(output.stdout.len() > 30 << 20 && output.stdout.ends_with(b"x\nc,d\n"), "{}", output.stdout.len());
}

/// Each limit leaves another amount of memory after the line.
#[cfg(target_os = "linux")]
#[test]
fn skipped_lines_free_their_memory() {
    let bench = Bench::new(&[("last", b"c\n")]);
    File::create(bench.path("long")).unwrap().set_len(200 << 20).unwrap();
    for kibibytes in (60_000..LIMIT).step_by(8_000) {
        let output = run_within(&bench, kibibytes, "dedup -j 1 -n 100 --on-error skip long last");
        let stderr = text(&output.stderr);
        assert_eq!(
            (output.status.code(), &*output.stdout, stderr.matches('\n').count()),
            (Some(1), &b"c\n"[..], 1),
            "{stderr}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn keys_larger_than_memory_are_reported() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"{\"a\":\"b\"}\n{\"a\":\"\\n").unwrap();
    io::copy(&mut io::repeat(b'A').take(25 << 20), &mut encoder).unwrap();
    encoder.write_all(b"\"}\n{\"a\":\"c\"}\n").unwrap();
    let bench = Bench::new(&[("long", &encoder.finish().unwrap())]);
    for options in ["--ignore-case", "--json-pointer /a", "--json-pointer /a --normalize url"] {
        let run = |on_error: &str| {
            let line = format!("dedup -j 1 -n 100 {options} --on-error {on_error} long");
            run_within(&bench, 110_000, &line)
        };
        if !options.contains("url") {
            let output = run("fail");
            assert_eq!(text(&output.stdout), "{\"a\":\"b\"}\n", "{options}");
            assert_contains_all(
                &expect_failure(&output),
                &["no key in \"long\", line 2: ", "there is no memory for the key of a line of 26214410 bytes"],
            );
            let output = run("skip");
            assert_eq!(
                (output.status.code(), text(&output.stdout).as_str()),
                (Some(0), "{\"a\":\"b\"}\n{\"a\":\"c\"}\n")
            );
        }
        assert_eq!(run("keep").status.code(), Some(0), "{options}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn filters_larger_than_memory_are_reported() {
    let bench = Bench::new(&[("a", b"a\n")]);
    for line in ["dedup -n 100000000 a", "dedup --memory 5G a", "build -n 100000000 -o f a"] {
        let message = expect_failure(&run_within(&bench, LIMIT, line));
        assert_contains_all(&message, &[" bytes of memory for the filter", "-p", "-n", "--memory"]);
    }
    bench.run_ok("build --no-shrink -n 25000000 -o f a");
    for line in ["dedup --state f a", "check -s f a", "build --append -o f a", "info f"] {
        let message = expect_failure(&run_within(&bench, LIMIT, line));
        assert_contains_all(&message, &["cannot load the filter \"f\": ", "memory"]);
    }
}

/// Whatever finds no memory: a thread, a buffer, a compressor, the filter.
#[cfg(target_os = "linux")]
#[test]
fn too_little_memory_is_an_error() {
    let lines = url_lines(0..200_000);
    let texts: String = (0..20_000).map(|i| format!("{{\"text\":\"a b c d e f g h i j k l m {i}\"}}\n")).collect();
    let bench = Bench::new(&[("a", &lines), ("a.zst", &zstd(&lines)), ("texts", texts.as_bytes())]);
    let commands = [
        "dedup -j 8 a",
        "dedup -j 8 a.zst",
        "dedup -j 8 --exact a",
        "dedup -j 8 -c a",
        "dedup -j 8 -n 10M -s s -o o a",
        "dedup -j 8 --compress zstd:3 a",
        "dedup -j 8 --compress bzip2 a",
        "dedup -j 8 --compress xz:9 a",
        "in -j 8 a -- a",
        "corpus -j 8 texts",
        "corpus -j 8 --near 0.8 texts",
    ];
    // The program itself takes address space, more with all features.
    let program = fs::metadata(env!("CARGO_BIN_EXE_bloomline")).unwrap().len() >> 10;
    for command in commands {
        for limit in [10_000, 35_000, 75_000, 175_000] {
            let mut limited = with_ulimit(&format!("-v {}", program + limit), &bench.command(command));
            // Rust can wait for itself if it lacks memory while it prints a backtrace.
            let output = limited.env_remove("RUST_BACKTRACE").output().unwrap();
            let (code, stderr) = (output.status.code(), String::from_utf8_lossy(&output.stderr));
            assert!(matches!(code, Some(0 | 2)), "{command} in {limit}: {}, {stderr}", output.status);
            // Rust and the encoder of bzip2 report some failures themselves, above the command's sentence.
            let is_reported = stderr.lines().any(|line| {
                line.starts_with("bloomline: ") && ["memory", "thread"].iter().any(|cause| line.contains(cause))
            });
            assert!(code == Some(0) || is_reported, "{command} in {limit}: {stderr}");
            ["s", "s.resume", "o"].iter().for_each(|name| _ = fs::remove_file(bench.path(name)));
        }
    }
}

/// The size of the filter is estimated from a sample of each input.
#[test]
fn line_counts_of_compressed_inputs_are_estimated() {
    // The input is longer than the samples.
    let mut input = large();
    input.truncate(4 << 20);
    let many: Vec<(String, Vec<u8>)> =
        (0..200).map(|i| (format!("m{i:03}.gz"), gzip(&url_lines(50 * i..50 * i + 50)))).collect();
    let mut bench =
        Bench::new(&[("a.gz", &gzip(&input)), ("a.zst", &zstd(&input)), ("a.bz2", &bzip2(&input)), ("a", &input)]);
    bench.write("a.xz", &xz(&input));
    let names: Vec<&str> = many.iter().map(|(name, _)| &**name).collect();
    many.iter().for_each(|(name, bytes)| bench.write(name, bytes));
    let several = ["a.gz a a.zst", &names.join(" ")];
    for inputs in ["a.gz", "a.zst", "a.xz", "a.bz2", several[0], several[1]] {
        let stats = stats(&bench.run(&format!("dedup --stats=json -o o {inputs}")));
        let keys_at_1e6 = number(&stats, "memory_bytes") * 8.0 / 41.08;
        // Later lines are longer, so the estimate from the head is too high; 60 bits a distinct line are 1.46 times 41.
        let share = keys_at_1e6 / number(&stats, "unique");
        assert!((0.98..1.46).contains(&share), "{inputs}: {share}");
        if inputs.contains(' ') {
            bench.run_ok(&format!("build --no-shrink -o f {inputs}"));
            // The command would warn of an overfull filter.
            bench.run_ok(&format!("check --any -s f {inputs}"));
        }
    }
    // If the head is not representative, more of the input is read.
    let mut misleading = vec![b'x'; 2 << 20];
    misleading.push(b'\n');
    misleading.extend(url_lines(0..50_000));
    bench.write("b.gz", &gzip(&misleading));
    bench.run_ok("build -p 1e-9 -o f b.gz");
    bench.write("others", &url_lines(50_000..100_000));
    assert_eq!(bench.run_ok("check --total -s f b.gz"), "50001\n");
    assert_eq!(expect_exit_code(bench.run("check --total -s f others"), 1), "0\n");
    assert_contains_all(
        &expect_refusal(run_with_stdin(bench.command("dedup --when-full warn"), &gzip(b"a\n"))),
        &["standard input", "not a file", "-n"],
    );
    bench = Bench::new(&[("torn.gz", &gzip(&input)[..100])]);
    assert_eq!(bench.run("dedup torn.gz").status.code(), Some(2));
}

#[cfg(unix)]
#[test]
fn a_closed_input_is_an_error() {
    let bench = Bench::new(&[("a", b"a\nb\n")]);
    bench.run_ok("build -n 10 -o f a");
    let closed = |line: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" {line} <&-"), env!("CARGO_BIN_EXE_bloomline")]);
        shell.current_dir(bench.0.path()).output().unwrap()
    };
    for line in ["dedup", "dedup a -", "dedup --files-from -", "check -v -s f", "not-in a", "build -o new"] {
        assert_contains_all(&expect_refusal(closed(line)), &["cannot open standard input", "Bad file descriptor"]);
    }
    assert!(!bench.path("new").exists());
    assert_eq!(expect_success(closed("dedup a")), b"a\nb\n");
}

#[test]
fn standard_input_can_be_a_pipe_or_a_file() {
    let input = large();
    let bench = Bench::new(&[("a", b"first\nb"), ("large", &input)]);
    assert!(expect_success(run_with_stdin(bench.command("dedup -n 300000"), &input)) == distinct_lines(&[&input]));
    assert_eq!(expect_success(run_with_stdin(bench.command("dedup -n 10 a -"), b"a\nb\nc")), b"first\nb\na\nc\n");

    // The size of a redirected file is known, and it is read from its current position.
    let mut file = File::open(bench.path("large")).unwrap();
    let mut start = [0; 100_000];
    file.read_exact(&mut start).unwrap();
    let output = bench.command("dedup --stats=json").stdin(file).output().unwrap();
    assert!(output.stdout == distinct_lines(&[&input[start.len()..]]));
    let stats = stats(&output);
    let keys_at_1e6 = number(&stats, "memory_bytes") * 8.0 / 41.08;
    assert!((1.0..1.46).contains(&(keys_at_1e6 / number(&stats, "unique"))), "{stats}");
}

#[cfg(unix)]
#[test]
fn a_fifo_is_opened_once() {
    let bench = Bench::new(&[("a", b"a\nb\n")]);
    let fifo = bench.fifo("fifo");
    thread::scope(|scope| {
        scope.spawn(|| fs::write(fifo, b"b\nc"));
        assert_eq!(bench.run_ok("dedup -n 3 a fifo"), "a\nb\nc\n");
    });
}

#[cfg(unix)]
#[test]
fn unreadable_inputs_are_refused_before_output() {
    let bench = Bench::new(&[("a", b"a\n"), ("secret", b"secret\n")]);
    fs::create_dir(bench.path("empty")).unwrap();
    for (bad, why) in [("missing", "No such file"), ("empty", "has no input files")] {
        assert_contains_all(&bench.run_err(&format!("dedup a {bad}")), &[&format!("\"{bad}\""), why]);
    }
    let stdin = OwnedFd::from(File::open(bench.0.path()).unwrap());
    let output = bench.command("dedup -n 1").stdin(stdin).output().unwrap();
    assert_contains_all(&expect_refusal(output), &["standard input", "directory"]);

    fs::set_permissions(bench.path("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(bench.path("secret")).is_err() {
        assert_contains_all(&bench.run_err("dedup a secret"), &["\"secret\"", "Permission denied"]);
    } else {
        report_skipped("root reads every file");
    }
    assert_contains_all(&bench.run_err("dedup two\nlines"), &[r#""two\nlines""#, "No such file"]);
}

#[cfg(unix)]
#[test]
fn lines_before_a_read_error_are_printed() {
    // Address 0 of a process cannot be read.
    let broken = "/proc/self/mem";
    if !Path::new(broken).exists() {
        report_skipped(&format!("no {broken} here"));
        return;
    }
    let bench = Bench::new(&[("a", b"a\nb\na\n"), ("b", b"c\n")]);
    for threads in ["1", "4"] {
        let output = bench.run(&format!("dedup -n 3 -j {threads} --chunk-size 2 a {broken} b"));
        assert_eq!(output.stdout, b"a\nb\n");
        assert_contains_all(
            &expect_failure(&output),
            &[&format!("cannot read \"{broken}\" after line 0: Input/output error")],
        );
    }
    assert_contains_all(
        &bench.run_err(&format!("dedup {broken}")),
        &[&format!("\"{broken}\""), "Input/output error", "-n"],
    );
}

/// Returns inputs that break after the lines `a`, `b`, `a` and the incomplete line `part`, with the kind of damage and a part
/// of the error message.
fn broken_inputs() -> [(&'static str, Vec<u8>, &'static str); 9] {
    const READABLE: &[u8] = b"a\nb\na\npart";
    const REST: &[u8] = b"of a line\nthat\nis\nlost\n";
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(READABLE).unwrap();
    // Everything before this point can be decoded. The next byte is the first of a block and contains only its type.
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

    // After the header of ten bytes, the last block has the reserved type 3 (RFC 1951, 3.2.3).
    let mut member = gzip(REST);
    member[10] = 0b111;
    let corrupt_member = [gzip(READABLE), member, gzip(b"never\n")].concat();

    let mut wrong_sum = gzip(READABLE);
    let length = wrong_sum.len();
    wrong_sum[length - 8] ^= 1;

    // The damaged byte is in the header of the first block, which begins at byte 12 in xz and at byte 4 in bzip2.
    let damaged = |compress: fn(&[u8]) -> Vec<u8>, at: usize| {
        let mut stream = compress(REST);
        stream[at] ^= 1;
        [compress(READABLE), stream].concat()
    };
    let truncated = |compress: fn(&[u8]) -> Vec<u8>| [compress(READABLE), compress(REST)[..20].to_vec()].concat();
    [
        ("truncated gzip", truncated_gzip, "incomplete"),
        ("truncated zstd", truncated_zstd, "incomplete"),
        ("corrupt member", corrupt_member, "corrupt"),
        ("second member without its header", [gzip(READABLE), gzip(REST)[..5].to_vec()].concat(), "unexpected end"),
        ("wrong checksum", wrong_sum, "checksum"),
        ("truncated xz", truncated(xz), "premature eof"),
        ("damaged xz", damaged(xz, 14), "lzma data error"),
        ("truncated bzip2", truncated(bzip2), "EOF reached"),
        ("damaged bzip2", damaged(bzip2, 14), "invalid data"),
    ]
}

#[test]
fn broken_inputs_end_the_run_or_are_read_up_to_the_error() {
    for (what, bytes, why) in broken_inputs() {
        let bench = Bench::new(&[("first", b"x\na"), ("bad", &bytes), ("last", b"b\nc\n")]);
        for options in ["", "-j 1 --chunk-size 1 ", "-j 3 --chunk-size 5 "] {
            let run =
                |on_error: &str| bench.run(&format!("dedup -n 100 {options}--on-error {on_error} first bad last"));
            let output = run("fail");
            assert_eq!(text(&output.stdout), "x\na\nb\n", "{what}");
            assert_contains_all(&expect_failure(&output), &["cannot read \"bad\" after line 3: ", why]);
            // `keep` keeps the incomplete line as the fourth one.
            for (on_error, expected, line) in [("skip", "x\na\nb\nc\n", 3), ("keep", "x\na\nb\npart\nc\n", 4)] {
                let output = run(on_error);
                assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), expected), "{what}");
                let warning = text(&output.stderr);
                assert_eq!((warning.matches("warning").count(), warning.matches('\n').count()), (1, 1), "{warning}");
                assert_contains_all(&warning, &[&format!("\"bad\" after line {line}: "), why]);
            }
        }
        // A pipe has the same result as a file.
        let output = run_with_stdin(bench.command("dedup first - last"), &bytes);
        assert_eq!(text(&output.stdout), "x\na\nb\n", "{what}");
        assert!(expect_failure(&output).contains("cannot read standard input after line 3: "));

        bench.write("f", b"whatever was there");
        assert!(bench.run_err("build -n 100 -o f first bad last").contains("\"bad\" after line 3: "));
        assert_eq!(bench.read("f"), b"whatever was there");
        let output = bench.run("build -n 100 --on-error skip -o f first bad last");
        assert_contains_all(&text(&output.stderr), &["warning", "\"bad\" after line 3: ", why]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert_eq!(bench.run_ok("check -s f first last"), "x\na\nb\nc\n");
        let output = bench.run("check -s f first bad last");
        assert_eq!(text(&output.stdout), "x\na\na\nb\na\n", "{what}");
        assert!(expect_failure(&output).contains("\"bad\" after line 3: "));
        let output = bench.run("check -s f --on-error skip first bad last");
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), "x\na\na\nb\na\nb\nc\n"));
        assert!(text(&output.stderr).contains("\"bad\" after line 3: "));
    }
}

#[test]
fn inputs_broken_at_the_start_have_no_lines() {
    let [xz, bzip2] = [xz(b"a\n"), bzip2(b"a\n")];
    let starts = [&gzip(b"a\n")[..2], &gzip(b"a\n")[..9], &zstd(b"a\n")[..4], &zstd(b"a\n")[..6]];
    for bytes in starts.into_iter().chain([&xz[..5], &xz[..20], &bzip2[..4], &bzip2[..20]]) {
        let bench = Bench::new(&[("bad", bytes), ("last", b"b\n")]);
        let output = bench.run("dedup -n 10 bad last");
        assert!(expect_failure(&output).contains("\"bad\" after line 0: "), "{bytes:?}");
        assert_eq!(output.stdout, b"");
        for on_error in ["skip", "keep"] {
            let output = bench.run(&format!("dedup -n 10 --on-error {on_error} bad last"));
            assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"b\n"[..]), "{bytes:?}");
            assert!(text(&output.stderr).contains("\"bad\" after line 0: "));
        }
    }
}

/// The incomplete line of a broken input may be longer than the rest of the input.
#[test]
fn a_pipe_after_a_broken_input_is_read_to_its_end() {
    let bench = Bench::new(&[("broken", &gzip(b"a long first piece")[..30])]);
    for (input, expected) in [("a\n", "a\n"), ("b\na\nb\n", "b\na\n"), ("", "")] {
        let output = run_with_stdin(bench.command("dedup --on-error skip broken -"), input.as_bytes());
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), expected));
        assert_contains_all(&text(&output.stderr), &["\"broken\" after line 0: "]);
    }
}

#[test]
fn inputs_that_disappear_are_broken_at_the_start() {
    for (on_error, code, rest) in [("fail", 2, &[][..]), ("skip", 1, &["c"]), ("keep", 1, &["c"])] {
        let bench = Bench::new(&[("gone", b"b\n"), ("last", b"a\nc\n")]);
        let mut running = RunningCommand::new(bench.command(&format!("dedup --on-error {on_error} - gone last")));
        running.write_input(b"a\n");
        assert_eq!(running.line(), "a");
        fs::remove_file(bench.path("gone")).unwrap();
        running.close_input();
        let (ended, lines, stderr) = running.end();
        assert_eq!(
            (ended, &lines[..]),
            (Some(code), &rest.iter().map(|&line| line.to_owned()).collect::<Vec<_>>()[..])
        );
        assert_contains_all(&stderr, &["cannot read \"gone\" after line 0: ", "No such file"]);
    }
}

/// The file can be opened but not read, as on a disk with a bad sector.
#[cfg(unix)]
#[test]
fn unreadable_inputs_are_skipped_by_the_estimate() {
    if !Path::new("/proc/self/mem").exists() {
        report_skipped("no /proc/self/mem here");
        return;
    }
    let bench = Bench::new(&[("first", b"a\n"), ("second", b"a\nb\n")]);
    for on_error in ["skip", "keep"] {
        let output = bench.run(&format!("dedup --on-error {on_error} first /proc/self/mem second"));
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), "a\nb\n"));
        assert_contains_all(&text(&output.stderr), &["warning: cannot read \"/proc/self/mem\" after line 0: "]);
        let output = bench.run(&format!("build --on-error {on_error} -o f first /proc/self/mem second"));
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(bench.run_ok("check --total -s f second"), "2\n");
    }
    let message = bench.run_err("dedup first /proc/self/mem second");
    assert_contains_all(&message, &["cannot estimate how many lines \"/proc/self/mem\" has", "-n", "--on-error"]);
}
