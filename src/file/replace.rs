//! A file put in the place of another one: the old or the new one is there at every moment, whole.

use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::path::Path;
use tempfile::Builder;

/// Puts what `write` writes in the place of `path`, or leaves what is there.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    // A rename would replace a symbolic link, not what it points to.
    let (target, old) = match fs::canonicalize(path) {
        Ok(target) => {
            let old = fs::metadata(&target)?;
            (target, Some(old))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_path_buf(), None),
        Err(error) => return Err(error),
    };
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file: open it and use write_to"));
    }
    let folder = match target.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut builder = Builder::new();
    builder.prefix(".bloomline-").suffix(".tmp");
    if let Some(permissions) = new_file_permissions() {
        builder.permissions(permissions);
    }
    // Removes itself unless it is renamed.
    let temporary = builder.tempfile_in(folder)?;
    // Before the first byte: a private filter stays private while it is saved, and after a crash.
    if let Some(old) = old {
        keep_owner_and_permissions(temporary.as_file(), &old)?;
    }
    write(temporary.as_file())?;
    // Before the rename: else a crash could leave the name with a file whose data never reached the disk.
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|error| error.error)?;
    sync_folder(folder)
}

/// Those of any new file, of which the system takes the user's mask away: temporary files are private otherwise.
fn new_file_permissions() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    #[cfg(not(unix))]
    None
}

fn keep_owner_and_permissions(file: &File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        // Only root may give files away: for others the file is their own, as any new file is.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

/// Makes the rename itself last.
fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}
