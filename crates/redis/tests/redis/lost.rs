//! Filters that are removed, evicted, lost or made anew beneath their clients.

use crate::harness::tests;
use crate::servers::{Cluster, Server, TIMEOUT};
use crate::{create, expect_error, one_shard_size, three_shard_size};
use bloomline_redis::RedisFilterError::{Gone, LeftOver, Remains, Replaced};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisFilterError};
use std::thread;
use std::time::{Duration, Instant};

tests! {
    clients_of_an_emptied_server_fail,
    evicted_shards_are_detected,
    figures_and_copies_of_a_lost_filter_are_errors,
    queries_detect_evicted_shards,
    large_filters_are_removed_completely,
    filters_without_metadata_are_reported,
    leftovers_of_another_filter_are_not_overwritten,
    recreated_filters_are_not_the_same,
    old_clients_leave_no_marks,
    leftovers_of_an_old_client_are_reported,
    servers_restarted_empty_are_reported_immediately,
    emptied_cluster_nodes_are_detected,
    filters_without_marks_accept_all_clients,
    tasks_detect_a_lost_filter,
    loss_checks_need_no_round_trip,
    a_server_that_may_evict_is_named,
}

/// More than the interval at which a client checks for a lost filter.
const PERIOD: Duration = Duration::from_millis(1100);

/// Keys of all shards.
fn hundred() -> Vec<u64> {
    (0..100).collect()
}

/// A client that has used all three shards of the filter `f`.
fn client(server: &Server) -> RedisBloomFilter {
    let mut filter = create(&server.address(), "f", &three_shard_size());
    assert_eq!(filter.insert_batch(&hundred(), &mut [false; 100]), Ok(100));
    filter
}

/// Inserts until a call fails.
#[track_caller]
fn until_failure(filter: &mut RedisBloomFilter) -> RedisFilterError {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < TIMEOUT, "the loss was not detected");
        let keys: Vec<u64> = (0..500).map(|i| i + started.elapsed().as_micros() as u64).collect();
        if let Err(error) = filter.insert_batch(&keys, &mut [false; 500]) {
            // The error is permanent, and later calls send nothing.
            assert_eq!(filter.insert(&1), Err(error.clone()));
            assert_eq!(filter.contains(&1), Err(error.clone()));
            assert_eq!(filter.stats().map(drop), Err(error.clone()));
            return error;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn gone(part: &str) -> RedisFilterError {
    Gone { name: "f".to_owned(), key: format!("cbf:{{f:{part}}}") }
}

fn replaced(part: &str) -> RedisFilterError {
    Replaced { name: "f".to_owned(), key: format!("cbf:{{f:{part}}}") }
}

fn left_over(part: &str) -> RedisFilterError {
    LeftOver { name: "f".to_owned(), key: format!("cbf:{{f:{part}}}") }
}

fn clients_of_an_emptied_server_fail() {
    let server = Server::start("");
    let mut filter = client(&server);
    server.execute::<()>("FLUSHALL");
    let error = until_failure(&mut filter);
    assert!(matches!(error, Gone { .. }) && error.to_string().contains("start again"), "{error:?}");
}

fn evicted_shards_are_detected() {
    let server = Server::start("");
    for part in ["0", "1", "2"] {
        let mut filter = client(&server);
        server.execute::<()>(&format!("DEL cbf:{{f:{part}}}"));
        assert_eq!(until_failure(&mut filter), gone(part));
        RedisBloomFilter::remove(&server.address(), "f").unwrap();
        // The next client that uses the shard gives it another mark, so the loss is reported all the same.
        let mut old = client(&server);
        server.execute::<()>(&format!("DEL cbf:{{f:{part}}}"));
        let mut next = create(&server.address(), "f", &three_shard_size());
        next.insert_batch(&hundred(), &mut [false; 100]).unwrap();
        assert_eq!(until_failure(&mut old), gone(part));
        assert_eq!(next.check(), Ok(()));
        assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(true));
    }
    let mut filter = client(&server);
    server.execute::<()>("DEL cbf:{f:meta}");
    assert_eq!(until_failure(&mut filter), gone("meta"));
}

