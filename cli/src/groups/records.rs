//! What the first reading keeps of each line: a record in a temporary file, in the order of places.
//!
//! Which records belong together is found by sorting them, and most need not be: what the filter took for seen goes into a
//! second filter, of suspects, and only records that this one has are sorted. A mistake of either filter costs time alone.

use crate::error::Error;
use crate::groups::choice::{Choice, NONE};
use crate::groups::decisions::{Aside, Decision, Member, Verdict};
use crate::groups::ids::Ids;
use crate::groups::near::{Bands, Clusters};
use crate::groups::places::Places;
use crate::groups::suspects::Suspects;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// Records that are looked up at once.
const BATCH: usize = 4096;

/// The bytes that are written or read at once.
const BUFFER: usize = 1 << 17;

/// The bytes of a fingerprint and of a score in a record.
const FINGERPRINT: usize = 16;
const SCORE: usize = 8;

/// Fingerprints below are no lines with a key, but tell why not.
const LEAST: u128 = 16;

/// The bit of a fingerprint that tells whether the filter took it for seen.
const SEEN: u128 = 1;

/// The records of all lines.
pub struct Records {
    file: BufWriter<File>,
    suspects: Suspects,
    /// The bands of documents, where those that are alike are a group.
    pub bands: Option<Bands>,
    pub places: Places,
    choice: Choice,
    ids: Option<Ids>,
    /// Whether the filter had keys before the first line.
    pub had: bool,
    /// Lines with keys.
    pub keys: u64,
}

impl Records {
    /// Of no lines so far. `had` tells whether the filter has keys of earlier runs. With `bands`, documents have so many.
    pub fn new(places: Places, choice: Choice, ids: bool, had: bool, bands: Option<usize>) -> Result<Self, Error> {
        let failed = |source| Error::Groups { source };
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER, tempfile::tempfile().map_err(failed)?),
            suspects: Suspects::new()?,
            bands: bands.map(Bands::new).transpose()?,
            places,
            choice,
            ids: ids.then(Ids::new).transpose().map_err(failed)?,
            had,
            keys: 0,
        })
    }

    /// Adds the line at the next place, which has a key; the filter says whether that is `new`.
    pub fn add(&mut self, fingerprint: u128, new: bool, score: Option<u64>, id: &str) -> io::Result<()> {
        self.keys += 1;
        if !new {
            self.suspects.push(hash(fingerprint));
        }
        let fingerprint = fingerprint.max(LEAST) & !SEEN | if new { 0 } else { SEEN };
        self.push(fingerprint, score, id)
    }

    /// Adds the line at the next place, which has no key.
    pub fn add_aside(&mut self, aside: Aside) -> io::Result<()> {
        self.bands.as_mut().map_or(Ok(()), |all| all.add(&[], &[]))?;
        self.push(aside as u128, None, "null")
    }

    fn push(&mut self, fingerprint: u128, score: Option<u64>, id: &str) -> io::Result<()> {
        self.file.write_all(&fingerprint.to_le_bytes())?;
        if self.choice.pointer().is_some() {
            self.file.write_all(&score.unwrap_or(NONE).to_le_bytes())?;
        }
        self.ids.as_mut().map_or(Ok(()), |ids| ids.push(id))
    }

    /// Takes note of the suspects among the lines that were added.
    pub fn settle(&mut self) -> io::Result<()> {
        self.bands.as_mut().map_or(Ok(()), Bands::settle).map_err(io::Error::other)?;
        self.suspects.settle().map_err(io::Error::other)
    }

    /// Calls `member` with each line that may have others of its kind, and `aside` with those that have no key: in the order of places.
    /// Returns how many bytes were on disk. Documents that are alike are of the clusters' groups.
    pub fn each(
        &mut self,
        clusters: Option<&Clusters>,
        mut member: impl FnMut(Member) -> Result<(), Error>,
        mut aside: impl FnMut(Decision) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let failed = |source| Error::Groups { source };
        let Self { file, suspects, choice, had, .. } = self;
        let size = FINGERPRINT + if choice.pointer().is_some() { SCORE } else { 0 };
        let length = file.stream_position().map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut reader = BufReader::with_capacity(BUFFER, file.get_ref());
        let (mut bytes, mut hashes, mut found, mut place) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while place * size as u64 != length {
            bytes.clear();
            reader.by_ref().take((BATCH * size) as u64).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.is_empty() {
                return Err(failed(io::ErrorKind::UnexpectedEof.into()));
            }
            let record = |bytes: &[u8]| {
                let (fingerprint, score) = bytes.split_at(FINGERPRINT);
                let fingerprint = u128::from_le_bytes(fingerprint.try_into().expect("it has so many bytes"));
                (fingerprint, score.try_into().map_or(NONE, u64::from_le_bytes))
            };
            let records = || bytes.chunks_exact(size).map(record);
            hashes.clear();
            hashes.extend(records().map(|(fingerprint, _)| hash(fingerprint)));
            suspects.find(&hashes, &mut found);
            for ((fingerprint, score), found) in records().zip(&found) {
                if let Some(kind) = Aside::of(fingerprint) {
                    aside(Decision { place, verdict: Verdict::Aside(kind) })?;
                } else if let Some(clusters) = clusters {
                    if let Some((first, known)) = clusters.first(place) {
                        member(Member { group: first.into(), place, score: choice.at(place, score), known })?;
                    }
                } else if *found {
                    let known = *had && fingerprint & SEEN > 0;
                    member(Member { group: fingerprint & !SEEN, place, score: choice.at(place, score), known })?;
                }
                place += 1;
            }
        }
        Ok(length)
    }

    /// What lines are called, if that was read.
    pub fn ids(&mut self) -> Option<&mut Ids> {
        self.ids.as_mut()
    }
}

/// The hash that the filter knows a fingerprint by.
fn hash(fingerprint: u128) -> u64 {
    (fingerprint >> u64::BITS) as u64
}
