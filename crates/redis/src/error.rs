//! The errors of a shared filter. Each message names the problem and the remedy.

use bloomline::{BuildError, MergeError};
use std::fmt::{self, Write};
use std::time::Duration;

/// An error of reaching, opening or writing to a filter on a server.
///
/// The documentation of each method describes its effects before a failure.
///
/// # Examples
/// ```
/// use bloomline_redis::{RedisFilterError, RedisServer};
/// let error = RedisServer::new("http://localhost").unwrap_err();
/// assert!(matches!(error, RedisFilterError::Url { .. }));
/// assert!(error.to_string().contains("redis://HOST:PORT"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisFilterError {
    /// The requested size cannot be built.
    Build(BuildError),
    /// The name is not valid for a filter.
    Name {
        /// The name.
        name: String,
    },
    /// The address of the server is not valid.
    Url {
        /// The fault in the address.
        reason: String,
    },
    /// The certificates of an authority or of the client, or the key, are not valid.
    Certificate {
        /// The fault in them.
        reason: String,
    },
    /// The flag of [`RedisServer::end_when`](crate::RedisServer::end_when) was set, or the function of
    /// [`end_if`](crate::RedisServer::end_if) returned true.
    Ended,
    /// The server has no filter of this name.
    NotFound {
        /// The name.
        name: String,
    },
    /// The filter that this client opened, or a part of it, no longer exists: it was deleted, evicted or lost by a
    /// server.
    Gone {
        /// The name.
        name: String,
        /// The key on the server.
        key: String,
    },
    /// The filter of this name is not the one that this client opened: it was deleted and recreated.
    Replaced {
        /// The name.
        name: String,
        /// The key on the server.
        key: String,
    },
    /// The server has a part of a filter of this name without its description, which a server has lost or evicted.
    Remains {
        /// The name.
        name: String,
    },
    /// One of the keys of the filter belongs to an earlier filter of this name: it was not removed, or a client of that
    /// filter wrote it after the removal.
    LeftOver {
        /// The name.
        name: String,
        /// The key on the server.
        key: String,
    },
    /// The filter of this name has another seed. The error does not contain it, because a seed may be a secret:
    /// [`seed`](crate::RedisBloomFilter::seed) returns it.
    Seed {
        /// The name.
        name: String,
    },
    /// The filter of this name has another size, or grows or forgets otherwise.
    Differs {
        /// The name.
        name: String,
        /// The requested size, in keys at a false-positive rate.
        ours: String,
        /// The size that the filter has.
        theirs: String,
    },
    /// The filter grows or forgets, so it has no single size and cannot be copied.
    Stages {
        /// The name.
        name: String,
    },
    /// The server's key for the filter holds something that this crate did not write.
    NotBloomline {
        /// The key on the server.
        key: String,
    },
    /// A newer version of this crate created the filter.
    NewerVersion {
        /// The name.
        name: String,
        /// The version of its format.
        found: u64,
        /// The newest version that this build can read.
        newest: u64,
    },
    /// The format of the filter is older than those that this build reads.
    OlderVersion {
        /// The name.
        name: String,
        /// The version of its format.
        found: u64,
        /// The oldest version that this build can read.
        oldest: u64,
    },
    /// The keys of the filter were hashed with another hash function than this build's.
    OtherHash {
        /// The name.
        name: String,
    },
    /// The local filter cannot be uploaded, since its geometry differs.
    Merge(MergeError),
    /// The server requires a password or another one, or the user lacks a right.
    Denied {
        /// The server.
        node: String,
        /// The server's message.
        message: String,
    },
    /// The server has no memory left.
    OutOfMemory {
        /// The server.
        node: String,
    },
    /// The server is a replica.
    ReadOnly {
        /// The server.
        node: String,
    },
    /// The server refused a command for another reason, or its answer makes no sense.
    Refused {
        /// The server.
        node: String,
        /// The server's message.
        message: String,
    },
    /// The server did not answer in time, or no node serves a slot of the cluster.
    Unreachable {
        /// The server.
        node: String,
        /// The time for which the call retried.
        waited: Duration,
        /// The error of the last attempt.
        message: String,
    },
}

/// A writer that escapes control characters in a server's message, which could control a terminal.
struct EscapeControl<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for EscapeControl<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut write = |character: char| match character.is_control() {
            true => write!(self.0, "{}", character.escape_default()),
            false => self.0.write_char(character),
        };
        text.chars().try_for_each(&mut write)
    }
}

/// Returns the time for which a call waited, as a part of a message, if it did.
fn within(waited: Duration) -> String {
    let seconds = waited.as_secs_f64();
    if seconds < 0.05 { String::new() } else { format!(" within {seconds:.1} s") }
}

/// Returns the remedy for a connection that failed with this message.
fn hint(message: &str) -> &'static str {
    let has = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    if has(&["UnsupportedCertVersion"]) {
        "its certificate has version 1: make one of version 3, as openssl does with extensions (-extfile)"
    } else if has(&["UnknownIssuer", "BadSignature"]) {
        "give the certificate of its authority (certificate_authority, --redis-ca)"
    } else if has(&["invalid peer certificate"]) {
        "check its certificate, the host in the URL and the clock"
    } else if has(&["CertificateRequired", "alert: UnknownCA"]) {
        "give a certificate that it trusts, and its key (client_certificate, --redis-cert and --redis-key)"
    } else if has(&[
        "the command timed out",
        "the connection timed out",
        "reset by peer",
        "end of file",
        "InvalidContentType",
    ]) {
        // Servers with and without TLS do not understand each other's clients.
        "check that it runs and can be reached, and the scheme of the URL: rediss:// with TLS, redis:// without"
    } else {
        "check that it runs and can be reached"
    }
}

