"""`judge criteria examples`: choose examples for a criterion among rated texts, balanced and diverse, and write them.

Levels of the scale get equally many examples, as far as they have rated texts. Within this, each next example is the
text that is farthest from all chosen ones (greedy max-min over the Jaccard distance of words and pairs of words).
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from judge import criteria, text
from judge.commands.human_ratings import check_rated
from judge.config import RunConfig
from judge.core.criterion_entry import SUFFIXES
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import listed, plural
from judge.core.messages import command, option
from judge.core.plugins import unknown_name_message
from judge.core.records import Sample, Scale, seen_digest, whole
from judge.data import samples
from judge.metrics.text_features import ngrams
from judge.stats.calibration import MIN_RATED_ITEMS

_CLOSE = 0.25  # how far a mean rating may be from a label, in levels
_LONG = 2.0  # times the median length
_MOST = 500  # texts per level that are compared


@dataclass(frozen=True, slots=True)
class PickedExamples:
    """The chosen texts with their labels, and notes on what was left out and what is left for validation."""

    picked: tuple[tuple[Sample, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A rated text; the lower its `tier`, the better: raters differ (1), very long (2), or both (3)."""

    sample: Sample
    label: str
    tier: int


def pick_examples(
    path: Path,
    data: Path,
    config: RunConfig,
    count: int = 6,
    *,
    human: str | None = None,
    source: bool = True,
    replace: bool = False,
) -> PickedExamples:
    """Choose `count` examples among rated texts, and write them into the header of a criterion's file.

    Their digests go into the header's `seen`. `human` is the name of the rating (default: the criterion's). The sources
    are written if the criterion shows them and `source` is True. Existing examples are replaced only with `replace`.
    Raises ConfigError, CriterionError or DataError; the file is then unchanged.
    """
    if not 1 <= count <= criteria.MAX_EXAMPLES:
        raise ConfigError(f"--from-ratings {count}: choose 1 to {criteria.MAX_EXAMPLES} examples")
    if path.suffix not in SUFFIXES:
        raise CriterionError(
            f"{path}: examples are written into a file of yours; copy one: judge criteria show {path} > {path}.jinja"
        )
    criterion = criteria.load(path, language=config.language or "en", pairwise=None)
    if criterion.pairwise:
        raise CriterionError(f"{path}: examples are for {command('run')}; this criterion compares two texts")
    rows = samples.load(data, mapping=config.map, systems=config.output_columns, where=config.where)
    rated = rated_texts(rows, human or criterion.name, sheet=False)
    shown = source and criteria.reads(criterion, "source")
    candidates, left_out = _candidates(rated, human or criterion.name, criterion.scale.asked, shown=shown)
    picked, by_label = _choose(candidates, criterion.scale.asked, count, config.seed)
    entries: list[Any] = []
    for candidate in picked:
        label, sample = candidate.label, candidate.sample
        number = label.removeprefix("-").isdecimal() and label == str(int(label))
        entry = {"score": int(label) if number else label, "output": whole(sample.output)}
        entries.append(entry | ({"source": whole(sample.source)} if shown and sample.source else {}))
    seen = criterion.seen | {seen_digest(c.sample.source, c.sample.output) for c in picked}
    lists: dict[str, list[Any]] = {"examples": entries, "seen": sorted(seen)}
    # Raises before the file changes if no template shows examples.
    new = criteria.finalize(dataclasses.replace(criterion, examples=tuple(entries), seen=seen))
    criteria.write_lists(path, lists, tuple(lists) if replace else ("seen",))
    left = [sample for sample in rated if not sample.digests & new.used]
    items = len({sample.item for sample in left})
    notes = [
        *_notes(by_label, left_out, len(picked), count),
        f"Added to each prompt: {sum(_length(c.sample, shown=shown) for c in picked):,} characters.",
        f"Left for validation: {len(left):,} of {plural(len(rated), 'rated text')}, on {plural(items, 'item')}.",
    ]
    if items < MIN_RATED_ITEMS:
        notes.append(f"Too few: validation and calibration need ratings on at least {MIN_RATED_ITEMS} items.")
    return PickedExamples(tuple((c.sample, c.label) for c in picked), tuple(notes))


