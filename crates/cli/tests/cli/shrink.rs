//! Filters that are saved in the smallest size that keeps their rate, and merges of filters of different sizes.

use crate::common::{Bench, assert_contains_all, blocks, expect_success, number, stats, text, url_lines};
use bloomline::BloomFilter;

/// Returns the number of blocks in a filter's file.
fn block_count(bench: &Bench, name: &str) -> usize {
    blocks(&bench.read(name)).len() / 64
}

/// Builds a filter of the planned size from lines with the library, and folds it.
fn folded(lines: &[u8], keys: u64, times: u32) -> BloomFilter {
    let mut filter = BloomFilter::new(keys, 0.01).unwrap();
    lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).for_each(|line| _ = filter.insert(line));
    (0..times).for_each(|_| assert!(filter.fold()));
    filter
}

/// Numbers of keys, the blocks planned for them at 1 %, and the blocks after folding for 4000 lines. At 1 % a key takes
/// 10.1138 bits, so K keys take 0.019753 K blocks, rounded up to a multiple of the largest power of 2 that is at most a 128th
/// of them. 4000 lines need 80 blocks, which is more than half of the first filter. The others are folded until their number
/// of blocks is odd.
const GUESSES: [(u64, usize, usize); 4] =
    [(7550, 150, 150), (20_000, 396, 99), (80_000, 1584, 99), (1_000_000, 19_840, 155)];

#[test]
fn build_saves_the_smallest_sufficient_size() {
    let lines = url_lines(0..4000);
    for (keys, planned, needed) in GUESSES {
        let bench = Bench::new(&[("a", &lines), ("b", &url_lines(4000..5000))]);
        let output = bench.run(&format!("build --stats=json -n {keys} -p 0.01 -o small a"));
        let figures = stats(&output);
        assert_eq!((block_count(&bench, "small"), number(&figures, "memory_bytes")), (needed, 64.0 * planned as f64));
        assert_eq!(figures["saved_bytes"], 64 + 64 + 64 * needed + 16);
        assert_eq!(bench.read("small").len(), 64 + 64 + 64 * needed + 16);
        // The saved filter equals the folded planned filter and keeps its rate.
        let small = BloomFilter::load(bench.path("small")).unwrap();
        assert!(small == folded(&lines, keys, (planned / needed).ilog2()));
        assert!(small.current_fpr() <= 0.01 && number(&figures, "fpr") == small.current_fpr());
        assert_eq!((small.false_positive_rate(), small.key_name()), (Some(0.01), "line"));
        let expected = if needed == planned { keys } else { small.capacity(0.01) };
        assert_eq!(small.expected_keys(), Some(expected));
        assert!(expect_success(bench.run("check -s small a")) == lines);

        bench.run_ok(&format!("build -n {keys} -p 0.01 --no-shrink -o whole a"));
        assert_eq!(block_count(&bench, "whole"), planned);
        assert_eq!(BloomFilter::load(bench.path("whole")).unwrap().expected_keys(), Some(keys));
        // Appending does not change the size.
        for (name, blocks) in [("small", needed), ("whole", planned)] {
            bench.run(&format!("build --append -o {name} b"));
            assert_eq!(block_count(&bench, name), blocks);
        }
        let text = text(&bench.run(&format!("build --stats -n {keys} -p 0.01 -o small a")).stderr);
        let file = 64 + 64 + 64 * needed + 16;
        let saved = format!("{:.2} KiB", file as f64 / 1024.0);
        assert!(text.contains(&format!("\nfilter saved   {saved}\n")), "{text}");
    }
    // With `--when-full warn`, an overfull filter keeps its size. Otherwise the filter is built for the number of lines.
    let bench = Bench::new(&[("a", &lines)]);
    bench.run("build -n 2000 --when-full warn -p 0.01 -o f a");
    assert_eq!(block_count(&bench, "f"), 40);
    bench.run_ok("build -n 2000 -p 0.01 -o f a");
    let filter = BloomFilter::load(bench.path("f")).unwrap();
    assert!((3940..=4000).contains(&filter.expected_keys().unwrap()) && filter.current_fpr() < 0.011);
    // Repeats count when the size is planned, but not when the filter is saved, so it is folded until its number of blocks is
    // odd. An estimate reserves a twentieth of the rate for growth.
    bench.write("repeats", &url_lines(0..100).repeat(400));
    bench.run_ok("build -p 0.01 -o f repeats");
    let planned = BloomFilter::builder().expected_keys(40_000).false_positive_rate(0.95 * 0.01).plan().unwrap();
    assert_eq!(block_count(&bench, "f"), planned.block_count() >> planned.block_count().trailing_zeros());
}

