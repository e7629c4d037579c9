//! The description of a filter on its server: one line of text, written once. A filter that grows or forgets has one
//! more line for each stage.

use crate::error::RedisFilterError;
use crate::kinds::{FilterKind, MAX_GENERATIONS, Stages};
use crate::shards::{BLOCK_BYTES, SHARD_BYTES, check_size};
use bloomline::{BloomFilter, BuildError, Builder, KeyHasher, Plan};
use redis::Value;
use std::hash::{BuildHasher, RandomState};
use std::process;
use std::str::FromStr;
use std::time::SystemTime;

const VERSION: u64 = 2;

/// The version of filters with stages.
const STAGED_VERSION: u64 = 3;

/// The number of bits of a creation ID, the field `made` of a line. The ID of a line without this field is 0.
const CREATION_ID_BITS: u32 = 30;

/// Returns a random number that no other client draws.
pub(crate) fn random_id() -> u64 {
    // The standard library's random keys are the same in parent and child after a fork. Process and time are not.
    RandomState::new().hash_one((process::id(), SystemTime::now()))
}

/// Returns the creation ID of a stage of a filter with this `creation_id`. A client that lists the stage again, because a server
/// has lost the list, computes the same number, so the shards still belong to the stage. With another geometry they do
/// not.
pub(crate) fn stage_creation_id(creation_id: u64, number: u64, plan: Plan) -> u64 {
    let parts = [creation_id, number, plan.block_count() as u64, plan.probes().into()];
    let hash = KeyHasher::new(0).bytes(&parts.map(u64::to_le_bytes).concat());
    (hash >> (64 - CREATION_ID_BITS)).max(1)
}

/// Returns a random creation ID for a filter.
pub(crate) fn new_creation_id() -> u64 {
    (random_id() >> (64 - CREATION_ID_BITS)).max(1)
}

/// Returns a new mark for a shard of the filter with this `creation_id`: from 2^62 to 2^63 - 1.
pub(crate) fn new_mark(creation_id: u64) -> u64 {
    (1 << CREATION_ID_BITS | creation_id) << 32 | random_id() >> 32
}

/// True if a mark belongs to the filter or stage with this `creation_id`.
pub(crate) fn has_creation_id(mark: u64, creation_id: u64) -> bool {
    mark >> 32 == 1 << CREATION_ID_BITS | creation_id
}

/// The maximum number of parts of a key whose kinds are recorded, as in a file. The kinds of all later parts are united
/// with the last one's.
const MAX_PARTS: usize = 1024;

/// The number in place of a kind's bit if a part has had only nulls.
const NO_KIND: u32 = 16;

/// Returns the members that record the kinds of each part of a key.
pub(crate) fn kind_members(kinds: &[u16]) -> Vec<String> {
    let members = |(part, &kinds): (usize, &u16)| {
        let bits = (0..u16::BITS).filter(move |bit| kinds >> bit & 1 != 0);
        let part = part.min(MAX_PARTS - 1);
        bits.chain((kinds == 0).then_some(NO_KIND)).map(move |bit| format!("{part}:{bit}"))
    };
    kinds.iter().enumerate().flat_map(members).collect()
}

/// Returns the kinds of each part that the members of an answer record. `None` if the answer is not a list of texts.
pub(crate) fn parse_kind_members(answer: Value) -> Option<Vec<u16>> {
    let Value::Array(members) = answer else { return None };
    let mut kinds = Vec::new();
    for member in members {
        let Value::BulkString(member) = member else { return None };
        let pair = str::from_utf8(&member).ok().and_then(|member| member.split_once(':'));
        let numbers = pair.and_then(|(part, bit)| Some((part.parse::<usize>().ok()?, bit.parse().ok()?)));
        // A newer client may record more.
        let Some((part, bit)) = numbers else { continue };
        let part = part.min(MAX_PARTS - 1);
        kinds.resize(kinds.len().max(part + 1), 0);
        kinds[part] |= 1u16.checked_shl(bit).unwrap_or(0);
    }
    Some(kinds)
}

/// True if a string with this length and these last bytes is a shard with its mark. A string without one was written by a client
/// that has not noticed the removal of its filter, and need not be kept.
pub(crate) fn is_marked(length: &Value, last_bytes: &Value) -> bool {
    let (Value::Int(length), Value::BulkString(last_bytes)) = (length, last_bytes) else { return false };
    let mark = last_bytes[..].try_into().map_or(0, u64::from_be_bytes);
    length % BLOCK_BYTES as i64 == 8 && mark >> 62 == 1
}

