"""Compare a criterion's scores, and their agreement with people, with those of a baseline run.

Only texts with a score in both runs count. `compare_with_baseline` gives a verdict for each criterion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judge.core.format import format_interval, format_p, number, plural, signed
from judge.core.records import Estimate
from judge.results.result import Result
from judge.stats.correlation import MIN_CORRELATION_ITEMS, UNITS, Level, change_in_agreement, usual_level
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
    criterion_name,
    ends,
    mean,
    values,
    would_take,
)
from judge.suite.expectations.agreement import PLACES
from judge.suite.expectations.context import Decision, display_name, joined, places, short
from judge.suite.records import Drift, Status, Suite, Verdict

_REMAKE = "make the baseline anew with --update-baseline"


class Rescaled(Undecidable):
    """A criterion whose scale is another one."""


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The scores before and after of the `texts` that have both; `scored_after` texts have one after."""

    before: CaseScores
    after: CaseScores
    texts: Sequence[Text]
    scored_after: int

    def items(self) -> list[Parts]:
        """The difference of each item, after less before, as a mean over its systems."""
        by_item: dict[str, list[Parts]] = {}
        for text in self.texts:
            sides = [(1, self.after.parts(*text)), (-1, self.before.parts(*text))]
            by_item.setdefault(text[0], []).append(
                [(sign * c, evidence) for sign, parts in sides for c, evidence in parts]
            )
        return [[(c / len(each), evidence) for parts in each for c, evidence in parts] for each in by_item.values()]

    @property
    def some(self) -> str:
        """`on 7 of 12 texts`, where it is not all of them."""
        return (
            ""
            if len(self.texts) == self.scored_after
            else f"on {len(self.texts):,} of {plural(self.scored_after, 'text')}"
        )

    def mean_before(self) -> float:
        """The mean of the items' means in the baseline."""
        by_item: dict[str, list[float]] = {}
        for text in self.texts:
            by_item.setdefault(text[0], []).extend(score.value for score in [self.before.score(*text)] if score)
        means = [sum(values) / len(values) for values in by_item.values()]
        return sum(means) / len(means)

    def changed(self) -> str:
        """`24 of 36 labels flipped`, or how many values moved where no label did; nothing where none moved."""
        try:
            flips, unit = len(self.flips()), "label"
        except Undecidable:
            flips, unit = 0, ""
        if flips:
            return f"{flips:,} of {plural(len(self.texts), unit)} flipped"
        both = [(self.before.score(*text), self.after.score(*text)) for text in self.texts]
        moved = sum(abs(old.value - new.value) > NEAR for old, new in both if old and new)
        return f"{moved:,} of {plural(len(both), 'score')} moved" if moved else ""

    def flips(self) -> list[Text]:
        """The texts whose likeliest label is another one. Raises Undecidable where scores are made of no labels."""
        tops = [
            (text, _likeliest(self.before.shares(*text)), _likeliest(self.after.shares(*text))) for text in self.texts
        ]
        if not all(before and after for _, before, after in tops):
            raise Undecidable("scores are made of no labels, and nothing can flip: limit the shift")
        return [text for text, before, after in tops if before != after]


def _likeliest(shares: Mapping[str, float]) -> str:
    return max(shares, key=shares.__getitem__) if shares else ""


def pair_runs(before: Result, after: CaseScores, criterion: str, texts: Sequence[Text]) -> PairedRuns:
    """Pair the texts that have a score in both runs.

    Raises Undecidable if the baseline lacks the criterion or has scores for fewer than half of the texts, Rescaled if
    its scale is another one.
    """
    try:
        scores_before = CaseScores.for_criterion(before, criterion, {item for item, _ in texts})
    except Undecidable:
        raise Undecidable(f"{display_name(criterion_name(criterion))} is not in the baseline: {_REMAKE}") from None
    old_scale, new_scale = (
        "open" if column.low is None or column.high is None else f"{short(column.low)} to {short(column.high)}"
        for column in (scores_before.column, after.column)
    )
    if old_scale != new_scale:
        raise Rescaled(f"its scale was {old_scale} and is {new_scale}: {_REMAKE}")
    scored = [text for text in texts if after.score(*text)]
    shared = [text for text in scored if scores_before.score(*text)]
    if not shared:
        raise Undecidable("no text has a score both here and in the baseline")
    if 2 * len(shared) < len(scored):
        raise Undecidable(
            f"only {len(shared):,} of {plural(len(scored), 'text')} scored here have a score there: {_REMAKE}"
        )
    return PairedRuns(scores_before, after, shared, len(scored))


