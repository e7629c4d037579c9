//! `compare`, from end to end: the figures agree with the models, and the page shows its plots.

#[path = "../../tests/browser/mod.rs"]
mod browser;

use bloomline::Kernel;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};
use std::{env, fs, thread};
use tempfile::TempDir;

/// A comparison that takes seconds.
const SHORT: &str = "--sizes 64K,256K --rounds 1 --probes 262144 -j 2";

/// Layouts, by batches.
const LAYOUTS: [&str; 6] =
    ["BloomFilter batch", "two-block batch", "classic batch", "split-block batch", "register batch", "counting batch"];
/// A call for each key.
const CALLS: [&str; 2] = ["BloomFilter", "BloomFilter dispatch!"];
const PEERS: [&str; 7] = ["fastbloom", "sbbf-rs", "bloomfilter", "bloomcraft", "quotient", "cuckoo", STATIC];
/// Built once of all keys.
const STATIC: &str = "binary fuse";
/// Peers that cannot be asked for a rate.
const RATELESS: [&str; 2] = ["sbbf-rs", "cuckoo"];

/// Returns the name of a contender in tables and plots.
fn label(contender: &str) -> String {
    if contender == STATIC { "binary fuse, static".to_owned() } else { contender.to_owned() }
}

/// The command, in a folder so that paths are short.
struct Bench(TempDir);

impl Bench {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(name, bytes)| bench.write(name, bytes));
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
        command.args(line.split(' ')).current_dir(self.0.path());
        command
    }

    /// The output of a run that must succeed and say nothing else.
    #[track_caller]
    fn clean(&self, line: &str) -> String {
        clean(self.command(line).output().unwrap())
    }

    /// The same with some contenders alone.
    #[track_caller]
    fn clean_only(&self, names: &str, line: &str) -> String {
        clean(self.command(line).args(["--only", names]).output().unwrap())
    }

    #[track_caller]
    fn json(&self, line: &str) -> Value {
        let text = self.clean(line);
        assert_eq!(text.matches('\n').count(), 1);
        serde_json::from_str(&text).unwrap()
    }
}

#[track_caller]
fn clean(output: Output) -> String {
    assert_eq!((text(&output.stderr), output.status.code()), (String::new(), Some(0)));
    text(&output.stdout)
}

#[track_caller]
fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[track_caller]
fn number(object: &Value, name: &str) -> f64 {
    object[name].as_f64().unwrap_or_else(|| panic!("{name} is missing: {object}"))
}

#[test]
fn figures_agree_with_the_models_and_plots_are_whole() {
    let bench = Bench::new(&[]);
    let line = format!("{SHORT} --json --html page.html --svg plots");
    let result = bench.json(&line);
    let contenders = [&CALLS[..], &LAYOUTS, &PEERS].concat();
    assert_eq!(names(&result["contenders"], "name"), contenders);

    let rows = result["rows"].as_array().unwrap();
    assert_eq!(names(&result["rows"], "contender"), [&contenders[..], &contenders].concat());
    for row in rows {
        near_the_model(row, number(&result, "round_keys"));
        for time in ["insert", "query_0", "query_50", "query_100"] {
            check_time(&row[time]);
        }
        check_threads(&row["query_threads"]);
        assert_eq!(row["query_threads"][0]["time"], row["query_50"], "{row}");
        assert!(number(row, "memory_bytes") <= number(row, "size_bytes"), "{row}");
        // Fingerprints have 8 bits in about 1.2 slots, or 5 bits and 2.125 more in 1.5 slots.
        let bits = match row["contender"].as_str().unwrap() {
            STATIC => 9.6,
            "quotient" => 10.69,
            _ => 12.0,
        };
        assert!((number(row, "bits_per_key") / bits - 1.0).abs() < 0.03, "{row}");
    }
    for entry in result["contenders"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        assert_eq!(entry["static"], name == STATIC, "{entry}");
        assert_eq!(entry["batch"], LAYOUTS.contains(&name), "{entry}");
        assert_eq!(entry["removes"], ["counting batch", "quotient", "cuckoo"].contains(&name), "{entry}");
    }
    let equal_rate = result["equal_rate_rows"].as_array().unwrap();
    let rated: Vec<_> = contenders.iter().copied().filter(|contender| !RATELESS.contains(contender)).collect();
    assert_eq!((number(&result, "equal_rate"), names(&result["equal_rate_rows"], "contender")), (0.01, rated));
    for row in equal_rate {
        near_the_model(row, number(&result, "round_keys"));
        assert!(number(row, "modelled_fpr") < 0.0102, "{row}");
        // The keys of the smaller of two sizes.
        assert_eq!((number(row, "size_bytes"), number(row, "keys")), (65536.0, 43690.0), "{row}");
    }
    assert_eq!(result["left_out"].as_array().unwrap().len(), 0);
    let mut rates = result["rates"].as_array().unwrap().iter();
    for asked in [0.05, 0.01, 0.001, 0.0001] {
        for contender in LAYOUTS.iter().chain(&PEERS).filter(|contender| !RATELESS.contains(contender)) {
            let row = rates.next().unwrap();
            assert_eq!((&row["contender"], number(row, "requested_fpr")), (&Value::from(*contender), asked));
            assert!(number(row, "absent_keys") >= 400.0 / asked, "{row}");
            near_the_model(row, number(row, "absent_keys"));
            let share = number(row, "modelled_fpr") / asked;
            // Of the widths 8, 16 and 32, and of the powers of two, the next smaller one would not keep the rate.
            let least = match *contender {
                STATIC => asked.min(2.0_f64.powi(-8)).powi(2) / asked,
                "bloomcraft" => asked / 4.0,
                _ => 0.49,
            };
            assert!((least..1.02).contains(&share), "{row}");
        }
    }
    assert!(rates.next().is_none());
    let loads = result["loads"].as_array().unwrap();
    let of_a_size = ["BloomFilter batch", "BloomFilter batch", "classic batch", "register batch", "fastbloom"];
    assert_eq!(names(&result["loads"], "contender"), [of_a_size, of_a_size].concat());
    for load in loads {
        check_threads(&load["threads"]);
    }
    check_models(&result["models"]);
    check_circumstances(&result, &line);
    check_plots(&bench);
}

