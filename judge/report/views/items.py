"""The item browser of the page: each item's source and its outputs, the worst item first.

Outputs have their scores or, in a ranking, their pairwise verdicts.

The page shows up to 2,000 outputs; the other items are in `scores.parquet`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from judge.core.format import escape_controls, minus, number, one_line
from judge.core.records import Failure, Sample, Score
from judge.data.answers import column_of, first_column, request_in_cell, texts_of
from judge.data.column_names import REQUEST_COLUMNS
from judge.data.conversations import MESSAGES, messages_before
from judge.report.document import ItemBrowser
from judge.report.format import column_title, score_text
from judge.report.views.columns import groups
from judge.report.views.item_facets import Facet, Pairs, facets_of
from judge.report.views.item_measures import (
    Measure,
    Text,
    judge_spreads,
    measures_of_columns,
    people_gaps,
    ranking_measures,
    with_leads,
)
from judge.report.views.item_scores import (
    Compared,
    Finding,
    Piece,
    QagsQuestion,
    build_finding,
    compared,
    marked,
    qags_table,
    similarities,
)
from judge.report.views.provenance import failed
from judge.report.views.replies import Replies
from judge.results.checked_claims import (
    CLAIMS,
    REFERENCE_CLAIMS,
    CheckedClaim,
    checked_claims,
)
from judge.results.result import Result
from judge.stats.compared_pairs import tie_label

MOST_OUTPUTS = 2000
MOST_PAIRS = 5000
# The browser shows these apart from the other columns that a criterion reads.
_SHOWN_APART = {
    *("source", "output", "reference", "references"),
    *("first", "second", MESSAGES),
}
_MAX_PEEK = 160  # characters
_MAX_TAG = 60  # characters of a value that is shown in a line with others


def link(**state: str) -> str:
    """Return the fragment that opens the item browser in a state.

    The keys are `system`, `versus` (a second system, for a comparison side by side), `column`,
    `item` (to open it), `order` (`high`, `spread` or `name`) and `q` (words to search for).
    """
    set_keys = {}
    for state_key, value in state.items():
        if value:
            set_keys[state_key] = escape_controls(value)
    return "items?" + urlencode(set_keys, quote_via=quote)


def browser(result: Result) -> ItemBrowser:
    """Return the item browser of a result, of scores or of comparisons."""
    return ItemBrowser(lambda: _ranked(result) if result.rankings else _scored(result))


def _fitting(
    item_names: Iterable[str],
    sizes: Mapping[str, int],
    most: int,
) -> frozenset[str]:
    """Return the first names whose sizes together stay within `most`, at least one."""
    fitting: set[str] = set()
    total = 0
    for item_name in item_names:
        total += sizes[item_name]
        if total > most and fitting:
            break
        fitting.add(item_name)
    return frozenset(fitting)


@dataclass(frozen=True, slots=True)
class Output:
    """One system's text with its findings, judgments before metrics.

    `others` are the further columns judged by. `messages` are the role and the text of each message
    before the text, unless all texts of the item follow the same ones. `tags` are short values of
    the data's own columns that no criterion read, without those that all texts of the item share.
    `qags` are the questions and answers behind a value of QAGS. `claims_by_metric` has the claims
    behind each metric that checks the text, by the metric's name, and `reference_claims` those
    behind `claims_recall`.
    """

    sample: Sample
    others: tuple[tuple[str, str], ...]
    messages: Pairs = ()
    tags: Pairs = ()
    findings: tuple[Finding, ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    qags: tuple[QagsQuestion, ...] = ()
    claims_by_metric: tuple[tuple[str, tuple[CheckedClaim, ...]], ...] = ()
    reference_claims: tuple[CheckedClaim, ...] = ()

    @property
    def similarities(self) -> tuple[str, ...]:
        """The names of the similarities of `qags`."""
        return similarities(self.qags)

    @property
    def quotes(self) -> tuple[tuple[str, str], ...]:
        """The quotations behind the scores, each with the criterion and the score."""
        quotes = []
        for finding in self.findings:
            if finding.quote:
                judge = f"({finding.judge})" if finding.judge else ""
                parts = (finding.name, judge, finding.value)
                score = " ".join(filter(None, parts))
                quotes.append((finding.quote, score))
        return tuple(quotes)

    @property
    def claims(self) -> tuple[CheckedClaim, ...]:
        """The claims behind all metrics that check the text."""
        claims: list[CheckedClaim] = []
        for _, claims_of_metric in self.claims_by_metric:
            claims += claims_of_metric
        return tuple(claims)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The text, cut at the ends of quoted sentences and of unsupported claims."""
        return marked(self.sample.output, self.quotes, self.claims)

    @property
    def human(self) -> str:
        """People's ratings: `coherence 4`."""
        texts = []
        for rating_name, rating in self.sample.human.items():
            value = minus(f"{rating:.3g}")
            texts.append(f"{rating_name} {value}")
        return ", ".join(texts)