def format_change(e: Estimate, places: int) -> str:
    """`+1.30 [1.00, 1.60]`."""
    return f"{signed(e.value, places)} {ends(e, places)}".rstrip()


_EXPECTED_AGREEMENT = "goes no worse with people"


@dataclass(frozen=True, slots=True)
class AgreementChange:
    """Spearman with people before and after, and the difference with its interval, at one level."""

    before: float
    after: float
    estimate: Estimate
    level: Level


def agreement_change(
    result: Result, baseline: Result, criterion: str, *, criteria: int = 1, seed: int = 0
) -> AgreementChange | None:
    """None where too few texts with a score in both runs are rated, or a coefficient is undefined.

    The interval is of a confidence of 1 − .05 / `criteria` (Bonferroni): where there is no p, it decides for each.
    """
    rated = [sample for sample in result.table.samples if criterion in sample.human]
    if len(rated) < MIN_CORRELATION_ITEMS:
        return None
    try:
        scores = [CaseScores.for_criterion(run, criterion, {s.item for s in rated}) for run in (baseline, result)]
    except Undecidable:
        return None
    old, new = (
        {(s.item, s.system): score.value for s in rated if (score := side.score(s.item, s.system))} for side in scores
    )
    level = usual_level(rated)
    shifts, _ = change_in_agreement(
        rated, criterion, old, new, levels=(level,), seed=seed, confidence=1 - ALPHA / criteria
    )
    shift = shifts.get(level)
    if shift is None or shift.change is None:
        return None
    return AgreementChange(shift.before.value, shift.after.value, shift.change, level)


def _agreement_verdict(criterion: str, line: int, agreement: AgreementChange, p: float | None, moved: str) -> Verdict:
    """Not met only if the scores correlate significantly worse with people; `moved` describes how the scores moved.

    `p` is after Holm. Without a test, as over all texts, the interval decides.
    """
    e = agreement.estimate
    excludes_zero = e.low is not None and e.high is not None and (e.low > 0 or e.high < 0)
    significant = p < ALPHA if p is not None else excludes_zero
    p_text = f" ({format_p(p)})" if p is not None else ""
    few = not significant and (e.n < FEWEST or e.low is None or e.high is None)
    status: Status = "failed" if significant and e.value < 0 else "undecided" if few else "passed"
    if significant:
        remark = f"agrees {'better' if e.value > 0 else 'worse'} with people{p_text}"
    elif few:
        remark = f"too few {UNITS[agreement.level]}s to tell: {FEWEST} or more"
    else:
        remark = f"agreement not told apart{would_take(items_needed(e), e.n, UNITS[agreement.level])}"
    change = f"{signed(e.value, PLACES)} {format_interval(e.low, e.high, PLACES)}"
    return Verdict(
        f"{criterion} against the baseline",
        line,
        "baseline",
        criterion,
        status,
        status != "failed",
        _EXPECTED_AGREEMENT,
        f"spearman {number(agreement.after, PLACES)}, {change}".rstrip(),
        f"{remark}; scores {moved}",
        estimate=e,
        before=f"spearman {number(agreement.before, PLACES)}",
    )


def _unchecked_agreement(criterion: str, line: int, moved: str) -> Verdict:
    """The verdict if people rated texts, but too few, or all scores are alike, so that there is no coefficient."""
    return Verdict(
        f"{criterion} against the baseline",
        line,
        "baseline",
        criterion,
        "undecided",
        True,
        _EXPECTED_AGREEMENT,
        "no coefficient",
        f"agreement with people not checked: too few rated texts, or scores all alike; {moved}",
    )


_EXPECTED_SCORES = "not worse"


