//! `RedisBloomFilter`: the library's filter on a server, for threads and forked processes too.

use crate::error;
use crate::figures::{RedisFilterMetrics, RedisFilterStats};
use crate::filter::Filter;
use crate::key;
use crate::keys::{self, Numpy};
use crate::lock::detach;
use crate::set::Set;
use crate::signals::{self, Signals};
use crate::types::{self, expected_keys, given};
use bloomline::KeyHasher;
use bloomline_redis::{RedisBloomFilter as Client, RedisFilterError, RedisServer, Stages};
use parking_lot::{Mutex, ReentrantMutex};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, mem, process};

/// Keys that one thread sends before the next one has its turn: as many as the library sends in one round trip.
const BATCH_KEYS: usize = 4096;

/// The time that a call waits before signals may end it: an answer that arrives until then reports the claims.
const SIGNAL_GRACE: Duration = Duration::from_secs(1);

/// The time to wait for replicas.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(1);

/// A BloomFilter on a Redis or Valkey server, or spread over a cluster, that any number of processes share.
///
/// With a size it is created, or opened if the server has one of this name, size and seed. Without a size it is only
/// opened. Give the size as for BloomFilter; the bits are the same too. With only false_positive_rate it grows as keys
/// are added, and its rate stays below that. With expected_keys and forget_after, it forgets a key this many seconds
/// after it was new, or up to a quarter of that later; expected_keys is the number of keys within that time. The server
/// needs no module.
///
/// url is redis://HOST:PORT, rediss:// for an encrypted connection, or unix://PATH. USER:PASSWORD@ may precede the
/// host, and /DATABASE may follow the port. For a cluster, give the URLs of some of its nodes, separated by commas.
/// Times are in seconds: connect_timeout for a connection, response_timeout for an answer, and retry_timeout for
/// retries while no answer arrives. mirror=True keeps a copy in this process, as large as the filter, and sends the
/// server only keys that the copy lacks. read_from_replicas=True lets a cluster's replicas answer "in", a little late.
/// certificate_authority is the path of a file (PEM) with the certificates to trust instead of the system's.
/// client_certificate and client_key are the paths of files that identify this client. With wait_for_replicas a key is
/// reported as new once this many replicas of its server have it, or after a second. A failover keeps it if these are
/// all replicas that may take over.
///
/// Among all processes that add a key, one gets True. If a connection breaks before the answer, the key may be reported as new
/// twice, and is counted in uncertain; it is never lost. A server that can't be reached is a ConnectionError, one that denies
/// access a PermissionError, another failure of it an OSError, and a name or a size that does not match a ValueError. The
/// object detects within a second of use that its filter was removed, evicted or replaced; from then on all of its calls are an
/// OSError.
///
/// Ctrl-C ends a call whose answer takes longer than a second, except upload. A connection that is being made may take its
/// timeout first. A signal handler that uses the filter within a call of it gets a RuntimeError.
///
/// Threads take turns, with the GIL free. A forked process opens connections of its own; fork when no other thread is within a
/// call. It does not pickle, because the URL may contain a password.
///
/// >>> from bloomline import RedisBloomFilter
/// >>> seen = RedisBloomFilter("redis://127.0.0.1:6379", "crawl", 1_000_000, 0.001)
/// >>> seen.add("https://example.org/")
/// True
/// >>> "https://example.org/" in RedisBloomFilter("redis://127.0.0.1:6379", "crawl")
/// True
/// >>> seen.delete()
#[pyclass(module = "bloomline", frozen, weakref)]
pub(crate) struct RedisBloomFilter {
    /// A thread that re-enters within its turn finds the cell borrowed.
    connected: ReentrantMutex<RefCell<Connected>>,
    watch: Arc<Mutex<Watch>>,
    name: String,
    hasher: KeyHasher,
    stages: Option<Stages>,
    memory_bytes: usize,
    probes: u32,
}

