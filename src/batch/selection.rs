//! Batches that query only the rows of a bitmap, as query engines do.
//!
//! Each chunk of the rows is gathered and queried as a batch, and selected rows that were not found are removed.

use crate::batch::BATCH_CHUNK;

/// Rows that a word of a bitmap selects.
const BITS: usize = u64::BITS as usize;
// A chunk is a number of whole words.
const _: () = assert!(BATCH_CHUNK.is_multiple_of(BITS));

/// Keeps the bits of `bitmap` whose rows have hashes that `contains` finds, and returns how many are left.
#[track_caller]
pub(crate) fn prune_bitmap(
    rows: usize,
    bitmap: &mut [u64],
    hash: impl Fn(usize) -> u64,
    contains: impl Fn(&[u64], &mut [bool]) -> usize,
) -> usize {
    let needed = rows.div_ceil(BITS);
    assert!(bitmap.len() >= needed, "a batch of {rows} keys needs a bitmap of {needed} words, not {}", bitmap.len());
    // Arrow pads its buffers.
    let (bitmap, padding) = bitmap.split_at_mut(needed);
    padding.fill(0);
    if let Some(last) = bitmap.last_mut() {
        // 1 to 64 of them.
        *last &= u64::MAX >> (BITS * needed - rows);
    }
    let (mut hashes, mut found) = ([0; BATCH_CHUNK], [false; BATCH_CHUNK]);
    let mut count = 0;
    for (chunk, words) in bitmap.chunks_mut(BATCH_CHUNK / BITS).enumerate() {
        let mut len = 0;
        for (i, &word) in words.iter().enumerate() {
            let first = BATCH_CHUNK * chunk + BITS * i;
            let selected = word.count_ones() as usize;
            let slots = hashes[len..len + selected].iter_mut();
            match word {
                u64::MAX => slots.zip(first..).for_each(|(slot, row)| *slot = hash(row)),
                _ => slots.zip(set_bits(word)).for_each(|(slot, bit)| *slot = hash(first + bit)),
            }
            len += selected;
        }
        count += contains(&hashes[..len], &mut found[..len]);
        let mut answers = &found[..len];
        for word in words {
            let (ours, others) = answers.split_at(word.count_ones() as usize);
            *word = match <&[bool; BITS]>::try_from(ours) {
                Ok(all) => packed(all),
                Err(_) => {
                    ours.iter().zip(set_bits(*word)).fold(0, |word, (&found, bit)| word | u64::from(found) << bit)
                }
            };
            answers = others;
        }
    }
    count
}

/// Returns the indices of the set bits, from the lowest.
fn set_bits(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.checked_sub(1)?;
        Some(bit)
    })
}

/// Packs answers into bits, eight at a time: a multiplication moves the lowest bit of each byte into the highest byte.
fn packed(answers: &[bool; BITS]) -> u64 {
    let byte = |answers: &[bool; 8]| {
        (u64::from_le_bytes(answers.map(u8::from)).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    };
    u64::from_le_bytes(core::array::from_fn(|i| byte(&core::array::from_fn(|bit| answers[8 * i + bit]))))
}
