"""The means as every format shows them, laid out once: columns in order, cells with their marks, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from judge.records import Column, Estimate
from judge.report.about import About, about
from judge.report.panel import Agreed, Group, agreement, groups
from judge.report.result import Result
from judge.report.words import count, decimals, number, span


@dataclass(frozen=True, slots=True)
class Cell:
    """One system in one column. `best` marks the highest mean shown, or the lowest of a column whose good end that is,
    ties included, where there is a choice and all systems were scored on the same items.

    `mean` is "–" where nothing was scored; `total` counts the system's texts, `n` the scored ones.
    """

    mean: str
    interval: str
    n: int
    total: int
    failed: int
    best: bool
    estimate: Estimate | None

    @property
    def coverage(self) -> str:
        """`48/50` where not every text was scored, else nothing."""
        return "" if self.n == self.total else f"{self.n}/{self.total}"


@dataclass(frozen=True, slots=True)
class View:
    """A result laid out. `columns` has the criteria first; `places` the decimals of each column.

    `of_texts` are the columns that have a value for each text.
    """

    about: About
    systems: tuple[str, ...]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    places: Mapping[str, int]
    cells: Mapping[tuple[str, str], Cell]
    caption: str
    agreement: tuple[Agreed, ...]
    of_texts: tuple[Column, ...]


def view(result: Result) -> View:
    """Lay a result out for showing."""
    found = groups(result)
    columns = tuple(column for group in found for column in group.columns)
    places = {c.name: _places(result, c) for c in columns}
    cells = _cells(result, places)
    told = about(result)
    return View(
        about=replace(told, banners=(*told.banners, *_lacking(result, found))),
        systems=tuple(texts(result)),
        columns=columns,
        groups=found,
        places=places,
        cells=cells,
        caption=_caption(result, cells, found),
        agreement=agreement(result),
        of_texts=tuple(column for column in columns if column.name not in result.table.wholes),
    )


def texts(result: Result) -> Counter[str]:
    """How many texts each system has, also those of data too large to be held."""
    streamed = result.info.get("streamed")
    return Counter(streamed["texts"]) if streamed else Counter(s.system for s in result.table.samples)


def failures(result: Result) -> Counter[tuple[str, str]]:
    """How many failures there are by system and column."""
    found = Counter[tuple[str, str]]()
    if streamed := result.info.get("streamed"):
        for kind in streamed["failures"]:
            for system, column, n in kind["counts"]:
                found[system, column] += n
        return found
    return Counter((f.system, f.column) for f in result.table.failures)


def _places(result: Result, column: Column) -> int:
    if column.low is not None and column.high is not None:
        return decimals([column.low, column.high])
    return decimals([e.value for (_, name), e in result.estimates.items() if name == column.name])


def _cells(result: Result, places: Mapping[str, int]) -> dict[tuple[str, str], Cell]:
    total = texts(result)
    failed = failures(result)
    shown = {key: number(e.value, places[key[1]]) for key, e in result.estimates.items() if key[1] in places}
    ends = {c.name: {"higher": 1, "lower": -1, "": 0}[c.better] for c in result.table.columns}
    top: dict[str, tuple[float, str]] = {}
    comparable = {column for column in places if ends[column] and _same_items(result, column)}
    rivals = Counter(column for _, column in shown if column in comparable)
    for (_, column), text in shown.items():
        top[column] = max(top.get(column, (float("-inf"), "")), (ends[column] * float(text), text))

    def cell(system: str, column: str) -> Cell:
        estimate = result.estimates.get((system, column))
        if estimate is None:
            return Cell("–", "", 0, total[system], failed[system, column], False, None)
        mean, interval = shown[system, column], span(estimate.low, estimate.high, places[column])
        best = rivals[column] > 1 and mean == top[column][1]
        return Cell(mean, interval, estimate.n, total[system], failed[system, column], best, estimate)

    return {(system, column): cell(system, column) for column in places for system in total}


def _same_items(result: Result, column: str) -> bool:
    """Whether every system that has scores in a column has them for the same items: only then is one the best.

    Of values of all texts together, whether they are of equally many.
    """
    if result.info.get("streamed"):  # of which not every item is at hand
        counts = texts(result)
        found = {s: e.n for (s, name), e in result.estimates.items() if name == column}
        return len(set(found.values())) == 1 and all(counts[system] == n for system, n in found.items())
    items: dict[str, set[str | int]] = {}
    for score in result.table.of(column):
        items.setdefault(score.system, set()).add(score.item or score.provenance.n)
    return all(scored == next(iter(items.values())) for scored in items.values())


def _caption(result: Result, cells: Mapping[tuple[str, str], Cell], found: tuple[Group, ...]) -> str:
    of_items = [e for (_, name), e in result.estimates.items() if name not in result.table.wholes]
    methods = Counter(e.method for e in of_items if e.low is not None and e.low != e.high)
    most = max((cell.total for cell in cells.values()), default=0)
    parts = [f"Mean over {count(most, 'item')}"]
    if methods:
        parts.append(f"[low, high]: {methods.most_common(1)[0][0]}")
    if others := [f"{name} for {n} of {len(of_items)}" for name, n in methods.most_common()[1:]]:
        parts.append("; ".join(others))
    parts += _together(result)
    if best := {column for (_, column), cell in cells.items() if cell.best}:
        lowest = [c.name for c in result.table.columns if c.better == "lower" and c.name in best]
        parts.append("* highest of its column" + (f", of {', '.join(lowest)} the lowest" if lowest else ""))
    if not all(_same_items(result, column.name) for column in result.table.columns):
        parts.append("No mark where systems were scored on different items")
    if any(cell.coverage for cell in cells.values()):
        parts.append("a/b: scored a of b texts")
    if any(group.judged for group in found):
        parts.append("A panel's mean is over the texts that all of its judges scored")
    return ". ".join(parts) + "."


def _together(result: Result) -> Iterator[str]:
    """What there is to say of columns with values of all texts together: of how many, and whose interval."""
    columns = [column.name for column in result.table.columns if column.name in result.table.wholes]
    if not columns:
        return
    sizes = {e.n for (_, name), e in result.estimates.items() if name in columns}
    of = f"all {sizes.pop():,} texts of a system" if len(sizes) == 1 else "all texts of a system"
    yield f"Values of {of} together: {', '.join(columns)}"
    for name in columns:
        how = {e.method for (_, column), e in result.estimates.items() if column == name and e.low is not None}
        if how:
            yield f"{name}: {', '.join(sorted(how))}"


def _lacking(result: Result, columns: tuple[Group, ...]) -> tuple[str, ...]:
    """What is missing in the table of means. A panel's own come from its judges' scores, and are not asked for."""
    means = {group.name for group in columns if group.judged}
    found = []
    if len(set(texts(result).values())) > 1:
        found.append("Not every system has a text for every item: means over different items do not compare well.")
    apart = means | result.table.wholes
    missing = len(result.table.samples) * sum(column.name not in apart for column in result.table.columns)
    missing -= sum(row.column not in apart for row in result.table.rows())
    if missing > 0:
        found.append(f"{count(missing, 'value')} of the table missing: not asked for, or without an answer yet.")
    return tuple(found)
