"""Compute the probability that a source entails an output (natural language inference, NLI).

A cross-encoder gives the probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from judge.core.errors import ConfigError
from judge.core.messages import option
from judge.core.records import Column, Sample
from judge.core.signature import Signature
from judge.metrics import MetricResult
from judge.metrics.base import BaseMetric, setting
from judge.metrics.claims import Claims
from judge.metrics.claims.cross_encoder import (
    WINDOW,
    CrossEncoder,
    label_option,
    locate,
)
from judge.metrics.common import text_option, whole_number

_SIZE = (whole_number, 1, 1_000_000)


@dataclass(frozen=True, kw_only=True, eq=False)
class Nli(BaseMetric):
    """The probability that the source entails the output: the mean over sentences of the maximum
    over windows.

    Zha et al. 2023 (AlignScore), section 3.3; with a sentence of the source as window it would be
    SummaC-ZS (Laban et al. 2022) without contradictions. `model` is a folder or a name on the
    Hugging Face hub: a sequence classifier that was trained for natural language inference or fact
    checking. `label` is the name or number of the class that means entailment, if its name is not
    a usual one. `window` is the number of tokens of the source that are read together; a third of
    them are shared with the next window. Raises ConfigError and MissingExtra.
    """

    name: ClassVar[str] = "nli"
    needs: ClassVar[str] = "source"
    model: str | None = setting(None, text_option)
    label: str | int | None = setting(None, label_option)
    window: int = setting(WINDOW, *_SIZE)
    device: str | None = setting(None, text_option)
    batch_tokens: int | None = setting(None, *_SIZE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is None:
            with_model = option("set", {"nli": {"model": "MODEL"}})
            raise ConfigError(
                f"nli needs a model: {with_model}, a folder or a "
                "name on the Hugging Face hub, such as "
                "MoritzLaurer/mDeBERTa-v3-base-xnli-multilingual-nli-2mil7"
            )
        self._encoder  # noqa: B018 - reports what is missing before a judge is paid

    @cached_property
    def _encoder(self) -> CrossEncoder:
        files = locate(self.model or "", who=self.name, cache=self.context.cache)
        progress = self.context.progress
        return CrossEncoder(
            files,
            self.label,
            self.window,
            self.device,
            self.batch_tokens,
            progress,
        )

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError for a model that cannot be loaded."""
        self._encoder.model  # noqa: B018 - loads the model

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample, with `judge.core.claims` records of its sentences.

        A sample is a `Failure` if it lacks one of the texts, or has a sentence that the model
        cannot read.
        """
        claims = Claims(unit="sentence", verify=self._encoder, value="mean", most=1_000)
        # With references, the claims metric would have two more columns.
        without_references = [replace(sample, references=()) for sample in samples]
        result = claims.score(without_references)
        rows = tuple(replace(row, column=self.name) for row in result.rows)
        signature = Signature(self.name, "mean", self._encoder.signature)
        column = Column(self.name, "metric", signature, low=0.0, high=1.0)
        return MetricResult((column,), rows, result.notes)
