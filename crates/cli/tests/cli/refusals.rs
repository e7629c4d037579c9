//! Refusals: a refused command writes no file.

use crate::common::{Bench, report_skipped};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// The type and mode of a file or folder, the time of its last change in seconds and nanoseconds, and its contents.
type Seen = (u32, i64, i64, Vec<u8>);

/// Records a folder and everything below it.
fn record(folder: &Path, seen: &mut BTreeMap<String, Seen>) {
    let metadata = folder.symlink_metadata().unwrap();
    let contents = if metadata.is_file() { fs::read(folder).unwrap() } else { Vec::new() };
    let name = folder.to_str().unwrap().to_owned();
    seen.insert(name, (metadata.mode(), metadata.mtime(), metadata.mtime_nsec(), contents));
    if metadata.is_dir() {
        fs::read_dir(folder).unwrap().for_each(|entry| record(&entry.unwrap().path(), seen));
    }
}

/// Commands that are refused, each with a part of the reason.
const REFUSED: &[(&str, &str)] = &[
    // Options.
    ("dedup a.txt -o o --no-such-option", "unexpected argument"),
    ("dedup a.txt -o o -p 2", "invalid value"),
    ("dedup a.txt -o o -n 0", "invalid value"),
    ("dedup a.txt -o o -j 0", "invalid value"),
    ("dedup a.txt -o o --on-error never", "invalid value"),
    ("dedup a.txt -o o -f 0", "invalid value"),
    ("dedup a.txt -o o -f url", "only with --header"),
    ("dedup a.txt -o o --csv -d ab", "one byte"),
    ("dedup a.txt -o o --csv --escape , -d ,", "same character"),
    ("dedup a.txt -o o --compress zip", "invalid value"),
    ("dedup a.txt -o o --glob [", "invalid value"),
    ("dedup a.txt -o o --output-dir d", "cannot be used with"),
    ("dedup a.txt --in-place --dupes d", "cannot be used with"),
    ("dedup a.txt -o o --count -s s", "cannot be used with"),
    ("dedup a.txt -o o --resume", "cannot be used without"),
    ("dedup a.txt -o o --manifest m", "it needs '--output-dir"),
    ("dedup a.txt -o o --trim=2", "a part of the key"),
    ("dedup a.txt -o o -f 1 --trim=2", "the last part is 1"),
    ("dedup a.txt -o o --normalize url --normalize number", "both apply"),
    ("dedup a.txt -o o -s s --exact", "cannot be used with"),
    ("dedup -o o --stats json", "--stats=json"),
    ("corpus a.jsonl -o o --min-ngram 20", "above --ngram"),
    ("corpus a.jsonl -o o --ngram 0 --threshold 0.5", "for grams"),
    ("corpus a.jsonl -o o --exact", "whole documents"),
    ("corpus a.jsonl -o o --report r", "cannot be used without"),
    ("corpus a.jsonl -o o --annotate --json-pointer /bloomline", "replaces the member"),
    ("corpus a.jsonl -o o --frozen", "cannot be used without"),
    ("build a.txt -o f.bloom --append -n 9", "cannot be used with"),
    ("in -o o a.txt -- --exact", "give options before it"),
    ("in -o o - -- -", "both OLD and NEW"),
    // Inputs.
    ("dedup no-such -o o", "No such file"),
    ("dedup no-such --output-dir d", "No such file"),
    ("dedup no-such -s s -o o", "No such file"),
    ("dedup no-such --in-place", "No such file"),
    ("build no-such -o b", "No such file"),
    ("check -s f.bloom no-such -v --total", "No such file"),
    ("in no-such -o o -- a.txt", "No such file"),
    ("in a.txt -o o -- no-such", "No such file"),
    ("corpus no-such -o o --pairs p --by document --ngram 0", "No such file"),
    ("corpus a.jsonl --against no-such -o o --report r", "No such file"),
    ("dedup empty -o o", "no input files"),
    ("dedup --files-from no-such -o o", "No such file"),
    ("dedup --files-from nothing -o o", "names no input"),
    ("dedup a.zip -o o", "is not supported"),
    ("dedup a.txt a.pdf -o o -s s", "PDF"),
    ("dedup a.txt utf16.txt -o o -s s", "UTF-16"),
    ("dedup a.csv b.csv --csv --header -f url -o o", "header"),
    ("dedup a.csv b.csv --csv --header -f url -s s -o o --dupes d", "header"),
    ("dedup a.csv b.csv --csv --header -f 1 --output-dir d", "header"),
    ("dedup a.csv --csv --header -f no-such -o o", "no-such"),
    ("build a.csv b.csv --csv --header -f 1 -o b", "header"),
    ("in a.csv -o o --csv --header -f 1 -- b.csv", "header"),
    ("dedup --in-place open.csv", "nothing is replaced"),
    ("dedup open.csv -o open.csv", "nothing is replaced"),
    // Outputs.
    ("dedup a.txt -o no-such/o", "No such file"),
    ("dedup a.txt -o o --dupes no-such/d", "No such file"),
    ("dedup a.txt -o o --pairs no-such/p", "No such file"),
    ("dedup a.txt -o o --clusters no-such/c", "No such file"),
    ("dedup a.txt -o o --pairs p --clusters no-such/c", "No such file"),
    ("dedup a.txt -o empty", "directory"),
    ("dedup a.txt -o a.txt/o", "Not a directory"),
    ("dedup a.txt --output-dir a.txt", "Not a directory"),
    ("dedup a.txt --output-dir a.txt/d", "Not a directory"),
    ("dedup a.txt --output-dir d --manifest no-such/m", "No such file"),
    ("dedup a.txt --output-dir d --manifest m.gz", "stands for another format"),
    ("dedup a.txt --output-dir d --manifest a.txt", "it is also an input"),
    ("dedup a.txt -o o.zip", "not supported"),
    ("dedup a.txt -o o.parquet", "stands for another format"),
    ("dedup a.txt -o o --pairs p.parquet", "stands for another format"),
    ("dedup a.txt -o o.gz --compress zstd", "o.gz"),
    ("dedup a.txt -o o --dupes o", "another output"),
    ("dedup a.txt -o o --dupes ./o", "another output"),
    ("dedup a.txt -o o --dupes empty/../o", "another output"),
    ("dedup a.txt -o o --pairs o", "another output"),
    ("dedup a.txt --pairs p --clusters p -o o", "another output"),
    ("dedup a.txt b.txt -o b.txt -s s", "it is also an input"),
    ("dedup a.txt --dupes a.txt -o o", "it is also an input"),
    ("dedup a.txt -v -o a.txt", "it is also an input"),
    ("dedup a.txt --output-dir .", "it is also an input"),
    ("dedup a.txt ./a.txt --in-place", "the same file"),
    ("dedup a.txt --in-place -", "standard input"),
    ("dedup - --output-dir d", "only regular files"),
    ("dedup a.txt x/a.txt --output-dir d --files-from list", "the output of both"),
    ("dedup a.txt -o dangling/o", "No such file"),
    ("build a.txt -o no-such/b", "No such file"),
    ("build a.txt -o empty", "not a regular file"),
    ("build a.txt -o a.txt", "it is also an input"),
    ("build a.txt -o dangling", "symbolic link"),
    ("in a.txt -o no-such/o -- b.txt", "No such file"),
    ("in a.txt -o a.txt -- b.txt", "it is also an input"),
    ("not-in a.txt -o b.txt -- b.txt", "it is also an input"),
    ("merge f.bloom -o no-such/m", "No such file"),
    ("merge f.bloom -o f.bloom", "it is also an input"),
    // Sets and states.
    ("dedup a.txt -s no-such/s -o o", "No such file"),
    ("dedup a.txt -s empty -o o", "not a regular file"),
    ("dedup a.txt -s a.txt -o o", "it is also an input"),
    ("dedup a.txt -s b.txt -o o", "cannot load the filter"),
    ("dedup a.txt -s damaged.bloom -o o", "cannot load the filter"),
    ("dedup a.txt -s o -o o", "another output"),
    ("dedup a.txt -s o.resume -o o.resume.lock", "another output"),
    ("dedup a.txt -s STATE -o o --seed 5", "its seed is"),
    ("dedup a.txt -s STATE -o o -f 1", "its keys are"),
    ("dedup a.txt -s STATE -o o -p 0.5", "false-positive rate"),
    ("dedup a.txt -s STATE -o o --when-full stop", "never full"),
    ("dedup a.txt -s STATE -o full", "refusing to overwrite"),
    ("dedup a.txt -s STATE -o o --pairs full", "refusing to overwrite"),
    ("dedup a.txt -s s -o full --resume", "there is no state"),
    ("dedup - -s s -o o --resume", "only a run from files to files"),
    ("dedup b.txt -s STATE --output-dir done", "refusing to overwrite"),
    ("dedup a.txt -s foreign -o o", "it holds something else"),
    ("dedup a.txt -s locked -o o", "lock file"),
    ("dedup a.txt -s f.bloom --shrink --when-full grow -o o", "fixed"),
    ("corpus a.jsonl --frozen -s no-such -o o", "No such file"),
    ("corpus a.jsonl --frozen -s f.bloom -o o", "its keys are"),
    ("build a.txt --append -o no-such.bloom", "leave out --append"),
    ("build a.txt --append -f 1 -o f.bloom", "its keys are"),
    ("build a.txt --append -o b.txt", "cannot load the filter"),
    ("check -s no-such a.txt", "No such file"),
    ("check -s f.bloom -f 2 a.txt", "its keys are"),
    ("merge f.bloom b.txt -o m", "cannot load the filter"),
    ("dedup a.txt -o o -n 1e12", "memory"),
    ("dedup a.txt -s s -o o -n 1e12", "memory"),
    ("build a.txt -o b -n 1e12 --when-full warn", "memory"),
    ("dedup a.txt --output-dir d --when-full stop -n 5", "needs lines in order"),
    ("dedup a.txt -o o -p 1e-19", "rate"),
];

