"""The interface of a metric, its base class, and what a run gives to its metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol

from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Sample, Score


@dataclass(frozen=True, slots=True)
class Note:
    """A note such as "rouge: 3 of 40 texts are empty", where `some` is 3 and `text` "are empty".

    It is dropped if `some` is 0.
    """

    metric: str
    some: int
    total: int
    text: str

    def __str__(self) -> str:
        count = f"{self.some:,} of {self.total:,} texts"
        return f"{self.metric}: {count} {self.text}"


@dataclass(frozen=True, slots=True)
class MetricResult:
    """A metric's columns, and for each sample in turn one row per column, in the columns' order.

    A column whose values are about all texts of a system has one row per system instead, with an
    empty `item`, after the others. Reports show `notes`.
    """

    columns: tuple[Column, ...]
    rows: tuple[Score | Failure, ...]
    notes: tuple[str | Note, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    """A prompt for a model: its text, the longest reply in tokens, and the parser of the reply.

    `draw` numbers the replies to one prompt that are drawn at a `temperature` above 0. `read`
    raises ParseError for a useless reply, which is then neither cached nor paid for twice.
    """

    prompt: str
    max_tokens: int
    read: Callable[[str], str]
    temperature: float = 0.0
    draw: int = 0


@dataclass(frozen=True, slots=True)
class ModelError:
    """Why a metric got no answer: the kind (CamelCase) and a message.

    `failed` if a judge was asked and its reply is missing or useless; `raw` is a useless reply.
    """

    error: str
    message: str
    failed: bool = False
    raw: str = ""


class Ask(Protocol):
    """Asks a judge model many prompts at once, with the run's cache, retries and counts.

    Returns what `read` accepted. `signature` names the judge in the signatures of columns.
    """

    @property
    def signature(self) -> str: ...

    def __call__(
        self, questions: Sequence[ModelQuestion], /
    ) -> list[str | ModelError]: ...


Tell = Callable[[int, int], None]
"""Called with the number of finished samples and of all samples; raising from it stops the work."""


def no_progress(done: int, total: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class MetricContext:
    """What a run passes to each of its metrics. Outside of a run, a metric has the defaults.

    `cache` is a folder for what is expensive to compute again, None without a cache. `seed` and
    `language` (of prompts, None for each text's own) are the run's; a metric may have options of
    its own that take precedence. `ask` is None without a judge.
    """

    cache: Path | None = None
    progress: Tell = no_progress
    seed: int = 0
    language: str | None = None
    ask: Ask | None = None

    def __reduce__(self) -> tuple[type[MetricContext], tuple[Any, ...]]:
        """Leave out `progress` and `ask`, because only the run's own process reports and asks."""
        return MetricContext, (self.cache, no_progress, self.seed, self.language)


class Metric(Protocol):
    """The interface of a metric. `BaseMetric` has all of it but `score`."""

    @property
    def rowwise(self) -> bool:
        """Whether a sample's rows are independent of other samples.

        Such a metric gets the data in parts, possibly in several processes, and must be picklable.
        """

    @property
    def needs(self) -> str:
        """The field without which no sample can be scored: `references`, `source` or ""."""

    @property
    def asks(self) -> bool:
        """Whether it needs the run's judge model."""

    def check(self, samples: Sequence[Sample]) -> None:
        """Raise ConfigError or DataError for unusable samples, before a judge is paid."""

    def most_requests(self, samples: Sequence[Sample]) -> int | None:
        """Return the maximum number of requests to the judge model, without repairs.

        None if it is unknown.
        """

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return the rows. A sample that it cannot score becomes `Failure` rows."""


def setting(default: Any, check: Callable[..., Any], *allowed: Any) -> Any:
    """Return a field whose value `check(option, value, *allowed)` checks and converts."""
    return field(default=default, metadata={"check": check, "allowed": allowed})


def bool_option(option: str, value: Any) -> bool:
    """Return an option's value, true or false. Raise ConfigError otherwise."""
    if not isinstance(value, bool):
        raise ConfigError(f"{option} must be true or false, not {value!r}")
    return value


@dataclass(frozen=True, kw_only=True)
class BaseMetric:
    """A metric without `score`: a dataclass whose fields are its options, but for `context`.

    Options are checked if they are fields by `setting`, or booleans. None is allowed if it is the
    default. The first sentence of the docstring describes the metric. Raises ConfigError.
    """

    name: ClassVar[str] = ""
    rowwise: ClassVar[bool] = False
    needs: ClassVar[str] = ""
    context: MetricContext = field(default=MetricContext(), repr=False, compare=False)

    def __post_init__(self) -> None:
        owner = self.name or type(self).__name__
        for option, option_field in self.option_fields().items():
            value = getattr(self, option)
            check = option_field.metadata.get("check")
            # Types are texts here, because of `from __future__ import annotations`.
            if check is None and str(option_field.type) in ("bool", "bool | None"):
                check = bool_option
            is_unset = value is None and option_field.default is None
            if check is None or is_unset:
                continue
            allowed = option_field.metadata.get("allowed", ())
            value = check(f"{owner}.{option}", value, *allowed)
            # The dataclass is frozen for everybody else.
            object.__setattr__(self, option, value)

    @classmethod
    def option_fields(cls) -> dict[str, Field[Any]]:
        """Return the fields that are options, by name."""
        options: dict[str, Field[Any]] = {}
        for option_field in fields(cls):
            if option_field.init and option_field.name != "context":
                options[option_field.name] = option_field
        return options

    @property
    def asks(self) -> bool:
        """Return whether it needs the run's judge model."""
        return False

    def check(self, samples: Sequence[Sample]) -> None:
        """Accept all samples."""

    def most_requests(self, samples: Sequence[Sample]) -> int | None:
        """Return None: unknown."""
        return None
