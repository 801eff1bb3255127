"""What a result says of a case: met where the numbers show it, not met where they show the opposite or too little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from judge.results.result import Result
from judge.suite import expectations
from judge.suite.draws import NEAR
from judge.suite.expectations.baseline import against
from judge.suite.expectations.context import Question, Told, joined
from judge.suite.limits import limits
from judge.suite.records import Case, Limits, Verdict
from judge.suite.scored import NoScore, Text

__all__ = ["against", "judge", "limits"]


def judge(
    case: Case,
    texts: Sequence[Text],
    result: Result | None,
    baseline: Result | None = None,
    ranked: Result | None = None,
    *,
    failures: Limits | None = None,
    seed: int = 0,
) -> Verdict:
    """The verdict on a case about `texts` (item and system), from `result`, or from `ranked` if they were compared.

    `passed` where the interval lies wholly inside what is expected, `failed` where wholly outside, else
    `undecided`, which is met if the case, or else its kind says so (see `Suite`). Of one text the interval is over
    its draws, or bounds what was not seen of the probability; one reply as it is written decides by its value. Of
    six items or more it is over items, of fewer over the draws of all (`judge.suite.means`). Shares of labels and
    flips are counted. A text without a score is an `error`, never met; of several texts it is left out and said, as
    far as `failures` (default: none) allows so many or such a share of them. One that nobody asked about is an `error`
    always. `seed` is that of what is drawn.
    """
    asked = Question(case, texts, result, ranked, baseline, seed)
    try:
        found = _complete(asked, _told(asked), failures or Limits())
    except NoScore as error:
        found = Told("error", "no score", error.message, detail=error.detail)
    policy = case.undecided or expectations.of(case).UNDECIDED
    return Verdict(
        case.name,
        case.line,
        case.kind,
        case.criterion,
        found.status,
        met=found.status == "passed" or (found.status == "undecided" and policy == "pass"),
        expected=expectations.of(case).expected(asked, case.expected),
        found=found.found,
        said=found.said,
        flaky=found.flaky,
        estimate=found.estimate,
        before=found.before or _before(asked),
        detail=found.detail,
    )


def _complete(asked: Question, found: Told, limit: Limits) -> Told:
    """An `error` where more of the case's texts lack a score than may."""
    scored = asked.scored()
    rows = [(item, system, "") for item, system in asked.texts]
    if asked.pairwise:
        rows = [(item, *two) for item, systems in asked.by_item.items() for two in permutations(systems, 2)]
    lost = sum(scored.score(*row) is None for row in rows)
    if lost <= limit.most(len(rows)) + NEAR:
        return found
    return replace(found, status="error", said=joined(found.said, "more than the limit on failures allows"))


def _told(asked: Question) -> Told:
    """Raises NoScore where there is nothing to decide from."""
    if not asked.texts:
        raise NoScore("the case is about no text")
    return expectations.of(asked.case).decide(asked, asked.case.expected)


def _before(asked: Question) -> str:
    """What was found in the baseline; nothing where it has no such scores, as of texts that were compared."""
    if asked.baseline is None or asked.pairwise or asked.case.kind == "drift":
        return ""
    try:
        return _told(replace(asked, result=asked.baseline, baseline=None)).found
    except NoScore:
        return ""
