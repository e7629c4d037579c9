//! Peers that hash their keys take the hasher of their user. This one leaves as much as it can of keys that are hashed already.

use bloomcraft::hash::BloomHasher;
use std::hash::{Hash, Hasher};

/// One multiplication for each word, so that small numbers too become bits all over the word.
#[derive(Clone, Default)]
pub struct Prehashed(u64);

impl Hasher for Prehashed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, word: u64) {
        // An odd number, so that no two words become equal.
        self.0 = (self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The two numbers that probes are drawn from: the hash, and its halves exchanged.
impl BloomHasher for Prehashed {
    fn hash_item<T: Hash>(&self, item: &T) -> (u64, u64) {
        let mut hasher = Self::default();
        item.hash(&mut hasher);
        (hasher.0, hasher.0.rotate_left(32))
    }

    fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        let mut hasher = Self::default();
        hasher.write(bytes);
        hasher.0
    }

    fn name(&self) -> &'static str {
        "Prehashed"
    }
}
