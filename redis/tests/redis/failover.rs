//! Failover without a cluster: Sentinels, primaries with replicas, and names that lead elsewhere.

use crate::harness::tests;
use crate::proxy::Proxy;
use crate::servers::{Server, address, eventually, primary_and_replica};
use crate::{Tally, create, failed, roomy, small};
use bloomline_redis::RedisFilterError::{Denied, ReadOnly, Refused, Unreachable};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisServer};
use std::thread;
use std::time::Duration;

tests! {
    no_key_is_lost_where_sentinels_choose_another,
    #[ignore = "takes a minute"] no_key_is_lost_where_sentinels_choose_again_and_again,
    what_sentinels_say_is_told,
    a_primary_is_found_among_its_replicas,
    a_name_that_leads_to_another_server_is_followed,
    a_replica_that_becomes_the_primary_is_waited_for,
}

/// A server that writes to its file before it answers, as a primary must that comes back.
const KEPT: &str = "--appendonly yes --appendfsync always";

/// Three Sentinels of a primary, which know each other.
fn sentinels(primary: &Server, options: &str) -> [Server; 3] {
    let sentinels = [(); 3].map(|()| Server::sentinel(primary, options));
    for sentinel in &sentinels {
        let known = || sentinel.tell::<String>("INFO sentinel").contains("slaves=1,sentinels=3");
        eventually("Sentinels know each other", known);
    }
    sentinels
}

fn url(sentinels: &[Server]) -> String {
    let hosts: Vec<String> = sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
    format!("redis+sentinel://{}/main", hosts.join(","))
}

