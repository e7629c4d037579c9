//! Failures caused by damaged files, reported on one line with their location.
//!
//! A file may declare any size. The process aborts if memory runs out, so it is requested before the library allocates it.

use parquet::errors::{ParquetError, Result};
use std::cell::Cell;
use std::fmt;
use std::hint::black_box;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

/// The location of damage in a file.
pub struct Location<'a> {
    pub group: Option<usize>,
    pub column: Option<&'a str>,
}

impl fmt::Display for Location<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(group) = self.group {
            write!(f, "row group {group}")?;
        }
        self.column.map_or(Ok(()), |column| write!(f, ", column {column:?}"))
    }
}

/// The library's prefixes of a reason, one for each of its layers.
const PREFIXES: [&str; 4] = ["Parquet error: ", "Parquet argument error: ", "EOF: ", "External: "];

thread_local! {
    /// True if a caught panic of this thread is reported by its catcher.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which a damaged file may make panic, because the library checks some input by assertions. `None` if it panicked.
pub fn quietly<T>(work: impl FnOnce() -> T) -> Option<T> {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                told(panic)
            }
        }));
    });
    let outer = CAUGHT.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work)).ok();
    CAUGHT.set(outer);
    done
}

/// Runs `work`, which may fail for a damaged file. The error has a reason unless `work` panicked.
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> std::result::Result<T, Option<String>> {
    quietly(work).ok_or(None)?.map_err(|error| Some(short(&error)))
}

/// Runs `work`, which may fail for a damaged file, and adds the location to the error.
pub fn in_place<T>(place: Location<'_>, work: impl FnOnce() -> Result<T>) -> io::Result<T> {
    caught(work).map_err(|why| {
        let why = why.unwrap_or_else(|| "it is damaged".to_owned());
        io::Error::other(format!("{place}: {why}"))
    })
}

/// Returns the library's message, on one line and without its prefixes.
pub fn short(error: &ParquetError) -> String {
    let text = match error {
        ParquetError::General(text) | ParquetError::NYI(text) | ParquetError::EOF(text) => text.clone(),
        ParquetError::ArrowError(text) => text.clone(),
        ParquetError::External(source) => source.to_string(),
        other => other.to_string(),
    };
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest.to_owned();
    }
    text
}

/// True if so many bytes of memory can be allocated at once.
pub fn has_room(bytes: u64) -> bool {
    let mut room: Vec<u8> = Vec::new();
    // Otherwise the compiler removes the unused allocation.
    usize::try_from(bytes).is_ok_and(|bytes| black_box(&mut room).try_reserve_exact(bytes).is_ok())
}

/// Returns the error for a file that needs more memory than is available.
pub fn no_room(what: &str, bytes: u64) -> ParquetError {
    ParquetError::General(format!("{what} would take {bytes} bytes of memory, which the system does not have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_and_failures_are_told_with_their_place() {
        let place = || Location { group: Some(3), column: Some("a") };
        let failed = |work: fn() -> Result<()>| in_place(place(), work).unwrap_err().to_string();
        assert_eq!(failed(|| panic!("of the library")), "row group 3, column \"a\": it is damaged");
        assert_eq!(failed(|| Err(ParquetError::EOF("a\n  b".into()))), "row group 3, column \"a\": a b");
        let told = || Err(ParquetError::ArrowError("Parquet argument error: Parquet error: why".into()));
        assert_eq!(failed(told), "row group 3, column \"a\": why");
        assert!(!CAUGHT.get());
    }

    #[test]
    fn memory_that_cannot_be_had_is_told() {
        assert!(has_room(0) && has_room(1 << 20));
        assert!(!has_room(u64::MAX) && !has_room(1 << 62));
    }
}