/// The description of a filter: its kind, its hasher, and its creation ID.
pub(crate) struct FilterMeta {
    pub(crate) kind: FilterKind,
    pub(crate) hasher: KeyHasher,
    pub(crate) creation_id: u64,
    /// The false-positive rate that was asked for, if any. The server does not store it with a fixed size.
    requested_rate: Option<f64>,
}

/// The rate in the description of a size that was given in bytes.
const DESCRIBED_RATE: f64 = 0.01;

impl FilterMeta {
    /// Creates the description of a filter of this size.
    pub(crate) fn new(size: &Builder<BloomFilter>) -> Result<Self, RedisFilterError> {
        let plan = size.plan()?;
        check_size(plan)?;
        let (kind, requested_rate) = (FilterKind::Fixed(plan), size.requested_rate());
        Ok(Self { kind, hasher: size.hasher(), creation_id: new_creation_id(), requested_rate })
    }

    /// Creates the description of a filter of stages.
    pub(crate) fn staged(stages: Stages) -> Result<Self, RedisFilterError> {
        stages.stage_plan(0)?;
        let (kind, requested_rate) = (FilterKind::Staged(stages), Some(stages.rate));
        Ok(Self { kind, hasher: stages.hasher(), creation_id: new_creation_id(), requested_rate })
    }
}

/// Returns the line that describes a filter.
pub(crate) fn encode(filter: &FilterMeta) -> String {
    let FilterMeta { kind, hasher, creation_id, .. } = filter;
    let (seed, golden) = (hasher.seed(), hasher.golden());
    let (version, size) = match kind {
        FilterKind::Fixed(plan) => (VERSION, format!("blocks={} probes={}", plan.block_count(), plan.probes())),
        FilterKind::Staged(Stages { keys, rate, window, generations, .. }) => {
            (STAGED_VERSION, format!("keys={keys} rate={rate} window={window} generations={generations}"))
        }
    };
    format!(
        "bloomline version={version} layout=words4 {size} seed={seed} golden={golden} shard={SHARD_BYTES} made={creation_id}"
    )
}

/// The fields of a line.
struct Fields<'a> {
    line: &'a str,
    /// The key on the server.
    key: &'a str,
}

impl<'a> Fields<'a> {
    fn parse(line: &'a [u8], prefix: &str, key: &'a str) -> Result<Self, RedisFilterError> {
        let line = str::from_utf8(line).ok().and_then(|line| line.strip_prefix(prefix));
        let fields = line.map(|line| Self { line, key });
        fields.ok_or_else(|| RedisFilterError::NotBloomline { key: key.to_owned() })
    }

    fn not_bloomline(&self) -> RedisFilterError {
        RedisFilterError::NotBloomline { key: self.key.to_owned() }
    }

    fn find(&self, field: &str) -> Option<&'a str> {
        self.line.split(' ').find_map(|pair| pair.strip_prefix(field)?.strip_prefix('='))
    }

    fn text(&self, field: &str) -> Result<&'a str, RedisFilterError> {
        self.find(field).ok_or_else(|| self.not_bloomline())
    }

    fn number<N: FromStr>(&self, field: &str) -> Result<N, RedisFilterError> {
        self.text(field)?.parse().map_err(|_| self.not_bloomline())
    }

    /// Returns the creation ID, the field `made`.
    fn creation_id(&self) -> Result<u64, RedisFilterError> {
        let creation_id = if self.find("made").is_some() { self.number("made")? } else { 0 };
        if creation_id >> CREATION_ID_BITS == 0 { Ok(creation_id) } else { Err(self.not_bloomline()) }
    }

    /// Returns the geometry of blocks and probes.
    fn plan(&self) -> Result<Plan, RedisFilterError> {
        let (blocks, probes) = (self.number::<usize>("blocks")?, self.number("probes")?);
        let memory = blocks.checked_mul(BLOCK_BYTES).ok_or_else(|| self.not_bloomline())?;
        let plan = local_builder(memory, probes, 0).plan().map_err(|_| self.not_bloomline())?;
        check_size(plan)?;
        Ok(plan)
    }
}

