"""What a notebook shows of a result, of two runs and of two criteria: the answer, the numbers, and the rest folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from markupsafe import Markup, escape

from judge.core.format import escape_controls, plural
from judge.core.records import ABSTAINED
from judge.report.renderers.html import template
from judge.report.views.comparison import Section, layout
from judge.report.views.criterion_diff import told as told_of
from judge.report.views.leaderboard import build_leaderboard, verdict
from judge.report.views.ranking import build_ranking
from judge.results.comparison import RunComparison
from judge.results.criterion_diff import CriterionDiff
from judge.results.result import Result

_KINDS = 4


def of_result(result: Result) -> str:
    """The verdict, the table of means or the standings, and what failed."""
    macros = template("summary.html.jinja").module
    said = [verdict(result), *failed(result)]
    if result.rankings:
        contests = build_ranking(result)
        tables = [str(macros.standing(contest, contest.label)) for contest in contests.contests]
        return "".join([*_lines(said), *tables, _folded("How to read this", _lines([contests.caption]))])
    shown = build_leaderboard(result)
    captions = [text for text in (shown.ranked, shown.caption) if text]
    return "".join(
        [*_lines(said), str(macros.summary(shown, caption=False)), _folded("How to read this", _lines(captions))]
    )


def failed(result: Result) -> Iterator[str]:
    """How many values could not be had, by their kinds; nothing where all could."""
    if not result.failed:
        return
    kinds = Counter((row.error, row.column) for row in result.failures if row.error != ABSTAINED)
    named = [f"{many:,} {error} ({column})" for (error, column), many in kinds.most_common(_KINDS)]
    more = f" and {len(kinds) - _KINDS} more kinds" if len(kinds) > _KINDS else ""
    every = result.failed + len(result.table.scores)
    yield f"{result.failed:,} of {plural(every, 'value')} failed: {', '.join(named)}{more}. .failures says why of each."


def of_runs(found: RunComparison) -> str:
    """What moved, column by column."""
    shown = layout(found)
    tables = [f"<p><b>{_text(section.name)}</b></p>{_section(section)}" for section in shown.sections]
    changes = [f"{title}: {change.before} → {change.after}" for title, change in shown.changes]
    rest = [*shown.notes, *changes, shown.unchanged, shown.how if shown.sections else ""]
    return "".join([f"<p><b>{_text(shown.title)}</b></p>", *_lines(shown.told), *tables, _folded("More", _lines(rest))])


def of_prompts(found: CriterionDiff) -> str:
    """The answer in sentences, what a judge's scores did, and the lines that differ."""
    title = f"<p><b>{_text(' → '.join(found.names))}</b></p>"
    judged = found.judged.comparison if found.judged is not None else None
    tables = [_section(section) for section in layout(judged).sections] if judged is not None else []
    lines = Markup("\n").join(_text(line) for line in found.diff)
    folded = _folded(plural(len(found.diff), "line"), [f"<pre>{lines}</pre>"]) if found.diff else ""
    return "".join([title, *_lines([*told_of(found), *found.notes]), *tables, folded])


def _section(section: Section) -> str:
    heads = ("system", "before", "after", "change", "p", "↑ = ↓")
    rows = [
        (row.system, row.before, row.after, f"{row.mark}{row.change} {row.interval}", row.p, row.texts)
        for row in section.rows
    ]
    body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead><tbody>{body}</tbody></table>"
    )


def _lines(texts: Iterable[str]) -> list[str]:
    return [f"<p>{_text(text)}</p>" for text in texts if text]


def _folded(title: str, parts: list[str]) -> str:
    return f"<details><summary>{_text(title)}</summary>{''.join(parts)}</details>" if parts else ""


def _text(text: str) -> Markup:
    return escape(escape_controls(text))
