//! The jobs: the commands of each, and the interpretation of their answers.

use crate::exchange::Job;
use crate::packed::CommandSink;
use crate::shards::{Key, Probes, Shards};
use bloomline::AtomicBloomFilter;
use redis::{Cmd, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The hashes of a job: those that the mirror does not have.
pub(crate) struct PendingKeys<'a> {
    shards: &'a Shards,
    mirror: Option<&'a AtomicBloomFilter>,
    hashes: &'a [u64],
    answers: &'a mut [bool],
    /// Indices into `hashes`, with the probes of the hash.
    probes: Vec<(usize, Probes)>,
}

impl<'a> PendingKeys<'a> {
    /// Selects the hashes with the indices `pending`.
    pub(crate) fn new(
        shards: &'a Shards,
        mirror: Option<&'a AtomicBloomFilter>,
        hashes: &'a [u64],
        pending: &[usize],
        answers: &'a mut [bool],
    ) -> Self {
        let probes = pending.iter().map(|&i| (i, shards.probes(hashes[i]))).collect();
        Self { shards, mirror, hashes, answers, probes }
    }

    fn key(&self, command: usize) -> &Key {
        &self.shards.keys[self.probes[command].1.shard]
    }

    fn answer(&mut self, command: usize, answer: bool) {
        self.answers[self.probes[command].0] = answer;
    }

    /// Returns the shards of the hashes.
    pub(crate) fn used(&self) -> Vec<usize> {
        self.probes.iter().map(|(_, probes)| probes.shard).collect()
    }

    /// Returns the hashes that are claimed so far.
    pub(crate) fn claimed(&self) -> impl Iterator<Item = u64> {
        self.hashes.iter().zip(&*self.answers).filter(|(_, answer)| **answer).map(|(hash, _)| *hash)
    }

    /// Inserts a hash into the mirror, because the server has it.
    fn remember(&self, command: usize) {
        if let Some(mirror) = self.mirror {
            mirror.insert_hash(self.hashes[self.probes[command].0]);
        }
    }
}

/// A job that inserts hashes. The answers are true for new hashes.
pub(crate) struct Claims<'a> {
    pub(crate) keys: PendingKeys<'a>,
    /// The marks of the shards, if they may be sealed.
    marks: Option<Arc<[AtomicU64]>>,
    /// The commands behind the claims that let recreated shards expire.
    expiries: Vec<(u16, Cmd)>,
    /// Indices of hashes whose claims are void: they set bits in a shard that was sealed or replaced.
    pub(crate) late: Vec<usize>,
    /// Indices of hashes that were in the filter.
    pub(crate) seen: Vec<usize>,
    /// A shard that was replaced.
    pub(crate) foreign: Option<usize>,
    /// The number of claims in doubt.
    pub(crate) uncertain: u64,
    /// The number of claims that too few replicas have.
    pub(crate) unconfirmed: u64,
}

/// The result of a claim.
#[derive(PartialEq)]
enum ClaimResult {
    New,
    Seen,
    /// The claim has set bits after the seal.
    Late,
    /// The shard has another mark than before.
    Foreign,
}

impl<'a> Claims<'a> {
    /// Creates the job. The answers must be `false`: nothing is claimed before its answer.
    pub(crate) fn new(keys: PendingKeys<'a>, marks: Arc<[AtomicU64]>) -> Self {
        let marks = keys.shards.may_be_sealed().then_some(marks);
        let used = BTreeSet::from_iter(keys.used());
        let expiries = used.into_iter().filter_map(|shard| keys.shards.expire_recreated(shard)).collect();
        Self { keys, marks, expiries, late: Vec::new(), seen: Vec::new(), foreign: None, uncertain: 0, unconfirmed: 0 }
    }

    fn read(&self, i: usize, answer: &Value) -> Option<ClaimResult> {
        let Value::Array(parts) = answer else { return None };
        let probes = &self.keys.probes[i].1;
        let Some(marks) = &self.marks else {
            return Some(if probes.had_unset_bit(parts)? { ClaimResult::New } else { ClaimResult::Seen });
        };
        let (Value::Int(seal_and_mark), bits) = parts.split_last()? else { return None };
        let is_new = probes.had_unset_bit(bits)?;
        // Relaxed: each mark is set once, before the claim was sent.
        let known = marks[probes.shard].load(Ordering::Relaxed);
        Some(match is_new {
            // The highest bit is the seal.
            _ if seal_and_mark.cast_unsigned() & (u64::MAX >> 1) != known => ClaimResult::Foreign,
            false => ClaimResult::Seen,
            true if *seal_and_mark < 0 => ClaimResult::Late,
            true => ClaimResult::New,
        })
    }

    /// Returns the number of claims.
    fn claims(&self) -> usize {
        self.keys.probes.len()
    }

    /// Reports a key as new if this call may have claimed it, since no other client reports it.
    fn mark_uncertain(&mut self, command: usize) {
        self.keys.answer(command, true);
        self.uncertain += 1;
    }
}

impl Job for Claims<'_> {
    fn len(&self) -> usize {
        self.claims() + self.expiries.len()
    }

    fn slot(&self, i: usize) -> u16 {
        if i < self.claims() { self.keys.key(i).slot } else { self.expiries[i - self.claims()].0 }
    }

    fn write(&self, i: usize, sink: &mut impl CommandSink) {
        if i >= self.claims() {
            return sink.command(&self.expiries[i - self.claims()].1);
        }
        self.keys.probes[i].1.claim(self.keys.key(i), self.marks.is_some(), sink);
    }

    fn process_answer(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
        if i >= self.claims() {
            return Some(());
        }
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

    /// True unless the key is new: another client claimed a seen key, and a late key is claimed in another stage.
    fn holds(&self, i: usize, answer: &Value) -> bool {
        i >= self.claims() || self.read(i, answer) != Some(ClaimResult::New)
    }

    fn unconfirmed(&mut self, _: usize) {
        self.unconfirmed += 1;
    }

    fn abandon(&mut self, i: usize, doubted: bool) {
        if doubted && i < self.claims() {
            self.mark_uncertain(i);
        }
    }
}

/// A job that looks up hashes. The answers are true for hashes that are found.
pub(crate) struct Queries<'a> {
    pub(crate) keys: PendingKeys<'a>,
    /// True if replicas may answer.
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

    fn process_answer(&mut self, i: usize, answer: Value, _: bool) -> Option<()> {
        let Value::BulkString(block) = answer else { return None };
        let found = self.keys.probes[i].1.all_set_in(&block);
        self.keys.answer(i, found);
        if found {
            self.keys.remember(i);
        }
        Some(())
    }
}

/// A job of arbitrary commands with the slots of their keys, which stores the answers.
pub(crate) struct Commands {
    commands: Vec<(u16, Cmd)>,
    pub(crate) answers: Vec<Value>,
    /// True if the effects have to reach replicas.
    replicas: bool,
}

impl Commands {
    pub(crate) fn new(commands: impl IntoIterator<Item = (u16, Cmd)>) -> Self {
        let commands: Vec<_> = commands.into_iter().collect();
        Self { answers: vec![Value::Nil; commands.len()], commands, replicas: false }
    }

    /// Makes the job repeat commands if a node fails before replicas have their effects.
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

    fn process_answer(&mut self, i: usize, answer: Value, _: bool) -> Option<()> {
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
