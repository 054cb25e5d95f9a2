//! Dot products and sums of int8 vectors, with the widest SIMD instructions of the CPU.
//!
//! Only this module and its submodules have `unsafe`: a function compiled for certain CPU features may be called only
//! on a CPU that has them, which is known only at run time. The loop that sums the vectors of a text is
//! auto-vectorised. For scans, the compiler would reduce the lanes after each block, which takes more than twice as
//! long, so the scan kernels use intrinsics. All kernels produce the same bits: integer sums are exact, and floats
//! are multiplied and then added, component by component, never fused.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls and loads that are guarded by CPU feature detection")
)]

#[cfg(feature = "deep")]
pub(crate) mod matrix;
#[cfg(feature = "deep")]
pub(crate) mod vector_loop;

use std::sync::LazyLock;

/// 64 int8 values, aligned to a cache line. This is the width of the widest register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Block(pub(crate) [i8; 64]);

impl Block {
    pub(crate) const LEN: usize = 64;
    pub(crate) const ZERO: Self = Self([0; 64]);
}

/// The input of a scan: vectors, and the query to compare them with.
#[derive(Clone, Copy)]
pub(crate) struct ScanInput<'a> {
    /// The blocks of all vectors; each vector has as many blocks as the query.
    pub(crate) vectors: &'a [Block],
    /// One scale per vector.
    pub(crate) scales: &'a [f32],
    /// The blocks of the query. There is at least one.
    pub(crate) query: &'a [Block],
    pub(crate) query_scale: f32,
}

impl ScanInput<'_> {
    /// Writes the dot product of each vector and the query, times both scales, into `out`.
    #[expect(clippy::inline_always, reason = "compiled once for each set of CPU features")]
    #[inline(always)]
    fn write_products(self, out: &mut [f32], dot: impl Fn(&[Block]) -> i32) {
        let vectors = self.vectors.chunks_exact(self.query.len());
        for ((vector, scale), out) in vectors.zip(self.scales).zip(out) {
            *out = dot(vector) as f32 * (scale * self.query_scale);
        }
    }
}

/// An implementation of the vector operations for certain CPU features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// The baseline features of the architecture; on ARM they include NEON.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with VNNI, which sums products of bytes or of 16-bit integers.
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

impl Kernel {
    /// Returns the fastest kernel that this CPU supports.
    pub(crate) fn best() -> Self {
        static BEST: LazyLock<Kernel> =
            LazyLock::new(|| Kernel::all().last().unwrap_or(Kernel::Portable));
        *BEST
    }

    /// Returns all kernels that this CPU supports, slowest first. Kernels must be obtained only from this function,
    /// because a kernel may run only on a CPU that supports its features.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        #[cfg(not(target_arch = "x86_64"))]
        let detected: [Option<Self>; 0] = [];
        #[cfg(target_arch = "x86_64")]
        let detected = {
            let avx2 = is_x86_feature_detected!("avx2");
            let vnni = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni");
            [avx2.then_some(Self::Avx2), vnni.then_some(Self::Vnni)]
        };
        std::iter::once(Self::Portable).chain(detected.into_iter().flatten())
    }

    /// Writes the dot product of each vector and the query, times both scales, into `out`.
    pub(crate) fn scan(self, scan: ScanInput<'_>, out: &mut [f32]) {
        match self {
            Self::Portable => scan.write_products(out, |vector| dot(vector, scan.query)),
            // SAFETY: `all` returned this kernel, so the CPU supports its features.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::scan_avx2(scan, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => unsafe { x86::scan_vnni(scan, out) },
        }
    }

    /// Multiplies each of `codes`, whose bytes are i8, by `scale` and adds it to the component of `sum` at the same
    /// position.
    pub(crate) fn add(self, sum: &mut [f32], codes: &[u8], scale: f32) {
        match self {
            Self::Portable => add(sum, codes, scale),
            // SAFETY: as in `scan`; the VNNI kernel also requires AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::Vnni => unsafe { x86::add_avx2(sum, codes, scale) },
        }
    }
}

fn dot(a: &[Block], b: &[Block]) -> i32 {
    let mut sum = 0;
    for (a, b) in a.iter().zip(b) {
        for (a, b) in a.0.iter().zip(&b.0) {
            sum += i32::from(*a) * i32::from(*b);
        }
    }
    sum
}

