"""`--retry-failed`: the scores of an earlier run stand, and only what it lacks is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from judge.commands.preparation import Prepared
from judge.core.errors import ConfigError, StorageError
from judge.core.messages import option
from judge.core.records import IDENTICAL, Column, Sample, Score, whole
from judge.execution.pending import Judgment
from judge.execution.progress import Progress
from judge.results.result import Result, load
from judge.table import JOURNAL, RUN

_OPTION = "retry_failed"


def earlier_run(prepared: Prepared) -> Result:
    """The run in the plan's folder. Raises ConfigError where there is none, StorageError where it cannot be read."""
    out = prepared.plan.out
    if out is None:
        raise ConfigError(f"{option(_OPTION)}: name the folder of the run to go on with: {option('out', 'DIR')}")
    if not any((out / name).exists() for name in (RUN, JOURNAL)):
        raise ConfigError(
            f"{option(_OPTION)}: {out} holds no run; {option('out')} names the folder of the one to go on with"
        )
    if not (prepared.judges and prepared.criteria):
        raise ConfigError(f"{option(_OPTION)}: this run asks no judge, so there is nothing to ask again")
    return load(out)


def taken_over(prepared: Prepared, earlier: Result, columns: Sequence[Column]) -> list[Score]:
    """The judges' scores of an earlier run. Raises ConfigError where it is not one of the same texts and `columns`."""
    where = str(prepared.plan.out)
    _check_columns(earlier.table.columns, columns, where)
    _check_texts(earlier.table.samples, prepared.samples, where)
    asked = {one.name for one in columns if one.judge or len(prepared.judges) == 1}
    kept = [s for s in earlier.table.scores if s.column in asked and s.provenance.method != IDENTICAL]
    gone = sum(failure.column in asked for failure in earlier.failures)
    prepared.notes.append(
        f"{len(kept):,} scores are those of an earlier run in this folder; its {gone:,} failed judgments were asked "
        "again. Requests, tokens and cost are of the last run alone."
    )
    return kept


def as_they_were(earlier: Result, progress: Progress) -> None:
    """Have the counts know what an earlier run found that servers would not do: it is in the signatures."""
    told = earlier.info.get("judges") or {}
    for name, counts in progress.judges.items():
        counts.unmet.update(dict.fromkeys(told.get(name, {}).get("unmet") or (), 0))


def left(judgments: Iterable[Judgment], kept: Iterable[Score], suffix: str) -> list[Judgment]:
    """The judgments of one judge, in whose columns' names `suffix` is, that have no score yet."""
    have = {(score.item, score.system, score.rival, score.column) for score in kept}
    return [
        one
        for one in judgments
        if (one.sample.item, one.sample.system, one.rival.system if one.rival else "", one.criterion.name + suffix)
        not in have
    ]


def _check_columns(earlier: Iterable[Column], now: Iterable[Column], where: str) -> None:
    signatures = {column.name: column.signature for column in now}
    for column in earlier:
        if column.kind != "criterion":
            continue
        if not column.signature:
            raise StorageError(f"{_OPTION}: of the run in {where} it is not known how it was asked; run without")
        if column.name not in signatures:
            raise ConfigError(f"{_OPTION}: the run in {where} has a column {column.name!r}, and this one would not")
        if signatures[column.name] != column.signature:
            raise ConfigError(
                f"{_OPTION}: {column.name} was asked in another way in {where}: "
                f"{_differences(column.signature, signatures[column.name])}. Name another folder, or run without"
            )


def _differences(was: str, now: str) -> str:
    before, after = was.split("|"), now.split("|")
    gone = [part for part in before if part not in after]
    new = [part for part in after if part not in before]
    return f"{', '.join(gone) or 'nothing'} then, {', '.join(new) or 'nothing'} now"


def _check_texts(earlier: Sequence[Sample], now: Sequence[Sample], where: str) -> None:
    texts: Mapping[tuple[str, str], Sample] = {(whole(one.item), whole(one.system)): one for one in now}
    for one in earlier:
        there = texts.get((one.item, one.system))
        name = f"item {one.item}, system {one.system}"
        if there is None:
            raise ConfigError(f"{_OPTION}: the run in {where} is of other data: {name} is not in this run's")
        if _text(one) != _text(there):
            raise ConfigError(f"{_OPTION}: the run in {where} is of other data: the text of {name} has changed")


def _text(sample: Sample) -> tuple[str | None, ...]:
    source = None if sample.source is None else whole(sample.source)
    return (whole(sample.output), source, *map(whole, sample.references))
