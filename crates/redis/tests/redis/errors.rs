//! Refusals of servers, and the errors that callers get.

use crate::harness::tests;
use crate::servers::{Cluster, Server, address, command, wait_until};
use crate::{Tally, create, expect_error, one_shard_size, three_shard_size};
use bloomline::BloomFilter;
use bloomline_redis::RedisFilterError::{Denied, Differs, Name, NotBloomline, NotFound, OutOfMemory, ReadOnly, Seed};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisFilterError, RedisServer};
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

tests! {
    missing_passwords_and_rights_are_reported,
    passwords_required_later_cause_no_uncertainty,
    the_listed_rights_suffice_for_a_user,
    filters_with_other_parameters_are_refused,
    full_servers_accept_the_rest_later,
    replicas_refuse_inserts,
    databases_have_separate_filters,
    endless_answers_are_refused,
    commands_that_were_renamed_are_named,
}

/// Opens a filter with both kinds of clients, whose results must agree.
fn open(url: &str, name: &str) -> Result<RedisBloomFilter, RedisFilterError> {
    let server = address(url);
    let filter = RedisBloomFilter::create(&server, name, &one_shard_size());
    let other = crate::tasks::runtime().block_on(AsyncRedisBloomFilter::create(&server, name, &one_shard_size()));
    match (&filter, &other) {
        (Ok(_), Ok(_)) => {}
        (Err(error), Err(other)) => assert_eq!(error, other),
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => panic!("only one of the two: {error}"),
    }
    filter
}

fn missing_passwords_and_rights_are_reported() {
    let server = Server::start("--requirepass hush");
    let host = format!("127.0.0.1:{}", server.port);
    assert!(open(&format!("redis://:hush@{host}"), "f").unwrap().insert(&1).unwrap());
    for (user, expected) in
        [("", "NOAUTH"), (":guess@", "authentication failed"), ("me:hush@", "authentication failed")]
    {
        let error = expect_error(open(&format!("redis://{user}{host}"), "f"), &["give a user and a password"]);
        assert!(matches!(&error, Denied { node, message } if *node == host && message.contains(expected)), "{error:?}");
        assert!(!["guess", "hush"].iter().any(|password| error.to_string().contains(password)), "{error}");
    }
    let server = Server::start("");
    let host = format!("127.0.0.1:{}", server.port);
    for (user, rights) in [("reader", "-bitfield"), ("outsider", "-cluster"), ("writer", "-get")] {
        server.execute::<()>(&format!("ACL SETUSER {user} on >hush ~* &* +@all {rights}"));
    }
    let mut reader = open(&format!("redis://reader:hush@{host}"), "f").unwrap();
    assert_eq!(reader.contains(&1), Ok(false));
    let error = expect_error(reader.insert(&1), &["with the right to PING"]);
    assert!(matches!(&error, Denied { node, message } if *node == host && message.contains("'bitfield'")), "{error:?}");
    for (user, command) in [("outsider", "'cluster"), ("writer", "'get'")] {
        let error = expect_error(open(&format!("redis://{user}:hush@{host}"), "f"), &["with the right to PING"]);
        assert!(matches!(&error, Denied { node, message } if *node == host && message.contains(command)), "{error:?}");
    }
}

/// A server that lacks the password reads no long command, and closes the connection.
fn passwords_required_later_cause_no_uncertainty() {
    let server = Server::start("");
    let mut filter = create(&server.address(), "f", &one_shard_size());
    let runtime = crate::tasks::runtime();
    let mut other = runtime.block_on(AsyncRedisBloomFilter::open(&server.address(), "f")).unwrap();
    assert_eq!(filter.insert(&0), Ok(true));
    assert_eq!(runtime.block_on(other.insert(&1)), Ok(true));
    let mut operator = server.client().unwrap();
    for line in ["CONFIG SET requirepass hush", "CLIENT KILL TYPE normal SKIPME yes"] {
        command(line).query::<redis::Value>(&mut operator).unwrap();
    }
    // Both clients test an idle connection.
    thread::sleep(Duration::from_millis(1100));
    // So few keys are claimed without a read.
    let keys: Vec<u64> = (2..202).collect();
    for is_blocking in [true, false] {
        let mut new = [true; 200];
        let (inserted, uncertain) = if is_blocking {
            (filter.insert_batch(&keys, &mut new), filter.uncertain())
        } else {
            (runtime.block_on(other.insert_batch(&keys, &mut new)), other.uncertain())
        };
        let error = expect_error(inserted, &["give a user and a password"]);
        assert!(matches!(&error, Denied { message, .. } if message.contains("NOAUTH")), "{error:?}");
        assert!((uncertain, new) == (0, [false; 200]), "{uncertain}");
    }
}

/// Files of the library in which commands are made.
const SOURCES: [&str; 7] =
    ["remote_filter.rs", "shards.rs", "jobs.rs", "nodes.rs", "exchange.rs", "handshake.rs", "watch.rs"];

