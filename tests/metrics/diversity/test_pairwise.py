"""Pairwise-BLEU. Oracles: sacrebleu on every pair, its recorded values, fairseq's recorded values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

import judge.metrics.diversity as pairwise
from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Score
from judge.metrics.diversity import PairwiseBleu, pairwise_bleu
from tests.factories import has_line

WORDS = ["red", "Red", "boat", "boats", "the", ".", "9:30", "don't", "étage", "\ud800"]
GROUPS = st.lists(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), min_size=2, max_size=4),
    min_size=1,
    max_size=4,
).filter(lambda groups: any(text.strip() for group in groups for text in group))
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "max_order": st.integers(1, 6),
        "smooth": st.sampled_from(["exp", "floor", "add-k", "none"]),
        "tokenize": st.sampled_from(["13a", "none", "char"]),
        "lowercase": st.booleans(),
        "effective_order": st.booleans(),
    },
)


def naive(groups: Sequence[Sequence[str]], **options: Any) -> tuple[float, float]:
    """Return the mean and the pooled value by the definitions, computed with sacrebleu."""
    settings = {"effective_order": True, "tokenize": "13a"} | options
    settings["smooth_method"] = settings.pop("smooth", "exp")
    settings["max_ngram_order"] = settings.pop("max_order", 4)
    scorer = BLEU(force=True, **settings)
    pairs = [pair for group in groups for pair in permutations(group, 2)]
    mean = fmean(scorer.corpus_score([a], [[b]]).score for a, b in pairs)
    return mean, scorer.corpus_score([a for a, _ in pairs], [[b for _, b in pairs]]).score


def samples(*outputs: str, sources: Sequence[str | None] = ()) -> list[Sample]:
    sources_or_none = sources or [None] * len(outputs)
    return [
        Sample(str(n), "a", output, source)
        for n, (output, source) in enumerate(zip(outputs, sources_or_none, strict=True))
    ]


def values(metric: PairwiseBleu, data: Sequence[Sample]) -> list[float]:
    return [row.value for row in metric.score(data).rows if isinstance(row, Score)]


@given(GROUPS, OPTIONS)
def test_values_equal_the_definition(groups: list[list[str]], options: dict[str, Any]) -> None:
    mean, pooled = naive(groups, **options)
    assert pairwise_bleu(groups, **options) == pytest.approx(mean, abs=1e-9)
    assert pairwise_bleu(groups, pooled=True, **options) == pytest.approx(pooled, abs=1e-9)


@given(GROUPS)
def test_the_block_size_does_not_change_the_value(groups: list[list[str]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        whole = pairwise_bleu(groups)
        patch.setattr(pairwise, "_PAIRS", 3)
        assert pairwise_bleu(groups) == pytest.approx(whole, abs=1e-12)


@pytest.mark.slow
def test_values_equal_recorded_values(shared_data: Callable[[str], Path]) -> None:
    gold = json.loads(shared_data("gold_selfbleu.json").read_text())["pairwise_bleu"]
    lines = shared_data("summeval.jsonl").read_text().splitlines()
    groups: dict[str, list[str]] = {}
    for row in sorted(map(json.loads, lines), key=lambda row: (row["doc_id"], row["system"])):
        groups.setdefault(row["doc_id"], []).append(row["summary"])
    every = list(groups.values())
    some = every[:40]
    assert [pairwise_bleu(group) for group in some] == pytest.approx(gold["per_group"], abs=1e-9)
    assert pairwise_bleu(some) == pytest.approx(gold["mean_of_sentence_bleu_13a_exp_eff"], abs=1e-9)
    assert pairwise_bleu(some, pooled=True) == pytest.approx(gold["corpus_bleu_13a"], abs=1e-9)
    for texts, name in (
        (some, "fairseq_corpus_bleu_tok_none"),
        (every, "fairseq_all_100_docs_tok_none"),
    ):
        assert pairwise_bleu(texts, pooled=True, tokenize="none") == pytest.approx(
            gold[name], abs=1e-9
        )


def test_texts_are_grouped_by_source() -> None:
    outputs, sources = ["a b", "a c", "d e", "d e", "z"], ["s", "s", "t", "t", "u"]
    result = PairwiseBleu(max_order=1).score(samples(*outputs, sources=sources))
    assert [(row.item, row.system, row.column) for row in result.rows] == [
        ("", "a", "pairwise_bleu"),
        ("", "a", "pairwise_bleu_corpus"),
    ]
    for row, value in zip(result.rows, (75, 75), strict=True):
        assert isinstance(row, Score)
        assert (row.value, row.provenance.n) == (pytest.approx(value), 4)
        assert has_line(row.provenance.note or "", "2 sources", "1 left out")
    mean, pooled = (str(column.signature) for column in result.columns)
    assert mean.startswith(
        "pairwise_bleu|mean|groups=source|eff=yes|order=1|case=mixed|tok=13a|smooth=exp|sacrebleu "
    )
    assert pooled.startswith("pairwise_bleu_corpus|pooled|groups=source|eff=yes|")
    assert {column.better for column in result.columns} == {"lower"}


@pytest.mark.parametrize("sources", [(), [None, " ", " ", "s"], ["s", "s", "t", "u", "v"]])
def test_all_texts_are_one_group_if_sources_do_not_group_them(
    sources: Sequence[str | None],
) -> None:
    """If only two of five texts share a source, the texts are not grouped by source."""
    outputs = ["a b", "a c", "d e", "d e", "z"][: len(sources) or 5]
    result = PairwiseBleu(max_order=1).score(samples(*outputs, sources=sources))
    first = result.rows[0]
    assert isinstance(first, Score)
    assert first.value == pytest.approx(naive([outputs], max_order=1)[0])
    assert first.provenance.n == len(outputs)
    assert has_line(first.provenance.note or "", "all texts of the system")
    assert "|groups=system|" in str(result.columns[0].signature)


def test_the_option_groups_selects_the_groups() -> None:
    data = samples("a b", "a c", "d e", "d e", sources=["s", "s", "t", "t"])
    assert values(PairwiseBleu(max_order=1, groups="source"), data)[0] == pytest.approx(75)
    assert values(PairwiseBleu(max_order=1, groups="system"), data)[0] == pytest.approx(
        (2 * 50 + 2 * 100) / 12
    )


def test_empty_texts_are_noted() -> None:
    result = PairwiseBleu(max_order=1).score(samples("a b", "a b", ""))
    first = result.rows[0]
    assert isinstance(first, Score)
    assert first.value == pytest.approx(2 * 100 / 6)
    assert has_line(first.provenance.note or "", "all texts of the system", "1 without any token")
    (note,) = result.notes
    assert has_line(note, "pairwise_bleu: 1 text without", "a 1", "0")


@pytest.mark.parametrize(
    ("texts", "groups", "kind", "facts"),
    [
        (["one"], None, "TooFewTexts", ("1 text", "2 or more")),
        (["", " "], None, "NoToken", ("2 texts without any token",)),
        (
            ["a", "b"],
            "source",
            "NoSharedSource",
            ("no two texts", "leave out groups"),
        ),
        (
            ["a"] * 4,
            None,
            "TooManyTexts",
            ("4 texts", "12 pairs", "up to 3 texts", "self_bleu"),
        ),
    ],
)
def test_a_missing_value_is_a_failure(
    texts: list[str],
    groups: str | None,
    kind: str,
    facts: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairwise, "MOST", 3)
    rows = PairwiseBleu(groups=groups).score(samples(*texts)).rows
    assert [row.column for row in rows] == ["pairwise_bleu", "pairwise_bleu_corpus"]
    for row in rows:
        assert isinstance(row, Failure)
        assert (row.item, row.stage, row.error) == ("", "metric", kind)
        assert has_line(row.message, "system a: ", *facts)


@pytest.mark.parametrize("texts", [[], ["a"], [["a", "b"], ["c"]], ["", ""]])
def test_the_function_for_lists_refuses_unusable_texts(texts: Any) -> None:
    with pytest.raises(
        DataError, match=r"fewer than two texts|2 or more are needed|without any token"
    ):
        pairwise_bleu(texts)
