//! Memory for blocks: aligned to cache lines, in huge pages if the system grants them, zeroed lazily.
#![allow(unsafe_code)]

use crate::error::BuildError;
use crate::kernel::block::{self, BLOCK_BYTES, Block, WORDS};
use crate::kernel::prefetch;
use crate::sync::{AtomicU64, Ordering};
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use core::ptr::NonNull;

/// The memory of a filter's bits.
pub(crate) trait BlockStore: From<Blocks> + 'static {
    /// Blocks that are known to be zero.
    fn empty(blocks: Blocks) -> Self {
        blocks.into()
    }

    /// Returns the words of every block.
    fn words(&self) -> impl Iterator<Item = [u64; WORDS]> + Clone;

    /// Clears all bits.
    fn clear(&mut self);

    /// Makes the system provide all of the memory, on all cores if there is rayon.
    fn populate(&mut self);
}

/// Blocks of a small page.
const PAGE: usize = 4096 / BLOCK_BYTES;

/// Memory that one owner writes.
pub(crate) trait BlockStoreMut: BlockStore + Clone + PartialEq {
    /// Replaces each word `w` with `word(w, v)`, where `v` is the word at the same index in `theirs`.
    fn merge(&mut self, theirs: impl Iterator<Item = [u64; WORDS]>, word: impl Fn(u64, u64) -> u64);
}

/// Folds blocks of words `levels` times: each result combines 2^`levels` neighbours.
pub(crate) fn folded(mut words: impl Iterator<Item = [u64; WORDS]>, levels: u32) -> impl Iterator<Item = [u64; WORDS]> {
    core::iter::from_fn(move || {
        let first = words.next()?;
        let others = words.by_ref().take((1 << levels) - 1);
        Some(others.fold(first, |block, other| core::array::from_fn(|i| block[i] | other[i])))
    })
}

/// The size of a huge page on x86-64, and on AArch64 with 4 KiB pages.
const HUGE_PAGE: usize = 2 << 20;

/// The most blocks that one allocation can hold, with room to align them.
pub(crate) const MAX_BLOCKS: usize = (isize::MAX as usize - 2 * HUGE_PAGE) / BLOCK_BYTES;

/// The pages of a filter of 2 MiB and more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pages {
    /// 2 MiB if the system grants them.
    #[default]
    Huge,
    /// The system's own, mostly 4 KiB.
    Small,
}

/// From this size on, memory comes from the system and not from the allocator: an allocator that reuses freed memory
/// clears it explicitly, which takes milliseconds, and touches every page of it.
const MAPPED_BYTES: usize = 1 << 20;

/// Blocks that one owner writes.
///
/// The allocation is larger than the blocks by the alignment, and the blocks start at its first aligned byte: the
/// standard allocator clears memory with a large alignment explicitly, which touches every page of it.
pub(crate) struct Blocks {
    first: NonNull<Block>,
    len: usize,
    pages: Pages,
    /// `None` if the memory is borrowed.
    _allocation: Option<Allocation>,
}

struct Allocation {
    base: NonNull<u8>,
    layout: Layout,
}

impl Allocation {
    /// Allocates zeroed bytes, for a layout whose size is not 0.
    fn zeroed(layout: Layout) -> Option<Self> {
        let base = match Self::is_mapped(layout) {
            true => map(layout.size()),
            // SAFETY: the layout's size is not zero.
            false => NonNull::new(unsafe { alloc_zeroed(layout) }),
        };
        base.map(|base| Self { base, layout })
    }

    fn is_mapped(layout: Layout) -> bool {
        CAN_MAP && layout.size() >= MAPPED_BYTES
    }
}

