"""Models in the form of transformers: find their files in a folder or on the Hugging Face hub, load and feed them.

Error messages begin with the metric that uses the model: `who` is its name, `role` the model's role in it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from judge.core.errors import ConfigError, MissingExtra
from judge.core.format import first_names

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "*.model")
PATTERNS = (
    "config.json", "generation_config.json", *_TOKENIZER, "special_tokens_map.json",
    "added_tokens.json", "merges.txt", "model.safetensors", "model-*.safetensors", "model.safetensors.index.json",
)  # fmt: skip
"""The files that are downloaded, and that the digest is of."""
_WEIGHTS, _INDEX = "model.safetensors", "model.safetensors.index.json"
_NO_LIMIT = 10**6  # transformers writes 10**30 where a tokenizer knows no limit
_USUAL_LIMIT = 512
# Their first positions are taken by the padding token, so that a table of 514 positions holds 512 tokens.
_OFFSET_POSITIONS = frozenset((
    "camembert", "data2vec-text", "ibert", "longformer", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta",
    "xlm-roberta-xl", "xmod",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files and their role. `digest` is the sha256, in hex, of everything that is read from them."""

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
        return f"{self.name.replace('|', '_')}@{self.digest[:8]}"

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
        """Raises ConfigError if a file is missing, or code would be needed."""
        names = missing_files(self.folder)
        if "config.json" not in names and "auto_map" in (config := self.config()):
            own_kinds = import_optional(
                "transformers.models.auto.configuration_auto", self.who
            ).CONFIG_MAPPING_NAMES
            if config.get("model_type") not in own_kinds:
                raise self.error(
                    "it brings code of its own, which judge never runs (trust_remote_code stays off): name a model of "
                    "a kind that transformers has itself"
                )
        if names:
            raise self.error(
                f"lacks {first_names(names, 2)}: get all of its files again, or load model and tokenizer with "
                "transformers and write both with save_pretrained(FOLDER); weights of another form are not read"
            )

    def check_head(self, head: str, advice: str) -> None:
        """Raise ConfigError, with `advice`, for a model that was made for something else than `head` says."""
        architectures = self.config().get("architectures") or []
        if architectures and not any(head in str(kind) for kind in architectures):
            raise self.error(f"it is a {architectures[0]}, {advice}")

    def error(self, why: str) -> ConfigError:
        """Return a ConfigError that names this model and its folder."""
        return ConfigError(f"{self.label} ({self.folder}): {why}")


def resolve(model: str, *, who: str, role: str, cache: Path | None) -> ModelFiles:
    """Return the files of a folder or of a name on the hub, which are downloaded if necessary.

    Digests are kept in the folder `cache`. Raises ConfigError for a model that is not available or incomplete,
    MissingExtra for a package.
    """
    path = Path(model).expanduser()
    if path.is_dir():
        name, folder = path.resolve().name, path
    else:
        name, folder = model, snapshot(model, f"{who}: {role} {model!r}", who=who)
    return from_folder(folder, name=name, who=who, role=role, cache=cache)


def from_folder(folder: Path, *, name: str, who: str, role: str, cache: Path | None) -> ModelFiles:
    """Return the model in a folder. Raises ConfigError if it is incomplete."""
    files = ModelFiles(who, role, name, folder, "")
    files.check_complete()
    try:
        return ModelFiles(who, role, name, folder, _digest(folder, cache))
    except OSError as error:
        raise files.error(f"cannot be read: {error}") from error


