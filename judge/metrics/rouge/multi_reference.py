"""One score from several references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

from judge.metrics.rouge.kinds import Kind
from judge.metrics.rouge.variants import Form, RougeScore, Tally, pooled

Multi = Literal["best_f", "best_recall", "pooled", "mean", "jackknife"]
"""The reference of the best F (rouge-score) or of the best recall (ROUGE-1.5.5 -f B), the first of equals; counts
added up over all (-f A); the mean over the references; the mean over leaving each reference out once of the best of
the others (Lin 2004, section 2.1), by F, under ROUGE-1.5.5 by recall.
"""
MULTI: tuple[str, ...] = get_args(Multi)


def together(kind: Kind, tallies: Sequence[Tally], form: Form, multi: str, best: str) -> RougeScore:
    """The score of an output from its tallies with each reference; `best` is the jackknife's way to pick one."""
    if len(tallies) == 1:
        return form.score(kind, tallies[0])
    if multi == "pooled":
        return form.score(kind, pooled(tallies))
    scores = [form.score(kind, tally) for tally in tallies]
    if multi == "mean":
        return _mean(scores)
    by = best if multi == "jackknife" else multi
    worth = [form.recall(kind, tally) for tally in tallies] if by == "best_recall" else [s.fmeasure for s in scores]
    first, *rest = sorted(range(len(scores)), key=worth.__getitem__, reverse=True)  # stable: the first of equals
    if multi != "jackknife":
        return scores[first]
    return _mean([scores[first]] * len(rest) + [scores[rest[0]]])  # the best one is left out once


def _mean(scores: Sequence[RougeScore]) -> RougeScore:
    mean: Callable[[tuple[float, ...]], float] = lambda values: sum(values) / len(values)  # noqa: E731
    return RougeScore(*map(mean, zip(*scores, strict=True)))
