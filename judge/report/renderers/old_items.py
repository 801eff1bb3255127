"""The items of the HTML page: a source, every system's output, and its scores or pairwise verdicts.

Bottom-up: the detail of one score, the disagreement of judge and metric by which the page sorts, the passages that an
output copies from its source, the verdicts on pairs of outputs, and at last the items themselves.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from urllib.parse import quote

from judge import text as texts
from judge.core.format import escape_controls, minus, number, plural
from judge.core.records import ABSTAINED, IDENTICAL, Column, Failure, Provenance, Sample, Score
from judge.report import charts
from judge.report.views.leaderboard_old import Leaderboard
from judge.report.views.provenance import abstained, failed
from judge.report.views.qags import Line, qags_table
from judge.report.views.ranking_old import RankingView
from judge.results.result import Result
from judge.stats.pairwise import TIE, verdict
from judge.table import Table

_BRIEF = 24  # characters of a reply that is shown beside the others


@dataclass(frozen=True, slots=True)
class Replies:
    """The replies behind a value, equal ones together: text and how often, the commonest first."""

    texts: tuple[tuple[str, int], ...] = ()

    @property
    def brief(self) -> bool:
        """Whether all of them can stand in a line."""
        return all(len(text) <= _BRIEF and "\n" not in text for text, _ in self.texts) and len(self.texts) <= _BRIEF

    @property
    def total(self) -> int:
        return sum(n for _, n in self.texts)


@dataclass(frozen=True, slots=True)
class ScoreDetail:
    """A value, or the failure to get one (`value` is then empty); `abstained` where a metric declined to give one.

    `path` and `shares` are its distribution, drawn and in words; `facts` say how it was made.
    """

    value: str
    path: str
    shares: str
    facts: str
    reason: str
    replies: Replies
    failure: Failure | None
    abstained: bool = False


def build_score_detail(row: Score | Failure, labels: Sequence[str], places: int) -> ScoreDetail:
    """Lay out a row; its value has that many decimals."""
    if isinstance(row, Failure):
        drawn = _sampled_replies(row.raw)
        known = drawn and f"{len(drawn)} draw" in row.message  # else a reply that happens to be a list
        return ScoreDetail("", "", "", "", "", _replies(drawn if known else [row.raw]), row)
    p = row.provenance
    path, shares = charts.spark(p.distribution, labels) if p.distribution else ("", "")
    drawn = _sampled_replies(p.raw or "") if p.method == "samples" else []
    replies = _replies(drawn or [p.raw or ""])
    return ScoreDetail(number(row.value, places), path, shares, _method_text(p, places), p.reason or "", replies, None)


def _sampled_replies(raw: str) -> list[str]:
    """Return the replies of a score by samples, which are stored as a JSON list; none for any other text."""
    try:
        replies = json.loads(raw) if raw.startswith("[") else []
    except ValueError:
        return []
    return replies if all(isinstance(text, str) for text in replies) else []


def _replies(texts: Sequence[str]) -> Replies:
    return Replies(tuple(Counter(text.strip() for text in texts if text.strip()).most_common()))


def _method_text(p: Provenance, places: int) -> str:
    """Say in a few words how a score was produced."""
    if p.method in ("panel", IDENTICAL):
        return p.note or p.method
    parts = [p.method]
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


Text = tuple[str, str]
"""An item and a system."""


def shares(column: Column, table: Table) -> dict[Text, float]:
    """Return a column's values as shares of its scale (else of their range): 0–1, 1 is the better end."""
    values = {(score.item, score.system): score.value for score in table.column_scores(column.name)}
    low = min(values.values(), default=0.0) if column.low is None else column.low
    high = max(values.values(), default=1.0) if column.high is None else column.high
    span = (high - low) or 1.0
    return {text: (high - v if column.better == "lower" else v - low) / span for text, v in values.items()}


def means(each: Sequence[Mapping[Text, float]]) -> dict[Text, float]:
    """Return each text's mean over the columns, for the texts that have a value in all of them."""
    first, *others = each or [{}]
    texts = [text for text in first if all(text in values for values in others)]
    return {text: sum(values[text] for values in each) / len(each) for text in texts}


