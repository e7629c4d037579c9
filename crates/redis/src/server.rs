//! `RedisServer`: the addresses and connection options of a server or a cluster.

use crate::error::RedisFilterError;
use crate::sentinel::Sentinels;
use crate::topology::Node;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The address of a Redis or Valkey server, or of some nodes of a cluster, with time-outs and other options.
///
/// # Examples
/// ```
/// use bloomline_redis::RedisServer;
/// use std::time::Duration;
///
/// let one = RedisServer::new("redis://127.0.0.1:6379")?;
/// let encrypted = RedisServer::new("rediss://crawler:secret@cache.example.org:6380/0")?;
/// let cluster = RedisServer::new("redis://10.0.0.1:7000,redis://10.0.0.2:7000")?
///     .retry_timeout(Duration::from_secs(60))
///     .read_from_replicas();
/// # Ok::<(), bloomline_redis::RedisFilterError>(())
/// ```
#[derive(Clone)]
pub struct RedisServer {
    /// The given addresses or, with Sentinels, the address of a primary, whose host and port are replaced.
    seeds: Vec<ConnectionInfo>,
    /// The Sentinels that report the primary.
    pub(crate) sentinels: Option<Arc<Sentinels>>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) retry_timeout: Duration,
    pub(crate) read_from_replicas: bool,
    /// The number of replicas to wait for, and the time-out.
    wait: (u32, Duration),
    pub(crate) cancel: CancelToken,
    /// The certificates of the server's authority, as text (PEM), if they replace the system's.
    authority: Option<Arc<[u8]>>,
    /// The client's certificate.
    identity: Option<ClientIdentity>,
    /// The TLS configuration. It is made once, because reading the system's certificates takes time.
    tls: Arc<OnceLock<Arc<ClientConfig>>>,
}

/// A certificate and its key, as text (PEM).
#[derive(Clone)]
struct ClientIdentity {
    certificate: Arc<[u8]>,
    key: Arc<[u8]>,
}

/// The replicas that must have a claim before it counts as confirmed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReplicaWait {
    pub(crate) replicas: u32,
    /// Milliseconds, at least 1, because 0 has no limit.
    pub(crate) timeout: u32,
}

/// The time that an answer may take after the flag of [`end_when`](RedisServer::end_when) was set.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// A function that returns true once the caller cancels.
#[derive(Clone, Default)]
pub(crate) struct CancelToken(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl CancelToken {
    /// True if the caller has cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|is_cancelled| is_cancelled())
    }
}