def missing_files(folder: Path) -> list[str]:
    """Return which required files are missing: the configuration, the tokenizer's, the weights or parts of them."""
    missing_names = [] if (folder / "config.json").is_file() else ["config.json"]
    # transformers would make a tokenizer without words.
    missing_names += (
        []
        if any(True for pattern in _TOKENIZER for _ in folder.glob(pattern))
        else ["tokenizer.json"]
    )
    if (folder / _WEIGHTS).is_file():
        return missing_names
    if not (folder / _INDEX).is_file():
        return [*missing_names, _WEIGHTS]
    try:
        parts = {
            str(part)
            for part in json.loads((folder / _INDEX).read_text("utf-8"))["weight_map"].values()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return [*missing_names, _INDEX]
    return missing_names + sorted(part for part in parts if not (folder / part).is_file())


def snapshot(name: str, label: str, *, who: str) -> Path:
    """Return the folder of a hub model in the hub's own cache; missing files are downloaded.

    `label` begins the error's message. Raises ConfigError if the model cannot be had, MissingExtra for a package.
    """
    hub = import_optional("huggingface_hub", who)
    import_optional("transformers.utils.logging", who)
    download = partial(hub.snapshot_download, name, allow_patterns=list(PATTERNS))
    cache_problem = ""
    try:
        folder = Path(download(local_files_only=True))
        if not (missing_names := missing_files(folder)):
            return folder
        cache_problem = f"; the copy in its cache lacks {first_names(missing_names, 2)}"
    except (OSError, ValueError):  # not there yet, or no name of the hub's: the download will say
        pass
    try:
        with silenced():
            return Path(download())
    except Exception as error:
        raise ConfigError(
            f"{label} is no folder here and cannot be had from the Hugging Face hub "
            f"({first_line(error)}{cache_problem}): check the name, name a folder made by save_pretrained, or set "
            "HF_HUB_CACHE to where the hub's models lie, HF_ENDPOINT to a mirror that can be reached, or HF_TOKEN for "
            "a model that asks who you are"
        ) from error


def cached_models() -> dict[str, Path]:
    """Return the models in the hub's cache with their folders, downloaded or not to the end; none without the hub."""
    try:
        cache = Path(import_module("huggingface_hub.constants").HF_HUB_CACHE)
    except ImportError:
        return {}
    models = {}
    for main in sorted(cache.glob("models--*/refs/main")):
        with suppress(OSError, ValueError):
            folder = main.parents[1] / "snapshots" / main.read_text("utf-8").strip()
            if (folder / "config.json").is_file():
                models[main.parents[1].name.removeprefix("models--").replace("--", "/")] = folder
    return models


def _digest(folder: Path, cache: Path | None) -> str:
    """Return the sha256 of the files' names and contents, cached as long as their sizes and times stay the same."""
    files = sorted(
        {file for pattern in PATTERNS for file in folder.glob(pattern) if file.is_file()}
    )
    fingerprint = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    # Hashed, as the path is the user's own business and not the cache's.
    cache_key = hashlib.sha256(
        json.dumps([str(folder.resolve()), fingerprint]).encode()
    ).hexdigest()
    digest_file = cache / "models" / cache_key if cache else None
    with suppress(OSError, ValueError):
        if digest_file and re.fullmatch("[0-9a-f]{64}", digest := digest_file.read_text("ascii")):
            return digest
    hasher = hashlib.sha256()
    for file in files:
        with file.open("rb") as stream:
            hasher.update(
                file.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest()
            )
    with suppress(OSError):  # a disk that cannot be written costs time, not the run
        if digest_file:
            digest_file.parent.mkdir(parents=True, exist_ok=True)
            digest_file.write_text(hasher.hexdigest(), "ascii")
    return hasher.hexdigest()


_TOKENIZER_PACKAGES = (
    "sentencepiece",
    "protobuf",
    "fugashi",
    "unidic_lite",
)  # transformers asks for them by name
_OFFLINE = {"local_files_only": True, "trust_remote_code": False}


def load_tokenizer(files: ModelFiles) -> Any:
    """Load a model's tokenizer. Raises ConfigError if it cannot be loaded."""
    transformers = import_optional("transformers", files.who)
    try:
        with silenced():
            return transformers.AutoTokenizer.from_pretrained(str(files.folder), **_OFFLINE)
    except (
        Exception
    ) as error:  # whatever another package makes of a file that is not what it should be
        if lacking := [name for name in _TOKENIZER_PACKAGES if name in str(error)]:
            raise missing(lacking[0].replace("_", "-"), files.who, "qags") from error
        raise files.error(f"its tokenizer cannot be loaded: {first_line(error)}") from error


def load(
    files: ModelFiles,
    head: str,
    *,
    dtype: str = "float32",
    spare: Callable[[str], bool] = lambda name: False,
    **load_options: Any,
) -> tuple[Any, Any]:
    """Load tokenizer and network by one of transformers' classes; nothing is unpickled, no code is fetched.

    Raises ConfigError if they cannot be loaded or if weights are missing for which `spare` is false.
    """
    torch, transformers = (
        import_optional("torch", files.who),
        import_optional("transformers", files.who),
    )
    load_options |= {
        "dtype": getattr(torch, dtype),
        "use_safetensors": True,
        "output_loading_info": True,
        **_OFFLINE,
    }
    damaged, tokenizer = (
        import_optional("safetensors", files.who).SafetensorError,
        load_tokenizer(files),
    )
    try:
        with silenced():
            network, loading_info = getattr(transformers, head).from_pretrained(
                str(files.folder), **load_options
            )
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        ImportError,
        RuntimeError,
        damaged,
    ) as error:
        raise files.error(f"its network cannot be loaded: {first_line(error)}") from error
    tokenizer_size, network_size = len(tokenizer), getattr(network.config, "vocab_size", None) or 0
    if tokenizer_size < network_size // 2:
        sizes = f"its tokenizer has {tokenizer_size:,} tokens, its network {network_size:,}"
        raise files.error(f"{sizes}: get the tokenizer's files again")
    # They would be filled with random numbers.
    if missing_weights := sorted(name for name in loading_info["missing_keys"] if not spare(name)):
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
        """Return what cuts pairs of texts into windows with the places of their tokens. Raises ConfigError."""
        inside = backend(self.tokenizer)
        if inside is not None:
            return FastPairTokenizer(inside)
        if not hasattr(
            self.tokenizer, "build_inputs_with_special_tokens"
        ):  # neither fast nor of transformers' own
            raise self.files.error(
                "its tokenizer gives no token positions: name a model with a fast one (tokenizer.json)"
            )
        return SlowPairTokenizer(self.tokenizer)

    def outputs(
        self, ids: Sequence[Sequence[int]], *names: str, **more: npt.NDArray[np.int64]
    ) -> list[Any]:
        """Return outputs of the network, such as `logits`, as arrays for texts read together; `more` are inputs.

        Raises ConfigError.
        """
        torch = import_module("torch")
        rows, mask = padded(ids, self.pad)
        inputs = {"input_ids": rows, "attention_mask": mask, **more}
        with translated_errors(self.files, rows.size), torch.inference_mode():
            output = self.network(
                **{name: torch.from_numpy(array).to(self.device) for name, array in inputs.items()}
            )
            return [getattr(output, name).float().cpu().numpy() for name in names]

    def window_outputs(
        self, windows: Sequence[Sequence[Any]], tokens: int | None, *names: str
    ) -> list[list[list[npt.NDArray[np.float64]]]]:
        """Return these outputs for each of the windows, by `PairTokenizer`, of each pair of texts. Raises ConfigError.

        `tokens` are read together.
        """
        every = [window for each in windows for window in each]
        rows: dict[int, list[npt.NDArray[np.float64]]] = {}
        for batch in batches([len(window.ids) for window in every], tokens or self.batch_tokens):
            more = {}
            if "token_type_ids" in self.tokenizer.model_input_names:
                more["token_type_ids"] = padded([every[n].type_ids for n in batch], 0)[0]
            outputs = self.outputs([every[n].ids for n in batch], *names, **more)
            rows |= {
                n: [array[place].astype(float) for array in outputs]
                for place, n in enumerate(batch)
            }
        in_order = map(rows.__getitem__, range(len(every)))
        return [[next(in_order) for _ in each] for each in windows]


