"""Scores, failures and verdicts as the item browser shows them: value, distribution, method, reason and replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from judge.core.claims import Span, decode
from judge.core.format import minus, number, one_line, plural
from judge.core.records import ABSTAINED, IDENTICAL, Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.document import Table, text_table
from judge.report.format import pass_text, score_text
from judge.scoring.parse import split_replies
from judge.stats.pairwise import TIE, verdict

_BRIEF = 24  # characters of a reply that fits beside others
PREFERENCE = Column("preference", "criterion", Signature("preference"), 0.0, 1.0)
CLAIMS, REFERENCE_CLAIMS = ("claims_precision", "nli"), "claims_recall"
CLAIM_HEADS = ("support", "claim", "most similar sentence")
_MAX_SENTENCE = 300  # characters of a sentence
_THRESHOLD = 0.5  # of a verifier whose signature has none


@dataclass(frozen=True, slots=True)
class Replies:
    """The replies behind a value with their counts, the most common first."""

    texts: tuple[tuple[str, int], ...] = ()

    @property
    def brief(self) -> bool:
        """Whether all of them fit on a line."""
        return (
            all(len(text) <= _BRIEF and "\n" not in text for text, _ in self.texts)
            and len(self.texts) <= _BRIEF
        )

    @property
    def total(self) -> int:
        return sum(n for _, n in self.texts)


@dataclass(frozen=True, slots=True)
class Finding:
    """A score, or the failure to get one (`value` is then empty).

    `shade`, from -1 (worst) to 1 (best), is where the score lies on its scale. `bars` and `shares` are the distribution
    over the labels, as an SVG path 8 wide per label and 20 high, and in words. `method` says how the score was
    produced. `answers` are those to a checklist's questions, each with its question; `quote` has the sentence of the
    texts that decided. `below` says that it does not pass: `below 4`.
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
    below: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    quote: str = ""

    @property
    def abstained(self) -> bool:
        """Whether a metric declined to give a value."""
        return self.failure is not None and self.failure.error == ABSTAINED


def build_finding(row: Score | Failure, column: Column, places: int = 2, **names: Any) -> Finding:
    """Lay out a row; its value has this many decimals."""
    names.setdefault("name", column.name)
    if isinstance(row, Failure):
        return Finding(value="", replies=_replies(row), failure=row, answers=_answers(row), **names)
    p = row.provenance
    total = sum((p.distribution or {}).values()) or 1.0
    bars, shares = [], []  # of the mass on the scale, drawn and in words
    for k, label in enumerate(column.labels or p.distribution or ()):
        part = (p.distribution or {}).get(label, 0.0) / total
        if part > 0:
            bars.append(f"M{8 * k + 4} 20V{min(19, 20 - round(20 * part))}")
            shares.append(
                f"{minus(label)}: {part:.0%}" if part >= 0.005 else f"{minus(label)}: <1%"
            )
    share = column.share(row.value) if column.better else None
    text, failing = score_text(column, row.value, places), column.passes(row.value) is False
    return Finding(
        value=text,
        replies=_replies(p),
        shade=None if share is None else round(2 * share - 1, 2),
        bars="".join(bars),
        shares=", ".join(shares),
        labels=len(column.labels or p.distribution or ()),
        method=_method_text(p, places),
        reason=p.reason or "",
        below=f"{'just ' if text == pass_text(column) else ''}below {pass_text(column)}"
        if failing
        else "",
        answers=_answers(p),
        quote=p.quote or "",
        **names,
    )


def _answers(source: Provenance | Failure) -> tuple[tuple[str, str], ...]:
    """Return the answers of a checklist: a mark, the probability of yes if there is one, and the question."""
    marked = []
    for answer in source.answers:
        known = "" if answer.provenance.mass is None else f" {answer.value:.2f}"
        mark = (
            "? no answer"
            if answer.value is None
            else f"{'✓' if answer.value >= 0.5 else '✗'}{known}"
        )
        weight = "" if answer.weight == 1 else f" (weight {answer.weight:g})"
        marked.append((mark, answer.question + weight))
    return tuple(marked)


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, its probability of support (0–1), and whether that reaches the column's threshold.

    `span` is its place in the output, None if its words are not there or it is a claim of the references. `evidence` is
    the most similar sentence of the text that it is checked against, "" if there is none.
    """

    text: str
    probability: float
    supported: bool
    span: Span | None
    evidence: str

    @property
    def mark(self) -> str:
        return f"{'✓' if self.supported else '✗'} {self.probability:.2f}"

    @property
    def nearest(self) -> str:
        """The most similar sentence of the source, in words."""
        sentence = one_line(self.evidence, _MAX_SENTENCE)
        return (
            f"Most similar in the source: “{sentence}”"
            if sentence
            else "The source has no similar sentence."
        )

    @property
    def cells(self) -> tuple[str, str, str]:
        """What a table shows, under `CLAIM_HEADS`."""
        return self.mark, one_line(self.text), one_line(self.evidence, _MAX_SENTENCE) or "–"


def support_threshold(column: Column) -> float:
    """Return the least probability (0–1) at which a claim is supported: the signature's, 0.5 if it has none."""
    return float(column.signature.settings.get("threshold", _THRESHOLD))


