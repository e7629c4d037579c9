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

/// The largest mirror of a filter in this process, in bytes.
const MIRRORED: usize = 1 << 30;

/// The time to wait for replicas.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// Returns the address in the options, if they have one.
pub fn address(options: &SharedOptions) -> Result<Option<Address<'_>>, Error> {
    Ok(server(&options.server)?.zip(options.name.as_deref()).map(|(server, name)| Address { server, name }))
}

/// Returns the server in the options, if they have one.
pub fn server(options: &ServerOptions) -> Result<Option<RedisServer>, Error> {
    let Some(url) = options.redis.as_deref() else { return Ok(None) };
    // The URL, or `@` and a file that has it, so that a password need not be on the command line. The file is not read
    // by the parser of the command line, because its errors repeat the text.
    let read = |path: &str| fs::read_to_string(path).map_err(files::cannot_open(&files::name(path.as_ref())));
    let file = url.strip_prefix('@').map(read).transpose()?;
    let mut server = RedisServer::new(file.as_deref().unwrap_or(url).trim())?.end_when(signals::flag());
    let read = |path: &Path| fs::read(path).map_err(files::cannot_open(&files::name(path)));
    if let Some(authority) = &options.redis_ca {
        server = server.certificate_authority(&read(authority)?)?;
    }
    if let (Some(certificate), Some(key)) = (&options.redis_cert, &options.redis_key) {
        server = server.client_certificate(&read(certificate)?, &read(key)?)?;
    }
    Ok(Some(server))
}

/// Returns the set on a server: with -n a filter of this size, otherwise the existing one, or one that grows. Queries
/// its statistics if `stats`. Refuses keys whose kinds differ from those of the set.
pub fn open_set(
    options: &SizeOptions,
    writing: &SharedWriteOptions,
    stats: bool,
    address: &Address,
    kinds: &KeyKinds,
) -> Result<KeySet, Error> {
    let mut shared = open_to_write(address, writing, options)?;
    shared.check_kinds(address.name, kinds)?;
    if stats {
        shared.refresh()?;
    }
    Ok(KeySet::Shared(shared.into()))
}

/// Opens or creates the filter of a command that writes to it: of a fixed size if a number of keys is given, else one that
/// grows.
pub fn open_to_write(address: &Address, options: &SharedWriteOptions, size: &SizeOptions) -> Result<RemoteSet, Error> {
    let (name, rate, seed) = (address.name, size.fpr(), size.seed());
    let server = address.server.clone().wait_for_replicas(options.redis_wait, CONFIRMATION);
    let grows = || RedisBloomFilter::create_stages(&server, name, &Stages::growing(rate).seed(seed));
    let (filter, planned) = match (size.expected_keys, options.forget_after) {
        (Some(keys), Some(window)) => {
            let stages = Stages::window(window, keys, rate).seed(seed);
            (RedisBloomFilter::create_stages(&server, name, &stages)?, Some(rate))
        }
        (Some(keys), None) => {
            let size = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate).seed(seed);
            (RedisBloomFilter::create(&server, name, &size)?, Some(rate))
        }
        (None, _) if size.fpr.is_some() => (grows()?, None),
        (None, _) => match RedisBloomFilter::open(&server, name) {
            Err(RedisFilterError::NotFound { .. }) => (grows()?, None),
            opened => (opened?, None),
        },
    };
    if size.seed.is_some_and(|seed| seed != filter.seed()) {
        return Err(RedisFilterError::Seed { name: name.to_owned() }.into());
    }
    Ok(RemoteSet::new(if options.no_mirror { filter } else { filter.with_mirror_up_to(MIRRORED)? }, planned))
}
