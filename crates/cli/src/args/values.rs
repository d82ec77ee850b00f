//! Values of options.

use clap::ValueEnum;
use tilewise::moe::Scoring;
use tilewise_core::kernel::Role;
use tilewise_core::problem::{Activation, Axis, DType};

/// Element types on the command line.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum DTypeArg {
    F32,
    F16,
    Bf16,
}

impl From<DTypeArg> for DType {
    fn from(dtype: DTypeArg) -> Self {
        match dtype {
            DTypeArg::F32 => DType::F32,
            DTypeArg::F16 => DType::F16,
            DTypeArg::Bf16 => DType::BF16,
        }
    }
}

/// Activations on the command line.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum ActivationArg {
    None,
    Relu,
    Gelu,
    Silu,
    GeluErf,
}

impl From<ActivationArg> for Activation {
    fn from(activation: ActivationArg) -> Self {
        match activation {
            ActivationArg::None => Activation::None,
            ActivationArg::Relu => Activation::Relu,
            ActivationArg::Gelu => Activation::Gelu,
            ActivationArg::Silu => Activation::Silu,
            ActivationArg::GeluErf => Activation::GeluErf,
        }
    }
}

/// Scores of experts on the command line.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum ScoringArg {
    Softmax,
    Sigmoid,
}

impl From<ScoringArg> for Scoring {
    fn from(scoring: ScoringArg) -> Self {
        match scoring {
            ScoringArg::Softmax => Scoring::Softmax,
            ScoringArg::Sigmoid => Scoring::Sigmoid,
        }
    }
}

/// Axes of C on the command line.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum AxisArg {
    M,
    N,
}

impl From<AxisArg> for Axis {
    fn from(axis: AxisArg) -> Self {
        match axis {
            AxisArg::M => Axis::M,
            AxisArg::N => Axis::N,
        }
    }
}

/// Transposes of A and B on the command line.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub(crate) enum Layout {
    #[value(alias = "nn")]
    Nn,
    #[value(alias = "nt")]
    Nt,
    #[value(alias = "tn")]
    Tn,
    #[value(alias = "tt")]
    Tt,
}

impl Layout {
    /// Whether A holds its transpose.
    pub(crate) fn a(self) -> bool {
        matches!(self, Layout::Tn | Layout::Tt)
    }

    /// Whether B holds its transpose.
    pub(crate) fn b(self) -> bool {
        matches!(self, Layout::Nt | Layout::Tt)
    }
}

/// Prepared operands on the command line.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Prepared {
    A,
    B,
    Both,
}

impl Prepared {
    /// The operands.
    pub(crate) fn roles(self) -> &'static [Role] {
        match self {
            Prepared::A => &[Role::A],
            Prepared::B => &[Role::B],
            Prepared::Both => &[Role::A, Role::B],
        }
    }
}
