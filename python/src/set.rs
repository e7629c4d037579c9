//! `Set`: one type for the library's filters, with functions that some of them lack. [`with`] is for functions of all.
//!
//! A lock admits threads as the type allows. A thread that waits for a lock has released the GIL, so that the holder,
//! which may need the GIL, continues. A lock is held for a portion of keys at most, unless the whole filter is read.

use crate::error;
use crate::lock::{Detached, Lock, Thread};
use bloomline::{
    AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, BorrowedBloomFilter, Filter, MergeError,
    RotatingBloomFilter, ScalableBloomFilter,
};
use bloomline_keys::Kinds;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub(crate) enum Set {
    Plain(Lock<BloomFilter>),
    Atomic(Lock<AtomicBloomFilter>),
    Scalable(Lock<ScalableBloomFilter>),
    // In a box, because they need an alignment that Python's objects do not have.
    AtomicScalable(Box<Lock<AtomicScalableBloomFilter>>),
    Rotating(Box<Lock<RotatingBloomFilter>>),
    Mapped(Unlocked),
}

// The alignment of Python's allocator.
const _: () = assert!(align_of::<Set>() <= 16);

/// Returns true if the left one of two locks for one call is taken first, so that the order is always the same.
fn locks_first<F>(left: &Lock<F>, right: &Lock<F>) -> bool {
    std::ptr::from_ref(left) < std::ptr::from_ref(right)
}

/// One expression for the filters of all types, or one each for some types.
macro_rules! with {
    ($set:expr, $thread:expr, $filter:ident => $value:expr) => {
        $crate::set::with!($set, $thread,
            [Plain Atomic Scalable AtomicScalable Rotating Mapped] $filter => $value;)
    };
    ($set:expr, $thread:expr, $([$($Kind:ident)*] $filter:ident => $value:expr;)+ $(else $other:pat => $rest:expr,)*) => {
        match $set {
            $($($crate::set::Set::$Kind(lock) => {
                let $filter = lock.read($thread);
                $value
            })*)+
            $($other => $rest,)*
        }
    };
}
pub(crate) use with;

/// One expression for the filters of all types that take keys: exclusively, or concurrently.
macro_rules! with_writer {
    ($set:expr, $thread:expr, $filter:ident => $value:expr) => {
        with_writer!($set, $thread, $filter => $value;
            Plain[*] write, Scalable[*] write, Atomic[&*] read, AtomicScalable[&*] read, Rotating[&*] read)
    };
    ($set:expr, $thread:expr, $filter:ident => $value:expr; $($Kind:ident[$($borrow:tt)*] $lock:ident),*) => {
        match $set {
            $(Set::$Kind(lock) => {
                let $filter = &mut $($borrow)* lock.$lock($thread);
                $value
            })*
            Set::Mapped(_) => return Err($set.read_only()),
        }
    };
}

/// A read-only filter, which needs no lock, and the absolute path of its file.
pub(crate) struct Unlocked(pub(crate) BorrowedBloomFilter<'static>, pub(crate) PathBuf);

impl Unlocked {
    pub(crate) fn read<'a>(&self, _: impl Into<Thread<'a>>) -> &BorrowedBloomFilter<'static> {
        &self.0
    }
}

