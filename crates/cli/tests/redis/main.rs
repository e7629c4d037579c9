//! The command with a shared set: one of several processes prints each line. The servers are those of the tests of
//! bloomline-redis.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../redis/tests/redis/harness.rs"]
mod harness;
mod operate;
#[allow(dead_code)] // those tests use the rest
#[path = "../../../redis/tests/redis/proxy.rs"]
mod proxy;
#[allow(dead_code)]
#[path = "../../../../tests/python/mod.rs"]
mod python;
#[allow(dead_code)]
#[path = "../../../redis/tests/redis/servers.rs"]
mod servers;

use bloomline::KeyHasher;
use common::{Bench, signal};
use harness::tests;
use proxy::Proxy;
use serde_json::Value;
use servers::{Cluster, Server, primary_and_replica, wait_until};
use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

tests! {
    each_line_is_printed_by_one_process,
    no_line_is_lost_if_connections_break,
    no_line_is_lost_if_a_node_crashes,
    each_line_is_printed_once_while_a_slot_moves,
    lines_claimed_before_an_error_are_printed,
    shared_sets_are_checked_and_described,
    keys_of_kinds_that_never_match_are_refused,
    sets_of_unknown_size_grow,
    sets_with_a_window_expire_lines,
    clients_whose_clocks_differ_share_a_window,
    claimed_lines_are_not_lost_silently,
    killed_runs_lose_one_chunk,
    overfull_shared_filters_are_reported,
    lost_sets_end_their_clients,
    finished_runs_report_counts_despite_server_errors,
    info_reports_partially_lost_sets,
    a_server_that_may_evict_is_reported,
    unreplicated_lines_are_reported,
    stopped_and_continued_processes_repeat_no_line,
    one_signal_ends_a_run_whose_server_does_not_answer,
    private_authority_certificates_are_trusted,
    a_client_in_python_shares_a_set_with_the_command,
    commands_of_the_pages_run_on_a_server,
}

const LINES: u32 = 40_000;

/// The time after which a client gives up waiting for a server.
const PATIENCE: Duration = Duration::from_secs(30);

/// Options for a filter with four shards that is so large that no false positives occur.
const SIZE: &str = "-n 5000000 -p 1e-9";

fn main() -> ExitCode {
    harness::run([tests(), operate::tests()].into_iter().flatten().collect())
}

/// Processes that each read all lines, with repeats and different starting points.
struct Crowd {
    bench: Bench,
    children: Vec<Child>,
}

impl Crowd {
    fn start(url: &str, processes: u32) -> Self {
        let bench = Bench::new(&[]);
        let run = |i| {
            let from = LINES / processes * i;
            let lines = [from..LINES, 0..from, 0..LINES / 10].map(common::url_lines).concat();
            bench.write(&format!("in{i}"), &lines);
            let line = format!(
                "dedup --redis {url} --name set {SIZE} --chunk-size 8192 --no-mirror --stats=json -o out{i} in{i}"
            );
            bench.command(&line).spawn().unwrap()
        };
        let children = (0..processes).map(run).collect();
        Self { bench, children }
    }

    /// Waits for the end of the processes, which must have printed all lines. Returns the number of repeated lines, and the
    /// number of lines that the processes report as uncertain.
    #[track_caller]
    fn finish(self) -> (u64, u64) {
        let mut printed: HashMap<Vec<u8>, u64> = HashMap::new();
        let mut uncertain = 0;
        for (i, child) in self.children.into_iter().enumerate() {
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{stderr}");
            let (warnings, stats): (Vec<&str>, _) =
                (stderr.lines().rev().skip(1).collect(), stderr.lines().last().unwrap());
            let stats: Value = serde_json::from_str(stats).unwrap();
            assert_eq!(warnings.len(), usize::from(stats["uncertain"] != 0), "{stderr}");
            uncertain += stats["uncertain"].as_u64().unwrap();
            let lines = self.bench.read(&format!("out{i}"));
            assert_eq!(stats["unique"].as_u64().unwrap(), lines.split_inclusive(|&byte| byte == b'\n').count() as u64);
            for line in lines.split_inclusive(|&byte| byte == b'\n') {
                *printed.entry(line.to_vec()).or_default() += 1;
            }
        }
        for line in common::url_lines(0..LINES).split_inclusive(|&byte| byte == b'\n') {
            assert!(printed.contains_key(line), "lost: {}", String::from_utf8_lossy(line));
        }
        (printed.values().sum::<u64>() - u64::from(LINES), uncertain)
    }
}

fn each_line_is_printed_by_one_process() {
    let server = Server::start("");
    let url = server.url();
    assert_eq!(Crowd::start(&url, 4).finish(), (0, 0));
    // For later processes, all lines are repeats.
    let bench = Bench::new(&[("in", &common::url_lines(0..LINES))]);
    assert_eq!(bench.run_ok(&format!("dedup --redis {url} --name set in")), "");
    assert_eq!(bench.run_ok(&format!("check --redis {url} --name set --total in")), format!("{LINES}\n"));
}

