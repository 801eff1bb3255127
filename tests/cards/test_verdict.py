"""The sentences of a card's verdict agree with its lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.commands.card.card import MARKS, CardCell, CardEvidence, CardLine, Mark, PeopleFinding
from judge.commands.card.lines import AGREEMENT, COLD, POSITION, RULES
from judge.commands.card.verdict import criterion_verdicts, verdict_sentences
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.stats.correlation import Correlation
from judge.stats.human_agreement import Rated, Row
from judge.stats.power import scatter
from judge.table import Table
from tests.factories import has_line

NAMES = [rule.name for rule in RULES]
CRITERIA = ("alpha", "beta", "gamma")
COLUMNS = {name: Column(name, "criterion", Signature(), 1.0, 5.0) for name in CRITERIA}


def scored(systems: int = 3, items: int = 20) -> Table:
    """Return random scores of systems on items."""
    random = np.random.default_rng(5)
    samples = [Sample(f"i{n}", f"s{k}", "words") for n in range(items) for k in range(systems)]
    scores = [
        Score(sample.item, sample.system, name, float(random.uniform(1, 5)), Provenance("single"))
        for sample in samples
        for name in CRITERIA
    ]
    return Table(tuple(samples), tuple(COLUMNS.values()), tuple(scores))


TEXTS = scored()


def evidence(table: Table | None = None, **fields: object) -> CardEvidence:
    return CardEvidence((), COLUMNS, TEXTS, "m", "en", texts=table, **fields)  # type: ignore[arg-type]


def lines_of(marks: Mapping[tuple[str, str], Mark]) -> list[CardLine]:
    """Return lines with these verdicts by line and criterion. Each verdict has a different reason."""
    lines = []
    for name in NAMES:
        cells = tuple(
            CardCell(
                criterion,
                marks[name, criterion],
                reason=f"because {marks[name, criterion]}",
                advice="" if marks[name, criterion] == "pass" else f"change {name}",
            )
            for criterion in CRITERIA
        )
        lines.append(CardLine(name, "", "", cells))
    return lines


MARK = st.sampled_from(MARKS)
CARDS = st.fixed_dictionaries({(name, criterion): MARK for name in NAMES for criterion in CRITERIA})
"""Random verdicts of all lines."""
MOSTLY_GOOD = st.fixed_dictionaries(
    {
        (name, criterion): st.sampled_from(("pass", "pass", "pass", "not measured", "fail"))
        for name in NAMES
        for criterion in CRITERIA
    }
)


def written(lines: Sequence[CardLine], found: CardEvidence) -> list[str]:
    return list(verdict_sentences(criterion_verdicts(lines, found), lines))


def named_in(sentences: Sequence[str], start: str) -> set[str]:
    """Return the criteria named in the sentences with this start."""
    texts = [text for text in sentences if text.startswith(start)]
    return {name for name in CRITERIA if any(name in text for text in texts)}


@given(st.one_of(CARDS, MOSTLY_GOOD), st.booleans())
def test_the_verdict_is_true_for_every_card(
    marks: dict[tuple[str, str], Mark], has_texts: bool
) -> None:
    lines = lines_of(marks)
    sentences = written(lines, evidence(TEXTS if has_texts else None))
    expected: dict[str, set[str]] = {
        "Good enough ": set(),
        "Good enough with": set(),
        "Not shown": set(),
        "Not good enough": set(),
    }
    for criterion in CRITERIA:
        of_criterion = {name: marks[name, criterion] for name in NAMES}
        agreement = of_criterion[AGREEMENT]
        others = set(of_criterion.values()) - {"not measured"}
        if agreement == "fail":
            expected["Not good enough"].add(criterion)
        elif agreement != "pass":
            expected["Not shown"].add(criterion)
        elif others == {"pass"}:
            expected["Good enough "].add(criterion)
        else:
            expected["Good enough with"].add(criterion)
    sentences = [text for text in sentences if not text.startswith("Next")]
    with_reservations = [text for text in sentences if text.startswith("Good enough with")]
    plain = [text for text in sentences if text not in with_reservations]
    assert named_in(plain, "Good enough ") == expected["Good enough "]
    assert named_in(with_reservations, "Good") == expected["Good enough with"]
    assert named_in(sentences, "Not shown") == expected["Not shown"]
    assert named_in(sentences, "Not good enough") == expected["Not good enough"]


@pytest.mark.parametrize(
    ("failing", "facts"),
    [
        (2, ("one rater and retest", "temperature 0 fail")),
        (6, ("retest, temperature 1, position and 2 more",)),
    ],
)
def test_reservations_end_with_and(failing: int, facts: tuple[str, ...]) -> None:
    marks: dict[tuple[str, str], Mark] = {}
    for criterion in CRITERIA:
        for number, name in enumerate(NAMES):
            marks[name, criterion] = "fail" if 1 <= number <= failing else "pass"
    sentence = written(lines_of(marks), evidence(TEXTS))[0]
    assert has_line(sentence, *facts)


@given(MOSTLY_GOOD)
def test_the_lines_in_the_reservations_are_those_that_did_not_pass(
    marks: dict[tuple[str, str], Mark],
) -> None:
    lines = lines_of(marks)
    group = [
        criterion
        for criterion in CRITERIA
        if marks[AGREEMENT, criterion] == "pass"
        and any(marks[name, criterion] == "fail" for name in NAMES)
    ]
    failing = {name for name in NAMES for each in group if marks[name, each] == "fail"}
    text = " ".join(t for t in written(lines, evidence()) if t.startswith("Good enough with"))
    _, _, reservations = text.partition("Reservations: ")
    listed = {name for name in NAMES if name in reservations}
    assert bool(group) == bool(reservations)
    assert listed <= failing
    assert len(listed) == len(failing) or "more" in reservations


@given(st.one_of(CARDS, MOSTLY_GOOD))
def test_the_next_step_is_about_the_criteria_with_the_worst_verdict(
    marks: dict[tuple[str, str], Mark],
) -> None:
    lines = lines_of(marks)
    verdicts = criterion_verdicts(lines, evidence())
    order = ("not good enough", "not shown", "good enough with reservations", "good enough")
    worst = min((verdict.level for verdict in verdicts), key=order.index)
    steps = [text for text in verdict_sentences(verdicts, lines) if text.startswith("Next")]
    of_worst = {verdict.criterion for verdict in verdicts if verdict.level == worst}
    assert bool(steps) == (worst != "good enough")
    # A step for all criteria names none.
    assert named_in(steps, "Next, on") <= of_worst
    assert len(of_worst) == len(CRITERIA) or all(text.startswith("Next, on") for text in steps)


@given(CARDS)
def test_the_paradox_is_named_if_repeats_agree_and_the_order_decides(
    marks: dict[tuple[str, str], Mark],
) -> None:
    paradox = {
        name for name in CRITERIA if (marks[COLD, name], marks[POSITION, name]) == ("pass", "fail")
    }
    sentences = written(lines_of(marks), evidence())
    assert named_in(sentences, "Consistent but biased") == paradox


ALL_PASS: dict[tuple[str, str], Mark] = {(n, c): "pass" for n in NAMES for c in CRITERIA}


@pytest.mark.parametrize("shift", [0.0, 3.5])
def test_the_difference_is_at_least_the_detectable_one_and_the_judges_shift(
    shift: float,
) -> None:
    row = Row("m", "judge", "", Correlation(0, {}, {}))
    rated = Rated("alpha", 60, (row,), (), None, "", {})
    people = {"alpha": PeopleFinding(rated, row, 20, shift=shift)}
    verdicts = criterion_verdicts(lines_of(ALL_PASS), evidence(TEXTS, people=people))
    for spreads, verdict in zip(scatter(TEXTS, list(COLUMNS.values())), verdicts, strict=True):
        detected = max(pair.detectable(20) or 0.0 for pair in spreads.pairs)
        own_shift = shift if verdict.criterion == "alpha" else 0.0
        assert verdict.difference == pytest.approx(max(detected, own_shift), rel=1e-6)
        assert verdict.items == 20
    (limit,) = [text for text in verdict_sentences(verdicts, lines_of(ALL_PASS)) if "limit" in text]
    assert ("shift" in limit) == (shift > 1)
    assert ("80% power" in limit) == (shift < 1)


def test_a_line_that_fails_on_one_criterion_is_not_listed_as_unclear() -> None:
    marks: dict[tuple[str, str], Mark] = {
        **ALL_PASS, (POSITION, "alpha"): "fail", (POSITION, "beta"): "unclear"
    }  # fmt: skip
    sentences = written(lines_of(marks), evidence(TEXTS))
    (reserved,) = [text for text in sentences if text.startswith("Good enough with")]
    assert reserved.count(POSITION) == 1
    assert "unclear" not in reserved


def test_an_unknown_detectable_difference_has_a_reason() -> None:
    one_system = scored(systems=1)
    few_items = scored(items=4)
    for table, words in ((one_system, "only one system"), (few_items, "more than 4 items")):
        (text,) = written(lines_of(ALL_PASS), evidence(table))
        assert "is unknown" in text
        assert words in text


def test_lines_that_were_not_measured_are_counted() -> None:
    marks: dict[tuple[str, str], Mark] = {
        **ALL_PASS, **{(POSITION, criterion): "not measured" for criterion in CRITERIA}
    }  # fmt: skip
    text = written(lines_of(marks), evidence(TEXTS))[0]
    assert f"({len(NAMES) - 1} of {len(NAMES)} lines measured)" in text
    whole = written(lines_of(ALL_PASS), evidence(TEXTS))[0]
    assert f"(all {len(NAMES)} lines measured)" in whole
