"""Providers without a model: scripted replies for tests and demos, and Python functions."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

from judge.config import RunConfig
from judge.core import yaml_lines
from judge.core.errors import (
    ConfigError,
    JudgeError,
    ProviderError,
    Refused,
    Unrecorded,
)
from judge.core.plugins import require_known
from judge.core.records import (
    FUNCTION,
    MIXED_RULES,
    Choice,
    Request,
    Response,
    Token,
    Usage,
)
from judge.providers import Provider

Reply = str | int | Mapping[Any, float] | Response | ProviderError
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


class ScriptedProvider(Provider):
    """A judge that answers every request with `script(request)`.

    - A str or a number is the reply's text.
    - A dict of probabilities by label is a reply of one token: the likeliest label, or at a
      temperature above 0 labels drawn in these proportions, the same every time.
    - A Response passes through; a Transient or Refused is raised.

    `seen` has the requests in order, `unused` the cause for each rule of a file that answered none.
    With `decides`, it is an endpoint of typed questions: a dict gives the probabilities of one
    answer, and a str is the only label.
    """

    name = "scripted"
    notice = (
        "Scripted replies: no model was asked. The scores only show how a report looks."
    )

    def __init__(
        self,
        script: Callable[[Request], Reply],
        *,
        model: str = "script",
        endpoint: str = "",
        decides: bool = False,
    ) -> None:
        self.model = model
        self.endpoint = endpoint
        self.decides = decides
        self.seen: list[Request] = []
        self.unused: dict[int, str] = {}
        self._remembers = True
        self._script = script
        self._served_by = "scripted"
        self._file: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what makes the provider in another process, where `seen` starts empty.

        It is made from its file, or else with its script, if that can be pickled.
        """
        if self._file is not None:
            return _rebuild, (self._file,)
        factory = partial(
            ScriptedProvider,
            self._script,
            model=self.model,
            endpoint=self.endpoint,
            decides=self.decides,
        )
        return factory, ()

    @classmethod
    def open(cls, model: str, config: RunConfig) -> ScriptedProvider:
        """Return the provider of `--model scripted/FILE`, whose `seen` stays empty.

        Raises ConfigError.
        """
        return _rebuild(model)

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedProvider:
        """Return a provider from YAML: a list of `{when: [text, ...], reply: ...}`.

        A reply is a text, or `{label: probability}`. A rule answers the prompts that contain all
        its texts; a rule without `when` answers every prompt. The first such rule counts. A repair
        question, after a reply without a score, is only answered by a rule with a text of that
        question. If the first entry is `{note: text}`, reports show that text as their notice.
        Raises ConfigError.
        """
        rules = _read_rules(path)
        provider = cls(
            lambda request: provider._answer_of_rules(rules, request),
            model=Path(path).name,
            endpoint=f"scripted:{rules.digest[:12]}",
        )
        provider.notice = rules.note or cls.notice
        have_probabilities = {isinstance(rule.reply, Mapping) for rule in rules.rules}
        # Some rules have probabilities, others a text.
        if len(have_probabilities) == 2:
            provider._served_by = MIXED_RULES
        for number, rule in enumerate(rules.rules, 1):
            if rule.texts:
                provider.unused[number] = f"no prompt has {rule.quoted_texts}"
        provider._file = Path(path).absolute()
        return provider

    def _answer_of_rules(self, rules: _Rules, request: Request) -> Reply:
        """Return the reply of the first rule whose texts all occur in the prompt."""
        turns = [message["content"] for message in request.messages]
        prompt = "\n".join(turns)
        is_repair = any(message["role"] == "assistant" for message in request.messages)
        matching = []
        for number, rule in enumerate(rules.rules, 1):
            if not all(text in prompt for text in rule.texts):
                continue
            # The last turn is the repair question; the first prompt stands before it.
            if is_repair and not any(text in turns[-1] for text in rule.texts):
                continue
            matching.append(number)
        if not matching:
            message = f"{rules.path} holds no reply for this prompt"
            if is_repair:
                raise Unrecorded(message)
            raise Refused(message)
        first, *later = matching
        self.unused.pop(first, None)
        for number in later:
            if number in self.unused:
                texts = rules.rules[number - 1].quoted_texts
                answers = f"answers prompts with {texts}"
                self.unused[number] = f"rule {first} comes first and {answers}"
        return rules.rules[first - 1].reply

    async def complete(self, request: Request) -> Response:
        """Return the script's response.

        Raises the error that the script returns, and ConfigError for a value of another type.
        """
        if self._remembers:
            self.seen.append(request)
        if not self.decides:
            return self._answer(request)
        choices: list[Choice] = []
        for question in request.params["questions"]:
            response = self._answer(replace(request, params={"questions": [question]}))
            choices += response.choices
        return Response(tuple(choices), Usage(), self._served_by)

    def _answer(self, request: Request) -> Response:
        reply = self._script(request)
        if isinstance(reply, ProviderError):
            raise reply
        if isinstance(reply, Response):
            return reply
        if not isinstance(reply, str | int | Mapping):
            expected = "text, probabilities by label, a Response or an error"
            raise ConfigError(f"a script returns {expected}, not {reply!r}")
        if isinstance(reply, Mapping) and _exceed_one(reply.values()):
            raise ConfigError(f"a script returned {_excerpt(reply)}: {_SUM_ABOVE_ONE}")
        if self.decides:
            return Response((_decision(reply),), Usage(), self._served_by)
        return Response(to_choices(reply, request), Usage(), self._served_by)


