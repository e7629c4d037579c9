//! Inserting keys of lines and units of documents into a set, in order, and counting them.

use crate::documents::exact::ExactUnits;
use crate::documents::{DocumentRule, UnitCounts};
use crate::error::{Error, INCOMPLETE, SUCCESS, Stop};
use crate::figures::readable;
use crate::lines::Lines;
use crate::lines::position::Position;
use crate::messages::warn;
use crate::set::KeySet;
use crate::set::counted::Counted;
use crate::set::estimated::Estimated;
use crate::set::exact::Exact;
use crate::values::OnError;
use bloomline::Plan;
use serde::{Deserialize, Serialize};

/// A set of keys and what went into it.
pub struct Inserter<S = KeySet> {
    /// The set.
    pub set: S,
    /// How much more may go into it; a scalable set has no limit.
    pub limit: Option<Limit>,
    /// The second look at lines that the filter takes for seen.
    pub exact: Option<Exact>,
    /// Keys that were in the set at the start, as far as it can tell.
    pub keys_before: f64,
    /// Those that it was offered since then, too.
    pub offered: Offered,
    /// The size of the set while keys go in, unless it grows.
    pub plan: Option<Plan>,
    /// No warnings.
    quiet: bool,
    /// Whether the user was told that the filter is full.
    told: bool,
    /// What was counted.
    pub counts: Counts,
    /// The first line without a key, and why.
    first_fault: Option<String>,
    /// What its keys are called.
    pub keys: &'static str,
    /// What a line has to have.
    pub wanted: &'static str,
    /// What tells how many units are taken for duplicates by mistake.
    pub exact_units: Option<ExactUnits>,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Lines so far.
    pub lines: u64,
    /// Lines without a key.
    pub faults: u64,
    /// Keys that were new to the filter.
    pub inserted: u64,
    /// Lines that stay: their keys were new, or something of their documents was.
    pub unique: u64,
    /// The length of the lines with their ends.
    pub bytes: u64,
    /// Inputs that are left out, or the rest of which is.
    pub left_out: u64,
    /// Of the units of documents.
    #[serde(default)]
    pub units: UnitCounts,
}

impl Counts {
    /// Of lines with documents that are decided.
    pub fn of_documents(lines: &Lines, on_error: OnError, inserted: u64, units: UnitCounts) -> Self {
        let faults = lines.faults() as u64;
        let unique = lines.marked(true) as u64 - if on_error == OnError::Keep { faults } else { 0 };
        let (bytes, lines) = (lines.bytes(lines.passed()) as u64, lines.passed() as u64);
        Self { lines, faults, inserted, unique, bytes, left_out: 0, units }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let Self { lines, faults, inserted, unique, bytes, left_out, units } = other;
        self.lines += lines;
        self.faults += faults;
        self.inserted += inserted;
        self.unique += unique;
        self.bytes += bytes;
        self.left_out += left_out;
        self.units += units;
    }

    /// What was counted since others were.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            lines: self.lines - before.lines,
            faults: self.faults - before.faults,
            inserted: self.inserted - before.inserted,
            unique: self.unique - before.unique,
            bytes: self.bytes - before.bytes,
            left_out: self.left_out - before.left_out,
            units: self.units.since(&before.units),
        }
    }

    /// Those that do not.
    pub fn dropped(&self) -> u64 {
        self.lines - self.faults - self.unique
    }

    /// Keys that the filter took for seen, and the second look did not.
    pub fn rescued(&self) -> u64 {
        self.unique - self.inserted
    }
}

/// When a filter of a fixed size is full, and what then.
#[derive(Debug, PartialEq)]
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

impl Limit {
    /// For a filter without keys.
    pub fn new(keys: u64, fpr: f64, stop: bool) -> Self {
        Self { planned: keys, keys, fpr, stop }
    }

    /// How full the filter is, for people.
    pub fn full(&self, counts: &Counts) -> String {
        format!("{:.0} % full", 100.0 * counts.inserted as f64 / self.keys.max(1) as f64)
    }

    /// For a filter that has keys, and is full with so many in all.
    pub fn of_loaded(set: &KeySet, planned: u64, fpr: f64, stop: bool) -> Self {
        let keys = (planned as f64 - set.keys()).max(0.0) as u64;
        Self { planned, keys, fpr, stop }
    }
}

impl Inserter {
    /// Goes on with a set.
    pub fn new(set: KeySet, limit: Option<Limit>, quiet: bool) -> Self {
        let (keys_before, plan) = (set.keys(), set.plan());
        Self {
            set,
            limit,
            exact: None,
            keys_before,
            offered: Offered(keys_before),
            plan,
            quiet,
            told: quiet,
            counts: Counts::default(),
            first_fault: None,
            keys: "lines",
            wanted: "key",
            exact_units: None,
        }
    }

