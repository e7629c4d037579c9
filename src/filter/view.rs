//! `dispatch!` and `View`: loops of other crates, compiled for the CPU that they run on.

use crate::kernel::{InLoop, Isa, LoopIsa, RunKeyOp};
use crate::key::hash::KeyHasher;
use crate::key::single::Key;
use core::fmt;
use core::ops::Deref;

/// Compiles a loop of single calls for the CPU that it runs on: `dispatch!(&filter, |view| …)`.
///
/// A program for any x86-64 calls [`contains`](crate::BloomFilter::contains) and [`insert`](crate::BloomFilter::insert)
/// through a pointer, because the instructions of their kernel may not exist. This macro compiles the loop three times: for
/// AVX-512, for AVX2, and for any CPU. It checks the CPU once, and runs the loop that fits. In the first two the
/// [`View`] of the filter inlines its calls, which takes a tenth to a third less time than single calls. On other architectures,
/// or with `-C target-cpu=native`, there is one loop.
///
/// The filter is a `&` or `&mut` of a filter of one size. It is evaluated once.
///
/// # Examples
/// ```
/// use bloomline::BloomFilter;
///
/// let mut seen = BloomFilter::new(1000, 1e-6)?;
/// let lines = ["a", "b", "a", "c"];
/// let mut new = Vec::new();
/// bloomline::dispatch!(&mut seen, |mut view| {
///     for line in lines {
///         if view.insert(line) {
///             new.push(line);
///         }
///     }
/// });
/// assert_eq!(new, ["a", "b", "c"]);
///
/// let known = bloomline::dispatch!(&seen, |view| lines.iter().filter(|line| view.contains(**line)).count());
/// assert_eq!(known, 4);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
///
/// Beyond the caches, [`prefetch_hash`](crate::BloomFilter::prefetch_hash) brings it within a tenth of a batch:
/// ```
/// use bloomline::BloomFilter;
///
/// let seen: BloomFilter = (0..500u64).collect();
/// let hashes: Vec<u64> = (0..1000u64).map(|key| seen.hasher().bytes(&key.to_le_bytes())).collect();
/// let found = bloomline::dispatch!(&seen, |view| {
///     let mut found = 0;
///     for (i, &hash) in hashes.iter().enumerate() {
///         if let Some(&ahead) = hashes.get(i + 32) {
///             view.prefetch_hash(ahead);
///         }
///         found += u32::from(view.contains_hash(hash));
///     }
///     found
/// });
/// assert!((500..520).contains(&found));
/// ```
///
/// # The body is a closure
/// - `return` and `?` leave the body, and their value is the value of `dispatch!`. `break` and `continue` cannot leave it.
/// - It captures variables as a closure does: by reference, or by value if it moves them.
/// - What it calls is compiled for the CPU only if the compiler inlines it, as it does with small closures and iterators. In a
///   function that is not inlined, each call of the view is a call of a function, as without the macro. Mark your own function
///   `#[inline(always)]`, and pass it the view as a `&View<&BloomFilter, impl Isa>`. A thread that the body spawns is not inlined:
///   call `dispatch!` in the thread.
///
/// ```
/// use bloomline::{BloomFilter, Isa, View};
/// use std::num::ParseIntError;
///
/// #[inline(always)]
/// fn is_known(view: &View<&BloomFilter, impl Isa>, field: &str) -> Result<bool, ParseIntError> {
///     let id: u64 = field.parse()?;
///     Ok(view.contains(&id))
/// }
///
/// fn known(seen: &BloomFilter, fields: &[&str]) -> Result<usize, ParseIntError> {
///     bloomline::dispatch!(seen, |view| {
///         let mut known = 0;
///         for field in fields {
///             known += usize::from(is_known(&view, field)?);
///         }
///         Ok(known)
///     })
/// }
///
/// let seen: BloomFilter = [17u64].into_iter().collect();
/// assert_eq!(known(&seen, &["17", "18"]), Ok(1));
/// assert!(known(&seen, &["17", "x"]).is_err());
/// ```
///
/// [`dispatch`](fn@crate::dispatch) takes the loop as a type, for generic code. The scheme is function multiversioning; the crates
/// `pulp` and `multiversion` use the same name.
#[macro_export]
macro_rules! dispatch {
    ($filter:expr, |$view:pat_param| $body:expr $(,)?) => {
        match $filter {
            // The type distinguishes the loop from others. Items of a macro are visible in its arguments.
            filter => {
                struct __BloomlineLoop;
                match $crate::__private::loop_isa(&filter) {
                    $crate::__private::LoopIsa::Avx512(isa) => $crate::__private::run::<_, _, __BloomlineLoop, _>(
                        filter,
                        isa,
                        #[inline(always)]
                        |$view| $body,
                    ),
                    $crate::__private::LoopIsa::Avx2(isa) => $crate::__private::run::<_, _, __BloomlineLoop, _>(
                        filter,
                        isa,
                        #[inline(always)]
                        |$view| $body,
                    ),
                    $crate::__private::LoopIsa::Baseline(isa) => $crate::__private::run::<_, _, __BloomlineLoop, _>(
                        filter,
                        isa,
                        #[inline(always)]
                        |$view| $body,
                    ),
                }
            }
        }
    };
}

