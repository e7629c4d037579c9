//! `bloomline redis`: manages the filters of servers.

use crate::commands::info;
use crate::commands::server;
use crate::options::{
    DeleteOptions, DownloadOptions, ImportOptions, ListOptions, RedisCommand, RedisInfoOptions, RedisOptions,
    ServerOptions, UploadOptions, WatchOptions,
};
use crate::read::find::NamedPaths;
use crate::read::inputs::Inputs;
use crate::seen::local_set::LocalSet;
use crate::seen::remote_set::RemoteSet;
use crate::seen::set::KeySet;
use crate::system::error::{Error, SUCCESS};
use crate::system::file_lock::FileLock;
use crate::system::files::{self, NamedFile};
use crate::terminal::figures::{Figures, readable, readable_count, readable_size, table};
use crate::terminal::messages::warn;
use crate::write::output::Output;
use bloomline::{BloomFilter, Key};
use bloomline_keys::{KeyKinds, Kinds};
use bloomline_redis::{RedisBloomFilter, RedisFilterError, RedisFilterStats, RedisServerStats, SetMembers};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

/// Runs the command.
pub fn run(options: &RedisOptions) -> Result<u8, Error> {
    match &options.command {
        RedisCommand::List(options) => list(options),
        RedisCommand::Info(options) => describe(options),
        RedisCommand::Watch(options) => watch(options),
        RedisCommand::Download(options) => download(options),
        RedisCommand::Upload(options) => upload(options),
        RedisCommand::Import(options) => import(options),
        RedisCommand::Delete(options) => delete(options),
    }
    .map(|()| SUCCESS)
}

/// True if an error is about the filter, and not about the server or the user.
fn concerns_filter(error: &RedisFilterError) -> bool {
    use RedisFilterError::{Denied, Ended, OutOfMemory, Refused, Unreachable};
    !matches!(error, Denied { .. } | Ended | OutOfMemory { .. } | Refused { .. } | Unreachable { .. })
}

/// Returns the files that are read to connect to a server.
fn origins(server: &ServerOptions) -> Vec<NamedFile> {
    server.files().map(NamedFile::from_path).collect()
}

/// Opens standard output, which must not be one of the files that are read to connect to a server.
fn output(server: &ServerOptions) -> Result<Output, Error> {
    Output::standard(&origins(server))
}

fn list(options: &ListOptions) -> Result<(), Error> {
    let output = output(&options.server)?;
    let server = server::server(&options.server)?.expect("it is required");
    let (mut rows, mut objects) = (Vec::new(), Vec::new());
    let mut filter: Option<RedisBloomFilter> = None;
    for name in RedisBloomFilter::list(&server)? {
        // All filters share one connection.
        let opened = match &mut filter {
            Some(filter) => filter.switch_to(&name),
            None => RedisBloomFilter::open(&server, &name).map(|opened| filter = Some(opened)),
        };
        match opened.and_then(|()| filter.as_mut().expect("it is open").stats()) {
            Ok(stats) => {
                let size = |bytes| readable_size(bytes as usize);
                let mut row = vec![escape_name(&name), size(stats.memory_bytes), size(stats.stored_bytes)];
                row.extend(figures(&stats));
                rows.push(row);
                let RedisFilterStats { memory_bytes, fill_ratio, estimated_keys, expected_fpr, stored_bytes, .. } =
                    stats;
                objects.push(json!({
                    "name": name, "memory_bytes": memory_bytes, "stored_bytes": stored_bytes, "fill": fill_ratio,
                    "estimated_keys": estimated_keys, "fpr": expected_fpr,
                }));
            }
            // A filter that was lost or has another version does not hide the others.
            Err(error) if concerns_filter(&error) => {
                rows.push(vec![escape_name(&name), error.to_string()]);
                objects.push(json!({ "name": name, "error": error.to_string() }));
            }
            Err(error) => return Err(error.into()),
        }
    }
    if options.json {
        return output.write_line(Value::from(objects).to_string());
    }
    // The error of a filter replaces its figures, and is not aligned.
    let (complete, failed): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.len() > 2);
    let head = ["name", "size", "stored", "fill", "keys", "rate now"].map(str::to_owned).to_vec();
    let mut lines = if complete.is_empty() { Vec::new() } else { vec![table(&[vec![head], complete].concat())] };
    lines.extend(failed.iter().map(|row| row.join("  ")));
    lines.iter().try_for_each(|line| output.write_line(line))
}

/// Escapes a name, so that it cannot control the terminal.
fn escape_name(name: &str) -> String {
    name.escape_debug().to_string()
}

/// Formats the fill, the keys and the rate.
fn figures(stats: &RedisFilterStats) -> [String; 3] {
    let keys = stats.estimated_keys;
    let keys = if keys.is_finite() { format!("{keys:.0}") } else { "unknown".to_owned() };
    [format!("{:.2} %", 100.0 * stats.fill_ratio), keys, readable(stats.expected_fpr)]
}

