"""The report of `judge compare`: which means changed between two runs, by how much, and on which items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from shlex import quote
from typing import Any, Literal

from judge.core.format import (
    escape_controls,
    first_names,
    format_p,
    number,
    one_line,
    plural,
    signed,
)
from judge.core.records import Column as Measured
from judge.core.records import Estimate, Failure
from judge.core.signature import Signature
from judge.report import charts
from judge.report.document import (
    ARROWS,
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Content,
    Details,
    Diff,
    Document,
    Excerpt,
    Excerpts,
    Facts,
    Heading,
    Paragraph,
    Section,
    Table,
    Tone,
    table,
)
from judge.report.format import (
    column_title,
    decimal_places,
    interval_text,
    mean_text,
    score_text,
    share_label,
)
from judge.report.views.columns import change_tone, p_cell
from judge.results.comparison import Change, RunComparison
from judge.stats.analyze import NAME as OVERALL
from judge.stats.bootstrap import MIN_INTERVAL_ITEMS, t_quantile
from judge.stats.power import ALPHA, MIN_ITEMS, Spread
from judge.stats.run_differences import MeanChange, Shift, text_of

SCHEMA = "judge.compare/1"
_MAX_ROWS, _MAX_REMARKS, _MAX_EXCERPTS = 7, 3, 2  # of the summary
_MAX_NAMED = 8  # names of a list
_MAX_PANELS = 4  # columns of the chart
_MAX_NEEDED = 100_000  # items, beyond which a number of needed items helps nobody
_MAX_ITEMS, _MAX_SHIFTS = 20, 5  # items with their texts, and values of each
_MAX_TEXT = 2_000  # characters of a text
_NEAR = 1e-9  # a difference by rounding alone


def view(comparison: RunComparison) -> Document:
    """Make the report of a comparison."""
    remarks = [
        f"{_setting(comparison, change)}: {one_line(change.before, 80)} → {one_line(change.after, 80)}"
        for change in comparison.changes
    ]
    remarks += _not_compared(comparison)
    before, after = (one_line(name, 40) for name in comparison.names)
    others, runs, changes = remarks[_MAX_REMARKS:], comparison.runs, comparison.changes
    failures = f" · {plural(len(runs.appeared), 'new failure')}, {len(runs.vanished):,} gone"
    prompts = [
        block
        for change in changes
        if change.diff
        for block in (
            Heading(_setting(comparison, change)),
            Diff(tuple(map(escape_controls, change.diff))),
        )
    ]
    failures = failures if runs.appeared or runs.vanished else ""
    sections = {
        Section("means", "Means", lambda: mean_blocks(comparison)): runs.means,
        Section("prompts", "Prompts", lambda: prompts): prompts,
        Section("failures", "Failures", lambda: _failure_blocks(comparison)): runs.appeared
        or runs.vanished,
        Section(
            "items", "Items that changed most", lambda: _item_blocks(comparison)
        ): runs.changed_items,
        Section("remarks", "Other differences", lambda: (Bullets(tuple(others)),)): others,
    }
    commands: tuple[str, ...] = ()
    if comparison.names != ("before", "after") and any(
        row.up or row.down for row in runs.means
    ):  # else no folders
        folders = [quote(name) for name in comparison.names]
        power = () if any(row.significant for row in runs.means) else (f"judge plan {folders[1]}",)
        commands = (f"judge compare {' '.join(folders)} --full", *power)
    return Document(
        title=f"{one_line(comparison.names[0])} → {one_line(comparison.names[1])}",
        finding=tuple(finding(comparison)),
        scope=f"{before} → {after} · {plural(runs.items, 'item')}",
        notices=tuple(map(one_line, comparison.notes)),
        summary=(
            *summary_blocks(comparison),
            *([Bullets(tuple(remarks[:_MAX_REMARKS]))] if remarks else []),
        ),
        sections=tuple(section for section, needed in sections.items() if needed),
        footer=(f"{plural(runs.texts, 'text')} in both runs{failures}",),
        next=commands,
        data=data(comparison),
        records=tuple(_records(comparison)),
    )


def summary_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield a short table of the means and the items that changed most."""
    yield from _overview(comparison)
    shifts = [item.shifts[0] for item in comparison.runs.changed_items[:_MAX_EXCERPTS]]
    excerpts = [
        Excerpt(
            _values(comparison, s), one_line(s.system), one_line(s.item), column_title(s.column)
        )
        for s in shifts
    ]
    if excerpts:
        yield Excerpts("Changed", tuple(excerpts))


