//! `KeyHasher`: hashes bytes to 64 bits by wyhash, with a secret of the filter's own.

/// Hashes keys for one filter: [wyhash] (final version 3) with a secret made from the filter's seed.
///
/// The result depends only on the seed and the bytes: it is the same on every platform, in every process and in every version
/// of this crate. The secret is never wyhash's public default, for which anyone can construct collisions.
///
/// # Examples
/// ```
/// use bloomline::KeyHasher;
/// let hasher = KeyHasher::new(7);
/// assert_eq!(hasher.bytes(b"key"), KeyHasher::new(7).bytes(b"key"));
/// assert_ne!(hasher.bytes(b"key"), KeyHasher::new(8).bytes(b"key"));
/// ```
///
/// [wyhash]: https://github.com/wangyi-fudan/wyhash
#[derive(Clone)]
pub struct KeyHasher {
    seed: u64,
    secret: [u64; 4],
}

impl KeyHasher {
    /// Creates a hasher for `seed`. It searches for a secret, which takes as long as hashing some thousand short keys: 8 µs
    /// in the median of 2000 seeds, and 2 to 70 µs among them (on a core of an Intel Xeon). So make one and keep it. A
    /// filter keeps [its own](crate::BloomFilter::hasher).
    ///
    /// ```
    /// use bloomline::{BloomFilter, Key};
    /// let mut seen = BloomFilter::new(1000, 0.01)?;
    /// let hash = "key".hash_with(seen.hasher()); // not with a new one for each key
    /// assert!(seen.insert_hash(hash) && seen.contains("key"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn new(seed: u64) -> Self {
        Self { seed, secret: make_secret(seed) }
    }

    /// Returns the seed that the hasher was made from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the hash of a byte string. O(length), about 16 bytes a nanosecond.
    #[inline]
    pub fn bytes(&self, bytes: &[u8]) -> u64 {
        let length = bytes.len();
        let (a, b) = if length > 16 {
            return self.long(bytes);
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
            match length {
                16 => (first << 32 | last & 0xFFFF_FFFF, last >> 32 << 32 | first >> 32),
                _ => (first.rotate_left(32), last),
            }
        } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
            let twice = |half| u64::from(u32::from_le_bytes(half)) * 0x1_0000_0001;
            (twice(*first), twice(*last))
        } else if let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) {
            (u64::from(first) << 16 | u64::from(bytes[length / 2]) << 8 | u64::from(last), 0)
        } else {
            (0, 0)
        };
        self.finish(a, b, length as u64)
    }

    /// Returns the hash of more than 16 bytes.
    fn long(&self, bytes: &[u8]) -> u64 {
        let [secret0, secret1, secret2, secret3] = self.secret;
        let fold = |pair: &[u8; 16], secret, seed| {
            let (pair, _) = pair.as_chunks();
            KeyHasher::mix(u64::from_le_bytes(pair[0]) ^ secret, u64::from_le_bytes(pair[1]) ^ seed)
        };
        let (mut seed, mut rest) = (self.seed ^ secret0, bytes);
        let (mut second, mut third) = (seed, seed);
        while let Some((block, after)) = rest.split_first_chunk::<48>().filter(|(_, after)| !after.is_empty()) {
            let (pairs, _) = block.as_chunks();
            seed = fold(&pairs[0], secret1, seed);
            second = fold(&pairs[1], secret2, second);
            third = fold(&pairs[2], secret3, third);
            rest = after;
        }
        // They cancel out if there was no block.
        seed ^= second ^ third;
        while let Some((pair, after)) = rest.split_first_chunk().filter(|(_, after)| !after.is_empty()) {
            seed = fold(pair, secret1, seed);
            rest = after;
        }
        let last = bytes.last_chunk().expect("it is longer than 16 bytes");
        KeyHasher::mix(secret1 ^ bytes.len() as u64, fold(last, secret1, seed))
    }

    /// Combines two hashes into one, for keys of several parts: the hash of their 16 bytes, so the order counts.
    ///
    /// ```
    /// let hasher = bloomline::KeyHasher::new(0);
    /// let (a, b) = (hasher.bytes(b"a"), hasher.bytes(b"b"));
    /// assert_ne!(hasher.combine(a, b), hasher.combine(b, a));
    /// ```
    #[inline]
    pub fn combine(&self, first: u64, second: u64) -> u64 {
        self.u128(u128::from(second) << 64 | u128::from(first))
    }

    /// Returns wyhash's secret for the seed, for hash functions of your own, together with [`mix`](Self::mix): four odd
    /// words with 32 bits set.
    ///
    /// ```
    /// let secret = bloomline::KeyHasher::new(7).secret();
    /// assert!(secret.iter().all(|word| word % 2 == 1 && word.count_ones() == 32));
    /// ```
    #[inline]
    pub fn secret(&self) -> [u64; 4] {
        self.secret
    }

    /// Computes wyhash's step: the product in 128 bits, and the XOR of its halves. Every bit of the result depends on
    /// every bit of both numbers, unless one of them is 0: so add a word of the [secret](Self::secret) first.
    ///
    /// ```
    /// use bloomline::KeyHasher;
    /// let [secret, other, ..] = KeyHasher::new(7).secret();
    /// let hash = |a: u64, b: u64| KeyHasher::mix(a ^ secret, b ^ other);
    /// assert_ne!(hash(1, 2), hash(2, 1));
    /// assert_eq!(KeyHasher::mix(1 << 63, 6), 3); // 3 · 2^64
    /// ```
    #[inline(always)]
    pub fn mix(a: u64, b: u64) -> u64 {
        let wide = u128::from(a) * u128::from(b);
        (wide >> 64) as u64 ^ wide as u64
    }

    /// Returns a sample of the hash under this seed, of byte strings of every class of lengths and of integers, whose
    /// hashes have code of their own. If you store blocks yourself, store it with them, as files do (docs/FORMAT.md): a
    /// program with another sample hashes keys in another way and would not find them.
    ///
    /// ```
    /// use bloomline::KeyHasher;
    /// assert_eq!(KeyHasher::new(0).golden(), 0x0266_DE48_D866_1670); // on every platform, in every version
    /// ```
    pub fn golden(&self) -> u64 {
        let bytes: [u8; 100] = core::array::from_fn(|i| i as u8 + 1);
        let strings = [0, 1, 2, 3, 4, 8, 16, 17, 48, 49, 100].map(|length| self.bytes(&bytes[..length]));
        let integer = |length| (0..length).rev().fold(0, |integer, i| integer << 8 | u128::from(bytes[i]));
        let integers = [
            self.u8(integer(1) as u8),
            self.u16(integer(2) as u16),
            self.u32(integer(4) as u32),
            self.u64(integer(8) as u64),
            self.u128(integer(16)),
        ];
        strings.into_iter().chain(integers).fold(0, |golden, hash| self.combine(golden, hash))
    }

    // wyhash for the lengths 1, 2, 4, 8 and 16, unrolled: two multiplications, no call.

    #[inline(always)]
    pub(crate) fn u8(&self, x: u8) -> u64 {
        let x = u64::from(x);
        self.finish(x << 16 | x << 8 | x, 0, 1)
    }

    #[inline(always)]
    pub(crate) fn u16(&self, x: u16) -> u64 {
        let (low, high) = (u64::from(x & 0xFF), u64::from(x >> 8));
        self.finish(low << 16 | high << 8 | high, 0, 2)
    }

    #[inline(always)]
    pub(crate) fn u32(&self, x: u32) -> u64 {
        let twice = u64::from(x) << 32 | u64::from(x);
        self.finish(twice, twice, 4)
    }

    #[inline(always)]
    pub(crate) fn u64(&self, x: u64) -> u64 {
        self.finish(x.rotate_left(32), x, 8)
    }

    #[inline(always)]
    pub(crate) fn u128(&self, x: u128) -> u64 {
        let [w0, w1, w2, w3] = [0, 32, 64, 96].map(|shift| (x >> shift) as u64 & 0xFFFF_FFFF);
        self.finish(w0 << 32 | w2, w3 << 32 | w1, 16)
    }

    #[inline(always)]
    fn finish(&self, a: u64, b: u64, length: u64) -> u64 {
        let [secret0, secret1, ..] = self.secret;
        KeyHasher::mix(secret1 ^ length, KeyHasher::mix(a ^ secret1, b ^ self.seed ^ secret0))
    }
}