#[test]
fn dedup_shrinks_its_state_only_on_request() {
    let lines = url_lines(0..4000);
    for (keys, planned, needed) in GUESSES {
        let bench = Bench::new(&[("a", &lines), ("b", &url_lines(3900..4010))]);
        let run = |options: &str| {
            stats(
                &bench.run(&format!("dedup -n {keys} --when-full warn -p 0.01 --stats=json -o o --force {options} a")),
            )
        };
        let whole = run("--state whole");
        let small = run("--shrink --state small");
        assert_eq!((block_count(&bench, "whole"), block_count(&bench, "small")), (planned, needed));
        for (name, figures) in [("whole", &whole), ("small", &small)] {
            assert_eq!(figures["saved_bytes"], bench.read(name).len());
            assert_eq!(figures["memory_bytes"], 64 * planned);
            assert_eq!(bench.run_ok(&format!("check --total -s {name} a")), "4000\n");
        }
        // The planned filter determined the dropped lines.
        assert_eq!(small["expected_wrongly_dropped"], whole["expected_wrongly_dropped"]);
        let filter = BloomFilter::load(bench.path("small")).unwrap();
        assert_eq!(small["fpr"], filter.current_fpr());
        assert!(filter == folded(&lines, keys, (planned / needed).ilog2()) && filter.current_fpr() <= 0.01);
        // The next run uses the capacity of the shrunk state. It accepts the same options, and refuses others.
        assert!(expect_success(bench.run("dedup --state small b")).len() >= url_lines(4000..4008).len());
        assert_eq!(block_count(&bench, "small"), needed);
        expect_success(bench.run(&format!("dedup -n {keys} -p 0.01 --shrink --state small b")));
        let message = bench.run_err(&format!("dedup -n {} -p 0.01 --state small b", 3 * keys));
        let has = format!(" bytes, but it has {}", 64 * needed);
        assert_contains_all(
            &message,
            &["cannot use the state \"small\": -n and -p ask for ", &has, "leave out the option that differs"],
        );
    }
    assert_contains_all(&Bench::new(&[]).run_err("dedup --shrink"), &["without", "--state"]);
}

#[test]
fn growing_states_and_states_without_a_rate_are_not_shrunk() {
    let bench = Bench::new(&[("a", &url_lines(0..300))]);
    bench.run_ok("dedup --state growing -o o a");
    bench.run_ok("dedup --shrink --state same -o q a");
    assert!(bench.read("same") == bench.read("growing"));
    let filter: BloomFilter = BloomFilter::builder().memory(1 << 16).probes(8).build().unwrap();
    filter.save(bench.path("silent")).unwrap();
    bench.run_ok("dedup --shrink --state silent -o p a");
    assert_eq!(block_count(&bench, "silent"), 1024);
}

#[test]
fn merge_accepts_sizes_that_fold_to_each_other() {
    let bench = Bench::new(&[("a", &url_lines(0..3000)), ("b", &url_lines(2000..4000)), ("c", &url_lines(0..10))]);
    // Like the filters of `GUESSES`, these have 99, 198, 396 and 60 blocks, all at 1 %.
    for (name, keys) in [("a", 5000), ("b", 10_000), ("c", 20_000), ("d", 3000)] {
        let lines = if name == "d" { "c" } else { name };
        bench.run_ok(&format!("build -n {keys} -p 0.01 --no-shrink -o {name}.bloom {lines}"));
    }
    let sizes = ["a", "b", "c", "d"].map(|name| block_count(&bench, &format!("{name}.bloom")));
    assert_eq!(sizes, [99, 198, 396, 60]);
    bench.run_ok("build -n 5000 -p 0.01 -o all.bloom a b c");
    for order in ["a b c", "c b a", "b c a", "c a b"] {
        let files: Vec<String> = order.split(' ').map(|name| format!("{name}.bloom")).collect();
        bench.run_ok(&format!("merge -o merged {}", files.join(" ")));
        let [merged, all] = ["merged", "all.bloom"].map(|name| BloomFilter::load(bench.path(name)).unwrap());
        assert!(merged == all && block_count(&bench, "merged") == 99, "{order}");
        assert_eq!((merged.key_name(), merged.false_positive_rate()), ("line", Some(0.01)));
        assert!(
            merged.expected_keys() == Some(5000) || merged.expected_keys() == Some(merged.capacity(0.01)),
            "{order}"
        );
    }
    assert_contains_all(
        &bench.run_err("merge a.bloom d.bloom -o other"),
        &["\"d.bloom\" into \"a.bloom\"", "size: 99 and 60 blocks"],
    );
    assert_contains_all(
        &bench.run_err("merge d.bloom c.bloom -o other"),
        &["\"c.bloom\" into \"d.bloom\"", "size: 60 and 396 blocks"],
    );
    assert!(!bench.path("other").exists());
    assert!(
        bench
            .run_ok("merge --help")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains("the result has the smallest size")
    );
}

