"""Strategies for a score: which requests each one sends and how it turns replies into a number.

In order of preference: `logprobs` (the token probabilities of one reply), `decisions` (the
probabilities of an endpoint for typed questions), `samples` (the mean over several sampled replies;
Liu et al. 2023, G-Eval, section 2.3) and `single` (the score written in one reply).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from judge.core.errors import ConfigError, ParseError, ProviderError
from judge.core.label_spellings import fold, label_index
from judge.core.messages import option
from judge.core.normalization import whole
from judge.core.records import (
    Choice,
    Criterion,
    Message,
    Prompt,
    Provenance,
    Reading,
    Request,
    Response,
    Scale,
    Token,
)
from judge.core.request_options import HIDDEN
from judge.scoring import expectation, parse
from judge.scoring.multi_criteria import split_reply
from judge.scoring.written_score import ParsedScore

Strategy = Literal["logprobs", "decisions", "samples", "single"]
Weighting = Literal["auto", "logprobs", "decisions", "samples", "single"]
Answer = Response | ProviderError
ReadScore = Callable[[Choice], ParsedScore]
"""Reads the score of a reply. Raises ParseError."""

EFFORT = "reasoning_effort"
HEADERS = "headers"
# Every reply of a reasoning model has hidden tokens, which are charged.
REASONING_DRAWS = 5
"""The most replies that `auto` draws from a reasoning model, unless the user set their number."""
TOKEN_LIMIT = {"score": 64, "score_then_reason": 1024, "reason_then_score": 1024}
_DIGEST_LENGTH = 6
"""Characters of a text's digest in a signature."""
_LONGEST_NAME = 40
"""Characters of a parameter's name in a signature."""
_TOP_LOGPROBS = 20
"""The most alternatives for a token that OpenAI's API lists."""
_KEY_TOKENS = 32
"""Room for each key of a reply to several questions."""
_QUOTE_TOKENS = 256
"""Room for a quoted sentence."""
_LOST_SHARE = 0.1
"""The share of draws that may be lost by their label: so few change no mean by much."""
_FEWEST_LOST = 2
_LOST_DIFFERENCE = 0.5
"""The most that the shares of lost draws may differ between two labels."""
_READINGS: tuple[Reading, ...] = ("repaired", "prose")
"""The readings that a mean of draws names if one of its draws was read so."""
_NO_TOKENS = "the reply came without token probabilities"
_ROUNDING = 0.001
"""How far outside its bounds a value may lie, as a share of the scale: less than a table prints.

With no tolerance, a trace of "-" beside "3" on a scale from -3 would cost 20 draws (decision 54).
"""
_AFTER_REASON = "probabilities given one reason that the judge wrote first"
# "top_p=0.9": a parameter that a signature shows unchanged
_PLAIN_PARAMETER = re.compile(r"[\w.-]{1,40}=[\w.+-]{1,40}")
# "4", "-3"
_INTEGER = re.compile("0|-?[1-9][0-9]*")
# "4.5", "-0.25": as JSON writes them, without trailing zeros
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?")


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How requests to the judge are sampled, and how its replies are read.

    `temperature` None is 0, and 1 for several samples; `max_tokens` None chooses the limit by the
    reply kind. `strict` reads a score only in the requested form. `repair` asks once more, for the
    score alone, if a reply has none.

    `system_message` comes first, and `params` are further parameters of every request:
    `reasoning_effort`, the user's keys of the body, and digests of their `headers`.
    `draws_if_reasoning` replaces `draws` once a model turns out to reason.
    """

    weighting: Weighting = "auto"
    min_mass: float = 0.5
    temperature: float | None = None
    max_tokens: int | None = None
    draws: int = 20
    strict: bool = False
    repair: bool = False
    system_message: str = ""
    params: tuple[tuple[str, Any], ...] = ()
    draws_if_reasoning: int | None = None

    def request(
        self,
        model: str,
        messages: Iterable[Message],
        params: Mapping[str, Any],
        **fields: Any,
    ) -> Request:
        """Return a request with the system message and the further parameters."""
        all_messages = list(messages)
        if self.system_message:
            all_messages.insert(0, {"role": "system", "content": self.system_message})
        all_params = {**dict(self.params), **params}
        return Request(model, tuple(all_messages), all_params, **fields)

    @property
    def signature(self) -> list[str]:
        """What a user has added to the requests, as parts of a column's signature."""
        params = dict(self.params)
        effort = params.pop(EFFORT, None)
        headers = params.pop(HEADERS, {})
        parts: list[str] = []
        if effort:
            parts.append(f"effort={effort}")
        if self.system_message:
            digest = _digest(self.system_message)
            parts.append(f"system@{digest}")
        parts += [_signed_parameter(name, value) for name, value in params.items()]
        for header_name, hidden_digest in headers.items():
            short_name = _short(header_name)
            digest = hidden_digest.removeprefix(HIDDEN)[:_DIGEST_LENGTH]
            parts.append(f"{short_name}@{digest}")
        return parts


