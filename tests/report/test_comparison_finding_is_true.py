"""Every sentence about two runs is true. Oracle: an independent analysis of the two tables.

The reading has its own means, exact sign flips, Holm correction and split of a change. A sentence that no rule below
knows fails the test: a new sentence needs a rule that says when it is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nct
from scipy.stats import t as student

from judge.commands.compare.finding import finding
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.comparison import RunComparison
from judge.results.result import Result
from judge.stats.run_differences import compare_runs
from judge.table import Table
from tests.factories import exact_sign_flip_p

EXACT = 10
"""Up to this number of nonzero differences, the analysis enumerates all signs."""
ANCHORS = 5
ALPHA = 0.05
SPANS = {"relevance": 4.0, "style": 4.0, "overall": 1.0, "rouge1": 1.0}
TITLES = {"ROUGE-1": "rouge1"}


@dataclass(frozen=True)
class Drawn:
    """Values of two runs by column (systems × items, NaN if missing), and the cells with changed texts."""

    before: Mapping[str, np.ndarray]
    after: Mapping[str, np.ndarray]
    edited: np.ndarray

    def comparison(self) -> RunComparison:
        before = self._run(self.before, edited=False)
        after = self._run(self.after, edited=True)
        runs = compare_runs(before.table, after.table, n_resamples=2_000)
        return RunComparison(("before", "after"), before, after, runs)

    def _run(self, values: Mapping[str, np.ndarray], *, edited: bool) -> Result:
        cells = list(product(range(self.edited.shape[0]), range(self.edited.shape[1])))
        columns = tuple(
            Column(name, "metric", Signature(name), 0.0, 1.0)
            if name == "rouge1"
            else Column(
                name, "criterion", Signature(name), 1.0, 5.0, ("1", "2", "3", "4", "5"), name
            )
            for name in values
        )
        samples = tuple(
            Sample(f"i{item}", f"s{system}", "new" if edited and self.edited[system, item] else "")
            for system, item in cells
        )
        scores = tuple(
            Score(f"i{item}", f"s{system}", name, float(matrix[system, item]), Provenance("single"))
            for name, matrix in values.items()
            for system, item in cells
            if not np.isnan(matrix[system, item])
        )
        return Result(Table(samples, columns, scores))


def adjusted(p_values: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """Return the p-values after Holm's correction."""
    highest = 0.0
    corrected = {}
    for rank, (key, p) in enumerate(sorted(p_values.items(), key=lambda entry: entry[1])):
        highest = max(highest, p * (len(p_values) - rank))
        corrected[key] = min(1.0, highest)
    return corrected


class Reading:
    """An independent analysis of the two tables. A row is a column of one system, or of all systems ("")."""

    def __init__(self, drawn: Drawn, comparison: RunComparison) -> None:
        """Use the p-values of the report if there are too many items to enumerate, and for parts of a change."""
        self.drawn = drawn
        self.shown = {(row.column, row.system): row for row in comparison.runs.means}
        self.differences = {
            name: np.round(drawn.after[name] - drawn.before[name], 9) for name in drawn.before
        }
        judged = [name for name in drawn.before if name != "rouge1"]
        if len(judged) > 1:
            total = sum(self.differences[name] / 4 for name in judged)
            self.differences["overall"] = np.round(total / len(judged), 9)
        n_systems = drawn.edited.shape[0]
        self.rows: dict[tuple[str, str], np.ndarray] = {}
        for name, matrix in self.differences.items():
            for system in range(n_systems):
                self.rows[name, f"s{system}"] = matrix[system][~np.isnan(matrix[system])]
            if n_systems > 1:
                some = ~np.isnan(matrix).all(axis=0)
                self.rows[name, ""] = np.nanmean(matrix[:, some], axis=0) if some.any() else []
        self.rows = {key: row for key, row in self.rows.items() if len(row)}
        self.single = [key for key in self.rows if key[1]]
        self.changed = [key for key in self.single if self.rows[key].any()]
        self.p: dict[tuple[str, str], float] = {}
        for together in (False, True):
            keys = [key for key in self.rows if bool(key[1]) != together]
            self.p |= adjusted({key: self._p(key) for key in keys if self.is_tested(key)})

    def differs(self, key: tuple[str, str]) -> bool:
        name, system = key
        rows = self.differences[name] if not system else self.differences[name][int(system[1:])]
        return bool(np.nan_to_num(rows).any())

    def is_tested(self, key: tuple[str, str]) -> bool:
        return len(self.rows[key]) > 1 and self.differs(key)

    def _p(self, key: tuple[str, str]) -> float:
        row = self.rows[key]
        if np.count_nonzero(row) <= EXACT:
            return exact_sign_flip_p(row)
        p = self.shown[key].estimate.p
        assert p is not None
        return p

    def is_significant(self, key: tuple[str, str]) -> bool:
        return bool(self.p.get(key, 1.0) < ALPHA)

    def mean(self, key: tuple[str, str]) -> float:
        return float(np.mean(self.rows[key]))

    def share(self, key: tuple[str, str]) -> float:
        return abs(self.mean(key)) / SPANS[key[0]]

    @property
    def significant(self) -> list[tuple[str, str]]:
        return [key for key in self.single if self.is_significant(key)]

    @property
    def judged(self) -> list[str]:
        return [name for name in self.drawn.before if name != "rouge1"]

    def unchanged_differ(self) -> bool:
        """Return whether an unchanged text has different scores in the two runs."""
        same = ~self.drawn.edited
        return any(np.nan_to_num(self.differences[name][same]).any() for name in self.judged)


