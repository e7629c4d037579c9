//! The first reading of inputs that are read twice: what repeats is counted, or groups are found.

use crate::commands::groups::{Grouping, Reported};
use crate::commands::pass::Pass;
use crate::commands::run::Run;
use crate::engine::wakes::Wake;
use crate::error::{Error, Stop};
use crate::groups::near::clusters::Clusters;
use crate::groups::near::involved::Collecting;
use crate::groups::values::Wanted as Values;
use crate::input::inputs::Inputs;
use crate::output::locked;
use crate::seen::repeats::{Repeats, Selection};
use crate::seen::tally::Tally;
use crate::seen::{Seen, SharedSeen};
use crate::signals;
use crossbeam_channel::Receiver;

impl Run {
    /// Reads the inputs for the first time, and counts the lines that repeat. Returns what is known then, and the inputs to read
    /// again, with their tally; or why nothing is to be printed.
    pub(super) fn count(
        &self,
        selection: Selection,
        inputs: Inputs,
        mut seen: Seen,
        tally: Tally,
        wakes: &Receiver<Wake>,
    ) -> Result<Result<(Inputs, SharedSeen, Tally), Stop>, Error> {
        let (inputs, mut again) = inputs.twice().map_err(|source| Error::Twice { source })?;
        seen.repeats = Some(Repeats::new(selection));
        let (what, wakes) = (self.what.clone(), wakes.clone());
        let (reading, format, nulls, wish) = (&self.reading, self.format, self.nulls, self.print.wish);
        let values = Values::default();
        let pass = Pass { reading, format, what, nulls, values, quiet: self.options.quiet, wish, wakes };
        let (work, stop) = pass.insert(inputs, seen, tally)?;
        if let Some(stop) = stop.or_else(|| signals::first().map(Stop::Signal)) {
            return Ok(Err(stop));
        }
        again.measure().map_err(|source| Error::Twice { source })?;
        let mut seen = work.seen.write();
        seen.repeats.iter_mut().for_each(Repeats::turn);
        // Its files are not needed any more.
        let disk_bytes = seen.exact.take().map_or(0, |exact| exact.disk_bytes());
        let tally = locked(&work.tally).again(disk_bytes);
        Ok(Ok((again, work.seen.clone(), tally)))
    }

    /// Reads the inputs for the first time, finds groups and tells of them. Returns what is known then, and the inputs to read again, with
    /// their tally; or why nothing is to be printed.
    pub(super) fn group(
        &self,
        grouping: &Grouping,
        inputs: Inputs,
        seen: Seen,
        tally: Tally,
        wakes: &Receiver<Wake>,
        reports: Reported,
    ) -> Result<Result<(Inputs, SharedSeen, Tally), Stop>, Error> {
        let stamps = inputs.stamps();
        let (inputs, mut again) = inputs.twice().map_err(|source| Error::Twice { source })?;
        let (what, wakes, values) = (self.what.clone(), wakes.clone(), grouping.values());
        let (reading, format, nulls, wish) = (&self.reading, self.format, self.nulls, self.print.wish);
        let pass = Pass { reading, format, what, nulls, values, quiet: self.options.quiet, wish, wakes };
        let (work, stop) = pass.insert(inputs, seen, tally)?;
        if let Some(stop) = stop.or_else(|| signals::first().map(Stop::Signal)) {
            return Ok(Err(stop));
        }
        again.measure().map_err(|source| Error::Twice { source })?;
        let mut records = work.seen.write().records.take().ok_or(Error::Worker)?;
        let (mut clusters, mut disk_bytes) = (None, 0);
        if let (Some(bands), Some(threshold)) = (records.bands.take(), grouping.threshold()) {
            let (inputs, third) = again.twice().map_err(|source| Error::Twice { source })?;
            again = third;
            let involved = bands.involved(records.had)?;
            work.seen.write().collecting = Some(Collecting::new(involved, records.places.clone()));
            let tally = locked(&work.tally).again(0);
            let stop = pass.collect(inputs, work.seen.clone(), tally)?;
            if let Some(stop) = stop.or_else(|| signals::first().map(Stop::Signal)) {
                return Ok(Err(stop));
            }
            let collected = work.seen.write().collecting.take().ok_or(Error::Worker)?;
            let involved = collected.end()?;
            disk_bytes = involved.disk_bytes();
            clusters = Some(Clusters::verified(involved, threshold)?);
        }
        let mut seen = work.seen.write();
        let grouped = grouping.decide(records, clusters, reports)?;
        let mut tally = locked(&work.tally);
        tally.counts.unique = grouped.distinct;
        let tally = tally.again(grouped.disk_bytes + disk_bytes);
        (seen.decided, seen.groups, seen.stamps) = (Some(grouped.decided), grouped.groups, stamps);
        Ok(Ok((again, work.seen.clone(), tally)))
    }
}
