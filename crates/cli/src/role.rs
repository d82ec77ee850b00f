//! The part that a tensor of floats plays in its model, by name and shape.
//!
//! Weights of linear layers, embeddings and stacks of experts are quantized. These are the rules of
//! llama-quantize (`tensor_allows_quantization`) and of MLX (the modules with `to_quantized`). A
//! tensor that only one of them quantizes is kept: MLX quantizes routers, in most models to 8 bits,
//! and embeddings of positions.

/// Why a tensor is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// The tensors that are kept for this reason, in the plural.
    pub(crate) class: &'static str,
    /// The reason, for one tensor.
    pub(crate) why: String,
    /// Whether the name tells it, and the caller may know better.
    pub(crate) by_name: bool,
}

impl Kept {
    pub(crate) fn new(class: &'static str, why: impl Into<String>) -> Self {
        Kept { class, why: why.into(), by_name: false }
    }
}

/// Why floats are not quantized; `None` if they are the weights of a linear layer, an embedding or
/// a stack of experts.
pub(crate) fn kept(name: &str, shape: &[usize]) -> Option<Kept> {
    let name = name.to_ascii_lowercase();
    let mut parts = name.rsplit('.');
    let leaf = parts.next().unwrap_or_default();
    let layer = parts.next().unwrap_or_default();
    let above: Vec<&str> = parts.collect();
    let parent = above.first().copied().unwrap_or_default();
    let because = |class, why: &str| Some(Kept { by_name: true, ..Kept::new(class, why) });
    let in_experts = |name: &&str| name.contains("expert");

    if leaf.contains("bias") {
        return because("biases", "a bias");
    }
    if leaf.contains("scale") {
        return because("scales", "scales");
    }
    if shape.iter().rev().nth(1).is_none_or(|&rows| rows == 1) {
        return because("single rows", "a single row");
    }
    // Stacks of experts may be tensors without a layer: experts.gate_up_proj.
    let of_experts = in_experts(&layer) || above.iter().any(in_experts);
    let is_of_layer = ["proj", "proj_weight"].iter().any(|end| leaf.ends_with(end));
    let is_stack = of_experts && (is_of_layer || ["w1", "w2", "w3", "v1"].contains(&leaf));
    if !(leaf == "weight" || is_stack) {
        let text = "by its name no weight of a linear layer, an embedding or experts";
        return because("others by name", text);
    }
    let words: Vec<&str> = layer.split('_').collect();
    let is_one_of = |all: &[&str]| words.iter().any(|word| all.contains(word));
    if words.iter().any(|word| word.contains("norm")) || is_one_of(&["ln", "ln1", "ln2", "lnf"]) {
        return because("norms", "a norm");
    }
    if words.iter().any(|word| word.starts_with("conv")) {
        return because("convolutions", "a convolution");
    }
    let positions = ["pos", "position", "positions", "positional", "wpe", "rel", "relative"];
    let types = ["token_type", "segment_embed", "class_embedding"];
    if is_one_of(&positions) || types.iter().any(|start| layer.starts_with(start)) {
        return because("positions", "positions, or types of tokens");
    }
    let is_code = layer.starts_with("embed") && parent.starts_with("quantize");
    if is_one_of(&["codebook", "codebooks"]) || is_code {
        return because("codebooks", "a codebook");
    }
    // A gate may be a module with a layer in it.
    let gate = if layer == "linear" { parent } else { layer };
    let is_gate = ["gate", "wg", "gating", "moe_gate", "shared_expert_gate"].contains(&gate)
        || layer.starts_with("ffn_gate_inp");
    let is_router = layer.contains("router") || above.contains(&"router");
    if shape.len() == 2 && (is_router || is_gate && !above.iter().any(in_experts)) {
        return because("routers", "a router or gate");
    }
    // llama-quantize keeps these, too. The large matrices of RWKV have names of whole words.
    let of_rwkv = layer.strip_prefix("time_mix_").is_some_and(|rest| {
        rest.len() <= 2 || ["first", "decay", "lerp"].iter().any(|start| rest.starts_with(start))
    });
    let is_small = ["lora", "altup", "laurel", "per_layer_model_proj"]
        .iter()
        .any(|part| layer.contains(part) || parent.contains(part));
    if of_rwkv || is_small {
        return because("small matrices", "a small matrix, which llama-quantize keeps, too");
    }
    None
}

