"""Longest common subsequences (LCS) of texts: lengths, those of Lin (2004) over sentences, and weighted ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import ge

from judge.metrics.common import Unscorable
from judge.metrics.rouge.interning import Text, places_of, powers

_MOST_CELLS = 20_000_000  # of a table in Python: ten seconds
_MOST_BITS = 2_000_000_000  # of the rows that one pair of sentences needs: 250 MB
_MOST_WORDS = 20_000  # of a sentence of the reference
_MOST_STEPS = 20_000_000  # of a word or sentence past a sentence: ten seconds


def length(one: str, other: str) -> int:
    """Of the longest common subsequence."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(one, other)


def too_long(what: str) -> Unscorable:
    return Unscorable("TextTooLong", f"has texts too long for {what}: shorten them or leave this type out")


def union_hits(reference: Text, candidate: Text) -> int:
    """Words of the reference in the union LCS of its sentences, none more often than the candidate has it.

    Lin 2004, section 3.2, clipped as in ROUGE-1.5.5 and rouge-score: for each sentence of the reference the union,
    over the sentences of the candidate, of one LCS each. Where several are longest, these follow the table of
    lengths from its end: along a match, else up in the reference unless going left alone keeps the length. Raises
    Unscorable.
    """
    if reference.lines == candidate.lines:
        return len(reference)
    if len(reference) * len(candidate.lines) > _MOST_STEPS or max(map(len, reference.lines), default=0) > _MOST_WORDS:
        raise too_long("an LCS of each two sentences")
    hits = [word for line in reference.lines for word in _marked(line, _union(line, candidate))]
    return length("".join(sorted(hits)), candidate.ordered)


def _marked(line: str, places: int) -> Iterator[str]:
    """The words of a sentence at the places that are set."""
    return compress(line, map("1".__eq__, reversed(bin(places))))


def _union(line: str, candidate: Text) -> int:
    """A sentence's words, places as bits, on its LCS with one or another sentence of the candidate."""
    union = 0
    bits = powers(len(line))
    for other, places in zip(candidate.lines, candidate.places(), strict=True):
        if places is None:
            places = _places_in_long(line, other)
        found = list(map(places.get, line))
        rows = list(filter(None, found))
        if rows and (every := sum(compress(bits, found))) & ~union:
            union |= every if len(rows) == 1 else _lcs(rows, list(compress(bits, found)), every, len(other))
    return union


def _places_in_long(line: str, other: str) -> dict[str, int]:
    shared = set(line) & set(other)
    if len(shared) * len(other) > _MOST_BITS:
        raise too_long("an LCS of each two sentences")
    return places_of(shared, other)


def _lcs(rows: Sequence[int], bits: Sequence[int], every: int, size: int) -> int:
    """The words on the LCS: of those in `bits`, together `every`, which stand in the other's `size` words at `rows`.

    The table of LCS lengths is kept row by row in the bits of a number, one of which is 0 where the length grows by
    one (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"). Rows without a match equal the one before.
    """
    if len(rows) * size > _MOST_BITS:
        raise too_long("an LCS of each two sentences")
    table = [row := (1 << size) - 1]
    whole = row
    for places in rows:
        both = row & places
        row = (row + both | row - both) & whole
        table.append(row)
    return every if size - row.bit_count() == len(rows) else _path(rows, table, bits)


def _path(rows: Sequence[int], table: Sequence[int], bits: Sequence[int]) -> int:
    """The way back through the table of `_lcs`, row by row; `upto` are the columns not yet left."""
    path, upto = 0, table[0]
    for number in range(len(rows) - 1, -1, -1):
        places = rows[number] & upto
        if places and (
            places > upto >> 1 or (table[number] & upto).bit_count() > (table[number + 1] & upto).bit_count()
        ):
            path |= bits[number]
            upto = (1 << places.bit_length() - 1) - 1
    return path


def best_lengths(lines: Sequence[str], others: Sequence[str]) -> int:
    """Σ over `lines` of the length of the LCS with that of the others which shares the longest. Raises as above."""
    if len(lines) * len(others) > _MOST_STEPS:
        raise too_long("an LCS of each two sentences")
    return sum(max((length(line, other) for other in others), default=0) for line in lines)


def weighted(reference: str, candidate: str, weight: float) -> float:
    """WLCS (Lin 2004, section 4): the weight of a common subsequence, in which a run of k words counts k^weight.

    The paper's dynamic programme: a match continues the diagonal, whatever else would be worth more. Raises
    Unscorable.
    """
    last = deque(_weighted_rows(reference, candidate, weight), maxlen=1)
    return last[0][0][-1] if last else 0.0


def weighted_path(reference: str, candidate: str, weight: float) -> int:
    """The reference's words, places as bits, on one heaviest common subsequence; ties as in `union_hits`."""
    up = [ups for _, ups in _weighted_rows(reference, candidate, weight)]
    path, i, j = 0, len(reference) - 1, len(candidate) - 1
    while i >= 0 and j >= 0:
        if reference[i] == candidate[j]:
            path |= 1 << i
            i, j = i - 1, j - 1
        elif up[i][j]:
            i -= 1
        else:
            j -= 1
    return path


def _weighted_rows(reference: str, candidate: str, weight: float) -> Iterator[tuple[list[float], bytes]]:
    """Each row of the table for a word of the reference: its weights, and where the one above is no smaller."""
    if len(reference) * len(candidate) > _MOST_CELLS:
        raise too_long("a weighted LCS")
    power = [float(k) ** weight for k in range(min(len(reference), len(candidate)) + 1)]
    above, runs_above = [0.0] * (len(candidate) + 1), [0] * (len(candidate) + 1)
    for word in reference:
        row, runs, left = [0.0], [0] * len(above), 0.0
        for j, other in enumerate(candidate, 1):
            if word == other:
                run = runs_above[j - 1]
                left = above[j - 1] + power[run + 1] - power[run]
                runs[j] = run + 1
            elif above[j] > left:
                left = above[j]
            row.append(left)
        yield row, bytes(map(ge, above[1:], row))
        above, runs_above = row, runs