    /// Tells the user of a filter that is too full before the first line.
    pub fn begin(&mut self) {
        let excess = self.limit.as_ref().and_then(|limit| self.set.excess(limit.planned));
        if let Some(excess) = excess.filter(|_| !self.told) {
            warn(&format!("{excess} and rises with every new key; start a larger one with -n"));
            self.told = true;
        }
    }

    /// With one filter of a fixed size, which the file of a filter has; `None` if that was estimated too small.
    pub fn into_sized(self) -> Option<Self> {
        match self.set {
            KeySet::Estimated(Estimated { first, more: None, .. }) => {
                let set = KeySet::Sized(first);
                Some(Self { plan: set.plan(), set, ..self })
            }
            KeySet::Estimated(_) => None,
            _ => Some(self),
        }
    }

    /// Inserts the keys of lines that are hashed and start at this position, and marks the lines: whether they are new; those
    /// without a key, if they are kept, with `kept`. Stops at a line without a key if that is a failure, at a new line that the
    /// filter has no room for, and after the lines that a server took before it failed. The lines before are marked then.
    pub fn insert(
        &mut self,
        lines: &mut Lines,
        position: &Position,
        on_error: OnError,
        kept: bool,
    ) -> Result<(), Stop> {
        let Self { set, limit, exact, counts: all, .. } = self;
        let (mut full, mut failure, mut counts) = (false, None, Counts::default());
        lines.mark(on_error, kept, |hashes, fingerprints, new| {
            let mut done = 0;
            while done < hashes.len() && failure.is_none() {
                let stop = limit.as_ref().filter(|limit| limit.stop);
                let room = stop.map_or(u64::MAX, |limit| limit.keys - all.inserted - counts.inserted);
                if room == 0 {
                    // Repeats need no room.
                    set.contains_hashes(&hashes[done..], &mut new[done..])?;
                    let absent = new[done..].iter().position(|found| !found);
                    let end = absent.map_or(hashes.len(), |absent| done + absent);
                    new[done..end].fill(false);
                    done = end;
                    full = absent.is_some();
                    break;
                }
                let end = hashes.len().min(done.saturating_add(usize::try_from(room).unwrap_or(usize::MAX)));
                counts.inserted += match set.insert_hashes(&hashes[done..end], &mut new[done..end]) {
                    Ok(inserted) => inserted as u64,
                    Err(error @ Error::Shared { .. }) => {
                        failure = Some(error);
                        new.iter().filter(|new| **new).count() as u64
                    }
                    Err(error) => return Err(error),
                };
                done = end;
            }
            if let Some(exact) = exact {
                counts.unique += exact
                    .correct(&fingerprints[..done], &mut new[..done])
                    .map_err(|source| Error::Exact { source })? as u64;
            }
            counts.unique += counts.inserted;
            Ok(done)
        })?;
        counts.lines = lines.passed() as u64;
        if failure.is_some() {
            // Nobody knows about the others.
            counts.lines -= lines.unmark(false) as u64;
        }
        counts.bytes = lines.bytes(lines.passed()) as u64;
        counts.faults = lines.faults() as u64;
        self.count(&counts, position.first_fault(lines), KeySet::current_fpr);
        match (failure, &self.limit) {
            (Some(error), _) => Err(Stop::After(error)),
            (None, Some(limit)) if full => {
                let line = position.of_line(lines, lines.passed()).line();
                Err(Stop::After(Error::Full { line, keys: limit.planned, fpr: limit.fpr }))
            }
            _ => position.check(lines, self.wanted),
        }
    }

    /// Decides what stays of documents that are hashed and start at this position, inserts that, and marks the lines as
    /// [`insert`](Self::insert) does.
    pub fn decide(
        &mut self,
        lines: &mut Lines,
        position: &Position,
        on_error: OnError,
        rule: &DocumentRule,
    ) -> Result<(), Stop> {
        let offered = &mut self.offered;
        let fpr = |set: &Counted<&mut KeySet>| offered.add(set.inserted, |keys| set.set.expected_fpr(keys));
        let mut set = Counted::new(&mut self.set);
        let units = lines.decide(rule, on_error, &mut set, self.exact_units.as_mut(), fpr)?;
        let inserted = set.inserted;
        let counts = Counts::of_documents(lines, on_error, inserted, units);
        self.count(&counts, position.first_fault(lines), KeySet::current_fpr);
        position.check(lines, self.wanted)
    }

