//! `bloomline redis`: administration of the filters on a server.

use crate::common::{self, Bench, signal};
use crate::harness::{self, tests};
use crate::proxy::Proxy;
use crate::servers::{Cluster, Server, find_program, wait_until};
use crate::{LINES, SIZE};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::thread;

tests! {
    the_filters_of_a_server_are_listed,
    the_filters_of_a_cluster_are_listed,
    a_filter_is_removed,
    filters_are_saved_to_a_file_and_restored,
    filters_of_several_stages_are_restored_as_the_page_says,
    files_are_merged_into_existing_filters,
    a_set_is_imported,
    a_set_of_a_cluster_is_imported,
    lines_are_imported,
    a_filter_is_watched,
    filters_in_use_are_copied_completely,
    stats_report_the_servers_of_a_run,
    the_bar_shows_the_servers_of_a_run,
}

/// Creates a filter on a server with this number of lines.
fn fill(bench: &Bench, url: &str, name: &str, lines: u32) {
    bench.write("lines", &common::url_lines(0..lines));
    bench.run_ok(&format!("dedup --redis {url} --name {name} -n 10000 -p 1e-6 --force -o out-{name} lines"));
}

fn the_filters_of_a_server_are_listed() {
    let server = Server::start("");
    let (bench, url) = (Bench::new(&[]), server.url());
    assert_eq!(bench.run_ok(&format!("redis list --redis {url}")), "");
    assert_eq!(bench.run_ok(&format!("redis list --redis {url} --json")), "[]\n");
    fill(&bench, &url, "urls", 1000);
    fill(&bench, &url, "hosts:2", 10);
    fill(&bench, &url, "lost", 10);
    server.execute::<()>("DEL cbf:{lost:meta}");
    // Keys that are not filters, and names with control sequences of terminals.
    for key in ["cbf:x", "other", "cbf:{a\u{1b}[2J:meta}", "cbf:{urls:0}:upload:00"] {
        server.execute::<()>(&format!("SET {key} x"));
    }
    server.execute::<()>("SET cbf:{\u{202e}sdrawkcab:meta} \u{1b}[2J");
    // Two connections are enough for any number of filters, one of them for the names. The third one is the test's own.
    let connections = || server.info_number("total_connections_received");
    let before = connections();
    let text = bench.run_ok(&format!("redis list --redis {url}"));
    assert!(connections() - before <= 3, "{} {before}", connections());
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("name ") && lines[1].starts_with("hosts:2 ") && lines[2].starts_with("urls "),
        "{text}"
    );
    common::assert_contains_all(lines[3], &["lost  ", "evicted or lost", "bloomline redis delete"]);
    common::assert_contains_all(lines[4], &["\\u{202e}sdrawkcab  ", "is not a bloomline filter"]);
    assert!(lines.len() == 5 && !text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    let all = bench.json(&format!("redis list --redis {url} --json"));
    let urls = &all[2];
    assert_eq!(urls["name"], "urls");
    assert!((common::number(urls, "estimated_keys") - 1000.0).abs() < 20.0, "{urls}");
    assert_eq!(all[1]["name"], "lost");
    assert!(all[1]["error"].as_str().unwrap().contains("evicted or lost"));
    // The list has the same figures as `redis info`.
    let info = bench.json(&format!("redis info --redis {url} --name urls --json"));
    for field in ["memory_bytes", "stored_bytes", "fill", "estimated_keys", "fpr"] {
        assert_eq!(urls[field], info[field], "{field}");
    }
    common::assert_contains_all(
        &bench.run_err("redis list --redis redis://127.0.0.1:1"),
        &["no answer from 127.0.0.1:1"],
    );
    common::assert_contains_all(&bench.run_err("redis list"), &["--redis"]);
    common::assert_contains_all(&bench.run_err(&format!("redis info --redis {url}")), &["--name"]);
    server.execute::<()>("ACL SETUSER reader on >hush ~* &* +@all -scan");
    let url = url.replace("redis://", "redis://reader:hush@");
    common::assert_contains_all(&bench.run_err(&format!("redis list --redis {url}")), &["denies access", "to SCAN"]);
}

