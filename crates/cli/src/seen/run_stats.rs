//! The statistics of a run: counts, the limit of the filter, and the warnings that were printed.

use crate::seen::counts::{LineCounts, UnitCounts};
use crate::seen::set::KeySet;
use crate::system::error::{INCOMPLETE, SUCCESS};
use crate::terminal::figures::readable;
use crate::terminal::messages::{print_message, warn};
use bloomline::Plan;

/// Counts of a run, and a record of the warnings that were printed.
pub struct RunStats {
    /// The limit at which the filter is full; `None` if the set grows.
    pub limit: Option<FullLimit>,
    /// Keys that were in the set at the start, exact or estimated.
    pub keys_before: f64,
    /// The plan of the set, unless it grows.
    pub plan: Option<Plan>,
    pub counts: LineCounts,
    /// The counts of the first reading of the inputs, if this is the second.
    pub first: Option<FirstReading>,
    /// The first line without a key, and the reason.
    first_fault: Option<String>,
    /// True if only the warning that a filter is full is printed.
    quiet: bool,
    /// The function that prints a message about a skipped input.
    report: fn(&str),
    /// True if the warning that the filter is full was printed.
    reported: bool,
    /// The plural noun for keys in messages.
    keys: &'static str,
    /// The adjective for the lines that are counted as found.
    pub found: &'static str,
    /// The part that each line must have, such as a key.
    pub wanted: &'static str,
    /// The remedy for a full filter, unless that is sized by the options.
    pub remedy: Option<String>,
}

impl RunStats {
    /// Starts the statistics of keys that are inserted into a set.
    pub fn new(set: &KeySet, limit: Option<FullLimit>, keys: &'static str, wanted: &'static str, quiet: bool) -> Self {
        Self {
            limit,
            keys_before: set.keys(),
            plan: set.plan(),
            counts: LineCounts::default(),
            first: None,
            first_fault: None,
            quiet,
            report: if quiet { |_| () } else { warn },
            reported: false,
            keys,
            found: "unique",
            wanted,
            remedy: None,
        }
    }

    /// Starts the statistics of a search. Skipped inputs are reported even if `quiet`, because they are errors here.
    pub fn for_search(set: &KeySet, quiet: bool) -> Self {
        Self { found: "selected", report: print_message, ..Self::new(set, None, "lines", "key", quiet) }
    }

    /// Starts the statistics of a search that inserts absent keys into this set, into which these statistics counted keys.
    pub fn for_search_after(&self, set: &KeySet) -> Self {
        let limit = self.limit.as_ref().zip(self.remaining_keys()).map(|(limit, keys)| FullLimit { keys, ..*limit });
        Self { limit, reported: self.reported, ..Self::for_search(set, self.quiet) }
    }

    /// Starts the statistics of a second reading of the inputs, after an exact check that used `disk_bytes`. Repeats no message.
    pub fn for_second_reading(&self, disk_bytes: u64) -> Self {
        let Self { keys_before, plan, keys, wanted, .. } = *self;
        let counts = LineCounts { left_out: self.counts.left_out, ..LineCounts::default() };
        let first = Some(FirstReading { counts: self.counts.clone(), disk_bytes, comparison: None });
        Self {
            limit: None,
            keys_before,
            plan,
            counts,
            first,
            first_fault: None,
            quiet: true,
            report: |_| (),
            reported: true,
            keys,
            found: "printed",
            wanted,
            remedy: self.remedy.clone(),
        }
    }

    /// Returns the remedy for a full filter. A filter that is sized by the options has these as a remedy.
    pub fn remedy(&self, options: &str) -> String {
        self.remedy.clone().unwrap_or_else(|| format!("plan for more with {options}"))
    }

    /// Warns of a filter that is overfull before the first line.
    pub fn warn_if_overfull(&mut self, set: &KeySet) {
        if !self.reported
            && let Some(limit) = &self.limit
            && let Some(overfull_warning) = set.overfull_warning(limit.planned)
        {
            warn(&format!("{overfull_warning} and rises with every new key; {}", self.remedy("-n")));
            self.reported = true;
        }
    }

    /// Adds the counts of some lines. Warns if they fill the filter; `fpr` is its rate.
    pub fn count(&mut self, counts: &LineCounts, first_fault: Option<String>, fpr: impl FnOnce() -> f64) {
        let before = self.counts.inserted;
        self.counts.add(counts);
        if self.first_fault.is_none() {
            self.first_fault = first_fault;
        }
        if !self.reported
            && let Some(limit) = &self.limit
            && !limit.stop
            && (before..self.counts.inserted).contains(&limit.keys)
        {
            warn(&format!(
                "the filter has more than the {} distinct {} it was planned for: its false-positive rate is {} and rises \
                 with every new key; {}",
                limit.planned,
                self.keys,
                readable(fpr()),
                self.remedy("-n or --memory"),
            ));
            self.reported = true;
        }
    }