fn no_line_is_lost_if_connections_break() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, 11);
    proxy.break_connections(true);
    let (repeats, uncertain) = Crowd::start(&proxy.url(), 4).finish();
    assert!(proxy.broken_connections() > 0);
    assert!(repeats <= uncertain, "{repeats} repeats, {uncertain} uncertain");
}

/// Waits until the nodes have answered this number of inserts.
fn await_inserts(cluster: &Cluster, inserts: u64) {
    let inserted = || cluster.nodes.iter().map(|node| node.calls("bitfield")).sum::<u64>();
    wait_until("lines are inserted", || inserted() >= inserts);
}

fn no_line_is_lost_if_a_node_crashes() {
    let mut cluster = Cluster::start(3, false);
    let crowd = Crowd::start(&cluster.url(), 4);
    await_inserts(&cluster, u64::from(LINES) / 2);
    let (_, victim) = cluster.slot_and_primary("cbf:{set:0}");
    cluster.nodes[victim].kill();
    thread::sleep(Duration::from_millis(300));
    cluster.nodes[victim].relaunch();
    let (repeats, uncertain) = crowd.finish();
    assert!(repeats <= uncertain, "{repeats} repeats, {uncertain} uncertain");
}

fn each_line_is_printed_once_while_a_slot_moves() {
    let cluster = Cluster::start(3, false);
    let crowd = Crowd::start(&cluster.url(), 4);
    for (shard, inserts) in [(0, LINES / 4), (1, LINES)] {
        await_inserts(&cluster, inserts.into());
        let (slot, node) = cluster.slot_and_primary(&format!("cbf:{{set:{shard}}}"));
        let bench = Bench::new(&[("in", &common::url_lines(0..1000))]);
        cluster.migrate(slot, node, (node + 1) % 3, || {
            bench.run(&format!("check --redis {} --name set --total in", cluster.url()));
        });
    }
    assert_eq!(crowd.finish(), (0, 0));
}

fn lines_claimed_before_an_error_are_printed() {
    let server = Server::start("--maxmemory-policy noeviction");
    // The lines are sorted by block, so that the lines of the first shard are first.
    let lines = common::url_lines(0..LINES);
    let mut lines: Vec<&[u8]> = lines.split_inclusive(|&byte| byte == b'\n').collect();
    let hasher = KeyHasher::new(0);
    lines.sort_by_key(|line| hasher.bytes(line.strip_suffix(b"\n").unwrap()));
    let lines = lines.concat();
    let bench = Bench::new(&[("in", &lines)]);
    let line = format!("dedup --redis {} --name set {SIZE} --chunk-size 8192 --dupes dupes in", server.url());
    // The memory limit prevents the creation of the second of four shards.
    server.execute::<()>(&format!("CONFIG SET maxmemory {}", server.info_number("used_memory") + (20 << 20)));
    let first = bench.run(&line);
    assert!(common::expect_failure(&first).contains("out of memory"), "{first:?}");
    // A new output without a line is removed if the run fails.
    assert!(!bench.path("dupes").exists());
    assert!((lines.len() / 5..lines.len() / 2).contains(&first.stdout.len()), "{}", first.stdout.len());
    server.execute::<()>("CONFIG SET maxmemory 0");
    let second = common::expect_success(bench.run(&line.replace("dupes dupes", "dupes other")));
    let sorted = |text: &[u8]| {
        let mut lines: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&[first.stdout, second].concat()), sorted(&[lines, Vec::new()].concat()));
}

