//! The first reading of inputs that are read twice: groups are found.

use crate::commands::groups::{Grouping, Reported};
use crate::commands::pass::Pass;
use crate::commands::run::Run;
use crate::engine::wakes::Wake;
use crate::engine::work::Work;
use crate::error::{Error, Stop};
use crate::groups::near::clusters::Clusters;
use crate::groups::near::involved::Collecting;
use crate::groups::values::Wanted as Values;
use crate::input::inputs::Inputs;
use crate::locked::locked;
use crate::seen::tally::Tally;
use crate::seen::{Beside, Seen, SharedSeen};
use crate::signals;
use crossbeam_channel::Receiver;
use std::io;
use std::mem;
use std::sync::Arc;

/// What is known after the first reading: the inputs to read again, what was seen and their tally.
type Again = (Inputs, SharedSeen, Tally);

impl Run {
    /// Reads the inputs for the first time, finds groups and tells of them. Fails with why nothing is to be printed.
    pub(super) fn group(
        &self,
        grouping: &Grouping,
        inputs: Inputs,
        seen: Seen,
        tally: Tally,
        wakes: &Receiver<Wake>,
        reports: Reported,
    ) -> Result<Again, Stop> {
        let stamps = inputs.stamps();
        let (pass, work, mut again) = self.read_once(inputs, seen, tally, grouping.values(), wakes)?;
        let beside = || mem::take(&mut work.seen.write().beside);
        let Beside::Records(mut records) = beside() else { return Err(Error::Worker.into()) };
        let (mut clusters, mut disk_bytes) = (None, 0);
        if let (Some(bands), Some(threshold)) = (records.bands.take(), grouping.threshold()) {
            let (inputs, third) = again.twice().map_err(twice)?;
            again = third;
            let sorting = signals::at_once()?;
            let collecting = Collecting::new(bands.involved(records.had)?, records.places.clone());
            drop(sorting);
            work.seen.write().beside = Beside::Collecting(collecting);
            let tally = locked(&work.tally).again(0);
            let stop = pass.collect(inputs, work.seen.clone(), tally)?;
            stop.or_else(|| signals::first().map(Stop::Signal)).map_or(Ok(()), Err)?;
            let Beside::Collecting(collected) = beside() else { return Err(Error::Worker.into()) };
            let involved = collected.end()?;
            disk_bytes = involved.disk_bytes();
            let _comparing = signals::at_once()?;
            let verified = Clusters::verified(involved, threshold)?;
            locked(&work.tally).warn(verified.warning());
            clusters = Some(verified);
        }
        let _deciding = signals::at_once()?;
        let grouped = grouping.decide(records, clusters, reports)?;
        let mut tally = locked(&work.tally);
        tally.warn(grouping.warnings(&grouped.chosen));
        tally.counts.unique = grouped.distinct;
        let tally = tally.again(grouped.disk_bytes + disk_bytes);
        work.seen.write().beside = Beside::Decided { decided: grouped.decided, groups: grouped.chosen.groups, stamps };
        Ok((again, work.seen.clone(), tally))
    }

    /// Reads inputs that are to be read again. Returns the pass, what came of it and the inputs to read again. Fails with why nothing is
    /// to be printed.
    fn read_once(
        &self,
        inputs: Inputs,
        seen: Seen,
        tally: Tally,
        values: Values,
        wakes: &Receiver<Wake>,
    ) -> Result<(Pass<'_>, Arc<Work>, Inputs), Stop> {
        let (inputs, mut again) = inputs.twice().map_err(twice)?;
        let hashing = self.hashing(&seen.set, values);
        let (quiet, wish, wakes) = (self.options.quiet, self.print.wish, wakes.clone());
        let pass = Pass { reading: &self.reading, hashing, quiet, wish, eol: None, wakes };
        let (work, stop) = pass.insert(inputs, seen, tally)?;
        stop.or_else(|| signals::first().map(Stop::Signal)).map_or(Ok(()), Err)?;
        again.measure().map_err(twice)?;
        Ok((pass, work, again))
    }
}

fn twice(source: io::Error) -> Error {
    Error::Twice { source }
}
