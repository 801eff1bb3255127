"""The labels of a scale: every way in which a tokenizer writes them, and what each of them is worth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.errors import ConfigError
from judge.providers.transformers.labels import Labels, LabelTokenizer

transformers = pytest.importorskip("transformers", reason="needs the package transformers")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

token = st.integers(0, 3)
sequence = st.lists(token, min_size=1, max_size=4).map(tuple)
scales = st.lists(sequence, min_size=1, max_size=9, unique=True).flatmap(
    lambda ways: st.lists(st.integers(0, 3), min_size=len(ways), max_size=len(ways)).map(
        lambda owners: Labels(
            tuple(map(str, sorted(set(owners)))),
            tuple(tuple(w for w, o in zip(ways, owners, strict=True) if o == one) for one in sorted(set(owners))),
        )
    )
)


@settings(max_examples=40)
@given(scales, st.integers(0, 10_000))
def test_a_label_has_all_that_begins_with_it_and_with_no_longer_one(labels: Labels, seed: int) -> None:
    """Every possible reply of four tokens counts for the longest label that it begins with."""
    chance = np.random.default_rng(seed)
    after = {path: chance.dirichlet([0.3] * 4) for n in range(4) for path in itertools.product(range(4), repeat=n)}
    expected = dict.fromkeys(labels.names, 0.0)
    owner = {way: name for name, ways in zip(labels.names, labels.ways, strict=True) for way in ways}
    for reply in itertools.product(range(4), repeat=4):
        begun = [owner[reply[:n]] for n in range(1, 5) if reply[:n] in owner]
        if begun:
            expected[begun[-1]] += math.prod(after[reply[:n]][reply[n]] for n in range(4))
    with np.errstate(divide="ignore"):
        logs = {path: np.log(found) for path, found in after.items()}
    given_ = [
        [float(logs[path][one]) for one in next_] for path, next_ in zip(labels.inner, labels.following, strict=True)
    ]
    found = dict(labels.shares(given_))
    assert found == pytest.approx(expected, abs=1e-9)
    assert sum(found.values()) <= 1 + 1e-12
    assert min(found.values()) >= 0


def fast(tokenizer: Any, **special: str) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def byte_level(pieces: Sequence[str]) -> Any:
    """A byte-level tokenizer that has these pieces (Ġ is a space) whole, and all others byte by byte."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [(piece[:n], piece[n:]) for piece in pieces for n in [len(piece) - 1] if n]
    vocabulary = {piece: n for n, piece in enumerate(dict.fromkeys([*alphabet, *pieces]))}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=merges))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    return fast(made)


def sentence_piece(pieces: Sequence[str]) -> Any:
    """A tokenizer in the manner of SentencePiece, which puts a space (▁) before every text."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), *((one, -1.0) for one in pieces)], 0))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    return fast(made, unk_token="<unk>")


def written(tokenizer: Any, labels: Labels) -> dict[str, set[str]]:
    """The pieces of every sequence, by label."""
    return {
        name: {" ".join(tokenizer.convert_ids_to_tokens(list(way))) for way in ways}
        for name, ways in zip(labels.names, labels.ways, strict=True)
    }


def every(tokenizer: Any, label: str, longest: int, without: Sequence[str] = ()) -> Iterator[tuple[int, ...]]:
    """All sequences of so many tokens that write a label."""
    ids = [
        one for piece, one in tokenizer.get_vocab().items()
        if piece not in without and (text := tokenizer.decode([one]).strip()) and text in label
    ]  # fmt: skip
    for n in range(1, longest + 1):
        for way in itertools.product(ids, repeat=n):
            if tokenizer.decode(list(way)).strip() == label:
                yield way


def test_all_ways_to_write_labels_that_begin_alike_are_found() -> None:
    tokenizer = byte_level(["Ġ1", "10", "Ġ10", "100", "00"])
    names = ("1", "10", "100", "5")
    found = LabelTokenizer(tokenizer)(names)
    for name, ways in zip(names, found.ways, strict=True):
        extra = {way for way in ways if "Ġ" in tokenizer.convert_ids_to_tokens(list(way))}  # as it writes " 5" itself
        assert set(ways) - extra == set(every(tokenizer, name, 3, ["Ġ"]))
    assert written(tokenizer, found)["5"] == {"5", "Ġ 5"}


def test_labels_of_a_scale_in_steps_of_ten() -> None:
    tokenizer = byte_level([f"{n}0" for n in range(1, 10)] + ["100"])
    names = tuple(str(n) for n in range(0, 101, 10))
    found = written(tokenizer, LabelTokenizer(tokenizer)(names))
    assert found["10"] == {"10", "Ġ 10"}  # "1" is no label, so that nothing is taken from it
    assert found["100"] == {"100", "Ġ 100", "10 0", "Ġ 10 0"}


@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_a_label_that_goes_on_from_another(make: Callable[[Sequence[str]], Any]) -> None:
    pieces = ["yes", "Ġyes", "Ġpartly"] if make is byte_level else ["yes", "▁yes", ",", "▁partly", "▁"]
    if make is byte_level:
        pieces = ["ye", "yes", "Ġy", "Ġye", "Ġyes"]
    tokenizer = make(pieces)
    labels = LabelTokenizer(tokenizer)(("yes", "yes, partly"))
    short, long = labels.ways
    assert all(any(way[: len(one)] == one for one in short) for way in long)
    assert {tokenizer.decode(list(way)).strip() for way in long} == {"yes, partly"}


def test_sentence_pieces_with_and_without_their_space() -> None:
    tokenizer = sentence_piece(["▁", "1", "0", "▁1", "▁10", "5"])
    found = written(tokenizer, LabelTokenizer(tokenizer)(("1", "10", "5")))
    assert found["1"] == {"1", "▁1"}
    assert found["10"] == {"▁10", "1 0", "▁1 0"}
    assert found["5"] == {"5", "▁ 5"} | ({"▁ ▁ 5"} & found["5"])


def test_labels_in_other_scripts_are_written_byte_by_byte() -> None:
    tokenizer = byte_level([])
    labels = LabelTokenizer(tokenizer)(("良い", "悪い"))
    assert {tokenizer.decode(list(way)).strip() for ways in labels.ways for way in ways} == {"良い", "悪い"}
    assert labels.depth == 6


def test_labels_that_cannot_be_written_are_named() -> None:
    tokenizer = sentence_piece(["▁1", "▁2"])
    tokenizer.name_or_path = "some/model"
    with pytest.raises(ConfigError, match="some/model: its tokenizer cannot write the label '3'"):
        LabelTokenizer(tokenizer)(("1", "2", "3"))
    with pytest.raises(ConfigError, match="cannot write the label ''"):
        LabelTokenizer(tokenizer)(("1", " "))
    with pytest.raises(ConfigError, match="'1', ' 1' are written alike"):
        LabelTokenizer(tokenizer)(("1", " 1"))


def test_labels_that_begin_alike_in_too_many_ways_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"too many labels begin like 'a+'"):
        LabelTokenizer(byte_level(["aa", "aaa"]))(["a" * n for n in range(1, 20)])


def test_a_sequence_writes_one_label() -> None:
    for ways in ((((1,),), ((1,),)), (((),),)):
        with pytest.raises(ValueError, match="has to write one label"):
            Labels(("a", "b")[: len(ways)], ways)
