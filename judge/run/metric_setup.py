"""Build the metrics of a run with their options, and check what they return."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Literal

from judge import text
from judge.cache import cache_location, metrics_folder
from judge.config import RankConfig, RunConfig
from judge.core import plugins
from judge.core.criterion_entry import name_of
from judge.core.errors import ConfigError, DataError, JudgeError
from judge.core.format import plural
from judge.core.messages import Remark, command, option
from judge.core.option_values import finite_number
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.data.conversations import ANSWERING, messages_before
from judge.metrics.base import Ask, BaseMetric, Metric, MetricContext, MetricResult
from judge.metrics.common import failure

_DEFAULT = ("rouge", "bleu", "chrf")


def default_metrics(
    config: RunConfig, rows: Sequence[Sample]
) -> tuple[tuple[str, ...], list[str]]:
    """Return the names of a run's metrics, with notes about them and the data."""
    names = config.metrics
    notes: list[str] = []
    if isinstance(config, RankConfig):
        if names:
            run = command("run")
            notes.append(Remark(f"A ranking has no metrics; {run} has them."))
        return (), notes
    if names is None:
        has_references = any(sample.references for sample in rows)
        names = _DEFAULT if has_references else ()
        # A table of scores may have no texts at all.
        if not names and not config.judge_columns:
            remark = Remark("The data has no references, so no ROUGE, BLEU or chrF.")
            notes.append(remark)
    if names:
        notes += _notes_on_texts(rows)
    return names, notes


def _notes_on_texts(rows: Sequence[Sample]) -> Iterator[str]:
    """Yield warnings about texts for which metrics mean little or miss a part."""
    n_other_script = sum(_in_other_script(sample) for sample in rows)
    if n_other_script:
        share = f"{n_other_script:,} of {len(rows):,}"
        yield (
            f"{share} outputs are in another script than their references: ROUGE, BLEU and chrF "
            "mean little there."
        )
    n_other_form = sum(_in_other_form(sample) for sample in rows)
    if n_other_form:
        share = f"{n_other_form:,} of {len(rows):,}"
        yield (
            f"{share} outputs are in Traditional Chinese and their references in Simplified, or "
            "the reverse, so that equal words differ: convert one side, for example with OpenCC."
        )
    yield from _unmeasured_answers(rows)


def _unmeasured_answers(rows: Sequence[Sample]) -> Iterator[str]:
    """Yield a note if conversations have answers that no metric reads."""
    n_conversations = 0
    for sample in rows:
        roles = [role for role, _ in messages_before(sample)]
        if ANSWERING in roles:
            n_conversations += 1
    if n_conversations:
        conversations = plural(n_conversations, "conversation")
        yield f"Metrics measure only the last answer of {conversations}, not the answers before it."


def _in_other_script(sample: Sample) -> bool:
    """Return whether an output is in another script than its references.

    A text without letters, such as a telephone number, is in none.
    """
    output = sample.output
    reference = "\n".join(sample.references)
    if not (text.main_script(output) and text.main_script(reference)):
        return False
    output_language = text.detect_language([output])
    reference_language = text.detect_language([reference])
    if {output_language, reference_language} == {"ja", "zh"}:
        # A few words in Han, such as 一年間, may be Japanese, so the text must be long enough.
        in_chinese = output if output_language == "zh" else reference
        return text.detect_language_or_none(in_chinese) == "zh"
    return output_language != reference_language


def _in_other_form(sample: Sample) -> bool:
    """Return whether one of output and references is Traditional Chinese, the other Simplified.

    A text whose characters are the same in both is neither.
    """
    form = _chinese_form(sample.output)
    if not form:
        return False
    forms_of_references = set(map(_chinese_form, sample.references))
    forms_of_references.discard("")
    return bool(forms_of_references) and form not in forms_of_references


def _chinese_form(string: str) -> str:
    """Return the form of a Chinese text; "" for another language, or if it has neither form."""
    form = text.han_form(string)
    # Japanese has characters of both forms.
    if form and text.detect_language([string]) == "zh":
        return form
    return ""


def precheck(metrics: Mapping[str, Metric], samples: Sequence[Sample]) -> None:
    """Raise DataError if no sample has the source or the references that a metric needs.

    Also raise the JudgeError of a metric's own `check` of the samples.
    """
    for metric_name, metric in metrics.items():
        field = metric.needs
        if field and not any(_has_text(sample, field) for sample in samples):
            needed = "a source" if field == "source" else "references"
            column = option("map", {field: "COLUMN"})
            raise DataError(
                f"{option('metrics')} {metric_name}: no text has {needed}, without which it has no "
                f"value; name their column with {column}, or leave out {metric_name}"
            )
        metric.check(samples)


