//! What becomes of texts, beside a slow specification.

use bloomline::KeyHasher;
use bloomline::text::{Rules, Texts, words};

#[test]
fn words_are_tokens() {
    assert_eq!(words("a  b,c").collect::<Vec<_>>(), ["a", "b", ",", "c"]);
}

#[test]
fn paragraphs_begin_at_their_newline() {
    let mut texts = Texts::default();
    texts.push(&Rules::default(), &KeyHasher::new(0), b"\na\n\nb");
    let ranges: Vec<_> = texts.document(0).verdicts().map(|unit| unit.range).collect();
    assert_eq!(ranges, [0..0, 0..2, 2..3, 3..5]);
}
