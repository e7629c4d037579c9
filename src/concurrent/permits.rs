//! `Permits`: permits for keys in a filter that many threads fill, handed out so that threads seldom contend.
//!
//! A key takes a permit before it sets bits, so a filter never has more keys than it was sized for. A single counter
//! would be a cache line for which all threads wait. So each thread takes many permits at once, the more the more are left, and
//! keeps them in a counter of its own. Unused permits return to the shared pool in the end.

use crate::sync::{AtomicU64, Ordering, fence};
use core::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

/// Counters for threads. If there are more threads, some share a counter.
const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };

/// A thread takes the remaining permits divided by this at once, but at least the permits that it needs.
const LEASE_DIVISOR: u64 = 1024;

/// The fewest permits of an epoch for which threads have counters of their own: below, a lease would save little, and the counters
/// would take more memory than the filter.
const MIN_STRIPED: u64 = if cfg!(loom) { 0 } else { 8 * LEASE_DIVISOR };

/// Bits of a counter that count permits. The other bits hold the epoch, so that a late thread with a permit of an
/// earlier epoch does not change the count.
const COUNT_BITS: u32 = 48;

/// A number of permits, of an epoch. In two cache lines, as some CPUs fetch them in pairs.
#[repr(align(128))]
struct PermitCounter(AtomicU64);

impl PermitCounter {
    fn new(epoch: u64) -> Self {
        Self(AtomicU64::new(Self::pack(epoch, 0)))
    }

    fn pack(epoch: u64, count: u64) -> u64 {
        epoch << COUNT_BITS | count
    }

    fn count_in(packed: u64, epoch: u64) -> Option<u64> {
        let count = packed & ((1 << COUNT_BITS) - 1);
        (packed == Self::pack(epoch, count)).then_some(count)
    }

    /// Takes as many permits as `requested` returns for the number of available ones, at most all of them. Returns their number.
    fn acquire(&self, epoch: u64, requested: impl Fn(u64) -> u64) -> u64 {
        let mut taken = 0;
        // Relaxed, as most here: a counter orders nothing but itself.
        _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |packed| {
            taken = Self::count_in(packed, epoch).map_or(0, |count| requested(count).min(count));
            (taken > 0).then(|| packed - taken)
        });
        taken
    }

    fn release(&self, epoch: u64, count: u64) {
        if count > 0 {
            // Release: see `Permits::available`.
            _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, |packed| {
                Self::count_in(packed, epoch).map(|_| packed + count)
            });
        }
    }

    fn set(&self, epoch: u64, count: u64) {
        // A read-modify-write, as all other writes are, so it is ordered after the write that it replaces.
        self.0.swap(Self::pack(epoch, count), Ordering::Relaxed);
    }

    fn count(&self, epoch: u64) -> u64 {
        Self::count_in(self.0.load(Ordering::Relaxed), epoch).unwrap_or(0)
    }
}

/// Permits for keys in the filter of the current epoch.
pub(crate) struct Permits {
    /// The permits that no stripe has.
    pool: PermitCounter,
    /// Created for the first epoch with [`MIN_STRIPED`] permits. Until then all permits are in the pool.
    stripes: OnceLock<Box<[PermitCounter]>>,
}

impl Permits {
    pub(crate) fn new(epoch: u64, count: u64) -> Self {
        let permits = Self { pool: PermitCounter::new(epoch), stripes: OnceLock::new() };
        permits.reset(epoch, count);
        permits
    }

    /// Begins an epoch with `count` permits, and drops the remaining permits of the previous epoch.
    pub(crate) fn reset(&self, epoch: u64, count: u64) {
        if count >= MIN_STRIPED {
            self.stripes.get_or_init(|| (0..STRIPES).map(|_| PermitCounter::new(epoch)).collect());
        }
        self.stripes().iter().for_each(|stripe| stripe.set(epoch, 0));
        // No memory has room for as many keys.
        self.pool.set(epoch, count.min((1 << COUNT_BITS) - 1));
    }

