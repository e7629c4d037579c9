//! One server, clients that block.

use crate::harness::tests;
use crate::proxy::{Proxy, Random};
use crate::servers::{Server, TIMEOUT, address, command, free_port, retry_until_answered, wait_until};
use crate::{Size, Tally, create, expect_error, one_shard_size, three_shard_size};
use bloomline::{BloomFilter, MergeError};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisFilterError, RedisServer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

tests! {
    answers_and_bits_match_a_local_filter,
    filters_are_uploaded_and_downloaded,
    copies_left_by_an_error_expire,
    batches_need_one_answer_per_key,
    racing_clients_claim_each_key_once,
    no_key_is_lost_where_connections_break,
    #[ignore = "takes half a minute"] no_key_is_lost_where_connections_break_for_long,
    mirrors_answer_only_for_known_keys,
    keys_not_in_a_mirror_need_the_server,
    unresponsive_servers_are_given_up,
    a_claim_without_an_answer_is_reported,
    keys_not_found_by_a_read_are_claimed,
    a_read_without_an_answer_claims_nothing,
    connections_closed_while_idle_cause_no_uncertainty,
    all_address_forms_reach_the_server,
    concurrent_creators_share_one_filter,
    stats_report_the_fill_ratio,
    deleted_filters_leave_no_keys,
    running_scripts_are_waited_for,
    servers_with_too_many_clients_are_named_and_retried,
    clients_report_their_events,
    calls_end_soon_when_cancelled,
    calls_end_by_a_cancel_callback_and_the_next_continues,
    bytewise_answers_have_the_same_timeout,
}

/// Returns random keys with many repeats.
fn random_keys_with_repeats(random: &mut Random, length: usize, distinct: u64) -> Vec<u64> {
    (0..length).map(|_| random.below(distinct)).collect()
}

/// Asserts that a shared filter and a local one give the same answers and have the same bits.
fn check_equal(server: &Server, name: &str, size: &Size, keys: usize) {
    let mut shared = create(&server.address(), name, size);
    let mut local: BloomFilter = size.clone().build().unwrap();
    assert_eq!(shared.download().unwrap(), local);
    let mut random = Random::new(7);
    let mut left = keys;
    while left > 0 {
        // One key, a few, or more than the servers get together.
        let length = ([1, 3, 1000, 9000][random.below(4) as usize]).min(left);
        left -= length;
        let batch = random_keys_with_repeats(&mut random, length, keys as u64 / 2);
        let mut answers = [vec![true; length], vec![false; length]];
        let count = shared.insert_batch(&batch, &mut answers[0]).unwrap();
        assert_eq!(local.insert_batch(&batch, &mut answers[1]), count);
        assert!(answers[0] == answers[1], "{name}");
        let queried = random_keys_with_repeats(&mut random, length, keys as u64);
        let count = shared.contains_batch(&queried, &mut answers[0]).unwrap();
        assert_eq!(local.contains_batch(&queried, &mut answers[1]), count);
        assert!(answers[0] == answers[1], "{name}");
    }
    for key in keys as u64..keys as u64 + 20 {
        assert_eq!(shared.contains(&key).unwrap(), local.contains(&key));
        assert_eq!(shared.insert(&key).unwrap(), local.insert(&key));
        assert_eq!(shared.insert(&key), Ok(false));
    }
    let hashes: Vec<u64> = (0..9000).map(|_| random.next()).collect();
    let mut answers = [vec![true; hashes.len()], vec![false; hashes.len()]];
    for insert in [false, true, false] {
        let [ours, theirs] = &mut answers;
        let counts = match insert {
            true => (shared.insert_hashes(&hashes, ours), local.insert_hashes(&hashes, theirs)),
            false => (shared.contains_hashes(&hashes, ours), local.contains_hashes(&hashes, theirs)),
        };
        assert!(counts.0 == Ok(counts.1) && ours == theirs, "{name}");
    }
    assert_eq!(shared.uncertain(), 0);
    assert!(shared.download().unwrap() == local, "{name}");
}

