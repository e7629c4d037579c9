//! Clusters: the connected components of verified pairs.

use crate::steps::groups::near::candidate_documents::CandidateDocuments;
use crate::steps::groups::near::sets::SetReader;
use crate::steps::groups::near::sketch::Sketches;
use crate::steps::groups::ordinals;
use crate::steps::groups::ranked_bitmap::RankedBitmap;
use crate::system::error::Error;
use crate::terminal::phase::Phase;
use std::io;
use std::mem;

/// The bytes of sets that are cached.
const IN_MEMORY: usize = 1 << 24;

/// The maximum number of documents of a bucket that another document is compared with.
const MAX_COMPARED: usize = 1 << 13;

/// No slot.
const NONE: u32 = u32::MAX;

/// The result of the comparisons so far.
struct Pairs {
    reader: SetReader,
    threshold: f64,
    /// The maximum number of documents of a bucket that another document is compared with.
    max_compared: usize,
    /// A union-find forest: for each document a connected one that is not after it, or itself if it is the first.
    firsts: Vec<u32>,
    /// Documents with the same set as an earlier one, which is in all of their buckets.
    copies: Vec<bool>,
    /// Documents of a bucket that others are compared with, and the free slots.
    slots: Vec<ClusterSlot>,
    free: Vec<u32>,
    sketches: Sketches,
    /// An upper bound of the number of pairs that were not compared.
    left_out: u64,
}

/// A document that others are compared with, in a linked list of connected documents.
#[derive(Clone, Copy)]
struct ClusterSlot {
    document: u32,
    /// The number of grams in its set.
    size: u32,
    has_sketch: bool,
    next: u32,
}

/// The connected documents of a bucket.
struct ConnectedPart {
    /// The first document of their cluster.
    document: u32,
    /// The ends of the list.
    head: u32,
    tail: u32,
    /// The number of further documents, which no other is compared with.
    left_out: u64,
}

impl Pairs {
    fn new(reader: SetReader, threshold: f64, max_compared: usize) -> Self {
        let count = reader.sets.sizes.len();
        Self {
            reader,
            threshold,
            max_compared,
            firsts: (0..count as u32).collect(),
            copies: vec![false; count],
            slots: Vec::new(),
            free: Vec::new(),
            sketches: Sketches::default(),
            left_out: 0,
        }
    }

    /// Returns the first document of the cluster that this document is in.
    fn first(&mut self, mut document: u32) -> u32 {
        while self.firsts[document as usize] != document {
            let next = self.firsts[document as usize];
            self.firsts[document as usize] = self.firsts[next as usize];
            document = self.firsts[document as usize];
        }
        document
    }

    /// Verifies the pairs of a bucket that are not connected yet.
    fn connect(&mut self, bucket: &mut Vec<u32>) -> io::Result<()> {
        self.reader.forget();
        (self.slots, self.free) = (Vec::new(), Vec::new());
        bucket.retain(|document| !self.copies[*document as usize]);
        // Sorted by size: a document too small for one is too small for all that follow.
        let sizes = &self.reader.sets.sizes;
        bucket.sort_unstable_by_key(|document| (sizes[*document as usize], *document));
        self.sketches.clear(bucket.last().map_or(0, |largest| sizes[*largest as usize]));
        // Parts that a document was connected with come last, and are compared first.
        let (mut parts, mut left_out) = (Vec::<ConnectedPart>::new(), 0);
        for &document in &*bucket {
            let slot = self.hold(document);
            let mut current = ConnectedPart { document, head: slot, tail: slot, left_out: 0 };
            let (mut not_compared, mut i) = (left_out, parts.len());
            while let Some(previous) = i.checked_sub(1) {
                i = previous;
                if self.try_connect(slot, &mut parts[i])? {
                    let part = parts.remove(i);
                    self.slots[current.tail as usize].next = part.head;
                    current = ConnectedPart { tail: part.tail, left_out: current.left_out + part.left_out, ..current };
                } else {
                    not_compared += parts[i].left_out;
                    if parts[i].head == NONE {
                        left_out += parts.remove(i).left_out;
                    }
                }
            }
            current.document = self.first(document);
            if self.copies[document as usize] {
                self.drop_head(&mut current);
            } else {
                self.left_out += not_compared;
            }
            parts.push(current);
            if self.slots.len() - self.free.len() > self.max_compared {
                self.drop_head(&mut parts[0]);
                parts[0].left_out += 1;
                if parts[0].head == NONE {
                    left_out += parts.remove(0).left_out;
                }
            }
        }
        Ok(())
    }

    /// Connects the document in a slot with the documents of a part if it is similar to one of them. Returns true if they are
    /// connected. Removes documents that are too small for it from the part.
    fn try_connect(&mut self, slot: u32, part: &mut ConnectedPart) -> io::Result<bool> {
        let ClusterSlot { document, size, .. } = self.slots[slot as usize];
        let first = self.first(document);
        if first == part.document {
            return Ok(true);
        }
        let (mut other_slot, mut previous_slot) = (part.head, NONE);
        while other_slot != NONE {
            // Unless a copy, it was compared with all others before.
            if self.copies[document as usize] {
                return Ok(false);
            }
            let other = self.slots[other_slot as usize];
            let sizes = u64::from(size) + u64::from(other.size);
            // Returns the Jaccard index of two sets with `common` grams in common.
            let index = |common: u64| if sizes == 0 { 1.0 } else { common as f64 / (sizes - common) as f64 };
            if index(other.size.into()) < self.threshold {
                match self.slots.get_mut(previous_slot as usize) {
                    Some(previous) => previous.next = other.next,
                    None => part.head = other.next,
                }
                if other.next == NONE {
                    part.tail = previous_slot;
                }
                self.free.push(other_slot);
            } else {
                let differing_bits = self.differing_bits(slot, other_slot)?;
                if index((sizes - differing_bits) / 2) >= self.threshold {
                    let similarity = self.reader.similarity(document, other.document)?;
                    if similarity >= self.threshold {
                        self.copies[document as usize] = similarity == 1.0;
                        self.firsts[first.max(part.document) as usize] = first.min(part.document);
                        return Ok(true);
                    }
                }
                previous_slot = other_slot;
            }
            other_slot = other.next;
        }
        Ok(false)
    }

