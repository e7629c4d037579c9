//! The system: errors, files, locks and threads.

pub mod error;
pub mod external_sort;
pub mod file_lock;
pub mod file_status;
pub mod files;
pub mod pipe;
pub mod platform;
pub mod positioned;
pub mod standard;
pub mod temp_files;
pub mod u64_file;
pub mod unpoisoned;
pub mod write_watchdog;
