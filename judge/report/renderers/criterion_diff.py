"""Render the differences between two criteria: console, Markdown and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judge.core.format import (
    escape_controls,
    format_interval,
    format_p,
    json_text,
    number,
    one_line,
    percent,
    plural,
    signed,
)
from judge.report.renderers.console import plain_table, printed, recording_console
from judge.report.renderers.markdown import LIMIT, escape, folded, markdown_table, page_of, summary
from judge.report.views.criterion_diff import diff_sentences
from judge.results.comparison import PLACES, CriterionDiff, Judged
from judge.stats.correlation import OVER

SCHEMA = "judge.criteria.diff/1"
_MOST_LINES = 120  # of one difference in a text
_AGREEMENT_HEADS = ("", "before", "after", "difference", "p", "n")
_REVERSAL_HEADS = ("", "share", "count")
_REST = "more lines are in --format json"


def render(diff: CriterionDiff, format: str, *, colour: bool) -> str:
    """Render a diff as console, markdown or json."""
    return _FORMATS[format](diff, colour)


def _first_lines(lines: Sequence[str]) -> tuple[list[str], str]:
    """The first lines with control characters escaped, and a note that counts the others."""
    n_more = len(lines) - _MOST_LINES
    return [escape_controls(text) for text in lines[:_MOST_LINES]], f"{n_more:,} {_REST}" if n_more > 0 else ""


def _differences(diff: CriterionDiff) -> Iterator[tuple[str, Sequence[str]]]:
    """Title and unified diff of the files and of each prompt."""
    if diff.diff:
        yield "The files", diff.diff
    for place, prompt in enumerate(diff.prompts.ways if diff.prompts else ()):
        texts = f"on {plural(prompt.texts, 'text')}"
        yield f"{'The prompt' if not place else 'In another way'} {texts}", prompt.lines


def _reversal_rows(judged: Judged) -> Iterator[tuple[str, str, str]]:
    for reversal in judged.turned:
        share = percent(reversal.turned / reversal.of if reversal.of else None)
        yield reversal.what, share, f"{reversal.turned:,} of {reversal.of:,}"
    for place in judged.places:
        had, has = (f"{rank} [{low}–{high}]" for rank, low, high in (place.before, place.after))
        yield f"rank of {one_line(place.system, 80)}", "", f"{had} → {has}"


def _agreement_rows(judged: Judged) -> Iterator[tuple[str, ...]]:
    for row in judged.agreement:
        e = row.difference
        cells = [number(side.value, PLACES) for side in (row.before, row.after)]
        size = "–" if e is None else f"{signed(e.value, PLACES)} {format_interval(e.low, e.high, PLACES)}".rstrip()
        p = "–" if e is None or e.p is None else format_p(e.p).removeprefix("p ").removeprefix("= ")
        yield OVER[row.level], *cells, f"{'≠' if row.is_significant else ''}{size}", p, f"{(e or row.after).n:,}"


def render_console(diff: CriterionDiff, colour: bool) -> str:
    """As wide as the terminal, or 80; without `colour` no escape code."""
    console, recording = recording_console(colour=colour)
    console.print(Text(" → ".join(map(one_line, diff.names)), "bold"))
    for note in diff.notes:
        console.print(Text(f"! {one_line(note)}", "yellow"))
    console.print(Text(" ".join(map(one_line, diff_sentences(diff)))))
    if diff.changes:
        console.print(Text("\nChanged", "bold"))
    for change in diff.changes:
        line = Text.assemble(
            f"{change.what}: ", (f"{one_line(change.before, 200)} → {one_line(change.after, 200)}", "bold")
        )
        console.print(Padding(line, (0, 0, 0, 2)))
    for title, lines in _differences(diff):
        console.print(Text(f"\n{title}", "bold"))
        first_lines, rest = _first_lines(lines)
        grid = Table.grid()  # a line that is too long is folded beside its mark
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for text in first_lines:
            mark, words = ("", text) if text[:3] in ("---", "+++") or text[:1] == "@" else (text[:1], text[1:])
            style = {"+": "green", "-": "red"}.get(mark, "" if mark else "dim")
            grid.add_row(Text(mark, style), Text(words, style))
        console.print(grid)
        if rest:
            console.print(Text(f"… {rest}.", "dim"))
    if (judged := diff.judged) is not None:
        if rows := list(_agreement_rows(judged)):
            console.print(Text(f"\nAgreement with people's {one_line(judged.rating)}, Spearman", "bold"))
            console.print(_table(_AGREEMENT_HEADS, rows))
        elif judged.lacking:
            console.print(Text(f"\n{one_line(judged.lacking)}."))
        if reversals := list(_reversal_rows(judged)):
            console.print(Text("\nWhat came out the other way", "bold"))
            console.print(_table(_REVERSAL_HEADS, reversals))
        if judged.comparison is not None:
            console.print(Text("\nScores", "bold"))
            console.file.write(_without_title(judged.comparison.report(colour=colour)) + "\n")
    return printed(recording)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = plain_table(heads[0])
    for head in heads[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _without_title(report: str) -> str:
    """Drop the title of a comparison, `before → after`: the diff has its own."""
    return report.partition("\n")[2].strip("\n")


def render_markdown(diff: CriterionDiff, colour: bool) -> str:
    """GitHub-flavoured, at most 60,000 characters: what does not fit is left out from the end, and said."""
    return page_of(_blocks(diff), LIMIT, "… The rest is in `--format json`.\n")


def _blocks(diff: CriterionDiff) -> Iterator[str]:
    yield f"## {escape(' → '.join(diff.names), 200)}"
    yield from (f"> {escape(note, 500)}" for note in diff.notes)
    yield f"**{escape(' '.join(diff_sentences(diff)))}**"
    if diff.changes:
        lines = [
            f"- {change.what}: {escape(change.before, 300)} → {escape(change.after, 300)}" for change in diff.changes
        ]
        yield "\n".join(["Changed:", "", *lines])
    if diff.judged is not None:
        judged = diff.judged
        if rows := list(_agreement_rows(judged)):
            yield f"### Agreement with people's {escape(judged.rating)}, Spearman"
            yield markdown_table(_AGREEMENT_HEADS, [(escape(first), *numbers) for first, *numbers in rows])
        elif judged.lacking:
            yield f"{escape(judged.lacking)}."
        if reversals := list(_reversal_rows(judged)):
            yield "### What came out the other way"
            yield markdown_table(_REVERSAL_HEADS, [(escape(first), *numbers) for first, *numbers in reversals])
        if judged.comparison is not None:
            yield f"### Scores\n\n{_without_title(judged.comparison.report('markdown'))}"
    for title, differing in _differences(diff):
        first_lines, rest = _first_lines(differing)
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", "\n".join(first_lines)) or [""]))
        body = "\n".join([f"{fence}diff", *first_lines, fence, *([f"… {rest}."] if rest else [])])
        yield folded(summary(title), body)


def render_json(diff: CriterionDiff, colour: bool) -> str:
    """Everything, as strict JSON: a number that does not exist is null."""
    document: dict[str, Any] = {"schema": SCHEMA, "told": list(diff_sentences(diff)), "notes": diff.notes}
    for side, name, criterion in zip(("before", "after"), diff.names, diff.criteria, strict=True):
        document[side] = {"name": name, "path": criterion.path, "digest": criterion.digest}
    document |= {
        "changes": [{"what": change.what, "before": change.before, "after": change.after} for change in diff.changes],
        "diff": diff.diff,
        "prompts": asdict(diff.prompts) if diff.prompts else None,
        "judged": None,
    }
    if (judged := diff.judged) is not None:
        document["judged"] = {
            "judgments": judged.judgments,
            "failed": judged.failed,
            "scores": None if judged.comparison is None else json.loads(judged.comparison.report("json")),
            "turned": [asdict(record) for record in judged.turned],
            "places": [asdict(record) for record in judged.places],
            "rating": judged.rating,
            "agreement": [{**asdict(record), "told": record.is_significant} for record in judged.agreement],
            "lacking": judged.lacking,
            "level": judged.level,
        }
    return json_text(document)


_FORMATS: Mapping[str, Callable[[CriterionDiff, bool], str]] = {
    "console": render_console,
    "markdown": render_markdown,
    "json": render_json,
}
