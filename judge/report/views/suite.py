"""The report of `judge test`: failing cases with reasons, then all verdicts and the baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

from judge.core import plugins
from judge.core.format import exact_duration, first_names, one_line, plural
from judge.core.messages import full_report, option
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Code,
    Details,
    Document,
    Excerpt,
    Excerpts,
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
from judge.report.views import gate_risk
from judge.suite.case import Status, Verdict
from judge.suite.evaluate import Outcome, Outcomes
from judge.suite.judged_texts import JudgedText

SCHEMA = "judge.test/1"
_TOP = 6  # failing verdicts in the summary
_QUOTED = 3  # failing verdicts of the summary with their texts
_TEXTS_OF_ORDER = 2
_QUOTE = 160  # characters of a text or reason in the summary
_MAX_NAMED = 8  # names in a sentence
_NAME = 80  # characters
_SENTENCE = 500
_REPLY = 1_000
_MARKS: Mapping[Status, tuple[str, Tone]] = {
    "passed": ("✓", "good"),
    "failed": ("✗", "bad"),
    "undecided": ("?", "warning"),
    "error": ("!", "bad"),
}
_BY_URGENCY: Sequence[Status] = ("failed", "undecided", "error", "passed")
_ESTIMATE_FIELDS = ("value", "low", "high", "n", "p", "method")
_Pair = tuple[Outcome, Verdict]


def view(outcomes: Outcomes) -> Document:
    """Return the report of suites that were run."""
    pairs: list[_Pair] = []
    for outcome in outcomes:
        pairs += [(outcome, verdict) for verdict in outcome.verdicts]
    failing = [(outcome, verdict) for outcome, verdict in pairs if not verdict.met]
    # A gate that passes names what it passed without evidence.
    undecided = [pair for pair in pairs if pair[1].status == "undecided"]
    lines = []
    for number, (outcome, verdict) in enumerate(failing or undecided):
        line = _line(outcome, verdict, quoted=number < _QUOTED)
        lines.append(line)
    scope = plural(len(outcomes), "suite")
    if len(outcomes) < 2:
        scope = _path(outcomes[0]) if outcomes else ""
    names = ", ".join(outcome.suite.name for outcome in outcomes)
    mark = "✓" if outcomes.passed else "✗"
    tone: Tone = "good" if outcomes.passed else "bad"
    notices = tuple(_notices(outcomes))
    sentences = summarize(outcomes)
    data = {
        "schema": SCHEMA,
        "passed": outcomes.passed,
        "summary": ". ".join(sentences),
        "notices": list(notices),
        "suites": list(map(_data, outcomes)),
    }
    # The headline has no full stop.
    headline, *details = sentences
    finding = [headline, *(f"{sentence}." for sentence in details)]
    footer = _footer(outcomes, pairs, failing, len(lines))
    records = [_record(outcome, verdict) for outcome, verdict in pairs]
    return Document(
        title=f"{mark} judge test: {names}",
        finding=tuple(finding),
        tone=tone,
        scope=scope,
        about=tuple(map(_path, outcomes)),
        notices=notices,
        summary=tuple(_summary(outcomes, lines)),
        sections=tuple(_sections(outcomes)),
        footer=tuple(footer),
        next=tuple(_next_commands(failing)),
        data=data,
        records=tuple(records),
        tests=tuple(map(_test_suite, outcomes)),
    )


def _summary(outcomes: Outcomes, lines: Sequence[str]) -> Iterator[Block]:
    """Yield the verdicts to read first, and the risk of each suite, if it was estimated."""
    if lines:
        yield Bullets(tuple(lines[:_TOP]))
    for outcome in outcomes:
        if outcome.risk is not None:
            yield from gate_risk.blocks(outcome.risk, outcome.suite.name)


def _sections(outcomes: Outcomes) -> Iterator[Section]:
    """Yield a section for each suite that has verdicts."""
    are_several = len(outcomes) > 1
    for outcome in outcomes:
        if outcome.verdicts:
            suite_name = outcome.suite.name
            title = suite_name if are_several else "Cases"
            make_blocks = partial(_blocks, outcome, are_several)
            yield Section(f"suite-{suite_name}", title, make_blocks)


def _line(outcome: Outcome, verdict: Verdict, *, quoted: bool) -> str:
    """Return a verdict with its place in the suite's file and what was measured.

    `quoted` adds the text that lacks most.
    """
    mark, _ = _MARKS[verdict.status]
    verdict_name = one_line(verdict.name, _NAME)
    location = f"{_path(outcome)}:{verdict.line}"
    lines = [
        f"{mark} {verdict_name} ({location}):",
        _message(outcome, verdict),
    ]
    # A case of order quotes both texts of an item.
    n_quoted = _TEXTS_OF_ORDER if verdict.kind == "order" else 1
    if quoted:
        quoted_texts = verdict.texts[:n_quoted]
        lines += [_quote(outcome, text) for text in quoted_texts]
    return "\n".join(lines)


def _quote(outcome: Outcome, text: JudgedText) -> str:
    """Return a text with its score and the judge's reason."""
    earlier_value = _before(outcome, text)
    note = f" ({earlier_value})" if earlier_value else ""
    request = ""
    if text.request:
        request = f" to “{one_line(text.request, _QUOTE)}”"
    text_name = text.name or "text"
    output = one_line(text.output, _QUOTE)
    line = f"{text_name} {text.score}{note}: “{output}”{request}"
    if text.reason:
        line += f"; judge: {one_line(text.reason, _QUOTE)}"
    return line