def gaps(judged: Mapping[Text, float], measured: Sequence[Score]) -> dict[Text, float]:
    """Return rank by the judge less rank by the metric for the texts that have both, from -1 to 1; ties share ranks."""
    by_metric = {(score.item, score.system): score.value for score in measured}
    both = [text for text in judged if text in by_metric]
    if len(both) < 2:
        return {}
    judge_ranks, metric_ranks = (_ranks([values[text] for text in both]) for values in (judged, by_metric))
    return {text: round(a - b, 3) for text, a, b in zip(both, judge_ranks, metric_ranks, strict=True)}


def _ranks(values: Sequence[float]) -> list[float]:
    """Return mid-ranks between 0 (lowest, if unique) and 1 (highest, if unique)."""
    order = sorted(values)
    last = 2 * (len(order) - 1)
    return [(bisect_left(order, value) + bisect_right(order, value) - 1) / last for value in values]


_MIN_WORDS = 3  # of a copied run
_MIN_CHARACTERS = 6  # of a copied run, if every character of Chinese, Japanese or Korean is a word
_MAX_PLACES = 50  # in the source at which a run is tried
_BY_CHARACTER = ("char", "zh")

Run = tuple[int, int, int, int]
"""Start and length in the output, then in the source, in UTF-16 units of the texts as the page shows them."""


@dataclass(frozen=True, slots=True)
class Words:
    """A text's words, and where each starts and ends in it, in UTF-16 units."""

    words: tuple[str, ...]
    places: tuple[tuple[int, int], ...]

    @classmethod
    def split(cls, text: str, tokenizer: str) -> Words:
        """Split the text, escaped as the page shows it, into the words whose place in it is known."""
        escaped = escape_controls(text)
        lowered = escaped.lower()
        if len(lowered) != len(escaped):
            lowered = "".join(character.lower()[0] for character in escaped)
        placed, end = [], 0
        for word in texts.words(tokenizer)(escaped):
            start = lowered.find(word, end)
            if start >= 0:  # else the tokenizer has changed the word
                end = start + len(word)
                placed.append((word, start, end))
        if any(character > "\uffff" for character in escaped):
            units = [0, *accumulate(1 + (character > "\uffff") for character in escaped)]
            placed = [(word, units[start], units[end]) for word, start, end in placed]
        return cls(tuple(word for word, *_ in placed), tuple((start, end) for _, start, end in placed))

    def span(self, first: int, size: int) -> tuple[int, int]:
        """Return start and length of `size` words from the `first`."""
        start = self.places[first][0]
        return start, self.places[first + size - 1][1] - start


class Source:
    """A source to compare outputs with; `others` are these outputs: the tokenizer has to fit them too."""

    def __init__(self, text: str, others: Sequence[str]) -> None:
        self._tokenizer = texts.tokenizer_for([text, *others])
        self._least = _MIN_CHARACTERS if self._tokenizer in _BY_CHARACTER else _MIN_WORDS
        self._text = Words.split(text, self._tokenizer)
        self._starts = _starts(self._text.words)

    def runs(self, output: str) -> tuple[Run, ...]:
        """Return the runs of at least three words (six characters in text without spaces) that the source has too.

        From left to right, takes the longest run that starts at the current word, and of equally long ones the first in
        the source (Grusky et al. 2018, figure 3).
        """
        mine, theirs = Words.split(output, self._tokenizer), self._text
        runs, index = [], 0
        while index + _MIN_WORDS <= len(mine.words):
            where, size = self._longest(mine.words, index)
            if size >= self._least:
                runs.append((*mine.span(index, size), *theirs.span(where, size)))
            index += size if size >= self._least else 1
        return tuple(runs)

    def _longest(self, words: Sequence[str], at: int) -> tuple[int, int]:
        """Return start and length of the longest run in the source that matches the words from `at`."""
        theirs = self._text.words
        where, most = 0, 0
        for start in self._starts.get((words[at], words[at + 1], words[at + 2]), ())[:_MAX_PLACES]:
            size, room = _MIN_WORDS, min(len(words) - at, len(theirs) - start)
            while size < room and words[at + size] == theirs[start + size]:
                size += 1
            if size > most:
                where, most = start, size
        return where, most


