//! The hashes of a batch that are looked up in several filters, one filter after the other.

/// The most hashes that can be [`Pending`]: their look-ups stay in the cache that is a few cycles away.
pub(crate) const PENDING: usize = 1024;

/// Hashes of a portion that are looked up in several filters, one after the other: those that no filter had yet, in their
/// order, and their indices in the portion. On the stack, so that nothing is allocated for a batch.
pub(crate) struct Pending {
    hashes: [u64; PENDING],
    places: [u16; PENDING],
    answers: [bool; PENDING],
    len: usize,
}

impl Pending {
    pub(crate) fn new() -> Self {
        Self { hashes: [0; PENDING], places: [0; PENDING], answers: [false; PENDING], len: 0 }
    }

    /// Begins with a portion of at most [`PENDING`] hashes.
    pub(crate) fn take(&mut self, hashes: &[u64]) {
        self.len = hashes.len();
        self.hashes[..self.len].copy_from_slice(hashes);
        // Below 2^16.
        self.places[..self.len].iter_mut().enumerate().for_each(|(i, place)| *place = i as u16);
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        &self.hashes[..self.len]
    }

    /// The indices of the hashes in the portion.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.places[..self.len].iter().map(|&place| usize::from(place))
    }

    /// Drops the hashes for which `seen` returns `true`.
    pub(crate) fn drop_seen(&mut self, seen: impl FnOnce(&[u64], &mut [bool]) -> usize) {
        let Self { hashes, places, answers, len } = self;
        if seen(&hashes[..*len], &mut answers[..*len]) == 0 {
            return;
        }
        let mut kept = 0;
        for i in 0..*len {
            hashes[kept] = hashes[i];
            places[kept] = places[i];
            kept += usize::from(!answers[i]);
        }
        *len = kept;
    }

    /// Passes the first hashes, at most `most`, to `run`, writes its answers to their indices in `answers`, and drops the
    /// hashes. Returns the result of `run`.
    pub(crate) fn pass(
        &mut self,
        most: usize,
        answers: &mut [bool],
        run: impl FnOnce(&[u64], &mut [bool]) -> usize,
    ) -> usize {
        let passed = self.len.min(most);
        let count = run(&self.hashes[..passed], &mut self.answers[..passed]);
        for (place, &answer) in self.places().zip(&self.answers[..passed]) {
            answers[place] = answer;
        }
        self.hashes.copy_within(passed..self.len, 0);
        self.places.copy_within(passed..self.len, 0);
        self.len -= passed;
        count
    }
}
