"""An endpoint of typed questions: probabilities over a scale's labels in one forward pass, and no text.

Two forms are in use: OpenAI's `/decisions`, and `/systemone` of servers that run open models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

from judge.config import RunConfig
from judge.core.errors import ProviderError, Refused, Transient
from judge.core.records import Choice, Question, Request, Response, whole
from judge.core.request_options import TokenPrice
from judge.providers.http_client import HttpClient, Options, body_error, options, usage
from judge.providers.pricing import DEFAULT_URL

_NO_SUCH_PATH = (404, 405, 501)
_PRICE_LIST = "LiteLLM's price map 1.106"
"""Of November 2026. genai-prices lacks the prices of typed questions."""
_PUBLISHED_PRICES = {"gpt-6-luna": TokenPrice(input=0.10, output=0.0)}
"""Typed questions at OpenAI: answers are free, and nothing is cheaper for being cached."""
_ROUNDING = 1e-6
"""By how much a probability in single precision may come out above 1."""


@dataclass(frozen=True, slots=True)
class _Question:
    name: str
    type: Question
    instructions: str
    labels: tuple[str, ...]


class _OpenAI:
    """The form of `/decisions`. `predicate` is its word for that type of question, `truth` for the answer's share."""

    path, predicate, truth = "/decisions", "predicate", "probability"

    def kind(self, question: _Question) -> str:
        return self.predicate if question.type == "predicate" else question.type

    def body(self, text: str, questions: Sequence[_Question]) -> dict[str, Any]:
        """The questions as they are sent."""
        bodies = []
        for q in questions:
            labels = {"score": ("levels", "label"), "choice": ("choices", "value")}.get(q.type)
            listed = {labels[0]: [{labels[1]: label} for label in q.labels]} if labels else {}
            bodies.append(
                {"name": q.name, "type": q.type, "instructions": q.instructions, **listed}
            )
        return {"input": text, "questions": bodies}

    def answers(self, data: Any, questions: Sequence[_Question]) -> list[Any]:
        """The answers in the order of the questions. Raises ValueError."""
        if not isinstance(data, list) or len(data) != len(questions):
            raise ValueError(f"do not come to {len(questions)}, one for each question")
        names = [answer.get("name") if isinstance(answer, dict) else None for answer in data]
        if strange := [n for n, q in zip(names, questions, strict=True) if n not in (None, q.name)]:
            raise ValueError(
                f"are not in the order of the questions: {strange[0]!r} is out of place"
            )
        return data

    def shares(self, question: _Question, answer: Any) -> list[tuple[str, Any]]:
        """The probabilities of an answer by label. Raises what a look into another shape raises."""
        label = "label" if question.type == "score" else "value"
        return [(entry[label], entry["probability"]) for entry in answer]


class _SystemOne(_OpenAI):
    """The form of `/systemone`."""

    path, predicate, truth = "/systemone", "noul", "noul"

    def body(self, text: str, questions: Sequence[_Question]) -> dict[str, Any]:
        bodies: dict[str, dict[str, Any]] = {}
        for q in questions:
            bodies[q.name] = {"type": self.kind(q), "instructions": q.instructions}
            if q.type != "predicate":
                bodies[q.name]["criteria"] = (
                    list(q.labels) if q.type == "score" else dict.fromkeys(q.labels)
                )
        return {"state": text, "questions": bodies}

    def answers(self, data: Any, questions: Sequence[_Question]) -> list[Any]:
        if not isinstance(data, dict):
            raise ValueError("do not have the questions' names")
        if missing := [q.name for q in questions if q.name not in data]:
            raise ValueError(f"lack one, to {missing[0]!r}")
        return [data[q.name] for q in questions]

    def shares(self, question: _Question, answer: Any) -> list[tuple[str, Any]]:
        """A level is called by its place: "0" is the first."""
        if question.type == "choice":
            return list(answer.items())
        names = {str(place): label for place, label in enumerate(question.labels)}
        if strange := [place for place in answer if place not in names]:
            raise ValueError(f"has a level that was not offered: {strange[0]!r}")
        return [(names[place], p) for place, p in answer.items()]


_FORMS = (_OpenAI(), _SystemOne())