// SAFETY: `Blocks` owns its memory, as a `Vec<Block>` does, or only reads it, as a `&[Block]` does.
unsafe impl Send for Blocks {}
// SAFETY: shared references to `Blocks` only read, and `AtomicBlocks` reaches the memory through atomics alone.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Allocates `len` zeroed blocks, 1 ≤ `len` ≤ [`MAX_BLOCKS`]. Takes no time and no memory until they are written.
    pub(crate) fn zeroed(len: usize, pages: Pages) -> Result<Self, BuildError> {
        assert!((1..=MAX_BLOCKS).contains(&len), "{len} blocks");
        let bytes = len * BLOCK_BYTES;
        let align = if bytes >= HUGE_PAGE { HUGE_PAGE } else { BLOCK_BYTES };
        // `calloc` aligns to at least 8 on all platforms.
        let layout = Layout::from_size_align(bytes + align, 8).map_err(|_| BuildError::OutOfMemory { bytes })?;
        let allocation = Allocation::zeroed(layout).ok_or(BuildError::OutOfMemory { bytes })?;
        let padding = allocation.base.align_offset(align);
        // Miri may return `usize::MAX`.
        assert!(padding <= align, "{padding} bytes of padding");
        // SAFETY: `padding` is at most `align`, by which the allocation is larger than the blocks.
        let first = unsafe { allocation.base.add(padding) }.cast::<Block>();
        if align == HUGE_PAGE {
            advise(first.cast(), bytes, pages);
        }
        Ok(Self { first, len, pages, _allocation: Some(allocation) })
    }

    /// Copies blocks to the first of these, which are zero. Pages without a set bit are not written to.
    fn copy_pages(&mut self, other: &Self) {
        for (copy, page) in self.as_mut_slice().chunks_mut(PAGE).zip(other.as_slice().chunks(PAGE)) {
            if !is_zero(page) {
                copy[..page.len()].copy_from_slice(page);
            }
        }
    }

    /// Sets the blocks from `first` on, which are zero, to blocks in the byte order of files. Pages without a set bit are not
    /// written to.
    #[cfg(feature = "file")]
    pub(crate) fn read_from_bytes(&mut self, first: usize, bytes: &[[[u8; 8]; WORDS]]) {
        let blocks = &mut self.as_mut_slice()[first..][..bytes.len()];
        for (page, bytes) in blocks.chunks_mut(PAGE).zip(bytes.chunks(PAGE)) {
            if bytes.iter().any(|block| *block != [[0; 8]; WORDS]) {
                page.iter_mut().zip(bytes).for_each(|(block, words)| *block = Block(words.map(u64::from_le_bytes)));
            }
        }
    }

    /// Extends the blocks by zero ones to `len` in all. Copies, so that the memory written to is at most twice the memory of
    /// the old blocks.
    #[cfg(feature = "file")]
    pub(crate) fn grown(self, len: usize) -> Result<Self, BuildError> {
        let mut grown = Self::zeroed(len, self.pages)?;
        grown.copy_pages(&self);
        Ok(grown)
    }

    /// Uses these bytes as blocks, at least one.
    ///
    /// # Errors
    /// The number of bytes from a multiple of 64 to their start, unless it is 0.
    ///
    /// # Safety
    /// - As long as the result lives, the bytes must stay in place and unchanged.
    /// - The result must be accessed through shared references only: its memory is read-only.
    #[cfg(feature = "file")]
    pub(crate) unsafe fn borrowed(bytes: &[u8]) -> Result<Self, usize> {
        assert!(!bytes.is_empty() && bytes.len().is_multiple_of(BLOCK_BYTES));
        let first = NonNull::from(bytes).cast::<Block>();
        match first.addr().get() % BLOCK_BYTES {
            0 => Ok(Self { first, len: bytes.len() / BLOCK_BYTES, pages: Pages::default(), _allocation: None }),
            remainder => Err(remainder),
        }
    }

    /// Uses the memory of borrowed blocks a second time.
    ///
    /// # Safety
    /// As for [`borrowed`](Self::borrowed).
    #[cfg(feature = "file")]
    pub(crate) unsafe fn borrowed_again(&self) -> Self {
        debug_assert!(self._allocation.is_none());
        Self { _allocation: None, ..*self }
    }

    #[cfg(feature = "file")]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[Block] {
        // SAFETY: `zeroed` or `borrowed` found `len` aligned blocks at `first`; any bits are a valid `Block`.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    #[inline(always)]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Block] {
        // SAFETY: as in `as_slice`; `self` is borrowed exclusively, which the caller of `borrowed` ruled out for memory
        // that is read-only.
        unsafe { core::slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }

    /// [`zeroed`](Self::zeroed) for callers that cannot return an error: aborts without memory, as a `Vec` does.
    fn zeroed_or_abort(len: usize, pages: Pages) -> Self {
        Self::zeroed(len, pages).unwrap_or_else(|_| match Layout::array::<Block>(len) {
            Ok(layout) => alloc::alloc::handle_alloc_error(layout),
            Err(error) => panic!("{len} blocks: {error}"),
        })
    }

    /// Returns the block of a hash.
    #[inline(always)]
    pub(crate) fn locate(&self, hash: u64) -> &Block {
        let index = block::locate(hash, self.len);
        // SAFETY: hash < 2^64, so index = floor(hash × len / 2^64) < len.
        unsafe { self.as_slice().get_unchecked(index) }
    }

    /// Returns the block of a hash, to write to.
    #[inline(always)]
    pub(crate) fn locate_mut(&mut self, hash: u64) -> &mut Block {
        let index = block::locate(hash, self.len);
        // SAFETY: hash < 2^64, so index = floor(hash × len / 2^64) < len.
        unsafe { self.as_mut_slice().get_unchecked_mut(index) }
    }

    /// Prefetches the cache line of a hash's block.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.locate(hash), self.len);
    }
}

