"""The data of a judge card, the card, and the parts of both.

`sensitivity_table` computes how changes to a text change its scores: how often by at least half a
step, and by how much on average. `apply_holm` corrects the findings of all probes and puts each
into words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log2
from typing import Any, ClassVar, Literal

import numpy as np

from judge.core import format, plugins
from judge.core.format import decimals, format_interval, number, plural, signed
from judge.core.records import Column, Estimate, Sample
from judge.stats.bootstrap import Bools, Floats, too_few, wilson_interval
from judge.stats.human_agreement import Rated, Row
from judge.stats.paired_differences import ALL_EQUAL, holm, mean_differences
from judge.stats.power import ALPHA
from judge.table import Table

ALIKE = "[all alike]"


def places(column: Column | None, values: Sequence[float] = ()) -> int:
    """Return the decimals for points of a scale, or for values if the scale has no ends."""
    if column and column.low is not None and column.high is not None:
        return decimals([column.low, column.high])
    return decimals(values)


def interval(estimate: Estimate, digits: int, factor: float = 1) -> str:
    """Write `[0.10, 0.60]`; `[all alike]` if the items do not differ, which shows no
    uncertainty.
    """
    if estimate.low is None or estimate.high is None:
        return ALIKE if ALL_EQUAL in estimate.method else ""
    if estimate.low == estimate.high:
        return ALIKE
    return format_interval(estimate.low, estimate.high, digits, factor)


def change(estimate: Estimate, digits: int) -> str:
    """Write `+0.35 [0.10, 0.60]`."""
    return f"{signed(estimate.value, digits)} {interval(estimate, digits)}".rstrip()


ORIGINAL = "original"
"""The `system` of unchanged texts, in tables whose other systems are the names of changes and
attacks.
"""
Probe = Literal["sensitivity", "bias", "injection"]
PROBES: tuple[Probe, ...] = ("sensitivity", "bias", "injection")
FEW, FEWEST, TESTABLE = 5, 10, 12
"""Limits in items: FEW, the least for a claim about half of them; FEWEST, the least for an
interval; TESTABLE, from which one of a hundred tests can be significant after Holm's correction, so
that only the test decides.
"""
DETECTED = 1 / 8
"""Share of the scale by which a score must fall (after an attack, rise) to count: half a step of a
1–5 scale.
"""


@dataclass(frozen=True, slots=True)
class PeopleFinding:
    """A judge compared with people on one criterion.

    `judge` is its row of `rated`, on so many `items`. `minus_rater` is its Spearman minus one rater's, against the mean
    of the other raters. `shift` is the largest difference between two systems in the judge's mean
    score minus people's, in points; None without ratings on the scale of enough items.
    """

    rated: Rated
    judge: Row
    items: int
    minus_rater: Estimate | None = None
    shift: float | None = None


@dataclass(frozen=True)
class CardEvidence:
    """All judgments of a card; a table is None if it was not requested or is not available.

    `originals` has one text for each item, as in the data. `changed` has them and all their
    variants: its systems are ORIGINAL and the names of changes, neutral changes and attacks.
    `natural` has up to two texts of each item under their systems' names, with human ratings and
    `extra`. `wordings` has the originals, with columns `NAME`, `NAME~b` and `NAME~c` for other
    wordings of the prompt. `questions` likewise has columns `NAME~1` to `NAME~3` for other wordings
    of the criterion's own question, and `order_free` are the criteria whose scores must not depend
    on the order of sentences. `repeats` maps a temperature to the originals with several draws each
    (method `samples`). `pairs` compares the natural texts in pairs and both orders. `judged` has
    the tables of all runs, with each judgment once. `columns` maps a criterion to its column in
    `changed`. `model` names the judge. `unavailable` gives the reason for each probe (`position`,
    `wording`, …) that could not be run, `not_made` for each kind of probe that was not asked for.

    `texts` has the judgments of all unchanged texts. `people` are the criteria that people rated,
    and `no_people` says why a criterion is not among them.
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
        criterion_by_column = {
            column.name: criterion_name for criterion_name, column in self.columns.items()
        }
        return [
            (criterion_by_column.get(column.name, column.name), column) for column in table.columns
        ]

    def changes(self, column: Column, change_names: Sequence[str]) -> Floats:
        """Return changed minus original score in points, changes × items; NaN if a text or either
        score is missing.
        """
        values = self.changed.matrix(column.name)
        systems = self.changed.systems
        changed_rows = [systems.index(change_name) for change_name in change_names]
        differences: Floats = values[changed_rows] - values[systems.index(ORIGINAL)]
        return differences

    def least_change(self, column: Column) -> float:
        """Return the smallest move that counts: DETECTED of the scale, or half the originals' sd if
        it has no ends.
        """
        if column.low is not None and column.high is not None:
            return DETECTED * (column.high - column.low)
        if ORIGINAL in self.changed.systems:
            scores = self.changed.matrix(column.name)[self.changed.systems.index(ORIGINAL)]
        elif self.texts is not None:
            scores = self.texts.matrix(column.name)
        else:
            return 0.0
        known_scores = scores[~np.isnan(scores)]
        return float(known_scores.std(ddof=1)) / 2 if len(known_scores) > 1 else 0.0


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
    """One number about a bias of the judge on one criterion. `apply_holm` adds `sentence` and
    `significant`.

    `unit` is `points` (of the scale), `share` (0–1), `points per doubling` (of the length), `r` or
    `sd` (in points); `counted` is the unit of `estimate.n`. `significant`: p below .05 after Holm's
    correction over all findings; None without a test. `same_direction` is the share of items that
    move in the direction of the mean by DETECTED of the scale or more. `harmful`: whether the
    direction is the wrong one.
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
    measured`, and if something qualifies another verdict.
    """

    criterion: str
    verdict: Mark
    estimate: Estimate | None = None
    unit: str = ""
    counted: str = "texts"
    beside: str = ""
    reason: str = ""


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


