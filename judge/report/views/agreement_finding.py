"""The sentences on how well judges agree with people, each with the condition for its truth.

`verdict` decides what the data support for a judge on a criterion; `finding` and
`criterion_sentences` write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from judge.core.format import first_names, format_interval, listed, number
from judge.core.records import Estimate
from judge.report.format import column_title
from judge.report.views.columns import change_text
from judge.stats.coefficients import Level
from judge.stats.correlation import INTERVAL_ITEMS, INTERVAL_ITEMS_OF_DIFFERENCES
from judge.stats.human_agreement import Rated, Row

_PLACES = 2
"""The decimals of correlations and their differences."""
_TESTED_PLACES = 3
"""The decimals by which an interval is on a side of 0."""
_MAX_LINES = 3  # criteria of the finding
_MAX_NAMED = 3  # criteria or baselines in a sentence
PANELS = ("panel mean", "panel median", "panel majority")


class Side(Enum):
    """The side of 0 on which an interval lies, by its rounded ends: [0.000, 0.147] holds 0."""

    BELOW = "below"
    HOLDS_ZERO = "holds zero"
    ABOVE = "above"
    EQUAL = "equal"
    """A difference that is 0 in every item. It has no interval."""
    UNTESTED = "untested"
    """There is no interval."""


class Verdict(Enum):
    """The conclusion from a judge's correlation and from its differences to the baselines."""

    BEST = "above 0, and significantly better than every baseline"
    NOT_BEST = "above 0, and not significantly better than every baseline"
    WORSE = "above 0, and significantly worse than a baseline"
    ALONE = "above 0, and compared with no baseline"
    CHANCE = "holds 0"
    AGAINST = "below 0"
    UNTESTED = "a correlation without an interval"
    UNKNOWN = "no correlation"


@dataclass(frozen=True, slots=True)
class Lead:
    """The Spearman of a judge minus that of the baseline or other judge with this name."""

    name: str
    difference: Estimate
    level: Level

    @property
    def side(self) -> Side:
        # Only at the level within-items, `n` counts the items, and each has its own difference. If
        # there are enough of them and still no interval, the differences do not vary.
        difference = self.difference
        if self.level == "within-items" and difference.low is None:
            enough = difference.n >= INTERVAL_ITEMS_OF_DIFFERENCES[self.level]
            return Side.EQUAL if enough and not difference.value else Side.UNTESTED
        return side(difference)


def side(estimate: Estimate) -> Side:
    """Return on which side of 0 an estimate's interval lies."""
    if estimate.low is None or estimate.high is None:
        return Side.UNTESTED
    if round(estimate.low, _TESTED_PLACES) > 0:
        return Side.ABOVE
    if round(estimate.high, _TESTED_PLACES) < 0:
        return Side.BELOW
    return Side.HOLDS_ZERO


def places(estimate: Estimate | None) -> int:
    """Return the decimals of a correlation, a difference of two or a coefficient of agreement.

    An interval that excludes 0 has more of them if it would seem to reach 0 with fewer.
    """
    if estimate is None or side(estimate) not in (Side.ABOVE, Side.BELOW):
        return _PLACES
    ends = (estimate.low or 0.0, estimate.high or 0.0)
    seems_to_reach_zero = any(round(end, _PLACES) == 0.0 for end in ends)
    return _TESTED_PLACES if seems_to_reach_zero else _PLACES


def spearman(row: Row | None, level: Level) -> Estimate | None:
    """Return a row's Spearman with people's ratings, None if it is undefined."""
    return row.correlation.estimates.get((level, "spearman")) if row else None


def usable_level(rated: Rated, level: Level) -> Level:
    """Return the level, or "all-texts" if only that has values."""
    candidates: tuple[Level, ...] = (level, "all-texts")
    for candidate in candidates:
        correlation = (candidate, "spearman")
        if any(correlation in row.correlation.estimates for row in rated.rows):
            return candidate
    return level


def usual_level(criteria: Sequence[Rated]) -> Level:
    """Return the level that a report on these criteria shows unless another one is requested."""
    levels = {rated.usual_level for rated in criteria}
    if not levels or "within-items" in levels:
        return "within-items"
    return "all-texts"


# What is compared


def leads_over_baselines(rated: Rated, judge: str, level: Level) -> list[Lead]:
    """Return a judge's leads over the baselines, each in its better direction.

    There are none between systems' means: without an interval, they support no comparison.
    """
    if level == "systems":
        return []
    leads = []
    for row in rated.baselines:
        key = (judge, row.name, level)
        baseline_name = column_title(row.name)
        difference = rated.differences.get(key)
        if key in rated.reversed:
            baseline_name = reversed_name(baseline_name)
            difference = rated.reversed[key]
        if difference is not None:
            leads.append(Lead(baseline_name, difference, level))
    return leads


