"""The records: scales, keys and their promises."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.core.errors import ParseError
from judge.core.normalization import fold, whole
from judge.core.records import (
    Criterion,
    Example,
    Request,
    Sample,
    Scale,
    Usage,
)
from judge.core.text_digests import seen_digest


def test_a_scale_of_integers() -> None:
    scale = Scale.integers(0, 100, 25)
    assert scale.labels == ("0", "25", "50", "75", "100")
    assert (scale.low, scale.high, scale.value("75")) == (0.0, 100.0, 75.0)


def test_the_expected_score_of_the_g_eval_paper() -> None:
    """Σ p(s)·s over 1–5, computed by hand; mass off the scale does not count."""
    assert Scale.integers(1, 5).expected({"4": 0.6, "5": 0.3, "3": 0.1}) == pytest.approx(4.2)
    assert Scale.integers(1, 5).expected({"4": 0.4, "The": 0.3, "5": 0.2}) == pytest.approx(13 / 3)


@pytest.mark.parametrize("weights", [{}, {"7": 1.0}, {"4": 0.0}])
def test_zero_mass_is_an_error_and_not_a_score(weights: dict[str, float]) -> None:
    with pytest.raises(ParseError):
        Scale.integers(1, 5).expected(weights)


@pytest.mark.parametrize(
    ("scale", "question"),
    [
        (Scale.integers(1, 5), "score"), (Scale.integers(-2, 2), "score"), (Scale.integers(0, 100, 10), "choice"),
        (Scale(("fail", "pass"), (0.0, 1.0)), "predicate"), (Scale(("合格", "不合格"), (1.0, 0.0)), "predicate"),
        (Scale(("A", "B", "C"), (3.0, 2.0, 1.0)), "choice"),
    ],
)  # fmt: skip
def test_the_question_a_scale_makes(scale: Scale, question: str) -> None:
    assert scale.question == question


@given(st.dictionaries(st.sampled_from("12345"), st.floats(0.001, 1), min_size=1))
def test_the_expected_score_stays_on_the_scale(weights: dict[str, float]) -> None:
    assert 1 - 1e-9 <= Scale.integers(1, 5).expected(weights) <= 5 + 1e-9


def request(**change: object) -> Request:
    fields = {
        "model": "m", "messages": ({"role": "user", "content": "p"},), "params": {"t": 0, "n": 1}, "endpoint": "e",
    }  # fmt: skip
    return Request(**(fields | change))  # type: ignore[arg-type]


def test_request_key_ignores_parameter_order() -> None:
    assert request().key() == request(params={"n": 1, "t": 0}).key()
    assert len(request().key()) == 64


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"}, {"messages": ({"role": "user", "content": "q"},)},
        {"messages": ({"role": "system", "content": "p"},)}, {"params": {"t": 0}}, {"endpoint": "f"}, {"draw": 1},
    ],
)  # fmt: skip
def test_any_change_makes_another_key(change: dict[str, object]) -> None:
    assert request(**change).key() != request().key()


def test_a_key_of_text_that_utf8_cannot_hold() -> None:
    assert request(model="\ud800").key() != request(model="\ud801").key()


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


def test_folding_keeps_case_and_outer_space() -> None:
    assert fold(" Ａ\u200b４⁻− \n") == " A4-- \n"


@given(st.text())
def test_a_whole_text_is_one_that_utf8_can_carry(text: str) -> None:
    mended = whole(text)
    assert mended.encode().decode() == mended
    assert whole(mended) == mended
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert mended == text


def test_surrogates_alone_and_in_pairs() -> None:
    assert whole("a\ud800b") == "a\ufffdb"
    assert whole("\ud83d\ude00") == "😀"


@pytest.mark.parametrize(
    ("source", "output", "digest"),
    [
        ("A source.", "A text.", ["A source.", "A text."]),
        (None, "A text.", [None, "A text."]),
        ("", "A text.", [None, "A text."]),
        ("Cafe\u0301", "\ud83d\ude00 \ud800", ["Caf\u00e9", "\U0001f600 \ufffd"]),
    ],
)
def test_a_text_is_known_again_by_its_content(
    source: str | None, output: str, digest: list[str | None]
) -> None:
    expected = hashlib.sha256(json.dumps(digest, separators=(",", ":")).encode()).hexdigest()[:16]
    assert seen_digest(source, output) == expected


def test_the_texts_that_a_criterion_has_used() -> None:
    """Those of `seen`, and its examples: with their source, or by the output alone if they have none."""
    examples = (Example("shown", "4", source="of it"), Example("alone", "2"))
    criterion = Criterion(
        "c", "", Scale.integers(1, 5), examples=examples, seen=frozenset({seen_digest("s", "kept")})
    )
    texts = {
        ("of it", "shown"): True,
        ("other", "shown"): False,
        ("any", "alone"): True,
        (None, "alone"): True,
    }
    texts |= {("s", "kept"): True, (None, "kept"): False, ("s", "other"): False}
    for (source, output), used in texts.items():
        assert bool(Sample("1", "a", output, source).digests & criterion.used) == used
