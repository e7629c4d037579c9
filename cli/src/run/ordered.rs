//! Things that several threads finish in any order, given back in theirs.

use std::collections::BTreeMap;

/// Numbered things, from 0 on. Each number is put once.
pub struct Ordered<T> {
    next: u64,
    waiting: BTreeMap<u64, T>,
}

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self { next: 0, waiting: BTreeMap::new() }
    }
}

impl<T> Ordered<T> {
    /// Puts a thing, which waits for those before it.
    pub fn put(&mut self, number: u64, thing: T) {
        self.waiting.insert(number, thing);
    }

    /// The next one, if it is there.
    pub fn take(&mut self) -> Option<T> {
        let thing = self.waiting.remove(&self.next)?;
        self.next += 1;
        Some(thing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_the_order(numbers in Just((0..50u64).collect::<Vec<_>>()).prop_shuffle()) {
            let mut ordered = Ordered::default();
            let mut taken = Vec::new();
            for number in numbers {
                ordered.put(number, number);
                taken.extend(std::iter::from_fn(|| ordered.take()));
            }
            prop_assert_eq!(taken, (0..50).collect::<Vec<_>>());
        }
    }
}
