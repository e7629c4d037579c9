//! What is asked of servers.

use super::exchange::Job;
use super::shards::{Key, Place, Shards, word_of};
use crate::atomic_filter::AtomicBloomFilter;
use crate::block::Block;
use redis::{Cmd, Value, cmd};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// Inserts hashes. What the mirror has is not asked for.
pub(super) struct Claims<'a> {
    keys: Asked<'a>,
    /// The answers.
    new: &'a mut [bool],
    /// Keys whose claim is in doubt.
    pub(super) uncertain: u64,
}

/// Asks for hashes. What the mirror has is not asked for.
pub(super) struct Queries<'a> {
    keys: Asked<'a>,
    /// The answers.
    found: &'a mut [bool],
}

/// Shards that grow in one go: each keeps a server busy for some 10 ms.
const GROWING: usize = 16;

/// The hashes that the server is asked for.
struct Asked<'a> {
    shards: &'a Shards,
    mirror: Option<&'a AtomicBloomFilter>,
    hashes: &'a [u64],
    /// Which of the hashes, and where their bits are.
    places: Vec<(usize, Place)>,
}

impl<'a> Asked<'a> {
    /// Puts what the mirror knows into `seen`: `true` for each hash that it has.
    fn new(shards: &'a Shards, mirror: Option<&'a AtomicBloomFilter>, hashes: &'a [u64], seen: &mut [bool]) -> Self {
        match mirror {
            Some(mirror) => _ = mirror.contains_hashes(hashes, seen),
            None => seen.fill(false),
        }
        let asked = hashes.iter().zip(&*seen).enumerate().filter(|(_, (_, seen))| !**seen);
        let places = asked.map(|(i, (&hash, _))| (i, shards.place(hash))).collect();
        Self { shards, mirror, hashes, places }
    }

    fn key(&self, command: usize) -> &Key {
        self.shards.key_of(&self.places[command].1)
    }

    /// The server has the hash.
    fn remember(&self, command: usize) {
        if let Some(mirror) = self.mirror {
            mirror.insert_hash(self.hashes[self.places[command].0]);
        }
    }
}

impl<'a> Claims<'a> {
    pub(super) fn new(
        shards: &'a Shards,
        mirror: Option<&'a AtomicBloomFilter>,
        hashes: &'a [u64],
        new: &'a mut [bool],
    ) -> Self {
        let mut keys = Asked::new(shards, mirror, hashes, new);
        // Of equal keys the first is to be claimed, and the others are seen.
        let mut met = HashSet::with_capacity(hashes.len());
        keys.places.retain(|(i, _)| met.insert(hashes[*i]));
        // Nothing is claimed before it is answered.
        new.fill(false);
        Self { keys, new, uncertain: 0 }
    }

    /// What is to be done first: it gives the shards of these keys their whole length, where this client has not done so, which
    /// `grown` tells. A string that grows bit by bit is allocated with room to spare, up to a quarter of a shard.
    pub(super) fn growth(&self, grown: &[AtomicBool]) -> Vec<Commands> {
        let Asked { shards, places, .. } = &self.keys;
        let mut commands = Vec::new();
        for (_, place) in places {
            // Relaxed: a shard that is given its length twice is none the worse for it.
            if !grown[place.shard()].swap(true, Ordering::Relaxed) {
                commands.push(shards.grow(place.shard()));
            }
        }
        commands.chunks(GROWING).map(|commands| Commands::new(commands.iter().cloned())).collect()
    }

    /// The key may have been claimed by this very call, and nobody else will be told that it is new.
    fn doubt(&mut self, command: usize) {
        self.new[self.keys.places[command].0] = true;
        self.uncertain += 1;
    }
}

impl Job for Claims<'_> {
    fn len(&self) -> usize {
        self.keys.places.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.keys.key(i).slot
    }

    fn command(&self, i: usize) -> Cmd {
        self.keys.places[i].1.claim(self.keys.key(i))
    }

    fn take(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
        let (key, place) = &self.keys.places[i];
        let lacking = place.was_lacking(&answer)?;
        self.new[*key] = lacking;
        if !lacking && doubted {
            self.doubt(i);
        }
        self.keys.remember(i);
        Some(())
    }

    fn abandon(&mut self, i: usize, doubted: bool) {
        if doubted {
            self.doubt(i);
        }
    }
}

