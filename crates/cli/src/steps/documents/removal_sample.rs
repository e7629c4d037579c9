//! The expected number of documents that are removed below the similarity, if signatures alone decide.
//!
//! The document that is kept and inserts a band is the only one with this band that is kept: its *owner*. So the owners of a sample
//! of bands, with their sets of grams, show how similar the removed documents are to the kept ones.

use bloomline_text::near::jaccard;
use std::collections::HashMap;
use std::sync::Arc;

/// The grams of owners in memory: 2 MiB.
const MAX_GRAMS: usize = 1 << 18;

/// The owners of sampled bands.
pub struct RemovalSample {
    similarity: f64,
    /// The sets of grams of the owners.
    owners: HashMap<u64, Arc<[u64]>>,
    grams: usize,
    /// Bands with so many zero bits at their end are sampled. It is raised when the memory is full.
    zeros: u32,
    max_grams: usize,
}

/// An expected number, and the variance of its estimate.
#[derive(Debug, Default, PartialEq)]
pub struct Estimate {
    pub expected: f64,
    pub variance: f64,
}

impl RemovalSample {
    /// Creates an empty sample, for documents of this similarity and above.
    pub fn new(similarity: f64) -> Self {
        Self::within(similarity, MAX_GRAMS)
    }

    fn within(similarity: f64, max_grams: usize) -> Self {
        Self { similarity, owners: HashMap::new(), grams: 0, zeros: 0, max_grams }
    }

    fn is_sampled(&self, band: u64) -> bool {
        band.trailing_zeros() >= self.zeros
    }

    /// Adds a document that is kept and inserts these bands. `grams` returns its set.
    pub fn add_kept(&mut self, bands: &[u64], grams: impl FnOnce() -> Vec<u64>) {
        if !bands.iter().any(|band| self.is_sampled(*band)) {
            return;
        }
        let grams: Arc<[u64]> = grams().into();
        self.grams += grams.len();
        let sampled: Vec<u64> = bands.iter().copied().filter(|band| self.is_sampled(*band)).collect();
        self.owners.extend(sampled.into_iter().map(|band| (band, grams.clone())));
        while self.grams > self.max_grams && self.zeros < u64::BITS {
            self.zeros += 1;
            self.owners.retain(|band, _| band.trailing_zeros() >= self.zeros);
            let share = |grams: &Arc<[u64]>| grams.len() as f64 / Arc::strong_count(grams) as f64;
            self.grams = self.owners.values().map(share).sum::<f64>() as usize;
        }
    }

    /// Returns the number of documents below the similarity that a removed document stands for, of whose bands these were `found`.
    /// `grams` returns its set. Each removed document is represented with equal probability, by its first band that was found.
    pub fn removed(&self, bands: &[u64], found: &[bool], grams: impl FnOnce() -> Vec<u64>) -> Estimate {
        let first = bands.iter().zip(found).find(|(_, found)| **found);
        if !first.is_some_and(|(band, _)| self.is_sampled(*band)) {
            return Estimate::default();
        }
        let owners = bands.iter().filter_map(|band| self.owners.get(band));
        let own = grams();
        let Some(nearest) = owners.map(|other| jaccard(&own, other)).max_by(f64::total_cmp) else {
            // The filter is mistaken, or has the band from an earlier run.
            return Estimate::default();
        };
        let weight = f64::from(self.zeros).exp2();
        let expected = if nearest < self.similarity { weight } else { 0.0 };
        Estimate { expected, variance: expected * (weight - 1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kept document has three bands. Of the removed ones, every third is below the similarity.
    #[test]
    fn the_number_below_the_similarity_is_exact_if_all_fit_and_estimated_if_not() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state ^ state >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        };
        for max_grams in [usize::MAX, 2000] {
            let mut sample = RemovalSample::within(0.8, max_grams);
            let mut total = Estimate::default();
            for document in 0..30_000_u64 {
                let bands = [random(), random(), random()];
                let grams: Vec<u64> = (100 * document..100 * document + 10).collect();
                sample.add_kept(&bands, || grams.clone());
                let common = if document % 3 == 0 { 5 } else { 10 };
                let Estimate { expected, variance } =
                    sample.removed(&bands, &[false, true, true], || grams[..common].to_vec());
                total.expected += expected;
                total.variance += variance;
                assert!(sample.grams <= max_grams);
            }
            // The seed is fixed, so the test is deterministic: four standard deviations.
            assert!((total.expected - 10_000.0).abs() <= 4.0 * total.variance.sqrt(), "{total:?}");
            assert_eq!(total.variance == 0.0, max_grams == usize::MAX);
        }
    }
}
