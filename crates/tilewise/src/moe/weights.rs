//! The weights of gated layers, which compute (function(x·gateᵀ) ∘ (x·upᵀ))·downᵀ.

use super::work::asked;
use crate::context::Context;
use crate::gemm::Gemm;
use crate::gemm::ends::GroupEnds;
use crate::ops::{self, of_type};
use crate::recorder::Recorder;
use crate::right::RightOperand;
use crate::tensor::Tensor;
use std::sync::Arc;
use tilewise_core::{Activation, DType, Error, Precision, Result};

/// Weights of every expert, or of a layer that all tokens pass.
#[derive(Clone, Debug)]
pub(super) struct Gated {
    gate_up: GateUp,
    down: RightOperand,
    /// None, or one for each of the weights.
    biases: Vec<Tensor>,
}

#[derive(Clone, Debug)]
enum GateUp {
    Separate(RightOperand, RightOperand),
    Fused(RightOperand, Order),
}

/// How the rows of gate and up lie in one stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// First all of gate, then all of up.
    Halves,
    /// By turns.
    Alternating,
}

/// The function of the products of gate and up.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gate {
    /// function(gate) ∘ up.
    By(Activation),
    /// [`swiglu_oai`](ops::swiglu_oai), with its alpha and its limit.
    SwigluOai(f32, f32),
}

/// How products are computed.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    pub(super) gate: Gate,
    pub(super) kernel: Option<Arc<str>>,
    pub(super) precision: Precision,
}

/// Memory between the products: a tensor for each of gate and up. If they are fused, `first` holds
/// both, and `second` their gated product.
#[derive(Clone, Debug)]
pub(super) struct Hidden {
    first: Tensor,
    second: Tensor,
}

impl Hidden {
    /// The first rows, on the same memory.
    pub(super) fn narrow(&self, rows: usize) -> Result<Self> {
        let [first, second] = [&self.first, &self.second].map(|all| all.narrow(0, 0, rows));
        Ok(Hidden { first: first?, second: second? })
    }
}

impl Gated {
    pub(super) fn new(gate: RightOperand, up: RightOperand, down: RightOperand) -> Self {
        Gated { gate_up: GateUp::Separate(gate, up), down, biases: Vec::new() }
    }

    pub(super) fn fused(gate_up: RightOperand, order: Order, down: RightOperand) -> Self {
        Gated { gate_up: GateUp::Fused(gate_up, order), down, biases: Vec::new() }
    }

    /// With a bias for each of the weights, in the order of their names.
    pub(super) fn biased(self, biases: Vec<Tensor>) -> Self {
        Gated { biases, ..self }
    }

    pub(super) fn is_biased(&self) -> bool {
        !self.biases.is_empty()
    }

    /// The number of experts, and whether all weights agree on it. If they do not, two that agree
    /// decide, or else the first.
    pub(super) fn count(&self) -> (usize, bool) {
        let counts: Vec<_> = self
            .operands()
            .map(|(_, operand)| match *operand.shape() {
                [experts, _, _] => experts,
                _ => 0,
            })
            .collect();
        let agreed = agreed(&counts).unwrap_or_default();
        (agreed, counts.iter().all(|&count| count == agreed))
    }

    /// Name and shape of the first weights, for errors.
    pub(super) fn first_shown(&self) -> String {
        let first = self.operands().next();
        first.map_or_else(String::new, |(part, first)| format!("{part} {:?}", first.shape()))
    }

    /// Whether gate and up are one.
    pub(super) fn is_fused(&self) -> bool {
        matches!(self.gate_up, GateUp::Fused(..))
    }

    fn operands(&self) -> impl Iterator<Item = (&'static str, &RightOperand)> {
        let (first, second) = match &self.gate_up {
            GateUp::Separate(gate, up) => (("gate", gate), Some(("up", up))),
            GateUp::Fused(both, _) => (("gate and up", both), None),
        };
        [Some(first), second, Some(("down", &self.down))].into_iter().flatten()
    }

