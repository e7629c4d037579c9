//! `corpus --sample`, the sample that `-m` chooses, and the sample that a state records.

use crate::common::{Bench, assert_contains_all, expect_success, json_values, number, stats, text};
use crate::documents::{line, texts};
use std::fmt::Write;

/// Returns a paragraph of `words` words, all of them different from those of other numbers.
fn paragraph(number: usize, words: usize) -> String {
    (0..words).map(|i| format!("w{}", number * 1000 + i)).collect::<Vec<_>>().join(" ")
}

/// Returns documents of eight paragraphs each, of 14 to 74 words.
fn documents(numbers: std::ops::Range<usize>) -> String {
    numbers.fold(String::new(), |mut lines, number| {
        let paragraphs: Vec<String> = (0..8).map(|i| paragraph(8 * number + i, 14 + 60 * (i % 2))).collect();
        write!(lines, "{}", line(number, &paragraphs.join("\n"))).unwrap();
        lines
    })
}

/// Copies are removed as with all grams, and texts that were not seen are kept, whatever the unit, the threshold and the output.
#[test]
fn sampled_grams_decide_copies_and_new_texts_alike() {
    let mixed = format!("{}\n{}\n{}", paragraph(0, 14), paragraph(998, 74), paragraph(999, 20));
    let bench = Bench::new(&[
        ("in", documents(0..40).as_bytes()),
        ("again", [documents(20..60), line(1, &mixed)].concat().as_bytes()),
    ]);
    // At this rate no gram is a false positive.
    let run = |options: &str| bench.run_ok(&format!("corpus -p 1e-9 {options}in again"));
    for options in
        ["", "--by document ", "--threshold 0.5 ", "--drop-document ", "--drop-document --threshold 0.3 ", "--ngram 5 "]
    {
        let all = run(options);
        for sample in ["1", "2", "7", "64", "65536"] {
            assert!(run(&format!("{options}--sample {sample} ")) == all, "{options} {sample}");
        }
    }
}

/// The rows of a table are sampled as lines are: their paragraphs, the sample that a state records, and the one that -m chooses.
#[cfg(feature = "parquet")]
#[test]
fn rows_of_tables_are_sampled_like_lines() {
    let lines = [documents(0..100), documents(50..150)].concat();
    let rows: Vec<_> = texts(lines.as_bytes()).into_iter().map(|text| (text, 0, String::new())).collect();
    let table = crate::parquet::table(&rows, 30, parquet::basic::Compression::SNAPPY);
    let bench = Bench::new(&[("a.parquet", &table[..]), ("a.jsonl", lines.as_bytes())]);
    let kept = || -> Vec<String> {
        crate::parquet::read_with_marks(bench.read("out.parquet")).into_iter().map(|((text, ..), _)| text).collect()
    };
    for options in ["", "--by document ", "--drop-document "] {
        for sample in ["7", "65536"] {
            let options = format!("-p 1e-9 {options}--sample {sample}");
            let output =
                bench.run(&format!("corpus --stats=json {options} --state s --column url -o out.parquet a.parquet"));
            let of_lines = bench.run(&format!("corpus --stats=json {options} a.jsonl"));
            assert_eq!(kept(), texts(&of_lines.stdout), "{options}");
            let [of_table, of_lines] = [&output, &of_lines].map(stats);
            for name in ["sample", "grams", "found"] {
                assert_eq!(of_table[name], of_lines[name], "{options} {name}");
            }
            // The state of a table continues with lines.
            assert_eq!(bench.run_ok(&format!("corpus -q --frozen {} --state s a.jsonl", &options[8..])), "");
            ["s", "out.parquet"].iter().for_each(|file| std::fs::remove_file(bench.path(file)).unwrap());
        }
    }
    let output = bench.run("corpus --stats=json -m 12000 --column url -o out.parquet a.parquet");
    let figures = stats(&output);
    assert!(number(&figures, "sample") > 1.0 && number(&figures, "memory_bytes") <= 12_000.0 * 1.01, "{figures}");
    assert!(text(&output.stderr).contains("one of "));
}

