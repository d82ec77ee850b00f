"""Writes what the vectors of all-MiniLM-L6-v2 must be, computed by transformers in f64.

    pip install torch==2.15.0 transformers==5.24.0 numpy==2.4.6
    cargo xtask model minilm
    python make_minilm.py MODEL              writes minilm.bin
    python make_minilm.py MODEL VECTORS.npy  also prints how far vectors are from the reference;
        `tilewise embed MODEL sentences.txt -o VECTORS.npy` makes them

minilm.bin has a digest of each vector of sentences.txt, f32 [200, 8], little-endian: sum number j
adds the elements of the vector, those of odd parity with a minus. Element i has the parity of the
number of ones in the bits of i & MASKS[j].
"""

import pathlib
import sys

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

MASKS = [1, 6, 24, 107, 130, 277, 340, 511]
MOST_TOKENS = 256


def main():
    folder = sys.argv[1]
    here = pathlib.Path(__file__).parent
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").double().eval()
    vectors = []
    for sentence in (here / "sentences.txt").read_text(encoding="utf-8").split("\n")[:-1]:
        tokens = tokenizer(sentence, truncation=True, max_length=MOST_TOKENS, return_tensors="pt")
        with torch.no_grad():
            mean = model(**tokens).last_hidden_state[0].mean(0)
        vectors.append((mean / mean.norm()).numpy())
    vectors = np.array(vectors)

    parities = [[(i & mask).bit_count() % 2 for i in range(vectors.shape[1])] for mask in MASKS]
    digests = vectors @ (1 - 2 * np.array(parities)).T
    digests.astype("<f4").tofile(here / "minilm.bin")
    print(f"minilm.bin: {list(digests.shape)}")
    for path in sys.argv[2:]:
        found = np.load(path).astype(np.float64)
        cosines = (found * vectors).sum(1) / np.linalg.norm(found, axis=1)
        print(f"{path}: 1 - cosine is at most {1 - cosines.min():.1e}")


if __name__ == "__main__":
    main()
