//! Gates: in place of residuals, and in even columns.

use super::all_steps;
use crate::{Case, Place};
use tilewise::{Activation, Axis, DType};

/// A gate with each function, by itself and after all other steps.
pub fn gates(case: &Case, dtype: DType) -> Vec<Case> {
    let [packed, odd] = [Place::packed(dtype), Place::odd(dtype)];
    let gate = |residual, activation| Case {
        gated: true,
        residual: Some(residual),
        activation,
        ..case.clone()
    };
    vec![
        gate(packed, Activation::None),
        gate(odd, Activation::Silu),
        Case { written: true, ..gate(packed, Activation::Gelu) },
        Case { bias: Some((Axis::M, packed)), alpha: -0.75, ..gate(odd, Activation::GeluErf) },
        Case { gated: true, ..all_steps(case.clone(), [(Axis::N, odd); 2], Activation::Relu) },
    ]
}

/// Columns in pairs, with each function, by themselves and after all other steps. N is even.
pub fn pairs(case: &Case, dtype: DType) -> Vec<Case> {
    let [packed, odd] = [Place::packed(dtype), Place::odd(dtype)];
    let pair = |activation| Case { gated: true, activation, ..case.clone() };
    vec![
        pair(Activation::None),
        Case { alpha: -0.75, ..pair(Activation::Relu) },
        Case { bias: Some((Axis::M, packed)), ..pair(Activation::GeluErf) },
        Case { bias: Some((Axis::N, odd)), alpha: 1.5, ..pair(Activation::Silu) },
    ]
}
