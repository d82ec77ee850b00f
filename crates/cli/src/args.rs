//! The command line.

mod grouped;
mod models;
mod values;

pub(crate) use grouped::{GatherMatmulArgs, GroupedArgs, MoeArgs};
pub(crate) use models::{EmbedArgs, SearchArgs};
pub(crate) use values::{ActivationArg, AxisArg, DTypeArg, Layout, Prepared, ScoringArg};

use crate::array::{Sink, Source};
use crate::target::Target;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use tilewise_core::QuantFormat;
use tilewise_core::problem::Precision;
use tilewise_files::Expected;

/// Matrix products of arrays and of quantized models on any GPU.
///
/// An array is FILE.npy or MODEL#TENSOR. A model is FILE.safetensors, FILE.gguf, the
/// FILE.safetensors.index.json of a model in several files, or the folder that holds one of these.
/// Exit status: 0 on success, 2 on usage errors, 1 otherwise.
#[derive(Debug, Parser)]
#[command(name = "tilewise", version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Commands of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show adapters, what they can do, and which kernels they admit
    #[command(after_help = "Example: tilewise info --json")]
    Info(InfoArgs),
    /// C = activation(alpha·A·B + beta·C0 + bias) + residual
    #[command(after_help = "Example: tilewise matmul A.npy B.npy -o C.npy --check")]
    Matmul(MatmulArgs),
    /// List the tensors of a model: shapes, formats, bytes, bits per weight
    #[command(after_help = "Example: tilewise inspect model.gguf --json")]
    Inspect(InspectArgs),
    /// Quantize a matrix [N,K], or a stack of them, along K, by default to affine 4-bit codes in
    /// groups of 64, in MLX's naming
    #[command(
        override_usage = "tilewise quantize [OPTIONS] <W> --output <Q>\n       tilewise quantize \
                          --list-formats",
        after_help = "Example: tilewise quantize W.npy -o Q.safetensors --format mxfp4"
    )]
    Quantize(QuantizeArgs),
    /// Write a quantized matrix as numbers
    #[command(
        after_help = "Example: tilewise dequantize model.gguf#blk.0.attn_q -o W.npy --dtype f16"
    )]
    Dequantize(DequantizeArgs),
    /// Y = X·Wᵀ with W [N,K] of a model, quantized or not
    #[command(
        after_help = "Example: tilewise qmatmul X.npy model.gguf#blk.0.attn_q -o Y.npy --check"
    )]
    Qmatmul(QmatmulArgs),
    /// Write a whole model with its matrices in another format
    #[command(
        after_help = "Converted are the weights [N,K] of linear layers and embeddings and stacks \
                      [E,N,K] of experts, by their names, if K is a whole number of blocks, and \
                      all quantized weights. Biases, norms, convolutions, positions, routers, \
                      single rows and other tensors are copied; a table says why. --only with the \
                      end of a tensor's name, such as A_log, overrules its name. Stacks [E,K,N] \
                      are copied if config.json names a type of model that has them, such as \
                      gpt_oss; name others by --except. GGUF's metadata goes into that of OUT as \
                      text, arrays as JSON. OUT is written whole or not at all; a killed process \
                      may leave a file .tilewise-... beside it.\n\n\
                      Example: tilewise convert model.gguf model.safetensors --format mxfp8"
    )]
    Convert(ConvertArgs),
    /// Multiply each group of rows of A with its own matrix out of B [G,K,N]
    #[command(after_help = "Example: tilewise grouped A.npy B.npy --offsets ends.npy -o C.npy")]
    Grouped(GroupedArgs),
    /// Row i of Y is row L[i] of X times matrix R[i] of W, as MLX's gather_mm and gather_qmm
    #[command(
        after_help = "Example: tilewise gather-matmul X.npy W.npy --rhs-indices R.npy -o Y.npy"
    )]
    GatherMatmul(GatherMatmulArgs),
    /// A mixture of experts: each token goes to the experts with the largest logits
    ///
    /// Softmax over the experts, the k largest, weights made to sum to 1: Y = Σ weight ·
    /// (silu(x·Gᵀ)∘(x·Uᵀ))·Dᵀ. Other functions, biases and shared experts are the library's.
    #[command(after_help = "Example: tilewise moe X.npy LOGITS.npy m.safetensors#gate \
                      m.safetensors#up m.safetensors#down --top-k 2 -o Y.npy")]
    Moe(MoeArgs),
    /// Explain which kernel a product would use, and why not the others
    #[command(after_help = "Example: tilewise plan 4096 4096 4096 --dtype f16 --caps apple-m1")]
    Plan(PlanArgs),
    /// Continue a text, or answer a message, by a language model: Gemma 3, Llama 3, Qwen 2 or 3
    #[command(
        after_help = "Example: tilewise generate gemma-3-270m.gguf --prompt 'The capital of \
                      France is' --raw"
    )]
    Generate(GenerateArgs),
    /// Multiply a layer of a real model: dense, with 4-bit weights, and grouped over sentences
    #[command(after_help = "Example: tilewise demo --adapter cpu")]
    Demo(DemoArgs),
    /// Turn lines of text into vectors, whose products tell which lines say the same
    #[command(after_help = "Example: tilewise embed target/models/minilm lines.txt -o V.npy")]
    Embed(EmbedArgs),
    /// Find the lines of a text that are nearest to a query by meaning
    #[command(
        after_help = "Example: tilewise search target/models/minilm README.md --query 'who adds?'"
    )]
    Search(SearchArgs),
}