Level = Literal["good enough", "good enough with reservations", "not shown", "not good enough"]


@dataclass(frozen=True, slots=True)
class CriterionVerdict:
    """Whether the judge may be trusted with one criterion.

    `difference` is the smallest difference between systems, in points, that `items` items support:
    the larger of what they detect with 80% power and of `favouring`, the largest difference between
    two systems in the judge's mean minus people's. None if it is unknown, and `no_difference` says
    why. `fails` and `unclear` name the lines that did not pass,
    of those that were `measured`, of all `lines`.
    `reason` says what is missing if the agreement with people is not shown.
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


def is_majority(share: Estimate | None, tested: Estimate | None = None) -> bool:
    """Return whether a share of at least FEW items is shown to be one half or more; False if
    `tested` allows a test.
    """
    few = share is not None and share.n >= FEW and (tested or share).n < TESTABLE
    return few and share is not None and share.low is not None and share.low >= 0.5


_NEAR = 1e-9  # how far a sum of steps may be off


def sensitivity_table(
    evidence: CardEvidence,
    changes: Mapping[str, str],
    *,
    rises: bool = False,
    control: str = "",
    seed: int = 0,
) -> tuple[SensitivityCell, ...]:
    """Return a cell for every change that has texts and every criterion; `changes` maps names to
    the damaged criterion.

    `rate` is the share of the texts whose score moves towards the worse end (with `rises`, the
    better one) by at least `CardEvidence.least_change`, among those far enough from that end;
    `opposite` is the share that moves the other way. `mean_change` is the mean over all texts with
    both scores; its p has Holm's correction over all these cells. They compare with the unchanged
    text, or with that of `control` (a change of the same text) if it exists; `vs_original` then
    compares with the unchanged text. All are None for a criterion without a scored text.
    """
    table = evidence.changed
    change_names = [change_name for change_name in changes if change_name in table.systems]
    if not change_names or ORIGINAL not in table.systems:
        return ()
    has_text = _has_text_by_change(table, change_names)
    has_control = control in change_names
    references = []
    for change_name in change_names:
        reference = control if has_control and change_name != control else ORIGINAL
        references.append(reference)
    row_of_system = {system: row for row, system in enumerate(table.systems)}
    changed_rows = [row_of_system[change_name] for change_name in change_names]
    reference_rows = [row_of_system[change_name] for change_name in references]
    cells = []
    for criterion, column in evidence.columns.items():
        values = table.matrix(column.name)
        reference_values = values[reference_rows]
        differences = values[changed_rows] - reference_values
        mean_changes = means(differences, seed)
        changes_from_original = means(evidence.changes(column, change_names), seed)
        least = evidence.least_change(column)
        # After a damage, a score should fall; a lower value may be the better one.
        direction = 1.0 if rises != (column.better == "lower") else -1.0
        for index, change_name in enumerate(change_names):
            reference_scores = reference_values[index]
            item_differences = differences[index]
            has_failed = has_text[change_name] & np.isnan(item_differences)
            vs_original = None
            if references[index] != ORIGINAL:
                vs_original = without_p(changes_from_original[index])
            rate = _rate(column, reference_scores, item_differences, direction, least)
            opposite = _rate(column, reference_scores, item_differences, -direction, least)
            cell = SensitivityCell(
                change=change_name,
                criterion=criterion,
                targeted=changes[change_name] == criterion,
                rate=rate,
                mean_change=mean_changes[index],
                failed=int(has_failed.sum()),
                opposite=opposite,
                vs_original=vs_original,
                control=change_name == control,
            )
            cells.append(cell)
    return _with_holm(cells)


def _has_text_by_change(table: Table, change_names: Iterable[str]) -> dict[str, Bools]:
    """Return for each change which items of the table have a text with it."""
    keys = {sample.key for sample in table.samples}
    has_text = {}
    for change_name in change_names:
        has_text[change_name] = np.array([(item, change_name) in keys for item in table.items])
    return has_text


def _with_holm(cells: Sequence[SensitivityCell]) -> tuple[SensitivityCell, ...]:
    """Return the cells with Holm's correction over the tests of all their mean changes."""
    adjusted = holm_corrected([cell.mean_change for cell in cells])
    corrected = []
    for cell, mean_change in zip(cells, adjusted, strict=True):
        corrected.append(replace(cell, mean_change=mean_change))
    return tuple(corrected)