/// The rights that docs/SERVER.md lists.
pub fn rights() -> String {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SERVER.md")).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("ACL SETUSER crawler on >secret "));
    line.expect("the page has the line").to_owned()
}

fn the_listed_rights_suffice_for_a_user() {
    let cluster = Cluster::start(2, false);
    for node in &cluster.nodes {
        node.execute::<()>(&format!("ACL SETUSER crawler on >secret {}", rights()));
    }
    let url = |node: &Server| format!("redis://crawler:secret@127.0.0.1:{}", node.port);
    let url = cluster.nodes.iter().map(url).collect::<Vec<_>>().join(",");
    let address = address(&url).read_from_replicas();
    let mut filter = RedisBloomFilter::create(&address, "f", &three_shard_size()).unwrap();
    assert_eq!(filter.insert_batch(&[1, 2, 3], &mut [false; 3]), Ok(3));
    assert_eq!(filter.contains(&1), Ok(true));
    let mut local = three_shard_size().build().unwrap();
    local.insert(&4);
    filter.upload(&local).unwrap();
    assert!(filter.download().unwrap().contains(&4) && filter.stats().unwrap().fill_ratio > 0.0);
    // Connections that were idle are tested.
    thread::sleep(Duration::from_millis(1100));
    assert_eq!((filter.insert(&4), filter.check(), filter.may_evict()), (Ok(false), Ok(()), None));
    // A slot that moves.
    let (slot, home) = cluster.slot_and_primary("cbf:{f:1}");
    cluster.migrate(slot, home, 1 - home, || {
        let keys: Vec<i32> = (0..100).collect();
        assert_eq!(filter.insert_batch(&keys, &mut [false; 100]), Ok(96));
    });
    assert_eq!(filter.insert_batch(&[1, 2, 3], &mut [false; 3]), Ok(0));
    filter.delete().unwrap();
    assert_eq!(RedisBloomFilter::remove(&address, "f"), Ok(false));
    // Each right is needed.
    let read = |file: &str| fs::read_to_string(format!("{}/src/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let code: String = SOURCES.map(read).concat();
    for right in rights().split(' ').filter_map(|right| right.strip_prefix('+')) {
        let words = right.to_uppercase().replace('|', "\").arg(\"");
        assert!(code.contains(&format!("\"{words}\"")), "{right}");
    }
}

fn databases_have_separate_filters() {
    let server = Server::start("");
    for (database, keys) in [(3, 2), (0, 0)] {
        // Both kinds of clients.
        let url = format!("{}/{database}", server.url());
        if keys > 0 {
            assert_eq!(open(&url, "f").unwrap().insert(&1), Ok(true));
            assert_eq!(open(&url, "f").unwrap().contains(&1), Ok(true));
        }
        let listed = RedisBloomFilter::list(&RedisServer::new(&url).unwrap()).unwrap();
        assert_eq!(listed.len(), keys.min(1), "{database}");
    }
    let server = RedisServer::new(&format!("{}/99", server.url())).unwrap();
    let other = crate::tasks::runtime().block_on(AsyncRedisBloomFilter::open(&server, "f")).map(drop);
    for opened in [RedisBloomFilter::open(&server, "f").map(drop), other] {
        expect_error(opened, &["DB index is out of range", "/DATABASE in the URL"]);
    }
}

/// A server that sends bytes without end in place of an answer.
fn endless_answers_are_refused() {
    for beginning in ["$99999999999\r\n", "*99999999999\r\n", "-"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = RedisServer::new(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2 {
                    let (mut stream, _) = listener.accept().unwrap();
                    let filler = if beginning.starts_with('*') { &b":1\r\n"[..] } else { b"abcd" };
                    let filler = filler.repeat(1 << 14);
                    let mut sent = stream.write_all(beginning.as_bytes());
                    while sent.is_ok() {
                        sent = stream.write_all(&filler);
                    }
                }
            });
            let blocking = RedisBloomFilter::open(&server, "f").map(drop);
            let other = crate::tasks::runtime().block_on(AsyncRedisBloomFilter::open(&server, "f")).map(drop);
            for opened in [blocking, other] {
                let error = opened.unwrap_err().to_string();
                let matches = ["longer than any", "not one of a Redis server", "timed out"]
                    .map(|matches| error.contains(matches));
                assert!(matches.contains(&true), "{beginning:?}: {error}");
            }
        });
    }
}