def _before(outcome: Outcome, text: JudgedText) -> str:
    """Return the score of a text in the earlier run: `last run 4.00, another text`."""
    if not text.before:
        return ""
    edited = ", another text" if text.edited else ""
    return f"{outcome.earlier} {text.before}{edited}"


def _footer(
    outcomes: Outcomes,
    pairs: Sequence[_Pair],
    failing: Sequence[_Pair],
    n_lines: int,
) -> Iterator[str]:
    n_more = n_lines - _TOP
    if n_more > 0:
        yield f"{n_more:,} more: {full_report()}"
    seconds = sum(outcome.seconds for outcome in outcomes)
    took = exact_duration(seconds)
    checks = _checks(pairs, failing) or "nothing was checked"
    yield f"{checks} · {took}"


def _checks(pairs: Sequence[_Pair], failing: Sequence[_Pair]) -> str:
    """Count what is met: `met: 4 of 5 cases, 2 of 2 limits`."""
    n_checked = Counter(verdict.subject for _, verdict in pairs)
    n_failed = Counter(verdict.subject for _, verdict in failing)
    counts: list[str] = []
    for group, total in n_checked.items():
        n_met = total - n_failed[group]
        all_of_group = plural(total, group)
        counts.append(f"{n_met:,} of {all_of_group}")
    return "met: " + ", ".join(counts) if counts else ""


def _next_commands(failing: Sequence[_Pair]) -> Iterator[str]:
    """Suggest to accept a change of the baseline, if nothing else fails, or to see everything."""
    if not failing:
        return
    # The command may have named the judge or a recording, which the suite does not know.
    if all(verdict.kind in ("baseline", "drift") for _, verdict in failing):
        yield f"the same command with {option('update_baseline', True)}"
    yield f"the same command with {full_report()}"


