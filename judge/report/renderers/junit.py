"""Render the tests of a Document as JUnit XML, which CI servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from judge.core.format import escape_controls, one_line
from judge.report.document import Document, TestSuite

_NAME = 80  # characters
_TAGS = {"passed": "system-out", "failed": "failure", "error": "error", "skipped": "skipped"}
# XML 1.0 has no place for these two, escaped or not (section 2.2); `escape_controls` escapes the others.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def render(document: Document) -> str:
    """Write a `testsuite` per suite, with its cases in order; a passed case has its message as
    `system-out`."""
    root = Element(
        "testsuites", {"name": _text(one_line(document.title)), **_counts(document.tests)}
    )
    for suite in document.tests:
        name = _text(one_line(suite.name, _NAME))
        node = SubElement(
            root, "testsuite", {"name": name, "file": _text(suite.file), **_counts([suite])}
        )
        for case in suite.cases:
            place = {"file": _text(suite.file), "line": str(case.line)} if case.line else {}
            test = SubElement(
                node,
                "testcase",
                {"name": _text(one_line(case.name, _NAME)), "classname": name, **place},
            )
            if not case.message:
                continue
            message = _text(case.message)
            short = {"message": message.partition("\n")[0], "type": _text(case.kind)}
            SubElement(
                test, _TAGS[case.status], {} if case.status == "passed" else short
            ).text = message
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _text(text: str) -> str:
    return _FORBIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", escape_controls(text))


def _counts(suites: Sequence[TestSuite]) -> dict[str, str]:
    statuses = [case.status for suite in suites for case in suite.cases]
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("failed")),
        "errors": str(statuses.count("error")),
        "skipped": str(statuses.count("skipped")),
        "time": f"{sum(suite.seconds for suite in suites):.3f}",
    }
