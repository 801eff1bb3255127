"""Render the outcomes of test suites: console, Markdown for a pull request, JUnit XML for CI, and JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import escape_controls, json_text, one_line, plural, seconds
from judge.report.renderers.console import plain_table, printed, recording_console
from judge.report.renderers.markdown import LIMIT, escape, folded, page_of, summary
from judge.report.views.suite import Row, SuiteView, changed, suite_summary, suite_view, totals
from judge.suite.evaluate import Outcome

SCHEMA = "judge.test/1"
_STYLES = {"✓": "green", "✗": "bold red", "?": "bold yellow", "!": "bold magenta"}
_DIFF_STYLES = {"+": "green", "-": "red"}
_MOST_LINES = 40  # of a prompt's diff on a console

# Markdown: characters of a table, a case's name, a cell, the judge's words
_TABLE, _NAME, _CELL, _SAID = 20_000, 80, 200, 500
_REST = "… The rest is in `judge test --format json`.\n"

_MESSAGE = 2_000  # characters of the reason in JUnit if a suite could not be run
# XML 1.0 has no place for these two, escaped or not (section 2.2); `escape_controls` writes out the other characters
# that it forbids.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def render(outcomes: Sequence[Outcome], format: str, *, colour: bool) -> str:
    """Render outcomes as console, markdown, json or junit. Raises ConfigError for another format."""
    renderers: dict[str, Callable[[Sequence[Outcome]], str]] = {
        "markdown": render_markdown,
        "json": render_json,
        "junit": render_junit,
    }
    if format == "console":
        return render_console(outcomes, colour=colour)
    if format not in renderers:
        raise ConfigError(plugins.unknown_name_message("format", format, ["console", *renderers]))
    return renderers[format](outcomes)


def render_console(outcomes: Sequence[Outcome], *, colour: bool = False) -> str:
    """As wide as the terminal, or 80; without `colour` no escape code. What all suites came to is the last line."""
    console, recording = recording_console(colour=colour)
    for outcome in outcomes:
        _print_suite(console, suite_view(outcome))
        if outcome.comparison is not None:
            comparison = outcome.comparison
            console.print(Text("\nAgainst the baseline", "bold"))
            console.print(Text.from_ansi(comparison.report("console", colour=colour).rstrip("\n")), soft_wrap=True)
            for change in comparison.changes:
                lines = changed(change)
                if lines:
                    console.print(Text(f"\nPrompt of {one_line(', '.join(change.columns))}", "bold"))
                for text in lines[:_MOST_LINES]:
                    console.print(Padding(Text(text, _DIFF_STYLES.get(text[:1], "dim")), (0, 0, 0, 2)))
                if len(lines) > _MOST_LINES:
                    console.print(
                        Padding(Text(f"… {plural(len(lines) - _MOST_LINES, 'more line')}", "dim"), (0, 0, 0, 2))
                    )
        console.print()
    if len(outcomes) > 1:
        console.print(Text(totals(outcomes), _verdict_style(all(entry.passed for entry in outcomes))))
    return printed(recording).strip("\n") + "\n"


def _verdict_style(passed: bool) -> str:
    return "bold green" if passed else "bold red"


def _print_suite(console: Console, suite: SuiteView) -> None:
    console.print(Text.assemble((suite.name, "bold"), (f"  {suite.path}", "dim")))
    console.print(Text.assemble((suite.summary, _verdict_style(suite.passed)), (f" {seconds(suite.seconds)}", "dim")))
    if suite.trouble:
        console.print(Padding(Text(suite.trouble), (0, 0, 0, 2)))
    if suite.rows:
        console.print()
        table = plain_table()
        table.add_column("", no_wrap=True)
        table.add_column("case", overflow="fold", max_width=console.width * 2 // 5)
        table.add_column("expected", overflow="fold", max_width=console.width // 5)
        table.add_column("found", overflow="fold")
        for row in suite.rows:
            before = f"\nbefore {row.before}" if row.before else ""
            reason = f"\n{row.reason}" if row.reason else ""
            actual = Text.assemble(row.actual, (reason, "" if not row.met else "dim"), (before, "dim"))
            name = Text(row.name, "" if row.met else "bold")
            table.add_row(Text(row.mark, _STYLES[row.mark]), name, row.expected, actual)
        console.print(table)
    if suite.unmet:
        console.print(Text("\nNot met", "bold"))
    for row in suite.unmet:
        console.print(Padding(Text.assemble((row.where, "dim"), f" {row.name}: {row.state}"), (0, 0, 0, 2)))
        if row.detail:
            console.print(Padding(Text(row.detail, "dim"), (0, 0, 0, 4)))
    if suite.flaky:
        console.print(Text.assemble(("\nFlaky", "bold"), f": {suite.flaky}: so many single replies say the opposite."))
    for note in suite.notes:
        console.print(Text(f"! {note}", "yellow"))


def render_markdown(outcomes: Sequence[Outcome]) -> str:
    """GitHub-flavoured Markdown of at most 60,000 characters: what does not fit is left out from the end, and said."""
    return page_of(_blocks(outcomes), LIMIT - len(_REST) - 2, _REST)


def _blocks(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The verdict, all unmet cases, then, folded, the met ones and the comparison with the baseline."""
    suites = [suite_view(outcome) for outcome in outcomes]
    mark = "✓" if all(suite.passed for suite in suites) else "✗"
    yield f"## {mark} judge test"
    yield f"**{escape(totals(outcomes))}**"
    for suite in suites:
        if len(suites) > 1:
            took = f" ({seconds(suite.seconds)})"
            yield f"### {'✓' if suite.passed else '✗'} {escape(suite.name, _NAME)}\n\n{escape(suite.summary)}{took}"
        if suite.trouble:
            yield "\n>\n".join(f"> {escape(line)}" for line in suite.trouble.splitlines() if line.strip())
        if suite.unmet:
            yield _grid(suite.unmet, where=True)
        if suite.flaky:
            yield f"Flaky: {escape(suite.flaky, _SAID)}: so many single replies say the opposite."
        yield from (f"> {escape(note, _SAID)}" for note in suite.notes)
    words = {"case": ("case", ""), "limit": ("limit", ""), "baseline": ("comparison", " with the baseline")}
    for suite, outcome in zip(suites, outcomes, strict=True):
        if met := [row for row in suite.rows if row.met]:
            subjects = Counter(row.subject for row in met)
            counts = [f"{plural(subjects[it], word)}{more}" for it, (word, more) in words.items() if subjects[it]]
            yield _folded(f"{_name(suite)}: {', '.join(counts)} met", _grid(met, where=False))
        if outcome.comparison is not None:
            for change in outcome.comparison.changes:
                if lines := changed(change):
                    diff = "\n".join(lines)
                    # The fence has to be longer than any in the diff.
                    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", diff) or [""]))
                    names = one_line(", ".join(change.columns), _NAME)
                    yield _folded(f"{_name(suite)}: prompt of {names}", f"{fence}diff\n{diff}\n{fence}")
            # The report of `judge compare`, with its headings two levels down.
            page = re.sub(r"^(#{2,3}) ", r"##\1 ", outcome.comparison.report("markdown"), flags=re.MULTILINE)
            yield _folded(f"{_name(suite)}: against the baseline", page.rstrip("\n"))