/// A lost filter must not be treated as an empty one.
fn figures_and_copies_of_a_lost_filter_are_errors() {
    let server = Server::start("");
    for known in [true, false] {
        let mut filter = client(&server);
        if !known {
            filter = RedisBloomFilter::open(&server.address(), filter.name()).unwrap();
        }
        let mut other = filter.new_client();
        server.execute::<()>("FLUSHALL");
        assert!(matches!(filter.stats(), Err(RedisFilterError::Gone { .. })));
        assert!(matches!(other.download(), Err(RedisFilterError::Gone { .. })));
    }
}

fn queries_detect_evicted_shards() {
    let server = Server::start("");
    for part in ["1", "meta"] {
        client(&server);
        let mut reader = RedisBloomFilter::open(&server.address(), "f").unwrap();
        assert_eq!(reader.contains_batch(&hundred(), &mut [false; 100]), Ok(100));
        thread::sleep(PERIOD);
        assert_eq!(reader.contains_batch(&hundred(), &mut [false; 100]), Ok(100));
        server.execute::<()>(&format!("DEL cbf:{{f:{part}}}"));
        assert_eq!(reader.check(), Err(gone(part)));
        RedisBloomFilter::remove(&server.address(), "f").unwrap();
    }
}

/// Shards without writes do not end the removal.
fn large_filters_are_removed_completely() {
    let server = Server::start("");
    let size = bloomline::BloomFilter::builder().memory(20 << 30).probes(8);
    let mut filter = create(&server.address(), "f", &size);
    // In the last of 1280 shards.
    assert_eq!(filter.insert_hashes(&[u64::MAX], &mut [false]), Ok(1));
    assert_eq!(server.execute::<u64>("DBSIZE"), 2);
    assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(true));
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
}

fn filters_without_metadata_are_reported() {
    let server = Server::start("");
    client(&server);
    server.execute::<()>("DEL cbf:{f:meta}");
    let remains = Remains { name: "f".to_owned() };
    assert_eq!(expect_error(RedisBloomFilter::open(&server.address(), "f"), &["stop its clients"]), remains);
    // A second filter does not overwrite it.
    for size in [three_shard_size(), one_shard_size()] {
        assert_eq!(
            expect_error(RedisBloomFilter::create(&server.address(), "f", &size), &["bloomline redis delete"]),
            remains
        );
    }
    assert_eq!(server.execute::<u64>("DBSIZE"), 3);
    assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(true));
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
    assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(false));
    client(&server);
}

fn leftovers_of_another_filter_are_not_overwritten() {
    let server = Server::start("");
    client(&server);
    // The description is lost, and so is the shard that would show that the filter exists.
    server.execute::<()>("DEL cbf:{f:meta} cbf:{f:0}");
    let mut other = create(&server.address(), "f", &three_shard_size().memory(41 << 20));
    let mut new = [true; 100];
    let error = other.insert_batch(&hundred(), &mut new).unwrap_err();
    assert!(error == left_over("1") || error == left_over("2"), "{error}");
    assert_eq!(new, [false; 100]);
}

/// The client has used no shard since the filter was removed, so it finds the shards of the next filter or no shards.
fn old_clients_leave_no_marks() {
    let server = Server::start("");
    for is_made_anew in [false, true] {
        let mut old = create(&server.address(), "f", &three_shard_size());
        RedisBloomFilter::remove(&server.address(), "f").unwrap();
        let fresh = is_made_anew.then(|| create(&server.address(), "f", &three_shard_size()));
        let error = old.insert_batch(&hundred(), &mut [false; 100]).unwrap_err();
        assert_eq!(error, if is_made_anew { replaced("meta") } else { gone("meta") });
        assert_eq!(server.execute::<u64>("DBSIZE"), u64::from(is_made_anew), "a shard was marked");
        drop(fresh);
        assert_eq!(client(&server).check(), Ok(()));
        RedisBloomFilter::remove(&server.address(), "f").unwrap();
    }
}

