"""The default criteria. Only texts that look like summaries have any."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from statistics import median_low

from judge import text
from judge.config import DEFAULT_CRITERIA
from judge.core.criterion_entry import is_name
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import listed, plural
from judge.core.messages import in_python, option
from judge.core.records import Criterion, Sample
from judge.criteria.loading import builtin, check_samples

# A text whose source is at least this many times as long looks like a summary
# (docs/decisions/0093-only-summaries-have-default-criteria.md).
_SUMMARY_RATIO = 2.0
# Words are counted in at most this many texts, which are evenly spread over the data.
_MAX_TEXTS = 2_000
# What a message proposes: built-in criteria, and how a question of one's own is written.
_EXAMPLES = ("relevance", "fluency")
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
    ratio = source_ratio(rows)
    if ratio is not None and ratio >= _SUMMARY_RATIO:
        return DEFAULT_CRITERIA
    choices = _choices(rows, pairwise=pairwise, metrics=metrics, rated=rated)
    raise _no_default(_why_no_summaries(rows, ratio), choices)


def no_default_of_unwritten() -> ConfigError:
    """Return the error for outputs that do not exist yet, so that nobody knows their kind."""
    choices = _choices((), pairwise=False, metrics=True, rated=())
    return _no_default("the outputs of these systems are not written yet", choices)


def _no_default(reason: str, choices: str) -> ConfigError:
    return ConfigError(
        f"no criteria: {listed(DEFAULT_CRITERIA)} are the default for summaries only, "
        f"and {reason}. Name criteria: {choices}"
    )


def source_ratio(rows: Sequence[Sample]) -> float | None:
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
            ratios.append(text.count_words(row.source or "") / n_words)
    return median_low(ratios) if any(ratios) else None


def _why_no_summaries(rows: Sequence[Sample], ratio: float | None) -> str:
    """Say why the texts do not look like summaries."""
    n_sources = sum(bool(row.source and row.source.strip()) for row in rows)
    if not n_sources:
        source = option("map", {"source": "COLUMN"})
        return f"these texts have no source ({source} names its column)"
    if 2 * n_sources <= len(rows):
        return f"only {n_sources:,} of these {plural(len(rows), 'text')} have a source"
    if not ratio:
        return "these texts or their sources have no words"
    # Rounded down, so that 1.999 does not read as the 2 that it does not reach.
    rounded = math.floor(100 * ratio) / 100
    return (
        "these texts look like answers, translations or other versions of their sources: the "
        f"median source is {rounded:g} times as long as its output, and that of a summary at least "
        f"{_SUMMARY_RATIO:g} times"
    )


def _choices(
    rows: Sequence[Sample], *, pairwise: bool, metrics: bool, rated: Collection[str]
) -> str:
    """Return the ways to name criteria, with the option or the argument that the reader writes.

    For example `--criteria fluency (built in, for these texts: fluency and fluency_5); or
    --criteria "helpful: Does the answer help?" for a question of your own`.
    """
    builtin_criteria = builtin(pairwise=pairwise)
    builtin_names = {criterion.name for criterion in builtin_criteria}
    fitting = [criterion.name for criterion in builtin_criteria if _fits(criterion, rows)]
    examples = [name for name in fitting if name in rated]
    if not examples:
        examples = [name for name in _EXAMPLES if name in fitting]
    # A criterion that people rated and that is not built in needs the user's own question.
    own_names = [name for name in rated if is_name(name) and name not in builtin_names]
    question = f"{own_names[0]}: QUESTION" if own_names else _OWN_QUESTION
    # A shell needs the quotes; in Python, `option` adds them.
    quoted_question = question if in_python() else f'"{question}"'
    no_criteria = [] if in_python() else "none"
    choices = []
    if examples:
        choices.append(
            f"{option('criteria', examples)} (built in, for these texts: {listed(fitting)})"
        )
    choices.append(f"{option('criteria', quoted_question)} for a question of your own")
    if metrics:
        choices.append(f"{option('criteria', no_criteria)} for metrics alone")
    return "; or ".join(choices)


def _fits(criterion: Criterion, rows: Sequence[Sample]) -> bool:
    """Return whether the texts have what the criterion reads, such as a source."""
    try:
        check_samples(criterion, rows)
    except (CriterionError, DataError):
        return False
    return True
