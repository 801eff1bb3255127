"""The provider that runs a causal language model of transformers in this process.

One thread computes; requests wait for it and are answered in batches.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.config import RunConfig
from judge.core import huggingface
from judge.core.errors import ConfigError, JudgeError, Refused
from judge.core.records import Choice, Request, Response, Usage
from judge.providers.transformers import loading
from judge.providers.transformers.generation import GenerationTask, Generator
from judge.providers.transformers.label_scoring import Cancelled, Labels, LabelTokenizer, Scorer

_QUIET_SECONDS, _MAX_WAIT_SECONDS = 0.005, 0.05
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
            # Takes the frames off an error, and off those that led to it.
            current: BaseException | None = outcome
            while current is not None:
                current.__traceback__ = None
                current = current.__cause__ or current.__context__
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
        self._worker: _Worker | None = None

    async def ask(self, request: Request) -> Response:
        """The answer to a request. Raises the error that came in its place."""
        # No local may hold the job: an error raised here would form a cycle with it that keeps the model in memory.
        return await self._put(Job(request))

    def _put(self, job: Job) -> asyncio.Future[Response]:
        with self._lock:
            if self._worker is None or not self._worker.put(job):
                self._worker = _Worker(self._work, self._worker, job)
                self._worker.start()
        return job.future

    async def aclose(self) -> None:
        """End the thread, once it is done with what it was asked. A later request begins another, after it."""
        with self._lock:
            shift = self._worker
        if shift is not None:
            shift.close()
            await asyncio.to_thread(shift.join)


class _Worker(threading.Thread):
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
            until, seen = time.monotonic() + _MAX_WAIT_SECONDS, 0
            while seen != len(self._jobs) and time.monotonic() < until and not self._closing:
                seen = len(self._jobs)
                self._condition.wait(_QUIET_SECONDS)
            taken, self._jobs = self._jobs, []
            return taken


LABELS = "labels"
"""The request parameter that names the labels whose probabilities are wanted; see `judge.scoring.strategies`."""
_DEFAULT_MAX_TOKENS = 1024
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

    def __init__(self, local_model: loading.LocalModel, keep: Path | None = None) -> None:
        self.model, self.endpoint = local_model.model, local_model.endpoint
        self._local_model, self._keep = local_model, keep
        self._holder = _ModelHolder(local_model)
        self._thread = InferenceThread(self._holder.answer)
        self._inherited: dict[str, Any] = {}

    @classmethod
    def open(cls, model: str, config: RunConfig, *, keep: Path | None = None) -> LocalProvider:
        """The provider of `--model local/FOLDER` or `local/NAME`. Raises ConfigError and MissingExtra."""
        if not model.strip():
            raise ConfigError("--model local/: write a folder, or a name on the Hugging Face hub, after the slash")
        if config.base_url:
            raise ConfigError(
                f"--model local/{model}: it is computed in this process, and "
                f"--base-url {config.base_url} is a server's: "
                "leave one out, or give the address to that judge of a plan that it is for"
            )
        return cls(loading.find(model, keep=keep), keep)

    @property
    def learned(self) -> dict[str, Any]:
        return {**self._inherited, **self._holder.learned}

    @property
    def shared_state(self) -> dict[str, Any]:
        """What another process may take over: it only says what turned out."""
        return self.learned

    @shared_state.setter
    def shared_state(self, state: dict[str, Any]) -> None:
        self._inherited = dict(state)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._local_model.where, self.endpoint, self._local_model.dtype, self._keep)

    async def complete(self, request: Request) -> Response:
        """One response. Raises Refused, and ConfigError where the network or the labels are no use."""
        return await self._thread.ask(request)

    async def aclose(self) -> None:
        """End the thread that computes. The network is kept for what is asked later."""
        await self._thread.aclose()


def _rebuild(where: str, endpoint: str, dtype: str, keep: Path | None) -> LocalProvider:
    """The provider in another process, where the same files have to be. Raises ConfigError."""
    local_model = loading.find(where, keep=keep, dtype=dtype)
    if local_model.endpoint != endpoint:
        raise ConfigError(f"{local_model.files.label}: its files here are others than where the run was started")
    return LocalProvider(local_model, keep)


class _ModelHolder:
    """Where the model stands once it is asked. It knows nothing of the provider, and goes when that goes."""

    def __init__(self, local_model: loading.LocalModel) -> None:
        self._local_model = local_model
        self._loaded: _LoadedModel | None = None

    @property
    def learned(self) -> dict[str, Any]:
        return self._loaded.learned if self._loaded else {}

    def answer(self, jobs: Sequence[Job]) -> None:
        """Settle all jobs that anyone waits for. Raises ConfigError where the network or the labels are no use."""
        if all(job.over for job in jobs):
            return
        try:
            if self._loaded is None:
                gc.collect()  # a run that is over may be a cycle still, with a model as large as this one
                self._loaded = _LoadedModel(self._local_model)
            self._loaded.answer(jobs)
        except JudgeError:
            raise
        except Exception as error:  # whatever a network raises that was not made for what it is given
            raise self._local_model.files.error(
                f"its network cannot compute: {huggingface.first_line(error)}"
            ) from error


class _LoadedModel:
    """The loaded model; all of it is for one thread."""

    def __init__(self, local_model: loading.LocalModel) -> None:
        network = local_model.load()
        self._chat, self._label_tokenizer = local_model.chat, LabelTokenizer(local_model.chat.tokenizer)
        self._generator = Generator(network, local_model.chat.tokenizer)
        self._scorer = Scorer(network)
        device = str(network.device.type)
        if device == "cuda":
            device = huggingface.import_optional("torch", "local").cuda.get_device_name(network.device)
        self._by = f"transformers {huggingface.version('transformers', 'local')} on {device}"

    @property
    def learned(self) -> dict[str, Any]:
        return {**self._generator.learned, **self._scorer.learned}

    def answer(self, jobs: Sequence[Job]) -> None:
        """Settle all jobs, each as soon as its answer is there."""
        jobs = [job for job in jobs if not job.over]
        prompted: list[Prompted] = []
        for job, prompt in zip(jobs, self._chat.tokens([job.request.messages for job in jobs]), strict=True):
            if isinstance(prompt, Refused):
                job.settle(prompt)
            else:
                prompted.append((job, prompt))
        # Prompts on one document share its computation, so they are scored together.
        documents: dict[str, list[Prompted]] = {}
        for job, prompt in prompted:
            if LABELS in job.request.params:
                documents.setdefault(job.request.prefix[0], []).append((job, prompt))
        for document in documents.values():
            self._score([(job, prompt) for job, prompt in document if not job.over])
        self._write([(job, prompt) for job, prompt in prompted if LABELS not in job.request.params and not job.over])

    def _score(self, prompted: Sequence[Prompted]) -> None:
        """Answer those whose labels are named."""
        fit: list[tuple[Job, list[int], Labels]] = []
        for job, prompt in prompted:
            labels = self._label_tokenizer(job.request.params[LABELS])
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
            results = self._scorer(prompts, scales, lambda: all(job.over for job, *_ in fit))
        except Cancelled:
            return
        except Refused as error:
            if len(fit) == 1:
                fit[0][0].settle(error)
                return
            for triple in fit:  # one of them is too much by itself
                if not triple[0].over:
                    self._score_together([triple])
            return
        for (job, prompt, _), scored in zip(fit, results, strict=True):
            size = len(prompt)
            text = self._chat.tokenizer.decode([scored.likeliest])
            usage = Usage(size, 1, cached_tokens=scored.reused)
            job.settle(Response((Choice(text, "stop", shares=scored.shares),), usage, self._by))

    def _write(self, prompted: Sequence[Prompted]) -> None:
        """Answer those that want text."""
        fit: list[tuple[Job, GenerationTask]] = []
        for job, prompt in prompted:
            try:
                fit.append((job, self._generator.check(_task(job.request, prompt))))
            except Refused as error:
                job.settle(error)
        jobs = [job for job, _ in fit]
        for place, replies in self._generator([task for _, task in fit], lambda place: jobs[place].over):
            job, task = fit[place]
            if isinstance(replies, Refused):
                job.settle(replies)
                continue
            usage = Usage(len(task.tokens), sum(reply.tokens for reply in replies))
            unmet = ("response_format",) if "response_format" in job.request.params else ()
            job.settle(Response(tuple(reply.choice for reply in replies), usage, self._by, unmet))


def _task(request: Request, prompt: list[int]) -> GenerationTask:
    """What a request wants written. Each draw has the seed of the request that would ask for it alone."""
    params = request.params
    alone = {name: value for name, value in params.items() if name != "n"}
    seeds = []
    for draw in range(request.draw, request.draw + int(params.get("n", 1))):
        single = replace(request, params=alone, draw=draw)
        seeds.append(int.from_bytes(hashlib.sha256(single.key().encode()).digest()[:7], "big"))
    most, top = int(params.get("max_tokens") or _DEFAULT_MAX_TOKENS), int(params.get("top_logprobs") or 0)
    return GenerationTask(prompt, tuple(seeds), float(params.get("temperature") or 0.0), most, top)
