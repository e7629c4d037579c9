//! Groups of near duplicates: the documents that pairs connect which share a band and are verified by their Jaccard index.
//!
//! ```text
//! Bands      of all documents, kept in a file by the first reading
//! Involved   documents that share a band: their sets of grams are kept in a file by a reading of the inputs
//! Clusters   what verified pairs connect
//! ```
//!
//! What every document leaves is on disk, but for a bit. The memory has two bytes for each band that the filter took for seen, then
//! some 10 bytes for each involved document, and the numbers of the documents of the largest bucket: of those that share a band.

use crate::error::Error;
use crate::groups::marks::Marks;
use crate::groups::places::Places;
use crate::groups::suspects::Suspects;
use crate::sort::Sorter;
use bloomline::BuildError;
use bloomline_text::near::jaccard;
use std::collections::HashMap;
use std::env;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::mem;
use std::os::unix::fs::FileExt;

/// Documents whose bands are looked up at once.
const BATCH: usize = 512;

/// The bytes that are written or read at once.
const BUFFER: usize = 1 << 17;

/// The bit of a band that tells whether the filter took it for seen.
const SEEN: u64 = 1;

/// The bytes of sets that are not read again, and the words that each takes beside its grams.
const IN_MEMORY: usize = 1 << 24;
const OVERHEAD: usize = 12;

/// The bands of all documents, in the order of places.
pub struct Bands {
    file: BufWriter<File>,
    /// The bands of a document.
    per: usize,
    /// Bands that the filter took for seen.
    suspects: Suspects,
}

impl Bands {
    /// Of no documents, each of which has so many bands.
    pub fn new(per: usize) -> Result<Self, Error> {
        let file = tempfile::tempfile().map_err(failed)?;
        Ok(Self { file: BufWriter::with_capacity(BUFFER, file), per, suspects: Suspects::new()? })
    }

    /// Adds the line at the next place: the bands of its document, and which of them are new to the filter. None if it has no
    /// bands.
    pub fn add(&mut self, bands: &[u64], new: &[bool]) -> io::Result<()> {
        for (band, new) in bands.iter().zip(new) {
            if !new {
                self.suspects.push(*band | SEEN);
            }
            let band = if *new { band & !SEEN } else { band | SEEN };
            self.file.write_all(&band.to_le_bytes())?;
        }
        // 0 is no band: that another is taken for it matters no more than that two may collide.
        (bands.len()..self.per).try_for_each(|_| self.file.write_all(&[0; 8]))
    }

    /// Takes note of the suspects among the lines that were added.
    pub fn settle(&mut self) -> Result<(), BuildError> {
        self.suspects.settle()
    }

    /// The documents that share a band. If the filter `had` bands before the first line, also those that have one of these.
    pub fn involved(mut self, had: bool) -> Result<Involved, Error> {
        self.settle()?;
        let mut sorter = Sorter::new(&env::temp_dir());
        let mut file = self.file.into_inner().map_err(|error| failed(error.into()))?;
        file.rewind().map_err(failed)?;
        let mut reader = BufReader::with_capacity(BUFFER, file);
        let (mut bytes, mut hashes, mut found, mut place) = (Vec::new(), Vec::new(), Vec::new(), 0);
        loop {
            bytes.clear();
            reader.by_ref().take((BATCH * self.per * 8) as u64).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.is_empty() {
                break;
            }
            let bands = || bytes.as_chunks().0.iter().map(|band| u64::from_le_bytes(*band));
            hashes.clear();
            hashes.extend(bands().map(|band| band | SEEN));
            self.suspects.find(&hashes, &mut found);
            for (i, (band, found)) in bands().zip(&found).enumerate() {
                if *found && band & !SEEN != 0 {
                    sorter.push([band & !SEEN, (place + (i / self.per) as u64) << 1 | band & SEEN])?;
                }
            }
            place += (hashes.len() / self.per) as u64;
        }
        drop(self.suspects);
        let file = tempfile::tempfile().map_err(failed)?;
        let mut buckets =
            Buckets { file: BufWriter::with_capacity(BUFFER, file), places: Marks::default(), entries: 0 };
        let mut known = Marks::default();
        let (mut first, mut begun) = ([0; 2], false);
        for record in sorter.sorted()? {
            let [band, at] = record?;
            if band != first[0] {
                (first, begun) = ([band, at], false);
            } else {
                if !mem::replace(&mut begun, true) {
                    buckets.push(first[1] >> 1, true)?;
                }
                buckets.push(at >> 1, false)?;
            }
            if had && first[1] & SEEN > 0 {
                buckets.places.insert(at >> 1);
                known.insert(at >> 1);
            }
        }
        let Buckets { file, mut places, entries } = buckets;
        places.count();
        if places.count > u64::from(u32::MAX) {
            return Err(Error::Pairs { documents: places.count });
        }
        let mut buckets = file.into_inner().map_err(|error| failed(error.into()))?;
        buckets.rewind().map_err(failed)?;
        let bytes = 8 * (place * self.per as u64 + entries);
        Ok(Involved { places, known, buckets, sets: Sets::new().map_err(failed)?, bytes })
    }
}

