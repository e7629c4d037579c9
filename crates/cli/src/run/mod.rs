//! The engine of the commands that read lines: from numbered chunks of lines to outputs.

pub mod checkpoint;
pub mod events;
pub mod folder;
pub mod input;
pub mod lines;
pub mod manifest;
pub mod marks;
pub mod print;
pub mod progress;
pub mod sink;
pub mod step;
pub mod work;