#[expect(clippy::inline_always, reason = "compiled once for each set of CPU features")]
#[inline(always)]
fn add(sum: &mut [f32], codes: &[u8], scale: f32) {
    for (sum, code) in sum.iter_mut().zip(codes) {
        *sum += f32::from(code.cast_signed()) * scale;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_add_epi32, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_shuffle_epi32,
        _mm256_add_epi32, _mm256_castsi256_si128, _mm256_cvtepi8_epi16, _mm256_extracti128_si256,
        _mm256_madd_epi16, _mm256_setzero_si256, _mm512_dpbusd_epi32, _mm512_load_si512,
        _mm512_reduce_add_epi32, _mm512_set1_epi8, _mm512_setzero_si512, _mm512_xor_si512,
    };

    use super::{Block, ScanInput, add};

    #[target_feature(enable = "avx2")]
    pub(super) fn scan_avx2(scan: ScanInput<'_>, out: &mut [f32]) {
        scan.write_products(out, |vector| {
            let mut sums = [_mm256_setzero_si256(); 2];
            for (block, query) in vector.iter().zip(scan.query) {
                for (at, (quarter, query)) in quarters(block).zip(quarters(query)).enumerate() {
                    let products = _mm256_madd_epi16(widen(quarter), widen(query));
                    sums[at % 2] = _mm256_add_epi32(sums[at % 2], products);
                }
            }
            total(_mm256_add_epi32(sums[0], sums[1]))
        });
    }

    #[target_feature(enable = "avx2,avx512f,avx512vnni")]
    pub(super) fn scan_vnni(scan: ScanInput<'_>, out: &mut [f32]) {
        // The instruction multiplies unsigned bytes by signed bytes. Flipping the top bit of a code makes the code
        // unsigned and 128 too large, so the result is too large by 128 times the sum of the query's codes.
        let codes = scan.query.iter().flat_map(|block| block.0);
        let surplus = 128 * codes.map(i32::from).sum::<i32>();
        let top = _mm512_set1_epi8(i8::MIN);
        scan.write_products(out, |vector| {
            let mut sums = _mm512_setzero_si512();
            for (block, query) in vector.iter().zip(scan.query) {
                sums = _mm512_dpbusd_epi32(sums, _mm512_xor_si512(load(block), top), load(query));
            }
            _mm512_reduce_add_epi32(sums) - surplus
        });
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn add_avx2(sum: &mut [f32], codes: &[u8], scale: f32) {
        add(sum, codes, scale);
    }

    fn quarters(block: &Block) -> impl Iterator<Item = &[i8; 16]> {
        block.0.as_chunks().0.iter()
    }

    #[target_feature(enable = "avx2")]
    fn widen(quarter: &[i8; 16]) -> __m256i {
        // SAFETY: reads the 16 bytes of `quarter`; the load does not require alignment.
        _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(std::ptr::from_ref(quarter).cast()) })
    }

    /// Returns the sum of the eight lanes.
    #[target_feature(enable = "avx2")]
    fn total(sums: __m256i) -> i32 {
        let four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b00_00_11_10>(four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b00_00_00_01>(two)))
    }

    #[target_feature(enable = "avx512f")]
    fn load(block: &Block) -> __m512i {
        // SAFETY: a block has 64 bytes and is aligned to 64.
        unsafe { _mm512_load_si512(std::ptr::from_ref(block).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the dot product in a straightforward way, as a reference for the kernels.
    fn naive(a: &[Block], b: &[Block]) -> i32 {
        let codes = |blocks: &[Block]| -> Vec<i32> {
            blocks.iter().flat_map(|block| block.0).map(i32::from).collect()
        };
        codes(a).iter().zip(codes(b)).map(|(a, b)| a * b).sum()
    }

    fn scanned(kernel: Kernel, vectors: &[Block], query: &[Block]) -> Vec<f32> {
        let count = vectors.len() / query.len();
        let scales = vec![1.0; count];
        let mut out = vec![f32::NAN; count];
        kernel.scan(ScanInput { vectors, scales: &scales, query, query_scale: 1.0 }, &mut out);
        out
    }

    /// Generates blocks in which the extreme values are frequent.
    fn block() -> impl Strategy<Value = Block> {
        let code = prop_oneof![Just(i8::MIN), Just(i8::MAX), Just(-1), any::<i8>()];
        proptest::collection::vec(code, 64).prop_map(|codes| {
            let mut block = Block::ZERO;
            block.0.copy_from_slice(&codes);
            block
        })
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        for value in [i8::MIN, i8::MAX, 0] {
            for other in [i8::MIN, i8::MAX, -1] {
                for width in [1_u8, 2, 4, 5, 64] {
                    let vector = vec![Block([value; 64]); usize::from(width)];
                    let query = vec![Block([other; 64]); usize::from(width)];
                    let exact = i32::from(value) * i32::from(other) * 64 * i32::from(width);
                    for kernel in Kernel::all() {
                        let sums = scanned(kernel, &vector, &query);
                        assert_eq!(sums, [exact as f32], "{kernel:?}, {width}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_kernel_computes_the_exact_dot_product(
            width in 1_usize..7,
            blocks in proptest::collection::vec(block(), 7..40),
        ) {
            let (query, vectors) = blocks.split_at(width);
            let exact: Vec<f32> =
                vectors.chunks_exact(width).map(|vector| naive(vector, query) as f32).collect();
            for kernel in Kernel::all() {
                prop_assert_eq!(&scanned(kernel, vectors, query), &exact, "{:?}", kernel);
            }
        }

        #[test]
        fn every_kernel_adds_the_same_bits(
            codes in proptest::collection::vec(any::<u8>(), 0..300),
            scale in -1e3_f32..1e3,
            start in -1e3_f32..1e3,
        ) {
            let exact: Vec<u32> = codes
                .iter()
                .map(|code| (start + f32::from(code.cast_signed()) * scale).to_bits())
                .collect();
            for kernel in Kernel::all() {
                let mut sum = vec![start; codes.len()];
                kernel.add(&mut sum, &codes, scale);
                let bits: Vec<u32> = sum.iter().map(|sum| sum.to_bits()).collect();
                prop_assert_eq!(&bits, &exact, "{:?}", kernel);
            }
        }
    }
}