/// A loop over a filter as a type, for [`dispatch`](fn@dispatch). `R` is a `&` or `&mut` of a filter of one size.
pub trait WithView<R> {
    /// The result of the loop.
    type Output;

    /// Runs the loop. Mark the implementation `#[inline(always)]`.
    fn with_view<I: Isa>(self, view: View<R, I>) -> Self::Output;
}

/// Runs a loop that is compiled for the CPU that it runs on: [`dispatch!`](crate::dispatch!) for generic code.
///
/// # Examples
/// ```
/// use bloomline::{AtomicBloomFilter, Isa, View, WithView};
///
/// /// Inserts words, and returns the new ones.
/// struct New<'a, W>(&'a [W]);
///
/// impl<'a, W: AsRef<str>> WithView<&AtomicBloomFilter> for New<'a, W> {
///     type Output = Vec<&'a str>;
///
///     #[inline(always)]
///     fn with_view<I: Isa>(self, view: View<&AtomicBloomFilter, I>) -> Vec<&'a str> {
///         self.0.iter().map(AsRef::as_ref).filter(|word| view.insert(*word)).collect()
///     }
/// }
///
/// let seen = AtomicBloomFilter::new(1000, 1e-6)?;
/// assert_eq!(bloomline::dispatch(&seen, New(&["a", "b", "a"])), ["a", "b"]);
/// # Ok::<(), bloomline::BuildError>(())
/// ```
#[inline]
pub fn dispatch<R: Deref<Target: Readable>, L: WithView<R>>(filter: R, body: L) -> L::Output {
    crate::dispatch!(filter, |view| body.with_view(view))
}

/// A filter of one size in a loop that [`dispatch!`](crate::dispatch!) compiles for an instruction set `I`.
///
/// It derefs to the filter, so it has all of its queries too, such as [`prefetch_hash`](crate::BloomFilter::prefetch_hash) and
/// [`hasher`](crate::BloomFilter::hasher). `R` is a `&` of [`BloomFilter`](crate::BloomFilter),
#[cfg_attr(feature = "file", doc = "[`BorrowedBloomFilter`](crate::BorrowedBloomFilter),")]
/// [`AtomicBloomFilter`](crate::AtomicBloomFilter) or a filter of the module `variants` that has [`Key`]s, or a `&mut` to insert
/// into a filter with one writer.
pub struct View<R, I> {
    filter: R,
    isa: I,
}

impl<R: Deref<Target: Readable>, I: Isa> View<R, I> {
    /// Returns true if a key may have been inserted: [`contains`](crate::BloomFilter::contains) of the filter, inlined.
    #[inline(always)]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash_with(self.filter.key_hasher()))
    }

    /// [`contains`](Self::contains) for a key that was hashed elsewhere.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.filter.contains_hash_with(self.isa, hash)
    }
}

