"""The card: its first lines, missing parts with reasons, and every format."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.cells import cell_len

from judge.commands.card.build_card import build_card, summarize
from judge.commands.card.card import (
    ORIGINAL,
    BiasFinding,
    CardCell,
    CardEvidence,
    CardLine,
    CriterionVerdict,
    JudgeCard,
    SensitivityCell,
)
from judge.commands.card.reactions import moves_half
from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.format import escape_controls
from judge.core.messages import Remark
from judge.core.records import Column, Estimate, Sample
from judge.core.signature import Signature
from judge.stats.bootstrap import wilson_interval
from judge.table import Table
from tests.factories import has_line, lines_hold

FORMATS = ("console", "markdown", "latex", "csv", "json")
HOSTILE = "<script>alert(1)</script>|`x`\x1b[31m"
WIDE = "流暢さ"


def move(value: float, p: float | None = 0.001, half: float = 0.1) -> Estimate:
    return Estimate("difference", value, value - half, value + half, 40, "bootstrap", p)


def cell(change: str, criterion: str, rate: float, value: float, **fields: Any) -> SensitivityCell:
    p = fields.pop("p", 0.001 if abs(value) >= 0.2 else 1.0)
    return SensitivityCell(
        change,
        criterion,
        fields.pop("targeted", False),
        wilson_interval(round(40 * rate), 40),
        move(value, p),
        **fields,
    )


def finding(
    probe: str, criterion: str, name: str, value: float, unit: str, **fields: Any
) -> BiasFinding:
    estimate = fields.pop("estimate", move(value, fields.pop("p", None)))
    return BiasFinding(
        probe,
        criterion,
        name,
        estimate,
        unit,
        f"{criterion}: {name}",
        fields.pop("significant", None),
    )


@pytest.fixture
def card() -> JudgeCard:
    """A card with every kind of row for two criteria, and names that every format must escape."""
    cells = (
        cell("shuffled sentences", "coherence", 0.1, -0.05, targeted=True), cell("shuffled sentences", WIDE, 0.0, 0.01),
        cell("typos", "coherence", 0.05, -0.02), cell("typos", WIDE, 0.9, -1.2, targeted=True, failed=2),
        SensitivityCell(HOSTILE, "coherence", False, None, None, 40), cell(HOSTILE, WIDE, 0.2, 0.1),
    )  # fmt: skip
    attacks = (cell("fake form", "coherence", 0.8, 0.9), cell("fake form", WIDE, 0.0, 0.0))
    findings = (
        finding(
            "position", "overall", "text shown first wins", 0.66, "share", p=0.004, significant=True
        ),
        finding(
            "verbosity", "coherence", "duplicated text", 0.3, "points", p=0.002, significant=True
        ),
        finding("verbosity", WIDE, "duplicated text", 0.02, "points", p=0.8, significant=False),
        finding(
            "verbosity",
            "coherence",
            "twice the words",
            0.1,
            "points per doubling",
            p=0.2,
            significant=False,
        ),
        finding(
            "extractiveness", "coherence", "copying at equal length", -0.2, "r", significant=False
        ),
        finding("wording", "coherence", "spread between wordings", 0.25, "sd"),
        finding(
            "scale use", "coherence", "label 4", 0.7, "share", estimate=wilson_interval(28, 40)
        ),
        finding(
            "scale use", "coherence", "label 5", 0.3, "share", estimate=wilson_interval(12, 40)
        ),
        finding(
            "scale use",
            "coherence",
            "most used label",
            0.7,
            "share",
            estimate=wilson_interval(28, 40),
        ),
        finding(
            "a new probe", "coherence", HOSTILE, 0.5, "share", estimate=wilson_interval(20, 40)
        ),
    )
    columns = {
        name: Column(name, "criterion", Signature(), 1.0, 5.0) for name in ("coherence", WIDE)
    }
    ends = {name: {"low": 1.0, "high": 5.0, "better": "higher"} for name in columns}
    lines = (
        CardLine("agreement with people", "kappa above 0", "kappa holds 0", (
            CardCell("coherence", "pass", move(0.62, None), "kappa", beside="Spearman 0.58*"),
            CardCell(WIDE, "fail", move(0.05, None), "kappa", reason="it is not significantly above chance"),
        ), worst=WIDE),
        CardLine(HOSTILE, "passes", "fails", (
            CardCell("coherence", "unclear", move(0.45), "points", reason="about 90 texts are needed"),
            CardCell(WIDE, "pass", move(0.1), "points"),
        ), worst="coherence"),
        CardLine("position", "50 ± 10%", "outside", (
            CardCell("coherence", "not measured", reason="no pair has both orders"),
            CardCell(WIDE, "not measured", reason="no pair has both orders"),
        ), worst="coherence"),
    )  # fmt: skip
    criteria = (
        CriterionVerdict("coherence", "good enough with reservations", 0.311, 40, 2, 3, (), (HOSTILE,)),
        CriterionVerdict(WIDE, "not good enough", 0.4, 40, 2, 3, reason="it is not significantly above chance",
                         advice="rate more items"),
    )  # fmt: skip
    return JudgeCard(
        title=f"Judge card: openai/small {HOSTILE}", verdict="Good enough.", lines=lines, criteria=criteria,
        cells=cells, findings=findings, attacks=attacks,
        skipped={"repeats": "no text has two draws", HOSTILE: "applies to none of the 40 texts"},
        observations=summarize(cells, attacks, findings, columns), notes=("A note with \x1b[31m in it.",),
        failures={"ParseError": 40, "Refused": 2},
        info={"model": "openai/small", "texts": 40, "texts_by_change": {"original": 40, "typos": 40}, "criteria": ends,
              "judgments": 2_120, "failed": 42, "language": "en", "version": "0.1.0", "seed": 0},
    )  # fmt: skip


@pytest.fixture(scope="module")
def leaning_card(leaning: CardEvidence, make: Any) -> JudgeCard:
    return build_card(leaning, make.own, make.attacks, make.neutral)


@pytest.mark.usefixtures("command_line")
@pytest.mark.parametrize(("name", "format"), [("card.txt", "console"), ("card.md", "markdown")])
def test_golden(
    card: JudgeCard, golden: Any, monkeypatch: pytest.MonkeyPatch, name: str, format: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    golden(name, card.report(format))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("full", [False, True])
def test_the_console_keeps_to_the_terminal(
    card: JudgeCard,
    leaning_card: JudgeCard,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    full: bool,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for each in (card, leaning_card):
        lines = each.report(full=full).split("\n")
        tables = [line for line in lines if "  " in line.strip()]  # facts and commands may be wider
        assert max(map(cell_len, tables)) <= width
    assert full or len(leaning_card.report().splitlines()) <= 25


def test_every_format_has_every_section(leaning_card: JudgeCard) -> None:
    for format in ("markdown", "latex"):
        text = leaning_card.report(format, full=True)
        assert all(
            change in text
            for change in ("shuffled sentences", "fake form", "verbosity: duplicated text")
        )
    assert all(line.name in leaning_card._repr_html_() for line in leaning_card.lines)
    full = leaning_card.report(full=True)
    assert [line for line in full.split("\n") if line in ("Sensitivity", "Injection", "Bias", "Method")] == [
        "Sensitivity", "Injection", "Bias", "Method",
    ]  # fmt: skip
    assert all(
        verdict.split("(")[0][:60].split(" ")[0] in full for verdict in leaning_card.observations
    )
    rows = list(csv.DictReader(StringIO(leaning_card.report("csv"))))
    cells = (*leaning_card.cells, *leaning_card.attacks)
    of_lines = [cell for line in leaning_card.lines for cell in line.cells]
    assert len(rows) == len(of_lines) + 3 * len(cells) + len(leaning_card.findings)


def test_many_criteria_go_below_each_other(
    card: JudgeCard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"criterion-{n}" for n in range(9)]
    many = replace(card, cells=tuple(cell("typos", name, 0.1, 0.0) for name in names), attacks=())
    assert all(name in many.report(full=True) for name in names)
    assert "criterion-8" not in many.report()


def test_every_format_escapes_hostile_text(card: JudgeCard) -> None:
    assert not any(
        "\x1b" in card.report(format, full=True)
        for format in ("console", "markdown", "latex", "json")
    )
    assert "\x1b[1m" in card.report(colour=True)
    assert not re.search(r"(?<!\\)<script", card.report("markdown"))


def test_an_unknown_format_is_refused(card: JudgeCard) -> None:
    with pytest.raises(ConfigError, match=r"'htm'.*'html'"):
        card.report("htm")


def test_json_is_strict_and_whole(card: JudgeCard) -> None:
    data = json.loads(card.report("json"), parse_constant=pytest.fail)
    assert data["schema"] == "judge.card/2"
    assert len(data["cells"]) == len(card.cells)
    first = data["cells"][0]
    assert (first["change"], first["criterion"], first["targeted"]) == (
        "shuffled sentences",
        "coherence",
        True,
    )
    assert (first["rate"]["n"], first["mean_change"]["p"], first["opposite"]) == (40, 1.0, None)
    assert (data["findings"][0]["measure"], data["findings"][0]["significant"]) == (
        "text shown first wins",
        True,
    )
    assert data["observations"] == list(card.observations)
    assert "repeats" in data["skipped"]


def test_markdown_is_bounded(card: JudgeCard) -> None:
    many = replace(
        card, cells=tuple(cell(f"change {n}", "coherence", 0.1, 0.0) for n in range(1_500))
    )
    assert len(many.report("markdown")) <= 60_000


def test_the_use_of_each_label_is_for_programs(card: JudgeCard) -> None:
    assert "scale use: most used label" in card.report(full=True)
    assert "label 4" not in card.report(full=True)
    assert "label 4" in card.report("csv")


# First lines


def sensitivity_sentences(
    *cells: SensitivityCell, better: str = "higher", attack: bool = False
) -> tuple[str, ...]:
    columns = {
        name: Column(name, "criterion", Signature(), 1.0, 5.0, better=better) for name in ("c", "d")
    }  # type: ignore[arg-type]
    return summarize(() if attack else cells, cells if attack else (), (), columns)


@pytest.mark.parametrize(
    ("rate", "value", "facts"),
    [
        (0.9, -1.0, ("c notices typos", "90% of 40 texts")),
        (0.1, -0.1, ("c misses typos", "10% of 40 texts")),
        (0.3, -0.4, ("c barely notices typos", "30% of 40 texts")),
        (0.45, -0.1, ("c is inconclusive on typos", "45% of 40 texts")),
        (0.6, -0.6, ("c is inconclusive on typos", "60% of 40 texts")),
        (0.7, -0.7, ("c notices typos", "70% of 40 texts")),
        (0.1, 0.4, ("c rewards typos", "10% of 40 texts")),
    ],
)
def test_reports_whether_a_criterion_detects_its_own_damage(
    rate: float, value: float, facts: tuple[str, ...]
) -> None:
    sentences = sensitivity_sentences(cell("typos", "c", rate, value, targeted=True))
    assert lines_hold(sentences, [facts])


@pytest.mark.parametrize(("value", "verb"), [(1.0, "notices"), (-1.0, "rewards")])
def test_a_rise_detects_damage_if_lower_is_better(value: float, verb: str) -> None:
    assert (
        verb
        in sensitivity_sentences(cell("typos", "c", 0.9, value, targeted=True), better="lower")[0]
    )


def test_with_too_few_items_for_a_test_the_rate_decides() -> None:
    few = SensitivityCell(
        "typos", "c", True, wilson_interval(10, 10), replace(move(-1.0, 0.08), n=10)
    )
    assert moves_half(few)
    assert not moves_half(replace(few, rate=wilson_interval(5, 10)))
    assert not moves_half(
        replace(few, mean_change=replace(move(-1.0, 0.08), n=15))
    )  # if there are enough items, the test decides


def test_mixed_score_changes_do_not_count_as_detected() -> None:
    noisy = replace(cell("typos", "c", 0.6, -0.4, targeted=True), opposite=wilson_interval(12, 40))
    assert not moves_half(noisy)
    facts = ("c barely notices typos", "falls in 60% of 40 texts", "rises in 30%")
    assert lines_hold(sensitivity_sentences(noisy), [facts])


@pytest.mark.parametrize(("texts", "verb"), [(1, "is inconclusive on"), (40, "misses")])
def test_damage_is_missed_only_if_enough_texts_show_it(texts: int, verb: str) -> None:
    """The scores of half of the texts rise; a single text rises too."""
    risen = wilson_interval((texts + 1) // 2, texts)
    unmoved = replace(move(0.0, 1.0), n=texts)
    damage = SensitivityCell("typos", "c", True, wilson_interval(0, texts), unmoved, opposite=risen)
    (sentence,) = sensitivity_sentences(damage)
    assert sentence.startswith(f"c {verb} typos")


def test_a_rise_in_all_of_too_few_texts_is_a_warning() -> None:
    few = replace(move(2.5, 1.0), n=6, low=None, high=None)
    attack = SensitivityCell(
        "one", "c", False, wilson_interval(6, 6), few, opposite=wilson_interval(0, 6)
    )
    other = SensitivityCell(
        "two",
        "c",
        False,
        wilson_interval(1, 6),
        replace(few, value=0.2),
        opposite=wilson_interval(0, 6),
    )
    raised, inconclusive = sensitivity_sentences(attack, other, attack=True)
    assert has_line(raised, "“one” raises c", "100% of 6 texts", "too few")
    assert has_line(inconclusive, "Inconclusive on 1 attack (two)", "6 texts", "at least 10")
    damage = SensitivityCell(
        "padded", "c", True, wilson_interval(0, 6), few, opposite=wilson_interval(6, 6)
    )
    facts = ("c rewards padded", "falls in 0% of 6 texts", "rises in 100%")
    assert lines_hold(sensitivity_sentences(damage), [facts])


def test_an_attack_works_only_beyond_its_control_and_above_the_unchanged_text() -> None:
    won, lost = (
        cell("one", "c", 0.9, 1.0, vs_original=move(0.5)),
        cell("one", "c", 0.9, 1.0, vs_original=move(-0.5)),
    )
    control = cell("harmless remark", "c", 0.9, 1.0, control=True)
    assert "raises" in sensitivity_sentences(won, attack=True)[0]
    assert not [
        text for text in sensitivity_sentences(lost, control, attack=True) if "raises" in text
    ]


def test_a_bias_without_a_significant_test_makes_no_sentence() -> None:
    wording = finding("wording", "c", "wording b", -0.45, "points", p=0.2, significant=False)
    assert summarize((), (), (wording,), {}) == ()
    right = replace(
        finding("verbosity", "c", "duplicated text", -1.0, "points", significant=True),
        harmful=False,
    )
    assert summarize((), (), (right,), {}) == ()


def test_a_constant_judge_on_few_texts_is_reported(make: Any) -> None:
    card = build_card(
        make.evidence(make.table({ORIGINAL: [4.0] * 6, "duplicated text": [4.0] * 6})),
        {},
        (),
        make.neutral,
    )
    (observation,) = card.observations
    assert has_line(observation, "c: most used label", "100% [61, 100]", "6 texts")


def test_a_criterion_without_a_score_is_skipped_with_an_observation(make: Any) -> None:
    dead = build_card(
        make.evidence(make.table({ORIGINAL: [None] * 3, "typos": [None] * 3})),
        {"typos": "c"},
        (),
        (),
    )
    assert "6 unreadable" in dead.skipped["c"]
    (observation,) = dead.observations
    assert has_line(observation, "c has no score", "6 unreadable")


def test_an_interval_of_equal_items_is_written_as_alike(make: Any) -> None:
    rows = {ORIGINAL: [2.0] * 12, "duplicated text": [5.0] * 12, "typos": [1.0] * 12}
    card = build_card(make.evidence(make.table(rows)), {"typos": "c"}, (), ("duplicated text",))
    text = card.report(full=True)
    assert "+3.00*" in text
    assert "[all alike]" in text
    assert not re.search(r"\[(.+?), \1\]", text)


def test_damage_that_is_not_its_own() -> None:
    (sentence,) = sensitivity_sentences(
        cell("typos", "c", 0.7, -1.0), cell("padded", "c", 0.2, -0.3)
    )
    assert has_line(sentence, "c also reacts", "other criteria", "typos", "70% of 40 texts")


def test_attacks_that_work_come_first_and_the_others_are_bounded() -> None:
    notes = sensitivity_sentences(
        cell("one", "c", 0.1, 0.05), cell("two", "c", 0.5, 0.6), cell("two", "d", 0.9, 1.0),
        cell("three", "c", 0.0, -1.0), attack=True,
    )  # fmt: skip
    raised, without_gain = notes
    assert has_line(raised, "“two” raises d", "90% of 40 texts", "also c")
    assert has_line(without_gain, "2 attacks (one, three)", "at most +0.15")


@pytest.mark.parametrize(
    ("value", "half", "end"), [(-0.5, 0.1, "at most 0.00."), (0.1, 0.3, "at most +0.40.")]
)
def test_attacks_have_an_upper_bound(value: float, half: float, end: str) -> None:
    (sentence,) = sensitivity_sentences(
        SensitivityCell("one", "c", False, wilson_interval(0, 40), move(value, 1.0, half)),
        attack=True,
    )
    assert end in sentence


def test_attacks_on_too_few_texts_are_not_bounded() -> None:
    alone = SensitivityCell(
        "one",
        "c",
        False,
        wilson_interval(0, 1),
        Estimate("difference", 0.0, None, None, 1, "one item"),
    )
    (sentence,) = sensitivity_sentences(alone, attack=True)
    assert has_line(sentence, "Inconclusive on 1 attack (one)", "1 text", "at least 10")


def test_the_worst_result_comes_first(leaning_card: JudgeCard) -> None:
    starts = [
        "The attack “asks for the top score” raises", "coherence misses shuffled sentences",
        "overall: verdict flips with the order", "relevance also reacts to damage of other criteria: typos",
        "consistency notices swapped entity",
    ]  # fmt: skip
    places = [
        next(n for n, text in enumerate(leaning_card.observations) if text.startswith(start))
        for start in starts
    ]
    assert places == sorted(places)
    assert places[0] == 0


# From the evidence


def test_a_card_counts_its_texts_judgments_and_failures(leaning_card: JudgeCard) -> None:
    card = leaning_card
    assert card.failures == {"ParseError": 2}
    assert (card.info["texts"], card.info["texts_by_change"]["swapped number"]) == (40, 20)
    assert card.info["failed"] == 2
    assert not card.notes
    assert json.loads(json.dumps(card.info)) == card.info
    assert {one.probe for one in card.findings} == {
        "position", "verbosity", "self-preference", "extractiveness", "wording", "scale use", "repeats",
    }  # fmt: skip


def test_unavailable_parts_are_skipped_with_the_reason(make: Any) -> None:
    values = {ORIGINAL: [3.0, 3, 4], "typos": [1.0, 2, 3]}
    evidence = make.evidence(
        make.table(values), unavailable={"wording": "c does not extend the layout"}
    )
    reasons = build_card(
        evidence, {"typos": "fluency", "padded": "relevance"}, ("fake form",), ("copied lead",)
    ).skipped
    assert has_line(reasons["wording"], "c does not extend")
    for name in ("padded", "fake form", "copied lead"):
        assert has_line(reasons[name], "none of the 3 texts")
    assert "no change damages" in reasons["sensitivity of c"]
    assert "`generator`" in reasons["self-preference"]
    assert {"position", "verbosity", "extractiveness", "repeats"} < reasons.keys()
    assert "scale use" not in reasons


def test_probes_that_were_not_asked_for_are_not_missed(make: Any) -> None:
    card = build_card(
        make.evidence(make.table({ORIGINAL: [3.0, 3], "typos": [1.0, 2]})), {"typos": "c"}, (), ()
    )
    assert card.findings == card.attacks == ()
    assert not card.skipped


def test_nothing_but_failures_makes_a_card_without_numbers(make: Any) -> None:
    table = make.table({ORIGINAL: [None, None], "typos": [None, None], "fake form": [None, None]})
    card = build_card(make.evidence(table), {"typos": "c"}, ("fake form",), ("duplicated text",))
    assert card.failures == {"ParseError": 6}
    (note,) = card.notes
    assert has_line(note, "6 of 6 judgments (100.0%)", "no score", "6 unreadable")
    assert [(one.rate, one.mean_change, one.failed) for one in card.cells] == [(None, None, 2)]
    for format in FORMATS:
        assert "nan" not in escape_controls(card.report(format)).lower()


def test_a_remark_is_not_a_warning(make: Any) -> None:
    table = make.table({ORIGINAL: [3.0, 3], "typos": [1.0, 2]})
    card = build_card(make.evidence(table), {"typos": "c"}, (), ())
    card = replace(card, notes=(Remark("Ratings from a.csv."), "Half failed."))
    document = plugins.document(card)
    assert (document.notices, document.remarks) == (("Half failed.",), ("Ratings from a.csv.",))


def test_a_scale_without_ends_explains_how_changes_count(make: Any) -> None:
    endless = make.column(low=None, high=None, labels=())
    card = build_card(
        make.evidence(make.table({ORIGINAL: [1.0, 3.0], "typos": [0.0, 1.0]}, endless)),
        {"typos": "c"},
        (),
        (),
    )
    (note,) = card.notes[1:]
    assert has_line(note, "Without ends", "c", "half", "standard deviation")


def test_a_card_without_evidence_can_be_reported() -> None:
    card = build_card(CardEvidence((), {}, Table((), (), ()), "m", "en"), {}, (), ())
    assert (card.cells, card.findings, card.observations) == ((), (), ())
    assert all(card.report(format) for format in FORMATS if format != "csv")


def test_a_renamed_column_is_shown_by_its_criterion_name(make: Any) -> None:
    column = Column(
        "extractive_support", "criterion", Signature(), -3.0, 3.0, criterion="consistency"
    )
    changed = make.table({ORIGINAL: [1.0, 1, 1], "swapped number": [1.0, 1, 1]}, column)
    evidence = replace(make.evidence(changed), columns={"consistency": column}, natural=changed)
    card = build_card(evidence, {"swapped number": "consistency"}, (), ("copied lead",))
    assert [(one.criterion, one.targeted) for one in card.cells] == [("consistency", True)]
    assert {one.criterion for one in card.findings} == {"consistency"}


def test_a_sample_without_words_breaks_nothing(make: Any) -> None:
    samples = (Sample("i0", "a", ""), Sample("i0", "b", ""))
    scores = tuple(make.score(s.item, s.system, "c", 3.0) for s in samples)
    natural = Table(samples, (make.column(),), scores)
    evidence = make.evidence(make.table({ORIGINAL: [3.0]}), natural=natural)
    assert "verbosity" in build_card(evidence, {}, (), ()).skipped
