"""Embeddings by onnxruntime: the model is exported once, and from then on neither torch nor transformers is needed."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.metrics.bertscore.models import Model
from judge.metrics.bertscore.tokenizing import Facts, facts, from_tokenizers, saved
from judge.metrics.bertscore.torch_encoder import load

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FORMAT = 1
_INPUTS = ["input_ids", "attention_mask"]


class OnnxEncoder:
    """An exported model. The export is kept under `folder`; without one it lives as long as this object."""

    def __init__(self, model: Model, folder: Path | None, device: str | None) -> None:
        runtime = huggingface.optional("onnxruntime", "bertscore", "onnx")
        folder = _writable(folder)
        parent = folder or Path(tempfile.mkdtemp(prefix="judge-onnx-"))
        if folder is None:
            weakref.finalize(self, shutil.rmtree, parent, ignore_errors=True)
        self._place = parent / f"onnx{_FORMAT}-{model.digest[:16]}-layer{model.layer}"
        providers = _providers(runtime, device)
        if not self._place.is_dir():
            export(model, self._place)
        try:
            self._open(runtime, providers)
        except Exception:  # noqa: BLE001 - onnxruntime has an error class of its own for each way to be damaged
            shutil.rmtree(self._place, ignore_errors=True)
            export(model, self._place)
            self._open(runtime, providers)
        self.batch_tokens = huggingface.batch_tokens("cuda" if providers[0] == "CUDAExecutionProvider" else "cpu")

    def _open(self, runtime: Any, providers: list[str]) -> None:
        known = Facts.from_dict(json.loads((self._place / "facts.json").read_text("utf-8")))
        if known is None:
            raise ValueError("damaged facts.json")
        self.facts: Facts = known
        self.tokens = from_tokenizers(saved(self._place / "tokenizer.json"), known)
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # spinning burns what others need
        self._session = runtime.InferenceSession(str(self._place / "model.onnx"), options, providers=providers)

    def hidden(self, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]:
        """The layer's output for texts read together: for each, shape (tokens, dimensions)."""
        rows, mask = huggingface.padded(ids, self.facts.pad)
        (vectors,) = self._session.run(None, dict(zip(_INPUTS, (rows, mask), strict=True)))
        return [vectors[place, : len(row)] for place, row in enumerate(ids)]


def _writable(folder: Path | None) -> Path | None:
    """The folder, made if need be; None where that cannot be, as the export then costs time and not the run."""
    try:
        if folder:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if folder and os.access(folder, os.W_OK) else None


def _providers(runtime: Any, device: str | None) -> list[str]:
    kind = (device or "").partition(":")[0]
    if kind not in ("", "cpu", "cuda"):
        raise ConfigError(f"bertscore: device has to be cpu or cuda with backend onnx, not {device!r}")
    found = "CUDAExecutionProvider" in runtime.get_available_providers()
    if kind == "cuda" and not found:
        raise ConfigError(
            "bertscore: this onnxruntime cannot use a GPU: install onnxruntime-gpu, or take backend torch"
        )
    return ["CUDAExecutionProvider", "CPUExecutionProvider"] if found and kind != "cpu" else ["CPUExecutionProvider"]


def export(model: Model, place: Path) -> None:
    """Write model.onnx, tokenizer.json and facts.json into a folder, which appears whole or not at all."""
    huggingface.optional("onnx", "bertscore", "onnx")
    huggingface.optional("onnxscript", "bertscore", "onnx")
    tokenizer, config, network = load(model, "float32", attn_implementation="eager")
    inside = huggingface.backend(tokenizer)
    if inside is None:
        raise model.error("its tokenizer runs in Python only; take backend torch")
    known = facts(tokenizer, config)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, ignore_cleanup_errors=True) as temporary:
        made = Path(temporary) / "export"
        made.mkdir()
        _write(network, known, made / "model.onnx")
        (made / "tokenizer.json").write_text(inside.to_str(), "utf-8")
        (made / "facts.json").write_text(json.dumps(known.to_dict()), "utf-8")
        with suppress(OSError):  # another process was faster, and wrote the same
            made.rename(place)


def _write(network: Any, known: Facts, path: Path) -> None:
    torch = huggingface.optional("torch", "bertscore")

    class Hidden(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.network(input_ids=input_ids, attention_mask=attention_mask)[0]

    rows, mask = huggingface.padded([[*known.prefix, *[known.pad + 1] * 5, *known.suffix]] * 2, known.pad)
    either = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with huggingface.quiet():
        torch.onnx.export(
            Hidden().eval(),
            (torch.from_numpy(rows), torch.from_numpy(mask)),
            str(path),
            input_names=_INPUTS,
            output_names=["hidden"],
            dynamic_shapes=dict.fromkeys(_INPUTS, either),
            dynamo=True,
            external_data=True,
            verbose=False,
        )
