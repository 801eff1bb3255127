"""A case of a suite: the keys that all expectations have, the texts it is about, and its verdict.

An expectation is a class of its own. It parses its keys, chooses its texts, decides from their scores, and describes
itself; `Case` is what all of them share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NoReturn, Self

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

from judge.core.errors import ConfigError, DataError
from judge.core.format import decimals, one_line, plural
from judge.core.plugins import unknown_name_message
from judge.core.records import Column, Criterion, Estimate, Sample
from judge.data import samples
from judge.results.result import Result
from judge.suite.evidence import CaseScores, Parts, Text, Undecidable

Policy = Literal["pass", "fail"]
Status = Literal["passed", "failed", "undecided", "error"]
STATUS: Mapping[int, Status] = {1: "passed", 0: "undecided", -1: "failed"}
"""By the side of the limit that the numbers are on."""
MISTAKE = "case"
"""The type of pydantic's errors that `Case.mistake` raises."""
_FLAKY = 0.05, 0.95
_NAME = 60  # characters of a name
_CLIP, _NAMED = 40, 3  # characters of a text, and items, in a case's name
_MAX_NAMES = 20  # items or systems in a message
_QUOTES = "YAML takes it for {}; put it in quotes"


def _parse_name(value: Any) -> str:
    """A label, an item or another name; a whole number is one too, what YAML made of `no` or 1.0 is not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    if value is None or isinstance(value, str):
        raise ValueError("nothing stands here")
    if isinstance(value, list | dict):
        raise ValueError("write a name")
    raise ValueError(_QUOTES.format(_describe_scalar(value)))


def _describe_scalar(value: Any) -> str:
    """Describe what YAML made of a word without quotes."""
    return f"{str(value).lower()}, a truth value" if isinstance(value, bool) else f"a {type(value).__name__}"


def _parse_columns(columns: Any) -> dict[str, Any]:
    """The columns of a text that stands in the case."""
    if not isinstance(columns, dict):
        raise ValueError("write the columns of a text, such as {source: ..., output: ...}")
    for name, value in columns.items():
        if name in ("item", "system", "human"):
            raise ValueError(f"{name} is a column of the data; here stands what the criterion's template reads")
        if not isinstance(value, str | int | float | list | dict | None):
            raise ValueError(f"{name}: {_QUOTES.format(_describe_scalar(value))}")
    return columns


Name = Annotated[str, BeforeValidator(_parse_name, json_schema_input_type=str | int)]
Names = Annotated[
    tuple[Name, ...],
    BeforeValidator(
        lambda value: value if isinstance(value, list | tuple) else [value],
        json_schema_input_type=str | int | list[str | int],
    ),
]
Columns = Annotated[dict[str, Any], PlainValidator(_parse_columns, json_schema_input_type=dict[str, Any])]
Side = Annotated[
    str | dict[str, Any],
    PlainValidator(
        lambda value: _parse_columns(value) if isinstance(value, dict) else _parse_name(value),
        json_schema_input_type=str | int | dict[str, Any],
    ),
]
"""A system of the data, or the columns of a text."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Points = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]


class Keys(BaseModel):
    """Keys and values of a suite's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def required_keys(model: type[BaseModel]) -> list[str]:
    return [name for name, field in model.model_fields.items() if field.is_required()]


def at_least_one_of(*names: str) -> ConfigDict:
    """For the schema: one of these keys has to be there."""
    return ConfigDict(json_schema_extra={"anyOf": [{"required": [name]} for name in names]})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the numbers say of a case, a limit (kind `limit`) or a criterion against the baseline (kind `baseline`).

    `met`: whether it counts as passed. `expected` and `found` are short (`≥ 4`; `4.62 [4.31, 4.93]`), `said` is the
    sentence (`worse (p < .01)`; `not told apart (would take n ≈ 400)`). `flaky` is the share of single replies after
    which a case about one text would have come out the other way, where that is from .05 to .95. `before` is what
    was found in the baseline. `detail` is a failure's message or the judge's reply, for below the table.
    """

    name: str
    line: int
    kind: str
    criterion: str
    status: Status
    met: bool
    expected: str
    found: str
    said: str = ""
    flaky: float | None = None
    estimate: Estimate | None = None
    before: str = ""
    detail: str = ""

    @property
    def subject(self) -> str:
        """What it is about: `case`, `limit` or `baseline`."""
        return self.kind if self.kind in ("limit", "baseline") else "case"


@dataclass(frozen=True, slots=True)
class Decision:
    """What an expectation decides from the scores: some fields of a verdict."""

    status: Status
    said: str = ""
    found: str = ""
    flaky: float | None = None
    estimate: Estimate | None = None
    before: str = ""
    detail: str = ""

    def verdict(
        self, kind: str, name: str, line: int, expected: str, *, criterion: str = "", undecided: Policy = "fail"
    ) -> Verdict:
        """The verdict on a case, a limit or a comparison, by how an undecided one counts."""
        met = self.status == "passed" or (self.status == "undecided" and undecided == "pass")
        fields = {key: getattr(self, key) for key in self.__dataclass_fields__}
        return Verdict(name, line, kind, criterion, met=met, expected=expected, **fields)