/// The allocator maps memory of this size for each filter. Both peers write all of it when they are made.
#[test]
fn memory_in_use_is_that_of_the_filter() {
    let line = "--sizes 40M --bits-per-key 256 --rounds 1 --probes 4096 -j 1 --json --only sbbf-rs,cuckoo";
    let result = Bench::new(&[]).json(line);
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let share = number(row, "resident_bytes") / number(row, "memory_bytes");
        assert!((0.95..1.1).contains(&share), "{row}");
    }
}

/// The curves: the classic one goes through the table of every textbook, and more bits make a lower rate.
fn check_models(models: &Value) {
    assert_eq!(names(models, "contender"), LAYOUTS);
    for model in models.as_array().unwrap() {
        for (curve, few) in [("points", 33), ("space", 10)] {
            let points = model[curve].as_array().unwrap();
            assert!(points.len() >= few, "{model}");
            for pair in points.windows(2) {
                assert!(number(&pair[0], "bits_per_key") < number(&pair[1], "bits_per_key"), "{pair:?}");
                assert!(number(&pair[0], "fpr") > number(&pair[1], "fpr"), "{pair:?}");
            }
        }
    }
    let classic = models[2]["points"].as_array().unwrap();
    for (bits, rate) in [(8.0, 0.0216), (10.0, 0.00819), (16.0, 0.000459), (32.0, 2.11e-7)] {
        let point = classic.iter().find(|point| number(point, "bits_per_key") == bits).unwrap();
        assert!((number(point, "fpr") / rate - 1.0).abs() < 0.005, "{point}");
    }
}

/// Checks the command, the version, the date and the machine of a result.
fn check_circumstances(result: &Value, line: &str) {
    assert_eq!(result["command"], format!("compare {line}"));
    assert_eq!(result["version"], env!("CARGO_PKG_VERSION"));
    let date = humantime::parse_rfc3339(result["date"].as_str().unwrap()).unwrap();
    assert!(date.elapsed().unwrap() < Duration::from_secs(600) && date < SystemTime::now());
    let machine = &result["machine"];
    assert_eq!(machine["arch"], env::consts::ARCH);
    assert_eq!(machine["kernel"], Kernel::detect().to_string());
    assert_eq!(machine["cores"], thread::available_parallelism().unwrap().get());
}

