//! Options of products with several matrices.

use super::{DTypeArg, Execution, Known, ScoringArg, quantized_format};
use crate::array::{Sink, Source};
use clap::{ArgGroup, Args};
use tilewise_core::QuantFormat;
use tilewise_core::problem::Precision;
use tilewise_files::Expected;

/// Options of `tilewise grouped`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("groups").required(true).args(["offsets", "masked"])))]
pub(crate) struct GroupedArgs {
    /// [M,K] with --offsets; [G,M,K] with --masked, or [1,M,K] for all groups
    #[arg(value_name = "A")]
    pub(crate) a: Source,
    /// [G,K,N], or several: matrices [K,N], one for each group, or parts of the stack. Quantized
    /// weights are [G,N,K]
    #[arg(value_name = "B", required = true, num_args = 1..)]
    pub(crate) b: Vec<Source>,
    /// Where each group ends among the rows of A: G numbers that do not decrease, or G+1 that begin
    /// with 0; u32, i32, u64 or i64
    #[arg(long, value_name = "OFFS")]
    pub(crate) offsets: Option<Source>,
    /// How many rows of each entry of A count, from the first on: G numbers up to M; u32, i32, u64
    /// or i64
    #[arg(long, value_name = "COUNTS")]
    pub(crate) masked: Option<Source>,
    /// [M,N] or [G,M,N], in FILE.npy or FILE.safetensors[#TENSOR]; a file that exists is replaced,
    /// with all its tensors. Rows from the last offset on, or from a group's count on, are zero
    #[arg(short, long, value_name = "C")]
    pub(crate) output: Sink,
    /// B holds transposes: [G,N,K], as quantized weights always do
    #[arg(long)]
    pub(crate) transpose_b: bool,
    /// Element type of C [default: that of A and B if they agree, else f32; that of A beside
    /// quantized weights]
    #[arg(long, value_name = "DTYPE")]
    pub(crate) out_dtype: Option<DTypeArg>,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

/// Options of `tilewise gather-matmul`.
#[derive(Debug, Args)]
pub(crate) struct GatherMatmulArgs {
    /// [M,K]
    #[arg(value_name = "X")]
    pub(crate) x: Source,
    /// [E,K,N]; quantized weights are [E,N,K]
    #[arg(value_name = "W")]
    pub(crate) w: Source,
    /// FILE.npy or FILE.safetensors[#TENSOR]; a file that exists is replaced, with all its tensors
    #[arg(short, long, value_name = "Y")]
    pub(crate) output: Sink,
    /// The row of X for each row of Y: u32, i32, u64 or i64 [default: every row of X in its order]
    #[arg(long, value_name = "L")]
    pub(crate) lhs_indices: Option<Source>,
    /// The matrix of W for each row of Y [default: every matrix of W in its order]. R has as many
    /// indices as L, or one of the two has a single index, which serves all. An index beyond W is
    /// an error
    #[arg(long, value_name = "R")]
    pub(crate) rhs_indices: Option<Source>,
    /// R does not decrease: nothing needs sorting
    #[arg(long)]
    pub(crate) sorted: bool,
    /// W holds transposes: [E,N,K], as quantized weights always do
    #[arg(long)]
    pub(crate) transpose_b: bool,
    /// Element type of Y [default: that of X and W if they agree, else f32; that of X beside
    /// quantized weights]
    #[arg(long, value_name = "DTYPE")]
    pub(crate) out_dtype: Option<DTypeArg>,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

/// Options of `tilewise moe`.
#[derive(Debug, Args)]
pub(crate) struct MoeArgs {
    /// [T,H], a row for each token
    #[arg(value_name = "X")]
    pub(crate) x: Source,
    /// Logits of the router, [T,E]
    #[arg(value_name = "LOGITS")]
    pub(crate) logits: Source,
    /// [E,F,H], floats or quantized weights
    #[arg(value_name = "GATE")]
    pub(crate) gate: Source,
    /// [E,F,H]
    #[arg(value_name = "UP")]
    pub(crate) up: Source,
    /// [E,H,F]
    #[arg(value_name = "DOWN")]
    pub(crate) down: Source,
    /// How many experts a token goes to
    #[arg(long, value_name = "K")]
    pub(crate) top_k: usize,
    /// FILE.npy or FILE.safetensors[#TENSOR]; a file that exists is replaced, with all its tensors
    #[arg(short, long, value_name = "Y")]
    pub(crate) output: Sink,
    /// How logits become scores. After a sigmoid the weights of a token do not sum to 1
    #[arg(long, value_name = "SCORING", default_value = "softmax")]
    pub(crate) scoring: ScoringArg,
    /// Format of GATE, if it differs from --format
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) gate_format: Option<QuantFormat>,
    /// Format of UP, if it differs from --format
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) up_format: Option<QuantFormat>,
    /// Format of DOWN, if it differs from --format
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) down_format: Option<QuantFormat>,
    /// Element type of Y [default: that of X]
    #[arg(long, value_name = "DTYPE")]
    pub(crate) out_dtype: Option<DTypeArg>,
    #[command(flatten)]
    pub(crate) ways: Ways,
}

/// Options of all products with several matrices.
#[derive(Debug, Args)]
pub(crate) struct Ways {
    #[command(flatten)]
    pub(crate) format: Format,
    /// Precision, as for matmul
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) execution: Execution,
}

/// The format of quantized weights.
#[derive(Debug, Args)]
pub(crate) struct Format {
    /// Format of quantized weights [default: the file tells it, or the shapes of the tensors]
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) format: Option<QuantFormat>,
    #[command(flatten)]
    pub(crate) known: Known,
}

impl Format {
    /// The options' facts about weights; `own` is a format for these weights alone.
    pub(crate) fn expected(&self, own: Option<QuantFormat>) -> Expected {
        self.known.expected(own.or(self.format))
    }
}
