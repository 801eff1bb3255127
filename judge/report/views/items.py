"""The items of the page to open: a source once, every system's text, and what was found for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from judge.core.records import ABSTAINED, Column, Failure, Sample, Score
from judge.report.format import clean, minus, number
from judge.report.views.copied_spans import Run, Source
from judge.report.views.leaderboard import View
from judge.report.views.pairwise_items import Compared, compared
from judge.report.views.provenance import abstained, failed
from judge.report.views.qags import Line, working
from judge.report.views.ranking import Ranked
from judge.report.views.score_details import Finding, finding
from judge.results.result import Result

MOST_OUTPUTS = 2000
MOST_PAIRS = 5000


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding under its criterion; of a panel, `judge` is whose it is, and "" the panel's.

    `place` is its column's among those with a value for each text; None where it is of several.
    """

    name: str
    judge: str
    labels: int
    found: Finding
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """One system's text with its findings, judgments before metrics. `others` are the further columns judged by.

    `asked` are the questions and answers behind a value of QAGS, `runs` where the text repeats its source.
    """

    sample: Sample
    others: tuple[tuple[str, str], ...]
    judgments: tuple[Judged, ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    asked: tuple[Line, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def human(self) -> str:
        """What people gave it: `coherence 4`."""
        return ", ".join(f"{name} {minus(f'{value:.3g}')}" for name, value in self.sample.human.items())


@dataclass(frozen=True, slots=True)
class Item:
    """What is shown to open: a source once, every system's output, and how these were compared.

    `others` are the further columns that a criterion read and that all systems share.
    """

    name: str
    source: str | None
    references: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    failed: int
    comparisons: tuple[Compared, ...] = ()

    @property
    def anchor(self) -> str:
        """Its name as an address has it after the `#`."""
        return quote(clean(self.name), safe="/:@!$&'()*+,;=?~-._")


def first(samples: Sequence[Sample]) -> frozenset[str]:
    """The items that a page shows: the first ones, as long as their outputs are within its limit."""
    found: set[str] = set()
    outputs = 0
    for name, texts in Counter(sample.item for sample in samples).items():
        outputs += texts
        if outputs > MOST_OUTPUTS and found:
            break
        found.add(name)
    return frozenset(found)


def scored(result: Result, shown: View) -> Iterator[Item]:
    """The items in the table's order, as long as their outputs are within the page's limit."""
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    places = {column.name: place for place, column in enumerate(shown.of_texts)}
    laid = {
        name: (group.name, "" if name == group.name else part, places.get(name))
        for group in shown.groups
        for name, part in group.parts.items()
    }
    wanted = first(result.table.samples)
    for name, texts in _texts(result).items():
        if name not in wanted:
            return
        found = {(s.system, c.name): rows.get((name, s.system, c.name)) for s, _ in texts for c in shown.columns}
        lost = [row for c in shown.columns for s, _ in texts if not abstained(c, row := found[s.system, c.name])]
        yield _item(
            name,
            [_output(sample, others, found, shown, laid) for sample, others in texts],
            failed=sum(map(failed, lost)),
        )


def ranked(result: Result, shown: Ranked) -> Iterator[Item]:
    """The items of which texts were compared, as long as these and their pairs are within the page's limit."""
    rows: dict[str, list[Score | Failure]] = {}
    for row in result.table.rows():
        rows.setdefault(row.item, []).append(row)
    labels = {contest.name: contest.label for contest in shown.contests}
    orders = (result.info.get("plan") or {}).get("orders", 2)
    outputs = pairs = 0
    for name, texts in _texts(result).items():
        if name not in rows:
            continue
        found = compared(rows[name], labels, [sample.system for sample, _ in texts], orders)
        outputs, first = outputs + len(texts), not outputs
        pairs += sum(len(one.pairs) for one in found)
        if (outputs > MOST_OUTPUTS or pairs > MOST_PAIRS) and not first:
            return
        yield _item(
            name,
            [Output(sample, others) for sample, others in texts],
            failed=sum(map(failed, rows[name])),
            comparisons=found,
        )


def _texts(result: Result) -> dict[str, list[tuple[Sample, tuple[tuple[str, str], ...]]]]:
    """Every item's samples, each with the further columns of the data that some criterion read."""
    criteria = (result.info.get("criteria") or {}).values()
    read = {str(name) for criterion in criteria for name in criterion.get("needs") or ()}
    read -= {"source", "output", "reference", "references", "first", "second"}
    found: dict[str, list[tuple[Sample, tuple[tuple[str, str], ...]]]] = {}
    for s in result.table.samples:
        others = tuple((name, str(s.extra[name])) for name in sorted(read) if s.extra.get(name) is not None)
        found.setdefault(s.item, []).append((s, others))
    return found


def _item(name: str, outputs: Sequence[Output], *, failed: int, comparisons: tuple[Compared, ...] = ()) -> Item:
    shared = tuple(pair for pair in outputs[0].others if all(pair in output.others for output in outputs))
    samples = [output.sample for output in outputs]
    source = next((s.source for s in samples if s.source is not None), None)
    runs = _runs(samples, source)
    own = [
        replace(output, others=tuple(p for p in output.others if p not in shared), runs=runs[output.sample.system])
        for output in outputs
    ]
    return Item(
        name=name,
        source=source,
        references=next((s.references for s in samples if s.references), ()),
        others=shared,
        outputs=tuple(own),
        failed=failed,
        comparisons=comparisons,
    )


def _runs(samples: Sequence[Sample], source: str | None) -> dict[str, tuple[Run, ...]]:
    """By system what its text repeats of its own source, or of the item's where it has none."""
    sources = {sample.system: source if sample.source is None else sample.source for sample in samples}
    outputs = [sample.output for sample in samples]
    known = {text: Source(text, outputs) for text in sources.values() if text}
    return {s.system: known[text].runs(s.output) if (text := sources[s.system]) else () for s in samples}


def _output(
    sample: Sample,
    others: tuple[tuple[str, str], ...],
    rows: Mapping[tuple[str, str], Score | Failure | None],
    shown: View,
    laid: Mapping[str, tuple[str, str, int | None]],
) -> Output:
    judgments: list[Judged] = []
    metrics: list[tuple[str, str]] = []
    lacking: dict[tuple[str, str], list[Failure]] = {}
    asked: tuple[Line, ...] = ()
    for column in shown.columns:
        row = rows[sample.system, column.name]
        asked = asked or working(column, row)
        if column.kind == "metric" and isinstance(row, Score):
            metrics.append((column.name, number(row.value, shown.places[column.name])))
        elif column.kind == "metric" and isinstance(row, Failure):
            lacking.setdefault((row.error, row.message), []).append(row)
        elif row is not None:
            judgments.append(_judged(column, row, laid[column.name], max(2, shown.places[column.name])))
    judgments += map(_unmeasured, lacking.values())
    return Output(sample, others, tuple(judgments), tuple(metrics), asked)


def _unmeasured(rows: Sequence[Failure]) -> Judged:
    """What several metrics lacked for one reason."""
    more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    found = finding(replace(rows[0], raw=""), (), 2)
    return Judged(rows[0].column + more, "", 5, replace(found, abstained=rows[0].error == ABSTAINED))


def _judged(column: Column, row: Score | Failure, whose: tuple[str, str, int | None], places: int) -> Judged:
    name, judge, place = whose
    return Judged(name, judge, len(column.labels) or 5, finding(row, column.labels, places), place)
