//! A run, resolved once from the options that ask for it.

use crate::commands::groups::GroupRequest;
use crate::commands::run::substrings::SubstringRequest;
use crate::key::KeyRule;
use crate::key::json::Pointer;
use crate::options::values::Eol;
use crate::options::{
    CorpusOptions, DedupOptions, GrowthOptions, OutputOptions, ReadOptions, RunOptions, SharedOptions,
    SharedWriteOptions, SizeOptions, WhenFull,
};
use crate::read::ends::LineEnds;
use crate::read::find::NamedPaths;
use crate::read::inputs::{Input, Inputs};
use crate::read::keys::Hashing;
use crate::read::projection::{ProjectedPart, Projection};
use crate::read::skip::OnError;
use crate::read::split::LineFormat;
use crate::read::table::TableOptions;
use crate::run::folder;
use crate::run::print::Prefix;
use crate::run::sink::PrintOptions;
use crate::seen::exact;
use crate::seen::set::KeySet;
use crate::steps::documents::rule::DocumentRule;
use crate::steps::groups::decisions::{Occurrences, PrintedLines};
use crate::steps::values::ValueProjection as Values;
use crate::system::error::Error;
use crate::system::files::{self, NamedFile, is_standard};
use crate::terminal::figures::StatsFormat;
use bloomline::KeyHasher;
use bloomline_keys::KeyKinds;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The interval at which a state is saved by default.
const MINUTE: Duration = Duration::from_secs(60);

/// A run, as its options ask for it.
pub struct Plan {
    pub reading: ReadOptions,
    pub keys: Keys,
    pub memory: Memory,
    /// The size of a new set.
    pub size: SizeOptions,
    pub growth: GrowthOptions,
    /// Documents of earlier runs, which are only read.
    pub earlier: EarlierDocuments,
    /// The groups of equal lines or documents, if all lines have to be known before one is printed.
    pub group_request: Option<GroupRequest>,
    /// The search for repeated runs of words, if these are cut.
    pub substring_request: Option<SubstringRequest>,
    pub print: PrintOptions,
    pub destination: Destination,
    pub reporting: ReportOptions,
}

/// The keys of lines.
pub struct Keys {
    /// The format of lines, and the part of a line that is hashed.
    pub format: LineFormat,
    /// True if CR LF is accepted as a line end, or written.
    pub crlf: bool,
    pub what: KeySource,
    /// The name of the keys. A set with keys of another name is refused.
    pub name: String,
    /// A description of all options that determine the keys. Another run can resume only with the same.
    pub description: String,
    /// The kinds of the keys, as far as they do not depend on values. Known once the inputs are.
    pub kinds: KeyKinds,
    /// The treatment of lines whose key has a null, if nulls are not keys.
    pub nulls: OnError,
    /// The word for keys in messages.
    pub called: &'static str,
    /// The word in messages for the part that a line must have.
    pub wanted: &'static str,
    /// The line ends of the keys, for a warning if there are two kinds.
    pub ends: Arc<LineEnds>,
}

/// The part of a line that is hashed.
pub enum KeySource {
    /// The key; with a second hasher, fingerprints too.
    Key(KeyRule, Option<KeyHasher>),
    /// The units of its document.
    Document(DocumentRule),
}

impl KeySource {
    /// Returns the rule for keys; `None` for documents.
    pub fn rule(&self) -> Option<&KeyRule> {
        if let Self::Key(rule, _) = self { Some(rule) } else { None }
    }

    /// Returns the rule for documents; `None` for keys.
    pub fn document(&self) -> Option<&DocumentRule> {
        if let Self::Document(rule) = self { Some(rule) } else { None }
    }
}

/// The set at the first line.
pub enum Memory {
    /// An empty set. With `exact`, keys that it reports as seen are checked exactly.
    Fresh { exact: bool },
    /// A file, with which the next run continues.
    State(StateOptions),
    /// A filter on a server.
    Server(SharedOptions, SharedWriteOptions),
    /// A filter that is only read.
    Frozen(PathBuf),
    /// The grams of tests whose texts are removed.
    Tests(TestSet),
}

/// Tests whose texts are removed.
pub struct TestSet {
    named: Vec<PathBuf>,
    /// The files of the tests, once they are found.
    pub files: Vec<PathBuf>,
    pub report: Option<PathBuf>,
    pub id: Option<Pointer>,
    /// The answers of short tests.
    pub answer: Option<Pointer>,
}

/// Documents of earlier runs: they are compared with documents of the inputs and kept.
#[derive(Default)]
pub struct EarlierDocuments {
    named: Vec<PathBuf>,
    /// The files, once they are found.
    pub inputs: Inputs,
}

