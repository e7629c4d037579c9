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
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which a damaged file may make panic, because the library checks some input by assertions. `None` if it panicked.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let previous_hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CATCHING.get() {
                previous_hook(panic)
            }
        }));
    });
    let outer = CATCHING.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work)).ok();
    CATCHING.set(outer);
    done
}

/// Runs `work`, which may fail for a damaged file. The error has a reason unless `work` panicked.
pub fn catch_failure<T>(work: impl FnOnce() -> Result<T>) -> std::result::Result<T, Option<String>> {
    catch_panic(work).ok_or(None)?.map_err(|error| Some(short_message(&error)))
}

/// Runs `work`, which may fail for a damaged file, and adds the location to the error.
pub fn with_location<T>(location: Location<'_>, work: impl FnOnce() -> Result<T>) -> io::Result<T> {
    catch_failure(work).map_err(|reason| {
        let reason = reason.unwrap_or_else(|| "it is damaged".to_owned());
        io::Error::other(format!("{location}: {reason}"))
    })
}

/// Returns the library's message, on one line and without its prefixes.
pub fn short_message(error: &ParquetError) -> String {
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

/// True if `bytes` bytes of memory can be allocated at once.
pub fn can_allocate(bytes: u64) -> bool {
    let mut memory: Vec<u8> = Vec::new();
    // Otherwise the compiler removes the unused allocation.
    usize::try_from(bytes).is_ok_and(|bytes| black_box(&mut memory).try_reserve_exact(bytes).is_ok())
}

/// Returns the error for a file that needs more memory than is available.
pub fn out_of_memory(subject: &str, bytes: u64) -> ParquetError {
    ParquetError::General(format!("{subject} would take {bytes} bytes of memory, which the system does not have"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_panics_name_the_location() {
        let location = || Location { group: Some(3), column: Some("a") };
        let failed = |work: fn() -> Result<()>| with_location(location(), work).unwrap_err().to_string();
        assert_eq!(failed(|| panic!("of the library")), "row group 3, column \"a\": it is damaged");
        assert_eq!(failed(|| Err(ParquetError::EOF("a\n  b".into()))), "row group 3, column \"a\": a b");
        let failing = || Err(ParquetError::ArrowError("Parquet argument error: Parquet error: why".into()));
        assert_eq!(failed(failing), "row group 3, column \"a\": why");
        assert!(!CATCHING.get());
    }

    #[test]
    fn unavailable_memory_is_detected() {
        assert!(can_allocate(0) && can_allocate(1 << 20));
        assert!(!can_allocate(u64::MAX) && !can_allocate(1 << 62));
    }
}
