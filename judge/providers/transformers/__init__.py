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
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judge.config import RunConfig
from judge.core import huggingface
from judge.core.errors import ConfigError, JudgeError, Refused
from judge.core.records import Choice, Request, Response, Usage
from judge.providers.transformers import loading
from judge.providers.transformers.generation import GenerationTask, Generator
from judge.providers.transformers.label_scoring import Cancelled, Scorer
from judge.providers.transformers.labels import Labels, LabelTokenizer

_QUIET_SECONDS, _MAX_WAIT_SECONDS = 0.005, 0.05
"""Seconds without a new request after which those that have come are taken, and after which they are in any case."""


@dataclass(slots=True, eq=False)
class Job:
    """A request, and the future of its answer."""

    request: Request
    answer: Future[Response] = field(default_factory=Future)

    @property
    def over(self) -> bool:
        """Whether nobody waits for it any more."""
        return self.answer.done()

    def settle(self, outcome: Response | Exception) -> None:
        """Hand over the answer. An error loses its frames, which hold on to job and model."""
        with suppress(InvalidStateError):  # cancelled meanwhile
            if not isinstance(outcome, Exception):
                self.answer.set_result(outcome)
                return
            current: BaseException | None = outcome
            while current is not None:
                current.__traceback__ = None
                current = current.__cause__ or current.__context__
            self.answer.set_exception(outcome)


