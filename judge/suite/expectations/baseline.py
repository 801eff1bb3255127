"""Whether a criterion's scores are worse than in a baseline run, or go worse with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from judge.report.format import chance, number
from judge.results.result import Result
from judge.stats.permutation import holm
from judge.stats.power import ALPHA, LEAST
from judge.stats.run_differences import Moved, Runs, compare_runs
from judge.suite.expectations.agreement_change import trust, untold, verdict
from judge.suite.expectations.context import joined, places
from judge.suite.expectations.paired_runs import Beside, Rescaled, beside, change
from judge.suite.means import Mean, mean, values
from judge.suite.records import Drift, Status, Suite, Verdict
from judge.suite.scored import NoScore, Scored, Text, columns, named

_EXPECTED = "not worse"
_Found = tuple[Beside, Mean]


def against(
    result: Result, baseline: Result, suite: Suite | None = None, *, runs: Runs | None = None, seed: int = 0
) -> list[Verdict]:
    """One verdict for each criterion of `result`, but those of which a drift case bounds the mean over all texts.

    Where people rated the texts, not met only where the scores are told to go worse with the ratings than the
    baseline's: a prompt that is stricter, and right, is no regression. Else, and where the ratings are too few to
    tell, not met only where the scores are told to be worse: p after Holm is below .05, and the interval of the mean
    difference lies on the worse side of 0. Both are those of `runs`, the two side by side (default: made here), and of
    fewer than six items those over their draws; where these have no test, likeliest labels have to flip. All texts
    that have a score in both count. `undecided`
    where nothing can tell, or the scale is another one: not met only if the suite says `fail`. `error` where fewer
    than half of the texts can be compared. A criterion that is new has no verdict. Whatever a drift case allows, where
    people rated the texts the agreement with them is compared.
    """
    runs = runs or compare_runs(baseline.table, result.table, seed=seed)
    rows = {row.column: row for row in reversed(runs.moved)}  # that of all systems comes first
    bounded = _bounded(suite)
    at = suite.lines.get("baseline", 1) if suite else 1
    had = columns(baseline).keys()
    texts = [(sample.item, sample.system) for sample in result.table.samples]
    kept = {name: rows.get(column.name) for name, column in columns(result).items() if name in had}
    found = {name: _found(result, baseline, name, texts, row) for name, row in kept.items()}
    few = {
        n: one[1].estimate.p
        for n, one in found.items()
        if n not in bounded and isinstance(one, tuple) and one[1].unit == "draw"
    }
    moves = {name: row.adjusted for name, row in kept.items() if row} | {**dict.fromkeys(few), **_adjusted(few)}
    rated = [name for name in found if any(name in sample.human for sample in result.table.samples)]
    trusts = {n: one for n in rated if (one := trust(result, baseline, n, criteria=len(rated), seed=seed))}
    turns = _adjusted({name: one.estimate.p for name, one in trusts.items()})
    verdicts = {name: _verdict(name, at, one, moves.get(name)) for name, one in found.items()}
    for name in rated:
        if isinstance(found[name], tuple) and (one := trusts.get(name)):
            told = verdict(name, at, one, turns.get(name), verdicts[name].found)
            if told.status != "undecided" or verdicts[name].status != "failed":
                verdicts[name] = told
        elif name in bounded and isinstance(found[name], tuple):
            verdicts[name] = untold(name, at, f"scores {verdicts[name].found}")
    for name in bounded - {*rated}:
        verdicts.pop(name, None)
    strict = suite is not None and suite.undecided == "fail"
    return [replace(v, met=not strict) if v.status == "undecided" else v for v in verdicts.values()]


def _bounded(suite: Suite | None) -> set[str]:
    """The criteria of which a drift case says how far the mean over all texts may move."""
    found = set()
    for case in suite.cases if suite else ():
        over = case.expected if not (case.items or case.systems or case.texts) else None
        if isinstance(over, Drift) and (over.max_shift is not None or over.max_drop is not None):
            found.add(named(case.criterion))
    return found


def _adjusted(p: Mapping[str, float | None]) -> dict[str, float]:
    """After Holm over the criteria that have a test."""
    tested = {name: one for name, one in p.items() if one is not None}
    return dict(zip(tested, holm([*tested.values()]), strict=True))


def _found(
    result: Result, baseline: Result, criterion: str, texts: Sequence[Text], row: Moved | None
) -> _Found | NoScore:
    """The mean difference, or why there is none."""
    try:
        both = beside(baseline, Scored.of(result, criterion, {item for item, _ in texts}), criterion, texts)
    except NoScore as error:
        return error
    items = both.items()
    if row is None or len(items) < LEAST:
        return both, mean(items, 0.0)[0]
    return both, Mean(row.estimate, float(values(items).std(ddof=1)), "item", items=len(items))


def _verdict(criterion: str, at: int, found: _Found | NoScore, p: float | None) -> Verdict:
    title = f"{criterion} against the baseline"
    if isinstance(found, NoScore):
        unlike: Status = "undecided" if isinstance(found, Rescaled) else "error"
        return Verdict(title, at, "baseline", criterion, unlike, False, _EXPECTED, "no comparison", found.message)
    both, move = found
    column = both.after.column
    status, said = _said(both, move, p, -1 if column.better == "lower" else 1)
    decimal, alike = places(column), move.alike if move.estimate.value else ""
    return Verdict(
        title,
        at,
        "baseline",
        criterion,
        status,
        status != "failed",
        _EXPECTED,
        change(move.estimate, decimal),
        joined(said, alike, both.some),
        estimate=move.estimate,
        before=number(both.mean_before(), decimal),
    )


def _said(both: Beside, move: Mean, p: float | None, sign: int) -> tuple[Status, str]:
    """Without a test, as of probabilities that were all seen, a move counts where likeliest labels flipped."""
    e, changed = move.estimate, both.changed()
    if not e.value and e.low == e.high and not (changed and move.few):
        return "passed", f"mean the same; {changed}" if changed else "the same"
    few = move.unit == "draw" and p is None
    if move.side and (p is None or p < ALPHA) and (not few or "flipped" in changed) and not move.few:
        tested = "" if p is None else f" ({chance(p)})"
        return ("passed", f"better{tested}") if move.side == sign else ("failed", f"worse{tested}")
    if move.few:
        return "undecided", joined(move.few, changed)
    if few:
        return "undecided", joined(f"no test on fewer than {LEAST} items", changed)
    return "passed", "not told apart" + move.takes
