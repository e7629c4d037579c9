//! The first reading of inputs that are read twice, in which groups are found.

use crate::commands::groups::{Grouping, Reported};
use crate::commands::run::plan::Plan;
use crate::commands::scan::Scan;
use crate::engine::pass::Pass;
use crate::engine::pass::collect::Collect;
use crate::engine::pass::insert::Insert;
use crate::engine::pass::record::Record;
use crate::engine::pass::replay::Replay;
use crate::engine::wakes::Wake;
use crate::error::{Error, Stop, remedy};
use crate::groups::near::clusters::Clusters;
use crate::groups::near::involved::Collecting;
use crate::groups::records::Records;
use crate::input::inputs::Inputs;
use crate::input::lines::What;
use crate::locked::locked;
use crate::seen::tally::Tally;
use crate::seen::{Seen, SharedSeen};
use crate::signals;
use crossbeam_channel::Receiver;
use std::io;
use std::sync::{Arc, Mutex};

/// The inputs to read after the first reading, the pass over them, the set and the tally.
pub(super) type Again = (Inputs, Arc<dyn Pass>, SharedSeen, Tally);

impl Plan {
    /// Reads the inputs for the first time, finds groups and writes the reports. Fails with the reason if nothing is to be printed.
    pub(super) fn group(
        &self,
        grouping: &Grouping,
        inputs: Inputs,
        records: Records,
        (seen, tally): (Seen, Tally),
        wakes: &Receiver<Wake>,
        reports: Reported,
    ) -> Result<Again, Stop> {
        let stamps = inputs.stamps();
        let (inputs, mut again) = inputs.twice().map_err(twice)?;
        let hashing = self.keys.hashing(&seen.set, grouping.values());
        let (quiet, wish, wakes) = (self.reporting.quiet, self.print.wish, wakes.clone());
        let scan = Scan { reading: &self.reading, hashing, quiet, wish, eol: None, wakes };
        let seen = SharedSeen::new(seen);
        let insert = Insert { seen: seen.clone(), in_order: true };
        let pass = Arc::new(Record { insert, near: grouping.near(), records: Mutex::new(records) });
        let (work, stop) = scan.read(inputs, pass.clone(), seen.clone(), tally)?;
        stop.or_else(|| signals::first().map(Stop::Signal)).map_or(Ok(()), Err)?;
        again.measure().map_err(twice)?;
        let mut records = locked(&pass.records);
        let (mut clusters, mut disk_bytes) = (None, 0);
        if let (Some(bands), Some(threshold)) = (records.bands.take(), grouping.threshold()) {
            let (inputs, third) = again.twice().map_err(twice)?;
            again = third;
            let sorting = signals::at_once()?;
            let collecting = Collecting::new(bands.involved(records.had)?, records.places.clone());
            drop(sorting);
            let pass = Arc::new(Collect::new(collecting));
            let (_, stop) = scan.read(inputs, pass.clone(), seen.clone(), locked(&work.tally).again(0))?;
            stop.or_else(|| signals::first().map(Stop::Signal)).map_or(Ok(()), Err)?;
            let involved = pass.end()?;
            disk_bytes = involved.disk_bytes();
            let _comparing = signals::at_once()?;
            let verified = Clusters::verified(involved, threshold)?;
            locked(&work.tally).warn(verified.warning());
            clusters = Some(verified);
        }
        let _deciding = signals::at_once()?;
        let grouped = grouping.decide(&mut records, clusters, reports)?;
        let mut tally = locked(&work.tally);
        tally.warn(grouping.warnings(&grouped.chosen));
        tally.counts.unique = grouped.distinct;
        let tally = tally.again(grouped.disk_bytes + disk_bytes);
        let emptied = match &self.keys.what {
            What::Document(rule, _) if rule.keep_empty => Some(rule.pointer.clone()),
            _ => None,
        };
        let replay = Replay { decided: Mutex::new(grouped.decided), emptied, groups: grouped.chosen.groups, stamps };
        Ok((again, Arc::new(replay), seen, tally))
    }
}

fn twice(source: io::Error) -> Error {
    let remedy = remedy(&source, "what comes by a pipe is kept in a temporary file, so set TMPDIR to another folder");
    Error::new(format!("cannot read the inputs twice: {source}; {remedy}"))
}
