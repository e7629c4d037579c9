//! Statistics and warnings of runs, and `--quiet`.

use crate::common::{
    Bench, assert_contains_all, blocks, count_set_bits, expect_exit_code, expect_failure, number, stats, text,
    url_lines,
};
use crate::corpus::{count, gzip};
use bloomline::{BloomFilter, ScalableBloomFilter};
use std::io::Write;
use std::time::Instant;

#[test]
fn stats_report_the_counts() {
    let input = [url_lines(0..20_000), url_lines(5000..15_000)].concat();
    let bench = Bench::new(&[("a", &input)]);
    let unique = 20_000;

    let started = Instant::now();
    let stats = stats(&bench.run(&format!("dedup --stats=json -n {unique} --when-full warn -p 1e-6 --state s a")));
    let elapsed = started.elapsed().as_secs_f64();
    assert_eq!(stats["lines"], 30_000);
    assert_eq!(stats["unique"], unique);
    assert_eq!(stats["dropped"], 10_000);
    assert_eq!(stats["bytes"], input.len());
    let within = |name: &str, range: std::ops::Range<f64>| {
        let value = number(&stats, name);
        assert!(range.contains(&value), "{name} {value}");
    };
    within("fpr", 0.8e-6..1.2e-6);
    let filter = bench.read("s");
    assert_eq!((&stats["memory_bytes"], &stats["saved_bytes"]), (&blocks(&filter).len().into(), &filter.len().into()));
    assert_eq!(stats["fill"], f64::from(count_set_bits(&filter)) / (8.0 * blocks(&filter).len() as f64));
    within("seconds", 1e-4..elapsed);
    let bytes_per_second = number(&stats, "mb_per_second") * 1e6;
    assert!((bytes_per_second * number(&stats, "seconds") / input.len() as f64 - 1.0).abs() < 1e-9, "{stats}");

    for flag in ["--stats", "--stats=text"] {
        let text = text(&bench.run(&format!("dedup {flag} a")).stderr);
        assert!(text.contains("lines read       30000\n"), "{text}");
        assert!(text.contains(&format!("\nunique           {unique}\n")), "{text}");
    }
}

#[test]
fn statistics_describe_the_run() {
    // Of 4000 lines, 3000 are distinct and 10 have no second field.
    let mut input = Vec::new();
    for i in 0..4000 {
        writeln!(input, "{i}{}", if i < 10 { String::new() } else { format!("\t{}", i.min(3009)) }).unwrap();
    }
    let bench = Bench::new(&[("a", &input)]);
    let mut filter = BloomFilter::builder().expected_keys(5000).false_positive_rate(1e-7).build().unwrap();
    assert_eq!((10..3010).filter(|i| filter.insert(&*format!("{i}"))).count(), 3000);
    let line = "dedup -q --field 2 --on-error skip -n 5000 --when-full warn -p 1e-7";
    let output = bench.run(&format!("{line} --stats=json a"));
    assert_eq!((output.status.code(), count(&output.stdout)), (Some(0), 3000));
    let figures = stats(&output);
    for (name, expected) in [
        ("lines", 4000),
        ("unique", 3000),
        ("dropped", 990),
        ("without_key", 10),
        ("bytes", input.len()),
        ("memory_bytes", filter.memory_bytes()),
    ] {
        assert_eq!(number(&figures, name), expected as f64, "{name}");
    }
    for (name, expected) in [("fill", filter.fill_ratio()), ("fpr", filter.current_fpr())] {
        assert!((number(&figures, name) / expected - 1.0).abs() < 1e-9, "{name} {expected}: {figures}");
    }
    assert!(number(&figures, "expected_wrongly_dropped") < 3000.0 * 1e-7);
    assert!(number(&figures, "seconds") > 0.0 && number(&figures, "mb_per_second") > 0.0);

    for option in ["--stats", "--stats=text"] {
        let stderr = text(&bench.run(&format!("{line} {option} a")).stderr);
        let row = |label: &str| stderr.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
        assert_eq!(row("lines read "), Some("4000"), "{stderr}");
        assert_eq!(row("unique "), Some("3000"), "{stderr}");
        assert_eq!(row("dropped "), Some("990"), "{stderr}");
        assert_eq!(row("without a key "), Some("10"), "{stderr}");
        // The figures are rounded and from another run, so the times differ.
        let first = |label: &str| row(label).and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        for (label, name, unit, error) in [
            ("wrongly dropped ", "expected_wrongly_dropped", 1.0, 0.0005),
            ("fill ", "fill", 0.01, 0.00005),
            ("rate now ", "fpr", 1.0, 0.005e-7),
            ("filter memory ", "memory_bytes", 1024.0, 5.12),
        ] {
            let shown = first(label).unwrap_or_else(|| panic!("{label}: {stderr}")) * unit;
            assert!((shown - number(&figures, name)).abs() <= error, "{label}: {stderr} {figures}");
        }
        assert!(first("time ") > Some(0.0) && first("speed ") > Some(0.0), "{stderr}");
    }
}

