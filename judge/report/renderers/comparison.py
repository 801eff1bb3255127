"""Render the comparison of two runs: console, Markdown, HTML and JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict

from markupsafe import Markup
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judge.core.format import json_text, one_line
from judge.report.renderers import html
from judge.report.renderers.console import plain_table, printed, recording_console
from judge.report.renderers.markdown import LIMIT, escape, folded, markdown_table, page_of
from judge.report.views.comparison import ItemChanges, Layout, layout
from judge.results.comparison import RunComparison

SCHEMA = "judge.compare/1"
_HEADS = ("before", "after", "change", "p", "↑ = ↓")
_MOST_ITEMS, _MOST_SHIFTS = 8, 3  # items in a text, and values of each


def render(comparison: RunComparison, format: str, *, colour: bool) -> str:
    """Render a comparison as console, markdown, html or json."""
    return _FORMATS[format](comparison, colour)


def render_console(comparison: RunComparison, colour: bool) -> str:
    """As wide as the terminal, or 80; without `colour` no escape code."""
    console, recording = recording_console(colour=colour)
    view = layout(comparison)
    console.print(Text(view.title, "bold"))
    for note in view.notes:
        console.print(Text(f"! {note}", "yellow"))
    console.print(Text(" ".join(view.sentences)))
    if view.changes:
        console.print(Text("\nChanged", "bold"))
    for title, setting in view.changes:
        line = Text.assemble(f"{title}: ", (f"{one_line(setting.before)} → {one_line(setting.after)}", "bold"))
        console.print(Padding(line, (0, 0, 0, 2)))
    for section in view.sections:
        console.print(Text(f"\n{section.name}", "bold"))
        table = plain_table("system")
        for head in _HEADS:
            table.add_column(head, justify="right", no_wrap=True)
        for row in section.rows:
            change = Text.assemble((f"{row.mark}{row.change}", "bold" if row.mark else ""), (f" {row.interval}", "dim"))
            table.add_row(Text(row.system), row.before, row.after, change, row.p, row.texts)
        console.print(table)
        if section.more:
            console.print(Text(f"{section.more}.", "dim"))
    if view.unchanged:
        console.print(Text(f"\n{view.unchanged}"))
    for when in ("appeared", "vanished"):
        failures = [failure for failure in view.failed if failure.where == when]
        if failures:
            console.print(Text(f"\nFailures that {when}: {sum(failure.count for failure in failures):,}", "bold"))
        for failure in failures:
            console.print(Padding(Text(f"{failure.count:,} {failure.error} ({failure.columns})"), (0, 0, 0, 2)))
            console.print(Padding(Text(f"e.g. {failure.example}", "dim"), (0, 0, 0, 4)))
    moved_items = view.items[:_MOST_ITEMS]
    if moved_items:
        console.print(Text("\nItems that moved most, by their largest change as a share of the scale", "bold"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", min_width=6)
    grid.add_column(overflow="fold")
    for item in moved_items:
        grid.add_row(item.size, Text.assemble((item.item, "bold"), f"  {_shifts(item)}"))
    console.print(grid)
    if view.sections:
        console.print(Text(f"\n{view.legend}", "dim"))
    return printed(recording)


def _shifts(item: ItemChanges) -> str:
    shifts = [f"{value.system} {value.column} {value.before} → {value.after}" for value in item.values[:_MOST_SHIFTS]]
    return "; ".join(shifts)


def render_markdown(comparison: RunComparison, colour: bool) -> str:
    """GitHub-flavoured, at most 60,000 characters: what does not fit is left out from the end, and said."""
    return page_of(_markdown_blocks(layout(comparison)), LIMIT, "… The rest is in `judge compare --format html`.\n")


def _markdown_blocks(view: Layout) -> Iterator[str]:
    yield f"## {escape(view.title, 200)}"
    yield from (f"> {escape(note, 500)}" for note in view.notes)
    yield f"**{escape(' '.join(view.sentences))}**"
    if view.changes:
        lines = [
            f"- {escape(title, 300)}: {escape(change.before, 300)} → {escape(change.after, 300)}"
            for title, change in view.changes
        ]
        yield "\n".join(["Changed:", "", *lines])
    for section in view.sections:
        yield f"### {escape(section.name, 200)}"
        rows = [
            (
                escape(row.system, 80),
                row.before,
                row.after,
                f"{f'**{row.change}** ≠' if row.mark else row.change} {row.interval}".rstrip(),
                row.p,
                row.texts,
            )
            for row in section.rows
        ]
        yield markdown_table(("system", *_HEADS), rows) + (f"\n\n{section.more}." if section.more else "")
    if view.unchanged:
        yield escape(view.unchanged)
    if view.failed:
        failures = [
            (
                failure.where,
                escape(failure.error),
                f"{failure.count:,}",
                escape(failure.columns, 200),
                escape(failure.example, 300),
            )
            for failure in view.failed
        ]
        yield "### Failures\n\n" + markdown_table(("", "error", "count", "columns", "for example"), failures)
    if view.items:
        lines = [
            f"- {item.size} {escape(item.item, 80)}: {escape(_shifts(item), 400)}" for item in view.items[:_MOST_ITEMS]
        ]
        yield folded("Items that moved most", "\n".join(lines))
    if view.sections:
        yield folded("What the numbers mean", escape(view.legend))


def render_html(comparison: RunComparison, colour: bool) -> str:
    """One self-contained page without a script."""
    style = Markup(html.source("report.css") + html.source("compared.css"))  # noqa: S704  (our own files)
    page: str = html.template("compared.html.jinja").render(
        shown=layout(comparison, every=True), style=style, heads=_HEADS
    )
    return page


def render_json(comparison: RunComparison, colour: bool) -> str:
    """Everything, as strict JSON: a number that does not exist is null."""
    document = {
        "schema": SCHEMA,
        "before": comparison.names[0],
        "after": comparison.names[1],
        "told": layout(comparison).sentences,
        "notes": comparison.notes,
        "changes": [asdict(change) for change in comparison.changes],
        **asdict(comparison.runs),
    }
    return json_text(document)


_FORMATS: Mapping[str, Callable[[RunComparison, bool], str]] = {
    "console": render_console,
    "markdown": render_markdown,
    "html": render_html,
    "json": render_json,
}
