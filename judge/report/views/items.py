"""The item browser of the page: each item's source, its outputs with scores or pairwise verdicts, the worst item first.

The page shows up to 2,000 outputs; the other items are in `scores.parquet`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from judge.core.format import escape_controls, minus, number
from judge.core.records import Column, Failure, Sample, Score
from judge.core.signature import Signature
from judge.report.document import ItemBrowser
from judge.report.format import column_title, in_words, score_text
from judge.report.views.columns import groups, in_display_order, places
from judge.report.views.item_scores import (
    CLAIMS,
    PREFERENCE,
    REFERENCE_CLAIMS,
    CheckedClaim,
    Compared,
    Finding,
    Line,
    Piece,
    Replies,
    build_finding,
    checked_claims,
    compared,
    marked,
    qags_table,
    similarities,
)
from judge.report.views.provenance import abstained, failed
from judge.results.result import Result
from judge.stats.disagreements import on_same_scale

MOST_OUTPUTS = 2000
MOST_PAIRS = 5000

Text = tuple[str, str]
"""An item and a system."""


def link(**state: str) -> str:
    """Return the fragment that opens the item browser in a state.

    The keys are `system`, `versus` (a second system, for a comparison side by side), `column`, `item` (to open it),
    `order` (`high`, `spread` or `name`) and `q` (words to search for).
    """
    return "items?" + urlencode(
        {k: escape_controls(v) for k, v in state.items() if v}, quote_via=quote
    )


def browser(result: Result) -> ItemBrowser:
    """Return the item browser of a result, of scores or of comparisons."""
    return ItemBrowser(lambda: _ranked(result) if result.rankings else _scored(result))


def _fitting(names: Iterable[str], sizes: Mapping[str, int], most: int) -> frozenset[str]:
    """Return the first names whose sizes together stay within `most`, at least one."""
    fitting: set[str] = set()
    total = 0
    for name in names:
        total += sizes[name]
        if total > most and fitting:
            break
        fitting.add(name)
    return frozenset(fitting)


@dataclass(frozen=True, slots=True)
class Output:
    """One system's text with its findings, judgments before metrics. `others` are the further columns judged by.

    `qags` are the questions and answers behind a value of QAGS, `claims` and `reference_claims` the claims behind
    `claims_precision` or `nli`, and `claims_recall`.
    """

    sample: Sample
    others: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    qags: tuple[Line, ...] = ()
    claims: tuple[CheckedClaim, ...] = ()
    reference_claims: tuple[CheckedClaim, ...] = ()

    @property
    def similarities(self) -> tuple[str, ...]:
        """The names of the similarities of `qags`."""
        return similarities(self.qags)

    @property
    def quotes(self) -> tuple[tuple[str, str], ...]:
        """The quotations behind the scores, each with the criterion and the score."""
        return tuple(
            (f.quote, " ".join(filter(None, (f.name, f.judge and f"({f.judge})", f.value))))
            for f in self.findings
            if f.quote
        )

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The text, cut at the ends of the sentences that a judge quotes and of unsupported claims."""
        return marked(self.sample.output, self.quotes, self.claims)

    @property
    def human(self) -> str:
        """People's ratings: `coherence 4`."""
        return ", ".join(
            f"{name} {minus(f'{value:.3g}')}" for name, value in self.sample.human.items()
        )


@dataclass(frozen=True, slots=True)
class Measure:
    """A column that items can be ordered by, with its values: None if there is none, False if it failed.

    `leads` marks the columns that order the items unless the reader chooses another one. `per_item` means that all
    outputs of an item have the same value. `places` are the decimals. `judge` is one of a panel.
    """

    title: str
    column: Column
    places: int
    values: Mapping[Text, float | bool | None]
    leads: bool = False
    per_item: bool = False
    judge: str = ""

    @property
    def name(self) -> str:
        """The title with the judge of a panel."""
        return f"{self.title}: {self.judge}" if self.judge else self.title

    @property
    def numbers(self) -> dict[Text, float]:
        """The values that are there."""
        return {
            text: value
            for text, value in self.values.items()
            if value is not None and value is not False
        }

    def share(self, text: Text) -> float | None:
        """Return the text's place on the scale, from 0 (worst) to 1 (best)."""
        value = self.values.get(text)
        return None if value is None or value is False else self.column.share(value)

    def data(self, outputs: Sequence[Text]) -> dict[str, Any]:
        """Return what the page's script reads, with a value for each output. Four digits are enough to sort by."""
        values = (self.values.get(text) for text in outputs)
        return {
            "name": self.name,
            "column": self.column.name,
            "low": self.column.low,
            "high": self.column.high,
            "better": self.column.better,
            "labels": self.column.labels if in_words(self.column) else (),
            "ends": self.column.values,
            "places": self.places,
            "leads": self.leads,
            "item": self.per_item,
            "values": [
                value if value is None or value is False else float(f"{value:.4g}")
                for value in values
            ],
        }


