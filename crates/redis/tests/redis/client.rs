//! A client in another language: tests/data/server.py, which was written from crates/redis/PROTOCOL.md and docs/FORMAT.md alone.

use crate::harness::{self, tests};
use crate::python::python;
use crate::servers::{Server, wait_until};
use crate::{create, one_shard_size, three_shard_size};
use bloomline::BloomFilter;
use bloomline_redis::RedisBloomFilter;
use std::io::Write;
use std::process::{Output, Stdio};

tests! {
    python_and_rust_clients_see_each_others_keys,
    python_and_rust_clients_claim_each_key_once,
    unknown_filters_are_refused,
}

const SERVER: &str = "../../tests/data/server.py";

/// Runs the client with these keys, and returns its output.
fn run_client(server: &Server, name: &str, call: &str, keys: &[String]) -> Output {
    let mut command = python(SERVER).unwrap_or_else(|| harness::ignored("Python with xxhash"));
    command.args([&server.port.to_string(), name, call]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A client that refuses ends before it reads them.
    _ = child.stdin.take().unwrap().write_all(keys.join("\n").as_bytes());
    child.wait_with_output().unwrap()
}

/// Runs the client, and returns its answer for each key.
#[track_caller]
fn answers(server: &Server, name: &str, call: &str, keys: &[String]) -> Vec<bool> {
    let output = run_client(server, name, call, keys);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(|line| line == b"1").collect()
}

fn keys(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|key| format!("key {key}")).collect()
}

fn python_and_rust_clients_see_each_others_keys() {
    let server = Server::start("");
    for (name, size) in [
        ("one shard", one_shard_size()),
        ("three shards", three_shard_size()),
        ("16 probes", one_shard_size().probes(16)),
    ] {
        let mut filter = create(&server.address(), name, &size);
        let ours = keys(0..1000);
        let mut new = vec![false; 1000];
        assert_eq!(filter.insert_batch(&ours, &mut new), Ok(1000));
        let queried = keys(0..3000);
        let mut local: BloomFilter = size.clone().build().unwrap();
        local.insert_batch(&ours, &mut new);
        let contains: Vec<bool> = queried.iter().map(|key| local.contains(key)).collect();
        assert_eq!(answers(&server, name, "contains", &queried), contains);

        let theirs = keys(500..1500);
        let claimed: Vec<bool> = theirs.iter().map(|key| local.insert(key)).collect();
        assert_eq!(answers(&server, name, "insert", &theirs), claimed);
        assert!(claimed[500..].iter().filter(|new| **new).count() > 490, "{name}");
        let mut found = vec![false; 3000];
        filter.contains_batch(&queried, &mut found).unwrap();
        let contains: Vec<bool> = queried.iter().map(|key| local.contains(key)).collect();
        assert_eq!(found, contains);
        // All bits are equal, even if the Python client created a shard.
        assert!(filter.download().unwrap() == local, "{name}");
    }
}

/// Each key is new to exactly one client, in any order.
fn python_and_rust_clients_claim_each_key_once() {
    const KEYS: u32 = 5000;
    let server = Server::start("");
    let mut filter = create(&server.address(), "f", &three_shard_size());
    let queried = keys(0..KEYS);
    let mut ours = vec![false; queried.len()];
    let theirs = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| answers(&server, "f", "insert", &queried));
        // The clients start at opposite ends of the keys.
        wait_until("it claims", || server.calls("bitfield") > 0);
        for (key, new) in queried.iter().zip(&mut ours).rev() {
            *new = filter.insert(key).unwrap();
        }
        theirs.join().unwrap()
    });
    for (key, (ours, theirs)) in queried.iter().zip(ours.iter().zip(&theirs)) {
        assert!(ours != theirs, "{key}: {ours} {theirs}");
    }
    assert_eq!(filter.uncertain(), 0);
}

fn unknown_filters_are_refused() {
    let server = Server::start("");
    let refused = |name: &str| {
        let output = run_client(&server, name, "contains", &keys(0..1));
        assert!(!output.status.success() && output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap().trim_end().lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(refused("none"), "format.Refused: no such filter");
    create(&server.address(), "f", &one_shard_size());
    let mut connection = server.client().unwrap();
    let mut describe = |name: &str, line: &str| {
        redis::cmd("SET").arg(format!("cbf:{{{name}:meta}}")).arg(line).exec(&mut connection).unwrap();
    };
    let line: String = server.execute("GET cbf:{f:meta}");
    for (name, from, to, reason) in [
        ("newer", "version=2", "version=3", "another version"),
        ("older", "version=2", "version=1", "another version"),
        ("layout", "words4", "classic", "another layout"),
        ("shard", "shard=16777152", "shard=64", "another layout"),
        ("probes", "probes=8", "probes=9", "a bad value"),
        ("blocks", "blocks=16384", "blocks=0", "a bad value"),
        ("seed", "seed=6", "seed=7", "another hash"),
    ] {
        assert!(line.contains(from), "{line}");
        describe(name, &line.replace(from, to));
        assert_eq!(refused(name), format!("format.Refused: {reason}"), "{name}");
        assert!(RedisBloomFilter::open(&server.address(), name).is_err(), "{name}");
    }
    // The fields may have any order, and unknown fields are ignored.
    let mut words: Vec<&str> = line.split(' ').skip(1).chain(["later=1"]).collect();
    words.reverse();
    describe("order", &format!("bloomline {}", words.join(" ")));
    assert_eq!(answers(&server, "order", "contains", &keys(0..2)), [false, false]);
    RedisBloomFilter::open(&server.address(), "order").unwrap();
}
