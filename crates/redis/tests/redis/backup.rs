//! Copies of a filter that are made while clients use it, and put back.

use crate::harness::tests;
use crate::servers::{Cluster, Server, address};
use crate::{Tally, create, expect_error, one_shard_size, three_shard_size};
use bloomline::BloomFilter;
use bloomline_redis::{RedisBloomFilter, RedisServer};
use std::sync::atomic::Ordering;

tests! {
    backups_hold_all_keys_answered_before,
    backups_are_merged_while_clients_run,
    unfinished_copies_expire,
}

const KEYS: u64 = 20_000;

/// Copies a filter while clients insert keys. Returns the keys that were answered before, and the copy.
fn back_up(server: &RedisServer) -> (Vec<u64>, BloomFilter) {
    let filter = create(server, "f", &three_shard_size());
    let tally = Tally::new(KEYS);
    let mut copied = None;
    tally.insert_concurrently(&filter, 4, 100, || {
        tally.await_progress(4, 20);
        let answered = |key: &u64| tally.claims[*key as usize].load(Ordering::Relaxed) > 0;
        let before: Vec<u64> = (0..tally.keys()).filter(answered).collect();
        let copy = filter.new_client().download().unwrap();
        // The other clients insert meanwhile.
        copied = Some((before, copy, tally.progress.load(Ordering::Relaxed)));
    });
    tally.assert_once_each();
    let (before, copy, progress) = copied.unwrap();
    assert!(before.len() as u64 >= KEYS / 5 && progress < 4 * KEYS, "{} {progress}", before.len());
    (before, copy)
}

/// Asserts that after a restore all of these keys are reported as seen.
fn assert_restored(server: &RedisServer, before: &[u64], copy: &BloomFilter) {
    let size = BloomFilter::builder().memory(copy.memory_bytes()).probes(copy.probes()).seed(copy.seed());
    create(server, "f", &size).upload(copy).unwrap();
    let mut filter = RedisBloomFilter::open(server, "f").unwrap();
    let mut new = vec![true; before.len()];
    assert_eq!(filter.insert_batch(before, &mut new), Ok(0));
    // The other keys may be claimed again.
    let all: Vec<u64> = (0..KEYS).collect();
    let mut new = vec![true; all.len()];
    assert!(filter.insert_batch(&all, &mut new).unwrap() <= all.len() - before.len());
}

fn backups_hold_all_keys_answered_before() {
    let cluster = Cluster::start(3, false);
    let (before, copy) = back_up(&cluster.address());
    cluster.nodes.iter().for_each(|node| node.execute::<()>("FLUSHALL"));
    assert_restored(&cluster.address(), &before, &copy);
}

/// The clients use a recreated filter, and see the keys of the backup.
fn backups_are_merged_while_clients_run() {
    let server = Server::start("");
    let before: Vec<u64> = (0..10_000).collect();
    let mut copy = three_shard_size().build().unwrap();
    copy.insert_batch(&before, &mut vec![false; before.len()]);
    let filter = create(&server.address(), "f", &three_shard_size());
    let tally = Tally::new(15_000);
    tally.insert_concurrently(&filter, 2, 100, || {
        tally.await_progress(2, 5);
        filter.new_client().upload(&copy).unwrap();
    });
    let claims = tally.claims.iter().map(|claims| claims.load(Ordering::Relaxed));
    assert_eq!((claims.max(), tally.uncertain()), (Some(1), 0));
    assert_eq!(filter.new_client().contains_batch(&before, &mut vec![false; before.len()]), Ok(before.len()));
}

/// A client dies after its first command: the server denies the next ones.
fn unfinished_copies_expire() {
    let server = Server::start("");
    server.execute::<()>("ACL SETUSER dies on >secret ~* +@all -setrange");
    let address = address(&format!("redis://dies:secret@127.0.0.1:{}", server.port));
    let mut copy = one_shard_size().build().unwrap();
    copy.insert(&1u64);
    expect_error(create(&address, "f", &one_shard_size()).upload(&copy), &["SETRANGE"]);
    let copies: Vec<String> = server.execute("KEYS *upload*");
    assert_eq!(copies.len(), 1, "{copies:?}");
    assert!((1..=600).contains(&server.execute::<i64>(&format!("TTL {}", copies[0]))));
}
