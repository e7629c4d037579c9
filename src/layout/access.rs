//! The access to a filter's memory: of one writer, or of many.

use core::ops::Deref;

/// The access of filters with one writer: inserting takes `&mut self`.
pub(crate) struct Exclusive(());

/// The access of filters with many writers: inserting takes `&self`, from any thread.
pub(crate) struct Shared(());

/// Who writes, and so what an insert takes of the memory.
pub(crate) trait Access {
    /// `&mut M` or `&M`.
    type Place<'a, M: 'a>: Deref<Target = M>;

    /// The place for a shorter time, to give away.
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