/// Documents that share a band, band by band.
struct Buckets {
    /// Places, doubled; 1 is added to that with which a bucket begins.
    file: BufWriter<File>,
    places: Marks,
    entries: u64,
}

impl Buckets {
    /// Adds a document to a bucket, which it may begin.
    fn push(&mut self, place: u64, begins: bool) -> Result<(), Error> {
        self.places.insert(place);
        self.entries += 1;
        self.file.write_all(&(place << 1 | u64::from(begins)).to_le_bytes()).map_err(failed)
    }
}

/// Documents that share bands with others, and their sets of grams.
pub struct Involved {
    places: Marks,
    /// Which of them have a band of an earlier run.
    known: Marks,
    /// What [`Buckets`] has written.
    buckets: File,
    sets: Sets<BufWriter<File>>,
    /// The length of the files of bands and buckets.
    bytes: u64,
}

impl Involved {
    /// Adds the set of grams of the next document, in the order of places.
    pub fn push(&mut self, grams: &[u64]) -> Result<(), Error> {
        self.sets.push(grams).map_err(failed)
    }

    /// Bytes of temporary files.
    pub fn disk_bytes(&self) -> u64 {
        self.bytes + 8 * self.sets.grams
    }

    /// Connects all pairs that share a band and whose Jaccard index is at least the threshold.
    pub fn verified(self, threshold: f64) -> Result<Clusters, Error> {
        self.verified_within(threshold, IN_MEMORY)
    }

    fn verified_within(self, threshold: f64, in_memory: usize) -> Result<Clusters, Error> {
        let Self { places, known, buckets, sets, .. } = self;
        let count = places.count as u32;
        if sets.sizes.len() != count as usize {
            return Err(Error::Changed);
        }
        let mut pairs = Pairs {
            reader: Reader::new(sets.written().map_err(failed)?, in_memory),
            threshold,
            firsts: (0..count).collect(),
            copies: vec![false; count as usize],
        };
        let mut buckets_left = BufReader::with_capacity(BUFFER, buckets);
        let (mut bytes, mut bucket) = ([0; 8], Vec::new());
        while !buckets_left.fill_buf().map_err(failed)?.is_empty() {
            buckets_left.read_exact(&mut bytes).map_err(failed)?;
            let at = u64::from_le_bytes(bytes);
            if at & 1 > 0 {
                pairs.connect(&bucket).map_err(failed)?;
                bucket.clear();
            }
            bucket.extend(places.index(at >> 1).map(|document| document as u32));
        }
        pairs.connect(&bucket).map_err(failed)?;
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
        Ok(Clusters { places, known: known_clusters, firsts, reader })
    }
}

/// A reading of the inputs for the sets of grams of involved documents.
pub struct Collecting {
    involved: Involved,
    /// The place of the document that comes next.
    next: Option<u64>,
    /// The places that the documents are at, and those of the lines that came again.
    places: Places,
    again: Places,
}

impl Collecting {
    /// Of documents that are at these places.
    pub fn new(involved: Involved, places: Places) -> Self {
        Self { next: involved.places.next(0), involved, again: places.again(), places }
    }

    /// Takes the next lines of an input. Calls `found` with the numbers of those whose sets are to be added.
    pub fn take(&mut self, input: usize, header: bool, lines: usize, mut found: impl FnMut(usize)) {
        let first = self.again.take(input, header, lines);
        while let Some(place) = self.next.filter(|place| *place < first + lines as u64) {
            found((place - first) as usize);
            self.next = self.involved.places.next(place + 1);
        }
    }

    /// Adds the set of grams of the next document.
    pub fn push(&mut self, grams: &[u64]) -> Result<(), Error> {
        self.involved.push(grams)
    }

    /// The documents with their sets, if the same lines came again.
    pub fn end(self) -> Result<Involved, Error> {
        if self.again.are_those_of(&self.places) { Ok(self.involved) } else { Err(Error::Changed) }
    }
}

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
    places: Marks,
    /// The first documents of clusters of which one has a band of an earlier run.
    known: Marks,
    /// The first of the cluster that each is in.
    firsts: Vec<u32>,
    reader: Reader,
}

