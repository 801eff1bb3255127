"""One item of a run: its source, and each system's text with its scores, reasons and ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from typing import Any

from judge.core.failure_kinds import failure_kind
from judge.core.format import cut_middle, number, one_line, plural
from judge.core.records import Column, Failure, Sample, Score
from judge.data.answers import column_of, texts_of
from judge.data.conversations import ANSWERING, messages_before
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
    Tone,
    text_table,
)
from judge.report.format import column_title
from judge.report.views.columns import places, score_places
from judge.report.views.item_scores import (
    CLAIM_HEADS,
    Finding,
    QagsQuestion,
    build_finding,
    qags_table,
    question_table,
)
from judge.report.views.provenance import build_provenance, message_blocks
from judge.results.checked_claims import CLAIMS, CheckedClaim, checked_claims
from judge.results.item import ResultItem
from judge.results.prompts import TextPrompt
from judge.stats.compared_pairs import preferred_side, tie_label

_MAX_SOURCE = 1_200  # characters of a source
_MAX_MESSAGE = 20_000  # characters of a prompt's message; JSON has the whole message

Columns = Mapping[str, Column]
"""A run's columns by name."""
Conversation = tuple[tuple[str, str], ...]
"""The role and the text of each message."""
Rows = tuple[Score | Failure, ...]
"""The scores and failures of a text."""


def view(item: ResultItem) -> Document:
    """Lay out an item."""
    columns = {column.name: column for column in item.result.table.columns}
    scored = chain.from_iterable(item.rows.values())
    rows = [*scored, *item.unwritten]
    records = [_record(row) for row in rows]
    n_failed = sum(isinstance(row, Failure) for row in rows)
    footer = []
    if n_failed:
        footer.append(f"{n_failed:,} failed")
    item_name = one_line(item.item)
    title_of_run = build_provenance(item.result).title
    return Document(
        title=f"Item {item_name}",
        scope=plural(len(item.samples), "text"),
        about=(title_of_run,),
        sections=tuple(_sections(item, columns)),
        footer=tuple(footer),
        data=_data(item, columns),
        records=tuple(records),
    )


def _source(item: ResultItem) -> str | None:
    """Return the first source that a text of the item has."""
    sources = (sample.source for sample in item.samples)
    return next((source for source in sources if source is not None), None)


def _references(item: ResultItem) -> tuple[str, ...]:
    """Return the first references that a text of the item has."""
    references = (sample.references for sample in item.samples)
    return next(filter(None, references), ())


def _sections(item: ResultItem, columns: Columns) -> Iterator[Section]:
    """Yield the source, the shared messages, each text, each missing text, and the prompts."""
    if _source(item) is not None or _references(item) or _answer_facts(item):
        yield Section("source", "Source", partial(_source_blocks, item))
    shared = _shared_messages(item)
    if shared:
        conversation = Facts(shared)
        make_block = partial(_single_block, conversation)
        yield Section("conversation", "Conversation", make_block)
    for index, sample in enumerate(item.samples):
        title = one_line(item.name(sample))
        make_blocks = partial(_output_blocks, item, sample, columns)
        yield Section(f"system-{index}", title, make_blocks)
    # A text that could not be written has a failure in every column. One per text tells the reason.
    failure_of_text = {row.key: row for row in item.unwritten}
    for index, row in enumerate(failure_of_text.values()):
        error = failure_kind(row.error)
        reason = Paragraph(f"No output; {error}: {row.message}")
        title = one_line(item.name(row))
        yield Section(f"unwritten-{index}", title, partial(_single_block, reason))
    if item.prompts:
        yield Section("prompts", "Prompts", partial(_prompt_blocks, item))


def _single_block(block: Block) -> tuple[Block]:
    """Return the blocks of a section that has only one."""
    return (block,)


def _source_blocks(item: ResultItem) -> Iterator[Block]:
    """Yield the source, cut if it is long, the request, the passages and the references."""
    source = _source(item)
    references = _references(item)
    if source is not None:
        source_text = source
        if len(source) > _MAX_SOURCE:
            source_text = f"{source[:_MAX_SOURCE]}… ({len(source):,} characters)"
        yield Paragraph(source_text)
    reference_facts = [("reference", reference) for reference in references]
    facts = (*_answer_facts(item), *reference_facts)
    if facts:
        yield Facts(facts)


def _answer_facts(item: ResultItem) -> tuple[tuple[str, str], ...]:
    """Return the request and the passages of the first text, by the columns that have them."""
    if not item.samples:
        return ()
    sample = item.samples[0]
    facts: list[tuple[str, str]] = []
    for variable in ("request", "passages"):
        column = column_of(sample, variable)
        if column:
            texts = texts_of(sample.extra[column])
            facts += [(column, text) for text in texts]
    return tuple(facts)


