"""Whether a criterion's scores go with people's ratings worse than those of a baseline run."""

from __future__ import annotations

from typing import NamedTuple

from judge.core.records import Estimate, Sample
from judge.report.format import chance, number, signed, span
from judge.results.result import Result
from judge.stats.correlation import LEAST, UNITS, Level, Values, shifted, usual_level
from judge.stats.power import ALPHA, takes
from judge.stats.power import LEAST as FEWEST
from judge.suite.expectations.agreement import PLACES
from judge.suite.means import would_take
from judge.suite.records import Status, Verdict
from judge.suite.scored import NoScore, Scored

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
    if len(rated) < LEAST:
        return None
    try:
        old, new = (_values(one, criterion, rated) for one in (baseline, result))
    except NoScore:
        return None
    level = usual_level(rated)
    found = shifted(rated, criterion, old, new, levels=(level,), seed=seed, confidence=1 - ALPHA / criteria)[0].get(
        level
    )
    if found is None or found.change is None:
        return None
    return Trust(found.before.value, found.after.value, found.change, level)


def _values(result: Result, criterion: str, rated: list[Sample]) -> Values:
    scored = Scored.of(result, criterion, {sample.item for sample in rated})
    return {(s.item, s.system): one.value for s in rated if (one := scored.score(s.item, s.system))}


def verdict(criterion: str, line: int, found: Trust, p: float | None, moved: str) -> Verdict:
    """Not met only where the scores are told to go worse with people; `moved` says what became of the scores.

    `p` is after Holm. Without a test, as over all texts, the interval decides.
    """
    e = found.estimate
    apart = e.low is not None and e.high is not None and (e.low > 0 or e.high < 0)
    told = p < ALPHA if p is not None else apart
    how = f" ({chance(p)})" if p is not None else ""
    few = not told and (e.n < FEWEST or e.low is None or e.high is None)
    status: Status = "failed" if told and e.value < 0 else "undecided" if few else "passed"
    if told:
        said = f"agrees {'better' if e.value > 0 else 'worse'} with people{how}"
    elif few:
        said = f"too few {UNITS[found.level]}s to tell: {FEWEST} or more"
    else:
        said = f"agreement not told apart{would_take(takes(e), e.n, UNITS[found.level])}"
    return Verdict(
        f"{criterion} against the baseline",
        line,
        "baseline",
        criterion,
        status,
        status != "failed",
        _EXPECTED,
        f"spearman {number(found.after, PLACES)}, {signed(e.value, PLACES)} {span(e.low, e.high, PLACES)}".rstrip(),
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
