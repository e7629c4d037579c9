//! The asynchronous filter.

use crate::harness::tests;
use crate::proxy::Proxy;
use crate::servers::{Cluster, Server, TIMEOUT, command};
use crate::{Tally, expect_error, one_shard_size, three_shard_size};
use bloomline_redis::{AsyncRedisBloomFilter, RedisFilterError, RedisServer};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

tests! {
    answers_and_bits_match_a_local_filter,
    racing_tasks_claim_each_key_once,
    tasks_of_a_cluster_claim_each_key_once_while_a_slot_moves,
    #[ignore = "takes half a minute"] no_key_is_lost_where_a_node_crashes,
    full_servers_accept_the_rest_later,
    no_key_is_lost_where_connections_break,
    #[ignore = "takes half a minute"] no_key_is_lost_where_connections_break_for_long,
    connections_closed_while_idle_cause_no_uncertainty,
    a_claim_without_an_answer_is_reported,
    dropped_calls_release_their_keys,
    bytewise_answers_have_the_same_timeout,
    servers_with_too_many_clients_are_named_and_retried,
}

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Repeats a call of a client with short time-outs, which may expire on a busy machine, until it succeeds.
async fn retry_until_answered<T>(mut call: impl AsyncFnMut() -> Result<T, RedisFilterError>) -> T {
    let started = Instant::now();
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(started.elapsed() < TIMEOUT, "{error}"),
        }
    }
}

/// Drops a call, which has no answer yet, at an event.
async fn drop_when<T>(event: impl Future<Output = ()>, call: impl Future<Output = T>) {
    let (mut event, mut call) = (pin!(event), pin!(call));
    poll_fn(|context| {
        assert!(call.as_mut().poll(context).is_pending(), "it was answered");
        event.as_mut().poll(context)
    })
    .await
}

async fn insert_all(tally: Arc<Tally>, mut filter: AsyncRedisBloomFilter, client: u64, size: usize) {
    for keys in tally.batches(client, size) {
        while tally.is_held() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut new = vec![false; keys.len()];
        filter.insert_batch(&keys, &mut new).await.unwrap();
        tally.count(&keys, &new);
    }
    tally.uncertain.fetch_add(filter.uncertain(), Ordering::Relaxed);
}

