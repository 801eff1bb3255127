"""People's ratings that are not on a criterion's scale, and those of a name that nobody asked about."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judge.core.messages import option
from judge.core.records import Sample

_NAMED = 3
_STRAY = 0.1  # of the ratings; where more are outside, they are of another scale

Ends = tuple[float, float]


def strangers(samples: Sequence[Sample], scales: Mapping[str, Ends]) -> Iterator[str]:
    """A sentence on each criterion of which single ratings are outside its scale (`low`, `high`), with their rows.

    Of annotators each rating counts. Where more than a tenth and more than three are outside, people have rated on
    another scale, of which nothing is said here.
    """
    for name, (low, high) in scales.items():
        given = [(sample, vote) for sample in samples for vote in _votes(sample, name)]
        outside = [(sample, vote) for sample, vote in given if not low <= vote <= high]
        if outside and len(outside) <= max(_NAMED, _STRAY * len(given)):
            rows = ", ".join(f"{vote:g} {_place(sample)}" for sample, vote in outside[:_NAMED])
            more = f" and {len(outside) - _NAMED:,} more" if len(outside) > _NAMED else ""
            yield f"Ratings of {name} outside its scale, {low:g} to {high:g}: {rows}{more}."


def unmatched(samples: Iterable[Sample], criteria: Sequence[str]) -> str:
    """That people's ratings are of none of these criteria, with the nearest names; nothing where any is."""
    names = list(dict.fromkeys(name for sample in samples for name in sample.human))
    if not names or not criteria or set(names) & set(criteria):
        return ""
    near = {name: close[0] for name in names if (close := difflib.get_close_matches(name, criteria, n=1))}
    hint = "".join(f" Did you mean {meant} for {name}?" for name, meant in near.items())
    example = option("map", {f"human.{criteria[0]}": "COLUMN"})
    return (
        f"People's ratings of {', '.join(names)} go with no criterion asked ({', '.join(criteria)}), and no judge is "
        f"held against them.{hint} {example} names the ratings of a criterion."
    )


def _votes(sample: Sample, name: str) -> Iterator[float]:
    votes = sample.ratings.get(name) or (sample.human.get(name),)
    yield from (vote for vote in votes if vote is not None)


def _place(sample: Sample) -> str:
    return f"at {sample.where}" if sample.where else f"(item {sample.item}, system {sample.system})"