/// Refused commands on servers.
#[cfg(feature = "redis")]
const REFUSED_ON_SERVERS: &[(&str, &str)] = &[
    ("dedup a.txt -o o --redis redis://127.0.0.1:1 --name n", "127.0.0.1"),
    ("dedup a.txt -o o --redis @no-such --name n", "No such file"),
    ("dedup a.txt -o o --redis rediss://h --redis-ca no-such --name n", "No such file"),
    ("redis download --redis redis://127.0.0.1:1 --name n -o no-such/d", "No such file"),
];

#[cfg(not(feature = "redis"))]
const REFUSED_ON_SERVERS: &[(&str, &str)] = &[
    ("dedup a.txt -o o --redis redis://127.0.0.1:1 --name n", "--features redis"),
    ("check --redis redis://127.0.0.1:1 --name n a.txt", "--features redis"),
    ("check --redis redis://127.0.0.1:1 --name n --verify 1000", "--features redis"),
    ("redis list --redis redis://127.0.0.1:1", "--features redis"),
    ("redis import --redis redis://127.0.0.1:1 --name n a.txt", "--features redis"),
];

/// Refused commands on tables.
#[cfg(feature = "parquet")]
const REFUSED_TABLES: &[(&str, &str)] = &[
    ("dedup a.parquet -o o.parquet --column no-such", "no-such"),
    ("dedup a.parquet -o o.txt", "stands for another format"),
    ("dedup a.parquet a.txt -o o --column url", "to one output"),
    ("dedup a.parquet a.txt -o o", "never equal"),
    ("dedup a.parquet --header -o o.parquet", "is for lines"),
    ("dedup a.parquet --compress xz -o o.parquet", "no compression xz"),
    ("dedup a.parquet -f 1 -o o.parquet", "give --column"),
    ("dedup a.parquet --annotate -o o.parquet --output-dir d", "cannot be used with"),
    ("dedup cut.parquet -o o.parquet", "cannot open"),
    ("dedup cut.parquet --output-dir d", "cannot open"),
    ("dedup cut.parquet --in-place", "cannot open"),
    ("corpus a.parquet --column no-such -o o.parquet", "no-such"),
    ("build cut.parquet -o b", "cannot open"),
    ("in a.parquet -o o --column url -- cut.parquet", "cannot open"),
    ("check -s f.bloom a.parquet --column url", "its keys are"),
];