def _signed_parameter(name: str, value: Any) -> str:
    """Return a parameter as signatures show it: `top_p=0.9`, and a long one by its digest."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    parameter = f"{name}={text}"
    if _PLAIN_PARAMETER.fullmatch(parameter):
        return parameter
    return f"{_short(name)}@{_digest(text)}"


def _short(name: str) -> str:
    """Return a name as signatures show it: `top k` as `top_k`."""
    return re.sub(r"[^\w.-]", "_", name)[:_LONGEST_NAME]


def _digest(text: str) -> str:
    digest = hashlib.sha256(whole(text).encode())
    return digest.hexdigest()[:_DIGEST_LENGTH]


class UnusableReply(ParseError):
    """The reply has a score but lacks what this strategy needs, so the next strategy is tried.

    `lasting`: the model does not support the strategy at all.
    """

    def __init__(self, message: str, raw: str = "", *, lasting: bool = False) -> None:
        super().__init__(message, raw)
        self.lasting = lasting


_ALL_IN_WORDS: tuple[Strategy, ...] = ("logprobs", "samples", "single")
"""The strategies for replies in words. Each needs less of the server than the one before it."""


def strategies_for(settings: SamplingOptions, decides: bool) -> tuple[Strategy, ...]:
    """Return the strategies to try, the preferred one first.

    `decides`: the endpoint takes typed questions only. Raises ConfigError for a weighting that the
    endpoint does not support.
    """
    weighting = settings.weighting
    if decides:
        if weighting not in ("auto", "decisions"):
            with_weighting = option("weighting", weighting)
            raise ConfigError(
                f"{with_weighting}: a decision endpoint gives probabilities by "
                "itself; leave that out"
            )
        return ("decisions",)
    if weighting == "decisions":
        with_weighting = option("weighting", weighting)
        with_endpoint = option("model", "decisions/NAME")
        raise ConfigError(
            f"{with_weighting} takes a decision endpoint: "
            f"{with_endpoint}, for example decisions/gpt-6-luna"
        )
    if weighting != "auto":
        return (weighting,)
    if settings.temperature == 0:
        # All draws at temperature 0 would be the same reply.
        return ("logprobs", "single")
    return _ALL_IN_WORDS


def requests(
    prompt: Prompt,
    criterion: Criterion,
    strategy: Strategy,
    settings: SamplingOptions,
    *,
    model: str = "",
    endpoint: str = "",
    prefix: tuple[str, int] = ("", 0),
) -> tuple[Request, ...]:
    """Return the requests of a strategy, one for each reply with its own cache entry."""
    if strategy == "decisions":
        params = _decision_params(prompt, criterion)
    else:
        params = _chat_params(prompt, criterion, strategy, settings)
    draws = settings.draws if strategy == "samples" else 1
    all_requests: list[Request] = []
    for draw in range(draws):
        request = settings.request(
            model,
            prompt.messages,
            params,
            draw=draw,
            endpoint=endpoint,
            prefix=prefix,
        )
        all_requests.append(request)
    return tuple(all_requests)


def _decision_params(prompt: Prompt, criterion: Criterion) -> dict[str, Any]:
    scale = criterion.scale.asked
    labels = list(scale.labels)
    if scale.question == "predicate":
        # The labels of a predicate are the false one, then the true one.
        labels = sorted(labels, key=scale.value)
    question = {
        "name": criterion.name,
        "type": scale.question,
        "instructions": prompt.question,
        "labels": labels,
    }
    return {"questions": [question]}


def _chat_params(
    prompt: Prompt,
    criterion: Criterion,
    strategy: Strategy,
    settings: SamplingOptions,
) -> dict[str, Any]:
    temperature = settings.temperature
    if temperature is None:
        temperature = 1.0 if strategy == "samples" else 0.0
    token_limit = TOKEN_LIMIT[criterion.reply]
    if criterion.cites:
        token_limit += _QUOTE_TOKENS
    if prompt.merged:
        token_limit = TOKEN_LIMIT["score"] + _KEY_TOKENS * len(prompt.merged)
    params: dict[str, Any] = {
        "temperature": temperature,
        "max_tokens": settings.max_tokens or token_limit,
    }
    if strategy == "logprobs":
        params["top_logprobs"] = _TOP_LOGPROBS
    if prompt.merged:
        schemas = {name: _label_schema(scale) for name, scale in prompt.merged}
        params["response_format"] = _response_format("judgments", schemas)
    elif criterion.form == "json":
        schemas = _judgment_schema(criterion)
        params["response_format"] = _response_format("judgment", schemas)
    return params


def _judgment_schema(criterion: Criterion) -> dict[str, Any]:
    """Return the schema of each key of a reply in JSON, in the order of the reply kind."""
    words = {"type": "string"}
    schemas = {"score": _label_schema(criterion.scale), "reason": words, "quote": words}
    keys = criterion.reply.split("_then_")
    if criterion.cites:
        keys.insert(1, "quote")
    return {key: schemas[key] for key in keys}


def _response_format(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    json_schema = {"name": name, "strict": True, "schema": schema}
    return {"type": "json_schema", "json_schema": json_schema}


def _label_schema(scale: Scale) -> dict[str, Any]:
    labels = scale.asked.labels
    if all(_INTEGER.fullmatch(label) for label in labels):
        return {"type": "integer", "enum": [int(label) for label in labels]}
    if all(_DECIMAL.fullmatch(label) for label in labels):
        return {"type": "number", "enum": [float(label) for label in labels]}
    return {"type": "string", "enum": list(labels)}


@dataclass(frozen=True, slots=True)
class Question:
    """What one judgment asks the judge, and the strategies to try, the preferred one first."""

    prompt: Prompt
    criterion: Criterion
    settings: SamplingOptions
    strategies: tuple[Strategy, ...]

    def requests(
        self,
        strategy: Strategy,
        model: str,
        endpoint: str,
        prefix: tuple[str, int],
    ) -> tuple[Request, ...]:
        """Return the requests of a strategy."""
        return requests(
            self.prompt,
            self.criterion,
            strategy,
            self.settings,
            model=model,
            endpoint=endpoint,
            prefix=prefix,
        )

    def own_part(self, answers: Iterable[Answer], judged: str) -> list[Answer]:
        """Return the part of answers to several questions of a checklist that answers this one."""
        names = tuple(name for name, _ in self.prompt.merged)
        if not names:
            return list(answers)
        scales = tuple({scale for _, scale in self.prompt.merged})
        position = names.index(self.criterion.name)
        parts: list[Answer] = []
        for answer in answers:
            if isinstance(answer, ProviderError):
                parts.append(answer)
                continue
            choices_by_reply = [
                split_reply(choice, names, judged, scales) for choice in answer.choices
            ]
            choices = tuple(part_choices[position] for part_choices in choices_by_reply)
            parts.append(replace(answer, choices=choices))
        return parts

    def score(
        self,
        strategy: Strategy,
        answers: Sequence[Answer],
        notes: Sequence[str],
        judged: str,
    ) -> tuple[float, Provenance]:
        """Return the value of the answers, and its provenance. Raises like `score_reply`."""
        return score_reply(
            strategy, answers, self.criterion, self.settings, notes, judged=judged
        )


def first_choices(answers: Iterable[Answer]) -> list[Choice]:
    """Return the first reply of each answer that has one."""
    replies = [answer for answer in answers if isinstance(answer, Response)]
    return [reply.choices[0] for reply in replies if reply.choices]


def fallback_reply(answers: Iterable[Answer]) -> Response | None:
    """Return the first answer in words, from which the strategy `single` can read a score."""
    return next((answer for answer in answers if isinstance(answer, Response)), None)


def score_reply(
    strategy: Strategy,
    answers: Sequence[Answer],
    criterion: Criterion,
    settings: SamplingOptions,
    notes: Sequence[str] = (),
    *,
    judged: str | None = None,
) -> tuple[float, Provenance]:
    """Return the value of the answers to a strategy's requests, and its provenance.

    `notes` say why earlier strategies failed; `judged` are the judged texts, None to read strictly.
    Raises ParseError if there is no score, UnusableReply if the next strategy should be tried, and
    the first ProviderError if there is no answer at all. A quotation may not be in the texts:
    `quotes.find_quote` looks for it.
    """
    replies = [answer for answer in answers if isinstance(answer, Response)]
    if not replies:
        raise next(answer for answer in answers if isinstance(answer, ProviderError))
    if not all(reply.choices for reply in replies):
        raise ParseError("the response holds no reply")
    choices = [reply.choices[0] for reply in replies]
    choice = choices[0]
    strict = settings.strict
    read_score = partial(read, criterion=criterion, judged=judged, strict=strict)
    if strategy == "samples":
        scores, trouble = read_draws(choices, read_score)
        return average_draws(
            choices,
            scores,
            criterion,
            requested=len(answers),
            notes=notes,
            trouble=trouble,
        )
    if strategy == "logprobs":
        min_mass = settings.min_mass
        return _score_of_first_reply(replies[0], criterion, min_mass, read_score)
    if strategy == "decisions":
        return _score_by_probabilities(choice, criterion, settings.min_mass)
    score = read_score(choice)
    note = "; ".join(notes) or None
    provenance = Provenance(
        "single",
        argmax=score.label,
        raw=choice.text,
        note=note,
        **_beside_score(score),
    )
    return criterion.scale.value(score.label), provenance


def _score_of_first_reply(
    reply: Response,
    criterion: Criterion,
    min_mass: float,
    read_score: ReadScore,
) -> tuple[float, Provenance]:
    """Return the score by the token probabilities of a reply.

    Raises UnusableReply, which is lasting if the server gives no token probabilities.
    """
    choice = reply.choices[0]
    if "logprobs" in reply.unmet and choice.tokens is None:
        # One reply without a score says nothing about the draws that follow, so it is not
        # repaired.
        raise UnusableReply(_NO_TOKENS, choice.text, lasting=True)
    try:
        return _score_by_logprobs(choice, criterion, min_mass, read_score)
    except UnusableReply as error:
        if reply.may_be_another_form:
            error.lasting = False
        raise


def read(
    choice: Choice,
    criterion: Criterion,
    judged: str | None,
    *,
    strict: bool = False,
) -> ParsedScore:
    """Return the score of a reply on a criterion. Raises ParseError."""
    return parse.read(
        choice,
        criterion.reply,
        criterion.scale,
        criterion.title,
        judged,
        strict=strict,
        cite=criterion.cites,
    )


def _beside_score(score: ParsedScore) -> dict[str, Any]:
    """Return what a reply says beside its score, and how that was read, for a provenance."""
    return {"reason": score.reason, "quote": score.quote, "reading": score.reading}


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a reply has its score.

    `score` is None if the text there is no label of the scale, for the reason in `trouble`.
    """

    start: int
    score: ParsedScore | None = None
    trouble: ParseError | None = None

    @property
    def label(self) -> str | None:
        return None if self.score is None else self.score.label


