//! The share of distinct lines, from windows of the inputs.

use bloomline::KeyHasher;

/// The whole lines of windows.
pub struct LineSample {
    hasher: KeyHasher,
    /// The bytes of all windows.
    pub bytes: u64,
    /// The hashes of the lines of each window, each once in its window.
    hashes: Vec<u64>,
    /// The lines of all windows.
    lines: u64,
}

impl LineSample {
    pub fn new() -> Self {
        Self { hasher: KeyHasher::new(0), bytes: 0, hashes: Vec::new(), lines: 0 }
    }

    /// Adds the whole lines of the next window.
    pub fn add<'a>(&mut self, lines: impl Iterator<Item = &'a [u8]>) {
        let mut window: Vec<u64> = lines.map(|line| self.hasher.bytes(line)).collect();
        self.lines += window.len() as u64;
        window.sort_unstable();
        window.dedup();
        self.hashes.extend(window);
    }

    /// Returns an estimate of the share of distinct lines among all lines of the inputs, which have `all_bytes` bytes. Returns `None`
    /// without lines.
    ///
    /// A window counts each line once, because repeats within a window are rarer or more frequent than others. The lines in one window
    /// and in two give a lower bound, in expectation, of the number of distinct lines: A. Chao and C.-W. Lin, "Nonparametric Lower
    /// Bounds for Species Richness and Shared Species Richness under Sampling without Replacement", Biometrics 68(3), 2012.
    pub fn distinct_share(mut self, all_bytes: u64) -> Option<f64> {
        self.hashes.sort_unstable();
        let (mut once, mut twice, mut distinct) = (0.0, 0.0_f64, 0.0);
        for equal in self.hashes.chunk_by(|a, b| a == b) {
            distinct += 1.0;
            once += f64::from(u8::from(equal.len() == 1));
            twice += f64::from(u8::from(equal.len() == 2));
        }
        if self.lines == 0 {
            return None;
        }
        let sampled = (self.bytes as f64 / all_bytes.max(1) as f64).min(1.0);
        // A standard deviation fewer, so that chance alone does not make the share too low.
        let repeats = (twice - twice.sqrt()).max(0.0);
        let unseen = match sampled {
            1.0 => 0.0,
            _ if once == 0.0 => 0.0,
            _ => once * once / (2.0 * repeats + sampled / (1.0 - sampled) * once),
        };
        let all_lines = self.lines as f64 / sampled;
        Some(((distinct + unseen) / all_lines).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share in 200 windows of 50 lines each, evenly spread over lines of ten bytes.
    fn share(lines: &[u64]) -> f64 {
        let mut sample = LineSample::new();
        for i in 0..200 {
            let start = i * (lines.len() - 50) / 199;
            let window: Vec<_> = lines[start..start + 50].iter().map(|line| format!("{line:09}")).collect();
            sample.bytes += 500;
            sample.add(window.iter().map(String::as_bytes));
        }
        sample.distinct_share(10 * lines.len() as u64).unwrap()
    }

    #[test]
    fn shares_are_estimated() {
        let lines = 1_000_000;
        let random = |range: u64| -> Vec<u64> {
            let mut state = 1_u64;
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state >> 33
            };
            (0..lines).map(|_| next() % range).collect()
        };
        assert!((share(&(0..lines).collect::<Vec<_>>()) - 1.0).abs() < 1e-9);
        // Next to each other, and far from each other.
        assert!((share(&(0..lines).map(|i| i / 5).collect::<Vec<_>>()) - 0.2).abs() < 0.02);
        assert!((0.001..0.0011).contains(&share(&random(1000))));
        // Of so many random lines, this share is distinct. Lines that occur once and lines that occur three times look like fewer lines
        // that occur twice, so the share is low by up to a fifth. The sample has some 450 and 50 repeats. Four standard deviations are
        // 19 and 57 %.
        for (range, distinct, error) in [(100_000, 0.1, 0.19), (1_000_000, 0.632, 0.57)] {
            let share = share(&random(range)) / distinct;
            assert!((0.8 * (1.0 - error)..1.0 + error).contains(&share), "{range}: {share}");
        }
    }
}
