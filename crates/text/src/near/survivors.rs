//! Survivors: the documents that are kept, chosen in one pass in the order of rank.

use super::{NearError, common, sketch};
use alloc::vec::Vec;

/// The default of [`Survivors::with_limits`].
const MAX_COMPARED: usize = 8;
const MAX_EXAMINED: usize = 4096;

/// No entry, or no sketch.
const NONE: u32 = u32::MAX;

/// The survivors among near duplicates, chosen by direct comparison.
///
/// Call [`decide`](Self::decide) with each document, the best first. A document is removed if it is similar to a survivor, an
/// earlier document that was not removed itself. So documents that are connected only through others are all kept.
///
/// A document is compared only with survivors that share a *bucket* with it, such as those with the same
/// [band](super::Near::hash), and with a limited number of them. Among the pairs that were compared,
/// - each removed document is at least as similar to its survivor as was asked,
/// - no survivor is that similar to an earlier one.
///
/// [`not_compared`](Self::not_compared) counts the other pairs.
///
/// Memory: 16 bytes for each survivor and 8 for each of its buckets, 8 for each bucket, and, for survivors that share a bucket
/// with many others, a sketch of four to eight bits for each gram, at most 4 KiB.
///
/// # Examples
/// ```
/// use bloomline::KeyHasher;
/// use bloomline_text::near::{Near, Scratch, Survivors};
/// use std::collections::HashMap;
/// use std::convert::Infallible;
///
/// let (near, hasher, mut scratch) = (Near::new(0.8)?, KeyHasher::new(0), Scratch::default());
/// let words = |count: usize| (0..count).map(|i| format!("w{i} ")).collect::<String>();
/// // By rank, such as the longest first.
/// let texts = [words(300), words(290), words(100), words(299).replace("w42 ", "")];
/// let mut sets = Vec::new();
/// let mut numbers = HashMap::new();
/// let mut survivors = Survivors::new(0.8)?.with_contained(0.95)?;
/// let mut kept = Vec::new();
/// for (text, document) in texts.iter().zip(0..) {
///     let (mut bands, mut grams) = (Vec::new(), Vec::new());
///     near.hash(&hasher, text.as_bytes(), &mut scratch, &mut bands);
///     near.grams(&hasher, text.as_bytes(), &mut scratch, &mut grams);
///     sets.push(grams);
///     let next = |count: usize| count as u32;
///     let buckets: Vec<u32> = bands.iter().map(|band| {
///         let next = next(numbers.len());
///         *numbers.entry(*band).or_insert(next)
///     }).collect();
///     let removal = survivors.decide(document, &buckets, |document, into| {
///         into.extend_from_slice(&sets[document as usize]);
///         Ok::<(), Infallible>(())
///     })?;
///     kept.push(removal.is_none());
/// }
/// assert_eq!(kept, [true, false, true, false]);
/// assert_eq!(survivors.not_compared(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Survivors {
    similarity: f64,
    contained: f64,
    max_compared: usize,
    max_examined: usize,
    buckets: Vec<Bucket>,
    entries: Vec<Entry>,
    survivors: Vec<Survivor>,
    sketches: Vec<u64>,
    not_compared: u64,
    /// The number of decided documents.
    decided: u32,
    /// Scratch memory: the possible survivors, the set of the document with its sketch, the set of another, and the buckets.
    possible: Vec<Possible>,
    own: Vec<u64>,
    own_sketch: Vec<u64>,
    other: Vec<u64>,
    order: Vec<u32>,
}

/// A removed document's survivor, and how much both have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Removal {
    /// The number of the survivor.
    pub survivor: u32,
    /// The [Jaccard index](super::jaccard) of both sets.
    pub similarity: f64,
    /// The share of the removed document's grams that the survivor has: [`containment`](super::containment).
    pub containment: f64,
}

/// A list of survivors, the last one first.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    head: u32,
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The index of the survivor.
    survivor: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Survivor {
    document: u32,
    /// The number of the last document for which this one was examined.
    examined_for: u32,
    /// The number of grams, and the index of the sketch, once there is a sketch.
    size: u32,
    sketch: u32,
}

/// A survivor that a document may be similar to.
#[derive(Clone, Copy, Debug)]
struct Possible {
    survivor: u32,
    /// An upper bound of the Jaccard index.
    bound: f64,
}

impl Survivors {
    /// Starts without documents, for documents of this Jaccard similarity and above.
    ///
    /// # Errors
    /// [`NearError::Similarity`] if the similarity is not between 0 and 1, both excluded.
    pub fn new(similarity: f64) -> Result<Self, NearError> {
        if !(similarity > 0.0 && similarity < 1.0) {
            return Err(NearError::Similarity { value: similarity });
        }
        Ok(Self {
            similarity,
            contained: 0.0,
            max_compared: MAX_COMPARED,
            max_examined: MAX_EXAMINED,
            buckets: Vec::new(),
            entries: Vec::new(),
            survivors: Vec::new(),
            sketches: Vec::new(),
            not_compared: 0,
            decided: 0,
            possible: Vec::new(),
            own: Vec::new(),
            own_sketch: Vec::new(),
            other: Vec::new(),
            order: Vec::new(),
        })
    }

