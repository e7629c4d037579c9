//! The sizes that options request, and the combinations of options that are refused.

use super::*;
use crate::options::{Cli, Command, DedupOptions};
use clap::Parser;

fn options(text: &str) -> DedupOptions {
    let words = ["bloomline", "dedup"].into_iter().chain(text.split_whitespace());
    let Command::Dedup(options) = Cli::parse_from(words).command else { panic!("it is dedup") };
    *options
}

fn estimate(lines: u64) -> Estimate {
    Estimate { lines, distinct: Some(lines / 2) }
}

fn chosen(text: &str, lines: Option<u64>) -> Result<SizePlan, Error> {
    let options = options(text);
    let found = lines.map(estimate).ok_or("a pipe".to_owned());
    choose(&options.size, &options.run.growth, options.run.state.is_some(), &found)
}

/// Asserts that options are refused, and that the message contains `why`.
fn refused(text: &str, lines: Option<u64>, why: &str) {
    let error = chosen(text, lines).unwrap_err().to_string();
    assert!(error.contains(why), "{text}: {error}");
}

fn filter(keys: u64, fpr: f64) -> Builder<BloomFilter> {
    BloomFilter::builder().expected_keys(keys).false_positive_rate(fpr)
}

#[test]
fn number_of_keys_and_rate_determine_the_plan() {
    let sized = |keys, fpr, stop| {
        let plan = filter(keys, fpr).plan().unwrap();
        SizePlan::Sized { plan, keys: Some(keys), fpr, limit: FullLimit::new(keys, fpr, stop) }
    };
    let scalable = |keys, fpr| SizePlan::Scalable { keys: Some(keys), fpr };
    let unknown = |fpr| SizePlan::Scalable { keys: None, fpr };
    let forecast = |lines: Option<u64>, fpr| SizePlan::Forecast { estimate: lines.map(estimate), fpr };
    let estimated = |keys, fpr| SizePlan::Estimated { plan: filter(keys, 0.95 * fpr).plan().unwrap(), keys, fpr };
    for (text, lines, expected) in [
        // A number of keys is a first size, at 1e-6 if no rate is given, unless the user asks for a fixed one.
        ("-n 1000", None, estimated(1000, 1e-6)),
        ("-n 1000 -p 0.01", Some(500), estimated(1000, 0.01)),
        ("-n 1000 --when-full warn", None, sized(1000, 1e-6, false)),
        ("--when-full warn", Some(500), sized(500, 1e-6, false)),
        ("--when-full stop", Some(500), sized(500, 1e-6, true)),
        // The number of lines in the inputs begins a forecast.
        ("", Some(500), forecast(Some(500), 1e-6)),
        ("-p 0.01", Some(500), forecast(Some(500), 0.01)),
        ("--when-full grow", Some(500), forecast(Some(500), 1e-6)),
        ("-n 1000 --when-full grow", Some(500), estimated(1000, 1e-6)),
        ("", None, forecast(None, 1e-6)),
        ("-p 0.01", None, forecast(None, 0.01)),
        // A state grows beyond the inputs of one run, unless the options fix its size.
        ("--state s", Some(500), scalable(500, 1e-6)),
        ("--state s", None, unknown(1e-6)),
        ("--state s -n 1000", Some(500), scalable(1000, 1e-6)),
        ("--state s -n 1000 --when-full warn", Some(500), sized(1000, 1e-6, false)),
        ("--state s -n 1000 --when-full grow", Some(500), scalable(1000, 1e-6)),
        ("--state s --when-full stop", Some(500), sized(500, 1e-6, true)),
    ] {
        assert_eq!(chosen(text, lines).unwrap(), expected, "{text:?} {lines:?}");
    }
    for text in ["--when-full warn", "--when-full stop"] {
        refused(text, None, "cannot estimate how many lines a pipe has");
    }
    refused("-p 1e-30", Some(500), "false-positive rate");
    // At this rate no share is left for growth, so the estimate is a limit. Lower rates are refused.
    let low = 2.0 * 500.0 / 2f64.powi(64);
    assert!(matches!(
        chosen(&format!("-p {low}"), Some(500)).unwrap(),
        SizePlan::Sized { limit: FullLimit { stop: true, .. }, .. }
    ));
}

