"""The scores of one criterion in a result, and the texts that have a score in two results."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import fsum

from judge.core.format import decimals, first_names, one_line, plural
from judge.core.messages import option
from judge.core.records import Column, Failure, Sample, Score
from judge.results.result import Result
from judge.suite.evidence import (
    NEAR,
    Parts,
    Row,
    ScoreEvidence,
    Undecidable,
    describe_failure,
    evidence_of,
    item_means,
    item_values,
    label_values,
    likeliest,
    mean_of,
    scaled,
    shares,
)
from judge.table import Text

RowKey = tuple[str, str, str]
"""Item, system and opponent of a row; the opponent is "" unless two texts were compared."""
_NAMED_TEXTS = 3  # in a message
_LONGEST_NAME = 60
"""Characters of a name in a message."""


def columns(result: Result) -> dict[str, Column]:
    """Return the deciding column of each criterion.

    It is the judge's, a panel's, or has scores from elsewhere.
    """
    deciding: dict[str, Column] = {}
    for column in result.table.columns:
        # The columns of a panel's judges have a judge; the panel's own has none.
        is_criterion = column.kind == "criterion" and not column.judge
        is_external = column.signature.is_external
        if is_criterion or is_external:
            deciding[column.criterion or column.name] = column
    return deciding


def places(column: Column) -> int:
    """Return the decimals for a column's scale."""
    ends = (column.low, column.high)
    return decimals([end for end in ends if end is not None])