/// Why floats are not quantized whatever their role, if models of this type store them as \[K,N\]
/// or \[E,K,N\]: the blocks of a format lie along the last dimension, which must be K.
pub(crate) fn transposed(model_type: &str, name: &str, shape: &[usize]) -> Option<Kept> {
    let is_of = |types: &[&str]| types.contains(&model_type);
    let mut parts = name.rsplit('.');
    let (leaf, layer) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_stack = shape.len() == 3 && ["gate_up_proj", "down_proj"].contains(&leaf);
    let is_conv1d = ["c_attn", "c_fc", "c_proj", "q_attn"].contains(&layer);
    let stacked = ["gpt_oss", "llama4", "llama4_text", "qwen3_vl_moe", "qwen3_vl_moe_text"];
    let is_transposed =
        is_stack && is_of(&stacked) || is_conv1d && is_of(&["gpt2", "imagegpt", "openai-gpt"]);
    let why = || format!("transposed: {model_type} stores K before N");
    is_transposed.then(|| Kept { by_name: true, ..Kept::new("transposed", why()) })
}

/// Whether a tensor may hold the scales of codes, by the two names.
pub(crate) fn is_scale_of(scale: &str, codes: &str) -> bool {
    let split = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let (prefix, leaf) = lower.rsplit_once('.').unwrap_or(("", &lower));
        (prefix.to_owned(), leaf.to_owned())
    };
    let ((own, scale), (prefix, leaf)) = (split(scale), split(codes));
    let of_weights = ["weight", "w_q", "blocks"].iter().any(|part| leaf.contains(part));
    let of_scales = ["scale", "absmax", "scb"].iter().any(|part| scale.contains(part));
    let beside = own == prefix || own == format!("{prefix}.{leaf}");
    of_weights && of_scales && beside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_embeddings_and_experts_are_quantized() {
        for (name, shape) in [
            ("model.layers.0.self_attn.q_proj.weight", &[64, 64][..]),
            ("model.layers.0.mlp.gate_proj.weight", &[128, 64]),
            ("model.layers.0.mlp.experts.gate_up_proj", &[8, 128, 64]),
            ("model.layers.0.mlp.experts.3.gate.weight", &[128, 64]),
            ("model.layers.0.mlp.switch_mlp.up_proj.weight", &[8, 128, 64]),
            ("transformer.blocks.0.ffn.experts.mlp.w1", &[1024, 64]),
            ("model.embed_tokens.weight", &[1000, 64]),
            ("lm_head.weight", &[1000, 64]),
            ("transformer.wte.weight", &[1000, 64]),
            ("model.layers.0.mlp.experts.down_proj_weight", &[8, 64, 128]),
            ("backbone.layers.0.mixer.in_proj.weight", &[64, 64]),
            ("backbone.layers.0.mixer.x_proj.weight", &[64, 64]),
            ("model.layers.0.conv.in_proj.weight", &[64, 64]),
            ("blocks.0.norm1.linear.weight", &[64, 64]),
            ("blk.0.ffn_gate_exps.weight", &[8, 128, 64]),
            ("blk.0.ffn_gate.weight", &[128, 64]),
            ("blk.0.attn_k_b.weight", &[8, 64, 128]),
            ("blk.0.time_mix_value.weight", &[64, 64]),
            ("output.weight", &[1000, 64]),
            ("token_embd.weight", &[1000, 64]),
        ] {
            assert_eq!(kept(name, shape), None, "{name}");
        }
    }

    #[test]
    fn the_rest_is_kept() {
        for (name, shape, class) in [
            ("model.layers.0.mlp.experts.gate_up_proj_bias", &[8, 128][..], "biases"),
            ("model.layers.0.mlp.switch_mlp.up_proj.bias", &[8, 128], "biases"),
            ("blk.0.ffn_up_exps.bias", &[8, 128], "biases"),
            ("relative_bias", &[8, 64], "biases"),
            ("encoder.block.0.relative_attention_bias.weight", &[32, 64], "positions"),
            ("model.layers.0.mlp.up_proj.weight_scale_inv", &[56, 128], "scales"),
            ("backbone.layers.0.mixer.A_log", &[128, 64], "others by name"),
            ("backbone.layers.0.mixer.D", &[128, 64], "others by name"),
            ("blk.0.ssm_a", &[128, 64], "others by name"),
            ("cls_token", &[1, 1, 128], "single rows"),
            ("v.class_embd", &[2, 128], "others by name"),
            ("vision.pos_embed", &[1, 196, 128], "others by name"),
            ("backbone.layers.0.mixer.conv1d.weight", &[128, 1, 64], "single rows"),
            ("encoder.conv1.weight", &[384, 80, 64], "convolutions"),
            ("model.layers.0.conv.conv.weight", &[64, 3, 64], "convolutions"),
            ("blk.0.ssm_conv1d_q.weight", &[128, 64], "convolutions"),
            ("embeddings.position_embeddings.weight", &[512, 64], "positions"),
            ("transformer.wpe.weight", &[512, 64], "positions"),
            ("v.position_embd.weight", &[512, 64], "positions"),
            ("embeddings.token_type_embeddings.weight", &[2, 64], "positions"),
            ("blk.0.attn_rel_b.weight", &[32, 64], "positions"),
            ("model.layers.0.mlp.gate.weight", &[8, 64], "routers"),
            ("model.layers.0.mlp.router.weight", &[8, 64], "routers"),
            ("transformer.blocks.0.ffn.router.layer.weight", &[8, 64], "routers"),
            ("blk.0.ffn_gate_inp.weight", &[8, 64], "routers"),
            ("model.layers.0.mlp.shared_expert_gate.weight", &[1, 64], "single rows"),
            ("model.layers.0.self_attn.q_norm.weight", &[8, 64], "norms"),
            ("transformer.h.0.ln_1.weight", &[2, 64], "norms"),
            ("blk.0.time_mix_w1.weight", &[64, 64], "small matrices"),
            ("blk.0.laurel_l.weight", &[64, 64], "small matrices"),
            ("base.q_proj.lora_A.weight", &[64, 64], "small matrices"),
            ("base.q_proj.lora_A.default.weight", &[64, 64], "small matrices"),
            ("layers.0.altup.correction_coefs.weight", &[4, 64], "small matrices"),
            ("layers.0.laurel.linear_left.weight", &[64, 64], "small matrices"),
            ("layers.0.mlp.gate.linear.weight", &[8, 64], "routers"),
            ("layers.0.moe_gate.weight", &[8, 64], "routers"),
            ("bert.embeddings.segment_embeddings.weight", &[2, 64], "positions"),
            ("visual.class_embedding.weight", &[2, 64], "positions"),
            ("quantizer.codebook.weight", &[512, 64], "codebooks"),
            ("vqvae.quantize.embedding.weight", &[512, 64], "codebooks"),
            ("encoder.layers.0.self_attn.in_proj_weight", &[192, 64], "others by name"),
            ("visual.blocks.0.attn.qkv_weight", &[192, 64], "others by name"),
        ] {
            let found = kept(name, shape).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(found.class, class, "{name}");
        }
    }

    #[test]
    fn scales_belong_to_codes() {
        for (scale, codes) in [
            ("l.up.weight_scale_inv", "l.up.weight"),
            ("l.up.weight_scale", "l.up.weight_packed"),
            ("experts.up_proj_scales", "experts.up_proj_blocks"),
            ("l.up.weight.absmax", "l.up.weight"),
            ("l.up.SCB", "l.up.weight"),
            ("l.up.scale", "l.up.W_q"),
        ] {
            assert!(is_scale_of(scale, codes), "{scale}");
        }
        for (scale, codes) in [
            ("l.down.weight_scale", "l.up.weight"),
            ("l.up.bias", "l.up.weight"),
            ("embeddings.scale", "embeddings.position_ids"),
            ("l.up.q.scale", "l.up.weight"),
        ] {
            assert!(!is_scale_of(scale, codes), "{scale}");
        }
    }
}
