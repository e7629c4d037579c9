//! `Row`: the stages of a filter, as this client knows them. A filter of a fixed size is its only stage.
//!
//! The last stage takes keys. Whoever finds that it is full, or that its time is over, seals all its shards and adds the line of the
//! next to a hash on the server, which only the first of several can do. A claim tells whether its shard was sealed, and then
//! does not count. So no claim counts in a stage once there is another one after it, and whoever knows the later one sees, in the
//! earlier, all that ever will count there. redis/DESIGN.md has the argument, and `models.rs` tries it.

use crate::error::RedisFilterError;
use crate::jobs::Commands;
use crate::kinds::{Kind, Stages, keys_with_room};
use crate::meta::{self, Stage};
use crate::nodes::{Nodes, Transport};
use crate::removal::unlink;
use crate::shards::{Key, MAX_BYTES, STAGES, Shards};
use crate::watch::{SEALED, Watch, mark_in};
use bloomline::{AtomicBloomFilter, BuildError, Plan};
use redis::Value;
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a client that is in use goes without a look at the stages, if time changes them.
const PERIOD: Duration = Duration::from_secs(1);

/// More stages than a filter has.
const MOST: usize = 256;

/// How many keys a client claims before it looks how full the stage is, at most.
const CLAIMED: u64 = 1024;

/// Blocks that are counted for that: of 50,000 keys or so, which tell the number of all to half a hundredth.
const SAMPLE: usize = 1024;

type Result<T, E = RedisFilterError> = std::result::Result<T, E>;

/// A stage.
pub(crate) struct Part {
    pub(crate) number: u64,
    pub(crate) shards: Arc<Shards>,
    pub(crate) mirror: Option<Arc<AtomicBloomFilter>>,
    pub(crate) watch: Watch,
    stage: Stage,
}

/// What the clients of a process share of a stage.
struct Common {
    shards: Arc<Shards>,
    mirror: Option<Arc<AtomicBloomFilter>>,
    watch: Watch,
}

pub(crate) struct Row {
    pub(crate) name: Arc<str>,
    pub(crate) kind: Kind,
    seed: u64,
    /// The description, and the number in it.
    line: Arc<[u8]>,
    made: u64,
    /// What lists the stages on the server.
    key: Key,
    /// The oldest first; at least one.
    pub(crate) parts: Vec<Part>,
    common: Arc<Mutex<BTreeMap<u64, Common>>>,
    pub(crate) mirrored: bool,
    /// The bytes that all mirrors may take together.
    limit: usize,
    /// When the stages were last read, and the server's time then, which it told later.
    loaded: Instant,
    time: u64,
    /// Keys that were claimed since the last look at how full the stage is. Each client begins with a look, for there may be many of
    /// which none claims many.
    claimed: u64,
}

impl Part {
    fn bytes(&self) -> usize {
        self.shards.plan.memory_bytes()
    }
}

impl Row {
    /// The stages of a filter. If it has none yet, opens the first.
    pub(crate) async fn open<T: Transport>(
        nodes: &mut Nodes<T>,
        name: &str,
        described: &meta::Described,
        line: &[u8],
    ) -> Result<Self> {
        let mut row = Self {
            name: name.into(),
            kind: described.kind,
            seed: described.hasher.seed(),
            line: line.into(),
            made: described.made,
            key: Key::new(name, STAGES),
            parts: Vec::new(),
            common: Arc::default(),
            mirrored: false,
            limit: 0,
            loaded: T::now(),
            time: 0,
            claimed: CLAIMED,
        };
        match row.kind {
            Kind::Fixed(plan) => {
                let stage = Stage { plan, keys: u64::MAX, made: described.made, opened: 0 };
                let part = row.part(0, stage, Shards::new(name, plan));
                row.parts.push(part);
            }
            Kind::Staged(stages) => {
                row.load(nodes).await?;
                match row.parts.is_empty() {
                    true => row.begin(nodes, stages, 0).await?,
                    false => row.end_in_time(nodes).await?,
                }
                match row.recover(nodes, stages).await {
                    // It lacks what is on its way from the primary.
                    Err(RedisFilterError::ReadOnly { .. }) => {}
                    recovered => recovered?,
                }
            }
        }
        Ok(row)
    }

    /// The same for another client of the process.
    pub(crate) fn another(&self) -> Self {
        let part = |part: &Part| Part {
            number: part.number,
            shards: Arc::clone(&part.shards),
            mirror: part.mirror.clone(),
            watch: part.watch.another(None),
            stage: part.stage,
        };
        Self {
            name: Arc::clone(&self.name),
            line: Arc::clone(&self.line),
            key: self.key.clone(),
            parts: self.parts.iter().map(part).collect(),
            common: Arc::clone(&self.common),
            claimed: CLAIMED,
            ..*self
        }
    }

