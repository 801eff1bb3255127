"""Outcomes laid out once for every format: what needs attention in a sentence, and each verdict in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.core.messages import escape_controls, one_line, plural
from judge.report.views.comparison import Layout, layout
from judge.results.comparison import Change
from judge.suite.records import Kind, Outcome, Status, Verdict

_NAMED, _NAME, _SAID, _REPLY, _DIFF = 8, 80, 500, 1_000, 200
_WHOLE = ("limit", "baseline")  # kinds that are no case's
_WORDS: dict[Status, str] = {
    "passed": "passed",
    "failed": "failed",
    "undecided": "undecided",
    "error": "without a score",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A verdict of a `kind`: `state` is what it counts as, in a word; `where` its file and line."""

    kind: Kind
    name: str
    where: str
    mark: str
    state: str
    met: bool
    expected: str
    found: str
    before: str
    said: str
    detail: str


@dataclass(frozen=True, slots=True)
class SuiteView:
    """A suite: `told` is its sentence, `flaky` names such cases, `compared` is laid out beside the baseline."""

    name: str
    path: str
    told: str
    passed: bool
    rows: tuple[Row, ...]
    flaky: str
    notes: tuple[str, ...]
    trouble: str
    compared: Layout | None
    seconds: float

    @property
    def unmet(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.met)


def suite_view(outcome: Outcome) -> SuiteView:
    """Lay an outcome out; all its text is safe to print and on one line, but `detail` and diffs, which have several."""
    path = _path(outcome.suite.path)
    return SuiteView(
        one_line(outcome.suite.name, _NAME),
        path,
        suite_summary([outcome]),
        outcome.passed,
        tuple(_row(verdict, path) for verdict in outcome.verdicts),
        _flaky(outcome.verdicts),
        tuple(one_line(note, _SAID) for note in outcome.notes),
        escape_controls(outcome.trouble),
        layout(outcome.comparison) if outcome.comparison else None,
        outcome.seconds,
    )


def _path(path: Path) -> str:
    """As short as it can be written from here."""
    try:
        return one_line(str(path.absolute().relative_to(Path.cwd())))
    except ValueError:
        return one_line(str(path))


def _row(verdict: Verdict, path: str) -> Row:
    mark = {"passed": "✓", "failed": "✗", "undecided": "?", "error": "!"}[verdict.status]
    said = one_line(verdict.said, _SAID)
    if verdict.status == "undecided" and verdict.met:
        said = f"{said} (counts as met)".lstrip()
    return Row(
        verdict.kind,
        one_line(verdict.name, _NAME),
        f"{path}:{verdict.line}",
        mark,
        "not known" if verdict.status == "error" and verdict.kind in _WHOLE else _WORDS[verdict.status],
        verdict.met,
        one_line(verdict.expected, _SAID),
        one_line(verdict.found, _SAID),
        one_line(verdict.before, _SAID),
        said,
        escape_controls(verdict.detail[:_REPLY]).strip(),
    )


def _flaky(verdicts: Sequence[Verdict]) -> str:
    """`a (35%), b (12%)`: the cases that single replies would have turned, the most likely first."""
    found = sorted((v for v in verdicts if v.flaky is not None), key=lambda v: -(v.flaky or 0.0))
    named = [f"{one_line(v.name, _NAME)} ({v.flaky:.0%})" for v in found[:_NAMED]]
    return ", ".join(named) + (f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else "")


def suite_summary(outcomes: Sequence[Outcome]) -> str:
    """What needs attention, first: `3 of 12 cases not met: 1 failed, 1 undecided, 1 without a score.`"""
    return " ".join(_sentences(outcomes))


def _sentences(outcomes: Sequence[Outcome]) -> Iterator[str]:
    verdicts = [verdict for one in outcomes for verdict in one.verdicts]
    cases = [one for one in verdicts if one.kind not in _WHOLE]
    stuck = [one for one in outcomes if one.trouble]
    if stuck:
        yield (
            "The suite could not be run." if len(outcomes) == 1 else f"{plural(len(stuck), 'suite')} could not be run."
        )
    unmet = Counter(_WORDS[one.status] for one in cases if not one.met)
    if unmet:
        kinds = [f"{unmet[word]:,} {word}" for word in _WORDS.values() if unmet[word]]
        yield f"{unmet.total():,} of {plural(len(cases), 'case')} not met: {', '.join(kinds)}."
    elif cases:
        left = sum(one.status == "undecided" for one in cases)
        more = f", {left:,} of them undecided" if left else ""
        yield f"{'All ' if len(cases) > 1 else ''}{plural(len(cases), 'case')} met{more}."
    over = [one for one in verdicts if one.kind == "limit" and not one.met]
    if over:
        yield f"{plural(len(over), 'limit')} not kept: {_names(one.name for one in over)}."
    beside = [one for one in verdicts if one.kind == "baseline" and not one.met]
    worse = [one.criterion for one in beside if one.status == "failed"]
    if worse:
        yield f"Worse than the baseline: {_names(worse)}."
    if lost := [one.criterion for one in beside if one.status != "failed"]:
        yield f"Not comparable with the baseline: {_names(lost)}."
    for one in outcomes:
        whose = f"{one_line(one.suite.name, _NAME)}: " if len(outcomes) > 1 else ""
        yield from (f"{whose}{one_line(warning, _SAID)}" for warning in one.warnings)


def _names(names: Iterator[str] | Sequence[str]) -> str:
    kept = list(dict.fromkeys(one_line(name, _NAME) for name in names))
    return ", ".join(kept[:_NAMED]) + (f" and {len(kept) - _NAMED:,} more" if len(kept) > _NAMED else "")


def totals(outcomes: Sequence[Outcome]) -> str:
    """The summary over several suites, with how many there are."""
    many = f"{plural(len(outcomes), 'suite')}: " if len(outcomes) > 1 else ""
    return f"{many}{suite_summary(outcomes)}"


def changed(change: Change) -> list[str]:
    """The lines of two prompts that differ, safe to print; of many the first, and how many more there are."""
    lines = [escape_controls(one).replace("\n", " ") for one in change.diff[:_DIFF]]
    more = len(change.diff) - _DIFF
    return [*lines, f"… {plural(more, 'more line')}"] if more > 0 else lines
