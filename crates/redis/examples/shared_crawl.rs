//! A crawler on many machines, with one set of seen requests and one queue on a Redis or Valkey server:
//! `shared_crawl redis://HOST:PORT NAME WORKER`, on as many machines and as often as you like, each with a WORKER of its own: a number.
//!
//! The web site is made up: fifty thousand pages that link to one another in several spellings, and forms to post. A request that a worker
//! has taken stays in a list of its own until its links are queued, so a worker that dies takes none along: start it again under its number.

use bloomline::{BloomFilter, Key, KeyHasher};
use bloomline_redis::{RedisBloomFilter, RedisServer};
use redis::{Commands, RedisResult};
use std::env;
use std::error::Error;
use std::time::Instant;
use url::Url;

const PAGES: u64 = 50_000;

/// A request.
struct Request {
    method: &'static str,
    url: Url,
    body: Vec<u8>,
}

impl Request {
    /// In one normal form: without a fragment, which is not sent, and with the query's parameters in order.
    fn new(method: &'static str, url: &str, body: &str) -> Result<Self, url::ParseError> {
        let mut url = Url::parse(url)?;
        url.set_fragment(None);
        let mut parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        parameters.sort();
        if !parameters.is_empty() {
            url.query_pairs_mut().clear().extend_pairs(parameters);
        }
        Ok(Self { method, url, body: body.into() })
    }

    /// As a line of the queue.
    fn line(&self) -> String {
        format!("{} {} {}", self.method, self.url, String::from_utf8_lossy(&self.body))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ' ');
        let method = if parts.next()? == "POST" { "POST" } else { "GET" };
        Self::new(method, parts.next()?, parts.next()?).ok()
    }
}

/// The fingerprint: method, URL and body, each hashed whole, so that no two requests run into each other.
impl Key for Request {
    fn hash_with(&self, hasher: &KeyHasher) -> u64 {
        let parts = [self.method.as_bytes(), self.url.as_str().as_bytes(), &self.body];
        parts.map(|part| hasher.bytes(part)).into_iter().fold(0, |hash, part| hasher.combine(hash, part))
    }
}

/// A stand-in for the network: the links of a page.
fn fetch(request: &Request) -> Result<Vec<Request>, url::ParseError> {
    let page: u64 = request.url.path().trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    let mut links = Vec::new();
    for next in [2 * page + 1, 2 * page + 2, page / 3, page * 7 % PAGES] {
        if next < PAGES {
            // The same page, spelled in three ways.
            links.push(Request::new("GET", &format!("http://example.org/page/{next}?a=1&b=2"), "")?);
            links.push(Request::new("GET", &format!("http://EXAMPLE.org:80/page/{next}?b=2&a=1#top"), "")?);
        }
    }
    if page.is_multiple_of(100) && request.method == "GET" {
        links.push(Request::new("POST", &format!("http://example.org/form/{page}"), "q=all")?);
    }
    Ok(links)
}

/// The queue, and how many requests are queued or being visited. On one server: of a cluster, the first that is named.
struct Queue {
    server: redis::Connection,
    waiting: String,
    taken: String,
    pending: String,
}

impl Queue {
    fn new(url: &str, name: &str, worker: u64) -> RedisResult<Self> {
        let key = |what| format!("{{{name}}}:{what}");
        let server = redis::Client::open(url)?.get_connection()?;
        Ok(Self {
            server,
            waiting: key("waiting".into()),
            taken: key(format!("taken:{worker}")),
            pending: key("pending".into()),
        })
    }

    /// True if anything was ever queued.
    fn has_begun(&mut self) -> RedisResult<bool> {
        self.server.exists(&self.pending)
    }

    /// Requests that a worker of this number had taken when it died.
    fn left_over(&mut self) -> RedisResult<Vec<String>> {
        self.server.lrange(&self.taken, 0, -1)
    }

    /// The next request, which stays in the list of those taken; `None` at the end of the crawl.
    fn take(&mut self) -> RedisResult<Option<String>> {
        loop {
            let line: Option<String> = self.server.brpoplpush(&self.waiting, &self.taken, 0.2)?;
            if line.is_some() {
                return Ok(line);
            }
            // Nobody who is visiting can queue more.
            if self.server.get::<_, Option<i64>>(&self.pending)?.unwrap_or(0) <= 0 {
                return Ok(None);
            }
        }
    }

    /// Queues requests and takes a visited one off the list, all at once.
    fn push(&mut self, new: &[String], visited: Option<&str>) -> RedisResult<()> {
        let mut all = redis::pipe();
        all.atomic();
        if !new.is_empty() {
            all.lpush(&self.waiting, new).ignore();
        }
        if let Some(line) = visited {
            all.lrem(&self.taken, 1, line).ignore();
        }
        all.incr(&self.pending, new.len() as i64 - i64::from(visited.is_some())).ignore();
        all.exec(&mut self.server)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: shared_crawl redis://HOST:PORT NAME WORKER");
    let (url, name, worker) = (next()?, next()?, next()?.parse()?);

    let size = BloomFilter::builder().expected_keys(2 * PAGES).false_positive_rate(1e-6);
    let mut seen = RedisBloomFilter::create(&RedisServer::new(&url)?, &name, &size)?.with_mirror()?;
    let mut queue = Queue::new(&url, &name, worker)?;

    let start = Request::new("GET", "http://example.org/page/0?a=1&b=2", "")?;
    // Whoever claimed it may have died before it was queued.
    if seen.insert(&start)? || !queue.has_begun()? {
        queue.push(&[start.line()], None)?;
    }

    let began = Instant::now();
    let mut visited = 0u64;
    for line in queue.left_over()? {
        // Its links may be claimed and not queued: all are queued, seen or not, and some are visited twice.
        let links = Request::parse(&line).map_or(Ok(Vec::new()), |request| fetch(&request))?;
        let mut claims = vec![false; links.len()];
        seen.insert_batch(&links, &mut claims)?;
        queue.push(&links.iter().map(Request::line).collect::<Vec<_>>(), Some(&line))?;
        visited += 1;
    }
    while let Some(line) = queue.take()? {
        let links = Request::parse(&line).map_or(Ok(Vec::new()), |request| fetch(&request))?;
        let mut claims = vec![false; links.len()];
        let claimed = seen.insert_batch(&links, &mut claims);
        let new: Vec<String> =
            links.iter().zip(&claims).filter(|(_, new)| **new).map(|(link, _)| link.line()).collect();
        match claimed {
            Ok(_) => queue.push(&new, Some(&line))?,
            Err(error) => {
                // What is claimed is queued; the request stays in the list of those taken, for the rest of its links.
                queue.push(&new, None)?;
                return Err(error.into());
            }
        }
        visited += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("{visited} requests in {seconds:.1} s, {} of them perhaps visited elsewhere too", seen.uncertain());
    println!("all workers: about {:.0} requests seen", seen.stats()?.estimated_keys);
    Ok(())
}
