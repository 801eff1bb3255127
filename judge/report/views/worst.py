"""The worst texts of a run, each with what it answers, its reason and the data's own columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from judge.core.format import cut_middle, one_line, plural
from judge.core.records import Sample, Score
from judge.data.answers import first_column, request_in_cell
from judge.data.column_names import REQUEST_COLUMNS
from judge.data.conversations import MESSAGES, messages_before
from judge.report.document import Block, Document, Facts, Section
from judge.report.format import column_title, score_text
from judge.report.views.columns import score_places
from judge.report.views.provenance import build_provenance
from judge.results.worst_list import WorstList
from judge.results.worst_texts import LowScore, worst_texts

_MAX_TEXT = 1_200  # characters of a text; JSON has the whole one
_KEYS = (
    "item",
    "system",
    "column",
    "score",
    "same_score",
    "reason",
    "source",
    "output",
)
"""Keys of a text in JSON and CSV; the data's own columns follow."""
Texts = tuple[tuple[str, str], ...]
"""Names and texts."""


def view(listed: WorstList) -> Document:
    """Lay out the worst texts."""
    headings = listed.result.table.own_columns(_KEYS)
    n_with_share = _count_texts_by_share(listed)
    # A table in a spreadsheet has no place for a sentence, so each row counts its ties.
    texts = []
    for low_score in listed.lowest:
        n_others = n_with_share[low_score.share] - 1
        texts.append(_text_data(listed, low_score, headings, same_score=n_others))
    n_ties = _count_ties(listed, n_with_share)
    lowest_texts = plural(len(listed.lowest), "text")
    all_texts = plural(len(listed.samples), "text")
    title_of_run = build_provenance(listed.result).title
    return Document(
        title=f"Worst {lowest_texts}",
        scope=f"of {all_texts}",
        about=(title_of_run,),
        remarks=tuple(_ties_in_words(n_ties)),
        sections=tuple(_sections(listed)),
        data={"texts": texts, "ties": n_ties},
        records=tuple(texts),
    )


def _sections(listed: WorstList) -> Iterator[Section]:
    for index, low_score in enumerate(listed.lowest, 1):
        score = low_score.score
        places = score_places(listed.result, low_score.column)
        value = score_text(low_score.column, score.value, places)
        column_name = column_title(low_score.column.name)
        title = f"{column_name} {value}: item {one_line(score.item)}"
        if len(listed.result.table.systems) > 1:
            title += f", system {one_line(score.system)}"
        make_blocks = partial(_blocks, listed, low_score)
        yield Section(f"worst-{index}", title, make_blocks)


def _count_texts_by_share(listed: WorstList) -> Counter[float]:
    """Count the run's texts by their lowest score, as a share of its scale."""
    all_texts = worst_texts(listed.result.table, len(listed.samples))
    return Counter(text.share for text in all_texts)


def _count_ties(listed: WorstList, n_with_share: Counter[float]) -> int:
    """Count the further texts that have the same score as the last one that is shown."""
    last = listed.lowest[-1].share
    n_shown = sum(text.share == last for text in listed.lowest)
    return n_with_share[last] - n_shown


def _ties_in_words(n_more: int) -> Iterator[str]:
    if n_more:
        more_texts = plural(n_more, "more text")
        verb = "has" if n_more == 1 else "have"
        yield (
            f"{more_texts} {verb} the same score as the last one here; texts with equal scores are "
            "ordered by their mean over the criteria, then as in the data."
        )


def _blocks(listed: WorstList, low_score: LowScore) -> Iterator[Block]:
    sample = listed.samples[low_score.score.key]
    facts = [
        *_texts_before(sample),
        ("output", sample.output),
        *_reasons(low_score.score),
        *_other_values(listed, low_score),
        *_own_columns(sample),
    ]
    shortened = []
    for fact_name, text in facts:
        short_text = cut_middle(text, _MAX_TEXT)
        shortened.append((fact_name, short_text))
    yield Facts(tuple(shortened))


def _texts_before(sample: Sample) -> Texts:
    """Return what the text was written for: its source, its request, and the messages before it."""
    texts = []
    if sample.source:
        texts.append(("source", sample.source))
    column = first_column(sample, REQUEST_COLUMNS)
    if column:
        request = request_in_cell(sample.extra[column])
        texts.append((column, request))
    return (*texts, *messages_before(sample))


def _reasons(score: Score) -> Iterator[tuple[str, str]]:
    """Yield why the judge gave a score, as far as it said so."""
    if score.provenance.reason:
        yield "reason", score.provenance.reason
    if score.provenance.quote:
        yield "quote", f"“{score.provenance.quote}”"


def _other_values(listed: WorstList, low_score: LowScore) -> Iterator[tuple[str, str]]:
    """Yield the text's values in the run's other criteria, in one line."""
    columns = {column.name: column for column in listed.result.table.columns}
    values = []
    for row in listed.rows[low_score.score.key]:
        column = columns[row.column]
        is_shown = column.name == low_score.column.name
        if is_shown or column.kind != "criterion" or column.judge:
            continue
        value = "failed"
        if isinstance(row, Score):
            places = score_places(listed.result, column)
            value = score_text(column, row.value, places)
        column_name = column_title(column.name)
        values.append(f"{column_name} {value}")
    if values:
        yield "other scores", " · ".join(values)


def _own_columns(sample: Sample) -> Iterator[tuple[str, str]]:
    """Yield the other columns of the data that have a value."""
    shown_names = {MESSAGES, first_column(sample, REQUEST_COLUMNS)}
    for column_name, value in sample.extra.items():
        # A field may have been read from this column.
        fields = (sample.output, sample.source)
        is_shown = column_name in shown_names or value in fields
        if not is_shown and value not in (None, "", [], {}):
            yield column_name, str(value)


def _text_data(
    listed: WorstList,
    low_score: LowScore,
    headings: Mapping[str, str],
    *,
    same_score: int,
) -> dict[str, Any]:
    """Return a text for JSON.

    `headings` are the keys of the data's own columns, by name. `same_score` counts the run's other
    texts with the same lowest score.
    """
    score = low_score.score
    sample = listed.samples[score.key]
    keys = (*_KEYS, *headings.values())
    data: dict[str, Any] = dict.fromkeys(keys)
    data["item"] = score.item
    data["system"] = score.system
    data["column"] = score.column
    data["score"] = score.value
    data["same_score"] = same_score
    data["reason"] = score.provenance.reason
    data["source"] = sample.source
    data["output"] = sample.output
    for column_name, value in sample.extra.items():
        data[headings[column_name]] = value
    return data