    /// Returns a lower bound of the number of grams that are in only one of the sets of a document and an earlier one.
    fn differing_bits(&mut self, slot: u32, other: u32) -> io::Result<u64> {
        for (slot, is_other) in [(slot, false), (other, true)] {
            let ClusterSlot { document, has_sketch, .. } = &mut self.slots[slot as usize];
            if !mem::replace(has_sketch, true) {
                let grams = if is_other { self.reader.other(*document)? } else { self.reader.own(*document)? };
                self.sketches.put(slot as usize, grams);
            }
        }
        Ok(self.sketches.differing_bits(slot as usize, other as usize))
    }

    /// Puts a document into a slot.
    fn hold(&mut self, document: u32) -> u32 {
        let size = self.reader.sets.sizes[document as usize];
        let held = ClusterSlot { document, size, has_sketch: false, next: NONE };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = held;
                slot
            }
            None => {
                self.slots.push(held);
                self.slots.len() as u32 - 1
            }
        }
    }

    /// Removes the first document of a list.
    fn drop_head(&mut self, part: &mut ConnectedPart) {
        self.free.push(part.head);
        part.head = self.slots[part.head as usize].next;
    }
}

/// Clusters of near duplicates.
pub struct Clusters {
    pub ordinals: RankedBitmap,
    /// The first documents of clusters in which a document has a band of an earlier run.
    known: RankedBitmap,
    /// The first document of the cluster of each document.
    firsts: Vec<u32>,
    reader: SetReader,
    /// An upper bound of the number of pairs that share a band and were not compared.
    pub(super) left_out: u64,
}

impl Clusters {
    /// Connects all pairs of documents that share a band and whose Jaccard index is at least the threshold. Pairs of documents that
    /// share the band with more than [`MAX_COMPARED`] others may be skipped.
    pub fn verified(candidate_documents: CandidateDocuments, threshold: f64) -> Result<Self, Error> {
        Self::verified_within(candidate_documents, threshold, IN_MEMORY, MAX_COMPARED)
    }

    pub(super) fn verified_within(
        candidate_documents: CandidateDocuments,
        threshold: f64,
        in_memory: usize,
        max_compared: usize,
    ) -> Result<Self, Error> {
        let CandidateDocuments { ordinals, known, mut buckets, sets, .. } = candidate_documents;
        let count = ordinals.count as u32;
        if sets.sizes.len() != count as usize {
            return Err(ordinals::changed());
        }
        let reader = SetReader::new(sets, in_memory).map_err(Error::groups)?;
        let mut pairs = Pairs::new(reader, threshold, max_compared);
        let mut bucket = Vec::new();
        let phase = Phase::new("comparing", buckets.count(), false);
        for packed in phase.count(buckets.read().map_err(Error::groups)?) {
            let packed = packed.map_err(Error::groups)?;
            if packed & 1 > 0 {
                pairs.connect(&mut bucket).map_err(Error::groups)?;
                bucket.clear();
            }
            bucket.extend(ordinals.index(packed >> 1).map(|document| document as u32));
        }
        pairs.connect(&mut bucket).map_err(Error::groups)?;
        let mut known_clusters = RankedBitmap::default();
        for (document, ordinal) in (0..count).zip(ordinals.iter()) {
            let first = pairs.first(document);
            if known.contains(ordinal) {
                known_clusters.insert(first.into());
            }
        }
        let Pairs { mut reader, mut firsts, left_out, .. } = pairs;
        reader.forget();
        // A parent is never after its child, so its first is known.
        for document in 0..count as usize {
            firsts[document] = firsts[firsts[document] as usize];
        }
        Ok(Self { ordinals, known: known_clusters, firsts, reader, left_out })
    }

    /// Returns a warning if pairs were not compared.
    pub fn warning(&self) -> Option<String> {
        let left_out = self.left_out;
        (left_out > 0).then(|| {
            format!(
                "up to {left_out} pairs of documents were not compared, because more than {MAX_COMPARED} dissimilar documents share a \
                 key: similar documents may both be kept; give a larger --ngram, or remove duplicates from parts of the inputs \
                 first"
            )
        })
    }

    /// Returns the number of the first document of the cluster of the document at an ordinal, and whether an earlier run had a
    /// band of one of them. `None` if no document shares a band with it.
    pub fn first(&self, ordinal: u64) -> Option<(u32, bool)> {
        let first = self.firsts[self.ordinals.index(ordinal)?];
        Some((first, self.known.contains(first.into())))
    }

    /// Returns the Jaccard index of the documents at two ordinals. Both share bands with others.
    pub fn similarity(&mut self, ordinal: u64, other: u64) -> Result<f64, Error> {
        let of = |ordinal| self.ordinals.index(ordinal).map(|document| document as u32).ok_or_else(ordinals::changed);
        self.reader.similarity(of(ordinal)?, of(other)?).map_err(Error::groups)
    }
}
