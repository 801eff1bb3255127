"""The report of `judge test`: the failing cases with their reasons, then every verdict and the baseline."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

from judge.core import plugins
from judge.core.format import first_names, one_line, plural, seconds
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Details,
    Document,
    Heading,
    Notice,
    Paragraph,
    Section,
    Table,
    TestCase,
    TestSuite,
    Tone,
    text_table,
)
from judge.suite.case import Status, Verdict
from judge.suite.evaluate import Outcome, Outcomes

SCHEMA = "judge.test/1"
_TOP = 6  # failing verdicts in the summary
_MAX_NAMED = 8  # names in a sentence
_NAME, _SENTENCE, _REPLY = 80, 500, 1_000  # characters
_MARKS: Mapping[Status, tuple[str, Tone]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "undecided": ("?", "warning"),
    "error": ("!", "bad"),
}


def view(outcomes: Outcomes) -> Document:
    """Return the report of suites that were run."""
    pairs = [(outcome, verdict) for outcome in outcomes for verdict in outcome.verdicts]
    failing = [(outcome, verdict) for outcome, verdict in pairs if not verdict.met]
    # A gate that passes names what it passed without evidence.
    named = failing or [
        (outcome, verdict) for outcome, verdict in pairs if verdict.status == "undecided"
    ]
    names = ", ".join(outcome.suite.name for outcome in outcomes)
    several = len(outcomes) > 1
    lines = [
        f"{_MARKS[v.status][0]} {one_line(v.name, _NAME)} ({_path(o)}:{v.line}):\n{_message(v)}"
        for o, v in named
    ]
    paths = shlex.join(dict.fromkeys(_path(outcome) for outcome, _ in failing))
    accepted = failing and all(verdict.kind in ("baseline", "drift") for _, verdict in failing)
    options = [*["--update-baseline"] * bool(accepted), *["--full"] * bool(failing)]
    headline, *others = summarize(outcomes)
    return Document(
        title=f"{'✓' if outcomes.passed else '✗'} judge test: {names}",
        finding=(headline, *(f"{sentence}." for sentence in others)),
        tone="good" if outcomes.passed else "bad",
        scope=plural(len(outcomes), "suite") if several else _path(outcomes[0]) if outcomes else "",
        about=tuple(map(_path, outcomes)),
        notices=tuple(_notices(outcomes)),
        summary=(Bullets(tuple(lines[:_TOP])),) if lines else (),
        sections=tuple(
            Section(
                f"suite-{outcome.suite.name}",
                outcome.suite.name if several else "Cases",
                partial(_blocks, outcome, several),
            )
            for outcome in outcomes
            if outcome.verdicts
        ),
        footer=(
            *([f"{len(lines) - _TOP:,} more: --full"] if len(lines) > _TOP else []),
            f"{len(pairs) - len(failing):,} of {plural(len(pairs), 'check')} passed · "
            f"{seconds(sum(o.seconds for o in outcomes))}",
        ),
        next=tuple(f"judge test {paths} {option}" for option in options),
        data={
            "schema": SCHEMA,
            "passed": outcomes.passed,
            "summary": ". ".join([headline, *others]),
            "suites": list(map(_data, outcomes)),
        },
        records=tuple(
            {"suite": outcome.suite.name, "path": _path(outcome)}
            | {name: value for name, value in asdict(verdict).items() if name != "estimate"}
            | {
                name: getattr(verdict.estimate, name, None)
                for name in ("value", "low", "high", "n", "p", "method")
            }
            for outcome, verdict in pairs
        ),
        tests=tuple(map(_test_suite, outcomes)),
    )


def summarize(outcomes: Sequence[Outcome]) -> list[str]:
    """Summarise outcomes in sentences, failures first: `3 of 12 cases fail: 1 failed, 2 undecided`."""
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    cases = [verdict for verdict in verdicts if verdict.subject == "case"]
    failing = Counter(verdict.status for verdict in cases if not verdict.met)
    count = plural(len(cases), "case")
    sentences = []
    if stuck := sum(bool(outcome.trouble) for outcome in outcomes):
        sentences.append(f"{plural(stuck, 'suite')} could not run")
    if failing:
        kinds = ", ".join(f"{failing[status]:,} {status}" for status in _MARKS if failing[status])
        verb = "fails" if len(cases) == 1 else "fail"
        reasons = f": {kinds}" if failing.keys() != {"failed"} else ""
        sentences.append(f"{failing.total():,} of {count} {verb}{reasons}")
    missed = [verdict for verdict in verdicts if not verdict.met]
    limits = [verdict for verdict in missed if verdict.subject == "limit"]
    compared = [verdict for verdict in missed if verdict.subject == "baseline"]
    named = {
        "Limit not met": [verdict.name for verdict in limits if verdict.status == "failed"],
        "Limit not checked": [verdict.name for verdict in limits if verdict.status != "failed"],
        "Worse than the baseline": [
            verdict.criterion for verdict in compared if verdict.status == "failed"
        ],
        "Not comparable with the baseline": [
            verdict.criterion for verdict in compared if verdict.status != "failed"
        ],
    }
    for text, names in named.items():
        if names:
            shown = first_names(dict.fromkeys(names), _MAX_NAMED)
            sentences.append(f"{text}: {shown}")
    if cases and not failing:
        undecided = sum(verdict.status == "undecided" for verdict in cases)
        all_cases = f"{count} passes" if len(cases) == 1 else f"All {count} pass"
        sentences.append(all_cases + (f", {undecided:,} of them undecided" if undecided else ""))
    return sentences or ["No case was run"]


def _path(outcome: Outcome) -> str:
    """Return the suite's path, relative if it is below the working directory."""
    path = outcome.suite.path
    return str(
        path.absolute().relative_to(Path.cwd())
        if path.absolute().is_relative_to(Path.cwd())
        else path
    )


