"""The parameters that the servers of a run's judges refused, ignored or limited.

Sentences on them say what that means for the scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from judge.core.format import one_line, plural
from judge.core.records import Score
from judge.results.result import Result
from judge.results.run_info import JudgeInfo
from judge.scoring.checklist import split

_UNMET = {
    "logprobs": "gives no token probabilities",
    "top_logprobs": "lists fewer token probabilities than asked for",
    "max_tokens": "limit on the reply's length not accepted",
    "response_format": "JSON schema not accepted",
    "reasoning": "reasoning turned off, because token probabilities need that",
    "n": "sends fewer replies at a time than asked for",
}
_ACCEPTED = {
    "n": "takes n ≤ {}",
    "top_logprobs": "lists at most {} probabilities for a token",
    "limit": "takes the limit on the reply's length as {}",
    "path": "asked at {}",
}
_HARMLESS = "n"
"""If a server sends fewer replies, judge requests the others again: the scores are the same."""
_PROBABILITIES = ("logprobs", "top_logprobs")
"""Without token probabilities, `--weighting auto` uses draws or single replies."""


def refusals(judge: JudgeInfo, consequence: str = "") -> tuple[str, ...]:
    """Describe each parameter that one judge refused, ignored or limited.

    `consequence` says what a lack of token probabilities means for its scores (`scored_instead`).
    It replaces the number of answers without them, which may be 1, because judge requests no
    probabilities from a server that it knows to lack them.
    """
    unmet = judge.unmet
    accepted = dict(judge.learned)
    accepted.pop("reasoning_effort", None)  # the parameter "reasoning" says the same
    dropped = accepted.pop("dropped", None) or ()
    lacking = _lacking_probabilities(unmet) if consequence else ""
    phrases = []
    for parameter in dict.fromkeys([*unmet, *dropped, *accepted]):
        phrase = _phrase(parameter, accepted)
        if parameter == lacking:
            phrase += f": {consequence}"
        elif parameter in unmet:
            phrase += f" ({plural(unmet[parameter], 'answer')})"
        phrases.append(one_line(phrase))
    return tuple(phrases)


def server_notes(result: Result) -> tuple[str, ...]:
    """Return sentences on each judge whose server did not honour a parameter.

    Parameters that do not affect the scores are left out.
    """
    sentences = []
    for judge_name, judge in result.info.judges.items():
        unmet = dict(judge.unmet)
        unmet.pop(_HARMLESS, None)
        learned = judge.learned
        consequence = scored_instead(result, judge_name)
        if consequence:
            lacking = _lacking_probabilities(unmet)
            del unmet[lacking]
            phrase = _phrase(lacking, learned)
            sentence = f"{judge_name} {phrase}: {consequence}."
            sentences.append(one_line(sentence))
        # What the server was found to accept, only for parameters that it did not take as asked.
        accepted = {name: value for name, value in learned.items() if name in unmet}
        if unmet:
            others = JudgeInfo(unmet=unmet, learned=accepted)
            phrases = "; ".join(refusals(others))
            judge_on_one_line = one_line(str(judge_name))
            sentences.append(f"{judge_on_one_line}: {phrases}.")
    return tuple(sentences)


def scored_instead(result: Result, judge: str) -> str:
    """Say how a judge's scores were made if its server lacks token probabilities.

    Return "" if a score has probabilities, or if the user asked for draws or single replies: then
    no request needs probabilities, and none are lacking.
    """
    judges = result.info.judges
    facts = judges[judge]
    if not _lacking_probabilities(facts.unmet):
        return ""
    counts = methods_by_column(result)
    is_alone = len(judges) == 1
    methods = Counter[str]()
    for column in result.table.columns:
        if column.name in counts and (is_alone or column.judge == judge):
            methods += counts[column.name]
    if methods["logprobs"]:
        return ""
    n_sampled = methods["samples"]
    single = methods["single"]
    noun = "verdicts" if result.rankings else "scores"
    draws = "several draws"
    if facts.draws:
        draws = plural(facts.draws, "draw")
    means = f"means of {draws}"
    if n_sampled and single:
        read = f"read in one reply each ({single:,})"
        return f"{noun} are {means} ({n_sampled:,}) or {read}"
    if n_sampled:
        return f"{noun} are {means}"
    return f"{noun} are read in one reply each" if single else ""


def methods_by_column(result: Result) -> dict[str, Counter[str]]:
    """Count the scores of each criterion column by method, and the answers of checklists."""
    criteria = [column for column in result.table.columns if column.kind == "criterion"]
    counts = {column.name: Counter[str]() for column in criteria}
    for score in result.table.scores:
        if score.column not in counts:
            continue
        for part in split(score):
            if isinstance(part, Score):
                counts[score.column][part.provenance.method] += 1
    return counts


def _phrase(parameter: str, accepted: Mapping[str, Any]) -> str:
    """Say what a server does with a parameter."""
    if parameter not in accepted:
        return _UNMET.get(parameter, f"{parameter} not accepted")
    value = accepted[parameter]
    if parameter in _ACCEPTED:
        return _ACCEPTED[parameter].format(value)
    return f"{parameter}: {value}"


def _lacking_probabilities(unmet: Mapping[str, int]) -> str:
    """Return the name under which token probabilities are unmet, "" if they are not."""
    for feature_name in _PROBABILITIES:
        if feature_name in unmet:
            return feature_name
    return ""
