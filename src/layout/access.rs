//! The access to a filter's memory: by one writer, or by many.

use core::ops::Deref;

/// The access of filters with one writer: inserting takes `&mut self`.
pub(crate) struct Exclusive(());

/// The access of filters with many writers: inserting takes `&self`, from any thread.
pub(crate) struct Shared(());

/// The number of writers, and so the kind of reference that an insert needs.
pub(crate) trait Access {
    /// `&mut M` or `&M`.
    type Ref<'a, M: 'a>: Deref<Target = M>;
}

impl Access for Exclusive {
    type Ref<'a, M: 'a> = &'a mut M;
}

impl Access for Shared {
    type Ref<'a, M: 'a> = &'a M;
}