impl Blocks {
    /// Makes `len` blocks with these words.
    pub(crate) fn from_words(len: usize, pages: Pages, words: impl Iterator<Item = [u64; WORDS]>) -> Self {
        let mut blocks = Self::zeroed_or_abort(len, pages);
        blocks.as_mut_slice().iter_mut().zip(words).for_each(|(block, words)| block.set(words));
        blocks
    }
}

impl Block {
    /// Writes the words only if they differ, because the system has not yet provided pages that were never written to.
    #[inline(always)]
    fn set(&mut self, words: [u64; WORDS]) {
        if self.0 != words {
            self.0 = words;
        }
    }
}

/// Returns true if no bit is set.
fn is_zero(page: &[Block]) -> bool {
    page.iter().all(|block| *block == Block::default())
}

impl BlockStore for Blocks {
    fn words(&self) -> impl Iterator<Item = [u64; WORDS]> + Clone {
        self.as_slice().iter().map(|block| block.0)
    }

    fn clear(&mut self) {
        // Reads first: a write to a page that was never written to would make the system provide it.
        for page in self.as_mut_slice().chunks_mut(PAGE) {
            if !is_zero(page) {
                page.fill(Block::default());
            }
        }
    }

    fn populate(&mut self) {
        let touch = |block: &mut Block| {
            let word = &mut block.0[0];
            // SAFETY: a reference is valid for both. Volatile, because the compiler would remove a write of the present
            // value.
            unsafe { core::ptr::write_volatile(word, core::ptr::read_volatile(word)) }
        };
        #[cfg(feature = "rayon")]
        {
            use rayon::prelude::*;
            let pages = self.as_mut_slice().par_chunks_mut(HUGE_PAGE / BLOCK_BYTES);
            pages.for_each(|page| page.iter_mut().step_by(PAGE).for_each(touch));
        }
        #[cfg(not(feature = "rayon"))]
        self.as_mut_slice().iter_mut().step_by(PAGE).for_each(touch);
    }
}

impl BlockStoreMut for Blocks {
    fn merge(&mut self, theirs: impl Iterator<Item = [u64; WORDS]>, word: impl Fn(u64, u64) -> u64) {
        for (ours, theirs) in self.as_mut_slice().iter_mut().zip(theirs) {
            ours.set(core::array::from_fn(|i| word(ours.0[i], theirs[i])));
        }
    }
}

impl PartialEq for Blocks {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        match Self::is_mapped(self.layout) {
            // SAFETY: `zeroed` mapped as many bytes at `base`, and a dropped allocation is not used any more.
            true => unsafe { unmap(self.base, self.layout.size()) },
            // SAFETY: `zeroed` allocated `base` with this layout.
            false => unsafe { dealloc(self.base.as_ptr(), self.layout) },
        }
    }
}

