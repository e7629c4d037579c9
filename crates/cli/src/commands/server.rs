//! The filter on a server that the options name.

use crate::options::{ServerOptions, SharedOptions, SharedWriteOptions, SizeOptions};
use crate::seen::remote_set::{Address, RemoteSet};
use crate::seen::set::KeySet;
use crate::system::error::Error;
use crate::system::files;
use crate::terminal::signals;
use bloomline::BloomFilter;
use bloomline_keys::KeyKinds;
use bloomline_redis::{RedisBloomFilter, RedisFilterError, RedisServer, Stages};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The maximum size of the mirror of a filter.
const MAX_MIRROR_BYTES: usize = 1 << 30;

/// The maximum time to wait for replicas.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the address in the options, if they have one.
pub fn address(options: &SharedOptions) -> Result<Option<Address<'_>>, Error> {
    Ok(server(&options.server)?.zip(options.name.as_deref()).map(|(server, name)| Address { server, name }))
}

/// Opens the existing filter in the options, if they have one.
pub fn open(options: &SharedOptions) -> Result<Option<RemoteSet>, Error> {
    address(options)?.map(|address| RemoteSet::open(&address)).transpose()
}

/// Returns the server in the options, if they have one.
pub fn server(options: &ServerOptions) -> Result<Option<RedisServer>, Error> {
    let Some(url) = options.redis.as_deref() else { return Ok(None) };
    // The URL, or `@` and a file that has it, so that a password need not be on the command line. The file is not read
    // by the parser of the command line, because its errors repeat the text.
    let url = match url.strip_prefix('@') {
        Some(path) => &fs::read_to_string(path).map_err(files::cannot_open(&files::name(path.as_ref())))?,
        None => url,
    };
    let mut server = RedisServer::new(url.trim())?.end_when(signals::flag());
    let read = |path: &Path| fs::read(path).map_err(files::cannot_open(&files::name(path)));
    if let Some(authority) = &options.redis_ca {
        server = server.certificate_authority(&read(authority)?)?;
    }
    if let (Some(certificate), Some(key)) = (&options.redis_cert, &options.redis_key) {
        server = server.client_certificate(&read(certificate)?, &read(key)?)?;
    }
    Ok(Some(server))
}

/// Opens the set of a command that inserts keys of these kinds, as [`open_to_write`] does, and refuses other kinds than the
/// set has. Queries the statistics of the set if `stats` is true.
pub fn open_set(
    options: &SizeOptions,
    writing: &SharedWriteOptions,
    stats: bool,
    shared: &SharedOptions,
    kinds: &KeyKinds,
) -> Result<KeySet, Error> {
    let address = address(shared)?.expect("the options require an address");
    let mut shared = open_to_write(&address, writing, options)?;
    shared.check_kinds(address.name, kinds)?;
    if stats {
        shared.refresh()?;
    }
    Ok(KeySet::Shared(shared.into()))
}

/// Opens or creates the filter of a command that writes to it. With -n the filter has a fixed size; otherwise it is the
/// existing one, or one that grows.
pub fn open_to_write(address: &Address, options: &SharedWriteOptions, size: &SizeOptions) -> Result<RemoteSet, Error> {
    let name = address.name;
    let rate = size.fpr();
    let seed = size.seed();
    let server = address.server.clone().wait_for_replicas(options.redis_wait, REPLICA_TIMEOUT);
    let create_stages = |stages: Stages| RedisBloomFilter::create_stages(&server, name, &stages.seed(seed));
    let filter = if let Some(keys) = size.expected_keys {
        match options.forget_after {
            Some(window) => create_stages(Stages::window(window, keys, rate))?,
            None => {
                let builder = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate).seed(seed);
                RedisBloomFilter::create(&server, name, &builder)?
            }
        }
    } else if size.fpr.is_some() {
        create_stages(Stages::growing(rate))?
    } else {
        match RedisBloomFilter::open(&server, name) {
            Err(RedisFilterError::NotFound { .. }) => create_stages(Stages::growing(rate))?,
            opened => opened?,
        }
    };
    if size.seed.is_some_and(|seed| seed != filter.seed()) {
        return Err(RedisFilterError::Seed { name: name.to_owned() }.into());
    }
    let filter = if options.no_mirror { filter } else { filter.with_mirror_up_to(MAX_MIRROR_BYTES)? };
    let planned_rate = size.expected_keys.map(|_| rate);
    let mut set = RemoteSet::new(filter, planned_rate);
    set.awaited_replicas = options.redis_wait;
    Ok(set)
}