def _shared_messages(item: ResultItem) -> Conversation:
    """Return the messages before the texts, none if the texts follow different ones."""
    conversations = {messages_before(sample) for sample in item.samples}
    return conversations.pop() if len(conversations) == 1 else ()


def _data(item: ResultItem, columns: Columns) -> dict[str, Any]:
    """Return an item for JSON."""
    outputs = []
    for sample in item.samples:
        rows = item.rows[sample.key]
        outputs.append(_output_record(sample, rows, columns))
    # About the first text; `--system NAME` shows the prompts about another.
    prompts = [_prompt_record(item.samples[0], prompt) for prompt in item.prompts]
    return {
        "item": item.item,
        "source": _source(item),
        "references": _references(item),
        "outputs": outputs,
        "prompts": prompts,
    }


def _output_record(sample: Sample, rows: Rows, columns: Columns) -> dict[str, Any]:
    """Return a text for JSON, with its scores, failures, questions and claims."""
    claims_by_column: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        claims = checked_claims(sample, columns[row.column], row)
        if claims:
            claims_by_column[row.column] = [asdict(claim) for claim in claims]
    scores = [_record(row) for row in rows if isinstance(row, Score)]
    failures = [_record(row) for row in rows if isinstance(row, Failure)]
    questions = [asdict(line) for line in _questions(rows, columns)]
    return {
        "item": sample.item,
        "system": sample.system,
        **_messages_record(sample),
        "output": sample.output,
        "human": dict(sample.human),
        "scores": scores,
        "failures": failures,
        "questions": questions,
        "claims": claims_by_column,
    }


def _messages_record(sample: Sample) -> dict[str, Any]:
    """Return the messages before a text for JSON; nothing if there are none."""
    messages = []
    for role, text in messages_before(sample):
        messages.append({"role": role, "content": text})
    return {"messages": messages} if messages else {}


def _output_blocks(
    item: ResultItem, sample: Sample, columns: Columns
) -> Iterator[Block]:
    """Yield a text with its scores, metrics, ratings, answers, questions and claims."""
    messages = messages_before(sample)
    if messages and not _shared_messages(item):
        yield Facts((*messages, (ANSWERING, sample.output)))
    else:
        yield Paragraph(sample.output)
    rows = item.rows[sample.key]
    text_name = item.name(sample)
    # The scores of metrics have no reason, so they are facts and not rows of the table.
    table_rows = [row for row in rows if not _is_score_of_metric(row, columns)]
    if table_rows:
        yield _score_table(item, table_rows, columns)
    facts = _metrics_and_ratings(item, sample, columns)
    if facts:
        yield Facts(facts)
    for row in table_rows:
        answers = build_finding(row, columns[row.column]).answers
        if answers:
            heads = ("answer", column_title(row.column))
            yield text_table(heads, answers, name=f"answers-{row.column}-{text_name}")
    questions = _questions(rows, columns)
    if questions:
        yield question_table(questions, f"qags-{text_name}")
    for row in rows:
        claims = checked_claims(sample, columns[row.column], row)
        if claims:
            yield _claim_table(claims, row.column, f"{row.column}-{text_name}")


def _is_score_of_metric(row: Score | Failure, columns: Columns) -> bool:
    return isinstance(row, Score) and columns[row.column].kind == "metric"


def _metrics_and_ratings(
    item: ResultItem,
    sample: Sample,
    columns: Columns,
) -> tuple[tuple[str, str], ...]:
    """Return all metrics of a text as one fact, and all human ratings as another."""
    metrics = []
    for row in item.rows[sample.key]:
        column = columns[row.column]
        if isinstance(row, Score) and column.kind == "metric":
            value = number(row.value, places(item.result, column))
            title = column_title(row.column)
            metrics.append(f"{title} {value}")
    ratings = []
    for rating_name, rating in sample.human.items():
        ratings.append(f"{rating_name} {rating:.3g}")
    facts = []
    if metrics:
        facts.append(("metrics", " · ".join(metrics)))
    if ratings:
        facts.append(("human ratings", " · ".join(ratings)))
    return tuple(facts)


def _claim_table(claims: Sequence[CheckedClaim], column: str, table_name: str) -> Table:
    """Return a row per claim of a text, or of its references; unsupported ones are marked."""
    rows = []
    for claim in claims:
        tone: Tone = "" if claim.supported else "bad"
        rows.append([Cell(text, tone=tone) for text in claim.cells])
    kind = "claim" if column in CLAIMS else "reference claim"
    mark, _, evidence = CLAIM_HEADS
    return text_table((mark, kind, evidence), rows, name=table_name)


