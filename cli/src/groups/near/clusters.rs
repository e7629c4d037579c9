//! What verified pairs connect.

use crate::error::Error;
use crate::groups::marks::Marks;
use crate::groups::near::involved::Involved;
use crate::groups::near::sets::Reader;
use std::io;
use std::mem;

/// The bytes of sets that are not read again.
const IN_MEMORY: usize = 1 << 24;

/// What became of the pairs so far.
struct Pairs {
    reader: Reader,
    threshold: f64,
    /// A document that is connected with each, and not after it: itself if it is the first.
    firsts: Vec<u32>,
    /// Documents whose set is that of one before them, which is in all of their buckets.
    copies: Vec<bool>,
}

impl Pairs {
    /// The first document that this one is connected with.
    fn first(&mut self, mut document: u32) -> u32 {
        while self.firsts[document as usize] != document {
            let next = self.firsts[document as usize];
            self.firsts[document as usize] = self.firsts[next as usize];
            document = self.firsts[document as usize];
        }
        document
    }

    /// Verifies the pairs of a bucket that are not connected.
    fn connect(&mut self, bucket: &[u32]) -> io::Result<()> {
        self.reader.forget();
        // The documents so far, those together that are connected.
        let mut parts: Vec<Vec<u32>> = Vec::new();
        for &document in bucket {
            if self.copies[document as usize] {
                continue;
            }
            let (mut own, mut i) = (Vec::new(), 0);
            while let Some(part) = parts.get(i) {
                if self.belongs(document, part)? {
                    let mut part = parts.swap_remove(i);
                    if part.len() > own.len() {
                        mem::swap(&mut part, &mut own);
                    }
                    own.append(&mut part);
                } else {
                    i += 1;
                }
            }
            if !self.copies[document as usize] {
                own.push(document);
            }
            parts.push(own);
        }
        Ok(())
    }

    /// Connects a document with others that are connected, if it is like one of them. Returns whether it is connected with them.
    fn belongs(&mut self, document: u32, part: &[u32]) -> io::Result<bool> {
        let (a, b) = (self.first(document), self.first(part[0]));
        if a == b {
            return Ok(true);
        }
        for &other in part {
            // What is no copy of one of them was compared with all others before.
            if self.copies[document as usize] {
                return Ok(false);
            }
            // The smaller set divided by the larger is the most that it can be.
            let sizes = [document, other].map(|document| f64::from(self.reader.sets.sizes[document as usize]));
            if sizes[0].min(sizes[1]) / sizes[0].max(sizes[1]) < self.threshold {
                continue;
            }
            let similarity = self.reader.similarity(document, other)?;
            if similarity >= self.threshold {
                self.copies[document as usize] = similarity == 1.0;
                self.firsts[a.max(b) as usize] = a.min(b);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Which documents are near duplicates.
pub struct Clusters {
    pub places: Marks,
    /// The first documents of clusters of which one has a band of an earlier run.
    known: Marks,
    /// The first of the cluster that each is in.
    firsts: Vec<u32>,
    reader: Reader,
}

impl Clusters {
    /// Connects all pairs of documents that share a band and whose Jaccard index is at least the threshold.
    pub fn verified(involved: Involved, threshold: f64) -> Result<Self, Error> {
        Self::verified_within(involved, threshold, IN_MEMORY)
    }

    pub(super) fn verified_within(involved: Involved, threshold: f64, in_memory: usize) -> Result<Self, Error> {
        let Involved { places, known, mut buckets, sets, .. } = involved;
        let count = places.count as u32;
        if sets.sizes.len() != count as usize {
            return Err(Error::Changed);
        }
        let mut pairs = Pairs {
            reader: Reader::new(sets, in_memory).map_err(Error::groups)?,
            threshold,
            firsts: (0..count).collect(),
            copies: vec![false; count as usize],
        };
        let mut bucket = Vec::new();
        for at in buckets.read().map_err(Error::groups)? {
            let at = at.map_err(Error::groups)?;
            if at & 1 > 0 {
                pairs.connect(&bucket).map_err(Error::groups)?;
                bucket.clear();
            }
            bucket.extend(places.index(at >> 1).map(|document| document as u32));
        }
        pairs.connect(&bucket).map_err(Error::groups)?;
        let mut known_clusters = Marks::default();
        for (document, place) in (0..count).zip(places.iter()) {
            let first = pairs.first(document);
            if known.contains(place) {
                known_clusters.insert(first.into());
            }
        }
        let Pairs { mut reader, mut firsts, .. } = pairs;
        reader.forget();
        // Each is behind the one that leads to its first.
        for document in 0..count as usize {
            firsts[document] = firsts[firsts[document] as usize];
        }
        Ok(Self { places, known: known_clusters, firsts, reader })
    }

    /// The number of the first document of the cluster that the one at a place is in, and whether an earlier run had a band of one of
    /// them. `None` if no document shares a band with it.
    pub fn first(&self, place: u64) -> Option<(u32, bool)> {
        let first = self.firsts[self.places.index(place)?];
        Some((first, self.known.contains(first.into())))
    }

    /// The Jaccard index of the documents at two places, which share bands with others.
    pub fn similarity(&mut self, place: u64, other: u64) -> Result<f64, Error> {
        let of = |place| self.places.index(place).map(|document| document as u32).ok_or(Error::Changed);
        self.reader.similarity(of(place)?, of(other)?).map_err(Error::groups)
    }
}