def _starts(words: Sequence[str]) -> Mapping[tuple[str, str, str], Sequence[int]]:
    starts = defaultdict(list)
    for place, three in enumerate(zip(words, words[1:], words[2:], strict=False)):
        starts[three].append(place)
    return dict(starts)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer in one order: the system preferred ("" for a tie), how strongly (0–1), and how it was found."""

    first: str
    preferred: str
    strength: str
    detail: ScoreDetail


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems' texts on one item. `verdicts` are those with the `first` and with the `second` system shown first.

    `value` is the mean preference for the `first` (0–1), "–" if an order lacks its answer.
    """

    first: str
    second: str
    verdicts: tuple[Verdict | None, Verdict | None]
    value: str
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


def compared(
    rows: Sequence[Score | Failure], labels: Mapping[str, str], systems: Sequence[str], orders: int
) -> tuple[Compared, ...]:
    """Group one item's rows by the columns of `labels` and by pair, with both orders of a pair together."""
    place = {system: at for at, system in enumerate(systems)}
    by_column: dict[str, dict[tuple[str, str], list[Score | Failure | None]]] = {column: {} for column in labels}
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
        number(pair_verdict.preference, 2) if pair_verdict and len(answered) >= orders else "–",
        bool(pair_verdict and pair_verdict.flipped),
        any(score.provenance.method == IDENTICAL for score in answered),
    )


def _verdict(first: str, second: str, row: Score | Failure | None) -> Verdict | None:
    if row is None:
        return None
    detail = build_score_detail(row, (), 2)
    if isinstance(row, Failure):
        return Verdict(first, "", "", detail)
    preferred = "" if row.value == TIE else first if row.value > TIE else second
    return Verdict(first, preferred, number(max(row.value, 1 - row.value), 2), detail)


MOST_OUTPUTS = 2000
MOST_PAIRS = 5000


@dataclass(frozen=True, slots=True)
class _ColumnLabel:
    """How the page names a column: its criterion, the judge of a panel, and its place among the columns of texts."""

    name: str
    judge: str
    place: int | None


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding under its criterion; of a panel, `judge` is whose it is, and "" the panel's.

    `place` is its column's among those with a value for each text; None where it is of several.
    """

    name: str
    judge: str
    labels: int
    detail: ScoreDetail
    place: int | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """One system's text with its findings, judgments before metrics. `others` are the further columns judged by.

    `qags` are the questions and answers behind a value of QAGS, `runs` where the text repeats its source.
    """

    sample: Sample
    others: tuple[tuple[str, str], ...]
    judgments: tuple[Judged, ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    qags: tuple[Line, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def human(self) -> str:
        """People's ratings: `coherence 4`."""
        return ", ".join(f"{name} {minus(f'{value:.3g}')}" for name, value in self.sample.human.items())


@dataclass(frozen=True, slots=True)
class Item:
    """One item: its source once, every system's output, and their comparisons.

    `others` are the further columns that a criterion read and that all systems share.
    """

    name: str
    source: str | None
    references: tuple[str, ...]
    others: tuple[tuple[str, str], ...]
    outputs: tuple[Output, ...]
    failed: int
    comparisons: tuple[Compared, ...] = ()

    @property
    def anchor(self) -> str:
        """The item's name as the fragment of an address."""
        return quote(escape_controls(self.name), safe="/:@!$&'()*+,;=?~-._")


def first(samples: Sequence[Sample]) -> frozenset[str]:
    """Return the first items whose outputs together stay within the page's limit."""
    names: set[str] = set()
    outputs = 0
    for name, n_outputs in Counter(sample.item for sample in samples).items():
        outputs += n_outputs
        if outputs > MOST_OUTPUTS and names:
            break
        names.add(name)
    return frozenset(names)


def scored(result: Result, board: Leaderboard) -> Iterator[Item]:
    """Yield the items of a run that scores texts, within the page's limit."""
    rows = {(row.item, row.system, row.column): row for row in result.table.rows()}
    places = {column.name: place for place, column in enumerate(board.of_texts)}
    labels = {
        name: _ColumnLabel(group.name, "" if name == group.name else part, places.get(name))
        for group in board.groups
        for name, part in group.parts.items()
    }
    items = first(result.table.samples)
    for name, samples in _samples_by_item(result).items():
        if name not in items:
            return
        item_rows = {(s.system, c.name): rows.get((name, s.system, c.name)) for s, _ in samples for c in board.columns}
        lost = [row for c in board.columns for s, _ in samples if not abstained(c, row := item_rows[s.system, c.name])]
        yield _item(
            name,
            [_output(sample, others, item_rows, board, labels) for sample, others in samples],
            failed=sum(map(failed, lost)),
        )


