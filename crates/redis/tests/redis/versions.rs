//! Clients of different versions on one filter. The older one is built from the history of the repository, once.

use crate::harness::{self, tests};
use crate::servers::Server;
use crate::three_shard_size;
use crate::{Tally, create};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;

tests! {
    #[ignore = "builds an older version"] clients_of_two_versions_claim_each_key_once,
}

/// The first version with the form that filters have on a server: descriptions with `version=2` and `made`, and marks.
const OLDER: &str = "fbc291b";

/// The source that is built there: a client that prints the keys that were reported as new.
const CLIENT: &str = r#"
use bloomline_redis::{RedisBloomFilter, RedisServer};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, name, from, to] = &arguments[..] else { panic!("{arguments:?}") };
    let server = RedisServer::new(url).unwrap();
    let size = bloomline::BloomFilter::builder().memory(40 << 20).probes(12).seed(5);
    let mut filter = RedisBloomFilter::create(&server, name, &size).unwrap();
    let keys: Vec<u64> = (from.parse().unwrap()..to.parse().unwrap()).collect();
    for keys in keys.chunks(500) {
        let mut new = vec![false; keys.len()];
        filter.insert_batch(keys, &mut new).unwrap();
        keys.iter().zip(new).filter(|(_, new)| *new).for_each(|(key, _)| println!("{key}"));
    }
    assert_eq!(filter.uncertain(), 0);
}
"#;

const MANIFEST: &str = r#"
[package]
name = "older"
edition = "2024"

[dependencies]
bloomline = { path = "../source", default-features = false, features = ["std"] }
bloomline-redis = { path = "../source/redis" }

[workspace]

[profile.dev]
debug = false
"#;

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Builds the older version. The test is ignored if the repository has no history.
fn older() -> PathBuf {
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let git = |line: &str| {
        let mut git = Command::new("git");
        git.args(["-C", repository]).args(line.split(' ')).stderr(Stdio::null());
        git
    };
    // A folder above that is another repository does not have it either.
    if !git(&format!("cat-file -e {OLDER}^{{commit}}")).status().is_ok_and(|status| status.success()) {
        harness::ignored("history of the repository");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("older-{OLDER}"));
    let [source, client] = ["source", "client"].map(|name| folder.join(name));
    fs::create_dir_all(&source).unwrap();
    fs::create_dir_all(client.join("src")).unwrap();
    let archive = folder.join("source.tar");
    run(git(&format!("archive {OLDER} -o")).arg(&archive));
    run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&source));
    // The dependencies have the older version's versions. Cargo leaves out those that are not needed here.
    if !client.join("Cargo.lock").exists() {
        fs::copy(source.join("Cargo.lock"), client.join("Cargo.lock")).unwrap();
    }
    fs::write(client.join("Cargo.toml"), MANIFEST).unwrap();
    fs::write(client.join("src/main.rs"), CLIENT).unwrap();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = folder.join("build");
    run(Command::new(cargo).args(["build", "--quiet", "--target-dir"]).arg(&build).current_dir(&client));
    build.join("debug/older")
}

fn clients_of_two_versions_claim_each_key_once() {
    let older = older();
    let server = Server::start("");
    let tally = Tally::new(40_000);
    let inserts = |name: &str, from: u64, to: u64| {
        let mut command = Command::new(&older);
        command.args([&server.url(), name, &from.to_string(), &to.to_string()]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let keys = String::from_utf8(output.stdout).unwrap();
        keys.lines().map(|key| key.parse().unwrap()).collect::<Vec<u64>>()
    };
    for name in ["made by this one", "made by the older one"] {
        tally.claims.iter().for_each(|claims| claims.store(0, Ordering::Relaxed));
        let count = |keys: &[u64]| tally.count(keys, &vec![true; keys.len()]);
        if name == "made by the older one" {
            count(&inserts(name, 0, 10));
        }
        let mut filter = create(&server.address(), name, &three_shard_size());
        thread::scope(|scope| {
            for from in [0, 20_000] {
                scope.spawn(move || {
                    count(&inserts(name, from, 40_000));
                    count(&inserts(name, 0, from));
                });
            }
            tally.insert_concurrently(&filter, 2, 500, || {});
        });
        tally.assert_once_each();
        // Each sees what the other claimed.
        assert_eq!(inserts(name, 0, 40_000), []);
        let keys: Vec<u64> = (0..40_000).collect();
        assert_eq!(filter.insert_batch(&keys, &mut vec![false; keys.len()]), Ok(0));
    }
}
