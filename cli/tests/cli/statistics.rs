//! What a run says of itself, and what it keeps quiet.

use crate::common::{Bench, clean, failed, number, numbers, stats, text};
use crate::corpus::{count, gzip, large, model};
use bloomline::BloomFilter;
use std::io::Write;

#[test]
fn stats_tell_the_figures() {
    let input = large();
    let bench = Bench::new(&[("a", &input)]);
    let unique = count(&model(&[&input]));

    let stats = stats(&bench.run(&format!("dedup --stats=json -n {unique} -p 1e-6 a")));
    assert_eq!(stats["lines"], 300_000);
    assert_eq!(stats["unique"], unique);
    assert_eq!(stats["dropped"], 300_000 - unique);
    assert_eq!(stats["bytes"], input.len());
    let within = |name: &str, range: std::ops::Range<f64>| {
        let value = number(&stats, name);
        assert!(range.contains(&value), "{name} {value}");
    };
    within("fpr", 0.8e-6..1.2e-6);
    within("fill", 0.2..0.5);
    within("seconds", 1e-4..100.0);
    within("mb_per_second", 0.01..1e6);

    for flag in ["--stats", "--stats=text"] {
        let text = text(&bench.run(&format!("dedup {flag} a")).stderr);
        assert!(text.contains("lines read       300000\n"), "{text}");
        assert!(text.contains(&format!("\nunique           {unique}\n")), "{text}");
    }
}

#[test]
fn statistics_are_those_of_the_run() {
    // 4000 lines, 3000 of them different and 10 without a second field.
    let mut input = Vec::new();
    for i in 0..4000 {
        writeln!(input, "{i}{}", if i < 10 { String::new() } else { format!("\t{}", i.min(3009)) }).unwrap();
    }
    let bench = Bench::new(&[("a", &input)]);
    let mut filter = BloomFilter::builder().expected_keys(5000).false_positive_rate(1e-7).build().unwrap();
    assert_eq!((10..3010).filter(|i| filter.insert(&*format!("{i}"))).count(), 3000);
    let line = "dedup -q --field 2 --on-error skip -n 5000 -p 1e-7 --verify 1000";
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
    assert_eq!(number(&figures, "measured_fpr"), 0.0);

    for option in ["--stats", "--stats=text"] {
        let told = text(&bench.run(&format!("{line} {option} a")).stderr);
        let row = |label: &str| told.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
        assert_eq!(row("lines read "), Some("4000"), "{told}");
        assert_eq!(row("unique "), Some("3000"), "{told}");
        assert_eq!(row("dropped "), Some("990"), "{told}");
        assert_eq!(row("without a key "), Some("10"), "{told}");
        for label in ["wrongly dropped ", "fill ", "rate now ", "rate measured ", "filter memory ", "time ", "speed "] {
            assert!(row(label).is_some_and(|text| text.contains(|c: char| c.is_ascii_digit())), "{label}: {told}");
        }
    }
    assert!(bench.refused("dedup --verify 10 a").contains("--stats"));
    assert!(bench.refused("dedup --stats --verify 0 a").contains("--verify"));
}

#[test]
fn lines_lost_are_as_many_as_expected() {
    let bench = Bench::new(&[("a", &numbers(0..200_000))]);
    for rate in ["0.01", "0.3"] {
        let stats = stats(&bench.run(&format!("dedup --stats=json -n 200000 -p {rate} a")));
        let (lost, expected) = (number(&stats, "dropped"), number(&stats, "expected_wrongly_dropped"));
        // All lines differ, so all that were dropped were lost. Five standard deviations, of a count that is about
        // Poisson's.
        assert!(expected > 100.0 && (lost - expected).abs() < 5.0 * expected.sqrt(), "{rate}: {lost} {expected}");
    }
}

#[test]
fn the_rate_that_is_measured_is_the_one_that_is_told() {
    let bench = Bench::new(&[("a", &numbers(0..20_000))]);
    for options in ["-n 20000 -p 0.01", "-n 20000 -p 0.2 --seed 9", "-n 1000 -p 0.01 --when-full grow"] {
        let figures = stats(&bench.run(&format!("dedup {options} --stats=json --verify 200000 a")));
        let (told, measured) = (number(&figures, "fpr"), number(&figures, "measured_fpr"));
        let sigma = (told * (1.0 - told) / 200_000.0).sqrt();
        assert!(told > 1e-4 && (measured - told).abs() < 5.0 * sigma, "{options}: {measured} {told} {sigma}");
        assert!((0.5..2.0).contains(&(number(&figures, "measured_fpr_sigma") / sigma)), "{figures}");
    }
}

#[test]
fn a_state_with_all_bits_set_has_figures() {
    let bench = Bench::new(&[("in", &numbers(0..2000)), ("more", &numbers(2000..2010))]);
    bench.run("dedup -n 1 -p 0.5 --state s in");
    let output = bench.run("dedup -n 1 -p 0.5 --state s --stats more");
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("wrongly dropped  10.000 "), "{}", text(&output.stderr));
}

#[test]
fn quiet_leaves_nothing_but_errors_to_be_said() {
    let bench = Bench::new(&[("a", &numbers(0..3000)), ("j", b"{}\n[\n"), ("cut", &gzip(b"a\n")[..12])]);
    for line in [
        "dedup -n 100 a",
        "dedup --memory 64K a",
        "dedup --json-pointer /a --on-error skip j",
        "dedup -n 10 --on-error skip cut",
        "dedup -n 10 --on-error keep cut",
    ] {
        assert!(!bench.run(line).stderr.is_empty(), "{line}");
        for quiet in ["-q", "--quiet"] {
            clean(bench.run(&format!("{line} {quiet}")));
        }
    }
    bench.refused("dedup -q missing");
    failed(&bench.run("dedup -q -n 100 --when-full stop a"));
}
