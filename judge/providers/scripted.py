"""Providers without a model: scripted replies, for tests and demonstrations, and a Python function as the judge."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from judge.config import RunConfig
from judge.core import yaml_lines
from judge.core.errors import ConfigError, JudgeError, ProviderError, Refused, Unrecorded
from judge.core.records import Choice, Request, Response, Token, Usage
from judge.providers import Provider

Reply = str | int | Mapping[Any, float] | Response | ProviderError
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2


class ScriptedProvider(Provider):
    """A judge that answers every request with `script(request)`.

    A str or a number is the reply's text. A mapping of labels to probabilities is a reply of one token with these
    probabilities: the likeliest label, or at a temperature above 0 labels drawn in these proportions, the same every
    time. A Response passes through. A Transient or Refused is raised. `seen` keeps the requests in order, `unused` the
    numbers of a file's rules that answered none, with the cause.

    With `decides`, it is an endpoint of typed questions: the script gets each question separately, a mapping gives the
    answer's probabilities, and a str is the only label.
    """

    name = "scripted"
    notice = "Scripted replies: no model was asked. The scores only show how a report looks."

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
        self._file: Path | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it again: from its file, or else with its script, if that can be pickled. It has seen nothing."""
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
        """Return the provider of `--model scripted/FILE`, which does not keep requests. Raises ConfigError."""
        return _rebuild(model)

    @classmethod
    def from_file(cls, path: str | Path) -> ScriptedProvider:
        """Return a provider from YAML: a list of `{when: [text, ...], reply: text or {label: probability}}`.

        A rule answers the prompts that hold all its texts, one without `when` every prompt; the first such rule counts.
        A repair question, after a reply without a score, is only answered by a rule with a text of that question. If
        the first entry is `{note: text}`, reports show that text as their notice. Raises ConfigError.
        """
        try:
            data, line = Path(path).read_bytes(), 1
            root: Any = yaml_lines.tree(data)
            entries = yaml_lines.construct(root)
            if not isinstance(entries, list) or not entries:
                raise ValueError("write a list, with a - before each rule")
            has_note = isinstance(entries[0], dict) and "note" in entries[0]
            note = str(entries[0]["note"]) if has_note else ""
            rules = []
            for node, rule in [*zip(root.value, entries, strict=True)][bool(note) :]:
                line = node.start_mark.line + 1
                rules.append(_rule(rule))
        except OSError as error:
            near = Path("scripted", path)
            hint = f"; for the file {near}, write scripted/{near}" if near.is_file() else ""
            raise ConfigError(f"scripted replies {path}: {error.strerror}{hint}") from error
        except (TypeError, ValueError) as error:
            line = getattr(error, "line", None) or line
            raise ConfigError(
                f"scripted replies {path}:{line}: not a list of {{when, reply}} rules ({error})"
            ) from error

        def script(request: Request) -> Reply:
            """Return the reply of the first rule whose texts all occur in the prompt."""
            turns = [m["content"] for m in request.messages]
            prompt, second = (
                "\n".join(turns),
                any(m["role"] == "assistant" for m in request.messages),
            )
            matching = [
                number
                for number, (texts, _) in enumerate(rules, 1)
                if all(text in prompt for text in texts)
                and (not second or any(text in turns[-1] for text in texts))
            ]
            if not matching:
                return (Unrecorded if second else Refused)(f"{path} holds no reply for this prompt")
            first, *later = matching
            provider.unused.pop(first, None)
            for number in later:
                if number in provider.unused:
                    provider.unused[number] = (
                        f"rule {first} comes first and answers prompts with {wanted[number]}"
                    )
            return rules[first - 1][1]

        provider = cls(
            script,
            model=Path(path).name,
            endpoint=f"scripted:{hashlib.sha256(data).hexdigest()[:12]}",
        )
        provider.notice = note or cls.notice
        wanted = {
            n: " and ".join(map(repr, texts)) for n, (texts, _) in enumerate(rules, 1) if texts
        }
        provider.unused = {n: f"no prompt has {texts}" for n, texts in wanted.items()}
        provider._file = Path(path).absolute()
        return provider

    async def complete(self, request: Request) -> Response:
        """Return the script's response. Raises the error that it returns, and ConfigError for other values."""
        if self._remembers:
            self.seen.append(request)
        if not self.decides:
            return self._answer(request)
        each = [
            self._answer(replace(request, params={"questions": [q]}))
            for q in request.params["questions"]
        ]
        return Response(
            tuple(choice for response in each for choice in response.choices), Usage(), "scripted"
        )

    def _answer(self, request: Request) -> Response:
        reply = self._script(request)
        if isinstance(reply, ProviderError):
            raise reply
        if isinstance(reply, Response):
            return reply
        if not isinstance(reply, str | int | Mapping):
            raise ConfigError(
                f"a script returns text, probabilities by label, a Response or an error, not {reply!r}"
            )
        if self.decides:
            shares = reply if isinstance(reply, Mapping) else {reply: 1.0}
            listed = tuple((str(label), float(p)) for label, p in shares.items())
            return Response(
                (
                    Choice(
                        max(listed, key=lambda share: share[1], default=("", 0.0))[0], shares=listed
                    ),
                ),
                Usage(),
                "scripted",
            )
        return Response(to_choices(reply, request), Usage(), "scripted")