fn the_filters_of_a_cluster_are_listed() {
    let cluster = Cluster::start(3, false);
    let (bench, url) = (Bench::new(&[]), cluster.url());
    let names: Vec<String> = (0..8).map(|i| format!("set{i}")).collect();
    names.iter().for_each(|name| fill(&bench, &url, name, 10));
    let listed = bench.json(&format!("redis list --redis {url} --json"));
    let listed: Vec<&str> = listed.as_array().unwrap().iter().map(|filter| filter["name"].as_str().unwrap()).collect();
    assert_eq!(listed, names);
    bench.run_ok(&format!("redis delete --redis {url} --name set3"));
    assert!(!bench.run_ok(&format!("redis list --redis {url}")).contains("set3"));
}

fn a_filter_is_removed() {
    let server = Server::start("");
    let (bench, url) = (Bench::new(&[]), server.url());
    fill(&bench, &url, "set", 100);
    let delete = format!("redis delete --redis {url} --name set");
    assert_eq!(bench.run_ok(&delete), "");
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
    // A filter whose name begins with this one stays.
    fill(&bench, &url, "set:x", 100);
    common::assert_contains_all(&bench.run_err(&delete), &["no filter \"set\"", "nothing was removed"]);
    bench.run_ok(&delete.replace("set", "set:x"));
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
    // The rest of a damaged filter is deleted too.
    fill(&bench, &url, "set", 100);
    server.execute::<()>("DEL cbf:{set:meta}");
    bench.run_ok(&delete);
    assert_eq!(server.execute::<u64>("DBSIZE"), 0);
}

fn filters_are_saved_to_a_file_and_restored() {
    let [server, other] = [Server::start(""), Server::start("")];
    let bench = Bench::new(&[]);
    fill(&bench, &server.url(), "set", 1000);
    let set = format!("--redis {} --name set", server.url());
    bench.run_ok(&format!("redis download {set} -o copy.bloom"));
    assert_eq!(bench.run_ok("check -s copy.bloom --total lines"), "1000\n");
    // Another name renames the filter.
    let moved = format!("--redis {} --name other", other.url());
    bench.run_ok(&format!("redis upload {moved} copy.bloom"));
    assert_eq!(bench.run_ok(&format!("dedup {moved} -n 10000 -p 1e-6 lines")), "");
    let [ours, theirs] = [&set, &moved].map(|set| bench.json(&format!("redis info {set} --json"))["fill"].clone());
    assert_eq!(ours, theirs);
    common::assert_contains_all(&bench.run_err(&format!("redis download {set} -o missing/copy")), &["missing/copy"]);
    common::assert_contains_all(
        &bench.run_err(&format!("redis download --redis {} --name no -o c", other.url())),
        &["no filter"],
    );
    assert!(!bench.path("c").exists());
    common::assert_contains_all(&bench.run_err(&format!("redis upload {moved} none")), &["\"none\""]);
}

/// The commands of docs/SERVER.md copy no filter whose name starts with the one of the filter.
fn filters_of_several_stages_are_restored_as_the_page_says() {
    if find_program(&["redis-cli"], "--version").is_none() {
        harness::ignored("redis-cli");
    }
    let [old, new] = [Server::start(""), Server::start("")];
    let bench = Bench::new(&[("in", &common::url_lines(0..LINES)), ("more", &common::url_lines(0..LINES + 10))]);
    let set = |server: &Server, name: &str| format!("--redis {} --name {name}", server.url());
    for options in ["grows -p 1e-9", "forgets -n 40000 -p 1e-9 --forget-after 1h", "grows:x -p 0.01"] {
        bench.run_ok(&format!("dedup {} --force -o out in", set(&old, options)));
    }
    let page = include_str!("../../../../docs/SERVER.md");
    let block = page.split("```text\nredis-cli ").nth(1).unwrap().split("```").next().unwrap();
    let [save, start, restore] = block.splitn(3, '\n').collect::<Vec<_>>().try_into().unwrap();
    let shell = |script: &str| {
        let script = format!("set -e -o pipefail; {script}");
        let output = Command::new("bash").args(["-c", &script]).current_dir(bench.0.path()).output().unwrap();
        assert!(output.status.success(), "{script}: {output:?}");
    };
    shell(&format!("redis-cli {}", save.replace("OLD", &format!("127.0.0.1 -p {}", old.port))));
    let options = start.strip_prefix("redis-server --port 7777 ").unwrap().strip_suffix(" --save ''").unwrap();
    let copy = Server::start(&format!("--dir {} {options}", bench.0.path().display()));
    let restore =
        restore.replace("7777", &copy.port.to_string()).replace("NEW 6379", &format!("127.0.0.1 {}", new.port));
    for (name, stages) in [("grows", 1.0), ("forgets", 2.0)] {
        shell(&restore.replace("NAME", name));
        let info = [&old, &new].map(|server| bench.json(&format!("redis info {} --json", set(server, name))));
        assert!(info[0] == info[1] && common::number(&info[0], "filters") >= stages, "{name}: {info:?}");
        assert_eq!(bench.run_ok(&format!("dedup {} more", set(&new, name))).lines().count(), 10, "{name}");
    }
    assert_eq!(bench.run_ok(&format!("redis list --redis {}", new.url())).lines().count(), 3);
}