def data(comparison: RunComparison) -> dict[str, Any]:
    """Return what JSON writes."""
    return {
        "schema": SCHEMA,
        "before": comparison.names[0],
        "after": comparison.names[1],
        "finding": list(finding(comparison)),
        "notes": comparison.notes,
        "changes": comparison.changes,
        **asdict(comparison.runs),
    }


def _records(comparison: RunComparison) -> Iterator[dict[str, Any]]:
    """Yield a record per column and system; an empty system stands for all."""
    for row in comparison.runs.means:
        record, e = asdict(row), row.estimate
        for name in ("estimate", "judge", "system_change", "system_adjusted"):
            del record[name]
        record |= {
            "change": e.value,
            "low": e.low,
            "high": e.high,
            "n": e.n,
            "p": e.p,
            "method": e.method,
            "test": e.test,
        }
        for name, part in (("judge", row.judge), ("system_change", row.system_change)):
            ends = (part.value, part.low, part.high) if part else (None, None, None)
            record |= zip((name, f"{name}_low", f"{name}_high"), ends, strict=True)
        yield {**record, "system_adjusted": row.system_adjusted}


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean with its column and decimals; `several` says whether there are several systems."""

    row: MeanChange
    column: Measured
    places: int
    several: bool

    @property
    def system(self) -> str:
        return one_line(self.row.system) or "all systems"

    @property
    def differs(self) -> bool:
        return bool(self.row.up or self.row.down)

    @property
    def importance(self) -> tuple[int, float]:
        """A key that sorts criteria before the overall score, metrics and single judges, and large changes first."""
        if self.row.column == OVERALL:
            return 1, -self.share
        return 2 if self.column.kind == "metric" else 3 if self.column.judge else 0, -self.share

    @property
    def size(self) -> str:
        """`relevance fell by 0.31 for bart (p = 0.012)`, or `… over all systems` with its interval."""
        e = self.row.estimate
        amount = self._amount(abs(e.value))
        if not self.row.system and e.low is not None and e.high is not None and e.low * e.high > 0:
            low, high = sorted((abs(e.low), abs(e.high)))
            amount += f" {interval_text(self.column, low, high, self.places)}"
        whose = f" for {one_line(self.row.system, 60)}" if self.row.system else " over all systems"
        p = "" if self.row.adjusted is None else f" ({format_p(self.row.adjusted)})"
        verb = "rose" if e.value > 0 else "fell"
        return (
            f"{column_title(self.row.column)} {verb} by {amount}{whose if self.several else ''}{p}"
        )

    def _amount(self, value: float) -> str:
        """Return the size of a change that is not 0: `0.31`, `12 points`, `less than 0.01`."""
        if share_label(self.column):
            return f"{number(100 * value, 0)} points" if value >= 0.005 else "less than 1 point"
        text = self.text(value)
        # A mean that rose by 0.00 did not rise.
        return text if float(text) else f"less than {10**-self.places:.{self.places}f}"

    @property
    def share(self) -> float:
        """The size of the change, as a share of the scale if it has ends."""
        low, high = self.column.low or 0.0, self.column.high or 0.0
        return abs(self.row.estimate.value) / (high - low if high > low else 1.0)

    @property
    def split(self) -> str:
        """`relevance of bart: +0.31, of which the judge +0.27 [0.21, 0.33] and the system +0.04 [−0.03, 0.11]`."""
        whole, judge, system = (
            self.part(self.row.estimate),
            self.part(self.row.judge),
            self.system_change,
        )
        parts = (
            f"the {who} {part.text} {part.note}".rstrip()
            for who, part in (("judge", judge), ("system", system))
        )
        p = self.row.system_adjusted
        tested = "not tested" if p is None else format_p(p)
        name = f"{column_title(self.row.column)} of {one_line(self.row.system, 60)}"
        return f"{name}: {whole.text}, of which {' and '.join(parts)} ({tested})"

    def part(self, e: Estimate | None, *, significant: bool = False) -> Cell:
        """Return a change, or a part of it, with its interval."""
        if e is None:
            return Cell("–")
        text = (
            signed(100 * e.value, 0) if share_label(self.column) else signed(e.value, self.places)
        )
        tone, mark = (change_tone(e.value, self.column.better), "*") if significant else ("", "")
        return Cell(
            text, interval_text(self.column, e.low, e.high, self.places), tone, mark, value=e.value
        )

    def text(self, value: float) -> str:
        return mean_text(self.column, value, self.places)

    @property
    def change(self) -> Cell:
        return self.part(self.row.estimate, significant=self.row.significant)

    @property
    def system_change(self) -> Cell:
        """The change without the judge's part."""
        return self.part(self.row.system_change, significant=self.row.system_changed)