@dataclass(frozen=True, slots=True)
class Lowest:
    """The lowest score of an item: its text, its place from -1 to 1 on the scale, its system and column."""

    text: str
    shade: float
    system: str
    column: str


@dataclass(frozen=True, slots=True)
class Item:
    """One item: its source once, every system's output, and their comparisons.

    `others` are the further columns that a criterion read and that all systems share. `failed` counts missing values.
    """

    name: str
    source: str | None
    references: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    failed: int
    comparisons: tuple[Compared, ...] = ()
    lowest: Lowest | None = None

    def source_pieces(self, source: str) -> tuple[Piece, ...]:
        """A source, cut at the ends of the sentences that a judge quotes from it and not from an output."""
        quotes = [
            (quote, f"{output.sample.system}: {name}")
            for output in self.outputs
            for quote, name in output.quotes
            if quote not in output.sample.output
        ]
        return marked(source, quotes)

    @property
    def peek(self) -> str:
        """The start of the item's text, for its closed row."""
        return (self.source or self.outputs[0].sample.output)[:160]


@dataclass(frozen=True)
class Items:
    """What the item browser shows, the worst item first. `note` says which items are missing."""

    items: tuple[Item, ...]
    note: str
    systems: tuple[str, ...]
    measures: tuple[Measure, ...]

    @property
    def failures(self) -> bool:
        return any(item.failed for item in self.items)

    @property
    def sources(self) -> bool:
        return any(output.sample.source for item in self.items for output in item.outputs)

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script reads; outputs are in the order of the page."""
        outputs = [
            (item.name, output.sample.system) for item in self.items for output in item.outputs
        ]
        place = {system: k for k, system in enumerate(self.systems)}
        return {
            "items": [item.name for item in self.items],
            "failed": [item.failed for item in self.items],
            "systems": self.systems,
            "system": [place[system] for _, system in outputs],
            "measures": [measure.data(outputs) for measure in self.measures],
        }


_Samples = Mapping[str, Sequence[tuple[Sample, tuple[tuple[str, str], ...]]]]
"""Every item's samples, each with the further data columns that a criterion reads."""


def _scored(result: Result) -> Items:
    """Lay out a run that scores texts."""
    table, corpus = result.table, result.table.corpus_columns
    rows = {(row.item, row.system, row.column): row for row in table.rows()}
    stored = {column.name for column in table.columns} - corpus
    shown = {
        column.name: Measure(
            column_title(group.name),
            column,
            places(result, column),
            {s.key: _value(column, rows.get((*s.key, column.name))) for s in table.samples},
            judge=group.parts[column.name] if column.judge else "",
        )
        for group in in_display_order(result)
        for column in group.columns
        if column.name in stored
    }
    leads = [
        name
        for name, measure in shown.items()
        if measure.column.kind == "criterion" and not measure.judge
    ]
    leads = leads or [name for name, measure in shown.items() if measure.column.better][:1]
    measures = []
    for name, measure in shown.items():
        column, numbers = measure.column, measure.numbers.values()
        low = min(numbers, default=None) if column.low is None else column.low
        high = max(numbers, default=None) if column.high is None else column.high
        measures.append(
            replace(measure, column=replace(column, low=low, high=high), leads=name in leads)
        )
    measures += _spreads(measures)
    measures += _people_gaps(measures, table.samples)
    samples = _samples_by_item(result)
    items = []
    for item, lowest in _worst_first(samples, measures):
        outputs, lost = [], 0
        for sample, others in samples[item]:
            rows_of_text = {name: row for name in shown if (row := rows.get((*sample.key, name)))}
            outputs.append(_output(sample, others, rows_of_text, shown))
            lost += sum(measure.values[sample.key] is False for measure in shown.values())
        items.append(_item(item, outputs, lost, lowest))
    return _items(result, items, measures, samples)


