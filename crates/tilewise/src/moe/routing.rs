//! From logits to rows that are sorted by expert.

use crate::context::Context;
use crate::gemm::ends::GroupEnds;
use crate::ops::{self, Choose, Op, admitted};
use crate::recorder::{AsRecorder, Recorder};
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// The largest alignment of a binding, in words.
const ALIGNED: usize = 64;

/// How a logit becomes the score of an expert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scoring {
    /// Softmax over all experts. The weights of a token are made to sum to 1, unless
    /// [`Router::normalize`] says otherwise.
    #[default]
    Softmax,
    /// 1/(1 + e⁻ˣ) of each logit. The scores are the weights, unless [`Router::normalize`] says
    /// otherwise.
    Sigmoid,
}

/// Chooses for each token the `k` experts with the largest logits, and turns their scores into
/// weights. A number converts to a router ([`From`]): it is `k`, and the rest has its defaults.
///
/// Among equal logits, the one of the lower expert counts as larger. NaN counts as the largest of
/// all. After a softmax, NaN or +∞ among the logits of a token makes all its weights NaN. After a
/// sigmoid, the weight of a chosen expert is NaN if its logit is NaN; once normalized, all weights
/// of the token are NaN then. Chosen experts exist in any case, and no other token is affected.
///
/// The router is made for up to a thousand experts or so: its time grows with the square of their
/// number.
///
/// ```
/// use tilewise::moe::{Router, Scoring};
/// use tilewise::{Context, Tensor};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let logits = Tensor::upload(&ctx, &[0.0f32, 9.0, 9.0, 9.0, -9.0, 9.0], &[2, 3])?;
/// let routing = Router::new(2).run(&logits)?;
/// assert_eq!(routing.experts.read_blocking::<u32>()?, [1, 2, 0, 2]); // [tokens, 2]
/// assert_eq!(routing.weights.read_blocking::<f32>()?, [0.5; 4]);
/// // Sorted by expert: 0 has the token 1, 1 has 0, 2 has both.
/// assert_eq!(routing.tokens.read_blocking::<u32>()?, [1, 0, 0, 1]);
/// assert_eq!(routing.places.read_blocking::<u32>()?, [1, 2, 0, 3]); // [tokens, 2]
/// let router = Router::new(1).scoring(Scoring::Sigmoid).normalize(true);
/// assert_eq!(router.run(&logits)?.weights.read_blocking::<f32>()?, [1.0; 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a router chooses nothing until it is run or recorded"]
pub struct Router {
    k: usize,
    scoring: Scoring,
    normalize: Option<bool>,
    scale: f32,
    bias: Option<Tensor>,
    groups: [usize; 2],
}

impl From<usize> for Router {
    fn from(k: usize) -> Self {
        Router::new(k)
    }
}

impl Router {
    /// A router that chooses `k` experts for each token.
    pub fn new(k: usize) -> Self {
        Router {
            k,
            scoring: Scoring::default(),
            normalize: None,
            scale: 1.0,
            bias: None,
            groups: [1, 1],
        }
    }

    /// How a logit becomes a score; [`Scoring::Softmax`] by default.
    pub fn scoring(mut self, scoring: Scoring) -> Self {
        self.scoring = scoring;
        self
    }

    /// Whether the weights of a token are made to sum to 1; by default only after a softmax. If the
    /// logits of all chosen experts are −∞, weights are 0 after a softmax, and NaN after a sigmoid.
    pub fn normalize(mut self, normalize: bool) -> Self {
        self.normalize = Some(normalize);
        self
    }

