"""One criterion in two runs, on the texts that have a score in both.

Whether a criterion's scores go with people's ratings worse than those of a baseline run.

Whether a criterion's scores are worse than in a baseline run, or go worse with people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from judge.core.messages import format_interval, format_p, number, plural, signed
from judge.core.records import Column, Estimate, Sample
from judge.results.result import Result
from judge.stats.correlation import MIN_CORRELATION_ITEMS, UNITS, Level, Values, change_in_agreement, usual_level
from judge.stats.paired_differences import holm
from judge.stats.power import ALPHA, MIN_ITEMS, items_needed
from judge.stats.power import MIN_ITEMS as FEWEST
from judge.stats.run_differences import Moved, Runs, compare_runs
from judge.suite.evidence import (
    NEAR,
    CaseScores,
    MeanTest,
    Parts,
    Text,
    Undecidable,
    columns,
    ends,
    mean,
    named,
    values,
    would_take,
)
from judge.suite.expectations.agreement import PLACES
from judge.suite.expectations.context import display_name, joined, places, short
from judge.suite.records import Drift, Status, Suite, Verdict

_ANEW = "make the baseline anew with --update-baseline"


class Rescaled(Undecidable):
    """A criterion whose scale is another one."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The scores before and after of the `texts` that have both; `of` so many have one after."""

    before: CaseScores
    after: CaseScores
    texts: Sequence[Text]
    of: int

    def items(self) -> list[Parts]:
        """Of each item the difference, after less before, mean over its systems."""
        by_item: dict[str, list[Parts]] = {}
        for text in self.texts:
            sides = [(1, self.after.parts(*text)), (-1, self.before.parts(*text))]
            by_item.setdefault(text[0], []).append([(sign * c, one) for sign, parts in sides for c, one in parts])
        return [[(c / len(each), one) for parts in each for c, one in parts] for each in by_item.values()]

    @property
    def some(self) -> str:
        """`on 7 of 12 texts`, where it is not all of them."""
        return "" if len(self.texts) == self.of else f"on {len(self.texts):,} of {plural(self.of, 'text')}"

    def mean_before(self) -> float:
        """Of the items' means."""
        by_item: dict[str, list[float]] = {}
        for text in self.texts:
            by_item.setdefault(text[0], []).extend(score.value for score in [self.before.score(*text)] if score)
        means = [sum(values) / len(values) for values in by_item.values()]
        return sum(means) / len(means)

    def changed(self) -> str:
        """`24 of 36 labels flipped`, or how many values moved where no label did; nothing where none moved."""
        try:
            flips, what = len(self.flips()), "label"
        except Undecidable:
            flips, what = 0, ""
        if flips:
            return f"{flips:,} of {plural(len(self.texts), what)} flipped"
        both = [(self.before.score(*text), self.after.score(*text)) for text in self.texts]
        moved = sum(abs(had.value - has.value) > NEAR for had, has in both if had and has)
        return f"{moved:,} of {plural(len(both), 'score')} moved" if moved else ""

    def flips(self) -> list[Text]:
        """The texts whose likeliest label is another one. Raises NoScore where scores are made of no labels."""
        tops = [(text, _top(self.before.shares(*text)), _top(self.after.shares(*text))) for text in self.texts]
        if not all(before and after for _, before, after in tops):
            raise Undecidable("scores are made of no labels, and nothing can flip: limit the shift")
        return [text for text, before, after in tops if before != after]


def _top(shares: Mapping[str, float]) -> str:
    return max(shares, key=shares.__getitem__) if shares else ""


def beside(before: Result, after: CaseScores, criterion: str, texts: Sequence[Text]) -> Beside:
    """Raises NoScore for a criterion that the baseline has not, and where it has fewer than half of the texts scored.

    Rescaled for one that it has on another scale.
    """
    try:
        had = CaseScores.of(before, criterion, {item for item, _ in texts})
    except Undecidable:
        raise Undecidable(f"{display_name(named(criterion))} is not in the baseline: {_ANEW}") from None
    was, now = (_scale(column) for column in (had.column, after.column))
    if was != now:
        raise Rescaled(f"its scale was {was} and is {now}: {_ANEW}")
    here = [text for text in texts if after.score(*text)]
    shared = [text for text in here if had.score(*text)]
    if not shared:
        raise Undecidable("no text has a score both here and in the baseline")
    if 2 * len(shared) < len(here):
        raise Undecidable(
            f"only {len(shared):,} of {plural(len(here), 'text')} scored here have a score there: {_ANEW}"
        )
    return Beside(had, after, shared, len(here))


def _scale(column: Column) -> str:
    if column.low is None or column.high is None:
        return "open"
    return f"{short(column.low)} to {short(column.high)}"


def change(e: Estimate, places: int) -> str:
    """`+1.30 [1.00, 1.60]`."""
    return f"{signed(e.value, places)} {ends(e, places)}".rstrip()


_EXPECTED = "goes no worse with people"


class Trust(NamedTuple):
    """Spearman with people before and after, and the difference with its interval, at one level."""

    before: float
    after: float
    estimate: Estimate
    level: Level


