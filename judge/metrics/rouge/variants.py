"""Define the types of ROUGE, and how each variant turns two texts into recall, precision and F.

`kinds` reads the names of the types. A `Variant` counts the matches of an output with one reference
(`MatchCounts`) and turns counts into a score. `combine` makes one score from several references.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import add
from typing import Literal, NamedTuple, get_args

from judge.core.errors import ConfigError
from judge.metrics.common import CannotScore, list_option
from judge.metrics.rouge import sequences
from judge.metrics.rouge.sequences import PLTRDY, SCRIPT, Text

Family = Literal["n", "l", "lsum", "w", "s", "su", "mead"]

DEFAULTS: Mapping[str | None, tuple[str, ...]] = {
    None: ("rouge1", "rouge2", "rougeL", "rougeLsum"),
    SCRIPT: ("ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-SU4"),
    PLTRDY: ("rouge-1", "rouge-2", "rouge-l"),
}
"""The default types, by preset."""
_KNOWN = {
    None: (
        "rouge1 to rouge9, rougeL, rougeLsum, rougeW, rougeW-1.2, rougeS, rougeS4, rougeSU, "
        "rougeSU4, lcs_mead"
    ),
    SCRIPT: "ROUGE-1 to ROUGE-9, ROUGE-L, ROUGE-W-1.2, ROUGE-S*, ROUGE-S4, ROUGE-SU*, ROUGE-SU4",
    PLTRDY: "rouge-1 to rouge-5, rouge-l",
}
# Both presets compute ROUGE-L by sentence, so their L is an `lsum`, and the group `l` stays empty.
_NAMES = {
    # rouge2, rougeL, rougeLsum, rougeW-1.2, rougeSU4
    None: (
        r"rouge(?:(?P<n>[1-9])|(?P<l>L)|(?P<lsum>Lsum)|W(?:-(?P<w>\d+(?:\.\d+)?))?"
        r"|(?P<s>SU?)(?P<gap>\d+|\*)?)"
    ),
    # ROUGE-2, ROUGE-L, ROUGE-W-1.2, ROUGE-S*, ROUGE-SU4
    SCRIPT: (
        r"ROUGE-(?:(?P<n>[1-9])|(?P<l>)(?P<lsum>L)|W-(?P<w>\d+(?:\.\d+)?)"
        r"|(?P<s>SU?)(?P<gap>\d+|\*))"
    ),
    # rouge-2, rouge-l
    PLTRDY: r"rouge-(?:(?P<n>[1-5])|(?P<l>)(?P<lsum>l))",
}
_WEIGHT = 1.2  # as in the paper and every published ROUGE-W


class Kind(NamedTuple):
    """A type of ROUGE.

    `n` is the number of words of an n-gram, `gap` the maximum number of words between the two of a
    skip-bigram (None: any number), `weight` the exponent of ROUGE-W's f(k) = k^weight.
    """

    name: str
    family: Family
    n: int = 0
    gap: int | None = None
    weight: float = 1.0

    @property
    def by_sentence(self) -> bool:
        """Return whether sentence ends matter."""
        return self.family in {"lsum", "mead"}


def kinds(names: str | Sequence[str], preset: str | None) -> tuple[Kind, ...]:
    """Return the types of these names, a list or a text with commas, as the preset names them.

    Raise ConfigError.
    """
    names = list_option(names)
    if not isinstance(names, Sequence) or not names:
        raise ConfigError(
            f"rouge.types must be a list of names, not {names!r} (known: {_KNOWN[preset]})"
        )
    # YAML may hold numbers in the list.
    written_names = list(map(str, names))
    if len(set(written_names)) < len(names):
        listed = ", ".join(written_names)
        raise ConfigError(f"rouge.types repeats a name: {listed}")
    return tuple(_parse_kind(type_name, preset) for type_name in names)


def _parse_kind(type_name: str, preset: str | None) -> Kind:
    if type_name == "lcs_mead" and preset is None:
        return Kind(type_name, "mead")
    match = re.fullmatch(_NAMES[preset], str(type_name))
    if match is None:
        hint = _hint(type_name, preset)
        raise ConfigError(
            f"rouge.types: unknown type {str(type_name)!r}{hint} (known, "
            f"with any gap or weight: {_KNOWN[preset]})"
        )
    if match["n"]:
        return Kind(type_name, "n", n=int(match["n"]))
    if match["lsum"]:
        return Kind(type_name, "lsum")
    if match["l"]:
        return Kind(type_name, "l")
    if match["s"]:
        gap = None if match["gap"] in {None, "*"} else int(match["gap"])
        family: Family = "su" if match["s"] == "SU" else "s"
        return Kind(type_name, family, gap=gap)
    weight = float(match["w"] or _WEIGHT)
    if not 1 <= weight <= 100:
        raise ConfigError(
            f"{type_name}: the weight must be a number from 1 (runs count as single words) to 100"
        )
    return Kind(type_name, "w", weight=weight)


def _hint(type_name: str, preset: str | None) -> str:
    """Return where an unknown name may belong: a preset that has it, or the preset in use."""
    if preset:
        return f" of {preset}"
    hint = ""
    for known_preset in (SCRIPT, PLTRDY):
        if re.fullmatch(_NAMES[known_preset], str(type_name)):
            hint = f"; set preset to {known_preset} for its types"
    return hint


_MOST_PAIRS = 4_000_000  # words of one text: some seconds, some hundred MB
_DECIMALS = 5  # ROUGE-1.5.5 rounds to these before it computes F


class RougeScore(NamedTuple):
    """Precision, recall and F, from 0 to 1."""

    precision: float
    recall: float
    fmeasure: float


class MatchCounts(NamedTuple):
    """The matches, and the totals of the reference and of the output.

    `choice_base` is the reference's total by which ROUGE-1.5.5 chooses a reference, if it differs
    from that of the recall which it prints (`recall_base`); otherwise 0.
    """

    recall_hits: float
    recall_base: float
    precision_hits: float
    precision_base: float
    choice_base: float = 0.0


def pooled(tallies: Iterable[MatchCounts]) -> MatchCounts:
    """Return the sum of each count over the references, the output's total included."""
    return MatchCounts(*map(sum, zip(*tallies, strict=True)))