def _is_split(row: MeanChange) -> bool:
    """Whether texts changed and the judge moved, so that the change has two parts."""
    return row.system_change is not None and row.system_change != row.estimate


def _means(comparison: RunComparison) -> list[_Mean]:
    """Return all means, those of the overall score first, then of criteria, metrics and single judges."""
    several = len({row.system for row in comparison.runs.means if row.system}) > 1
    values: dict[str, list[float]] = {}
    for row in comparison.runs.means:
        values.setdefault(row.column, []).extend((row.before, row.after))
    columns = {
        name: comparison.columns.get(name) or Measured(name, "metric", Signature())
        for name in values
    }
    places = {
        name: 3 if name == OVERALL else decimal_places(columns[name], values[name])
        for name in values
    }
    means = [
        _Mean(row, columns[row.column], places[row.column], several)
        for row in comparison.runs.means
    ]
    return sorted(means, key=lambda mean: (mean.row.column != OVERALL, mean.importance[0]))


# The finding


def finding(comparison: RunComparison) -> Iterator[str]:
    """Say which means changed significantly, or which changed most, and whether the judge or the systems did."""
    means = sorted(_means(comparison), key=lambda mean: mean.importance)
    single = [mean for mean in means if mean.row.system]
    changed = [mean for mean in single if mean.differs]
    significant = [mean for mean in changed if mean.row.significant]
    together = [mean for mean in means if not mean.row.system and mean.row.significant]
    together = [mean for mean in together if mean.row.column != OVERALL] or together
    n_means = plural(len(single), "mean")
    if not single:
        yield "No column has values in both runs"
    elif not changed:
        yield f"No score changed: all values of {n_means} are equal"
    elif len(significant) > 2:
        yield f"{len(significant):,} of {n_means} changed significantly; {significant[0].size}"
    elif shown := significant or together[:2]:
        yield " and ".join(mean.size for mean in shown)
    elif not any(mean.row.estimate.value for mean in changed):
        same = "The mean is" if len(single) == 1 else f"All {n_means} are"
        yield f"{same} the same in both runs, although values of texts differ"
    else:
        tested = any(mean.row.adjusted is not None for mean in changed)
        yield (
            f"No significant change in {n_means}"
            if tested
            else f"Too few items to test the changes of {n_means}"
        )
        yield _largest_change(changed)
    if significant and together:
        yield f"{' and '.join(mean.size for mean in together[:2])}."
    judged = [mean for mean in means if mean.differs and mean.column.kind == "criterion"]
    split = [mean for mean in judged if mean.row.system and _is_split(mean.row)]
    if split:
        first = min(split, key=lambda mean: (not mean.row.system_changed, mean.importance))
        n = sum(mean.row.system_changed for mean in split)
        others = (
            f"; without the judge, {n:,} of {len(split):,} changes are significant"
            if len(split) > 1
            else ""
        )
        yield f"{first.split}{others}."
    elif any(mean.row.significant for mean in judged) and _same_texts(comparison):
        yield "All texts are the same in both runs, so the judge changed, not the systems."
    elif any(mean.row.system_change for mean in judged):
        scored, moved = _unchanged_texts(comparison)
        if scored and not moved:
            texts = plural(scored, "unchanged text")
            yield f"The judge did not change: no score of {texts} differs."


