//! The tally of a run: what was counted, when the filter is full, and what the user was told.

use crate::documents::UnitCounts;
use crate::error::{INCOMPLETE, SUCCESS};
use crate::figures::readable;
use crate::messages::{tell, warn};
use crate::seen::counts::Counts;
use crate::seen::set::KeySet;
use bloomline::Plan;

/// What was counted, and what the user was told of it.
pub struct Tally {
    /// When the filter is full; a set that grows never is.
    pub limit: Option<Limit>,
    /// Keys that were in the set at the start, as far as it can tell.
    pub keys_before: f64,
    /// The size of the set while keys go in, unless it grows.
    pub plan: Option<Plan>,
    /// What was counted.
    pub counts: Counts,
    /// What was counted when the inputs were read for the first time, if this is the second.
    pub first: Option<First>,
    /// The first line without a key, and why.
    first_fault: Option<String>,
    /// No warnings but those of lines that a full filter loses.
    quiet: bool,
    /// How the user is told of inputs that are left out.
    tell: fn(&str),
    /// Whether the user was told that the filter is full.
    told: bool,
    /// What its keys are called.
    keys: &'static str,
    /// What lines with a key are called that count.
    pub found: &'static str,
    /// What a line has to have.
    pub wanted: &'static str,
}

impl Tally {
    /// Of keys that go into a set. `keys` is what they are called, and `wanted` what a line has to have.
    pub fn new(set: &KeySet, limit: Option<Limit>, keys: &'static str, wanted: &'static str, quiet: bool) -> Self {
        let (keys_before, plan) = (set.keys(), set.plan());
        Self {
            limit,
            keys_before,
            plan,
            counts: Counts::default(),
            first: None,
            first_fault: None,
            quiet,
            tell: if quiet { |_| () } else { warn },
            told: false,
            keys,
            found: "unique",
            wanted,
        }
    }

    /// Of a search. The user is told even if quiet of inputs that are left out, for they are errors here.
    pub fn of_search(set: &KeySet, quiet: bool) -> Self {
        Self { found: "selected", tell, ..Self::new(set, None, "lines", "key", quiet) }
    }

    /// Of a search that inserts what it does not find in this set, into which this tally counted keys.
    pub fn of_search_after(&self, set: &KeySet) -> Self {
        let limit = self.limit.as_ref().zip(self.room()).map(|(limit, keys)| Limit { keys, ..*limit });
        Self { limit, told: self.told, ..Self::of_search(set, self.quiet) }
    }

    /// Of the same inputs once more, after a second look that took so many bytes of disk. What the user was told is not told again.
    pub fn again(&self, disk_bytes: u64) -> Self {
        let Self { keys_before, plan, keys, wanted, .. } = *self;
        let counts = Counts { left_out: self.counts.left_out, ..Counts::default() };
        let first = Some(First { counts: self.counts.clone(), disk_bytes });
        let (limit, first_fault, told) = (None, None, true);
        let (quiet, tell, found) = (true, (|_| ()) as fn(&str), "printed");
        Self { limit, keys_before, plan, counts, first, first_fault, quiet, tell, told, keys, found, wanted }
    }

    /// Tells the user of a filter that is too full before the first line.
    pub fn begin(&mut self, set: &KeySet) {
        let excess = self.limit.as_ref().and_then(|limit| set.excess(limit.planned));
        if let Some(excess) = excess.filter(|_| !self.told) {
            warn(&format!("{excess} and rises with every new key; start a larger one with -n"));
            self.told = true;
        }
    }

    /// Adds what was counted of some lines. Tells the user if the filter is full with them; `fpr` is its rate.
    pub fn count(&mut self, counts: &Counts, first_fault: Option<String>, fpr: impl FnOnce() -> f64) {
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
                readable(fpr()),
            ));
            self.told = true;
        }
    }

    /// Tells the user of lines without what is wanted of them, if there were any.
    pub fn end(&self) {
        if let (false, Some(first)) = (self.quiet, &self.first_fault) {
            warn(&format!("lines without a {}: {}; the first is {first}", self.wanted, self.counts.faults));
        }
    }

    /// Tells the user if more than a hundredth of the `units` that went are expected to have gone by mistake.
    pub fn tell_wrong(&self, units: &str) {
        let UnitCounts { duplicates, wrong, .. } = self.counts.units;
        if wrong >= 1.0 && wrong > 0.01 * duplicates as f64 {
            warn(&format!(
                "of the {duplicates} {units} that went, {wrong:.0} are expected to have gone by mistake: the filter is too full; plan \
                 for more with -n, or give a lower rate with -p"
            ));
        }
    }

    /// Tells the user of dangers that lose nothing.
    pub fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        if !self.quiet {
            warnings.into_iter().for_each(|warning| warn(&warning));
        }
    }

    /// Counts an input that is left out, or the rest of which is, and tells the user why.
    pub fn leave_out(&mut self, why: &str) {
        if self.first.is_none() {
            self.counts.left_out += 1;
            (self.tell)(why);
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

/// What came of reading the inputs for the first time.
pub struct First {
    pub counts: Counts,
    /// What the second look had on disk.
    pub disk_bytes: u64,
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

/// How many distinct keys a set was offered. One that it took for seen had all its bits set, so these are what fills it.
pub struct Offered(pub f64);

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
