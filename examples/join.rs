//! A hash join that prunes its large side by a filter of the small one: `cargo run --example join`.
//!
//! A query engine builds the hash table of the small side first. A filter of the same keys takes some ten bits a key, so the
//! scan of the large side can query it early, batch by batch, before rows are decompressed further, sent elsewhere or looked
//! up. A row that the filter drops has no partner. The join drops the few that it lets pass by mistake.

use bloomline::BloomFilter;
use std::collections::HashMap;
use std::error::Error;

/// Rows of a batch.
const BATCH: usize = 8192;

/// A batch of the large side, as Arrow has it: a column of keys that may be null, and one of values.
struct Batch {
    customer: Vec<i32>,
    /// Bit i, from the lowest, is unset where row i is null.
    valid: Vec<u64>,
    amount: Vec<u64>,
}

/// The customers of a region: a few of all.
fn small_side() -> Vec<(i64, &'static str)> {
    (0..1_000_000).step_by(200).map(|id| (id, "north")).collect()
}

/// Orders of customers everywhere, in batches. Each seventh is of nobody.
fn large_side(batches: usize) -> Vec<Batch> {
    let batch = |batch: usize| {
        let rows = batch * BATCH..(batch + 1) * BATCH;
        let valid =
            |word: usize| (0..64).fold(0, |bits, bit| bits | u64::from(!(64 * word + bit).is_multiple_of(7)) << bit);
        Batch {
            customer: rows.clone().map(|row| (row as u64 * 7_919 % 1_000_000) as i32).collect(),
            valid: (0..BATCH / 64).map(valid).collect(),
            amount: rows.map(|row| row as u64 % 100).collect(),
        }
    };
    (0..batches).map(batch).collect()
}

/// The rows whose bits are set.
fn ones(bitmap: &[u64]) -> impl Iterator<Item = usize> {
    let rows = 0..64 * bitmap.len();
    rows.filter(|row| bitmap[row / 64] >> (row % 64) & 1 == 1)
}

fn main() -> Result<(), Box<dyn Error>> {
    let small = small_side();
    let large = large_side(100);

    // Build: the hash table, and the filter of its keys.
    let table: HashMap<i64, &str> = small.iter().copied().collect();
    let mut filter = BloomFilter::new(small.len() as u64, 0.01)?;
    let ids: Vec<i64> = small.iter().map(|(id, _)| *id).collect();
    filter.insert_batch(&ids, &mut vec![false; ids.len()]);

    // Probe: a batch is pruned as a whole, and only what is left is looked up.
    let (mut rows, mut lookups, mut joined, mut amount) = (0, 0, 0, 0);
    for batch in &large {
        // The columns of the two sides differ in type, and 7i32 is another key than 7i64: both are widened to one type.
        let keys: Vec<i64> = batch.customer.iter().map(|&id| id.into()).collect();
        // Nulls have no partner: their rows are not asked for.
        let mut bitmap = batch.valid.clone();
        lookups += filter.prune_bitmap(&keys, &mut bitmap);
        for row in ones(&bitmap) {
            if table.contains_key(&keys[row]) {
                joined += 1;
                amount += batch.amount[row];
            }
        }
        rows += keys.len();
    }
    println!("{rows} rows, {lookups} looked up, {joined} joined");

    // The same rows join without the filter.
    let partners = |batch: &Batch| {
        let rows = ones(&batch.valid).filter(|&row| table.contains_key(&batch.customer[row].into()));
        rows.map(|row| batch.amount[row]).collect::<Vec<_>>()
    };
    let expected: Vec<u64> = large.iter().flat_map(partners).collect();
    assert_eq!((joined, amount), (expected.len(), expected.iter().sum()));
    // Of the others, 1 % pass.
    assert!(joined > 0 && lookups - joined < rows / 50);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