    /// Takes 1 to `max` permits, and returns their number: 0 if none are left, or if the epoch is another one.
    #[inline]
    pub(crate) fn acquire(&self, epoch: u64, max: usize) -> usize {
        let max = max as u64;
        let taken = match self.local().acquire(epoch, |_| max) {
            0 => self.acquire_from_pool(epoch, max),
            taken => taken,
        };
        // At most `max`.
        taken as usize
    }

    fn acquire_from_pool(&self, epoch: u64, max: u64) -> u64 {
        let lease = self.pool.acquire(epoch, |count| max.max(count / LEASE_DIVISOR));
        if lease > 0 {
            let taken = lease.min(max);
            self.local().release(epoch, lease - taken);
            return taken;
        }
        self.stripes().iter().map(|stripe| stripe.acquire(epoch, |_| max)).find(|&taken| taken > 0).unwrap_or(0)
    }

    /// Returns permits that no key needed.
    #[inline]
    pub(crate) fn release(&self, epoch: u64, count: usize) {
        self.local().release(epoch, count as u64);
    }

    /// Returns the number of permits that are not taken. While threads take leases it is often too low. It is too high
    /// only by permits that are returned unused.
    pub(crate) fn available(&self, epoch: u64) -> u64 {
        let leased: u64 = self.stripes().iter().map(|stripe| stripe.count(epoch)).sum();
        // Acquire, and after the stripes: permits that were counted there have left the pool, so no lease counts twice.
        fence(Ordering::Acquire);
        leased + self.pool.count(epoch)
    }

    fn stripes(&self) -> &[PermitCounter] {
        self.stripes.get().map_or(&[], |stripes| stripes)
    }

    /// Returns the calling thread's counter.
    #[inline]
    fn local(&self) -> &PermitCounter {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let Some(stripes) = self.stripes.get() else { return &self.pool };
        let stripe = STRIPE.with(|stripe| match stripe.get() {
            usize::MAX => {
                stripe.set(THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES);
                stripe.get()
            }
            stripe => stripe,
        });
        &stripes[stripe]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_every_permit_and_no_more() {
        for count in [1, 2, 1000, 100_000] {
            let permits = Permits::new(7, count);
            let mut taken = 0;
            while permits.acquire(7, 1) == 1 {
                taken += 1;
                assert_eq!(permits.available(7), count - taken);
            }
            assert_eq!(taken, count);
            permits.release(7, 2);
            assert_eq!((permits.acquire(7, 5), permits.acquire(7, 5)), (2, 0));
        }
    }

    #[test]
    fn racing_threads_get_every_permit_once() {
        for threads in [2u64, 8, 80] {
            let permits = Permits::new(0, 50_000);
            let taken: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..threads)
                    .map(|thread| {
                        // Some take many at once, and some stop early and leave a lease to the others.
                        let (permits, max) = (&permits, if thread % 2 == 0 { 1 } else { 40 });
                        let rounds = if thread % 4 == 0 { usize::MAX } else { 10 };
                        scope.spawn(move || {
                            (0..rounds).map(|_| permits.acquire(0, max)).take_while(|&taken| taken > 0).sum::<usize>()
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
            });
            // The permits that threads held during the last search are free again.
            assert_eq!(taken as u64 + permits.available(0), 50_000);
        }
    }

    #[test]
    fn permits_of_another_epoch_are_neither_given_nor_taken() {
        let permits = Permits::new(1, 100);
        assert_eq!(permits.acquire(1, 10), 10);
        assert_eq!((permits.acquire(0, 1), permits.acquire(2, 1), permits.available(2)), (0, 0, 0));
        permits.reset(2, 5);
        permits.release(1, 10);
        assert_eq!((permits.acquire(1, 1), permits.available(1), permits.available(2)), (0, 0, 5));
        // Only the low bits of the epoch are kept.
        permits.reset((1 << 16) + 3, 5);
        assert_eq!(permits.acquire((1 << 16) + 3, 9), 5);
    }
}
