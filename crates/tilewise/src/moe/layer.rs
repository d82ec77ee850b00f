//! The whole layer.

mod memory;

use super::routes::Routes;
use super::routing::{Router, Routing};
use super::slots::Slots;
use super::weights::{Gate, Gated, Hidden, Of, Order, Rows, Ways};
use super::work::{copied, vector};
use crate::host::cache::lock;
use crate::ops;
use crate::recorder::AsRecorder;
use crate::recorder::planned::Product;
use crate::right::RightOperand;
use crate::tensor::Tensor;
use memory::{Memory, Sizes};
use std::sync::{Arc, Mutex};
use tilewise_core::{Activation, DType, Error, Precision, Result};
#[cfg(feature = "planner")]
use tilewise_core::{Problem, plan::Plan};

/// A layer of E experts, of which each token passes k:
/// y = Σ weight · (silu(x·gateᵀ) ∘ (x·upᵀ))·downᵀ. Options add [biases](Self::biases) or replace
/// the function.
///
/// ```
/// use tilewise::{Context, Tensor, moe::MoeLayer};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let (experts, f, h) = (2, 2, 1);
/// let gate = Tensor::upload(&ctx, &[9.0f32, 90.0, 9.0, 90.0], &[experts, f, h])?;
/// let up = Tensor::upload(&ctx, &[1.0f32, 1.0, 2.0, 2.0], &[experts, f, h])?;
/// let down = Tensor::upload(&ctx, &[1.0f32, 0.0, 0.0, 1.0], &[experts, h, f])?;
/// let layer = MoeLayer::new(&gate, &up, &down, 1);
/// let x = Tensor::upload(&ctx, &[10.0f32, 20.0], &[2, 1])?; // two tokens
/// let logits = Tensor::upload(&ctx, &[5.0f32, -5.0, -5.0, 5.0], &[2, experts])?;
/// let y = layer.forward(&x, &logits)?;
/// assert_eq!(y.read_blocking::<f32>()?, [900.0, 72_000.0]); // 90·10, 1800·40
/// # Ok(())
/// # }
/// ```
///
/// [`Router`] says how logits become experts and weights. A number in its place is k; the rest then
/// has its defaults.
///
/// # Weights
///
/// Gate and up are stacks \[E, F, H\], and down is a stack \[E, H, F\], as PyTorch stores them. Do
/// not give their transposes ([`RightOperand::of_weights`](crate::RightOperand::of_weights)). Each
/// is a tensor or quantized ([`QuantizedTensor`](crate::QuantizedTensor)), prepared or not, in any
/// mix. The layer transposes tensors; [`Prepared`](crate::Prepared) says how to prepare
/// such weights. The layer owns its weights, and is cheap to clone.
///
/// # Speed
///
/// Tensors whose rows lie the other way round are read faster: gate and up stored as \[E, H, F\],
/// down as \[E, F, H\]. Give views of these: `w.transpose(1, 2)?.contiguous()?.transpose(1, 2)?`
/// makes such a view. With them one H200 took 8 to 17% less time for products of f16 with 1 to 128
/// rows to an expert (benches/README.md).
///
/// If few rows share an expert, such as the rows of one token, each row names its expert
/// ([`Gemm::indexed`](crate::Gemm::indexed)), and nothing is sorted, except if experts with biases
/// are [chosen already](Routes::Chosen).
///
/// # Memory
///
/// A layer keeps memory for the largest number of tokens it met, T. Its experts take about T·k·(H +
/// 2·F) numbers of x's type. Shared experts, which have their own F, take T·2·F. If gate and up are
/// [`fused`](Self::fused), both take 3·F in place of 2·F. All calls share this memory, and so do
/// clones. [`sharing_memory`](Self::sharing_memory) shares it with other layers. A call with
/// another k, or another type of x, takes new memory. The device runs calls in the order in which
/// they are submitted, so no call finds another call's numbers.
///
/// # Numerics
///
/// Numbers between the products are rounded to the type of x. The weighted sum is f32, in the order
/// of the slots ([`Routing`]). The same inputs on the same device give the same bits. The last
/// product does not multiply by the weights of slots: that would round each row once more before
/// the sum, which reads all rows anyway.
#[derive(Clone, Debug)]
#[must_use = "a layer computes nothing until it is called or recorded"]
pub struct MoeLayer {
    experts: Gated,
    shared: Option<Gated>,
    router: Router,
    ways: Ways,
    memory: Arc<Mutex<Option<Memory>>>,
}

