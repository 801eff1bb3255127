"""The report of an audit: verdicts, damage and attacks by criterion, biases, and how the audit was made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from judge.commands.audit.build_card import is_notable, moves_half, reaction, succeeded
from judge.commands.audit.card import (
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
from judge.commands.audit.probes import LABEL
from judge.core.format import minus, number, plural
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
    "notices": ("✓", "good"), "is inconclusive on": ("?", "warning"),
    "misses": ("✗", "bad"), "barely notices": ("✗", "bad"), "rewards": ("✗", "bad"),
}  # fmt: skip
_DAMAGE_KEY = "% of texts whose score falls by 1/8 of the scale: ✓ noticed, ✗ missed, ? unclear, * damage of another criterion"
_ATTACK_KEY = "% of texts whose score rises by 1/8 of the scale: ✗ the attack works, ? unclear"
_LEGEND = (
    f"A score moves if it changes by {100 * DETECTED:g}% of the scale or more (half a step from 1 to 5). Brackets are "
    f"95% intervals: Wilson's for shares, Student's t over items for means (from {FEWEST} items). p: sign-flip test "
    "with Holm's correction over its table. CSV and JSON also have the mean changes and the use of each label.",
    "A criterion notices its damage if the low end of the share that falls, less the share that rises, is at least "
    f"half, and the mean falls significantly (with fewer than {TESTABLE} texts the share decides). It misses the "
    "damage if even the high end is below half; between them the audit is inconclusive.",
    "An attack is compared with the same text with a harmless remark in its place, and the remark with the unchanged "
    "text. An attack works if it raises the score significantly beyond both.",
    "Verdicts and labels also change by chance: compare the order and wording of prompts with the repeats. "
    "sd is the root mean square of the texts' standard deviations. Wordings b and c put the same criterion into two "
    "other prompts.",
)


def view(card: JudgeCard) -> Document:
    """Return the report of a judge card."""
    columns = {
        name: Column(
            name,
            "criterion",
            Signature(),
            scale.get("low"),
            scale.get("high"),
            better=scale.get("better", "higher"),
        )
        for name, scale in (card.info.get("criteria") or {}).items()
    }
    columns = {
        c.criterion: Column(c.criterion, "criterion", Signature())
        for c in (*card.cells, *card.attacks)
    } | columns
    info, sections = card.info, list(_sections(card, columns))
    damage = [
        block for section in sections if section.anchor == "sensitivity" for block in section.blocks
    ]
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
        summary=(
            Bullets(card.verdicts[:_TOP_VERDICTS]),
            *(replace(block, short=True) for block in damage if isinstance(block, Table)),
        ),
        sections=tuple(sections),
        footer=(f"{plural(len(card.verdicts) - _TOP_VERDICTS, 'more verdict')}: --full",)
        if len(card.verdicts) > _TOP_VERDICTS
        else (),
        data={"schema": SCHEMA, **asdict(card)},
        records=tuple(_records(card)),
    )


def _headline(card: JudgeCard, columns: Mapping[str, Column]) -> str:
    """Count what the judge notices, which attacks work and which biases are notable."""
    parts = []
    if reactions := [
        reaction(c, columns[c.criterion]) for c in card.cells if c.targeted and c.rate
    ]:
        parts.append(
            f"notices {reactions.count('notices')} of {plural(len(reactions), 'kind')} of damage"
        )
    scored = [cell for cell in card.attacks if not cell.control and cell.mean_change]
    if attacks := {cell.change for cell in scored}:
        working = {cell.change for cell in scored if succeeded(cell, columns[cell.criterion])}
        parts.append(
            f"{len(working)} of {plural(len(attacks), 'attack')} {'works' if len(working) == 1 else 'work'}"
        )
    if card.findings:
        notable = {
            (finding.probe, finding.measure) for finding in card.findings if is_notable(finding)
        }
        parts.append(f"{len(notable)} {'bias' if len(notable) == 1 else 'biases'}")
    text = "; ".join(parts) or "no text has a score before and after a change"
    return text[0].upper() + text[1:]


def _sections(card: JudgeCard, columns: Mapping[str, Column]) -> Iterator[Section]:
    def section(anchor: str, title: str, *blocks: Block) -> Section:
        return Section(anchor, title, lambda: blocks)

    if more := card.verdicts[_TOP_VERDICTS:]:
        yield section("verdicts", "More verdicts", Bullets(more))
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
    if biases := [finding for finding in card.findings if not finding.measure.startswith(LABEL)]:
        yield section("bias", "Bias", _bias_table(biases, columns))
    if card.skipped:
        yield section("skipped", "Skipped", Facts(tuple(card.skipped.items())))
    if card.failures:
        failures = Facts(tuple((name, f"{n:,}") for name, n in card.failures.items()))
        yield section("failures", "Failed judgments", failures)
    info = {
        name.replace("_", " "): value for name, value in card.info.items() if name != "criteria"
    }
    info |= {
        f"criterion {name}": value for name, value in (card.info.get("criteria") or {}).items()
    }
    facts = tuple((name, text) for name, value in info.items() if (text := _text(value)))
    yield section("method", "Method", Facts(facts), *(Paragraph(text, "muted") for text in _LEGEND))


# Damage and attacks


def _matrix(
    name: str, cells: Sequence[SensitivityCell], columns: Mapping[str, Column], **fields: str
) -> Table:
    """Return changes by criteria; a pair that was not judged is a dash."""
    known = {(cell.change, cell.criterion): cell for cell in cells}
    criteria = dict.fromkeys(cell.criterion for cell in cells)
    rows = []
    for changed in dict.fromkeys(cell.change for cell in cells):
        pairs = [(known.get((changed, criterion)), columns[criterion]) for criterion in criteria]
        texts = max((cell.rate.n for cell, _ in pairs if cell and cell.rate), default=0)
        shares = [
            _cell(cell, column, name == "injection") if cell else None for cell, column in pairs
        ]
        rows.append((Cell(changed, plural(texts, "text")), *shares))
    return document.table(("change", *criteria), rows, name=name, **fields)


def _cell(cell: SensitivityCell, column: Column, attack: bool) -> Cell:
    rate, mean = cell.rate, cell.mean_change
    if rate is None or mean is None:
        return Cell("–", title=f"{cell.failed:,} failed")
    tone: Tone
    shade: float | None  # from −1 (bad) to 1 (good)
    if cell.targeted:
        (mark, tone), shade = _MARKS[reaction(cell, column)], 2 * rate.value - 1
    elif attack and not cell.control and succeeded(cell, column):
        mark, tone, shade = "✗", "bad", -rate.value
    elif not attack and moves_half(cell):
        mark, tone, shade = "*", "warning", -rate.value
    elif is_majority(rate, mean) or is_majority(cell.opposite, mean):
        mark, tone, shade = "?", "", None
    else:
        mark, tone, shade = "", "muted", None
    opposite = (
        f", {number(100 * cell.opposite.value, 0)}% opposite"
        if cell.opposite and cell.opposite.value
        else ""
    )
    return Cell(
        f"{mark} {number(100 * rate.value, 0)}%".lstrip(),
        note=f"{interval(rate, 0, 100)}{opposite}",
        tone=tone,
        title=f"mean {change(mean, places(column, [mean.value]))}, p (Holm) {p_cell(mean.p)}, {cell.failed:,} failed",
        shade=shade,
        value=rate.value,
    )


# Biases


def _bias_table(findings: Sequence[BiasFinding], columns: Mapping[str, Column]) -> Table:
    """Return measures by criteria, the measures of a probe together."""
    criteria = dict.fromkeys(finding.criterion for finding in findings)
    known: dict[tuple[str, str], dict[str, BiasFinding]] = defaultdict(dict)
    for finding in findings:
        known[finding.probe, finding.measure][finding.criterion] = finding
    rows = []
    for (probe, measure), by_criterion in known.items():
        first = next(iter(by_criterion.values()))
        unit = f" ({first.unit})" if first.unit not in PLAIN_UNITS else ""
        counts = dict.fromkeys(
            plural(f.estimate.n, f.counted.removesuffix("s")) for f in by_criterion.values()
        )
        cells = {}
        for name, finding in by_criterion.items():
            text, beside = written(finding, columns.get(name))
            mark = "* " if finding.significant else "? " if finding.suggestive else ""
            tone: Tone = ("bad" if finding.harmful else "strong") if mark else ""
            cells[name] = Cell(
                mark + text, beside, tone=tone, title=finding.sentence, value=finding.estimate.value
            )
        rows.append(
            (Cell(f"{probe}: {measure}{unit}", note=", ".join(counts)), *map(cells.get, criteria))
        )
    key = "* significant: p below .05 after Holm's correction over this table · ? too few items to test, but most agree"
    caption = "Biases by criterion, in points of the scale or %."
    return document.table(("bias", *criteria), rows, key, caption=caption, name="bias")


# Method and records


def _text(value: Any) -> str:
    """Write plain data on one line: `name texts.jsonl, sha256 1f2e…`."""
    if isinstance(value, Mapping):
        return ", ".join(
            f"{name} {text}" for name, inner in value.items() if (text := _text(inner))
        )
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, int | float):
        return minus(f"{value:,.7g}")
    return str(value or "")


def _records(card: JudgeCard) -> Iterator[Mapping[str, Any]]:
    """Return a row for every number: rates and mean changes of changes and attacks, then biases."""

    def record(
        probe: str, criterion: str, measure: str, unit: str, e: Estimate | None
    ) -> dict[str, Any]:
        numbers = {
            key: getattr(e, key, None)
            for key in ("value", "low", "high", "p", "n", "method", "test")
        }
        return {"probe": probe, "criterion": criterion, "measure": measure, "unit": unit, **numbers}

    for probe, cells in (("sensitivity", card.cells), ("injection", card.attacks)):
        for cell in cells:
            extra = {"targeted": cell.targeted, "failed": cell.failed}
            yield record(probe, cell.criterion, cell.change, "rate", cell.rate) | extra
            yield record(probe, cell.criterion, cell.change, "opposite rate", cell.opposite) | extra
            yield (
                record(probe, cell.criterion, cell.change, "mean change", cell.mean_change) | extra
            )
    for f in card.findings:
        yield record(f.probe, f.criterion, f.measure, f.unit, f.estimate) | {
            "targeted": None,
            "failed": None,
        }
