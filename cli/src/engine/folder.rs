//! A folder of outputs, one for each input.
//!
//! An output is written under another name, and gets its own once it is whole. So whoever sees it sees all of it.

use crate::encode::Compression;
use crate::engine::checkpoint::Mark;
use crate::error::Error;
use crate::files::{self, Identity, Origin, appended, name};
use crate::input::decode::Coding;
use crate::input::inputs::{Input, Inputs};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// What follows the name of an output that is not whole.
const PART: &str = ".part";

/// Where an output is, and how it is compressed.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputPath {
    /// Its name.
    pub whole: PathBuf,
    /// Its name while it is written.
    pub part: PathBuf,
    /// How it is compressed.
    pub compression: Compression,
}

/// A folder that one run at a time writes to.
pub struct Folder {
    path: PathBuf,
    /// Where the output of each input is, in the order of the inputs.
    pub outputs: Vec<OutputPath>,
    /// Folders in which outputs were begun since the last `sync`.
    unsynced: Mutex<BTreeSet<PathBuf>>,
    /// Holds the lock until it is dropped. `None` where the file system has none.
    _lock: Option<File>,
}

impl Folder {
    /// Takes a folder, which is made if it is not there. The outputs of two inputs, or an output and one of the files that the run
    /// keeps for `own` use, must not be the same.
    pub fn open(
        path: &Path,
        inputs: &Inputs,
        compression: Option<Compression>,
        own: &[PathBuf],
    ) -> Result<Self, Error> {
        let outputs = outputs(path, &inputs.found, &inputs.folders, compression)?;
        let origins: Vec<Origin> = own.iter().map(|own| Origin::of(own)).collect();
        let read = || inputs.found.iter().map(|input| &input.origin).chain(&origins);
        // A hundred thousand outputs are not compared with as many inputs one by one.
        let known: HashSet<Identity> = read().filter_map(Origin::identity).collect();
        for path in outputs.iter().flat_map(OutputPath::paths) {
            let same = |own: &Path| own.file_name() == path.file_name() && files::real(own) == files::real(path);
            if let Some(own) = own.iter().find(|own| same(own)) {
                return Err(Error::Overwrite { input: name(own), output: name(path) });
            }
            match fs::metadata(path) {
                Ok(metadata) => {
                    let origin = Origin::new(name(path), &metadata);
                    if !origin.is_regular() {
                        return Err(Error::NotRegular { output: name(path) });
                    }
                    if origin.identity().is_some_and(|identity| known.contains(&identity)) {
                        origin.check_apart(read(), [])?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(Error::Create { output: name(path), source }),
            }
        }
        fs::create_dir_all(path).map_err(|source| Error::Create { output: name(path), source })?;
        Ok(Self { path: path.to_owned(), outputs, unsynced: Mutex::default(), _lock: lock(path)? })
    }

    /// Takes note of an output that was begun.
    pub fn begun(&self, output: &OutputPath) {
        let folders = files::folder(&output.part).ancestors().take_while(|folder| folder.starts_with(&self.path));
        self.unsynced().extend(folders.chain([files::folder(&self.path)]).map(Path::to_owned));
    }

    /// Makes the outputs that have begun safe from a crash, as far as that is up to their folders.
    pub fn sync(&self) -> Result<(), Error> {
        mem::take(&mut *self.unsynced()).iter().try_for_each(|folder| sync(folder))
    }

    /// Gives whole outputs their names. Those that have theirs, or were moved away since, stay as they are.
    pub fn publish<'a>(&self, whole: impl Iterator<Item = &'a OutputPath>) -> Result<(), Error> {
        let mut changed = BTreeSet::new();
        for output in whole {
            if output.publish()? {
                changed.insert(files::folder(&output.whole));
            }
        }
        changed.into_iter().try_for_each(sync)
    }

    fn unsynced(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.unsynced.lock().expect("no thread panics while it has this")
    }
}

fn sync(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| Error::Create { output: name(folder), source })
}

impl OutputPath {
    /// Refuses what is there, unless a run that goes on left it, or it is an empty file. `mark` says how far that run was.
    pub fn check(&self, mark: &Mark, goes_on: bool, resume: &'static str) -> Result<(), Error> {
        let Self { whole, part, .. } = self;
        if !mark.whole && whole.symlink_metadata().is_ok() {
            return Err(Error::Existing { output: name(whole), resume });
        }
        let begun = if mark.whole { 0 } else { mark.output };
        match part.symlink_metadata() {
            // A link is none that a run left.
            Ok(there) if !there.is_file() || there.len() > 0 && !goes_on => {
                Err(Error::Begun { output: name(part), resume })
            }
            there => match there.map_or(0, |there| there.len()) {
                have if have < begun => Err(Error::Shorter { output: name(part), have, want: begun }),
                _ => Ok(()),
            },
        }
    }

    /// Removes what is there under the name of an output that is to be begun. A link goes, and what it leads to stays.
    pub fn clear(&self, mark: &Mark) -> Result<(), Error> {
        if mark.whole || mark.output > 0 {
            return Ok(());
        }
        match fs::remove_file(&self.part) {
            Err(error) if ![io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                Err(Error::Create { output: name(&self.part), source: error })
            }
            _ => Ok(()),
        }
    }

    /// Gives a whole output its name; `false` if it is not here by the other one.
    pub fn publish(&self) -> Result<bool, Error> {
        match fs::rename(&self.part, &self.whole) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            renamed => renamed.map(|()| true).map_err(|source| Error::Create { output: name(&self.whole), source }),
        }
    }

    fn paths(&self) -> [&Path; 2] {
        [&self.whole, &self.part]
    }
}

