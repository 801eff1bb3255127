"""Options, tokens and signatures of all kinds of BLEU."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version

import pytest
from sacrebleu.tokenizers import tokenizer_ja_mecab

from judge.core import plugins
from judge.core.errors import MissingExtra
from judge.core.records import Sample
from judge.metrics import bleu
from judge.metrics.diversity import SelfBleu


@pytest.fixture
def no_mecab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where the extra is not installed."""
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    bleu._tokenizer.cache_clear()
    yield
    bleu._tokenizer.cache_clear()


@pytest.mark.usefixtures("no_mecab")
def test_missing_packages_give_the_pip_line() -> None:
    with pytest.raises(MissingExtra, match=r"tokenizer ja-mecab needs .*: pip install 'textjudge\[cjk\]'$"):
        SelfBleu(tokenize="ja-mecab").score([Sample("1", "a", "x"), Sample("2", "a", "y")])


@pytest.mark.parametrize(
    ("name", "options", "signature"),
    [
        ("bleu", {}, "bleu|sentence|nrefs=1|case=mixed|eff=yes|tok=13a|smooth=exp"),
        (
            "bleu",
            {"smooth": "add-k", "max_order": 2, "lowercase": True, "tokenize": "char"},
            "bleu|sentence|nrefs=1|case=lc|eff=yes|tok=char|smooth=add-k[1.00]|order=2",
        ),
        ("bleu_corpus", {}, "bleu_corpus|corpus|nrefs=1|bs=1000|seed=0|case=mixed|eff=no|tok=13a|smooth=exp"),
        ("self_bleu", {}, "self_bleu|system|eff=yes|order=4|case=mixed|tok=13a|smooth=exp"),
        (
            "self_bleu",
            {"smooth": "floor", "max_order": 2, "lowercase": True, "effective_order": False},
            "self_bleu|system|eff=no|order=2|case=lc|tok=13a|smooth=floor[0.10]",
        ),
        ("source_bleu", {"smooth": "none"}, "source_bleu|sentence|eff=yes|order=4|case=mixed|tok=13a|smooth=none"),
    ],
)
def test_signatures_stay_what_they_are(name: str, options: dict[str, object], signature: str) -> None:
    """Stored runs compare by them: each has its own order of parts."""
    texts = [Sample(item, "a", "a ferry came in late", source="a ferry", references=("a ferry",)) for item in "12"]
    (column,) = plugins.load("metrics", name)(**options).score(texts).columns
    assert column.signature == f"{signature}|sacrebleu {version('sacrebleu')}"
