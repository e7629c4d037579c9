//! The figures of docs/calculator.html: the size and the rates of each layout, in JSON for the page's script.
//!
//! The page is compiled for 32 bits, but covers filters as large as 64 bits can address. So it computes with sizes, and builds
//! no filter.

#[cfg(calculator)]
mod exports;
mod spread;

use super::classic::Classic;
use super::counting::Counting;
use super::register::Register;
use super::split_block::SplitBlock;
use super::two_block::TwoBlocks;
use crate::builder::geometry::SizeRequest;
use crate::error::BuildError;
use crate::kernel::block::BLOCK_BYTES;
use crate::layout::access::{Access, Exclusive, Shared};
use crate::layout::descriptor::LayoutDescriptor;
use crate::layout::ops::LayoutOps;
use crate::layout::params::Geometry;
use crate::layout::sectorized::Sectorized;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The blocks that a process of 64 bits has room for, wherever this is computed.
const MAX_BLOCKS_64: u64 = (i64::MAX as u64 - (4 << 20)) / BLOCK_BYTES as u64;

/// Rates are given from half the planned keys to four times as many, in steps of an eighth of a power of two.
const STEPS: core::ops::RangeInclusive<i32> = -8..=16;

/// A layout: its constants and its mathematics.
struct LayoutFigures {
    layout: &'static LayoutDescriptor,
    filter: &'static str,
    /// The cache lines that a query reads, at most.
    lines: u64,
    geometry: fn(SizeRequest, u64) -> Result<Geometry, BuildError>,
    rate: fn(Geometry, u64) -> f64,
    capacity: fn(Geometry, f64) -> u64,
}

impl LayoutFigures {
    const fn new<L: LayoutOps<A>, A: Access>(lines: u64) -> Self {
        Self {
            layout: L::DESCRIPTOR,
            filter: L::NAME,
            lines,
            geometry: SizeRequest::geometry::<L>,
            rate: L::expected_fpr,
            capacity: L::capacity,
        }
    }
}

const SECTORIZED: LayoutFigures = LayoutFigures::new::<Sectorized, Exclusive>(1);
/// The layouts to compare. A query of the classic filter reads at most a line for each probe.
const VARIANTS: [LayoutFigures; 5] = [
    LayoutFigures::new::<TwoBlocks, Exclusive>(2),
    LayoutFigures::new::<SplitBlock, Exclusive>(1),
    LayoutFigures::new::<Classic, Exclusive>(u64::MAX),
    LayoutFigures::new::<Register, Shared>(1),
    LayoutFigures::new::<Counting, Exclusive>(2),
];

/// Returns the figures for two of keys, rate and memory in bytes, or their error, as JSON.
fn text(keys: Option<u64>, rate: Option<f64>, memory: Option<u64>) -> String {
    figures(SizeRequest { keys, rate, memory, probes: None })
        .unwrap_or_else(|error| format!("{{\"error\":{:?}}}", error.to_string()))
}

fn figures(request: SizeRequest) -> Result<String, BuildError> {
    let geometry = (SECTORIZED.geometry)(request, MAX_BLOCKS_64)?;
    // A value that was not given is taken from this filter.
    let given = request.rate.unwrap_or(1.0);
    let keys = request.keys.unwrap_or_else(|| (SECTORIZED.capacity)(geometry, given));
    let rate = request.rate.unwrap_or_else(|| (SECTORIZED.rate)(geometry, keys));
    let memory = geometry.bytes(SECTORIZED.layout);
    let request = ResolvedRequest { keys, rate, memory };
    let mut layouts = [SECTORIZED.json(request, geometry)].to_vec();
    layouts.extend(VARIANTS.iter().map(|layout| {
        let by_rate = SizeRequest { keys: Some(keys), rate: Some(rate), memory: None, probes: None };
        match (layout.geometry)(by_rate, MAX_BLOCKS_64) {
            Ok(geometry) => layout.json(request, geometry),
            Err(error) => layout.refusal(error),
        }
    }));
    let loads: Vec<String> = loads().map(|load| load.to_string()).collect();
    Ok(format!(
        "{{\"keys\":{keys},\"rate\":{rate:e},\"memory\":{memory},\"spread\":{:e},\"loads\":[{}],\"layouts\":[{}]}}",
        spread::relative_deviation(geometry, keys),
        loads.join(","),
        layouts.join(",")
    ))
}