/// The state that only one thread has at a time.
struct Connected {
    /// The process that the connections belong to. A forked child has them too, and must not use them.
    process: u32,
    /// `None` once it is deleted.
    client: Option<Client>,
}

/// Checks for signals while a call waits.
#[derive(Default)]
struct Watch {
    /// `None` if signals wait for the end of the call.
    signals: Option<Signals>,
    /// The exception of a handler, which ends the call.
    raised: Option<PyErr>,
}

impl Watch {
    /// Returns true if the call is to end; the library calls this.
    fn should_end(&mut self) -> bool {
        if self.raised.is_none() {
            self.raised = self.signals.as_mut().and_then(|signals| signals.handle().err());
        }
        self.raised.is_some()
    }
}

/// Runs a call that a signal may end.
fn with_signals<T>(watch: &Mutex<Watch>, call: impl FnOnce() -> Result<T, RedisFilterError>) -> PyResult<T> {
    watch.lock().signals = Some(Signals::after(SIGNAL_GRACE));
    let answer = call();
    let Watch { raised, .. } = mem::take(&mut *watch.lock());
    raised.map_or_else(|| answer.map_err(error::redis), Err)
}

impl RedisBloomFilter {
    /// Runs `work` in this thread's turn. The thread has released the GIL.
    fn with_lock<T>(&self, work: impl FnOnce(&mut Connected) -> PyResult<T>) -> PyResult<T> {
        let connected = loop {
            match self.connected.try_lock_for(signals::TICK) {
                Some(connected) => break connected,
                None => signals::handle()?,
            }
        };
        let mut connected = connected.try_borrow_mut().map_err(|_| {
            PyRuntimeError::new_err(format!(
                "a signal's handler uses the filter {:?} within the call that it interrupted: use it after the call",
                self.name
            ))
        })?;
        work(&mut connected)
    }

    /// Returns the connections of this process.
    fn client<'a>(&self, connected: &'a mut Connected) -> PyResult<&'a mut Client> {
        let Connected { process, client } = connected;
        let Some(client) = client else {
            let error = format!("the filter {:?} was deleted: open it again", self.name);
            return Err(PyValueError::new_err(error));
        };
        if *process != process::id() {
            *client = client.new_client();
            *process = process::id();
        }
        Ok(client)
    }

    /// Runs a call in this thread's turn, with the GIL free.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Client) -> Result<T, RedisFilterError> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            self.with_lock(|connected| {
                let client = self.client(connected)?;
                with_signals(&self.watch, || call(client))
            })
        })
    }

    fn hash(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let hash = key::hash(&self.hasher, key).map_err(|error| error.into_error(key.py(), None));
        hash.map(|(hash, _)| hash)
    }

    /// Returns an answer for each key, portion by portion; after an exception, the answers so far.
    fn answers<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        ask: impl Fn(&mut Client, &[u64], &mut [bool]) -> Result<usize, RedisFilterError> + Sync,
    ) -> (Vec<bool>, PyResult<()>) {
        keys::answers(&self.hasher, keys, |hashes, _, answers| {
            hashes.chunks(BATCH_KEYS).zip(answers.chunks_mut(BATCH_KEYS)).try_for_each(|(hashes, answers)| {
                self.with(keys.py(), |client| ask(client, hashes, answers))?;
                keys.py().check_signals()
            })
        })
    }
}

/// Converts Python's seconds.
fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    match Duration::try_from_secs_f64(value) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(PyValueError::new_err(format!("{name} is {value}: give seconds, more than 0"))),
    }
}

/// Sets the files with the certificates to trust, and with the client's own certificate and key.
fn with_certificates(
    mut server: RedisServer,
    authority: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> PyResult<RedisServer> {
    let read = |path: &Path| fs::read(path).map_err(|error| error::io(&error, Some(path)));
    if let Some(path) = authority {
        server = server.certificate_authority(&read(&path)?).map_err(error::redis)?;
    }
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            server.client_certificate(&read(&certificate)?, &read(&key)?).map_err(error::redis)
        }
        (None, None) => Ok(server),
        _ => Err(PyValueError::new_err("client_certificate and client_key go together: give both")),
    }
}

