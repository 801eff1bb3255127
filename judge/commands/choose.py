"""`judge.choose`: which judge, prompt or panel agrees best with people, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from judge.commands.public import public_api
from judge.commands.validate import JudgeOfRun, load_rated, rating_notes
from judge.core.errors import ConfigError, DataError
from judge.core.records import Sample
from judge.data.samples import Values
from judge.results.choosing import Candidate, Choice, Choices, Kind
from judge.results.result import Result
from judge.results.validation import check_level
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import Level
from judge.stats.correlation import usual_level
from judge.stats.human_agreement import (
    RatedColumn,
    baselines_without_judge,
    did_you_mean,
    rated_names,
    unknown_criteria,
)
from judge.stats.selection import select
from judge.table import matrix

_MOST_PAIRED = 8
"""With more judges, pairs are not tried: only all of them together."""


@public_api()
def choose(
    result: Result | str | Path,
    *others: Result | str | Path,
    ratings: str | Path | None = None,
    level: str | None = None,
    seed: int = 0,
    n_resamples: int = 1000,
    where: Values | None = None,
) -> Choices:
    """Choose the judge that agrees best with people, by criterion, among the judges of results or of runs in folders.

    Candidates are the judges (models and prompts) of all runs, the mean of every pair of up to eight judges, the mean
    of all, and the baselines of `judge.validate`. Each gets its Spearman with people's ratings on the texts that all
    judges were asked about; a failed judgment counts as the judge's mean. The best one's estimate is corrected for
    having been chosen (`judge.stats.selection`). A cheaper judge is recommended if it is not significantly worse.

    `ratings` is a file with people's ratings; else they are those of the first run. `level` is document (within items),
    item (over all texts) or system (between the systems' means), by default document, or item if items have fewer than
    three texts. `where` selects texts by the values of their columns.

    Raises ConfigError for a folder without a scored run, DataError if too few texts were rated or shared, StorageError.
    """
    checked = None if level is None else check_level(level)
    compared = load_rated((result, *others), where=where, ratings=ratings)
    if compared.runs[0].rankings:
        raise ConfigError("a ranking has no scores to choose by: it compares texts in pairs. Use judge run")
    table = compared.runs[0].table
    samples = [sample for sample in table.samples if sample.human]
    judged = {judge.column.criterion for judge in compared.judges}
    names = rated_names(samples)
    if problem := unknown_criteria(names, sorted(judged), ratings):
        raise DataError(problem)
    baselines = baselines_without_judge(table, samples, measure=True)
    choices, notes = [], []
    for name in names:
        if name not in judged:
            notes.append(f"No judge scored {name}.{did_you_mean([name], judged)}")
            continue
        rated = [sample for sample in samples if name in sample.human]
        entrants = list(_entrants([judge for judge in compared.judges if judge.column.criterion == name]))
        entrants += [_Entrant(column, "baseline", price=0.0) for column in baselines]
        choice = _choose(name, rated, entrants, checked or usual_level(rated), Bootstrap(n_resamples, seed))
        choices.append(replace(choice, excluded=sum(name in sample.withheld for sample in table.samples)))
        for judge in (entrant for entrant in entrants if entrant.kind == "judge"):
            asked = judge.asked(rated)
            if asked and not any(sample.key in judge.column.values for sample in asked):
                notes.append(
                    f"{name}: all {len(asked):,} judgments by {judge.column.name} failed, so it is no candidate."
                )
            elif len(asked) < len(rated):
                texts = f"{len(asked):,} of {len(rated):,} rated texts"
                notes.append(f"{name}: {judge.column.name} was asked about {texts}; only these count.")
    if not any(choice.honest for choice in choices):
        raise DataError("; ".join(f"{choice.criterion}: {choice.lacking}" for choice in choices))
    notes += rating_notes(compared.runs, names, compared.banners)
    return Choices(
        f"Agreement with people: {compared.title}", tuple(choices), (*compared.banners, *compared.notes, *notes)
    )


@dataclass(frozen=True, slots=True)
class _Entrant:
    """A candidate before the choice: its column, what it is made of and what it costs."""

    column: RatedColumn
    kind: Kind
    members: tuple[str, ...] = ()
    price: float | None = None
    seconds: float | None = None

    def asked(self, samples: Sequence[Sample]) -> list[Sample]:
        return [s for s in samples if s.key in self.column.values or s.key in self.column.failed]


def _entrants(judges: Sequence[JudgeOfRun]) -> Iterator[_Entrant]:
    """Yield the judges of a criterion, then the means of several; a run's own mean panel is among these."""
    single = []
    for judge in judges:
        scale = judge.column.scale
        of_several = (
            scale is not None
            and not scale.judge
            and any(c.judge and c.criterion == scale.criterion for c in judge.run.table.columns)
        )
        if not of_several:
            price, seconds = _effort(judge)
            single.append(_Entrant(judge.column, "judge", (judge.column.name,), price, seconds))
        elif scale is not None and scale.panel != "mean":
            yield _Entrant(judge.column, "panel", (judge.column.name,))
    yield from single
    sizes = {2, len(single)} if len(single) <= _MOST_PAIRED else {len(single)}
    for members in (members for size in sorted(sizes) if size > 1 for members in combinations(single, size)):
        if len({(m.column.scale.low, m.column.scale.high) for m in members if m.column.scale}) != 1:
            continue
        columns = [member.column for member in members]
        common = set.intersection(*(set(column.values) for column in columns))
        names = tuple(column.name for column in columns)
        mean = replace(  # as in a run's panel, it fails if one of the judges does
            columns[0],
            name=" + ".join(names) if len(names) == 2 else f"all {len(names)} judges",
            signature=f"mean of {len(names)} judges: {'; '.join(column.signature for column in columns)}",
            values={key: fmean(column.values[key] for column in columns) for key in common},
            failed=frozenset().union(*(column.failed for column in columns)),
        )
        prices = [member.price for member in members if member.price is not None]
        times = [member.seconds for member in members if member.seconds is not None]
        yield _Entrant(
            mean,
            "panel",
            names,
            sum(prices) if len(prices) == len(members) else None,
            max(times) if len(times) == len(members) else None,
        )


def _effort(judge: JudgeOfRun) -> tuple[float | None, float | None]:
    """Return the price of 1,000 judgments in US dollars, and the mean seconds of a request, as the run recorded them.

    Judgments that the cache answered, or an equal request, cost nothing and do not count.
    """
    infos: Mapping[str, Any] = judge.run.info.get("judges") or {}
    name = judge.column.scale.judge if judge.column.scale else ""
    info = infos.get(name) if name else next(iter(infos.values()), None) if len(infos) == 1 else None
    if not info:
        return None, None
    table = judge.run.table
    columns = {c.name for c in table.columns if c.kind == "criterion" and c.judge == name}
    judged = sum(len(table.column_scores(c)) for c in columns) + sum(f.column in columns for f in table.failures)
    requests, price = info.get("requests") or {}, (info.get("cost") or {}).get("usd")
    paid = judged - requests.get("cached", 0) - requests.get("shared", 0)
    return (1000 * price / paid if price is not None and paid > 0 else None), info.get("seconds")


def _choose(
    name: str, rated: Sequence[Sample], entrants: Sequence[_Entrant], level: Level, bootstrap: Bootstrap
) -> Choice:
    used = [entrant for entrant in entrants if any(s.key in entrant.column.values for s in rated)]
    judges = [entrant for entrant in used if entrant.kind != "baseline"]
    if not judges:
        return Choice(name, level, 0, lacking="no judge has a score of a rated text")
    asked = set.intersection(*({s.key for s in judge.asked(rated)} for judge in judges))
    texts = [sample for sample in rated if sample.key in asked]
    try:
        if not texts:
            raise DataError("no rated text was given to all judges")
        values = np.stack([matrix(texts, entrant.column.values) for entrant in used])
        ratings = matrix(texts, {sample.key: sample.human[name] for sample in texts})
        selection = select(values, ratings, level, failed=np.isnan(values) & ~np.isnan(ratings), bootstrap=bootstrap)
    except DataError as error:
        return Choice(name, level, len(texts), lacking=str(error))
    candidates = [
        Candidate(
            entrant.column.name, entrant.kind, entrant.members, selection.values[place], selection.shares[place],
            selection.differences[place], entrant.price, entrant.seconds, len(texts),
            sum(sample.key not in entrant.column.values for sample in texts),
        )
        for place, entrant in enumerate(used)
    ]  # fmt: skip
    # The cheapest that is not significantly worse: by price, or as part of the chosen panel.
    recommended = best = candidates[selection.chosen]
    for candidate in (candidates[place] for place in selection.not_worse if best.kind != "baseline"):
        if candidate.price is None or recommended.price is None:
            cheaper = set(candidate.members) < set(recommended.members)
        else:
            cheaper = candidate.price < recommended.price
        if candidate.kind != "baseline" and cheaper:
            recommended = candidate
    return Choice(
        name,
        level,
        len(texts),
        selection.items,
        tuple(sorted(candidates, key=lambda c: -2.0 if c.value is None else c.value, reverse=True)),
        best.name,
        selection.honest,
        selection.naive,
        recommended.name,
        "" if selection.runner_up is None else candidates[selection.runner_up].name,
        selection.more_items,
    )
