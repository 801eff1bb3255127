"""The features as columns of the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal

from judge import text
from judge.core.errors import ConfigError, DataError
from judge.core.messages import option
from judge.core.records import ABSTAINED, Column, Failure, Provenance, Sample, Score
from judge.core.version import __version__
from judge.metrics import MetricResult
from judge.metrics.common import choice_option, failure, joined, list_option, texts, tokenizer_loss
from judge.metrics.common import tokenizer as known
from judge.metrics.text_features.features import OF_SOURCE, Features, measured

NAMES = tuple(field.name for field in fields(Features))
DEFAULT = (
    "words",
    "sentences",
    "coverage",
    "density",
    "compression",
    "novel2",
    "repeated3",
    "js_divergence",
    "number_support",
    "entity_support",
    "defects",
)
_UNBOUNDED = (
    "words",
    "sentences",
    "characters",
    "adjacent_duplicates",
    "density",
    "compression",
    "doubled_words",
    "defects",
)
_BETTER: dict[str, Literal["higher", "lower"]] = {
    "number_support": "higher",
    "entity_support": "higher",
    "adjacent_duplicates": "lower",
    "no_end": "lower",
    "fragments": "lower",
    "doubled_words": "lower",
    "defects": "lower",
}
_OF_NONE = {
    "number_support": 1.0,
    "entity_support": 1.0,
    "novel2": 0.0,
    "novel3": 0.0,
    "repeated2": 0.0,
    "repeated3": 0.0,
}
"""Values of shares of nothing: no number that is not in the source, no n-gram that is new."""
_MISSING = {
    "position": (ABSTAINED, "has no word of its source, so that what is copied has no place in it"),
    "js_divergence": (ABSTAINED, "has no content word, or its source has none: there is nothing to compare"),
}


class Stats:
    """Summary statistics of each output: length, copying from the source, novelty, repetition, surface defects.

    They describe and do not judge: most have no good end. `columns` names them without `stats_` (`Features` says what
    they are), or is `all`. Words are those of `text.words`, by `tokenizer` or by the script of the source.
    """

    rowwise: ClassVar[bool] = True

    def __init__(self, *, columns: str | Sequence[str] = DEFAULT, tokenizer: str | None = None) -> None:
        self._names = _columns(columns)
        self._tokenizer = known("stats.tokenizer", tokenizer)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """A row per sample and column. Without words in the output, all are `Failure`s.

        Without a source those that need one are. A share of nothing is 1 where it is a support share, for nothing
        lacks support, and else 0.
        """
        used: set[str] = set()
        found = measured(samples, tokenizer=self._tokenizer, used=used)
        rows = [_row(*each, name) for each in zip(samples, found, strict=True) for name in self._names]
        signed = f"tok={joined(map(text.signature, used))}|judge {__version__}"
        columns = tuple(_column(name, f"stats_{name}|text|{signed}") for name in self._names)
        given = (one for sample in samples for one in (sample.output, sample.source or ""))
        notes = (tokenizer_loss("stats", self._tokenizer, given),) if self._tokenizer else ()
        return MetricResult(columns, tuple(rows), notes)


def score(
    outputs: Sequence[str], sources: Sequence[str | None] | None = None, *, tokenizer: str | None = None
) -> list[Features]:
    """The features of each output, beside its source where one is given.

    Raises DataError for lists that do not fit, ConfigError for an unknown tokenizer, MissingExtra for one whose
    packages are missing.
    """
    given = [None] * len(texts("outputs", outputs)) if sources is None else list(sources)
    if isinstance(sources, str) or len(given) != len(outputs):
        raise DataError("outputs and sources are two lists of one length; None stands for a source that is not known")
    if not all(one is None or isinstance(one, str) for one in given):
        raise DataError("sources is a list of texts, with None for those that are not known")
    samples = [Sample(str(n), "", *pair) for n, pair in enumerate(zip(outputs, given, strict=True))]
    return measured(samples, tokenizer=known("stats.tokenizer", tokenizer))


def _columns(value: Any) -> tuple[str, ...]:
    if value == "all":
        return NAMES
    names = list_option(value)
    if not isinstance(names, list | tuple) or not names or len(set(map(str, names))) < len(names):
        raise ConfigError(f"stats.columns must be `all` or a list of different names, not {value!r}")
    return tuple(choice_option("stats.columns", name, NAMES) for name in names)


def _column(name: str, signature: str) -> Column:
    high = None if name in _UNBOUNDED else 1.0
    return Column(f"stats_{name}", "metric", signature, low=0.0, high=high, better=_BETTER.get(name, ""))


def _row(sample: Sample, features: Features, name: str) -> Score | Failure:
    value = getattr(features, name)
    column = f"stats_{name}"
    if not features.words:
        return failure(sample, column, "EmptyOutput", "has no words in its output: there is nothing to count")
    if name in OF_SOURCE and features.coverage is None:
        return no_source(sample, column)
    if value is None and name in _MISSING:
        return failure(sample, column, *_MISSING[name])
    number = _OF_NONE[name] if value is None else float(value)
    return Score(sample.item, sample.system, column, number, Provenance("metric"))


def no_source(sample: Sample, column: str) -> Failure:
    """The row of a column that needs a source with words, of a sample without one."""
    found = "no source" if sample.source is None else "a source without words"
    advice = f"add a column `source`, or name yours with {option('map', {'source': 'COLUMN'})}"
    return failure(sample, column, "NoSource", f"has {found}: {advice}")
