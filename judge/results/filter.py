"""A finished run's rows of some of its texts, with all that they support made anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Sample, Score
from judge.data import samples
from judge.report.format import count
from judge.results.result import Result
from judge.stats import human_agreement
from judge.stats.analyze import conclude
from judge.stats.looks import looks


def part(result: Result, wanted: samples.Values) -> Result:
    """The result of the texts that are wanted alone; nothing is asked or measured again, but for floors.

    Values of all a system's texts together stand only for systems that keep all of theirs. Raises ConfigError for a run
    that holds no texts, DataError for a column or a value that no text has.
    """
    if not wanted:
        raise ConfigError('name a column and a value, such as where(lang="ja")')
    if "streamed" in result.info:
        raise ConfigError("this run measured its data as they were read and holds some of them: measure with --where")
    table, plan = result.table, result.info.get("plan") or {}
    kept = samples.only(table.samples, wanted, plan.get("map") or {})
    rows = list(_rows(result, kept))
    columns = _columns(result, rows)
    known = {column.name for column in columns}
    orders = plan.get("orders") if result.rankings else None
    judged = orders is None and any(column.kind == "criterion" and column.weight for column in columns)
    seed = int(plan.get("seed") or 0)
    found = conclude(
        kept,
        columns,
        [row for row in rows if row.column in known],
        orders=orders,
        seed=seed,
        looks=looks(kept) if judged and result.drivers else None,
        people=bool(result.calibrated),
    )
    return Result.of(
        found,
        _told(result, kept, wanted, [column.name for column in table.columns if column.name not in known]),
        human_agreement.of_run(found.table, str(result.info.get("model") or ""), seed) if judged else (),
    )


def _rows(result: Result, kept: list[Sample]) -> Iterator[Score | Failure]:
    """The rows of these texts, and those of whole systems; a panel's means are made anew."""
    texts = {(sample.item, sample.system) for sample in kept}
    cut = {sample.system for sample in result.table.samples if (sample.item, sample.system) not in texts}
    systems = {system for _, system in texts} - cut
    for row in result.table.rows():
        sides = [name for name in (row.system, row.rival) if name]
        if not row.item:
            wanted = all(name in systems for name in sides)
        else:
            wanted = all((row.item, name) in texts for name in sides)
        if wanted and not _of_panel(row, result):
            yield row


def _of_panel(row: Score | Failure, result: Result) -> bool:
    """Whether this row is a panel's, which follows from those of its judges."""
    return any(row.column == column.criterion for column in result.table.columns if column.judge)


def _columns(result: Result, rows: list[Score | Failure]) -> list[Column]:
    """The columns that still have rows, and a panel's."""
    there = {row.column for row in rows}
    panels = {column.criterion for column in result.table.columns if column.judge and column.name in there}
    return [column for column in result.table.columns if column.name in there | panels]


def _told(result: Result, kept: list[Sample], wanted: samples.Values, gone: list[str]) -> dict[str, Any]:
    """How the run went, and which of its texts are shown."""
    all_of = len(result.table.samples)
    note = f"Shown are the texts with {samples.said(wanted)} alone, {len(kept):,} of {count(all_of, 'text')}: "
    note += "all means, intervals and tests are of these; requests, tokens, cost and time are of the whole run."
    notes = [note]
    if gone:
        notes.append(f"Left out, as measured over all texts of a system together: {', '.join(gone)}.")
    info: Mapping[str, Any] = result.info
    where = {name: [*values] if isinstance(values, list | tuple) else [values] for name, values in wanted.items()}
    return {**info, "notes": [*notes, *info.get("notes", ())], "where": {**info.get("where", {}), **where}}
