//! Tokenizers of GGUF's metadata.
