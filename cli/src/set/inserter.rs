//! Inserting the keys of lines into a filter, in order, and counting them.

use crate::error::Error;
use crate::figures::readable;
use crate::lines::Batch;
use crate::lines::position::Place;
use crate::output::say;
use crate::set::Seen;
use crate::set::exact::Exact;
use crate::values::OnError;
use std::ops::ControlFlow;

/// A filter and what went into it.
pub struct Inserter {
    /// The filter.
    pub seen: Seen,
    /// How much more may go into it; what grows has no limit.
    limit: Option<Limit>,
    /// The second look at lines that the filter takes for seen.
    pub exact: Option<Exact>,
    /// Keys that were in the filter at the start, as far as it can tell.
    pub keys_before: f64,
    /// No warnings.
    pub quiet: bool,
    /// Why a server failed in the middle of a batch, of which some lines are claimed.
    pub failure: Option<Error>,
    /// What was counted.
    pub counts: Counts,
}

/// What was counted.
#[derive(Clone, Default)]
pub struct Counts {
    /// Lines so far.
    pub lines: u64,
    /// Lines without a key.
    pub faults: u64,
    /// Keys that were new to the filter.
    pub inserted: u64,
    /// Keys that the filter took for seen, and the second look did not.
    pub rescued: u64,
    /// The length of the lines with their ends.
    pub bytes: u64,
}

impl Counts {
    /// Lines whose keys were new.
    pub fn unique(&self) -> u64 {
        self.inserted + self.rescued
    }

    /// Lines whose keys were not.
    pub fn dropped(&self) -> u64 {
        self.lines - self.faults - self.unique()
    }
}

/// When a filter of a fixed size is full, and what then.
pub struct Limit {
    /// Keys that it is for.
    pub planned: u64,
    /// New keys that fit.
    pub keys: u64,
    /// The false-positive rate once they are in.
    pub fpr: f64,
    /// Whether to stop there. Otherwise a warning says so, once.
    pub stop: bool,
}

impl Inserter {
    /// Goes on with a filter.
    pub fn new(seen: Seen, limit: Option<Limit>) -> Self {
        let keys_before = seen.keys();
        Self { seen, limit, exact: None, keys_before, quiet: false, failure: None, counts: Counts::default() }
    }

    /// Inserts the keys of a batch that is hashed, and marks its lines: whether they are new; those without a key, if they are
    /// kept, by `kept`. Breaks where the filter is full and that is the end.
    pub fn insert(&mut self, batch: &mut Batch, on_error: OnError, kept: bool) -> Result<ControlFlow<()>, Error> {
        let Self { seen, limit, exact, counts, quiet, failure, .. } = self;
        let before = counts.inserted;
        let mut full = ControlFlow::Continue(());
        batch.mark(on_error, kept, |hashes, fingerprints, new| {
            let mut done = 0;
            while done < hashes.len() && full.is_continue() {
                let room =
                    limit.as_ref().filter(|limit| limit.stop).map_or(u64::MAX, |limit| limit.keys - counts.inserted);
                let end = hashes.len().min(done.saturating_add(usize::try_from(room).unwrap_or(usize::MAX)));
                counts.inserted += match seen.insert_hashes(&hashes[done..end], &mut new[done..end]) {
                    Ok(inserted) => inserted as u64,
                    Err(error @ Error::Redis(_)) => {
                        *failure = Some(error);
                        full = ControlFlow::Break(());
                        new.iter().filter(|new| **new).count() as u64
                    }
                    Err(error) => return Err(error),
                };
                if done == end {
                    full = ControlFlow::Break(());
                }
                done = end;
            }
            if let Some(exact) = exact {
                counts.rescued += exact
                    .correct(&fingerprints[..done], &mut new[..done])
                    .map_err(|source| Error::Exact { source })? as u64;
            }
            Ok::<_, Error>(done)
        })?;
        counts.lines += batch.passed() as u64;
        if failure.is_some() {
            // Nobody knows about the others.
            counts.lines -= batch.unmark(false) as u64;
        }
        counts.bytes += batch.bytes(batch.passed()) as u64;
        counts.faults += batch.faults() as u64;
        if let Some(limit) = limit.as_ref().filter(|limit| !limit.stop && !*quiet)
            && (before..counts.inserted).contains(&limit.keys)
        {
            say(&format!(
                "bloomline: warning: passed the {} distinct lines planned for: the false-positive rate is {} and rises with \
                 every new one; plan for more with -n or --memory",
                limit.planned,
                readable(seen.current_fpr()),
            ));
        }
        Ok(full)
    }

    /// The error that says that no more fits, at this place.
    pub fn full(&self, place: &Place) -> Error {
        let (keys, fpr) = self.limit.as_ref().map_or((0, 1.0), |limit| (limit.keys, limit.fpr));
        Error::Full { line: place.line(), keys, fpr }
    }

    /// Tells the user of lines without a key, if there were any.
    pub fn end(&self) {
        if !self.quiet {
            tell_faults(self.counts.faults);
        }
    }

    /// Tells the user what there is to know about a filter on a server; `alive` if it can be asked.
    pub fn tell_shared(&mut self, alive: bool) {
        if let (Seen::Shared(filter), false) = (&mut self.seen, self.quiet) {
            filter.warnings(alive).iter().for_each(|warning| say(&format!("bloomline: warning: {warning}")));
        }
    }

    /// New keys that still fit, where the filter is limited.
    pub fn room(&self) -> Option<u64> {
        self.limit.as_ref().map(|limit| limit.keys.saturating_sub(self.counts.inserted))
    }

    /// Goes on where so many new keys still fitted.
    pub fn resume(&mut self, room: Option<u64>) {
        if let (Some(limit), Some(room)) = (&mut self.limit, room) {
            limit.keys = room;
        }
    }

    /// What may go into the filter, if it is limited.
    pub fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }
}

/// Tells the user of lines without a key, if there were any.
pub fn tell_faults(faults: u64) {
    if faults > 0 {
        say(&format!("bloomline: warning: lines without a key: {faults}"));
    }
}