/// Inserts all keys by several tasks, with connections of their own or shared ones.
fn insert_concurrently(address: &RedisServer, tally: &Arc<Tally>, clients: u64, size: usize, prepared: impl FnOnce()) {
    runtime().block_on(async {
        let filter = AsyncRedisBloomFilter::create(address, "f", &three_shard_size()).await.unwrap();
        let mut filters = Vec::new();
        for client in 0..clients {
            filters.push(match client % 2 {
                0 => filter.clone(),
                _ => AsyncRedisBloomFilter::open(address, "f").await.unwrap(),
            });
        }
        prepared();
        let start = |(client, filter)| tokio::spawn(insert_all(Arc::clone(tally), filter, client, size));
        let tasks: Vec<_> = (0..).zip(filters).map(start).collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

fn answers_and_bits_match_a_local_filter() {
    let server = Server::start("");
    // In a task, which takes only futures that can move between threads.
    let runtime = runtime();
    let check = runtime.spawn(async move {
        // So full that many keys are false positives.
        for size in [one_shard_size().memory(4096), three_shard_size()] {
            let mut shared = AsyncRedisBloomFilter::create(&server.address(), "f", &size).await.unwrap();
            let mut local = size.clone().build().unwrap();
            let keys: Vec<u64> = (0..9000u64).map(|i| i * i % 7919).collect();
            let [mut answers, mut expected] = [(); 2].map(|()| vec![false; keys.len()]);
            let count = shared.insert_batch(&keys, &mut answers).await.unwrap();
            assert_eq!(local.insert_batch(&keys, &mut expected), count);
            assert!(answers == expected);
            let keys: Vec<u64> = (0..9000).collect();
            let count = shared.contains_batch(&keys, &mut answers).await.unwrap();
            assert_eq!(local.contains_batch(&keys, &mut expected), count);
            assert!(answers == expected);
            assert!(shared.download().await.unwrap() == local);
            local.insert(&10_000);
            shared.upload(&local).await.unwrap();
            assert!(shared.download().await.unwrap() == local);
            assert_eq!(shared.contains(&10_000).await, Ok(true));
            assert_eq!(shared.stats().await.unwrap().fill_ratio, local.fill_ratio());
            let hashes: Vec<u64> = keys.iter().map(|key| local.hasher().combine(1, *key)).collect();
            let count = shared.insert_hashes(&hashes, &mut answers).await.unwrap();
            assert_eq!(local.insert_hashes(&hashes, &mut expected), count);
            assert!(answers == expected);
            let hashes: Vec<u64> = hashes.iter().map(|hash| hash ^ 1 << 50).collect();
            let count = shared.contains_hashes(&hashes, &mut answers).await.unwrap();
            assert_eq!(local.contains_hashes(&hashes, &mut expected), count);
            assert!(answers == expected);
            assert_eq!(shared.insert(&20_000).await, Ok(local.insert(&20_000)));
            let opened = AsyncRedisBloomFilter::open(&server.address(), "f").await.unwrap().with_mirror().unwrap();
            let expected = format!("AsyncRedisBloomFilter {{ name: \"f\", block_count: {}, ", local.block_count());
            assert!(format!("{opened:?}").starts_with(&expected), "{opened:?}");
            assert_eq!(AsyncRedisBloomFilter::list(&server.address()).await, Ok(vec!["f".to_owned()]));
            let servers = shared.servers().await;
            assert!(servers.len() == 1 && servers[0].claims > 9000 && servers[0].max_bytes.is_none(), "{servers:?}");
            shared.delete().await.unwrap();
            assert_eq!(server.execute::<u64>("DBSIZE"), 0);
        }
    });
    runtime.block_on(check).unwrap();
}

fn racing_tasks_claim_each_key_once() {
    let server = Server::start("");
    for (clients, size) in [(4, 250), (4, 5000), (8, 1)] {
        let tally = Arc::new(Tally::new(if size == 1 { 1000 } else { 8000 }));
        server.execute::<()>("FLUSHALL");
        insert_concurrently(&server.address(), &tally, clients, size, || {});
        tally.assert_once_each();
    }
}

fn tasks_of_a_cluster_claim_each_key_once_while_a_slot_moves() {
    let cluster = Cluster::start(3, false);
    let tally = Arc::new(Tally::new(10_000));
    thread::scope(|scope| {
        let hold = tally.hold_clients(4);
        scope.spawn(|| insert_concurrently(&cluster.address(), &tally, 4, 500, || {}));
        tally.await_progress(4, 30);
        let (slot, node) = cluster.slot_and_primary("cbf:{f:1}");
        let coming = async {
            let mut filter = AsyncRedisBloomFilter::open(&cluster.address(), "f").await.unwrap();
            let (keys, mut new) = ((0..100).collect::<Vec<u64>>(), [false; 100]);
            filter.insert_batch(&keys, &mut new).await.unwrap();
            tally.count(&keys, &new);
        };
        cluster.migrate(slot, node, (node + 1) % 3, || runtime().block_on(coming));
        drop(hold);
    });
    tally.assert_once_each();
}

fn no_key_is_lost_where_a_node_crashes() {
    for down in [Duration::from_millis(200), Duration::from_secs(4)] {
        let mut cluster = Cluster::start(3, false);
        cluster.shorten_node_timeout();
        let address = cluster.address();
        let tally = Arc::new(Tally::new(60_000));
        let victim = cluster.slot_and_primary("cbf:{f:1}").1;
        thread::scope(|scope| {
            let _hold = tally.hold_clients(4);
            scope.spawn(|| insert_concurrently(&address, &tally, 4, 1000, || {}));
            tally.await_progress(4, 30);
            cluster.nodes[victim].kill();
            thread::sleep(down);
            cluster.nodes[victim].relaunch();
        });
        tally.assert_none_lost();
    }
}

fn full_servers_accept_the_rest_later() {
    let server = Server::start("--maxmemory-policy noeviction");
    runtime().block_on(async {
        let mut filter = AsyncRedisBloomFilter::create(&server.address(), "f", &three_shard_size()).await.unwrap();
        let used = server.info_number("used_memory");
        server.execute::<()>(&format!("CONFIG SET maxmemory {}", used + (20 << 20)));
        let tally = Tally::new(12_000);
        // The keys are in the order of their shards, and those of the first shard fill a portion.
        let mut keys: Vec<u64> = (0..tally.keys()).collect();
        keys.sort_by_key(|key| filter.hasher().bytes(&key.to_le_bytes()));
        let mut new = vec![true; keys.len()];
        let error = expect_error(filter.insert_batch(&keys, &mut new).await, &["give it more"]);
        assert_eq!(error, RedisFilterError::OutOfMemory { node: format!("127.0.0.1:{}", server.port) });
        tally.count(&keys, &new);
        server.execute::<()>("CONFIG SET maxmemory 0");
        let claimed = new.iter().filter(|new| **new).count();
        assert_eq!(filter.insert_batch(&keys, &mut new).await, Ok(keys.len() - claimed));
        tally.count(&keys, &new);
        tally.assert_once_each();
        assert!((1..keys.len()).contains(&claimed) && filter.uncertain() == 0, "{claimed} claimed");
    });
}

/// Tasks whose connections break.
fn check_chaos(seed: u64, clients: u64, keys: u64) {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, seed);
    for tries in 1.. {
        let tally = Arc::new(Tally::new(keys));
        insert_concurrently(&proxy.address(), &tally, clients, 200, || proxy.break_connections(true));
        tally.assert_none_lost();
        assert!(proxy.broken_connections() > 0);
        // Most connections break during the answers to claims, but chance decides which.
        if tally.uncertain() > 0 {
            return;
        }
        assert!(tries < 10, "nothing was in doubt");
        proxy.break_connections(false);
        server.execute::<()>("FLUSHALL");
    }
}

fn no_key_is_lost_where_connections_break() {
    check_chaos(1, 2, 3000);
    check_chaos(2, 4, 3000);
}

fn no_key_is_lost_where_connections_break_for_long() {
    for seed in 30..35 {
        check_chaos(seed, 1 + seed % 4, 20_000);
    }
}

fn connections_closed_while_idle_cause_no_uncertainty() {
    let server = Server::start("");
    runtime().block_on(async {
        let mut filter = AsyncRedisBloomFilter::create(&server.address(), "f", &three_shard_size()).await.unwrap();
        let keys: Vec<u64> = (0..1000).collect();
        assert_eq!(filter.insert_batch(&keys, &mut [false; 1000]).await, Ok(1000));
        server.execute::<()>("CLIENT KILL TYPE normal");
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(filter.insert_batch(&keys, &mut [false; 1000]).await, Ok(0));
        assert_eq!(filter.uncertain(), 0);
    });
}

fn a_claim_without_an_answer_is_reported() {
    let server = Server::start("");
    let short = Duration::from_millis(500);
    let address = server.address().connect_timeout(short).response_timeout(short).retry_timeout(3 * short);
    runtime().block_on(async {
        let filter =
            retry_until_answered(async || AsyncRedisBloomFilter::create(&address, "f", &one_shard_size()).await).await;
        let mut filter = filter.with_mirror().unwrap();
        let mut new = [false; 3];
        for tries in 1.. {
            retry_until_answered(async || filter.insert(&5).await).await;
            // The mirror does not have this key.
            retry_until_answered(async || filter.contains(&4).await).await;
            let uncertain = filter.uncertain();
            server.signal("STOP");
            let error = expect_error(filter.insert_batch(&[1, 5, 2], &mut new).await, &["check that it runs"]);
            server.signal("CONT");
            server.await_answer();
            let RedisFilterError::Unreachable { node, waited, message } = error else { panic!("{error:?}") };
            assert!(node == format!("127.0.0.1:{}", server.port) && message.contains("timed out"), "{node}: {message}");
            assert!(waited >= 3 * short, "{waited:?}");
            // A connection that was idle for a second is tested first. If the test fails, nothing is sent.
            if new != [false; 3] {
                // The mirror has one of the keys.
                assert_eq!((new, filter.uncertain() - uncertain), ([true, false, true], 2));
                break;
            }
            assert!(tries < 20, "nothing is sent");
        }
        assert_eq!(filter.insert_batch(&[1, 2, 3], &mut new).await, Ok(1));
        assert_eq!(new, [false, false, true]);
    });
}

/// The claims are in flight, and the server executes them later.
fn dropped_calls_release_their_keys() {
    let server = Server::start("");
    let keys: Vec<u64> = (0..10_000).collect();
    let (mut new, mut found) = (vec![false; keys.len()], vec![false; keys.len()]);
    runtime().block_on(async {
        for (name, has_mirror) in [("f", false), ("g", true)] {
            let filter = AsyncRedisBloomFilter::create(&server.address(), name, &three_shard_size()).await.unwrap();
            let mut filter = if has_mirror { filter.with_mirror().unwrap() } else { filter };
            // All shards get their marks, and one key is seen before.
            assert_eq!(filter.insert_batch(&[0, 10_001, 10_002, 10_003, 10_004, 10_005], &mut new[..6]).await, Ok(6));
            server.execute::<()>("CLIENT PAUSE 600000 WRITE");
            let sent = async {
                while server.blocked_clients().is_empty() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            drop_when(sent, filter.insert_batch(&keys, &mut new)).await;
            let uncertain = filter.uncertain();
            assert!((4095..=4096).contains(&uncertain), "{uncertain}");
            server.execute::<()>("CLIENT UNPAUSE");
            let mut other = AsyncRedisBloomFilter::open(&server.address(), name).await.unwrap();
            let arrived = async {
                while other.contains_batch(&keys[..4096], &mut found[..4096]).await != Ok(4096) {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(TIMEOUT, arrived).await.expect("no claim was on its way");
            let expected: Vec<bool> = keys.iter().map(|&key| key > 0 || uncertain == 4096).collect();
            filter.insert_batch(&keys, &mut new).await.unwrap();
            assert_eq!(new, expected);
            assert_eq!(filter.uncertain(), uncertain);
            let metrics = filter.metrics();
            assert_eq!((metrics.uncertain, metrics.given_back), (uncertain, uncertain));
            assert_eq!(filter.insert_batch(&keys, &mut new).await, Ok(0));
        }
    });
}

fn bytewise_answers_have_the_same_timeout() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, 1);
    let short = Duration::from_millis(500);
    let address = proxy.address().response_timeout(short).connect_timeout(short).retry_timeout(short);
    runtime().block_on(async {
        let mut filter =
            retry_until_answered(async || AsyncRedisBloomFilter::create(&address, "f", &one_shard_size()).await).await;
        retry_until_answered(async || filter.insert(&0).await).await;
        proxy.send_bytewise();
        let started = Instant::now();
        let error = expect_error(filter.insert_batch(&[1, 2], &mut [false; 2]).await, &["timed out"]);
        assert!(matches!(error, RedisFilterError::Unreachable { .. }), "{error:?}");
        assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
    });
}

fn servers_with_too_many_clients_are_named_and_retried() {
    let server = Server::start("--maxclients 10");
    runtime().block_on(async {
        let mut filter = AsyncRedisBloomFilter::create(&server.address(), "f", &one_shard_size()).await.unwrap();
        filter.insert(&0).await.unwrap();
        let mut all = server.fill_connections();
        expect_error(AsyncRedisBloomFilter::open(&server.address(), "f").await, &["maxclients"]);
        // The connection of the filter is closed, and another one takes its place.
        command("CLIENT KILL TYPE normal SKIPME yes").exec(&mut all[0]).unwrap();
        let mut others = server.fill_connections();
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let waiting = tokio::spawn(async move {
            let inserted = filter.insert_batch(&[0, 1], &mut [false; 2]).await;
            (inserted, filter.uncertain())
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        others.clear();
        assert_eq!(waiting.await.unwrap(), (Ok(1), 0));
    });
}