#[test]
fn merge_warns_of_a_result_that_is_too_full() {
    let bench = Bench::new(&[("a", &url_lines(0..10)), ("b", &url_lines(0..12_000))]);
    for shrink in ["", "--no-shrink "] {
        for name in ["a", "b"] {
            bench.run_ok(&format!("build -n 80000 -p 0.01 {shrink}-o {name}.bloom {name}"));
        }
        // 1584 blocks are folded to 99 for ten lines, and to 396 for 12,000 lines.
        let sizes = ["a.bloom", "b.bloom"].map(|name| block_count(&bench, name));
        assert_eq!(sizes, if shrink.is_empty() { [99, 396] } else { [1584; 2] });
        for order in ["a.bloom b.bloom", "b.bloom a.bloom"] {
            let output = bench.run(&format!("merge -o merged {order}"));
            let merged = BloomFilter::load(bench.path("merged")).unwrap();
            assert_eq!((output.status.code(), merged.block_count()), (Some(0), sizes[0]));
            let (keys, planned, rate) =
                (merged.estimated_keys(), merged.expected_keys().unwrap(), merged.current_fpr());
            let warning = format!(
                "bloomline: warning: the filter has about {keys:.0} keys but is made for {planned}: its false-positive rate is \
                 {rate:.4}; build the filters with -n for the keys of all, and with --no-shrink\n"
            );
            assert_eq!(text(&output.stderr), if shrink.is_empty() { &*warning } else { "" });
        }
    }
}

/// States grow. The merged state has their common rate.
#[test]
fn states_are_merged_and_shrunk() {
    let bench = Bench::new(&[
        ("a", &url_lines(0..30_000)),
        ("b", &url_lines(20_000..60_000)),
        ("c", &url_lines(60_000..60_100)),
    ]);
    bench.run_ok("dedup -n 1000 -p 0.001 -s mon --total a");
    bench.run_ok("dedup -n 20000 -p 0.001 -s tue --total b");
    let message = bench.run_err("merge mon tue -o both");
    assert_contains_all(&message, &["a false-positive rate of 1.", "e-3, for", "give -p 1."]);
    let advice = message.split("give -p ").nth(1).unwrap().split(' ').next().unwrap();
    assert_contains_all(
        &bench.run_err("merge -p 0.001 mon tue -o both"),
        &["-p asks for 0.001", "a false-positive rate of 1."],
    );
    assert!(!bench.path("both").exists());
    bench.run_ok(&format!("merge -p {advice} mon tue -o both"));
    assert_eq!(bench.run_ok("check --total -s both a b"), "a:30000\nb:40000\n");
    let info = bench.json("info --json both");
    let max_fpr = info["max_fpr"].as_f64().unwrap();
    assert!(
        max_fpr > 0.001 && max_fpr <= advice.parse().unwrap() && info["fpr"].as_f64().unwrap() <= max_fpr,
        "{info}"
    );
    // The next run uses the merged state.
    assert_eq!(text(&expect_success(bench.run("dedup -s both c"))).lines().count(), 100);
    assert_eq!(bench.run_ok("check --total -s both a b c"), "a:30000\nb:40000\nc:100\n");

    // The state is planned for many more lines than it gets.
    bench.run_ok("dedup -n 1000000 -p 0.001 -s large --total a");
    let before = bench.read("large").len();
    bench.run_ok("dedup -s large --shrink --total a");
    assert!(bench.read("large").len() < before / 10, "{} of {before}", bench.read("large").len());
    assert_eq!(bench.run_ok("check --total -s large a"), "30000\n");
    // One in a thousand of the 30,000 new lines is a false positive.
    let new: u32 = bench.run_ok("dedup -s large --total b").trim().parse().unwrap();
    assert!((29_900..=30_000).contains(&new), "{new}");
    assert_eq!(bench.run_ok("check --total -s large a b"), "a:30000\nb:40000\n");
}