def _output(
    sample: Sample,
    others: tuple[tuple[str, str], ...],
    rows: Mapping[str, Score | Failure],
    columns: Mapping[str, Measure],
) -> Output:
    findings, metrics = [], []
    lacking: dict[tuple[str, str], list[Failure]] = {}  # by error and message
    for name, row in rows.items():
        shown = columns[name]
        if shown.column.kind == "criterion":
            names = {"name": shown.title, "judge": shown.judge}
            findings.append(build_finding(row, shown.column, max(2, shown.places), **names))
        elif isinstance(row, Score):
            metrics.append((shown.title, number(row.value, shown.places)))
        else:
            lacking.setdefault((row.error, row.message), []).append(row)
    for failure, *more in lacking.values():
        name = f"{failure.column} and {len(more)} more" if more else failure.column
        findings.append(Finding(name, "", Replies(), failure=failure))
    qags = next(
        filter(None, (qags_table(columns[name].column, row) for name, row in rows.items())), ()
    )
    claims = {name: checked_claims(sample, columns[name].column, row) for name, row in rows.items()}
    own = next((claims[name] for name in CLAIMS if claims.get(name)), ())
    return Output(
        sample, others, tuple(findings), tuple(metrics), qags, own, claims.get(REFERENCE_CLAIMS, ())
    )


def _value(column: Column, row: Score | Failure | None) -> float | bool | None:
    if isinstance(row, Score):
        return row.value
    return False if failed(row) and not abstained(column, row) else None


def spread_name(criterion: str) -> str:
    """Return the name of the measure that is low if a panel's judges differ widely."""
    return f"{criterion}: judges apart"


def _spreads(measures: Sequence[Measure]) -> list[Measure]:
    """Return for each criterion of a panel the largest less the smallest value of its judges."""
    by_criterion: dict[str, list[Measure]] = {}
    for measure in measures:
        if measure.column.judge:
            by_criterion.setdefault(measure.column.criterion, []).append(measure)
    spreads = []
    for criterion, judged in by_criterion.items():
        width = (judged[0].column.high or 0.0) - (judged[0].column.low or 0.0)
        values: dict[Text, float | bool | None] = {}
        known = [measure.numbers for measure in judged]
        for text in judged[0].values:
            numbers = [scores[text] for scores in known if text in scores]
            values[text] = max(numbers) - min(numbers) if len(numbers) == len(judged) else None
        column = Column(spread_name(criterion), "metric", Signature(), 0.0, width, better="lower")
        spreads.append(Measure(f"{column_title(criterion)}: judges apart", column, 2, values))
    return spreads


def gap_name(name: str) -> str:
    """Return the name of the measure of the judge's score minus people's mean on a criterion."""
    return f"{name}: judge − people"


def _people_gaps(measures: Sequence[Measure], samples: Sequence[Sample]) -> Iterator[Measure]:
    """Yield for each criterion that people rated on its scale the judge's score minus their mean."""
    for measure in measures:
        column, name = measure.column, measure.column.criterion or measure.column.name
        if not measure.leads or not (kept := on_same_scale(column, name, samples)):
            continue
        people = {s.key: s.human[name] for s in kept}
        values: dict[Text, float | bool | None] = dict.fromkeys(s.key for s in samples)
        values |= {
            key: score - people[key] for key, score in measure.numbers.items() if key in people
        }
        width = (column.high or 0.0) - (column.low or 0.0)
        yield Measure(
            gap_name(measure.name),
            Column(gap_name(name), "metric", Signature(), -width, width, better=""),
            2,
            values,
        )


