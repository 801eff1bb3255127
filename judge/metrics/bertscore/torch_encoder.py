"""Embeddings by transformers and torch, up to one layer of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from judge.errors import ConfigError
from judge.metrics.bertscore.extras import optional, quiet
from judge.metrics.bertscore.models import Model
from judge.metrics.bertscore.tokenizing import Facts, facts, from_transformers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_STACKS = ("layer", "block", "layers", "h", "encoder.layer", "encoder.block", "encoder.layers", "transformer.layer")


class TorchEncoder:
    """A model on a device: the GPU where there is one and no other was named."""

    def __init__(self, model: Model, precision: str, device: str | None) -> None:
        self._torch = optional("torch")
        self._device = self._chosen(device)
        tokenizer, config, network = load(model, "bfloat16" if precision == "bf16" else "float32")
        self.facts: Facts = facts(tokenizer, config)
        self.tokens = from_transformers(tokenizer, self.facts)
        self.batch_tokens = 32_768 if self._device.type == "cuda" else 2_048
        self._network = network.to(self._device)

    def _chosen(self, device: str | None) -> Any:
        try:
            chosen = self._torch.device(device or ("cuda" if self._torch.cuda.is_available() else "cpu"))
            if chosen.type == "meta":
                raise RuntimeError("it holds no numbers")
            self._torch.empty(0, device=chosen)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            raise ConfigError(
                f"bertscore: device {device!r} cannot be used: {str(error).splitlines()[0][:200]}"
            ) from error
        return chosen

    def hidden(self, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]:
        """The layer's output for texts read together: for each, shape (tokens, dimensions)."""
        torch = self._torch
        rows, mask = padded(ids, self.facts.pad)
        with torch.inference_mode():
            found = self._network(
                torch.from_numpy(rows).to(self._device), attention_mask=torch.from_numpy(mask).to(self._device)
            )[0]
            vectors = found.float().cpu().numpy()
        return [vectors[place, : len(row)] for place, row in enumerate(ids)]


def padded(ids: Sequence[Sequence[int]], pad: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Token ids and attention mask, both of shape (texts, longest text)."""
    import numpy as np

    longest = max(len(row) for row in ids)
    rows = np.full((len(ids), longest), pad, dtype=np.int64)
    mask = np.zeros((len(ids), longest), dtype=np.int64)
    for place, row in enumerate(ids):
        rows[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return rows, mask


def load(model: Model, dtype: str, **how: Any) -> tuple[Any, Any, Any]:
    """Tokenizer, configuration and network, cut after the layer. Raises ConfigError where they cannot be loaded."""
    torch, transformers = optional("torch"), optional("transformers")
    folder = str(model.folder)
    try:
        with quiet():
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            how |= {"dtype": getattr(torch, dtype), "use_safetensors": True, "local_files_only": True}
            network, found = transformers.AutoModel.from_pretrained(folder, output_loading_info=True, **how)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, optional("safetensors").SafetensorError) as error:
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        raise ConfigError(f"bertscore: model {model.name} cannot be loaded from {folder}: {lines[0]}") from error
    _check_whole(model, found["missing_keys"])
    return tokenizer, config, cut(network.eval(), model, torch.nn.ModuleList)


def _check_whole(model: Model, missing: Iterable[str]) -> None:
    """What a file lacks would be filled with random numbers; that is no loss only where it is never used."""
    lacking = sorted(name for name in missing if "pooler" not in name and not name.startswith("decoder."))
    if lacking:
        raise ConfigError(f"bertscore: the weights of model {model.name} lack {lacking[0]}: get its files again")


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
    raise ConfigError(f"bertscore: model {model.name} keeps its layers where they are not found; use another model")


def _follow(network: Any, names: Sequence[str]) -> Any:
    for name in names:
        network = getattr(network, name, None)
    return network


def _check(model: Model, layers: int) -> None:
    if model.layer > layers:
        raise ConfigError(f"bertscore: layer has to be 0 to {layers} for {model.name}, not {model.layer}")
