"""BLEU, chrF, TER, METEOR and CIDEr-D against the packages they are equal to: CPU time on SummEval, in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from common import read

ROUNDS = 3


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What, our rows per CPU second, theirs, and the ratio; values must be equal before they are timed."""
    from nltk.translate.meteor_score import meteor_score
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    from judge.metrics import bleu, chrf, meteor, ter
    from judge.text import words

    data = read()[:320]
    outputs = [row["summary"] for row in data]
    cut = words("en")

    class NoWordnet:
        def synsets(self, word: str) -> list[Any]:
            return []

    def theirs_of(scorer: Any, references: list[list[str]]) -> Callable[[int], list[float]]:
        return lambda n: [scorer.sentence_score(*pair).score for pair in zip(outputs[:n], references[:n], strict=True)]

    def nltk(references: list[list[str]]) -> Callable[[int], list[float]]:
        return lambda n: [
            meteor_score([cut(each) for each in found], cut(output), wordnet=NoWordnet())
            for output, found in zip(outputs[:n], references[:n], strict=True)
        ]

    for count in (1, 11):
        references = [row["references"][:count] for row in data]
        for name, ours, theirs, n in (
            ("BLEU", bleu.sentence, theirs_of(BLEU(effective_order=True, force=True), references), 320),
            ("chrF", chrf.score, theirs_of(CHRF(), references), 320),
            ("TER", ter.score, theirs_of(TER(), references), 320 // 16 // count or 2),
            ("METEOR", meteor.score, nltk(references), 320),
        ):
            yield _row(
                f"{name}, {count} reference{'s' * (count > 1)}",
                lambda n, ours=ours, references=references: ours(outputs[:n], references[:n]),
                theirs,
                n,
            )


def _row(
    what: str, ours: Callable[[int], list[float]], theirs: Callable[[int], list[float]], n: int
) -> tuple[str, str, str, str]:
    apart = max(abs(a - b) for a, b in zip(ours(n), theirs(n), strict=True))
    if apart > 1e-9:
        raise SystemExit(f"{what}: values differ by {apart:g}")
    spent = [0.0, 0.0]
    for _ in range(ROUNDS if n == 320 else 1):
        for side, work in enumerate((ours, theirs)):
            start = time.process_time()
            work(n)
            spent[side] += time.process_time() - start
    done = n * (ROUNDS if n == 320 else 1)
    return what, f"{done / spent[0]:,.0f}/s", f"{done / spent[1]:,.1f}/s", f"{spent[1] / spent[0]:.1f}x"


if __name__ == "__main__":
    for row in rows():
        print(*row, sep="  ", flush=True)