@dataclass(frozen=True)
class Variant:
    """ROUGE as in Lin (2004), and as in rouge-score where they differ.

    F = P·R / (α·R + (1 − α)·P) with α = 1 / (1 + β²): α = 1 is precision, 0 is recall, ½ is F1.
    """

    alpha: float | None = None

    def least_words(self, kind: Kind) -> int:
        """Return the fewest words of a reference with which a score can be above 0."""
        if kind.family == "s":
            return 2
        return max(kind.n, 1)

    def tally(self, kind: Kind, reference: Text, output: Text) -> MatchCounts:
        """Raises CannotScore."""
        return count_matches(kind, reference, output)

    def score(self, kind: Kind, tally: MatchCounts) -> RougeScore:
        recall = _share(tally.recall_hits, tally.recall_base, kind.weight)
        precision = _share(tally.precision_hits, tally.precision_base, kind.weight)
        if kind.family == "mead" and self.alpha is None:
            # Radev's own mean of both, which is F1 if both texts have the same matches
            hits = tally.recall_hits + tally.precision_hits
            base = tally.recall_base + tally.precision_base
            f = hits / base if base else 0.0
        else:
            f = fmeasure(precision, recall, self.alpha)
        return RougeScore(precision, recall, f)

    def recall(self, kind: Kind, tally: MatchCounts) -> float:
        """Return the recall by which `best_recall` picks a reference."""
        return _share(tally.recall_hits, tally.recall_base, kind.weight)


