//! Options of commands that run a model.

use crate::array::Sink;
use clap::Args;
use std::path::PathBuf;

/// Options of `tilewise embed`.
#[derive(Debug, Args)]
pub(crate) struct EmbedArgs {
    /// Folder of a model of sentence-transformers, such as `cargo xtask model minilm` fetches
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Text with a sentence on each line; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(crate) file: PathBuf,
    /// FILE.npy or FILE.safetensors[#TENSOR]; a file that exists is replaced, with all its tensors
    /// [default: a line of numbers for each line, on standard output]
    #[arg(short, long, value_name = "V")]
    pub(crate) output: Option<Sink>,
    /// Adapter, as for matmul
    #[arg(long, value_name = "NAME|cpu")]
    pub(crate) adapter: Option<String>,
}

/// Options of `tilewise search`.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// Model, as for embed
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Text whose lines are searched; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Words whose meaning is looked for
    #[arg(long, value_name = "TEXT")]
    pub(crate) query: String,
    /// How many lines to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Adapter, as for matmul
    #[arg(long, value_name = "NAME|cpu")]
    pub(crate) adapter: Option<String>,
}
