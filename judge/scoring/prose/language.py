"""Read whether a sentence of one language gives a score.

A sentence is read from the inside out: the words that assert a score, including the score, then the
words that lead up to them, then the rest on both sides. The first two come from closed lists: a
word that is not on them refuses the sentence. The rest is a reason. It may say anything but what
`doubt` finds in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# "coherence", "fluency", "helpfulness", "factuality"
_NOUN_ENDING = re.compile(r"(?<=\w{4})(?:ce|cy|ness|ity)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Grammar:
    """One way in which a language asserts a score.

    All fields are patterns. SCORE and TITLE stand for the patterns of the scale and the criterion,
    STEM for the beginning that its title shares with an adjective ("coherence", "coherent"), a
    space for white space of any length. `assertion` ends with the sentence, or right before a
    reason. `lead` matches the words between the beginning of a clause and the assertion. `clause`
    matches the end of a reason before that clause, `before` the reason itself, and `doubt` words
    that the reason must not contain. `after` matches the beginning of a reason behind the
    assertion, and `doubt_after` words that this reason must not contain. `says_so` must occur
    beside the number: a number alone asserts nothing. `unless` names a group of the assertion that
    must not be there.
    """

    assertion: str
    lead: str
    clause: str
    doubt: str
    before: str = ""
    after: str = r"\Z"
    doubt_after: str = r"(?!)"
    says_so: str = r"[^\W\d]"
    unless: str = ""


@dataclass(frozen=True, slots=True)
class Reader:
    """A grammar whose patterns are compiled for one scale and title."""

    assertion: re.Pattern[str]
    lead: re.Pattern[str]
    clause: re.Pattern[str]
    doubt: re.Pattern[str]
    before: re.Pattern[str]
    after: re.Pattern[str]
    doubt_after: re.Pattern[str]
    says_so: re.Pattern[str]
    unless: str

    def assertions(
        self,
        sentence: str,
        are_ends: Callable[[str | None, str], bool],
    ) -> Iterator[re.Match[str]]:
        """Yield what asserts a score in a sentence, with a group `value`.

        `are_ends` returns whether two numbers are the ends of the scale, as the lead "on a scale of
        1 to 5" says. "Out of 5" states no lower end (None).
        """
        for match in self.assertion.finditer(sentence):
            if self.unless and match[self.unless] is not None:
                continue
            after = sentence[match.end() :]
            opening = self.after.match(after)
            if opening is None or self.doubt_after.search(after[opening.end() :]):
                continue
            lead = self._lead(sentence[: match.start()])
            if lead is None:
                continue
            stated = lead.groupdict()
            high = stated.get("high_lead") or stated.get("top_lead")
            if high is not None and not are_ends(stated["low_lead"], high):
                continue
            before_value = sentence[lead.start() : match.start("value")]
            after_value = sentence[match.end("value") : match.end()]
            if self.says_so.search(before_value + after_value):
                yield match

    def _lead(self, before: str) -> re.Match[str] | None:
        """Return what leads up to an assertion.

        Return None if a word before it is on no closed list, or casts doubt on it.
        """
        lead = self.lead.fullmatch(before)
        if lead:
            return lead
        for boundary in self.clause.finditer(before):
            lead = self.lead.fullmatch(before, boundary.end())
            if lead is None:
                continue
            reason = before[: boundary.start()]
            if not self.before.match(reason) or self.doubt.search(reason):
                continue
            # What joins the clauses may be in doubt as well: "있으면 4점", "あるとき、4点".
            if not self.doubt.search(before[: boundary.end()]):
                return lead
        return None


def reader(grammar: Grammar, score_pattern: str, title_pattern: str) -> Reader:
    """Return the reader of a grammar, given the patterns of a score and a criterion's title."""
    stem = _NOUN_ENDING.sub("", title_pattern)

    def compiled(pattern: str) -> re.Pattern[str]:
        # First, because the other two patterns may contain spaces of their own.
        pattern = pattern.replace(" ", r"\s++")
        pattern = pattern.replace("SCORE", score_pattern)
        pattern = pattern.replace("TITLE", title_pattern)
        pattern = pattern.replace("STEM", stem)
        return re.compile(pattern, re.IGNORECASE)

    return Reader(
        assertion=compiled(grammar.assertion),
        lead=compiled(grammar.lead),
        clause=compiled(grammar.clause),
        doubt=compiled(grammar.doubt),
        before=compiled(grammar.before),
        after=compiled(grammar.after),
        doubt_after=compiled(grammar.doubt_after),
        says_so=compiled(grammar.says_so),
        unless=grammar.unless,
    )
