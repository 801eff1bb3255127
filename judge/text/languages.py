"""The table of languages, and functions that find a text's language, script and words.

The script of a text decides its language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from judge.core.records import Sample
from judge.text.abbreviations import word_set

HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc"


@dataclass(frozen=True, slots=True)
class Language:
    """A language that judge has prompts, a tokenizer and rules for sentences for.

    - `tokenizers`: names of `text.tokenizer`, the usual one first; `bleu`: sacrebleu's tokenizer.
    - `letters`: the letters of its script, as in a class of a regular expression; empty for an
      alphabet, whose words are counted instead.
    - `own_letters`: letters that distinguish it from another language of the same script: at least
      a tenth of its letters.
    - `min_letters`: with fewer letters, or words of an alphabet, a single text is too short to
      detect its language.
    - `spaced`: whether white space separates its words.
    - `stops`: marks that end a sentence without white space after them.
    - `final`: letters after which a full stop does so too.
    - `quotes`: pairs of marks; the text between them stays in its sentence.
    - `goes_on`: a regular expression; what matches it after such a pair continues the sentence.
    - `yes_no`: the answers to a question, as people write them.
    """

    code: str
    name: str
    tokenizers: tuple[str, ...]
    bleu: str
    letters: str = ""
    own_letters: str = ""
    min_letters: int = 10
    spaced: bool = True
    stops: str = ""
    final: str = ""
    quotes: tuple[tuple[str, str], ...] = ()
    goes_on: str = ""
    yes_no: tuple[str, str] = ("yes", "no")

    @property
    def tokenizer(self) -> str:
        """The name of its usual tokenizer."""
        return self.tokenizers[0]


_TABLE = (
    Language("en", "English", ("en",), "13a", min_letters=5, quotes=(("“", "”"),)),
    Language(
        "ja",
        "Japanese",
        ("ja",),
        "ja-mecab",
        letters=HAN + KANA,
        own_letters=KANA,
        spaced=False,
        stops="。！？｡",
        quotes=(("「", "」"), ("『", "』"), ("（", "）")),
        goes_on="[とのをにがは]|って|など",  # particles
        yes_no=("はい", "いいえ"),
    ),
    Language(
        "ko",
        "Korean",
        ("ko",),
        "ko-mecab",
        letters=HANGUL,
        final="다요죠까",
        goes_on=r"이?라[고는며]|이?라면서|하[고며]\s|[고며]\s",  # verbs of saying
        yes_no=("예", "아니요"),
    ),
    Language(
        "zh",
        "Chinese",
        ("zh", "zh-words"),
        "zh",
        letters=HAN,
        min_letters=20,
        spaced=False,
        stops="。！？｡",
        quotes=(("（", "）"),),
        yes_no=("是", "否"),
        # Who speaks, and a verb of saying that is no part of 听说, 知道, 小说, 疑问: 他笑着说，
        goes_on=(
            r"[^\s。！？…，,：:“”「」『』]{0,9}?(?<![听聽据據传傳虽雖小知味街轨軌难難学學疑访訪顾顧])"
            r"(?:[说說问問道喊叫答]|回答)[道着著完了]?(?=[。，,：:；！？]|\Z)"
        ),
    ),
)
LANGUAGES: Mapping[str, Language] = {language.code: language for language in _TABLE}
"""The languages by code (ISO 639-1). `en` stands for every alphabet that has no row of its own."""
DEFAULT_LANGUAGE = "en"
if TYPE_CHECKING:
    LanguageCode = str
    LanguageChoice = str
else:
    LanguageChoice = Literal[*LANGUAGES, "auto"]
    LanguageCode = Literal[*LANGUAGES]
    """A code in the table, as a type whose values are known: options check and list them."""
BY_SCRIPT = tuple(language for language in _TABLE if language.letters)
"""The languages whose letters tell them from every alphabet: Chinese, Japanese and Korean."""

# The classes of characters that words are made of. \w lacks the marks that Arabic, Hebrew, Indic
# and Tibetan words are written with, and without them the words would be cut in pieces.
MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u064b-\u065f"
    "\u0670\u0900-\u0963\u0971-\u0dff\u0f71-\u0fbc"
)
# Thai, Lao, Burmese and Khmer put no space between words. A cluster is a consonant with its vowels
# and marks: Thai and Lao vowels before and after it, and consonants that are written below it.
_THAI_AND_LAO = "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"
_BURMESE_AND_KHMER = "\u1000-\u103f\u1050-\u109d\u1780-\u17d3"
CLUSTERED = f"{_THAI_AND_LAO}{_BURMESE_AND_KHMER}"
CLUSTER = (
    rf"[\u0e40-\u0e44\u0ec0-\u0ec4]?(?=\w)[{CLUSTERED}]"
    rf"(?:[\u1039\u17d2](?=\w)[{CLUSTERED}]|[\u0e30\u0e32\u0e45\u0eb0\u0eb2]|(?!\w)[{CLUSTERED}])*"
)
SCRIPTS = "".join(dict.fromkeys(language.letters for language in BY_SCRIPT))
_ALL_LETTERS = [language.letters for language in BY_SCRIPT]
_ALL_LETTERS += [language.own_letters for language in BY_SCRIPT if language.own_letters]
# A search for the letters of each script, and for those that distinguish a language: 가 for Hangul.
_LETTERS_OF = {letters: re.compile(f"[{letters}]") for letters in _ALL_LETTERS}
# A token as `tokens` says: 中, ไทย as two clusters, naïve.
_TOKEN = re.compile(f"[{SCRIPTS}]|{CLUSTER}|(?:[^\\W{SCRIPTS}{CLUSTERED}][{MARKS}]*)+")
# A word with its marks, in any script: naïve, หนึ่ง, x2.
_WORD = re.compile(f"(?:[^\\W_][{MARKS}{CLUSTERED}]*)+")
# A word of an alphabet, without digits and scripts of `BY_SCRIPT`: the GPT of GPT와.
_OTHER_WORD = re.compile(f"(?:[^\\W\\d_{SCRIPTS}{CLUSTERED}][{MARKS}]*)+")
# A character or cluster of a script without spaces: 中, or กา.
_UNSPACED = re.compile(f"[{HAN}{KANA}]|{CLUSTER}")
# A word of a script with spaces: naïve, 가나.
_SPACED_WORD = re.compile(f"(?:[^\\W\\d_{HAN}{KANA}{CLUSTERED}][{MARKS}]*)+")
# The same, or a number: 1990.
_SPACED_WORD_OR_NUMBER = re.compile(f"(?:[^\\W_{HAN}{KANA}{CLUSTERED}][{MARKS}]*)+")

_CJK = re.compile(f"[{SCRIPTS}]").search
_TWO_LETTERS = frozenset(("CJK", "KANA", "HANGUL"))
_BEYOND_ASCII = re.compile(r"[^\W\d_\x00-\x7f]").search  # é, п
# A run without full-width punctuation, such as the text between ， and ！.
_NO_WIDE_MARKS = re.compile("[^！-／：-＠［-｀｛-･]+")


_ENGLISH = word_set(  # words that few other languages have
    "the and that with from this which their they have been would could there who what when she "
    "its our your these those about than because not you were how his him said"
)

_LOOK_AT = 200_000  # characters in all, which settles any data set
_LOOK_AT_EACH = 2_000  # so that one long text does not speak for all
# Japanese prose has about half of kana; a の in a Chinese title has far less.
_OWN_SHARE = 0.1


def detect_language(texts: Iterable[str]) -> str:
    """Return the code of the language of most of the words, by script.

    - `en` stands for Latin and any other script, and for texts without letters.
    - Hangul is Korean. Han is Japanese if a tenth of the Han and kana is kana, or if `han_writing`
      says so, else Chinese.
    - Two characters of Han or kana count as a word, so that a sentence full of Latin names keeps
      its language. A word of Korean ends at white space.

    Reads the first 2,000 characters of each text, 200,000 in all.
    """
    code, _ = _most_written(_beginnings(texts))
    return code


def is_unspaced(texts: Iterable[str]) -> bool:
    """Return whether most of the texts is in a script without spaces between words.

    These are Han, kana, Thai, Lao, Burmese and Khmer; two characters or clusters count as a word.
    Reads as much as `detect_language`, which returns `en` for the last four.
    """
    text = _beginnings(texts)
    if not _UNSPACED.search(text):
        return False
    text = normal(text)
    unspaced = len(_UNSPACED.findall(text))
    spaced_words = len(_SPACED_WORD.findall(text))
    return unspaced >= max(1, 2 * spaced_words)


def _beginnings(texts: Iterable[str]) -> str:
    """Return the first characters of each text, up to `_LOOK_AT` in all."""
    beginnings: list[str] = []
    remaining = _LOOK_AT
    for text in texts:
        beginning = text[: min(remaining, _LOOK_AT_EACH)]
        beginnings.append(beginning)
        remaining -= len(beginning)
        if remaining <= 0:
            break
    return "\n".join(beginnings)


@cache
def _frequent_characters() -> dict[str, frozenset[str]]:
    """Return the frequent Han characters by kind of writing.

    These are level 1 of JIS X 0208 (shinjitai), GB 2312 and Big5.
    """
    return {
        "ja": _characters_in_rows("euc_jp", 0xB0, 0xCF),
        "Simplified": _characters_in_rows("gb2312", 0xB0, 0xD7),
        "Traditional": _characters_in_rows("big5", 0xA4, 0xC6),
    }


def _characters_in_rows(codec: str, first: int, last: int) -> frozenset[str]:
    """Return the characters that a two-byte encoding has in these rows (its first bytes)."""
    characters: set[str] = set()
    for row in range(first, last + 1):
        for cell in range(0x40, 0xFF):
            # Some cells are empty.
            characters.update(bytes((row, cell)).decode(codec, "ignore"))
    return frozenset(characters)


def han_writing(text: str) -> str:
    """Return whose Han characters a text has: `ja`, `Simplified` or `Traditional` (Chinese).

    It is the writing whose frequent characters lack the fewest of them; "" if Japanese and a form
    of Chinese lack equally many.
    """
    # 々 is in no standard's frequent characters.
    counts = Counter(_LETTERS_OF[HAN].findall(text.replace("々", "")))
    rare_by_writing: dict[str, int] = {}
    for writing, frequent in _frequent_characters().items():
        rare_characters = counts.keys() - frequent
        rare_by_writing[writing] = sum(counts[rare] for rare in rare_characters)
    fewest = min(rare_by_writing.values())
    likely = [name for name, n_rare in rare_by_writing.items() if n_rare == fewest]
    if len(likely) > 1 and "ja" in likely:
        return ""
    return likely[0]


@cache
def _form_letters() -> dict[str, frozenset[str]]:
    """Return the frequent characters that only one of the two forms of Chinese writes.

    They are the frequent characters of GB 2312 that Big5 lacks altogether, and the reverse: 们 这 国,
    and 們 這 國.
    """
    other_codec = {"Simplified": "big5", "Traditional": "gb2312"}
    forms: dict[str, frozenset[str]] = {}
    for writing, codec in other_codec.items():
        frequent = _frequent_characters()[writing]
        letters = [char for char in frequent if not char.encode(codec, "ignore")]
        forms[writing] = frozenset(letters)
    return forms


def han_form(text: str) -> str:
    """Return the form of Chinese of a text: `Simplified`, `Traditional`, or "" if it has neither.

    Only characters that one form alone writes count, so 中文 has neither form, and 后, 里, 面 and 干,
    which both forms write, do not count. "" also for equally many characters of both forms. The
    text has to be Chinese: 国 is Japanese as well.
    """
    simplified_letters = _form_letters()["Simplified"]
    traditional_letters = _form_letters()["Traditional"]
    simplified = sum(character in simplified_letters for character in text)
    traditional = sum(character in traditional_letters for character in text)
    if simplified == traditional:
        return ""
    return "Simplified" if simplified > traditional else "Traditional"


def html_language(code: str, text: str) -> str:
    """Return the `lang` attribute of a text in a language.

    Browsers choose the forms of Han characters by it.
    """
    return "zh-Hant" if code == "zh" and han_form(text) == "Traditional" else code


def language_of(samples: Iterable[Sample]) -> str:
    """Return the code of the language of the samples' outputs and sources."""
    return detect_language(_outputs_and_sources(samples))