@dataclass(frozen=True)
class Rouge155(Variant):
    """ROUGE-1.5.5, the Perl script of 2005, to the five decimals that it prints.

    It differs from the paper. Recall and precision are rounded before F. ROUGE-L is the sentence
    version. ROUGE-W marks words as ROUGE-L does, weights the runs of marked words of the reference,
    and has the weight twice in its recall, so that equal texts score below 1. ROUGE-SU skips the
    last word among its single words. A text without a word scores 0, and ROUGE-W is undefined if a
    reference has none.
    """

    def least_words(self, kind: Kind) -> int:
        return 2 if kind.family == "su" else super().least_words(kind)

    def tally(self, kind: Kind, reference: Text, output: Text) -> MatchCounts:
        """Raises CannotScore."""
        if kind.family == "w":
            return _count_weighted_runs(kind.weight, reference, output)
        if kind.family == "su":
            singles = reference.whole[:-1]
            output_singles = output.whole[:-1]
            return _skip_counts(kind, reference, output, singles, output_singles)
        return super().tally(kind, reference, output)

    def score(self, kind: Kind, tally: MatchCounts) -> RougeScore:
        weight = kind.weight
        exact_recall = _share(tally.recall_hits, tally.recall_base, weight)
        exact_precision = _share(tally.precision_hits, tally.precision_base, weight)
        recall = round(exact_recall, _DECIMALS)
        precision = round(exact_precision, _DECIMALS)
        alpha = 0.5 if self.alpha is None else self.alpha
        exact_f = fmeasure(precision, recall, alpha)
        return RougeScore(precision, recall, round(exact_f, _DECIMALS))

    def recall(self, kind: Kind, tally: MatchCounts) -> float:
        base = tally.choice_base or tally.recall_base
        recall = _share(tally.recall_hits, base, kind.weight)
        # The script compares ROUGE-L and ROUGE-W unrounded.
        return recall if kind.family in {"lsum", "w"} else round(recall, _DECIMALS)


def _count_weighted_runs(weight: float, reference: Text, output: Text) -> MatchCounts:
    """Return the counts of ROUGE-W as ROUGE-1.5.5 computes it. Raises CannotScore."""
    if not reference.whole:
        raise CannotScore(
            "NoTokens",
            "has a reference without a word, on which ROUGE-1.5.5 fails for ROUGE-W",
        )
    # Each word counts at most as often as both texts have it.
    budgets = (Counter(reference.whole), Counter(output.whole))
    hits_by_line: list[float] = []
    for line in reference.lines:
        marks = 0  # words on a heaviest common subsequence with any sentence, as bits
        for output_line in output.lines:
            marks |= sequences.weighted_path(line, output_line, weight)
        hits_by_line.append(_weigh_runs(line, marks, weight, budgets))
    hits = sum(hits_by_line, 0.0)
    # The printed recall has the weight twice, the choice of a reference has it once.
    weighted_length = sum(len(line) ** weight for line in reference.lines)
    return MatchCounts(
        recall_hits=hits,
        recall_base=weighted_length**weight,
        precision_hits=hits,
        precision_base=len(output) ** weight,
        choice_base=weighted_length,
    )


@dataclass(frozen=True)
class Pltrdy(Variant):
    """The package rouge 1.0.1 (https://github.com/pltrdy/rouge) with its defaults.

    It differs from the paper. It counts distinct n-grams. ROUGE-L counts the distinct words in the
    LCS of any two sentences; of several longest ones, its path drops words of the output first. F
    has 1e-8 added to its denominator.
    """

    def tally(self, kind: Kind, reference: Text, output: Text) -> MatchCounts:
        """Raises CannotScore."""
        if kind.family == "n":
            in_reference = set(reference.grams(kind.n))
            in_output = set(output.grams(kind.n))
            hits = in_reference & in_output
        else:
            in_reference = set(reference.whole)
            in_output = set(output.whole)
            hits = set(sequences.union_words(output, reference))
        return _symmetric_counts(len(hits), len(in_reference), len(in_output))

    def score(self, kind: Kind, tally: MatchCounts) -> RougeScore:
        precision, recall, _ = super().score(kind, tally)
        f1 = 2 * (precision * recall / (precision + recall + 1e-8))
        return RougeScore(precision, recall, f1)


def fmeasure(precision: float, recall: float, alpha: float | None) -> float:
    """Return P·R / (α·R + (1 − α)·P), or 0 if undefined.

    `alpha` None is ½, in rouge-score's order of operations, which rounds differently.
    """
    if alpha is None:
        total = precision + recall
        return 2 * precision * recall / total if total > 0 else 0.0
    denominator = alpha * recall + (1 - alpha) * precision
    return precision * recall / denominator if denominator > 0 else 0.0


