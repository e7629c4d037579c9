//! Messages on standard error. If that is closed, they are dropped.

use crate::bar;
use std::io::{self, Write};

/// Prints a text as it is.
pub fn print(text: &str) {
    bar::without(|| drop(writeln!(io::stderr(), "{text}")));
}

/// Tells the user something.
pub fn tell(message: &str) {
    print(&format!("bloomline: {message}"));
}

/// Warns the user of something.
pub fn warn(message: &str) {
    tell(&format!("warning: {message}"));
}
