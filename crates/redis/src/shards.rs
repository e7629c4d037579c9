//! The layout of a filter on a server: the key of each block, and its bits.
//!
//! The blocks lie one after another in string values, the shards, of [`SHARD_BYTES`] each. As in a file, their words
//! are little-endian. The server counts the bits of a string from the highest bit of the first byte.
//!
//! A shard has a mark of 8 bytes: behind the blocks, or before them if it belongs to a stage. Stages are sealed, and a
//! seal behind the blocks would extend a string without keys to its full length.

use crate::error::RedisFilterError;
use crate::meta::random_id;
use crate::packed::CommandSink;
use bloomline::{BuildError, Plan};
use redis::{Cmd, Value, cmd};
use std::fmt::Display;
use std::ops::Range;

/// The size of a block.
pub(crate) const BLOCK_BYTES: usize = size_of::<[u64; 8]>();

/// The size of a shard. A string of this size, with its header and its end, is just below 16 MiB, for which the
/// server's allocator has a size class. With 64 bytes more it would take 20 MiB. crates/redis/DESIGN.md has the measurement.
pub(crate) const SHARD_BYTES: usize = (16 << 20) - BLOCK_BYTES;
const SHARD_BLOCKS: usize = SHARD_BYTES / BLOCK_BYTES;

/// Blocks that are read or written with one command: a mebibyte, because the server does nothing else meanwhile.
const CHUNK_BLOCKS: usize = (1 << 20) / BLOCK_BYTES;

/// The number of blocks in the sample for the fill: some 50,000 keys, which estimate the total to half a percent.
const SAMPLE_BLOCKS: usize = 1024;

/// The names of all keys on a server begin with this.
pub(crate) const KEY_PREFIX: &str = "cbf:";

/// The part of a filter that describes it.
pub(crate) const META: &str = "meta";

/// The part of a filter that lists its stages, if it has any.
pub(crate) const STAGES: &str = "stages";

/// The part of a filter that records the kinds of its keys, if clients do so.
pub(crate) const KINDS: &str = "kinds";

/// The text between the key of a shard and the number of its copy.
const COPY_INFIX: &str = ":upload:";

/// The maximum number of shards of a filter: 16 TiB. A client keeps the names of all of them.
const MAX_SHARDS: usize = 1 << 20;

/// The maximum size of a filter in bytes, with all its stages.
pub(crate) const MAX_BYTES: u64 = MAX_SHARDS as u64 * SHARD_BYTES as u64;

/// The slots of a cluster.
const SLOT_COUNT: u16 = 16384;

/// The name of a value on the server, and the slot of the cluster that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) slot: u16,
}

/// The size of a mark in bytes.
const MARK_BYTES: usize = 8;

/// The size in bytes of the number of permits behind the blocks of a stage's first shard.
const PERMITS_BYTES: usize = 8;

/// The name of a filter, its size and the keys of its shards.
pub(crate) struct Shards {
    pub(crate) name: String,
    pub(crate) plan: Plan,
    /// The key of each shard.
    pub(crate) keys: Vec<Key>,
    /// The bytes before the first block of each shard.
    first_block_offset: usize,
    /// The time after which the server removes the shards.
    expiry: Option<Expiry>,
}

/// The time after which the server removes the shards of a stage.
#[derive(Clone, Copy)]
pub(crate) struct Expiry {
    /// Seconds of Unix time.
    pub(crate) at: u64,
    /// The number of seconds after the stage was opened.
    pub(crate) after: u64,
}

/// The last second of Unix time that a server accepts, because it counts milliseconds.
const MAX_SECOND: u64 = i64::MAX as u64 / 1000;

/// The probes of a key: bits of one block of a shard.
pub(crate) struct Probes {
    pub(crate) shard: usize,
    /// The byte of the shard at which the block begins.
    offset: usize,
    /// The bits in each word.
    mask: [u64; 8],
}

impl Shards {
    pub(crate) fn new(name: &str, plan: Plan) -> Self {
        let keys = (0..shard_count(plan)).map(|shard| Key::new(name, shard)).collect();
        Self { name: name.to_owned(), plan, keys, first_block_offset: 0, expiry: None }
    }

