//! A filter of each type can be read from what it writes, as a file and by serde, after any sequence of operations.

use bloomline::variants::*;
use bloomline::*;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
enum Operation {
    /// Inserts this many keys, from this one on.
    Insert(u16, u16),
    /// Merges a filter with this many keys into it, this many times.
    Union(u16, u16),
    UnionWithItself,
    Shrink,
    Fold,
    Rotate,
    Clear,
    AddKinds(u16, usize),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let keys = || prop_oneof![0..3u16, 0..300u16, 0..3000u16];
    let operation = prop_oneof![
        4 => (keys(), any::<u16>()).prop_map(|(keys, first)| Operation::Insert(keys, first)),
        2 => (keys(), prop_oneof![Just(1u16), 1..300u16, 250..256u16]).prop_map(|(keys, times)| Operation::Union(keys, times)),
        1 => Just(Operation::UnionWithItself),
        4 => Just(Operation::Shrink),
        1 => Just(Operation::Fold),
        1 => Just(Operation::Rotate),
        1 => Just(Operation::Clear),
        1 => (any::<u16>(), 1..1100usize).prop_map(|(kinds, parts)| Operation::AddKinds(kinds, parts)),
    ];
    prop::collection::vec(operation, 0..12)
}

fn hashes(keys: u16, first: u16) -> impl Iterator<Item = u64> {
    (0..u64::from(keys)).map(move |key| (u64::from(first) + key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Performs the operations that a type has, and reads the filter from what it writes after each. `$more` performs those that only
/// this type has, and `$same` compares filters.
macro_rules! follow {
    ($Filter:ident, $size:expr, $operations:expr, $same:expr, $more:expr) => {{
        let build =
            || $size.1.iter().fold($Filter::builder().expected_keys($size.0), |b, &rate| b.false_positive_rate(rate));
        let build = || $size.2.iter().fold(build(), |builder, &bytes| builder.memory(bytes));
        let (same, more): (fn(&$Filter, &$Filter) -> bool, fn(&mut $Filter, &$Filter, &Operation)) = ($same, $more);
        // Not every type has every size, and some sizes take long to write.
        if let Some(mut filter) = build().build().ok().filter(|filter| filter.memory_bytes() < 100_000) {
            for operation in $operations {
                let mut other = build().build().unwrap();
                match operation {
                    &Operation::Insert(keys, first) => {
                        hashes(keys, first).for_each(|hash| _ = filter.insert_hash(hash))
                    }
                    &Operation::Union(keys, _) => hashes(keys, 7).for_each(|hash| _ = other.insert_hash(hash)),
                    &Operation::AddKinds(kinds, parts) => filter.add_key_kinds(&vec![kinds; parts]),
                    Operation::Clear => filter.clear(),
                    _ => {}
                }
                more(&mut filter, &mut other, operation);
                let mut bytes = vec![0; filter.file_bytes()];
                filter.write_to(&mut bytes[..]).unwrap();
                let json = serde_json::to_string(&filter).unwrap();
                let read = $Filter::read_from(&bytes[..]).unwrap_or_else(|e| panic!("{operation:?}: {e}: {filter:?}"));
                for read in [&read, &serde_json::from_str(&json).unwrap()] {
                    let purpose = |f: &$Filter| (f.expected_keys(), f.false_positive_rate(), f.key_kinds());
                    // A file does not have the kinds of single texts, which are those of a filter without kinds.
                    let [mut ours, read_purpose] = [purpose(&filter), purpose(read)];
                    ours.2.truncate(if ours.2 == [1] { 0 } else { ours.2.len() });
                    assert!(same(read, &filter) && read_purpose == ours, "{operation:?}: {read:?} {filter:?}");
                }
                filter = read;
            }
        }
    }};
}

/// The operations of types that merge.
macro_rules! merges {
    () => {
        |filter, other, operation| match operation {
            // A merge may refuse too many stages.
            Operation::Union(_, times) => (0..*times).for_each(|_| _ = filter.union(other)),
            Operation::UnionWithItself => _ = filter.union(&filter.clone()),
            _ => {}
        }
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_filter_writes_can_be_read_after_any_operations(
        keys in prop_oneof![Just(1u64), 1..300u64, 1..10_000u64],
        rate in prop::option::of(prop::sample::select(vec![0.999, 0.5, 0.01, 1e-6, 1e-12])),
        memory in prop::option::of(64..20_000usize),
        operations in operations(),
    ) {
        let size = (keys, rate, memory);
        follow!(BloomFilter, size, &operations, PartialEq::eq, |filter, other, operation| match operation {
            Operation::Union(..) | Operation::UnionWithItself => _ = filter.union(other),
            Operation::Shrink => filter.shrink_to_fit(),
            Operation::Fold => _ = filter.fold(),
            _ => {}
        });
        follow!(ScalableBloomFilter, size, &operations, PartialEq::eq, |filter, other, operation| match operation {
            Operation::Union(_, times) => (0..*times).for_each(|_| _ = filter.union(other)),
            Operation::UnionWithItself => _ = filter.union(&filter.clone()),
            Operation::Shrink => _ = filter.shrink_to_fit(),
            Operation::Rotate => *filter = AtomicScalableBloomFilter::from(filter.clone()).into(),
            _ => {}
        });
        follow!(AtomicScalableBloomFilter, size, &operations, PartialEq::eq, |filter, other, operation| {
            let mut own = ScalableBloomFilter::from(filter.clone());
            match operation {
                Operation::Union(..) => _ = own.union(&other.clone().into()),
                Operation::Shrink => _ = own.shrink_to_fit(),
                _ => return,
            }
            *filter = own.into();
        });
        follow!(RotatingBloomFilter, size, &operations, |a, b| a.estimated_keys() == b.estimated_keys(), |filter, _, operation| {
            match operation {
                Operation::Rotate => filter.rotate(),
                Operation::Fold => _ = filter.rotate_if_older_than(Duration::from_secs(3600)),
                _ => {}
            }
        });
        follow!(AtomicBloomFilter, size, &operations, PartialEq::eq, merges!());
        follow!(ClassicBloomFilter, size, &operations, PartialEq::eq, merges!());
        follow!(AtomicClassicBloomFilter, size, &operations, PartialEq::eq, merges!());
        follow!(TwoBlockBloomFilter, size, &operations, PartialEq::eq, merges!());
        follow!(RegisterBloomFilter, size, &operations, PartialEq::eq, merges!());
        follow!(SplitBlockBloomFilter, size, &operations, PartialEq::eq, merges!());
        follow!(CountingBloomFilter, size, &operations, PartialEq::eq, merges!());
    }
}