/// The first filter's rate leaves a share for growth, and its file records the requested rate.
#[test]
fn an_estimated_set_is_built_as_planned() {
    for (keys, fpr) in [(1000, 0.01), (1_000_000, 0.01), (1_000_000, 1e-3), (1_000_000, 1e-6)] {
        let choice = chosen(&format!("-n {keys} -p {fpr}"), None).unwrap();
        let SizePlan::Estimated { plan, .. } = choice else { panic!("{keys}, {fpr}") };
        let (set, None) = choice.build(0, "").unwrap() else { panic!("{keys}, {fpr}") };
        let first = set.stages().next().unwrap();
        assert_eq!((first.memory_bytes(), first.probes()), (plan.memory_bytes(), plan.probes()));
        assert_eq!((first.expected_keys(), first.false_positive_rate()), (Some(keys), Some(fpr)));
        assert!(first.expected_fpr(keys) <= 0.95 * fpr, "{keys}, {fpr}");
    }
}

#[test]
fn memory_and_rate_determine_the_limit() {
    // Bits per key according to the model, as in tests/data/fpr.csv.
    let keys_at = |bits: f64| (8 << 20) as f64 / bits;
    for (text, lines, fpr, keys) in [
        ("-m 1M", None, 1e-6, keys_at(41.0824)),
        ("-m 1M", Some(500), 1e-6, keys_at(41.0824)),
        ("-m 1M -p 1e-4", None, 1e-4, keys_at(22.5583)),
        ("-m 1M -p 1e-4", Some(500), 1e-4, keys_at(22.5583)),
        ("-m 1M --state s", Some(500), 1e-6, keys_at(41.0824)),
        // More lines than the filter has capacity for: the run warns.
        ("-m 1M", Some(1_000_000), 1e-6, keys_at(41.0824)),
    ] {
        let choice = chosen(&format!("{text} --when-full warn"), lines).unwrap();
        let SizePlan::Sized { plan, keys: asked, fpr: rate, ref limit } = choice else {
            panic!("{text} has a fixed size")
        };
        assert_eq!((asked, rate), (None, fpr), "{text}");
        assert_eq!((plan.memory_bytes(), limit.planned, limit.stop), (1 << 20, limit.keys, false), "{text}");
        assert!((limit.fpr / fpr - 1.0).abs() < 1e-3, "{text} {lines:?}: {}", limit.fpr);
        assert!((limit.keys as f64 / keys - 1.0).abs() < 1e-3, "{text} {lines:?}: {}", limit.keys);
        // The file records the given parameter, and the other one follows from the size.
        let planned = limit.planned as f64;
        let (set, _) = choice.build(0, "line").unwrap();
        let (keys, rate) = set.made_for().unwrap();
        assert!((keys as f64 / planned - 1.0).abs() < 1e-3 && (rate / fpr - 1.0).abs() < 1e-3, "{text}: {keys} {rate}");
        assert_eq!((set.memory_bytes(), set.key_name()), (1 << 20, "line"));
    }
}

