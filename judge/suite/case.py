"""A case of a suite: the keys that all expectations have, the texts it is about, and its verdict.

An expectation is a class of its own. It parses its keys, chooses its texts, decides from their
scores, and describes itself; `Case` is the base of all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    PrivateAttr,
    model_validator,
)
from pydantic_core import PydanticCustomError

from judge.core.criterion_entry import name_of, to_entries
from judge.core.errors import ConfigError, DataError
from judge.core.format import one_line, plural
from judge.core.item_names import unknown_item
from judge.core.plugins import require_known
from judge.core.records import Column, Criterion, Estimate, Sample
from judge.data import samples
from judge.results.failures import unanalyzed_with_worst
from judge.results.result import Result
from judge.stats.bounded_mean import N_RESAMPLES
from judge.suite.case_scores import CaseScores
from judge.suite.evidence import NEAR, Undecidable
from judge.suite.judged_texts import JudgedText, TextSource
from judge.suite.mean_tests import MeanTest
from judge.table import Text

Form = Literal["texts", "pairs"]
"""Whether a run of a suite scores single texts, or compares pairs of texts."""
Policy = Literal["pass", "fail"]
Status = Literal["passed", "failed", "undecided", "error"]
STATUS: Mapping[int, Status] = {1: "passed", 0: "undecided", -1: "failed"}
"""The status by the side of the limit that the numbers are on."""
MISTAKE = "case"
"""The type of pydantic's errors that `Case.mistake` raises."""
_LEAST_FLAKY = 0.05
_MOST_FLAKY = 0.95
_LONGEST_NAME = 60
"""Characters of a name in a message."""
_LONGEST_QUOTE = 40
"""Characters of a text in a case's name."""
_MOST_ITEMS = 3
"""Items in a case's name."""
_QUOTES = "YAML reads it as {}; put it in quotes"


def _parse_name(value: Any) -> str:
    """Parse a name: text or a whole number.

    Refuses the truth value that YAML makes of `no`, and the decimal that it makes of 1.0.
    """
    # Items are often numbers. A bool is an int to Python, but here a name that YAML misreads.
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    if value is None or isinstance(value, str):
        raise ValueError("the value is empty")
    if isinstance(value, list | dict):
        raise ValueError("write a name")
    raise ValueError(_QUOTES.format(_describe_scalar(value)))


def _parse_criterion(value: Any) -> str:
    """Parse a criterion, which is also written as a sentence or with its keys."""
    entries = to_entries([value]) if isinstance(value, str | dict) else [value]
    if len(entries) != 1:
        raise ValueError("a case is about one criterion")
    return _parse_name(entries[0])


def _describe_scalar(value: Any) -> str:
    """Describe what YAML made of a word without quotes."""
    if isinstance(value, bool):
        return f"{str(value).lower()}, a truth value"
    return f"a {type(value).__name__}"


def _parse_columns(columns: Any) -> dict[str, Any]:
    """Parse the columns of a text inside the case."""
    if not isinstance(columns, dict):
        raise ValueError(
            "write the columns of a text, such as {source: ..., output: ...}"
        )
    for column, value in columns.items():
        # The case itself is the item, and the key of the text is its system.
        if column in ("item", "system", "human"):
            raise ValueError(
                f"{column} is a column of the data; write the columns that the criterion's "
                "template reads"
            )
        if not isinstance(value, str | int | float | list | dict | None):
            raise ValueError(f"{column}: {_QUOTES.format(_describe_scalar(value))}")
    return columns