SIZE = (
    r"(?P<title>[\w-]+) (?P<verb>rose|fell) by (?P<amount>less than 0\.0*1|[\d.]+)(?: \[[-−\d., ]+\])?"
    r"(?: (?:for (?P<system>s\d+)|over all systems))?(?: \(p [<=] (?P<p>[\d.]+)\))?"
)


def key_of(reading: Reading, match: re.Match[str]) -> tuple[str, str]:
    name = TITLES.get(match["title"], match["title"])
    several = reading.drawn.edited.shape[0] > 1
    with_values = {system for _, system in reading.single}
    if several and len(with_values) > 1:
        return name, match["system"] or ""
    (only,) = with_values
    return name, only


def size_is_true(reading: Reading, text: str, *, significant: bool | None = None) -> bool:
    """Return whether `relevance fell by 0.50 for s1 (p = 0.012)` is right."""
    match = re.fullmatch(SIZE, text)
    assert match, text
    key = key_of(reading, match)
    mean = reading.mean(key)
    if "less" in match["amount"]:
        right = 0 < abs(mean) < float(match["amount"].split()[-1])
    else:
        right = abs(abs(mean) - float(match["amount"])) < 0.00501 and float(match["amount"]) > 0
    if match["p"]:
        right = right and abs(reading.p[key] - float(match["p"])) < 0.00101
    if significant is not None:
        right = right and reading.is_significant(key) == significant
    return right and (mean > 0) == (match["verb"] == "rose")


def sizes_are_true(reading: Reading, match: re.Match[str]) -> bool:
    """Return whether the sizes are right. Sizes without a comment are significant."""
    return all(size_is_true(reading, text, significant=True) for text in match[0].split(" and "))


def n_tested(reading: Reading) -> int:
    """Return the number of system means in columns with any changed value."""
    columns = {column for column, _ in reading.changed}
    return sum(column in columns for column, _ in reading.single)


def number_changed(reading: Reading, match: re.Match[str]) -> bool:
    counts = int(match["n"]), int(match["total"])
    counted = len(reading.significant), n_tested(reading)
    return counts == counted and size_is_true(reading, match["size"], significant=True)


def none_significant(reading: Reading, match: re.Match[str]) -> bool:
    return int(match["total"]) == n_tested(reading) and not any(
        map(reading.is_significant, reading.rows)
    )


def too_few(reading: Reading, match: re.Match[str]) -> bool:
    untested = all(len(reading.rows[key]) == 1 for key in reading.changed)
    return int(match["total"]) == n_tested(reading) and untested


def too_few_to_show(reading: Reading, match: re.Match[str]) -> bool:
    tested = [len(reading.rows[key]) for key in reading.changed if abs(reading.mean(key)) > 1e-9]
    return max(tested) == int(match["n"]) < 6