@dataclass(frozen=True, slots=True)
class CaseContext:
    """The texts that a case is about, and where their scores are."""

    criterion: str
    texts: Sequence[Text]
    result: Result | None
    ranked: Result | None
    baseline: Result | None
    seed: int = 0

    @property
    def by_item(self) -> dict[str, list[str]]:
        """The systems of each item."""
        systems_by_item: dict[str, list[str]] = {}
        for item, system in self.texts:
            systems_by_item.setdefault(item, []).append(system)
        return systems_by_item

    @property
    def pairwise(self) -> bool:
        """Whether the texts were compared two by two: they have names of their own among the comparisons."""
        return self.ranked is not None and bool(set(self.ranked.table.items) & self.by_item.keys())

    def scored(self) -> CaseScores:
        """The rows of the texts' items. Raises Undecidable without texts, and for a criterion that was not judged."""
        if not self.texts:
            raise Undecidable("the case is about no text")
        return CaseScores.for_criterion(self.ranked if self.pairwise else self.result, self.criterion, self.by_item)


class Case(Keys):
    """A case of a suite. Its texts are those of the data that `item` and `system` choose, or stand in the case.

    A subclass is an expectation. Its required keys are those by which a file chooses it.
    """

    kind: ClassVar[str]
    """What reports and `Verdict.kind` call it."""
    undecided_is: ClassVar[Policy] = "fail"
    """How an undecided case counts if neither the case nor the suite says it."""
    compares_texts: ClassVar[bool] = False
    """Whether a criterion that compares two texts may decide it."""
    needs_baseline: ClassVar[bool] = False
    needs_ratings: ClassVar[bool] = False

    name: Name = Field(default="", description="What reports call it (default: what it says).")
    criterion: Name = Field(default="", description="A built-in name or a .jinja file (default: the only one).")
    item: Names = Field(default=(), description="Of the data only these items.")
    system: Names = Field(default=(), description="Of the data only these systems' texts.")
    text: Columns = Field(default={}, description="A text of its own: output, and what the criterion reads.")
    undecided: Policy | None = Field(default=None, description="What it counts as where the numbers show neither.")

    _line: int = PrivateAttr(0)
    _texts: tuple[Sample, ...] = PrivateAttr(())

    # Parse

    @classmethod
    def matches(cls, keys: Mapping[str, Any]) -> bool:
        """Whether a case with these keys is of this class."""
        return any(keys.get(name) is not None for name in required_keys(cls))

    @model_validator(mode="after")
    def _parse_texts(self) -> Self:
        self.check_keys()
        inline = self.inline()
        if inline and (chosen := "item" if self.item else "system" if self.system else ""):
            first = "text" if self.text else next(iter(inline))
            self.mistake(f"{chosen} chooses texts of the data, and {first} stands in the case: leave one out")
        texts: list[Sample] = []
        for name, columns in inline.items():
            if not isinstance(columns.get("output"), str):
                self.mistake(f"{name}: write output:, the text to judge", name)
            try:
                texts += samples.load([{**columns, "item": "text", "system": name}])
            except DataError as error:
                self.mistake(f"{name}: {str(error).removeprefix('row 1: ')}", name)
        self._texts = tuple(texts)
        return self

    def check_keys(self) -> None:
        """Call `mistake` if the keys do not go together."""

    def inline(self) -> Mapping[str, Mapping[str, Any]]:
        """The columns of the texts that stand in the case, by the key that they stand under."""
        return {"text": self.text} if self.text else {}

    def mistake(self, message: str, *keys: str) -> NoReturn:
        """Raise an error about the value that `keys` lead to."""
        raise PydanticCustomError(MISTAKE, "{message}", {"message": message, "keys": keys})

    def located(self, criterion: str, line: int, places: Mapping[str, str]) -> Self:
        """The case as it is in its file, with its criterion; `places` are where the texts in it stand."""
        case = self.model_copy(update={"criterion": criterion})
        case._line = line
        case._texts = tuple(replace(text, where=places[text.system]) for text in self._texts)
        return case

    def named(self, name: str) -> Self:
        """The case with a name, which is also the item of the texts in it."""
        case = self.model_copy(update={"name": name})
        case._texts = tuple(replace(text, item=name) for text in self._texts)
        return case

    # Choose

    @property
    def line(self) -> int:
        """Where in the file the case begins."""
        return self._line

    @property
    def texts(self) -> tuple[Sample, ...]:
        """The texts that stand in the case; their item is its name, their system the key that they stand under."""
        return self._texts

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems whose texts of the data it is about; none for all."""
        return self.system

    @property
    def bounds_mean(self) -> bool:
        """Whether it limits how far the mean over all texts may move from the baseline's."""
        return False

    def select(self, by_item: Mapping[str, Sequence[Sample]], systems: Collection[str]) -> list[Sample]:
        """The texts of the data that it is about. Raises ConfigError if there are none."""
        matching = self.matching(by_item, systems)
        if not matching:
            raise ConfigError(f"none of these items has a text of {' or '.join(map(repr, self.systems))}")
        return matching

    def matching(self, by_item: Mapping[str, Sequence[Sample]], systems: Collection[str]) -> list[Sample]:
        """The texts of its items and systems. Raises ConfigError for one that the data lack."""
        for column, names, known in (("item", self.item, by_item), ("system", self.systems, systems)):
            for name in names:
                if name not in known:
                    if len(known) <= _MAX_NAMES:
                        raise ConfigError(unknown_name_message(column, name, list(known)))
                    near = get_close_matches(name, known, n=1)
                    message = unknown_name_message(column, name, [*near, *known][:_MAX_NAMES])
                    raise ConfigError(f"{message.removesuffix(')')}, ...: {plural(len(known), column)})")
        of_items = (sample for item in self.item or by_item for sample in by_item[item])
        return [sample for sample in of_items if not self.systems or sample.system in self.systems]

    def check(self, criterion: Criterion, texts: Sequence[Sample]) -> None:
        """Raise ConfigError for what cannot be expected of these texts on this criterion's scale."""

    # Describe

    def describe(self) -> str:
        """The expectation as a sentence, the default name of a case."""
        raise NotImplementedError

    def expected(self, context: CaseContext) -> str:
        """The expectation in short: `≥ 4`."""
        raise NotImplementedError

    def about(self) -> str:
        """Its criterion and texts: `coherence of a1 by lead`."""
        return f"{self.stem()} of {self.which()}"

    def stem(self) -> str:
        """Its criterion without the folder."""
        return Path(self.criterion).stem

    def which(self) -> str:
        """Its texts in few words."""
        if self._texts:
            return quoted(self._texts[0].output)
        items = ", ".join(self.item) if len(self.item) <= _NAMED else plural(len(self.item), "item")
        return f"{items or 'all texts'}{' by ' if self.system else ''}{', '.join(self.system)}"

    # Decide

    def decide(self, context: CaseContext) -> Decision:
        """Decide from the scores. Raises Undecidable if there is nothing to decide from."""
        raise NotImplementedError