fn answers_and_bits_match_a_local_filter() {
    let server = Server::start("");
    for (probes, keys) in [(4, 2000), (8, 10_000), (12, 20_000), (16, 5000)] {
        // So full that many keys are false positives.
        let size = BloomFilter::builder().memory(keys / 2).probes(probes).seed(probes.into());
        check_equal(&server, &format!("{probes} probes"), &size, keys);
    }
    for (keys, rate) in [(1, 0.5), (10_000, 0.1), (10_000, 1e-9)] {
        let size = BloomFilter::builder().expected_keys(keys).false_positive_rate(rate);
        check_equal(&server, &format!("{keys} keys at {rate}"), &size, 20_000);
    }
    check_equal(&server, "three shards", &three_shard_size(), 20_000);
}

fn filters_are_uploaded_and_downloaded() {
    let server = Server::start("");
    let mut shared = create(&server.address(), "f", &three_shard_size());
    let mut local: BloomFilter = three_shard_size().build().unwrap();
    let mut new = [false; 1000];
    let keys: Vec<u64> = (0..1000).collect();
    shared.insert_batch(&keys, &mut new).unwrap();
    let later: Vec<u64> = (500..1500).collect();
    local.insert_batch(&later, &mut new);
    shared.upload(&local).unwrap();
    local.insert_batch(&keys, &mut new);
    assert!(shared.download().unwrap() == local);
    // Only the filter is left: three shards and its description.
    assert_eq!(server.execute::<u64>("DBSIZE"), 4);

    for (other, expected) in [
        (three_shard_size().seed(1), MergeError::Seed),
        (three_shard_size().probes(8), MergeError::Probes { ours: 12, theirs: 8 }),
        (three_shard_size().memory(1 << 20), MergeError::Blocks { ours: 40 << 14, theirs: 1 << 14 }),
    ] {
        let mut other: BloomFilter = other.build().unwrap();
        other.insert(&7000);
        assert_eq!(shared.upload(&other), Err(RedisFilterError::Merge(expected)));
    }
    assert!(shared.download().unwrap() == local);

    let empty: BloomFilter = one_shard_size().build().unwrap();
    let mut untouched = create(&server.address(), "untouched", &one_shard_size());
    untouched.upload(&empty).unwrap();
    assert_eq!(untouched.download().unwrap(), empty);
}

fn copies_left_by_an_error_expire() {
    let server = Server::start("");
    server.execute::<()>("ACL SETUSER half on >hush ~* &* +@all -bitop");
    let address = address(&format!("redis://half:hush@127.0.0.1:{}", server.port));
    let mut shared = create(&address, "f", &one_shard_size());
    let mut local: BloomFilter = one_shard_size().build().unwrap();
    local.insert(&1);
    let error = expect_error(shared.upload(&local), &["'bitop'"]);
    assert!(matches!(error, RedisFilterError::Denied { .. }), "{error:?}");
    assert_eq!(shared.contains(&1), Ok(false));
    let copies: Vec<String> = server.execute("KEYS cbf:{f:0}:upload:*");
    assert_eq!(copies.len(), 1);
    let seconds: i64 = server.execute(&format!("TTL {}", copies[0]));
    assert!((500..=600).contains(&seconds), "{seconds}");
}

fn batches_need_one_answer_per_key() {
    let server = Server::start("");
    let filter = create(&server.address(), "f", &one_shard_size());
    type Call = fn(&mut RedisBloomFilter, &mut [bool]) -> Result<usize, RedisFilterError>;
    let calls: [Call; 4] = [
        |filter, new| filter.insert_batch(&[1, 2], new),
        |filter, found| filter.contains_batch(&[1, 2], found),
        |filter, new| filter.insert_hashes(&[1, 2], new),
        |filter, found| filter.contains_hashes(&[1, 2], found),
    ];
    for call in calls {
        let mut filter = filter.new_client();
        let panic = thread::spawn(move || call(&mut filter, &mut [false; 3])).join().expect_err("it must panic");
        let message = panic.downcast_ref::<String>().unwrap();
        assert_eq!(message, "a batch of 2 keys needs as many answers, not 3");
    }
    // Nothing was inserted.
    assert_eq!(server.calls("bitfield"), 0);
}

fn racing_clients_claim_each_key_once() {
    let server = Server::start("");
    for size in [1, 250, 5000] {
        let tally = Tally::new(if size == 1 { 1000 } else { 8000 });
        let filter = create(&server.address(), &format!("{size} keys in a batch"), &three_shard_size());
        tally.insert_concurrently(&filter, 4, size, || {});
        tally.assert_once_each();
    }
}

