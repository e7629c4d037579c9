//! docs/calculator.html, in Chromium: its figures match `bloomline plan`, and its lines of code build the filter it describes.

use crate::browser;
use crate::common::Bench;
use serde_json::{Value, json};
use std::ops::Range;

const PAGE: &str = include_str!("../../../../docs/calculator.html");

/// Types choices into the page, and reports the results that the page shows.
const DRIVER: &str = include_str!("calculator.js");

/// Returns the page's results for choices, each with a text for two of the fields. Without Chromium, returns `None`.
fn shown(choices: &[Value]) -> Option<Vec<Value>> {
    let bench = Bench::new(&[]);
    let (page, end) = PAGE.rsplit_once("</body>").unwrap();
    let choices = Value::from(choices);
    let page = format!("{page}<pre></pre><script>const choices = {choices};\n{DRIVER}</script></body>{end}");
    bench.write("page.html", page.as_bytes());
    Some(browser::report(&bench.path("page.html"))?.as_array().unwrap().clone())
}

/// Returns a figure by its name on the page.
#[track_caller]
fn figure(shown: &Value, name: &str) -> f64 {
    shown["figures"][name].as_f64().unwrap_or_else(|| panic!("no {name}: {shown}"))
}

#[test]
fn page_matches_its_sources() {
    let (before, after) = include_str!("../../../../docs/calculator/script.js").split_once("MODEL").unwrap();
    let (_, model) = PAGE.split_once(before).expect("the script before the model");
    let (model, _) = model.split_once(after.trim_end()).expect("the script after the model");
    assert!(model.len() > 1000 && PAGE.len() < 200_000, "{} bytes, {} of them the model", PAGE.len(), model.len());
    let made = include_str!("../../../../docs/calculator/page.html")
        .replacen("STYLE", include_str!("../../../../docs/calculator/style.css").trim_end(), 1)
        .replacen("SCRIPT", &format!("{before}{model}{}", after.trim_end()), 1);
    assert!(PAGE == made, "docs/calculator.html is older than its sources: run docs/calculator/build.sh");
    for outside in ["src=", "url(", "@import", "<link", "fetch("] {
        assert!(!PAGE.contains(outside), "the page needs {outside}");
    }
}

/// Returns choices with two of the three values, random in all magnitudes.
fn random_choices(count: usize) -> Vec<Value> {
    let mut state = 1u64;
    let mut random = move |logarithms: Range<f64>| {
        // xorshift64
        for (left, by) in [(true, 13), (false, 7), (true, 17)] {
            state ^= if left { state << by } else { state >> by };
        }
        let share = (state >> 11) as f64 / (1u64 << 53) as f64;
        10f64.powf(logarithms.start + share * (logarithms.end - logarithms.start))
    };
    let choice = |i| {
        let keys = (random(0.0..12.0) as u64).to_string();
        let rate = format!("{:e}", random(-12.0..-0.01));
        let memory = (random(1.85..13.0) as u64).to_string();
        match i % 3 {
            0 => json!({ "keys": keys, "rate": rate }),
            1 => json!({ "memory": memory, "keys": keys }),
            _ => json!({ "rate": rate, "memory": memory }),
        }
    };
    (0..count).map(choice).collect()
}

#[test]
#[ignore = "starts a browser, and makes a thousand plans"]
fn results_match_plan() {
    let choices = random_choices(1000);
    let Some(shown) = shown(&choices) else { return };
    assert_eq!(shown.len(), choices.len());
    let bench = Bench::new(&[]);
    let (mut refused, mut followed) = (0, 0);
    for (choice, shown) in choices.iter().zip(&shown) {
        let mut line = "plan --json".to_owned();
        for (name, option) in [("keys", "-n"), ("rate", "-p"), ("memory", "--memory")] {
            if let Some(text) = choice[name].as_str() {
                line += &format!(" {option} {text}");
            }
        }
        let output = bench.run(&line);
        if !output.status.success() {
            let message = String::from_utf8(output.stderr).unwrap();
            let error = shown["error"].as_str().unwrap_or_else(|| panic!("{line}: {message}, but {shown}"));
            // The page formats the error as a sentence.
            let expected = error.trim_end_matches('.').to_lowercase();
            assert!(message.to_lowercase().contains(&expected), "{line}: {message}, but {error}");
            refused += 1;
            continue;
        }
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        let words4 = &plan[0];
        for (ours, theirs) in
            [("keys", "keys"), ("memory", "memory_bytes"), ("probes", "probes"), ("bits", "bits_per_key")]
        {
            assert_eq!(Some(figure(shown, ours)), words4[theirs].as_f64(), "{line}: {shown}");
        }
        for (i, load) in ["0.5", "1", "2", "4"].into_iter().enumerate() {
            let rate = words4["rates"][i]["fpr"].as_f64();
            assert_eq!(Some(figure(shown, &format!("words4 × {load}"))), rate, "{line}: {shown}");
        }
        if let Some(rate) = choice["rate"].as_str() {
            assert_eq!(figure(shown, "rate"), rate.parse::<f64>().unwrap());
        } else {
            assert_eq!(Some(figure(shown, "rate")), words4["rates"][1]["fpr"].as_f64());
        }
        if !shown["followed"].is_null() {
            assert_eq!(shown["figures"], shown["followed"], "{line}: the link {}", shown["link"]);
            followed += 1;
        }
    }
    assert!((10..200).contains(&refused) && followed >= 40, "{refused} were refused, {followed} links were followed");
}