/// The statistics and the annotations count the compared grams. A unit of two grams is compared by both.
#[test]
fn statistics_count_sampled_grams() {
    let lines = [line(0, &paragraph(0, 212)), line(1, &paragraph(1, 14)), line(2, &paragraph(0, 212))].concat();
    let bench = Bench::new(&[("in", lines.as_bytes())]);
    let output = bench.run("corpus --annotate --sample 65536 --stats=json in");
    let figures = stats(&output);
    // One of each half. Of 200 grams, another is sampled with a probability of 0.003, for this seed always or never.
    assert_eq!((figures["sample"].as_u64(), figures["grams"].as_u64()), (Some(65536), Some(6)), "{figures}");
    let notes = json_values(&output.stdout);
    let found: Vec<_> = notes.iter().map(|note| (&note["bloomline"]["grams"], &note["bloomline"]["found"])).collect();
    assert_eq!(found, [(&2.into(), &0.into()), (&2.into(), &0.into()), (&2.into(), &2.into())]);
    let output = bench.run("corpus --sample 16 --stats in");
    assert!(text(&output.stderr).contains("1 of 16 grams"));
    assert_eq!(number(&stats(&bench.run("corpus --stats=json in")), "sample"), 1.0);
}

/// A state continues with its own sample or a coarser one, which it records, and refuses a finer one.
#[test]
fn states_continue_with_the_same_or_a_coarser_sample() {
    let bench = Bench::new(&[("a", documents(0..30).as_bytes()), ("b", documents(10..40).as_bytes())]);
    let name = |state: &str| bench.json(&format!("info --json {state}"))["key_name"].as_str().unwrap().to_owned();
    let new = "corpus -p 1e-9 --quiet";
    let expected = documents(30..40);
    // A state that grows, and one of a fixed size.
    for (state, size) in [("grown", ""), ("fixed", "-n 1M --when-full warn ")] {
        assert_eq!(bench.run_ok(&format!("{new} {size}--sample 4 --state {state} a")), documents(0..30));
        assert_eq!(name(state), "13-grams of words, 1 of 4");
        let saved = bench.read(state);
        for sample in [1, 3] {
            let message = bench.run_err(&format!("{new} --sample {sample} --state {state} -o out b"));
            assert_contains_all(
                &message,
                &[state, "one of 4 grams", &format!("--sample {sample}"), "leave out --sample"],
            );
            bench.run_err(&format!("corpus --sample {sample} --frozen --state {state} -o out b"));
        }
        assert!(!bench.path("out").exists() && bench.read(state) == saved);
        for options in ["", "--sample 4 ", "--sample 6 "] {
            assert_eq!(bench.run_ok(&format!("corpus --frozen {options}--state {state} b")), expected);
        }
        assert!(bench.read(state) == saved);
        assert_eq!(bench.run_ok(&format!("{new} --state {state} b")), expected);
        assert_eq!(name(state), "13-grams of words, 1 of 4");
        // Texts that were inserted with all their sampled grams are also found by fewer.
        assert_eq!(bench.run_ok(&format!("{new} --sample 16 --state {state} a b")), "");
        assert_eq!(name(state), "13-grams of words, 1 of 16");
        assert_eq!(bench.run_ok(&format!("{new} --sample 16 --state {state} a b")), "");
        bench.run_err(&format!("{new} --sample 4 --state {state} b"));
    }
    // All grams are the finest sample, and another kind of grams is another kind of keys.
    bench.run_ok(&format!("{new} --state all a"));
    assert_eq!(bench.run_ok(&format!("{new} --sample 32 --state all b")), expected);
    assert_eq!(name("all"), "13-grams of words, 1 of 32");
    for options in ["--ngram 8", "--ngram 0", "--near 0.8", "--normalize case"] {
        assert!(bench.run_err(&format!("{new} {options} --state all b")).contains("13-grams of words, 1 of 32"));
    }
}

