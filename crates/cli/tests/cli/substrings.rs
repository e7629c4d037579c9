//! `corpus --substrings`: the words that remain are those of a plain model, the set of all windows of words.

use crate::common::random::Random;
use crate::common::{Bench, assert_contains_all, bloomline, expect_failure, json_values, number, signal, stats, text};
use crate::corpus::{gunzip, gzip};
use crate::documents::{line, texts};
#[cfg(feature = "parquet")]
use crate::parquet::{read_with_marks, table};
use bloomline_text::words;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::time::UNIX_EPOCH;

/// The number of words of a window.
const N: usize = 6;

/// Returns what remains of each text, as words. A window is a repeat if an equal one ended before it.
fn model(texts: &[String]) -> Vec<Vec<String>> {
    let mut seen = HashSet::new();
    let rest = |text: &String| {
        let words: Vec<String> = words(text).map(str::to_owned).collect();
        let windows: Vec<Vec<String>> = words.windows(N).map(<[String]>::to_vec).collect();
        let mut cut = vec![false; words.len()];
        for (start, window) in windows.iter().enumerate() {
            seen.extend(start.checked_sub(N).map(|ended| windows[ended].clone()));
            if seen.contains(window) {
                cut[start..start + N].fill(true);
            }
        }
        seen.extend(windows);
        words.into_iter().zip(cut).filter(|(_, cut)| !cut).map(|(word, _)| word).collect()
    };
    texts.iter().map(rest).collect()
}

fn owned(text: &str) -> Vec<String> {
    words(text).map(str::to_owned).collect()
}

/// Returns texts with passages of earlier texts and of themselves, in several scripts, and texts that consist of repeats.
fn corpus(seed: u64, count: usize) -> Vec<String> {
    const WORDS: [&str; 16] = [
        "a ",
        "the ",
        "Wörter, ",
        "\"quoted\" ",
        "\\ ",
        "x\n",
        "\t",
        "中",
        "文",
        "ไ",
        "ท",
        "한국어 ",
        "👩‍🚀 ",
        "e\u{301} ",
        ". ",
        "=",
    ];
    let mut random = Random(seed);
    let mut texts: Vec<String> = Vec::new();
    for i in 0..count {
        let mut text = String::new();
        for _ in 0..random.below(6) {
            match random.below(4) {
                0 if i > 0 => {
                    let earlier: Vec<char> = texts[random.below(i as u64) as usize].chars().collect();
                    let start = random.below(earlier.len() as u64 + 1) as usize;
                    let passage = &earlier[start..];
                    text.extend(&passage[..passage.len().min(random.below(90) as usize)]);
                }
                1 => text += &WORDS[random.below(16) as usize].repeat(random.below(30) as usize),
                _ => (0..random.below(40)).for_each(|_| text += WORDS[random.below(16) as usize]),
            }
            text += &format!("w{} ", random.below(1000));
        }
        texts.push(text);
    }
    texts
}

fn lines(texts: &[String]) -> String {
    lines_from(0, texts)
}

fn lines_from(first: usize, texts: &[String]) -> String {
    (first..).zip(texts).map(|(id, text)| line(id, text)).collect()
}

/// Asserts that the documents, each with its number as `id`, are those of the model.
#[track_caller]
fn assert_modelled(documents: &[u8], all: &[String]) {
    let mut expected = model(all).into_iter().enumerate().filter(|(_, words)| !words.is_empty());
    for document in json_values(documents) {
        let (id, words) = expected.next().expect("one more document");
        assert_eq!(document["id"], id, "{:?}", all[id]);
        assert_eq!(owned(document["text"].as_str().unwrap()), words, "{:?}", all[id]);
    }
    assert_eq!(expected.next(), None);
}

