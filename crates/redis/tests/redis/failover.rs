//! Failover without a cluster: Sentinels, primaries with replicas, and names that lead elsewhere.

use crate::harness::tests;
use crate::proxy::Proxy;
use crate::servers::{Server, address, primary_and_replica, wait_until};
use crate::{Tally, create, expect_error, one_shard_size, three_shard_size};
use bloomline_redis::RedisFilterError::{Denied, ReadOnly, Refused, Unreachable};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisServer};
use std::thread;
use std::time::Duration;

tests! {
    no_key_is_lost_when_sentinels_fail_over,
    #[ignore = "takes a minute"] no_key_is_lost_when_sentinels_fail_over_repeatedly,
    sentinel_errors_are_reported,
    a_primary_is_found_among_its_replicas,
    changed_host_names_are_resolved_again,
    promoted_replicas_are_waited_for,
}

/// Makes a server write to its file before it answers, so that a primary that is restarted has all its data.
const KEPT: &str = "--appendonly yes --appendfsync always";

/// Three Sentinels of a primary, which know each other.
fn sentinels(primary: &Server, options: &str) -> [Server; 3] {
    let sentinels = [(); 3].map(|()| Server::sentinel(primary, options));
    for sentinel in &sentinels {
        let known = || sentinel.execute::<String>("INFO sentinel").contains("slaves=1,sentinels=3");
        wait_until("Sentinels know each other", known);
    }
    sentinels
}

fn url(sentinels: &[Server]) -> String {
    let hosts: Vec<String> = sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
    format!("redis+sentinel://{}/main", hosts.join(","))
}