    /// Warns of lines without the wanted part, if there were any.
    pub fn warn_of_faults(&self) {
        if !self.quiet
            && let Some(first) = &self.first_fault
        {
            warn(&format!("lines without a {}: {}; the first is {first}", self.wanted, self.counts.faults));
        }
    }

    /// Warns if more than a hundredth of the removed `units` are expected to be false positives, or to be below the similarity.
    pub fn warn_false_removals(&self, units: &str) {
        let UnitCounts { duplicates, wrong, .. } = self.counts.units;
        if wrong >= 1.0 && wrong > 0.01 * duplicates as f64 {
            warn(&format!(
                "of the {duplicates} {units} that were removed, {wrong:.0} are expected to be mistakes: the filter is too full; {}",
                self.remedy("-n, or give a lower rate with -p")
            ));
        }
        let below = self.counts.units.below;
        if below >= 1.0 && below > 0.01 * duplicates as f64 {
            warn(&format!(
                "of the {duplicates} {units} that were removed, about {below:.0} are less similar than asked, because nothing is \
                 compared in one reading: leave out the option that needs one, or give a higher --near"
            ));
        }
    }

    /// Prints warnings of dangers, unless quiet.
    pub fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        if !self.quiet {
            for warning in warnings {
                warn(&warning);
            }
        }
    }

    /// Counts an input that cannot be opened, and reports the reason.
    pub fn leave_out_input(&mut self, why: &str) {
        self.leave_out(&format!("{why}; it is skipped"));
    }

    /// Counts an input that is skipped in whole or in part, and reports the reason.
    pub fn leave_out(&mut self, why: &str) {
        if self.first.is_none() {
            self.counts.left_out += 1;
            (self.report)(why);
        }
    }

    /// Returns the exit code of the command once all inputs are read.
    pub fn exit_code(&self) -> u8 {
        if self.counts.left_out > 0 { INCOMPLETE } else { SUCCESS }
    }

    /// Returns the number of new keys that still fit, if there is a limit.
    pub fn remaining_keys(&self) -> Option<u64> {
        self.limit.as_ref().map(|limit| limit.keys.saturating_sub(self.counts.inserted))
    }

    /// Continues with the room that an interrupted run had.
    pub fn resume(&mut self, remaining_keys: Option<u64>) {
        if let (Some(limit), Some(remaining_keys)) = (&mut self.limit, remaining_keys) {
            limit.keys = remaining_keys;
        }
    }
}

/// The result of the first reading of the inputs.
pub struct FirstReading {
    pub counts: LineCounts,
    /// The bytes on disk of the exact check.
    pub disk_bytes: u64,
    /// The counts of a comparison of near duplicates.
    pub comparison: Option<Comparison>,
}

/// Counts of a comparison of near duplicates.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// An upper bound of the pairs of kept documents with a common band that were not compared.
    pub not_compared: u64,
    /// Documents that were removed without comparison, because an earlier run had one of their bands.
    pub uncompared: u64,
}

/// The limit at which a filter of a fixed size is full, and the reaction to it.
#[derive(Debug, PartialEq)]
pub struct FullLimit {
    /// Keys that the filter is made for.
    pub planned: u64,
    /// New keys that fit.
    pub keys: u64,
    /// The false-positive rate once these keys are inserted.
    pub fpr: f64,
    /// True if the run stops at the limit. Otherwise a warning is printed once.
    pub stop: bool,
}

impl FullLimit {
    /// Returns the limit of an empty filter.
    pub fn new(keys: u64, fpr: f64, stop: bool) -> Self {
        Self { planned: keys, keys, fpr, stop }
    }

    /// Formats the share of the limit that is used, for the progress line.
    pub fn used_share(&self, counts: &LineCounts) -> String {
        format!("{:.0} % full", 100.0 * counts.inserted as f64 / self.keys.max(1) as f64)
    }

    /// Returns the limit of a filter that has keys already and is full with `planned` in all.
    pub fn from_loaded(set: &KeySet, planned: u64, fpr: f64, stop: bool) -> Self {
        let keys = (planned as f64 - set.keys()).max(0.0) as u64;
        Self { planned, keys, fpr, stop }
    }
}

/// The number of distinct keys that were offered to a set. These fill it: a key that was reported as seen had all its bits set.
pub struct OfferedKeys(pub f64);

impl OfferedKeys {
    /// Adds keys, `inserted` of them reported as new. Returns the mean of the `rate` over these keys, by Simpson's rule.
    pub fn add(&mut self, inserted: u64, rate: impl Fn(f64) -> f64) -> f64 {
        let Self(keys) = *self;
        let mut mean = rate(keys);
        // The more keys were offered, the higher the rate, and so the more were reported as seen.
        for _ in 0..3 {
            let to = keys + inserted as f64 / (1.0 - mean).max(f64::EPSILON);
            mean = (rate(keys) + 4.0 * rate(f64::midpoint(keys, to)) + rate(to)) / 6.0;
        }
        self.0 += inserted as f64 / (1.0 - mean).max(f64::EPSILON);
        mean
    }
}