    /// A factor of all weights, after they are normalized; 1 by default. Configurations of models
    /// call it `routed_scaling_factor`.
    ///
    /// ```
    /// use tilewise::moe::{Router, Scoring};
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let logits = Tensor::upload(&ctx, &[9.0f32, 0.0, 9.0], &[1, 3])?;
    /// let router = Router::new(2).scoring(Scoring::Sigmoid).normalize(true).scale(2.5);
    /// assert_eq!(router.run(&logits)?.weights.read_blocking::<f32>()?, [1.25; 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn scale(mut self, scale: f32) -> Self {
        self.scale = scale;
        self
    }

    /// Chooses by the sum of score and bias, floats \[experts\], as DeepSeek balances its experts.
    /// Weights are made of the scores alone. A bias of −∞ puts an expert behind all others, and NaN
    /// before them. Sums are in f32: which of two almost equal sums is larger may depend on the
    /// device.
    ///
    /// ```
    /// use tilewise::moe::{Router, Scoring};
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let logits = Tensor::upload(&ctx, &[9.0f32, 0.0, 1.0], &[1, 3])?;
    /// let bias = Tensor::upload(&ctx, &[-2.0f32, 0.5, 0.0], &[3])?;
    /// let routing = Router::new(1).scoring(Scoring::Sigmoid).bias(&bias).run(&logits)?;
    /// assert_eq!(routing.experts.read_blocking::<u32>()?, [1]);
    /// assert_eq!(routing.weights.read_blocking::<f32>()?, [0.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bias(mut self, bias: &Tensor) -> Self {
        self.bias = Some(bias.clone());
        self
    }

    /// Chooses groups of experts first: of `n_group` groups of equal size, the `topk_group` groups
    /// with the largest scores, and then experts of these groups alone. The score of a group is the
    /// largest score of its experts. With a [`bias`](Self::bias) it is the sum of the two largest
    /// sums of score and bias. These are the rules of DeepSeek-V2 and DeepSeek-V3, whose
    /// configurations have the two numbers by these names.
    ///
    /// Among equal groups, the lower one counts as larger. A group with NaN counts as the largest.
    /// Experts of other groups are never chosen. (In transformers they have the score 0, and are
    /// chosen before experts whose sums are below 0.)
    ///
    /// ```
    /// use tilewise::moe::Router;
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let logits = Tensor::upload(&ctx, &[2.0f32, -9.0, 1.9, 1.9], &[1, 4])?;
    /// let routing = Router::new(2).groups(2, 1).run(&logits)?;
    /// assert_eq!(routing.experts.read_blocking::<u32>()?, [0, 1]); // not 0 and 2
    /// let even = Tensor::upload(&ctx, &[0.0f32; 4], &[4])?;
    /// let routing = Router::new(2).bias(&even).groups(2, 1).run(&logits)?;
    /// assert_eq!(routing.experts.read_blocking::<u32>()?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn groups(mut self, n_group: usize, topk_group: usize) -> Self {
        self.groups = [n_group, topk_group];
        self
    }

    /// How many experts a token has.
    pub fn top_k(&self) -> usize {
        self.k
    }

    /// The operation that gives `weights`, f32 \[tokens, k\], and `experts`, u32 \[tokens, k\], for
    /// `logits`, floats \[tokens, experts\]: as [`run`](Self::run), without the sort by expert. The
    /// relative error of weights is that of [`softmax`](ops::softmax) or [`sigmoid`](ops::sigmoid).
    /// For normalized sigmoids it is twice that, and (k/8 + 8)·2⁻²³ more. A [`scale`](Self::scale)
    /// other than 1 adds 2⁻²³. The methods of the operation return the errors of
    /// [`run`](Self::run).
    ///
    /// ```
    /// use tilewise::moe::Router;
    /// use tilewise::{Context, Tensor};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let logits = Tensor::upload(&ctx, &[0.0f32, 9.0, 9.0], &[1, 3])?;
    /// let [weights, experts] = Router::new(2).choose(&logits).run()?;
    /// assert_eq!(weights.read_blocking::<f32>()?, [0.5, 0.5]);
    /// assert_eq!(experts.read_blocking::<u32>()?, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn choose(&self, logits: &Tensor) -> Op<Choose, 2> {
        let softmax = self.scoring == Scoring::Softmax;
        let kind = Choose {
            logits: logits.clone(),
            bias: self.bias.clone(),
            k: self.k,
            groups: self.groups,
            softmax,
            normalize: self.normalize.unwrap_or(softmax),
            scale: self.scale,
        };
        Op::new(kind)
    }

    /// Routes tokens by `logits`, floats \[tokens, experts\]. The work is submitted, not waited
    /// for.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for logits of another shape, a bias that is not \[experts\], for k
    /// that is 0, or above the number of experts or of experts in the chosen groups, and for
    /// groups that the experts do not fill evenly; `Unsupported` for other types than floats;
    /// `Misuse` for operands of different contexts.
    pub fn run(&self, logits: &Tensor) -> Result<Routing> {
        let [tokens, experts] = self.sizes(logits)?;
        let routing = Routing::zeros(logits.context(), tokens, experts, self.k)?;
        self.run_into(logits, &routing)?;
        Ok(routing)
    }

    /// Like [`run`](Self::run), into the tensors of `routing`.
    ///
    /// # Errors
    /// The errors of [`run`](Self::run); [`Shape`](crate::Error) for a routing of other numbers of
    /// tokens, experts or k.
    pub fn run_into(&self, logits: &Tensor, routing: &Routing) -> Result<()> {
        logits.context().submit_as("routing", |to| self.record(to, logits, routing))
    }

    /// Adds it to the given compute pass, command encoder or recorder.
    ///
    /// # Errors
    /// The errors of [`run_into`](Self::run_into); [`Misuse`](crate::Error) on the CPU executor,
    /// unless the recorder is its own, and for the recorder of another context.
    pub fn record(
        &self,
        to: &mut impl AsRecorder,
        logits: &Tensor,
        routing: &Routing,
    ) -> Result<()> {
        let to = &mut to.as_recorder();
        to.way(logits.context())?;
        let [tokens, experts] = self.sizes(logits)?;
        logits.context().same(routing.weights.context(), "the routing")?;
        let wanted = [tokens, experts, self.k];
        let sizes = routing.sizes()?;
        if sizes != wanted {
            return Err(Error::Shape(format!(
                "a routing of [tokens, experts, k] = {sizes:?}, wanted {wanted:?}"
            )));
        }
        self.choose(logits).record(to, [&routing.weights, &routing.experts])?;
        let outs = [&routing.offsets.tensor, &routing.slots];
        ops::group(&routing.experts, experts).record(to, outs)
    }

    /// The numbers of tokens and experts, once the logits are found to fit.
    pub(super) fn sizes(&self, logits: &Tensor) -> Result<[usize; 2]> {
        self.choose(logits).kind.sizes()
    }
}

