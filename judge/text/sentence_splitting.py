"""Cut a text into sentences.

A regular expression finds the stops, and `_stop_ends` says which of them end a sentence.
"""

from __future__ import annotations

import re
from bisect import bisect

from judge.text.abbreviations import belongs_to_word, word_set
from judge.text.languages import BY_SCRIPT, LANGUAGES, Language

_TOKENIZED = re.compile(r"\s\.(\s|$)").search  # "It rained . We left ."
_STANDING_STOP = re.compile(r"(?<=\s[.!?])\s+")  # the space after " . "

_QUOTES = "\"'”’»›"
_CLOSERS = _QUOTES + "」』】》〉〕）］｝)\\]}"

# Stops that need no white space after them: 。！？
_WIDE = "".join(dict.fromkeys(mark for row in LANGUAGES.values() for mark in row.stops))


def _tight_stop(row: Language) -> str:
    """Return what ends a sentence between two letters of a script: 他来了.我走了, 갔다.그는."""
    stops = "[!?]" if row.spaced else "[.!?]"
    pattern = rf"(?<=[{row.letters}]){stops}+(?=[{row.letters}])"
    if row.final:
        pattern += rf"|(?<=[{row.final}])\.(?=[{row.letters}])"
    return pattern


_TIGHT = "|".join(_tight_stop(row) for row in BY_SCRIPT)
# French puts a space before the mark that closes a quotation: « Bonjour ! » dit-il. In »Halt!« it
# would be the opening.
_SPACED_CLOSER = r"[»›”](?=[\s.,;:!?…)\]]|\Z)"
_FRENCH_CLOSER = rf"[ \u00a0\u202f]{_SPACED_CLOSER}"
# Where a sentence may end: a run of stops, the quotes or brackets that close after it, and white
# space. The group that matches says which kind of stop it is:
_CANDIDATE = re.compile(
    # Chinese and Japanese, no white space needed: 。, ！」; but not the point of ３．５
    rf"(?P<wide>(?:[{_WIDE}]|．(?![0-9０-９]))[.!?{_WIDE}]*[{_CLOSERS}]*\s*)"
    # Indic, Urdu, Ethiopic, Burmese and Khmer, no white space needed: no word or number has them
    rf"|(?P<danda>[।॥۔።။។]+[{_CLOSERS}]*\s*)"
    # between two letters of Chinese, Japanese or Korean: 他来了.我走了
    rf"|(?P<tight>{_TIGHT})"
    # all others, which need white space: "Yes." He left. Possessive (`++`), so that a long run of
    # marks is read only once.
    r"|(?P<spaced>(?<![.!?…؟։‼⁇⁈⁉])[.!?…؟։‼⁇⁈⁉]++"
    rf"[{_CLOSERS}]*+(?:{_FRENCH_CLOSER})?+\s+(?!{_SPACED_CLOSER}))"
)
# The opening mark of each closing one: 」 has 「.
_OPENS = {
    closing: opening for row in LANGUAGES.values() for opening, closing in row.quotes
}
_MARKS_OF_QUOTES = "".join((*_OPENS.values(), *_OPENS))
# A mark that opens or closes: 「, ）, “.
_BRACKET = re.compile(f"[{_MARKS_OF_QUOTES}]")
_TOGETHER = "「『（"  # what keeps its sentences together, whatever the stops

# What continues a sentence after a quotation or bracket: a comma, Japanese particles, verbs of
# saying: 「はい。」と答えた, "네."라고 했다.
_GOES_ON = re.compile(
    "|".join(["[、，,]", *(row.goes_on for row in LANGUAGES.values() if row.goes_on)])
).match
# The particle after a name that ends in a stop: モーニング娘。が来日した, けいおん！の曲, 乙女。のように.
_NOUN = "々〆\u30a1-\u30fa\u30fc\u4e00-\u9fffA-Za-z0-9"
_PARTICLES = (
    "を|にも|には|への|との|からの",
    f"[のにはもへ](?=[{_NOUN}「『、])",
    f"[がとで](?=[{_NOUN}「『])",  # `が、` begins a sentence
    "の(?![ちんびぼど])(?=[ぁ-ん])",  # so do のち and のんびり
)
_ANY_PARTICLE = "|".join(_PARTICLES)
_PARTICLE = f"(?:{_ANY_PARTICLE})"
# The が of モーニング娘。が, and the の of けいおん！の.
_NAME_GOES_ON = re.compile(
    f"(?<=[{_NOUN}][。．｡]){_PARTICLE}|(?<=[！？!?]){_PARTICLE}"
).match

