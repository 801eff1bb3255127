"""ROUGE on Newsroom (Grusky et al. 2018; rows of Bao et al. 2023, DocAsRef).

python benchmarks/reproduce/newsroom.py [--write]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from figures import DataFile, Figure, Paper, Table, main, read_rows
from summaries import BARTSCORE, Correlations, converted, correlations

CRITERIA = ("coherence", "fluency", "informativeness", "relevance")
AGAINST_SOURCE = {
    "ROUGE-1": ("0.564", "0.476", "0.744", "0.639"),
    "ROUGE-2": ("0.591", "0.511", "0.746", "0.648"),
    "ROUGE-L": ("0.591", "0.515", "0.746", "0.641"),
}
AGAINST_REFERENCE = {
    "ROUGE-1": ("0.071", "0.073", "0.105", "0.128"),
    "ROUGE-2": ("0.016", "0.037", "0.069", "0.087"),
    "ROUGE-L": ("0.016", "0.025", "0.035", "0.063"),
}
"""Spearman: experiments/results/newsroom.md of SigmaWe/DocAsRef, the rows `new` and `trad` of
rouge1, rouge2 and rougeL. Columns as in `CRITERIA`.
"""
FILES = (
    DataFile(
        "newsroom.jsonl",
        BARTSCORE.format("Newsroom")
        + "as `doc_id`, `system`, `source`, `references` (1), `summary`, `human`",
    ),
)
METHOD = (
    "Spearman correlation of ROUGE F with the mean ratings of 420 summaries, within each of 60 "
    "articles over 7 systems. The figures are those of Bao et al. 2023 "
    "([SigmaWe/DocAsRef](https://github.com/SigmaWe/DocAsRef), `experiments/results/newsroom.md`), "
    "who ran rouge-score without stemming, on the article in place of the reference and on the "
    "reference: `--set rouge.stem=false`, then `judge validate`."
)
TOKENIZED = (
    "Other copies of the texts: Bao et al. read Newsroom's own file, we read Yuan et al.'s "
    "tokenized copy, which writes `ca n't` for `can't`; ROUGE counts its parts as other words. Two "
    "neighbours of 7 that change places in one article move the mean by 0.0006 or more."
)
LEFT_OUT = (
    "the Newsroom rows of Yuan et al. 2021; their repository does not have them, and we found no "
    "other copy to cite."
)


def reproduce(folder: Path) -> Paper:
    """Return 24 correlations."""
    recorded = read_rows(folder / "newsroom.jsonl")
    against_source = [
        converted(row, [row["source"]], row["summary"]) for row in recorded
    ]
    against_reference = [
        converted(row, row["references"], row["summary"]) for row in recorded
    ]
    tables = (
        Table("article", _figures(_unstemmed(against_source), AGAINST_SOURCE)),
        Table("reference", _figures(_unstemmed(against_reference), AGAINST_REFERENCE)),
    )
    return Paper("ROUGE on Newsroom (Grusky et al. 2018)", METHOD, tables, LEFT_OUT)


def _unstemmed(rows: list[dict[str, Any]]) -> Correlations:
    return correlations(rows, types=["rouge1", "rouge2", "rougeL"], stem=False)


def _figures(
    ours: Correlations, published: Mapping[str, Sequence[str]]
) -> list[Figure]:
    figures: list[Figure] = []
    for column, values in published.items():
        for criterion, value in zip(CRITERIA, values, strict=True):
            figures.append(ours.figure(column, criterion, value, reason=TOKENIZED))
    return figures


if __name__ == "__main__":
    main(FILES, reproduce)
