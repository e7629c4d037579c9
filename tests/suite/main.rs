//! The library by its public interface, in one program, because one for each subject would take twice as long to build. Only
//! the library is optimized: to optimize the tests would take twice the time that it saves.

mod bulk;
#[macro_use]
mod bytes;
mod crash;
mod evenness;
mod file;
mod fold;
mod format;
mod generic;
mod keys;
// Only the benchmarks use all of `layouts`.
#[allow(dead_code)]
#[cfg(feature = "variants")]
#[path = "../../benches/common/layout.rs"]
mod layout;
mod memory;
mod model;
mod package;
#[cfg(feature = "variants")]
mod pages;
#[path = "../python/mod.rs"]
mod python;
mod rates;
mod rotating;
mod scalable;
mod secrets;
mod selection;
mod shared_scalable;
mod threads;
#[cfg(feature = "variants")]
mod variants;
mod workers;
