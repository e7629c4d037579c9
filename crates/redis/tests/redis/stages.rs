//! Filters that grow, and filters that forget.

use crate::harness::tests;
use crate::proxy::Proxy;
use crate::servers::{Cluster, Server, address, primary_and_replica, wait_until};
use crate::{Tally, expect_error, one_shard_size};
use bloomline_redis::RedisFilterError::{Denied, Differs, Gone, ReadOnly, Remains, Seed, Stages as NotOne};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisServer, Stages};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

tests! {
    growing_filters_keep_their_rate,
    clients_claim_each_key_once_during_growth,
    cluster_clients_claim_each_key_once_during_growth,
    no_key_is_lost_when_connections_break_during_growth,
    no_key_is_lost_when_a_node_crashes_during_growth,
    clients_finish_the_growth_of_a_dead_client,
    short_lived_clients_grow_the_filter,
    small_stages_are_not_overfilled,
    clients_of_a_process_may_differ_in_their_mirrors,
    short_lived_clients_expire_generations,
    tasks_grow_filters,
    windows_keep_their_rate_at_any_pace,
    windows_expire_keys_in_time,
    a_window_may_be_endless,
    clients_claim_each_key_once_while_generations_pass,
    unused_windows_expire_on_the_server,
    suspended_clients_catch_up,
    removed_filters_leave_no_keys,
    kinds_of_filters_are_distinguished,
    a_window_is_read_from_a_replica,
    mirrors_have_a_bound,
    oversized_stage_lists_are_refused,
    shards_recreated_by_a_late_client_expire,
    stages_need_few_rights,
    lost_stages_are_detected,
    lost_stage_lists_are_recreated,
    leftover_bits_hide_no_key,
}

/// A growing filter with small stages, and practically no false positives.
fn small_stages() -> Stages {
    Stages::growing(1e-9).first_stage(1000).seed(3)
}

fn create(server: &RedisServer, name: &str, stages: &Stages) -> RedisBloomFilter {
    RedisBloomFilter::create_stages(server, name, stages).unwrap()
}

fn stages_of(filter: &mut RedisBloomFilter) -> usize {
    filter.stats().unwrap().stages
}

#[track_caller]
fn assert_all_found(filter: &mut RedisBloomFilter, tally: &Tally) {
    let keys: Vec<u64> = (0..tally.keys()).collect();
    assert_eq!(filter.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
    assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(0));
}

