"""Tokenize and encode texts for BERTScore with a model of transformers and torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.core.huggingface import backend, limit
from judge.metrics.bertscore.models import Model

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# bert-score's rule for a space before the first word, by past names of these classes.
_SPACED = frozenset(
    [
        "RobertaTokenizer",
        "RobertaTokenizerFast",
        "GPT2Tokenizer",
        "GPT2TokenizerFast",
        "BartTokenizer",
        "BartTokenizerFast",
        "LongformerTokenizer",
        "LongformerTokenizerFast",
    ]
)
_SPACED_MODELS = frozenset({"roberta", "bart", "gpt2", "longformer"})

Tokenize = Callable[[str], list[int]]
"""A text to its token ids, without special tokens and without any cut."""


@dataclass(frozen=True, slots=True)
class TokenizerInfo:
    """Facts about a model's tokenizer.

    `limit` is the number of tokens it reads at once, including special ones; `prefix` and `suffix`
    surround every text; `weightless` are ids with weight 0; `pad` is the id that fills shorter
    texts up; `spaced` means that a text begins with a space; `unknown` is the id of unknown tokens,
    or -1.
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
        """Return how many tokens of a text fit into one window."""
        return self.limit - len(self.prefix) - len(self.suffix)


def facts(tokenizer: Any, config: Any) -> TokenizerInfo:
    """Return the facts of a transformers tokenizer and configuration.

    Raise ConfigError if the tokenizer is unsupported.
    """
    # The special tokens are what surrounds the tokens of any text.
    inner = tokenizer.encode("a", add_special_tokens=False)
    encoded = tokenizer.encode("a")
    size = len(inner)
    positions = range(len(encoded) - size + 1)
    starts = [start for start in positions if encoded[start : start + size] == inner]
    if not inner or not starts:
        raise ConfigError(
            "bertscore: the model's tokenizer does not put its special tokens around a text; use "
            "another"
        )
    prefix = encoded[: starts[0]]
    suffix = encoded[starts[0] + size :]
    # Tokenizers lack some of these: GPT-2's has no padding, a byte-level one no unknown token.
    special = (tokenizer.cls_token_id, tokenizer.sep_token_id)
    weightless = tuple(token_id for token_id in special if token_id is not None)
    pad = tokenizer.pad_token_id
    if pad is None:
        pad = 0
    unknown = tokenizer.unk_token_id
    if unknown is None:
        unknown = -1
    return TokenizerInfo(
        limit=limit(tokenizer, config),
        prefix=tuple(prefix),
        suffix=tuple(suffix),
        weightless=weightless,
        pad=pad,
        spaced=_needs_space(tokenizer, config),
        unknown=unknown,
    )


def _needs_space(tokenizer: Any, config: Any) -> bool:
    """Return whether a model expects a space before the first word and its tokenizer adds none."""
    classes = type(tokenizer).__mro__
    class_names = [tokenizer_class.__name__ for tokenizer_class in classes]
    by_class = not _SPACED.isdisjoint(class_names)
    if not by_class and config.model_type not in _SPACED_MODELS:
        return False
    inside = backend(tokenizer)
    if inside is None:
        return by_class
    pretokenizer = json.loads(inside.to_str()).get("pre_tokenizer") or {}
    # A sequence has steps; another pretokenizer is the only step.
    steps = pretokenizer.get("pretokenizers", [pretokenizer])
    byte_level = [step for step in steps if step.get("type") == "ByteLevel"]
    return any(not step.get("add_prefix_space") for step in byte_level)


def from_transformers(tokenizer: Any, info: TokenizerInfo) -> Tokenize:
    """Return a function that tokenizes texts with a loaded tokenizer."""
    inside = backend(tokenizer)
    if inside is not None:
        return from_tokenizers(inside, info)

    def tokens(text: str) -> list[int]:
        spaced = _with_space(text, info)
        return list(tokenizer.encode(spaced, add_special_tokens=False, verbose=False))

    return tokens


def from_tokenizers(tokenizer: Any, info: TokenizerInfo) -> Tokenize:
    """Return a function that tokenizes texts with a `tokenizers.Tokenizer`.

    It takes one text at a time, because batches warn about forks.
    """
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokens(text: str) -> list[int]:
        spaced = _with_space(text, info)
        return list(tokenizer.encode(spaced, add_special_tokens=False).ids)

    return tokens


def _with_space(text: str, info: TokenizerInfo) -> str:
    return f" {text}" if info.spaced else text


# Attributes that hold the layers of an encoder, as BERT's encoder.layer or GPT-2's h
_STACKS = (
    "layer",
    "block",
    "layers",
    "h",
    "encoder.layer",
    "encoder.block",
    "encoder.layers",
    "transformer.layer",
)


class TorchEncoder:
    """A model on a device: a GPU if there is one and none was named."""

    def __init__(self, model: Model, precision: str, device: str | None) -> None:
        dtype = "bfloat16" if precision == "bf16" else "float32"
        loaded = load(model, device, dtype=dtype)
        self._loaded = loaded
        self.facts: TokenizerInfo = facts(loaded.tokenizer, loaded.network.config)
        self.tokens = from_transformers(loaded.tokenizer, self.facts)
        self.batch_tokens = loaded.batch_tokens

    def hidden(self, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]:
        """Return the layer's output for texts read together, each of shape (tokens, dimensions)."""
        # Of shape (texts, tokens, dimensions).
        (vectors,) = self._loaded.outputs(ids, "last_hidden_state")
        # Padding follows the tokens of a shorter text.
        return [vectors[index, : len(text_ids)] for index, text_ids in enumerate(ids)]


def load(
    model: Model, device: str | None, **load_options: Any
) -> huggingface.LoadedModel:
    """Load a model whose network ends after the layer. Raise ConfigError if that fails."""
    loaded = huggingface.load_on(
        model, "AutoModel", device, spare=_is_unused, **load_options
    )
    return replace(loaded, network=cut(loaded.network, model))


def _is_unused(weight: str) -> bool:
    """Return whether no layer of the encoder needs a weight, so that a model may lack it."""
    return "pooler" in weight or weight.startswith("decoder.")


def cut(network: Any, model: Model) -> Any:
    """Return the network's encoder without the layers after the model's layer.

    Its last output is then the output of that layer.
    """
    stack = huggingface.import_optional("torch", "bertscore").nn.ModuleList
    if hasattr(network, "decoder") and hasattr(network, "encoder"):
        network = network.encoder
    paths = [*_STACKS]
    # ALBERT uses one group of weights repeatedly, and XLM (`n_layers`) states a number: there the
    # number of layers is cut.
    if hasattr(getattr(network, "encoder", None), "albert_layer_groups"):
        paths.append("encoder.config.num_hidden_layers")
    paths.append("n_layers")
    for path in paths:
        *parents, attribute = path.split(".")
        holder = network
        for parent_name in parents:
            holder = getattr(holder, parent_name, None)
        layers = getattr(holder, attribute, None)
        if isinstance(layers, int):
            count = layers
            remaining = model.layer
        elif isinstance(layers, stack):
            count = len(layers)
            remaining = layers[: model.layer]
        else:
            continue
        if model.layer > count:
            raise model.error(f"layer must be 0 to {count}, not {model.layer}")
        setattr(holder, attribute, remaining)
        return network
    raise model.error("has layers that cannot be found: use another model")
