"""Render the test cases of a Document as JUnit XML, which CI servers read."""

from __future__ import annotations

from itertools import groupby
from xml.etree import ElementTree

from judge.core.format import escape_controls
from judge.report.document import Document


def render(document: Document) -> str:
    """Write a `testsuite` per suite, with its cases in order."""
    root = ElementTree.Element("testsuites", name=escape_controls(document.title))
    for suite, tests in groupby(document.tests, key=lambda test: test.suite):
        cases = list(tests)
        counts = {
            name: str(sum(case.status == status for case in cases))
            for name, status in (("failures", "failed"), ("errors", "error"), ("skipped", "skipped"))
        }
        seconds = sum(case.seconds for case in cases)
        counts |= {"name": escape_controls(suite), "tests": str(len(cases)), "time": f"{seconds:.3f}"}
        node = ElementTree.SubElement(root, "testsuite", counts)
        for case in cases:
            name, group = escape_controls(case.name), escape_controls(suite)
            test = ElementTree.SubElement(node, "testcase", name=name, classname=group, time=f"{case.seconds:.3f}")
            if case.status != "passed":
                tag = {"failed": "failure"}.get(case.status, case.status)
                message = escape_controls(case.message)
                ElementTree.SubElement(test, tag, message=message.split("\n", 1)[0]).text = message
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
