//! Repeated substrings against a plain model: the set of all windows of words, in reading order.

use bloomline::{BloomFilter, KeyHasher};
use bloomline_text::Form;
use bloomline_text::substrings::{self, CutSpan, Ends, Repeats, Rules, Windows};
use bloomline_text::words;
use proptest::prelude::*;
use std::collections::HashSet;

/// Returns true for each word of each text that is in a window that occurred before.
fn covered(texts: &[Vec<String>], length: usize) -> Vec<Vec<bool>> {
    let mut seen = HashSet::new();
    let cover = |words: &Vec<String>| {
        let mut covered = vec![false; words.len()];
        let windows: Vec<Vec<String>> = words.windows(length).map(<[String]>::to_vec).collect();
        for (start, window) in windows.iter().enumerate() {
            // Those that ended before.
            seen.extend(start.checked_sub(length).map(|ended| windows[ended].clone()));
            if seen.contains(window) {
                covered[start..start + length].fill(true);
            }
        }
        seen.extend(windows);
        covered
    };
    texts.iter().map(cover).collect()
}

/// Returns the cuts in each text, found with filters of `bits` bits, in `parts` readings, in batches of `batch` texts.
fn cuts(texts: &[String], rules: &Rules, bits: usize, parts: u64, batch: usize) -> Vec<Vec<CutSpan>> {
    let filter = || BloomFilter::builder().memory(bits.div_ceil(512) * 64).probes(4).build().unwrap();
    let (mut seen, mut candidates) = (filter(), filter());
    let hasher = KeyHasher::new(0);
    let batches: Vec<Windows> = texts
        .chunks(batch)
        .map(|texts| {
            let mut windows = Windows::default();
            texts.iter().for_each(|text| windows.push(rules, &hasher, text));
            windows
        })
        .collect();
    for windows in &batches {
        substrings::add(windows, &mut seen, &mut candidates).unwrap();
    }
    let mut found: Vec<Vec<bool>> = batches.iter().map(|windows| vec![false; windows.fingerprints().len()]).collect();
    for part in 0..parts {
        let mut repeats = Repeats::new(10, part, parts);
        for (windows, found) in batches.iter().zip(&mut found) {
            let mut is_candidate = Vec::new();
            substrings::look_up(windows, &mut candidates, &mut is_candidate).unwrap();
            for i in 0..windows.len() {
                let own = windows.windows_of(i);
                repeats.decide(rules.length, &windows.fingerprints()[own.clone()], &mut is_candidate[own]);
            }
            found.iter_mut().zip(is_candidate).for_each(|(found, in_part)| *found |= in_part);
        }
    }
    let in_batch = |(i, text): (usize, &String)| {
        let mut windows = Windows::default();
        let first = i / batch * batch;
        texts[first..(first + batch).min(texts.len())].iter().for_each(|text| windows.push(rules, &hasher, text));
        windows.cuts(i % batch, rules, text, &found[i / batch]).to_vec()
    };
    texts.iter().enumerate().map(in_batch).collect()
}

/// Returns what remains of a text. Checks that cuts are in order.
fn rest(text: &str, cuts: &[CutSpan]) -> String {
    let mut rest = String::new();
    let mut start = 0;
    for cut in cuts {
        assert!(start <= cut.range.start && cut.range.start < cut.range.end, "{cuts:?}");
        rest += &text[start..cut.range.start];
        if cut.needs_space {
            rest.push(' ');
        }
        start = cut.range.end;
    }
    rest + &text[start..]
}

fn owned(text: &str) -> Vec<String> {
    words(text).map(str::to_owned).collect()
}

/// Texts of few words in several scripts, with and without white space between them.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let word = prop::sample::select(
        &[
            "a ",
            "b ",
            "c",
            "d\n",
            "a. ",
            ". ",
            ".b ",
            "é ",
            "'",
            "3",
            ",",
            "中",
            "文",
            "ไ",
            "ท",
            "カ",
            "한국 ",
            "\n\n",
            "🇩🇪",
            "👩‍🚀 ",
        ][..],
    );
    let text = prop_oneof![
        prop::collection::vec(word, 0..60).prop_map(|words| words.concat()),
        (prop::sample::select(&["a ", "a b ", "ab", "中", "a\n"][..]), 0..40usize).prop_map(|(word, n)| word.repeat(n)),
        prop::collection::vec(prop::sample::select(&["a ", "b ", "中"][..]), 0..60).prop_map(|words| words.concat()),
    ];
    prop::collection::vec(text, 0..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn words_are_cut_as_by_the_set_of_all_windows(
        texts in texts(),
        length in 1..8usize,
        bits in prop::sample::select(&[512_usize, 1 << 16][..]),
        parts in 1..4u64,
        batch in 1..4usize,
    ) {
        let rules = Rules::new(length);
        let words: Vec<Vec<String>> = texts.iter().map(|text| owned(text)).collect();
        let covered = covered(&words, length);
        for (i, cuts) in cuts(&texts, &rules, bits, parts, batch).iter().enumerate() {
            let kept: Vec<&String> = words[i].iter().zip(&covered[i]).filter(|(_, cut)| !**cut).map(|(w, _)| w).collect();
            let left = owned(&rest(&texts[i], cuts));
            prop_assert_eq!(left.iter().collect::<Vec<_>>(), kept, "{:?} {:?}", texts[i], cuts);
            let count: usize = cuts.iter().map(|cut| cut.words).sum();
            prop_assert_eq!(count, covered[i].iter().filter(|cut| **cut).count());
        }
    }

    /// A line stays unless it has words and all of them are words of repeats.
    #[test]
    fn whole_lines_are_cut(texts in texts(), length in 1..5usize) {
        let mut rules = Rules::new(length);
        rules.ends = Ends::Lines;
        let words: Vec<Vec<String>> = texts.iter().map(|text| owned(text)).collect();
        let covered = covered(&words, length);
        for (i, cuts) in cuts(&texts, &rules, 512, 1, 2).iter().enumerate() {
            let mut covered = covered[i].iter();
            let is_kept = |line: &&str| {
                let own: Vec<bool> = covered.by_ref().take(words_of(line)).copied().collect();
                own.contains(&false)
            };
            let kept: Vec<&str> = texts[i].split('\n').filter(is_kept).map(str::trim).collect();
            let rest = rest(&texts[i], cuts);
            let lines: Vec<&str> = rest.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(lines, kept, "{:?} {:?}", texts[i], cuts);
        }
    }
}

