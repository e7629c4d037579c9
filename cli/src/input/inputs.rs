//! Inputs: found, opened and checked all at once, before the first byte is read.

use crate::error::Error;
use crate::files::{self, Origin};
use crate::input::contents::{self, Source};
use crate::input::decode::{self, Coding};
use crate::input::find::{self, Found, Named};
use crate::input::foreign;
use crate::input::header::Expected;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, UNIX_EPOCH};

/// Bytes of a compressed file that are read at once.
const BUFFER: usize = 1 << 17;

/// The inputs of a run.
#[derive(Default)]
pub struct Inputs {
    /// Those that can be opened, in order.
    pub found: Vec<Input>,
    /// What failed of the others, which are left out.
    pub left_out: Vec<String>,
    /// For each input that is named: the directory itself, or the folder of the file.
    pub folders: Vec<PathBuf>,
    /// Whether the command line names something else than one file.
    pub several: bool,
    /// Bytes read of all of them, as they stand in the files.
    pub read: Arc<AtomicU64>,
}

/// An input that could be opened.
#[derive(Clone)]
pub struct Input {
    /// What it is called, and which file it is.
    pub origin: Origin,
    /// Its path, or "-".
    pub path: PathBuf,
    /// A file that can be opened only once. It is read from this position on, or from where it is. A named regular file is
    /// opened again when its turn comes, so that thousands do not use up the descriptors.
    file: Option<(Arc<File>, Option<u64>)>,
    /// Its size in bytes, if it is a regular file, that is, one which can be read again.
    pub size: Option<u64>,
    /// Whether it is a regular file that is compressed, as far as its first bytes tell.
    compressed: bool,
    /// Whether it is a table, and has rows where others have lines.
    pub is_table: bool,
    /// When it was changed, since 1970, where the system tells.
    pub modified: Option<Duration>,
    /// The end of lines, if what is no lines is to be refused.
    pub lines_end: Option<u8>,
    /// The header that it must have, if it is not free to have another than other inputs.
    pub header: Option<Arc<Expected>>,
    /// Bytes read of all inputs.
    read: Arc<AtomicU64>,
    /// A temporary file that gets what is read.
    copy: Option<Arc<File>>,
}

/// An input that is being read.
pub struct Opened {
    /// Its contents, decompressed.
    pub contents: Box<dyn Read + Send>,
    /// Whether it is a regular file, which never makes its reader wait for others.
    pub regular: bool,
}

impl Inputs {
    /// Finds the files that are named, and checks that all can be opened. Fails where one cannot, unless `go_on`. What directories
    /// have of the run's `own` files, of standard output and of standard error is left out.
    pub fn check(named: &Named, own: &[PathBuf], go_on: bool) -> Result<Self, Error> {
        let standard = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
        let standard = standard.into_iter().filter_map(|file| File::from(file.ok()?).metadata().ok());
        let standard = standard.map(|metadata| Origin::new(String::new(), &metadata));
        let own: Vec<Origin> = own.iter().map(|path| Origin::of(path)).chain(standard).collect();
        let Found { files, folders, mut left_out, several } = named.find(&own, go_on)?;
        let (mut found, read) = (Vec::new(), Arc::default());
        for path in files {
            match Input::check(path, named.lines_end, &read) {
                Ok(input) => found.push(input),
                Err(error) => find::leave_out(&mut left_out, error, go_on)?,
            }
        }
        Ok(Self { found, left_out, folders, several, read })
    }

    /// The first of them that has lines, and the first that is a table.
    pub fn kinds(&self) -> (Option<&Input>, Option<&Input>) {
        (self.found.iter().find(|input| !input.is_table), self.found.iter().find(|input| input.is_table))
    }

    /// These inputs, and the same once more, to be read after them. What can be read only once is copied meanwhile, as it comes.
    pub fn twice(self) -> io::Result<(Self, Self)> {
        let Self { mut found, left_out, folders, several, read } = self;
        let again = found.iter_mut().map(|input| if input.size.is_some() { input.again() } else { input.copied() });
        let again = Self { found: again.collect::<io::Result<_>>()?, read: read.clone(), several, ..Self::default() };
        Ok((Self { found, left_out, folders, several, read }, again))
    }

    /// The copies are whole.
    pub fn measure(&mut self) -> io::Result<()> {
        self.found.iter_mut().filter(|input| input.size.is_none()).try_for_each(|input| {
            input.size = Some(input.with_file(File::metadata)?.len());
            Ok(())
        })
    }

    /// The files among them that are named, as they were found.
    pub fn stamps(&self) -> Vec<Stamp> {
        let named = self.found.iter().filter(|input| input.file.is_none());
        named
            .map(|Input { path, size, modified, .. }| Stamp { path: path.clone(), size: *size, modified: *modified })
            .collect()
    }