def _share(hits: float, base: float, weight: float) -> float:
    """Return f⁻¹(hits / base) for f(k) = k^weight, and 0 if base is 0."""
    if not base:
        return 0.0
    share = hits / base
    if weight == 1:
        return share
    root: float = min(share, 1.0) ** (1 / weight)
    return root


def _symmetric_counts(hits: float, reference: float, output: float) -> MatchCounts:
    """Return counts with the same hits in both texts. `reference` and `output` are the totals."""
    return MatchCounts(hits, reference, hits, output)


def count_matches(kind: Kind, reference: Text, output: Text) -> MatchCounts:
    """Return the counts of a type as in the paper and rouge-score. Raise CannotScore."""
    match kind.family:
        case "n" if kind.n == 1:
            hits = sequences.length(reference.ordered, output.ordered)
            return _symmetric_counts(hits, len(reference), len(output))
        case "n":
            return _gram_counts(kind.n, reference, output)
        case "l":
            hits = sequences.length(reference.whole, output.whole)
            return _symmetric_counts(hits, len(reference), len(output))
        case "lsum":
            hits = sequences.union_lcs(reference, output)
            return _symmetric_counts(hits, len(reference), len(output))
        case "mead":
            # LCS of MEAD (Radev et al. 2002, in Lin 2004, section 3.3): each sentence is compared
            # with the sentence that shares the longest LCS. R is the sum over the reference's
            # sentences by its words, P the sum over the output's sentences by its words. Instead of
            # F1, both sums are divided by both lengths; with an alpha, F is computed as usual.
            recalled = sequences.best_lengths(reference.lines, output.lines)
            precise = sequences.best_lengths(output.lines, reference.lines)
            return MatchCounts(recalled, len(reference), precise, len(output))
        case "w":
            weight = kind.weight
            matched_weight = sequences.weighted(reference.whole, output.whole, weight)
            reference_weight = len(reference) ** weight
            output_weight = len(output) ** weight
            return _symmetric_counts(matched_weight, reference_weight, output_weight)
        case "s":
            return _skip_counts(kind, reference, output)
        case "su":
            return _skip_counts(kind, reference, output, reference.whole, output.whole)


def _gram_counts(n: int, reference: Text, output: Text) -> MatchCounts:
    """Count n-grams; each counts at most as often as both texts have it."""
    counts = reference.counts(n)
    # Only the shared n-grams of the output are counted, which is quicker than all.
    shared = Counter(filter(counts.__contains__, output.grams(n)))
    hits = _shared_count(shared, counts)
    reference_total = max(len(reference) - n + 1, 0)
    output_total = max(len(output) - n + 1, 0)
    return _symmetric_counts(hits, reference_total, output_total)


def _skip_counts(
    kind: Kind,
    reference: Text,
    output: Text,
    singles: str = "",
    output_singles: str = "",
) -> MatchCounts:
    """Count skip-bigrams (Lin 2004, section 5) over the whole texts, and single words.

    `singles` are the reference's words that count alone, `output_singles` those of the output.
    Raises CannotScore for texts with too many pairs.
    """
    gap = kind.gap
    reference_words = reference.whole
    output_words = output.whole
    longest = max(len(reference), len(output))
    if gap is None or gap >= longest - 2:
        # Any two words are a pair, whatever is between them, so only shared words matter.
        gap = None
        shared_words = set(reference_words) & set(output_words)
        reference_words = "".join(filter(shared_words.__contains__, reference_words))
        output_words = "".join(filter(shared_words.__contains__, output_words))
        longest = max(len(reference_words), len(output_words))
    if skip_count(longest, gap) > _MOST_PAIRS:
        distance = "" if gap is None else f" up to {gap} words apart"
        raise sequences.too_long(f"pairs of words{distance}")
    reference_pairs = _skip_bigrams(reference_words, gap)
    output_pairs = _skip_bigrams(output_words, gap)
    hits = _shared_count(reference_pairs, output_pairs)
    if singles:
        hits += _shared_count(Counter(singles), Counter(output_singles))
    reference_total = skip_count(len(reference), kind.gap) + len(singles)
    output_total = skip_count(len(output), kind.gap) + len(output_singles)
    return _symmetric_counts(hits, reference_total, output_total)