# The words and numbers before and after a full stop.
_LONGEST_BEFORE = 40  # characters before a stop; no abbreviation is longer
_LAST_WORD = re.compile(r"[^\s\"'“‘«(\[]+\Z").search  # the Dr of "(Dr"
_NEXT_WORD = re.compile(r"[\"'“‘«(\[]*([\w’']*)").match  # the It's of “It's
# 12, (b, iv
_LIST_MARK = re.compile(r"[(\[]?(?:\d{1,3}|[^\W\d_]|[ivxIVX]{1,4})").fullmatch
_DATE = re.compile(r"\d{4}\.\s?\d{1,2}\.\s?\d{1,2}\Z").search  # 2024. 5. 3
_DAY = re.compile(r"\d{1,2}\.").match  # the 5. of "3. 5. 2024"
# A German ordinal: am 3, der 2; not "I am 3".
_ORDINAL = re.compile(
    r"(?:^|[\s(])(?:(?<!\bI )am|im|vom|zum|zur|beim|ins|der|die|das|dem|den|des|bis|ab|seit)"
    r"\s\d{1,3}\Z",
    re.IGNORECASE,
).search
_DOTTED = re.compile(r"(?:[^\W\d_]{1,2}\.-?)+[^\W\d_]{1,2}").fullmatch  # U.S, J.-C
# z. B, p. ex, EE. UU
_SPACED = re.compile(r"(?:^|[\s(])(?:[^\W\d_]|[A-Z]{2})\. [^\W\d_]{1,2}\Z").search
_SHORT = re.compile(r"[^\W\d_]{1,2}\.").match  # B., UU.

# Abbreviations that a name, a number or another word always follows.
_NEVER_LAST = word_set(
    # titles
    "mr mrs ms messrs mx mme mlle sra srta dra dr prof sen rep gov pres gen lt col maj sgt cpl "
    "capt cmdr adm rev hon hr hrn frl mgr sig dott avv ud uds dhr mevr "
    # English, Spanish, French, Dutch, Danish: versus, compare, that is, approximately, for example
    "vs cf e.g i.e viz al approx aprox c.-à-d bijv f.eks "
    # German: respectively, for example, compare, possibly, including, plus, so-called, edited by
    "bzw bspw vgl evtl ggf inkl exkl zzgl sog bzgl insb hrsg"
)
_NEVER_LAST_SMALL = word_set("ca av env apr geb")  # CA and Apr. may end a sentence
# Abbreviations inside a sentence only before a number: No. 5, but "I said no."
_BEFORE_NUMBERS = word_set(
    "no nos vol vols pp p fig figs eq eqs sec ch art nr abs bd kap abb tab núm pág págs chap kl"
)
# What follows an ordinal: 3. Mai, 19. Jahrhundert. Months in German, Danish, Norwegian, Czech and
# Finnish, and the German words for century and world war.
_AFTER_ORDINALS = word_set(
    "januar jänner februar märz mai juni juli oktober dezember marts maj desember "
    "ledna února března dubna května června července srpna září října listopadu prosince "
    "tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta "
    "syyskuuta lokakuuta marraskuuta joulukuuta "
    "jahrhundert jahrhunderts weltkrieg"
)
# With a capital, these may be English words: "There were 3. April was warm."
_AFTER_ORDINALS_SMALL = word_set("mars april august september november december")
# Abbreviations, written with a capital, that end a sentence if one of the words below follows.
_OFTEN_LAST = word_set(
    "jr sr st mt ft ave blvd rd inc ltd co corp bros llc plc dept univ assn "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "mon tue tues wed thu thur thurs fri sat sun"
)
_GERMAN_OFTEN_LAST = word_set("mio mrd str usw jh")
# Words that begin a sentence far more often than a name.
_STARTERS = word_set(
    "a an the this that these those he she it we they you i his her its our their my your there "
    "here in on at by for from with after before when while as if but and or so yet then however "
    "although though because since what who why how where which some many most all not one two "
    "both each every another"
)
_STARTERS_AFTER_MIO = _STARTERS | word_set("der die das ein eine er sie es wir im am")
_STARTERS_AFTER_EE_UU = word_set(
    "el la los las un una en por para con no se su al este esta pero y como cuando"
)


