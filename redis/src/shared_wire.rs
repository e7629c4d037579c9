//! `SharedWire`: a connection that tasks share. Answers come in the order of the commands.
//!
//! A task that reads and one that writes serve it, so commands that were handed over are sent and their answers taken, even if nobody
//! waits for them any more. The client crate's own keeps each command as an object, waits for all answers of a portion or none, and
//! takes whatever a server sends into memory.

use crate::answers::Came;
use crate::exchange::{Failure, Outcome};
use crate::greeting;
use crate::packed::{Packed, Sink};
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
    awaited: Awaited,
}

/// Answers to come.
struct Awaited {
    answers: usize,
    until: Instant,
    taker: oneshot::Sender<Outcome>,
}

/// Its end closes the connection, once all that was handed over is answered.
#[derive(Clone)]
pub(crate) struct SharedWire {
    requests: mpsc::UnboundedSender<Request>,
    timeout: Duration,
}

/// What will come of commands that were handed over.
pub(crate) struct Answering(Option<oneshot::Receiver<Outcome>>);

impl Answering {
    pub(crate) async fn outcome(self) -> Outcome {
        let gone = |sent| {
            let error = io::Error::from(io::ErrorKind::ConnectionReset).into();
            Outcome { answers: Vec::new(), failure: Some(Failure { error, sent }) }
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
        let greeted = timeout(server.connect_timeout, Self::greet(server, node, readonly)).await;
        greeted.unwrap_or_else(|_| Err(timed_out("the connection").into()))
    }

    async fn greet(server: &RedisServer, node: &Node, readonly: bool) -> RedisResult<Self> {
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
            // Commands that are still on their way find nobody who takes their answers.
            writer.abort();
        });
        let wire = Self { requests, timeout: server.response_timeout };
        for (name, command) in greeting::commands(&info, readonly) {
            greeting::check(name, wire.ask(&command).await?)?;
        }
        Ok(wire)
    }

    /// Whether the connection is known to be broken.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Hands commands over.
    pub(crate) fn send(&self, bytes: Vec<u8>, answers: usize) -> Answering {
        let (taker, receiver) = oneshot::channel();
        let until = Instant::now() + self.timeout.min(FOREVER);
        let request = Request { bytes, awaited: Awaited { answers, until, taker } };
        Answering(self.requests.send(request).is_ok().then_some(receiver))
    }

    /// Sends a command and receives its answer.
    pub(crate) async fn ask(&self, command: &Cmd) -> RedisResult<Value> {
        let mut packed = Packed::default();
        packed.command(command);
        let Outcome { mut answers, failure } = self.send(packed.0, 1).outcome().await;
        failure.map_or_else(|| Ok(answers.remove(0)), |failure| Err(failure.error))
    }
}

/// Longer than anybody waits, and short enough to be added to a clock.
const FOREVER: Duration = Duration::from_secs(1 << 30);

async fn write(
    mut stream: WriteHalf<Box<dyn Stream>>,
    mut requests: mpsc::UnboundedReceiver<Request>,
    awaiting: mpsc::UnboundedSender<Awaited>,
) {
    while let Some(Request { bytes, awaited }) = requests.recv().await {
        // First, for the answers may come before all commands are sent.
        if awaiting.send(awaited).is_err() || stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

/// Takes answers until one fails to come. What else was awaited ends then.
async fn read(mut stream: ReadHalf<Box<dyn Stream>>, mut awaited: mpsc::UnboundedReceiver<Awaited>) {
    let mut came = Came::default();
    while let Some(Awaited { answers: count, until, taker }) = awaited.recv().await {
        let mut answers = Vec::with_capacity(count);
        let received = timeout_at(until, receive(&mut stream, &mut came, count, &mut answers)).await;
        let error = received.unwrap_or_else(|_| Err(timed_out("the answer").into())).err();
        let failed = error.is_some();
        let failure = error.map(|error| Failure { error, sent: true });
        // Whoever waited may be gone.
        _ = taker.send(Outcome { answers, failure });
        if failed {
            return;
        }
    }
}

async fn receive(
    stream: &mut ReadHalf<Box<dyn Stream>>,
    came: &mut Came,
    count: usize,
    answers: &mut Vec<Value>,
) -> RedisResult<()> {
    while answers.len() < count {
        match came.next()? {
            Some(answer) => answers.push(answer),
            None => match stream.read(came.space()?).await? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                read => came.filled(read),
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
