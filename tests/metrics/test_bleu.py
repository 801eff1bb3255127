"""BLEU. Oracles: numbers by hand, published values of sacrebleu, sacrebleu itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version

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
from judge.metrics import bleu, parallel
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
    """sacrebleu's form of references that vary in number."""
    width = max(map(len, references))
    return [[each[n] if n < len(each) else None for each in references] for n in range(width)]


def test_by_hand() -> None:
    """Precisions 3/4, 2/3, 1/2 and, smoothed, 1/2 of one 4-gram; no brevity penalty: 100 · (1/8)^(1/4)."""
    assert value("red green blue grey", "red green blue black") == pytest.approx(100 * 0.125**0.25)


def test_short_text_by_hand() -> None:
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
def test_japanese_pair(tokenizer: str, expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """sacrebleu 2.6.0; its default 13a leaves each sentence one token and scores 0."""
    if tokenizer == "char":
        monkeypatch.setattr(text, "installed", lambda name: name in ("en", "zh"))
    else:
        needs("ja")
    pair = "交番の隣に喫茶店がある。", "交番の隣にある喫茶店は小さい。"
    assert value(*pair) == pytest.approx(expected, abs=0.005)
    assert sentence_bleu(pair[0], [pair[1]], tokenize="13a").score == 0.0


@given(WORDS, st.lists(WORDS, min_size=1, max_size=3))
def test_english_is_sacrebleu(output: str, references: list[str]) -> None:
    theirs = BLEU(effective_order=True, force=True).sentence_score(output, references).score
    assert value(output, *references) == min(theirs, 100.0)


@settings(max_examples=100)
@given(
    smooth=st.sampled_from(["exp", "none", "floor", "add-k"]),
    max_order=st.sampled_from([1, 2, 4, 6]),
    pairs=PAIRS,
    lowercase=st.booleans(),
)
def test_options_are_sacrebleus(
    smooth: str, max_order: int, pairs: list[tuple[str, list[str]]], lowercase: bool
) -> None:
    outputs, references = [output for output, _ in pairs], [scores for _, scores in pairs]
    theirs = BLEU(
        lowercase=lowercase,
        force=True,
        smooth_method=smooth,
        max_ngram_order=max_order,
        effective_order=True,
    )
    scores = bleu.sentence(
        outputs, references, smooth=smooth, max_order=max_order, lowercase=lowercase
    )
    assert scores == [min(theirs.sentence_score(*pair).score, 100.0) for pair in pairs]


@pytest.mark.parametrize(
    ("output", "reference", "tokenizer", "needed"),
    [
        ("渡轮下午三点到了港口", "渡轮下午两点到达港口", "zh", "zh"),
        ("배가 오후에 늦게 도착했다", "배가 오후 세 시에 도착했다", "ko-mecab", "ko"),
        ("船は午後に港へ着いた", "船は午後三時に港に着いた", "ja-mecab", "ja"),
        ("паром пришёл в порт днём", "паром пришёл в порт вечером", "13a", "en"),
        (
            "ferry",
            "船は午後三時に港に着いた",
            "ja-mecab",
            "ja",
        ),  # the reference decides, for every system alike
    ],
)
def test_tokenizer_by_script(output: str, reference: str, tokenizer: str, needed: str) -> None:
    needs(needed)
    scorer = BLEU(effective_order=True, tokenize=tokenizer)
    theirs = scorer.sentence_score(output, [reference]).score
    assert value(output, reference) == pytest.approx(theirs, abs=1e-9)
    signature = str(Bleu().score([sample(output, reference)]).columns[0].signature)
    assert f"|tok={scorer.tokenizer_signature}|" in signature


def test_missing_dictionaries_fall_back_on_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "installed", lambda name: name in ("en", "zh"))
    names = [
        bleu.tokenizer_for([each])
        for each in ("a ferry", "渡轮下午到达", "船は港に着いた", "배가 도착했다")
    ]
    assert names == ["13a", "zh", "char", "char"]


def test_signature_is_sacrebleus_own() -> None:
    theirs = BLEU(effective_order=True, smooth_method="floor", lowercase=True)
    theirs.sentence_score("x", ["y", "z"])
    metric = Bleu(smooth="floor", lowercase=True)
    (column,) = metric.score([sample("x", "y", " ", "z"), sample("w")]).columns
    name, kind, *parts, version = str(column.signature).split("|")
    assert (name, kind) == ("bleu", "sentence")
    assert "|".join([*parts, version]).replace("=", ":").replace("sacrebleu ", "version:") == str(
        theirs.get_signature()
    )


def test_signature_of_mixed_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "installed", lambda name: name in ("en", "zh"))
    (column,) = Bleu().score([sample("x", "y"), sample("버스", "버스", "배")]).columns
    assert str(column.signature).startswith(
        "bleu|sentence|nrefs=var|case=mixed|eff=yes|tok=13a+char|smooth=exp|"
    )
    (column,) = Bleu(max_order=2).score([sample("x", "y")]).columns
    assert "|smooth=exp|order=2|sacrebleu " in str(column.signature)


def test_tokenized_stops_are_not_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    Bleu().score([sample(f"line {n} .", "a line .") for n in range(150)])
    assert caplog.records == []


@given(PAIRS)
def test_corpus_is_sacrebleu_with_varying_references(pairs: list[tuple[str, list[str]]]) -> None:
    outputs, references = [output for output, _ in pairs], [skip for _, skip in pairs]
    theirs = BLEU(force=True).corpus_score(outputs, rectangular(references))
    if theirs.totals[-1]:
        assert bleu.corpus(outputs, references) == min(theirs.score, 100.0)