/// Filters with one writer.
impl<F: OneWriter, I: Isa> View<&mut F, I> {
    /// Inserts a key. Returns true if it was new: [`insert`](crate::BloomFilter::insert) of the filter, inlined.
    #[inline(always)]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_hash(key.hash_with(self.filter.key_hasher()))
    }

    /// [`insert`](Self::insert) for a key that was hashed elsewhere.
    #[inline(always)]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.filter.insert_hash_with(self.isa, hash)
    }
}

/// Filters with many writers.
impl<F: ManyWriters, I: Isa> View<&F, I> {
    /// Inserts a key. Returns true if it was new to this call: [`insert`](crate::AtomicBloomFilter::insert) of the filter,
    /// inlined.
    #[inline(always)]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(key.hash_with(self.filter.key_hasher()))
    }

    /// [`insert`](Self::insert) for a key that was hashed elsewhere.
    #[inline(always)]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.filter.insert_hash_with(self.isa, hash)
    }
}

impl<R: Deref, I> Deref for View<R, I> {
    type Target = R::Target;

    #[inline(always)]
    fn deref(&self) -> &R::Target {
        &self.filter
    }
}

impl<R: fmt::Debug, I> fmt::Debug for View<R, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("View").field(&self.filter).finish()
    }
}

/// A filter of one size. Other crates cannot name it.
pub trait Readable {
    /// Selects the instruction set of a loop over this filter.
    fn loop_isa(&self) -> LoopIsa;

    /// Returns the hasher of its keys.
    fn key_hasher(&self) -> &KeyHasher;

    /// Returns true if a hash may have been inserted.
    fn contains_hash_with<I: Isa>(&self, isa: I, hash: u64) -> bool;
}

/// A filter of one size with one writer.
pub trait OneWriter: Readable {
    /// Inserts a hash, and returns true if it was new.
    fn insert_hash_with<I: Isa>(&mut self, isa: I, hash: u64) -> bool;
}

/// A filter of one size with many writers.
pub trait ManyWriters: Readable {
    /// Inserts a hash, and returns true if it was new to this call.
    fn insert_hash_with<I: Isa>(&self, isa: I, hash: u64) -> bool;
}

/// Selects the instruction set of a loop.
#[inline(always)]
pub fn loop_isa<R: Deref<Target: Readable>>(filter: &R) -> LoopIsa {
    filter.loop_isa()
}

/// Runs the loop `L`, compiled for an instruction set.
#[inline(always)]
pub fn run<R, I: RunKeyOp, L, T>(filter: R, isa: I, body: impl FnOnce(View<R, InLoop<I, L>>) -> T) -> T {
    InLoop::call(
        isa,
        #[inline(always)]
        |isa| body(View { filter, isa }),
    )
}

/// Implements [`Readable`] and [`OneWriter`] or [`ManyWriters`].
macro_rules! view_impls {
    ($Filter:ident, one_writer) => {
        crate::filter::view::view_impls!($Filter, OneWriter, [mut]);
    };
    ($Filter:ident, many_writers) => {
        crate::filter::view::view_impls!($Filter, ManyWriters, []);
    };
    ($Filter:ident, $Writers:ident, [$($mut:tt)?]) => {
        impl crate::filter::view::Readable for $Filter {
            fn loop_isa(&self) -> crate::kernel::LoopIsa {
                self.0.params.kernel.loop_isa()
            }

            #[inline(always)]
            fn key_hasher(&self) -> &crate::key::hash::KeyHasher {
                self.0.hasher()
            }

            #[inline(always)]
            fn contains_hash_with<I: crate::kernel::Isa>(&self, isa: I, hash: u64) -> bool {
                self.0.contains_hash_with(isa, hash)
            }
        }

        impl crate::filter::view::$Writers for $Filter {
            #[inline(always)]
            fn insert_hash_with<I: crate::kernel::Isa>(&$($mut)? self, isa: I, hash: u64) -> bool {
                self.0.insert_hash_with(isa, hash)
            }
        }
    };
}
pub(crate) use view_impls;
