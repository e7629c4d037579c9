//! The jobs: which commands each sends, and what their answers mean.

use crate::exchange::Job;
use crate::packed::Sink;
use crate::shards::{Key, Probes, Shards};
use bloomline::AtomicBloomFilter;
use redis::{Cmd, Value};
use std::collections::HashSet;

/// The hashes that the server is asked for: those that the mirror lacks.
pub(crate) struct Asked<'a> {
    shards: &'a Shards,
    mirror: Option<&'a AtomicBloomFilter>,
    hashes: &'a [u64],
    answers: &'a mut [bool],
    /// Indices into `hashes`, with the probes of the hash.
    probes: Vec<(usize, Probes)>,
}

impl<'a> Asked<'a> {
    /// Sets `answers` to whether the mirror has the hash.
    pub(crate) fn new(
        shards: &'a Shards,
        mirror: Option<&'a AtomicBloomFilter>,
        hashes: &'a [u64],
        answers: &'a mut [bool],
    ) -> Self {
        match mirror {
            Some(mirror) => _ = mirror.contains_hashes(hashes, answers),
            None => answers.fill(false),
        }
        let lacking = hashes.iter().zip(&*answers).enumerate().filter(|(_, (_, seen))| !**seen);
        let probes = lacking.map(|(i, (&hash, _))| (i, shards.probes(hash))).collect();
        Self { shards, mirror, hashes, answers, probes }
    }

    fn key(&self, command: usize) -> &Key {
        &self.shards.keys[self.probes[command].1.shard]
    }

    fn answer(&mut self, command: usize, answer: bool) {
        self.answers[self.probes[command].0] = answer;
    }

    /// The shards of the hashes.
    pub(crate) fn used(&self) -> Vec<usize> {
        self.probes.iter().map(|(_, probes)| probes.shard).collect()
    }

    /// The hashes that are left to ask for.
    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.probes.iter().map(|(i, _)| self.hashes[*i])
    }

    /// How many hashes are left to ask for.
    pub(crate) fn len(&self) -> usize {
        self.probes.len()
    }

    /// Leaves out all but the first of equal hashes: no other can be new.
    pub(crate) fn without_equals(mut self) -> Self {
        let mut met = HashSet::with_capacity(self.probes.len());
        self.probes.retain(|(i, _)| met.insert(self.hashes[*i]));
        self
    }

    /// Tells the mirror that the server has the hash.
    fn remember(&self, command: usize) {
        if let Some(mirror) = self.mirror {
            mirror.insert_hash(self.hashes[self.probes[command].0]);
        }
    }
}

/// Inserts hashes. The answers say which are new.
pub(crate) struct Claims<'a> {
    pub(crate) asked: Asked<'a>,
    /// How many claims are in doubt.
    pub(crate) uncertain: u64,
    /// How many claims too few replicas have.
    pub(crate) unconfirmed: u64,
}

impl<'a> Claims<'a> {
    /// Claims what was asked for and not found. The answers go to `new`, which is `false` all over: nothing is claimed before it
    /// is answered.
    pub(crate) fn new(asked: Asked<'a>, new: &'a mut [bool]) -> Self {
        let Asked { shards, mirror, hashes, answers: found, mut probes } = asked;
        probes.retain(|(i, _)| !found[*i]);
        Self { asked: Asked { shards, mirror, hashes, answers: new, probes }, uncertain: 0, unconfirmed: 0 }
    }

    /// Reports a key as new that this very call may have claimed, since nobody else will be told so.
    fn doubt(&mut self, command: usize) {
        self.asked.answer(command, true);
        self.uncertain += 1;
    }
}

impl Job for Claims<'_> {
    fn len(&self) -> usize {
        self.asked.probes.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.asked.key(i).slot
    }

    fn write(&self, i: usize, sink: &mut impl Sink) {
        self.asked.probes[i].1.claim(self.asked.key(i), sink);
    }

    fn take(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
        let lacking = self.asked.probes[i].1.were_lacking(&answer)?;
        self.asked.answer(i, lacking);
        if !lacking && doubted {
            self.doubt(i);
        }
        self.asked.remember(i);
        Some(())
    }

    fn wants_replicas(&self, _: usize) -> bool {
        true
    }

    /// Somebody acts on a key that was seen, whatever becomes of its bits.
    fn holds(&self, i: usize, answer: &Value) -> bool {
        self.asked.probes[i].1.were_lacking(answer) != Some(true)
    }

    fn unconfirmed(&mut self, _: usize) {
        self.unconfirmed += 1;
    }

    fn abandon(&mut self, i: usize, doubted: bool) {
        if doubted {
            self.doubt(i);
        }
    }
}

/// Looks hashes up. The answers say which are found.
pub(crate) struct Queries<'a> {
    pub(crate) asked: Asked<'a>,
    /// Whether replicas may answer.
    pub(crate) replicas: bool,
}

impl Job for Queries<'_> {
    fn len(&self) -> usize {
        self.asked.probes.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.asked.key(i).slot
    }

    fn write(&self, i: usize, sink: &mut impl Sink) {
        self.asked.probes[i].1.read(self.asked.key(i), sink);
    }

    fn may_ask_replica(&self, _: usize) -> bool {
        self.replicas
    }

    fn take(&mut self, i: usize, answer: Value, _: bool) -> Option<()> {
        let Value::BulkString(block) = answer else { return None };
        let found = self.asked.probes[i].1.are_in(&block);
        self.asked.answer(i, found);
        if found {
            self.asked.remember(i);
        }
        Some(())
    }
}

/// Commands with the slots of their keys. Keeps the answers.
pub(crate) struct Commands {
    commands: Vec<(u16, Cmd)>,
    pub(crate) answers: Vec<Value>,
    /// Whether replicas are to have what they do.
    replicas: bool,
}

impl Commands {
    pub(crate) fn new(commands: impl IntoIterator<Item = (u16, Cmd)>) -> Self {
        let commands: Vec<_> = commands.into_iter().collect();
        Self { answers: vec![Value::Nil; commands.len()], commands, replicas: false }
    }

    /// Commands that are sent again if a node fails before replicas have what they did.
    pub(crate) fn for_replicas(mut self) -> Self {
        self.replicas = true;
        self
    }
}

impl Job for Commands {
    fn len(&self) -> usize {
        self.commands.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.commands[i].0
    }

    fn write(&self, i: usize, sink: &mut impl Sink) {
        sink.command(&self.commands[i].1);
    }

    fn take(&mut self, i: usize, answer: Value, _: bool) -> Option<()> {
        self.answers[i] = answer;
        Some(())
    }

    fn wants_replicas(&self, _: usize) -> bool {
        self.replicas
    }

    fn holds(&self, _: usize, _: &Value) -> bool {
        false
    }
}
