//! A client in another language: tests/data/server.py, which was written from crates/redis/PROTOCOL.md and docs/FORMAT.md alone, and
//! runs the Python of these pages.

use crate::harness::{self, tests};
use crate::proxy::Proxy;
use crate::python::python;
use crate::servers::{Server, wait_until};
use crate::{create, one_shard_size, three_shard_size};
use bloomline::BloomFilter;
use bloomline_redis::{RedisBloomFilter, Stages};
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

tests! {
    python_and_rust_clients_see_each_others_keys,
    python_and_rust_clients_claim_each_key_once,
    no_key_is_lost_when_connections_of_the_python_client_break,
    unknown_filters_are_refused,
    the_python_of_the_page_computes_the_sizes_of_the_page,
}

const SERVER: &str = "../../tests/data/server.py";

fn client() -> Command {
    python(SERVER).unwrap_or_else(|| harness::ignored("Python"))
}

/// Runs the client with these keys, and returns its output. The call may be followed by the size of the filter.
fn run_client(server: &Server, name: &str, call: &str, keys: &[String]) -> Output {
    run_client_at(&server.url(), name, call, keys)
}

/// Runs the client on the server at this URL.
fn run_client_at(url: &str, name: &str, call: &str, keys: &[String]) -> Output {
    let mut command = client();
    command.args([url.rsplit(':').next().unwrap(), name]).args(call.split(' '));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A client that refuses ends before it reads them.
    _ = child.stdin.take().unwrap().write_all(keys.join("\n").as_bytes());
    child.wait_with_output().unwrap()
}

/// Runs the client, and returns its answer for each key.
#[track_caller]
fn answers(server: &Server, name: &str, call: &str, keys: &[String]) -> Vec<bool> {
    parse_answers(&run_client(server, name, call, keys))
}

#[track_caller]
fn parse_answers(output: &Output) -> Vec<bool> {
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

/// Each key is new to exactly one client, in any order, whichever client creates the filter or a stage.
fn python_and_rust_clients_claim_each_key_once() {
    drop(client());
    // The probability of a false positive is below 1e-9.
    let (keys, rate) = (keys(0..4000), 1e-13);
    let growing = Stages::growing(rate).first_stage(500);
    let window = Stages::window(Duration::from_secs(86_400), 1000, rate).generations(3);
    for (name, size, stages) in [
        ("fixed", "9000 1e-13", None),
        ("grows", "500 1e-13 0 0", Some(growing)),
        ("forgets", "1000 1e-13 86400 3", Some(window)),
    ] {
        let server = Server::start("");
        let open = || match &stages {
            None => {
                create(&server.address(), name, &BloomFilter::builder().expected_keys(9000).false_positive_rate(rate))
            }
            Some(stages) => RedisBloomFilter::create_stages(&server.address(), name, stages).unwrap(),
        };
        // Both clients have filled earlier stages, and some generations are over.
        for round in 0..3 {
            let (keys, mut ours) = (&keys[..4000 - 1000 * round], vec![false; 4000 - 1000 * round]);
            let keys: Vec<String> = keys.iter().map(|key| format!("{key} {round}")).collect();
            let theirs = std::thread::scope(|scope| {
                let theirs = scope.spawn(|| answers(&server, name, &format!("insert {size}"), &keys));
                // The clients start at opposite ends of the keys.
                let mut filter = open();
                wait_until("it claims", || filter.contains(&keys[0]).unwrap() || theirs.is_finished());
                for (keys, new) in keys.rchunks(50).zip(ours.rchunks_mut(50)) {
                    filter.insert_batch(keys, new).unwrap();
                }
                assert_eq!(filter.uncertain(), 0);
                theirs.join().unwrap()
            });
            for (key, (ours, theirs)) in keys.iter().zip(ours.iter().zip(&theirs)) {
                assert!(ours != theirs, "{name}: {key}: {ours} {theirs}");
            }
            let mut filter = open();
            assert_eq!(filter.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()), "{name}");
            assert_eq!(answers(&server, name, "contains", &keys), vec![true; keys.len()], "{name}");
            let stats = filter.stats().unwrap();
            assert!(stats.expected_fpr < rate, "{name}: {stats:?}");
            match name {
                "grows" => assert!(stats.stages >= 4, "{stats:?}"),
                "forgets" => {
                    assert_eq!(stats.stages, round + 1);
                    server.advance_clock(name, 86_400 / 3);
                }
                _ => {}
            }
        }
        // The first generation was opened five periods ago.
        if name == "forgets" {
            server.advance_clock(name, 2 * 86_400 / 3 + 3);
            let forgotten = ["key 0 0".to_owned()];
            assert_eq!(answers(&server, name, "contains", &forgotten), [false]);
            assert_eq!(answers(&server, name, "insert", &forgotten), [true]);
            assert_eq!(open().insert("key 0 0"), Ok(false));
        }
    }
}

/// The filter grows meanwhile.
fn no_key_is_lost_when_connections_of_the_python_client_break() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, 3);
    let keys = keys(0..3000);
    let stages = Stages::growing(1e-13).first_stage(300);
    let mut ours = vec![false; keys.len()];
    proxy.break_connections(true);
    let (theirs, uncertain) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| run_client_at(&proxy.url(), "f", "insert 300 1e-13 0 0", &keys));
        let mut filter = RedisBloomFilter::create_stages(&server.address(), "f", &stages).unwrap();
        for (keys, new) in keys.rchunks(50).zip(ours.rchunks_mut(50)) {
            filter.insert_batch(keys, new).unwrap();
        }
        (theirs.join().unwrap(), filter.uncertain())
    });
    let reported = String::from_utf8(theirs.stderr.clone()).unwrap();
    let uncertain = uncertain + reported.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
    let (mut lost, mut twice) = (0, 0);
    for (ours, theirs) in ours.iter().zip(parse_answers(&theirs)) {
        lost += u64::from(!ours && !theirs);
        twice += u64::from(*ours && theirs);
    }
    assert!(lost == 0 && twice <= uncertain, "{lost} lost, {twice} twice, {uncertain} uncertain: {reported}");
    assert!(proxy.broken_connections() > 0);
}

fn the_python_of_the_page_computes_the_sizes_of_the_page() {
    let output = client().arg("sizes").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stdout.split_inclusive(|&byte| byte == b'\n').count(), 20);
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
        ("newer", "version=2", "version=4", "another version"),
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
    // A list with a stage that would lose keys.
    RedisBloomFilter::create_stages(&server.address(), "list", &Stages::growing(1e-6).first_stage(1000)).unwrap();
    let list: Vec<String> = server.execute("HGETALL cbf:{list:stages}");
    let mut overfull = redis::cmd("HSET");
    overfull.arg("cbf:{list:stages}").arg(0).arg(list[1].replace("blocks=", "blocks=8 of="));
    overfull.exec(&mut server.client().unwrap()).unwrap();
    assert_eq!(refused("list"), "format.Refused: a stage that does not keep its rate");
    // The fields may have any order, and unknown fields are ignored.
    let mut words: Vec<&str> = line.split(' ').skip(1).chain(["later=1"]).collect();
    words.reverse();
    describe("order", &format!("bloomline {}", words.join(" ")));
    assert_eq!(answers(&server, "order", "contains", &keys(0..2)), [false, false]);
    RedisBloomFilter::open(&server.address(), "order").unwrap();
}