fn describe(options: &RedisInfoOptions) -> Result<(), Error> {
    let output = output(&options.shared.server)?;
    let address = server::address(&options.shared)?.expect("it is required");
    let mut shared = RemoteSet::open(&address)?;
    shared.refresh()?;
    let mut report = Figures::default();
    report.figure("name", "name", address.name);
    info::describe(&mut report, &KeySet::Shared(shared.into()));
    output.write_line(if options.json { report.json() } else { report.text() })
}

fn download(options: &DownloadOptions) -> Result<(), Error> {
    let address = server::address(&options.shared)?.expect("it is required");
    files::check_target(&options.output, &origins(&options.shared.server))?;
    let mut shared = address.open()?;
    let mut copy = LocalSet::from(shared.download()?);
    // After the keys, so that none of them lacks its kinds.
    if let Some(kinds) = shared.key_kinds()?.filter(|kinds| !kinds.is_empty()) {
        copy.kinds = KeyKinds::from_recorded(&kinds);
    }
    let _lock = FileLock::beside(&options.output, false)?;
    copy.save(&options.output)
}

fn upload(options: &UploadOptions) -> Result<(), Error> {
    let address = server::address(&options.shared)?.expect("it is required");
    let path = &options.filter;
    let local = LocalSet::load(path)?;
    let grown = || {
        Error::new(format!(
            "cannot upload {path:?}: it grew, and a filter on a server has a fixed size; build it with -n and --when-full warn, or \
             insert its lines by dedup --redis"
        ))
    };
    let filter = local.fixed().ok_or_else(grown)?;
    let size = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes()).seed(filter.seed());
    let mut shared = RemoteSet::new(RedisBloomFilter::create(&address.server, address.name, &size)?, None);
    shared.read_kinds()?;
    shared.settle_kinds(&local.kinds)?;
    shared.add_kinds(&local.kinds)?;
    shared.upload(filter)
}

/// Lines that are inserted together: as many keys as the library sends in one round trip.
const IMPORT_BATCH: usize = 4096;

fn import(options: &ImportOptions) -> Result<(), Error> {
    let address = server::address(&options.shared)?.expect("it is required");
    let output = Output::standard([])?;
    let mut import = ImportCounts::default();
    let open = || -> Result<RemoteSet, Error> {
        let mut shared = server::open_to_write(&address, &options.writing, &options.size)?;
        shared.read_kinds()?;
        shared.add_kinds(&KeyKinds::new(Kinds::TEXT))?;
        Ok(shared)
    };
    let shared = if let Some(set) = &options.set {
        let mut members = SetMembers::new(&address.server, set)?;
        let count = members.cardinality()?;
        if count == 0 {
            return Err(Error::new(format!(
                "the server has no set \"{set}\", or it is empty; give the key of a set with --set"
            )));
        }
        let shared = open()?;
        for members in members {
            import.add(&members?, options.hex, &shared)?;
        }
        if import.read < count {
            return Err(Error::new(format!(
                "only {} of {count} members of the set \"{set}\" were read, because another server took over or the set shrank; run \
                 the command again",
                import.read
            )));
        }
        shared
    } else {
        let standard = [PathBuf::from("-")];
        let paths = if options.files.is_empty() { &standard[..] } else { &options.files };
        let inputs = Inputs::check(&NamedPaths { paths, line_end: Some(b'\n'), ..NamedPaths::default() }, &[], false)?;
        let shared = open()?;
        for input in inputs.found {
            let name = input.origin.name().to_owned();
            let failed = files::cannot_open(&name);
            let mut contents = BufReader::new(input.open(0).map_err(&failed)?.contents);
            let mut lines = Vec::new();
            loop {
                let mut line = Vec::new();
                let is_end = contents.read_until(b'\n', &mut line).map_err(&failed)? == 0;
                if !is_end {
                    line.truncate(line.len() - usize::from(line.ends_with(b"\n")));
                    lines.push(line);
                }
                if is_end || lines.len() == IMPORT_BATCH {
                    import.add(&lines, options.hex, &shared)?;
                    lines.clear();
                }
                if is_end {
                    break;
                }
            }
        }
        shared
    };
    shared.warnings().iter().chain(&shared.overfull_warning()).for_each(|warning| warn(warning));
    output.write_line(format!("{} keys read, {} of them new", import.read, import.new))
}

/// Counts of the imported keys.
#[derive(Default)]
struct ImportCounts {
    read: u64,
    new: u64,
}

impl ImportCounts {
    fn add(&mut self, keys: &[Vec<u8>], hex: bool, shared: &RemoteSet) -> Result<(), Error> {
        let hash = |key: &Vec<u8>| {
            let bytes = if hex { from_hex(key) } else { Some(key.clone()) };
            let not_hex = || {
                Error::new(format!(
                    "\"{}\" is not a key in hexadecimal digits; leave out --hex, or remove it from the input",
                    String::from_utf8_lossy(key).escape_debug()
                ))
            };
            let bytes = bytes.ok_or_else(not_hex)?;
            Ok(bytes.hash_with(&shared.hasher))
        };
        let hashes = keys.iter().map(hash).collect::<Result<Vec<u64>, Error>>()?;
        let new = shared.insert_hashes(&hashes, &mut vec![false; hashes.len()])?;
        self.read += keys.len() as u64;
        self.new += new as u64;
        Ok(())
    }
}

