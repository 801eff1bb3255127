"""The findings of `judge doctor` as a document: a section for each part of the setup."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from judge.core.format import one_line, plural
from judge.report.document import Block, Document, Facts, Section
from judge.results.planning import Diagnosis, Finding

_MARKS = {"ok": "✓", "missing": "–", "error": "✗"}


def view(diagnosis: Diagnosis) -> Document:
    """Lay out a diagnosis."""
    errors = [finding for finding in diagnosis.findings if finding.state == "error"]
    names = ", ".join(f"{one_line(finding.part)} ({finding.name})" for finding in errors)
    finding = f"{plural(len(errors), 'problem')}: {names}" if errors else "No problems"
    return Document(
        title="Setup",
        finding=(finding,),
        scope=plural(len(diagnosis.findings), "check"),
        sections=tuple(
            Section(f"part-{place}", one_line(part), partial(_blocks, findings))
            for place, (part, findings) in enumerate(diagnosis.parts())
        ),
        data={"ok": diagnosis.ok, "findings": diagnosis.findings},
        records=tuple(asdict(finding) for finding in diagnosis.findings),
    )


def _blocks(findings: tuple[Finding, ...]) -> list[Block]:
    return [Facts(tuple((f"{_MARKS[f.state]} {f.name}", f"{f.text} → {f.fix}" if f.fix else f.text) for f in findings))]
