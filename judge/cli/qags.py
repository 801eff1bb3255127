"""`judge qags`: show the questions and answers of one item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judge.cli.options import format_option, metric_only, option, takes, to_config
from judge.cli.run import refuse_options
from judge.cli.terminal import BOTH, console, print_json, print_message
from judge.core.errors import ConfigError

if TYPE_CHECKING:
    from judge.config import RunConfig
    from judge.core.records import Sample
    from judge.results.result import Result

_METRIC = "qags"


@takes(
    "run", "map", "systems", "model", "base_url", "key_env", "max_tokens", "replay", "language", "set", "cache",
    "no_cache",
)  # fmt: skip
def qags_command(
    ctx: typer.Context,
    data: Annotated[Path, typer.Argument(metavar="RUN|DATA|RUN.YAML", help="The folder of a run, or what to measure.")],
    *,
    item: Annotated[str | None, option("The item to show (default: the first).", metavar="ID")] = None,
    system: Annotated[str | None, option("The system to show (default: all).", metavar="NAME")] = None,
    backend: Annotated[str | None, option("lexical (default), models or llm.", metavar="NAME")] = None,
    similarity: Annotated[str | None, option("exact, f1 (default), rouge1, bertscore, ...", metavar="NAME,...")] = None,
    format: Annotated[str, format_option(*BOTH)] = "console",
    **options: Any,
) -> None:
    """Show how QAGS measures one item.

    Prints its themes, questions, both answers and their similarity: of a finished run, or measured now. Writes nothing.
    """
    import asyncio

    from judge.commands.pipeline import run_pipeline
    from judge.commands.preparation import prepare, samples_of_item
    from judge.data import samples
    from judge.report.views.qags import is_qags
    from judge.results.result import load

    if is_run := not samples.is_data(data):
        refuse_options(ctx, data, besides=("item", "system"))
        result = load(data)
        if not any(map(is_qags, result.table.columns)):
            raise ConfigError(f"{data}: this run has no QAGS: judge qags DATA measures an item")
        texts = list(result.table.samples)
        rows = samples_of_item(texts, item, system)
    else:
        source, config = _config(data, metric_only(_METRIC, options, backend=backend, similarity=similarity))
        texts = samples.load(source, mapping=config.map, systems=config.systems)
        rows = samples_of_item(texts, item, system)
        result = asyncio.run(run_pipeline(prepare(config, rows)))
    items = len({row.item for row in texts})
    if item is None and items > 1:
        print_message(f"item {rows[0].item}, the first of {items:,}; --item ID shows another")
    notes = [str(note) for note in result.info.get("notes") or ()]
    notes = [note for note in notes if note.startswith(f"{_METRIC}:") or not is_run]
    if format == "json":
        print_json({"outputs": [_output_json(result, row) for row in rows], "notes": notes})
    else:
        _print_questions(result, rows, notes)
    shown_texts = {(sample.item, sample.system) for sample in rows}
    failed = any((row.item, row.system) in shown_texts and row.column.startswith(_METRIC) for row in result.failures)
    raise typer.Exit(1 if failed else 0)


def _config(data: Path, options: Mapping[str, Any]) -> tuple[Path, RunConfig]:
    """The data and the configuration of QAGS alone: other metrics, and the criteria, of a run.yaml are ignored."""
    from judge.config import RunConfig

    config, _ = to_config(data, {**options, "metrics": _METRIC}, RunConfig)
    if config.data is None:
        raise ConfigError("no data: name a file, for example judge qags summaries.jsonl")
    named = {_METRIC, *RunConfig.load(given={"set": options["set"]}).set}
    metric_options = {name: values for name, values in config.set.items() if name in named}
    judges = tuple(judge for judge in config.model if judge.name != "heuristic")
    update = {"out": None, "record": None, "set": metric_options, "model": judges}
    return config.data, config.model_copy(update=update)


def _output_json(result: Result, sample: Sample) -> dict[str, Any]:
    """An output's values by column, what could not be measured, and its questions, as plain JSON."""
    from dataclasses import asdict

    from judge.core.records import Score
    from judge.report.views.qags import is_qags, qags_table

    columns = {column.name: column for column in result.table.columns if is_qags(column)}
    qags_rows = [row for row in result.table.rows() if row.column in columns]
    rows = {row.column: row for row in qags_rows if (row.item, row.system) == (sample.item, sample.system)}
    lines = next(filter(None, (qags_table(columns[name], row) for name, row in rows.items())), ())
    return {
        "item": sample.item,
        "system": sample.system,
        "values": {name: row.value for name, row in rows.items() if isinstance(row, Score)},
        "failures": {name: row.message for name, row in rows.items() if not isinstance(row, Score)},
        "questions": [asdict(line) for line in lines],
    }


def _print_questions(result: Result, samples: Sequence[Sample], notes: Sequence[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    from judge.core.format import one_line
    from judge.report.views.qags import HEADS, qags_tables

    screen = console()
    for title, lines in qags_tables(result, samples):
        screen.print(Text(one_line(title), "bold"))
        if lines:
            table = Table(box=None, padding=(0, 2, 0, 0))
            for head in HEADS:
                table.add_column(head, overflow="fold")
            for line in lines:
                table.add_row(*map(Text, line.cells))
            screen.print(table)
        screen.print()
    for note in notes:
        screen.print(Text(one_line(note)))
