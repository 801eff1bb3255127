"""Share code between the metrics of diversity.

It turns texts into numbers, counts n-grams, and makes the rows and notes of systems.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from judge.core.format import plural
from judge.core.records import Failure, Provenance, Score
from judge.metrics import Note
from judge.metrics.bleu_options import Tokens
from judge.metrics.common import CannotScore
from judge.metrics.common import texts as text_list

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The tokens of n texts in sequence, as ids 0 … kinds - 1.

    `lengths` are the n texts' token counts.
    """

    ids: Ints
    lengths: Ints
    kinds: int


@dataclass(frozen=True, slots=True)
class Grams:
    """The n-grams of one order: text `text[k]` has n-gram `gram[k]` `count[k]` times.

    Sorted by n-gram, then text. The n-grams' ids are 0 … their number - 1 without gaps.
    """

    gram: Ints
    text: Ints
    count: Ints


def corpus(texts: Sequence[Sequence[str]]) -> Corpus:
    """Return the tokenized texts with each token as a number."""
    import numpy as np

    # A token that is not in the dictionary gets its length as the next id.
    id_by_token: defaultdict[str, int] = defaultdict()
    id_by_token.default_factory = id_by_token.__len__
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    all_tokens = chain.from_iterable(texts)
    all_ids = map(id_by_token.__getitem__, all_tokens)
    n_tokens = int(lengths.sum())
    ids = np.fromiter(all_ids, dtype=np.int64, count=n_tokens)
    return Corpus(ids, lengths, len(id_by_token))


def orders(texts: Corpus, max_order: int, group: Ints | None = None) -> Iterator[Grams]:
    """Yield the n-grams of order 1, 2 … max_order; none crosses texts.

    With `group`, one number from 0 for each text, n-grams of different groups are distinct. Memory
    and (except for sorting) time are linear in the number of tokens, for any order.
    """
    import numpy as np

    text_count = len(texts.lengths)
    text_of_token = np.repeat(np.arange(text_count), texts.lengths)
    end_of_text = np.cumsum(texts.lengths)[text_of_token]  # of each token's text
    starts = np.arange(len(texts.ids))  # where the n-grams start
    # The ids of the n-grams of order 0: all are equal, or one for each group.
    gram = np.zeros_like(texts.ids) if group is None else group[text_of_token]
    for order in range(1, max_order + 1):
        fits = starts + order <= end_of_text[starts]
        starts = starts[fits]
        # An n-gram is its first n - 1 tokens and one more: one number for any length.
        last_token = texts.ids[starts + order - 1]
        keys = gram[fits] * texts.kinds + last_token
        _, distinct_numbers = np.unique(keys, return_inverse=True)
        gram = distinct_numbers.astype(np.int64, copy=False)
        gram_and_text = gram * text_count + text_of_token[starts]
        distinct_pairs, count = np.unique(gram_and_text, return_counts=True)
        yield Grams(distinct_pairs // text_count, distinct_pairs % text_count, count)


def totals(lengths: Ints, order: int) -> Ints:
    """Return how many n-grams of an order texts of these lengths have."""
    import numpy as np

    return np.maximum(lengths - order + 1, 0)


@dataclass(frozen=True, slots=True)
class Cut:
    """Tokenized texts.

    `name` is the tokenizer, `note` counts the sentences that it leaves in one piece, `missing`
    names the packages that would split them into words.
    """

    corpus: Corpus
    name: str
    note: Note
    missing: tuple[str, ...]


def cut(tokens: Tokens, texts: Sequence[str]) -> Cut:
    """Tokenize the texts with one tokenizer. Raise MissingExtra for missing packages.

    Raise DataError unless these are a list of texts.
    """
    checked_texts = text_list("texts", texts)
    tokenizer_name = tokens.tokenizer_for(checked_texts)
    tokenized = list(map(tokens.words(tokenizer_name), checked_texts))
    note = tokens.note(checked_texts, tokenizer_name)
    missing = tokens.missing(checked_texts, [tokenizer_name])
    return Cut(corpus(tokenized), tokenizer_name, note, tuple(missing))


def value(
    system: str, column: str, number: float, *, n: int, note: str | None = None
) -> Score:
    """Return the row of a value of `n` texts of a system."""
    provenance = Provenance("metric", n=n, note=note)
    return Score(
        item="",
        system=system,
        column=column,
        value=float(number),
        provenance=provenance,
    )


def failure(system: str, column: str, error: CannotScore) -> Failure:
    """Return the failure of a system's value."""
    label = f"system {system}" if system else "the system"
    message = f"{label}: {error}"
    kind = error.error
    return Failure("", system, column, stage="metric", error=kind, message=message)


def check_texts(texts: Corpus, least: int = 1) -> None:
    """Raise CannotScore for fewer texts than `least`, or if no text has a token."""
    count = len(texts.lengths)
    counted_texts = plural(count, "text")
    if count < least:
        message = f"{counted_texts} given: {least} or more are needed"
        raise CannotScore("TooFewTexts", message)
    if not texts.lengths.any():
        message = f"{counted_texts} without any token: there is nothing to score"
        raise CannotScore("NoToken", message)


def blank(texts: Corpus) -> int:
    """Count the texts without a token."""
    return int((texts.lengths == 0).sum())


def notes(
    metric_name: str, cuts: Mapping[str, Cut], effect: str
) -> tuple[str | Note, ...]:
    """Return notes about texts without any token, and texts that are not split into words."""
    total_empty = 0
    counts: list[str] = []
    uncut: list[Note] = []
    missing: dict[str, None] = {}  # systems of one language lack the same packages
    for system, system_cut in cuts.items():
        empty_texts = blank(system_cut.corpus)
        if empty_texts:
            total_empty += empty_texts
            label = system or "the system"
            counts.append(f"{label} {empty_texts:,}")
        if system_cut.note.some:
            uncut.append(system_cut.note)
        missing |= dict.fromkeys(system_cut.missing)
    lines: list[str | Note] = []
    if counts:
        texts = plural(total_empty, "text")
        by_system = ", ".join(counts)
        problem = f"{texts} without any token ({by_system})"
        lines.append(f"{metric_name}: {problem}; {effect}")
    lines += uncut
    lines += missing
    return tuple(lines)


def unequal_counts_note(
    metric_name: str, rows: Sequence[Score | Failure]
) -> tuple[str, ...]:
    """Return a note if systems have different numbers of texts and the metric depends on them."""
    scores = [row for row in rows if isinstance(row, Score)]
    sizes = {row.system: row.provenance.n for row in scores}
    if len(set(sizes.values())) < 2:
        return ()
    listed = ", ".join(f"{system} {count:,}" for system, count in sizes.items())
    return (
        f"{metric_name} depends on the number of texts; systems with unequal numbers do not "
        f"compare: {listed}",
    )
