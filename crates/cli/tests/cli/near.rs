//! Verified near duplicates: the kept documents do not depend on threads or input formats. python/tests/test_near.py models
//! clusters.

use crate::common::{Bench, assert_contains_all, expect_success, json_values, number, run_with_stdin, stats, text};
use crate::corpus::{gzip, zstd};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;

const NEAR: &str = "corpus --near 0.8 --exact";

/// Returns texts. Three in four are an earlier text with some words replaced or removed.
fn texts(count: usize) -> Vec<String> {
    let mut state = 7_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut texts: Vec<Vec<usize>> = Vec::new();
    for i in 0..count {
        let mut text = match i % 4 {
            0 => (0..30 + below(300)).map(|_| below(2000)).collect(),
            _ => texts[below(i)].clone(),
        };
        for _ in 0..if i % 4 > 0 { below(1 + text.len() / 20) } else { 0 } {
            let at = below(text.len());
            text[at] = below(2000);
        }
        texts.push(text);
    }
    texts.iter().map(|text| text.iter().map(|word| format!("w{word} ")).collect()).collect()
}

fn lines(texts: &[String]) -> Vec<u8> {
    texts.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect::<String>().into_bytes()
}

fn jaccard(a: &str, b: &str) -> f64 {
    let grams = |text: &str| -> HashSet<String> {
        text.split_whitespace().collect::<Vec<_>>().windows(5).map(|gram| gram.join(" ")).collect()
    };
    let (a, b) = (grams(a), grams(b));
    a.intersection(&b).count() as f64 / a.union(&b).count() as f64
}

/// Returns the indices of the lines of each cluster.
fn clusters(bench: &Bench, name: &str) -> Vec<Vec<usize>> {
    let number = |member: &Value| member["line"].as_u64().unwrap() as usize - 1;
    let lines = json_values(&bench.read(name)).into_iter();
    lines.map(|line| line["members"].as_array().unwrap().iter().map(number).collect()).collect()
}

#[test]
fn kept_documents_do_not_depend_on_threads_or_formats() {
    let all = texts(1200);
    let input = lines(&all);
    let bench = Bench::new(&[("a", &input), ("a.gz", &gzip(&input)), ("a.zst", &zstd(&input))]);
    let kept = bench.run_ok(&format!("{NEAR} --clusters clusters a"));
    let found = clusters(&bench, "clusters");
    let gone: HashSet<usize> = found.iter().flat_map(|cluster| &cluster[1..]).copied().collect();
    let stay: Vec<String> = (0..all.len()).filter(|i| !gone.contains(i)).map(|i| all[i].clone()).collect();
    assert_eq!(kept, text(&lines(&stay)));
    assert!((300..1000).contains(&stay.len()), "{}", stay.len());

    for options in ["-j 1 a", "-j 5 --chunk-size 20000 a", "a.gz", "a.zst", "-"] {
        let output = match options {
            "-" => text(&expect_success(run_with_stdin(bench.command(&format!("{NEAR} --clusters others -")), &input))),
            options => bench.run_ok(&format!("{NEAR} --clusters others {options}")),
        };
        assert!(output == kept, "{options}");
        assert_eq!(clusters(&bench, "others"), found);
    }
}

#[test]
fn pairs_are_verified_and_reported_with_similarity() {
    let all = texts(1500);
    let bench = Bench::new(&[("a", &lines(&all))]);
    bench.run_ok(&format!("{NEAR} --pairs pairs --clusters clusters a -o out"));
    let report = text(&bench.read("pairs"));
    let mut pairs = HashMap::new();
    for line in report.lines() {
        let pair: Value = serde_json::from_str(line).unwrap();
        let [place, kept] = [&pair, &pair["kept"]].map(|line| number(line, "line") as usize - 1);
        let similarity = jaccard(&all[place], &all[kept]);
        assert!(line.ends_with(&format!("\"similarity\":{similarity:.4}}}")), "{line} {similarity}");
        pairs.insert(place, kept);
    }
    // Each member of a cluster is similar to another member, but not always to the kept one.
    let mut far = 0;
    for cluster in clusters(&bench, "clusters") {
        for &member in &cluster {
            let like = |other: &&usize| **other != member && jaccard(&all[member], &all[**other]) >= 0.8;
            assert!(cluster.iter().any(|other| like(&other)), "{member} of {cluster:?}");
            assert!(member == cluster[0] || pairs.remove(&member) == Some(cluster[0]));
            far += usize::from(member != cluster[0] && !like(&&cluster[0]));
        }
    }
    assert!(pairs.is_empty() && far > 0);
}

