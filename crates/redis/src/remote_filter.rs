//! `RemoteFilter`: a filter on servers, over any transport. [`RedisBloomFilter`](crate::RedisBloomFilter) and
//! `AsyncRedisBloomFilter` document its methods.

use crate::delete::remove;
use crate::duplicates::DuplicateTracker;
use crate::error::RedisFilterError;
use crate::jobs::{Claims, Commands, PendingKeys, Queries};
use crate::kinds::{FilterKind, Stages};
use crate::meta::{self, FilterMeta};
use crate::metrics::RedisFilterMetrics;
use crate::nodes::{Nodes, Transport};
use crate::scan::{RedisServerStats, eviction_policy};
use crate::server::RedisServer;
use crate::shards::{BLOCK_BYTES, KINDS, Key, META, Shards, check_name, word_from_le};
use crate::stage_chain::{self, StageChain};
use crate::stats::{RedisFilterStats, count};
use crate::watch::JobWithQuestions;
use bloomline::{BloomFilter, BuildError, KeyHasher, MergeError, Plan};
use redis::{Cmd, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use std::{array, fmt, mem};

/// The number of hashes that are sent to the servers together. Each is some 300 bytes in the commands, and the servers
/// keep the answers until they are fetched.
const BATCH_KEYS: usize = 4096;

/// The lifetime of an uploaded copy of a shard in seconds, if its client dies.
const COPY_TTL_SECONDS: u64 = 600;

type Result<T, E = RedisFilterError> = std::result::Result<T, E>;

pub(crate) struct RemoteFilter<T> {
    pub(crate) hasher: KeyHasher,
    chain: StageChain,
    uncertain: u64,
    pub(crate) unconfirmed: u64,
    /// The hashes that the call in progress has claimed or may have claimed. A dropped call leaves its hashes here.
    unanswered: Vec<u64>,
    /// Hashes that a dropped call may have claimed. The next insert of one through this client reports it as new.
    given_back: HashSet<u64>,
    duplicates: DuplicateTracker,
    metrics: RedisFilterMetrics,
    nodes: Nodes<T>,
}

impl<T: Transport> RemoteFilter<T> {
    /// Opens a filter. If it does not exist and `requested` is given, creates it.
    pub(crate) async fn open(server: &RedisServer, name: &str, requested: Option<FilterMeta>) -> Result<Self> {
        check_name(name)?;
        let mut nodes = Nodes::connect(server).await?;
        let (chain, hasher) = Self::find(&mut nodes, name, requested).await?;
        Ok(Self::with(nodes, chain, hasher))
    }

    /// Switches to another filter with the same connections. After an error this is still the previous filter.
    pub(crate) async fn switch_to(&mut self, name: &str) -> Result<()> {
        check_name(name)?;
        let (chain, hasher) = Self::find(&mut self.nodes, name, None).await?;
        let nodes = self.nodes.with_new_connections();
        let nodes = mem::replace(&mut self.nodes, nodes);
        *self = Self::with(nodes, chain, hasher);
        Ok(())
    }

    async fn find(nodes: &mut Nodes<T>, name: &str, requested: Option<FilterMeta>) -> Result<(StageChain, KeyHasher)> {
        let key = Key::new(name, META);
        let shard = Key::new(name, 0);
        // Reads first, because most clients open an existing filter.
        let last_bytes = shard.command("GETRANGE").arg(-8).arg(-1).take();
        let commands =
            [(key.slot, key.command("GET")), (shard.slot, shard.command("STRLEN")), (shard.slot, last_bytes)];
        let mut job = Commands::new(commands);
        nodes.run(&mut job).await?;
        let [mut line, length, last_bytes] = <[Value; 3]>::try_from(job.answers).expect("an answer to each");
        let staged = requested.as_ref().is_some_and(|requested| matches!(requested.kind, FilterKind::Staged(_)));
        if line == Value::Nil
            && (meta::is_marked(&length, &last_bytes)
                || staged && stage_chain::read_list(nodes, name).await?.1 != Value::Array(Vec::new()))
        {
            // Another client may have created it in between.
            line = read(nodes, &key, None).await?;
            if line == Value::Nil {
                return Err(RedisFilterError::Remains { name: name.to_owned() });
            }
        }
        if let (Value::Nil, Some(requested)) = (&line, &requested) {
            line = read(nodes, &key, Some(meta::encode(requested))).await?;
        }
        let Value::BulkString(line) = line else {
            return Err(RedisFilterError::NotFound { name: name.to_owned() });
        };
        let found = meta::decode(name, &key.name, &line)?;
        if let Some(requested) = requested {
            meta::check_same(name, &requested, &found)?;
        }
        let chain = StageChain::open(nodes, name, &found, &line).await?;
        Ok((chain, found.hasher))
    }

    /// Creates a client that has claimed nothing.
    fn with(mut nodes: Nodes<T>, chain: StageChain, hasher: KeyHasher) -> Self {
        nodes.sent_again = 0;
        let (unanswered, given_back, duplicates) = (Vec::new(), HashSet::new(), DuplicateTracker::new());
        let metrics = RedisFilterMetrics::default();
        Self { hasher, chain, uncertain: 0, unconfirmed: 0, unanswered, given_back, duplicates, metrics, nodes }
    }

    /// Removes all remains of a filter. Returns true if there were any.
    pub(crate) async fn remove(server: &RedisServer, name: &str) -> Result<bool> {
        check_name(name)?;
        let mut nodes = Nodes::<T>::connect(server).await?;
        let key = Key::new(name, META);
        let kind = match read(&mut nodes, &key, None).await {
            // All keys under the name of a description that this build cannot read are removed too.
            Ok(Value::BulkString(line)) => meta::decode(name, &key.name, &line).ok().map(|filter| filter.kind),
            Ok(_) | Err(RedisFilterError::NotBloomline { .. }) => None,
            Err(error) => return Err(error),
        };
        remove(&mut nodes, name, kind).await
    }

    /// Returns another client of the filter, which shares the mirror.
    fn with_nodes(&self, nodes: Nodes<T>) -> Self {
        Self::with(nodes, self.chain.for_new_client(), self.hasher.clone())
    }

    /// Returns another client of the filter with connections of its own.
    pub(crate) fn new_client(&self) -> Self {
        self.with_nodes(self.nodes.with_new_connections())
    }

    pub(crate) fn with_mirror(mut self, limit: usize) -> Result<Self, BuildError> {
        self.chain = self.chain.with_mirror(limit)?;
        Ok(self)
    }

    pub(crate) fn name(&self) -> &str {
        &self.chain.name
    }

    pub(crate) fn stages(&self) -> Option<Stages> {
        self.chain.staged()
    }

    pub(crate) fn plan(&self) -> Plan {
        self.chain.plan()
    }

    /// Returns the shards of a filter of a fixed size.
    fn fixed(&self) -> Result<Arc<Shards>> {
        match self.chain.kind {
            FilterKind::Fixed(_) => Ok(Arc::clone(&self.chain.known_stages[0].shards)),
            FilterKind::Staged(_) => Err(RedisFilterError::Stages { name: self.name().to_owned() }),
        }
    }

    pub(crate) async fn insert<K: bloomline::Key + ?Sized>(&mut self, key: &K) -> Result<bool> {
        let mut new = [false];
        let result = self.insert_hashes(&[key.hash_with(&self.hasher)], &mut new).await;
        if new[0] {
            // The key is claimed in spite of the error. If the error lasts, the next call returns it.
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

    /// Returns the number of claims in doubt, including the claims of a dropped call.
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
        self.tidy(inserted).await.inspect_err(|error| self.uncertain += self.chain.take_unlisted_claims(error))
    }

    /// Removes what this client wrote after the filter was removed, if a call failed because of that.
    async fn tidy<R>(&mut self, result: Result<R>) -> Result<R> {
        if let Err(error) = &result {
            self.chain.remove_recreated(&mut self.nodes, error).await;
        }
        result
    }

    async fn claim(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize> {
        let mut done = 0;
        while done < hashes.len() {
            self.chain.refresh_if_due(&mut self.nodes).await?;
            let batch = done..hashes.len().min(done + BATCH_KEYS.min(self.chain.part()));
            done = batch.end;
            let (hashes, new) = (&hashes[batch.clone()], &mut new[batch]);
            let mut seen = vec![false; hashes.len()];
            self.chain.query_mirrors(hashes, &mut seen);
            // Of equal hashes, no other than the first can be new.
            let mut distinct = HashSet::with_capacity(hashes.len());
            let mut pending: Vec<usize> =
                (0..hashes.len()).filter(|&i| !seen[i] && distinct.insert(hashes[i])).collect();
            let (queried, earlier_unanswered, started) = (pending.len(), self.unanswered.len(), Instant::now());
            let mut late = false;
            let claimed = self.claim_batch(hashes, &mut pending, &mut late, &mut seen, new).await;
            if claimed.is_err() && late {
                // These claims have set bits in a sealed stage, and no other client will report these keys as new.
                for i in pending.into_iter().filter(|&i| !seen[i]) {
                    self.uncertain += u64::from(!new[i]);
                    new[i] = true;
                }
            }
            self.unanswered.truncate(earlier_unanswered);
            if !self.given_back.is_empty() {
                for (hash, new) in hashes.iter().zip(&mut *new) {
                    let was_given_back = self.given_back.remove(hash);
                    self.metrics.given_back += u64::from(was_given_back);
                    *new |= was_given_back;
                }
            }
            if queried > 0 {
                self.metrics.record_batch(started.elapsed());
            }
            self.unanswered.extend(hashes.iter().zip(&*new).filter(|(_, new)| **new).map(|(hash, _)| hash));
            self.chain.last().watch.claims += new.iter().filter(|new| **new).count() as u64;
            claimed?;
            let claimed = new.iter().filter(|new| **new).count();
            self.duplicates.record(queried, claimed);
            self.chain.give_permits_back(&mut self.nodes).await?;
        }
        Ok(new.iter().filter(|new| **new).count())
    }

    /// Claims the hashes with the indices `pending`. After an error, `pending` has the remaining indices. If `late` is
    /// set, the remaining hashes that are not seen have set bits.
    async fn claim_batch(
        &mut self,
        hashes: &[u64],
        pending: &mut Vec<usize>,
        late: &mut bool,
        seen: &mut [bool],
        new: &mut [bool],
    ) -> Result<()> {
        let earlier_unanswered = self.unanswered.len();
        // In all stages up to this one, the pending keys were looked up, or they are late.
        let (mut asked_until, mut attempts) = (None, 0);
        while !pending.is_empty() {
            let number = self.chain.last().number;
            // A key in a stage that takes no more keys was claimed there.
            let mut stages = self.chain.numbers_after(asked_until);
            if !self.duplicates.should_read_first(pending.len()) {
                stages.pop();
            }
            self.ask(stages, hashes, pending, seen, false, &mut Commands::new([])).await?;
            let Self { chain, unanswered, nodes, .. } = self;
            let stage = chain.last();
            if stage.number != number || pending.is_empty() {
                continue;
            }
            let (shards, mirror) = (Arc::clone(&stage.shards), stage.mirror.clone());
            let mut job =
                Claims::new(PendingKeys::new(&shards, mirror.as_deref(), hashes, pending, new), stage.watch.marks());
            let mut used = job.keys.used();
            // The first shard of a stage has its permits.
            used.extend(shards.may_be_sealed().then_some(0));
            let marked = stage.watch.mark(nodes, &used).await;
            chain.unless_forgotten(nodes, number, marked).await?;
            let stage = chain.last();
            if stage.number != number || !chain.take_permits(nodes, pending.len()).await? {
                continue;
            }
            let stage = chain.last();
            unanswered.truncate(earlier_unanswered);
            unanswered.extend(job.keys.claimed().chain(pending.iter().map(|&i| hashes[i])));
            let mut result = stage.watch.run(nodes, &mut job, &used).await;
            asked_until = Some(number);
            let Claims { late: mut retries, seen: claimed_before, foreign, uncertain, unconfirmed, .. } = job;
            self.uncertain += uncertain;
            self.unconfirmed += unconfirmed;
            // The process may have been suspended between the last check of the stages and the claims. The third attempt counts in any
            // case.
            attempts += 1;
            let outdated = attempts < 3 && chain.is_outdated::<T>(number);
            if let (Some(shard), Ok(())) = (foreign, &result) {
                let (name, key) = (chain.name.to_string(), shards.keys[shard].name.clone());
                result = chain.last().watch.check_now(nodes).await.and(Err(RedisFilterError::Gone { name, key }));
            }
            claimed_before.iter().for_each(|&i| seen[i] = true);
            chain.record_claims(number, pending.len() - claimed_before.len(), claimed_before.len());
            let attempted = pending.clone();
            // Keys that were late before remain late until they are answered, regardless of the others.
            if !retries.is_empty() && !*late {
                (*pending, *late) = (retries.clone(), true);
            }
            chain.unless_forgotten(nodes, number, result).await?;
            if outdated {
                *late = true;
                chain.load(nodes).await?;
                retries.extend(attempted.iter().filter(|&&i| new[i]));
            }
            if chain.find(number).is_none() {
                // The stage is no longer queried, so its answers are void. If the claims recreated its shards, these
                // expire.
                attempted.iter().for_each(|&i| seen[i] = false);
                retries = attempted;
            }
            if retries.is_empty() {
                return Ok(());
            }
            retries.iter().for_each(|&i| new[i] = false);
            (*pending, *late) = (retries, true);
            chain.advance(nodes, number).await?;
        }
        Ok(())
    }

    /// Looks up the hashes with the indices `pending` in stages, from the newest on, and removes the indices of found
    /// ones. `more` is sent with the first query.
    async fn ask(
        &mut self,
        stages: Vec<u64>,
        hashes: &[u64],
        pending: &mut Vec<usize>,
        found: &mut [bool],
        replicas: bool,
        more: &mut Commands,
    ) -> Result<()> {
        let Self { chain, nodes, .. } = self;
        let (mut first_questions, mut no_questions) = (Some(more), Commands::new([]));
        for number in stages.into_iter().rev() {
            let Some(stage) = chain.find(number).filter(|_| !pending.is_empty()) else { continue };
            let (shards, mirror) = (Arc::clone(&stage.shards), stage.mirror.clone());
            let keys = PendingKeys::new(&shards, mirror.as_deref(), hashes, pending, found);
            let used = keys.used();
            let questions = first_questions.take().unwrap_or(&mut no_questions);
            let mut job = JobWithQuestions { job: &mut Queries { keys, replicas }, questions };
            let result = stage.watch.run(nodes, &mut job, &used).await;
            chain.unless_forgotten(nodes, number, result).await?;
            pending.retain(|&i| !found[i]);
        }
        Ok(())
    }

    pub(crate) async fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize> {
        check_lengths(hashes.len(), found.len());
        let queried = self.query(hashes, found).await;
        self.tidy(queried).await?;
        Ok(found.iter().filter(|found| **found).count())
    }

    async fn query(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<()> {
        for (hashes, found) in hashes.chunks(BATCH_KEYS).zip(found.chunks_mut(BATCH_KEYS)) {
            self.chain.refresh_if_due(&mut self.nodes).await?;
            self.chain.query_mirrors(hashes, found);
            let mut pending: Vec<usize> = (0..hashes.len()).filter(|&i| !found[i]).collect();
            let (mut asked_until, any_pending, started) = (None, !pending.is_empty(), Instant::now());
            while !pending.is_empty() {
                let (stages, last) = (self.chain.numbers_after(asked_until), self.chain.last().number);
                let mut more = self.chain.next_stage_query();
                self.ask(stages, hashes, &mut pending, found, true, &mut more).await?;
                if more.answers.first() == Some(&Value::Int(1)) {
                    self.chain.load(&mut self.nodes).await?;
                }
                // What was inserted before the call is in these stages, unless there is another.
                if self.chain.last().number == last {
                    break;
                }
                asked_until = Some(last);
            }
            if any_pending {
                self.metrics.record_batch(started.elapsed());
            }
        }
        Ok(())
    }

    /// Opens another stage, as if the last one were full.
    #[cfg(test)]
    pub(crate) async fn grow(&mut self) -> Result<()> {
        let number = self.chain.last().number;
        self.chain.advance(&mut self.nodes, number).await
    }

    pub(crate) async fn check(&mut self) -> Result<()> {
        let checked = self.check_stages().await;
        self.tidy(checked).await.inspect_err(|error| self.uncertain += self.chain.take_unlisted_claims(error))
    }

    async fn check_stages(&mut self) -> Result<()> {
        let Self { chain, nodes, .. } = self;
        if let FilterKind::Staged(_) = chain.kind {
            chain.load(nodes).await?;
        }
        for number in chain.numbers_after(None) {
            let Some(stage) = chain.find(number) else { continue };
            let checked = stage.watch.check_all(nodes).await;
            chain.unless_forgotten(nodes, number, checked).await?;
        }
        Ok(())
    }

    pub(crate) async fn may_evict(&mut self) -> Option<String> {
        let answers = self.nodes.ask_each(redis::cmd("INFO").arg("memory")).await;
        answers.into_iter().find_map(|(node, answer)| eviction_policy(&node, &answer))
    }

    pub(crate) async fn servers(&mut self) -> Vec<RedisServerStats> {
        let answers = self.nodes.ask_each(redis::cmd("INFO").arg("all")).await;
        answers.iter().filter_map(|(node, answer)| RedisServerStats::from_info(node, answer)).collect()
    }

    pub(crate) async fn stats(&mut self) -> Result<RedisFilterStats> {
        let Self { chain, nodes, .. } = self;
        if let FilterKind::Staged(_) = chain.kind {
            chain.load(nodes).await?;
        }
        let mut stats = Vec::new();
        for number in chain.numbers_after(None) {
            let Some(stage) = chain.find(number) else { continue };
            let counted = count(stage, nodes).await;
            let result = counted.as_ref().map(drop).map_err(Clone::clone);
            chain.unless_forgotten(nodes, number, result).await?;
            stats.extend(counted);
        }
        let stats = RedisFilterStats::from_stages(&stats);
        self.metrics.fill_ratio = Some(stats.fill_ratio);
        Ok(stats)
    }

    pub(crate) async fn key_kinds(&mut self) -> Result<Option<Vec<u16>>> {
        let key = Key::new(self.name(), KINDS);
        match run(&mut self.nodes, &key, key.command("SMEMBERS")).await {
            Err(RedisFilterError::Denied { .. }) => Ok(None),
            answer => {
                let kinds = meta::parse_kind_members(answer?);
                kinds.map(Some).ok_or_else(|| key.refused("its answer to SMEMBERS makes no sense"))
            }
        }
    }

    pub(crate) async fn add_key_kinds(&mut self, kinds: &[u16]) -> Result<()> {
        let (key, members) = (Key::new(self.name(), KINDS), meta::kind_members(kinds));
        if members.is_empty() {
            return Ok(());
        }
        match run(&mut self.nodes, &key, key.command("SADD").arg(members).take()).await {
            Err(RedisFilterError::Denied { .. }) => Ok(()),
            answer => answer.map(drop),
        }
    }

    pub(crate) async fn download(&mut self) -> Result<BloomFilter> {
        let shards = self.fixed()?;
        self.chain.last().watch.ensure_valid()?;
        let mut filter = meta::local_filter(shards.plan, self.hasher.seed())?;
        for (shard, key) in shards.keys.iter().enumerate() {
            for (offset, blocks) in shards.chunks(shard) {
                let length = blocks.len() * BLOCK_BYTES;
                let command = key.command("GETRANGE").arg(offset).arg(offset + length - 1).take();
                let bytes = match run(&mut self.nodes, key, command).await? {
                    // A server that sends more than the requested bytes did not execute this command.
                    Value::BulkString(bytes) if bytes.len() <= length => bytes,
                    _ => return Err(key.refused("its answer makes no sense")),
                };
                let mut words = bytes.chunks(8).map(word_from_le);
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
        let Self { chain, hasher, nodes, .. } = self;
        let watch = &mut chain.last().watch;
        check_same(shards.plan, hasher, filter)?;
        let unique = meta::random_id();
        for (shard, key) in shards.keys.iter().enumerate() {
            let words = shards.blocks(shard).flat_map(|block| filter.block_words(block));
            let ones: i64 = words.map(|word| i64::from(word.count_ones())).sum();
            if ones == 0 {
                continue;
            }
            watch.mark(nodes, &[shard]).await?;
            let copy = shards.upload_key(shard, unique);
            // Before the first chunk, so that a client that dies leaves nothing permanent.
            run(nodes, &copy, copy.command("SET").arg("").arg("EX").arg(COPY_TTL_SECONDS).take()).await?;
            for (offset, blocks) in shards.chunks(shard) {
                let bytes: Vec<u8> =
                    blocks.flat_map(|block| filter.block_words(block)).flat_map(u64::to_le_bytes).collect();
                run(nodes, &copy, copy.command("SETRANGE").arg(offset).arg(bytes).take()).await?;
                // After each piece: if the server lost the copy meanwhile, this piece began a copy without an end.
                run(nodes, &copy, copy.command("EXPIRE").arg(COPY_TTL_SECONDS).take()).await?;
            }
            if run(nodes, &copy, copy.command("BITCOUNT")).await? != Value::Int(ones) {
                return Err(key.refused("the copy to merge lost a part; upload again"));
            }
            let merge = redis::cmd("BITOP").arg("OR").arg(&key.name).arg(&key.name).arg(&copy.name).take();
            run(nodes, key, merge).await?;
            run(nodes, &copy, copy.command("UNLINK")).await?;
        }
        // A shard that was lost meanwhile has only the uploaded bits.
        self.check().await
    }

    pub(crate) async fn delete(mut self) -> Result<()> {
        remove(&mut self.nodes, &self.chain.name, Some(self.chain.kind)).await.map(drop)
    }

    /// Writes the filter as the public type of this name.
    pub(crate) fn fmt(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan();
        f.debug_struct(name)
            .field("name", &self.name())
            .field("block_count", &plan.block_count())
            .field("probes", &plan.probes())
            .field("mirror", &self.chain.mirrored)
            .field("uncertain", &self.uncertain())
            .field("unconfirmed", &self.unconfirmed)
            .finish_non_exhaustive()
    }
}

/// Panics if the lengths differ, as every batch call documents.
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
impl<T: Transport + Clone> Clone for RemoteFilter<T> {
    fn clone(&self) -> Self {
        self.with_nodes(self.nodes.clone())
    }
}

/// Reads the description of a filter. If it is missing and `line` is given, writes it first.
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
