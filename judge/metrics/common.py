"""Share code between metrics: rows by references, failures, notes, lists, checks of options.

`judge.execution.questions` sends the questions that metrics have for the judge model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from typing import Any, ClassVar, Concatenate, Literal, ParamSpec, TypeVar
from unicodedata import is_normalized

from judge import text
from judge.core.errors import ConfigError, DataError
from judge.core.messages import in_python, option, speaking_to
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature, join_names
from judge.metrics.base import BaseMetric, Metric, MetricResult, Note, setting

Entry = TypeVar("Entry")
Rate = Callable[[str], float]
"""Maps an output to its value."""
# Tokenizers that leave a text without spaces in one piece
_BY_SPACES = ("13a", "intl", "none", "words", "spaces")
_UNCUT = (
    "are in a script that the tokenizer {tokenizer} does not split into words, so values are too "
    "low: set {option}, omit it to choose by script, or score the languages separately"
)
_CLUSTERS = (
    "are in a script without spaces between words (Thai, Lao, Khmer or Burmese) and are split into "
    "characters, so values are higher than those of words: compare them with each other only"
)
_FORMS = (
    "have words in another Unicode form than the texts that they are compared with, so that equal "
    "words differ: normalise the data, for example to NFKC"
)
_WORDLESS = (
    "have no words, only punctuation or emoji, and score 0 although they equal a reference: chrf "
    "compares these too"
)
_BY_CHARACTER = (
    "{language} is split into characters for lack of {modules}; values differ where these are "
    "installed. To use characters everywhere, set them for each metric, as in {rouge} and {bleu}"
)


class CannotScore(DataError):
    """Raised if texts have no value; becomes a `Failure` of the kind `error`."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


def naming_a_judge(metric: str) -> str:
    """Return how a metric that asks a model gets its judge."""
    in_a_call = f'judge.evaluate(rows, [], metrics="{metric}", model=NAME)'
    if in_python():
        return in_a_call
    return f"{option('model', 'NAME')} (in Python call {in_a_call})"


def references(sample: Sample) -> tuple[str, ...]:
    """Return the sample's references without blank ones."""
    return tuple(reference for reference in sample.references if reference.strip())


def reference_count(samples: Sequence[Sample]) -> str:
    """Return the number of references for signatures.

    It is a number if all samples with references agree, else `var`.
    """
    counts = {len(references(sample)) for sample in samples}
    # Samples without a reference are Failures, whose number of references does not matter.
    counts.discard(0)
    if not counts:
        return "-"
    return "var" if len(counts) > 1 else str(counts.pop())


