//! The right values of each puzzle's `out`, with which answers are compared. Everything is
//! row-major.

use crate::puzzle::{Array, Case};

/// out\[i\] = a\[i\] + 10, for vectors and matrices.
pub(crate) fn plus_10(inputs: &[Array], _: &Case) -> Vec<f32> {
    inputs[0].values.iter().map(|a| a + 10.0).collect()
}

/// out\[i\] = a\[i\] + b\[i\].
pub(crate) fn zip(inputs: &[Array], _: &Case) -> Vec<f32> {
    inputs[0].values.iter().zip(&inputs[1].values).map(|(a, b)| a + b).collect()
}

/// out\[r, c\] = a\[r\] + b\[c\].
pub(crate) fn broadcast(inputs: &[Array], _: &Case) -> Vec<f32> {
    inputs[0].values.iter().flat_map(|a| inputs[1].values.iter().map(move |b| a + b)).collect()
}

/// out\[i\] = a\[i - 2\] + a\[i - 1\] + a\[i\]; elements before the first are left out.
pub(crate) fn pooling(inputs: &[Array], _: &Case) -> Vec<f32> {
    let a = &inputs[0].values;
    (0..a.len()).map(|i| a[i.saturating_sub(2)..=i].iter().sum()).collect()
}

/// out\[0\] = Σ a\[i\] · b\[i\].
pub(crate) fn dot_product(inputs: &[Array], _: &Case) -> Vec<f32> {
    vec![dot(&inputs[0].values, &inputs[1].values)]
}

/// out\[i\] = Σ a\[i + j\] · b\[j\]; elements behind the end of `a` are left out.
pub(crate) fn convolution(inputs: &[Array], _: &Case) -> Vec<f32> {
    let (a, b) = (&inputs[0].values, &inputs[1].values);
    (0..a.len()).map(|i| dot(&a[i..], b)).collect()
}

/// out\[g\] = the sum of the numbers that workgroup g covers.
pub(crate) fn prefix_sum(inputs: &[Array], case: &Case) -> Vec<f32> {
    inputs[0].values.chunks(case.workgroup[0] as usize).map(|block| block.iter().sum()).collect()
}

/// out\[r\] = Σ a\[r, c\] over the columns c.
pub(crate) fn axis_sum(inputs: &[Array], _: &Case) -> Vec<f32> {
    inputs[0].values.chunks(inputs[0].shape[1]).map(|row| row.iter().sum()).collect()
}

/// out\[r, c\] = Σ a\[r, k\] · b\[k, c\] over k.
pub(crate) fn matrix_multiply(inputs: &[Array], _: &Case) -> Vec<f32> {
    let (a, b) = (&inputs[0], &inputs[1]);
    let columns = b.shape[1];
    let element = |row: &[f32], column: usize| {
        row.iter().zip(b.values.iter().skip(column).step_by(columns)).map(|(a, b)| a * b).sum()
    };
    a.values
        .chunks(a.shape[1])
        .flat_map(|row| (0..columns).map(move |column| element(row, column)))
        .collect()
}

/// Σ a\[i\] · b\[i\], over the shorter of the two.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use crate::puzzle::Array;
    use crate::table::PUZZLES;

    /// The right `out` of puzzle `number` in the first of its cases, for inputs of these shapes and
    /// values.
    fn specified(number: usize, inputs: &[(&[usize], &[f32])]) -> Vec<f32> {
        let puzzle = &PUZZLES[number - 1];
        let inputs: Vec<Array> = inputs
            .iter()
            .map(|&(shape, values)| Array { shape: shape.to_vec(), values: values.to_vec() })
            .collect();
        (puzzle.specification)(&inputs, &puzzle.cases[0])
    }

    #[test]
    fn worked_by_hand() {
        assert_eq!(specified(1, &[(&[2], &[1.0, -2.0])]), [11.0, 8.0]);
        assert_eq!(specified(2, &[(&[2], &[1.0, 2.0]), (&[2], &[5.0, -7.0])]), [6.0, -5.0]);
        assert_eq!(
            specified(5, &[(&[2, 1], &[1.0, 2.0]), (&[1, 2], &[10.0, 20.0])]),
            [11.0, 21.0, 12.0, 22.0]
        );
        assert_eq!(specified(9, &[(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0])]), [1.0, 3.0, 6.0, 9.0, 12.0]);
        assert_eq!(specified(10, &[(&[2], &[1.0, 2.0]), (&[2], &[3.0, 4.0])]), [11.0]);
        assert_eq!(
            specified(11, &[(&[3], &[1.0, 2.0, 3.0]), (&[2], &[10.0, 1.0])]),
            [12.0, 23.0, 30.0]
        );
        let ten: Vec<f32> = (1..=10).map(|i| i as f32).collect();
        assert_eq!(specified(12, &[(&[10], &ten)]), [36.0, 19.0]);
        assert_eq!(specified(13, &[(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]), [6.0, 15.0]);
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 2.0, 1.0, 3.0, 1.0]);
        assert_eq!(specified(14, &[(&[2, 3], &a), (&[3, 2], &b)]), [14.0, 5.0, 32.0, 11.0]);
    }
}
