"""The people behind the ratings: may a judge replace one of them (alt-test), and the table of the
raters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from judge.core.format import number, percent, plural
from judge.report.document import Block, Cell, Column, Paragraph, table
from judge.report.views.columns import estimate_cell, p_cell
from judge.stats.alt_test import AltTest
from judge.stats.human_agreement import Rated

_PLACES = 2
HELP = (
    "Alt-test (Calderon et al. 2025): each rater is left out and compared with the judge by the distance from the "
    "other raters. A rater's lead is the share of texts on which the rater is closer minus that on which the judge is. "
    "The judge wins if the lead is significantly below ε (clustered by item, Benjamini-Yekutieli's correction). It "
    "passes if it wins against at least half of the raters (ω).",
    "Raters are compared with the mean of the others on shared texts. Same: texts rated twice with the same value.",
)


def alt_test_finding(criteria: Sequence[Rated], judge: str) -> Iterator[str]:
    """Say on which criteria a judge may replace a rater; nothing if none could be tested."""
    rows = [
        (rated.criterion, row) for rated in criteria for row in rated.judges if row.name == judge
    ]
    tests = [
        (name, test)
        for name, row in rows
        if (test := row.alt_test) and test.winning_rate is not None
    ]
    for passed in (True, False):
        if rates := [
            f"{name} {number(t.winning_rate or 0.0, _PLACES)}"
            for name, t in tests
            if t.passed is passed
        ]:
            yield f"{_verdict(judge, passed)} (ω at ε {tests[0][1].epsilon:g}): {', '.join(rates)}."


def _verdict(judge: str, passed: bool | None) -> str:
    # A judge that fails is not shown to be worse: the texts may be too few.
    return (
        f"{judge} may replace a rater"
        if passed
        else f"It is not shown that {judge} may replace a rater"
    )


def rater_blocks(rated: Rated) -> Iterator[Block]:
    """Yield the alt-test of each judge, and the table of the raters."""
    for row in rated.judges:
        if row.alt_test and row.alt_test.winning_rate is None:
            yield Paragraph(f"No alt-test for {row.name}: {row.alt_test.reason}.")
        elif row.alt_test:
            yield from _alt_test(row.name, row.alt_test, rated.criterion)
    if rated.raters:
        rows = [
            (
                rater.rater,
                rater.ratings,
                number(rater.mean, _PLACES),
                estimate_cell(rater.spearman, _PLACES),
                estimate_cell(rater.alpha, _PLACES),
                f"{rater.same} of {rater.repeated}" if rater.repeated else None,
            )
            for rater in rated.raters
        ]
        yield table(
            ("rater", "ratings", "mean", "Spearman", "alpha", Column("same", optional=True)),
            rows,
            caption=f"{rated.criterion}: the raters, each compared with the mean of the others.",
            name=f"rater-table-{rated.criterion}",
        )


def _alt_test(judge: str, test: AltTest, criterion: str) -> Iterator[Block]:
    tested = [each for each in test.raters if each.p is not None]
    yield Paragraph(
        f"{_verdict(judge, test.passed)}: it wins against {sum(each.won for each in tested)} of "
        f"{plural(len(tested), 'rater')} (ω {number(test.winning_rate or 0.0, _PLACES)}, ε {test.epsilon:g}). It is as "
        f"close to the others as a rater on {percent(test.advantage or 0.0)} of the texts."
    )
    yield table(
        ("left out", "judge as close", "rater as close", "p", "judge wins", "texts"),
        [
            (
                each.rater,
                Cell(percent(each.judge), value=each.judge),
                Cell(percent(each.person), value=each.person),
                p_cell(each.p),
                None if each.p is None else "yes" if each.won else "no",
                each.texts,
            )
            for each in test.raters
        ],
        "As close: at least as close to the other raters. Wins: p < .05 after correction over the raters.",
        caption=f"{criterion}: {judge} in place of a rater.",
        name=f"alt-test-{criterion}-{judge}",
    )


def rater_records(rated: Rated) -> Iterator[dict[str, Any]]:
    """Yield what `rater_blocks` shows as name, kind, level, coefficient, value, low, high, n and
    method."""
    for row in rated.judges:
        if row.alt_test:
            method = f"alternative annotator test, epsilon {row.alt_test.epsilon:g}"
            tested = sum(each.p is not None for each in row.alt_test.raters)
            for name, value in (
                ("winning_rate", row.alt_test.winning_rate),
                ("advantage", row.alt_test.advantage),
            ):
                yield _record((row.name, "judge"), name, value, tested) | {
                    "method": row.alt_test.reason or method
                }
    for rater in rated.raters:
        who = rater.rater, "rater"
        for e in filter(None, (rater.spearman, rater.alpha)):
            yield _record(who, e.name, e.value, e.n) | {
                "low": e.low,
                "high": e.high,
                "method": e.method,
            }
        same = rater.same / rater.repeated if rater.repeated else None
        values = {"mean": rater.mean, "same": same}
        counts = {"mean": rater.ratings, "same": rater.repeated}
        yield from (
            _record(who, what, v, counts.get(what)) for what, v in values.items() if v is not None
        )


def _record(who: tuple[str, str], what: str, value: float | None, n: int | None) -> dict[str, Any]:
    number = {"value": value, "low": None, "high": None, "n": n, "method": ""}
    return {"name": who[0], "kind": who[1], "level": "", "coefficient": what, **number}
