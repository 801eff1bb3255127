"""The texts behind a verdict: what was judged, with its score, the judge's reason and the last run.

A case orders its texts, the ones that lack most first; reports show the first of them and count the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from judge.core.format import UNNAMED_SYSTEM, number, one_line, percent
from judge.core.records import Sample, Score
from judge.data.answers import request_text
from judge.results.result import Result
from judge.suite.case_scores import CaseScores, places
from judge.suite.evidence import Undecidable, item_values
from judge.table import Text

MOST_TEXTS = 4
"""Texts of a verdict: enough for two systems on two items."""
_LONGEST_OUTPUT = 600
"""Characters of a text in a verdict."""


@dataclass(frozen=True, slots=True)
class JudgedText:
    """A text behind a verdict.

    `score` is the score as reports write it; of a comparison, the share of wins. `reason` is the
    judge's, `output` the text and `request` what it answers, cut after 600 characters. `before` is
    the score of the same item and system in the earlier run, "" if there is none, and `edited` says
    that the text was another one there. `name` names the text: `museum by hasty`; it is empty for a
    case's only text.
    """

    name: str
    score: str
    output: str
    reason: str = ""
    request: str = ""
    before: str = ""
    edited: bool = False


@dataclass(frozen=True, slots=True)
class TextSource:
    """The texts of a case with its scores, and with an earlier run's scores if there is one."""

    case_name: str
    scores: CaseScores
    earlier: CaseScores | None

    @classmethod
    def of(
        cls, case_name: str, scores: CaseScores, earlier: Result | None
    ) -> TextSource:
        """Look up the scores of the same items in an `earlier` run, if there is one."""
        criterion = scores.column.criterion or scores.column.name
        items = {item for item, _, _ in scores.rows}
        earlier_scores = None
        if earlier is not None:
            # The earlier run may lack the criterion, because it is new.
            with suppress(Undecidable):
                earlier_scores = CaseScores.for_criterion(earlier, criterion, items)
        return cls(case_name, scores, earlier_scores)

    def scored(self, texts: Sequence[Text]) -> tuple[JudgedText, ...]:
        """Return these texts as far as they have a score."""
        sample_by_text = _samples(self.scores, texts)
        earlier_by_text = _samples(self.earlier, texts)
        judged: list[JudgedText] = []
        for text in texts:
            score = self.scores.score(*text)
            sample = sample_by_text.get(text)
            if score is None or sample is None:
                continue
            earlier_sample = earlier_by_text.get(text)
            is_edited = False
            if earlier_sample is not None:
                is_edited = earlier_sample.output != sample.output
            judged_text = JudgedText(
                name=self._name(text),
                score=self._format(score),
                output=one_line(sample.output, _LONGEST_OUTPUT),
                reason=_reason(score),
                request=one_line(request_text(sample), _LONGEST_OUTPUT),
                before=self._before(text),
                edited=is_edited,
            )
            judged.append(judged_text)
        return tuple(judged)

    def compared(self, item: str, better: str, worse: str) -> tuple[JudgedText, ...]:
        """Return the two texts of a comparison, each with its share of the wins."""
        preference = self.scores.preference([item], better, worse)
        if not preference:
            return ()
        share_of_wins = float(item_values([preference])[0])
        shares = (share_of_wins, 1 - share_of_wins)
        texts = [(item, better), (item, worse)]
        sample_by_text = _samples(self.scores, texts)
        shown_first = self.scores.score(item, better, worse)
        reason = "" if shown_first is None else _reason(shown_first)
        judged: list[JudgedText] = []
        for text, wins in zip(texts, shares, strict=True):
            sample = sample_by_text[text]
            judged_text = JudgedText(
                name=self._name(text),
                score=f"wins {percent(wins)}",
                output=one_line(sample.output, _LONGEST_OUTPUT),
                reason=reason,
                request=one_line(request_text(sample), _LONGEST_OUTPUT),
            )
            judged.append(judged_text)
            # Both texts have the same reason, which is shown once.
            reason = ""
        return tuple(judged)

    def _name(self, text: Text) -> str:
        """Return the name of a text in a report, see `JudgedText`."""
        item, system = text
        # A case's own text has the case's name as its item.
        if item == self.case_name:
            return "" if system == "text" else system
        # Items that were compared for this case begin with its name.
        item = item.removeprefix(f"{self.case_name}: ")
        if system == UNNAMED_SYSTEM:
            return item
        return f"{item} by {system}"

    def _format(self, score: Score) -> str:
        return number(score.value, places(self.scores.column))

    def _before(self, text: Text) -> str:
        """Return the score in the earlier run, "" if there is none."""
        if self.earlier is None:
            return ""
        score = self.earlier.score(*text)
        return "" if score is None else self._format(score)


def _reason(score: Score) -> str:
    """Return the judge's reason, or else the passage that it quotes."""
    reason = score.provenance.reason or score.provenance.quote or ""
    return one_line(reason, _LONGEST_OUTPUT)


def _samples(scores: CaseScores | None, texts: Sequence[Text]) -> dict[Text, Sample]:
    """Return the texts that a run has."""
    if scores is None:
        return {}
    keys = frozenset(texts)
    return {
        sample.key: sample
        for sample in scores.result.table.samples
        if sample.key in keys
    }
