//! The commands and options of servers, in a build without a client: each is refused.

use crate::options::{RedisOptions, SharedOptions, SharedWriteOptions, SizeOptions};
use crate::seen::remote_set::RemoteSet;
use crate::seen::set::KeySet;
use crate::system::error::Error;
use bloomline_keys::KeyKinds;

fn refused() -> Error {
    let build = "cargo build --release -p bloomline-cli --features redis";
    Error::Shared(format!("this build has no client of Redis and Valkey servers; build it with `{build}`"))
}

/// Refuses `bloomline redis`.
pub fn run(_: &RedisOptions) -> Result<u8, Error> {
    Err(refused())
}

/// Refuses options that name a filter on a server.
pub fn open(options: &SharedOptions) -> Result<Option<RemoteSet>, Error> {
    options.server.redis.as_ref().map_or(Ok(None), |_| Err(refused()))
}

/// Refuses to insert keys into a filter on a server.
pub fn open_set(
    _: &SizeOptions,
    _: &SharedWriteOptions,
    _: bool,
    _: &SharedOptions,
    _: &KeyKinds,
) -> Result<KeySet, Error> {
    Err(refused())
}