fn words_of(text: &str) -> usize {
    words(text).count()
}

#[test]
fn whole_sentences_are_cut() {
    let texts = ["One two. Three four. Five six.", "Two. Three four. Five! One two. Three. four"].map(str::to_owned);
    let mut rules = Rules::new(3);
    rules.ends = Ends::Sentences;
    let rests = |rules: &Rules| -> Vec<String> {
        cuts(&texts, rules, 512, 1, 1).iter().zip(&texts).map(|(cuts, text)| rest(text, cuts)).collect()
    };
    assert_eq!(rests(&rules)[1], "Two. Five! Three. four");
    rules.ends = Ends::Words;
    assert_eq!(rests(&rules)[1], "Two! . four");
}

#[test]
fn the_first_copy_of_a_repeated_word_has_the_length_of_a_window() {
    let texts = ["a ".repeat(1000)];
    let cuts = cuts(&texts, &Rules::new(50), 512, 1, 1);
    assert_eq!(rest(&texts[0], &cuts[0]), "a ".repeat(50));
}

#[test]
fn white_space_stays_on_the_side_with_a_newline() {
    // The first text has the words that are cut from the others.
    for (text, expected) in [
        ("a\nx y z b", "a\nb"),
        ("a x y z\nb", "a\nb"),
        ("a  x y z b", "a b"),
        ("x y z\nb", "b"),
        ("a\nx y z\n", "a\n"),
        ("a(x y z)b", "a()b"),
        ("中x y z文", "中文"),
        ("\nx y z\n", "\n"),
    ] {
        let texts = ["x y z".to_owned(), text.to_owned()];
        let cuts = cuts(&texts, &Rules::new(3), 512, 1, 1);
        assert_eq!(rest(text, &cuts[1]), expected, "{text:?}");
    }
    // "." would join "a" and "b".
    let texts = [", ;", "a, ;.b c"].map(str::to_owned);
    assert_eq!(rest(&texts[1], &cuts(&texts, &Rules::new(2), 512, 1, 1)[1]), "a .b c");
}

#[cfg(feature = "forms")]
mod forms {
    use super::*;

    /// Returns all forms of words.
    fn forms() -> impl Strategy<Value = Form> {
        prop::array::uniform7(any::<bool>()).prop_map(|on| {
            let mut form = Form::default();
            [form.nfc, form.nfkc, form.case, form.digits, form.punctuation, form.symbols, form.ignorable] = on;
            form
        })
    }

    fn texts() -> impl Strategy<Value = Vec<String>> {
        let word = prop::sample::select(
            &[
                "É ",
                "e\u{301} ",
                "É",
                "½ ",
                "ﬁ",
                "it's ",
                "its ",
                "a—b ",
                "a b ",
                "\u{AD}",
                "ｶ\u{FF9E}",
                "7 ",
                "٣ ",
                "SS ",
                "ß ",
                "中",
                "ำ",
                ", ",
                "\u{301}",
                "\u{323}",
                "\n",
                "Ａ ",
            ][..],
        );
        prop::collection::vec(prop::collection::vec(word, 0..30).prop_map(|words| words.concat()), 0..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// Words that come from the same bytes are cut together or kept. Apart from these, the words of the form are cut as those
        /// of a text.
        #[test]
        fn words_in_a_form_are_cut(texts in texts(), form in forms(), length in 1..5usize) {
            let mut rules = Rules::new(length);
            rules.form = form;
            let words: Vec<Vec<String>> = texts.iter().map(|text| owned(&form.apply(text))).collect();
            let covered = covered(&words, length);
            for (i, cuts) in cuts(&texts, &rules, 512, 2, 2).iter().enumerate() {
                let rest = rest(&texts[i], cuts);
                // A combining mark at the start of a word joins the spaces before it.
                let left = owned(&form.apply(&rest));
                let left: Vec<&str> = left.iter().map(|word| word.trim()).collect();
                let kept = words[i].iter().zip(&covered[i]).filter(|(_, cut)| !**cut).map(|(word, _)| word.trim());
                let count: usize = cuts.iter().map(|cut| cut.words).sum();
                let all = covered[i].iter().filter(|cut| **cut).count();
                prop_assert!(count <= all);
                if count == all {
                    prop_assert_eq!(left, kept.collect::<Vec<_>>(), "{:?} {:?}", texts[i], cuts);
                }
            }
        }
    }
}