    /// Checks that all weights and biases lie beside this output.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) if some overlap it.
    pub(super) fn lie_beside(&self, y: &Tensor) -> Result<()> {
        self.operands().try_for_each(|(part, operand)| operand.lies_beside(part, y))?;
        self.biases.iter().try_for_each(|bias| RightOperand::from(bias).lies_beside("a bias", y))
    }

    /// F and H, once all weights are found to fit. `experts` is the number of experts, with the
    /// words for its source in an error. Shared experts have no number. `h` is the width of x. If
    /// weights disagree, the error is about weights of another width than x.
    pub(super) fn sizes(
        &self,
        name: &str,
        context: &Context,
        experts: Option<(usize, &str)>,
        h: usize,
    ) -> Result<[usize; 2]> {
        let mut found = Vec::new();
        for (part, operand) in self.operands() {
            let whose = format!("{part} of {name}");
            context.same(operand.context(), &whose)?;
            if let Some(dtype) = operand.dtype() {
                of_type(&format!("{whose} is"), dtype, &DType::FLOATS)?;
            }
            let shape = operand.shape();
            let matrix = match (experts, &*shape) {
                (Some(_), &[_, n, k]) | (None, &[n, k]) => Some([n, k]),
                _ => None,
            };
            let sizes = match (part, matrix) {
                (_, None) => None,
                ("down", Some([h, f])) => Some([f, h]),
                ("gate and up", Some([both, _])) if !both.is_multiple_of(2) => None,
                (_, Some([n, h])) => Some([if self.is_fused() { n / 2 } else { n }, h]),
            };
            found.push((part, shape, sizes));
        }
        let all: Vec<_> = found.iter().filter_map(|&(.., sizes)| sizes).collect();
        let of_x: Vec<_> = all.iter().copied().filter(|&[_, own]| own == h).collect();
        let right = agreed(if of_x.is_empty() { &all } else { &of_x });
        for (part, shape, sizes) in &found {
            let of_all = experts.is_none_or(|(experts, _)| shape.first() == Some(&experts));
            if sizes.is_none() || *sizes != right || !of_all {
                return Err(misfit(&format!("{part} of {name}"), part, shape, experts, right));
            }
        }
        if self.is_biased() && self.biases.len() != found.len() {
            let parts: Vec<_> = found.iter().map(|(part, ..)| *part).collect();
            return Err(Error::Shape(format!(
                "{} biases of {name}, wanted one for each of {}",
                self.biases.len(),
                parts.join(", ")
            )));
        }
        for (bias, (part, shape, _)) in self.biases.iter().zip(&found) {
            let whose = format!("the bias of {part} of {name}");
            context.same(bias.context(), &whose)?;
            of_type(&format!("{whose} is"), bias.dtype(), &DType::FLOATS)?;
            if bias.shape() != &shape[..2] {
                return Err(Error::Shape(format!(
                    "{whose} has shape {:?}, wanted {:?}",
                    bias.shape(),
                    &shape[..2]
                )));
            }
        }
        Ok(right.unwrap_or_default())
    }

    /// Memory for `rows` rows between the products.
    pub(super) fn hidden(
        &self,
        context: &Context,
        dtype: DType,
        [rows, f]: [usize; 2],
    ) -> Result<Hidden> {
        let both = match self.gate_up {
            GateUp::Separate(..) => Some(f),
            GateUp::Fused(..) => f.checked_mul(2),
        };
        let both = both.ok_or_else(|| Error::Shape(format!("overflow: twice {f} columns")))?;
        let zeros = |columns| Tensor::zeros(context, dtype, &[rows, columns]);
        Ok(Hidden { first: zeros(both)?, second: zeros(f)? })
    }

