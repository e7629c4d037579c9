//! Runs the commands of the documentation pages, and checks their links.

use crate::common::pages::{run, scripts};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned()
}

/// True if a script needs a server (see `tests/redis`), or Parquet in a build without it.
fn has_unmet_requirements(script: &str) -> bool {
    script.contains("--redis") || script.contains("parquet") && cfg!(not(feature = "parquet"))
}

#[test]
fn commands_of_the_pages_run() {
    let mut count = 0;
    for page in ["README.md", "docs/COMMAND.md"] {
        for script in scripts(&fs::read_to_string(root().join(page)).unwrap()) {
            // Installation is not tested here.
            let script: Vec<&str> = script.lines().filter(|line| !line.starts_with("cargo ")).collect();
            let script = script.join("\n");
            if !has_unmet_requirements(&script) {
                run(&script);
                count += 1;
            }
        }
    }
    assert!(count >= 9, "{count}");
}

/// Returns the pages for users.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let crates = ["cli", "datafusion", "keys", "redis", "tables", "text"].map(|name| format!("crates/{name}"));
    let others = ["", "docs", "python", "tests/data", "crates/cli/tests/data/like"].map(str::to_owned);
    for folder in crates.into_iter().chain(others) {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages
}

/// Returns the anchors of headings, as GitHub generates them.
fn anchors(page: &str) -> HashSet<String> {
    let mut is_code = false;
    let headings = page.lines().filter(|line| {
        is_code ^= line.starts_with("```");
        !is_code && line.starts_with('#')
    });
    let anchor = |heading: &str| {
        let kept = heading.trim_start_matches('#').trim().to_lowercase();
        kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// Returns the targets of the links of a page.
fn links(page: &str) -> Vec<String> {
    let inline = page.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let named = page.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ").map(|(_, link)| link));
    inline.chain(named).map(|link| link.trim().to_owned()).collect()
}

#[test]
fn links_of_the_pages_resolve() {
    const HOME: [&str; 2] =
        ["https://github.com/bloomline/bloomline/blob/main/", "https://github.com/bloomline/bloomline/tree/main/"];
    let mut count = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let here = HOME.iter().find_map(|home| link.strip_prefix(home)).map(|path| root().join(path));
            if here.is_none() && (link.contains("://") || link.starts_with("mailto:")) {
                continue;
            }
            let target = here.unwrap_or_else(|| page.parent().unwrap().join(&link));
            let target = target.to_str().unwrap().to_owned();
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let file = if link.starts_with('#') { page.clone() } else { PathBuf::from(file) };
            assert!(file.exists(), "{}: {link}", page.display());
            if !anchor.is_empty() && file.extension().is_some_and(|extension| extension == "md") {
                let anchors = anchors(&fs::read_to_string(&file).unwrap());
                assert!(anchors.contains(anchor), "{}: {link} is none of {anchors:?}", page.display());
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}