def _find_position(choice: Choice, read_score: ReadScore) -> _Position:
    """Return where a reply has its score. Raises ParseError if that is not known."""
    try:
        score = read_score(choice)
    except ParseError as error:
        if error.position is None:
            raise
        return _Position(error.position, trouble=error)
    return _Position(score.start, score)


def _score_by_logprobs(
    choice: Choice,
    criterion: Criterion,
    min_mass: float,
    read_score: ReadScore,
) -> tuple[float, Provenance]:
    """Return the mean over the token probabilities at the score's position."""
    position = _find_position(choice, read_score)
    if choice.tokens is None:
        raise position.trouble or UnusableReply(_NO_TOKENS, choice.text, lasting=True)
    try:
        position_in_tokens = position
        token_text = "".join(token.text for token in choice.tokens)
        if token_text != choice.text:
            # The joined text may differ from the reply in white space and at its ends.
            position_in_tokens = _find_position(Choice(token_text), read_score)
        weights = _weigh(choice, choice.tokens, position_in_tokens, criterion)
    except UnusableReply:
        raise
    except ParseError as error:
        raise position.trouble or UnusableReply(str(error), choice.text) from error
    label_in_tokens = position_in_tokens.label
    if label_in_tokens != position.label:
        problem = f"the tokens say {label_in_tokens}, the reply {position.label}"
        raise position.trouble or UnusableReply(problem, choice.text)
    _check_mass(weights.mass, min_mass, choice.text)
    _check_bounds(weights, criterion.scale, choice.text)
    notes: list[str] = []
    beside: dict[str, Any] = {"reading": "strict"}
    if position.score is not None:
        beside = _beside_score(position.score)
        if criterion.reply == "reason_then_score" and position.score.reason:
            notes.append(_AFTER_REASON)
    if position.trouble is not None:
        notes.append(
            f"the other likely tokens have a score, the reply has none: {position.trouble}"
        )
    note = "; ".join(notes) or None
    provenance = _provenance("logprobs", weights, raw=choice.text, note=note, **beside)
    return weights.value, provenance


