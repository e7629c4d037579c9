//! Measures the false-positive rate of filters with stages that many clients fill, with what it costs, on an empty server:
//!
//! ```text
//! redis-server --port 7000 --save "" &
//! cargo run --release -p bloomline-redis --example rates -- redis://127.0.0.1:7000
//! ```
//!
//! All keys are distinct, so each that is not new is lost. The columns "lost" and "found" have the share of lost keys and of absent keys
//! that are found at the end, both divided by the requested rate.

use bloomline_redis::{RedisBloomFilter, RedisServer, Stages};
use std::error::Error;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use std::{env, thread};

const RATE: f64 = 0.01;

/// Keys in one call.
const BATCH: usize = 4096;

const CLIENTS: [u64; 4] = [1, 8, 16, 32];

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("the URL of an empty server is missing")?;
    let month = Duration::from_secs(30 * 86_400);
    let filters = [
        ("window of 10,000", Stages::window(month, 10_000, RATE), 1 << 18),
        ("window of 1,000,000", Stages::window(month, 1_000_000, RATE), 1 << 20),
        ("growing from 1,000", Stages::growing(RATE).first_stage(1000), 1 << 18),
        ("growing from 100,000", Stages::growing(RATE).first_stage(100_000), 1 << 20),
    ];
    println!("| filter | clients | lost | found | stages | bytes/key | sent/key | server µs/key | keys/s |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (name, stages, keys) in filters {
        for clients in CLIENTS {
            measure(&url, name, &stages, clients, keys)?;
        }
    }
    Ok(())
}

/// Inserts the keys by these clients, and prints a line of the table.
fn measure(url: &str, name: &str, stages: &Stages, clients: u64, keys: u64) -> Result<(), Box<dyn Error>> {
    let server = RedisServer::new(url)?;
    let mut connection = redis::Client::open(url)?.get_connection()?;
    let mut filter = RedisBloomFilter::create_stages(&server, "rates", stages)?;
    if filter.stats()?.estimated_keys > 0.0 {
        return Err("the server has a filter \"rates\" with keys".into());
    }
    let barrier = Barrier::new(usize::try_from(clients)?);
    let insert = |client: u64| {
        let mut filter = RedisBloomFilter::open(&server, "rates").expect("the filter exists");
        let keys: Vec<u64> = (0..keys / clients).map(|i| i * clients + client).collect();
        barrier.wait();
        let count = |keys: &[u64]| filter.insert_batch(keys, &mut vec![false; keys.len()]).expect("the server answers");
        keys.chunks(BATCH).map(count).sum::<usize>()
    };
    let (before, started) = (usage(&mut connection)?, Instant::now());
    let new: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|client| {
                let insert = &insert;
                scope.spawn(move || insert(client))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("the client succeeds")).sum()
    });
    let (seconds, after) = (started.elapsed().as_secs_f64(), usage(&mut connection)?);
    let absent: Vec<u64> = (1 << 40..(1 << 40) + 100_000).collect();
    let found = filter.contains_batch(&absent, &mut vec![false; absent.len()])?;
    let stats = filter.stats()?;
    filter.delete()?;
    let count = keys as f64;
    println!(
        "| {name} | {clients} | {:.2} | {:.2} | {} | {:.2} | {:.0} | {:.2} | {:.0} |",
        (count - new as f64) / count / RATE,
        found as f64 / absent.len() as f64 / RATE,
        stats.stages,
        stats.memory_bytes as f64 / count,
        (after[0] - before[0]) / count,
        (after[1] - before[1]) / count * 1e6,
        count / seconds,
    );
    Ok(())
}

/// Returns the bytes that the server has received and sent, and the seconds of its CPU time.
fn usage(connection: &mut redis::Connection) -> Result<[f64; 2], Box<dyn Error>> {
    let info: String = redis::cmd("INFO").query(connection)?;
    let number = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|number| number.parse::<f64>().ok()).ok_or_else(|| format!("INFO has no {name}"))
    };
    Ok([
        number("total_net_input_bytes")? + number("total_net_output_bytes")?,
        number("used_cpu_sys")? + number("used_cpu_user")?,
    ])
}
