//! The commands that work with filters in files: `build`, `check`, `merge` and `info`.

use crate::common::{
    Bench, assert_contains_all, blocks, count_set_bits, expect_exit_code, expect_failure, expect_refusal,
    expect_success, number, report_skipped, text, url_lines,
};
use crate::live::RunningCommand;
use bloomline::{BloomFilter, ScalableBloomFilter};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

#[test]
fn check_matches_the_model() {
    let known = url_lines(0..4000);
    // Alternating and consecutive known and unknown lines, repeats, and a last line without a newline.
    let mut queries = Vec::new();
    for i in 0..6000u32 {
        let line = if i % 3 == 0 { i } else { i.wrapping_mul(2_654_435_761) % 8000 };
        writeln!(queries, "https://example.org/{line}").unwrap();
    }
    queries.extend(url_lines(3000..5000));
    queries.extend(b"https://example.org/7");
    let bench = Bench::new(&[("known", &known), ("asked", &queries)]);
    bench.run_ok("build -p 0.001 -o known.bloom known");

    let known: HashSet<&str> = std::str::from_utf8(&known).unwrap().lines().collect();
    let queries: Vec<&str> = std::str::from_utf8(&queries).unwrap().lines().collect();
    let model =
        |wanted: bool| queries.iter().copied().filter(|line| known.contains(line) == wanted).collect::<Vec<_>>();
    let found = bench.run_ok("check -s known.bloom asked");
    let found: Vec<&str> = found.lines().collect();
    assert!(!found.is_empty());

    // All known lines, in order, and a few false positives.
    let mut rest = found.iter().copied().peekable();
    let mut wrong = 0;
    for line in model(true) {
        while rest.peek() != Some(&line) {
            assert!(rest.next().is_some(), "{line} is missing");
            wrong += 1;
        }
        rest.next();
    }
    wrong += rest.count();
    // About 3700 unknown lines, at a rate of 0.001.
    assert!(wrong < 25, "{wrong}");

    let missing = bench.run_ok("check -v -s known.bloom asked");
    assert_eq!(missing.lines().count() + found.len(), queries.len());
    let mut unknown = model(false).into_iter();
    assert!(missing.lines().all(|line| unknown.any(|other| other == line)));

    // The output does not depend on the number of threads or on the chunk size.
    let found = found.join("\n") + "\n";
    for options in ["-j 1", "-j 8 --chunk-size 1000", "--chunk-size 1"] {
        assert!(bench.run_ok(&format!("check {options} -s known.bloom asked")) == found, "{options}");
        assert!(bench.run_ok(&format!("check {options} -vs known.bloom asked")) == missing, "{options}");
    }
}

#[test]
fn unusual_lines_are_found() {
    let lines: &[u8] = b"\n crlf\r\nnul\0\0\n\xff\xfe\nthe last";
    let bench = Bench::new(&[("lines", lines), ("empty", b""), ("newline", b"\n")]);
    bench.run_ok("build -q -o f lines");
    assert_eq!(expect_success(bench.run("check -q -s f lines")), [lines, b"\n"].concat());
    assert_eq!(bench.run_ok("check -q -s f newline empty newline"), "\n\n");
    bench.run_ok("build -o nothing empty");
    assert_eq!(expect_exit_code(bench.run("check -q -s nothing lines"), 1), "");
    assert_eq!(expect_success(bench.run_with("check -q -v -s nothing", "lines")), [lines, b"\n"].concat());
}

#[test]
fn counts_are_formatted_as_by_grep() {
    let bench = Bench::new(&[("a", b"x\ny\nz\nx"), ("b", b"q\n"), ("c", b""), ("keys", b"x\ny\n")]);
    bench.run_ok("build -o f keys");
    for (files, expected, inverted) in [
        ("a", "3\n", "1\n"),
        ("a b c", "a:3\nb:0\nc:0\n", "a:1\nb:1\nc:0\n"),
        ("a - a", "a:3\n(standard input):0\na:3\n", "a:1\n(standard input):1\na:1\n"),
    ] {
        assert_eq!(expect_exit_code(bench.run_with(&format!("check --total -s f {files}"), "b"), 0), expected);
        assert_eq!(expect_exit_code(bench.run_with(&format!("check -v --total -s f {files}"), "b"), 0), inverted);
    }
    assert_eq!(expect_exit_code(bench.run_with("check --total -s f", "a"), 0), "3\n");
    assert_eq!(expect_exit_code(bench.run("check --total -s f b c"), 1), "b:0\nc:0\n");
}