#[cfg(not(feature = "parquet"))]
const REFUSED_TABLES: &[(&str, &str)] = &[];

/// Returns a folder with inputs, filters and outputs of all kinds.
fn bench() -> Bench {
    let bench = Bench::new(&[
        ("a.txt", b"a\nb\na\n"),
        ("b.txt", b"c\nd\n"),
        ("full", b"lines\n"),
        ("a.jsonl", b"{\"text\":\"one two three\"}\n"),
        ("a.csv", b"url,day\nu,1\n"),
        ("b.csv", b"day,url\n1,u\n"),
        ("open.csv", b"a,\"b\nc\",d\ne,\"f\ng\",h\n"),
        ("a.zip", b"PK\x03\x04zipped, with some bytes more"),
        ("a.pdf", b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n"),
        ("utf16.txt", b"\xFF\xFEa\0\n\0"),
        ("nothing", b""),
        ("nul", b"a.txt\0"),
        ("list", b"x/a.txt\n"),
        ("foreign.resume", b"something else\n"),
        ("locked.lock", b"something else\n"),
    ]);
    for folder in ["empty", "x", "done"] {
        fs::create_dir(bench.path(folder)).unwrap();
    }
    bench.write("x/a.txt", b"e\n");
    symlink("no-such", bench.path("dangling")).unwrap();
    bench.run_ok("build a.txt -o f.bloom");
    bench.run_ok("dedup a.txt -s STATE -o first");
    bench.run_ok("dedup b.txt -s STATE --output-dir done");
    let mut damaged = bench.read("f.bloom");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    bench.write("damaged.bloom", &damaged);
    #[cfg(feature = "parquet")]
    {
        use ::parquet::basic::Compression;
        let rows = [("u", 1, "one"), ("v", 2, "two"), ("u", 3, "three")];
        let rows = rows.map(|(url, number, from)| (url.to_owned(), number, from.to_owned()));
        let table = crate::parquet::table(&rows, 2, Compression::UNCOMPRESSED);
        bench.write("a.parquet", &table);
        bench.write("cut.parquet", &[&table[..table.len() / 2], b"PAR1"].concat());
    }
    bench
}

/// Runs commands that must be refused with a certain reason, and asserts that they change nothing in the folder.
#[track_caller]
fn refuse<'a>(bench: &Bench, refused: impl IntoIterator<Item = (&'a str, &'a str)>, prepare: impl Fn(&mut Command)) {
    let mut faults = Vec::new();
    let mut before = BTreeMap::new();
    record(bench.0.path(), &mut before);
    for (line, reason) in refused {
        let mut command = bench.command(line);
        prepare(&mut command);
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(2) || !message.contains(reason) || message.lines().count() > 2 {
            faults.push(format!("{line}: {} {message:?}, not {reason:?}", output.status));
        }
        let mut after = BTreeMap::new();
        record(bench.0.path(), &mut after);
        for name in before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)) {
            faults.push(format!("{line}: {name} has changed"));
        }
        before = after;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn refused_commands_change_nothing() {
    let bench = bench();
    refuse(&bench, REFUSED.iter().chain(REFUSED_TABLES).chain(REFUSED_ON_SERVERS).copied(), |_| ());
}