def _weigh(
    choice: Choice,
    tokens: Sequence[Token],
    position: _Position,
    criterion: Criterion,
) -> expectation.ScoreDistribution:
    """Return the distribution over the scale at a position of the tokens."""
    # Half points that the prompt does not offer count only if the judge wrote one.
    scale = criterion.scale
    if position.label is None or position.label in scale.asked.labels:
        scale = scale.asked
    if _lists_the_chosen_token_alone(tokens, position.start):
        raise UnusableReply(
            "the server lists at most 1 probability for a token",
            choice.text,
            lasting=True,
        )
    return expectation.from_logprobs(
        tokens,
        position.start,
        position.label,
        scale,
        in_other_words=_is_in_other_words(position, tokens, scale),
    )


def _is_in_other_words(
    position: _Position, tokens: Sequence[Token], scale: Scale
) -> bool:
    """Return whether a reply gives a label in a word of its own, such as "true" for yes."""
    if position.score is None or label_index(scale).numbers:
        return False
    text = "".join(token.text for token in tokens)
    written = text[position.score.start : position.score.end]
    return label_index(scale).label(fold(written)) is None


def _lists_the_chosen_token_alone(tokens: Sequence[Token], start: int) -> bool:
    """Return whether the token at `start` lists no alternatives.

    A token with all of the probability has none to list.
    """
    end = 0
    for token in tokens:
        end += len(token.text)
        if start < end:
            return token.lacks_alternatives
    return False


