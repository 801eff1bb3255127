"""ROUGE on REALSumm (Bhandari et al. 2020; rows of Yuan et al. 2021, BARTScore).

python benchmarks/reproduce/realsumm.py [--write]
"""

from __future__ import annotations

from pathlib import Path

from figures import DataFile, Figure, Paper, Table, main, read_rows
from summaries import AS_YUAN, BARTSCORE, converted, correlations, with_lines

PUBLISHED = {
    "ROUGE-1_r": ("0.497526", "0.407974"),
    "ROUGE-2_r": ("0.423300", "0.353119"),
    "ROUGE-L_r": ("0.488254", "0.402523"),
}
"""Spearman and Kendall tau-b of recall: analysis.ipynb of neulab/BARTScore, with six decimals."""
RATING = "litepyramid_recall"
FILES = (
    DataFile(
        "realsumm.jsonl.gz",
        BARTSCORE.format("REALSumm")
        + "as `doc_id`, `system`, `source`, `references` (1), `summary`, `human`",
    ),
)
METHOD = (
    "Correlation of ROUGE recall with the lightweight-pyramid recall of 2,400 summaries, within "
    "each of 100 documents over 24 systems. "
    + AS_YUAN
    + " Published in their `analysis.ipynb`."
)
SENTENCES = (
    "Open. ROUGE-1 and ROUGE-2 of the same words are equal to six decimals, so at least one text "
    "was cut into other sentences."
)


def reproduce(folder: Path) -> Paper:
    """Return six correlations."""
    rows = []
    for row in read_rows(folder / "realsumm.jsonl.gz"):
        references = [with_lines(reference) for reference in row["references"]]
        rows.append(converted(row, references, with_lines(row["summary"])))
    types = [column.removesuffix("_r") for column in PUBLISHED]
    ours = correlations(rows, preset="rouge155", types=types, values=["r"])
    spearman: list[Figure] = []
    kendall: list[Figure] = []
    for column, (rho, tau) in PUBLISHED.items():
        reason = ""
        if column == "ROUGE-L_r":
            reason = SENTENCES
        label = f"{column.removesuffix('_r')} recall"
        spearman.append(ours.figure(column, RATING, rho, what=label, reason=reason))
        kendall.append(
            ours.figure(
                column, RATING, tau, coefficient="kendall", what=label, reason=reason
            )
        )
    tables = (Table("Spearman", spearman), Table("Kendall tau-b", kendall))
    return Paper("ROUGE on REALSumm (Bhandari et al. 2020)", METHOD, tables)


if __name__ == "__main__":
    main(FILES, reproduce)
