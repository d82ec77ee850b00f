"""Times a model with llama.cpp's server, beside `tilewise generate MODEL --profile`.

    python3 llama_bench.py SERVER model.gguf --json llama.json

SERVER is the program llama-server of any llama.cpp, with its backend. A prompt of --prompt tokens
is read, then --tokens are generated greedily, --samples times; the text is random tokens, so no
prompt is in the server's cache. Times are the server's own. Medians are printed.
"""

import argparse
import json
import pathlib
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

SECONDS_TO_START = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("server", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()

    version = subprocess.run([given.server, "--version"], capture_output=True, text=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    room = given.prompt + given.tokens + 8
    server = subprocess.Popen(
        [given.server, "--model", given.model, "--port", str(port), "--ctx-size", str(room),
         "--batch-size", str(room), "--ubatch-size", str(room), "--parallel", "1",
         "--n-gpu-layers", "999"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(server, port)
        # The first one compiles.
        measure(port, given.prompt, given.tokens)
        samples = [measure(port, given.prompt, given.tokens) for _ in range(given.samples)]
    finally:
        server.terminate()
        server.wait()

    prompt, decode = (statistics.median(rates) for rates in zip(*samples))
    print(f"{given.model.name}: a prompt of {given.prompt} tokens {prompt:.0f} tokens/s, "
          f"then {given.tokens} tokens at {decode:.1f} tokens/s, medians of {given.samples}")
    if given.json:
        lines = (version.stdout + version.stderr).splitlines()
        given.json.write_text(json.dumps({
            "version": next((line for line in lines if line.startswith("version")), "unknown"),
            "model": given.model.name, "prompt": given.prompt, "tokens": given.tokens,
            "prompt_tokens_per_second": prompt, "tokens_per_second": decode,
            "samples": samples}, indent=1) + "\n")


def wait_for(server, port):
    """Returns when the server has read the model; exits with its status if it ends before."""
    end = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < end:
        if server.poll() is not None:
            sys.exit(f"llama-server ended with status {server.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    sys.exit(f"llama-server did not answer within {SECONDS_TO_START} s")


def measure(port, prompt, tokens):
    """Tokens per second of a prompt and of what follows it."""
    request = {"prompt": [random.randrange(1000, 30000) for _ in range(prompt)],
               "n_predict": tokens, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    body = json.dumps(request).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/completion", body) as answer:
        timings = json.load(answer)["timings"]
    for what, wanted in (("prompt_n", prompt), ("predicted_n", tokens)):
        if timings[what] != wanted:
            sys.exit(f"{what} is {timings[what]}, not {wanted}")
    return timings["prompt_per_second"], timings["predicted_per_second"]


if __name__ == "__main__":
    main()