def sentences(text: str) -> list[str]:
    """Return the text's lines or, if it is a single line, its sentences.

    None of them is empty, and nothing but white space is lost.

    - In a tokenized text, in which ` . ` stands alone, only a . ! ? that stands alone ends a
      sentence: `U.S. ` does not.
    - In other texts the stops of Latin, Greek, Cyrillic, Arabic, Indic, Ethiopic, Chinese, Japanese
      and Korean text end one, with the quotes and brackets that close after them.
    - A full stop ends none after a title (`Dr.`), an initial (`J.`) or a list's number, in a date
      (`2024. 5. 3.`, `am 3. Mai`) or an abbreviation of European languages (`z. B.`).
    - After `U.S.`, `Inc.`, `Jan.` and their like a full stop ends one if the next word is one that
      begins sentences (`The`).
    - Three dots end one unless a small letter follows.
    - 「」, 『』, （） and “” keep the text between them together if the stops are Chinese or Japanese.
    """
    text = text.strip()
    lines = text.split("\n")  # and at no other line break, as rouge-score has it
    if len(lines) > 1:
        parts = lines
    elif _TOKENIZED(text):
        parts = _STANDING_STOP.split(text)
    else:
        parts = _parts_after_stops(text)
    stripped = [part.strip() for part in parts]
    return [part for part in stripped if part]


def _parts_after_stops(line: str) -> list[str]:
    """Cut a stripped line after each stop that ends a sentence."""
    quoted = _quoted_spans(line)
    parts: list[str] = []
    start = 0
    for match in _CANDIDATE.finditer(line):
        if _stop_ends(line, start, match, quoted):
            parts.append(line[start : match.end()])
            start = match.end()
    parts.append(line[start:])
    return parts


def sentence_spans(whole: str) -> list[tuple[int, int]]:
    """Return where the sentences of each line start and end, without white space around."""
    spans: list[tuple[int, int]] = []
    end = 0
    for line in whole.split("\n"):
        for sentence in sentences(line):
            start = whole.index(sentence, end)
            end = start + len(sentence)
            spans.append((start, end))
    return spans


def _quoted_spans(line: str) -> list[tuple[int, int]]:
    """Return where the outermost closed brackets and quotations open and close, in order."""
    spans: list[tuple[int, int]] = []
    still_open: list[tuple[str, int]] = []
    for match in _BRACKET.finditer(line):
        mark = match.group()
        position = match.start()
        if mark not in _OPENS:
            still_open.append((mark, position))
        elif still_open and still_open[-1][0] == _OPENS[mark]:
            _, start = still_open.pop()
            # Only the outermost spans count: drop those inside this one.
            while spans and spans[-1][0] > start:
                spans.pop()
            spans.append((start, position))
    return spans


def _stop_ends(
    line: str, start: int, match: re.Match[str], quoted: list[tuple[int, int]]
) -> bool:
    """Return whether the stops that `_CANDIDATE` matched end the sentence that begins at `start`.

    `quoted` are the spans of quotations and brackets (`_quoted_spans`).
    """
    opening = _opening_around(line, match, quoted)
    if match.lastgroup == "spaced":
        # （p. 3） stays in its sentence; of two sentences in “”, each is one.
        is_together = opening != "" and opening in _TOGETHER
        return not is_together and _spaced_stop_ends(line, start, match)
    stops = match.group().rstrip()
    closes_quotation = stops[-1] in _CLOSERS
    quotation_goes_on = closes_quotation and _GOES_ON(line, match.end())
    name_goes_on = _NAME_GOES_ON(line, match.end())
    return not (opening or quotation_goes_on or name_goes_on)