fn loads() -> impl Iterator<Item = f64> {
    STEPS.map(|step| libm::exp2(f64::from(step) / 8.0))
}

/// The three values. Any one follows from the others.
#[derive(Clone, Copy)]
struct ResolvedRequest {
    keys: u64,
    rate: f64,
    memory: u64,
}

impl LayoutFigures {
    fn refusal(&self, error: BuildError) -> String {
        format!("{{\"name\":{:?},\"filter\":{:?},\"error\":{:?}}}", self.layout.name, self.filter, error.to_string())
    }

    /// Returns the figures of a size that keeps the rate, and this layout's figures for the same memory, as JSON.
    fn json(&self, request: ResolvedRequest, geometry: Geometry) -> String {
        let ResolvedRequest { keys, rate, memory } = request;
        let rates: Vec<String> =
            loads().map(|load| format!("{:e}", (self.rate)(geometry, (keys as f64 * load) as u64))).collect();
        let in_memory = |keys, rate| {
            (self.geometry)(SizeRequest { keys, rate, memory: Some(memory), probes: None }, MAX_BLOCKS_64).ok()
        };
        let json_or_null = |text: Option<String>| text.unwrap_or("null".to_string());
        let rate_in_memory = in_memory(Some(keys), None).map(|geometry| format!("{:e}", (self.rate)(geometry, keys)));
        let keys_in_memory = in_memory(None, Some(rate)).map(|geometry| (self.capacity)(geometry, rate).to_string());
        format!(
            "{{\"name\":{:?},\"filter\":{:?},\"probes\":{},\"lines\":{},\"memory\":{},\"rates\":[{}],\
             \"rate_in_memory\":{},\"keys_in_memory\":{}}}",
            self.layout.name,
            self.filter,
            geometry.probes,
            self.lines.min(geometry.probes.into()).min(self.layout.blocks(geometry.units)),
            geometry.bytes(self.layout),
            rates.join(","),
            json_or_null(rate_in_memory),
            json_or_null(keys_in_memory)
        )
    }
}

