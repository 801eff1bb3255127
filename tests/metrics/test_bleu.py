"""BLEU. Oracles: numbers by hand, published values of sacrebleu, and sacrebleu."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import sentence_bleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.tokenizers import tokenizer_ja_mecab

from judge import text
from judge.core import plugins
from judge.core.errors import ConfigError, DataError, MissingExtra
from judge.core.records import Failure, Sample, Score
from judge.metrics import bleu, bleu_options, parallel
from judge.metrics.bleu import Bleu, CorpusBleu
from tests.factories import has_line

WORDS = st.lists(
    st.sampled_from(["the", "cat", "sat", "on", "mat", ".", "don't", "9:30"]), min_size=1
).map(" ".join)
PAIRS = st.lists(st.tuples(WORDS, st.lists(WORDS, min_size=1, max_size=3)), min_size=1, max_size=5)
LONG = [
    "the ferry came late to the harbour",
    "a dog sat on the old mat",
    "nobody saw the second boat go",
]
NEAR = [
    "the ferry came late to this harbour",
    "a dog lay on the old mat",
    "nobody saw a second boat go out",
]


def sample(output: str, *references: str, system: str = "a") -> Sample:
    return Sample(output, system, output, references=references)


def value(output: str, *references: str) -> float:
    (row,) = Bleu().score([sample(output, *references)]).rows
    assert isinstance(row, Score)
    return row.value


def needs(tokenizer: str) -> None:
    if not text.installed(tokenizer):
        pytest.skip(f"needs the packages of {tokenizer}")


def rectangular(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Return references that vary in number in the form sacrebleu needs: padded with None, and transposed."""
    most = max(map(len, references))
    padded = [[*each, *[None] * (most - len(each))] for each in references]
    return [list(column) for column in zip(*padded, strict=True)]


def test_values_by_hand() -> None:
    """Precisions 3/4, 2/3, 1/2 and, smoothed, 1/2 of one 4-gram; no brevity penalty: 100 · (1/8)^(1/4)."""
    assert value("red green blue grey", "red green blue black") == pytest.approx(100 * 0.125**0.25)


def test_a_short_text_by_hand() -> None:
    """Two of two words; effective order leaves out 3- and 4-grams; penalty e^(1 - 3/2)."""
    assert value("red green", "red green blue") == pytest.approx(100 * 2.718281828459045**-0.5)


def test_clipped_precision_of_the_paper() -> None:
    """Papineni et al. 2002, section 2.1, example 2: seven times `the` has a modified unigram precision of 2/7."""
    output, references = (
        "the the the the the the the",
        ["The cat is on the mat.", "There is a cat on the mat."],
    )
    assert bleu.sentence([output], [references], max_order=1, lowercase=True) == [
        pytest.approx(200 / 7)
    ]


