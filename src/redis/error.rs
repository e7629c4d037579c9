//! Why a call to a shared filter fails: each error names what was found and says what to do.

use crate::error::{BuildError, MergeError};
use std::fmt;
use std::time::Duration;

/// Why a filter on a server cannot be reached, opened or written to.
///
/// What a call may have done before it failed is told by the call.
///
/// # Examples
/// ```
/// use bloomline::redis::{RedisFilterError, RedisServer};
/// let error = RedisServer::new("http://localhost").unwrap_err();
/// assert!(matches!(error, RedisFilterError::Url { .. }));
/// assert!(error.to_string().contains("redis://HOST:PORT"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RedisFilterError {
    /// The filter asked for cannot be built.
    Build(BuildError),
    /// A name that no filter can have.
    Name {
        /// The name.
        name: String,
    },
    /// No address of a server.
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// No filter has this name.
    NotFound {
        /// The name.
        name: String,
    },
    /// The filter of this name is another one.
    Differs {
        /// The name.
        name: String,
        /// What differs.
        field: &'static str,
        /// What was asked for.
        ours: u64,
        /// What the filter has.
        theirs: u64,
    },
    /// What is kept under the filter's name was not written by this crate.
    NotBloomline {
        /// The key on the server.
        key: String,
    },
    /// The filter is of a newer version of this crate.
    NewerVersion {
        /// The name.
        name: String,
        /// Its version.
        found: u64,
        /// The newest that this build knows.
        newest: u64,
    },
    /// The filter's keys were hashed by another hash function than this build's.
    OtherHash {
        /// The name.
        name: String,
    },
    /// A filter that is not of the same geometry cannot be uploaded.
    Merge(MergeError),
    /// The server wants a password, another one, or grants too little.
    Denied {
        /// The server.
        node: String,
        /// What it said.
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
    /// The server refused a command for another reason, or answered something that makes no sense.
    Refused {
        /// The server.
        node: String,
        /// What it said.
        message: String,
    },
    /// No answer in time, however often it was tried.
    Unreachable {
        /// The server.
        node: String,
        /// How long it was tried.
        waited: Duration,
        /// What went wrong the last time.
        message: String,
    },
}

impl fmt::Display for RedisFilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => error.fmt(f),
            Self::Name { name } => {
                write!(f, "no filter can be called {name:?}: give 1 to 200 bytes without braces and control characters")
            }
            Self::Url { reason } => {
                write!(
                    f,
                    "no address of a server: {reason}; give redis://HOST:PORT or rediss://USER:PASSWORD@HOST:PORT"
                )
            }
            Self::NotFound { name } => {
                write!(f, "the server has no filter {name:?}: create it with expected keys and a false-positive rate")
            }
            Self::Differs { name, field, ours, theirs } => write!(
                f,
                "the filter {name:?} has {field} {theirs}, and {ours} was asked for: open it as it is, give the same expected \
                 keys, rate and seed as those who created it, or choose another name"
            ),
            Self::NotBloomline { key } => {
                write!(f, "the key {key:?} holds something that is not a bloomline filter: choose another name")
            }
            Self::NewerVersion { name, found, newest } => write!(
                f,
                "the filter {name:?} has format version {found}, and this build knows {newest} at the most: update it"
            ),
            Self::OtherHash { name } => write!(
                f,
                "the filter {name:?} was filled with another hash function than this build's: use the build that created it"
            ),
            Self::Merge(error) => error.fmt(f),
            Self::Denied { node, message } => write!(
                f,
                "{node} denies access: {message}; give user and password in the URL, with the right to GET, SET, GETRANGE, \
                 SETRANGE, BITFIELD, BITCOUNT, BITOP, STRLEN, EXPIRE, UNLINK, CLUSTER SLOTS, ASKING and READONLY"
            ),
            Self::OutOfMemory { node } => write!(
                f,
                "{node} is out of memory (maxmemory): give it more, or the filter a smaller size; evicting keys would lose it"
            ),
            Self::ReadOnly { node } => write!(f, "{node} is a read-only replica: give the address of its primary"),
            Self::Refused { node, message } => write!(f, "{node} refuses: {message}"),
            Self::Unreachable { node, waited, message } => write!(
                f,
                "no answer from {node} in {:.1} s of trying: {message}; see that it runs and can be reached",
                waited.as_secs_f64()
            ),
        }
    }
}

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
