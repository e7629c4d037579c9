//! The hashes of a batch that are looked up in several filters, one filter after the other.

/// The highest number of hashes that can be [`Unresolved`]: the lines of their look-ups stay in a core's caches.
pub(crate) const MAX_UNRESOLVED: usize = 1024;

/// The hashes of a chunk that none of the filters looked up so far has, in order, and their indices in the chunk. The arrays are on
/// the stack, so that nothing is allocated for a batch.
pub(crate) struct Unresolved {
    hashes: [u64; MAX_UNRESOLVED],
    indices: [u16; MAX_UNRESOLVED],
    answers: [bool; MAX_UNRESOLVED],
    len: usize,
}

impl Unresolved {
    pub(crate) fn new() -> Self {
        Self { hashes: [0; MAX_UNRESOLVED], indices: [0; MAX_UNRESOLVED], answers: [false; MAX_UNRESOLVED], len: 0 }
    }

    /// Begins with a chunk of at most [`MAX_UNRESOLVED`] hashes.
    pub(crate) fn reset(&mut self, hashes: &[u64]) {
        self.len = hashes.len();
        self.hashes[..self.len].copy_from_slice(hashes);
        // Below 2^16.
        self.indices[..self.len].iter_mut().enumerate().for_each(|(i, index)| *index = i as u16);
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes[..self.len]
    }

    /// Returns the indices of the hashes in the chunk.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        self.indices[..self.len].iter().map(|&index| usize::from(index))
    }

    /// Drops the hashes for which `seen` returns `true`.
    pub(crate) fn retain_absent(&mut self, seen: impl FnOnce(&[u64], &mut [bool]) -> usize) {
        let Self { hashes, indices, answers, len } = self;
        if seen(&hashes[..*len], &mut answers[..*len]) == 0 {
            return;
        }
        let mut kept = 0;
        for i in 0..*len {
            hashes[kept] = hashes[i];
            indices[kept] = indices[i];
            kept += usize::from(!answers[i]);
        }
        *len = kept;
    }

    /// Passes the first hashes, at most `max`, to `run`, writes its answers to their indices in `answers`, and drops the
    /// hashes. Returns the result of `run`.
    pub(crate) fn take_front(
        &mut self,
        max: usize,
        answers: &mut [bool],
        run: impl FnOnce(&[u64], &mut [bool]) -> usize,
    ) -> usize {
        let taken = self.len.min(max);
        let count = run(&self.hashes[..taken], &mut self.answers[..taken]);
        for (index, &answer) in self.indices().zip(&self.answers[..taken]) {
            answers[index] = answer;
        }
        self.hashes.copy_within(taken..self.len, 0);
        self.indices.copy_within(taken..self.len, 0);
        self.len -= taken;
        count
    }
}