def reversed_name(baseline_name: str) -> str:
    """Name a baseline that counts with the reverse sign."""
    return f"{baseline_name} reversed"


def not_compared(rated: Rated, level: Level) -> list[str]:
    """Return the baselines that have a correlation, but for too few items to be compared."""
    return [
        column_title(row.name)
        for row in rated.baselines
        if level in row.few and spearman(row, level)
    ]


def leads_over_judges(rated: Rated, judge: str, level: Level) -> list[Lead]:
    """Return a judge's leads over the other judges, with simultaneous intervals.

    There are none between systems' means, as over baselines.
    """
    if level == "systems":
        return []
    leads = []
    for pair in rated.versus:
        if pair.level != level:
            continue
        if judge == pair.judge:
            leads.append(Lead(pair.other, pair.spearman, level))
        elif judge == pair.other:
            reversed_difference = pair.spearman.times(-1)
            leads.append(Lead(pair.judge, reversed_difference, level))
    return leads


def _row_of_judge(rated: Rated, judge: str) -> Row | None:
    return next((row for row in rated.judges if row.name == judge), None)


def verdict(rated: Rated, judge: str, level: Level) -> Verdict:
    """Return what the data support for a judge's agreement with people."""
    correlation = spearman(_row_of_judge(rated, judge), level)
    if correlation is None:
        return Verdict.UNKNOWN
    side_of_judge = side(correlation)
    if side_of_judge is Side.UNTESTED:
        return Verdict.UNTESTED
    if side_of_judge is Side.BELOW:
        return Verdict.AGAINST
    if side_of_judge is not Side.ABOVE:
        return Verdict.CHANCE
    sides = {lead.side for lead in leads_over_baselines(rated, judge, level)}
    if not sides:
        return Verdict.ALONE
    if sides == {Side.ABOVE}:
        return Verdict.BEST
    return Verdict.WORSE if Side.BELOW in sides else Verdict.NOT_BEST


def best_judge(criteria: Sequence[Rated], level: Level) -> str:
    """Return the panel, or else the judge with the highest mean correlation.

    A mean over fewer criteria says less, so only judges of the most criteria are compared.
    """
    values: dict[str, list[float]] = {}
    for rated in criteria:
        for row in rated.judges:
            estimate = spearman(row, usable_level(rated, level))
            # An undefined correlation counts as the worst one, so that it does not raise a mean.
            value = -1.0 if estimate is None else estimate.value
            values.setdefault(row.name, []).append(value)
    for judge_name in values:
        if judge_name in PANELS:
            return judge_name
    most_criteria = max(map(len, values.values()))
    means = {
        judge_name: fmean(correlations)
        for judge_name, correlations in values.items()
        if len(correlations) == most_criteria
    }
    return max(means, key=means.__getitem__)


# The finding


def finding(criteria: Sequence[Rated], best: str, level: Level) -> Iterator[str]:
    """Yield the verdict on the best judge, then a line for each criterion with more to say."""
    verdicts: dict[str, Verdict] = {}
    for rated in criteria:
        usable = usable_level(rated, level)
        verdicts[rated.criterion] = verdict(rated, best, usable)
    yield _headline(criteria, verdicts, best, level)

    def urgency(rated: Rated) -> int:
        verdict_of_criterion = verdicts[rated.criterion]
        if verdict_of_criterion in _MOST_URGENT_FIRST:
            return _MOST_URGENT_FIRST.index(verdict_of_criterion)
        return len(_MOST_URGENT_FIRST)

    lines = []
    explained = _explained_in_headline(criteria, verdicts, level)
    for rated in sorted(criteria, key=urgency):
        if rated.criterion in explained:
            continue
        usable = usable_level(rated, level)
        texts = _line(rated, verdicts[rated.criterion], best, usable)
        if texts:
            line = "; ".join(texts)
            lines.append(f"{rated.criterion}: {line}.")
    yield from lines[:_MAX_LINES]
    not_first = (Verdict.NOT_BEST, Verdict.WORSE)
    unbeaten = [rated for rated in criteria if verdicts[rated.criterion] in not_first]
    if unbeaten and len(lines) > _MAX_LINES:
        baselines = _not_beaten(unbeaten, best, level)
        yield f"{best} does not significantly beat {baselines}."


_MOST_URGENT_FIRST = (
    Verdict.AGAINST,
    Verdict.CHANCE,
    Verdict.WORSE,
    Verdict.UNTESTED,
    Verdict.NOT_BEST,
)
"""The order of the lines. Their number is limited, so a reader must see the worst verdicts."""