/// Options of `tilewise info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of every command that runs a product.
#[derive(Debug, Args)]
pub(crate) struct Execution {
    /// Part of an adapter's name, a backend (vulkan, metal, dx12, gl), or cpu [default: the best
    /// GPU, else cpu]
    #[arg(long, value_name = "NAME|cpu")]
    pub(crate) adapter: Option<String>,
    /// Use this kernel whatever the planner would choose (`tilewise info` lists them). The CPU
    /// executor uses its own
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Compare with an oracle computed in f64, and fail if an element lies outside its error bound
    #[arg(long)]
    pub(crate) check: bool,
}

/// Options of `tilewise matmul`.
#[derive(Debug, Args)]
pub(crate) struct MatmulArgs {
    /// [M,K] or [batch,M,K]; f32, f16, bf16, or f64 (narrowed to f32)
    #[arg(value_name = "A")]
    pub(crate) a: Source,
    /// [K,N] or [batch,K,N]; a matrix, or a batch of one, serves every entry of the other operand
    #[arg(value_name = "B")]
    pub(crate) b: Source,
    /// FILE.npy or FILE.safetensors[#TENSOR]; a file that exists is replaced, with all its tensors
    #[arg(short, long, value_name = "C")]
    pub(crate) output: Sink,
    /// A holds the transpose: [K,M]
    #[arg(long)]
    pub(crate) transpose_a: bool,
    /// B holds the transpose: [N,K]
    #[arg(long)]
    pub(crate) transpose_b: bool,
    /// Factor of the product
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) alpha: f32,
    /// Factor of C0
    #[arg(long, value_name = "Y", requires = "c0", allow_negative_numbers = true)]
    pub(crate) beta: Option<f32>,
    /// Matrix of C's shape, multiplied by beta
    #[arg(long = "c", value_name = "C0", requires = "beta")]
    pub(crate) c0: Option<Source>,
    /// Vector added before the activation
    #[arg(long, value_name = "V")]
    pub(crate) bias: Option<Source>,
    /// Axis of C along which the bias runs: n adds one value per column, m one per row
    #[arg(long, value_name = "AXIS", default_value = "n", requires = "bias")]
    pub(crate) bias_along: AxisArg,
    /// Function applied after the bias; gelu is the tanh form, gelu-erf the other one
    #[arg(long, value_name = "FUNCTION", default_value = "none")]
    pub(crate) activation: ActivationArg,
    /// Matrix of C's shape, added last
    #[arg(long, value_name = "R")]
    pub(crate) residual: Option<Source>,
    /// Element type of C [default: that of A, B and C0 if they agree, else f32]
    #[arg(long, value_name = "DTYPE")]
    pub(crate) out_dtype: Option<DTypeArg>,
    /// How exact the product must be. f16-sums permits partial sums in f16 if A is f16 and B f16 or
    /// quantized: faster on some matrix units, less exact, and infinite beyond 65504. split-f32
    /// permits f32 by f32 on matrix units of f16, each number as the sum of two, about as exact as
    /// f32 by the norms of rows and columns; split-f32-fast permits it in long chains of additions,
    /// which is less exact. int16-activations and int8-activations permit few rows of A beside
    /// quantized weights as whole numbers, 32 with one power of two, each off by at most 1/32639 or
    /// 1/127 of their largest
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) execution: Execution,
}

