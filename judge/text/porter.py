"""Stems of English words by Porter's algorithm, in the two forms that programs for ROUGE use.

M. F. Porter (1980), "An algorithm for suffix stripping", Program 14(3), whose names of steps and
conditions are kept. A word is [C](VC)^m[V], C and V being runs of consonants and of vowels and m
its measure. A `y` is a vowel after a consonant; digits are consonants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_Rules = Mapping[str, tuple[tuple[str, str], ...]]
"""Pairs of a suffix and its replacement by the suffix's last two letters, longest suffix first."""
_Condition = Callable[[str], object]
"""A test of the part before a suffix: true if the suffix may be replaced."""

# Runs are possessive: no letter is read twice, however long the word.
_C = "[^aeiou][^aeiouy]*+"  # a run of consonants: tr, y in "yes"
_V = "[aeiouy][aeiou]*+"  # a run of vowels: ee, y in "try"
_has_vowel = re.compile(f"(?:{_C})?+[aeiouy]").match  # *v*: tree, but not trs
# *C, of a word that is not empty: hop, but not hope
_ends_in_consonant = re.compile(f"(?:{_C})?+(?:{_V}{_C})*+").fullmatch
_m_over_0 = re.compile(f"(?:{_C})?+{_V}{_C}").match  # trees, but not tree
_m_over_1 = re.compile(f"(?:{_C})?+{_V}{_C}{_V}{_C}").match  # privates, but not trees
_m_is_1 = re.compile(f"(?:{_C})?+{_V}{_C}(?:{_V})?+").fullmatch  # trees, oaten
# m = 1 and *o: hop, but not snow
_short = re.compile(f"{_C}[aeiouy][^aeiouwxy]").fullmatch
# NLTK adds words of two letters, such as "at".
_short_nltk = re.compile(f"{_C}[aeiouy][^aeiouwxy]|[aeiou][^aeiou]").fullmatch


def _by_ending(rules: str) -> _Rules:
    """Group rules `suffix>replacement` by the suffix's last two letters, longest suffix first."""
    longest_first = sorted(rules.split(), key=lambda rule: -rule.index(">"))
    rules_by_ending: dict[str, list[tuple[str, str]]] = {}
    for rule in longest_first:
        suffix, replacement = rule.split(">")
        rules_by_ending.setdefault(suffix[-2:], []).append((suffix, replacement))
    return {ending: tuple(group) for ending, group in rules_by_ending.items()}


# The rules of steps 2 and 4 that both forms have.
_PAPER_2 = (
    "ational>ate tional>tion enci>ence anci>ance izer>ize bli>ble alli>al entli>ent eli>e "
    "ousli>ous ization>ize ation>ate ator>ate alism>al iveness>ive fulness>ful ousness>ous "
    "aliti>al iviti>ive biliti>ble "
)
_PAPER_4 = "al> ance> ence> er> ic> able> ible> ant> ou> ism> ate> iti> ous> ive> ize> "
_STEP_2 = _by_ending(_PAPER_2 + "fulli>ful")
_STEP_2_OF_155 = _by_ending(_PAPER_2 + "logi>log")
_STEP_3 = _by_ending("icate>ic ative> alize>al iciti>ic ical>ic ful> ness>")
_STEP_4 = _by_ending(_PAPER_4 + "ion> ement> ment> ent>")
# In the order in which `stem155` applies them.
_STEP_4_OF_155 = (
    _by_ending(_PAPER_4),
    _by_ending("ement> ment> ent>"),
    _by_ending("ion>"),
)

# NLTK's irregular words.
_UNCHANGED = (
    "news",
    "inning",
    "outing",
    "canning",
    "proceed",
    "exceed",
    "succeed",
    "howe",
    "sky",
)
_IRREGULAR = {word: word for word in _UNCHANGED} | {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "innings": "inning",
    "outings": "outing",
    "cannings": "canning",
}