    /// Creates the shards of a stage.
    pub(crate) fn for_stage(name: &str, stage: u64, plan: Plan, expiry: Option<Expiry>) -> Self {
        let keys = stage_keys(name, stage, plan).collect();
        Self { name: name.to_owned(), plan, keys, first_block_offset: MARK_BYTES, expiry }
    }

    /// Returns the key of a copy of a shard, in the same slot.
    pub(crate) fn upload_key(&self, shard: usize, unique: u64) -> Key {
        let key = &self.keys[shard];
        Key { name: format!("{}{COPY_INFIX}{unique:016x}", key.name), slot: key.slot }
    }

    /// Returns the blocks of a shard.
    pub(crate) fn blocks(&self, shard: usize) -> Range<usize> {
        let start = shard * SHARD_BLOCKS;
        start..self.plan.block_count().min(start + SHARD_BLOCKS)
    }

    /// Returns the blocks of a shard in pieces for a command each, and the byte of the shard at which each begins.
    pub(crate) fn chunks(&self, shard: usize) -> impl Iterator<Item = (usize, Range<usize>)> + use<> {
        let (blocks, first_block_offset) = (self.blocks(shard), self.first_block_offset);
        blocks.clone().step_by(CHUNK_BLOCKS).map(move |start| {
            (first_block_offset + (start - blocks.start) * BLOCK_BYTES, start..blocks.end.min(start + CHUNK_BLOCKS))
        })
    }

    /// Returns the command that counts the bits of blocks of a shard, numbered from 0.
    pub(crate) fn count_ones(&self, shard: usize, blocks: Range<usize>) -> (u16, Cmd) {
        let key = &self.keys[shard];
        let [first, end] = [blocks.start, blocks.end].map(|block| self.first_block_offset + block * BLOCK_BYTES);
        (key.slot, key.command("BITCOUNT").arg(first).arg(end - 1).take())
    }

    /// Returns blocks at random, with their shard, whose bits give an estimate of the fill.
    pub(crate) fn sample(&self) -> (usize, Range<usize>) {
        let random = random_id() as usize;
        let shard = random % self.keys.len();
        let blocks = self.blocks(shard).len();
        let start = random / self.keys.len() % (blocks.saturating_sub(SAMPLE_BLOCKS) + 1);
        (shard, start..blocks.min(start + SAMPLE_BLOCKS))
    }

    /// Returns the probes of a hash.
    pub(crate) fn probes(&self, hash: u64) -> Probes {
        let block = self.plan.block(hash);
        let (shard, offset) = (block / SHARD_BLOCKS, self.first_block_offset + block % SHARD_BLOCKS * BLOCK_BYTES);
        Probes { shard, offset, mask: self.plan.mask(hash) }
    }

    /// Returns the bytes of the blocks of a shard.
    pub(crate) fn bytes(&self, shard: usize) -> usize {
        self.blocks(shard).len() * BLOCK_BYTES
    }

    /// Returns the byte of a shard at which its mark begins.
    pub(crate) fn mark_offset(&self, shard: usize) -> usize {
        if self.first_block_offset == 0 { self.bytes(shard) } else { 0 }
    }

    /// Returns the command that extends a shard to its full length, and adds this mark if it has none. The sum of two
    /// marks exceeds 63 bits, so adding a second one fails. The answer has the result of each operation, and then the
    /// present mark.
    pub(crate) fn mark(&self, shard: usize, mark: u64) -> (u16, Cmd) {
        self.mark_command(shard, mark, |command| {
            // The highest bit of the mark is a seal's, and 0 is added to it.
            let permits = if shard == 0 { PERMITS_BYTES } else { 0 };
            let last = 8 * (self.first_block_offset + self.bytes(shard) + permits) - 1;
            if self.first_block_offset > 0 {
                command.arg("INCRBY").arg("u1").arg(last).arg(0);
            }
        })
    }

    /// Returns the command that seals a shard, and adds this mark if it has none. The answer ends with the present
    /// mark.
    pub(crate) fn seal(&self, shard: usize, mark: u64) -> (u16, Cmd) {
        self.mark_command(shard, mark, |command| {
            _ = command.arg("SET").arg("u1").arg(8 * self.mark_offset(shard)).arg(1)
        })
    }

