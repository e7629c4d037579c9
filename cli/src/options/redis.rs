//! The options of `bloomline redis`.

use crate::options::filter::{ServerOptions, SharedOptions, SharedWriteOptions, SizeOptions};
use crate::options::help::CODES;
use crate::values::duration;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `bloomline redis`.
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub struct RedisOptions {
    /// The subcommand.
    #[command(subcommand)]
    pub command: RedisCommand,
}

/// The operations on the filters of a server.
#[derive(Subcommand)]
pub enum RedisCommand {
    /// List the filters of a server or cluster: how large they are, and how full.
    ///
    /// It also lists what is left of filters that were lost. The servers look through all of their keys, and count the bits of each filter,
    /// which takes some milliseconds for each 16 MiB. The user needs the right to SCAN.
    #[command(after_long_help = CODES)]
    List(ListOptions),
    /// Describe a filter: its size, and how full it is.
    ///
    /// The servers count all its bits, which takes some milliseconds for each 16 MiB.
    #[command(after_long_help = CODES)]
    Info(RedisInfoOptions),
    /// Print how a filter fills and how its servers are, again and again.
    ///
    /// Each line has the fill, the keys, the keys a second and the rate of the filter, and of the servers the claims a second of all filters,
    /// the memory and the evicted keys. The servers count all
    /// bits of the filter each time. It ends by Ctrl-C, or when the filter is gone. The user needs the right to INFO for what is told
    /// of servers.
    #[command(after_long_help = CODES)]
    Watch(WatchOptions),
    /// Copy a filter to a file.
    ///
    /// Runs may go on meanwhile: every key that was answered before the copy began is in it. An existing file is replaced once the copy
    /// is whole.
    #[command(after_long_help = CODES)]
    Download(DownloadOptions),
    /// Add the keys of a file to a filter.
    ///
    /// A missing filter is created with the size and the seed of the file. An existing one must have the same size and seed. Runs may go on
    /// meanwhile.
    #[command(after_long_help = CODES)]
    Upload(UploadOptions),
    /// Add the members of a Redis set, or lines, to a filter.
    ///
    /// It is for a change from a set that remembers every key: the set stays as it is. Where there is no filter, one is made as `dedup`
    /// makes it. Runs may go on meanwhile. If it ends early, start it again: what came over stays. It prints how many keys it read,
    /// and how many of them the filter did not have.
    #[command(after_long_help = CODES)]
    Import(Box<ImportOptions>),
    /// Remove a filter and all its keys, or what is left of one.
    ///
    /// End its runs first. Those that go on end by themselves within a second; lines that they take until then may be lost to the next
    /// filter of this name. It is an error if there is nothing to remove.
    #[command(after_long_help = CODES)]
    Delete(DeleteOptions),
}

/// Options of `bloomline redis list`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| arg.required(true)))]
pub struct ListOptions {
    #[command(flatten)]
    pub server: ServerOptions,

    /// Print one JSON array on one line
    #[arg(long)]
    pub json: bool,
}

/// Options of `bloomline redis info`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| arg.required(true)))]
pub struct RedisInfoOptions {
    #[command(flatten)]
    pub shared: SharedOptions,

    /// Print one JSON object on one line
    #[arg(long)]
    pub json: bool,
}

/// Options of `bloomline redis watch`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| arg.required(true)))]
pub struct WatchOptions {
    #[command(flatten)]
    pub shared: SharedOptions,

    /// How often, such as 1m
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    pub every: Duration,

    /// Print each line as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// Options of `bloomline redis download`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| arg.required(true)))]
pub struct DownloadOptions {
    #[command(flatten)]
    pub shared: SharedOptions,

    /// The file for the copy
    #[arg(short, long, value_name = "FILTER")]
    pub output: PathBuf,
}

/// Options of `bloomline redis upload`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| arg.required(true)))]
pub struct UploadOptions {
    #[command(flatten)]
    pub shared: SharedOptions,

    /// The filter's file, as `build --no-shrink` or `redis download` writes it
    #[arg(value_name = "FILTER")]
    pub filter: PathBuf,
}

/// Options of `bloomline redis import`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| arg.required(true)))]
pub struct ImportOptions {
    #[command(flatten)]
    pub shared: SharedOptions,

    #[command(flatten)]
    pub writing: SharedWriteOptions,

    #[command(flatten)]
    pub size: SizeOptions,

    /// The Redis set to read, on the same server or cluster.
    ///
    /// The user needs the rights to SSCAN and SCARD on it.
    #[arg(long, value_name = "KEY", conflicts_with = "files")]
    pub set: Option<String>,

    /// Files whose lines are keys; without any, or for "-", standard input.
    ///
    /// They are plain or compressed by gzip, zstd, xz, bzip2 or lz4.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Keys are bytes that are written as hexadecimal digits, such as Scrapy's fingerprints
    #[arg(long)]
    pub hex: bool,
}

/// Options of `bloomline redis delete`.
#[derive(Args)]
#[command(mut_arg("redis", |arg| arg.required(true)))]
pub struct DeleteOptions {
    #[command(flatten)]
    pub shared: SharedOptions,
}
