//! Paired timings against the peers: the sides take turns in one run, so that a noisy machine is noisy for all, and the
//! table quotes medians and ratios. docs/BENCHMARKS.md is made with it.
//!
//! ```text
//! cargo bench --bench duel                 all sizes (about five minutes, 17 GiB of memory)
//! cargo bench --bench duel -- 256K 16M     some sizes (a minute)
//! ```
//!
//! All filters have the same memory, 12 bits a key, k = 8, and the load they are planned for.

mod common;

use common::filters::held;
use common::paired::duel;
use common::rivals::{Rivals, atomic_inserts};
use common::*;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    for (name, bytes) in sizes(&named.join(" ")) {
        let rivals = Rivals::new(bytes);
        for (percent, kind) in HITS {
            let hashes = probe_keys(ROUND_KEYS, held(bytes), percent);
            duel(&format!("{name}, query, {kind}"), rivals.queries(&hashes));
        }
        duel(&format!("{name}, insert, fresh keys"), rivals.inserts(0));
        duel(&format!("{name}, insert, half of the keys seen"), Rivals::new(bytes).inserts(50));
        duel(&format!("{name}, atomic insert, fresh keys, one thread"), atomic_inserts(bytes));
    }
}
