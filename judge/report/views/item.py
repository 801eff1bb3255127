"""One item of a run as a document: its source, and each system's text with its scores, reasons and ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import chain
from typing import Any

from judge.core.format import number, one_line, plural
from judge.core.records import Column, Failure, Sample, Score
from judge.report.document import (
    Block,
    Cell,
    Content,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
    text_table,
)
from judge.report.format import column_title
from judge.report.views.columns import places
from judge.report.views.item_scores import (
    CLAIM_HEADS,
    CLAIMS,
    Line,
    build_finding,
    checked_claims,
    qags_table,
    question_table,
)
from judge.report.views.provenance import build_provenance
from judge.results.item import ResultItem
from judge.stats.pairwise import TIE

_SOURCE = 1_200  # characters of a source


def view(item: ResultItem) -> Document:
    """Lay out an item."""
    columns = {column.name: column for column in item.result.table.columns}
    failed = sum(isinstance(row, Failure) for rows in item.rows.values() for row in rows) + len(
        item.unwritten
    )
    source = next((sample.source for sample in item.samples if sample.source is not None), None)
    references = next((sample.references for sample in item.samples if sample.references), ())
    above: list[Block] = []
    if source is not None:
        end = f"… ({len(source):,} characters)" if len(source) > _SOURCE else ""
        above.append(Paragraph(f"{source[:_SOURCE]}{end}"))
    if references:
        above.append(Facts(tuple(("reference", reference) for reference in references)))
    sections = [Section("source", "Source", partial(tuple, above))] if source or references else []
    sections += [
        Section(
            f"system-{place}",
            one_line(item.name(sample)),
            partial(_output_blocks, item, sample, columns),
        )
        for place, sample in enumerate(item.samples)
    ]
    sections += [
        Section(f"unwritten-{place}", one_line(item.name(row)), partial(tuple, [text]))
        for place, row in enumerate({row.key: row for row in item.unwritten}.values())
        for text in [Paragraph(f"No output. {row.error}: {row.message}")]
    ]
    return Document(
        title=f"Item {one_line(item.item)}",
        scope=plural(len(item.samples), "text"),
        about=(build_provenance(item.result).title,),
        sections=tuple(sections),
        footer=(f"{failed:,} failed",) if failed else (),
        data={
            "item": item.item,
            "source": source,
            "references": references,
            "outputs": [
                {
                    "item": sample.item,
                    "system": sample.system,
                    "output": sample.output,
                    "human": dict(sample.human),
                    "scores": [_record(row) for row in rows if isinstance(row, Score)],
                    "failures": [_record(row) for row in rows if isinstance(row, Failure)],
                    "questions": [asdict(line) for line in _questions(rows, columns)],
                    "claims": {
                        row.column: [asdict(claim) for claim in claims]
                        for row in rows
                        if (claims := checked_claims(sample, columns[row.column], row))
                    },
                }
                for sample in item.samples
                for rows in [item.rows[sample.key]]
            ],
        },
        records=tuple(
            _record(row) for row in (*chain.from_iterable(item.rows.values()), *item.unwritten)
        ),
    )


def _output_blocks(
    item: ResultItem, sample: Sample, columns: Mapping[str, Column]
) -> Iterator[Block]:
    yield Paragraph(sample.output)
    rows = item.rows[sample.key]
    if scores := [
        row for row in rows if columns[row.column].kind == "criterion" or isinstance(row, Failure)
    ]:
        yield _score_table(item, scores, columns)
    metrics = [
        f"{column_title(row.column)} {number(row.value, places(item.result, columns[row.column]))}"
        for row in rows
        if isinstance(row, Score) and columns[row.column].kind == "metric"
    ]
    ratings = [f"{name} {value:.3g}" for name, value in sample.human.items()]
    named = (("metrics", metrics), ("human ratings", ratings))
    facts = tuple((name, " · ".join(values)) for name, values in named if values)
    if facts:
        yield Facts(facts)
    for row in scores:
        if answers := build_finding(row, columns[row.column]).answers:
            name = f"answers-{row.column}-{item.name(sample)}"
            yield text_table(("answer", column_title(row.column)), answers, name=name)
    if lines := _questions(rows, columns):
        yield question_table(lines, f"qags-{item.name(sample)}")
    for row in rows:
        if claims := checked_claims(sample, columns[row.column], row):
            cells = [
                [Cell(text, tone="" if claim.supported else "bad") for text in claim.cells]
                for claim in claims
            ]
            kind = "claim" if row.column in CLAIMS else "reference claim"
            heads = CLAIM_HEADS[0], kind, CLAIM_HEADS[2]
            yield text_table(heads, cells, name=f"{row.column}-{item.name(sample)}")


def _score_table(
    item: ResultItem, rows: list[Score | Failure], columns: Mapping[str, Column]
) -> Table:
    """Return a row per score or failure. In a ranking they compare the system's text, shown first, with another."""
    compared = any(row.rival for row in rows)
    heads = (
        ("criterion", "shown second", "preferred", "reason")
        if compared
        else ("criterion", "score", "reason")
    )
    cells: list[tuple[Content, ...]] = []
    for row in rows:
        column = columns[row.column]
        name = f"{column.criterion} ({column.judge})" if column.judge else column.name
        rival = [one_line(row.rival)] if compared else []
        if isinstance(row, Failure):
            value, reason = Cell("failed", tone="bad"), f"{row.error}: {row.message}"
        else:
            finding = build_finding(row, column, max(2, places(item.result, column)))
            preferred = one_line(row.system if row.value > TIE else row.rival)
            comparison = (
                "tie" if row.value == TIE else f"{preferred} ({max(row.value, 1 - row.value):.0%})"
            )
            text = f"{finding.value} ({finding.below})" if finding.below else finding.value
            value = Cell(comparison if row.rival else text, tone="bad" if finding.below else "")
            reason = " ".join(
                filter(None, (finding.reason, finding.quote and f"“{finding.quote}”"))
            )
        cells.append((column_title(name), *rival, value, reason))
    return text_table(heads, cells, name="scores")


def _questions(
    rows: tuple[Score | Failure, ...], columns: Mapping[str, Column]
) -> tuple[Line, ...]:
    return next(filter(None, (qags_table(columns[row.column], row) for row in rows)), ())


def _record(row: Score | Failure) -> dict[str, Any]:
    fields = (
        "item",
        "system",
        "rival",
        "column",
        "value",
        "method",
        "reading",
        "reason",
        "quote",
        "error",
        "message",
    )
    source = row.provenance if isinstance(row, Score) else row
    answers = {"answers": [asdict(answer) for answer in source.answers]} if source.answers else {}
    return {name: getattr(row, name, getattr(source, name, None)) for name in fields} | answers
