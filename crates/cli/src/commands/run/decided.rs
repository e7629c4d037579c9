//! The decisions of a run in place, in a hidden file. Copies that were cut no longer show that others are repeats, so an
//! interrupted run continues with the decisions that it made before it replaced the first file.
//!
//! The file consists of a line of JSON, a bit for each run of words, and a checksum.

use crate::read::coding::Coding;
use crate::read::compression::Compression;
use crate::read::inputs::Input;
use crate::system::error::Error;
use crate::system::file_lock::FileLock;
use crate::system::files::{self, FileVersion, cannot_write, name, whole};
use crate::system::platform;
use crate::write::atomic_file::AtomicFile;
use bloomline::KeyHasher;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The name of the file, which is hidden as unfinished contents are. Theirs have the name of an input between the dash and the dot.
const NAME: &str = ".bloomline-.part";

/// The length of the checksum.
const CHECKSUM: usize = 8;

/// The decisions about all windows of the inputs.
pub struct Decided {
    head: Head,
    /// A bit for each window, set if it is a repeat.
    pub found: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    /// The options that affect the result.
    options: String,
    windows: u64,
    inputs: Vec<DecidedInput>,
}

#[derive(Serialize, Deserialize)]
struct DecidedInput {
    name: String,
    version: FileVersion,
    /// The number of windows before it.
    start: u64,
}

impl Decided {
    /// Creates the decisions about these inputs. `starts` has the number of windows before each.
    pub fn new(options: String, inputs: &[Input], starts: &[u64], windows: u64, found: Vec<u64>) -> Self {
        let inputs = inputs.iter().zip(starts).map(|(input, &start)| DecidedInput {
            name: name(&whole(&input.path)),
            version: input.version(),
            start,
        });
        Self { head: Head { options, windows, inputs: inputs.collect() }, found }
    }

    /// Returns the path of the file for these inputs, if there are any.
    pub fn path(inputs: &[Input]) -> Option<PathBuf> {
        inputs.first().map(|input| files::folder(&input.path).join(NAME))
    }

    /// Locks the folder of the file, because all runs in a folder have the same file.
    pub fn lock(path: &Path) -> Result<FileLock, Error> {
        let folder = files::folder(path);
        FileLock::on_folder(folder).map_err(files::failed(folder))?.ok_or_else(|| {
            Error::new(format!(
                "cannot replace files in {}: another run is writing to this folder; wait until that run ends",
                name(folder)
            ))
        })
    }

    pub fn windows(&self) -> u64 {
        self.head.windows
    }

    /// Saves the decisions atomically, and syncs them before a file is replaced.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        let folder = files::folder(path);
        let write = || {
            let mut bytes = serde_json::to_vec(&self.head)?;
            bytes.push(b'\n');
            bytes.extend(self.found.iter().flat_map(|word| word.to_le_bytes()));
            bytes.extend(KeyHasher::new(0).bytes(&bytes).to_le_bytes());
            let target = AtomicFile::hidden(path.to_owned(), Compression::new(Coding::Plain));
            files::remove(&target.part)?;
            let mut file = target.open(false)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            drop(file);
            target.commit()?;
            platform::sync_folder(folder)
        };
        write().map_err(cannot_write(&name(path)))
    }

    /// Loads the decisions of an interrupted run, if there are any. Leaves in `inputs` those that were not replaced, and returns the
    /// number of windows before each. Refuses other options and other inputs.
    pub fn load(path: &Path, options: &str, inputs: &mut Vec<Input>) -> Result<Option<(Self, Vec<u64>)>, Error> {
        let refused = |why: &str| {
            Error::new(format!(
                "cannot continue the run that was interrupted while it replaced files: {why}; run the same command again, or \
                 remove {path:?} to start another run, in which the texts that are cut already count as they are"
            ))
        };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(&error.to_string())),
        };
        let decided = Self::parse(&bytes).ok_or_else(|| refused("its decisions are damaged"))?;
        if decided.head.options != options {
            return Err(refused("it has other options"));
        }
        let names = inputs.iter().map(|input| name(&whole(&input.path)));
        if !names.eq(decided.head.inputs.iter().map(|input| input.name.clone())) {
            return Err(refused("it has other inputs"));
        }
        let mut starts = Vec::new();
        let mut left = Vec::new();
        for (input, decided) in inputs.drain(..).zip(&decided.head.inputs) {
            let version = input.version();
            if version == decided.version {
                starts.push(decided.start);
                left.push(input);
            } else if version.identity == decided.version.identity {
                return Err(refused(&format!("{} has changed since", decided.name)));
            }
            // A file that was replaced is another file.
        }
        *inputs = left;
        Ok(Some((decided, starts)))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (bytes, checksum) = bytes.split_at_checked(bytes.len().checked_sub(CHECKSUM)?)?;
        if KeyHasher::new(0).bytes(bytes).to_le_bytes() != checksum {
            return None;
        }
        let end = memchr::memchr(b'\n', bytes)?;
        let head = serde_json::from_slice(&bytes[..end]).ok()?;
        let found = bytes[end + 1..].as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Some(Self { head, found })
    }
}
