//! The options of `bloomline redis`.

use crate::options::filter::{ServerOptions, SharedOptions, SharedWriteOptions, SizeOptions};
use crate::options::help::CODES;
use crate::options::values::duration;
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
    /// It also lists what is left of filters that were lost. The servers scan all of their keys, and count the bits of each
    /// filter, which takes some milliseconds for each 16 MiB. The user needs the right to SCAN.
    #[command(after_long_help = CODES)]
    List(ListOptions),
    /// Describe a filter: its size, and how full it is.
    ///
    /// The servers count all its bits, which takes some milliseconds for each 16 MiB.
    #[command(after_long_help = CODES)]
    Info(RedisInfoOptions),
    /// Print the fill of a filter and the state of its servers at intervals.
    ///
    /// Each line has the fill, the keys, the keys per second and the rate of the filter, and for the servers the claims per
    /// second of all filters, the memory and the evicted keys. The servers count all bits of the filter each time. It ends with
    /// Ctrl-C, or when the filter is gone. The user needs the right to INFO for the figures of servers.
    #[command(after_long_help = CODES)]
    Watch(WatchOptions),
    /// Copy a filter to a file.
    ///
    /// Runs may continue meanwhile: every key that was answered before the copy began is in it. An existing file is replaced
    /// once the copy is complete.
    #[command(after_long_help = CODES)]
    Download(DownloadOptions),
    /// Add the keys of a file to a filter.
    ///
    /// A missing filter is created with the size and the seed of the file. An existing one must have the same size and seed.
    /// Runs may continue meanwhile.
    #[command(after_long_help = CODES)]
    Upload(UploadOptions),
    /// Add the members of a Redis set, or lines, to a filter.
    ///
    /// Use it to migrate from a set that stores every key; the set is not changed. A missing filter is created as `dedup`
    /// creates it. Runs may continue meanwhile. If it ends early, run it again: keys that were imported are kept. It prints how
    /// many keys it read, and how many of them were new to the filter.
    #[command(after_long_help = CODES)]
    Import(Box<ImportOptions>),
    /// Remove a filter and all its keys, or what is left of one.
    ///
    /// Stop its runs first. Others end by themselves within a second; lines that they insert until then may be lost to the next
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

    /// Interval, such as 1m
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
    #[arg(long, value_name = "KEY")]
    pub set: Option<String>,

    /// Files whose lines are keys; without any, or for "-", standard input.
    ///
    /// They are plain or compressed.
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