/// The figure of printed lines equals the number of lines in the output, in every mode.
#[test]
fn printed_lines_are_counted() {
    let lines = [
        r#"{"text":"a b"}"#,
        "bad",
        "",
        r#"{"text":"a b"}"#,
        r#"{"text":""}"#,
        r#"{"text":"c"}"#,
        "worse",
        r#"{"text":""}"#,
    ]
    .map(|line| format!("{line}\n"));
    let bench = Bench::new(&[("in", lines.concat().as_bytes()), ("tests", b"{\"text\":\"a b\"}\n")]);
    let lines = ["", "-v", "--annotate", "--repeated", "--unique", "-c", "--repeated -v", "--unique -v", "--keep last"];
    let groups =
        ["--keep last", "--pairs p", "--keep max:/n", "--clusters q", "--keep max:/n --repeated", "--pairs p --unique"];
    let lines = lines.iter().chain(&groups).map(|mode| ("printed", format!("dedup --json-pointer /text {mode} in")));
    let sets = ["in", "not-in", "not-in --distinct"];
    let sets = sets.iter().map(|mode| ("selected", format!("{mode} --json-pointer /text tests -- in")));
    let cuts = [
        "",
        "--by document",
        "--drop-document",
        "--annotate",
        "--near 0.8",
        "--ngram 0",
        "--against tests --by document",
    ];
    let whole = ["", "--exact", "--count", "--pairs p", "--clusters q", "--keep last", "--keep max:/n"];
    let cuts = cuts.iter().map(|mode| format!("corpus {mode} in"));
    let whole = ["--by document --ngram 0", "--near 0.8"]
        .into_iter()
        .flat_map(|how| whole.map(|mode| format!("corpus {how} {mode} in")));
    let documents =
        cuts.chain(whole).flat_map(|line| ["", " --keep-empty"].map(|empty| ("kept", format!("{line}{empty}"))));
    for (name, line) in lines.chain(sets).chain(documents) {
        for on_error in ["skip", "keep"] {
            let line = line.replacen(' ', &format!(" -q --stats=json --on-error {on_error} "), 1);
            let arguments = line.split_whitespace().collect::<Vec<_>>().join(" ");
            let output = bench.run(&arguments);
            let figures = stats(&output);
            assert_eq!(number(&figures, name) as u64, count(&output.stdout), "{arguments}: {figures}");
        }
    }
}

#[test]
fn lost_lines_match_the_expectation() {
    let bench = Bench::new(&[("a", &url_lines(0..200_000))]);
    for rate in ["0.01", "0.01 --when-full warn", "0.3", "0.3 --when-full warn", "0.3 -n 150000"] {
        let size = if rate.contains("-n") { "" } else { "-n 200000 " };
        let stats = stats(&bench.run(&format!("dedup -j 1 --stats=json {size}-p {rate} a")));
        let (lost, expected) = (number(&stats, "dropped"), number(&stats, "expected_wrongly_dropped"));
        // All lines differ, so each dropped line is lost. The count has about a Poisson distribution, and may deviate by five
        // standard deviations. One thread makes it the same in each run.
        assert!(expected > 100.0 && (lost - expected).abs() < 5.0 * expected.sqrt(), "{rate}: {lost} {expected}");
    }
}

