//! The same operations on every kernel and both types: the answers of the layout's specification, and equal bits.
#![no_main]

use arbitrary::Arbitrary;
use bloomline::{AtomicBloomFilter, BloomFilter, Kernel};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
enum Operation {
    Insert(u64),
    InsertMany(Hashes),
    Contains(u64),
    ContainsMany(Hashes),
    Clear,
}

/// An arithmetic sequence. A few bytes of input make a batch that is longer than the prefetch distance. With a small step all
/// of the batch is in one block, and with a step of 0 it consists of repeats.
#[derive(Arbitrary, Debug)]
struct Hashes {
    start: u64,
    step: u64,
    count: u8,
}

impl Hashes {
    fn to_vec(&self) -> Vec<u64> {
        (0..u64::from(self.count)).map(|i| self.start.wrapping_add(i.wrapping_mul(self.step))).collect()
    }
}

#[derive(Arbitrary, Debug)]
struct Input {
    /// 255 stands for a filter above the size whose batches run without prefetches.
    blocks: u8,
    probes: u8,
    operations: Vec<Operation>,
}

/// The layout in plain arithmetic, written apart from the crate: see the picture in src/kernel/block.rs.
struct Specification {
    blocks: Vec<[u64; 8]>,
    probes: usize,
}

impl Specification {
    /// The words of the hash's block, and the bits of the hash in each.
    fn locate(&mut self, hash: u64) -> (&mut [u64; 8], [u64; 8]) {
        let fold = |a: u64, b: u64| {
            let wide = u128::from(a) * u128::from(b);
            (wide >> 64) as u64 ^ wide as u64
        };
        let product = u128::from(hash) * self.blocks.len() as u128;
        let first = fold(hash, 0x6A09_E667_F3BC_C909);
        let second = fold(first, 0xBB67_AE85_84CA_A73B);
        let mut bits = [0; 8];
        for lane in 0..4 {
            let (first, second) = (first >> (16 * lane) & 0xFFFF, second >> (16 * lane) & 0xFFFF);
            let word = if first < 0x8000 { lane } else { lane + 4 };
            for position in &[first, first >> 6, second, second >> 6][..self.probes / 4] {
                bits[word] |= 1 << (position % 64);
            }
        }
        (&mut self.blocks[(product >> 64) as usize], bits)
    }

    fn contains(&mut self, hash: u64) -> bool {
        let (words, bits) = self.locate(hash);
        words.iter().zip(bits).all(|(word, bits)| word & bits == bits)
    }

    fn insert(&mut self, hash: u64) -> bool {
        let new = !self.contains(hash);
        let (words, bits) = self.locate(hash);
        words.iter_mut().zip(bits).for_each(|(word, bits)| *word |= bits);
        new
    }

    fn fill_ratio(&self) -> f64 {
        let ones: u32 = self.blocks.iter().flatten().map(|word| word.count_ones()).sum();
        f64::from(ones) / (self.blocks.len() * 512) as f64
    }
}

/// Performs an operation on a filter of either type.
macro_rules! check {
    ($filter:expr, $operation:expr, $expected:expr) => {
        match $operation {
            Operation::Insert(hash) => assert_eq!($filter.insert_hash(*hash), $expected[0]),
            Operation::Contains(hash) => assert_eq!($filter.contains_hash(*hash), $expected[0]),
            Operation::InsertMany(hashes) => check_batch($expected, |new| $filter.insert_hashes(&hashes.to_vec(), new)),
            Operation::ContainsMany(hashes) => {
                check_batch($expected, |found| $filter.contains_hashes(&hashes.to_vec(), found))
            }
            Operation::Clear => $filter.clear(),
        }
    };
}

fn check_batch(expected: &[bool], batch: impl FnOnce(&mut [bool]) -> usize) {
    // All answers are wrong at first, because every answer must be written.
    let mut answers: Vec<bool> = expected.iter().map(|answer| !answer).collect();
    assert_eq!(batch(&mut answers), expected.iter().filter(|&&answer| answer).count());
    assert_eq!(answers, expected);
}

fuzz_target!(|input: Input| {
    let blocks = if input.blocks == 255 { 20_001 } else { 1 + usize::from(input.blocks) };
    let probes = 4 * (1 + u32::from(input.probes % 4));
    let mut specified = Specification { blocks: vec![[0; 8]; blocks], probes: probes as usize };
    let build = |kernel| -> BloomFilter {
        BloomFilter::builder().memory(blocks * 64).probes(probes).kernel(kernel).build().unwrap()
    };
    let mut filters: Vec<(_, AtomicBloomFilter)> =
        Kernel::available().map(|kernel| (build(kernel), build(kernel).into())).collect();
    for operation in &input.operations {
        let expected: Vec<bool> = match operation {
            Operation::Insert(hash) => vec![specified.insert(*hash)],
            Operation::InsertMany(hashes) => hashes.to_vec().into_iter().map(|hash| specified.insert(hash)).collect(),
            Operation::Contains(hash) => vec![specified.contains(*hash)],
            Operation::ContainsMany(hashes) => {
                hashes.to_vec().into_iter().map(|hash| specified.contains(hash)).collect()
            }
            Operation::Clear => {
                specified.blocks.fill([0; 8]);
                Vec::new()
            }
        };
        for (exclusive, atomic) in &mut filters {
            check!(exclusive, operation, &expected);
            check!(atomic, operation, &expected);
        }
    }
    let fill = specified.fill_ratio();
    let mut filters = filters.into_iter().flat_map(|(exclusive, atomic)| [exclusive, BloomFilter::from(atomic)]);
    let first = filters.next().unwrap();
    assert_eq!(first.fill_ratio(), fill);
    assert!(filters.all(|filter| filter == first));
});
