"""A local judge on 16 systems × 4 criteria for each document: prompts share their prefixes, or are computed one by one.

    python benchmarks/local.py                                   # a tiny model, on the CPU where there is no GPU
    python benchmarks/local.py --shape 7b --documents 8          # a random model of the shape of Llama 2 7B, bf16
    python benchmarks/local.py --shape 7b --most 2048 4096 8192  # by the number of tokens in a pass

Prompts are random tokens: a document of 3,000 to 6,000, an output of 100 to 200, a criterion of 80 to 160. The
utilisation is what nvidia-smi says, sampled while prompts are scored.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from judge.providers.transformers.label_scoring import Scorer
from judge.providers.transformers.labels import Labels

SYSTEMS, CRITERIA = 16, 4
SHAPES: dict[str, dict[str, int]] = {
    "tiny": {
        "vocab_size": 2_000, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 4,
    },
    "7b": {
        "vocab_size": 32_000, "hidden_size": 4_096, "intermediate_size": 11_008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 32,
    },
}  # fmt: skip
LABELS = Labels(tuple("12345"), tuple(((token,), (token + 10,)) for token in range(5)))


def model(shape: str, device: str) -> Any:
    """A random model: bf16 on a GPU, float32 elsewhere."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
    try:
        with torch.device(device):
            return LlamaForCausalLM(LlamaConfig(**SHAPES[shape], max_position_embeddings=16_384)).eval()
    finally:
        torch.set_default_dtype(before)


def prompts(documents: int, vocabulary: int, seed: int = 0) -> list[list[int]]:
    """All that is asked about so many documents, document by document."""
    chance = random.Random(seed)

    def text(low: int, high: int) -> list[int]:
        return chance.choices(range(vocabulary), k=chance.randint(low, high))

    template, criteria = text(60, 60), [text(80, 160) for _ in range(CRITERIA)]
    every = []
    for _ in range(documents):
        document = text(3_000, 6_000)
        for _ in range(SYSTEMS):
            output = text(100, 200)
            every += [template + document + output + criterion for criterion in criteria]
    return every


@contextmanager
def utilisation(device: str) -> Iterator[list[int]]:
    """Percentages that nvidia-smi gave meanwhile; none where there is no GPU."""
    percentages: list[int] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(0.2):
            output = subprocess.run(
                ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"],
                capture_output=True, text=True, check=False,
            ).stdout.split()  # fmt: skip
            percentages.extend(int(value) for value in output[:1] if value.isdigit())

    thread = threading.Thread(target=sample, daemon=True)
    if device == "cuda" and shutil.which("nvidia-smi"):
        thread.start()
    try:
        yield percentages
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def measure(scorer: Scorer, asked: list[list[int]], device: str, what: str) -> float:
    """Seconds for each judgment: CPU seconds of this process on a CPU, seconds on the clock on a GPU."""
    scorer(asked[:2], [LABELS] * 2)
    scorer.forget()
    with utilisation(device) as busy:
        clock, spent = time.perf_counter(), time.process_time()
        scorer(asked, [LABELS] * len(asked))
        clock, spent = time.perf_counter() - clock, time.process_time() - spent
    print(
        f"{what:<28} {len(asked):>5} judgments in {clock:7.2f} s, {spent:7.2f} s of CPU: {len(asked) / clock:8.2f}/s; "
        f"{sum(map(len, asked)):>9,} tokens"
        + (f"; GPU {sum(busy) / len(busy):.0f}% busy" if busy else "")
        + "".join(f"; {name}: {text}" for name, text in scorer.learned.items())
    )
    return (clock if device == "cuda" else spent) / len(asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--documents", type=int, default=4, help="read with sharing; without, one is")
    parser.add_argument("--most", type=int, nargs="*", default=[0], help="tokens in a pass; 0: as the judge chooses")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.shape == "7b" and device == "cpu":
        raise SystemExit("--shape 7b needs a CUDA device")
    network = model(options.shape, device)
    name = torch.cuda.get_device_name() if device == "cuda" else f"CPU, {torch.get_num_threads()} threads"
    print(f"{options.shape}: {sum(p.numel() for p in network.parameters()):,} weights, {network.dtype}, {name}")
    asked = prompts(options.documents, SHAPES[options.shape]["vocab_size"])
    alone = measure(Scorer(network, share=False), asked[: SYSTEMS * CRITERIA], device, "each for itself")
    for most in options.most:
        what = f"shared, {most or 'usual'} tokens a pass"
        shared = measure(Scorer(network, most_tokens=most or None), asked, device, what)
        print(f"ratio: {alone / shared:.1f}")


if __name__ == "__main__":
    main()
