"""Measure by simulation how often each claim of a report is true, at 2 to 50 items.

    python benchmarks/claims.py [REPETITIONS] [CLAIM]     # 1,000

Four systems answer the same items. Scores are from 1 to 5: half steps and skewed to the top, or whole steps of which
70% are the best one. What makes an item hard is the same for all systems. An interval should contain the truth in 95%
of repetitions. A claim that should not be made ("A beats B" of equal systems, in any of the six pairs) should be made
in at most 5%. Truths come from 400,000 items. "–" means that no interval is given.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from statistics import NormalDist

os.environ.update(
    dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import numpy as np
from scipy.optimize import minimize

from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.agreement import Measure, agree
from judge.stats.bootstrap import Bootstrap, mean_estimate, wilson_interval
from judge.stats.coefficients import within
from judge.stats.correlation import CorrelationWithRatings
from judge.stats.paired_differences import mean_differences
from judge.stats.pairwise import rankings
from judge.stats.system_differences import compare
from judge.suite.evidence import ScoreEvidence
from judge.suite.mean_tests import mean_on_scale
from judge.table import Table

SIZES = (2, 3, 5, 10, 20, 50)
TRUTH = 400_000
SCALES = {
    "skewed": (
        np.arange(1, 5.5, 0.5),
        (0.01, 0.01, 0.03, 0.05, 0.1, 0.15, 0.25, 0.25, 0.15),
    ),
    "ties": (np.arange(1.0, 6.0), (0.01, 0.03, 0.06, 0.2, 0.7)),
}
"""The possible scores and their shares."""
EQUAL, APART = (0.0,) * 4, (0.6, 0.4, 0.2, 0.0)
"""How much better each system is, in standard deviations of the scores."""
GENERATED = Provenance("single")
Values = np.ndarray
Ends = tuple[float | None, float | None]
Random = np.random.Generator


def scores(
    scale: str,
    shifts: Sequence[float],
    n: int,
    random: Random,
    hidden: Values | None = None,
) -> Values:
    """Draw scores, systems × items; `hidden` is what makes each text good, if it is known."""
    labels, shares = SCALES[scale]
    cuts = [NormalDist().inv_cdf(share) for share in np.cumsum(shares)[:-1].tolist()]
    if hidden is None:
        hidden = quality(shifts, n, random)
    return labels[np.searchsorted(cuts, hidden.ravel())].reshape(hidden.shape)


def quality(shifts: Sequence[float], n: int, random: Random) -> Values:
    item, text = random.normal(size=(1, n)), random.normal(size=(len(shifts), n))
    return (item + text) / 2**0.5 + np.array(shifts)[:, None]


def table(values: Values) -> Table:
    names = [f"s{k}" for k in range(len(values))]
    samples = tuple(
        Sample(f"i{k}", name, "") for name in names for k in range(values.shape[1])
    )
    rows = tuple(
        Score(f"i{k}", name, "c", value, GENERATED)
        for name, row in zip(names, values.tolist(), strict=True)
        for k, value in enumerate(row)
    )
    return Table(samples, (Column("c", "criterion", Signature("c"), 1.0, 5.0),), rows)


def ends(estimate: Estimate | None) -> Ends:
    return (None, None) if estimate is None else (estimate.low, estimate.high)


def inside(truth: float, interval: Ends) -> float:
    low, high = interval
    return (
        np.nan
        if low is None or high is None
        else float(low - 1e-9 <= truth <= high + 1e-9)
    )


# Each claim returns, for a number of items, a function that draws data and returns whether the claim is true (or made).
Claim = Callable[[int, Random], float]


def mean(scale: str) -> Claim:
    truth = scores(scale, (0.0,), TRUTH, np.random.default_rng(0)).mean()
    return lambda n, random: inside(
        truth, ends(mean_estimate(scores(scale, (0.0,), n, random)[0], 1.0, 5.0))
    )


def metric(draw: Callable[[Random, int], Values], truth: float, *scale: float) -> Claim:
    return lambda n, random: inside(truth, ends(mean_estimate(draw(random, n), *scale)))


def share(p: float) -> Claim:
    return lambda n, random: inside(
        p, ends(wilson_interval(int((random.random(n) < p).sum()), n))
    )


def probabilities(n: int, random: Random) -> Values:
    """Expected scores of a judge: from 4 to 5, but one text in 25 near 1."""
    return np.where(
        random.random(n) < 0.04, 1 + random.random(n), 5 - random.beta(1, 8, n)
    )


def labels(*shares: float) -> Callable[[int, Random], Values]:
    """Scores from 1 to 5 with these shares."""
    return lambda n, random: random.choice(np.arange(1.0, 6.0), size=n, p=shares)


GATES: dict[str, Callable[[int, Random], Values]] = {
    "even": labels(0.2, 0.2, 0.2, 0.2, 0.2),
    "skewed": lambda n, random: scores("skewed", (0.0,), n, random)[0],
    "90% fives": labels(0.01, 0.02, 0.03, 0.04, 0.9),
    "4 and 5, 5% ones": labels(0.05, 0, 0, 0.35, 0.6),
    "two labels, 95%": labels(0.05, 0, 0, 0, 0.95),
    "probabilities, 4% near 1": probabilities,
}


def gate(shape: str, side: int) -> Claim:
    """`expect: {min: M}` passes (side 1) or fails (side −1) although the true mean is M."""
    draw = GATES[shape]
    truth = float(draw(10 * TRUTH, np.random.default_rng(0)).mean())

    def claim(n: int, random: Random) -> float:
        items = [
            [(1.0, ScoreEvidence(value, None, None))]
            for value in draw(n, random).tolist()
        ]
        (test,) = mean_on_scale(items, truth, low=1.0, high=5.0)
        return float(test.significant_direction == side)

    return claim


def difference(scale: str, shifts: Sequence[float]) -> Claim:
    first, second = scores(scale, shifts, TRUTH, np.random.default_rng(0))[[0, -1]]
    truth = float((first - second).mean())

    def claim(n: int, random: Random) -> float:
        one, other = scores(scale, shifts, n, random)[[0, -1]]
        return inside(truth, ends(mean_differences((one - other)[None])[0]))

    return claim


def ranks(scale: str, shifts: Sequence[float]) -> Claim:
    """All four rank intervals contain the true ranks; equal systems share the best."""
    places = {
        f"s{k}": 1 + sum(other > shift for other in shifts)
        for k, shift in enumerate(shifts)
    }

    def claim(n: int, random: Random) -> float:
        (comparison,) = compare(table(scores(scale, shifts, n, random)))
        return float(
            all(
                rank.low <= places[rank.system] <= rank.high
                for rank in comparison.ranks
            )
        )

    return claim


def beats(scale: str) -> Claim:
    """Of equal systems any one beats another."""

    def claim(n: int, random: Random) -> float:
        (comparison,) = compare(table(scores(scale, EQUAL, n, random)))
        return float(any(difference.apart for difference in comparison.differences))

    return claim


def leader(scale: str) -> Claim:
    """The best of four systems is the leader or does not differ significantly from it."""

    def claim(n: int, random: Random) -> float:
        (comparison,) = compare(table(scores(scale, APART, n, random)))
        return float(not comparison.best or "s0" in comparison.best)

    return claim


def ratings(scale: str, n: int, random: Random) -> tuple[Values, Values]:
    """Draw a judge's scores and people's ratings, items × systems; what they see correlates by .6."""
    seen = quality(APART, n, random)
    judge = 0.6 * seen + 0.8 * quality(APART, n, random)
    return scores(scale, APART, n, random, judge).T, scores(
        "ties", APART, n, random, seen
    ).T


def correlation(scale: str, level: str) -> Claim:
    judge, people = ratings(scale, TRUTH, np.random.default_rng(0))
    if level == "within-items":
        truth = float(np.nanmean(within(judge, people, "spearman")))
    elif level == "all-texts":
        truth = float(
            within(judge.reshape(1, -1), people.reshape(1, -1), "spearman")[0]
        )
    else:
        truth = float(
            within(judge.mean(axis=0)[None], people.mean(axis=0)[None], "spearman")[0]
        )

    def claim(n: int, random: Random) -> float:
        values, rated = ratings(scale, n, random)
        estimates = (
            CorrelationWithRatings(rated, Bootstrap(500)).correlate(values).estimates
        )
        return inside(truth, ends(estimates.get((level, "spearman"))))

    return claim


AGREEMENT: tuple[Measure, ...] = ("alpha_interval", "kappa_quadratic", "icc_2_1")
RATED = {
    **SCALES,
    "80% fives": (np.arange(1.0, 6.0), (0.02, 0.03, 0.05, 0.1, 0.8)),
    "pass or fail, 90%": (np.array([0.0, 1.0]), (0.1, 0.9)),
}


def votes(shape: str, items: int, texts: int, random: Random) -> Values:
    """Draw the ratings of two raters (raters × items × texts), whose impressions correlate by .6."""
    labels, shares = RATED[shape]
    cuts = [NormalDist().inv_cdf(share) for share in np.cumsum(shares)[:-1].tolist()]
    item, text = (
        random.normal(size=(1, items, 1)),
        random.normal(size=(1, items, texts)),
    )
    quality = (item + text) / 2**0.5
    seen = 0.6**0.5 * quality + 0.4**0.5 * random.normal(size=(2, items, texts))
    return labels[np.searchsorted(cuts, seen.ravel())].reshape(seen.shape)


def agreement(shape: str, texts: int, measure: Measure) -> Claim:
    many = votes(shape, TRUTH // 4, texts, np.random.default_rng(0))
    truth = agree(many, (measure,), Bootstrap(1)).estimates[measure].value

    def claim(n: int, random: Random) -> float:
        drawn = votes(shape, n, texts, random)
        return inside(
            truth, ends(agree(drawn, (measure,), Bootstrap(300)).estimates.get(measure))
        )

    return claim


def same_judge(scale: str) -> Claim:
    """Of two judges that agree equally well with people one is better."""

    def claim(n: int, random: Random) -> float:
        seen = quality(APART, n, random)
        judges = [
            scores(
                scale, APART, n, random, 0.6 * seen + 0.8 * quality(APART, n, random)
            ).T
            for _ in range(2)
        ]
        against = CorrelationWithRatings(
            scores("ties", APART, n, random, seen).T, Bootstrap(500)
        )
        low, high = ends(against.difference(*judges, "within-items"))
        return float(low is not None and high is not None and (low > 0 or high < 0))

    return claim


def answers(gap: Values, labels: bool, random: Random) -> list[Values]:
    """Return the preference for the first system in both orders; the judge leans to what it is shown first."""
    if labels:
        return [
            (gap + 0.5 * random.logistic(size=gap.shape) + lean > 0) * 1.0
            for lean in (0.5, -0.5)
        ]
    return [1 / (1 + np.exp(-gap - lean)) for lean in (0.5, -0.5)]


def ranking(shifts: Sequence[float], *, labels: bool, strength: bool) -> Claim:
    """The win rate (or strength) of the first system."""
    names = [f"s{k}" for k in range(len(shifts))]
    pairs = list(combinations(range(len(shifts)), 2))
    random_of_truth = np.random.default_rng(0)
    hidden = quality(shifts, TRUTH, random_of_truth)
    rates = [
        float(sum(answers(hidden[a] - hidden[b], labels, random_of_truth)).mean()) / 2
        for a, b in pairs
    ]
    sides = np.array(
        [[float(k == a) - float(k == b) for k in range(len(shifts))] for a, b in pairs]
    )
    fitted = minimize(
        lambda s: (np.logaddexp(0, sides @ s) - np.array(rates) * (sides @ s)).sum(),
        np.zeros(len(shifts)),
    )
    truth = (
        fitted.x[0] - fitted.x.mean() if strength else np.mean(rates[: len(shifts) - 1])
    )

    def claim(n: int, random: Random) -> float:
        hidden = quality(shifts, n, random)
        rows = [
            Score(f"i{item}", names[first], "c", value, GENERATED, names[second])
            for a, b in pairs
            for one, other in [answers(hidden[a] - hidden[b], labels, random)]
            for first, second, values in ((a, b, one), (b, a, 1 - other))
            for item, value in enumerate(values.tolist())
        ]
        (ranked,) = rankings(rows, (), names, ["c"])
        s = next(standing for standing in ranked.standings if standing.system == "s0")
        return inside(
            truth, (s.strength_low, s.strength_high) if strength else (s.low, s.high)
        )

    return claim


def claims() -> Iterator[tuple[str, Claim]]:
    for scale in SCALES:
        yield f"mean, {scale}", mean(scale)
    yield (
        "mean, 0–1, skewed",
        metric(lambda random, n: random.beta(2, 9, n), 2 / 11, 0.0, 1.0),
    )
    yield (
        "mean without a scale, skewed",
        metric(lambda random, n: random.exponential(size=n), 1.0),
    )
    for p in (0.5, 0.8, 0.95):
        yield (
            f"pass rate, {p}",
            metric(lambda random, n, p=p: (random.random(n) < p) * 1.0, p, 0.0, 1.0),
        )
    for p in (0.5, 0.8, 0.95):
        yield f"share of a card, {p}", share(p)
    for shape in GATES:
        yield f"false pass of a gate, {shape}", gate(shape, 1)
        yield f"false fail of a gate, {shape}", gate(shape, -1)
    for scale in SCALES:
        yield f"difference of equal systems, {scale}", difference(scale, EQUAL)
        yield f"difference of unequal systems, {scale}", difference(scale, APART)
    for scale in SCALES:
        yield f"all ranks of unequal systems, {scale}", ranks(scale, APART)
        yield f"the best leads or is not beaten, {scale}", leader(scale)
    for scale in SCALES:
        yield f"false: one of four equal systems beats another, {scale}", beats(scale)
    for level in ("within-items", "all-texts", "systems"):
        for scale in SCALES:
            yield f"Spearman, {level}, {scale}", correlation(scale, level)
    for shape in RATED:
        for texts in (1, 4):
            for measure in AGREEMENT:
                name = f"agreement, {measure}, {shape}, {texts} texts an item"
                yield name, agreement(shape, texts, measure)
    yield "false: one of two equal judges is better", same_judge("skewed")
    for name, shifts in {
        "equal": EQUAL,
        "unequal": (1.2, 0.8, 0.4, 0.0),
        "far apart": (3.0, 0.0),
    }.items():
        for labels in (True, False):
            kind = "labels" if labels else "probabilities"
            yield (
                f"win rate, {name}, {kind}",
                ranking(shifts, labels=labels, strength=False),
            )
            yield (
                f"strength, {name}, {kind}",
                ranking(shifts, labels=labels, strength=True),
            )


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    print(
        f"| claim, per cent of {repetitions:,} | {' | '.join(map(str, SIZES))} |\n|---|{'---:|' * len(SIZES)}"
    )
    for name, claim in claims():
        if only not in name:
            continue
        cells = []
        for n in SIZES:
            random = np.random.default_rng([n, len(name)])
            held = np.array([claim(n, random) for _ in range(repetitions)])
            known = held[~np.isnan(held)]
            cells.append(
                f"{100 * known.mean():.1f}" if len(known) > repetitions / 10 else "–"
            )
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
