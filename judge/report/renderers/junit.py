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
_TAGS = {
    "passed": "system-out",
    "failed": "failure",
    "error": "error",
    "skipped": "skipped",
}
# XML 1.0 forbids these two, escaped or not (section 2.2). It forbids others too, which
# `escape_controls` escapes.
_FORBIDDEN = re.compile("[\ufffe\uffff]")


def render(document: Document) -> str:
    """Write a `testsuite` per suite, with its cases in order.

    The message of a passed case is its `system-out`. Raises ConfigError for a report without
    tests, which a CI server would count as passed.
    """
    if not document.tests:
        format_option = option("format", "junit")
        test_command = command("test")
        raise ConfigError(f"{format_option}: only a report of {test_command} has tests")
    title = _text(one_line(document.title))
    counts = _counts(document.tests)
    root = Element("testsuites", {"name": title, **counts})
    for suite in document.tests:
        _add_suite(root, suite)
    indent(root)
    xml = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{xml}\n'


def _add_suite(root: Element, suite: TestSuite) -> None:
    suite_name = _text(one_line(suite.name, _NAME))
    file = _text(suite.file)
    attributes_of_suite = {
        "name": suite_name,
        "file": file,
        **_counts([suite]),
    }
    suite_element = SubElement(root, "testsuite", attributes_of_suite)
    for case in suite.cases:
        case_name = _text(one_line(case.name, _NAME))
        attributes = {"name": case_name, "classname": suite_name}
        if case.line:
            attributes["file"] = file
            attributes["line"] = str(case.line)
        case_element = SubElement(suite_element, "testcase", attributes)
        _add_message(case_element, case)


def _add_message(case_element: Element, case: TestCase) -> None:
    """Add the message of a case as an element, whose tag says how the case ended."""
    if not case.message:
        return
    message = _text(case.message)
    attributes: dict[str, str] = {}
    if case.status != "passed":
        first_line, _, _ = message.partition("\n")
        attributes = {"message": first_line, "type": _text(case.kind)}
    message_element = SubElement(case_element, _TAGS[case.status], attributes)
    message_element.text = message


def _text(text: str) -> str:
    """Return a text with only characters that XML allows; the others become escapes."""
    printable = escape_controls(text)
    return _FORBIDDEN.sub(_escape_of, printable)


def _escape_of(match: re.Match[str]) -> str:
    """Return the escape of the character that was matched, such as `\\ufffe`."""
    code_point = ord(match[0])
    return f"\\u{code_point:04x}"


def _counts(suites: Sequence[TestSuite]) -> dict[str, str]:
    """Return the attributes with the number of cases by status, and the seconds of all suites."""
    statuses = [case.status for suite in suites for case in suite.cases]
    seconds = sum(suite.seconds for suite in suites)
    return {
        "tests": str(len(statuses)),
        "failures": str(statuses.count("failed")),
        "errors": str(statuses.count("error")),
        "skipped": str(statuses.count("skipped")),
        "time": f"{seconds:.3f}",
    }
