//! Atomics and locks: the standard library's, or loom's when a model is checked.

#[cfg(all(not(loom), feature = "std"))]
pub(crate) use core::sync::atomic::{AtomicBool, fence};
#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(all(loom, feature = "std"))]
pub(crate) use loom::sync::{Mutex, atomic::AtomicBool, atomic::fence};
#[cfg(all(not(loom), feature = "std"))]
pub(crate) use std::sync::Mutex;
