"""The ledger against leaks.

A rating that was used to make a criterion's prompt counts in no estimate. A text is known again by
its content (`Sample.digests`). `withhold` leaves used ratings out when rated texts meet their
criteria; `check` refuses those that are left; `notes` counts them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from judge.core.errors import DataError
from judge.core.format import plural, text_name
from judge.core.records import Column, Sample

T = TypeVar("T")
Seen = Mapping[str, Collection[str]]
"""The digests of the texts that were used for a criterion, by the name of its ratings."""


def seen_by(columns: Iterable[Column]) -> dict[str, frozenset[str]]:
    """Return the digests that any of the columns has seen."""
    seen: dict[str, frozenset[str]] = {}
    for column in columns:
        if column.seen:
            criterion = column.criterion or column.name
            seen[criterion] = seen.get(criterion, frozenset()).union(column.seen)
    return seen


def withhold(samples: Iterable[Sample], seen: Seen) -> Iterator[Sample]:
    """Yield the samples without the ratings that were used; `Sample.withheld` has their names."""
    seen = {criterion: digests for criterion, digests in seen.items() if digests}
    for sample in samples:
        used = _used(sample, seen)
        if used:
            yield replace(
                sample,
                human=_without(sample.human, used),
                ratings=_without(sample.ratings, used),
                raters=_without(sample.raters, used),
                withheld=(*sample.withheld, *used),
            )
        else:
            yield sample


def unrated(sample: Sample) -> Sample:
    """Return the sample without ratings, and without the names of those that are withheld.

    A note on withheld ratings of a run without ratings would say that none is left.
    """
    return replace(sample, human={}, ratings={}, raters={}, withheld=())


def _without(values: Mapping[str, T], excluded: Collection[str]) -> dict[str, T]:
    return {name: value for name, value in values.items() if name not in excluded}


def check(samples: Iterable[Sample], seen: Seen) -> None:
    """Raise DataError if a sample has a rating that was used."""
    if not seen:
        return
    used: list[tuple[str, Sample]] = []
    for sample in samples:
        used += [(criterion, sample) for criterion in _used(sample, seen)]
    if used:
        criterion, first_rated = used[0]
        location = first_rated.where or text_name(first_rated.item, first_rated.system)
        texts = plural(len(used), "text")
        raise DataError(
            f"{criterion}: ratings of {texts} used to make the prompt, which "
            f"no estimate may use (the first: {location}). Leave them out of `human`, or let judge "
            "do so: run it on the data again"
        )


def excluded(samples: Iterable[Sample], criterion: str) -> str:
    """Return `6 texts excluded: ...`, or "" if no rating of this name was withheld."""
    n_withheld = sum(criterion in sample.withheld for sample in samples)
    if not n_withheld:
        return ""
    texts = plural(n_withheld, "text")
    return f"{texts} excluded: used to make the prompt"


def notes(samples: Sequence[Sample]) -> list[str]:
    """Return a sentence for each criterion with withheld ratings."""
    withheld: dict[str, None] = {}
    rated: set[str] = set()
    for sample in samples:
        withheld |= dict.fromkeys(sample.withheld)
        rated.update(sample.human)
    sentences: list[str] = []
    for criterion in withheld:
        count = excluded(samples, criterion)
        sentence = f"{criterion}: {count}."
        if criterion not in rated:
            sentence += " No rating is left."
        sentences.append(sentence)
    return sentences


def overlap(
    samples: Sequence[Sample],
    seen: Seen,
    judged_texts: Mapping[str, Collection[tuple[str, str]]] | None = None,
) -> list[str]:
    """Return a sentence for each criterion that judges texts which were used to make its prompt.

    `judged_texts` has the texts (item, system) that each criterion judges; None means all.
    """
    sentences: list[str] = []
    for criterion, digests in seen.items():
        # A sample's digests take a hash of its texts, so they are not computed for nothing.
        if not digests:
            continue
        judged = samples
        if judged_texts is not None:
            keys = judged_texts.get(criterion, ())
            judged = [sample for sample in samples if sample.key in keys]
        n_used = sum(not sample.digests.isdisjoint(digests) for sample in judged)
        if n_used:
            verb = "was" if n_used == 1 else "were"
            sentences.append(
                f"{criterion}: {n_used:,} of the judged texts {verb} used as an example in its "
                "prompt or to write it; the score may only repeat the prompt."
            )
    return sentences


def _used(sample: Sample, seen: Seen) -> tuple[str, ...]:
    """Return the names of the sample's ratings that were used."""
    used: list[str] = []
    for criterion, digests in seen.items():
        is_rated = criterion in sample.human or criterion in sample.ratings
        if is_rated and not sample.digests.isdisjoint(digests):
            used.append(criterion)
    return tuple(used)
