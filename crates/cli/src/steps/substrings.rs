//! Steps that find runs of words that occurred before: the first reading collects candidates, and later readings decide.

use crate::run::lines::Lines;
use crate::run::step::{RunConfig, Step};
use crate::seen::set::KeySet;
use crate::seen::{Claimed, SharedSeenKeys};
use crate::steps::documents::column::{DocumentColumn, DocumentReader};
use crate::steps::documents::step::{DocumentSet, edit_rows, kept_documents};
use crate::steps::groups::ordinals::changed;
use crate::system::error::Error;
use crate::system::files::FileVersion;
use crate::system::unpoisoned::{locked, reading, writing};
use bloomline_text::Set;
use bloomline_text::substrings::{self, Repeats, Rules};
use std::any::Any;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};

/// The windows that may be repeats, perhaps by mistake.
#[derive(Clone)]
pub struct Candidates(pub Arc<RwLock<KeySet>>);

impl Set for Candidates {
    type Error = Error;

    fn contains_hashes(&mut self, hashes: &[u64], found: &mut [bool]) -> Result<usize, Error> {
        reading(&self.0).contains_hashes(hashes, found)
    }

    fn insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, Error> {
        writing(&self.0).insert_hashes(hashes, new)
    }
}

/// Inserts all windows into the set, and those that it had into the candidates.
pub struct CollectCandidates {
    pub reader: DocumentReader,
    pub seen: SharedSeenKeys,
    pub candidates: Candidates,
    /// The number of windows.
    pub windows: Mutex<u64>,
}

impl Step for CollectCandidates {
    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(DocumentColumn::default())
    }

    fn hash(&self, config: &RunConfig, lines: &mut Lines) {
        self.reader.read(config.on_error, lines);
    }

    fn claim(&self, config: &RunConfig, _input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        lines.mark(config.on_error, true, |_, _, kept| {
            kept.fill(true);
            Ok(kept.len())
        })?;
        let windows = &lines.column::<DocumentColumn>().documents.windows;
        let mut seen = DocumentSet { seen: &self.seen, inserted: 0 };
        substrings::add(windows, &mut seen, &mut self.candidates.clone())?;
        *locked(&self.windows) += windows.fingerprints().len() as u64;
        Ok(Claimed { inserted: seen.inserted, unique: kept_documents(config, lines), ..Claimed::default() })
    }
}

/// Looks windows up among the candidates that were read before. The last reading cuts the words of repeats.
pub struct FindRepeats {
    pub reader: DocumentReader,
    pub rules: Rules,
    /// The candidates; `None` if all windows are decided.
    pub candidates: Option<Candidates>,
    pub progress: Mutex<PartProgress>,
    /// True if the words of repeats are cut.
    pub is_last: bool,
    /// The number of windows in the first reading.
    pub windows: u64,
    /// The versions of the inputs, unless they are replaced.
    pub versions: Vec<(PathBuf, FileVersion)>,
}

impl FindRepeats {
    /// Creates a reading that decides or, without `candidates`, has all decisions, and cuts nothing.
    pub fn new(
        reader: DocumentReader,
        rules: &Rules,
        candidates: Option<Candidates>,
        progress: PartProgress,
        windows: u64,
    ) -> Self {
        let (rules, progress) = (rules.clone(), Mutex::new(progress));
        Self { reader, rules, candidates, progress, is_last: false, windows, versions: Vec::new() }
    }
}

/// The progress of a reading, and the results of those before it.
pub struct PartProgress {
    /// The candidates of this part; `None` if all windows are decided.
    repeats: Option<Repeats>,
    /// The number of the window after the last one, and the input that it is in.
    windows: u64,
    input: Option<usize>,
    /// The number of windows before each input. A reading that decides records them.
    pub starts: Vec<u64>,
    /// A bit for each window of the inputs, set if it is a repeat; empty if there is one part.
    pub found: Vec<u64>,
}

impl PartProgress {
    /// Starts a reading that decides about a part.
    pub fn for_part(repeats: Repeats, starts: Vec<u64>, found: Vec<u64>) -> Self {
        Self { repeats: Some(repeats), windows: 0, input: None, starts, found }
    }

    /// Starts a reading of windows that are decided.
    pub fn for_decided(starts: Vec<u64>, found: Vec<u64>) -> Self {
        Self { repeats: None, windows: 0, input: None, starts, found }
    }

    /// Moves to the next documents, which are of this input.
    fn enter(&mut self, input: usize) {
        if self.input != Some(input) {
            self.input = Some(input);
            match &self.repeats {
                Some(_) => self.starts[input] = self.windows,
                None => self.windows = self.starts[input],
            }
        }
    }

    /// Decides about the next documents. `found` has their candidates.
    fn decide(&mut self, rules: &Rules, windows: &substrings::Windows, found: &mut [bool]) {
        if let Some(repeats) = &mut self.repeats {
            for i in 0..windows.len() {
                let own = windows.windows_of(i);
                repeats.decide(rules.length, &windows.fingerprints()[own.clone()], &mut found[own]);
            }
        }
        if !self.found.is_empty() {
            for (found, window) in found.iter_mut().zip(self.windows..) {
                let (word, bit) = (&mut self.found[(window / 64) as usize], 1 << (window % 64));
                *found |= *word & bit != 0;
                *word |= if *found { bit } else { 0 };
            }
        }
        self.windows += found.len() as u64;
    }
}

impl Step for FindRepeats {
    fn column(&self) -> Box<dyn Any + Send> {
        Box::new(DocumentColumn::default())
    }

    fn hash(&self, config: &RunConfig, lines: &mut Lines) {
        self.reader.read(config.on_error, lines);
        let (.., column) = lines.parts::<DocumentColumn>();
        let documents = &mut column.documents;
        match self.candidates.clone() {
            Some(mut candidates) => {
                substrings::look_up(&documents.windows, &mut candidates, &mut documents.repeats)
                    .expect("only a filter on a server fails");
            }
            None => {
                documents.repeats.clear();
                documents.repeats.resize(documents.windows.fingerprints().len(), false);
            }
        }
    }

    fn claim(&self, config: &RunConfig, input: usize, lines: &mut Lines) -> Result<Claimed, Error> {
        let (batch, keys, marks, edits, column) = lines.parts::<DocumentColumn>();
        let documents = &mut column.documents;
        let mut claimed = Claimed::default();
        let mut progress = locked(&self.progress);
        progress.enter(input);
        if progress.windows + documents.repeats.len() as u64 > self.windows {
            return Err(changed());
        }
        progress.decide(&self.rules, &documents.windows, &mut documents.repeats);
        drop(progress);
        marks.mark(batch.count(), keys, config.on_error, true, |_, _, kept| {
            if self.is_last {
                let rule = &self.reader.rule;
                claimed.units = documents.cut_repeats(rule, &self.rules, batch.bytes(), kept, &mut edits.ranges);
            } else {
                kept.fill(true);
            }
            Ok(kept.len())
        })?;
        claimed.unique = kept_documents(config, lines);
        Ok(claimed)
    }

    fn prepare(&self, lines: &mut Lines) {
        if self.is_last {
            edit_rows(lines);
        }
    }

    /// Compares the number of windows and the times of the last changes. A file that is replaced is compared by itself.
    fn finish(&self) -> Result<(), Error> {
        let is_same = |(path, version): &(PathBuf, FileVersion)| FileVersion::from_path(path).as_ref() == Some(version);
        let progress = locked(&self.progress);
        let is_done = progress.repeats.is_none() || progress.windows == self.windows;
        if is_done && self.versions.iter().all(is_same) { Ok(()) } else { Err(changed()) }
    }
}