def _largest_change(changed: Sequence[_Mean]) -> str:
    """Name the largest change; its kind of column, if another kind changed by a larger share of its scale.

    `changed` has the criteria first, and the largest change of each kind.
    """
    first = next(mean for mean in changed if mean.row.estimate.value)
    of = ""
    if any(mean.share > first.share for mean in changed):
        of = " of the overall score" if first.row.column == OVERALL else " of a criterion"
    tests = sum(mean.row.adjusted is not None for mean in changed)
    needed = _items_needed(first.row.estimate, tests)
    more = "" if needed is None else f" If it is real, detecting it needs about {needed:,} items."
    return f"The largest change{of}: {first.size}.{more}"


def _items_needed(e: Estimate, tests: int) -> int | None:
    """Return the items that the smallest of `tests` p-values needs; None if there are as many, or far too many."""
    if e.low is None or e.high is None or e.n < MIN_ITEMS or e.high <= e.low:
        return None
    half = (e.high - e.low) / 2
    sd = half * sqrt(e.n) / t_quantile(ALPHA / 2, e.n - 1)
    needed = Spread(e.n, e.value, sd, ALPHA / tests).needed()
    return needed if needed is not None and e.n < needed <= _MAX_NEEDED else None


def _same_texts(comparison: RunComparison) -> bool:
    """Whether nothing that a criterion can read differs in the texts of both runs, the data's own columns included."""
    if comparison.runs.edited:
        return False
    before = {sample.key: sample.extra for sample in comparison.before.table.samples}
    after = comparison.after.table.samples
    return all(before[sample.key] == sample.extra for sample in after if sample.key in before)


def _unchanged_texts(comparison: RunComparison) -> tuple[int, int]:
    """Return how many texts that are the same in both runs have scores in both, and how many of these scores differ."""
    first, second = comparison.before.table, comparison.after.table
    before = {sample.key: text_of(sample) for sample in first.samples}
    same = {s.key for s in second.samples if before.get(s.key) == text_of(s)}
    judged = {column.name for column in first.columns if column.kind == "criterion"}
    judged -= dict(comparison.runs.incomparable).keys()
    scored: set[tuple[str, str]] = set()
    moved = 0
    for column in second.columns:
        if column.name not in judged:
            continue
        values = {(row.key, row.rival): row.value for row in first.column_scores(column.name)}
        for row in second.column_scores(column.name):
            if row.key in same and (row.key, row.rival) in values:
                scored.add(row.key)
                moved += abs(row.value - values[row.key, row.rival]) > _NEAR
    return len(scored), moved


# Means


def _overview(comparison: RunComparison) -> Iterator[Block]:
    """Yield a table of the means after with their changes: a row per system, a column per changed column."""
    means = _means(comparison)
    changed = {mean.row.column: mean.column.better for mean in means if mean.differs}
    if not changed:
        return
    cells = {
        (mean.system, mean.row.column): replace(
            mean.change,
            text=mean.text(mean.row.after) + f" {mean.change.text}" * mean.differs,
            note="",
        )
        for mean in means
    }
    # All systems together come first, then those that changed most.
    largest = sorted(means, key=lambda mean: (bool(mean.row.system), mean.importance))
    systems = list(dict.fromkeys(mean.system for mean in largest if mean.row.column in changed))
    more = len(systems) - _MAX_ROWS
    key = (
        "mean after, and its change",
        "* significant" if any(cell.mark for cell in cells.values()) else "",
        f"{plural(more, 'system')} with smaller changes" if more > 0 else "",
    )
    yield table(
        ("", *(Column(column_title(name), better=better) for name, better in changed.items())),
        [
            (system, *(cells.get((system, name)) for name in changed))
            for system in systems[:_MAX_ROWS]
        ],
        caption="Changes of the means.",
        key=" · ".join(filter(None, key)),
        name="changes",
        short=True,
    )