    /// Mirrors stages as long as that takes so many bytes at most.
    pub(crate) fn with_mirror(mut self, limit: usize) -> Result<Self, BuildError> {
        let mut left = limit;
        (self.mirrored, self.limit) = (self.parts.iter().any(|part| part.shards.plan.memory_bytes() <= limit), limit);
        let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        for part in &mut self.parts {
            let Some(rest) = left.checked_sub(part.shards.plan.memory_bytes()) else { continue };
            left = rest;
            part.mirror = Some(Arc::new(meta::local(part.shards.plan, self.seed)?.into()));
            // It has none if the stage is not asked any more.
            if let Some(common) = common.get_mut(&part.number) {
                common.mirror = part.mirror.clone();
            }
        }
        drop(common);
        Ok(self)
    }

    /// The stage that takes keys.
    pub(crate) fn last(&mut self) -> &mut Part {
        self.parts.last_mut().expect("a filter has a stage")
    }

    /// The size of the stage that takes keys.
    pub(crate) fn plan(&self) -> Plan {
        self.parts.last().expect("a filter has a stage").shards.plan
    }

    /// What it is made for, if it grows or forgets.
    pub(crate) fn staged(&self) -> Option<Stages> {
        if let Kind::Staged(stages) = self.kind { Some(stages) } else { None }
    }

    /// The question whether there is a stage after the last one, if there may be.
    pub(crate) fn ask_for_more(&mut self) -> Commands {
        let next = self.last().number + 1;
        let question = |_| (self.key.slot, self.key.command("HEXISTS").arg(next).take());
        Commands::new(self.staged().map(question))
    }

