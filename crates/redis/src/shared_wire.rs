//! `SharedWire`: a connection that tasks share. Answers arrive in the order of the commands.
//!
//! One task writes and another reads, so queued commands are sent and their answers are received even if the caller does not wait
//! for them any more. The shared connection of the `redis` crate stores each command as an object, returns all answers of a
//! pipeline or none, and does not limit the memory of an answer.

use crate::answers::ReadBuffer;
use crate::exchange::{Failure, NodeAnswers};
use crate::handshake;
use crate::packed::{CommandSink, PackedCommands};
use crate::server::RedisServer;
use crate::topology::Node;
use crate::wire::{invalid, timed_out};
use redis::{Cmd, ConnectionAddr, RedisResult, Value};
use rustls::pki_types::ServerName;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;

/// A socket, or TLS over one.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Commands to be sent.
struct Request {
    bytes: Vec<u8>,
    expected: ExpectedAnswers,
}

/// The answers to a request that was sent.
struct ExpectedAnswers {
    count: usize,
    deadline: Instant,
    sender: oneshot::Sender<NodeAnswers>,
}

/// A connection that tasks share. Dropping the last clone closes it, once all commands are answered.
#[derive(Clone)]
pub(crate) struct SharedWire {
    requests: mpsc::UnboundedSender<Request>,
    timeout: Duration,
}

/// The future answers to queued commands.
pub(crate) struct PendingAnswers(Option<oneshot::Receiver<NodeAnswers>>);

impl PendingAnswers {
    pub(crate) async fn receive(self) -> NodeAnswers {
        let lost = |sent| {
            let error = io::Error::from(io::ErrorKind::ConnectionReset).into();
            NodeAnswers { answers: Vec::new(), failure: Some(Failure { error, sent }) }
        };
        match self.0 {
            // The connection or the runtime ended before it answered.
            Some(receiver) => receiver.await.unwrap_or_else(|_| lost(true)),
            None => lost(false),
        }
    }
}

impl SharedWire {
    /// Connects, logs in, and checks that the server accepts the connection.
    pub(crate) async fn connect(server: &RedisServer, node: &Node, readonly: bool) -> RedisResult<Self> {
        let connected = timeout(server.connect_timeout, Self::connect_unbounded(server, node, readonly)).await;
        connected.unwrap_or_else(|_| Err(timed_out("the connection").into()))
    }

    async fn connect_unbounded(server: &RedisServer, node: &Node, readonly: bool) -> RedisResult<Self> {
        let info = server.info(node);
        let stream: Box<dyn Stream> = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Box::new(connect_tcp(host, *port).await?),
            ConnectionAddr::TcpTls { host, port, insecure: false, .. } => {
                let name = ServerName::try_from(host.as_str()).map_err(|error| invalid(&error))?.to_owned();
                let stream = connect_tcp(host, *port).await?;
                Box::new(TlsConnector::from(server.tls()).connect(name, stream).await?)
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => Box::new(UnixStream::connect(path).await?),
            other => return Err(invalid(&format!("no connection to {other} is possible"))),
        };
        let (read_half, write_half) = split(stream);
        let (requests, request_receiver) = mpsc::unbounded_channel();
        let (expected_sender, expected_receiver) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(write_half, request_receiver, expected_sender));
        tokio::spawn(async move {
            read(read_half, expected_receiver).await;
            // No task receives the answers to the remaining commands.
            writer.abort();
        });
        let wire = Self { requests, timeout: server.response_timeout };
        for (name, command) in handshake::commands(&info, readonly) {
            handshake::check(name, wire.ask(&command).await?)?;
        }
        Ok(wire)
    }

    /// True if the connection is known to be broken.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Queues commands to be sent.
    pub(crate) fn send(&self, bytes: Vec<u8>, count: usize) -> PendingAnswers {
        let (sender, receiver) = oneshot::channel();
        let deadline = Instant::now() + self.timeout.min(NO_TIMEOUT);
        let request = Request { bytes, expected: ExpectedAnswers { count, deadline, sender } };
        PendingAnswers(self.requests.send(request).is_ok().then_some(receiver))
    }

    /// Sends a command and receives its answer.
    pub(crate) async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let mut packed = PackedCommands::default();
        packed.command(command);
        let NodeAnswers { mut answers, failure } = self.send(packed.0, 1).receive().await;
        failure.map_or_else(|| Ok(answers.remove(0)), |failure| Err(failure.error))
    }
}

/// A time-out that no wait reaches, short enough to be added to an `Instant`.
const NO_TIMEOUT: Duration = Duration::from_secs(1 << 30);

async fn write(
    mut stream: WriteHalf<Box<dyn Stream>>,
    mut requests: mpsc::UnboundedReceiver<Request>,
    expected_sender: mpsc::UnboundedSender<ExpectedAnswers>,
) {
    while let Some(Request { bytes, expected }) = requests.recv().await {
        // Before the commands are sent, because answers to the first may arrive while the last are written.
        if expected_sender.send(expected).is_err()
            || stream.write_all(&bytes).await.is_err()
            || stream.flush().await.is_err()
        {
            return;
        }
    }
}

/// Receives answers until one fails. The remaining expected answers then fail too.
async fn read(mut stream: ReadHalf<Box<dyn Stream>>, mut expected: mpsc::UnboundedReceiver<ExpectedAnswers>) {
    let mut buffer = ReadBuffer::default();
    while let Some(ExpectedAnswers { count, deadline, sender }) = expected.recv().await {
        let mut answers = Vec::with_capacity(count);
        let received = timeout_at(deadline, receive(&mut stream, &mut buffer, count, &mut answers)).await;
        let error = received.unwrap_or_else(|_| Err(timed_out("the answer").into())).err();
        let failed = error.is_some();
        let failure = error.map(|error| Failure { error, sent: true });
        // The receiver may have been dropped.
        _ = sender.send(NodeAnswers { answers, failure });
        if failed {
            return;
        }
    }
}

async fn receive(
    stream: &mut ReadHalf<Box<dyn Stream>>,
    buffer: &mut ReadBuffer,
    count: usize,
    answers: &mut Vec<Value>,
) -> RedisResult<()> {
    while answers.len() < count {
        match buffer.next()? {
            Some(answer) => answers.push(answer),
            None => match stream.read(buffer.space()?).await? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                read => buffer.filled(read),
            },
        }
    }
    Ok(())
}

async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
