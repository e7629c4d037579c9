//! The cuts of repeated runs of words.

use crate::read::table::MEMBER;
use crate::run::lines::Edit;
use crate::seen::counts::UnitCounts;
use crate::steps::documents::DocumentBatch;
use crate::steps::documents::rule::DocumentRule;
use bloomline_text::substrings::{CutSpan, Rules};
use std::fmt::Write;
use std::ops::Range;

impl DocumentBatch {
    /// Cuts the words of [`repeats`](Self::repeats). Sets `kept[i]` to true if part of document i is kept, and adds the cuts in the
    /// documents to `edits`, in order. `chunk` has the documents, unless they are texts by themselves.
    pub fn cut_repeats(
        &mut self,
        rule: &DocumentRule,
        rules: &Rules,
        chunk: &[u8],
        kept: &mut [bool],
        edits: &mut Vec<Edit>,
    ) -> UnitCounts {
        let mut counts = UnitCounts::default();
        self.annotated = rule.annotate;
        let mut start = 0;
        for (i, kept) in kept.iter_mut().enumerate() {
            let place = &self.located[i];
            let text = &self.text[start..place.text];
            start = place.text;
            let repeats = &self.repeats[self.windows.windows_of(i)];
            let (windows, found) = (repeats.len(), repeats.iter().filter(|repeat| **repeat).count());
            let words = self.windows.words_of(i);
            let cuts = self.windows.cuts(i, rules, text, &self.repeats);
            let is_removed = is_blank(text, cuts) && !rule.keep_empty;
            let cut_words: usize = cuts.iter().map(|cut| cut.words).sum();
            let cut_bytes: usize = cuts.iter().map(|cut| cut.range.len() - usize::from(cut.needs_space)).sum();
            counts += &UnitCounts {
                units: words as u64,
                duplicates: cut_words as u64,
                shortened: u64::from(!cuts.is_empty() && !is_removed),
                grams: windows as u64,
                found: found as u64,
                bytes: text.len() as u64,
                removed: if is_removed { text.len() } else { cut_bytes } as u64,
                ..UnitCounts::default()
            };
            *kept = rule.annotate || !is_removed;
            if rule.annotate {
                edits.extend(place.old_notes.iter().map(|old| (old.clone(), String::new())));
                edits.push((place.note..place.note, note(cuts, windows, found, is_removed)));
            } else if !is_removed {
                // A text by itself is its string.
                let written = chunk.get(place.string.clone()).filter(|written| *written != text.as_bytes());
                let mut written = written.map(Unescaped::new);
                edits.extend(cuts.iter().map(|cut| {
                    let Range { start, end } = cut.range;
                    let at = |offset| written.as_mut().map_or(offset, |written| written.seek(offset));
                    let [start, end] = [start, end].map(at);
                    let space = if cut.needs_space { " " } else { "" };
                    (place.string.start + start..place.string.start + end, space.to_owned())
                }));
            }
        }
        counts
    }
}

/// True if only white space is left of a text.
fn is_blank(text: &str, cuts: &[CutSpan]) -> bool {
    let ends = cuts.iter().map(|cut| cut.range.start).chain([text.len()]);
    let starts = [0].into_iter().chain(cuts.iter().map(|cut| cut.range.end));
    starts.zip(ends).all(|(start, end)| text[start..end].trim().is_empty())
}

/// A string of JSON as it is written, and the offset of each byte of its value.
struct Unescaped<'a> {
    written: &'a [u8],
    /// The same place as written and in the value.
    at: usize,
    offset: usize,
}

impl<'a> Unescaped<'a> {
    fn new(written: &'a [u8]) -> Self {
        Self { written, at: 0, offset: 0 }
    }

    /// Returns the place as written of an offset in the value, which starts a character and is not before the last one.
    fn seek(&mut self, offset: usize) -> usize {
        while self.offset < offset {
            let rest = &self.written[self.at..];
            let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len()).min(offset - self.offset);
            self.at += plain;
            self.offset += plain;
            if self.offset < offset {
                let (written, value) = escape(&self.written[self.at..]);
                self.at += written;
                self.offset += value;
            }
        }
        self.at
    }
}

/// Returns the lengths of the escape at the start of a valid string, as written and in UTF-8.
fn escape(written: &[u8]) -> (usize, usize) {
    if written[1] != b'u' {
        return (2, 1);
    }
    let digits = str::from_utf8(&written[2..6]).unwrap_or_default();
    match u16::from_str_radix(digits, 16).unwrap_or_default() {
        0..0x80 => (6, 1),
        0x80..0x800 => (6, 2),
        // Two escapes are one character.
        0xD800..0xE000 => (12, 4),
        _ => (6, 3),
    }
}

/// Returns the member that is added at the end of an object.
fn note(cuts: &[CutSpan], windows: usize, found: usize, is_removed: bool) -> String {
    let mut note = format!(r#","{MEMBER}":{{"duplicate":{is_removed},"grams":{windows},"found":{found},"spans":["#);
    for (i, cut) in cuts.iter().enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(note, "{comma}[{},{},1.0000]", cut.range.start, cut.range.end).expect("memory takes all");
    }
    note + "]}"
}