def load_on(files: ModelFiles, head: str, device_name: str | None, **options: Any) -> LoadedModel:
    """Load a model, on the GPU if there is one and no device is named; `options` are those of `load`.

    Raises ConfigError, see `load`, `device`.
    """
    chosen = device(device_name, who=files.who)
    tokenizer, network = load(files, head, **options)
    return LoadedModel(files, tokenizer, to_device(files, network, chosen), chosen)


def device(name: str | None, *, who: str) -> Any:
    """Return the device of this name; without a name, the GPU if there is one. Raises ConfigError."""
    torch = import_optional("torch", who)
    try:
        selected = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        if selected.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.empty(0, device=selected)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise ConfigError(f"{who}: device {name!r} cannot be used: {first_line(error)}") from error
    return selected


def to_device(files: ModelFiles, network: Any, to: Any) -> Any:
    """Move the network to a device. Raises ConfigError if it does not fit there."""
    try:
        return network.to(to)
    except (RuntimeError, MemoryError) as error:
        raise files.error(
            f"its network does not fit on {to} ({first_line(error)}): free memory there, name a smaller "
            "model, or set device to cpu"
        ) from error


def batch_tokens(kind: str) -> int:
    """Return how many tokens to read together on a kind of device."""
    return 32_768 if kind == "cuda" else 2_048


