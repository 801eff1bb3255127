"""Strategies for a score: which requests each one sends and how it turns the replies into a number.

In order of preference: `logprobs` (the token probabilities of one reply), `decisions` (the probabilities of an endpoint
for typed questions), `samples` (the mean over several sampled replies; Liu et al. 2023, G-Eval, section 2.3) and
`single` (the score written in one reply).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from judge.core.errors import ConfigError, JudgeError, ParseError, ProviderError
from judge.core.messages import option
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
    whole,
)
from judge.core.request_options import HIDDEN
from judge.scoring import expectation, parse
from judge.scoring.multi_criteria import split_reply
from judge.scoring.written_score import ParsedScore

Strategy = Literal["logprobs", "decisions", "samples", "single"]
Weighting = Literal["auto", "logprobs", "decisions", "samples", "single"]
Answer = Response | ProviderError
Reader = Callable[[Choice], ParsedScore]
"""Reads the score of a reply. Raises ParseError."""

EFFORT, HEADERS = "reasoning_effort", "headers"
REASONING_DRAWS = 5
"""The most replies that `auto` draws from a model that reasons, unless the user set their number."""
_DIGEST_LENGTH = 6
"""Of a text's digest in a signature."""
_TOP_LOGPROBS = 20
_KEY_TOKENS = 32
_TOKEN_LIMIT = {"score": 64, "score_then_reason": 1024, "reason_then_score": 1024}
_QUOTE_TOKENS = 256
"""Room for a quoted sentence."""
_NOT_REPAIRED = ("refusal", "content_filter", "abort")
"""Finish reasons after which no question for the score alone is asked."""
_LONGEST_THINKING = 4_000
"""Characters of a reply's thinking that are sent back, from its end."""
_LOST_SHARE = 0.1
"""The share of draws that may be lost by their label: so few change no mean by much."""
_LOST_DIFFERENCE = 0.5
"""The most that the shares of lost draws may differ between two labels."""
_READINGS: tuple[Reading, ...] = ("repaired", "prose")
"""The readings that a mean of draws names if one of its draws was read so."""
_NO_TOKENS = "the reply came without token probabilities"
_ROUNDING = 0.001
"""How far outside its bounds a value may lie, as a share of the scale: less than a table prints."""
_AFTER_REASON = "probabilities given one reason that the judge wrote first"


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How the judge is asked, and how its replies are read.

    `temperature` None is 0, and 1 for several samples; `max_tokens` None chooses the limit by the reply kind. `strict`
    reads a score only in the requested form. `repair` asks once more, for the score alone, if a reply has none.

    `system_message` comes first, and `params` are further parameters of every request: `reasoning_effort`, the
    user's keys of the body, and digests of their `headers`. `draws_if_reasoning` replaces `draws` once a model
    turns out to reason.
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
        self, model: str, messages: Iterable[Message], params: Mapping[str, Any], **fields: Any
    ) -> Request:
        """Return a request with the system message and the further parameters."""
        first: tuple[Message, ...] = (
            ({"role": "system", "content": self.system_message},) if self.system_message else ()
        )
        return Request(model, (*first, *messages), {**dict(self.params), **params}, **fields)

    @property
    def signature(self) -> list[str]:
        """What a user has added to the requests, as parts of a column's signature."""
        params = dict(self.params)
        effort, headers = params.pop(EFFORT, None), params.pop(HEADERS, {})
        parts = [f"effort={effort}"] if effort else []
        parts += [f"system@{_digest(self.system_message)}"] if self.system_message else []
        for name, value in params.items():
            text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
            plain = re.fullmatch(r"[\w.-]{1,40}=[\w.+-]{1,40}", f"{name}={text}")
            parts.append(plain[0] if plain else f"{_short(name)}@{_digest(text)}")
        for name, digest in headers.items():
            parts.append(f"{_short(name)}@{digest.removeprefix(HIDDEN)[:_DIGEST_LENGTH]}")
        return parts


def _short(name: str) -> str:
    """Return a name as it stands in signatures: `top k` as `top_k`."""
    return re.sub(r"[^\w.-]", "_", name)[:40]


def _digest(text: str) -> str:
    return hashlib.sha256(whole(text).encode()).hexdigest()[:_DIGEST_LENGTH]


