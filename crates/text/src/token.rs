//! The hash of a token: one multiplication for the short ones.

use bloomline::KeyHasher;

/// The maximum number of bytes of a short token.
const MAX_SHORT: usize = 16;

/// Masks for the bytes of a short token, as two words, by its length.
const LENGTH_MASKS: [[u64; 2]; MAX_SHORT + 1] = {
    let mut masks = [[0; 2]; MAX_SHORT + 1];
    let mut length = 1;
    while length <= MAX_SHORT {
        let mask = u128::MAX >> (128 - 8 * length);
        masks[length] = [mask as u64, (mask >> 64) as u64];
        length += 1;
    }
    masks
};

/// A hasher of tokens for one filter.
#[derive(Clone, Copy)]
pub(crate) struct TokenHasher<'a> {
    hasher: &'a KeyHasher,
    secret1: u64,
    secret2: u64,
}

impl<'a> TokenHasher<'a> {
    pub(crate) fn new(hasher: &'a KeyHasher) -> Self {
        let [_, secret1, secret2, _] = hasher.secret();
        Self { hasher, secret1, secret2 }
    }

    /// Returns the hash of `text[start..end]`.
    #[inline(always)]
    pub(crate) fn hash_range(&self, text: &[u8], start: usize, end: usize) -> u64 {
        let length = end - start;
        if length > MAX_SHORT {
            return self.hash_long(&text[start..end]);
        }
        let bytes = load_16(text, start);
        let [low, high] = LENGTH_MASKS[length];
        KeyHasher::mix(bytes as u64 & low ^ self.secret1, (bytes >> 64) as u64 & high ^ self.secret2)
    }

    #[cold]
    fn hash_long(&self, token: &[u8]) -> u64 {
        self.hasher.bytes(token)
    }
}

/// Loads 16 bytes from `start` on. The bytes after the end of the text have any value.
#[inline(always)]
fn load_16(text: &[u8], start: usize) -> u128 {
    match text[start..].first_chunk() {
        Some(bytes) => u128::from_le_bytes(*bytes),
        None => load_tail(text, start),
    }
}

#[inline(never)]
fn load_tail(text: &[u8], start: usize) -> u128 {
    match text.last_chunk() {
        Some(bytes) => u128::from_le_bytes(*bytes) >> (8 * (start + MAX_SHORT - text.len())),
        None => {
            let mut bytes = [0; MAX_SHORT];
            bytes[..text.len()].copy_from_slice(text);
            u128::from_le_bytes(bytes) >> (8 * start)
        }
    }
}
