"""Embed texts, each distinct text of a block once.

Texts longer than the model's window are read in overlapping windows. The vector of a token comes
from the window in which the token has most context.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from judge.core import normalization
from judge.core.huggingface import batches, version
from judge.core.huggingface import runtime as huggingface_runtime
from judge.metrics.base import Tell, no_progress
from judge.metrics.bertscore.encoder import TokenizerInfo, TorchEncoder
from judge.metrics.bertscore.models import PACKAGE, Model, Options

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded text: token ids, shape (n,), and unit vectors, shape (n, dimensions).

    Both include special tokens. `length` counts the tokens before any cut.
    """

    ids: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.float32]
    length: int


class Window(NamedTuple):
    """A part of a text: tokens `start` to `stop` are read, vectors `first` to `last` are used.

    `first` and `last` also count the special tokens around the text.
    """

    start: int
    stop: int
    first: int
    last: int


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
    # The middle of token t is t + 1/2, so the earlier window has the tokens below this boundary.
    boundaries: list[int] = []
    for start, following in pairwise(starts):
        middle = (start + following + size + 1) // 2
        boundaries.append(n_prefix + middle)
    edges = pairwise([0, *boundaries, n_prefix + count + n_suffix])
    all_windows: list[Window] = []
    for start, (first_vector, last_vector) in zip(starts, edges, strict=True):
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

    def ids(self, texts: Iterable[str]) -> dict[str, npt.NDArray[np.int32]]:
        """Return the token ids of texts, including special tokens."""
        return {text: self._tokens(text)[0] for text in texts}

    def _tokens(self, text: str) -> tuple[npt.NDArray[np.int32], int]:
        """Return a text's ids and their number before any cut. The option `long` may cut them."""
        import numpy as np

        content = self._encoder.tokens(text)
        read_content = content[: self.facts.room] if self._options.long == "cut" else content
        all_ids = [*self.facts.prefix, *read_content, *self.facts.suffix]
        n_cut = len(content) - len(read_content)
        return np.array(all_ids, dtype=np.int32), len(all_ids) + n_cut

    def encode(self, texts: Sequence[str]) -> dict[str, Encoded]:
        """Return the texts' embeddings, all in memory. The texts are distinct and `clean`."""
        # Without texts, the model is not loaded.
        if not texts:
            return {}
        import numpy as np

        ids_by_text: dict[str, npt.NDArray[np.int32]] = {}
        length_by_text: dict[str, int] = {}
        for text in texts:
            ids_by_text[text], length_by_text[text] = self._tokens(text)
        pieces = self._pieces(ids_by_text)
        missing = Counter(text for text, _ in pieces)  # windows that are not embedded yet
        vectors: dict[str, npt.NDArray[np.float32]] = {}
        for batch in self._batches(pieces):
            ids_of_windows = [self._window_ids(ids_by_text[text], window) for text, window in batch]
            hidden = self._encoder.hidden(ids_of_windows)
            for (text, window), rows in zip(batch, hidden, strict=True):
                if text not in vectors:
                    shape = (len(ids_by_text[text]), rows.shape[1])
                    vectors[text] = np.empty(shape, dtype=np.float32)
                vectors[text][window.first : window.last] = _unit_vectors(rows, window)
                missing[text] -= 1
            finished = [text for text, _ in batch if not missing[text]]
            self._count(finished)
        encoded: dict[str, Encoded] = {}
        for text, ids in ids_by_text.items():
            encoded[text] = Encoded(ids, vectors[text], length_by_text[text])
        return encoded

    @property
    def _special_count(self) -> int:
        return len(self.facts.prefix) + len(self.facts.suffix)

    def _pieces(self, ids_by_text: Mapping[str, npt.NDArray[np.int32]]) -> list[tuple[str, Window]]:
        """Return the windows of all texts."""
        pieces: list[tuple[str, Window]] = []
        for text, ids in ids_by_text.items():
            windows_of_text = windows(len(ids) - self._special_count, self.facts)
            pieces += [(text, window) for window in windows_of_text]
        return pieces

    def _batches(self, pieces: Sequence[tuple[str, Window]]) -> Iterator[list[tuple[str, Window]]]:
        """Yield the windows in batches of similar lengths."""
        n_special = self._special_count
        lengths = [window.stop - window.start + n_special for _, window in pieces]
        tokens = self._options.batch_tokens or self._encoder.batch_tokens
        for batch in batches(lengths, tokens):
            yield [pieces[index] for index in batch]

    def _window_ids(self, ids: npt.NDArray[np.int32], window: Window) -> list[int]:
        """Return a window's token ids, between the special tokens."""
        content = ids[len(self.facts.prefix) :]
        inner = content[window.start : window.stop].tolist()
        return [*self.facts.prefix, *inner, *self.facts.suffix]

    def _count(self, texts: Iterable[str]) -> None:
        """Report the progress after these texts, if one of them is new."""
        count_before = len(self._counted)
        self._counted.update(texts)
        if len(self._counted) > count_before:
            self.progress(len(self._counted), self.total)


def _unit_vectors(rows: npt.NDArray[np.float32], window: Window) -> npt.NDArray[np.float32]:
    """Return the vectors that a text takes from this window, each of length 1.

    `rows` are the vectors of all tokens of the window.
    """
    import numpy as np

    # A token in two windows has the vector with more context, see `windows`.
    first_row = window.first - window.start
    end_row = window.last - window.start
    rows_of_window = rows[first_row:end_row]
    # The product of two vectors of length 1 is their cosine.
    norms = np.linalg.norm(rows_of_window, axis=1, keepdims=True)
    unit_vectors: npt.NDArray[np.float32] = rows_of_window / norms
    return unit_vectors