fn filters_with_other_parameters_are_refused() {
    let server = Server::start("");
    let (address, url) = (server.address(), server.url());
    let error = expect_error(RedisBloomFilter::open(&address, "f"), &["\"f\"", "create it"]);
    assert_eq!(error, NotFound { name: "f".to_owned() });
    let error = expect_error(open(&url, "{f}"), &["braces"]);
    assert_eq!(error, Name { name: "{f}".to_owned() });

    let filter = create(&address, "f", &one_shard_size());
    let by_keys = BloomFilter::builder().expected_keys(5_000_000).false_positive_rate(1e-6);
    for (size, rate) in [(one_shard_size().memory(2 << 20), 0.01), (one_shard_size().probes(12), 0.01), (by_keys, 1e-6)]
    {
        let error = expect_error(RedisBloomFilter::create(&address, "f", &size), &["choose another name"]);
        let [ours, theirs] = [size.plan().unwrap(), filter.plan()].map(|plan| {
            let (keys, bytes, probes) = (plan.capacity(rate), plan.memory_bytes(), plan.probes());
            format!("has room for {keys} keys at a rate of {rate:?} ({bytes} bytes, {probes} probes)")
        });
        assert_eq!(error, Differs { name: "f".to_owned(), ours, theirs });
    }
    let error = expect_error(
        RedisBloomFilter::create(&address, "f", &one_shard_size().seed(1)),
        &["another seed", "choose another name"],
    );
    assert_eq!(error, Seed { name: "f".to_owned() });
    let opened = RedisBloomFilter::open(&address, "f").unwrap();
    assert_eq!((opened.plan(), opened.seed(), opened.name()), (filter.plan(), 6, "f"));
    let expected = "RedisBloomFilter { name: \"f\", block_count: 16384, probes: 8, mirror: true, uncertain: 0, unconfirmed: 0, .. }";
    assert_eq!(format!("{:?}", opened.with_mirror().unwrap()), expected);

    server.execute::<()>("LPUSH cbf:{list:meta} x");
    server.execute::<()>("SET cbf:{text:meta} x");
    for name in ["list", "text"] {
        let error = expect_error(open(&url, name), &["choose another name"]);
        assert_eq!(error, NotBloomline { key: format!("cbf:{{{name}:meta}}") });
    }
    // The filter exists, and a key of its bits has another type.
    let mut filter = create(&address, "taken", &one_shard_size());
    server.execute::<()>("LPUSH cbf:{taken:0} x");
    let key = "cbf:{taken:0}".to_owned();
    assert_eq!(expect_error(filter.insert(&1), &["choose another name"]), NotBloomline { key: key.clone() });
    assert_eq!(expect_error(filter.contains(&1), &[]), NotBloomline { key: key.clone() });
    assert_eq!(expect_error(filter.stats(), &[]), NotBloomline { key });
}

fn full_servers_accept_the_rest_later() {
    let server = Server::start("--maxmemory-policy noeviction");
    let mut filter = create(&server.address(), "f", &three_shard_size());
    // Room for one of the three shards: the next one exceeds it, and then the server refuses every write.
    let used = server.info_number("used_memory");
    server.execute::<()>(&format!("CONFIG SET maxmemory {}", used + (20 << 20)));
    let tally = Tally::new(12_000);
    // The keys are in the order of their shards, and those of the first shard fill a portion.
    let mut keys: Vec<u64> = (0..tally.keys()).collect();
    keys.sort_by_key(|key| filter.hasher().bytes(&key.to_le_bytes()));
    let mut new = vec![true; keys.len()];
    let error = expect_error(filter.insert_batch(&keys, &mut new), &["give it more"]);
    let full = OutOfMemory { node: format!("127.0.0.1:{}", server.port) };
    assert_eq!(error, full);
    let claimed = new.iter().filter(|new| **new).count();
    assert!((1..keys.len()).contains(&claimed), "{claimed} claimed");
    tally.count(&keys, &new);
    assert_eq!(filter.insert_batch(&keys, &mut new), Err(full));
    assert!(new.iter().all(|new| !new));
    server.execute::<()>("CONFIG SET maxmemory 0");
    assert_eq!(filter.insert_batch(&keys, &mut new), Ok(keys.len() - claimed));
    tally.count(&keys, &new);
    tally.assert_once_each();
    assert_eq!(filter.uncertain(), 0);
}

fn replicas_refuse_inserts() {
    let [primary, replica] = [(); 2].map(|()| Server::start(""));
    create(&primary.address(), "f", &one_shard_size()).insert(&1).unwrap();
    replica.execute::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    wait_until("it follows", || replica.execute::<u64>("DBSIZE") == 2);
    let mut filter = RedisBloomFilter::open(&replica.address(), "f").unwrap();
    assert_eq!(filter.contains(&1), Ok(true));
    let readonly = ReadOnly { node: format!("127.0.0.1:{}", replica.port) };
    assert_eq!(expect_error(filter.insert(&2), &["address of its primary"]), readonly);
    assert_eq!(expect_error(open(&replica.url(), "g"), &[]), readonly);
}

fn commands_that_were_renamed_are_named() {
    let server = Server::start("--rename-command CLUSTER HIDDEN");
    let refused = expect_error(open(&server.url(), "f"), &["CLUSTER", "rename-command"]);
    assert!(matches!(refused, RedisFilterError::Refused { .. }), "{refused:?}");
}