def largest(reading: Reading, match: re.Match[str]) -> bool:
    size = re.fullmatch(SIZE, match["size"])
    assert size, match["size"]
    key = key_of(reading, size)
    opponents = reading.changed
    if match["whose"]:
        kinds = {"criterion": ["relevance", "style"], "the overall score": ["overall"]}
        opponents = [opponent for opponent in opponents if opponent[0] in kinds[match["whose"]]]
    right = all(reading.share(key) >= reading.share(opponent) - 1e-9 for opponent in opponents)
    if match["needed"]:
        n = int(match["needed"].replace(",", ""))
        right = right and n > len(reading.rows[key])
        right = right and power(reading, key, 1.3 * n) > 0.8
        # With one item fewer, either no p can be small enough or the power is too low.
        least = n_tests(reading) * 2.0 ** (2 - n) >= ALPHA
        right = right and (least or power(reading, key, 0.7 * n) < 0.8)
    return right and size_is_true(reading, match["size"], significant=False)


def n_tests(reading: Reading) -> int:
    return sum(reading.is_tested(key) for key in reading.single)


def power(reading: Reading, key: tuple[str, str], n: float) -> float:
    """Return the power of a t test of this change at the strictest α of Holm's correction."""
    row = reading.rows[key]
    critical = student.ppf(1 - ALPHA / 2 / n_tests(reading), n - 1)
    return float(1 - nct.cdf(critical, n - 1, abs(row.mean()) / row.std(ddof=1) * sqrt(n)))


def split_is_true(reading: Reading, match: re.Match[str]) -> bool:
    name, system = match["name"], int(match["system"][1:])
    numbers = [float(match[part].replace("−", "-")) for part in ("whole", "judge", "own")]
    row, edited = reading.differences[name][system], reading.drawn.edited[system]
    known = ~np.isnan(row)
    right = bool(abs(numbers[0] - row[known].mean()) < 0.00501)
    right = right and abs(numbers[1] + numbers[2] - numbers[0]) < 0.0151
    anchors = row[known & ~edited]
    if len(anchors) >= ANCHORS:
        own_change = np.where(edited, row - anchors.mean(), 0.0)[known].mean()
        right = right and abs(numbers[2] - own_change) < 0.00501
    if match["of"]:
        parts = [
            shown
            for (column, whose), shown in reading.shown.items()
            if whose
            and column in reading.judged
            and shown.system_change not in (None, shown.estimate)
            and reading.differs((column, whose))
        ]
        changed = sum(shown.system_changed for shown in parts)
        right = right and (int(match["n"]), int(match["of"])) == (changed, len(parts))
    return right


def judge_changed(reading: Reading, match: re.Match[str]) -> bool:
    keys = [key for key in reading.rows if key[0] != "rouge1"]
    return not reading.drawn.edited.any() and any(map(reading.is_significant, keys))


def judge_unchanged(reading: Reading, match: re.Match[str]) -> bool:
    same = ~reading.drawn.edited
    scored = sum(
        any(not np.isnan(reading.differences[name][place]) for name in reading.judged)
        for place in zip(*np.nonzero(same), strict=True)
    )
    return int(match["n"]) == scored > 0 and not reading.unchanged_differ()


def equal_means(reading: Reading, match: re.Match[str]) -> bool:
    number = {"The mean is": 1}.get(match["n"]) or int(match["n"].split()[1])
    moved = [key for key in reading.changed if abs(reading.mean(key)) > 1e-9]
    return not moved and bool(reading.changed) and number == len(reading.single)


RULES: list[tuple[str, Callable[[Reading, re.Match[str]], bool]]] = [
    ("No column has values in both runs", lambda reading, match: not reading.rows),
    (r"None of the \d+ columns in both runs can be .*", lambda reading, match: not reading.rows),
    (r"The runs cannot be compared on .*", lambda reading, match: not reading.rows),
    (
        r"No score changed: all values of (?P<n>\d+) means? are equal",
        lambda reading, match: not reading.changed and int(match["n"]) == len(reading.single),
    ),
    (r"(?P<n>\d+) of (?P<total>\d+) means changed significantly; (?P<size>.*)", number_changed),
    (r"No significant change in (?P<total>\d+) means?", none_significant),
    (r"Too few items to test the changes of (?P<total>\d+) means?", too_few),
    (r"With (?P<n>\d) items, no change can be significant: you need at least 6\.", too_few_to_show),
    (
        r"The largest change(?: of (?:a )?(?P<whose>criterion|the overall score))?: (?P<size>.*?)\."
        r"(?: If it is real, detecting it needs about (?P<needed>[\d,]+) items\.)?",
        largest,
    ),
    (
        r"(?P<n>The mean is|All \d+ means are) the same in both runs, although values of texts differ",
        equal_means,
    ),
    (
        r"(?P<name>\w+) of (?P<system>s\d+): (?P<whole>[+−]?[\d.]+), of which the judge (?P<judge>[+−]?[\d.]+)"
        r"(?: \[[^]]*\])? and the system (?P<own>[+−]?[\d.]+)(?: \[[^]]*\])? \((?:p [<=] [\d.]+|not tested)\)"
        r"(?:; without the judge, (?P<n>\d+) of (?P<of>\d+) changes are significant)?\.",
        split_is_true,
    ),
    (
        "All (?:shared )?texts are the same in both runs, so the judge changed, not the systems.",
        judge_changed,
    ),
    (
        r"The judge did not change: no score of (?P<n>\d+) unchanged texts? differs\.",
        judge_unchanged,
    ),
]


