"""One item of a run as a document: its source, and each system's text with its scores, reasons and ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import Any

from judge.core.format import cut_middle, number, one_line, plural
from judge.core.records import Column, Failure, Sample, Score
from judge.report.document import (
    Block,
    Cell,
    Content,
    Document,
    Facts,
    Heading,
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
from judge.report.views.provenance import build_provenance, message_blocks
from judge.results.item import ResultItem
from judge.results.prompts import TextPrompt
from judge.stats.pairwise import TIE

_SOURCE = 1_200  # characters of a source
_MAX_MESSAGE = 20_000  # characters of a message of a prompt; JSON has all


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
    if item.prompts:
        sections.append(Section("prompts", "Prompts", partial(_prompt_blocks, item)))
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
            "prompts": [_prompt_record(item.samples[0], prompt) for prompt in item.prompts],
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


def _prompt_blocks(item: ResultItem) -> Iterator[Block]:
    """Yield what the judges were asked about the item's first text."""
    others = len(item.samples) - 1
    if others:
        yield Paragraph(
            f"As sent for {item.name(item.samples[0])}; --system NAME shows those of another system.",
            "muted",
        )
    for prompt in item.prompts:
        title = one_line(", ".join(map(column_title, prompt.columns)))
        if prompt.opponent:
            title = f"{title}, against {one_line(prompt.opponent)}"
        yield Heading(title)
        if prompt.problem:
            yield Paragraph(prompt.problem)
        messages = [
            replace(message, content=cut_middle(message.content, _MAX_MESSAGE))
            for message in prompt.messages
        ]
        yield from message_blocks(messages)


def _prompt_record(sample: Sample, prompt: TextPrompt) -> dict[str, Any]:
    """Return a prompt as JSON has it, with its whole messages."""
    return {
        "item": sample.item,
        "system": sample.system,
        "opponent": prompt.opponent,
        "columns": prompt.columns,
        "messages": [asdict(message) for message in prompt.messages],
        "problem": prompt.problem,
    }


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