class UnusableReply(ParseError):
    """The reply has a score but lacks what this strategy needs, so the next strategy is tried.

    `lasting`: the model does not support the strategy at all.
    """

    def __init__(self, message: str, raw: str = "", *, lasting: bool = False) -> None:
        super().__init__(message, raw)
        self.lasting = lasting


def strategies_for(settings: SamplingOptions, decides: bool) -> tuple[Strategy, ...]:
    """Return the strategies to try, the preferred one first. `decides`: the endpoint takes typed questions only.

    Raises ConfigError for a weighting that the endpoint does not support.
    """
    weighting = settings.weighting
    if decides:
        if weighting not in ("auto", "decisions"):
            raise ConfigError(
                f"{option('weighting', weighting)}: a decision endpoint gives probabilities by itself; leave that out"
            )
        return ("decisions",)
    if weighting == "decisions":
        raise ConfigError(
            f"{option('weighting', 'decisions')} takes a decision endpoint: {option('model', 'decisions/NAME')}, for "
            "example decisions/gpt-6-luna"
        )
    if weighting == "auto":
        return (
            ("logprobs", "single")
            if settings.temperature == 0
            else ("logprobs", "samples", "single")
        )
    return (weighting,)


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
    params: dict[str, Any]
    if strategy == "decisions":
        scale, kind = criterion.scale.asked, criterion.scale.asked.question
        # The labels of a predicate are the false one, then the true one.
        labels = (
            sorted(scale.labels, key=scale.value) if kind == "predicate" else list(scale.labels)
        )
        question = {
            "name": criterion.name,
            "type": kind,
            "instructions": prompt.question,
            "labels": labels,
        }
        params = {"questions": [question]}
    else:
        params = {
            "temperature": float(strategy == "samples")
            if settings.temperature is None
            else settings.temperature,
            "max_tokens": settings.max_tokens
            or _TOKEN_LIMIT[criterion.reply] + _QUOTE_TOKENS * criterion.cites,
        }
        if strategy == "logprobs":
            params["top_logprobs"] = _TOP_LOGPROBS
        if prompt.merged:
            schemas = {name: _label_schema(scale) for name, scale in prompt.merged}
            params["response_format"] = _response_format("judgments", schemas)
            params["max_tokens"] = settings.max_tokens or _TOKEN_LIMIT["score"] + _KEY_TOKENS * len(
                prompt.merged
            )
        elif criterion.form == "json":
            words = {"type": "string"}
            properties = {"score": _label_schema(criterion.scale), "reason": words, "quote": words}
            keys = criterion.reply.split("_then_")
            keys[1:1] = ["quote"] * criterion.cites
            params["response_format"] = _response_format(
                "judgment", {key: properties[key] for key in keys}
            )
    draws = range(settings.draws if strategy == "samples" else 1)
    return tuple(
        settings.request(
            model, prompt.messages, params, draw=draw, endpoint=endpoint, prefix=prefix
        )
        for draw in draws
    )


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked in one judgment, and the strategies to try, the preferred one first."""

    prompt: Prompt
    criterion: Criterion
    settings: SamplingOptions
    strategies: tuple[Strategy, ...]

    def requests(
        self, strategy: Strategy, model: str, endpoint: str, prefix: tuple[str, int]
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
        """Return of answers to several questions of a checklist the part that answers this one."""
        names = tuple(name for name, _ in self.prompt.merged)
        if not names:
            return list(answers)
        place = names.index(self.criterion.name)

        def own(answer: Answer) -> Answer:
            if isinstance(answer, ProviderError):
                return answer
            parts = (split_reply(choice, names, judged)[place] for choice in answer.choices)
            return replace(answer, choices=tuple(parts))

        return [own(answer) for answer in answers]

    def score(
        self, strategy: Strategy, answers: Sequence[Answer], notes: Sequence[str], judged: str
    ) -> tuple[float, Provenance]:
        """Return the value of the answers, and its provenance. Raises like `score_reply`."""
        return score_reply(strategy, answers, self.criterion, self.settings, notes, judged=judged)


@dataclass(frozen=True, slots=True)
class Repair(Question):
    """The question for the score alone, and how its answer is read, after a `reply` without one.

    `trouble` says why it has none, and `strategy` is the one that requested it.
    """

    reply: Choice
    strategy: Strategy
    trouble: ParseError

    def score(
        self, strategy: Strategy, answers: Sequence[Answer], notes: Sequence[str], judged: str
    ) -> tuple[float, Provenance]:
        """Return the value of the answers, and its provenance. Raises like `score_reply`."""
        value, provenance = score_reply(
            strategy, answers, self.criterion, self.settings, notes, judged=judged
        )
        return value, self.provenance(answers, provenance)

    def provenance(self, answers: Sequence[Answer], provenance: Provenance) -> Provenance:
        """Return the provenance of a score that was read in the answer."""
        note = "; ".join(
            filter(None, [provenance.note, f"asked again for the score alone: {self.trouble}"])
        )
        raw = parse.join_replies([self.reply, *_choices(answers)])
        reason = _text_or_empty(self.reply) or None
        return replace(provenance, reading="repaired", reason=reason, raw=raw, note=note)

    def failure(self, answers: Sequence[Answer], error: JudgeError) -> ParseError:
        """Return the error of a judgment that still has no score."""
        raw, outcome = self.trouble.raw, "was not answered"
        if answers:
            raw, outcome = parse.join_replies([self.reply, *_choices(answers)]), "did not help"
        reason = f": {error}" if str(error) != str(self.trouble) else ""
        return ParseError(
            f"{self.trouble}; the question for the score alone {outcome}{reason}", raw
        )


@dataclass(frozen=True, slots=True)
class DrawRepair(Repair):
    """The questions for the score alone after the draws of a judgment that have none: one for each different reply.

    `draws` are all replies and `scores` what was read in them; `requested` is how many were asked for. `questions` maps
    the replies without a score to the messages that ask again.
    """

    draws: tuple[Choice, ...] = ()
    scores: tuple[ParsedScore | None, ...] = ()
    requested: int = 0
    questions: Mapping[str, tuple[Message, ...]] = field(default_factory=dict)

    def requests(
        self, strategy: Strategy, model: str, endpoint: str, prefix: tuple[str, int]
    ) -> tuple[Request, ...]:
        """Return a request for each question."""
        asked: list[Request] = []
        for messages in self.questions.values():
            prompt = replace(self.prompt, messages=messages)
            asked += requests(
                prompt,
                self.criterion,
                strategy,
                self.settings,
                model=model,
                endpoint=endpoint,
                prefix=prefix,
            )
        return tuple(asked)

    def score(
        self, strategy: Strategy, answers: Sequence[Answer], notes: Sequence[str], judged: str
    ) -> tuple[float, Provenance]:
        """Return the mean over all draws, those among them that were asked again included."""
        found: dict[str, ParsedScore] = {}
        for text, answer in zip(self.questions, answers, strict=True):
            if isinstance(answer, Response) and answer.choices:
                try:
                    read_again = read(
                        answer.choices[0], self.criterion, judged, strict=self.settings.strict
                    )
                    found[text] = replace(read_again, reading="repaired")
                except ParseError:
                    continue  # counted among the draws without a score
        scores = [
            score or found.get(draw.text)
            for draw, score in zip(self.draws, self.scores, strict=True)
        ]
        repaired = sum(
            before is None and after is not None
            for before, after in zip(self.scores, scores, strict=True)
        )
        asked = f"{repaired} of {len(self.draws)} draws were asked again for the score alone: {self.trouble}"
        value, provenance = _average_draws(
            self.draws,
            scores,
            self.criterion,
            requested=self.requested,
            notes=[*notes, asked] if repaired else notes,
            trouble=self.trouble,
        )
        return value, replace(provenance, raw=parse.join_replies([*self.draws, *_choices(answers)]))


def repair(
    answers: Iterable[Answer],
    prompt: Prompt,
    criterion: Criterion,
    strategy: Strategy,
    *,
    settings: SamplingOptions,
    trouble: ParseError,
    question: str,
) -> Repair | None:
    """Return the question for the score alone after the first reply that allows it, None if there is none.

    Not after a refusal, what a filter or server broke off, an empty reply, or the answer to a typed question, nor after
    draws, as one cannot stand for all (see `repair_draws`). Only the finish reason says that a reply is a refusal.
    """
    if strategy in ("decisions", "samples"):
        return None
    for choice in _choices(answers):
        messages = _question_after(choice, prompt, question)
        if messages is not None:
            return Repair(
                replace(prompt, messages=messages, merged=()),
                replace(criterion, reply="score", form="text", cite=False),
                _repair_settings(settings, choice),
                ("logprobs", "single") if strategy == "logprobs" else ("single",),
                choice,
                strategy,
                trouble,
            )
    return None


def repair_draws(
    answers: Sequence[Answer],
    prompt: Prompt,
    criterion: Criterion,
    *,
    settings: SamplingOptions,
    judged: str | None,
    question: str,
) -> DrawRepair | None:
    """Return the questions after the draws that have no score, None if all have one or none can be asked again."""
    draws = _choices(answers)
    scores, trouble = _read_draws(
        draws, partial(read, criterion=criterion, judged=judged, strict=settings.strict)
    )
    questions: dict[str, tuple[Message, ...]] = {}
    asked_again: list[Choice] = []
    for draw, score in zip(draws, scores, strict=True):
        if score is None and draw.text not in questions:
            messages = _question_after(draw, prompt, question)
            if messages is not None:
                questions[draw.text] = messages
                asked_again.append(draw)
    if trouble is None or not questions:
        return None
    trouble = ParseError(str(trouble), parse.join_replies(draws))
    return DrawRepair(
        replace(prompt, messages=questions[asked_again[0].text], merged=()),
        replace(criterion, reply="score", form="text", cite=False),
        max(
            (_repair_settings(settings, draw) for draw in asked_again),
            key=lambda one: one.max_tokens or 0,
        ),
        ("single",),
        asked_again[0],
        "samples",
        trouble,
        draws=tuple(draws),
        scores=tuple(scores),
        requested=len(answers),
        questions=questions,
    )


def _question_after(choice: Choice, prompt: Prompt, question: str) -> tuple[Message, ...] | None:
    """Return the messages that ask again after a reply, None if it cannot be asked again."""
    if choice.shares is not None or choice.finish_reason in _NOT_REPAIRED:
        return None
    # Thinking alone is sent back as the judge's turn, because chat templates want turns to alternate.
    text = whole(_text_or_empty(choice) or choice.text.strip()[-_LONGEST_THINKING:])
    if not text:
        return None
    if prompt.merged and choice.finish_reason in (
        "stop",
        parse.NEARLY_JSON,
    ):  # the question's part of a reply
        text = f"{{{json.dumps(prompt.criterion, ensure_ascii=False)}: {text}}}"
    return (
        *prompt.messages,
        {"role": "assistant", "content": text},
        {"role": "user", "content": question},
    )


def _repair_settings(settings: SamplingOptions, choice: Choice) -> SamplingOptions:
    """Return how to ask again: a judge that writes down its thinking gets room to do so again."""
    thinks = _text_or_empty(choice) != whole(choice.text).strip()
    limit = _TOKEN_LIMIT["reason_then_score" if thinks else "score"]
    return replace(settings, temperature=0.0, max_tokens=settings.max_tokens or limit)


def text_alone(choice: Choice) -> str:
    """Return the text of a reply, finished or not, without its thinking. Raises ParseError if nothing is left."""
    return parse.reply_text(replace(choice, finish_reason="stop"))


def _text_or_empty(choice: Choice) -> str:
    try:
        return text_alone(choice)
    except ParseError:
        return ""


def _choices(answers: Iterable[Answer]) -> list[Choice]:
    """Return the first reply of each answer that has one."""
    return [
        answer.choices[0] for answer in answers if isinstance(answer, Response) and answer.choices
    ]


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

    `notes` say why earlier strategies failed; `judged` are the judged texts, None to read strictly. Raises ParseError
    if there is no score, UnusableReply if the next strategy should be tried, and the first ProviderError if there is no
    answer at all. A quotation may not be in the texts: `quotes.find_quote` looks for it.
    """
    replies = [answer for answer in answers if isinstance(answer, Response)]
    if not replies:
        raise next(answer for answer in answers if isinstance(answer, ProviderError))
    if not all(reply.choices for reply in replies):
        raise ParseError("the response holds no reply")
    choices = [reply.choices[0] for reply in replies]
    reader = partial(read, criterion=criterion, judged=judged, strict=settings.strict)
    if strategy == "samples":
        return _score_by_samples(choices, len(answers), criterion, notes, reader)
    if strategy == "logprobs":
        if "logprobs" in replies[0].unmet and choices[0].tokens is None:
            # One reply without a score says nothing of the draws that follow, so it is not repaired.
            raise UnusableReply(_NO_TOKENS, choices[0].text, lasting=True)
        return _score_by_logprobs(choices[0], criterion, settings.min_mass, reader)
    if strategy == "decisions":
        shares, text = choices[0].shares, choices[0].text
        if shares is None:
            raise ParseError("the judge refused to answer the question", text)
        return _score_by_probabilities(shares, criterion, settings.min_mass, text)
    score = reader(choices[0])
    raw, note = choices[0].text, "; ".join(notes) or None
    how = Provenance("single", argmax=score.label, raw=raw, note=note, **_told(score))
    return criterion.scale.value(score.label), how


