//! The rules of other tools, as options: `corpus` removes the same text as the tools. tests/data/like documents how they were
//! run.

use crate::common::{bloomline, expect_success, json_values};
use crate::documents::texts;
use serde_json::Value;
use std::fs;

const DOCUMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/like/documents.jsonl");
const RESULTS: &str = include_str!("../data/like/results.jsonl");

/// The rules of each tool, as docs/CORPUS.md lists them.
const DCLM: &str = "";
const BFF: &str = "--min-ngram 5 --keep-empty";
const DOLMA: &str = "--ngram 0 --keep-empty";
const C4: &str = "--ngram 0 --normalize trim,lower";

/// The mode of each tool, its rules, and additional options.
const MODES: [(&str, &str, &str); 13] = [
    ("dclm-paragraph-20", DCLM, "--ngram 20 --min-ngram 20"),
    ("dclm-paragraph-13", DCLM, ""),
    ("dclm-paragraph-5-13-half", DCLM, "--min-ngram 5 --threshold 0.5"),
    ("dclm-document-20", DCLM, "--by document --ngram 20 --min-ngram 20"),
    ("dclm-document-13", DCLM, "--by document"),
    ("dclm-document-5-13-half", DCLM, "--by document --min-ngram 5 --threshold 0.5"),
    ("dclm-exact", DCLM, "--by document --ngram 0"),
    ("bff-paragraph", BFF, ""),
    ("bff-document", BFF, "--by document"),
    ("bff-whole-paragraph", BFF, "--ngram 1000000000"),
    ("dolma-paragraph", DOLMA, ""),
    ("dolma-document", DOLMA, "--by document"),
    ("c4-line", C4, ""),
];

/// The removed paragraphs, or `None` if the document is dropped. Blank paragraphs are ignored, because dolma and C4 remove
/// repeated ones, and `corpus` never does.
type Spans = Option<Vec<(usize, usize)>>;

fn cut(text: &str, dropped: bool, spans: &Value) -> Spans {
    let ends = |span: &Value| (span[0].as_u64().unwrap() as usize, span[1].as_u64().unwrap() as usize);
    let spans = spans.as_array().map_or(&[][..], |spans| spans).iter().map(ends);
    (!dropped).then(|| spans.filter(|&(start, end)| !text[start..end].trim().is_empty()).collect())
}

#[test]
fn results_match_other_tools() {
    let texts = texts(&fs::read(DOCUMENTS).unwrap());
    let results = json_values(RESULTS.as_bytes());
    assert_eq!(results.len(), MODES.len());
    for result in &results {
        let mode = result["mode"].as_str().unwrap();
        let (_, rules, options) = MODES.iter().find(|(known, ..)| *known == mode).unwrap();
        // The rate is so low that no false positive occurs.
        let mut command = bloomline();
        command.args(["corpus", "--annotate", "-n", "1000000", "-p", "1e-12", DOCUMENTS]);
        command.args(rules.split_whitespace().chain(options.split_whitespace()));
        let printed = json_values(&expect_success(command.output().unwrap()));
        let ours = printed.iter().zip(&texts).map(|(line, text)| {
            let note = &line["bloomline"];
            cut(text, note["duplicate"] == true, &note["spans"])
        });
        let theirs = result["cut"].as_array().unwrap();
        let theirs = theirs.iter().zip(&texts).map(|(spans, text)| cut(text, spans.is_null(), spans));
        let (ours, theirs): (Vec<Spans>, Vec<Spans>) = (ours.collect(), theirs.collect());
        assert_eq!((ours.len(), theirs.len()), (texts.len(), texts.len()), "{mode}");
        // Each mode removes some text and keeps some.
        assert!(
            theirs.iter().flatten().flatten().count() + theirs.iter().filter(|cut| cut.is_none()).count() > 10,
            "{mode}"
        );
        let wrong = (0..texts.len()).filter(|&i| ours[i] != theirs[i]);
        let shown: Vec<_> = wrong.map(|i| (i, &texts[i], &ours[i], &theirs[i])).take(5).collect();
        assert!(shown.is_empty(), "{mode}: {shown:#?}");
    }
}

#[test]
fn the_page_lists_the_rules() {
    let page = include_str!("../../../../docs/CORPUS.md");
    let (_, page) = page.split_once("\n## From other tools\n").unwrap();
    for rules in [BFF, DOLMA, C4] {
        assert!(page.contains(&format!("| `{rules}`")), "{rules}");
    }
}
