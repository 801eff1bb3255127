"""A card as every format shows it: matrices of changes by criteria, biases in rows, what was left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.audits.card import DETECTED, Card, Cell, Finding
from judge.audits.drafts import is_told
from judge.audits.habits import LABEL
from judge.audits.verdicts import noticed
from judge.audits.words import change, percent, percents, places
from judge.records import Column, Estimate
from judge.report import chart
from judge.report.words import count, line, number, signed, span

SEEN, UNSEEN = "●", "○"
"""Before a cell of the criterion's own damage: shown to fall in half of the texts or more; or not."""
TOLD = "≠"
HOW = (
    f"In each cell the share of the texts whose score fell (after an attack, rose) by {100 * DETECTED:g}% of the scale "
    "or more, half a step from 1 to 5, of those that could; then the mean change of all of them, in points of the "
    f"scale. {TOLD}: told apart from 0, p below .05 by a sign-flip test after Holm's correction over the table. [low, "
    "high]: 95%, shares by Wilson's score, means by a bootstrap over items. A judge whose replies vary moves now and "
    "then without any change: compare the repeats."
)
OWN = f"Its own damage: {SEEN} shown to be noticed in half of the texts or more, {UNSEEN} not. Others should be near 0."
_BIASES = f"{TOLD}: told apart from no bias, p below .05 after Holm's correction over all of these, or by the interval."
_PLAIN = {"share", "points", "points per doubling"}  # units that need no name
_SHARES = chart.Axis(0, 1, (chart.Tick(0, "0%"), chart.Tick(50, "50%"), chart.Tick(100, "100%")))
_CORRELATIONS = chart.even(-1, 1, 1)
_PROBES = ("position", "verbosity", "self-preference", "extractiveness", "wording", "scale use", "repeats")


@dataclass(frozen=True, slots=True)
class Shown:
    """A change by a criterion. `text` and `interval` are the rate, `move` and `span` the mean change in the score.

    `side` is the colour of what moved (`lost` fell, `won` rose), `shade` how much of it, in per cent; `title` has all
    of it in words.
    """

    mark: str
    text: str
    interval: str
    move: str
    span: str
    told: str
    side: str
    shade: int
    title: str

    @property
    def own(self) -> bool:
        return bool(self.mark)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Changes by criteria; None where a criterion was not asked about a change. `told` says what the marks mean."""

    title: str
    criteria: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Shown | None, ...]], ...]
    told: str


@dataclass(frozen=True, slots=True)
class Detail:
    """A cell in numbers, for below the matrix."""

    criterion: str
    change: str
    mark: str
    rate: str
    move: str
    p: str
    n: str
    failed: str


@dataclass(frozen=True, slots=True)
class Row:
    """A finding."""

    criterion: str
    value: str
    interval: str
    p: str
    n: str
    mark: str
    said: str
    bar: chart.Bar


@dataclass(frozen=True, slots=True)
class Group:
    """One number of all criteria, on one axis."""

    what: str
    axis: chart.Axis
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Bias:
    """What was found by one probe."""

    probe: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """How one criterion's labels are used."""

    criterion: str
    bins: tuple[chart.Bin, ...]

    @property
    def told(self) -> str:
        return " · ".join(f"{one.label} {one.count}%" for one in self.bins)


@dataclass(frozen=True, slots=True)
class Layout:
    """All that there is to show, in the order in which it is shown."""

    title: str
    told: tuple[str, ...]
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    sensitivity: Matrix | None
    own: tuple[Detail, ...]
    injection: Matrix | None
    attacks: tuple[Detail, ...]
    biases: tuple[Bias, ...]
    use: tuple[Use, ...]
    left_out: tuple[tuple[str, str], ...]
    failures: tuple[tuple[str, str], ...]
    how: str
    biases_how: str


def layout(card: Card) -> Layout:
    """Lay a card out."""
    columns = _columns(card)
    own = [cell for cell in card.cells if cell.own]
    findings = [one for one in card.findings if not _of_label(one)]
    return Layout(
        title=line(card.title),
        told=tuple(map(line, card.verdicts)),
        notes=tuple(map(line, card.notes)),
        facts=tuple(_facts(card)),
        sensitivity=_matrix("Sensitivity", card.cells, columns, OWN),
        own=tuple(_detail(cell, columns) for cell in own),
        injection=_matrix("Injection", card.attacks, columns, ""),
        attacks=tuple(_detail(cell, columns) for cell in card.attacks),
        biases=tuple(_biases(findings, columns)),
        use=tuple(_uses(card.findings)),
        left_out=tuple((line(name), line(why)) for name, why in card.left_out.items()),
        failures=tuple((line(name), f"{n:,}") for name, n in card.failures.items()),
        how=HOW,
        biases_how=_BIASES,
    )


def _columns(card: Card) -> dict[str, Column]:
    """What is known of the criteria's scales."""
    known = card.info.get("criteria") or {}
    return {
        name: Column(name, "criterion", "", one.get("low"), one.get("high"), better=one.get("better", "higher"))
        for name, one in known.items()
    }


def _facts(card: Card) -> Iterator[tuple[str, str]]:
    info = card.info
    if model := info.get("model"):
        yield "Judge", line(str(model))
    if texts := info.get("texts"):
        changed = sum((info.get("texts_by_change") or {}).values()) - texts
        yield "Texts", f"{count(texts, 'text')}, {count(changed, 'changed one')}"
    if judgments := info.get("judgments"):
        yield "Judgments", f"{judgments:,}" + (f", {info['failed']:,} without a score" if info.get("failed") else "")
    if language := info.get("language"):
        yield "Language", line(str(language))
    if version := info.get("version"):
        yield "Made by", f"judge {line(str(version))}, seed {info.get('seed', 0)}"


