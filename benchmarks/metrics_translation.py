"""METEOR against NLTK, whose values it equals; and the time that sacrebleu takes for BLEU, chrF and TER: SummEval."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from common import read

ROUNDS = 3


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What, our rows per CPU second, theirs, and the ratio; values must be equal before they are timed."""
    from nltk.translate.meteor_score import meteor_score

    from judge.metrics import bleu, chrf, meteor, ter
    from judge.text import words

    data = read()[:320]
    outputs = [row["summary"] for row in data]
    cut = words("en")

    class NoWordnet:
        def synsets(self, word: str) -> list[Any]:
            return []

    def nltk(references: list[list[str]]) -> Callable[[int], list[float]]:
        return lambda n: [
            meteor_score(
                [cut(each) for each in found], cut(output), wordnet=NoWordnet()
            )
            for output, found in zip(outputs[:n], references[:n], strict=True)
        ]

    for count in (1, 11):
        references = [row["references"][:count] for row in data]
        label = f"{count} reference{'s' * (count > 1)}"
        yield _row(
            f"METEOR, {label}",
            lambda n, references=references: meteor.score(outputs[:n], references[:n]),
            nltk(references),
            len(data),
        )
        for name, score, n in (
            ("BLEU", bleu.sentence, 320),
            ("chrF", chrf.score, 320),
            ("TER", ter.score, 20 // count),
        ):
            score(outputs[:1], references[:1])  # imports
            start = time.process_time()
            score(outputs[:n], references[:n])
            yield (
                f"{name}, {label}",
                f"{n / (time.process_time() - start):,.1f}/s",
                "",
                "",
            )


def _row(
    what: str,
    ours: Callable[[int], list[float]],
    theirs: Callable[[int], list[float]],
    n: int,
) -> tuple[str, str, str, str]:
    apart = max(abs(a - b) for a, b in zip(ours(n), theirs(n), strict=True))
    if apart > 1e-9:
        raise SystemExit(f"{what}: values differ by {apart:g}")
    spent = [0.0, 0.0]
    for _ in range(ROUNDS):
        for side, work in enumerate((ours, theirs)):
            start = time.process_time()
            work(n)
            spent[side] += time.process_time() - start
    done = n * ROUNDS
    return (
        what,
        f"{done / spent[0]:,.0f}/s",
        f"{done / spent[1]:,.1f}/s",
        f"{spent[1] / spent[0]:.1f}x",
    )


if __name__ == "__main__":
    for row in rows():
        print(*row, sep="  ", flush=True)