/// Options of `tilewise inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A model, or one tensor of it: MODEL#TENSOR
    #[arg(value_name = "FILE")]
    pub(crate) model: Source,
    /// Format of the matrices whose format the file leaves open
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) format: Option<QuantFormat>,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Print JSON, with the metadata
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the metadata of the first file
    #[arg(long)]
    pub(crate) metadata: bool,
}

/// Options of `tilewise quantize`.
#[derive(Debug, Args)]
pub(crate) struct QuantizeArgs {
    /// [N,K] or [E,N,K], K a multiple of the format's block
    #[arg(value_name = "W", required_unless_present = "list_formats")]
    pub(crate) weights: Option<Source>,
    /// FILE.safetensors[#NAME]; a file that exists is replaced, with all its tensors
    #[arg(
        short,
        long,
        value_name = "Q",
        required_unless_present = "list_formats",
        value_parser = Sink::safetensors
    )]
    pub(crate) output: Option<Sink>,
    /// Format of the weights [default: affine-4bit-g64- and the element type of W]
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) format: Option<QuantFormat>,
    /// List all formats, and do nothing else
    #[arg(long)]
    pub(crate) list_formats: bool,
    /// Tensors are named NAME.weight, NAME.scales and so on [default: the name after # in Q, else
    /// the name of W]
    #[arg(long, value_name = "NAME")]
    pub(crate) prefix: Option<String>,
    /// Read the codes back, and fail if a weight differs from its original by more than one step
    /// and rounding
    #[arg(long)]
    pub(crate) check: bool,
}

/// Facts about quantized weights that their file leaves open.
#[derive(Debug, Args)]
pub(crate) struct Known {
    /// Bits of a code, if the file does not tell
    #[arg(long, value_name = "NUMBER", value_parser = known_bits)]
    pub(crate) bits: Option<u32>,
    /// Weights that share a scale, if the file does not tell
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) group: Option<u32>,
    /// MLX's name of the family, or gptq, gptq_v2, awq, if the file does not tell
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(modes()))]
    pub(crate) mode: Option<String>,
}

impl Known {
    /// Adds a format to these options.
    pub(crate) fn expected(&self, format: Option<QuantFormat>) -> Expected {
        let mut expected = Expected::default();
        (expected.format, expected.bits) = (format, self.bits);
        (expected.group, expected.mode) = (self.group, self.mode.clone());
        expected
    }
}

/// Parses a quantized format. Only `convert` takes types of numbers, too.
fn quantized_format(name: &str) -> Result<QuantFormat, String> {
    match name.parse() {
        Ok(Target::Dense(dtype)) => Err(format!(
            "{dtype} is a type of numbers; `tilewise quantize --list-formats` lists the quantized \
             formats"
        )),
        _ => name.parse().map_err(|error: tilewise_core::Error| error.to_string()),
    }
}

/// Parses a number from 0 on, at most `most`.
fn up_to(most: f32) -> impl Fn(&str) -> Result<f32, String> + Clone {
    move |text| match text.parse() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(number),
        _ => Err(format!("wanted a number from 0 to {most}")),
    }
}