def read(
    choice: Choice, criterion: Criterion, judged: str | None, *, strict: bool = False
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


def _told(score: ParsedScore) -> dict[str, Any]:
    """Return what a reply says beside its score, and how that was read."""
    return {"reason": score.reason, "quote": score.quote, "reading": score.reading}


def _score_by_logprobs(
    choice: Choice, criterion: Criterion, min_mass: float, reader: Reader
) -> tuple[float, Provenance]:
    place: tuple[int, str | None]
    trouble, told = None, dict[str, Any](reading="strict")
    try:
        written = reader(choice)
        place, told = (written.start, written.label), _told(written)
    except ParseError as error:
        if error.place is None or choice.tokens is None:
            raise
        place, trouble = (error.place, None), error
    if choice.tokens is None:
        raise UnusableReply(_NO_TOKENS, choice.text, lasting=True)
    text = "".join(token.text for token in choice.tokens)
    try:
        start, found = place
        if (
            text != choice.text
        ):  # their joined text may differ from the reply in white space and at its ends
            try:
                said = reader(Choice(text))
                start, found = said.start, said.label
            except ParseError as error:
                if error.place is None:
                    raise
                start, found = error.place, None
        # Half points that the prompt does not ask for count only if the judge wrote one.
        scale = (
            criterion.scale.asked
            if found in (None, *criterion.scale.asked.labels)
            else criterion.scale
        )
        if _lists_the_chosen_token_alone(choice.tokens, start):
            raise UnusableReply(
                "the server lists at most 1 probability for a token", choice.text, lasting=True
            )
        w = expectation.from_logprobs(choice.tokens, start, found, scale)
    except UnusableReply:
        raise
    except ParseError as error:
        raise trouble or UnusableReply(str(error), choice.text) from error
    if found != place[1]:
        raise trouble or UnusableReply(f"the tokens say {found}, the reply {place[1]}", choice.text)
    _check_mass(w.mass, min_mass, choice.text)
    rounding = _ROUNDING * (criterion.scale.high - criterion.scale.low)
    if not w.low - rounding <= w.value <= w.high + rounding:
        raise UnusableReply(
            f"{w.ambiguous:.2g} of the probability is on beginnings of several labels, which puts the value between "
            f"{w.low:.2f} and {w.high:.2f}, not at {w.value:.2f}",
            choice.text,
        )
    notes = [_AFTER_REASON] if criterion.reply == "reason_then_score" else []
    notes += (
        [f"the other likely tokens have a score, the reply has none: {trouble}"] if trouble else []
    )
    return w.value, _provenance(
        "logprobs", w, raw=choice.text, note="; ".join(notes) or None, **told
    )


def _lists_the_chosen_token_alone(tokens: Sequence[Token], start: int) -> bool:
    """Return whether the token at a place has no alternatives, though it does not have all of the probability."""
    position = 0
    for token in tokens:
        position += len(token.text)
        if start < position:
            return token.lacks_alternatives
    return False


def _score_by_samples(
    choices: Sequence[Choice],
    requested: int,
    criterion: Criterion,
    notes: Sequence[str],
    reader: Reader,
) -> tuple[float, Provenance]:
    """Average the replies that have a score; count those that have none in the note."""
    scores, trouble = _read_draws(choices, reader)
    return _average_draws(
        choices, scores, criterion, requested=requested, notes=notes, trouble=trouble
    )


def _read_draws(
    choices: Sequence[Choice], reader: Reader
) -> tuple[list[ParsedScore | None], ParseError | None]:
    """Return what is read in each reply, None for one without a score, and the first error."""
    places: dict[tuple[str, str], ParsedScore | None] = {}
    trouble: ParseError | None = None
    for choice in choices:
        reply = choice.text, choice.finish_reason
        if reply not in places:  # most draws are one of a few words
            try:
                places[reply] = reader(choice)
            except ParseError as error:
                places[reply] = None
                trouble = trouble or error
    return [places[choice.text, choice.finish_reason] for choice in choices], trouble


def _average_draws(
    choices: Sequence[Choice],
    scores: Sequence[ParsedScore | None],
    criterion: Criterion,
    *,
    requested: int,
    notes: Sequence[str],
    trouble: ParseError | None,
) -> tuple[float, Provenance]:
    raw = parse.join_replies(choices)
    parsed = [place for place in scores if place is not None]
    if not parsed:
        raise UnusableReply(f"none of {len(choices)} draws has a score: {trouble}", raw)
    if reason := _lost_by_label(choices, scores, criterion):
        raise ParseError(reason, raw)
    w = expectation.from_samples(
        [place.label if place else None for place in scores], criterion.scale
    )
    likeliest = [place for place in parsed if place.label == w.argmax]
    quotes = Counter(place.quote for place in likeliest if place.quote)
    messages = list(notes)
    if unread := len(choices) - len(parsed):
        messages.append(f"{unread} of {len(choices)} draws had no score: {trouble}")
    if unanswered := requested - len(choices):
        messages.append(f"{unanswered} of {requested} draws were not answered")
    note = "; ".join(messages) or None
    readings = {place.reading for place in parsed}
    reading = next((name for name in _READINGS if name in readings), "strict")
    told = {
        "reason": likeliest[0].reason,
        "quote": max(quotes, key=quotes.__getitem__, default=None),
    }
    return w.value, _provenance(
        "samples", w, n=len(parsed), raw=raw, note=note, reading=reading, **told
    )


def _lost_by_label(
    choices: Sequence[Choice], scores: Sequence[ParsedScore | None], criterion: Criterion
) -> str:
    """Return why the draws that count are a selection by their label, "" if they are not.

    A draw may be refused because the judged text has the same number. If that happens to one label and not to another,
    the mean of the rest is the mean of another distribution.
    """
    counted = Counter(score.label for score in scores if score is not None)
    lost: Counter[str] = Counter()
    for choice, score in zip(choices, scores, strict=True):
        if score is None:
            try:
                lost[read(choice, criterion, "").label] += 1
            except ParseError:
                continue  # this draw has no score at all, whatever the judged text
    shares = [lost[label] / (lost[label] + counted[label]) for label in {*lost, *counted}]
    if (
        lost.total() < max(2, _LOST_SHARE * len(choices))
        or max(shares) - min(shares) <= _LOST_DIFFERENCE
    ):
        return ""
    label, count = lost.most_common(1)[0]
    return f"{count} of {len(choices)} draws give {label} in words of the judged text and cannot count; the others do"


def _score_by_probabilities(
    shares: Sequence[tuple[str, float]], criterion: Criterion, min_mass: float, raw: str
) -> tuple[float, Provenance]:
    w = expectation.from_probabilities(dict(shares), criterion.scale)
    _check_mass(w.mass, min_mass, raw)
    return w.value, _provenance("decisions", w)


def _check_mass(mass: float, min_mass: float, raw: str) -> None:
    if mass < min_mass:
        raise UnusableReply(
            f"only {mass:.2g} of the probability is on the scale, less than {min_mass:g}", raw
        )


def _provenance(method: Strategy, w: expectation.ScoreDistribution, **reply: Any) -> Provenance:
    return Provenance(method, w.mass, w.distribution, w.entropy, w.argmax, w.low, w.high, **reply)


def _response_format(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    schema = {
        "type": "object", "properties": dict(properties), "required": list(properties), "additionalProperties": False
    }  # fmt: skip
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _label_schema(scale: Scale) -> dict[str, Any]:
    labels = scale.asked.labels
    if all(re.fullmatch("0|-?[1-9][0-9]*", text) for text in labels):
        return {"type": "integer", "enum": [int(text) for text in labels]}
    if all(re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?", text) for text in labels):
        return {"type": "number", "enum": [float(text) for text in labels]}
    return {"type": "string", "enum": list(labels)}
