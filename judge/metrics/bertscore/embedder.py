"""Embed texts, each distinct text of a block once.

Texts longer than the model's window are read in overlapping windows; each token comes from the window in which it has
most context.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from judge.core import records
from judge.core.huggingface import batches, version
from judge.core.huggingface import runtime as huggingface_runtime
from judge.metrics.base import Tell, no_progress
from judge.metrics.bertscore.models import PACKAGE, Model, Options, TokenizerInfo, TorchEncoder

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoded text: token ids, shape (n,), and unit vectors, shape (n, dimensions), including special tokens.

    `length` counts its tokens before any cut.
    """

    ids: npt.NDArray[np.int32]
    vectors: npt.NDArray[np.float32]
    length: int


class Window(NamedTuple):
    """The tokens `start` to `stop` of a text are read together; the vectors `first` to `last` are used.

    `first` and `last` also count the special tokens around the text.
    """

    start: int
    stop: int
    first: int
    last: int


def windows(count: int, facts: TokenizerInfo) -> list[Window]:
    """Return windows over `count` tokens, overlapping by half; the last one ends with the text.

    Each token belongs to the window with the nearest middle, the earlier of two equally near ones. The special tokens
    belong to the first and the last window.
    """
    size, head, tail = facts.room, len(facts.prefix), len(facts.suffix)
    starts = [*range(0, count - size, max(size // 2, 1)), max(count - size, 0)]
    # The middle of token t is t + 1/2, so the earlier window has the tokens below this mark.
    marks = [head + (a + b + size + 1) // 2 for a, b in pairwise(starts)]
    edges = pairwise([0, *marks, head + count + tail])
    return [
        Window(at, min(at + size, count), *edge) for at, edge in zip(starts, edges, strict=True)
    ]


def runtime(options: Options) -> str:
    """The package that computes and its version, for signatures; other versions may give other last digits."""
    package = (
        f"implementation={PACKAGE} {version(PACKAGE, 'bertscore')}|" if options.package else ""
    )
    return package + huggingface_runtime("bertscore")


def clean(text: str) -> str:
    """Return a text as the model receives it: without white space at its ends, and encodable as UTF-8."""
    return records.whole(text).strip()


class Embedder:
    """Encodes texts for one run."""

    def __init__(self, options: Options, model: Model) -> None:
        self._options, self._model = options, model
        self._made: TorchEncoder | None = None
        self.progress: Tell = no_progress
        self.total = 0
        self._counted: set[str] = set()

    @property
    def facts(self) -> TokenizerInfo:
        return self._encoder.facts

    @property
    def _encoder(self) -> TorchEncoder:
        if self._made is None:
            self._made = TorchEncoder(self._model, self._options.precision, self._options.device)
        return self._made

    def ids(self, texts: Iterable[str]) -> dict[str, npt.NDArray[np.int32]]:
        """Return the token ids of texts, including special tokens."""
        return {text: self._tokens(text)[0] for text in texts}

    def _tokens(self, text: str) -> tuple[npt.NDArray[np.int32], int]:
        """Return a text's ids, cut if the options say so, and their number before the cut."""
        import numpy as np

        content = self._encoder.tokens(text)
        content_kept = content[: self.facts.room] if self._options.long == "cut" else content
        ids = np.array([*self.facts.prefix, *content_kept, *self.facts.suffix], dtype=np.int32)
        return ids, len(ids) + len(content) - len(content_kept)

    def encode(self, texts: Sequence[str]) -> dict[str, Encoded]:
        """Return the texts' embeddings, all in memory. The texts are distinct and `clean`."""
        if not texts:
            return {}
        import numpy as np

        known = self.facts
        head, special = len(known.prefix), len(known.prefix) + len(known.suffix)
        read = {text: self._tokens(text) for text in texts}
        parts = {text: windows(len(ids) - special, known) for text, (ids, _) in read.items()}
        pieces = [(text, window) for text in texts for window in parts[text]]
        vectors: dict[str, npt.NDArray[np.float32]] = {}
        left = {text: len(each) for text, each in parts.items()}

        def ids_of(text: str, window: Window) -> list[int]:
            return [
                *known.prefix,
                *read[text][0][head + window.start : head + window.stop].tolist(),
                *known.suffix,
            ]

        lengths = [window.stop - window.start + special for _, window in pieces]
        for batch in batches(lengths, self._options.batch_tokens or self._encoder.batch_tokens):
            hidden = self._encoder.hidden([ids_of(*pieces[n]) for n in batch])
            for (text, window), rows in zip((pieces[n] for n in batch), hidden, strict=True):
                if text not in vectors:
                    vectors[text] = np.empty((len(read[text][0]), rows.shape[1]), dtype=np.float32)
                part = rows[window.first - window.start : window.last - window.start]
                vectors[text][window.first : window.last] = part / np.linalg.norm(
                    part, axis=1, keepdims=True
                )
                left[text] -= 1
            self._count(text for text, _ in (pieces[n] for n in batch) if not left[text])
        return {text: Encoded(ids, vectors[text], length) for text, (ids, length) in read.items()}

    def _count(self, texts: Iterable[str]) -> None:
        before = len(self._counted)
        self._counted.update(texts)
        if len(self._counted) > before:
            self.progress(len(self._counted), self.total)
