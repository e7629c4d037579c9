//! Processes that are stopped while saving: the file is either the old or the complete new one.
#![cfg(unix)]

use bloomline::{BloomFilter, FileErrorKind};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind};
#[cfg(target_os = "linux")]
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

/// The saving process runs this program with this test alone.
const TEST: &str = "crash::a_killed_process_leaves_the_old_or_the_new_file";
/// The variable with the path that it saves to.
const TARGET: &str = "BLOOMLINE_TEST_TARGET";
/// Set if the system is to refuse the save.
const REFUSED: &str = "BLOOMLINE_TEST_REFUSED";

/// The signal that a write beyond the limit raises.
#[cfg(target_os = "linux")]
const SIGXFSZ: i32 = 25;

/// Set if a filter is to be loaded from the target.
const LOADED: &str = "BLOOMLINE_TEST_LOADED";

/// Two filters that differ in nearly every block: 2 MiB each, so that a save takes several writes.
fn filters() -> [BloomFilter; 2] {
    [1, 2].map(|seed| {
        let builder = BloomFilter::builder().memory(2 << 20).probes(8).seed(seed);
        let mut filter: BloomFilter = builder.build().unwrap();
        let keys: Vec<u64> = (0..100_000).collect();
        filter.insert_batch(&keys, &mut vec![false; keys.len()]);
        filter
    })
}

/// The number of temporary files in the folder.
fn left_behind(folder: &Path) -> usize {
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    fs::read_dir(folder).unwrap().map(name).filter(|name| name.starts_with(".bloomline-")).count()
}

/// The saving process: saves one filter after another until it is killed, or one filter whose save is refused.
fn save_on(target: &OsStr) {
    let filters = filters();
    if env::var_os(LOADED).is_some() {
        let refused = std::thread::Builder::new().spawn(|| ()).is_err();
        assert!(refused && BloomFilter::load(target).unwrap() == filters[0]);
        println!("loaded");
        return;
    }
    if env::var_os(REFUSED).is_some() {
        let error = filters[1].save(target).unwrap_err();
        let full = [ErrorKind::FileTooLarge, ErrorKind::StorageFull];
        assert!(matches!(error.kind(), FileErrorKind::Io(error) if full.contains(&error.kind())), "{error:?}");
        println!("refused");
        return;
    }
    loop {
        for filter in &filters {
            filter.save(target).unwrap();
            println!("saved");
        }
    }
}

/// A command that starts the saving process, after a piece of shell script.
fn saving_process(script: &str, target: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script} exec \"$0\" --exact {TEST} --nocapture")]);
    command.arg(env::current_exe().unwrap()).env(TARGET, target).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until the process has made this number of saves.
fn wait_for_saves(child: &mut Child, saves: usize) {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let saved = lines.map(Result::unwrap).filter(|line| line.ends_with("saved")).take(saves).count();
    assert_eq!(saved, saves, "the saving process ended by itself");
}

#[test]
fn a_killed_process_leaves_the_old_or_the_new_file() {
    match env::var_os(TARGET) {
        Some(target) => save_on(&target),
        None => kill_at_moments(25),
    }
}

#[test]
#[ignore = "long"]
fn a_process_killed_at_many_moments_leaves_the_old_or_the_new_file() {
    kill_at_moments(500);
}

/// Kills the saving process `rounds` times or more, at moments spread over the time of two saves.
fn kill_at_moments(rounds: u32) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("filter.bloom");
    let filters = filters();

    let mut child = saving_process("", &target).spawn().unwrap();
    wait_for_saves(&mut child, 2);
    let start = Instant::now();
    wait_for_saves(&mut child, 10);
    let two_saves = start.elapsed() / 5;
    child.kill().unwrap();
    child.wait().unwrap();

    let (mut seen, mut round) = ([0, 0], 0);
    // Kills between saves test nothing, and saves take longer while the machine is busy.
    while round < rounds || left_behind(folder.path()) < 10 || seen.contains(&0) {
        assert!(
            round < 20 * rounds.max(50),
            "{} of {round} kills fell into a save, {seen:?}",
            left_behind(folder.path())
        );
        filters[0].save(&target).unwrap();
        let mut child = saving_process("", &target).spawn().unwrap();
        wait_for_saves(&mut child, 1);
        std::thread::sleep(two_saves * round / rounds);
        child.kill().unwrap();
        child.wait().unwrap();
        let loaded = BloomFilter::load(&target).unwrap();
        let which = filters.iter().position(|filter| *filter == loaded);
        seen[which.expect("neither of the two filters")] += 1;
        round += 1;
    }
}

