//! Names and identities of files, and checks of the files that filters are saved to.

use crate::system::error::Error;
use crate::system::file_status::{FileId, FileKind, FileStatus};
use crate::system::{platform, standard};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{self, Component, Path, PathBuf};
use std::time::Duration;

/// As many links as the system follows.
const MAX_LINKS: usize = 40;

/// The name of an input or output for the user, and its identity.
#[derive(Clone)]
pub struct NamedFile {
    name: String,
    /// `None` for devices: a terminal may be input and output at once, and so may `/dev/null`.
    identity: Option<FileId>,
    /// The resolved path of a file that this run may create.
    place: Option<PathBuf>,
    regular: bool,
}

/// The values that change when another process writes to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileVersion {
    pub identity: Option<FileId>,
    pub size: Option<u64>,
    /// The time of the last change since 1970, if the system reports it.
    pub modified: Option<Duration>,
}

impl FileVersion {
    /// Returns the version of the file at a path, if there is one.
    pub fn from_path(path: &Path) -> Option<Self> {
        let FileStatus { identity, len, modified, .. } = FileStatus::from_path(path).ok()?;
        Some(Self { identity, size: Some(len), modified })
    }
}

impl NamedFile {
    /// Describes an open file, by its name for the user.
    pub fn new(name: String, status: &FileStatus) -> Self {
        let identity = status.identity.filter(|_| status.kind != FileKind::Device);
        Self { name, identity, place: None, regular: status.is_regular() }
    }

    /// Describes a file that is opened later and may not exist; "-" is standard input.
    pub fn from_path(path: &Path) -> Self {
        let standard = || FileStatus::from_file(&standard::input()?);
        if let Ok(status) = if is_standard(path) { standard() } else { FileStatus::from_path(path) } {
            return Self::new(input_name(path), &status);
        }
        // The system finds no file behind a folder that this run creates.
        let place = resolved(path);
        match FileStatus::from_path(&place) {
            Ok(status) => Self::new(input_name(path), &status),
            Err(_) => Self { name: input_name(path), identity: None, place: Some(without_case(place)), regular: false },
        }
    }

    /// True if it is the file at a path, which has this inode, if that is known.
    pub fn is_at(&self, path: &Path, inode: Option<u64>) -> bool {
        let may_be = self.identity.is_some_and(|identity| inode.is_none_or(|inode| identity.1 == inode));
        may_be && self.identity == Self::from_path(path).identity
    }

    /// Returns the name for the user.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the identity, unless it is a device or does not exist.
    pub fn identity(&self) -> Option<FileId> {
        self.identity
    }

    /// True for a regular file, which can be read again and never makes its reader wait for a writer.
    pub fn is_regular(&self) -> bool {
        self.regular
    }

    /// Refuses to write to it if it is also read, or written under another name. Pipes and sockets may be read and
    /// written at once, but two outputs to one of them would mix.
    pub fn check_apart<'a>(
        &self,
        read: impl IntoIterator<Item = &'a Self>,
        written: impl IntoIterator<Item = &'a Self>,
    ) -> Result<(), Error> {
        let same = |other: &&Self| {
            self.identity.is_some() && self.identity == other.identity
                || self.place.is_some() && self.place == other.place
        };
        let read = read.into_iter().filter(|other| other.regular || other.place.is_some());
        match read.chain(written).find(same) {
            Some(other) => Err(overwrites(&self.name, &other.name)),
            None => Ok(()),
        }
    }
}

/// Refuses a path to which no filter can be saved, or that is an input, before the inputs are read.
pub fn check_target<'a>(path: &Path, inputs: impl IntoIterator<Item = &'a NamedFile>) -> Result<(), Error> {
    let output = name(path);
    match FileStatus::from_path(path) {
        Ok(status) if !status.is_regular() => Err(not_regular(&output)),
        Ok(status) => {
            NamedFile::new(output.clone(), &status).check_apart(inputs, [])?;
            check_links(&output, status.links)
        }
        // The link itself would be replaced by a file.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => Err(Error::new(format!(
            "cannot write to {output}: it is a symbolic link to a file that does not exist; remove it, or choose another output"
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => NamedFile::from_path(path).check_apart(inputs, []),
        Err(source) => Err(failed(path)(source)),
    }?;
    // A save creates a temporary file there.
    let saved = path.canonicalize().unwrap_or_else(|_| path.into());
    check_folder(folder(&saved), &output)
}

/// Refuses a folder in which no file can be created, for the output of this name. Where the system has files without names, the folder is
/// not changed.
pub fn check_folder(folder: &Path, output: &str) -> Result<(), Error> {
    tempfile::tempfile_in(folder).map(drop).map_err(no_new_file(output, folder))
}

/// Refuses a file with several names, because a save replaces the file under one of them.
fn check_links(output: &str, links: u64) -> Result<(), Error> {
    if links <= 1 {
        return Ok(());
    }
    Err(Error::new(format!(
        "cannot write to {output}: the file has {links} names (hard links), and only this one would have the new contents; make the \
         others symbolic links or copies"
    )))
}

/// Converts an error of the system to one about an input that cannot be opened.
pub fn cannot_open(input: &str) -> impl Fn(io::Error) -> Error {
    move |source| Error::new(format!("cannot open {input}: {source}"))
}