def stem(word: str) -> str:
    """Return the stem of a lower-case word as NLTK's `PorterStemmer` in its default mode.

    This mode is called `NLTK_EXTENSIONS`. rouge-score stems with it. Against the paper: a few
    irregular words; `died`, `dies` to `die`; a final `y` becomes `i` after a consonant only (`play`
    stays); `fulli`, `logi` and two runs of step 2 after `alli`.
    """
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 2:
        return word
    word = _nltk_step_1a(word)
    word = _nltk_step_1b(word)
    if word[-1:] == "y" and len(word) > 2 and _ends_in_consonant(word[:-1]):
        word = word[:-1] + "i"
    word = _step_2(word)
    word = _replace_suffix(word, _STEP_3, _m_over_0)
    word = _step_4(word, _STEP_4)
    return _step_5(word, _short_nltk)


def stem155(word: str) -> str:
    """Return the stem of a lower-case word as ROUGE-1.5.5 with an empty list of exceptions.

    This is the algorithm as Porter published it on his site, except in step 4, which removes up to
    three suffixes: one of the paper's others, then one of -ement, -ment, -ent, the longest whose
    stem has m > 1, then -ion. `professional` becomes `profess`, `statement` becomes `statem`.

    This was inferred from the numbers that the program prints, and from two counts: of SummEval's
    words, it stems 156 differently from NLTK's default mode, and 29 differently from NLTK's form of
    the published algorithm.
    """
    if len(word) <= 2:
        return word
    word = _step_1a(word)
    word = _step_1b(word, _short)
    if word[-1:] == "y" and _has_vowel(word[:-1]):
        word = word[:-1] + "i"
    word = _replace_suffix(word, _STEP_2_OF_155, _m_over_0)
    word = _replace_suffix(word, _STEP_3, _m_over_0)
    main_rules, ment_rules, ion_rules = _STEP_4_OF_155
    word = _step_4(word, main_rules)
    word = _replace_suffix(word, ment_rules, _m_over_1, shorter=True)
    word = _step_4(word, ion_rules)
    return _step_5(word, _short)


def _replace_suffix(
    word: str,
    rules: _Rules,
    condition: _Condition,
    *,
    shorter: bool = False,
) -> str:
    """Replace the longest suffix that fits if the part before it meets the condition.

    If the part does not, and `shorter` is true, try the next suffix.
    """
    for suffix, replacement in rules.get(word[-2:], ()):
        if word.endswith(suffix):
            before = word[: -len(suffix)]
            if condition(before):
                return before + replacement
            if not shorter:
                return word
    return word


def _step_1a(word: str) -> str:
    """Remove the s of a plural."""
    if word.endswith("sses"):
        return word[:-2]
    if not word.endswith("s") or word.endswith("ss"):
        return word
    return word[:-2] if word.endswith("ies") else word[:-1]


def _nltk_step_1a(word: str) -> str:
    """Apply step 1a with NLTK's rule for short words: `dies` to `die`."""
    if len(word) == 4 and word.endswith("ies"):
        return word[:-1]
    return _step_1a(word)


def _nltk_step_1b(word: str) -> str:
    """Apply step 1b with NLTK's rule for -ied: `died` to `die`, `spied` to `spi`."""
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    return _step_1b(word, _short_nltk)


def _step_1b(word: str, short: _Condition) -> str:
    """Remove -ed and -ing, and mend the end of the rest."""
    if word.endswith("eed"):
        return word[:-1] if _m_over_0(word[:-3]) else word
    if word.endswith("ed"):
        before = word[:-2]
    elif word.endswith("ing"):
        before = word[:-3]
    else:
        return word
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
        # What is left may end in another suffix of this step: "sensationalli",
        # "sensational", "sensate".
        return _step_2(word[:-2])
    # Unlike the rule logi>log, NLTK counts the l to the part before the suffix.
    if word.endswith("logi"):
        return word[:-1] if _m_over_0(word[:-3]) else word
    return _replace_suffix(word, _STEP_2, _m_over_0)


def _step_4(word: str, rules: _Rules) -> str:
    """Remove a suffix if m > 1; -ion only after s or t."""
    if word.endswith("ion") and word[-4:-3] not in ("s", "t"):
        return word
    return _replace_suffix(word, rules, _m_over_1)


def _step_5(word: str, short: _Condition) -> str:
    """Remove a final e, and one of two final l."""
    if word[-1:] == "e":
        before = word[:-1]
        if _m_over_1(before) or (_m_is_1(before) and not short(before)):
            word = before
    if word.endswith("ll") and _m_over_1(word[:-1]):
        return word[:-1]
    return word