def checked_claims(
    sample: Sample, column: Column, row: Score | Failure | None
) -> tuple[CheckedClaim, ...]:
    """Return the claims behind a value of `claims_precision` or `nli` (those of the output, checked against the source)
    or of `claims_recall` (of the references, against the output); none for other columns and for a damaged record.
    """
    if (
        column.kind != "metric"
        or column.name not in (*CLAIMS, REFERENCE_CLAIMS)
        or not isinstance(row, Score)
    ):
        return ()
    threshold, own = support_threshold(column), column.name in CLAIMS
    against = (sample.source or "") if own else sample.output
    return tuple(
        CheckedClaim(
            claim.text,
            claim.probability,
            claim.probability >= threshold,
            claim.span if own and claim.span and claim.span.end <= len(sample.output) else None,
            against[slice(*claim.evidence)] if claim.evidence else "",
        )
        for claim in decode(row.provenance.raw)
    )


class Piece(NamedTuple):
    """A piece of a text, with the names of the scores that quote it and the unsupported claims that it belongs to.

    `ends` are the probabilities of those that end with it: `0.12`.
    """

    text: str
    quoted: str = ""
    claims: tuple[CheckedClaim, ...] = ()
    ends: str = ""

    @property
    def note(self) -> str:
        """Each claim's probability, its words if the piece has others, and the most similar sentence."""
        notes = []
        for claim in self.claims:
            same = claim.text.strip() == self.text.strip()
            words = "." if same else f": “{one_line(claim.text, _MAX_SENTENCE)}”"
            notes.append(f"Support {claim.probability:.2f}{words} {claim.nearest}")
        return " · ".join(notes)


def marked(
    text: str, quotes: Sequence[tuple[str, str]], claims: Sequence[CheckedClaim] = ()
) -> tuple[Piece, ...]:
    """Split a text at the ends of quotations and of unsupported claims, which may overlap.

    `quotes` are pairs of a quotation and its name; one that the text does not have is left out.
    """
    quoted = [
        (at, at + len(quote), name) for quote, name in quotes if (at := text.find(quote)) >= 0
    ]
    placed = [(*claim.span, claim) for claim in claims if claim.span and not claim.supported]
    cuts = sorted(
        {0, len(text), *(end for start, stop, _ in [*quoted, *placed] for end in (start, stop))}
    )
    return tuple(
        Piece(
            text[a:b],
            " · ".join(
                dict.fromkeys(name for start, stop, name in quoted if start <= a and b <= stop)
            ),
            tuple(claim for start, stop, claim in placed if start <= a and b <= stop),
            ", ".join(f"{claim.probability:.2f}" for _, stop, claim in placed if stop == b),
        )
        for a, b in pairwise(cuts)
    )


def _replies(source: Provenance | Failure) -> Replies:
    """Return the stored replies: one, the draws of a score by samples, or a reply and that to the repair question."""
    raw = source.raw or ""
    several = raw and (source.method == "samples" or source.reading == "repaired")
    texts = [choice.text for choice in split_replies(raw)] if several else [raw]
    return Replies(tuple(Counter(text.strip() for text in texts if text.strip()).most_common()))


