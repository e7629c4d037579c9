//! `StageChain`: the stages of a filter, as this client last read them. A filter of a fixed size has one stage.
//!
//! The last stage takes keys. A client that finds that it is full, or that its time is over, seals all its shards and
//! adds the line of the next stage to a hash on the server, which only the first of several clients can do. The answer
//! to a claim includes the seal of the shard, and a claim in a sealed shard is void. So no claim counts in a stage once
//! there is a later one, and a client that has read the later stage sees all valid claims in the earlier one.
//! crates/redis/DESIGN.md has the argument, and `models.rs` checks it.

mod permits;

use crate::error::RedisFilterError;
use crate::jobs::Commands;
use crate::kinds::{FilterKind, Stages, keys_with_slack};
use crate::meta::{self, StageMeta};
use crate::nodes::{Nodes, Transport, UNLINK_BATCH};
use crate::scripts;
use crate::shards::{Key, MAX_BYTES, META, STAGES, Shards, stage_keys};
use crate::watch::{Watch, parse_mark};
use bloomline::{AtomicBloomFilter, BuildError, Plan};
use permits::Permits;
use redis::Value;
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which a client in use reads the stages, if they change with time.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The maximum number of stages in a list.
const MAX_STAGES: usize = 256;

type Result<T, E = RedisFilterError> = std::result::Result<T, E>;

/// A stage that the client has read from the list.
pub(crate) struct KnownStage {
    pub(crate) number: u64,
    pub(crate) shards: Arc<Shards>,
    pub(crate) mirror: Option<Arc<AtomicBloomFilter>>,
    pub(crate) watch: Watch,
    meta: StageMeta,
    permits: Permits,
}

/// The part of a stage that the clients of a process share.
struct SharedStage {
    shards: Arc<Shards>,
    mirror: Option<Arc<AtomicBloomFilter>>,
    watch: Watch,
}

pub(crate) struct StageChain {
    pub(crate) name: Arc<str>,
    pub(crate) kind: FilterKind,
    seed: u64,
    /// The description, as the server stores it.
    description: Arc<[u8]>,
    /// The random number in the description, which another filter of the same name does not have.
    creation_id: u64,
    /// The key of the list of stages on the server.
    key: Key,
    /// The oldest first; at least one.
    pub(crate) known_stages: Vec<KnownStage>,
    shared: Arc<Mutex<BTreeMap<u64, SharedStage>>>,
    pub(crate) mirrored: bool,
    /// The maximum number of bytes of all mirrors together.
    mirror_limit: usize,
    /// The time at which the stages were last read, and the server's time in the answer.
    loaded_at: Instant,
    server_time: u64,
    /// True if the user is known to have the rights that the growth of the filter needs.
    may_grow: bool,
    /// True if what this client wrote after the removal of the filter was removed.
    is_tidied: bool,
}

impl KnownStage {
    fn bytes(&self) -> usize {
        self.shards.plan.memory_bytes()
    }
}

impl StageChain {
    /// Reads the stages of a filter. If it has none yet, opens the first.
    pub(crate) async fn open<T: Transport>(
        nodes: &mut Nodes<T>,
        name: &str,
        described: &meta::FilterMeta,
        line: &[u8],
    ) -> Result<Self> {
        let mut chain = Self {
            name: name.into(),
            kind: described.kind,
            seed: described.hasher.seed(),
            description: line.into(),
            creation_id: described.creation_id,
            key: Key::new(name, STAGES),
            known_stages: Vec::new(),
            shared: Arc::default(),
            mirrored: false,
            mirror_limit: 0,
            loaded_at: T::now(),
            server_time: 0,
            may_grow: false,
            is_tidied: false,
        };
        match chain.kind {
            FilterKind::Fixed(plan) => {
                let stage = StageMeta { plan, keys: u64::MAX, creation_id: described.creation_id, opened: 0 };
                let known_stage = chain.new_stage(0, stage, Shards::new(name, plan));
                chain.known_stages.push(known_stage);
            }
            FilterKind::Staged(stages) => {
                if let Err(error) = chain.open_stages(nodes, stages).await {
                    chain.remove_recreated(nodes, &error).await;
                    return Err(error);
                }
            }
        }
        Ok(chain)
    }

