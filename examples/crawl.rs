//! Crawls a folder tree on several threads, as one would the pages of a web site: `crawl FOLDER [THREADS]`.
//!
//! Folders are the pages with links, and a page's address is its canonical path: one for each file and folder. A symbolic
//! link is followed to it, so a loop of links leads to a path that was seen; and a path outside of the folder is left
//! alone, as another site would be.

use bloomline::Frontier;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

#[derive(Default)]
struct Counts {
    visited: AtomicU64,
    folders: AtomicU64,
    bytes: AtomicU64,
    failed: AtomicU64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1);
    let root = fs::canonicalize(arguments.next().ok_or("usage: crawl FOLDER [THREADS]")?)?;
    let threads = match arguments.next() {
        Some(threads) => threads.to_string_lossy().parse()?,
        None => thread::available_parallelism()?.get(),
    };

    let frontier = Frontier::new(1_000_000, 1e-6)?;
    let counts = Counts::default();
    let start = Instant::now();
    frontier.push(root.clone());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| crawl(&root, &frontier, &counts));
        }
    });
    let seconds = start.elapsed().as_secs_f64();

    let (visited, folders) = (counts.visited.into_inner(), counts.folders.into_inner());
    println!(
        "{visited} pages: {folders} folders, {} files with {} bytes",
        visited - folders,
        counts.bytes.into_inner()
    );
    println!("{seconds:.2} s on {threads} threads, {:.0} pages/s", visited as f64 / seconds);
    println!("{} links or pages could not be read", counts.failed.into_inner());
    println!(
        "frontier: {} seen, {} waiting, room for {} more, false-positive rate {:.1e}, filter of {} bytes",
        frontier.seen(),
        frontier.len(),
        frontier.capacity_left(),
        frontier.current_fpr(),
        frontier.filter().memory_bytes()
    );
    Ok(())
}

/// Visits pages until all that were seen are visited.
fn crawl(root: &Path, frontier: &Frontier<PathBuf>, counts: &Counts) {
    // Acquire: with the visits come the pushes that were made during them, so equality means that none is under way.
    while counts.visited.load(Ordering::Acquire) != frontier.seen() {
        let Some(page) = frontier.pop() else {
            // Another thread may be about to push. The pause is longer than a visit, and short beside a crawl.
            thread::sleep(Duration::from_micros(100));
            continue;
        };
        if visit(&page, root, frontier, counts).is_err() {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        // Release: see above.
        counts.visited.fetch_add(1, Ordering::Release);
    }
}

/// Pushes what a folder holds, or weighs a file.
fn visit(page: &Path, root: &Path, frontier: &Frontier<PathBuf>, counts: &Counts) -> io::Result<()> {
    let metadata = fs::symlink_metadata(page)?;
    if !metadata.is_dir() {
        counts.bytes.fetch_add(metadata.len(), Ordering::Relaxed);
        return Ok(());
    }
    counts.folders.fetch_add(1, Ordering::Relaxed);
    for entry in fs::read_dir(page)? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            match fs::canonicalize(entry.path()) {
                Ok(target) if target.starts_with(root) => {
                    frontier.push(target);
                }
                Ok(_) => {}
                Err(_) => {
                    counts.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
        } else {
            // Canonical, as the folder is.
            frontier.push(entry.path());
        }
    }
    Ok(())
}
