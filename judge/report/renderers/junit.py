"""Render the tests of a Document as JUnit XML, which CI servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from judge.core.errors import ConfigError
from judge.core.format import escape_controls, one_line
from judge.core.messages import command, option
from judge.report.document import Document, TestCase, TestSuite

_NAME = 80  # characters
_TAGS = {"passed": "system-out", "failed": "failure", "error": "error", "skipped": "skipped"}
# XML 1.0 forbids these two, escaped or not (section 2.2). It forbids others too, which
# `escape_controls` escapes.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def render(document: Document) -> str:
    """Write a `testsuite` per suite, with its cases in order.

    The message of a passed case is its `system-out`. Raises ConfigError for a report without
    tests, which a CI server would count as passed.
    """
    if not document.tests:
        raise ConfigError(
            f"{option('format', 'junit')}: only a report of {command('test')} has tests"
        )
    title = _text(one_line(document.title))
    root = Element("testsuites", {"name": title, **_counts(document.tests)})
    for suite in document.tests:
        _add_suite(root, suite)
    indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _add_suite(root: Element, suite: TestSuite) -> None:
    suite_name = _text(one_line(suite.name, _NAME))
    file = _text(suite.file)
    attributes_of_suite = {"name": suite_name, "file": file, **_counts([suite])}
    node = SubElement(root, "testsuite", attributes_of_suite)
    for case in suite.cases:
        attributes = {"name": _text(one_line(case.name, _NAME)), "classname": suite_name}
        if case.line:
            attributes |= {"file": file, "line": str(case.line)}
        _add_message(SubElement(node, "testcase", attributes), case)


def _add_message(node: Element, case: TestCase) -> None:
    if not case.message:
        return
    message = _text(case.message)
    attributes: dict[str, str] = {}
    if case.status != "passed":
        first_line = message.partition("\n")[0]
        attributes = {"message": first_line, "type": _text(case.kind)}
    SubElement(node, _TAGS[case.status], attributes).text = message


def _text(text: str) -> str:
    """Return a text with only characters that XML allows; the others become escapes."""
    printable = escape_controls(text)
    return _FORBIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", printable)


def _counts(suites: Sequence[TestSuite]) -> dict[str, str]:
    statuses = [case.status for suite in suites for case in suite.cases]
    seconds = sum(suite.seconds for suite in suites)
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("failed")),
        "errors": str(statuses.count("error")),
        "skipped": str(statuses.count("skipped")),
        "time": f"{seconds:.3f}",
    }
