"""The report of a judge card: the verdict, its lines, and the evidence by criterion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
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
from judge.commands.card.lines import AGREEMENT
from judge.commands.card.number_text import (
    change,
    interval,
    places,
    written,
    written_estimate,
)
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
    "✓ passes, ✗ fails, ? unclear, by the 95% interval of the worst criterion. {agreement}Points "
    "are those of the scale."
)
_DAMAGE_KEY = (
    "% of texts whose score falls by 1/8 of the scale: ✓ noticed, ✗ missed, ? unclear"
)
_DAMAGE_STAR = "* damage of another criterion"
_ATTACK_KEY = (
    "% of texts whose score rises by 1/8 of the scale: ✗ the attack works, ? unclear"
)
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
    tone: Tone = "good" if is_good else ""
    # The changed texts are one of each item; agreement with people is about all texts.
    items = plural(info["texts"], "item") if info.get("texts") else ""
    judgments = plural(info.get("judgments") or 0, "judgment")
    n_failed = info.get("failed") or 0
    remarks = [note for note in card.notes if isinstance(note, Remark)]
    notices = [note for note in card.notes if not isinstance(note, Remark)]
    return Document(
        title=card.title,
        finding=tuple(finding),
        tone=tone,
        scope=items,
        language=info.get("language", ""),
        about=(judgments, f"{n_failed:,} failed"),
        notices=tuple(notices),
        remarks=tuple(remarks),
        summary=tuple(_summary(card, columns)),
        sections=tuple(_sections(card, columns)),
        data=_data(card),
        records=tuple(_records(card)),
    )


def _data(card: JudgeCard) -> dict[str, Any]:
    """Return the card for JSON: its fields, and the verdict of each line."""
    data: dict[str, Any] = {"schema": SCHEMA}
    for field in fields(card):
        data[field.name] = getattr(card, field.name)
    data["lines"] = [{"verdict": line.verdict, **asdict(line)} for line in card.lines]
    data["people"] = [asdict(flat(rated)) for rated in card.people]
    return data


# The lines


def _summary(card: JudgeCard, columns: Mapping[str, Column]) -> Iterator[Block]:
    """Yield the measured lines, each with its worst criterion, and why others were not measured."""
    measured = [line for line in card.lines if line.verdict != "not measured"]
    if measured:
        several = len(card.criteria) > 1
        worst_cells = {line.name: line.worst_cell for line in measured}
        agreement_cell = worst_cells.get(AGREEMENT)
        agreement = ""
        if agreement_cell is not None and agreement_cell.unit:
            agreement = f"Agreement is {agreement_cell.unit}. "
        rows = [_line_row(line, columns, several=several) for line in measured]
        heads = (
            "line",
            DocumentColumn("verdict", numeric=False),
            DocumentColumn("value", numeric=False),
            DocumentColumn("n", numeric=False),
            DocumentColumn("worst", numeric=False, optional=True),
        )
        yield document.table(
            heads,
            rows,
            _LINES_KEY.format(agreement=agreement),
            name="lines",
            caption="The judge card.",
            short=True,
        )
    unmeasured = [line for line in card.lines if line.verdict == "not measured"]
    if unmeasured:
        yield Bullets(tuple(_not_measured(unmeasured)))


def _line_row(
    line: CardLine,
    columns: Mapping[str, Column],
    *,
    several: bool,
) -> list[Content]:
    """Return the row of a line in the summary: the numbers of its worst criterion.

    The criterion is named if there are `several`.
    """
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
        texts = _counted(cell.estimate, cell.counted)
    verdict = Cell(f"{mark} {line.verdict}", tone=tone)
    return [line.name, verdict, value, texts, criterion]


def _counted(estimate: Estimate, counted: str) -> str:
    """Write the n of an estimate with its unit, such as `100 texts` or `1 text` for "texts"."""
    return plural(estimate.n, counted.removesuffix("s"))


def _not_measured(lines: Sequence[CardLine]) -> Iterator[str]:
    """Yield a sentence for each reason, with the lines that it is for."""
    names_by_reason: dict[str, list[str]] = {}
    for line in lines:
        different_reasons = dict.fromkeys(cell.reason for cell in line.cells)
        reason = "; ".join(different_reasons)
        names_by_reason.setdefault(reason, []).append(line.name)
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
        name_cell = Cell(line.name, note=_unit(line))
        cells = [cell_by_criterion.get(criterion_name) for criterion_name in criteria]
        rows.append((name_cell, *cells))
    table_key = "✓ passes, ✗ fails, ? unclear, – not measured. Intervals are 95%."
    return document.table(
        ("line", *criteria),
        rows,
        table_key,
        name="lines-by-criterion",
        caption="Value, 95% interval and n of each line.",
    )


def _unit(line: CardLine) -> str:
    """Return the unit of a line's numbers; "" for shares, whose % sign says it."""
    units = dict.fromkeys(cell.unit for cell in line.cells)
    return ", ".join(unit for unit in units if unit not in ("", "share"))


