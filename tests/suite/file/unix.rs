//! Permissions, links and pipes.

use super::*;
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::process::Command;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_save_keeps_permissions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    let filter = filter(1, 8, 0, 1);
    filter.save(&path).unwrap();
    let ordinary = folder.path().join("ordinary");
    File::create(&ordinary).unwrap();
    assert_eq!(mode(&path), mode(&ordinary), "a new file is as any other");
    for wanted in [0o600, 0o640, 0o666, 0o444] {
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        filter.save(&path).unwrap();
        assert_eq!(mode(&path), wanted);
    }
}

#[test]
fn a_save_through_a_link_keeps_the_link() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("real")).unwrap();
    let (real, link) = (folder.path().join("real/filter.bloom"), folder.path().join("link.bloom"));
    filter(1, 8, 0, 1).save(&real).unwrap();
    symlink("real/filter.bloom", &link).unwrap();
    let new = filter(2, 8, 0, 1);
    new.save(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(BloomFilter::load(&real).unwrap() == new);
}

#[test]
fn a_save_replaces_only_regular_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let error = filter(1, 8, 0, 1).save(&path).unwrap_err();
    assert!(error.to_string().contains("/pipe: not a regular file"), "{error}");
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn an_unresolvable_path_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (circle, file) = (folder.path().join("circle"), folder.path().join("file"));
    symlink("circle", &circle).unwrap();
    File::create(&file).unwrap();
    for path in [&circle, &file.join("f")] {
        let error = filter(1, 8, 0, 1).save(path).unwrap_err();
        assert_eq!(io_kind(&error), fs::metadata(path).unwrap_err().kind());
    }
    assert!(fs::symlink_metadata(&circle).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().len(), 0);
}

#[test]
fn a_named_pipe_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let filter = filter(100_003, 8, 3, 1000);
    std::thread::scope(|scope| {
        scope.spawn(|| filter.write_to(fs::OpenOptions::new().write(true).open(&path).unwrap()).unwrap());
        assert!(BloomFilter::load(&path).unwrap() == filter);
    });
}
