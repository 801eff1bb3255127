"""ROUGE on the CNN/DailyMail part of QAGS (Wang et al. 2020; rows of Yuan et al. 2021, BARTScore).

python benchmarks/reproduce/qags.py [--write]
"""

from __future__ import annotations

from pathlib import Path

from figures import DataFile, Figure, Paper, Table, main, read_rows
from summaries import AS_YUAN, BARTSCORE, converted, correlations, with_lines

PUBLISHED = {"ROUGE-1": "0.337667", "ROUGE-2": "0.459141", "ROUGE-L": "0.356889"}
"""Pearson of F: analysis.ipynb of neulab/BARTScore, with six decimals."""
RATING = "consistency"
FILES = (
    DataFile(
        "qags_cnndm.jsonl",
        BARTSCORE.format("QAGS_CNN")
        + "as `doc_id`, `system`, `source`, `summary`, `human`",
    ),
)
METHOD = (
    "Correlation of ROUGE F between summary and article with people's ratings of the factual "
    "consistency of 235 summaries, over all of them. "
    + AS_YUAN
    + " Published in their `analysis.ipynb`."
)
LEFT_OUT = "QAGS itself: its models are not on the measuring machine."


def reproduce(folder: Path) -> Paper:
    """Return three correlations."""
    rows = []
    for row in read_rows(folder / "qags_cnndm.jsonl"):
        # Each summary is by another system, and its article stands for the reference.
        row["system"] = "all"
        rows.append(
            converted(row, [with_lines(row["source"])], with_lines(row["summary"]))
        )
    ours = correlations(rows, preset="rouge155", types=list(PUBLISHED))
    figures: list[Figure] = []
    for column, published in PUBLISHED.items():
        figures.append(
            ours.figure(
                column, RATING, published, coefficient="pearson", level="all-texts"
            )
        )
    return Paper(
        "ROUGE on QAGS's summaries (Wang et al. 2020)",
        METHOD,
        (Table("Pearson", figures),),
        LEFT_OUT,
    )


if __name__ == "__main__":
    main(FILES, reproduce)
