//! The window as a file.

use super::{Generation, Generations};
use crate::builder::spec::{FilterSpec, SavedAge};
use crate::file::{self, ChainSpec, FileErrorKind, Persist, RawParts, Rotating};
use crate::filter::raw::RawFilter;
use crate::kernel::block::WORDS;
use crate::rate::window;
use crate::sync::{AtomicBool, Ordering, fence};
use std::io::{self, Read, Write};
use std::iter;
use std::sync::PoisonError;
use std::time::{SystemTime, UNIX_EPOCH};

impl Generations {
    fn chain_spec(&self, last_len: u64) -> ChainSpec {
        let Self { window, rate, rotate_when_full, .. } = *self;
        ChainSpec { rate, keys: window, last_len, merged: 0, rotate_when_full }
    }

    /// Returns the parts of the file, oldest first. The last one is `last`.
    fn raw_parts<'a>(&'a self, last: &'a Generation) -> Vec<RawParts<'a, impl Iterator<Item = [u64; WORDS]> + Clone>> {
        let older = self.newest_first(self.epoch.current()).skip(1);
        let mut parts: Vec<_> = iter::once(last).chain(older).map(RawFilter::raw_parts).collect();
        if self.rotates_by_time.load(Ordering::Relaxed) {
            let nanos = self.now().saturating_sub(self.started.load(Ordering::Relaxed));
            let age = Some(SavedAge { nanos, saved: nanos_since_1970() });
            parts[0].fields = file::encode_fields(&FilterSpec { age, ..last.spec.clone() });
        }
        parts.reverse();
        parts
    }
}

impl Persist for Generations {
    fn write_to(&self, writer: impl Write) -> io::Result<()> {
        // Nothing is forgotten meanwhile: a thread that needs the next rotation waits.
        let _rotating = self.rotating.lock().unwrap_or_else(PoisonError::into_inner);
        let epoch = self.epoch.current();
        // The count is read after the copy, so it includes each key with bits in the copy.
        let last = self.generation(epoch).clone();
        fence(Ordering::Acquire);
        let last_len = window::keys_per_generation(self.window, self.generation_count())
            .saturating_sub(self.permits.available(epoch));
        file::write_chain::<Rotating, _>(self.chain_spec(last_len), self.raw_parts(&last).into_iter(), writer)
    }

    fn file_bytes(&self) -> usize {
        // Little more than the blocks, which are in memory.
        file::chain_bytes(self.raw_parts(self.generation(self.epoch.current())).into_iter()) as usize
    }

    fn read(reader: impl Read, length: Option<u64>) -> Result<Self, FileErrorKind> {
        let (ChainSpec { rate, keys, last_len, rotate_when_full, .. }, parts) =
            file::read_chain::<Rotating>(reader, length)?;
        let mut ring: Vec<Generation> = parts.into_iter().map(RawFilter::from).collect();
        let age = ring.iter_mut().filter_map(|generation| generation.spec.age.take()).last();
        let out_of_memory = |_| FileErrorKind::OutOfMemory { bytes: ring[0].memory_bytes() as u64 };
        let empty = RawFilter::from_params(ring[0].params, ring[0].spec.clone()).map_err(out_of_memory)?;
        ring.push(empty);
        let loaded = Self::new(keys, rate, rotate_when_full, ring, last_len);
        let Some(SavedAge { nanos, saved }) = age else { return Ok(loaded) };
        // The time in the file counts, too, unless the clock was set back meanwhile.
        let in_file = nanos_since_1970().saturating_sub(saved);
        let rotates_by_time = AtomicBool::new(true);
        Ok(Self { loaded_age: nanos.saturating_add(in_file), rotates_by_time, ..loaded })
    }
}

fn nanos_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