/// Omits the seed and the secret: with them, anyone can make keys that collide.
impl core::fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

/// Returns the next of wyhash's random numbers. Each call adds the same number to the state.
#[inline(always)]
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0xA076_1D64_78BD_642F);
    KeyHasher::mix(*seed, *seed ^ 0xE703_7ED1_A0B4_28DB)
}

/// Computes wyhash's secret for a seed: four odd words of bytes with four ones each, which differ in 32 bits from one
/// another.
fn make_secret(mut seed: u64) -> [u64; 4] {
    let mut bytes = [0; 70];
    let four_ones = (0..=255u8).filter(|byte| byte.count_ones() == 4);
    bytes.iter_mut().zip(four_ones).for_each(|(slot, byte)| *slot = byte);
    let mut secret = [0; 4];
    for i in 0..4 {
        secret[i] = loop {
            let word = u64::from_le_bytes([0; 8].map(|_: u8| bytes[(random(&mut seed) % 70) as usize]));
            if word % 2 == 1 && secret[..i].iter().all(|other: &u64| (other ^ word).count_ones() == 32) {
                break word;
            }
        };
    }
    secret
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn the_secret_matches_the_crate_on_64_bits() {
        for seed in (0..1000).chain([u64::MAX, 0x9E37_79B9_7F4A_7C15]) {
            assert_eq!(make_secret(seed), wyhash::final3::make_secret(seed), "{seed}");
        }
    }

    /// The specification hashes integers as byte strings.
    #[test]
    fn the_golden_hash_matches_the_specification() {
        for seed in [0, 1, u64::MAX] {
            let hasher = KeyHasher::new(seed);
            let bytes: Vec<u8> = (1..=100).collect();
            let lengths = [0, 1, 2, 3, 4, 8, 16, 17, 48, 49, 100, 1, 2, 4, 8, 16];
            let golden = lengths.iter().fold(0u64, |golden, &length| {
                let parts = [golden.to_le_bytes(), hasher.bytes(&bytes[..length]).to_le_bytes()];
                hasher.bytes(&parts.concat())
            });
            assert_eq!(hasher.golden(), golden);
        }
    }

    #[test]
    fn every_length_hashes_like_the_crate() {
        let bytes: Vec<u8> = (0..300).map(|i| ((i * 151) >> 3) as u8).collect();
        for seed in [0, 1, u64::MAX, 0x9E37_79B9_7F4A_7C15] {
            let hasher = KeyHasher::new(seed);
            for start in 0..3 {
                for end in start..bytes.len() {
                    let bytes = &bytes[start..end];
                    assert_eq!(hasher.bytes(bytes), wyhash::final3::wyhash(bytes, seed, hasher.secret), "{bytes:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn bytes_hash_like_the_crate(seed: u64, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let hasher = KeyHasher::new(seed);
            prop_assert_eq!(hasher.bytes(&bytes), wyhash::final3::wyhash(&bytes, seed, hasher.secret));
        }

        #[test]
        fn an_integer_hashes_as_its_little_endian_bytes(seed: u64, x: u128) {
            let hasher = KeyHasher::new(seed);
            prop_assert_eq!(hasher.u8(x as u8), hasher.bytes(&(x as u8).to_le_bytes()));
            prop_assert_eq!(hasher.u16(x as u16), hasher.bytes(&(x as u16).to_le_bytes()));
            prop_assert_eq!(hasher.u32(x as u32), hasher.bytes(&(x as u32).to_le_bytes()));
            prop_assert_eq!(hasher.u64(x as u64), hasher.bytes(&(x as u64).to_le_bytes()));
            prop_assert_eq!(hasher.u128(x), hasher.bytes(&x.to_le_bytes()));
        }
    }
}
