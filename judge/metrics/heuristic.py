"""Compute an offline baseline: nine surface features with equal weights and fixed signs. It is not a language model.

A column's value is the mean of its features' signed z-scores. Nothing was fitted to ratings, but the features of each
criterion and their signs were chosen with knowledge of correlations with SummEval's ratings (docs/heuristic.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log1p
from typing import Any, ClassVar

from judge import text
from judge.core.errors import ConfigError
from judge.core.format import plural
from judge.core.records import ABSTAINED, Column, Failure, Provenance, Sample, Score
from judge.core.version import __version__
from judge.metrics import MetricResult, Note
from judge.metrics.common import MetricOptions, choices_option, failure, setting, signed_words, tokenizer_note
from judge.metrics.common import tokenizer as tokenizer_option
from judge.metrics.text_features import Features, measured

__all__ = [
    "CRITERIA", "FEWEST_WORDS", "LARGEST_SHARE", "MOST_NOVEL", "NAME", "NOTICE", "Heuristic", "out_of_domain_reason",
    "score_index",
]  # fmt: skip

NAME = "heuristic-1"
NOTICE = (
    "heuristic-1 is a baseline of surface features, not a language model: it measures copying, repetition and length. "
    "Do not publish its numbers as a judge's scores."
)
FEWEST_WORDS = 5
LARGEST_SHARE = 0.5
"""The longest output, as a share of the source's words."""
MOST_NOVEL = 0.35
"""Share of novel bigrams above which copying says nothing of support."""
_WIDEST = 3.0  # of a z-score, and so of a value
_percent = "{:.0%}".format
_OTHER_SCRIPT = "have a non-Latin source: heuristic-1's scales were measured on English news"


@dataclass(frozen=True, slots=True)
class _Scale:
    """A feature's mean and standard deviation over the 1,600 outputs of SummEval; no rating was used.

    `label` names the feature in a reason, `format` writes its value there, and `read` gets it from the features.
    """

    mean: float
    sd: float
    label: str
    read: Callable[[Features], float | None]
    format: Callable[[float], str] = lambda value: f"{value:.2f}".rstrip("0").rstrip(".")

    def z(self, features: Features) -> float:
        return max(-_WIDEST, min(_WIDEST, (self.value(features) - self.mean) / self.sd))

    def value(self, features: Features) -> float:
        return self.read(features) or 0.0  # the share of no numbers; other Nones are out of domain


_SCALES = {
    "novel2": _Scale(0.09983, 0.1504, "novel bigrams", lambda f: f.novel2, _percent),
    "numbers": _Scale(
        0.008062,
        0.08135,
        "numbers not in the source",
        lambda f: None if f.number_support is None else 1 - f.number_support,
        _percent,
    ),
    "adjacent": _Scale(0.06062, 0.2729, "words repeated at once", lambda f: f.adjacent_duplicates),
    "repeated2": _Scale(0.03729, 0.0613, "repeated bigrams", lambda f: f.repeated2, _percent),
    "js": _Scale(0.4907, 0.109, "divergence from the source", lambda f: f.js_divergence),
    "sentences": _Scale(3.114, 0.8137, "sentences", lambda f: f.sentences),
    "density": _Scale(
        3.003, 0.8852, "density of copying", lambda f: log1p(f.density or 0.0), lambda value: f"{exp(value) - 1:.1f}"
    ),
    "nearest": _Scale(0.7454, 0.2002, "likeness to the nearest source sentences", lambda f: f.best_sentence),
    "no_end": _Scale(0.06438, 0.2454, "missing end punctuation", lambda f: f.no_end),
}
_SIGNS: dict[str, dict[str, int]] = {
    "relevance": {"js": -1, "repeated2": -1},
    "coherence": {"repeated2": -1, "sentences": -1, "density": 1, "nearest": 1},
    "consistency": {"novel2": -1, "numbers": -1, "adjacent": -1},
    "fluency": {"novel2": -1, "no_end": -1, "adjacent": -1, "repeated2": -1},
}
_COLUMNS = {
    "relevance": "relevance",
    "coherence": "coherence",
    "consistency": "extractive_support",
    "fluency": "surface_fluency",
}
CRITERIA = tuple(_SIGNS)