/// Kills and restarts the primary in each round. The claims of clients that wait for a replica must survive.
fn check_failovers(rounds: usize, clients: u64, keys: u64) {
    let mut servers = primary_and_replica(KEPT);
    let mut sentinels = sentinels(&servers[0], "");
    let sentinel = address(&url(&sentinels));
    let tally = Tally::new(keys);
    let filter = create(&sentinel.clone().wait_for_replicas(1, Duration::from_millis(20)), "f", &three_shard_size());
    // One of the Sentinels stays down, and clients ask it all the same.
    sentinels[0].kill();
    tally.insert_concurrently(&filter, clients, 100, || {
        for round in 0..rounds {
            tally.await_progress(clients, (100 * round / rounds + 5) as u64);
            let (old, new) = (round % 2, (round + 1) % 2);
            servers[old].kill();
            sentinels[1].execute::<()>("SENTINEL FAILOVER main");
            let chosen = || sentinels[1].execute::<Vec<String>>("SENTINEL GET-MASTER-ADDR-BY-NAME main");
            wait_until("another is chosen", || chosen()[1] == servers[new].port.to_string());
            servers[old].relaunch();
            servers[old].await_answer();
            if round + 1 < rounds {
                wait_until("it is told", || servers[old].execute::<String>("INFO replication").contains("role:slave"));
                servers[old].await_replication();
            }
        }
    });
    tally.assert_none_lost();
    let keys: Vec<u64> = (0..tally.keys()).collect();
    let mut later = RedisBloomFilter::open(&sentinel, "f").unwrap();
    assert_eq!(later.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
}

fn no_key_is_lost_when_sentinels_fail_over() {
    check_failovers(1, 2, 20_000);
}

fn no_key_is_lost_when_sentinels_fail_over_repeatedly() {
    check_failovers(3, 3, 120_000);
}

fn sentinel_errors_are_reported() {
    let servers = primary_and_replica("");
    servers.iter().for_each(|server| server.execute("CONFIG SET requirepass hush"));
    let guarded = "requirepass psst\nsentinel auth-pass main hush";
    let sentinel = Server::sentinel(&servers[0], guarded);
    let open = |login: &str, name: &str, query: &str| {
        let url = format!("redis+sentinel://{login}127.0.0.1:{}/{name}/3{query}", sentinel.port);
        RedisBloomFilter::create(&address(&url), "f", &one_shard_size())
    };
    let query = "?sentinel_password=psst";
    assert_eq!(open(":hush@", "main", query).unwrap().insert(&1), Ok(true));
    let other = expect_error(open(":hush@", "other", query), &["no primary", "\"other\""]);
    assert!(matches!(other, Refused { node, .. } if node.ends_with(&sentinel.port.to_string())));
    let denied =
        [open(":hush@", "main", ""), open(":hush@", "main", "?sentinel_password=hush"), open("", "main", query)];
    for denied in denied {
        assert!(matches!(expect_error(denied, &[]), Denied { .. }));
    }
    // Only Sentinels know the command.
    let plain = Server::start("");
    let url = format!("redis+sentinel://127.0.0.1:{}/main", plain.port);
    let refused = expect_error(RedisBloomFilter::open(&address(&url), "f"), &["unknown command", "not a Sentinel"]);
    assert!(matches!(refused, Refused { .. }), "{refused:?}");
    // The server does not run.
    drop(plain);
    let gone = expect_error(RedisBloomFilter::open(&address(&url), "f"), &[]);
    assert!(matches!(gone, Unreachable { .. }), "{gone:?}");
}

fn a_primary_is_found_among_its_replicas() {
    let [mut primary, replica] = primary_and_replica(KEPT);
    // The replica is first.
    let address = address_of(&[&replica, &primary]);
    let runtime = crate::tasks::runtime();
    let mut task = runtime.block_on(AsyncRedisBloomFilter::create(&address, "f", &one_shard_size())).unwrap();
    assert_eq!(runtime.block_on(task.insert(&0)), Ok(true));
    let tally = Tally::new(10_000);
    let filter = create(&address.wait_for_replicas(1, Duration::from_millis(20)), "f", &one_shard_size());
    tally.insert_concurrently(&filter, 2, 100, || {
        tally.await_progress(2, 20);
        primary.kill();
        replica.execute::<()>("REPLICAOF NO ONE");
        tally.await_progress(2, 60);
    });
    assert_eq!(runtime.block_on(task.insert(&0)), Ok(false));
    // A switch that loses nothing: the old primary returns as a replica, gets all data, and becomes the primary again.
    primary.relaunch();
    primary.await_answer();
    primary.execute::<()>(&format!("REPLICAOF 127.0.0.1 {}", replica.port));
    primary.await_replication();
    let mut filter = RedisBloomFilter::open(&address_of(&[&primary, &replica]), "f").unwrap();
    let offset = replica.info_number("master_repl_offset");
    wait_until("all is there", || primary.info_number("slave_repl_offset") >= offset);
    primary.execute::<()>("REPLICAOF NO ONE");
    replica.execute::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    assert_eq!(filter.insert(&0), Ok(false));
    assert_eq!(filter.insert(&1_000_000), Ok(true));
    assert_eq!(filter.uncertain(), 0);
    wait_until("it has it from its primary", || replica.count_set_bits() == primary.count_set_bits());
    tally.assert_none_lost();
}

fn address_of(servers: &[&Server]) -> RedisServer {
    let urls: Vec<String> = servers.iter().map(|server| server.url()).collect();
    address(&urls.join(","))
}

/// A service gives one address, which is that of the primary. A connection stays with the server that it was made to.
fn changed_host_names_are_resolved_again() {
    let [primary, replica] = primary_and_replica("");
    let proxy = Proxy::start(primary.port, 7);
    let runtime = crate::tasks::runtime();
    let mut filter = create(&proxy.address(), "f", &one_shard_size());
    let mut task = runtime.block_on(AsyncRedisBloomFilter::open(&proxy.address(), "f")).unwrap();
    assert_eq!(filter.insert(&1), Ok(true));
    assert_eq!(runtime.block_on(task.insert(&1)), Ok(false));
    wait_until("the replica has it", || replica.count_set_bits() == primary.count_set_bits());
    proxy.retarget(replica.port);
    replica.execute::<()>("REPLICAOF NO ONE");
    primary.execute::<()>(&format!("REPLICAOF 127.0.0.1 {}", replica.port));
    assert_eq!((filter.insert(&1), filter.insert(&2)), (Ok(false), Ok(true)));
    assert_eq!((runtime.block_on(task.insert(&2)), runtime.block_on(task.insert(&3))), (Ok(false), Ok(true)));
    assert_eq!((filter.uncertain(), task.uncertain()), (0, 0));
}

/// Within the configured time-out for retries.
fn promoted_replicas_are_waited_for() {
    let [primary, replica] = primary_and_replica("");
    let address = address_of(&[&primary, &replica]).retry_timeout(Duration::from_millis(300));
    let mut filter = create(&address, "f", &one_shard_size());
    assert_eq!(filter.insert(&1), Ok(true));
    let mut patient = RedisBloomFilter::open(&address_of(&[&primary, &replica]), "f").unwrap();
    // Its primary does not exist, so it keeps its data.
    primary.execute::<()>("REPLICAOF 127.0.0.1 1");
    // Neither server accepts keys.
    let unreachable = expect_error(filter.insert(&2), &["read only replica"]);
    assert!(matches!(unreachable, Unreachable { waited, .. } if waited >= Duration::from_millis(300)));
    assert!(matches!(
        expect_error(RedisBloomFilter::open(&address, "f"), &["address of its primary"]),
        ReadOnly { .. }
    ));
    thread::scope(|scope| {
        let refused = primary.info_number("errorstat_READONLY:count");
        let inserted = scope.spawn(|| patient.insert(&2));
        wait_until("it was refused", || primary.info_number("errorstat_READONLY:count") > refused);
        replica.execute::<()>("REPLICAOF NO ONE");
        assert_eq!(inserted.join().unwrap(), Ok(true));
    });
    assert_eq!(patient.uncertain(), 0);
}
