//! The lock of a filter, which a thread that keeps the GIL seldom needs.
//!
//! Two locked instructions cost as much as a lookup, and each waits until the stores of the key before are in the cache. So a
//! thread that keeps the GIL takes no lock while no thread is in [`detach`]: the GIL keeps the others away.

use pyo3::prelude::*;
use pyo3::sync::RwLockExt;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{LockResult, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// True if only one thread at a time runs Python code.
const GIL: bool = !cfg!(Py_GIL_DISABLED);

/// Threads in [`detach`]. It changes and is read by attached threads alone, so the GIL orders all of that.
static DETACHED: AtomicUsize = AtomicUsize::new(0);

/// A thread that accesses a filter.
#[derive(Clone, Copy)]
pub(crate) enum Thread<'py> {
    /// The thread holds the GIL, if Python has one.
    Attached(Python<'py>),
    Detached(Detached),
}

/// Proof that a thread is in [`detach`], which alone makes this.
#[derive(Clone, Copy)]
pub(crate) struct Detached(());

impl<'py> From<Python<'py>> for Thread<'py> {
    fn from(py: Python<'py>) -> Self {
        Self::Attached(py)
    }
}

impl From<Detached> for Thread<'_> {
    fn from(detached: Detached) -> Self {
        Self::Detached(detached)
    }
}

/// Returns true if no other thread can access any filter before the calling attached thread runs Python code, or detaches.
#[inline]
fn is_alone() -> bool {
    GIL && DETACHED.load(Relaxed) == 0
}

/// Runs `work` without the GIL.
pub(crate) fn detach<T: Send>(py: Python<'_>, work: impl FnOnce(Detached) -> T + Send) -> T {
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DETACHED.fetch_sub(1, Relaxed);
        }
    }
    DETACHED.fetch_add(1, Relaxed);
    // Dropped once the thread is attached again.
    let _counted = Counted;
    py.detach(|| work(Detached(())))
}

/// Informs PyO3 that the thread is attached, if Python called a function that is not PyO3's. Otherwise PyO3 would keep
/// dropped objects until Python calls one of its functions, if ever. This takes time, so it is for rare cases.
#[inline(never)]
pub(crate) fn attached<T>(_: Python<'_>, work: impl FnOnce() -> T) -> T {
    // SAFETY: the thread is attached, so there is an interpreter. A check for one would panic while Python ends.
    #[allow(unsafe_code)]
    unsafe {
        Python::attach_unchecked(|_| work())
    }
}

/// A filter and its lock.
pub(crate) struct Lock<F> {
    filter: UnsafeCell<F>,
    lock: RwLock<()>,
}

// SAFETY: only `read` and `write` give access to the filter, to one thread that writes or to any number that read.
#[allow(unsafe_code)]
unsafe impl<F: Send + Sync> Sync for Lock<F> {}

/// A filter while it is locked, if it has to be. Its holder runs no Python code.
pub(crate) struct Locked<F, L> {
    filter: F,
    _lock: Option<L>,
    // Prevents moving it into `Python::detach`.
    _attached: PhantomData<*const ()>,
}

impl<F> Lock<F> {
    pub(crate) fn new(filter: F) -> Self {
        Self { filter: filter.into(), lock: RwLock::new(()) }
    }

    /// Returns the filter for a thread that reads, concurrently with other readers.
    #[inline]
    pub(crate) fn read<'a>(
        &'a self,
        thread: impl Into<Thread<'a>>,
    ) -> Locked<&'a F, LockResult<RwLockReadGuard<'a, ()>>> {
        // A panic leaves a filter valid, because bits are set one by one. So poisoning is ignored.
        let lock = match thread.into() {
            Thread::Attached(_) if is_alone() => None,
            Thread::Attached(py) => Some(self.lock.read_py_attached(py)),
            Thread::Detached(_) => Some(self.lock.read()),
        };
        // SAFETY: the lock keeps others from writing. A thread without the lock has the GIL, and keeps it because it
        // runs no Python code as long as it has the filter. No other thread accesses the filter then: attached threads
        // wait for the GIL, and `is_alone` found no thread in `detach`.
        #[allow(unsafe_code)]
        let filter = unsafe { &*self.filter.get() };
        Locked { filter, _lock: lock, _attached: PhantomData }
    }

    /// Returns the filter for exclusive access.
    #[inline]
    #[allow(clippy::mut_from_ref)] // As a lock's.
    pub(crate) fn write<'a>(
        &'a self,
        thread: impl Into<Thread<'a>>,
    ) -> Locked<&'a mut F, LockResult<RwLockWriteGuard<'a, ()>>> {
        let lock = match thread.into() {
            Thread::Attached(_) if is_alone() => None,
            Thread::Attached(py) => Some(self.lock.write_py_attached(py)),
            Thread::Detached(_) => Some(self.lock.write()),
        };
        // SAFETY: as above, and the lock keeps others from reading too.
        #[allow(unsafe_code)]
        let filter = unsafe { &mut *self.filter.get() };
        Locked { filter, _lock: lock, _attached: PhantomData }
    }
}

impl<F: Deref, L> Deref for Locked<F, L> {
    type Target = F::Target;

    fn deref(&self) -> &F::Target {
        &self.filter
    }
}

impl<F: DerefMut, L> DerefMut for Locked<F, L> {
    fn deref_mut(&mut self) -> &mut F::Target {
        &mut self.filter
    }
}
