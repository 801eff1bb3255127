"""Whether a criterion's scores are worse than in a baseline run, or go worse with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.report import Result
from judge.report.words import chance, number
from judge.stats.permutation import holm
from judge.stats.power import ALPHA, LEAST
from judge.stats.runs import Moved, Runs, compare_runs
from judge.suite.kinds.beside import Beside, beside, change
from judge.suite.kinds.shared import joined, places
from judge.suite.kinds.trust import Trust, trust, verdict
from judge.suite.means import Mean, mean, values
from judge.suite.records import Suite, Verdict
from judge.suite.scored import NoScore, Scored, Text, columns, named

_EXPECTED = "not worse"
_Found = tuple[Beside, Mean]


def against(
    result: Result, baseline: Result, suite: Suite | None = None, *, runs: Runs | None = None, seed: int = 0
) -> list[Verdict]:
    """One verdict for each criterion of `result`, but those of which the suite has a drift case.

    Where people rated the texts, not met only where the scores are told to go worse with the ratings than the
    baseline's: a prompt that is stricter, and right, is no regression. Else not met only where the scores are told to
    be worse: p after Holm is below .05, and the interval of the mean difference lies on the worse side of 0. Both are
    those of `runs`, the two side by side (default: made here), and of fewer than six items those over their draws. All
    texts that have a score in both count. `error` where a criterion cannot be compared.
    """
    runs = runs or compare_runs(baseline.table, result.table, seed=seed)
    rows = {row.column: row for row in reversed(runs.moved)}  # that of all systems comes first
    drifts = {named(case.criterion) for case in suite.cases if case.kind == "drift"} if suite else set()
    at = suite.lines.get("baseline", 1) if suite else 1
    texts = [(sample.item, sample.system) for sample in result.table.samples]
    kept = {name: rows.get(column.name) for name, column in columns(result).items() if name not in drifts}
    found = {name: _found(result, baseline, name, texts, row) for name, row in kept.items()}
    few = {n: one[1].estimate.p for n, one in found.items() if isinstance(one, tuple) and one[1].unit == "draw"}
    moves = {name: row.adjusted for name, row in kept.items() if row} | {**dict.fromkeys(few), **_adjusted(few)}
    rated = [name for name in found if any(name in sample.human for sample in result.table.samples)]
    trusts = {n: one for n in rated if (one := trust(result, baseline, n, criteria=len(rated), seed=seed))}
    turns = _adjusted({name: one.estimate.p for name, one in trusts.items()})
    verdicts = [_verdict(name, at, one, moves.get(name)) for name, one in found.items()]
    return [_by_people(one, trusts[one.criterion], turns) if one.criterion in trusts else one for one in verdicts]


def _adjusted(p: Mapping[str, float | None]) -> dict[str, float]:
    """After Holm over the criteria that have a test."""
    tested = {name: one for name, one in p.items() if one is not None}
    return dict(zip(tested, holm([*tested.values()]), strict=True))


def _by_people(moved: Verdict, found: Trust, p: Mapping[str, float]) -> Verdict:
    """The verdict by people's ratings in the place of that by the scores alone."""
    return verdict(moved.criterion, moved.line, found, p.get(moved.criterion), moved.found)


def _found(result: Result, baseline: Result, criterion: str, texts: Sequence[Text], row: Moved | None) -> _Found | str:
    """The mean difference, or why there is none."""
    try:
        both = beside(baseline, Scored.of(result, criterion, {item for item, _ in texts}), criterion, texts)
    except NoScore as error:
        return error.message
    items = both.items()
    if row is None or len(items) < LEAST:
        return both, mean(items, 0.0)[0]
    return both, Mean(row.estimate, float(values(items).std(ddof=1)), "item", items=len(items))


def _verdict(criterion: str, at: int, found: _Found | str, p: float | None) -> Verdict:
    title = f"{criterion} against the baseline"
    if isinstance(found, str):
        return Verdict(title, at, "baseline", criterion, "error", False, _EXPECTED, "no comparison", found)
    both, move = found
    column = both.after.column
    said = _said(move, p, -1 if column.better == "lower" else 1)
    worse, decimal = said.startswith("worse"), places(column)
    alike = move.alike if move.estimate.value else ""
    return Verdict(
        title,
        at,
        "baseline",
        criterion,
        "failed" if worse else "passed",
        not worse,
        _EXPECTED,
        change(move.estimate, decimal),
        joined(said, alike),
        estimate=move.estimate,
        before=number(both.mean_before(), decimal),
    )


def _said(move: Mean, p: float | None, sign: int) -> str:
    """Without a test, as of a few replies, nothing is told to be worse."""
    e = move.estimate
    if p is not None and p < ALPHA and move.side:
        return f"{'better' if move.side == sign else 'worse'} ({chance(p)})"
    if not e.value and (e.low == e.high):
        return "the same"
    return "not told apart" + (move.takes if p is not None else f" (nothing to test on fewer than {LEAST} items)")
