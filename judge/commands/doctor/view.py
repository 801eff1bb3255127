"""The report of `judge doctor`: each part of the setup with its findings."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from judge.commands.doctor.record import Diagnosis
from judge.core.format import plural
from judge.report.document import Document, Facts, Section

_MARKS = {"ok": "✓", "missing": "–", "error": "✗"}


def view(diagnosis: Diagnosis) -> Document:
    """Lay out a diagnosis."""
    errors = [finding for finding in diagnosis.findings if finding.state == "error"]
    names = ", ".join(f"{finding.part} ({finding.name})" for finding in errors)
    finding = f"{plural(len(errors), 'problem')}: {names}" if errors else "No problems"
    return Document(
        title="Setup",
        finding=(finding,),
        scope=plural(len(diagnosis.findings), "check"),
        sections=tuple(
            Section(f"part-{place}", part, partial(tuple, [Facts(facts)]))
            for place, (part, findings) in enumerate(diagnosis.parts())
            for facts in [
                tuple(
                    (f"{_MARKS[f.state]} {f.name}", f"{f.text} → {f.fix}" if f.fix else f.text)
                    for f in findings
                )
            ]
        ),
        data={"ok": diagnosis.ok, "findings": diagnosis.findings},
        records=tuple(asdict(finding) for finding in diagnosis.findings),
    )
