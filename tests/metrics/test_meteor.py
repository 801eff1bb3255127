"""METEOR. Oracles: numbers by hand, the value in NLTK's documentation, and NLTK."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.meteor_score import meteor_score

from judge.core.errors import MissingExtra
from judge.core.records import Failure, Sample
from judge.metrics import meteor
from judge.metrics.meteor import Meteor

WORDS = st.lists(
    st.sampled_from(
        [
            "the",
            "boat",
            "boats",
            "boating",
            "ship",
            "vessel",
            "ran",
            "running",
            "run",
            "policy",
            "police",
        ]
    ),
    max_size=12,
)
ACTION = (
    "It is a guide to action which ensures that the military always obeys the commands of the party"
)


HAS_WORDNET, READER = meteor._has_wordnet, meteor._reader


class Lemma(NamedTuple):
    word: str

    def name(self) -> str:
        return self.word


class Synset(NamedTuple):
    words: tuple[str, ...]

    def lemmas(self) -> list[Lemma]:
        return [Lemma(word) for word in self.words]


class Wordnet:
    """A fake of NLTK's reader with two synsets, as the real data are not part of this repository."""

    _synsets = (Synset(("boat", "ship", "water_craft")), Synset(("ship", "vessel", "send")))

    def synsets(self, word: str) -> list[Synset]:
        return [synset for synset in self._synsets if word in synset.words]

    def get_version(self) -> str:
        return "0.1"


class NoWordnet:
    def synsets(self, word: str) -> list[Any]:
        return []


@pytest.fixture(autouse=True)
def without_wordnet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the WordNet data of this machine."""
    monkeypatch.setattr(meteor, "_has_wordnet", lambda: False)
    yield
    meteor._synonyms.cache_clear()


@pytest.fixture(scope="module")
def wordnet() -> Iterator[Wordnet]:
    """Replace NLTK's reader for all examples of a hypothesis test."""
    patch = pytest.MonkeyPatch()
    reader = Wordnet()
    meteor._synonyms.cache_clear()
    patch.setattr(meteor, "_reader", lambda: reader)
    yield reader
    patch.undo()


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        # one chunk of two matches
        ("red boat", "red boat", 1 - 0.5 / 8),
        # one chunk of one match, so the full penalty
        ("boat", "boat", 0.5),
        # six chunks of six matches, as `the` is matched from the end
        ("on the mat sat the cat", "the cat sat on the mat", 0.5),
        # P = 1, R = 2/3
        ("red boat", "red boat sank", (1 - 0.5 / 8) * (2 / 3) / (0.9 + 0.1 * 2 / 3)),
        # the same stem
        ("boats", "boat", 0.5),
        ("red", "blue", 0.0),
        ("", "blue", 0.0),
    ],
)
def test_values_by_hand(output: str, reference: str, expected: float) -> None:
    assert meteor.score([output], [reference]) == [pytest.approx(expected)]


def test_the_value_in_nltks_documentation() -> None:
    """NLTK documents 0.6944 for this pair, also with two worse references."""
    references = [
        "It is a guide to action that ensures that the military will forever heed Party commands",
        "It is the guiding principle which guarantees the military forces always being under the command of the Party",
        "It is the practical guide for the army always to heed the directions of the party",
    ]
    assert (
        meteor.score([ACTION, ACTION], [references[0], references])
        == [pytest.approx(0.6944, abs=5e-5)] * 2
    )


@given(WORDS, st.lists(WORDS.filter(len), min_size=1, max_size=3))
def test_values_equal_nltk(output: list[str], references: list[list[str]]) -> None:
    by_nltk = meteor_score(references, output, wordnet=NoWordnet())
    assert meteor.score([" ".join(output)], [list(map(" ".join, references))]) == [
        pytest.approx(by_nltk, abs=1e-12)
    ]


@given(
    output=WORDS,
    references=st.lists(WORDS.filter(len), min_size=1, max_size=3),
    alpha=st.floats(0.1, 0.9),
)
def test_values_with_synonyms_equal_nltk(
    wordnet: Wordnet, output: list[str], references: list[list[str]], alpha: float
) -> None:
    by_nltk = meteor_score(references, output, wordnet=wordnet, alpha=alpha, beta=2, gamma=0.25)
    metric = Meteor(alpha=alpha, beta=2, gamma=0.25)
    pairs = [
        metric._value(output, reference, stems=True, synonyms=True) for reference in references
    ]
    assert max(pairs) == pytest.approx(by_nltk, abs=1e-12)


def test_values_of_synonyms_by_hand(wordnet: Wordnet, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ship` shares a synset with `vessel` and another with `boat`, but `vessel` and `boat` share none."""
    assert meteor.score(["ship", "ship", "vessel"], ["vessel", "boat", "boat"]) == [0.0, 0.0, 0.0]
    monkeypatch.setattr(meteor, "_has_wordnet", lambda: True)
    assert meteor.score(["ship", "ship", "vessel"], ["vessel", "boat", "boat"]) == [0.5, 0.5, 0.0]
    (column,) = Meteor().score([]).columns
    assert f"|stages=exact+stem+wordnet0.1-nltk{version('nltk')}|" in str(column.signature)
    assert "|stages=exact+stem|" in str(Meteor(wordnet=False).score([]).columns[0].signature)


def test_missing_wordnet_data_name_the_download_command() -> None:
    with pytest.raises(MissingExtra, match=r"python -m nltk\.downloader wordnet"):
        Meteor(wordnet=True)


def test_wordnet_data_are_searched_in_nltks_folders(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import nltk

    monkeypatch.setattr(nltk.data, "path", [str(tmp_path)])

    def is_installed() -> bool:
        HAS_WORDNET.cache_clear()
        return HAS_WORDNET()

    assert not is_installed()
    (tmp_path / "corpora" / "wordnet").mkdir(parents=True)
    assert is_installed()
    monkeypatch.setattr(meteor, "find_spec", lambda name: None)
    assert not is_installed()
    HAS_WORDNET.cache_clear()
    assert "wordnet" in repr(READER())


def test_signature_names_every_option() -> None:
    samples = [
        Sample("1", "a", "a boat", references=("a ship", " ")),
        Sample("2", "a", "배가 왔다 llm", references=("a boat with an llm", "x")),
        Sample("3", "a", "x"),
    ]
    result = Meteor(tokenizer="char").score(samples)
    assert str(result.columns[0].signature).startswith(
        "meteor|sentence|nrefs=var|stages=exact+stem|alpha=0.9|beta=3|gamma=0.5|tok=char|form=nfkc|refs=best|judge "
    )
    *_, without_reference = Meteor().score(samples).rows
    assert isinstance(without_reference, Failure)
    assert without_reference.error == "NoReference"


def test_words_of_an_output_in_another_script_count() -> None:
    """The English rules would read only `llm`, with a precision of 1."""
    precision, recall = 1 / 5, 1 / 3
    expected = 0.5 * precision * recall / (0.9 * precision + 0.1 * recall)
    assert meteor.score(["배가 왔다 llm"], ["a new llm"], tokenizer="char") == [
        pytest.approx(expected)
    ]
    (score,) = meteor.score(["배가 왔다 llm"], ["a new llm"])
    assert 0 < score < 0.3


def test_references_without_words_are_a_failure() -> None:
    (row,) = Meteor(tokenizer="en").score([Sample("1", "a", "船", references=("！", "!"))]).rows
    assert isinstance(row, Failure)
    assert (row.error, "the tokenizer en" in row.message) == ("NoTokens", True)
