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
    errors = [finding for finding in diagnosis.findings if finding.state == "error"]
    names = ", ".join(f"{error.part} ({error.name})" for error in errors)
    sections = []
    for number, (part, findings) in enumerate(diagnosis.parts()):
        facts = Facts(tuple(_fact(finding) for finding in findings))
        sections.append(Section(f"part-{number}", part, partial(tuple, [facts])))
    return Document(
        title="Setup",
        finding=(f"{plural(len(errors), 'problem')}: {names}" if errors else "No problems",),
        scope=plural(len(diagnosis.findings), "check"),
        sections=tuple(sections),
        data={"ok": diagnosis.ok, "findings": diagnosis.findings},
        records=tuple(asdict(finding) for finding in diagnosis.findings),
    )


def _fact(finding: Finding) -> tuple[str, str]:
    text = f"{finding.text} → {finding.fix}" if finding.fix else finding.text
    return f"{_MARKS[finding.state]} {finding.name}", text
