"""The layout of a judge card that all formats share: matrices of perturbations by criteria, biases, label use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.audits.build_card import detects_damage
from judge.audits.card import (
    DETECTED,
    FEWEST,
    TESTABLE,
    BiasFinding,
    JudgeCard,
    SensitivityCell,
    change,
    interval,
    is_majority,
    percents,
    places,
    share_percent,
)
from judge.audits.probes import FIRST, LABEL
from judge.audits.sensitivity import is_significant
from judge.core.format import minus, number, one_line, plural, signed
from judge.core.records import Column
from judge.report import charts
from judge.report.views.columns import p_cell
from judge.stats.pairwise import TIE

SEEN, UNSEEN = "●", "○"
"""Before a cell of the criterion's own damage: at least half of the texts fall significantly, or not."""
TOLD, OPEN = "≠", "?"
"""After a number: significant; or so in half of the texts or more, of which there are too few to test."""
LEGEND = (
    f"In each cell the share of the texts whose score fell (after an attack, rose) by {100 * DETECTED:g}% of the scale "
    "or more, half a step from 1 to 5, of those that could; then the mean change of all of them, in points of the "
    "scale. “Against” is the share that moved as far the other way: a judge whose replies vary moves both ways, and "
    f"what it notices is the difference. {TOLD}: significant, p below .05 by a sign-flip test after Holm's correction "
    f"over the table. {OPEN}: not so, of fewer than {TESTABLE} texts, but shown for half of them or more "
    f"by the share's interval. [low, high]: "
    f"95%, shares by Wilson's score, means by a bootstrap over items, from {FEWEST} items on."
)
OWN = (
    f"Its own damage: {SEEN} shown by the low end of the share's interval that half of the texts or more notice it "
    f"(those that fell less those that rose), and the mean's fall is significant (not asked of fewer than {TESTABLE} "
    f"texts); {UNSEEN} not shown. Others should be near 0."
)
ATTACKED = "Attacks are measured from the same text with the {control} in their place, that one from the text as it is."
_BIASES = (
    f"{TOLD}: significant, p below .05 after Holm's correction over all of these; only that, or {OPEN}, makes a "
    f"sentence above. {OPEN}: not significant, of fewer than {TESTABLE} items, but so in half of them or "
    f"more. Flip: the verdict on two texts is "
    "another when they change places, or when the judge's replies vary (see repeats). sd: standard deviation, its root "
    "mean square over the texts. Entropy: 0% where one label gets all texts, 100% where "
    "all labels get as many. Wordings b and c: the same criterion in two other versions of the prompt around it."
)
_PLAIN = {"share", "points", "points per doubling"}  # units that need no name
_SHARES = charts.Axis(0, 1, (charts.Tick(0, "0%"), charts.Tick(50, "50%"), charts.Tick(100, "100%")))
_CORRELATIONS = charts.even(-1, 1, 1)
_PROBES = ("position", "verbosity", "self-preference", "extractiveness", "wording", "scale use", "repeats")


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A change by a criterion. `text` and `interval` are the rate, `move` and `span` the mean change in the score.

    `side` is the colour of what moved (`lost` fell, `won` rose), `shade` how much of it, in per cent; `title` has all
    of it in words.
    """

    mark: str
    text: str
    interval: str
    move: str
    span: str
    significance: str
    side: str
    shade: int
    title: str
    against: str = ""

    @property
    def own_damage(self) -> bool:
        return bool(self.mark)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Perturbations by criteria, None for a pair that was not judged; `caption` explains the marks."""

    title: str
    criteria: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ShownCell | None, ...]], ...]
    caption: str


@dataclass(frozen=True, slots=True)
class Detail:
    """A cell in numbers, shown below the matrix."""

    criterion: str
    change: str
    mark: str
    rate: str
    move: str
    p: str
    n: str
    failed: str
    against: str


@dataclass(frozen=True, slots=True)
class Row:
    """One bias of one criterion."""

    criterion: str
    value: str
    interval: str
    p: str
    n: str
    mark: str
    remark: str
    bar: charts.Bar


