"""The context and outcome of a case, and the format of its numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.core.format import decimals, one_line, plural
from judge.core.records import Column, Estimate
from judge.results.result import Result
from judge.suite.evidence import CaseScores, Parts, Text, Undecidable
from judge.suite.records import Case, Status

FLAKY = 0.05, 0.95
NAME = 60
"""Characters of a name."""
_CLIP, _NAMED = 40, 3  # characters of a text, and items, in a case's name
STATUS: Mapping[int, Status] = {1: "passed", 0: "undecided", -1: "failed"}
"""By the side of the limit that the numbers are on."""


@dataclass(frozen=True, slots=True)
class CaseContext:
    """A case with the texts it is about, and where its scores are."""

    case: Case
    texts: Sequence[Text]
    result: Result | None
    ranked: Result | None
    baseline: Result | None
    seed: int = 0

    @property
    def by_item(self) -> dict[str, list[str]]:
        """The systems of each item."""
        systems_by_item: dict[str, list[str]] = {}
        for item, system in self.texts:
            systems_by_item.setdefault(item, []).append(system)
        return systems_by_item

    @property
    def pairwise(self) -> bool:
        """Whether the texts were compared two by two: they have names of their own among the comparisons."""
        return self.ranked is not None and bool(set(self.ranked.table.items) & self.by_item.keys())

    def scored(self) -> CaseScores:
        """The rows of the texts' items. Raises Undecidable for a criterion that was not judged."""
        return CaseScores.for_criterion(
            self.ranked if self.pairwise else self.result, self.case.criterion, self.by_item
        )


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """The fields of a verdict that a kind of case computes from the scores."""

    status: Status
    found: str
    said: str = ""
    flaky: float | None = None
    estimate: Estimate | None = None
    before: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether an expectation is met, and the remark that says why."""

    status: Status
    remark: str = ""


def about(case: Case) -> str:
    """A case's criterion and texts: `coherence of a1 by lead`."""
    return f"{stem(case)} of {which(case)}"


def stem(case: Case) -> str:
    """A case's criterion without its folder."""
    return Path(case.criterion).stem


def which(case: Case) -> str:
    """The texts of a case in few words."""
    if case.texts:
        return quoted(case.texts[0].output)
    items = ", ".join(case.items) if len(case.items) <= _NAMED else plural(len(case.items), "item")
    return f"{items or 'all texts'}{' by ' if case.systems else ''}{', '.join(case.systems)}"


def quoted(text: str) -> str:
    """The beginning of a text."""
    return f"“{one_line(text, _CLIP)}”"


def of_items(scored: CaseScores, by_item: dict[str, list[str]]) -> tuple[list[Parts], str, str]:
    """Every item's mean over its systems; what is said of texts without a score, and the first failure.

    Raises Undecidable where no text has one.
    """
    items: list[Parts] = []
    lost = []
    for item, systems in by_item.items():
        each = [parts for system in systems if (parts := scored.parts(item, system))]
        lost += [(item, system, "") for system in systems if scored.score(item, system) is None]
        if each:
            items.append([(c / len(each), evidence) for parts in each for c, evidence in parts])
    return items, *missing(scored, lost, items)


def missing(
    scored: CaseScores, lost: Sequence[tuple[str, str, str]], scored_items: Sequence[object]
) -> tuple[str, str]:
    """Describe rows without a score, and the first failure. Raises Undecidable if there are no scored items."""
    message, detail = scored.lacking(lost) if lost else ("", "")
    if not scored_items:
        raise Undecidable(message if len(lost) > 1 else detail.partition(":")[0], detail)
    return message, detail


def flaky(odds: float) -> bool:
    """Whether a share of single replies is neither few nor nearly all of them."""
    return FLAKY[0] <= odds <= FLAKY[1]


def joined(*parts: str) -> str:
    """Join the parts that are not empty."""
    return "; ".join(part for part in parts if part)


def display_name(text: str) -> str:
    return one_line(text, NAME)


def short(value: float) -> str:
    """`4`, `−0.5`."""
    return f"{value:g}".replace("-", "−")


def share(value: float) -> str:
    """`60%`, `62.5%`, for limits that people wrote."""
    return f"{round(100 * value, 1):g}%"


def places(column: Column) -> int:
    """Decimals that suit a column's scale."""
    return decimals([end for end in (column.low, column.high) if end is not None])


def most(names: Iterable[str], limit: int = 5) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