    async fn open_stages<T: Transport>(&mut self, nodes: &mut Nodes<T>, stages: Stages) -> Result<()> {
        self.load(nodes).await?;
        match self.known_stages.is_empty() {
            true => self.open_stage(nodes, stages, 0).await?,
            false => self.advance_if_over(nodes).await?,
        }
        match self.recover(nodes, stages).await {
            // A replica may be behind its primary.
            Err(RedisFilterError::ReadOnly { .. }) => Ok(()),
            recovered => recovered,
        }
    }

    /// Returns the chain of another client of the process.
    pub(crate) fn for_new_client(&self) -> Self {
        let known_stage = |known_stage: &KnownStage| KnownStage {
            number: known_stage.number,
            shards: Arc::clone(&known_stage.shards),
            mirror: known_stage.mirror.clone(),
            watch: known_stage.watch.for_new_client(None),
            meta: known_stage.meta,
            permits: Permits::new(),
        };
        Self {
            name: Arc::clone(&self.name),
            description: Arc::clone(&self.description),
            key: self.key.clone(),
            known_stages: self.known_stages.iter().map(known_stage).collect(),
            shared: Arc::clone(&self.shared),
            is_tidied: false,
            ..*self
        }
    }

    /// Mirrors stages, the oldest first, while their mirrors fit into `mirror_limit` bytes.
    pub(crate) fn with_mirror(mut self, mirror_limit: usize) -> Result<Self, BuildError> {
        let mut free_bytes = mirror_limit;
        (self.mirrored, self.mirror_limit) =
            (self.known_stages.iter().any(|stage| stage.shards.plan.memory_bytes() <= mirror_limit), mirror_limit);
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        for known_stage in &mut self.known_stages {
            let Some(rest) = free_bytes.checked_sub(known_stage.shards.plan.memory_bytes()) else { continue };
            free_bytes = rest;
            known_stage.mirror = Some(Arc::new(meta::local_filter(known_stage.shards.plan, self.seed)?.into()));
            // Absent if the stage is no longer queried.
            if let Some(shared) = shared.get_mut(&known_stage.number) {
                shared.mirror = known_stage.mirror.clone();
            }
        }
        drop(shared);
        Ok(self)
    }

    /// Returns the stage that takes keys.
    pub(crate) fn last(&mut self) -> &mut KnownStage {
        self.known_stages.last_mut().expect("a filter has a stage")
    }

    /// Returns the size of the stage that takes keys.
    pub(crate) fn plan(&self) -> Plan {
        self.known_stages.last().expect("a filter has a stage").shards.plan
    }

    /// Returns the parameters of a filter that grows or forgets.
    pub(crate) fn staged(&self) -> Option<Stages> {
        if let FilterKind::Staged(stages) = self.kind { Some(stages) } else { None }
    }

    /// Returns the command that asks for a stage after the last one; no command for a filter of a fixed size.
    pub(crate) fn next_stage_query(&mut self) -> Commands {
        let next = self.last().number + 1;
        let question = |_| (self.key.slot, self.key.command("HEXISTS").arg(next).take());
        Commands::new(self.staged().map(question))
    }