def _choose(
    candidates: list[_Candidate], scale: Scale, count: int, seed: int
) -> tuple[list[_Candidate], dict[str, list[_Candidate]]]:
    """Return the chosen texts, and all candidates by their labels.

    Levels get numbers of examples that differ by at most one where there are enough texts. If there are fewer examples
    than levels to share them, those are evenly spread over the scale. The levels choose in turn: a text of a lower tier
    comes first, then one of an item that has no example, then the one farthest from all chosen.
    """
    random.Random(seed).shuffle(candidates)  # noqa: S311  (breaks ties; no secret)
    by_label: dict[str, list[_Candidate]] = {label: [] for label in scale.labels}
    for candidate in sorted(candidates, key=lambda candidate: candidate.tier):
        by_label[candidate.label].append(candidate)
    numbers = dict.fromkeys((label for label, group in by_label.items() if group), 0)
    while (left := count - sum(numbers.values())) and (
        open_levels := [label for label, number in numbers.items() if number < len(by_label[label])]
    ):
        last = len(open_levels) - 1
        if left <= last:
            places = (round(place * last / (left - 1)) if left > 1 else last // 2 for place in range(left))
            open_levels = [open_levels[place] for place in places]
        for label in open_levels:
            numbers[label] += 1
    numbers = {label: number for label, number in numbers.items() if number}
    groups = {label: by_label[label][:_MOST] for label in numbers}
    tokens = {id(c): text.tokens(c.sample.output) for group in groups.values() for c in group}
    grams = {key: frozenset[Any]([*words, *ngrams(words, 2)]) for key, words in tokens.items()}
    nearest = dict.fromkeys(grams, 0.0)  # the highest similarity to a chosen text
    picked: list[_Candidate] = []
    items: set[str] = set()
    for turn in range(max(numbers.values())):
        for label in (label for label, number in numbers.items() if turn < number):
            best = min(groups[label], key=lambda c: (c.tier, c.sample.item in items, nearest[id(c)]))
            groups[label].remove(best)
            picked.append(best)
            items.add(best.sample.item)
            for candidate in (c for group in groups.values() for c in group):
                chosen, theirs = grams[id(best)], grams[id(candidate)]
                jaccard = len(chosen & theirs) / max(1, len(chosen | theirs))
                nearest[id(candidate)] = max(nearest[id(candidate)], jaccard)
    return picked, by_label


def rated_texts(rows: Sequence[Sample], rating: str, *, sheet: bool) -> list[Sample]:
    """Return the rated texts; `sheet` is that of `check_rated`. Raises DataError if there are none."""
    check_rated(rows, rating, sheet=sheet)
    if rated := [sample for sample in rows if rating in sample.human]:
        return rated
    known = list(dict.fromkeys(name for sample in rows for name in sample.human))
    raise DataError(f"{unknown_name_message('rating', rating, known)}; name one with {option('human', 'RATING')}")


def _candidates(
    rated: Sequence[Sample], rating: str, scale: Scale, *, shown: bool
) -> tuple[list[_Candidate], Counter[str]]:
    """Return the texts whose rating is a level of the scale, equal texts once, and why how many others are left out."""
    left_out: Counter[str] = Counter()
    equal: dict[str, list[tuple[Sample, str, bool]]] = {}  # with label, and whether raters agree, by digest
    for sample in rated:
        label, problem = _level(sample, rating, scale) if sample.output.strip() else ("", "without a text")
        if problem:
            left_out[problem] += 1
        else:
            value, votes = scale.value(label), (*sample.ratings.get(rating, ()), sample.human[rating])
            level = sample, label, all(vote in (None, value) for vote in votes)
            equal.setdefault(seen_digest(sample.source, sample.output), []).append(level)
    kept = []
    for group in equal.values():
        if len({label for _, label, _ in group}) > 1:
            left_out["equal to texts with another score"] += len(group)
        else:
            kept.append(max(group, key=lambda level: level[2]))
            left_out["equal to another text"] += len(group) - 1
    if not kept:
        reasons = "; ".join(f"{n:,} {reason}" for reason, n in left_out.items())
        ends = f"{scale.labels[0]} to {scale.labels[-1]}"
        raise DataError(
            f"no rating {rating!r} fits a level of the scale {ends} ({reasons}); name another with "
            f"{option('human', 'RATING')}, or change the scale"
        )
    limit = _LONG * median(_length(sample, shown=shown) for sample, _, _ in kept)
    return [
        _Candidate(sample, label, (not agreed) + 2 * (_length(sample, shown=shown) > limit))
        for sample, label, agreed in kept
    ], left_out


def _level(sample: Sample, rating: str, scale: Scale) -> tuple[str, str]:
    """Return the label of a text's rating, or else "" and why there is none.

    A mean is a label if it is close to one, and if raters differ by at most one level. On a scale of two levels they
    have to agree. On scales of more than 11 levels, a tenth of the scale counts as a level.
    """
    value, values = sample.human[rating], sorted(set(scale.values))
    if not scale.low <= value <= scale.high:
        return "", "outside the scale"
    nearest = min(values, key=lambda other: abs(other - value))
    length = scale.high - scale.low
    level = max(length / 10, min(abs(other - nearest) for other in values if other != nearest))
    if abs(value - nearest) > _CLOSE * level:
        return "", "between two levels"
    votes = [vote for vote in sample.ratings.get(rating, ()) if vote is not None] or [value]
    if max(votes) - min(votes) > min(level, length / 2):
        return "", "with raters who disagree"
    return scale.labels[scale.values.index(nearest)], ""


def _length(sample: Sample, *, shown: bool) -> int:
    """Return the characters of a text, with its source if the judge is shown that."""
    return len(sample.output) + (len(sample.source or "") if shown else 0)


def _notes(by_label: Mapping[str, Sequence[_Candidate]], left_out: Counter[str], picked: int, count: int) -> list[str]:
    """Say how many texts each level has, which levels have none, and what was left out."""
    sizes = {label: len(group) for label, group in by_label.items() if group}
    if len(by_label) > criteria.MAX_EXAMPLES:
        notes = [f"{len(sizes)} of the {len(by_label)} levels have rated texts."]
    else:
        notes = [f"Texts per level: {', '.join(f'{label}: {size:,}' for label, size in sizes.items())}."]
        empty = [label for label in by_label if label not in sizes]
        notes += [f"No text is rated {listed(empty)}, so no example shows this."] if empty else []
    if reasons := [f"{n:,} {reason}" for reason, n in left_out.most_common() if n]:
        notes.append(f"Left out: {', '.join(reasons)}.")
    if picked < count:
        notes.append(f"Only {picked} of {count} examples: there are no more such texts.")
    return notes