def _name(suite: SuiteView) -> str:
    return one_line(suite.name, _NAME)


def _grid(rows: Sequence[Row], *, where: bool) -> str:
    """A row for each verdict; `where` adds file, line and detail of unmet ones. Long tables lose rows from the end."""
    heads = ["", "case", "expected", "found", "before", "said"]
    if not any(row.before for row in rows):
        heads.remove("before")
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        detail = f"<br>{escape(row.detail, _SAID)}" if where and row.detail else ""
        cells = {
            "": row.mark,
            "case": escape(row.name, _NAME) + (f"<br>{escape(row.where, _CELL)}" if where else ""),
            "expected": escape(row.expected, _CELL),
            "found": escape(row.actual, _CELL),
            "before": escape(row.before, _CELL),
            "said": (escape(row.reason, _SAID) or ("" if row.met else row.state)) + detail,
        }
        lines.append([cells[head] for head in heads])
    grid = ["| " + " | ".join(cells) + " |" for cells in lines]
    n_lines, size = 0, 0
    while n_lines < len(grid) and (size := size + len(grid[n_lines]) + 1) < _TABLE:
        n_lines += 1
    more = f"\n\n… {plural(len(grid) - n_lines, 'more row')}." if n_lines < len(grid) else ""
    return "\n".join(grid[:n_lines]) + more


