//! The items that the kernels for x86-64 have in common: the proof that the CPU has the instruction set, and all functions
//! compiled for it.

/// Defines `$Token`, which proves that the CPU has `$cpu`, and implements the traits of kernels with the `contains` and `insert` of
/// the file, which must need no other features than `$features`.
macro_rules! x86_kernel {
    ($Token:ident, $features:literal, $cpu:literal) => {
        #[doc = concat!("Proof that the CPU has ", $cpu, ". Only `unsafe` functions of this file make it; their callers")]
        /// have checked the CPU.
        #[derive(Clone, Copy)]
        pub struct $Token(());

        impl $Token {
            /// Returns the proof.
            ///
            /// # Safety
            #[doc = concat!("- The CPU must have ", $cpu, ".")]
            pub(super) unsafe fn new_unchecked() -> Self {
                Self(())
            }
        }

        /// Runs the operation compiled for the instruction set.
        ///
        /// # Safety
        #[doc = concat!("- The CPU must have ", $cpu, ".")]
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn run<T: BatchOp, const B: usize>(op: T) -> T::Output {
            op.run::<$Token, B>($Token(()))
        }

        /// Runs the operation on one key, compiled for the instruction set.
        ///
        /// # Safety
        #[doc = concat!("- The CPU must have ", $cpu, ".")]
        #[inline]
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn run_single<O: KeyOp, const B: usize>(mut target: O::Target<'_>, hash: u64) -> bool {
            O::run($Token(()), &mut target, hash, B)
        }

        impl KernelOps for $Token {
            #[inline(always)]
            fn contains(self, block: &Block, pattern: Pattern, b: usize) -> bool {
                // SAFETY: `self` exists, so the CPU has the instruction set: see the token.
                unsafe { contains(block, pattern, b) }
            }

            #[inline(always)]
            fn insert(self, block: &mut Block, pattern: Pattern, b: usize) -> bool {
                // SAFETY: `self` exists, so the CPU has the instruction set: see the token.
                unsafe { insert(block, pattern, b) }
            }
        }

        #[allow(private_bounds, private_interfaces)] // As in the trait.
        impl RunKeyOp for $Token {
            #[inline(always)]
            fn call<R>(self, body: impl FnOnce() -> R) -> R {
                #[target_feature(enable = $features)]
                fn compiled<R>(body: impl FnOnce() -> R) -> R {
                    body()
                }
                // SAFETY: `self` exists, so the CPU has the instruction set: see the token.
                unsafe { compiled(body) }
            }

            #[inline(always)]
            fn run<O: KeyOp, L>(self, _: KernelFn<O>, target: O::Target<'_>, hash: u64) -> bool {
                // SAFETY: `self` exists, so the CPU has the instruction set: see the token.
                unsafe { run_in_loop::<O, L>(self, target, hash) }
            }
        }

        /// Runs the operation on one key, for any number of probes, in the loop `L`. The compiler inlines it into code of the
        /// same instruction set only.
        #[inline]
        #[target_feature(enable = $features)]
        fn run_in_loop<O: KeyOp, L>(isa: $Token, mut target: O::Target<'_>, hash: u64) -> bool {
            let b = O::probes(&target) as usize / LANES;
            O::run(isa, &mut target, hash, b)
        }
    };
}

pub(super) use x86_kernel;