fn growing_filters_keep_their_rate() {
    let server = Server::start("");
    let rate = 0.02;
    for mirrored in [false, true] {
        let name = ["plain", "mirrored"][usize::from(mirrored)];
        let mut filter = create(&server.address(), name, &Stages::growing(rate).first_stage(2500));
        if mirrored {
            filter = filter.with_mirror().unwrap();
        }
        // Of 500 keys at a time: 2500 + 5000 + 10,000 + 20,000 fill four stages.
        let mut claimed = 0;
        for start in (0..37_500u64).step_by(500) {
            let keys: Vec<u64> = (start..start + 500).collect();
            claimed += filter.insert_batch(&keys, &mut [false; 500]).unwrap();
        }
        let stats = filter.stats().unwrap();
        assert!((4..=5).contains(&stats.stages), "{stats:?}");
        assert!((stats.estimated_keys / claimed as f64 - 1.0).abs() < 0.03, "{stats:?} {claimed}");
        assert!(stats.expected_fpr < rate && stats.memory_bytes > filter.plan().memory_bytes() as u64, "{stats:?}");
        // Keys that were not inserted. Five deviations.
        let others: Vec<u64> = (1 << 40..(1 << 40) + 50_000).collect();
        let found = filter.contains_batch(&others, &mut vec![false; others.len()]).unwrap() as f64;
        let (mean, deviation) = (50_000.0 * stats.expected_fpr, (50_000.0 * stats.expected_fpr).sqrt());
        assert!((found - mean).abs() < 5.0 * deviation + 0.1 * mean && found < 50_000.0 * rate, "{found} of {mean}");
        let keys: Vec<u64> = (0..37_500).collect();
        let mut later = RedisBloomFilter::open(&server.address(), name).unwrap();
        for filter in [&mut filter, &mut later] {
            assert_eq!(filter.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
        }
    }
}

/// Inserts all keys by clients that each open the filter themselves, as separate processes do.
fn insert_concurrently(address: &RedisServer, stages: &Stages, tally: &Tally, clients: u64, meanwhile: impl FnOnce()) {
    let filters = (0..clients).map(|_| create(address, "f", stages)).collect();
    tally.insert_with(filters, 200, meanwhile);
}

fn clients_claim_each_key_once_during_growth() {
    let server = Server::start("");
    let tally = Tally::new(18_000);
    insert_concurrently(&server.address(), &small_stages(), &tally, 4, || {});
    tally.assert_once_each();
    let mut filter = create(&server.address(), "f", &small_stages());
    assert!(stages_of(&mut filter) >= 5);
    assert_all_found(&mut filter, &tally);
    // The same for threads of one process, with a mirror.
    let tally = Tally::new(18_000);
    let filter = create(&server.address(), "g", &small_stages()).with_mirror().unwrap();
    tally.insert_concurrently(&filter, 4, 200, || {});
    tally.assert_once_each();
    assert_all_found(&mut filter.new_client(), &tally);
}

fn cluster_clients_claim_each_key_once_during_growth() {
    let cluster = Cluster::start(3, false);
    let tally = Tally::new(15_000);
    insert_concurrently(&cluster.address(), &small_stages(), &tally, 3, || {
        for (share, key) in [(20, "cbf:{f:stages}"), (50, "cbf:{f:1.0}")] {
            tally.await_progress(3, share);
            let (slot, node) = cluster.slot_and_primary(key);
            let mut filter = create(&cluster.address(), "f", &small_stages());
            cluster.migrate(slot, node, (node + 1) % 3, || {
                // These calls read the list, and query each stage.
                assert_eq!((filter.check(), filter.contains(&u64::MAX)), (Ok(()), Ok(false)));
            });
        }
    });
    tally.assert_once_each();
    assert_all_found(&mut create(&cluster.address(), "f", &small_stages()), &tally);
}

fn no_key_is_lost_when_connections_break_during_growth() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, 11);
    let tally = Tally::new(12_000);
    let filters = (0..4).map(|_| create(&proxy.address(), "f", &small_stages())).collect();
    proxy.break_connections(true);
    tally.insert_with(filters, 200, || {});
    assert!(proxy.broken_connections() > 10, "{}", proxy.broken_connections());
    tally.assert_none_lost();
    assert_all_found(&mut create(&server.address(), "f", &small_stages()), &tally);
}

fn no_key_is_lost_when_a_node_crashes_during_growth() {
    let mut cluster = Cluster::start(3, false);
    let tally = Tally::new(15_000);
    let address = cluster.address();
    insert_concurrently(&address, &small_stages(), &tally, 3, || {
        for (share, victim) in [(20, 0), (40, 1), (60, 2)] {
            tally.await_progress(3, share);
            cluster.nodes[victim].kill();
            cluster.nodes[victim].relaunch();
        }
    });
    tally.assert_none_lost();
    cluster.await_up();
    assert_all_found(&mut create(&address, "f", &small_stages()), &tally);
}

/// A client that grows the filter dies after its first steps.
fn clients_finish_the_growth_of_a_dead_client() {
    let server = Server::start("");
    let (mut first, mut second) =
        (create(&server.address(), "f", &small_stages()), create(&server.address(), "f", &small_stages()));
    assert_eq!(first.insert(&1), Ok(true));
    assert_eq!(second.insert(&1), Ok(false));
    server.execute::<u64>("SETBIT cbf:{f:0.0} 0 1");
    // Each finds the seal; one of them opens the next stage.
    assert_eq!((first.insert(&2), second.insert(&2)), (Ok(true), Ok(false)));
    assert_eq!((second.insert(&1), second.insert(&3), first.insert(&3)), (Ok(false), Ok(true), Ok(false)));
    assert_eq!((stages_of(&mut first), first.uncertain()), (2, 0));
    // If the dead client has opened the stage, other clients find the stage, even if they only query.
    let mut reader = create(&server.address(), "f", &small_stages());
    assert_eq!(reader.contains(&4), Ok(false));
    server.execute::<u64>("SETBIT cbf:{f:1.0} 0 1");
    assert_eq!(first.insert(&4), Ok(true));
    assert_eq!((reader.contains(&4), second.insert(&4)), (Ok(true), Ok(false)));
    assert_eq!(stages_of(&mut reader), 3);
}

