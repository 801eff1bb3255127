"""An endpoint of typed questions: probabilities over a scale's labels in one forward pass, no text.

Two forms are in use: OpenAI's `/decisions`, and `/systemone` of servers that run open models
(docs/decisions/0007-a-decision-endpoint-is-a-separate-judge.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

from judge.config import RunConfig
from judge.core.errors import ProviderError, Refused, Transient
from judge.core.normalization import whole
from judge.core.records import (
    Choice,
    Question,
    Request,
    Response,
)
from judge.core.request_options import TokenPrice
from judge.providers.http_client import HttpClient, Options, Reply, options
from judge.providers.http_errors import body_error
from judge.providers.pricing import DEFAULT_URL
from judge.providers.token_usage import usage

# How servers answer that lack the path of typed questions.
_NO_SUCH_PATH = (404, 405, 501)
# Of November 2026. genai-prices lacks the prices of typed questions.
_PRICE_LIST = "LiteLLM's price map 1.106"
# Typed questions at OpenAI: answers are free, and there is no discount for cached tokens.
_PUBLISHED_PRICES = {"gpt-6-luna": TokenPrice(input=0.10, output=0.0)}
# By how much a probability in single precision may come out above 1.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class _Question:
    """A question in valid UTF-8. The labels of a predicate are those of no and of yes."""

    name: str
    type: Question
    instructions: str
    labels: tuple[str, ...]


class _OpenAI:
    """The form of `/decisions`.

    `predicate` is its word for that type of question, and `truth` the key under which its answer
    has the probability of yes.
    """

    path = "/decisions"
    predicate = "predicate"
    truth = "probability"

    def kind(self, question: _Question) -> str:
        """Return this form's word for the type of a question."""
        return self.predicate if question.type == "predicate" else question.type

    def body(self, text: str, questions: Sequence[_Question]) -> dict[str, Any]:
        """Return the body of a request with these questions about a text."""
        bodies = []
        for question in questions:
            body: dict[str, Any] = {
                "name": question.name,
                "type": question.type,
                "instructions": question.instructions,
            }
            if question.type == "score":
                body["levels"] = [{"label": label} for label in question.labels]
            elif question.type == "choice":
                body["choices"] = [{"value": label} for label in question.labels]
            bodies.append(body)
        return {"input": text, "questions": bodies}

    def answers(self, data: Any, questions: Sequence[_Question]) -> list[Any]:
        """Return the answers in the order of the questions. Raises ValueError."""
        if not isinstance(data, list) or len(data) != len(questions):
            raise ValueError(f"do not come to {len(questions)}, one for each question")
        for answer, question in zip(data, questions, strict=True):
            name = answer.get("name") if isinstance(answer, dict) else None
            # The name of an answer is optional; if there is one, it has to fit.
            if name not in (None, question.name):
                raise ValueError(
                    f"are not in the order of the questions: {name!r} is out of place"
                )
        return data

    def probabilities(self, question: _Question, answer: Any) -> list[tuple[str, Any]]:
        """Return pairs of a label and its probability.

        Raises TypeError, LookupError or AttributeError for an answer of another shape, ValueError
        for an unknown level.
        """
        label_key = "label" if question.type == "score" else "value"
        return [(entry[label_key], entry["probability"]) for entry in answer]