/// Clients whose connections break.
fn check_chaos(seed: u64, clients: u64, keys: u64) {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, seed);
    for name in 0.. {
        let tally = Tally::new(keys);
        let filter = create(&server.address(), &name.to_string(), &three_shard_size());
        let filter = RedisBloomFilter::open(&proxy.address(), filter.name()).unwrap();
        proxy.break_connections(true);
        tally.insert_concurrently(&filter, clients, 500, || {});
        tally.assert_none_lost();
        assert!(proxy.broken_connections() >= clients, "{}", proxy.broken_connections());
        // Most connections break during the answers to claims, but chance decides which.
        if tally.uncertain() > 0 {
            return;
        }
        assert!(name < 10, "nothing was in doubt");
        proxy.break_connections(false);
    }
}

fn no_key_is_lost_where_connections_break() {
    check_chaos(1, 2, 5000);
    check_chaos(2, 4, 5000);
}

fn no_key_is_lost_where_connections_break_for_long() {
    for seed in 10..15 {
        check_chaos(seed, 1 + seed % 4, 40_000);
    }
}

fn mirrors_answer_only_for_known_keys() {
    let mut server = Server::start("");
    let proxy = Proxy::start(server.port, 3);
    let mut filter = create(&proxy.address(), "f", &three_shard_size()).with_mirror().unwrap();
    let mut other = create(&server.address(), "f", &three_shard_size());
    proxy.break_connections(true);
    let (keys, others): (Vec<u64>, Vec<u64>) = ((0..3000).collect(), (3000..6000).collect());
    for keys in keys.chunks(500) {
        filter.insert_batch(keys, &mut vec![false; keys.len()]).unwrap();
    }
    other.insert_batch(&others, &mut [false; 3000]).unwrap();
    let have = other.download().unwrap();
    // The mirror has the keys of the other client once they were looked up.
    assert_eq!(filter.contains_batch(&others[..1000], &mut [false; 1000]), Ok(1000));

    server.kill();
    drop(proxy);
    let calls = Instant::now();
    let mut found = [false; 4000];
    let known: Vec<u64> = (0..4000).collect();
    assert_eq!(filter.contains_batch(&known, &mut found), Ok(4000));
    assert_eq!(filter.new_client().insert_batch(&known, &mut found), Ok(0));
    // A call to the server would wait.
    assert!(calls.elapsed() < TIMEOUT);
    assert!(known.iter().all(|key| have.contains(key)));
}

fn keys_not_in_a_mirror_need_the_server() {
    let mut server = Server::start("--appendonly yes --appendfsync always");
    let address = server.address().retry_timeout(Duration::from_millis(20));
    let mut filter = create(&address, "f", &one_shard_size()).with_mirror().unwrap();
    filter.insert(&1).unwrap();
    // The first key is sent over a connection that has ended unnoticed, so it is unknown whether the server received it. A
    // connection that was idle for a second would be tested before.
    for tries in 1.. {
        assert_eq!(filter.contains(&3), Ok(false));
        let idle = Instant::now();
        server.kill();
        assert_eq!(filter.insert(&1), Ok(false));
        let inserted = filter.insert(&2);
        if idle.elapsed() < Duration::from_secs(1) || inserted.is_ok() {
            assert_eq!((inserted, filter.uncertain()), (Ok(true), 1));
            break;
        }
        assert!(tries < 20, "{inserted:?}");
        server.relaunch();
        server.await_answer();
    }
    for key in 3..20 {
        for result in [filter.insert(&key), filter.contains(&key)] {
            assert_unreachable(result, server.port, "refused");
        }
    }
    // Keys in doubt are looked up again.
    server.relaunch();
    server.await_answer();
    assert_eq!(filter.contains(&2), Ok(false));
}

/// Checks that the call failed because this node could not be reached, for this reason. Returns how long the call tried.
#[track_caller]
fn assert_unreachable<T>(result: Result<T, RedisFilterError>, port: u16, reason: &str) -> Duration {
    match expect_error(result, &["check that it runs"]) {
        RedisFilterError::Unreachable { node, waited, message } => {
            assert!(node == format!("127.0.0.1:{port}") && message.contains(reason), "{node}: {message}");
            waited
        }
        error => panic!("{error:?}"),
    }
}