impl RedisServer {
    /// Parses the URL of a server: `redis://HOST:PORT`, or `rediss://HOST:PORT` for an encrypted connection, or
    /// `unix://PATH`. `USER:PASSWORD@` may precede the host, and `/DATABASE` may follow the port; the default is 0.
    ///
    /// For a cluster, give the URLs of some nodes that are likely to run, separated by commas. They report the other
    /// nodes. User, password and encryption of the first URL are used for all nodes.
    ///
    /// For a primary with replicas, give the URLs of all of them. The one that reports itself as the primary is used.
    /// When it fails or becomes a replica, all are asked again, until the [`retry_timeout`](Self::retry_timeout).
    ///
    /// If Sentinels decide which server is the primary, name both:
    /// `redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NAME/DATABASE`, or `rediss+sentinel://` if all connections
    /// are encrypted. The hosts are Sentinels, with the default port 26379. The optional login and database are of the
    /// primary; write `%40` for an `@` in the login, `%2F` for `/` and `%3F` for `?`. If Sentinels require a login,
    /// append `?sentinel_user=USER&sentinel_password=PASSWORD`. A failover takes as long as their
    /// `down-after-milliseconds` and some seconds, so `retry_timeout` must be longer.
    ///
    /// Certificates must be trusted by the system, or by an [authority](Self::certificate_authority). A server may
    /// require a [client certificate](Self::client_certificate). For `rediss://` rustls needs a provider of
    /// cryptography. If the process has not chosen a provider, this call chooses `ring`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisFilterError::Url`].
    pub fn new(urls: &str) -> Result<Self, RedisFilterError> {
        let parse = |url: &str| {
            // The error must not repeat the URL, which may hold a password.
            let info = url.trim().into_connection_info();
            info.map_err(|error| RedisFilterError::Url { reason: error.to_string() })
        };
        let (seeds, sentinels) = match Sentinels::parse(urls.trim()) {
            Some(parsed) => {
                let (sentinels, primary) = parsed.map_err(|reason| RedisFilterError::Url { reason })?;
                (vec![primary], Some(Arc::new(sentinels)))
            }
            None => (urls.split(',').map(parse).collect::<Result<Vec<_>, _>>()?, None),
        };
        if seeds.iter().any(|seed| matches!(seed.addr(), ConnectionAddr::TcpTls { .. })) {
            // Fails if the process has chosen one, which is then kept.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Ok(Self {
            seeds,
            sentinels,
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(10),
            retry_timeout: Duration::from_secs(30),
            read_from_replicas: false,
            wait: (0, Duration::ZERO),
            cancel: CancelToken::default(),
            authority: None,
            identity: None,
            tls: Arc::default(),
        })
    }

    /// Sets the time-out for a connection. The default is 5 s.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the time-out for an answer. The default is 10 s. The connection is then closed, so a later answer is lost:
    /// see "Answers that are lost" of [`RedisBloomFilter`](crate::RedisBloomFilter).
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Sets the time-out for retries: a call retries for this long without an answer, because connections break, servers load
    /// their data, or no node serves a slot until a replica takes over. The default is 30 s. The last attempt ends by its own
    /// time-outs. When `create` and `open` connect, they try each address once.
    pub fn retry_timeout(mut self, timeout: Duration) -> Self {
        self.retry_timeout = timeout;
        self
    }

    /// Trusts only servers that these authorities certify. `pem` is the text of one or more certificates, as in the
    /// files that `redis-cli --cacert` takes.
    ///
    /// # Errors
    /// [`RedisFilterError::Certificate`] if it contains no certificate or an invalid one. [`RedisFilterError::Url`] if the
    /// connection is not encrypted.
    ///
    /// # Examples
    /// ```no_run
    /// use bloomline_redis::RedisServer;
    ///
    /// let authority = std::fs::read("authority.pem")?;
    /// let server = RedisServer::new("rediss://cache.internal:6380")?.certificate_authority(&authority)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn certificate_authority(mut self, pem: &[u8]) -> Result<Self, RedisFilterError> {
        roots_in(pem).map_err(|reason| RedisFilterError::Certificate { reason })?;
        self.check_encrypted()?;
        self.authority = Some(pem.into());
        self.tls = Arc::default();
        Ok(self)
    }

    /// Sets the client's certificate, for servers that require one (`tls-auth-clients yes`, the default of servers with
    /// TLS). `certificate` and `key` are text, as in the files that `redis-cli` takes with `--cert` and `--key`.
    ///
    /// # Errors
    /// [`RedisFilterError::Certificate`] if one of the two is not valid, or the key does not match the certificate.
    /// [`RedisFilterError::Url`] if the connection is not encrypted.
    ///
    /// # Examples
    /// ```no_run
    /// use bloomline_redis::RedisServer;
    ///
    /// let (certificate, key) = (std::fs::read("crawler.pem")?, std::fs::read("crawler.key")?);
    /// let server = RedisServer::new("rediss://cache.internal:6380")?.client_certificate(&certificate, &key)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn client_certificate(mut self, certificate: &[u8], key: &[u8]) -> Result<Self, RedisFilterError> {
        self.check_encrypted()?;
        let identity = ClientIdentity { certificate: certificate.into(), key: key.into() };
        configure(RootCertStore::empty(), Some(&identity))
            .map_err(|reason| RedisFilterError::Certificate { reason })?;
        self.identity = Some(identity);
        self.tls = Arc::default();
        Ok(self)
    }

    /// Returns an error unless the connection is encrypted.
    fn check_encrypted(&self) -> Result<(), RedisFilterError> {
        if self.seeds.iter().all(|seed| matches!(seed.addr(), ConnectionAddr::TcpTls { .. })) {
            return Ok(());
        }
        let reason = "certificates are only for rediss://, because other connections are not encrypted".to_owned();
        Err(RedisFilterError::Url { reason })
    }

    /// Ends calls soon after the flag is set, such as by a signal: after a second, they stop waiting for answers and
    /// fail with [`RedisFilterError::Ended`]. Insert the whole batch again, now or later. A connection attempt may
    /// still take its time-out, and commands that an `AsyncRedisBloomFilter` has sent
    /// may take the response time-out.
    pub fn end_when(self, flag: Arc<AtomicBool>) -> Self {
        let since = OnceLock::new();
        // Relaxed: the flag publishes nothing else.
        self.end_if(move || flag.load(Ordering::Relaxed) && since.get_or_init(Instant::now).elapsed() >= CANCEL_GRACE)
    }

    /// Ends calls as [`end_when`](Self::end_when) does, but as soon as `is_cancelled` returns `true`. A call that
    /// blocks evaluates it before it sends, before each part of an answer, and every 0.1 s while it waits. So
    /// `is_cancelled` should usually take no longer than reading a clock. It must return `true` until the call has
    /// ended. Calls continue when it returns `false` again. It replaces an earlier flag or function.
    ///
    /// # Examples
    /// ```
    /// use bloomline_redis::RedisServer;
    /// use std::time::{Duration, Instant};
    ///
    /// let end = Instant::now() + Duration::from_secs(60);
    /// let server = RedisServer::new("redis://127.0.0.1:6379")?.end_if(move || Instant::now() > end);
    /// # Ok::<(), bloomline_redis::RedisFilterError>(())
    /// ```
    pub fn end_if(mut self, is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.cancel = CancelToken(Some(Arc::new(is_cancelled)));
        self
    }

    /// Lets replicas of a cluster answer queries. A key is reported as absent until it has reached the replica. Inserts
    /// always go to the primaries.
    pub fn read_from_replicas(mut self) -> Self {
        self.read_from_replicas = true;
        self
    }

    /// Waits after each portion of an insert until this many replicas of each node have it, but no longer than the
    /// time-out or half of the response time-out. By default a server's answer is enough, and a replica that takes over
    /// lacks the keys that had not reached it.
    ///
    /// If the node fails before it confirms, the keys that it had reported as new are claimed again at the replica that
    /// takes over. Keys that are found there count as [`uncertain`](crate::RedisBloomFilter::uncertain). After the
    /// time-out, the keys are reported as new and also count as [`unconfirmed`](crate::RedisBloomFilter::unconfirmed).
    /// So if a replica that confirmed takes over, the two counts bound the keys that are reported as new twice. To
    /// ensure that, wait for all replicas of a node, and let no primary return with less than it had acknowledged
    /// (`appendfsync always`).
    ///
    /// A portion of 4096 keys takes another round trip between the node and its replicas. Other tasks that share the
    /// connection of an `AsyncRedisBloomFilter` wait too: the sum of their time-outs
    /// should be below the response time-out. If there are too few replicas, each portion takes the time-out. The user
    /// needs the right to `WAIT`.
    pub fn wait_for_replicas(mut self, replicas: u32, timeout: Duration) -> Self {
        self.wait = (replicas, timeout);
        self
    }

    /// Returns the replicas to wait for, if any.
    pub(crate) fn confirmation(&self) -> Option<ReplicaWait> {
        let (replicas, timeout) = self.wait;
        let timeout = timeout.min(self.response_timeout / 2).as_millis().max(1);
        // The maximum is some weeks.
        let timeout = u32::try_from(timeout).unwrap_or(u32::MAX);
        (replicas > 0).then_some(ReplicaWait { replicas, timeout })
    }

    /// Returns the nodes that the URLs name: servers or Sentinels.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = Node> {
        self.sentinels.as_ref().map_or(&self.seeds, |sentinels| &sentinels.addresses).iter().map(node_at)
    }

    /// True if a server other than the first that answers may be the primary.
    pub(crate) fn has_others(&self) -> bool {
        self.sentinels.is_some() || self.seeds.len() > 1
    }

    /// Returns the connection parameters of a node.
    pub(crate) fn info(&self, node: &Node) -> ConnectionInfo {
        let mut sentinels = self.sentinels.iter().flat_map(|sentinels| &sentinels.addresses);
        let seed = sentinels.find(|info| node_at(info) == *node).unwrap_or(&self.seeds[0]);
        let mut addr = seed.addr().clone();
        if let ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } = &mut addr {
            (*host, *port) = (node.host().to_owned(), node.port());
        }
        seed.clone().set_addr(addr)
    }

    /// Returns the TLS configuration.
    pub(crate) fn tls(&self) -> Arc<ClientConfig> {
        let config = || {
            let roots = self
                .authority
                .as_deref()
                .map_or_else(system_roots, |pem| roots_in(pem).expect("it was validated before"));
            configure(roots, self.identity.as_ref()).expect("it was validated before")
        };
        Arc::clone(self.tls.get_or_init(config))
    }
}

