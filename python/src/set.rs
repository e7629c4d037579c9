//! The library's types behind one: each method of Python finds the filter's type here.
//!
//! A lock lets threads in as the type allows. Whoever waits for it has let go of the GIL, so that the holder, who may
//! want that back, goes on. It is held for a portion of keys at most, but where the whole filter is read.

use crate::error;
use crate::lock::{Detached, Lock, Thread};
use bloomline::{
    AtomicBloomFilter, AtomicScalableBloomFilter, BloomFilter, BorrowedBloomFilter, KeyHasher, RotatingBloomFilter,
    ScalableBloomFilter,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::cmp::Ordering;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;

pub(crate) enum Set {
    Plain(Lock<BloomFilter>),
    Atomic(Lock<AtomicBloomFilter>),
    Scalable(Lock<ScalableBloomFilter>),
    // In a box, for they want an alignment that Python's objects do not have.
    AtomicScalable(Box<Lock<AtomicScalableBloomFilter>>),
    Rotating(Box<Lock<RotatingBloomFilter>>),
    Mapped(Unlocked<BorrowedBloomFilter<'static>>),
}

// What Python's allocator gives.
const _: () = assert!(align_of::<Set>() <= 16);

/// Two locks for one call, always in the same order.
fn ordered<A, B, T>(left: &Lock<A>, right: &Lock<B>, lock: impl FnOnce(bool) -> T) -> T {
    let (left, right) = (std::ptr::from_ref(left).addr(), std::ptr::from_ref(right).addr());
    lock(left.cmp(&right) != Ordering::Greater)
}

/// One expression for the filters of all types, or one each for those of some.
macro_rules! with {
    ($set:expr, $thread:expr, $filter:ident => $value:expr) => {
        with!($set, $thread, [Plain Atomic Scalable AtomicScalable Rotating Mapped] $filter => $value;)
    };
    ($set:expr, $thread:expr, $([$($Kind:ident)*] $filter:ident => $value:expr;)+ $(else $other:pat => $rest:expr,)*) => {
        match $set {
            $($(Set::$Kind(lock) => {
                let $filter = lock.read($thread);
                $value
            })*)+
            $($other => $rest,)*
        }
    };
}

/// A filter to read from alone, which needs no lock.
pub(crate) struct Unlocked<F>(pub(crate) F);

impl<F> Unlocked<F> {
    fn read<'a>(&self, _: impl Into<Thread<'a>>) -> &F {
        &self.0
    }
}

/// Bytes for which the system may have no memory; a vector would end the process.
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
    /// The Python class.
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

    fn lacks(&self, what: &str) -> PyErr {
        let name = self.name();
        let article = if name.starts_with('A') { "an" } else { "a" };
        PyTypeError::new_err(format!("{article} {name} {what}"))
    }

    fn read_only(&self) -> PyErr {
        self.lacks("is for reading: BloomFilter.load(path) gives one that takes keys")
    }

    pub(crate) fn hasher(&self, py: Python<'_>) -> KeyHasher {
        with!(self, py, filter => filter.hasher().clone())
    }

    pub(crate) fn contains(&self, py: Python<'_>, hash: u64) -> bool {
        with!(self, py, filter => filter.contains_hash(hash))
    }

    pub(crate) fn contains_many(&self, thread: Thread<'_>, hashes: &[u64], found: &mut [bool]) {
        with!(self, thread, filter => _ = filter.contains_hashes(hashes, found));
    }

    pub(crate) fn add(&self, py: Python<'_>, hash: u64) -> PyResult<bool> {
        match self {
            Self::Plain(lock) => Ok(lock.write(py).insert_hash(hash)),
            Self::Atomic(lock) => Ok(lock.read(py).insert_hash(hash)),
            Self::Scalable(lock) => lock.write(py).insert_hash(hash).map_err(error::build),
            Self::AtomicScalable(lock) => lock.read(py).insert_hash(hash).map_err(error::build),
            Self::Rotating(lock) => Ok(lock.read(py).insert_hash(hash)),
            Self::Mapped(_) => Err(self.read_only()),
        }
    }

    pub(crate) fn add_many(&self, thread: Thread<'_>, hashes: &[u64], new: &mut [bool]) -> PyResult<()> {
        match self {
            Self::Plain(lock) => _ = lock.write(thread).insert_hashes(hashes, new),
            Self::Atomic(lock) => _ = lock.read(thread).insert_hashes(hashes, new),
            Self::Scalable(lock) => _ = lock.write(thread).insert_hashes(hashes, new).map_err(error::build)?,
            Self::AtomicScalable(lock) => _ = lock.read(thread).insert_hashes(hashes, new).map_err(error::build)?,
            Self::Rotating(lock) => _ = lock.read(thread).insert_hashes(hashes, new),
            Self::Mapped(_) => return Err(self.read_only()),
        }
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

    /// For a copy without memory the library ends the process. So the system is asked before.
    fn ask_for_room(&self, detached: Detached) -> PyResult<()> {
        let mut room = Vec::<u8>::new();
        room.try_reserve_exact(with!(self, detached, filter => filter.memory_bytes())).map_err(error::memory)?;
        drop(black_box(room));
        Ok(())
    }

    /// Before a file is written: of an atomic filter that grows the last stage is copied.
    fn ask_for_room_to_write(&self, detached: Detached) -> PyResult<()> {
        if matches!(self, Self::AtomicScalable(_)) { self.ask_for_room(detached) } else { Ok(()) }
    }

    pub(crate) fn copy(&self, detached: Detached) -> PyResult<Self> {
        self.ask_for_room(detached)?;
        Ok(with!(self, detached,
            [Plain Atomic Scalable AtomicScalable] filter => filter.clone().into();
            else Self::Rotating(_) => return Err(self.lacks("has no copy")),
            else Self::Mapped(_) => return Err(self.lacks("has no copy: BloomFilter.load(path) makes one")),
        ))
    }

    /// Whether both are equal; `None` for filters of two types.
    pub(crate) fn equals(&self, detached: Detached, other: &Self) -> Option<bool> {
        fn equal<F: PartialEq>(detached: Detached, left: &Lock<F>, right: &Lock<F>) -> bool {
            ordered(left, right, |in_order| {
                let (first, second) = if in_order { (left, right) } else { (right, left) };
                let first = first.read(detached);
                *first == *second.read(detached)
            })
        }
        if std::ptr::eq(self, other) {
            return Some(true);
        }
        match (self, other) {
            (Self::Plain(left), Self::Plain(right)) => Some(equal(detached, left, right)),
            (Self::Atomic(left), Self::Atomic(right)) => Some(equal(detached, left, right)),
            (Self::Scalable(left), Self::Scalable(right)) => Some(equal(detached, left, right)),
            (Self::AtomicScalable(left), Self::AtomicScalable(right)) => Some(equal(detached, left, right)),
            _ => None,
        }
    }

    /// Merges another filter into this one: all bits, or those that both have.
    pub(crate) fn merge(&self, detached: Detached, other: &Self, intersect: bool) -> PyResult<()> {
        fn both<F, T>(detached: Detached, left: &Lock<F>, right: &Lock<F>, merge: impl FnOnce(&mut F, &F) -> T) -> T {
            ordered(left, right, |in_order| {
                if in_order {
                    let mut left = left.write(detached);
                    merge(&mut left, &right.read(detached))
                } else {
                    let right = right.read(detached);
                    merge(&mut left.write(detached), &right)
                }
            })
        }
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        match (self, other) {
            (Self::Plain(left), Self::Plain(right)) => both(detached, left, right, |left, right| match intersect {
                true => left.intersect(right),
                false => left.union(right),
            }),
            (Self::Atomic(left), Self::Atomic(right)) => both(detached, left, right, |left, right| match intersect {
                true => left.intersect(right),
                false => left.union(right),
            }),
            _ => {
                let other = other.name();
                return Err(self
                    .lacks(&format!("does not merge with {other}: two BloomFilters do, and two AtomicBloomFilters")));
            }
        }
        .map_err(error::merge)
    }

    /// Of a rotating filter; nothing of others.
    pub(crate) fn rotate(&self, detached: Detached) {
        if let Self::Rotating(lock) = self {
            lock.read(detached).rotate();
        }
    }

    /// Of a mapped filter; others are sound.
    pub(crate) fn verify(&self) -> PyResult<()> {
        match self {
            Self::Mapped(filter) => filter.0.verify().map_err(error::file),
            _ => Ok(()),
        }
    }

    pub(crate) fn save(&self, detached: Detached, path: &Path) -> PyResult<()> {
        self.ask_for_room_to_write(detached)?;
        with!(self, detached,
            [Plain Atomic Scalable AtomicScalable] filter => filter.save(path).map_err(error::file);
            else Self::Rotating(_) => Err(self.lacks("has no file: what it knows is out of date soon")),
            else Self::Mapped(_) => Err(self.lacks("is a file already")),
        )
    }

    /// The bytes of the file.
    pub(crate) fn to_bytes(&self, detached: Detached) -> PyResult<Vec<u8>> {
        let mut bytes = Bytes(Vec::new());
        self.ask_for_room_to_write(detached)?;
        with!(self, detached,
            [Plain Atomic Scalable AtomicScalable] filter => filter.write_to(&mut bytes)?;
            else Self::Rotating(_) => return Err(self.lacks("has no bytes: what it knows is out of date soon")),
            else Self::Mapped(_) => return Err(self.lacks("has no bytes: its file has, so open its path elsewhere")),
        );
        Ok(bytes.0)
    }

    pub(crate) fn memory_bytes(&self, py: Python<'_>) -> usize {
        with!(self, py, filter => filter.memory_bytes())
    }

    pub(crate) fn seed(&self, py: Python<'_>) -> u64 {
        with!(self, py, filter => filter.seed())
    }

    pub(crate) fn key_name(&self, py: Python<'_>) -> String {
        with!(self, py, filter => filter.key_name().to_owned())
    }

    pub(crate) fn current_fpr(&self, detached: Detached) -> f64 {
        with!(self, detached, filter => filter.current_fpr())
    }

    pub(crate) fn false_positive_rate(&self, py: Python<'_>) -> Option<f64> {
        with!(self, py, filter => filter.false_positive_rate())
    }

    pub(crate) fn expected_keys(&self, py: Python<'_>) -> Option<u64> {
        with!(self, py,
            [Plain Atomic Mapped Rotating] filter => filter.expected_keys();
            else Self::Scalable(_) | Self::AtomicScalable(_) => None,
        )
    }

    /// The rate with so many keys in; of filters that keep a rate, that one.
    pub(crate) fn expected_fpr(&self, detached: Detached, keys: Option<u64>) -> PyResult<f64> {
        with!(self, detached,
            [Plain Atomic Mapped] filter => match keys.or(filter.expected_keys()) {
                Some(keys) => Ok(filter.expected_fpr(keys)),
                None => Err(PyTypeError::new_err("expected_fpr(keys): the filter was not made for a number of keys")),
            };
            [Scalable AtomicScalable] filter => match keys {
                None => Ok(filter.estimated_fpr()),
                Some(_) => Err(self.lacks("keeps its rate for any number of keys: call expected_fpr()")),
            };
            else Self::Rotating(_) => Err(self.lacks("keeps its rate: call current_fpr()")),
        )
    }

    /// Distinct keys: counted by filters that grow, estimated from the bits of others.
    pub(crate) fn estimated_keys(&self, detached: Detached) -> PyResult<f64> {
        with!(self, detached,
            [Plain Atomic Mapped] filter => Ok(filter.estimated_keys());
            [Scalable AtomicScalable] filter => Ok(filter.keys() as f64);
            else Self::Rotating(_) => Err(self.lacks("does not count: its window has at most expected_keys")),
        )
    }

    pub(crate) fn fill_ratio(&self, detached: Detached) -> PyResult<f64> {
        with!(self, detached,
            [Plain Atomic Mapped] filter => Ok(filter.fill_ratio());
            else _ => Err(self.lacks("has several parts, each with a fill of its own")),
        )
    }

    pub(crate) fn capacity(&self, detached: Detached, rate: f64) -> PyResult<u64> {
        with!(self, detached,
            [Plain Atomic Mapped] filter => Ok(filter.capacity(rate));
            else _ => Err(self.lacks("has no capacity: it keeps its rate")),
        )
    }

    pub(crate) fn probes(&self, py: Python<'_>) -> PyResult<u32> {
        with!(self, py,
            [Plain Atomic Mapped] filter => Ok(filter.probes());
            else _ => Err(self.lacks("has several parts, each with probes of its own")),
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