/// Returns the filter that a line describes.
pub(crate) fn decode(name: &str, key: &str, line: &[u8]) -> Result<FilterMeta, RedisFilterError> {
    let fields = Fields::parse(line, "bloomline ", key)?;
    // The version is read first, so that the line of a newer version is not misread.
    let version = fields.number("version")?;
    if version > STAGED_VERSION {
        return Err(RedisFilterError::NewerVersion { name: name.to_owned(), found: version, newest: STAGED_VERSION });
    }
    if version < VERSION {
        return Err(RedisFilterError::OlderVersion { name: name.to_owned(), found: version, oldest: VERSION });
    }
    if fields.text("layout")? != "words4" || fields.number::<usize>("shard")? != SHARD_BYTES {
        return Err(fields.not_bloomline());
    }
    let hasher = KeyHasher::new(fields.number("seed")?);
    if fields.number::<u64>("golden")? != hasher.golden() {
        return Err(RedisFilterError::OtherHash { name: name.to_owned() });
    }
    let kind = if version == VERSION {
        FilterKind::Fixed(fields.plan()?)
    } else {
        let stages = Stages {
            keys: fields.number("keys")?,
            rate: fields.number("rate")?,
            window: fields.number("window")?,
            generations: fields.number("generations")?,
            seed: hasher.seed(),
        };
        let (window, generations) = (stages.window > 0, stages.generations);
        if window != (generations > 0) || generations > MAX_GENERATIONS || stages.stage_plan(0).is_err() {
            return Err(fields.not_bloomline());
        }
        FilterKind::Staged(stages)
    };
    Ok(FilterMeta { kind, hasher, creation_id: fields.creation_id()?, requested_rate: None })
}

/// A stage, as its line describes it.
#[derive(Clone, Copy)]
pub(crate) struct StageMeta {
    pub(crate) plan: Plan,
    /// The number of keys that the stage takes.
    pub(crate) keys: u64,
    pub(crate) creation_id: u64,
    /// The time at which the stage was opened, in seconds of Unix time by a server's clock. 0 if the filter does not
    /// forget.
    pub(crate) opened: u64,
}

/// Returns the line of a stage.
pub(crate) fn encode_stage(stage: &StageMeta) -> String {
    let StageMeta { plan, keys, creation_id, opened } = stage;
    format!("blocks={} probes={} keys={keys} made={creation_id} opened={opened}", plan.block_count(), plan.probes())
}

/// Returns the stage that a line describes.
pub(crate) fn decode_stage(key: &str, line: &[u8]) -> Result<StageMeta, RedisFilterError> {
    let fields = Fields::parse(line, "", key)?;
    let (keys, opened) = (fields.number("keys")?, fields.number("opened")?);
    Ok(StageMeta { plan: fields.plan()?, keys, creation_id: fields.creation_id()?, opened })
}

/// Returns the builder of a local filter with the same bits.
pub(crate) fn local_builder(memory: usize, probes: u32, seed: u64) -> Builder<BloomFilter> {
    BloomFilter::builder().memory(memory).probes(probes).seed(seed)
}

/// Returns an empty local filter of the same layout.
pub(crate) fn local_filter(plan: Plan, seed: u64) -> Result<BloomFilter, BuildError> {
    local_builder(plan.memory_bytes(), plan.probes(), seed).build()
}