    fn mark_command(&self, shard: usize, mark: u64, add_operation: impl FnOnce(&mut Cmd)) -> (u16, Cmd) {
        let (key, bit) = (&self.keys[shard], 8 * self.mark_offset(shard) + 1);
        let mut command = key.command("BITFIELD");
        command.arg("OVERFLOW").arg("FAIL").arg("INCRBY").arg("u63").arg(bit).arg(mark);
        add_operation(&mut command);
        (key.slot, command.arg("GET").arg("u63").arg(bit).take())
    }

    /// Returns the command that takes permits of a stage, or gives some back if the number is negative. The answer has the
    /// number of permits taken by all clients, and then the seal and the mark of the first shard.
    pub(crate) fn take_permits(&self, permits: i64) -> (u16, Cmd) {
        let (key, bit) = (&self.keys[0], 8 * (self.first_block_offset + self.bytes(0)));
        let mut command = key.command("BITFIELD");
        command.arg("INCRBY").arg("i64").arg(bit).arg(permits).arg("GET").arg("i64").arg(0);
        (key.slot, command)
    }

    /// Returns the command that sets the time at which the server removes a shard, if there is one.
    pub(crate) fn expire(&self, shard: usize) -> Option<(u16, Cmd)> {
        let key = &self.keys[shard];
        self.expiry.map(|expiry| (key.slot, key.command("EXPIREAT").arg(expiry.at.min(MAX_SECOND)).take()))
    }

    /// Returns the command behind claims that lets a shard expire, if its stage does. A claim recreates a shard that has
    /// expired meanwhile, and the client may not live to process the answer. The time is relative, so that the claims of
    /// a client that was suspended do not end a stage of another filter of this name.
    pub(crate) fn expire_recreated(&self, shard: usize) -> Option<(u16, Cmd)> {
        let key = &self.keys[shard];
        self.expiry.map(|expiry| (key.slot, key.command("EXPIRE").arg(expiry.after.min(MAX_SECOND / 2)).take()))
    }

    /// Returns the command that reads the mark of a shard: 8 bytes, the highest first, or fewer if it has none.
    pub(crate) fn read_mark(&self, shard: usize) -> (u16, Cmd) {
        let (key, start) = (&self.keys[shard], self.mark_offset(shard));
        (key.slot, key.command("GETRANGE").arg(start).arg(start + MARK_BYTES - 1).take())
    }

    /// True if shards may be sealed, so that claims read the seal.
    pub(crate) fn may_be_sealed(&self) -> bool {
        self.first_block_offset > 0
    }
}

/// Returns the number of shards.
pub(crate) fn shard_count(plan: Plan) -> usize {
    plan.block_count().div_ceil(SHARD_BLOCKS)
}

/// Returns the keys of the shards of a stage, one at a time, because a server may list stages that this client never
/// uses, of any size.
pub(crate) fn stage_keys(name: &str, stage: u64, plan: Plan) -> impl Iterator<Item = Key> {
    (0..shard_count(plan)).map(move |shard| Key::new(name, format_args!("{stage}.{shard}")))
}

/// Returns the slot of a key, which is the slot of its hash tag, the text in its first braces, unless that is empty
/// (the specification of Redis Cluster).
pub(crate) fn key_slot(key: &str) -> u16 {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    crc16::State::<crc16::XMODEM>::calculate(hashed.as_bytes()) % SLOT_COUNT
}

impl Key {
    /// Creates the key of a part of a filter: the number of a shard, or [`META`]. Each has a hash tag of its own, so
    /// that a cluster spreads the shards.
    pub(crate) fn new(name: &str, part: impl Display) -> Self {
        Self::from_name(format!("{KEY_PREFIX}{{{name}:{part}}}"))
    }

    /// Returns the key of this name.
    pub(crate) fn from_name(name: String) -> Self {
        Self { slot: key_slot(&name), name }
    }

    /// Begins a command about this key.
    pub(crate) fn command(&self, name: &str) -> Cmd {
        cmd(name).arg(&self.name).take()
    }

    /// Returns the error for an invalid answer.
    pub(crate) fn refused(&self, message: &str) -> RedisFilterError {
        RedisFilterError::Refused { node: format!("the server of {}", self.name), message: message.to_owned() }
    }
}