/// The lock is the system's, on the folder itself, and goes with the process.
fn lock(path: &Path) -> Result<Option<File>, Error> {
    let folder = File::open(path).map_err(|source| Error::Create { output: name(path), source })?;
    match folder.try_lock() {
        Ok(()) => Ok(Some(folder)),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { file: name(path) }),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        Err(TryLockError::Error(source)) => Err(Error::Create { output: name(path), source }),
    }
}

/// Where the outputs are: below `path` as the inputs are below the folder that all of them share.
pub fn outputs(
    path: &Path,
    inputs: &[Input],
    folders: &[PathBuf],
    compression: Option<Compression>,
) -> Result<Vec<OutputPath>, Error> {
    let base = common(folders.iter().map(|folder| files::plain(folder)));
    let mut names: HashMap<PathBuf, &Input> = HashMap::new();
    let mut outputs = Vec::new();
    for input in inputs {
        if input.size.is_none() || files::is_standard(&input.path) {
            return Err(Error::Nameless { input: input.origin.name().to_owned() });
        }
        let full = files::plain(&input.path);
        let mut whole = path.join(full.strip_prefix(&base).unwrap_or(&full));
        let of_name = Compression::of_name(&whole)?;
        // A table is compressed column by column.
        let compression = compression.filter(|_| !input.is_table).unwrap_or(of_name);
        if compression.coding != of_name.coding {
            if of_name.coding != Coding::Plain {
                whole.set_extension("");
            }
            if compression.coding != Coding::Plain {
                whole = appended(&whole, &format!(".{}", compression.ending()));
            }
        }
        let part = appended(&whole, PART);
        for path in [&whole, &part] {
            match names.entry(path.clone()) {
                Entry::Vacant(free) => _ = free.insert(input),
                Entry::Occupied(taken) => {
                    let first = taken.get().origin.name().to_owned();
                    return Err(Error::Meeting { first, second: input.origin.name().to_owned(), output: name(&whole) });
                }
            }
        }
        outputs.push(OutputPath { whole, part, compression });
    }
    for (input, OutputPath { whole, .. }) in inputs.iter().zip(&outputs) {
        let folders = whole.ancestors().skip(1);
        if let Some((output, first)) = folders.filter_map(|folder| names.get_key_value(folder)).next() {
            let (first, second) = (first.origin.name().to_owned(), input.origin.name().to_owned());
            return Err(Error::Below { first, second, output: name(output) });
        }
    }
    Ok(outputs)
}

/// The longest folder that all of them are in.
fn common(mut folders: impl Iterator<Item = PathBuf>) -> PathBuf {
    let first = folders.next().unwrap_or_default();
    folders.fold(first, |base, folder| {
        base.components().zip(folder.components()).take_while(|(a, b)| a == b).map(|(part, _)| part).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(files: &[&str], folders: &[&str], compression: Option<Coding>) -> Result<Vec<String>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = files.iter().map(|file| folder.path().join(file)).collect();
        for path in &paths {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let inputs = Inputs::of(&paths);
        let folders: Vec<PathBuf> = folders.iter().map(|name| folder.path().join(name)).collect();
        let outputs = outputs(Path::new("out"), &inputs.found, &folders, compression.map(Compression::of))?;
        Ok(outputs.iter().map(|output| output.whole.to_str().unwrap().to_owned()).collect())
    }

    #[test]
    fn outputs_keep_the_paths_below_the_shared_folder() {
        for (files, folders, expected) in [
            (&["a/x", "a/y"][..], &["a", "a"][..], &["out/x", "out/y"][..]),
            (&["a/x", "b/x"], &["a", "b"], &["out/a/x", "out/b/x"]),
            (&["a/b/x", "a/y"], &["a"], &["out/b/x", "out/y"]),
            // A folder that is named keeps what is in it apart, whatever else there is.
            (&["a/b/x"], &["a"], &["out/b/x"]),
            (&["a/b/../x", "a/./y"], &["a/b/..", "a/."], &["out/x", "out/y"]),
        ] {
            assert_eq!(placed(files, folders, None).unwrap(), expected, "{files:?}");
        }
    }

    #[test]
    fn names_follow_the_compression() {
        let names = |compression| placed(&["x.jsonl.gz", "y.ZST", "z"], &["."], compression).unwrap();
        assert_eq!(names(None), ["out/x.jsonl.gz", "out/y.ZST", "out/z"]);
        assert_eq!(names(Some(Coding::Zstd)), ["out/x.jsonl.zst", "out/y.ZST", "out/z.zst"]);
        assert_eq!(names(Some(Coding::Plain)), ["out/x.jsonl", "out/y", "out/z"]);
    }

    #[test]
    fn no_output_is_the_folder_of_another() {
        for (files, compression) in
            [(&["x.part/y", "x"][..], None), (&["x", "x.part/y/z"], None), (&["x.gz", "x/y"], Some(Coding::Plain))]
        {
            assert!(matches!(placed(files, &["."], compression), Err(Error::Below { .. })), "{files:?}");
        }
        placed(&["x.gz", "x/y", "x.parts/z"], &["."], None).unwrap();
    }

    #[test]
    fn outputs_do_not_meet() {
        for (files, compression) in [
            (&["x", "x"][..], None),
            (&["x.gz", "x.zst"], Some(Coding::Plain)),
            (&["x.gz", "x"], Some(Coding::Gzip)),
            (&["x", "x.part"], None),
        ] {
            assert!(matches!(placed(files, &["."], compression), Err(Error::Meeting { .. })), "{files:?}");
        }
        assert!(matches!(placed(&["x.zip"], &["."], None), Err(Error::ForeignOutput { .. })));
    }
}
