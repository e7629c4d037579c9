//! Files that are replaced once their new contents are whole: a name always has either the old or the complete new contents.

use crate::read::coding::Coding;
use crate::read::compression::Compression;
use crate::read::inputs::Input;
use crate::system::error::Error;
use crate::system::file_lock::try_lock;
use crate::system::file_status::FileStatus;
use crate::system::files::{self, FileVersion, cannot_open, cannot_write, name};
use crate::system::platform;
use crate::system::temp_files::TempFiles;
use crate::write::atomic_file::{AtomicFile, PRIVATE};
use crate::write::output::Output;
use crate::write::target::OutputTarget;
use std::fs::File;
use std::path::Path;

/// A file that is to be replaced, as it was when it was found. Its new contents are removed unless they are published.
pub struct ReplacedFile {
    /// The name for the user. A link may lead from it to the file.
    pub name: String,
    file: AtomicFile,
    version: FileVersion,
    pending: Option<PendingReplace>,
}

/// The new contents and the old file, dropped in this order.
struct PendingReplace {
    /// The new contents.
    part: TempFiles,
    /// The old file. Its lock is held until the new one has the name.
    old: File,
}

impl ReplacedFile {
    /// Prepares to replace the file of `input`, to which `path` leads. The new contents are compressed like the old ones
    /// unless another compression is requested. Fails if the name of the file contradicts the requested one.
    pub fn new(path: &Path, input: &Input, requested: Option<Compression>) -> Result<Self, Error> {
        let name = name(path);
        if input.size.is_none() || files::is_standard(path) {
            return Err(Error::new(format!(
                "cannot replace {}: it is not a regular file with a name; give --in-place files or directories",
                input.origin.name()
            )));
        }
        let compression = match requested {
            Some(_) => Compression::for_output(Some(path), requested)?,
            None => Compression::new(input.with_file(Coding::from_file).map_err(cannot_open(&name))?),
        };
        let version = input.version();
        // Folders on the path may be missing, although it leads back to the file.
        FileStatus::from_path(path).map_err(cannot_open(&name))?;
        let file = AtomicFile::hidden(files::resolved(path), compression);
        Ok(Self { name, file, version, pending: None })
    }

    /// Returns the path of the file itself, behind all links.
    pub fn path(&self) -> &Path {
        &self.file.whole
    }

    /// Opens the output of the new contents; `None` if it was opened before. Removes the unfinished contents that a killed
    /// run left.
    pub fn begin(&mut self) -> Result<Option<Output>, Error> {
        if self.pending.is_some() {
            return Ok(None);
        }
        // A file without write permission may not be replaced.
        let old = platform::writer(PRIVATE).open(self.path()).map_err(cannot_write(&self.name))?;
        if !try_lock(&old, self.path()).map_err(cannot_write(&self.name))? {
            return Err(files::locked(&self.name));
        }
        // This run holds the lock, so no other run uses such a file.
        files::remove(&self.file.part).map_err(cannot_write(&self.name))?;
        // Registered before it exists, because a signal may arrive at any time.
        let part = TempFiles::file(&self.file.part);
        let target = OutputTarget::open_part(&self.file, self.name.clone(), false)?;
        self.check_unchanged()?;
        self.pending = Some(PendingReplace { part, old });
        target.start(0, None).map(Some)
    }

    /// Renames the new contents, which are whole, over the old ones, if they are begun.
    pub fn publish(mut self) -> Result<(), Error> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let sync = || {
            // Before the rename: otherwise a crash could leave the name with a file whose bytes never reached the disk.
            File::options().write(true).open(&self.file.part)?.sync_all()
        };
        sync().map_err(cannot_write(&self.name))?;
        self.check_unchanged()?;
        let PendingReplace { part, old } = pending;
        let _locked = platform::until_replaced(old);
        self.file.commit().map_err(cannot_write(&self.name))?;
        part.release();
        Ok(())
    }

    /// Refuses a file that was written to since it was found, because the new contents are not made of its present lines.
    fn check_unchanged(&self) -> Result<(), Error> {
        let now = FileVersion::from_path(self.path());
        if now.as_ref() == Some(&self.version) {
            return Ok(());
        }
        Err(Error::new(format!(
            "cannot replace {}: another program changed it during this run; run the command again",
            self.name
        )))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::read::inputs::Inputs;
    use crate::write::atomic_file::is_hidden;
    use crate::write::encode::Encoder;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
    use std::path::PathBuf;

    fn replaced(path: &Path) -> ReplacedFile {
        ReplacedFile::new(path, &Inputs::from_paths(&[path.to_owned()]).found[0], None).unwrap()
    }

    fn pending(path: &Path) -> (ReplacedFile, Output) {
        let mut replaced = replaced(path);
        let output = replaced.begin().unwrap().unwrap();
        assert!(replaced.begin().unwrap().is_none());
        (replaced, output)
    }

    /// Creates a file with a mode other than the default.
    fn file(folder: &Path, name: &str, contents: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        path
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(output: &Output, text: &str) {
        output.write_text(text.as_bytes()).unwrap();
        output.finish(&mut Encoder::default()).unwrap();
    }

    fn fails<T>(result: Result<T, Error>, why: &str) -> bool {
        result.is_err_and(|error| error.to_string().contains(why))
    }

    #[test]
    fn a_file_keeps_its_old_contents_until_the_new_ones_are_published() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "file", "old");
        let link = folder.path().join("link");
        symlink("file", &link).unwrap();
        if chown(&path, Some(1), Some(2)).is_err() {
            eprintln!("SKIPPED: who is not root gives no files away");
        }
        let before = path.metadata().unwrap();
        let (new, output) = pending(&link);
        write(&output, "new");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let part = folder.path().join(".bloomline-file.part");
        assert!(is_hidden(&part) && !is_hidden(&path));
        assert_eq!(part.metadata().unwrap().mode() & 0o777, 0o600);
        new.publish().unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), path.metadata().unwrap().mode() & 0o7777),
            ("new".into(), 0o640)
        );
        let after = path.metadata().unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert!(link.is_symlink());
        assert_eq!(names(folder.path()), ["file", "link"]);
    }

    #[test]
    fn unpublished_contents_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "file", "old");
        // A killed run may leave a partial file that cannot be opened.
        let left = file(folder.path(), ".bloomline-file.part", "half");
        fs::set_permissions(&left, Permissions::from_mode(0o000)).unwrap();
        let (new, output) = pending(&path);
        write(&output, "new");
        drop(new);
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("old".into(), vec!["file".into()]));
    }

    #[test]
    fn files_changed_by_another_program_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "file", "old");
        let (new, _output) = pending(&path);
        assert!(fails(replaced(&path).begin(), "another run is writing to it"));
        assert!(fails(OutputTarget::check(Some(&path), None, [], []), "another run is writing to it"));
        fs::write(&path, "older and newer").unwrap();
        assert!(fails(new.publish(), "another program changed it"));
        // Another file of the same size takes the name.
        let mut late = replaced(&path);
        let (new, _output) = pending(&path);
        fs::rename(file(folder.path(), "other", "newer and older"), &path).unwrap();
        assert!(fails(new.publish(), "another program changed it"));
        assert!(fails(late.begin(), "another program changed it"));
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names(folder.path())),
            ("newer and older".into(), vec!["file".into()])
        );
    }

    #[test]
    fn long_names_have_shortened_partial_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), &"x".repeat(255), "old");
        let (new, output) = pending(&path);
        write(&output, "new");
        new.publish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