def _decision(reply: str | int | Mapping[Any, float]) -> Choice:
    """Return a reply as the answer to a typed question: a text is its only label."""
    probability_by_label = reply if isinstance(reply, Mapping) else {reply: 1.0}
    shares: list[tuple[str, float]] = []
    for label, probability in probability_by_label.items():
        shares.append((str(label), float(probability)))
    likeliest, _ = max(shares, key=lambda share: share[1], default=("", 0.0))
    return Choice(likeliest, shares=tuple(shares))


def _rebuild(path: str | Path) -> ScriptedProvider:
    provider = ScriptedProvider.from_file(path)
    provider._remembers = False
    return provider


class _Rule(NamedTuple):
    """A reply to all prompts that contain these texts."""

    texts: tuple[str, ...]
    reply: Reply

    @property
    def quoted_texts(self) -> str:
        return " and ".join(map(repr, self.texts))


class _Rules(NamedTuple):
    """The content of a file of rules, and the digest of its bytes."""

    path: str | Path
    rules: list[_Rule]
    note: str
    digest: str


def _read_rules(path: str | Path) -> _Rules:
    """Return the rules of a YAML file. Raises ConfigError with the line of a wrong one."""
    line = 1
    rules = []
    try:
        content = Path(path).read_bytes()
        root: Any = yaml_lines.tree(content)
        entries = yaml_lines.construct(root)
        if not isinstance(entries, list) or not entries:
            raise ValueError("write a list, with a - before each rule")
        nodes = list(root.value)
        note = _note(entries[0])
        if note:
            del nodes[0], entries[0]
        for node, entry in zip(nodes, entries, strict=True):
            line = node.start_mark.line + 1
            rules.append(_rule(entry))
    except OSError as error:
        scripted_path = Path("scripted", path)
        hint = ""
        if scripted_path.is_file():
            hint = f"; for the file {scripted_path}, write scripted/{scripted_path}"
        raise ConfigError(f"scripted replies {path}: {error.strerror}{hint}") from error
    except (ConfigError, TypeError, ValueError) as error:
        # An error of YAML itself has its own line.
        line = getattr(error, "line", None) or line
        raise ConfigError(
            f"scripted replies {path}:{line}: not a list of {{when, reply}} rules ({error})"
        ) from error
    return _Rules(path, rules, note, hashlib.sha256(content).hexdigest())


def _note(first_entry: Any) -> str:
    """Return the note of a file's first entry, "" if that is a rule. Raises ConfigError."""
    if not isinstance(first_entry, dict) or "note" not in first_entry:
        return ""
    require_known("key", map(str, first_entry), ["note"])
    return str(first_entry["note"])