def _folded(title: str, text: str) -> str:
    return folded(summary(title, 2 * _CELL), text)


def render_junit(outcomes: Sequence[Outcome]) -> str:
    """A `failure` is a verdict that is not met, an `error` one without a score, or a suite that could not be run."""
    suites = [suite_view(outcome) for outcome in outcomes]
    root = Element("testsuites", _counts(suites))
    for suite in suites:
        element = SubElement(
            root, "testsuite", {"name": _text(suite.name), "file": _text(suite.path)} | _counts([suite])
        )
        if suite.trouble:
            case = SubElement(element, "testcase", {"name": "suite", "classname": _text(suite.name)})
            error = SubElement(case, "error", {"message": _text(suite.trouble[:_MESSAGE]), "type": "trouble"})
            error.text = _text(suite.trouble)
        for row in suite.rows:
            path, _, line_number = row.where.rpartition(":")
            names = {"name": _text(row.name), "classname": _text(suite.name)}
            case = SubElement(element, "testcase", names | {"file": _text(path), "line": line_number})
            finding = ": ".join(part for part in (row.actual, row.reason) if part)
            if row.met:
                SubElement(case, "system-out").text = _text(finding)
                continue
            kind = "error" if row.mark == "!" else "failure"
            message = f"expected {row.expected}, found {finding}"
            problem = SubElement(case, kind, {"message": _text(message), "type": row.state})
            problem.text = _text("\n".join(part for part in (row.where, message, row.detail) if part))
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _text(text: str) -> str:
    return _FORBIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", escape_controls(text))


def _counts(suites: Sequence[SuiteView]) -> dict[str, str]:
    lost = [row.mark == "!" for suite in suites for row in suite.unmet]
    stuck = sum(bool(suite.trouble) for suite in suites)
    return {
        "tests": str(sum(len(suite.rows) for suite in suites) + stuck),
        "failures": str(lost.count(False)),
        "errors": str(lost.count(True) + stuck),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }


def render_json(outcomes: Sequence[Outcome]) -> str:
    """Everything, as strict JSON: a number that does not exist is null."""
    suites = []
    for outcome in outcomes:
        comparison, result = outcome.comparison, outcome.result or outcome.ranked
        suites.append(
            {
                "name": outcome.suite.name,
                "path": str(outcome.suite.path),
                "passed": outcome.passed,
                "summary": suite_summary([outcome]),
                "trouble": outcome.trouble,
                "verdicts": [asdict(verdict) for verdict in outcome.verdicts],
                "warnings": outcome.warnings,
                "notes": outcome.notes,
                "model": result and result.info.get("model"),
                # What `judge compare --format json` prints
                "comparison": None if comparison is None else json.loads(comparison.report("json")),
                "seconds": outcome.seconds,
            }
        )
    document = {
        "schema": SCHEMA,
        "passed": all(outcome.passed for outcome in outcomes),
        "summary": suite_summary(outcomes),
        "suites": suites,
    }
    return json_text(document)
