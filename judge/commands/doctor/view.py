"""The report of `judge doctor`: each part of the setup with its findings."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from judge.commands.doctor.record import Diagnosis, Finding
from judge.core.format import plural
from judge.report.document import Document, Facts, Section

_MARKS = {"ok": "✓", "missing": "–", "error": "✗"}


def view(diagnosis: Diagnosis) -> Document:
    """Lay out a diagnosis."""
    findings = diagnosis.findings
    errors = [finding for finding in findings if finding.state == "error"]
    headline = "No problems"
    if errors:
        problems = plural(len(errors), "problem")
        names = ", ".join(f"{error.part} ({error.name})" for error in errors)
        headline = f"{problems}: {names}"
    sections = []
    for number, (part, findings_of_part) in enumerate(diagnosis.parts()):
        facts = [_fact(finding) for finding in findings_of_part]
        make_blocks = partial(tuple, [Facts(tuple(facts))])
        sections.append(Section(f"part-{number}", part, make_blocks))
    records = [asdict(finding) for finding in findings]
    return Document(
        title="Setup",
        finding=(headline,),
        scope=plural(len(findings), "check"),
        sections=tuple(sections),
        data={"ok": diagnosis.ok, "findings": findings},
        records=tuple(records),
    )


def _fact(finding: Finding) -> tuple[str, str]:
    text = finding.text
    if finding.fix:
        text = f"{text} → {finding.fix}"
    mark = _MARKS[finding.state]
    return f"{mark} {finding.name}", text
