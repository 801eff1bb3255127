"""Compute reference metrics: samples to scores. `judge.core.plugins.METRICS` lists the modules."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from judge.metrics.base import BaseMetric as BaseMetric
from judge.metrics.base import Metric as Metric
from judge.metrics.base import MetricContext as MetricContext
from judge.metrics.base import MetricResult as MetricResult
from judge.metrics.base import Note as Note

if TYPE_CHECKING:
    from judge.metrics import bertscore as bertscore
    from judge.metrics import bleu as bleu
    from judge.metrics import chrf as chrf
    from judge.metrics import cider as cider
    from judge.metrics import claims as claims
    from judge.metrics import diversity as diversity
    from judge.metrics import exact_match as exact_match
    from judge.metrics import meteor as meteor
    from judge.metrics import qags as qags
    from judge.metrics import rouge as rouge
    from judge.metrics import ter as ter
    from judge.metrics import text_features as text_features

_MODULES = (
    "bertscore", "bleu", "chrf", "cider", "claims", "diversity", "exact_match", "meteor", "qags",
    "rouge", "ter", "text_features",
)  # fmt: skip
"""Modules with functions for lists of texts."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