def _has_text(sample: Sample, field: str) -> bool:
    """Return whether a sample has text in a field: `source` or `references`."""
    field_text = sample.source if field == "source" else "".join(sample.references)
    return bool(field_text and field_text.strip())


def build_metrics(
    config: RunConfig,
    names: Sequence[str],
    tell: Callable[[int, int], None],
    ask: Ask | None,
) -> dict[str, Metric]:
    """Build the metrics of these names with their options, and the one of score columns.

    Metrics call `tell` with the numbers of finished and of all samples, and `ask` to ask a judge.
    Raises ConfigError and MissingExtra.
    """
    for metric_name in config.set:
        if metric_name not in names:
            known = ", ".join(names) or "none"
            raise ConfigError(
                f"{option('set')} {metric_name}: this run does not have the metric "
                f"{metric_name!r} (it has: {known})"
            )
    cache = None
    if config.cache is not False:
        cache = metrics_folder(cache_location(config.cache))
    context = MetricContext(cache, tell, config.seed, config.language, ask)
    built: dict[str, Metric] = {}
    for metric_name in names:
        metric_options = config.set.get(metric_name, {})
        built[metric_name] = _build_metric(metric_name, metric_options, context)
    if config.score_columns and not isinstance(config, RankConfig):
        built[ScoreColumns.name] = _score_columns(config)
    return built


def _build_metric(
    metric_name: str,
    metric_options: Mapping[str, Any],
    context: MetricContext,
) -> Metric:
    """Return a metric with these options. Raises ConfigError for an option that it lacks."""
    metric_class = load_metric(metric_name)
    known_options = metric_class.option_fields()
    for key in metric_options:
        if key not in known_options:
            hint = plugins.unknown_name_message("option", key, sorted(known_options))
            raise ConfigError(f"{option('set')} {metric_name}.{key}: {hint}")
    metric: Metric = metric_class(**metric_options, context=context)
    return metric


def _score_columns(config: RunConfig) -> Metric:
    """Return the metric that reads `score_columns`.

    Raises ConfigError for a column that has the name of a criterion.
    """
    criterion_names = list(map(name_of, config.criteria or ()))
    for column_name in config.score_columns:
        if column_name in criterion_names:
            raise ConfigError(
                f"{option('score_columns')} {column_name}: a criterion has this name; rename the "
                "column"
            )
    return ScoreColumns(columns=config.score_columns)


@dataclass(frozen=True, kw_only=True)
class ScoreColumns(BaseMetric):
    """Scores from elsewhere: numbers in columns of the data, with the better end of each."""

    name: ClassVar[str] = "score columns"
    rowwise: ClassVar[bool] = True
    columns: Mapping[str, Literal["higher", "lower"]]

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise DataError for a column in which no text has a number."""
        known_columns = dict.fromkeys(
            column_name for sample in samples for column_name in sample.extra
        )
        for column_name in self.columns:
            cells = (sample.extra.get(column_name) for sample in samples)
            if any(finite_number(cell) is not None for cell in cells):
                continue
            problem = "no text has a number there"
            if column_name not in known_columns:
                problem = plugins.unknown_name_message(
                    "column", column_name, list(known_columns)
                )
            raise DataError(f"{option('score_columns')} {column_name}: {problem}")

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample and column: the number in its cell, or a Failure."""
        columns = []
        for column_name, better in self.columns.items():
            signature = Signature.external(
                column_name, lower_is_better=better == "lower"
            )
            columns.append(Column(column_name, "metric", signature, better=better))
        rows: list[Score | Failure] = []
        for sample in samples:
            rows += [_cell_score(sample, column_name) for column_name in self.columns]
        return MetricResult(tuple(columns), tuple(rows))


def _cell_score(sample: Sample, column_name: str) -> Score | Failure:
    """Return the score in a column of a sample's row."""
    cell = sample.extra.get(column_name)
    value = finite_number(cell)
    if value is not None:
        provenance = Provenance("metric", note="from the data")
        return Score(
            item=sample.item,
            system=sample.system,
            column=column_name,
            value=value,
            provenance=provenance,
        )
    problem = f"has {cell!r:.40} in {column_name}, not a number"
    if cell is None:
        problem = f"has no value in the column {column_name}"
    return failure(sample, column_name, "NoScore", problem)


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """A metric as `judge doctor metrics` shows it."""

    name: str
    description: str
    options: dict[str, Any]


