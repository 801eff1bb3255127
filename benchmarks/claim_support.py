"""Claims with `unit=sentence` against people's votes on 714 sentences of 235 summaries (QAGS, CNN/DailyMail).

The verifiers need no model that judges: words, BERTScore. The votes themselves, as probabilities, check
the arithmetic: their shares of supported sentences are the published ratings. --nli names a cross-encoder.

Sentences: area under the ROC curve against the majority of votes (AUC), Spearman with the share of votes, expected
calibration error in ten bins (ECE) and Brier score. Summaries: Spearman of the share of sentences from the threshold
.5, of the share from the median probability, and of the mean probability with the published rating.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median
from typing import Any

from common import SHARED, read
from scipy.stats import mannwhitneyu, spearmanr

from judge.core.records import Failure
from judge.metrics import bertscore, claims, rouge
from judge.metrics.claims import Job

Rate = Callable[[list[str], list[str]], Iterable[float]]
"""Maps sentences and their sources to probabilities."""


class Verifier:
    """A verifier from a function of lists."""

    signature = "benchmark 1"

    def __init__(self, rate: Rate) -> None:
        self._rate = rate

    def verify(self, jobs: Sequence[Job]) -> list[list[float]]:
        """Return the probability of each claim."""
        pairs = [(claim, job.text) for job in jobs for claim in job.claims]
        rates = iter(
            self._rate([claim for claim, _ in pairs], [text for _, text in pairs])
        )
        return [[next(rates) for _ in job.claims] for job in jobs]


def by_rouge(kind: str) -> Rate:
    """ROUGE precision of the sentence in the source."""

    def rate(sentences: list[str], sources: list[str]) -> list[float]:
        values = rouge.score(sentences, sources, types=[kind])[kind]
        return [
            0.0 if isinstance(value, Failure) else value.precision for value in values
        ]

    return rate


def by_bertscore(sentences: list[str], sources: list[str]) -> list[float]:
    """BERTScore's precision with MiniLM, a mean cosine of tokens."""
    values = bertscore.score(sentences, sources)
    return [
        0.0 if isinstance(value, Failure) else min(1.0, max(0.0, value.precision))
        for value in values
    ]


def calibration_error(probabilities: Sequence[float], shares: Sequence[float]) -> float:
    """Return the expected calibration error in ten bins of equal width."""
    bins: dict[int, list[tuple[float, float]]] = {}
    for probability, share in zip(probabilities, shares, strict=True):
        bins.setdefault(min(9, int(10 * probability)), []).append((probability, share))
    gaps = [
        len(each) * abs(fmean(p for p, _ in each) - fmean(s for _, s in each))
        for each in bins.values()
    ]
    return sum(gaps) / len(probabilities)


def main() -> None:
    """Print a line for each verifier."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--nli", help="a cross-encoder: a folder or a name on the Hugging Face hub"
    )
    given = parser.parse_args()
    rows = read(SHARED / "data" / "qags_cnndm.jsonl")
    outputs, sources = [row["summary"] for row in rows], [row["source"] for row in rows]
    human = [float(row["human"]["consistency"]) for row in rows]
    votes = [vote.count("yes") / len(vote) for row in rows for vote in row["votes"]]
    verifiers: dict[str, Any] = {
        "votes (arithmetic)": Verifier(lambda sentences, _: votes),
        "ROUGE-1 precision": Verifier(by_rouge("rouge1")),
        "ROUGE-2 precision": Verifier(by_rouge("rouge2")),
        "ROUGE-L precision": Verifier(by_rouge("rougeL")),
        "BERTScore P (MiniLM)": Verifier(by_bertscore),
    }
    if given.nli:
        verifiers[f"nli:{given.nli}"] = f"nli:{given.nli}"
    print(
        f"{'verifier':<22}  AUC  Spearman   ECE  Brier | share>=.5  share>=median   mean"
    )
    for name, verifier in verifiers.items():
        values = claims.score(outputs, sources, unit="sentence", verify=verifier)
        scored = [value for value in values if not isinstance(value, Failure)]
        by_text = [[claim.probability for claim in value.claims] for value in scored]
        each = [
            probability for probabilities in by_text for probability in probabilities
        ]
        if (len(scored), len(each)) != (len(rows), len(votes)):
            raise SystemExit(
                f"{name}: {len(scored)} of {len(rows)} summaries, {len(each)} of {len(votes)} sentences"
            )
        true, false = (
            [p for p, vote in zip(each, votes, strict=True) if (vote > 0.5) == side]
            for side in (True, False)
        )
        area = mannwhitneyu(true, false).statistic / len(true) / len(false)
        brier = fmean((p - vote) ** 2 for p, vote in zip(each, votes, strict=True))
        shares = [value.precision for value in scored]
        middle = median(each)
        ranks = [
            spearmanr(column, human).statistic
            for column in (
                shares,
                [fmean(p >= middle for p in ps) for ps in by_text],
                list(map(fmean, by_text)),
            )
        ]
        print(
            f"{name:<22} {area:.3f}   {spearmanr(each, votes).statistic:.3f}  {calibration_error(each, votes):.3f}  "
            f"{brier:.3f} | {ranks[0]:.3f}      {ranks[1]:.3f}      {ranks[2]:.3f}"
        )
        if name.startswith("votes"):
            furthest = max(abs(a - b) for a, b in zip(shares, human, strict=True))
            print(f"  furthest from the published rating: {furthest:.0e}")


if __name__ == "__main__":
    main()