fn unresponsive_servers_are_given_up() {
    let port = free_port();
    let started = Instant::now();
    let address = address(&format!("redis://127.0.0.1:{port}"));
    assert_unreachable(RedisBloomFilter::create(&address, "f", &one_shard_size()), port, "refused");
    // It accepts connections and does nothing else.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let address = RedisServer::new(&format!("redis://127.0.0.1:{port}")).unwrap();
    let address = address.connect_timeout(Duration::from_millis(300)).response_timeout(Duration::from_millis(300));
    let waited = assert_unreachable(RedisBloomFilter::create(&address, "f", &one_shard_size()), port, "timed out");
    assert!(waited >= Duration::from_millis(300), "{waited:?}");
    assert!(started.elapsed() < TIMEOUT);
}

fn a_claim_without_an_answer_is_reported() {
    let server = Server::start("");
    let short = Duration::from_millis(500);
    let address = server.address().connect_timeout(short).response_timeout(short).retry_timeout(3 * short);
    let mut filter = retry_until_answered(|| RedisBloomFilter::create(&address, "f", &one_shard_size()));
    // A connection that was idle for a second is tested first. If the test fails, nothing is sent.
    let mut new = [false; 3];
    wait_until("claims are sent", || {
        // The shard has its length.
        retry_until_answered(|| filter.insert(&0));
        let uncertain = filter.uncertain();
        server.signal("STOP");
        let waited = assert_unreachable(filter.insert_batch(&[1, 2, 1], &mut new), server.port, "timed out");
        server.signal("CONT");
        assert!(waited >= 3 * short, "{waited:?}");
        let sent = new != [false; 3];
        assert_eq!((new, filter.uncertain() - uncertain), ([sent, sent, false], if sent { 2 } else { 0 }));
        sent
    });
    // Sent claims are executed, and no other client is told that these keys are new.
    server.await_answer();
    assert_eq!(create(&server.address(), "f", &one_shard_size()).insert_batch(&[1, 2, 3], &mut new), Ok(1));
    assert_eq!(new, [false, false, true]);
}

/// Keys that a read finds need no claim. While most keys are new, keys are claimed without a read.
fn keys_not_found_by_a_read_are_claimed() {
    let (server, started) = (Server::start(""), Instant::now());
    let keys: Vec<u64> = (0..40_000).collect();
    let mut new = vec![false; keys.len()];
    let mut first = create(&server.address(), "f", &one_shard_size());
    assert_eq!(first.insert_batch(&keys[..20_000], &mut new[..20_000]), Ok(20_000));
    // The mark of the one shard is a command, too.
    assert_eq!(server.calls("bitfield"), 20_000 + 1);
    // The first portion was read, and the end of the shard twice.
    // A check of the filter, once a second, reads a mark.
    let reads = server.calls("getrange");
    assert!((4096..=4096 + 3 + started.elapsed().as_secs()).contains(&reads), "{reads}");
    let mut second = create(&server.address(), "f", &one_shard_size());
    assert_eq!(second.insert_batch(&keys, &mut new), Ok(20_000));
    assert!(new.iter().zip(&keys).all(|(&new, &key)| new == (key >= 20_000)));
    // The second client marks the shard, unless a check, a second after its first read, has found the mark.
    assert!((40_000 + 1..=40_000 + 2).contains(&server.calls("bitfield")), "{}", server.calls("bitfield"));
    let reads = server.calls("getrange") - reads;
    assert!((20_000..36_000).contains(&reads), "{reads}");
    // Few keys are claimed without a read, which would be another round trip.
    let reads = server.calls("getrange");
    assert_eq!((second.insert(&1u64), second.insert_batch(&[2u64, 3, 50_000], &mut [false; 3])), (Ok(false), Ok(1)));
    assert!(server.calls("getrange") < reads + 3);
}

fn a_read_without_an_answer_claims_nothing() {
    let server = Server::start("");
    let end = Arc::new(AtomicBool::new(false));
    let question = Arc::clone(&end);
    let address = server.address().end_if(move || question.load(Ordering::Relaxed));
    let mut filter = create(&address, "f", &one_shard_size());
    let keys: Vec<u64> = (0..1000).collect();
    let mut new = vec![false; keys.len()];
    assert_eq!(filter.insert_batch(&keys[..500], &mut new[..500]), Ok(500));
    assert_eq!(filter.insert_batch(&keys[..500], &mut new[..500]), Ok(0));
    server.signal("STOP");
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            end.store(true, Ordering::Relaxed);
        });
        assert_eq!(filter.insert_batch(&keys, &mut new), Err(RedisFilterError::Ended));
    });
    server.signal("CONT");
    end.store(false, Ordering::Relaxed);
    assert_eq!((filter.uncertain(), new.iter().filter(|new| **new).count()), (0, 0));
    assert_eq!(filter.insert_batch(&keys, &mut new), Ok(500));
}

