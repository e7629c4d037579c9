//! The comparison of a phrase with as many words of a text. One run of words may differ.

/// The words at both ends of a phrase that equal those of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Equal {
    pub(super) prefix: usize,
    /// Zero if all words are equal.
    pub(super) suffix: usize,
}

/// Returns the maximum number of words of a phrase that may differ: an eighth of `length`, rounded up.
fn max_differing(length: usize) -> usize {
    length.div_ceil(8)
}

/// Returns the length of the seeds at both ends of a phrase, at most four words. At least one seed is equal: if one run
/// differs, the longer of the two equal parts has half of the other words.
pub(super) fn seed(phrase: usize) -> usize {
    (phrase - max_differing(phrase)).div_ceil(2).clamp(1, 4)
}

/// Compares a phrase with as many words. Returns `None` unless all are equal, or all but one run, which has neither the
/// first nor the last word.
pub(super) fn compare(phrase: &[u64], words: &[u64]) -> Option<Equal> {
    let prefix = phrase.iter().zip(words).take_while(|(a, b)| a == b).count();
    let after = phrase.len() - prefix;
    if after == 0 {
        return Some(Equal { prefix, suffix: 0 });
    }
    let suffix = phrase.iter().zip(words).rev().take_while(|(a, b)| a == b).count();
    (prefix > 0 && suffix > 0 && after - suffix <= max_differing(phrase.len())).then_some(Equal { prefix, suffix })
}
