//! `bloomline plan`, compared with the exact model of the rate.

use crate::common::{Bench, assert_contains_all, expect_success, number};
use serde_json::Value;

/// Returns the rows of one kind in tests/data/fpr.csv: probes, bits per key, and rate.
fn model(kind: &str) -> Vec<(u64, f64, f64)> {
    let lines = include_str!("../../../../tests/data/fpr.csv").lines().map(|line| line.split(',').collect::<Vec<_>>());
    lines
        .filter(|fields| fields[0] == kind && fields[1] == "words4")
        .map(|fields| (fields[2].parse().unwrap(), fields[3].parse().unwrap(), fields[4].parse().unwrap()))
        .collect()
}

#[track_caller]
fn near(value: &Value, expected: f64, error: f64) {
    let value = value.as_f64().unwrap();
    assert!((value / expected - 1.0).abs() < error, "{value} {expected}");
}

#[test]
fn plans_match_the_model() {
    let bench = Bench::new(&[]);
    let rows = model("best_for_target");
    assert_eq!(rows.len(), 8);
    for (probes, bits, rate) in rows {
        let by_rate = bench.json(&format!("plan --json -n 1000000000 -p {rate}"));
        let words4 = &by_rate[0];
        assert_eq!((&words4["layout"], &words4["probes"]), (&"words4".into(), &probes.into()));
        // The minimum size, rounded up so that the filter can be folded to 128 to 255 blocks.
        let min_blocks = bits * 1e9 / 512.0;
        let fold = ((min_blocks / 128.0).log2().floor()).exp2();
        let blocks = (min_blocks / fold).ceil() * fold;
        assert_eq!(words4["memory_bytes"], 64 * blocks as u64);
        near(&words4["bits_per_key"], blocks * 512.0 / 1e9, 1e-12);
        assert_eq!(words4["rates"][1]["load"], 1.0);
        // Additional blocks lower the rate, at most by their ratio for each probe.
        let (found, lowest) = (number(&words4["rates"][1], "fpr"), rate * (min_blocks / blocks).powi(probes as i32));
        assert!((lowest..rate * (1.0 + 1e-5)).contains(&found), "{found}, {lowest} to {rate}");

        // The three forms of the request agree.
        let memory = words4["memory_bytes"].as_u64().unwrap();
        let by_keys = bench.json(&format!("plan --json -n 1000000000 --memory {memory}"));
        assert_eq!(by_keys[0], *words4);
        let by_memory = bench.json(&format!("plan --json -p {rate} --memory {memory}"));
        assert_eq!(by_memory[0]["probes"], probes);
        near(&by_memory[0]["keys"], 1e9 * blocks / min_blocks, 1e-5);
    }
    let classic = &bench.json("plan --json -n 1000000000 -p 0.01")[1];
    assert_eq!((&classic["layout"], &classic["probes"]), (&"classic".into(), &7.into()));
    near(&classic["bits_per_key"], 9.593, 1e-4);
}

#[test]
fn plan_prints_rates_at_other_loads() {
    let bench = Bench::new(&[]);
    // At load 1, a key has 16 bits.
    let plan = bench.json("plan --json -n 1000000000 --memory 2000000000");
    let of_the_model = |probes, bits| model("fpr_at_bits").into_iter().find(|row| (row.0, row.1) == (probes, bits));
    let probes = plan[0]["probes"].as_u64().unwrap();
    for (i, load) in [0.5, 1.0, 2.0, 4.0].into_iter().enumerate() {
        let point = &plan[0]["rates"][i];
        assert_eq!(point["load"], load);
        near(&point["fpr"], of_the_model(probes, 16.0 / load).unwrap().2, 1e-5);
    }
    let text = bench.run_ok("plan -n 1000000000 --memory 2000000000");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 3 && lines[1].starts_with("words4") && lines[2].starts_with("classic"), "{text}");
    assert!(lines[1].contains("16.0000") && lines[1].contains("1.86 GiB") && lines[1].contains("9.408e-4"), "{text}");
}