def _line_cell(cell: CardCell, column: Column | None) -> Cell:
    """Return the verdict of a line on one criterion, with its value, interval and n."""
    mark, tone = _LINE_MARKS[cell.verdict]
    if cell.estimate is None:
        return Cell(mark, tone=tone, title=cell.reason)
    value, brackets = written_estimate(cell.estimate, cell.unit, column)
    n_counted = _counted(cell.estimate, cell.counted)
    note = ", ".join(filter(None, (brackets, n_counted)))
    title = "; ".join(filter(None, (cell.beside, cell.reason)))
    return Cell(
        f"{mark} {value}", note, tone=tone, title=title, value=cell.estimate.value
    )


def _line_details(card: JudgeCard) -> Iterator[tuple[str, str]]:
    """Yield the further numbers of each line, and the reasons of its verdicts.

    What several criteria share is written once.
    """
    for line in card.lines:
        criteria_by_text: dict[str, list[str]] = {}
        for cell in line.cells:
            reason = f"{cell.verdict}: {cell.reason}" if cell.reason else ""
            text = "; ".join(filter(None, (cell.beside, reason)))
            if text:
                criteria_by_text.setdefault(text, []).append(cell.criterion)
        for text, criteria in criteria_by_text.items():
            names = ""
            if len(criteria) < len(card.criteria):
                names = f"{listed(criteria)}: "
            yield line.name, f"{names}{text}"


def _rules(card: JudgeCard) -> Table:
    """Tabulate when each line passes and fails."""
    rows = [(line.name, line.passes, line.fails) for line in card.lines]
    return text_table(
        ("line", "passes if", "fails if"), rows, name="rules", caption="Rules."
    )


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
            name=criterion_name,
            kind="criterion",
            signature=Signature(),
            low=lowest,
            high=highest,
            better=better,
        )
    return columns