# Matrices


def _matrix(title: str, cells: Sequence[Cell], columns: Mapping[str, Column], told: str) -> Matrix | None:
    if not cells:
        return None
    criteria = list(dict.fromkeys(cell.criterion for cell in cells))
    known = {(cell.change, cell.criterion): _shown(cell, columns.get(cell.criterion)) for cell in cells}
    rows = [
        (name, tuple(known.get((name, one)) for one in criteria)) for name in dict.fromkeys(c.change for c in cells)
    ]
    return Matrix(title, tuple(map(line, criteria)), tuple((line(name), row) for name, row in rows), told)


def _shown(cell: Cell, column: Column | None) -> Shown:
    rate, move = cell.rate, cell.move
    digits = places(column, [move.value] if move else [])
    mark = (SEEN if noticed(cell) else UNSEEN) if cell.own else ""
    told = TOLD if move and is_told(move) else ""
    detail = _detail(cell, {cell.criterion: column} if column else {})
    title = f"{line(cell.change)}, {line(cell.criterion)}: {detail.rate}; {detail.move}, p {detail.p}"
    return Shown(
        mark,
        f"{number(100 * rate.value, 0)}%" if rate else "–",
        percents(rate) if rate else "",
        signed(move.value, digits) if move else "–",
        span(move.low, move.high, digits) if move else "",
        told,
        ("won" if move.value > 0 else "lost") if move and told else "",
        round(60 * rate.value) if rate else 0,
        f"{title}, {count(move.n if move else 0, 'text')}{f', {cell.failed:,} failed' if cell.failed else ''}",
    )


def _detail(cell: Cell, columns: Mapping[str, Column]) -> Detail:
    rate, move = cell.rate, cell.move
    digits = places(columns.get(cell.criterion), [move.value] if move else [])
    return Detail(
        line(cell.criterion),
        line(cell.change),
        (SEEN if noticed(cell) else UNSEEN) if cell.own else "",
        percent(rate) if rate else "–",
        f"{change(move, digits)}{TOLD if is_told(move) else ''}" if move else "–",
        _p(move) if move else "–",
        f"{move.n:,}" if move else "0",
        f"{cell.failed:,}",
    )


def _p(found: Estimate) -> str:
    return "–" if found.p is None else "<.001" if found.p < 0.001 else number(found.p, 3).removeprefix("0")


# Biases


def _biases(findings: Sequence[Finding], columns: Mapping[str, Column]) -> Iterator[Bias]:
    by_probe: dict[str, dict[str, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for one in findings:
        by_probe[one.probe][one.what].append(one)
    for probe in sorted(by_probe, key=lambda name: _PROBES.index(name) if name in _PROBES else len(_PROBES)):
        points = _points([one for found in by_probe[probe].values() for one in found])
        yield Bias(line(probe), tuple(_group(found, columns, points) for found in by_probe[probe].values()))


def _points(found: Sequence[Finding]) -> chart.Axis:
    """The same to either side of 0, and as far as the furthest end of all that is in points."""
    estimates = [one.estimate for one in found if one.unit not in {"share", "r"}]
    most = max((abs(end) for e in estimates for end in (e.value, e.low, e.high) if end is not None), default=0.0)
    far = next((far for far in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0) if far >= most), most)
    return chart.even(-far, far, far)


def _group(found: Sequence[Finding], columns: Mapping[str, Column], points: chart.Axis) -> Group:
    first = found[0]
    what = line(first.what) + (f" ({line(first.unit)})" if first.unit not in _PLAIN else "")
    along = {"share": _SHARES, "r": _CORRELATIONS}.get(first.unit, points)
    return Group(what, along, tuple(_row(one, columns.get(one.criterion), what, along) for one in found))


def _row(one: Finding, column: Column | None, what: str, along: chart.Axis) -> Row:
    found, name = one.estimate, line(one.criterion)
    digits = 2 if one.unit == "r" else places(column, [found.value])
    if one.unit == "share":
        value, interval = f"{number(100 * found.value, 0)}%", percents(found)
    else:
        shown = number if one.unit == "sd" else signed
        value, interval = shown(found.value, digits), span(found.low, found.high, digits)
    bar = chart.bar(along, found, f"{name}, {what}: {value} {interval}".rstrip())
    return Row(name, value, interval, _p(found), f"{found.n:,}", TOLD if one.told else "", line(one.said), bar)


def _of_label(one: Finding) -> bool:
    return one.probe == "scale use" and one.what.startswith(LABEL)


def _uses(findings: Sequence[Finding]) -> Iterator[Use]:
    by_criterion = defaultdict[str, list[Finding]](list)
    for one in findings:
        if _of_label(one):
            by_criterion[one.criterion].append(one)
    for name, found in by_criterion.items():
        tallest = max(one.estimate.value for one in found) or 1.0
        bins = [
            chart.Bin(
                line(one.what.removeprefix(LABEL)),
                round(100 * one.estimate.value),
                round(100 * one.estimate.value / tallest, 1),
                f"{line(one.what.removeprefix(LABEL))}: {percent(one.estimate)}",
            )
            for one in found
        ]
        yield Use(line(name), tuple(bins))