fn files_are_merged_into_existing_filters() {
    let server = Server::start("");
    let bench = Bench::new(&[("more", &common::url_lines(1000..2000)), ("all", &common::url_lines(0..2000))]);
    fill(&bench, &server.url(), "set", 1000);
    bench.run_ok("build -n 10000 -p 1e-6 --no-shrink -o more.bloom more");
    let set = format!("--redis {} --name set", server.url());
    bench.run_ok(&format!("redis upload {set} more.bloom"));
    assert_eq!(bench.run_ok(&format!("dedup {set} all")), "");
    bench.run_ok("build -n 20000 -p 1e-6 --no-shrink -o large.bloom more");
    common::assert_contains_all(&bench.run_err(&format!("redis upload {set} large.bloom")), &["choose another name"]);
    bench.run_ok("dedup -s grown.bloom more -o grown");
    common::assert_contains_all(
        &bench.run_err(&format!("redis upload {set} grown.bloom")),
        &["grown.bloom", "fixed size"],
    );
}

/// Adds these members to a set.
fn add_members(server: &Server, set: &str, members: &[String]) {
    for portion in members.chunks(5000) {
        redis::cmd("SADD").arg(set).arg(portion).exec(&mut server.client().unwrap()).unwrap();
    }
}

fn a_set_is_imported() {
    let server = Server::start("");
    let bench = Bench::new(&[("all", &common::url_lines(0..20_000)), ("more", b"20000\n")]);
    let set = format!("--redis {} --name set", server.url());
    let members: Vec<String> = (0..20_000).map(|number| format!("https://example.org/{number}")).collect();
    add_members(&server, "visited", &members);
    assert_eq!(
        bench.run_ok(&format!("redis import {set} -n 30000 --set visited")),
        "20000 keys read, 20000 of them new\n"
    );
    assert_eq!(bench.run_ok(&format!("dedup {set} all more")), "20000\n");
    // A second import adds nothing.
    assert_eq!(bench.run_ok(&format!("redis import {set} --set visited")), "20000 keys read, 0 of them new\n");
    // Members in hexadecimal digits denote bytes.
    add_members(&server, "digits", &["6162".into(), "FF0a".into()]);
    let hex = format!("--redis {} --name hex", server.url());
    assert_eq!(bench.run_ok(&format!("redis import {hex} --hex --set digits")), "2 keys read, 2 of them new\n");
    bench.write("bytes", b"ab\n\xff\n");
    assert_eq!(bench.run_ok(&format!("check {hex} bytes")), "ab\n");
    for (options, expected) in [
        ("--set none", &["no set \"none\"", "--set"][..]),
        ("--set cbf:{set:meta}", &["cbf:{set:meta}", "does not hold a set"]),
        ("--hex --set visited", &["is not a key in hexadecimal digits", "leave out --hex"]),
        ("--set visited all", &["cannot be used with"]),
    ] {
        common::assert_contains_all(&bench.run_err(&format!("redis import {hex} {options}")), expected);
    }
}

/// The set and one of the filter's shards are on different nodes.
fn a_set_of_a_cluster_is_imported() {
    let cluster = Cluster::start(3, false);
    let bench = Bench::new(&[("all", &common::url_lines(0..10_000))]);
    let set = format!("--redis {} --name set", cluster.url());
    let members: Vec<String> = (0..10_000).map(|number| format!("https://example.org/{number}")).collect();
    for visited in ["a", "b", "{c}d", "e"] {
        add_members(&cluster.nodes[cluster.slot_and_primary(visited).1], visited, &members);
        bench.run_ok(&format!("redis import {set} -n 20000 --set {visited}"));
        assert_eq!(bench.run_ok(&format!("dedup {set} all")), "");
        bench.run_ok(&format!("redis delete {set}"));
    }
}