def is_true(reading: Reading, sentence: str) -> bool:
    for pattern, rule in RULES:
        if match := re.fullmatch(pattern, sentence):
            return rule(reading, match)
    match = re.fullmatch(rf"{SIZE}(?: and {SIZE.replace('?P<', '?P<second_')})?\.?", sentence)
    assert match, f"no rule says when this is true: {sentence}"
    sizes = sentence.removesuffix(".").split(" and ")
    return all(size_is_true(reading, size, significant=True) for size in sizes)


@st.composite
def two_runs(draw: st.DrawFn) -> Drawn:
    """Draw two runs of 1–5 systems on 1–30 items, with judge shifts, system changes, missing values and new texts."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from([1, 2, 3, 5])), draw(st.sampled_from([1, 2, 6, 8, 10, 20, 30]))
    names = draw(st.sampled_from([("relevance",), ("relevance", "style")]))
    if draw(st.booleans()):
        names = (*names, "rouge1")
    edits = draw(st.sampled_from(["none", "one system", "some", "some items", "all"]))
    edited = np.zeros(shape, dtype=bool)
    if edits == "one system":
        edited[0] = True
    elif edits == "some":
        edited = random.random(shape) < 0.3
    elif edits == "some items":
        edited[:, : shape[1] // 2] = True
    elif edits == "all":
        edited[:] = True
    judge_shift = draw(st.sampled_from([0.0, 0.0, 0.25, 1.0]))
    noise = draw(st.sampled_from([0.0, 0.0, 0.5]))
    leads = random.choice([-1.0, 0.0, 0.0, 0.5, 1.0], (shape[0], 1))
    before, after = {}, {}
    for name in names:
        moves = draw(st.booleans())
        old = random.choice([2.0, 2.5, 3.0, 3.5], shape)
        change = np.where(edited, leads, 0.0) + noise * random.normal(size=shape)
        if moves and name != "rouge1":
            change = change + judge_shift
        if name == "rouge1" and not moves:
            change = np.zeros(shape)
        new = np.clip(np.round((old + change) * 4) / 4, 1.0, 5.0)
        if name == "rouge1":
            old, new = (old - 1) / 4, (new - 1) / 4
        missing = draw(st.sampled_from(["none", "none", "some", "edited"]))
        if missing == "some":
            new = np.where(random.random(shape) < 0.3, np.nan, new)
        elif missing == "edited":
            new = np.where(edited, np.nan, new)
        before[name], after[name] = old, new
    return Drawn(before, after, edited)


@settings(max_examples=200)
@given(two_runs())
@pytest.mark.slow
def test_every_sentence_about_two_runs_is_true(drawn: Drawn) -> None:
    comparison = drawn.comparison()
    reading = Reading(drawn, comparison)
    sentences = list(finding(comparison))
    for sentence in sentences:
        assert is_true(reading, sentence), (sentence, sentences)


def test_the_judge_is_not_blamed_if_a_column_that_a_prompt_may_read_changed() -> None:
    values = {"relevance": np.full((1, 8), 2.0)}
    moved = {"relevance": np.full((1, 8), 3.0)}
    comparison = Drawn(values, moved, np.zeros((1, 8), dtype=bool)).comparison()
    assert any("the judge changed" in sentence for sentence in finding(comparison))
    table = comparison.after.table
    samples = tuple(replace(sample, extra={"context": "new"}) for sample in table.samples)
    after = replace(comparison.after, table=replace(table, samples=samples))
    assert len(list(finding(replace(comparison, after=after)))) == 1