fn shared_sets_are_checked_and_described() {
    let server = Server::start("--requirepass hush");
    let bench = Bench::new(&[("in", &common::url_lines(0..1000)), ("more", &common::url_lines(0..1500))]);
    let url = format!("redis://:hush@127.0.0.1:{}", server.port);
    // The URL with the password may be in a file.
    bench.write("url", format!("{url}\n").as_bytes());
    let set = "--redis @url --name set";
    let first = bench.run_ok(&format!("dedup {set} -n 10000 -p 1e-6 --seed 7 in"));
    assert_eq!(first.into_bytes(), common::url_lines(0..1000));
    assert_eq!(bench.run_ok(&format!("check {set} --total more")), "1000\n");
    assert_eq!(bench.run_ok(&format!("check {set} -v more")).into_bytes(), common::url_lines(1000..1500));
    let info = bench.json(&format!("redis info {set} --json"));
    assert_eq!((info["name"].as_str(), info["seed"].as_u64()), (Some("set"), Some(7)));
    let plan = bench.json("plan -n 10000 -p 1e-6 --json");
    assert_eq!(info["memory_bytes"], plan[0]["memory_bytes"], "{plan}");
    assert_eq!(info["stored_bytes"], info["memory_bytes"]);
    assert!((info["estimated_keys"].as_f64().unwrap() - 1000.0).abs() < 20.0, "{info}");
    assert!(bench.run_ok(&format!("redis info {set}")).contains("keys"));

    assert!(
        bench.run_err(&format!("dedup --redis redis://127.0.0.1:{} --name set in", server.port)).contains("password")
    );
    assert!(
        bench.run_err(&format!("dedup --redis {} --name set in", url.replace("hush", "x"))).contains("denies access")
    );
    assert!(bench.run_err("check --redis @url --name other in").contains("no filter \"other\""));
    assert!(bench.run_err(&format!("dedup {set} -n 20000 in")).contains("choose another name"));
    assert!(bench.run_err(&format!("dedup {set} --seed 8 in")).contains("another seed"));
    // Without -n, the options denote a growing set.
    assert!(bench.run_err(&format!("dedup {set} -p 0.1 in")).contains("asked for that grows"));
    assert!(bench.run_err(&format!("dedup {set} --forget-after 1h in")).contains("--expected-keys"));
    assert!(bench.run_err("dedup --redis @gone --name set in").contains("\"gone\""));
    assert!(bench.run_err("dedup --redis @url in").contains("--name"));
    for other in ["--state x", "--exact", "-m 1M", "--when-full stop", "--total", "-c", "--invert"] {
        assert!(bench.run_err(&format!("dedup {set} {other} in")).contains("cannot be used with"), "{other}");
    }
    for url in ["htp://me:hush@one", "redis://me:hush@one:port", "redis://me:hush@127.0.0.1:1"] {
        let message = bench.run_err(&format!("dedup --redis {url} --name set in"));
        assert!(!message.contains("hush"), "{message}");
    }
    assert!(bench.run_err("dedup --redis redis://127.0.0.1:1 --name set in").contains("no answer from 127.0.0.1:1: "));
}

/// As in files, the kind of texts is not recorded, and other kinds are recorded before their first key.
fn keys_of_kinds_that_never_match_are_refused() {
    let server = Server::start("");
    let (csv, json) = ("id\n7\n8\n", "{\"id\":7}\n{\"id\":9.0}\n");
    let bench = Bench::new(&[("a.csv", csv.as_bytes()), ("a.jsonl", json.as_bytes()), ("nulls", b"{\"id\":null}\n")]);
    bench.write("mixed", b"{\"id\":\"8\"}\n{\"id\":8}\n{\"id\":9}\n");
    let set = |name: &str| format!("--redis {} --name {name}", server.url());
    let members = |name: &str| {
        let mut members: Vec<String> = server.execute(&format!("SMEMBERS cbf:{{{name}:kinds}}"));
        members.sort();
        members
    };
    let texts = set("texts");
    bench.run_ok(&format!("dedup {texts} -n 1000 -p 1e-6 --csv --header -f id -o out a.csv"));
    assert_eq!((server.calls("smembers"), server.calls("sadd")), (1, 0));
    let bits = |name: &str| server.execute::<u64>(&format!("BITCOUNT cbf:{{{name}:0}}"));
    let state = || (server.execute::<u64>("DBSIZE"), ["texts", "numbers"].map(bits));
    let before = state();
    let conflict = ["they are numbers", "the earlier keys are texts", "--normalize number"];
    for command in ["dedup", "check"] {
        let refused = bench.run(&format!("{command} {texts} --column id a.jsonl"));
        assert_eq!((refused.status.code(), common::text(&refused.stdout)), (Some(2), String::new()), "{command}");
        common::assert_contains_all(&common::expect_failure(&refused), &conflict);
        assert_eq!(state(), before, "{command}");
    }
    // Inputs may have several kinds if the filter has one of them. Lookups record no kinds.
    assert_eq!(bench.run_ok(&format!("check {texts} --column id --total mixed")), "1\n");
    assert_eq!(state(), before);
    assert_eq!(bench.run_ok(&format!("dedup {texts} --column id mixed")), "{\"id\":8}\n{\"id\":9}\n");
    assert_eq!(members("texts"), ["0:0", "0:2"]);

    // Two processes start with an empty filter. Nulls do not conflict with any kind.
    let numbers = set("numbers");
    bench.run_ok(&format!("dedup {numbers} -n 1000 -p 1e-6 --column id --nulls equal -o null nulls"));
    assert_eq!(members("numbers"), ["0:16"]);
    let run = |_| bench.command(&format!("dedup {numbers} --column id a.jsonl")).spawn().unwrap();
    let printed = [0, 1].map(run).map(|child| common::expect_exit_code(child.wait_with_output().unwrap(), 0));
    let mut printed: Vec<&str> = printed.iter().flat_map(|lines| lines.lines()).collect();
    printed.sort_unstable();
    assert_eq!(printed, ["{\"id\":7}", "{\"id\":9.0}"]);
    assert_eq!(members("numbers"), ["0:16", "0:2"]);
    let before = state();
    let refused = bench.run(&format!("dedup {numbers} --csv --header -f id a.csv"));
    assert_eq!((refused.status.code(), refused.stdout.len(), state()), (Some(2), 0, before));
    let conflict = ["the filter \"numbers\"", "they are texts", "the earlier keys are numbers", "--normalize number"];
    common::assert_contains_all(&common::expect_failure(&refused), &conflict);
    let line = format!("dedup {numbers} --csv --header -f id --normalize number a.csv");
    assert_eq!(bench.run_ok(&line), "id\n8\n");

    // A copy keeps the kinds, and an import adds the kind of texts.
    bench.run_ok(&format!("redis download {numbers} -o copy"));
    assert_eq!(bench.json("info --json copy")["key_kinds"], "numbers");
    bench.run_ok(&format!("redis upload {} copy", set("moved")));
    assert_eq!(members("moved"), ["0:2"]);
    bench.run_ok(&format!("redis import {} a.csv", set("moved")));
    assert_eq!(members("moved"), ["0:0", "0:2"]);
    for name in ["texts", "numbers", "moved"] {
        bench.run_ok(&format!("redis delete {}", set(name)));
    }
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
    // Recorded kinds without a filter do not conflict.
    server.execute::<u64>("SADD cbf:{numbers:kinds} 0:2");
    assert_eq!(bench.run_ok(&format!("dedup {numbers} a.csv")), csv);
    assert_eq!(members("numbers"), ["0:0", "0:2"]);
}

