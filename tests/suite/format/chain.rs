//! Chains of filters: scalable and rotating ones.

use super::*;
use bloomline::{RotatingBloomFilter, ScalableBloomFilter};

/// Writes the file's actual length into its header.
fn with_length(bytes: Vec<u8>) -> Vec<u8> {
    with_header(&bytes, 0, 40, &(bytes.len() as u64).to_le_bytes())
}

#[test]
fn both_implementations_continue_merged_and_shrunk_scalable_filters() {
    let filled = |first: u64, keys: &[Vec<u8>]| {
        let builder = ScalableBloomFilter::builder().expected_keys(first).false_positive_rate(0.01).seed(5);
        let mut filter = builder.build().unwrap();
        keys.iter().for_each(|key| _ = filter.insert(&key[..]).unwrap());
        filter
    };
    let (after, queried) = (keys(90..300), keys(0..700));
    let mut merged = filled(10, &keys(0..70));
    merged.union(&filled(3, &keys(50..90))).unwrap();
    let mut shrunk = filled(100_000, &keys(0..90));
    shrunk.shrink_to_fit().unwrap();
    for mut filter in [merged, shrunk] {
        let bytes = bytes_of!(filter);
        after.iter().for_each(|key| _ = filter.insert(&key[..]).unwrap());
        let contains: Vec<bool> = queried.iter().map(|key| filter.contains(&key[..])).collect();
        header::check_answers(&bytes_of!(filter), &queried, &contains);
        let jobs = [
            json!({ "read": hex(&bytes) }),
            json!({ "read": hex(&bytes), "insert": hex_of_all(&after), "contains": hex_of_all(&queried) }),
        ];
        let Some(replies) = ask(&jobs) else { return };
        assert!(file(&replies[0]) == bytes);
        assert!(file(&replies[1]) == bytes_of!(filter));
        assert_eq!(replies[1]["contains"], json!(contains));
    }
}

#[test]
fn both_implementations_write_the_same_scalable_filters() {
    for (first, rate, seed, count) in [(1, 0.5, 0, 0), (1, 0.01, 1, 100), (10, 0.01, 2, 70), (100, 1e-6, 3, 500)] {
        let builder = ScalableBloomFilter::builder().expected_keys(first).false_positive_rate(rate).seed(seed);
        let mut filter = if seed == 2 { builder.key_name("url") } else { builder }.build().unwrap();
        let (before, after) = (keys(0..count), keys(count..2 * count));
        let mut new: Vec<bool> = before.iter().map(|key| filter.insert(&key[..]).unwrap()).collect();
        let bytes = bytes_of!(filter);
        new.extend(after.iter().map(|key| filter.insert(&key[..]).unwrap()));
        let queried = keys(0..700);
        let contains: Vec<bool> = queried.iter().map(|key| filter.contains(&key[..])).collect();
        header::check_answers(&bytes_of!(filter), &queried, &contains);
        let all = [&before[..], &after].concat();
        let name = Some(filter.key_name()).filter(|name| !name.is_empty());
        let made = json!({ "first": first, "rate": rate, "seed": seed, "key_name": name });
        let jobs = [
            json!({ "read": hex(&bytes) }),
            json!({ "read": hex(&bytes), "insert": hex_of_all(&after), "contains": hex_of_all(&queried) }),
            json!({ "scalable": made, "insert": hex_of_all(&all), "contains": hex_of_all(&queried) }),
        ];
        let Some(replies) = ask(&jobs) else { return };
        assert!(file(&replies[0]) == bytes);
        for reply in &replies[1..] {
            assert!(file(reply) == bytes_of!(filter), "{made}");
            assert!(ScalableBloomFilter::read_from(&file(reply)[..]).unwrap() == filter);
            assert_eq!(reply["contains"], json!(contains), "{made}");
        }
        assert_eq!(replies[1]["new"], json!(new[count as usize..]));
        assert_eq!(replies[2]["new"], json!(new));
    }
}

#[test]
fn both_implementations_refuse_damaged_scalable_files() {
    let load = |path: &Path| ScalableBloomFilter::load(path).map(|_| ()).unwrap_err();
    let scalable = fs::read(data("series.bloom")).unwrap();
    refused_by_both(&damaged(&scalable), load);

    let other_seed = {
        let mut other =
            ScalableBloomFilter::builder().expected_keys(10).false_positive_rate(0.01).seed(2).build().unwrap();
        (0..50u64).for_each(|key| _ = other.insert(&key).unwrap());
        bytes_of!(other)
    };
    // The first stage has a block, and fields in 64 bytes.
    let second = 64 + 64 + 64 + 64 + 16;
    let cases = [
        ("newer version", with_header(&scalable, 0, 8, &[3])),
        ("older version", with_header(&scalable, 0, 8, &[1])),
        ("bad stages", with_header(&scalable, 0, 12, &[0])),
        ("bad stages", with_header(&scalable, 0, 12, &[65])),
        ("bad rate", with_header(&scalable, 0, 16, &1.0f64.to_le_bytes())),
        ("bad first", with_header(&scalable, 0, 24, &[0])),
        ("bad last", with_header(&scalable, 0, 32, &[0])),
        ("bad last", with_header(&scalable, 0, 32, &[41])),
        ("truncated", with_header(&scalable, 0, 40, &(scalable.len() as u64 + 1).to_le_bytes())),
        ("bad reserved", with_header(&scalable, 0, 48, &[1])),
        ("bad merged", with_header(&scalable, 0, 53, &[1])),
        ("bad stages", with_header(&scalable, 0, 52, &[3])),
        // The first stage takes as many keys as the third, which has room for more.
        ("bad last", with_header(&scalable, 0, 52, &[2])),
        ("bad blocks", with_header(&scalable, 0, 16, &1e-9f64.to_le_bytes())),
        ("bad seed", [&scalable[..second], &other_seed[second..]].concat()),
        ("another kind of file", with_length([&scalable[..64], &scalable].concat())),
    ];
    let (names, files): (Vec<&str>, Vec<_>) = cases.into_iter().unzip();
    assert_eq!(refused_by_both(&files, load), names);
}