def _rule(entry: Any) -> _Rule:
    if not isinstance(entry, dict) or "reply" not in entry:
        keys = "a reply, and in when the texts that a prompt must contain"
        raise ValueError(f"a rule has {keys}")
    # With a misspelt `when`, a rule would answer every prompt.
    require_known("key", map(str, entry), ["when", "reply"])
    when = entry.get("when", [])
    if not isinstance(when, str | list):
        raise ValueError("when is a text, or a list of texts")
    reply = entry["reply"]
    listed_texts = [when] if isinstance(when, str) else when
    # YAML makes numbers of some texts.
    texts = tuple(str(text) for text in listed_texts)
    if isinstance(reply, dict):
        probabilities: dict[str, float] = {}
        for label, probability in reply.items():
            if not isinstance(probability, int | float) or not 0 <= probability <= 1:
                raise ValueError("probabilities are numbers from 0 to 1")
            probabilities[str(label)] = float(probability)
        if _exceed_one(probabilities.values()):
            raise ValueError(_SUM_ABOVE_ONE)
        return _Rule(texts, probabilities)
    if reply is None or isinstance(reply, list):
        raise ValueError("a reply is a text, a number, or a probability for each label")
    return _Rule(texts, str(reply))


# Probabilities rounded to two decimals may add up to a little more than 1.
_LARGEST_SUM = 1.02
_SUM_ABOVE_ONE = "probabilities add up to at most 1. Divide weights by their sum"


def _exceed_one(probabilities: Iterable[float]) -> bool:
    """Return whether the sum of probabilities is above 1, apart from rounding."""
    return sum(map(float, probabilities)) > _LARGEST_SUM


def to_choices(
    reply: str | int | Mapping[Any, float], request: Request
) -> tuple[Choice, ...]:
    """Return a reply, or probabilities by label, as the choices that a request asks for."""
    n_draws = int(request.params.get("n", 1))
    if isinstance(reply, str | int):
        return (Choice(str(reply)),) * n_draws
    n_alternatives = int(request.params.get("top_logprobs", 0))
    possible = []
    for label, probability in reply.items():
        if probability > 0:
            possible.append((str(label), probability))
    possible.sort(key=lambda pair: -pair[1])
    logprobs = []
    for label, probability in possible:
        logprob = math.log(probability)
        logprobs.append((label, logprob))
    alternatives = tuple(logprobs)
    samples = bool(request.params.get("temperature"))
    choices = []
    for draw in range(request.draw, request.draw + n_draws):
        # Without a temperature, every draw is the likeliest label.
        position = _choose_label(possible, draw) if samples else 0
        # A mapping without any probability above 0 is an empty reply.
        text = ""
        logprob = 0.0
        if alternatives:
            text, logprob = alternatives[position]
        tokens = None
        if n_alternatives:
            tokens = (Token(text, logprob, alternatives[:n_alternatives]),)
        choices.append(Choice(text, "stop", tokens))
    return tuple(choices)


def _choose_label(possible: list[tuple[str, float]], draw: int) -> int:
    """Return the index of a draw's label, the same in every run.

    Multiples of the golden ratio fill the unit interval evenly (Weyl's equidistribution), so that
    few draws already have the labels in the right proportions.
    """
    sum_of_probabilities = sum(probability for _, probability in possible)
    remaining = (draw + 0.5) * _GOLDEN_RATIO % 1.0 * sum_of_probabilities
    for position, (_, probability) in enumerate(possible):
        remaining -= probability
        if remaining < 0:
            return position
    # Rounding may leave a remainder after the last label.
    return len(possible) - 1


Judged = str | float | Mapping[Any, float]
Function = Callable[[str], Judged | Awaitable[Judged]]
_MAX_REASON = 500