@dataclass(frozen=True)
class CaseScores:
    """One criterion's rows: the deciding `column`, and the columns of a panel's judges."""

    result: Result
    column: Column
    judges: Sequence[Column]
    source_items: Mapping[str, str] = field(default_factory=dict)
    rows: dict[RowKey, dict[str, Row]] = field(default_factory=dict)

    @classmethod
    def for_criterion(
        cls,
        result: Result | None,
        criterion: str,
        items: Collection[str],
    ) -> CaseScores:
        """Collect the rows of these items. Raises Undecidable if the criterion was not judged."""
        column = columns(result).get(criterion) if result is not None else None
        if result is None or column is None:
            raise Undecidable(f"{one_line(criterion)} was not judged in this run")
        table = result.table
        judges = [
            judge
            for judge in table.columns
            if judge.judge and judge.criterion == criterion
        ]
        source_items = {}
        for sample in table.samples:
            if sample.cluster:
                source_items[sample.item] = sample.cluster
        case_scores = cls(result, column, judges, source_items)
        # All rows are read once here: looking up each text in the table would be quadratic.
        column_names = {table_column.name for table_column in (column, *judges)}
        item_names = frozenset(items)
        scores = chain.from_iterable(table.column_scores(name) for name in column_names)
        rows: Iterable[Row] = chain(scores, table.failures)
        for row in rows:
            if row.item in item_names and row.column in column_names:
                key = (row.item, row.system, row.opponent)
                row_by_column = case_scores.rows.setdefault(key, {})
                row_by_column[row.column] = row
        return case_scores

    def score(self, item: str, system: str, opponent: str = "") -> Score | None:
        """Return the deciding score, None if there is none."""
        row_by_column = self.rows.get((item, system, opponent), {})
        row = row_by_column.get(self.column.name)
        # A failed judgment has a row, but no score.
        return row if isinstance(row, Score) else None

    @property
    def one_value(self) -> str:
        """What a score without an interval is: one reply, or a panel's median or majority."""
        if self.column.panel == "mean":
            return "one reply"
        return f"panel {self.column.panel}"

    def values(self, samples: Iterable[Sample]) -> dict[Text, float]:
        """Return the deciding scores of these texts."""
        value_by_text: dict[Text, float] = {}
        for sample in samples:
            score = self.score(*sample.key)
            if score:
                value_by_text[sample.key] = score.value
        return value_by_text

    def each(
        self, item: str, system: str, opponent: str = ""
    ) -> list[tuple[Score, Column]]:
        """Return the scores behind the deciding one, with their columns.

        These are the scores of a panel's judges, or the deciding one itself. A panel's median or
        majority stands for itself: like a single reply, it has no interval.
        """
        score = self.score(item, system, opponent)
        if score is None:
            return []
        if self.column.panel != "mean":
            return [(score, self.column)]
        row_by_column = self.rows.get((item, system, opponent), {})
        judged: list[tuple[Score, Column]] = []
        for judge in self.judges:
            row = row_by_column.get(judge.name)
            if isinstance(row, Score):
                judged.append((row, judge))
        # With a judge's score missing, the panel's mean is over fewer judges and counts itself.
        if judged and len(judged) == len(self.judges):
            return judged
        return [(score, self.column)]

    def parts(self, item: str, system: str, opponent: str = "") -> Parts:
        """Return the terms of a score, one per judge of a panel's mean; empty without a score."""
        terms: list[tuple[float, ScoreEvidence]] = []
        scores = self.each(item, system, opponent)
        for score, column in scores:
            factor = 1 / len(scores)
            evidence = evidence_of(score, label_values(column))
            terms.append((factor, evidence))
        return terms

    def passes(self, item: str, system: str) -> Parts:
        """Return 1 for a text that passes and 0 for any other; empty without a score.

        Raises Undecidable if the criterion does not say what passes.
        """
        if self.column.pass_at is None:
            raise Undecidable(f"{one_line(self.column.name)} does not say what passes")
        score = self.score(item, system)
        if score is None:
            return []
        passed = 1.0 if self.column.passes(score.value) else 0.0
        return [(1.0, ScoreEvidence(passed, passed, passed))]

    def difference(self, items: Sequence[str], better: str, worse: str) -> Parts:
        """Return the terms of `better` minus `worse`, reversed if a lower score is better.

        Empty if one of them has no score. Several generations, each an item here, have their mean.
        """
        better_parts = mean_of(self._scored_parts(items, better))
        worse_parts = mean_of(self._scored_parts(items, worse))
        if not better_parts or not worse_parts:
            return []
        sign = -1 if self.column.better == "lower" else 1
        return [*scaled(better_parts, sign), *scaled(worse_parts, -sign)]

    def _scored_parts(self, items: Sequence[str], system: str) -> list[Parts]:
        parts_of_items = [self.parts(item, system) for item in items]
        return [parts for parts in parts_of_items if parts]

    def preference(self, items: Sequence[str], better: str, worse: str) -> Parts:
        """Return the terms of the preference for `better` (0–1), the mean of both orders.

        Empty if one order is missing. Several generations, each an item here, have their mean.
        """
        preferences: list[Parts] = []
        for item in items:
            shown_first = self.parts(item, better, worse)
            shown_second = self.parts(item, worse, better)
            if shown_first and shown_second:
                # If `better` is shown second, a value of v is a preference of 1 − v for it. The
                # mean of both orders therefore has a constant term of one half.
                constant = (0.5, ScoreEvidence(1.0, 1.0, 1.0))
                both_orders = [
                    *scaled(shown_first, 0.5),
                    *scaled(shown_second, -0.5),
                    constant,
                ]
                preferences.append(both_orders)
        return mean_of(preferences)

    def shares(self, item: str, system: str) -> dict[str, float]:
        """Return the probability of each label in a single reply, averaged over a panel.

        The labels are in the scale's order. If a panel's majority decides, they are the shares of
        the votes.
        """
        distributions = [shares(score) for score, _ in self.each(item, system)]
        mean_shares: dict[str, float] = {}
        for label in self.column.labels:
            if not any(label in distribution for distribution in distributions):
                continue
            # A judge that gave a label no probability counts as 0.
            probabilities = [
                distribution.get(label, 0.0) for distribution in distributions
            ]
            mean_shares[label] = fsum(probabilities) / len(distributions)
        return mean_shares

    def missing_texts(self, texts: Sequence[Text]) -> tuple[str, str]:
        """Describe the texts that have no score. Raises Undecidable if none has one."""
        lost: list[RowKey] = []
        for item, system in texts:
            if self.score(item, system) is None:
                lost.append((item, system, ""))
        none_has_score = len(lost) == len(texts)
        return self.describe_missing(lost, fatal=none_has_score)

    def describe_missing(
        self, rows: Sequence[RowKey], *, fatal: bool = False
    ) -> tuple[str, str]:
        """Describe rows without a score, and return the first one's message and reply.

        Both are empty if there are no rows. Raises Undecidable if the lack is `fatal`, and for rows
        that were not judged at all: the limit on failed judgments does not cover them.
        """
        if not rows:
            return "", ""
        not_judged: list[RowKey] = []
        for row in rows:
            row_by_column = self.rows.get(row, {})
            if self.column.name not in row_by_column:
                not_judged.append(row)
        if not_judged:
            text_names: list[str] = []
            for item, system, _ in not_judged:
                item_name = one_line(item, _LONGEST_NAME)
                system_name = one_line(system, _LONGEST_NAME)
                text_names.append(f"{item_name} ({system_name})")
            names = first_names(text_names, _NAMED_TEXTS)
            raise Undecidable(f"not judged: {names}")
        failure = self._first_failure(rows)
        detail = describe_failure(failure) if failure else ""
        n_texts = plural(len(rows), "text")
        message = f"{n_texts} without a score"
        if not fatal:
            return message, detail
        if len(rows) == 1:
            # The kind of the failure says more than a count.
            message, _, _ = detail.partition(":")
        raise Undecidable(message, detail)

    def _first_failure(self, rows: Sequence[RowKey]) -> Failure | None:
        for row_key in rows:
            row_by_column = self.rows.get(row_key, {})
            # A panel's judges come before their mean, whose failure follows from theirs.
            for column in (*self.judges, self.column):
                row = row_by_column.get(column.name)
                if isinstance(row, Failure):
                    return row
        return None