    /// Removes a document only if the survivor also has this share of its grams, from 0 to 1; the default is 0. At 1, a removed
    /// document has no gram that its survivor lacks.
    ///
    /// # Errors
    /// [`NearError::Contained`] if the share is not from 0 to 1.
    ///
    /// # Examples
    /// ```
    /// use bloomline_text::near::{NearError, Survivors};
    /// assert!(Survivors::new(0.8)?.with_contained(1.0).is_ok());
    /// let error = Survivors::new(0.8)?.with_contained(80.0).unwrap_err();
    /// assert_eq!(error, NearError::Contained { value: 80.0 });
    /// # Ok::<(), NearError>(())
    /// ```
    pub fn with_contained(self, share: f64) -> Result<Self, NearError> {
        match share {
            0.0..=1.0 => Ok(Self { contained: share, ..self }),
            value => Err(NearError::Contained { value }),
        }
    }

    /// Compares the sets of a document with those of at most `compared` survivors, 8 by default. If more survivors share a bucket
    /// with it, at most `examined` of them, 4096 by default, are examined by sketches, which rule out most. They are taken from
    /// the buckets with the fewest survivors first, and in each from the last survivor back. At least one is compared.
    ///
    /// ```
    /// use bloomline_text::near::{NearError, Survivors};
    /// let thorough = Survivors::new(0.8)?.with_limits(usize::MAX, usize::MAX);
    /// # Ok::<(), NearError>(())
    /// ```
    pub fn with_limits(self, compared: usize, examined: usize) -> Self {
        Self { max_compared: compared.max(1), max_examined: examined.max(1), ..self }
    }

    /// Decides about the next document, in the order of rank. Returns `None` if it is a survivor. If it is removed, returns
    /// the survivor that it is similar to.
    ///
    /// `buckets` are numbers from 0 on; memory is taken up to the largest one. `read` appends the [set of grams](super::Near::grams)
    /// of a document to a vector: of this one, and of survivors. A document without a survivor in its buckets is kept, and its set
    /// is not read.
    ///
    /// O(b log b + e + c n) for b buckets, e examined survivors and c compared ones, with n grams each.
    ///
    /// # Errors
    /// Errors of `read`. The document is then not a survivor.
    ///
    /// # Panics
    /// If 2³² documents are decided, survivors are in 2³² buckets together, or their sketches take 32 GiB.
    pub fn decide<E>(
        &mut self,
        document: u32,
        buckets: &[u32],
        mut read: impl FnMut(u32, &mut Vec<u64>) -> Result<(), E>,
    ) -> Result<Option<Removal>, E> {
        let mut not_compared = self.find_possible(buckets);
        self.own.clear();
        self.own_sketch.clear();
        if !self.possible.is_empty() {
            read(document, &mut self.own)?;
            if self.possible.len() > self.max_compared {
                sketch::push(&self.own, &mut self.own_sketch);
                self.rule_out(&mut read)?;
            }
        }
        for (compared, possible) in self.possible.iter().enumerate() {
            if compared == self.max_compared {
                not_compared += (self.possible.len() - compared) as u64;
                break;
            }
            let survivor = self.survivors[possible.survivor as usize].document;
            self.other.clear();
            read(survivor, &mut self.other)?;
            let common = common(&self.own, &self.other);
            if let Some((similarity, containment)) = self.shares_if_duplicate(common, self.own.len(), self.other.len())
            {
                return Ok(Some(Removal { survivor, similarity, containment }));
            }
        }
        self.not_compared += not_compared;
        self.add(document, buckets);
        Ok(None)
    }

    /// Adds a survivor that is kept in any case, such as a document of an earlier run. It is compared only with documents that are
    /// decided later.
    ///
    /// O(b) for b buckets.
    ///
    /// # Panics
    /// If survivors are in 2³² buckets together.
    ///
    /// ```
    /// use bloomline_text::near::{NearError, Survivors};
    /// let mut survivors = Survivors::new(0.8)?;
    /// survivors.keep(0, &[0]);
    /// let removal = survivors.decide(1, &[0], |_, into| Ok::<(), ()>(into.extend([1, 2, 3])));
    /// assert_eq!(removal.unwrap().unwrap().survivor, 0);
    /// # Ok::<(), NearError>(())
    /// ```
    pub fn keep(&mut self, document: u32, buckets: &[u32]) {
        self.own.clear();
        self.own_sketch.clear();
        self.add(document, buckets);
    }

