//! Prefetches: requests for cache lines before they are needed.

/// The blocks of 32 MiB. The cores' shared cache holds most lines of a filter of this size.
const SHARED_CACHE_BLOCKS: usize = 1 << 19;

/// Prefetches the cache line that `line` starts on, in a filter of `blocks` blocks.
///
/// A line in the cores' shared cache arrives at once, and is put into the first level. A line in memory is put into the
/// second level: on Intel's cores more lines can be in flight to it (10.6 ns a key at 256 MiB instead of 13.2), and the
/// probe reads the line from there in some cycles. The number of blocks is the same for a whole batch, so the compiler
/// hoists the choice out of the loop.
#[inline(always)]
pub(crate) fn prefetch<T>(line: &T, blocks: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let line = core::ptr::from_ref(line).cast();
        if blocks <= SHARED_CACHE_BLOCKS {
            // SAFETY: SSE is part of x86-64, and a prefetch has no effect on memory whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(line) }
        } else {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(line) }
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        use core::arch::asm;
        let line = core::ptr::from_ref(line);
        if blocks <= SHARED_CACHE_BLOCKS {
            // SAFETY: a prefetch has no effect on memory or flags whatever the address.
            unsafe { asm!("prfm pldl1keep, [{}]", in(reg) line, options(nomem, nostack, preserves_flags)) }
        } else {
            // SAFETY: as above.
            unsafe { asm!("prfm pldl2keep, [{}]", in(reg) line, options(nomem, nostack, preserves_flags)) }
        }
    }
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
    let _ = (line, blocks);
}