/// The options of a state.
pub struct StateOptions {
    pub path: PathBuf,
    /// True if the set is shrunk to the smallest size at the end.
    pub shrink: bool,
    /// The interval of checkpoints, if it was asked for.
    pub checkpoint: Option<Duration>,
    /// True if this run waits for another run that holds the lock.
    pub wait: bool,
    /// True if an interrupted run is continued.
    pub resume: bool,
}

/// The destination of lines, and the options of outputs.
pub struct Destination {
    pub kind: DestinationKind,
    pub output: OutputOptions,
    /// True if outputs may be emptied even if their lines are lost.
    pub force: bool,
}

pub enum DestinationKind {
    /// A file or standard output. `dupes` is the file for dropped lines, if they are written; "-" is standard output.
    File { dupes: Option<PathBuf> },
    /// A file of its own for each input in a folder, and perhaps a manifest of them.
    Folder { path: PathBuf, manifest: Option<PathBuf>, in_order: bool },
    /// A replacement of each input.
    InPlace,
}

/// The reports of a run.
pub struct ReportOptions {
    pub stats: Option<StatsFormat>,
    /// The interval at which statistics are printed during the run.
    pub every: Option<Duration>,
    pub quiet: bool,
}

impl Keys {
    /// Returns the parts of lines that are read: what is hashed, and `values`.
    pub fn projection(&self, values: &Values) -> Projection {
        values.with(match &self.what {
            KeySource::Key(rule, _) => ProjectedPart::Key(rule.clone()),
            KeySource::Document(rule) => ProjectedPart::Text(rule.pointer.clone()),
        })
    }

    /// Returns the rule for hashing the keys of lines for this set, by the key rule.
    pub fn hashing(&self, rule: &KeyRule, second_hasher: Option<&KeyHasher>, set: &KeySet) -> Hashing {
        Hashing {
            format: self.format,
            rule: rule.clone(),
            hasher: set.hasher().clone(),
            second_hasher: second_hasher.cloned(),
            nulls: self.nulls,
            ends: Arc::clone(&self.ends),
        }
    }
}

impl Memory {
    /// Returns the state of the options, or `other` if they have none.
    fn from_options(run: &RunOptions, other: Self) -> Self {
        let &RunOptions { shrink, checkpoint, wait, resume, .. } = run;
        let state = run.state.clone().map(|path| StateOptions { path, shrink, checkpoint, wait, resume });
        state.map_or(other, Self::State)
    }
}

impl StateOptions {
    /// Returns the interval at which the outputs and the state are saved.
    pub fn every(&self) -> Duration {
        self.checkpoint.unwrap_or(MINUTE)
    }
}

impl TestSet {
    pub fn new(named: Vec<PathBuf>, report: Option<PathBuf>, id: Option<Pointer>, answer: Option<Pointer>) -> Self {
        Self { named, files: Vec::new(), report, id, answer }
    }

    /// Returns the values that are read from documents beside their texts.
    pub fn values(&self) -> Values {
        Values { keep: None, id: self.id.clone(), answer: None }
    }

    /// Finds the files of the tests. Globs apply only to the inputs. All files must exist.
    pub fn find(&mut self, reading: &ReadOptions) -> Result<Inputs, Error> {
        let named = NamedPaths { paths: &self.named, list: None, globs: &[], ..reading.named_paths() };
        let inputs = Inputs::check(&named, &[], false)?;
        self.files = inputs.found.iter().map(|input| input.path.clone()).collect();
        Ok(inputs)
    }
}

impl Destination {
    /// Returns the destination and the growth of a set that these options ask for.
    pub fn from_options(run: RunOptions, dupes: Option<PathBuf>) -> (GrowthOptions, Self) {
        let RunOptions { growth, output, output_dir, in_place, in_order, manifest, force, .. } = run;
        let kind = match output_dir {
            Some(path) => DestinationKind::Folder { path, manifest, in_order },
            None if in_place => DestinationKind::InPlace,
            None => DestinationKind::File { dupes },
        };
        (growth, Self { kind, output, force })
    }

    /// Returns the file for dropped lines.
    pub fn dupes(&self) -> Option<&Path> {
        if let DestinationKind::File { dupes } = &self.kind { dupes.as_deref() } else { None }
    }

    /// Returns the folder of outputs.
    pub fn folder(&self) -> Option<&Path> {
        if let DestinationKind::Folder { path, .. } = &self.kind { Some(path) } else { None }
    }

    /// Returns the manifest of the folder.
    pub fn manifest(&self) -> Option<&Path> {
        if let DestinationKind::Folder { manifest, .. } = &self.kind { manifest.as_deref() } else { None }
    }

    /// True if lines of an input are to replace it.
    pub fn replaces(&self, input: &Input) -> bool {
        let output = self.output.file().map(NamedFile::from_path);
        matches!(self.kind, DestinationKind::InPlace)
            || output.is_some_and(|output| {
                output.is_regular() && output.identity().is_some() && output.identity() == input.origin.identity()
            })
    }

