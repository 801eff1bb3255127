"""Compute TER, translation edit rate (Snover et al. 2006), by sacrebleu's rules (Post 2018), which are Tercom's.

sacrebleu tries up to a thousand shifts of a text and fills a table of edits for each. Here a bound from plain
Levenshtein distance excludes most shifts, and the table is filled for the rest: the same numbers in less time, and
memory linear in the text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import ClassVar, NamedTuple

from judge import text
from judge.core.records import Column, Sample
from judge.metrics import MetricResult
from judge.metrics.common import (
    CannotScore,
    Rate,
    bool_option,
    by_references,
    joined,
    list_function,
    reference_count,
)

__all__ = ["Ter", "edits", "score"]

_LONGEST_SHIFT, _FARTHEST_SHIFT, _MOST_SHIFTS, _BEAM = 10, 50, 1000, 25  # Tercom's limits; the third is sacrebleu's
_NEVER = 10**16
_MOST_MATCHES = 50_000_000  # pairs of words of output and reference: some seconds
_SAME, _SUBSTITUTE, _DELETE, _INSERT = range(4)


class Ter:
    """Translation edit rate (0 and up, lower is better): edits and shifts per 100 words of the reference.

    The reference with the fewest edits counts, divided by the mean length of all. Chinese and Japanese references are
    split into characters (runs of kana stay whole), by Tercom's `normalized` and `asian_support`; other texts at white
    space. `normalized` also splits off punctuation, `asian_support` applies Tercom's to all texts (with `normalized`),
    `no_punct` removes punctuation, and `case_sensitive` keeps case.
    """

    rowwise: ClassVar[bool] = True

    def __init__(
        self,
        *,
        normalized: bool = False,
        asian_support: bool | None = None,
        no_punct: bool = False,
        case_sensitive: bool = False,
    ) -> None:
        self._normalized = bool_option("ter.normalized", normalized)
        self._asian = None if asian_support is None else bool_option("ter.asian_support", asian_support)
        self._no_punct = bool_option("ter.no_punct", no_punct)
        self._case = bool_option("ter.case_sensitive", case_sensitive)

    def score(self, samples: Sequence[Sample]) -> MetricResult:
        """Return one row per sample; an empty output scores 100 against a single reference.

        A `Failure`: a sample without a reference, or whose references have no words (possible with `no_punct`), because
        the rate is undefined.
        """
        from sacrebleu.tokenizers.tokenizer_ter import TercomTokenizer

        used: set[bool] = set()

        def prepare(targets: tuple[str, ...]) -> Rate:
            asian = self._asian
            if asian is None:
                asian = not text.LANGUAGES[text.detect_language(targets)].spaced
            used.add(asian)
            tokenizer = TercomTokenizer(
                normalized=self._normal(asian),
                no_punct=self._no_punct,
                asian_support=asian,
                case_sensitive=self._case,
            )

            def words(string: str) -> list[str]:
                return str(tokenizer(string.rstrip())).split()

            target_words = [words(target) for target in targets]
            length = sum(map(len, target_words)) / len(target_words)
            if not length:
                raise CannotScore("NoReferenceWords", "its references have no words without punctuation")

            def rate(output: str) -> float:
                tokens = words(output)
                return 100 * (min(edits(tokens, target) for target in target_words) / length)

            return rate

        rows = by_references(samples, "ter", prepare)

        # The parts of sacrebleu's signature; `no+yes` if the script decided differently for different texts.
        def yes_or_no(answers: set[bool]) -> str:
            return joined("yes" if answer else "no" for answer in answers)

        signature = (
            f"ter|sentence|nrefs={reference_count(samples)}|case={'mixed' if self._case else 'lc'}|tok=tercom"
            f"|norm={yes_or_no({self._normal(asian) for asian in used})}|punct={yes_or_no({not self._no_punct})}"
            f"|asian={yes_or_no(used)}|sacrebleu {version('sacrebleu')}"
        )
        return MetricResult((Column("ter", "metric", signature, low=0.0, better="lower"),), rows)

    def _normal(self, asian: bool) -> bool:
        """Return `normalized`: required if the script selects Asian support, otherwise the user's choice."""
        return self._normalized or (asian and self._asian is None)


score = list_function(
    Ter,
    """TER, 0 and up, of each output against its reference or references: see `Ter`.

    Raises DataError where an output has no reference or its references no words, ConfigError for a wrong option.
    """,
)


def edits(output: Sequence[str], reference: Sequence[str]) -> int:
    """Return insertions, deletions, substitutions and shifts from an output's words to a reference's, as sacrebleu.

    Shifts are searched greedily, the best first, until none helps or a thousand have been tried. Distances are computed
    within a band around the diagonal, as in Tercom.
    """
    if not reference:
        return len(output)
    counts = Counter(reference)
    if sum(counts[word] for word in output) > _MOST_MATCHES:
        raise CannotScore("TextTooLong", "its texts repeat too many words too often for TER: shorten them")
    letters: dict[str, str] = {}  # one character per word, so that texts are strings
    here, there = ("".join(letters.setdefault(w, chr(len(letters))) for w in words) for words in (output, reference))
    shifts = looked_at = 0
    while True:
        now, errors = _table(here, there)
        if not now:
            return shifts
        tries = []
        for shift in _shifts(here, there, errors):
            looked_at += 1
            if looked_at >= _MOST_SHIFTS:
                return shifts + now
            tries.append(shift)
        better = _best_shift(tries, here, there, now)
        if better is None:
            return shifts + now
        here = better
        shifts += 1


class _Alignment(NamedTuple):
    """Where two texts differ: whether each word is wrong, and the output's word for each word of the reference."""

    output: list[bool]
    reference: list[bool]
    aligned: list[int]