/// The number of lines is not given.
fn sets_of_unknown_size_grow() {
    let server = Server::start("");
    let bench = Bench::new(&[("a", &common::url_lines(0..30_000)), ("b", &common::url_lines(10_000..40_000))]);
    let set = format!("--redis {} --name set", server.url());
    let spawn = |name: &str| {
        let line = format!("dedup {set} -p 0.001 --stats=json -o out-{name} {name}");
        bench.command(&line).spawn().unwrap()
    };
    let mut kept = 0;
    for child in ["a", "b"].map(spawn) {
        let output = child.wait_with_output().unwrap();
        let stats: Value = serde_json::from_slice(&output.stderr).unwrap();
        assert_eq!(stats["uncertain"], 0);
        kept += stats["unique"].as_u64().unwrap();
    }
    assert_eq!(kept, 40_000);
    let info = bench.json(&format!("redis info {set} --json"));
    assert_eq!((info["filters"].as_u64(), info["max_fpr"].as_f64()), (Some(1), Some(0.001)), "{info}");
    assert!((common::number(&info, "estimated_keys") / kept as f64 - 1.0).abs() < 0.02, "{info}");
    common::assert_contains_all(&bench.run_ok(&format!("redis info {set}")), &["filters", "rate at most"]);
    assert!(bench.run_ok(&format!("redis list --redis {}", server.url())).contains("set "));
    // The set is accepted with the same rate and without a rate, but not with another rate.
    assert_eq!(bench.run_ok(&format!("dedup {set} a")), "");
    assert_eq!(bench.run_ok(&format!("check {set} --total b")), "30000\n");
    assert!(bench.run_err(&format!("dedup {set} -p 0.01 a")).contains("choose another name"));
    assert!(bench.run_err(&format!("redis download {set} -o copy.bloom")).contains("grows or forgets"));
    // A set of another name is new and has the default rate.
    let other = bench.run_ok(&format!("dedup --redis {} --name other a", server.url()));
    assert_eq!(other.into_bytes(), common::url_lines(0..30_000));
    for name in ["set", "other"] {
        assert_eq!(bench.run_ok(&format!("redis delete --redis {} --name {name}", server.url())), "");
    }
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
}

fn sets_with_a_window_expire_lines() {
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..1000))]);
    let set = format!("--redis {} --name set", server.url());
    let line = format!("dedup {set} -n 10000 --forget-after 4h in");
    assert_eq!(bench.run_ok(&line).into_bytes(), common::url_lines(0..1000));
    assert_eq!(bench.run_ok(&line), "");
    let info = bench.json(&format!("redis info {set} --json"));
    assert_eq!(
        (info["forgets_after_seconds"].as_u64(), info["max_fpr"].as_f64()),
        (Some(4 * 3600), Some(1e-6)),
        "{info}"
    );
    common::assert_contains_all(&bench.run_ok(&format!("redis info {set}")), &["forgets after  4 h"]);
    // Lines are kept for at least one window, and expire within the next one.
    server.advance_clock("set", 4 * 3600 - 600);
    assert_eq!(bench.run_ok(&line), "");
    server.advance_clock("set", 4 * 3600);
    assert_eq!(bench.run_ok(&line).into_bytes(), common::url_lines(0..1000));
    assert!(bench.run_err(&line.replace("4h", "5h")).contains("forgets keys after 14400 s"));
    // All lines of a window may arrive at once. At most a thousandth is lost, with five standard deviations, and no warning is
    // printed.
    bench.write("many", &common::url_lines(0..40_000));
    let at_once = format!("dedup --redis {} --name once -n 40000 -p 0.001 --forget-after 30d many", server.url());
    let printed = bench.run_ok(&at_once).lines().count();
    assert!((40_000 - 72..=40_000).contains(&printed), "{printed}");
}