/// Each client is a separate process.
fn short_lived_clients_grow_the_filter() {
    let server = Server::start("");
    let stages = Stages::growing(0.01).first_stage(1000);
    let mut claimed = 0;
    for client in 0..150u64 {
        let keys: Vec<u64> = (60 * client..60 * client + 60).collect();
        claimed += create(&server.address(), "f", &stages).insert_batch(&keys, &mut [false; 60]).unwrap();
    }
    let stats = create(&server.address(), "f", &stages).stats().unwrap();
    assert!(stats.stages >= 3 && stats.expected_fpr < 0.01, "{stats:?}");
    assert!((8900..=9000).contains(&claimed), "{claimed}");
}

fn small_stages_are_not_overfilled() {
    let server = Server::start("");
    for first in [1, 100, 1000] {
        let stages = Stages::growing(0.01).first_stage(first);
        let mut filter = create(&server.address(), &format!("f{first}"), &stages);
        let keys: Vec<u64> = (0..20_000).collect();
        let claimed = filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
        let stats = filter.stats().unwrap();
        assert!(claimed > 19_700 && stats.expected_fpr < 0.01 && stats.stages > 3, "{first}: {claimed} {stats:?}");
    }
}

fn clients_of_a_process_may_differ_in_their_mirrors() {
    let server = Server::start("");
    let mirrored = create(&server.address(), "f", &small_stages());
    let mut plain = mirrored.new_client();
    let mut mirrored = mirrored.with_mirror().unwrap();
    let keys: Vec<u64> = (0..5000).collect();
    assert_eq!(mirrored.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(5000));
    assert_eq!(plain.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(0));
    assert!(stages_of(&mut plain) >= 2);
    // The mirror is added when stages have expired already.
    let late = create(&server.address(), "g", &window(2));
    let mut forgets = late.new_client();
    insert_until_expired(&server, &mut forgets);
    let mut late = late.with_mirror().unwrap();
    let started = Instant::now();
    assert_eq!(late.insert(&1), Ok(true));
    assert!(forgets.insert(&1) == Ok(false) || started.elapsed() >= Duration::from_secs(2));
}

/// Inserts keys until the first generation is over.
fn insert_until_expired(server: &Server, filter: &mut RedisBloomFilter) {
    let mut key = 100u64;
    let list = format!("cbf:{{{}:stages}}", filter.name());
    wait_until("the first generation is over", || {
        assert_eq!(filter.insert(&key), Ok(true));
        key += 1;
        thread::sleep(Duration::from_millis(200));
        !server.execute::<bool>(&format!("HEXISTS {list} 0"))
    });
}

/// A client that opens a window advances to the generation that is due.
fn short_lived_clients_expire_generations() {
    let server = Server::start("");
    let insert = |key: u64| create(&server.address(), "f", &window(400)).insert(&key).unwrap();
    assert!(insert(0));
    // The first key is queried until 800 s after its generation was opened.
    for key in 1..45 {
        assert!(insert(key));
        // Keys that are younger than the window are not forgotten with the others.
        assert!(!insert(key.saturating_sub(5)) || key < 5, "{key}");
        server.advance_clock("f", 20);
    }
    assert!(create(&server.address(), "f", &window(400)).insert(&0).unwrap());
}

fn tasks_grow_filters() {
    let server = Server::start("");
    let runtime = crate::tasks::runtime();
    let keys: Vec<u64> = (0..20_000).collect();
    let claimed = runtime.block_on(async {
        let filter = AsyncRedisBloomFilter::create_stages(&server.address(), "f", &small_stages()).await.unwrap();
        let tasks = [(); 3].map(|()| {
            let (mut filter, keys) = (filter.clone(), keys.clone());
            tokio::spawn(async move {
                let mut claimed = 0;
                for keys in keys.chunks(300) {
                    claimed += filter.insert_batch(keys, &mut vec![false; keys.len()]).await.unwrap();
                }
                claimed
            })
        });
        let mut claimed = 0;
        for task in tasks {
            claimed += task.await.unwrap();
        }
        claimed
    });
    assert_eq!(claimed, keys.len());
    assert!(stages_of(&mut create(&server.address(), "f", &small_stages())) >= 4);
}

