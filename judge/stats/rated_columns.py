"""The columns to compare with people's ratings: those of judges, and baselines without a judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge import text
from judge.core import plugins
from judge.core.records import Column, Failure, Sample, Score
from judge.core.signature import Signature
from judge.core.version import __version__
from judge.metrics import parallel
from judge.stats.correlation import Values, criterion
from judge.table import Table, Text

_REVERSED = " reversed"
_ROUGE = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "rougeLsum": "ROUGE-Lsum",
}
# Papers on summaries compare sentence by sentence, and rougeL does not.
_MEASURED = ("rouge1", "rouge2", "rougeLsum")


@dataclass(frozen=True, slots=True)
class RatedColumn:
    """A judge's column, which has a `criterion` and a `scale`, or a baseline.

    `failed` are the texts (item, system) for which it has a failure; `scores` has the rows behind a
    judge's values. `directed` says whether higher values are better; if not, neither end is.
    """

    name: str
    signature: Signature
    values: Values
    criterion: str = ""
    scale: Column | None = None
    failed: frozenset[Text] = frozenset()
    scores: Mapping[Text, Score] = field(default_factory=dict)
    directed: bool = True


def column_from_table(column: Column, table: Table, column_name: str) -> RatedColumn:
    """Return a column of a run under this name."""
    rows: list[Score | Failure] = [*table.column_scores(column.name), *table.failures]
    return column_from_metric(column, rows, column_name)


def column_from_metric(
    column: Column,
    rows: Iterable[Score | Failure],
    column_name: str,
) -> RatedColumn:
    """Return a column under this name. `rows` may contain other columns' rows."""
    own_rows = [row for row in rows if row.column == column.name]
    scores = {row.key: row for row in own_rows if isinstance(row, Score)}
    values = {key: row.value for key, row in scores.items()}
    failed = frozenset(row.key for row in own_rows if isinstance(row, Failure))
    return RatedColumn(
        column_name,
        column.signature,
        values,
        criterion=column.criterion,
        scale=column if column.kind == "criterion" else None,
        failed=failed,
        scores=scores,
    )


def judges_of(table: Table, model: str) -> list[RatedColumn]:
    """Return the judges' columns: a panel's and its judges', or each criterion's.

    Those without a panel are under the model's name.
    """
    columns = [column for column in table.columns if column.kind == "criterion"]
    panels = {column.criterion for column in columns if column.judge}
    judges: list[RatedColumn] = []
    for column in columns:
        judge_name = _judge_name(column, model, has_panel=criterion(column) in panels)
        rated_column = column_from_table(column, table, judge_name)
        judges.append(replace(rated_column, criterion=criterion(column), scale=column))
    return judges


def _judge_name(column: Column, model: str, *, has_panel: bool) -> str:
    """Return the name of a judge's column: its judge, panel, model or criterion.

    Scores of a judge in the data have no model.
    """
    if column.judge:
        return column.judge
    if has_panel:
        return f"panel {column.panel}"
    if column.signature.is_external:
        return "judge"
    return model or criterion(column)


def baselines_without_judge(
    table: Table,
    samples: Sequence[Sample],
    *,
    measure: bool,
) -> list[RatedColumn]:
    """Return scores from elsewhere, the length in words of texts, and all metrics of the run.

    A report and `judge validate` thus compare a judge with the same baselines. Only if the run has
    no metric of its own, and with `measure`, ROUGE is measured on texts with references: the
    stemmed F, averaged over references.
    """
    metrics = [column for column in table.columns if column.kind == "metric"]
    # A value of all texts together cannot be compared with the rating of one text.
    of_texts = [column for column in metrics if column.name not in table.corpus_columns]
    external = [column for column in of_texts if column.signature.is_external]
    own_metrics = [column for column in of_texts if not column.signature.is_external]
    columns = [_metric_column(column, table) for column in external]
    # A table of scores may have no texts.
    if any(sample.output.strip() for sample in samples):
        columns.append(_length(samples))
    columns += [_metric_column(column, table) for column in own_metrics]
    if measure and not own_metrics:
        columns += _measured_rouge(samples)
    return columns


def _metric_column(column: Column, table: Table) -> RatedColumn:
    """Return a metric, reversed if lower is better: a good score then correlates positively."""
    metric = column_from_table(column, table, _ROUGE.get(column.name, column.name))
    metric = replace(metric, directed=bool(column.better))
    return _reversed(metric) if column.better == "lower" else metric


def _length(samples: Sequence[Sample]) -> RatedColumn:
    """Return the length of each text in words."""
    tokenizers = {
        sample.output: text.tokenizer_for([sample.output]) for sample in samples
    }
    lengths: dict[Text, float] = {}
    for sample in samples:
        words_of = text.words(tokenizers[sample.output])
        lengths[sample.key] = float(len(words_of(sample.output)))
    signatures = {text.signature(tokenizer) for tokenizer in tokenizers.values()}
    names = "+".join(sorted(signatures))
    signature = Signature("words", f"tok={names}", f"judge {__version__}")
    # Whether people prefer long or short texts depends on the data.
    return RatedColumn("length", signature, lengths, directed=False)


def _reversed(column: RatedColumn) -> RatedColumn:
    """Return a column with the opposite sign; `reversed` is added to its name or removed."""
    values = {key: -value for key, value in column.values.items()}
    column_name = column.name.removesuffix(_REVERSED)
    if column_name == column.name:
        column_name += _REVERSED
    return replace(column, name=column_name, values=values)


def same_direction(
    baselines: Sequence[RatedColumn],
    judges: Sequence[RatedColumn],
) -> list[RatedColumn]:
    """Return the baselines with the better end of the criterion that the judges scored.

    If lower is better on the criterion, people's low ratings are the good ones. Baselines without a
    better direction stay as they are.
    """
    scales = [judge.scale for judge in judges if judge.scale]
    lower_is_better = any(scale.better == "lower" for scale in scales)
    if not lower_is_better:
        return list(baselines)
    return [
        _reversed(baseline) if baseline.directed else baseline for baseline in baselines
    ]


def _measured_rouge(samples: Sequence[Sample]) -> list[RatedColumn]:
    """Measure ROUGE; return no column if no sample has references."""
    if not any(sample.references for sample in samples):
        return []
    rouge = plugins.load("metrics", "rouge")(types=list(_MEASURED), multi="mean")
    scored = parallel.score_in_parallel(rouge, samples)
    rows = scored.rows
    return [
        column_from_metric(column, rows, _ROUGE[column.name])
        for column in scored.columns
    ]
