//! From repeats to cuts.

use crate::form::{Form, FormScratch};
use crate::scan::PlacedToken;
use crate::tokens::words;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// The bytes beside a cut in which a word may join two remaining pieces.
const CONTEXT: usize = 64;

/// The places where cuts begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ends {
    /// Between words: exactly the words of repeats are cut.
    #[default]
    Words,
    /// At newlines: a line is cut if all its words are words of repeats.
    Lines,
    /// Between the sentences of UAX #29: a sentence is cut if all its words are words of repeats.
    Sentences,
}

/// A range of a text to cut.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CutSpan {
    /// The bytes to cut: words, what stands between them, and the white space on one side, so that the white space of
    /// the other side is left between the remaining words. The side with a newline is left.
    pub range: Range<usize>,
    /// True if a space has to take the place of the range, because the remaining words would become one.
    pub needs_space: bool,
    /// The number of words.
    pub words: usize,
}

/// Sets `covered[i]` to true if word i is in one of the windows of `length` words that are repeats.
pub(super) fn cover(repeats: &[bool], length: usize, covered: &mut [bool]) {
    let mut end = 0;
    for (start, _) in repeats.iter().enumerate().filter(|(_, repeat)| **repeat) {
        covered[end.max(start)..start + length].fill(true);
        end = start + length;
    }
}

/// Clears `covered` for the words of lines or sentences that are not covered completely.
pub(super) fn keep_incomplete(text: &str, words: &[PlacedToken], ends: Ends, covered: &mut [bool]) {
    let mut rest = (words, covered);
    let mut keep = |end: usize| {
        let (words, covered) = core::mem::take(&mut rest);
        let count = words.partition_point(|word| word.start < end);
        let (own, after) = covered.split_at_mut(count);
        if own.contains(&false) {
            own.fill(false);
        }
        rest = (&words[count..], after);
    };
    match ends {
        Ends::Words => {}
        Ends::Lines => {
            text.match_indices('\n').for_each(|(newline, _)| keep(newline));
            keep(usize::MAX);
        }
        Ends::Sentences => text.split_sentence_bound_indices().for_each(|(start, text)| keep(start + text.len())),
    }
}

/// Appends the cuts of the covered words.
pub(super) fn push(
    text: &str,
    words: &[PlacedToken],
    covered: &[bool],
    (form, scratch): (&Form, &mut FormScratch),
    cuts: &mut Vec<CutSpan>,
) {
    let before = cuts.len();
    let mut start = 0;
    for run in covered.chunk_by(|one, other| one == other) {
        let (mut first, mut end) = (start, start + run.len());
        start = end;
        if !run[0] {
            continue;
        }
        // Normalization may have made several words from the same bytes. They are cut together or kept.
        while first < end && first > 0 && words[first - 1].end > words[first].start {
            first += 1;
        }
        while first < end && words.get(end).is_some_and(|next| next.start < words[end - 1].end) {
            end -= 1;
        }
        if first < end {
            let (range, is_alone) = trimmed(text, words[first].start..words[end - 1].end);
            cuts.push(CutSpan { range, needs_space: is_alone, words: end - first });
        }
    }
    // A cut may follow another one after a few characters, so words are joined by the remaining text and not by the original.
    let (cuts, mut left, mut start) = (&mut cuts[before..], String::new(), 0);
    for i in 0..cuts.len() {
        let Range { start: cut, end } = cuts[i].range;
        left.push_str(&text[start..cut]);
        let next = cuts.get(i + 1).map_or(text.len(), |next| next.range.start);
        cuts[i].needs_space = cuts[i].needs_space && joins(&left, &text[end..next], form, scratch);
        if cuts[i].needs_space {
            left.push(' ');
        }
        start = end;
    }
}

/// Extends a range of words by the white space on one side. Returns true too if it has text without white space on both
/// sides.
fn trimmed(text: &str, range: Range<usize>) -> (Range<usize>, bool) {
    let Range { start, end } = range;
    let (before, after) = (&text[..start], &text[end..]);
    let (kept_before, kept_after) = (before.trim_end(), after.trim_start());
    let (space_before, space_after) = (&before[kept_before.len()..], &after[..after.len() - kept_after.len()]);
    let to_next_word = start..end + space_after.len();
    let from_last_word = kept_before.len()..end;
    if kept_before.is_empty() {
        return (to_next_word, false);
    }
    if kept_after.is_empty() {
        return (from_last_word, false);
    }
    match (space_before, space_after) {
        ("", _) | (_, "") => (range, space_before == space_after),
        _ if space_before.contains('\n') && !space_after.contains('\n') => (to_next_word, false),
        _ => (from_last_word, false),
    }
}

/// True if the words of both texts are not those of the two together.
fn joins(before: &str, after: &str, form: &Form, scratch: &mut FormScratch) -> bool {
    let boundary = |text: &str, near: usize| (near..=text.len()).find(|end| text.is_char_boundary(*end));
    let from = boundary(before, before.len().saturating_sub(CONTEXT)).unwrap_or(before.len());
    let to = boundary(after, after.len().min(CONTEXT)).unwrap_or(after.len());
    let (left, right) = (&before[from..], &after[..to]);
    let mut words_of = |text: &str| -> Vec<String> {
        let formed = form.for_words().apply_into(text.as_bytes(), scratch);
        words(&String::from_utf8_lossy(formed)).map(String::from).collect()
    };
    [words_of(left), words_of(right)].concat() != words_of(&[left, right].concat())
}
