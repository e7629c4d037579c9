//! `Watch`: checks that the filter on the servers is still the one that the client opened.
//!
//! A filter's description has a random creation ID, and each shard has a mark: the creation ID, and a random number that the
//! first client of the shard drew. If a filter is removed or a shard is lost, the next client to create it draws
//! another number. crates/redis/DESIGN.md has the consequences.

use crate::error::RedisFilterError;
use crate::exchange::Job;
use crate::jobs::Commands;
use crate::meta;
use crate::nodes::{Nodes, Transport, UNLINK_BATCH};
use crate::packed::CommandSink;
use crate::scripts;
use crate::shards::{Key, META, Shards};
use redis::{Cmd, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The interval at which a client in use checks the filter.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The number of shards that are given their length in one job. Each keeps a server busy for some 10 ms.
const MARK_BATCH: usize = 16;

/// The number of shards that are sealed in one job.
const SEAL_BATCH: usize = 1024;

type Result<T> = std::result::Result<T, RedisFilterError>;

#[derive(Clone)]
pub(crate) struct Watch {
    shards: Arc<Shards>,
    /// The key of the description.
    key: Key,
    /// The description, as it was when the filter was opened.
    description: Arc<[u8]>,
    creation_id: u64,
    /// The key of the list of stages and the number of this stage, for a filter with stages.
    listed: Option<(Key, u64)>,
    /// The mark of each shard, or 0 if no client that shares them has seen one. Relaxed: each is set once.
    marks: Arc<[AtomicU64]>,
    /// The shards that were used since the last check.
    used: BTreeSet<usize>,
    /// The marks that this client set since the last successful check, by their shards, which had none.
    set_marks: BTreeMap<usize, u64>,
    /// The time of the last successful check. The next use checks if there was none.
    checked_at: Option<Instant>,
    /// The number of keys that were claimed since the last successful check, or a few more.
    pub(crate) claims: u64,
    /// The permanent failure that a check found.
    failure: Option<RedisFilterError>,
}

impl Watch {
    pub(crate) fn new(shards: &Arc<Shards>, description: &[u8], creation_id: u64, listed: Option<(Key, u64)>) -> Self {
        let marks = shards.keys.iter().map(|_| AtomicU64::new(0)).collect();
        let (shards, key, description) = (Arc::clone(shards), Key::new(&shards.name, META), description.into());
        let (used, set_marks, checked_at, claims, failure) = (BTreeSet::new(), BTreeMap::new(), None, 0, None);
        Self { shards, key, description, creation_id, listed, marks, used, set_marks, checked_at, claims, failure }
    }

    /// Returns the watch of another client of the same filter, with the time of its last check.
    pub(crate) fn for_new_client(&self, checked_at: Option<Instant>) -> Self {
        let (used, set_marks) = (BTreeSet::new(), BTreeMap::new());
        Self { used, set_marks, checked_at, claims: 0, failure: None, ..self.clone() }
    }

    /// Fails if a check has found the filter to be gone or replaced.
    pub(crate) fn ensure_valid(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Sets the full length and the mark of shards that are about to be written, unless their marks are known. A string that grows
    /// bit by bit would be allocated with spare memory, up to a quarter of a shard.
    pub(crate) async fn mark<T: Transport>(&mut self, nodes: &mut Nodes<T>, used: &[usize]) -> Result<()> {
        self.ensure_valid()?;
        let unmarked: BTreeSet<usize> = used.iter().copied().filter(|&shard| !self.knows_mark(shard)).collect();
        if !unmarked.is_empty() {
            // The next filter would find a mark of one that no longer exists.
            self.check_now(nodes).await?;
            // A mark does not show that the description still exists.
            self.checked_at = None;
        }
        for chunk in Vec::from_iter(unmarked).chunks(MARK_BATCH) {
            self.send_marks(nodes, chunk, Shards::mark).await?;
        }
        Ok(())
    }

    /// Runs a job that uses these shards, and checks the filter if that is due.
    pub(crate) async fn run<T: Transport>(
        &mut self,
        nodes: &mut Nodes<T>,
        job: &mut impl Job,
        used: &[usize],
    ) -> Result<()> {
        self.ensure_valid()?;
        let mut check = self.due_check(used, T::now());
        if nodes
            .run(&mut JobWithQuestions { job, questions: &mut check.commands })
            .await
            .inspect_err(|_| self.invalidate())?
        {
            self.evaluate(&check)
        } else {
            // Commands were sent again, perhaps to a server that was restarted without the filter.
            self.check_now(nodes).await
        }
    }

    /// Checks the description and all shards with a known mark.
    pub(crate) async fn check_all<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        self.ensure_valid()?;
        let to_check: Vec<usize> = (0..self.marks.len()).filter(|&shard| self.knows_mark(shard)).collect();
        self.used.extend(to_check);
        self.check_now(nodes).await
    }

    /// Checks the description and these shards.
    pub(crate) async fn check_shards<T: Transport>(
        &mut self,
        nodes: &mut Nodes<T>,
        shards: Range<usize>,
    ) -> Result<()> {
        self.ensure_valid()?;
        self.used.extend(shards);
        self.check_now(nodes).await
    }

    /// Checks at once.
    pub(crate) async fn check_now<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        let mut check = self.new_check(T::now());
        nodes.run(&mut check.commands).await.inspect_err(|_| self.invalidate())?;
        self.evaluate(&check)
    }

    /// Returns the check to run after a job that uses these shards, empty if none is due.
    fn due_check(&mut self, used: &[usize], now: Instant) -> StateCheck {
        self.used.extend(used);
        if !self.used.is_empty() && self.checked_at.is_none_or(|checked_at| now - checked_at >= CHECK_INTERVAL) {
            self.new_check(now)
        } else {
            StateCheck { started: None, shards: Vec::new(), commands: Commands::new([]) }
        }
    }

    /// True if the mark of a shard is known.
    fn knows_mark(&self, shard: usize) -> bool {
        self.mark_of(shard) != 0
    }

    /// Returns the mark of a shard, 0 if it is unknown.
    pub(crate) fn mark_of(&self, shard: usize) -> u64 {
        self.marks[shard].load(Ordering::Relaxed)
    }

    /// Returns the mark of each shard, 0 if it is unknown.
    pub(crate) fn marks(&self) -> Arc<[AtomicU64]> {
        Arc::clone(&self.marks)
    }

    /// Seals all shards, which voids later claims in them. Records their marks.
    pub(crate) async fn seal<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        self.ensure_valid()?;
        let all: Vec<usize> = (0..self.marks.len()).collect();
        for chunk in all.chunks(SEAL_BATCH) {
            self.send_marks(nodes, chunk, Shards::seal).await?;
        }
        Ok(())
    }

    /// Sends a command that sets the mark of each of these shards if it has none. Records the mark at the end of each answer.
    async fn send_marks<T: Transport>(
        &mut self,
        nodes: &mut Nodes<T>,
        shards: &[usize],
        command: fn(&Shards, usize, u64) -> (u16, Cmd),
    ) -> Result<()> {
        // The expiry of a shard directly follows its mark, so that a client that dies leaves no shard for ever.
        let commands = |&shard: &usize| {
            let mark = command(&self.shards, shard, meta::new_mark(self.creation_id));
            [Some(mark), self.shards.expire(shard)].into_iter().flatten()
        };
        let mut job = Commands::new(shards.iter().flat_map(commands)).for_replicas();
        nodes.run(&mut job).await?;
        let step = job.answers.len() / shards.len();
        for (&shard, answer) in shards.iter().zip(job.answers.iter().step_by(step)) {
            let parts = if let Value::Array(parts) = answer { &parts[..] } else { &[] };
            let [added, .., Value::Int(mark @ 1..)] = parts else {
                return Err(self.shards.keys[shard].refused("it cannot mark a shard"));
            };
            let mark = mark.cast_unsigned();
            if *added != Value::Nil {
                self.set_marks.insert(shard, mark);
            }
            if let Err(error) = self.compare(shard, mark) {
                // The description may have a more precise error.
                self.failure = None;
                self.used = BTreeSet::from([shard]);
                return self.check_now(nodes).await.and(Err(error));
            }
        }
        Ok(())
    }

    /// Creates a check of the description and all shards that were used since the last check.
    fn new_check(&self, now: Instant) -> StateCheck {
        let to_check: Vec<(usize, bool)> = self.used.iter().map(|&shard| (shard, self.knows_mark(shard))).collect();
        let marks = to_check.iter().map(|&(shard, _)| self.shards.read_mark(shard));
        let listed = self.listed.iter().map(|(list, number)| (list.slot, list.command("HEXISTS").arg(*number).take()));
        let commands = Commands::new(marks.chain(listed).chain([(self.key.slot, self.key.command("GET"))]));
        StateCheck { started: Some(now), shards: to_check, commands }
    }

    /// Evaluates a check.
    fn evaluate(&mut self, check: &StateCheck) -> Result<()> {
        let Some(started) = check.started else { return Ok(()) };
        let (description, marks) = check.commands.answers.split_last().expect("a check is at the description, too");
        let is_same = matches!(description, Value::BulkString(description) if **description == *self.description);
        if !is_same && *description != Value::Nil {
            return self.fail(|name, key| RedisFilterError::Replaced { name, key }, self.key.name.clone());
        }
        for (&(shard, known), mark) in check.shards.iter().zip(marks) {
            let mark = parse_mark(mark);
            if is_same && !known && mark != 0 && !meta::has_creation_id(mark, self.creation_id) {
                let key = self.shards.keys[shard].name.clone();
                return self.fail(|name, key| RedisFilterError::LeftOver { name, key }, key);
            }
            // If a shard had no mark at the check, another thread may have set one since.
            if known || mark != 0 {
                self.compare(shard, mark)?;
            }
        }
        if !is_same {
            return self.fail(|name, key| RedisFilterError::Gone { name, key }, self.key.name.clone());
        }
        // The shards exist, but no other client finds their stage.
        if let Some((list, _)) = self.listed.as_ref().filter(|_| marks.last() != Some(&Value::Int(1))) {
            let key = list.name.clone();
            return self.fail(|name, key| RedisFilterError::Gone { name, key }, key);
        }
        (self.checked_at, self.claims) = (Some(started), 0);
        self.used.clear();
        self.set_marks.clear();
        Ok(())
    }

    /// Removes the shards that this client recreated after the filter was removed: they have no mark, or one that the
    /// client set after its last successful check.
    pub(crate) async fn remove_recreated<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        let set_marks = mem::take(&mut self.set_marks);
        self.used.extend(set_marks.keys());
        let used = Vec::from_iter(mem::take(&mut self.used));
        for batch in used.chunks(UNLINK_BATCH) {
            let mut commands = Vec::new();
            for shard in batch {
                let (key, offset) = (&self.shards.keys[*shard], self.shards.mark_offset(*shard));
                commands.extend(
                    set_marks
                        .get(shard)
                        .map(|mark| scripts::remove_shard(key, offset, [*mark, mark | 1 << 63].map(u64::to_be_bytes))),
                );
                commands.push(match self.shards.may_be_sealed() {
                    true => scripts::remove_shard(key, offset, scripts::NO_MARK),
                    false => scripts::remove_unmarked(key),
                });
            }
            nodes.run(&mut Commands::new(commands)).await?;
        }
        Ok(())
    }

    /// Makes the next use check the filter, because a connection broke or a job failed.
    fn invalidate(&mut self) {
        self.checked_at = None;
    }

    /// Compares the mark of a shard with the known one. 0 means that the shard has no mark.
    fn compare(&mut self, shard: usize, mark: u64) -> Result<()> {
        if mark != 0 && !meta::has_creation_id(mark, self.creation_id) {
            return self
                .fail(|name, key| RedisFilterError::Replaced { name, key }, self.shards.keys[shard].name.clone());
        }
        let known = self.marks[shard].compare_exchange(0, mark, Ordering::Relaxed, Ordering::Relaxed);
        match known.map_or_else(|known| known, |_| mark) == mark {
            true => Ok(()),
            false => self.fail(|name, key| RedisFilterError::Gone { name, key }, self.shards.keys[shard].name.clone()),
        }
    }

    fn fail(&mut self, error: impl FnOnce(String, String) -> RedisFilterError, key: String) -> Result<()> {
        let error = error(self.shards.name.clone(), key);
        self.failure = Some(error.clone());
        Err(error)
    }
}

