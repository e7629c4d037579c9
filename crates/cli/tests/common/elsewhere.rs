//! Stand-ins for what tests ask Unix about files and processes.

use std::fs::Metadata;
use std::process::ExitStatus;
use std::time::UNIX_EPOCH;

pub trait MetadataExt {
    /// Returns a number that changes when another file takes the name.
    fn ino(&self) -> u64;

    fn mtime_nsec(&self) -> i64;
}

impl MetadataExt for Metadata {
    fn ino(&self) -> u64 {
        self.modified().unwrap().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
    }

    fn mtime_nsec(&self) -> i64 {
        self.ino() as i64
    }
}

pub trait ExitStatusExt {
    /// Returns the signal that ended the process. `Child::kill` sets the exit code to 1.
    fn signal(&self) -> Option<i32>;
}

impl ExitStatusExt for ExitStatus {
    fn signal(&self) -> Option<i32> {
        None
    }
}
