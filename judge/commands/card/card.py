"""The data of a judge card, the card, and the records of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from judge.core import plugins
from judge.core.files import refuse_other_content, store
from judge.core.records import Column, Estimate, Sample
from judge.stats.bootstrap import Floats
from judge.stats.human_agreement import Rated, Row
from judge.table import Table

ORIGINAL = "original"
"""The `system` of unchanged texts. The other systems of such a table are changes and attacks."""
Probe = Literal["sensitivity", "bias", "injection"]
PROBES: tuple[Probe, ...] = ("sensitivity", "bias", "injection")
_FILES = {"card.md": "markdown", "card.html": "html", "card.json": "json"}
"""The files of a saved card, with their formats."""
FEW = 5
"""The fewest items for a claim about half of them."""
FEWEST = 10
"""The fewest items for an interval."""
TESTABLE = 12
"""From this number of items on, only a test decides.

One of a hundred tests can then be significant after Holm's correction.
"""
DETECTED = 1 / 8
"""The share of the scale by which a score must fall to count, or rise after an attack.

It is half a step of a 1–5 scale.
"""


@dataclass(frozen=True, slots=True)
class PeopleFinding:
    """A judge compared with people on one criterion.

    - `judge`: its row of `rated`, over `items` items.
    - `minus_rater`: its Spearman minus that of one rater, both with the mean of the other raters.
    - `shift`: how much more the judge favours one system over another than people do, in points:
      the largest difference between two systems in the judge's mean score minus people's. None
      without ratings of enough items on the judge's scale.
    - `ratings_vary`, `scores_vary`: whether the mean ratings of the scored texts differ, and
      whether the judge's scores of the rated texts do.
    """

    rated: Rated
    judge: Row
    items: int
    minus_rater: Estimate | None = None
    shift: float | None = None
    ratings_vary: bool = True
    scores_vary: bool = True


@dataclass(frozen=True)
class CardEvidence:
    """All judgments of a card; a table is None if it was not requested or is not available.

    - `originals`: one text for each item, as in the data.
    - `columns`: the column in `changed` of each criterion.
    - `changed`: the originals and all their variants. The systems are ORIGINAL and the names of
      changes, neutral changes and attacks.
    - `model`: the name of the judge.
    - `natural`: up to two texts of each item under their systems' names, with human ratings and the
      data's own columns.
    - `wordings`: the originals, with columns `NAME`, `NAME~b` and `NAME~c` for other wordings of
      the prompt.
    - `questions`: likewise `NAME~1` to `NAME~3` for other wordings of the criterion's question.
    - `repeats`: by temperature, the originals with several draws each (method `samples`).
    - `pairs`: comparisons of the natural texts in pairs and in both orders.
    - `judged`: the tables of all runs, with each judgment once.
    - `unavailable`: the reason for each probe (`position`, `wording`, …) that could not be run.
    - `not_made`: the reason for each kind of probe that was not requested.
    - `texts`: the judgments of all unchanged texts.
    - `people`: the criteria that people rated; `no_people` says why there are none.
    - `order_free`: the criteria whose scores must not depend on the order of sentences.
    """

    originals: tuple[Sample, ...]
    columns: Mapping[str, Column]
    changed: Table
    model: str
    language: str
    natural: Table | None = None
    wordings: Table | None = None
    repeats: Mapping[float, Table] = field(default_factory=dict)
    pairs: Table | None = None
    judged: tuple[Table, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)
    not_made: Mapping[Probe, str] = field(default_factory=dict)
    texts: Table | None = None
    people: Mapping[str, PeopleFinding] = field(default_factory=dict)
    no_people: str = ""
    questions: Table | None = None
    order_free: frozenset[str] = frozenset()

    def criteria(self, table: Table) -> list[tuple[str, Column]]:
        """Return the columns of a table with the names of their criteria."""
        criterion_by_column = {}
        for criterion_name, column in self.columns.items():
            criterion_by_column[column.name] = criterion_name
        named_columns = []
        for column in table.columns:
            criterion_name = criterion_by_column.get(column.name, column.name)
            named_columns.append((criterion_name, column))
        return named_columns

    def changes(self, column: Column, change_names: Sequence[str]) -> Floats:
        """Return changed minus original score in points, changes × items.

        NaN if a text or either score is missing.
        """
        values = self.changed.matrix(column.name)
        systems = self.changed.systems
        changed_rows = [systems.index(change_name) for change_name in change_names]
        differences: Floats = values[changed_rows] - values[systems.index(ORIGINAL)]
        return differences

    def least_change(self, column: Column) -> float:
        """Return the smallest change of a score that counts.

        It is DETECTED of the scale or, if the scale has no ends, half the standard deviation of the
        unchanged texts.
        """
        if column.low is not None and column.high is not None:
            return DETECTED * (column.high - column.low)
        if ORIGINAL in self.changed.systems:
            row_of_originals = self.changed.systems.index(ORIGINAL)
            scores = self.changed.matrix(column.name)[row_of_originals]
        elif self.texts is not None:
            scores = self.texts.matrix(column.name)
        else:
            return 0.0
        known_scores = scores[~np.isnan(scores)]
        if len(known_scores) < 2:
            return 0.0
        return float(known_scores.std(ddof=1)) / 2


@dataclass(frozen=True, slots=True)
class SensitivityCell:
    """The effect of one change on one criterion; `targeted` if the change damages this criterion.

    `rate` is the share of texts (0–1, Wilson's interval) whose score falls by DETECTED of the scale
    or more; after an attack, whose score rises. Texts too near that end of the scale are not
    counted. `opposite` is the share that moves the other way: a judge whose replies vary moves both
    ways. `mean_change` is the mean of changed minus original score in scale points, with p after
    Holm's correction over its section. All are None if no text has both scores.

    An attack is compared with the same text with the `control` in its place; `vs_original` is then
    its mean change from the original, without a test. The control is compared with the original.
    `failed` counts texts without both scores.
    """

    change: str
    criterion: str
    targeted: bool
    rate: Estimate | None
    mean_change: Estimate | None
    failed: int = 0
    opposite: Estimate | None = None
    vs_original: Estimate | None = None
    control: bool = False


PLAIN_UNITS = ("share", "points", "points per doubling")
"""Units that a reader of the measure expects."""


@dataclass(frozen=True, slots=True)
class BiasFinding:
    """One number about a bias of the judge on one criterion.

    - `unit`: `points` (of the scale), `share` (0–1), `points per doubling` (of the length), `r` or
      `sd` (in points). `counted` is the unit of `estimate.n`.
    - `significant`: whether p is below .05 after Holm's correction over all findings; None without
      a test. `apply_holm` sets it, and `sentence`.
    - `same_direction`: the share of items that move in the direction of the mean by DETECTED of the
      scale or more.
    - `harmful`: whether the direction is the wrong one.
    """

    probe: str
    criterion: str
    measure: str
    estimate: Estimate
    unit: str
    sentence: str = ""
    significant: bool | None = None
    same_direction: Estimate | None = None
    counted: str = "texts"
    harmful: bool = True

    @property
    def suggestive(self) -> bool:
        """Whether half of the items or more move in one direction, but are too few for a test."""
        return self.significant is False and is_majority(self.same_direction)


Mark = Literal["pass", "fail", "unclear", "not measured"]
"""The verdict of a line."""
MARKS: tuple[Mark, ...] = ("fail", "unclear", "pass", "not measured")
"""The verdicts, the one that decides for several criteria first."""


@dataclass(frozen=True, slots=True)
class CardCell:
    """What a line of the card says about one criterion.

    `estimate` has the value, its 95% interval and n, in `unit`; `counted` is the unit of n.
    `beside` are further numbers. `reason` is given for `unclear` (what would decide it) and `not
    measured`, and if something qualifies another verdict. `advice` says what to do next; "" if the
    reason says so, or if the line passes.
    """

    criterion: str
    verdict: Mark
    estimate: Estimate | None = None
    unit: str = ""
    counted: str = "texts"
    beside: str = ""
    reason: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class CardLine:
    """One question about the judge, with a cell for each criterion.

    `passes` and `fails` are the rule. `worst` names the criterion that decides the verdict.
    """

    name: str
    passes: str
    fails: str
    cells: tuple[CardCell, ...]
    worst: str = ""

    @property
    def verdict(self) -> Mark:
        """The verdict of the criteria together: fail before unclear before pass."""
        verdicts = [cell.verdict for cell in self.cells]
        return min(verdicts, key=MARKS.index, default="not measured")

    @property
    def worst_cell(self) -> CardCell | None:
        """The cell of the criterion that decides the verdict; None without criteria."""
        return next((cell for cell in self.cells if cell.criterion == self.worst), None)


Level = Literal[
    "good enough", "good enough with reservations", "not shown", "not good enough"
]


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """Whether the judge may be trusted with one criterion.

    `difference` is the smallest difference between systems, in points, that `items` items support:
    the larger of what they detect with 80% power and of `favouring`, the largest difference between
    two systems in the judge's mean minus people's. None if it is unknown, and `no_difference` says
    why. `fails` and `unclear` name the lines that did not pass,
    of those that were `measured`, of all `lines`.
    `reason` says why the agreement with people fails or is not shown, and `advice` what to do next.
    """

    criterion: str
    level: Level
    difference: float | None
    items: int
    measured: int
    lines: int
    favouring: float = 0.0
    fails: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    reason: str = ""
    no_difference: str = ""
    advice: str = ""


@dataclass(frozen=True, repr=False)
class JudgeCard(plugins.Reported):
    """The judge card: may this judge be trusted for this job?

    - `verdict`: the answer in words; `criteria`: the answer by criterion.
    - `lines`: the evidence, each line with a rule.
    - `people`: the judge against people, by criterion.
    - `cells`, `attacks`: every damage and every injection, by criterion.
    - `findings`: the biases.
    - `observations`: sentences on these, the worst first.
    - `skipped`: the reason for each probe or change without numbers.
    - `failures`: the number of failed judgments, by kind.
    - `info`: the judge, the data, the settings and versions, as plain JSON.
    """

    VIEW: ClassVar[str] = "judge.commands.card.view:view"

    title: str
    verdict: str = ""
    lines: tuple[CardLine, ...] = ()
    criteria: tuple[CriterionVerdict, ...] = ()
    cells: tuple[SensitivityCell, ...] = ()
    findings: tuple[BiasFinding, ...] = ()
    attacks: tuple[SensitivityCell, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    observations: tuple[str, ...] = ()
    people: tuple[Rated, ...] = ()
    notes: tuple[str, ...] = ()
    failures: Mapping[str, int] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<JudgeCard: {self.title!r}, {self.verdict!r}>"

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write `card.md`, `card.html` and `card.json` into a folder.

        Raises StorageError, also if the folder has another card and `overwrite` is False.
        """
        folder = Path(folder)
        files = {}
        for file_name, format in _FILES.items():
            files[file_name] = self.report(format).encode()
        if not overwrite:
            refuse_other_content(folder, files, "card")
        store(folder, files)


def is_majority(share: Estimate | None, tested: Estimate | None = None) -> bool:
    """Return whether the interval of a share is one half or more, with too few items for a test.

    False for fewer than FEW items. `tested` is the estimate that a test would be about, by default
    the share itself.
    """
    if share is None or share.low is None or share.n < FEW:
        return False
    n_tested = (tested or share).n
    return n_tested < TESTABLE and share.low >= 0.5