class _SystemOne(_OpenAI):
    """The form of `/systemone`."""

    path = "/systemone"
    # This form calls a question with yes or no `noul`, and has the probability of yes under that.
    predicate = "noul"
    truth = "noul"

    def body(self, text: str, questions: Sequence[_Question]) -> dict[str, Any]:
        bodies = {}
        for question in questions:
            body: dict[str, Any] = {
                "type": self.kind(question),
                "instructions": question.instructions,
            }
            # Levels are a list, because their order counts; choices are the keys of an object.
            if question.type == "score":
                body["criteria"] = list(question.labels)
            elif question.type == "choice":
                body["criteria"] = dict.fromkeys(question.labels)
            bodies[question.name] = body
        return {"state": text, "questions": bodies}

    def answers(self, data: Any, questions: Sequence[_Question]) -> list[Any]:
        if not isinstance(data, dict):
            raise ValueError("do not have the questions' names")
        answers = []
        for question in questions:
            if question.name not in data:
                raise ValueError(f"lack one, to {question.name!r}")
            answers.append(data[question.name])
        return answers

    def probabilities(self, question: _Question, answer: Any) -> list[tuple[str, Any]]:
        if question.type == "choice":
            return list(answer.items())
        # A level is named by its index: "0" is the first one.
        label_by_index = {
            str(index): label for index, label in enumerate(question.labels)
        }
        for index in answer:
            if index not in label_by_index:
                raise ValueError(f"has a level that was not offered: {index!r}")
        labels = [label_by_index[index] for index in answer]
        return list(zip(labels, answer.values(), strict=True))


_FORMS = (_OpenAI(), _SystemOne())


def _form_of(path: str) -> _OpenAI | None:
    """Return the form with this path, None if there is none."""
    for form in _FORMS:
        if form.path == path:
            return form
    return None


class DecisionsProvider:
    """A provider for `POST {base_url}/decisions` or `POST {base_url}/systemone`.

    The first request that the server answers shows which of the two it has. Used in one event loop
    at a time.
    """

    name = "decisions"
    notice = ""
    decides = True
    price_list = _PRICE_LIST

    def __init__(
        self,
        model: str,
        *,
        path: str = "",
        **http_options: Unpack[Options],
    ) -> None:
        self.model = model
        self._http = HttpClient(**http_options)
        self.endpoint = self._http.url
        self.price: TokenPrice | None = None
        self.published_price: TokenPrice | None = None
        if self.endpoint == DEFAULT_URL:
            self.published_price = _PUBLISHED_PRICES.get(model)
        self._form = _form_of(path)

    @classmethod
    def open(cls, model: str, config: RunConfig) -> DecisionsProvider:
        """Return the provider of a run configuration. Raises ConfigError."""
        return cls(model, **options(config))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes the provider in another process, which does not include a key."""
        factory = partial(
            type(self), self.model, path=self.shared_state, **self._http.options
        )
        return factory, ()

    @property
    def learned(self) -> dict[str, Any]:
        return {"path": self._form.path} if self._form else {}

    @property
    def shared_state(self) -> str:
        """The path that the server has; "" if it is not known yet."""
        return self._form.path if self._form else ""

    @shared_state.setter
    def shared_state(self, path: str) -> None:
        self._form = _form_of(path)

    async def complete(self, request: Request) -> Response:
        """Return one choice per question, in their order. Raises Transient or Refused.

        A question that the model refuses has a choice without probabilities. Only the texts and
        the questions are sent, no other parameters.
        """
        questions = _questions(request)
        text = "\n\n".join(whole(message["content"]) for message in request.messages)
        if self._form is not None:
            reply = await self._post(self._form, request, text, questions)
            return self._read(self._form, reply, questions)
        for form in _FORMS:
            try:
                reply = await self._post(form, request, text, questions)
            except ProviderError as error:
                if _lacks_path(error):
                    continue
                raise
            return self._read(form, reply, questions)
        raise Refused(
            f"{self.endpoint} has neither /decisions nor /systemone: it takes no typed questions; "
            f"check {self._http.named_by}, or name a chat model of this server, without decisions/ "
            "before its name",
            stops="always",
        )

    async def _post(
        self,
        form: _OpenAI,
        request: Request,
        text: str,
        questions: Sequence[_Question],
    ) -> Reply:
        body = {"model": request.model, **form.body(text, questions)}
        return await self._http.post(form.path, body)

    def _read(
        self,
        form: _OpenAI,
        reply: Reply,
        questions: Sequence[_Question],
    ) -> Response:
        """Return the response in a reply, and remember that the server has this form's path."""
        named_by = self._http.named_by
        response = _response(
            reply.data, form, questions, self.endpoint, named_by=named_by
        )
        self._form = form
        return replace(response, limits=reply.limits)

    async def aclose(self) -> None:
        await self._http.aclose()


