"""Find the score of a plain reply that is not in the requested form.

"So it gets a 4.", "评分：4分，因为…", "★★★★☆". `find_score` reads a folded reply in these steps:

1. `masks` blanks what the reply quotes. `stars`, `percents` and `tick_marks` blank what only
   repeats the score.
2. `sentences` cuts the rest into sentences.
3. Each sentence may name a score ("Score: 4", see `forms`) or assert one ("I give it a 4."). The
   grammars of `english`, `korean`, `japanese` and `chinese` say how, and `language` applies them.
   Only the first or last sentence, or a whole line, may be nothing but the score ("4").
4. A sentence gives no score if it is in doubt ("4, if the date is right": a grammar's `doubt`
   before the score, `reasons` behind it) or has another number ("4 or 5": `other_numbers`).
5. The scores of all sentences must agree. The reply must not take its score back, nor repeat it
   from a judged text (`echoes`).

Words that are not on the closed lists of these modules give no score, but take none away either:
the reply "Score: 3. With better links, I would give it a 5." has the score 3. To have one more
phrase read, add it to the list whose example is most like it, and to tests/scoring/replies:

- the name of a score ("Punktzahl: 4") to `forms.NOUNS`,
- words of a sentence ("4점을 매깁니다") to a list of the language; its module says which one,
- words that take a score back, or make it doubtful, to `reasons`, in other languages than the four
  to `other_languages`, and in a sentence of its own ("Wait, …") to `_TAKEN_BACK` below.

See docs/decisions/0054-a-reply-is-read-only-if-it-is-plain.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.core.errors import ParseError
from judge.core.label_spellings import fold
from judge.scoring.prose import english, reasons
from judge.scoring.prose.echoes import check_own, gives, repeats
from judge.scoring.prose.forms import Forms, table_cells
from judge.scoring.prose.masks import mask_quotations
from judge.scoring.prose.other_numbers import ends_with_or, without_scale
from judge.scoring.prose.patterns import (
    NO_WORDS,
    Candidate,
    Evidence,
    Patterns,
    compile_patterns,
)
from judge.scoring.prose.percents import blank_repeated_percent
from judge.scoring.prose.stars import blank_repeated_stars
from judge.scoring.prose.tick_marks import blank_tick_mark

__all__ = [
    "LONGEST",
    "Candidate",
    "NoScore",
    "Patterns",
    "candidates",
    "compile_patterns",
    "find_score",
    "gives",
    "repeats",
    "takes_back",
]

LONGEST = 20_000
"""Most characters of a reply that is read in prose, which takes time for every sentence."""
LONGEST_SENTENCE = 1_000
"""Most characters of a sentence that is read: finding what leads up to a score takes time for all
of them."""
MOST_SENTENCES = 300
"""Most sentences of a reply that may have a number."""
_BEST_EVIDENCE = ("named", "asserted", "opening", "alone")

# Where a sentence ends
_SENTENCE_END = re.compile(
    r"""(?:
        # The stop after a word of three letters that is no abbreviation
        (?<=\w\w\w)(?<!approx)(?<!etc)(?<!fig)(?<!vol)(?<!min)(?<!max)(?<!sec)
        (?<!\best)(?<!\bavg)(?<!\bbijv)(?<!\bbspw)(?<!\bнапр)
        # Two Korean syllables, a number or closing mark, "4점"
        |(?<=[가-힣][가-힣])|(?<=[0-9)\]}”"’'*_\ufffc☆★])|(?<=[0-9][점点分])
        # One capital letter: "Text A."
        |(?<=\b[A-Z])(?<!\be\.g)(?<!\bz\.B))
        [.!?]["'”’)\]*_\ufffc]*+\s++
    # An East Asian stop
    |[。！？][”」』）]*+\s*+
    # A line break
    |(?<![^\S\r\n])[^\S\r\n]*+[\r\n]\s*+""",
    re.IGNORECASE | re.VERBOSE,
)
# **4**, _4_, <b>4</b>, $4$, \\(4\\), but not the _ in "user_id"
_EMPHASIS = re.compile(
    r"\*|(?<!\w)_+|_+(?!\w)|</?(?:b|i|u|em|strong)>"
    r"|\$(?=[^\s$][^$\n]{0,40}\$)|(?<=\S)\$(?!\w)|\\[()]"
    # Emoji, but not the stars of a rating: "🎯 Score: 4 👍"
    r"|[\U0001f300-\U0001f31e\U0001f320-\U0001f64f\U0001f680-\U0001f6aa\U0001f900-\U0001faff➡]"
)
# "1. ", "b) ", "2、"
_LIST = re.compile(r"\s*+(?:[0-9]+|[a-z])(?:[.)]\s|、)", re.IGNORECASE)
# "1.", "b)"
_NUMBERED = re.compile(r"\s*+(?:[0-9]+|[a-z])[.)]\s*+", re.IGNORECASE)
_BUT = re.compile(
    r"\W*(?:and|but|however|though|although|ただし|しかし|하지만|그러나|但是?)",
    re.IGNORECASE,
)
# "but" right after a label, perhaps with its verb: "適合ですが、不適合です。", "적합하지만 부적합합니다."
_BUT_AFTER_LABEL = re.compile(
    r"(?:です|だ|である|でした|します|しました|してい(?:る|ます))が"
    r"|(?:です|だ|である|する|します|してい(?:る|ます))?(?:けれども?|けど|ものの)"
    r"|(?:이|하)지만|(?:입|합)니다만|(?:인|한)데|이나\b"
)
# "Tie, but A is better.", "差不多，但A更好"
_TURNS_TO_A_TEXT = re.compile(
    r"(?:\b(?i:but|however|although|though|yet|or)\b|ただし|しかし|하지만|그러나|지만|다만|但|不过|不過)"
    r"[^.!?。\n]*?(?<![A-Za-z])[A-Z](?![A-Za-z])"
)
# The letter of a text in a pair, also right beside East Asian letters
_CAPITAL = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z])")
_LAST_WORD = re.compile(r"\w+\Z")
# What stands around a label that is described: "\n**B**: clear"
_ENTRY_START = re.compile(r"[\n.;,。、，；][\s*_(\[]*\Z")
_ENTRY_END = re.compile(r"[ *_)\]]*(?:[:=]| [-–—]+ )")
# The same around a number: "\n2, clear", "; 2、clear"
_NUMBER_START = re.compile(r"[\n.;。；][\s*_(\[]*\Z")
_NUMBER_END = re.compile(r"[ *_)\]]*[,;、]")
# "4, five" and "4, five or so", but not the count of "4, five names"
_NO_COUNT = re.compile(
    r"\s*+(?:\Z|[^\w\s]|(?:or|out|of|to|and|would|is|if|on|at|as|in|for)\b)",
    re.IGNORECASE,
)
# "lowered to three", "now two points": another score in words, but not "two errors", "two of them"
_NO_COUNT_INSIDE = re.compile(
    r"\s*+(?:\Z|[^\w\s-]|(?:or|out|for|instead|now)\b)", re.IGNORECASE
)
# "ten" in "often", "n" in "clean"
_ENDS_WORD = re.compile(r"(?<=[^\W\d_])[a-z]", re.IGNORECASE)
# These may also be a pronoun or mean a little: "a good one", "有一点长".
_ONE = ("one", "一", "한")
# ": no." after a label that is a word: "Faithful: no."
_DENIED = re.compile(
    r"\s*+[:=–—-]\s*+(?:no|nope|false|never|not\s+(?:really|at\s+all|quite)|0|いいえ|아니[오요]|否|不是?)"
    r"(?:\s*+\Z|\s*+[.,;!。、，])",
    re.IGNORECASE,
)
# After such a sentence, the next one is still about what the judge only imagines: "Suppose it had a
# title. Then I would give it a 5."
_SUPPOSES = re.compile(
    r"\b(?:suppos(?:e|ing)|imagin(?:e|ing)|assum(?:e|ing)|hypothetical\w*|what\s+if|picture)\b"
    r"|가정해|상상해|만약|もし|仮に|としましょう|假设|假設|假如|设想",
    re.IGNORECASE,
)
# After these words a judge may give another score, in whatever form. They begin a sentence, because
# a reason may have them, too: "Passengers had to wait.", "地点等等".
_TAKEN_BACK = re.compile(
    r"(?:\A|[.!?…;:\n。！？(—–])\W{0,4}"
    r"(?:(?:hmm+|oops|oh|sorry|but|well|no|ok(?:ay)?)\W{1,4}){0,3}"
    r"(?:wait\b(?!\s+(?:times?|lists?|for)\b)|scratch\s+that|on\s+(?:second\s+thought|reflection)"
    r"|(?:correction|edit(?:ed)?|updated?)\s*[:,—–-]|just\s+kidding|never\s*mind\b(?!\s+the)"
    r"|ignore\s+that|disregard\s+(?:that|my)"
    r"|no[,:]\s+(?:it|that|this|i|make|wait|actually|an?|[0-9]"
    r"|(?:the|my)\s+(?:score|rating|grade))\b"
    r"|actually,?\s+(?:no|i|that)\b"
    r"|actually,?\s+(?:it\s+(?:should|deserves|is)\s+)?(?:be\s+)?(?:an?\s+)?"
    r"[0-9](?:/[0-9]+)?\s*(?:[.!]|\Z)"
    r"|that(?:['’]s|\s+is)\s+too\s+(?:high|low|generous|harsh)(?!\s+\w)"
    r"|아니(?:요|오)?,|잠깐[,.!…만]|(?:정정|수정)(?:합니다|하자면|[:,])|취소(?:합니다|할게요)|다시\s*생각(?:해\s*보|하)니"
    r"|いや、|いいえ、[0-9]|待って|訂正(?:します|[:、])|撤回します|や(?:は|っぱ)り(?:[0-9]|、)"
    r"|不[对對][,，。!]|等等[,，]|我?(?:要|想)?(?:更正|收回|重新考[虑慮]|[说說]错))"
    # "4\nor 5"
    r"|\A[점点分]?[\s.,、，]*+(?:or\b|또는|혹은|或者?|または|あるいは)"
    # "4\nto 5", but not "4\nTo 2 readers it seemed odd."
    r"|\A[점点分]?\s*+(?:to\s|through\s|에서|부터|から|[至到~〜])\s*+[0-9]++(?!\s++[^\W\d_]{3})"
    r"|\bi\s+(?:take\s+(?:that|it)\s+back|was\s+wrong|made\s+a\s+mistake|misread"
    r"|changed?\s+my\s+mind|meant|retract|withdraw|revise|reconsider)\b",
    re.IGNORECASE,
)

_ANOTHER_QUALITY = english.FOR_ANOTHER_QUALITY.replace("TITLE", "(?!)")
_DOUBTS = re.compile(
    rf"{reasons.DOUBT}|{_ANOTHER_QUALITY}|\A\W*{english.WITH_CHANGES}", re.IGNORECASE
)
"""What makes a reason behind a score doubtful, in any language."""
_DOUBTS_OF_ANSWERS = re.compile(reasons.DOUBT_OF_ANSWER, re.IGNORECASE)
"""The same behind a yes or no."""
_MARKS_BETWEEN = f"{NO_WORDS}:|-–—、，；"
_FULL_STOPS = ("", ".", "!", "。", ":")


class NoScore(ParseError):
    """Nothing in the reply gives a score."""


def find_score(
    text: str, patterns: Patterns, judged: str, *, words_may_open: bool
) -> Candidate:
    """Return the only score of a folded reply; it may be off the scale.

    `words_may_open`: the reply may open with a label that is a sentence ("Good. It is short.").
    Raises ParseError if there is no score, or two, or if the `judged` texts cast doubt on it.
    """
    if len(text) > LONGEST:
        message = f"a reply of {len(text):,} characters is too long to read a score from a sentence"
        raise ParseError(message, text)
    mentions = list(candidates(text, patterns, words_may_open=words_may_open))
    labels: set[str] = set()
    for mention in mentions:
        labels.add(patterns.label_of(mention.match) or mention.written)
    scores = [mention for mention in mentions if mention.evidence != "mentioned"]
    if len(labels) > 1:
        raise ParseError("two different scores", text)
    if not scores:
        raise NoScore("no score", text)
    best = min(scores, key=lambda score: _BEST_EVIDENCE.index(score.evidence))
    is_tie = patterns.is_pair and patterns.label_of(best.match) not in ("A", "B")
    if is_tie and _TURNS_TO_A_TEXT.search(text, best.end):
        raise ParseError("two different scores", text)
    if best.evidence == "alone" and ends_with_or(text[: best.start]):
        raise ParseError("two different scores", text)
    if takes_back(text[best.end :]):
        raise ParseError("the reply withdraws its score", text)
    check_own(text, best, patterns, fold(judged), is_only=len(scores) == 1)
    return best


def candidates(
    text: str,
    patterns: Patterns,
    *,
    words_may_open: bool = True,
) -> Iterator[Candidate]:
    """Yield everything that gives a score in folded text."""
    plain = blank_repeated_stars(_unquoted(text))
    plain = blank_repeated_percent(plain)
    plain = blank_tick_mark(plain, patterns.spellings)
    reply = _Reply(plain, sentences(plain), words_may_open)
    with_number = 0
    for number, (start, end) in enumerate(reply.spans):
        sentence = plain[start:end].rstrip()
        if len(sentence) > LONGEST_SENTENCE or not patterns.value.search(sentence):
            continue
        with_number += 1
        if with_number > MOST_SENTENCES:
            raise ParseError("too many sentences with a number", text)
        for match, evidence in _read_sentence(sentence, number, reply, patterns):
            if patterns.is_label(match["value"]):
                value_start, value_end = match.span("value")
                yield Candidate(match, start + value_start, start + value_end, evidence)
    for pattern in patterns.forms.tags:
        for match in pattern.finditer(plain):
            if patterns.is_label(match["value"]):
                yield Candidate(match, *match.span("value"), "asserted")
    for match in table_cells(plain, patterns.forms):
        yield Candidate(match, *match.span("value"), "named")


@dataclass(frozen=True, slots=True)
class _Reply:
    """A reply without its quotations, and the start and end of each sentence.

    `words_may_open` as in `find_score`.
    """

    text: str
    spans: Sequence[tuple[int, int]]
    words_may_open: bool

    def is_first_or_last(self, number: int) -> bool:
        return number in (0, len(self.spans) - 1)

    def is_edge(self, number: int) -> bool:
        """Return whether a sentence is the first, the last or a whole line."""
        return self.is_first_or_last(number) or _is_line(self.text, *self.spans[number])

    def is_below_name(self, number: int, forms: Forms) -> bool:
        """Return whether the line above a sentence is the name of a score: "## Score", "【评分】"."""
        if number == 0:
            return False
        start, end = self.spans[number - 1]
        line = self.text[start:end]
        return _is_line(self.text, start, end) and forms.is_heading(line)

    def is_supposed(self, number: int) -> bool:
        """Return whether the sentence before this one only imagines something."""
        if number == 0:
            return False
        sentence_before = self.spans[number - 1]
        return _SUPPOSES.search(self.text, *sentence_before) is not None

    def opens_list(self, number: int) -> bool:
        """Return whether a sentence is the first entry of a numbered list: "1. It is clear."."""
        if number != 0 or not self._begins_entry(self.spans[number][0]):
            return False
        entries = [start for start, _ in self.spans if self._begins_entry(start)]
        return len(entries) > 1 or "\n" in self.text.strip()

    def describes_labels(self, opening: re.Match[str], patterns: Patterns) -> bool:
        """Return whether another label is described after this one: "A: short. B: clear."."""
        label = patterns.label_of(opening)
        end_of_opening = self.spans[0][0] + opening.end()
        for match in patterns.value.finditer(self.text, end_of_opening):
            if patterns.label_of(match) in (None, label):
                continue
            end = match.end()
            start = match.start()
            text_before = self.text[max(0, start - 10) : start]
            begins_entry = _ENTRY_START.search(text_before)
            if begins_entry and _ENTRY_END.match(self.text, end):
                return True
            is_number = match["value"].isdecimal() and _NUMBER_START.search(text_before)
            if is_number and _NUMBER_END.match(self.text, end):
                return True
        return False

    def _begins_entry(self, start: int) -> bool:
        return _LIST.match(self.text, start) is not None


_Evidences = list[tuple[re.Match[str], Evidence]]


def _read_sentence(
    sentence: str,
    number: int,
    reply: _Reply,
    patterns: Patterns,
) -> _Evidences:
    """Return what gives a score in the sentence with this number, counted from 0."""
    edge = reply.is_edge(number)
    supposed = reply.is_supposed(number)
    matches = list(_in_sentence(sentence, patterns, edge=edge, supposed=supposed))
    if matches or not edge or reply.opens_list(number):
        return matches
    bare = patterns.forms.bare.match(sentence)
    if bare:
        if not reply.is_first_or_last(number):
            if reply.is_below_name(number, patterns.forms):
                return [(bare, "named")]
            # Another answer in a line of its own, but not the number of an entry: "1."
            return [] if _NUMBERED.fullmatch(sentence) else [(bare, "mentioned")]
        if number == 0:
            return [(bare, "opening")]
        return [(bare, "alone")]
    opening = patterns.forms.opening.match(sentence) if number == 0 else None
    if opening and _gives_opening_score(sentence, opening, patterns, reply):
        return [(opening, "opening")]
    return []


def _gives_opening_score(
    sentence: str,
    opening: re.Match[str],
    patterns: Patterns,
    reply: _Reply,
) -> bool:
    """Return whether a reply that opens with a label gives it as the score."""
    is_word = _is_word(opening, patterns)
    value_end = opening.end("value")
    next_character = sentence[value_end : value_end + 1]
    if is_word and next_character in _FULL_STOPS and not reply.words_may_open:
        return False
    is_denied = is_word and _DENIED.match(sentence, value_end)
    # On a scale of yes and no, "No: no source." repeats its label.
    if is_denied and not patterns.spellings.label("no"):
        return False
    if reply.describes_labels(opening, patterns):
        return False
    if opening["comma"] and not _begins_reason(sentence, opening, patterns):
        return False
    if is_word and _turns_to_another(sentence, opening, patterns):
        return False
    if _names_another(sentence, opening, patterns):
        return False
    if _is_doubtful(sentence[opening.end() :], patterns):
        return False
    return not patterns.mentions_another(sentence, opening)


def _is_word(match: re.Match[str], patterns: Patterns) -> bool:
    """Return whether a score is written as a label that is no number."""
    return patterns.label_of(match) not in patterns.spellings.numbers.values()


def _begins_reason(sentence: str, match: re.Match[str], patterns: Patterns) -> bool:
    """Return whether any words after a score and a comma are its reason: "4, on topic".

    Not after a label that is a word ("good, not great") but for yes and no, nor if another score
    follows in words ("4, lowered to three").
    """
    if _is_word(match, patterns) and not patterns.is_yes_or_no:
        return False
    label = patterns.label_of(match)
    reason = without_scale(sentence[match.end("comma") :])
    for another in patterns.value.finditer(reason):
        is_another_label = patterns.label_of(another) not in (None, label)
        if is_another_label and _is_no_count(reason, another):
            return False
    return True


def _is_no_count(reason: str, number: re.Match[str]) -> bool:
    """Return whether a number in the reason of a score counts nothing: it may be another score.

    Behind the beginning only a number in words: `mentions_another` finds digits, except those of
    "2,191 readers".
    """
    if number.start() == 0 and _NO_COUNT.match(reason, number.end()):
        return True
    if _ENDS_WORD.match(reason, number.start()):
        return False
    is_in_digits = number["value"][0].isdecimal()
    if is_in_digits or number["value"].casefold() in _ONE:
        return False
    has_unit = number.end() > number.end("value")
    return has_unit or _NO_COUNT_INSIDE.match(reason, number.end()) is not None


def _turns_to_another(
    sentence: str,
    opening: re.Match[str],
    patterns: Patterns,
) -> bool:
    """Return whether a sentence ends with another label after "but": "Yes, but no."."""
    rest = sentence[opening.end("value") :].rstrip(NO_WORDS)
    but = _BUT.match(rest)
    if but is None:
        return False
    last_word = _LAST_WORD.search(rest)
    label = patterns.label_of(opening)
    # Chinese has no spaces between words: "合格，但不合格。"
    endings = [rest[but.end() :].strip(NO_WORDS)]
    if last_word is not None:
        endings.append(last_word[0])
    return any(patterns.spellings.label(end) not in (None, label) for end in endings)


def _turns_from_another(
    sentence: str,
    match: re.Match[str],
    patterns: Patterns,
) -> bool:
    """Return whether another label stands before a score and "but": "適合ですが、不適合です。"."""
    label = patterns.label_of(match)
    text_before = sentence[: match.start()]
    for another in patterns.value.finditer(text_before):
        if patterns.label_of(another) in (None, label):
            continue
        # A number counts something, unless it opens the sentence: "誤りは1点ですが、4点です。"
        is_word = _is_word(another, patterns)
        opens_sentence = not text_before[: another.start()].strip(NO_WORDS)
        if not is_word and not opens_sentence:
            continue
        if _BUT_AFTER_LABEL.match(text_before, another.end()):
            return True
    return False


def _names_another(sentence: str, match: re.Match[str], patterns: Patterns) -> bool:
    """Return whether nothing but another label follows a score: "A - B", "4 (three)"."""
    rest = sentence[match.end("value") :].strip(_MARKS_BETWEEN)
    label = patterns.label_of(match)
    return patterns.spellings.label(rest) not in (None, label)


def _in_sentence(
    sentence: str,
    patterns: Patterns,
    *,
    edge: bool,
    supposed: bool,
) -> Iterator[tuple[re.Match[str], Evidence]]:
    """Yield what names or asserts a score in one sentence."""
    named = patterns.forms.named.match(sentence)
    if named and named["comma"] and not _begins_reason(sentence, named, patterns):
        named = None
    if named:
        is_word = _is_word(named, patterns)
        is_unclear = (
            _is_doubtful(sentence[named.end() :], patterns)
            or _names_another(sentence, named, patterns)
            or patterns.mentions_another(sentence, named)
        )
        if is_word and _turns_to_another(sentence, named, patterns):
            is_unclear = True
        yield named, "mentioned" if is_unclear else "named"
        return
    loose = patterns.forms.loosely_named.match(sentence)
    if loose:
        yield loose, "mentioned"
    if supposed:
        return
    for form in patterns.readers(sentence):
        for match in form.assertions(sentence, patterns.spellings.ends_are):
            if patterns.is_pair and _compares_with_itself(match):
                continue
            if _turns_from_another(sentence, match, patterns):
                continue
            if not patterns.mentions_another(sentence, match):
                yield match, "asserted"
    for form in patterns.label_readers(sentence):
        for match in form.assertions(sentence, patterns.spellings.ends_are):
            # In the middle of a reply, a label may describe anything, but also be another score.
            if not patterns.mentions_another(sentence, match):
                yield match, "asserted" if edge else "mentioned"


def _compares_with_itself(preference: re.Match[str]) -> bool:
    """Return whether a sentence prefers a text to itself: "A is better than A"."""
    return _CAPITAL.findall(preference[0]).count(preference["value"]) > 1


def _is_doubtful(reason: str, patterns: Patterns) -> bool:
    """Return whether the rest of a sentence casts doubt on its score.

    Without the criterion's title, which may be a word of doubt itself.
    """
    doubts = _DOUBTS_OF_ANSWERS if patterns.is_yes_or_no else _DOUBTS
    return doubts.search(patterns.title.sub("", reason)) is not None


def _is_line(text: str, start: int, end: int) -> bool:
    """Return whether a sentence is a whole line."""
    ends_line = end == len(text) or "\n" in text[start:end]
    return _begins_line(text, start) and ends_line


def _begins_line(text: str, start: int) -> bool:
    """Return whether a position begins its line, perhaps after blanks or a number: "1. "."""
    line_start = text.rfind("\n", 0, start) + 1
    text_before = text[line_start:start]
    return not text_before.strip(" ") or _NUMBERED.fullmatch(text_before) is not None


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each sentence of folded text."""
    breaks = [end.end() for end in _SENTENCE_END.finditer(text)]
    starts = [0, *breaks]
    ends = [*breaks, len(text)]
    spans = zip(starts, ends, strict=True)
    return [(start, end) for start, end in spans if text[start:end].strip()]


def takes_back(after: str) -> bool:
    """Return whether the folded text after a score takes it back: "Wait, that is wrong."."""
    return _TAKEN_BACK.search(_unquoted(after)) is not None


def _unquoted(text: str) -> str:
    without_quotations = mask_quotations(text)
    return _EMPHASIS.sub(lambda marks: " " * len(marks[0]), without_quotations)