@dataclass(frozen=True, slots=True)
class Lowest:
    """The lowest score of an item: its text, its system and its column.

    `shade` is where it lies on the scale, from -1 (worst) to 1 (best). `system` is empty if the
    score belongs to the whole item.
    """

    text: str
    shade: float
    system: str
    column: str
    worst_system: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One item: its source once, every system's output, and their comparisons.

    `others` are the further columns that a criterion read and that all systems share. `failed`
    counts missing values. `messages` are the role and the text of each message before all outputs,
    and `tags` the values of the data's own columns that all outputs share.
    """

    name: str
    source: str | None
    references: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    failed: int
    messages: Pairs = ()
    tags: Pairs = ()
    comparisons: tuple[Compared, ...] = ()
    lowest: Lowest | None = None

    @property
    def has_source(self) -> bool:
        """Whether a text of the item has a source that is not empty."""
        return any(output.sample.source for output in self.outputs)

    def source_pieces(self, source: str) -> tuple[Piece, ...]:
        """A source, cut at the ends of the sentences that a judge quotes from it alone."""
        quotes = []
        for output in self.outputs:
            for quoted, finding_name in output.quotes:
                if quoted not in output.sample.output:
                    title = f"{output.sample.system}: {finding_name}"
                    quotes.append((quoted, title))
        return marked(source, quotes)

    @property
    def peek(self) -> tuple[str, ...]:
        """The starts of what was asked and of the worst output, for the item's closed row."""
        worst = self.outputs[0]
        worst_system = self.lowest.worst_system if self.lowest else None
        for output in self.outputs:
            if output.sample.system == worst_system:
                worst = output
        sample = worst.sample
        column = first_column(sample, REQUEST_COLUMNS)
        request = request_in_cell(sample.extra[column]) if column else sample.source
        request = request or _first_request(self.messages or worst.messages)
        texts = filter(None, (request, sample.output))
        return tuple(text[:_MAX_PEEK] for text in texts)


def _first_request(messages: Pairs) -> str:
    """Return what the user said first, "" without messages."""
    user_texts = (text for role, text in messages if role == "user")
    return next(user_texts, "")


@dataclass(frozen=True)
class Items:
    """The items of the item browser, the worst first. `note` describes the missing items.

    `facets` are columns of the data that the page filters by.
    """

    items: tuple[Item, ...]
    note: str
    systems: tuple[str, ...]
    measures: tuple[Measure, ...]
    facets: tuple[Facet, ...] = ()

    @property
    def failures(self) -> bool:
        return any(item.failed for item in self.items)

    @property
    def sources(self) -> bool:
        return any(item.has_source for item in self.items)

    @property
    def data(self) -> dict[str, Any]:
        """What the page's script reads; outputs are in the order of the page."""
        outputs: list[Text] = []
        for item in self.items:
            outputs += [(item.name, output.sample.system) for output in item.outputs]
        index_of_system = {system: index for index, system in enumerate(self.systems)}
        systems_of_outputs = [index_of_system[system] for _, system in outputs]
        return {
            "items": [item.name for item in self.items],
            "failed": [item.failed for item in self.items],
            "systems": self.systems,
            "system": systems_of_outputs,
            "measures": [measure.data(outputs) for measure in self.measures],
            "facets": [facet.data() for facet in self.facets],
        }


