//! `SharedWire`: a connection that tasks share. Answers come in the order of the commands.
//!
//! A task that reads and one that writes serve it, so commands that were handed over are sent and their answers taken, even if nobody
//! waits for them any more. The client crate's own keeps each command as an object, waits for all answers of a portion or none, and
//! takes whatever a server sends into memory.

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
    awaited: ExpectedAnswers,
}

/// Answers to come.
struct ExpectedAnswers {
    answers: usize,
    until: Instant,
    sender: oneshot::Sender<NodeAnswers>,
}

/// A connection that tasks share. Dropping the last clone closes it, once all commands are answered.
#[derive(Clone)]
pub(crate) struct SharedWire {
    requests: mpsc::UnboundedSender<Request>,
    timeout: Duration,
}

/// The future answers to commands that were handed over.
pub(crate) struct PendingAnswers(Option<oneshot::Receiver<NodeAnswers>>);

impl PendingAnswers {
    pub(crate) async fn receive(self) -> NodeAnswers {
        let gone = |sent| {
            let error = io::Error::from(io::ErrorKind::ConnectionReset).into();
            NodeAnswers { answers: Vec::new(), failure: Some(Failure { error, sent }) }
        };
        match self.0 {
            // The connection, or the runtime, ended before it told.
            Some(receiver) => receiver.await.unwrap_or_else(|_| gone(true)),
            None => gone(false),
        }
    }
}

impl SharedWire {
    /// Connects, logs in, and makes sure that the server takes the connection.
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
        let (reading, writing) = split(stream);
        let (requests, sent) = mpsc::unbounded_channel();
        let (awaiting, awaited) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(writing, sent, awaiting));
        tokio::spawn(async move {
            read(reading, awaited).await;
            // No task takes the answers to the remaining commands.
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

    /// Hands commands over.
    pub(crate) fn send(&self, bytes: Vec<u8>, answers: usize) -> PendingAnswers {
        let (sender, receiver) = oneshot::channel();
        let until = Instant::now() + self.timeout.min(NO_TIMEOUT);
        let request = Request { bytes, awaited: ExpectedAnswers { answers, until, sender } };
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

/// A time-out beyond any wait, and short enough to be added to a clock.
const NO_TIMEOUT: Duration = Duration::from_secs(1 << 30);

async fn write(
    mut stream: WriteHalf<Box<dyn Stream>>,
    mut requests: mpsc::UnboundedReceiver<Request>,
    awaiting: mpsc::UnboundedSender<ExpectedAnswers>,
) {
    while let Some(Request { bytes, awaited }) = requests.recv().await {
        // First, for the answers may come before all commands are sent.
        if awaiting.send(awaited).is_err() || stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

/// Receives answers until one fails. All other expected answers then fail too.
async fn read(mut stream: ReadHalf<Box<dyn Stream>>, mut awaited: mpsc::UnboundedReceiver<ExpectedAnswers>) {
    let mut buffer = ReadBuffer::default();
    while let Some(ExpectedAnswers { answers: count, until, sender }) = awaited.recv().await {
        let mut answers = Vec::with_capacity(count);
        let received = timeout_at(until, receive(&mut stream, &mut buffer, count, &mut answers)).await;
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
