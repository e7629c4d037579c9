//! The terminal: messages, the progress bar, formatted figures and signals.

pub mod bar;
pub mod figures;
pub mod messages;
pub mod phase;
pub mod signals;
