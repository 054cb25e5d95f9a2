//! Sums over int8 numbers, with the widest instructions that the processor has.
//!
//! The one module with `unsafe` in it: a function built for instructions that not every processor has
//! may be called only on one that has them, and that is known at run time alone. The compiler finds the
//! instructions for the sum of a text by itself; in a scan it adds up the lanes of each block before it
//! goes on, which takes more than twice as long, so that one is written out. All kernels give the same
//! bits: integer sums are exact, and floats are multiplied and then added, number by number, never fused.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls and loads behind a check of the processor")
)]

use std::sync::LazyLock;

/// 64 numbers that begin on a cache line: the width of the widest register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Block(pub(crate) [i8; 64]);

impl Block {
    pub(crate) const LEN: usize = 64;
    pub(crate) const ZERO: Self = Self([0; 64]);
}

/// Vectors to compare with one query.
#[derive(Clone, Copy)]
pub(crate) struct Scan<'a> {
    /// Row after row, each of as many blocks as the query has.
    pub(crate) rows: &'a [Block],
    /// One a row.
    pub(crate) scales: &'a [f32],
    /// Not empty.
    pub(crate) query: &'a [Block],
    pub(crate) query_scale: f32,
}

impl Scan<'_> {
    /// Puts the dot product of each row and the query, times both scales, into `out`.
    #[expect(clippy::inline_always, reason = "built once for each set of instructions")]
    #[inline(always)]
    fn each(self, out: &mut [f32], dot: impl Fn(&[Block]) -> i32) {
        let rows = self.rows.chunks_exact(self.query.len());
        for ((row, scale), out) in rows.zip(self.scales).zip(out) {
            *out = dot(row) as f32 * (scale * self.query_scale);
        }
    }
}

/// A way to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// What every processor of this architecture has; on ARM that is NEON.
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with its sums of products of bytes.
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

impl Kernel {
    /// The fastest one here.
    pub(crate) fn best() -> Self {
        static BEST: LazyLock<Kernel> =
            LazyLock::new(|| Kernel::all().last().unwrap_or(Kernel::Plain));
        *BEST
    }

    /// All that this processor can run, slowest first. No kernel comes from anywhere else.
    fn all() -> impl Iterator<Item = Self> {
        #[cfg(not(target_arch = "x86_64"))]
        let more: [Option<Self>; 0] = [];
        #[cfg(target_arch = "x86_64")]
        let more = {
            let avx2 = is_x86_feature_detected!("avx2");
            let vnni = avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vnni");
            [avx2.then_some(Self::Avx2), vnni.then_some(Self::Vnni)]
        };
        std::iter::once(Self::Plain).chain(more.into_iter().flatten())
    }

    /// Puts the dot product of each row and the query, times both scales, into `out`.
    pub(crate) fn scan(self, scan: Scan<'_>, out: &mut [f32]) {
        match self {
            Self::Plain => scan.each(out, |row| dot(row, scan.query)),
            // SAFETY: `all` made this kernel, so the processor has its instructions.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::scan_avx2(scan, out) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => unsafe { x86::scan_vnni(scan, out) },
        }
    }

