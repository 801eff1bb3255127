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

        def prepare(targets: tuple[str, ...], used: set[str]) -> Rate:
            compared_targets = set(map(self._compared, targets))

            def rate(output: str) -> float:
                compared_output = self._compared(output)
                if self.contains:
                    matches = any(text in compared_output for text in compared_targets)
                else:
                    matches = compared_output in compared_targets
                return float(matches)

            return rate

        return self.compare(samples, prepare, self._sign)

    def _compared(self, string: str) -> str:
        """Return the form in which texts are compared."""
        stripped = string.strip()
        return stripped.casefold() if self.ignore_case else stripped

    def _sign(self, used: set[str]) -> list[str]:
        kind = "contains" if self.contains else "equals"
        case = "lc" if self.ignore_case else "mixed"
        return [kind, f"case={case}", f"judge {__version__}"]


score = list_function(
    ExactMatch,
    """Return for each output 1 if it equals one of its references, else 0; see `ExactMatch`.

    Raise DataError if an output has no reference, ConfigError for a wrong option.
    """,
)
