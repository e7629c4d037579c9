//! `RotatingBloomFilter`: a window of the last keys, by filters that take turns.

use crate::atomic_filter::AtomicBloomFilter;
use crate::batch::{self, FEW};
use crate::error::BuildError;
use crate::growth::combined;
use crate::key::Key;
use crate::params::{Builder, FromBuilder};
use crate::room::Room;
use crate::row;
use crate::sync::Mutex;
use crate::turn::Turn;
use crate::words4::Words4;
use core::fmt;
use std::sync::PoisonError;

/// Keys of a batch that are inserted together: so many places a batch holds at most, which a generation may lack while it does.
const GROUP: usize = 64;

/// A filter that forgets: a window of the last *n* distinct keys, or of a time, that any number of threads share.
///
/// It is for a stream without an end, such as the doorkeeper of a cache, which admits a key that comes a second time, or a log
/// whose repeats come soon. Filters take turns: the *current generation* takes keys until it has n of them. Then an empty one
/// takes its place, it becomes the *previous generation*, and the one before it is forgotten. Queries ask both.
///
/// - **The last n distinct keys are always found**, and at most 2 n are remembered. A key that comes again is as good as a key
///   that comes for the first time: it stays for n further keys at least. Among threads that race, n is less by the places that
///   others hold at that moment: 1 for an insert, up to 64 for a batch, and 1 in 1024 for a thread that fetches some.
/// - **The rate** of both full generations together is at most the one asked for, p. Each keeps p' with 1 - (1 - p')² = p.
/// - **Memory** is that of three filters for n keys each, as the third is emptied while the others are in use. At 1 %, that is 34
///   bits for each key of the window.
///
/// # Consistency
/// What racing callers may see:
///
/// - **No false negative.** Once `insert` has returned, `contains` is `true` in every thread that learned of it, until n other keys
///   came or [`rotate`](Self::rotate) was called twice.
/// - **At most one claim in a window.** Of any number of threads that insert the same key, at most one gets `true`, also over a
///   rotation, and none does again until a whole generation came and went. One does, unless other keys set the bits that the key
///   lacks. It may also be that nobody does: where two threads insert a new key as the generations rotate, or where a thread is
///   stopped as below.
/// - Queries do not wait. The insert that rotates empties a generation, which takes as long as to write its memory. Only a thread
///   that needs the next rotation before that is done waits for it.
/// - A thread that is stopped in the middle of an insert for as long as it takes to fill more than a generation may leave bits
///   in a later one: those of its key, or of up to 64 keys of its batch. They read like any false positive.
///
/// There is no file of it, no copy and no union: what it knows is out of date soon.
///
/// # A window of time
/// Make it for the most keys that come in the time T, and call [`rotate`](Self::rotate) once in T. Keys of the last T are found, and
/// none that is older than 2 T. If more keys come than it was made for, it rotates by itself, so that the rate stays.
///
/// ```
/// use bloomline::RotatingBloomFilter;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Duration;
///
/// let seen = RotatingBloomFilter::new(100_000, 0.01)?; // the most keys in 10 ms
/// let done = AtomicBool::new(false);
/// std::thread::scope(|threads| {
///     threads.spawn(|| {
///         while !done.load(Ordering::Relaxed) {
///             std::thread::sleep(Duration::from_millis(10));
///             seen.rotate();
///         }
///     });
///     // … other threads insert meanwhile …
///     seen.insert("10.0.0.7");
///     done.store(true, Ordering::Relaxed);
/// });
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// # Examples
/// ```
/// use bloomline::RotatingBloomFilter;
///
/// let seen = RotatingBloomFilter::new(1000, 1e-6)?; // keys of the window, and the rate
/// assert!(seen.insert("a"));
/// assert!(!seen.insert("a"));
/// for key in 0..999u32 {
///     seen.insert(&key);
/// }
/// assert!(seen.contains("a")); // the oldest of the last thousand
/// for key in 0..3000u32 {
///     seen.insert(&key);
/// }
/// assert!(!seen.contains("a")); // forgotten
/// # Ok::<(), bloomline::BuildError>(())
/// ```
pub struct RotatingBloomFilter {
    window: u64,
    rate: f64,
    /// The current one, the previous one, and one that is empty or being emptied.
    generations: [AtomicBloomFilter; 3],
    turn: Turn,
    /// For keys in the current generation.
    room: Room,
    /// Held while the turn passes on.
    rotating: Mutex<()>,
    /// Held while a generation is emptied, which the next rotation waits for.
    emptying: Mutex<()>,
}

