//! The four plots.

use super::chart::{Axis, Panel, Series, draw, legend};
use super::kinds::KINDS;
use super::paint::{Medium, Stroke};
use super::result::{Comparison, OnThreads, Row};
use super::text::size;

/// A plot.
pub struct Plot {
    /// The file's name.
    pub name: &'static str,
    pub title: &'static str,
    panels: Vec<Panel>,
    /// The caption, which describes the plot.
    pub caption: String,
}

impl Plot {
    pub fn svg(&self, medium: Medium) -> String {
        draw(self.title, &self.panels, medium)
    }
}

/// Draws the legend of all plots.
pub fn legend_of_all(comparison: &Comparison) -> String {
    let series = |name: &str| Series {
        name: comparison.label(name),
        stroke: stroke(name),
        line: Vec::new(),
        markers: Vec::new(),
    };
    let series: Vec<_> = comparison.contenders.iter().map(|entry| series(&entry.name)).collect();
    legend(&series.iter().collect::<Vec<_>>(), Medium::Page)
}

/// All four.
pub fn all(comparison: &Comparison) -> [Plot; 4] {
    [speed(comparison), rate(comparison), space(comparison), threads(comparison)]
}

/// The ticks of a rate, by their base-10 logarithms.
const RATES: [(f64, &str); 7] =
    [(0.0, "100 %"), (-1.0, "10 %"), (-2.0, "1 %"), (-3.0, "0.1 %"), (-4.0, "1e-4"), (-5.0, "1e-5"), (-6.0, "1e-6")];

fn speed(comparison: &Comparison) -> Plot {
    let rows = &comparison.rows;
    let panel = |title, time: fn(&Row) -> f64| {
        let x = sizes(rows.iter().map(|row| row.size_bytes));
        let caches =
            comparison.machine.caches.iter().map(|cache| ((cache.bytes as f64).log2(), format!("L{}", cache.level)));
        let series = |name: &str| {
            let rows_of_contender = rows.iter().filter(|row| row.contender == name);
            let points: Vec<_> =
                rows_of_contender.map(|row| ((row.size_bytes as f64).log2(), time(row).log10())).collect();
            Series { name: comparison.label(name), stroke: stroke(name), line: points.clone(), markers: points }
        };
        Panel {
            title,
            y: decimals(rows.iter().map(time)),
            marks: caches.filter(|(at, _)| (x.from..x.to).contains(at)).collect(),
            series: comparison.contenders.iter().map(|entry| series(&entry.name)).collect(),
            x,
        }
    };
    let panels = vec![
        panel("query, half hits: ns a key", |row| row.query_50.median),
        panel("insert: ns a key", |row| row.insert.median),
    ];
    Plot {
        name: "speed",
        title: "Speed by size",
        panels,
        caption: format!(
            "Lower is faster. A filter that fits a cache (L1, L2, L3) is fast in any layout. Beyond the caches, a key costs one \
             cache miss for each line that its bits are in, unless the lines are prefetched. All filters have {} bits a key, \
             or as many as fit where sizes come in steps, and run on one thread. A static filter's insert is its build.",
            comparison.bits_per_key
        ),
    }
}

fn rate(comparison: &Comparison) -> Plot {
    let (min, max) = (4.0, 32.0);
    let is_shown = |(x, y): &(f64, f64)| (min..=max).contains(x) && (-6.0..=0.0).contains(y);
    let series = |name: &str| {
        let models = comparison.models.iter().filter(|model| model.contender == name);
        let line = models.flat_map(|model| &model.points).map(|point| (point.bits_per_key, point.fpr.log10()));
        let requested = comparison.rates.iter().filter(|row| row.contender == name);
        let requested = requested.map(|row| (row.bits_per_key, row.measured_fpr.log10()));
        // The largest size has the most keys, so its rate scatters least.
        let filled = comparison.rows.iter().rfind(|row| row.contender == name);
        let filled = filled.map(|row| (row.bits_per_key, row.measured_fpr.log10()));
        Series {
            name: comparison.label(name),
            stroke: stroke(name),
            line: line.filter(is_shown).collect(),
            markers: requested.chain(filled).filter(is_shown).collect(),
        }
    };
    let panel = Panel {
        title: "false-positive rate",
        x: Axis { label: "bits a key", from: min, to: max, ticks: integer_ticks((4..=32).step_by(4)) },
        y: Axis {
            label: "",
            from: -6.0,
            to: 0.0,
            ticks: RATES.iter().map(|(at, label)| (*at, (*label).to_owned())).collect(),
        },
        marks: Vec::new(),
        series: comparison.contenders.iter().map(|entry| series(&entry.name)).collect(),
    };
    Plot {
        name: "rate",
        title: "False-positive rate by memory",
        panels: vec![panel],
        caption: "Lower is better. Lines are the models of the layouts, each with its best number of probes. Markers are \
         measured, and each should lie on the line of its colour. Grey markers and those in the colour of the text have no line."
            .to_owned(),
    }
}

