"""The means as every format shows them, laid out once: columns in order, cells with their marks, agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from judge.core.records import Column, Estimate
from judge.report.format import count, line, number, span
from judge.report.views.ordering import compared, laid, lead, places
from judge.report.views.panel import Agreed, Group, agreement
from judge.report.views.provenance import About, about
from judge.report.views.verdict import verdict
from judge.results.result import Result
from judge.stats.system_differences import Rank

_NAME, _NAMED = 60, 4  # characters of a column's name, and how many are named


@dataclass(frozen=True, slots=True)
class Cell:
    """One system in one column. `best` marks the one that is told apart from all others, `same` each of several that
    are not told apart from the first; where nothing was tested, nothing is marked.

    `mean` is "–" where nothing was scored; `total` counts the system's texts, `n` the scored ones.
    """

    mean: str
    interval: str
    n: int
    total: int
    failed: int
    best: bool
    estimate: Estimate | None
    same: bool = False

    @property
    def mark(self) -> str:
        """`*`, `≈` or nothing."""
        return "*" if self.best else "≈" if self.same else ""

    @property
    def coverage(self) -> str:
        """`48/50` where not every text was scored, else nothing."""
        return "" if self.n == self.total else f"{self.n}/{self.total}"


@dataclass(frozen=True, slots=True)
class Standing:
    """A system's place in the order of the page, and the places that the tests leave it, `1–3`."""

    rank: int
    interval: str


@dataclass(frozen=True, slots=True)
class View:
    """A result laid out. The overall score comes first, then criteria, then metrics; `places` are their decimals.

    `systems` are the best first by the column `lead`, of which they have `ranks`, then those without a value; where
    nothing was compared, `lead` is "" and they are in the table's order. `of_texts` are the columns of the table that
    have a value for each text.
    """

    about: About
    verdict: str
    lead: str
    ranks: Mapping[str, Standing]
    systems: tuple[str, ...]
    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    places: Mapping[str, int]
    cells: Mapping[tuple[str, str], Cell]
    caption: str
    agreement: tuple[Agreed, ...]
    of_texts: tuple[Column, ...]

    @property
    def ranked(self) -> str:
        """What the ranks are."""
        return f"Rank: by {self.lead}, with the places that the tests leave it (95%)." if self.ranks else ""


def view(result: Result) -> View:
    """Lay a result out for showing."""
    found, first = laid(result), lead(result)
    columns = tuple(column for group in found for column in group.columns)
    decimals = {c.name: places(result, c) for c in columns}
    cells = _cells(result, decimals)
    told = about(result)
    ranks = {one.system: standing(one) for one in first.ranks} if first else {}
    return View(
        about=replace(told, banners=(*told.banners, *_lacking(result, found))),
        verdict=verdict(result),
        lead=first.column if first else "",
        ranks=ranks,
        systems=tuple(dict.fromkeys([*ranks, *texts(result)])),
        columns=columns,
        groups=found,
        places=decimals,
        cells=cells,
        caption=_caption(result, cells, found),
        agreement=agreement(result),
        of_texts=tuple(c for c in columns if c in result.table.columns and c.name not in result.table.wholes),
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


def standing(one: Rank) -> Standing:
    """A rank laid out."""
    return Standing(one.rank, f"{one.low}–{one.high}" if one.low < one.high else "")


def _cells(result: Result, decimals: Mapping[str, int]) -> dict[tuple[str, str], Cell]:
    total, failed = texts(result), failures(result)
    best = {name: one.best for name, one in compared(result).items()}

    def cell(system: str, column: str) -> Cell:
        estimate = result.estimates.get((system, column))
        counts = total[system], failed[system, column]
        if estimate is None:
            return Cell("–", "", 0, *counts, best=False, estimate=None)
        ends = span(estimate.low, estimate.high, decimals[column])
        first = best.get(column, ())
        return Cell(
            number(estimate.value, decimals[column]),
            ends,
            estimate.n,
            *counts,
            best=first == (system,),
            estimate=estimate,
            same=len(first) > 1 and system in first,
        )

    return {(system, column): cell(system, column) for column in decimals for system in total}


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
    columns = [column for group in found for column in group.columns]
    parts += _ends(columns) if any(column.better for column in columns) else ()
    parts += _marks(result, cells)
    if any(cell.coverage for cell in cells.values()):
        parts.append("a/b: scored a of b texts")
    if any(group.judged for group in found):
        parts.append("A panel's mean is over the texts that all of its judges scored")
    return ". ".join(parts) + "."


def _marks(result: Result, cells: Mapping[tuple[str, str], Cell]) -> Iterator[str]:
    """What the marks mean, where there are any."""
    best = {column for (_, column), cell in cells.items() if cell.best}
    marked = best | {column for (_, column), cell in cells.items() if cell.same}
    if best:
        yield "* best of its column: told apart from every other system (sign-flip test, p < 0.05 after Holm)"
    if marked - best:
        yield "≈ not told apart from the best"
    if marked:
        yield from _unmarked(result, marked)


def _unmarked(result: Result, marked: set[str]) -> Iterator[str]:
    """Why columns have no mark where others do, but for those without a better end."""
    reasons: dict[str, list[str]] = {}
    for name, one in compared(result).items():
        if name not in marked and one.note:
            reasons.setdefault(one.note, []).append(line(name, _NAME))
    for why, names in reasons.items():
        yield f"No mark in {', '.join(names) if len(names) <= _NAMED else count(len(names), 'column')}: {why}"


def _ends(columns: Iterable[Column]) -> Iterator[str]:
    """What the arrows mean, and a column without one."""
    found = {column.better for column in columns}
    both = {"higher", "lower"} <= found
    yield "↑ higher, ↓ lower is better" if both else "↓ lower is better" if "lower" in found else "↑ higher is better"
    if "" in found:
        yield "Without an arrow neither end is, and nothing is marked"


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