def mean_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield the chart of the changes, and a table of the columns in which any value differs."""
    columns: dict[str, list[_Mean]] = {}
    for mean in _means(comparison):
        columns.setdefault(mean.row.column, []).append(mean)
    changed = {
        name: means for name, means in columns.items() if any(mean.differs for mean in means)
    }
    if changed:
        yield _chart(list(changed.values())[:_MAX_PANELS])
        yield _mean_table(
            [mean for means in changed.values() for mean in means], comparison.runs.anchors
        )
    if equal := [column_title(name) for name in columns if name not in changed]:
        yield Paragraph(f"No value differs in {_listed(equal)}.")


def _mean_table(means: Sequence[_Mean], anchors: int) -> Table:
    # Intervals of different columns may use different methods: name the most common one.
    methods = Counter(
        mean.row.estimate.described for mean in means if mean.row.estimate.low is not None
    )
    interval = f" [low, high]: {methods.most_common(1)[0][0]}." if methods else ""
    rows: list[tuple[Content, ...]] = []
    for mean in means:
        row = mean.row
        tested = row.estimate.p is not None or row.estimate.n == 1
        rows.append(
            (
                column_title(row.column) + ARROWS[mean.column.better],
                mean.system,
                Cell(mean.text(row.before), value=row.before),
                Cell(mean.text(row.after), value=row.after),
                mean.change,
                Cell(p_cell(row.adjusted), value=row.adjusted),
                *(
                    (
                        mean.part(row.judge),
                        mean.system_change,
                        Cell(p_cell(row.system_adjusted), value=row.system_adjusted),
                    )
                    if _is_split(row)
                    else (None, None, None)
                ),
                *((row.up, row.same, row.down) if tested else (None, None, None)),
            )
        )
    about = (
        f"Judge's part: the change of scores of {plural(anchors, 'item')} with the same text in both runs (those of "
        "the system if there are five), assumed to be the same for the changed texts."
    )
    parts = (
        Column("judge's part", optional=True, about=about),
        Column("system's part", optional=True),
    )
    texts = (Column(head, group="texts") for head in ("↑", "=", "↓"))
    heads = (
        Column("system", numeric=False),
        "before",
        "after",
        "change",
        "p",
        *parts,
        Column("its p", optional=True),
    )
    return table(
        ("column", *heads, *texts),
        rows,
        caption=f"Means before and after, over the items of both runs.{interval}",
        key="* p < .05 after Holm's correction. Texts whose value rose, stayed and fell.",
        name="means",
    )


def _chart(columns: Sequence[Sequence[_Mean]]) -> Chart:
    """Draw the changes of the columns with their intervals."""
    systems = list(dict.fromkeys(mean.system for means in columns for mean in means))
    tones: dict[Tone, Literal["best", "worse"]] = {"good": "best", "bad": "worse"}
    panels = []
    for means in columns:
        bars = {}
        for mean in means:
            e, change = mean.row.estimate, mean.change
            bars[mean.system] = charts.Bar(
                e.value, e.low, e.high, change.text, tone=tones.get(change.tone, "")
            )
        axis = charts.around(
            end
            for bar in bars.values()
            for end in (bar.value, bar.low, bar.high)
            if end is not None
        )
        panels.append(
            charts.Panel(axis, [bars.get(s) for s in systems], column_title(means[0].row.column))
        )
    caption = "Change of the mean, after minus before, with 95% intervals."
    return replace(
        charts.intervals("changes", "Changes", systems, panels, caption=caption), tabled=True
    )


# Settings, failures, items and what is not compared


def _setting(comparison: RunComparison, change: Change) -> str:
    """Return the name of a setting, with its columns unless it is one of all criteria: `prompt of relevance`."""
    criteria = {name for name, column in comparison.columns.items() if column.kind == "criterion"}
    if not change.columns or (len(criteria) > 1 and criteria == set(change.columns)):
        return change.what
    return f"{change.what} of {_listed(map(one_line, change.columns))}"


def _failure_blocks(comparison: RunComparison) -> Iterator[Block]:
    kinds: dict[tuple[str, str], list[Failure]] = {}
    for state, failures in (("new", comparison.runs.appeared), ("gone", comparison.runs.vanished)):
        for row in failures:
            kinds.setdefault((state, row.error), []).append(row)
    rows: list[tuple[Content, ...]] = []
    for (state, error), same in kinds.items():
        place = f"{one_line(same[0].item or 'all texts', 80)}, {one_line(same[0].system, 80)}"
        columns = _listed(dict.fromkeys(one_line(row.column) for row in same))
        rows.append(
            (
                f"{state} {one_line(error)}",
                len(same),
                columns,
                f"{place}: {one_line(same[0].message, 200)}",
            )
        )
    heads = [
        Column(head, numeric=head == "count") for head in ("failure", "count", "columns", "example")
    ]
    yield table(heads, rows, caption="Failures of one run only.", name="failures")


def _item_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield the items that changed most, with the judge's words before and after."""
    keys = {_key(shift) for item in comparison.runs.changed_items for shift in item.shifts}
    words = [
        {
            key: (score.provenance.reason or score.provenance.raw or "")[:_MAX_TEXT]
            for score in result.table.scores
            if (key := (score.item, score.system, score.column)) in keys
        }
        for result in (comparison.before, comparison.after)
    ]
    outputs = {s.key: s.output for s in comparison.after.table.samples}
    for item in comparison.runs.changed_items[:_MAX_ITEMS]:
        blocks: list[Block] = []
        shown: set[str] = set()  # systems whose text is above
        for shift in item.shifts[:_MAX_SHIFTS]:
            before, after = (side.get(_key(shift), "") for side in words)
            facts = (
                [("judge", after)]
                if before == after
                else [("judge before", before), ("judge after", after)]
            )
            if shift.system not in shown:
                facts.append(("text", outputs.get((shift.item, shift.system), "")[:_MAX_TEXT]))
            shown.add(shift.system)
            blocks.append(Paragraph(_shift_text(comparison, shift), tone="strong"))
            blocks.append(Facts(tuple((name, one_line(text)) for name, text in facts if text)))
        first = _shift_text(comparison, item.shifts[0])
        yield Details(
            f"{one_line(item.item, 80)} ({100 * item.size:.0f}% of the scale): {first}",
            tuple(blocks),
        )


