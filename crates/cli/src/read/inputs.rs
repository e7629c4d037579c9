//! Inputs: all are found, opened and checked before the first byte is read.

use crate::read::coding::{self, Coding};
use crate::read::contents::{self, FileSource};
use crate::read::find::{self, FoundFiles, NamedPaths};
use crate::read::foreign;
use crate::read::header::ExpectedHeader;
use crate::system::error::Error;
use crate::system::file_status::{FileKind, FileStatus};
use crate::system::files::{self, FileVersion, NamedFile};
use crate::system::{pipe, platform, standard};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The number of bytes of a compressed file that are read at once.
const BUFFER: usize = 1 << 17;

/// The inputs of a run.
#[derive(Default)]
pub struct Inputs {
    /// The inputs that can be opened, in order.
    pub found: Vec<Input>,
    /// The errors of the other inputs, which are left out.
    pub left_out: Vec<String>,
    /// For each named input, the directory itself or the folder of the file.
    pub folders: Vec<PathBuf>,
    /// True if the command line names anything other than one file.
    pub several: bool,
    /// True if a directory is among the named inputs.
    pub walks: bool,
    /// The number of bytes read of all inputs, before decompression.
    pub read: Arc<AtomicU64>,
}

/// An input that could be opened.
#[derive(Clone)]
pub struct Input {
    /// The input's name and the identity of its file.
    pub origin: NamedFile,
    /// The path, or "-".
    pub path: PathBuf,
    /// A file that can be opened only once, and the position from which it is read, or `None` for the current one. Named regular
    /// files are reopened when they are read, so that thousands of them do not exhaust the file descriptors.
    file: Option<(Arc<File>, Option<u64>)>,
    /// The size in bytes of a regular file, which can be read again; else `None`.
    pub size: Option<u64>,
    /// True for a regular file that is compressed by its first bytes.
    compressed: bool,
    /// True for a table, which has rows instead of lines.
    pub is_table: bool,
    /// The time of the last change since 1970, if the system reports it.
    pub modified: Option<Duration>,
    /// The end of lines, if formats without lines are refused.
    pub line_end: Option<u8>,
    /// The header that the input must have, if it must equal those of other inputs.
    pub header: Option<Arc<ExpectedHeader>>,
    /// The number of bytes read of all inputs.
    pub read: Arc<AtomicU64>,
    /// A temporary file that receives a copy of the bytes read.
    copy: Option<Arc<File>>,
}

/// An input that is being read.
pub struct OpenedInput {
    /// The contents, decompressed.
    pub contents: Box<dyn Read + Send>,
    /// True for a regular file, which never blocks its reader.
    pub regular: bool,
}

impl Inputs {
    /// Finds the named files, and checks that each can be opened. Fails if one cannot, unless `go_on`. In directories, skips the
    /// run's `own` files, standard output and standard error.
    pub fn check(named: &NamedPaths, own: &[PathBuf], go_on: bool) -> Result<Self, Error> {
        let standard = [platform::duplicate(io::stdout()), platform::duplicate(io::stderr())];
        let standard = standard.into_iter().filter_map(|file| FileStatus::from_file(&file.ok()?).ok());
        let standard = standard.map(|status| NamedFile::new(String::new(), &status));
        let own: Vec<NamedFile> = own.iter().map(|path| NamedFile::from_path(path)).chain(standard).collect();
        let FoundFiles { files, folders, mut left_out, several, walks } = named.find(&own, go_on)?;
        let (mut found, read) = (Vec::new(), Arc::default());
        for path in files {
            match Input::check(path, named.line_end, &read) {
                Ok(input) => found.push(input),
                Err(error) => find::leave_out(&mut left_out, error, go_on)?,
            }
        }
        Ok(Self { found, left_out, folders, several, walks, read })
    }

    /// Returns the first input with lines.
    pub fn first_with_lines(&self) -> Option<&Input> {
        self.found.iter().find(|input| !input.is_table)
    }

    /// Returns the first table.
    pub fn first_table(&self) -> Option<&Input> {
        self.found.iter().find(|input| input.is_table)
    }

    /// Returns these inputs, and the same inputs to be read again after them. Inputs that can be read only once are copied as they
    /// are read.
    pub fn with_second_reading(self) -> io::Result<(Self, Self)> {
        let Self { mut found, left_out, folders, several, walks, read } = self;
        let second = found.iter_mut().map(|input| if input.size.is_some() { input.reopen() } else { input.copied() });
        let second = Self { found: second.collect::<io::Result<_>>()?, read: read.clone(), several, ..Self::default() };
        Ok((Self { found, left_out, folders, several, walks, read }, second))
    }

    /// Adds inputs that are read before these. Returns their number.
    pub fn prepend(&mut self, others: Self) -> usize {
        let read = &self.read;
        let count = others.found.len();
        let others = others.found.into_iter().map(|input| Input { read: Arc::clone(read), ..input });
        self.found.splice(..0, others);
        count
    }

    /// Sets the sizes of the copies, once they are complete.
    pub fn measure(&mut self) -> io::Result<()> {
        self.found.iter_mut().filter(|input| input.size.is_none()).try_for_each(|input| {
            input.size = Some(input.with_file(File::metadata)?.len());
            Ok(())
        })
    }