/// grep has `-h`, because `check` prints lines without file names.
#[test]
fn outputs_and_exit_codes_match_grep() {
    let bench = Bench::new(&[("a", b"x\ny\nz\nx"), ("b", b"q\n"), ("c", b""), ("keys", b"x\ny\n")]);
    bench.run_ok("build -o f keys");
    for files in ["a", "a b c", "missing", "missing a", "a missing b", "b missing", "missing gone"] {
        for (options, of_grep) in [
            ("--total", "-c"),
            ("-v --total", "-vc"),
            ("-j1", "-h"),
            ("-v", "-vh"),
            ("--any", "-q"),
            ("-v --any", "-vq"),
        ] {
            let arguments = format!("{of_grep} -F -x -f keys {files}");
            let grep = Command::new("grep").args(arguments.split(' ')).current_dir(bench.0.path()).output();
            let Ok(grep) = grep else {
                report_skipped("no grep here");
                return;
            };
            let ours = bench.run(&format!("check {options} -s f {files}"));
            assert_eq!((ours.stdout, ours.status.code()), (grep.stdout, grep.status.code()), "{arguments}");
            let (ours, grep) = (text(&ours.stderr), text(&grep.stderr));
            for name in ["missing", "gone"] {
                // After a match, `--any` may end before it opens the file.
                assert!(
                    !grep.contains(name) || ours.contains(&format!("cannot open \"{name}\"")),
                    "{arguments}: {ours}"
                );
            }
        }
    }
}

#[test]
fn unreadable_files_do_not_stop_others() {
    let bench = Bench::new(&[("a", b"x\nn\n"), ("b", b"y\n"), ("keys", b"x\ny\n"), ("zip", b"PK\x03\x04\n")]);
    bench.run_ok("build -o f keys");
    fs::create_dir(bench.path("empty")).unwrap();
    for (bad, why) in [("missing", "No such file"), ("empty", "has no input files"), ("zip", "format of zip")] {
        for (options, expected) in
            [("-j2", "x\ny\n"), ("-j 1 --chunk-size 1", "x\ny\n"), ("--total", "a:1\nb:1\n"), ("-v", "n\n")]
        {
            let output = bench.run(&format!("check -s f {options} a {bad} b"));
            assert_eq!(text(&output.stdout), expected);
            assert_contains_all(&expect_failure(&output), &[&format!("\"{bad}\""), why, "it is skipped"]);
        }
        assert_eq!(bench.run(&format!("check --any -s f {bad} a")).status.code(), Some(0));
        assert_contains_all(&bench.run_err(&format!("check --any -v -s f {bad} keys")), &[why]);
    }
}