#[test]
#[ignore = "starts a browser"]
fn layouts_match_the_independent_model() {
    // Names in the model and on the page, and cache lines of a query. A classic filter reads one for each probe.
    let layouts = [
        ("words4x2", "words4x2", Some(2.0)),
        ("split256", "split block", Some(1.0)),
        ("classic", "classic", None),
        ("word1", "register", Some(1.0)),
        ("counting", "counting", Some(2.0)),
    ];
    let table = include_str!("../../../../tests/data/fpr.csv").lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows: Vec<_> = table.filter(|row| row[0] == "best_for_target" && row[1] != "words4").collect();
    assert_eq!(rows.len(), 40);
    let choices: Vec<Value> = rows.iter().map(|row| json!({ "keys": "100 million", "rate": row[4] })).collect();
    let Some(shown) = shown(&choices) else { return };
    for (row, shown) in rows.iter().zip(&shown) {
        let (_, name, lines) = layouts.iter().find(|layout| layout.0 == row[1]).unwrap();
        let (probes, bits) = (row[2].parse::<f64>().unwrap(), row[3].parse::<f64>().unwrap());
        let shown = |of| figure(shown, &format!("{name} {of}"));
        assert_eq!((shown("probes"), shown("lines")), (probes, lines.unwrap_or(probes)), "{row:?}");
        let memory = shown("memory");
        assert!((memory * 8.0 / 1e8 / bits - 1.0).abs() < 1e-4, "{row:?}: {memory} bytes");
    }
}

/// Builds a filter and returns its memory and probes.
type Make = fn() -> Result<(usize, u32), bloomline::BuildError>;

/// A line of Rust code, as text and as a function.
macro_rules! line {
    (let mut $seen:ident = $($made:tt)*) => {{
        let make: Make = || {
            let mut $seen = $($made)*
            $seen.insert("a");
            Ok(($seen.memory_bytes(), $seen.probes()))
        };
        (stringify!(let mut $seen = $($made)*), make)
    }};
}

#[cfg(unix)]
#[test]
#[ignore = "starts a browser"]
fn printed_code_builds_the_filter() {
    let lines = [
        (
            json!({ "keys": "20k", "rate": "0.1%" }),
            line!(let mut seen = bloomline::BloomFilter::new(20_000, 0.001)?;),
            "from bloomline import BloomFilter; seen = BloomFilter(20_000, 0.001)",
        ),
        (
            json!({ "memory": "100 KiB", "keys": "25,000" }),
            line!(let mut seen = bloomline::BloomFilter::builder().expected_keys(25_000).memory(102_400).build()?;),
            "from bloomline import BloomFilter; seen = BloomFilter(25_000, memory=102_400)",
        ),
        (
            json!({ "rate": "1 in 1000000", "memory": "123456" }),
            line!(let mut seen = bloomline::BloomFilter::builder().false_positive_rate(1e-6).memory(123_456).build()?;),
            "from bloomline import BloomFilter; seen = BloomFilter(false_positive_rate=1e-6, memory=123_456)",
        ),
    ];
    let choices: Vec<Value> = lines.iter().map(|(choice, ..)| choice.clone()).collect();
    let Some(shown) = shown(&choices) else { return };
    let plain = |line: &str| line.split_whitespace().collect::<String>();
    for ((_, (rust, make), python), shown) in lines.iter().zip(&shown) {
        let size = (figure(shown, "memory") as usize, figure(shown, "probes") as u32);
        assert_eq!(plain(shown["rust"].as_str().unwrap()), plain(rust));
        assert_eq!(make().unwrap(), size, "{rust}");
        assert_eq!(shown["python"], *python);

        let bench = Bench::new(&[("keys.txt", b"a\nb\na\n")]);
        let shell = shown["shell"].as_str().unwrap();
        let output = bench.bash(shell).output().unwrap();
        assert!(output.status.success(), "{shell}: {output:?}");
        let info = bench.json("info --json seen.bloom");
        assert_eq!((&info["memory_bytes"], &info["probes"]), (&size.0.into(), &size.1.into()), "{shell}: {info}");
    }
}

