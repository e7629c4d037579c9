//! Clusters: nodes that crash, slots that move, replicas.

use crate::harness::tests;
use crate::servers::{Cluster, Server, TIMEOUT, address, wait_until};
use crate::{Tally, create, one_shard_size, three_shard_size};
use bloomline_redis::RedisBloomFilter;
use std::thread;
use std::time::Duration;

tests! {
    clients_of_a_cluster_claim_each_key_once_while_slots_move,
    no_key_is_lost_where_a_node_crashes,
    #[ignore = "takes a minute"] no_key_is_lost_where_nodes_crash_for_long,
    no_key_is_lost_where_a_replica_takes_over,
    replicas_answer_queries_on_request,
    replicas_are_waited_for_on_request,
    claims_lost_by_a_failover_are_repeated,
    restarting_servers_with_replicas_are_waited_for,
}

/// Returns the slot of a filter's shard and the index of its primary.
fn slot_and_primary_of_shard(cluster: &Cluster, name: &str, shard: u32) -> (u16, usize) {
    cluster.slot_and_primary(&format!("cbf:{{{name}:{shard}}}"))
}

/// The name of a filter whose shards are on different nodes.
fn spread_name(cluster: &Cluster) -> String {
    let nodes = |name: &str| [0, 1, 2].map(|shard| slot_and_primary_of_shard(cluster, name, shard).1);
    let spread = |name: &String| {
        let mut nodes = nodes(name);
        nodes.sort();
        nodes == [0, 1, 2]
    };
    (0..).map(|i| format!("f{i}")).find(spread).unwrap()
}