fn lines_are_imported() {
    let server = Server::start("");
    let bench =
        Bench::new(&[("all", &common::url_lines(0..10_000)), ("digits", b"6162\n6364"), ("plain", b"ab\ncd\nxy\n")]);
    let set = format!("--redis {} --name set", server.url());
    bench.run_ok("dedup -o half.gz all");
    assert_eq!(bench.run_ok(&format!("redis import {set} -n 20000 half.gz")), "10000 keys read, 10000 of them new\n");
    assert_eq!(bench.run_ok(&format!("dedup {set} all")), "");
    assert_eq!(bench.run_ok(&format!("redis import {set} --hex digits")), "2 keys read, 2 of them new\n");
    assert_eq!(bench.run_ok(&format!("dedup {set} plain")), "xy\n");
    common::assert_contains_all(&bench.run_err(&format!("redis import {set} --hex plain")), &["\"xy\"", "hexadecimal"]);
    common::assert_contains_all(&bench.run_err(&format!("redis import {set} missing")), &["cannot open", "missing"]);
}

fn a_filter_is_watched() {
    let server = Server::start("--maxmemory 1gb --maxmemory-policy noeviction");
    let bench = Bench::new(&[]);
    fill(&bench, &server.url(), "set", 1000);
    let set = format!("--redis {} --name set", server.url());
    let start = |options: &str| {
        let mut child = bench.command(&format!("redis watch {set} --every 200ms{options}")).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        (child, lines)
    };
    let (mut child, mut lines) = start(" --json");
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap()).unwrap();
    let first = next();
    assert_eq!((&first["keys_per_second"], &first["claims_per_second"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (common::number(&first, "max_bytes"), common::number(&first, "evicted_keys")),
        (f64::from(1 << 30), 0.0)
    );
    assert!(common::number(&first, "used_bytes") > 0.0, "{first}");
    assert_eq!(first["nodes"][0]["node"], format!("127.0.0.1:{}", server.port));
    bench.write("more", &common::url_lines(1000..3000));
    bench.run_ok(&format!("dedup {set} -o out-more more"));
    let mut claims = 0.0;
    let last = loop {
        let line = next();
        claims += common::number(&line, "claims_per_second");
        if common::number(&line, "estimated_keys") > 2900.0 {
            break line;
        }
    };
    assert!(claims > 0.0 && common::number(&last, "fill") > common::number(&first, "fill"), "{last}");
    assert!(common::number(&last, "fpr") > common::number(&first, "fpr"), "{last}");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (mut child, mut lines) = start("");
    common::assert_contains_all(&lines.next().unwrap(), &["fill", "keys/s", "claims/s", "evicted"]);
    common::assert_contains_all(&lines.next().unwrap(), &[" %", " MiB of 1.00 GiB"]);
    // The command ends when its filter is removed.
    server.execute::<()>("FLUSHALL");
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

/// A filter is saved during inserts and restored on an empty server.
fn filters_in_use_are_copied_completely() {
    let server = Server::start("");
    let bench = Bench::new(&[("in", &common::url_lines(0..LINES))]);
    let set = format!("--redis {} --name set", server.url());
    let mut run = bench.command(&format!("dedup {set} {SIZE} --chunk-size 4096 -j 1 -o out in")).spawn().unwrap();
    wait_until("lines are printed", || std::fs::read(bench.path("out")).is_ok_and(|out| out.len() > 20_000));
    let before = bench.read("out");
    bench.run_ok(&format!("redis download {set} -o copy.bloom"));
    assert!(run.wait().unwrap().success());
    let lines = before.iter().filter(|&&byte| byte == b'\n').count();
    bench.write("before", &before[..before.iter().rposition(|&byte| byte == b'\n').unwrap() + 1]);
    assert_eq!(bench.run_ok("check -s copy.bloom --total before"), format!("{lines}\n"));
    server.execute::<()>("FLUSHALL");
    bench.run_ok(&format!("redis upload {set} copy.bloom"));
    assert_eq!(bench.run_ok(&format!("dedup {set} {SIZE} before")), "");
    // At most the lines after the start of the copy are printed again, and no line is lost.
    let rest = bench.run_ok(&format!("dedup {set} {SIZE} in")).lines().count();
    assert!(rest <= LINES as usize - lines, "{rest}");
}

fn stats_report_the_servers_of_a_run() {
    let server = Server::start("");
    let proxy = Proxy::start(server.port, 5);
    let bench = Bench::new(&[]);
    let line = format!("dedup --redis {} --name set {SIZE} --stats=json --stats-every 200ms -o out", proxy.url());
    let mut child = bench.command(&line).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut stderr_lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut next = || serde_json::from_str::<Value>(&stderr_lines.next().unwrap()).unwrap();
    input.write_all(&common::url_lines(0..LINES)).unwrap();
    let first = loop {
        let figures = next();
        assert_eq!(figures["running"], true);
        if figures["batches"] != 0 {
            break figures;
        }
    };
    let [mean, slowest] = ["mean_batch_seconds", "slowest_batch_seconds"].map(|name| common::number(&first, name));
    assert!(mean > 0.0 && mean <= slowest, "{first}");
    assert_eq!((&first["uncertain"], &first["sent_again"]), (&Value::from(0), &Value::from(0)));
    let last = loop {
        let figures = next();
        if figures["batches"] == 0 && common::number(&figures, "fill") > 0.0 {
            break figures;
        }
    };
    // No batch was sent since the previous line.
    assert_eq!(last["mean_batch_seconds"], Value::Null);
    proxy.break_connections(true);
    // After each break, the connection is opened again, so that a few lines take seconds. A pipe may hold all that is written.
    for i in 1.. {
        if i < 40 {
            let lines = LINES + 4000 * i;
            input.write_all(&common::url_lines(lines..lines + 4000)).unwrap();
        }
        let figures = next();
        if figures["sent_again"] != 0 {
            break;
        }
        assert!(i < 1000, "{figures}");
    }
    proxy.break_connections(false);
    drop(input);
    let end: Vec<Value> = stderr_lines.filter_map(|line| serde_json::from_str(&line).ok()).collect();
    let end = end.last().unwrap();
    assert!(end["running"].is_null() && common::number(end, "sent_again") > 0.0, "{end}");
    assert!(child.wait().unwrap().success());
    common::assert_contains_all(&bench.run_err("dedup --stats --stats-every 1s in"), &["--redis"]);
    let line = format!("dedup --redis {} --name set --stats-every 1s in", server.url());
    common::assert_contains_all(&bench.run_err(&line), &["--stats"]);
}

fn the_bar_shows_the_servers_of_a_run() {
    let server = Server::start("");
    let bench = Bench::new(&[]);
    let fifo = bench.fifo("in");
    let run = format!(
        "stty rows 24 cols 200; exec {} dedup --redis {} --name set {SIZE} --stats --stats-every 100ms -o out in",
        env!("CARGO_BIN_EXE_bloomline"),
        server.url()
    );
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &run, "/dev/null"]).current_dir(bench.0.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = terminal.spawn().unwrap();
    let mut shown = child.stdout.take().unwrap();
    let mut input = std::fs::File::options().write(true).open(fifo).unwrap();
    let mut screen = Vec::new();
    let mut see = |wanted: &str| {
        let mut bytes = [0; 4096];
        loop {
            if String::from_utf8_lossy(&screen).contains(wanted) {
                screen.clear();
                return;
            }
            let read = shown.read(&mut bytes).unwrap();
            assert!(read > 0, "{wanted} is not in {}", String::from_utf8_lossy(&screen));
            screen.extend_from_slice(&bytes[..read]);
        }
    };
    input.write_all(&common::url_lines(0..LINES)).unwrap();
    see("ms a batch");
    see("% full");
    // The bar shows a server that does not answer.
    server.signal("STOP");
    // The write may block until the server continues.
    let more = thread::spawn(move || input.write_all(&common::url_lines(LINES..2 * LINES)).unwrap());
    see("waits ");
    server.signal("CONT");
    see("shared ");
    more.join().unwrap();
    let mut rest = Vec::new();
    shown.read_to_end(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&rest));
}
