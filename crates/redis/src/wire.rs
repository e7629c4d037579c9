//! `Wire`: a connection that blocks the thread until the next answer or its time-out.
//!
//! The client crate's own connection treats a system call that a signal interrupts as a failure, and then skips an
//! answer. Every signal interrupts a socket with a time-out, and so does the continuation of a stopped process. Its
//! time-out also starts again with each byte.

use crate::answers::ReadBuffer;
use crate::handshake;
use crate::packed::{CommandSink, PackedCommands};
use crate::server::{CancelToken, RedisServer};
use crate::topology::Node;
use redis::{Cmd, ConnectionAddr, ErrorKind, RedisError, RedisResult, Value};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, ErrorKind::TimedOut, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The wait of a system call, after which the time-out and the cancel token are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A socket, or TLS over one.
trait Stream: Read + Write + Send + Sync {}

impl<S: Read + Write + Send + Sync> Stream for S {}

pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    /// Received bytes that were not parsed yet.
    buffer: ReadBuffer,
    cancel: CancelToken,
    timeout: Duration,
}

impl Wire {
    /// Connects, logs in, and checks that the server accepts the connection.
    pub(crate) fn connect(server: &RedisServer, node: &Node, readonly: bool) -> RedisResult<Self> {
        let info = server.info(node);
        let timeout = server.connect_timeout;
        if server.cancel.is_cancelled() {
            return Err(timed_out("the connection").into());
        }
        let stream: Box<dyn Stream> = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Box::new(connect_tcp(host, *port, timeout)?),
            ConnectionAddr::TcpTls { host, port, insecure: false, .. } => {
                let name = ServerName::try_from(host.as_str()).map_err(|error| invalid(&error))?.to_owned();
                let session = ClientConnection::new(server.tls(), name).map_err(|error| invalid(&error))?;
                Box::new(StreamOwned::new(session, connect_tcp(host, *port, timeout)?))
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(POLL_INTERVAL))?;
                stream.set_write_timeout(Some(POLL_INTERVAL))?;
                Box::new(stream)
            }
            other => return Err(invalid(&format!("no connection to {other} is possible"))),
        };
        let mut wire = Self { stream, buffer: ReadBuffer::default(), cancel: server.cancel.clone(), timeout };
        for (name, command) in handshake::commands(&info, readonly) {
            handshake::check(name, wire.ask(&command)?)?;
        }
        wire.timeout = server.response_timeout;
        Ok(wire)
    }

    /// Sends a command and receives its answer.
    pub(crate) fn ask(&mut self, command: &Cmd) -> RedisResult<Value> {
        let mut packed = PackedCommands::default();
        packed.command(command);
        self.send(&packed.0)?;
        self.receive()
    }

    /// Sends commands.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> RedisResult<()> {
        let mut stream = DeadlineStream::new(&mut *self.stream, &self.cancel, self.timeout);
        while !bytes.is_empty() {
            let sent = stream.wait("the command", |stream| match stream.write(bytes)? {
                // TLS takes nothing while its buffer is full.
                0 => Err(io::ErrorKind::WouldBlock.into()),
                sent => Ok(sent),
            })?;
            bytes = &bytes[sent..];
            // The server accepts commands, so it is alive.
            stream.elapsed = Duration::ZERO;
        }
        Ok(stream.wait("the command", |stream| stream.flush())?)
    }

    /// Receives the next answer.
    pub(crate) fn receive(&mut self) -> RedisResult<Value> {
        let mut stream = DeadlineStream::new(&mut *self.stream, &self.cancel, self.timeout);
        loop {
            if let Some(answer) = self.buffer.next()? {
                return Ok(answer);
            }
            match stream.read(self.buffer.space()?)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                read => self.buffer.filled(read),
            }
        }
    }
}

/// A stream with a deadline for an answer.
struct DeadlineStream<'a> {
    stream: &'a mut dyn Stream,
    cancel: &'a CancelToken,
    limit: Duration,
    elapsed: Duration,
}

impl<'a> DeadlineStream<'a> {
    fn new(stream: &'a mut dyn Stream, cancel: &'a CancelToken, limit: Duration) -> Self {
        Self { stream, cancel, limit, elapsed: Duration::ZERO }
    }

    /// Repeats a system call until it succeeds.
    fn wait<T>(&mut self, subject: &str, mut call: impl FnMut(&mut dyn Stream) -> io::Result<T>) -> io::Result<T> {
        loop {
            let started = Instant::now();
            let result = call(self.stream);
            // A process that was stopped did not wait meanwhile: the answer may be there.
            self.elapsed += started.elapsed().min(2 * POLL_INTERVAL);
            match result {
                Err(error) if is_interruption(&error) => {}
                result => return result,
            }
            if self.elapsed >= self.limit || self.cancel.is_cancelled() {
                return Err(timed_out(subject));
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // An answer that arrives byte by byte has no more time than another.
        if self.elapsed >= self.limit || self.cancel.is_cancelled() {
            return Err(timed_out("the answer"));
        }
        self.wait("the answer", |stream| stream.read(buffer))
    }
}

/// True if a failed call may succeed when it is repeated.
fn is_interruption(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | TimedOut)
}

pub(crate) fn timed_out(subject: &str) -> io::Error {
    io::Error::new(TimedOut, format!("{subject} timed out"))
}

/// Returns the error for an invalid address or certificate, which a retry does not resolve.
pub(crate) fn invalid(error: &impl ToString) -> RedisError {
    (ErrorKind::InvalidClientConfig, "the connection is not possible", error.to_string()).into()
}

fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(POLL_INTERVAL))?;
                stream.set_write_timeout(Some(POLL_INTERVAL))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