/// Returns the mark in an answer to the command that reads it, without the seal, which is its highest bit; 0 without a
/// mark.
pub(crate) fn parse_mark(answer: &Value) -> u64 {
    let bytes = if let Value::BulkString(bytes) = answer { &bytes[..] } else { &[] };
    bytes.try_into().map_or(0, u64::from_be_bytes) & (u64::MAX >> 1)
}

/// A check of a filter: its commands, and the state before it.
struct StateCheck {
    /// `None` if nothing is checked.
    started: Option<Instant>,
    /// The shards, each with true if its mark was known before.
    shards: Vec<(usize, bool)>,
    commands: Commands,
}

/// A job followed by questions. A node gets the commands of the job first, so a check sees their effects.
pub(crate) struct JobWithQuestions<'a, J> {
    pub(crate) job: &'a mut J,
    pub(crate) questions: &'a mut Commands,
}

impl<J: Job> JobWithQuestions<'_, J> {
    /// Returns the index of a question, or `None` for a command of the job.
    fn question_index(&self, i: usize) -> Option<usize> {
        i.checked_sub(self.job.len())
    }
}

impl<J: Job> Job for JobWithQuestions<'_, J> {
    fn len(&self) -> usize {
        self.job.len() + self.questions.len()
    }

    fn slot(&self, i: usize) -> u16 {
        self.question_index(i).map_or_else(|| self.job.slot(i), |i| self.questions.slot(i))
    }

    fn write(&self, i: usize, sink: &mut impl CommandSink) {
        match self.question_index(i) {
            None => self.job.write(i, sink),
            Some(i) => self.questions.write(i, sink),
        }
    }

    /// False for questions, because a replica may lack what the client has seen at another node.
    fn may_ask_replica(&self, i: usize) -> bool {
        self.question_index(i).is_none() && self.job.may_ask_replica(i)
    }

    fn process_answer(&mut self, i: usize, answer: Value, doubted: bool) -> Option<()> {
        match self.question_index(i) {
            None => self.job.process_answer(i, answer, doubted),
            Some(i) => self.questions.process_answer(i, answer, doubted),
        }
    }

    fn wants_replicas(&self, i: usize) -> bool {
        self.question_index(i).is_none() && self.job.wants_replicas(i)
    }

    fn holds(&self, i: usize, answer: &Value) -> bool {
        self.question_index(i).is_some() || self.job.holds(i, answer)
    }

    fn unconfirmed(&mut self, i: usize) {
        self.job.unconfirmed(i);
    }

    fn abandon(&mut self, i: usize, doubted: bool) {
        if self.question_index(i).is_none() {
            self.job.abandon(i, doubted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client checks a shard before another client of the process sets its mark, and evaluates the answer afterwards.
    #[test]
    fn a_mark_set_after_a_check_is_not_a_loss() {
        let shards = Arc::new(Shards::new("f", meta::local_builder(64, 8, 0).plan().unwrap()));
        let (description, creation_id) = (&b"line"[..], meta::new_creation_id());
        let mut first = Watch::new(&shards, description, creation_id, None);
        let mut second = first.for_new_client(None);
        let answers = |mark: u64| {
            let mark = if mark == 0 { Vec::new() } else { mark.to_be_bytes().to_vec() };
            vec![Value::BulkString(mark), Value::BulkString(description.to_vec())]
        };
        let mut check = second.due_check(&[0], Instant::now());
        let mark = meta::new_mark(creation_id);
        assert_eq!(first.compare(0, mark), Ok(()));
        check.commands.answers = answers(0);
        assert_eq!(second.evaluate(&check), Ok(()));
        // The next check finds the mark missing.
        second.invalidate();
        let mut check = second.due_check(&[0], Instant::now());
        check.commands.answers = answers(mark);
        assert_eq!(second.evaluate(&check), Ok(()));
        second.invalidate();
        let mut check = second.due_check(&[0], Instant::now());
        check.commands.answers = answers(0);
        assert!(matches!(second.evaluate(&check), Err(RedisFilterError::Gone { .. })));
    }
}