def _headline(card: JudgeCard, columns: Mapping[str, Column]) -> str:
    """Count what the judge notices, which attacks work and which biases are notable."""
    phrases = []
    targeted = [cell for cell in card.cells if cell.targeted and cell.rate]
    reactions = [reaction(cell, columns[cell.criterion]) for cell in targeted]
    if reactions:
        kinds = plural(len(reactions), "kind")
        n_noticed = reactions.count("notices")
        phrases.append(f"notices {n_noticed} of {kinds} of damage")
    scored = [cell for cell in card.attacks if not cell.control and cell.mean_change]
    attacks = {cell.change for cell in scored}
    if attacks:
        working = set()
        for cell in scored:
            if succeeded(cell, columns[cell.criterion]):
                working.add(cell.change)
        all_attacks = plural(len(attacks), "attack")
        verb = "works" if len(working) == 1 else "work"
        phrases.append(f"{len(working)} of {all_attacks} {verb}")
    if card.findings:
        notable = [finding for finding in card.findings if is_notable(finding)]
        # A bias counts once, however many criteria have it.
        biases = {(finding.probe, finding.measure) for finding in notable}
        noun = "bias" if len(biases) == 1 else "biases"
        phrases.append(f"{len(biases)} {noun}")
    if card.skipped:
        checks = plural(len(card.skipped), "check")
        phrases.append(f"{checks} skipped")
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
        headline = Paragraph(f"{_headline(card, columns)}.")
        yield section(
            "observations", "Observations", headline, Bullets(card.observations)
        )
    if card.cells:
        damage = _matrix(
            "sensitivity",
            card.cells,
            columns,
            is_attack=False,
            key=_DAMAGE_KEY,
            star=_DAMAGE_STAR,
            caption="Damage by criterion.",
        )
        yield section("sensitivity", "Sensitivity", damage)
    if card.attacks:
        attacks = _matrix(
            "injection",
            card.attacks,
            columns,
            is_attack=True,
            key=_ATTACK_KEY,
            caption="Attacks by criterion.",
        )
        yield section("injection", "Injection", attacks)
    # The use of each label is in CSV and JSON only.
    biases = [
        finding for finding in card.findings if not finding.measure.startswith(LABEL)
    ]
    if biases:
        yield section("bias", "Bias", _bias_table(biases, columns))
    if card.skipped:
        reasons = tuple(card.skipped.items())
        yield section("skipped", "Skipped", Facts(reasons))
    if card.failures:
        counts = []
        for name, count in card.failures.items():
            counts.append((failure_kind(name), f"{count:,}"))
        yield section("failures", "Failed judgments", Facts(tuple(counts)))
    facts = tuple(_method_facts(card))
    legend = [Paragraph(text, "muted") for text in _LEGEND]
    yield section("method", "Method", Facts(facts), *legend)


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
    table_name: str,
    cells: Sequence[SensitivityCell],
    columns: Mapping[str, Column],
    *,
    is_attack: bool,
    key: str,
    caption: str,
    star: str = "",
) -> Table:
    """Tabulate changes by criteria; a pair that was not judged is a dash."""
    cell_by_pair = {(cell.change, cell.criterion): cell for cell in cells}
    criteria = dict.fromkeys(cell.criterion for cell in cells)
    rows = []
    for change_name in dict.fromkeys(cell.change for cell in cells):
        texts = 0
        row: list[Cell | None] = []
        for criterion in criteria:
            cell = cell_by_pair.get((change_name, criterion))
            if cell is None:
                row.append(None)
                continue
            # The criteria may have lost different texts to failures.
            if cell.rate:
                texts = max(texts, cell.rate.n)
            row.append(_cell(cell, columns[criterion], is_attack=is_attack))
        name_cell = Cell(change_name, plural(texts, "text"))
        rows.append((name_cell, *row))
    heads = ("change", *criteria)
    return document.table(heads, rows, key, name=table_name, caption=caption, star=star)


@dataclass(frozen=True, slots=True)
class _Look:
    """What marks a cell of damage or attacks; `shade` is from −1 (bad) to 1 (good)."""

    mark: str = ""
    tone: Tone = ""
    star: str = ""
    shade: float | None = None


def _cell(cell: SensitivityCell, column: Column, *, is_attack: bool) -> Cell:
    """Return the share of texts whose score moved, with its marks; a dash if it has none."""
    rate = cell.rate
    mean = cell.mean_change
    if rate is None or mean is None:
        return Cell("–", title=f"{cell.failed:,} failed")
    look = _look(cell, rate, mean, column, is_attack=is_attack)
    note = interval(rate, 0, 100)
    if cell.opposite and cell.opposite.value:
        percent_opposite = number(100 * cell.opposite.value, 0)
        note += f", {percent_opposite}% opposite"
    percent_moved = number(100 * rate.value, 0)
    mean_text = change(mean, places(column, [mean.value]))
    return Cell(
        f"{look.mark} {percent_moved}%".lstrip(),
        note=note,
        tone=look.tone,
        mark=look.star,
        title=f"mean {mean_text}, p (Holm) {p_cell(mean.p)}, {cell.failed:,} failed",
        shade=look.shade,
        value=rate.value,
    )


