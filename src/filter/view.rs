//! `dispatch!`: loops of other crates, compiled for the CPU that they run on.

use crate::kernel::{Avx2, Avx512, Baseline, Isa};
use crate::key::hash::KeyHasher;
use crate::key::single::Key;
use core::ops::Deref;

/// Compiles a loop for the CPU that it runs on.
#[macro_export]
macro_rules! dispatch {
    ($filter:expr, |$view:pat_param| $body:expr $(,)?) => {
        match $crate::__private::select($filter) {
            $crate::__private::Selected::Avx2(view) => view.run(
                #[inline(always)]
                |$view| $body,
            ),
            $crate::__private::Selected::Avx512(view) => view.run(
                #[inline(always)]
                |$view| $body,
            ),
            $crate::__private::Selected::Baseline(view) => view.run(
                #[inline(always)]
                |$view| $body,
            ),
        }
    };
}

/// A loop over a filter, as a type: [`dispatch`] compiles it for the CPU that it runs on.
pub trait WithView<R> {
    /// The result of the loop.
    type Output;

    /// Runs the loop. Mark it `#[inline(always)]`.
    fn with_view<I: Isa>(self, view: View<R, I>) -> Self::Output;
}

/// Runs an operation, compiled for the CPU that it runs on.
#[inline]
pub fn dispatch<R: Deref<Target: Readable>, O: WithView<R>>(filter: R, operation: O) -> O::Output {
    crate::dispatch!(filter, |view| operation.with_view(view))
}

/// A filter in a loop that is compiled for an instruction set.
pub struct View<R, I> {
    filter: R,
    isa: I,
}

impl<R: Deref<Target: Readable>, I: Isa> View<R, I> {
    /// Returns true if a key may have been inserted.
    #[inline(always)]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(key.hash_with(self.filter.key_hasher()))
    }

    /// For a key that was hashed elsewhere.
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.filter.contains_hash_with(self.isa, hash)
    }
}

/// Inserts into a filter with one writer.
impl<F: OneWriter, I: Isa> View<&mut F, I> {
    /// Inserts a key. Returns true if it was new.
    #[inline(always)]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.insert_hash(key.hash_with(self.filter.key_hasher()))
    }

    /// Inserts a hash.
    #[inline(always)]
    pub fn insert_hash(&mut self, hash: u64) -> bool {
        self.filter.insert_hash_with(self.isa, hash)
    }
}

/// Inserts into a filter with many writers.
impl<F: ManyWriters, I: Isa> View<&F, I> {
    /// Inserts a key. Returns true if it was new to this call.
    #[inline(always)]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(key.hash_with(self.filter.key_hasher()))
    }

    /// Inserts a hash.
    #[inline(always)]
    pub fn insert_hash(&self, hash: u64) -> bool {
        self.filter.insert_hash_with(self.isa, hash)
    }
}

/// The filter's other methods.
impl<R: Deref, I> Deref for View<R, I> {
    type Target = R::Target;

    #[inline(always)]
    fn deref(&self) -> &R::Target {
        &self.filter
    }
}

/// A filter of one size.
pub trait Readable {
    /// Returns the proof that a loop over this filter may use AVX2.
    fn avx2(&self) -> Option<Avx2>;
    /// As `avx2`.
    fn avx512(&self) -> Option<Avx512>;
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

/// The views of a filter, one for each copy of a loop.
pub enum Selected<R> {
    /// For a CPU with AVX-512.
    Avx512(View<R, Avx512>),
    /// For a CPU with AVX2.
    Avx2(View<R, Avx2>),
    /// For any CPU.
    Baseline(View<R, Baseline>),
}

/// Selects the copy of a loop that runs.
#[inline]
pub fn select<R: Deref<Target: Readable>>(filter: R) -> Selected<R> {
    if let Some(isa) = filter.avx512() {
        return Selected::Avx512(View { filter, isa });
    }
    match filter.avx2() {
        Some(isa) => Selected::Avx2(View { filter, isa }),
        None => Selected::Baseline(View { filter, isa: Baseline }),
    }
}

impl<R> View<R, Avx2> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn run<T>(self, body: impl FnOnce(Self) -> T) -> T {
        self.isa.call(
            #[inline(always)]
            move || body(self),
        )
    }
}

impl<R> View<R, Avx512> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn run<T>(self, body: impl FnOnce(Self) -> T) -> T {
        self.isa.call(
            #[inline(always)]
            move || body(self),
        )
    }
}

impl<R> View<R, Baseline> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn run<T>(self, body: impl FnOnce(Self) -> T) -> T {
        body(self)
    }
}

/// Implements views for a filter of one size.
macro_rules! view_impls {
    ($Filter:ident, one_writer) => {
        crate::filter::view::view_impls!(@ $Filter);

        impl crate::filter::view::OneWriter for $Filter {
            #[inline(always)]
            fn insert_hash_with<I: crate::kernel::Isa>(&mut self, isa: I, hash: u64) -> bool {
                self.0.insert_hash_with(isa, hash)
            }
        }
    };
    ($Filter:ident, many_writers) => {
        crate::filter::view::view_impls!(@ $Filter);

        impl crate::filter::view::ManyWriters for $Filter {
            #[inline(always)]
            fn insert_hash_with<I: crate::kernel::Isa>(&self, isa: I, hash: u64) -> bool {
                self.0.insert_hash_with(isa, hash)
            }
        }
    };
    (@ $Filter:ident) => {
        impl crate::filter::view::Readable for $Filter {
            fn avx2(&self) -> Option<crate::kernel::Avx2> {
                self.0.params.kernel.avx2()
            }

            fn avx512(&self) -> Option<crate::kernel::Avx512> {
                self.0.params.kernel.avx512()
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
    };
}
pub(crate) use view_impls;
