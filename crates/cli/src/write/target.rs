//! An output that is open, before anything is written to it.

use crate::read::FORMAT;
use crate::read::coding::Coding;
use crate::read::table::Saved;
use crate::system::error::Error;
use crate::system::file_lock::{self, try_lock};
use crate::system::files::{self, NamedFile, cannot_write};
use crate::system::write_watchdog::WatchedFile;
use crate::write::atomic_file::AtomicFile;
use crate::write::encode::Compression;
use crate::write::output::Output;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True if standard output was closed at the start. Relaxed: it is set before there are threads.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// The system's error for a closed descriptor: EBADF.
const BAD_DESCRIPTOR: i32 = 9;

/// Records whether standard output is closed.
pub fn check_standard() {
    if io::stdout().as_fd().try_clone_to_owned().is_err() {
        CLOSED.store(true, Relaxed);
    }
}

/// Standard output, unless it is closed.
fn standard() -> io::Result<File> {
    if CLOSED.load(Relaxed) {
        return Err(io::Error::from_raw_os_error(BAD_DESCRIPTOR));
    }
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// An open file or standard output. Its contents are kept until [`start`](Self::start), so all that can fail is done before.
pub struct OutputTarget {
    /// Its name, and the identity of the file.
    pub origin: NamedFile,
    file: File,
    path: Option<PathBuf>,
    compression: Compression,
    /// The length of its present contents.
    length: u64,
    /// The path, if this run created the file: it is removed again if the output is never started.
    created: Option<PathBuf>,
}

impl OutputTarget {
    /// Opens `path`, or standard output for `None` or "-", with the compression that is asked for or that the name implies. Refuses
    /// a file that is also read or written, by this run or another, and compressed bytes for a terminal.
    pub fn open<'a>(
        path: Option<&Path>,
        compression: Option<Compression>,
        read: impl IntoIterator<Item = &'a NamedFile>,
        written: impl IntoIterator<Item = &'a NamedFile>,
    ) -> Result<Self, Error> {
        let path = path.filter(|path| !files::is_standard(path));
        let name = path.map_or_else(|| "standard output".to_owned(), files::name);
        let compression = Compression::for_output(path, compression)?;
        let open = || {
            let Some(path) = path else { return Ok((standard()?, None)) };
            let exists = path.exists();
            let file = File::options().write(true).create(true).truncate(false).open(path)?;
            // The name of the file itself, should a link lead to it.
            Ok((file, if exists { None } else { Some(path.canonicalize()?) }))
        };
        let (file, created) = open().map_err(|source| match path {
            Some(path) => files::failed(path)(source),
            None => cannot_write(&name)(source),
        })?;
        let target = Self::for_file(file, path, name, compression, created)?;
        target.origin.check_apart(read, written)?;
        if compression.coding != Coding::Plain && target.file.is_terminal() {
            return Err(Error::new(format!(
                "cannot write compressed lines to {}: it is a terminal; name a file with -o, or leave out --compress",
                target.origin.name()
            )));
        }
        target.lock()
    }

    /// Opens the new contents of this run's own file, or an earlier run's contents if `continues`. Errors call it `name`.
    pub fn open_part(file: &AtomicFile, name: String, continues: bool) -> Result<Self, Error> {
        let opened = file.open(continues).map_err(|source| match file.part.symlink_metadata() {
            Ok(_) => cannot_write(&name)(source),
            Err(_) => files::no_new_file(&name, files::folder(&file.part))(source),
        })?;
        let created = (!continues).then(|| file.part.clone());
        Self::for_file(opened, Some(&file.part), name, file.compression, created)?.lock()
    }

    fn for_file(
        file: File,
        path: Option<&Path>,
        name: String,
        compression: Compression,
        created: Option<PathBuf>,
    ) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(cannot_write(&name))?;
        let origin = match path {
            Some(path) => NamedFile::at(path, name, &metadata),
            None => NamedFile::new(name, &metadata),
        };
        Ok(Self { origin, file, path: path.map(Path::to_owned), compression, length: 0, created })
    }

    /// Takes the lock of a regular file.
    fn lock(self) -> Result<Self, Error> {
        let mut target = self;
        if let Some(path) = target.path.as_ref().filter(|_| target.origin.is_regular()) {
            // An error of locking is not a conflict. A run that created the file but did not start the output may have removed it since.
            if !try_lock(&target.file, path).unwrap_or(true) {
                target.created = None;
                return Err(file_lock::locked(target.origin.name()));
            }
            // Once locked, the file is this run's alone.
            let metadata = target.file.metadata().map_err(cannot_write(target.origin.name()))?;
            target.length = metadata.len();
        }
        Ok(target)
    }

    /// True if the file has bytes that a run from its start would lose.
    pub fn has_contents(&self) -> bool {
        self.length > 0
    }

    /// Refuses a file that is shorter than `length`.
    pub fn check_length(&self, length: u64) -> Result<(), Error> {
        if self.origin.is_regular() && self.length < length {
            return Err(shorter(self.origin.name(), self.length, length));
        }
        Ok(())
    }

    /// Starts the output after the first `length` bytes, and truncates the rest. `table` is the table so far, if any.
    pub fn start(mut self, length: u64, table: Option<&Saved>) -> Result<Output, Error> {
        self.check_length(length)?;
        let name = self.origin.name().to_owned();
        let mut file = self.file.try_clone().map_err(cannot_write(&name))?;
        let regular = self.origin.is_regular();
        if self.path.is_some() && regular {
            let positioned = file.set_len(length).and_then(|()| file.seek(io::SeekFrom::Start(length)));
            positioned.map_err(cannot_write(&name))?;
        }
        let table = table.zip(FORMAT).map(|(saved, format)| format.resume(saved, length)).transpose();
        let table = table.map_err(cannot_write(&name))?;
        let created = self.created.take();
        let path = self.path.take();
        Ok(Output::new(WatchedFile::new(file, regular), name, self.compression, path, created, length, table))
    }
}

/// Returns the error for an output of `have` bytes whose checkpoint is at `want`.
pub fn shorter(output: &str, have: u64, want: u64) -> Error {
    Error::new(format!(
        "cannot resume: {output} has {have} bytes, but had {want} at the checkpoint; restore it from a copy, \
         or start over with another state, and write to another file"
    ))
}

impl Drop for OutputTarget {
    fn drop(&mut self) {
        if let Some(path) = &self.created
            && self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
        {
            // Not worth a message beside the error that caused it.
            let _ = fs::remove_file(path);
        }
    }
}

impl Output {
    /// Opens standard output. Refuses a file that is also an input.
    pub fn standard<'a>(inputs: impl IntoIterator<Item = &'a NamedFile>) -> Result<Self, Error> {
        OutputTarget::open(None, None, inputs, [])?.start(0, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    /// The others are refused, and remove nothing.
    #[test]
    fn of_runs_that_begin_at_once_one_makes_the_output() {
        let folder = tempfile::tempdir().unwrap();
        for round in 0..500 {
            let path = folder.path().join(round.to_string());
            let (start, end) = (Barrier::new(4), Barrier::new(4));
            let run = || {
                start.wait();
                let opened = OutputTarget::open(Some(&path), None, [], []);
                let is_refusal = |error: &Error| error.to_string().contains("another run is writing to it");
                assert!(opened.as_ref().err().is_none_or(is_refusal));
                let begun = opened.is_ok();
                let output = opened.and_then(|target| target.start(0, None));
                output.iter().for_each(Output::keep);
                // Locks are held until all have tried.
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