def trust(result: Result, baseline: Result, criterion: str, *, criteria: int = 1, seed: int = 0) -> Trust | None:
    """None where too few texts with a score in both runs are rated, or a coefficient is undefined.

    The interval is of a confidence of 1 − .05 / `criteria` (Bonferroni): where there is no p, it decides for each.
    """
    rated = [sample for sample in result.table.samples if criterion in sample.human]
    if len(rated) < MIN_CORRELATION_ITEMS:
        return None
    try:
        old, new = (_values(one, criterion, rated) for one in (baseline, result))
    except Undecidable:
        return None
    level = usual_level(rated)
    found = change_in_agreement(
        rated, criterion, old, new, levels=(level,), seed=seed, confidence=1 - ALPHA / criteria
    )[0].get(level)
    if found is None or found.change is None:
        return None
    return Trust(found.before.value, found.after.value, found.change, level)


def _values(result: Result, criterion: str, rated: list[Sample]) -> Values:
    scored = CaseScores.of(result, criterion, {sample.item for sample in rated})
    return {(s.item, s.system): one.value for s in rated if (one := scored.score(s.item, s.system))}


def verdict(criterion: str, line: int, found: Trust, p: float | None, moved: str) -> Verdict:
    """Not met only where the scores are told to go worse with people; `moved` says what became of the scores.

    `p` is after Holm. Without a test, as over all texts, the interval decides.
    """
    e = found.estimate
    apart = e.low is not None and e.high is not None and (e.low > 0 or e.high < 0)
    told = p < ALPHA if p is not None else apart
    how = f" ({format_p(p)})" if p is not None else ""
    few = not told and (e.n < FEWEST or e.low is None or e.high is None)
    status: Status = "failed" if told and e.value < 0 else "undecided" if few else "passed"
    if told:
        said = f"agrees {'better' if e.value > 0 else 'worse'} with people{how}"
    elif few:
        said = f"too few {UNITS[found.level]}s to tell: {FEWEST} or more"
    else:
        said = f"agreement not told apart{would_take(items_needed(e), e.n, UNITS[found.level])}"
    return Verdict(
        f"{criterion} against the baseline",
        line,
        "baseline",
        criterion,
        status,
        status != "failed",
        _EXPECTED,
        f"spearman {number(found.after, PLACES)}, {signed(e.value, PLACES)} {format_interval(e.low, e.high, PLACES)}".rstrip(),
        f"{said}; scores {moved}",
        estimate=e,
        before=f"spearman {number(found.before, PLACES)}",
    )


def untold(criterion: str, line: int, moved: str) -> Verdict:
    """What is said where people rated the texts, and too few, or all scores alike, give no coefficient."""
    return Verdict(
        f"{criterion} against the baseline",
        line,
        "baseline",
        criterion,
        "undecided",
        True,
        _EXPECTED,
        "no coefficient",
        f"agreement with people not checked: too few rated texts, or scores all alike; {moved}",
    )


_EXPECTED_of_baseline = "not worse"
_Found = tuple[Beside, MeanTest]


def compare_with_baseline(
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
) -> _Found | Undecidable:
    """The mean difference, or why there is none."""
    try:
        both = beside(baseline, CaseScores.of(result, criterion, {item for item, _ in texts}), criterion, texts)
    except Undecidable as error:
        return error
    items = both.items()
    if row is None or len(items) < MIN_ITEMS:
        return both, mean(items, 0.0)[0]
    return both, MeanTest(row.estimate, float(values(items).std(ddof=1)), "item", items=len(items))


def _verdict(criterion: str, at: int, found: _Found | Undecidable, p: float | None) -> Verdict:
    title = f"{criterion} against the baseline"
    if isinstance(found, Undecidable):
        unlike: Status = "undecided" if isinstance(found, Rescaled) else "error"
        return Verdict(
            title, at, "baseline", criterion, unlike, False, _EXPECTED_of_baseline, "no comparison", found.message
        )
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
        _EXPECTED_of_baseline,
        change(move.estimate, decimal),
        joined(said, alike, both.some),
        estimate=move.estimate,
        before=number(both.mean_before(), decimal),
    )


def _said(both: Beside, move: MeanTest, p: float | None, sign: int) -> tuple[Status, str]:
    """Without a test, as of probabilities that were all seen, a move counts where likeliest labels flipped."""
    e, changed = move.estimate, both.changed()
    if not e.value and e.low == e.high and not (changed and move.too_few_reason):
        return "passed", f"mean the same; {changed}" if changed else "the same"
    few = move.unit == "draw" and p is None
    if move.direction and (p is None or p < ALPHA) and (not few or "flipped" in changed) and not move.too_few_reason:
        tested = "" if p is None else f" ({format_p(p)})"
        return ("passed", f"better{tested}") if move.direction == sign else ("failed", f"worse{tested}")
    if move.too_few_reason:
        return "undecided", joined(move.too_few_reason, changed)
    if few:
        return "undecided", joined(f"no test on fewer than {MIN_ITEMS} items", changed)
    return "passed", "not told apart" + move.items_needed
