"""The result of `judge doctor`: what was found of each part of the setup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

State = Literal["ok", "missing", "error"]
"""`missing` is optional: nothing that was asked for needs it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `fix` says how to solve a problem."""

    part: str
    name: str
    state: State
    text: str
    fix: str = ""


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
        for part in dict.fromkeys(finding.part for finding in self.findings):
            yield part, tuple(finding for finding in self.findings if finding.part == part)