impl RotatingBloomFilter {
    /// A filter for a window of the last `window` distinct keys, empty.
    ///
    /// # Errors
    /// [`BuildError`], as from [`AtomicBloomFilter::new`].
    ///
    /// # Examples
    /// ```
    /// let filter = bloomline::RotatingBloomFilter::new(1_000_000, 0.01)?;
    /// assert_eq!((filter.window(), filter.false_positive_rate()), (1_000_000, 0.01));
    /// assert!(filter.expected_fpr() <= 0.01);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn new(window: u64, false_positive_rate: f64) -> Result<Self, BuildError> {
        Self::builder().expected_keys(window).false_positive_rate(false_positive_rate).build()
    }

    /// A [`Builder`] for a filter of this type. It needs the keys of the window and the rate, takes a seed, a kernel and a name
    /// for the kind of keys, and refuses memory and probes ([`BuildError::NotKeysAndRate`]).
    ///
    /// # Examples
    /// ```
    /// use bloomline::RotatingBloomFilter;
    /// let filter: RotatingBloomFilter =
    ///     RotatingBloomFilter::builder().expected_keys(1000).false_positive_rate(0.01).random_seed().build()?;
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    /// Inserts a key. Returns whether it is new to the window: of all threads that insert it, at most one gets `true`. A key that
    /// was there stays for n further keys. O(length of the key); the insert that rotates also empties a generation, O(memory).
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// assert!(seen.insert("a"));
    /// assert!(!seen.insert("a"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(key.hash_with(self.hasher()))
    }

    /// Whether a key may be in the window: always `true` if it is, and `true` at the false-positive rate if it was never inserted.
    /// O(length of the key).
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// seen.insert("a");
    /// assert!(seen.contains("a") && !seen.contains("b"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash_with(self.hasher()))
    }

    /// [`insert`](Self::insert) of a key that was hashed elsewhere; see [`AtomicBloomFilter::insert_hash`].
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.insert_after(None, hash)
    }

    /// [`contains`](Self::contains) of a key that was hashed elsewhere; see [`AtomicBloomFilter::insert_hash`].
    pub fn contains_hash(&self, hash: u64) -> bool {
        loop {
            let turn = self.turn.current();
            if self.newest_first(turn).any(|generation| generation.contains_hash(hash)) {
                return true;
            }
            // Otherwise the previous generation may have been emptied meanwhile, and the key moved on.
            if self.turn.stands(turn) {
                return false;
            }
        }
    }

    /// Inserts many keys in order: `new[i]` is what [`insert`](Self::insert) says of `keys[i]`. Of equal keys in the batch only the
    /// first can be new. Returns how many were. Faster than single calls.
    ///
    /// # Panics
    /// If `new` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// let mut new = [false; 4];
    /// assert_eq!(seen.insert_batch(&["a", "b", "a", "c"], &mut new), 3);
    /// assert_eq!(new, [true, true, false, true]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_batch<K: Key>(&self, keys: &[K], new: &mut [bool]) -> usize {
        batch::check_lengths(keys.len(), new.len());
        batch::hashed(self.hasher(), keys, new, |hashes, new| self.insert_hashes(hashes, new))
    }

    /// Queries many keys: `found[i]` is what [`contains`](Self::contains) says of `keys[i]`. Returns how many were found.
    ///
    /// # Panics
    /// If `found` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// seen.insert("a");
    /// let mut found = [false; 2];
    /// assert_eq!(seen.contains_batch(&["a", "b"], &mut found), 1);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn contains_batch<K: Key>(&self, keys: &[K], found: &mut [bool]) -> usize {
        batch::check_lengths(keys.len(), found.len());
        batch::hashed(self.hasher(), keys, found, |hashes, found| self.contains_hashes(hashes, found))
    }

    /// [`insert_batch`](Self::insert_batch) of keys that were hashed elsewhere; see [`AtomicBloomFilter::insert_hash`].
    ///
    /// # Panics
    /// If `new` is not as long as `hashes`.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// use bloomline::Key;
    /// let hashes = ["a", "b", "a"].map(|key| key.hash_with(seen.hasher()));
    /// let mut new = [false; 3];
    /// assert_eq!(seen.insert_hashes(&hashes, &mut new), 2);
    /// assert_eq!(new, [true, true, false]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn insert_hashes(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), new.len());
        if hashes.len() <= FEW {
            return self.insert_singly(hashes, new);
        }
        let portions = hashes.chunks(GROUP).zip(new.chunks_mut(GROUP));
        portions.map(|(hashes, new)| self.insert_portion(hashes, new)).sum()
    }

    /// [`contains_batch`](Self::contains_batch) of keys that were hashed elsewhere; see [`AtomicBloomFilter::insert_hash`].
    ///
    /// # Panics
    /// If `found` is not as long as `hashes`.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// use bloomline::Key;
    /// seen.insert("a");
    /// let hashes = ["a", "b"].map(|key| key.hash_with(seen.hasher()));
    /// let mut found = [false; 2];
    /// assert_eq!(seen.contains_hashes(&hashes, &mut found), 1);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    #[track_caller]
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
        batch::check_lengths(hashes.len(), found.len());
        loop {
            let turn = self.turn.current();
            let count = row::contains_many(self.newest_first(turn), hashes, found);
            // As in `contains_hash`.
            if count == hashes.len() || self.turn.stands(turn) {
                return count;
            }
        }
    }

    /// Forgets the previous generation, and begins an empty one. After two calls nothing is left of what came before. Calls that
    /// race count as one. O(memory), while the other threads go on.
    ///
    /// # Examples
    /// ```
    /// let seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// seen.insert("a");
    /// seen.rotate();
    /// assert!(seen.contains("a"));
    /// seen.rotate();
    /// assert!(!seen.contains("a"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn rotate(&self) {
        self.rotate_from(self.turn.current());
    }

    /// The keys of the window: so many of the last distinct ones are found.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// The rate asked for, which both generations together do not pass.
    pub fn false_positive_rate(&self) -> f64 {
        self.rate
    }

    /// The false-positive rate to expect when both generations are full: the model's. Takes microseconds. (At high rates it is
    /// a little low, for a key that a generation takes for seen sets bits too; [`current_fpr`](Self::current_fpr) is exact.)
    pub fn expected_fpr(&self) -> f64 {
        combined(self.newest_first(1).map(|generation| generation.expected_fpr(self.window)))
    }

    /// The size of the bits of all three generations in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.generations.iter().map(AtomicBloomFilter::memory_bytes).sum()
    }

    row::as_one!(self, any: self.generations[0], all: self.newest_first(self.turn.current()));

    /// Removes all keys. O(memory).
    ///
    /// # Examples
    /// ```
    /// let mut seen = bloomline::RotatingBloomFilter::new(1000, 1e-6)?;
    /// seen.insert("a");
    /// seen.clear();
    /// assert!(!seen.contains("a"));
    /// # Ok::<(), bloomline::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.generations.iter_mut().for_each(AtomicBloomFilter::clear);
        self.room.begin(self.turn.current(), self.window);
    }

    fn generation(&self, turn: u64) -> &AtomicBloomFilter {
        // Below 3.
        &self.generations[(turn % 3) as usize]
    }

    /// The generations of the window. (The first turn is 1.)
    fn newest_first(&self, turn: u64) -> impl Iterator<Item = &AtomicBloomFilter> + Clone {
        [turn, turn - 1].into_iter().map(|turn| self.generation(turn))
    }

    /// Inserts a hash that this call has set in a generation already, in whose turn that did not count, if there is one: its
    /// turn, and whether the generation before it had the key.
    fn insert_after(&self, mut won: Option<(u64, bool)>, hash: u64) -> bool {
        loop {
            match self.insert_in(self.turn.current(), won, hash) {
                Ok(new) => return new,
                Err(set) => won = set,
            }
        }
    }

    /// Inserts into the generation of `turn`: whether the key is new to the window. If the turn has passed on, what the next
    /// attempt needs to know.
    fn insert_in(&self, turn: u64, won: Option<(u64, bool)>, hash: u64) -> Result<bool, Option<(u64, bool)>> {
        let current = self.generation(turn);
        if current.contains_hash(hash) {
            // In a generation that is not the current one any more, the key would leave the window too soon.
            return if self.turn.stands(turn) { Ok(false) } else { Err(None) };
        }
        let seen = match won {
            // The bits in the previous generation are this call's own.
            Some((in_turn, seen)) if in_turn == turn - 1 => seen,
            _ => self.generation(turn - 1).contains_hash(hash),
        };
        if self.room.take(turn, 1) == 0 {
            self.rotate_from(turn);
            return Err(won);
        }
        let new = current.insert_hash(hash);
        if !new {
            self.room.put(turn, 1);
        }
        if self.turn.counts(turn) { Ok(new && !seen) } else { Err(new.then_some((turn, seen))) }
    }

    /// Inserts at most [`GROUP`] hashes, as single calls would.
    fn insert_portion(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        let turn = self.turn.current();
        let (current, previous) = (self.generation(turn), self.generation(turn - 1));
        // Repeats need no places.
        let lacking = hashes.len() - current.contains_hashes(hashes, new);
        if lacking == 0 && self.turn.stands(turn) {
            new.fill(false);
            return 0;
        }
        let mut seen = [false; GROUP];
        previous.contains_hashes(hashes, &mut seen[..hashes.len()]);
        let places = self.room.take(turn, lacking);
        if places < lacking {
            self.room.put(turn, places);
            return self.insert_singly(hashes, new);
        }
        let won = current.insert_hashes(hashes, new);
        // More than lacked if the generation was emptied since, whose places are gone then.
        self.room.put(turn, lacking.saturating_sub(won));
        let counts = self.turn.counts(turn);
        for ((&hash, new), seen) in hashes.iter().zip(&mut *new).zip(seen) {
            *new = match counts {
                true => *new && !seen,
                false => self.insert_after(new.then_some((turn, seen)), hash),
            };
        }
        new.iter().filter(|new| **new).count()
    }

    fn insert_singly(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        hashes.iter().zip(&mut *new).for_each(|(&hash, new)| *new = self.insert_hash(hash));
        new.iter().filter(|new| **new).count()
    }

    /// Begins the generation after `turn`, unless another thread did.
    #[cold]
    fn rotate_from(&self, turn: u64) {
        // Poisoned locks: nothing here panics between the steps.
        let rotating = self.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        if self.turn.current() != turn {
            return;
        }
        let _emptying = self.emptying.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.begin(turn + 1, self.window);
        self.turn.pass_to(turn + 1);
        drop(rotating);
        // The one before `turn` is in no window from here on. It is the next to take keys.
        self.generation(turn + 2).blocks.wipe();
    }
}