def format_number(value: float) -> str:
    """Write a whole number for signatures without decimals: `0.9`, `2`, `0.1234567`."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def signed_words(tokenizers: Iterable[str]) -> tuple[str, str]:
    """Return the parts of a signature for tokenizers of `text.words` and their Unicode form."""
    names = join_names(map(text.signature, tokenizers))
    return f"tok={names}", "form=nfkc"


def tokenizer_note(
    metric: str,
    tokenizer: str | None,
    strings: Iterable[str],
    option: str = "tokenizer",
) -> Note:
    """Count the texts that a tokenizer by white space leaves in one piece.

    If the tokenizer is None, it is chosen by script: count the texts that are split into characters
    for lack of a tokenizer.
    """
    distinct = set(strings)
    not_ascii = [string for string in distinct if not string.isascii()]
    unspaced = [string for string in not_ascii if text.is_unspaced([string])]
    if tokenizer is None:
        languages = [text.detect_language([string]) for string in unspaced]
        # Other scripts without spaces, such as Thai, are detected as "en".
        some = languages.count("en")
        return Note(metric, some, len(distinct), _CLUSTERS)
    some = len(unspaced) if tokenizer in _BY_SPACES else 0
    problem = _UNCUT.format(tokenizer=tokenizer, option=f"{metric}.{option}")
    return Note(metric, some, len(distinct), problem)


def missing_tokenizer_notes(used: Collection[str], strings: Iterable[str]) -> list[str]:
    """Return a note for each language that was split into characters for lack of its packages.

    The text is the same for all metrics, so that a report shows it once. An installed tokenizer
    needs no note: the signature names it.
    """
    lacking = [
        language
        for language in text.LANGUAGES.values()
        if language.tokenizer in text.TOOLS and not text.installed(language.tokenizer)
    ]
    if not lacking or "char" not in used:
        return []
    beyond_ascii = list(filter(text.is_mostly_beyond_ascii, {*strings}))
    codes = {text.detect_language([string]) for string in beyond_ascii}
    notes: list[str] = []
    for language in lacking:
        if language.code not in codes:
            continue
        modules = " and ".join(text.TOOLS[language.tokenizer].modules)
        note = _BY_CHARACTER.format(
            language=language.name,
            modules=modules,
            rouge=option("set", {"rouge": {"tokenizer": "char"}}),
            bleu=option("set", {"bleu": {"tokenize": "char"}}),
        )
        notes.append(note)
    return notes


def form_note(metric: str, compared: Iterable[tuple[str, Sequence[str]]]) -> Note:
    """Count the outputs that share words with their targets, but in another Unicode form."""
    some = 0
    total = 0
    for output, targets in compared:
        total += 1
        target = "\n".join(targets)
        if is_normalized("NFKC", output) and is_normalized("NFKC", target):
            continue
        # `text.tokens` normalises: a token of both sides that only one side has as written is in
        # another form.
        output = output.lower()
        target = target.lower()
        output_tokens = set(text.tokens(output))
        shared = output_tokens.intersection(text.tokens(target))
        if any((token in output) != (token in target) for token in shared):
            some += 1
    return Note(metric, some, total, _FORMS)


def wordless_note(
    metric: str,
    compared: Collection[tuple[str, Sequence[str]]],
    words: Callable[[str], Sequence[str]],
) -> Note:
    """Count the outputs without words that equal a reference, such as an emoji.

    If another reference has words, they score 0 although they are right.
    """
    some = 0
    for output, targets in compared:
        equals_a_target = output.strip() in [target.strip() for target in targets]
        # If no target has words either, the text is a failure.
        if equals_a_target and not words(output) and any(map(words, targets)):
            some += 1
    return Note(metric, some, len(compared), _WORDLESS)


def all_texts(samples: Iterable[Sample]) -> Iterator[str]:
    """Yield the outputs and their references."""
    for sample in samples:
        yield from (sample.output, *references(sample))


def failure(sample: Sample, column_name: str, error: str, problem: str) -> Failure:
    """Return the failure of a value.

    The message is the location of the sample and the `problem`, which says what to do.
    """
    where = sample.where or f"item {sample.item}"
    message = f"{where} {problem}"
    return Failure(
        sample.item,
        sample.system,
        column_name,
        stage="metric",
        error=error,
        message=message,
    )


def lacks_source(sample: Sample, blank: str = "a blank source") -> str:
    """Return the problem of a sample without a source, or with one that is `blank`."""
    problem = "no source" if sample.source is None else blank
    named = option("map", {"source": "COLUMN"})
    return f"has {problem}: add a column `source`, or name yours with {named}"


def no_reference(sample: Sample, column_name: str) -> Failure:
    """Return the failure of a column that needs a reference."""
    problem = "only blank references" if sample.references else "no reference"
    named = option("map", {"references": "COLUMN"})
    advice = f"add a column `references` (a text or a list of texts), or name yours with {named}"
    return failure(sample, column_name, "NoReference", f"has {problem}: {advice}")


def by_system(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Return the samples of each system, in order of first appearance."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.system, []).append(sample)
    return groups


def by_references(
    samples: Sequence[Sample],
    column_name: str,
    prepare: Callable[[tuple[str, ...]], Rate],
) -> tuple[Score | Failure, ...]:
    """Return a row per sample for a column that compares outputs with their references.

    `prepare` is called once for equal references, for any number of systems. A sample becomes a
    `Failure` if it has no reference, or if `prepare` or its result raises `CannotScore`.
    """
    # Sorting brings equal references together, so that a cache of one is enough.
    prepared = lru_cache(maxsize=1)(prepare)
    rows: dict[int, Score | Failure] = {}

    def own_references(index: int) -> tuple[str, ...]:
        return references(samples[index])

    in_order = sorted(range(len(samples)), key=own_references)
    for index in in_order:
        sample = samples[index]
        targets = references(sample)
        if not targets:
            rows[index] = no_reference(sample, column_name)
            continue
        try:
            rate = prepared(targets)
            value = float(rate(sample.output))
        except CannotScore as reason:
            problem = f"has no value: {reason}"
            rows[index] = failure(sample, column_name, reason.error, problem)
        else:
            provenance = Provenance(method="metric")
            item, system = sample.key
            rows[index] = Score(
                item=item,
                system=system,
                column=column_name,
                value=value,
                provenance=provenance,
            )
    return tuple(rows[index] for index in range(len(samples)))


def says(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def spread(listed: Sequence[Entry], most: int) -> list[Entry]:
    """Return at most `most` entries: all, or the middle ones of `most` equal parts of the list."""
    if len(listed) <= most:
        return list(listed)
    # The middle of part number `index` is (index + ½) / most of the list.
    odd_numbers = range(1, 2 * most, 2)
    middles = [odd * len(listed) // (2 * most) for odd in odd_numbers]
    return [listed[middle] for middle in middles]


def entries(value: Any) -> list[Any] | None:
    """Return the entries of a list, a tuple, an array or a Series in order; None for others."""
    if hasattr(value, "tolist"):  # numpy and pandas
        value = value.tolist()
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return None
    return list(value)


def texts(label: str, value: Any) -> list[str]:
    """Return a list of texts. Raise DataError for a single text and for other elements."""
    listed = entries(value)
    if listed is None or not all(isinstance(item, str) for item in listed):
        written = f"{value!r:.60}".partition("\n")[0]
        raise DataError(f"{label} is a list of texts, not {written}")
    return listed


def as_samples(
    outputs: Sequence[str],
    targets: Sequence[str | Sequence[str]],
    items: Sequence[str] | None = None,
) -> list[Sample]:
    """Return samples of one system from lists: each output with its reference or references.

    Raise DataError if the lists differ in length or an output has only blank references.
    """
    pairs = paired(outputs, targets)
    item_names: list[Any] | None = list(range(len(pairs)))
    if items is not None:
        item_names = entries(items)
    if item_names is None or len(item_names) != len(pairs):
        raise DataError("items must be a list with the name of each output's item")
    samples: list[Sample] = []
    for index, (output, sample_references) in enumerate(pairs):
        item = str(item_names[index])
        where = f"text {index}"
        sample = Sample(item, "", output, references=sample_references, where=where)
        if not references(sample):
            raise DataError(f"outputs[{index}] has only blank references")
        samples.append(sample)
    return samples


def as_source_samples(
    outputs: Sequence[str],
    sources: Sequence[str | None],
    label: str = "output",
) -> list[Sample]:
    """Return samples of one system from lists: each output with its source.

    The lists are of one length. A message names a sample by the `label` and its number from 0.
    """
    samples: list[Sample] = []
    for index, (output, source) in enumerate(zip(outputs, sources, strict=True)):
        samples.append(Sample(str(index), "", output, source, where=f"{label} {index}"))
    return samples


def paired(
    outputs: Sequence[str],
    targets: Sequence[str | Sequence[str]],
) -> list[tuple[str, tuple[str, ...]]]:
    """Return each output with its reference or references.

    Raise DataError unless these are two lists of one length.
    """
    output_texts = texts("outputs", outputs)
    listed_targets = entries(targets)
    if listed_targets is None or len(output_texts) != len(listed_targets):
        raise DataError(
            "outputs and references must be lists of equal length: a text or a list of texts per "
            "output"
        )
    target_tuples: list[tuple[str, ...]] = []
    for target in listed_targets:
        if isinstance(target, str):
            target_tuples.append((target,))
        else:
            target_tuples.append(tuple(texts("a reference", target)))
    return list(zip(output_texts, target_tuples, strict=True))


class Values(list[float]):
    """Values in the order of the outputs.

    `tokenizers` cut the texts: names as in signatures, such as `en` or `ko-mecab-dic1.0.0`; none
    for chrF and TER. By default the installed packages decide about Japanese and Korean, so name
    one to get the same values elsewhere.
    """

    def __init__(
        self, values: Iterable[float] = (), tokenizers: tuple[str, ...] = ()
    ) -> None:
        super().__init__(values)
        self.tokenizers = tokenizers


def values(metric: Metric, samples: Sequence[Sample]) -> Values:
    """Return the values of a metric's rows, in order.

    Raise DataError with the message of the first `Failure`, and ConfigError for options that give a
    metric several columns.
    """
    result = metric.score(samples)
    if len(result.columns) != 1:
        names = ", ".join(column.name for column in result.columns)
        raise ConfigError(f"a list has one column: ask for one of {names}")
    numbers: list[float] = []
    for row in result.rows:
        if isinstance(row, Failure):
            raise DataError(row.message)
        numbers.append(row.value)
    return Values(numbers, result.columns[0].signature.names("tok"))


Parameters = ParamSpec("Parameters")


Texts = Sequence[str]
References = Sequence[str | Sequence[str]]
"""One reference, or several, of each output."""


def list_function(
    metric: Callable[Parameters, Metric],
    doc: str,
) -> Callable[Concatenate[Texts, References, Parameters], Values]:
    """Return the function of a one-column metric for lists of texts, with this docstring.

    The function takes the metric's options.
    """

    def score(
        outputs: Sequence[str],
        references: Sequence[str | Sequence[str]],
        *args: Parameters.args,
        **options: Parameters.kwargs,
    ) -> Values:
        with speaking_to("python"):
            return values(metric(*args, **options), as_samples(outputs, references))

    score.__doc__ = doc
    score.__module__ = metric.__module__
    # `help` shows the two lists, then the metric's options in place of `*args` and `**options`.
    outputs, references, *_ = signature(score).parameters.values()
    with_options = signature(metric).replace(return_annotation="Values")
    parameters = with_options.parameters.values()
    options = [parameter for parameter in parameters if parameter.name != "context"]
    new_signature = with_options.replace(parameters=[outputs, references, *options])
    score.__signature__ = new_signature  # type: ignore[attr-defined]
    return score  # type: ignore[return-value]  # the lists have names as well


def whole_number(option: str, value: Any, lowest: int, highest: int) -> int:
    """Return an option's value, an integer from `lowest` to `highest`, or raise ConfigError."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not lowest <= value <= highest:
        raise ConfigError(
            f"{option} must be a whole number from {lowest} to {highest}, not {value!r}"
        )
    return int(value)


