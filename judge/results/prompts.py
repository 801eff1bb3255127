"""The prompts of a run.

The first prompt of each column is stored. Others are rendered again from the stored texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge import criteria
from judge.config import RankConfig
from judge.core.criterion_entry import name_of
from judge.core.errors import ConfigError, CriterionError, DataError
from judge.core.format import one_line
from judge.core.records import Column, Criterion, Failure, Prompt, Sample, Score
from judge.criteria.reply_form import asked_by, configured
from judge.results.result import Result
from judge.results.run_info import JudgeInfo, PromptMessage
from judge.scoring.multi_criteria import PromptRenderer, make_renderers


@dataclass(frozen=True, slots=True, kw_only=True)
class TextPrompt:
    """What judges were asked about a text; `columns` are those that share the prompt.

    `opponent` is the system whose text a comparison shows second. If the prompt cannot be rendered
    again, `problem` says why, and there are no messages.
    """

    columns: tuple[str, ...]
    opponent: str = ""
    messages: tuple[PromptMessage, ...] = ()
    problem: str = ""


def messages_of(prompt: Prompt, system_message: str) -> tuple[PromptMessage, ...]:
    """Return all messages of a prompt in the order that they are sent."""
    messages = [
        PromptMessage(message["role"], message["content"])
        for message in prompt.messages
    ]
    if system_message:
        messages.insert(0, PromptMessage("system", system_message))
    if prompt.question:
        messages.append(PromptMessage("question", prompt.question))
    return tuple(messages)


def prompts_of(
    result: Result,
    sample: Sample,
    rows: Sequence[Score | Failure],
) -> tuple[TextPrompt, ...]:
    """Render what the judges were asked about a text. `rows` are its scores and failures.

    Judges of a panel that were asked the same share a prompt.
    """
    columns = {column.name: column for column in _judge_columns(result)}
    texts_of_item = [text for text in result.table.samples if text.item == sample.item]
    opponents = {text.system: text for text in texts_of_item}
    archive = _Archive(result)
    columns_by_prompt: dict[TextPrompt, list[str]] = {}
    for row in rows:
        if row.column in columns:
            opponent = opponents.get(row.opponent) if row.opponent else None
            prompt = archive.prompt(columns[row.column], sample, opponent)
            columns_by_prompt.setdefault(prompt, []).append(row.column)
    text_prompts: list[TextPrompt] = []
    for prompt, names in columns_by_prompt.items():
        text_prompts.append(replace(prompt, columns=tuple(names)))
    return tuple(text_prompts)


def _judge_columns(result: Result) -> Iterator[Column]:
    """Yield the columns of single judges whose criteria the run describes, and no panel's."""
    is_panel = len(result.info.judges) > 1
    for column in result.table.columns:
        is_described = column.criterion in result.info.criteria
        is_judged = column.kind == "criterion" and is_described
        if is_judged and bool(column.judge) == is_panel:
            yield column


class _Archive:
    """Renders prompts of a run as they were sent, from its criteria and its stored texts."""

    def __init__(self, result: Result) -> None:
        self._info = result.info
        self._renderers: dict[tuple[str, bool], PromptRenderer | str] = {}

    def prompt(
        self, column: Column, sample: Sample, opponent: Sample | None
    ) -> TextPrompt:
        """Return the prompt of a column about a text, without the column's name."""
        judge = self._info.judges.get(column.judge)
        if judge is None:  # the only judge has no name in its columns
            judge = next(iter(self._info.judges.values()), JudgeInfo())
        renderer = self._renderer(column.criterion, decides=judge.decides)
        if isinstance(renderer, str):
            return TextPrompt(columns=(), problem=renderer)
        opponent_name = opponent.system if opponent is not None else ""
        try:
            prompt = renderer.render(sample, opponent)
        except (CriterionError, DataError) as error:
            problem = f"No prompt: {error}."
            return TextPrompt(columns=(), opponent=opponent_name, problem=problem)
        system_message = str(judge.settings.get("system_message", ""))
        messages = messages_of(prompt, system_message)
        return TextPrompt(columns=(), opponent=opponent_name, messages=messages)

    def _renderer(self, criterion_name: str, *, decides: bool) -> PromptRenderer | str:
        """Return the renderer of a criterion of the run, or the reason why there is none."""
        renderer_key = (criterion_name, decides)
        if renderer_key not in self._renderers:
            renderer = self._make_renderer(criterion_name, decides=decides)
            self._renderers[renderer_key] = renderer
        return self._renderers[renderer_key]

    def _make_renderer(
        self, criterion_name: str, *, decides: bool
    ) -> PromptRenderer | str:
        displayed_name = one_line(criterion_name)
        problem = f"the criterion {displayed_name} cannot be found any more"
        for entry in self._entries(criterion_name):
            try:
                criterion = configured(self._load(entry), self._info.config)
                if criterion.digest == self._info.criteria[criterion_name].digest:
                    in_reply_form = asked_by(criterion, decides=decides)
                    renderers = make_renderers([in_reply_form])
                    return renderers[in_reply_form.name]
            # The configuration's own entry may be gone, and the file still be there.
            except (CriterionError, ConfigError):
                continue
            problem = f"the criterion {displayed_name} changed since this run"
        return f"Not shown: {problem}."

    def _load(self, entry: str | Path) -> Criterion:
        """Load a criterion in the run's language. Raises CriterionError or ConfigError."""
        language = self._info.language_name or "en"
        pairwise = isinstance(self._info.config, RankConfig)
        return criteria.load(entry, language=language, pairwise=pairwise)

    def _entries(self, criterion_name: str) -> Iterator[str | Path]:
        """Yield how the run's configuration names a criterion, and its file."""
        for entry in self._info.config.criteria or ():
            if name_of(entry) == criterion_name:
                yield entry
        path = self._info.criteria[criterion_name].path
        if path:
            yield Path(path)
