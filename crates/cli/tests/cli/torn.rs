//! Truncated compressed files, text in UTF-16, and rotated logs.

use crate::common::{Bench, assert_contains_all, expect_failure, expect_success, run_with_stdin, text};
use crate::corpus::{bzip2, decode, gunzip, gzip, read_decoded, unzstd, xz, zstd};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use std::fs::{self, File};
use std::io::Write;

/// Compresses bytes like the program lz4, but in blocks of 64 KiB. Returns the frame and the ends of its blocks.
fn lz4(contents: &[u8], mode: BlockMode) -> (Vec<u8>, Vec<usize>) {
    let info = FrameInfo::new().block_mode(mode).block_size(BlockSize::Max64KB).content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(contents).unwrap();
    let frame = encoder.finish().unwrap();
    let mut ends = vec![7];
    loop {
        let block = *ends.last().unwrap();
        match u32::from_le_bytes(frame[block..block + 4].try_into().unwrap()) {
            0 => return (frame, ends),
            size => ends.push(block + 4 + (size & 0x7FFF_FFFF) as usize),
        }
    }
}

fn numbers(count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| format!("{i:07}\n").into_bytes()).collect()
}

/// A frame of lz4 ends with an end mark, so a frame that is truncated after a block is incomplete.
#[test]
fn lz4_without_its_end_mark_is_broken_in_all_commands() {
    let why = ["cannot read \"cut.lz4\" after line 8192: ", "incomplete frame"];
    for mode in [BlockMode::Independent, BlockMode::Linked] {
        let (whole, ends) = lz4(&numbers(20_000), mode);
        let cut = &whole[..ends[1]];
        let bench = Bench::new(&[("cut.lz4", cut), ("whole.lz4", &whole), ("new", b"0019999\n"), ("other", b"x\nx\n")]);
        assert_eq!(bench.run_ok("dedup --total whole.lz4"), "20000\n");
        for options in ["", "-j 1 ", "-j 4 ", "-j 1 --chunk-size 1 ", "-n 9999 ", "--binary "] {
            let output = bench.run(&format!("dedup {options}cut.lz4 other"));
            assert!(text(&output.stdout).ends_with("0008191\n"), "{options}");
            assert_contains_all(&expect_failure(&output), &["cannot read \"cut.lz4\" after line 8192: ", why[1]]);
        }
        // The missing part of OLD may contain the line of NEW.
        for exact in ["", "--exact "] {
            assert_contains_all(&bench.run_err(&format!("not-in {exact}cut.lz4 -- new")), &why);
        }
        for line in ["dedup --total cut.lz4", "build -o f cut.lz4", "dedup -o o cut.lz4", "dedup --unique cut.lz4"] {
            assert_contains_all(&expect_failure(&bench.run(line)), &why);
        }
        assert!(!bench.path("f").exists());
        // Standard input is a pipe or a file.
        let piped = run_with_stdin(bench.command("dedup --total"), cut);
        assert_contains_all(&expect_failure(&piped), &["cannot read standard input after line 8192: ", why[1]]);
        let file = File::open(bench.path("cut.lz4")).unwrap();
        let redirected = bench.command("dedup -n 9999 --total").stdin(file).output().unwrap();
        assert_contains_all(&expect_failure(&redirected), &["cannot read standard input after line 8192: ", why[1]]);
        for line in ["dedup --in-place other cut.lz4", "dedup -o cut.lz4 other cut.lz4"] {
            assert_contains_all(&expect_failure(&bench.run(line)), &why);
            assert!(bench.read("cut.lz4") == cut, "{line}");
        }
        bench.write("other", b"x\nx\n");
        let output = bench.run("dedup --in-place --on-error skip cut.lz4 other");
        assert_eq!((output.status.code(), text(&bench.read("other"))), (Some(1), "x\n".to_owned()));
        assert_contains_all(&text(&output.stderr), &why);
        assert!(bench.read("cut.lz4") == cut);
        assert_contains_all(&expect_failure(&bench.run("dedup --output-dir out cut.lz4 other")), &why);
        assert!(!bench.path("out/cut.lz4").exists());
        // The truncated file ends after a line, so all remaining lines are complete.
        let output = bench.run("dedup --on-error keep --total cut.lz4 other");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "8193\n".to_owned()));
    }
}