/// The server's clock determines when a window ends.
fn clients_whose_clocks_differ_share_a_window() {
    if Command::new("faketime").arg("--version").output().is_err() {
        harness::ignored("faketime");
    }
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..LINES))]);
    let line = format!("dedup --redis {} --name set -n 100000 --forget-after 2h --chunk-size 4096 in", server.url());
    let start = |offset: &str| {
        let mut command = Command::new("faketime");
        command.args(["-f", offset, env!("CARGO_BIN_EXE_bloomline")]).args(line.split(' ')).current_dir(bench.path(""));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    // With its own clock, a client would consider the window over or not yet begun. The clients of a round are simultaneous.
    let mut printed: Vec<String> = Vec::new();
    for round in 0..2 {
        let children = ["-1d", "-3h", "-3s", "+3s", "+3h", "+1d"].map(start);
        for child in children {
            let text = common::expect_exit_code(child.wait_with_output().unwrap(), 0);
            assert!(round == 0 || text.is_empty(), "{text}");
            printed.extend(text.lines().map(str::to_owned));
        }
    }
    let distinct: HashSet<&String> = printed.iter().collect();
    assert_eq!((printed.len(), distinct.len()), (LINES as usize, LINES as usize));
}

fn claimed_lines_are_not_lost_silently() {
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..LINES)), ("more", &common::url_lines(0..2 * LINES))]);
    let set = format!("dedup --redis {} --name set {SIZE} --chunk-size 8192", server.url());
    assert_eq!(bench.run_ok(&format!("{set} in -o out --dupes dupes")), "");
    // A second run would empty the output.
    let refused = bench.run_err(&format!("{set} more -o out"));
    assert!(refused.contains("append with >>"), "{refused}");
    let refused = bench.run_err(&format!("{set} more --dupes out"));
    assert!(refused.contains("append with >>"), "{refused}");
    assert_eq!(bench.read("out"), common::url_lines(0..LINES));
    // If the reader of standard output exits early, claimed lines are lost.
    let mut child = bench.command(&format!("{set} more")).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        common::expect_failure(&output).contains("new lines were added to the shared filter but not printed"),
        "{output:?}"
    );
}

/// Returns the complete lines of a file that may be cut at any byte.
fn readable_lines(bytes: &[u8], ending: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    // Bytes before the error are kept.
    _ = match ending {
        ".gz" => flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut lines),
        ".zst" => zstd::Decoder::new(bytes).and_then(|mut decoder| decoder.read_to_end(&mut lines)),
        _ => (&mut &*bytes).read_to_end(&mut lines),
    };
    lines.truncate(lines.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
    lines
}

/// For plain and compressed outputs.
fn killed_runs_lose_one_chunk() {
    const CHUNK: usize = 8192;
    let server = Server::start("");
    let input = common::url_lines(0..50_000);
    for (ending, options) in [("", ""), (".gz", ""), (".zst", ""), (".zst", " --compress zstd:3:long=27")] {
        let bench = Bench::new(&[("in", &input)]);
        let mut printed = HashSet::new();
        let mut killed = 0;
        let mut run = |i: u64| {
            let line = format!(
                "dedup --redis {} --name set {SIZE} --chunk-size {CHUNK} --no-mirror{options} -o out{i}{ending} in",
                server.url()
            );
            let requests = || server.calls("bitfield") + server.calls("getrange");
            let before = requests();
            let mut child = bench.command(&line).spawn().unwrap();
            if i > 0 {
                while child.try_wait().unwrap().is_none() && requests() < before + 2500 * i {}
                child.kill().unwrap();
            }
            let output = child.wait_with_output().unwrap();
            assert!(i > 0 || output.status.success(), "{}", common::text(&output.stderr));
            killed += u64::from(!output.status.success());
            // A run that is killed early has created no file.
            let out = std::fs::read(bench.path(&format!("out{i}{ending}"))).unwrap_or_default();
            printed.extend(readable_lines(&out, ending).split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec));
        };
        (1..6).for_each(&mut run);
        run(0);
        assert!(killed >= 3, "{killed}");
        let lost: usize =
            input.split_inclusive(|&byte| byte == b'\n').filter(|line| !printed.contains(*line)).map(<[u8]>::len).sum();
        eprintln!("{ending}{options}: {killed} killed, {lost} bytes lost");
        assert!(lost <= killed as usize * (CHUNK + 100), "{ending}{options}: {killed} killed, {lost} bytes lost");
        server.execute::<()>("FLUSHALL");
    }
}

