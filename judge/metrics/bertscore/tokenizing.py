"""A model's tokenizer, and what has to be known of it: its window, its special tokens, which tokens count nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from judge.core.errors import ConfigError
from judge.core.huggingface import backend, limit, optional

# bert-score's own rule for who gets a space before the first word, by the names these classes have had.
_SPACED = frozenset(
    f"{name}Tokenizer{fast}" for name in ("Roberta", "GPT2", "Bart", "Longformer") for fast in ("", "Fast")
)

_SPACED_MODELS = frozenset({"roberta", "bart", "gpt2", "longformer"})

Tokenize = Callable[[str], list[int]]
"""A text to its token ids, without special tokens and without any cut."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a model without loading it again.

    `limit` is how many tokens it reads at once, special ones counted; `prefix` and `suffix` stand around every text;
    `weightless` are the ids that count nothing; `spaced` says that a text begins with a space;
    `unknown` is the id of what is not in the vocabulary, -1 where everything is.
    """

    limit: int
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    weightless: tuple[int, ...]
    pad: int
    spaced: bool
    unknown: int = -1

    @property
    def room(self) -> int:
        """How many tokens of a text fit into one window."""
        return self.limit - len(self.prefix) - len(self.suffix)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any] | None) -> Facts | None:
        """The Facts that `to_dict` gave; None for anything else."""
        try:
            lists = {name: tuple(int(n) for n in fields[name]) for name in ("prefix", "suffix", "weightless")}  # type: ignore[index]
            limit, pad, spaced = int(fields["limit"]), int(fields["pad"]), bool(fields["spaced"])  # type: ignore[index]
            unknown = int(fields["unknown"])  # type: ignore[index]
        except (KeyError, TypeError, ValueError):
            return None
        return cls(limit=limit, pad=pad, spaced=spaced, unknown=unknown, **lists)


def facts(tokenizer: Any, config: Any) -> Facts:
    """Facts of a transformers tokenizer and configuration. Raises ConfigError for a tokenizer that fits neither."""
    inner = tokenizer.encode("a", add_special_tokens=False)
    whole = tokenizer.encode("a")
    starts = [n for n in range(len(whole) - len(inner) + 1) if whole[n : n + len(inner)] == inner]
    if not inner or not starts:
        raise ConfigError("bertscore: the model's tokenizer does not put its special tokens around a text; use another")
    at = starts[0]
    weightless = tuple(t for t in (tokenizer.cls_token_id, tokenizer.sep_token_id) if t is not None)
    return Facts(
        limit=limit(tokenizer, config),
        prefix=tuple(whole[:at]),
        suffix=tuple(whole[at + len(inner) :]),
        weightless=weightless,
        pad=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0,
        spaced=_spaced(tokenizer, config),
        unknown=tokenizer.unk_token_id if tokenizer.unk_token_id is not None else -1,
    )


def _spaced(tokenizer: Any, config: Any) -> bool:
    """Whether the model was made for words with the space before them, and its tokenizer does not put one itself."""
    named = any(kind.__name__ in _SPACED for kind in type(tokenizer).__mro__)
    if not named and config.model_type not in _SPACED_MODELS:
        return False
    if backend(tokenizer) is None:
        return named
    first = json.loads(backend(tokenizer).to_str()).get("pre_tokenizer") or {}
    parts = first.get("pretokenizers", [first])
    return any(part.get("type") == "ByteLevel" and not part.get("add_prefix_space") for part in parts)


def from_transformers(tokenizer: Any, known: Facts) -> Tokenize:
    """How a loaded tokenizer cuts texts."""
    inside = backend(tokenizer)
    if inside is not None:
        return from_tokenizers(inside, known)
    return lambda text: list(tokenizer.encode(_begun(text, known), add_special_tokens=False, verbose=False))


def from_tokenizers(tokenizer: Any, known: Facts) -> Tokenize:
    """How a `tokenizers.Tokenizer` cuts texts. One text at a time, as in batches it warns of later forks."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: list(tokenizer.encode(_begun(text, known), add_special_tokens=False).ids)


def _begun(text: str, known: Facts) -> str:
    return f" {text}" if known.spaced else text


def saved(path: Path) -> Any:
    """What `Tokenizer.to_str` wrote into a file."""
    return optional("tokenizers", "bertscore", "onnx").Tokenizer.from_file(str(path))
