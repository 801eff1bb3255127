"""ROUGE on SummEval (Fabbri et al. 2021; rows as in Yuan et al. 2021, BARTScore).

python benchmarks/reproduce/summeval_rouge.py [--write]
"""

from __future__ import annotations

from pathlib import Path

from figures import DataFile, Figure, Paper, Table, main, read_rows
from summaries import AS_YUAN, BARTSCORE, converted, correlations, with_lines

CRITERIA = ("coherence", "consistency", "fluency", "relevance")
PUBLISHED = {
    "spearman": {
        "ROUGE-1": ("0.167", "0.160", "0.115", "0.326"),
        "ROUGE-2": ("0.184", "0.187", "0.159", "0.290"),
        "ROUGE-L": ("0.129", "0.115", "0.105", "0.311"),
    },
    "kendall": {
        "ROUGE-1": ("0.126", "0.130", "0.094", "0.252"),
        "ROUGE-2": ("0.139", "0.155", "0.128", "0.219"),
        "ROUGE-L": ("0.099", "0.092", "0.084", "0.237"),
    },
}
"""The ROUGE rows that papers on SummEval print, by coefficient; columns as in `CRITERIA`."""
FILES = (
    DataFile(
        "summeval.jsonl",
        BARTSCORE.format("SummEval")
        + "as `doc_id`, `system`, `source`, `references` (11), `summary`, `human`",
    ),
)
METHOD = (
    "Correlation of ROUGE F with experts' ratings of 1,600 summaries, within each of 100 documents "
    "over 16 systems, averaged over the documents in which both vary. "
    + AS_YUAN
    + " Each value is the mean over 11 references (`rouge.multi=mean`)."
)


def reproduce(folder: Path) -> Paper:
    """Return 24 correlations."""
    rows = []
    for row in read_rows(folder / "summeval.jsonl"):
        references = [with_lines(reference) for reference in row["references"]]
        rows.append(converted(row, references, with_lines(row["summary"])))
    ours = correlations(
        rows, preset="rouge155", types=list(PUBLISHED["spearman"]), multi="mean"
    )
    tables = []
    for coefficient, columns in PUBLISHED.items():
        figures: list[Figure] = []
        for column, published in columns.items():
            for criterion, value in zip(CRITERIA, published, strict=True):
                figures.append(
                    ours.figure(column, criterion, value, coefficient=coefficient)
                )
        tables.append(Table(_HEADINGS[coefficient], figures))
    return Paper("ROUGE on SummEval (Fabbri et al. 2021)", METHOD, tables)


_HEADINGS = {"spearman": "Spearman", "kendall": "Kendall tau-b"}


if __name__ == "__main__":
    main(FILES, reproduce)
