//! Near duplicates: what a document costs, by its length; and what becomes of the documents of a file.
//!
//! ```text
//! cargo bench -p bloomline-benches --bench near                               ns a document, MB/s
//! cargo bench -p bloomline-benches --bench near -- FILE SIMILARITY PERMUTATIONS RATE
//! ```
//!
//! With a file, which has a document on each line, it prints the ns a document for hashing and for claiming, the bytes of the
//! filter, the bands and the rows, and on the next line 1 for each document that is a near duplicate and 0 for each other.
//! `benches/near.py` compares that with datasketch.

use bloomline::{BloomFilter, KeyHasher};
use bloomline_benches::smoke;
use bloomline_benches::turns::best;
use bloomline_text::near::{self, Near, Scratch};

const ROUNDS: u32 = 7;

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
    let near = Near::new(0.8).unwrap();
    println!("{:>7} {:>12} {:>8}", "words", "ns/document", "MB/s");
    let lengths: &[usize] = if smoke() { &[5] } else { &[5, 50, 500, 5000, 50_000] };
    for &words in lengths {
        let documents: Vec<String> = (0..100_000 / words + 1)
            .map(|document| (0..words).map(|i| format!("{} ", (document * words + i) * 7919 % 65_537)).collect())
            .collect();
        let bytes: usize = documents.iter().map(String::len).sum();
        let (time, _) = best(ROUNDS, || hash(near, &documents));
        println!("{words:>7} {:>12.0} {:>8.0}", time / documents.len() as f64, bytes as f64 / time * 1000.0);
    }
}

fn decide(near: Near, file: &str, rate: f64) {
    let text = std::fs::read_to_string(file).unwrap();
    let documents: Vec<_> = text.lines().collect();
    let (hashed, bands) = best(ROUNDS, || hash(near, &documents));
    let keys = documents.len() * near.bands();
    let (claimed, (bytes, decisions)) = best(ROUNDS, || {
        let mut seen = BloomFilter::new(keys as u64, near.band_fpr(rate)).expect("a filter for the documents");
        let new = |bands| near::claim(&mut seen, bands).expect("it never fails");
        let found = bands.chunks(near.bands()).map(new).map(|new| if new { '0' } else { '1' }).collect::<String>();
        (seen.memory_bytes(), found)
    });
    let [hashed, claimed] = [hashed, claimed].map(|time| time / documents.len() as f64);
    println!("{hashed:.0} {claimed:.0} {bytes} {} {}", near.bands(), near.rows());
    println!("{decisions}");
}

/// The bands of all documents, with the seed of a filter that is not told one.
fn hash<T: AsRef<[u8]>>(near: Near, documents: &[T]) -> Vec<u64> {
    let (hasher, mut scratch) = (KeyHasher::new(0), Scratch::default());
    let mut bands = Vec::with_capacity(documents.len() * near.bands());
    for text in documents {
        near.hash(&hasher, text.as_ref(), &mut scratch, &mut bands);
    }
    bands
}