impl Clone for Blocks {
    fn clone(&self) -> Self {
        let mut copy = Self::zeroed_or_abort(self.len, self.pages);
        copy.copy_pages(self);
        copy
    }
}

/// Eight words in one cache line, for many writers.
#[repr(C, align(64))]
pub(crate) struct AtomicBlock(pub(crate) [AtomicU64; WORDS]);

/// Blocks that many threads write: the memory of a [`Blocks`], accessed through atomics until it is converted back.
#[cfg(not(loom))]
pub(crate) struct AtomicBlocks(Blocks);

#[cfg(not(loom))]
impl AtomicBlocks {
    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[AtomicBlock] {
        // SAFETY: `AtomicU64` has the size and the bit validity of `u64`, and both block types the same alignment. The
        // pointer stems from the allocation, not from a reference, and no `&Block` is made while `self` is shared.
        unsafe { core::slice::from_raw_parts(self.0.first.as_ptr().cast(), self.0.len) }
    }

    fn pages(&self) -> Pages {
        self.0.pages
    }

    /// Returns the block of a hash.
    #[inline(always)]
    pub(crate) fn locate(&self, hash: u64) -> &AtomicBlock {
        let index = block::locate(hash, self.0.len);
        // SAFETY: hash < 2^64, so index = floor(hash × len / 2^64) < len.
        unsafe { self.as_slice().get_unchecked(index) }
    }
}

#[cfg(not(loom))]
impl From<Blocks> for AtomicBlocks {
    fn from(blocks: Blocks) -> Self {
        Self(blocks)
    }
}

#[cfg(not(loom))]
impl From<AtomicBlocks> for Blocks {
    fn from(blocks: AtomicBlocks) -> Self {
        blocks.0
    }
}

/// Under loom the atomics are loom's own, which are larger than a word: conversions copy.
#[cfg(loom)]
pub(crate) struct AtomicBlocks(alloc::vec::Vec<AtomicBlock>);

#[cfg(loom)]
impl AtomicBlocks {
    pub(crate) fn as_slice(&self) -> &[AtomicBlock] {
        &self.0
    }

    fn pages(&self) -> Pages {
        Pages::default()
    }

    pub(crate) fn locate(&self, hash: u64) -> &AtomicBlock {
        &self.0[block::locate(hash, self.0.len())]
    }
}

#[cfg(loom)]
impl From<Blocks> for AtomicBlocks {
    fn from(blocks: Blocks) -> Self {
        Self(blocks.as_slice().iter().map(|block| AtomicBlock(block.0.map(AtomicU64::new))).collect())
    }
}

#[cfg(loom)]
impl From<AtomicBlocks> for Blocks {
    fn from(atomic: AtomicBlocks) -> Self {
        let mut blocks = Self::zeroed(atomic.0.len(), Pages::default()).expect("as many blocks as before");
        for (block, mut words) in blocks.as_mut_slice().iter_mut().zip(atomic.0) {
            block.0 = core::array::from_fn(|i| words.0[i].with_mut(|word| *word));
        }
        blocks
    }
}

/// Copies each word at some moment during the call.
impl Clone for AtomicBlocks {
    fn clone(&self) -> Self {
        Blocks::from_words(self.as_slice().len(), self.pages(), self.words()).into()
    }
}

/// Reads each word at some moment during the call.
impl PartialEq for AtomicBlocks {
    fn eq(&self, other: &Self) -> bool {
        self.words().eq(other.words())
    }
}

/// Reads each word at some moment during the walk.
impl BlockStore for AtomicBlocks {
    fn words(&self) -> impl Iterator<Item = [u64; WORDS]> + Clone {
        // Relaxed: words read one by one, with no order among them to keep.
        self.as_slice().iter().map(|block| core::array::from_fn(|i| block.0[i].load(Ordering::Relaxed)))
    }

    fn clear(&mut self) {
        self.clear_relaxed();
    }

    fn populate(&mut self) {
        // Under loom the words are a vector that was filled one by one.
        #[cfg(not(loom))]
        self.0.populate();
    }
}

