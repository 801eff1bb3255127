"""The report of `judge test`: order, every format, hostile names, and characters that XML forbids."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from judge.core.errors import ConfigError
from judge.core.format import escape_controls, one_line
from judge.suite.case import Decision, Verdict
from judge.suite.evaluate import Outcome, Outcomes
from judge.suite.schema import Suite
from tests.factories import has_line

pytestmark = pytest.mark.usefixtures("command_line")

PASSED = Decision("passed", found="4.5").verdict(
    kind="score_range", name="a", line=1, expected="≥ 4", criterion="c"
)
PARSER = MarkdownIt("commonmark").enable("table")
BARE = Suite(Path("a.judge.yaml"), "a", {}, ())


@pytest.mark.parametrize(
    ("name", "format", "full"),
    [
        ("console.txt", "console", False),
        ("full.txt", "console", True),
        ("summary.md", "markdown", False),
        ("junit.xml", "junit", False),
    ],
)
def test_golden(
    outcomes: list[Outcome],
    golden: Any,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    format: str,
    full: bool,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(name, Outcomes(outcomes).report(format, full=full))


def console(*outcomes: Outcome, **options: Any) -> str:
    return Outcomes(outcomes).report(**options)


def test_a_gate_that_passes_names_its_undecided_cases() -> None:
    lost = replace(
        PASSED,
        name="new beats old",
        status="undecided",
        expected="new > old",
        found="−0.80 [−1.70, 0.10]",
    )
    text = console(Outcome(BARE, verdicts=[PASSED, lost]))
    assert has_line(text, "2 cases", "1 undecided (1 passes)", "1 passed")
    assert "- ? new beats old (a.judge.yaml:1):" in text
    assert has_line(text, "new > old", "−0.80 [−1.70, 0.10]", "counts as passed")


def test_a_suite_that_cannot_run_counts_no_checks() -> None:
    text = console(Outcome(BARE, trouble="calls.jsonl has no reply to this prompt"))
    assert "nothing was checked" in text
    assert "0 of 0" not in text


def test_the_summary_fits_a_screen(
    outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = console(*outcomes[:1]).rstrip("\n").split("\n")
    assert len(lines) <= 26
    assert max(map(cell_len, lines)) <= 80
    assert has_line(lines[0], "6 cases: 1 failed, 2 undecided (1 passes), 1 error, 2 passed")
    assert "  Limit not met: failures." in lines
    assert "  Worse than the baseline: relevance." in lines
    assert "- ✗ the bridge is relevant (suites/summaries.judge.yaml:5):" in lines
    assert has_line(lines[-1], "Next", "--full")


def test_a_suite_that_passes_needs_two_lines(outcomes: list[Outcome]) -> None:
    first, last = console(outcomes[1]).split("\n\n")
    assert first.split("  ")[0] == "1 case passes"
    assert has_line(last, "1 of 1 case", "1 of 1 limit", "0.5\u00a0s")


def test_colour_is_codes_around_the_same_text(outcomes: list[Outcome]) -> None:
    plain, coloured = console(*outcomes, full=True), console(*outcomes, full=True, colour=True)
    assert "\x1b" not in plain
    stripped = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.split("\n")] == plain.split("\n")
    assert coloured != stripped


@pytest.mark.parametrize(
    ("verdicts", "facts"),
    [
        ([PASSED, PASSED], ("All 2 cases pass",)),
        (
            [PASSED, replace(PASSED, kind="drift", status="undecided")],
            ("2 cases: 1 undecided (1 passes), 1 passed",),
        ),
        ([PASSED, replace(PASSED, status="failed", met=False)], ("2 cases: 1 failed, 1 passed",)),
        ([PASSED, replace(PASSED, status="error", met=False)], ("2 cases: 1 error, 1 passed",)),
        ([replace(PASSED, status="error", met=False)] * 2, ("2 cases: 2 errors",)),
        (
            [replace(PASSED, status="undecided", met=False)] * 2,
            ("2 cases: 2 undecided",),
        ),
        (
            [PASSED, replace(PASSED, name="cost", kind="limit", status="error", met=False)],
            ("Limit not checked: cost",),
        ),
        (
            [replace(PASSED, kind="baseline", status="error", met=False)],
            ("Not comparable", "baseline: c"),
        ),
    ],
)
def test_failures_come_first(verdicts: list[Verdict], facts: tuple[str, ...]) -> None:
    headline = console(Outcome(BARE, tuple(verdicts))).splitlines()[0]
    assert headline.startswith(facts[0])
    assert has_line(headline, *facts)


def test_only_the_summary_refers_to_the_full_report_for_more_verdicts() -> None:
    outcome = Outcome(BARE, (replace(PASSED, status="failed", met=False),) * 8)
    assert "2 more: --full" in console(outcome)
    assert "--full" not in console(outcome, full=True)


def test_only_changes_from_the_baseline_can_become_the_baseline() -> None:
    worse = replace(PASSED, kind="baseline", status="failed", met=False)
    assert "the same command with --update-baseline" in console(Outcome(BARE, (worse,)))
    assert "--update-baseline" not in console(Outcome(BARE, (worse, replace(worse, kind="label"))))


def test_an_undecided_case_that_counts_as_passed_is_marked() -> None:
    verdict = replace(PASSED, status="undecided", reason="no significant difference from 4")
    assert "(counts as passed)" in " ".join(console(Outcome(BARE, (verdict,)), full=True).split())


def test_a_path_below_this_folder_is_written_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "x/a.judge.yaml" in console(
        Outcome(replace(BARE, path=tmp_path / "x" / "a.judge.yaml"), (PASSED,))
    )
    assert f"{tmp_path.parent}/b.yaml" in console(
        Outcome(replace(BARE, path=tmp_path.parent / "b.yaml"), (PASSED,))
    )


def test_nothing_in_a_name_or_reply_becomes_markup(outcomes: list[Outcome]) -> None:
    page = PARSER.render(Outcomes(outcomes).report("markdown"))
    assert "<script" not in page
    assert "<strong>b</strong>" not in page
    assert "\x1b" not in page


def test_markdown_fits_a_comment(outcomes: list[Outcome]) -> None:
    many = tuple(replace(outcomes[0].verdicts[k % 8], name=f"case {k}") for k in range(180))
    for number, cases in ((1, 180), (6, 180), (120, 9)):
        page = Outcomes([replace(outcomes[0], verdicts=many[:cases])] * number).report("markdown")
        assert page.count("<details>") == page.count("</details>")
        assert len(page) <= 60_000
        assert page.startswith("## ✗ judge test: summaries")


any_text = st.text(st.characters(codec=None), max_size=40)


@given(any_text, any_text, st.sampled_from(["failed", "error", "passed"]))
def test_any_text_is_xml(name: str, reason: str, status: Any) -> None:
    decision = Decision(status, reason, reason, detail=f"{reason}\n{name}")
    verdict = decision.verdict(kind="label", name=name, line=1, expected="≥ 4", criterion="c")
    text = Outcomes([Outcome(BARE, (verdict,))]).report("junit")
    case = ElementTree.fromstring(text.encode()).find(".//testcase")
    assert case is not None
    assert case.get("name") == one_line(name, 80).replace("\ufffe", "\\ufffe").replace(
        "\uffff", "\\uffff"
    )
    assert escape_controls(text) == text


def test_a_case_shares_its_name_in_junit_with_no_limit() -> None:
    limit = Decision("passed", "", "0 of 4").verdict(
        kind="limit", name="failures", line=1, expected="≤ 0"
    )
    case = replace(PASSED, name="failures")
    root = ElementTree.fromstring(Outcomes([Outcome(BARE, (case, limit))]).report("junit").encode())
    assert [test.get("name") for test in root.iter("testcase")] == ["failures", "(limit) failures"]


def test_json_is_strict_and_whole(outcomes: list[Outcome]) -> None:
    data = json.loads(Outcomes(outcomes).report("json"), parse_constant=pytest.fail)
    assert (data["schema"], data["passed"]) == ("judge.test/1", False)
    first, second, third = data["suites"]
    assert (first["model"], first["comparison"]["schema"]) == ("small-judge", "judge.compare/1")
    assert [verdict["status"] for verdict in first["verdicts"]][:4] == [
        "failed",
        "passed",
        "undecided",
        "error",
    ]
    verdict = second["verdicts"][0]
    assert (verdict["expected"], verdict["found"], verdict["reason"]) == (
        "3 to 5",
        "3.65 [3.42, 3.88]",
        "",
    )
    assert (verdict["estimate"]["value"], verdict["before"]) == (3.65, "4.00")
    assert (third["trouble"][:29], third["comparison"]) == ("suites/stuck.judge.yaml:4: ca", None)


def test_csv_has_a_row_per_verdict(outcomes: list[Outcome]) -> None:
    rows = list(csv.DictReader(StringIO(Outcomes(outcomes).report("csv"))))
    assert [row["name"] for row in rows] == [
        verdict.name for outcome in outcomes for verdict in outcome.verdicts
    ]
    assert (rows[0]["suite"], rows[0]["line"], rows[0]["flaky"], rows[0]["value"]) == (
        "summaries",
        "5",
        "0.65",
        "3.65",
    )


def test_latex_has_every_case(outcomes: list[Outcome]) -> None:
    text = Outcomes(outcomes).report("latex")
    assert all(
        name in text
        for name in ("the bridge is relevant", "edited beats draft", "nothing moves much")
    )


def test_an_unknown_format_is_refused(outcomes: list[Outcome]) -> None:
    with pytest.raises(ConfigError, match=r"'junt'.*'junit'"):
        Outcomes(outcomes).report("junt")


@pytest.mark.parametrize(
    ("status", "tail"), [("error", "ParseError: the reply is empty"), ("failed", "ParseError")]
)
def test_an_error_is_shown_with_the_first_line_of_its_message(status: Any, tail: str) -> None:
    verdict = replace(
        PASSED,
        status=status,
        met=False,
        found="",
        reason="ParseError",
        detail="ParseError: the reply is empty\nraw: x",
    )
    lines = [line.strip() for line in console(Outcome(BARE, (verdict,))).splitlines()]
    assert any(line.endswith(f"found {tail}") for line in lines)
