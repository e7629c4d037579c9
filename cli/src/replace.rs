//! Files that are replaced once their new contents are whole. At every moment a name has the old contents or all of the new ones.
//!
//! The new contents are in a file beside the old one until then, and only its owner can read it.

use crate::encode::Compression;
use crate::error::Error;
use crate::files::{self, Identity, name};
use crate::input::decode::Coding;
use crate::input::inputs::Input;
use crate::leftovers;
use crate::output::Output;
use crate::output::target::Target;
use bloomline::KeyHasher;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, Permissions, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// What the name of a file of new contents begins and ends with.
const START: &str = ".bloomline-";
const END: &str = ".part";

/// A longer name is told by a hash, as file systems take 255 bytes, or less.
const LONGEST: usize = 100;

/// The bits of a mode that give the rights of the owner or of the group to whoever runs a file.
const SET_ID: u32 = 0o6000;

/// A file that is to be replaced, as it was when it was found.
pub struct Replaced {
    /// The file itself, should a link lead to it.
    path: PathBuf,
    name: String,
    compression: Compression,
    state: State,
}

/// What changes when somebody else writes to a file.
#[derive(PartialEq)]
struct State {
    identity: Option<Identity>,
    size: Option<u64>,
    modified: Option<Duration>,
}

/// The new contents of a file, under another name. They are removed unless they get theirs.
pub struct Replacement {
    pub path: PathBuf,
    pub name: String,
    state: State,
    part: PathBuf,
    /// The old file. Its lock is held until the new one has its name.
    old: File,
}

impl Replaced {
    /// An input, by this path or another one to the same file. It stays compressed as it is, unless something else is asked that its
    /// name does not contradict.
    pub fn of(path: &Path, input: &Input, asked: Option<Compression>) -> Result<Self, Error> {
        let name = name(path);
        if input.size.is_none() || files::is_standard(path) {
            return Err(Error::Irreplaceable { input: input.origin.name().to_owned() });
        }
        let open = |source| Error::Open { input: name.clone(), source };
        let compression = match asked {
            Some(asked) => Compression::of_output(Some(path), Some(asked))?,
            None => Compression::of(input.with_file(Coding::of_file).map_err(open)?),
        };
        let state = State { identity: input.origin.identity(), size: input.size, modified: input.modified };
        Ok(Self { path: path.canonicalize().map_err(open)?, name, compression, state })
    }

    /// Begins the new contents. What a killed run left of them is removed.
    pub fn begin(self) -> Result<(Replacement, Output), Error> {
        let Self { path, name, compression, state } = self;
        let failed = |source| Error::Create { output: name.clone(), source };
        // Whoever may not write to it may not replace it.
        let old = File::options().write(true).open(&path).map_err(failed)?;
        match old.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { file: name }),
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(failed(error)),
            _ => {}
        }
        let part = part_of(&path);
        // No other run has one, as this one has the lock.
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        // Before it is there, for a signal may come at once.
        leftovers::own_part(&part);
        let replacement = Replacement { path, name, state, part, old };
        let target = Target::of_part(&replacement.part, replacement.name.clone(), compression)?;
        replacement.check()?;
        Ok((replacement, target.begin(0, None)?))
    }
}

impl Replacement {
    /// Puts the new contents, which are whole, in the place of the old ones.
    pub fn publish(self) -> Result<(), Error> {
        let publish = || {
            let file = File::options().write(true).open(&self.part)?;
            keep_owner_and_mode(&file, &self.old.metadata()?)?;
            // Before the rename: else a crash could leave the name with a file whose bytes never reached the disk.
            file.sync_all()
        };
        let failed = |source| Error::Create { output: self.name.clone(), source };
        publish().map_err(failed)?;
        self.check()?;
        fs::rename(&self.part, &self.path).map_err(failed)
    }