def test_corpus_column() -> None:
    """Order, number of texts and value of each system; the interval by resampling the texts themselves."""
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
    theirs = BLEU().corpus_score(NEAR, [LONG]).score
    assert a.value == b.value == theirs
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
    for metric, theirs in (
        (Bleu(values=names, tokenize=tokenize), by_text),
        (CorpusBleu(values=names, tokenize=tokenize), [pooled.corpus_score(NEAR, [LONG])]),
    ):
        result = metric.score(texts)
        suffixes = ("", "_p1", "_p2", "_p3", "_p4", "_bp")
        assert [column.name for column in result.columns] == [
            metric.name + suffix for suffix in suffixes
        ]
        assert [column.high for column in result.columns] == [100.0] * 5 + [1.0]
        expected = [value for each in theirs for value in (each.score, *each.precisions, each.bp)]
        assert [row.value for row in result.rows if isinstance(row, Score)] == pytest.approx(
            expected, abs=1e-12
        )
        assert metric.score(texts).rows[::6] == type(metric)(tokenize=tokenize).score(texts).rows


def test_a_precision_of_no_ngrams_is_a_failure_and_lists_have_one_column() -> None:
    p1, p2, p3 = Bleu(values="p1,p2,p3").score([sample("red boat", "a red boat")]).rows
    assert [row.value for row in (p1, p2) if isinstance(row, Score)] == pytest.approx([100, 100])
    assert isinstance(p3, Failure)
    assert "no output has 3 tokens" in p3.message
    (p4,) = CorpusBleu(values="p4").score([sample("red", "blue")]).rows
    assert isinstance(p4, Failure)
    assert bleu.sentence(["red boat"], ["a red boat"], values="bp") == [
        pytest.approx(math.exp(-1 / 2))
    ]
    with pytest.raises(ConfigError, match="one of bleu, bleu_bp"):
        bleu.sentence(["x"], ["x"], values="score,bp")
    with pytest.raises(ConfigError, match=r"bleu\.values: p3 .*bleu\.max_order of 3"):
        Bleu(values="p3", max_order=2)


def test_corpus_interval_is_seeded() -> None:
    samples = [sample(near, long) for near, long in zip(NEAR * 4, LONG * 3 + NEAR, strict=True)]
    first, repeated, other = (CorpusBleu(seed=seed).score(samples).rows[0] for seed in (1, 1, 2))
    assert first == repeated != other


@pytest.mark.slow
def test_corpus_interval_covers() -> None:
    """95% intervals over texts that are right or wrong as by a coin: nearly all hold the value of very many texts."""
    import random

    coin = random.Random(5)
    truth = bleu.corpus(LONG * 200 + NEAR * 200, LONG * 400, max_order=1)
    held = 0
    for seed in range(40):
        outputs = [coin.choice((LONG, NEAR))[n % 3] for n in range(60)]
        (row,) = (
            CorpusBleu(max_order=1, seed=seed)
            .score(
                [
                    Sample(str(n), "a", output, references=(LONG[n % 3],))
                    for n, output in enumerate(outputs)
                ]
            )
            .rows
        )
        assert isinstance(row, Score)
        low, high = row.provenance.low, row.provenance.high
        assert low is not None
        assert high is not None
        held += low <= truth <= high
    assert held >= 35


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
    """Stored runs compare by them: each has its own order of parts."""
    texts = [
        Sample(item, "a", "a ferry came in late", source="a ferry", references=("a ferry",))
        for item in "12"
    ]
    (column,) = plugins.load("metrics", name)(**options).score(texts).columns
    assert str(column.signature) == f"{signature}|sacrebleu {version('sacrebleu')}"


def test_one_tokenizer_for_a_system() -> None:
    """Most letters are Chinese: the English reference is cut by `zh` as well, and the signature names no other."""
    samples = [
        sample(x, x)
        for x in ("渡轮下午很晚才到达港口", "渡轮下午两点到达港口", "a small boat sank")
    ]
    (column,) = CorpusBleu().score(samples).columns
    assert "|tok=zh|" in str(column.signature)


def test_corpus_without_the_longest_ngram_has_no_score() -> None:
    """sacrebleu gives 0.0, since 0 of 0 4-grams match; where nothing matches at all, 0 is right."""
    result = CorpusBleu().score(
        [
            sample("red boat", "red boat"),
            sample("blue", "green", system="b"),
            sample("x", system="c"),
        ]
    )
    short, wrong, none = result.rows
    assert isinstance(short, Failure)
    assert short.error == "TextsTooShort"
    assert has_line(short.message, "system a", "4 tokens")
    assert isinstance(wrong, Score)
    assert wrong.value == 0.0
    assert isinstance(none, Failure)
    assert none.error == "NoReference"
    assert bleu.corpus(["red boat"], ["red boat"], max_order=2) == 100.0
    with pytest.raises(DataError, match="at least max_order = 4 tokens"):
        bleu.corpus(["red boat"], ["red boat"])


def test_missing_packages_give_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    bleu._scorer.cache_clear()
    with pytest.raises(MissingExtra, match=r"ja-mecab .*: pip install 'textjudge\[cjk\]'$"):
        Bleu(tokenize="ja-mecab")


def test_lists_are_checked() -> None:
    with pytest.raises(DataError, match=r"outputs\[1\] has only blank references"):
        bleu.sentence(["x", "y"], ["x", " "])
    with pytest.raises(DataError, match="lists of equal length"):
        bleu.sentence(["x", "y"], ["x"])


def test_untokenized_texts_are_noted() -> None:
    """Asked for, or one for a system of several languages: 13a leaves a Japanese sentence one word."""
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
