"""Self-BLEU. Oracles: sacrebleu on each text against all the others, its recorded values, NLTK's recorded values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from judge import text
from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Score
from judge.metrics.diversity import SelfBleu, self_bleu, self_bleu_each
from tests.factories import has_line, samples_of

WORDS = ["red", "Red", "boat", "boats", "the", ".", "9:30", "don't", "&amp;", "étage", "\ud800"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "max_order": st.integers(1, 6),
        "smooth": st.sampled_from(["exp", "floor", "add-k", "none"]),
        "tokenize": st.sampled_from(["13a", "none", "char", "intl", "zh"]),
        "lowercase": st.booleans(),
        "effective_order": st.booleans(),
    },
)
GOLD: dict[str, dict[str, Any]] = {
    "13a_exp": {},
    "13a_none": {"smooth": "none"},
    "13a_floor": {"smooth": "floor"},
    "13a_add-k": {"smooth": "add-k"},
    "13a_exp_lc": {"lowercase": True},
    "none-tok_exp": {"tokenize": "none"},
    "char_exp": {"tokenize": "char"},
    "13a_exp_bleu2": {"max_order": 2},
    "13a_exp_bleu3": {"max_order": 3},
    "13a_exp_noeff": {"effective_order": False},
    "nltk_method1_ws": {"smooth": "floor", "tokenize": "none", "effective_order": False},
}
JAPANESE = ["赤い船が港に着いた。", "赤い船は港を出た。", "白い鳥が空を飛ぶ。"]
KOREAN = ["빨간 배가 항구에 도착했다.", "빨간 배는 항구를 떠났다.", "하얀 새가 하늘을 난다."]
CHINESE = ["红色的船到了港口。", "红色的船离开港口。", "白色的鸟飞在天上。"]


def naive(texts: Sequence[str], **options: Any) -> list[float]:
    """Return the value of each text by the definition, computed with sacrebleu."""
    settings = {"effective_order": True, "tokenize": "13a"} | options
    settings["smooth_method"] = settings.pop("smooth", "exp")
    settings["max_ngram_order"] = settings.pop("max_order", 4)
    scorer = BLEU(force=True, **settings)
    values = []
    for index, hypothesis in enumerate(texts):
        references = [[reference] for k, reference in enumerate(texts) if k != index]
        values.append(scorer.corpus_score([hypothesis], references).score)
    return values


@given(
    st.lists(TEXTS, min_size=2, max_size=7).filter(lambda texts: any(t.strip() for t in texts)),
    OPTIONS,
)
def test_values_equal_the_definition(texts: list[str], options: dict[str, Any]) -> None:
    assert self_bleu_each(texts, **options) == pytest.approx(naive(texts, **options), abs=1e-9)


@pytest.mark.parametrize("variant", GOLD)
def test_values_equal_recorded_values(variant: str, shared_data: Callable[[str], Path]) -> None:
    gold = json.loads(shared_data("gold_selfbleu.json").read_text())
    lines = shared_data("summeval.jsonl").read_text().splitlines()
    rows = {(row["doc_id"], row["system"]): row["summary"] for row in map(json.loads, lines)}
    texts = [rows[document, system] for document, system in gold["meta"]["ids"]]
    assert self_bleu_each(texts, **GOLD[variant]) == pytest.approx(
        gold["per_text"][variant], abs=1e-9
    )
    assert self_bleu(texts, **GOLD[variant]) == pytest.approx(gold["self_bleu"][variant], abs=1e-9)


def test_values_by_hand() -> None:
    """`a b` has 2 of 2 words and 0 of 1 pair in `a c` and `b c`: √(100 · 100/2)."""
    assert self_bleu_each(["a b", "a c", "b c"], max_order=2) == pytest.approx([5000**0.5] * 3)


@pytest.mark.parametrize(("texts", "language"), [(JAPANESE, "ja"), (KOREAN, "ko"), (CHINESE, "zh")])
def test_the_script_selects_the_tokenizer(texts: list[str], language: str) -> None:
    name = "zh" if language == "zh" else f"{language}-mecab" if text.installed(language) else "char"
    expected = naive(texts, tokenize=name, max_order=1)
    assert self_bleu_each(texts, max_order=1) == pytest.approx(expected, abs=1e-9)
    result = SelfBleu().score(samples_of(*texts))
    assert f"|tok={BLEU(tokenize=name).tokenizer.signature()}|" in str(result.columns[0].signature)
    # 13a reads a Japanese or Chinese sentence as one word, and does not split Korean particles from their words.
    assert max(self_bleu_each(texts, max_order=1, tokenize="13a")) < min(expected[:2])


def test_a_system_has_one_row() -> None:
    data = [
        Sample(str(n), system, f"{word} b c d")
        for n in (1, 2)
        for system, word in (("x", "a"), ("y", str(n)))
    ]
    result = SelfBleu(max_order=2).score(data)
    rows = [row for row in result.rows if isinstance(row, Score)]
    assert [(row.item, row.system, row.column, row.provenance.n) for row in rows] == [
        ("", "x", "self_bleu", 2),
        ("", "y", "self_bleu", 2),
    ]
    assert [row.value for row in rows] == pytest.approx([100, 100 * (3 / 4 * 2 / 3) ** 0.5])
    assert result.columns[0].better == "lower"
    assert str(result.columns[0].signature) == (
        "self_bleu|system|eff=yes|order=2|case=mixed|tok=13a|smooth=exp|sacrebleu "
        + str(result.columns[0].signature).split()[-1]
    )
    assert result.notes == ()


def test_empty_texts_are_noted() -> None:
    result = SelfBleu().score(samples_of("one two three four", "one two three four", "", " \n"))
    (row,) = result.rows
    assert isinstance(row, Score)
    assert (row.value, row.provenance.n) == (pytest.approx(50), 4)
    assert has_line(row.provenance.note or "", "all texts of the system", "2 without any token")
    (note,) = result.notes
    assert has_line(note, "self_bleu: 2 texts without", "a 2", "0", "more diverse")


def test_groups_compare_only_texts_of_the_same_source() -> None:
    """The value is the mean of each source's Self-BLEU. A text whose source has no second text is left out."""
    ferries = [
        f"the ferry {n} came {'late' * (n % 3)} to the {'old' * (n % 2)} harbour" for n in range(10)
    ]
    groups = [ferries[:3], ferries[3:8]]
    rows = [
        Sample(str(n), "a", text, source=f"s{n}")
        for n, group in enumerate(groups)
        for text in group
    ]
    text_without_a_partner = Sample("9", "a", ferries[9], source="s9")
    result = SelfBleu(groups="source").score([*rows, text_without_a_partner])
    (row,) = result.rows
    assert isinstance(row, Score)
    assert (
        row.value
        == pytest.approx(sum(map(self_bleu, groups)) / 2)
        == pytest.approx(self_bleu(groups))
    )
    assert row.value != pytest.approx(self_bleu(ferries[:8]))
    assert has_line(row.provenance.note or "", "2 sources", "1 left out")
    assert str(result.columns[0].signature).startswith("self_bleu|system|groups=source|eff=yes|")
    (row,) = SelfBleu(groups="source").score(samples_of("a b", "a c")).rows
    assert isinstance(row, Failure)
    assert row.error == "NoSharedSource"
    with pytest.raises(DataError, match="group 2 of 2"):
        self_bleu([ferries[:2], ferries[:1]])