#[test]
fn measured_rates_match_expected_rates() {
    const SAMPLE: u32 = 200_000;
    let mut guessed = true;
    for (options, scalable) in [
        ("-n 20000 --when-full warn -p 0.01", false),
        ("-n 20000 --when-full warn -p 0.2 --seed 9", false),
        ("-n 1000 -p 0.01", true),
    ] {
        let bench = Bench::new(&[("a", &url_lines(0..20_000))]);
        // The key options of the filter have no effect.
        bench.run_ok(&format!("dedup {options} --ignore-case -s s -o o a"));
        let shown = bench.run_ok(&format!("check --verify {SAMPLE} -s s"));
        let lines: Vec<&str> = shown.lines().collect();
        let [expected, measured] = lines[..] else { panic!("{shown}") };
        let expected: f64 = expected.strip_prefix("rate expected  ").unwrap().parse().unwrap();
        let measured = measured.strip_prefix("rate measured  ").unwrap();
        let (rate, found) = measured.split_once(": ").unwrap();
        let found: f64 = found.strip_suffix(&format!(" of {SAMPLE} keys")).unwrap().parse().unwrap();
        // The library measures the rate again with other keys.
        let filter = bench.path("s");
        let absent = |contains: &dyn Fn(&str) -> bool| (0..SAMPLE).filter(|i| contains(&format!("absent {i}"))).count();
        let (reported, again) = match scalable {
            true => {
                let filter = ScalableBloomFilter::load(filter).unwrap();
                (filter.current_fpr(), absent(&|key| filter.contains(key)))
            }
            false => {
                let filter = BloomFilter::load(filter).unwrap();
                (filter.current_fpr(), absent(&|key| filter.contains(key)))
            }
        };
        // Four decimals are printed.
        assert!((expected - reported).abs() <= 0.00005 && reported > 1e-4, "{shown} {reported}");
        let sigma = (reported * (1.0 - reported) / f64::from(SAMPLE)).sqrt();
        for rate in [found / f64::from(SAMPLE), again as f64 / f64::from(SAMPLE)] {
            assert!((rate - reported).abs() < 5.0 * sigma, "{options}: {rate} {reported} {sigma}");
        }
        guessed &= (found - reported * f64::from(SAMPLE)).abs() <= 1.0;
        let [rate, shown_sigma] = rate.split_once(" ± ").map(|(rate, sigma)| [rate, sigma]).unwrap();
        let [rate, shown_sigma] = [rate, shown_sigma].map(|figure| figure.parse::<f64>().unwrap());
        assert!((rate - found / f64::from(SAMPLE)).abs() <= 0.00005, "{shown}");
        assert!((shown_sigma - found.sqrt() / f64::from(SAMPLE)).abs() <= 0.00005, "{shown}");
    }
    assert!(!guessed, "what is measured scatters by more than a key");
    let bench = Bench::new(&[("a", b"a\n")]);
    bench.run_ok("build -o f a");
    assert_contains_all(&bench.run_err("check --verify 0 -s f"), &["--verify", "'0'", "from 1 to"]);
    assert_contains_all(&bench.run_err("check --verify 9 -s none"), &["cannot load the filter \"none\""]);
    assert_contains_all(&bench.run_err("check --verify 9"), &["--state"]);
}

#[test]
fn states_with_all_bits_set_have_statistics() {
    let bench = Bench::new(&[("in", &url_lines(0..2000)), ("more", &url_lines(2000..2010))]);
    bench.run("dedup -n 1 -p 0.5 --when-full warn --state s in");
    let output = bench.run("dedup -n 1 -p 0.5 --state s --stats more");
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("wrongly dropped  10.000 "), "{}", text(&output.stderr));
}

#[test]
fn quiet_prints_only_errors() {
    let bench = Bench::new(&[("a", &url_lines(0..3000)), ("j", b"{}\n[\n"), ("cut", &gzip(b"a\n")[..12])]);
    for (line, code, warning) in [
        ("dedup --memory 64K a", 0, "64.00 KiB"),
        ("dedup --json-pointer /a --on-error skip j", 0, "without a key: 2"),
        ("dedup -n 10 --on-error skip cut", 1, "\"cut\" after line 0"),
        ("dedup -n 10 --on-error keep cut", 1, "\"cut\" after line 1"),
        ("dedup -n 10 --on-error skip missing", 1, "\"missing\""),
    ] {
        let loud = bench.run(line);
        assert_eq!(loud.status.code(), Some(code), "{line}");
        assert_contains_all(&text(&loud.stderr), &[warning]);
        for quiet in ["-q", "--quiet"] {
            let output = expect_exit_code(bench.run(&format!("{line} {quiet}")), code);
            assert!(output.as_bytes() == loud.stdout, "{line} {quiet}");
        }
    }
    // `--quiet` does not suppress the warning of lost lines.
    assert_contains_all(&text(&bench.run("dedup -q -n 100 --when-full warn a").stderr), &[" 100 distinct lines"]);
    assert_contains_all(&bench.run_err("dedup -q missing"), &["\"missing\"", "No such file"]);
    assert_contains_all(
        &expect_failure(&bench.run("dedup -q -n 100 --when-full stop a")),
        &["\"a\", line 101:", " 100 distinct lines"],
    );
}
