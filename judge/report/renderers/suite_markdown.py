"""Outcomes for a pull request or a job's summary: what is not met in the open, all else folded away."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from judge.report.format import count, line, seconds
from judge.report.renderers.markdown import LIMIT, escape, summary
from judge.report.views.comparison import RunComparison
from judge.report.views.suite import Row, Shown, changed, shown, totals
from judge.suite.records import Outcome

_MOST = 20_000  # characters of a table
_NAME, _CELL, _SAID = 80, 200, 500
_REST = "… The rest is in `judge test --format json`.\n"


def render(outcomes: Sequence[Outcome]) -> str:
    """GitHub-flavoured Markdown of at most 60,000 characters: what does not fit is left out from the end, and said."""
    page = ""
    for block in _blocks(outcomes):
        if len(page) + len(block) + 2 > LIMIT - len(_REST):
            return f"{page}{_REST}"
        page += f"{block}\n\n"
    return page.rstrip("\n") + "\n"


def _blocks(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """The verdict, what is not met in all suites, then what is folded away."""
    laid = [shown(outcome) for outcome in outcomes]
    mark = "✓" if all(suite.passed for suite in laid) else "✗"
    yield f"## {mark} judge test"
    yield f"**{escape(totals(outcomes))}**"
    for suite in laid:
        yield from _open(suite, alone=len(laid) == 1)
    for suite, outcome in zip(laid, outcomes, strict=True):
        if met := [row for row in suite.rows if row.met]:
            yield _folded(f"{_name(suite)}: {_parts(met)} met", _grid(met, where=False))
        if outcome.comparison is not None:
            yield from _compared(suite, outcome.comparison)


def _parts(rows: Sequence[Row]) -> str:
    """`4 cases, 1 limit, 1 comparison with the baseline`."""
    kinds = Counter(row.kind if row.kind in ("limit", "baseline") else "case" for row in rows)
    words = {"case": ("case", ""), "limit": ("limit", ""), "baseline": ("comparison", " with the baseline")}
    return ", ".join(f"{count(kinds[kind], word)}{more}" for kind, (word, more) in words.items() if kinds[kind])


def _title(suite: Shown) -> str:
    return escape(suite.name, _NAME)


def _name(suite: Shown) -> str:
    return line(suite.name, _NAME)


def _open(suite: Shown, *, alone: bool) -> Iterator[str]:
    if not alone:
        took = f" ({seconds(suite.seconds)})"
        yield f"### {'✓' if suite.passed else '✗'} {_title(suite)}\n\n{escape(suite.told)}{took}"
    if suite.trouble:
        yield "\n>\n".join(f"> {escape(one)}" for one in suite.trouble.splitlines() if one.strip())
    if suite.unmet:
        yield _grid(suite.unmet, where=True)
    if suite.flaky:
        yield f"Flaky: {escape(suite.flaky, _SAID)}: so many single replies say the opposite."
    yield from (f"> {escape(note, _SAID)}" for note in suite.notes)


def _grid(rows: Sequence[Row], *, where: bool) -> str:
    """A row per verdict; `where` has its file and line, and what the judge said, for those that are not met."""
    heads = ["", "case", "expected", "found", "before", "said"]
    if not any(row.before for row in rows):
        heads.remove("before")
    lines = [heads, ["---"] * len(heads)]
    lines += [[cell for head, cell in _cells(row, where=where).items() if head in heads] for row in rows]
    grid = ["| " + " | ".join(cells) + " |" for cells in lines]
    kept, size = 0, 0
    while kept < len(grid) and (size := size + len(grid[kept]) + 1) < _MOST:
        kept += 1
    more = f"\n\n… {count(len(grid) - kept, 'more row')}." if kept < len(grid) else ""
    return "\n".join(grid[:kept]) + more


def _cells(row: Row, *, where: bool) -> dict[str, str]:
    name = escape(row.name, _NAME) + (f"<br>{escape(row.where, _CELL)}" if where else "")
    detail = f"<br>{escape(row.detail, _SAID)}" if where and row.detail else ""
    return {
        "": row.mark,
        "case": name,
        "expected": escape(row.expected, _CELL),
        "found": escape(row.found, _CELL),
        "before": escape(row.before, _CELL),
        "said": (escape(row.said, _SAID) or ("" if row.met else row.state)) + detail,
    }


def _folded(title: str, text: str) -> str:
    return f"<details>\n<summary>{summary(title, 2 * _CELL)}</summary>\n\n{text}\n\n</details>"


def _compared(suite: Shown, found: RunComparison) -> Iterator[str]:
    """The prompts' lines that differ, then the runs side by side as `judge compare` shows them, one size smaller."""
    for change in found.changes:
        if lines := changed(change):
            names = ", ".join(change.columns)
            yield _folded(f"{_name(suite)}: prompt of {line(names, _NAME)}", _fenced("\n".join(lines)))
    page = re.sub(r"^(#{2,3}) ", r"##\1 ", found.report("markdown"), flags=re.MULTILINE)
    yield _folded(f"{_name(suite)}: against the baseline", page.rstrip("\n"))


def _fenced(text: str) -> str:
    """A diff as it is, in a fence that is longer than any in it."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}diff\n{text}\n{fence}"