def _ranked(result: Result) -> Items:
    """Lay out a run that compares texts."""
    rows: dict[str, list[Score | Failure]] = {}
    for row in result.table.rows():
        rows.setdefault(row.item, []).append(row)
    samples = {name: outputs for name, outputs in _samples_by_item(result).items() if name in rows}
    labels = {
        name: f"{group.name}: {part}" if part else group.name
        for group in groups(result)
        for name, part in group.parts.items()
    }
    labels = {ranking.column: labels[ranking.column] for ranking in result.rankings}
    orders = result.info.orders or 2
    comparisons = {
        name: compared(rows[name], labels, [sample.system for sample, _ in outputs], orders)
        for name, outputs in samples.items()
    }
    preferred, flips = [], []
    for k, (column, label) in enumerate(labels.items()):
        texts = [
            (name, sample.system, comparisons[name][k])
            for name, outputs in samples.items()
            for sample, _ in outputs
        ]
        shares = {(name, system): contest.preference(system) for name, system, contest in texts}
        counts = {(name, system): float(contest.flips) for name, system, contest in texts}
        wins = replace(PREFERENCE, name=f"{column}: preferred")
        preferred.append(Measure(f"{label}: preferred", wins, 2, shares))
        most = Column(
            f"{column}: flips",
            "criterion",
            Signature(),
            0.0,
            max([1.0, *counts.values()]),
            better="lower",
        )
        flips.append(Measure(f"{label}: flips", most, 0, counts, leads=True, per_item=True))
    measures = [*preferred, *flips]
    order = _worst_first(samples, measures)
    pairs = {
        name: sum(len(contest.pairs) for contest in contests)
        for name, contests in comparisons.items()
    }
    fitting = _fitting([name for name, _ in order], pairs, MOST_PAIRS)
    items = [
        replace(
            _item(
                name,
                [Output(*output) for output in samples[name]],
                sum(map(failed, rows[name])),
                lowest,
            ),
            comparisons=comparisons[name],
        )
        for name, lowest in order
        if name in fitting
    ]
    return _items(result, items, measures, samples)


def _worst_first(samples: _Samples, measures: Sequence[Measure]) -> list[tuple[str, Lowest | None]]:
    """Return the worst items that fit on the page, by their lowest score, then by the mean of that text's scores."""
    leads = [measure for measure in measures if measure.leads]
    keys: dict[str, tuple[float, float]] = {}
    lowest: dict[str, Lowest] = {}
    for name, outputs in samples.items():
        scores = []
        for sample, _ in outputs:
            text = (name, sample.system)
            shares = [
                (share, measure) for measure in leads if (share := measure.share(text)) is not None
            ]
            # A text that lacks a score has no mean.
            mean = (
                sum(share for share, _ in shares) / len(shares)
                if 0 < len(shares) == len(leads)
                else 0.0
            )
            scores += [((share, mean), measure, text) for share, measure in shares]
        if scores:
            keys[name], measure, text = min(scores, key=lambda score: score[0])
            value = score_text(measure.column, float(measure.values[text] or 0), measure.places)
            system = "" if measure.per_item else text[1]
            lowest[name] = Lowest(value, round(2 * keys[name][0] - 1, 2), system, measure.name)
    order = sorted(samples, key=lambda name: keys.get(name, (math.inf, 0)))
    fitting = _fitting(
        order, {name: len(outputs) for name, outputs in samples.items()}, MOST_OUTPUTS
    )
    return [(name, lowest.get(name)) for name in order if name in fitting]


def _items(
    result: Result,
    items: Sequence[Item],
    measures: Sequence[Measure],
    samples: _Samples,
) -> Items:
    shown, texts = sum(len(item.outputs) for item in items), sum(map(len, samples.values()))
    note = (
        f"These are the {len(items):,} lowest of {len(samples):,} items ({shown:,} of {texts:,} texts). "
        "All are in scores.parquet."
        if len(items) < len(samples)
        else ""
    )
    return Items(tuple(items), note, result.table.systems, tuple(measures))


def _samples_by_item(result: Result) -> _Samples:
    criteria = result.info.criteria.values()
    read = {name for criterion in criteria for name in criterion.needs}
    read -= {"source", "output", "reference", "references", "first", "second"}
    by_item: dict[str, list[tuple[Sample, tuple[tuple[str, str], ...]]]] = {}
    for s in result.table.samples:
        others = tuple(
            (name, str(s.extra[name])) for name in sorted(read) if s.extra.get(name) is not None
        )
        by_item.setdefault(s.item, []).append((s, others))
    return by_item


def _item(name: str, outputs: Sequence[Output], lost: int, lowest: Lowest | None) -> Item:
    shared = tuple(
        pair for pair in outputs[0].others if all(pair in output.others for output in outputs)
    )
    samples = [output.sample for output in outputs]
    return Item(
        name=name,
        source=next((s.source for s in samples if s.source is not None), None),
        references=next((s.references for s in samples if s.references), ()),
        others=shared,
        outputs=tuple(
            replace(o, others=tuple(p for p in o.others if p not in shared)) for o in outputs
        ),
        failed=lost,
        lowest=lowest,
    )
