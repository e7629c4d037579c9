//! Tells the compiler whether the Python has a GIL.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
