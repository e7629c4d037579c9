//! Saves, loads and maps a large filter, and prints what it took.
//!
//! ```sh
//! cargo run --release --features mmap --example file_speed -- save /tmp/large.bloom 4    # GiB
//! cargo run --release --features mmap --example file_speed -- load /tmp/large.bloom
//! cargo run --release --features mmap --example file_speed -- map /tmp/large.bloom
//! ```

use bloomline::BloomFilter;
use std::error::Error;
use std::time::Instant;

/// Hash `i` of many that are well spread.
fn hash(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["save", path, gibibytes] => {
            let mut filter: BloomFilter =
                BloomFilter::builder().memory(gibibytes.parse::<usize>()? << 30).probes(8).build()?;
            // A bit or more in every page and block of the filter.
            let hashes: Vec<u64> = (1..=1 << 16).map(hash).collect();
            let step = u64::MAX / (filter.block_count() as u64 / hashes.len() as u64 + 1);
            for start in (0..=u64::MAX - step).step_by(step as usize) {
                let shifted: Vec<u64> = hashes.iter().map(|hash| hash.wrapping_add(start)).collect();
                filter.insert_hashes(&shifted, &mut vec![false; shifted.len()]);
            }
            let start = Instant::now();
            filter.save(path)?;
            report("saved", start, filter.memory_bytes());
        }
        ["load", path] => {
            let start = Instant::now();
            let filter = BloomFilter::load(path)?;
            report("loaded", start, filter.memory_bytes());
        }
        ["map", path] => {
            let start = Instant::now();
            // SAFETY: this example's user does not change the file meanwhile.
            #[allow(unsafe_code)]
            let filter = unsafe { BloomFilter::map(path)? };
            let found = filter.contains_hash(hash(1));
            println!("mapped, and a first answer ({found}): {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            filter.verify()?;
            report("verified", start, filter.memory_bytes());
        }
        _ => return Err("give save PATH GIBIBYTES, load PATH or map PATH".into()),
    }
    Ok(())
}

fn report(what: &str, start: Instant, bytes: usize) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what} {bytes} bytes: {seconds:.2} s, {:.0} MB/s", bytes as f64 / seconds / 1e6);
    // Linux tells the most memory that the process ever had.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = |line: &str| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse::<f64>().ok();
    if let Some(kibibytes) = status.lines().find_map(peak) {
        println!("peak memory: the filter and {:.1} MiB", kibibytes / 1024.0 - bytes as f64 / f64::from(1 << 20));
    }
}