/// Bytes whose allocation may fail; a vector would end the process.
struct Bytes(Vec<u8>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_reserve(bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Set {
    /// Returns the name of the Python class.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Plain(_) => "BloomFilter",
            Self::Atomic(_) => "AtomicBloomFilter",
            Self::Scalable(_) => "ScalableBloomFilter",
            Self::AtomicScalable(_) => "AtomicScalableBloomFilter",
            Self::Rotating(_) => "RotatingBloomFilter",
            Self::Mapped(_) => "MappedBloomFilter",
        }
    }

    fn unsupported(&self, what: &str) -> PyErr {
        let name = self.name();
        let article = if name.starts_with('A') { "an" } else { "a" };
        PyTypeError::new_err(format!("{article} {name} {what}"))
    }

    fn read_only(&self) -> PyErr {
        self.unsupported("is for reading: BloomFilter.load(path) gives one that takes keys")
    }

    /// Returns an error for a filter that takes no keys.
    pub(crate) fn check_writable(&self) -> PyResult<()> {
        if matches!(self, Self::Mapped(_)) { Err(self.read_only()) } else { Ok(()) }
    }

    pub(crate) fn is_empty(&self, detached: Detached) -> bool {
        with!(self, detached, filter => filter.fill_ratio() == 0.0)
    }

    pub(crate) fn key_name<'a>(&'a self, thread: impl Into<Thread<'a>>) -> String {
        with!(self, thread, filter => filter.key_name().to_owned())
    }

    /// Returns the kinds of the keys; empty if none are recorded.
    pub(crate) fn key_kinds<'a>(&'a self, thread: impl Into<Thread<'a>>) -> Vec<u16> {
        with!(self, thread, filter => filter.key_kinds())
    }

    /// Returns the kinds of the keys, which are texts if none are recorded; empty without keys.
    pub(crate) fn kinds_of_keys(&self, detached: Detached) -> Vec<u16> {
        let recorded = self.key_kinds(detached);
        if recorded.is_empty() && !self.is_empty(detached) { vec![Kinds::TEXT.into()] } else { recorded }
    }

    pub(crate) fn add_key_kinds(&self, detached: Detached, kinds: &[u16]) {
        with!(self, detached, filter => filter.add_key_kinds(kinds));
    }

    pub(crate) fn add(&self, py: Python<'_>, hash: u64) -> PyResult<bool> {
        with_writer!(self, py, filter => Filter::try_insert_hash(filter, hash)).map_err(error::build)
    }

    pub(crate) fn add_many(&self, thread: Thread<'_>, hashes: &[u64], new: &mut [bool]) -> PyResult<()> {
        with_writer!(self, thread, filter => Filter::try_insert_hashes(filter, hashes, new)).map_err(error::build)?;
        Ok(())
    }

    pub(crate) fn clear(&self, detached: Detached) -> PyResult<()> {
        match self {
            Self::Plain(lock) => lock.write(detached).clear(),
            Self::Atomic(lock) => lock.write(detached).clear(),
            Self::Scalable(lock) => lock.write(detached).clear(),
            Self::AtomicScalable(lock) => lock.write(detached).clear(),
            Self::Rotating(lock) => lock.write(detached).clear(),
            Self::Mapped(_) => return Err(self.read_only()),
        }
        Ok(())
    }

    /// Checks that there is memory for a copy, because the library ends the process without it.
    fn check_memory(&self, detached: Detached) -> PyResult<()> {
        let mut memory = Vec::<u8>::new();
        memory.try_reserve_exact(with!(self, detached, filter => filter.memory_bytes())).map_err(error::memory)?;
        drop(black_box(memory));
        Ok(())
    }

    /// Checks the memory before a file is written or keys are counted, if parts that many writers write to are then
    /// copied.
    fn check_memory_for_copy(&self, detached: Detached) -> PyResult<()> {
        if matches!(self, Self::AtomicScalable(_) | Self::Rotating(_)) { self.check_memory(detached) } else { Ok(()) }
    }

    pub(crate) fn copy(&self, detached: Detached) -> PyResult<Self> {
        self.check_memory(detached)?;
        Ok(with!(self, detached,
            [Plain Atomic Scalable AtomicScalable] filter => filter.clone().into();
            else Self::Rotating(_) => return Err(self.unsupported("has no copy: from_bytes(bytes(filter)) makes one")),
            else Self::Mapped(_) => return Err(self.unsupported("has no copy: BloomFilter.load(path) makes one")),
        ))
    }

    /// Returns true if both are equal; `None` for filters of two types.
    pub(crate) fn equals(&self, detached: Detached, other: &Self) -> Option<bool> {
        fn equal<F: PartialEq>(detached: Detached, left: &Lock<F>, right: &Lock<F>) -> bool {
            let (first, second) = if locks_first(left, right) { (left, right) } else { (right, left) };
            let first = first.read(detached);
            *first == *second.read(detached)
        }
        if std::ptr::eq(self, other) {
            return Some(true);
        }
        match (self, other) {
            (Self::Plain(left), Self::Plain(right)) => Some(equal(detached, left, right)),
            (Self::Atomic(left), Self::Atomic(right)) => Some(equal(detached, left, right)),
            (Self::Scalable(left), Self::Scalable(right)) => Some(equal(detached, left, right)),
            (Self::AtomicScalable(left), Self::AtomicScalable(right)) => Some(equal(detached, left, right)),
            (Self::Plain(plain), Self::Mapped(mapped)) | (Self::Mapped(mapped), Self::Plain(plain)) => {
                Some(*plain.read(detached) == **mapped.read(detached))
            }
            (Self::Mapped(left), Self::Mapped(right)) => Some(**left.read(detached) == **right.read(detached)),
            _ => None,
        }
    }

    /// Merges another filter into this one: all bits, or the common ones.
    pub(crate) fn merge(&self, detached: Detached, other: &Self, intersect: bool) -> PyResult<()> {
        fn merge_ordered<F>(
            detached: Detached,
            left: &Lock<F>,
            right: &Lock<F>,
            merge: impl FnOnce(&mut F, &F) -> Result<(), MergeError>,
        ) -> Result<(), MergeError> {
            if locks_first(left, right) {
                let mut left = left.write(detached);
                merge(&mut left, &right.read(detached))
            } else {
                let right = right.read(detached);
                merge(&mut left.write(detached), &right)
            }
        }
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        match (self, other) {
            (Self::Plain(left), Self::Plain(right)) => merge_ordered(detached, left, right, |left, right| match intersect {
                true => left.intersect(right),
                false => left.union(right),
            }),
            (Self::Atomic(left), Self::Atomic(right)) => merge_ordered(detached, left, right, |left, right| match intersect {
                true => left.intersect(right),
                false => left.union(right),
            }),
            (Self::Plain(left), Self::Mapped(right)) => {
                let (mut left, right) = (left.write(detached), right.read(detached));
                if intersect { left.intersect(right) } else { left.union(right) }
            }
            _ => {
                let other = other.name();
                return Err(self.unsupported(&format!(
                    "does not merge with {other}: a BloomFilter does with one or with a mapped one, and two AtomicBloomFilters do"
                )));
            }
        }
        .map_err(error::merge)
    }

    /// Verifies a mapped filter; others are sound.
    pub(crate) fn verify(&self) -> PyResult<()> {
        match self {
            Self::Mapped(filter) => filter.0.verify().map_err(error::file),
            _ => Ok(()),
        }
    }

    pub(crate) fn save(&self, detached: Detached, path: &Path) -> PyResult<()> {
        self.check_memory_for_copy(detached)?;
        with!(self, detached,
            [Plain Atomic Scalable AtomicScalable Rotating] filter => filter.save(path).map_err(error::file);
            else Self::Mapped(_) => Err(self.unsupported("is a file already")),
        )
    }

    /// Returns the bytes of the file.
    pub(crate) fn to_bytes(&self, detached: Detached) -> PyResult<Vec<u8>> {
        let mut bytes = Bytes(Vec::new());
        self.check_memory_for_copy(detached)?;
        with!(self, detached,
            [Plain Atomic Scalable AtomicScalable Rotating] filter => filter.write_to(&mut bytes)?;
            else Self::Mapped(_) => return Err(self.unsupported("has no bytes: its file has, so open its path elsewhere")),
        );
        Ok(bytes.0)
    }

    /// Returns the path of a mapped filter's file.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Mapped(filter) => Some(filter.1.clone()),
            _ => None,
        }
    }

    /// Returns the bytes of some blocks, the same on every machine.
    pub(crate) fn blocks(&self, detached: Detached, first: usize, count: usize) -> PyResult<Vec<u8>> {
        let Self::Plain(lock) = self else { return Err(self.unsupported("gives no blocks")) };
        let (filter, mut bytes) = (lock.read(detached), Bytes(Vec::new()));
        for block in first..first.saturating_add(count).min(filter.block_count()) {
            bytes.write_all(filter.block_words(block).map(u64::to_le_bytes).as_flattened())?;
        }
        Ok(bytes.0)
    }

    /// Adds the bits of blocks from another filter of the same form.
    pub(crate) fn unite_blocks(&self, detached: Detached, first: usize, bytes: &[u8]) -> PyResult<()> {
        let Self::Plain(lock) = self else { return Err(self.unsupported("takes no blocks")) };
        let mut filter = lock.write(detached);
        let (blocks, rest) = bytes.as_chunks::<64>();
        if !rest.is_empty() || first.checked_add(blocks.len()).is_none_or(|end| end > filter.block_count()) {
            let (have, want) = (filter.block_count(), bytes.len());
            return Err(PyValueError::new_err(format!("{want} bytes from block {first} on: there are {have} blocks")));
        }
        for (block, bytes) in (first..).zip(blocks) {
            let mut words = filter.block_words(block);
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                *word |= u64::from_le_bytes(*bytes);
            }
            filter.set_block_words(block, words);
        }
        Ok(())
    }

    /// Returns the rate with `keys` keys, or with the number that the filter is made for.
    pub(crate) fn expected_fpr(&self, detached: Detached, keys: Option<u64>) -> PyResult<f64> {
        with!(self, detached,
            [Plain Atomic Mapped] filter => match keys.or(filter.expected_keys()) {
                Some(keys) => Ok(filter.expected_fpr(keys)),
                None => Err(PyTypeError::new_err("expected_fpr(keys): the filter was not made for a number of keys")),
            };
            else Self::Rotating(_) => Err(self.unsupported("keeps its rate: call current_fpr()")),
            else _ => Err(self.unsupported("keeps its rate for any number of keys: call estimated_fpr()")),
        )
    }

    /// Returns the rate by the model, if the filter counts its keys.
    pub(crate) fn estimated_fpr(&self, detached: Detached) -> PyResult<f64> {
        with!(self, detached,
            [Scalable AtomicScalable] filter => Ok(filter.estimated_fpr());
            else Self::Rotating(_) => Err(self.unsupported("does not count its keys: call current_fpr()")),
            else _ => Err(self.unsupported("does not count its keys: call current_fpr(), or expected_fpr(keys)")),
        )
    }

    /// Returns the number of distinct keys: the count of a filter that grows, or an estimate.
    pub(crate) fn keys(&self, detached: Detached) -> PyResult<f64> {
        with!(self, detached,
            [Scalable AtomicScalable] filter => Ok(filter.keys() as f64);
            else _ => self.estimated_keys(detached),
        )
    }

    pub(crate) fn estimated_keys(&self, detached: Detached) -> PyResult<f64> {
        self.check_memory_for_copy(detached)?;
        Ok(with!(self, detached, filter => filter.estimated_keys()))
    }

    pub(crate) fn capacity(&self, detached: Detached, rate: f64) -> PyResult<u64> {
        with!(self, detached,
            [Plain Atomic Mapped] filter => Ok(filter.capacity(rate));
            else _ => Err(self.unsupported("has no capacity: it keeps its rate")),
        )
    }

    pub(crate) fn probes(&self, py: Python<'_>) -> PyResult<u32> {
        with!(self, py,
            [Plain Atomic Mapped] filter => Ok(filter.probes());
            else _ => Err(self.unsupported("has several parts, each with probes of its own")),
        )
    }
}

macro_rules! into_set {
    ($($Filter:ident => |$lock:ident| $set:expr),* $(,)?) => {$(
        impl From<$Filter> for Set {
            fn from(filter: $Filter) -> Self {
                let $lock = Lock::new(filter);
                $set
            }
        }
    )*};
}

into_set! {
    BloomFilter => |lock| Self::Plain(lock),
    AtomicBloomFilter => |lock| Self::Atomic(lock),
    ScalableBloomFilter => |lock| Self::Scalable(lock),
    AtomicScalableBloomFilter => |lock| Self::AtomicScalable(lock.into()),
    RotatingBloomFilter => |lock| Self::Rotating(lock.into()),
}
