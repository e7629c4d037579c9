//! The filter on a server, in a build without a client: a type without values.

use crate::seen::counts::LineCounts;
use crate::system::error::Error;
use crate::terminal::figures::Figures;
use bloomline::{KeyHasher, Plan};
use bloomline_keys::KeyKinds;
use std::sync::Arc;
use std::time::Duration;

/// A filter on a server.
pub enum RemoteSet {}

/// Metrics of a filter and its servers.
pub enum RemoteStats {}

/// Defines methods that are never called.
macro_rules! never {
    ($set:ident, $(fn $method:ident(self: $self:ty $(, $argument:ty)*) -> $result:ty;)*) => {
        impl $set {
            $(pub fn $method(self: $self $(, _: $argument)*) -> $result {
                match *self {}
            })*
        }
    };
}

never! { RemoteSet,
    fn add_kinds(self: &mut Self, &KeyKinds) -> Result<(), Error>;
    fn check(self: &Self) -> Result<bool, Error>;
    fn check_kinds(self: &mut Self, &str, &KeyKinds) -> Result<(), Error>;
    fn contains_hashes(self: &Self, &[u64], &mut [bool]) -> Result<usize, Error>;
    fn current_fpr(self: &Self) -> f64;
    fn dangers(self: &Self) -> Vec<String>;
    fn expected_fpr(self: &Self, f64) -> f64;
    fn fill_ratio(self: &Self) -> f64;
    fn filters(self: &Self) -> usize;
    fn forgets_after(self: &Self) -> Option<Duration>;
    fn hasher(self: &Self) -> &KeyHasher;
    fn insert_hashes(self: &Self, &[u64], &mut [bool]) -> Result<usize, Error>;
    fn keys(self: &Self) -> f64;
    fn kinds(self: &Self) -> &KeyKinds;
    fn max_rate(self: &Self) -> Option<f64>;
    fn memory_bytes(self: &Self) -> usize;
    fn overfull_warning(self: &Self) -> Option<String>;
    fn plan(self: &Self) -> Option<Plan>;
    fn refresh(self: &mut Self) -> Result<(), Error>;
    fn remote(self: &Self, Option<Duration>) -> Arc<RemoteStats>;
    fn sent_again(self: &Self) -> u64;
    fn settle_kinds(self: &mut Self, &KeyKinds) -> Result<bool, Error>;
    fn stored_bytes(self: &Self) -> u64;
    fn uncertain(self: &Self) -> u64;
    fn unconfirmed(self: &Self) -> u64;
    fn warnings(self: &Self) -> Vec<String>;
}

never! { RemoteStats,
    fn parts(self: &Self) -> Vec<String>;
    fn report(self: &Self, &LineCounts, Duration) -> Option<Figures>;
    fn status(self: &Self) -> String;
}