#[test]
#[ignore = "starts a browser"]
fn numbers_are_parsed_with_units_and_separators() {
    let keys = [
        ("5000000", 5e6),
        ("5e6", 5e6),
        ("5M", 5e6),
        ("5 million", 5e6),
        ("5,000,000", 5e6),
        ("5_000_000", 5e6),
        ("5 000 000", 5e6),
        ("5\u{a0}000\u{202f}000", 5e6),
        ("9007199254740992", 9_007_199_254_740_992.0),
        ("1.1M", 1.1e6),
        ("0.5k", 500.0),
        ("2 billion", 2e9),
    ];
    let rates = [
        ("1%", 0.01),
        ("0.01", 0.01),
        (".5", 0.5),
        ("1e-6", 1e-6),
        ("1 in 1000", 1e-3),
        ("1/1,000", 1e-3),
        ("1 in 1M", 1e-6),
        ("3 in 2 million", 1.5e-6),
        ("0.1 %", 1e-3),
    ];
    let sizes = [
        ("64", 64.0),
        ("64 bytes", 64.0),
        ("64K", 65_536.0),
        ("64 kB", 65_536.0),
        ("1.5GB", 1_610_612_736.0),
        ("12 MiB", 12_582_912.0),
        ("1e6", 1e6),
        ("2t", 2_199_023_255_552.0),
        ("8 PiB", 9_007_199_254_740_992.0),
    ];
    let of = |name: &'static str, other: (&'static str, &'static str)| {
        move |&(text, number): &(&str, f64)| (json!({ other.0: other.1, name: text }), name, Some(number))
    };
    let bad = [
        ("keys", vec!["", "0", "-1", "1.5", "x", "1,5", "10.000", "5,00", "0,500", "1e30", "5 potatoes"]),
        ("rate", vec!["", "0", "1", "1.5", "-1", "0,01", "1 in 5%", "1 in 10.000", "100%", "2 in 1", "x", "1 in"]),
        ("memory", vec!["", "0", "63", "x", "1,5G", "128.000", "4X", "1e30", "-64"]),
    ];
    let other = |name| if name == "keys" { ("rate", "0.01") } else { ("keys", "1000") };
    let bad = bad.iter().flat_map(|(name, texts)| {
        let (other, value) = other(*name);
        texts.iter().map(move |text| (json!({ other: value, *name: text }), *name, None))
    });
    let good = keys.iter().map(of("keys", ("rate", "0.01")));
    let good = good.chain(rates.iter().map(of("rate", ("keys", "1000"))));
    let all: Vec<_> = good.chain(sizes.iter().map(of("memory", ("keys", "10")))).chain(bad).collect();
    let choices: Vec<Value> = all.iter().map(|(choice, ..)| choice.clone()).collect();
    let Some(shown) = shown(&choices) else { return };
    for ((choice, name, number), shown) in all.iter().zip(&shown) {
        match number {
            Some(number) => assert!(
                shown["link"].as_str().unwrap()[1..].split('&').any(|given| {
                    given.split_once('=').is_some_and(|(of, text)| of == *name && text.parse() == Ok(*number))
                }),
                "{choice}: {shown}"
            ),
            None => {
                let error = shown["error"].as_str().unwrap_or_else(|| panic!("{choice} is taken: {shown}"));
                let text = choice[name].as_str().unwrap();
                assert!(error.starts_with(&format!("“{text}” is not a")) && error.contains("Give"), "{error}");
                assert_eq!(shown["wrong"], json!([name]), "{choice}");
            }
        }
    }
}

#[test]
#[ignore = "starts a browser"]
fn results_stay_after_an_invalid_value() {
    let choices = [json!({ "keys": "20k", "rate": "0.1%" }), json!({ "rate": "potatoes" })];
    let Some(shown) = shown(&choices) else { return };
    assert_eq!(shown[1]["wrong"], json!(["rate"]));
    assert_eq!(shown[1]["figures"], shown[0]["figures"]);
    let stale = shown[1]["stale"].as_str().unwrap();
    assert!(stale.starts_with("The results below are of 20,000 keys, a rate of 0.1 % and "), "{stale}");
}

