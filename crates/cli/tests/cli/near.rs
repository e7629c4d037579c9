//! Near duplicates: documents are compared with the ones that stay, whatever the threads and input formats.
//! python/tests/test_near.py models the choice.

use crate::common::random::Random;
use crate::common::{
    Bench, assert_contains_all, expect_success, json_values, number, run_with_stdin, stats, text, with_slashes,
};
use crate::corpus::{gzip, zstd};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;

const NEAR: &str = "corpus --near 0.8";

/// Returns texts. Three in four are an earlier text with some words replaced or removed.
fn texts(count: usize) -> Vec<String> {
    let mut random = Random(7);
    let mut below = |bound| random.index(bound);
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

fn grams(text: &str) -> HashSet<String> {
    text.split_whitespace().collect::<Vec<_>>().windows(5).map(|gram| gram.join(" ")).collect()
}

/// Returns the Jaccard index of the 5-grams of two texts, and the share of the first one's grams that the second has.
fn measures(a: &str, b: &str) -> (f64, f64) {
    let (a, b) = (grams(a), grams(b));
    let common = a.intersection(&b).count() as f64;
    (common / a.union(&b).count() as f64, common / a.len() as f64)
}

fn jaccard(a: &str, b: &str) -> f64 {
    measures(a, b).0
}

/// Returns texts of `words` random words.
fn random_texts(seed: u64) -> impl FnMut(usize) -> String {
    let mut random = Random(seed);
    move |words| (0..words).map(|_| format!("w{:x} ", random.next() >> 33)).collect()
}

/// Returns the number of the removed and of the kept line of each pair, and both measures.
fn pairs(bench: &Bench, name: &str) -> Vec<(usize, usize, f64, f64)> {
    let line = |value: &Value| number(value, "line") as usize - 1;
    let pair = |pair: &Value| (line(pair), line(&pair["kept"]), number(pair, "similarity"), number(pair, "contained"));
    json_values(&bench.read(name)).iter().map(pair).collect()
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
fn pairs_are_reported_with_both_measures() {
    let all = texts(1500);
    let bench = Bench::new(&[("a", &lines(&all))]);
    bench.run_ok(&format!("{NEAR} --pairs pairs --clusters clusters a -o out"));
    let report = text(&bench.read("pairs"));
    let mut pairs = HashMap::new();
    for line in report.lines() {
        let pair: Value = serde_json::from_str(line).unwrap();
        let [place, kept] = [&pair, &pair["kept"]].map(|line| number(line, "line") as usize - 1);
        let (similarity, contained) = measures(&all[place], &all[kept]);
        let expected = format!("\"similarity\":{similarity:.4},\"contained\":{contained:.4}}}");
        assert!(similarity >= 0.8 && line.ends_with(&expected), "{line} {expected}");
        pairs.insert(place, kept);
    }
    // A cluster is a document that stays, and the documents that were removed because of it.
    for cluster in clusters(&bench, "clusters") {
        assert!(!pairs.contains_key(&cluster[0]));
        assert!(cluster[1..].iter().all(|member| pairs.remove(member) == Some(cluster[0])));
    }
    assert!(pairs.is_empty());
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
    let bench = Bench::new(&[("a", &lines(first)), ("b", &lines(second))]);
    bench.run_ok(&format!("{NEAR} -n 400 -s state a -o kept"));
    let again = bench.run_ok(&format!("{NEAR} -s state --pairs pairs a"));
    assert_eq!(again, "");
    let pairs = text(&bench.read("pairs"));
    assert_eq!(pairs.matches("\"kept\":null}\n").count(), 200);
    // Documents that an earlier run dropped are known too, and nothing is compared with them.
    let output = bench.run(&format!("{NEAR} -s state b --stats=json"));
    let earlier = text(&lines(first));
    let earlier: HashSet<&str> = earlier.lines().collect();
    let kept = text(&output.stdout);
    assert!(kept.lines().all(|line| !earlier.contains(line)) && !kept.is_empty());
    let unseen = number(&stats(&output), "removed_without_comparison") as usize;
    assert!(unseen > 0 && unseen <= 200 - kept.lines().count());
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
fn options_that_leave_nothing_to_compare_are_refused() {
    let bench = Bench::new(&[("a", b"")]);
    for compared in ["--exact", "--contained 0.9", "--earlier a"] {
        let name = compared.split(' ').next().unwrap();
        let with_state = if name == "--exact" { &["--frozen -s a", "--checkpoint 5m -s s"][..] } else { &[] };
        for other in ["--annotate", "--in-place"].iter().chain(with_state) {
            let option = other.split(' ').next().unwrap();
            assert_contains_all(&bench.run_err(&format!("{NEAR} {compared} {other} a")), &[name, option]);
        }
        assert_contains_all(&bench.run_err(&format!("corpus {compared} a")), &["--near"]);
    }
    for compared in ["--contained 0.9", "--earlier b"] {
        let message = bench.run_err(&format!("{NEAR} {compared} -s s a"));
        assert_contains_all(&message, &[compared.split(' ').next().unwrap(), "no texts to compare with", "--earlier"]);
    }
    assert_contains_all(&bench.run_err(&format!("{NEAR} --contained 1.1 a")), &["not from 0 to 1"]);
    assert_contains_all(&bench.run_err(&format!("{NEAR} --earlier - a")), &["--earlier", "standard input"]);
    assert_contains_all(&bench.run_err(&format!("{NEAR} --earlier a a")), &["\"a\"", "--earlier", "name it once"]);
    assert_contains_all(&bench.run_err("dedup --keep longest a"), &["longest", "corpus"]);
}

#[test]
fn nothing_is_lost_that_the_survivor_does_not_say() {
    let mut random = random_texts(1);
    // A template of 400 words with 20 of each document's own, and near duplicates that say less than others.
    let template = random(400);
    let templates: Vec<String> = (0..200).map(|_| template.clone() + &random(20)).collect();
    let longer: Vec<String> = (0..50).map(|_| random(300)).collect();
    let shorter: Vec<String> = longer.iter().map(|text| text.split_inclusive(' ').take(295).collect()).collect();
    let bench = Bench::new(&[("templates", &lines(&templates)), ("all", &lines(&[shorter, longer].concat()))]);
    assert_eq!(bench.run_ok(&format!("{NEAR} --contained 1 templates")).as_bytes(), lines(&templates));
    let output = bench.run(&format!("{NEAR} --contained 0.97 --pairs templates-pairs --stats=json templates"));
    assert_eq!(number(&stats(&output), "dropped"), 0.0);
    // Each kept document shares 396 grams of 416, or 0.95, with others.
    bench.run_ok(&format!("{NEAR} --contained 0.9 --pairs templates-pairs -o out templates"));
    for (document, kept, similarity, contained) in pairs(&bench, "templates-pairs") {
        assert_eq!(measures(&templates[document], &templates[kept]), (396.0 / 436.0, 396.0 / 416.0));
        assert!((similarity - 396.0 / 436.0).abs() < 0.0001 && (contained - 396.0 / 416.0).abs() < 0.0001);
    }
    // Empty documents are not mistaken for others.
    let longer = random(400);
    let shorter: String = longer.split_inclusive(' ').take(395).collect();
    bench.write("some", &lines(&[String::new(), longer.clone(), shorter]));
    assert_eq!(bench.run_ok(&format!("{NEAR} --keep longest some")).as_bytes(), lines(&[longer]));
    for (keep, removed) in [("longest", 0..50), ("first", 0..0)] {
        bench.run_ok(&format!("{NEAR} --contained 1 --keep {keep} --pairs p -o out all"));
        let found = pairs(&bench, "p");
        assert!(found.iter().map(|(document, ..)| *document).eq(removed), "{keep}");
        assert!(found.iter().all(|(document, kept, _, contained)| *kept == document + 50 && *contained == 1.0));
    }
}

#[test]
fn chains_of_similar_documents_are_not_followed() {
    let mut random = random_texts(2);
    let mut words: Vec<String> = (0..300).map(|_| random(1)).collect();
    let chain: Vec<String> = (0..200)
        .map(|i| {
            let at = 4 * i % 297;
            words.splice(at..at + 4, (0..4).map(|_| random(1)));
            words.concat()
        })
        .collect();
    let bench = Bench::new(&[("chain", &lines(&chain))]);
    for keep in ["first", "last", "longest"] {
        bench.run_ok(&format!("{NEAR} --keep {keep} --pairs p -o out chain"));
        let found = pairs(&bench, "p");
        assert!(found.iter().all(|(document, kept, ..)| jaccard(&chain[*document], &chain[*kept]) >= 0.8));
        // Documents at a distance of five and more have a similarity below 0.8.
        assert!((100..190).contains(&found.len()), "{keep}: {}", found.len());
    }
}

#[test]
fn documents_of_earlier_runs_are_compared_and_not_printed() {
    let all = texts(600);
    let (first, second) = all.split_at(300);
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path("in")).unwrap();
    bench.write("in/a", &lines(first));
    bench.write("in/b", &lines(second));
    let apart = bench.run_ok(&format!("{NEAR} --contained 0.9 in/a"));
    let together = bench.run_ok(&format!("{NEAR} --contained 0.9 in/a in/b"));
    let run = "corpus --near 0.8 --contained 0.9 --output-dir out --count";
    bench.run_ok(&format!("{run} in/a"));
    let counted = |name: &str| -> String {
        let kept = json_values(&bench.read(name));
        kept.iter().map(|line| format!("{{\"text\":{}}}\n", line["text"])).collect()
    };
    for again in ["", " --force"] {
        // The outputs of this run are not earlier documents.
        bench.run_ok(&format!("{run} --earlier out --pairs p --clusters c in/b{again}"));
        assert_eq!((counted("out/a"), apart.clone() + &counted("out/b")), (apart.clone(), together.clone()));
    }
    let is_earlier = |of: &Value| with_slashes(of["file"].as_str().unwrap()) == "out/a";
    let of_earlier = json_values(&bench.read("p")).iter().filter(|pair| is_earlier(&pair["kept"])).count();
    let members = |cluster: &Value| cluster["members"].as_array().unwrap().len() - 1;
    let clusters = json_values(&bench.read("c"));
    let of_clusters = clusters.iter().filter(|cluster| is_earlier(&cluster["members"][0]));
    assert!(of_earlier > 10 && of_clusters.map(members).sum::<usize>() == of_earlier);
    // The best document of this run does not displace an earlier one.
    bench.write("c", &[lines(&first[..1]), lines(&first[..1])].concat());
    assert_eq!(bench.run_ok(&format!("{NEAR} --keep longest --earlier in/a c")), "");
}

/// In one reading nothing is compared. The estimate is exact because all sets of grams fit into memory.
#[test]
fn removals_below_the_similarity_are_estimated_in_one_reading() {
    let mut random = random_texts(3);
    let template = random(120);
    let own = [20, 40, 80, 200, 600].into_iter().flat_map(|own| [own; 40]);
    let mut all: Vec<String> = own.map(|own| template.clone() + &random(own)).collect();
    for _ in 0..20 {
        let text = random(300);
        all.push(text.clone());
        all.push(text.split_inclusive(' ').skip(1).collect());
    }
    let bench = Bench::new(&[("a", &lines(&all))]);
    let output = bench.run("corpus --near 0.8 --checkpoint 1h -s s --stats=json a");
    let kept = text(&output.stdout);
    let kept: HashSet<&str> = kept.lines().collect();
    let sets: Vec<_> = all.iter().map(|text| grams(text)).collect();
    let (kept, removed): (Vec<usize>, Vec<usize>) =
        (0..all.len()).partition(|i| kept.contains(&*format!("{{\"text\":\"{}\"}}", all[*i])));
    let is_similar = |a: usize, b: usize| {
        let common = sets[a].intersection(&sets[b]).count();
        common as f64 / (sets[a].len() + sets[b].len() - common) as f64 >= 0.8
    };
    let below = removed.iter().filter(|&&i| !kept.iter().any(|&j| is_similar(i, j))).count();
    let figures = stats(&output);
    assert_eq!(number(&figures, "expected_below_similarity") as usize, below);
    assert!(below > 10, "{below}");
    assert_contains_all(&text(&output.stderr), &[&format!("about {below} are less similar than asked")]);
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

/// Folders of one month on two machines are not compared with one another. The next month is compared with both, by the merged states
/// of the machines or by their outputs.
#[test]
fn a_month_is_compared_with_the_folders_of_all_machines() {
    let words = |number: usize| (0..120).map(|i| format!("w{}", 120 * number + i)).collect::<Vec<_>>();
    let file = |numbers: Vec<usize>, change: bool| -> String {
        let line = |number| {
            let mut words = words(number);
            words.extend(change.then(|| format!("changed{number}")));
            crate::documents::line(number, &words.join(" "))
        };
        numbers.into_iter().map(line).collect()
    };
    let next = || (30..60).chain(90..100).collect();
    // Ten documents are on both machines.
    let machines = [("a", file((0..50).collect(), false)), ("b", file((40..90).collect(), false))];
    let bench = Bench::new(&[("copies", file(next(), false).as_bytes()), ("changed", file(next(), true).as_bytes())]);
    machines.iter().for_each(|(name, lines)| bench.write(name, lines.as_bytes()));
    let ids =
        |lines: &str| -> Vec<f64> { json_values(lines.as_bytes()).iter().map(|line| number(line, "id")).collect() };
    let new: Vec<f64> = (90..100).map(f64::from).collect();
    for (step, month) in [
        ("--near 0.8 ", "changed"),
        ("", "changed"),
        ("--drop-document ", "changed"),
        ("--sample 16 ", "copies"),
        ("--by document --ngram 0 ", "copies"),
    ] {
        for (name, lines) in &machines {
            let run = format!("corpus -q {step}-p 1e-4 --force --state {name}.state -o {name}.out {name}");
            bench.run_ok(&run);
            assert!(text(&bench.read(&format!("{name}.out"))) == *lines, "{step}");
        }
        bench.run_ok("merge -p 1e-3 a.state b.state -o both.state");
        assert_eq!(ids(&bench.run_ok(&format!("corpus -q {step}--state both.state {month}"))), new, "{step}");
        ["a.state", "b.state", "both.state"].iter().for_each(|state| fs::remove_file(bench.path(state)).unwrap());
    }
    let run = |step: &str| bench.run_ok(&format!("corpus -q {step} --earlier a.out --earlier b.out changed"));
    assert_eq!(ids(&run("--near 0.8 --contained 0.95")), new);
    let rest = crate::documents::texts(run("--substrings 50").as_bytes());
    let expected = (30..60).map(|number| format!("changed{number}"));
    assert!(rest.iter().map(|text| text.trim_start().to_owned()).take(30).eq(expected));
    assert!(rest[30..].iter().zip(90..).all(|(text, number)| text.starts_with(&words(number).join(" "))));
}