#[cfg(unix)]
#[test]
fn words_that_remain_are_those_of_the_set_of_all_windows() {
    let all = corpus(1, 1500);
    let (first, second) = all.split_at(700);
    let (first, second) = (lines(first), lines_from(700, second));
    let files = [("a.jsonl", first.as_bytes()), ("b.jsonl.gz", &gzip(second.as_bytes()))];
    let bench = Bench::new(&files);
    let output = bench.run_ok("corpus --substrings 6 a.jsonl b.jsonl.gz");
    assert_modelled(output.as_bytes(), &all);
    assert!(output.len() < (first.len() + second.len()) * 3 / 4, "{}", output.len());
    for options in ["-j 1", "-j 5 --chunk-size 20000", "-n 1 -p 0.5", "--on-error skip"] {
        assert!(bench.run_ok(&format!("corpus --substrings 6 {options} a.jsonl b.jsonl.gz")) == output, "{options}");
    }
    // Little memory: the inputs are read more often.
    for memory in ["1M", "200K", "100K"] {
        assert!(
            bench.run_ok(&format!("corpus -q --substrings 6 -m {memory} a.jsonl b.jsonl.gz")) == output,
            "{memory}"
        );
    }
    assert_contains_all(&bench.run_err("corpus -q --substrings 6 -m 4K a.jsonl"), &["-m is too small", "at least -m"]);
    let piped =
        bench.bash("cat a.jsonl <(gunzip -c b.jsonl.gz) | bloomline corpus -q --substrings 6 -m 100K -").output();
    assert!(text(&piped.unwrap().stdout) == output);
    // Texts of earlier runs are compared as inputs are, and not printed.
    let first_output = bench.run_ok("corpus --substrings 6 a.jsonl");
    for memory in ["", " -m 200K"] {
        let rest = bench.run_ok(&format!("corpus -q --substrings 6{memory} --earlier a.jsonl b.jsonl.gz"));
        assert!([&*first_output, &rest].concat() == output, "{memory}");
        bench.write("c.jsonl", second.as_bytes());
        let notes = bench.run_ok(&format!("corpus -q --substrings 6{memory} --annotate --earlier a.jsonl c.jsonl"));
        let kept = json_values(notes.as_bytes()).iter().filter(|note| note["bloomline"]["duplicate"] == false).count();
        assert_eq!((notes.lines().count(), kept), (second.lines().count(), rest.lines().count()));
        bench.run_ok(&format!("corpus -q --substrings 6{memory} --in-place --earlier a.jsonl c.jsonl"));
        assert!(text(&bench.read("c.jsonl")) == rest && text(&bench.read("a.jsonl")) == first, "{memory}");
    }
    bench.run_ok("corpus --substrings 6 --output-dir out a.jsonl b.jsonl.gz");
    assert!(text(&[bench.read("out/a.jsonl"), gunzip(&bench.read("out/b.jsonl.gz"))].concat()) == output);
}

#[test]
fn texts_that_repeat_entirely_are_removed() {
    let all = corpus(2, 300);
    let twice = [&all[..], &all].concat();
    let bench = Bench::new(&[("a", lines(&twice).as_bytes())]);
    assert_modelled(bench.run_ok("corpus -q --substrings 6 -m 50K a").as_bytes(), &twice);
    let kept = texts(bench.run_ok("corpus --substrings 6 --keep-empty a").as_bytes());
    assert_eq!(kept.len(), twice.len());
    let rest: Vec<Vec<String>> = kept.iter().map(|text| owned(text)).collect();
    assert!(rest == model(&twice));
}

