//! `bloomline redis`: manages the filters of servers.

mod import;
mod watch;

use crate::commands::info;
use crate::commands::server;
use crate::options::{
    DeleteOptions, DownloadOptions, ListOptions, RedisCommand, RedisInfoOptions, RedisOptions, ServerOptions,
    SharedOptions, UploadOptions,
};
use crate::seen::local_set::LocalSet;
use crate::seen::remote_set::{Address, RemoteSet};
use crate::seen::set::KeySet;
use crate::system::error::{Error, SUCCESS};
use crate::system::file_lock::FileLock;
use crate::system::files::{self, NamedFile};
use crate::terminal::figures::{Figures, readable, readable_size, table};
use crate::write::output::Output;
use bloomline::BloomFilter;
use bloomline_keys::KeyKinds;
use bloomline_redis::{RedisBloomFilter, RedisFilterError, RedisFilterStats, RedisServer};
use serde_json::{Value, json};

/// Runs the command.
pub fn run(options: &RedisOptions) -> Result<u8, Error> {
    match &options.command {
        RedisCommand::List(options) => list(options),
        RedisCommand::Info(options) => describe(options),
        RedisCommand::Watch(options) => watch::watch(options),
        RedisCommand::Download(options) => download(options),
        RedisCommand::Upload(options) => upload(options),
        RedisCommand::Import(options) => import::import(options),
        RedisCommand::Delete(options) => delete(options),
    }
    .map(|()| SUCCESS)
}

/// Returns the server of a command that requires `--redis`.
fn required_server(options: &ServerOptions) -> Result<RedisServer, Error> {
    Ok(server::server(options)?.expect("clap requires --redis"))
}

/// Returns the address of the filter of a command that requires `--redis` and `--name`.
fn required_address(options: &SharedOptions) -> Result<Address<'_>, Error> {
    Ok(server::address(options)?.expect("clap requires --redis and --name"))
}

/// True if an error is about the filter, and not about the server or the user.
fn concerns_filter(error: &RedisFilterError) -> bool {
    use RedisFilterError::{Denied, Ended, OutOfMemory, Refused, Unreachable};
    !matches!(error, Denied { .. } | Ended | OutOfMemory { .. } | Refused { .. } | Unreachable { .. })
}

/// Returns the files that are read to connect to a server.
fn server_files(server: &ServerOptions) -> Vec<NamedFile> {
    server.files().map(NamedFile::from_path).collect()
}

/// Opens standard output, which must not be one of the files that are read to connect to a server.
fn output(server: &ServerOptions) -> Result<Output, Error> {
    Output::standard(&server_files(server))
}

fn list(options: &ListOptions) -> Result<(), Error> {
    let output = output(&options.server)?;
    let server = required_server(&options.server)?;
    let mut rows = Vec::new();
    let mut objects = Vec::new();
    let mut connection = None;
    for name in RedisBloomFilter::list(&server)? {
        match filter_stats(&server, &mut connection, &name) {
            Ok(stats) => {
                let size = |bytes| readable_size(bytes as usize);
                let mut row = vec![escape_name(&name), size(stats.memory_bytes), size(stats.stored_bytes)];
                row.extend(stats_cells(&stats));
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
    // A row with an error in place of the figures is not aligned.
    let (complete, failed): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.len() > 2);
    let head = ["name", "size", "stored", "fill", "keys", "rate now"].map(str::to_owned).to_vec();
    if !complete.is_empty() {
        output.write_line(table(&[vec![head], complete].concat()))?;
    }
    for row in failed {
        output.write_line(row.join("  "))?;
    }
    Ok(())
}

/// Returns the statistics of a filter. All filters share the `connection`, which the first one opens.
fn filter_stats(
    server: &RedisServer,
    connection: &mut Option<RedisBloomFilter>,
    name: &str,
) -> Result<RedisFilterStats, RedisFilterError> {
    match connection {
        Some(filter) => {
            filter.switch_to(name)?;
            filter.stats()
        }
        None => connection.insert(RedisBloomFilter::open(server, name)?).stats(),
    }
}

/// Escapes a name, so that it cannot control the terminal.
fn escape_name(name: &str) -> String {
    name.escape_debug().to_string()
}

/// Formats the fill, the keys and the rate.
fn stats_cells(stats: &RedisFilterStats) -> [String; 3] {
    let keys = stats.estimated_keys;
    let keys = if keys.is_finite() { format!("{keys:.0}") } else { "unknown".to_owned() };
    [format!("{:.2} %", 100.0 * stats.fill_ratio), keys, readable(stats.expected_fpr)]
}

fn describe(options: &RedisInfoOptions) -> Result<(), Error> {
    let output = output(&options.shared.server)?;
    let address = required_address(&options.shared)?;
    let mut shared = RemoteSet::open(&address)?;
    shared.refresh()?;
    let mut report = Figures::default();
    report.figure("name", "name", address.name);
    info::describe(&mut report, &KeySet::Shared(shared.into()));
    output.write_line(if options.json { report.json() } else { report.text() })
}

fn download(options: &DownloadOptions) -> Result<(), Error> {
    let address = required_address(&options.shared)?;
    files::check_target(&options.output, &server_files(&options.shared.server))?;
    let mut shared = address.open()?;
    let mut copy = LocalSet::from(shared.download()?);
    // The kinds are read after the keys, so that no key lacks its kind.
    if let Some(kinds) = shared.key_kinds()?.filter(|kinds| !kinds.is_empty()) {
        copy.kinds = KeyKinds::from_recorded(&kinds);
    }
    let _lock = FileLock::beside(&options.output, false)?;
    copy.save(&options.output)
}

fn upload(options: &UploadOptions) -> Result<(), Error> {
    let address = required_address(&options.shared)?;
    let path = &options.filter;
    let local = LocalSet::load(path)?;
    let filter = local.fixed().ok_or_else(|| {
        Error::new(format!(
            "cannot upload {path:?}: it grew, and a filter on a server has a fixed size; build it with -n and --when-full warn, or \
             insert its lines by dedup --redis"
        ))
    })?;
    let size = BloomFilter::builder().memory(filter.memory_bytes()).probes(filter.probes()).seed(filter.seed());
    let mut shared = RemoteSet::new(RedisBloomFilter::create(&address.server, address.name, &size)?, None);
    shared.read_kinds()?;
    shared.settle_kinds(&local.kinds)?;
    shared.add_kinds(&local.kinds)?;
    shared.upload(filter)
}

fn delete(options: &DeleteOptions) -> Result<(), Error> {
    let address = required_address(&options.shared)?;
    if !RedisBloomFilter::remove(&address.server, address.name)? {
        return Err(Error::new(format!(
            "the server has no filter {:?}, and nothing was removed; list the filters with bloomline redis list",
            address.name
        )));
    }
    Ok(())
}