/// Decodes hexadecimal digits.
fn from_hex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(value(high)? << 4 | value(low)?)).collect()
}

fn delete(options: &DeleteOptions) -> Result<(), Error> {
    let address = server::address(&options.shared)?.expect("it is required");
    match RedisBloomFilter::remove(&address.server, address.name)? {
        true => Ok(()),
        false => Err(Error::new(format!(
            "the server has no filter {:?}, and nothing was removed; list the filters with bloomline redis list",
            address.name
        ))),
    }
}

/// The state of a filter and its servers at a point in time.
struct FilterSnapshot {
    taken_at: Instant,
    stats: RedisFilterStats,
    servers: Vec<RedisServerStats>,
}

/// The figures of a line of `watch`.
struct WatchRow {
    /// Per second, since the previous line.
    keys: Option<f64>,
    claims: Option<f64>,
    used: u64,
    max: Option<u64>,
    /// The number of evicted keys of any kind.
    evicted: u64,
}

impl FilterSnapshot {
    fn new(filter: &mut RedisBloomFilter) -> Result<Self, RedisFilterError> {
        Ok(Self { taken_at: Instant::now(), stats: filter.stats()?, servers: filter.servers() })
    }

    fn change(&self, previous: Option<&Self>) -> WatchRow {
        let sum =
            |snapshot: &Self, figure: fn(&RedisServerStats) -> u64| snapshot.servers.iter().map(figure).sum::<u64>();
        let seconds = previous.map(|previous| (self.taken_at - previous.taken_at).as_secs_f64());
        let claims = |snapshot| sum(snapshot, |server| server.claims);
        // The counters of a restarted server start at 0.
        let new_claims = previous.map(|previous| claims(self).saturating_sub(claims(previous)) as f64);
        let keys = previous.map(|previous| self.stats.estimated_keys - previous.stats.estimated_keys);
        let per_second = |count: Option<f64>| count.zip(seconds).map(|(count, seconds)| count / seconds);
        WatchRow {
            keys: per_second(keys).filter(|keys| keys.is_finite()),
            claims: per_second(new_claims).filter(|_| !self.servers.is_empty()),
            used: sum(self, |server| server.used_bytes),
            max: self.servers.iter().map(|server| server.max_bytes).sum(),
            evicted: sum(self, |server| server.evicted_keys),
        }
    }

    fn json(&self, change: &WatchRow) -> String {
        let RedisFilterStats { fill_ratio, estimated_keys, expected_fpr, stored_bytes, .. } = self.stats;
        let has_servers = !self.servers.is_empty();
        let nodes = self.servers.iter().map(|server| {
            let RedisServerStats { node, used_bytes, max_bytes, evicted_keys, claims, .. } = server;
            json!({
                "node": node, "used_bytes": used_bytes, "max_bytes": max_bytes, "evicted_keys": evicted_keys,
                "claims": claims,
            })
        });
        json!({
            "fill": fill_ratio, "estimated_keys": estimated_keys, "fpr": expected_fpr, "stored_bytes": stored_bytes,
            "keys_per_second": change.keys, "claims_per_second": change.claims,
            "used_bytes": has_servers.then_some(change.used), "max_bytes": change.max.filter(|_| has_servers),
            "evicted_keys": has_servers.then_some(change.evicted), "nodes": nodes.collect::<Vec<_>>(),
        })
        .to_string()
    }

    fn text(&self, change: &WatchRow) -> String {
        let [fill, keys, rate] = figures(&self.stats);
        let cell = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), readable_count);
        let used = match change.max {
            _ if self.servers.is_empty() => "-".to_owned(),
            Some(max) => format!("{} of {}", readable_size(change.used as usize), readable_size(max as usize)),
            None => readable_size(change.used as usize),
        };
        let evicted = if self.servers.is_empty() { "-".to_owned() } else { change.evicted.to_string() };
        let stored = readable_size(self.stats.stored_bytes as usize);
        line(&[&fill, &keys, &cell(change.keys), &rate, &stored, &cell(change.claims), &used, &evicted])
    }
}

/// Formats cells in columns of typical widths.
fn line(cells: &[&str; 8]) -> String {
    let widths = [8, 14, 8, 9, 11, 9, 26, 8];
    cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect::<Vec<_>>().join(" ")
}

fn watch(options: &WatchOptions) -> Result<(), Error> {
    let output = output(&options.shared.server)?;
    let address = server::address(&options.shared)?.expect("it is required");
    let mut filter = address.open()?;
    if !options.json {
        let head = ["fill", "keys", "keys/s", "rate now", "stored", "claims/s", "memory of servers", "evicted"];
        output.write_line(line(&head))?;
    }
    let mut previous = None;
    loop {
        let snapshot = FilterSnapshot::new(&mut filter)?;
        let change = snapshot.change(previous.as_ref());
        output.write_line(if options.json { snapshot.json(&change) } else { snapshot.text(&change) })?;
        previous = Some(snapshot);
        // A signal ends the process.
        thread::sleep(options.every);
    }
}
