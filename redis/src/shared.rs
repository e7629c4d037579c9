//! `SharedFilter`: a filter on servers, over any transport. [`RedisBloomFilter`](crate::RedisBloomFilter) and
//! `AsyncRedisBloomFilter` document its methods.

use crate::error::RedisFilterError;
use crate::jobs::{Asked, Claims, Commands, Queries};
use crate::kinds::{Kind, Stages};
use crate::listing::{RedisServerStats, evicting};
use crate::meta::{self, Described};
use crate::metrics::RedisFilterMetrics;
use crate::nodes::{Nodes, Transport};
use crate::removal::{remove, unlink};
use crate::repeats::Repeats;
use crate::row::{self, Row};
use crate::server::RedisServer;
use crate::shards::{BLOCK_BYTES, Key, META, Shards, check_name, word_of};
use crate::stats::{RedisFilterStats, count};
use crate::watch::Beside;
use bloomline::{BloomFilter, BuildError, KeyHasher, MergeError, Plan};
use redis::{Cmd, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use std::{array, fmt, mem};

/// Hashes that go to the servers together. Each is some 300 bytes on the way, and the servers keep the answers until
/// they are fetched.
const ROUND_TRIP: usize = 4096;

/// How long the copy of a shard that is uploaded lives, in seconds, if its client dies.
const COPY_LIFE: u64 = 600;

type Result<T, E = RedisFilterError> = std::result::Result<T, E>;

pub(crate) struct SharedFilter<T> {
    pub(crate) hasher: KeyHasher,
    row: Row,
    uncertain: u64,
    pub(crate) unconfirmed: u64,
    /// The hashes that the call under way has claimed or may have. Those of a call that was dropped are left here.
    unanswered: Vec<u64>,
    /// Hashes that a dropped call may have claimed. Whoever inserts them through this client next is told that they are new.
    given_back: HashSet<u64>,
    repeats: Repeats,
    metrics: RedisFilterMetrics,
    nodes: Nodes<T>,
}

impl<T: Transport> SharedFilter<T> {
    /// Opens a filter. If there is none and one is `wanted`, creates it.
    pub(crate) async fn open(server: &RedisServer, name: &str, wanted: Option<Described>) -> Result<Self> {
        check_name(name)?;
        let mut nodes = Nodes::connect(server).await?;
        let (row, hasher) = Self::find(&mut nodes, name, wanted).await?;
        Ok(Self::with(nodes, row, hasher))
    }

    /// Becomes a client of another filter, with the same connections. After an error it stays what it is.
    pub(crate) async fn turn_to(&mut self, name: &str) -> Result<()> {
        check_name(name)?;
        let (row, hasher) = Self::find(&mut self.nodes, name, None).await?;
        let nodes = self.nodes.another();
        let nodes = mem::replace(&mut self.nodes, nodes);
        *self = Self::with(nodes, row, hasher);
        Ok(())
    }

    async fn find(nodes: &mut Nodes<T>, name: &str, wanted: Option<Described>) -> Result<(Row, KeyHasher)> {
        let key = Key::new(name, META);
        let first = Key::new(name, 0);
        // Reads only, for most clients open a filter that is there.
        let end = first.command("GETRANGE").arg(-8).arg(-1).take();
        let look = [(key.slot, key.command("GET")), (first.slot, first.command("STRLEN")), (first.slot, end)];
        let mut job = Commands::new(look);
        nodes.run(&mut job).await?;
        let [mut line, length, end] = <[Value; 3]>::try_from(job.answers).expect("an answer to each");
        let staged = wanted.as_ref().is_some_and(|wanted| matches!(wanted.kind, Kind::Staged(_)));
        if line == Value::Nil
            && (meta::is_marked(&length, &end) || staged && row::keys_of(nodes, name).await?.len() > 1)
        {
            // Somebody may have made it in between.
            line = read(nodes, &key, None).await?;
            if line == Value::Nil {
                return Err(RedisFilterError::Remains { name: name.to_owned() });
            }
        }
        if let (Value::Nil, Some(wanted)) = (&line, &wanted) {
            line = read(nodes, &key, Some(meta::encode(wanted))).await?;
        }
        let Value::BulkString(line) = line else {
            return Err(RedisFilterError::NotFound { name: name.to_owned() });
        };
        let found = meta::decode(name, &key.name, &line)?;
        if let Some(wanted) = wanted {
            meta::check_same(name, &wanted, &found)?;
        }
        let row = Row::open(nodes, name, &found, &line).await?;
        Ok((row, found.hasher))
    }

    /// A client that has claimed nothing.
    fn with(mut nodes: Nodes<T>, row: Row, hasher: KeyHasher) -> Self {
        nodes.sent_again = 0;
        let (unanswered, given_back, repeats) = (Vec::new(), HashSet::new(), Repeats::new());
        let metrics = RedisFilterMetrics::default();
        Self { hasher, row, uncertain: 0, unconfirmed: 0, unanswered, given_back, repeats, metrics, nodes }
    }

    /// Removes whatever the servers have of a filter. Returns whether they had anything.
    pub(crate) async fn remove(server: &RedisServer, name: &str) -> Result<bool> {
        check_name(name)?;
        let mut nodes = Nodes::<T>::connect(server).await?;
        let key = Key::new(name, META);
        // The shards that the description tells of, if there is one that can be read.
        let kind = match read(&mut nodes, &key, None).await {
            Ok(Value::BulkString(line)) => meta::decode(name, &key.name, &line).ok().map(|filter| filter.kind),
            _ => None,
        };
        remove(&mut nodes, name, kind).await
    }

    /// The same filter for another client. They share the mirror.
    fn with_nodes(&self, nodes: Nodes<T>) -> Self {
        Self::with(nodes, self.row.another(), self.hasher.clone())
    }

    /// The same filter for another client with connections of its own.
    pub(crate) fn another(&self) -> Self {
        self.with_nodes(self.nodes.another())
    }

    pub(crate) fn with_mirror(mut self, limit: usize) -> Result<Self, BuildError> {
        self.row = self.row.with_mirror(limit)?;
        Ok(self)
    }

    pub(crate) fn name(&self) -> &str {
        &self.row.name
    }

    pub(crate) fn stages(&self) -> Option<Stages> {
        self.row.staged()
    }

    pub(crate) fn plan(&self) -> Plan {
        self.row.plan()
    }

    /// The blocks of a filter of a fixed size.
    fn fixed(&self) -> Result<Arc<Shards>> {
        match self.row.kind {
            Kind::Fixed(_) => Ok(Arc::clone(&self.row.parts[0].shards)),
            Kind::Staged(_) => Err(RedisFilterError::Stages { name: self.name().to_owned() }),
        }
    }

    pub(crate) async fn insert<K: bloomline::Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        let mut new = [false];
        let result = self.insert_hashes(&[key.hash_with(&self.hasher)], &mut new).await;
        if new[0] {
            // The key is claimed whatever went wrong. If the error lasts, the next call meets it.
            return Ok(true);
        }
        result.map(|_| false)
    }

    pub(crate) async fn contains<K: bloomline::Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        let mut found = [false];
        self.contains_hashes(&[key.hash_with(&self.hasher)], &mut found).await?;
        Ok(found[0])
    }

    pub(crate) async fn insert_batch<K: bloomline::Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<usize> {
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(&self.hasher)).collect();
        self.insert_hashes(&hashes, new).await
    }

    pub(crate) async fn contains_batch<K: bloomline::Key>(&mut self, keys: &[K], found: &mut [bool]) -> Result<usize> {
        let hashes: Vec<u64> = keys.iter().map(|key| key.hash_with(&self.hasher)).collect();
        self.contains_hashes(&hashes, found).await
    }

    /// The claims that are in doubt, those of a call that was dropped included.
    pub(crate) fn uncertain(&self) -> u64 {
        self.uncertain + self.unanswered.len() as u64
    }

    pub(crate) fn metrics(&mut self) -> RedisFilterMetrics {
        RedisFilterMetrics {
            uncertain: self.uncertain(),
            unconfirmed: self.unconfirmed,
            sent_again: self.nodes.sent_again,
            ..self.metrics.take()
        }
    }

    pub(crate) async fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize> {
        check_lengths(hashes.len(), new.len());
        // After an error, the portions that were not sent are not claimed.
        new.fill(false);
        // The call before was dropped if it left any.
        self.uncertain = self.uncertain();
        self.given_back.extend(self.unanswered.drain(..));
        let inserted = self.claim(hashes, new).await;
        self.unanswered.clear();
        inserted.inspect_err(|error| self.uncertain += self.row.unlisted(error))
    }

    async fn claim(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize> {
        let mut done = 0;
        while done < hashes.len() {
            self.row.keep_up(&mut self.nodes).await?;
            let portion = done..hashes.len().min(done + ROUND_TRIP.min(self.row.room()));
            done = portion.end;
            let (hashes, new) = (&hashes[portion.clone()], &mut new[portion]);
            let mut seen = vec![false; hashes.len()];
            self.row.ask_mirrors(hashes, &mut seen);
            // Of equal hashes, no other than the first can be new.
            let mut met = HashSet::with_capacity(hashes.len());
            let mut open: Vec<usize> = (0..hashes.len()).filter(|&i| !seen[i] && met.insert(hashes[i])).collect();
            let (keys, answered, started) = (open.len(), self.unanswered.len(), Instant::now());
            let mut late = false;
            let claimed = self.claim_portion(hashes, &mut open, &mut late, &mut seen, new).await;
            if claimed.is_err() && late {
                // They have set bits in a stage that counts no more, and nobody else will be told that these keys are new.
                for i in open.into_iter().filter(|&i| !seen[i]) {
                    self.uncertain += u64::from(!new[i]);
                    new[i] = true;
                }
            }
            self.unanswered.truncate(answered);
            if !self.given_back.is_empty() {
                for (hash, new) in hashes.iter().zip(&mut *new) {
                    let given = self.given_back.remove(hash);
                    self.metrics.given_back += u64::from(given);
                    *new |= given;
                }
            }
            if keys > 0 {
                self.metrics.took(started.elapsed());
            }
            self.unanswered.extend(hashes.iter().zip(&*new).filter(|(_, new)| **new).map(|(hash, _)| hash));
            self.row.last().watch.claims += new.iter().filter(|new| **new).count() as u64;
            claimed?;
            let claimed = new.iter().filter(|new| **new).count();
            self.repeats.take(keys, claimed);
            // If it fails, the next claims find what is to be done.
            _ = self.row.take(&mut self.nodes, claimed).await;
        }
        Ok(new.iter().filter(|new| **new).count())
    }

    /// Claims the hashes that are `open`. After an error these are left, and if they are `late`, those that are not seen have set
    /// bits.
    async fn claim_portion(
        &mut self,
        hashes: &[u64],
        open: &mut Vec<usize>,
        late: &mut bool,
        seen: &mut [bool],
        new: &mut [bool],
    ) -> Result<()> {
        let answered = self.unanswered.len();
        // Up to this stage, the keys that are open were asked for or are late.
        let (mut asked, mut passes) = (None, 0);
        while !open.is_empty() {
            let number = self.row.last().number;
            // What is in a stage that takes no more keys was claimed there.
            let mut stages = self.row.after(asked);
            if !self.repeats.are_worth_a_read(open.len()) {
                stages.pop();
            }
            self.ask(stages, hashes, open, seen, false, &mut Commands::new([])).await?;
            let Self { row, unanswered, nodes, .. } = self;
            let part = row.last();
            if part.number != number || open.is_empty() {
                continue;
            }
            let (shards, mirror) = (Arc::clone(&part.shards), part.mirror.clone());
            let mut job = Claims::new(Asked::new(&shards, mirror.as_deref(), hashes, open, new), part.watch.marks());
            let used = job.asked.used();
            let marked = part.watch.mark(nodes, &used).await;
            row.unless_forgotten(nodes, number, marked).await?;
            let part = row.last();
            if part.number != number {
                continue;
            }
            unanswered.truncate(answered);
            unanswered.extend(job.asked.claimed().chain(open.iter().map(|&i| hashes[i])));
            let mut result = part.watch.run(nodes, &mut job, &used).await;
            asked = Some(number);
            let Claims { late: mut again, there, strange, uncertain, unconfirmed, .. } = job;
            self.uncertain += uncertain;
            self.unconfirmed += unconfirmed;
            // The process may have stood still between the last look at the stages and the claims. Where no claim is fast enough,
            // they count.
            passes += 1;
            let outdated = passes < 3 && row.is_outdated::<T>(number);
            if let (Some(shard), Ok(())) = (strange, &result) {
                let (name, key) = (row.name.to_string(), shards.keys[shard].name.clone());
                // What these claims have made again would stay, where another client does not find it either.
                let expiries = used.iter().filter_map(|&shard| shards.expire(shard));
                nodes.run(&mut Commands::new(expiries)).await?;
                result = row.last().watch.look_again(nodes).await.and(Err(RedisFilterError::Gone { name, key }));
            }
            there.iter().for_each(|&i| seen[i] = true);
            let all = open.clone();
            // All that were late before are so until they are answered, whatever becomes of the others.
            if !again.is_empty() && !*late {
                (*open, *late) = (again.clone(), true);
            }
            row.unless_forgotten(nodes, number, result).await?;
            if outdated {
                *late = true;
                row.load(nodes).await?;
                again.extend(all.iter().filter(|&&i| new[i]));
            }
            if row.find(number).is_none() {
                // It was not asked any more, and what it answered says nothing. Its shards may have come back by these claims.
                all.iter().for_each(|&i| seen[i] = false);
                again = all;
                let keys = used.iter().map(|&shard| shards.keys[shard].clone());
                unlink(nodes, keys).await?;
            }
            if again.is_empty() {
                return Ok(());
            }
            again.iter().for_each(|&i| new[i] = false);
            (*open, *late) = (again, true);
            row.advance(nodes, number).await?;
        }
        Ok(())
    }

    /// Asks stages for the hashes that are `open`, the newest first, and takes those from them that are found. `more` goes with the
    /// first.
    async fn ask(
        &mut self,
        stages: Vec<u64>,
        hashes: &[u64],
        open: &mut Vec<usize>,
        found: &mut [bool],
        replicas: bool,
        more: &mut Commands,
    ) -> Result<()> {
        let Self { row, nodes, .. } = self;
        let (mut first, mut nothing) = (Some(more), Commands::new([]));
        for number in stages.into_iter().rev() {
            let Some(part) = row.find(number).filter(|_| !open.is_empty()) else { continue };
            let (shards, mirror) = (Arc::clone(&part.shards), part.mirror.clone());
            let asked = Asked::new(&shards, mirror.as_deref(), hashes, open, found);
            let used = asked.used();
            let questions = first.take().unwrap_or(&mut nothing);
            let mut job = Beside { job: &mut Queries { asked, replicas }, questions };
            let result = part.watch.run(nodes, &mut job, &used).await;
            row.unless_forgotten(nodes, number, result).await?;
            open.retain(|&i| !found[i]);
        }
        Ok(())
    }

    pub(crate) async fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize> {
        check_lengths(hashes.len(), found.len());
        for (hashes, found) in hashes.chunks(ROUND_TRIP).zip(found.chunks_mut(ROUND_TRIP)) {
            self.row.keep_up(&mut self.nodes).await?;
            self.row.ask_mirrors(hashes, found);
            let mut open: Vec<usize> = (0..hashes.len()).filter(|&i| !found[i]).collect();
            let (mut asked, asking, started) = (None, !open.is_empty(), Instant::now());
            while !open.is_empty() {
                let (stages, last) = (self.row.after(asked), self.row.last().number);
                let mut more = self.row.ask_for_more();
                self.ask(stages, hashes, &mut open, found, true, &mut more).await?;
                if more.answers.first() == Some(&Value::Int(1)) {
                    self.row.load(&mut self.nodes).await?;
                }
                // What was inserted before the call is in these stages, unless there is another.
                if self.row.last().number == last {
                    break;
                }
                asked = Some(last);
            }
            if asking {
                self.metrics.took(started.elapsed());
            }
        }
        Ok(found.iter().filter(|found| **found).count())
    }

    /// Opens another stage, as if the last one were full.
    #[cfg(test)]
    pub(crate) async fn grow(&mut self) -> Result<()> {
        let number = self.row.last().number;
        self.row.advance(&mut self.nodes, number).await
    }

    pub(crate) async fn check(&mut self) -> Result<()> {
        self.look().await.inspect_err(|error| self.uncertain += self.row.unlisted(error))
    }

    async fn look(&mut self) -> Result<()> {
        let Self { row, nodes, .. } = self;
        if let Kind::Staged(_) = row.kind {
            row.load(nodes).await?;
        }
        for number in row.after(None) {
            let Some(part) = row.find(number) else { continue };
            let looked = part.watch.look_at_all(nodes, false).await;
            row.unless_forgotten(nodes, number, looked).await?;
        }
        Ok(())
    }

    pub(crate) async fn evicts(&mut self) -> Option<String> {
        let answers = self.nodes.ask_each(redis::cmd("INFO").arg("memory")).await;
        answers.into_iter().find_map(|(node, answer)| evicting(&node, &answer))
    }

    pub(crate) async fn servers(&mut self) -> Vec<RedisServerStats> {
        let answers = self.nodes.ask_each(redis::cmd("INFO").arg("all")).await;
        answers.iter().filter_map(|(node, answer)| RedisServerStats::of(node, answer)).collect()
    }

    pub(crate) async fn stats(&mut self) -> Result<RedisFilterStats> {
        let Self { row, nodes, .. } = self;
        if let Kind::Staged(_) = row.kind {
            row.load(nodes).await?;
        }
        let mut stats = Vec::new();
        for number in row.after(None) {
            let Some(part) = row.find(number) else { continue };
            let counted = count(part, nodes).await;
            let result = counted.as_ref().map(drop).map_err(Clone::clone);
            row.unless_forgotten(nodes, number, result).await?;
            stats.extend(counted);
        }
        let stats = RedisFilterStats::of(&stats);
        self.metrics.fill_ratio = Some(stats.fill_ratio);
        Ok(stats)
    }

    pub(crate) async fn download(&mut self) -> Result<BloomFilter> {
        let shards = self.fixed()?;
        self.row.last().watch.check()?;
        let mut filter = meta::local(shards.plan, self.hasher.seed())?;
        for (shard, key) in shards.keys.iter().enumerate() {
            for (offset, blocks) in shards.pieces(shard) {
                let length = blocks.len() * BLOCK_BYTES;
                let command = key.command("GETRANGE").arg(offset).arg(offset + length - 1).take();
                let bytes = match run(&mut self.nodes, key, command).await? {
                    // A server that sends more than it was asked for did not understand the command.
                    Value::BulkString(bytes) if bytes.len() <= length => bytes,
                    _ => return Err(key.refused("its answer makes no sense")),
                };
                let mut words = bytes.chunks(8).map(word_of);
                for block in blocks {
                    filter.set_block_words(block, array::from_fn(|_| words.next().unwrap_or(0)));
                }
            }
        }
        // A filter that is lost looks empty.
        self.check().await?;
        Ok(filter)
    }

    pub(crate) async fn upload(&mut self, filter: &BloomFilter) -> Result<()> {
        let shards = self.fixed()?;
        let Self { row, hasher, nodes, .. } = self;
        let watch = &mut row.last().watch;
        check_same(shards.plan, hasher, filter)?;
        let unique = meta::unique();
        for (shard, key) in shards.keys.iter().enumerate() {
            let words = shards.blocks(shard).flat_map(|block| filter.block_words(block));
            let ones: i64 = words.map(|word| i64::from(word.count_ones())).sum();
            if ones == 0 {
                continue;
            }
            watch.mark(nodes, &[shard]).await?;
            let copy = shards.temporary(shard, unique);
            // Before the first piece: whoever dies after it leaves nothing for good.
            run(nodes, &copy, copy.command("SET").arg("").arg("EX").arg(COPY_LIFE).take()).await?;
            for (offset, blocks) in shards.pieces(shard) {
                let bytes: Vec<u8> =
                    blocks.flat_map(|block| filter.block_words(block)).flat_map(u64::to_le_bytes).collect();
                run(nodes, &copy, copy.command("SETRANGE").arg(offset).arg(bytes).take()).await?;
                // After each piece: if the server lost the copy meanwhile, this piece began a copy without an end.
                run(nodes, &copy, copy.command("EXPIRE").arg(COPY_LIFE).take()).await?;
            }
            if run(nodes, &copy, copy.command("BITCOUNT")).await? != Value::Int(ones) {
                return Err(key.refused("the copy to merge lost a part; upload again"));
            }
            let merge = redis::cmd("BITOP").arg("OR").arg(&key.name).arg(&key.name).arg(&copy.name).take();
            run(nodes, key, merge).await?;
            run(nodes, &copy, copy.command("UNLINK")).await?;
        }
        // A shard that was lost meanwhile has what was uploaded, and nothing else.
        self.check().await
    }

    pub(crate) async fn delete(mut self) -> Result<()> {
        remove(&mut self.nodes, &self.row.name, Some(self.row.kind)).await.map(drop)
    }

    /// Writes the filter as the public type of this name.
    pub(crate) fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan();
        f.debug_struct(name)
            .field("name", &self.name())
            .field("block_count", &plan.block_count())
            .field("probes", &plan.probes())
            .field("mirror", &self.row.mirrored)
            .field("uncertain", &self.uncertain())
            .field("unconfirmed", &self.unconfirmed)
            .finish_non_exhaustive()
    }
}

