"""distinct-N. Oracles: sets of tuples, recorded counts, numbers by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from judge import text
from judge.core.errors import ConfigError, DataError
from judge.core.records import Failure, Score
from judge.metrics.diversity import Distinct, distinct
from tests.factories import has_line, samples_of

WORDS = ["red", "Red", "boat", "boats", "the", "9:30", "étage", "\ud800"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=1, max_size=6)


def grams(texts: list[str], n: int) -> list[tuple[str, ...]]:
    cut = [each.split() for each in texts]
    return [tuple(tokens[at : at + n]) for tokens in cut for at in range(len(tokens) - n + 1)]


@given(TEXTS, st.integers(1, 9))
def test_values_equal_the_definition(texts: list[str], n: int) -> None:
    every = grams(texts, n)
    if every:
        assert distinct(texts, n, tokenize="none") == pytest.approx(len(set(every)) / len(every))
        by_tokens = len(set(every)) / len(grams(texts, 1))
        assert distinct(texts, n, tokenize="none", per="tokens") == pytest.approx(by_tokens)
    else:
        with pytest.raises(DataError, match=rf"no text has {n} tokens|without any token"):
            distinct(texts, n, tokenize="none")


@pytest.mark.parametrize(("tokens", "options"), [("13a", {}), ("whitespace", {"tokenize": "none"})])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_values_equal_recorded_values(
    n: int, tokens: str, options: dict[str, Any], shared_data: Callable[[str], Path]
) -> None:
    gold = json.loads(shared_data("gold_selfbleu.json").read_text())
    lines = shared_data("summeval.jsonl").read_text().splitlines()
    rows = {(row["doc_id"], row["system"]): row["summary"] for row in map(json.loads, lines)}
    texts = [rows[document, system] for document, system in gold["meta"]["ids"]]
    expected = gold["distinct"][tokens][f"distinct-{n}"]
    assert distinct(texts, n, **options) == pytest.approx(expected["by_ngrams"], abs=1e-12)
    assert distinct(texts, n, per="tokens", **options) == pytest.approx(
        expected["by_tokens_Li2016"], abs=1e-12
    )


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        (["赤い船が港に着いた。", "赤い船は港を出た。"], "ja"),
        (["빨간 배가 항구에 도착했다.", "빨간 배는 항구를 떠났다."], "ko"),
        (["红色的船到了港口。", "红色的船离开港口。"], "zh"),
    ],
)
def test_the_script_selects_the_tokenizer(texts: list[str], language: str) -> None:
    name = "zh" if language == "zh" else f"{language}-mecab" if text.installed(language) else "char"
    cut = BLEU(tokenize=name).tokenizer
    words = grams([cut(each) for each in texts], 1)
    assert distinct(texts) == len(set(words)) / len(words) < 1
    assert f"|tok={cut.signature()}|" in str(
        Distinct().score(samples_of(*texts)).columns[0].signature
    )


def test_a_system_has_one_row_for_each_order() -> None:
    result = Distinct(orders=[2, 1], per="tokens").score(samples_of("a b a", "a b", ""))
    rows = [row for row in result.rows if isinstance(row, Score)]
    assert [(row.item, row.system, row.column, row.value) for row in rows] == [
        ("", "a", "distinct2", 2 / 5),
        ("", "a", "distinct1", 2 / 5),
    ]
    ((n, note),) = {(row.provenance.n, row.provenance.note) for row in rows}
    assert n == 3
    assert has_line(note or "", "5 tokens", "1 text without any")
    assert [column.name for column in result.columns] == ["distinct2", "distinct1"]
    assert str(result.columns[0].signature).startswith(
        "distinct2|system|per=tokens|case=mixed|tok=13a|sacrebleu "
    )
    assert {column.better for column in result.columns} == {"higher"}
    (note,) = result.notes
    assert has_line(note, "distinct: 1 text without", "a 1")


@pytest.mark.parametrize(
    ("outputs", "kinds"),
    [(["a b"], ["NoNgram", "NoNgram"]), (["", " "], ["NoToken"] * 4), (["a b c d"], [])],
)
def test_a_text_without_ngrams_is_a_failure(outputs: list[str], kinds: list[str]) -> None:
    rows = Distinct().score(samples_of(*outputs)).rows
    failures = [row for row in rows if isinstance(row, Failure)]
    assert len(rows) == 4
    assert [(row.item, row.system, row.stage, row.error) for row in failures] == [
        ("", "a", "metric", k) for k in kinds
    ]
    assert all(row.message.startswith("system a: ") for row in failures)


def test_a_wrong_order_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^distinct\.n .*from 1 to 9"):
        distinct(["a"], 10)
