//! The properties of the machine that affect speed.

use bloomline::Kernel;
use serde::{Deserialize, Serialize};
use std::fs;
use std::thread;

/// The machine as the system describes it. Fewer properties are known without `/proc` and `/sys`.
#[derive(Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    pub arch: String,
    pub os: String,
    pub cores: usize,
    pub memory_bytes: Option<u64>,
    pub features: Vec<String>,
    /// The kernel that the library chose.
    pub kernel: String,
    pub huge_pages: Option<String>,
    pub caches: Vec<Cache>,
}

/// A cache that holds data.
#[derive(Serialize, Deserialize)]
pub struct Cache {
    pub level: u32,
    pub bytes: usize,
}

impl Machine {
    /// The machine that this runs on.
    pub fn detect() -> Self {
        Self {
            cpu: cpu().unwrap_or_else(|| "unknown".to_owned()),
            arch: std::env::consts::ARCH.to_owned(),
            os: std::env::consts::OS.to_owned(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: kilobytes("/proc/meminfo", "MemTotal:"),
            features: features().map(str::to_owned).collect(),
            kernel: Kernel::detect().to_string(),
            huge_pages: huge_pages(),
            caches: caches(),
        }
    }
}

/// The memory that is available.
pub fn available_bytes() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable:")
}

/// The memory of this process that is in RAM. It is counted page by page, because the cheaper counters of the system are
/// off by some pages a core.
pub fn resident_bytes() -> Option<u64> {
    kilobytes("/proc/self/smaps_rollup", "Rss:")
}

fn kilobytes(path: &str, label: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let number = text.lines().find_map(|line| line.strip_prefix(label))?;
    Some(number.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

fn cpu() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn huge_pages() -> Option<String> {
    let modes = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    Some(modes.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn caches() -> Vec<Cache> {
    const FOLDER: &str = "/sys/devices/system/cpu/cpu0/cache";
    let cache = |i: u32| {
        let read = |name| fs::read_to_string(format!("{FOLDER}/index{i}/{name}")).ok();
        let (level, kind, size) = (read("level")?, read("type")?, read("size")?);
        let bytes = size.trim().strip_suffix('K')?.parse::<usize>().ok()? * 1024;
        (kind.trim() != "Instruction").then_some(Cache { level: level.trim().parse().ok()?, bytes })
    };
    (0..16).filter_map(cache).collect()
}

/// The CPU features that filters use.
fn features() -> impl Iterator<Item = &'static str> {
    macro_rules! detected {
        ($detect:ident: $($name:tt)*) => { vec![$(($name, std::arch::$detect!($name))),*] };
    }
    #[cfg(target_arch = "x86_64")]
    let all = detected!(is_x86_feature_detected: "sse4.2" "avx" "avx2" "bmi2" "avx512f" "avx512bw" "avx512dq" "avx512vl" "avx512vbmi" "gfni");
    #[cfg(target_arch = "aarch64")]
    let all = detected!(is_aarch64_feature_detected: "neon" "sve" "sve2" "lse");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let all: Vec<(&'static str, bool)> = Vec::new();
    all.into_iter().filter_map(|(name, is_detected)| is_detected.then_some(name))
}
