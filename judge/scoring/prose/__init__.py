"""Find the score of a plain reply that is not in the requested form: "So it gets a 4.",
"评分：4分，因为…", "★★★★☆".

A reply is cut into sentences, with all that it quotes left out. Each sentence may name a score
(`forms`) or assert one (`english`, `korean`, `japanese`, `chinese`); the first or last may be
nothing but the score. The reply has a score if all of these agree on one. What is not on the closed
lists of these modules gives no score, but takes none away either: a reply "Score: 3. With better
links, I would give it a 5." has the score 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from judge.core.errors import ParseError
from judge.core.label_spellings import LabelIndex, fold
from judge.scoring.prose import chinese, english, japanese, korean
from judge.scoring.prose.forms import Forms, forms, table_cells
from judge.scoring.prose.language import Reader, reader
from judge.scoring.prose.masks import mask_quotations

LONGEST = 20_000
"""Most characters of a reply that is read in prose, which takes time for every sentence."""
LONGEST_SENTENCE = 1_000
"""Most characters of a sentence that is read: finding what leads up to a score takes time for all
of them."""
MOST_SENTENCES = 300
"""Most sentences of a reply that may have a number."""
Place = Literal["named", "asserted", "opening", "alone", "mentioned"]
"""Beside its name, in a sentence that asserts it, at the beginning of the reply, alone, or in a
form that goes on."""

_LANGUAGES = (english, korean, japanese, chinese)
_LETTERS = {
    english.__name__: re.compile("[A-Za-z]|[0-9] *[.!)]"),
    korean.__name__: re.compile("[가-힣]"),
    japanese.__name__: re.compile("[ぁ-んァ-ヶ一-龥]"),
    chinese.__name__: re.compile("[一-龥]"),
}
_reader = lru_cache(maxsize=16_384)(reader)  # compiling takes longer than reading
_SENTENCE_END = re.compile(
    r"""(?:(?<=\w\w\w)(?<!approx)(?<!etc)(?<!fig)(?<!vol)(?<!min)(?<!max)(?<!sec)|(?<=[0-9)\]”"’'*_\ufffc☆★])|(?<=\b[A-Z]))
        [.!?]["'”’)\]*_\ufffc]*+\s++
    |[。！？][”」』）]*+\s*+|(?<![^\S\r\n])[^\S\r\n]*+[\r\n]\s*+""",
    re.IGNORECASE | re.VERBOSE,
)
_EMPHASIS = re.compile(r"\*|(?<!\w)_+|_+(?!\w)")
_TOKEN = re.compile(r"[0-9]++(?:\.[0-9]++)?|[^\W\d_]++")
_NUMBER = re.compile(
    r"(?<![\w.,/:-])[0-9]++(?:\.[0-9]++)?(?![\w%/-]|[.,:][0-9])(?P<counts>\s++(?!(?:or|out|of|to|and|points?|stars?|would|is|if|on|at|as|in|for)\b)[^\W\d_]{3,})?",
    re.ASCII | re.IGNORECASE,
)
_ABOVE = re.compile(
    r"\b(?:scale|range) (?:of|from) [0-9]+ ?(?:to|-|–) ?[0-9]+|\b[0-9]+ ?(?:to|-|–) ?[0-9]+ scale"
)
_LIST = re.compile(r"\s*+(?:[0-9]+|[a-z])[.)]\s", re.IGNORECASE)
# After such a sentence, the next one goes on with what is only thought of.
_SUPPOSES = re.compile(
    r"\b(?:suppos(?:e|ing)|imagin(?:e|ing)|assum(?:e|ing)|hypothetical\w*|what\s+if|picture)\b"
    r"|가정해|상상해|만약|もし|仮に|としましょう|假设|假設|假如|设想",
    re.IGNORECASE,
)
# After these words a judge may give another score, in whatever form.
_TAKEN_BACK = re.compile(
    r"\b(?:wait|scratch\s+that|on\s+(?:second\s+thought|reflection)|correction"
    r"|i\s+(?:take\s+(?:that|it)\s+back|was\s+wrong|made\s+a\s+mistake|misread"
    r"|changed?\s+my\s+mind|meant|retract|withdraw|revise|reconsider)"
    r"|just\s+kidding|actually,?\s+(?:no|it|i|that)|no,\s+(?:that|it|i|actually)|never\s*mind"
    r"|ignore\s+that|disregard|that(?:['’]s|\s+is)\s+(?:wrong|too\s+(?:high|low|generous"
    r"|harsh)))\b"
    r"|(?:^|[.!?\n]\s*)no,\s"
    r"|아니,|잠깐|다시\s*생각|정정|취소|いや、|いいえ、|待って|訂正|やはり|やっぱり|撤回|不对"
    r"|不對|等等|更正|收回|重新考虑|重新考慮|说错|說錯",
    re.IGNORECASE,
)


class NoScore(ParseError):
    """Nothing in the reply gives a score."""


@dataclass(frozen=True, slots=True)
class Patterns:
    """All that is looked for in a reply, for one scale and title."""

    forms: Forms
    value: re.Pattern[str]
    title: re.Pattern[str]
    names: LabelIndex
    score: str
    title_words: str
    pair: bool
    words: bool

    def readers(self, text: str, *, edge: bool) -> Iterator[Reader]:
        """Yield the readers of the languages whose letters a sentence has; those of labels only at
        an `edge`."""
        for language in _LANGUAGES:
            if _LETTERS[language.__name__].search(text):
                for grammar in language.GRAMMARS:
                    yield _reader(grammar, self.score, self.title_words)
        if self.pair:
            yield _reader(english.PREFERENCE, self.score, self.title_words)
        if self.words and edge:
            yield _reader(english.IS_LABEL, self.score, self.title_words)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A score at `start` of folded text; `match` has it in the group `value`, with the ends of the
    scale beside it."""

    match: re.Match[str]
    start: int
    end: int
    place: Place
    sentence: int

    @property
    def written(self) -> str:
        return self.match["value"]


def patterns(
    score: str, mark: str, title: str, names: LabelIndex, *, pair: bool, words: bool
) -> Patterns:
    """Return the patterns of a `score` with its unit and scale, of the marks around it and of the
    criterion's title.

    `pair`: the labels are two texts. `words`: the labels are words.
    """
    return Patterns(
        forms=forms(score, mark, title),
        value=re.compile(score, re.IGNORECASE),
        title=re.compile(title, re.IGNORECASE),
        names=names,
        score=score,
        title_words=title,
        pair=pair,
        words=words,
    )


def find_score(text: str, parts: Patterns, judged: str, *, words_may_open: bool) -> Candidate:
    """Return the only score of a folded reply; it may be off the scale.

    `words_may_open`: the reply may open with a label that is a sentence ("Good. It is short.").
    Raises ParseError if there is no score, or two, or if the `judged` texts cast doubt on it.
    """
    if len(text) > LONGEST:
        raise ParseError(f"no score in {len(text)} characters is looked for", text)
    found = list(candidates(text, parts, words_may_open=words_may_open))
    labels = {parts.names.label(item.written) or item.written for item in found}
    given = [item for item in found if item.place != "mentioned"]
    if len(labels) > 1:
        raise ParseError("two different scores", text)
    if not given:
        raise NoScore("no score", text)
    chosen = min(
        given, key=lambda item: ("named", "asserted", "opening", "alone").index(item.place)
    )
    if _TAKEN_BACK.search(_unquoted(text), chosen.end):
        raise ParseError("a score that is taken back", text)
    _check_own(text, chosen, given, parts, fold(judged))
    return chosen


def candidates(text: str, parts: Patterns, *, words_may_open: bool = True) -> Iterator[Candidate]:
    """Yield all that gives a score in folded text."""
    plain = _unquoted(text)
    spans = sentences(plain)
    is_list = sum(
        1 for start, _ in spans if _LIST.match(plain, start) and _begins_line(plain, start)
    )
    numbers = 0
    several_lines = "\n" in plain.strip()
    for number, (start, end) in enumerate(spans):
        sentence = plain[start:end].rstrip()
        if len(sentence) > LONGEST_SENTENCE or not parts.value.search(sentence):
            continue
        numbers += 1
        if numbers > MOST_SENTENCES:
            raise ParseError("too many sentences with a number", text)
        edge = number in (0, len(spans) - 1) or _is_line(plain, start, end)
        supposed = number > 0 and _SUPPOSES.search(plain, *spans[number - 1]) is not None
        matches = list(_in_sentence(sentence, parts, edge=edge, supposed=supposed))
        if edge and not matches:
            listed = _LIST.match(plain, start) and (is_list > 1 or several_lines) and number == 0
            if alone := parts.forms.bare.match(sentence):
                if not listed and (number in (0, len(spans) - 1)):
                    matches = [(alone, "alone" if number else "opening")]
            elif number == 0 and not listed and (opening := parts.forms.opening.match(sentence)):
                wordy = parts.names.label(opening["value"]) not in parts.names.numbers.values()
                doubtful = _DOUBTS.search(parts.title.sub("", sentence[opening.end() :]))
                ended = sentence[opening.end("value") : opening.end("value") + 1] in (
                    "",
                    ".",
                    "!",
                    "。",
                    ":",
                )
                if (
                    (words_may_open or not wordy or not ended)
                    and not doubtful
                    and not _mentions_another(sentence, opening, parts)
                ):
                    matches = [(opening, "opening")]
        for match, place in matches:
            if _is_label(match["value"], parts.names):
                yield Candidate(
                    match, start + match.start("value"), start + match.end("value"), place, number
                )
    for pattern in parts.forms.tags:
        for match in pattern.finditer(plain):
            if _is_label(match["value"], parts.names):
                yield Candidate(match, match.start("value"), match.end("value"), "asserted", -1)
    for match in table_cells(plain, parts.forms):
        yield Candidate(match, match.start("value"), match.end("value"), "named", -1)


def _in_sentence(
    sentence: str, parts: Patterns, *, edge: bool, supposed: bool
) -> Iterator[tuple[re.Match[str], Place]]:
    """Yield what names or asserts a score in one sentence."""
    if named := parts.forms.named.match(sentence):
        doubtful = _DOUBTS.search(parts.title.sub("", sentence[named.end() :]))
        if not doubtful and not _mentions_another(sentence, named, parts):
            yield named, "named"
        else:
            yield named, "mentioned"
        return
    if loose := parts.forms.loosely_named.match(sentence):
        yield loose, "mentioned"
    for form in parts.readers(sentence, edge=edge):
        for match in () if supposed else form.assertions(sentence, parts.names.ends_are):
            if not _mentions_another(sentence, match, parts):
                yield match, "asserted"


_DOUBTS = re.compile(
    "|".join(language.DOUBT_AFTER.replace("TITLE", "(?!)") for language in _LANGUAGES),
    re.IGNORECASE,
)
"""What makes a reason behind a named score doubtful, in any language."""


def _mentions_another(sentence: str, match: re.Match[str], parts: Patterns) -> bool:
    """Return whether a number behind a score may be another score: not in "4, because it has 2
    errors"."""
    rest = _ABOVE.sub("", sentence[match.end() :])
    label = parts.names.label(match["value"])
    for number in _NUMBER.finditer(rest):
        if not number["counts"] and parts.names.label(number[0]) not in (None, label):
            return True
    if _OR.match(sentence, match.end("value")):
        return True
    return bool(_OR_BEFORE.search(sentence[: match.start("value")]))


_OR = re.compile(
    r"\W*[점点分]?\s*(?:이나|또는|혹은|か|または|或者?|や|~|から|에서|or|to)\s*(?:an?\s+)?(?:[0-9]|one|two|three|four|five|six|seven|eight|nine|ten)",
    re.IGNORECASE,
)


_OR_BEFORE = re.compile(
    r"(?:[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten))\W*[점点分點]?\s*(?:이나|나|또는|혹은|か|または|或者?|还是|還是|や|~|から|에서|or|to)\s*(?:an?\s*)?\Z",
    re.IGNORECASE,
)


def _is_label(written: str, names: LabelIndex) -> bool:
    """Return whether a letter is a label and not an article: it is written as in the scale."""
    return (
        len(written) > 1
        or not written.isalpha()
        or names.labels.get(names.key(written), written) == written
    )


def _is_line(text: str, start: int, end: int) -> bool:
    """Return whether a sentence is a whole line."""
    return _begins_line(text, start) and (end == len(text) or "\n" in text[start:end])


def _begins_line(text: str, start: int) -> bool:
    """Return whether nothing but blanks stands before a place in its line."""
    return not text[text.rfind("\n", 0, start) + 1 : start].strip(" ")


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of folded text."""
    ends = [end.end() for end in _SENTENCE_END.finditer(text)]
    return [
        (a, b) for a, b in zip([0, *ends], [*ends, len(text)], strict=True) if text[a:b].strip()
    ]


# What stands before a number if a text gives itself a score, in whatever way.
_GIVES = re.compile(
    r"(?:\b(?:scores?|ratings?|grade|mark|verdict|answer|winner)\b|\b(?:give[sn]?|giving|rate[sd]?"
    r"|graded?|assign(?:s|ed)?|award(?:s|ed)?|gets?|receives?|receiving|earns?|earning"
    r"|deserves?|deserving|merits?|warrants?)\b"
    r"|점수|[총평별]점|평가|スコア|点数|[得評]点|評価|採点|得分|[总總]分|评分|評分|分数|分數|打分"
    r"|Bewertung|puntuaci[óo]n|calificaci[óo]n|оценка|คะแนน)"
    r"(?:[\s*_:=–\"'“”`(\[-]|\b(?:it|its|this|that|the|an?|my|summary|text|response|answer|of"
    r"|as|at|with|is|be|to|for|score|rating|grade|full|perfect|solid|only|just|therefore|결과"
    r"|는|은|를|로|이|는|は|を|が|に|为|為|是|它|其|我|这篇|摘要)\b"
    r"|[는은를로이は를を가が为為是它其给給打评])*+\Z",
    re.IGNORECASE,
)
_GIVES_CJK = re.compile(r"[给給打评評得][^\s。.,，]{0,6}\Z")


def gives(judged: str, label: str, parts: Patterns, *, fractions: bool = False) -> bool:
    """Return whether a judged text seems to give itself a label as its score; `fractions`: also in
    "4/5" and "4점"."""
    judged = fold(judged)
    for item in parts.value.finditer(judged):
        if parts.names.label(item["value"]) != label or not _is_label(item["value"], parts.names):
            continue
        before = judged[max(0, item.start() - 60) : item.start()]
        if fractions and (
            any(item[name] for name in _WHOLE) or re.search(r"[점点分]\s*\Z", item[0])
        ):
            return True
        if (
            re.search(r"\[\[|boxed\{|<\w*(?:score|answer|rating)>\s*\Z", before[-30:])
            or _GIVES.search(before)
            or _GIVES_CJK.search(before)
        ):
            return True
    return False


_WHOLE = ("out_of", "full", "out_of_value", "full_value")
"""The groups of the scale's top beside a value."""


def repeats(reply: str, judged: str) -> bool:
    """Return whether a reply ends with words, and a score among them, that the judged texts contain
    in that order."""
    words, ending = (
        " ".join(["", *_TOKEN.findall(fold(text).casefold()), ""]) for text in (judged, reply)
    )
    last = ending.split()[-5:]
    return words == ending or (len(last) == 5 and f" {' '.join(last)} " in words)


def _begins_like(reply: str, judged: str) -> bool:
    """Return whether the first words of a reply stand in the judged texts in that order."""
    words, beginning = (
        " ".join(["", *_TOKEN.findall(text.casefold()), ""]) for text in (judged, reply[:400])
    )
    first = beginning.split()[:6]
    return len(first) > 1 and f" {' '.join(first)} " in words


def _unquoted(text: str) -> str:
    return _EMPHASIS.sub(lambda marks: " " * len(marks[0]), mask_quotations(text))


_SENTENCE_MARKS = tuple('*_.!?。！？)]"”」』`')
"""What the words before a score end with if the score is not their continuation."""


def _check_own(
    text: str, chosen: Candidate, given: Sequence[Candidate], parts: Patterns, judged: str
) -> None:
    """Raise ParseError if a score may be repeated from the judged texts."""
    label = parts.names.label(chosen.written)
    trouble = ParseError("a score that the judged text contains as well", text)
    if (
        len(given) == 1
        and chosen.place in ("opening", "alone")
        and not text[chosen.end :].strip(" \t\r\n*_.,;!()[]{}$。！")
        and not re.search(r"\w", text[: chosen.start])
    ):
        return  # nothing but the score
    if chosen.place == "opening":
        if _begins_like(text, judged):
            raise trouble
        return
    if chosen.place == "alone":
        # "The text ends with\n5" goes on with a number of the text. Which of the scale's numbers it
        # is makes no difference: if draws were refused by their label, the mean would be of a
        # selection.
        before = text[: chosen.start].rstrip(" \t*_(")
        goes_on = before.rstrip()[-1:] not in _SENTENCE_MARKS and not before.endswith("\n\n")
        if goes_on and any(
            parts.names.label(item["value"]) is not None for item in parts.value.finditer(judged)
        ):
            raise trouble
        if repeats(text[max(0, chosen.start - 200) : chosen.end], judged):
            raise trouble
        return
    if label is not None and gives(judged, label, parts, fractions=chosen.place != "named"):
        line_before = text[: chosen.start].rpartition("\n")[0].rstrip()
        set_apart = chosen.place == "named" and line_before[-1:] in _SENTENCE_MARKS
        if not set_apart or repeats(text[max(0, chosen.start - 200) : chosen.end], judged):
            raise trouble
