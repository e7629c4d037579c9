//! The worker threads of a test.

use std::thread::{self, ScopedJoinHandle};

/// Runs `body` with each number below `threads`, on a thread each. Threads are joined one by one. The end of a scope would join
/// them too, but ThreadSanitizer does not see that without a standard library built for it.
pub fn on_threads(threads: u32, body: impl Fn(u32) + Sync) {
    let body = &body;
    thread::scope(|scope| {
        let threads: Vec<ScopedJoinHandle<()>> = (0..threads).map(|thread| scope.spawn(move || body(thread))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
