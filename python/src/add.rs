//! The method `Filter.add`, in the form in which Python calls methods of one argument.
//!
//! PyO3 reads the arguments of any signature, which takes longer than the filter.

use crate::filter::Filter;
use crate::lock::attached;
use pyo3::ffi::{METH_O, PyDescr_NewMethod, PyMethodDef, PyMethodDefPointer, PyObject};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// The documentation, with the signature in Python's form.
const DOC: &std::ffi::CStr = c"add($self, key, /)\n--\n
Add a key. True if it is new, False if it was seen, or taken for seen.

>>> from bloomline import BloomFilter
>>> seen = BloomFilter(1000, 0.01)
>>> seen.add(\"https://example.org/\")
True
>>> seen.add(\"https://example.org/\")
False";

/// Adds the method to the class.
pub(crate) fn install(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<Filter>();
    let method = PyMethodDef {
        ml_name: c"add".as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunction: add },
        ml_flags: METH_O,
        ml_doc: DOC.as_ptr(),
    };
    // Leaked, because the lifetime of the class is unknown.
    let method = Box::leak(Box::new(method));
    // SAFETY: the method lives forever, and matches its flags: a function of the object and one argument.
    #[allow(unsafe_code)]
    let method = unsafe { Bound::from_owned_ptr_or_err(py, PyDescr_NewMethod(class.as_type_ptr(), method)) }?;
    class.setattr("add", method)
}

extern "C" fn add(filter: *mut PyObject, key: *mut PyObject) -> *mut PyObject {
    // SAFETY: Python calls methods attached, and this one of the class with an object of the class. Both objects live as long
    // as the call.
    #[allow(unsafe_code)]
    let (filter, key) = unsafe {
        let py = Python::assume_attached();
        (Borrowed::from_ptr(py, filter).cast_unchecked::<Filter>(), Borrowed::from_ptr(py, key))
    };
    let new = catch_unwind(AssertUnwindSafe(|| filter.get().add(&key)));
    match new.unwrap_or_else(|_| Err(PanicException::new_err("a defect of bloomline"))) {
        Ok(new) => PyBool::new(key.py(), new).to_owned().into_ptr(),
        Err(error) => attached(key.py(), || {
            error.restore(key.py());
            null_mut()
        }),
    }
}