def number(option: str, value: Any, lowest: float, highest: float) -> float:
    """Return an option's value, a number from `lowest` to `highest`, or raise ConfigError."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not lowest <= value <= highest
    ):
        raise ConfigError(
            f"{option} must be a number from {lowest:g} to {highest:g}, not {value!r}"
        )
    return float(value)


def choice_option(option: str, value: Any, known_choices: Sequence[str]) -> str:
    """Return an option's value, one of the known ones. Raise ConfigError otherwise."""
    if not isinstance(value, str) or value not in known_choices:
        known = ", ".join(known_choices)
        raise ConfigError(f"{option} must be one of {known}, not {value!r}")
    return value


def text_option(option: str, value: Any) -> str:
    """Return an option's value. Raise ConfigError unless it is a text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{option} must be a text, not {value!r}")
    return value


def list_option(value: Any) -> Any:
    """Return a list from YAML, or from text with commas; anything else is returned unchanged."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return value


def choices_option(
    option: str,
    value: Any,
    known_choices: Sequence[str],
    expected: str,
) -> tuple[str, ...]:
    """Return an option's list of distinct known values. Raise ConfigError otherwise."""
    names = list_option(value)
    if not isinstance(names, list | tuple) or not names:
        raise ConfigError(f"{expected}, not {value!r}")
    distinct = set(map(str, names))
    if len(distinct) < len(names):
        raise ConfigError(f"{expected}, not {value!r}")
    return tuple(choice_option(option, name, known_choices) for name in names)