/// The similarity of a set and its subset is the ratio of their sizes.
#[test]
fn texts_of_different_lengths_are_compared() {
    let text = |words: usize| (0..words).map(|i| format!("w{i} ")).collect::<String>();
    // Texts of 204, 172 and 162 words have 200, 168 and 158 grams.
    for (longer, shorter, kept) in [(204, 172, 1), (204, 162, 2)] {
        for texts in [[text(longer), text(shorter)], [text(shorter), text(longer)]] {
            let bench = Bench::new(&[("a", &lines(&texts))]);
            assert_eq!(bench.run_ok(&format!("{NEAR} a")).lines().count(), kept, "{shorter}");
        }
    }
}

#[test]
fn each_input_has_an_output_and_lines_without_a_text_are_counted() {
    let all = texts(300);
    let (first, second) = all.split_at(130);
    let broken = [&b"\n{\"text\":7}\n"[..], &lines(second)].concat();
    let bench = Bench::new(&[("a.jsonl", &lines(first)), ("b.jsonl", &broken)]);
    let faulty = "--on-error skip -q";
    let together = bench.run_ok(&format!("{NEAR} {faulty} --pairs one a.jsonl b.jsonl"));
    bench.run_ok(&format!("{NEAR} {faulty} --pairs two --output-dir out a.jsonl b.jsonl"));
    assert_eq!([bench.read("out/a.jsonl"), bench.read("out/b.jsonl")].concat(), together.as_bytes());
    assert_eq!(bench.read("one"), bench.read("two"));
    let files: BTreeSet<String> = json_values(&bench.read("one"))
        .iter()
        .map(|pair| {
            let (name, line) = (pair["file"].as_str().unwrap().to_owned(), number(pair, "line") as usize);
            let place = if name == "a.jsonl" { line - 1 } else { line - 3 + 130 };
            let kept = number(&pair["kept"], "line") as usize;
            let kept = if pair["kept"]["file"] == "a.jsonl" { kept - 1 } else { kept - 3 + 130 };
            let similarity = jaccard(&all[place], &all[kept]);
            assert!((number(pair, "similarity") - similarity).abs() < 0.000_051);
            name
        })
        .collect();
    assert_eq!(files.len(), 2);
}

#[test]
fn states_hold_the_bands_of_all_documents() {
    let all = texts(400);
    let (first, second) = all.split_at(200);
    let bench = Bench::new(&[("a", &lines(first)), ("b", &lines(second)), ("all", &lines(&all))]);
    bench.run_ok(&format!("{NEAR} -n 400 -s state a -o kept"));
    let again = bench.run_ok(&format!("{NEAR} -s state --pairs pairs a"));
    assert_eq!(again, "");
    let pairs = text(&bench.read("pairs"));
    assert_eq!(pairs.matches("\"kept\":null}\n").count(), 200);
    // Documents that an earlier run dropped are known too.
    let kept = bench.run_ok(&format!("{NEAR} -s state b"));
    let both = bench.run_ok(&format!("{NEAR} all"));
    let of_both: HashSet<&str> = both.lines().collect();
    assert!(kept.lines().all(|line| of_both.contains(line)) && !kept.is_empty());
}

#[test]
fn statistics_count_documents() {
    let all = texts(200);
    let bench = Bench::new(&[("a", &lines(&all))]);
    let output = bench.run(&format!("{NEAR} --clusters clusters --stats=json a"));
    let (figures, found) = (stats(&output), clusters(&bench, "clusters"));
    let gone: usize = found.iter().map(|cluster| cluster.len() - 1).sum();
    assert_eq!(number(&figures, "documents") as usize, 200);
    assert_eq!(number(&figures, "dropped") as usize, gone);
    assert_eq!(number(&figures, "kept") as usize, 200 - gone);
}

#[test]
fn options_without_clusters_are_refused() {
    let bench = Bench::new(&[("a", b"")]);
    for other in ["--frozen -s a", "--annotate", "--in-place"] {
        let option = other.split(' ').next().unwrap();
        assert_contains_all(&bench.run_err(&format!("{NEAR} {other} a")), &["'--exact'", option]);
    }
    assert_contains_all(&bench.run_err("corpus --exact a"), &["--near"]);
}

#[test]
fn texts_in_all_scripts_are_compared() {
    let words = ["слово", "言葉", "ไทย", "كلمة", "e\u{301}", "👩\u{200d}🚀", "한국어", "naïve"];
    let text = |from: usize| (from..from + 60).map(|i| format!("{}{} ", words[i % 8], i / 3)).collect::<String>();
    let texts = [text(0), text(1), text(500), text(0).replacen("слово0", "другое", 1)];
    let bench = Bench::new(&[("a", &lines(&texts))]);
    bench.run_ok(&format!("{NEAR} --clusters clusters a -o out"));
    assert_eq!(clusters(&bench, "clusters"), [[0, 1, 3]]);
    assert_eq!(fs::read_to_string(bench.path("out")).unwrap().lines().count(), 2);
}