/// Fails if a filter differs from the requested one.
pub(crate) fn check_same(name: &str, ours: &FilterMeta, theirs: &FilterMeta) -> Result<(), RedisFilterError> {
    if ours.kind.parameters() != theirs.kind.parameters() {
        let rate = ours.requested_rate.unwrap_or(DESCRIBED_RATE);
        let [ours, theirs] = [ours, theirs].map(|filter| filter.kind.describe(rate));
        return Err(RedisFilterError::Differs { name: name.to_owned(), ours, theirs });
    }
    if ours.hasher.seed() != theirs.hasher.seed() {
        return Err(RedisFilterError::Seed { name: name.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(seed: u64) -> FilterMeta {
        FilterMeta { creation_id: 9, ..FilterMeta::new(&local_builder(64_000, 8, seed)).unwrap() }
    }

    #[test]
    fn a_line_describes_the_geometry() {
        // The golden hash is from the Python of docs/FORMAT.md.
        let line = "bloomline version=2 layout=words4 blocks=1000 probes=8 seed=7 golden=3318235210795218045 shard=16777152 made=9";
        assert_eq!(encode(&filter(7)), line);
        let read = decode("n", "k", line.as_bytes()).unwrap();
        assert_eq!(read.creation_id, 9);
        let older = decode("n", "k", line.strip_suffix(" made=9").unwrap().as_bytes()).unwrap();
        assert_eq!(older.creation_id, 0);
        assert_eq!(check_same("n", &filter(7), &read), Ok(()));
        let error = check_same("n", &filter(8), &read).unwrap_err();
        assert_eq!(error, RedisFilterError::Seed { name: "n".into() });
    }

    #[test]
    fn other_lines_are_refused() {
        let line = encode(&filter(7));
        let golden = KeyHasher::new(7).golden();
        let decode = |line: &str| decode("n", "k", line.as_bytes()).map(|_| ()).unwrap_err();
        let foreign = RedisFilterError::NotBloomline { key: "k".into() };
        for other in [
            "".to_owned(),
            "bloomline".to_owned(),
            line.replace("bloomline ", "bloom "),
            line.replace("version=2", "version=x"),
            line.replace("words4", "words8"),
            line.replace("blocks=1000", "blocks=0"),
            line.replace("blocks=1000", "blocks=-1"),
            line.replace("probes=8", "probes=9"),
            line.replace("seed=7", ""),
            line.replace("shard=", "shard=1"),
            line.replace("made=9", "made=x"),
            line.replace("made=9", "made=1073741824"),
        ] {
            assert_eq!(decode(&other), foreign, "{other}");
        }
        let huge = decode(&line.replace("blocks=1000", "blocks=1000000000000000"));
        assert!(matches!(huge, RedisFilterError::Build(BuildError::TooLarge { .. })), "{huge}");
        let newer = RedisFilterError::NewerVersion { name: "n".into(), found: 4, newest: 3 };
        assert_eq!(decode(&line.replace("version=2", "version=4 more=x")), newer);
        let older = RedisFilterError::OlderVersion { name: "n".into(), found: 1, oldest: 2 };
        assert_eq!(decode(&line.replace("version=2", "version=1")), older);
        let other = line.replace(&format!("golden={golden}"), &format!("golden={}", golden ^ 1));
        assert_eq!(decode(&other), RedisFilterError::OtherHash { name: "n".into() });
    }

    #[test]
    fn members_record_the_kinds_of_each_part() {
        let array = |members: Vec<String>| {
            Value::Array(members.into_iter().map(|member| Value::BulkString(member.into())).collect())
        };
        assert_eq!(kind_members(&[5, 0, 1 << 15]), ["0:0", "0:2", "1:16", "2:15"]);
        for kinds in [&[][..], &[0], &[1], &[5, 0, 1 << 15]] {
            assert_eq!(parse_kind_members(array(kind_members(kinds))).as_deref(), Some(kinds));
        }
        let many = parse_kind_members(array(kind_members(&[vec![1; 1024], vec![4; 9]].concat()))).unwrap();
        assert_eq!((many.len(), many[1022], many[1023]), (1024, 1, 5));
        let newer = ["0:99", "x", "1:", ":1", "1:2:3"].map(str::to_owned).to_vec();
        assert_eq!(parse_kind_members(array(newer)), Some(vec![0]));
        assert_eq!(parse_kind_members(Value::Int(1)), None);
    }

    #[test]
    fn a_mark_belongs_to_one_filter_and_the_sum_of_two_overflows() {
        for creation_id in [0, 1, 9, (1 << CREATION_ID_BITS) - 1, new_creation_id()] {
            let marks = [new_mark(creation_id), new_mark(creation_id)];
            assert!(
                marks.iter().all(|&mark| has_creation_id(mark, creation_id) && !has_creation_id(mark, creation_id ^ 1)),
                "{marks:x?}"
            );
            assert!(marks[0] != marks[1] && marks[0] + marks[1] >= 1 << 63 && marks[0] < 1 << 63, "{marks:x?}");
        }
        assert!(!has_creation_id(0, 0) && (0..100).all(|_| (1..1 << CREATION_ID_BITS).contains(&new_creation_id())));
    }
}
