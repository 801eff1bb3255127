"""Columns that follow from the criteria's scores: the overall score and the pass rates.

`overall` weights the criteria of each text into one number. `pass_table` says of each score whether
it passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from judge.core.records import Column, Provenance, Score
from judge.core.signature import Signature
from judge.table import Table, Text

OVERALL = "overall"
"""The name of the column of overall scores."""
_PROVENANCE = Provenance("overall")


@dataclass(frozen=True, slots=True)
class Overall:
    """The weights of the column `overall`: each criterion's share; the shares sum to 1.

    Values are from 0 (worst end of the criteria's scales) to 1. `n` of `of` texts have a value:
    those with a value for every criterion.
    """

    weights: Mapping[str, float]
    n: int
    of: int

    @property
    def column(self) -> Column:
        """The column of these values."""
        shares = [
            f"{share:.4g} {column_name}" for column_name, share in self.weights.items()
        ]
        weights = " + ".join(shares)
        signature = Signature(OVERALL, weights, "0–1")
        return Column(
            OVERALL,
            "criterion",
            signature,
            low=0.0,
            high=1.0,
            criterion=OVERALL,
        )


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The weights of the column `overall`, and a table of the same texts that contains it."""

    summary: Overall
    table: Table


def overall(table: Table) -> WeightedScores | None:
    """Compute the weighted mean of the criteria's columns (a panel's values).

    Return None for fewer than two weighted criteria, if a column is already called `overall`, and
    for comparisons.
    """
    columns = [column for column in table.columns if _is_weighted(column)]
    is_name_taken = any(column.name == OVERALL for column in table.columns)
    if len(columns) < 2 or table.has_pairs or is_name_taken:
        return None
    total_weight = sum(column.weight for column in columns)
    weights = {column.name: column.weight / total_weight for column in columns}
    weighted_sums = dict.fromkeys((sample.key for sample in table.samples), 0.0)
    for column in columns:
        shares = _shares_of_scale(table, column)
        # A text without a value for one of the criteria has no overall value.
        complete = [text for text in weighted_sums if text in shares]
        weight = weights[column.name]
        weighted_sums = {
            text: weighted_sums[text] + weight * shares[text] for text in complete
        }
    scores: list[Score] = []
    for (item, system), value in weighted_sums.items():
        scores.append(
            Score(
                item=item,
                system=system,
                column=OVERALL,
                value=value,
                provenance=_PROVENANCE,
            )
        )
    summary = Overall(weights, len(scores), len(table.samples))
    weighted_table = Table(table.samples, (summary.column,), tuple(scores))
    return WeightedScores(summary, weighted_table)


def _is_weighted(column: Column) -> bool:
    """Return whether it is a criterion's or a panel's column with a weight and a better end."""
    if column.kind != "criterion" or column.judge:
        return False
    if not column.better or column.weight <= 0:
        return False
    if column.low is None or column.high is None:
        return False
    return column.low < column.high


def _shares_of_scale(table: Table, column: Column) -> dict[Text, float]:
    """Return a column's values by text, from 0 at the worse end of the scale to 1 at the better."""
    # A weighted column has both ends (`_is_weighted`).
    worse_end = float(column.low or 0.0)
    better_end = float(column.high or 0.0)
    if column.better == "lower":
        worse_end, better_end = better_end, worse_end
    width = better_end - worse_end
    shares: dict[Text, float] = {}
    for score in table.column_scores(column.name):
        if not score.opponent:
            shares[score.key] = (score.value - worse_end) / width
    return shares


# Pass rates: the share of a system's texts whose value reaches the criterion's `pass_at`. It is the
# mean of a column with 1 for each text that passes and 0 for each other one, so that means, tests
# and comparisons of runs apply to it.


def pass_columns(columns: Iterable[Column]) -> dict[str, Column]:
    """Return the columns of pass rates by the names of their criteria's columns."""
    with_mark = [column for column in columns if column.pass_at is not None]
    return {column.name: _pass_column(column) for column in with_mark}


def _pass_column(column: Column) -> Column:
    """Return the column with 1 for each text that reaches the criterion's `pass_at`, else 0."""
    sign = "<=" if column.better == "lower" else ">="
    rule = f"pass rate, value {sign} {column.pass_at:g}"
    signature_of_scores = column.signature
    signature = Signature(rule, signature_of_scores.name, *signature_of_scores.parts)
    return Column(
        f"{column.name} pass rate",
        "criterion",
        signature,
        low=0.0,
        high=1.0,
        labels=("fail", "pass"),
        values=(0.0, 1.0),
        criterion=column.criterion,
        judge=column.judge,
        weight=0.0,
    )


def pass_table(table: Table) -> Table:
    """Return a table of the same texts with the columns of pass rates alone."""
    rates = pass_columns(table.columns)
    columns = {column.name: column for column in table.columns}
    scores: list[Score] = []
    for score in table.scores:
        rate = rates.get(score.column)
        if rate is None:
            continue
        value = 1.0 if columns[score.column].passes(score.value) else 0.0
        scores.append(replace(score, column=rate.name, value=value))
    return Table(table.samples, tuple(rates.values()), tuple(scores))
