//! Outputs: files and standard output, compressed and in order.

pub mod atomic_file;
pub mod encode;
pub mod output;
pub mod reorder_buffer;
pub mod replace;
mod stored_xz;
pub mod target;