@contextmanager
def translated_errors(files: ModelFiles, tokens: int) -> Iterator[None]:
    """Silence other packages and turn a network's errors into a ConfigError that says which option to change."""
    try:
        with silenced():
            yield
    except (RuntimeError, ValueError, TypeError, IndexError, MemoryError) as error:
        why = f"its network cannot compute ({first_line(error)}): name another model"
        if isinstance(error, MemoryError) or "memory" in str(error).lower():
            why = f"{tokens:,} tokens at once need too much memory: set batch_tokens to less, or device to cpu"
        raise files.error(why) from error


def limit(tokenizer: Any, config: Any, usual: int = _USUAL_LIMIT) -> int:
    """Return how many tokens a model reads at once, special ones included; `usual` if it does not say."""
    positions = getattr(config, "max_position_embeddings", None) or getattr(
        config, "n_positions", None
    )
    limits = [tokenizer.model_max_length] if 0 < tokenizer.model_max_length < _NO_LIMIT else []
    if isinstance(positions, int) and positions > 0:
        taken = (config.pad_token_id or 0) + 1 if config.model_type in _OFFSET_POSITIONS else 0
        limits.append(positions - taken)
    return int(min(limits, default=usual))


def backend(tokenizer: Any) -> Any:
    """Return the `tokenizers` object inside a transformers tokenizer, or None if that is written in Python."""
    return (
        getattr(tokenizer, "backend_tokenizer", None)
        if getattr(tokenizer, "is_fast", False)
        else None
    )


class Window(Protocol):
    """A pair of texts, or a part of one of them beside the other, as token ids with special tokens.

    For each token: the segment that the model is told, 0 or 1 for the text that it is from (None for a special token),
    and where it begins and ends in that text.
    """

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]


class PairTokenizer(Protocol):
    """Cuts texts into tokens, in which [SEP] and its like are plain text."""

    def ids(self, text: str) -> list[int]:
        """Return the token ids of one text, without special tokens."""

    def windows(
        self, texts: tuple[str, str], long: int, *, size: int, overlap: int
    ) -> Sequence[Window]:
        """Return a pair, of which the text of index `long` is read in windows that overlap.

        `size` and `overlap` are tokens of a window, special ones and those of the other text included, and tokens that
        neighbouring windows share.
        """


class FastPairTokenizer:
    """A `PairTokenizer` by a tokenizer of the package `tokenizers`."""

    def __init__(self, inside: Any) -> None:
        self._inside = inside
        inside.no_padding()
        inside.no_truncation()
        inside.encode_special_tokens = True

    def ids(self, text: str) -> list[int]:
        return list(self._inside.encode(text, add_special_tokens=False).ids)

    def windows(
        self, texts: tuple[str, str], long: int, *, size: int, overlap: int
    ) -> Sequence[Window]:
        self._inside.enable_truncation(
            size, stride=overlap, strategy=("only_first", "only_second")[long]
        )
        first = self._inside.encode(*texts)
        self._inside.no_truncation()
        return [first, *first.overflowing]