/// The experts of tokens, and the rows of the experts. A router writes the tensors that
/// [`zeros`](Self::zeros) made. You may replace weights, experts and offsets by others of the same
/// shape, but not by offsets from the host. The router refuses replacements of the other tensors.
///
/// Each token has k slots; slot j of token t has the number t·k + j. There is one row for each
/// slot. Rows are sorted by expert; rows of one expert keep the order of their slots.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Routing {
    /// Weights of the slots: f32 \[tokens, k\], from the largest score down, or from the largest
    /// sum of score and bias.
    pub weights: Tensor,
    /// Experts of the slots: u32 \[tokens, k\].
    pub experts: Tensor,
    /// The slot of each row: u32 \[tokens · k\].
    pub order: Tensor,
    /// The token of each row: u32 \[tokens · k\].
    pub tokens: Tensor,
    /// The row of each slot: u32 \[tokens, k\].
    pub places: Tensor,
    /// Where the rows of each expert end; a 0 comes first.
    pub offsets: GroupEnds,
    /// Order, tokens and places, in the memory of one tensor.
    slots: Tensor,
}

impl Routing {
    /// A routing of zeros, for a router to write: each of the tokens has k of the experts.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) for k that is 0 or above the number of experts, and for more than a
    /// kernel counts.
    pub fn zeros(context: &Context, tokens: usize, experts: usize, k: usize) -> Result<Self> {
        admitted(k, experts)?;
        Self::with_room(context, tokens, experts, k)
    }