/// A window of these seconds, in two generations.
fn window(seconds: u64) -> Stages {
    Stages::window(Duration::from_secs(seconds), 100_000, 1e-9).generations(2)
}

/// With fewer or more keys than planned, in any part of the window.
fn windows_keep_their_rate_at_any_pace() {
    const WINDOW: u64 = 30 * 86_400;
    const PLANNED: u64 = 1 << 13;
    let server = Server::start("");
    let rate = 0.01;
    let stages = Stages::window(Duration::from_secs(WINDOW), PLANNED, rate).generations(2);
    // The share of the window that passes before each share of its keys.
    let at_once = vec![(0.0, 1.0)];
    let evenly = vec![(0.1, 0.1); 16];
    let bursts = vec![(0.0, 0.1), (0.2, 0.5), (0.01, 0.2), (0.5, 0.2), (0.25, 0.9), (0.24, 0.1), (0.02, 0.4)];
    for (name, pattern) in [("once", at_once), ("evenly", evenly), ("bursts", bursts)] {
        for quarters in [1, 4, 12] {
            let name = format!("{name}-{quarters}");
            let (mut next, mut claimed) = (0, 0);
            for &(passes, share) in &pattern {
                if next > 0 {
                    server.advance_clock(&name, (passes * WINDOW as f64) as u64);
                }
                let keys = (share * (PLANNED * quarters / 4) as f64) as u64;
                let keys: Vec<u64> = (next..next + keys).collect();
                next += keys.len() as u64;
                let mut filter = create(&server.address(), &name, &stages);
                claimed += filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
            }
            let mut filter = create(&server.address(), &name, &stages);
            let stats = filter.stats().unwrap();
            let lost = next - claimed as u64;
            // Five deviations.
            let max_errors = |keys: u64| rate * keys as f64 + 5.0 * (rate * keys as f64).sqrt();
            assert!((lost as f64) < max_errors(next), "{name}: {lost} of {next}, {stats:?}");
            let others: Vec<u64> = (1 << 40..(1 << 40) + 20_000).collect();
            let found = filter.contains_batch(&others, &mut vec![false; others.len()]).unwrap();
            assert!((found as f64) < max_errors(20_000) && stats.expected_fpr < rate, "{name}: {found}, {stats:?}");
            filter.delete().unwrap();
        }
    }
}

fn windows_expire_keys_in_time() {
    let server = Server::start("");
    let (mut filter, mut reader) =
        (create(&server.address(), "f", &window(2)), create(&server.address(), "f", &window(2)));
    let started = Instant::now();
    assert_eq!(filter.insert(&0), Ok(true));
    for key in 1u64.. {
        let elapsed = started.elapsed();
        assert_eq!(filter.insert(&key), Ok(true));
        // Neither queries nor repeated inserts renew the key.
        if !reader.contains(&0).unwrap() {
            assert!(started.elapsed() >= Duration::from_secs(2), "{:?}", started.elapsed());
            break;
        }
        // Any more than that is longer than promised.
        assert!(elapsed < Duration::from_secs(2 + 1 + 4), "it never forgets");
        thread::sleep(Duration::from_millis(50));
    }
    // The other client may have read the clock a moment earlier.
    wait_until("the other client forgets it, too", || !filter.contains(&0).unwrap());
    let started = Instant::now();
    assert_eq!(filter.insert(&0), Ok(true));
    assert!(filter.insert(&0) == Ok(false) || started.elapsed() >= Duration::from_secs(2));
    // Forgotten keys take no memory: five generations of one shard, their list and the description are left.
    assert!(stages_of(&mut filter) <= 5);
    assert!(server.execute::<u64>("DBSIZE") <= 7, "{:?}", server.execute::<Vec<String>>("KEYS *"));
}

fn a_window_may_be_endless() {
    let server = Server::start("");
    let endless = || create(&server.address(), "f", &Stages::window(Duration::MAX, 1000, 1e-9));
    let (mut filter, mut other) = (endless(), endless());
    assert_eq!((filter.insert(&0), other.insert(&0), other.contains(&0)), (Ok(true), Ok(false), Ok(true)));
}

