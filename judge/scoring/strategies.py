"""The ladder: the ways in which a judgment may come to its number, what each of them asks, and how it is read.

From the top: `logprobs` (the probabilities of one reply's tokens), `decisions` (those of an endpoint of typed
questions), `samples` (the mean over replies drawn anew; Liu et al. 2023, G-Eval, section 2.3) and `single` (one reply
as it is written).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from judge.core.errors import ConfigError, ParseError, ProviderError
from judge.core.messages import option
from judge.core.records import Choice, Criterion, Prompt, Provenance, Request, Response, Scale
from judge.providers import Capabilities, Provider
from judge.scoring import expectation, parse

Strategy = Literal["logprobs", "decisions", "samples", "single"]
Weighting = Literal["auto", "logprobs", "decisions", "samples", "single"]
Answer = Response | ProviderError

MERGED = "criterion"
"""The parameter that says which of the criteria in a merged prompt a reply is wanted for; it is never sent."""
LABELS = "labels"
"""The parameter that names the labels of which one that is `exact` gives all the probabilities."""
_TOP_LOGPROBS = 20
_KEY_TOKENS = 32
_TOKEN_LIMIT = {"score": 64, "score_then_reason": 1024, "reason_then_score": 1024}
_GIVEN_A_REASON = "probabilities given one reason that the judge wrote first"


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How the judge is asked.

    `temperature` None is 0, and 1 where replies are drawn; `max_tokens` None leaves the limit to the reply kind.
    """

    weighting: Weighting = "auto"
    min_mass: float = 0.5
    temperature: float | None = None
    max_tokens: int | None = None
    draws: int = 20


class UnusableReply(ParseError):
    """A reply that holds a score, but not one this rung can weigh: the next rung's turn.

    `lasting` says that the model cannot do it at all, and need not be asked so again.
    """

    def __init__(self, message: str, raw: str = "", *, lasting: bool = False) -> None:
        super().__init__(message, raw)
        self.lasting = lasting


@dataclass(slots=True)
class ModelTraits:
    """What replies tell of a model: the rungs it is `lacking`, with why, and those `proven` by a score."""

    lacking: dict[Strategy, str] = field(default_factory=dict)
    proven: set[Strategy] = field(default_factory=set)

    def learn(self, rung: Strategy, error: UnusableReply) -> None:
        """What an untrusted reply tells: nothing of a rung that is proven."""
        if error.lasting and rung not in self.proven:
            self.lacking[rung] = str(error)


def strategies_for(settings: SamplingOptions, decides: bool) -> tuple[Strategy, ...]:
    """The rungs to try, the highest first. `decides` says that the endpoint takes typed questions and nothing else.

    Raises ConfigError for a weighting that the endpoint does not have.
    """
    wanted = settings.weighting
    if decides:
        if wanted not in ("auto", "decisions"):
            raise ConfigError(
                f"{option('weighting', wanted)}: a decision endpoint gives probabilities by itself; leave that out"
            )
        return ("decisions",)
    if wanted == "decisions":
        raise ConfigError(
            f"{option('weighting', 'decisions')} takes a decision endpoint: {option('model', 'decisions/NAME')}, for "
            "example "
            "decisions/gpt-6-luna"
        )
    if wanted == "auto":
        return ("logprobs", "single") if settings.temperature == 0 else ("logprobs", "samples", "single")
    return (wanted,)


def requests(
    prompt: Prompt, criterion: Criterion, rung: Strategy, settings: SamplingOptions, *, exact: bool = False
) -> tuple[Request, ...]:
    """What a rung asks, one request for each reply that is kept on its own; model and endpoint are left open.

    `exact` says that whoever answers can give the probability of every label: it is then told which there are.
    """
    if rung == "decisions":
        return (Request("", prompt.messages, {"questions": [_question(prompt, criterion)]}),)
    drawn = rung == "samples"
    params: dict[str, Any] = {
        "temperature": settings.temperature if settings.temperature is not None else float(drawn),
        "max_tokens": settings.max_tokens or _TOKEN_LIMIT[criterion.reply],
    }
    if rung == "logprobs":
        params["top_logprobs"] = _TOP_LOGPROBS
        if exact and criterion.reply == "score" and criterion.form == "text" and not prompt.merged:
            params[LABELS] = list(criterion.scale.labels)
    if prompt.merged:
        params |= {MERGED: criterion.name, "response_format": _merged_schema(prompt.merged)}
        params["max_tokens"] = settings.max_tokens or _TOKEN_LIMIT["score"] + _KEY_TOKENS * len(prompt.merged)
    elif criterion.form == "json":
        params["response_format"] = _schema(criterion)
    count = settings.draws if drawn else 1
    return tuple(Request("", prompt.messages, params, draw) for draw in range(count))


