//! Survivors of near duplicates, compared with a model that compares all pairs of a bucket.

use bloomline::KeyHasher;
use bloomline_text::near::{Removal, Survivors, containment, jaccard};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

const BANDS: u64 = 3;

/// Documents as ascending sets of grams, and the number of each in the order of rank.
type Corpus = Vec<Vec<u64>>;

fn set(grams: impl IntoIterator<Item = u64>) -> Vec<u64> {
    grams.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// Random sets, some of them several times.
fn random() -> impl Strategy<Value = Corpus> {
    let some = prop::collection::vec(prop::collection::btree_set(0_u64..12, 1..9).prop_map(set), 1..12);
    (some, prop::collection::vec(any::<prop::sample::Index>(), 0..60))
        .prop_map(|(sets, order)| order.iter().map(|index| index.get(&sets).clone()).collect())
}

/// A common template, and a few grams of each document's own.
fn templates() -> impl Strategy<Value = Corpus> {
    (2..30_u64, prop::collection::vec((0..3_u64, 1..12_u64), 0..60)).prop_map(|(length, own)| {
        let document = |(i, (template, own)): (usize, (u64, u64))| {
            set((0..length).map(|gram| 100 * template + gram).chain((0..own).map(|gram| 1000 + 20 * i as u64 + gram)))
        };
        own.into_iter().enumerate().map(document).collect()
    })
}

/// Chains: each document is a window of numbers, a little further than the one before.
fn chains() -> impl Strategy<Value = Corpus> {
    (4..40_u64, prop::collection::vec(0..4_u64, 0..60)).prop_map(|(length, steps)| {
        let starts = steps.into_iter().scan(0, |start, step| {
            *start += step;
            Some(*start)
        });
        starts.map(|start| set(start..start + length)).collect()
    })
}

/// Clusters: edited, shortened and lengthened copies of a few originals.
fn clusters() -> impl Strategy<Value = Corpus> {
    let edit = (0..4_u64, 0..6_u64, prop::collection::vec(0..30_u64, 0..5));
    prop::collection::vec(edit, 0..60).prop_map(|edits| {
        let edited = |(original, longer, lost): (u64, u64, Vec<u64>)| {
            set((0..25 + longer).filter(|gram| !lost.contains(gram)).map(|gram| 1000 * original + gram))
        };
        edits.into_iter().map(edited).collect()
    })
}

fn corpus() -> impl Strategy<Value = Corpus> {
    prop_oneof![random(), templates(), chains(), clusters()]
}

/// Returns the buckets of each document: one for each band, which similar sets often share.
fn buckets(corpus: &Corpus) -> Vec<Vec<u32>> {
    let mut numbers = BTreeMap::new();
    let least = |grams: &[u64], band: u64| grams.iter().map(|gram| (gram + 1) * (2 * band + 3) % 17).min();
    let mut bucket = |band: u64, least: Option<u64>| {
        let next = numbers.len() as u32;
        *numbers.entry((band, least)).or_insert(next)
    };
    corpus.iter().map(|grams| (0..BANDS).map(|band| bucket(band, least(grams, band))).collect()).collect()
}

fn decide(survivors: &mut Survivors, corpus: &Corpus, buckets: &[Vec<u32>]) -> Vec<Option<Removal>> {
    let mut decide = |document: usize| {
        let read = |document: u32, into: &mut Vec<u64>| {
            assert!(into.is_empty());
            into.extend_from_slice(&corpus[document as usize]);
            Ok::<(), Infallible>(())
        };
        survivors.decide(document as u32, &buckets[document], read).unwrap()
    };
    (0..corpus.len()).map(&mut decide).collect()
}

fn shares(a: &[u32], b: &[u32]) -> bool {
    a.iter().any(|bucket| b.contains(bucket))
}

proptest! {
    #[test]
    fn removed_documents_are_similar_to_a_survivor_and_survivors_are_not(
        corpus in corpus(),
        similarity in prop::sample::select(vec![0.2, 0.5, 0.6, 2.0 / 3.0, 0.8, 0.95]),
        contained in prop::sample::select(vec![0.0, 0.5, 0.8, 0.9, 1.0]),
        compared in prop::sample::select(vec![1, 2, 5, usize::MAX]),
        examined in prop::sample::select(vec![1, 3, 10, usize::MAX]),
    ) {
        let buckets = buckets(&corpus);
        let mut survivors = Survivors::new(similarity).unwrap().with_contained(contained).unwrap().with_limits(compared, examined);
        let removals = decide(&mut survivors, &corpus, &buckets);
        let would_remove = |document: usize, survivor: usize| {
            let (own, other) = (&corpus[document], &corpus[survivor]);
            shares(&buckets[document], &buckets[survivor])
                && jaccard(own, other) >= similarity
                && containment(own, other) >= contained
        };
        let mut missed = 0;
        for (document, removal) in removals.iter().enumerate() {
            match removal {
                Some(removal) => {
                    let survivor = removal.survivor as usize;
                    prop_assert!(survivor < document && removals[survivor].is_none() && would_remove(document, survivor));
                    let (own, other) = (&corpus[document], &corpus[survivor]);
                    prop_assert_eq!(removal.similarity, jaccard(own, other));
                    prop_assert_eq!(removal.containment, containment(own, other));
                    if contained == 1.0 {
                        prop_assert!(own.iter().all(|gram| other.contains(gram)));
                    }
                }
                None => {
                    missed += (0..document).filter(|&other| removals[other].is_none() && would_remove(document, other)).count();
                }
            }
        }
        // Each missed pair was counted.
        prop_assert!(missed as u64 <= survivors.not_compared());
        if examined == usize::MAX && compared == usize::MAX {
            prop_assert_eq!(survivors.not_compared(), 0);
        }
    }
}

/// Documents of one template share a bucket. Only exact copies are removed, and the time is linear.
#[test]
fn copies_are_found_among_many_documents_of_one_template() {
    let hash = |gram: u64| KeyHasher::mix(gram ^ 0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9);
    let original = |i: u64| set((0..140).chain(1000 * (i + 1)..1000 * (i + 1) + 30).map(hash));
    let corpus: Corpus = (0..2000).map(original).chain((0..2000).step_by(10).map(original)).collect();
    let buckets = vec![vec![0]; corpus.len()];
    let mut survivors = Survivors::new(0.8).unwrap();
    let removals = decide(&mut survivors, &corpus, &buckets);
    assert!(removals[..2000].iter().all(Option::is_none));
    let found = removals[2000..].iter().map(|removal| removal.unwrap().survivor);
    assert!(found.eq((0..2000).step_by(10)));
    assert_eq!(survivors.not_compared(), 0);
}

#[test]
fn pairs_beyond_the_limits_are_counted() {
    // All documents share one bucket, and have no gram in common.
    let corpus: Corpus = (0..5).map(|gram| vec![gram]).collect();
    let buckets = vec![vec![3]; 5];
    for (examined, left_out) in [(1, 6), (2, 3), (3, 1), (4, 0)] {
        let mut survivors = Survivors::new(0.5).unwrap().with_limits(1, examined);
        assert!(decide(&mut survivors, &corpus, &buckets).iter().all(Option::is_none));
        assert_eq!(survivors.not_compared(), left_out, "{examined}");
    }
    // Pairs with a document that is removed are not counted.
    let corpus: Corpus = (0..9).map(|gram| vec![1, 2, 3, 4, 10 + gram]).collect();
    let mut survivors = Survivors::new(0.5).unwrap().with_limits(1, 1);
    assert_eq!(decide(&mut survivors, &corpus, &vec![vec![0]; 9]).iter().flatten().count(), 8);
    assert_eq!(survivors.not_compared(), 0);
}

#[test]
fn an_error_of_the_reader_is_returned() {
    let mut survivors = Survivors::new(0.5).unwrap();
    let removal = survivors.decide(0, &[0], |_, _| Err("not read without others in the bucket"));
    assert_eq!(removal, Ok(None));
    let removal = survivors.decide(1, &[0], |_, _| Err("unreadable"));
    assert_eq!(removal, Err("unreadable"));
}
