//! The jobs: which commands each sends, and what their answers mean.

use crate::exchange::Job;
use crate::packed::CommandSink;
use crate::shards::{Key, Probes, Shards};
use bloomline::AtomicBloomFilter;
use redis::{Cmd, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The hashes that the server is asked for: those that the mirror lacks.
pub(crate) struct PendingKeys<'a> {
    shards: &'a Shards,
    mirror: Option<&'a AtomicBloomFilter>,
    hashes: &'a [u64],
    answers: &'a mut [bool],
    /// Indices into `hashes`, with the probes of the hash.
    probes: Vec<(usize, Probes)>,
}

impl<'a> PendingKeys<'a> {
    /// Those of the hashes that are `open`, by their indices.
    pub(crate) fn new(
        shards: &'a Shards,
        mirror: Option<&'a AtomicBloomFilter>,
        hashes: &'a [u64],
        open: &[usize],
        answers: &'a mut [bool],
    ) -> Self {
        let probes = open.iter().map(|&i| (i, shards.probes(hashes[i]))).collect();
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

    /// The hashes that are claimed so far.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = u64> {
        self.hashes.iter().zip(&*self.answers).filter(|(_, answer)| **answer).map(|(hash, _)| *hash)
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
    pub(crate) keys: PendingKeys<'a>,
    /// The marks of the shards, if they are sealed one day.
    marks: Option<Arc<[AtomicU64]>>,
    /// Indices of hashes whose claims do not count: they set bits in a shard that was sealed, or that is another by now.
    pub(crate) late: Vec<usize>,
    /// Indices of hashes that were there.
    pub(crate) seen: Vec<usize>,
    /// A shard that is another by now.
    pub(crate) foreign: Option<usize>,
    /// How many claims are in doubt.
    pub(crate) uncertain: u64,
    /// How many claims too few replicas have.
    pub(crate) unconfirmed: u64,
}

/// What the answer to a claim says.
#[derive(PartialEq)]
enum ClaimResult {
    New,
    Seen,
    /// It has set bits after the seal.
    Late,
    /// The shard is not the one that was marked.
    Foreign,
}

impl<'a> Claims<'a> {
    /// The answers are `false` all over: nothing is claimed before it is answered.
    pub(crate) fn new(keys: PendingKeys<'a>, marks: Arc<[AtomicU64]>) -> Self {
        let marks = keys.shards.may_be_sealed().then_some(marks);
        Self { keys, marks, late: Vec::new(), seen: Vec::new(), foreign: None, uncertain: 0, unconfirmed: 0 }
    }

    fn read(&self, i: usize, answer: &Value) -> Option<ClaimResult> {
        let Value::Array(parts) = answer else { return None };
        let probes = &self.keys.probes[i].1;
        let Some(marks) = &self.marks else {
            return Some(if probes.had_unset_bit(parts)? { ClaimResult::New } else { ClaimResult::Seen });
        };
        let (Value::Int(end), bits) = parts.split_last()? else { return None };
        let lacking = probes.had_unset_bit(bits)?;
        // Relaxed: each is set once, and was before the claim was sent.
        let known = marks[probes.shard].load(Ordering::Relaxed);
        Some(match lacking {
            // The highest bit is the seal.
            _ if end.cast_unsigned() & (u64::MAX >> 1) != known => ClaimResult::Foreign,
            false => ClaimResult::Seen,
            true if *end < 0 => ClaimResult::Late,
            true => ClaimResult::New,
        })
    }

    /// Reports a key as new that this very call may have claimed, since nobody else will be told so.
    fn mark_uncertain(&mut self, command: usize) {
        self.keys.answer(command, true);
        self.uncertain += 1;
    }
}

impl Job for Claims<'_> {
    fn len(&self) -> usize {
        self.keys.probes.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.keys.key(i).slot
    }

    fn write(&self, i: usize, sink: &mut impl CommandSink) {
        self.keys.probes[i].1.claim(self.keys.key(i), self.marks.is_some(), sink);
    }

    fn take(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
        match self.read(i, &answer)? {
            claimed @ (ClaimResult::Late | ClaimResult::Foreign) => {
                if claimed == ClaimResult::Foreign {
                    self.foreign = Some(self.keys.probes[i].1.shard);
                }
                self.late.push(self.keys.probes[i].0);
                return Some(());
            }
            ClaimResult::New => self.keys.answer(i, true),
            ClaimResult::Seen if doubted => self.mark_uncertain(i),
            ClaimResult::Seen => self.seen.push(self.keys.probes[i].0),
        }
        self.keys.remember(i);
        Some(())
    }

    fn wants_replicas(&self, _: usize) -> bool {
        true
    }

    /// Somebody acts on a key that was seen, whatever becomes of its bits. One that is late is claimed elsewhere.
    fn holds(&self, i: usize, answer: &Value) -> bool {
        self.read(i, answer) != Some(ClaimResult::New)
    }

    fn unconfirmed(&mut self, _: usize) {
        self.unconfirmed += 1;
    }

    fn abandon(&mut self, i: usize, doubted: bool) {
        if doubted {
            self.mark_uncertain(i);
        }
    }
}

/// Looks hashes up. The answers say which are found.
pub(crate) struct Queries<'a> {
    pub(crate) keys: PendingKeys<'a>,
    /// Whether replicas may answer.
    pub(crate) replicas: bool,
}

impl Job for Queries<'_> {
    fn len(&self) -> usize {
        self.keys.probes.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.keys.key(i).slot
    }

    fn write(&self, i: usize, sink: &mut impl CommandSink) {
        self.keys.probes[i].1.read(self.keys.key(i), sink);
    }

    fn may_ask_replica(&self, _: usize) -> bool {
        self.replicas
    }

    fn take(&mut self, i: usize, answer: Value, _: bool) -> Option<()> {
        let Value::BulkString(block) = answer else { return None };
        let found = self.keys.probes[i].1.all_set_in(&block);
        self.keys.answer(i, found);
        if found {
            self.keys.remember(i);
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

    fn write(&self, i: usize, sink: &mut impl CommandSink) {
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
