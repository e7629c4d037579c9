//! `Wire`: a connection that blocks the thread, for an answer at a time and not for longer than it may.
//!
//! The client crate's own connection takes a system call that a signal interrupts for a failure, and then skips an
//! answer. A socket with a time-out is interrupted by every signal, and when a process that was stopped goes on. Its
//! time-out also begins anew with each byte.

use crate::answers;
use crate::packed::{Packed, Sink};
use crate::server::{Ending, RedisServer};
use crate::topology::Node;
use redis::{Cmd, ConnectionAddr, ErrorKind, RedisError, RedisResult, Value, cmd};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, ErrorKind::TimedOut, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long a system call waits. Then time is looked at, and whether the caller wants an end.
const TICK: Duration = Duration::from_millis(100);

/// Bytes to read at once, at least.
const READ: usize = 1 << 16;

/// Bytes of an answer, at most. The longest that is asked for is a mebibyte of blocks.
const ANSWER: usize = 1 << 26;

/// A socket, or TLS over one.
trait Stream: Read + Write + Send + Sync {}

impl<S: Read + Write + Send + Sync> Stream for S {}

pub(crate) struct Wire {
    stream: Box<dyn Stream>,
    /// What came and was not taken.
    came: Came,
    ending: Ending,
    timeout: Duration,
}

impl Wire {
    /// Connects, logs in, and makes sure that the server takes the connection.
    pub(crate) fn connect(server: &RedisServer, node: &Node, readonly: bool) -> RedisResult<Self> {
        let client = server.client(node)?;
        let info = client.get_connection_info();
        let timeout = server.connect_timeout;
        if server.ending.is_over() {
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
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(TICK))?;
                Box::new(stream)
            }
            other => return Err(invalid(&format!("no connection to {other} is possible"))),
        };
        let mut wire = Self { stream, came: Came::default(), ending: server.ending.clone(), timeout };
        let settings = info.redis_settings();
        let mut greeting = Vec::new();
        if let Some(password) = settings.password() {
            let mut auth = cmd("AUTH");
            settings.username().into_iter().for_each(|user| _ = auth.arg(user));
            greeting.push(("AUTH", auth.arg(password).take()));
        }
        if settings.db() != 0 {
            greeting.push(("SELECT", cmd("SELECT").arg(settings.db()).take()));
        }
        if readonly {
            // Primaries accept it too.
            greeting.push(("READONLY", cmd("READONLY")));
        }
        // A server that has too many clients says so in the place of the first answer, and closes the connection.
        greeting.push(("PING", cmd("PING")));
        for (name, command) in greeting {
            let Value::ServerError(error) = wire.ask(&command)? else { continue };
            if error.details().is_some_and(|details| details.contains("max number of clients")) {
                return Err(io::Error::other("it has as many clients as it takes (maxclients)").into());
            }
            match name {
                "AUTH" => return Err((ErrorKind::AuthenticationFailed, "Password authentication failed").into()),
                // It would hang up in the middle of the claims, and leave them in doubt.
                "PING" if error.code() == "NOAUTH" => return Err(RedisError::from(error)),
                // It is there: what it refuses, it will refuse again where it matters.
                "PING" => {}
                _ => return Err(RedisError::from(error)),
            }
        }
        wire.timeout = server.response_timeout;
        Ok(wire)
    }

    /// Sends a command and receives its answer.
    pub(crate) fn ask(&mut self, command: &Cmd) -> RedisResult<Value> {
        let mut packed = Packed::default();
        packed.command(command);
        self.send(&packed.0)?;
        self.receive()
    }

    /// Sends commands.
    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> RedisResult<()> {
        let mut patient = Patient::new(&mut *self.stream, &self.ending, self.timeout);
        while !bytes.is_empty() {
            let sent = patient.wait("the command", |stream| match stream.write(bytes)? {
                // TLS takes nothing while its buffer is full.
                0 => Err(io::ErrorKind::WouldBlock.into()),
                sent => Ok(sent),
            })?;
            bytes = &bytes[sent..];
            // The server takes commands, so it is there.
            patient.spent = Duration::ZERO;
        }
        Ok(patient.wait("the command", |stream| stream.flush())?)
    }

    /// Receives the next answer.
    pub(crate) fn receive(&mut self) -> RedisResult<Value> {
        let mut patient = Patient::new(&mut *self.stream, &self.ending, self.timeout);
        loop {
            if let Some((answer, length)) = answers::first(self.came.bytes())? {
                self.came.start += length;
                return Ok(answer);
            }
            if self.came.read(&mut patient)? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

/// Bytes that came.
#[derive(Default)]
struct Came {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Came {
    fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Reads more of them.
    fn read(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > ANSWER {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer is longer than any that was asked for"));
        }
        // An answer that is long is read in ever longer pieces.
        let wanted = (2 * self.end).max(READ);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        let read = stream.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read)
    }
}

/// A stream for as long as an answer may take.
struct Patient<'a> {
    stream: &'a mut dyn Stream,
    ending: &'a Ending,
    limit: Duration,
    spent: Duration,
}

impl<'a> Patient<'a> {
    fn new(stream: &'a mut dyn Stream, ending: &'a Ending, limit: Duration) -> Self {
        Self { stream, ending, limit, spent: Duration::ZERO }
    }

    /// Does a system call until it does something.
    fn wait<T>(&mut self, what: &str, mut call: impl FnMut(&mut dyn Stream) -> io::Result<T>) -> io::Result<T> {
        loop {
            let began = Instant::now();
            let result = call(self.stream);
            // A process that was stopped did not wait meanwhile: the answer may be there.
            self.spent += began.elapsed().min(2 * TICK);
            match result {
                Err(error) if is_interruption(&error) => {}
                result => return result,
            }
            if self.spent >= self.limit || self.ending.is_over() {
                return Err(timed_out(what));
            }
        }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // An answer whose bytes come one by one has no more time than another.
        if self.spent >= self.limit || self.ending.is_over() {
            return Err(timed_out("the answer"));
        }
        self.wait("the answer", |stream| stream.read(buffer))
    }
}

/// Whether a call may do its work when it is done again.
fn is_interruption(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | TimedOut)
}

fn timed_out(what: &str) -> io::Error {
    io::Error::new(TimedOut, format!("{what} timed out"))
}

/// What is wrong with the address or the certificates: waiting does not mend it.
fn invalid(error: &impl ToString) -> RedisError {
    (ErrorKind::InvalidClientConfig, "the connection is not possible", error.to_string()).into()
}

fn connect_tcp(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TICK))?;
                stream.set_write_timeout(Some(TICK))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_an_end_does_not_fill_the_memory() {
        let mut came = Came::default();
        let error = loop {
            match came.read(&mut io::repeat(b'*')) {
                Ok(read) => assert!(read > 0 && came.bytes().len() <= 4 * ANSWER, "{}", came.bytes().len()),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