/// Clients may advance to the next generation in any second. All clients insert each key within less than the window.
fn clients_claim_each_key_once_while_generations_pass() {
    let server = Server::start("");
    let stages = Stages::window(Duration::from_secs(30), 1_000_000, 1e-9).generations(30);
    let tally = Tally::new(100_000);
    let mut filter = create(&server.address(), "f", &stages);
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        for client in 0..3 {
            let (mut filter, tally, end) = (create(&server.address(), "f", &stages), &tally, &end);
            scope.spawn(move || {
                for keys in tally.batches(client, 100).iter().take_while(|_| !end.load(Ordering::Relaxed)) {
                    tally.insert(&mut filter, keys);
                    thread::sleep(Duration::from_millis(20));
                }
                assert_eq!(filter.uncertain(), 0);
            });
        }
        wait_until("generations pass", || stages_of(&mut filter) >= 3);
        end.store(true, Ordering::Relaxed);
    });
    let claims = tally.claims.iter().map(|claims| claims.load(Ordering::Relaxed));
    let (most, all) = claims.fold((0, 0), |(most, all), claims| (most.max(claims), all + claims));
    assert!(most == 1 && all > 1000, "{most} {all}");
}

fn unused_windows_expire_on_the_server() {
    let server = Server::start("");
    let mut filter = create(&server.address(), "f", &window(2));
    assert_eq!(filter.insert(&1), Ok(true));
    wait_until("the description and the list are left", || server.execute::<u64>("DBSIZE") == 2);
    // Both clients start anew.
    let mut other = RedisBloomFilter::open(&server.address(), "f").unwrap();
    let started = Instant::now();
    assert_eq!(filter.insert(&1), Ok(true));
    assert!(other.insert(&1) == Ok(false) || started.elapsed() >= Duration::from_secs(2));
    assert_eq!((filter.uncertain(), other.uncertain()), (0, 0));
}

/// A suspended process still uses stages that have expired.
fn suspended_clients_catch_up() {
    let server = Server::start("");
    let (mut filter, mut still) =
        (create(&server.address(), "f", &window(2)), create(&server.address(), "f", &window(2)));
    filter.insert(&1).unwrap();
    still.insert(&1).unwrap();
    insert_until_expired(&server, &mut filter);
    let started = Instant::now();
    assert_eq!(filter.insert(&2), Ok(true));
    let answers = (still.insert(&2), still.contains(&2), still.insert(&3), filter.insert(&3));
    assert!(answers == (Ok(false), Ok(true), Ok(true), Ok(false)) || started.elapsed() >= Duration::from_secs(2));
    assert_eq!((filter.check(), still.check()), (Ok(()), Ok(())));
}

fn removed_filters_leave_no_keys() {
    let server = Server::start("");
    for by_name in [false, true] {
        let mut filter = create(&server.address(), "f", &small_stages());
        let keys: Vec<u64> = (0..5000).collect();
        filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
        filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
        assert!(server.execute::<u64>("DBSIZE") >= 3);
        if by_name {
            // With or without its metadata.
            server.execute::<u64>("DEL cbf:{f:meta}");
            assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(true));
        } else {
            filter.delete().unwrap();
        }
        assert_eq!(server.execute::<Vec<String>>("KEYS *"), Vec::<String>::new());
    }
    // The list is lost too, once without and once with the description.
    for lost in ["cbf:{f:stages}", "cbf:{f:stages} cbf:{f:meta}"] {
        for stages in [small_stages(), window(3600)] {
            let mut filter = create(&server.address(), "f", &stages);
            for keys in [0..5000u64, 5000..5001] {
                let keys: Vec<u64> = keys.collect();
                filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
            }
            create(&server.address(), "f*", &small_stages()).insert(&1).unwrap();
            server.execute::<u64>(&format!("DEL {lost}"));
            assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(true));
            assert_eq!(server.execute::<Vec<String>>("KEYS cbf:{f:*"), Vec::<String>::new(), "{lost}");
            assert_eq!(RedisBloomFilter::remove(&server.address(), "f*"), Ok(true));
        }
    }
}