/// The creation of a temporary file fails before outputs are opened.
#[test]
fn commands_without_temporary_files_change_nothing() {
    let bench = bench();
    bench.write("b.jsonl", b"{\"text\":\"four five six\"}\n");
    let lines = [
        "dedup a.txt -o o --count",
        "dedup a.txt -o o --pairs p",
        "dedup b.txt -s STATE -o o --pairs p",
        "in a.txt --exact -o o -- b.txt",
        "corpus a.jsonl --near 0.8 -o o",
        "corpus a.jsonl --against b.jsonl -o o --report r",
    ];
    refuse(&bench, lines.map(|line| (line, "TMPDIR")), |command| {
        command.env("TMPDIR", "no-such");
    });
}

#[test]
fn folders_without_permission_are_refused() {
    let bench = bench();
    let folder = bench.path("empty");
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.join("x"), "").is_ok() {
        return report_skipped("the user may write to every folder");
    }
    let lines = [
        "dedup a.txt -o empty/o",
        "dedup a.txt -o o --dupes empty/d",
        "dedup a.txt --output-dir empty",
        "dedup a.txt --output-dir empty/new",
        "dedup a.txt -s empty/s -o o",
        "build a.txt -o empty/b",
        "in a.txt -o empty/o -- b.txt",
    ];
    refuse(&bench, lines.map(|line| (line, "empty")), |_| ());
}
