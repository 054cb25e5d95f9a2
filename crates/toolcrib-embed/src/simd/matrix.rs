//! Products of int8 matrices and quantised activations, in which an encoder spends most of its time.
//!
//! The weights are int8. The activations are 13-bit integers, one scale per token, because 8 bits would cost accuracy
//! and the instructions for 16-bit integers are fast enough: they multiply pairs of inputs and add the two products.
//! So the weights are stored in panels of 16 outputs, and in a panel the two weights of a pair are adjacent, for one
//! output after another. A kernel converts the weights of a pair once and uses them for several tokens.
//!
//! Sums are exact in i32, and the conversion to floats is the same code for all kernels, so all give the same bits.

use super::Kernel;

/// Number of outputs in a panel.
pub(crate) const PANEL: usize = 16;
/// Largest absolute value of the code of an activation.
pub(crate) const MAX_CODE: i32 = 4095;
/// Maximum number of inputs of a matrix. The sum of this many products of a weight (at most 128) and an activation
/// (at most 4095) fits in an i32.
pub(crate) const MAX_INPUTS: usize = 4096;

/// A matrix in the packed layout, with a multiple of 16 outputs and an even number of inputs. Weights are multiplied
/// by the scale of their output.
#[derive(Clone, Copy)]
pub(crate) struct PackedMatrix<'a> {
    /// The weights; each byte is an i8. Position `((panel * pairs + pair) * 16 + output) * 2 + input`.
    pub(crate) codes: &'a [u8],
    /// One scale per output.
    pub(crate) scales: &'a [f32],
    /// One summand per output.
    pub(crate) biases: &'a [f32],
}

/// Quantised activations, one row per token.
#[derive(Clone, Copy)]
pub(crate) struct QuantisedRows<'a> {
    /// Two codes of 16 bits in each integer, the first in the lower half.
    pub(crate) pairs: &'a [i32],
    /// One scale per row.
    pub(crate) scales: &'a [f32],
}

/// The inputs of a multiplication, and where its results go.
struct Product<'a> {
    matrix: PackedMatrix<'a>,
    rows: QuantisedRows<'a>,
    /// One row per token.
    out: &'a mut [f32],
}

impl Kernel {
    /// Writes the product of the matrix and each row, plus the biases, into `out`.
    pub(crate) fn multiply(
        self,
        matrix: PackedMatrix<'_>,
        rows: QuantisedRows<'_>,
        out: &mut [f32],
    ) {
        let product = Product { matrix, rows, out };
        match self {
            Self::Portable => product.compute_portable(),
            // SAFETY: `all` returned this kernel, so the CPU supports its features.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { x86::compute_avx2(product) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Vnni => unsafe { x86::compute_vnni(product) },
        }
    }
}

impl<'a> Product<'a> {
    fn row_count(&self) -> usize {
        self.rows.scales.len()
    }

    fn panel_count(&self) -> usize {
        self.matrix.scales.len() / PANEL
    }

