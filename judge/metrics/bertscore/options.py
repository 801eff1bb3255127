"""The options of BERTScore, checked."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judge.core.errors import ConfigError
from judge.metrics.bertscore.matching import HIGH, LOW

_CHOICES = {"precision": ("fp32", "bf16"), "backend": ("torch", "onnx"), "long": ("window", "cut")}


@dataclass(frozen=True, slots=True)
class Options:
    """What `BertScore` takes, with the same names and defaults; raises ConfigError for what it cannot be."""

    model: str | None = None
    layer: int | None = None
    idf: bool | Sequence[str] = False
    rescale: bool = False
    baseline: str | None = None
    lang: str | None = None
    precision: str = "fp32"
    backend: str = "torch"
    long: str = "window"
    device: str | None = None
    batch_tokens: int | None = None
    low: float = LOW
    high: float = HIGH
    fit: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise _wrong(name, " or ".join(allowed), getattr(self, name))
        for name in ("model", "baseline", "lang", "device", "fit"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise _wrong(name, "a text", value)
        if not isinstance(self.rescale, bool):
            raise _wrong("rescale", "true or false", self.rescale)
        self._check_idf()
        self._check_numbers()
        self._check_together()

    def _check_idf(self) -> None:
        if isinstance(self.idf, bool):
            return
        texts = None if isinstance(self.idf, str) or not isinstance(self.idf, Sequence) else list(self.idf)
        if not texts or not all(isinstance(text, str) for text in texts):
            raise _wrong("idf", "true, false or a list of texts", self.idf)

    def _check_numbers(self) -> None:
        if self.layer is not None and not (_whole(self.layer) and self.layer >= 0):
            raise _wrong("layer", "a whole number from 0", self.layer)
        if self.batch_tokens is not None and not (_whole(self.batch_tokens) and self.batch_tokens >= 1):
            raise _wrong("batch_tokens", "a whole number from 1", self.batch_tokens)
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise _wrong(name, "a number", value)
        if not self.low < self.high:
            raise ConfigError(f"bertscore: low ({self.low:g}) has to be less than high ({self.high:g})")

    def _check_together(self) -> None:
        if self.backend == "onnx" and self.precision != "fp32":
            raise ConfigError(f"bertscore: precision {self.precision} needs backend torch; onnx computes in fp32")
        if self.rescale and not self.baseline and not self.lang:
            raise ConfigError(
                "bertscore: rescale needs lang, whose baseline bert-score brings (en), or baseline, a file"
            )
        if self.baseline and not self.rescale:
            raise ConfigError("bertscore: baseline is only used with rescale: true")

    @property
    def idf_signed(self) -> str:
        """What a signature says of idf: no, the references, or a digest of the user's own texts."""
        if isinstance(self.idf, bool):
            return "references" if self.idf else "no"
        texts = "\0".join(self.idf).encode("utf-8", "surrogatepass")
        return f"own@{hashlib.sha256(texts).hexdigest()[:8]}"


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _wrong(name: str, allowed: str, value: Any) -> ConfigError:
    return ConfigError(f"bertscore: {name} has to be {allowed}, not {value!r}")
