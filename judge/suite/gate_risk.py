"""How often a suite would change its verdicts if nothing had changed.

A rerun has other replies to the same texts, or other items of the same kind (`redraws`). Each rerun
draws every judgment once, for all cases that use it, and decides the cases as usual.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from judge.results.result import Result
from judge.stats.bootstrap import Bools, Floats
from judge.suite.case import Case, CaseContext, Form, Verdict
from judge.suite.case_scores import columns
from judge.suite.evaluate import decide_case
from judge.suite.redraws import Redraws
from judge.suite.risk import ACCEPTABLE, CaseRisk, SuiteRisk
from judge.suite.schema import Limits
from judge.table import Text

N_RERUNS = 400
"""Simulated reruns: a rate of 5% has a standard error of 1.1 points."""
N_FOR_MENDS = 100
"""Simulated reruns of each mend; its risk of 5% has a standard error of 2.2 points."""
_N_RESAMPLES = 2_000
"""Resamples of the tests in a rerun. Fewer than usual, because there are many reruns."""
_FACTORS = (2, 4, 8)
"""How many times as many draws or items are tried."""
_MOST_DRAWS = 100
_MOST_ITEMS = 2_000
"""The most draws and items that a mend proposes."""
_STEPS = (0.025, 0.05, 0.1, 0.15, 0.2, 0.3)
"""How far limits are moved, as a share of their scale."""
_FEWEST_ITEMS = 5
_LEAST_WEIGHT = 0.1
"""The weight of an item if there are too few for a formula; see `_weight_of_item`."""
Shares = Mapping[Form, Mapping[int, Floats]]
"""The probabilities of the labels of each score, by the score's position in its result."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case with its texts and its verdict."""

    case: Case
    texts: Sequence[Text]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _Rerun:
    """The results of one rerun, and the drawn items, each as often as it was drawn."""

    results: Mapping[Form, Result]
    items: Sequence[str] = ()