fn connections_closed_while_idle_cause_no_uncertainty() {
    let server = Server::start("");
    let mut filter = create(&server.address(), "f", &three_shard_size());
    let keys: Vec<u64> = (0..1000).collect();
    assert_eq!(filter.insert_batch(&keys, &mut [false; 1000]), Ok(1000));
    server.execute::<()>("CLIENT KILL TYPE normal");
    thread::sleep(Duration::from_millis(1100));
    assert_eq!(filter.insert_batch(&keys, &mut [false; 1000]), Ok(0));
    assert_eq!(filter.uncertain(), 0);
}

fn all_address_forms_reach_the_server() {
    let server = Server::start("--unixsocket socket");
    let port = server.port;
    create(&server.address(), "f", &one_shard_size()).insert(&1).unwrap();
    let socket = server.folder.path().join("socket").display().to_string();
    let reached = [
        format!("unix://{socket}"),
        format!("redis://localhost:{port}"),
        // One of several servers must run.
        format!("redis://127.0.0.1:{},redis://127.0.0.1:{port}", free_port()),
    ];
    for url in reached {
        assert_eq!(RedisBloomFilter::open(&address(&url), "f").unwrap().insert(&1), Ok(false), "{url}");
    }
    let other = address(&format!("redis://127.0.0.1:{port}/1"));
    let error = expect_error(RedisBloomFilter::open(&other, "f"), &[]);
    assert_eq!(error, RedisFilterError::NotFound { name: "f".to_owned() });
}

fn concurrent_creators_share_one_filter() {
    let server = Server::start("");
    let meeting = Barrier::new(4);
    let claims = thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    meeting.wait();
                    create(&server.address(), "f", &one_shard_size()).insert("key").unwrap()
                })
            })
            .collect();
        clients.into_iter().map(|client| u32::from(client.join().unwrap())).sum::<u32>()
    });
    assert_eq!(claims, 1);
    // The filter has one of the two sizes.
    let sizes = [one_shard_size(), one_shard_size().seed(9)];
    let address = server.address();
    let results = thread::scope(|scope| {
        let clients = sizes.each_ref().map(|size| {
            let address = &address;
            scope.spawn(move || RedisBloomFilter::create(address, "g", size))
        });
        clients.map(|client| client.join().unwrap())
    });
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let error = results.into_iter().find_map(Result::err).unwrap();
    assert_eq!(error, RedisFilterError::Seed { name: "g".to_owned() });
}

fn stats_report_the_fill_ratio() {
    let server = Server::start("");
    let mut filter = create(&server.address(), "f", &three_shard_size());
    let plan = filter.plan();
    let stats = filter.stats().unwrap();
    assert_eq!((stats.fill_ratio, stats.estimated_keys, stats.expected_fpr, stats.stored_bytes), (0.0, 0.0, 0.0, 0));
    let keys: Vec<u64> = (0..50_000).collect();
    filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
    let stats = filter.stats().unwrap();
    assert_eq!(stats.fill_ratio, filter.download().unwrap().fill_ratio());
    // Most blocks have one key, so keys have few bits in common, and the estimate is precise.
    assert!((stats.estimated_keys / 50_000.0 - 1.0).abs() < 0.01, "{stats:?}");
    assert!((stats.expected_fpr / plan.expected_fpr(50_000) - 1.0).abs() < 0.2, "{stats:?}");
    // All three shards have their whole length.
    assert_eq!(stats.stored_bytes, 40 << 20);
}

fn deleted_filters_leave_no_keys() {
    let server = Server::start("");
    let mut filter = create(&server.address(), "f", &three_shard_size());
    create(&server.address(), "ff", &one_shard_size()).insert(&1).unwrap();
    filter.insert_batch(&(0..1000).collect::<Vec<u64>>(), &mut [false; 1000]).unwrap();
    filter.delete().unwrap();
    let error = expect_error(RedisBloomFilter::open(&server.address(), "f"), &["create it"]);
    assert_eq!(error, RedisFilterError::NotFound { name: "f".to_owned() });
    assert_eq!(RedisBloomFilter::open(&server.address(), "ff").unwrap().contains(&1), Ok(true));
    assert_eq!(server.execute::<u64>("DBSIZE"), 2);
    assert_eq!(create(&server.address(), "f", &one_shard_size()).insert(&1), Ok(true));
}

