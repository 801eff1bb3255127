"""The result of `judge doctor`: a finding for each part of the setup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

State = Literal["ok", "missing", "error"]
"""`missing` is optional: nothing that the user requested needs it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `fix` says how to solve a problem."""

    part: str
    name: str
    state: State
    text: str
    fix: str = ""


def finding_of(
    part: str,
    checked_name: str,
    present: bool | str,
    yes: str,
    no: str,
    *,
    fix: str = "",
) -> Finding:
    """Return the finding `ok` if the part is present, else `missing` with its fix."""
    if present:
        return Finding(part, checked_name, "ok", yes)
    return Finding(part, checked_name, "missing", no, fix)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, in the order of their parts."""

    VIEW: ClassVar[str] = "judge.commands.doctor.view:view"

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.state != "error" for finding in self.findings)

    def parts(self) -> Iterator[tuple[str, tuple[Finding, ...]]]:
        """Yield each part with its findings."""
        findings_by_part: dict[str, list[Finding]] = {}
        for finding in self.findings:
            findings_by_part.setdefault(finding.part, []).append(finding)
        for part, findings in findings_by_part.items():
            yield part, tuple(findings)