impl MoeLayer {
    /// A layer of gate and up \[E, F, H\], down \[E, H, F\], and a router or the number of experts
    /// of a token.
    pub fn new(
        gate: impl Into<RightOperand>,
        up: impl Into<RightOperand>,
        down: impl Into<RightOperand>,
        router: impl Into<Router>,
    ) -> Self {
        Self::of(Gated::new(gate.into(), up.into(), down.into()), router.into())
    }

    /// A layer of gate and up in one stack \[E, 2·F, H\], the rows of gate first, and down \[E, H,
    /// F\]. One product takes the place of the two of [`new`](Self::new).
    ///
    /// If the rows of gate and up alternate, see [`interleaved`](Self::interleaved).
    pub fn fused(
        gate_up: impl Into<RightOperand>,
        down: impl Into<RightOperand>,
        router: impl Into<Router>,
    ) -> Self {
        Self::of(Gated::fused(gate_up.into(), Order::Halves, down.into()), router.into())
    }

    /// Like [`fused`](Self::fused), for a stack whose rows are by turns a row of gate and a row of
    /// up, as GPT-OSS has them. Weights in any format stay as they are: the columns of the product
    /// are taken by turns.
    ///
    /// If the stack is dense, two views of it as \[E, F, 2, H\] are also the gate and the up of
    /// [`new`](Self::new): `stack.narrow(2, 0, 1)?.squeeze(2)?` and `stack.narrow(2, 1,
    /// 1)?.squeeze(2)?`. Nothing is copied.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, moe::MoeLayer};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let (experts, f, h, k) = (1, 1, 1, 1);
    /// let gate_up = Tensor::upload(&ctx, &[90.0f32, 4.0], &[experts, 2 * f, h])?;
    /// let gate_up_bias = Tensor::upload(&ctx, &[0.0f32, 1.0], &[experts, 2 * f])?;
    /// let down = Tensor::upload(&ctx, &[2.0f32], &[experts, h, f])?;
    /// let down_bias = Tensor::upload(&ctx, &[0.5f32], &[experts, h])?;
    /// let layer = MoeLayer::interleaved(&gate_up, &down, k)
    ///     .biases([&gate_up_bias, &down_bias])
    ///     .swiglu_oai(1.702, 7.0);
    /// let x = Tensor::upload(&ctx, &[1.0f32], &[1, h])?;
    /// let y = layer.forward(&x, &Tensor::upload(&ctx, &[0.0f32], &[1, experts])?)?;
    /// let y = y.read_blocking::<f32>()?[0];
    /// assert!((y - 84.5).abs() < 0.001); // 7·(5 + 1)·2 + 0.5
    /// # Ok(())
    /// # }
    /// ```
    pub fn interleaved(
        gate_up: impl Into<RightOperand>,
        down: impl Into<RightOperand>,
        router: impl Into<Router>,
    ) -> Self {
        Self::of(Gated::fused(gate_up.into(), Order::Alternating, down.into()), router.into())
    }

    fn of(experts: Gated, router: Router) -> Self {
        let gate = Gate::By(Activation::Silu);
        let ways = Ways { gate, kernel: None, precision: Precision::default() };
        MoeLayer { experts, shared: None, router, ways, memory: Arc::default() }
    }

