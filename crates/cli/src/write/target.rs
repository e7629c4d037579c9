//! An output that is open, before anything is written to it.

use crate::read::FORMAT;
use crate::read::coding::Coding;
use crate::read::compression::Compression;
use crate::read::table::Saved;
use crate::system::error::Error;
use crate::system::file_lock::try_lock;
use crate::system::file_status::FileStatus;
use crate::system::files::{self, NamedFile, cannot_write};
use crate::system::write_watchdog::WatchedFile;
use crate::system::{platform, standard};
use crate::write::atomic_file::{AtomicFile, PUBLIC};
use crate::write::output::Output;
use std::fs::File;
use std::io::{self, IsTerminal, Seek};
use std::path::{Path, PathBuf};

/// A file or standard output that may be written to. Nothing is created or changed before [`start`](Self::start).
pub struct OutputTarget {
    /// Its name, and the identity of the file.
    pub origin: NamedFile,
    /// `None` for standard output.
    path: Option<PathBuf>,
    compression: Compression,
    /// The open file; `None` if the file did not exist and is created by [`start`](Self::start).
    file: Option<File>,
    /// The length of its present contents.
    length: u64,
    /// The path, if this run created the file.
    created: Option<PathBuf>,
}

impl OutputTarget {
    /// Checks `path`, or standard output for `None` or "-", with the requested compression or the one that the name implies. Refuses
    /// a file that is also read or written, by this run or another, and compressed bytes for a terminal.
    pub fn check<'a>(
        path: Option<&Path>,
        compression: Option<Compression>,
        read: impl IntoIterator<Item = &'a NamedFile>,
        written: impl IntoIterator<Item = &'a NamedFile>,
    ) -> Result<Self, Error> {
        let path = path.filter(|path| !files::is_standard(path));
        let name = path.map_or_else(|| "standard output".to_owned(), files::name);
        let compression = Compression::for_output(path, compression)?;
        let file = match path {
            None => Some(standard::output().map_err(cannot_write(&name))?),
            Some(path) => match platform::writer(PUBLIC).open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    files::check_folder(files::folder(path), &name)?;
                    None
                }
                opened => Some(opened.map_err(files::failed(path))?),
            },
        };
        let mut target = Self::new(path, name, compression, file)?;
        target.origin.check_apart(read, written)?;
        if compression.coding != Coding::Plain && target.file.as_ref().is_some_and(File::is_terminal) {
            return Err(Error::new(format!(
                "cannot write compressed lines to {}: it is a terminal; name a file with -o, or leave out --compress",
                target.origin.name()
            )));
        }
        target.lock()?;
        Ok(target)
    }

    /// Opens the new contents of this run's own file, or an earlier run's contents if `continues`. Errors call it `name`.
    pub fn open_part(file: &AtomicFile, name: String, continues: bool) -> Result<Self, Error> {
        let opened = file.open(continues).map_err(|source| match file.part.symlink_metadata() {
            Ok(_) => cannot_write(&name)(source),
            Err(_) => files::no_new_file(&name, files::folder(&file.part))(source),
        })?;
        let mut target = Self::new(Some(&file.part), name, file.compression, Some(opened))?;
        target.created = (!continues).then(|| file.part.clone());
        target.lock()?;
        Ok(target)
    }

    fn new(path: Option<&Path>, name: String, compression: Compression, file: Option<File>) -> Result<Self, Error> {
        let origin = if let Some(file) = &file {
            let status = FileStatus::from_file(file).map_err(cannot_write(&name))?;
            NamedFile::new(name, &status)
        } else {
            NamedFile::from_path(path.unwrap_or(Path::new("-")))
        };
        Ok(Self { origin, path: path.map(Path::to_owned), compression, file, length: 0, created: None })
    }

    /// Takes the lock of a regular file that exists.
    fn lock(&mut self) -> Result<(), Error> {
        let (Some(path), Some(file)) = (&self.path, &self.file) else { return Ok(()) };
        if !self.origin.is_regular() {
            return Ok(());
        }
        // An error of locking is not a conflict.
        if !try_lock(file, path).unwrap_or(true) {
            return Err(files::locked(self.origin.name()));
        }
        // Once locked, the file is this run's alone.
        let metadata = file.metadata().map_err(cannot_write(self.origin.name()))?;
        self.length = metadata.len();
        Ok(())
    }

    /// True if the file has bytes that a run from its start would lose.
    pub fn has_contents(&self) -> bool {
        self.length > 0
    }

    /// Refuses a file that is shorter than `length`.
    pub fn check_length(&self, length: u64) -> Result<(), Error> {
        if (self.file.is_none() || self.origin.is_regular()) && self.length < length {
            return Err(shorter(self.origin.name(), self.length, length));
        }
        Ok(())
    }

    /// Starts the output after the first `length` bytes, and truncates the rest. Creates the file if it does not exist. `table` is the
    /// table so far, if any.
    pub fn start(mut self, length: u64, table: Option<&Saved>) -> Result<Output, Error> {
        self.check_length(length)?;
        let name = self.origin.name().to_owned();
        if self.file.is_none()
            && let Some(path) = &self.path
        {
            let file = platform::writer(PUBLIC).create(true).truncate(false).open(path);
            let file = file.map_err(files::failed(path))?;
            // The path of the file itself, behind all links.
            let created = Some(files::resolved(path));
            self = Self { created, ..Self::new(Some(path), name.clone(), self.compression, Some(file))? };
            self.lock()?;
            if self.has_contents() {
                return Err(Error::new(format!(
                    "cannot write to {name}: another program wrote to it when this run began; choose another file"
                )));
            }
        }
        let Some(mut file) = self.file else { return Err(cannot_write(&name)(io::ErrorKind::NotFound.into())) };
        let regular = self.origin.is_regular();
        if self.path.is_some() && regular {
            let positioned = file.set_len(length).and_then(|()| file.seek(io::SeekFrom::Start(length)));
            positioned.map_err(cannot_write(&name))?;
        }
        let table = table.zip(FORMAT).map(|(saved, format)| format.resume(saved, length)).transpose();
        let table = table.map_err(cannot_write(&name))?;
        let file = WatchedFile::new(file, regular);
        Ok(Output::new(file, name, self.compression, self.path, self.created, length, table))
    }
}