    /// Adds `scale` times each number of `row`, whose bytes are i8, to `sum`.
    pub(crate) fn add(self, sum: &mut [f32], row: &[u8], scale: f32) {
        match self {
            Self::Plain => add(sum, row, scale),
            // SAFETY: as in `scan`; and what has VNNI has AVX2.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 | Self::Vnni => unsafe { x86::add_avx2(sum, row, scale) },
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

#[expect(clippy::inline_always, reason = "built once for each set of instructions")]
#[inline(always)]
fn add(sum: &mut [f32], row: &[u8], scale: f32) {
    for (sum, code) in sum.iter_mut().zip(row) {
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

    use super::{Block, Scan, add};

    #[target_feature(enable = "avx2")]
    pub(super) fn scan_avx2(scan: Scan<'_>, out: &mut [f32]) {
        scan.each(out, |row| {
            let mut sums = [_mm256_setzero_si256(); 2];
            for (row, query) in row.iter().zip(scan.query) {
                for (at, (row, query)) in quarters(row).zip(quarters(query)).enumerate() {
                    let products = _mm256_madd_epi16(widen(row), widen(query));
                    sums[at % 2] = _mm256_add_epi32(sums[at % 2], products);
                }
            }
            total(_mm256_add_epi32(sums[0], sums[1]))
        });
    }

    #[target_feature(enable = "avx2,avx512f,avx512vnni")]
    pub(super) fn scan_vnni(scan: Scan<'_>, out: &mut [f32]) {
        // The instruction multiplies unsigned by signed numbers. With its top bit turned, a number of a
        // row is unsigned and 128 too large, and the sum is 128 times the query's sum too large.
        let numbers = scan.query.iter().flat_map(|block| block.0);
        let surplus = 128 * numbers.map(i32::from).sum::<i32>();
        let top = _mm512_set1_epi8(i8::MIN);
        scan.each(out, |row| {
            let mut sums = _mm512_setzero_si512();
            for (row, query) in row.iter().zip(scan.query) {
                sums = _mm512_dpbusd_epi32(sums, _mm512_xor_si512(load(row), top), load(query));
            }
            _mm512_reduce_add_epi32(sums) - surplus
        });
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn add_avx2(sum: &mut [f32], row: &[u8], scale: f32) {
        add(sum, row, scale);
    }

    fn quarters(block: &Block) -> impl Iterator<Item = &[i8; 16]> {
        block.0.as_chunks().0.iter()
    }

    #[target_feature(enable = "avx2")]
    fn widen(quarter: &[i8; 16]) -> __m256i {
        // SAFETY: 16 bytes are read where 16 bytes are; they need not be aligned.
        _mm256_cvtepi8_epi16(unsafe { _mm_loadu_si128(std::ptr::from_ref(quarter).cast()) })
    }

    /// The eight numbers, added up.
    #[target_feature(enable = "avx2")]
    fn total(sums: __m256i) -> i32 {
        let four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b00_00_11_10>(four));
        _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b00_00_00_01>(two)))
    }

    #[target_feature(enable = "avx512f")]
    fn load(block: &Block) -> __m512i {
        // SAFETY: a block is 64 bytes, and begins at a multiple of 64.
        unsafe { _mm512_load_si512(std::ptr::from_ref(block).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The sum as anyone would write it.
    fn naive(a: &[Block], b: &[Block]) -> i32 {
        let numbers = |blocks: &[Block]| -> Vec<i32> {
            blocks.iter().flat_map(|block| block.0).map(i32::from).collect()
        };
        numbers(a).iter().zip(numbers(b)).map(|(a, b)| a * b).sum()
    }

    fn scanned(kernel: Kernel, rows: &[Block], query: &[Block]) -> Vec<f32> {
        let count = rows.len() / query.len();
        let scales = vec![1.0; count];
        let mut out = vec![f32::NAN; count];
        kernel.scan(Scan { rows, scales: &scales, query, query_scale: 1.0 }, &mut out);
        out
    }

    /// Numbers from the edges more often than not.
    fn block() -> impl Strategy<Value = Block> {
        let number = prop_oneof![Just(i8::MIN), Just(i8::MAX), Just(-1), any::<i8>()];
        proptest::collection::vec(number, 64).prop_map(|numbers| {
            let mut block = Block::ZERO;
            block.0.copy_from_slice(&numbers);
            block
        })
    }

    #[test]
    fn the_extremes_do_not_overflow() {
        for value in [i8::MIN, i8::MAX, 0] {
            for other in [i8::MIN, i8::MAX, -1] {
                for width in [1_u8, 2, 4, 5, 64] {
                    let row = vec![Block([value; 64]); usize::from(width)];
                    let query = vec![Block([other; 64]); usize::from(width)];
                    let exact = i32::from(value) * i32::from(other) * 64 * i32::from(width);
                    for kernel in Kernel::all() {
                        let sums = scanned(kernel, &row, &query);
                        assert_eq!(sums, [exact as f32], "{kernel:?}, {width}");
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_kernel_sums_as_the_plain_loop_does(
            width in 1_usize..7,
            blocks in proptest::collection::vec(block(), 7..40),
        ) {
            let (query, rows) = blocks.split_at(width);
            let exact: Vec<f32> =
                rows.chunks_exact(width).map(|row| naive(row, query) as f32).collect();
            for kernel in Kernel::all() {
                prop_assert_eq!(&scanned(kernel, rows, query), &exact, "{:?}", kernel);
            }
        }

        #[test]
        fn every_kernel_adds_the_same_bits(
            row in proptest::collection::vec(any::<u8>(), 0..300),
            scale in -1e3_f32..1e3,
            start in -1e3_f32..1e3,
        ) {
            let exact: Vec<u32> = row
                .iter()
                .map(|code| (start + f32::from(code.cast_signed()) * scale).to_bits())
                .collect();
            for kernel in Kernel::all() {
                let mut sum = vec![start; row.len()];
                kernel.add(&mut sum, &row, scale);
                let bits: Vec<u32> = sum.iter().map(|sum| sum.to_bits()).collect();
                prop_assert_eq!(&bits, &exact, "{:?}", kernel);
            }
        }
    }
}
