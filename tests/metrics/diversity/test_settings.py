"""Options and tokens of the diversity metrics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sacrebleu.tokenizers import tokenizer_ja_mecab

from judge.errors import MissingExtra
from judge.metrics import sacre
from judge.metrics.diversity import SelfBleu
from judge.records import Sample


@pytest.fixture
def no_mecab(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where the extra is not installed."""
    monkeypatch.setattr(tokenizer_ja_mecab, "MeCab", None)
    sacre._tokenizer.cache_clear()
    yield
    sacre._tokenizer.cache_clear()


@pytest.mark.usefixtures("no_mecab")
def test_missing_packages_give_the_pip_line() -> None:
    with pytest.raises(MissingExtra, match=r"tokenizer ja-mecab needs .*: pip install 'textjudge\[cjk\]'$"):
        SelfBleu(tokenize="ja-mecab").score([Sample("1", "a", "x"), Sample("2", "a", "y")])