/// The primary is killed and comes back, so many times. The claims of clients that wait for a replica are in it.
fn check_failovers(rounds: usize, clients: u64, keys: u64) {
    let mut servers = primary_and_replica(KEPT);
    let mut sentinels = sentinels(&servers[0], "");
    let sentinel = address(&url(&sentinels));
    let tally = Tally::new(keys);
    let filter = create(&sentinel.clone().wait_for_replicas(1, Duration::from_millis(20)), "f", &roomy());
    // One of them is down for good, and is asked all the same.
    sentinels[0].kill();
    tally.insert_by(&filter, clients, 100, || {
        for round in 0..rounds {
            tally.await_share(clients, (100 * round / rounds + 5) as u64);
            let (old, new) = (round % 2, (round + 1) % 2);
            servers[old].kill();
            sentinels[1].tell::<()>("SENTINEL FAILOVER main");
            let chosen = || sentinels[1].tell::<Vec<String>>("SENTINEL GET-MASTER-ADDR-BY-NAME main");
            eventually("another is chosen", || chosen()[1] == servers[new].port.to_string());
            servers[old].relaunch();
            servers[old].await_answer();
            if round + 1 < rounds {
                eventually("it is told", || servers[old].tell::<String>("INFO replication").contains("role:slave"));
                servers[old].await_copy();
            }
        }
    });
    tally.assert_none_lost();
    let keys: Vec<u64> = (0..tally.keys()).collect();
    let mut later = RedisBloomFilter::open(&sentinel, "f").unwrap();
    assert_eq!(later.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
}

fn no_key_is_lost_where_sentinels_choose_another() {
    check_failovers(1, 2, 20_000);
}

fn no_key_is_lost_where_sentinels_choose_again_and_again() {
    check_failovers(3, 3, 120_000);
}

fn what_sentinels_say_is_told() {
    let servers = primary_and_replica("");
    servers.iter().for_each(|server| server.tell("CONFIG SET requirepass hush"));
    let guarded = "requirepass psst\nsentinel auth-pass main hush";
    let sentinel = Server::sentinel(&servers[0], guarded);
    let open = |login: &str, name: &str, query: &str| {
        let url = format!("redis+sentinel://{login}127.0.0.1:{}/{name}/3{query}", sentinel.port);
        RedisBloomFilter::create(&address(&url), "f", &small())
    };
    let query = "?sentinel_password=psst";
    assert_eq!(open(":hush@", "main", query).unwrap().insert(&1), Ok(true));
    let other = failed(open(":hush@", "other", query), &["no primary", "\"other\""]);
    assert!(matches!(other, Refused { node, .. } if node.ends_with(&sentinel.port.to_string())));
    let denied =
        [open(":hush@", "main", ""), open(":hush@", "main", "?sentinel_password=hush"), open("", "main", query)];
    for denied in denied {
        assert!(matches!(failed(denied, &[]), Denied { .. }));
    }
    // Whoever is no Sentinel does not know the command.
    let plain = Server::start("");
    let url = format!("redis+sentinel://127.0.0.1:{}/main", plain.port);
    let refused = failed(RedisBloomFilter::open(&address(&url), "f"), &["unknown command"]);
    assert!(matches!(refused, Refused { .. }), "{refused:?}");
    // Nor is one there any more.
    drop(plain);
    let gone = failed(RedisBloomFilter::open(&address(&url), "f"), &[]);
    assert!(matches!(gone, Unreachable { .. }), "{gone:?}");
}

fn a_primary_is_found_among_its_replicas() {
    let [mut primary, replica] = primary_and_replica(KEPT);
    // The replica is first.
    let address = address_of(&[&replica, &primary]);
    let runtime = crate::tasks::runtime();
    let mut task = runtime.block_on(AsyncRedisBloomFilter::create(&address, "f", &small())).unwrap();
    assert_eq!(runtime.block_on(task.insert(&0)), Ok(true));
    let tally = Tally::new(10_000);
    let filter = create(&address.wait_for_replicas(1, Duration::from_millis(20)), "f", &small());
    tally.insert_by(&filter, 2, 100, || {
        tally.await_share(2, 20);
        primary.kill();
        replica.tell::<()>("REPLICAOF NO ONE");
        tally.await_share(2, 60);
    });
    assert_eq!(runtime.block_on(task.insert(&0)), Ok(false));
    // A switch that loses nothing: the old one comes back as a replica, gets all, and is the primary again.
    primary.relaunch();
    primary.await_answer();
    primary.tell::<()>(&format!("REPLICAOF 127.0.0.1 {}", replica.port));
    primary.await_copy();
    let mut filter = RedisBloomFilter::open(&address_of(&[&primary, &replica]), "f").unwrap();
    let offset = replica.figure("master_repl_offset");
    eventually("all is there", || primary.figure("slave_repl_offset") >= offset);
    primary.tell::<()>("REPLICAOF NO ONE");
    replica.tell::<()>(&format!("REPLICAOF 127.0.0.1 {}", primary.port));
    assert_eq!(filter.insert(&0), Ok(false));
    assert_eq!(filter.insert(&1_000_000), Ok(true));
    assert_eq!(filter.uncertain(), 0);
    eventually("it has it from its primary", || replica.bits() == primary.bits());
    tally.assert_none_lost();
}

fn address_of(servers: &[&Server]) -> RedisServer {
    let urls: Vec<String> = servers.iter().map(|server| server.url()).collect();
    address(&urls.join(","))
}

/// A service gives one address, which is that of the primary. A connection stays with the server that it was made to.
fn a_name_that_leads_to_another_server_is_followed() {
    let [primary, replica] = primary_and_replica("");
    let proxy = Proxy::start(primary.port, 7);
    let runtime = crate::tasks::runtime();
    let mut filter = create(&proxy.address(), "f", &small());
    let mut task = runtime.block_on(AsyncRedisBloomFilter::open(&proxy.address(), "f")).unwrap();
    assert_eq!(filter.insert(&1), Ok(true));
    assert_eq!(runtime.block_on(task.insert(&1)), Ok(false));
    eventually("the replica has it", || replica.bits() == primary.bits());
    proxy.lead_to(replica.port);
    replica.tell::<()>("REPLICAOF NO ONE");
    primary.tell::<()>(&format!("REPLICAOF 127.0.0.1 {}", replica.port));
    assert_eq!((filter.insert(&1), filter.insert(&2)), (Ok(false), Ok(true)));
    assert_eq!((runtime.block_on(task.insert(&2)), runtime.block_on(task.insert(&3))), (Ok(false), Ok(true)));
    assert_eq!((filter.uncertain(), task.uncertain()), (0, 0));
}

/// For as long as the patience lasts.
fn a_replica_that_becomes_the_primary_is_waited_for() {
    let [primary, replica] = primary_and_replica("");
    let address = address_of(&[&primary, &replica]).patience(Duration::from_millis(300));
    let mut filter = create(&address, "f", &small());
    assert_eq!(filter.insert(&1), Ok(true));
    let mut patient = RedisBloomFilter::open(&address_of(&[&primary, &replica]), "f").unwrap();
    // Of a primary that is not there, so that it keeps what it has.
    primary.tell::<()>("REPLICAOF 127.0.0.1 1");
    // Neither takes keys.
    let unreachable = failed(filter.insert(&2), &["read only replica"]);
    assert!(matches!(unreachable, Unreachable { waited, .. } if waited >= Duration::from_millis(300)));
    assert!(matches!(failed(RedisBloomFilter::open(&address, "f"), &["address of its primary"]), ReadOnly { .. }));
    thread::scope(|scope| {
        let refused = primary.figure("errorstat_READONLY:count");
        let inserted = scope.spawn(|| patient.insert(&2));
        eventually("it was refused", || primary.figure("errorstat_READONLY:count") > refused);
        replica.tell::<()>("REPLICAOF NO ONE");
        assert_eq!(inserted.join().unwrap(), Ok(true));
    });
    assert_eq!(patient.uncertain(), 0);
}