@dataclass(frozen=True, slots=True)
class Group:
    """One measure of a probe for all criteria, on one axis."""

    measure: str
    axis: charts.Axis
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Bias:
    """The findings of one probe."""

    probe: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """How one criterion's labels are used."""

    criterion: str
    bins: tuple[charts.Bin, ...]

    @property
    def shares(self) -> str:
        return " · ".join(f"{bin.label} {bin.count}%" for bin in self.bins)


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that is shown, in display order."""

    title: str
    verdicts: tuple[str, ...]
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sensitivity: Matrix | None
    own_damage: tuple[Detail, ...]
    injection: Matrix | None
    attacks: tuple[Detail, ...]
    biases: tuple[Bias, ...]
    use: tuple[Use, ...]
    left_out: tuple[tuple[str, str], ...]
    failures: tuple[tuple[str, str], ...]
    legend: str
    biases_legend: str


def layout(card: JudgeCard) -> Layout:
    """Lay out a card."""
    columns = {
        name: Column(
            name, "criterion", "", criterion.get("low"), criterion.get("high"), better=criterion.get("better", "higher")
        )
        for name, criterion in (card.info.get("criteria") or {}).items()
    }
    controls = [cell.change for cell in card.attacks if cell.control]
    attack_caption = ATTACKED.format(control=one_line(controls[0])) if controls else ""
    label_use: list[BiasFinding] = []
    biases: list[BiasFinding] = []
    for finding in card.findings:
        is_label_use = finding.probe == "scale use" and finding.what.startswith(LABEL)
        (label_use if is_label_use else biases).append(finding)
    info, texts = card.info, card.info.get("texts") or 0
    data = info.get("data") or {}
    digest = f", SHA-256 {data['sha256'][:16]}" if data.get("sha256") else ""
    changed = sum((info.get("texts_by_change") or {}).values()) - texts
    failed = f", {info['failed']:,} without a score" if info.get("failed") else ""
    spent = info.get("spent") or {}
    usd = "no price known" if spent.get("usd") is None else f"${number(spent['usd'], 4)}"
    facts = {
        "Judge": " at ".join(filter(None, [info.get("model"), info.get("endpoint")])),
        "Date": info.get("date"),
        "Data": f"{data.get('name') or 'given in Python'}{digest}" if data else "",
        "Probes": ", ".join(info.get("probes") or ()),
        "Texts": texts and f"{plural(texts, 'text')}, {plural(changed, 'changed one')}",
        "Judgments": info.get("judgments") and f"{info['judgments']:,}{failed}",
        "Language": info.get("language"),
        **{name.capitalize(): str(value) for name, value in (info.get("settings") or {}).items()},
        **{f"Criterion {name}": _criterion_fact(criterion) for name, criterion in (info.get("criteria") or {}).items()},
        "Spent": spent.get("requests") and f"{plural(spent['requests'], 'request')}, {spent['tokens']:,} tokens, {usd}",
        "Made by": info.get("version") and f"judge {info['version']}, seed {info.get('seed', 0)}",
    }
    return Layout(
        title=one_line(card.title),
        verdicts=tuple(map(one_line, card.verdicts)),
        notes=tuple(map(one_line, card.notes)),
        facts=tuple((one_line(name), one_line(str(value))) for name, value in facts.items() if value),
        sensitivity=_matrix("Sensitivity", card.cells, columns, OWN),
        own_damage=tuple(_detail(cell, columns) for cell in card.cells if cell.own),
        injection=_matrix("Injection", card.attacks, columns, attack_caption),
        attacks=tuple(_detail(cell, columns) for cell in card.attacks),
        biases=tuple(_biases(biases, columns)),
        use=tuple(_label_use(label_use)),
        left_out=tuple((one_line(name), one_line(why)) for name, why in card.left_out.items()),
        failures=tuple((one_line(name), f"{n:,}") for name, n in card.failures.items()),
        legend=LEGEND,
        biases_legend=_BIASES,
    )


def _criterion_fact(criterion: Mapping[str, Any]) -> str:
    labels = criterion.get("labels") or []
    ends = (
        ""
        if criterion.get("low") is None or criterion.get("high") is None
        else minus(f"{criterion['low']:g}") + " to " + minus(f"{criterion['high']:g}")
    )
    scale = f"labels {', '.join(map(one_line, labels))}" if labels else ends and f"scale {ends}"
    prompt = f"prompt {one_line(str(criterion['digest']))[:16]}" if criterion.get("digest") else ""
    reply = f"reply {one_line(str(criterion['reply']))}" if criterion.get("reply") else ""
    return ", ".join(filter(None, [scale, reply, prompt]))


# Matrices


def _matrix(title: str, cells: Sequence[SensitivityCell], columns: Mapping[str, Column], caption: str) -> Matrix | None:
    if not cells:
        return None
    criteria = list(dict.fromkeys(cell.criterion for cell in cells))
    known = {(cell.change, cell.criterion): _cell(cell, columns.get(cell.criterion)) for cell in cells}
    rows = [
        (name, tuple(known.get((name, criterion)) for criterion in criteria))
        for name in dict.fromkeys(c.change for c in cells)
    ]
    return Matrix(title, tuple(map(one_line, criteria)), tuple((one_line(name), row) for name, row in rows), caption)


def _cell(cell: SensitivityCell, column: Column | None) -> ShownCell:
    rate, move = cell.rate, cell.move
    digits = places(column, [move.value] if move else [])
    mark = (SEEN if detects_damage(cell) else UNSEEN) if cell.own else ""
    significance = _mark(cell)
    detail = _detail(cell, {cell.criterion: column} if column else {})
    title = (
        f"{one_line(cell.change)}, {one_line(cell.criterion)}: {detail.rate}, against {detail.against}; {detail.move}"
    )
    title += f", p (Holm) {detail.p}"
    return ShownCell(
        mark,
        f"{number(100 * rate.value, 0)}%" if rate else "–",
        percents(rate) if rate else "",
        signed(move.value, digits) if move else "–",
        interval(move, digits) if move else "",
        significance,
        ("won" if move.value > 0 else "lost") if move and significance else "",
        round(60 * rate.value) if rate else 0,
        f"{title}, {plural(move.n if move else 0, 'text')}{f', {cell.failed:,} failed' if cell.failed else ''}",
        f"{number(100 * cell.against.value, 0)}%" if cell.against else "",
    )


def _mark(cell: SensitivityCell) -> str:
    if cell.move is None:
        return ""
    return (
        TOLD
        if is_significant(cell.move)
        else OPEN
        if is_majority(cell.rate, cell.move) or is_majority(cell.against, cell.move)
        else ""
    )


def _detail(cell: SensitivityCell, columns: Mapping[str, Column]) -> Detail:
    rate, move = cell.rate, cell.move
    digits = places(columns.get(cell.criterion), [move.value] if move else [])
    return Detail(
        one_line(cell.criterion),
        one_line(cell.change),
        (SEEN if detects_damage(cell) else UNSEEN) if cell.own else "",
        share_percent(rate) if rate else "–",
        f"{change(move, digits)}{_mark(cell)}" if move else "–",
        p_cell(move.p if move else None),
        f"{move.n:,}" if move else "0",
        f"{cell.failed:,}",
        share_percent(cell.against) if cell.against else "–",
    )


# Biases


def _biases(findings: Sequence[BiasFinding], columns: Mapping[str, Column]) -> Iterator[Bias]:
    by_probe: dict[str, dict[str, list[BiasFinding]]] = defaultdict(lambda: defaultdict(list))
    for finding in findings:
        by_probe[finding.probe][finding.what].append(finding)
    for probe in sorted(by_probe, key=lambda name: _PROBES.index(name) if name in _PROBES else len(_PROBES)):
        by_measure = by_probe[probe]
        # The findings in points share a symmetric axis: to their largest absolute end, at most the length of the scale.
        in_probe = [finding for same_measure in by_measure.values() for finding in same_measure]
        estimates = [finding.estimate for finding in in_probe if finding.unit not in {"share", "r"}]
        ends = [abs(end) for e in estimates for end in (e.value, e.low, e.high) if end is not None]
        furthest = max(ends, default=0.0)
        limit = next((step for step in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if step >= furthest), furthest)
        scales = [columns.get(finding.criterion) for finding in in_probe]
        spans = [c.high - c.low if c and c.high is not None and c.low is not None else limit for c in scales]
        limit = max(furthest, min(limit, max(spans, default=limit)))
        points = charts.even(-limit, limit, limit)
        groups = []
        for same_measure in by_measure.values():
            first = same_measure[0]
            measure = one_line(first.what) + (f" ({one_line(first.unit)})" if first.unit not in _PLAIN else "")
            axis = {"share": _SHARES, "r": _CORRELATIONS}.get(first.unit, points)
            rows = [_row(finding, columns.get(finding.criterion), measure, axis) for finding in same_measure]
            groups.append(Group(measure, axis, tuple(rows)))
        yield Bias(one_line(probe), tuple(groups))


def _row(finding: BiasFinding, column: Column | None, measure: str, axis: charts.Axis) -> Row:
    estimate, name = finding.estimate, one_line(finding.criterion)
    digits = 2 if finding.unit == "r" else places(column, [estimate.value])
    if finding.unit == "share":
        value, beside = f"{number(100 * estimate.value, 0)}%", percents(estimate)
    else:
        write = number if finding.unit == "sd" else signed
        value, beside = write(estimate.value, digits), interval(estimate, digits)
    bar = charts.bar(axis, estimate, f"{name}, {measure}: {value} {beside}".rstrip())
    if finding.what == FIRST:  # no preference is one half
        half = axis.at(TIE)
        bar = replace(bar, left=min(half, bar.mean), width=round(abs(bar.mean - half), 2))
    mark = TOLD if finding.told else OPEN if finding.open else ""
    n = plural(estimate.n, finding.of.removesuffix("s"))
    return Row(name, value, beside, p_cell(estimate.p), n, mark, one_line(finding.said), bar)


def _label_use(findings: Sequence[BiasFinding]) -> Iterator[Use]:
    by_criterion = defaultdict[str, list[BiasFinding]](list)
    for finding in findings:
        by_criterion[finding.criterion].append(finding)
    for name, label_findings in by_criterion.items():
        tallest = max(finding.estimate.value for finding in label_findings) or 1.0
        bins = [
            charts.Bin(
                one_line(finding.what.removeprefix(LABEL)),
                round(100 * finding.estimate.value),
                round(100 * finding.estimate.value / tallest, 1),
                f"{one_line(finding.what.removeprefix(LABEL))}: {share_percent(finding.estimate)}",
            )
            for finding in label_findings
        ]
        yield Use(one_line(name), tuple(bins))
