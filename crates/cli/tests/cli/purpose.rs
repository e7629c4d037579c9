//! The parameters that a filter's file records, and the refusals and warnings that depend on them.

use crate::common::{Bench, assert_contains_all, expect_success, number, stats, text, url_lines};
use bloomline::{BloomFilter, ScalableBloomFilter};
use serde_json::Value;
use std::fs;
use std::process::Output;

fn load(bench: &Bench, name: &str) -> BloomFilter {
    BloomFilter::load(bench.path(name)).unwrap()
}

/// Copies the filter in the file `source` without its parameters, like a filter of a program that sets none.
fn save_without_parameters(bench: &Bench, source: &str, name: &str) {
    let filter = load(bench, source);
    let builder = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes());
    let mut silent = builder.seed(filter.seed()).build().unwrap();
    silent.union(&filter).unwrap();
    silent.save(bench.path(name)).unwrap();
}

/// Key options, the name of their keys, and a file with one key.
const KEYS: [(&str, &str, &[u8]); 12] = [
    ("", "line", b"a\n"),
    ("--trim ", "line, trimmed", b" a\n"),
    ("--ignore-case ", "line, case ignored", b"A\n"),
    ("--normalize url ", "line, normal form of a URL", b"http://A.example\n"),
    ("--field 2 ", "field 2 of lines split at tab", b"1\ta\n"),
    ("--field 1 --delimiter :: ", "field 1 of lines split at '::'", b"a::b\n"),
    ("--ignore-case --field 2 --trim -z ", "field 2 of lines split at tab, trimmed, case ignored", b"1\t A\0"),
    ("--json-pointer /text ", "text", b"{\"text\":\"a\"}\n"),
    (
        "--trim --normalize url --json-pointer /a/0 -z ",
        "a.0, trimmed, normal form of a URL",
        b"{\"a\":[\" http://A.example \"]}\0",
    ),
    ("--json-pointer /a --json-pointer /b ", "a,b", b"{\"a\":1,\"b\":2}\n"),
    ("--field 1,1 ", "fields 1,1 of lines split at tab", b"a\tb\n"),
    ("--csv --field 1 ", "field 1 of CSV lines", b"a,b\n"),
];

#[test]
fn files_keep_the_parameters_of_their_filter() {
    for (options, name, _) in KEYS {
        let bench = Bench::new(&[("empty", b"")]);
        bench.run_ok(&format!("build -n 500 -p 0.01 {options}--no-shrink -o built empty"));
        bench.run_ok(&format!("dedup -n 500 --when-full warn -p 0.01 {options}--state sized empty"));
        for file in ["built", "sized"] {
            let filter = load(&bench, file);
            let parameters = (filter.expected_keys(), filter.false_positive_rate(), filter.key_name());
            assert_eq!(parameters, (Some(500), Some(0.01), name), "{file}");
        }
        bench.run_ok(&format!("dedup -p 0.01 {options}--state growing empty"));
        assert_eq!(ScalableBloomFilter::load(bench.path("growing")).unwrap().key_name(), name);
    }
    // Counted lines and derived numbers are recorded too.
    let bench = Bench::new(&[("a", &url_lines(0..300))]);
    let parameters = |line: &str| {
        bench.run_ok(line);
        let filter = load(&bench, "f");
        (filter.expected_keys(), filter.false_positive_rate())
    };
    assert_eq!(parameters("build -o f a"), (Some(300), Some(1e-6)));
    fs::remove_file(bench.path("f")).unwrap();
    assert_eq!(
        parameters("dedup -q --total --memory 64K -p 0.25 --when-full warn --state f -o o a"),
        (None, Some(0.25))
    );
    let plan = &bench.json("plan --json -p 0.25 --memory 64K")[0];
    assert_eq!(bench.json("info --json f")["expected_keys"], plan["keys"]);
}

/// The bytes are those that docs/FORMAT.md specifies.
#[test]
fn file_fields_match_the_format() {
    let bench = Bench::new(&[("empty", b"")]);
    bench.run_ok("build -n 1000 -p 0.25 --trim --no-shrink -o f empty");
    let file = bench.read("f");
    let mut fields = [0; 56];
    fields[..4].copy_from_slice(&[1, 0, 8, 0]);
    fields[4..6].copy_from_slice(&1000u16.to_le_bytes());
    fields[12..16].copy_from_slice(&[2, 0, 8, 0]);
    // 0.25 is 2^-2: the exponent is 1023 - 2, above a mantissa of 52 zeros.
    fields[16..24].copy_from_slice(&(1021u64 << 52).to_le_bytes());
    fields[24..28].copy_from_slice(&[3, 0, 13, 0]);
    fields[28..41].copy_from_slice(b"line, trimmed");
    assert_eq!(file[48..52], [64, 0, 0, 0]);
    assert_eq!(file[64..120], fields);
    let plan = &bench.json("plan --json -n 1000 -p 0.25")[0]["memory_bytes"];
    assert_eq!(*plan, file.len() - 64 - 64 - 16);
}