def _lacks_path(error: ProviderError) -> bool:
    """Return whether the server does not have the path. A 404 may also be about the model."""
    if isinstance(error, Refused) and error.param == "model":
        return False
    return isinstance(error, Refused | Transient) and error.status in _NO_SUCH_PATH


def _questions(request: Request) -> list[_Question]:
    """Return the questions in valid UTF-8, with distinct names."""
    questions: list[_Question] = []
    for spec in request.params["questions"]:
        question_name = whole(spec["name"])
        # Two names that differ only in lone surrogates become equal in UTF-8.
        while any(question_name == earlier.name for earlier in questions):
            question_name += "_"
        labels = tuple(whole(label) for label in spec["labels"])
        instructions = whole(spec["instructions"])
        questions.append(_Question(question_name, spec["type"], instructions, labels))
    return questions


def _response(
    data: Any,
    form: _OpenAI,
    questions: Sequence[_Question],
    url: str,
    *,
    named_by: str = "",
) -> Response:
    """Return the response in the JSON of a reply. Raises Refused or Transient for another shape."""
    answers_in_reply = data.get("answers") if isinstance(data, dict) else None
    if not isinstance(answers_in_reply, list | dict):
        raise body_error(data, url, "answer to typed questions", named_by)
    try:
        answers = form.answers(answers_in_reply, questions)
    except ValueError as error:
        raise Refused(f"{url}{form.path}: the answers {error}") from error
    choices = []
    for question, answer in zip(questions, answers, strict=True):
        choices.append(_choice(form, question, answer, url))
    model = data.get("model")
    served_by = model if isinstance(model, str) else ""
    tokens = usage(data.get("usage"), "input", "output")
    return Response(tuple(choices), tokens, served_by)


def _choice(
    form: _OpenAI,
    question: _Question,
    answer: Any,
    url: str,
) -> Choice:
    """Return the likeliest label with all probabilities, or a refusal. Raises Refused."""
    subject = f"{url}{form.path}: the answer to {question.name!r}"
    try:
        answer_type = answer["type"]
        if answer_type == "refusal":
            return Choice("", "refusal")
        if answer_type != form.kind(question):
            raise ValueError(f"is a {answer_type}, not a {form.kind(question)}")
        probabilities = _probabilities(form, question, answer)
    except ValueError as error:
        raise Refused(f"{subject} {error}") from error
    except (TypeError, LookupError, AttributeError) as error:
        raise Refused(f"{subject} does not have the form of an answer") from error
    label, highest = max(probabilities, key=lambda pair: pair[1])
    if not highest:
        raise Refused(f"{subject} gives no label any probability")
    return Choice(label, shares=probabilities)


def _probabilities(
    form: _OpenAI,
    question: _Question,
    answer: Any,
) -> tuple[tuple[str, float], ...]:
    """Return the probability of each label.

    Raises ValueError if a label is missing, unknown or repeated, or if a value is no probability.
    """
    if question.type == "predicate":
        yes = _probability(answer[form.truth])
        return tuple(zip(question.labels, (1 - yes, yes), strict=True))
    pairs = form.probabilities(question, answer["probabilities"])
    probability_by_label = {label: _probability(value) for label, value in pairs}
    unknown = probability_by_label.keys() - set(question.labels)
    if unknown:
        raise ValueError(f"has a label that was not offered: {min(unknown)!r}")
    for label in question.labels:
        if label not in probability_by_label:
            raise ValueError(f"has no probability for {label!r}")
    if len(pairs) > len(probability_by_label):
        raise ValueError("has two probabilities for one label")
    return tuple((label, probability_by_label[label]) for label in question.labels)


def _probability(value: Any) -> float:
    """Return a probability, at most 1. Raises ValueError."""
    # bool is an int in Python, but `true` is no probability.
    # Not isinstance: a bool is an int, too.
    is_number = type(value) in (float, int)
    if not is_number or not 0 <= value <= 1 + _ROUNDING:
        raise ValueError(f"holds {str(value)[:40]!r} where a probability should be")
    return min(float(value), 1.0)