    /// The function of x·gateᵀ; [`Activation::Silu`] by default. It replaces
    /// [`swiglu_oai`](Self::swiglu_oai).
    pub fn activation(mut self, activation: Activation) -> Self {
        self.ways.gate = Gate::By(activation);
        self
    }

    /// Computes [`ops::swiglu_oai`] of x·gateᵀ and x·upᵀ, as GPT-OSS does, in place of an
    /// [`activation`](Self::activation) and its product: its `alpha` is 1.702, its `limit` 7.
    pub fn swiglu_oai(mut self, alpha: f32, limit: f32) -> Self {
        self.ways.gate = Gate::SwigluOai(alpha, limit);
        self
    }

    /// Adds biases to the products of the routed experts: floats, in the order in which the
    /// constructor takes the weights. Those of gate and up are \[E, F\], or, of one stack, \[E,
    /// 2·F\] in the order of its rows; that of down is \[E, H\]. Each is added once for each expert
    /// of a token: before the activation, and before the weight of the expert.
    pub fn biases<'b>(mut self, biases: impl IntoIterator<Item = &'b Tensor>) -> Self {
        self.experts = self.experts.biased(biases.into_iter().cloned().collect());
        self
    }

    /// Adds experts that every token passes with the weight 1: gate and up \[F, H\], and down \[H,
    /// F\]. Their F may differ from that of the routed experts. Give several shared experts as one
    /// with all their rows: a second call replaces the first.
    pub fn shared(
        mut self,
        gate: impl Into<RightOperand>,
        up: impl Into<RightOperand>,
        down: impl Into<RightOperand>,
    ) -> Self {
        self.shared = Some(Gated::new(gate.into(), up.into(), down.into()));
        self
    }

    /// Like [`shared`](Self::shared), with gate and up in one, \[2·F, H\].
    pub fn shared_fused(
        mut self,
        gate_up: impl Into<RightOperand>,
        down: impl Into<RightOperand>,
    ) -> Self {
        self.shared = Some(Gated::fused(gate_up.into(), Order::Halves, down.into()));
        self
    }

    /// How exact products must be, as [`Gemm::precision`](crate::Gemm::precision).
    pub fn precision(mut self, precision: Precision) -> Self {
        self.ways.precision = precision;
        self
    }

    /// Forces the kernel of all products, as [`Gemm::kernel`](crate::Gemm::kernel).
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.ways.kernel = Some(name.into().into());
        self
    }

    /// Shares the memory of another layer from now on: a model of many layers of the same sizes
    /// needs it once. If layers of different sizes take turns, each call allocates it anew.
    pub fn sharing_memory(mut self, other: &MoeLayer) -> Self {
        self.memory = other.memory.clone();
        self
    }

    /// The output for tokens `x`, floats \[T, H\]: a new tensor \[T, H\] of x's type. `routes` are
    /// logits for the router, floats \[T, E\], or experts that are chosen already ([`Routes`]). The
    /// work is submitted, not waited for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for operands that do not fit together, and when a router is to
    /// choose no expert or more than there are; otherwise as [`Gemm::run`](crate::Gemm::run) and
    /// [`Op::run`](crate::ops::Op::run).
    pub fn forward(&self, x: &Tensor, routes: impl Into<Routes>) -> Result<Tensor> {
        let routes = routes.into();
        let sizes = self.sizes(x, &routes)?;
        let y = Tensor::zeros(x.context(), sizes.dtype, &[sizes.tokens, sizes.h])?;
        self.forward_into(x, routes, &y)?;
        Ok(y)
    }

    /// Like [`forward`](Self::forward), into `y`, floats \[T, H\] of any type. `y` may be x itself,
    /// or overlap it: x and the logits are read before `y` is written. Shared experts are added in
    /// f32 if `y` is f32, otherwise in the type of x. For a `y` of another type, or with gaps in
    /// its rows, that takes memory for T·H numbers.
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward); [`Shape`](crate::Error) when `y` overlaps itself,
    /// or weights of experts or tokens; `Misuse` when it is a [prepared
    /// tensor](crate::Prepared).
    pub fn forward_into(&self, x: &Tensor, routes: impl Into<Routes>, y: &Tensor) -> Result<()> {
        x.context().submit_as("experts", |to| self.record(to, x, routes, y))
    }

    /// Adds the layer to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of [`forward_into`](Self::forward_into); [`Misuse`](crate::Error) on the CPU
    /// executor, unless the recorder is its own, and for the recorder of another context.
    pub fn record(
        &self,
        to: &mut impl AsRecorder,
        x: &Tensor,
        routes: impl Into<Routes>,
        y: &Tensor,
    ) -> Result<()> {
        let (to, routes) = (&mut to.as_recorder(), &routes.into());
        to.way(x.context())?;
        let sizes = self.sizes(x, routes)?;
        x.context().same(y.context(), "the output")?;
        let (MoeLayer { experts, ways, .. }, Sizes { tokens, h, .. }) = (self, sizes);
        if y.shape() != [tokens, h] || !y.dtype().is_float() {
            return Err(Error::Shape(format!(
                "the output is {} {:?}, wanted floats {:?}",
                y.dtype(),
                y.shape(),
                [tokens, h]
            )));
        }
        for own in self.shared.iter().chain([experts]) {
            own.lie_beside(y)?;
        }
        if let Routes::Chosen { weights, .. } = routes {
            RightOperand::from(weights).lies_beside("weights of tokens", y)?;
        }
        // Hold the lock: on the CPU the numbers must stay until the call is done.
        let mut kept = lock(&self.memory);
        let Memory { routing, slots, rows, hidden, shared, .. } =
            self.memory(&mut kept, x, sizes)?;
        // If few rows share an expert, each names its own, and nothing is sorted. A row that names
        // no expert would get a bias.
        let has_all = matches!(routes, Routes::Logits(_)) || !experts.is_biased();
        let slots = slots.narrow(tokens)?.filter(|_| has_all);
        let slots = match slots {
            Some(slots) if self.is_by_index(x, &routing, &slots, &hidden)? => Some(slots),
            _ => None,
        };
        let routing = match (routes, &slots) {
            (Routes::Logits(logits), None) => {
                self.router.record(to, logits, &routing)?;
                routing
            }
            (Routes::Logits(logits), Some(_)) => {
                let outs = [&routing.weights, &routing.experts];
                self.router.choose(logits).record(to, outs)?;
                routing
            }
            (Routes::Chosen { weights, experts }, None) => routing.chosen(to, weights, experts)?,
            (Routes::Chosen { weights, experts }, Some(_)) => routing.of_slots(weights, experts),
        };
        let names = slots.as_ref().map(|_| vector(to, &routing.experts)).transpose()?;
        let (tokens_of_rows, places, of) = match (&slots, &names) {
            (Some(slots), Some(names)) => (&slots.tokens, &slots.places, Of::Named(names)),
            _ => (&routing.tokens, &routing.places, Of::Sorted(&routing.offsets)),
        };
        // Shared experts read whole rows.
        let whole_x = match self.shared {
            Some(_) if !x.has_whole_rows() => Some(copied(to, x)?),
            _ => None,
        };
        let x = whole_x.as_ref().unwrap_or(x);
        let all = Rows { x, indices: None, of: Of::Tokens };
        let mut own = Rows { x, indices: Some(tokens_of_rows), of };
        // The rows are copied once for both products, if one needs a copy.
        if experts.copies(&own, ways, &hidden)? {
            ops::gather(x, tokens_of_rows).record(to, &rows)?;
            own = Rows { x: &rows, indices: None, of };
        }
        let inner = experts.first(to, &own, ways, &hidden)?;
        experts.last(to, &Rows { x: &inner, indices: None, of }, ways, 0.0, &rows)?;
        // The shared experts read x before the sum is written, since y may be x.
        let inner = match (&self.shared, &shared) {
            (Some(own), Some(hidden)) => Some((own, own.first(to, &all, ways, hidden)?)),
            _ => None,
        };
        let sum = ops::combine(&rows, places, &routing.weights);
        let Some((own, inner)) = inner else { return sum.record(to, y) };
        // Products write rows without gaps, and add to a sum in f32 or in the type of x.
        let dtype = if y.dtype() == DType::F32 { DType::F32 } else { x.dtype() };
        let whole = match y.has_whole_rows() && y.dtype() == dtype {
            true => None,
            false => Some(Tensor::zeros(x.context(), dtype, y.shape())?),
        };
        let out = whole.as_ref().unwrap_or(y);
        sum.record(to, out)?;
        own.last(to, &Rows { x: &inner, ..all }, ways, 1.0, out)?;
        whole.map_or(Ok(()), |whole| ops::copy(&whole).record(to, y))
    }

    /// Which kernels were chosen and why not others, for each product in the order in
    /// which they run: gate, up and down, then those of shared experts. It is the text of
    /// [`Gemm::explain`](crate::Gemm::explain).
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward).
    pub fn explain(&self, x: &Tensor, routes: impl Into<Routes>) -> Result<String> {
        let products = self.products(x, routes)?;
        let texts = products.iter().enumerate().map(|(at, (product, _))| {
            let title = format!("product {} of {}\n", at + 1, products.len());
            Ok(title + &product.explain()?)
        });
        texts.collect()
    }

    /// Compiles all that a call needs, as [`Context::warm_up`](crate::Context::warm_up).
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward).
    pub fn warm_up(&self, x: &Tensor, routes: impl Into<Routes>) -> Result<()> {
        let y = Tensor::zeros(x.context(), x.dtype(), x.shape())?;
        x.context().warm_up(|to| self.record(to, x, routes, &y))
    }

    fn products(&self, x: &Tensor, routes: impl Into<Routes>) -> Result<Vec<Product>> {
        let y = Tensor::zeros(x.context(), x.dtype(), x.shape())?;
        x.context().products(|to| self.record(to, x, routes, &y))
    }

    /// Whether rows in the order of their slots are computed without a sort.
    fn is_by_index(
        &self,
        x: &Tensor,
        routing: &Routing,
        slots: &Slots,
        hidden: &Hidden,
    ) -> Result<bool> {
        let names = routing.experts.reshape(&[routing.experts.elem_count()])?;
        let rows = Rows { x, indices: Some(&slots.tokens), of: Of::Named(&names) };
        self.experts.are_by_index(&rows, &self.ways, hidden)
    }
}

/// Names types of the [planner](crate::planner).
#[cfg(feature = "planner")]
impl MoeLayer {
    /// The plans of the products of [`forward`](Self::forward), in the order in which they run:
    /// gate, up and down, then those of shared experts. Each [shard](crate::Shards) has its own.
    /// Nothing is computed; memory is taken as for a call.
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward).
    pub fn plans(&self, x: &Tensor, routes: impl Into<Routes>) -> Result<Vec<Plan>> {
        let products = self.products(x, routes)?;
        Ok(products.into_iter().flat_map(|(_, plans)| plans).collect())
    }

    /// The problems of the products, in the order of [`plans`](Self::plans).
    /// [`Context::warm_up_problems`](crate::Context::warm_up_problems) takes all of them,
    /// [`Context::tune`](crate::Context::tune) takes one.
    ///
    /// # Errors
    /// The errors of [`forward`](Self::forward).
    pub fn problems(&self, x: &Tensor, routes: impl Into<Routes>) -> Result<Vec<Problem>> {
        let products = self.products(x, routes)?;
        Ok(products.iter().flat_map(|(product, _)| product.problems()).collect())
    }
}
