"""Sentences of text in any script, by its stops; no dependency, no model."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator

from judge.text.script import HAN, HANGUL, KANA

_TOKENIZED = re.compile(r"\s\.(\s|$)").search
_STANDING_STOP = re.compile(r"(?<=\s[.!?])\s+")

_QUOTES = "\"'”’»›"
_CLOSERS = _QUOTES + "」』】》〉〕）］｝)\\]}"
_HAN_KANA = f"[{HAN}{KANA}]"
# Where a sentence may end: stops, what closes quotes or brackets after them, white space. Stops that no word or number
# holds need no white space, and others need none between letters of Chinese, Japanese or Korean.
_CANDIDATE = re.compile(
    rf"(?P<wide>(?:[。！？｡]|．(?![0-9０-９]))[.!?。！？｡]*[{_CLOSERS}]*\s*)"
    rf"|(?P<danda>[।॥۔።។။]+[{_CLOSERS}]*\s*)"
    rf"|(?P<tight>(?<={_HAN_KANA})[.!?]+(?={_HAN_KANA})|(?<=[{HANGUL}])[!?]+(?=[{HANGUL}])|(?<=[다요죠까])\.(?=[{HANGUL}]))"
    rf"|(?P<spaced>(?<![.!?…؟։‼⁇⁈⁉])[.!?…؟։‼⁇⁈⁉]++[{_CLOSERS}]*+\s+)"  # read once: the runs may be long
)
_BRACKET = re.compile("[「『（“」』）”]")
_OPENS = {"」": "「", "』": "『", "）": "（", "”": "“"}

# What follows a quotation or bracket inside a sentence: a comma, Japanese or Korean particles, Korean verbs of saying.
_GOES_ON = re.compile(r"[、，,とのをにがは]|って|など|이?라[고는며]|이?라면서|하[고며]\s|[고며]\s").match
_DAY = re.compile(r"\d{1,2}\.").match  # of a date that follows
_DATE = re.compile(r"\d{4}\.\s?\d{1,2}\.\s?\d{1,2}\Z").search
_LIST_MARK = re.compile(r"[(\[]?(?:\d{1,3}|[^\W\d_]|[ivxIVX]{1,4})").fullmatch
_LAST_WORD = re.compile(r"[^\s\"'“‘«(\[]+\Z").search
_NEXT_WORD = re.compile(r"[\"'“‘«(\[]*([\w’']*)").match
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}").fullmatch


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEVER_LAST = _set(
    "mr mrs ms messrs mx mme mlle sra srta dra dr prof sen rep gov pres gen lt col maj sgt cpl capt cmdr adm rev hon "
    "vs cf e.g i.e viz al approx"
)
_BEFORE_NUMBERS = _set("no nos vol vols pp p fig figs eq eqs sec ch art")
_OFTEN_LAST = _set(  # written with a capital
    "jr sr st mt ft ave blvd rd inc ltd co corp bros llc plc dept univ assn jan feb mar apr jun jul aug sep sept oct "
    "nov dec mon tue tues wed thu thur thurs fri sat sun"
)
_STARTERS = _set(  # words that begin a sentence far more often than a name
    "a an the this that these those he she it we they you i his her its our their my your there here in on at by for "
    "from with after before when while as if but and or so yet then however although though because since what who "
    "why how where which some many most all not one two both each every another"
)


def sentences(text: str) -> list[str]:
    """The text's lines, or where it is a single line, its sentences; none of them empty, nothing but white space lost.

    In a tokenized text, where ` . ` stands alone, only a . ! ? that does so ends a sentence: `U.S. ` does not.
    Elsewhere the stops of Latin, Greek, Cyrillic, Arabic, Indic, Ethiopic, Chinese, Japanese and Korean text do, with
    the quotes and brackets that they close. A full stop does not after a title (`Dr.`), an initial (`J.`), a list's
    number or in a date (`2024. 5. 3.`); after `U.S.`, `Inc.`, `Jan.` and their like it does where the next word is one
    that begins sentences (`The`). Three dots do unless a small letter follows. 「」, 『』, （） and “” keep what is
    between them together where the stops are Chinese or Japanese.
    """
    text = text.strip()
    parts = text.split("\n")  # and at no other line break, as rouge-score has it
    if len(parts) == 1:
        parts = _STANDING_STOP.split(text) if _TOKENIZED(text) else list(_running(text))
    return [part.strip() for part in parts if part.strip()]


def _running(line: str) -> Iterator[str]:
    start, held = 0, _bracketed(line)
    for match in _CANDIDATE.finditer(line):
        ends = _spaced_ends if match.lastgroup == "spaced" else _wide_ends
        if ends(line, start, match, held):
            yield line[start : match.end()]
            start = match.end()
    yield line[start:]


def _bracketed(line: str) -> list[tuple[int, int]]:
    """The outermost closed brackets and quotations: where each opens and closes, in order."""
    found: list[tuple[int, int]] = []
    still_open: list[tuple[str, int]] = []
    for match in _BRACKET.finditer(line):
        mark, place = match.group(), match.start()
        if mark not in _OPENS:
            still_open.append((mark, place))
        elif still_open and still_open[-1][0] == _OPENS[mark]:
            _, opened = still_open.pop()
            while found and found[-1][0] > opened:
                found.pop()
            found.append((opened, place))
    return found


def _wide_ends(line: str, start: int, match: re.Match[str], held: list[tuple[int, int]]) -> bool:
    """Whether a stop that needs no white space after it ends a sentence."""
    around = bisect(held, (match.start(), 0)) - 1
    if around >= 0 and held[around][1] >= match.end():
        return False
    return not (match.group()[-1] in _CLOSERS and _GOES_ON(line, match.end()))


def _spaced_ends(line: str, start: int, match: re.Match[str], held: list[tuple[int, int]]) -> bool:
    """Whether a stop with white space after it ends a sentence."""
    mark, end = match.group().rstrip(), match.end()
    small = line[end].islower()  # the line is stripped: something follows
    if mark[-1] in _CLOSERS:
        return not (small and mark[-1] in _QUOTES) and not _GOES_ON(line, end)
    if "..." in mark or "…" in mark:
        return not small
    return mark != "." or not _abbreviates(line, start, match.start(), end)


def _abbreviates(line: str, start: int, stop: int, end: int) -> bool:
    """Whether the full stop at `stop` belongs to the word or number before it alone."""
    before = line[max(start, stop - 40) : stop]
    last = _LAST_WORD(before)
    if last is None:
        return False
    word = last.group()
    if _LIST_MARK(line[start:stop]) or (word.isdecimal() and _DAY(line, end)) or _DATE(before):
        return True
    following = _NEXT_WORD(line, end)
    return _is_abbreviation(word, following.group(1) if following else "")


def _is_abbreviation(word: str, following: str) -> bool:
    """Whether a word with a full stop goes on with the following one."""
    small = word.lower()
    if small in _NEVER_LAST:
        return True
    if small in _BEFORE_NUMBERS:
        return following[:1].isdecimal()
    named = word[0].isupper() and (len(word) == 1 or small in _OFTEN_LAST)
    if named or small in ("etc", "ph.d") or _DOTTED(word):
        return not (following[:1].isupper() and following.lower() in _STARTERS)
    return False