/// A client of a replica does not open the next generation.
fn a_window_is_read_from_a_replica() {
    let [primary, replica] = primary_and_replica("");
    assert_eq!(create(&primary.address(), "f", &window(600)).insert(&1), Ok(true));
    primary.advance_clock("f", 301);
    let list = || replica.execute::<Vec<String>>("HVALS cbf:{f:stages}");
    wait_until("the list has arrived", || list() == primary.execute::<Vec<String>>("HVALS cbf:{f:stages}"));
    let mut filter = RedisBloomFilter::open(&replica.address(), "f").unwrap();
    assert_eq!((filter.contains(&1), filter.contains(&2), filter.check()), (Ok(true), Ok(false), Ok(())));
    assert_eq!(stages_of(&mut filter), 1);
    assert!(matches!(expect_error(filter.insert(&2), &[]), ReadOnly { .. }));
}

fn mirrors_have_a_bound() {
    let server = Server::start("");
    let filter = create(&server.address(), "f", &small_stages());
    let bytes = filter.plan().memory_bytes();
    let mirrored = |filter: &RedisBloomFilter| format!("{filter:?}").contains("mirror: true");
    assert!(!mirrored(&filter.new_client().with_mirror_up_to(bytes - 1).unwrap()));
    let mut filter = filter.with_mirror_up_to(bytes).unwrap();
    assert!(mirrored(&filter));
    // The second stage is not mirrored.
    let keys: Vec<u64> = (0..2500).collect();
    assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(2500));
    server.execute::<()>("CONFIG RESETSTAT");
    assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(0));
    let calls: u64 = ["bitfield", "getrange"].iter().map(|command| server.calls(command)).sum();
    // Keys of the second stage are looked up in both. Without a mirror all keys are, and most of them in both.
    assert!((1000..3300).contains(&calls), "{calls}");
}

fn oversized_stage_lists_are_refused() {
    let server = Server::start("");
    let mut connection = server.client().unwrap();
    let mut add = |name: &str, number: u64, blocks: u64| {
        let line = format!("blocks={blocks} probes=8 keys=1 made=1 opened=9999999999");
        redis::cmd("HSET").arg(format!("cbf:{{{name}:stages}}")).arg(number).arg(line).exec(&mut connection).unwrap();
    };
    // Each stage is as large as a filter can be.
    drop(create(&server.address(), "f", &window(60)));
    (1..200).for_each(|number| add("f", number, (1 << 44) / 64 - (1 << 20)));
    expect_error(RedisBloomFilter::open(&server.address(), "f"), &["together are larger"]);
    drop(create(&server.address(), "g", &window(60)));
    add("g", u64::MAX, 1);
    expect_error(RedisBloomFilter::open(&server.address(), "g"), &["makes no sense"]);
}

/// A client's claims are in flight when the filter is removed.
fn shards_recreated_by_a_late_client_expire() {
    let server = Server::start("");
    let mut late = create(&server.address(), "f", &window(3600));
    assert_eq!(late.insert(&1), Ok(true));
    assert_eq!(RedisBloomFilter::remove(&server.address(), "f"), Ok(true));
    assert!(matches!(expect_error(late.insert_batch(&[2u64], &mut [false]), &[]), Gone { .. }));
    let left: Vec<String> = server.execute("KEYS *");
    assert!(left.iter().all(|key| server.execute::<i64>(&format!("TTL {key}")) > 0), "{left:?}");
}