class InferenceThread:
    """One thread, begun with the first request, that has `work` called with all jobs that have come meanwhile.

    `work` should not lead back to the thread's owner, or the two stay in memory until a garbage collection.
    """

    def __init__(self, work: Callable[[Sequence[Job]], None]) -> None:
        self._work = work
        self._jobs: list[Job] = []
        self._lock, self._working = threading.Lock(), threading.Lock()
        self._executor: ThreadPoolExecutor | None = None

    async def ask(self, request: Request) -> Response:
        """The answer to a request. Raises the error that came in its place."""
        # No local may hold the job: an error raised here would form a cycle with it that keeps the model in memory.
        return await asyncio.wrap_future(self._put(Job(request)))

    def _put(self, job: Job) -> Future[Response]:
        with self._lock:
            self._jobs.append(job)
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, "judge-local")
            if len(self._jobs) == 1:
                self._executor.submit(self._answer)
        return job.answer

    def _answer(self) -> None:
        """Answer all jobs that have come, once no more do for a moment and an earlier thread has ended."""
        until, seen = time.monotonic() + _MAX_WAIT_SECONDS, 0
        while seen != len(self._jobs) and time.monotonic() < until:
            seen = len(self._jobs)
            time.sleep(_QUIET_SECONDS)
        with self._working:
            with self._lock:
                jobs, self._jobs = self._jobs, []
            try:
                self._work(jobs)
            except Exception as error:  # noqa: BLE001  (it is raised where the answers are waited for)
                for job in jobs:
                    job.settle(error)

    async def aclose(self) -> None:
        """End the thread, once it is done with what it was asked. A later request begins another, after it."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            await asyncio.to_thread(executor.shutdown)


LABELS = "labels"
"""The request parameter that names the labels whose probabilities are wanted; see `judge.scoring.strategies`."""
_DEFAULT_MAX_TOKENS = 1024


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

    def __init__(self, local_model: loading.LocalModel, keep: Path | None) -> None:
        self.model, self.endpoint = local_model.model, local_model.endpoint
        self._local_model, self._keep = local_model, keep
        self._judge = _LocalJudge(local_model)
        self._thread = InferenceThread(self._judge.answer)
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
        return {**self._inherited, **self._judge.learned}

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


class _LocalJudge:
    """A model, loaded when it is first asked; for one thread. It knows nothing of the provider, and goes with it."""

    def __init__(self, local_model: loading.LocalModel) -> None:
        self._local_model, self._chat = local_model, local_model.chat
        self._label_tokenizer = LabelTokenizer(local_model.chat.tokenizer)
        self._scorer: Scorer | None = None
        self._generator: Generator | None = None
        self._by = ""

    @property
    def learned(self) -> dict[str, Any]:
        return {name: value for part in (self._generator, self._scorer) if part for name, value in part.learned.items()}

    def answer(self, jobs: Sequence[Job]) -> None:
        """Settle all jobs that anyone waits for, each as soon as its answer is there.

        Raises ConfigError where the network or the labels are no use.
        """
        jobs = [job for job in jobs if not job.over]
        if not jobs:
            return
        try:
            if self._scorer is None or self._generator is None:
                gc.collect()  # a run that is over may be a cycle still, with a model as large as this one
                network = self._local_model.load()
                self._scorer, self._generator = Scorer(network), Generator(network, self._chat.tokenizer)
                device = network.device.type
                if device == "cuda":
                    device = huggingface.import_optional("torch", "local").cuda.get_device_name(network.device)
                self._by = f"transformers {huggingface.version('transformers', 'local')} on {device}"
            self._answer(jobs, self._scorer, self._generator)
        except JudgeError:
            raise
        except Exception as error:  # whatever a network raises that was not made for what it is given
            raise self._local_model.files.error(
                f"its network cannot compute: {huggingface.first_line(error)}"
            ) from error

    def _answer(self, jobs: Sequence[Job], scorer: Scorer, generator: Generator) -> None:
        prompts = self._chat.tokens([job.request.messages for job in jobs])
        # Prompts on one document share its computation, so they are scored together.
        documents: dict[str, list[tuple[Job, list[int], Labels]]] = {}
        replies: list[tuple[Job, GenerationTask]] = []
        for job, prompt in zip(jobs, prompts, strict=True):
            try:
                if isinstance(prompt, Refused):
                    raise prompt
                if LABELS in job.request.params:
                    labels = self._label_tokenizer(job.request.params[LABELS])
                    scorer.check(prompt, labels)
                    documents.setdefault(job.request.prefix[0], []).append((job, prompt, labels))
                else:
                    # What a request wants written. Each draw has the seed of the request that would ask for it alone.
                    request, params = job.request, job.request.params
                    alone = {name: value for name, value in params.items() if name != "n"}
                    seeds = []
                    for draw in range(request.draw, request.draw + int(params.get("n", 1))):
                        single = replace(request, params=alone, draw=draw)
                        seeds.append(int.from_bytes(hashlib.sha256(single.key().encode()).digest()[:7], "big"))
                    most, temperature = int(params.get("max_tokens") or _DEFAULT_MAX_TOKENS), params.get("temperature")
                    top = int(params.get("top_logprobs") or 0)
                    task = GenerationTask(prompt, tuple(seeds), float(temperature or 0.0), most, top)
                    replies.append((job, generator.check(task)))
            except Refused as error:
                job.settle(error)
        for document in documents.values():
            self._score(scorer, document)
        self._write(generator, replies)

    def _score(self, scorer: Scorer, document: Sequence[tuple[Job, list[int], Labels]]) -> None:
        """Answer those whose labels are named."""
        document = [entry for entry in document if not entry[0].over]
        prompts, scales = [prompt for _, prompt, _ in document], [labels for *_, labels in document]
        try:
            results = scorer(prompts, scales, lambda: all(job.over for job, *_ in document))
        except Cancelled:
            return
        except Refused as error:
            if len(document) == 1:
                document[0][0].settle(error)
                return
            for entry in document:  # one of them is too much by itself
                self._score(scorer, [entry])
            return
        for (job, prompt, _), scored in zip(document, results, strict=True):
            text = self._chat.tokenizer.decode([scored.likeliest])
            usage = Usage(len(prompt), 1)
            job.settle(Response((Choice(text, "stop", shares=scored.shares),), usage, self._by))

    def _write(self, generator: Generator, tasks: Sequence[tuple[Job, GenerationTask]]) -> None:
        """Answer those that want text."""
        tasks = [entry for entry in tasks if not entry[0].over]
        for place, replies in generator([task for _, task in tasks], lambda place: tasks[place][0].over):
            job, task = tasks[place]
            if isinstance(replies, Refused):
                job.settle(replies)
                continue
            usage = Usage(len(task.tokens), sum(reply.tokens for reply in replies))
            unmet = ("response_format",) if "response_format" in job.request.params else ()
            job.settle(Response(tuple(reply.choice for reply in replies), usage, self._by, unmet))
