"""The people behind the ratings: the table of the raters, and whether a judge may replace one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from judge.core.format import number, percent, plural
from judge.report.document import Block, Cell, Column, Content, Paragraph, Table, table
from judge.report.views.columns import estimate_cell, p_cell
from judge.stats.alt_test import AltTest
from judge.stats.correlation import OVER
from judge.stats.human_agreement import Rated

_PLACES = 2
HELP = (
    "Alt-test (Calderon et al. 2025): each rater is left out and compared with the judge by the "
    "distance from the other raters. A rater's lead is the share of texts on which the rater is "
    "closer minus that on which the judge is. The judge wins if the lead is significantly below ε "
    "(clustered by item, Benjamini-Yekutieli's correction). It passes if it wins against at least "
    "half of the raters (ω).",
    "Raters are compared with the mean of the others on shared texts. Same: texts rated twice with "
    "the same value.",
)


def alt_test_finding(criteria: Sequence[Rated], judge: str) -> Iterator[str]:
    """Say on which criteria a judge may replace a rater; nothing if none could be tested."""
    test_by_criterion: dict[str, AltTest] = {}
    for rated in criteria:
        for row in rated.judges:
            if row.name == judge and row.alt_test is not None:
                test_by_criterion[rated.criterion] = row.alt_test
    for passed in (True, False):
        wins = []
        for criterion, test in test_by_criterion.items():
            if test.passed is passed and test.winning_rate is not None:
                wins.append(f"{_wins(test)} on {criterion}")
        if wins:
            # All criteria are tested with the same ε.
            first_test, *_ = test_by_criterion.values()
            verdict = _verdict(judge, passed)
            listed_wins = ", ".join(wins)
            yield (
                f"{verdict} (alt-test, ε {first_test.epsilon:g}): "
                f"it wins against {listed_wins}."
            )


def _wins(test: AltTest) -> str:
    """Return against how many raters the judge wins: `2 of 3 raters`."""
    tested = [rater for rater in test.raters if rater.p is not None]
    n_won = sum(rater.won for rater in tested)
    raters = plural(len(tested), "rater")
    return f"{n_won} of {raters}"


def _verdict(judge: str, passed: bool | None) -> str:
    """Return the clause on whether a judge may replace a rater."""
    if passed:
        return f"{judge} may replace a rater"
    # A judge that fails is not shown to be worse: the texts may be too few.
    return f"It is not shown that {judge} may replace a rater"


def rater_blocks(rated: Rated) -> Iterator[Block]:
    """Yield the alt-test of each judge, and the table of the raters."""
    for row in rated.judges:
        if row.alt_test is not None:
            yield from _alt_test_blocks(row.name, row.alt_test, rated.criterion)
    if rated.raters:
        yield _rater_table(rated)


def _rater_table(rated: Rated) -> Table:
    """Return a row per rater: the agreement with the mean of the others, and with oneself."""
    rows = []
    for rater in rated.raters:
        same = f"{rater.same} of {rater.repeated}" if rater.repeated else None
        row = (
            rater.rater,
            rater.ratings,
            number(rater.mean, _PLACES),
            estimate_cell(rater.spearman, _PLACES),
            estimate_cell(rater.alpha, _PLACES),
            same,
        )
        rows.append(row)
    same_head = Column("same", optional=True)
    heads = ("rater", "ratings", "mean", "Spearman", "alpha", same_head)
    return table(
        heads,
        rows,
        caption=(
            f"{rated.criterion}: the raters, each compared with the mean of the others. "
            f"Spearman is {OVER[rated.usual_level]}."
        ),
        name=f"rater-table-{rated.criterion}",
    )


def _alt_test_blocks(judge: str, test: AltTest, criterion: str) -> Iterator[Block]:
    """Yield the verdict on a judge, and a table with a row per rater who was left out.

    Without a test, yield the reason alone.
    """
    if test.winning_rate is None:
        question = f"Whether {judge} may replace a rater"
        yield Paragraph(f"{question} is not tested: {test.reason}.")
        return
    rate = number(test.winning_rate, _PLACES)
    share = percent(test.advantage)
    wins = f"{_wins(test)} (ω {rate}, ε {test.epsilon:g})"
    yield Paragraph(
        f"{_verdict(judge, test.passed)}: it wins against {wins}. "
        f"It is at least as close to the others as a rater on {share} of the texts."
    )
    rows: list[tuple[Content, ...]] = []
    for rater_test in test.raters:
        judge_wins = None
        if rater_test.p is not None:
            judge_wins = "yes" if rater_test.won else "no"
        judge_as_close = Cell(percent(rater_test.judge), value=rater_test.judge)
        rater_as_close = Cell(percent(rater_test.person), value=rater_test.person)
        row = (
            rater_test.rater,
            judge_as_close,
            rater_as_close,
            p_cell(rater_test.p),
            judge_wins,
            rater_test.texts,
        )
        rows.append(row)
    yield table(
        ("left out", "judge as close", "rater as close", "p", "judge wins", "texts"),
        rows,
        "As close: at least as close to the other raters. "
        "Wins: p < .05 after correction over the raters.",
        caption=f"{criterion}: {judge} in place of a rater.",
        name=f"alt-test-{criterion}-{judge}",
    )


def rater_records(rated: Rated) -> Iterator[dict[str, Any]]:
    """Yield the numbers that `rater_blocks` shows.

    The keys are name, kind, level, coefficient, value, low, high, n and method.
    """
    for row in rated.judges:
        test = row.alt_test
        if test is None:
            continue
        method = test.reason or f"alternative annotator test, epsilon {test.epsilon:g}"
        n_tested = sum(rater.p is not None for rater in test.raters)
        values = {"winning_rate": test.winning_rate, "advantage": test.advantage}
        for coefficient_name, value in values.items():
            record = _record(row.name, "judge", coefficient_name, value, n_tested)
            yield {**record, "method": method}
    for rater in rated.raters:
        for estimate in (rater.spearman, rater.alpha):
            if estimate is None:
                continue
            record = _record(
                rater.rater, "rater", estimate.name, estimate.value, estimate.n
            )
            ends = {"low": estimate.low, "high": estimate.high}
            yield {**record, **ends, "method": estimate.method}
        yield _record(rater.rater, "rater", "mean", rater.mean, rater.ratings)
        if rater.repeated:
            same = rater.same / rater.repeated
            yield _record(rater.rater, "rater", "same", same, rater.repeated)


def _record(
    row_name: str,
    kind: str,
    coefficient: str,
    value: float | None,
    n: int,
) -> dict[str, Any]:
    """Return a record without an interval; `n` counts texts, or raters for the alt-test."""
    return {
        "name": row_name,
        "kind": kind,
        "level": "",
        "coefficient": coefficient,
        "value": value,
        "low": None,
        "high": None,
        "n": n,
        "method": "",
    }
