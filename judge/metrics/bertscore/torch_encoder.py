"""Embeddings by transformers and torch, up to one layer of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from judge.core import huggingface
from judge.metrics.bertscore.models import Model
from judge.metrics.bertscore.tokenizing import Facts, facts, from_transformers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_STACKS = ("layer", "block", "layers", "h", "encoder.layer", "encoder.block", "encoder.layers", "transformer.layer")


class TorchEncoder:
    """A model on a device: the GPU where there is one and no other was named."""

    def __init__(self, model: Model, precision: str, device: str | None) -> None:
        self._torch = huggingface.optional("torch", "bertscore")
        self._device = huggingface.device(device, who="bertscore")
        tokenizer, config, network = load(model, "bfloat16" if precision == "bf16" else "float32")
        self.facts: Facts = facts(tokenizer, config)
        self.tokens = from_transformers(tokenizer, self.facts)
        self.batch_tokens = huggingface.batch_tokens(self._device.type)
        self._model, self._network = model, huggingface.moved(model, network, self._device)

    def hidden(self, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]:
        """The layer's output for texts read together: for each, shape (tokens, dimensions)."""
        torch = self._torch
        rows, mask = huggingface.padded(ids, self.facts.pad)
        with huggingface.computing(self._model, rows.size), torch.inference_mode():
            found = self._network(
                torch.from_numpy(rows).to(self._device), attention_mask=torch.from_numpy(mask).to(self._device)
            )[0]
            vectors = found.float().cpu().numpy()
        return [vectors[place, : len(row)] for place, row in enumerate(ids)]


def load(model: Model, dtype: str, **how: Any) -> tuple[Any, Any, Any]:
    """Tokenizer, configuration and network, cut after the layer. Raises ConfigError where they cannot be loaded."""
    tokenizer, network = huggingface.load(model, "AutoModel", dtype=dtype, spare=_unused, **how)
    return tokenizer, network.config, cut(network, model, huggingface.optional("torch", "bertscore").nn.ModuleList)


def _unused(weight: str) -> bool:
    return "pooler" in weight or weight.startswith("decoder.")


def cut(network: Any, model: Model, stack: type) -> Any:
    """The network's encoder without the layers behind the wanted one, so that its last output is that layer's."""
    if hasattr(network, "decoder") and hasattr(network, "encoder"):
        network = network.encoder
    for path in _STACKS:
        *parents, last = path.split(".")
        holder = _follow(network, parents)
        layers = getattr(holder, last, None)
        if isinstance(layers, stack):
            _check(model, len(layers))  # type: ignore[arg-type]
            setattr(holder, last, layers[: model.layer])  # type: ignore[index]
            return network
    if hasattr(_follow(network, ["encoder"]), "albert_layer_groups"):  # one group of weights, used again and again
        _check(model, network.encoder.config.num_hidden_layers)
        network.encoder.config.num_hidden_layers = model.layer
        return network
    if hasattr(network, "n_layers"):
        _check(model, network.n_layers)
        network.n_layers = model.layer
        return network
    raise model.error("keeps its layers where they are not found; use another model")


def _follow(network: Any, names: Sequence[str]) -> Any:
    for name in names:
        network = getattr(network, name, None)
    return network


def _check(model: Model, layers: int) -> None:
    if model.layer > layers:
        raise model.error(f"layer has to be 0 to {layers}, not {model.layer}")
