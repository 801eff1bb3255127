"""The default criteria: those of summaries, for texts that look like summaries, and no others."""

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
# Texts whose words are counted, evenly spread over the data.
_MAX_TEXTS = 2_000
_EXAMPLES = ("relevance", "fluency")
_QUESTION = "helpful: Does the answer help?"


def default_criteria(
    rows: Sequence[Sample],
    *,
    pairwise: bool = False,
    metrics: bool = False,
    rated: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the criteria of summaries. Raises ConfigError if the texts do not look like summaries.

    The message says what the texts look like, which built-in criteria fit them (with `pairwise`,
    those that compare two texts), and how to name one. With `metrics`, it says that metrics need no
    criterion. `rated` are the criteria that people rated; the message proposes those first.
    """
    ratio = source_ratio(rows)
    if ratio is not None and ratio >= _SUMMARY_RATIO:
        return DEFAULT_CRITERIA
    choices = _choices(rows, pairwise=pairwise, metrics=metrics, rated=rated)
    raise _no_default(_described(rows, ratio), choices)


def no_default_of_unwritten() -> ConfigError:
    """Return the error of a run whose outputs are not written yet, so their kind is unknown."""
    choices = _choices((), pairwise=False, metrics=True, rated=())
    return _no_default("the outputs of these systems are not written yet", choices)


def _no_default(reason: str, choices: str) -> ConfigError:
    return ConfigError(
        f"no criteria: {listed(DEFAULT_CRITERIA)} are the default for summaries only, "
        f"and {reason}. Name criteria: {choices}"
    )


def source_ratio(rows: Sequence[Sample]) -> float | None:
    """Return how many times as long as its output the median source is, in words.

    None if no text has both. A text without a source counts as 0, so that the criteria of summaries
    are no default unless most texts have one. A text without words does not count. Of two medians,
    this is the lower one, because half of the texts are not most.
    """
    # Rounded up, so that at most `_MAX_TEXTS` rows remain.
    step = max(1, math.ceil(len(rows) / _MAX_TEXTS))
    ratios = []
    for row in rows[::step]:
        words = text.count_words(row.output)
        if words:
            ratios.append(text.count_words(row.source or "") / words)
    return median_low(ratios) if any(ratios) else None


def _described(rows: Sequence[Sample], ratio: float | None) -> str:
    """Say what texts look like that do not look like summaries."""
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
    """Return the ways to name criteria, as the reader writes them."""
    builtin_criteria = builtin(pairwise=pairwise)
    builtin_names = {criterion.name for criterion in builtin_criteria}
    fitting = [criterion.name for criterion in builtin_criteria if _fits(criterion, rows)]
    examples = [name for name in fitting if name in rated]
    if not examples:
        examples = [name for name in _EXAMPLES if name in fitting]
    # A criterion that people rated and that is not built in needs the user's own question.
    own_names = [name for name in rated if is_name(name) and name not in builtin_names]
    question = f"{own_names[0]}: QUESTION" if own_names else _QUESTION
    sentence = question if in_python() else f'"{question}"'
    ways = []
    if examples:
        ways.append(
            f"{option('criteria', examples)} (built in, for these texts: {listed(fitting)})"
        )
    ways.append(f"{option('criteria', sentence)} for a question of your own")
    if metrics:
        nothing = [] if in_python() else "none"
        ways.append(f"{option('criteria', nothing)} for metrics alone")
    return "; or ".join(ways)


def _fits(criterion: Criterion, rows: Sequence[Sample]) -> bool:
    """Return whether the texts have what the criterion reads."""
    try:
        check_samples(criterion, rows)
    except (CriterionError, DataError):
        return False
    return True