    /// Those of files that can be opened.
    #[cfg(test)]
    pub fn of(paths: &[PathBuf]) -> Self {
        Self::check(&Named { paths, ..Named::default() }, &[], false).unwrap()
    }
}

/// A file as it was found.
pub struct Stamp {
    path: PathBuf,
    size: Option<u64>,
    modified: Option<Duration>,
}

impl Stamp {
    /// Whether somebody wrote to it since.
    pub fn is_old(&self) -> bool {
        let now = self.path.metadata().ok();
        let is_same = |now: &Metadata| Some(now.len()) == self.size && modified(now) == self.modified;
        !now.as_ref().is_some_and(is_same)
    }
}

/// When a file was changed, since 1970, where the system tells.
fn modified(metadata: &Metadata) -> Option<Duration> {
    metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok())
}

impl Input {
    /// Checks that a file can be opened, is no directory, and has lines, if their end is given.
    fn check(path: PathBuf, lines_end: Option<u8>, read: &Arc<AtomicU64>) -> Result<Self, Error> {
        let stdin = files::is_standard(&path);
        let open = || {
            let file = if stdin { io::stdin().as_fd().try_clone_to_owned()?.into() } else { File::open(&path)? };
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            let mut head = [0; foreign::HEAD];
            // An error may pass until it is read.
            let length = if metadata.is_file() { decode::read_head(&file, &mut head).unwrap_or(0) } else { 0 };
            let head = &head[..length];
            let coding = Coding::of(head);
            let plain_end = lines_end.filter(|_| coding == Coding::Plain);
            let format = plain_end.and_then(|end| foreign::of_file(&path, head, end));
            match format {
                Some(foreign::TABLE) if cfg!(feature = "parquet") => {}
                Some(format) => return Err(foreign::refused(format)),
                None => {}
            }
            Ok((file, metadata, coding != Coding::Plain, format.is_some()))
        };
        let (file, metadata, compressed, is_table) =
            open().map_err(|source| Error::Open { input: files::input_name(&path), source })?;
        let file = (!metadata.is_file() || stdin).then(|| (file.into(), None));
        let origin = Origin::new(files::input_name(&path), &metadata);
        let size = origin.is_regular().then_some(metadata.len());
        let modified = modified(&metadata);
        let (header, copy, read) = (None, None, read.clone());
        Ok(Self { origin, path, file, size, compressed, is_table, modified, lines_end, header, read, copy })
    }

    /// The same input once more, to be read after this one. Only a regular file can be.
    pub fn again(&self) -> io::Result<Self> {
        let again = |(file, start): &(Arc<File>, Option<u64>)| {
            let start = start.map_or_else(|| file.clone().stream_position(), Ok)?;
            Ok::<_, io::Error>((file.clone(), Some(start)))
        };
        let file = self.file.as_ref().map(again).transpose()?;
        Ok(Self { file, copy: None, ..self.clone() })
    }

    /// Looks at the beginning of a regular file, which is read later as if nobody had.
    pub fn peek<T>(&self, look: impl FnOnce(Self) -> io::Result<T>) -> io::Result<T> {
        let again = Self { header: None, read: Arc::default(), ..self.again()? };
        let start = again.file.as_ref().and_then(|(_, start)| *start);
        let looked = look(again);
        if let (Some((file, None)), Some(start)) = (&self.file, start) {
            (&**file).seek(SeekFrom::Start(start))?;
        }
        looked
    }

    /// A temporary file that gets what is read of this input, as the same input once more. Its size is that of what came by then.
    fn copied(&mut self) -> io::Result<Self> {
        let copy = Arc::new(tempfile::tempfile()?);
        self.copy = Some(copy.clone());
        Ok(Self { file: Some((copy, Some(0))), copy: None, ..self.clone() })
    }

    /// Looks into the file.
    pub fn with_file<T>(&self, look: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        match &self.file {
            Some((file, _)) => look(file),
            None => look(&File::open(&self.path)?),
        }
    }

    /// Whether it is a compressed file, whose reading takes a core. Standard input is none.
    pub fn is_compressed(&self) -> bool {
        self.compressed && self.file.is_none()
    }

    /// The file, to be read by positions, and what counts the bytes that are read.
    pub fn into_file(self) -> io::Result<(Arc<File>, Arc<AtomicU64>)> {
        let file = self.file.map_or_else(|| File::open(&self.path).map(Arc::new), |(file, _)| Ok(file))?;
        Ok((file, self.read))
    }

    /// Opens it at the byte `start` of its contents.
    pub fn open(self, start: u64) -> io::Result<Opened> {
        let file = match self.file {
            Some((mut file, position)) => {
                position.map_or(Ok(0), |position| file.seek(SeekFrom::Start(position)))?;
                file
            }
            None => File::open(self.path)?.into(),
        };
        let source = Source { file, read: self.read, copy: self.copy, lines_end: self.lines_end };
        Ok(Opened { contents: contents::open(source, start, BUFFER)?, regular: self.size.is_some() })
    }
}