def _rate(
    column: Column, reference_scores: Floats, differences: Floats, direction: float, least: float
) -> Estimate | None:
    """Return the share of scores that move by at least `least` in a direction, 1 or -1."""
    scale_end = column.high if direction > 0 else column.low
    # A score that is already near the end has no room to move there.
    room = np.abs((np.inf if scale_end is None else scale_end) - reference_scores)
    return _moved(differences[room >= least - _NEAR], direction, least)


def means(rows: Floats, seed: int) -> list[Estimate | None]:
    """Return `mean_differences` of the rows, without an interval below FEWEST items."""
    estimates: list[Estimate | None] = []
    for estimate in mean_differences(rows, seed=seed):
        if estimate is not None and estimate.n < FEWEST:
            method = too_few(estimate.n)
            estimate = replace(estimate, low=None, high=None, method=method)
        estimates.append(estimate)
    return estimates


def without_p(estimate: Estimate | None) -> Estimate | None:
    """Return the estimate without its test."""
    return estimate and replace(estimate, p=None, test="")


def min_items_for_significance(tests: int) -> int:
    """Return the fewest items with which a Holm-corrected sign-flip test can be significant."""
    return ceil(log2(2 * tests / ALPHA)) if tests else 0


def holm_corrected(estimates: Iterable[Estimate | None]) -> list[Estimate | None]:
    """Apply Holm's correction over all estimates that have a p."""
    rows = list(estimates)
    adjusted = holm([estimate.p if estimate else None for estimate in rows])
    tests = sum(p_value is not None for p_value in adjusted)
    corrected: list[Estimate | None] = []
    for estimate, p_value in zip(rows, adjusted, strict=True):
        if estimate is not None and p_value is not None:
            estimate = replace(estimate, p=p_value, method=f"{estimate.method}, Holm over {tests}")
        corrected.append(estimate)
    return corrected


def _moved(values: Floats, toward: float, least: float) -> Estimate | None:
    """Return the share of known values that are at least `least` on one side of 0."""
    known_values = toward * values[~np.isnan(values)]
    # A value of 0 is no move, even with a `least` of 0.
    moved = (known_values >= least - _NEAR) & (known_values > _NEAR)
    return wilson_interval(int(moved.sum()), len(known_values), "rate")


def written(finding: BiasFinding, column: Column | None) -> tuple[str, str]:
    """Return a finding's number and its interval: `12%` and `[6, 21]`, `+0.35` and `[0.10,
    0.60]`.
    """
    return written_estimate(finding.estimate, finding.unit, column)


_UNSIGNED = ("sd", "kappa", "alpha")
_COEFFICIENTS = ("r", "kappa", "alpha", "Spearman")


def written_estimate(estimate: Estimate, unit: str, column: Column | None) -> tuple[str, str]:
    """Return a number and its interval in the form of its unit."""
    if unit == "share":
        return f"{number(100 * estimate.value, 0)}%", interval(estimate, 0, 100)
    digits = 2 if unit in _COEFFICIENTS else places(column, [estimate.value])
    write = number if unit in _UNSIGNED else signed
    return write(estimate.value, digits), interval(estimate, digits)


def apply_holm(
    findings: Iterable[BiasFinding], columns: Mapping[str, Column]
) -> tuple[BiasFinding, ...]:
    """Return the findings with Holm's correction over all of them, each in words."""
    rows = list(findings)
    estimates = holm_corrected([finding.estimate for finding in rows])
    corrected = []
    for finding, estimate in zip(rows, estimates, strict=True):
        if estimate is None:
            continue
        significant = None if estimate.p is None else is_significant(estimate)
        finding = replace(finding, estimate=estimate, significant=significant)
        details = [] if finding.unit in PLAIN_UNITS else [finding.unit]
        details.append(plural(estimate.n, finding.counted.removesuffix("s")))
        if finding.suggestive:
            details.append("too few to test, but most agree")
        elif estimate.p is not None:
            details.append(format.format_p(estimate.p))
        value = " ".join(filter(None, written(finding, columns.get(finding.criterion))))
        sentence = f"{finding.criterion}: {finding.measure} {value} ({', '.join(details)})"
        corrected.append(replace(finding, sentence=sentence))
    return tuple(corrected)


def agreement_with_mean(values: Floats, least: float) -> Estimate | None:
    """Return the share of differences that are on the side of their mean by at least `least`.

    A missing difference is NaN.
    """
    known_values = values[~np.isnan(values)]
    side = float(np.sign(known_values.mean())) if len(known_values) else 0.0
    return _moved(known_values, side, least)


def is_significant(estimate: Estimate) -> bool:
    """Return whether the corrected p is below .05."""
    return estimate.p is not None and estimate.p < ALPHA