    /// Computes the input of the last product from rows; it lies in `hidden`.
    pub(super) fn first(
        &self,
        to: &mut Recorder<'_>,
        rows: &Rows<'_>,
        ways: &Ways,
        hidden: &Hidden,
    ) -> Result<Tensor> {
        let Hidden { first, second } = hidden;
        let (gate, up) = self.products(rows, ways, hidden);
        rows.named(self.first_part(), gate.record(to, first))?;
        if let Some(up) = up {
            rows.named("up", up.record(to, second))?;
        }
        let [count, columns] = [second.shape()[0], second.shape()[1]];
        let parts = match (&self.gate_up, ways.gate) {
            // The product of up is gated.
            (GateUp::Separate(..), Gate::By(_)) => return Ok(second.clone()),
            (GateUp::Separate(..), _) => [first.clone(), second.clone()],
            (GateUp::Fused(_, Order::Halves), _) => {
                [first.narrow(1, 0, columns)?, first.narrow(1, columns, columns)?]
            }
            (GateUp::Fused(_, Order::Alternating), _) => {
                let pairs = first.reshape(&[count, columns, 2])?;
                [pairs.narrow(2, 0, 1)?.squeeze(2)?, pairs.narrow(2, 1, 1)?.squeeze(2)?]
            }
        };
        gated(to, ways.gate, parts.each_ref(), second)?;
        Ok(second.clone())
    }

    /// The product into the first hidden tensor, and the product into the second, if there are two.
    fn products(
        &self,
        rows: &Rows<'_>,
        ways: &Ways,
        Hidden { first, .. }: &Hidden,
    ) -> (Gemm, Option<Gemm>) {
        match &self.gate_up {
            GateUp::Separate(gate, up) => {
                let up = self.product(1, rows, up, ways);
                let up = match ways.gate {
                    Gate::By(function) => up.gated_by(first, function),
                    Gate::SwigluOai(..) => up,
                };
                (self.product(0, rows, gate, ways), Some(up))
            }
            GateUp::Fused(both, _) => (self.product(0, rows, both, ways), None),
        }
    }

    /// The product x·wᵀ of the weights at a place among all, with their bias.
    fn product(&self, at: usize, rows: &Rows<'_>, w: &RightOperand, ways: &Ways) -> Gemm {
        let gemm = ways.product(rows, w);
        match self.biases.get(at) {
            Some(bias) => gemm.bias(bias),
            None => gemm,
        }
    }

    /// The last product.
    fn last_product(&self, rows: &Rows<'_>, ways: &Ways) -> Gemm {
        self.product(if self.is_fused() { 1 } else { 2 }, rows, &self.down, ways)
    }

    /// Whether the planner computes all products of rows that name their experts, the last product
    /// included, without sorting the rows.
    pub(super) fn are_by_index(
        &self,
        rows: &Rows<'_>,
        ways: &Ways,
        hidden: &Hidden,
    ) -> Result<bool> {
        let (gate, up) = self.products(rows, ways, hidden);
        let inner = Rows { x: &hidden.second, indices: None, ..*rows };
        let down = self.last_product(&inner, ways);
        let mut all = [Some(gate), up, Some(down)].into_iter().flatten();
        all.try_fold(true, |all, gemm| Ok(all && gemm.is_by_index()?))
    }

    /// Whether rows by index must be copied before a product that they go into.
    pub(super) fn copies(&self, rows: &Rows<'_>, ways: &Ways, hidden: &Hidden) -> Result<bool> {
        if !rows.x.has_whole_rows() {
            return Ok(true);
        }
        let (gate, up) = self.products(rows, ways, hidden);
        let up_copies = || up.map_or(Ok(false), |up| up.prepare(&hidden.second));
        let gate_copies = rows.named(self.first_part(), gate.prepare(&hidden.first))?;
        Ok(gate_copies || rows.named("up", up_copies())?)
    }

    /// The name of the weights of the first product.
    fn first_part(&self) -> &'static str {
        if self.is_fused() { "gate and up" } else { "gate" }
    }

    /// Computes the last product into `out`, plus `beta` times the old content of `out`.
    pub(super) fn last(
        &self,
        to: &mut Recorder<'_>,
        rows: &Rows<'_>,
        ways: &Ways,
        beta: f32,
        out: &Tensor,
    ) -> Result<()> {
        rows.named("down", self.last_product(rows, ways).beta(beta).record(to, out))
    }
}