def _notices(outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        suite = f"{outcome.suite.name}: " if len(outcomes) > 1 else ""
        if outcome.trouble:
            yield (
                outcome.trouble
                if str(outcome.suite.path) in outcome.trouble
                else f"{suite}{outcome.trouble}"
            )
        yield from (f"{suite}{text}" for text in (*outcome.warnings, *outcome.notes))


def _message(verdict: Verdict) -> str:
    reason = verdict.reason
    if verdict.status == "error" and verdict.detail.startswith(
        reason
    ):  # an error, then its message
        reason = verdict.detail.partition("\n")[0]
    measured = ": ".join(filter(None, [verdict.found, reason])) + _counts(verdict)
    return one_line(f"expected {verdict.expected}, found {measured}", _SENTENCE)


def _counts(verdict: Verdict) -> str:
    return " (counts as passed)" if verdict.met and verdict.status == "undecided" else ""


# Every verdict


def _blocks(outcome: Outcome, several: bool) -> Iterator[Block]:
    if several:
        yield Paragraph(". ".join(summarize([outcome])))
    rows = [
        (
            Cell(
                f"{mark} {v.name}", tone="" if v.met else tone, title=f"{_path(outcome)}:{v.line}"
            ),
            v.expected,
            Cell(v.found, note=f"baseline {v.before}" if v.before else ""),
            f"{v.reason}{_counts(v)}".lstrip(),
        )
        for v in outcome.verdicts
        for mark, tone in [_MARKS[v.status]]
    ]
    key = "✓ passed · ✗ failed · ? undecided · ! error"
    verdicts = text_table(
        ("case", "expected", "found", "reason"), rows, key=key, caption="Verdicts.", name="cases"
    )
    yield Details(plural(len(outcome.verdicts), "verdict"), (verdicts,))
    for verdict in outcome.verdicts:
        if verdict.detail and not verdict.met:
            yield Heading(verdict.name, 4)
            yield Code(verdict.detail[:_REPLY].strip())
    if outcome.comparison is not None:
        compared = plugins.document(outcome.comparison)
        blocks: list[Block] = [Paragraph(sentence) for sentence in compared.finding]
        blocks += [Notice(notice) for notice in compared.notices]
        blocks += [
            block for block in compared.summary if not (isinstance(block, Table) and block.short)
        ]
        for section in compared.sections:
            blocks += [Heading(section.title), *section.blocks]
        yield Details(f"Against the baseline: {compared.title}", tuple(blocks))


# Programs


def _data(outcome: Outcome) -> dict[str, Any]:
    result = outcome.result or outcome.ranked
    return {
        "name": outcome.suite.name,
        "path": str(outcome.suite.path),
        "passed": outcome.passed,
        "summary": ". ".join(summarize([outcome])),
        "trouble": outcome.trouble,
        "verdicts": outcome.verdicts,
        "warnings": outcome.warnings,
        "notes": outcome.notes,
        "model": result and (result.info.model or None),
        "comparison": outcome.comparison and plugins.document(outcome.comparison).data,
        "seconds": outcome.seconds,
    }


def _test_suite(outcome: Outcome) -> TestSuite:
    path = _path(outcome)
    cases = [TestCase("suite", "error", outcome.trouble, kind="trouble")] if outcome.trouble else []
    for verdict in outcome.verdicts:
        status: Literal["passed", "failed", "error"]
        status = "passed" if verdict.met else "error" if verdict.status == "error" else "failed"
        message = _message(verdict)
        if status != "passed":
            message = "\n".join(
                filter(None, [message, f"{path}:{verdict.line}", verdict.detail[:_REPLY].strip()])
            )
        cases.append(
            TestCase(verdict.name, status, message, kind=verdict.status, line=verdict.line)
        )
    return TestSuite(outcome.suite.name, tuple(cases), path, outcome.seconds)