def _rebuild(path: str | Path) -> ScriptedProvider:
    provider = ScriptedProvider.from_file(path)
    provider._remembers = False
    return provider


def _rule(rule: Any) -> tuple[tuple[str, ...], Reply]:
    if not isinstance(rule, dict) or "reply" not in rule:
        raise ValueError("a rule has a reply, and under when the texts that the prompt must hold")
    when = rule.get("when", [])
    if not isinstance(when, str | list):
        raise ValueError("write a text under when, or a list of texts")
    reply = rule["reply"]
    texts = tuple(str(text) for text in ([when] if isinstance(when, str) else when))
    if isinstance(reply, dict):
        numbers = reply.values()
        if not all(isinstance(number, int | float) and 0 <= number <= 1 for number in numbers):
            raise ValueError("probabilities are numbers from 0 to 1")
        return texts, {str(label): float(share) for label, share in reply.items()}
    if reply is None or isinstance(reply, list):
        raise ValueError("a reply is a text, a number, or a probability for each label")
    return texts, str(reply)


def to_choices(reply: str | int | Mapping[Any, float], request: Request) -> tuple[Choice, ...]:
    """A reply, or probabilities by label, as the choices that a request asks for."""
    draws = range(request.draw, request.draw + int(request.params.get("n", 1)))
    if isinstance(reply, str | int):
        return (Choice(str(reply)),) * len(draws)
    top = int(request.params.get("top_logprobs", 0))
    likely = sorted(
        ((str(label), p) for label, p in reply.items() if p > 0), key=lambda pair: -pair[1]
    )
    listed = tuple((label, math.log(p)) for label, p in likely)
    choices = []
    for draw in draws:
        place = _choose_label(likely, draw) if request.params.get("temperature") else 0
        text, logprob = listed[place] if listed else ("", 0.0)
        choices.append(Choice(text, "stop", (Token(text, logprob, listed[:top]),) if top else None))
    return tuple(choices)


def _choose_label(likely: list[tuple[str, float]], draw: int) -> int:
    """The place of the label that a draw has: multiples of the golden ratio fill the unit interval evenly."""
    remaining = (draw + 0.5) * _GOLDEN_RATIO % 1.0 * sum(p for _, p in likely)
    for place, (_, p) in enumerate(likely):
        remaining -= p
        if remaining < 0:
            return place
    return len(likely) - 1


Judged = str | float | Mapping[Any, float]
Function = Callable[[str], Judged | Awaitable[Judged]]
_MAX_REASON = 500


