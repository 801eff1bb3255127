"""Scores, failures and verdicts as the item browser shows them, with method, reason and replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from judge.core.claims import Span
from judge.core.format import minus, number, one_line, plural
from judge.core.records import ABSTAINED, IDENTICAL, Column, Failure, Provenance, Score
from judge.core.scale_words import pass_text
from judge.core.signature import Signature
from judge.report.document import Table, text_table
from judge.report.format import score_text
from judge.report.views.replies import Replies, stored_replies
from judge.results.checked_claims import MAX_SENTENCE, CheckedClaim
from judge.stats.compared_pairs import preferred_side, verdict

PREFERENCE = Column(
    name="preference",
    kind="criterion",
    signature=Signature("preference"),
    low=0.0,
    high=1.0,
)
CLAIM_HEADS = ("support", "claim", "most similar sentence")


@dataclass(frozen=True, slots=True)
class Finding:
    """A score, or the failure to get one (`value` is then empty).

    - `shade`: where the score lies on its scale, from -1 (worst) to 1 (best).
    - `bars` and `shares`: the distribution over the labels, as an SVG path 8 wide per label and 20
      high, and in words. `labels` is their number.
    - `method`: how the score was produced.
    - `fails`: why it does not pass: `below 4`, or `above 2` if lower is better; else "".
    - `answers`: the answers to a checklist's questions: a mark, and the question.
    - `quote`: the sentence of the texts that decided.
    """

    name: str
    value: str
    replies: Replies
    judge: str = ""
    shade: float | None = None
    bars: str = ""
    shares: str = ""
    labels: int = 0
    method: str = ""
    reason: str = ""
    failure: Failure | None = None
    fails: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    quote: str = ""

    @property
    def abstained(self) -> bool:
        """Whether a metric declined to give a value."""
        return self.failure is not None and self.failure.error == ABSTAINED


def build_finding(
    row: Score | Failure,
    column: Column,
    places: int | None = None,
    *,
    name: str | None = None,
    judge: str = "",
) -> Finding:
    """Lay out a row.

    `places` are the decimals of its value (None: as many as it needs, see `score_text`). `name` and
    `judge` are those of the Finding (default: the column's name, and none).
    """
    if name is None:
        name = column.name
    if isinstance(row, Failure):
        return Finding(
            name,
            value="",
            replies=stored_replies(row),
            judge=judge,
            failure=row,
            answers=_answers(row),
        )
    provenance = row.provenance
    distribution = _drawn_distribution(provenance, column)
    share = column.share(row.value) if column.better else None
    # From −1, the worst end of the scale, to 1.
    shade = None if share is None else round(2 * share - 1, 2)
    text = score_text(column, row.value, places)
    fails = ""
    if column.passes(row.value) is False:
        fails = _failing_text(column, text)
    places_of_bounds = max(2, places or 0)
    return Finding(
        name,
        value=text,
        replies=stored_replies(provenance),
        judge=judge,
        shade=shade,
        bars=distribution.bars,
        shares=distribution.shares,
        labels=distribution.n_labels,
        method=_method_text(provenance, places_of_bounds),
        reason=provenance.reason or "",
        fails=fails,
        answers=_answers(provenance),
        quote=provenance.quote or "",
    )


def _failing_text(column: Column, score: str) -> str:
    """Say on which side of the limit a score is that does not pass: `below 4`."""
    limit = pass_text(column)
    side = "above" if column.better == "lower" else "below"
    # The rounded score may read like the limit: 3.996 is "just below 4".
    if _without_zeros(score) == limit:
        return f"just {side} {limit}"
    return f"{side} {limit}"


def _without_zeros(text: str) -> str:
    """Return a number without zeros at its end: `4` for `4.00`."""
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True, slots=True)
class _DrawnDistribution:
    """The probabilities of the labels, as an SVG path (`bars`) and in words (`shares`)."""

    bars: str
    shares: str
    n_labels: int


def _drawn_distribution(provenance: Provenance, column: Column) -> _DrawnDistribution:
    distribution = provenance.distribution or {}
    labels = column.labels or tuple(distribution)
    total = sum(distribution.values()) or 1.0
    bars: list[str] = []
    shares: list[str] = []
    for index, label in enumerate(labels):
        share = distribution.get(label, 0.0) / total
        if share > 0:
            # A stroke up from the baseline at 20, in a column 8 pixels wide.
            middle = 8 * index + 4
            top = min(19, 20 - round(20 * share))  # a pixel at least
            bars.append(f"M{middle} 20V{top}")
            percent = f"{share:.0%}" if share >= 0.005 else "<1%"
            shares.append(f"{minus(label)}: {percent}")
    return _DrawnDistribution("".join(bars), ", ".join(shares), len(labels))


def _answers(source: Provenance | Failure) -> tuple[tuple[str, str], ...]:
    """Return the answers of a checklist: a mark, the probability of yes if known, the question."""
    answers = []
    for answer in source.answers:
        mark = "? no answer"
        if answer.value is not None:
            mark = "✓" if answer.value >= 0.5 else "✗"
            if answer.provenance.mass is not None:
                mark = f"{mark} {answer.value:.2f}"
        weight = "" if answer.weight == 1 else f" (weight {answer.weight:g})"
        answers.append((mark, answer.question + weight))
    return tuple(answers)


class Piece(NamedTuple):
    """A piece of a text, with the scores that quote it and the unsupported claims that contain it.

    `quoted` has the names of these scores. `ends` are the probabilities of the claims that end with
    the piece: `0.12`.
    """

    text: str
    quoted: str = ""
    claims: tuple[CheckedClaim, ...] = ()
    ends: str = ""

    @property
    def note(self) -> str:
        """Each claim's probability and most similar sentence, and its words if they differ."""
        notes = []
        for claim in self.claims:
            words = "."
            if claim.text.strip() != self.text.strip():
                claim_text = one_line(claim.text, MAX_SENTENCE)
                words = f": “{claim_text}”"
            notes.append(f"Support {claim.probability:.2f}{words} {claim.nearest}")
        return " · ".join(notes)


def marked(
    text: str,
    quotes: Sequence[tuple[str, str]],
    claims: Sequence[CheckedClaim] = (),
) -> tuple[Piece, ...]:
    """Split a text at the ends of quotations and of unsupported claims, which may overlap.

    `quotes` are pairs of a quotation and its name; one that the text does not have is left out.
    """
    quoted: list[tuple[Span, str]] = []
    for quote, title in quotes:
        start = text.find(quote)
        if start >= 0:
            span = Span(start, start + len(quote))
            quoted.append((span, title))
    unsupported = [claim for claim in claims if not claim.supported]
    claimed = [(claim.span, claim) for claim in unsupported if claim.span]
    cuts = {0, len(text)}
    for span, _ in (*quoted, *claimed):
        cuts |= {span.start, span.end}
    pieces: list[Piece] = []
    for start, end in pairwise(sorted(cuts)):
        # No span begins or ends inside a piece, so one that overlaps it contains it.
        names = [title for span, title in quoted if _contains(span, start, end)]
        around = [claim for span, claim in claimed if _contains(span, start, end)]
        ending = [claim for span, claim in claimed if span.end == end]
        ends = [f"{claim.probability:.2f}" for claim in ending]
        piece = Piece(
            text[start:end],
            quoted=" · ".join(dict.fromkeys(names)),
            claims=tuple(around),
            ends=", ".join(ends),
        )
        pieces.append(piece)
    return tuple(pieces)


def _contains(span: Span, start: int, end: int) -> bool:
    return span.start <= start and end <= span.end


_READINGS = {
    "prose": "read from a sentence",
    "repaired": "read from the answer to a repair question",
}


def _method_text(provenance: Provenance, places: int) -> str:
    """Say in a few words how a score was produced."""
    if provenance.method in ("panel", IDENTICAL):
        return provenance.note or provenance.method
    phrases: list[str] = [provenance.method]
    if provenance.reading in _READINGS:
        phrases.append(_READINGS[provenance.reading])
    mass = provenance.mass
    if provenance.method == "samples":
        n_scores = provenance.n
        # The mass is the share of draws with a score.
        n_draws = round(n_scores / mass) if mass else n_scores
        draws = f"{n_scores:,} of {n_draws:,} draws"
        if n_draws == n_scores:
            draws = plural(n_scores, "draw")
        phrases.append(draws)
    elif mass is not None:
        phrases.append(f"mass {mass:.2f}")
    if provenance.low is not None and provenance.high is not None:
        low = number(provenance.low, places)
        high = number(provenance.high, places)
        # Bounds that are the same after rounding say nothing.
        if low != high:
            phrases.append(f"bounds {low}–{high}")
    if provenance.entropy is not None:
        phrases.append(f"entropy {provenance.entropy:.2f}")
    note = f"; {provenance.note}" if provenance.note else ""
    return ", ".join(phrases) + note


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one order, in which the text of `first` is shown first.

    `preferred` is a system and `strength` the preference for it (0.50–1.00); both are "" for a tie
    and for a failure.
    """

    first: str
    preferred: str
    strength: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems' texts on one item.

    `verdicts` are those with the `first` and with the `second` system shown first. `preference` is
    the mean preference for the `first` (0–1), None if an order lacks its answer. `flipped`: the
    answer changed with the order. `identical`: the texts are the same, so no judge was asked.
    """

    first: str
    second: str
    verdicts: tuple[Verdict | None, Verdict | None]
    preference: float | None
    flipped: bool
    identical: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """The pairs of one item on one criterion."""

    label: str
    pairs: tuple[Pair, ...]

    @property
    def flips(self) -> int:
        return sum(pair.flipped for pair in self.pairs)

    def preference(self, system: str) -> float | None:
        """Return the mean preference for a system over its pairs."""
        values = []
        for pair in self.pairs:
            if pair.preference is None:
                continue
            if system == pair.first:
                values.append(pair.preference)
            elif system == pair.second:
                values.append(1 - pair.preference)
        return sum(values) / len(values) if values else None


_BothOrders = list[Score | Failure | None]
"""The rows of a pair: with its first and with its second system shown first."""
_AnswersByPair = dict[tuple[str, str], _BothOrders]


def compared(
    rows: Sequence[Score | Failure],
    labels: Mapping[str, str],
    systems: Sequence[str],
    orders: int,
    tie_labels: Mapping[str, str | None] = {},
) -> tuple[Compared, ...]:
    """Group one item's rows by the columns of `labels` and by pair, with both orders of a pair.

    Pairs are in the order of the `systems`. `orders` is the number of orders that the judge was
    asked in. `tie_labels` are the labels for a tie, by column.
    """
    index_of = {system: index for index, system in enumerate(systems)}

    def position(pair: tuple[str, str]) -> tuple[int, int]:
        first_system, second_system = pair
        return index_of[first_system], index_of[second_system]

    comparisons = []
    for column, label in labels.items():
        rows_of_column = [row for row in rows if row.column == column]
        answers_by_pair = _answers_by_pair(rows_of_column, index_of)
        label_of_tie = tie_labels.get(column)
        pairs = []
        for systems_of_pair in sorted(answers_by_pair, key=position):
            answers = answers_by_pair[systems_of_pair]
            pairs.append(_pair(systems_of_pair, answers, orders, label_of_tie))
        comparisons.append(Compared(label, tuple(pairs)))
    return tuple(comparisons)


def _answers_by_pair(
    rows: Sequence[Score | Failure],
    index_of: Mapping[str, int],
) -> _AnswersByPair:
    """Return the rows of each pair of systems; others than those of `index_of` are left out."""
    answers_by_pair: _AnswersByPair = {}
    for row in rows:
        if row.system not in index_of or row.opponent not in index_of:
            continue
        # A pair is named in the order of the systems, whichever was shown first.
        pair = (row.system, row.opponent)
        order = 0
        if index_of[row.system] > index_of[row.opponent]:
            pair = (row.opponent, row.system)
            order = 1
        answers = answers_by_pair.setdefault(pair, [None, None])
        answers[order] = row
    return answers_by_pair


def _pair(
    systems: tuple[str, str],
    answers: _BothOrders,
    orders: int,
    label_of_tie: str | None,
) -> Pair:
    """Combine the answers about a pair of systems in both orders."""
    first_system, second_system = systems
    scores = [row if isinstance(row, Score) else None for row in answers]
    known_scores = [score for score in scores if score is not None]
    forward, backward = scores
    pair_verdict = verdict(forward, backward, label_of_tie) if known_scores else None
    preference = None
    if pair_verdict is not None and len(known_scores) >= orders:
        preference = pair_verdict.preference
    verdicts = (
        _verdict(first_system, second_system, answers[0], label_of_tie),
        _verdict(second_system, first_system, answers[1], label_of_tie),
    )
    is_flipped = pair_verdict is not None and bool(pair_verdict.flipped)
    is_identical = any(score.provenance.method == IDENTICAL for score in known_scores)
    return Pair(
        first=first_system,
        second=second_system,
        verdicts=verdicts,
        preference=preference,
        flipped=is_flipped,
        identical=is_identical,
    )


def _verdict(
    first_system: str,
    second_system: str,
    row: Score | Failure | None,
    label_of_tie: str | None,
) -> Verdict | None:
    """Return the verdict of one order; None if there is no row."""
    if row is None:
        return None
    finding = build_finding(row, PREFERENCE)
    if isinstance(row, Failure):
        return Verdict(
            first=first_system,
            preferred="",
            strength="",
            finding=finding,
        )
    preferred_systems = {1: first_system, -1: second_system, 0: ""}
    preferred = preferred_systems[preferred_side(row, label_of_tie)]
    strength = ""
    if preferred:
        # A value below one half is about the other text.
        value_of_preferred = max(row.value, 1 - row.value)
        strength = number(value_of_preferred, 2)
    return Verdict(
        first=first_system,
        preferred=preferred,
        strength=strength,
        finding=finding,
    )


@dataclass(frozen=True, slots=True)
class QagsQuestion:
    """One question of QAGS with its theme and both answers; "–" if a text answers nothing.

    `similarity` of the answers is by the name of its measure, each 0–1 (BERTScore may be below 0).
    It is empty if the question does not count, and `left_out` says why.
    """

    theme: str
    question: str
    from_source: str
    from_output: str
    similarity: dict[str, float]
    left_out: str = ""

    def value(self, similarity_name: str) -> str:
        """Return the similarity of this name, "–" without one."""
        similarity = self.similarity.get(similarity_name)
        return "–" if similarity is None else number(similarity, 2)


# Theme, question, answer from the source, answer from the output, similarities, and the reason why
# the question does not count, which old runs lack.
_Stored = Annotated[
    tuple[str, str, str, str, dict[str, float], str],
    BeforeValidator(lambda line: [*line, ""] if len(line) == 5 else line),
]
_QAGS = TypeAdapter(dict[Literal["qags"], list[_Stored]])


def qags_table(column: Column, row: Score | Failure | None) -> tuple[QagsQuestion, ...]:
    """Return the questions behind a value of QAGS; none for other columns and damaged records."""
    if row is None or column.kind != "metric" or not column.name.startswith("qags_"):
        return ()
    raw = row.provenance.raw if isinstance(row, Score) else row.raw
    if not raw:
        return ()
    try:
        stored_lines = _QAGS.validate_json(raw).get("qags", ())
    except (ValidationError, TypeError):
        return ()
    lines = []
    for theme, question, from_source, from_output, similarity, left_out in stored_lines:
        line = QagsQuestion(
            theme,
            question,
            from_source or "–",
            from_output or "–",
            similarity,
            left_out,
        )
        lines.append(line)
    return tuple(lines)


def similarities(lines: Sequence[QagsQuestion]) -> tuple[str, ...]:
    """Return the names of the similarities of some lines."""
    names: dict[str, None] = {}
    for line in lines:
        names |= dict.fromkeys(line.similarity)
    return tuple(names)


def question_table(lines: Sequence[QagsQuestion], table_name: str) -> Table:
    """Return the questions of one text, each with both answers and a column per similarity.

    A question that does not count says why in the first of these columns.
    """
    similarity_names = similarities(lines) or ("similarity",)
    rows = []
    for line in lines:
        values = [line.value(name) for name in similarity_names]
        if not line.similarity:
            reason = line.left_out or "no reason recorded"
            values[0] = f"not counted: {reason}"
        texts = (line.theme, line.question, line.from_source, line.from_output, *values)
        rows.append(map(one_line, texts))
    heads = ("theme", "question", "from source", "from output", *similarity_names)
    return text_table(heads, rows, name=table_name)
