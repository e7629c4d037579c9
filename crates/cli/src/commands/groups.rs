//! Groups of equal lines or similar documents for `dedup` and `corpus`: the decisions between two passes, and the reports.

use crate::key::json::Pointer;
use crate::options::GroupOptions;
use crate::read::inputs::Input;
use crate::seen::run_stats::Comparison;
use crate::steps::groups::choice::KeepPolicy;
use crate::steps::groups::decisions::{
    DecisionSorter, Decisions, GroupMember, GroupStats, LineVerdict, Occurrences, PrintedLines, choose,
};
use crate::steps::groups::ids;
use crate::steps::groups::near::survivors::{NearGroups, Thresholds};
use crate::steps::groups::ordinals::Ordinals;
use crate::steps::groups::records::RecordFile;
use crate::steps::groups::reports::Reports;
use crate::steps::values;
use crate::system::error::Error;
use crate::system::external_sort::ExternalSort;
use crate::system::files::{self, NamedFile};
use crate::terminal::phase::Phase;
use crate::write::encode::Encoder;
use crate::write::output::Output;
use crate::write::target::OutputTarget;
use bloomline_text::near::Near;
use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes of a report that are written at once.
const BUFFER: usize = 1 << 16;

/// The options of groups.
pub struct GroupRequest {
    keep: KeepPolicy,
    printed: PrintedLines,
    id: Option<Pointer>,
    pairs: Option<PathBuf>,
    clusters: Option<PathBuf>,
    /// The bands and the thresholds of near duplicates, if similar documents are groups.
    near: Option<(Near, Thresholds)>,
}

/// The decisions about the lines of all inputs.
pub struct GroupIndex {
    pub decisions: Decisions,
    pub stats: GroupStats,
    /// The number of distinct keys.
    pub distinct: u64,
    /// The counts of the comparison, for near duplicates.
    pub comparison: Option<Comparison>,
    /// The size of the records.
    pub disk_bytes: u64,
}

impl GroupRequest {
    pub fn new(options: GroupOptions, printed: PrintedLines, near: Option<(Near, Thresholds)>) -> Self {
        let GroupOptions { keep, pairs, clusters, id } = options;
        let keep = keep.unwrap_or(KeepPolicy::First);
        Self { keep, printed, id, pairs, clusters, near }
    }

    /// Returns the thresholds of similar documents, if these are groups.
    pub fn thresholds(&self) -> Option<Thresholds> {
        self.near.map(|(_, thresholds)| thresholds)
    }

    /// Returns the distinct lines that are printed.
    pub fn occurrences(&self) -> Occurrences {
        self.printed.occurrences
    }