    /// Reads the stages if time may have changed them.
    pub(crate) async fn keep_up<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        if self.staged().is_none_or(|stages| stages.until(0).is_none()) || T::now() - self.loaded < PERIOD {
            return Ok(());
        }
        self.load(nodes).await?;
        self.end_in_time(nodes).await
    }

    async fn end_in_time<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        let (time, last) = (self.time, self.last());
        let (number, opened) = (last.number, last.stage.opened);
        if !self.staged().is_some_and(|stages| stages.is_over(opened, time)) {
            return Ok(());
        }
        match self.advance(nodes, number).await {
            // Whoever inserts meets it again.
            Err(RedisFilterError::ReadOnly { .. }) => Ok(()),
            advanced => advanced,
        }
    }

    /// True if claims in this stage that are answered by now may have come after its time: the process did not run for long.
    pub(crate) fn is_outdated<T: Transport>(&self, number: u64) -> bool {
        let opened = self.parts.iter().find(|part| part.number == number).map(|part| part.stage.opened);
        let stages = self.staged().zip(opened);
        stages.is_some_and(|(stages, opened)| stages.is_late(opened, self.time, T::now() - self.loaded))
    }

    /// How many keys may be claimed before it is known whether the stage is full.
    pub(crate) fn room(&self) -> usize {
        let last = self.parts.last().expect("a filter has a stage");
        usize::try_from(last.stage.keys / 16).unwrap_or(usize::MAX).max(1)
    }

    /// Takes that so many keys were claimed. Opens the next stage if the last one is full.
    pub(crate) async fn take<T: Transport>(&mut self, nodes: &mut Nodes<T>, new: usize) -> Result<()> {
        if self.staged().is_none() {
            return Ok(());
        }
        self.claimed += new as u64;
        let Part { number, shards, stage, .. } = self.last();
        let (number, shards, keys) = (*number, Arc::clone(shards), stage.keys);
        if self.claimed < CLAIMED.min(keys / 16 + 1) {
            return Ok(());
        }
        self.claimed = 0;
        let chance = meta::unique() as usize;
        let shard = chance % shards.keys.len();
        let blocks = shards.blocks(shard).len();
        let start = chance / shards.keys.len() % (blocks.saturating_sub(SAMPLE) + 1);
        let sample = start..blocks.min(start + SAMPLE);
        let bits = 512.0 * sample.len() as f64;
        let mut job = Commands::new([shards.count_ones(shard, sample)]);
        nodes.run(&mut job).await?;
        let Value::Int(ones) = job.answers[0] else { return Err(self.key.refused("it cannot count bits")) };
        if shards.plan.estimated_keys(ones as f64 / bits) >= keys as f64 {
            self.advance(nodes, number).await?;
        }
        Ok(())
    }

    /// Reads the stages.
    pub(crate) async fn load<T: Transport>(&mut self, nodes: &mut Nodes<T>) -> Result<()> {
        let (mut job, started) = (Commands::new(self.read()), T::now());
        nodes.run(&mut job).await?;
        self.adopt(&job.answers, started)
    }

    /// The size of the stage that follows the last one, and its keys.
    fn next(&self, stages: Stages, number: u64) -> Result<(Plan, u64), BuildError> {
        if stages.window == 0 {
            return stages.stage(number);
        }
        let ends = self.parts.iter().skip(1).map(|part| part.stage.opened).chain([self.time]);
        let asked = self.parts.iter().map(|part| part.stage).zip(ends);
        let (mut rate, mut full) = (0.0, 0u64);
        for (Stage { plan, keys, opened, .. }, end) in asked {
            if stages.is_asked(opened, self.time) {
                rate += plan.expected_fpr(keys_with_room(keys));
                full = full.saturating_add(if stages.is_over(opened, end) { 0 } else { keys });
            }
        }
        stages.generation(rate, full)
    }

    /// The commands that read the stages.
    fn read(&self) -> [(u16, redis::Cmd); 2] {
        [self.key.command("HGETALL"), redis::cmd("TIME")].map(|command| (self.key.slot, command))
    }

    /// Lists the stages of a filter that grows which a server has lost from the list: their shards are there. One that forgets has
    /// its stages for a time only, and their sizes are not known.
    async fn recover<T: Transport>(&mut self, nodes: &mut Nodes<T>, stages: Stages) -> Result<()> {
        if stages.window > 0 {
            return Ok(());
        }
        let newest = self.last().number;
        if self.parts.len() as u64 <= newest {
            let mut lines = Vec::new();
            for number in (0..newest).filter(|number| self.parts.iter().all(|part| part.number != *number)) {
                let (plan, keys) = stages.stage(number)?;
                let made = meta::made_of_stage(self.made, number, plan);
                let line = meta::encode_stage(&Stage { plan, keys, made, opened: 0 });
                lines.push((self.key.slot, self.key.command("HSETNX").arg(number).arg(line).take()));
            }
            nodes.run(&mut Commands::new(lines)).await?;
            self.parts.clear();
            self.load(nodes).await?;
        }
        loop {
            let number = self.last().number + 1;
            let Ok((plan, _)) = stages.stage(number) else { break };
            let mut job = Commands::new([Shards::of_stage(&self.name, number, plan, None).read_mark(0)]);
            nodes.run(&mut job).await?;
            if !meta::is_of(mark_in(&job.answers[0]), meta::made_of_stage(self.made, number, plan)) {
                break;
            }
            self.advance(nodes, number - 1).await?;
        }
        Ok(())
    }

    /// Seals the stage of this number, and opens the next, unless somebody has.
    pub(crate) async fn advance<T: Transport>(&mut self, nodes: &mut Nodes<T>, from: u64) -> Result<()> {
        let Some(stages) = self.staged() else { return Ok(()) };
        let mut sealed = Ok(());
        loop {
            self.load(nodes).await?;
            let (time, last) = (self.time, self.last());
            if last.number > from {
                return Ok(());
            }
            // Where none can follow, the last one stays as it is.
            self.next(stages, from + 1)?;
            let last = self.last();
            // Of one that the servers have forgotten there is nothing to seal. They may do so meanwhile.
            if stages.until(last.stage.opened).is_some_and(|until| time >= until) {
                break;
            }
            sealed?;
            sealed = last.watch.seal(nodes).await;
            if !matches!(sealed, Err(RedisFilterError::Gone { .. })) {
                sealed?;
                break;
            }
        }
        self.begin(nodes, stages, from + 1).await
    }

    /// Opens a stage, unless somebody has, and removes those that are not asked any more.
    async fn begin<T: Transport>(&mut self, nodes: &mut Nodes<T>, stages: Stages, number: u64) -> Result<()> {
        let (plan, keys) = self.next(stages, number)?;
        let opened = if stages.window > 0 { self.time } else { 0 };
        let made = meta::made_of_stage(self.made, number, plan);
        self.clear(nodes, &Shards::of_stage(&self.name, number, plan, None), made).await?;
        let line = meta::encode_stage(&Stage { plan, keys, made, opened });
        let open = self.key.command("HSETNX").arg(number).arg(line).take();
        let mut job = Commands::new([(self.key.slot, open)].into_iter().chain(self.read())).for_replicas();
        let started = T::now();
        nodes.run(&mut job).await?;
        let answers = job.answers.split_off(1);
        let gone: Vec<(u64, Stage)> = stages_of(&self.key, &answers[0])?
            .into_iter()
            .filter(|(other, stage)| *other < number && !stages.is_asked(stage.opened, self.time))
            .collect();
        self.adopt(&answers, started)?;
        if self.parts.last().is_none_or(|part| part.number < number) {
            // Keys on their way from the stage before would find their own bits there.
            return Err(RedisFilterError::Gone { name: self.name.to_string(), key: self.key.name.clone() });
        }
        // If this fails, the servers forget the shards in time, and whoever opens the next stage removes the fields.
        let field = |(number, _): &(u64, Stage)| (self.key.slot, self.key.command("HDEL").arg(*number).take());
        let shards =
            gone.iter().flat_map(|(number, stage)| Shards::of_stage(&self.name, *number, stage.plan, None).keys);
        let removal: Vec<_> = shards.map(|key| (key.slot, key.command("UNLINK"))).collect();
        nodes.run(&mut Commands::new(removal.into_iter().chain(gone.iter().map(field)))).await.map(drop)
    }

    /// Removes the shards of a stage that nobody has listed, if they are left over from an earlier filter: their bits would hide keys.
    async fn clear<T: Transport>(&self, nodes: &mut Nodes<T>, shards: &Shards, made: u64) -> Result<()> {
        let all: Vec<usize> = (0..shards.keys.len()).collect();
        for some in all.chunks(SEALED) {
            let mut job = Commands::new(some.iter().map(|&shard| shards.read_mark(shard)));
            nodes.run(&mut job).await?;
            let left = |answer: &Value| *answer != Value::BulkString(Vec::new()) && !meta::is_of(mark_in(answer), made);
            let left = some.iter().zip(&job.answers).filter(|(_, answer)| left(answer));
            let keys: Vec<Key> = left.map(|(&shard, _)| shards.keys[shard].clone()).collect();
            if !keys.is_empty() {
                unlink(nodes, keys).await?;
            }
        }
        Ok(())
    }

    /// Takes the stages that were read since `started`.
    fn adopt(&mut self, answers: &[Value], started: Instant) -> Result<()> {
        let Some(stages) = self.staged() else { return Ok(()) };
        let [list, time] = answers else { return Err(self.key.refused("its answer makes no sense")) };
        let time = match time {
            Value::Array(parts) => parts.first().and_then(|seconds| redis::from_redis_value_ref(seconds).ok()),
            _ => None,
        };
        let Some(time) = time else { return Err(self.key.refused("it does not tell the time")) };
        let mut found = stages_of(&self.key, list)?;
        if let Some((number, _)) = found.iter().find(|(number, stage)| !stages.fits(**number, stage.plan)) {
            return Err(self.key.refused(&format!("its stage {number} is not one of this filter")));
        }
        let newest = found.keys().next_back().copied();
        // The last one stays listed, however old it is: no number is used twice. Nobody removes one that is asked.
        let missing = |part: &Part| {
            newest < Some(part.number) || stages.is_asked(part.stage.opened, time) && !found.contains_key(&part.number)
        };
        if self.parts.iter().any(missing) {
            return Err(RedisFilterError::Gone { name: self.name.to_string(), key: self.key.name.clone() });
        }
        (self.time, self.loaded) = (time, started);
        found.retain(|number, stage| Some(*number) == newest || stages.is_asked(stage.opened, time));
        let bytes = found.values().fold(0u64, |sum, stage| sum.saturating_add(stage.plan.memory_bytes() as u64));
        if bytes > MAX_BYTES {
            return Err(self.key.refused("its stages are larger together than a filter can be (16 TiB)"));
        }
        if found.is_empty() {
            return Ok(());
        }
        if let Some(part) =
            self.parts.iter().find(|part| found.get(&part.number).is_some_and(|stage| stage.made != part.stage.made))
        {
            let name = self.name.to_string();
            return Err(RedisFilterError::Replaced { name, key: part.shards.keys[0].name.clone() });
        }
        self.parts.retain(|part| found.contains_key(&part.number));
        let known = self.parts.last().map(|part| part.number);
        for (number, stage) in found.into_iter().filter(|(number, _)| known.is_none_or(|known| *number > known)) {
            let shards = Shards::of_stage(&self.name, number, stage.plan, stages.until(stage.opened));
            let part = self.part(number, stage, shards);
            self.parts.push(part);
        }
        let first = self.parts[0].number;
        self.common.lock().unwrap_or_else(PoisonError::into_inner).retain(|number, _| *number >= first);
        Ok(())
    }

    /// A stage, of which other clients of the process have the same mirror and marks.
    fn part(&self, number: u64, stage: Stage, shards: Shards) -> Part {
        let mirrored: usize = self.parts.iter().filter(|part| part.mirror.is_some()).map(|part| part.bytes()).sum();
        let fits = mirrored.saturating_add(stage.plan.memory_bytes()) <= self.limit;
        let mut common = self.common.lock().unwrap_or_else(PoisonError::into_inner);
        let Common { shards, mirror, watch } = common.entry(number).or_insert_with(|| {
            let shards = Arc::new(shards);
            // Without one, the server is asked.
            let mirror = (self.mirrored && fits).then(|| meta::local(stage.plan, self.seed).ok()).flatten();
            let listed = self.staged().map(|_| (self.key.clone(), number));
            let watch = Watch::new(&shards, &self.line, stage.made, listed);
            Common { shards, mirror: mirror.map(|mirror| Arc::new(mirror.into())), watch }
        });
        Part {
            number,
            shards: Arc::clone(shards),
            mirror: mirror.clone().filter(|_| self.mirrored),
            watch: watch.another(Some(Instant::now())),
            stage,
        }
    }

    /// The claims since it was last seen that the last stage is listed, if the error says that a stage is not: clients that do not
    /// know the stage may have claimed the same keys.
    pub(crate) fn unlisted(&mut self, error: &RedisFilterError) -> u64 {
        match error {
            RedisFilterError::Gone { key, .. } if *key == self.key.name => mem::take(&mut self.last().watch.claims),
            _ => 0,
        }
    }

    /// Sets the answers to whether a mirror has the hashes.
    pub(crate) fn ask_mirrors(&self, hashes: &[u64], found: &mut [bool]) {
        found.fill(false);
        let mut answers = vec![false; if self.mirrored { hashes.len() } else { 0 }];
        for mirror in self.parts.iter().filter_map(|part| part.mirror.as_deref()) {
            mirror.contains_hashes(hashes, &mut answers);
            found.iter_mut().zip(&answers).for_each(|(found, answer)| *found |= answer);
        }
    }

    /// The number of each stage, the oldest first, from the one after this on.
    pub(crate) fn after(&self, number: Option<u64>) -> Vec<u64> {
        self.parts.iter().map(|part| part.number).filter(|part| Some(*part) > number).collect()
    }

    /// The stage of this number, if it is still asked.
    pub(crate) fn find(&mut self, number: u64) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.number == number)
    }

    /// The error, unless it is that of a stage which is not asked any more.
    pub(crate) async fn unless_forgotten<T: Transport>(
        &mut self,
        nodes: &mut Nodes<T>,
        number: u64,
        result: Result<()>,
    ) -> Result<()> {
        let Err(error @ RedisFilterError::Gone { .. }) = result else { return result };
        if self.staged().is_none() || self.load(nodes).await.is_err() {
            return Err(error);
        }
        self.end_in_time(nodes).await?;
        let (stages, time) = (self.staged(), self.time);
        let is_asked = |part: &mut Part| stages.is_some_and(|stages| stages.is_asked(part.stage.opened, time));
        if self.find(number).is_some_and(is_asked) { Err(error) } else { Ok(()) }
    }
}