def skip_count(words: int, gap: int | None) -> int:
    """Return the number of ordered pairs of words with at most `gap` words between them."""
    # There are words - d pairs of words that are d apart.
    farthest = words - 1 if gap is None else min(gap + 1, words - 1)
    missing_pairs = farthest * (farthest + 1) // 2
    return max(farthest * words - missing_pairs, 0)


def _skip_bigrams(whole: str, gap: int | None) -> Mapping[str, int]:
    """Count the ordered pairs of words with at most `gap` words between them (None: any number)."""
    if gap is None:
        return Counter(map("".join, combinations(whole, 2)))
    pairs: Counter[str] = Counter()
    farthest = min(gap + 1, len(whole) - 1)
    for distance in range(1, farthest + 1):
        # Each word with the word that is `distance` after it.
        pairs.update(map(add, whole, whole[distance:]))
    return pairs


def _shared_count(counts: Mapping[str, int], others: Mapping[str, int]) -> int:
    """Return the size of the multiset intersection."""
    return sum(
        min(count, others[word]) for word, count in counts.items() if word in others
    )


def _weigh_runs(
    line: str, marks: int, weight: float, budgets: Sequence[Counter[str]]
) -> float:
    """Return the sum of length^weight over the runs of marked words, and reduce the `budgets`.

    Bit i of `marks` is set if word i of the line is marked. A budget counts how often a text has a
    word that was not used yet; a marked word counts while both texts have it left. A run ends at a
    word that counted if the next one is not marked, or there is none. A run that is still open at
    the end of the sentence is lost, as in ROUGE-1.5.5.
    """
    hits = 0.0
    run = 0
    for index, word in enumerate(line):
        is_marked = (marks >> index) & 1
        if not is_marked or not all(budget[word] > 0 for budget in budgets):
            continue
        run += 1
        for budget in budgets:
            budget[word] -= 1
        next_is_marked = (marks >> (index + 1)) & 1
        if not next_is_marked:
            hits += run**weight
            run = 0
    return hits


Multi = Literal["best_f", "best_recall", "pooled", "mean", "jackknife"]
"""How the scores with several references become one.

- `best_f`: the reference with the best F, as rouge-score; the first of equals.
- `best_recall`: the reference with the best recall, as ROUGE-1.5.5 -f B; the first of equals.
- `pooled`: one score from the sums of the counts, as ROUGE-1.5.5 -f A.
- `mean`: the mean over the references.
- `jackknife`: each reference is left out once, and the best scores of the others are averaged
  (Lin 2004, section 2.1). The best is that by F, under ROUGE-1.5.5 by recall.
"""
MULTI: tuple[str, ...] = get_args(Multi)


def combine(
    kind: Kind,
    tallies: Sequence[MatchCounts],
    variant: Variant,
    multi: str,
    best: str,
) -> RougeScore:
    """Return the score of an output from its tallies with each reference.

    `best` (best_f or best_recall) picks a reference for the jackknife.
    """
    if len(tallies) == 1:
        return variant.score(kind, tallies[0])
    if multi == "pooled":
        return variant.score(kind, pooled(tallies))
    scores = [variant.score(kind, tally) for tally in tallies]
    if multi == "mean":
        return _mean(scores)
    best_by = best if multi == "jackknife" else multi
    if best_by == "best_recall":
        ranking_values = [variant.recall(kind, tally) for tally in tallies]
    else:
        ranking_values = [score.fmeasure for score in scores]
    # Sorting is stable, so the first of equal references wins.
    ranked = sorted(range(len(scores)), key=ranking_values.__getitem__, reverse=True)
    best_score = scores[ranked[0]]
    if multi != "jackknife":
        return best_score
    # Without the best reference, the second is the best; without any other, the best remains.
    second_score = scores[ranked[1]]
    best_without_each = [best_score] * (len(scores) - 1) + [second_score]
    return _mean(best_without_each)


def _mean(scores: Sequence[RougeScore]) -> RougeScore:
    """Return the mean precision, recall and F."""
    columns = zip(*scores, strict=True)
    means = [sum(values) / len(values) for values in columns]
    return RougeScore(*means)