impl<'a> Queries<'a> {
    pub(super) fn new(
        shards: &'a Shards,
        mirror: Option<&'a AtomicBloomFilter>,
        hashes: &'a [u64],
        found: &'a mut [bool],
    ) -> Self {
        Self { keys: Asked::new(shards, mirror, hashes, found), found }
    }
}

impl Job for Queries<'_> {
    fn len(&self) -> usize {
        self.keys.places.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.keys.key(i).slot
    }

    fn command(&self, i: usize) -> Cmd {
        self.keys.places[i].1.read(self.keys.key(i))
    }

    fn may_ask_replica(&self) -> bool {
        true
    }

    fn take(&mut self, i: usize, answer: Value, _: bool) -> Option<()> {
        let Value::BulkString(block) = answer else { return None };
        let (key, place) = &self.keys.places[i];
        let found = place.is_in(&block);
        self.found[*key] = found;
        if found {
            self.keys.remember(i);
        }
        Some(())
    }
}

/// Commands about some keys, with their answers.
pub(super) struct Commands {
    commands: Vec<(u16, Cmd)>,
    pub(super) answers: Vec<Value>,
}

impl Commands {
    pub(super) fn new(commands: impl IntoIterator<Item = (u16, Cmd)>) -> Self {
        let commands: Vec<_> = commands.into_iter().collect();
        Self { answers: vec![Value::Nil; commands.len()], commands }
    }

    /// The answers, if all are integers.
    pub(super) fn integers(&self) -> Option<Vec<u64>> {
        let integer = |answer: &Value| if let Value::Int(answer) = answer { u64::try_from(*answer).ok() } else { None };
        self.answers.iter().map(integer).collect()
    }
}

impl Job for Commands {
    fn len(&self) -> usize {
        self.commands.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.commands[i].0
    }

    fn command(&self, i: usize) -> Cmd {
        self.commands[i].1.clone()
    }

    fn take(&mut self, i: usize, answer: Value, _: bool) -> Option<()> {
        self.answers[i] = answer;
        Some(())
    }
}

/// Blocks that are read or written with one command: a mebibyte, as a server does nothing else meanwhile.
pub(super) const PIECE: usize = (1 << 20) / size_of::<Block>();

/// Reads a piece of a shard into blocks.
pub(super) struct Download<'a> {
    pub(super) key: &'a Key,
    /// The byte at which the piece begins.
    pub(super) offset: usize,
    pub(super) blocks: &'a mut [Block],
}

impl Job for Download<'_> {
    fn len(&self) -> usize {
        1
    }

    fn slot(&self, _: usize) -> u16 {
        self.key.slot
    }

    fn command(&self, _: usize) -> Cmd {
        let mut command = cmd("GETRANGE");
        command.arg(&self.key.name).arg(self.offset).arg(self.offset + size_of_val(self.blocks) - 1);
        command
    }

    fn take(&mut self, _: usize, answer: Value, _: bool) -> Option<()> {
        let Value::BulkString(bytes) = answer else { return None };
        let mut words = bytes.chunks(8).map(word_of);
        for word in self.blocks.iter_mut().flat_map(|block| &mut block.0) {
            *word = words.next().unwrap_or(0);
        }
        // More than was asked for would be somebody else's.
        words.next().is_none().then_some(())
    }
}

/// Writes a piece of a shard to another key.
pub(super) struct Upload<'a> {
    pub(super) key: &'a Key,
    /// The byte at which the piece begins.
    pub(super) offset: usize,
    pub(super) blocks: &'a [Block],
}

impl Job for Upload<'_> {
    fn len(&self) -> usize {
        1
    }

    fn slot(&self, _: usize) -> u16 {
        self.key.slot
    }

    fn command(&self, _: usize) -> Cmd {
        let words = self.blocks.iter().flat_map(|block| block.0);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let mut command = cmd("SETRANGE");
        command.arg(&self.key.name).arg(self.offset).arg(bytes);
        command
    }

    fn take(&mut self, _: usize, answer: Value, _: bool) -> Option<()> {
        matches!(answer, Value::Int(_)).then_some(())
    }
}
