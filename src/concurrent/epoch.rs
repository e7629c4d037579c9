//! `EpochCounter`: the filter of a chain that takes keys. Threads that race with a change of it agree on every claim.
//!
//! The filters 0, 1, 2, … take keys one after another: epoch i belongs to filter i. An insert begins with the current one. If
//! it wins the key there, it checks whether the filter has been closed: if so, the claim does not count, and the insert
//! continues in the next filter. Inserts that begin there find the keys whose claims do count. No thread waits, and only a new
//! key costs a fence. docs/DESIGN.md has the proof.

use crate::sync::{AtomicU64, Ordering, fence};

/// The epoch of a chain of filters: the number of the filter that takes keys.
pub(crate) struct EpochCounter {
    /// Filters before this one are closed: a claim there does not count unless it was seen to count already.
    open: AtomicU64,
    /// The filter in which inserts begin: at most `open`.
    current: AtomicU64,
}

impl EpochCounter {
    pub(crate) fn new(current: u64) -> Self {
        Self { open: AtomicU64::new(current), current: AtomicU64::new(current) }
    }

    /// Returns the filter in which inserts begin, which is the newest one for queries.
    #[inline]
    pub(crate) fn current(&self) -> u64 {
        // Acquire: what was written before the epoch advanced to this filter is seen, and so are the claims that count.
        self.current.load(Ordering::Acquire)
    }

    /// Returns true if a claim that this thread just made in the filter `epoch` counts. Otherwise the epoch has advanced.
    #[inline]
    pub(crate) fn validate_claim(&self, epoch: u64) -> bool {
        // SeqCst, with the fence in `advance_to`: either this load sees that the filter is closed, or a thread that begins in a
        // later filter sees the key in this one.
        fence(Ordering::SeqCst);
        self.is_open(epoch)
    }

    /// Returns true if the epoch was still `epoch` when this thread read the bits of filters. Otherwise one of them may have been
    /// emptied since, and the read is void.
    #[inline]
    pub(crate) fn validate_read(&self, epoch: u64) -> bool {
        // Acquire: a thread that read an emptied word sees that the epoch advanced before.
        fence(Ordering::Acquire);
        self.is_open(epoch)
    }

    fn is_open(&self, epoch: u64) -> bool {
        // Acquire: the filter that is open was made before.
        let open = self.open.load(Ordering::Acquire);
        if open == epoch {
            return true;
        }
        // The thread that closed the filter may be suspended in between; this thread does not wait for it.
        self.advance_to(open);
        false
    }

    /// Closes the filters before `epoch`, which is ready to take keys. Any number of threads may do so at once.
    pub(crate) fn advance_to(&self, epoch: u64) {
        raise(&self.open, epoch);
        // Between the two: see `validate_claim`.
        fence(Ordering::SeqCst);
        raise(&self.current, epoch);
    }
}

/// Raises a number to `epoch`, unless it is as high already, because a thread that is late must not set it back.
fn raise(number: &AtomicU64, epoch: u64) {
    // Release: the filter is ready for a thread that reads this number. Acquire, also of a number that is as high: the writes that
    // another thread published with it happen before the fence, as if this thread had made them. Not `fetch_max`, which
    // ThreadSanitizer does not see.
    _ = number.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| (now < epoch).then_some(epoch));
}

#[cfg(all(test, loom))]
mod loom;