def _headline(
    criteria: Sequence[Rated],
    verdicts: Mapping[str, Verdict],
    best: str,
    level: Level,
) -> str:
    """Write the verdict on the best judge in one sentence.

    It has only the criteria with the verdict BEST, if there are any.
    """
    groups: dict[Verdict, list[Rated]] = {}
    for rated in criteria:
        groups.setdefault(verdicts[rated.criterion], []).append(rated)
    groups.pop(Verdict.UNKNOWN, None)
    if not groups:
        return f"{best} could not be compared with people"
    stated = [group for group in _CLAUSES if group in groups]
    if Verdict.BEST in groups:
        stated = [Verdict.BEST]
    clauses = []
    for group in stated:
        clause = _clause(group, groups[group], len(criteria), best, level)
        clauses.append(clause)
    headline = f"{best} {listed(clauses)}"
    if _explained_in_headline(criteria, verdicts, level):
        # The clause on untested criteria is the last one.
        headline += f": {_untested_reason('systems')}"
    return headline


def _explained_in_headline(
    criteria: Sequence[Rated],
    verdicts: Mapping[str, Verdict],
    level: Level,
) -> list[str]:
    """Return the criteria for which the headline says why they could not be tested.

    These are all untested ones if they all compare systems' means. A headline with the verdict BEST
    has no other criteria.
    """
    if Verdict.BEST in verdicts.values():
        return []
    untested = [
        rated for rated in criteria if verdicts[rated.criterion] is Verdict.UNTESTED
    ]
    if any(usable_level(rated, level) != "systems" for rated in untested):
        return []
    return [rated.criterion for rated in untested]


_CLAUSES = {
    Verdict.BEST: "agrees with people better than every baseline",
    Verdict.AGAINST: "ranks against people",
    Verdict.CHANCE: "is not significantly better than chance",
    Verdict.WORSE: "agrees with people less than a baseline",
    Verdict.NOT_BEST: "is not significantly better than every baseline",
    Verdict.ALONE: "agrees with people better than chance",
    Verdict.UNTESTED: "could not be tested against chance",
}
"""The clause of a headline for each verdict, in the order of the headline."""
_NEGATED = (Verdict.CHANCE, Verdict.NOT_BEST, Verdict.UNTESTED)


def _clause(
    group: Verdict,
    rated: Sequence[Rated],
    total: int,
    best: str,
    level: Level,
) -> str:
    """Write what is true of a judge on these criteria of `total`."""
    words = _CLAUSES[group]
    baselines = _compared_baselines(rated, best, level)
    if len(baselines) == 1:
        # "Every" would promise more than one comparison.
        only_baseline = f"{baselines.pop()}, the only baseline,"
        words = words.replace("every baseline", only_baseline)
    elif group is Verdict.BEST:
        for criterion in rated:
            if not_compared(criterion, usable_level(criterion, level)):
                words = "agrees with people better than every compared baseline"
    if total == 1:
        words += f" on {rated[0].criterion}"
    elif len(rated) == total:
        quantifier = "any of" if group in _NEGATED else "all"
        words += f" on {quantifier} {total} criteria"
    else:
        words += f" on {len(rated)} of {total} criteria"
    return words


def _compared_baselines(
    criteria: Sequence[Rated], judge: str, level: Level
) -> set[str]:
    """Return the names of the baselines that a judge is compared with on these criteria."""
    names = set()
    for rated in criteria:
        usable = usable_level(rated, level)
        for row in rated.baselines:
            if (judge, row.name, usable) in rated.differences:
                names.add(column_title(row.name))
    return names


def _not_beaten(criteria: Sequence[Rated], best: str, level: Level) -> str:
    """List the baselines that a judge does not beat, those on most criteria first."""
    criteria_by_baseline: dict[str, list[str]] = {}
    for rated in criteria:
        for lead in leads_over_baselines(rated, best, usable_level(rated, level)):
            if lead.side is not Side.ABOVE:
                criteria_by_baseline.setdefault(lead.name, []).append(rated.criterion)
    most_first = sorted(
        criteria_by_baseline, key=lambda name: -len(criteria_by_baseline[name])
    )
    if len(criteria) == 1:
        return first_names(most_first, _MAX_NAMED)
    descriptions = []
    for baseline_name in most_first:
        criteria_names = first_names(criteria_by_baseline[baseline_name], _MAX_NAMED)
        descriptions.append(f"{baseline_name} ({criteria_names})")
    return first_names(descriptions, _MAX_NAMED)


