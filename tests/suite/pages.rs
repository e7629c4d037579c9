//! The rendered pages of the filter types: the methods of each type, their order, and why other types lack them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The types of the library's own layout, one letter each, and those of the module `variants`.
const TYPES: [(char, &str); 11] = [
    ('b', "struct.BloomFilter"),
    ('a', "struct.AtomicBloomFilter"),
    ('s', "struct.ScalableBloomFilter"),
    ('t', "struct.AtomicScalableBloomFilter"),
    ('r', "struct.RotatingBloomFilter"),
    ('C', "variants/struct.ClassicBloomFilter"),
    ('A', "variants/struct.AtomicClassicBloomFilter"),
    ('T', "variants/struct.TwoBlockBloomFilter"),
    ('R', "variants/struct.RegisterBloomFilter"),
    ('P', "variants/struct.SplitBlockBloomFilter"),
    ('N', "variants/struct.CountingBloomFilter"),
];

/// Methods, the types that have them, and why the others do not.
const TABLE: &str = "
new builder                                                | bastrCATRPN |
insert insert_hash insert_hashes                           | bastrCATRPN |
insert_batch                                               | bastrCATR.N | Parquet hashes byte strings in its own way, and no Keys
par_insert                                                 | bastr.A.R.. | only words4 is divided into ranges that threads write alone; an atomic type is loaded by all cores
contains contains_hash contains_hashes prefetch_hash       | bastrCATRPN |
contains_batch par_contains prune_bitmap                   | bastrCATR.N | as insert_batch
memory_bytes expected_keys false_positive_rate             | bastrCATRPN |
current_fpr fill_ratio estimated_keys key_name             | bastrCATRPN |
kernel populate clear                                      | bastrCATRPN |
seed hasher                                                | bastrCATR.N | Parquet has no seed
probes expected_fpr capacity                               | ba...CATRPN | each part of several has its own, and keeps the rate at any number of keys
union                                                      | bas..CATRPN | two windows have no common order, and a set that threads grow has no moment for it
intersect block_count                                      | ba......... | of words4 alone: others count their sizes in other units
shrink_to_fit                                              | b.s........ | others see no bits move, or have layouts that do not fold
fold fold_to block_words set_block_words                   | b.......... | of words4 with one writer: the bits of a key do not depend on the size, and nobody else sees them move
save load write_to write_to_slice file_bytes read_from     | bastrCATRPN |
key_kinds add_key_kinds                                    | bastrCATRPN |
map                                                        | b.......... | only its blocks are aligned in a file
stages                                                     | ..s........ | only a filter that grows has them; other threads may add to those of a shared one
keys estimated_fpr                                         | ..st....... | only a filter that grows counts its keys
rotate rotate_if_older_than rotations                      | ....r...... | only a window forgets
with_bits bits                                             | .....C..... | a size that is no whole number of blocks
with_bitset_bytes from_bitset to_bitset hash               | .........P. | Parquet's own form
remove count_upper_bound                                   | ..........N | only counters can be counted down
";

/// The page's own methods, in their order: methods of traits and of `Deref` come after them.
fn methods(page: &str) -> Vec<&str> {
    let own = page.split("id=\"deref-methods").next().unwrap().split("id=\"trait-implementations\"").next().unwrap();
    let ids = own.split("<section id=\"method.").skip(1);
    ids.map(|rest| rest.split('"').next().unwrap()).collect()
}

fn pages() -> BTreeMap<char, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = root.join("target/pages");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["doc", "--no-deps", "--all-features", "--package", "bloomline", "--target-dir"]).arg(&target);
    assert!(cargo.current_dir(root).status().unwrap().success());
    let read = |page: &str| std::fs::read_to_string(target.join(format!("doc/bloomline/{page}.html"))).unwrap();
    TYPES.iter().map(|&(letter, page)| (letter, read(page))).collect()
}

#[test]
#[ignore = "builds the documentation"]
fn every_type_has_the_methods_of_the_table() {
    let pages = pages();
    let mut wanted: BTreeMap<char, BTreeSet<&str>> = BTreeMap::new();
    for line in TABLE.lines().filter(|line| !line.is_empty()) {
        let [methods, types, reason] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(types.contains('.'), !reason.trim().is_empty(), "a reason where a type lacks them: {line}");
        for letter in types.trim().chars().filter(|letter| *letter != '.') {
            wanted.entry(letter).or_default().extend(methods.split_whitespace());
        }
    }
    for (letter, page) in &pages {
        let found = methods(page);
        assert_eq!(found.iter().copied().collect::<BTreeSet<_>>(), wanted[letter], "{letter}");
        // The methods that readers need first come first.
        assert_eq!(found[..2], ["new", "builder"], "{letter}");
        let position = |method: &str| found.iter().position(|found| *found == method).unwrap();
        assert!(
            position("insert") < position("contains") && position("contains") < position("memory_bytes"),
            "{letter}"
        );
        assert!(position("clear") < position("save") && position("save") < position("read_from"), "{letter}");
        for private in ["LayoutOps", "Access", "Exclusive", "RawFilter", "Persist", "Sealed"] {
            assert!(!page.contains(private), "{letter}: the page names {private}");
        }
    }
}
