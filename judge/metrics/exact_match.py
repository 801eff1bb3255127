"""Compute exact match: does the output equal, or contain, a reference?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from judge.core.records import Sample
from judge.core.version import __version__
from judge.metrics import MetricResult
from judge.metrics.common import Rate, ReferenceMetric, list_function

__all__ = ["ExactMatch", "score"]


@dataclass(frozen=True, kw_only=True)
class ExactMatch(ReferenceMetric):
    """Exact match (0 or 1): 1 if the output equals one of the references, apart from white space around the texts.

    With `contains`, 1 if it contains one of them. `ignore_case` ignores upper and lower case.
    """

    name: ClassVar[str] = "exact_match"
    high: ClassVar[float | None] = 1.0
    contains: bool = False
    ignore_case: bool = False

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample. A sample without a reference is a `Failure`."""

        def form(string: str) -> str:
            stripped = string.strip()
            return stripped.casefold() if self.ignore_case else stripped

        def prepare(targets: tuple[str, ...], used: set[str]) -> Rate:
            forms = set(map(form, targets))
            if self.contains:

                def contains_any(output: str) -> float:
                    whole = form(output)
                    return float(any(target in whole for target in forms))

                return contains_any

            def equals_any(output: str) -> float:
                return float(form(output) in forms)

            return equals_any

        def sign(used: set[str]) -> list[str]:
            kind = "contains" if self.contains else "equals"
            case = "lc" if self.ignore_case else "mixed"
            return [kind, f"case={case}", f"judge {__version__}"]

        return self.compare(samples, prepare, sign)


score = list_function(
    ExactMatch,
    """Exact match, 0 or 1, of each output with its reference or references: see `ExactMatch`.

    Raises DataError where an output has no reference, ConfigError for a wrong option.
    """,
)
