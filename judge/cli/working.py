"""`judge qags`: one item's questions and answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

from judge.cli.options import planned, read
from judge.cli.running import refuse_options, say
from judge.errors import ConfigError

if TYPE_CHECKING:
    from judge.config import Plan
    from judge.records import Sample
    from judge.report import Result

_METRIC = "qags"


def show_working(ctx: typer.Context, make: Callable[..., Plan]) -> None:
    """Print what was asked and answered: of a finished run as it was, of data after measuring one item."""
    from judge import samples

    stored = not samples.is_data(ctx.params["data"])
    result, rows, items = _stored(ctx) if stored else _measured(ctx, make)
    if ctx.params["item"] is None and items > 1:
        say(f"item {rows[0].item}, the first of {items:,}; --item ID shows another")
    notes = [str(note) for note in result.info.get("notes") or ()]
    _print(result, rows, [note for note in notes if note.startswith(f"{_METRIC}:") or not stored])
    shown = {(sample.item, sample.system) for sample in rows}
    failed = any((row.item, row.system) in shown and row.column.startswith(_METRIC) for row in result.failures)
    raise typer.Exit(1 if failed else 0)


def _stored(ctx: typer.Context) -> tuple[Result, list[Sample], int]:
    """A finished run, the outputs to show, and how many items there are."""
    from judge.report import load
    from judge.report.working import is_qags

    folder = ctx.params["data"]
    refuse_options(ctx, folder, besides=("item", "system"))
    result = load(folder)
    if not any(map(is_qags, result.table.columns)):
        raise ConfigError(f"{folder}: this run has no QAGS: judge qags DATA measures an item")
    return result, *_chosen(ctx, result.table.samples)


def _measured(ctx: typer.Context, make: Callable[..., Plan]) -> tuple[Result, list[Sample], int]:
    """As `_stored`, of outputs that are measured now. Of a plan, only what is QAGS's counts."""
    import asyncio

    from judge import api, samples

    made, _ = planned(ctx, ctx.params["data"], make)
    given = read({"set": ctx.params["set_"]}).get("set", {})
    options = {name: values for name, values in made.set.items() if name == _METRIC or name in given}
    judges = tuple(one for one in made.model if one.name != "heuristic")
    made = made.model_copy(update={"out": None, "record": None, "set": options, "model": judges})
    if made.data is None:
        raise ConfigError("no data: name a file, for example judge qags summaries.jsonl")
    rows, items = _chosen(ctx, samples.load(made.data, mapping=made.mapping, systems=made.systems))
    return asyncio.run(api.run(api.prepare(made, rows))), rows, items


def _chosen(ctx: typer.Context, rows: Sequence[Sample]) -> tuple[list[Sample], int]:
    """The outputs of the item and system that were named, else of the first item; and how many items there are."""
    from judge import api

    return api.of_item(rows, ctx.params["item"], ctx.params["system"]), len({row.item for row in rows})


def _print(result: Result, samples: Sequence[Sample], notes: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from judge.report.words import line
    from judge.report.working import HEADS, workings

    console = Console(highlight=False, markup=False, emoji=False)
    for title, lines in workings(result, samples):
        console.print(Text(line(title), "bold"))
        if lines:
            table = Table(box=None, padding=(0, 2, 0, 0))
            for head in HEADS:
                table.add_column(head, overflow="fold")
            for one in lines:
                table.add_row(*map(Text, one.cells))
            console.print(table)
        console.print()
    for note in notes:
        console.print(Text(line(note)))