/// The mark of a removed filter, as if its client had written it just then.
fn leftovers_of_an_old_client_are_reported() {
    let server = Server::start("");
    client(&server);
    server.execute::<()>("RENAME cbf:{f:1} kept");
    RedisBloomFilter::remove(&server.address(), "f").unwrap();
    let mut fresh = create(&server.address(), "f", &three_shard_size());
    // In the first shard.
    assert_eq!(fresh.insert_hashes(&[0], &mut [false]), Ok(1));
    assert!(fresh.stats().is_ok());
    server.execute::<()>("RENAME kept cbf:{f:1}");
    let mut other = RedisBloomFilter::open(&server.address(), "f").unwrap();
    assert_eq!(
        expect_error(other.stats(), &["stop the clients of the earlier one", "bloomline redis delete"]),
        left_over("1")
    );
    let error = until_failure(&mut fresh);
    assert_eq!(error, left_over("1"));
    let mut reader = RedisBloomFilter::open(&server.address(), "f").unwrap();
    thread::sleep(PERIOD);
    assert_eq!(reader.contains_batch(&hundred(), &mut [false; 100]), Err(left_over("1")));
    // The remedy of the message works.
    assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(true));
    assert_eq!(client(&server).check(), Ok(()));
}

fn recreated_filters_are_not_the_same() {
    let server = Server::start("");
    for size in [three_shard_size(), three_shard_size().memory(41 << 20), one_shard_size()] {
        let mut old = client(&server);
        // A client that has not used the other shards yet.
        let mut narrow = RedisBloomFilter::open(&server.address(), "f").unwrap();
        narrow.insert(&1).unwrap();
        RedisBloomFilter::open(&server.address(), "f").unwrap().delete().unwrap();
        let mut fresh = create(&server.address(), "f", &size);
        let (keys, mut new) = ((0..1000u64).collect::<Vec<_>>(), [false; 1000]);
        fresh.insert_batch(&keys, &mut new).unwrap();
        for filter in [&mut old, &mut narrow] {
            let error = until_failure(filter);
            assert!(matches!(error, Replaced { .. } | Gone { .. }), "{error:?}");
        }
        assert_eq!(fresh.check(), Ok(()));
        assert_eq!(fresh.insert_batch(&keys, &mut new), Ok(0));
        fresh.delete().unwrap();
        assert_eq!(server.execute::<u64>("DBSIZE"), 0);
    }
}

fn servers_restarted_empty_are_reported_immediately() {
    let mut server = Server::start("");
    let mut filter = client(&server);
    server.kill();
    server.relaunch();
    server.await_answer();
    let error = filter.insert_batch(&[1, 2, 3], &mut [false; 3]).unwrap_err();
    assert!(matches!(error, Gone { .. }), "{error:?}");
}

fn emptied_cluster_nodes_are_detected() {
    let cluster = Cluster::start(3, false);
    let homes =
        |name: &str| ["meta", "0", "1", "2"].map(|part| cluster.slot_and_primary(&format!("cbf:{{{name}:{part}}}")).1);
    // The description is on a node without shards.
    let name = (0..).map(|i| format!("f{i}")).find(|name| !homes(name)[1..].contains(&homes(name)[0])).unwrap();
    let mut filter = create(&cluster.address(), &name, &three_shard_size());
    let keys: Vec<u64> = (0..100).collect();
    filter.insert_batch(&keys, &mut [false; 100]).unwrap();
    cluster.nodes[homes(&name)[1]].execute::<()>("FLUSHALL");
    let error = until_failure(&mut filter);
    assert!(matches!(&error, Gone { key, .. } if !key.contains("meta")), "{error:?}");
}