fn overfull_shared_filters_are_reported() {
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..3000))]);
    let set = format!("dedup --redis {} --name set -n 1000 -p 0.01 -o out in", server.url());
    let output = bench.run(&set);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("more keys than it was planned for"), "{message}");
    // Lines are lost, so --quiet does not suppress the warning.
    let quiet = bench.run(&set.replace("out", "again --quiet"));
    let message = String::from_utf8(quiet.stderr).unwrap();
    assert!(quiet.status.success() && message.contains("more keys than it was planned for"), "{message}");
}

/// Runs one process that prints a few lines at a time, and calls `meanwhile` during the run.
fn slow_run(bench: &Bench, server: &Server, line: &str, meanwhile: impl FnOnce()) -> Output {
    let before = server.calls("bitfield");
    let mut child = bench.command(line).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let (done, meanwhile_done) = mpsc::channel::<()>();
    let feeding = thread::spawn(move || {
        for from in (0..60_000).step_by(500) {
            // These lines do not fill the pipe of the output, which is read at the end.
            if from == 1500 {
                meanwhile_done.recv().unwrap();
            }
            if input.write_all(&common::url_lines(from..from + 500)).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    });
    wait_until("lines are inserted", || server.calls("bitfield") >= before + 1000);
    meanwhile();
    done.send(()).unwrap();
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output
}

fn lost_sets_end_their_clients() {
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..1000))]);
    let set = format!("--redis {} --name set", server.url());
    let run = format!("dedup {set} {SIZE} --chunk-size 4096 -j 1");
    for (command, expected) in
        [("FLUSHALL", "is gone"), ("DEL cbf:{set:0}", "cbf:{set:0}"), ("DEL cbf:{set:meta}", "cbf:{set:meta}")]
    {
        let output = slow_run(&bench, &server, &run, || server.execute::<()>(command));
        let message = common::expect_failure(&output);
        assert!(message.contains(expected), "{command}: {message}");
        let lines = output.stdout.iter().filter(|&&byte| byte == b'\n').count();
        assert!((1..59_000).contains(&lines), "{command}: {lines}");
        if command != "FLUSHALL" {
            // The remaining keys are removed by `redis delete`.
            assert_eq!(bench.run_ok(&format!("redis delete {set}")), "");
        }
        server.execute::<()>("FLUSHDB");
    }
    // A run does not continue with a new set of another size.
    let output = slow_run(&bench, &server, &run, || {
        bench.run_ok(&format!("redis delete {set}"));
        bench.run_ok(&format!("dedup {set} -n 1000 -p 1e-6 in"));
    });
    let message = common::expect_failure(&output);
    assert!(message.contains("created again"), "{message}");
    assert_eq!(bench.run_ok(&format!("dedup {set} -n 1000 -p 1e-6 in")), "");
}

/// The set is lost or the server hangs after all lines are processed. The counts are still reported.
fn finished_runs_report_counts_despite_server_errors() {
    let lines = common::url_lines(0..1000);
    for lost in [true, false] {
        let server = Server::start("");
        let bench = Bench::new(&[]);
        let line = format!("dedup --redis {} --name set -n 1000 -p 1e-6 --stats=json", server.url());
        let mut child = bench.command(&line).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(&lines).unwrap();
        let (mut printed, mut stdout) = (vec![0; lines.len()], child.stdout.take().unwrap());
        let reading = thread::spawn(move || stdout.read_exact(&mut printed).map(|()| (printed, stdout)).unwrap());
        wait_until("lines are printed", || reading.is_finished());
        let (mut printed, mut stdout) = reading.join().unwrap();
        if lost {
            server.execute::<()>("FLUSHALL");
        } else {
            server.signal("STOP");
        }
        drop(input);
        if !lost {
            thread::sleep(Duration::from_millis(300));
            signal(&child, "TERM");
        }
        let started = Instant::now();
        let output = child.wait_with_output().unwrap();
        server.signal("CONT");
        // The command must not wait for the server.
        assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
        let (stderr, stats) = (common::text(&output.stderr), common::stats(&output));
        assert_eq!(stats["unique"].as_u64(), Some(1000), "{stderr}");
        assert_eq!(output.status.code(), Some(if lost { 2 } else { 128 + 15 }), "{stderr}");
        stdout.read_to_end(&mut printed).unwrap();
        assert_eq!((printed == lines, stderr.contains("is gone")), (true, lost), "{stderr}");
    }
}

