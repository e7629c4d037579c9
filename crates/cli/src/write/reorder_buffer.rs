//! An ordered queue: threads put items in any order, and one thread at a time takes them in order.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::thread;

/// The position of an item in the order.
pub type ItemPosition = (usize, u64);

/// Items that wait for those before them. No thread waits: the thread that drains the buffer continues with the items that others
/// have put.
pub struct ReorderBuffer<T> {
    state: Mutex<BufferState<T>>,
}

struct BufferState<T> {
    /// The position of the next item.
    next: ItemPosition,
    /// True if a thread drains the buffer.
    is_draining: bool,
    /// True once no more items are taken.
    closed: bool,
    /// Each item with the position of the item after it.
    waiting: BTreeMap<ItemPosition, (ItemPosition, T)>,
}

/// Held by the thread that drains the buffer.
pub struct DrainGuard<'a, T>(&'a ReorderBuffer<T>);

impl<T> ReorderBuffer<T> {
    /// Creates a queue whose first item is at this position.
    pub fn new(next: ItemPosition) -> Self {
        Self { state: Mutex::new(BufferState { next, is_draining: false, closed: false, waiting: BTreeMap::new() }) }
    }

    fn state(&self) -> MutexGuard<'_, BufferState<T>> {
        self.state.lock().expect("no thread panics while it has this")
    }

    /// Puts an item, which waits for the ones before it; `next` is the position of the item after it.
    pub fn put(&self, position: ItemPosition, next: ItemPosition, item: T) {
        self.state().waiting.insert(position, (next, item));
    }

    /// Takes the next item, if it is there and no other thread drains the buffer. A thread must call this after it has put
    /// an item or dropped a guard, otherwise due items may remain.
    pub fn take(&self) -> Option<(DrainGuard<'_, T>, T)> {
        let mut state = self.state();
        if state.is_draining || state.closed {
            return None;
        }
        let next = state.next;
        let (after, item) = state.waiting.remove(&next)?;
        if state.waiting.is_empty() {
            // An empty map keeps a node, and there is a buffer for each of 100,000 outputs.
            state.waiting = BTreeMap::new();
        }
        (state.next, state.is_draining) = (after, true);
        Some((DrainGuard(self), item))
    }

    /// Stops the queue: no more items are taken.
    pub fn close(&self) {
        self.state().closed = true;
    }
}

impl<T> Drop for DrainGuard<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_draining = false;
        // After an incomplete item, later ones would leave a gap.
        state.closed |= thread::panicking();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    proptest! {
        #[test]
        fn items_put_in_any_order_are_taken_in_order(numbers in Just((0..50u64).collect::<Vec<_>>()).prop_shuffle()) {
            let reorder = ReorderBuffer::new((0, 0));
            let mut taken = Vec::new();
            for number in numbers {
                reorder.put((0, number), (0, number + 1), number);
                taken.extend(std::iter::from_fn(|| reorder.take().map(|(_, number)| number)));
            }
            prop_assert_eq!(taken, (0..50).collect::<Vec<_>>());
        }
    }

    /// Each thread puts some of the items, and takes the items of all threads that are next in order.
    #[test]
    fn threads_take_all_items_in_order() {
        const EACH: u64 = 5000;
        let (reorder, next, holders) = (ReorderBuffer::new((0, 0)), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for first in 0..4 {
                let (reorder, next, holders) = (&reorder, &next, &holders);
                scope.spawn(move || {
                    for number in (first..4 * EACH).step_by(4) {
                        reorder.put((0, number), (0, number + 1), number);
                        while let Some((guard, number)) = reorder.take() {
                            assert_eq!(holders.fetch_add(1, Relaxed), 0);
                            assert_eq!(number, next.fetch_add(1, Relaxed));
                            holders.fetch_sub(1, Relaxed);
                            drop(guard);
                        }
                    }
                });
            }
        });
        assert_eq!(next.load(Relaxed), 4 * EACH);
    }

    #[test]
    fn a_panic_closes_the_buffer() {
        let reorder = ReorderBuffer::new((0, 0));
        (0..2).for_each(|number| reorder.put((0, number), (0, number + 1), number));
        let panics = || {
            let _turn = reorder.take();
            panic!("on purpose");
        };
        assert!(thread::scope(|scope| scope.spawn(panics).join().is_err()));
        assert!(reorder.take().is_none());
    }

    #[test]
    fn one_guard_exists_at_a_time_and_none_after_the_close() {
        let reorder = ReorderBuffer::new((0, 0));
        reorder.put((0, 0), (1, 0), 'a');
        reorder.put((1, 0), (1, 1), 'b');
        let (guard, first) = reorder.take().unwrap();
        assert!(first == 'a' && reorder.take().is_none());
        drop(guard);
        reorder.close();
        assert!(reorder.take().is_none());
    }
}
