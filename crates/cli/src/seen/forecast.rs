//! A forecast of the number of distinct keys, from a sample of the inputs and from the keys so far.

/// The keys after which the first two points of the curve are taken.
const FIRST_POINT: u64 = 1 << 10;

/// The number of distinct keys among those that were offered, as a curve, and its end.
pub struct Forecast {
    /// The keys of all inputs together, if they can be estimated.
    lines: Option<u64>,
    /// The number of distinct keys by a sample of the inputs, if it shows that.
    sampled: Option<u64>,
    /// Keys that were offered.
    offered: u64,
    /// Two earlier points of the curve, at an eighth to a half of the keys so far: offered keys, and distinct ones.
    points: [(u64, u64); 2],
}

impl Forecast {
    pub fn new(lines: Option<u64>, sampled: Option<u64>) -> Self {
        Self { lines, sampled, offered: 0, points: [(0, 0); 2] }
    }

    /// True if the number of keys was estimated.
    pub fn has_end(&self) -> bool {
        self.lines.is_some()
    }

    /// Returns the estimated number of keys.
    pub fn lines(&self) -> Option<u64> {
        self.lines
    }

    /// Adds keys, after which `distinct` ones are known.
    pub fn add(&mut self, offered: usize, distinct: u64) {
        self.offered += offered as u64;
        if self.offered >= 2 * self.points[1].0.max(FIRST_POINT / 2) {
            self.points = [self.points[1], (self.offered, distinct)];
        }
    }

    /// Returns the distinct keys at the end by the sample.
    pub fn sampled(&self) -> Option<u64> {
        self.sampled
    }

    /// Returns the number of distinct keys at the end, if there were `distinct` so far. `None` if the end is unknown, or was reached.
    ///
    /// By Heaps' law, the number grows like a power of the number of offered keys. Without repeats the power is 1.
    pub fn total(&self, distinct: u64) -> Option<u64> {
        let lines = self.lines.filter(|&lines| lines > self.offered)?;
        if self.offered == 0 {
            return Some(lines);
        }
        let (offered, known) = self.points[0];
        let power = match (offered, known) {
            (0, _) | (_, 0) => 1.0,
            _ => (distinct as f64 / known as f64).ln() / (self.offered as f64 / offered as f64).ln(),
        };
        let growth = (lines as f64 / self.offered as f64).powf(power.clamp(0.0, 1.0));
        Some(((distinct as f64 * growth) as u64).min(distinct.saturating_add(lines - self.offered)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the forecast after a part of `lines` keys. The first n keys have `distinct(n)` distinct ones.
    fn after(part: u64, lines: u64, distinct: impl Fn(u64) -> u64) -> f64 {
        let mut forecast = Forecast::new(Some(lines), None);
        for i in 1..=part / 1000 {
            forecast.add(1000, distinct(1000 * i));
        }
        forecast.total(distinct(part)).unwrap() as f64
    }

    #[test]
    fn curves_are_continued() {
        let lines = 10_000_000;
        for part in [10_000, 200_000, 3_000_000] {
            // All differ, every second one differs, and only the first 1000 do.
            assert_eq!(after(part, lines, |n| n), lines as f64);
            assert!((after(part, lines, |n| n / 2) / 5e6 - 1.0).abs() < 1e-6);
            assert_eq!(after(part, lines, |n| n.min(1000)), 1000.0);
            // Words of a text: each number of lines has its root of different ones, times a factor.
            let root = |n: u64| (30.0 * (n as f64).sqrt()) as u64;
            assert!((after(part, lines, root) / root(lines) as f64 - 1.0).abs() < 0.01);
        }
    }

    #[test]
    fn there_is_none_without_an_end() {
        let mut forecast = Forecast::new(Some(1000), None);
        forecast.add(1000, 10);
        assert_eq!(forecast.total(10), None);
        assert_eq!(Forecast::new(None, None).total(0), None);
    }
}
