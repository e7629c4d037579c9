//! What filters do beside inserting and answering: files, serialization, collecting.

mod extend;
#[cfg(feature = "file")]
mod file;
#[cfg(feature = "serde")]
mod serde;