@dataclass(slots=True)
class _SlowWindow:
    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]


class SlowPairTokenizer:
    """A `PairTokenizer` by a tokenizer that is written in Python, such as BertJapaneseTokenizer with MeCab.

    It tells no places of its tokens, so they are found by the letters of the pieces: see `piece_spans`.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def _pieces(self, text: str) -> list[str]:
        pieces = self._tokenizer.tokenize(text, split_special_tokens=True)
        special = {*self._tokenizer.all_special_tokens}
        unknown = self._tokenizer.unk_token
        return [unknown if piece in special else piece for piece in pieces]

    def ids(self, text: str) -> list[int]:
        return list(self._tokenizer.convert_tokens_to_ids(self._pieces(text)))

    def windows(
        self, texts: tuple[str, str], long: int, *, size: int, overlap: int
    ) -> Sequence[Window]:
        tokenizer = self._tokenizer
        ids = [self.ids(text) for text in texts]
        spans = [piece_spans(text, self._pieces(text), tokenizer.unk_token) for text in texts]
        special = len(tokenizer.build_inputs_with_special_tokens([], []))
        room = max(1, size - special - len(ids[1 - long]))
        step = max(1, room - overlap)
        starts = [0]
        while starts[-1] + room < len(ids[long]):
            starts.append(starts[-1] + step)
        cuts = [slice(start, start + room) for start in starts]
        return [
            self._window(ids, spans, [cut, slice(None)] if long == 0 else [slice(None), cut])
            for cut in cuts
        ]

    def _window(
        self,
        ids: Sequence[list[int]],
        spans: Sequence[list[tuple[int, int]]],
        cuts: Sequence[slice],
    ) -> _SlowWindow:
        first, second = (each[cut] for each, cut in zip(ids, cuts, strict=True))
        # Numbers below 0 mark the places of the two texts among the special tokens.
        layout = self._tokenizer.build_inputs_with_special_tokens([-1], [-2])
        window = _SlowWindow(
            [], list(self._tokenizer.create_token_type_ids_from_sequences(first, second)), [], []
        )
        for token in layout:
            if token >= 0:
                window.ids.append(token)
                window.sequence_ids.append(None)
                window.offsets.append((0, 0))
                continue
            place = -1 - token
            part = ids[place][cuts[place]]
            window.ids.extend(part)
            window.sequence_ids.extend([place] * len(part))
            window.offsets.extend(spans[place][cuts[place]])
        return window


_MOST_SKIPPED = 20  # characters that a tokenizer drops between two pieces
# A character with the marks that NFKC composes with it: ｶﾞ, か with a combining mark, é as two characters.
_COMPOSED = re.compile(r"(?s:.)[\u0300-\u036f\u3099\u309a\uff9e\uff9f\u1160-\u11ff]*")


def piece_spans(text: str, pieces: Sequence[str], unknown: str | None) -> list[tuple[int, int]]:
    """Return where pieces of a text begin and end in it, in order; an empty place if a piece does not occur there.

    Case, Unicode's form and white space may differ. Marks of pieces are dropped: `##` at the beginning, `▁` for a
    space. `unknown` stands for all text up to the next piece that is known.
    """
    letters: list[str] = []
    origins: list[tuple[int, int]] = []
    for match in _COMPOSED.finditer(text):
        for letter in _plain(match.group()):
            letters.append(letter)
            origins.append(match.span())
    plain_text = "".join(letters)

    def span(start: int, stop: int) -> tuple[int, int]:
        if start >= stop:
            place = origins[start][0] if start < len(origins) else len(text)
            return place, place
        return origins[start][0], origins[stop - 1][1]

    spans: list[tuple[int, int]] = []
    waiting: list[int] = []  # unknown pieces
    place = 0
    for number, piece in enumerate(pieces):
        spans.append(span(place, place))
        if piece == unknown:
            waiting.append(number)
            continue
        plain = _plain(piece.removeprefix("##") if len(piece) > 2 else piece)
        end = len(plain_text) if waiting else place + _MOST_SKIPPED + len(plain)
        found = plain_text.find(plain, place, end) if plain else -1
        if found < 0:
            continue
        for each in waiting:
            spans[each] = span(place, found)
        waiting = []
        place = found + len(plain)
        spans[-1] = span(found, place)
    for each in waiting:
        spans[each] = span(place, len(plain_text))
    return spans


def _plain(text: str) -> str:
    """Return the letters of a text or piece in one form: NFKC, folded case, no white space."""
    folded = unicodedata.normalize("NFKC", text.replace("▁", " ")).casefold()
    return "".join(folded.split())


MOST_UNKNOWN = 0.2
"""The share of tokens that may be unknown to a model: it sees all of them as one word."""


def unknown_share(ids: Sequence[int], unknown: int) -> float:
    """Return the share of tokens, 0–1, that are the unknown one; 0 for no tokens and for vocabularies of bytes."""
    return ids.count(unknown) / len(ids) if ids else 0.0


def padded(
    ids: Sequence[Sequence[int]], pad: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return token ids and attention mask, both of shape (texts, longest text)."""
    import numpy as np

    longest = max(len(row) for row in ids)
    rows = np.full((len(ids), longest), pad, dtype=np.int64)
    mask = np.zeros((len(ids), longest), dtype=np.int64)
    for place, row in enumerate(ids):
        rows[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return rows, mask


def batches(lengths: Sequence[int], tokens: int, *, mixed: bool = False) -> list[list[int]]:
    """Group the indices of `lengths`, longest first, into batches of at most `tokens` padded tokens, or of one text.

    Unless `mixed`, the lengths in a batch differ by an eighth at most, so that little is computed for padding.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    groups: list[list[int]] = []
    longest = 0
    for place in order:
        alike = mixed or lengths[place] >= longest - longest // 8
        if groups and (len(groups[-1]) + 1) * longest <= tokens and alike:
            groups[-1].append(place)
        else:
            longest = lengths[place]
            groups.append([place])
    return groups


def import_optional(module: str, who: str, extra: str | None = None) -> Any:
    """Import a module. Raises MissingExtra, with the pip line, if it or its requirements are not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise missing((error.name or module).partition(".")[0], who, extra) from error


@cache
def version(package: str, who: str, extra: str | None = None) -> str:
    """Return a package's version without importing it. Raises MissingExtra if it is not installed."""
    try:
        return installed_version(package)
    except PackageNotFoundError as error:
        raise missing(package, who, extra) from error


def runtime(who: str, extra: str | None = None) -> str:
    """Return the versions of torch and transformers for signatures, as numbers may differ. Raises MissingExtra."""
    return "|".join(
        f"{package} {version(package, who, extra)}" for package in ("torch", "transformers")
    )


def missing(package: str, who: str, extra: str | None = None) -> MissingExtra:
    """Return the error for a missing package; the extra that installs it is `extra`, else named like the metric."""
    return MissingExtra(
        f"{who} needs the package {package}: pip install 'textjudge[{extra or who}]'"
    )


def first_line(error: Exception) -> str:
    """Return the first line of another package's error message, shortened."""
    lines = (line.strip() for line in str(error).splitlines() if line.strip())
    return next(lines, type(error).__name__)[:300].rstrip(":")


@contextmanager
def silenced() -> Iterator[None]:
    """Suppress warnings, log lines and progress bars of other packages inside the block."""
    transformers, hub = (
        import_module("transformers.utils.logging"),
        import_module("huggingface_hub.utils"),
    )
    had_bars, hub_hid_bars = (
        transformers.is_progress_bar_enabled(),
        hub.are_progress_bars_disabled(),
    )
    before = logging.root.manager.disable
    logging.disable(max(before, logging.WARNING))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            transformers.disable_progress_bar()
            hub.disable_progress_bars()
            yield
    finally:
        logging.disable(before)
        if had_bars:
            transformers.enable_progress_bar()
        if not hub_hid_bars:
            hub.enable_progress_bars()