#[test]
fn any_reports_by_exit_code() {
    let bench = Bench::new(&[("keys", b"x\ny\n"), ("some", b"n\nx\n"), ("none", b"n\n"), ("empty", b"")]);
    bench.run_ok("build -o f keys");
    for (arguments, code) in [("some", 0), ("none", 1), ("none some", 0), ("empty", 1), ("-v some", 0), ("-v keys", 1)]
    {
        assert_eq!(expect_exit_code(bench.run(&format!("check --any -s f {arguments}")), code), "", "{arguments}");
    }
    // The first match ends the command while the pipe is still open.
    let mut child = bench.command("check --any --chunk-size 1 -s f").stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let feeder = thread::spawn(move || {
        let _ = stdin.write_all(b"n\nx\nn\nn\n");
        stdin
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(feeder.join());
}

/// An error in a later line has no effect.
#[test]
fn any_stops_at_the_first_match() {
    let bench = Bench::new(&[("keys", b"a\tx\n"), ("found", b"b\tx\nfault\n"), ("fault", b"fault\nb\tx\n")]);
    bench.run_ok("build --field 2 -o f keys");
    for (input, code) in [("found", 0), ("fault", 2)] {
        for threads in [1, 4] {
            let output = bench.run(&format!("check --any -j {threads} --field 2 -s f {input}"));
            assert_eq!(output.status.code(), Some(code), "{input} {threads}");
        }
    }
}

/// Threads are waiting for the next line of the pipe.
#[test]
fn check_ends_while_its_pipe_is_idle() {
    let bench = Bench::new(&[("keys", b"a\tx\n")]);
    bench.run_ok("build --field 2 -o f keys");
    for (line, code) in [("b\tx\n", 0), ("fault\n", 2)] {
        for threads in [1, 2, 8] {
            let mut running = RunningCommand::new(bench.command(&format!("check --any -j {threads} --field 2 -s f")));
            running.write_input(b"b\ty\n");
            running.write_input(line.as_bytes());
            assert_eq!(running.end().0, Some(code), "{line:?} {threads}");
        }
    }
}

#[test]
fn a_closed_pipe_ends_check_quietly() {
    let bench = Bench::new(&[("keys", &url_lines(0..100_000))]);
    bench.run_ok("build -o f keys");
    let mut child = bench.command("check -s f keys").spawn().unwrap();
    drop(child.stdout.take());
    expect_exit_code(child.wait_with_output().unwrap(), 0);
}

#[test]
fn append_equals_a_build_of_both() {
    let bench = Bench::new(&[("a", &url_lines(0..5000)), ("b", &url_lines(4000..9000))]);
    bench.run_ok("build -n 9000 -p 0.001 --seed 5 -o both a b");
    bench.run_ok("build -n 9000 -p 0.001 --seed 5 --no-shrink -o grown a");
    assert!(bench.read("grown") != bench.read("both"));
    bench.run_ok("build --append -o grown b");
    assert!(bench.read("grown") == bench.read("both"));
    // Appending the same lines again changes no byte.
    bench.run_ok("build --append -o grown a b");
    assert!(bench.read("grown") == bench.read("both"));
    // The library builds the same filter with single inserts.
    let mut filter = BloomFilter::builder().expected_keys(9000).false_positive_rate(0.001).seed(5).build().unwrap();
    (0..9000).for_each(|i| assert!(filter.insert(&*format!("https://example.org/{i}")) || i > 0));
    assert!(filter == BloomFilter::load(bench.path("both")).unwrap());

    for (option, name) in [("-n 9000", "--expected-keys"), ("-p 0.001", "--fpr"), ("--seed 5", "--seed")] {
        let message = bench.run_err(&format!("build --append {option} -o grown b"));
        assert_contains_all(&message, &["--append", "cannot be used with", name]);
    }
    assert_contains_all(&bench.run_err("build --append -o missing b"), &["\"missing\"", "leave out --append"]);
    assert_contains_all(&bench.run_err("build --append -o a b"), &["\"a\"", "not a bloomline file"]);
    assert!(bench.read("a") == url_lines(0..5000));
}

#[test]
fn build_prints_statistics() {
    let bench = Bench::new(&[("a", &[url_lines(0..5000), url_lines(0..100)].concat())]);
    let stats = |line: &str| {
        let output = bench.run(line);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
        output.stderr
    };
    let json: Value = serde_json::from_slice(&stats("build --stats=json -p 0.01 -o f a")).unwrap();
    assert_eq!((&json["lines"], &json["bytes"]), (&5100.into(), &bench.read("a").len().into()));
    // A header, 64 bytes of fields with the keys, the rate and the name, and a trailer.
    assert_eq!(json["memory_bytes"].as_u64().unwrap() + 64 + 64 + 16, bench.read("f").len() as u64);
    assert_eq!(json["saved_bytes"], bench.read("f").len());
    let near = |name: &str, value: f64, share: f64| {
        let found = json[name].as_f64().unwrap();
        assert!((found / value - 1.0).abs() < share, "{name}: {found}");
    };
    near("new", 5000.0, 0.01);
    near("estimated_keys", 5000.0, 0.03);
    // An estimated filter reserves a share of the rate for growth.
    near("fpr", 0.95 * 0.01, 0.2);
    let text = String::from_utf8(stats("build --stats --append -o f a")).unwrap();
    assert!(text.contains("lines read     5100\n") && text.contains("new            0\n"), "{text}");

    let message = String::from_utf8(stats("build -n 1000 --when-full warn -o f a")).unwrap();
    assert_contains_all(&message, &["warning", " 1000 ", "rate", "-n"]);
    assert_eq!(message.matches('\n').count(), 1, "{message}");

    // If all bits are set, the estimated number of keys is infinite, which JSON cannot represent.
    let full = stats("build --stats=json -n 1 -p 0.5 --when-full warn -o f a");
    let json: Value = serde_json::from_slice(full.split(|&byte| byte == b'\n').nth(1).unwrap()).unwrap();
    assert_eq!((&json["fill"], &json["estimated_keys"]), (&1.0.into(), &Value::Null));
    assert_eq!(bench.json("info --json f")["bits_per_key"], Value::Null);
    assert!(bench.run_ok("info f").contains("keys          unknown"));
}

#[test]
fn merge_equals_the_union() {
    let bench = Bench::new(&[("a", &url_lines(0..2000)), ("b", &url_lines(1000..3000)), ("c", &url_lines(8000..9000))]);
    for name in ["a", "b", "c"] {
        bench.run_ok(&format!("build -n 4000 -p 0.001 --no-shrink -o {name}.bloom {name}"));
    }
    bench.run_ok("build -n 4000 -p 0.001 -o all.bloom a b c");
    bench.run_ok("merge a.bloom b.bloom c.bloom -o merged.bloom");
    assert!(bench.read("merged.bloom") == bench.read("all.bloom"));
    // The result replaces an existing file, and the union of one filter is the filter itself.
    for line in ["merge b.bloom -o merged.bloom b.bloom", "merge -o merged.bloom b.bloom"] {
        bench.run_ok(line);
        assert!(bench.read("merged.bloom") == bench.read("b.bloom"));
    }
}

#[test]
fn merge_refuses_filters_that_differ() {
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.run_ok("build -n 1000 -p 0.01 --no-shrink -o f a");
    let blocks = |name: &str| blocks(&bench.read(name)).len() / 64;
    for options in ["-n 1000 -p 0.01 --seed 7", "-n 3000 -p 0.01", "-n 1000 -p 0.02"] {
        bench.run_ok(&format!("build {options} --no-shrink -o other a"));
        let difference = match options.contains("--seed") {
            true => "differ in seed".to_owned(),
            false => format!("size: {} and {} blocks", blocks("f"), blocks("other")),
        };
        assert_contains_all(&bench.run_err("merge f f other -o merged"), &["\"other\"", "\"f\"", &difference]);
    }
    let mut probes = BloomFilter::builder().memory(BloomFilter::load(bench.path("f")).unwrap().memory_bytes());
    probes = probes.probes(12).key_name("line");
    probes.build().unwrap().save(bench.path("other")).unwrap();
    assert!(bench.run_err("merge f other -o merged").contains("probes: 8 and 12"));

    assert_contains_all(&bench.run_err("merge f missing -o merged"), &["\"missing\"", "No such file"]);
    assert_contains_all(&bench.run_err("merge f a -o merged"), &["\"a\"", "not a bloomline file"]);
    assert_eq!(bench.run_ok("dedup --total --when-full grow --state scalable a"), "1\n");
    for both in ["f scalable", "scalable f"] {
        assert_contains_all(
            &bench.run_err(&format!("merge {both} -o merged")),
            &["\"scalable\"", "\"f\"", "fixed size", "one kind"],
        );
    }
    assert_contains_all(&bench.run_err("merge -o merged"), &["required", "FILTER"]);
    assert!(!bench.path("merged").exists());
    let before = bench.read("f");
    assert_contains_all(&bench.run_err("merge other f -o f"), &["write to \"f\"", "input"]);
    assert!(bench.read("f") == before);
}

#[test]
fn info_describes_a_filter() {
    let bench = Bench::new(&[("a", &url_lines(0..50_000)), ("empty", b"")]);
    bench.run_ok("build -n 100000 -p 0.01 --seed 42 --no-shrink -o f a");
    let filter = BloomFilter::load(bench.path("f")).unwrap();
    let info = bench.json("info --json f");
    assert_eq!(info["file"], "f");
    assert_eq!(info["layout"], "words4");
    assert_eq!(info["memory_bytes"], filter.memory_bytes());
    assert_eq!(info["blocks"], filter.block_count());
    assert_eq!(info["probes"], filter.probes());
    assert_eq!(info["seed"], 42);
    assert_eq!(info["fill"], f64::from(count_set_bits(&bench.read("f"))) / (8.0 * filter.memory_bytes() as f64));
    assert_eq!(info["fpr"], filter.current_fpr());
    // The filter has half of its keys, so its rate is that of the plan at half load.
    let planned = &bench.json("plan --json -n 100000 -p 0.01")[0]["rates"][0];
    assert_eq!(planned["load"], 0.5);
    assert!((number(&info, "fpr") / number(planned, "fpr") - 1.0).abs() < 0.1, "{info} {planned}");
    assert_eq!(info["estimated_keys"], filter.estimated_keys());
    assert!((number(&info, "estimated_keys") / 50_000.0 - 1.0).abs() < 0.02, "{info}");
    assert!((info["bits_per_key"].as_f64().unwrap() / 20.23 - 1.0).abs() < 0.02, "{info}");
    let capacity = &info["capacity"][0];
    assert_eq!((&capacity["fpr"], &capacity["keys"]), (&0.01.into(), &filter.capacity(0.01).into()));
    assert!((49_000..51_500).contains(&capacity["keys_left"].as_u64().unwrap()), "{info}");

    let text = bench.run_ok("info f");
    for part in [
        "layout        words4\n".to_owned(),
        format!("memory        {} bytes (", filter.memory_bytes()),
        "probes (k)    8\n".to_owned(),
        "seed          42\n".to_owned(),
        format!("keys          {:.0} (estimated)\n", filter.estimated_keys()),
        format!("{} in all\n", filter.capacity(0.01)),
        "checksum      right\n".to_owned(),
    ] {
        assert!(text.contains(&part), "{part:?} in {text}");
    }

    bench.run_ok("build -o f empty");
    let info = bench.json("info --json f");
    assert_eq!(
        (&info["estimated_keys"], &info["fpr"], &info["bits_per_key"]),
        (&0.0.into(), &0.0.into(), &Value::Null)
    );
    assert!(bench.run_ok("info f").contains("keys          0 (estimated)"));
}

#[test]
fn info_describes_a_scalable_filter() {
    let bench = Bench::new(&[("a", &url_lines(0..5000))]);
    let printed = bench.run_ok("dedup -n 1000 -p 0.01 --when-full grow --seed 42 --state s --total a");
    let info = bench.json("info --json s");
    // Three filters for 1000, 2000 and 4000 keys. According to docs/FORMAT.md, a header precedes their files. Each file has
    // 64 bytes of fields with the keys, the rate and the name.
    let memory = bench.read("s").len() - 64 - 3 * (64 + 64 + 16);
    assert_eq!(info["filters"], 3);
    assert_eq!(info["probes"].as_array().unwrap().len(), 3);
    assert_eq!(info["estimated_keys"].to_string(), format!("{}.0", printed.trim_end()));
    assert_eq!((&info["memory_bytes"], &info["blocks"]), (&memory.into(), &(memory / 64).into()));
    assert_eq!((&info["layout"], &info["seed"], &info["max_fpr"]), (&"words4".into(), &42.into(), &0.01.into()));
    let filter = ScalableBloomFilter::load(bench.path("s")).unwrap();
    let ones = |filter: &BloomFilter| filter.fill_ratio() * filter.memory_bytes() as f64;
    let fill = filter.stages().iter().map(ones).sum::<f64>() / memory as f64;
    assert!((number(&info, "fill") / fill - 1.0).abs() < 1e-9, "{info} {fill}");
    // According to docs/DESIGN.md, two full filters have 1/8 and 7/64 of the rate, and the third less than 49/512.
    assert!((0.0021..0.0034).contains(&number(&info, "fpr")), "{info}");
    let text = bench.run_ok("info s");
    assert_contains_all(
        &text,
        &["filters       3\n", &format!("keys          {printed}"), "seed          42\n", "checksum      right\n"],
    );
}

#[test]
fn damaged_filters_are_refused_with_their_names() {
    let bench = Bench::new(&[("a", &url_lines(0..1000)), ("text", b"plain text\n")]);
    bench.run_ok("build -o f a");
    let sound = bench.read("f");
    let flipped = |at: usize| {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        bytes
    };
    bench.write("short", &sound[..sound.len() - 100]);
    bench.write("long", &[&sound[..], b"x"].concat());
    bench.write("header", &flipped(30));
    bench.write("body", &flipped(1000));
    bench.write("nothing", b"");
    fs::create_dir(bench.path("folder")).unwrap();
    for (file, what) in [
        ("short", &*format!("truncated: {} bytes of {}", sound.len() - 100, sound.len())),
        ("long", &format!("too long: {} bytes instead of {}", sound.len() + 1, sound.len())),
        ("header", "damaged: the checksum of the header"),
        ("body", "damaged: the checksum of the blocks"),
        ("nothing", "truncated: 0 bytes"),
        ("text", "not a bloomline file"),
        ("missing", "No such file"),
        ("folder", "directory"),
    ] {
        for command in ["info", "info --json", "check a -s", "merge f -o merged", "build a --append -o"] {
            // The command checks the type of an output before it loads the file, and whether it is there.
            let what = match file {
                "folder" if command.starts_with("build") => "not a regular file",
                "missing" if command.starts_with("build") => "leave out --append",
                _ => what,
            };
            assert_contains_all(&bench.run_err(&format!("{command} {file}")), &[&format!("\"{file}\""), what]);
        }
    }
    assert!(!bench.path("merged").exists());
}

#[cfg(unix)]
#[test]
fn invalid_outputs_are_refused_before_reading() {
    let bench = Bench::new(&[("a", b"a\n"), ("b", b"b\n")]);
    bench.run_ok("build -o f a");
    fs::hard_link(bench.path("a"), bench.path("link")).unwrap();
    fs::create_dir(bench.path("folder")).unwrap();
    for output in ["a", "link"] {
        assert_contains_all(
            &bench.run_err(&format!("build -o {output} b a")),
            &[&format!("\"{output}\""), "input", ": \"a\""],
        );
    }
    assert_eq!(bench.read("a"), b"a\n");
    // Standard input stays open, so a command that reads it first would wait forever.
    for (output, why) in
        [("folder", "not a regular file"), ("nowhere/f", "No such file"), ("/dev/null", "not a regular file")]
    {
        let mut child = bench.command(&format!("build -n 1 -o {output} -")).stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        let result = child.wait_with_output().unwrap();
        drop(stdin);
        assert_contains_all(&expect_refusal(result), &[&format!("\"{output}\""), why]);
    }
    bench.run_ok("build -o g b");
    let before = bench.read("f");
    for line in ["check -s f b a", "check --binary -s g f", "info f"] {
        let appended = File::options().append(true).open(bench.path("f")).unwrap();
        let message = expect_refusal(bench.command(line).stdout(appended).output().unwrap());
        assert_contains_all(&message, &["write to standard output", "input", ": \"f\""]);
        assert!(bench.read("f") == before, "{line}");
    }
    for (line, parts) in [
        ("build -o new b missing", ["\"missing\"", "No such file"]),
        ("build -o new folder", ["\"folder\"", "directory"]),
        ("check -s f missing", ["\"missing\"", "No such file"]),
        ("check -s f folder", ["\"folder\"", "directory"]),
        ("build b", ["required", "--output"]),
        ("check b", ["required", "--state"]),
    ] {
        assert_contains_all(&bench.run_err(line), &parts);
    }
    assert!(!bench.path("new").exists());
    if Path::new("/dev/full").exists() {
        for line in ["info f", "--help"] {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let message = expect_refusal(bench.command(line).stdout(full).output().unwrap());
            assert_contains_all(&message, &["write to standard output", "No space left"]);
        }
    } else {
        report_skipped("no /dev/full here");
    }
}
