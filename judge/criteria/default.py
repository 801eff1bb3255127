"""The default criteria. Only texts that look like summaries have any; others get a proposal."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from statistics import median_low

from judge import text
from judge.config import DEFAULT_CRITERIA
from judge.core.criterion_entry import is_name
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import listed, plural
from judge.core.messages import command, in_python, option
from judge.core.records import Criterion, Sample
from judge.criteria.loading import Task, builtin, task_of
from judge.criteria.sample_checks import check_samples
from judge.data.answers import first_column
from judge.data.column_names import PASSAGE_COLUMNS, REFERENCE_COLUMNS, REQUEST_COLUMNS
from judge.data.conversations import MESSAGES

# A text whose source is at least this many times as long looks like a summary
# (docs/decisions/0093-only-summaries-have-default-criteria.md).
_SUMMARY_RATIO = 2.0
# Words are counted in at most this many texts, which are evenly spread over the data.
_MAX_TEXTS = 2_000
# The built-in criteria that a message proposes by task, if the texts have what they read.
_PROPOSED: dict[Task, tuple[str, ...]] = {
    "answers": ("overall", "answers_request", "complete", "correct", "grounded"),
    "summaries": ("relevance", "consistency", "fluency"),
}
_PURPOSES: dict[Task, str] = {
    "answers": "for answers",
    "summaries": "for summaries, translations and other versions of a source",
}
# The proposal for texts that have neither a source nor a request.
_PROPOSED_ALONE = ("fluency",)
_OWN_QUESTION = "helpful: Does the answer help?"


def default_criteria(
    rows: Sequence[Sample],
    *,
    pairwise: bool = False,
    metrics: bool = False,
    rated: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the default criteria of summaries.

    Raises ConfigError for other texts. The message says what they look like, which built-in
    criteria fit them, and how to name one:

    - with `pairwise`, it lists the criteria that compare two texts;
    - with `metrics`, it says that metrics need no criterion;
    - it proposes first the criteria that people `rated`.
    """
    if _look_like_summaries(rows):
        return DEFAULT_CRITERIA
    choices = _choices(rows, pairwise=pairwise, metrics=metrics, rated=rated)
    raise _no_default(_why_no_summaries(rows), choices)


def proposed_criteria(
    rows: Sequence[Sample], *, rated: Collection[str] = ()
) -> tuple[str, ...]:
    """Return criteria for a draft that a person edits: the default ones, or the criteria for answers.

    Raises ConfigError like `default_criteria` for texts that look like neither.
    """
    if _answer_columns(rows):
        fitting = [criterion.name for criterion in builtin() if _fits(criterion, rows)]
        proposed = [name for name in _PROPOSED["answers"] if name in fitting]
        if proposed:
            return tuple(proposed)
    return default_criteria(rows, rated=rated)


def builtin_rated(rows: Sequence[Sample], rated: Collection[str]) -> tuple[str, ...]:
    """Return the default criteria that people rated, and the rated ones of answers that fit."""
    names = [name for name in DEFAULT_CRITERIA if name in rated]
    for criterion in builtin():
        is_rated = criterion.name in rated
        if is_rated and task_of(criterion) == "answers" and _fits(criterion, rows):
            names.append(criterion.name)
    return tuple(names)


def no_default_of_unwritten() -> ConfigError:
    """Return the error for outputs that do not exist yet, so that nobody knows their kind."""
    choices = _choices((), pairwise=False, metrics=True, rated=())
    return _no_default("the outputs of these systems are not written yet", choices)


def _no_default(reason: str, choices: Sequence[str]) -> ConfigError:
    hint = ""
    if not in_python():
        list_criteria = command("criteria list")
        hint = f" ({list_criteria} shows all)"
    lines = [
        f"no criteria: only summaries have default ones, and {reason}. Name criteria{hint}:",
        *choices,
    ]
    return ConfigError("\n  ".join(lines))


def _answer_columns(rows: Sequence[Sample]) -> list[str]:
    """Return the columns with requests, conversations and passages, if most texts have one."""
    columns: dict[str, None] = {}
    groups = (REQUEST_COLUMNS, (MESSAGES,), PASSAGE_COLUMNS)
    n_answers = 0
    for row in rows:
        columns_of_groups = [first_column(row, group) for group in groups]
        present = [column for column in columns_of_groups if column]
        if present:
            columns |= dict.fromkeys(present)
            n_answers += 1
    return list(columns) if 2 * n_answers > len(rows) else []


def _look_like_summaries(rows: Sequence[Sample]) -> bool:
    """Return whether the sources are long enough, and no column makes the texts answers."""
    if _answer_columns(rows):
        return False
    ratio = _source_ratio(rows)
    return ratio is not None and ratio >= _SUMMARY_RATIO


