"""Cut pairs of texts into the windows that a network reads, with fast and with slow tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from judge.core.piece_spans import piece_spans


class Window(Protocol):
    """A pair of texts, or a part of one of them beside the other, as token ids with special tokens.

    For each token, `type_ids` has the segment that the model sees, `sequence_ids` the text that the
    token is from (0 or 1, None for a special token), and `offsets` its start and end in that text.
    """

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]


class PairTokenizer(Protocol):
    """Cuts texts into tokens. A [SEP] in a text is plain text, and no special token."""

    def ids(self, text: str) -> list[int]:
        """Return the token ids of one text, without special tokens."""

    def windows(
        self,
        texts: tuple[str, str],
        long: int,
        *,
        size: int,
        overlap: int,
    ) -> Sequence[Window]:
        """Return a pair whose text of index `long` is read in overlapping windows.

        `size` is the number of tokens of a window, including special tokens and the other text.
        `overlap` is the number of tokens that neighbouring windows share.
        """


class FastPairTokenizer:
    """A `PairTokenizer` by a tokenizer of the package `tokenizers`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True

    def ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def windows(
        self,
        texts: tuple[str, str],
        long: int,
        *,
        size: int,
        overlap: int,
    ) -> Sequence[Window]:
        strategy = "only_second" if long else "only_first"
        self._tokenizer.enable_truncation(size, stride=overlap, strategy=strategy)
        first_window = self._tokenizer.encode(*texts)
        self._tokenizer.no_truncation()
        return [first_window, *first_window.overflowing]


@dataclass(slots=True)
class _SlowWindow:
    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]


class SlowPairTokenizer:
    """A `PairTokenizer` by a tokenizer in pure Python, such as BertJapaneseTokenizer with MeCab.

    These do not return the positions of tokens, which `piece_spans` finds by the letters of pieces.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def _pieces(self, text: str) -> list[str]:
        pieces = self._tokenizer.tokenize(text, split_special_tokens=True)
        # A piece of a text that looks like a special token must not become one.
        special_tokens = {*self._tokenizer.all_special_tokens}
        unknown = self._tokenizer.unk_token
        return [unknown if piece in special_tokens else piece for piece in pieces]

    def ids(self, text: str) -> list[int]:
        return list(self._tokenizer.convert_tokens_to_ids(self._pieces(text)))

    def windows(
        self,
        texts: tuple[str, str],
        long: int,
        *,
        size: int,
        overlap: int,
    ) -> Sequence[Window]:
        tokenizer = self._tokenizer
        ids = [self.ids(text) for text in texts]
        unknown = tokenizer.unk_token
        spans = [piece_spans(text, self._pieces(text), unknown) for text in texts]
        n_special = len(tokenizer.build_inputs_with_special_tokens([], []))
        n_other = len(ids[1 - long])
        room = max(1, size - n_special - n_other)
        step = max(1, room - overlap)
        windows = []
        window_start = 0
        while True:
            cuts = [slice(None), slice(None)]
            cuts[long] = slice(window_start, window_start + room)
            windows.append(self._window(ids, spans, cuts))
            if window_start + room >= len(ids[long]):
                return windows
            window_start += step

    def _window(
        self,
        ids: Sequence[list[int]],
        spans: Sequence[list[tuple[int, int]]],
        cuts: Sequence[slice],
    ) -> _SlowWindow:
        first_ids = ids[0][cuts[0]]
        second_ids = ids[1][cuts[1]]
        create_type_ids = self._tokenizer.create_token_type_ids_from_sequences
        type_ids = list(create_type_ids(first_ids, second_ids))
        window = _SlowWindow([], type_ids, [], [])
        # -1 and -2 mark the positions of the two texts among the special tokens.
        layout = self._tokenizer.build_inputs_with_special_tokens([-1], [-2])
        for token in layout:
            if token >= 0:
                window.ids.append(token)
                window.sequence_ids.append(None)
                window.offsets.append((0, 0))
                continue
            sequence = -1 - token
            ids_in_window = ids[sequence][cuts[sequence]]
            window.ids.extend(ids_in_window)
            window.sequence_ids.extend([sequence] * len(ids_in_window))
            part_spans = spans[sequence][cuts[sequence]]
            window.offsets.extend(part_spans)
        return window
