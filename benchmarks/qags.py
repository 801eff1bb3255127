"""QAGS against people's ratings of factual consistency: correlations over 235 summaries, beside those of other columns.

--generator and --reader name folders or models of the Hugging Face hub; without them QAGS itself is left out. ROUGE-L
and BERTScore compare the summary with its source.
"""

from __future__ import annotations

import argparse

from common import SHARED, read
from scipy.stats import pearsonr, spearmanr

from judge.core.records import Failure
from judge.metrics import bertscore, qags, rouge

SIMILARITIES = ("exact", "f1", "rouge1", "rougeL", "chrf")


def told(name: str, values: list[float | None], human: list[float]) -> None:
    """Print both correlations of the values that there are."""
    both = [
        (value, rating)
        for value, rating in zip(values, human, strict=True)
        if value is not None
    ]
    mine, theirs = zip(*both, strict=True)
    rho, r = spearmanr(mine, theirs).statistic, pearsonr(mine, theirs).statistic
    print(f"{name:<32} n {len(both):>4}   Spearman {rho:.3f}   Pearson {r:.3f}")


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generator", help="a T5-style model that makes questions")
    parser.add_argument("--reader", help="a model that answers them from a text")
    parser.add_argument("--themes", default="nouns", help="the noun finder")
    given = parser.parse_args()
    rows = read(SHARED / "data" / "qags_cnndm.jsonl")
    outputs, sources = [row["summary"] for row in rows], [row["source"] for row in rows]
    human = [float(row["human"]["consistency"]) for row in rows]
    if given.generator and given.reader:
        print(
            f"QAGS by models {given.generator} and {given.reader}, themes by {given.themes}:"
        )
        models = {
            "backend": "models",
            "questions": given.generator,
            "answers": given.reader,
        }
        found = qags.score(
            outputs,
            sources,
            similarity=list(SIMILARITIES),
            themes=given.themes,
            **models,
        )
        for name in SIMILARITIES:
            told(
                f"  qags_{name}",
                [None if isinstance(v, Failure) else v.similarity[name] for v in found],
                human,
            )
    by_rouge = rouge.score(outputs, sources, types=["rougeL"])["rougeL"]
    told(
        "ROUGE-L precision",
        [None if isinstance(v, Failure) else v.precision for v in by_rouge],
        human,
    )
    told("length (words)", [float(len(output.split())) for output in outputs], human)
    try:
        by_bert = bertscore.score(outputs, sources)
    except Exception as error:  # noqa: BLE001  (whatever a machine lacks)
        print(f"BERTScore: {error}")
        return
    told(
        "BERTScore precision (MiniLM)",
        [None if isinstance(v, Failure) else v.precision for v in by_bert],
        human,
    )


if __name__ == "__main__":
    main()