def metrics() -> list[MetricInfo]:
    """Return every metric that a run may have, with its description and its options' defaults."""
    infos = []
    for metric_name in plugins.names("metrics"):
        try:
            metric_class = load_metric(metric_name)
        except (JudgeError, ImportError, AttributeError) as error:
            # A broken metric of another package must not hide the others.
            infos.append(MetricInfo(metric_name, f"cannot be loaded: {error}", {}))
            continue
        docstring = inspect.getdoc(metric_class) or ""
        summary = docstring.partition("\n\n")[0].replace("\n", " ")
        first_sentence = re.split(r"(?<=[.])\s", summary)[0]  # not cut inside `1.5`
        description = first_sentence.rstrip(".")
        infos.append(MetricInfo(metric_name, description, options(metric_name)))
    return infos


def load_metric(metric_name: str) -> Any:
    """Return the class of a metric, a `BaseMetric` with `score`.

    Raises ConfigError for an unknown name, and for a plug-in whose class is not a `BaseMetric`.
    """
    if metric_name not in plugins.names("metrics"):
        _refuse_type_of_rouge(metric_name)
    metric_class = plugins.load("metrics", metric_name)
    if not (isinstance(metric_class, type) and issubclass(metric_class, BaseMetric)):
        raise ConfigError(
            f"the metric {metric_name} is wrong: its class must be a dataclass derived from "
            "judge.metrics.BaseMetric"
        )
    return metric_class


def _refuse_type_of_rouge(metric_name: str) -> None:
    """Raise ConfigError for a type of ROUGE, such as `ROUGE-L` or `rouge_l`, named as a metric."""
    plain_name = metric_name.lower().replace("-", "").replace("_", "")
    for rouge_type in ("rouge1", "rouge2", "rougeL", "rougeLsum"):
        if plain_name == rouge_type.lower():
            alone = option("set", {"rouge": {"types": rouge_type}})
            raise ConfigError(
                f"unknown metric {metric_name!r}: it is a type of the metric rouge. Write "
                f"{option('metrics', 'rouge')} {alone}"
            )


def options(metric_name: str) -> dict[str, Any]:
    """Return the options of a metric with their defaults.

    Raises ConfigError as `load_metric` does.
    """
    known_options = load_metric(metric_name).option_fields()
    return {key: field.default for key, field in known_options.items()}


def check_result(
    metric_name: str, result: MetricResult, samples: Sequence[Sample]
) -> None:
    """Raise ConfigError if rows are missing, repeated, or of unknown texts or columns."""
    columns = {column.name for column in result.columns}
    systems = {sample.system for sample in samples}
    texts = {sample.key for sample in samples}
    # A corpus-level row has no item.
    texts |= {("", system) for system in systems}
    seen: set[tuple[str, str, str]] = set()
    for row in result.rows:
        key = (row.item, row.system, row.column)
        if row.column not in columns or row.key not in texts or key in seen:
            raise ConfigError(
                f"the metric {metric_name} is wrong: its row {key} has an unknown text or column, "
                "or occurs twice"
            )
        seen.add(key)
    counts = Counter(column for _, _, column in seen)
    for column in columns:
        # A value for each text, or for all texts of each system together.
        if counts[column] not in (len(samples), len(systems)):
            raise ConfigError(
                f"the metric {metric_name} is wrong: it has {counts[column]:,} rows of {column} "
                f"for {len(samples):,} texts"
            )


def finite_row(row: Score | Failure) -> Score | Failure:
    """Return the row, or a Failure if a plug-in's value is not a finite number.

    NumPy's numbers that are not Python's, such as `float32`, become floats.
    """
    if isinstance(row, Failure):
        return row
    # A plug-in may return a value of any type.
    value: object = row.value
    if isinstance(value, Real) and math.isfinite(value):
        return row if isinstance(value, float) else replace(row, value=float(value))
    message = f"the metric returned {value}"
    return Failure(
        item=row.item,
        system=row.system,
        column=row.column,
        stage="metric",
        error="NotANumber",
        message=message,
    )
