"""A system that writes its outputs: a prompt, and the model that answers it for each item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.cache import Cache
from judge.config import RunConfig
from judge.core.errors import ConfigError, CriterionError
from judge.core.generated_system import GeneratedSystem
from judge.core.messages import option
from judge.core.records import UNWRITTEN, Failure, Sample
from judge.criteria.render import PromptFile
from judge.execution.layers.cached import ReplyStore
from judge.execution.progress import JudgeProgress
from judge.execution.questions import (
    MetricReply,
    QuestionClient,
    read_reply,
    to_request,
)
from judge.execution.token_estimates import estimate_tokens
from judge.metrics.base import ModelError, ModelQuestion
from judge.providers import Provider
from judge.results.run_info import SystemInfo
from judge.run.cost_estimate import judge_plan
from judge.run.judge_models import AnyJudge, open_judges, open_offline
from judge.run.model_clients import SharedLimits, open_client
from judge.run.request_estimates import JudgeEstimate, JudgePlan, LineEstimate
from judge.run.run_metadata import model_use
from judge.scoring.strategies import SamplingOptions

_OF_THE_JUDGE: dict[str, Any] = {
    "system_message": None,
    "reasoning_effort": None,
    "extra_body": {},
    "temperature": None,
}
"""What a run says to its judge and not to the systems that write."""

TextsByItem = list[list[Sample | Failure]]
"""For each item, in the order of the data, its texts or failures."""


@dataclass(frozen=True, slots=True)
class WriterTools:
    """What all systems of a run share."""

    config: RunConfig
    replies: ReplyStore
    limits: SharedLimits


class SystemWriter:
    """A system that writes: its prompts for the items, and the model that answers them."""

    def __init__(
        self,
        system_name: str,
        spec: GeneratedSystem,
        config: RunConfig,
        items: Sequence[Sample],
        *,
        sends: bool = True,
    ) -> None:
        self._name = system_name
        self._spec = spec
        self._prompt = PromptFile.read(spec.prompt)
        self._mapping = config.map
        self._all_items = items
        self._without_prompt, prompts = self._render(items)
        self._items = [item for item in items if item.item not in self._without_prompt]
        # In the order of `_items`, with the generations of an item next to each other.
        self._questions = _questions(spec, prompts)
        writer_config = config.model_copy(update=_OF_THE_JUDGE)
        model: AnyJudge = spec.requested_model
        try:
            if not sends and not config.replay:
                model = open_offline(writer_config, spec.requested_model)
            (self._model,) = open_judges(writer_config, [model]).values()
        except ConfigError as error:
            raise ConfigError(f"systems: {system_name}: {error}") from error
        self.counts = JudgeProgress("output", total=len(self._questions))

    async def write(self, tools: WriterTools) -> TextsByItem:
        """Return for each item its texts or failures."""
        counts = self.counts
        client = open_client(
            tools.config,
            self._model.config,
            self.provider,
            counts=counts,
            store=tools.replies,
            limits=tools.limits,
        )

        def count_done(done: int) -> None:
            counts.done = done

        async with client as model:
            questions = QuestionClient(
                model.client,
                self.provider,
                counts,
                self._settings,
                retry_failed=tools.config.retry_failed,
                gathers=model.gathers,
            )
            replies = await questions.ask(self._questions, count_done)
        counts.failed = sum(isinstance(reply, ModelError) for reply in replies)
        return self._texts_by_item(replies)

    def _texts_by_item(self, replies: Sequence[MetricReply]) -> TextsByItem:
        """Return the texts of all items from the replies to the questions."""
        generations = self._spec.generations
        texts_by_item: dict[str, list[Sample | Failure]] = {}
        for position, item in enumerate(self._items):
            first_reply = position * generations
            replies_to_item = replies[first_reply : first_reply + generations]
            texts: list[Sample | Failure] = []
            for number, reply in enumerate(replies_to_item, 1):
                text = self._text(item, number, reply)
                texts.append(text)
            texts_by_item[item.item] = texts
        return [
            texts_by_item.get(item.item) or self._unwritten(item)
            for item in self._all_items
        ]

    def _text(self, item: Sample, number: int, reply: MetricReply) -> Sample | Failure:
        """Return the text that was written for an item, or why there is none."""
        generation = _generation(item, number, self._spec.generations)
        if isinstance(reply, str):
            return replace(generation, system=self._name, output=reply)
        # The message names options of the judge. A system has options of the same meaning.
        own_limit = f"max_tokens of the system {self._name}"
        message = reply.message.replace(option("max_tokens"), own_limit)
        no_reasoning = option("reasoning_effort", "none")
        message = message.replace(no_reasoning, "reasoning_effort: none")
        return Failure(
            item=generation.item,
            system=self._name,
            column="",
            stage=UNWRITTEN,
            error=reply.error,
            message=message,
        )

    def _unwritten(self, item: Sample) -> list[Sample | Failure]:
        """Return the failures of an item that the prompt cannot be made for."""
        message = str(self._without_prompt[item.item])
        error = CriterionError.__name__
        generations = self._spec.generations
        failures: list[Sample | Failure] = []
        for number in range(1, generations + 1):
            generation_name = _generation(item, number, generations).item
            failure = Failure(
                item=generation_name,
                system=self._name,
                column="",
                stage=UNWRITTEN,
                error=error,
                message=message,
            )
            failures.append(failure)
        return failures

    def _render(
        self, items: Sequence[Sample]
    ) -> tuple[dict[str, ConfigError], list[str]]:
        """Return why items have no prompt, by their names, and the prompts of the others.

        Raises ConfigError if no item has one.
        """
        without: dict[str, ConfigError] = {}
        prompts: list[str] = []
        for item in items:
            try:
                prompts.append(self._prompt.render(item, self._mapping))
            except ConfigError as error:
                without[item.item] = error
        if without and not prompts:
            raise next(iter(without.values()))
        return without, prompts

    def plan(self, config: RunConfig, cache: Cache) -> tuple[list[Sample], JudgePlan]:
        """Return outputs that are stored or assumed, and what writing the others takes."""
        requests = [
            to_request(question, self.provider, self._settings)
            for question in self._questions
        ]
        keys = [request.key() for request in requests]
        # The cache keeps no reply of a provider without an address, such as a Python function.
        stored = cache.get_many(keys) if self.provider.endpoint else {}
        new: list[ModelQuestion] = []
        outputs: list[Sample] = []
        generations = self._spec.generations
        keys_and_questions = zip(keys, self._questions, strict=True)
        for position, (key, question) in enumerate(keys_and_questions):
            item = self._items[position // generations]
            reply: MetricReply
            if key in stored:
                reply = read_reply(question, stored[key])
            else:
                new.append(question)
                reply = self._assumed_text(item, question, position)
            if isinstance(reply, str):
                generation = _generation(item, position % generations + 1, generations)
                outputs.append(replace(generation, system=self._name, output=reply))
        estimate = self._estimate(new)
        plan = judge_plan(self._model.config, self.provider, estimate)
        return outputs, plan

    def _estimate(self, new: Sequence[ModelQuestion]) -> JudgeEstimate:
        """Return what asking the `new` questions takes; the others are in the cache."""
        tokens_read = sum(estimate_tokens(question.prompt) for question in new)
        tokens_written = len(new) * self._spec.max_tokens
        line = LineEstimate(
            "outputs",
            judgments=len(self._questions),
            cached=len(self._questions) - len(new),
            requests=len(new),
            read=float(tokens_read),
            written=float(tokens_written),
        )
        return JudgeEstimate(
            self._name,
            [line],
            ("single",),
            fallback_draws=0,
            fallback_requests=0,
            exact=True,
            drawn=1,
            size=1,
            unit="output",
        )

    def _assumed_text(
        self, item: Sample, question: ModelQuestion, position: int
    ) -> str:
        """Return a text as long as the source, or as `max_tokens` allow."""
        source = item.source or question.prompt
        source_tokens = max(1, estimate_tokens(source))
        share = min(1.0, question.max_tokens / source_tokens)
        length = int(len(source) * share)
        # Each ends differently, because equal texts would be judged once.
        return f"{source[:length]}\n{self._name} {position}"

    @property
    def provider(self) -> Provider:
        return self._model.provider

    @property
    def _settings(self) -> SamplingOptions:
        # Each question has its own limit, that of the system.
        return replace(self._model.settings, max_tokens=None)

    @property
    def info(self) -> SystemInfo:
        """The system for run.json."""
        use = model_use(self.provider, self.counts)
        settings = self._spec.model_dump(
            mode="json", exclude_none=True, exclude_defaults=True
        )
        # `prompt` of a system's information is the text, not the path of its file.
        settings.pop("prompt", None)
        return SystemInfo(
            served_by=use.served_by,
            usage=use.usage,
            requests=use.requests,
            cost=use.cost,
            prompt=self._prompt.text,
            settings=settings,
        )


def _questions(spec: GeneratedSystem, prompts: Sequence[str]) -> list[ModelQuestion]:
    """Return the questions that write each generation of each prompt."""
    temperature = spec.temperature
    if temperature is None:
        # At 0, all generations of an item would be alike.
        temperature = 0.0 if spec.generations == 1 else 1.0
    questions: list[ModelQuestion] = []
    for prompt in prompts:
        for draw in range(spec.generations):
            question = ModelQuestion(prompt, spec.max_tokens, str, temperature, draw)
            questions.append(question)
    return questions


def _generation(item: Sample, number: int, generations: int) -> Sample:
    """Return the item of one of several generations: `doc-1 (2)`."""
    if generations == 1:
        return item
    generation_name = f"{item.item} ({number})"
    return replace(item, item=generation_name, cluster=item.item)
