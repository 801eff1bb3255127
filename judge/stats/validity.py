"""What is known of a judge, or of what needs none, once it has been held against people's ratings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from judge.core.records import Estimate
from judge.stats.annotator_agreement import Agreement
from judge.stats.calibration import Calibration
from judge.stats.correlation import Correlation, Level


@dataclass(frozen=True, slots=True)
class Row:
    """What has been held against people's ratings: a judge's column, a floor, or an annotator.

    A judge also has its `agreement` with people's mean (kappa of both rounded to the scale) and its `calibration`, None
    where `no_calibration` says why. An annotator's `agreement` is that of all annotators with one another. `few` says
    by level that a floor has values for too few items to count as one.
    """

    name: str
    kind: Literal["judge", "floor", "ceiling"]
    signature: str
    correlation: Correlation
    agreement: Agreement = field(default_factory=Agreement)
    calibration: Calibration | None = None
    no_calibration: str = ""
    few: Mapping[Level, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return self.name if self.kind == "judge" else f"{self.name} ({self.kind})"


@dataclass(frozen=True, slots=True)
class Versus:
    """One judge against another at a level: differences of their correlations with people, on the texts of both.

    `pearson` has the p of Williams' test, but at level document, for which there is none.
    """

    judge: str
    other: str
    level: Level
    spearman: Estimate
    pearson: Estimate | None


@dataclass(frozen=True, slots=True)
class Rated:
    """One criterion that people rated so many texts on.

    `ceiling` is one annotator against the mean of the others, None where `no_ceiling` says why. `differences` are
    Spearman of a judge less that of a floor, by (judge, floor, level), where they are defined; `versus` are every two
    judges.
    """

    criterion: str
    texts: int
    judges: tuple[Row, ...]
    floors: tuple[Row, ...]
    ceiling: Row | None
    no_ceiling: str
    differences: Mapping[tuple[str, str, Level], Estimate]
    versus: tuple[Versus, ...] = ()

    @property
    def rows(self) -> tuple[Row, ...]:
        return (*self.judges, *self.floors, *([self.ceiling] if self.ceiling else []))
