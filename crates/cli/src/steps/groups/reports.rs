//! Reports on groups: for each removed line the line that is kept, and the members of each group.

use crate::steps::groups::decisions::{Decision, LineVerdict};
use crate::steps::groups::ids::{IdReader, Ids};
use crate::steps::groups::near::survivors::NearGroups;
use crate::steps::groups::ordinals::Ordinals;
use crate::system::error::Error;
use crate::system::external_sort::ExternalSort;
use crate::terminal::phase::Phase;
use std::env;

/// Writes a piece of a report.
pub type Write<'a> = &'a mut dyn FnMut(&str) -> Result<(), Error>;

/// A writer of reports on decisions, which arrive in the order of ordinals.
pub struct Reports<'a> {
    ordinals: &'a Ordinals,
    /// The ids of lines: a reader for lines in order, and one for others.
    ids: Option<[IdReader<'a>; 2]>,
    /// The ordinal that is kept, a number that orders the members of its group, and the number of members.
    clusters: Option<ExternalSort<3>>,
}

impl<'a> Reports<'a> {
    /// Reports on lines at these ordinals, with their ids if given. With `clusters`, members are stored to be reported at the end.
    pub fn new(ordinals: &'a Ordinals, ids: Option<&'a mut Ids>, clusters: bool) -> Result<Self, Error> {
        let ids = ids.map(Ids::read).transpose().map_err(Error::groups)?;
        Ok(Self { ordinals, ids, clusters: clusters.then(|| ExternalSort::new(&env::temp_dir())) })
    }

    /// Reports a line that is removed and, for `near` duplicates, its similarity to the line that is kept.
    pub fn pair(
        &mut self,
        Decision { ordinal, verdict }: Decision,
        near: Option<&NearGroups>,
        write: Write<'_>,
    ) -> Result<(), Error> {
        let LineVerdict::Removed { survivor: kept } = verdict else { return Ok(()) };
        let line = self.line(ordinal, true)?;
        let Some(kept) = kept else { return write(&format!("{{{line},\"kept\":null}}\n")) };
        let measures = near.map(|near| near.measures(ordinal, kept)).transpose()?;
        let measures = measures.map_or(String::new(), |(similarity, contained)| {
            format!(",\"similarity\":{similarity:.4},\"contained\":{contained:.4}")
        });
        let kept = self.line(kept, false)?;
        write(&format!("{{{line},\"kept\":{{{kept}}}{measures}}}\n"))
    }

    /// Stores a member of a group.
    pub fn member(&mut self, Decision { ordinal, verdict }: Decision) -> Result<(), Error> {
        let Some(sorter) = &mut self.clusters else { return Ok(()) };
        match verdict {
            LineVerdict::Kept { count } => sorter.push([ordinal, 0, count]),
            LineVerdict::Removed { survivor: Some(kept) } => sorter.push([kept, ordinal + 1, 0]),
            LineVerdict::Removed { survivor: None } | LineVerdict::Skipped(_) => Ok(()),
        }
    }

    /// Reports all groups with their members, in the order of the lines that are kept, which come first.
    pub fn clusters(mut self, to_stdout: bool, write: Write<'_>) -> Result<(), Error> {
        let Some(sorter) = self.clusters.take() else { return Ok(()) };
        let mut clusters = 0;
        let members = sorter.sorted()?;
        for member in Phase::new("writing reports", members.count, to_stdout).count(members) {
            let [kept, order, count] = member?;
            match order.checked_sub(1) {
                None => {
                    let end = if clusters > 0 { "]}\n" } else { "" };
                    clusters += 1;
                    let line = self.line(kept, true)?;
                    write(&format!("{end}{{\"cluster\":{clusters},\"size\":{count},\"members\":[{{{line}}}"))?;
                }
                Some(ordinal) => write(&format!(",{{{}}}", self.line(ordinal, false)?))?,
            }
        }
        if clusters > 0 { write("]}\n") } else { Ok(()) }
    }

    /// Returns the location and the id of a line, as members of an object.
    fn line(&mut self, ordinal: u64, in_order: bool) -> Result<String, Error> {
        let mut reported = self.ordinals.reported(ordinal);
        if let Some([ahead, apart]) = &mut self.ids {
            reported += ",\"id\":";
            reported += if in_order { ahead } else { apart }.get(ordinal).map_err(Error::groups)?;
        }
        Ok(reported)
    }
}
