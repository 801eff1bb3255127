"""Prediction-powered estimates as every format shows them: by criterion the systems' means, then their differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.core.records import Estimate
from judge.report.format import count, decimals, line, number, signed, span
from judge.stats.ppi import Calibrated, Powered

TITLE = "On people's scale"
_HOW = (
    "Prediction-powered estimates (PPI++, Angelopoulos et al. 2023) with 95% intervals: the judge's scores of all "
    "items, less what it is off by on the rated ones. They hold whatever the judge is like, if the rated items were "
    "drawn at random. λ: how much the judge counts, 0 to 1. Worth: the ratings that alone would give as narrow an "
    "interval. Fewer than were rated: the judge follows people too little to make up for what estimating λ costs, and "
    "the interval is wider than that of the ratings alone."
)
_DIFFER = (
    "A difference is estimated and tested by itself, within items and with a λ of its own: it is not that of the means "
    "above it."
)
_APART = "≠ told apart: p < .05 after Holm over the criterion's pairs."
_NOTE = 300  # characters of what could not be estimated
_FEW = 6  # pairs of systems; of more, a format that is read from top to bottom shows those with the best one
_MEANS = ("system", "with the judge", "ratings alone", "rated", "judged", "λ", "worth")
_DIFFERENCES = ("difference", "with the judge", "ratings alone", "rated", "judged", "λ", "worth", "p")

Cell = tuple[str, str]
"""A value, and its interval where it has one."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: headings and rows, of which the first cell is a name."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Block:
    """One criterion laid out; `told` are the sentences below its tables."""

    name: str
    grids: tuple[Grid, ...]
    told: tuple[str, ...]


def blocks(found: Sequence[Calibrated], *, every: bool = False) -> tuple[Block, ...]:
    """Every criterion laid out, with every difference or, where they are many, those from the best system."""
    return tuple(_block(one, one.differences if every else _few(one)) for one in found)


def how(found: Sequence[Calibrated]) -> str:
    """What the numbers are."""
    marked = any(difference.apart for one in found for difference in one.differences)
    differ = any(one.differences for one in found)
    return " ".join([_HOW, *[_DIFFER] * differ, *[_APART] * marked])


def show(console: Console, found: Sequence[Calibrated]) -> None:
    """Print all of them; nothing where there are none."""
    for block in blocks(found):
        console.print(Text(f"\n{TITLE}: {block.name}", "bold"))
        for grid in block.grids:
            console.print(table(grid))
        for told in block.told:
            console.print(Text(told))
    if found:
        console.print(Text(how(found), "dim"))


def table(grid: Grid) -> Table:
    """A grid for a terminal, intervals below their values."""
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for place, head in enumerate(grid.heads):
        folded = Text(head.replace(" ", "\n") if place else head)
        made.add_column(folded, justify="right" if place else "left", no_wrap=bool(place), overflow="fold")
    for row in grid.rows:
        made.add_row(*(Text.assemble(value, (f"\n{below}" if below else "", "dim")) for value, below in row))
    return made


def _few(found: Calibrated) -> tuple[Powered, ...]:
    if len(found.differences) <= _FEW:
        return found.differences
    return tuple(one for one in found.differences if one.system == found.means[0].system)


def _block(found: Calibrated, shown: Sequence[Powered]) -> Block:
    return Block(line(found.column), tuple(_grids(found, shown)), tuple(_told(found, len(shown))))


def _grids(found: Calibrated, shown: Sequence[Powered]) -> Iterator[Grid]:
    places = decimals([one.estimate.value for one in found.means])
    if found.means:
        yield Grid(_MEANS, tuple(((line(one.system), ""), *_cells(one, places)) for one in found.means))
    if shown:
        yield Grid(_DIFFERENCES, tuple((_pair(one), *_cells(one, places), (_p(one), "")) for one in shown))


def _pair(found: Powered) -> Cell:
    return f"{line(found.system)} {'≠' if found.apart else '−'} {line(found.other)}", ""


def _cells(found: Powered, places: int) -> tuple[Cell, ...]:
    counts = f"{found.estimate.n:,}", f"{found.judged:,}", number(found.weight, 2)
    worth = "–" if found.worth is None else f"{found.worth:,}"
    written = signed if found.other else number
    ends = [_cell(estimate, written, places) for estimate in (found.estimate, found.people)]
    return (*ends, *((text, "") for text in (*counts, worth)))


def _cell(estimate: Estimate, written: Callable[[float, int], str], places: int) -> Cell:
    return written(estimate.value, places), span(estimate.low, estimate.high, places)


def _p(found: Powered) -> str:
    """p after Holm, without the 0 before the point."""
    if found.adjusted is None:
        return "–"
    return "<.001" if found.adjusted < 0.001 else number(found.adjusted, 3).removeprefix("0")


def _told(found: Calibrated, shown: int) -> Iterator[str]:
    worth = [(one.estimate.n, one.worth) for one in found.means if one.worth is not None]
    if worth:
        rated, alone = (round(median(side)) for side in zip(*worth, strict=True))
        yield f"{count(rated, 'rating')} and the judge together are worth {alone:,} (median over the systems)."
    if found.differences:
        apart = sum(one.apart for one in found.differences)
        those = f"; shown are the {shown:,} with the best system" if shown < len(found.differences) else ""
        yield f"{apart:,} of {count(len(found.differences), 'pair')} of systems are told apart{those}."
    if found.note:
        yield f"{line(f'{found.note[0].upper()}{found.note[1:]}', _NOTE)}."