def _method_text(p: Provenance, places: int) -> str:
    """Say in a few words how a score was produced."""
    if p.method in ("panel", IDENTICAL):
        return p.note or p.method
    readings = {
        "prose": "read from a sentence",
        "repaired": "read from the answer to a repair question",
    }
    parts = [p.method, *([readings[p.reading]] if p.reading in readings else [])]
    if p.method == "samples":
        draws = round(p.n / p.mass) if p.mass else p.n
        parts.append(f"{p.n:,} of {draws:,} draws" if draws != p.n else plural(p.n, "draw"))
    elif p.mass is not None:
        parts.append(f"mass {p.mass:.2f}")
    ends = [number(end, places) for end in (p.low, p.high) if end is not None]
    if len(set(ends)) > 1:
        parts.append(f"bounds {'–'.join(ends)}")
    if p.entropy is not None:
        parts.append(f"entropy {p.entropy:.2f}")
    return ", ".join(parts) + (f"; {p.note}" if p.note else "")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one order: the system preferred ("" for a tie), how strongly (0–1), and its finding."""

    first: str
    preferred: str
    strength: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems' texts on one item. `verdicts` are those with the `first` and with the `second` system shown first.

    `preference` is the mean preference for the `first` (0–1), None if an order lacks its answer.
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
        pairs = [pair for pair in self.pairs if system in (pair.first, pair.second)]
        values = [
            p.preference if p.first == system else 1 - p.preference
            for p in pairs
            if p.preference is not None
        ]
        return sum(values) / len(values) if values else None


def compared(
    rows: Sequence[Score | Failure], labels: Mapping[str, str], systems: Sequence[str], orders: int
) -> tuple[Compared, ...]:
    """Group one item's rows by the columns of `labels` and by pair, with both orders of a pair together."""
    place = {system: at for at, system in enumerate(systems)}
    by_column: dict[str, dict[tuple[str, str], list[Score | Failure | None]]] = {
        column: {} for column in labels
    }
    for row in rows:
        if row.column in by_column and {row.system, row.rival} <= place.keys():
            swapped = place[row.system] > place[row.rival]
            key = (row.rival, row.system) if swapped else (row.system, row.rival)
            by_column[row.column].setdefault(key, [None, None])[swapped] = row
    return tuple(
        Compared(
            labels[column],
            tuple(
                _pair(*names, pairs[names], orders)
                for names in sorted(pairs, key=lambda names: (place[names[0]], place[names[1]]))
            ),
        )
        for column, pairs in by_column.items()
    )


def _pair(first: str, second: str, answers: Sequence[Score | Failure | None], orders: int) -> Pair:
    scores = [row if isinstance(row, Score) else None for row in answers]
    answered = [score for score in scores if score is not None]
    pair_verdict = verdict(*scores) if answered else None
    return Pair(
        first,
        second,
        (_verdict(first, second, answers[0]), _verdict(second, first, answers[1])),
        pair_verdict.preference if pair_verdict and len(answered) >= orders else None,
        bool(pair_verdict and pair_verdict.flipped),
        any(score.provenance.method == IDENTICAL for score in answered),
    )


def _verdict(first: str, second: str, row: Score | Failure | None) -> Verdict | None:
    if row is None:
        return None
    finding = build_finding(row, PREFERENCE)
    if isinstance(row, Failure):
        return Verdict(first, "", "", finding)
    preferred = "" if row.value == TIE else first if row.value > TIE else second
    return Verdict(first, preferred, number(max(row.value, 1 - row.value), 2), finding)


@dataclass(frozen=True, slots=True)
class Line:
    """One theme, its question and the two answers; "–" where a text answers nothing.

    `similarity` is by name, each 0–1 (BERTScore may be below 0); empty if the line does not count, and `left_out` says
    why.
    """

    theme: str
    question: str
    from_source: str
    from_output: str
    similarity: dict[str, float]
    left_out: str = ""

    def value(self, name: str) -> str:
        """Return the similarity of this name, "–" without one."""
        return number(self.similarity[name], 2) if name in self.similarity else "–"


# Old runs have no reason.
_Stored = Annotated[
    tuple[str, str, str, str, dict[str, float], str],
    BeforeValidator(lambda line: [*line, ""] if len(line) == 5 else line),
]
_QAGS = TypeAdapter(dict[Literal["qags"], list[_Stored]])


def qags_table(column: Column, row: Score | Failure | None) -> tuple[Line, ...]:
    """Return the questions behind a value of QAGS; none for other columns and for a damaged record."""
    raw = row.provenance.raw if isinstance(row, Score) else row.raw if row else ""
    if not (raw and column.kind == "metric" and column.name.startswith("qags_")):
        return ()
    try:
        lines = _QAGS.validate_json(raw).get("qags", ())
    except (ValidationError, TypeError):
        return ()
    return tuple(
        Line(theme, question, source or "–", output or "–", alike, reason)
        for theme, question, source, output, alike, reason in lines
    )


def similarities(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the names of the similarities of some lines."""
    return tuple(dict.fromkeys(name for line in lines for name in line.similarity))


def question_table(lines: Sequence[Line], name: str) -> Table:
    """Return the questions of one text, each with both answers and a column per similarity or why it does not count."""
    first, *others = similarities(lines) or ("similarity",)
    rows = []
    for line in lines:
        counted = (
            line.value(first)
            if line.similarity
            else f"not counted: {line.left_out or 'no reason recorded'}"
        )
        texts = (
            line.theme,
            line.question,
            line.from_source,
            line.from_output,
            counted,
            *map(line.value, others),
        )
        rows.append(map(one_line, texts))
    return text_table(
        ("theme", "question", "from source", "from output", first, *others), rows, name=name
    )
