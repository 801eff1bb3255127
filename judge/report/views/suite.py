"""The layout of a suite's outcome that all formats share: a summary sentence, and a row for each verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.core.format import escape_controls, one_line, plural
from judge.results.comparison import Change
from judge.suite.evaluate import Outcome
from judge.suite.expectations.case import Status

_MAX_NAMED, _MAX_DIFF_LINES = 8, 200
_MAX_NAME, _MAX_SENTENCE, _MAX_REPLY = 80, 500, 1_000  # characters
_WORDS: dict[Status, str] = {
    "passed": "passed",
    "failed": "failed",
    "undecided": "undecided",
    "error": "without a score",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A verdict on a `subject`: `state` is what it counts as, in a word; `where` its file and line."""

    subject: str
    name: str
    where: str
    mark: str
    state: str
    met: bool
    expected: str
    actual: str
    before: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class SuiteView:
    """A suite: `summary` is one sentence, `flaky` lists flaky cases."""

    name: str
    path: str
    summary: str
    passed: bool
    rows: tuple[Row, ...]
    flaky: str
    notes: tuple[str, ...]
    trouble: str
    seconds: float

    @property
    def unmet(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.met)


def suite_view(outcome: Outcome) -> SuiteView:
    """Lay an outcome out; all its text is safe to print and on one line, but `detail` and diffs, which have several."""
    try:
        path = one_line(str(outcome.suite.path.absolute().relative_to(Path.cwd())))
    except ValueError:  # not below the working directory
        path = one_line(str(outcome.suite.path))
    flaky = [(verdict.flaky, verdict.name) for verdict in outcome.verdicts if verdict.flaky is not None]
    flaky_cases = [
        f"{one_line(name, _MAX_NAME)} ({share:.0%})" for share, name in sorted(flaky, key=lambda case: -case[0])
    ]
    rows = []
    for verdict in outcome.verdicts:
        mark = {"passed": "✓", "failed": "✗", "undecided": "?", "error": "!"}[verdict.status]
        reason = one_line(verdict.said, _MAX_SENTENCE)
        if verdict.status == "undecided" and verdict.met:
            reason = f"{reason} (counts as met)".lstrip()
        rows.append(
            Row(
                verdict.subject,
                one_line(verdict.name, _MAX_NAME),
                f"{path}:{verdict.line}",
                mark,
                "not known" if verdict.status == "error" and verdict.subject != "case" else _WORDS[verdict.status],
                verdict.met,
                one_line(verdict.expected, _MAX_SENTENCE),
                one_line(verdict.found, _MAX_SENTENCE),
                one_line(verdict.before, _MAX_SENTENCE),
                reason,
                escape_controls(verdict.detail[:_MAX_REPLY]).strip(),
            )
        )
    return SuiteView(
        one_line(outcome.suite.name, _MAX_NAME),
        path,
        suite_summary([outcome]),
        outcome.passed,
        tuple(rows),
        _listed(flaky_cases),
        tuple(one_line(note, _MAX_SENTENCE) for note in outcome.notes),
        escape_controls(outcome.trouble),
        outcome.seconds,
    )


def suite_summary(outcomes: Sequence[Outcome]) -> str:
    """Summarise outcomes, worst news first: `3 of 12 cases not met: 1 failed, 1 undecided, 1 without a score.`"""
    sentences = []
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    cases = [verdict for verdict in verdicts if verdict.subject == "case"]
    stuck = [outcome for outcome in outcomes if outcome.trouble]
    if stuck:
        subject = "The suite" if len(outcomes) == 1 else plural(len(stuck), "suite")
        sentences.append(f"{subject} could not be run.")
    unmet = Counter(_WORDS[verdict.status] for verdict in cases if not verdict.met)
    if unmet:
        kinds = [f"{unmet[word]:,} {word}" for word in _WORDS.values() if unmet[word]]
        sentences.append(f"{unmet.total():,} of {plural(len(cases), 'case')} not met: {', '.join(kinds)}.")
    elif cases:
        undecided = sum(verdict.status == "undecided" for verdict in cases)
        more = f", {undecided:,} of them undecided" if undecided else ""
        sentences.append(f"{'All ' if len(cases) > 1 else ''}{plural(len(cases), 'case')} met{more}.")
    missed_limits = [verdict.name for verdict in verdicts if verdict.subject == "limit" and not verdict.met]
    if missed_limits:
        sentences.append(f"{plural(len(missed_limits), 'limit')} not kept: {_names(missed_limits)}.")
    baseline_misses = [verdict for verdict in verdicts if verdict.subject == "baseline" and not verdict.met]
    worse = [verdict.criterion for verdict in baseline_misses if verdict.status == "failed"]
    if worse:
        sentences.append(f"Worse than the baseline: {_names(worse)}.")
    if lost := [verdict.criterion for verdict in baseline_misses if verdict.status != "failed"]:
        sentences.append(f"Not comparable with the baseline: {_names(lost)}.")
    for outcome in outcomes:
        suite = f"{one_line(outcome.suite.name, _MAX_NAME)}: " if len(outcomes) > 1 else ""
        sentences += [f"{suite}{one_line(warning, _MAX_SENTENCE)}" for warning in outcome.warnings]
    return " ".join(sentences)


def _names(names: Sequence[str]) -> str:
    return _listed(list(dict.fromkeys(one_line(name, _MAX_NAME) for name in names)))


def _listed(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _MAX_NAMED:,} more" if len(parts) > _MAX_NAMED else ""
    return ", ".join(parts[:_MAX_NAMED]) + more


def totals(outcomes: Sequence[Outcome]) -> str:
    """Summarise several suites, and say how many there are."""
    many = f"{plural(len(outcomes), 'suite')}: " if len(outcomes) > 1 else ""
    return f"{many}{suite_summary(outcomes)}"


def changed(change: Change) -> list[str]:
    """Return the first changed lines of two prompts, safe to print, and say how many more there are."""
    lines = [escape_controls(line).replace("\n", " ") for line in change.diff[:_MAX_DIFF_LINES]]
    more = len(change.diff) - _MAX_DIFF_LINES
    return [*lines, f"… {plural(more, 'more line')}"] if more > 0 else lines