/// The tests of the reader truncate files at every byte.
#[test]
fn truncated_files_of_each_format_are_not_replaced() {
    let lines = numbers(100);
    let files = [
        ("a.gz", gzip(&lines)),
        ("a.zst", zstd(&lines)),
        ("a.xz", xz(&lines)),
        ("a.bz2", bzip2(&lines)),
        ("a.lz4", lz4(&lines, BlockMode::Linked).0),
    ];
    for (name, whole) in &files {
        let twice = [&whole[..], whole].concat();
        // Files are truncated inside and after the magic number, inside the contents, before the last byte, and in a second
        // member.
        for cut in [1, 4, whole.len() / 2, whole.len() - 1, whole.len() + 1, whole.len() + 4, twice.len() - 1] {
            let bench = Bench::new(&[(name, &twice[..cut])]);
            for line in ["dedup", "dedup -j 1 -n 99", "dedup --in-place", "dedup --output-dir o"] {
                let output = bench.run(&format!("{line} {name}"));
                assert_contains_all(&expect_failure(&output), &[&format!("cannot read \"{name}\" after line ")]);
                assert!(
                    bench.read(name) == twice[..cut] && !bench.path("o").join(name).exists(),
                    "{line} {name} {cut}"
                );
            }
            if cut > 3 {
                let output = run_with_stdin(bench.command("dedup -n 999"), &twice[..cut]);
                assert_contains_all(&expect_failure(&output), &["cannot read standard input after line "]);
            }
        }
        for cut in [0, whole.len(), twice.len()] {
            let bench = Bench::new(&[(name, &twice[..cut])]);
            bench.run_ok(&format!("dedup --in-place {name}"));
            assert_eq!(text(&decode(name, &bench.read(name)).0), if cut == 0 { String::new() } else { text(&lines) });
        }
    }
    // These bytes may be text, unless the name indicates a compressed file.
    let bench = Bench::new(&[("a.txt", b"BZh"), ("a.gz", b"BZh"), ("a.zst", b"(\n")]);
    assert_eq!(bench.run_ok("dedup a.txt a.gz a.zst"), "BZh\n(\n");
}

#[test]
fn utf16_is_refused_without_a_byte_order_mark() {
    for lines in ["id,name\n1,Ann\n2,Bob\n", "上海一日，我们开门见山。\n一二三 4，最后在路上。\n"]
    {
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let utf16: Vec<u8> = lines.encode_utf16().flat_map(bytes).collect();
            let bench = Bench::new(&[("a", &utf16), ("a.gz", &gzip(&utf16)), ("o", b"what was there\n")]);
            let why = "it is in the format of UTF-16, which is not supported";
            for line in ["dedup -o o a", "dedup --in-place a", "dedup --output-dir d a", "build -o f a"] {
                assert_contains_all(&bench.run_err(line), &["cannot open \"a\": ", why, "--binary"]);
            }
            assert_eq!(bench.read("o"), b"what was there\n");
            assert_contains_all(&bench.run_err("dedup a.gz"), &["cannot read \"a.gz\" after line 0: ", why]);
            // The first byte may be a newline, and the first read from a pipe may return no more.
            let piped = run_with_stdin(bench.command("dedup"), &utf16);
            assert!(piped.stdout.is_empty() || piped.stdout == b"\n");
            assert_contains_all(&expect_failure(&piped), &[why]);
            let joined = [gzip(b"a\n"), gzip(&utf16)].concat();
            let output = run_with_stdin(bench.command("dedup"), &joined);
            assert_eq!(text(&output.stdout), "a\n");
            assert_contains_all(&expect_failure(&output), &["standard input after line 1: ", why]);
            assert!(!expect_success(bench.run("dedup --binary a")).is_empty());
            // With -z, NUL ends lines.
            assert!(!expect_success(bench.run("dedup -z a")).is_empty());
        }
    }
    let nuls = b"one\0\ntwo\0\nthree\0\nfo\0ur\n";
    assert_eq!(expect_success(Bench::new(&[("a", nuls)]).run("dedup a")), nuls);
}