def requests_by_key(
    prompt: Prompt,
    criterion: Criterion,
    rung: Strategy,
    settings: SamplingOptions,
    provider: Provider,
    *,
    prefix: tuple[str, int] = ("", 0),
) -> dict[str, Request]:
    """The requests of a rung as this provider gets them, by their keys."""
    model, endpoint = provider.model, provider.endpoint
    found = requests(prompt, criterion, rung, settings, exact=Capabilities.of(provider).full_distribution)
    whole = (replace(one, model=model, endpoint=endpoint, prefix=prefix) for one in found)
    return {one.key(): one for one in whole}


def satisfies(response: Response, settings: SamplingOptions) -> bool:
    """Whether a reply that was kept has what is asked for with it now."""
    return settings.weighting != "logprobs" or all(choice.tokens or choice.shares for choice in response.choices)


def fallback_reply(answers: Iterable[Answer]) -> Response | None:
    """The first answer in words of a rung that could not weigh it: what the rung `single` is read from."""
    written = (one for one in answers if isinstance(one, Response) and not any(c.shares for c in one.choices))
    return next(written, None)


def score_reply(
    rung: Strategy,
    answers: Sequence[Answer],
    criterion: Criterion,
    settings: SamplingOptions,
    notes: Sequence[str] = (),
) -> tuple[float, Provenance]:
    """The value that a rung's answers give, and how.

    `notes` say why higher rungs were left. Raises ParseError where there is no score, Untrusted where the next rung
    should be tried, and the first ProviderError where nothing was answered.
    """
    replies = [answer for answer in answers if isinstance(answer, Response)]
    if not replies:
        raise next(answer for answer in answers if isinstance(answer, ProviderError))
    if not all(reply.choices for reply in replies):
        raise ParseError("the response holds no reply")
    choices = [reply.choices[0] for reply in replies]
    if rung == "samples":
        return _by_samples(choices, len(answers), criterion, notes)
    if rung == "logprobs":
        return _by_logprobs(choices[0], criterion, settings.min_mass)
    if rung == "decisions":
        return _by_decision(choices[0], criterion, settings.min_mass)
    found = parse.read(choices[0], criterion.reply, criterion.scale, criterion.title)
    note = "; ".join(notes) or None
    value = criterion.scale.value(found.label)
    return value, Provenance("single", argmax=found.label, reason=found.reason, raw=choices[0].text, note=note)


def label(answer: Answer | None, criterion: Criterion) -> str | None:
    """The label of one reply, None where it has none."""
    if not isinstance(answer, Response) or not answer.choices:
        return None
    try:
        return parse.read(answer.choices[0], criterion.reply, criterion.scale, criterion.title).label
    except ParseError:
        return None


def _by_logprobs(choice: Choice, criterion: Criterion, min_mass: float) -> tuple[float, Provenance]:
    if choice.shares is not None:
        return _by_shares("logprobs", choice.shares, criterion, min_mass, choice.text)
    written = parse.read(choice, criterion.reply, criterion.scale, criterion.title)
    if choice.tokens is None:
        raise UnusableReply("the reply came without token probabilities", choice.text, lasting=True)
    text = "".join(token.text for token in choice.tokens)
    try:
        place = parse.find(text, criterion.reply, criterion.scale, criterion.title)
        w = expectation.from_logprobs(choice.tokens, place.start, place.label, criterion.scale)
    except ParseError as error:
        raise UnusableReply(str(error), choice.text) from error
    if place.label != written.label:
        raise UnusableReply(f"the tokens say {place.label}, the reply {written.label}", choice.text)
    _refuse_thin(w.mass, min_mass, choice.text)
    note = _GIVEN_A_REASON if criterion.reply == "reason_then_score" else None
    return w.value, _weighed("logprobs", w, reason=written.reason, raw=choice.text, note=note)


