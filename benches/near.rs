//! Near duplicates: what a document costs, by its length; and what becomes of the documents of a file.
//!
//! ```text
//! cargo bench --bench near --features text                               ns a document, MB/s
//! cargo bench --bench near --features text -- FILE SIMILARITY PERMUTATIONS RATE
//! ```
//!
//! With a file, which has a document on each line, it prints the ns a document for hashing and for claiming, the bytes of the
//! filter, the bands and the rows, and on the next line 1 for each document that is a near duplicate and 0 for each other.
//! `benches/near.py` compares that with datasketch.

use bloomline::text::near::{self, Near, Scratch};
use bloomline::{BloomFilter, KeyHasher};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    match &arguments[..] {
        [] => by_length(),
        [file, similarity, permutations, rate] => {
            let near = Near::with_permutations(similarity.parse().unwrap(), permutations.parse().unwrap()).unwrap();
            decide(near, file, rate.parse().unwrap());
        }
        _ => panic!("give a file, a similarity, permutations and a rate for each document, or nothing"),
    }
}

fn by_length() {
    println!("{:>7} {:>12} {:>8}", "words", "ns/document", "MB/s");
    for words in [5, 50, 500, 5000, 50_000] {
        let documents: Vec<String> = (0..100_000 / words + 1)
            .map(|document| (0..words).map(|i| format!("{} ", (document * words + i) * 7919 % 65_537)).collect())
            .collect();
        let bytes: usize = documents.iter().map(String::len).sum();
        let best = best(Near::new(0.8).unwrap(), &documents);
        println!("{words:>7} {:>12.0} {:>8.0}", best / documents.len() as f64, bytes as f64 / best * 1000.0);
    }
}

/// The ns of the best of seven rounds.
fn best(near: Near, documents: &[String]) -> f64 {
    let hasher = KeyHasher::new(0);
    let (mut scratch, mut bands) = (Scratch::default(), Vec::new());
    let rounds = (0..7).map(|_| {
        let start = Instant::now();
        for text in documents {
            bands.clear();
            near.hash(&hasher, text.as_bytes(), &mut scratch, &mut bands);
            black_box(&bands);
        }
        start.elapsed()
    });
    rounds.min().unwrap().as_nanos() as f64
}

fn decide(near: Near, file: &str, rate: f64) {
    let text = std::fs::read_to_string(file).unwrap();
    let documents = text.lines().count();
    let mut seen =
        BloomFilter::new((documents * near.bands()) as u64, near.band_fpr(rate)).expect("a filter for the documents");
    let (mut scratch, mut bands) = (Scratch::default(), Vec::new());
    let start = Instant::now();
    for line in text.lines() {
        near.hash(seen.hasher(), line.as_bytes(), &mut scratch, &mut bands);
    }
    let hashed = start.elapsed();
    let start = Instant::now();
    let decisions: Vec<_> =
        bands.chunks(near.bands()).map(|bands| !near::claim(&mut seen, bands).expect("it never fails")).collect();
    let claimed = start.elapsed();
    let [hashed, claimed] = [hashed, claimed].map(|time| time.as_nanos() / documents as u128);
    println!("{hashed} {claimed} {} {} {}", seen.memory_bytes(), near.bands(), near.rows());
    println!("{}", decisions.iter().map(|found| if *found { '1' } else { '0' }).collect::<String>());
}