/// Metadata of a version without marks.
fn filters_without_marks_accept_all_clients() {
    let server = Server::start("");
    create(&server.address(), "f", &three_shard_size());
    let line: String = server.execute("GET cbf:{f:meta}");
    let (old, _) = line.split_once(" made=").unwrap();
    redis::cmd("SET").arg("cbf:{f:meta}").arg(old).exec(&mut server.client().unwrap()).unwrap();
    // A key of a client that knows of no marks: the first block of the first shard.
    server.execute::<Vec<u64>>("BITFIELD cbf:{f:0} SET u1 7 1 INCRBY u1 134217215 0");
    let mut filter = client(&server);
    assert_eq!(filter.check(), Ok(()));
    assert_eq!(server.execute::<u64>("GETBIT cbf:{f:0} 7"), 1);
    let mut other = create(&server.address(), "f", &three_shard_size());
    assert_eq!(other.insert_batch(&(0..200u64).collect::<Vec<_>>(), &mut [false; 200]), Ok(100));
    server.execute::<()>("DEL cbf:{f:2}");
    assert_eq!((until_failure(&mut filter), until_failure(&mut other)), (gone("2"), gone("2")));
}

fn tasks_detect_a_lost_filter() {
    let server = Server::start("");
    crate::tasks::runtime().block_on(async {
        let mut filter = AsyncRedisBloomFilter::create(&server.address(), "f", &three_shard_size()).await.unwrap();
        let keys: Vec<u64> = (0..100).collect();
        filter.insert_batch(&keys, &mut [false; 100]).await.unwrap();
        let mut clone = filter.clone();
        server.execute::<()>("FLUSHALL");
        // A clone has not checked yet.
        let error = clone.insert_batch(&keys, &mut [false; 100]).await.unwrap_err();
        assert!(matches!(error, Gone { .. }), "{error:?}");
        tokio::time::sleep(PERIOD).await;
        let error = filter.insert_batch(&keys, &mut [false; 100]).await.unwrap_err();
        assert!(matches!(error, Gone { .. }), "{error:?}");
        // Both have removed what they claimed in it afterwards.
        assert_eq!(server.execute::<u64>("DBSIZE"), 0);
        let error = AsyncRedisBloomFilter::open(&server.address(), "f").await.unwrap_err();
        assert_eq!(error, RedisFilterError::NotFound { name: "f".to_owned() });
        let mut next = AsyncRedisBloomFilter::create(&server.address(), "f", &three_shard_size()).await.unwrap();
        assert_eq!(next.insert_batch(&keys, &mut [false; 100]).await, Ok(100));
        next.delete().await.unwrap();
        assert_eq!(AsyncRedisBloomFilter::remove(&server.address(), "f").await, Ok(false));
    });
}

fn loss_checks_need_no_round_trip() {
    let server = Server::start("");
    let mut filter = client(&server);
    let keys: Vec<u64> = (1000..3000).collect();
    let (gets, started) = (server.calls("get"), Instant::now());
    for keys in keys.chunks(100) {
        filter.insert_batch(keys, &mut [false; 100]).unwrap();
    }
    // There is one a second.
    assert!(server.calls("get") <= gets + 1 + started.elapsed().as_secs());
    thread::sleep(PERIOD);
    filter.insert(&5000).unwrap();
    assert!(server.calls("get") > gets);
    assert_eq!(filter.check(), Ok(()));
}

fn a_server_that_may_evict_is_named() {
    let server = Server::start("");
    let address = server.address();
    for (policy, named) in
        [("noeviction", false), ("allkeys-lru", true), ("volatile-lru", false), ("allkeys-random", true)]
    {
        server.execute::<()>(&format!("CONFIG SET maxmemory-policy {policy}"));
        let evicts = create(&address, "f", &one_shard_size()).may_evict();
        let expected = format!("127.0.0.1:{} has maxmemory-policy {policy}", server.port);
        assert_eq!(evicts, named.then_some(expected));
    }
    server.execute::<()>("ACL SETUSER quiet on >hush ~* &* +@all -info");
    let quiet = bloomline_redis::RedisServer::new(&format!("redis://quiet:hush@127.0.0.1:{}", server.port)).unwrap();
    let mut filter = create(&quiet, "f", &one_shard_size());
    assert_eq!((filter.may_evict(), filter.insert(&1)), (None, Ok(true)));
}
