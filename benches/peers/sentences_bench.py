"""Times a model of sentence embeddings with sentence-transformers in f16.

    python3 sentences_bench.py target/models/minilm

The sentence and the batches are those of `--example sentences` of tilewise-models. Both turn text
into vectors on the host: tokens, the model, the mean over tokens, and length 1.
"""

import pathlib
import re
import sys
import time

import sentence_transformers
import torch

EXAMPLE = pathlib.Path(__file__).parents[2] / "crates/models/examples/sentences.rs"
SECONDS = 5


def main():
    text = re.search(r'const SENTENCE: &str = "(.*?)";', EXAMPLE.read_text(), re.DOTALL).group(1)
    sentence = re.sub(r"\\\n *", "", text)
    model = sentence_transformers.SentenceTransformer(sys.argv[1], device="cuda").half()
    print(f"sentence-transformers {sentence_transformers.__version__}, PyTorch "
          f"{torch.__version__}, {torch.cuda.get_device_name()}")
    print(f"{len(model.tokenizer(sentence)['input_ids'])} tokens")
    for batch in (1, 32, 256):
        texts = [sentence] * batch

        def embed():
            return model.encode(texts, batch_size=batch, normalize_embeddings=True)

        embed()
        begin, calls = time.perf_counter(), 0
        while time.perf_counter() - begin < SECONDS:
            embed()
            calls += 1
        rate = calls * batch / (time.perf_counter() - begin)
        print(f"f16, batch {batch:3}: {rate:8.1f} sentences/s")


if __name__ == "__main__":
    main()
