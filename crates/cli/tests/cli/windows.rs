//! Names, devices and ends of lines of Windows.

use crate::common::{Bench, assert_contains_all, expect_success, report_skipped, text};
use std::ffi::OsString;
use std::fs;
use std::os::windows::ffi::OsStringExt;

#[test]
fn lists_of_windows_name_files() {
    let bench =
        Bench::new(&[("a", b"a\n"), ("b c", b"b\na\n"), ("list", b"a\r\nb c\r\n\r\n"), ("latin", b"a\n\xE4\n")]);
    assert_eq!(bench.run_ok("dedup --files-from list"), "a\nb\n");
    assert_contains_all(
        &bench.run_err("dedup --files-from latin"),
        &["\"latin\"", "not UTF-8", "write the list as UTF-8"],
    );
}

#[test]
fn devices_are_inputs_and_outputs() {
    let bench = Bench::new(&[("a", b"a\na\n")]);
    assert_eq!(bench.run_ok("dedup -n 10 NUL a"), "a\n");
    bench.run_ok("dedup -o NUL a");
    bench.run_ok("dedup -o NUL --dupes NUL a");
    assert_contains_all(&bench.run_err("dedup --in-place NUL"), &["NUL", "not a regular file"]);
}

#[test]
fn paths_have_drives_backslashes_and_any_length() {
    let bench = Bench::new(&[]);
    let folder = (0..12).fold(bench.0.path().canonicalize().unwrap(), |folder, _| folder.join("f".repeat(30)));
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("file");
    assert!(file.as_os_str().len() > 300);
    fs::write(&file, "a\nb\na\n").unwrap();
    if fs::metadata(&file).is_err() {
        return report_skipped("Wine opens a file with a long path, and does not describe it");
    }
    let run = |line: &str| {
        let mut command = bench.command(line);
        expect_success(command.arg(&file).output().unwrap())
    };
    assert_eq!(run("dedup --state s"), b"a\nb\n");
    assert_eq!(run("dedup --in-place"), b"");
    assert_eq!(fs::read(&file).unwrap(), b"a\nb\n");
    // A drive, and no folder.
    let drive = bench.0.path().to_str().unwrap().to_owned();
    assert_eq!(text(&expect_success(bench.command("dedup --glob f*le").arg(drive).output().unwrap())), "a\nb\n");
    assert_eq!(bench.run_ok(&format!("dedup --glob {}/**/file .", "f".repeat(30))), "a\nb\n");
}

#[test]
fn names_that_are_not_utf16_are_read() {
    let bench = Bench::new(&[]);
    let name = OsString::from_wide(&[0x61, 0xD800]);
    if fs::write(bench.0.path().join(&name), "a\na\n").is_err() {
        return report_skipped("no such names here");
    }
    assert_eq!(bench.run_ok("dedup ."), "a\n");
}

#[test]
fn temporary_files_are_hidden_and_files_that_replace_others_are_not() {
    use std::os::windows::fs::MetadataExt;
    let bench = Bench::new(&[("a", b"a\na\n")]);
    bench.run_ok("dedup --in-place a");
    assert_eq!((bench.read("a"), bench.path("a").metadata().unwrap().file_attributes() & 2), (b"a\n".to_vec(), 0));
}
