//! The servers of tests, each in a folder of its own, which is removed with the server.

use crate::harness;
use bloomline_redis::{RedisFilterError, RedisServer};
use redis::{Client, Cmd, Connection, FromRedisValue};
use std::env;
use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A time-out for events that are certain to happen, on any machine.
pub const TIMEOUT: Duration = Duration::from_secs(300);

/// Slots of a cluster.
const SLOTS: usize = 16384;

/// The program that a test needs; without it the test is ignored, or fails if the program is required.
pub fn require_program(program: Option<&'static str>, name: &'static str) -> &'static str {
    program.unwrap_or_else(|| {
        assert!(env::var_os("BLOOMLINE_REQUIRE_REDIS").is_none_or(|value| value != "1"), "no {name}");
        harness::ignored(name)
    })
}

/// The first of these programs that can be run.
pub fn find_program(names: &[&'static str], version: &str) -> Option<&'static str> {
    let runs = |name: &&str| {
        let mut command = Command::new(name);
        command.arg(version).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    names.iter().copied().find(runs)
}

fn redis_server() -> &'static str {
    static FOUND: OnceLock<Option<&str>> = OnceLock::new();
    let find = || match env::var("BLOOMLINE_REDIS_SERVER") {
        Ok(path) => Some(&*path.leak()),
        Err(_) => find_program(&["redis-server", "valkey-server"], "--version"),
    };
    require_program(*FOUND.get_or_init(find), "redis-server")
}

/// A port that is free, as is the one 10,000 above it, which cluster nodes use among each other. It is below the ports
/// that the system gives to clients, and reserved against other test processes by a UDP socket of that number: a server
/// that restarts must find its port free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let start = (process::id() % 100) as u16 * 97;
    loop {
        let port = 10_000 + (start + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000;
        let Ok(taken) = UdpSocket::bind(("127.0.0.1", port)) else { continue };
        if [port, port + 10_000].iter().all(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            TAKEN.lock().unwrap().push(taken);
            return port;
        }
    }
}

/// Returns the address of a server, with time-outs that are not reached on any machine.
pub fn address(urls: &str) -> RedisServer {
    let server = RedisServer::new(urls).unwrap();
    server.connect_timeout(TIMEOUT).response_timeout(TIMEOUT).retry_timeout(TIMEOUT)
}

/// Waits until a condition holds. Fails after `TIMEOUT`.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < TIMEOUT, "never happened: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Repeats a call of a client with short time-outs, which may expire on a busy machine, until it succeeds.
#[track_caller]
pub fn retry_until_answered<T>(mut call: impl FnMut() -> Result<T, RedisFilterError>) -> T {
    let mut answer = None;
    wait_until("it is answered", || {
        answer = call().ok();
        answer.is_some()
    });
    answer.unwrap()
}

/// A command from its words.
pub fn command(line: &str) -> Cmd {
    let mut command = Cmd::new();
    line.split(' ').for_each(|word| _ = command.arg(word));
    command
}

/// A server that ends with the test.
pub struct Server {
    arguments: Vec<String>,
    pub folder: TempDir,
    pub port: u16,
    child: Child,
}

impl Server {
    /// Starts one with these options.
    pub fn start(options: &str) -> Self {
        let server = Self::launch(options);
        server.await_answer();
        server
    }

    /// Starts one and does not wait until it answers.
    pub fn launch(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        // Replicas get their copy at once, and not after some seconds in which others may ask for it too.
        let usual = ["--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"];
        let mut arguments = usual.map(str::to_owned).to_vec();
        if !options.contains("--port") {
            arguments.extend(["--port".to_owned(), port.to_string()]);
        }
        let options = options.replace("PORT", &port.to_string());
        arguments.extend(options.split(' ').filter(|word| !word.is_empty()).map(str::to_owned));
        let child = spawn(&arguments, folder.path());
        Self { arguments, folder, port, child }
    }

    /// Starts a Sentinel for a primary, which it calls `main`.
    pub fn sentinel(primary: &Server, options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let watched = format!("sentinel monitor main 127.0.0.1 {} 2", primary.port);
        // A server that is slow is not down. Tests tell Sentinels to choose another primary.
        let times = "sentinel down-after-milliseconds main 600000\nsentinel failover-timeout main 10000";
        let lines = format!("port {port}\nbind 127.0.0.1\n{watched}\n{times}\n{options}\n");
        // The Sentinel writes its state to this file.
        fs::write(folder.path().join("sentinel.conf"), lines).unwrap();
        let arguments = ["sentinel.conf", "--sentinel"].map(str::to_owned).to_vec();
        let child = spawn(&arguments, folder.path());
        let server = Self { arguments, folder, port, child };
        server.await_answer();
        server
    }

    pub fn await_answer(&self) {
        let started = Instant::now();
        loop {
            let answer = self.client().and_then(|mut connection| redis::cmd("PING").query::<String>(&mut connection));
            match answer {
                Err(error) if error.code() != Some("NOAUTH") => {
                    let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                    assert!(started.elapsed() < TIMEOUT, "{error}\n{}", log());
                    thread::sleep(Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }

    /// Advances the clock for a window: all its generations become older by these seconds.
    pub fn advance_clock(&self, name: &str, seconds: u64) {
        let list = format!("cbf:{{{name}:stages}}");
        let mut fields = self.execute::<Vec<String>>(&format!("HGETALL {list}"));
        for pair in fields.chunks_mut(2) {
            let (line, opened) = pair[1].split_once(" opened=").unwrap();
            pair[1] = format!("{line} opened={}", opened.parse::<u64>().unwrap() - seconds);
        }
        redis::cmd("HSET").arg(list).arg(fields).exec(&mut self.client().unwrap()).unwrap();
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn address(&self) -> RedisServer {
        address(&self.url())
    }

    pub fn client(&self) -> redis::RedisResult<Connection> {
        Client::open(self.url())?.get_connection_with_timeout(TIMEOUT)
    }

    /// Executes a command, and returns its result.
    #[track_caller]
    pub fn execute<T: FromRedisValue>(&self, line: &str) -> T {
        let answer = self.client().and_then(|mut connection| command(line).query(&mut connection));
        answer.unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Opens connections until the server accepts no more clients.
    pub fn fill_connections(&self) -> Vec<Connection> {
        let answered = |mut connection: Connection| redis::cmd("PING").exec(&mut connection).map(|()| connection);
        let crowd: Vec<_> = std::iter::from_fn(|| self.client().and_then(answered).ok()).collect();
        assert!(!crowd.is_empty());
        crowd
    }

    /// Returns a number of `INFO`, or 0 if it is missing.
    pub fn info_number(&self, name: &str) -> u64 {
        let info: String = self.execute("INFO everything");
        let figure = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix([':', '=']));
        let digits = |figure: &str| figure.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned);
        figure.and_then(digits).map_or(0, |digits| digits.parse().unwrap())
    }

    /// Returns the number of bits that are set in the first shard of the filter `f`.
    pub fn count_set_bits(&self) -> u64 {
        self.execute("BITCOUNT cbf:{f:0}")
    }

    /// Returns the number of executions of a command.
    pub fn calls(&self, command: &str) -> u64 {
        self.info_number(&format!("cmdstat_{command}:calls"))
    }

    /// Returns the ids of blocked clients.
    pub fn blocked_clients(&self) -> Vec<String> {
        let clients: String = self.execute("CLIENT LIST");
        let field =
            |line: &str, name: &str| line.split(' ').find_map(|field| field.strip_prefix(name).map(str::to_owned));
        let waits = |line: &&str| field(line, "flags=").is_some_and(|flags| flags.contains('b'));
        clients.lines().filter(waits).map(|line| field(line, "id=").unwrap()).collect()
    }

    /// Waits until a client is blocked.
    pub fn await_blocked_client(&self) {
        wait_until("a client waits", || !self.blocked_clients().is_empty());
    }

    /// Unblocks clients that wait for replicas.
    pub fn unblock_clients(&self) {
        for client in self.blocked_clients() {
            self.execute::<()>(&format!("CLIENT UNBLOCK {client}"));
        }
    }

    /// Waits until the replica has the data of its primary.
    pub fn await_replication(&self) {
        let follows = || self.execute::<String>("INFO replication").contains("master_link_status:up");
        wait_until("a replica follows", follows);
    }

    /// Kills the server, as in a crash.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Restarts the server after `kill`, and does not wait until it answers.
    pub fn relaunch(&mut self) {
        self.child = spawn(&self.arguments, self.folder.path());
    }

    /// Sends a signal to the server, such as `STOP` or `CONT`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn spawn(arguments: &[String], folder: &Path) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let mut command = Command::new(redis_server());
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(log).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// A primary with a replica.
pub fn primary_and_replica(options: &str) -> [Server; 2] {
    let primary = Server::start(options);
    let replica = Server::start(&format!("{options} --replicaof 127.0.0.1 {}", primary.port));
    replica.await_replication();
    [primary, replica]
}

/// A cluster that ends with the test.
pub struct Cluster {
    pub nodes: Vec<Server>,
    primaries: usize,
}

impl Cluster {
    /// Every node writes to its file before it answers: after a crash of the program, its data is what was
    /// acknowledged. With `everysec` an answer may go out before the command is written.
    ///
    /// A node that is slow is not down.
    const OPTIONS: &str = "--cluster-enabled yes --cluster-node-timeout 30000 --appendonly yes --appendfsync always";

    /// Starts primaries, each with a replica if `replicas` is true.
    pub fn start(primaries: usize, replicas: bool) -> Self {
        let count = if replicas { 2 * primaries } else { primaries };
        let nodes: Vec<_> = (0..count).map(|_| Server::launch(Self::OPTIONS)).collect();
        nodes.iter().for_each(Server::await_answer);
        for (i, node) in nodes.iter().enumerate() {
            node.execute::<()>(&format!("CLUSTER SET-CONFIG-EPOCH {}", i + 1));
            if i < primaries {
                let slots = (SLOTS * i / primaries..SLOTS * (i + 1) / primaries).map(|slot| slot.to_string());
                node.execute::<()>(&format!("CLUSTER ADDSLOTS {}", slots.collect::<Vec<_>>().join(" ")));
            }
            for other in &nodes[..i] {
                node.execute::<()>(&format!("CLUSTER MEET 127.0.0.1 {}", other.port));
            }
        }
        let cluster = Self { nodes, primaries };
        cluster.await_all_nodes_known();
        for (i, node) in cluster.nodes.iter().enumerate().skip(primaries) {
            node.execute::<()>(&format!("CLUSTER REPLICATE {}", cluster.id(i - primaries)));
        }
        cluster.await_up();
        cluster.nodes[primaries..].iter().for_each(Server::await_replication);
        cluster
    }

    /// Lets the other nodes treat a node as failed after two seconds, so that its slots are not served.
    pub fn shorten_node_timeout(&self) {
        self.nodes.iter().for_each(|node| node.execute("CONFIG SET cluster-node-timeout 2000"));
    }

    /// Waits until all nodes know each other.
    fn await_all_nodes_known(&self) {
        let known = format!("cluster_known_nodes:{}\r\n", self.nodes.len());
        for node in &self.nodes {
            wait_until("all know all", || node.execute::<String>("CLUSTER INFO").contains(&known));
        }
    }

    /// Waits until every node reports that all slots are served.
    pub fn await_up(&self) {
        for node in &self.nodes {
            node.await_answer();
            wait_until("the cluster is up", || node.execute::<String>("CLUSTER INFO").contains("cluster_state:ok"));
        }
    }

    pub fn url(&self) -> String {
        let urls: Vec<String> = self.nodes.iter().map(Server::url).collect();
        urls.join(",")
    }

    pub fn address(&self) -> RedisServer {
        address(&self.url())
    }

    fn id(&self, node: usize) -> String {
        self.nodes[node].execute("CLUSTER MYID")
    }

    /// Returns the slot of a key and the index of its primary.
    pub fn slot_and_primary(&self, key: &str) -> (u16, usize) {
        let slot: u16 = self.nodes[0].execute(&format!("CLUSTER KEYSLOT {key}"));
        let exists = command(&format!("EXISTS {key}"));
        let holds = |node: &Server| node.client().and_then(|mut connection| exists.exec(&mut connection)).is_ok();
        (slot, self.nodes[..self.primaries].iter().position(holds).expect("a node serves it"))
    }

    /// Lets a replica become the primary once it has all that its primary has.
    pub fn fail_over(&self, replica: &Server) {
        let is_primary = || replica.execute::<String>("INFO replication").contains("role:master");
        let mut requested = None::<Instant>;
        wait_until("it takes over", || {
            // A node gives up an attempt after five seconds.
            if requested.is_none_or(|requested| requested.elapsed() > Duration::from_secs(6)) {
                // A node that is the primary already refuses the command.
                _ = replica.client().and_then(|mut connection| command("CLUSTER FAILOVER").exec(&mut connection));
                requested = Some(Instant::now());
            }
            is_primary()
        });
    }

    /// Moves a slot while clients work, in the steps of the specification of clusters. `meanwhile` is a client that uses the keys
    /// of the slot while the target has the keys and the source still has the slot.
    pub fn migrate(&self, slot: u16, from: usize, to: usize, meanwhile: impl FnOnce()) {
        let (source, target) = (self.id(from), self.id(to));
        self.nodes[to].execute::<()>(&format!("CLUSTER SETSLOT {slot} IMPORTING {source}"));
        self.nodes[from].execute::<()>(&format!("CLUSTER SETSLOT {slot} MIGRATING {target}"));
        let asking_calls = self.nodes[to].calls("asking");
        loop {
            let keys: Vec<String> = self.nodes[from].execute(&format!("CLUSTER GETKEYSINSLOT {slot} 10"));
            if keys.is_empty() {
                break;
            }
            let mut migrate = command(&format!("MIGRATE 127.0.0.1 {}", self.nodes[to].port));
            migrate.arg("").arg(0).arg(10_000).arg("KEYS").arg(keys);
            migrate.exec(&mut self.nodes[from].client().unwrap()).unwrap();
        }
        meanwhile();
        assert!(self.nodes[to].calls("asking") > asking_calls, "no client came while the slot moved");
        for node in [to, from] {
            self.nodes[node].execute::<()>(&format!("CLUSTER SETSLOT {slot} NODE {target}"));
        }
    }
}
