//! Runs tests as the standard harness does, and reports tests that lack a program as ignored, with the reason. For the standard
//! harness, tests are ignored or not when they are compiled.

use libtest_mimic::{Arguments, Completion, Trial};
use std::panic::{catch_unwind, resume_unwind};
use std::process::ExitCode;

/// The tests of a module. The compiler reports a test that is missing in the list as unused.
macro_rules! tests {
    ($($(#[ignore = $reason:literal])? $name:ident),* $(,)?) => {
        pub(crate) fn tests() -> Vec<libtest_mimic::Trial> {
            vec![$($crate::harness::test(concat!(module_path!(), "::", stringify!($name)), $name, concat!($($reason)?))),*]
        }
    };
}
pub(crate) use tests;

/// The panic payload that ends a test without its program.
struct Missing(&'static str);

/// Ends the test as ignored, because this program is missing.
pub fn ignored(program: &'static str) -> ! {
    // Unlike a panic it prints nothing.
    resume_unwind(Box::new(Missing(program)))
}

/// Returns a test with its path as name. With a reason it is ignored by default.
pub fn test(path: &str, test: fn(), ignored: &str) -> Trial {
    let (_, name) = path.split_once("::").expect("the crate is first");
    let run = move || {
        let Err(payload) = catch_unwind(test) else { return Ok(Completion::Completed) };
        match payload.downcast::<Missing>() {
            Ok(missing) => Ok(Completion::ignored_with(format!("no {}", missing.0))),
            Err(payload) => resume_unwind(payload),
        }
    };
    Trial::ignorable_test(name, run).with_kind(ignored).with_ignored_flag(!ignored.is_empty())
}

/// Runs the tests that the arguments of the process select.
pub fn run(tests: Vec<Trial>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    // More threads than cores, because these tests wait for servers and clocks.
    arguments.test_threads.get_or_insert(4);
    libtest_mimic::run(&arguments, tests).exit_code()
}