    /// Reads the stages if time may have changed them.
    pub(crate) async fn refresh_if_due<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        if self.staged().is_none_or(|stages| stages.expires_at(0).is_none())
            || T::now() - self.loaded_at < CHECK_INTERVAL
        {
            return Ok(());
        }
        self.load(nodes).await?;
        self.advance_if_over(nodes).await
    }

    async fn advance_if_over<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        let (server_time, last) = (self.server_time, self.last());
        let (number, opened) = (last.number, last.meta.opened);
        if !self.staged().is_some_and(|stages| stages.is_over(opened, server_time)) {
            return Ok(());
        }
        match self.advance(nodes, number).await {
            // The next insert tries again.
            Err(RedisFilterError::ReadOnly { .. }) => Ok(()),
            advanced => advanced,
        }
    }

    /// True if claims in this stage may have reached the server after the time of the stage, because the process was suspended.
    pub(crate) fn is_outdated<T: Transport>(&self, number: u64) -> bool {
        let opened = self.known_stages.iter().find(|stage| stage.number == number).map(|stage| stage.meta.opened);
        let stages = self.staged().zip(opened);
        stages.is_some_and(|(stages, opened)| stages.is_late(opened, self.server_time, T::now() - self.loaded_at))
    }

    /// Returns commands that a client needs to open a stage, and that have no effect, so that missing rights show. The
    /// last one lists the last stage, which is listed already.
    fn effectless_commands(&mut self, last: u64, line: &str) -> Vec<(u16, redis::Cmd)> {
        let expires = self.staged().is_some_and(|stages| stages.window > 0);
        let (list, KnownStage { shards, .. }) = (self.key.clone(), self.last());
        let (shard, no_copy) = (&shards.keys[0], shards.upload_key(0, meta::random_id()));
        let expire = expires.then(|| (no_copy.slot, no_copy.command("EXPIRE").arg(1).take()));
        let others = [
            scripts::remove_shard(shard, shards.mark_offset(0), [[]; 0]),
            (no_copy.slot, no_copy.command("UNLINK")),
            // No stage has this name.
            (list.slot, list.command("HDEL").arg("").take()),
            (list.slot, list.command("HSETNX").arg(last).arg(line).take()),
        ];
        expire.into_iter().chain(others).collect()
    }

    /// Reads the stages.
    pub(crate) async fn load<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        let (mut job, started) = (Commands::new(self.read_commands()), T::now());
        nodes.run(&mut job).await?;
        self.adopt(&job.answers, started)
    }

    /// Returns the size and the number of keys of the stage that follows the last one.
    fn next_plan(&self, stages: Stages, number: u64) -> Result<(Plan, u64), BuildError> {
        if stages.window == 0 {
            return stages.stage_plan(number);
        }
        let ends = self.known_stages.iter().skip(1).map(|stage| stage.meta.opened).chain([self.server_time]);
        let generations = self.known_stages.iter().map(|stage| stage.meta).zip(ends);
        let (mut rate, mut full) = (0.0, 0u64);
        for (StageMeta { plan, keys, opened, .. }, end) in generations {
            if stages.is_queried(opened, self.server_time) {
                rate += plan.expected_fpr(keys_with_slack(keys));
                full = full.saturating_add(if stages.is_over(opened, end) { 0 } else { keys });
            }
        }
        stages.generation_plan(rate, full)
    }

    /// Returns the commands that read the stages.
    fn read_commands(&self) -> [(u16, redis::Cmd); 2] {
        [self.key.command("HGETALL"), redis::cmd("TIME")].map(|command| (self.key.slot, command))
    }

    /// Restores stages that a server lost from the list although their shards exist. Only filters that grow are recovered, because
    /// the sizes of the stages of a filter that forgets are unknown, and its stages expire.
    async fn recover<T: Transport>(&mut self, nodes: &mut Nodes<T>, stages: Stages) -> Result<()> {
        if stages.window > 0 {
            return Ok(());
        }
        let newest = self.last().number;
        if self.known_stages.len() as u64 <= newest {
            let mut missing = Vec::new();
            for number in (0..newest).filter(|number| self.known_stages.iter().all(|stage| stage.number != *number)) {
                let (plan, keys) = stages.stage_plan(number)?;
                let creation_id = meta::stage_creation_id(self.creation_id, number, plan);
                missing.push((number, StageMeta { plan, keys, creation_id, opened: 0 }));
            }
            self.list_stages(nodes, &missing).await?;
            self.known_stages.clear();
            self.load(nodes).await?;
        }
        loop {
            let number = self.last().number + 1;
            let Ok((plan, _)) = stages.stage_plan(number) else { break };
            let mut job = Commands::new([Shards::for_stage(&self.name, number, plan, None).read_mark(0)]);
            nodes.run(&mut job).await?;
            if !meta::has_creation_id(
                parse_mark(&job.answers[0]),
                meta::stage_creation_id(self.creation_id, number, plan),
            ) {
                break;
            }
            self.advance(nodes, number - 1).await?;
        }
        Ok(())
    }

    /// Seals stage `from`, and opens the next one unless another client did.
    pub(crate) async fn advance<T: Transport>(&mut self, nodes: &mut Nodes<T>, from: u64) -> Result<()> {
        let Some(stages) = self.staged() else { return Ok(()) };
        let mut sealed = Ok(());
        loop {
            self.load(nodes).await?;
            let (server_time, last) = (self.server_time, self.last());
            if last.number > from {
                return Ok(());
            }
            // If no stage can follow, the last one is not sealed.
            self.next_plan(stages, from + 1)?;
            let last = self.last();
            // The shards of an expired stage do not exist, and they may expire during the loop.
            if stages.expires_at(last.meta.opened).is_some_and(|until| server_time >= until) {
                break;
            }
            sealed?;
            sealed = last.watch.seal(nodes).await;
            if !matches!(sealed, Err(RedisFilterError::Gone { .. })) {
                sealed?;
                break;
            }
        }
        self.open_stage(nodes, stages, from + 1).await
    }

    /// Opens a stage unless another client did, and removes the stages that are no longer queried.
    async fn open_stage<T: Transport>(&mut self, nodes: &mut Nodes<T>, stages: Stages, number: u64) -> Result<()> {
        let (plan, keys) = self.next_plan(stages, number)?;
        let opened = if stages.window > 0 { self.server_time } else { 0 };
        let creation_id = meta::stage_creation_id(self.creation_id, number, plan);
        self.remove_leftovers(nodes, number, plan, creation_id).await?;
        self.list_stages(nodes, &[(number, StageMeta { plan, keys, creation_id, opened })]).await?;
        let (mut job, started) = (Commands::new(self.read_commands()), T::now());
        nodes.run(&mut job).await?;
        let answers = job.answers;
        let unqueried: Vec<(u64, StageMeta)> = parse_stages(&self.key, &answers[0])?
            .into_iter()
            .filter(|(other, stage)| *other < number && !stages.is_queried(stage.opened, self.server_time))
            .collect();
        self.adopt(&answers, started)?;
        if self.known_stages.last().is_none_or(|stage| stage.number < number) {
            // Keys that are being inserted into the stage before would find their own bits there.
            return Err(RedisFilterError::Gone { name: self.name.to_string(), key: self.key.name.clone() });
        }
        // If this fails, the servers remove the shards in time, and the client that opens the next stage removes the
        // lines.
        for (number, stage) in unqueried {
            self.remove_stage(nodes, number, &stage).await?;
        }
        Ok(())
    }

    /// Removes the shards of a stage and its line, but not those of another stage with this number.
    async fn remove_stage<T: Transport>(&self, nodes: &mut Nodes<T>, number: u64, stage: &StageMeta) -> Result<()> {
        let prefixes = meta::mark_prefixes(stage.creation_id).map(Vec::from);
        let marks = Vec::from_iter(scripts::NO_MARK.map(Vec::from).into_iter().chain(prefixes));
        let mut keys = stage_keys(&self.name, number, stage.plan).peekable();
        while keys.peek().is_some() {
            let batch = keys.by_ref().take(UNLINK_BATCH);
            nodes.run(&mut Commands::new(batch.map(|key| scripts::remove_shard(&key, 0, &marks)))).await?;
        }
        let line = scripts::remove_line(&self.key, number, &meta::encode_stage(stage));
        nodes.run(&mut Commands::new([line])).await.map(drop)
    }

    /// Lists stages, unless other clients did. Fails if the filter was removed meanwhile.
    async fn list_stages<T: Transport>(&self, nodes: &mut Nodes<T>, stages: &[(u64, StageMeta)]) -> Result<()> {
        let list = |(number, stage): &(u64, StageMeta)| {
            (self.key.slot, self.key.command("HSETNX").arg(*number).arg(meta::encode_stage(stage)).take())
        };
        let mut job = Commands::new(stages.iter().map(list)).for_replicas();
        nodes.run(&mut job).await?;
        if !self.is_removed(nodes).await? {
            return Ok(());
        }
        for (number, stage) in stages {
            // Clients that have found the stage meanwhile may have used it.
            self.remove_stage(nodes, *number, stage).await?;
        }
        Err(RedisFilterError::Gone { name: self.name.to_string(), key: Key::new(&self.name, META).name })
    }

    /// True if the description of the filter was removed. If another client has recreated the filter since, its shards
    /// may be where those of this filter were.
    async fn is_removed<T: Transport>(&self, nodes: &mut Nodes<T>) -> Result<bool> {
        let description = Key::new(&self.name, META);
        let mut job = Commands::new([(description.slot, description.command("GET"))]);
        nodes.run(&mut job).await?;
        Ok(job.answers[0] == Value::Nil)
    }

    /// Removes what this client wrote after the filter was removed, if the error says that a part is gone.
    pub(crate) async fn remove_recreated<T: Transport>(&mut self, nodes: &mut Nodes<T>, error: &RedisFilterError) {
        let is_lost = matches!(
            error,
            RedisFilterError::Gone { .. } | RedisFilterError::Replaced { .. } | RedisFilterError::LeftOver { .. }
        );
        // Calls after the first that failed write nothing.
        if !is_lost || mem::replace(&mut self.is_tidied, true) {
            return;
        }
        // The caller gets the loss as the error. A user without the right to scripts leaves the rest to
        // `bloomline redis delete`.
        if let Ok(true) = self.is_removed(nodes).await {
            for stage in &mut self.known_stages {
                if stage.watch.remove_recreated(nodes).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Removes the shards of a stage that is not listed yet, if an earlier filter left them: their bits would hide
    /// keys. In a window, the shards of a stage that a server lost from the list are removed too, because the new stage
    /// would remember their keys for longer than the window.
    async fn remove_leftovers<T: Transport>(
        &self,
        nodes: &mut Nodes<T>,
        number: u64,
        plan: Plan,
        creation_id: u64,
    ) -> Result<()> {
        let shards = Shards::for_stage(&self.name, number, plan, None);
        let grows = self.staged().is_some_and(|stages| stages.window == 0);
        let all: Vec<usize> = (0..shards.keys.len()).collect();
        for chunk in all.chunks(UNLINK_BATCH) {
            let mut job = Commands::new(chunk.iter().map(|&shard| shards.read_mark(shard)));
            nodes.run(&mut job).await?;
            let mut removals = Vec::new();
            for (&shard, answer) in chunk.iter().zip(&job.answers) {
                let Value::BulkString(mark) = answer else { return Err(self.key.refused("it cannot read a mark")) };
                let belongs = grows && meta::has_creation_id(parse_mark(answer), creation_id);
                if !mark.is_empty() && !belongs {
                    removals.push(scripts::remove_shard(&shards.keys[shard], shards.mark_offset(shard), [mark]));
                }
            }
            if removals.is_empty() {
                continue;
            }
            // Another client may have opened the stage since this one read the list. In a window, its plan and therefore its
            // creation ID are others if a second began in between. A stage is listed before its shards are marked.
            let mut job = Commands::new([(self.key.slot, self.key.command("HEXISTS").arg(number).take())]);
            nodes.run(&mut job).await?;
            if job.answers[0] != Value::Int(0) {
                return Ok(());
            }
            // A shard with another mark by now is of the stage that another client has opened since.
            nodes.run(&mut Commands::new(removals)).await?;
        }
        Ok(())
    }

    /// Updates the chain by the stages in the answers to commands that were sent at `started`.
    fn adopt(&mut self, answers: &[Value], started: Instant) -> Result<()> {
        let Some(stages) = self.staged() else { return Ok(()) };
        let [list, server_time] = answers else { return Err(self.key.refused("its answer makes no sense")) };
        let server_time = match server_time {
            Value::Array(parts) => parts.first().and_then(|seconds| redis::from_redis_value_ref(seconds).ok()),
            _ => None,
        };
        let Some(server_time) = server_time else { return Err(self.key.refused("it does not return the time")) };
        let mut found = parse_stages(&self.key, list)?;
        let unfit = found.iter().find(|(number, stage)| !stages.fits(**number, stage.plan, stage.keys));
        if let Some((number, StageMeta { plan, keys, .. })) = unfit {
            return Err(self.key.refused(&format!(
                "its stage {number} is not one of this filter: {} blocks with {} probes for {keys} keys do not keep its rate, \
                 or are more than it needs; stop its clients, and remove it (bloomline redis delete)",
                plan.block_count(),
                plan.probes()
            )));
        }
        let newest = found.keys().next_back().copied();
        // The last stage is listed at any age, so that no number is used twice. No client removes a stage that is
        // queried.
        let missing = |known_stage: &KnownStage| {
            newest < Some(known_stage.number)
                || stages.is_queried(known_stage.meta.opened, server_time) && !found.contains_key(&known_stage.number)
        };
        if self.known_stages.iter().any(missing) {
            return Err(RedisFilterError::Gone { name: self.name.to_string(), key: self.key.name.clone() });
        }
        (self.server_time, self.loaded_at) = (server_time, started);
        found.retain(|number, stage| Some(*number) == newest || stages.is_queried(stage.opened, server_time));
        if found.is_empty() {
            return Ok(());
        }
        if let Some(known_stage) = self.known_stages.iter().find(|known_stage| {
            found.get(&known_stage.number).is_some_and(|stage| stage.creation_id != known_stage.meta.creation_id)
        }) {
            let name = self.name.to_string();
            return Err(RedisFilterError::Replaced { name, key: known_stage.shards.keys[0].name.clone() });
        }
        self.known_stages.retain(|stage| found.contains_key(&stage.number));
        let known = self.known_stages.last().map(|stage| stage.number);
        for (number, stage) in found.into_iter().filter(|(number, _)| known.is_none_or(|known| *number > known)) {
            let shards = Shards::for_stage(&self.name, number, stage.plan, stages.expiry(stage.opened));
            let known_stage = self.new_stage(number, stage, shards);
            self.known_stages.push(known_stage);
        }
        let first = self.known_stages[0].number;
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).retain(|number, _| *number >= first);
        Ok(())
    }

    /// Creates the state of a stage, whose mirror and marks are shared by the clients of the process.
    fn new_stage(&self, number: u64, stage: StageMeta, shards: Shards) -> KnownStage {
        let mirrored: usize =
            self.known_stages.iter().filter(|stage| stage.mirror.is_some()).map(|stage| stage.bytes()).sum();
        let fits = mirrored.saturating_add(stage.plan.memory_bytes()) <= self.mirror_limit;
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let SharedStage { shards, mirror, watch } = shared.entry(number).or_insert_with(|| {
            let shards = Arc::new(shards);
            // Without a mirror, the server is queried.
            let mirror = (self.mirrored && fits).then(|| meta::local_filter(stage.plan, self.seed).ok()).flatten();
            let listed = self.staged().map(|_| (self.key.clone(), number));
            let watch = Watch::new(&shards, &self.description, stage.creation_id, listed);
            SharedStage { shards, mirror: mirror.map(|mirror| Arc::new(mirror.into())), watch }
        });
        KnownStage {
            number,
            shards: Arc::clone(shards),
            mirror: mirror.clone().filter(|_| self.mirrored),
            watch: watch.for_new_client(Some(self.loaded_at)),
            meta: stage,
            permits: Permits::new(),
        }
    }

    /// Takes the number of claims since a check last found the last stage in the list, if the error says that a stage
    /// is not listed. Clients that have not read the stage may have claimed the same keys.
    pub(crate) fn take_unlisted_claims(&mut self, error: &RedisFilterError) -> u64 {
        match error {
            RedisFilterError::Gone { key, .. } if *key == self.key.name => mem::take(&mut self.last().watch.claims),
            _ => 0,
        }
    }

    /// Sets `found[i]` to true if a mirror has `hashes[i]`.
    pub(crate) fn query_mirrors(&self, hashes: &[u64], found: &mut [bool]) {
        found.fill(false);
        let mut answers = vec![false; if self.mirrored { hashes.len() } else { 0 }];
        for mirror in self.known_stages.iter().filter_map(|stage| stage.mirror.as_deref()) {
            mirror.contains_hashes(hashes, &mut answers);
            found.iter_mut().zip(&answers).for_each(|(found, answer)| *found |= answer);
        }
    }

    /// Returns the numbers of the stages after this one, in ascending order.
    pub(crate) fn numbers_after(&self, number: Option<u64>) -> Vec<u64> {
        self.known_stages.iter().map(|stage| stage.number).filter(|stage| Some(*stage) > number).collect()
    }

    /// Returns the stage of this number, if it is still queried.
    pub(crate) fn find(&mut self, number: u64) -> Option<&mut KnownStage> {
        self.known_stages.iter_mut().find(|stage| stage.number == number)
    }

    /// Returns the error, unless it is about a stage that is no longer queried.
    pub(crate) async fn unless_forgotten<T: Transport>(
        &mut self,
        nodes: &mut Nodes<T>,
        number: u64,
        result: Result<()>,
    ) -> Result<()> {
        let Err(error @ RedisFilterError::Gone { .. }) = result else { return result };
        // The first error says more than one of reading the list.
        if self.staged().is_none() || self.load(nodes).await.is_err() {
            return Err(error);
        }
        self.advance_if_over(nodes).await?;
        let (stages, server_time) = (self.staged(), self.server_time);
        let is_queried = |known_stage: &mut KnownStage| {
            stages.is_some_and(|stages| stages.is_queried(known_stage.meta.opened, server_time))
        };
        if self.find(number).is_some_and(is_queried) { Err(error) } else { Ok(()) }
    }
}

/// Reads the list of stages under a name. Returns its key and the answer.
pub(crate) async fn read_list<T: Transport>(nodes: &mut Nodes<T>, name: &str) -> Result<(Key, Value)> {
    let list = Key::new(name, STAGES);
    let mut job = Commands::new([(list.slot, list.command("HGETALL"))]);
    nodes.run(&mut job).await?;
    Ok((list, job.answers.remove(0)))
}

/// True if there is a list of stages under a name, for a user without the right to read it: a list is not a string, and
/// the server says so.
pub(crate) async fn has_list<T: Transport>(nodes: &mut Nodes<T>, name: &str) -> Result<bool> {
    let list = Key::new(name, STAGES);
    match nodes.run(&mut Commands::new([(list.slot, list.command("STRLEN"))])).await {
        Err(RedisFilterError::NotBloomline { .. }) => Ok(true),
        asked => asked.map(|_| false),
    }
}

/// Returns the stages that an answer lists.
pub(crate) fn parse_stages(list: &Key, answer: &Value) -> Result<BTreeMap<u64, StageMeta>> {
    let refused = || list.refused("its answer makes no sense");
    let Value::Array(fields) = answer else { return Err(refused()) };
    if fields.len() > 2 * MAX_STAGES {
        return Err(list.refused("it lists more stages than a filter has"));
    }
    let read = |pair: &[Value]| {
        let [Value::BulkString(field), Value::BulkString(line)] = pair else { return Err(refused()) };
        let number = str::from_utf8(field).ok().and_then(|field| field.parse().ok());
        // Numbers of later stages must not overflow.
        let number = number.filter(|number| *number <= u64::MAX / 2).ok_or_else(refused)?;
        Ok((number, meta::decode_stage(&list.name, line)?))
    };
    let stages = fields.chunks(2).map(read).collect::<Result<BTreeMap<u64, StageMeta>>>()?;
    // Also stages that are no longer queried, because clients remove their shards.
    let bytes = stages.values().fold(0u64, |sum, stage| sum.saturating_add(stage.plan.memory_bytes() as u64));
    if bytes > MAX_BYTES {
        return Err(list.refused("its stages together are larger than a filter can be (16 TiB)"));
    }
    Ok(stages)
}
