//! The figures of the pages that can be checked: counts, sizes and versions.

use crate::common::Bench;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned()
}

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

#[test]
fn example_of_the_readme_prints_what_the_readme_shows() {
    let readme = page("README.md");
    let example = readme.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let (command, shown) = example.split_once('\n').unwrap();
    let command = command.strip_prefix("$ bloomline ").unwrap().replace("tests/data/", "");
    let (line, file) = command.split_once(" > ").unwrap();
    let bench = Bench::new(&[("homepages.txt", &fs::read(root().join("tests/data/homepages.txt")).unwrap())]);
    let output = bench.command(line).stdout(File::create(bench.path(file)).unwrap()).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    let lines: BTreeSet<&str> = printed.lines().collect();
    let shown: Vec<&str> = shown.lines().filter(|line| *line != "…").collect();
    assert!(shown.len() >= 4);
    for line in shown {
        assert!(lines.contains(line), "{line} is not in:\n{printed}");
    }
    assert_eq!(bench.read("distinct.txt").split(|&byte| byte == b'\n').count(), 30_087 + 1);
}

/// Memory by the model: the pages and their words, keys, rate, layout, and the figure to so many decimals.
#[test]
fn memory_is_as_the_pages_say() {
    let bits = |n: &str, p: &str, layout: usize| {
        let plan = Bench::new(&[]).json(&format!("plan --json -n {n} -p {p}"));
        (plan[layout]["bits_per_key"].as_f64().unwrap(), plan[layout]["memory_bytes"].as_f64().unwrap() / 1e6)
    };
    let (words4, classic) = (0, 1);
    let readme = "A key takes 10 bits at 1 %, and 41 bits at 1e-6, where a classic filter takes 29 bits.";
    let guide = "10.1 bits per key for 1 %, where the classic filter takes 9.6";
    let megabytes = [("README.md", "1.27 MB"), ("docs/GUIDE.md", "a guess: 12.6 MB")];
    for (name, words) in [("README.md", readme), ("docs/GUIDE.md", guide)].into_iter().chain(megabytes) {
        let text = page(name).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(words), "{name} says something else than {words:?}: change the figures here, too");
    }
    let rounded = |figure: f64, decimals: usize| format!("{figure:.decimals$}");
    assert_eq!(rounded(bits("10M", "0.01", words4).0, 0), "10");
    assert_eq!(rounded(bits("10M", "0.01", words4).0, 1), "10.1");
    assert_eq!(rounded(bits("10M", "0.01", classic).0, 1), "9.6");
    assert_eq!(rounded(bits("10M", "1e-6", words4).0, 0), "41");
    assert_eq!(rounded(bits("10M", "1e-6", classic).0, 0), "29");
    assert_eq!(rounded(bits("1000000", "0.01", words4).1, 2), "1.27");
    assert_eq!(rounded(bits("10M", "0.01", words4).1, 1), "12.6");
}

#[test]
fn versions_are_those_of_the_manifests() {
    let value = |manifest: &str, name: &str| {
        let text = page(manifest);
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {manifest}"));
        line.split('"').nth(1).unwrap().to_owned()
    };
    let rust = value("Cargo.toml", "rust-version");
    for name in ["README.md", "docs/COMPATIBILITY.md"] {
        assert!(page(name).contains(&rust), "{name} does not name Rust {rust}");
    }
    let rust = value("crates/datafusion/Cargo.toml", "rust-version");
    assert!(page("docs/DEVELOPMENT.md").contains(&format!("Rust {rust}")), "DEVELOPMENT does not name Rust {rust}");
    let python = value("python/pyproject.toml", "requires-python").replace(">=", "");
    for name in ["docs/COMPATIBILITY.md", "docs/PYTHON.md"] {
        assert!(page(name).contains(&format!("CPython {python}")), "{name} does not name CPython {python}");
    }
    let version = value("Cargo.toml", "version");
    assert!(page("CHANGELOG.md").contains(&format!("\n## {version}")), "CHANGELOG has no section {version}");
}

/// Returns the files with unsafe code in a folder and below it.
fn unsafe_files(folder: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let path = format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap());
        if root().join(&path).is_dir() {
            if !path.ends_with("/target") {
                unsafe_files(&path, found);
            }
        } else if path.ends_with(".rs") {
            let text = page(&path);
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let is_unsafe =
                |line: &str| ["unsafe {", "unsafe fn", "unsafe impl", "unsafe("].iter().any(|of| line.contains(of));
            if code.into_iter().any(is_unsafe) {
                found.insert(path);
            }
        }
    }
}

#[test]
fn files_with_unsafe_code_are_those_that_the_page_names() {
    let mut found = BTreeSet::new();
    for folder in [
        "src",
        "crates/cli/src",
        "crates/keys/src",
        "crates/redis/src",
        "crates/tables/src",
        "crates/text/src",
        "python/src",
    ] {
        unsafe_files(folder, &mut found);
    }
    found.retain(|file| !file.starts_with("src/kernel/") && file != "src/layout/storage.rs");
    let development = page("docs/DEVELOPMENT.md");
    for file in &found {
        let name = file.rsplit('/').next().unwrap();
        let folder = &file[..file.len() - name.len()];
        assert!(
            development.contains(&format!("`{file}`"))
                || development
                    .lines()
                    .any(|line| line.contains(&format!("`{folder}`")) && line.contains(&format!("`{name}`"))),
            "docs/DEVELOPMENT.md does not name {file}"
        );
    }
    assert!(found.len() > 5, "{found:?}");
}

#[test]
fn readme_is_short() {
    let words = page("README.md").split_whitespace().count();
    assert!(words <= 700, "README.md has {words} words");
}
