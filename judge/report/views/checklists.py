"""The questions of checklists that fail most, by system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from judge.core.format import plural, whole_percent
from judge.report.document import Block, Cell, Content, Heading, Table, table
from judge.report.document import Column as Head
from judge.report.format import column_title
from judge.results.result import Result
from judge.stats.checklists import Checklist, QuestionShare

_MOST = 3  # questions in the summary


def checklist_blocks(result: Result) -> Iterator[Block]:
    """Yield a table of questions and systems for each checklist."""
    for checklist in result.checklists:
        if len(result.checklists) > 1:
            yield Heading(column_title(checklist.column))
        name = f"checklist-{checklist.column}"
        yield _table(result, checklist, checklist.questions, name=name)


def checklist_summary(result: Result) -> Iterator[Table]:
    """Yield a table of the questions that fail most, for each criterion."""
    judges = {column.name: column.judge for column in result.table.columns}
    for checklist in result.checklists:
        failing = [
            question for question in checklist.questions if question.lowest[0] < 1
        ]
        if failing and not judges[checklist.column]:
            title = column_title(checklist.column)
            yield _table(
                result,
                checklist,
                failing[:_MOST],
                f"{title}: question",
                caption=f"Questions of {title} that fail most",
                name=f"checklist-{checklist.column}",
                short=True,
            )


def _table(
    result: Result,
    checklist: Checklist,
    questions: Sequence[QuestionShare],
    head: str = "question",
    **fields: Any,
) -> Table:
    weights = {question.weight for question in checklist.questions}
    # Equal weights are no information: without any, the column is left out.
    are_weighted = len(weights) > 1
    systems = result.table.systems
    rows: list[list[Content]] = []
    for question in questions:
        weight = f"{question.weight:g}" if are_weighted else None
        row: list[Content] = [question.question, weight]
        for system in systems:
            share = question.shares.get(system)
            n_texts = question.n.get(system, 0)
            cell = None
            if share is not None:
                cell = Cell(whole_percent(share), f"n = {n_texts:,}", value=share)
            row.append(cell)
        rows.append([*row, question.unanswered or None])
    names = (Head(system, better="higher") for system in systems)
    all_questions = plural(len(checklist.questions), "question")
    table_key = "Share of yes."
    if len(questions) < len(checklist.questions):
        table_key = f"Share of yes: the lowest {len(questions)} of {all_questions}."
    if checklist.others:
        others = plural(checklist.others, "question")
        table_key = f"{table_key} {others} about a single item: see the items."
    weight_head = Head("weight", optional=True)
    unanswered_head = Head("unanswered", optional=True)
    heads = (Head(head), weight_head, *names, unanswered_head)
    return table(heads, rows, table_key, sorts=True, **fields)