fn info_reports_partially_lost_sets() {
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..1000))]);
    let set = format!("--redis {} --name set", server.url());
    bench.run_ok(&format!("dedup {set} -n 1000 -p 1e-6 -o out in"));
    server.execute::<()>("DEL cbf:{set:meta}");
    for line in [format!("redis info {set}"), format!("check {set} in"), format!("dedup {set} -n 9000 in")] {
        let message = bench.run_err(&line);
        assert!(message.contains("evicted or lost") && message.contains("bloomline redis delete"), "{message}");
    }
}

fn a_server_that_may_evict_is_reported() {
    let server = Server::start("--maxmemory-policy allkeys-lru");
    let bench = Bench::new(&[("in", &common::url_lines(0..1000))]);
    let line = format!("dedup --redis {} --name set -n 1000 -p 1e-6 -o out in", server.url());
    let output = bench.run(&line);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && message.contains("maxmemory-policy allkeys-lru"), "{message}");
    assert_eq!(message.matches('\n').count(), 1, "{message}");
    assert_eq!(bench.run_ok(&line.replace("out", "again --quiet")), "");
}

fn unreplicated_lines_are_reported() {
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..1000))]);
    let line = format!("dedup --redis {} --name set -n 1000 -p 1e-6 --stats=json -o out in", server.url());
    let result = |line: &str| {
        let output = bench.run(line);
        assert!(output.status.success(), "{output:?}");
        let (message, stats) = (common::text(&output.stderr), common::stats(&output));
        (
            message.contains("1000 lines were printed before as many replicas had them as --redis-wait asks for"),
            stats["unconfirmed"].as_u64(),
        )
    };
    assert_eq!(result(&format!("{line} --redis-wait 1")), (true, Some(1000)));
    assert_eq!(result(&line.replace("set", "other").replace("out", "more")), (false, Some(0)));
    assert!(bench.run_err("dedup --redis-wait 1 in").contains("--redis"));

    // A replica that the run does not wait for may become the primary.
    let [primary, _replica] = primary_and_replica("");
    let other = Server::start(&format!("--replicaof 127.0.0.1 {}", primary.port));
    other.await_replication();
    for (awaited, warnings) in [(0, 0), (1, 1), (2, 0)] {
        let line = format!("dedup --redis {} --name set -n 1000 --redis-wait {awaited} in", primary.url());
        let output = bench.run(&line);
        let message = common::text(&output.stderr);
        assert!(output.status.success() && message.lines().count() == warnings, "{message}");
        assert_eq!(message.contains("has 2 replicas, and --redis-wait 1 waits for fewer"), warnings == 1, "{message}");
    }
}

fn stopped_and_continued_processes_repeat_no_line() {
    let server = Server::start("");
    let crowd = Crowd::start(&server.url(), 3);
    wait_until("lines are inserted", || server.calls("bitfield") >= u64::from(LINES) / 4);
    let connections = server.info_number("total_connections_received");
    for _ in 0..8 {
        for name in ["STOP", "CONT"] {
            crowd.children.iter().for_each(|child| signal(child, name));
            thread::sleep(Duration::from_millis(30));
        }
    }
    // The test itself opens three connections.
    assert!(server.info_number("total_connections_received") <= connections + 3);
    assert_eq!(crowd.finish(), (0, 0));
}

fn one_signal_ends_a_run_whose_server_does_not_answer() {
    let lines = common::url_lines(0..LINES);
    for bytewise in [false, true] {
        let server = Server::start("");
        let proxy = Proxy::start(server.port, 1);
        let bench = Bench::new(&[("in", &lines)]);
        let run = |url: &str, out| format!("dedup --redis {url} --name set {SIZE} --chunk-size 8192 -o {out} in");
        let mut child = bench.command(&run(&proxy.url(), "first")).spawn().unwrap();
        wait_until("lines are inserted", || server.calls("bitfield") >= 2000);
        if bytewise {
            proxy.send_bytewise()
        } else {
            server.signal("STOP")
        }
        thread::sleep(Duration::from_millis(200));
        let signalled = Instant::now();
        signal(&child, "INT");
        let code = child.wait().unwrap().code();
        assert!(signalled.elapsed() < PATIENCE, "{:?}", signalled.elapsed());
        assert_eq!(code, Some(130));
        server.signal("CONT");
        server.await_answer();
        // A second run prints the remaining lines.
        bench.run_ok(&run(&server.url(), "second"));
        let printed = [bench.read("first"), bench.read("second")].concat();
        let printed: HashSet<&[u8]> = printed.split_inclusive(|&byte| byte == b'\n').collect();
        assert!(lines.split_inclusive(|&byte| byte == b'\n').all(|line| printed.contains(line)));
    }
}