Shift = tuple[int, int, int]
"""The position of the first word, the number of words, and the position before which they go."""


def _shifts(here: str, there: str, errors: _Alignment) -> Iterator[Shift]:
    """Yield shifts of words that are wrong at their position to a position in the reference that is wrong."""
    places: dict[str, list[int]] = {}
    for at, word in enumerate(there):
        places.setdefault(word, []).append(at)
    for start, word in enumerate(here):
        for target in places.get(word, ()):
            if abs(target - start) <= _FARTHEST_SHIFT:
                yield from _shifts_to(here, there, start, target, errors)


def _shifts_to(here: str, there: str, start: int, target: int, errors: _Alignment) -> Iterator[Shift]:
    """Yield shifts of the runs of equal words at `start` in the output and at `target` in the reference."""
    aligned = errors.aligned
    wrong_here = wrong_there = False
    longest = min(_LONGEST_SHIFT, len(here) - start, len(there) - target)
    for length in range(1, longest + 1):
        if here[start + length - 1] != there[target + length - 1]:
            return
        wrong_here |= errors.output[start + length - 1]
        wrong_there |= errors.reference[target + length - 1]
        if not (wrong_here and wrong_there) or start <= aligned[target] < start + length:
            continue
        last = -1
        for place in range(target - 1, target + length):
            index = 0 if place == -1 else aligned[place] + 1
            if index != last:
                last = index
                yield start, length, index


def _best_shift(tries: Sequence[Shift], here: str, there: str, now: int) -> str | None:
    """Return the text after the shift that leaves the fewest edits (ties: longest, then first), None if none helps."""
    from rapidfuzz.distance import Levenshtein

    distances: dict[str, int] = {}
    ranked = []
    for start, length, index in tries:
        moved, rest = here[start : start + length], here[:start] + here[start + length :]
        at = index if index <= start + length else index - length
        words = rest[:at] + moved + rest[at:]
        if words not in distances:
            distances[words] = Levenshtein.distance(words, there)
        if distances[words] < now:
            ranked.append((distances[words], -length, start, index, words))
    best: tuple[int, int, int, int, str] | None = None
    for least, *rank, words in sorted(ranked):
        if best and least > best[0]:
            break
        cost = least if _in_band(words, there, least) else _table(words, there)[0]
        candidate = (cost, rank[0], rank[1], rank[2], words)
        if cost < now and (best is None or candidate < best):
            best = candidate
    return best[-1] if best else None


def _in_band(here: str, there: str, least: int) -> bool:
    """Return whether a path with the fewest edits surely stays in the band.

    Such a path strays by at most half of its edits plus the difference in length; otherwise the path is checked.
    """
    from rapidfuzz.distance import Levenshtein

    if (least + abs(len(there) - len(here))) / 2 < _BEAM - 2:
        return True
    ratio = len(there) / len(here)
    return all(
        abs(block.dest_end - block.src_end * ratio) < _BEAM - 2
        and abs(block.dest_start - block.src_start * ratio) < _BEAM - 2
        for block in Levenshtein.opcodes(here, there)
    )


def _table(here: str, there: str) -> tuple[int, _Alignment]:
    """Return the edit distance within the band, and where the texts differ on the path in Tercom's order of edits."""
    rows: list[tuple[int, list[int]]] = []
    before, first = list(range(len(there) + 1)), 0
    ratio = len(there) / len(here) if here else 1.0
    beam = math.ceil(ratio / 2 + _BEAM) if ratio / 2 > _BEAM else _BEAM
    for at, word in enumerate(here, 1):
        middle = math.floor(at * ratio)
        low = max(0, middle - beam)
        high = len(there) + 1 if at == len(here) else min(len(there) + 1, middle + beam)
        before, edits_taken = _table_row(word, there, (before, first), (low, high))
        rows.append((low, edits_taken))
        first = low
    errors = _Alignment([True] * len(here), [True] * len(there), [-1] * len(there))
    i, j = len(here), len(there)
    while i or j:
        low, edits_taken = rows[i - 1] if i else (0, [])
        edit = edits_taken[j - low] if i else _INSERT
        if edit == _DELETE:
            i -= 1
            continue
        j -= 1
        if edit != _INSERT:
            i -= 1
            errors.output[i] = errors.reference[j] = edit == _SUBSTITUTE
            errors.aligned[j] = i
        else:
            errors.aligned[j] = i - 1
    return before[len(there) - first], errors


def _table_row(
    word: str, there: str, above: tuple[list[int], int], band: tuple[int, int]
) -> tuple[list[int], list[int]]:
    """Return a row of the table: the lowest costs of the band's cells, and the edit that reaches each."""
    (costs_above, first), (low, high) = above, band
    costs, taken = [], []
    cost_left = _NEVER
    if low == 0:
        cost_left = costs_above[0] + 1
        costs.append(cost_left)
        taken.append(_DELETE)
    start = max(low, 1)
    if start - 1 < first:
        ups = costs_above[start - first : high - first]
        diagonals = [_NEVER, *ups]
    else:
        diagonals = costs_above[start - 1 - first : high - first]
        ups = diagonals[1:]
    missing = high - start
    ups = ups + [_NEVER] * (missing - len(ups))
    diagonals = diagonals[:missing] + [_NEVER] * (missing - len(diagonals))
    for target_word, diagonal, up in zip(there[start - 1 : high - 1], diagonals, ups, strict=True):
        if target_word == word:
            cost, edit = diagonal, _SAME
        else:
            cost, edit = diagonal + 1, _SUBSTITUTE
        if up + 1 < cost:
            cost, edit = up + 1, _DELETE
        if cost_left + 1 < cost:
            cost, edit = cost_left + 1, _INSERT
        cost_left = cost
        costs.append(cost)
        taken.append(edit)
    return costs, taken
