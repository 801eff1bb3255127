"""A judge in this process: a causal language model of transformers, with the probability of every label."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.config import Plan
from judge.core import huggingface
from judge.core.errors import ConfigError, JudgeError, Refused
from judge.core.records import Choice, Request, Response, Usage
from judge.providers.transformers import loading
from judge.providers.transformers.generation import Wanted, Writer, Written
from judge.providers.transformers.label_scoring import GivenUp, Scored, Scorer
from judge.providers.transformers.label_tokens import Labels, Speller
from judge.providers.transformers.worker_thread import Desk, Job

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
    exact = True
    gpu = True
    keeps = True

    def __init__(self, found: loading.Found, keep: Path | None = None) -> None:
        self.model, self.endpoint = found.model, found.endpoint
        self._found, self._keep = found, keep
        self._room = _Room(found)
        self._desk = Desk(self._room.answer)
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
    def taught(self) -> dict[str, Any]:
        """What another process may take over: it only says what turned out."""
        return self.learned

    @taught.setter
    def taught(self, told: dict[str, Any]) -> None:
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

    def __init__(self, found: loading.Found) -> None:
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

    def __init__(self, found: loading.Found) -> None:
        network = found.load()
        self._chat, self._speller = found.chat, Speller(found.chat.tokenizer)
        self._writer = Writer(network, found.chat.tokenizer)
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
        except GivenUp:
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

    def _scored(self, scored: Scored, size: int) -> Response:
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
        str(huggingface.optional("torch", "local").cuda.get_device_name(device))
        if device.type == "cuda"
        else str(device.type)
    )
