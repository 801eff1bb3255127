"""The claims behind a score: what was checked, and how probable its support is."""

from __future__ import annotations

from dataclasses import dataclass

from judge.core.claims import Span, decode
from judge.core.format import one_line
from judge.core.records import Column, Failure, Sample, Score

CLAIMS = ("claims_precision", "nli")
"""The columns that check the claims of outputs."""
REFERENCE_CLAIMS = "claims_recall"
"""The column that checks the claims of references."""
MAX_SENTENCE = 300
"""Characters of a sentence that reports show."""
_THRESHOLD = 0.5  # of a verifier whose signature has none


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim, its probability of support (0–1), and whether that reaches the column's threshold.

    `span` is its position in the output, None if its words are not there or it is a claim of the
    references. `evidence` is the most similar sentence of the text that it is checked against, ""
    if there is none.
    """

    text: str
    probability: float
    supported: bool
    span: Span | None
    evidence: str

    @property
    def mark(self) -> str:
        """`✓ 0.93`, or `✗ 0.12` for an unsupported claim."""
        sign = "✓" if self.supported else "✗"
        return f"{sign} {self.probability:.2f}"

    @property
    def nearest(self) -> str:
        """The most similar sentence of the source, in words."""
        sentence = one_line(self.evidence, MAX_SENTENCE)
        if not sentence:
            return "The source has no similar sentence."
        return f"Most similar in the source: “{sentence}”"

    @property
    def cells(self) -> list[str]:
        """What a table shows, side by side."""
        evidence = one_line(self.evidence, MAX_SENTENCE) or "–"
        return [self.mark, one_line(self.text), evidence]


def support_threshold(column: Column) -> float:
    """Return the least probability (0–1) at which a claim is supported.

    It is the signature's, or 0.5 if it has none.
    """
    return float(column.signature.settings.get("threshold", _THRESHOLD))


def checked_claims(
    sample: Sample,
    column: Column,
    row: Score | Failure | None,
) -> tuple[CheckedClaim, ...]:
    """Return the claims behind a value of `claims_precision`, `nli` or `claims_recall`.

    The first two check the output's claims against the source, the last the references' claims
    against the output. Other columns and damaged records have none.
    """
    names = (*CLAIMS, REFERENCE_CLAIMS)
    has_claims = column.kind == "metric" and column.name in names
    if not has_claims or not isinstance(row, Score):
        return ()
    threshold = support_threshold(column)
    is_of_output = column.name in CLAIMS
    against = (sample.source or "") if is_of_output else sample.output
    checked: list[CheckedClaim] = []
    for claim in decode(row.provenance.raw):
        span = claim.span if is_of_output else None
        if span is not None and span.end > len(sample.output):
            span = None  # a damaged record
        evidence = ""
        if claim.evidence:
            evidence = against[slice(*claim.evidence)]
        checked_claim = CheckedClaim(
            claim.text,
            claim.probability,
            supported=claim.probability >= threshold,
            span=span,
            evidence=evidence,
        )
        checked.append(checked_claim)
    return tuple(checked)