def _text_option(option: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{option} must be text, not {value!r}")
    return value


@dataclass(frozen=True, kw_only=True)
class Heuristic(MetricOptions):
    """An offline baseline of nine surface features (-3 to 3, 0 the average of SummEval's systems); no language model.

    `criteria` names the columns: relevance, coherence, consistency (column `extractive_support`: it measures copying,
    not truth) and fluency (`surface_fluency`: it measures defects, not grammar). It abstains if the output has fewer
    than 5 words or more than half as many as the source, if more than 35% of its bigrams are novel, or without a
    source. `tokenizer` or the script defines words; `prefix` precedes the columns' names.
    """

    name: ClassVar[str] = "heuristic"
    rowwise: ClassVar[bool] = True
    criteria: str | Sequence[str] = setting(
        CRITERIA, choices_option, CRITERIA, f"heuristic.criteria must be distinct values of {', '.join(CRITERIA)}"
    )
    prefix: str = setting("heuristic_", _text_option)
    tokenizer: str | None = setting(None, tokenizer_option)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return a row per sample and criterion: an index with its features as reason, or a `Failure` "Abstained"."""
        used: set[str] = set()
        features = measured(samples, tokenizer=self.tokenizer, used=used)
        rows: list[Score | Failure] = []
        for sample, sample_features in zip(samples, features, strict=True):
            outside = out_of_domain_reason(sample_features)
            for criterion in self.criteria:
                name = self._column(criterion)
                if outside:
                    rows.append(failure(sample, name, ABSTAINED, f"is outside the range of {NAME}: {outside}"))
                    continue
                signed_values = _signed(sample_features, criterion)
                reasons = []
                for feature in sorted(signed_values, key=lambda feature: -abs(signed_values[feature])):
                    scale, signed_value = _SCALES[feature], round(signed_values[feature], 1) + 0.0
                    value, typical = scale.format(scale.value(sample_features)), scale.format(scale.mean)
                    reasons.append(f"{scale.label} {value} (typical {typical}) {signed_value:+.1f}")
                provenance = Provenance(NAME, reason="; ".join(reasons))
                rows.append(Score(sample.item, sample.system, name, _mean(signed_values), provenance))
        signed = f"{signed_words(used)}|judge {__version__}"
        columns = []
        for criterion in self.criteria:
            name = self._column(criterion)
            signs = "".join(f"{'-' if sign < 0 else '+'}{feature}" for feature, sign in _SIGNS[criterion].items())
            column = Column(name, "metric" if self.prefix else "criterion", f"{name}|{NAME}|{signs}|{signed}")
            # Not part of an overall score.
            columns.append(replace(column, low=-_WIDEST, high=_WIDEST, criterion=criterion, weight=0.0))
        sources = {sample.source for sample in samples if sample.source}
        foreign = {source for source in sources if text.is_cjk(source)}
        note = Note("heuristic", sum(sample.source in foreign for sample in samples), len(samples), _OTHER_SCRIPT)
        all_texts = (string for sample in samples for string in (sample.output, sample.source or ""))
        suits = tokenizer_note("heuristic", self.tokenizer, all_texts)
        return MetricResult(tuple(columns), tuple(rows), (NOTICE, note, suits))

    def _column(self, criterion: str) -> str:
        return self.prefix + _COLUMNS[criterion]


def score_index(features: Features, criterion: str) -> float:
    """Return the value for a criterion, -3 to 3, even if `Heuristic` would abstain; for evaluating this baseline."""
    return _mean(_signed(features, criterion))


def _mean(signed: dict[str, float]) -> float:
    return sum(signed.values()) / len(signed)


def _signed(features: Features, criterion: str) -> dict[str, float]:
    """Return the z-scores of a criterion's features, positive if they are in the text's favour."""
    return {name: sign * _SCALES[name].z(features) for name, sign in _SIGNS[criterion].items()}


def out_of_domain_reason(features: Features) -> str | None:
    """Return why the baseline abstains, with the limit, or None."""
    if features.words < FEWEST_WORDS:
        return f"the output has {plural(features.words, 'word')}, fewer than {FEWEST_WORDS}"
    if features.compression is None or features.novel2 is None:
        return "there is no source to compare the output with"
    if features.compression * LARGEST_SHARE < 1:
        share = 1 / features.compression
        return f"the output has {share:.1%} as many words as the source, more than {LARGEST_SHARE:.0%}"
    if features.novel2 > MOST_NOVEL:
        return (
            f"{features.novel2:.1%} of its bigrams are not in the source, more than {MOST_NOVEL:.0%}: too abstractive "
            "to separate support from invention"
        )
    if features.js_divergence is None:
        return "output or source has no content word"
    return None
