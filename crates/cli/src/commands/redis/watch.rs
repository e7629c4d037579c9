//! `bloomline redis watch`: prints the state of a filter and its servers at intervals.

use crate::commands::redis::{output, required_address, stats_cells};
use crate::options::WatchOptions;
use crate::system::error::Error;
use crate::terminal::figures::{readable_count, readable_size};
use bloomline_redis::{RedisBloomFilter, RedisFilterError, RedisFilterStats, RedisServerStats};
use serde_json::json;
use std::thread;
use std::time::Instant;

/// The state of a filter and its servers at a point in time.
struct FilterSnapshot {
    taken_at: Instant,
    stats: RedisFilterStats,
    servers: Vec<RedisServerStats>,
}

/// The changes since the previous snapshot, and the sums over all servers.
struct WatchFigures {
    keys_per_second: Option<f64>,
    claims_per_second: Option<f64>,
    used_bytes: u64,
    /// `None` if a server has no limit.
    max_bytes: Option<u64>,
    /// The number of evicted keys of any kind.
    evicted_keys: u64,
}

impl FilterSnapshot {
    fn new(filter: &mut RedisBloomFilter) -> Result<Self, RedisFilterError> {
        Ok(Self { taken_at: Instant::now(), stats: filter.stats()?, servers: filter.servers() })
    }

    /// Returns the sum of a figure over all servers.
    fn sum(&self, figure: fn(&RedisServerStats) -> u64) -> u64 {
        self.servers.iter().map(figure).sum()
    }

    fn figures(&self, previous: Option<&Self>) -> WatchFigures {
        let mut figures = WatchFigures {
            keys_per_second: None,
            claims_per_second: None,
            used_bytes: self.sum(|server| server.used_bytes),
            max_bytes: self.servers.iter().map(|server| server.max_bytes).sum(),
            evicted_keys: self.sum(|server| server.evicted_keys),
        };
        if let Some(previous) = previous {
            let seconds = (self.taken_at - previous.taken_at).as_secs_f64();
            let keys_per_second = (self.stats.estimated_keys - previous.stats.estimated_keys) / seconds;
            if keys_per_second.is_finite() {
                figures.keys_per_second = Some(keys_per_second);
            }
            if !self.servers.is_empty() {
                // The counters of a restarted server start at 0.
                let claims = self.sum(|server| server.claims).saturating_sub(previous.sum(|server| server.claims));
                figures.claims_per_second = Some(claims as f64 / seconds);
            }
        }
        figures
    }

    fn json(&self, figures: &WatchFigures) -> String {
        let RedisFilterStats { fill_ratio, estimated_keys, expected_fpr, stored_bytes, .. } = self.stats;
        let has_servers = !self.servers.is_empty();
        let nodes = self.servers.iter().map(|server| {
            let RedisServerStats { node, used_bytes, max_bytes, evicted_keys, claims, replicas, .. } = server;
            json!({
                "node": node, "used_bytes": used_bytes, "max_bytes": max_bytes, "evicted_keys": evicted_keys,
                "claims": claims, "replicas": replicas,
            })
        });
        json!({
            "fill": fill_ratio, "estimated_keys": estimated_keys, "fpr": expected_fpr, "stored_bytes": stored_bytes,
            "keys_per_second": figures.keys_per_second, "claims_per_second": figures.claims_per_second,
            "used_bytes": has_servers.then_some(figures.used_bytes),
            "max_bytes": if has_servers { figures.max_bytes } else { None },
            "evicted_keys": has_servers.then_some(figures.evicted_keys), "nodes": nodes.collect::<Vec<_>>(),
        })
        .to_string()
    }

    fn text(&self, figures: &WatchFigures) -> String {
        let [fill, keys, rate] = stats_cells(&self.stats);
        let cell = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), readable_count);
        let keys_per_second = cell(figures.keys_per_second);
        let stored = readable_size(self.stats.stored_bytes as usize);
        let claims_per_second = cell(figures.claims_per_second);
        let mut memory = "-".to_owned();
        let mut evicted = "-".to_owned();
        if !self.servers.is_empty() {
            memory = readable_size(figures.used_bytes as usize);
            if let Some(max_bytes) = figures.max_bytes {
                memory = format!("{memory} of {}", readable_size(max_bytes as usize));
            }
            evicted = figures.evicted_keys.to_string();
        }
        aligned(&[&fill, &keys, &keys_per_second, &rate, &stored, &claims_per_second, &memory, &evicted])
    }
}

/// Formats cells in columns of typical widths.
fn aligned(cells: &[&str; 8]) -> String {
    let widths = [8, 14, 8, 9, 11, 9, 26, 8];
    cells.iter().zip(widths).map(|(cell, width)| format!("{cell:>width$}")).collect::<Vec<_>>().join(" ")
}

/// Prints a line at each interval, until a signal ends the process.
pub fn watch(options: &WatchOptions) -> Result<(), Error> {
    let output = output(&options.shared.server)?;
    let address = required_address(&options.shared)?;
    let mut filter = address.open()?;
    if !options.json {
        let header = ["fill", "keys", "keys/s", "rate now", "stored", "claims/s", "memory of servers", "evicted"];
        output.write_line(aligned(&header))?;
    }
    let mut previous = None;
    loop {
        let snapshot = FilterSnapshot::new(&mut filter)?;
        let figures = snapshot.figures(previous.as_ref());
        output.write_line(if options.json { snapshot.json(&figures) } else { snapshot.text(&figures) })?;
        previous = Some(snapshot);
        thread::sleep(options.every);
    }
}