/// The first filter has the given memory, and all filters together have the requested rate.
#[test]
fn memory_is_the_size_of_the_first_filter() {
    for (text, lines, rate) in
        [("-m 1M", None, 1e-6), ("-m 1M", Some(500), 1e-6), ("-m 1M -p 1e-4", Some(1_000_000), 1e-4)]
    {
        let SizePlan::Estimated { plan, keys, fpr } = chosen(text, lines).unwrap() else { panic!("{text} grows") };
        assert_eq!((plan.memory_bytes(), fpr), (1 << 20, rate), "{text}");
        assert!(plan.expected_fpr(keys) <= 0.95 * rate && plan.expected_fpr(keys + 1) > 0.95 * rate, "{text}");
    }
    // A state can grow from its first key on.
    let choice = chosen("-m 1M -p 1e-4 --state s", Some(500)).unwrap();
    let (set, None) = choice.build(0, "").unwrap() else { panic!("it has no limit") };
    let first = set.stages().next().unwrap();
    assert!((first.memory_bytes() as f64 / f64::from(1 << 20) - 1.0).abs() < 0.01, "{}", first.memory_bytes());
    assert_eq!(set.local().unwrap().growing().unwrap().false_positive_rate(), Some(1e-4));
}

#[test]
fn options_determine_when_a_state_is_full() {
    let mut filter = filter(1000, 0.01).build().unwrap();
    for key in 0..400u64 {
        filter.insert(&key);
    }
    let (keys, capacity) = (filter.estimated_keys(), |fpr| filter.capacity(fpr));
    let limit = |planned, fpr, stop| {
        Some(FullLimit { keys: (planned as f64 - keys) as u64, ..FullLimit::new(planned, fpr, stop) })
    };
    let expected = [
        ("", limit(1000, 0.01, false)),
        ("--when-full stop", limit(1000, 0.01, true)),
        ("-n 1000 -p 0.01", limit(1000, 0.01, false)),
        ("-n 1000 -p 0.01 --when-full stop", limit(1000, 0.01, true)),
    ];
    // A filter whose file records no parameters is full at the default rate, if the options request a limit.
    let without = [
        ("", None),
        ("--when-full stop", limit(capacity(1e-6), 1e-6, true)),
        ("-p 0.02", limit(capacity(0.02), 0.02, false)),
    ];
    let mut silent = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes()).build().unwrap();
    silent.union(&filter).unwrap();
    for (filter, expected) in [(filter, &expected[..]), (silent, &without)] {
        let set = KeySet::Local(filter.into());
        for (text, expected) in expected {
            let options = options(text);
            let limit = limit_of_state(&options.size, &options.run.growth, Path::new("s"), &set).unwrap();
            assert_eq!(limit, *expected, "{text:?}");
        }
    }
}

/// Another size would have no effect, so it is refused. The same command can run every day.
#[test]
fn a_growing_state_refuses_another_size() {
    let build = |text: &str| chosen(&format!("--state s {text}"), Some(500)).unwrap().build(0, "").unwrap().0;
    let limit = |set: &KeySet, text: &str| {
        let options = options(text);
        limit_of_state(&options.size, &options.run.growth, Path::new("s"), set)
    };
    for (made, same, other) in [
        ("-n 1000", "-n 1000", "-n 1001"),
        ("-n 1000 -p 0.01", "-n 1000", "-m 1M"),
        ("-m 1M", "-m 1M", "-m 2M"),
        ("-m 1M -p 0.01", "-m 1M", "-n 1000"),
        ("", "-n 500", "-n 1000"),
    ] {
        let set = build(made);
        for text in ["", made, same] {
            assert_eq!(limit(&set, text).unwrap(), None, "{made}, {text}");
        }
        let error = limit(&set, other).unwrap_err().to_string();
        let (option, _) = other.split_once(' ').unwrap();
        let option = if option == "-m" { "--memory" } else { option };
        let why = ["it has its size", &format!("{option} asks for another"), "leave out the option that differs"];
        assert!(why.iter().all(|why| error.contains(why)), "{made}, {other}: {error}");
    }
    // The same command accepts a state that was shrunk to a smaller size than the options request.
    let mut set = build("-m 1M -p 0.01");
    set.insert_hashes(&[1, 2, 3], &mut [false; 3]).unwrap();
    set.local_mut().unwrap().shrink().unwrap();
    assert_eq!(set.stages().count(), 2);
    for text in ["-m 1M", "-m 1M -p 0.01"] {
        assert_eq!(limit(&set, text).unwrap(), None, "{text}");
    }
}
