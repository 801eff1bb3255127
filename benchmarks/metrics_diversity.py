"""Diversity beside the plain ways to compute it: CPU seconds on summaries of SummEval, in one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations

from common import cpu, read
from sacrebleu.metrics.bleu import BLEU

from judge.metrics.diversity import distinct, pairwise_bleu, self_bleu

HYPOTHESES = 5
PAIRS = 5_000
WORDS, STEP = 60, 3
LARGE = 10_000


def texts() -> tuple[list[str], list[str]]:
    """The 1,600 summaries; and 10,000 different texts: these, the references, overlapping windows of the sources."""
    rows = read()
    summaries = [row["summary"] for row in rows]
    found = dict.fromkeys(summaries) | dict.fromkeys(
        text for row in rows for text in row["references"]
    )
    for row in rows[::16]:
        words = row["source"].split()
        found |= dict.fromkeys(
            " ".join(words[at : at + WORDS])
            for at in range(0, len(words) - WORDS, STEP)
        )
    return summaries, list(found)[:LARGE]


def each_against_all(found: Sequence[str]) -> float:
    """CPU seconds of sacrebleu's BLEU of all texts against all others, from a few of them."""
    scorer = BLEU(effective_order=True, force=True)

    def of(place: int) -> None:
        scorer.sentence_score(
            found[place], [other for k, other in enumerate(found) if k != place]
        )

    of(0)  # cuts all texts; they stay cut
    return (
        cpu(lambda: [of(place) for place in range(1, HYPOTHESES + 1)])
        / HYPOTHESES
        * len(found)
    )


def each_pair(found: Sequence[str]) -> float:
    """CPU seconds of sacrebleu's BLEU of all ordered pairs, from a few of them."""
    scorer = BLEU(effective_order=True, force=True)
    pairs = list(permutations(found, 2))
    some = pairs[:: max(1, len(pairs) // PAIRS)]
    return (
        cpu(lambda: [scorer.sentence_score(a, [b]) for a, b in some])
        / len(some)
        * len(pairs)
    )


def plain_distinct(found: Sequence[str]) -> float:
    """distinct-4 by way of distinct-1 to 3, which ours goes as well, by sets of tuples."""
    tokens = [text.split() for text in found]
    shares = []
    for n in range(1, 5):
        grams = [
            tuple(each[at : at + n])
            for each in tokens
            for at in range(len(each) - n + 1)
        ]
        shares.append(len(set(grams)) / len(grams))
    return shares[-1]


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What, our CPU seconds, theirs, and how many times as long theirs are."""
    summaries, many = texts()
    pairwise_bleu(["a", "b"])  # imports
    for what, ours, theirs, how in (
        (
            "Self-BLEU, 1,000 texts",
            self_bleu,
            each_against_all,
            "sacrebleu, extrapolated",
        ),
        (
            "Pairwise-BLEU, 1,000 texts",
            pairwise_bleu,
            each_pair,
            "sacrebleu, extrapolated",
        ),
    ):
        own, other = (
            cpu(lambda ours=ours: ours(summaries[:1000])),
            theirs(summaries[:1000]),
        )
        yield what, f"{own:.3f} s", f"{other:.1f} s ({how})", f"{other / own:,.0f}"
    own = cpu(lambda: distinct(many, 4, tokenize="none"))
    other = cpu(lambda: plain_distinct(many))
    yield (
        f"distinct-4, {len(many):,} texts, words cut at white space",
        f"{own:.3f} s",
        f"{other:.3f} s (sets of tuples)",
        f"{other / own:.1f}",
    )
    yield (
        f"Self-BLEU, {len(many):,} texts",
        f"{cpu(lambda: self_bleu(many)):.2f} s",
        "",
        "",
    )


if __name__ == "__main__":
    for row in rows():
        print(" | ".join(row))