def _line(
    rated: Rated,
    reached: Verdict,
    best: str,
    level: Level,
) -> list[str]:
    """Say why the best judge has no better verdict on a criterion than the one it reached.

    Also compare it with other judges.
    """
    texts = []
    correlation = spearman(_row_of_judge(rated, best), level)
    if correlation is not None and reached in _WITHOUT_BASELINE:
        texts.append(correlation_text(correlation, reached, level))
    if correlation is not None and reached is Verdict.ALONE:
        size = change_text(correlation, places(correlation)).removeprefix("+")
        texts.append(f"Spearman {size}; no baseline could be compared")
    if reached is Verdict.UNKNOWN:
        reason = unknown_reason(rated, best, level)
        if reason:
            texts.append(f"no verdict: {reason}")
    leads = []
    if reached in (Verdict.NOT_BEST, Verdict.WORSE):
        over_baselines = leads_over_baselines(rated, best, level)
        leads = [lead for lead in over_baselines if lead.side is not Side.ABOVE]
    leads += leads_over_judges(rated, best, level)
    if leads:
        texts.append(leads_text(leads))
    return texts


def unknown_reason(rated: Rated, judge: str, level: Level) -> str:
    """Return why a judge has no correlation, or none that can be compared."""
    row = _row_of_judge(rated, judge)
    if row is None:
        return "it did not score this criterion"
    return row.correlation.lacking.get(level, "")


# The sentences on one criterion


_WITHOUT_BASELINE = (Verdict.AGAINST, Verdict.CHANCE, Verdict.UNTESTED)
"""The verdicts that need no baseline."""


def correlation_text(correlation: Estimate, reached: Verdict, level: Level) -> str:
    """Say that a correlation is below 0, does not differ significantly from 0, or is not tested."""
    decimals = places(correlation)
    value = number(correlation.value, decimals)
    if reached is Verdict.UNTESTED:
        reason = _untested_reason(level)
        return f"not tested against chance ({value}): {reason}"
    words = "not significantly better than chance"
    if reached is Verdict.AGAINST:
        words = "ranks against people"
    interval = format_interval(correlation.low, correlation.high, decimals)
    return f"{words} ({value} {interval})"


def _untested_reason(level: Level) -> str:
    """Say why a correlation has no interval."""
    if level == "systems":
        return "correlations of systems' means have no interval"
    return f"an interval needs {INTERVAL_ITEMS[level]} items"


def criterion_sentences(rated: Rated, level: Level) -> Iterator[str]:
    """Compare each judge with chance and the baselines, and the best one with the other judges."""
    if not rated.judges:
        yield f"No judge scored {rated.criterion}; only baselines are shown."
        return
    if level == "systems":  # the finding says that nothing is tested
        return
    values = []
    for row in rated.judges:
        correlation = spearman(row, level)
        # An undefined correlation counts as the worst one.
        value = correlation.value if correlation else -1.0
        values.append(value)
    best = rated.judges[values.index(max(values))].name
    for judge in rated.judges:
        if level not in judge.correlation.lacking:
            yield _sentence_on_judge(rated, judge, level)
        if judge.name != best:
            continue
        leads = leads_over_judges(rated, best, level)
        if leads:
            yield f"{best}: {leads_text(leads)}."


def _sentence_on_judge(rated: Rated, judge: Row, level: Level) -> str:
    """Compare a judge with chance and the baselines."""
    reached = verdict(rated, judge.name, level)
    correlation = spearman(judge, level)
    texts = []
    if correlation is not None and reached in _WITHOUT_BASELINE:
        texts.append(correlation_text(correlation, reached, level))
    leads = leads_over_baselines(rated, judge.name, level)
    if leads:
        texts.append(leads_text(leads))
    else:
        texts.append("could not be compared with a baseline")
    sentence = "; ".join(texts)
    return f"{judge.name}: {sentence}."


_LEADS_BY_SIDE = {
    Side.BELOW: "significantly worse than",
    Side.HOLDS_ZERO: "no significant difference from",
    Side.EQUAL: "in every item equal to",
    Side.ABOVE: "significantly better than",
    Side.UNTESTED: "not tested against",
}
"""The words for leads on each side, in the order of a sentence."""


def leads_text(leads: Iterable[Lead]) -> str:
    """Write leads by what their intervals support, with the intervals."""
    leads_by_side: dict[Side, list[str]] = {}
    reason = ""
    for lead in leads:
        if lead.side is Side.UNTESTED:
            n_items = INTERVAL_ITEMS_OF_DIFFERENCES[lead.level]
            reason = f"an interval needs {n_items} items"
        numbers = change_text(lead.difference, places(lead.difference))
        leads_by_side.setdefault(lead.side, []).append(f"{lead.name} ({numbers})")
    texts = []
    for lead_side, words in _LEADS_BY_SIDE.items():
        if lead_side in leads_by_side:
            leads_of_side = ", ".join(leads_by_side[lead_side])
            texts.append(f"{words} {leads_of_side}")
    if Side.UNTESTED in leads_by_side:
        texts[-1] += f": {reason}"  # untested leads come last
    return "; ".join(texts)
