//! `Watch`: whether the filter on the servers is still the one that the client opened.
//!
//! A filter's description has a number of its own, `made`, and each shard ends in a mark: `made`, and a random number
//! that the first client to use the shard drew. Whoever removes a filter or loses a shard, the next one to make it
//! draws another number. docs/DESIGN.md says what follows.

use crate::error::RedisFilterError;
use crate::exchange::Job;
use crate::jobs::Commands;
use crate::meta;
use crate::packed::Sink;
use crate::shards::{Key, META, Shards};
use redis::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a client that is in use goes without a look.
const PERIOD: Duration = Duration::from_secs(1);

/// How many shards get their length in one job. Each keeps a server busy for some 10 ms.
const GROWING: usize = 16;

type Result<T> = std::result::Result<T, RedisFilterError>;

pub(crate) struct Watch {
    /// The key of the description.
    key: Key,
    /// The description, as it was when the filter was opened.
    line: Arc<[u8]>,
    made: u64,
    /// The mark of each shard, or 0 if no client that shares them has met one. Relaxed: each is set once.
    marks: Arc<[AtomicU64]>,
    /// The shards that were used since the last look.
    used: BTreeSet<usize>,
    /// When the last look was found good. The next use looks if there was none.
    looked: Option<Instant>,
    /// What a look found to be wrong, once and for all.
    wrong: Option<RedisFilterError>,
}

impl Watch {
    pub(crate) fn new(shards: &Shards, line: &[u8], made: u64) -> Self {
        let marks = shards.keys.iter().map(|_| AtomicU64::new(0)).collect();
        let (key, line) = (Key::new(&shards.name, META), line.into());
        Self { key, line, made, marks, used: BTreeSet::new(), looked: Some(Instant::now()), wrong: None }
    }

    /// For another client of the same filter.
    pub(crate) fn another(&self) -> Self {
        let Self { key, line, made, marks, .. } = self;
        let (key, line, marks) = (key.clone(), Arc::clone(line), Arc::clone(marks));
        Self { key, line, made: *made, marks, used: BTreeSet::new(), looked: None, wrong: None }
    }

    /// Fails if a look has found the filter to be gone or another.
    pub(crate) fn check(&self) -> Result<()> {
        self.wrong.clone().map_or(Ok(()), Err)
    }

    /// Jobs to run before these shards are first written to. They give each its whole length and its mark. A string
    /// that grows bit by bit is allocated with room to spare, up to a quarter of a shard.
    pub(crate) fn marking(&mut self, shards: &Shards, used: impl Iterator<Item = usize>) -> Vec<Marking> {
        let lacking: Vec<usize> =
            used.filter(|&shard| !self.knows(shard)).collect::<BTreeSet<_>>().into_iter().collect();
        if !lacking.is_empty() {
            // The mark tells that the shard is this filter's, and not that its description is there.
            self.looked = None;
        }
        let marking = |some: &[usize]| {
            let commands = some.iter().map(|&shard| shards.mark(shard, meta::new_mark(self.made)));
            Marking { shards: some.to_vec(), commands: Commands::new(commands).for_replicas() }
        };
        lacking.chunks(GROWING).map(marking).collect()
    }

    /// Takes the marks that shards have.
    pub(crate) fn take_marks(&mut self, shards: &Shards, marking: &Marking) -> Result<()> {
        for (&shard, answer) in marking.shards.iter().zip(&marking.commands.answers) {
            let mark = if let Value::Array(parts) = answer { parts.last() } else { None };
            let Some(&Value::Int(mark @ 1..)) = mark else {
                let key = &shards.keys[shard].name;
                let (node, message) = (format!("the server of {key}"), "it cannot mark a shard".to_owned());
                return Err(RedisFilterError::Refused { node, message });
            };
            self.compare(shards, shard, mark.cast_unsigned())?;
        }
        Ok(())
    }

    /// The look that follows the commands of a job, which use these shards. It is empty if none is due.
    pub(crate) fn look(&mut self, shards: &Shards, used: impl Iterator<Item = usize>) -> Look {
        self.used.extend(used);
        let due = !self.used.is_empty() && self.looked.is_none_or(|looked| looked.elapsed() >= PERIOD);
        if due {
            self.look_now(shards)
        } else {
            Look { started: None, shards: Vec::new(), commands: Commands::new([]) }
        }
    }

    /// Has the next look be at all shards of which a mark is known.
    pub(crate) fn use_all(&mut self) {
        let known: Vec<usize> = (0..self.marks.len()).filter(|&shard| self.knows(shard)).collect();
        self.used.extend(known);
    }

    /// Whether a client has met the mark of a shard.
    fn knows(&self, shard: usize) -> bool {
        self.marks[shard].load(Ordering::Relaxed) != 0
    }

    /// A look at the description and all shards that were used since the last look.
    pub(crate) fn look_now(&mut self, shards: &Shards) -> Look {
        let looked_at: Vec<(usize, bool)> = self.used.iter().map(|&shard| (shard, self.knows(shard))).collect();
        let marks = looked_at.iter().map(|&(shard, _)| shards.read_mark(shard));
        let commands = Commands::new(marks.chain([(self.key.slot, self.key.command("GET"))]));
        Look { started: Some(Instant::now()), shards: looked_at, commands }
    }

