"""Texts to embeddings: each distinct text once, from the store where it is there, else by the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from judge.core import records
from judge.core.huggingface import batches, version
from judge.metrics.bertscore.matching import Encoded
from judge.metrics.bertscore.models import Model
from judge.metrics.bertscore.onnx_encoder import OnnxEncoder
from judge.metrics.bertscore.options import Options
from judge.metrics.bertscore.store import NoStore, key
from judge.metrics.bertscore.tokenizing import Facts, Tokenize
from judge.metrics.bertscore.torch_encoder import TorchEncoder
from judge.metrics.bertscore.windows import Window, windows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_MOST_KEPT = 2**28  # bytes of one text's vectors; SQLite takes no row above 1 GB
Progress = Callable[[int, int], None]


class Encoder(Protocol):
    """What computes: `hidden` takes token ids with special tokens, at most `facts.limit` each."""

    facts: Facts
    tokens: Tokenize
    batch_tokens: int

    def hidden(self, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]: ...


def runtime(options: Options) -> str:
    """The package that computes and its version, for signatures; other versions may give other last digits."""
    if options.backend == "onnx":
        return f"onnx|onnxruntime {version('onnxruntime', 'bertscore', 'onnx')}"
    return f"torch {version('torch', 'bertscore')}|transformers {version('transformers', 'bertscore')}"


def clean(text: str) -> str:
    """A text as the model is given it: without white space at its ends, and such that UTF-8 can carry it."""
    return records.whole(text).strip()


class Embedder:
    """Encodes texts for one run. `exports` is where an exported model is kept; None forgets it.

    What is encoded goes into the store, or, where `spilled` is a set, only those texts of it.
    """

    def __init__(self, options: Options, model: Model, store: NoStore, exports: Path | None) -> None:
        self._options, self._model, self._store, self._exports = options, model, store, exports
        parts = [model.digest, model.layer, options.precision, options.long, runtime(options)]
        parts += [options.device or "auto", version("tokenizers", "bertscore")]
        self._scheme = json.dumps(parts)
        self._made: Encoder | None = None
        self._facts: Facts | None = None
        self.spilled: set[str] | None = None
        self.progress: Progress | None = None
        self.total = 0
        self._counted: set[str] = set()

    @property
    def facts(self) -> Facts:
        if self._facts is None:
            name = f"facts|{self._scheme}"
            self._facts = Facts.from_dict(self._store.fact(name))
            if self._facts is None:
                self._facts = self._encoder.facts
                self._store.keep_fact(name, self._facts.to_dict())
        return self._facts

    @property
    def _encoder(self) -> Encoder:
        if self._made is None:
            if self._options.backend == "onnx":
                self._made = OnnxEncoder(self._model, self._exports, self._options.device)
            else:
                self._made = TorchEncoder(self._model, self._options.precision, self._options.device)
        return self._made

    def ids(self, texts: Iterable[str]) -> dict[str, npt.NDArray[np.int32]]:
        """Token ids of texts as they would be encoded, special tokens too."""
        keys = {text: key(self._scheme, text) for text in texts}
        stored = self._store.ids(list(keys.values()))
        return {text: stored[name] if name in stored else self._tokens(text)[0] for text, name in keys.items()}

    def _tokens(self, text: str) -> tuple[npt.NDArray[np.int32], int]:
        """A text's ids, cut if that is wanted, and how many they would be uncut."""
        import numpy as np

        content = self._encoder.tokens(text)
        kept = content[: self.facts.room] if self._options.long == "cut" else content
        ids = np.array([*self.facts.prefix, *kept, *self.facts.suffix], dtype=np.int32)
        return ids, len(ids) + len(content) - len(kept)

    def encode(self, texts: Sequence[str]) -> dict[str, Encoded]:
        """The texts' embeddings, all held at once. The texts are distinct and `clean`."""
        keys = {text: key(self._scheme, text) for text in texts}
        stored = self._store.get(list(keys.values()))
        found = {text: stored[name] for text, name in keys.items() if name in stored}
        self._count(found)
        made = self._compute([text for text in texts if text not in found])
        kept = {
            keys[text]: row
            for text, row in made.items()
            if (self.spilled is None or text in self.spilled) and row.vectors.nbytes <= _MOST_KEPT
        }
        if kept:
            self._store.put(kept)
        return found | made

    def _compute(self, texts: Sequence[str]) -> dict[str, Encoded]:
        if not texts:
            return {}
        plans = [_Plan(*self._tokens(text), self.facts) for text in texts]
        pieces = [(plan, place) for plan in plans for place in range(len(plan.windows))]
        lengths = [plan.size(place) for plan, place in pieces]
        names = dict(zip(map(id, plans), texts, strict=True))
        for batch in batches(lengths, self._options.batch_tokens or self._encoder.batch_tokens):
            hidden = self._encoder.hidden([pieces[n][0].piece(pieces[n][1]) for n in batch])
            for n, vectors in zip(batch, hidden, strict=True):
                pieces[n][0].take(pieces[n][1], vectors)
            self._count(names[id(pieces[n][0])] for n in batch if pieces[n][0].whole)
        return {text: plan.encoded() for text, plan in zip(texts, plans, strict=True)}

    def _count(self, texts: Iterable[str]) -> None:
        before = len(self._counted)
        self._counted.update(texts)
        if self.progress and len(self._counted) > before:
            self.progress(len(self._counted), self.total)


class _Plan:
    """One text on its way through the model, window by window."""

    def __init__(self, ids: npt.NDArray[np.int32], length: int, facts: Facts) -> None:
        self.ids, self.length, self._facts = ids, length, facts
        self._head, self._tail = len(facts.prefix), len(facts.suffix)
        self.windows: list[Window] = windows(len(ids) - self._head - self._tail, facts.room)
        self._vectors: npt.NDArray[np.float32] | None = None
        self._left = len(self.windows)

    @property
    def whole(self) -> bool:
        return not self._left

    def size(self, place: int) -> int:
        window = self.windows[place]
        return window.stop - window.start + self._head + self._tail

    def piece(self, place: int) -> list[int]:
        """The ids that the model reads as one of the windows, with special tokens around them."""
        window = self.windows[place]
        content = self.ids[self._head + window.start : self._head + window.stop].tolist()
        return [*self._facts.prefix, *content, *self._facts.suffix]

    def take(self, place: int, hidden: npt.NDArray[np.float32]) -> None:
        """Keep, as unit vectors, what this window is there for; the text's own ends come from its ends' windows."""
        import numpy as np

        if self._vectors is None:
            self._vectors = np.empty((len(self.ids), hidden.shape[1]), dtype=np.float32)
        window, content = self.windows[place], len(self.ids) - self._head - self._tail
        first = 0 if window.first == 0 else self._head + window.first
        last = len(self.ids) if window.last == content else self._head + window.last
        part = hidden[first - window.start : last - window.start]
        self._vectors[first:last] = part / np.linalg.norm(part, axis=1, keepdims=True)
        self._left -= 1

    def encoded(self) -> Encoded:
        assert self._vectors is not None  # noqa: S101 - every text has a window, and every window was taken
        return Encoded(self.ids, self._vectors, self.length, len(self.windows))
