"""Render the card of an audited judge: console, Markdown, HTML and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from markupsafe import Markup
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judge.audits.card import JudgeCard
from judge.core.format import json_text
from judge.report.renderers import html
from judge.report.renderers.console import plain_table, printed, recording_console
from judge.report.renderers.markdown import LIMIT, escape, folded, markdown_table, page_of
from judge.report.views.audit import OPEN, TOLD, Bias, Detail, Layout, Matrix, ShownCell, layout

SCHEMA = "judge.card/1"
_HEAD_FACTS = ("Data", "Texts", "Judgments", "Language")
_NAME_WIDTH, _CELL_WIDTH = 22, 14  # columns of a terminal
_MOST_NAME = 80  # characters of a name in Markdown
_REST = "… The rest is in the page of the card.\n"


def render(card: JudgeCard, format: str, *, colour: bool) -> str:
    """Render a card as console, markdown, html or json."""
    if format == "console":
        return render_console(card, colour=colour)
    return {"markdown": render_markdown, "html": render_html, "json": render_json}[format](card)


def render_console(card: JudgeCard, *, colour: bool = False) -> str:
    """As wide as the terminal, or 80; without `colour` no escape code."""
    console, recording = recording_console(colour=colour)
    view = layout(card)
    console.print(Text(view.title, "bold"))
    console.print(Text(" · ".join(f"{name}: {value}" for name, value in view.facts if name in _HEAD_FACTS), "dim"))
    for note in view.notes:
        console.print(Text(f"! {note}", "yellow"))
    for sentence in view.verdicts:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row(Text("–"), Text(sentence, overflow="fold"))
        console.print(grid)
    successful_attacks = [detail for detail in view.attacks if detail.move[-1:] in (TOLD, OPEN)]
    for matrix, details in ((view.sensitivity, view.own_damage), (view.injection, successful_attacks)):
        if matrix:
            _print_matrix(console, matrix, details)
    _print_biases(console, view)
    for title, rows in (
        ("Left out", view.left_out),
        ("Judgments that failed", view.failures),
        ("How it was made", view.facts),
    ):
        if rows:
            console.print(Text(f"\n{title}", "bold"))
        for name, value in rows:
            console.print(Padding(Text.assemble(f"{name}: ", (value, "dim")), (0, 0, 0, 2)))
    if view.sensitivity or view.injection:
        console.print(Text(f"\n{view.legend}", "dim"))
    return printed(recording)


def _print_matrix(console: Console, matrix: Matrix, details: Sequence[Detail]) -> None:
    console.print(Text(f"\n{matrix.title}", "bold"))
    for first, last in _chunks(len(matrix.criteria), max(1, (console.width - _NAME_WIDTH) // _CELL_WIDTH)):
        table = plain_table("")
        for name in matrix.criteria[first:last]:
            table.add_column(name, justify="right", overflow="fold")
        for name, cells in matrix.rows:
            row = []
            for cell in cells[first:last]:
                mark = f"{cell.mark} " if cell and cell.mark else ""
                style = "" if not cell else "bold" if cell.own_damage else "" if cell.significance else "dim"
                row.append(Text(f"{mark}{cell.text:>4} {cell.move}{cell.significance or ' '}" if cell else "–", style))
            table.add_row(Text(name), *row)
        console.print(table)
    if matrix.caption:
        console.print(Text(matrix.caption, "dim"))
    if details:
        table = plain_table("", "")
        failed = any(detail.failed != "0" for detail in details)
        for head in ("moved", "against", "mean change", "n", *(["failed"] if failed else [])):
            table.add_column(head, justify="right", no_wrap=True)
        above = ""
        for detail in details:
            name = f"{detail.mark} {detail.change}".lstrip()
            numbers = [detail.rate, detail.against, detail.move, detail.n, *([detail.failed] if failed else [])]
            table.add_row(Text("" if detail.criterion == above else detail.criterion), Text(name), *numbers)
            above = detail.criterion
        console.print(table)


def _chunks(size: int, most: int) -> Iterator[tuple[int, int]]:
    """Start and end of each group of at most `most` columns."""
    return ((first, first + most) for first in range(0, size, most))


def _print_biases(console: Console, view: Layout) -> None:
    if not view.biases:
        return
    console.print(Text("\nBias", "bold"))
    for bias in view.biases:
        criteria = list(dict.fromkeys(row.criterion for group in bias.groups for row in group.rows))
        for first, last in _chunks(len(criteria), max(1, (console.width - _NAME_WIDTH) // _CELL_WIDTH)):
            console.print(_bias_table(bias, criteria[first:last]), "")
    console.print(Text(view.biases_legend, "dim"))
    if view.use:
        console.print(Text("\nHow often each label is given"))
        table = plain_table("", "")
        table.show_header = False
        for label_use in view.use:
            table.add_row(Text(label_use.criterion), Text(label_use.shares))
        console.print(table)


def _bias_table(bias: Bias, criteria: Sequence[str]) -> Table:
    """A row for each finding and a column for each criterion; the interval stands below the value."""
    table = plain_table(bias.probe)
    for name in criteria:
        table.add_column(name, justify="right", overflow="fold")
    for group in bias.groups:
        rows = {row.criterion: row for row in group.rows if row.criterion in criteria}
        if not rows:
            continue
        cells = {
            name: Text.assemble(
                (f"{row.value}{row.mark or ' '}", "bold" if row.mark else ""), (f"\n{row.interval} ", "dim")
            )
            for name, row in rows.items()
        }
        counts = ", ".join(dict.fromkeys(row.n for row in rows.values()))
        head = Text.assemble(group.measure, (f"\n{counts}", "dim"))
        table.add_row(head, *(cells.get(name, Text("–")) for name in criteria))
    return table


def render_markdown(card: JudgeCard) -> str:
    """GitHub-flavoured, at most 60,000 characters: what does not fit is left out from the end, and said."""
    return page_of(_markdown_blocks(layout(card)), LIMIT - len(_REST), _REST)


def _markdown_blocks(view: Layout) -> Iterator[str]:
    yield f"## {escape(view.title, 200)}"
    yield from (f"> {escape(note, 500)}" for note in view.notes)
    if view.verdicts:
        yield "\n".join(f"- {escape(sentence)}" for sentence in view.verdicts)
    for matrix, details in ((view.sensitivity, view.own_damage), (view.injection, view.attacks)):
        if matrix:
            yield from _matrix_blocks(matrix, details)
    if view.biases:
        rows = [
            (
                escape(bias.probe),
                escape(group.measure, 200) if not place else "",
                escape(row.criterion, _MOST_NAME),
                f"{f'**{row.value}** {row.mark}' if row.mark else row.value} {row.interval}".rstrip(),
                row.p,
                row.n,
            )
            for bias in view.biases
            for group in bias.groups
            for place, row in enumerate(group.rows)
        ]
        heads = ("probe", "", "criterion", "value", "p (Holm)", "n")
        yield "### Bias"
        yield f"{markdown_table(heads, rows, 3)}\n\n{escape(view.biases_legend)}"
    if view.use:
        lines = [
            f"- {escape(label_use.criterion, _MOST_NAME)}: {escape(label_use.shares, 500)}" for label_use in view.use
        ]
        yield folded("How often each label is given", "\n".join(lines))
    for title, entries in (("Left out", view.left_out), ("Judgments that failed", view.failures)):
        if entries:
            lines = [f"- {escape(name, 200)}: {escape(text, 500)}" for name, text in entries]
            yield "\n".join([f"### {title}", "", *lines])
    if view.facts:
        yield folded("How it was made", "\n".join(f"- {name}: {escape(text, 300)}" for name, text in view.facts))
    if view.sensitivity or view.injection:
        yield folded("What the numbers mean", escape(view.legend))


def _matrix_blocks(matrix: Matrix, details: Sequence[Detail]) -> Iterator[str]:
    yield f"### {matrix.title}"
    rows = [(escape(name, _MOST_NAME), *(_markdown_cell(cell) for cell in cells)) for name, cells in matrix.rows]
    note = f"\n\nIn brackets: the share that moved the other way. {escape(matrix.caption)}".rstrip()
    yield (markdown_table(("", *(escape(name, _MOST_NAME) for name in matrix.criteria)), rows) + note)
    cells = [
        (
            escape(detail.criterion, _MOST_NAME),
            f"{detail.mark} {escape(detail.change, _MOST_NAME)}".lstrip(),
            *(detail.rate, detail.against, detail.move, detail.p, detail.n, detail.failed),
        )
        for detail in details
    ]
    heads = ("criterion", "change", "moved", "against", "mean change", "p (Holm)", "texts", "failed")
    yield folded(
        "Its own damage in numbers" if matrix.title == "Sensitivity" else "In numbers",
        markdown_table(heads, cells, 2),
    )


def _markdown_cell(cell: ShownCell | None) -> str:
    if cell is None:
        return "–"
    text = f"{cell.text}{f' ({cell.against})' if cell.against else ''} {cell.move}{cell.significance}"
    return f"{cell.mark} **{text}**" if cell.own_damage else text


def render_html(card: JudgeCard) -> str:
    """The page: no network, no script; readable in the dark and on paper."""
    style = Markup(html.source("report.css") + html.source("card.css"))  # noqa: S704  (our own files)
    page: str = html.template("card.html.jinja").render(shown=layout(card), style=style)
    return page


def render_json(card: JudgeCard) -> str:
    """Everything, as strict JSON: a number that does not exist is null."""
    return json_text({"schema": SCHEMA, **asdict(card)})