@dataclass(slots=True)
class GateRisk:
    """Estimates the risk of a suite.

    `failures` are the suite's limits. `others_met` is whether all verdicts on limits and baselines
    are met.
    """

    cases: Sequence[JudgedCase]
    results: Mapping[Form, Result]
    baseline: Result | None = None
    failures: Limits = field(default_factory=lambda: Limits())
    others_met: bool = True
    seed: int = 0
    n_reruns: int = N_RERUNS
    _redraws: dict[Form, Redraws] = field(init=False)
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        case_names = [judged.case.name for judged in self.cases]
        self._redraws = {}
        for form, result in self.results.items():
            self._redraws[form] = Redraws(result, case_names)
        self._random = np.random.default_rng(self.seed)

    def estimate(self, *, mends: bool = True) -> SuiteRisk:
        """Return the risk of the suite, with `mends` of the cases whose risk is too high."""
        met_on_same_texts = self._met_of_reruns(self._rerun)
        sampled = [judged for judged in self.cases if self._is_sample(judged)]
        met_on_other_items = None
        if sampled:
            sources = self._sources(sampled)
            rerun = partial(self._rerun_on_other_items, sources)
            met_on_other_items = self._met_of_reruns(rerun)
        risks: list[CaseRisk] = []
        for position, judged in enumerate(self.cases):
            met_of_sample = None
            if met_on_other_items is not None and judged in sampled:
                met_of_sample = met_on_other_items[:, position]
            met_of_case = met_on_same_texts[:, position]
            risk = self._risk_of_case(judged, met_of_case, met_of_sample)
            if mends:
                risk = self._with_mends(risk, judged)
            risks.append(risk)
        passed = self.others_met and all(judged.verdict.met for judged in self.cases)
        same_texts = self._share_of_changed_suites(met_on_same_texts, passed)
        other_items: float | None = None
        if met_on_other_items is not None:
            share_changed = self._share_of_changed_suites(met_on_other_items, passed)
            # Other items have other replies, too.
            other_items = max(same_texts, share_changed)
        n_unknown = sum(not self._is_known(judged) for judged in self.cases)
        return SuiteRisk(
            tuple(risks),
            passed,
            same_texts=same_texts,
            other_items=other_items,
            n_unknown=n_unknown,
            n_reruns=self.n_reruns,
        )

    def _risk_of_case(
        self,
        judged: JudgedCase,
        met_on_same_texts: Bools,
        met_on_other_items: Bools | None,
    ) -> CaseRisk:
        """Return the risk of a case, from whether it is met in each rerun."""
        verdict = judged.verdict
        same_texts = None
        if self._is_known(judged):
            same_texts = _share_changed(met_on_same_texts, verdict.met)
        other_items = None
        if met_on_other_items is not None:
            share_changed = _share_changed(met_on_other_items, verdict.met)
            # Other items have other replies, too.
            other_items = max(share_changed, same_texts or 0.0)
        return CaseRisk(
            judged.case.name,
            verdict.status,
            verdict.met,
            same_texts=same_texts,
            other_items=other_items,
        )

    def _share_of_changed_suites(self, met: Bools, passed: bool) -> float:
        """Return the share of reruns in which the suite as a whole has another verdict.

        `met` is by rerun (rows) and case (columns), `passed` is the verdict of this run.
        """
        passes = np.logical_and(met.all(axis=1), self.others_met)
        return _share_changed(passes, passed)

    def _with_mends(self, risk: CaseRisk, judged: JudgedCase) -> CaseRisk:
        """Add the mends of a case if its risk is known and too high."""
        if risk.risk is None or risk.risk <= ACCEPTABLE:
            return risk
        mends = [
            *self._looser_limit(risk, judged),
            *self._more_draws(risk, judged),
            *self._more_items(risk, judged),
        ]
        return replace(risk, mends=tuple(mends))

    def _looser_limit(self, risk: CaseRisk, judged: JudgedCase) -> Iterator[str]:
        """Yield the nearest limit with which the case passes in nearly all reruns."""
        reruns: list[_Rerun] = []
        if risk.same_texts is not None:
            reruns += [self._rerun() for _ in range(N_FOR_MENDS)]
        if risk.other_items is not None:
            sources = self._sources([judged])
            reruns += [self._rerun_on_other_items(sources) for _ in range(N_FOR_MENDS)]
        column_by_criterion = columns(self.results[self._form(judged)])
        column = column_by_criterion.get(judged.case.stem())
        if column is None:
            return
        for step in _STEPS:
            looser = judged.case.loosened(step, column)
            if looser is None:
                return
            changed = JudgedCase(looser, judged.texts, judged.verdict)
            n_met = sum(self._is_met(changed, rerun) for rerun in reruns)
            if n_met >= (1 - ACCEPTABLE) * len(reruns):
                yield looser.limit_text()
                return

    def _more_draws(self, risk: CaseRisk, judged: JudgedCase) -> Iterator[str]:
        """Yield the number of draws with which two runs nearly always agree on the case."""
        # More draws about the same texts say no more about other items.
        too_few_items = risk.other_items is not None and risk.other_items > ACCEPTABLE
        if not self._is_drawn(judged) or risk.same_texts is None or too_few_items:
            return
        for factor in _FACTORS:
            n_draws = factor * self._redraws[self._form(judged)].draws
            if n_draws > _MOST_DRAWS:
                return
            if self._runs_agree_with_draws(judged, n_draws):
                yield f"{n_draws} draws"
                return

    def _runs_agree_with_draws(self, judged: JudgedCase, n_draws: int) -> bool:
        """Return whether two runs with this many draws nearly always agree on the case."""

        def two_runs() -> tuple[_Rerun, _Rerun]:
            # Two runs of one judge: a reply is equally likely in both.
            shares = self._posteriors()
            return self._rerun(shares, n_draws), self._rerun(shares, n_draws)

        return self._share_of_disagreeing(judged, two_runs) <= ACCEPTABLE

    def _more_items(self, risk: CaseRisk, judged: JudgedCase) -> Iterator[str]:
        """Yield the number of items with which two samples of items nearly always agree."""
        if risk.other_items is None or risk.other_items <= ACCEPTABLE:
            return
        sources = self._sources([judged])
        for factor in _FACTORS:
            n_items = factor * len(sources)
            if n_items > _MOST_ITEMS:
                return
            if self._samples_agree_with_items(judged, sources, n_items):
                yield f"{n_items:,} items"
                return

    def _samples_agree_with_items(
        self,
        judged: JudgedCase,
        sources: Sequence[str],
        n_items: int,
    ) -> bool:
        """Return whether two samples of this many items nearly always agree on the case."""

        def two_samples() -> tuple[_Rerun, _Rerun]:
            # Two samples of one population: items of a kind are equally frequent in both.
            shares = self._shares_of(sources)
            first_rerun = self._rerun_on_other_items(sources, n_items, shares)
            second_rerun = self._rerun_on_other_items(sources, n_items, shares)
            return first_rerun, second_rerun

        return self._share_of_disagreeing(judged, two_samples) <= ACCEPTABLE

    def _share_of_disagreeing(
        self,
        judged: JudgedCase,
        make_pair: Callable[[], tuple[_Rerun, _Rerun]],
    ) -> float:
        """Return the share of pairs of reruns whose verdicts on a case differ."""
        # A pair is two of the reruns that a mend takes.
        n_pairs = N_FOR_MENDS // 2
        differing = 0
        for _ in range(n_pairs):
            first_rerun, second_rerun = make_pair()
            first_met = self._is_met(judged, first_rerun)
            second_met = self._is_met(judged, second_rerun)
            if first_met != second_met:
                differing += 1
        return differing / n_pairs

    def _rerun(
        self, shares: Shares | None = None, n_draws: int | None = None
    ) -> _Rerun:
        """Return results with new replies to the same texts.

        `shares` are by default drawn, and each score has by default as many draws as it had.
        """
        shares = shares or self._posteriors()
        results: dict[Form, Result] = {}
        for form, redraws in self._redraws.items():
            rows = redraws.with_new_replies(self._random, shares[form], n_draws)
            results[form] = redraws.result(rows)
        return _Rerun(results)

    def _posteriors(self) -> Shares:
        """Draw the probabilities of the labels of every score, given its draws in this run."""
        posteriors: dict[Form, Mapping[int, Floats]] = {}
        for form, redraws in self._redraws.items():
            posteriors[form] = redraws.posterior(self._random)
        return posteriors

    def _rerun_on_other_items(
        self,
        sources: Sequence[str],
        n_items: int | None = None,
        shares: Floats | None = None,
    ) -> _Rerun:
        """Return results in which cases about all items have other ones (Bayesian bootstrap).

        Cases about certain items have new replies.
        """
        if shares is None:
            shares = self._shares_of(sources)
        counts = self._random.multinomial(n_items or len(sources), shares)
        items: list[str] = []
        for source, count in zip(sources, counts, strict=True):
            items += [source] * int(count)
        posteriors = self._posteriors()
        results: dict[Form, Result] = {}
        for form, redraws in self._redraws.items():
            rows = redraws.with_new_replies(self._random, posteriors[form])
            results[form] = redraws.result(rows, items)
        return _Rerun(results, items)

    def _shares_of(self, sources: Sequence[str]) -> Floats:
        """Draw how frequent items like each of these are among all items."""
        n_sources = len(sources)
        weights = np.full(n_sources, _weight_of_item(n_sources))
        return self._random.dirichlet(weights)

    def _met_of_reruns(self, rerun: Callable[[], _Rerun]) -> Bools:
        """Return whether each case (columns) is met in each rerun (rows)."""
        is_met: list[list[bool]] = []
        for _ in range(self.n_reruns):
            drawn = rerun()
            met_of_rerun = [self._is_met(judged, drawn) for judged in self.cases]
            is_met.append(met_of_rerun)
        # Without any case, the array has rows and no columns.
        shape = (self.n_reruns, len(self.cases))
        return np.array(is_met, dtype=bool).reshape(shape)

    def _is_met(self, judged: JudgedCase, rerun: _Rerun) -> bool:
        """Return whether a case is met in a rerun."""
        case = judged.case
        texts = judged.texts
        if rerun.items and self._is_sample(judged):
            redraws = self._redraws[self._form(judged)]
            texts = redraws.drawn_texts(texts, rerun.items)
        elif not self._is_drawn(judged):
            # All its scores are the same in every rerun.
            return judged.verdict.met
        context = CaseContext(
            case.stem(),
            texts,
            result=rerun.results.get("texts"),
            ranked=rerun.results.get("pairs"),
            baseline=self.baseline,
            seed=self.seed,
            n_resamples=_N_RESAMPLES,
        )
        decision = decide_case(case, context, self.failures)
        return decision.is_met(case.policy)

    def _form(self, judged: JudgedCase) -> Form:
        """Return which result has the texts of a case."""
        ranked = self.results.get("pairs")
        if ranked is None:
            return "texts"
        ranked_texts = {sample.key for sample in ranked.table.samples}
        is_ranked = any(text in ranked_texts for text in judged.texts)
        return "pairs" if is_ranked else "texts"

    def _is_drawn(self, judged: JudgedCase) -> bool:
        """Return whether new replies can change a score of the case."""
        redraws = self._redraws[self._form(judged)]
        return redraws.is_drawn(judged.case.stem(), judged.texts)

    def _is_known(self, judged: JudgedCase) -> bool:
        """Return whether the other possible replies about the case are known."""
        redraws = self._redraws[self._form(judged)]
        return redraws.is_known(judged.case.stem(), judged.texts)

    def _is_sample(self, judged: JudgedCase) -> bool:
        """Return whether the items of a case stand for others: it names none, and has several."""
        case = judged.case
        if case.item or case.texts or case.needs_baseline:
            return False
        return len(self._sources([judged])) > 1

    def _sources(self, cases: Collection[JudgedCase]) -> list[str]:
        """Return the items of the data that these cases are about, each once."""
        sources: dict[str, None] = {}
        for judged in cases:
            redraws = self._redraws[self._form(judged)]
            sources_of_case = redraws.sources(judged.texts)
            sources |= dict.fromkeys(sources_of_case)
        return list(sources)


def _weight_of_item(n: int) -> float:
    """Return the parameter of the Dirichlet distribution for each of `n` items.

    With 1, the Bayesian bootstrap, means of n new items vary too little if n is small. With this
    one, they vary as under the normal distribution: by 2 / n · (n − 1) / (n − 3) times the variance
    of an item.
    """
    # With fewer items, the formula has no positive value.
    if n < _FEWEST_ITEMS:
        return _LEAST_WEIGHT
    variance_of_share = (2 / (n - 3) - 1 / n) * n / (n - 1)
    sum_of_weights = 1 / variance_of_share - 1
    weight = sum_of_weights / n
    return max(_LEAST_WEIGHT, weight)


def _share_changed(met: Bools, met_now: bool) -> float:
    """Return the share of reruns with another verdict than this run's."""
    return float(np.mean(met != met_now))