    /// Warns of a server that may evict the set.
    pub fn warn_of_eviction(&self) {
        if let (KeySet::Shared(filter), false) = (&self.set, self.quiet) {
            filter.danger().iter().for_each(|danger| warn(danger));
        }
    }

    /// Tells the user what there is to know about a set on a server; `alive` if it can be asked.
    pub fn tell_shared(&mut self, alive: bool) {
        if let (KeySet::Shared(filter), false) = (&mut self.set, self.quiet) {
            filter.warnings(alive).iter().for_each(|warning| warn(warning));
        }
    }
}

impl<S> Inserter<S> {
    /// With another set in the place of this one.
    pub fn with_set<T>(self, set: T) -> (S, Inserter<T>) {
        let before = self.set;
        let Self { limit, exact, keys_before, offered, plan, quiet, told, counts, first_fault, keys, wanted, .. } =
            self;
        let exact_units = self.exact_units;
        let with = Inserter {
            set,
            limit,
            exact,
            keys_before,
            offered,
            plan,
            quiet,
            told,
            counts,
            first_fault,
            keys,
            wanted,
            exact_units,
        };
        (before, with)
    }

    /// Adds what was counted of some lines. Tells the user if the filter is full with them; `fpr` is its rate.
    pub fn count(&mut self, counts: &Counts, first_fault: Option<String>, fpr: impl FnOnce(&S) -> f64) {
        let before = self.counts.inserted;
        self.counts.add(counts);
        if self.first_fault.is_none() {
            self.first_fault = first_fault;
        }
        if let Some(limit) = self.limit.as_ref().filter(|limit| !limit.stop && !self.told)
            && (before..self.counts.inserted).contains(&limit.keys)
        {
            warn(&format!(
                "the filter has more than the {} distinct {} it was planned for: its false-positive rate is {} and rises \
                 with every new key; plan for more with -n or --memory",
                limit.planned,
                self.keys,
                readable(fpr(&self.set)),
            ));
            self.told = true;
        }
    }

    /// Tells the user of lines without a key, if there were any.
    pub fn end(&self) {
        if !self.quiet {
            warn_of_faults(self.wanted, self.counts.faults, self.first_fault.as_deref());
        }
    }

    /// Tells the user if more than a hundredth of the `units` that went are expected to have gone by mistake.
    pub fn tell_wrong(&self, units: &str) {
        let UnitCounts { duplicates, wrong, .. } = self.counts.units;
        if !self.quiet && wrong >= 1.0 && wrong > 0.01 * duplicates as f64 {
            warn(&format!(
                "of the {duplicates} {units} that went, {wrong:.0} are expected to have gone by mistake: the filter is too full; plan \
                 for more with -n, or give a lower rate with -p"
            ));
        }
    }

    /// Counts an input that is left out, or the rest of which is, and tells the user why.
    pub fn leave_out(&mut self, why: &str) {
        self.counts.left_out += 1;
        if !self.quiet {
            warn(why);
        }
    }

    /// What the command ends with once the inputs end.
    pub fn exit_code(&self) -> u8 {
        if self.counts.left_out > 0 { INCOMPLETE } else { SUCCESS }
    }

    /// New keys that still fit, where the filter is limited.
    pub fn room(&self) -> Option<u64> {
        self.limit.as_ref().map(|limit| limit.keys.saturating_sub(self.counts.inserted))
    }

    /// Goes on with the room that an interrupted run had.
    pub fn resume(&mut self, room: Option<u64>) {
        if let (Some(limit), Some(room)) = (&mut self.limit, room) {
            limit.keys = room;
        }
    }
}

/// How many distinct keys a set was offered. One that it took for seen had all its bits set, so these are what fills it.
pub struct Offered(f64);

impl Offered {
    /// Adds keys of which so many were taken for new. Returns the mean of the `rate` at these numbers of keys, by Simpson's rule.
    pub fn add(&mut self, inserted: u64, rate: impl Fn(f64) -> f64) -> f64 {
        let Self(keys) = *self;
        let mut mean = rate(keys);
        // The more were offered, the higher the rate was, and so the more were taken for seen.
        for _ in 0..3 {
            let to = keys + inserted as f64 / (1.0 - mean).max(f64::EPSILON);
            mean = (rate(keys) + 4.0 * rate(f64::midpoint(keys, to)) + rate(to)) / 6.0;
        }
        self.0 += inserted as f64 / (1.0 - mean).max(f64::EPSILON);
        mean
    }
}

/// Tells the user of lines without what is wanted of them, a key or a text, if there were any, and of the first one.
pub fn warn_of_faults(wanted: &str, faults: u64, first: Option<&str>) {
    if let Some(first) = first {
        warn(&format!("lines without a {wanted}: {faults}; the first is {first}"));
    }
}
