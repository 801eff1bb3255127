"""What a judgment takes on disk, and what a million and a hundred million of them come to, in bytes, hours and dollars.

The judgments are SummEval's, by a server on this machine that gives the probabilities of five labels. Prices are those
of genai-prices, for the tokens of these prompts by judge's own estimate and four tokens of reply. Hours are those that
a limit of requests a minute leaves.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from common import JUDGE, SUMMEVAL, mock_server

from judge.providers.pricing import BATCH, DEFAULT_URL, per_token

MODELS = ("gpt-6-luna", "gpt-5.4-mini", "gpt-6.1-sol")
RPM = (500, 10_000, 30_000)
SIZES = (10**6, 10**8)
WRITTEN = 4
CRITERIA = ("relevance", "coherence", "consistency")
TEXTS = 1600


def judge(*words: str) -> str:
    """What the command prints on standard output; it must succeed."""
    done = subprocess.run([*JUDGE, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def measured(url: str, folder: Path) -> tuple[float, float, float]:
    """For each judgment of one run: bytes in the cache and in the results, and the tokens it reads."""
    data = [str(SUMMEVAL), "--map", "item=doc_id,output=summary", "--metrics", "none"]
    data += [
        "--criteria",
        ",".join(CRITERIA),
        "--model",
        "mock",
        "--base-url",
        url,
        "--cache",
        str(folder / "cache"),
    ]
    plan = json.loads(judge("plan", *data, "--format", "json"))
    total = plan["judges"][0]["total"]
    replies = total["requests"]
    judge("run", *data, "--out", str(folder / "out"), "--quiet")
    kept = sum(path.stat().st_size for path in (folder / "cache/responses").iterdir())
    rows = sum(
        (folder / "out" / name).stat().st_size
        for name in ("scores.parquet", "samples.parquet")
    )
    return kept / replies, rows / (TEXTS * len(CRITERIA)), total["read"] / replies


def main() -> None:
    with mock_server() as url, tempfile.TemporaryDirectory() as folder:
        kept, rows, read = measured(url, Path(folder))
    print(
        f"each: {kept:,.0f} bytes in the cache, {rows:.0f} in the results, {read:,.0f} tokens read"
    )
    for size in SIZES:
        print(
            f"\n{size:,} judgments: {size * kept / 1e9:,.0f} GB of cache, {size * rows / 1e9:,.1f} GB of results"
        )
        for rpm in RPM:
            print(f"  {rpm:>6,} requests a minute: {size / rpm / 60:,.1f} h")
        for model in MODELS:
            if (prices := per_token(model, DEFAULT_URL)) is not None:
                each = read * prices[0] + WRITTEN * prices[3]
                print(
                    f"  {model}: ${size * each:,.0f}, in batches ${size * each * BATCH:,.0f}"
                )


if __name__ == "__main__":
    main()
