"""Outcomes as JUnit XML, which CI systems read: a test suite for each suite, a test case for each verdict."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from judge.report.format import clean
from judge.report.views.suite import Row, Shown, shown
from judge.suite.records import Outcome

# XML 1.0 has no place for these two, escaped or not (section 2.2); controls and lone surrogates `clean` writes out.
_FORBIDDEN = re.compile("[\ufffe\uffff]")

_MESSAGE = 2_000  # characters of why a suite could not be run


def render(outcomes: Sequence[Outcome]) -> str:
    """A `failure` is a verdict that is not met, an `error` one without a score, or a suite that could not be run."""
    laid = [shown(outcome) for outcome in outcomes]
    root = Element("testsuites", _counts(laid))
    for suite in laid:
        one = SubElement(root, "testsuite", {"name": _text(suite.name), "file": _text(suite.path)} | _counts([suite]))
        if suite.trouble:
            case = SubElement(one, "testcase", {"name": "suite", "classname": _text(suite.name)})
            error = SubElement(case, "error", {"message": _text(suite.trouble[:_MESSAGE]), "type": "trouble"})
            error.text = _text(suite.trouble)
        for row in suite.rows:
            _case(one, suite, row)
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _text(text: str) -> str:
    return _FORBIDDEN.sub(lambda one: f"\\u{ord(one[0]):04x}", clean(text))


def _counts(suites: Sequence[Shown]) -> dict[str, str]:
    lost = [row.mark == "!" for suite in suites for row in suite.unmet]
    stuck = sum(bool(suite.trouble) for suite in suites)
    return {
        "tests": str(sum(len(suite.rows) for suite in suites) + stuck),
        "failures": str(lost.count(False)),
        "errors": str(lost.count(True) + stuck),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }


def _case(suite: Element, of: Shown, row: Row) -> None:
    path, _, at = row.where.rpartition(":")
    found = {"name": _text(row.name), "classname": _text(of.name), "file": _text(path), "line": at}
    case = SubElement(suite, "testcase", found)
    told = ": ".join(part for part in (row.found, row.said) if part)
    if row.met:
        SubElement(case, "system-out").text = _text(told)
        return
    kind = "error" if row.mark == "!" else "failure"
    message = f"expected {row.expected}, found {told}"
    element = SubElement(case, kind, {"message": _text(message), "type": row.state})
    element.text = _text("\n".join(part for part in (row.where, message, row.detail) if part))
