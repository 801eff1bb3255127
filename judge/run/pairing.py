"""Choose the pairs of texts that a ranking compares."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest

from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import IDENTICAL, Criterion, Provenance, Sample, Score
from judge.data.conversations import MESSAGES
from judge.execution.judgments import Judgment

Pair = tuple[Sample, Sample]
_TIE = Provenance(
    IDENTICAL, n=0, note="the two texts are equal: a tie, and no judge was asked"
)


@dataclass(frozen=True, slots=True)
class PairPlan:
    """The pairs of texts of a ranking in the order they are shown: two orders are two entries.

    Judges compare the pairs `compared`; `equal` texts tie without a judge. `possible` counts all
    pairs, `chosen` the sampled ones, and `alone` the pairs of systems and items with only one text
    or none.
    """

    compared: tuple[Pair, ...]
    equal: tuple[Pair, ...]
    possible: int
    chosen: int
    alone: int

    def judgments(self, criteria: Sequence[Criterion]) -> list[Judgment]:
        """Return the judgments of one judge: each compared pair on each criterion."""
        all_judgments: list[Judgment] = []
        for first_sample, second_sample in self.compared:
            all_judgments += [
                Judgment(first_sample, criterion, second_sample)
                for criterion in criteria
            ]
        return all_judgments

    def ties(self, columns: Sequence[str]) -> Iterator[Score]:
        """Yield the rows of equal texts."""
        for first_sample, second_sample in self.equal:
            for column in columns:
                yield Score(
                    item=first_sample.item,
                    system=first_sample.system,
                    column=column,
                    value=0.5,
                    provenance=_TIE,
                    opponent=second_sample.system,
                )

    def notes(self) -> list[str]:
        """Return what reports say about pairs that are not compared."""
        notes = []
        if self.chosen < self.possible:
            sampled = f"{self.chosen:,} of {self.possible:,}"
            notes.append(f"A sample: {sampled} pairs of texts are compared.")
        if self.alone:
            notes.append(
                f"{self.alone:,} pairs of systems and items have only one text or none, and are "
                "not compared."
            )
        return notes


def choose_pairs(
    samples: Sequence[Sample],
    *,
    orders: int,
    budget: int | None,
    seed: int,
    against: str | None = None,
) -> PairPlan:
    """Pair the texts of every two systems, or of each and `against`, for each item.

    With a `budget`, sample that many pairs. A sample takes the pairs of systems in turn, each time
    with an item drawn by `seed`, so that all are compared about equally often. With one order, a
    hash of seed, item and systems decides which text is shown first. Raises ConfigError if nothing
    can be compared.
    """
    systems = list(dict.fromkeys(sample.system for sample in samples))
    items = list(dict.fromkeys(sample.item for sample in samples))
    texts = {sample.key: sample for sample in samples}
    pairs_by_systems: list[list[Pair]] = []
    for first_system, second_system in combinations(systems, 2):
        if against and against not in (first_system, second_system):
            continue
        pairs = _pairs_of_systems(texts, items, first_system, second_system)
        pairs_by_systems.append(pairs)
    all_pairs = _in_turn(pairs_by_systems)
    if not all_pairs:
        first_names = ", ".join(systems[:10])
        map_option = option("map", {"system": "COLUMN"})
        systems_option = option("systems", ["A", "B"])
        raise ConfigError(
            f"nothing to compare: no item has texts of two systems (systems: {first_names}); name "
            f"the column of the systems with {map_option}, or those of their texts with "
            f"{systems_option}"
        )
    chosen = all_pairs
    if budget is not None and budget < len(all_pairs):
        chosen = _sampled(pairs_by_systems, budget, seed)
    compared: list[Pair] = []
    equal: list[Pair] = []
    for first_sample, second_sample in chosen:
        shown_pairs = [(first_sample, second_sample), (second_sample, first_sample)]
        if orders == 1:
            shown_pairs = [_in_one_order(first_sample, second_sample, seed)]
        if _are_equal(first_sample, second_sample):
            equal += shown_pairs
        else:
            compared += shown_pairs
    n_possible = len(pairs_by_systems) * len(items)
    return PairPlan(
        compared=tuple(compared),
        equal=tuple(equal),
        possible=len(all_pairs),
        chosen=len(chosen),
        alone=n_possible - len(all_pairs),
    )


def _pairs_of_systems(
    texts: Mapping[tuple[str, str], Sample],
    items: Sequence[str],
    first_system: str,
    second_system: str,
) -> list[Pair]:
    """Return the two systems' texts of every item that has both."""
    pairs: list[Pair] = []
    for item in items:
        first_text = texts.get((item, first_system))
        second_text = texts.get((item, second_system))
        if first_text is not None and second_text is not None:
            pairs.append((first_text, second_text))
    return pairs


def _sampled(
    pairs_by_systems: Sequence[Sequence[Pair]],
    budget: int,
    seed: int,
) -> list[Pair]:
    """Draw this many pairs, from every two systems in turn."""
    rng = random.Random(seed)  # noqa: S311  (a sample; no secret)
    shuffled = [rng.sample(pairs, len(pairs)) for pairs in pairs_by_systems]
    # Else the first systems would get the pairs that the last turn has left over.
    rng.shuffle(shuffled)
    return _in_turn(shuffled)[:budget]


def _are_equal(sample: Sample, opponent: Sample) -> bool:
    """Return whether two texts are equal, and the messages before them."""
    messages = sample.extra.get(MESSAGES)
    if sample.output != opponent.output:
        return False
    return bool(messages == opponent.extra.get(MESSAGES))


def _in_one_order(first_sample: Sample, second_sample: Sample, seed: int) -> Pair:
    """Return a pair in the order that a hash of seed, item and systems decides."""
    names = (str(seed), first_sample.item, first_sample.system, second_sample.system)
    description = "\n".join(names)
    # JSON may hold half of a surrogate pair, which UTF-8 alone refuses.
    digest = hashlib.sha256(description.encode("utf-8", "surrogatepass")).digest()
    is_swapped = digest[0] % 2 == 1
    if is_swapped:
        return second_sample, first_sample
    return first_sample, second_sample


def _in_turn(lists: Sequence[Sequence[Pair]]) -> list[Pair]:
    """Take one pair of each list, then the next ones."""
    pairs: list[Pair] = []
    for turn in zip_longest(*lists):
        pairs += [pair for pair in turn if pair is not None]
    return pairs