/// Input of a product: the rows of x, or rows of x by index.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) x: &'a Tensor,
    pub(super) indices: Option<&'a Tensor>,
    pub(super) of: Of<'a>,
}

/// Which weights the rows of a product are multiplied by.
#[derive(Clone, Copy)]
pub(super) enum Of<'a> {
    /// All rows by the same weights.
    Tokens,
    /// Rows sorted by expert; the offsets say where each expert's rows end.
    Sorted(&'a GroupEnds),
    /// Each row by the weights of the expert that it names.
    Named(&'a Tensor),
}

impl Rows<'_> {
    /// Adds to an error that no kernel takes the product which weights it is about.
    fn named<T>(&self, part: &str, result: Result<T>) -> Result<T> {
        let whose = match self.of {
            Of::Tokens => "the shared experts",
            Of::Sorted(_) | Of::Named(_) => "the experts",
        };
        result.map_err(|error| match error {
            Error::DeviceLimit(_) => error.map_text(|why| format!("{part} of {whose}: {why}")),
            _ => error,
        })
    }
}

impl Ways {
    /// The product x·wᵀ.
    fn product(&self, &Rows { x, indices, of }: &Rows<'_>, w: &RightOperand) -> Gemm {
        let b = RightOperand::of_weights(w.clone());
        let gemm = match of {
            Of::Tokens => Gemm::new(x, b),
            Of::Sorted(ends) => Gemm::grouped(x, b, ends),
            Of::Named(experts) => Gemm::indexed(x, b, experts),
        };
        asked(gemm, self.precision, indices, self.kernel.as_ref())
    }
}

/// Computes the function of gate and up.
fn gated(
    to: &mut Recorder<'_>,
    function: Gate,
    [gate, up]: [&Tensor; 2],
    out: &Tensor,
) -> Result<()> {
    let function = match function {
        Gate::SwigluOai(alpha, limit) => {
            return ops::swiglu_oai(gate, up, alpha, limit).record(to, out);
        }
        Gate::By(Activation::Silu) => return ops::silu_mul(gate, up).record(to, out),
        Gate::By(Activation::None) => return ops::mul(gate, up).record(to, out),
        Gate::By(Activation::Relu) => ops::relu(gate),
        Gate::By(Activation::Gelu) => ops::gelu(gate),
        Gate::By(Activation::GeluErf) => ops::gelu_erf(gate),
        Gate::By(other) => {
            return Err(Error::Unsupported(format!("the function {other:?} in experts")));
        }
    };
    function.record(to, out)?;
    ops::mul(out, up).record(to, out)
}

/// A value that comes twice, or else the first.
fn agreed<T: Copy + PartialEq>(said: &[T]) -> Option<T> {
    let twice = |one: &&T| said.iter().filter(|other| other == one).count() > 1;
    said.iter().find(twice).or(said.first()).copied()
}

/// The error of weights of the wrong shape; `right` are F and H of the other weights.
fn misfit(
    whose: &str,
    part: &str,
    shape: &[usize],
    experts: Option<(usize, &str)>,
    right: Option<[usize; 2]>,
) -> Error {
    let [f, both, h] = match right {
        Some([f, h]) => [f, f.saturating_mul(2), h].map(|size| size.to_string()),
        None => ["F", "2·F", "H"].map(str::to_owned),
    };
    let groups = match experts {
        Some((0, _)) => "E, ".to_owned(),
        Some((experts, _)) => format!("{experts}, "),
        None => String::new(),
    };
    let wanted = match part {
        "down" => format!("{h}, {f}"),
        "gate and up" => format!("{both}, {h}"),
        _ => format!("{f}, {h}"),
    };
    let said = match experts {
        Some((experts, by)) if shape.len() == 3 && shape[0] != experts => {
            format!(": {by} {experts} experts")
        }
        _ => String::new(),
    };
    Error::Shape(format!("{whose} has shape {shape:?}, wanted [{groups}{wanted}]{said}"))
}
