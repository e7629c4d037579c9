//! Sizes that options ask for, and combinations that are refused.

use super::*;
use crate::options::{Cli, Command, DedupOptions};
use clap::Parser;

fn options(text: &str) -> DedupOptions {
    let words = ["bloomline", "dedup"].into_iter().chain(text.split_whitespace());
    let Command::Dedup(options) = Cli::parse_from(words).command else { panic!("it is dedup") };
    *options
}

fn chosen(text: &str, lines: Option<u64>) -> Result<SizePlan, Error> {
    let options = options(text);
    choose(&options.size, &options.run.growth, options.run.state.is_some(), &lines.ok_or("a pipe".to_owned()))
}

/// Asserts that options are refused with this piece of a sentence.
fn refused(text: &str, lines: Option<u64>, why: &str) {
    let error = chosen(text, lines).unwrap_err().to_string();
    assert!(error.contains(why), "{text}: {error}");
}

fn filter(keys: u64, fpr: f64) -> Builder<BloomFilter> {
    BloomFilter::builder().expected_keys(keys).false_positive_rate(fpr)
}

#[test]
fn keys_and_rate_decide() {
    let sized = |keys, fpr, stop| {
        let plan = filter(keys, fpr).plan().unwrap();
        SizePlan::Sized { plan, keys: Some(keys), fpr, limit: FullLimit::new(keys, fpr, stop) }
    };
    let scalable = |keys, fpr| SizePlan::Scalable { keys: Some(keys), fpr };
    let unknown = |fpr| SizePlan::Scalable { keys: None, fpr };
    let estimated = |keys, fpr| SizePlan::Estimated { plan: filter(keys, 0.95 * fpr).plan().unwrap(), keys, fpr };
    for (text, lines, expected) in [
        // A number of keys is a first size, at 1e-6 if no rate is given, unless the user asks for a fixed one.
        ("-n 1000", None, estimated(1000, 1e-6)),
        ("-n 1000 -p 0.01", Some(500), estimated(1000, 0.01)),
        ("-n 1000 --when-full warn", None, sized(1000, 1e-6, false)),
        ("--when-full warn", Some(500), sized(500, 1e-6, false)),
        ("--when-full stop", Some(500), sized(500, 1e-6, true)),
        // So is the number of keys in the inputs.
        ("", Some(500), estimated(500, 1e-6)),
        ("-p 0.01", Some(500), estimated(500, 0.01)),
        ("--when-full grow", Some(500), estimated(500, 1e-6)),
        ("-n 1000 --when-full grow", Some(500), estimated(1000, 1e-6)),
        // If the number is unknown, the set grows from a filter for many keys.
        ("", None, unknown(1e-6)),
        ("-p 0.01", None, unknown(0.01)),
        // A state is for more than the inputs of one run, unless the options say otherwise.
        ("--state s", Some(500), scalable(500, 1e-6)),
        ("--state s", None, unknown(1e-6)),
        ("--state s -n 1000", Some(500), scalable(1000, 1e-6)),
        ("--state s -n 1000 --when-full warn", Some(500), sized(1000, 1e-6, false)),
        ("--state s -n 1000 --when-full grow", Some(500), scalable(1000, 1e-6)),
        ("--state s --when-full stop", Some(500), sized(500, 1e-6, true)),
    ] {
        assert_eq!(chosen(text, lines).unwrap(), expected, "{text:?} {lines:?}");
    }
    refused("--max-fpr 0.1", None, "--max-fpr 0.1 sets the rate at which a filter is full");
    for text in ["--when-full warn", "--when-full stop", "--when-full stop --max-fpr 0.1"] {
        refused(text, None, "cannot estimate how many lines a pipe has");
    }
    refused("-p 1e-30", Some(500), "false-positive rate");
    // No rate is left for growth, so the estimate is a limit. Still lower rates are refused.
    let low = 2.0 * 500.0 / 2f64.powi(64);
    assert!(matches!(
        chosen(&format!("-p {low}"), Some(500)).unwrap(),
        SizePlan::Sized { limit: FullLimit { stop: true, .. }, .. }
    ));
}

/// The first filter's rate leaves a share for growth, and its file records the rate that was asked for.
#[test]
fn an_estimate_is_built_as_planned() {
    for (keys, fpr) in [(1000, 0.01), (1_000_000, 0.01), (1_000_000, 1e-3), (1_000_000, 1e-6)] {
        let choice = chosen(&format!("-p {fpr}"), Some(keys)).unwrap();
        let SizePlan::Estimated { plan, .. } = choice else { panic!("{keys}, {fpr}") };
        let (set, None) = choice.build(0, "").unwrap() else { panic!("{keys}, {fpr}") };
        let first = set.stages().next().unwrap();
        assert_eq!((first.memory_bytes(), first.probes()), (plan.memory_bytes(), plan.probes()));
        assert_eq!((first.expected_keys(), first.false_positive_rate()), (Some(keys), Some(fpr)));
        assert!(first.expected_fpr(keys) <= 0.95 * fpr, "{keys}, {fpr}");
    }
}

