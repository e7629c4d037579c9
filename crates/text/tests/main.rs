//! The package by its public interface, in one program.

#[cfg(feature = "forms")]
mod forms;
mod near;
mod phrases;
mod substrings;
mod survivors;
mod text;
