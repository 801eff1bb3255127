"""The two models of the back end: found, checked and loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judge.core import huggingface
from judge.core.errors import ConfigError

GENERATOR, READER = "generator", "reader"
_HEADS = {GENERATOR: "AutoModelForSeq2SeqLM", READER: "AutoModelForQuestionAnswering"}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model on its device, ready to be read from."""

    files: huggingface.ModelFiles
    tokenizer: Any
    network: Any
    device: Any

    @property
    def batch_tokens(self) -> int:
        """How many tokens are worth reading together."""
        return huggingface.batch_tokens(self.device.type)

    @property
    def pad(self) -> int:
        """What fills up the shorter texts of a batch."""
        return self.tokenizer.pad_token_id or 0


def runtime() -> str:
    """What computes, for signatures: other versions may word a question otherwise. Raises MissingExtra."""
    return f"torch {huggingface.version('torch', 'qags')}|transformers {huggingface.version('transformers', 'qags')}"


def locate(role: str, model: str, cache: Path | None = None) -> huggingface.ModelFiles:
    """The files of a folder or of a name on the hub, downloaded where they are not on this machine yet.

    Raises ConfigError for a model that cannot be had, is not whole, or, for a reader, was not made to answer.
    """
    if not isinstance(model, str) or not model.strip():
        raise ConfigError(f"qags: {role} has to be a folder or a name on the Hugging Face hub, not {model!r}")
    files = huggingface.resolve(model, who="qags", what=role, cache=cache)
    made = files.config().get("architectures") or []
    # Said at once, as a reader is otherwise loaded only after all questions have been generated.
    if role == READER and made and not any("QuestionAnswering" in str(kind) for kind in made):
        raise files.error(
            f"it is a {made[0]}, which was not made to answer questions: name a model trained for extractive question "
            "answering (SQuAD)"
        )
    return files


def load(files: huggingface.ModelFiles, device: str | None) -> LoadedModel:
    """The model, on the GPU where there is one and no other device was named.

    Raises ConfigError where it cannot be loaded, lacks weights or the device is not there.
    """
    chosen = huggingface.device(device, who="qags")
    tokenizer, network = huggingface.load(files, _HEADS[files.what])
    return LoadedModel(files, tokenizer, huggingface.to_device(files, network, chosen), chosen)