def _outputs_and_sources(samples: Iterable[Sample]) -> Iterator[str]:
    for sample in samples:
        yield sample.output
        yield sample.source or ""


def detect_language_or_none(text: str) -> str | None:
    """Return the code of one text's language, None if it is too short to tell.

    It takes five words, ten characters of Japanese or Korean, or 20 of Chinese that are not
    Japanese as well.
    """
    beginning = text[:_LOOK_AT_EACH]
    code, count = _most_written(beginning)
    language = LANGUAGES[code]
    if count < language.min_letters:
        return None
    # A headline may have Han characters only, which Chinese and Japanese share.
    if language.letters == HAN and not han_writing(beginning):
        return None
    return code


def _most_written(text: str) -> tuple[str, int]:
    """Return the language of most words of a text, and the number of its letters in the text.

    For an alphabet, it is the number of words.
    """
    text = normal(text)
    n_words = _words_by_language(text)
    code = max(n_words, key=n_words.__getitem__)
    letters = LANGUAGES[code].letters
    if letters:
        return code, len(_LETTERS_OF[letters].findall(text))
    return code, int(n_words[code])


def word_shares(texts: Iterable[str]) -> dict[str, float]:
    """Return the share (0-1) of the words in each language by their script, largest first.

    Reads and counts as `detect_language` does. Empty without any word.
    """
    counts = _words_by_language(normal(_beginnings(texts)))
    total = sum(counts.values())
    present = [code for code, count in counts.items() if count]
    largest_first = sorted(present, key=lambda code: -counts[code])
    return {code: counts[code] / total for code in largest_first}