    /// Returns the weights of a panel, pair by pair.
    fn panel(&self, panel: usize) -> &'a [[u8; 2 * PANEL]] {
        let width = self.rows.pairs.len() / self.row_count();
        &self.matrix.codes.as_chunks().0[panel * width..][..width]
    }

    /// Returns consecutive rows of `width` pairs each.
    fn rows<const ROWS: usize>(&self, first: usize, width: usize) -> [&'a [i32]; ROWS] {
        std::array::from_fn(|row| &self.rows.pairs[(first + row) * width..][..width])
    }

    /// Converts the sums of one row and panel to floats and stores them.
    #[expect(clippy::inline_always, reason = "compiled once for each set of CPU features")]
    #[inline(always)]
    fn store(&mut self, row: usize, panel: usize, sums: &[i32; PANEL]) {
        let row_scale = self.rows.scales[row];
        let scales = &self.matrix.scales.as_chunks::<PANEL>().0[panel];
        let biases = &self.matrix.biases.as_chunks::<PANEL>().0[panel];
        // The results are collected before they are stored, because the compiler does not vectorise a loop in which a
        // store could change the next scale.
        let mut results = [0.0; PANEL];
        for (((result, sum), scale), bias) in results.iter_mut().zip(sums).zip(scales).zip(biases) {
            *result = *sum as f32 * (scale * row_scale) + bias;
        }
        let start = row * self.matrix.scales.len() + panel * PANEL;
        self.out[start..start + PANEL].copy_from_slice(&results);
    }

    fn compute_portable(mut self) {
        // The weights of a panel as 16-bit integers, for each pair first those of one input, then those of the other.
        // The compiler vectorises loops over such weights, but not loops over the packed bytes.
        let mut weights = Vec::new();
        for panel in 0..self.panel_count() {
            weights.clear();
            weights.extend(self.panel(panel).iter().map(|packed| {
                let packed: &[[u8; 2]] = packed.as_chunks().0;
                [0, 1].map(|input| {
                    std::array::from_fn(|output| i16::from(packed[output][input].cast_signed()))
                })
            }));
            let mut row = 0;
            while row < self.row_count() {
                row += match self.row_count() - row {
                    1..4 => self.tile_portable::<1>(row, panel, &weights),
                    _ => self.tile_portable::<4>(row, panel, &weights),
                };
            }
        }
    }

    fn tile_portable<const ROWS: usize>(
        &mut self,
        first: usize,
        panel: usize,
        weights: &[[[i16; PANEL]; 2]],
    ) -> usize {
        let rows = self.rows::<ROWS>(first, weights.len());
        let mut sums = [[0_i32; PANEL]; ROWS];
        for (at, [first, second]) in weights.iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let (a, b) = (row[at] as i16, (row[at] >> 16) as i16);
                for ((sum, v), w) in sums.iter_mut().zip(first).zip(second) {
                    *sum += i32::from(*v) * i32::from(a) + i32::from(*w) * i32::from(b);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            self.store(first + row, panel, sums);
        }
        ROWS
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16,
        _mm256_loadu_si256, _mm256_madd_epi16, _mm256_set1_epi32, _mm256_setzero_si256,
        _mm256_storeu_si256, _mm512_cvtepi8_epi16, _mm512_dpwssd_epi32, _mm512_set1_epi32,
        _mm512_setzero_si512, _mm512_storeu_si512,
    };

    use super::{PANEL, Product};

    #[target_feature(enable = "avx2")]
    pub(super) fn compute_avx2(mut product: Product<'_>) {
        for panel in 0..product.panel_count() {
            let mut row = 0;
            while row < product.row_count() {
                // Six rows need 12 of the 16 registers for sums. The others hold two vectors of weights, the
                // activations and the products.
                row += match product.row_count() - row {
                    1 => tile_avx2::<1>(&mut product, row, panel),
                    2 => tile_avx2::<2>(&mut product, row, panel),
                    3 => tile_avx2::<3>(&mut product, row, panel),
                    4 => tile_avx2::<4>(&mut product, row, panel),
                    5 => tile_avx2::<5>(&mut product, row, panel),
                    _ => tile_avx2::<6>(&mut product, row, panel),
                };
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn tile_avx2<const ROWS: usize>(
        product: &mut Product<'_>,
        first: usize,
        panel: usize,
    ) -> usize {
        let weights = product.panel(panel);
        let rows = product.rows::<ROWS>(first, weights.len());
        let mut sums = [[_mm256_setzero_si256(); 2]; ROWS];
        for (at, weights) in weights.iter().enumerate() {
            let [low, high] = widen_to_avx2(weights);
            for (sums, row) in sums.iter_mut().zip(&rows) {
                // SAFETY: each row is as long as `weights`.
                let pair = _mm256_set1_epi32(unsafe { *row.get_unchecked(at) });
                sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(low, pair));
                sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(high, pair));
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            let mut lanes = [0; PANEL];
            for (lanes, sums) in lanes.as_chunks_mut::<8>().0.iter_mut().zip(sums) {
                // SAFETY: writes the 32 bytes of `lanes`; the store does not require alignment.
                unsafe { _mm256_storeu_si256(std::ptr::from_mut(lanes).cast(), *sums) };
            }
            product.store(first + row, panel, &lanes);
        }
        ROWS
    }

    #[target_feature(enable = "avx2")]
    fn widen_to_avx2(weights: &[u8; 2 * PANEL]) -> [__m256i; 2] {
        let start: *const u8 = weights.as_ptr();
        // SAFETY: reads the first and the last 16 of the 32 bytes; the loads do not require alignment.
        let halves =
            unsafe { [_mm_loadu_si128(start.cast()), _mm_loadu_si128(start.add(PANEL).cast())] };
        halves.map(|half| _mm256_cvtepi8_epi16(half))
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub(super) fn compute_vnni(mut product: Product<'_>) {
        let mut panel = 0;
        while panel < product.panel_count() {
            // Three panels of eight rows need 24 of the 32 registers for sums.
            panel += match product.panel_count() - panel {
                1 | 2 => panels_vnni::<1>(&mut product, panel),
                _ => panels_vnni::<3>(&mut product, panel),
            };
        }
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    fn panels_vnni<const PANELS: usize>(product: &mut Product<'_>, panel: usize) -> usize {
        let mut row = 0;
        while row < product.row_count() {
            row += match product.row_count() - row {
                1 => tile_vnni::<1, PANELS>(product, row, panel),
                2 => tile_vnni::<2, PANELS>(product, row, panel),
                3 => tile_vnni::<3, PANELS>(product, row, panel),
                4 => tile_vnni::<4, PANELS>(product, row, panel),
                5 => tile_vnni::<5, PANELS>(product, row, panel),
                6 => tile_vnni::<6, PANELS>(product, row, panel),
                7 => tile_vnni::<7, PANELS>(product, row, panel),
                _ => tile_vnni::<8, PANELS>(product, row, panel),
            };
        }
        PANELS
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    fn tile_vnni<const ROWS: usize, const PANELS: usize>(
        product: &mut Product<'_>,
        first: usize,
        panel: usize,
    ) -> usize {
        let width = product.panel(panel).len();
        let panels: [&[[u8; 2 * PANEL]]; PANELS] =
            std::array::from_fn(|at| &product.panel(panel + at)[..width]);
        let rows = product.rows::<ROWS>(first, width);
        let mut sums = [[_mm512_setzero_si512(); PANELS]; ROWS];
        for at in 0..width {
            // SAFETY: `at` is less than `width`, and each panel and row has this length.
            let weights = panels.map(|panel| widen_to_avx512(unsafe { panel.get_unchecked(at) }));
            for (sums, row) in sums.iter_mut().zip(&rows) {
                // SAFETY: as above.
                let pair = _mm512_set1_epi32(unsafe { *row.get_unchecked(at) });
                for (sum, weights) in sums.iter_mut().zip(&weights) {
                    *sum = _mm512_dpwssd_epi32(*sum, *weights, pair);
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for (at, sums) in sums.iter().enumerate() {
                let mut lanes = [0; PANEL];
                // SAFETY: writes the 64 bytes of `lanes`; the store does not require alignment.
                unsafe { _mm512_storeu_si512(lanes.as_mut_ptr().cast(), *sums) };
                product.store(first + row, panel + at, &lanes);
            }
        }
        ROWS
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    fn widen_to_avx512(weights: &[u8; 2 * PANEL]) -> __m512i {
        // SAFETY: reads the 32 bytes of `weights`; the load does not require alignment.
        _mm512_cvtepi8_epi16(unsafe { _mm256_loadu_si256(weights.as_ptr().cast()) })
    }
}

#[cfg(test)]
mod tests;