#[test]
fn tables_show_the_figures() {
    let bench = Bench::new(&[]);
    let names = ["BloomFilter batch", "fastbloom", STATIC];
    let line = "--sizes 64K,256K --rounds 3 --probes 4096 -j 2 --json";
    let result: Value = serde_json::from_str(&bench.clean_only(&names.join(","), line)).unwrap();
    bench.write("result.json", result.to_string().as_bytes());
    let table = bench.clean("--from result.json");
    let (rows, equal_rate) = (result["rows"].as_array().unwrap(), result["equal_rate_rows"].as_array().unwrap());
    for (title, rows) in [
        ("Equal memory: 64 KiB, 43690 keys\n", &rows[..3]),
        ("Equal rate: 1 %, 43690 keys\n", equal_rate),
        ("Equal memory: 256 KiB, 174762 keys\n", &rows[3..]),
    ] {
        assert_eq!(rows.len(), names.len());
        let (_, part) = table.split_once(title).unwrap();
        for (line, row) in part.lines().skip(1).zip(rows) {
            let contender = row["contender"].as_str().unwrap();
            let cells = line.strip_prefix(&label(contender)).unwrap();
            // A static filter of many keys is built once.
            let insert = &row["insert"];
            assert_eq!(insert["lower_quartile"] == insert["upper_quartile"], contender == STATIC, "{line}");
            let cells: Vec<_> = cells.split_whitespace().collect();
            let number = |field| number(row, field);
            assert_eq!(cells[0], number("probes").to_string(), "{line}");
            assert_eq!(cells[1], format!("{:.2}", number("bits_per_key")), "{line}");
            assert_eq!(cells[2], format!("{:.2e}", number("modelled_fpr")), "{line}");
            assert_eq!(cells[3], format!("{:.2e}", number("measured_fpr")), "{line}");
            let times = [&row["query_0"], &row["query_50"], &row["query_100"], &row["insert"]];
            let times = times.into_iter().chain([&row["query_threads"][1]["time"]]);
            for (cells, time) in cells[4..14].chunks(2).zip(times) {
                let number = |field| self::number(time, field);
                let quartiles = format!("({:.2}–{:.2})", number("lower_quartile"), number("upper_quartile"));
                assert_eq!(cells, [format!("{:.2}", number("median")), quartiles], "{line}");
            }
        }
    }
    for note in ["Only 4096 distinct keys a round", "\nbinary fuse, static: it is built once of all keys"] {
        assert!(table.contains(note), "{note}");
    }
    bench.write("again.json", bench.clean("--from result.json --json").as_bytes());
    assert_eq!(bench.clean("--from again.json"), table);
}

#[test]
fn what_is_left_out_is_named() {
    let bench = Bench::new(&[]);
    let chosen = |line: &str| bench.clean_only("BloomFilter batch,binary fuse,quotient,bloomcraft", line);
    // 8 bits a fingerprint in 1.25 slots, and 1 + 2.125 bits in two.
    let short = "--sizes 64K --rounds 1 --probes 4096 -j 1 --bits-per-key";
    let result: Value = serde_json::from_str(&chosen(&format!("{short} 8 --json"))).unwrap();
    assert_eq!(names(&result["rows"], "contender"), ["BloomFilter batch", "bloomcraft", "quotient"]);
    assert_eq!(names(&result["left_out"], "contender"), [STATIC]);
    let table = chosen(&format!("{short} 2"));
    for reason in [
        "quotient is left out at 64.00 KiB: so many keys need at least ",
        "binary fuse is left out at 64.00 KiB: so many keys need at least ",
    ] {
        assert!(table.contains(reason), "{table}");
    }
}

/// Within five standard deviations. One part of the variance is that of the sample. The other is that of the filter, whose
/// blocks are as good as independent: the rate of one scatters about as widely as the rate is.
#[track_caller]
fn near_the_model(row: &Value, sample: f64) {
    let (modelled, measured) = (number(row, "modelled_fpr"), number(row, "measured_fpr"));
    let bytes = number(row, "bits_per_key") * number(row, "keys") / 8.0;
    let sigma = (modelled * (1.0 - modelled) / sample + modelled.powi(2) / (bytes / 64.0)).sqrt();
    assert!((measured - modelled).abs() < 5.0 * sigma, "{row}");
}

#[track_caller]
fn check_time(time: &Value) {
    let [lower, median, upper] = ["lower_quartile", "median", "upper_quartile"].map(|field| number(time, field));
    assert!(0.0 < lower && lower <= median && median <= upper, "{time}");
}

/// Times on one and on two threads.
#[track_caller]
fn check_threads(times: &Value) {
    let times = times.as_array().unwrap();
    assert_eq!(times.iter().map(|at| number(at, "threads")).collect::<Vec<_>>(), [1.0, 2.0]);
    times.iter().for_each(|at| check_time(&at["time"]));
}

fn names<'a>(entries: &'a Value, field: &str) -> Vec<&'a str> {
    entries.as_array().unwrap().iter().map(|entry| entry[field].as_str().unwrap()).collect()
}

#[test]
fn contenders_are_chosen() {
    let line = "--sizes 64K --rounds 1 --probes 4096 -j 1 --bits-per-key 8 --json";
    let result: Value = serde_json::from_str(&Bench::new(&[]).clean_only("fastbloom,BloomFilter batch", line)).unwrap();
    for part in ["rows", "equal_rate_rows", "loads", "rates"] {
        let mut names = names(&result[part], "contender");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, ["BloomFilter batch", "fastbloom"], "{part}");
    }
    assert_eq!(names(&result["contenders"], "name"), ["BloomFilter batch", "fastbloom"]);
    assert_eq!(names(&result["models"], "contender"), ["BloomFilter batch"]);
    for row in result["rows"].as_array().unwrap() {
        assert_eq!((number(row, "keys"), row["query_threads"].as_array().unwrap().len()), (65536.0, 1));
    }
}