def _source_ratio(rows: Sequence[Sample]) -> float | None:
    """Return the median ratio of a source's words to its output's words.

    Return None if no text has both. A text without a source counts as 0, so that the ratio is 0
    unless most texts have one. An output without words does not count. With an even number of
    texts, the lower of the two middle ratios is the median, because half of the texts are not most.
    """
    # Rounded up, so that at most `_MAX_TEXTS` rows remain.
    step = max(1, math.ceil(len(rows) / _MAX_TEXTS))
    ratios = []
    for row in rows[::step]:
        n_words = text.count_words(row.output)
        if n_words:
            n_source_words = text.count_words(row.source or "")
            ratios.append(n_source_words / n_words)
    return median_low(ratios) if any(ratios) else None


def _why_no_summaries(rows: Sequence[Sample]) -> str:
    """Say why the texts do not look like summaries."""
    columns = _answer_columns(rows)
    if columns:
        noun = "the column" if len(columns) == 1 else "the columns"
        return f"these texts look like answers: the data has {noun} {listed(columns)}"
    with_source = [row for row in rows if row.source and row.source.strip()]
    n_sources = len(with_source)
    if not n_sources:
        source = option("map", {"source": "COLUMN"})
        return f"these texts have no source ({source} names its column)"
    if 2 * n_sources <= len(rows):
        texts = plural(len(rows), "text")
        return f"only {n_sources:,} of these {texts} have a source"
    ratio = _source_ratio(rows)
    if not ratio:
        return "these texts or their sources have no words"
    # Rounded down, so that 1.999 does not read as the 2 that it does not reach.
    rounded = math.floor(100 * ratio) / 100
    return (
        f"the median source is {rounded:g} times as long as its output "
        f"(that of a summary: at least {_SUMMARY_RATIO:g} times)"
    )


def _choices(
    rows: Sequence[Sample],
    *,
    pairwise: bool,
    metrics: bool,
    rated: Collection[str],
) -> list[str]:
    """Return the ways to name criteria, with the option or the argument that the reader writes.

    For example `--criteria answers_request,complete (for answers)` and
    `--criteria "helpful: Does the answer help?" (your own question)`.
    """
    builtin_criteria = builtin(pairwise=pairwise)
    fitting = [criterion for criterion in builtin_criteria if _fits(criterion, rows)]
    choices = list(_builtin_choices(rows, fitting, rated))
    # A criterion that people rated and that is not built in needs the user's own question.
    builtin_names = {criterion.name for criterion in builtin_criteria}
    rated_names = [name for name in rated if is_name(name)]
    own_names = [name for name in rated_names if name not in builtin_names]
    question = f"{own_names[0]}: QUESTION" if own_names else _OWN_QUESTION
    # A shell needs the quotes; in Python, `option` adds them.
    quoted_question = question if in_python() else f'"{question}"'
    with_question = option("criteria", quoted_question)
    choices.append(f"{with_question} (your own question)")
    if metrics:
        no_criteria = option("criteria", [] if in_python() else "none")
        choices.append(f"{no_criteria} (metrics alone)")
    return choices


def _builtin_choices(
    rows: Sequence[Sample],
    fitting: Sequence[Criterion],
    rated: Collection[str],
) -> Iterator[str]:
    """Yield the option with the built-in criteria that fit the texts, for each task they may be of.

    Criteria that people rated come instead of the proposed ones.
    """
    names = [criterion.name for criterion in fitting]
    rated_names = [
        criterion_name for criterion_name in names if criterion_name in rated
    ]
    if rated_names:
        yield _proposal(rated_names, names, "rated by people")
        return
    tasks = _possible_tasks(rows)
    if not tasks:
        yield _proposal(_PROPOSED_ALONE, names, "for texts alone")
    for task in tasks:
        names_of_task = [
            criterion.name for criterion in fitting if task_of(criterion) == task
        ]
        proposal = _proposal(_PROPOSED[task], names_of_task, _PURPOSES[task])
        yield proposal + _missing_reference(rows, task, names_of_task)


def _possible_tasks(rows: Sequence[Sample]) -> tuple[Task, ...]:
    """Return the tasks that the texts may be of; none if there is nothing beside the texts."""
    if _answer_columns(rows):
        return ("answers",)
    has_source = any(row.source for row in rows)
    return ("answers", "summaries") if has_source or not rows else ()


def _proposal(proposed: Sequence[str], fitting: Sequence[str], purpose: str) -> str:
    """Write an option with the proposed criteria that fit, and their purpose."""
    with_criteria = option("criteria", [name for name in proposed if name in fitting])
    return f"{with_criteria} ({purpose})"


def _missing_reference(rows: Sequence[Sample], task: Task, names: Sequence[str]) -> str:
    """Say how to name the column that looks like reference answers, if `correct` lacks them."""
    if task != "answers" or "correct" in names or not rows:
        return ""
    column = first_column(rows[0], REFERENCE_COLUMNS)
    if not column:
        return ""
    with_references = option("map", {"references": column})
    return f", and correct with {with_references}"


def _fits(criterion: Criterion, rows: Sequence[Sample]) -> bool:
    """Return whether the texts have what the criterion reads, such as a source."""
    is_overall = criterion.name == "overall"
    if is_overall and any(first_column(row, REQUEST_COLUMNS) for row in rows):
        # It shows the source as the request, and here the request has a column of its own.
        return False
    try:
        check_samples(criterion, rows)
    except (CriterionError, DataError):
        return False
    return True