fn space(comparison: &Comparison) -> Plot {
    const MAX_BITS: f64 = 64.0;
    let series = comparison.models.iter().map(|model| {
        let points = model.space.iter().map(|point| (-point.fpr.log10(), point.bits_per_key));
        let line: Vec<_> = points.filter(|(_, bits)| *bits <= MAX_BITS).collect();
        // One marker for each power of ten.
        let markers = line.iter().copied().filter(|(x, _)| (x - x.round()).abs() < 1e-9).collect();
        Series { name: comparison.label(&model.contender), stroke: stroke(&model.contender), line, markers }
    });
    let panel = Panel {
        title: "bits a key",
        x: Axis {
            label: "false-positive rate wanted",
            from: 0.85,
            to: 6.15,
            ticks: RATES[1..].iter().map(|(at, label)| (-at, (*label).to_owned())).collect(),
        },
        y: Axis { label: "", from: 0.0, to: MAX_BITS, ticks: integer_ticks((8..=64).step_by(8)) },
        marks: Vec::new(),
        series: series.collect(),
    };
    Plot {
        name: "space",
        title: "Memory by rate wanted",
        panels: vec![panel],
        caption: "Lower is smaller. The classic layout needs the least memory. The fewer cache lines a key touches, the more \
         memory a low rate takes, which is the price of speed."
            .to_owned(),
    }
}

fn threads(comparison: &Comparison) -> Plot {
    let largest = comparison.rows.iter().map(|row| row.size_bytes).max().unwrap_or(0);
    // Few enough to tell apart; the tables have all.
    const SHOWN: [&str; 4] = ["BloomFilter batch", "classic batch", "fastbloom", "sbbf-rs"];
    let rows =
        comparison.rows.iter().filter(|row| row.size_bytes == largest && SHOWN.contains(&row.contender.as_str()));
    let queries: Vec<_> = rows.map(|row| (&row.contender, &row.query_threads)).collect();
    let loads = |operation| {
        let loads = comparison.loads.iter().filter(|load| load.size_bytes == largest && load.operation == operation);
        loads.map(|load| (&load.contender, &load.threads)).collect()
    };
    let panel = |title, lines: Vec<(&String, &Vec<OnThreads>)>| {
        let speed = |at: &OnThreads| 1e3 / at.time.median;
        let first = lines.first()?.1;
        let max = first.last().map_or(0.0, |at| (at.threads as f64).log2());
        let ticks = first.iter().map(|at| ((at.threads as f64).log2(), at.threads.to_string())).collect();
        let series = |(name, at): &(&String, &Vec<OnThreads>)| {
            let points: Vec<_> = at.iter().map(|at| ((at.threads as f64).log2(), speed(at).log10())).collect();
            Series { name: comparison.label(name), stroke: stroke(name), line: points.clone(), markers: points }
        };
        Some(Panel {
            title,
            x: Axis { label: "threads", from: -0.15 * max.max(1.0), to: max + 0.15 * max.max(1.0), ticks },
            y: decimals(lines.iter().flat_map(|(_, at)| at.iter().map(speed))),
            marks: Vec::new(),
            series: lines.iter().map(series).collect(),
        })
    };
    let panels = [
        panel("query, half hits: million keys a second", queries),
        panel("atomic insert: million keys a second", loads("atomic insert")),
        panel("bulk load: million keys a second", loads("bulk load")),
    ];
    Plot {
        name: "threads",
        title: "Throughput by threads",
        panels: panels.into_iter().flatten().collect(),
        caption: format!(
            "Higher is faster. Filters have {}. Threads that share nothing but the memory add speed until the memory is busy. A \
             bulk load needs no atomic operations, so it is faster than atomic inserts.",
            size(largest)
        ),
    }
}

/// Returns the stroke of a contender in all plots, grey if this version does not know it.
fn stroke(name: &str) -> Stroke {
    KINDS.iter().find(|kind| kind.name == name).map_or(Stroke { hue: 6, dash: 2 }, |kind| kind.stroke)
}

/// An axis of base-2 logarithms of sizes.
fn sizes(sizes: impl Iterator<Item = usize> + Clone) -> Axis {
    let logarithms = sizes.map(|bytes| (bytes as f64).log2());
    let from = logarithms.clone().fold(f64::INFINITY, f64::min) - 0.5;
    let to = logarithms.fold(0.0, f64::max) + 0.5;
    let step = if to - from > 7.0 { 2 } else { 1 };
    let ticks = (from.ceil() as i32..=to as i32).step_by(step);
    let label = |power: i32| size(1 << power).replace("iB", "").replace(' ', "");
    Axis { label: "size of the filter", from, to, ticks: ticks.map(|p| (f64::from(p), label(p))).collect() }
}

/// An axis of base-10 logarithms, with ticks at 1, 2 and 5 times each power of ten.
fn decimals(figures: impl Iterator<Item = f64> + Clone) -> Axis {
    let from = figures.clone().fold(f64::INFINITY, f64::min).log10() - 0.08;
    let to = figures.fold(0.0, f64::max).log10() + 0.08;
    let ticks = (-3..6).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| digit * 10.0_f64.powi(power)));
    let ticks = ticks.filter(|tick| (from..=to).contains(&tick.log10()));
    Axis { label: "", from, to, ticks: ticks.map(|tick| (tick.log10(), format!("{tick}"))).collect() }
}

fn integer_ticks(ticks: impl Iterator<Item = i32>) -> Vec<(f64, String)> {
    ticks.map(|tick| (f64::from(tick), tick.to_string())).collect()
}