@dataclass(frozen=True, slots=True)
class _MeanChange:
    """A criterion's scores in both runs, and the test of their mean difference, after less before."""

    runs: PairedRuns
    test: MeanTest


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
    first_rows = {row.column: row for row in reversed(runs.moved)}  # that of all systems comes first
    bounded = _bounded_criteria(suite)
    line = suite.lines.get("baseline", 1) if suite else 1
    in_baseline = columns(baseline).keys()
    texts = [(sample.item, sample.system) for sample in result.table.samples]
    rows = {name: first_rows.get(column.name) for name, column in columns(result).items() if name in in_baseline}
    changes = {name: _mean_change(result, baseline, name, texts, row) for name, row in rows.items()}
    compared = {name: change for name, change in changes.items() if isinstance(change, _MeanChange)}
    # Too few items for the test of `runs`: these have that of their draws, if any, corrected among themselves.
    over_draws = {
        name: change.test.estimate.p
        for name, change in compared.items()
        if name not in bounded and change.test.unit == "draw"
    }
    p_values = {name: row.adjusted for name, row in rows.items() if row}
    p_values |= {**dict.fromkeys(over_draws), **_adjusted(over_draws)}
    rated = [name for name in changes if any(name in sample.human for sample in result.table.samples)]
    agreements = {
        name: agreement
        for name in rated
        if (agreement := agreement_change(result, baseline, name, criteria=len(rated), seed=seed))
    }
    agreement_p = _adjusted({name: agreement.estimate.p for name, agreement in agreements.items()})
    verdicts = {name: _score_verdict(name, line, change, p_values.get(name)) for name, change in changes.items()}
    for name in rated:
        if name in compared and (agreement := agreements.get(name)):
            verdict = _agreement_verdict(name, line, agreement, agreement_p.get(name), verdicts[name].found)
            if verdict.status != "undecided" or verdicts[name].status != "failed":
                verdicts[name] = verdict
        elif name in bounded and name in compared:
            verdicts[name] = _unchecked_agreement(name, line, f"scores {verdicts[name].found}")
    for name in bounded - {*rated}:
        verdicts.pop(name, None)
    strict = suite is not None and suite.undecided == "fail"
    return [replace(v, met=not strict) if v.status == "undecided" else v for v in verdicts.values()]


def _bounded_criteria(suite: Suite | None) -> set[str]:
    """The criteria for which a drift case limits how far the mean over all texts may move."""
    bounded = set()
    for case in suite.cases if suite else ():
        over = case.expected if not (case.items or case.systems or case.texts) else None
        if isinstance(over, Drift) and (over.max_shift is not None or over.max_drop is not None):
            bounded.add(criterion_name(case.criterion))
    return bounded


def _adjusted(p: Mapping[str, float | None]) -> dict[str, float]:
    """After Holm over the criteria that have a test."""
    tested = {name: p_value for name, p_value in p.items() if p_value is not None}
    return dict(zip(tested, holm([*tested.values()]), strict=True))


def _mean_change(
    result: Result, baseline: Result, criterion: str, texts: Sequence[Text], row: Moved | None
) -> _MeanChange | Undecidable:
    """The mean difference, or why there is none."""
    try:
        after = CaseScores.for_criterion(result, criterion, {item for item, _ in texts})
        runs = pair_runs(baseline, after, criterion, texts)
    except Undecidable as error:
        return error
    items = runs.items()
    if row is None or len(items) < MIN_ITEMS:
        return _MeanChange(runs, mean(items, 0.0)[0])
    test = MeanTest(row.estimate, float(values(items).std(ddof=1)), "item", items=len(items))
    return _MeanChange(runs, test)


def _score_verdict(criterion: str, line: int, change: _MeanChange | Undecidable, p: float | None) -> Verdict:
    title = f"{criterion} against the baseline"
    if isinstance(change, Undecidable):
        status: Status = "undecided" if isinstance(change, Rescaled) else "error"
        return Verdict(
            title, line, "baseline", criterion, status, False, _EXPECTED_SCORES, "no comparison", change.message
        )
    runs, test = change.runs, change.test
    column = runs.after.column
    decision = _decide_change(runs, test, p, -1 if column.better == "lower" else 1)
    decimals, alike = places(column), test.alike if test.estimate.value else ""
    return Verdict(
        title,
        line,
        "baseline",
        criterion,
        decision.status,
        decision.status != "failed",
        _EXPECTED_SCORES,
        format_change(test.estimate, decimals),
        joined(decision.remark, alike, runs.some),
        estimate=test.estimate,
        before=number(runs.mean_before(), decimals),
    )


def _decide_change(runs: PairedRuns, test: MeanTest, p: float | None, sign: int) -> Decision:
    """Without a test, as of probabilities that were all seen, a move counts where likeliest labels flipped."""
    e, changed = test.estimate, runs.changed()
    if not e.value and e.low == e.high and not (changed and test.too_few_reason):
        return Decision("passed", f"mean the same; {changed}" if changed else "the same")
    few = test.unit == "draw" and p is None
    if test.direction and (p is None or p < ALPHA) and (not few or "flipped" in changed) and not test.too_few_reason:
        tested = "" if p is None else f" ({format_p(p)})"
        better = test.direction == sign
        return Decision("passed", f"better{tested}") if better else Decision("failed", f"worse{tested}")
    if test.too_few_reason:
        return Decision("undecided", joined(test.too_few_reason, changed))
    if few:
        return Decision("undecided", joined(f"no test on fewer than {MIN_ITEMS} items", changed))
    return Decision("passed", "not told apart" + test.items_needed)