    /// Takes what a look has seen.
    pub(crate) fn judge(&mut self, shards: &Shards, look: &Look) -> Result<()> {
        let Some(started) = look.started else { return Ok(()) };
        let (line, marks) = look.commands.answers.split_last().expect("a look is at the description, too");
        let same = matches!(line, Value::BulkString(line) if **line == *self.line);
        if !same && *line != Value::Nil {
            return self.fail(|name, key| RedisFilterError::Replaced { name, key }, shards, &self.key.clone());
        }
        for (&(shard, known), mark) in look.shards.iter().zip(marks) {
            let bytes = if let Value::BulkString(bytes) = mark { &bytes[..] } else { &[] };
            let mark = bytes.try_into().map_or(0, u64::from_be_bytes);
            // Where a shard had no mark yet, another thread may have set one meanwhile.
            if known || mark != 0 {
                self.compare(shards, shard, mark)?;
            }
        }
        if !same {
            return self.fail(|name, key| RedisFilterError::Gone { name, key }, shards, &self.key.clone());
        }
        self.looked = Some(started);
        self.used.clear();
        Ok(())
    }

    /// Connections broke, or a job failed: the next use looks.
    pub(crate) fn doubt(&mut self) {
        self.looked = None;
    }

    /// Compares the mark that a shard has with the one that it had. 0 is no mark.
    fn compare(&mut self, shards: &Shards, shard: usize, mark: u64) -> Result<()> {
        if mark != 0 && !meta::is_of(mark, self.made) {
            return self.fail(|name, key| RedisFilterError::Replaced { name, key }, shards, &shards.keys[shard]);
        }
        let known = self.marks[shard].compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed);
        match known.map_or_else(|known| known, |_| mark) == mark {
            true => Ok(()),
            false => self.fail(|name, key| RedisFilterError::Gone { name, key }, shards, &shards.keys[shard]),
        }
    }

    fn fail(
        &mut self,
        error: impl FnOnce(String, String) -> RedisFilterError,
        shards: &Shards,
        key: &Key,
    ) -> Result<()> {
        let error = error(shards.name.clone(), key.name.clone());
        self.wrong = Some(error.clone());
        Err(error)
    }
}

/// Gives shards their length and their mark.
pub(crate) struct Marking {
    shards: Vec<usize>,
    pub(crate) commands: Commands,
}

/// A look at a filter.
pub(crate) struct Look {
    /// `None` if nothing is looked at.
    started: Option<Instant>,
    /// Each with whether its mark was known before.
    shards: Vec<(usize, bool)>,
    pub(crate) commands: Commands,
}

/// A job and then a look. A node gets the commands of the job first, so the look sees what they met.
pub(crate) struct Watched<'a, J> {
    pub(crate) job: &'a mut J,
    pub(crate) look: &'a mut Look,
}

impl<J: Job> Watched<'_, J> {
    /// The number of a command of the look.
    fn of_look(&self, i: usize) -> Option<usize> {
        i.checked_sub(self.job.len())
    }
}

impl<J: Job> Job for Watched<'_, J> {
    fn len(&self) -> usize {
        self.job.len() + self.look.commands.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.of_look(i).map_or_else(|| self.job.slot(i), |i| self.look.commands.slot(i))
    }

    fn write(&self, i: usize, sink: &mut impl Sink) {
        match self.of_look(i) {
            None => self.job.write(i, sink),
            Some(i) => self.look.commands.write(i, sink),
        }
    }

    /// A replica may lack what the client has seen at another node.
    fn may_ask_replica(&self, i: usize) -> bool {
        self.of_look(i).is_none() && self.job.may_ask_replica(i)
    }

    fn take(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
        match self.of_look(i) {
            None => self.job.take(i, answer, doubted),
            Some(i) => self.look.commands.take(i, answer, doubted),
        }
    }

    fn wants_replicas(&self, i: usize) -> bool {
        self.of_look(i).is_none() && self.job.wants_replicas(i)
    }

    fn holds(&self, i: usize, answer: &Value) -> bool {
        self.of_look(i).is_some() || self.job.holds(i, answer)
    }

    fn unconfirmed(&mut self, i: usize) {
        self.job.unconfirmed(i);
    }

    fn abandon(&mut self, i: usize, doubted: bool) {
        if self.of_look(i).is_none() {
            self.job.abandon(i, doubted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client looks at a shard before another client of the process gives it a mark, and takes the answer afterwards.
    #[test]
    fn a_mark_that_came_after_a_look_is_no_loss() {
        let shards = Shards::new("f", meta::size(64, 8, 0).plan().unwrap());
        let (line, made) = (&b"line"[..], meta::new_made());
        let mut first = Watch::new(&shards, line, made);
        let mut second = first.another();
        let answers = |mark: u64| {
            let mark = if mark == 0 { Vec::new() } else { mark.to_be_bytes().to_vec() };
            vec![Value::BulkString(mark), Value::BulkString(line.to_vec())]
        };
        let mut look = second.look(&shards, [0].into_iter());
        let mark = meta::new_mark(made);
        assert_eq!(first.compare(&shards, 0, mark), Ok(()));
        look.commands.answers = answers(0);
        assert_eq!(second.judge(&shards, &look), Ok(()));
        // The next one misses it.
        second.doubt();
        let mut look = second.look(&shards, [0].into_iter());
        look.commands.answers = answers(mark);
        assert_eq!(second.judge(&shards, &look), Ok(()));
        second.doubt();
        let mut look = second.look(&shards, [0].into_iter());
        look.commands.answers = answers(0);
        assert!(matches!(second.judge(&shards, &look), Err(RedisFilterError::Gone { .. })));
    }
}