def count_words(text: str) -> float:
    """Return the number of words of a text.

    Translations of one text have about the same number. Two letters of Han or kana, or two clusters
    of Thai, Lao, Burmese or Khmer, count as a word; numbers are words.
    """
    text = normal(text)
    unspaced = len(_UNSPACED.findall(text))
    spaced = len(_SPACED_WORD_OR_NUMBER.findall(text))
    return unspaced / 2 + spaced


def _words_by_language(text: str) -> dict[str, float]:
    """Count the words of each language by script.

    The order decides between equal counts: `max` takes the first one, so languages with a script of
    their own come first. Two letters of Chinese or Japanese are a word. A word of Korean is bounded
    by white space and has a Hangul letter, so `GPT와` is one.
    """
    if text.isascii():
        return {DEFAULT_LANGUAGE: len(_OTHER_WORD.findall(text))}
    n_letters = {
        letters: len(pattern.findall(text)) for letters, pattern in _LETTERS_OF.items()
    }
    n_words: dict[str, float] = {}
    rest = text
    for language in BY_SCRIPT:
        # Japanese comes before Chinese in the table, and its Han characters are not counted twice.
        already_japanese = language.letters == HAN and "ja" in n_words
        if already_japanese or not _is_written(language, n_letters, text):
            continue
        if language.spaced:
            has_letter = _LETTERS_OF[language.letters].search
            parts = rest.split()
            other_parts = [part for part in parts if not has_letter(part)]
            n_words[language.code] = len(parts) - len(other_parts)
            rest = " ".join(other_parts)
        else:
            n_words[language.code] = n_letters[language.letters] / 2
    n_words[DEFAULT_LANGUAGE] = len(_OTHER_WORD.findall(rest))
    return n_words