def _by_samples(
    choices: Sequence[Choice], asked: int, criterion: Criterion, notes: Sequence[str]
) -> tuple[float, Provenance]:
    """The mean over the draws that have a score; those that have none are counted and noted."""
    places: dict[tuple[str, str], parse.Found | None] = {}
    trouble: ParseError | None = None
    for choice in choices:
        said = choice.text, choice.finish_reason
        if said not in places:  # most draws are one of a few words
            try:
                places[said] = parse.read(choice, criterion.reply, criterion.scale, criterion.title)
            except ParseError as error:
                places[said] = None
                trouble = trouble or error
    found = [places[choice.text, choice.finish_reason] for choice in choices]
    raw = json.dumps([choice.text for choice in choices], ensure_ascii=False)
    read = [place for place in found if place is not None]
    if not read:
        raise UnusableReply(f"none of {len(choices)} draws has a score: {trouble}", raw)
    w = expectation.from_samples([place.label if place else None for place in found], criterion.scale)
    reason = next(place.reason for place in read if place.label == w.argmax)
    told = list(notes)
    if unread := len(choices) - len(read):
        told.append(f"{unread} of {len(choices)} draws had no score: {trouble}")
    if unanswered := asked - len(choices):
        told.append(f"{unanswered} of {asked} draws were not answered")
    note = "; ".join(told) or None
    return w.value, _weighed("samples", w, n=len(read), reason=reason, raw=raw, note=note)


def _by_decision(choice: Choice, criterion: Criterion, min_mass: float) -> tuple[float, Provenance]:
    if choice.shares is None:
        raise ParseError("the judge refused to answer the question", choice.text)
    return _by_shares("decisions", choice.shares, criterion, min_mass, choice.text)


def _by_shares(
    rung: Strategy, shares: Sequence[tuple[str, float]], criterion: Criterion, min_mass: float, raw: str
) -> tuple[float, Provenance]:
    w = expectation.from_probabilities(dict(shares), criterion.scale)
    _refuse_thin(w.mass, min_mass, raw)
    return w.value, _weighed(rung, w)


def _refuse_thin(mass: float, min_mass: float, raw: str) -> None:
    if mass < min_mass:
        raise UnusableReply(f"only {mass:.2g} of the probability is on the scale, less than {min_mass:g}", raw)


def _weighed(
    method: Strategy,
    w: expectation.ScoreDistribution,
    *,
    n: int = 1,
    reason: str | None = None,
    raw: str | None = None,
    note: str | None = None,
) -> Provenance:
    return Provenance(method, w.mass, w.distribution, w.entropy, w.argmax, w.low, w.high, n, reason, raw, note)


def _question(prompt: Prompt, criterion: Criterion) -> dict[str, Any]:
    """A criterion as a typed question. The labels of a predicate are the false one, then the true one."""
    scale, kind = criterion.scale, criterion.scale.question
    labels = sorted(scale.labels, key=scale.value) if kind == "predicate" else list(scale.labels)
    return {"name": criterion.name, "type": kind, "instructions": prompt.question, "labels": labels}


def _schema(criterion: Criterion) -> dict[str, Any]:
    """The `response_format` of a reply that is one JSON object."""
    score, reason = _one_of(criterion.scale), {"type": "string"}
    properties = {
        "score": {"score": score},
        "score_then_reason": {"score": score, "reason": reason},
        "reason_then_score": {"reason": reason, "score": score},
    }[criterion.reply]
    return _format("judgment", properties)


def _merged_schema(criteria: Sequence[tuple[str, Scale]]) -> dict[str, Any]:
    """The `response_format` of a reply that has a key for each criterion."""
    return _format("judgments", {name: _one_of(scale) for name, scale in criteria})


def _format(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False
    }  # fmt: skip
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _one_of(scale: Scale) -> dict[str, Any]:
    if all(re.fullmatch("0|-?[1-9][0-9]*", one) for one in scale.labels):
        return {"type": "integer", "enum": [int(one) for one in scale.labels]}
    return {"type": "string", "enum": list(scale.labels)}