impl AtomicBlocks {
    /// Clears all bits, each at some moment during the call. It is not atomic as a whole: callers must coordinate it with
    /// concurrent readers and writers.
    pub(crate) fn clear_relaxed(&self) {
        for word in self.as_slice().iter().flat_map(|block| &block.0) {
            // Relaxed: the caller orders it for other threads. Reads first, as the blocks of one writer do.
            if word.load(Ordering::Relaxed) != 0 {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Clears the bits that are clear in `theirs`.
    pub(crate) fn and_assign(&mut self, theirs: impl Iterator<Item = [u64; WORDS]>) {
        for (ours, theirs) in self.as_slice().iter().zip(theirs) {
            for (ours, theirs) in ours.0.iter().zip(theirs) {
                // Relaxed, and in two steps: `self` is borrowed exclusively. Reads first, as in `clear_relaxed`.
                let word = ours.load(Ordering::Relaxed);
                if word & !theirs != 0 {
                    ours.store(word & theirs, Ordering::Relaxed);
                }
            }
        }
    }

    /// Sets the bits that are set in `theirs`, while other threads write to both.
    pub(crate) fn or_assign(&self, theirs: impl Iterator<Item = [u64; WORDS]>) {
        for (ours, theirs) in self.as_slice().iter().zip(theirs) {
            for (ours, theirs) in ours.0.iter().zip(theirs) {
                // Relaxed suffices to read: it only saves the write.
                if theirs & !ours.load(Ordering::Relaxed) != 0 {
                    // AcqRel, as in an insert: it must not break the release sequence that readers of a linearizing
                    // word rely on. A read-modify-write of any ordering would continue the sequence; this one also
                    // keeps the rule simple.
                    ours.fetch_or(theirs, Ordering::AcqRel);
                }
            }
        }
    }

    /// Prefetches the cache line of a hash's block.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        prefetch(self.locate(hash), self.as_slice().len());
    }
}

/// True if memory can come from the system.
const CAN_MAP: bool = cfg!(all(target_os = "linux", feature = "std", not(miri)));

/// Maps `bytes` zeroed bytes. The system provides a page when it is first written to.
fn map(bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(all(target_os = "linux", feature = "std", not(miri)))]
    {
        let (access, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, at an address that the system chooses, overlaps no other memory.
        let base = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, private, -1, 0) };
        if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
    }
    #[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
    {
        let _ = bytes;
        None
    }
}

/// Returns a mapping to the system.
///
/// # Safety
/// - [`map`] returned `base` for as many bytes, and they are not used any more.
unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    #[cfg(all(target_os = "linux", feature = "std", not(miri)))]
    // SAFETY: only the caller has the mapping.
    unsafe {
        libc::munmap(base.as_ptr().cast(), bytes);
    }
    #[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
    let _ = (base, bytes);
}

/// Advises Linux on the size of pages. If it refuses 2 MiB pages, they are small and accesses are slower.
fn advise(start: NonNull<u8>, bytes: usize, pages: Pages) {
    #[cfg(all(target_os = "linux", feature = "std", not(miri)))]
    {
        let advice = if pages == Pages::Huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the range is a live allocation of ours, page-aligned at its start; the advice changes no contents.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, advice) };
    }
    #[cfg(not(all(target_os = "linux", feature = "std", not(miri))))]
    let _ = (start, bytes, pages);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zero_and_start_on_cache_lines() {
        for len in [1, 2, 3, 100, 32_767, 32_768, 32_769, 100_000] {
            let blocks = Blocks::zeroed(len, Pages::default()).unwrap();
            assert_eq!(blocks.as_slice().as_ptr() as usize % 64, 0, "{len}");
            if len * BLOCK_BYTES >= HUGE_PAGE {
                assert_eq!(blocks.as_slice().as_ptr() as usize % HUGE_PAGE, 0, "{len}");
            }
            assert!(blocks.as_slice().iter().all(|block| *block == Block::default()));
        }
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn absurd_sizes_are_refused() {
        // 2^56 bytes and more: beyond any address space of today.
        for len in [1 << 50, MAX_BLOCKS] {
            assert_eq!(
                Blocks::zeroed(len, Pages::default()).err(),
                Some(BuildError::OutOfMemory { bytes: len * BLOCK_BYTES })
            );
        }
    }
}