def _is_written(language: Language, n_letters: Mapping[str, int], text: str) -> bool:
    """Return whether a text has this language's script, and not another language of the script.

    `n_letters` has the number of the text's letters in each class of `_LETTERS_OF`.
    """
    in_script = n_letters[language.letters]
    if not in_script:
        return False
    if not language.own_letters:
        return True
    has_own_letters = n_letters[language.own_letters] >= _OWN_SHARE * in_script
    return has_own_letters or han_writing(text) == language.code


def is_mostly_beyond_ascii(text: str) -> bool:
    """Return whether more than half of the letters are beyond a-z, after NFKC.

    ROUGE's English rules do not suit such a text: Chinese, Japanese or Korean, Cyrillic, Greek,
    Arabic and others.
    """
    if text.isascii():
        return False
    lowered = unicodedata.normalize("NFKC", text).lower()
    letters = [letter for letter in lowered if letter.isalpha()]
    n_ascii = sum(map(str.isascii, letters))
    return 2 * n_ascii < len(letters)


def has_letter_beyond_ascii(text: str) -> bool:
    """Return whether a text has a letter that is not a-z, in any script and after NFKC."""
    if text.isascii():
        return False
    composed = unicodedata.normalize("NFKC", text)
    return _BEYOND_ASCII(composed) is not None


