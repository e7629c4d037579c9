//! Every kernel against the specification, [`Pattern::words_and_masks`]: one function for each operation.

use super::{AvailableKernel, BatchOp, Kernel, KernelOps};
use crate::kernel::block::{Block, PROBES, Pattern, WORDS};
use std::io::Write;
use std::vec::Vec;
use wyhash::final3::wyrng;

pub(crate) fn specified_contains(block: &Block, pattern: Pattern, b: usize) -> bool {
    pattern.words_and_masks(b).into_iter().all(|(word, mask)| block.0[word] & mask == mask)
}

pub(crate) fn specified_insert(block: &mut Block, pattern: Pattern, b: usize) -> bool {
    let new = !specified_contains(block, pattern, b);
    for (word, mask) in pattern.words_and_masks(b) {
        block.0[word] |= mask;
    }
    new
}

/// Runs a check with every kernel and number of probes.
pub(crate) fn for_each_kernel(check: impl Fn(AvailableKernel, u32)) {
    for &kernel in Kernel::ALL {
        match AvailableKernel::new(kernel) {
            Ok(selected) => PROBES.into_iter().for_each(|probes| check(selected, probes)),
            // Not `eprintln!`, which the test harness hides when the test passes.
            Err(_) => writeln!(std::io::stderr(), "skipped: kernel {kernel} is not available").unwrap(),
        }
    }
}

/// Returns random patterns, each with blocks that lack one of its bits or none, with and without the other bits, and
/// blocks of every fill.
fn cases<const B: usize>() -> Vec<(Block, Pattern)> {
    let mut state = 1;
    let mut cases = Vec::new();
    for _ in 0..300 {
        let pattern = Pattern { first: wyrng(&mut state) };
        let mut bits = Block::default();
        specified_insert(&mut bits, pattern, B);
        cases.push((bits, pattern));
        cases.push((Block(bits.0.map(|word| !word)), pattern));
        cases.push((Block([u64::MAX; WORDS]), pattern));
        for (word, bit) in (0..WORDS).flat_map(|word| (0..64).map(move |bit| (word, 1 << bit))) {
            if bits.0[word] & bit != 0 {
                let (mut only, mut all) = (bits, Block([u64::MAX; WORDS]));
                only.0[word] ^= bit;
                all.0[word] ^= bit;
                cases.extend([(only, pattern), (all, pattern)]);
            }
        }
        // A bit is set with chance fill / 64.
        for fill in 0..64 {
            let mut word = || (0..64).fold(0, |word, bit| word | u64::from(wyrng(&mut state) % 64 < fill) << bit);
            cases.push((Block(core::array::from_fn(|_| word())), pattern));
        }
    }
    cases
}

struct CheckContains;

impl BatchOp for CheckContains {
    type Output = ();
    #[inline(always)]
    fn run<I: KernelOps, const B: usize>(self, isa: I) {
        for (block, pattern) in cases::<B>() {
            let expected = specified_contains(&block, pattern, B);
            assert_eq!(isa.contains(&block, pattern, B), expected, "{B} a lane, {pattern:x?} in {block:x?}");
        }
    }
}

struct CheckInsert;

impl BatchOp for CheckInsert {
    type Output = ();
    #[inline(always)]
    fn run<I: KernelOps, const B: usize>(self, isa: I) {
        for (before, pattern) in cases::<B>() {
            let (mut block, mut expected) = (before, before);
            let new = specified_insert(&mut expected, pattern, B);
            assert_eq!(isa.insert(&mut block, pattern, B), new, "{B} a lane, {pattern:x?} in {before:x?}");
            assert_eq!(block, expected, "{B} a lane, {pattern:x?} in {before:x?}");
        }
    }
}

#[test]
fn contains_follows_the_specification() {
    for_each_kernel(|kernel, probes| kernel.run(probes, CheckContains));
}

#[test]
fn insert_follows_the_specification() {
    for_each_kernel(|kernel, probes| kernel.run(probes, CheckInsert));
}
