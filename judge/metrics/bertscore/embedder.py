"""Embed texts, each distinct text of a block once.

Texts longer than the model's window are read in overlapping windows. The vector of a token comes
from the window in which the token has most context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from judge.core import normalization
from judge.core.huggingface import batches, version
from judge.core.huggingface import runtime as huggingface_runtime
from judge.metrics.base import Tell, no_progress
from judge.metrics.bertscore.encoder import TokenizerInfo, TorchEncoder
from judge.metrics.bertscore.models import PACKAGE, Model, Options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    TokenIds: TypeAlias = NDArray[np.int32]
    Vectors: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded text: token ids, shape (n,), and unit vectors, shape (n, dimensions).

    Both include special tokens. `length` counts the tokens before any cut.
    """

    ids: TokenIds
    vectors: Vectors
    length: int


class Window(NamedTuple):
    """A part of a text: tokens `start` to `stop` are read, vectors `first` to `last` are used.

    `first` and `last` also count the special tokens around the text.
    """

    start: int
    stop: int
    first: int
    last: int


Piece = tuple[str, Window]
"""A text, and one of its windows."""


def windows(count: int, facts: TokenizerInfo) -> list[Window]:
    """Return windows over `count` tokens, overlapping by half; the last one ends with the text.

    Each token belongs to the window with the nearest middle, the earlier of two equally near ones.
    The special tokens belong to the first and the last window.
    """
    size = facts.room
    n_prefix = len(facts.prefix)
    n_suffix = len(facts.suffix)
    step = max(size // 2, 1)
    last_start = max(count - size, 0)
    starts = [*range(0, count - size, step), last_start]
    # Where the vectors of each window begin, and where all end.
    boundaries = [0]
    for start, following in pairwise(starts):
        # The middle of token t is t + 1/2, so the earlier window has the tokens below this one.
        middle = (start + following + size + 1) // 2
        boundaries.append(n_prefix + middle)
    boundaries.append(n_prefix + count + n_suffix)
    all_windows: list[Window] = []
    vector_ranges = pairwise(boundaries)
    for start, (first_vector, last_vector) in zip(starts, vector_ranges, strict=True):
        stop = min(start + size, count)
        all_windows.append(Window(start, stop, first_vector, last_vector))
    return all_windows


def runtime(options: Options) -> str:
    """Return the package that computes and its version, for signatures.

    Other versions may give other last digits.
    """
    package = ""
    if options.package:
        package = f"implementation={PACKAGE} {version(PACKAGE, 'bertscore')}|"
    return package + huggingface_runtime("bertscore")


def clean(text: str) -> str:
    """Return a text as the model gets it: valid Unicode without white space at its ends."""
    return normalization.whole(text).strip()


class Embedder:
    """Encodes texts for one run."""

    def __init__(self, options: Options, model: Model) -> None:
        self._options = options
        self._model = model
        self._loaded: TorchEncoder | None = None
        self.progress: Tell = no_progress
        self.total = 0
        self._counted: set[str] = set()

    @property
    def facts(self) -> TokenizerInfo:
        return self._encoder.facts

    @property
    def _encoder(self) -> TorchEncoder:
        if self._loaded is None:
            options = self._options
            self._loaded = TorchEncoder(self._model, options.precision, options.device)
        return self._loaded

    def ids(self, texts: Iterable[str]) -> dict[str, TokenIds]:
        """Return the token ids of texts, including special tokens."""
        ids_by_text: dict[str, TokenIds] = {}
        for text in texts:
            ids_by_text[text], _ = self._tokens(text)
        return ids_by_text

    def _tokens(self, text: str) -> tuple[TokenIds, int]:
        """Return a text's ids and their number before any cut. The option `long` may cut them."""
        import numpy as np

        content = self._encoder.tokens(text)
        length = len(content) + self._special_count
        if self._options.long == "cut":
            content = content[: self.facts.room]
        all_ids = [*self.facts.prefix, *content, *self.facts.suffix]
        return np.array(all_ids, dtype=np.int32), length

    def encode(self, texts: Sequence[str]) -> dict[str, Encoded]:
        """Return the texts' embeddings, all in memory. The texts are distinct and `clean`."""
        # Without texts, the model is not loaded.
        if not texts:
            return {}
        import numpy as np

        ids_by_text: dict[str, TokenIds] = {}
        length_by_text: dict[str, int] = {}
        for text in texts:
            ids_by_text[text], length_by_text[text] = self._tokens(text)
        pieces = self._pieces(ids_by_text)
        windows_left = Counter(text for text, _ in pieces)  # not embedded yet
        vectors_by_text: dict[str, Vectors] = {}
        for batch in self._batches(pieces):
            batch_ids = [
                self._window_ids(ids_by_text[text], window) for text, window in batch
            ]
            batch_vectors = self._encoder.hidden(batch_ids)
            for piece, window_vectors in zip(batch, batch_vectors, strict=True):
                text, window = piece
                if text not in vectors_by_text:
                    _, dimensions = window_vectors.shape
                    shape = (len(ids_by_text[text]), dimensions)
                    vectors_by_text[text] = np.empty(shape, dtype=np.float32)
                unit_vectors = _unit_vectors(window_vectors, window)
                vectors_by_text[text][window.first : window.last] = unit_vectors
                windows_left[text] -= 1
            finished = [text for text, _ in batch if not windows_left[text]]
            self._count(finished)
        encoded: dict[str, Encoded] = {}
        for text, ids in ids_by_text.items():
            encoded[text] = Encoded(ids, vectors_by_text[text], length_by_text[text])
        return encoded

    @property
    def _special_count(self) -> int:
        return len(self.facts.prefix) + len(self.facts.suffix)

    def _pieces(self, ids_by_text: Mapping[str, TokenIds]) -> list[Piece]:
        """Return the windows of all texts."""
        pieces: list[Piece] = []
        for text, ids in ids_by_text.items():
            content_length = len(ids) - self._special_count
            all_windows = windows(content_length, self.facts)
            pieces += [(text, window) for window in all_windows]
        return pieces

    def _batches(self, pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
        """Yield the windows in batches of similar lengths."""
        n_special = self._special_count
        lengths = [window.stop - window.start + n_special for _, window in pieces]
        batch_tokens = self._options.batch_tokens or self._encoder.batch_tokens
        for indices in batches(lengths, batch_tokens):
            yield [pieces[index] for index in indices]

    def _window_ids(self, ids: TokenIds, window: Window) -> list[int]:
        """Return a window's token ids, between the special tokens."""
        content = ids[len(self.facts.prefix) :]
        window_content = content[window.start : window.stop].tolist()
        return [*self.facts.prefix, *window_content, *self.facts.suffix]

    def _count(self, texts: Iterable[str]) -> None:
        """Report the progress after these texts, if one of them is new."""
        count_before = len(self._counted)
        self._counted.update(texts)
        if len(self._counted) > count_before:
            self.progress(len(self._counted), self.total)


def _unit_vectors(window_vectors: Vectors, window: Window) -> Vectors:
    """Return the vectors that a text takes from this window, each of length 1.

    `window_vectors` are those of all tokens of the window, shape (tokens, dimensions).
    """
    import numpy as np

    # A token in two windows has the vector with more context, see `windows`.
    first = window.first - window.start
    end = window.last - window.start
    used_vectors = window_vectors[first:end]
    # The product of two vectors of length 1 is their cosine.
    norms = np.linalg.norm(used_vectors, axis=1, keepdims=True)
    unit_vectors: Vectors = used_vectors / norms
    return unit_vectors