@pytest.mark.parametrize(("tokenizer", "expected"), [("char", 37.16), ("ja-mecab", 35.09)])
def test_a_japanese_pair_uses_the_japanese_tokenizer(
    tokenizer: str, expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is from sacrebleu 2.6.0. Its default 13a reads each sentence as one token and gives 0."""
    if tokenizer == "char":
        monkeypatch.setattr(text, "installed", lambda name: name in ("en", "zh"))
    else:
        needs("ja")
    pair = "交番の隣に喫茶店がある。", "交番の隣にある喫茶店は小さい。"
    assert value(*pair) == pytest.approx(expected, abs=0.005)
    assert sentence_bleu(pair[0], [pair[1]], tokenize="13a").score == 0.0


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_english_values_equal_sacrebleu(output: str, references: list[str]) -> None:
    by_sacrebleu = BLEU(effective_order=True, force=True).sentence_score(output, references).score
    assert value(output, *references) == min(by_sacrebleu, 100.0)


@settings(max_examples=100)
@given(
    smooth=st.sampled_from(["exp", "none", "floor", "add-k"]),
    max_order=st.sampled_from([1, 2, 4, 6]),
    pairs=PAIRS,
    lowercase=st.booleans(),
)
def test_options_equal_those_of_sacrebleu(
    smooth: str, max_order: int, pairs: list[tuple[str, list[str]]], lowercase: bool
) -> None:
    outputs, references = [output for output, _ in pairs], [scores for _, scores in pairs]
    by_sacrebleu = BLEU(
        lowercase=lowercase,
        force=True,
        smooth_method=smooth,
        max_ngram_order=max_order,
        effective_order=True,
    )
    scores = bleu.sentence(
        outputs, references, smooth=smooth, max_order=max_order, lowercase=lowercase
    )
    assert scores == [min(by_sacrebleu.sentence_score(*pair).score, 100.0) for pair in pairs]


@pytest.mark.parametrize(
    ("output", "reference", "tokenizer", "needed"),
    [
        ("渡轮下午三点到了港口", "渡轮下午两点到达港口", "zh", "zh"),
        ("배가 오후에 늦게 도착했다", "배가 오후 세 시에 도착했다", "ko-mecab", "ko"),
        ("船は午後に港へ着いた", "船は午後三時に港に着いた", "ja-mecab", "ja"),
        ("паром пришёл в порт днём", "паром пришёл в порт вечером", "13a", "en"),
        # The reference decides, so that all systems have the same tokenizer.
        ("ferry", "船は午後三時に港に着いた", "ja-mecab", "ja"),
    ],
)
def test_the_script_of_the_reference_selects_the_tokenizer(
    output: str, reference: str, tokenizer: str, needed: str
) -> None:
    needs(needed)
    scorer = BLEU(effective_order=True, tokenize=tokenizer)
    by_sacrebleu = scorer.sentence_score(output, [reference]).score
    assert value(output, reference) == pytest.approx(by_sacrebleu, abs=1e-9)
    signature = str(Bleu().score([sample(output, reference)]).columns[0].signature)
    assert f"|tok={scorer.tokenizer_signature}|" in signature


def test_missing_dictionaries_fall_back_to_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "installed", lambda name: name in ("en", "zh"))
    names = [
        bleu_options.tokenizer_for([each])
        for each in ("a ferry", "渡轮下午到达", "船は港に着いた", "배가 도착했다")
    ]
    assert names == ["13a", "zh", "char", "char"]


def test_signature_has_the_parts_of_sacrebleus() -> None:
    by_sacrebleu = BLEU(effective_order=True, smooth_method="floor", lowercase=True)
    by_sacrebleu.sentence_score("x", ["y", "z"])
    metric = Bleu(smooth="floor", lowercase=True)
    (column,) = metric.score([sample("x", "y", " ", "z"), sample("w")]).columns
    name, kind, *parts, version = str(column.signature).split("|")
    assert (name, kind) == ("bleu", "sentence")
    assert "|".join([*parts, version]).replace("=", ":").replace("sacrebleu ", "version:") == str(
        by_sacrebleu.get_signature()
    )


def test_signature_of_mixed_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "installed", lambda name: name in ("en", "zh"))
    (column,) = Bleu().score([sample("x", "y"), sample("버스", "버스", "배")]).columns
    assert str(column.signature).startswith(
        "bleu|sentence|nrefs=var|case=mixed|eff=yes|tok=13a+char|smooth=exp|"
    )
    (column,) = Bleu(max_order=2).score([sample("x", "y")]).columns
    assert "|smooth=exp|order=2|sacrebleu " in str(column.signature)


def test_a_space_before_a_full_stop_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    Bleu().score([sample(f"line {n} .", "a line .") for n in range(150)])
    assert caplog.records == []


@given(PAIRS)
def test_corpus_values_equal_sacrebleu(pairs: list[tuple[str, list[str]]]) -> None:
    outputs = [output for output, _ in pairs]
    references = [listed for _, listed in pairs]
    by_sacrebleu = BLEU(force=True).corpus_score(outputs, rectangular(references))
    if by_sacrebleu.totals[-1]:
        assert bleu.corpus(outputs, references) == min(by_sacrebleu.score, 100.0)


def test_a_system_has_one_corpus_value_with_an_interval() -> None:
    """The interval lies between the values of corpora that repeat one of the three texts."""
    samples = [
        sample(near, long, system=system)
        for near, long in zip(NEAR, LONG, strict=True)
        for system in "ba"
    ]
    samples += [sample("unpaired", system="b"), sample(LONG[0], LONG[0], system="c")]
    result = CorpusBleu().score(samples)
    assert [(row.item, row.system, row.column) for row in result.rows] == [
        ("", s, "bleu_corpus") for s in "bac"
    ]
    b, a, c = result.rows
    assert isinstance(b, Score)
    assert isinstance(a, Score)
    assert isinstance(c, Score)
    by_sacrebleu = BLEU().corpus_score(NEAR, [LONG]).score
    assert a.value == b.value == by_sacrebleu
    assert (a.provenance, b.provenance.n) == (b.provenance, 3)
    assert (c.value, c.provenance.n, c.provenance.low, c.provenance.high) == (100.0, 1, None, None)
    (note,) = parallel.merge_results([result]).notes
    assert has_line(str(note), "bleu_corpus: 1 of 8 texts", "no reference")
    assert a.provenance.low is not None
    assert a.provenance.high is not None
    draws = [BLEU().corpus_score([NEAR[n]] * 3, [[LONG[n]] * 3]).score for n in range(3)]
    assert min(draws) <= a.provenance.low < a.value < a.provenance.high <= max(draws)


@pytest.mark.parametrize("tokenize", [None, "char"])
def test_score_parts_equal_sacrebleu(tokenize: str | None) -> None:
    names = "score,p1,p2,p3,p4,bp"
    texts = [sample(near, long) for near, long in zip(NEAR, LONG, strict=True)]
    single, pooled = (
        BLEU(tokenize=tokenize or "13a", effective_order=effective) for effective in (True, False)
    )
    by_text = [single.sentence_score(near, [long]) for near, long in zip(NEAR, LONG, strict=True)]
    for metric, by_sacrebleu in (
        (Bleu(values=names, tokenize=tokenize), by_text),
        (CorpusBleu(values=names, tokenize=tokenize), [pooled.corpus_score(NEAR, [LONG])]),
    ):
        result = metric.score(texts)
        suffixes = ("", "_p1", "_p2", "_p3", "_p4", "_bp")
        assert [column.name for column in result.columns] == [
            metric.name + suffix for suffix in suffixes
        ]
        assert [column.high for column in result.columns] == [100.0] * 5 + [1.0]
        expected = [
            value for each in by_sacrebleu for value in (each.score, *each.precisions, each.bp)
        ]
        assert [row.value for row in result.rows if isinstance(row, Score)] == pytest.approx(
            expected, abs=1e-12
        )
        assert metric.score(texts).rows[::6] == type(metric)(tokenize=tokenize).score(texts).rows


def test_a_precision_without_ngrams_is_a_failure() -> None:
    p1, p2, p3 = Bleu(values="p1,p2,p3").score([sample("red boat", "a red boat")]).rows
    assert [row.value for row in (p1, p2) if isinstance(row, Score)] == pytest.approx([100, 100])
    assert isinstance(p3, Failure)
    assert has_line(p3.message, "p3", "3 tokens")
    (p4,) = CorpusBleu(values="p4").score([sample("red", "blue")]).rows
    assert isinstance(p4, Failure)


def test_the_function_for_lists_returns_one_column() -> None:
    assert bleu.sentence(["red boat"], ["a red boat"], values="bp") == [
        pytest.approx(math.exp(-1 / 2))
    ]
    with pytest.raises(ConfigError, match="one of bleu, bleu_bp"):
        bleu.sentence(["x"], ["x"], values="score,bp")


def test_a_precision_above_max_order_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"bleu\.values: p3 .*bleu\.max_order of 3"):
        Bleu(values="p3", max_order=2)


def test_the_corpus_interval_depends_only_on_the_seed() -> None:
    samples = [sample(near, long) for near, long in zip(NEAR * 4, LONG * 3 + NEAR, strict=True)]
    first = CorpusBleu(seed=1).score(samples).rows[0]
    assert CorpusBleu(seed=1).score(samples).rows[0] == first
    assert CorpusBleu(seed=2).score(samples).rows[0] != first


@pytest.mark.slow
def test_corpus_intervals_contain_the_value_of_a_large_corpus() -> None:
    """Each output is right or wrong by the toss of a coin. At least 35 of 40 intervals of 95% must cover the value."""
    import random

    coin = random.Random(5)
    truth = bleu.corpus(LONG * 200 + NEAR * 200, LONG * 400, max_order=1)
    n_covering = 0
    for seed in range(40):
        outputs = [coin.choice((LONG, NEAR))[n % 3] for n in range(60)]
        samples = [
            Sample(str(n), "a", output, references=(LONG[n % 3],))
            for n, output in enumerate(outputs)
        ]
        (row,) = CorpusBleu(max_order=1, seed=seed).score(samples).rows
        assert isinstance(row, Score)
        low, high = row.provenance.low, row.provenance.high
        assert low is not None
        assert high is not None
        n_covering += low <= truth <= high
    assert n_covering >= 35


@pytest.mark.parametrize(
    ("name", "options", "signature"),
    [
        ("bleu", {}, "bleu|sentence|nrefs=1|case=mixed|eff=yes|tok=13a|smooth=exp"),
        (
            "bleu",
            {"smooth": "add-k", "max_order": 2, "lowercase": True, "tokenize": "char"},
            "bleu|sentence|nrefs=1|case=lc|eff=yes|tok=char|smooth=add-k[1.00]|order=2",
        ),
        (
            "bleu_corpus",
            {"seed": 7},
            "bleu_corpus|corpus|nrefs=1|bs=1000|seed=7|case=mixed|eff=no|tok=13a|smooth=exp",
        ),
        ("self_bleu", {}, "self_bleu|system|eff=yes|order=4|case=mixed|tok=13a|smooth=exp"),
        (
            "self_bleu",
            {"smooth": "floor", "max_order": 2, "lowercase": True, "effective_order": False},
            "self_bleu|system|eff=no|order=2|case=lc|tok=13a|smooth=floor[0.10]",
        ),
        (
            "source_bleu",
            {"smooth": "none"},
            "source_bleu|sentence|eff=yes|order=4|case=mixed|tok=13a|smooth=none",
        ),
    ],
)
def test_signatures_are_stable(name: str, options: dict[str, object], signature: str) -> None:
    """Stored runs are compared by their signatures, so even the order of the parts must not change."""
    texts = [
        Sample(item, "a", "a ferry came in late", source="a ferry", references=("a ferry",))
        for item in "12"
    ]
    (column,) = plugins.load("metrics", name)(**options).score(texts).columns
    assert str(column.signature) == f"{signature}|sacrebleu {version('sacrebleu')}"


def test_a_system_has_one_tokenizer_for_all_its_texts() -> None:
    """Most letters are Chinese, so `zh` also splits the English text, and the signature names only `zh`."""
    samples = [
        sample(x, x)
        for x in ("渡轮下午很晚才到达港口", "渡轮下午两点到达港口", "a small boat sank")
    ]
    (column,) = CorpusBleu().score(samples).columns
    assert "|tok=zh|" in str(column.signature)


def test_a_corpus_of_texts_shorter_than_max_order_is_a_failure() -> None:
    """sacrebleu gives 0.0, as 0 of 0 4-grams match. If no word matches, 0 is the right value."""
    result = CorpusBleu().score(
        [
            sample("red boat", "red boat"),
            sample("blue", "green", system="b"),
            sample("x", system="c"),
        ]
    )
    short, wrong, without_reference = result.rows
    assert isinstance(short, Failure)
    assert short.error == "TextsTooShort"
    assert has_line(short.message, "system a", "4 tokens")
    assert isinstance(wrong, Score)
    assert wrong.value == 0.0
    assert isinstance(without_reference, Failure)
    assert without_reference.error == "NoReference"
    assert bleu.corpus(["red boat"], ["red boat"], max_order=2) == 100.0
    with pytest.raises(DataError, match="at least max_order = 4 tokens"):
        bleu.corpus(["red boat"], ["red boat"])


def test_the_failure_of_an_empty_output_counts_one_token_in_the_singular() -> None:
    (row,) = Bleu(values="p1").score([sample("", "red boat")]).rows
    assert isinstance(row, Failure)
    assert has_line(row.message, "p1", "1 token or")


def test_missing_packages_name_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    bleu_options._scorer.cache_clear()
    with pytest.raises(MissingExtra, match=r"ja-mecab .*: pip install 'textjudge\[cjk\]'$"):
        Bleu(tokenize="ja-mecab")


def test_the_function_for_lists_refuses_unusable_lists() -> None:
    with pytest.raises(DataError, match=r"outputs\[1\] has only blank references"):
        bleu.sentence(["x", "y"], ["x", " "])
    with pytest.raises(DataError, match="lists of equal length"):
        bleu.sentence(["x", "y"], ["x"])


def test_untokenized_texts_are_noted() -> None:
    """13a reads a Japanese sentence as one word, if it is the option or the tokenizer of most texts of a system."""
    japanese = sample("船は港に着いた", "船は港へ着いた")
    for metric in (Bleu(tokenize="13a"), CorpusBleu(tokenize="13a")):
        (note,) = parallel.merge_results(
            [metric.score([japanese, sample("a boat", "the boat")])]
        ).notes
        assert has_line(str(note), "2 of 4 texts", "script", "tokenizer 13a")
    english = [
        sample(f"the ferry {n} came late to the harbour", f"ferry {n} came") for n in range(9)
    ]
    (note,) = parallel.merge_results([CorpusBleu().score([japanese, *english])]).notes
    assert has_line(str(note), "bleu_corpus: 2 of 20 texts", "script")
    assert parallel.merge_results([Bleu().score([japanese, *english])]).notes == ()


def test_a_model_that_cannot_be_downloaded_is_an_error_that_names_the_tokenizer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("sentencepiece")
    from sacrebleu.tokenizers import tokenizer_spm

    def unreachable(*_: Any, **__: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr(tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(tokenizer_spm, "download_file", unreachable)
    with pytest.raises(MissingExtra) as missing:
        Bleu(tokenize="flores200")
    assert has_line(str(missing.value), "flores200", "no network", "another tokenizer")