fn clients_of_a_cluster_claim_each_key_once_while_slots_move() {
    let cluster = Cluster::start(3, false);
    let name = spread_name(&cluster);
    let tally = Tally::new(10_000);
    let mut filter = create(&cluster.address(), &name, &three_shard_size());
    tally.insert_concurrently(&filter, 4, 250, || {
        for (share, shard) in [(20, 0), (50, 1)] {
            tally.await_progress(4, share);
            let (slot, node) = slot_and_primary_of_shard(&cluster, &name, shard);
            cluster.migrate(slot, node, (node + 1) % 3, || tally.insert_some(&mut filter.new_client()));
        }
    });
    tally.assert_once_each();
    let keys: Vec<u64> = (0..tally.keys()).collect();
    // A client that knows one node finds the others.
    let mut other = RedisBloomFilter::open(&cluster.nodes[2].address(), &name).unwrap();
    assert_eq!(other.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
    let mut local = three_shard_size().build().unwrap();
    local.insert_batch(&keys, &mut vec![false; keys.len()]);
    assert!(filter.download().unwrap() == local);
    filter.delete().unwrap();
    assert_eq!(cluster.nodes.iter().map(|node| node.execute::<u64>("DBSIZE")).sum::<u64>(), 0);
}

/// A node crashes and comes back some time later.
fn check_crash(rounds: usize, keys: u64, down: Duration) {
    let mut cluster = Cluster::start(3, false);
    cluster.shorten_node_timeout();
    let name = spread_name(&cluster);
    let address = cluster.address();
    for round in 0..rounds {
        let clients = [2, 4][round % 2];
        let tally = Tally::new(keys);
        let filter = create(&address, &name, &three_shard_size());
        let victim = slot_and_primary_of_shard(&cluster, &name, round as u32 % 3).1;
        tally.insert_concurrently(&filter, clients, 1000, || {
            tally.await_progress(clients, 30);
            cluster.nodes[victim].kill();
            thread::sleep(down);
            cluster.nodes[victim].relaunch();
        });
        tally.assert_none_lost();
        filter.delete().unwrap();
        cluster.await_up();
    }
}

fn no_key_is_lost_where_a_node_crashes() {
    check_crash(1, 20_000, Duration::from_millis(300));
}

fn no_key_is_lost_where_nodes_crash_for_long() {
    // Shorter and longer than the other nodes take to detect the crash.
    check_crash(3, 60_000, Duration::from_millis(100));
    check_crash(2, 60_000, Duration::from_secs(5));
}

fn no_key_is_lost_where_a_replica_takes_over() {
    let cluster = Cluster::start(1, true);
    let tally = Tally::new(20_000);
    let filter = create(&cluster.address(), "f", &three_shard_size());
    tally.insert_concurrently(&filter, 2, 250, || {
        tally.await_progress(2, 30);
        cluster.fail_over(&cluster.nodes[1]);
    });
    tally.assert_none_lost();
    let keys: Vec<u64> = (0..tally.keys()).collect();
    let mut later = RedisBloomFilter::open(&cluster.address(), "f").unwrap();
    assert_eq!(later.contains_batch(&keys, &mut vec![false; keys.len()]), Ok(keys.len()));
}

fn replicas_answer_queries_on_request() {
    let cluster = Cluster::start(1, true);
    let [primary, replica] = &cluster.nodes[..] else { unreachable!() };
    let mut filter = create(&cluster.address(), "f", &three_shard_size());
    let keys: Vec<u64> = (0..3000).collect();
    filter.insert_batch(&keys, &mut [false; 3000]).unwrap();
    let mut found = [false; 3000];
    let offset = primary.info_number("master_repl_offset");
    wait_until("all is replicated", || replica.info_number("slave_repl_offset") >= offset);
    for node in [primary, replica] {
        // A node lists the replica once it has heard that the replica has data.
        let slots = || format!("{:?}", node.execute::<redis::Value>("CLUSTER SLOTS"));
        wait_until("the replica is offered", || slots().contains(&replica.port.to_string()));
    }
    // Either address leads to both nodes.
    for url in [cluster.url(), replica.url()] {
        let calls = [primary, replica].map(|node| node.calls("getrange"));
        let moved = replica.info_number("errorstat_MOVED:count");
        let address = address(&url).read_from_replicas();
        let mut reader = RedisBloomFilter::open(&address, "f").unwrap();
        assert_eq!(reader.contains_batch(&keys, &mut found), Ok(3000));
        assert_eq!(reader.contains(&5000), Ok(false));
        assert_eq!(replica.calls("getrange"), calls[1] + 3001);
        // The client asks the primary about lost parts of the filter.
        assert!(primary.calls("getrange") <= calls[0] + 8);
        assert_eq!(replica.info_number("errorstat_MOVED:count"), moved);
        // Claims go to the primary.
        assert_eq!(reader.insert(&keys[1]), Ok(false));
    }
    // The replica got all claims from its primary, and none from a client.
    // One for each key, and one for the length of each of the three shards.
    // Up to version 6.2 a primary also replicates claims and marks that changed nothing.
    assert!((3003..=3007).contains(&replica.calls("bitfield")), "{}", replica.calls("bitfield"));
}

fn replicas_are_waited_for_on_request() {
    let primary = Server::start("");
    let mut filter = create(&primary.address().wait_for_replicas(1, TIMEOUT), "f", &three_shard_size());
    let keys: Vec<u64> = (0..3000).collect();
    let (alone, together) = keys.split_at(1000);
    // Without a replica, keys are claimed and counted as unconfirmed. The marks of the shards wait, too.
    thread::scope(|scope| {
        let inserted = scope.spawn(|| filter.insert_batch(alone, &mut [false; 1000]));
        primary.await_blocked_client();
        wait_until("they are answered", || {
            primary.unblock_clients();
            inserted.is_finished()
        });
        assert_eq!(inserted.join().unwrap(), Ok(1000));
    });
    assert_eq!((filter.unconfirmed(), filter.uncertain(), primary.calls("wait")), (1000, 0, 2));
    let replica = Server::start(&format!("--replicaof 127.0.0.1 {}", primary.port));
    replica.await_replication();
    assert_eq!(filter.insert_batch(together, &mut [false; 2000]), Ok(2000));
    // Keys that are seen need no replica.
    assert_eq!(filter.insert_batch(&keys, &mut [false; 3000]), Ok(0));
    assert_eq!((filter.unconfirmed(), filter.uncertain()), (1000, 0));
    assert_eq!(replica.count_set_bits(), primary.count_set_bits());
}

/// A primary dies after it answered claims that no replica has. Without the wait, the keys would be new to another client.
fn claims_lost_by_a_failover_are_repeated() {
    let mut cluster = Cluster::start(1, true);
    let address = cluster.address().wait_for_replicas(1, TIMEOUT);
    let mut filter = create(&address, "f", &one_shard_size());
    assert_eq!(filter.insert(&7000), Ok(true));
    assert_eq!((filter.unconfirmed(), filter.uncertain()), (0, 0));
    let keys: Vec<u64> = (0..1000).collect();
    let mut other = filter.new_client();
    cluster.nodes[1].signal("STOP");
    cluster.nodes[0].execute::<()>("CLIENT KILL TYPE replica");
    let before = cluster.nodes[0].calls("bitfield");
    let mut new = vec![false; keys.len()];
    let claimed = thread::scope(|scope| {
        let claimed = scope.spawn(|| filter.insert_batch(&keys, &mut new));
        wait_until("the claims arrive", || cluster.nodes[0].calls("bitfield") == before + 1000);
        cluster.nodes[0].kill();
        cluster.nodes[1].signal("CONT");
        cluster.nodes[1].await_answer();
        cluster.nodes[1].execute::<()>("CLUSTER FAILOVER TAKEOVER");
        // It has no replica yet.
        wait_until("the claims are answered", || {
            cluster.nodes[1].unblock_clients();
            claimed.is_finished()
        });
        claimed.join().unwrap()
    });
    assert_eq!(claimed, Ok(1000));
    assert!(new.iter().all(|new| *new));
    // The new primary had none of the keys.
    assert_eq!((filter.unconfirmed(), filter.uncertain()), (1000, 0));
    assert_eq!(other.insert_batch(&keys, &mut new), Ok(0));
}

/// A server that loads its data or runs a script refuses `WAIT` as it refuses the claims.
fn restarting_servers_with_replicas_are_waited_for() {
    let mut server = Server::start("--appendonly yes --appendfsync always");
    let mut filter = create(&server.address().wait_for_replicas(1, Duration::from_millis(100)), "f", &one_shard_size());
    assert_eq!(filter.insert(&7000u64), Ok(true));
    // So much data that loading it takes a while.
    let load = "for i = 1, 50000 do redis.call('SET', 'x' .. i, string.rep('x', 100)) end";
    redis::cmd("EVAL").arg(load).arg(0).exec(&mut server.client().unwrap()).unwrap();
    server.kill();
    server.relaunch();
    let keys: Vec<u64> = (0..200).collect();
    assert_eq!(filter.insert_batch(&keys, &mut [false; 200]), Ok(200));
    assert_eq!((filter.unconfirmed(), filter.uncertain()), (201, 0));
}
