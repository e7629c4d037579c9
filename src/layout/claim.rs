//! Inserts of many writers into a block. A *claim* is an insert that returned true: of all inserts of a key, at most one does.

#[cfg(test)]
mod memory_model;

use crate::kernel::block::Pattern;
use crate::layout::storage::AtomicBlock;
use crate::sync::Ordering;

/// The ordering of an insert's loads. Acquire: a thread that reads a word completed by another thread's claim sees that
/// thread's earlier words complete before its own writes.
pub(crate) const SCAN_ORDERING: Ordering = Ordering::Acquire;
/// The ordering of its writes before the linearizing one. Relaxed would suffice, because the latter's Release covers
/// them. AcqRel costs the same on x86-64, and keeps each word readable as "complete" by itself.
pub(crate) const PRECEDING_ORDERING: Ordering = Ordering::AcqRel;
/// The ordering of the write to the linearizing word, which decides the claim. Release: a thread that reads this word
/// sees the words before it complete. Acquire: a thread that loses here sees the winner's words before it returns.
pub(crate) const LINEARIZING_ORDERING: Ordering = Ordering::AcqRel;

impl AtomicBlock {
    /// Sets the bits of the pattern, and returns true if this call claimed the key. See "Consistency".
    #[inline(always)]
    pub(crate) fn insert(&self, pattern: Pattern, b: usize) -> bool {
        let chosen = pattern.words_and_masks(b);
        // One bit for each word that lacks bits. All loads precede the first write, in any order.
        let mut missing = 0u32;
        for (lane, &(word, mask)) in chosen.iter().enumerate() {
            missing |= u32::from(self.0[word].load(SCAN_ORDERING) & mask != mask) << lane;
        }
        for (lane, &(word, mask)) in chosen.iter().enumerate() {
            match missing >> lane {
                // The last one that lacks bits: the linearizing word.
                1 => return self.0[word].fetch_or(mask, LINEARIZING_ORDERING) & mask != mask,
                rest if rest & 1 == 1 => _ = self.0[word].fetch_or(mask, PRECEDING_ORDERING),
                _ => {}
            }
        }
        false
    }

    /// Returns true if all bits of the pattern are set.
    #[inline(always)]
    pub(crate) fn contains(&self, pattern: Pattern, b: usize) -> bool {
        // Relaxed: by coherence, this load sees every insert that happened before it.
        let missing = |(word, mask): (usize, u64)| mask & !self.0[word].load(Ordering::Relaxed);
        pattern.words_and_masks(b).into_iter().fold(0, |bits, lane| bits | missing(lane)) == 0
    }
}
