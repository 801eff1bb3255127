"""Stems of English words by Porter's algorithm, in the two forms that programs for ROUGE use.

M. F. Porter (1980), "An algorithm for suffix stripping", Program 14(3), whose names of steps and conditions are kept.
A word is [C](VC)^m[V], C and V being runs of consonants and of vowels and m its measure. A `y` is a vowel after a
consonant; digits are consonants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_Rules = Mapping[str, tuple[tuple[str, str], ...]]
_Condition = Callable[[str], object]

# Runs are possessive: no letter is read twice, however long the word.
_C = "[^aeiou][^aeiouy]*+"
_V = "[aeiouy][aeiou]*+"
_has_vowel = re.compile(f"(?:{_C})?+[aeiouy]").match  # *v*
_ends_in_consonant = re.compile(
    f"(?:{_C})?+(?:{_V}{_C})*+"
).fullmatch  # of a word that is not empty
_m_over_0 = re.compile(f"(?:{_C})?+{_V}{_C}").match
_m_over_1 = re.compile(f"(?:{_C})?+{_V}{_C}{_V}{_C}").match
_m_is_1 = re.compile(f"(?:{_C})?+{_V}{_C}(?:{_V})?+").fullmatch
_short = re.compile(f"{_C}[aeiouy][^aeiouwxy]").fullmatch  # m = 1 and *o
_short_nltk = re.compile(
    f"{_C}[aeiouy][^aeiouwxy]|[aeiou][^aeiou]"
).fullmatch  # NLTK adds words of two letters


def _by_ending(rules: str) -> _Rules:
    """Group rules `suffix>replacement` by the last two letters of the suffix, longest suffix first."""
    rules_by_ending: dict[str, tuple[tuple[str, str], ...]] = {}
    for rule in sorted(rules.split(), key=lambda rule: -rule.index(">")):
        suffix, replacement = rule.split(">")
        rules_by_ending[suffix[-2:]] = (
            *rules_by_ending.get(suffix[-2:], ()),
            (suffix, replacement),
        )
    return rules_by_ending


_PAPER_2 = (
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e ousli>ous ization>ize "
    "ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous aliti>al iviti>ive biliti>ble "
)
_PAPER_4 = "al> ance> ence> er> ic> able> ible> ant> ou> ism> ate> iti> ous> ive> ize> "
_STEP_2 = _by_ending(_PAPER_2 + "fulli>ful")
_STEP_2_OF_155 = _by_ending(_PAPER_2 + "logi>log")
_STEP_3 = _by_ending("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
_STEP_4 = _by_ending(_PAPER_4 + "ion> ement> ment> ent>")
_STEP_4_OF_155 = (_by_ending(_PAPER_4), _by_ending("ion>"), _by_ending("ement> ment> ent>"))

_KEPT = ("news", "inning", "outing", "canning", "proceed", "exceed", "succeed", "howe", "sky")
_IRREGULAR = {word: word for word in _KEPT} | {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
}
_IRREGULAR |= {"innings": "inning", "outings": "outing", "cannings": "canning"}


def stem(word: str) -> str:
    """The stem of a lower-case word as NLTK's `PorterStemmer` has it in its default mode, `NLTK_EXTENSIONS`.

    rouge-score stems with it. Against the paper: a few irregular words; `died`, `dies` to `die`; a final `y` becomes
    `i` after a consonant only (`play` stays); `fulli`, `logi` and two runs of step 2 after `alli`.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = word[:-1] if len(word) == 4 and word.endswith("ies") else _step_1a(word)
    # NLTK's rule for -ied: `died` to `die`, `spied` to `spi`.
    word = (
        (word[:-1] if len(word) == 4 else word[:-2])
        if word.endswith("ied")
        else _step_1b(word, _short_nltk)
    )
    if word[-1:] == "y" and len(word) > 2 and _ends_in_consonant(word[:-1]):
        word = word[:-1] + "i"
    word = _step_4(_replace_suffix(_step_2(word), _STEP_3, _m_over_0), _STEP_4)
    return _step_5(word, _short_nltk)


def stem155(word: str) -> str:
    """The stem of a lower-case word as ROUGE-1.5.5 has it where its exception list is empty.

    This is the algorithm as Porter published it on his site, except in step 4, which removes up to three suffixes:
    one of the paper's others, then one of -ement, -ment, -ent, the longest whose stem has m > 1, then -ion.
    `professional` becomes `profess`, `statement` becomes `statem`. Taken from the numbers the program prints and from
    how many of SummEval's words it stems otherwise than NLTK does: 156, and 29 in NLTK's form of the published one.
    """
    if len(word) <= 2:
        return word
    word = _step_1b(_step_1a(word), _short)
    if word[-1:] == "y" and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(_replace_suffix(word, _STEP_2_OF_155, _m_over_0), _STEP_3, _m_over_0)
    main, ion, ment = _STEP_4_OF_155
    word = _replace_suffix(_step_4(word, main), ment, _m_over_1, shorter=True)
    return _step_5(_step_4(word, ion), _short)


def _replace_suffix(
    word: str, rules: _Rules, condition: _Condition, *, shorter: bool = False
) -> str:
    """Replace the longest suffix that fits if the part before it meets the condition; `shorter`: else try the next."""
    for suffix, replacement in rules.get(word[-2:], ()):
        if word.endswith(suffix):
            before = word[: -len(suffix)]
            if condition(before):
                return before + replacement
            if not shorter:
                return word
    return word


def _step_1a(word: str) -> str:
    if word[-1:] != "s" or word.endswith("ss"):
        return word[:-2] if word.endswith("sses") else word
    return word[:-2] if word.endswith(("sses", "ies")) else word[:-1]


def _step_1b(word: str, short: _Condition) -> str:
    if word.endswith("eed"):
        return word[:-1] if _m_over_0(word[:-3]) else word
    before = word[:-2] if word.endswith("ed") else word[:-3] if word.endswith("ing") else ""
    if not _has_vowel(before):
        return word
    if before.endswith(("at", "bl", "iz")):
        return before + "e"
    if before[-2:-1] == before[-1] and _ends_in_consonant(before):
        return before if before[-1] in "lsz" else before[:-1]
    return before + "e" if short(before) else before


def _step_2(word: str) -> str:
    """Apply step 2 with NLTK's additions."""
    if word.endswith("alli") and _m_over_0(word[:-4]):
        return _step_2(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _m_over_0(word[:-3]) else word
    return _replace_suffix(word, _STEP_2, _m_over_0)


def _step_4(word: str, rules: _Rules) -> str:
    if word.endswith("ion") and word[-4:-3] not in ("s", "t"):
        return word
    return _replace_suffix(word, rules, _m_over_1)


def _step_5(word: str, short: _Condition) -> str:
    if word[-1:] == "e":
        before = word[:-1]
        if _m_over_1(before) or (_m_is_1(before) and not short(before)):
            word = before
    return word[:-1] if word.endswith("ll") and _m_over_1(word[:-1]) else word
