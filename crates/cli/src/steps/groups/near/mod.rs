//! Groups of near duplicates: a survivor, and the documents that were compared with it and removed.
//!
//! ```text
//! sets       sets of grams in a file
//! candidate_documents  documents that share a band, whose sets are stored by a pass over the inputs
//! bands      the bands of all documents, stored in a file by the first pass
//! survivors  the choice of survivors by rank, and the removed documents of each
//! ```
//!
//! The data of all documents is on disk, except for one bit each. Memory holds two bytes for each band that the filter reported as
//! seen, then 13 bytes for each candidate document, and what `bloomline_text::near::Survivors` takes. A document is compared with a
//! bounded number of survivors, so time grows with the documents and not with their pairs.

pub mod bands;
pub mod candidate_documents;
mod sets;
pub mod survivors;

#[cfg(test)]
mod tests {
    use crate::steps::groups::near::bands::Bands;
    use crate::steps::groups::near::candidate_documents::CandidateDocuments;
    use crate::steps::groups::near::sets::Sets;
    use crate::steps::groups::near::survivors::{NearGroups, Thresholds};
    use bloomline_text::near::{Survivors, containment, jaccard};
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashSet};

    const BANDS: usize = 3;

    /// Returns bands that are equal for equal sets. Similar sets often share a band.
    fn bands(grams: &[u64]) -> Vec<u64> {
        let min_hash = |band| grams.iter().map(|gram| (gram + 1) * (2 * band + 3) % 17).min();
        (0..BANDS as u64).filter_map(|band| Some((100 * band + min_hash(band)? + 1) << 8)).collect()
    }

    /// Returns the survivor of each document, and whether it has a known band. A document that shares no band and was not known has
    /// `None`. `order` has the documents by rank; the first `earlier` documents are kept.
    fn expected(
        documents: &[Vec<u64>],
        order: &[usize],
        known: &HashSet<u64>,
        earlier: usize,
        Thresholds { similarity, contained }: Thresholds,
    ) -> Vec<Option<(u64, bool)>> {
        let bands: Vec<HashSet<u64>> = documents.iter().map(|grams| bands(grams).into_iter().collect()).collect();
        let shares = |i: usize, j: usize| bands[i].intersection(&bands[j]).next().is_some();
        let was_known = |i: usize| bands[i].intersection(known).next().is_some();
        let mut survivors: Vec<usize> = Vec::new();
        let mut found = vec![None; documents.len()];
        for &i in order {
            let is_removed_by = |j: &&usize| {
                let (own, other) = (&documents[i], &documents[**j]);
                shares(i, **j) && jaccard(own, other) >= similarity && containment(own, other) >= contained
            };
            let survivor =
                if was_known(i) || i < earlier { None } else { survivors.iter().find(is_removed_by).copied() };
            if !was_known(i) && survivor.is_none() {
                survivors.push(i);
            }
            let is_candidate = was_known(i) || (0..documents.len()).any(|j| j != i && shares(i, j));
            found[i] = is_candidate.then(|| (survivor.unwrap_or(i) as u64, was_known(i)));
        }
        found
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
        fn survivors_match_a_model_that_compares_all_pairs(
            documents in sets(),
            scores in prop::collection::vec(0..5_u32, 60),
            known in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            mistakes in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
            similarity in prop::sample::select(vec![0.2, 0.5, 0.6, 2.0 / 3.0, 0.8, 0.95]),
            contained in prop::sample::select(vec![0.0, 0.8, 1.0]),
            earlier in 0_usize..30,
        ) {
            let all: Vec<u64> = documents.iter().flat_map(|grams| bands(grams)).collect();
            let pick = |chosen: Vec<prop::sample::Index>| -> HashSet<u64> {
                chosen.iter().filter(|_| !all.is_empty()).map(|index| *index.get(&all)).collect()
            };
            let known = pick(known);
            // If an earlier run had bands, a false positive is taken for one of them.
            let mistakes = if known.is_empty() { pick(mistakes) } else { HashSet::new() };
            let earlier = if known.is_empty() { earlier.min(documents.len()) } else { 0 };
            let candidate_documents = candidate_documents(&documents, &known, &mistakes);
            let ordinals: Vec<u64> = candidate_documents.ordinals.iter().collect();
            let ranks: Vec<u32> = ordinals.iter().map(|ordinal| scores[*ordinal as usize]).collect();
            let survivors = Survivors::new(similarity).unwrap().with_contained(contained).unwrap();
            let survivors = survivors.with_limits(usize::MAX, usize::MAX);
            let groups = NearGroups::decided(candidate_documents, &ranks, earlier as u64, survivors).unwrap();
            let survivor = |ordinal| groups.survivor(ordinal).map(|(survivor, known)| (ordinals[survivor as usize], known));
            let found: Vec<_> = (0..documents.len() as u64).map(survivor).collect();
            let mut order: Vec<usize> = (0..documents.len()).collect();
            order.sort_by_key(|i| (*i >= earlier, if *i < earlier { 0 } else { scores[*i] }, *i));
            let thresholds = Thresholds { similarity, contained };
            prop_assert_eq!(&found, &expected(&documents, &order, &known, earlier, thresholds));
            prop_assert_eq!(groups.not_compared(), 0);
            for (i, j) in (1..found.len()).map(|i| (i, i - 1)).filter(|&(i, j)| found[i].and(found[j]).is_some()) {
                let measures = groups.measures(i as u64, j as u64).unwrap();
                let (own, other) = (&documents[i], &documents[j]);
                prop_assert_eq!(measures, (jaccard(own, other), containment(own, other)));
            }
        }
    }

    #[test]
    fn a_missing_set_of_a_document_is_an_error() {
        let documents = [vec![1, 2], vec![1, 2]];
        let mut candidate_documents = candidate_documents(&documents, &HashSet::new(), &HashSet::new());
        candidate_documents.sets = Sets::new().unwrap();
        candidate_documents.push(&documents[0]).unwrap();
        let thresholds = Thresholds { similarity: 0.5, contained: 0.0 };
        let error = NearGroups::new(candidate_documents, &[0, 0], 0, thresholds).err().expect("a set is missing");
        assert!(error.to_string().contains("an input changed"), "{error}");
    }
}