def _check_mass(mass: float, min_mass: float, raw: str) -> None:
    if mass < min_mass:
        share = f"only {mass:.2g} of the probability is on the scale"
        raise UnusableReply(f"{share}, less than {min_mass:g}", raw)


def _check_bounds(
    weights: expectation.ScoreDistribution, scale: Scale, raw: str
) -> None:
    rounding = _ROUNDING * (scale.high - scale.low)
    if not weights.low - rounding <= weights.value <= weights.high + rounding:
        raise UnusableReply(
            f"{weights.ambiguous:.2g} of the probability is on tokens that begin several labels, "
            f"so the value is between {weights.low:.2f} and {weights.high:.2f}, "
            f"not exactly {weights.value:.2f}",
            raw,
        )


def read_draws(
    choices: Sequence[Choice],
    read_score: ReadScore,
) -> tuple[list[ParsedScore | None], ParseError | None]:
    """Return the score of each reply, None for one without a score, and the first error."""
    score_by_reply: dict[tuple[str, str], ParsedScore | None] = {}
    scores: list[ParsedScore | None] = []
    trouble: ParseError | None = None
    for choice in choices:
        reply = (choice.text, choice.finish_reason)
        if reply not in score_by_reply:  # most draws are one of a few words
            try:
                score_by_reply[reply] = read_score(choice)
            except ParseError as error:
                score_by_reply[reply] = None
                trouble = trouble or error
        scores.append(score_by_reply[reply])
    return scores, trouble


