"""The report of a judge card: the verdict, its lines, and the evidence by criterion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from judge.commands.card.build_card import is_notable
from judge.commands.card.card import (
    DETECTED,
    FEWEST,
    PLAIN_UNITS,
    TESTABLE,
    BiasFinding,
    CardCell,
    CardLine,
    JudgeCard,
    Mark,
    SensitivityCell,
    is_majority,
)
from judge.commands.card.number_text import change, interval, places, written, written_estimate
from judge.commands.card.probes import LABEL
from judge.commands.card.reactions import moves_half, reaction, succeeded
from judge.commands.card.verdict import verdict_sentences
from judge.core.failure_kinds import failure_kind
from judge.core.format import listed, minus, number, plural
from judge.core.messages import Remark
from judge.core.records import Column, Estimate
from judge.core.signature import Signature
from judge.report import document
from judge.report.document import (
    Block,
    Bullets,
    Cell,
    Content,
    Details,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
    Tone,
    text_table,
)
from judge.report.document import Column as DocumentColumn
from judge.report.views.agreement_finding import usual_level
from judge.report.views.columns import p_cell
from judge.report.views.human_agreement import criteria_blocks
from judge.results.rated_criteria import flat

SCHEMA = "judge.card/2"
_MARKS: Mapping[str, tuple[str, Tone]] = {
    "notices": ("✓", "good"),
    "is inconclusive on": ("?", "warning"),
    "misses": ("✗", "bad"),
    "barely notices": ("✗", "bad"),
    "rewards": ("✗", "bad"),
}
_LINE_MARKS: Mapping[Mark, tuple[str, Tone]] = {
    "pass": ("✓", "good"),
    "fail": ("✗", "bad"),
    "unclear": ("?", "warning"),
    "not measured": ("–", "muted"),
}
_LINES_KEY = (
    "✓ passes, ✗ fails, ? unclear, by the 95% interval of the worst criterion. Agreement "
    "is kappa; points are those of the scale."
)
_DAMAGE_KEY = "% of texts whose score falls by 1/8 of the scale: ✓ noticed, ✗ missed, ? unclear"
_DAMAGE_STAR = "* damage of another criterion"
_ATTACK_KEY = "% of texts whose score rises by 1/8 of the scale: ✗ the attack works, ? unclear"
_LEGEND = (
    f"A score moves if it changes by {100 * DETECTED:g}% of the scale or more (half a step from 1 "
    "to 5). Brackets are 95% intervals: Wilson's for shares, Student's t over items for means "
    f"(from {FEWEST} items). p: sign-flip test with Holm's correction over its table. CSV and JSON "
    "also have the mean changes and the use of each label.",
    "A criterion notices its damage if the low end of the share that falls, minus the share that "
    "rises, is at least half and the mean falls significantly (with fewer than "
    f"{TESTABLE} texts, only the share counts). It misses the damage if the high end, minus the "
    f"share that rises, is below half (with fewer than {TESTABLE} texts, the high end alone). "
    "Otherwise the result is inconclusive.",
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
    finding = verdict_sentences(card.criteria, card.lines)
    is_good = all(verdict.level == "good enough" for verdict in card.criteria)
    texts = plural(info["texts"], "text") if info.get("texts") else ""
    judgments = plural(info.get("judgments") or 0, "judgment")
    n_failed = info.get("failed") or 0
    return Document(
        title=card.title,
        finding=tuple(finding),
        tone="good" if is_good else "",
        scope=texts,
        language=info.get("language", ""),
        about=(judgments, f"{n_failed:,} failed"),
        notices=tuple(note for note in card.notes if not isinstance(note, Remark)),
        remarks=tuple(note for note in card.notes if isinstance(note, Remark)),
        summary=tuple(_summary(card, columns)),
        sections=tuple(_sections(card, columns)),
        data=_data(card),
        records=tuple(_records(card)),
    )


def _data(card: JudgeCard) -> dict[str, Any]:
    """Return the card for JSON: its fields, and the verdict of each line."""
    data: dict[str, Any] = {"schema": SCHEMA}
    for field_name in card.__dataclass_fields__:
        data[field_name] = getattr(card, field_name)
    data["lines"] = [{"verdict": line.verdict, **asdict(line)} for line in card.lines]
    data["people"] = [asdict(flat(rated)) for rated in card.people]
    return data


# The lines


def _summary(card: JudgeCard, columns: Mapping[str, Column]) -> Iterator[Block]:
    """Yield the measured lines, each with its worst criterion, and why others were not measured."""
    measured = [line for line in card.lines if line.verdict != "not measured"]
    if measured:
        several = len(card.criteria) > 1
        rows = [_line_row(line, columns, several=several) for line in measured]
        heads = (
            "line",
            DocumentColumn("verdict", numeric=False),
            DocumentColumn("value", numeric=False),
            DocumentColumn("n", numeric=False),
            DocumentColumn("worst", numeric=False, optional=True),
        )
        yield document.table(
            heads, rows, _LINES_KEY, name="lines", caption="The judge card.", short=True
        )
    missing = [line for line in card.lines if line.verdict == "not measured"]
    if missing:
        yield Bullets(tuple(_not_measured(missing)))


def _line_row(
    line: CardLine, columns: Mapping[str, Column], *, several: bool
) -> tuple[Content, ...]:
    """Return the row of a line in the summary: the numbers of its worst criterion."""
    cell = line.worst_cell
    mark, tone = _LINE_MARKS[line.verdict]
    value = None
    texts = None
    criterion = None
    if cell is not None and several:
        criterion = cell.criterion
    if cell is not None and cell.estimate is not None:
        column = columns.get(cell.criterion)
        number_and_interval = written_estimate(cell.estimate, cell.unit, column)
        value = " ".join(number_and_interval).rstrip()
        texts = _counted(cell)
    verdict = Cell(f"{mark} {line.verdict}", tone=tone)
    return line.name, verdict, value, texts, criterion


def _counted(cell: CardCell) -> str:
    """Write `100 texts`."""
    unit_count = cell.estimate.n if cell.estimate else 0
    return plural(unit_count, cell.counted.removesuffix("s"))


def _not_measured(lines: Sequence[CardLine]) -> Iterator[str]:
    """Yield a sentence for each reason, with the lines that it is for."""
    names_by_reason: dict[str, list[str]] = {}
    for line in lines:
        reasons = dict.fromkeys(cell.reason for cell in line.cells)
        names_by_reason.setdefault("; ".join(reasons), []).append(line.name)
    for reason, names in names_by_reason.items():
        yield f"Not measured: {listed(names)} ({reason})."


def _lines_by_criterion(card: JudgeCard, columns: Mapping[str, Column]) -> Table:
    """Tabulate all lines with a column for each criterion."""
    criteria = [verdict.criterion for verdict in card.criteria]
    rows = []
    for line in card.lines:
        cell_by_criterion: dict[str, Cell] = {}
        for cell in line.cells:
            column = columns.get(cell.criterion)
            cell_by_criterion[cell.criterion] = _line_cell(cell, column)
        cells = [cell_by_criterion.get(criterion_name) for criterion_name in criteria]
        rows.append((Cell(line.name, note=_unit(line)), *cells))
    table_key = "✓ passes, ✗ fails, ? unclear, – not measured. Intervals are 95%."
    return document.table(
        ("line", *criteria),
        rows,
        table_key,
        name="lines-by-criterion",
        caption="Value, 95% interval and n of each line.",
    )


def _unit(line: CardLine) -> str:
    units = dict.fromkeys(cell.unit for cell in line.cells if cell.unit and cell.unit != "share")
    return ", ".join(units)


def _line_cell(cell: CardCell, column: Column | None) -> Cell:
    mark, tone = _LINE_MARKS[cell.verdict]
    if cell.estimate is None:
        return Cell(mark, tone=tone, title=cell.reason)
    value, brackets = written_estimate(cell.estimate, cell.unit, column)
    note = ", ".join(filter(None, (brackets, _counted(cell))))
    title = "; ".join(filter(None, (cell.beside, cell.reason)))
    return Cell(f"{mark} {value}", note, tone=tone, title=title, value=cell.estimate.value)


def _line_details(card: JudgeCard) -> Iterator[tuple[str, str]]:
    """Yield the further numbers of each line, and the reasons of its verdicts.

    What several criteria share is written once.
    """
    for line in card.lines:
        criteria_by_text: dict[str, list[str]] = {}
        for cell in line.cells:
            texts = [cell.beside] if cell.beside else []
            if cell.reason:
                texts.append(f"{cell.verdict}: {cell.reason}")
            if texts:
                criteria_by_text.setdefault("; ".join(texts), []).append(cell.criterion)
        for text, criteria in criteria_by_text.items():
            names = "" if len(criteria) == len(card.criteria) else f"{listed(criteria)}: "
            yield line.name, f"{names}{text}"


def _rules(card: JudgeCard) -> Table:
    """Tabulate when each line passes and fails."""
    rows = [(line.name, line.passes, line.fails) for line in card.lines]
    return text_table(("line", "passes if", "fails if"), rows, name="rules", caption="Rules.")


def _columns(card: JudgeCard) -> dict[str, Column]:
    """Return the column of each criterion, with the scale that the card knows."""
    columns = {}
    for cell in (*card.cells, *card.attacks):
        columns[cell.criterion] = Column(cell.criterion, "criterion", Signature())
    for criterion_name, scale in (card.info.get("criteria") or {}).items():
        lowest = scale.get("low")
        highest = scale.get("high")
        better = scale.get("better", "higher")
        columns[criterion_name] = Column(
            criterion_name, "criterion", Signature(), lowest, highest, better=better
        )
    return columns


def _headline(card: JudgeCard, columns: Mapping[str, Column]) -> str:
    """Count what the judge notices, which attacks work and which biases are notable."""
    phrases = []
    targeted = [cell for cell in card.cells if cell.targeted and cell.rate]
    reactions = [reaction(cell, columns[cell.criterion]) for cell in targeted]
    if reactions:
        kinds = plural(len(reactions), "kind")
        phrases.append(f"notices {reactions.count('notices')} of {kinds} of damage")
    scored = [cell for cell in card.attacks if not cell.control and cell.mean_change]
    attacks = {cell.change for cell in scored}
    if attacks:
        working = {cell.change for cell in scored if succeeded(cell, columns[cell.criterion])}
        verb = "works" if len(working) == 1 else "work"
        phrases.append(f"{len(working)} of {plural(len(attacks), 'attack')} {verb}")
    if card.findings:
        # A bias counts once, however many criteria have it.
        notable = {
            (finding.probe, finding.measure) for finding in card.findings if is_notable(finding)
        }
        noun = "bias" if len(notable) == 1 else "biases"
        phrases.append(f"{len(notable)} {noun}")
    if card.skipped:
        phrases.append(f"{plural(len(card.skipped), 'check')} skipped")
    text = "; ".join(phrases) or "no text has a score before and after a change"
    return text[0].upper() + text[1:]


def _sections(card: JudgeCard, columns: Mapping[str, Column]) -> Iterator[Section]:
    def section(anchor: str, title: str, *blocks: Block) -> Section:
        return Section(anchor, title, lambda: blocks)

    if card.lines:
        blocks: list[Block] = [_lines_by_criterion(card, columns)]
        details = tuple(_line_details(card))
        if details:
            blocks.append(Facts(details))
        blocks.append(Details("Rules", (_rules(card),)))
        yield section("lines", "Lines by criterion", *blocks)
    if card.people:
        yield Section(
            "people",
            "Agreement with people",
            lambda: criteria_blocks(card.people, usual_level(card.people)),
        )
    if card.observations:
        observed = (Paragraph(f"{_headline(card, columns)}."), Bullets(card.observations))
        yield section("observations", "Observations", *observed)
    if card.cells:
        damage = _matrix(
            "sensitivity",
            card.cells,
            columns,
            key=_DAMAGE_KEY,
            star=_DAMAGE_STAR,
            caption="Damage by criterion.",
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
        failures = Facts(
            tuple((failure_kind(name), f"{count:,}") for name, count in card.failures.items())
        )
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
    table_name: str, cells: Sequence[SensitivityCell], columns: Mapping[str, Column], **fields: str
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
            is_attack = table_name == "injection"
            row.append(_cell(cell, columns[criterion], is_attack))
        rows.append((Cell(changed, plural(texts, "text")), *row))
    return document.table(("change", *criteria), rows, name=table_name, **fields)


def _cell(cell: SensitivityCell, column: Column, attack: bool) -> Cell:
    rate = cell.rate
    mean = cell.mean_change
    if rate is None or mean is None:
        return Cell("–", title=f"{cell.failed:,} failed")
    mark: str
    tone: Tone
    star = ""
    shade: float | None = None  # from −1 (bad) to 1 (good)
    if cell.targeted:
        mark, tone = _MARKS[reaction(cell, column)]
        shade = 2 * rate.value - 1
    elif attack and not cell.control and succeeded(cell, column):
        mark, tone = "✗", "bad"
        shade = -rate.value
    elif not attack and moves_half(cell):
        mark, tone = "", "warning"
        star = document.STAR
        shade = -rate.value
    elif is_majority(rate, mean) or is_majority(cell.opposite, mean):
        mark, tone = "?", ""
    else:
        mark, tone = "", "muted"
    note = interval(rate, 0, 100)
    if cell.opposite and cell.opposite.value:
        note += f", {number(100 * cell.opposite.value, 0)}% opposite"
    percent_moved = number(100 * rate.value, 0)
    mean_text = change(mean, places(column, [mean.value]))
    return Cell(
        f"{mark} {percent_moved}%".lstrip(),
        note=note,
        tone=tone,
        mark=star,
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
        first_finding = next(iter(by_criterion.values()))
        unit = f" ({first_finding.unit})" if first_finding.unit not in PLAIN_UNITS else ""
        # Equal counts of several criteria are written once.
        counts: dict[str, None] = {}
        cells: dict[str, Cell] = {}
        for criterion, finding in by_criterion.items():
            noun = finding.counted.removesuffix("s")
            counts[plural(finding.estimate.n, noun)] = None
            cells[criterion] = _bias_cell(finding, columns.get(criterion))
        name_cell = Cell(f"{probe}: {measure}{unit}", note=", ".join(counts))
        rows.append((name_cell, *map(cells.get, criteria)))
    has_suggestive = any(finding.suggestive and not finding.significant for finding in findings)
    return document.table(
        ("bias", *criteria),
        rows,
        "? too few items to test, but most agree" if has_suggestive else "",
        star="* significant: p below .05 after Holm's correction over this table",
        caption="Biases by criterion, in points of the scale or %.",
        name="bias",
    )


def _bias_cell(finding: BiasFinding, column: Column | None) -> Cell:
    mark = ""
    if finding.significant:
        mark = document.STAR
    elif finding.suggestive:
        mark = "?"
    tone: Tone = ""
    if mark:
        tone = "bad" if finding.harmful else "strong"
    value, beside = written(finding, column)
    return Cell(
        value,
        beside,
        tone=tone,
        mark=mark,
        title=finding.sentence,
        value=finding.estimate.value,
    )


# Method and records


def _text(value: Any) -> str:
    """Write plain data on one line: `name texts.jsonl, sha256 1f2e…`."""
    if isinstance(value, Mapping):
        texts = {key: _text(inner) for key, inner in value.items()}
        return ", ".join(f"{key} {text}" for key, text in texts.items() if text)
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, int | float):
        return minus(f"{value:,.7g}")
    return str(value or "")


def _records(card: JudgeCard) -> Iterator[Mapping[str, Any]]:
    """Yield a row for every number: lines, rates and mean changes of texts, then biases."""
    for line in card.lines:
        for line_cell in line.cells:
            names = {
                "probe": "line",
                "criterion": line_cell.criterion,
                "measure": line.name,
                "unit": line_cell.unit,
            }
            verdict = {"targeted": None, "failed": None, "verdict": line_cell.verdict}
            yield {**names, **_numbers(line_cell.estimate), **verdict}
    for probe, cells in (("sensitivity", card.cells), ("injection", card.attacks)):
        for cell in cells:
            shared = {"targeted": cell.targeted, "failed": cell.failed, "verdict": ""}
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
        without_verdict = {"targeted": None, "failed": None, "verdict": ""}
        yield {**names, **_numbers(finding.estimate), **without_verdict}


def _numbers(estimate: Estimate | None) -> dict[str, Any]:
    keys = ("value", "low", "high", "p", "n", "method", "test")
    return {field_name: getattr(estimate, field_name, None) for field_name in keys}