/// With -m, the smallest sample that fits is chosen and recorded. Where it is not for grams, the memory is refused.
#[test]
fn memory_chooses_the_sample() {
    let bench = Bench::new(&[("a", documents(0..400).as_bytes()), ("b", documents(400..500).as_bytes())]);
    let run = |options: &str| bench.run(&format!("corpus --stats=json {options} a"));
    let sample = |options: &str| {
        let output = run(options);
        let figures = stats(&output);
        assert!(number(&figures, "memory_bytes") <= 40_000.0 * 1.01, "{figures}");
        (number(&figures, "sample"), text(&output.stderr), output.stdout)
    };
    // 102,400 grams: half of the 3200 paragraphs have two, and half have 62.
    let (chosen, message, kept) = sample("-m 40000");
    assert!(chosen > 1.0, "{chosen}");
    assert_contains_all(
        &message,
        &[&format!("one of {chosen} grams"), "39.06 KiB", "at a false-positive rate of 0.01", "--sample 1"],
    );
    // A new paragraph is removed by mistake with a probability of 1e-4 or less: more than 10 have one of 1e-14.
    let missing = 8 * 400 - texts(&kept).iter().map(|text| text.lines().count()).sum::<usize>();
    assert!(missing <= 10, "{missing}");
    // Twice the memory takes a finer sample, or the same.
    let finer = number(&stats(&run("-m 80000")), "sample");
    assert!(finer < chosen && number(&stats(&run("-m 1M")), "sample") == 1.0);
    // A rate is kept, too, unless the filter may grow.
    assert!(sample("-m 40000 -p 0.1").0 < chosen);
    assert_eq!(number(&stats(&run("-m 40000 --when-full grow")), "sample"), 1.0);
    assert!(!text(&run("-m 40000 --quiet").stderr).contains("one of"));
    for options in
        ["-m 40000 --sample 1", "-m 40000 --sample 2", "-m 40000 --by document --sample 1", "-m 4000 --ngram 0"]
    {
        assert_contains_all(&bench.run_err(&format!("corpus {options} a")), &["is too small for the", "of the inputs"]);
    }
    // Two grams of each paragraph are too many for any sample.
    assert_contains_all(&bench.run_err("corpus -m 2000 a"), &["too small", "1.95 KiB"]);
    // A state records the choice, and the same command is complete, or continues with it.
    let with_state = "corpus -m 80000 --quiet --state s --resume -o out";
    expect_success(bench.run(&format!("{with_state} a")));
    let name = bench.json("info --json s")["key_name"].clone();
    assert!(name.as_str().unwrap().starts_with("13-grams of words, 1 of "), "{name}");
    assert!(text(&bench.run(&with_state.replace("--quiet", "a")).stderr).contains("already complete"));
    expect_success(bench.run("corpus -m 80000 --quiet --state s -o more b"));
    assert_eq!(bench.json("info --json s")["key_name"], name);
    assert_eq!(bench.run_ok("corpus --frozen --state s a"), "");
}

#[test]
fn samples_are_refused_where_grams_are_not_sampled() {
    let bench = Bench::new(&[("a", documents(0..1).as_bytes())]);
    for (options, reason) in [
        ("--against a", "each gram of the tests is looked for"),
        ("--near 0.8", "it compares whole documents by 5-grams"),
        ("--ngram 0", "--sample is for grams"),
        ("--by document --ngram 0 --keep first", "--sample is for grams"),
    ] {
        assert_contains_all(&bench.run_err(&format!("corpus --sample 16 {options} a")), &["--sample", reason]);
    }
    for sample in ["0", "65537", "x", "-1"] {
        assert_contains_all(&bench.run_err(&format!("corpus --sample={sample} a")), &["--sample", sample]);
    }
}

/// The plan of a text has the sample that the same memory gives a run.
#[test]
fn plans_of_texts_list_samples() {
    let bench = Bench::new(&[]);
    let rows = bench.json("plan --json --text 12T -m 128G");
    let rows = rows.as_array().unwrap();
    // 12 TB at 6 bytes a gram, 10.1 bits a gram, and half of the grams in the next sample, or more.
    assert!(
        (number(&rows[0], "keys") / 2e12 - 1.0).abs() < 1e-9
            && (number(&rows[0], "memory_bytes") / 2.53e12 - 1.0).abs() < 0.02
    );
    assert!(rows.windows(2).all(|pair| number(&pair[0], "sample") * 2.0 == number(&pair[1], "sample")));
    assert!(rows.windows(2).all(|pair| (1.0..=2.0).contains(&(number(&pair[0], "keys") / number(&pair[1], "keys")))));
    let (last, room) = (&rows[rows.len() - 1], f64::from(1 << 7) * f64::from(1 << 30));
    assert!(number(last, "memory_bytes") <= room && number(&rows[rows.len() - 2], "memory_bytes") > room);
    let text = bench.run_ok("plan --text 12T -m 128G");
    let end = format!("12.0 T bytes of text: 2.0 T grams; in 128.00 GiB at 0.0100: one of {}", number(last, "sample"));
    assert_eq!(text.lines().last(), Some(&*end));
    assert_eq!(text.lines().count(), rows.len() + 2);
    // Without a memory, the samples up to one of 64 are listed.
    assert_eq!(bench.json("plan --json --text 1G -p 1e-4").as_array().unwrap().len(), 7);
    assert_contains_all(
        &bench.run_err("plan --text 12T -m 1G"),
        &["1.00 GiB", "too small", "at least two", "more memory"],
    );
    assert_contains_all(
        &bench.run_err("plan --text 12T -n 5"),
        &["--text", "--expected-keys", "both give the number of keys"],
    );
}
