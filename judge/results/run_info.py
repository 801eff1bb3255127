"""`RunInfo`: what run.json records about a run besides its numbers.

It is enough to understand and repeat the run. It contains no API key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, TypeAdapter

from judge.config import RankConfig, RunConfig
from judge.core.format import to_json
from judge.core.records import ChecklistQuestion, Example, Usage
from judge.data.ratings import PairRating

Status = Literal["complete", "interrupted", "limit", "stopped"]
"""How a run ended: `limit` is a budget or a deadline that it reached, `stopped` an error."""
_STRICT = ConfigDict(extra="forbid")
"""Unknown keys come from a newer version, so they are an error and not dropped silently."""


def _options_as_json(config: RunConfig) -> dict[str, Any]:
    """Return the options of a configuration that have a value, under the names of run.yaml."""
    return config.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        fallback=_name_of_object,
    )


def _name_of_object(value: object) -> str:
    """Return the name of an object that is an option in Python, such as a verifier of claims."""
    return str(getattr(value, "__name__", type(value).__name__))


Config = Annotated[RunConfig | RankConfig, PlainSerializer(_options_as_json)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Numbers of requests to a model, and of judgments by how they were answered.

    Requests: `sent` includes retries, `answered` got a reply, and `failed` were abandoned.
    `retried` are the tries after the first one, and `timeouts` those after a time-out.

    Judgments: `cached` were answered from the cache alone, and `shared` by an equal request.
    `failed_cached` failed on cached replies without a score. `unread` are those whose reply had no
    score, and `repaired` those that have one only after a second question for the score alone.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    sent: int = 0
    answered: int = 0
    cached: int = 0
    failed_cached: int = 0
    shared: int = 0
    unread: int = 0
    repaired: int = 0
    retried: int = 0
    timeouts: int = 0
    failed: int = 0

    def __add__(self, added: Requests) -> Requests:
        sums: dict[str, int] = {}
        for field_name in self.__slots__:
            sums[field_name] = getattr(self, field_name) + getattr(added, field_name)
        return Requests(**sums)


@dataclass(frozen=True, slots=True)
class Cost:
    """A price in US dollars; None if it is unknown, for the reason in `note`."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    usd: float | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """What was asked of models, and what that cost; `cost` is None if no model was asked.

    `served_by` are the models that servers say have answered. `unmet` counts answers by the wanted
    parameter that the server refused or ignored.
    """

    served_by: tuple[str, ...] = ()
    unmet: Mapping[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    requests: Requests = Requests()
    cost: Cost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeInfo(ModelUse):
    """A judge: its provider and address, the user's settings, and what its server accepts.

    `draws` are the replies drawn for a score; None if none was drawn. `decides` marks an endpoint
    of typed questions.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    model: str = ""
    provider: str = ""
    base_url: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    learned: Mapping[str, Any] = field(default_factory=dict)
    draws: int | None = None
    decides: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemInfo(ModelUse):
    """A system that `systems` of run.yaml describes.

    It has the file of its `outputs`, or how they were generated.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    outputs: str = ""
    prompt: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionInfo:
    """A criterion. Its scale is in its column.

    `path` is its file, `templates` are the texts of that file and those that it uses, `needs` the
    fields of a sample that they read.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    digest: str = ""
    title: str = ""
    path: str = ""
    reply: str = ""
    steps: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    questions: tuple[ChecklistQuestion, ...] = ()
    questions_column: str = ""


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of a prompt.

    The role `question` is the question to a decision endpoint about the other messages.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPrompt:
    """The first prompt that a judge got about a criterion, and the text that it is about.

    `opponent` is the system whose text a comparison shows second. The middle of a long message is
    left out, with a mark that says how long it was."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    item: str
    system: str
    opponent: str = ""
    messages: tuple[PromptMessage, ...]


def _without_skeletons(stored: Any) -> Any:
    """Return the stored prompts; none for a run of a version up to November 2026.

    Those runs stored prompts with placeholders.
    """
    sheets = stored.get("sheets") if isinstance(stored, Mapping) else None
    is_old = isinstance(sheets, list)
    return {} if is_old else stored


FirstPrompts = Annotated[Mapping[str, FirstPrompt], BeforeValidator(_without_skeletons)]
"""The first prompt of each column of a judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataInfo:
    """The data: their file, and the number of files if there are several.

    Data given in Python have neither.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    path: str = ""
    sha256: str = ""
    files: int = 1
    rows: int = 0


@dataclass(frozen=True, slots=True)
class PromptLanguage:
    """The language of the prompts.

    `how` says where it comes from: chosen, detected, one of several, or the default.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    name: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class BudgetInfo:
    """A run's budget and how much was spent, in US dollars or tokens (`unit`)."""

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    amount: float
    unit: Literal["usd", "tokens"]
    spent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo(ModelUse):
    """A run: its configuration, data, judges and criteria, how it ended, and what its judges and
    systems used in all.

    - `started` is a time in ISO 8601, and `seconds` how long the run took.
    - `preferences`: people's, of a ranking.
    - `notices`: what every report has to show, such as that no model was asked. `notes`: warnings.
      `remarks`: what was read or done.
    - `versions`: of Python and of packages that may change a value.
    - `prompts`: the first prompt of each column of a judge.
    """

    __pydantic_config__: ClassVar[ConfigDict] = _STRICT

    judge_version: str = ""
    status: Status = "complete"
    started: str = ""
    seconds: float = 0.0
    config: Config = field(default_factory=RunConfig)
    data: DataInfo = DataInfo()
    language: PromptLanguage | None = None
    judges: Mapping[str, JudgeInfo] = field(default_factory=dict)
    systems: Mapping[str, SystemInfo] = field(default_factory=dict)
    criteria: Mapping[str, CriterionInfo] = field(default_factory=dict)
    preferences: tuple[PairRating, ...] = ()
    budget: BudgetInfo | None = None
    notices: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    prompts: FirstPrompts = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The names of all judges; "" without any."""
        return ", ".join(self.judges)

    @property
    def provider(self) -> str:
        """The names of the judges' providers."""
        names = [judge.provider for judge in self.judges.values()]
        return ", ".join(_distinct(names))

    @property
    def base_url(self) -> str:
        """The addresses of the judges."""
        addresses = [judge.base_url for judge in self.judges.values()]
        return ", ".join(_distinct(addresses))

    @property
    def language_name(self) -> str:
        """The code of the prompts' language; "" without judges."""
        return self.language.name if self.language is not None else ""

    @property
    def against(self) -> str:
        """The system that all others are compared with; "" if all are compared with each other."""
        return self.config.against or ""

    @property
    def orders(self) -> Literal[1, 2] | None:
        """In how many orders each pair of a ranking was judged; None if no pairs were."""
        return self.config.orders if isinstance(self.config, RankConfig) else None

    def with_notes(self, *notes: str) -> RunInfo:
        """Return the information with further notes before its own."""
        return replace(self, notes=(*notes, *self.notes))

    def to_json(self) -> dict[str, Any]:
        """Return the information as run.json has it."""
        dumped = _adapter().dump_python(self, mode="json")
        # Extra parameters and what a server taught may hold NaN, which strict JSON lacks.
        plain: dict[str, Any] = to_json(dumped)
        return plain


def read(stored: Mapping[str, Any]) -> RunInfo:
    """Return the information of a run.json. Raises pydantic's ValidationError."""
    return _adapter().validate_python(stored)


# Built when it is first needed, because it takes long and `import judge` needs none.
@cache
def _adapter() -> TypeAdapter[RunInfo]:
    return TypeAdapter(RunInfo)


def _distinct(texts: Sequence[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