def _look(
    cell: SensitivityCell,
    rate: Estimate,
    mean: Estimate,
    column: Column,
    *,
    is_attack: bool,
) -> _Look:
    """Return how a cell is marked; `rate` and `mean` are its numbers."""
    if cell.targeted:
        mark, tone = _MARKS[reaction(cell, column)]
        return _Look(mark, tone, shade=2 * rate.value - 1)
    if is_attack and not cell.control and succeeded(cell, column):
        return _Look("✗", "bad", shade=-rate.value)
    if not is_attack and moves_half(cell):
        return _Look(tone="warning", star=document.STAR, shade=-rate.value)
    # Half of the texts moved or more, but they are too few for a test.
    if is_majority(rate, mean) or is_majority(cell.opposite, mean):
        return _Look("?")
    return _Look(tone="muted")


# Biases


def _bias_table(
    findings: Sequence[BiasFinding], columns: Mapping[str, Column]
) -> Table:
    """Tabulate measures by criteria, the measures of a probe together."""
    criteria = dict.fromkeys(finding.criterion for finding in findings)
    by_measure: dict[tuple[str, str], dict[str, BiasFinding]] = defaultdict(dict)
    for finding in findings:
        by_measure[finding.probe, finding.measure][finding.criterion] = finding
    rows = []
    for (probe, measure), by_criterion in by_measure.items():
        first_finding, *_ = by_criterion.values()
        unit = ""
        if first_finding.unit not in PLAIN_UNITS:
            unit = f" ({first_finding.unit})"
        # Equal counts of several criteria are written once.
        counts: dict[str, None] = {}
        cells: dict[str, Cell] = {}
        for criterion, finding in by_criterion.items():
            counts[_counted(finding.estimate, finding.counted)] = None
            cells[criterion] = _bias_cell(finding, columns.get(criterion))
        name_cell = Cell(f"{probe}: {measure}{unit}", note=", ".join(counts))
        rows.append((name_cell, *map(cells.get, criteria)))
    table_key = ""
    if any(finding.suggestive and not finding.significant for finding in findings):
        table_key = "? too few items to test, but most agree"
    return document.table(
        ("bias", *criteria),
        rows,
        table_key,
        star="* significant: p below .05 after Holm's correction over this table",
        caption="Biases by criterion, in points of the scale or %.",
        name="bias",
    )


def _bias_cell(finding: BiasFinding, column: Column | None) -> Cell:
    """Return a finding's number with its interval, marked if it is significant or suggestive."""
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
        texts = []
        for key, inner in value.items():
            text = _text(inner)
            if text:
                texts.append(f"{key} {text}")
        return ", ".join(texts)
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, int | float):
        return minus(f"{value:,.7g}")
    return str(value or "")


def _records(card: JudgeCard) -> Iterator[dict[str, Any]]:
    """Yield a record for every number: lines, rates and mean changes of texts, then biases."""
    for line in card.lines:
        for line_cell in line.cells:
            yield _record(
                line_cell.estimate,
                probe="line",
                criterion=line_cell.criterion,
                measure=line.name,
                unit=line_cell.unit,
                verdict=line_cell.verdict,
            )
    for probe, cells in (("sensitivity", card.cells), ("injection", card.attacks)):
        for cell in cells:
            for unit, estimate in (
                ("rate", cell.rate),
                ("opposite rate", cell.opposite),
                ("mean change", cell.mean_change),
            ):
                yield _record(
                    estimate,
                    probe=probe,
                    criterion=cell.criterion,
                    measure=cell.change,
                    unit=unit,
                    targeted=cell.targeted,
                    failed=cell.failed,
                )
    for finding in card.findings:
        yield _record(
            finding.estimate,
            probe=finding.probe,
            criterion=finding.criterion,
            measure=finding.measure,
            unit=finding.unit,
        )


def _record(
    estimate: Estimate | None,
    *,
    probe: str,
    criterion: str,
    measure: str,
    unit: str,
    targeted: bool | None = None,
    failed: int | None = None,
    verdict: str = "",
) -> dict[str, Any]:
    """Return a record with the same columns for every kind of number."""
    names = {"probe": probe, "criterion": criterion, "measure": measure, "unit": unit}
    numbers = {}
    for field_name in ("value", "low", "high", "p", "n", "method", "test"):
        numbers[field_name] = getattr(estimate, field_name, None)
    return {
        **names,
        **numbers,
        "targeted": targeted,
        "failed": failed,
        "verdict": verdict,
    }
