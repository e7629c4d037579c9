//! The functions that the page calls. They take numbers, and return a text in the memory of the module.
// The attribute that keeps a name counts as unsafe: a library with the same name could replace it. The page has no other.
#![allow(unsafe_code)]

use super::text;
use alloc::string::String;
use core::cell::RefCell;

std::thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns the address of the figures, until the next call. NaN stands for a number that is not given.
#[unsafe(no_mangle)]
extern "C" fn figures(keys: f64, rate: f64, memory: f64) -> *const u8 {
    let given = |number: f64| (!number.is_nan()).then_some(number);
    let given_integer = |number| given(number).map(|number| number as u64);
    TEXT.with_borrow_mut(|last| {
        *last = text(given_integer(keys), given(rate), given_integer(memory));
        last.as_ptr()
    })
}

/// Returns the bytes of the text that `figures` has made.
#[unsafe(no_mangle)]
extern "C" fn length() -> usize {
    TEXT.with_borrow(String::len)
}
