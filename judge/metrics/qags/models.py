"""The back end `models`: questions by a T5-style generator, answers by an extractive reader, any of transformers'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judge.core.errors import ConfigError
from judge.metrics.qags.extractive_qa import ExtractiveReader
from judge.metrics.qags.pipeline import Answers, Questions, Tell
from judge.metrics.qags.question_generation import TEMPLATE, Generator
from judge.metrics.qags.weights import GENERATOR, READER, locate, runtime


def open(
    *,
    generator: str,
    reader: str,
    device: str | None = None,
    batch_tokens: int | None = None,
    beams: int = 4,
    question_tokens: int = 32,
    input_tokens: int = 128,
    template: str = TEMPLATE,
    null: bool = True,
    cache: str | Path | None = None,
    progress: Tell | None = None,
) -> tuple[Questions, Answers]:
    """The two stages. `generator` and `reader` are folders made by save_pretrained or names on the Hugging Face hub.

    The generator is given `template` with {theme} and {context}, or with {before}, {theme} and {after} where a model
    wants the theme marked in its place; `input_tokens` at most, and `question_tokens` of reply by beam search. With
    `null` the reader may say that a text does not answer, which only models trained on such questions know to do.
    Of the generator's own settings only the tokens are followed that begin and end its texts or may not be in them.
    Batches have `batch_tokens` tokens at most, where those of each beam count. `cache` is the folder where the models'
    digests are kept. `progress` is called in each stage with how many are done of how many.

    Files are found, or downloaded, here; models are loaded when first used. Raises ConfigError for a setting or a
    model that cannot be used, MissingExtra for a package that is not installed.
    """
    counts = {"beams": beams, "question_tokens": question_tokens, "input_tokens": input_tokens}
    _check_counts(counts if batch_tokens is None else counts | {"batch_tokens": batch_tokens})
    _check_kinds(null, device)
    runtime()  # what is not installed is said before anything is downloaded
    kept = None if cache is None else Path(cache)
    found = locate(GENERATOR, generator, kept), locate(READER, reader, kept)
    questions = Generator(
        found[0],
        template=template,
        **counts,
        device=device,
        batch_tokens=batch_tokens,
        progress=progress,
    )
    return questions, ExtractiveReader(found[1], null=null, device=device, batch_tokens=batch_tokens, progress=progress)


def _check_kinds(null: Any, device: Any) -> None:
    if not isinstance(null, bool):
        raise ConfigError(f"qags: null has to be true or false, not {null!r}")
    if device is not None and not isinstance(device, str):
        raise ConfigError(f"qags: device has to be a text such as cpu or cuda:0, not {device!r}")


def _check_counts(counts: dict[str, int]) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"qags: {name} has to be a whole number from 1, not {value!r}")