    /// Like [`zeros`](Self::zeros), for any k: a token's chosen experts may lie in other layers.
    pub(super) fn with_room(
        context: &Context,
        tokens: usize,
        experts: usize,
        k: usize,
    ) -> Result<Self> {
        let rows = tokens.checked_mul(k).and_then(|rows| u32::try_from(rows).ok());
        let rows = rows.ok_or_else(|| {
            Error::Shape(format!(
                "overflow: {tokens} tokens by {k} experts: kernels count to {}",
                u32::MAX
            ))
        })?;
        let zeros = |dtype, shape: &[usize]| Tensor::zeros(context, dtype, shape);
        // Each of the three rows begins at a place where a binding may begin.
        let slots = zeros(DType::U32, &[3, (rows as usize).next_multiple_of(ALIGNED)])?;
        Self::of(
            zeros(DType::F32, &[tokens, k])?,
            zeros(DType::U32, &[tokens, k])?,
            slots,
            GroupEnds::from_tensor(&zeros(DType::U32, &[experts + 1])?)?,
        )
    }

    /// A routing with its views of `slots`, which has room for all slots.
    fn of(weights: Tensor, experts: Tensor, slots: Tensor, offsets: GroupEnds) -> Result<Self> {
        let slots = slots.narrow(1, 0, weights.elem_count())?;
        let [order, tokens, places] = Self::views(&slots, weights.shape())?;
        Ok(Routing { weights, experts, order, tokens, places, offsets, slots })
    }

    /// Sorts the slots of the given experts, u32 \[tokens, k\], and takes the experts and their
    /// weights.
    pub(super) fn chosen(
        self,
        to: &mut Recorder<'_>,
        weights: &Tensor,
        experts: &Tensor,
    ) -> Result<Self> {
        let groups = self.offsets.count() - 1;
        ops::group(experts, groups).record(to, [&self.offsets.tensor, &self.slots])?;
        Ok(self.of_slots(weights, experts))
    }

    /// Takes the given weights and experts of slots; nothing is sorted.
    pub(super) fn of_slots(self, weights: &Tensor, experts: &Tensor) -> Self {
        Routing { weights: weights.clone(), experts: experts.clone(), ..self }
    }

    /// The routing of fewer tokens, on the same memory.
    pub(super) fn narrow(&self, tokens: usize) -> Result<Self> {
        let [weights, experts] = [&self.weights, &self.experts].map(|all| all.narrow(0, 0, tokens));
        let (slots, offsets) = (self.slots.clone(), self.offsets.clone());
        Self::of(weights?, experts?, slots, offsets)
    }

    /// The numbers of tokens and experts, and k. `Shape` if tensors are no longer those of
    /// [`zeros`](Self::zeros).
    fn sizes(&self) -> Result<[usize; 3]> {
        let replaced = |what: &str, shape: &[usize]| {
            Err(Error::Shape(format!(
                "{what} of the routing have shape {shape:?} and were replaced: a router writes the \
                 tensors of Routing::zeros"
            )))
        };
        let &[tokens, k] = self.weights.shape() else {
            return replaced("weights", self.weights.shape());
        };
        let starts = self.offsets.count();
        if self.offsets.ends.is_some() {
            return Err(Error::Shape(
                "offsets of the routing came from the host: a router writes the tensors of \
                 Routing::zeros"
                    .into(),
            ));
        }
        if starts == 0 {
            return replaced("offsets", &[starts]);
        }
        let own = Self::views(&self.slots, &[tokens, k])?;
        for (name, own, tensor) in [
            ("slots by row", &own[0], &self.order),
            ("tokens by row", &own[1], &self.tokens),
            ("places", &own[2], &self.places),
        ] {
            if !tensor.is_same_view(own) {
                return replaced(name, tensor.shape());
            }
        }
        Ok([tokens, starts - 1, k])
    }

    /// The slot and the token of each row, and the row of each slot.
    fn views(slots: &Tensor, shape: &[usize]) -> Result<[Tensor; 3]> {
        let row = |at: usize| slots.narrow(0, at, 1)?.squeeze(0);
        Ok([row(0)?, row(1)?, row(2)?.reshape(shape)?])
    }
}
