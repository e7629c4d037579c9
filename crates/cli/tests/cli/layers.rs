//! The structure of the sources: each folder imports only folders below it, so the reader does not depend on its consumers.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the source files in a folder and below it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Returns the folders of the sources from the lowest to the highest, as the overview in `lib.rs` lists them.
fn layers(source: &Path) -> Vec<String> {
    let overview = fs::read_to_string(source.join("lib.rs")).unwrap();
    let rows = overview.lines().filter_map(|line| line.strip_prefix("//! ")?.split_once("/ "));
    rows.map(|(folder, _)| folder.to_owned()).collect()
}

/// Returns the folders of the crate that a file names in its imports and paths.
fn imported(text: &str) -> impl Iterator<Item = &str> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    text.split("crate::").skip(1).map(move |rest| rest.split(|c| !is_name(c)).next().unwrap_or_default())
}

#[test]
fn imports_run_downwards() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let layers = layers(&source);
    let mut folders: Vec<String> = Vec::new();
    for entry in fs::read_dir(&source).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            folders.push(name);
        } else {
            assert!(["lib.rs", "main.rs"].contains(&&*name), "{name} stands in no folder");
        }
    }
    folders.sort();
    let mut listed = layers.clone();
    listed.sort();
    assert_eq!(folders, listed, "the overview in lib.rs lists other folders");
    let layer = |name: &str| layers.iter().position(|folder| folder == name);
    // Neither the reader nor the engine depends on a step.
    assert!(layer("read") < layer("run") && layer("run") < layer("steps"), "{layers:?}");
    let mut upwards = Vec::new();
    for (own, folder) in layers.iter().enumerate() {
        for path in sources(&source.join(folder)) {
            let text = fs::read_to_string(&path).unwrap();
            let higher = imported(&text).filter(|name| layer(name).is_some_and(|other| other > own));
            upwards.extend(higher.map(|name| format!("{} imports {name}", path.display())));
        }
    }
    assert!(upwards.is_empty(), "{}", upwards.join("\n"));
}
