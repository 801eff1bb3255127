"""How often the verdicts of a suite would change if nothing had changed; see `gate_risk`."""

from __future__ import annotations

from dataclasses import dataclass

ACCEPTABLE = 0.05
"""The risk of a case above which a mend is looked for."""


@dataclass(frozen=True, slots=True)
class CaseRisk:
    """How often the verdict on a case changes.

    `same_texts` is the share (0–1) of reruns with new replies to the same texts, None if other
    replies are unknown. `other_items` is the share of reruns with other items of the same kind, at
    least `same_texts`; None if the case is about certain items. `mends` are changes after which
    about 5% of reruns or fewer change the verdict, each alone, the cheapest first.
    """

    name: str
    status: str
    met: bool
    same_texts: float | None
    other_items: float | None
    mends: tuple[str, ...] = ()

    @property
    def risk(self) -> float | None:
        """The larger of both shares, None if both are unknown."""
        known_shares = [
            share for share in (self.same_texts, self.other_items) if share is not None
        ]
        return max(known_shares, default=None)


@dataclass(frozen=True, slots=True)
class SuiteRisk:
    """How often the verdict on a suite changes, and on each of its cases.

    `same_texts` and `other_items` are as in `CaseRisk`, for the suite as a whole: whether it
    passes. Cases whose other replies are unknown count as if they never changed; `n_unknown` counts
    them. Limits and baselines keep their verdicts. `n_reruns` are simulated.
    """

    cases: tuple[CaseRisk, ...]
    passed: bool
    same_texts: float
    other_items: float | None
    n_unknown: int
    n_reruns: int