def average_draws(
    choices: Sequence[Choice],
    scores: Sequence[ParsedScore | None],
    criterion: Criterion,
    *,
    requested: int,
    notes: Sequence[str],
    trouble: ParseError | None,
) -> tuple[float, Provenance]:
    """Return the mean of the replies that have a score; the note counts those that have none.

    `requested` is the number of requests, and `trouble` why a reply has no score. Raises
    UnusableReply if no reply has one, and ParseError if the scores left are a selection.
    """
    raw = parse.join_replies(choices)
    parsed = [score for score in scores if score is not None]
    n_draws = len(choices)
    if not parsed:
        raise UnusableReply(f"none of {n_draws} draws has a score: {trouble}", raw)
    selection = _lost_by_label(choices, scores, criterion)
    if selection:
        raise ParseError(selection, raw)
    labels = [score.label if score else None for score in scores]
    weights = expectation.from_samples(labels, criterion.scale)
    messages = list(notes)
    n_without_score = n_draws - len(parsed)
    if n_without_score:
        messages.append(f"{n_without_score} of {n_draws} draws had no score: {trouble}")
    n_unanswered = requested - n_draws
    if n_unanswered:
        messages.append(f"{n_unanswered} of {requested} draws were not answered")
    likeliest = [score for score in parsed if score.label == weights.argmax]
    provenance = _provenance(
        "samples",
        weights,
        n=len(parsed),
        raw=raw,
        note="; ".join(messages) or None,
        reading=_least_strict_reading(parsed),
        reason=likeliest[0].reason,
        quote=_most_frequent_quote(likeliest),
    )
    return weights.value, provenance


def _least_strict_reading(scores: Iterable[ParsedScore]) -> Reading:
    """Return the least strict way in which one of the draws was read."""
    readings = {score.reading for score in scores}
    for reading in _READINGS:
        if reading in readings:
            return reading
    return "strict"


def _most_frequent_quote(scores: Iterable[ParsedScore]) -> str | None:
    """Return the most frequent quotation, None if no draw has one."""
    counts = Counter(score.quote for score in scores if score.quote)
    return max(counts, key=counts.__getitem__, default=None)


def _lost_by_label(
    choices: Sequence[Choice],
    scores: Sequence[ParsedScore | None],
    criterion: Criterion,
) -> str:
    """Return why the draws that count are a selection by their label, "" if they are not.

    A draw may be refused because the judged text has the same number. If that happens to one label
    and not to another, the mean of the rest is the mean of another distribution.
    """
    counted = Counter(score.label for score in scores if score is not None)
    lost: Counter[str] = Counter()
    for choice, score in zip(choices, scores, strict=True):
        if score is not None:
            continue
        try:
            # Without a judged text, nothing is refused because that text has it.
            lost_score = read(choice, criterion, "")
        except ParseError:
            continue  # this draw has no score at all
        lost[lost_score.label] += 1
    if lost.total() < max(_FEWEST_LOST, _LOST_SHARE * len(choices)):
        return ""
    lost_shares = []
    for label in {*lost, *counted}:
        n_read = lost[label] + counted[label]
        lost_shares.append(lost[label] / n_read)
    if max(lost_shares) - min(lost_shares) <= _LOST_DIFFERENCE:
        return ""
    label, count = lost.most_common(1)[0]
    return (
        f"{count} of {len(choices)} draws give {label} in words of the judged text and do not "
        "count; the other draws count"
    )


def _score_by_probabilities(
    choice: Choice,
    criterion: Criterion,
    min_mass: float,
) -> tuple[float, Provenance]:
    """Return the mean over the probabilities that a decision endpoint gives."""
    if choice.shares is None:
        raise ParseError("the judge refused to answer the question", choice.text)
    weights = expectation.from_probabilities(dict(choice.shares), criterion.scale)
    _check_mass(weights.mass, min_mass, choice.text)
    return weights.value, _provenance("decisions", weights)


def _provenance(
    method: Strategy,
    weights: expectation.ScoreDistribution,
    **reply: Any,
) -> Provenance:
    return Provenance(
        method,
        mass=weights.mass,
        distribution=weights.distribution,
        entropy=weights.entropy,
        argmax=weights.argmax,
        low=weights.low,
        high=weights.high,
        **reply,
    )
