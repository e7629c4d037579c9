//! A way to a server that breaks: commands arrive, and their answers do not.

use crate::servers;
use bloomline_redis::RedisServer;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Random numbers: the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Forwards connections to a server, and breaks them.
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

struct State {
    target: AtomicU16,
    /// True if connections break, including open ones.
    breaking: AtomicBool,
    /// True if bytes arrive one by one.
    bytewise: AtomicBool,
    /// True if no more connections are accepted.
    ended: AtomicBool,
    broken_connections: AtomicU64,
    random: Mutex<Random>,
}

impl Proxy {
    /// Starts a proxy for a local server. Connections do not break at first.
    pub fn start(target: u16, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (breaking, bytewise, ended, broken_connections) = Default::default();
        let target = AtomicU16::new(target);
        let state = Arc::new(State {
            target,
            breaking,
            bytewise,
            ended,
            broken_connections,
            random: Mutex::new(Random::new(seed)),
        });
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.ended.load(Ordering::Relaxed) {
                    return;
                }
                // If the server refuses connections, the proxy closes them.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", shared.target.load(Ordering::Relaxed))) {
                    shared.forward(client, server);
                }
            }
        });
        Self { port, state }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn address(&self) -> RedisServer {
        servers::address(&self.url())
    }

    /// Forwards new connections to another server. Open ones are unchanged.
    pub fn retarget(&self, target: u16) {
        self.state.target.store(target, Ordering::Relaxed);
    }

    /// Sets whether connections break.
    pub fn break_connections(&self, breaking: bool) {
        self.state.breaking.store(breaking, Ordering::Relaxed);
    }

    /// Forwards bytes one by one from now on, ten per second.
    pub fn send_bytewise(&self) {
        self.state.bytewise.store(true, Ordering::Relaxed);
    }

    /// Returns the number of broken connections.
    pub fn broken_connections(&self) -> u64 {
        self.state.broken_connections.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    /// Forwards in threads until either side is done, or a random number of bytes went one way. Mostly these are answers: the
    /// server executes the commands, and the client gets no answer. Otherwise they are commands, and the last one is incomplete.
    fn forward(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let (commands, answers) = {
            let mut random = self.random.lock().unwrap();
            // 4096 bytes suffice to establish a connection, which clients do not retry.
            let (commands, answers) = (4096 + random.below(1 << 18), 4096 + random.below(1 << 15));
            if random.below(4) == 0 { (commands, u64::MAX) } else { (u64::MAX, answers) }
        };
        let ends = || (client.try_clone().unwrap(), server.try_clone().unwrap());
        let state = Arc::clone(self);
        let (client_end, server_end) = ends();
        thread::spawn(move || {
            if let Ok(true) = state.copy(&client_end, &server_end, commands) {
                _ = client_end.shutdown(Shutdown::Both);
            }
            // The server executes the commands that arrived.
            _ = server_end.shutdown(Shutdown::Write);
        });
        let state = Arc::clone(self);
        thread::spawn(move || {
            if let Ok(true) = state.copy(&server, &client, answers) {
                _ = client.shutdown(Shutdown::Both);
                // A server whose answers are not read would not execute the rest.
                _ = io::copy(&mut &server, &mut io::sink());
            }
            _ = client.shutdown(Shutdown::Both);
        });
    }

    /// Copies up to `limit` bytes. Returns true if it ended because of the limit.
    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream, limit: u64) -> io::Result<bool> {
        let mut buffer = vec![0; 1 << 14];
        let mut copied = 0u64;
        loop {
            let length = from.read(&mut buffer)?;
            if length == 0 {
                return Ok(false);
            }
            let left = usize::try_from(limit.saturating_sub(copied)).unwrap_or(usize::MAX);
            if self.breaking.load(Ordering::Relaxed) && left < length {
                to.write_all(&buffer[..left])?;
                self.broken_connections.fetch_add(1, Ordering::Relaxed);
                return Ok(true);
            }
            for piece in buffer[..length].chunks(if self.bytewise.load(Ordering::Relaxed) { 1 } else { length }) {
                to.write_all(piece)?;
                if self.bytewise.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(100));
                }
            }
            copied += length as u64;
        }
    }
}