#[test]
fn escapes_and_other_members_stay_as_they_are() {
    let all = corpus(3, 300);
    // Two of three characters of the text, and those that are not letters or digits, are escapes.
    let escaped = |(i, text): (usize, &String)| {
        let escape = |(j, unit): (usize, u16)| {
            if (i + j) % 3 > 0 {
                return format!("\\u{unit:04X}");
            }
            let plain = char::from_u32(unit.into()).filter(|c| c.is_alphanumeric());
            plain.map_or_else(|| format!("\\u{unit:04x}"), String::from)
        };
        let text: String = text.encode_utf16().enumerate().map(escape).collect();
        format!(" {{\"n\":1.50, \"text\" : \"{text}\",\"id\":{i} }} \n")
    };
    let input: String = all.iter().enumerate().map(escaped).collect();
    let bench = Bench::new(&[("a", input.as_bytes()), ("plain", lines(&all).as_bytes())]);
    let output = bench.run_ok("corpus --substrings 6 a");
    assert_modelled(output.as_bytes(), &all);
    assert_eq!(texts(output.as_bytes()), texts(bench.run_ok("corpus --substrings 6 plain").as_bytes()));
    assert!(output.lines().all(|line| line.starts_with(" {\"n\":1.50, \"text\" : \"") && line.ends_with(" } ")));
    // Untouched lines have the same bytes.
    let input: HashSet<&str> = input.lines().collect();
    let untouched = output.lines().filter(|line| input.contains(line)).count();
    let whole = all.iter().zip(model(&all)).filter(|(text, rest)| !rest.is_empty() && owned(text) == *rest).count();
    assert_eq!(untouched, whole);
}

#[test]
fn annotations_have_the_spans_that_are_cut() {
    // With white space between all words, no cut needs a space.
    let all: Vec<String> = corpus(4, 200).iter().map(|text| owned(text).join(" ")).collect();
    let bench = Bench::new(&[("a", lines(&all).as_bytes())]);
    let annotated = bench.run_ok("corpus --substrings 6 --annotate a");
    let cut = bench.run_ok("corpus --substrings 6 a");
    let mut kept = json_values(cut.as_bytes()).into_iter();
    let mut shortened = 0;
    for (document, original) in json_values(annotated.as_bytes()).iter().zip(&all) {
        assert_eq!(document["text"], *original);
        let note = &document["bloomline"];
        let mut rest = original.clone();
        let spans = note["spans"].as_array().unwrap();
        for span in spans.iter().rev() {
            assert_eq!(span[2], 1.0);
            rest.replace_range(span[0].as_u64().unwrap() as usize..span[1].as_u64().unwrap() as usize, "");
        }
        shortened += usize::from(!spans.is_empty());
        assert_eq!(note["duplicate"], rest.trim().is_empty());
        if note["duplicate"] == false {
            assert_eq!(kept.next().unwrap()["text"], rest);
        }
    }
    assert!(kept.next().is_none() && shortened > 50);
    // A second time, the notes are replaced.
    bench.write("noted", annotated.as_bytes());
    assert_eq!(bench.run_ok("corpus --substrings 6 --annotate noted"), annotated);
}

#[test]
fn lines_and_sentences_are_cut_as_a_whole() {
    let passage = "One two three. Four five six seven.\nEight nine ten.";
    let bench =
        Bench::new(&[("a", [line(0, passage), line(1, &format!("New {passage} End.\nLast"))].concat().as_bytes())]);
    let cut = |options: &str| texts(bench.run_ok(&format!("corpus --substrings 5{options} a")).as_bytes())[1].clone();
    assert_eq!(cut(""), "New End.\nLast");
    assert_eq!(cut(" --cut words"), "New End.\nLast");
    assert_eq!(cut(" --cut lines"), format!("New {passage} End.\nLast"));
    assert_eq!(cut(" --cut sentences"), "New One two three. End.\nLast");
    let lines = Bench::new(&[("a", [line(0, passage), line(1, &format!("New.\n{passage}\nEnd"))].concat().as_bytes())]);
    assert_eq!(texts(lines.run_ok("corpus --substrings 5 --cut lines a").as_bytes())[1], "New.\nEnd");
}

#[test]
fn words_are_compared_in_the_given_form() {
    let texts_of = |options: &str| {
        let input = [line(0, "It's an Éclair, he said: wow"), line(1, "b its an e\u{301}clair he said. c")].concat();
        let bench = Bench::new(&[("a", input.as_bytes())]);
        texts(bench.run_ok(&format!("corpus --substrings 5{options} a")).as_bytes())
    };
    assert_eq!(texts_of(" --normalize nfc,case,punctuation")[1], "b . c");
    assert_eq!(texts_of("")[1], "b its an e\u{301}clair he said. c");
}

