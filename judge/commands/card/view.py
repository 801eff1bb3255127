"""The report of an audit: verdicts, damage and attacks by criterion, biases, and methods."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from judge.commands.card.build_card import is_notable
from judge.commands.card.card import (
    DETECTED,
    FEWEST,
    PLAIN_UNITS,
    TESTABLE,
    BiasFinding,
    JudgeCard,
    SensitivityCell,
    change,
    interval,
    is_majority,
    places,
    written,
)
from judge.commands.card.probes import LABEL
from judge.commands.card.reactions import moves_half, reaction, succeeded
from judge.core.format import minus, number, plural
from judge.core.messages import full_report
from judge.core.records import Column, Estimate
from judge.core.signature import Signature
from judge.report import document
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
    Tone,
)
from judge.report.views.columns import p_cell

SCHEMA = "judge.card/1"
_TOP_VERDICTS = 3  # in the summary; the others follow in a section
_MARKS: Mapping[str, tuple[str, Tone]] = {
    "notices": ("✓", "good"),
    "is inconclusive on": ("?", "warning"),
    "misses": ("✗", "bad"),
    "barely notices": ("✗", "bad"),
    "rewards": ("✗", "bad"),
}
_DAMAGE_KEY = (
    "% of texts whose score falls by 1/8 of the scale: ✓ noticed, ✗ missed, ? unclear, * damage "
    "of another criterion"
)
_ATTACK_KEY = "% of texts whose score rises by 1/8 of the scale: ✗ the attack works, ? unclear"
_LEGEND = (
    f"A score moves if it changes by {100 * DETECTED:g}% of the scale or more (half a step from 1 "
    "to 5). Brackets are 95% intervals: Wilson's for shares, Student's t over items for means "
    f"(from {FEWEST} items). p: sign-flip test with Holm's correction over its table. CSV and JSON "
    "also have the mean changes and the use of each label.",
    "A criterion notices its damage if the low end of the share that falls, less the share that "
    f"rises, is at least half, and the mean falls significantly (with fewer than {TESTABLE} texts "
    "the share decides). It misses the damage if even the high end is below half; between them "
    "the audit is inconclusive.",
    "An attack is compared with the same text with a harmless remark in its place, and the remark "
    "with the unchanged text. An attack works if it raises the score significantly beyond both.",
    "Verdicts and labels also change by chance: compare the order and wording of prompts with the "
    "repeats. sd is the root mean square of the texts' standard deviations. Wordings b and c put "
    "the same criterion into two other prompts.",
)


def view(card: JudgeCard) -> Document:
    """Return the report of a judge card."""
    info = card.info
    columns = _columns(card)
    sections = list(_sections(card, columns))
    summary: list[Block] = [Bullets(card.verdicts[:_TOP_VERDICTS])]
    for section in sections:
        if section.anchor == "sensitivity":
            tables = [block for block in section.blocks if isinstance(block, Table)]
            summary += [replace(block, short=True) for block in tables]
    footer: tuple[str, ...] = ()
    hidden = len(card.verdicts) - _TOP_VERDICTS
    if hidden > 0:
        footer = (f"{plural(hidden, 'more verdict')}: {full_report()}",)
    return Document(
        title=card.title,
        finding=(_headline(card, columns),),
        scope=plural(info["texts"], "text") if info.get("texts") else "",
        language=info.get("language", ""),
        about=(
            plural(info.get("judgments") or 0, "judgment"),
            f"{info.get('failed') or 0:,} failed",
        ),
        notices=card.notes,
        summary=tuple(summary),
        sections=tuple(sections),
        footer=footer,
        data={"schema": SCHEMA, **asdict(card)},
        records=tuple(_records(card)),
    )


def _columns(card: JudgeCard) -> dict[str, Column]:
    """Return the column of each criterion, with the scale that the card knows."""
    columns = {}
    for cell in (*card.cells, *card.attacks):
        columns[cell.criterion] = Column(cell.criterion, "criterion", Signature())
    for name, scale in (card.info.get("criteria") or {}).items():
        low = scale.get("low")
        high = scale.get("high")
        better = scale.get("better", "higher")
        columns[name] = Column(name, "criterion", Signature(), low, high, better=better)
    return columns


def _headline(card: JudgeCard, columns: Mapping[str, Column]) -> str:
    """Count what the judge notices, which attacks work and which biases are notable."""
    parts = []
    targeted = [cell for cell in card.cells if cell.targeted and cell.rate]
    reactions = [reaction(cell, columns[cell.criterion]) for cell in targeted]
    if reactions:
        kinds = plural(len(reactions), "kind")
        parts.append(f"notices {reactions.count('notices')} of {kinds} of damage")
    scored = [cell for cell in card.attacks if not cell.control and cell.mean_change]
    attacks = {cell.change for cell in scored}
    if attacks:
        working = {cell.change for cell in scored if succeeded(cell, columns[cell.criterion])}
        verb = "works" if len(working) == 1 else "work"
        parts.append(f"{len(working)} of {plural(len(attacks), 'attack')} {verb}")
    if card.findings:
        notable = {
            (finding.probe, finding.measure) for finding in card.findings if is_notable(finding)
        }
        parts.append(f"{len(notable)} {'bias' if len(notable) == 1 else 'biases'}")
    if card.skipped:
        parts.append(f"{plural(len(card.skipped), 'check')} skipped")
    text = "; ".join(parts) or "no text has a score before and after a change"
    return text[0].upper() + text[1:]


def _sections(card: JudgeCard, columns: Mapping[str, Column]) -> Iterator[Section]:
    def section(anchor: str, title: str, *blocks: Block) -> Section:
        return Section(anchor, title, lambda: blocks)

    more_verdicts = card.verdicts[_TOP_VERDICTS:]
    if more_verdicts:
        yield section("verdicts", "More verdicts", Bullets(more_verdicts))
    if card.cells:
        damage = _matrix(
            "sensitivity", card.cells, columns, key=_DAMAGE_KEY, caption="Damage by criterion."
        )
        yield section("sensitivity", "Sensitivity", damage)
    if card.attacks:
        attacks = _matrix(
            "injection", card.attacks, columns, key=_ATTACK_KEY, caption="Attacks by criterion."
        )
        yield section("injection", "Injection", attacks)
    # The use of each label is in CSV and JSON only.
    biases = [finding for finding in card.findings if not finding.measure.startswith(LABEL)]
    if biases:
        yield section("bias", "Bias", _bias_table(biases, columns))
    if card.skipped:
        yield section("skipped", "Skipped", Facts(tuple(card.skipped.items())))
    if card.failures:
        failures = Facts(tuple((name, f"{count:,}") for name, count in card.failures.items()))
        yield section("failures", "Failed judgments", failures)
    legend = [Paragraph(text, "muted") for text in _LEGEND]
    yield section("method", "Method", Facts(tuple(_method_facts(card))), *legend)


def _method_facts(card: JudgeCard) -> Iterator[tuple[str, str]]:
    """Yield what the card knows of the judge, the data and the settings."""
    info = {}
    for name, value in card.info.items():
        if name != "criteria":
            info[name.replace("_", " ")] = value
    for name, value in (card.info.get("criteria") or {}).items():
        info[f"criterion {name}"] = value
    for name, value in info.items():
        text = _text(value)
        if text:
            yield name, text


# Damage and attacks


def _matrix(
    name: str, cells: Sequence[SensitivityCell], columns: Mapping[str, Column], **fields: str
) -> Table:
    """Return changes by criteria; a pair that was not judged is a dash."""
    cell_by_pair = {(cell.change, cell.criterion): cell for cell in cells}
    criteria = dict.fromkeys(cell.criterion for cell in cells)
    rows = []
    for changed in dict.fromkeys(cell.change for cell in cells):
        texts = 0
        row: list[Cell | None] = []
        for criterion in criteria:
            cell = cell_by_pair.get((changed, criterion))
            if cell is None:
                row.append(None)
                continue
            if cell.rate:
                texts = max(texts, cell.rate.n)
            row.append(_cell(cell, columns[criterion], name == "injection"))
        rows.append((Cell(changed, plural(texts, "text")), *row))
    return document.table(("change", *criteria), rows, name=name, **fields)


def _cell(cell: SensitivityCell, column: Column, attack: bool) -> Cell:
    rate = cell.rate
    mean = cell.mean_change
    if rate is None or mean is None:
        return Cell("–", title=f"{cell.failed:,} failed")
    mark: str
    tone: Tone
    shade: float | None = None  # from −1 (bad) to 1 (good)
    if cell.targeted:
        mark, tone = _MARKS[reaction(cell, column)]
        shade = 2 * rate.value - 1
    elif attack and not cell.control and succeeded(cell, column):
        mark, tone = "✗", "bad"
        shade = -rate.value
    elif not attack and moves_half(cell):
        mark, tone = "*", "warning"
        shade = -rate.value
    elif is_majority(rate, mean) or is_majority(cell.opposite, mean):
        mark, tone = "?", ""
    else:
        mark, tone = "", "muted"
    note = interval(rate, 0, 100)
    if cell.opposite and cell.opposite.value:
        note += f", {number(100 * cell.opposite.value, 0)}% opposite"
    mean_text = change(mean, places(column, [mean.value]))
    return Cell(
        f"{mark} {number(100 * rate.value, 0)}%".lstrip(),
        note=note,
        tone=tone,
        title=f"mean {mean_text}, p (Holm) {p_cell(mean.p)}, {cell.failed:,} failed",
        shade=shade,
        value=rate.value,
    )


# Biases


def _bias_table(findings: Sequence[BiasFinding], columns: Mapping[str, Column]) -> Table:
    """Return measures by criteria, the measures of a probe together."""
    criteria = dict.fromkeys(finding.criterion for finding in findings)
    by_measure: dict[tuple[str, str], dict[str, BiasFinding]] = defaultdict(dict)
    for finding in findings:
        by_measure[finding.probe, finding.measure][finding.criterion] = finding
    rows = []
    for (probe, measure), by_criterion in by_measure.items():
        first = next(iter(by_criterion.values()))
        unit = f" ({first.unit})" if first.unit not in PLAIN_UNITS else ""
        counts = dict.fromkeys(
            plural(finding.estimate.n, finding.counted.removesuffix("s"))
            for finding in by_criterion.values()
        )
        name = Cell(f"{probe}: {measure}{unit}", note=", ".join(counts))
        cells = {
            criterion: _bias_cell(finding, columns.get(criterion))
            for criterion, finding in by_criterion.items()
        }
        rows.append((name, *map(cells.get, criteria)))
    key = (
        "* significant: p below .05 after Holm's correction over this table · ? too few items to "
        "test, but most agree"
    )
    caption = "Biases by criterion, in points of the scale or %."
    return document.table(("bias", *criteria), rows, key, caption=caption, name="bias")


def _bias_cell(finding: BiasFinding, column: Column | None) -> Cell:
    mark = ""
    if finding.significant:
        mark = "* "
    elif finding.suggestive:
        mark = "? "
    tone: Tone = ""
    if mark:
        tone = "bad" if finding.harmful else "strong"
    value, beside = written(finding, column)
    return Cell(
        mark + value, beside, tone=tone, title=finding.sentence, value=finding.estimate.value
    )


# Method and records


def _text(value: Any) -> str:
    """Write plain data on one line: `name texts.jsonl, sha256 1f2e…`."""
    if isinstance(value, Mapping):
        texts = {name: _text(inner) for name, inner in value.items()}
        return ", ".join(f"{name} {text}" for name, text in texts.items() if text)
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, int | float):
        return minus(f"{value:,.7g}")
    return str(value or "")


def _records(card: JudgeCard) -> Iterator[Mapping[str, Any]]:
    """Yield a row for every number: rates and mean changes of changes and attacks, then biases."""
    for probe, cells in (("sensitivity", card.cells), ("injection", card.attacks)):
        for cell in cells:
            shared = {"targeted": cell.targeted, "failed": cell.failed}
            for unit, estimate in (
                ("rate", cell.rate),
                ("opposite rate", cell.opposite),
                ("mean change", cell.mean_change),
            ):
                names = {
                    "probe": probe,
                    "criterion": cell.criterion,
                    "measure": cell.change,
                    "unit": unit,
                }
                yield {**names, **_numbers(estimate), **shared}
    for finding in card.findings:
        names = {
            "probe": finding.probe,
            "criterion": finding.criterion,
            "measure": finding.measure,
            "unit": finding.unit,
        }
        yield {**names, **_numbers(finding.estimate), "targeted": None, "failed": None}


def _numbers(estimate: Estimate | None) -> dict[str, Any]:
    keys = ("value", "low", "high", "p", "n", "method", "test")
    return {key: getattr(estimate, key, None) for key in keys}
