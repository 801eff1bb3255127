"""CIDEr-D. Oracles: numbers by hand and values of the authors' code (`cider` of pycocoevalcap 1.2)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Score
from judge.metrics import cider
from judge.metrics.cider import Cider
from tests.factories import has_line

OUTPUTS = [
    "a red boat in the harbour",
    "two dogs run on the beach beach",
    "the harbour at night",
    "boat",
]
REFERENCES = [
    ["a red boat lies in the harbour", "a small boat"],
    ["two brown dogs are running on the sand", "dogs run on a beach"],
    ["the harbour by night", "night over the harbour", "a dark harbour"],
    ["boat", "a boat"],
]
# values of cider_scorer of pycocoevalcap 1.2 on the texts above, whose words are also its tokens
RECORDED = [2.5985646834286924, 2.3105579465465844, 1.2463790264291303, 2.482758895929895]


def samples(system: str = "a") -> list[Sample]:
    return [
        Sample(str(n), system, output, references=tuple(references))
        for n, (output, references) in enumerate(zip(OUTPUTS, REFERENCES, strict=True))
    ]


def cider_values(*data: Sample) -> list[float | str]:
    return [row.value if isinstance(row, Score) else row.error for row in Cider().score(data).rows]


def test_values_equal_those_of_the_authors_code() -> None:
    assert cider.score(OUTPUTS, REFERENCES) == pytest.approx(RECORDED, abs=1e-12)


def test_values_by_hand() -> None:
    """There are two items, so each idf is ln 2. The texts have 2 and 3 words, and lengths of 1 and 2 bigrams."""
    unigrams, bigrams = 2 / math.sqrt(6), 1 / math.sqrt(2)
    expected = 10 * (unigrams + bigrams) / 4 * math.exp(-1 / 72)
    assert cider.score(["red boat", "x"], ["red boat sank", "y"]) == [pytest.approx(expected), 0.0]
    narrow = 10 * (unigrams + bigrams) / 4 * math.exp(-1 / 2)
    assert cider.score(["red boat", "x"], ["red boat sank", "y"], sigma=1)[0] == pytest.approx(
        narrow
    )
    assert cider.score(["red boat", "x"], ["red boat sank", "y"], max_order=1)[0] == pytest.approx(
        10 * unigrams * math.exp(-1 / 72)
    )


def test_repeated_words_are_clipped() -> None:
    """By hand: min(3, 1) · 1 / (3 · 1) for unigrams, and the penalty of a length that differs by two bigrams."""
    assert cider.score(["boat boat boat", "x"], ["boat", "y"], max_order=1)[0] == pytest.approx(
        10 / 3 * math.exp(-4 / 72)
    )


def test_an_item_counts_once_for_all_systems() -> None:
    """Data of one system and of three systems have the same idf."""
    rows = Cider().score([*samples("a"), *samples("b"), *samples("c")]).rows
    values = [row.value for row in rows if isinstance(row, Score)]
    assert values == pytest.approx(RECORDED * 3, abs=1e-12)
    assert cider.score(OUTPUTS * 2, REFERENCES * 2, items=list("0123") * 2) == pytest.approx(
        RECORDED * 2, abs=1e-12
    )


def test_the_option_stem_matches_word_forms() -> None:
    assert cider.score(["boats", "x"], ["boat", "y"], stem=False)[0] == 0.0
    assert cider.score(["boats", "x"], ["boat", "y"], stem=True)[0] == pytest.approx(2.5)


@pytest.mark.parametrize(
    "same", ["the old ferry came late", "配達は夕方に遅れて着いた", "паром пришёл поздно вечером"]
)
def test_equal_texts_score_10(same: str) -> None:
    assert cider.score([same, "x"], [same, "y"])[0] == pytest.approx(10)


WORDS = st.lists(st.sampled_from("abcde"), max_size=8).map(" ".join)


@given(
    st.lists(
        st.tuples(WORDS, st.lists(WORDS.filter(len), min_size=1, max_size=3)),
        min_size=2,
        max_size=4,
    )
)
def test_scores_are_from_0_to_10_in_any_order_of_references(
    pairs: list[tuple[str, list[str]]],
) -> None:
    def data(step: int) -> list[Sample]:
        return [
            Sample(str(n), "a", output, references=tuple(each[::step]))
            for n, (output, each) in enumerate(pairs)
        ]

    rows = Cider().score(data(1)).rows
    rows_of_reversed = Cider().score(data(-1)).rows
    for row, row_of_reversed in zip(rows, rows_of_reversed, strict=True):
        if isinstance(row, Score):
            assert isinstance(row_of_reversed, Score)
            assert row.value == pytest.approx(row_of_reversed.value, abs=1e-12)
            assert 0 <= row.value <= 10
        else:
            assert row.error == "NoIdf"


def test_a_single_item_is_a_failure() -> None:
    """With one item, every idf is ln(1/1) = 0. The authors' code returns 0.0 even for equal texts."""
    data = [
        Sample("1", system, "a boat", references=("a boat",), where="d.jsonl:1") for system in "ab"
    ]
    rows = Cider().score(data).rows
    assert [row.error for row in rows if isinstance(row, Failure)] == ["TooFewItems"] * 2
    assert isinstance(rows[0], Failure)
    assert has_line(rows[0].message, "d.jsonl:1 has no value", "CIDEr-D", "2 items")
    with pytest.raises(DataError, match="at least 2 items"):
        cider.score(["a"], ["a"])


def test_references_without_distinctive_words_are_a_failure() -> None:
    data = [
        Sample(str(n), "a", "a boat", references=(text,))
        for n, text in enumerate(["a boat", "a boat", "a boat sank"])
    ]
    assert cider_values(*data)[:2] == ["NoIdf", "NoIdf"]
    assert cider_values(*samples(), Sample("9", "a", "x", references=("?!",)))[-1] == "NoIdf"


def test_words_of_an_output_in_another_script_count() -> None:
    """The English rules would read only `llm` in the second output."""
    llm_alone = cider.score(["x", "llm"], ["a boat", "an llm"])[1]
    assert llm_alone == pytest.approx(10 / 4 / math.sqrt(2) * math.exp(-1 / 72))
    assert 0 < cider.score(["x", "배가 왔다 llm"], ["a boat", "an llm"])[1] < llm_alone / 1.5


def test_signature_names_every_option() -> None:
    result = Cider(stem=True, sigma=4).score([*samples(), Sample("9", "a", "x")])
    (column,) = result.columns
    assert (column.name, column.low, column.high, column.better) == ("cider", 0.0, 10.0, "higher")
    assert str(column.signature).startswith(
        "cider|D|nrefs=var|items=4|n=4|sigma=4|stem|tok=en|form=nfkc|refs=mean|judge "
    )
    assert Cider().score([]).rows == ()
