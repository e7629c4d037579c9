//! `bloomline compare`, from end to end: the figures agree with the models, and the page shows its plots.
#![cfg(unix)]

mod common;

use common::{Bench, number, text};
use serde_json::Value;
use std::process::Command;

/// A comparison that takes seconds.
const SHORT: &str = "compare --sizes 64K,256K --rounds 1 --probes 262144 -j 2";

#[test]
fn figures_agree_with_the_models() {
    let bench = Bench::new(&[]);
    let text = bench.clean(&format!("{SHORT} --json"));
    bench.write("result.json", text.as_bytes());
    let result: Value = serde_json::from_str(&text).unwrap();
    let contenders = names(&result["contenders"], "name");
    assert!(contenders.contains(&"words4") && contenders.contains(&"fastbloom"), "{contenders:?}");

    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * contenders.len());
    for row in rows {
        let measured = number(row, "measured_fpr");
        near_the_model(row, measured, number(&result, "round_keys"));
        for time in ["insert", "query_0", "query_50", "query_100"] {
            assert!(number(&row[time], "median") > 0.0, "{row}");
        }
        assert_eq!(threads(&row["query_threads"]), [1, 2], "{row}");
        assert!(number(row, "memory_bytes") <= number(row, "size_bytes"), "{row}");
        assert!((number(row, "bits_per_key") - 12.0).abs() < 0.1, "{row}");
    }
    for row in result["rates"].as_array().unwrap() {
        near_the_model(row, number(row, "measured_fpr"), number(row, "absent_keys"));
        let asked = number(row, "modelled_fpr") / number(row, "requested_fpr");
        assert!((0.5..1.02).contains(&asked), "{row}");
    }
    for load in result["loads"].as_array().unwrap() {
        assert_eq!(threads(&load["threads"]), [1, 2], "{load}");
    }
    for known in ["date", "command", "version"] {
        assert!(!result[known].as_str().unwrap().is_empty());
    }
    assert!(result["machine"]["caches"].is_array() && result["machine"]["features"].is_array());

    let table = bench.clean("compare --from result.json");
    for title in ["64 KiB, 43690 keys\n", "256 KiB, 174762 keys\n"] {
        let (_, part) = table.split_once(title).unwrap();
        for name in &contenders {
            let line = part.lines().skip(1).find(|line| line.starts_with(&format!("{name} "))).unwrap();
            assert_eq!(line.matches('±').count(), 5, "{line}");
        }
    }
    assert!(table.contains("Only 262144 distinct keys a round"));
    bench.write("again.json", bench.clean("compare --from result.json --json").as_bytes());
    assert_eq!(bench.clean("compare --from again.json"), table);
}

/// Within five standard deviations, of which one part is that of the sample, and one that of the filter: its blocks are as
/// good as independent, and the rate of one scatters about as widely as the rate is.
#[track_caller]
fn near_the_model(row: &Value, measured: f64, sample: f64) {
    let modelled = number(row, "modelled_fpr");
    let bytes = number(row, "bits_per_key") * number(row, "keys") / 8.0;
    let sigma = (modelled * (1.0 - modelled) / sample + modelled.powi(2) / (bytes / 64.0)).sqrt();
    assert!((measured - modelled).abs() < 5.0 * sigma, "{row}");
}

fn names<'a>(entries: &'a Value, field: &str) -> Vec<&'a str> {
    entries.as_array().unwrap().iter().map(|entry| entry[field].as_str().unwrap()).collect()
}

fn threads(times: &Value) -> Vec<u64> {
    times.as_array().unwrap().iter().map(|at| at["threads"].as_u64().unwrap()).collect()
}

#[test]
fn contenders_are_chosen() {
    let bench = Bench::new(&[]);
    let line = "compare --sizes 64K --rounds 1 --probes 4096 -j 1 --only fastbloom,words4 --bits-per-key 8 --json";
    let result: Value = serde_json::from_str(&bench.clean(line)).unwrap();
    assert_eq!(names(&result["rows"], "contender"), ["words4", "fastbloom"]);
    assert_eq!(number(&result["rows"][0], "keys"), 65536.0);
    assert_eq!(result["command"], format!("bloomline {line}"));
}