_Texts = Mapping[str, Sequence[Output]]
"""Every item's texts, without their scores."""


def _scored(result: Result) -> Items:
    """Lay out a run that scores texts."""
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    measure_by_column = measures_of_columns(result, rows)
    measures = with_leads(measure_by_column)
    measures += judge_spreads(measures)
    measures += people_gaps(measures, result.table.samples)
    texts = _texts_by_item(result)
    items = []
    for item, lowest in _worst_first(texts, measures):
        outputs = []
        n_lost = 0
        for text in texts[item]:
            text_key = text.sample.key
            rows_of_text: dict[str, Score | Failure] = {}
            for column_name, measure in measure_by_column.items():
                row = rows.get((*text_key, column_name))
                if row is not None:
                    rows_of_text[column_name] = row
                if measure.values[text_key] is False:
                    n_lost += 1
            output = _scored_output(text, rows_of_text, measure_by_column)
            outputs.append(output)
        items.append(_item(item, outputs, n_lost, lowest))
    return _items(result, items, measures, texts)


def _scored_output(
    text: Output,
    rows: Mapping[str, Score | Failure],
    measure_by_column: Mapping[str, Measure],
) -> Output:
    """Lay out a text with its rows by column. Equal failures of metrics share a finding."""
    findings: list[Finding] = []
    metrics: list[tuple[str, str]] = []
    failures_by_reason: dict[tuple[str, str], list[Failure]] = {}
    qags: tuple[QagsQuestion, ...] = ()
    claims: dict[str, tuple[CheckedClaim, ...]] = {}
    for column_name, row in rows.items():
        measure = measure_by_column[column_name]
        if measure.column.kind == "criterion":
            finding = build_finding(
                row,
                measure.column,
                measure.places,
                name=measure.title,
                judge=measure.judge,
            )
            findings.append(finding)
        elif isinstance(row, Score):
            value = number(row.value, measure.places)
            metrics.append((measure.title, value))
        else:
            reason = (row.error, row.message)
            failures_by_reason.setdefault(reason, []).append(row)
        qags = qags or qags_table(measure.column, row)
        claims[column_name] = checked_claims(text.sample, measure.column, row)
    for failure, *more in failures_by_reason.values():
        title = column_title(failure.column)
        if more:
            title = f"{title} and {len(more)} more"
        finding = Finding(title, value="", replies=Replies(), failure=failure)
        findings.append(finding)
    claims_by_metric = []
    for column_name in CLAIMS:
        if claims.get(column_name):
            title = column_title(column_name)
            claims_by_metric.append((title, claims[column_name]))
    return replace(
        text,
        findings=tuple(findings),
        metrics=tuple(metrics),
        qags=qags,
        claims_by_metric=tuple(claims_by_metric),
        reference_claims=claims.get(REFERENCE_CLAIMS, ()),
    )


def _ranked(result: Result) -> Items:
    """Lay out a run that compares texts."""
    rows_by_item: dict[str, list[Score | Failure]] = {}
    for row in result.table.rows():
        rows_by_item.setdefault(row.item, []).append(row)
    all_texts = _texts_by_item(result)
    texts: dict[str, list[Output]] = {}
    systems_by_item: dict[str, list[str]] = {}
    for item_name, outputs in all_texts.items():
        if item_name in rows_by_item:
            texts[item_name] = outputs
            systems_by_item[item_name] = [output.sample.system for output in outputs]
    labels = _ranking_labels(result)
    tie_labels = {column.name: tie_label(column) for column in result.table.columns}
    orders = result.info.orders or 2
    comparisons: dict[str, tuple[Compared, ...]] = {}
    for item_name, systems in systems_by_item.items():
        rows = rows_by_item[item_name]
        comparisons[item_name] = compared(rows, labels, systems, orders, tie_labels)
    measures = ranking_measures(labels, systems_by_item, comparisons)
    order = _worst_first(texts, measures)
    n_pairs = {}
    for item_name, contests in comparisons.items():
        n_pairs[item_name] = sum(len(contest.pairs) for contest in contests)
    names_in_order = [item_name for item_name, _ in order]
    fitting = _fitting(names_in_order, n_pairs, MOST_PAIRS)
    items = []
    for item_name, lowest in order:
        if item_name in fitting:
            n_failed = sum(map(failed, rows_by_item[item_name]))
            item = _item(item_name, texts[item_name], n_failed, lowest)
            items.append(replace(item, comparisons=comparisons[item_name]))
    return _items(result, items, measures, texts)


