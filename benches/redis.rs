//! The filter on a server, beside what people do today: six GETBIT and six SETBIT for each key, and a set of fingerprints. Starts
//! `redis-server` or `valkey-server` from the path, for itself.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench redis
//! ```

use bloomline::{BloomFilter, KeyHasher};
use bloomline_benches::hashes::{FRESH, hash, range};
use bloomline_benches::smoke;
use bloomline_benches::turns::{Side, duel, timed};
use bloomline_redis::{RedisBloomFilter, RedisServer};
use redis::{Connection, Pipeline, cmd, pipe};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Keys in one batch.
const BATCH: usize = 1000;

fn main() {
    let Some(server) = Server::start() else {
        println!("skipped: neither redis-server nor valkey-server can be started");
        return;
    };
    speed(&server);
    memory(&server);
}

/// Keys a second, one client.
fn speed(server: &Server) {
    let keys = if smoke() { BATCH } else { 50 * BATCH };
    let size = || BloomFilter::builder().expected_keys(1 << 20).false_positive_rate(0.01);
    let open = |name| RedisBloomFilter::create(&RedisServer::new(&server.url).unwrap(), name, &size()).unwrap();
    let (mut ours, mut queried) = (open("ours"), open("ours"));
    let (mut one_by_one, mut pipelined) = (server.connect(), server.connect());
    let mut new = vec![false; BATCH];
    let mut found = vec![false; BATCH];
    let bits = ours.plan().memory_bytes() as u64 * 8;
    duel(
        &format!("{keys} fresh keys in batches of {BATCH}, and the same queried"),
        vec![
            Side::new("insert_hashes", keys, |round| {
                let hashes = range(FRESH + round, 0..keys as u64);
                timed(|| hashes.chunks(BATCH).map(|hashes| ours.insert_hashes(hashes, &mut new).unwrap()).sum())
            }),
            Side::new("contains_hashes", keys, |round| {
                let hashes = range(FRESH + round, 0..keys as u64);
                timed(|| hashes.chunks(BATCH).map(|hashes| queried.contains_hashes(hashes, &mut found).unwrap()).sum())
            }),
            Side::new("6 GETBIT, then 6 SETBIT, one by one", keys / 10, |round| {
                let hashes = range(FRESH + round, 0..keys as u64 / 10);
                timed(|| {
                    hashes
                        .iter()
                        .filter(|&&key| {
                            let bit_positions: Vec<u64> = bit_positions(key, bits).collect();
                            let get =
                                |&bit: &u64| cmd("GETBIT").arg("naive").arg(bit).query::<u8>(&mut one_by_one).unwrap();
                            let new = bit_positions.iter().map(get).fold(1, |seen, bit| seen & bit) == 0;
                            for bit in bit_positions {
                                cmd("SETBIT").arg("naive").arg(bit).arg(1).exec(&mut one_by_one).unwrap();
                            }
                            new
                        })
                        .count()
                })
            }),
            Side::new("the same, in pipelines of a batch", keys, |round| {
                let hashes = range(FRESH + round, 0..keys as u64);
                timed(|| {
                    hashes
                        .chunks(BATCH)
                        .map(|hashes| {
                            let mut get = Pipeline::with_capacity(6 * BATCH);
                            let mut set = Pipeline::with_capacity(6 * BATCH);
                            for bit in hashes.iter().flat_map(|&key| bit_positions(key, bits)) {
                                get.cmd("GETBIT").arg("pipelined").arg(bit);
                                set.cmd("SETBIT").arg("pipelined").arg(bit).arg(1).ignore();
                            }
                            let bits: Vec<u8> = get.query(&mut pipelined).unwrap();
                            set.exec(&mut pipelined).unwrap();
                            bits.chunks(6).filter(|bits| bits.contains(&0)).count()
                        })
                        .sum()
                })
            }),
        ],
    );
}

/// The bits of the usual filter: six hashes with six seeds.
fn bit_positions(key: u64, bits: u64) -> impl Iterator<Item = u64> {
    (0..6).map(move |seed| hash(seed, key & 0xFF_FFFF_FFFF) % bits)
}

/// The server's memory for a million keys.
fn memory(server: &Server) {
    let keys: usize = if smoke() { 1000 } else { 1_000_000 };
    let mut connection = server.connect();
    let used = |connection: &mut Connection| {
        let info: String = cmd("INFO").arg("memory").query(connection).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        line.trim().parse::<usize>().unwrap()
    };
    let before = used(&mut connection);
    let size = BloomFilter::builder().expected_keys(keys as u64).false_positive_rate(0.01);
    let mut filter = RedisBloomFilter::create(&RedisServer::new(&server.url).unwrap(), "memory", &size).unwrap();
    let keys = range(FRESH, 0..keys as u64);
    let mut new = vec![false; BATCH];
    keys.chunks(BATCH).for_each(|hashes| _ = filter.insert_hashes(hashes, &mut new).unwrap());
    // The client's buffers belong to neither.
    drop(filter);
    sleep(Duration::from_millis(100));
    let ours = used(&mut connection) - before;

    let hashers = [1, 2, 3].map(KeyHasher::new);
    for keys in keys.chunks(BATCH) {
        let mut all = pipe();
        for key in keys {
            let parts = hashers.each_ref().map(|hasher| hasher.bytes(&key.to_le_bytes()));
            let fingerprint = format!("{:016x}{:016x}{:08x}", parts[0], parts[1], parts[2] as u32);
            all.cmd("SADD").arg("fingerprints").arg(fingerprint).ignore();
        }
        all.exec(&mut connection).unwrap();
    }
    let theirs = used(&mut connection) - before - ours;
    println!("memory of the server for {} keys", keys.len());
    println!(
        "  filter at 1 %                                {ours:12} bytes  {:6.2} a key",
        ours as f64 / keys.len() as f64
    );
    println!(
        "  set of fingerprints of 40 characters         {theirs:12} bytes  {:6.2} a key",
        theirs as f64 / keys.len() as f64
    );
    println!("  the set takes {:.1} times as much", theirs as f64 / ours as f64);
}

/// A server of our own, without persistence.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start() -> Option<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0)).ok()?.local_addr().ok()?.port();
        let child = ["redis-server", "valkey-server"].into_iter().find_map(|program| {
            let mut command = Command::new(program);
            command.args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"]);
            command.stdout(Stdio::null()).spawn().ok()
        })?;
        let mut server = Self { child, url: format!("redis://127.0.0.1:{port}") };
        let client = redis::Client::open(&*server.url).unwrap();
        while client.get_connection().is_err() {
            if let Ok(Some(_)) = server.child.try_wait() {
                return None;
            }
            sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    fn connect(&self) -> Connection {
        redis::Client::open(&*self.url).unwrap().get_connection().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