/// Defines the message for each kind of error, and the format of values that are not written as they are.
macro_rules! messages {
    ($Error:ident { $($kind:pat => $message:literal $(; $name:ident = $written:expr)*,)* }) => {
        impl fmt::Display for $Error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let f = &mut EscapeControl(f);
                match self {
                    $($kind => write!(f, $message $(, $name = $written)*),)*
                }
            }
        }
    };
}

messages! { RedisFilterError {
    Self::Build(error) => "{error}",
    Self::Name { name } => "the name {name:?} is not valid: give 1 to 200 bytes without braces and control characters",
    Self::Url { reason } => "the address of the server is not valid: {reason}; give redis://HOST:PORT or rediss://USER:PASSWORD@HOST:PORT",
    Self::Certificate { reason } => "the certificates are not valid: {reason}; give the text of PEM files, such as one that begins with -----BEGIN CERTIFICATE-----",
    Self::Ended => "the call was cancelled before all keys were answered: insert the batch again",
    Self::NotFound { name } => "the server has no filter {name:?}: create it with expected keys and a false-positive rate",
    Self::Gone { name, key } => "the filter {name:?} is gone or has lost a part, whose keys would count as new again: the server \
         deleted, evicted or lost {key:?}; prevent that (maxmemory-policy noeviction, appendonly yes), and start again with the \
         keys that remain",
    Self::Replaced { name, key } => "the filter {name:?} is not the one that was opened: it was deleted and created again, as \
         {key:?} shows; stop the clients of the old one, and start again",
    Self::Remains { name } => "the server has keys of a filter {name:?} but not its description, which was evicted or lost: stop \
         its clients and remove what is left (bloomline redis delete, RedisBloomFilter::remove), or choose another name",
    Self::LeftOver { name, key } => "the key {key:?} is of an earlier filter {name:?}, and would hide keys of this one: stop the \
         clients of the earlier one and create the filter again (bloomline redis delete, RedisBloomFilter::remove), or choose \
         another name",
    Self::Seed { name } => "the filter {name:?} has another seed than the one asked for: open it as it is, give the seed with which it was created, or choose another name",
    Self::Differs { name, ours, theirs } => "the filter {name:?} {theirs}, but one was asked for that {ours}: open it as it is, give the expected keys and rate with which it was created, or choose another name",
    Self::Stages { name } => "the filter {name:?} cannot be copied, because it grows or forgets, and only filters of a fixed \
         size are copied: save the server's own file (redis-cli --rdb), as docs/SERVER.md describes",
    Self::NotBloomline { key } => "the key {key:?} holds something that is not a bloomline filter: choose another name",
    Self::NewerVersion { name, found, newest } => "the filter {name:?} has format version {found}, but this build reads {newest} at most: update it",
    Self::OlderVersion { name, found, oldest } => "the filter {name:?} has format version {found}, from before the first release, and this build reads from version {oldest} on: delete it and insert its keys again",
    Self::OtherHash { name } => "the keys of the filter {name:?} were hashed with another hash function than this build's: use the build that created it",
    Self::Merge(error) => "{error}",
    Self::Denied { node, message } => "{node} denies access: {message}; give a user and a password in the URL (%40 for @, and so on), with the right to PING, GET, SET, GETRANGE, SETRANGE, BITFIELD, BITCOUNT, BITOP, STRLEN, EXPIRE, UNLINK, WAIT, CLUSTER|SLOTS, ASKING and READONLY, to SELECT for a database, to SCAN for a list of filters, and to HGETALL, HSETNX, HEXISTS, HDEL, EXPIREAT, TIME and EVAL for a filter that grows or forgets",
    Self::OutOfMemory { node } => "{node} is out of memory (maxmemory): give it more, or create a smaller filter; do not let it evict keys, which would lose the filter",
    Self::ReadOnly { node } => "{node} is a read-only replica: give the address of its primary",
    Self::Refused { node, message } => "{node} failed: {message}",
    Self::Unreachable { node, waited, message } => "no answer from {node}{within}: {message}; {hint}"; within = within(*waited); hint = hint(message),
}}

impl std::error::Error for RedisFilterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Build(error) => Some(error),
            Self::Merge(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BuildError> for RedisFilterError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<MergeError> for RedisFilterError {
    fn from(error: MergeError) -> Self {
        Self::Merge(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_servers_cannot_control_a_terminal() {
        let message = "-ERR \u{1b}]0;title\u{7}\r\n\u{9b}2J kräne".to_owned();
        let error = RedisFilterError::Refused { node: "host\u{1b}[31m:1".to_owned(), message };
        let expected = "host\\u{1b}[31m:1 failed: -ERR \\u{1b}]0;title\\u{7}\\r\\n\\u{9b}2J kräne";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn remedies_fit_the_fault_of_a_connection() {
        for (message, expected) in [
            ("invalid peer certificate: UnknownIssuer", "--redis-ca"),
            ("invalid peer certificate: BadSignature", "--redis-ca"),
            ("invalid peer certificate: certificate expired", "the clock"),
            ("received fatal alert: CertificateRequired", "--redis-cert and --redis-key"),
            ("received fatal alert: UnknownCA", "--redis-cert and --redis-key"),
            ("Connection reset by peer (os error 104)", "rediss:// with TLS"),
            ("the connection timed out", "rediss:// with TLS"),
            ("Connection refused (os error 111)", "check that it runs and can be reached"),
        ] {
            let node = "host:1".to_owned();
            let error = RedisFilterError::Unreachable { node, waited: Duration::ZERO, message: message.to_owned() };
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
