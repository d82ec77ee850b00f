"""Writes what the logits and tokens of Gemma 3 270M must be, computed by plain loops in f64.

    pip install gguf==0.19.0 numpy==2.4.6
    cargo xtask model gemma
    python make_gemma.py MODEL/gemma-3-270m-q4_k_m.gguf    writes gemma.bin

A prompt is some lines of sentences.txt, joined by spaces; the last is longer than the window.
gemma.bin has for each prompt in PROMPTS, little-endian: every 257th logit behind it, f32 [1021],
then the 64 tokens that follow, u32. It also prints how far the two best logits are apart in the
step where they are closest: f32 must be able to tell which is larger.
"""

import pathlib
import sys

import numpy as np
from gguf import GGUFReader, dequantize

PROMPTS = [(3, 4), (4, 5), (130, 131), (170, 171), (190, 194)]
TOKENS, STRIDE = 64, 257
GLOBAL = 6  # Each sixth layer has no window, and these two bases of its frequencies.
BASES = {True: 1e6, False: 1e4}


class Gemma:
    def __init__(self, path):
        reader = GGUFReader(path)
        entry = lambda key: reader.fields[key].contents()
        number = lambda key: entry(f"gemma3.{key}")
        self.layers, self.head = number("block_count"), number("attention.key_length")
        self.heads, self.window = number("attention.head_count"), number("attention.sliding_window")
        self.eps = number("attention.layer_norm_rms_epsilon")
        self.weights = {
            tensor.name.removesuffix(".weight"): dequantize(tensor.data, tensor.tensor_type)
            .astype(np.float64)
            for tensor in reader.tensors
        }
        pieces, scores = entry("tokenizer.ggml.tokens"), entry("tokenizer.ggml.scores")
        self.numbers = {piece: number for number, piece in enumerate(pieces)}
        self.scores, self.begin = scores, entry("tokenizer.ggml.bos_token_id")

    def tokens(self, text):
        """SentencePiece: while two neighbours are a piece together, the best of these joins."""
        parts = list(text.replace(" ", "▁"))
        while True:
            both = [self.numbers.get(a + b) for a, b in zip(parts, parts[1:])]
            known = [(-self.scores[number], at) for at, number in enumerate(both) if number]
            if not known:
                return [self.begin] + [self.numbers[part] for part in parts]
            at = min(known)[1]
            parts[at : at + 2] = ["".join(parts[at : at + 2])]

    def norm(self, x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.eps) * self.weights[name]

    def turn(self, x, at, base):
        """Rotary embeddings of x [T, heads, head]: element i turns with element i + head / 2."""
        half = self.head // 2
        angles = at[:, None, None] * base ** (-np.arange(half) / half)
        (a, b), (cos, sin) = (x[..., :half], x[..., half:]), (np.cos(angles), np.sin(angles))
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x, layer, past):
        """Of x [T, width], behind the keys and values of a layer in `past`, which grow."""
        name, whole = f"blk.{layer}.", (layer + 1) % GLOBAL == 0
        at = np.arange(len(x)) + (len(past[layer][0]) if layer in past else 0)
        part = lambda part: (x @ self.weights[name + part].T).reshape(len(x), -1, self.head)
        q = self.turn(self.norm(part("attn_q"), name + "attn_q_norm"), at, BASES[whole])
        k = self.turn(self.norm(part("attn_k"), name + "attn_k_norm"), at, BASES[whole])
        new = [k, part("attn_v")]
        if layer in past:
            new = [np.concatenate(both) for both in zip(past[layer], new)]
        past[layer] = new
        k, v = (np.repeat(each, self.heads // each.shape[1], 1) for each in new)
        back = at[:, None] - np.arange(len(k))
        seen = (back >= 0) & (whole | (back < self.window))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.head)
        scores = np.where(seen, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        y = np.einsum("hqk,khd->qhd", shares, v).reshape(len(x), -1)
        return y @ self.weights[name + "attn_output"].T

    def feed(self, x, name):
        gate, up = (x @ self.weights[name + part].T for part in ["ffn_gate", "ffn_up"])
        gate *= 0.5 + 0.5 * np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))
        return (gate * up) @ self.weights[name + "ffn_down"].T

    def logits(self, tokens, past):
        """Behind the last of `tokens`, which follow those of `past`."""
        rows = self.weights["token_embd"]
        x = rows[tokens] * np.sqrt(rows.shape[1])
        for layer in range(self.layers):
            name = f"blk.{layer}."
            y = self.attention(self.norm(x, name + "attn_norm"), layer, past)
            x = x + self.norm(y, name + "post_attention_norm")
            y = self.feed(self.norm(x, name + "ffn_norm"), name)
            x = x + self.norm(y, name + "post_ffw_norm")
        return rows @ self.norm(x[-1], "output_norm")


def main():
    here = pathlib.Path(__file__).parent
    lines = (here / "sentences.txt").read_text(encoding="utf-8").split("\n")
    model = Gemma(sys.argv[1])
    with open(here / "gemma.bin", "wb") as file:
        for first, end in PROMPTS:
            prompt, past, found, gaps = model.tokens(" ".join(lines[first:end])), {}, [], []
            logits = model.logits(prompt, past)
            file.write(logits[::STRIDE].astype("<f4").tobytes())
            while True:
                second, best = np.sort(np.partition(logits, -2)[-2:])
                gaps.append(best - second)
                found.append(int(logits.argmax()))
                if len(found) == TOKENS:
                    break
                logits = model.logits(found[-1:], past)
            file.write(np.array(found, "<u4").tobytes())
            print(f"lines {first} to {end}: {len(prompt)} tokens, the closest best logits are "
                  f"{min(gaps):.1e} apart; then {found}", flush=True)


if __name__ == "__main__":
    main()