def _prompt_blocks(item: ResultItem) -> Iterator[Block]:
    """Yield what the judges were asked about the item's first text."""
    if len(item.samples) > 1:
        first_text = item.name(item.samples[0])
        about = (
            f"As sent for {first_text}; --system NAME shows those of another system."
        )
        yield Paragraph(about, "muted")
    for prompt in item.prompts:
        titles = map(column_title, prompt.columns)
        title = one_line(", ".join(titles))
        if prompt.opponent:
            title = f"{title}, against {one_line(prompt.opponent)}"
        yield Heading(title)
        if prompt.problem:
            yield Paragraph(prompt.problem)
        messages = []
        for message in prompt.messages:
            shortened = cut_middle(message.content, _MAX_MESSAGE)
            messages.append(replace(message, content=shortened))
        yield from message_blocks(messages)


def _prompt_record(sample: Sample, prompt: TextPrompt) -> dict[str, Any]:
    """Return a prompt for JSON, with its whole messages."""
    messages = [asdict(message) for message in prompt.messages]
    return {
        "item": sample.item,
        "system": sample.system,
        "opponent": prompt.opponent,
        "columns": prompt.columns,
        "messages": messages,
        "problem": prompt.problem,
    }


def _score_table(
    item: ResultItem,
    rows: Sequence[Score | Failure],
    columns: Columns,
) -> Table:
    """Return a table with a row per score or failure.

    In a ranking, each row compares the system's text, shown first, with the text of an opponent.
    """
    is_ranking = any(row.opponent for row in rows)
    heads: tuple[str, ...] = ("criterion", "score", "reason")
    if is_ranking:
        heads = ("criterion", "shown second", "preferred", "reason")
    lines: list[list[Content]] = []
    for row in rows:
        column = columns[row.column]
        # The columns of a panel's judges are named by criterion and judge.
        title = f"{column.criterion} ({column.judge})" if column.judge else column.name
        if isinstance(row, Failure):
            value = Cell("failed", tone="bad")
            reason = f"{failure_kind(row.error)}: {row.message}"
        else:
            finding = build_finding(row, column, score_places(item.result, column))
            value = _score_cell(row, finding, tie_label(column))
            quote = f"“{finding.quote}”" if finding.quote else ""
            reason = " ".join(filter(None, (finding.reason, quote)))
        line: list[Content] = [column_title(title), value, reason]
        if is_ranking:
            line.insert(1, one_line(row.opponent))
        lines.append(line)
    return text_table(heads, lines, name="scores")


def _score_cell(row: Score, finding: Finding, label_of_tie: str | None) -> Cell:
    """Return a score, or for a comparison the preferred system and its probability."""
    tone: Tone = "bad" if finding.fails else ""
    if not row.opponent:
        text = finding.value
        if finding.fails:
            text = f"{text} ({finding.fails})"
        return Cell(text, tone=tone)
    side = preferred_side(row, label_of_tie)
    if side == 0:
        return Cell("tie", tone=tone)
    preferred = row.system if side > 0 else row.opponent
    probability = max(row.value, 1 - row.value)
    name_and_probability = f"{one_line(preferred)} ({probability:.0%})"
    return Cell(name_and_probability, tone=tone)


def _questions(rows: Rows, columns: Columns) -> tuple[QagsQuestion, ...]:
    """Return the questions and answers behind the first value of QAGS, if there is one."""
    for row in rows:
        lines = qags_table(columns[row.column], row)
        if lines:
            return lines
    return ()


def _record(row: Score | Failure) -> dict[str, Any]:
    """Return a row for JSON and CSV. Scores and failures have the same keys but for `answers`."""
    record: dict[str, Any] = {
        "item": row.item,
        "system": row.system,
        "opponent": row.opponent,
        "column": row.column,
        "value": None,
        "method": None,
        "reading": None,
        "reason": None,
        "quote": None,
        "error": None,
        "message": None,
    }
    origin = row if isinstance(row, Failure) else row.provenance
    record["method"] = origin.method
    record["reading"] = origin.reading
    if isinstance(row, Failure):
        record["error"] = row.error
        record["message"] = row.message
    else:
        record["value"] = row.value
        record["reason"] = row.provenance.reason
        record["quote"] = row.provenance.quote
    if origin.answers:
        record["answers"] = [asdict(answer) for answer in origin.answers]
    return record