impl FromBuilder for RotatingBloomFilter {
    fn from_builder(builder: Builder<Self>) -> Result<Self, BuildError> {
        let (window, rate) = builder.of_parts::<Words4>()?;
        // 1 - (1 - p')² = p, in a form that does not lose small rates beside 1.
        let both_keep = rate / (1.0 + libm::sqrt(1.0 - rate));
        // A key that a generation takes for seen, at its rate f, takes no place there, but sets bits. That raises f to less
        // than f + f², which is below p' for f = p' / (1 + p').
        let of_one = both_keep / (1.0 + both_keep);
        let generation = || builder.part(window, of_one).build().map_err(|error: BuildError| error.of_whole(rate));
        let generations = [generation()?, generation()?, generation()?];
        let (turn, room) = (Turn::new(1), Room::new(1, window));
        Ok(Self { window, rate, generations, turn, room, rotating: Mutex::new(()), emptying: Mutex::new(()) })
    }
}

impl fmt::Debug for RotatingBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RotatingBloomFilter")
            .field("window", &self.window)
            .field("false_positive_rate", &self.rate)
            .field("memory_bytes", &self.memory_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A thread that reads the turn, sleeps through a rotation, and finds its key in what is the previous generation by then.
    #[test]
    fn a_repeat_under_a_rotation_moves_on_to_the_current_generation() {
        let filter = RotatingBloomFilter::new(1000, 1e-9).unwrap();
        filter.insert_hash(1);
        let turn = filter.turn.current();
        filter.rotate();
        let won = filter.insert_in(turn, None, 1).unwrap_err();
        assert!(!filter.insert_after(won, 1));
        filter.rotate();
        assert!(filter.contains_hash(1));
    }
}
