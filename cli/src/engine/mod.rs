//! The engine of the commands that read lines: from numbered chunks of lines to outputs.

pub mod checkpoint;
pub mod folder;
pub mod lane;
pub mod manifest;
pub mod pass;
pub mod sink;
pub mod wakes;
pub mod work;