#[test]
fn info_prints_the_parameters_of_a_filter() {
    let bench = Bench::new(&[("a", &url_lines(0..5000))]);
    bench.run_ok("build -n 8000 -p 0.01 --ignore-case -o f a");
    let keys = load(&bench, "f").estimated_keys();
    let info = bench.json("info --json f");
    assert_eq!(info["key_name"], "line, case ignored");
    assert_eq!((&info["expected_keys"], &info["false_positive_rate"]), (&8000.into(), &0.01.into()));
    assert_eq!(info["share_of_expected_keys"], keys / 8000.0);
    let info = bench.run_ok("info f");
    let full = format!("full          {:.2} % of these keys\n", keys / 80.0);
    for row in ["key           line, case ignored\n", "made for      8000 keys at a rate of 0.0100\n", &full] {
        assert!(info.contains(row), "{row:?} in {info}");
    }
    // All bits are set, so the number of keys is unknown.
    bench.run("build -n 1 -p 0.5 --when-full warn -o full a");
    assert_eq!(bench.json("info --json full")["share_of_expected_keys"], Value::Null);
    assert!(bench.run_ok("info full").contains("full          unknown\n"));

    save_without_parameters(&bench, "f", "silent");
    let info = bench.json("info --json silent");
    for field in ["key_name", "expected_keys", "false_positive_rate", "share_of_expected_keys"] {
        assert_eq!((info.get(field), info["estimated_keys"].as_f64()), (Some(&Value::Null), Some(keys)), "{field}");
    }
    let info = bench.run_ok("info silent");
    assert!(info.contains("key           unknown\n") && info.contains("made for      unknown\n"), "{info}");

    bench.run_ok("dedup --field 1 --state growing -o o a");
    let info = bench.json("info --json growing");
    assert_eq!(info["key_name"], "field 1 of lines split at tab");
    assert_eq!((&info["max_fpr"], info.get("expected_keys")), (&1e-6.into(), None));
}

#[test]
fn keys_of_another_name_than_the_filter_are_refused() {
    // Filters compare the names of keys, and all names differ, so one other name is enough.
    for (i, (made, has, line)) in KEYS.into_iter().enumerate() {
        let (asked, wants, _) = KEYS[(i + 1) % KEYS.len()];
        let bench = Bench::new(&[("a", line), ("empty", b""), ("out", b"precious\n")]);
        bench.run_ok(&format!("build -n 500 {made}-o sized empty"));
        bench.run_ok(&format!("dedup {made}--state growing -o o empty"));
        for filter in ["sized", "growing"] {
            let before = bench.read(filter);
            for command in ["check -s", "dedup -o out --state", "build --append -o"] {
                let message = bench.run_err(&format!("{command} {filter} {asked}a"));
                let names = [format!("its keys are \"{has}\","), format!("ask for \"{wants}\";")];
                assert_contains_all(&message, &[&format!("cannot use the filter \"{filter}\""), &names[0], &names[1]]);
                assert_contains_all(&message, &["give the key options that it was made with"]);
            }
            assert!(bench.read(filter) == before && bench.read("out") == b"precious\n", "{made}{asked}");
        }
        // Keys of the recorded name are accepted, and a filter without a name accepts all keys.
        for filter in ["sized", "growing"] {
            bench.run_ok(&format!("build --append -o {filter} {made}a"));
            assert_eq!(bench.run_ok(&format!("check --total -s {filter} {made}a")), "1\n", "{made}");
            assert_eq!(bench.run_ok(&format!("dedup --total --state {filter} {made}a")), "0\n", "{made}");
        }
        bench.run_ok("build -n 500 --normalize url -o named empty");
        save_without_parameters(&bench, "named", "silent");
        bench.run_ok(&format!("build --append -o silent {made}a"));
        assert_eq!(bench.run_ok(&format!("check --total -s silent {made}a")), "1\n", "{made}");
        assert_eq!(bench.run_ok(&format!("dedup --total --state silent {made}a")), "0\n", "{made}");
        assert_eq!(load(&bench, "silent").key_name(), "");
    }
}

/// The end of a line is not part of its key.
#[test]
fn line_endings_do_not_change_keys() {
    let bench = Bench::new(&[("lines", b"a\nb\n"), ("zeros", b"b\0a\0")]);
    bench.run_ok("build -n 500 -o f lines");
    assert_eq!(bench.run_ok("check -z -s f zeros"), "b\0a\0");
    assert_eq!(bench.run_ok("dedup --total -z --state f zeros"), "0\n");
}