    /// Returns the number of pairs of survivors that share a bucket and were not compared, an upper bound. A pair that shares
    /// several buckets may count several times.
    pub fn not_compared(&self) -> u64 {
        self.not_compared
    }

    /// Returns the similarity and the containment of a document, from the sizes of its set, of a survivor's set and of their
    /// intersection. Returns `None` if they do not remove the document.
    fn shares_if_duplicate(&self, common: usize, own: usize, other: usize) -> Option<(f64, f64)> {
        let similarity = super::share(common, own + other - common);
        let containment = super::share(common, own);
        (similarity >= self.similarity && containment >= self.contained).then_some((similarity, containment))
    }

    /// Sets `possible` to the survivors in these buckets, in the order of rank. Returns the number of the others.
    fn find_possible(&mut self, buckets: &[u32]) -> u64 {
        self.decided = self.decided.checked_add(1).expect("fewer than 2³² documents");
        self.possible.clear();
        self.order.clear();
        let count = |bucket: &u32| self.buckets.get(*bucket as usize).map_or(0, |bucket| bucket.count);
        self.order.extend(buckets.iter().filter(|bucket| count(bucket) > 0));
        self.order.sort_unstable_by_key(|bucket| (count(bucket), *bucket));
        let (mut left, mut not_examined) = (self.max_examined, 0);
        for bucket in &self.order {
            let Bucket { head, count } = self.buckets[*bucket as usize];
            let examined = left.min(count as usize);
            left -= examined;
            not_examined += u64::from(count) - examined as u64;
            let mut next = head;
            for _ in 0..examined {
                let entry = self.entries[next as usize];
                next = entry.next;
                let survivor = &mut self.survivors[entry.survivor as usize];
                if survivor.examined_for != self.decided {
                    survivor.examined_for = self.decided;
                    self.possible.push(Possible { survivor: entry.survivor, bound: 1.0 });
                }
            }
        }
        if self.possible.len() <= self.max_compared {
            self.possible.sort_unstable_by_key(|possible| possible.survivor);
        }
        not_examined
    }

    /// Removes possible survivors that are not similar, by their sketches, and sorts the others: the likely ones first.
    fn rule_out<E>(&mut self, read: &mut impl FnMut(u32, &mut Vec<u64>) -> Result<(), E>) -> Result<(), E> {
        let mut possible = core::mem::take(&mut self.possible);
        let mut result = Ok(());
        possible.retain_mut(|Possible { survivor, bound }| {
            let survivor = *survivor as usize;
            if self.survivors[survivor].sketch == NONE && result.is_ok() {
                result = self.sketch(survivor, read);
            }
            if result.is_err() {
                return false;
            }
            let Survivor { size, sketch, .. } = self.survivors[survivor];
            let (a, b) = (self.own.len(), size as usize);
            if self.shares_if_duplicate(a.min(b), a, b).is_none() {
                return false;
            }
            let difference =
                sketch::difference(&self.own_sketch, &self.sketches[sketch as usize..][..sketch::words(b)]);
            let found = self.shares_if_duplicate(a.min(b).min((a + b - difference) / 2), a, b);
            *bound = found.map_or(0.0, |(similarity, _)| similarity);
            found.is_some()
        });
        possible.sort_unstable_by(|a, b| b.bound.total_cmp(&a.bound).then(a.survivor.cmp(&b.survivor)));
        self.possible = possible;
        result
    }

    /// Adds the sketch of a survivor.
    fn sketch<E>(
        &mut self,
        survivor: usize,
        read: &mut impl FnMut(u32, &mut Vec<u64>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.other.clear();
        read(self.survivors[survivor].document, &mut self.other)?;
        self.survivors[survivor].size = self.other.len() as u32;
        self.survivors[survivor].sketch = self.next_sketch();
        sketch::push(&self.other, &mut self.sketches);
        Ok(())
    }

    /// Returns the index of the next sketch.
    fn next_sketch(&self) -> u32 {
        u32::try_from(self.sketches.len()).ok().filter(|index| *index != NONE).expect("sketches of less than 32 GiB")
    }

    /// Adds a survivor to its buckets.
    fn add(&mut self, document: u32, buckets: &[u32]) {
        let survivor = self.survivors.len() as u32;
        let sketch = if self.own_sketch.is_empty() { NONE } else { self.next_sketch() };
        self.sketches.extend_from_slice(&self.own_sketch);
        self.survivors.push(Survivor { document, examined_for: 0, size: self.own.len() as u32, sketch });
        for &bucket in buckets {
            let at = bucket as usize;
            if at >= self.buckets.len() {
                self.buckets.resize(at + 1, Bucket { head: NONE, count: 0 });
            }
            let Bucket { head, count } = &mut self.buckets[at];
            self.entries.push(Entry { survivor, next: *head });
            *head = u32::try_from(self.entries.len() - 1).expect("fewer than 2³² buckets of survivors");
            *count += 1;
        }
    }
}
