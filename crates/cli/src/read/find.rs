//! The files that the inputs name: lists are read, and directories are walked.

use crate::read::glob::{self, Glob};
use crate::system::error::Error;
use crate::system::files::{self, NamedFile};
use crate::system::{platform, standard};
use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf, is_separator};
use walkdir::{DirEntry, WalkDir};

/// The paths that the user names, and the filters for directories among them.
#[derive(Default)]
pub struct NamedPaths<'a> {
    /// Files and directories. "-" is standard input.
    pub paths: &'a [PathBuf],
    /// A file that lists more paths, one on each line, or each with a NUL after it.
    pub list: Option<&'a Path>,
    /// Globs that select files by their paths below the named directory.
    pub globs: &'a [Glob],
    /// True if names that begin with a dot are included.
    pub hidden: bool,
    /// True if symbolic links are followed.
    pub follow: bool,
    /// The byte that ends a line. If `None`, the bytes of any format are treated as lines.
    pub line_end: Option<u8>,
}

/// The files that were found.
pub struct FoundFiles {
    /// The files, in the order in which they are read.
    pub files: Vec<PathBuf>,
    /// For each named input, the directory itself or the folder of the file.
    pub folders: Vec<PathBuf>,
    /// The errors of inputs that are left out.
    pub left_out: Vec<String>,
    /// True if the command line names anything other than one file.
    pub several: bool,
    /// True if the command line or the list names a directory.
    pub walks: bool,
}