/// Returns the error for an output of `have` bytes whose checkpoint is at `want`.
pub fn shorter(output: &str, have: u64, want: u64) -> Error {
    Error::new(format!(
        "cannot resume: {output} has {have} bytes, but had {want} at the checkpoint; restore it from a copy, \
         or start over with another state, and write to another file"
    ))
}

impl Output {
    /// Opens standard output. Refuses a file that is also an input.
    pub fn standard<'a>(inputs: impl IntoIterator<Item = &'a NamedFile>) -> Result<Self, Error> {
        OutputTarget::check(None, None, inputs, [])?.start(0, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    /// The other runs are refused, and they remove no file.
    #[test]
    fn one_of_simultaneous_runs_creates_the_output() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..500 {
            let path = folder.path().join(round.to_string());
            let (start, end) = (Barrier::new(4), Barrier::new(4));
            let run = || {
                start.wait();
                let target = OutputTarget::check(Some(&path), None, [], []);
                let output = target.and_then(|target| target.start(0, None));
                let is_refusal = |error: &Error| error.to_string().contains("another run is writing to it");
                assert!(output.as_ref().err().is_none_or(is_refusal));
                output.iter().for_each(Output::keep);
                let begun = output.is_ok();
                // Locks are held until all threads have tried.
                end.wait();
                drop(output);
                begun
            };
            let begun = thread::scope(|scope| {
                let runs = [(); 4].map(|()| scope.spawn(run));
                runs.map(|run| run.join().unwrap()).iter().filter(|begun| **begun).count()
            });
            assert_eq!((begun, path.exists()), (1, true), "round {round}");
        }
    }
}