class DecisionsProvider:
    """A provider for `POST {base_url}/decisions` or `POST {base_url}/systemone`, in one event loop at a time.

    Which of the two a server has is found out with the first request it answers.
    """

    name = "decisions"
    notice = ""
    decides = True
    price_list = _PRICE_LIST

    def __init__(self, model: str, *, path: str = "", **http_options: Unpack[Options]) -> None:
        self.model = model
        self._http = HttpClient(**http_options)
        self.endpoint = self._http.url
        self.price: TokenPrice | None = None
        self.published_price: TokenPrice | None = None
        if self.endpoint == DEFAULT_URL:
            self.published_price = _PUBLISHED_PRICES.get(model)
        self.shared_state = path

    @classmethod
    def open(cls, model: str, config: RunConfig) -> DecisionsProvider:
        """The provider of a plan. Raises ConfigError."""
        return cls(model, **options(config))

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again in another process. No key is in it."""
        return partial(type(self), self.model, path=self.shared_state, **self._http.options), ()

    @property
    def learned(self) -> dict[str, Any]:
        return {"path": self._form.path} if self._form else {}

    @property
    def shared_state(self) -> str:
        """The path that the server has; "" if it is not known."""
        return self._form.path if self._form else ""

    @shared_state.setter
    def shared_state(self, path: str) -> None:
        self._form: _OpenAI | None = next((form for form in _FORMS if form.path == path), None)

    async def complete(self, request: Request) -> Response:
        """One choice for each of the `questions`, in their order. Raises Transient or Refused.

        A question that the model refuses has a choice without shares. Of the other parameters none is sent.
        """
        questions, text = (
            _questions(request),
            "\n\n".join(whole(m["content"]) for m in request.messages),
        )
        known = self._form
        for form in (known,) if known else _FORMS:
            try:
                data, limits = await self._http.post(
                    form.path, {"model": request.model, **form.body(text, questions)}
                )
            except ProviderError as error:
                no_such_path = (
                    isinstance(error, Refused | Transient) and error.status in _NO_SUCH_PATH
                )
                about_model = isinstance(error, Refused) and error.param == "model"
                if known is None and no_such_path and not about_model:
                    continue
                raise
            response = _response(data, form, questions, self.endpoint, named_by=self._http.named_by)
            self._form = form
            return replace(response, limits=limits)
        raise Refused(
            f"{self.endpoint} has neither /decisions nor /systemone: it takes no typed questions; check "
            f"{self._http.named_by}, or ask a model there that writes, without decisions/ before its name",
            stops="always",
        )

    async def aclose(self) -> None:
        await self._http.aclose()


def _questions(request: Request) -> list[_Question]:
    """The questions as UTF-8 can carry them, under names of which no two are equal."""
    questions: list[_Question] = []
    for spec in request.params["questions"]:
        name = whole(spec["name"])
        while any(name == earlier.name for earlier in questions):
            name += "_"
        labels = tuple(whole(label) for label in spec["labels"])
        questions.append(_Question(name, spec["type"], whole(spec["instructions"]), labels))
    return questions


def _response(
    data: Any, form: _OpenAI, questions: Sequence[_Question], url: str, *, named_by: str = ""
) -> Response:
    if not isinstance(data, dict) or not isinstance(data.get("answers"), list | dict):
        raise body_error(data, url, "answer to typed questions", named_by)
    try:
        answers = form.answers(data["answers"], questions)
    except ValueError as error:
        raise Refused(f"{url}{form.path}: the answers {error}") from error
    choices = tuple(
        _choice(form, q, answer, url) for q, answer in zip(questions, answers, strict=True)
    )
    model, used = data.get("model"), usage(data.get("usage"), "input", "output")
    return Response(choices, used, model if isinstance(model, str) else "")


def _choice(form: _OpenAI, question: _Question, answer: Any, url: str) -> Choice:
    where = f"{url}{form.path}: the answer to {question.name!r}"
    try:
        kind = answer["type"]
        if kind == "refusal":
            return Choice("", "refusal")
        if kind != form.kind(question):
            raise ValueError(f"is a {kind}, not a {form.kind(question)}")
        shares = _shares(form, question, answer)
    except ValueError as error:
        raise Refused(f"{where} {error}") from error
    except (TypeError, LookupError, AttributeError) as error:
        raise Refused(f"{where} has not the shape of one") from error
    likeliest, most = max(shares, key=lambda share: share[1])
    if not most:
        raise Refused(f"{where} gives no label any probability")
    return Choice(likeliest, shares=shares)


def _shares(form: _OpenAI, question: _Question, answer: Any) -> tuple[tuple[str, float], ...]:
    """The probability of each label. Raises ValueError where one is missing, is too many, or is no probability."""
    if question.type == "predicate":
        true = _probability(answer[form.truth])
        return tuple(zip(question.labels, (1 - true, true), strict=True))
    listed = form.shares(question, answer["probabilities"])
    shares = {label: _probability(p) for label, p in listed}
    if strange := shares.keys() - set(question.labels):
        raise ValueError(f"has a label that was not offered: {min(strange)!r}")
    if missing := [label for label in question.labels if label not in shares]:
        raise ValueError(f"has no probability for {missing[0]!r}")
    if len(listed) > len(shares):
        raise ValueError("has two probabilities for one label")
    return tuple((label, shares[label]) for label in question.labels)


def _probability(value: Any) -> float:
    if type(value) not in (float, int) or not 0 <= value <= 1 + _ROUNDING:
        raise ValueError(f"holds {str(value)[:40]!r} where a probability should be")
    return min(float(value), 1.0)