def is_latin(text: str) -> bool:
    """Return whether all letters and digits are Latin ones, with or without diacritics."""
    if text.isascii():
        return True
    letters = set(filter(str.isalnum, unicodedata.normalize("NFKC", text)))
    beyond_ascii = [letter for letter in letters if not letter.isascii()]
    return all(script_of(letter) in ("LATIN", "") for letter in beyond_ascii)


def main_script(text: str) -> str:
    """Return the script of most of a text, as the first word of Unicode's names.

    These are LATIN, CYRILLIC, CJK, KANA, HANGUL … A character of Han, kana or Hangul counts as two
    letters. "" for a text without letters.
    """
    if text.isascii():
        return "LATIN" if any(map(str.isalpha, text)) else ""
    letters = filter(str.isalpha, unicodedata.normalize("NFKC", text))
    counts: Counter[str] = Counter()
    for letter, count in Counter(letters).items():
        script = script_of(letter)
        if script:
            counts[script] += 2 * count if script in _TWO_LETTERS else count
    return max(counts, key=counts.__getitem__, default="")


def script_of(letter: str) -> str:
    """Return the script of a letter, as `main_script`; "" for letters of no script, such as ʼ."""
    first_word, _, _ = unicodedata.name(letter, "").partition(" ")
    if first_word in ("HIRAGANA", "KATAKANA"):
        return "KANA"
    if first_word in ("MODIFIER", "KATAKANA-HIRAGANA"):
        return ""
    return first_word


def is_english(text: str) -> bool:
    """Return whether a text looks English by its letters and function words.

    It does if no more words have letters beyond a-z than are English function words: "the café was
    full", but not "le café était plein". Any text in a-z alone does.
    """
    text = unicodedata.normalize("NFKC", text).lower()
    if not _BEYOND_ASCII(text):
        return True
    words = _OTHER_WORD.findall(text)
    with_other_letters = sum(not word.isascii() for word in words)
    english = sum(word in _ENGLISH for word in words)
    return with_other_letters <= english


def normal(text: str) -> str:
    """Return a text in NFKC, in which equal letters have equal code points.

    If the text has Chinese, Japanese or Korean letters, full-width punctuation stays, because it
    ends their sentences.
    """
    if text.isascii():
        return text
    normalized = unicodedata.normalize("NFKC", text)
    if not _CJK(normalized):
        return normalized
    return _NO_WIDE_MARKS.sub(
        lambda match: unicodedata.normalize("NFKC", match.group()), text
    )


def cut_words(text: str) -> list[str]:
    """Return the lower-cased words of a text after NFKC.

    These are runs of letters and digits in any script, with their marks.
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower())


def tokens(text: str) -> list[str]:
    """Return lower-cased tokens for any script.

    Each Han, kana or Hangul character and each cluster is a token; other words are whole. A cluster
    of Thai, Lao, Burmese or Khmer is a consonant with its vowels and marks. Normalised by NFKC
    first. Punctuation, symbols and emoji are no tokens.
    """
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).lower())
