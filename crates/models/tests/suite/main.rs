//! Tiny models of each family, against a pass in plain loops and f64, on every adapter and the CPU
//! executor; and tokenizers.

mod decoders;
mod reference;
mod tokenizers;