#[test]
fn both_implementations_write_the_same_rotating_filters() {
    for (window, generations, rotates, count) in [(1, 2, true, 100), (100, 3, true, 300), (60, 5, false, 300)] {
        let builder = RotatingBloomFilter::builder().expected_keys(window).false_positive_rate(0.01).seed(window);
        let builder = builder.generations(generations).rotate_when_full(rotates).key_name("url");
        let filter = builder.build().unwrap();
        let empty = bytes_of!(filter);
        let (inserted, queried) = (keys(0..count), keys(0..700));
        let new: Vec<bool> = inserted.iter().map(|key| filter.insert(&key[..])).collect();
        let contains: Vec<bool> = queried.iter().map(|key| filter.contains(&key[..])).collect();
        let bytes = bytes_of!(filter);
        header::check_answers(&bytes, &queried, &contains);
        let made = json!({
            "window": window, "rate": 0.01, "generations": generations, "seed": window, "key_name": "url",
            "rotate_when_full": rotates,
        });
        let jobs = [
            json!({ "read": hex(&bytes), "contains": hex_of_all(&queried) }),
            json!({ "read": hex(&empty), "insert": hex_of_all(&inserted), "contains": hex_of_all(&queried) }),
            json!({ "rotating": made, "insert": hex_of_all(&inserted), "contains": hex_of_all(&queried) }),
        ];
        let Some(replies) = ask(&jobs) else { return };
        for reply in &replies {
            assert!(file(reply) == bytes, "{window}");
            assert_eq!((&reply["contains"], &reply["key_name"]), (&json!(contains), &json!("url")), "{window}");
        }
        assert!(replies[1..].iter().all(|reply| reply["new"] == json!(new)), "{window}");
    }
}

#[test]
fn both_implementations_refuse_damaged_rotating_files() {
    let load = |path: &Path| RotatingBloomFilter::load(path).map(|_| ()).unwrap_err();
    let builder = |window: u64, seed: u64| {
        RotatingBloomFilter::builder().expected_keys(window).false_positive_rate(0.1).seed(seed)
    };
    let filled = |window: u64, seed: u64| {
        let filter = builder(window, seed).build().unwrap();
        keys(0..30).iter().for_each(|key| _ = filter.insert(&key[..]));
        bytes_of!(filter)
    };
    let rotating = filled(20, 1);
    let named = bytes_of!(builder(20, 1).key_name("url").build().unwrap());
    refused_by_both(&damaged(&rotating), load);

    // The second of the two generations.
    let second = |bytes: &[u8]| bytes[64 + (bytes.len() - 64) / 2..].to_vec();
    let first = &rotating[..rotating.len() - second(&rotating).len()];
    let cases = [
        ("newer version", with_header(&rotating, 0, 8, &[3])),
        ("older version", with_header(&rotating, 0, 8, &[1])),
        ("bad generations", with_header(&rotating, 0, 12, &[1])),
        ("bad generations", with_header(&rotating, 0, 12, &[65])),
        ("bad rate", with_header(&rotating, 0, 16, &1.0f64.to_le_bytes())),
        ("bad window", with_header(&rotating, 0, 24, &[0])),
        ("bad last", with_header(&rotating, 0, 32, &[21])),
        ("truncated", with_header(&rotating, 0, 40, &(rotating.len() as u64 + 1).to_le_bytes())),
        ("bad when full", with_header(&rotating, 0, 48, &[2])),
        ("bad reserved", with_header(&rotating, 0, 52, &[1])),
        ("bad blocks", with_header(&rotating, 0, 16, &1e-9f64.to_le_bytes())),
        ("bad blocks", with_length([first, &second(&filled(2000, 1))].concat())),
        ("bad seed", [first, &second(&filled(20, 2))].concat()),
        ("bad fields", with_length([first, &second(&named)].concat())),
        ("another kind of file", with_length([&rotating[..64], &rotating].concat())),
    ];
    let (names, files): (Vec<&str>, Vec<_>) = cases.into_iter().unzip();
    assert_eq!(refused_by_both(&files, load), names);
}