#[cfg(feature = "parquet")]
#[test]
fn texts_of_tables_are_cut() {
    let all = corpus(5, 400);
    let rows: Vec<(String, i64, String)> =
        all.iter().enumerate().map(|(id, text)| (text.clone(), id as i64, String::new())).collect();
    let bench = Bench::new(&[("a.parquet", &table(&rows, 70, parquet::basic::Compression::SNAPPY))]);
    bench.run_ok("corpus --substrings 6 --column url a.parquet -o out.parquet");
    let rest = read_with_marks(bench.read("out.parquet")).into_iter().map(|(row, _)| (row.1 as usize, owned(&row.0)));
    let expected = model(&all).into_iter().enumerate().filter(|(_, words)| !words.is_empty());
    assert!(rest.eq(expected));
    bench.run_ok("corpus --substrings 6 --column url --annotate a.parquet -o noted.parquet");
    let notes = read_with_marks(bench.read("noted.parquet"));
    let removed = |note: &Option<String>| {
        serde_json::from_str::<serde_json::Value>(note.as_ref().unwrap()).unwrap()["duplicate"] == true
    };
    assert_eq!(
        notes.iter().filter(|(_, note)| removed(note)).count(),
        model(&all).iter().filter(|rest| rest.is_empty()).count()
    );
}

/// A run that is killed while it reads the inputs for the first time, or while it prints, starts again and prints the same.
#[cfg(unix)]
#[test]
fn a_killed_run_starts_again() {
    let all = corpus(6, 4000);
    let bench = Bench::new(&[("a", lines(&all).as_bytes())]);
    // The first reading waits for a pipe that nobody writes to.
    let fifo = bench.fifo("b");
    let mut first = bench.command("corpus --substrings 6 --output-dir out a b").spawn().unwrap();
    drop(File::options().write(true).open(&fifo).unwrap());
    signal(&first, "KILL");
    first.wait().unwrap();
    fs::remove_file(fifo).unwrap();
    // The last reading waits for a reader of its output.
    let mut last = bench.command("corpus --substrings 6 a").spawn().unwrap();
    last.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    signal(&last, "KILL");
    last.wait().unwrap();
    bench.run_ok("corpus --substrings 6 --force --output-dir out a");
    assert_modelled(&bench.read("out/a"), &all);
}

#[test]
fn an_input_that_changes_is_an_error() {
    let input = lines(&corpus(9, 4000));
    for earlier in ["", " --earlier earlier"] {
        let bench = Bench::new(&[("a", input.as_bytes()), ("earlier", b"")]);
        let mut child = bench.command(&format!("corpus --substrings 6{earlier} a")).spawn().unwrap();
        // The last reading waits for a reader of its output.
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        File::options().write(true).open(bench.path("a")).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert_contains_all(&expect_failure(&child.wait_with_output().unwrap()), &["an input changed"]);
    }
}