    /// Returns the files of the reports.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.pairs.iter().chain(&self.clusters).map(PathBuf::as_path)
    }

    /// Describes the selection of printed lines, for comparison with another run.
    pub fn description(&self) -> String {
        let Self { keep, printed: PrintedLines { occurrences, counted }, id, near, .. } = self;
        let id = id.as_ref().map_or(String::new(), |id| format!(", told by {id}"));
        let near = near.map_or(String::new(), |(_, Thresholds { similarity, contained })| {
            format!(", from {similarity}, contained from {contained}")
        });
        format!(", grouped: {keep} of {occurrences:?}{}{id}{near}", if *counted { ", counted" } else { "" })
    }

    /// Returns the values that are read from lines in addition to their keys.
    pub fn values(&self) -> values::ValueProjection {
        let keep = Some(&self.keep).filter(|keep| keep.pointer().is_some()).cloned();
        values::ValueProjection { keep, id: self.id.clone(), answer: None }
    }

    /// Creates the records of these inputs. The first `earlier` of them are only read. `has_earlier_keys` is true if earlier runs
    /// inserted keys into the filter.
    pub fn records(&self, inputs: &[Input], earlier: usize, has_earlier_keys: bool) -> Result<RecordFile, Error> {
        let ordinals = Ordinals::new(inputs.iter().map(|input| &*input.path), earlier);
        RecordFile::new(
            ordinals,
            self.keep.clone(),
            self.id.is_some(),
            has_earlier_keys,
            self.near.map(|(near, _)| near.bands()),
        )
    }

    /// Finds groups of equal lines, or uses the groups of `near` duplicates, decides about each line, and writes the reports.
    pub fn decide(
        &self,
        records: &mut RecordFile,
        near: Option<NearGroups>,
        open_reports: OpenReports,
    ) -> Result<GroupIndex, Error> {
        let (mut members, mut sorter) = (ExternalSort::new(&env::temp_dir()), DecisionSorter::new());
        let member = |member: GroupMember| members.push(member.packed());
        let disk_bytes = records.each(near.as_ref(), member, |skip| sorter.push(skip))?;
        let members = members.sorted()?;
        let members = Phase::new("deciding", members.count, false).count(members);
        let members = members.map(|member| member.map(GroupMember::unpacked));
        let mut distinct = records.keys;
        let mut comparison = near.as_ref().map(|near| Comparison { not_compared: near.not_compared(), uncompared: 0 });
        let stats = choose(members, |decision| {
            distinct -= u64::from(decision.is_removed());
            if let Some(comparison) = &mut comparison {
                let is_uncompared = decision.verdict == LineVerdict::Removed { survivor: None };
                comparison.uncompared += u64::from(is_uncompared);
            }
            sorter.push(decision)
        })?;
        let ordinals = records.ordinals.clone();
        let OpenReports { mut pairs, clusters, .. } = open_reports;
        let mut reports = Reports::new(&ordinals, records.ids(), clusters.is_some())?;
        let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(files::is_standard);
        let name = if pairs.is_some() { "writing reports" } else { "deciding" };
        let phase = |steps| Phase::new(name, steps, to_stdout(&self.pairs));
        let decisions = sorter.finish(ordinals.clone(), self.printed, phase, |decision| {
            if let Some(pairs) = &mut pairs {
                reports.pair(decision, near.as_ref(), &mut |line| pairs.write(line))?;
            }
            reports.member(decision)
        })?;
        if let Some(pairs) = pairs {
            pairs.finish()?;
        }
        if let Some(mut report) = clusters {
            reports.clusters(to_stdout(&self.clusters), &mut |piece| report.write(piece))?;
            report.finish()?;
        }
        Ok(GroupIndex { decisions, stats, distinct, comparison, disk_bytes })
    }

    /// Returns a warning unless a line has an id, if ids are wanted.
    pub fn id_warning(&self, records: &mut RecordFile) -> Option<String> {
        let has_ids = records.ids().is_none_or(|ids| ids.any());
        self.id.as_ref().filter(|_| !has_ids).map(ids::warning)
    }

    /// Returns warnings if no group had a value to choose by, some had values of both kinds, or misleading strings were compared.
    pub fn warnings(&self, stats: &GroupStats) -> Vec<String> {
        let GroupStats { chosen, without_value, mixed, misled, .. } = stats;
        let Some(pointer) = self.keep.pointer() else { return Vec::new() };
        let pointer = pointer.to_string();
        if *chosen > 0 && without_value == chosen {
            let values = if let KeepPolicy::Order(..) = self.keep { "string of the list" } else { "number or string" };
            let why = format!("groups without a {values} at {pointer:?} to choose by: all {chosen}");
            return vec![format!("{why}; the first line of each is kept, so check the value that --keep names")];
        }
        let mixed = (*mixed > 0).then(|| {
            format!("groups with both numbers and strings at {pointer:?}: {mixed}; numbers are kept before strings")
        });
        let misled = misled.as_ref().map(|strings| {
            let [better, worse] = strings.each_ref().map(|string| String::from_utf8_lossy(string));
            format!(
                "strings at {pointer:?} are compared by their bytes, which is not the order of the numbers or dates in them: {better:?} \
                 stays before {worse:?}; write numbers without quotes, and dates by ISO 8601"
            )
        });
        mixed.into_iter().chain(misled).collect()
    }

    /// Checks the report files. They must differ from the files that are `read` or `written`.
    pub fn targets<'a>(
        &self,
        read: impl Iterator<Item = &'a NamedFile>,
        written: impl Iterator<Item = &'a NamedFile>,
    ) -> Result<ReportTargets, Error> {
        fn open(
            path: Option<&PathBuf>,
            read: &[&NamedFile],
            written: &[&NamedFile],
        ) -> Result<Option<OutputTarget>, Error> {
            let open =
                |path: &PathBuf| OutputTarget::check(Some(path), None, read.iter().copied(), written.iter().copied());
            path.map(open).transpose()
        }
        let (read, written): (Vec<_>, Vec<_>) = (read.collect(), written.collect());
        let pairs = open(self.pairs.as_ref(), &read, &written)?;
        let written: Vec<_> = written.into_iter().chain(pairs.as_ref().map(|pairs| &pairs.origin)).collect();
        let clusters = open(self.clusters.as_ref(), &read, &written)?;
        Ok(ReportTargets { pairs, clusters, tests: None })
    }
}

/// The report files, checked and not yet opened.
#[derive(Default)]
pub struct ReportTargets {
    pairs: Option<OutputTarget>,
    clusters: Option<OutputTarget>,
    /// The report on overlaps with test sets.
    tests: Option<OutputTarget>,
}

impl ReportTargets {
    /// Only the report on overlaps with test sets.
    pub fn for_tests(tests: OutputTarget) -> Self {
        Self { tests: Some(tests), ..Self::default() }
    }

    pub fn iter(&self) -> impl Iterator<Item = &OutputTarget> {
        self.pairs.iter().chain(&self.clusters).chain(&self.tests)
    }

    /// Empties the files.
    pub fn open(self) -> Result<OpenReports, Error> {
        let open = |target: Option<OutputTarget>| {
            let output = target.map(|target| target.start(0, None)).transpose()?;
            let report = |output| ReportFile { output, buffer: String::new(), encoder: Encoder::default() };
            Ok::<_, Error>(output.map(report))
        };
        Ok(OpenReports { pairs: open(self.pairs)?, clusters: open(self.clusters)?, tests: open(self.tests)? })
    }
}

/// The reports that are being written.
#[derive(Default)]
pub struct OpenReports {
    pairs: Option<ReportFile>,
    clusters: Option<ReportFile>,
    pub tests: Option<ReportFile>,
}

pub struct ReportFile {
    output: Output,
    buffer: String,
    encoder: Encoder,
}

impl ReportFile {
    pub fn write(&mut self, piece: &str) -> Result<(), Error> {
        self.buffer.push_str(piece);
        if self.buffer.len() < BUFFER { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let Self { output, buffer, encoder } = self;
        output.keep();
        let pieces = output.take_in(false, |out| out.write_all(buffer.as_bytes()))?;
        buffer.clear();
        pieces.into_iter().try_for_each(|piece| output.put(piece, encoder, false).map(drop))
    }

    /// Writes the rest and syncs the file, before a state with the keys of these lines is saved.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()?;
        self.output.finish(&mut self.encoder)?;
        self.output.write_out(&mut self.encoder, true)
    }
}