/// The keys of the stages that are listed under a name, and of their list.
pub(crate) async fn keys_of<T: Transport>(nodes: &mut Nodes<T>, name: &str) -> Result<Vec<Key>> {
    let list = Key::new(name, STAGES);
    let mut job = Commands::new([(list.slot, list.command("HGETALL"))]);
    nodes.run(&mut job).await?;
    let stages = stages_of(&list, &job.answers[0]).unwrap_or_default();
    let shards = |(number, stage): (u64, Stage)| Shards::of_stage(name, number, stage.plan, None).keys;
    Ok(stages.into_iter().flat_map(shards).chain([list]).collect())
}

/// The stages that an answer lists.
fn stages_of(list: &Key, answer: &Value) -> Result<BTreeMap<u64, Stage>> {
    let refused = || list.refused("its answer makes no sense");
    let Value::Array(fields) = answer else { return Err(refused()) };
    if fields.len() > 2 * MOST {
        return Err(list.refused("it lists more stages than a filter has"));
    }
    let read = |pair: &[Value]| {
        let [Value::BulkString(field), Value::BulkString(line)] = pair else { return Err(refused()) };
        let number = str::from_utf8(field).ok().and_then(|field| field.parse().ok());
        // Others follow.
        let number = number.filter(|number| *number <= u64::MAX / 2).ok_or_else(refused)?;
        Ok((number, meta::decode_stage(&list.name, line)?))
    };
    fields.chunks(2).map(read).collect()
}