#[test]
fn bad_requests_are_refused() {
    let bench = Bench::new(&[("no.json", b"{}")]);
    for (line, reason) in [
        ("--only words5", "no contender is called \"words5\"; there are words4, "),
        ("--sizes 64K,big", "invalid value 'big'"),
        ("--sizes 1000T", "can be had; choose with --sizes and --only"),
        ("--bits-per-key 0", "not from 1 to 256"),
        ("--quick --full", "cannot be used with"),
        ("--from no.json --full", "cannot be used with"),
        ("--from none.json", "cannot read \"none.json\": "),
        ("--from no.json", "cannot read \"no.json\": missing field"),
    ] {
        let message = bench.refused(&format!("compare {line}"));
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn plots_are_whole() {
    let bench = Bench::new(&[]);
    bench.clean(&format!("{SHORT} --html page.html --svg plots"));
    for name in ["speed", "rate", "space", "threads"] {
        let svg = text(&bench.read(&format!("plots/{name}.svg")));
        assert!(svg.starts_with("<svg") && svg.contains("<polyline") && !svg.contains("#01"), "{name}");
    }
    let page = text(&bench.read("page.html"));
    for outside in ["src=", "href=", "url(", "@import", "<script", "#01"] {
        assert!(!page.contains(outside), "{outside}");
    }
    for width in [390, 1200] {
        let Some(seen) = look(&bench, &page, width) else { return };
        assert!(number(&seen, "overflow") <= 0.0, "at {width} px: {seen}");
        let plots = seen["plots"].as_array().unwrap();
        assert_eq!(names(&seen["plots"], "id"), ["speed", "rate", "space", "threads"]);
        for plot in plots {
            assert!(number(plot, "lines") > 0.0 && number(plot, "texts") > 5.0, "{plot}");
            assert!(number(plot, "width") > 300.0, "{plot}");
            assert_eq!(plot["unseen"], 0, "{plot}");
            assert_eq!(plot["cut"].as_array().unwrap().len(), 0, "{plot}");
            assert_eq!(plot["overlapping"].as_array().unwrap().len(), 0, "{plot}");
            assert!(!plot["title"].as_str().unwrap().is_empty() && !plot["caption"].as_str().unwrap().is_empty());
        }
    }
}

/// Looks at the page from within: in a frame of this width, as on a phone or a desk.
const EYES: &str = r#"
const doc = document.querySelector("iframe").contentDocument;
const meets = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
const plots = [...doc.querySelectorAll("figure")].map(figure => {
    const svg = figure.querySelector("svg"), frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(text => [text.textContent.trim(), text.getBoundingClientRect()]);
    const lines = [...svg.querySelectorAll("polyline")];
    const ground = doc.defaultView.getComputedStyle(doc.body).backgroundColor;
    const hidden = line => [ "none", ground ].includes(doc.defaultView.getComputedStyle(line).stroke);
    return {
        id: figure.id,
        title: figure.querySelector("h2").textContent,
        caption: figure.querySelector("figcaption").textContent,
        width: frame.width,
        lines: lines.length,
        unseen: lines.filter(hidden).length,
        texts: texts.filter(([, box]) => box.width > 0 && box.height > 0).length,
        cut: texts.filter(([, box]) => box.left < frame.left || box.right > frame.right || box.top < frame.top ||
            box.bottom > frame.bottom).map(([text]) => text),
        overlapping: texts.flatMap(([a, boxA], i) => texts.slice(i + 1).filter(([, boxB]) => meets(boxA, boxB))
            .map(([b]) => a + " and " + b)),
    };
});
const root = doc.documentElement;
document.querySelector("pre").textContent = JSON.stringify({ overflow: root.scrollWidth - root.clientWidth, plots });
"#;

/// What is seen in Chromium; nothing where there is none and none is required.
fn look(bench: &Bench, page: &str, width: u32) -> Option<Value> {
    let escape = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
    let wrapper = format!(
        "<!DOCTYPE html><meta charset=utf-8><pre></pre><iframe width={width} height=3000 style='border:0' \
         srcdoc=\"{}\"></iframe><script>onload = () => {{{EYES}}}</script>",
        escape(page)
    );
    bench.write("wrapper.html", wrapper.as_bytes());
    let path = bench.path("wrapper.html");
    let profile = tempfile::tempdir().unwrap();
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]);
    chromium.args(["--disable-component-update", "--disable-sync", "--no-first-run", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", profile.path().display())).arg(format!("file://{}", path.display()));
    let output = match chromium.output() {
        Ok(output) => output,
        Err(error) => {
            assert!(
                std::env::var_os("BLOOMLINE_REQUIRE_BROWSER").is_none_or(|value| value != "1"),
                "chromium: {error}"
            );
            eprintln!("skipped: the page was not looked at, for chromium cannot be run: {error}");
            return None;
        }
    };
    let dom = String::from_utf8(output.stdout).unwrap();
    let (_, seen) = dom.split_once("<pre>").unwrap();
    let (seen, _) = seen.split_once("</pre>").unwrap();
    let seen = seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {seen:?}")))
}