def _record(outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as CSV has it: with its estimate's numbers in columns of their own."""
    record: dict[str, Any] = {"suite": outcome.suite.name, "path": _path(outcome)}
    record |= asdict(verdict)
    # Numbers have columns of their own, and the texts have no place in a row.
    del record["estimate"]
    del record["texts"]
    for field_name in _ESTIMATE_FIELDS:
        record[field_name] = getattr(verdict.estimate, field_name, None)
    return record


def summarize(outcomes: Sequence[Outcome]) -> list[str]:
    """Summarise outcomes in sentences, failures first.

    The first is for example `12 cases: 1 failed, 2 undecided, 9 passed`.
    """
    verdicts = [verdict for outcome in outcomes for verdict in outcome.verdicts]
    cases = [verdict for verdict in verdicts if verdict.subject == "case"]
    all_met = all(verdict.met for verdict in cases)
    sentences = []
    n_stuck = sum(bool(outcome.trouble) for outcome in outcomes)
    if n_stuck:
        stuck_suites = plural(n_stuck, "suite")
        sentences.append(f"{stuck_suites} could not run")
    if not all_met:
        sentences.append(_counted_cases(cases))
    for subject, names in _missed_names(verdicts).items():
        if names:
            listed = first_names(dict.fromkeys(names), _MAX_NAMED)
            sentences.append(f"{subject}: {listed}")
    if cases and all_met:
        sentences.append(_counted_cases(cases))
    return sentences or ["No case was run"]


def _counted_cases(cases: Sequence[Verdict]) -> str:
    """Return `12 cases: 1 failed, 2 undecided (1 passes), 9 passed`, or `All 12 cases pass`."""
    counts = Counter(verdict.status for verdict in cases)
    n_cases = plural(len(cases), "case")
    if counts.keys() == {"passed"}:
        return f"{n_cases} passes" if len(cases) == 1 else f"All {n_cases} pass"
    kinds = {status: f"{count:,} {status}" for status, count in counts.items()}
    if counts["error"]:
        kinds["error"] = plural(counts["error"], "error")
    n_passing = sum(verdict.met for verdict in cases if verdict.status == "undecided")
    if n_passing:
        verb = "passes" if n_passing == 1 else "pass"
        kinds["undecided"] += f" ({n_passing:,} {verb})"
    by_urgency = ", ".join(kinds[status] for status in _BY_URGENCY if status in kinds)
    return f"{n_cases}: {by_urgency}"


def _missed_names(verdicts: Sequence[Verdict]) -> dict[str, list[str]]:
    """Return the limits and baselines that are not met, by the beginning of their sentence."""
    names: dict[str, list[str]] = {
        "Limit not met": [],
        "Limit not checked": [],
        "Worse than the baseline": [],
        "Not comparable with the baseline": [],
    }
    for verdict in verdicts:
        if verdict.met:
            continue
        is_known = verdict.status == "failed"
        if verdict.subject == "limit":
            subject = "Limit not met" if is_known else "Limit not checked"
            names[subject].append(verdict.name)
        elif verdict.subject == "baseline":
            subject = "Worse than the baseline"
            if not is_known:
                subject = "Not comparable with the baseline"
            names[subject].append(verdict.criterion)
    return names


def _path(outcome: Outcome) -> str:
    """Return the suite's path, relative if it is below the working directory."""
    path = outcome.suite.path
    if path.absolute().is_relative_to(Path.cwd()):
        path = path.absolute().relative_to(Path.cwd())
    return str(path)


def _notices(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield why suites could not run, their warnings and their notes."""
    for outcome in outcomes:
        suite = f"{outcome.suite.name}: " if len(outcomes) > 1 else ""
        if outcome.trouble:
            names_suite = str(outcome.suite.path) in outcome.trouble
            prefix = "" if names_suite else suite
            yield f"{prefix}{outcome.trouble}"
        for text in (*outcome.warnings, *outcome.notes):
            yield f"{suite}{text}"


def _message(outcome: Outcome, verdict: Verdict) -> str:
    """Say what was expected and what was measured."""
    reason = verdict.reason
    # The detail of an error begins with its kind, which is the reason, and its message.
    if verdict.status == "error" and verdict.detail.startswith(reason):
        reason, _, _ = verdict.detail.partition("\n")
    measured = verdict.found
    if verdict.before:
        measured = f"{measured} ({outcome.earlier} {verdict.before})"
    result = ": ".join(filter(None, [measured, reason]))
    remark = _remark_on_undecided(verdict)
    text = f"expected {verdict.expected}, found {result}{remark}"
    return one_line(text, _SENTENCE)


def _remark_on_undecided(verdict: Verdict) -> str:
    """Say that an undecided case counts as passed, if it does."""
    if verdict.met and verdict.status == "undecided":
        return " (counts as passed)"
    return ""


# Every verdict


def _blocks(outcome: Outcome, are_several: bool) -> Iterator[Block]:
    """Yield all verdicts of a suite, the details of the failing ones, and the baseline."""
    if are_several:
        summary = ". ".join(summarize([outcome]))
        yield Paragraph(summary)
    n_verdicts = plural(len(outcome.verdicts), "verdict")
    yield Details(n_verdicts, (_verdict_table(outcome),))
    texts = tuple(_texts(outcome))
    if texts:
        yield Details("Texts of cases that did not pass", texts)
    for verdict in outcome.verdicts:
        if verdict.detail and not verdict.met:
            yield Heading(verdict.name, 4)
            yield Code(verdict.detail[:_REPLY].strip())
    if outcome.comparison is None:
        return
    compared = plugins.document(outcome.comparison)
    blocks: list[Block] = [Paragraph(sentence) for sentence in compared.finding]
    blocks += [Notice(notice) for notice in compared.notices]
    for block in compared.summary:
        # The sections have short tables in full.
        is_short = isinstance(block, Table) and block.short
        if not is_short:
            blocks.append(block)
    for section in compared.sections:
        blocks += [Heading(section.title), *section.blocks]
    yield Details(f"Against the baseline: {compared.title}", tuple(blocks))


def _texts(outcome: Outcome) -> Iterator[Block]:
    """Yield the texts of each case that did not pass, below its name."""
    for verdict in outcome.verdicts:
        excerpts = []
        for text in verdict.texts:
            text_name = text.name or "text"
            note = _before(outcome, text)
            excerpt = Excerpt(
                text.score,
                "",
                text_name,
                "",
                reason=text.reason,
                note=note,
                tone="bad",
                text=text.output,
            )
            excerpts.append(excerpt)
        if excerpts:
            yield Heading(verdict.name, 4)
            yield Excerpts("", tuple(excerpts), verdict.n_texts - len(excerpts))


def _verdict_table(outcome: Outcome) -> Table:
    rows = []
    for verdict in outcome.verdicts:
        mark, tone = _MARKS[verdict.status]
        if verdict.met:
            tone = ""
        location = f"{_path(outcome)}:{verdict.line}"
        earlier_value = f"{outcome.earlier} {verdict.before}" if verdict.before else ""
        name_cell = Cell(f"{mark} {verdict.name}", tone=tone, title=location)
        measured = Cell(verdict.found, note=earlier_value)
        reason = verdict.reason + _remark_on_undecided(verdict)
        rows.append((name_cell, verdict.expected, measured, reason.lstrip()))
    return text_table(
        ("case", "expected", "found", "reason"),
        rows,
        key="✓ passed · ✗ failed · ? undecided · ! error",
        name="cases",
    )


# Programs


def _data(outcome: Outcome) -> dict[str, Any]:
    result = outcome.result or outcome.ranked
    comparison = None
    if outcome.comparison is not None:
        comparison = plugins.document(outcome.comparison).data
    model = None
    if result is not None:
        model = result.info.model or None
    summary = ". ".join(summarize([outcome]))
    return {
        "name": outcome.suite.name,
        "path": str(outcome.suite.path),
        "passed": outcome.passed,
        "summary": summary,
        "trouble": outcome.trouble,
        "verdicts": outcome.verdicts,
        "warnings": outcome.warnings,
        "notes": outcome.notes,
        "model": model,
        "comparison": comparison,
        "seconds": outcome.seconds,
        "risk": outcome.risk,
    }


def _test_suite(outcome: Outcome) -> TestSuite:
    """Return a suite for JUnit; one that could not run is a test with an error."""
    path = _path(outcome)
    cases = []
    if outcome.trouble:
        cases.append(TestCase("suite", "error", outcome.trouble, kind="trouble"))
    for verdict in outcome.verdicts:
        message = _message(outcome, verdict)
        status: Literal["passed", "failed", "error"] = "passed"
        if not verdict.met:
            status = "error" if verdict.status == "error" else "failed"
            detail = verdict.detail[:_REPLY].strip()
            lines = [message, f"{path}:{verdict.line}", detail]
            lines += [_quote(outcome, text) for text in verdict.texts]
            n_more = verdict.n_texts - len(verdict.texts)
            if n_more:
                more_texts = plural(n_more, "more text")
                lines.append(f"and {more_texts}")
            message = "\n".join(filter(None, lines))
        test_name = _test_name(verdict)
        case = TestCase(
            test_name, status, message, kind=verdict.status, line=verdict.line
        )
        cases.append(case)
    return TestSuite(outcome.suite.name, tuple(cases), path, outcome.seconds)


def _test_name(verdict: Verdict) -> str:
    """Return the name of a test, which no case shares with a limit: both may be `failures`."""
    return f"(limit) {verdict.name}" if verdict.subject == "limit" else verdict.name