/// Returns the parameters of a filter that grows or forgets; `None` for a filter of one size. `is_fixed` is true if a
/// size of the bits is given.
fn stages(
    expected_keys: Option<u64>,
    false_positive_rate: Option<f64>,
    forget_after: Option<f64>,
    is_fixed: bool,
) -> PyResult<Option<Stages>> {
    match (expected_keys, false_positive_rate, forget_after) {
        (Some(keys), Some(rate), Some(window)) if !is_fixed => {
            Ok(Some(Stages::window(seconds("forget_after", window)?, keys, rate)))
        }
        (_, _, Some(_)) => Err(PyValueError::new_err(
            "forget_after goes with expected_keys and false_positive_rate: give these, and no other size",
        )),
        (None, Some(rate), None) if !is_fixed => Ok(Some(Stages::growing(rate))),
        _ => Ok(None),
    }
}

#[pymethods]
impl RedisBloomFilter {
    #[new]
    #[pyo3(signature = (
        url, name, expected_keys = None, false_positive_rate = None, *, memory = None, probes = None, seed = None,
        forget_after = None, mirror = false, connect_timeout = 5.0, response_timeout = 10.0, retry_timeout = 30.0,
        read_from_replicas = false, certificate_authority = None, client_certificate = None, client_key = None,
        wait_for_replicas = 0
    ))]
    #[expect(clippy::too_many_arguments, reason = "one for each that Python may name")]
    fn new(
        py: Python<'_>,
        url: &str,
        name: &str,
        #[pyo3(from_py_with = expected_keys)] expected_keys: Option<u64>,
        false_positive_rate: Option<f64>,
        memory: Option<usize>,
        probes: Option<u32>,
        seed: Option<u64>,
        forget_after: Option<f64>,
        mirror: bool,
        connect_timeout: f64,
        response_timeout: f64,
        retry_timeout: f64,
        read_from_replicas: bool,
        certificate_authority: Option<PathBuf>,
        client_certificate: Option<PathBuf>,
        client_key: Option<PathBuf>,
        wait_for_replicas: u32,
    ) -> PyResult<Self> {
        let mut server = RedisServer::new(url)
            .map_err(error::redis)?
            .connect_timeout(seconds("connect_timeout", connect_timeout)?)
            .response_timeout(seconds("response_timeout", response_timeout)?)
            .retry_timeout(seconds("retry_timeout", retry_timeout)?)
            .wait_for_replicas(wait_for_replicas, REPLICA_TIMEOUT);
        if read_from_replicas {
            server = server.read_from_replicas();
        }
        let server = with_certificates(server, certificate_authority, client_certificate, client_key)?;
        let watch = Arc::<Mutex<Watch>>::default();
        let server = server.end_if({
            let watch = Arc::clone(&watch);
            move || watch.lock().should_end()
        });
        let size = given!(bloomline::BloomFilter::builder(), expected_keys false_positive_rate memory probes seed);
        let is_fixed = memory.is_some() || probes.is_some();
        let is_sized = is_fixed || expected_keys.is_some() || false_positive_rate.is_some() || seed.is_some();
        let stages = stages(expected_keys, false_positive_rate, forget_after, is_fixed)?;
        let stages = stages.map(|stages| stages.seed(seed.unwrap_or(0)));
        let open = || {
            let client = match &stages {
                Some(stages) => Client::create_stages(&server, name, stages),
                None if is_sized => Client::create(&server, name, &size),
                None => Client::open(&server, name),
            }?;
            if mirror { Ok(client.with_mirror()?) } else { Ok(client) }
        };
        let client = py.detach(|| with_signals(&watch, open))?;
        let (plan, stages) = (client.plan(), client.stages());
        Ok(Self {
            stages,
            name: client.name().to_owned(),
            hasher: client.hasher().clone(),
            memory_bytes: plan.memory_bytes(),
            probes: plan.probes(),
            connected: ReentrantMutex::new(RefCell::new(Connected { process: process::id(), client: Some(client) })),
            watch,
        })
    }

    /// Add a key, in one round trip. True if this call claimed it, as exactly one of all processes does, or if it may have
    /// claimed it and the answer was lost. After an exception the key is not added. The exception of a signal
    /// (KeyboardInterrupt) while no answer arrives differs: its attribute new is the value that add would have returned.
    #[pyo3(signature = (key, /))]
    fn add(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, hash) = (key.py(), self.hash(key)?);
        let mut new = [false];
        let added = self.with(py, |client| {
            match client.insert_hashes(&[hash], &mut new) {
                // It is claimed in spite of the error. If the error lasts, the next call raises it.
                Err(error) if !new[0] => Err(error),
                _ => Ok(new[0]),
            }
        });
        added.or_else(|error| error.value(py).setattr("new", new[0]).and(Err(error)))
    }

    /// The method `__contains__`, under a name for which PyO3 makes no slot: with one class that has it, the compiler inlines
    /// the slot, and that class is `Filter`, where it matters.
    #[pyo3(name = "_contains", signature = (key, /))]
    fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let hash = self.hash(key)?;
        self.with(key.py(), |client| client.contains_hashes(&[hash], &mut [false])).map(|found| found > 0)
    }

    /// Add all keys of an array or another iterable; see add_many. It needs no NumPy.
    #[pyo3(signature = (keys, /))]
    fn update(&self, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        self.answers(keys, Client::insert_hashes).1
    }

    /// Add many keys. Returns an array of bool, True for each key that this call claimed; see BloomFilter.add_many for keys.
    /// Takes a round trip or two for each 4096 keys, so it is far faster than add. All keys are hashed before the first is sent.
    ///
    /// An exception in between has the answers so far in its attribute new. Act on the keys that are True there, because no
    /// other process will, and add all keys again.
    ///
    /// >>> from bloomline import RedisBloomFilter
    /// >>> seen = RedisBloomFilter("redis://127.0.0.1:6379", "many", 1_000_000, 0.001)
    /// >>> seen.add_many(["a", "b", "a"])
    /// array([ True,  True, False])
    /// >>> seen.contains_many(["b", "c"])
    /// array([ True, False])
    /// >>> seen.delete()
    #[pyo3(signature = (keys, /))]
    fn add_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::import(keys.py())?;
        numpy.new_keys(self.answers(keys, Client::insert_hashes))
    }

    /// Look up many keys. Returns an array of bool, True for each key that was seen. Takes a round trip for each 4096 keys.
    #[pyo3(signature = (keys, /))]
    fn contains_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = Numpy::import(keys.py())?;
        let (found, result) = self.answers(keys, Client::contains_hashes);
        result?;
        numpy.array(&found)
    }

    /// Return the fill of the filter. The servers count its bits, which takes some milliseconds per 16 MiB.
    ///
    /// >>> from bloomline import RedisBloomFilter
    /// >>> seen = RedisBloomFilter("redis://127.0.0.1:6379", "stats", 1_000_000, 0.001)
    /// >>> seen.update(range(1000))
    /// >>> 990 < seen.stats().estimated_keys < 1010
    /// True
    /// >>> seen.delete()
    fn stats(&self, py: Python<'_>) -> PyResult<RedisFilterStats> {
        self.with(py, Client::stats).map(RedisFilterStats::from)
    }

    /// Return the events of this object in this process, and the servers' times since the last call of metrics. Sends nothing.
    ///
    /// >>> from bloomline import RedisBloomFilter
    /// >>> seen = RedisBloomFilter("redis://127.0.0.1:6379", "met", 1_000_000, 0.001)
    /// >>> seen.update(range(10_000))
    /// >>> seen.metrics().batches, seen.metrics().batches
    /// (3, 0)
    /// >>> seen.delete()
    fn metrics(&self, py: Python<'_>) -> PyResult<RedisFilterMetrics> {
        self.with(py, |client| Ok(client.metrics())).map(RedisFilterMetrics::from)
    }

    /// Copy the filter to a BloomFilter of this process.
    ///
    /// >>> from bloomline import RedisBloomFilter
    /// >>> seen = RedisBloomFilter("redis://127.0.0.1:6379", "copied", 1000, 0.001)
    /// >>> seen.update(["a", "b"])
    /// >>> here = seen.download()
    /// >>> here.add("c")
    /// True
    /// >>> seen.upload(here)
    /// >>> "c" in seen
    /// True
    /// >>> seen.delete()
    fn download<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        types::object(py, self.with(py, Client::download)?.into())
    }

    /// Add the keys of a BloomFilter of the same size and seed, while others add theirs.
    #[pyo3(signature = (filter, /))]
    fn upload(&self, filter: &Bound<'_, Filter>) -> PyResult<()> {
        let Set::Plain(lock) = &filter.get().set else {
            let name = filter.get_type().name()?;
            return Err(PyTypeError::new_err(format!("a {name} can't be uploaded: a BloomFilter can")));
        };
        detach(filter.py(), |detached| {
            // Signals wait for the end, because a handler that adds to the other filter would wait for this lock.
            self.with_lock(|connected| self.client(connected)?.upload(&lock.read(detached)).map_err(error::redis))
        })
    }

    /// Remove the filter from the server. End all other processes that use it first.
    fn delete(&self, py: Python<'_>) -> PyResult<()> {
        // Consumes another client, so that this one remains if this fails.
        self.with(py, |client| client.new_client().delete())?;
        py.detach(|| {
            self.with_lock(|connected| {
                connected.client = None;
                Ok(())
            })
        })
    }

    /// Keys that add or add_many reported as new although another process may have got the same answer, because an answer was
    /// lost. Counted by this object in this process.
    #[getter]
    fn uncertain(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.with_lock(|connected| Ok(connected.client.as_ref().map_or(0, Client::uncertain))))
    }

    /// Keys that add or add_many reported as new although fewer replicas than wait_for_replicas had them in time.
    #[getter]
    fn unconfirmed(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.with_lock(|connected| Ok(connected.client.as_ref().map_or(0, Client::unconfirmed))))
    }

    /// The name on the server.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The seed of the hash.
    #[getter]
    fn seed(&self) -> u64 {
        self.hasher.seed()
    }

    /// The arguments that make another filter like this one, as a dict: a size and a seed.
    #[getter]
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let size = PyDict::new(py);
        match &self.stages {
            None => {
                size.set_item("memory", self.memory_bytes)?;
                size.set_item("probes", self.probes)?;
            }
            Some(stages) => {
                size.set_item("false_positive_rate", stages.false_positive_rate())?;
                if let Some(window) = stages.forgets_after() {
                    size.set_item("expected_keys", stages.expected_keys())?;
                    size.set_item("forget_after", window.as_secs_f64())?;
                }
            }
        }
        size.set_item("seed", self.hasher.seed())?;
        Ok(size)
    }

    /// The size of the bits in bytes; of the first stage found, if the filter grows or forgets. The server allocates them as
    /// keys are added.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The number of bits that a key sets, in that stage.
    #[getter]
    fn probes(&self) -> u32 {
        self.probes
    }

    fn __repr__(&self) -> String {
        format!("<RedisBloomFilter name={:?}, memory_bytes={}>", self.name, self.memory_bytes)
    }

    fn __reduce__(&self) -> PyResult<()> {
        let error =
            "a RedisBloomFilter does not pickle, for its URL may hold a password: open it by URL and name there";
        Err(PyTypeError::new_err(error))
    }
}
