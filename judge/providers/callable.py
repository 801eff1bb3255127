"""A function as a judge: it is given the prompt's text and returns a reply."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from numbers import Integral, Real
from typing import Any

from judge.core.errors import JudgeError, Refused
from judge.core.records import Request, Response, Usage
from judge.providers.scripted import answered

Judged = str | float | Mapping[Any, float]
Function = Callable[[str], Judged | Awaitable[Judged]]
_LONGEST = 500


class FunctionProvider:
    """Answers every prompt with what `function(text)` returns, also where that has to be awaited.

    A str or a number is the reply as a model would write it; a mapping holds the probabilities by label. Whatever the
    function raises, or returns besides, is a failed judgment with that as its message. Nothing is cached, as another
    function may have the same name tomorrow. A plain function is called in one thread, one call after the other; an
    `async` one is called as often at once as `max_concurrency` says.
    """

    name = "function"
    endpoint = ""
    decides = False

    def __init__(self, function: Function) -> None:
        self.model = _name(function)
        self.notice = f"The replies came from the Python function {self.model}: what it asks is not known here."
        self._function = function
        self._awaited = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004  (an object whose call is async)
        )
        self._thread: ThreadPoolExecutor | None = None
        self._said: dict[str, str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return FunctionProvider, (self._function,)

    @property
    def learned(self) -> dict[str, Any]:
        return {}

    async def complete(self, request: Request) -> Response:
        """What the function says, asked once where a text is read in two ways. Raises Refused with what it raised."""
        prompt = text_of(request)
        kept = None if "top_logprobs" in request.params else self._said.pop(prompt, None)
        reply = self._checked(await self._called(prompt)) if kept is None else kept
        if isinstance(reply, str) and "top_logprobs" in request.params:
            self._said[prompt] = reply
        return Response(answered(reply, request), Usage(), self.name)

    async def _called(self, prompt: str) -> object:
        try:
            if self._awaited:
                return await self._function(prompt)  # type: ignore[misc]
            self._thread = self._thread or ThreadPoolExecutor(1, "judge-function")
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._function, prompt)
            return await found if inspect.isawaitable(found) else found
        except JudgeError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}".rstrip(": ")[:_LONGEST]
            raise Refused(f"{self.model} raised {said}") from error

    def _checked(self, reply: object) -> str | Mapping[Any, float]:
        """The reply in one of its two forms. Raises Refused for what is none."""
        if isinstance(reply, str):
            return reply
        if isinstance(reply, Integral) and not isinstance(reply, bool):
            return str(int(reply))
        if isinstance(reply, Real) and not isinstance(reply, bool):
            number = float(reply)
            return str(int(number)) if number.is_integer() else str(number)
        if isinstance(reply, Mapping) and reply and all(map(_is_share, reply.values())):
            return reply
        wanted = "a reply (a text or a number), or probabilities by label such as {'4': 0.7, '5': 0.3}"
        raise Refused(f"{self.model} returned {repr(reply)[:80]}; a judge's function returns {wanted}")

    async def aclose(self) -> None:
        self._said.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None


def text_of(request: Request) -> str:
    """The prompt as one text: its messages, one below the other."""
    return "\n\n".join(message["content"] for message in request.messages)


def _name(function: object) -> str:
    """A function's own name, that of what a partial calls, or of an object's class."""
    inner = getattr(function, "func", function)
    return str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < math.inf
