//! Keys from the buffer protocol: integers of any width and byte order, and strings of one length, of bytes or characters.
//!
//! Other threads may write to the memory while the GIL is free. So each portion is copied to private memory and hashed
//! there, and each hash is of one value.

use crate::error;
use crate::kinds::Forms;
use crate::lock::detach;
use crate::portion::{PORTION_KEYS, Take};
use bloomline::{Key, KeyHasher};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use std::ffi::CStr;

/// The size of a copy, unless an item is larger.
const MAX_COPY_BYTES: usize = 1 << 18;

/// The kind of the items of a buffer.
#[derive(Clone, Copy)]
enum ItemKind {
    Signed,
    Unsigned,
    Bool,
    /// Bytes. Zeros at the end of a string are padding, as in NumPy.
    Bytes,
    /// Characters, 4 bytes each.
    Text,
}

/// Calls `take` with the hashes of a buffer's keys. Returns `false` if `keys` has no buffer of a supported format.
pub(crate) fn take_all(hasher: &KeyHasher, keys: &Bound<'_, PyAny>, take: &mut Take<'_>) -> PyResult<bool> {
    let Ok(buffer) = PyUntypedBuffer::get(keys) else { return Ok(false) };
    let size = buffer.item_size();
    let Some((item, is_big_endian)) = item_kind(buffer.format(), size) else { return Ok(false) };
    if buffer.dimensions() == 0 || buffer.suboffsets().is_some() {
        return Ok(false);
    }
    if buffer.dimensions() > 1 {
        let error = format!("an array of {} dimensions: give one of 1, such as array.ravel()", buffer.dimensions());
        return Err(PyValueError::new_err(error));
    }
    if is_masked(keys)? {
        return Err(PyValueError::new_err("a masked array: give array.compressed(), the keys that are not masked"));
    }
    let forms = match item {
        ItemKind::Bytes | ItemKind::Text => Forms::TEXT,
        ItemKind::Signed | ItemKind::Unsigned | ItemKind::Bool => Forms::OTHER,
    };
    detach(keys.py(), |detached| {
        let chunk_items = PORTION_KEYS.min(MAX_COPY_BYTES / size).max(1);
        let memory = chunk_items.min(buffer.item_count()) * size;
        let mut copy = Vec::new();
        copy.try_reserve_exact(memory).map_err(error::memory)?;
        copy.resize(memory, 0);
        let mut hashes = [0; PORTION_KEYS];
        for first in (0..buffer.item_count()).step_by(chunk_items) {
            let count = chunk_items.min(buffer.item_count() - first);
            let (copy, hashes) = (&mut copy[..count * size], &mut hashes[..count]);
            copy_items(&buffer, first, copy);
            match item {
                ItemKind::Bytes => hash_bytes(hasher, copy, size, hashes),
                ItemKind::Text => hash_text(hasher, copy, size, is_big_endian, first, hashes)?,
                ItemKind::Bool => copy
                    .iter()
                    .zip(hashes.iter_mut())
                    .for_each(|(&item, hash)| *hash = u64::from(item != 0).hash_with(hasher)),
                ItemKind::Signed => hash_integers(hasher, copy, size, is_big_endian, true, hashes),
                ItemKind::Unsigned => hash_integers(hasher, copy, size, is_big_endian, false, hashes),
            }
            take(detached.into(), hashes, forms)?;
        }
        Ok(true)
    })
}

