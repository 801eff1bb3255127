"""All checked claims of a run, to be read or counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from judge.results.claims import ClaimCount, ClaimOfText, claim_counts, sorted_claims
from judge.results.result import Result


@dataclass(frozen=True)
class ClaimList:
    """All claims of a result by column, the least probable first, and the counts by system."""

    VIEW: ClassVar[str] = "judge.report.views.claim_list:view"

    result: Result
    claims: tuple[ClaimOfText, ...]
    counts: tuple[ClaimCount, ...]


def claim_list(result: Result) -> ClaimList:
    """Return the claims of a result. Raises ConfigError for a result without claims."""
    claims = sorted_claims(result.table)
    counts = claim_counts(result.table, claims)
    return ClaimList(result, tuple(claims), counts)