def ranked(result: Result, ranking: RankingView) -> Iterator[Item]:
    """Yield the items of a run that compares texts, within the page's limits of outputs and pairs."""
    rows: dict[str, list[Score | Failure]] = {}
    for row in result.table.rows():
        rows.setdefault(row.item, []).append(row)
    labels = {contest.name: contest.label for contest in ranking.contests}
    orders = (result.info.get("plan") or {}).get("orders", 2)
    outputs = pairs = 0
    for name, samples in _samples_by_item(result).items():
        if name not in rows:
            continue
        comparisons = compared(rows[name], labels, [sample.system for sample, _ in samples], orders)
        outputs, first = outputs + len(samples), not outputs
        pairs += sum(len(comparison.pairs) for comparison in comparisons)
        if (outputs > MOST_OUTPUTS or pairs > MOST_PAIRS) and not first:
            return
        yield _item(
            name,
            [Output(sample, others) for sample, others in samples],
            failed=sum(map(failed, rows[name])),
            comparisons=comparisons,
        )


def _samples_by_item(result: Result) -> dict[str, list[tuple[Sample, tuple[tuple[str, str], ...]]]]:
    """Return every item's samples, each with the further data columns that a criterion reads."""
    criteria = (result.info.get("criteria") or {}).values()
    read = {str(name) for criterion in criteria for name in criterion.get("needs") or ()}
    read -= {"source", "output", "reference", "references", "first", "second"}
    by_item: dict[str, list[tuple[Sample, tuple[tuple[str, str], ...]]]] = {}
    for s in result.table.samples:
        others = tuple((name, str(s.extra[name])) for name in sorted(read) if s.extra.get(name) is not None)
        by_item.setdefault(s.item, []).append((s, others))
    return by_item


def _item(name: str, outputs: Sequence[Output], *, failed: int, comparisons: tuple[Compared, ...] = ()) -> Item:
    shared = tuple(pair for pair in outputs[0].others if all(pair in output.others for output in outputs))
    samples = [output.sample for output in outputs]
    source = next((s.source for s in samples if s.source is not None), None)
    # A sample without a source of its own is compared with the item's. Equal sources are indexed only once.
    texts_of_systems = {sample.system: source if sample.source is None else sample.source for sample in samples}
    outputs_of_item = [sample.output for sample in samples]
    indexed = {text: Source(text, outputs_of_item) for text in {*texts_of_systems.values()} if text}
    runs = {
        sample.system: indexed[text].runs(sample.output) if (text := texts_of_systems[sample.system]) else ()
        for sample in samples
    }
    trimmed = [
        replace(output, others=tuple(p for p in output.others if p not in shared), runs=runs[output.sample.system])
        for output in outputs
    ]
    return Item(
        name=name,
        source=source,
        references=next((s.references for s in samples if s.references), ()),
        others=shared,
        outputs=tuple(trimmed),
        failed=failed,
        comparisons=comparisons,
    )


def _output(
    sample: Sample,
    others: tuple[tuple[str, str], ...],
    rows: Mapping[tuple[str, str], Score | Failure | None],
    board: Leaderboard,
    labels: Mapping[str, _ColumnLabel],
) -> Output:
    judgments: list[Judged] = []
    metrics: list[tuple[str, str]] = []
    lacking: dict[tuple[str, str], list[Failure]] = {}
    qags: tuple[Line, ...] = ()
    for column in board.columns:
        row = rows[sample.system, column.name]
        qags = qags or qags_table(column, row)
        if column.kind == "metric" and isinstance(row, Score):
            metrics.append((column.name, number(row.value, board.places[column.name])))
        elif column.kind == "metric" and isinstance(row, Failure):
            lacking.setdefault((row.error, row.message), []).append(row)
        elif row is not None:
            label = labels[column.name]
            detail = build_score_detail(row, column.labels, max(2, board.places[column.name]))
            judgments.append(Judged(label.name, label.judge, len(column.labels) or 5, detail, label.place))
    for failures in lacking.values():  # metrics that failed for the same reason share an entry
        more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
        detail = build_score_detail(replace(failures[0], raw=""), (), 2)
        abstention = replace(detail, abstained=failures[0].error == ABSTAINED)
        judgments.append(Judged(failures[0].column + more, "", 5, abstention))
    return Output(sample, others, tuple(judgments), tuple(metrics), qags)