/// Returns the name of the filter that a key on a server belongs to, and true if the key holds a copy of a shard that is
/// being uploaded. `None` for other keys. No key belongs to two filters: names have no braces, and parts have no colons.
pub(crate) fn owner(key: &[u8]) -> Option<(&str, bool)> {
    let (tag, rest) = str::from_utf8(key).ok()?.strip_prefix(KEY_PREFIX)?.strip_prefix('{')?.split_once('}')?;
    let (name, part) = tag.rsplit_once(':')?;
    let is_number = |text: &str| text.parse::<u64>().is_ok_and(|number| number.to_string() == text);
    let is_shard = part.split_once('.').map_or(is_number(part), |(stage, shard)| is_number(stage) && is_number(shard));
    let is_copy = rest.strip_prefix(COPY_INFIX).is_some_and(|unique| {
        unique.len() == 16 && unique.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    });
    let is_part = is_shard && (is_copy || rest.is_empty()) || [META, STAGES, KINDS].contains(&part) && rest.is_empty();
    (is_part && check_name(name).is_ok()).then_some((name, is_copy))
}

/// Refuses filters that are too large.
pub(crate) fn check_size(plan: Plan) -> Result<(), BuildError> {
    let (bytes, limit) = (plan.memory_bytes() as u64, MAX_BYTES);
    if bytes <= limit { Ok(()) } else { Err(BuildError::TooLarge { bytes, limit }) }
}

/// Refuses names that no filter can have. Braces would end the hash tag.
pub(crate) fn check_name(name: &str) -> Result<(), RedisFilterError> {
    let is_valid = (1..=200).contains(&name.len()) && !name.contains(|c: char| c.is_control() || c == '{' || c == '}');
    if is_valid { Ok(()) } else { Err(RedisFilterError::Name { name: name.to_owned() }) }
}

impl Probes {
    /// Writes the command that sets all bits of the key at once. Its answer has the previous value of each bit and, if
    /// the shard may be `sealed`, its seal and its mark.
    pub(crate) fn claim(&self, key: &Key, sealed: bool, sink: &mut impl CommandSink) {
        sink.begin(2 + 4 * self.bit_count() + if sealed { 3 } else { 0 });
        sink.argument(b"BITFIELD");
        sink.argument(key.name.as_bytes());
        for bit in self.bits() {
            sink.argument(b"SET");
            sink.argument(b"u1");
            sink.number(bit);
            sink.argument(b"1");
        }
        if sealed {
            [&b"GET"[..], b"i64", b"0"].iter().for_each(|argument| sink.argument(argument));
        }
    }

    /// Writes the command that reads the block.
    pub(crate) fn read(&self, key: &Key, sink: &mut impl CommandSink) {
        sink.begin(4);
        sink.argument(b"GETRANGE");
        sink.argument(key.name.as_bytes());
        sink.number(self.offset);
        sink.number(self.offset + BLOCK_BYTES - 1);
    }

    /// Returns true if the bits in the answer to a claim include a 0. `None` if the answer is not valid.
    pub(crate) fn had_unset_bit(&self, bits: &[Value]) -> Option<bool> {
        let mut unset = false;
        for bit in bits {
            match bit {
                Value::Int(0) => unset = true,
                Value::Int(1) => {}
                _ => return None,
            }
        }
        (bits.len() == self.bit_count()).then_some(unset)
    }

    /// True if a block has all bits of the key. The server leaves out the end of a block that was never written.
    pub(crate) fn all_set_in(&self, block: &[u8]) -> bool {
        let words = block.chunks(8).map(word_from_le).chain(std::iter::repeat(0));
        self.mask.iter().zip(words).all(|(mask, word)| word & mask == *mask)
    }

    /// Returns the positions of the bits in the shard, as the server counts them.
    fn bits(&self) -> impl Iterator<Item = usize> {
        self.mask.iter().zip((self.offset..).step_by(8)).flat_map(|(&mask, byte)| {
            let nonzero = |mask: u64| (mask != 0).then_some(mask);
            // Each step clears the lowest bit.
            std::iter::successors(nonzero(mask), move |mask| nonzero(mask & (mask - 1))).map(move |mask| {
                let bit = mask.trailing_zeros() as usize;
                8 * (byte + bit / 8) + 7 - bit % 8
            })
        })
    }

