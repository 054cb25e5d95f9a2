//! Property tests of the matrix kernels: every kernel computes the exact sums.

use proptest::prelude::*;

use super::*;

/// Multiplies in a straightforward way. `codes` has the packed layout.
fn naive(codes: &[u8], outputs: usize, rows: &[Vec<i16>]) -> Vec<f32> {
    let mut out = Vec::new();
    for row in rows {
        for output in 0..outputs {
            let mut sum = 0_i64;
            for (input, activation) in row.iter().enumerate() {
                let pair = (output / PANEL) * (row.len() / 2) + input / 2;
                let code = codes[(pair * PANEL + output % PANEL) * 2 + input % 2].cast_signed();
                sum += i64::from(code) * i64::from(*activation);
            }
            assert_eq!(sum, i64::from(sum as i32), "the sum fits in an i32");
            out.push(sum as i32 as f32 * (output_scale(output) * 0.5) + output as f32);
        }
    }
    out
}

fn output_scale(output: usize) -> f32 {
    1.0 + output as f32 / 7.0
}

fn multiplied(kernel: Kernel, codes: &[u8], outputs: usize, rows: &[Vec<i16>]) -> Vec<f32> {
    let pairs: Vec<i32> = rows
        .concat()
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[a, b]| i32::from(a.cast_unsigned()) | i32::from(*b) << 16)
        .collect();
    let scales: Vec<f32> = (0..outputs).map(output_scale).collect();
    let biases: Vec<f32> = (0..outputs).map(|output| output as f32).collect();
    let matrix = PackedMatrix { codes, scales: &scales, biases: &biases };
    let mut out = vec![f32::NAN; outputs * rows.len()];
    kernel.multiply(
        matrix,
        QuantisedRows { pairs: &pairs, scales: &vec![0.5; rows.len()] },
        &mut out,
    );
    out
}

/// Generates a matrix and rows in which the extreme values are frequent: codes, number of outputs, and rows.
fn product() -> impl Strategy<Value = (Vec<u8>, usize, Vec<Vec<i16>>)> {
    let code = || prop_oneof![Just(128_u8), Just(127), Just(255), any::<u8>()];
    let activation = || prop_oneof![Just(-4095_i16), Just(4095), Just(0), -4095_i16..=4095];
    (1_usize..40, 1_usize..6, 1_usize..20).prop_flat_map(move |(pairs, panels, rows)| {
        (
            proptest::collection::vec(code(), pairs * 2 * panels * PANEL),
            Just(panels * PANEL),
            proptest::collection::vec(proptest::collection::vec(activation(), pairs * 2), rows),
        )
    })
}

#[test]
fn the_largest_matrix_does_not_overflow() {
    for (code, activation) in [(128_u8, 4095_i16), (128, -4095), (127, -4095)] {
        let rows = vec![vec![activation; MAX_INPUTS]; 9];
        let codes = vec![code; MAX_INPUTS * PANEL];
        for kernel in Kernel::all() {
            let exact = naive(&codes, PANEL, &rows);
            assert_eq!(multiplied(kernel, &codes, PANEL, &rows), exact, "{kernel:?}");
        }
    }
}

proptest! {
    #[test]
    fn every_kernel_computes_the_exact_product((codes, outputs, rows) in product()) {
        let exact = naive(&codes, outputs, &rows);
        for kernel in Kernel::all() {
            prop_assert_eq!(&multiplied(kernel, &codes, outputs, &rows), &exact, "{:?}", kernel);
        }
    }
}
