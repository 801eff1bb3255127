"""Values of all texts of a system together: rows without an item, and what there is to say about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.core.records import Failure, Provenance, Sample, Score
from judge.metrics import Note
from judge.metrics.common import Unscorable
from judge.metrics.diversity.cuts import Cut
from judge.metrics.diversity.ngrams import Corpus


def by_system(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """The samples of each system, in order of first appearance."""
    found: dict[str, list[Sample]] = {}
    for sample in samples:
        found.setdefault(sample.system, []).append(sample)
    return found


def value(system: str, column: str, number: float, *, n: int, note: str | None = None) -> Score:
    """The row of a value of `n` texts of a system."""
    return Score("", system, column, float(number), Provenance("metric", n=n, note=note))


def failure(system: str, column: str, error: Unscorable) -> Failure:
    """The row that says why a system has no value."""
    return Failure("", system, column, stage="metric", error=error.error, message=f"{_who(system)}: {error}")


def check_texts(texts: Corpus, least: int = 1) -> None:
    """Raises Unscorable for fewer texts than `least`, or where no text has a token."""
    if (n := len(texts.lengths)) < least:
        raise Unscorable("TooFewTexts", f"{count(n)} given: {least} or more are needed")
    if not texts.lengths.any():
        raise Unscorable("NoToken", f"{count(n)} without any token: there is nothing to score")


def blank(texts: Corpus) -> int:
    """How many texts have no token."""
    return int((texts.lengths == 0).sum())


def notes(name: str, cuts: Mapping[str, Cut], effect: str) -> tuple[str | Note, ...]:
    """What a reader has to know of the texts: some without any token, some that their tokenizer leaves whole."""
    empty = {system: blank(found.corpus) for system, found in cuts.items()}
    said: list[str | Note] = []
    if total := sum(empty.values()):
        listed = ", ".join(f"{system or 'the system'} {n:,}" for system, n in empty.items() if n)
        said.append(f"{name}: {count(total)} without any token ({listed}); {effect}")
    return (*said, *(found.note for found in cuts.values() if found.note.some))


def unequal(name: str, rows: Sequence[Score | Failure]) -> tuple[str, ...]:
    """A note where systems have values of different numbers of texts, of a metric that depends on the number."""
    sizes = {row.system: row.provenance.n for row in rows if isinstance(row, Score)}
    if len(set(sizes.values())) < 2:
        return ()
    listed = ", ".join(f"{system} {n:,}" for system, n in sizes.items())
    return (f"{name} depends on the number of texts; systems with unequal numbers do not compare: {listed}",)


def _who(system: str) -> str:
    return f"system {system}" if system else "the system"


def count(number: int, what: str = "text") -> str:
    """The number with what it counts, in the singular or the plural."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
