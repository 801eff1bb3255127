"""Check before a run that the data have what a criterion's template reads."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.core.errors import CriterionError, DataError
from judge.core.messages import option
from judge.core.records import Criterion, Sample
from judge.criteria.checklist import has_questions, questions_of
from judge.criteria.render import (
    input_names,
    inputs,
    lacking_inputs,
    missing_message,
    template_variables,
)
from judge.criteria.template import builtin_prompts, template_texts
from judge.criteria.variables import location_of
from judge.data.answers import first_column
from judge.data.column_names import (
    ENGLISH_PASSAGE_COLUMNS,
    ENGLISH_REQUEST_COLUMNS,
    PASSAGE_COLUMNS,
    REFERENCE_COLUMNS,
    REQUEST_COLUMNS,
)
from judge.data.conversations import MESSAGES

# Names that people give to the two texts of a comparison, the one shown first before the other.
_NAMES_OF_TEXTS = (("a", "b"), ("1", "2"), ("first", "second"), ("one", "two"))
_TEXT_FIELDS = ("source", "reference", "references")


@dataclass(frozen=True, slots=True)
class _AnswerInput:
    """A variable that columns of several names can fill.

    `field` is its name in the option `map`. `english_columns` are those that a message lists.
    """

    field: str
    columns: Sequence[str]
    english_columns: Sequence[str]


_ANSWER_INPUTS = {
    "request": _AnswerInput("request", REQUEST_COLUMNS, ENGLISH_REQUEST_COLUMNS),
    "passages": _AnswerInput("contexts", PASSAGE_COLUMNS, ENGLISH_PASSAGE_COLUMNS),
}


def check_samples(criterion: Criterion, samples: Sequence[Sample]) -> None:
    """Check that the samples have what the criterion's template reads.

    Raises CriterionError for a variable that no sample has, for a template that never shows the
    judged text, and for a comparison whose scale does not say which text wins; DataError for a text
    that the data were read without (source, references). If only some samples lack something, they
    fail when they are rendered, and the others are judged.
    """
    if criterion.pairwise:
        _check_comparison(criterion)
    _check_inputs(criterion, samples)
    if criterion.questions_column:
        for sample in samples:
            if has_questions(criterion, sample):
                # Called only for its error: questions that cannot be read.
                questions_of(criterion, sample)
    if not criterion.pairwise and "output" not in criterion.needs:
        raise CriterionError(
            f"{criterion.path}: never shows the judged text; put "
            "{{ output | fenced('output') }} into it"
        )


def _check_comparison(criterion: Criterion) -> None:
    """Raise CriterionError if a comparison reads one text, or has a scale for one text."""
    if "output" in criterion.needs:
        location = location_of(criterion, template_texts(criterion), "output")
        raise CriterionError(
            f"{location}: a comparison has no output; its texts are first and second"
        )
    scale = criterion.scale
    if (scale.low, scale.high) != (0, 1):
        raise CriterionError(
            f"{criterion.path}: scale: a value is the share of the win for the text shown first: "
            "1 if that text is better, 0 if the other one is; "
            "write {labels: [A, B], values: [1, 0]}"
        )
    values = {}
    for label, value in zip(scale.labels, scale.values, strict=True):
        values[label.casefold()] = value
    # {labels: [A, B], values: [0, 1]} would turn every result into its opposite.
    for first_name, second_name in _NAMES_OF_TEXTS:
        first_value = values.get(first_name)
        second_value = values.get(second_name)
        if first_value is None or second_value is None:
            continue
        if first_value < second_value:
            raise CriterionError(
                f"{criterion.path}: scale: {first_name} is the text shown first, so it counts 1 "
                f"and {second_name} counts 0"
            )


def _check_inputs(criterion: Criterion, samples: Sequence[Sample]) -> None:
    """Raise the error of a variable that no text has, or DataError if every text lacks one."""
    if not samples:
        return
    inputs_of_samples = [input_names(criterion, sample) for sample in samples]
    for variable in sorted(inputs(criterion)):
        if not any(variable in present for present in inputs_of_samples):
            raise _missing_variable(criterion, variable, samples)
    missing_inputs = [lacking_inputs(criterion, sample) for sample in samples]
    if all(missing_inputs):
        variable = missing_inputs[0][0]
        message = missing_message(criterion, samples[0], variable)
        count = sum(variable in missing for missing in missing_inputs)
        raise DataError(
            f"{message}; {count} of {len(samples)} texts lack it, the others lack another column"
        )


def _missing_variable(
    criterion: Criterion,
    variable_name: str,
    samples: Sequence[Sample],
) -> CriterionError | DataError:
    """Return the error of a variable that no sample has."""
    present = _variables_of(criterion, samples)
    names = ", ".join(sorted(present))
    if variable_name == MESSAGES and criterion.judged == "conversation":
        column = option("map", {MESSAGES: "COLUMN"})
        return DataError(
            f"{criterion.path}: judges a conversation, and no text has messages before it; "
            f"{column} names their column (the data has: {names})"
        )
    location = location_of(criterion, template_texts(criterion), variable_name)
    reads = f"{location}: the criterion {criterion.name} reads {variable_name}"
    empty_column = _empty_column(variable_name, samples)
    if empty_column:
        problem = f"the column {empty_column} is empty in all texts"
        return DataError(f"{reads}, and {problem}")
    if variable_name in _ANSWER_INPUTS or variable_name in _TEXT_FIELDS:
        advice = _advice_on_missing(criterion, variable_name, samples[0])
        problem = f"{reads}, which no sample has"
        return DataError(f"{problem}; {advice} (the data has: {names})")
    if any(variable_name in sample.extra for sample in samples):
        return DataError(f"{reads}, which is empty in all texts")
    similar = difflib.get_close_matches(variable_name, sorted(present), n=1)
    hint = f"; did you mean {similar[0]!r}?" if similar else ";"
    return CriterionError(
        f"{location}: unknown variable {variable_name!r}{hint} the data has: {names}"
    )


def _variables_of(criterion: Criterion, samples: Sequence[Sample]) -> set[str]:
    """Return the variables that a template of the criterion can read from these samples."""
    present: set[str] = set()
    for sample in samples:
        # Messages list what the data has, and not what judge reads from other columns.
        derived = _ANSWER_INPUTS.keys() - sample.extra.keys()
        present.update(template_variables(sample).keys() - derived)
    present.discard("this")
    if criterion.pairwise:
        present.discard("output")
        present |= {"first", "second"}
    return present


def _empty_column(variable_name: str, samples: Sequence[Sample]) -> str:
    """Return the column of the data that fills a missing input, "" if the data have none.

    The input is missing because the column is empty, such as one with an empty list in each row.
    """
    if variable_name not in _ANSWER_INPUTS:
        return ""
    for column in _ANSWER_INPUTS[variable_name].columns:
        if any(column in sample.extra for sample in samples):
            return column
    return ""


def _advice_on_missing(criterion: Criterion, variable_name: str, sample: Sample) -> str:
    """Say how to name the column of a field or of an answer's input."""
    if variable_name in _ANSWER_INPUTS:
        answer_input = _ANSWER_INPUTS[variable_name]
        example = option("map", {answer_input.field: "COLUMN"})
        english_columns = ", ".join(answer_input.english_columns)
        advice = (
            f"name its column with {example} (judge looks for {english_columns}, and the like in "
            "Japanese, Korean and Chinese)"
        )
        if variable_name == "passages" and sample.source:
            return f"{advice}; a source without a request counts as the request"
        return advice
    guess = ""
    if variable_name == "source":
        guess = first_column(sample, (*REQUEST_COLUMNS, *PASSAGE_COLUMNS))
    elif variable_name == "references":
        guess = first_column(sample, REFERENCE_COLUMNS)
    example = option("map", {variable_name: guess or "COLUMN"})
    advice = f"name its column with {example}"
    if _is_builtin(criterion):
        return advice
    without = f"{{% block {variable_name} %}}{{% endblock %}}"
    if criterion.show:
        without = f"take {variable_name} out of show"
    return f"{advice}, or do without it: {without}"


def _is_builtin(criterion: Criterion) -> bool:
    return Path(criterion.path).is_relative_to(builtin_prompts())
