"""ROUGE against rouge-score on SummEval: CPU time, ours and theirs in turn, in one process."""

from __future__ import annotations

from collections.abc import Iterator

from common import cpu, read

from judge import text
from judge.metrics.rouge import score, sequences

TYPES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
ROUNDS, MANY = 3, 160


def rows() -> Iterator[tuple[str, str, str, str]]:
    """What was done, pairs of texts a second, rouge-score's, and the ratio of the best of each; ours starts cold."""
    data = read()
    outputs = ["\n".join(text.sentences(row["summary"])) for row in data]
    references = [
        ["\n".join(text.sentences(one)) for one in row["references"]] for row in data
    ]
    first = [listed[:1] for listed in references]
    yield compared("1, 2, L, Lsum, stemmed", outputs, first)
    yield compared("1, 2, L, Lsum, plain", outputs, first, stem=False)
    yield compared("L, stemmed", outputs, first, types=["rougeL"])
    yield compared("Lsum, stemmed", outputs, first, types=["rougeLsum"])
    yield compared(
        "1, 2, L, Lsum, stemmed, best of 11", outputs[:MANY], references[:MANY]
    )


def compared(
    what: str,
    outputs: list[str],
    references: list[list[str]],
    *,
    types: list[str] = TYPES,
    stem: bool = True,
) -> tuple[str, str, str, str]:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(types, use_stemmer=stem)
    scorer.score("warm", "up")

    def ours() -> None:
        sequences._current_vocabulary.cache_clear()
        score(outputs, references, types, stem=stem)

    def theirs() -> None:
        for output, listed in zip(outputs, references, strict=True):
            scorer.score_multi(listed, output)

    ours()  # imports
    seconds = [(cpu(ours), cpu(theirs)) for _ in range(ROUNDS)]
    mine, other = (min(column) for column in zip(*seconds, strict=True))
    pairs = sum(map(len, references))
    return (
        f"ROUGE-{what}",
        f"{pairs / mine:,.0f}/s",
        f"{pairs / other:,.0f}/s",
        f"{other / mine:.1f} ×",
    )


if __name__ == "__main__":
    for found in rows():
        print(" | ".join(found))
