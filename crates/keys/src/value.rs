//! Values of rows that are compared or printed: those beside a key.

/// A value of a line or a row.
pub enum Value<'a> {
    /// A null.
    Null,
    /// A text or a byte string, or a date or a time as its text.
    Text(&'a [u8]),
    /// Another value, as JSON.
    Json(&'a str),
}

/// Some values of a row.
pub trait Values {
    /// Returns the number of values.
    fn count(&self) -> usize;

    /// Returns the value with this number. `json` is memory for a value that has to be built.
    fn value<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a>;

    /// Returns the value with this number in a form that can be compared: dates and times are numbers.
    fn sortable<'a>(&'a self, part: usize, json: &'a mut String) -> Value<'a>;
}