#[test]
fn the_table_matches_the_model() {
    let bench = Bench::new(&[]);
    let table = bench.json("plan --table --json");
    let cells = table.as_array().unwrap();
    assert_eq!(cells.len(), 37 * 4);
    let rows: Vec<_> = model("fpr_at_bits").into_iter().filter(|row| row.0 <= 16).collect();
    assert_eq!(rows.len(), 44);
    for (probes, bits, rate) in rows {
        let cell = cells.iter().find(|cell| cell["bits_per_key"] == bits as u64 && cell["probes"] == probes).unwrap();
        near(&cell["fpr"], rate, 1e-5);
    }
    let text = bench.run_ok("plan --table");
    let row = |bits: &str| text.lines().find(|line| line.trim_start().starts_with(bits)).unwrap();
    assert_eq!(
        row("10 ").split_whitespace().collect::<Vec<_>>(),
        ["10", "1.273e-2", "1.056e-2*", "1.836e-2", "3.676e-2"]
    );
    assert!(row("40 ").ends_with("1.249e-6*"), "{text}");
    assert!(text.contains("words4"));
}

#[test]
fn sizes_have_units() {
    let bench = Bench::new(&[]);
    let memory = |size: &str| {
        let output = bench.command("plan --json -p 0.01 --memory").arg(size).output().unwrap();
        let plan: Value = serde_json::from_slice(&expect_success(output)).unwrap();
        plan[0]["memory_bytes"].as_u64().unwrap()
    };
    for (size, bytes) in [
        ("64", 64),
        ("1000", 960),
        ("960 bytes", 960),
        ("64K", 64 << 10),
        ("64k", 64 << 10),
        ("64KB", 64 << 10),
        ("64 KiB", 64 << 10),
        ("16M", 16 << 20),
        ("512MiB", 512 << 20),
        ("1GiB", 1 << 30),
        ("1g", 1 << 30),
        ("1.5G", 3 << 29),
        ("1.5 gib", 3 << 29),
        ("4G", 4 << 30),
        ("2T", 2 << 40),
        ("1e9", 1_000_000_000),
    ] {
        assert_eq!(memory(size), bytes, "{size}");
    }
    // 1.23 * 2^30 bytes, in blocks of 64.
    assert_eq!(memory("1.23 GiB"), 1_320_702_443 / 64 * 64);
    for size in [
        "0",
        "63",
        "-1",
        "+100",
        "x",
        "",
        "100.5",
        "10.000",
        "1,5G",
        "4X",
        "4GBB",
        "K",
        "99999999999999999999",
        "99999999T",
    ] {
        let message = bench.run_err(&format!("plan -p 0.01 --memory={size}"));
        assert!(message.contains(&format!("'{size}'")) && message.contains("--memory"), "{message}");
        assert!(size.is_empty() || message.contains("from 64 to"), "{message}");
    }
}

#[test]
fn plans_without_keys_are_refused() {
    let bench = Bench::new(&[]);
    for line in ["plan", "plan -n 5", "plan -p 0.1", "plan --memory 1M", "plan -n 5 -p 0.1 --memory 1M"] {
        assert!(bench.run_err(line).contains("two of -n KEYS, -p RATE and --memory SIZE"), "{line}");
    }
    for (line, parts) in [
        ("plan -n 0 -p 0.1", ["--expected-keys", "'0'", "from 1 to"]),
        ("plan -n 5 -p 1", ["--fpr", "'1'", "between 0 and 1"]),
        ("plan -n 5 -p 1e-30", ["1e-30", "64-bit hashes", "higher rate"]),
        ("plan --table -n 5", ["--table", "cannot be used with", "--expected-keys"]),
    ] {
        assert_contains_all(&bench.run_err(line), &parts);
    }
}

#[test]
fn plan_and_build_agree() {
    let bench = Bench::new(&[("a", b"a\n")]);
    let plan = bench.json("plan --json -n 12345 -p 0.003");
    bench.run_ok("build -n 12345 -p 0.003 --no-shrink -o f a");
    let info = bench.json("info --json f");
    assert_eq!((&plan[0]["memory_bytes"], &plan[0]["probes"]), (&info["memory_bytes"], &info["probes"]));
}