impl NamedPaths<'_> {
    /// Finds the files. In directories, skips the run's `own` files and files that are named separately or were found before. Fails
    /// if a directory cannot be read, unless `go_on`.
    pub fn find(&self, own: &[NamedFile], go_on: bool) -> Result<FoundFiles, Error> {
        let mut files = Vec::new();
        let mut folders = Vec::new();
        let mut left_out = Vec::new();
        let mut named = self.paths.to_vec();
        match self.list {
            Some(list) => {
                let listed = self.listed(list)?;
                if listed.is_empty() {
                    let error = format!(
                        "{}, the list of --files-from, names no input; write one name on each line",
                        files::input_name(list)
                    );
                    leave_out(&mut left_out, Error::new(error), go_on)?;
                }
                named.extend(listed);
                if files::is_standard(list) && named.iter().any(|path| files::is_standard(path)) {
                    return Err(Error::new(
                        "standard input cannot be both an input and the list of --files-from; name another file for one of them",
                    ));
                }
            }
            None if named.is_empty() => named.push("-".into()),
            None => {}
        }
        let is_folder: Vec<bool> = named.iter().map(|path| !files::is_standard(path) && path.is_dir()).collect();
        let walks = is_folder.contains(&true);
        let several = named.len() > 1 || walks || self.list.is_some();
        let named = || named.iter().zip(is_folder.iter().copied());
        let mut known: Option<HashSet<PathBuf>> = (walks && (named().len() > 1 || self.follow))
            .then(|| named().filter(|(_, is_folder)| !is_folder).map(|(path, _)| files::resolved(path)).collect());
        for (path, is_folder) in named() {
            if !is_folder {
                if !files::is_standard(path) {
                    folders.push(files::folder(path).to_owned());
                }
                files.push(path.clone());
                continue;
            }
            folders.push(path.clone());
            let (mut found, errors) = self.walk(path, own);
            if found.is_empty() && errors.is_empty() {
                let error = format!(
                    "the directory {path:?} has no input files; check --glob, --hidden and --follow, and note that outputs of \
                     this run, tests and files of OLD are not inputs"
                );
                leave_out(&mut left_out, Error::new(error), go_on)?;
            }
            errors.into_iter().try_for_each(|error| leave_out(&mut left_out, error, go_on))?;
            if let Some(known) = &mut known {
                found.retain(|path| known.insert(files::resolved(path)));
            }
            files.append(&mut found);
        }
        Ok(FoundFiles { files, folders, left_out, several, walks })
    }

    /// Returns the paths in a list.
    fn listed(&self, list: &Path) -> Result<Vec<PathBuf>, Error> {
        let name = files::input_name(list);
        let mut bytes = Vec::new();
        let read = if files::is_standard(list) {
            standard::input().and_then(|_| io::stdin().lock().read_to_end(&mut bytes).map(drop))
        } else {
            fs::read(list).map(|read| bytes = read)
        };
        read.map_err(files::cannot_open(&name))?;
        // No name contains a NUL.
        let end = if bytes.contains(&0) { 0 } else { b'\n' };
        let names = bytes.split(|&byte| byte == end);
        let path = |name| {
            platform::listed_path(name).ok_or_else(|| {
                let shown = String::from_utf8_lossy(name);
                Error::new(format!("{list:?}, the list of --files-from, has a name that is not UTF-8: {shown:?}; write the list as UTF-8"))
            })
        };
        let mut paths: Vec<PathBuf> = names.map(path).collect::<Result<_, _>>()?;
        paths.retain(|path| path != Path::new(""));
        Ok(paths)
    }

    /// True if a directory has an input beside the run's `own` files, or cannot be read.
    pub fn has_inputs(&self, folder: &Path, own: &[PathBuf]) -> bool {
        let own: Vec<NamedFile> = own.iter().map(|path| NamedFile::from_path(path)).collect();
        let (files, errors) = self.walk(folder, &own);
        !files.is_empty() || !errors.is_empty()
    }

    /// Returns the regular files in a directory that are not `own`, sorted by the bytes of their paths, and the errors, also
    /// sorted.
    fn walk(&self, folder: &Path, own: &[NamedFile]) -> (Vec<PathBuf>, Vec<Error>) {
        let is_taken = |entry: &DirEntry| {
            let below = entry.path().strip_prefix(folder).expect("a walk finds entries of its directory");
            let hidden = !self.hidden && entry.file_name().as_encoded_bytes().starts_with(b".");
            let taken = !hidden && glob::take(self.globs, below, entry.file_type().is_dir());
            entry.depth() == 0 || taken && !own.iter().any(|own| own.is_at(entry.path(), platform::inode(entry)))
        };
        let (mut files, mut errors) = (Vec::new(), Vec::new());
        let entries = WalkDir::new(folder).follow_links(self.follow).sort_by_file_name();
        for entry in entries.into_iter().filter_entry(is_taken) {
            match entry {
                Ok(entry) if entry.file_type().is_file() => files.push(entry.into_path()),
                // Reading a pipe would block.
                Ok(_) => {}
                Err(error) => {
                    let input = files::name(error.path().unwrap_or(folder));
                    errors.push(match error.loop_ancestor() {
                        Some(folder) => Error::new(format!(
                            "cannot follow {input}: it leads back to {folder:?}, which contains it; remove the link, or leave \
                             out --follow"
                        )),
                        None => files::cannot_open(&input)(own_words(error)),
                    });
                }
            }
        }
        files.sort_unstable_by(|a, b| slashed(a).cmp(slashed(b)));
        (files, errors)
    }
}

/// Returns the bytes of a path, which have the same order on all systems. Paths themselves are compared by their components.
fn slashed(path: &Path) -> impl Iterator<Item = u8> {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    bytes.map(|&byte| if is_separator(byte.into()) { b'/' } else { byte })
}

/// Records the error of an input that is left out, or returns it unless `go_on`.
pub fn leave_out(left_out: &mut Vec<String>, error: Error, go_on: bool) -> Result<(), Error> {
    if !go_on {
        return Err(error);
    }
    left_out.push(error.to_string());
    Ok(())
}

/// Returns the system's error, without the path, which is reported separately.
fn own_words(error: walkdir::Error) -> io::Error {
    error.into_io_error().expect("only a loop is no error of the system")
}
