"""The scores of a result that a case is about, and what is said where there are none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import PurePath

from judge.core.records import Column, Failure, Score
from judge.report.format import count, line
from judge.results.result import Result
from judge.suite.draws import Parts, Reading, counts, lead, reading, shares

Text = tuple[str, str]
"""An item and a system."""
Row = Score | Failure
_NAMED = 3  # texts that are named where several lack something


class NoScore(Exception):
    """A case that cannot be decided: why, and what the judge said."""

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message, self.detail = message, detail


def named(criterion: str) -> str:
    """The name of a criterion that a file names or gives the path of."""
    return PurePath(criterion).stem


def columns(result: Result) -> dict[str, Column]:
    """By criterion the column that decides: the judge's, or the mean of a panel."""
    kept = [one for one in result.table.columns if one.kind == "criterion" and not one.judge]
    return {one.criterion or one.name: one for one in kept}


@dataclass(frozen=True)
class Scored:
    """One criterion's rows: the deciding `column`, and those of its judges where they are a panel."""

    result: Result
    column: Column
    judges: Sequence[Column]
    rows: dict[tuple[str, str, str], dict[str, Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, result: Result | None, criterion: str, items: Collection[str]) -> Scored:
        """The rows of these items. Raises NoScore for a criterion that was not judged."""
        name = named(criterion)
        column = columns(result).get(name) if result else None
        if result is None or column is None:
            raise NoScore(f"{line(name)} was not judged in this run")
        judges = [one for one in result.table.columns if one.judge and one.criterion == name]
        found = cls(result, column, judges)
        names = {one.name for one in (column, *judges)}
        wanted = frozenset(items)
        rows: Iterable[Row] = (row for name in names for row in result.table.of(name))
        for every in (rows, (row for row in result.table.failures if row.column in names)):
            for row in every:
                if row.item in wanted:
                    found.rows.setdefault((row.item, row.system, row.rival), {})[row.column] = row
        return found

    def score(self, item: str, system: str, rival: str = "") -> Score | None:
        """The deciding score, None where there is none."""
        row = self.rows.get((item, system, rival), {}).get(self.column.name)
        return row if isinstance(row, Score) else None

    def each(self, item: str, system: str, rival: str = "") -> list[tuple[Score, Column]]:
        """The scores that the deciding one was made of, with their columns: a panel's judges', or itself."""
        score = self.score(item, system, rival)
        by_column = self.rows.get((item, system, rival), {})
        judged = [(row, one) for one in self.judges if isinstance(row := by_column.get(one.name), Score)]
        if score is None or (judged and len(judged) == len(self.judges)):
            return judged if score else []
        return [(score, self.column)]

    def parts(self, item: str, system: str, rival: str = "") -> Parts:
        """The score as readings, a panel's mean as its judges'. Nothing where there is no score."""
        found = self.each(item, system, rival)
        return [(1 / len(found), reading(one, counts(of, self.result.info))) for one, of in found]

    def difference(self, item: str, better: str, worse: str) -> Parts:
        """The score of `better` less that of `worse`, turned where the lower end is the good one; or nothing."""
        sides = [(1, self.parts(item, better)), (-1, self.parts(item, worse))]
        sign = -1 if self.column.better == "lower" else 1
        return [(sign * side * c, one) for side, parts in sides for c, one in parts] if all(p for _, p in sides) else []

    def preference(self, item: str, better: str, worse: str) -> Parts:
        """How far `better` is preferred (0–1), the mean over both orders; nothing where an order lacks its answer."""
        first, second = self.parts(item, better, worse), self.parts(item, worse, better)
        if not (first and second):
            return []
        both = [(sign * c / 2, one) for sign, parts in ((1, first), (-1, second)) for c, one in parts]
        return [*both, (0.5, Reading(1.0, 1.0, 1.0))]

    def shares(self, item: str, system: str) -> dict[str, float]:
        """The probability of each label in a single reply, the mean over a panel's judges; in the scale's order."""
        found = [shares(score) for score, _ in self.each(item, system)]
        order = [label for label in self.column.labels if any(label in one for one in found)]
        return {label: fsum(one.get(label, 0.0) for one in found) / len(found) for label in order}

    def leads(self, item: str, system: str, label: str, rival: str) -> Parts:
        """By how much a label is likelier than another."""
        found = self.each(item, system)
        return [(1 / len(found), lead(score, label, rival)) for score, _ in found]

    def lacking(self, rows: Iterable[tuple[str, str, str]]) -> tuple[str, str]:
        """What is said of rows without a score, and the first one's message and reply. Raises NoScore for unasked ones.

        A text that nobody asked about is no failed judgment, and no limit on these covers it.
        """
        rows = list(rows)
        unasked = [row for row in rows if self.column.name not in self.rows.get(row, {})]
        if unasked:
            what = ", ".join(f"{line(item, 60)} ({line(system, 60)})" for item, system, _ in unasked[:_NAMED])
            more = f" and {len(unasked) - _NAMED:,} more" if len(unasked) > _NAMED else ""
            raise NoScore(f"not judged: {what}{more}")
        failures = [found for row in rows for found in self._failures(row)]
        first = failures[0] if failures else None
        return f"{count(len(rows), 'text')} without a score", told(first) if first else ""

    def _failures(self, row: tuple[str, str, str]) -> Iterator[Failure]:
        """Those of a panel's judges before that of their mean, which follows from them."""
        by_column = self.rows.get(row, {})
        for column in (*self.judges, self.column):
            if isinstance(found := by_column.get(column.name), Failure):
                yield found


def told(failure: Failure) -> str:
    """A failure's message, and the reply where there was one."""
    said = f"{failure.error}: {failure.message}"
    return f"{said}\nreply: {failure.raw}" if failure.raw and failure.raw not in failure.message else said