#[test]
fn bad_requests_are_refused() {
    let bench = Bench::new(&[("no.json", b"{}")]);
    for (line, reason) in [
        ("--only words5", "[possible values: BloomFilter, "),
        ("--sizes 64K,big", "invalid value 'big'"),
        ("--sizes 1000T", "can be had; choose with --sizes and --only"),
        ("--bits-per-key 0", "not from 1 to 256"),
        ("--quick --full", "cannot be used with"),
        ("--from no.json --full", "cannot be used with"),
        ("--from none.json", "cannot read \"none.json\": "),
        ("--from no.json", "cannot read \"no.json\": missing field"),
        ("--from no.json --html no.json", "cannot write to \"no.json\": it is also an input"),
    ] {
        let output = bench.command(line).output().unwrap();
        let message = text(&output.stderr);
        assert!(message.contains(reason), "{message}");
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(2)), "{message}");
    }
    assert_eq!(bench.read("no.json"), "{}");
    let output = bench.command("--from no.json --html new").output().unwrap();
    assert!(output.status.code() == Some(2) && !bench.path("new").exists());
}

/// The plots, and the page with them.
fn check_plots(bench: &Bench) {
    let contenders = [&CALLS[..], &LAYOUTS, &PEERS].concat();
    let on_threads = ["BloomFilter batch", "classic batch", "register batch", "fastbloom", "sbbf-rs"];
    // The names in the legend, whether there are dashed lines, and the thick lines, which are those of the first hue: in the
    // legend and in each panel.
    for (name, legend, dashed, thick) in [
        ("speed", &contenders[..], true, 3 * (1 + 2)),
        ("rate", &contenders, true, 3 + 1),
        ("space", &LAYOUTS, false, 1 + 1),
        ("threads", &on_threads, true, 1 + 3),
    ] {
        let svg = bench.read(&format!("plots/{name}.svg"));
        assert!(svg.starts_with("<svg") && svg.contains("#c84e00") && !svg.contains("var("), "{name}");
        assert_eq!(svg.contains("stroke-dasharray=\"14 8\""), dashed, "{name}");
        assert_eq!(svg.matches("stroke-width=\"5\"").count(), thick, "{name}");
        for label in legend.iter().map(|name| label(name)) {
            assert!(svg.contains(&format!(">{label}</text>")), "{label} in {name}");
        }
    }
    let page = bench.read("page.html");
    assert!(page.contains("<td>binary fuse, static</td>"));
    for outside in ["src=", "<link", "url(", "@import", "<script"] {
        assert!(!page.contains(outside), "{outside}");
    }
    // Speeds and loads of two sizes, speeds at an equal rate, and the rates.
    assert_eq!(page.matches("<table>").count(), 6);
    // A verdict for each job, before the tables, and one legend.
    let (first, rest) = page.split_once("<h2>Plots</h2>").unwrap();
    assert_eq!((first.matches("<li><strong>").count(), first.matches("<table>").count()), (7, 0));
    assert_eq!(rest.matches(">BloomFilter dispatch!</text>").count(), 1);
    for width in [390, 1200] {
        let Some(seen) = look(bench, &page, width) else { return };
        assert!(number(&seen, "overflow") <= 0.0, "at {width} px: {seen}");
        let plots = seen["plots"].as_array().unwrap();
        assert_eq!(names(&seen["plots"], "id"), ["speed", "rate", "space", "threads"]);
        for plot in plots {
            assert!(number(plot, "lines") >= 6.0 && number(plot, "texts") > 12.0, "{plot}");
            assert!(number(plot, "width") > 300.0, "{plot}");
            assert_eq!(plot["unseen"], 0, "{plot}");
            assert_eq!(plot["cut"].as_array().unwrap().len(), 0, "{plot}");
            assert_eq!(plot["overlapping"].as_array().unwrap().len(), 0, "{plot}");
            assert!(!plot["title"].as_str().unwrap().is_empty() && !plot["caption"].as_str().unwrap().is_empty());
        }
    }
}

/// Describes the page in the frame, which is as wide as a phone or a desktop window.
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

/// Returns the properties of a page in Chromium, if it can be run.
fn look(bench: &Bench, page: &str, width: u32) -> Option<Value> {
    let escape = |text: &str| text.replace('&', "&amp;").replace('"', "&quot;");
    let wrapper = format!(
        "<!DOCTYPE html><meta charset=utf-8><pre></pre><iframe width={width} height=3000 style='border:0' \
         srcdoc=\"{}\"></iframe><script>onload = () => {{{EYES}}}</script>",
        escape(page)
    );
    bench.write("wrapper.html", wrapper.as_bytes());
    browser::report(&bench.path("wrapper.html"))
}