/// Parses the bits of a code, which some format must have.
fn known_bits(text: &str) -> Result<u32, String> {
    let bits = text.parse().map_err(|error: std::num::ParseIntError| error.to_string())?;
    let all: BTreeSet<u32> =
        QuantFormat::all().filter_map(|format| Expected::in_words(format)?.bits).collect();
    let shown: Vec<_> = all.iter().map(u32::to_string).collect();
    match all.contains(&bits) {
        true => Ok(bits),
        false => Err(format!("codes have {} bits", shown.join(", "))),
    }
}

/// The families of MLX's formats, and the other programs that pack weights.
fn modes() -> BTreeSet<&'static str> {
    let mlx = QuantFormat::all().filter(|format| Expected::in_words(*format).is_some());
    let families = mlx.filter_map(|format| format.name().split('-').next());
    families.chain(["gptq", "gptq_v2", "awq"]).collect()
}

/// Options of `tilewise dequantize`.
#[derive(Debug, Args)]
pub(crate) struct DequantizeArgs {
    /// MODEL[#NAME]
    #[arg(value_name = "Q")]
    pub(crate) weights: Source,
    /// FILE.npy or FILE.safetensors[#TENSOR]; a file that exists is replaced, with all its tensors
    #[arg(short, long, value_name = "W")]
    pub(crate) output: Sink,
    /// Element type of W
    #[arg(long, value_name = "DTYPE", default_value = "f32")]
    pub(crate) dtype: DTypeArg,
    /// Format of the weights [default: the file tells it, or the shapes of the tensors]
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) format: Option<QuantFormat>,
    #[command(flatten)]
    pub(crate) known: Known,
}

/// Options of `tilewise qmatmul`.
#[derive(Debug, Args)]
pub(crate) struct QmatmulArgs {
    /// [M,K] or [batch,M,K]
    #[arg(value_name = "X")]
    pub(crate) x: Source,
    /// MODEL[#NAME], a matrix W [N,K] or [1,N,K]: of MLX, GGUF, GPTQ or AWQ, or of floats
    #[arg(value_name = "Q")]
    pub(crate) weights: Source,
    /// Format of the weights [default: the file tells it, or the shapes of the tensors]
    #[arg(long, value_name = "FORMAT", value_parser = quantized_format)]
    pub(crate) format: Option<QuantFormat>,
    #[command(flatten)]
    pub(crate) known: Known,
    /// FILE.npy or FILE.safetensors[#TENSOR]; a file that exists is replaced, with all its tensors
    #[arg(short, long, value_name = "Y")]
    pub(crate) output: Sink,
    /// Element type of Y [default: that of X]
    #[arg(long, value_name = "DTYPE")]
    pub(crate) out_dtype: Option<DTypeArg>,
    /// Precision, as for matmul
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    pub(crate) precision: Precision,
    #[command(flatten)]
    pub(crate) execution: Execution,
}

/// Options of `tilewise convert`.
#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// A model
    #[arg(value_name = "IN")]
    pub(crate) model: Source,
    /// FILE.safetensors; a file that exists is replaced, with all its tensors
    #[arg(value_name = "OUT", value_parser = Sink::safetensors)]
    pub(crate) output: Sink,
    /// f32, f16, bf16, or a quantized format (`tilewise quantize --list-formats`)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Target,
    #[command(flatten)]
    pub(crate) known: Known,
    /// Convert only tensors whose name contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Vec<String>,
    /// Copy tensors whose name contains this; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) except: Vec<String>,
    /// Leave out tensors whose name contains this, such as those of a type that is not read; may be
    /// repeated
    #[arg(long, value_name = "TEXT")]
    pub(crate) skip: Vec<String>,
}

