"""Models in the form of transformers: find their files, load them and feed them.

The files are in a folder or on the Hugging Face hub. Error messages begin with the metric that uses
the model: `who` is its name, `role` the model's role in it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.core.errors import ConfigError, MissingExtra
from judge.core.format import first_names
from judge.core.pair_tokenizers import (
    FastPairTokenizer,
    PairTokenizer,
    SlowPairTokenizer,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "*.model",
)
PATTERNS = (
    "config.json",
    "generation_config.json",
    *_TOKENIZER_FILES,
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
    "model.safetensors",
    "model-*.safetensors",
    "model.safetensors.index.json",
)
"""The files that are downloaded, and that the digest is of."""
_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"
# transformers writes 10**30 for a tokenizer without a known limit.
_NO_LIMIT = 10**6
# The number of positions of BERT and most of its successors.
_USUAL_LIMIT = 512
# The padding token takes their first positions, so that a table of 514 positions has room for 512
# tokens.
_OFFSET_POSITIONS = frozenset((
    "camembert", "data2vec-text", "ibert", "longformer", "mpnet", "roberta",
    "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl", "xmod",
))  # fmt: skip
# A SHA-256 in hex, as `_digest` caches it.
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files and their role.

    `digest` is the SHA-256, in hex, of everything that is read from them.
    """

    who: str
    role: str
    name: str
    folder: Path
    digest: str

    @property
    def label(self) -> str:
        """The beginning of error messages."""
        return f"{self.who}: {self.role} {self.name}"

    @property
    def signed(self) -> str:
        """Name and digest for signatures; a folder's own name, but never a path."""
        name_without_bars = self.name.replace("|", "_")
        return f"{name_without_bars}@{self.digest[:8]}"

    def config(self) -> dict[str, Any]:
        """Return the contents of config.json. Raises ConfigError."""
        try:
            config = json.loads((self.folder / "config.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise self.error(f"config.json cannot be read: {error}") from error
        if not isinstance(config, dict):
            raise self.error("config.json is not a model's configuration")
        return config

    def check_complete(self) -> None:
        """Raise ConfigError if a file is missing, or if the model needs code of its own."""
        names = missing_files(self.folder)
        if "config.json" not in names:
            self._check_code()
        if names:
            raise self.error(
                f"lacks {first_names(names, 2)}: get all of its files again, or load model and "
                "tokenizer with transformers and write both with save_pretrained(FOLDER); weights "
                "of another form are not read"
            )

    def _check_code(self) -> None:
        config = self.config()
        if "auto_map" not in config:
            return
        # Some models of a kind that transformers has also bring their older code, which is not
        # used.
        module = import_optional(
            "transformers.models.auto.configuration_auto", self.who
        )
        if config.get("model_type") not in module.CONFIG_MAPPING_NAMES:
            raise self.error(
                "it needs its own code, which judge never runs (trust_remote_code stays off): "
                "name a model with an architecture that is part of transformers"
            )

    def check_head(self, head: str, advice: str) -> None:
        """Raise ConfigError, with `advice`, for a model without this `head`."""
        architectures = self.config().get("architectures") or []
        has_head = any(head in str(architecture) for architecture in architectures)
        if architectures and not has_head:
            raise self.error(f"it is a {architectures[0]}, {advice}")

    def error(self, why: str) -> ConfigError:
        """Return a ConfigError that names this model and its folder."""
        return ConfigError(f"{self.label} ({self.folder}): {why}")


def resolve(
    model: str,
    *,
    who: str,
    role: str,
    cache: Path | None,
) -> ModelFiles:
    """Return the files of a folder or of a name on the hub, which are downloaded if necessary.

    Digests are cached in the folder `cache`. Raises ConfigError for a model that is not available
    or incomplete, MissingExtra for a package.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        folder_name = path.resolve().name
        return from_folder(path, name=folder_name, who=who, role=role, cache=cache)
    folder = snapshot(model, f"{who}: {role} {model!r}", who=who)
    return from_folder(folder, name=model, who=who, role=role, cache=cache)


def from_folder(
    folder: Path,
    *,
    name: str,
    who: str,
    role: str,
    cache: Path | None,
) -> ModelFiles:
    """Return the model in a folder. Raises ConfigError if it is incomplete."""
    files = ModelFiles(who, role, name, folder, "")
    files.check_complete()
    try:
        return ModelFiles(who, role, name, folder, _digest(folder, cache))
    except OSError as error:
        raise files.error(f"cannot be read: {error}") from error


def missing_files(folder: Path) -> list[str]:
    """Return which required files are missing.

    They are the configuration, a tokenizer's files, and the weights or their parts.
    """
    missing_names = []
    if not (folder / "config.json").is_file():
        missing_names.append("config.json")
    # Without any of its files, transformers would make a tokenizer without words.
    if not any(any(folder.glob(pattern)) for pattern in _TOKENIZER_FILES):
        missing_names.append("tokenizer.json")
    if (folder / _WEIGHTS).is_file():
        return missing_names
    if not (folder / _INDEX).is_file():
        return [*missing_names, _WEIGHTS]
    try:
        index = json.loads((folder / _INDEX).read_text("utf-8"))
        # The file of each weight.
        weight_map = index["weight_map"]
        weight_files = {str(weight_file) for weight_file in weight_map.values()}
    # A damaged index is as good as none.
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [*missing_names, _INDEX]
    missing_parts = [
        weight_file
        for weight_file in sorted(weight_files)
        if not (folder / weight_file).is_file()
    ]
    return missing_names + missing_parts


def snapshot(model_name: str, label: str, *, who: str) -> Path:
    """Return the folder of a hub model in the hub's own cache; missing files are downloaded.

    `label` begins the error's message. Raises ConfigError if the model is not available,
    MissingExtra for a package.
    """
    hub = import_optional("huggingface_hub", who)
    import_optional("transformers.utils.logging", who)
    download = partial(hub.snapshot_download, model_name, allow_patterns=list(PATTERNS))
    cache_problem = ""
    try:
        folder = Path(download(local_files_only=True))
        missing_names = missing_files(folder)
        if not missing_names:
            return folder
        cache_problem = f"; the copy in its cache lacks {first_names(missing_names, 2)}"
    except (OSError, ValueError):
        # Not in the cache, or not a name of the hub: the download below reports that.
        pass
    try:
        with silenced():
            return Path(download())
    except Exception as error:
        raise ConfigError(
            f"{label} is not a local folder and cannot be loaded from the Hugging Face hub "
            f"({first_line(error)}{cache_problem}): check the name, name a folder made by "
            "save_pretrained, or set HF_HUB_CACHE to the folder with the hub's models, HF_ENDPOINT "
            "to a mirror that you can reach, or HF_TOKEN for a model that requires a login"
        ) from error


def cached_models() -> dict[str, Path]:
    """Return the folders of the models in the hub's cache by name; none without the hub.

    Models whose download was interrupted are among them.
    """
    try:
        cache = Path(import_module("huggingface_hub.constants").HF_HUB_CACHE)
    except ImportError:
        return {}
    models = {}
    for main_reference in sorted(cache.glob("models--*/refs/main")):
        model_folder = main_reference.parents[1]
        # A reference that cannot be read names no model.
        with suppress(OSError, ValueError):
            revision = main_reference.read_text("utf-8").strip()
            snapshot_folder = model_folder / "snapshots" / revision
            if (snapshot_folder / "config.json").is_file():
                # "models--facebook--bart-large" is facebook/bart-large.
                model_name = model_folder.name.removeprefix("models--")
                models[model_name.replace("--", "/")] = snapshot_folder
    return models


def _digest(folder: Path, cache: Path | None) -> str:
    """Return the SHA-256 of the files' names and contents.

    It is cached as long as their sizes and times stay the same.
    """
    # A set, because a file may match several patterns.
    matching_files: set[Path] = set()
    for pattern in PATTERNS:
        for path in folder.glob(pattern):
            if path.is_file():
                matching_files.add(path)
    files = sorted(matching_files)
    digest_file = None
    if cache:
        digest_file = _digest_file(folder, files, cache)
    if digest_file:
        # Without a digest that can be read, the files are read again.
        with suppress(OSError, ValueError):
            digest = digest_file.read_text("ascii")
            if _SHA256.fullmatch(digest):
                return digest
    hasher = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            content_digest = hashlib.file_digest(stream, "sha256").digest()
        hasher.update(file.name.encode() + b"\0" + content_digest)
    digest = hasher.hexdigest()
    if digest_file:
        # A disk that cannot be written costs time, but must not stop the run.
        with suppress(OSError):
            digest_file.parent.mkdir(parents=True, exist_ok=True)
            digest_file.write_text(digest, "ascii")
    return digest


def _digest_file(folder: Path, files: Sequence[Path], cache: Path) -> Path:
    """Return the cache's file for the digest of these files in their present state."""
    fingerprint = []
    for file in files:
        status = file.stat()
        fingerprint.append((file.name, status.st_size, status.st_mtime_ns))
    # The name is a hash, because a shared cache should not show the user's paths.
    path = str(folder.resolve())
    file_key = json.dumps([path, fingerprint])
    return cache / "models" / hashlib.sha256(file_key.encode()).hexdigest()


# transformers asks for these packages by name.
_TOKENIZER_PACKAGES = ("sentencepiece", "protobuf", "fugashi", "unidic_lite")
_LOAD_ERRORS = (
    OSError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    ImportError,
    RuntimeError,
)
_OFFLINE = {"local_files_only": True, "trust_remote_code": False}


def load_tokenizer(files: ModelFiles) -> Any:
    """Load a model's tokenizer. Raises ConfigError if it cannot be loaded."""
    transformers = import_optional("transformers", files.who)
    try:
        with silenced():
            return transformers.AutoTokenizer.from_pretrained(
                str(files.folder), **_OFFLINE
            )
    except Exception as error:
        # transformers raises many types of exceptions for a damaged file.
        for package in _TOKENIZER_PACKAGES:
            if package in str(error):
                raise missing(package.replace("_", "-"), files.who, "qags") from error
        reason = first_line(error)
        raise files.error(f"its tokenizer cannot be loaded: {reason}") from error


def load(
    files: ModelFiles,
    head: str,
    *,
    dtype: str = "float32",
    spare: Callable[[str], bool] = lambda weight_name: False,
    **load_options: Any,
) -> tuple[Any, Any]:
    """Load tokenizer and network by one of transformers' classes.

    Nothing is unpickled, and no code is downloaded. Raises ConfigError if they cannot be loaded, or
    if weights are missing for which `spare` is false.
    """
    torch = import_optional("torch", files.who)
    transformers = import_optional("transformers", files.who)
    damaged_file = import_optional("safetensors", files.who).SafetensorError
    load_options |= {
        "dtype": getattr(torch, dtype),
        "use_safetensors": True,
        "output_loading_info": True,
        **_OFFLINE,
    }
    tokenizer = load_tokenizer(files)
    network_class = getattr(transformers, head)
    try:
        with silenced():
            loaded = network_class.from_pretrained(str(files.folder), **load_options)
            network, loading_info = loaded
    except (*_LOAD_ERRORS, damaged_file) as error:
        reason = first_line(error)
        raise files.error(f"its network cannot be loaded: {reason}") from error
    tokenizer_size = len(tokenizer)
    network_size = getattr(network.config, "vocab_size", None) or 0
    # A network may have some spare rows, but a tokenizer of half its size lacks files.
    if tokenizer_size < network_size // 2:
        sizes = (
            f"its tokenizer has {tokenizer_size:,} tokens, its network {network_size:,}"
        )
        raise files.error(f"{sizes}: get the tokenizer's files again")
    # transformers fills missing weights with random numbers.
    missing_keys = loading_info["missing_keys"]
    missing_weights = sorted(
        weight_name for weight_name in missing_keys if not spare(weight_name)
    )
    if missing_weights:
        raise files.error(f"its weights lack {missing_weights[0]}: get its files again")
    return tokenizer, network.eval()


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model on its device, ready for use."""

    files: ModelFiles
    tokenizer: Any
    network: Any
    device: Any

    @property
    def batch_tokens(self) -> int:
        """Return a good number of tokens for a batch."""
        return batch_tokens(self.device.type)

    @property
    def pad(self) -> int:
        """Return the token that pads the shorter texts of a batch."""
        return self.tokenizer.pad_token_id or 0

    def pair_tokenizer(self) -> PairTokenizer:
        """Return the tokenizer that cuts pairs of texts into windows. Raises ConfigError."""
        fast_tokenizer = backend(self.tokenizer)
        if fast_tokenizer is not None:
            return FastPairTokenizer(fast_tokenizer)
        # A tokenizer of another package, such as Mistral's, is neither fast nor of transformers.
        if not hasattr(self.tokenizer, "build_inputs_with_special_tokens"):
            raise self.files.error(
                "its tokenizer gives no token positions: name a model with a fast one "
                "(tokenizer.json)"
            )
        return SlowPairTokenizer(self.tokenizer)

    def outputs(
        self,
        ids: Sequence[Sequence[int]],
        *names: str,
        **more: npt.NDArray[np.int64],
    ) -> list[Any]:
        """Return outputs of the network, such as `logits`, as arrays for texts read together.

        `more` are further inputs. Raises ConfigError.
        """
        torch = import_module("torch")
        rows, mask = padded(ids, self.pad)
        inputs = {"input_ids": rows, "attention_mask": mask, **more}
        with translated_errors(self.files, rows.size), torch.inference_mode():
            input_tensors = {}
            for input_name, array in inputs.items():
                input_tensors[input_name] = torch.from_numpy(array).to(self.device)
            output = self.network(**input_tensors)
            output_arrays = []
            for output_name in names:
                tensor = getattr(output, output_name)
                # NumPy has no bfloat16, and reads no memory of a GPU.
                output_arrays.append(tensor.float().cpu().numpy())
            return output_arrays

    def window_outputs(
        self,
        windows: Sequence[Sequence[Any]],
        tokens: int | None,
        *names: str,
    ) -> list[list[list[npt.NDArray[np.float64]]]]:
        """Return these outputs for each window of each pair of texts (`PairTokenizer`).

        The result has an entry for each pair, in it one for each window, and in it an array for
        each name. `tokens` are read together. Raises ConfigError.
        """
        # The windows of all pairs in one list, so that windows of similar length share a batch.
        all_windows = [*chain.from_iterable(windows)]
        lengths = [len(window.ids) for window in all_windows]
        outputs_by_index: dict[int, list[npt.NDArray[np.float64]]] = {}
        for batch in batches(lengths, tokens or self.batch_tokens):
            batch_windows = [all_windows[index] for index in batch]
            more = {}
            if "token_type_ids" in self.tokenizer.model_input_names:
                type_ids = [window.type_ids for window in batch_windows]
                more["token_type_ids"], _ = padded(type_ids, 0)
            ids = [window.ids for window in batch_windows]
            arrays = self.outputs(ids, *names, **more)
            for row, index in enumerate(batch):
                outputs_by_index[index] = [array[row].astype(float) for array in arrays]
        outputs_of_pairs = []
        start = 0
        for windows_of_pair in windows:
            end = start + len(windows_of_pair)
            outputs = [outputs_by_index[index] for index in range(start, end)]
            outputs_of_pairs.append(outputs)
            start = end
        return outputs_of_pairs


def load_on(
    files: ModelFiles,
    head: str,
    device_name: str | None,
    **options: Any,
) -> LoadedModel:
    """Load a model, on the GPU if there is one and no device is named.

    `options` are passed to `load`. Raises ConfigError like `load` and `device`.
    """
    selected_device = device(device_name, who=files.who)
    tokenizer, network = load(files, head, **options)
    network = to_device(files, network, selected_device)
    return LoadedModel(files, tokenizer, network, selected_device)


def device(device_name: str | None, *, who: str) -> Any:
    """Return the device of this name; without a name, the GPU if there is one.

    Raises ConfigError.
    """
    torch = import_optional("torch", who)
    try:
        default_name = "cuda" if torch.cuda.is_available() else "cpu"
        selected = torch.device(device_name or default_name)
        # PyTorch's meta device computes shapes only.
        if selected.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.empty(0, device=selected)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise ConfigError(
            f"{who}: device {device_name!r} cannot be used: {first_line(error)}"
        ) from error
    return selected


def to_device(files: ModelFiles, network: Any, to: Any) -> Any:
    """Move the network to a device. Raises ConfigError if it does not fit there."""
    try:
        return network.to(to)
    except (RuntimeError, MemoryError) as error:
        raise files.error(
            f"its network does not fit on {to} ({first_line(error)}): free memory there, name a "
            "smaller model, or set device to cpu"
        ) from error


def batch_tokens(device_kind: str) -> int:
    """Return how many tokens to read together on a kind of device."""
    return 32_768 if device_kind == "cuda" else 2_048


@contextmanager
def translated_errors(files: ModelFiles, tokens: int) -> Iterator[None]:
    """Silence other packages, and turn a network's errors into a ConfigError with advice."""
    try:
        with silenced():
            yield
    except (RuntimeError, ValueError, TypeError, IndexError, MemoryError) as error:
        # PyTorch raises a RuntimeError if a GPU is full: "CUDA out of memory."
        if isinstance(error, MemoryError) or "memory" in str(error).lower():
            problem = f"{tokens:,} tokens at once need too much memory"
            advice = "set batch_tokens to less, or device to cpu"
        else:
            problem = f"its network cannot compute ({first_line(error)})"
            advice = "name another model"
        raise files.error(f"{problem}: {advice}") from error


def limit(tokenizer: Any, config: Any, usual: int = _USUAL_LIMIT) -> int:
    """Return how many tokens a model reads at once, including special ones.

    `usual` if neither its tokenizer nor its configuration has a limit.
    """
    limits = []
    if 0 < tokenizer.model_max_length < _NO_LIMIT:
        limits.append(tokenizer.model_max_length)
    positions = getattr(config, "max_position_embeddings", None)
    if not positions:
        positions = getattr(config, "n_positions", None)
    if isinstance(positions, int) and positions > 0:
        reserved = 0
        if config.model_type in _OFFSET_POSITIONS:
            reserved = (config.pad_token_id or 0) + 1
        limits.append(positions - reserved)
    return int(min(limits, default=usual))


def backend(tokenizer: Any) -> Any:
    """Return the `tokenizers` object inside a transformers tokenizer, None if it is pure Python."""
    if not getattr(tokenizer, "is_fast", False):
        return None
    return getattr(tokenizer, "backend_tokenizer", None)


MOST_UNKNOWN = 0.2
"""The share of tokens that may be unknown to a model, which sees all of them as one word."""


def unknown_share(ids: Sequence[int], unknown: int) -> float:
    """Return the share of tokens, 0–1, that are the unknown one; 0 for no tokens.

    It is also 0 for vocabularies of bytes, in which no word is unknown.
    """
    return ids.count(unknown) / len(ids) if ids else 0.0


def padded(
    ids: Sequence[Sequence[int]],
    pad: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return token ids and attention mask, both of shape (texts, longest text)."""
    import numpy as np

    longest = max(len(row) for row in ids)
    shape = (len(ids), longest)
    rows = np.full(shape, pad, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    for index, row in enumerate(ids):
        rows[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return rows, mask


def batches(
    lengths: Sequence[int], tokens: int, *, mixed: bool = False
) -> list[list[int]]:
    """Group the indices of `lengths`, longest first, into batches of `tokens` padded tokens.

    A longer text has a batch of its own. Unless `mixed`, the lengths in a batch differ by an eighth
    at most, so that little is computed for padding.
    """
    positions = range(len(lengths))
    order = sorted(positions, key=lambda index: -lengths[index])
    groups: list[list[int]] = []
    longest = 0
    for index in order:
        shortest = longest - longest // 8
        similar = mixed or lengths[index] >= shortest
        has_room = bool(groups) and (len(groups[-1]) + 1) * longest <= tokens
        if similar and has_room:
            groups[-1].append(index)
        else:
            longest = lengths[index]
            groups.append([index])
    return groups


def import_optional(module: str, who: str, extra: str | None = None) -> Any:
    """Import a module.

    Raises MissingExtra, with the pip line, if it or its requirements are not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing_module = error.name or module
        package, _, _ = missing_module.partition(".")
        raise missing(package, who, extra) from error


@cache
def version(package: str, who: str, extra: str | None = None) -> str:
    """Return a package's version without importing it.

    Raises MissingExtra if it is not installed.
    """
    try:
        return installed_version(package)
    except PackageNotFoundError as error:
        raise missing(package, who, extra) from error


def runtime(who: str, extra: str | None = None) -> str:
    """Return the versions of torch and transformers for signatures, because results may differ.

    Raises MissingExtra.
    """
    packages = ("torch", "transformers")
    versions = []
    for package in packages:
        number = version(package, who, extra)
        versions.append(f"{package} {number}")
    return "|".join(versions)


def missing(package: str, who: str, extra: str | None = None) -> MissingExtra:
    """Return the error for a missing package.

    The extra that installs it is `extra`, by default named like the metric.
    """
    install = f"pip install 'textjudge[{extra or who}]'"
    return MissingExtra(f"{who} needs the package {package}: {install}")


def first_line(error: Exception) -> str:
    """Return the first line of another package's error message, shortened."""
    message = type(error).__name__
    for line in str(error).splitlines():
        # Some messages begin with empty lines.
        if line.strip():
            message = line.strip()
            break
    return message[:300].rstrip(":")


@contextmanager
def silenced() -> Iterator[None]:
    """Suppress warnings, log lines and progress bars of other packages inside the block."""
    transformers = import_module("transformers.utils.logging")
    hub = import_module("huggingface_hub.utils")
    transformers_bars = transformers.is_progress_bar_enabled()
    hub_bars = not hub.are_progress_bars_disabled()
    previous_level = logging.root.manager.disable
    logging.disable(max(previous_level, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transformers.disable_progress_bar()
            hub.disable_progress_bars()
            yield
    finally:
        logging.disable(previous_level)
        if transformers_bars:
            transformers.enable_progress_bar()
        if hub_bars:
            hub.enable_progress_bars()