#[test]
#[ignore = "starts a browser"]
fn links_with_too_few_or_many_values_are_corrected() {
    let links = [
        ("#keys=5000", "#keys=5000&rate=0.01"),
        ("#rate=1e-4", "#keys=1000000&rate=0.0001"),
        ("#memory=12+MiB", "#rate=0.01&memory=12582912"),
        ("#", "#keys=1000000&rate=0.01"),
        ("#colour=red", "#keys=1000000&rate=0.01"),
        // The memory follows from the other values.
        ("#keys=7&rate=1%&memory=64", "#keys=7&rate=0.01"),
    ];
    let unreadable = json!({ "link": "#keys=1e6&rate=<img src=x onerror=alert(1)>" });
    let choices = links.iter().map(|(link, _)| json!({ "link": link })).chain([unreadable]);
    let choices: Vec<Value> = choices.collect();
    let Some(shown) = shown(&choices) else { return };
    for ((link, whole), shown) in links.iter().zip(&shown) {
        assert_eq!(shown["link"], *whole, "{link}");
    }
    let error = shown[links.len()]["error"].as_str().unwrap();
    assert!(error.contains("“<img src=x onerror=alert(1)>” is not a rate"), "{error}");
}

/// Filters of a wanted rate are a little larger than it needs. The deviation is around the rate that they have.
#[test]
#[ignore = "starts a browser"]
fn rates_of_single_filters_lie_around_the_expected_one() {
    let Some(shown) = shown(&[json!({ "keys": "1 million", "rate": "1%" })]) else { return };
    let plan: Value = serde_json::from_slice(&Bench::new(&[]).run("plan --json -n 1M -p 0.01").stdout).unwrap();
    let (rate, spread) = (plan[0]["rates"][1]["fpr"].as_f64().unwrap(), figure(&shown[0], "spread"));
    assert!(rate < 0.0099 && spread > 0.001);
    let [low, high] = [1.0 - spread, 1.0 + spread].map(|times| format!("{:.4}", 100.0 * rate * times));
    let expected = format!("{}&nbsp;% to {}&nbsp;%", low.trim_end_matches('0'), high.trim_end_matches('0'));
    assert!(shown[0]["text"].as_str().unwrap().contains(&expected), "{expected}: {shown:?}");
}

/// The minimum number of keys, and far more memory than the keys need.
#[test]
#[ignore = "starts a browser"]
fn extreme_values_have_plain_messages() {
    let choices = [
        json!({ "keys": "1", "rate": "0.999" }),
        json!({ "keys": "1000", "memory": "1 TiB" }),
        json!({ "keys": "10000", "rate": "1%" }),
    ];
    let Some(shown) = shown(&choices) else { return };
    let text = |i: usize| shown[i]["text"].as_str().unwrap();
    assert!(text(0).contains("a rate of 99.9 % for 1 key.") && text(0).contains("1 byte"), "{}", text(0));
    assert_eq!(figure(&shown[0], "words4 × 0.5"), 0.0);
    for wrong in ["0e+0", "1 in 1)", "1 bytes", "1 times"] {
        assert!(!shown.iter().any(|shown| shown["text"].as_str().unwrap().contains(wrong)), "{wrong}: {shown:?}");
    }
    // Hash collisions cause nearly all false positives, so the distribution over blocks has no effect.
    assert!(figure(&shown[1], "spread") < 1e-9, "{}", shown[1]);
    assert!(text(2).contains("A calculator of classic filters would promise"), "{}", text(2));
}

#[test]
#[ignore = "starts a browser"]
fn browsers_without_webassembly_get_a_message() {
    let (start, page) = PAGE.split_once("<style>").unwrap();
    let (page, end) = page.rsplit_once("</body>").unwrap();
    let report = r#"document.querySelector("pre").textContent =
        JSON.stringify([document.getElementById("absent").checkVisibility(), document.getElementById("calculator").checkVisibility()])"#;
    let page = format!(
        "{start}<script>delete globalThis.WebAssembly</script><style>{page}<pre></pre><script>{report}</script></body>{end}"
    );
    let bench = Bench::new(&[]);
    bench.write("page.html", page.as_bytes());
    let Some(visible) = browser::report(&bench.path("page.html")) else { return };
    assert_eq!(visible, json!([true, false]));
}
