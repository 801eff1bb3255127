"""The back end `lexical`: the question is a sentence with a gap, the answer the noun phrase that fits the gap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from judge import text
from judge.core.records import fold
from judge.metrics.common import ModelError
from judge.metrics.qags import english_noun_phrases
from judge.metrics.qags.answer_candidates import Nouns, clean, languages
from judge.metrics.qags.english_noun_phrases import Span
from judge.metrics.qags.pipeline import UNANSWERABLE
from judge.text import porter

GAP = "____"
_CONTEXT = 400  # characters read on either side of a phrase
_FUNCTION_WEIGHT = 0.2  # weight of a function word; a content word has 1
_DISTANCE_DECAY = 0.1  # loss of weight for each word between a word and the phrase or gap
_FUNCTION = frozenset("的了是在和与也都就不这那有为以及被把着过吗呢은는이가을를의에도로와과고다한하")
"""Characters that are mostly function words in Chinese and Korean; in Japanese all hiragana are."""


class Cloze:
    """The question is the output's first sentence in which the theme is a noun phrase, with a gap for the theme."""

    signature = "cloze"

    def __init__(self, nouns: Nouns) -> None:
        self._nouns = nouns

    def questions(self, themes: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return a question for each (theme, output); a theme that does not occur literally has none.

        A theme that is not a noun phrase of the output is replaced where it first occurs. Raises MissingExtra.
        """
        outputs = list(dict.fromkeys(output for _, output in themes))
        read = {
            output: _sentences(clean(output), self._nouns.spans(clean(output), language))
            for output, language in zip(outputs, languages(outputs), strict=True)
        }
        questions: list[str | ModelError] = []
        for theme, output in ((clean(theme), output) for theme, output in themes):
            folded = theme.casefold()
            phrases = ((s, at) for s, spans in read[output] for at in spans if s[slice(*at)].casefold() == folded)
            words = ((s, at) for s, _ in read[output] if (at := _find(theme, s)))
            if first := next(chain(phrases, words), None):
                sentence, (start, end) = first
                questions.append(sentence[:start] + GAP + sentence[end:])
            else:
                message = f"the theme {theme!r} does not occur in a sentence of the output"
                questions.append(ModelError("NoQuestion", message))
        return questions


_SentencePhrases = list[tuple[str, list[Span]]]


def _sentences(passage: str, spans: Sequence[Span]) -> _SentencePhrases:
    """Return a text's sentences, each with the places of the phrases that lie inside it."""
    result: _SentencePhrases = []
    end, n = 0, 0
    for sentence in text.sentences(passage):
        start = passage.index(sentence, end)
        end = start + len(sentence)
        inside = []
        while n < len(spans) and spans[n][0] < end:
            if start <= spans[n][0] and spans[n][1] <= end:
                inside.append((spans[n][0] - start, spans[n][1] - start))
            n += 1
        result.append((sentence, inside))
    return result


def _find(theme: str, sentence: str) -> Span | None:
    """Find the theme, preferably as whole words and in its own case."""
    for haystack, needle in ((sentence, theme), (sentence.lower(), theme.lower())):
        if not theme or len(haystack) != len(sentence):
            continue  # lower-casing changed the length
        spans = [(at, at + len(needle)) for at in range(len(haystack)) if haystack.startswith(needle, at)]
        inside_words = {at for at in range(1, len(haystack)) if haystack[at - 1 : at + 1].isalnum()}
        whole = (span for span in spans if inside_words.isdisjoint(span))
        if spans:
            return next(whole, spans[0])
    return None


_Side = dict[str, int]
"""The words on one side of a phrase or gap, each with its distance in words."""


class _Candidate(NamedTuple):
    """A noun phrase of a sentence, with the words of the sentence and those before and after the phrase."""

    phrase: str
    sentence: frozenset[str]
    before: _Side
    after: _Side


class Lexical:
    """The answer is the text's noun phrase whose surrounding words match those around the question's gap best.

    A word counts if it is on the same side of the phrase as of the gap; its weight falls with its distance from either.
    Phrases of sentences without a content word of the question do not count, nor do phrases of the question itself; if
    none remains, the text has no answer. Deciding by distance alone, instead of by the sentence with most words of the
    question, was chosen by looking at QAGS's 235 rated CNN/DailyMail summaries; on SummEval's, which were not looked
    at, both agree with people equally well.
    """

    def __init__(self, nouns: Nouns) -> None:
        self._nouns = nouns

    @property
    def signature(self) -> str:
        return f"lexical-{self._nouns.signature}"

    def answers(self, questions: Sequence[tuple[str, str]]) -> list[str | ModelError]:
        """Return an answer or UNANSWERABLE for each (question, text); a question without a gap has no answer.

        Raises MissingExtra if the tagger of a text's language is not installed.
        """
        texts = list(dict.fromkeys(passage for _, passage in questions))
        read: dict[str, list[_Candidate]] = {}
        for passage, language in zip(texts, languages(texts), strict=True):
            cleaned = clean(passage)
            # Phrases are found in the whole text, because it shows which words are names.
            read[passage] = [
                _Candidate(sentence[a:b], words, *_sides(sentence[:a], sentence[b:]))
                for sentence, spans in _sentences(cleaned, self._nouns.spans(cleaned, language))
                for words in [_content(_words(sentence))]
                for a, b in spans
            ]
        answers: list[str | ModelError] = []
        for question, passage in questions:
            before, gap, after = clean(question).partition(GAP)
            if not gap:
                message = "the lexical reader answers questions with a gap alone: take questions=cloze"
                answers.append(ModelError("NoGap", message))
                continue
            before_gap, after_gap = _sides(before, after)
            question_words = {*before_gap, *after_gap}
            content = _content(question_words)
            best, answer = 0.0, UNANSWERABLE
            for candidate in read[passage]:
                if content.isdisjoint(candidate.sentence):
                    continue
                fit = _fit(before_gap, candidate.before) + _fit(after_gap, candidate.after)
                if fit > best and not question_words.issuperset(_words(candidate.phrase)):
                    best, answer = fit, candidate.phrase
            answers.append(answer)
        return answers


def _sides(before: str, after: str) -> tuple[_Side, _Side]:
    return _nearest(_words(before[-_CONTEXT:])[::-1]), _nearest(_words(after[:_CONTEXT]))


def _nearest(words: Iterable[str]) -> _Side:
    side: _Side = {}
    for place, word in enumerate(words):
        side.setdefault(word, place)
    return side


def _fit(question_side: _Side, candidate_side: _Side) -> float:
    """Return how well the words on one side of a phrase match those beside the gap."""
    return sum(
        _weight(word) / (1 + _DISTANCE_DECAY * max(place, candidate_side[word]))
        for word, place in question_side.items()
        if word in candidate_side
    )


def _content(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if _weight(word) == 1)


@lru_cache(maxsize=50_000)
def _weight(word: str) -> float:
    """Return 1 for a content word, less for a function word."""
    if word.isascii():
        little = english_noun_phrases.is_function(word)
    else:
        little = word in _FUNCTION or all("\u3041" <= letter <= "\u309f" for letter in word)
    return _FUNCTION_WEIGHT if little else 1.0


def _words(part: str) -> tuple[str, ...]:
    """Return lower-case tokens in order: English stems, single CJK characters, other words whole."""
    is_function = english_noun_phrases.is_function
    return tuple(
        _stem(word) if word.isascii() and len(word) > 3 and not is_function(word) else word
        for word in text.tokens(fold(part))
    )


_stem = lru_cache(maxsize=50_000)(porter.stem)