    /// Returns the number of bits.
    fn bit_count(&self) -> usize {
        self.mask.iter().map(|mask| mask.count_ones() as usize).sum()
    }
}

/// Returns the word that begins with these bytes. Bytes that are missing are zero.
pub(crate) fn word_from_le(bytes: &[u8]) -> u64 {
    let rest = || bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    bytes.first_chunk().map_or_else(rest, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomline::BloomFilter;
    use proptest::prelude::*;

    fn plan(blocks: usize, probes: u32) -> Plan {
        BloomFilter::builder().memory(64 * blocks).probes(probes).plan().unwrap()
    }

    fn shards(blocks: usize, probes: u32) -> Shards {
        Shards::new("test", plan(blocks, probes))
    }

    #[test]
    fn shards_cover_all_blocks_once() {
        for blocks in [1, SHARD_BLOCKS - 1, SHARD_BLOCKS, SHARD_BLOCKS + 1, 5 * SHARD_BLOCKS + 7] {
            let shards = shards(blocks, 8);
            let covered: Vec<usize> = (0..shards.keys.len()).flat_map(|shard| shards.blocks(shard)).collect();
            assert!(covered.into_iter().eq(0..blocks));
            for shard in 0..shards.keys.len() {
                let pieces: Vec<_> = shards.chunks(shard).collect();
                let first = shards.blocks(shard).start;
                assert!(
                    pieces
                        .iter()
                        .all(|(offset, blocks)| *offset == 64 * (blocks.start - first) && blocks.len() <= CHUNK_BLOCKS)
                );
                assert!(pieces.into_iter().flat_map(|(_, blocks)| blocks).eq(shards.blocks(shard)));
            }
        }
    }

    /// The expected slots are a server's answers to `CLUSTER KEYSLOT`.
    #[test]
    fn slots_match_those_of_the_server() {
        assert_eq!(Key::new("a:b", 7), Key { name: "cbf:{a:b:7}".into(), slot: 11822 });
        assert_eq!(Key::new("a", META), Key { name: "cbf:{a:meta}".into(), slot: 14381 });
        for (key, hashed) in [("{user1000}.following", "user1000"), ("foo{{bar}}zap", "{bar"), ("foo{bar}{zap}", "bar")]
        {
            assert_eq!(key_slot(key), key_slot(hashed), "{key}");
        }
        assert_ne!(key_slot("foo{}{bar}"), key_slot("bar"));
        assert_eq!((key_slot("foo"), key_slot("somekey")), (12182, 11058));
        let copy = Key { name: "cbf:{test:0}:upload:00000000000000ab".into(), slot: 14554 };
        assert_eq!(shards(1, 8).upload_key(0, 0xAB), copy);
    }

    proptest! {
        /// Applied to a string, the commands have the same effect as the filter on its blocks, byte for byte.
        #[test]
        fn a_claim_sets_the_bits_of_the_local_filter(
            hashes in prop::collection::vec(any::<u64>(), 1..50),
            blocks in 1usize..40,
            probes in prop::sample::select(vec![4u32, 8, 12, 16]),
        ) {
            let shards = shards(blocks, probes);
            let mut filter: BloomFilter =
                BloomFilter::builder().memory(64 * blocks).probes(probes).build().unwrap();
            let mut string = vec![0u8; 64 * blocks];
            for &hash in &hashes {
                let probes = shards.probes(hash);
                let old: Vec<Value> = probes.bits().map(|bit| {
                    let old = string[bit / 8] >> (7 - bit % 8) & 1;
                    string[bit / 8] |= 1 << (7 - bit % 8);
                    Value::Int(old.into())
                }).collect();
                prop_assert_eq!(probes.had_unset_bit(&old), Some(filter.insert_hash(hash)));
                prop_assert!(probes.all_set_in(&string[probes.offset..probes.offset + 64]));
            }
            let bytes: Vec<u8> = (0..blocks).flat_map(|block| filter.block_words(block)).flat_map(u64::to_le_bytes).collect();
            prop_assert_eq!(&bytes, &string);
            for hash in hashes.iter().map(|hash| hash.wrapping_mul(3)) {
                let probes = shards.probes(hash);
                let block = &string[probes.offset..probes.offset + 64];
                prop_assert_eq!(probes.all_set_in(block), filter.contains_hash(hash));
                // The server leaves out zeros at the end that were never written.
                let used = block.len() - block.iter().rev().take_while(|&&byte| byte == 0).count();
                prop_assert_eq!(probes.all_set_in(&block[..used]), filter.contains_hash(hash));
            }
        }
    }

    #[test]
    fn sizes_are_checked() {
        assert_eq!(check_size(plan(MAX_SHARDS * SHARD_BLOCKS, 8)), Ok(()));
        let error = check_size(plan(MAX_SHARDS * SHARD_BLOCKS + 1, 8)).unwrap_err();
        assert_eq!(error, BuildError::TooLarge { bytes: (1 << 44) - (1 << 26) + 64, limit: (1 << 44) - (1 << 26) });
    }

    #[test]
    fn names_are_checked() {
        for name in ["a", "a:b", "kräne 7", &"x".repeat(200)] {
            assert_eq!(check_name(name), Ok(()));
        }
        for name in ["", "a{b", "a}", "a\nb", &"x".repeat(201)] {
            assert_eq!(check_name(name), Err(RedisFilterError::Name { name: name.to_owned() }));
        }
    }

    #[test]
    fn keys_of_filters_are_recognized() {
        for (key, owned) in [
            ("cbf:{urls:meta}", Some(("urls", false))),
            ("cbf:{a:b:17}", Some(("a:b", false))),
            ("cbf:{a:stages}", Some(("a", false))),
            ("cbf:{a:kinds}", Some(("a", false))),
            ("cbf:{a:12.0}", Some(("a", false))),
            ("cbf:{a:12.}", None),
            ("cbf:{a:.0}", None),
            ("cbf:{a:1.2.3}", None),
            ("cbf:{a:07}", None),
            ("cbf:{a:+7}", None),
            ("cbf:{a:99999999999999999999}", None),
            ("cbf:{kräne 7:0}", Some(("kräne 7", false))),
            ("cbf:{urls:}", None),
            ("cbf:{urls:7x}", None),
            ("cbf:{:meta}", None),
            ("cbf:{meta}", None),
            ("cbf:{urls:0}:upload:00000000000000ab", Some(("urls", true))),
            ("cbf:{urls:0}:upload:ab", None),
            ("cbf:{urls:meta}:upload:00000000000000ab", None),
            ("cbf:{urls:0}:notes", None),
            ("cbf:{a\u{1b}[2J:meta}", None),
            ("cbf:urls:meta", None),
        ] {
            assert_eq!(owner(key.as_bytes()), owned, "{key}");
        }
        assert_eq!(owner(b"cbf:{\xff:meta}"), None);
    }

    proptest! {
        /// Names that look like parts, patterns or names of other filters: each key belongs to one filter.
        #[test]
        fn every_key_belongs_to_the_filter_that_made_it(
            name in "[a:.0-9*?\\[\\]^\\\\-]{0,5}(a|:0|:meta|:1[.]0|:stages)",
            part in "meta|stages|kinds|0|[1-9][0-9]{0,6}|(0|[1-9][0-9]{0,3})[.](0|[1-9][0-9]{0,3})",
            unique: u64,
        ) {
            let key = Key::new(&name, &part).name;
            prop_assert_eq!(owner(key.as_bytes()), Some((&*name, false)));
            let copy = Shards::new(&name, plan(1, 8)).upload_key(0, unique).name;
            prop_assert_eq!(owner(copy.as_bytes()), Some((&*name, true)));
        }
    }

    #[test]
    fn invalid_answers_to_a_claim_are_refused() {
        let probes = shards(1, 4).probes(1);
        let ints = |ints: &[i64]| ints.iter().copied().map(Value::Int).collect::<Vec<_>>();
        assert_eq!(probes.had_unset_bit(&ints(&[1, 1, 1, 1])), Some(false));
        assert_eq!(probes.had_unset_bit(&ints(&[1, 1, 0, 1])), Some(true));
        assert_eq!(probes.had_unset_bit(&ints(&[1, 1, 1])), None);
        assert_eq!(probes.had_unset_bit(&ints(&[1, 1, 2, 1])), None);
        assert_eq!(probes.had_unset_bit(&[Value::Nil]), None);
    }
}