class Rescaled(Undecidable):
    """A criterion whose scale has changed."""


@dataclass(frozen=True, slots=True)
class PairedRuns:
    """The scores of the `texts` scored both before and after.

    `scored_after` counts the texts that were scored after.
    """

    before: CaseScores
    after: CaseScores
    texts: Sequence[Text]
    scored_after: int

    def items(self) -> list[Parts]:
        """Return the difference of each item, after minus before, averaged over its systems."""

        def change(item: str, system: str) -> Parts:
            parts_before = self.before.parts(item, system)
            parts_after = self.after.parts(item, system)
            return [*parts_after, *scaled(parts_before, -1)]

        return item_means(self.texts, change, self.after.source_items)

    @property
    def some(self) -> str:
        """`on 7 of 12 texts`; empty if it is all of them."""
        compared = len(self.texts)
        if compared == self.scored_after:
            return ""
        return f"on {compared:,} of {plural(self.scored_after, 'text')}"

    def mean_before(self) -> float:
        """Return the mean of the items' means in the baseline."""
        items = item_means(self.texts, self.before.parts, self.after.source_items)
        return float(item_values(items).mean())

    def changed(self) -> str:
        """Write `24 of 36 labels flipped`, or how many scores changed if no label did.

        Empty if no score changed.
        """
        try:
            flips = len(self.flips())
        except Undecidable:
            flips = 0
        if flips:
            return f"{flips:,} of {plural(len(self.texts), 'label')} flipped"
        n_changed = 0
        for text in self.texts:
            score_before = self.before.score(*text)
            score_after = self.after.score(*text)
            if score_before is None or score_after is None:
                continue
            if abs(score_before.value - score_after.value) > NEAR:
                n_changed += 1
        if not n_changed:
            return ""
        return f"{n_changed:,} of {plural(len(self.texts), 'score')} changed"

    def flips(self) -> list[Text]:
        """Return the texts whose likeliest label changed.

        Raises Undecidable if scores are not made of labels.
        """
        flipped: list[Text] = []
        for text in self.texts:
            label_before = likeliest(self.before.shares(*text))
            label_after = likeliest(self.after.shares(*text))
            if not label_before or not label_after:
                raise Undecidable(
                    "scores are not made of labels, so none can flip: limit the shift"
                )
            if label_before != label_after:
                flipped.append(text)
        return flipped


def pair_runs(
    before: Result,
    after: CaseScores,
    criterion: str,
    texts: Sequence[Text],
) -> PairedRuns:
    """Pair the texts that have a score in both runs.

    Raises Undecidable if the baseline lacks the criterion or has scores for fewer than half of the
    texts, Rescaled if its scale is another one.
    """
    items = {item for item, _ in texts}
    try:
        scores_before = CaseScores.for_criterion(before, criterion, items)
    except Undecidable:
        name = one_line(criterion, _LONGEST_NAME)
        raise Undecidable(f"{name} is not in the baseline: {_remake()}") from None
    old_scale = _describe_scale(scores_before.column)
    new_scale = _describe_scale(after.column)
    # Means on two scales cannot be compared, whatever the labels are called.
    if old_scale != new_scale:
        raise Rescaled(f"its scale was {old_scale} and is {new_scale}: {_remake()}")
    scored = [text for text in texts if after.score(*text)]
    shared = [text for text in scored if scores_before.score(*text)]
    if not shared:
        raise Undecidable("no text has a score both here and in the baseline")
    if 2 * len(shared) < len(scored):
        total = plural(len(scored), "text")
        raise Undecidable(
            f"only {len(shared):,} of {total} scored here have a score there: {_remake()}"
        )
    return PairedRuns(scores_before, after, shared, len(scored))


def _describe_scale(column: Column) -> str:
    if column.low is None or column.high is None:
        return "open"
    scale = f"{column.low:g} to {column.high:g}".replace("-", "−")
    if column.better == "lower":
        return f"{scale}, lower is better"
    return scale


def _remake() -> str:
    return f"renew the baseline with {option('update_baseline', True)}"