def _key(shift: Shift) -> tuple[str, str, str]:
    return shift.item, shift.system, shift.column


def _shift_text(comparison: RunComparison, shift: Shift) -> str:
    return f"{one_line(shift.system, 80)} {column_title(shift.column)} {_values(comparison, shift)}"


def _values(comparison: RunComparison, shift: Shift) -> str:
    column = comparison.columns.get(shift.column) or Measured(shift.column, "metric", Signature())
    places = decimal_places(column, [shift.before, shift.after])
    return " → ".join(score_text(column, value, places) for value in (shift.before, shift.after))


def _not_compared(comparison: RunComparison) -> Iterator[str]:
    """Say which columns, systems and texts are not compared."""
    runs, before, after = comparison.runs, comparison.before.table, comparison.after.table
    columns_by_systems: dict[tuple[str, ...], list[str]] = {}
    for column in before.columns:
        scored = {row.system for row in runs.means if row.column == column.name}
        missing = tuple(
            name for name in before.systems if name in after.systems and name not in scored
        )
        if (
            missing
            and column.name in comparison.columns
            and column.name not in dict(runs.incomparable)
        ):
            columns_by_systems.setdefault(missing, []).append(one_line(column.name))
    for missing, columns in columns_by_systems.items():
        yield f"No text of {_listed(map(one_line, missing))} has a value in both runs for {_listed(columns)}."
    for name, reason in runs.incomparable:
        yield f"{one_line(name)} is not compared: {reason}."
    for name, only in zip(comparison.names, runs.only, strict=True):
        for kind, names in (
            ("item", only.items),
            ("system", only.systems),
            ("column", only.columns),
        ):
            if names:
                listed = _listed(one_line(n, 80) for n in names)
                yield f"Only in {one_line(name)}: {plural(len(names), kind)} ({listed})."
    if runs.edited:
        yield f"Output, source or references differ in {plural(runs.edited, 'text')} of both runs."
    unsplit = [
        row.system
        for row in runs.means
        if row.judge is None and row.system and row.column in comparison.columns
        if comparison.columns[row.column].kind == "criterion"
    ]
    if runs.edited and unsplit:
        yield (
            f"Judge and system cannot be separated for {_listed(dict.fromkeys(map(one_line, unsplit)))}: "
            f"{plural(runs.anchors, 'item')} with a text that is the same in both runs, of {MIN_INTERVAL_ITEMS} needed."
        )
    first, second = runs.unanswered
    if first or second:
        yield f"Not requested in the second run: {plural(first, 'value')}; in the first: {second:,}."


def _listed(names: Iterable[str]) -> str:
    return first_names(names, _MAX_NAMED)
