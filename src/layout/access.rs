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

    /// Reborrows the reference for a shorter time.
    fn reborrow<'a, M>(reference: &'a mut Self::Ref<'_, M>) -> Self::Ref<'a, M>;
}

impl Access for Exclusive {
    type Ref<'a, M: 'a> = &'a mut M;

    #[inline(always)]
    fn reborrow<'a, M>(reference: &'a mut &mut M) -> &'a mut M {
        reference
    }
}

impl Access for Shared {
    type Ref<'a, M: 'a> = &'a M;

    #[inline(always)]
    fn reborrow<'a, M>(reference: &'a mut &M) -> &'a M {
        reference
    }
}
