"""Where requests wait for the one thread that computes.

A judge in this process: a causal language model of transformers, with the probability of every label.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.config import Plan
from judge.core import huggingface
from judge.core.errors import ConfigError, JudgeError, Refused
from judge.core.records import Choice, Request, Response, Usage
from judge.providers.transformers import loading
from judge.providers.transformers.generation import Generator, Wanted, Written
from judge.providers.transformers.label_scoring import Cancelled, LabelProbabilities, Labels, LabelTokenizer, Scorer

_PAUSE, _LONGEST = 0.005, 0.05
"""Seconds without a new request after which those that have come are taken, and after which they are in any case."""

Outcome = Response | Exception


class Job:
    """A request, and the future of its answer in an event loop."""

    __slots__ = ("_loop", "future", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Response] = self._loop.create_future()

    @property
    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.future.done()

    def settle(self, outcome: Outcome) -> None:
        """Hand over the answer, from whichever thread. An error loses its frames, which hold on to job and model."""
        if isinstance(outcome, Exception):
            _unframe(outcome)
        try:
            self._loop.call_soon_threadsafe(self._settle, outcome)
        except RuntimeError:  # the loop is closed: nobody waits
            return

    def _settle(self, outcome: Outcome) -> None:
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class InferenceThread:
    """One thread, begun with the first request, that has `work` called with all jobs that have come meanwhile.

    `work` should not lead back to who has the desk, or the two stay in memory until a garbage collection.
    """

    def __init__(self, work: Callable[[Sequence[Job]], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._shift: _Shift | None = None

    async def ask(self, request: Request) -> Response:
        """The answer to a request. Raises the error that came in its place."""
        return await self._put(Job(request))

    async def aclose(self) -> None:
        """End the thread, once it is done with what it was asked. A later request begins another, after it."""
        with self._lock:
            shift = self._shift
        if shift is not None:
            shift.close()
            await asyncio.to_thread(shift.join)

    def _put(self, job: Job) -> asyncio.Future[Response]:
        with self._lock:
            if self._shift is None or not self._shift.put(job):
                self._shift = _Shift(self._work, self._shift, job)
                self._shift.start()
        return job.future


class _Shift(threading.Thread):
    """A thread with jobs of its own, which begins when the one before has ended."""

    def __init__(self, work: Callable[[Sequence[Job]], None], before: threading.Thread | None, first: Job) -> None:
        super().__init__(name="judge-local", daemon=True)
        self._work, self._before = work, before
        self._jobs = [first]
        self._condition = threading.Condition()
        self._closing = False

    def put(self, job: Job) -> bool:
        """Whether it takes the job, as it does until it is told to end."""
        with self._condition:
            if not self._closing:
                self._jobs.append(job)
                self._condition.notify()
            return not self._closing

    def close(self) -> None:
        """Tell it to end, once its jobs are done."""
        with self._condition:
            self._closing = True
            self._condition.notify()

    def run(self) -> None:
        if self._before is not None:
            self._before.join()
            self._before = None
        while jobs := self._taken():
            try:
                self._work(jobs)
            except Exception as error:  # noqa: BLE001  (it is raised where the answers are waited for)
                for job in jobs:
                    job.settle(error)

    def _taken(self) -> list[Job]:
        """All jobs that have come, once no more do for a moment; none when it is time to end."""
        with self._condition:
            while not self._jobs:
                if self._closing:
                    return []
                self._condition.wait()
            until, seen = time.monotonic() + _LONGEST, 0
            while seen != len(self._jobs) and time.monotonic() < until and not self._closing:
                seen = len(self._jobs)
                self._condition.wait(_PAUSE)
            taken, self._jobs = self._jobs, []
            return taken


def _unframe(error: BaseException) -> None:
    """Takes the frames off an error, and off those that led to it."""
    one: BaseException | None = error
    while one is not None:
        one.__traceback__ = None
        one = one.__cause__ or one.__context__


LABELS = "labels"
"""The parameter of a request that names the labels of which it wants the probabilities; see `judge.scoring.strategies`."""
_LONGEST_REPLY = 1024
Prompted = tuple[Job, list[int]]


class LocalProvider:
    """A provider for a model that runs here, for several event loops one after the other.

    The network is loaded with the first request, and kept. A request that names its labels is answered with the
    probabilities of all of them, and its choice's text is the likeliest next token's; every other with what the model
    writes. A JSON schema is not enforced.
    """

    name = "local"
    notice = ""
    decides = False
    full_distribution = True
    gpu = True
    keeps = True

    def __init__(self, found: loading.LocalModel, keep: Path | None = None) -> None:
        self.model, self.endpoint = found.model, found.endpoint
        self._found, self._keep = found, keep
        self._room = _Room(found)
        self._desk = InferenceThread(self._room.answer)
        self._told: dict[str, Any] = {}

    @classmethod
    def open(cls, model: str, plan: Plan, *, keep: Path | None = None) -> LocalProvider:
        """The provider of `--model local/FOLDER` or `local/NAME`. Raises ConfigError and MissingExtra."""
        if not model.strip():
            raise ConfigError("--model local/: write a folder, or a name on the Hugging Face hub, after the slash")
        if plan.base_url:
            raise ConfigError(
                f"--model local/{model}: it is computed in this process, and --base-url {plan.base_url} is a server's: "
                "leave one out, or give the address to that judge of a plan that it is for"
            )
        return cls(loading.find(model, keep=keep), keep)

    @property
    def learned(self) -> dict[str, Any]:
        return {**self._told, **self._room.learned}

    @property
    def shared_state(self) -> dict[str, Any]:
        """What another process may take over: it only says what turned out."""
        return self.learned

    @shared_state.setter
    def shared_state(self, told: dict[str, Any]) -> None:
        self._told = dict(told)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self._found.where, self.endpoint, self._found.dtype, self._keep)

    async def complete(self, request: Request) -> Response:
        """One response. Raises Refused, and ConfigError where the network or the labels are no use."""
        return await self._desk.ask(request)

    async def aclose(self) -> None:
        """End the thread that computes. The network is kept for what is asked later."""
        await self._desk.aclose()


def _again(where: str, endpoint: str, dtype: str, keep: Path | None) -> LocalProvider:
    """The provider in another process, where the same files have to be. Raises ConfigError."""
    found = loading.find(where, keep=keep, dtype=dtype)
    if found.endpoint != endpoint:
        raise ConfigError(f"{found.files.label}: its files here are others than where the run was started")
    return LocalProvider(found, keep)


class _Room:
    """Where the model stands once it is asked. It knows nothing of the provider, and goes when that goes."""

    def __init__(self, found: loading.LocalModel) -> None:
        self._found = found
        self._machine: _Machine | None = None

    @property
    def learned(self) -> dict[str, Any]:
        return self._machine.learned if self._machine else {}

    def answer(self, jobs: Sequence[Job]) -> None:
        """Settle all jobs that anyone waits for. Raises ConfigError where the network or the labels are no use."""
        if all(job.over for job in jobs):
            return
        try:
            if self._machine is None:
                gc.collect()  # a run that is over may be a cycle still, with a model as large as this one
                self._machine = _Machine(self._found)
            self._machine.answer(jobs)
        except JudgeError:
            raise
        except Exception as error:  # whatever a network raises that was not made for what it is given
            raise self._found.files.error(f"its network cannot compute: {huggingface.first_line(error)}") from error


class _Machine:
    """The loaded model; all of it is for one thread."""

    def __init__(self, found: loading.LocalModel) -> None:
        network = found.load()
        self._chat, self._speller = found.chat, LabelTokenizer(found.chat.tokenizer)
        self._writer = Generator(network, found.chat.tokenizer)
        self._scorer = Scorer(network)
        self._by = f"transformers {huggingface.version('transformers', 'local')} on {_device(network.device)}"

    @property
    def learned(self) -> dict[str, Any]:
        return {**self._writer.learned, **self._scorer.learned}

    def answer(self, jobs: Sequence[Job]) -> None:
        """Settle all jobs, each as soon as its answer is there."""
        jobs = [job for job in jobs if not job.over]
        asked: list[Prompted] = []
        for job, prompt in zip(jobs, self._chat.tokens([job.request.messages for job in jobs]), strict=True):
            if isinstance(prompt, Refused):
                job.settle(prompt)
            else:
                asked.append((job, prompt))
        for document in _by_document(one for one in asked if LABELS in one[0].request.params):
            self._score([(job, prompt) for job, prompt in document if not job.over])
        self._write([(job, prompt) for job, prompt in asked if LABELS not in job.request.params and not job.over])

    def _score(self, asked: Sequence[Prompted]) -> None:
        """Answer those whose labels are named."""
        fit: list[tuple[Job, list[int], Labels]] = []
        for job, prompt in asked:
            labels = self._speller(job.request.params[LABELS])
            try:
                self._scorer.check(prompt, labels)
            except Refused as error:
                job.settle(error)
            else:
                fit.append((job, prompt, labels))
        if fit:
            self._score_together(fit)

    def _score_together(self, fit: Sequence[tuple[Job, list[int], Labels]]) -> None:
        prompts, scales = [prompt for _, prompt, _ in fit], [labels for *_, labels in fit]
        try:
            found = self._scorer(prompts, scales, lambda: all(job.over for job, *_ in fit))
        except Cancelled:
            return
        except Refused as error:
            if len(fit) == 1:
                fit[0][0].settle(error)
                return
            for one in fit:  # one of them is too much by itself
                if not one[0].over:
                    self._score_together([one])
            return
        for (job, prompt, _), scored in zip(fit, found, strict=True):
            job.settle(self._scored(scored, len(prompt)))

    def _scored(self, scored: LabelProbabilities, size: int) -> Response:
        text = self._chat.tokenizer.decode([scored.likeliest])
        usage = Usage(size, 1, cached_tokens=scored.reused)
        return Response((Choice(text, "stop", shares=scored.shares),), usage, self._by)

    def _write(self, asked: Sequence[Prompted]) -> None:
        """Answer those that want text."""
        fit: list[tuple[Job, Wanted]] = []
        for job, prompt in asked:
            try:
                fit.append((job, self._writer.check(_wanted(job.request, prompt))))
            except Refused as error:
                job.settle(error)
        jobs = [job for job, _ in fit]
        for place, replies in self._writer([wanted for _, wanted in fit], lambda place: jobs[place].over):
            job, wanted = fit[place]
            job.settle(replies if isinstance(replies, Refused) else self._written(job.request, wanted, replies))

    def _written(self, request: Request, wanted: Wanted, replies: Sequence[Written]) -> Response:
        usage = Usage(len(wanted.tokens), sum(reply.tokens for reply in replies))
        unmet = ("response_format",) if "response_format" in request.params else ()
        return Response(tuple(reply.choice for reply in replies), usage, self._by, unmet)


def _by_document(asked: Iterable[Prompted]) -> Iterator[list[Prompted]]:
    """The prompts on one document together, and those on no long one, in the order of their first."""
    found: dict[str, list[Prompted]] = {}
    for one in asked:
        found.setdefault(one[0].request.prefix[0], []).append(one)
    yield from found.values()


def _wanted(request: Request, prompt: list[int]) -> Wanted:
    """What a request wants written. Each draw has the seed of the request that would ask for it alone."""
    given = request.params
    alone = {name: value for name, value in given.items() if name != "n"}
    seeds = []
    for draw in range(request.draw, request.draw + int(given.get("n", 1))):
        one = replace(request, params=alone, draw=draw)
        seeds.append(int.from_bytes(hashlib.sha256(one.key().encode()).digest()[:7], "big"))
    most, top = int(given.get("max_tokens") or _LONGEST_REPLY), int(given.get("top_logprobs") or 0)
    return Wanted(prompt, tuple(seeds), float(given.get("temperature") or 0.0), most, top)


def _device(device: Any) -> str:
    return (
        str(huggingface.import_optional("torch", "local").cuda.get_device_name(device))
        if device.type == "cuda"
        else str(device.type)
    )
