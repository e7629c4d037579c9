//! A folder of outputs, one for each input.
//!
//! An output is written under another name and renamed once it is whole, so readers never see an incomplete file.

use crate::read::coding::{self, Coding};
use crate::read::compression::Compression;
use crate::read::inputs::{Input, Inputs};
use crate::run::checkpoint::InputProgress;
use crate::system::error::Error;
use crate::system::file_lock::FileLock;
use crate::system::file_status::{FileId, FileStatus};
use crate::system::files::{self, NamedFile, appended, name};
use crate::system::platform;
use crate::write::atomic_file::AtomicFile;
use crate::write::target::shorter;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// A folder that one run at a time writes to.
pub struct OutputFolder {
    path: PathBuf,
    /// Folders in which outputs were begun since the last `sync`.
    unsynced: Mutex<BTreeSet<PathBuf>>,
    /// The lock on the folder itself.
    pub lock: FileLock,
}

impl OutputFolder {
    /// Locks a folder, which is created if it does not exist.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let lock = fs::create_dir_all(path).and_then(|()| FileLock::on_folder(path));
        let lock = lock.map_err(files::failed(path))?.ok_or_else(|| files::locked(&name(path)))?;
        Ok(Self { path: path.to_owned(), unsynced: Mutex::default(), lock })
    }

    /// Records that an output was begun.
    pub fn begun(&self, output: &AtomicFile) {
        let folders = files::folder(&output.part).ancestors().take_while(|folder| folder.starts_with(&self.path));
        self.unsynced().extend(folders.chain([files::folder(&self.path)]).map(Path::to_owned));
    }

    /// Syncs the folders of outputs that were begun, so that their names survive a crash.
    pub fn sync(&self) -> Result<(), Error> {
        mem::take(&mut *self.unsynced()).iter().try_for_each(|folder| sync(folder))
    }

    /// Renames whole outputs. Outputs that were renamed before, even if moved since, are left alone.
    pub fn publish<'a>(&self, whole: impl Iterator<Item = &'a AtomicFile>) -> Result<(), Error> {
        let mut changed = BTreeSet::new();
        for output in whole {
            if publish(output)? {
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
    platform::sync_folder(folder).map_err(files::failed(folder))
}

/// Renames a whole output. False if there is no file under its temporary name.
pub fn publish(output: &AtomicFile) -> Result<bool, Error> {
    match output.commit() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        renamed => renamed.map(|()| true).map_err(files::failed(&output.whole)),
    }
}

/// Returns the outputs of inputs in a folder, which may not exist. The outputs of two inputs, or an output and one of the run's `own`
/// files, must not be the same.
pub fn check_outputs(
    path: &Path,
    inputs: &Inputs,
    compression: Option<Compression>,
    own: &[PathBuf],
) -> Result<Vec<AtomicFile>, Error> {
    let outputs = outputs(path, &inputs.found, &inputs.folders, compression)?;
    let origins: Vec<NamedFile> = own.iter().map(|own| NamedFile::from_path(own)).collect();
    let read = || inputs.found.iter().map(|input| &input.origin).chain(&origins);
    // Sets of identities, because 100,000 outputs would be slow to compare with as many inputs pairwise.
    let known: HashSet<FileId> = read().filter_map(NamedFile::identity).collect();
    let own: Vec<(&PathBuf, PathBuf)> = own.iter().map(|own| (own, files::place(own))).collect();
    // The folder may not exist yet, and its path lead back out of it.
    let resolved = files::resolved(path);
    for output in outputs.iter().flat_map(|output| [&output.whole, &output.part]) {
        let place = resolved.join(output.strip_prefix(path).unwrap_or(output));
        let name_of_file = files::without_case(output.file_name().unwrap_or_default().into());
        let is_same = |own: &Path| own.file_name() == Some(name_of_file.as_os_str()) && own == files::place(&place);
        if let Some((own, _)) = own.iter().find(|(_, own)| is_same(own)) {
            return Err(files::overwrites(&name(output), &name(own)));
        }
        match FileStatus::from_path(&place) {
            Ok(status) => {
                let origin = NamedFile::new(name(output), &status);
                if !origin.is_regular() {
                    return Err(files::not_regular(&name(output)));
                }
                if origin.identity().is_some_and(|identity| known.contains(&identity)) {
                    origin.check_apart(read(), [])?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(files::failed(output)(source)),
        }
    }
    check_creatable(path)?;
    Ok(outputs)
}

/// Refuses a folder that cannot be created, or in which no file can be created.
fn check_creatable(folder: &Path) -> Result<(), Error> {
    let there = folder.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok()).unwrap_or(Path::new("."));
    let there = if there == Path::new("") { Path::new(".") } else { there };
    if there.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        return Err(files::failed(folder)(io::ErrorKind::NotADirectory.into()));
    }
    files::check_folder(there, &name(folder))
}

/// Refuses an output that exists, unless a resumed run left it, or it is an empty file. `reached` is the progress of that run.
pub fn check(output: &AtomicFile, reached: &InputProgress, continues: bool, resume: &str) -> Result<(), Error> {
    let AtomicFile { whole, part, .. } = output;
    if !reached.whole && whole.symlink_metadata().is_ok() {
        return Err(Error::new(format!(
            "refusing to overwrite {whole:?}: it exists; {resume}move it, or write to another folder (--force would replace it)"
        )));
    }
    let begun = if reached.whole { 0 } else { reached.output };
    match part.symlink_metadata() {
        // A run never leaves a link.
        Ok(there) if !there.is_file() || there.len() > 0 && !continues => Err(Error::new(format!(
            "refusing to overwrite {part:?}: it exists, and is not an output that this run continues; {resume}move it, or write to \
             another folder (--force would replace it)"
        ))),
        there => match there.map_or(0, |there| there.len()) {
            have if have < begun => Err(shorter(&name(part), have, begun)),
            _ => Ok(()),
        },
    }
}

/// Removes an existing file under the temporary name of an output that is to be begun. A link is removed, and its target is kept.
pub fn clear(output: &AtomicFile, reached: &InputProgress) -> Result<(), Error> {
    let is_begun = reached.whole || reached.output > 0;
    if is_begun { Ok(()) } else { files::remove(&output.part).map_err(files::failed(&output.part)) }
}

/// Returns the outputs: below `path` as the inputs are below their common folder.
pub fn outputs(
    path: &Path,
    inputs: &[Input],
    folders: &[PathBuf],
    compression: Option<Compression>,
) -> Result<Vec<AtomicFile>, Error> {
    let base = common_ancestor(folders.iter().map(|folder| files::plain(folder)));
    let mut names: HashMap<PathBuf, &Input> = HashMap::new();
    let mut outputs = Vec::new();
    for input in inputs {
        if input.size.is_none() || files::is_standard(&input.path) {
            return Err(Error::new(format!(
                "cannot write the lines of {} to a folder: only regular files have outputs of their own; write to one file with -o",
                input.origin.name()
            )));
        }
        let full = files::plain(&input.path);
        let mut whole = path.join(full.strip_prefix(&base).unwrap_or(&full));
        let compression_by_name = Compression::from_name(&whole)?;
        // A table is compressed column by column.
        let compression = compression.filter(|_| !input.is_table).unwrap_or(compression_by_name);
        if compression.coding != compression_by_name.coding {
            let (mut named, mut number) = (whole.clone(), None);
            if compression_by_name.coding != Coding::Plain {
                // A rotated file keeps its number at the end.
                (named, number) = coding::split_number(&whole);
                named.set_extension("");
            }
            let ending = Some(compression.ending()).filter(|ending| !ending.is_empty());
            for ending in [ending, number].into_iter().flatten() {
                named = appended(&named, &format!(".{ending}"));
            }
            whole = named;
        }
        let output = AtomicFile::resumable(whole, compression);
        for path in [&output.whole, &output.part] {
            match names.entry(files::without_case(path.clone())) {
                Entry::Vacant(free) => _ = free.insert(input),
                Entry::Occupied(taken) => {
                    let (first, second) = (taken.get().origin.name(), input.origin.name());
                    return Err(Error::new(format!(
                        "cannot write to {:?}: it would be the output of both {first} and {second}; name inputs whose outputs \
                         have different names, or run the command for each",
                        output.whole
                    )));
                }
            }
        }
        outputs.push(output);
    }
    for (input, AtomicFile { whole, .. }) in inputs.iter().zip(&outputs) {
        let whole = files::without_case(whole.clone());
        if let Some((output, first)) = whole.ancestors().skip(1).find_map(|folder| names.get_key_value(folder)) {
            let (first, second) = (first.origin.name(), input.origin.name());
            return Err(Error::new(format!(
                "cannot write to {output:?}: it would be the output of {first} and a folder for the output of {second}; name \
                 inputs whose outputs have different names, or run the command for each"
            )));
        }
    }
    Ok(outputs)
}

/// Returns the longest common ancestor of these folders.
fn common_ancestor(mut folders: impl Iterator<Item = PathBuf>) -> PathBuf {
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
        let inputs = Inputs::from_paths(&paths);
        let folders: Vec<PathBuf> = folders.iter().map(|name| folder.path().join(name)).collect();
        let outputs = outputs(Path::new("out"), &inputs.found, &folders, compression.map(Compression::new))?;
        Ok(outputs.iter().map(|output| output.whole.to_str().unwrap().replace('\\', "/")).collect())
    }

    #[test]
    fn outputs_keep_the_paths_below_the_shared_folder() {
        for (files, folders, expected) in [
            (&["a/x", "a/y"][..], &["a", "a"][..], &["out/x", "out/y"][..]),
            (&["a/x", "b/x"], &["a", "b"], &["out/a/x", "out/b/x"]),
            (&["a/b/x", "a/y"], &["a"], &["out/b/x", "out/y"]),
            // Paths below a named folder are relative to it.
            (&["a/b/x"], &["a"], &["out/b/x"]),
            (&["a/b/../x", "a/./y"], &["a/b/..", "a/."], &["out/x", "out/y"]),
        ] {
            assert_eq!(placed(files, folders, None).unwrap(), expected, "{files:?}");
        }
    }

    #[test]
    fn names_follow_the_compression() {
        let names = |compression| placed(&["x.jsonl.gz", "y.ZST", "z", "l.gz.1", "p.1"], &["."], compression).unwrap();
        assert_eq!(names(None), ["out/x.jsonl.gz", "out/y.ZST", "out/z", "out/l.gz.1", "out/p.1"]);
        assert_eq!(
            names(Some(Coding::Zstd)),
            ["out/x.jsonl.zst", "out/y.ZST", "out/z.zst", "out/l.zst.1", "out/p.1.zst"]
        );
        assert_eq!(names(Some(Coding::Plain)), ["out/x.jsonl", "out/y", "out/z", "out/l.1", "out/p.1"]);
    }

    #[test]
    fn outputs_that_need_a_folder_of_the_same_name_are_refused() {
        for (files, compression) in
            [(&["x.part/y", "x"][..], None), (&["x", "x.part/y/z"], None), (&["x.gz", "x/y"], Some(Coding::Plain))]
        {
            let error = placed(files, &["."], compression).unwrap_err().to_string();
            assert!(error.contains("and a folder for the output of"), "{files:?}: {error}");
        }
        placed(&["x.gz", "x/y", "x.parts/z"], &["."], None).unwrap();
    }

    #[test]
    fn inputs_with_the_same_output_are_refused() {
        for (files, compression) in [
            (&["x", "x"][..], None),
            (&["x.gz", "x.zst"], Some(Coding::Plain)),
            (&["x.gz", "x"], Some(Coding::Gzip)),
            (&["x", "x.part"], None),
        ] {
            let error = placed(files, &["."], compression).unwrap_err().to_string();
            assert!(error.contains("it would be the output of both"), "{files:?}: {error}");
        }
        // Only some systems keep both files.
        let both = placed(&["X.gz", "x.zst"], &["."], Some(Coding::Plain));
        assert_eq!(both.is_err_and(|error| error.to_string().contains("output of both")), platform::IGNORES_CASE);
        let error = placed(&["x.zip"], &["."], None).unwrap_err().to_string();
        assert!(error.contains("the format of .zip is not supported"), "{error}");
    }
}