/// Returns the server at an address.
fn node_at(info: &ConnectionInfo) -> Node {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => Node::new(host, *port),
        ConnectionAddr::Unix(path) => Node::new(&path.to_string_lossy(), 0),
        // A kind of address that later versions of the client crate may add.
        other => Node::new(&other.to_string(), 0),
    }
}

/// Returns the TLS configuration that trusts these authorities.
fn configure(roots: RootCertStore, identity: Option<&ClientIdentity>) -> Result<Arc<ClientConfig>, String> {
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let Some(ClientIdentity { certificate, key }) = identity else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| error.to_string())?;
    if chain.is_empty() {
        return Err("there is no certificate".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key: {error}"))?;
    builder.with_client_auth_cert(chain, key).map(Arc::new).map_err(|error| error.to_string())
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // Ignores invalid certificates, as browsers do.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Returns the certificates in a text.
fn roots_in(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("there is no certificate".to_owned()) } else { Ok(roots) }
}

/// Shows neither user nor password.
impl std::fmt::Debug for RedisServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nodes: Vec<String> = self.seeds().map(|node| node.to_string()).collect();
        f.debug_struct("RedisServer")
            .field("nodes", &nodes)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .field("retry_timeout", &self.retry_timeout)
            .field("read_from_replicas", &self.read_from_replicas)
            .field("wait_for_replicas", &self.wait)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed_and_passwords_are_kept_secret() {
        let server = RedisServer::new("redis://me:hush@one:7000,redis://two:7001").unwrap();
        let nodes: Vec<String> = server.seeds().map(|node| node.to_string()).collect();
        assert_eq!(nodes, ["one:7000", "two:7001"]);
        assert!(!format!("{server:?}").contains("hush"));
        for url in ["", "http://me:hush@one", "redis://me:hush@one:port", "redis://one,"] {
            let error = RedisServer::new(url).unwrap_err();
            assert!(matches!(error, RedisFilterError::Url { .. }), "{url}");
            assert!(!format!("{error} {error:?}").contains("hush"));
        }
    }

    #[test]
    fn the_wait_for_replicas_is_at_most_half_of_the_response_timeout() {
        let server = RedisServer::new("redis://n:1").unwrap().response_timeout(Duration::from_millis(500));
        assert_eq!(server.confirmation(), None);
        for (timeout, milliseconds) in [(Duration::ZERO, 1), (Duration::from_millis(7), 7), (Duration::MAX, 250)] {
            let confirmation = server.clone().wait_for_replicas(2, timeout).confirmation();
            assert_eq!(confirmation, Some(ReplicaWait { replicas: 2, timeout: milliseconds }));
        }
        let endless = server.response_timeout(Duration::MAX).wait_for_replicas(1, Duration::MAX);
        assert_eq!(endless.confirmation(), Some(ReplicaWait { replicas: 1, timeout: u32::MAX }));
    }

    #[test]
    fn nodes_get_the_credentials_of_the_first() {
        let server = RedisServer::new("rediss://me:hush@one:7000").unwrap();
        let info = server.info(&Node::new("two", 7001));
        assert!(matches!(info.addr(), ConnectionAddr::TcpTls { host, port: 7001, .. } if host == "two"));
        assert_eq!(info.redis_settings().password(), Some("hush"));
    }
}