class FunctionProvider(Provider):
    """Answers every prompt with what `function(text)` returns, which may be a coroutine.

    A str or a number is the reply as a model would write it; a mapping has the probabilities by
    label. An exception, or another return value, is a failed judgment with that as its message. A
    question for the score alone follows the prompt and the reply in one text. Nothing is cached,
    because another function may have the same name tomorrow. A plain function is called in one
    thread, one call after the other; of an `async` one, `max_concurrency` calls run at once.
    """

    name = FUNCTION
    endpoint = ""
    decides = False

    def __init__(self, function: Function) -> None:
        # A partial has no name, but the function that it calls has one; an object has its class's.
        inner = getattr(function, "func", function)
        class_name = type(inner).__name__
        function_name = getattr(inner, "__name__", class_name)
        # A lambda is called `<lambda>`.
        self.model = str(function_name).strip("<>")
        self.notice = (
            f"The replies came from the Python function {self.model}. "
            "judge cannot see which model it asks."
        )
        self._function = function
        # The call of an object may be async, too.
        call = getattr(function, "__call__", None)  # noqa: B004
        self._awaited = any(map(inspect.iscoroutinefunction, (function, call)))
        self._thread: ThreadPoolExecutor | None = None
        self._first_replies: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return FunctionProvider, (self._function,)

    async def complete(self, request: Request) -> Response:
        """Return what the function returns, called once for each draw.

        Raises Refused with the message of the function's exception.
        """
        prompt = text_of(request)
        wants_probabilities = "top_logprobs" in request.params
        reply: str | Mapping[Any, float] | None = None
        if not wants_probabilities:
            reply = self._first_replies.pop(prompt, None)
        if reply is None:
            reply = self._validated(await self._call(prompt))
        if wants_probabilities and isinstance(reply, str):
            # A text has no probabilities, so the same prompt follows without asking for them.
            self._first_replies[prompt] = reply
        if isinstance(reply, Mapping):
            return Response(to_choices(reply, request), Usage(), self.name)
        choices = [Choice(reply)]
        n_draws = int(request.params.get("n", 1))
        for _ in range(1, n_draws):
            next_reply = self._validated(await self._call(prompt))
            choices.append(Choice(_as_text(next_reply)))
        return Response(tuple(choices), Usage(), self.name)

    async def _call(self, prompt: str) -> object:
        try:
            if self._awaited:
                return await self._function(prompt)  # type: ignore[misc]
            # One thread, because the function need not be safe to call in several at once.
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, "judge-function")
            loop = asyncio.get_running_loop()
            reply = await loop.run_in_executor(self._thread, self._function, prompt)
            # A plain function may return a coroutine, as a lambda around an async one does.
            if inspect.isawaitable(reply):
                return await reply
            return reply
        except JudgeError:
            raise
        except Exception as error:
            error_name = type(error).__name__
            reason = f"{error_name}: {error}".rstrip(": ")
            raise Refused(f"{self.model} raised {reason[:_MAX_REASON]}") from error

    def _validated(self, reply: object) -> str | Mapping[Any, float]:
        """Return the reply in one of its two forms. Raises Refused for anything else."""
        if isinstance(reply, str):
            return reply
        if isinstance(reply, Integral) and not isinstance(reply, bool):
            return str(int(reply))
        if isinstance(reply, Real) and not isinstance(reply, bool):
            number = float(reply)
            return str(int(number)) if number.is_integer() else str(number)
        returned = f"{self.model} returned {_excerpt(reply)}"
        if (
            isinstance(reply, Mapping)
            and reply
            and all(map(_is_number, reply.values()))
        ):
            shares = [float(share) for share in reply.values()]
            if _exceed_one(shares) and max(shares) <= 1:
                raise Refused(f"{returned}: {_SUM_ABOVE_ONE}")
            if not all(0 <= share <= 1 for share in shares):
                raise Refused(
                    f"{returned}, which holds no probabilities: they are numbers from 0 to 1. "
                    "Divide weights by their sum"
                )
            return reply
        expected = (
            "a reply (a text or a number), or probabilities by label such as "
            "{'4': 0.7, '5': 0.3}"
        )
        raise Refused(f"{returned}; a judge's function returns {expected}")

    async def aclose(self) -> None:
        self._first_replies.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None


def _excerpt(reply: object) -> str:
    return repr(reply)[:80]


def _is_number(value: object) -> bool:
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    return math.isfinite(value)


def _as_text(reply: str | Mapping[Any, float]) -> str:
    """Return a reply as text; of probabilities, the likeliest label."""
    if isinstance(reply, str):
        return reply
    return str(max(reply, key=lambda label: reply[label]))


def text_of(request: Request) -> str:
    """Return the prompt as one text: its messages, one below the other."""
    return "\n\n".join(message["content"] for message in request.messages)