/// Limits files to 1 MiB, and saves a filter of 2. Returns the output and the status of the saving process, and the number of
/// files left behind.
fn save_beyond_the_limit(script: &str) -> (Output, usize) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("filter.bloom");
    let [old, _] = filters();
    old.save(&target).unwrap();
    let before = fs::read(&target).unwrap();
    let output = saving_process(script, &target).env(REFUSED, "1").output().unwrap();
    assert_eq!(fs::read(&target).unwrap(), before);
    (output, left_behind(folder.path()))
}

fn reported_a_refusal(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stdout).lines().any(|line| line.ends_with("refused"))
}

#[test]
fn a_refused_write_leaves_only_the_old_file() {
    // Units of 512 bytes; the signal that comes with the refusal is ignored.
    let (output, left_behind) = save_beyond_the_limit("ulimit -f 2048; trap '' XFSZ;");
    assert!(output.status.success() && reported_a_refusal(&output), "{output:?}");
    assert_eq!(left_behind, 0);
}

/// No thread starts, because stacks are too large for the address space. The harness runs a single test on its main thread.
#[test]
fn load_works_if_no_thread_can_be_started() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("filter.bloom");
    filters()[0].save(&target).unwrap();
    let mut process = saving_process("", &target);
    let output = process.env(LOADED, "1").env("RUST_TEST_THREADS", "1").env("RUST_MIN_STACK", (1u64 << 52).to_string());
    let output = output.output().unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("loaded"), "{output:?}");
}

#[test]
fn a_process_killed_by_its_write_leaves_the_old_file() {
    let (output, left_behind) = save_beyond_the_limit("ulimit -f 2048;");
    assert!(!reported_a_refusal(&output), "{output:?}");
    #[cfg(target_os = "linux")]
    assert_eq!(output.status.signal(), Some(SIGXFSZ));
    assert_eq!(left_behind, 1);
}

/// The path has no folder, and the rename and the flush of the folder need one.
#[test]
fn a_bare_name_is_saved_in_the_current_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = saving_process("", Path::new("bare.bloom")).current_dir(folder.path()).spawn().unwrap();
    wait_for_saves(&mut child, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    BloomFilter::load(folder.path().join("bare.bloom")).unwrap();
}

/// A real full disk, if the tests may mount one.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_the_old_file() {
    use std::io::Write;
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-ec", script]);
        command
    };
    if !unshare("mount -t tmpfs tmpfs /tmp").status().is_ok_and(|status| status.success()) {
        // The harness hides the output of `eprintln!` in a test that passes.
        _ = writeln!(io::stderr(), "skipped, and counted as passed: this machine does not let its users mount");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().to_str().unwrap();
    let [old, _] = filters();
    let original = folder.path().with_extension("bloom");
    old.save(&original).unwrap();
    // 3 MiB hold the old filter and half of the new one.
    let script = format!(
        "mount -t tmpfs -o size=3m tmpfs {disk} && cp {original} {disk}/filter.bloom && \
         \"$0\" --exact {TEST} --nocapture | grep refused && cmp {original} {disk}/filter.bloom && [ $(ls -A {disk} | wc -l) = 1 ]",
        original = original.display(),
    );
    let status = unshare(&script)
        .arg(env::current_exe().unwrap())
        .env(TARGET, format!("{disk}/filter.bloom"))
        .env(REFUSED, "1")
        .status()
        .unwrap();
    fs::remove_file(original).unwrap();
    assert!(status.success());
}