impl Clusters {
    /// The number of the first document of the cluster that the one at a place is in, and whether an earlier run had a band of one of
    /// them. `None` if no document shares a band with it.
    pub fn first(&self, place: u64) -> Option<(u32, bool)> {
        let first = self.firsts[self.places.index(place)?];
        Some((first, self.known.contains(first.into())))
    }

    /// The Jaccard index of the documents at two places, which share bands with others.
    pub fn similarity(&mut self, place: u64, other: u64) -> Result<f64, Error> {
        let of = |place| self.places.index(place).map(|document| document as u32).ok_or(Error::Changed);
        self.reader.similarity(of(place)?, of(other)?).map_err(failed)
    }
}

/// Sets of grams in a file, in the order of documents.
struct Sets<F> {
    file: F,
    /// How many grams each has.
    sizes: Vec<u32>,
    /// The grams before every so many sets.
    starts: Vec<u64>,
    grams: u64,
}

/// Sets with one start.
const STRIDE: usize = 16;

impl Sets<BufWriter<File>> {
    fn new() -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER, tempfile::tempfile()?);
        Ok(Self { file, sizes: Vec::new(), starts: Vec::new(), grams: 0 })
    }

    fn push(&mut self, grams: &[u64]) -> io::Result<()> {
        if self.sizes.len().is_multiple_of(STRIDE) {
            self.starts.push(self.grams);
        }
        self.sizes.push(grams.len().try_into().map_err(io::Error::other)?);
        self.grams += grams.len() as u64;
        grams.iter().try_for_each(|gram| self.file.write_all(&gram.to_le_bytes()))
    }

    fn written(self) -> io::Result<Sets<File>> {
        let Self { file, sizes, starts, grams } = self;
        Ok(Sets { file: file.into_inner()?, sizes, starts, grams })
    }
}

impl Sets<File> {
    fn read(&self, document: u32, bytes: &mut Vec<u8>) -> io::Result<Vec<u64>> {
        let document = document as usize;
        let before = &self.sizes[document / STRIDE * STRIDE..document];
        let start = self.starts[document / STRIDE] + before.iter().map(|size| u64::from(*size)).sum::<u64>();
        bytes.resize(8 * self.sizes[document] as usize, 0);
        self.file.read_exact_at(bytes, 8 * start)?;
        Ok(bytes.as_chunks().0.iter().map(|gram| u64::from_le_bytes(*gram)).collect())
    }
}

/// Compares sets, of which it has some in memory.
struct Reader {
    sets: Sets<File>,
    known: HashMap<u32, Vec<u64>>,
    /// The bytes of sets in memory, and the grams that there is room for.
    memory: usize,
    room: usize,
    /// The last document that others were compared with.
    own: Option<(u32, Vec<u64>)>,
    bytes: Vec<u8>,
}

impl Reader {
    fn new(sets: Sets<File>, memory: usize) -> Self {
        Self { sets, known: HashMap::new(), memory, room: 0, own: None, bytes: Vec::new() }
    }

    /// Makes room for other sets.
    fn forget(&mut self) {
        self.known.clear();
        self.room = self.memory / 8;
    }

    /// The Jaccard index of two sets.
    fn similarity(&mut self, document: u32, other: u32) -> io::Result<f64> {
        let Self { sets, known, memory, room, own, bytes } = self;
        let grams = match own {
            Some((last, grams)) if *last == document => grams,
            own => &mut own.insert((document, sets.read(document, bytes)?)).1,
        };
        if let Some(others) = known.get(&other) {
            return Ok(jaccard(grams, others));
        }
        let others = sets.read(other, bytes)?;
        let similarity = jaccard(grams, &others);
        let taken = others.len() + OVERHEAD;
        if taken > *room {
            known.clear();
            *room = *memory / 8;
        }
        if let Some(left) = room.checked_sub(taken) {
            *room = left;
            known.insert(other, others);
        }
        Ok(similarity)
    }
}