    /// True if inputs are read at the same time.
    pub fn is_side_by_side(&self) -> bool {
        matches!(self.kind, DestinationKind::Folder { in_order: false, .. })
    }

    /// True if lines are written to standard output.
    pub fn is_standard_output(&self) -> bool {
        matches!(self.kind, DestinationKind::File { .. }) && self.output.file().is_none()
    }
}

impl Plan {
    /// Resolves the options of `dedup`.
    pub fn from_dedup(options: DedupOptions) -> Self {
        let asks_for_groups = options.groups.first_given().or(options.reads_twice()).is_some();
        let occurrences = match (options.repeated, options.unique) {
            (true, _) => Occurrences::Repeated,
            (_, true) => Occurrences::Unique,
            _ => Occurrences::All,
        };
        let prefix = match (options.annotate, options.count) {
            (true, _) => Prefix::Mark,
            (_, true) => Prefix::Count,
            _ => Prefix::Nothing,
        };
        let printed = PrintedLines { occurrences, counted: options.count };
        let DedupOptions {
            reading,
            key,
            mut size,
            shared,
            writing,
            mut run,
            dupes,
            invert,
            total,
            stats_every,
            groups,
            exact,
            ..
        } = options;
        // The order of the inputs decides which copy of a line is the first.
        run.in_order |= groups.keep.is_some() || asks_for_groups;
        let group_request = asks_for_groups.then(|| GroupRequest::new(groups, printed, None));
        let exact = exact && group_request.is_none();
        if exact {
            size.verify();
        }
        let second_hasher = (exact || group_request.is_some()).then(|| exact::second_hasher(size.seed()));
        let memory = match shared.server.redis {
            Some(_) => Memory::Server(shared, writing),
            None => Memory::from_options(&run, Memory::Fresh { exact }),
        };
        let keys = Keys {
            format: key.line_format(reading.line_end()),
            crlf: key.eol.is_some(),
            what: KeySource::Key(key.rule(), second_hasher),
            kinds: KeyKinds::default(),
            name: String::new(),
            description: String::new(),
            nulls: key.nulls.policy(),
            called: "lines",
            wanted: "key",
            ends: LineEnds::new(run.quiet).into(),
        };
        let print = PrintOptions {
            selected_mark: !invert,
            kept: occurrences.selects(1),
            prefix,
            total,
            write_options: run.output.row_options(),
            eol: key.eol.and_then(Eol::written),
        };
        let reporting = ReportOptions { stats: run.stats, every: stats_every, quiet: run.quiet };
        let (growth, destination) = Destination::from_options(run, dupes);
        let earlier = EarlierDocuments::default();
        Self {
            reading,
            keys,
            memory,
            size,
            growth,
            earlier,
            group_request,
            substring_request: None,
            print,
            destination,
            reporting,
        }
    }

    /// Resolves the options of `corpus`.
    pub fn from_corpus(options: CorpusOptions) -> Self {
        let mut rule = options.rule();
        let frozen = options.frozen().map(Path::to_owned);
        let substring_request =
            rule.substrings.clone().map(|rules| SubstringRequest::new(rules, options.run.growth.memory));
        let asks_for_groups = options.asks_for_groups().is_some();
        let thresholds = options.thresholds();
        let CorpusOptions { reading, size, mut run, groups, count, earlier, against, answer, report, .. } = options;
        run.in_order |= asks_for_groups;
        if substring_request.is_some() {
            // A full filter costs time alone, so it never grows beyond the memory.
            run.growth.when_full = run.growth.memory.map(|_| WhenFull::Warn);
            run.growth.memory = run.growth.memory.map(SubstringRequest::seen_memory);
        }
        let memory = match frozen {
            Some(filter) => Memory::Frozen(filter),
            None if against.is_empty() => Memory::from_options(&run, Memory::Fresh { exact: false }),
            None => Memory::Tests(TestSet::new(against, report, groups.id.clone(), answer)),
        };
        let printed = PrintedLines { occurrences: Occurrences::All, counted: count };
        let group_request = asks_for_groups.then(|| GroupRequest::new(groups, printed, rule.near.zip(thresholds)));
        rule.second_hasher = group_request.as_ref().map(|_| exact::second_hasher(size.seed()));
        let print = PrintOptions {
            selected_mark: true,
            kept: true,
            prefix: if count { Prefix::Member } else { Prefix::Nothing },
            total: false,
            write_options: TableOptions { cuts: rule.cuts(), ..run.output.row_options() },
            eol: None,
        };
        let keys = Keys {
            format: LineFormat::plain(reading.line_end()),
            crlf: false,
            kinds: KeyKinds::default(),
            name: rule.name(),
            description: rule.description(),
            nulls: OnError::Fail,
            called: rule.keys(),
            wanted: "text",
            ends: LineEnds::new(run.quiet).into(),
            what: KeySource::Document(rule),
        };
        let reporting = ReportOptions { stats: run.stats, every: None, quiet: run.quiet };
        let (growth, destination) = Destination::from_options(run, None);
        let earlier = EarlierDocuments { named: earlier, inputs: Inputs::default() };
        Self {
            reading,
            keys,
            memory,
            size,
            growth,
            earlier,
            group_request,
            substring_request,
            print,
            destination,
            reporting,
        }
    }

