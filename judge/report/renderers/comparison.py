"""Two runs side by side for a terminal, a pull request, a browser and a program."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from markupsafe import Markup
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from judge.core.messages import one_line, to_json
from judge.report.renderers import html
from judge.report.renderers.console import recording_console
from judge.report.renderers.markdown import escape
from judge.report.views.comparison import ItemChanges, Layout, Section, layout
from judge.results.comparison import RunComparison

SCHEMA = "judge.compare/1"
_HEADS = ("before", "after", "change", "p", "↑ = ↓")
_ITEMS, _SHIFTS = 8, 3  # items, and values of each, that a text shows
_LIMIT = 60_000  # characters of a comment on GitHub, less some


def render(found: RunComparison, format: str, *, colour: bool) -> str:
    return _FORMATS[format](found, colour)


def _console(found: RunComparison, colour: bool) -> str:
    """As wide as the terminal, or 80; without `colour` no escape code."""
    console, text = recording_console(colour=colour)
    shown = layout(found)
    console.print(Text(shown.title, "bold"))
    for note in shown.notes:
        console.print(Text(f"! {note}", "yellow"))
    console.print(Text(" ".join(shown.told)))
    _print_changes(console, shown)
    for section in shown.sections:
        console.print(Text(f"\n{section.name}", "bold"))
        console.print(_table(section))
        if section.more:
            console.print(Text(f"{section.more}.", "dim"))
    if shown.unchanged:
        console.print(Text(f"\n{shown.unchanged}"))
    _print_failures(console, shown)
    _print_items(console, shown.far[:_ITEMS])
    if shown.sections:
        console.print(Text(f"\n{shown.how}", "dim"))
    return "\n".join(row.rstrip() for row in text.getvalue().split("\n"))


def _print_changes(console: Console, shown: Layout) -> None:
    if shown.changes:
        console.print(Text("\nChanged", "bold"))
    for title, change in shown.changes:
        said = Text.assemble(f"{title}: ", (f"{one_line(change.before)} → {one_line(change.after)}", "bold"))
        console.print(Padding(said, (0, 0, 0, 2)))


def _table(section: Section) -> Table:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("system", overflow="fold")
    for head in _HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    for row in section.rows:
        change = Text.assemble((f"{row.mark}{row.change}", "bold" if row.mark else ""), (f" {row.interval}", "dim"))
        table.add_row(Text(row.system), row.before, row.after, change, row.p, row.texts)
    return table


def _print_failures(console: Console, shown: Layout) -> None:
    for where in ("appeared", "vanished"):
        kinds = [one for one in shown.failed if one.where == where]
        if kinds:
            console.print(Text(f"\nFailures that {where}: {sum(one.count for one in kinds):,}", "bold"))
        for one in kinds:
            console.print(Padding(Text(f"{one.count:,} {one.error} ({one.columns})"), (0, 0, 0, 2)))
            console.print(Padding(Text(f"e.g. {one.example}", "dim"), (0, 0, 0, 4)))


def _print_items(console: Console, far: tuple[ItemChanges, ...]) -> None:
    if far:
        console.print(Text("\nItems that moved most, by their largest change as a share of the scale", "bold"))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="right", min_width=6)
    grid.add_column(overflow="fold")
    for item in far:
        grid.add_row(item.size, Text.assemble((item.item, "bold"), f"  {_shifts(item)}"))
    console.print(grid)


def _shifts(item: ItemChanges) -> str:
    told = [f"{one.system} {one.column} {one.before} → {one.after}" for one in item.told[:_SHIFTS]]
    return "; ".join(told)


def _markdown(found: RunComparison, colour: bool) -> str:
    """GitHub-flavoured, at most 60,000 characters: what does not fit is left out from the end, and said."""
    page = ""
    for block in _blocks(layout(found)):
        if len(page) + len(block) > _LIMIT:
            return f"{page}… The rest is in `judge compare --format html`.\n"
        page += f"{block}\n\n"
    return page.rstrip("\n") + "\n"


def _blocks(shown: Layout) -> Iterator[str]:
    yield f"## {escape(shown.title, 200)}"
    yield from (f"> {escape(note, 500)}" for note in shown.notes)
    yield f"**{escape(' '.join(shown.told))}**"
    if shown.changes:
        lines = [
            f"- {escape(title, 300)}: {escape(change.before, 300)} → {escape(change.after, 300)}"
            for title, change in shown.changes
        ]
        yield "\n".join(["Changed:", "", *lines])
    for section in shown.sections:
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
        yield _grid(("system", *_HEADS), rows) + (f"\n\n{section.more}." if section.more else "")
    if shown.unchanged:
        yield escape(shown.unchanged)
    if shown.failed:
        kinds = [
            (one.where, escape(one.error), f"{one.count:,}", escape(one.columns, 200), escape(one.example, 300))
            for one in shown.failed
        ]
        yield "### Failures\n\n" + _grid(("", "error", "count", "columns", "for example"), kinds)
    if shown.far:
        lines = [f"- {item.size} {escape(item.item, 80)}: {escape(_shifts(item), 400)}" for item in shown.far[:_ITEMS]]
        yield "\n".join(["<details>", "<summary>Items that moved most</summary>", "", *lines, "", "</details>"])
    if shown.sections:
        yield f"<details>\n<summary>What the numbers mean</summary>\n\n{escape(shown.how)}\n\n</details>"


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ("---", *["---:"] * (len(heads) - 1))
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heads, rule, *rows))


def _html(found: RunComparison, colour: bool) -> str:
    """One self-contained page without a script."""
    style = Markup(html.source("report.css") + html.source("compared.css"))  # noqa: S704  (our own files)
    page: str = html.template("compared.html.jinja").render(shown=layout(found, every=True), style=style, heads=_HEADS)
    return page


def _json(found: RunComparison, colour: bool) -> str:
    """Everything, as strict JSON: a number that does not exist is null."""
    document = {
        "schema": SCHEMA,
        "before": found.names[0],
        "after": found.names[1],
        "told": layout(found).told,
        "notes": found.notes,
        "changes": [asdict(change) for change in found.changes],
        **asdict(found.runs),
    }
    return json.dumps(to_json(document), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


_FORMATS: Mapping[str, Callable[[RunComparison, bool], str]] = {
    "console": _console,
    "markdown": _markdown,
    "html": _html,
    "json": _json,
}