#[test]
fn files_are_replaced_as_in_one_run() {
    let all = corpus(8, 900);
    let [a, b, c] = [0, 300, 600].map(|start| lines_from(start, &all[start..start + 300]));
    let bench = Bench::new(&[]);
    fs::create_dir(bench.path("d")).unwrap();
    let write = || {
        bench.write("d/a", a.as_bytes());
        bench.write("d/b.gz", &gzip(b.as_bytes()));
        bench.write("d/c", c.as_bytes());
    };
    write();
    bench.run_ok("corpus --substrings 6 --in-place d");
    let replaced = [bench.read("d/a"), gunzip(&bench.read("d/b.gz")), bench.read("d/c")].concat();
    assert_modelled(&replaced, &all);
    assert_eq!(fs::read_dir(bench.path("d")).unwrap().count(), 3);

    // A run that ends after it has replaced the first file continues with the same command alone.
    write();
    fs::create_dir(bench.path("d/.bloomline-b.gz.part")).unwrap();
    let error = expect_failure(&bench.run("corpus --substrings 6 --in-place d"));
    assert_contains_all(&error, &["b.gz"]);
    assert!(bench.read("d/a") != a.as_bytes() && bench.read("d/c") == c.as_bytes());
    fs::remove_dir(bench.path("d/.bloomline-b.gz.part")).unwrap();
    for (other, part) in
        [("--substrings 7 --in-place d", "other options"), ("--substrings 6 --in-place d/a d/c", "other inputs")]
    {
        let error = bench.run_err(&format!("corpus {other}"));
        assert_contains_all(&error, &["cannot continue", part, ".bloomline-.part"]);
    }
    bench.run_ok("corpus --substrings 6 --in-place d");
    assert_eq!([bench.read("d/a"), gunzip(&bench.read("d/b.gz")), bench.read("d/c")].concat(), replaced);
    assert_eq!(fs::read_dir(bench.path("d")).unwrap().count(), 3);
}

/// Two runs in a folder would have the same file of decisions.
#[test]
fn one_run_at_a_time_replaces_files_of_a_folder() {
    let all = corpus(10, 300);
    let bench = Bench::new(&[]);
    let [a, b] = [&all[..150], &all[150..]];
    fs::create_dir(bench.path("d")).unwrap();
    bench.write("d/a", lines(a).as_bytes());
    bench.write("d/b", lines(b).as_bytes());
    #[cfg(unix)]
    let folder = File::open(bench.path("d")).unwrap();
    #[cfg(windows)]
    let folder = File::create(bench.path("d/.bloomline.lock")).unwrap();
    folder.lock().unwrap();
    let error = bench.run_err("corpus --substrings 6 --in-place d/b");
    assert_contains_all(&error, &["\"d\"", "another run is writing to this folder", "wait"]);
    assert!(bench.read("d/b") == lines(b).as_bytes());
    drop(folder);
    // One after the other, each run has decisions of its own.
    bench.run_ok("corpus --substrings 6 --in-place d/a");
    bench.run_ok("corpus --substrings 6 --in-place d/b");
    assert_modelled(&bench.read("d/a"), a);
    assert_modelled(&bench.read("d/b"), b);
    assert_eq!(fs::read_dir(bench.path("d")).unwrap().count(), 2);
}

#[test]
fn statistics_count_words() {
    let all = corpus(7, 300);
    let bench = Bench::new(&[("a", lines(&all).as_bytes())]);
    let figures = stats(&bench.run("corpus --substrings 6 --stats=json a"));
    let count = |texts: &[Vec<String>]| texts.iter().map(Vec::len).sum::<usize>();
    let words = all.iter().map(|text| owned(text).len()).sum::<usize>();
    let rest = model(&all);
    assert_eq!(number(&figures, "units") as usize, words);
    assert_eq!(number(&figures, "duplicate_units") as usize, words - count(&rest));
    assert_eq!(number(&figures, "dropped") as usize, rest.iter().filter(|words| words.is_empty()).count());
}

#[test]
fn options_that_have_no_effect_are_refused() {
    let bench = Bench::new(&[("a", b"")]);
    for (other, part) in [
        ("--state s", "earlier runs"),
        ("--near 0.8", "runs of words"),
        ("--ngram 5", "runs of words"),
        ("--count", "not documents"),
    ] {
        assert_contains_all(&bench.run_err(&format!("corpus --substrings 50 {other} a")), &["--substrings", part]);
    }
    assert_contains_all(&bench.run_err("corpus --substrings 0 a"), &["--substrings"]);
    assert_contains_all(&bench.run_err("corpus --cut lines a"), &["--cut", "--substrings"]);
    assert!(bloomline().args(["corpus", "--substrings", "50"]).output().unwrap().status.success());
}
