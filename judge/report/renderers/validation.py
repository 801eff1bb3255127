"""Render a validation of judges against human ratings: console, Markdown, JSON, CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from rich.text import Text

from judge.core.format import json_text, one_line
from judge.report.renderers import csv, latex
from judge.report.renderers.console import plain_table, printed, recording_console
from judge.report.renderers.markdown import escape, markdown_table
from judge.report.views import validation as validation_module
from judge.report.views.validation import FEW, HEADS, Grid, closing, correlation_sentences
from judge.report.views.validation import block as build_block
from judge.results.validation import Validation, flat
from judge.stats.coefficients import LEVELS, Level

CELLS = (
    *("criterion", "name", "kind", "level", "coefficient", "value", "low", "high", "n", "texts"),
    *("left_out", "signature", "method"),
)
"""Columns of the CSV: `n` counts items, texts or systems; `left_out` says why a baseline does not count as one."""


def render(validation: Validation, format: str, level: Level, *, colour: bool) -> str:
    """Render a validation at one level as console, markdown, json, csv or latex."""
    return _FORMATS[format](validation, level, colour)


def render_console(validation: Validation, level: Level, colour: bool) -> str:
    """Tables as wide as the terminal, or 80; without `colour` no escape code."""
    console, recording = recording_console(colour=colour)
    console.print(Text(one_line(validation.title), "bold"))
    for note in validation.notes:
        console.print(Text(f"! {one_line(note)}", "yellow"))
    for rated in validation.rated:
        block = build_block(rated, level)
        console.print(Text.assemble("\n", (block.title, "bold"), f"\n{block.over}"))
        table = plain_table("")
        for head in (*HEADS, block.unit if block.unit == "texts" else f"{block.unit}\ntexts"):
            table.add_column(head, justify="right", no_wrap=True)
        for line in block.lines:
            cells = [*line.cells, (line.n, line.texts)]
            values = [Text.assemble(value, (f"\n{below}" if below else "", "dim")) for value, below in cells]
            table.add_row(Text(line.label), *values)
        console.print(table)
        for sentence in block.sentences:
            console.print(Text(sentence, "bold" if rated.judges else ""))
        if block.agreement is not None:
            n_columns = 1 + len(FEW)  # the main measures; all of them are wider than a terminal
            console.print(Text(""))
            rows = tuple(row[:n_columns] for row in block.agreement.rows)
            console.print(validation_module.table(Grid(block.agreement.heads[:n_columns], rows)))
        for place, curve in enumerate(block.curves):
            console.print(Text(f"\n{curve.title}" if curve.title else ""))
            if place == 0:  # only the first judge's bins
                console.print(validation_module.table(curve.bins))
        for note in block.notes:
            console.print(Text(note, "yellow"))
    console.print(Text.assemble("\n", (" ".join(closing(validation.rated, level)), "dim")))
    validation_module.show(console, validation.calibrated)
    return printed(recording)


def render_markdown(validation: Validation, level: Level, colour: bool) -> str:
    blocks = [f"## {escape(validation.title)}", *(f"> {escape(note)}" for note in validation.notes)]
    for rated in validation.rated:
        block = build_block(rated, level)
        heads = ["", *HEADS, *dict.fromkeys((block.unit, "texts"))]
        rows = []
        for line in block.lines:
            counts = [line.n, line.texts] if line.texts else [line.n]
            rows.append([escape(line.label), *(" ".join(cell).rstrip() for cell in line.cells), *counts])
        blocks += [f"### {escape(block.title)}", escape(block.over) + ":", markdown_table(heads, rows)]
        blocks += [escape(" ".join(block.sentences))] if block.sentences else []
        blocks += [_markdown_table(block.agreement)] if block.agreement is not None else []
        for curve in block.curves:
            blocks += [escape(f"{curve.title}:"), _markdown_table(curve.bins)]
        blocks += [escape(" ".join(block.notes))] if block.notes else []
    blocks.append(escape(" ".join(closing(validation.rated, level))))
    for calibrated in validation_module.blocks(validation.calibrated):
        blocks.append(f"### {validation_module.TITLE}: {escape(calibrated.name)}")
        blocks += map(_markdown_table, calibrated.grids)
        blocks.append(escape(" ".join(calibrated.sentences)))
    if validation.calibrated:
        blocks.append(escape(validation_module.calibration_note(validation.calibrated)))
    return "\n\n".join(blocks) + "\n"


def _markdown_table(grid: Grid) -> str:
    rows = [[escape(row[0][0]), *(" ".join(cell).rstrip() for cell in row[1:])] for row in grid.rows]
    return markdown_table(grid.heads, rows)


def render_json(validation: Validation, level: Level, colour: bool) -> str:
    """Every level and coefficient."""
    document: dict[str, Any] = {
        "title": validation.title,
        "notes": validation.notes,
        "criteria": [
            {**asdict(flat(rated)), "told": {level: list(correlation_sentences(rated, level)) for level in LEVELS}}
            for rated in validation.rated
        ],
    }
    if validation.calibrated:
        document["calibrated"] = [asdict(calibrated) for calibrated in validation.calibrated]
    return json_text(document)


def render_latex(validation: Validation, level: Level, colour: bool) -> str:
    """A table for each criterion, with the coefficients of every judge, floor and annotator at one level."""
    tables = []
    for place, rated in enumerate(validation.rated, 1):
        block = build_block(rated, level)
        counted = dict.fromkeys((block.unit, "texts"))
        rows = {
            line.label: [*line.cells, *((n, "") for n in (line.n, line.texts)[: len(counted)])] for line in block.lines
        }
        caption = " ".join([f"{block.title}. {block.over}.", *block.sentences, *closing([rated], level)])
        tables.append(latex.grid([*HEADS, *counted], rows, caption=caption, label=f"tab:people-{place}"))
    return latex.begin(list(map(one_line, validation.notes))) + "\n".join(tables)


def render_csv(validation: Validation, level: Level, colour: bool) -> str:
    """A row for each judge, floor and annotator, level and coefficient, in full precision."""
    return csv.written(
        CELLS,
        (
            [rated.criterion, row.name, row.kind, at, name, e.value, e.low, e.high, e.n, row.correlation.texts,
             row.few.get(at, ""), row.signature, e.method]
            for rated in validation.rated
            for row in rated.rows
            for (at, name), e in row.correlation.estimates.items()
        ),
    )  # fmt: skip


_FORMATS: Mapping[str, Callable[[Validation, Any, bool], str]] = {
    "console": render_console,
    "markdown": render_markdown,
    "json": render_json,
    "csv": render_csv,
    "latex": render_latex,
}
