//! The access to a filter's memory: by one writer, or by many.

use core::ops::Deref;

/// The access of filters with one writer: inserting takes `&mut self`.
pub(crate) struct Exclusive(());

/// The access of filters with many writers: inserting takes `&self`, from any thread.
pub(crate) struct Shared(());

/// The number of writers, and so the kind of reference that an insert needs.
pub(crate) trait Access {
    /// `&mut M` or `&M`.
    type Place<'a, M: 'a>: Deref<Target = M>;

    /// Reborrows the reference for a shorter time.
    fn reborrow<'a, M>(place: &'a mut Self::Place<'_, M>) -> Self::Place<'a, M>;
}

impl Access for Exclusive {
    type Place<'a, M: 'a> = &'a mut M;

    #[inline(always)]
    fn reborrow<'a, M>(place: &'a mut &mut M) -> &'a mut M {
        place
    }
}

impl Access for Shared {
    type Place<'a, M: 'a> = &'a M;

    #[inline(always)]
    fn reborrow<'a, M>(place: &'a mut &M) -> &'a M {
        place
    }
}
