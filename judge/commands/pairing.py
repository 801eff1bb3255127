"""Which texts are compared with which, and in which order they are shown."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from judge.core.errors import ConfigError
from judge.core.records import IDENTICAL, Criterion, Provenance, Sample, Score
from judge.execution.pending import Judgment

Pair = tuple[Sample, Sample]
_EQUAL = Provenance(IDENTICAL, n=0, note="the two texts are equal: a tie, and no judge was asked")


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs of texts of a ranking, each as it is shown: two orders are two entries.

    `compared` are asked about, `equal` are ties without a question. `possible` counts the pairs that there are,
    `chosen` those that were taken, and `alone` the pairs of systems and items for which one text is missing.
    """

    compared: tuple[Pair, ...]
    equal: tuple[Pair, ...]
    possible: int
    chosen: int
    alone: int

    def judgments(self, criteria: Sequence[Criterion]) -> list[Judgment]:
        """What a judge is asked."""
        return [Judgment(first, criterion, second) for first, second in self.compared for criterion in criteria]

    def ties(self, columns: Sequence[str]) -> Iterator[Score]:
        """The rows of equal texts."""
        for first, second in self.equal:
            for column in columns:
                yield Score(first.item, first.system, column, 0.5, _EQUAL, second.system)


def choose(samples: Sequence[Sample], *, orders: int, budget: int | None, seed: int) -> Pairs:
    """Every pair of two systems' texts for one item, or a sample of `budget` of them.

    A sample takes the pairs of systems in turn, each time with an item drawn by `seed`, so that all are compared about
    equally often. With one order, a hash of seed, item and systems says which text is shown first. Raises ConfigError
    where nothing can be compared.
    """
    systems = list(dict.fromkeys(s.system for s in samples))
    items = list(dict.fromkeys(s.item for s in samples))
    texts = {(s.item, s.system): s for s in samples}
    by_systems = [
        [(texts[item, a], texts[item, b]) for item in items if (item, a) in texts and (item, b) in texts]
        for a, b in combinations(systems, 2)
    ]
    every = [pair for item in zip(*_padded(by_systems), strict=True) for pair in item if pair is not None]
    if not every:
        raise ConfigError(
            f"nothing to compare: no item has texts of two systems (systems: {', '.join(systems[:10])}); name the "
            "column of the systems with --map system=COLUMN, or those of their texts with --systems A,B"
        )
    chosen = every if budget is None or budget >= len(every) else _sampled(by_systems, budget, seed)
    shown = [shown for pair in chosen for shown in _shown(pair, orders, seed)]
    return Pairs(
        compared=tuple(pair for pair in shown if pair[0].output != pair[1].output),
        equal=tuple(pair for pair in shown if pair[0].output == pair[1].output),
        possible=len(every),
        chosen=len(chosen),
        alone=len(by_systems) * len(items) - len(every),
    )


def _padded(lists: Sequence[Sequence[Pair]]) -> list[list[Pair | None]]:
    longest = max(map(len, lists), default=0)
    return [[*one, *[None] * (longest - len(one))] for one in lists]


def _sampled(by_systems: Sequence[Sequence[Pair]], budget: int, seed: int) -> list[Pair]:
    draw = random.Random(seed)  # noqa: S311  (a sample; no secret)
    shuffled = [draw.sample(one, len(one)) for one in by_systems]
    draw.shuffle(shuffled)
    in_turn = (pair for turn in zip(*_padded(shuffled), strict=True) for pair in turn if pair is not None)
    return list(islice(in_turn, budget))


def _shown(pair: Pair, orders: int, seed: int) -> Sequence[Pair]:
    first, second = pair
    if orders == 2:
        return (pair, (second, first))
    text = "\n".join((str(seed), first.item, first.system, second.system))
    swapped = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % 2
    return ((second, first) if swapped else pair,)
