//! Groups of near duplicates: documents connected by pairs that share a band and are verified by their Jaccard index.
//!
//! ```text
//! sets       sets of grams in a file
//! sketch     a lower bound of the difference of two sets
//! candidate_documents  documents that share a band, whose sets are stored by a pass over the inputs
//! bands      the bands of all documents, stored in a file by the first pass
//! clusters   the connected components of verified pairs
//! ```
//!
//! The data of all documents is on disk, except for one bit each. Memory holds two bytes for each band that the filter reported as
//! seen, then about 10 bytes for each candidate document, and the numbers of the documents of the largest bucket, which share a
//! band. A document is compared with a bounded number of others in a bucket, so time grows with the documents and not with their
//! pairs.

pub mod bands;
pub mod candidate_documents;
pub mod clusters;
mod sets;
mod sketch;

#[cfg(test)]
mod tests {
    use crate::steps::groups::near::bands::Bands;
    use crate::steps::groups::near::candidate_documents::CandidateDocuments;
    use crate::steps::groups::near::clusters::Clusters;
    use crate::steps::groups::near::sets::Sets;
    use bloomline_text::near::jaccard;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashSet};

    const BANDS: usize = 3;

    /// Returns bands that are equal for equal sets. Similar sets often share a band.
    fn bands(grams: &[u64]) -> Vec<u64> {
        let min_hash = |band| grams.iter().map(|gram| (gram + 1) * (2 * band + 3) % 17).min();
        (0..BANDS as u64).filter_map(|band| Some((100 * band + min_hash(band)? + 1) << 8)).collect()
    }

    /// Returns, for each document, the first document of its connected component and whether the component has a known
    /// document. A document that shares no band and was not known has `None`.
    fn expected(documents: &[Vec<u64>], known: &HashSet<u64>, threshold: f64) -> Vec<Option<(u64, bool)>> {
        let bands: Vec<HashSet<u64>> = documents.iter().map(|grams| bands(grams).into_iter().collect()).collect();
        let shares = |i: usize, j: usize| bands[i].intersection(&bands[j]).next().is_some();
        let mut firsts: Vec<usize> = (0..documents.len()).collect();
        for i in 0..documents.len() {
            for j in 0..i {
                let both = documents[i].iter().filter(|gram| documents[j].contains(gram)).count();
                let either = documents[i].len() + documents[j].len() - both;
                if shares(i, j) && both as f64 / either as f64 >= threshold && firsts[i] != firsts[j] {
                    let (a, b) = (firsts[i].min(firsts[j]), firsts[i].max(firsts[j]));
                    firsts.iter_mut().filter(|first| **first == b).for_each(|first| *first = a);
                }
            }
        }
        let was_known = |i: usize| bands[i].intersection(known).next().is_some();
        let reported = |i: usize| {
            let cluster = (0..documents.len()).filter(|&j| firsts[j] == firsts[i]);
            let candidate_documents = was_known(i) || (0..documents.len()).any(|j| j != i && shares(i, j));
            candidate_documents.then(|| (firsts[i] as u64, cluster.into_iter().any(was_known)))
        };
        (0..documents.len()).map(reported).collect()
    }

    /// Makes candidates with a filter that contained `known` before and reports `mistakes` as false positives.
    fn candidate_documents(
        documents: &[Vec<u64>],
        known: &HashSet<u64>,
        mistakes: &HashSet<u64>,
    ) -> CandidateDocuments {
        let (mut all, mut seen) = (Bands::new(BANDS).unwrap(), known.clone());
        for grams in documents {
            let bands = bands(grams);
            let new: Vec<bool> = bands.iter().map(|&band| seen.insert(band) && !mistakes.contains(&band)).collect();
            all.add(&bands, &new).unwrap();
        }
        let mut candidate_documents = all.candidate_documents(!known.is_empty()).unwrap();
        let ordinals: Vec<u64> = candidate_documents.ordinals.iter().collect();
        ordinals.iter().for_each(|ordinal| candidate_documents.push(&documents[*ordinal as usize]).unwrap());
        candidate_documents
    }

    fn sets() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let set = prop::collection::btree_set(0_u64..12, 0..9);
        let sets = prop::collection::vec(set.prop_map(|set: BTreeSet<u64>| set.into_iter().collect::<Vec<_>>()), 1..12);
        (sets, prop::collection::vec(any::<prop::sample::Index>(), 0..60)).prop_map(|(sets, order)| {
            order.iter().map(|index: &prop::sample::Index| index.get(&sets).clone()).collect()
        })
    }

    proptest! {
        #[test]
        fn clusters_are_connected_components_of_verified_pairs(
            documents in sets(),
            known in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            mistakes in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
            threshold in prop::sample::select(vec![0.2, 0.5, 0.6, 2.0 / 3.0, 0.8, 1.0]),
            in_memory in 0_usize..200,
            max_compared in prop::sample::select(vec![1, 2, 5, 100]),
        ) {
            let all: Vec<u64> = documents.iter().flat_map(|grams| bands(grams)).collect();
            let pick = |chosen: Vec<prop::sample::Index>| -> HashSet<u64> {
                chosen.iter().filter(|_| !all.is_empty()).map(|index| *index.get(&all)).collect()
            };
            let known = pick(known);
            // If an earlier run had bands, a false positive is taken for one of them.
            let mistakes = if known.is_empty() { pick(mistakes) } else { HashSet::new() };
            let candidate_documents = candidate_documents(&documents, &known, &mistakes);
            let mut clusters = Clusters::verified_within(candidate_documents, threshold, in_memory, max_compared).unwrap();
            let ordinals: Vec<u64> = clusters.ordinals.iter().collect();
            let first = |ordinal| clusters.first(ordinal).map(|(first, known)| (ordinals[first as usize], known));
            let found: Vec<_> = (0..documents.len() as u64).map(first).collect();
            if clusters.left_out == 0 {
                prop_assert_eq!(&found, &expected(&documents, &known, threshold));
            } else {
                prop_assert!(max_compared < documents.len());
            }
            for (i, j) in (1..found.len()).map(|i| (i, i - 1)).filter(|&(i, j)| found[i].and(found[j]).is_some()) {
                let similarity = clusters.similarity(i as u64, j as u64).unwrap();
                prop_assert_eq!(similarity, jaccard(&documents[i], &documents[j]));
            }
        }
    }

    #[test]
    fn pairs_beyond_the_limit_are_counted() {
        // All documents share one band and no gram.
        for (max_compared, left_out) in [(1, 6), (2, 3), (3, 1), (4, 0)] {
            let records = (0..5).map(|ordinal| Ok([1 << 8, ordinal << 1]));
            let mut candidate_documents = CandidateDocuments::new(records, 5, false).unwrap();
            (0..5).for_each(|gram| candidate_documents.push(&[gram]).unwrap());
            assert_eq!(
                Clusters::verified_within(candidate_documents, 0.5, 0, max_compared).unwrap().left_out,
                left_out
            );
        }
        // Pairs of documents that are already connected are not counted.
        let mut candidate_documents =
            CandidateDocuments::new((0..9).map(|ordinal| Ok([1 << 8, ordinal << 1])), 9, false).unwrap();
        (0..9).for_each(|gram| candidate_documents.push(&[1, 2, 3, 4, 10 + gram]).unwrap());
        assert_eq!(Clusters::verified_within(candidate_documents, 0.5, 0, 1).unwrap().left_out, 0);
    }

    #[test]
    fn a_missing_set_of_a_document_is_an_error() {
        let documents = [vec![1, 2], vec![1, 2]];
        let mut candidate_documents = candidate_documents(&documents, &HashSet::new(), &HashSet::new());
        candidate_documents.sets = Sets::new().unwrap();
        candidate_documents.push(&documents[0]).unwrap();
        let error = Clusters::verified(candidate_documents, 0.5).err().expect("a set is missing").to_string();
        assert!(error.contains("an input changed"), "{error}");
    }
}
