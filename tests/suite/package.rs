//! The package for the registry has all files that its sources include.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Removes `..` with the folder before it.
fn normalized(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
        match component {
            Component::ParentDir => assert!(path.pop()),
            _ => path.push(component),
        }
        path
    })
}

#[test]
fn included_files_are_in_the_package() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--list", "--allow-dirty", "--offline", "--package", "bloomline"]).current_dir(root);
    let list = String::from_utf8(cargo.output().unwrap().stdout).unwrap();
    let packaged: BTreeSet<&Path> = list.lines().map(Path::new).collect();
    let mut included = 0;
    for source in packaged.iter().filter(|path| path.starts_with("src")) {
        let text = std::fs::read_to_string(root.join(source)).unwrap();
        for line in text
            .lines()
            .filter(|line| ["include_str!(", "include_bytes!(", "#[path"].iter().any(|part| line.contains(part)))
        {
            let path = normalized(&source.parent().unwrap().join(line.split('"').nth(1).unwrap()));
            assert!(
                packaged.contains(&*path),
                "{} includes {}, which the package lacks",
                source.display(),
                path.display()
            );
            included += 1;
        }
    }
    assert!(included >= 5, "{included}");
}
