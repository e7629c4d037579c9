//! The grams of tests, and the tests that have them.

/// Each gram of tests with the number of a test that has it, sorted once all are known.
#[derive(Default)]
pub struct TestGrams(pub Vec<(u64, u32)>);

impl TestGrams {
    /// Sorts the grams, each once for each test.
    pub fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }

    /// True if a test has the gram.
    pub fn contains(&self, gram: u64) -> bool {
        self.0.binary_search_by_key(&gram, |(known, _)| *known).is_ok()
    }

    /// Returns the tests that have a gram, each with the number of its entry.
    pub fn tests_of(&self, gram: u64) -> impl Iterator<Item = (usize, u32)> {
        let first = self.0.partition_point(|(known, _)| *known < gram);
        let entries = self.0.iter().enumerate().skip(first);
        entries.take_while(move |(_, (known, _))| *known == gram).map(|(i, (_, test))| (i, *test))
    }
}