/// Converts an error of the system to one about an output that cannot be opened.
pub fn cannot_write(output: &str) -> impl Fn(io::Error) -> Error {
    move |source| {
        if platform::is_locked(&source) {
            return locked(output);
        }
        Error::new(format!("cannot open {output} for writing: {source}"))
    }
}

/// Returns the error for a file that another run has locked.
pub fn locked(name: &str) -> Error {
    Error::new(format!(
        "cannot write to {name}: another run is writing to it; wait until that run ends, or choose another file"
    ))
}

/// Converts an error of the system to one about a file that cannot be written or created.
pub fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| match path.symlink_metadata() {
        Ok(_) => cannot_write(&name(path))(source),
        Err(_) => no_new_file(&name(path), folder(path))(source),
    }
}

/// Converts an error of the system to one about an output whose folder takes no new file.
pub fn no_new_file(output: &str, folder: &Path) -> impl Fn(io::Error) -> Error {
    move |source| {
        let existing = || folder.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
        let (folder, remedy) = match source.kind() {
            io::ErrorKind::NotFound => (folder, "create the folder, or choose another"),
            io::ErrorKind::PermissionDenied => (existing(), "allow this user to write there, or choose another folder"),
            _ => (existing(), "choose another folder"),
        };
        Error::new(format!(
            "cannot write to {output}: no file can be created in the folder {}: {source}; {remedy}",
            name(folder)
        ))
    }
}

/// Returns the error for an output that is also another file of the run.
pub fn overwrites(output: &str, other: &str) -> Error {
    Error::new(format!(
        "cannot write to {output}: it is also an input, a test, a list, a filter or another output of this run: {other}; choose \
         another file, or exclude this one (in a directory, with --glob '!NAME')"
    ))
}

/// Returns the error for an output that must be a regular file.
pub fn not_regular(output: &str) -> Error {
    Error::new(format!("cannot write to {output}: it is not a regular file; choose another output"))
}

/// Removes a file or link, if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => Ok(()),
        removed => removed,
    }
}

/// Formats a file's name for the user: on one line, even if the name has line breaks.
pub fn name(path: &Path) -> String {
    format!("{path:?}")
}

/// Formats the name of an input for the user.
pub fn input_name(path: &Path) -> String {
    if is_standard(path) { "standard input".to_owned() } else { name(path) }
}

/// Returns the bytes of a path that is not UTF-8, in hexadecimal.
pub fn hex(path: &Path) -> Option<String> {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.to_str().is_none().then(|| bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Formats the members of a JSON object that identify a file: its name and, if that is not UTF-8, its bytes.
pub fn members(path: &Path) -> String {
    let hex = hex(path).map_or(String::new(), |hex| format!(",\"file_hex\":\"{hex}\""));
    format!("\"file\":{}{hex}", Value::from(path.to_string_lossy()))
}

/// True if the path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Returns the folder that a file is in.
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// Resolves the folder of a path, but no link that it leads to.
pub fn whole(path: &Path) -> PathBuf {
    path.file_name().map_or_else(|| path.into(), |name| resolved(folder(path)).join(name))
}

/// Resolves a path: `.`, `..` and links as far as they exist. Its folders need not exist.
pub fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| follow(&path::absolute(path).unwrap_or_else(|_| path.into()), MAX_LINKS))
}

/// Returns a path in lowercase if most file systems have one file for names that differ in case.
pub fn without_case(path: PathBuf) -> PathBuf {
    if platform::IGNORES_CASE { path.to_string_lossy().to_lowercase().into() } else { path }
}

/// Returns the place of a file that may not exist, the same for every path to it.
pub fn place(path: &Path) -> PathBuf {
    without_case(resolved(path))
}

/// Resolves an absolute path part by part. Follows up to this number of links.
fn follow(path: &Path, links: usize) -> PathBuf {
    let mut resolved = PathBuf::new();
    let mut parts = path.components();
    while let Some(part) = parts.next() {
        if part == Component::ParentDir {
            resolved.pop();
            continue;
        }
        let link = resolved.join(part);
        match link.read_link() {
            Ok(target) if links > 0 => return follow(&resolved.join(target).join(parts.as_path()), links - 1),
            _ => resolved = link,
        }
    }
    resolved
}

/// Makes a path absolute, without `.` and `..`. Links are not resolved.
pub fn plain(path: &Path) -> PathBuf {
    let full = path::absolute(path).unwrap_or_else(|_| path.into());
    full.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => _ = plain.pop(),
            part => plain.push(part),
        }
        plain
    })
}

/// Appends to the last component of a path.
pub fn appended(path: &Path, end: &str) -> PathBuf {
    let mut path = OsString::from(path);
    path.push(end);
    path.into()
}

/// Returns the lock file of a filter's file, the same for every path to it.
pub fn lock_of(filter: &Path) -> PathBuf {
    appended(&resolved(filter), ".lock")
}

/// Returns the file of the checkpoints of a run with this state, the same for every link to it.
pub fn checkpoints_of(state: &Path) -> PathBuf {
    let state = if state.is_symlink() { resolved(state) } else { state.into() };
    appended(&state, ".resume")
}

/// Returns the file of a filter, and the files that may exist beside it.
pub fn filter_files(filter: &Path) -> [PathBuf; 3] {
    [filter.into(), lock_of(filter), checkpoints_of(filter)]
}