fn kinds_of_filters_are_distinguished() {
    let server = Server::start("");
    let address = server.address();
    let mut grows = create(&address, "grows", &small_stages());
    create(&address, "forgets", &window(60));
    crate::create(&address, "fixed", &one_shard_size());
    let differs = |name: &str, stages: Stages, ours: &str, theirs: &str| {
        let message = format!("the filter {name:?} {theirs}, but one was asked for that {ours}: ");
        let error = expect_error(RedisBloomFilter::create_stages(&address, name, &stages), &[&message]);
        assert!(matches!(error, Differs { .. }), "{error:?}");
    };
    let grows_from = |keys: u64, rate: &str| format!("grows, from {keys} keys, at a rate below {rate}");
    let forgets_after = |seconds: u64, generations: u32, keys: u64| {
        format!(
            "forgets keys after {seconds} s ({generations} generations), for {keys} keys in this time at a rate below 1e-9"
        )
    };
    let fixed = format!(
        "has room for {} keys at a rate of 1e-9 (1048576 bytes, 8 probes)",
        one_shard_size().plan().unwrap().capacity(1e-9)
    );
    let (small, minute) = (grows_from(1000, "1e-9"), forgets_after(60, 2, 100_000));
    differs("fixed", small_stages(), &small, &fixed);
    differs("grows", window(60), &minute, &small);
    differs("forgets", window(61), &forgets_after(61, 2, 100_000), &minute);
    differs("forgets", window(60).generations(3), &forgets_after(60, 3, 100_000), &minute);
    differs("grows", Stages::growing(1e-9).first_stage(2000).seed(3), &grows_from(2000, "1e-9"), &small);
    differs("grows", Stages::growing(0.001).first_stage(1000).seed(3), &grows_from(1000, "0.001"), &small);
    expect_error(RedisBloomFilter::create(&address, "grows", &one_shard_size()), &[&small, "has room for"]);
    let error = expect_error(RedisBloomFilter::create_stages(&address, "grows", &small_stages().seed(4)), &[]);
    assert_eq!(error, Seed { name: "grows".into() });
    // There is no single filter to copy.
    assert_eq!(expect_error(grows.download(), &["grows or forgets"]), NotOne { name: "grows".into() });
    assert_eq!(expect_error(grows.upload(&one_shard_size().build().unwrap()), &[]), NotOne { name: "grows".into() });
    for stages in [Stages::growing(0.0), Stages::growing(1.0), Stages::growing(f64::NAN), small_stages().first_stage(0)]
    {
        expect_error(RedisBloomFilter::create_stages(&address, "none", &stages), &[]);
    }
    assert!(server.execute::<Vec<String>>("KEYS *none*").is_empty());
}

fn stages_need_few_rights() {
    let server = Server::start("");
    let rights = crate::errors::rights();
    let more = "+hgetall +hsetnx +hexists +hdel +expireat +time";
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SERVER.md")).unwrap();
    assert!(page.contains(more), "the page names them");
    server.execute::<()>(&format!("ACL SETUSER crawler on >secret {rights} {more}"));
    server.execute::<()>(&format!("ACL SETUSER other on >secret {rights}"));
    let address = |user: &str| address(&format!("redis://{user}:secret@127.0.0.1:{}", server.port));
    let mut filter = create(&address("crawler"), "f", &small_stages());
    let keys: Vec<u64> = (0..5000).collect();
    assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(5000));
    assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(0));
    assert_eq!(filter.contains(&1u64), Ok(true));
    assert!(stages_of(&mut filter) >= 2);
    assert_eq!(create(&address("crawler"), "g", &window(60)).insert(&1), Ok(true));
    // As if that generation had ended long ago: the next client opens another one and removes it.
    let line: String = server.execute("HGET cbf:{g:stages} 0");
    let (line, _) = line.split_once(" opened=").unwrap();
    let mut older = redis::cmd("HSET");
    older.arg("cbf:{g:stages}").arg(0).arg(format!("{line} opened=1"));
    older.exec(&mut server.client().unwrap()).unwrap();
    assert_eq!(create(&address("crawler"), "g", &window(60)).insert(&1), Ok(true));
    assert_eq!(server.execute::<Vec<String>>("HKEYS cbf:{g:stages}"), ["1"]);
    let denied = expect_error(RedisBloomFilter::open(&address("other"), "f"), &["HGETALL"]);
    assert!(matches!(denied, Denied { .. }), "{denied:?}");
    // Filters of one size need none of these rights, even if a shard is lost.
    crate::create(&address("other"), "h", &one_shard_size()).delete().unwrap();
    let mut lost = crate::create(&address("other"), "i", &one_shard_size());
    lost.insert(&1).unwrap();
    server.execute::<u64>("DEL cbf:{i:0}");
    assert!(matches!(expect_error(lost.check(), &[]), Gone { .. }));
    filter.delete().unwrap();
}

