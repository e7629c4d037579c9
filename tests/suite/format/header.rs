//! The reader in C, `include/bloomline.h`. It gives the same answers, and refuses the same files, except those with a fault that
//! changes no answer.
//!
//! Without a C compiler, the tests print a note to standard error and pass.

use super::*;
use std::process::{Command, Output};

/// `tests/data/ask.c`, with sanitizers where compilers have them.
fn compiled(program: &Path) -> Option<()> {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o"]).arg(program);
    if cfg!(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        compiler.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    }
    match compiler.arg(data("ask.c")).output() {
        Ok(Output { status, stderr, .. }) => {
            assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
            Some(())
        }
        Err(error) => {
            // The harness keeps what `eprintln!` says of a test that passes.
            _ = writeln!(io::stderr(), "skipped, and counted as passed: cc does not start: {error}");
            None
        }
    }
}

/// A command that runs the program.
fn program() -> Option<Command> {
    static PROGRAM: LazyLock<Option<tempfile::TempDir>> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        compiled(&folder.path().join("ask")).map(|()| folder)
    });
    PROGRAM.as_ref().map(|folder| Command::new(folder.path().join("ask")))
}

/// A line for each file: the answers for these keys, or `-` and the error.
fn ask_in_c(files: &[&[u8]], keys: &[Vec<u8>]) -> Option<Vec<String>> {
    let mut child = program()?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let number = |bytes: usize| (bytes as u32).to_le_bytes();
    let part = |bytes: &[u8]| [&number(bytes.len())[..], bytes].concat();
    let asked: Vec<u8> = keys.iter().flat_map(|key| part(key)).collect();
    let input: Vec<u8> =
        files.iter().flat_map(|file| [part(file), number(keys.len()).to_vec(), asked.clone()].concat()).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), files.len());
    Some(lines)
}

/// Checks the answers for a file.
pub(super) fn check_answers(file: &[u8], keys: &[Vec<u8>], contains: &[bool]) {
    let expected: String = contains.iter().map(|&found| if found { '1' } else { '0' }).collect();
    let Some(lines) = ask_in_c(&[file], keys) else { return };
    match lines[0].strip_prefix("- ") {
        Some(error) => assert!(error.starts_with("the filter has layout ") && file[12] != 1, "{error}"),
        None => assert_eq!(lines[0], expected),
    }
}

/// Checks that these files, which the library refuses for these reasons, are refused.
pub(super) fn check_refusals(files: &[Vec<u8>], reasons: &[String]) {
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    for (i, (line, reason)) in ask_in_c(&files, &[]).unwrap_or_default().iter().zip(reasons).enumerate() {
        let is_chain = !files[i].starts_with(b"\x89BLOOM");
        // A key name that is not text, and in chains other sizes and fields than planned.
        let is_harmless = if is_chain {
            ["bad last", "bad blocks", "bad fields"].contains(&&**reason)
        } else {
            reason == "bad key name"
        };
        assert!(is_harmless || line.starts_with("- "), "file {i} was not refused: {reason}");
        // "problem value: remedy"
        assert!(line.len() < 160 && (line.is_empty() || line.contains(": ")), "{line}");
    }
}

#[test]
fn the_reader_in_c_reads_the_golden_files() {
    let read = [
        ("example", " 0 1"),
        ("fields", "url 0 0"),
        ("rotating", "line 0 0"),
        ("rows", "day,url 4005 0"),
        ("series", " 0 0"),
        ("values", "v fff 0"),
        ("version1", "- the file is of version 1: build the filter again"),
    ];
    let Some(mut program) = program() else { return };
    let paths = read.map(|(name, _)| data(&format!("{name}.bloom")));
    let output = program.args(paths).arg(data("none.bloom")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let (expected, last): (Vec<&str>, _) = (read.map(|(_, line)| line).to_vec(), lines.lines().last().unwrap());
    assert_eq!(lines.lines().take(read.len()).collect::<Vec<_>>(), expected);
    assert!(last.ends_with("none.bloom: No such file or directory"), "{last}");

    // Integers of 8 bytes, in three stages and in three generations.
    let keys: Vec<Vec<u8>> = (0..200u64).map(|key| key.to_le_bytes().to_vec()).collect();
    let series = fs::read(data("series.bloom")).unwrap();
    let filter = bloomline::ScalableBloomFilter::read_from(&series[..]).unwrap();
    check_answers(&series, &keys, &(0..200u64).map(|key| filter.contains(&key)).collect::<Vec<_>>());
    let rotating = fs::read(data("rotating.bloom")).unwrap();
    let filter = bloomline::RotatingBloomFilter::read_from(&rotating[..]).unwrap();
    check_answers(&rotating, &keys, &(0..200u64).map(|key| filter.contains(&key)).collect::<Vec<_>>());
}