def _spaced_stop_ends(line: str, start: int, match: re.Match[str]) -> bool:
    """Return whether stops with white space after them end the sentence that begins at `start`."""
    stops = match.group().rstrip()
    last_mark = stops[-1]
    next_start = match.end()
    # The line is stripped, so something follows the white space.
    small_follows = line[next_start].islower()
    if last_mark in _CLOSERS:
        # "Stop!" he said.
        quotation_goes_on = small_follows and last_mark in _QUOTES
        return not quotation_goes_on and not _GOES_ON(line, next_start)
    if "..." in stops or "…" in stops:
        return not small_follows
    return stops != "." or not _belongs_to_word(line, start, match.start(), next_start)


def _opening_around(
    line: str, match: re.Match[str], quoted: list[tuple[int, int]]
) -> str:
    """Return the mark that opens the quotation or bracket around a stop, "" if none is."""
    index = bisect(quoted, (match.start(), 0)) - 1
    if index < 0:
        return ""
    opening, closing = quoted[index]
    return line[opening] if match.end() <= closing else ""


def _belongs_to_word(line: str, start: int, stop: int, next_start: int) -> bool:
    """Return whether the full stop at `stop` belongs to the word or number before it.

    Such a stop ends no sentence. The sentence begins at `start`, the next word at `next_start`.
    """
    before = line[max(start, stop - _LONGEST_BEFORE) : stop]
    last_word = _LAST_WORD(before)
    if last_word is None:
        return False
    word = last_word.group()
    if _LIST_MARK(line[start:stop]) or _DATE(before):
        return True
    next_word = _NEXT_WORD(line, next_start)
    following = next_word.group(1) if next_word else ""
    if word.isdecimal():
        is_day_of_date = _DAY(line, next_start) is not None  # the 3 of 3. 5. 2024
        return is_day_of_date or _is_ordinal(word, before, following)
    is_short = len(word) == 1 or _is_two_capitals(word)
    if is_short and _SHORT(line, next_start):
        return True  # the first stop of z. B., J. R., EE. UU.
    return _is_abbreviation(word, before, following)


def _is_abbreviation(word: str, before: str, following: str) -> bool:
    """Return whether a word with a full stop is an abbreviation inside a sentence.

    `before` ends in the word, and `following` is the next word.
    """
    if _is_never_last(word):
        return True
    lower = word.lower()
    spaced = _SPACED(before)
    if lower in _BEFORE_NUMBERS and not spaced:
        return following[:1].isdecimal()
    in_other_language = belongs_to_word(word, before, following)
    if in_other_language is not None:
        return in_other_language
    if lower in _GERMAN_OFTEN_LAST:
        starters = _STARTERS_AFTER_MIO
    elif spaced or _is_often_last(word):
        starters = _STARTERS_AFTER_EE_UU if _is_two_capitals(word) else _STARTERS
    else:
        return False
    starts_sentence = following[:1].isupper() and following.lower() in starters
    return not starts_sentence


def _is_two_capitals(word: str) -> bool:
    return len(word) == 2 and word.isupper()


def _is_ordinal(number: str, before: str, following: str) -> bool:
    """Return whether a number with a full stop is an ordinal: am 3. Mai, 19. Jahrhundert."""
    if _ORDINAL(before):
        return True
    if len(number) > 2:
        return False
    return following in _AFTER_ORDINALS_SMALL or following.lower() in _AFTER_ORDINALS


def _is_never_last(word: str) -> bool:
    """Return whether a word is an abbreviation that ends no sentence: Dr., vs., MM."""
    if word == "maj":
        # Danish for May. Only with a capital it is a title: Maj. Smith
        return False
    if word.lower() in _NEVER_LAST:
        return True
    return word in _NEVER_LAST_SMALL or word == "MM"


def _is_often_last(word: str) -> bool:
    """Return whether a word is an abbreviation that may end a sentence: J., Inc., etc., U.S."""
    lower = word.lower()
    if word[0].isupper() and (len(word) == 1 or lower in _OFTEN_LAST):
        return True
    return lower in ("etc", "ph.d") or _DOTTED(word) is not None