def tokenizer(option: str, value: Any) -> str | None:
    """Return an option's tokenizer of `judge.text`, or None. Raise ConfigError or MissingExtra."""
    if value is None:
        return None
    tokenizer_name = choice_option(option, value, text.TOKENIZERS)
    text.signature(tokenizer_name)  # raises if its packages are missing
    return tokenizer_name


@dataclass(frozen=True, kw_only=True)
class ReferenceMetric(BaseMetric):
    """A metric of one column, from 0, that compares each output with its references."""

    rowwise: ClassVar[bool] = True
    needs: ClassVar[str] = "references"
    high: ClassVar[float | None] = None
    better: ClassVar[Literal["higher", "lower"]] = "higher"

    def compare(
        self,
        samples: Sequence[Sample],
        prepare: Callable[[tuple[str, ...], set[str]], Rate],
        sign: Callable[[set[str]], Sequence[str]],
        *,
        level: str = "sentence",
        name: str | None = None,
        high: float | None = None,
    ) -> MetricResult:
        """Return one row per sample, see `by_references`.

        `prepare` and the function that it returns add the tokenizers that they use to a set. `sign`
        makes the signature's last parts from it. `name` and `high` describe the column if it
        differs from the metric in them.
        """
        used: set[str] = set()
        name = name or self.name
        rows = by_references(samples, name, lambda targets: prepare(targets, used))
        nrefs = reference_count(samples)
        signature = Signature(name, level, f"nrefs={nrefs}", *sign(used))
        highest = high or self.high
        better = self.better
        column = Column(name, "metric", signature, low=0.0, high=highest, better=better)
        return MetricResult((column,), rows, self.notes(samples, used))

    def notes(
        self, samples: Sequence[Sample], used: Collection[str]
    ) -> tuple[str | Note, ...]:
        """Return the notes for a reader on the texts and on the tokenizers `used`."""
        compared = ((sample.output, references(sample)) for sample in samples)
        return (form_note(self.name, compared),)


@dataclass(frozen=True, kw_only=True)
class WordMetric(ReferenceMetric):
    """A metric of words, cut by a tokenizer of `judge.text`: the given one, or by script."""

    tokenizer: str | None = setting(None, tokenizer)

    def notes(
        self, samples: Sequence[Sample], used: Collection[str]
    ) -> tuple[str | Note, ...]:
        """Return how many texts the metric does not suit, and which packages are missing."""
        texts = list(all_texts(samples))
        compared = [(sample.output, references(sample)) for sample in samples]
        words = text.words(self.tokenizer) if self.tokenizer else text.tokens
        notes: list[str | Note] = [
            tokenizer_note(self.name, self.tokenizer, texts),
            wordless_note(self.name, compared, words),
        ]
        if not self.tokenizer:
            notes += missing_tokenizer_notes(used, texts)
        return tuple(notes)