def _ranking_labels(result: Result) -> dict[str, str]:
    """Return the heading of each ranking by its column; that of a panel's judge names the judge."""
    labels: dict[str, str] = {}
    for group in groups(result):
        for column_name, part_heading in group.parts.items():
            label = group.name
            if part_heading:
                label = f"{group.name}: {part_heading}"
            labels[column_name] = label
    return {ranking.column: labels[ranking.column] for ranking in result.rankings}


@dataclass(frozen=True, slots=True)
class _TextScore:
    """A score of a text as a share of its scale, from 0 (worst) to 1 (best).

    `mean` is the text's mean share, 0 if one of its scores is missing.
    """

    share: float
    mean: float
    measure: Measure
    text: Text


def _worst_first(
    texts: _Texts, measures: Sequence[Measure]
) -> list[tuple[str, Lowest | None]]:
    """Return the worst items that fit on the page.

    They are ordered by their lowest score, then by the mean of that text's scores.
    """
    leads = [measure for measure in measures if measure.leads]
    worst_by_item: dict[str, _TextScore] = {}
    for item_name, outputs in texts.items():
        scores: list[_TextScore] = []
        for output in outputs:
            text = (item_name, output.sample.system)
            scores += _text_scores(text, leads)
        if scores:
            worst = min(scores, key=lambda score: (score.share, score.mean))
            worst_by_item[item_name] = worst

    def badness(item_name: str) -> tuple[float, float]:
        worst = worst_by_item.get(item_name)
        # Items without a score come last.
        if worst is None:
            return (math.inf, 0.0)
        return (worst.share, worst.mean)

    # The page cannot hold all items of a large run, so it gets the worst ones.
    order = sorted(texts, key=badness)
    n_outputs = {item_name: len(outputs) for item_name, outputs in texts.items()}
    fitting = _fitting(order, n_outputs, MOST_OUTPUTS)
    listed = []
    for item_name in order:
        if item_name in fitting:
            lowest = _lowest(worst_by_item.get(item_name))
            listed.append((item_name, lowest))
    return listed


def _text_scores(text: Text, leads: Sequence[Measure]) -> list[_TextScore]:
    """Return the scores of a text by the measures that order the items."""
    share_by_measure: list[tuple[Measure, float]] = []
    for measure in leads:
        share = measure.share(text)
        if share is not None:
            share_by_measure.append((measure, share))
    mean = 0.0
    # A text that lacks a score has no mean.
    if 0 < len(share_by_measure) == len(leads):
        total = sum(share for _, share in share_by_measure)
        mean = total / len(leads)
    return [
        _TextScore(share, mean, measure, text) for measure, share in share_by_measure
    ]


def _lowest(worst: _TextScore | None) -> Lowest | None:
    if worst is None:
        return None
    measure = worst.measure
    value = float(measure.values[worst.text] or 0)
    text = score_text(measure.column, value, measure.places)
    # From −1, the worst end of the scale, to 1.
    shade = round(2 * worst.share - 1, 2)
    _, worst_system = worst.text
    return Lowest(
        text=text,
        shade=shade,
        system="" if measure.per_item else worst_system,
        column=measure.name,
        worst_system=worst_system,
    )