#[cfg(all(test, feature = "std"))]
#[path = "../../../tests/browser/mod.rs"]
mod browser;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BloomFilter;
    use crate::variants::{
        ClassicBloomFilter, CountingBloomFilter, RegisterBloomFilter, SplitBlockBloomFilter, TwoBlockBloomFilter,
    };
    use serde_json::Value;

    fn parsed(keys: Option<u64>, rate: Option<f64>, memory: Option<u64>) -> Value {
        serde_json::from_str(&text(keys, rate, memory)).unwrap()
    }

    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_maximum_of_blocks_is_that_of_a_process() {
        assert_eq!(MAX_BLOCKS_64, crate::layout::storage::MAX_BLOCKS as u64);
    }

    /// The parser may be off by the last bit.
    fn same(figure: &Value, rate: f64) -> bool {
        (figure.as_f64().unwrap() / rate - 1.0).abs() < 1e-15
    }

    /// The figures of a layout are equal to the figures of the filters that are built.
    macro_rules! check {
        ($figures:ident, $index:literal, $Filter:ident) => {{
            let (keys, rate) = ($figures["keys"].as_u64().unwrap(), $figures["rate"].as_f64().unwrap());
            let memory = $figures["memory"].as_u64().unwrap() as usize;
            let layout = &$figures["layouts"][$index];
            let by_rate = $Filter::new(keys, rate).unwrap();
            assert_eq!(layout["filter"], stringify!($Filter));
            assert_eq!(layout["memory"], by_rate.memory_bytes(), "{layout}");
            assert_eq!(layout["probes"], by_rate.probes(), "{layout}");
            for (step, load) in [(0, 0.5), (8, 1.0), (16, 2.0), (24, 4.0)] {
                assert_eq!($figures["loads"][step], load);
                assert!(same(&layout["rates"][step], by_rate.expected_fpr((keys as f64 * load) as u64)), "{layout}");
            }
            let in_memory: $Filter = $Filter::builder().memory(memory).expected_keys(keys).build().unwrap();
            assert!(same(&layout["rate_in_memory"], in_memory.expected_fpr(keys)), "{layout}");
            let of_rate: $Filter = $Filter::builder().memory(memory).false_positive_rate(rate).build().unwrap();
            assert_eq!(layout["keys_in_memory"], of_rate.capacity(rate), "{layout}");
        }};
    }

    #[test]
    fn figures_match_the_filters() {
        for (keys, rate) in [(1000, 0.1), (12_345, 0.01), (1_000_000, 1e-4), (300_000, 1e-7)] {
            let figures = parsed(Some(keys), Some(rate), None);
            check!(figures, 0, BloomFilter);
            check!(figures, 1, TwoBlockBloomFilter);
            check!(figures, 2, SplitBlockBloomFilter);
            check!(figures, 3, ClassicBloomFilter);
            check!(figures, 4, RegisterBloomFilter);
            check!(figures, 5, CountingBloomFilter);
        }
    }

    #[test]
    fn any_two_of_keys_rate_and_memory_give_the_third() {
        let by_rate = parsed(Some(1_000_000), Some(0.01), None);
        let memory = by_rate["memory"].as_u64().unwrap();
        let by_keys = parsed(Some(1_000_000), None, Some(memory));
        assert_eq!(by_keys["rate"], by_rate["layouts"][0]["rates"][8]);
        assert_eq!(by_keys["layouts"][0]["rates"], by_rate["layouts"][0]["rates"]);
        let by_memory = parsed(None, Some(0.01), Some(memory));
        let plan = BloomFilter::builder().memory(memory as usize).false_positive_rate(0.01).plan().unwrap();
        assert_eq!(by_memory["keys"], plan.capacity(0.01));
    }

    #[test]
    fn figures_may_exceed_this_machine() {
        // 41 bits for each of 10^13 keys, which no process of 32 bits has room for.
        let figures = parsed(Some(10_000_000_000_000), Some(1e-6), None);
        assert!(figures["memory"].as_u64().unwrap() > 50_000_000_000_000);
        // Parquet's layout ends at 2^32 blocks of 32 bytes.
        let split_block = &figures["layouts"][2];
        assert!(split_block["error"].as_str().unwrap().contains("above the limit of 137438953472"), "{split_block}");
        assert!(figures["layouts"][3]["memory"].as_u64() < figures["memory"].as_u64());
    }

    #[test]
    fn errors_are_reported() {
        let error = |keys, rate, memory| parsed(keys, rate, memory)["error"].as_str().unwrap().to_owned();
        assert_eq!(error(Some(1), Some(1.5), None), BuildError::Rate { value: 1.5 }.to_string());
        assert_eq!(error(Some(0), Some(0.5), None), BuildError::NoKeys.to_string());
        assert_eq!(error(Some(1), None, None), BuildError::Underspecified.to_string());
        assert_eq!(error(Some(1), None, Some(63)), BuildError::Memory { bytes: 63 }.to_string());
    }

    /// All of the page's text, byte for byte, so that it is built again after any change of the model.
    #[test]
    #[cfg(feature = "std")]
    #[ignore = "starts a browser, and reads a page that the package leaves out"]
    fn the_page_contains_this_model() {
        let mut choices = Vec::new();
        for keys in [1, 2, 63, 12_345, 1_000_000, 40_000_000_000, 1 << 53] {
            choices.extend([0.999, 0.1, 0.01, 1e-4, 1e-7, 1e-15].map(|rate| (Some(keys), Some(rate), None)));
            choices.extend([0, 64, 1000, 1 << 20, 1 << 40, 1 << 53].map(|memory| (Some(keys), None, Some(memory))));
        }
        for rate in [0.999, 0.01, 1e-6, 1e-15, 1e-19] {
            choices.extend([64, 100_000, 1 << 40].map(|memory| (None, Some(rate), Some(memory))));
        }
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/calculator.html")).unwrap();
        let (page, end) = page.rsplit_once("</body>").unwrap();
        let asks = "document.querySelector('pre').textContent = JSON.stringify(choices.map(choice => {
            const address = model.figures(...choice.map(number => number ?? NaN));
            return new TextDecoder().decode(new Uint8Array(model.memory.buffer, address, model.length()));
        }))";
        let list = serde_json::to_string(&choices).unwrap();
        let page = format!("{page}<pre></pre><script>const choices = {list};\n{asks}</script></body>{end}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        std::fs::write(&path, page).unwrap();
        let Some(reported) = super::browser::report(&path) else { return };
        for (i, choice) in choices.into_iter().enumerate() {
            let ours = text(choice.0, choice.1, choice.2);
            assert!(
                reported[i] == *ours,
                "docs/calculator.html is older than the model: run docs/calculator/build.sh\n{choice:?}\n{ours}\n{}",
                reported[i]
            );
        }
    }
}