/// Options of `tilewise plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Rows of A and C
    pub(crate) m: u64,
    /// Columns of B and C
    pub(crate) n: u64,
    /// Columns of A, rows of B
    pub(crate) k: u64,
    /// Element type of A, B and C
    #[arg(long, value_name = "DTYPE", default_value = "f32")]
    pub(crate) dtype: DTypeArg,
    /// Which operands hold their transpose: A, B, both or none
    #[arg(long, value_name = "LAYOUT", default_value = "NN")]
    pub(crate) transpose: Layout,
    /// B is weights [N,K] in this quantized format
    #[arg(long, value_name = "NAME", conflicts_with = "transpose")]
    pub(crate) format: Option<QuantFormat>,
    /// Groups of rows, as for grouped: B is a stack of G matrices, and M counts all rows
    #[arg(long, value_name = "G", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) groups: Option<u64>,
    /// Rows that each group with rows has [default: rows choose their groups at random]
    #[arg(long, value_name = "ROWS", requires = "groups",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) expected_rows: Option<u64>,
    /// Precision, as for matmul
    #[arg(long, value_name = "PRECISION", default_value = "f32")]
    pub(crate) precision: Precision,
    /// Plan with these operands packed beforehand, if kernels want that
    #[arg(long, value_name = "OPERANDS")]
    pub(crate) prepared: Option<Prepared>,
    /// Plan for recorded caps instead of this machine, without the environment and tuned kernels
    #[arg(long, value_name = "NAME", conflicts_with = "adapter")]
    pub(crate) caps: Option<String>,
    /// Adapter, as for matmul
    #[arg(long, value_name = "NAME|cpu")]
    pub(crate) adapter: Option<String>,
    /// Kernel, as for matmul
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
}

/// Options of `tilewise generate`.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// A GGUF file, or safetensors with config.json and tokenizer.json beside them
    #[arg(value_name = "MODEL")]
    pub(crate) model: Source,
    /// The message, or the text to be continued
    #[arg(long, value_name = "TEXT")]
    pub(crate) prompt: String,
    /// The most tokens of the answer
    #[arg(long, value_name = "NUMBER", default_value = "256")]
    pub(crate) tokens: NonZeroUsize,
    /// Draw tokens from the softmax of logits divided by T. At 0 each is the most likely one
    #[arg(long, value_name = "T", default_value = "0", value_parser = up_to(1e6))]
    pub(crate) temperature: f32,
    /// Draw from the K most likely tokens
    #[arg(long, value_name = "K", requires = "temperature")]
    pub(crate) top_k: Option<NonZeroUsize>,
    /// Draw from the fewest of the most likely tokens whose probabilities add up to P
    #[arg(long, value_name = "P", default_value = "1", requires = "temperature",
        value_parser = up_to(1.0))]
    pub(crate) top_p: f32,
    /// Draw from tokens whose probability is P times the largest one, or more
    #[arg(long, value_name = "P", default_value = "0", requires = "temperature",
        value_parser = up_to(1.0))]
    pub(crate) min_p: f32,
    /// Equal seeds give equal texts on an adapter
    #[arg(long, value_name = "NUMBER", default_value = "0", requires = "temperature")]
    pub(crate) seed: u64,
    /// Continue the prompt itself, without the chat template of an instruction model
    #[arg(long)]
    pub(crate) raw: bool,
    /// Show afterwards which calls take the time of the prompt and of a token, each submitted and
    /// waited for by itself
    #[arg(long)]
    pub(crate) profile: bool,
    /// Adapter, as for matmul
    #[arg(long, value_name = "NAME|cpu")]
    pub(crate) adapter: Option<String>,
}

/// Options of `tilewise demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Adapter, as for matmul
    #[arg(long, value_name = "NAME|cpu")]
    pub(crate) adapter: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn layouts_are_upper_case_and_negative_factors_are_numbers() {
        let Cli { command: Command::Plan(plan) } =
            Cli::try_parse_from(["tilewise", "plan", "1", "2", "3", "--transpose", "TN"]).unwrap()
        else {
            panic!("not a plan")
        };
        assert_eq!((plan.transpose.a(), plan.transpose.b()), (true, false));
        let line = ["tilewise", "matmul", "a.npy", "b.npy", "-o", "c.npy", "--alpha", "-1.5"];
        let Cli { command: Command::Matmul(matmul) } = Cli::try_parse_from(line).unwrap() else {
            panic!("not a matmul")
        };
        assert_eq!(matmul.alpha, -1.5);
    }
}