fn running_scripts_are_waited_for() {
    let server = Server::start("--lua-time-limit 50");
    let mut filter = create(&server.address(), "f", &one_shard_size());
    filter.insert(&0).unwrap();
    let runtime = crate::tasks::runtime();
    let address = server.address();
    let mut other = runtime.block_on(AsyncRedisBloomFilter::open(&address, "f")).unwrap();
    thread::scope(|scope| {
        let _killer = keep_busy(scope, &server);
        let started = Instant::now();
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            server.execute::<()>("SCRIPT KILL");
        });
        assert_eq!(filter.insert_batch(&[1, 2, 3], &mut [false; 3]), Ok(3));
        assert_eq!(runtime.block_on(other.insert_batch(&[3, 4], &mut [false; 2])), Ok(1));
        assert!(started.elapsed() >= Duration::from_millis(500));
    });
    assert_eq!((filter.uncertain(), other.uncertain()), (0, 0));
    // Calls wait until their time-out for retries.
    thread::scope(|scope| {
        let _killer = keep_busy(scope, &server);
        let address = server.address().retry_timeout(Duration::from_millis(200));
        expect_error(RedisBloomFilter::open(&address, "f"), &["BUSY"]);
        // A client that opens the filter meanwhile waits, too.
        scope.spawn(|| assert_eq!(RedisBloomFilter::open(&server.address(), "f").unwrap().insert(&1), Ok(false)));
        thread::sleep(Duration::from_millis(300));
        server.execute::<()>("SCRIPT KILL");
    });
}

/// Starts a script that runs until it is killed, and waits until it runs.
fn keep_busy<'a>(scope: &'a thread::Scope<'a, '_>, server: &'a Server) -> Killer<'a> {
    scope.spawn(|| {
        let mut connection = server.client().unwrap();
        redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut connection).unwrap_err();
    });
    let killer = Killer(server);
    wait_until("it is busy", || is_busy(server));
    killer
}

/// Kills scripts when it is dropped, also if the test fails.
struct Killer<'a>(&'a Server);

impl Drop for Killer<'_> {
    fn drop(&mut self) {
        _ = command("SCRIPT KILL").exec(&mut self.0.client().unwrap());
    }
}

fn is_busy(server: &Server) -> bool {
    command("GET x").exec(&mut server.client().unwrap()).is_err()
}

fn servers_with_too_many_clients_are_named_and_retried() {
    let server = Server::start("--maxclients 10");
    let mut filter = create(&server.address(), "f", &one_shard_size());
    filter.insert(&0).unwrap();
    let mut all = server.fill_connections();
    expect_error(RedisBloomFilter::open(&server.address(), "f"), &["maxclients"]);
    let mut other = filter.new_client();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| other.insert_batch(&[0, 1], &mut [false; 2]));
        thread::sleep(Duration::from_millis(300));
        all.clear();
        assert_eq!(waiting.join().unwrap(), Ok(1));
    });
    assert_eq!(other.uncertain(), 0);
}

fn clients_report_their_events() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, 3);
    let mut filter = create(&proxy.address(), "f", &three_shard_size());
    let keys: Vec<u64> = (0..10_000).collect();
    let mut new = vec![false; keys.len()];
    filter.insert_batch(&keys, &mut new).unwrap();
    let metrics = filter.metrics();
    assert_eq!((metrics.batches, metrics.sent_again, metrics.given_back, metrics.fill_ratio), (3, 0, 0, None));
    let mean = metrics.mean_batch_time().unwrap();
    assert!(mean > Duration::ZERO && mean <= metrics.slowest_batch && metrics.slowest_batch < metrics.batch_time);
    let calls = || ["bitfield", "getrange", "get", "bitcount", "ping"].map(|command| server.calls(command));
    let before = calls();
    // The call sends nothing, and figures since the last call start anew.
    let again = filter.metrics();
    assert_eq!((again.batches, again.slowest_batch, again.mean_batch_time()), (0, Duration::ZERO, None));
    assert_eq!(calls(), before);
    let fill = filter.stats().unwrap().fill_ratio;
    assert_eq!(filter.metrics().fill_ratio, Some(fill));
    proxy.break_connections(true);
    let keys: Vec<u64> = (10_000..15_000).collect();
    let mut new = vec![false; keys.len()];
    filter.insert_batch(&keys, &mut new).unwrap();
    let metrics = filter.metrics();
    assert!(
        proxy.broken_connections() > 0 && metrics.sent_again >= metrics.uncertain && metrics.sent_again > 0,
        "{metrics:?}"
    );
    assert_eq!((metrics.uncertain, metrics.unconfirmed), (filter.uncertain(), 0));
    // Another client begins anew.
    assert_eq!(filter.new_client().metrics(), Default::default());
}