/// True for NumPy's masked arrays, and for classes derived from them.
fn is_masked(keys: &Bound<'_, PyAny>) -> PyResult<bool> {
    for class in keys.get_type().mro() {
        if class.cast::<PyType>()?.name()? == "MaskedArray" {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if all items are keys regardless of their values.
pub(crate) fn has_only_keys(keys: &Bound<'_, PyAny>) -> bool {
    // A list has no buffer, and checking for one takes time.
    let buffer = (!keys.is_instance_of::<PyList>()).then(|| PyUntypedBuffer::get(keys).ok()).flatten();
    let item = buffer.and_then(|buffer| item_kind(buffer.format(), buffer.item_size()));
    item.is_some_and(|(item, _)| !matches!(item, ItemKind::Text))
}

/// Returns the kind of items in a format, and true if integers are big-endian.
fn item_kind(format: &CStr, size: usize) -> Option<(ItemKind, bool)> {
    let format = format.to_bytes();
    let (is_big_endian, kind) = match format {
        [b'>' | b'!', kind @ ..] => (true, kind),
        [b'<', kind @ ..] => (false, kind),
        [b'@' | b'=', kind @ ..] | kind => (cfg!(target_endian = "big"), kind),
    };
    let integer = matches!(size, 1 | 2 | 4 | 8);
    match kind {
        [b'b' | b'h' | b'i' | b'l' | b'q' | b'n'] if integer => Some((ItemKind::Signed, is_big_endian)),
        [b'?'] if size == 1 => Some((ItemKind::Bool, is_big_endian)),
        [b'B' | b'H' | b'I' | b'L' | b'Q' | b'N'] if integer => Some((ItemKind::Unsigned, is_big_endian)),
        [digits @ .., b's'] if digits.iter().all(u8::is_ascii_digit) && size > 0 => {
            Some((ItemKind::Bytes, is_big_endian))
        }
        // Without a digit, the items are single characters of an array.array, whose zeros are not padding.
        [b'0'..=b'9', .., b'w'] if size > 0 => Some((ItemKind::Text, is_big_endian)),
        _ => None,
    }
}

/// Copies items from `first` on, as many as fit into `copy`.
fn copy_items(buffer: &PyUntypedBuffer, first: usize, copy: &mut [u8]) {
    let size = buffer.item_size();
    let stride = buffer.strides()[0];
    assert!(first + copy.len() / size <= buffer.item_count());
    let start = buffer.buf_ptr().cast::<u8>().cast_const();
    if stride == size as isize {
        // SAFETY: the buffer has `item_count` items of `size` bytes, side by side, which keep their address until it is
        // released; by the assertion, the copied items are among them. `copy` is private memory. A thread that writes
        // to the array meanwhile leaves bytes of either value, and any byte is valid.
        #[allow(unsafe_code)]
        unsafe {
            start.add(first * size).copy_to_nonoverlapping(copy.as_mut_ptr(), copy.len());
        }
        return;
    }
    for (i, copy) in copy.chunks_exact_mut(size).enumerate() {
        // SAFETY: as above, with an item at each multiple of `stride` from the first one.
        #[allow(unsafe_code)]
        unsafe {
            start.offset((first + i) as isize * stride).copy_to_nonoverlapping(copy.as_mut_ptr(), size);
        }
    }
}

fn hash_bytes(hasher: &KeyHasher, items: &[u8], size: usize, hashes: &mut [u64]) {
    for (hash, item) in hashes.iter_mut().zip(items.chunks_exact(size)) {
        *hash = hasher.bytes(unpadded(item));
    }
}

fn unpadded(item: &[u8]) -> &[u8] {
    let length = item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &item[..length]
}

/// Hashes characters as their UTF-8. ItemKind 0 is key number `first`.
fn hash_text(
    hasher: &KeyHasher,
    items: &[u8],
    size: usize,
    is_big_endian: bool,
    first: usize,
    hashes: &mut [u64],
) -> PyResult<()> {
    let mut text = Vec::new();
    for (i, (hash, item)) in hashes.iter_mut().zip(items.chunks_exact(size)).enumerate() {
        text.clear();
        let codes = item.as_chunks().0.iter();
        let codes = codes.map(|&code| if is_big_endian { u32::from_be_bytes(code) } else { u32::from_le_bytes(code) });
        if codes.clone().fold(0, |all, code| all | code) < 0x80 {
            text.extend(codes.map(|code| code as u8));
        } else {
            for code in codes {
                let error = || PyValueError::new_err(format!("keys[{}]: UTF-8 has no U+{code:04X}", first + i));
                let character = char::from_u32(code).ok_or_else(error)?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        *hash = hasher.bytes(unpadded(&text));
    }
    Ok(())
}

/// Hashes integers of every width as 8 bytes, like Python's integers.
fn hash_integers(hasher: &KeyHasher, items: &[u8], size: usize, is_big_endian: bool, signed: bool, hashes: &mut [u64]) {
    macro_rules! widened {
        ($type:ty) => {
            for (hash, item) in hashes.iter_mut().zip(items.as_chunks::<{ size_of::<$type>() }>().0) {
                let value = if is_big_endian { <$type>::from_be_bytes(*item) } else { <$type>::from_le_bytes(*item) };
                *hash = (value as u64).hash_with(hasher);
            }
        };
    }
    match (size, signed) {
        (1, true) => widened!(i8),
        (1, false) => widened!(u8),
        (2, true) => widened!(i16),
        (2, false) => widened!(u16),
        (4, true) => widened!(i32),
        (4, false) => widened!(u32),
        _ => widened!(u64),
    }
}
