//! The kinds of keys that clients record on a server.

use crate::harness::tests;
use crate::servers::{Cluster, Server, address};
use crate::{create, errors, expect_error, one_shard_size, tasks};
use bloomline_redis::{AsyncRedisBloomFilter, RedisBloomFilter, RedisFilterError, Stages};

tests! {
    clients_record_kinds_together,
    kinds_are_removed_with_their_filter,
    kinds_need_rights_of_their_own,
}

fn clients_record_kinds_together() {
    let cluster = Cluster::start(2, false);
    let mut filter = create(&cluster.address(), "f", &one_shard_size());
    assert_eq!((filter.key_kinds(), filter.add_key_kinds(&[])), (Ok(Some(Vec::new())), Ok(())));
    let runtime = tasks::runtime();
    let mut other = runtime.block_on(AsyncRedisBloomFilter::open(&cluster.address(), "f")).unwrap();
    filter.add_key_kinds(&[4]).unwrap();
    runtime.block_on(other.add_key_kinds(&[1, 0])).unwrap();
    filter.add_key_kinds(&[4]).unwrap();
    assert_eq!(filter.key_kinds(), Ok(Some(vec![5, 0])));
    assert_eq!(runtime.block_on(other.key_kinds()), Ok(Some(vec![5, 0])));
    let (_, node) = cluster.slot_and_primary("cbf:{f:kinds}");
    let mut members: Vec<String> = cluster.nodes[node].execute("SMEMBERS cbf:{f:kinds}");
    members.sort();
    assert_eq!(members, ["0:0", "0:2", "1:16"]);
    assert_eq!(cluster.nodes[node].execute::<i64>("TTL cbf:{f:kinds}"), -1);
    // Recorded kinds do not change how keys are inserted.
    assert_eq!((filter.insert("a"), filter.check()), (Ok(true), Ok(())));
    assert_eq!(runtime.block_on(other.insert("a")), Ok(false));
}

fn kinds_are_removed_with_their_filter() {
    let server = Server::start("");
    let address = server.address();
    let stages = || RedisBloomFilter::create_stages(&address, "f", &Stages::growing(0.01)).unwrap();
    let fixed = || create(&address, "f", &one_shard_size());
    for open in [&fixed as &dyn Fn() -> RedisBloomFilter, &stages] {
        for lost in [None, Some("meta"), Some("stages")] {
            let mut filter = open();
            filter.add_key_kinds(&[4]).unwrap();
            filter.insert("a").unwrap();
            assert_eq!(RedisBloomFilter::list(&address), Ok(vec!["f".to_owned()]));
            match lost {
                None => filter.delete().unwrap(),
                Some(part) => {
                    server.execute::<u64>(&format!("DEL cbf:{{f:{part}}}"));
                    assert_eq!(RedisBloomFilter::remove(&address, "f"), Ok(true));
                }
            }
            assert_eq!(server.execute::<Vec<String>>("KEYS *"), [""; 0], "{lost:?}");
        }
    }
    // If nothing else is left of a filter, it can be found and removed.
    server.execute::<u64>("SADD cbf:{f:kinds} 0:2");
    assert_eq!(RedisBloomFilter::list(&address), Ok(vec!["f".to_owned()]));
    assert_eq!((RedisBloomFilter::remove(&address, "f"), server.execute("DBSIZE")), (Ok(true), 0));
    server.execute::<()>("SET cbf:{f:kinds} x");
    let error = expect_error(create(&address, "f", &one_shard_size()).key_kinds(), &["choose another name"]);
    assert_eq!(error, RedisFilterError::NotBloomline { key: "cbf:{f:kinds}".to_owned() });
}

fn kinds_need_rights_of_their_own() {
    let server = Server::start("");
    let (rights, more) = (errors::rights(), "+sadd +smembers");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SERVER.md")).unwrap();
    assert!(page.contains(&format!("`{more}`")), "the page names them");
    server.execute::<()>(&format!("ACL SETUSER crawler on >secret {rights}"));
    server.execute::<()>(&format!("ACL SETUSER typed on >secret {rights} {more}"));
    let open = |user: &str| {
        let address = address(&format!("redis://{user}:secret@127.0.0.1:{}", server.port));
        create(&address, "f", &one_shard_size())
    };
    let mut crawler = open("crawler");
    assert_eq!((crawler.add_key_kinds(&[4]), crawler.key_kinds()), (Ok(()), Ok(None)));
    let mut typed = open("typed");
    assert_eq!(typed.key_kinds(), Ok(Some(Vec::new())));
    assert_eq!((typed.add_key_kinds(&[4]), typed.key_kinds()), (Ok(()), Ok(Some(vec![4]))));
    assert_eq!((crawler.key_kinds(), crawler.insert("a")), (Ok(None), Ok(true)));
    crawler.delete().unwrap();
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
}
