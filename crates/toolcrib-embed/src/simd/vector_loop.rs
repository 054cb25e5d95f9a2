//! Loops over floats, compiled once for each set of CPU features.
//!
//! The loops are portable code that the compiler vectorises. It may use wider registers for a kernel with more
//! features, but it neither reorders sums nor fuses a multiplication with an addition, so every kernel gives the same
//! bits.

use super::Kernel;

/// A loop over floats, with its input and output.
pub(crate) trait VectorLoop {
    /// Runs the loop. Implementations must be `#[inline(always)]`, because a function that is not inlined would be
    /// compiled for the baseline features only.
    fn run(self);
}

impl Kernel {
    /// Runs a loop with the instructions of this kernel.
    pub(crate) fn run(self, work: impl VectorLoop) {
        match self {
            Self::Portable => work.run(),
            // SAFETY: `all` returned this kernel, so the CPU supports AVX2. The VNNI kernel also requires it.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::Vnni => unsafe { run_avx2(work) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2(work: impl VectorLoop) {
    work.run();
}