    /// Refuses a file that somebody wrote to since it was found: its new contents are not those of its lines.
    fn check(&self) -> Result<(), Error> {
        let now = fs::metadata(&self.path).ok().map(|now| State {
            identity: Some(Identity::of(&now)),
            size: Some(now.len()),
            modified: now.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()),
        });
        if now.as_ref() == Some(&self.state) { Ok(()) } else { Err(Error::Disturbed { file: self.name.clone() }) }
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // It is not there if it has its name. One that cannot be removed is replaced by the next run.
        let _ = fs::remove_file(&self.part);
        leftovers::disown_part(&self.part);
    }
}

/// Where the new contents of a file are until they are whole. Directories are read without it, as it is hidden.
fn part_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    let mut part = OsString::from(START);
    if name.len() > LONGEST {
        part.push(format!("{:016x}", KeyHasher::new(0).bytes(name.as_bytes())));
    } else {
        part.push(name);
    }
    part.push(END);
    path.with_file_name(part)
}

/// Whether the path is that of new contents, which a run writes or left.
pub fn is_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    name.starts_with(START.as_bytes()) && name.ends_with(END.as_bytes())
}

/// Gives a file the owner, the group and the mode of another one, as far as the process may.
fn keep_owner_and_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let owner = fchown(file, Some(old.uid()), Some(old.gid()));
    let kept = owner.or_else(|_| fchown(file, None, Some(old.gid())).and(Err(io::ErrorKind::PermissionDenied.into())));
    let mode = old.permissions().mode();
    file.set_permissions(Permissions::from_mode(if kept.is_ok() { mode } else { mode & !SET_ID }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::Encoder;
    use crate::input::inputs::Inputs;
    use std::os::unix::fs::{chown, symlink};

    fn replaced(path: &Path) -> Replaced {
        Replaced::of(path, &Inputs::of(&[path.to_owned()]).found[0], None).unwrap()
    }

    /// A file with a mode of its own.
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

    #[test]
    fn a_name_has_the_old_contents_until_the_new_ones_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "file", "old");
        let link = folder.path().join("link");
        symlink("file", &link).unwrap();
        if chown(&path, Some(1), Some(2)).is_err() {
            eprintln!("SKIPPED: who is not root gives no files away");
        }
        let before = path.metadata().unwrap();
        let (replacement, output) = replaced(&link).begin().unwrap();
        write(&output, "new");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let part = folder.path().join(".bloomline-file.part");
        assert!(is_part(&part) && !is_part(&path));
        assert_eq!(part.metadata().unwrap().mode() & 0o777, 0o600);
        replacement.publish().unwrap();
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
    fn what_is_not_whole_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "file", "old");
        // As a killed run leaves it; nobody can open it.
        let left = file(folder.path(), ".bloomline-file.part", "half");
        fs::set_permissions(&left, Permissions::from_mode(0o000)).unwrap();
        let (replacement, output) = replaced(&path).begin().unwrap();
        write(&output, "new");
        drop(replacement);
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("old".into(), vec!["file".into()]));
    }

    #[test]
    fn a_file_that_somebody_else_writes_to_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "file", "old");
        let (replacement, _output) = replaced(&path).begin().unwrap();
        assert!(matches!(replaced(&path).begin(), Err(Error::Locked { .. })));
        assert!(matches!(Target::open(Some(&path), None, [], []), Err(Error::Locked { .. })));
        fs::write(&path, "older and newer").unwrap();
        assert!(matches!(replacement.publish(), Err(Error::Disturbed { .. })));
        // Another one in its place, of the same size.
        let late = replaced(&path);
        let (replacement, _output) = replaced(&path).begin().unwrap();
        fs::rename(file(folder.path(), "other", "newer and older"), &path).unwrap();
        assert!(matches!(replacement.publish(), Err(Error::Disturbed { .. })));
        assert!(matches!(late.begin(), Err(Error::Disturbed { .. })));
        assert_eq!(
            (fs::read_to_string(&path).unwrap(), names(folder.path())),
            ("newer and older".into(), vec!["file".into()])
        );
    }

    #[test]
    fn long_names_have_short_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), &"x".repeat(255), "old");
        let (replacement, output) = replaced(&path).begin().unwrap();
        write(&output, "new");
        replacement.publish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }
}