/// The server receives claims and does not answer them.
const PAUSE: &str = "CLIENT PAUSE 600000 WRITE";

fn calls_end_soon_when_cancelled() {
    let server = Server::start("");
    let flag = Arc::new(AtomicBool::new(false));
    let mut filter = create(&server.address().end_when(Arc::clone(&flag)), "f", &one_shard_size());
    filter.insert(&0).unwrap();
    server.execute::<()>(PAUSE);
    let mut new = [false; 3];
    thread::scope(|scope| {
        let cancelled = scope.spawn(|| {
            server.await_blocked_client();
            let cancelled = Instant::now();
            flag.store(true, Ordering::Relaxed);
            cancelled
        });
        assert_eq!(
            expect_error(filter.insert_batch(&[0, 1, 2], &mut new), &["was cancelled"]),
            RedisFilterError::Ended
        );
        // It waits for another second. Without the flag it would wait for an answer.
        let waited = cancelled.join().unwrap().elapsed();
        assert!((Duration::from_secs(1)..TIMEOUT).contains(&waited), "{waited:?}");
    });
    assert_eq!((new, filter.uncertain()), ([true; 3], 3));
    // Later calls end at once, without that second.
    let quickest = (0..10).map(|_| {
        let started = Instant::now();
        assert_eq!(filter.insert(&5), Err(RedisFilterError::Ended));
        started.elapsed()
    });
    assert!(quickest.min() < Some(Duration::from_secs(1)));
}

fn calls_end_by_a_cancel_callback_and_the_next_continues() {
    let server = Server::start("");
    let end = Arc::new(AtomicBool::new(false));
    let question = Arc::clone(&end);
    let address = server.address().end_if(move || question.load(Ordering::Relaxed));
    let mut filter = create(&address, "f", &one_shard_size());
    filter.insert(&0).unwrap();
    let mut quickest = Duration::MAX;
    for try_ in 1..=5 {
        server.execute::<()>(PAUSE);
        let mut new = [false; 3];
        thread::scope(|scope| {
            let ending = scope.spawn(|| {
                server.await_blocked_client();
                end.store(true, Ordering::Relaxed);
                Instant::now()
            });
            let keys = [3 * try_, 3 * try_ + 1, 3 * try_ + 2];
            assert_eq!(filter.insert_batch(&keys, &mut new), Err(RedisFilterError::Ended));
            quickest = quickest.min(ending.join().unwrap().elapsed());
        });
        assert_eq!((new, filter.uncertain()), ([true; 3], 3 * try_));
        end.store(false, Ordering::Relaxed);
        server.execute::<()>("CLIENT UNPAUSE");
        assert_eq!(filter.contains(&0), Ok(true));
    }
    // Without the second that a flag leaves.
    assert!(quickest < Duration::from_secs(1), "{quickest:?}");
    assert_eq!(filter.insert(&100), Ok(true));
}

fn bytewise_answers_have_the_same_timeout() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, 1);
    let short = Duration::from_millis(500);
    let address = proxy.address().response_timeout(short).connect_timeout(short).retry_timeout(short);
    let mut filter = retry_until_answered(|| RedisBloomFilter::create(&address, "f", &one_shard_size()));
    retry_until_answered(|| filter.insert(&0));
    proxy.send_bytewise();
    let started = Instant::now();
    let error = expect_error(filter.insert_batch(&[1, 2], &mut [false; 2]), &["timed out"]);
    assert!(matches!(error, RedisFilterError::Unreachable { .. }), "{error:?}");
    assert!(started.elapsed() < TIMEOUT, "{:?}", started.elapsed());
}
