"""Outcomes as JUnit XML and as JSON: golden files, what parsers read of them, and characters that XML forbids."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from judge.core.format import escape_controls, one_line
from judge.report.renderers import suite
from judge.suite.evaluate import Outcome
from judge.suite.expectations.case import Verdict
from judge.suite.schema import Suite


def test_golden(outcomes: list[Outcome], golden: Any) -> None:
    golden("junit.xml", suite.render_junit(outcomes))


SUITE = Suite(Path("a.judge.yaml"), "a", {}, ())
any_text = st.text(st.characters(codec=None), max_size=40)


@given(any_text, any_text, st.sampled_from(["failed", "error", "passed"]))
def test_any_text_is_xml(name: str, said: str, status: Any) -> None:
    verdict = Verdict(
        name, 1, "score_range", "c", status, status == "passed", "≥ 4", said, said, detail=f"{said}\n{name}"
    )
    text = suite.render_junit([Outcome(SUITE, (verdict,))])
    case = ElementTree.fromstring(text.encode()).find(".//testcase")
    assert case is not None
    escaped = one_line(name, 80).replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    assert case.get("name") == escaped
    assert escape_controls(text) == text


def test_json_is_strict_and_whole(outcomes: list[Outcome], golden: Any) -> None:
    text = suite.render_json([replace(outcomes[1], verdicts=outcomes[1].verdicts[:1]), outcomes[2]])
    golden("test.json", text)
    found = json.loads(suite.render_json(outcomes), parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
    assert (found["schema"], found["passed"]) == ("judge.test/1", False)
    first = found["suites"][0]
    assert (first["model"], first["comparison"]["schema"]) == ("small-judge", "judge.compare/1")
    assert [one["status"] for one in first["verdicts"]][:4] == ["failed", "passed", "undecided", "error"]
    assert found["suites"][2]["trouble"].startswith("suites/stuck.judge.yaml:4")
    assert found["suites"][2]["comparison"] is None