    /// Returns the versions of the named files, as they were found.
    pub fn versions(&self) -> Vec<(PathBuf, FileVersion)> {
        let named = self.found.iter().filter(|input| input.file.is_none());
        named.map(|input| (input.path.clone(), input.version())).collect()
    }

    /// Returns inputs for files that can be opened.
    #[cfg(test)]
    pub fn from_paths(paths: &[PathBuf]) -> Self {
        Self::check(&NamedPaths { paths, ..NamedPaths::default() }, &[], false).unwrap()
    }
}

impl Input {
    /// Checks that a file can be opened, is not a directory, and has lines, if their end is given.
    fn check(path: PathBuf, line_end: Option<u8>, read: &Arc<AtomicU64>) -> Result<Self, Error> {
        let stdin = files::is_standard(&path);
        let open = || {
            let file = if stdin { standard::input()? } else { File::open(&path)? };
            let status = FileStatus::from_file(&file)?;
            if status.kind == FileKind::Folder {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let mut head = [0; foreign::HEAD];
            // An error is reported when the file is read.
            let length = if status.is_regular() { coding::read_head(&file, &mut head).unwrap_or(0) } else { 0 };
            let head = &head[..length];
            let coding = Coding::from_head(head);
            let plain_end = line_end.filter(|_| coding == Coding::Plain);
            let format = plain_end.and_then(|end| foreign::detect_file(&path, head, end));
            let is_table = cfg!(feature = "parquet") && format == Some(foreign::TABLE);
            if !is_table && let Some(format) = format {
                return Err(foreign::refused(format));
            }
            Ok((file, status, coding != Coding::Plain, is_table))
        };
        let (file, status, compressed, is_table) = open().map_err(files::cannot_open(&files::input_name(&path)))?;
        let file = (!status.is_regular() || stdin).then(|| (file.into(), None));
        let origin = NamedFile::new(files::input_name(&path), &status);
        let size = origin.is_regular().then_some(status.len);
        Ok(Self {
            origin,
            path,
            file,
            size,
            compressed,
            is_table,
            modified: status.modified,
            line_end,
            header: None,
            read: read.clone(),
            copy: None,
        })
    }

    /// Returns the version of the file when it was found.
    pub fn version(&self) -> FileVersion {
        FileVersion { identity: self.origin.identity(), size: self.size, modified: self.modified }
    }

    /// Returns the same input, to be read again after this one. It must be a regular file.
    pub fn reopen(&self) -> io::Result<Self> {
        let with_start = |(file, start): &(Arc<File>, Option<u64>)| {
            let start = start.map_or_else(|| file.clone().stream_position(), Ok)?;
            Ok::<_, io::Error>((file.clone(), Some(start)))
        };
        let file = self.file.as_ref().map(with_start).transpose()?;
        Ok(Self { file, copy: None, ..self.clone() })
    }

    /// Reads the start of a regular file. Later reads are not affected.
    pub fn peek<T>(&self, read_from: impl FnOnce(Self) -> io::Result<T>) -> io::Result<T> {
        let reopened = Self { header: None, read: Arc::default(), ..self.reopen()? };
        let start = reopened.file.as_ref().and_then(|(_, start)| *start);
        let result = read_from(reopened);
        if let Some((file, None)) = &self.file
            && let Some(start) = start
        {
            (&**file).seek(SeekFrom::Start(start))?;
        }
        result
    }

    /// Returns a temporary file that receives a copy of this input, as an input. Its size is not yet known.
    fn copied(&mut self) -> io::Result<Self> {
        let copy = Arc::new(tempfile::tempfile()?);
        self.copy = Some(copy.clone());
        Ok(Self { file: Some((copy, Some(0))), copy: None, ..self.clone() })
    }

    /// Calls `read_from` with the file.
    pub fn with_file<T>(&self, read_from: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        match &self.file {
            Some((file, _)) => read_from(file),
            None => read_from(&File::open(&self.path)?),
        }
    }

    /// True for a compressed file, which takes a core to read. Standard input does not count.
    pub fn is_compressed(&self) -> bool {
        self.compressed && self.file.is_none()
    }

    /// Opens the input at the byte `start` of its contents.
    pub fn open(self, start: u64) -> io::Result<OpenedInput> {
        let named = Coding::from_ending(&coding::ending(&self.path));
        let file = match self.file {
            Some((mut file, position)) => {
                position.map_or(Ok(0), |position| file.seek(SeekFrom::Start(position)))?;
                file
            }
            None => {
                let mut file = File::open(self.path)?;
                // On macOS, `/dev/stdin` is standard input itself, whose position an earlier reading has moved.
                self.size.map_or(Ok(0), |_| file.seek(SeekFrom::Start(0)))?;
                file.into()
            }
        };
        if self.size.is_none() {
            pipe::enlarge(&file);
        }
        let source = FileSource { file, read: self.read, copy: self.copy, line_end: self.line_end, named };
        Ok(OpenedInput { contents: contents::open(source, start, BUFFER)?, regular: self.size.is_some() })
    }
}