#[test]
fn two_rates_do_not_contradict_each_other() {
    for text in ["-n 1000 --max-fpr 1e-7", "-m 1M -p 0.01 --max-fpr 0.001", "-p 0.01 --max-fpr 0.001"] {
        refused(text, Some(500), "is below the rate of -p");
    }
    for text in ["-p 1e-6 --max-fpr 0.1 --when-full grow", "-n 1000 --max-fpr 0.1 --when-full grow"] {
        refused(text, Some(500), "sets the rate at which a filter is full");
    }
}

#[test]
fn memory_decides() {
    // Bits a key by the model, as in tests/data/fpr.csv.
    let keys_at = |bits: f64| (8 << 20) as f64 / bits;
    for (text, lines, fpr, keys) in [
        ("-m 1M", None, 1e-6, keys_at(41.0824)),
        ("-m 1M", Some(500), 1e-6, keys_at(41.0824)),
        ("-m 1M -p 1e-4", None, 1e-4, keys_at(22.5583)),
        ("-m 1M -p 1e-4", Some(500), 1e-4, keys_at(22.5583)),
        ("-m 1M --state s", Some(500), 1e-6, keys_at(41.0824)),
        // More lines than fit: it warns.
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
        // The file records the given number, and the other follows from the size.
        let planned = limit.planned as f64;
        let (set, _) = choice.build(0, "line").unwrap();
        let (keys, rate) = set.made_for().unwrap();
        assert!((keys as f64 / planned - 1.0).abs() < 1e-3 && (rate / fpr - 1.0).abs() < 1e-3, "{text}: {keys} {rate}");
        assert_eq!((set.memory_bytes(), set.key_name()), (1 << 20, "line"));
    }
}

/// The memory is the first filter's, and the rate of the whole is the one asked for.
#[test]
fn memory_is_a_first_size() {
    for (text, lines, rate) in
        [("-m 1M", None, 1e-6), ("-m 1M", Some(500), 1e-6), ("-m 1M -p 1e-4", Some(1_000_000), 1e-4)]
    {
        let SizePlan::Estimated { plan, keys, fpr } = chosen(text, lines).unwrap() else { panic!("{text} grows") };
        assert_eq!((plan.memory_bytes(), fpr), (1 << 20, rate), "{text}");
        assert!(plan.expected_fpr(keys) <= 0.95 * rate && plan.expected_fpr(keys + 1) > 0.95 * rate, "{text}");
    }
    // A state grows from its first key on.
    let choice = chosen("-m 1M -p 1e-4 --state s", Some(500)).unwrap();
    let (set, None) = choice.build(0, "").unwrap() else { panic!("it has no limit") };
    let first = set.stages().next().unwrap();
    assert!((first.memory_bytes() as f64 / f64::from(1 << 20) - 1.0).abs() < 0.01, "{}", first.memory_bytes());
    assert_eq!(set.local().unwrap().growing().unwrap().false_positive_rate(), Some(1e-4));
}

#[test]
fn full_is_where_the_rate_is_reached() {
    for text in ["-n 1000 -p 0.001 --max-fpr 0.01", "-m 1M -p 0.001 --max-fpr 0.01", "-m 1M --max-fpr 0.01"] {
        let SizePlan::Sized { plan, limit, .. } = chosen(text, Some(500)).unwrap() else {
            panic!("{text} has a fixed size")
        };
        assert_eq!((limit.fpr, limit.planned), (0.01, limit.keys), "{text}");
        assert!(plan.expected_fpr(limit.keys) <= 0.01 && plan.expected_fpr(limit.keys + 1) > 0.01, "{text}");
    }
}

#[test]
fn a_state_is_full_where_the_options_say() {
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
        ("-n 1000 -p 0.01 --max-fpr 0.02", limit(capacity(0.02), 0.02, false)),
        ("--max-fpr 0.02", limit(capacity(0.02), 0.02, false)),
        ("--when-full stop --max-fpr 0.02", limit(capacity(0.02), 0.02, true)),
    ];
    // A filter whose file has neither is full at the default rate, if the options ask for a limit.
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
            let limit = limit_of_state(&options.size, &options.run.growth, false, Path::new("s"), &set).unwrap();
            assert_eq!(limit, *expected, "{text:?}");
        }
    }
}