def _to_list(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _parse_side(value: Any) -> Any:
    """Parse the name of a system, or the columns of a text inside the case."""
    if isinstance(value, dict):
        return _parse_columns(value)
    return _parse_name(value)


Name = Annotated[str, BeforeValidator(_parse_name, json_schema_input_type=str | int)]
CriterionEntry = Annotated[
    str,
    BeforeValidator(
        _parse_criterion, json_schema_input_type=str | int | dict[str, Any]
    ),
]
Names = Annotated[
    tuple[Name, ...],
    BeforeValidator(_to_list, json_schema_input_type=str | int | list[str | int]),
]
Columns = Annotated[
    dict[str, Any],
    PlainValidator(_parse_columns, json_schema_input_type=dict[str, Any]),
]
Side = Annotated[
    str | dict[str, Any],
    PlainValidator(_parse_side, json_schema_input_type=str | int | dict[str, Any]),
]
"""A system of the data, or the columns of a text."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Points = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]


class Keys(BaseModel):
    """Keys and values of a suite's file."""

    # An unknown key is reported, because it is often a misspelt one.
    model_config = ConfigDict(frozen=True, extra="forbid")


def required_keys(model: type[BaseModel]) -> list[str]:
    """Return the keys without a default."""
    return [
        field_name
        for field_name, field in model.model_fields.items()
        if field.is_required()
    ]


def _require_one_key(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Say in the JSON schema that one of the keys is required."""
    key_names = cast(type[AnyOf], model).choices()
    schema["anyOf"] = [{"required": [key_name]} for key_name in key_names]


class AnyOf(Keys):
    """A model that requires at least one of its keys, apart from `level`."""

    hint: ClassVar[str]
    """The message if there is none."""

    model_config = ConfigDict(json_schema_extra=_require_one_key)

    @classmethod
    def choices(cls) -> list[str]:
        # `level` says how to compute the others and means nothing alone.
        return [field_name for field_name in cls.model_fields if field_name != "level"]

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if all(getattr(self, field_name) is None for field_name in self.choices()):
            raise ValueError(self.hint)
        return self


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of an expectation.

    `found` is short (`4.62 [4.31, 4.93]`), `reason` explains it (`worse (p < .01)`; `no significant
    difference (needs about 400 items)`). `flaky` is the share of single replies that turn the
    verdict on one text, if it is from .05 to .95. `before` is the baseline's value. `detail` is a
    failure's message and the judge's reply.
    """

    status: Status
    reason: str = ""
    found: str = ""
    flaky: float | None = None
    estimate: Estimate | None = None
    before: str = ""
    detail: str = ""

    def is_met(self, undecided: Policy) -> bool:
        """Return whether it counts as passed; `undecided` says how an undecided one counts."""
        if self.status == "undecided":
            return undecided == "pass"
        return self.status == "passed"

    def verdict(self, undecided: Policy = "fail", **more: Any) -> Verdict:
        """Return the verdict with `more` fields; `undecided` says how an undecided one counts."""
        decision = {field.name: getattr(self, field.name) for field in fields(Decision)}
        return Verdict(met=self.is_met(undecided), **more, **decision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Decision):
    """The verdict on a case, a limit or a criterion compared with the baseline.

    The `kind` of the last two is `limit` and `baseline`. `met`: whether it counts as passed.
    `expected` is short (`≥ 4`). `texts` are the texts of a case that did not pass, the ones that
    lack most first, at most 4 of the `n_texts`.
    """

    name: str
    line: int
    kind: str
    met: bool
    expected: str
    criterion: str = ""
    texts: tuple[JudgedText, ...] = ()
    n_texts: int = 0

    @property
    def subject(self) -> str:
        """The subject: `case`, `limit` or `baseline`."""
        return self.kind if self.kind in ("limit", "baseline") else "case"


def decide_limit(
    mean_test: MeanTest,
    sign: int,
    beyond: str,
    limit: str,
    *,
    reaches: str = "",
) -> Decision:
    """Decide whether a mean is on the side `sign` of a limit.

    `limit` is the limit's name, and `beyond` names the other side. After "the interval reaches",
    `reaches` names it instead if that needs other words: `beyond a change of −0.3`.
    """
    if mean_test.too_few_reason:
        return Decision("undecided", mean_test.too_few_reason)
    if mean_test.rare_scores:
        reason = f"{mean_test.rare_scores} {limit}{mean_test.items_needed}"
        return Decision("undecided", reason)
    if mean_test.significant_direction == -sign:
        return Decision("failed", f"{beyond}{mean_test.tested}")
    # Part of the interval is beyond the limit, so the data do not show on which side the mean is.
    if min(sign * end for end in mean_test.ends) < -NEAR:
        doubt = f"no significant difference from {limit}{mean_test.items_needed}"
        if sign * mean_test.estimate.value > -NEAR:
            # The value alone would pass.
            doubt = f"the interval reaches {reaches or beyond}{mean_test.more_needed}"
        return Decision("undecided", doubt)
    return Decision("passed")


def worst(decisions: Iterable[Decision]) -> Decision:
    """Return the first failed decision, else the first undecided one, else the first."""
    order = ("failed", "undecided", "passed")
    return min(decisions, key=lambda decision: order.index(decision.status))


@dataclass(frozen=True, slots=True)
class CaseContext:
    """The texts of a case and the results with their scores.

    `earlier` is a run that reports show beside this one. `n_resamples` and `seed` are for tests.
    """

    criterion: str
    texts: Sequence[Text]
    result: Result | None
    ranked: Result | None
    baseline: Result | None
    seed: int = 0
    earlier: Result | None = None
    n_resamples: int = N_RESAMPLES

    @property
    def by_item(self) -> dict[str, list[str]]:
        """The systems of each item."""
        systems_by_item: dict[str, list[str]] = {}
        for item, system in self.texts:
            systems_by_item.setdefault(item, []).append(system)
        return systems_by_item

    @property
    def pairwise(self) -> bool:
        """Whether the texts were compared in pairs; their items then have other names."""
        if self.ranked is None:
            return False
        # Items of comparisons are called `CASE: ITEM`, see `load.SuiteTexts`.
        ranked_items = {sample.item for sample in self.ranked.table.samples}
        return bool(ranked_items & self.by_item.keys())

    def scored(self) -> CaseScores:
        """Return the rows of the texts' items.

        Raises Undecidable without texts and for a criterion without scores.
        """
        if not self.texts:
            raise Undecidable("the case has no texts")
        result = self.ranked if self.pairwise else self.result
        return CaseScores.for_criterion(result, self.criterion, self.by_item)


class Case(Keys):
    """A case of a suite.

    `item` and `system` choose texts of the data, or the case has texts of its own. Each subclass is
    an expectation; a file selects it by its required keys.
    """

    kind: ClassVar[str]
    """Its name in reports and `Verdict.kind`."""
    undecided_is: ClassVar[Policy] = "fail"
    """How an undecided case counts by default."""
    generalizes: ClassVar[bool] = False
    """Whether failures could hide that the texts do not meet the expectation.

    Only the texts with a score decide it.
    """
    compares_texts: ClassVar[bool] = False
    """Whether a criterion that compares two texts may decide it."""
    needs_baseline: ClassVar[bool] = False
    needs_ratings: ClassVar[bool] = False

    name: Name = Field(
        default="", description="Name in reports (default: the expectation)."
    )
    criterion: CriterionEntry = Field(
        default="", description="A name, a file or a sentence (default: the only one)."
    )
    item: Names = Field(default=(), description="Only these items of the data.")
    system: Names = Field(default=(), description="Only texts of these systems.")
    text: Columns = Field(
        default={},
        description="A text in the case: output and the criterion's other columns.",
    )
    undecided: Policy | None = Field(
        default=None, description="Treat an undecided case as pass or fail."
    )

    _line: int = PrivateAttr(0)
    _texts: tuple[Sample, ...] = PrivateAttr(())

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        """Return whether a case with these keys is of this class."""
        # A key without a value (`drift:`) selects nothing.
        return any(keys.get(key_name) is not None for key_name in required_keys(cls))

    @model_validator(mode="after")
    def _parse_texts(self) -> Self:
        self.check_keys()
        inline = self.inline()
        if inline and (self.item or self.system):
            choosing_key = "item" if self.item else "system"
            text_key = "text" if self.text else next(iter(inline))
            self.mistake(
                f"{choosing_key} chooses texts of the data, but {text_key} is in the case: "
                "leave one out"
            )
        texts: list[Sample] = []
        for text_name, columns in inline.items():
            if not isinstance(columns.get("output"), str):
                self.mistake(
                    f"{text_name}: write output:, the text to judge", text_name
                )
            try:
                # The same reader as for data, so that columns have the same names and types.
                row = {**columns, "item": "text", "system": text_name}
                texts += samples.load([row])
            except DataError as error:
                problem = str(error).removeprefix("row 1: ")
                self.mistake(f"{text_name}: {problem}", text_name)
        self._texts = tuple(texts)
        return self

    def check_keys(self) -> None:
        """Call `mistake` if the keys contradict each other."""

    def inline(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the columns of the texts inside the case, by their keys."""
        return {"text": self.text} if self.text else {}

    def mistake(self, message: str, *keys: str) -> NoReturn:
        """Raise an error about the value at `keys`."""
        # `YamlSource` finds the line of the keys. A ValueError would only lead to the case's line.
        context = {"message": message, "keys": keys}
        raise PydanticCustomError(MISTAKE, "{message}", context)

    def located(self, criterion: str, line: int, locations: Mapping[str, str]) -> Self:
        """Return the case with its criterion, its line and the locations of its texts.

        `locations` are by the key of the text (`suite.judge.yaml:17`).
        """
        texts = [replace(text, where=locations[text.system]) for text in self._texts]
        # Private attributes are no fields, so `model_copy` cannot update them.
        case = self.model_copy(update={"criterion": criterion})
        case._line = line
        case._texts = tuple(texts)
        return case

    @property
    def line(self) -> int:
        """The line where the case begins."""
        return self._line

    @property
    def texts(self) -> tuple[Sample, ...]:
        """The texts inside the case; their item is its name, their system their key."""
        return tuple(replace(text, item=self.name or text.item) for text in self._texts)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems whose texts it chooses; empty for all."""
        return self.system

    @property
    def policy(self) -> Policy:
        """How an undecided verdict counts."""
        return self.undecided or self.undecided_is

    @property
    def bounds_mean(self) -> bool:
        """Whether it limits the change of the mean over all texts."""
        return False

    def select(
        self,
        by_item: Mapping[str, Sequence[Sample]],
        systems: Collection[str],
    ) -> list[Sample]:
        """Return the chosen texts of the data. Raises ConfigError if there are none."""
        matching = self.matching(by_item, systems)
        if not matching:
            names = " or ".join(repr(system) for system in self.systems)
            raise ConfigError(f"none of these items has a text of {names}")
        return matching

    def matching(
        self,
        by_item: Mapping[str, Sequence[Sample]],
        systems: Collection[str],
    ) -> list[Sample]:
        """Return the texts of its items and systems. Raises ConfigError for an unknown one."""
        for item in self.item:
            if item not in by_item:
                raise ConfigError(unknown_item(item, by_item))
        require_known("system", self.systems, systems)
        # An item and its generation may both have the sample; it counts once.
        sample_by_key: dict[Text, Sample] = {}
        for item in self.item or by_item:
            for sample in by_item[item]:
                if not self.systems or sample.system in self.systems:
                    sample_by_key[sample.key] = sample
        return list(sample_by_key.values())

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        """Raise ConfigError if these texts or the criterion's scale cannot meet the expectation."""

    @abstractmethod
    def describe(self) -> str:
        """Return the expectation as a sentence, the default name of a case."""

    @abstractmethod
    def expected(self, context: CaseContext) -> str:
        """Return the short expectation: `≥ 4`."""

    def about(self) -> str:
        """Return its criterion and texts: `coherence of a1 by lead`."""
        return f"{self.stem()} of {self.which()}"

    def stem(self) -> str:
        """Return its criterion without the folder."""
        return name_of(self.criterion)

    def which(self) -> str:
        """Describe its texts in few words."""
        if self._texts:
            return quoted(self._texts[0].output)
        items = ", ".join(self.item) or "all texts"
        if len(self.item) > _MOST_ITEMS:
            items = plural(len(self.item), "item")
        if not self.system:
            return items
        return f"{items} by {', '.join(self.system)}"

    def with_failures_as_worst(self, context: CaseContext) -> CaseContext:
        """Return the context with the worst outcome for each failed judgment."""
        # `Order`, the only expectation about pairs, has its own worst outcome.
        if context.result is None or context.pairwise:
            return context
        return replace(context, result=unanalyzed_with_worst(context.result))

    def shortfall(self, source: TextSource, text: Text) -> float | None:
        """Return how much a text lacks to meet the expectation, None if that is not known."""
        return None

    def judged_texts(self, context: CaseContext) -> tuple[JudgedText, ...]:
        """Return the texts of a case that did not pass, the ones that lack most first."""
        source = TextSource.of(self.name, context.scored(), context.earlier)
        shortfalls: dict[Text, float] = {}
        for text in context.texts:
            lacking = self.shortfall(source, text)
            if lacking is not None:
                shortfalls[text] = lacking
        ordered = sorted(shortfalls, key=shortfalls.__getitem__, reverse=True)
        return source.scored(ordered)

    def loosened(self, share: float, column: Column) -> Case | None:
        """Return the case with its limit moved by a share of the scale, so that it is met sooner.

        None if it has no such limit, or if no limit is left.
        """
        return None

    def limit_text(self) -> str:
        """Return the limit as a suite writes it: `min: 3.5`."""
        return ""

    @abstractmethod
    def decide(self, context: CaseContext) -> Decision:
        """Decide from the scores. Raises Undecidable if there is nothing to decide from."""


def quoted(text: str) -> str:
    """Return the beginning of a text in quotes."""
    return f"“{one_line(text, _LONGEST_QUOTE)}”"


@dataclass(frozen=True, slots=True)
class Flakiness:
    """The share of single replies that turn a verdict, if it is neither small nor nearly all."""

    share: float | None = None
    description: str = ""


def describe_flaky(share: float, outcome: str) -> Flakiness:
    """Describe the share of single replies that turn a verdict; `outcome` says what these do."""
    if _LEAST_FLAKY <= share <= _MOST_FLAKY:
        return Flakiness(share, f"flaky: {share:.0%} of single replies {outcome}")
    return Flakiness()


def joined(*parts: str) -> str:
    """Join the parts that are not empty."""
    return "; ".join(part for part in parts if part)


def display_name(text: str) -> str:
    return one_line(text, _LONGEST_NAME)


def short(value: float) -> str:
    """Write `4`, `−0.5`."""
    return f"{value:g}".replace("-", "−")


def percentage(value: float) -> str:
    """Write `60%`, `62.5%`, for limits that people wrote."""
    return f"{round(100 * value, 1):g}%"
