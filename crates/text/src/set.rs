//! The trait of sets of grams, which filters implement.

use bloomline::{BuildError, Filter};

/// A set of hashes: any [`Filter`], a reference to a shared one, or a set of your own.
///
/// # Examples
/// ```
/// use bloomline::KeyHasher;
/// use bloomline_text::{Rules, Set, Texts};
/// use std::collections::HashSet;
/// use std::convert::Infallible;
///
/// #[derive(Default)]
/// struct Exact(HashSet<u64>);
///
/// impl Set for Exact {
///     type Error = Infallible;
///
///     fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Infallible> {
///         hashes.iter().zip(&mut *found).for_each(|(hash, found)| *found = self.0.contains(hash));
///         Ok(found.iter().filter(|found| **found).count())
///     }
///
///     fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Infallible> {
///         hashes.iter().zip(&mut *new).for_each(|(hash, new)| *new = self.0.insert(*hash));
///         Ok(new.iter().filter(|new| **new).count())
///     }
/// }
///
/// let mut rules = Rules::default();
/// rules.ngram = 0;
/// let mut texts = Texts::default();
/// texts.push(&rules, &KeyHasher::new(0), b"again\nagain");
/// texts.decide(&rules, &mut Exact::default())?;
/// assert_eq!(texts.document(0).found(), 1);
/// # Ok::<(), Infallible>(())
/// ```
pub trait Set {
    /// The error of a failed call.
    type Error;

    /// Looks up hashes. Sets `found[i]` to true if `hashes[i]` is in the set, and returns the number of these. Both
    /// slices have the same length.
    ///
    /// # Errors
    /// Errors of the set.
    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Self::Error>;

    /// Inserts hashes in order. Sets `new[i]` to true if `hashes[i]` was not in the set, and returns the number of
    /// these. Both slices have the same length.
    ///
    /// # Errors
    /// Errors of the set.
    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Self::Error>;
}

/// Every filter of the library, and a reference to a filter that many threads write to.
impl<F: Filter> Set for F {
    /// Only filters that grow return errors.
    type Error = BuildError;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, BuildError> {
        Ok(Filter::contains_hashes(self, hashes, found))
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, BuildError> {
        self.try_insert_hashes(hashes, new)
    }
}