    /// Returns the state, if there is one.
    pub fn state(&self) -> Option<&StateOptions> {
        if let Memory::State(state) = &self.memory { Some(state) } else { None }
    }

    /// Returns the tests, if there are any.
    pub fn tests(&self) -> Option<&TestSet> {
        if let Memory::Tests(tests) = &self.memory { Some(tests) } else { None }
    }

    /// True if the set is on a server.
    pub fn is_shared(&self) -> bool {
        matches!(self.memory, Memory::Server(..))
    }

    /// Returns the files that are written, without the state.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        let outputs = [self.destination.output.file(), self.destination.dupes()].into_iter().flatten();
        outputs.chain(self.reports()).filter(|path| !is_standard(path))
    }

    /// Returns the report files about groups, or about tests.
    pub fn reports(&self) -> impl Iterator<Item = &Path> {
        let of_tests = self.tests().and_then(|tests| tests.report.as_deref());
        self.group_request.iter().flat_map(GroupRequest::paths).chain(of_tests)
    }

    /// Returns the files that are read besides the inputs, and are not changed.
    pub fn other_files(&self) -> impl Iterator<Item = &Path> {
        let of_memory: Vec<&Path> = match &self.memory {
            Memory::Fresh { .. } | Memory::State(_) => Vec::new(),
            Memory::Server(shared, _) => shared.server.files().collect(),
            Memory::Frozen(filter) => vec![filter],
            Memory::Tests(tests) => tests.files.iter().map(PathBuf::as_path).collect(),
        };
        let earlier = self.earlier.inputs.found.iter().map(|input| &*input.path);
        of_memory.into_iter().chain(earlier).chain(self.reading.files_from.as_deref())
    }

    /// Finds the documents of earlier runs. In directories, skips the inputs and the outputs of this run. A directory has no others
    /// in the first run.
    pub fn find_earlier(&mut self, inputs: &Inputs) -> Result<(), Error> {
        if self.earlier.named.is_empty() {
            return Ok(());
        }
        let mut own: Vec<PathBuf> = self.outputs().map(Path::to_owned).collect();
        own.extend(inputs.found.iter().map(|input| input.path.clone()));
        if let Some(folder) = self.destination.folder() {
            let outputs = folder::outputs(folder, &inputs.found, &inputs.folders, self.destination.output.compress)?;
            own.extend(outputs.into_iter().flat_map(|output| [output.whole, output.part]));
        }
        let reading = NamedPaths { paths: &[], list: None, globs: &[], ..self.reading.named_paths() };
        let mut paths = mem::take(&mut self.earlier.named);
        paths.retain(|path| !path.is_dir() || reading.has_inputs(path, &own));
        if paths.is_empty() {
            return Ok(());
        }
        let earlier = Inputs::check(&NamedPaths { paths: &paths, ..reading }, &own, false)?;
        for earlier in &earlier.found {
            let is_same = |input: &&Input| {
                let identity = input.origin.identity();
                identity.is_some() && identity == earlier.origin.identity()
            };
            if inputs.found.iter().any(|input| is_same(&input)) {
                return Err(Error::new(format!(
                    "{} is an input and --earlier, so all of its documents would be removed: name it once",
                    earlier.origin.name()
                )));
            }
        }
        self.earlier.inputs = earlier;
        Ok(())
    }

    /// Returns the files of the state, and the files that are read besides the inputs.
    pub fn own_files(&self) -> Vec<PathBuf> {
        let state = self.state().into_iter().flat_map(|state| files::filter_files(&state.path));
        state.chain(self.other_files().map(Path::to_owned)).collect()
    }

    /// Returns files that are skipped as inputs when directories contain them: the state, other files that are read, the folder of
    /// outputs, and files that this run continues, or empties only on request. Other files that it would empty are refused instead,
    /// because they may be meant as inputs.
    pub fn ignored_files(&self) -> Vec<PathBuf> {
        let mut ignored = self.own_files();
        let continues = self.state().is_some_and(|state| state.resume || state.path.exists());
        if continues || self.destination.force {
            ignored.extend(self.outputs().chain(self.destination.manifest()).map(Path::to_owned));
        }
        ignored.extend(self.destination.folder().map(Path::to_owned));
        ignored
    }
}