fn private_authority_certificates_are_trusted() {
    let bench = Bench::new(&[("in", b"line\n"), ("none.pem", b"")]);
    let run = "dedup --redis rediss://127.0.0.1:1 --name set -n 1000 in";
    let message = bench.run_err(&format!("{run} --redis-ca gone.pem"));
    assert!(message.contains("\"gone.pem\""), "{message}");
    let message = bench.run_err(&format!("{run} --redis-ca none.pem"));
    assert!(message.contains("BEGIN CERTIFICATE"), "{message}");
    assert!(bench.run_err("dedup --redis-ca none.pem in").contains("--redis"));
    servers::require_program(servers::find_program(&["openssl"], "version"), "openssl");
    let line = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=bloomline -addext subjectAltName=IP:127.0.0.1 -addext \
                basicConstraints=critical,CA:FALSE -keyout key.pem -out cert.pem";
    let mut openssl = Command::new("openssl");
    openssl.args(line.split(' ').filter(|word| !word.is_empty())).current_dir(bench.0.path());
    assert!(openssl.output().unwrap().status.success());
    let [key, cert] = ["key.pem", "cert.pem"].map(|name| bench.path(name).display().to_string());
    let files = format!("--tls-cert-file {cert} --tls-key-file {key} --tls-ca-cert-file {cert}");
    let server = Server::launch(&format!("--port 0 --tls-port PORT {files}"));
    wait_until("it listens", || std::net::TcpStream::connect(("127.0.0.1", server.port)).is_ok());
    let run = run.replace("127.0.0.1:1", &format!("127.0.0.1:{}", server.port));
    assert!(bench.run_err(&run).contains("certificate"));
    let refused = bench.run_err(&format!("{run} --redis-ca cert.pem"));
    assert!(refused.contains("ertificate"), "{refused}");
    let refused = bench.run_err(&format!("{run} --redis-ca cert.pem --redis-cert cert.pem"));
    assert!(refused.contains("--redis-key"), "{refused}");
    let certified = "--redis-ca cert.pem --redis-cert cert.pem --redis-key key.pem";
    assert_eq!(bench.run_ok(&format!("{run} {certified}")), "line\n");
}

/// Both clients create the filter from the same parameters, and each line is new to one of them.
fn a_client_in_python_shares_a_set_with_the_command() {
    let server = Server::start("");
    let lines = common::url_lines(0..10_000);
    let bench = Bench::new(&[("in", &lines)]);
    let proxy = Proxy::start(server.port, 5);
    for (name, url) in [("whole", server.url()), ("broken", proxy.url())] {
        if name == "broken" {
            proxy.break_connections(true);
        }
        let client = python::python("../../tests/data/server.py");
        let mut client = client.unwrap_or_else(|| harness::ignored("Python"));
        client.args([url.rsplit_once(':').unwrap().1, name, "insert", "500000", "1e-9"]);
        let client = thread::scope(|scope| {
            let client = scope.spawn(|| common::run_with_stdin(client, &lines));
            let run = format!("dedup --redis {url} --name {name} -n 500000 -p 1e-9 --chunk-size 4096 -o {name} in");
            let output = bench.run(&run);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            client.join().unwrap()
        });
        let stderr = String::from_utf8(client.stderr).unwrap();
        assert!(client.status.success(), "{stderr}");
        let ours = bench.read(name);
        let ours: HashSet<&[u8]> = ours.split_inclusive(|&byte| byte == b'\n').collect();
        let theirs = client.stdout.split(|&byte| byte == b'\n').map(|answer| answer == b"1");
        let mut both = 0;
        for (line, theirs) in lines.split_inclusive(|&byte| byte == b'\n').zip(theirs) {
            assert!(theirs || ours.contains(line), "lost: {}", String::from_utf8_lossy(line));
            both += u32::from(theirs && ours.contains(line));
        }
        assert!(name == "broken" || (both == 0 && stderr.is_empty()), "{both} {stderr}");
    }
    assert!(proxy.broken_connections() > 0);
    // The clients share one filter.
    assert_eq!(bench.run_ok(&format!("check --redis {} --name whole --total in", server.url())), "10000\n");
}

fn commands_of_the_pages_run_on_a_server() {
    let pages = [include_str!("../../../../README.md"), include_str!("../../../../docs/COMMAND.md")];
    let scripts = pages.map(common::pages::scripts).concat();
    let shared: Vec<String> = scripts.into_iter().filter(|script| script.contains("--redis")).collect();
    assert_eq!(shared.len(), 1, "{shared:?}");
    for script in shared {
        let server = Server::start("");
        let address = script.split("--redis ").nth(1).unwrap().split(' ').next().unwrap();
        common::pages::run(&script.replace(address, &server.url()));
    }
}
