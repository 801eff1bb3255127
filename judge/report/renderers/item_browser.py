"""What the page's script filters and sorts items by, as plain data: numbers, and the sheets of the prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from judge.core.records import Column, Failure, Score
from judge.report.format import clean
from judge.report.views.items import Item
from judge.report.views.leaderboard import View
from judge.report.views.panel import Group
from judge.report.views.provenance import abstained, failed
from judge.report.views.rank_gaps import gaps, means, shares
from judge.report.views.ranking import Ranked
from judge.results.result import Result

_OVERLAPS = ("rouge1", "rougeL", "rougeLsum", "rouge2", "bleu", "chrf")
_MOST = 20
_NONE = {"usual": None, "others": ()}


@dataclass(frozen=True, slots=True)
class Browse:
    """The controls above the items, each with what it is called, and what the script reads.

    `tops` are the orders of which the first few items can be shown alone, `copied` says that some text repeats its
    source.
    """

    systems: tuple[str, ...]
    criteria: tuple[str, ...]
    orders: tuple[tuple[str, str], ...]
    tops: tuple[tuple[str, str], ...]
    failures: bool
    copied: bool
    data: Mapping[str, Any]

    @property
    def names(self) -> frozenset[str]:
        """The names of the texts that the sheets hold; those of a comparison are two outputs."""
        sheets = self.data["sheets"]
        found = {hole.partition(" ")[2] for sheet in sheets for _, parts in sheet for hole in parts[1::2]}
        return frozenset(found | {"output"} if "first" in found else found)


def scored(result: Result, shown: View, found: Sequence[Item]) -> Browse:
    """Of a run that scores texts. `data` has a row for each output, in the order of the page.

    `values` are by column, false where there is a failure; `mean` is that of the criteria, each as a share of its
    scale; `gap` how far the text's ranks by the judge and by an overlap metric are apart (-1 to 1, above 0 where the
    judge's is the better one), of all criteria together and of each; `mass` the least found on the scale, by criterion.
    """
    heads = [g for g in shown.groups if g.columns[0].kind == "criterion" and g.columns[0] in shown.of_texts]
    outputs = [(item, output) for item in found for output in item.outputs]
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    each = [shares(group.columns[0], result.table) for group in heads]
    whole = means(each)
    overlap = next((name for name in _OVERLAPS if name in {c.name for c in shown.of_texts}), "")
    apart = [gaps(one, result.table.of(overlap)) for one in ([whole, *each] if len(each) > 1 else each)]
    texts = [(item.name, output.sample.system) for item, output in outputs]
    masses = [[_mass([rows.get((*text, c.name)) for c in group.columns]) for group in heads] for text in texts]
    place = {system: k for k, system in enumerate(result.table.systems)}
    data = {
        "columns": [_criterion(column, heads) for column in shown.of_texts],
        "top": _top(found),
        "system": [place[system] for _, system in texts],
        "values": [[_value(column, rows.get((*text, column.name))) for column in shown.of_texts] for text in texts],
        "mean": [_short(whole.get(text)) for text in texts],
        "gap": [[one.get(text) for one in apart] for text in texts] if any(apart) else [],
        "overlap": overlap,
        "told": _told(overlap, len(heads)),
        "mass": masses if any(m is not None and m < 1 for mass in masses for m in mass) else [],
        "runs": [output.runs for _, output in outputs],
        **_asked(result, [c.name for c in shown.of_texts], found),
    }
    tops = tuple(_tops(data, len(place), bool(heads)))
    return Browse(
        systems=result.table.systems,
        criteria=tuple(group.name for group in heads),
        orders=(*tops, *((f"low {k}", f"lowest {column.name}") for k, column in enumerate(shown.of_texts))),
        tops=tops,
        failures=any(item.failed for item in found),
        copied=any(data["runs"]),
        data=data,
    )


def ranked(result: Result, shown: Ranked, found: Sequence[Item]) -> Browse:
    """Of a run that compares texts. `data` has the `flips` of every item by contest, and its number of failures."""
    labels = [contest.label for contest in shown.contests]
    data = {
        "columns": list(range(len(labels))),
        "top": _top(found),
        "told": {},
        "flips": [[one.flips for one in item.comparisons] for item in found],
        "failed": [item.failed for item in found],
        "runs": [output.runs for item in found for output in item.outputs],
        **_asked(result, [contest.name for contest in shown.contests], found),
    }
    return Browse(
        systems=(),
        criteria=tuple(labels),
        orders=tuple((f"flips {k}", f"most flips in {label} first") for k, label in enumerate(labels)),
        tops=(),
        failures=any(item.failed for item in found),
        copied=any(data["runs"]),
        data=data,
    )


def _criterion(column: Column, heads: Sequence[Group]) -> int:
    """The number of the criterion that a column is of; -1 for a metric."""
    return next((k for k, group in enumerate(heads) if column in group.columns), -1)


def _top(found: Sequence[Item]) -> int:
    """How many items are the first few."""
    return min(_MOST, ceil(len(found) / 5))


def _tops(data: Mapping[str, Any], systems: int, judged: bool) -> list[tuple[str, str]]:
    found = []
    if data["gap"]:
        found.append(("gap", f"judge and {data['overlap']} furthest apart"))
    if judged and systems > 1:
        found.append(("spread", "systems furthest apart"))
    if data["mass"]:
        found.append(("mass", "least mass on the scale"))
    return found


def _told(overlap: str, criteria: int) -> dict[str, str]:
    """What there is to know of an order."""
    of = (
        "the mean of the criteria, each as a share of its scale, or the chosen criterion"
        if criteria > 1
        else "the judge"
    )
    return {
        "gap": f"All texts of the run are ranked by the judge ({of}) and by {overlap}. Shown is who ranks the text "
        "higher, and by what share of the texts: 1 is first against last.",
        "spread": f"The highest less the lowest of an item's systems: {of}.",
        "mass": "The least probability, or share of draws, that was found on the scale.",
    }


def _value(column: Column, row: Score | Failure | None) -> float | bool | None:
    if isinstance(row, Score):
        return _short(row.value)
    return False if failed(row) and not abstained(column, row) else None


def _short(value: float | None) -> float | None:
    """Four digits: what values are put in order by, and shown with fewer."""
    return None if value is None else float(f"{value:.4g}")


def _mass(rows: Sequence[Score | Failure | None]) -> float | None:
    found = [row.provenance.mass for row in rows if isinstance(row, Score) and row.provenance.mass is not None]
    return round(min(found), 3) if found else None


def _asked(result: Result, columns: Sequence[str], found: Sequence[Item]) -> dict[str, Any]:
    """The sheets of the prompts, and which of them was used, by column: the usual one, and others by output or pair."""
    kept = result.info.get("prompts") or {}
    numbers: dict[tuple[str, str], int] = {}
    for item in found:
        for output in item.outputs:
            numbers[item.name, output.sample.system] = len(numbers)
    used = {}
    for place, column in enumerate(columns):
        asked = kept.get("asked", {}).get(column, _NONE)
        others = {
            " ".join(str(numbers[item, one]) for one in (system, rival) if one): sheet
            for item, system, rival, sheet in asked["others"]
            if (item, system) in numbers
        }
        if others or asked["usual"] is not None:
            used[place] = [asked["usual"], others]
    sheets = [[[role, [clean(part) for part in parts]] for role, parts in sheet] for sheet in kept.get("sheets", ())]
    return {"sheets": sheets, "asked": used}
