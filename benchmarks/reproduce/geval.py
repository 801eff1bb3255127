"""G-Eval's estimator (Liu et al. 2023) on recorded replies of GPT-4.

    python benchmarks/reproduce/geval.py [--write]

Each of 20 summaries has twenty replies, drawn at temperature 1. A scripted judge repeats them, or
gives their shares as token probabilities. judge's score has to be the mean of the replies.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from figures import DataFile, Figure, Paper, Table, main, read_rows, shown_texts

import judge
from judge.core.records import Choice, Request, Response

ORIGIN = (
    "[gyuhyeonseo/G-EVAL](https://github.com/gyuhyeonseo/G-EVAL), "
    "`results/geval4_rel_{0}_{0}.json`, as `source`, `summary`, `responses` and `scores`"
)
FILES = (
    DataFile("geval_english.jsonl", ORIGIN.format("eng")),
    DataFile("geval_korean.jsonl", ORIGIN.format("kor")),
)
Weighting = Literal["samples", "logprobs"]
WEIGHTINGS: dict[Weighting, str] = {
    "samples": "20 replies",
    "logprobs": "probabilities",
}
LANGUAGES = {"English": "geval_english.jsonl", "Korean": "geval_korean.jsonl"}
METHOD = (
    "Relevance of 20 summaries in English and in Korean, as the mean of twenty recorded replies of "
    "gpt-4-0125-preview: `judge run --criteria relevance` with `--weighting samples`, and with "
    "`--weighting logprobs` for their shares as token probabilities. Published is the mean of the "
    "scores that the record's authors read in the same replies."
)
LEFT_OUT = (
    "G-Eval's correlations on SummEval (relevance .547 with GPT-4, .385 with GPT-3.5, table 1): the "
    "replies behind them are not in the data."
)


def reproduce(folder: Path) -> Paper:
    """Return the mean of each language and estimator, and the largest difference of a summary."""
    figures: list[Figure] = []
    for language, file in LANGUAGES.items():
        rows = read_rows(folder / file)
        authors = {row["id"]: fmean(row["scores"]) for row in rows}
        for weighting, label in WEIGHTINGS.items():
            scores = scored(rows, weighting)
            published = f"{fmean(authors.values()):.4f}"
            ours = fmean(scores.values())
            figures.append(
                Figure(f"{language}, {label}", published, ours, _reason(rows, scores))
            )
    table = Table("relevance", figures)
    return Paper("G-Eval (Liu et al. 2023)", METHOD, (table,), LEFT_OUT)


def scored(rows: list[dict[str, Any]], weighting: Weighting) -> dict[str, float]:
    """Return judge's score of each summary, by its id."""
    by_output = {row["summary"]: row for row in rows}

    def recorded_reply(request: Request) -> Any:
        row = by_output[shown_texts(request)["output"]]
        if weighting == "samples":
            return Response(tuple(map(Choice, row["responses"])))
        # Each reply ends with its score: "2", "\n2", "Relevance: 2".
        counts = Counter(reply.split()[-1] for reply in row["responses"])
        return {label: count / counts.total() for label, count in counts.items()}

    result = judge.evaluate(
        [
            {"item": row["id"], "source": row["source"], "output": row["summary"]}
            for row in rows
        ],
        "relevance",
        model=judge.ScriptedProvider(recorded_reply),
        metrics=[],
        weighting=weighting,
        cache=False,
    )
    return {score.item: score.value for score in result.table.scores}


def _reason(rows: list[dict[str, Any]], scores: dict[str, float]) -> str:
    """Return why the means differ: replies that the authors count as 0, if all else is equal."""
    unread = []
    for row in rows:
        differs = abs(scores[row["id"]] - fmean(row["scores"])) > 1e-9
        if differs and 0 not in row["scores"]:
            return ""
        pairs = zip(row["responses"], row["scores"], strict=True)
        unread += [reply for reply, score in pairs if score == 0]
    quoted = ", ".join(map(repr, unread))
    return f"The record's authors count {quoted} as 0; all other scores are equal."


if __name__ == "__main__":
    main(FILES, reproduce)