def quoted(text: str) -> str:
    """The beginning of a text."""
    return f"“{one_line(text, _CLIP)}”"


def of_items(scored: CaseScores, by_item: dict[str, list[str]]) -> tuple[list[Parts], str, str]:
    """Every item's mean over its systems; what is said of texts without a score, and the first failure.

    Raises Undecidable where no text has one.
    """
    items: list[Parts] = []
    lost = []
    for item, systems in by_item.items():
        each = [parts for system in systems if (parts := scored.parts(item, system))]
        lost += [(item, system, "") for system in systems if scored.score(item, system) is None]
        if each:
            items.append([(c / len(each), evidence) for parts in each for c, evidence in parts])
    return items, *missing(scored, lost, items)


def missing(
    scored: CaseScores, lost: Sequence[tuple[str, str, str]], scored_items: Sequence[object]
) -> tuple[str, str]:
    """Describe rows without a score, and the first failure. Raises Undecidable if there are no scored items."""
    message, detail = scored.lacking(lost) if lost else ("", "")
    if not scored_items:
        raise Undecidable(message if len(lost) > 1 else detail.partition(":")[0], detail)
    return message, detail


def missing_texts(scored: CaseScores, texts: Sequence[Text]) -> tuple[str, str]:
    """As `missing`, of texts."""
    without = [(*text, "") for text in texts if scored.score(*text) is None]
    return missing(scored, without, [text for text in texts if (*text, "") not in without])


def flaky(odds: float) -> bool:
    """Whether a share of single replies is neither few nor nearly all of them."""
    return _FLAKY[0] <= odds <= _FLAKY[1]


def joined(*parts: str) -> str:
    """Join the parts that are not empty."""
    return "; ".join(part for part in parts if part)


def display_name(text: str) -> str:
    return one_line(text, _NAME)


def short(value: float) -> str:
    """`4`, `−0.5`."""
    return f"{value:g}".replace("-", "−")


def percentage(value: float) -> str:
    """`60%`, `62.5%`, for limits that people wrote."""
    return f"{round(100 * value, 1):g}%"


def places(column: Column) -> int:
    """Decimals that suit a column's scale."""
    return decimals([end for end in (column.low, column.high) if end is not None])


def most(names: Iterable[str], limit: int = 5) -> str:
    """The first names, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