def _items(
    result: Result,
    items: Sequence[Item],
    measures: Sequence[Measure],
    texts: _Texts,
) -> Items:
    """Put the browser together, with a note if items do not fit."""
    note = ""
    if len(items) < len(texts):
        n_listed = sum(len(item.outputs) for item in items)
        n_texts = sum(len(outputs) for outputs in texts.values())
        note = (
            f"These are the {len(items):,} lowest of {len(texts):,} items "
            f"({n_listed:,} of {n_texts:,} texts). All are in scores.parquet."
        )
    tags_of_outputs = []
    for item in items:
        tags_of_outputs += [(*item.tags, *output.tags) for output in item.outputs]
    return Items(
        items=tuple(items),
        note=note,
        systems=result.table.systems,
        measures=tuple(measures),
        facets=facets_of(tags_of_outputs),
    )


def _texts_by_item(result: Result) -> dict[str, list[Output]]:
    """Return every item's texts with the data's own columns, and without scores."""
    names: set[str] = set()
    for criterion in result.info.criteria.values():
        names.update(criterion.needs)
    names -= _SHOWN_APART
    by_item: dict[str, list[Output]] = {}
    for sample in result.table.samples:
        # By column, because two criteria may read one under different names.
        others: dict[str, str] = {}
        for column_name in _request_first(names):
            column = column_of(sample, column_name)
            value = sample.extra.get(column)
            if value is not None:
                if column_name == "request":
                    value = request_in_cell(value)
                others[column] = _shown_value(value, is_list=column_name == "passages")
        columns_read = tuple(others.items())
        tags = tuple(_tags(sample, others))
        output = Output(sample, columns_read, tags=tags)
        by_item.setdefault(sample.item, []).append(output)
    return by_item


def _request_first(column_names: Collection[str]) -> list[str]:
    """Return the names in order; the request says what the other columns are about."""
    return sorted(
        column_names, key=lambda column_name: (column_name != "request", column_name)
    )


def _shown_value(value: Any, *, is_list: bool) -> str:
    """Write a value of the data's own columns. Several texts of a list are numbered."""
    texts = texts_of(value) if is_list else [str(value)]
    if len(texts) == 1:
        return texts[0]
    numbered = [f"[{number}] {text}" for number, text in enumerate(texts, 1)]
    return "\n\n".join(numbered)


def _tags(sample: Sample, others: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the short values of the data's own columns, except the columns `others`."""
    for column_name, value in sample.extra.items():
        if column_name in others or not isinstance(value, str | int | float):
            continue
        if value in (sample.output, sample.source):  # a field was read from this column
            continue
        text = one_line(str(value))
        if 0 < len(text) <= _MAX_TAG:
            yield column_name, text


def _item(
    item_name: str,
    outputs: Sequence[Output],
    n_lost: int,
    lowest: Lowest | None,
) -> Item:
    """Lay out an item; what all its outputs share is moved from them to the item."""
    shared_columns = _in_all([output.others for output in outputs])
    shared_tags = _in_all([output.tags for output in outputs])
    samples = [output.sample for output in outputs]
    conversations = [messages_before(sample) for sample in samples]
    is_shared = len({*conversations}) == 1
    own_outputs: list[Output] = []
    for output, messages in zip(outputs, conversations, strict=True):
        own_columns = [pair for pair in output.others if pair not in shared_columns]
        own_tags = [pair for pair in output.tags if pair not in shared_tags]
        own_output = replace(output, others=tuple(own_columns), tags=tuple(own_tags))
        if not is_shared:
            own_output = replace(own_output, messages=messages)
        own_outputs.append(own_output)
    sources = (sample.source for sample in samples if sample.source is not None)
    references = (sample.references for sample in samples if sample.references)
    shared_messages = conversations[0] if is_shared else ()
    return Item(
        name=item_name,
        source=next(sources, None),
        references=next(references, ()),
        others=shared_columns,
        outputs=tuple(own_outputs),
        failed=n_lost,
        messages=shared_messages,
        tags=shared_tags,
        lowest=lowest,
    )


def _in_all(pairs_by_output: Sequence[Pairs]) -> Pairs:
    """Return the names and values that every output has, in the order of the first."""
    first_pairs, *others = pairs_by_output
    shared = set(first_pairs).intersection(*others)
    return tuple(pair for pair in first_pairs if pair in shared)