#[test]
fn filters_with_different_keys_are_not_merged() {
    let bench = Bench::new(&[("a", b"A\n"), ("b", b"b\n")]);
    bench.run_ok("build -n 1000 --no-shrink -o lines a");
    bench.run_ok("build -n 1000 --no-shrink --ignore-case -o cases b");
    let message = bench.run_err("merge lines lines cases -o merged");
    assert_contains_all(
        &message,
        &["cannot merge \"cases\" into \"lines\"", "keys are \"line, case ignored\" and \"line\";"],
    );
    assert_contains_all(&message, &["the same key options"]);
    assert!(!bench.path("merged").exists());
    // A filter without a name is merged with any other one, in any order.
    save_without_parameters(&bench, "lines", "silent");
    for filters in ["silent cases", "cases silent", "silent silent cases"] {
        bench.run_ok(&format!("merge {filters} -o merged"));
        assert_eq!(load(&bench, "merged").key_name(), "line, case ignored", "{filters}");
        assert_eq!(bench.run_ok("check --total --ignore-case -s merged b"), "1\n");
    }
    bench.run_err("merge silent lines cases -o other");
    bench.run_ok("merge silent silent -o merged");
    assert_eq!(load(&bench, "merged").key_name(), "");
}

/// Returns the warning about the filter in a file, which has more keys than planned.
fn overfull_warning(bench: &Bench, name: &str, planned: u64) -> String {
    let filter = load(bench, name);
    let (keys, rate) = (filter.estimated_keys(), filter.current_fpr());
    assert!(keys > planned as f64 && (0.001..1.0).contains(&rate), "{keys} {rate}");
    format!("the filter has about {keys:.0} keys but is made for {planned}: its false-positive rate is {rate:.4}")
}

#[test]
fn overfull_filters_cause_one_warning() {
    let bench = Bench::new(&[("a", &url_lines(0..3000)), ("b", &url_lines(3000..3010)), ("c", &url_lines(0..3010))]);
    let warnings = |line: &str| {
        let output = bench.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}");
        text(&output.stderr)
    };
    assert_contains_all(
        &warnings("build -n 2000 --when-full warn -p 0.01 -o built a"),
        &["more than the 2000 distinct lines", "-n"],
    );
    assert_contains_all(
        &warnings("dedup -n 2000 --when-full warn -p 0.01 --force --state sized -o o a"),
        &["more than the 2000 distinct", "a state keeps the plan"],
    );
    let of_state = "a state keeps the plan that it was made with, so leave it as it is, and pass the output of \
                    `bloomline check -v -s \"sized\"` to a run with another state";
    for (line, file, remedy) in [
        ("build --append -o built b", "built", "build a larger one with -n"),
        ("dedup --force --state sized -o o b", "sized", of_state),
    ] {
        let expected = format!(
            "bloomline: warning: {} and rises with every new key; {remedy}\n",
            overfull_warning(&bench, file, 2000)
        );
        assert_eq!(warnings(line), expected);
        let expected =
            format!("bloomline: warning: {}; build a larger one with -n\n", overfull_warning(&bench, file, 2000));
        assert_eq!(warnings(&format!("check -s {file} c")), expected);
        assert_eq!(warnings(&format!("check --total -s {file} a b c")), expected);
        assert_eq!(warnings(&format!("check -q -s {file} c")), "");
    }
    // Lines are lost, so -q does not suppress the warning.
    assert!(warnings("dedup -q --force --state sized -o o b").contains("rises with every new key"));
    // The warning appears even if no key is new.
    assert!(warnings("dedup --force --state sized -o o a").contains("rises with every new key"));
    // Without recorded parameters, there is no limit to exceed.
    save_without_parameters(&bench, "sized", "silent");
    for line in ["check -s silent c", "build --append -o silent c", "dedup --force --state silent -o o c"] {
        assert_eq!(warnings(line), "");
    }
    // All bits are set.
    warnings("build -n 1 -p 0.5 --when-full warn -o full a");
    assert!(
        warnings("check -s full a")
            .contains("has too many keys to count but is made for 1: its false-positive rate is 1.0")
    );
}

#[test]
fn exactly_full_filters_cause_no_warning() {
    // For about half of these filters, the estimated number of keys exceeds the real one, which equals the planned one.
    let mut above = 0;
    for seed in 0..20 {
        let bench = Bench::new(&[("a", &url_lines(0..1000))]);
        bench.run_ok(&format!("build -p 0.01 --seed {seed} -o f a"));
        above += u32::from(load(&bench, "f").estimated_keys() > 1000.0);
        let all = bench.read("a");
        assert!(expect_success(bench.run("check -s f a")) == all);
        bench.run_ok("build --append -o f a");
        bench.run_ok(&format!("dedup --seed {seed} --state f -o o a"));
        assert_eq!(bench.read("o"), b"");
    }
    assert!((3..=17).contains(&above), "{above}");
}