fn lost_stages_are_detected() {
    let server = Server::start("");
    let keys: Vec<u64> = (0..5000).collect();
    let grown = |name: &str| {
        let mut filter = create(&server.address(), name, &small_stages());
        for _ in 0..2 {
            filter.insert_batch(&keys, &mut vec![false; keys.len()]).unwrap();
        }
        filter
    };
    let mut filter = grown("f");
    server.execute::<u64>("DEL cbf:{f:0.0}");
    let gone = expect_error(filter.check(), &["cbf:{f:0.0}"]);
    assert!(matches!(gone, Gone { .. }), "{gone:?}");
    let mut filter = grown("g");
    server.execute::<u64>("DEL cbf:{g:stages}");
    let gone = expect_error(filter.check(), &["cbf:{g:stages}", "start again"]);
    assert!(matches!(gone, Gone { .. }), "{gone:?}");
    assert!(filter.uncertain() > 0, "keys that a newcomer may have claimed too");
    // A list without metadata is not reused for another filter, and a line of another filter is refused.
    drop(grown("i"));
    server.execute::<u64>("DEL cbf:{i:meta}");
    let remains = expect_error(
        RedisBloomFilter::create_stages(&server.address(), "i", &small_stages().seed(9)),
        &["redis delete"],
    );
    assert!(matches!(remains, Remains { .. }), "{remains:?}");
    assert_eq!(RedisBloomFilter::remove(&server.address(), "i"), Ok(true));
    assert!(server.execute::<Vec<String>>("KEYS cbf:{i:*").is_empty());
    drop(grown("j"));
    let mut large = redis::cmd("HSET");
    large.arg("cbf:{j:stages}").arg(9).arg("blocks=1000000000 probes=8 keys=1 made=1 opened=0");
    large.exec(&mut server.client().unwrap()).unwrap();
    expect_error(RedisBloomFilter::open(&server.address(), "j"), &["stage 9 is not one of this filter"]);
    assert_eq!(RedisBloomFilter::remove(&server.address(), "j"), Ok(true));
    let mut filter = grown("h");
    server.execute::<()>("FLUSHALL");
    thread::sleep(Duration::from_millis(1100));
    let gone = expect_error(filter.insert(&1_000_000), &[]);
    assert!(matches!(gone, Gone { .. }), "{gone:?}");
}

/// The keys still exist: a client that opens the filter restores the list of its stages.
fn lost_stage_lists_are_recreated() {
    let server = Server::start("");
    let keys: Vec<u64> = (0..10_000).collect();
    let mut filter = create(&server.address(), "f", &small_stages());
    assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
    let list = server.execute::<Vec<String>>("HGETALL cbf:{f:stages}");
    assert!(list.len() >= 2 * 4, "{list:?}");
    let (last, first) = (list[list.len() - 2].clone(), "0".to_owned());
    for lost in
        [format!("HDEL cbf:{{f:stages}} {last}"), format!("HDEL cbf:{{f:stages}} {first}"), "DEL cbf:{f:stages}".into()]
    {
        server.execute::<u64>(&lost);
        let mut other = create(&server.address(), "f", &small_stages());
        let mut sorted = server.execute::<Vec<String>>("HGETALL cbf:{f:stages}");
        let mut before = list.clone();
        sorted.sort();
        before.sort();
        assert_eq!(sorted, before, "{lost}");
        assert_eq!(other.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()), "{lost}");
        assert_eq!(other.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(0), "{lost}");
        assert_eq!((filter.insert(&1u64), filter.check(), filter.uncertain()), (Ok(false), Ok(()), 0), "{lost}");
    }
}

/// Leftover shards with the names of a later stage.
fn leftover_bits_hide_no_key() {
    let server = Server::start("");
    let mut filter = create(&server.address(), "f", &small_stages());
    let mark = ((1u64 << 62) | (7 << 32) | 7).to_be_bytes();
    for (number, mark) in [(1, mark), (2, [0; 8])] {
        let shard = [&mark[..], &[0xff; 4000]].concat();
        redis::cmd("SET").arg(format!("cbf:{{f:{number}.0}}")).arg(shard).exec(&mut server.client().unwrap()).unwrap();
    }
    let keys: Vec<u64> = (0..10_000).collect();
    assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
    assert!(stages_of(&mut filter) >= 3);
}
