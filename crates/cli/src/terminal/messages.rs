//! Messages on standard error. If that is closed, they are dropped.

use crate::system::platform;
use crate::terminal::bar;
use std::io::{self, Write};

/// Prints a text as it is.
pub fn print(text: &str) {
    bar::without(|| drop(writeln!(io::stderr(), "{text}")));
}

/// Prints a message to the user.
pub fn print_message(message: &str) {
    print(&format!("bloomline: {}", platform::readable(message)));
}

/// Prints a warning to the user.
pub fn warn(message: &str) {
    print_message(&format!("warning: {message}"));
}