/// The documented panic of every batch call.
fn check_lengths(keys: usize, answers: usize) {
    assert!(keys == answers, "a batch of {keys} keys needs as many answers, not {answers}");
}

/// Refuses a local filter that has other bits.
fn check_same(plan: Plan, hasher: &KeyHasher, filter: &BloomFilter) -> Result<(), MergeError> {
    let (blocks, probes) = (plan.block_count(), plan.probes());
    if blocks != filter.block_count() {
        return Err(MergeError::Blocks { ours: blocks, theirs: filter.block_count() });
    }
    if probes != filter.probes() {
        return Err(MergeError::Probes { ours: probes, theirs: filter.probes() });
    }
    if hasher.seed() != filter.seed() { Err(MergeError::Seed) } else { Ok(()) }
}

/// Shares the connections too.
impl<T: Transport + Clone> Clone for SharedFilter<T> {
    fn clone(&self) -> Self {
        self.with_nodes(self.nodes.clone())
    }
}

/// The line of a filter, which is set first if there is none.
async fn read<T: Transport>(nodes: &mut Nodes<T>, key: &Key, line: Option<String>) -> Result<Value> {
    let set = line.map(|line| key.command("SET").arg(line).arg("NX").take());
    let commands = set.into_iter().chain([key.command("GET")]);
    let mut job = Commands::new(commands.map(|command| (key.slot, command)));
    nodes.run(&mut job).await?;
    Ok(job.answers.pop().expect("it was asked for"))
}

/// Runs one command about a key. Returns its answer.
async fn run<T: Transport>(nodes: &mut Nodes<T>, key: &Key, command: Cmd) -> Result<Value> {
    let mut job = Commands::new([(key.slot, command)]);
    nodes.run(&mut job).await?;
    Ok(job.answers.remove(0))
}