fn failed(source: io::Error) -> Error {
    Error::Groups { source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashSet};

    const BANDS: usize = 3;

    /// Equal sets have equal bands, and similar ones often have one in common.
    fn bands(grams: &[u64]) -> Vec<u64> {
        let least = |band| grams.iter().map(|gram| (gram + 1) * (2 * band + 3) % 17).min();
        (0..BANDS as u64).filter_map(|band| Some((100 * band + least(band)? + 1) << 8)).collect()
    }

    /// The first document that each is connected with, over all pairs, and whether one of these was known. `None` for one that shares no band
    /// and was not known.
    fn expected(documents: &[Vec<u64>], known: &HashSet<u64>, threshold: f64) -> Vec<Option<(u64, bool)>> {
        let bands: Vec<HashSet<u64>> = documents.iter().map(|grams| bands(grams).into_iter().collect()).collect();
        let shares = |i: usize, j: usize| bands[i].intersection(&bands[j]).next().is_some();
        let mut firsts: Vec<usize> = (0..documents.len()).collect();
        for i in 0..documents.len() {
            for j in 0..i {
                let both = documents[i].iter().filter(|gram| documents[j].contains(gram)).count();
                let either = documents[i].len() + documents[j].len() - both;
                if shares(i, j) && both as f64 / either as f64 >= threshold && firsts[i] != firsts[j] {
                    let (a, b) = (firsts[i].min(firsts[j]), firsts[i].max(firsts[j]));
                    firsts.iter_mut().filter(|first| **first == b).for_each(|first| *first = a);
                }
            }
        }
        let was_known = |i: usize| bands[i].intersection(known).next().is_some();
        let told = |i: usize| {
            let cluster = (0..documents.len()).filter(|&j| firsts[j] == firsts[i]);
            let involved = was_known(i) || (0..documents.len()).any(|j| j != i && shares(i, j));
            involved.then(|| (firsts[i] as u64, cluster.into_iter().any(was_known)))
        };
        (0..documents.len()).map(told).collect()
    }

    /// What the filter had before is `known`, and it takes what `mistakes` holds for seen.
    fn involved(documents: &[Vec<u64>], known: &HashSet<u64>, mistakes: &HashSet<u64>) -> Involved {
        let (mut all, mut seen) = (Bands::new(BANDS).unwrap(), known.clone());
        for grams in documents {
            let bands = bands(grams);
            let new: Vec<bool> = bands.iter().map(|&band| seen.insert(band) && !mistakes.contains(&band)).collect();
            all.add(&bands, &new).unwrap();
        }
        let mut involved = all.involved(!known.is_empty()).unwrap();
        let places: Vec<u64> = involved.places.iter().collect();
        places.iter().for_each(|place| involved.push(&documents[*place as usize]).unwrap());
        involved
    }

    fn sets() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let set = prop::collection::btree_set(0_u64..12, 0..9);
        let sets = prop::collection::vec(set.prop_map(|set: BTreeSet<u64>| set.into_iter().collect::<Vec<_>>()), 1..12);
        // Most come more than once.
        (sets, prop::collection::vec(any::<prop::sample::Index>(), 0..60)).prop_map(|(sets, order)| {
            order.iter().map(|index: &prop::sample::Index| index.get(&sets).clone()).collect()
        })
    }

    proptest! {
        #[test]
        fn clusters_are_what_all_verified_pairs_connect(
            documents in sets(),
            known in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            mistakes in prop::collection::vec(any::<prop::sample::Index>(), 0..9),
            threshold in prop::sample::select(vec![0.2, 0.5, 0.6, 2.0 / 3.0, 0.8, 1.0]),
            in_memory in 0_usize..200,
        ) {
            let all: Vec<u64> = documents.iter().flat_map(|grams| bands(grams)).collect();
            let some = |chosen: Vec<prop::sample::Index>| -> HashSet<u64> {
                chosen.iter().filter(|_| !all.is_empty()).map(|index| *index.get(&all)).collect()
            };
            let known = some(known);
            // With bands of an earlier run, what the filter takes for one by mistake is one.
            let mistakes = if known.is_empty() { some(mistakes) } else { HashSet::new() };
            let mut clusters = involved(&documents, &known, &mistakes).verified_within(threshold, in_memory).unwrap();
            let places: Vec<u64> = clusters.places.iter().collect();
            let first = |place| clusters.first(place).map(|(first, known)| (places[first as usize], known));
            let found: Vec<_> = (0..documents.len() as u64).map(first).collect();
            prop_assert_eq!(&found, &expected(&documents, &known, threshold));
            for (i, j) in (1..found.len()).map(|i| (i, i - 1)).filter(|&(i, j)| found[i].and(found[j]).is_some()) {
                let similarity = clusters.similarity(i as u64, j as u64).unwrap();
                prop_assert_eq!(similarity, jaccard(&documents[i], &documents[j]));
            }
        }
    }

    #[test]
    fn documents_of_which_no_set_came_are_an_error() {
        let documents = [vec![1, 2], vec![1, 2]];
        let mut involved =
            Involved { sets: Sets::new().unwrap(), ..involved(&documents, &HashSet::new(), &HashSet::new()) };
        involved.push(&documents[0]).unwrap();
        assert!(matches!(involved.verified(0.5), Err(Error::Changed)));
    }
}
