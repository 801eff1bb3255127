"""A model's files, on this machine or from the Hugging Face hub, and the model loaded from them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from judge.errors import ConfigError, MissingExtra
from judge.metrics.bertscore.extras import quiet, version

GENERATOR, READER = "generator", "reader"
_HEADS = {GENERATOR: "AutoModelForSeq2SeqLM", READER: "AutoModelForQuestionAnswering"}
_PACKAGES = ("torch", "transformers", "huggingface_hub", "safetensors", "tokenizers")
_PATTERNS = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "*.model", "model*.safetensors",
    "model.safetensors.index.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Weights:
    """A model's files, for one of the two roles. `digest` is a sha256, in hex, of all that is read of them."""

    role: str
    name: str
    folder: Path
    digest: str

    @property
    def signed(self) -> str:
        """Name and digest for signatures; a folder's own name, but never a path."""
        return f"{self.name.replace('|', '_')}@{self.digest[:8]}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model on its device, ready to be read from."""

    tokenizer: Any
    config: Any
    network: Any
    device: Any

    @property
    def batch_tokens(self) -> int:
        """How many tokens are worth reading together."""
        return 32_768 if self.device.type == "cuda" else 2_048

    @property
    def pad(self) -> int:
        """What fills up the shorter texts of a batch."""
        return self.tokenizer.pad_token_id or 0


def need_packages() -> None:
    """Raises MissingExtra, with the pip line, where the back end's packages are not installed. Imports none."""
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingExtra(f"qags: backend models needs the package {package}: pip install 'textjudge[qags]'")


def runtime() -> str:
    """What computes, for signatures: other versions may word a question otherwise."""
    return f"torch {version('torch', 'qags')}|transformers {version('transformers', 'qags')}"


def locate(role: str, model: str) -> Weights:
    """The files of a folder or of a name on the hub, downloaded where they are not on this machine yet.

    Raises ConfigError for a model that cannot be had, has no safetensors, or, for a reader, was not made to answer.
    """
    if not isinstance(model, str) or not model.strip():
        raise ConfigError(f"qags: {role} has to be a folder or a name on the Hugging Face hub, not {model!r}")
    path = Path(model).expanduser()
    name, folder = (path.resolve().name, path) if path.is_dir() else (model, _snapshot(role, model))
    if not _whole(folder):
        raise ConfigError(
            f"qags: {role} {folder} has no config.json and model.safetensors; weights of another form are not read: "
            "load them with transformers and write them with save_pretrained(FOLDER), then name that folder"
        )
    if role == READER:
        _check_answers(name, folder / "config.json")
    return Weights(role, name, folder, _digest(folder))


def _whole(folder: Path) -> bool:
    return (folder / "config.json").is_file() and any(folder.glob("model*.safetensors"))


def _snapshot(role: str, name: str) -> Path:
    """The folder of a model of the hub, as it lies in the hub's own cache; downloaded only if missing."""
    hub = import_module("huggingface_hub")
    try:
        folder = Path(hub.snapshot_download(name, local_files_only=True))
        if _whole(folder):
            return folder
    except (OSError, ValueError):  # not there yet, or no name of the hub's: the download will say
        pass
    try:
        with quiet():
            return Path(hub.snapshot_download(name, allow_patterns=list(_PATTERNS)))
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"qags: no model {name!r}: it is no folder here and cannot be had from the Hugging Face hub "
            f"({_first_line(error)}); name a folder made by save_pretrained for the {role}, or set HF_HUB_CACHE to "
            "where the hub's models lie, or HF_ENDPOINT to a mirror that can be reached"
        ) from error


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _check_answers(name: str, path: Path) -> None:
    """Said at once, as a reader is otherwise loaded only after all questions have been generated."""
    try:
        made = json.loads(path.read_text("utf-8")).get("architectures") or []
    except (ValueError, AttributeError, OSError) as error:
        raise ConfigError(f"qags: {path} is not a model's configuration: {error}") from error
    if made and not any("QuestionAnswering" in str(kind) for kind in made):
        raise ConfigError(
            f"qags: reader {name} is a {made[0]}, which was not made to answer questions: "
            "name a model trained for extractive question answering (SQuAD)"
        )


def _digest(folder: Path) -> str:
    """sha256 of the files' names and contents."""
    whole = hashlib.sha256()
    for file in sorted({file for pattern in _PATTERNS for file in folder.glob(pattern)}):
        with file.open("rb") as stream:
            whole.update(file.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def load(weights: Weights, device: str | None) -> Loaded:
    """The model, on the GPU where there is one and no other device was named. Nothing is unpickled, no code fetched.

    Raises ConfigError where it cannot be loaded, lacks weights or the device is not there.
    """
    torch, transformers = import_module("torch"), import_module("transformers")
    chosen = _device(torch, device)
    head, folder = getattr(transformers, _HEADS[weights.role]), str(weights.folder)
    here = {"local_files_only": True, "trust_remote_code": False}
    try:
        with quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **here)
            network, found = head.from_pretrained(
                folder, output_loading_info=True, use_safetensors=True, dtype=torch.float32, **here
            )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError, _broken()) as error:
        raise ConfigError(
            f"qags: {weights.role} {weights.name} cannot be loaded from {folder}: {_first_line(error)}"
        ) from error
    if lacking := sorted(found["missing_keys"]):  # they would be filled with random numbers
        raise ConfigError(f"qags: the weights of {weights.role} {weights.name} lack {lacking[0]}: get its files again")
    return Loaded(tokenizer, network.config, network.eval().to(chosen), chosen)


def _broken() -> type[Exception]:
    return import_module("safetensors").SafetensorError  # type: ignore[no-any-return]


def _device(torch: Any, device: str | None) -> Any:
    try:
        chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"qags: device {device!r} cannot be used: {_first_line(error)}") from error
    return chosen
