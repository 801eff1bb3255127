"""How ROUGE correlates with people's ratings of summaries, for the scripts about such data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from figures import Figure

import judge


@dataclass(frozen=True)
class Correlations:
    """Correlations of judge's ROUGE columns with ratings, from `judge validate`."""

    validation: judge.Validation

    def figure(
        self,
        column: str,
        criterion: str,
        published: str,
        *,
        coefficient: str = "spearman",
        level: str = "within-items",
        what: str = "",
        reason: str = "",
    ) -> Figure:
        """Return a published correlation beside ours."""
        rated = next(
            each for each in self.validation.rated if each.criterion == criterion
        )
        row = next(each for each in rated.baselines if each.name == column)
        ours = row.correlation.estimates[level, coefficient].value  # type: ignore[index]
        return Figure(what or f"{column} {criterion}", published, ours, reason)


def correlations(rows: Sequence[dict[str, Any]], **rouge: Any) -> Correlations:
    """Score the summaries with ROUGE (its options are `rouge`) and compare it with the ratings.

    Rows have `item`, `system`, `source`, `references`, `output` and `human`.
    """
    result = judge.evaluate(
        rows, [], metrics=["rouge"], set={"rouge": rouge}, cache=False
    )
    # The intervals are not shown, so few resamples do.
    return Correlations(judge.validate(result, n_resamples=10))


def converted(
    row: dict[str, Any], references: Sequence[str], output: str
) -> dict[str, Any]:
    """Return a row of BARTScore's data sets by judge's names."""
    return {
        "item": row["doc_id"],
        "system": row["system"],
        "source": row["source"],
        "references": list(references),
        "output": output,
        "human": row["human"],
    }


def with_lines(text: str) -> str:
    """Return a tokenized text with one sentence per line, as Yuan et al. cut it: after ` . `."""
    return " .\n".join(text.split(" . "))


BARTSCORE = (
    "[neulab/BARTScore](https://github.com/neulab/BARTScore), `SUM/{}/data.pkl`, "
)
"""Where the data sets are public. They were converted to one object per line."""
AS_YUAN = (
    "The figures are those of Yuan et al. 2021, who ran ROUGE-1.5.5 with stemming on sentences cut "
    "after a full stop between spaces: `--metrics rouge --set rouge.preset=rouge155`, then `judge validate`."
)