#[test]
fn the_plan_of_an_existing_filter_determines_the_warning() {
    for (more, options) in
        [("build --append -o s", ""), ("dedup --state s -o o", ""), ("dedup --state s -o o", "--chunk-size 99 ")]
    {
        let bench = Bench::new(&[("a", &url_lines(0..500)), ("b", &url_lines(500..3000))]);
        bench.run_ok("build -n 1000 -p 0.01 --no-shrink -o s a");
        let output = bench.run(&format!("{more} {options}b"));
        let warning = text(&output.stderr);
        assert_eq!((warning.matches("warning").count(), warning.matches('\n').count()), (1, 1), "{warning}");
        assert_contains_all(&warning, &["more than the 1000 distinct lines", "rate is 0.", "rises with every new key"]);
    }
    // The run can stop at this limit. Its keys are estimated, with a standard deviation of half the root of their number.
    let bench = Bench::new(&[("a", &url_lines(0..500)), ("b", &url_lines(500..3000))]);
    bench.run_ok("dedup -n 1000 --when-full warn -p 0.01 --state s -o o a");
    let output = bench.run("dedup -j 1 --when-full stop --stats=json --state s -o p b");
    assert_contains_all(&failed_after_stats(&output), &["stopped at \"b\", line ", "rate of 0.01"]);
    let new = number(&stats(&output), "unique");
    assert!((new - 500.0).abs() < 5.0 * 0.5 * 1000f64.sqrt(), "{new}");
}

/// No option enlarges a state, so the advice is to add lines that are not in a full state to another state.
#[cfg(unix)]
#[test]
fn advice_about_full_filters_works() {
    let bench = Bench::new(&[("a", &url_lines(0..1000)), ("b", &url_lines(500..3000))]);
    bench.run_ok("dedup -n 2000 -p 1e-9 --when-full stop -s s -o o a");
    let message = bench.run_err("dedup --when-full stop -s s -o p b");
    let pass = "pass the output of `bloomline check -v -s \"s\"` to a run with another state";
    assert_contains_all(&message, &["stopped at \"b\", line ", pass, "or accept a higher rate with --when-full warn"]);
    assert!([" -n", "--memory", "grow"].iter().all(|option| !message.contains(option)), "{message}");
    let piped = bench.bash("bloomline check -v -s \"s\" b | bloomline dedup -s t -o q").output().unwrap();
    assert!(piped.status.success(), "{}", text(&piped.stderr));
    assert_eq!([bench.read("o"), bench.read("p"), bench.read("q")].concat(), url_lines(0..3000));
    let output = bench.run("dedup --when-full warn -s s -o r b");
    assert_eq!(output.status.code(), Some(0));
    assert_contains_all(&text(&output.stderr), &["than the 2000 distinct lines", pass]);

    // `check` does not apply to a state of documents.
    let documents = |range: std::ops::Range<u32>| -> String {
        range
            .map(|i| format!("{{\"text\":\"{}\"}}\n", (0..9).map(|j| format!("w{i}x{j} ")).collect::<String>()))
            .collect()
    };
    let bench = Bench::new(&[("a", documents(0..200).as_bytes()), ("b", documents(100..300).as_bytes())]);
    let output = bench.run("corpus --by document --ngram 0 -n 100 -p 1e-9 --when-full warn -s s -o o a");
    let pass = "pass the output of `bloomline corpus --frozen -s \"s\"` to a run with another state";
    assert_contains_all(&text(&output.stderr), &["than the 100 distinct ", pass]);
    let script = "bloomline corpus --by document --ngram 0 --frozen -s \"s\" b \
                  | bloomline corpus --by document --ngram 0 -s t -o p";
    assert!(bench.bash(script).output().unwrap().status.success());
    assert_eq!(text(&[bench.read("o"), bench.read("p")].concat()), documents(0..300));
    // For a filter of `build`, the advice is to build a larger one.
    let bench = Bench::new(&[("a", &url_lines(0..1000))]);
    assert_contains_all(&bench.run_err("build -n 500 --when-full stop -o f a"), &["build a larger one with -n, or "]);
}

/// Returns the error message that follows the statistics of a run that must fail.
#[track_caller]
fn failed_after_stats(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2));
    text(&output.stderr).lines().find(|line| !line.starts_with('{')).unwrap().to_owned()
}
