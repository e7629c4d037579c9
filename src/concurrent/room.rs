//! `Room`: permits for keys in a filter that many threads fill, handed out so that threads seldom contend.
//!
//! A key takes a place (a permit) before it sets bits, so a filter never has more keys than it was sized for. A single counter
//! would be a cache line for which all threads wait. So each thread takes many places at once, the more the more are left, and
//! keeps them in a counter of its own. Unused places return to the shared pool in the end.

use crate::sync::{AtomicU64, Ordering, fence};
use core::cell::Cell;
use std::sync::atomic::AtomicUsize;

/// Counters for threads. If there are more threads, some share a counter.
const STRIPES: usize = if cfg!(loom) { 1 } else { 64 };

/// A thread takes at once one in so many of the places that are left, but at least those that it needs.
const SHARE: u64 = 1024;

/// Bits of a counter that count places. The others have the turn, so that a thread that comes late with a place of an earlier
/// turn leaves this one's as they are.
const PLACE_BITS: u32 = 48;

/// A number of places, of a turn. In two cache lines, as some CPUs fetch them in pairs.
#[repr(align(128))]
struct Places(AtomicU64);

impl Places {
    fn of(turn: u64, count: u64) -> u64 {
        turn << PLACE_BITS | count
    }

    fn in_turn(places: u64, turn: u64) -> Option<u64> {
        let count = places & ((1 << PLACE_BITS) - 1);
        (places == Self::of(turn, count)).then_some(count)
    }

    /// Takes as many places as `some` returns for those there are, at most all of them, and returns their number.
    fn take(&self, turn: u64, some: impl Fn(u64) -> u64) -> u64 {
        let mut taken = 0;
        // Relaxed, as most here: a counter orders nothing but itself.
        _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |places| {
            taken = Self::in_turn(places, turn).map_or(0, |count| some(count).min(count));
            (taken > 0).then(|| places - taken)
        });
        taken
    }

    fn put(&self, turn: u64, count: u64) {
        if count > 0 {
            // Release: see `Room::free`.
            _ = self.0.fetch_update(Ordering::Release, Ordering::Relaxed, |places| {
                Self::in_turn(places, turn).map(|_| places + count)
            });
        }
    }

    fn set(&self, turn: u64, count: u64) {
        // Like all other writes a read-modify-write, which comes after those that it finds.
        self.0.swap(Self::of(turn, count), Ordering::Relaxed);
    }

    fn count(&self, turn: u64) -> u64 {
        Self::in_turn(self.0.load(Ordering::Relaxed), turn).unwrap_or(0)
    }
}

/// Places for keys in the filter whose turn it is.
pub(crate) struct Room {
    /// The places that no stripe has.
    left: Places,
    stripes: Box<[Places]>,
}

impl Room {
    pub(crate) fn new(turn: u64, places: u64) -> Self {
        let counter = || Places(AtomicU64::new(0));
        let room = Self { left: counter(), stripes: (0..STRIPES).map(|_| counter()).collect() };
        room.begin(turn, places);
        room
    }

    /// Begins a turn with so many places, and drops what is left of the turn before.
    pub(crate) fn begin(&self, turn: u64, places: u64) {
        self.stripes.iter().for_each(|stripe| stripe.set(turn, 0));
        // No memory has room for as many keys.
        self.left.set(turn, places.min((1 << PLACE_BITS) - 1));
    }

    /// Takes 1 to `most` places, and returns their number: 0 if none are left, or if the turn is another one.
    #[inline]
    pub(crate) fn take(&self, turn: u64, most: usize) -> usize {
        let most = most as u64;
        let taken = match self.own().take(turn, |_| most) {
            0 => self.take_from_others(turn, most),
            taken => taken,
        };
        // At most `most`.
        taken as usize
    }

    fn take_from_others(&self, turn: u64, most: u64) -> u64 {
        let lease = self.left.take(turn, |left| most.max(left / SHARE));
        if lease > 0 {
            let taken = lease.min(most);
            self.own().put(turn, lease - taken);
            return taken;
        }
        self.stripes.iter().map(|stripe| stripe.take(turn, |_| most)).find(|&taken| taken > 0).unwrap_or(0)
    }

    /// Returns places that no key needed.
    #[inline]
    pub(crate) fn put(&self, turn: u64, places: usize) {
        self.own().put(turn, places as u64);
    }

    /// Places that are not taken. While threads take leases, it is rather too low, and too high only by places that come back
    /// unused.
    pub(crate) fn free(&self, turn: u64) -> u64 {
        let leased: u64 = self.stripes.iter().map(|stripe| stripe.count(turn)).sum();
        // Acquire, and after the stripes: what was counted there is seen to have left here. No lease counts twice.
        fence(Ordering::Acquire);
        leased + self.left.count(turn)
    }

    /// The calling thread's counter.
    #[inline]
    fn own(&self) -> &Places {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let stripe = STRIPE.with(|stripe| match stripe.get() {
            usize::MAX => {
                stripe.set(THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES);
                stripe.get()
            }
            known => known,
        });
        &self.stripes[stripe]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_every_place_and_no_more() {
        for places in [1, 2, 1000, 100_000] {
            let room = Room::new(7, places);
            let mut taken = 0;
            while room.take(7, 1) == 1 {
                taken += 1;
                assert_eq!(room.free(7), places - taken);
            }
            assert_eq!(taken, places);
            room.put(7, 2);
            assert_eq!((room.take(7, 5), room.take(7, 5)), (2, 0));
        }
    }

    #[test]
    fn racing_threads_get_every_place_once() {
        for threads in [2u64, 8, 80] {
            let room = Room::new(0, 50_000);
            let taken: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..threads)
                    .map(|thread| {
                        // Some take many at once, and some stop early and leave a lease to the others.
                        let (room, most) = (&room, if thread % 2 == 0 { 1 } else { 40 });
                        let rounds = if thread % 4 == 0 { usize::MAX } else { 10 };
                        scope.spawn(move || {
                            (0..rounds).map(|_| room.take(0, most)).take_while(|&taken| taken > 0).sum::<usize>()
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
            });
            // What a thread held in its hand while the last one looked is free again.
            assert_eq!(taken as u64 + room.free(0), 50_000);
        }
    }

    #[test]
    fn places_of_another_turn_are_neither_given_nor_taken() {
        let room = Room::new(1, 100);
        assert_eq!(room.take(1, 10), 10);
        assert_eq!((room.take(0, 1), room.take(2, 1), room.free(2)), (0, 0, 0));
        room.begin(2, 5);
        room.put(1, 10);
        assert_eq!((room.take(1, 1), room.free(1), room.free(2)), (0, 0, 5));
        // Only the low bits of the turn are kept.
        room.begin((1 << 16) + 3, 5);
        assert_eq!(room.take((1 << 16) + 3, 9), 5);
    }
}