class FunctionProvider(Provider):
    """Answers every prompt with what `function(text)` returns, also where that has to be awaited.

    A str or a number is the reply as a model would write it; a mapping holds the probabilities by label. Whatever the
    function raises, or returns besides, is a failed judgment with that as its message. A question for the score alone
    follows the prompt and the reply in one text. Nothing is cached, as another
    function may have the same name tomorrow. A plain function is called in one thread, one call after the other; an
    `async` one is called as often at once as `max_concurrency` says.
    """

    name = "function"
    endpoint = ""
    decides = False

    def __init__(self, function: Function) -> None:
        # A function's own name, that of what a partial calls, or of an object's class.
        inner = getattr(function, "func", function)
        self.model = str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")
        self.notice = f"The replies came from the Python function {self.model}. judge cannot see which model it asks."
        self._function = function
        self._awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  (an object whose call is async)
        )
        self._thread: ThreadPoolExecutor | None = None
        self._first_replies: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return FunctionProvider, (self._function,)

    async def complete(self, request: Request) -> Response:
        """Return what the function says, called once for each draw. Raises Refused with what it raised.

        A reply to a request for token probabilities is kept, as the same prompt follows without them.
        """
        prompt = text_of(request)
        wants_probabilities = "top_logprobs" in request.params
        reply: str | Mapping[Any, float] | None = None
        if not wants_probabilities:
            reply = self._first_replies.pop(prompt, None)
        if reply is None:
            reply = self._validated(await self._call(prompt))
        if wants_probabilities and isinstance(reply, str):
            self._first_replies[prompt] = reply
        if isinstance(reply, Mapping):
            return Response(to_choices(reply, request), Usage(), self.name)
        others = [
            _as_text(self._validated(await self._call(prompt)))
            for _ in range(1, int(request.params.get("n", 1)))
        ]
        return Response(tuple(map(Choice, [reply, *others])), Usage(), self.name)

    async def _call(self, prompt: str) -> object:
        try:
            if self._awaited:
                return await self._function(prompt)  # type: ignore[misc]
            self._thread = self._thread or ThreadPoolExecutor(1, "judge-function")
            reply = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._function, prompt
            )
            return await reply if inspect.isawaitable(reply) else reply
        except JudgeError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".rstrip(": ")[:_MAX_REASON]
            raise Refused(f"{self.model} raised {reason}") from error

    def _validated(self, reply: object) -> str | Mapping[Any, float]:
        """Return the reply in one of its two forms. Raises Refused for anything else."""
        if isinstance(reply, str):
            return reply
        if isinstance(reply, Integral) and not isinstance(reply, bool):
            return str(int(reply))
        if isinstance(reply, Real) and not isinstance(reply, bool):
            number = float(reply)
            return str(int(number)) if number.is_integer() else str(number)
        if isinstance(reply, Mapping) and reply and all(map(_is_number, reply.values())):
            if all(0 <= float(share) <= 1 for share in reply.values()):
                return reply
            raise Refused(
                f"{self.model} returned {repr(reply)[:80]}, which holds no probabilities: they are numbers from 0 to "
                "1. Divide weights by their sum"
            )
        expected = (
            "a reply (a text or a number), or probabilities by label such as {'4': 0.7, '5': 0.3}"
        )
        raise Refused(
            f"{self.model} returned {repr(reply)[:80]}; a judge's function returns {expected}"
        )

    async def aclose(self) -> None:
        self._first_replies.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)


def _as_text(reply: str | Mapping[Any, float]) -> str:
    """Return a reply as text; of probabilities, the likeliest label."""
    if isinstance(reply, str):
        return reply
    return str(max(reply, key=lambda label: reply[label]))


def text_of(request: Request) -> str:
    """The prompt as one text: its messages, one below the other."""
    return "\n\n".join(message["content"] for message in request.messages)