/// The number that log rotation appends does not hide the format that a name indicates.
#[test]
fn rotated_logs_have_the_formats_of_their_names() {
    let bench = Bench::new(&[]);
    let lines = b"a\nb\na\n";
    let reset = || {
        bench.write("l.gz.1", &gzip(lines));
        bench.write("l.1", lines);
        bench.write("plain.gz.2", lines);
        for folder in ["o", "p", "q"] {
            let _ = fs::remove_dir_all(bench.path(folder));
        }
    };
    reset();
    assert_eq!(bench.run_ok("dedup l.gz.1 plain.gz.2"), "a\nb\n");
    // A replaced file keeps its format, whatever its name is.
    for name in ["l.gz.1", "l.1", "plain.gz.2"] {
        bench.run_ok(&format!("dedup --in-place {name}"));
    }
    assert_eq!(gunzip(&bench.read("l.gz.1")), b"a\nb\n");
    assert_eq!((bench.read("l.1"), bench.read("plain.gz.2")), (b"a\nb\n".to_vec(), b"a\nb\n".to_vec()));
    reset();
    bench.run_ok("dedup -o l.gz.1 l.gz.1 l.1");
    assert_eq!(gunzip(&bench.read("l.gz.1")), b"a\nb\n");
    for line in ["dedup --in-place --compress zstd l.gz.1", "dedup --compress none -o new.gz.1 l.1"] {
        assert_contains_all(&bench.run_err(line), &["--compress", "its name has the ending of a .gz file"]);
    }
    reset();
    bench.run_ok("dedup --in-place --compress gzip l.gz.1");
    assert_eq!(gunzip(&bench.read("l.gz.1")), b"a\nb\n");

    bench.run_ok("dedup -o new.zst.12 --dupes more.gz.3 l.1");
    assert_eq!(
        (unzstd(&bench.read("new.zst.12")), gunzip(&bench.read("more.gz.3"))),
        (b"a\nb\n".into(), b"a\n".into())
    );
    bench.run_ok("dedup -o new.1 l.gz.1");
    assert_eq!(bench.read("new.1"), b"a\nb\n");

    bench.write("l.1", b"c\n");
    bench.write("plain.gz.2", b"d\n");
    bench.run_ok("dedup --output-dir o l.gz.1 l.1 plain.gz.2");
    assert_eq!(gunzip(&bench.read("o/l.gz.1")), b"a\nb\n");
    assert_eq!((bench.read("o/l.1"), gunzip(&bench.read("o/plain.gz.2"))), (b"c\n".to_vec(), b"d\n".to_vec()));
    bench.run_ok("dedup --output-dir p --compress zstd l.gz.1 l.1 plain.gz.2");
    for (name, expected) in [("p/l.zst.1", "a\nb\n"), ("p/l.1.zst", "c\n"), ("p/plain.zst.2", "d\n")] {
        assert_eq!(text(&unzstd(&bench.read(name))), expected, "{name}");
    }
    bench.write("l.1", b"c\n");
    assert_contains_all(
        &bench.run_err("dedup --output-dir q --compress none l.gz.1 l.1"),
        &["\"q/l.1\"", "it would be the output of both"],
    );
    bench.run_ok("dedup --output-dir q --compress none l.gz.1 plain.gz.2");
    assert_eq!((read_decoded(&bench, "q/l.1"), bench.read("q/plain.2")), (b"a\nb\n".to_vec(), b"d\n".to_vec()));

    for (line, parts) in [
        ("dedup -o new.zip.1 l.1", ["\"new.zip.1\"", "the format of .zip is not supported"]),
        ("dedup -o new.parquet.1 l.1", ["\"new.parquet.1\"", "its ending .parquet stands for another format"]),
        ("dedup -o new.parquet.gz.1 l.1", ["\"new.parquet.gz.1\"", "its ending .parquet stands for another format"]),
        ("dedup --output-dir r --manifest m.gz.1 l.1", ["\"m.gz.1\"", "its ending .gz stands for another format"]),
    ] {
        assert_contains_all(&bench.run_err(line), &parts);
    }
    // The number does not hide that a file is brotli or CSV either.
    bench.write("a.br.1", b"\x8B\x01\x80a\nb\n\x03");
    assert_contains_all(&bench.run_err("dedup a.br.1"), &["\"a.br.1\": ", "it is in the format of brotli"]);
    bench.write("open.csv.gz.1", &gzip(b"a,\"x\ny\"\nb,\"x\ny\"\n"));
    assert_contains_all(&bench.run_err("dedup --in-place open.csv.gz.1"), &["nothing is replaced: ", "give --csv"]);
}
