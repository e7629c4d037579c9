//! The paired harness: the sides take turns, and a table quotes medians and ratios.

pub use super::harness::turns::{Round, Side, timed};
use super::harness::turns::{median, take_turns};

impl<'a> Side<'a> {
    /// A round passes all of `keys` and is timed as a whole.
    pub fn passing<K>(name: impl Into<String>, keys: &'a [K], pass: impl FnMut(&[K]) -> usize + 'a) -> Self {
        Self::prepared(name, keys, || (), pass)
    }

    /// The same after a preparation that is not timed.
    pub fn prepared<K>(
        name: impl Into<String>,
        keys: &'a [K],
        mut prepare: impl FnMut() + 'a,
        mut pass: impl FnMut(&[K]) -> usize + 'a,
    ) -> Self {
        Self::new(name, keys.len(), move |_| {
            prepare();
            timed(|| pass(keys))
        })
    }
}

/// Plays the rounds in turns and prints a line for each side: the median of its ns a key, the median ratio to the first
/// side, and the share of keys that its last round answered with `true`. Where all keys are absent, that share is the
/// measured false-positive rate.
pub fn duel(title: &str, mut sides: Vec<Side>) {
    let rounds = if super::smoke() { 1 } else { 7 };
    // The first round of these warms up.
    take_turns(&mut sides, rounds + 1, |side| _ = side.play());
    println!("{title}");
    let times = |side: &Side| side.times[side.times.len() - rounds as usize..].to_vec();
    for side in &sides {
        let ratios = times(side).iter().zip(times(&sides[0])).map(|(own, first)| own / first).collect();
        let (time, ratio) = (median(times(side)), median(ratios));
        println!("  {:44} {time:8.2} ns   x{ratio:<6.2} {:7.3} % true", side.name, side.trues * 100.0);
    }
}
