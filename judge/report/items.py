"""The items of the page to open: a source once, every system's text, and what was found for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.records import Column, Failure, Sample, Score
from judge.report.about import failed
from judge.report.comparisons import Compared, compared
from judge.report.findings import Finding, finding
from judge.report.ranked import Ranked
from judge.report.result import Result
from judge.report.view import View
from judge.report.words import number
from judge.report.working import Asked, asked

MOST_OUTPUTS = 2000
MOST_PAIRS = 5000


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding under its criterion; of a panel, `judge` is whose it is, and "" the panel's."""

    name: str
    judge: str
    labels: int
    found: Finding


@dataclass(frozen=True, slots=True)
class Output:
    """One system's text with its findings, judgments before metrics. `others` are the further columns judged by.

    `asked` are the questions and answers behind a value of QAGS.
    """

    sample: Sample
    others: tuple[tuple[str, str], ...]
    judgments: tuple[Judged, ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    asked: tuple[Asked, ...] = ()

    @property
    def human(self) -> str:
        """What people gave it: `coherence 4`."""
        return ", ".join(f"{name} {value:.3g}" for name, value in self.sample.human.items())


@dataclass(frozen=True, slots=True)
class Item:
    """What is shown to open: a source once, every system's output, and how these were compared.

    `others` are the further columns that a criterion read and that all systems share. `keys` sort the items: by column
    the lowest score, or, of comparisons, less the number of flips; "-" where there is none.
    """

    name: str
    source: str | None
    references: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    failed: int
    keys: str
    comparisons: tuple[Compared, ...] = ()


def scored(result: Result, shown: View) -> Iterator[Item]:
    """The items in the table's order, as long as their outputs are within the page's limit."""
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    judges = {
        name: (group.name, "" if name == group.name else part)
        for group in shown.groups
        for name, part in group.parts.items()
    }
    outputs = 0
    for name, texts in _texts(result).items():
        outputs += len(texts)
        if outputs > MOST_OUTPUTS and outputs > len(texts):
            return
        found = {(s.system, c.name): rows.get((name, s.system, c.name)) for s, _ in texts for c in shown.columns}
        yield _item(
            name,
            [_output(sample, others, found, shown, judges) for sample, others in texts],
            failed=sum(map(failed, found.values())),
            keys=" ".join(_lowest([found[s.system, c.name] for s, _ in texts]) for c in shown.of_texts),
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
            keys=" ".join(str(-one.flips) for one in found),
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


def _item(
    name: str, outputs: Sequence[Output], *, failed: int, keys: str, comparisons: tuple[Compared, ...] = ()
) -> Item:
    shared = tuple(pair for pair in outputs[0].others if all(pair in output.others for output in outputs))
    own = [replace(output, others=tuple(p for p in output.others if p not in shared)) for output in outputs]
    samples = [output.sample for output in outputs]
    return Item(
        name=name,
        source=next((s.source for s in samples if s.source is not None), None),
        references=next((s.references for s in samples if s.references), ()),
        others=shared,
        outputs=tuple(own),
        failed=failed,
        keys=keys,
        comparisons=comparisons,
    )


def _lowest(rows: Sequence[Score | Failure | None]) -> str:
    return min((f"{row.value:.6g}" for row in rows if isinstance(row, Score)), key=float, default="-")


def _output(
    sample: Sample,
    others: tuple[tuple[str, str], ...],
    rows: Mapping[tuple[str, str], Score | Failure | None],
    shown: View,
    judges: Mapping[str, tuple[str, str]],
) -> Output:
    judgments: list[Judged] = []
    metrics: list[tuple[str, str]] = []
    failed_metrics: dict[tuple[str, str], list[Column]] = {}
    shown_asked: tuple[Asked, ...] = ()
    for column in shown.columns:
        row = rows[sample.system, column.name]
        shown_asked = asked(row) or shown_asked
        if column.kind == "metric" and isinstance(row, Score):
            metrics.append((column.name, number(row.value, shown.places[column.name])))
        elif column.kind == "metric" and isinstance(row, Failure):
            failed_metrics.setdefault((row.error, row.message), []).append(column)
        elif row is not None:
            judgments.append(_judged(column, row, judges[column.name], max(2, shown.places[column.name])))
    lacking = failed_metrics.values()
    judgments += [_unmeasured(columns, rows[sample.system, columns[0].name]) for columns in lacking]
    return Output(sample, others, tuple(judgments), tuple(metrics), shown_asked)


def _unmeasured(columns: Sequence[Column], row: Score | Failure | None) -> Judged:
    """What several metrics lacked for one reason."""
    assert isinstance(row, Failure)  # noqa: S101
    more = f" and {len(columns) - 1} more" if len(columns) > 1 else ""
    return Judged(columns[0].name + more, "", 5, finding(replace(row, raw=""), (), 2))


def _judged(column: Column, row: Score | Failure, whose: tuple[str, str], places: int) -> Judged:
    return Judged(*whose, len(column.labels) or 5, finding(row, column.labels, places))