def test_unequal_numbers_of_outputs_are_noted() -> None:
    result = SelfBleu().score([*samples_of("a", "b"), *samples_of("a", "b", "c", system="z")])
    (note,) = result.notes
    assert has_line(note, "self_bleu", "number of texts", "not compare", "a 2, z 3")


def test_untokenized_sentences_are_noted() -> None:
    result = SelfBleu().score(
        samples_of("a long English text which is most of all letters here", "and more", CHINESE[0])
    )
    (note,) = map(str, result.notes)
    assert note.startswith("self_bleu: 1 of 3 texts ")
    scored = SelfBleu(tokenize="13a").score(samples_of(*CHINESE))
    assert f"self_bleu: {len(CHINESE)} of {len(CHINESE)} texts" in str(scored.notes[0])


@pytest.mark.parametrize(
    ("texts", "kind", "facts"),
    [
        (["one"], "TooFewTexts", ("1 text", "2 or more")),
        (["", " "], "NoToken", ("2 texts without any token",)),
    ],
)
def test_a_missing_value_is_a_failure(texts: list[str], kind: str, facts: tuple[str, ...]) -> None:
    (row,) = SelfBleu().score(samples_of(*texts)).rows
    assert row == Failure("", "a", "self_bleu", stage="metric", error=kind, message=row.message)
    assert has_line(row.message, "system a: ", *facts)
    with pytest.raises(DataError) as caught:
        self_bleu(texts)
    assert has_line(str(caught.value), *facts)
