"""Every sentence about a ranking is true. Oracle: an independent analysis of the same verdicts.

A sentence that no rule below knows fails the test: a new sentence needs a rule that says when it is true.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views.finding import finding
from judge.results.result import Result
from judge.stats.analyze import analyze
from tests.factories import has_line

NAMES = [f"s{k}" for k in range(6)]
LIST = r"s\d(?:, s\d)*(?: and s\d)?"
COUNTED = rf"{LIST}|\d+ systems"
SIZE = r"(?:(?:strength )?[−\d.]+|\d+%)(?: \[[^\]]+\])?"
OVERLAP = "; the intervals (?:do not overlap|overlap, so it may be as good)"

Verdicts = list[tuple[str, int, str, str, float, float]]
"""Column, item, system, opponent, and the preference for the system when shown first and second."""


def run_of(verdicts: Verdicts) -> Result:
    columns = [
        Column(name, "criterion", Signature(name), 0.0, 1.0)
        for name in dict.fromkeys(verdict[0] for verdict in verdicts)
    ]
    rows = []
    for column, item, system, opponent, shown_first, shown_second in verdicts:
        provenance = Provenance("single")
        rows.append(Score(f"i{item}", system, column, shown_first, provenance, opponent))
        rows.append(Score(f"i{item}", opponent, column, 1 - shown_second, provenance, system))
    items = {verdict[1] for verdict in verdicts}
    samples = [Sample(f"i{item}", name, "text") for item in sorted(items) for name in NAMES]
    analysis = analyze(samples, columns, rows, orders=2)
    return Result(analysis.table, {}, rankings=analysis.rankings)


class Reading:
    """An independent analysis of the verdicts on one criterion."""

    def __init__(self, verdicts: Verdicts) -> None:
        names = ["column", "item", "system", "opponent", "first", "second"]
        frame = pd.DataFrame(verdicts, columns=names)
        frame["p"] = (frame["first"] + frame["second"]) / 2
        sides = np.sign(frame[["first", "second"]] - 0.5)
        frame["winner"] = np.sign(sides.sum(axis=1))
        self.pairs = len(frame)
        self.tied = int((sides == 0).all(axis=1).sum())
        self.reversed = int((sides.prod(axis=1) < 0).sum())
        turned = frame.rename(columns={"system": "opponent", "opponent": "system"})
        turned["p"] = 1 - turned["p"]
        turned["winner"] = -turned["winner"]
        self.sides = pd.concat([frame, turned], ignore_index=True)
        flips = np.sign(frame["first"] - 0.5) != np.sign(frame["second"] - 0.5)
        self.all_flipped = bool(flips.all())
        self.share_first = float((frame["first"] + 1 - frame["second"]).mean() / 2)
        self.rates = self.sides.groupby("system")["p"].mean().to_dict()
        self.heads = self.sides.groupby(["system", "opponent"])["p"].mean().to_dict()
        self.items = self.sides.groupby("system")["item"].nunique().to_dict()
        self.groups: list[set[str]] = []
        for a, b in self.heads:
            touched = [group for group in self.groups if a in group or b in group]
            self.groups = [group for group in self.groups if group not in touched]
            self.groups.append({a, b}.union(*touched))

    def best(self, names: set[str]) -> set[str]:
        highest = max(self.rates[name] for name in names)
        return {name for name in names if self.rates[name] > highest - 1e-6}

    def won(self, name: str) -> tuple[int, int]:
        """Return the number of comparisons that a system won, and the total."""
        rows = self.sides[self.sides["system"] == name]
        return int((rows["winner"] > 0).sum()), len(rows)

    def lost(self, name: str) -> int:
        """Return the number of comparisons that a system lost."""
        rows = self.sides[self.sides["system"] == name]
        return int((rows["winner"] < 0).sum())


def names_in(text: str) -> list[str]:
    return re.findall(r"s\d", text)


def counted(text: str, names: set[str]) -> bool:
    """Return whether `text` lists these names, or counts them."""
    return (
        int(text.split()[0]) == len(names)
        if text.endswith("systems")
        else set(names_in(text)) == names
    )


def void(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    values = [score.value for score in result.table.column_scores("better")]
    return reading.all_flipped and 0.5 not in values


def shown_place(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    share = reading.share_first if match["place"] == "first" else 1 - reading.share_first
    return share > 0.5 and abs(100 * share - float(match["share"])) < 0.51


def lead(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    """Check the order: by win rate from the verdicts, by strength from the table."""
    standing = result.rankings[0].standings[0]
    sizes = {s.system: s.strength for s in result.rankings[0].standings}
    name, phrase = match["system"], match["what"]
    if "strength" in match["size"] + phrase:
        best = {each for each, size in sizes.items() if size > max(sizes.values()) - 1e-6}
        low, neutral, wins = standing.strength_low, 0.0, True
        is_ahead = True
    else:
        best = reading.best(set(reading.rates))
        won, pairs = reading.won(name)
        low, neutral, wins = standing.low, 0.5, 2 * won > pairs
        is_ahead = won > reading.lost(name)
        if abs(100 * reading.rates[name] - float(match["size"].split("%")[0])) > 0.51:
            return False
    is_clear = is_ahead and low is not None and low > neutral
    right = {"wins most comparisons": is_clear and wins, "is the strongest": is_clear}
    return best == {name} and right.get(phrase, not is_clear)


def no_lead(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    return lead(reading, result, match)


def record(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    won, _ = reading.won(match["system"])
    lost = reading.lost(match["system"])
    return (won, lost) == (int(match["won"]), int(match["lost"])) and won <= lost


def nothing_won(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    stated = [int(match[name] or 0) for name in ("tied", "reversed")]
    pairs = int(match["pairs"] or match["tied"])
    in_data = [reading.tied, reading.reversed]
    return stated == in_data and pairs == reading.pairs == sum(in_data)


def same(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    if match["noun"] == "strength":
        strengths = {s.system: s.strength for s in result.rankings[0].standings}
        highest = max(strengths.values())
        return counted(
            match["systems"], {n for n, size in strengths.items() if size > highest - 1e-6}
        )
    return counted(match["systems"], reading.best(set(reading.rates)))


def follows(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    first, second = result.rankings[0].standings[:2]
    strengths = match["size"].startswith("strength")
    low, high = (
        (first.strength_low, second.strength_high) if strengths else (first.low, second.high)
    )
    words = match["overlap"]
    right = words == "" if low is None or high is None else ("do not" in words) == (low > high)
    if strengths:
        return right and second.strength <= first.strength
    others = {name: rate for name, rate in reading.rates.items() if name != first.system}
    return right and others[match["system"]] > max(others.values()) - 1e-6


def circle(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    wins = re.findall(r"(s\d) against (s\d) \((\d+)%\)", match["wins"])
    chain = [system for system, _, _ in wins]
    closed = [opponent for _, opponent, _ in wins] == [*chain[1:], chain[0]]
    rates = [(reading.heads[a, b], float(stated)) for a, b, stated in wins]
    return closed and all(rate > 0.5 and abs(100 * rate - stated) < 0.51 for rate, stated in rates)


def never_compared(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    one, other = match["one"], match["other"]
    return (
        any(
            counted(one, a) and counted(other, b)
            for a in reading.groups
            for b in reading.groups
            if a != b
        )
        and len(reading.groups) == 2
    )


def among(reading: Reading, result: Result, match: re.Match[str]) -> bool:
    return any(
        counted(match["group"], group) and counted(match["best"], reading.best(group))
        for group in reading.groups
    )


RULES: list[tuple[str, Callable[[Reading, Result, re.Match[str]], bool]]] = [
    (
        r"Every verdict on better changed with the order of the texts: they say nothing about the systems",
        void,
    ),
    (
        r"The text shown (?P<place>first|second) got (?P<share>[\d.]+)% of the preference\. Try another judge\.",
        shown_place,
    ),
    (
        rf"(?P<system>s\d) (?P<what>wins most comparisons|is the strongest) on better: (?P<size>{SIZE}) over \d+ items?",
        lead,
    ),
    (
        rf"No system clearly leads on better: (?P<system>s\d) has the (?P<what>highest (?:win rate|strength)), "
        rf"(?P<size>{SIZE}) over \d+ items?",
        no_lead,
    ),
    (
        r"With (?P<items>\d+) items?, no system can lead: you need at least 5\.",
        lambda reading, result, match: (
            reading.items[result.rankings[0].standings[0].system] == int(match["items"]) < 5
        ),
    ),
    (r"But (?P<system>s\d) won (?P<won>\d+) pairs? and lost (?P<lost>\d+)\.", record),
    (
        r"No system won on better: (?:of (?P<pairs>\d+) pairs?, )?(?:(?P<tied>\d+)(?: pairs?)? tied)?"
        r"(?:(?:, and )?the two orders prefer different texts in (?P<reversed>\d+))?",
        nothing_won,
    ),
    (
        rf"(?P<systems>{COUNTED}) have the same (?P<noun>win rate|strength) on better: {SIZE} over \d+ items?",
        same,
    ),
    (
        rf"(?P<system>s\d) follows with (?P<size>{SIZE})(?P<overlap>|{OVERLAP})\.",
        follows,
    ),
    (r"The wins form a cycle: (?P<wins>.*)\.", circle),
    (
        r"Strengths decide, not win rates: the systems met different opponents\.",
        lambda reading, result, match: (
            len(set(reading.sides.groupby(["system", "opponent"]).size())) > 1
            or len(reading.heads) < len(reading.rates) * (len(reading.rates) - 1)
        ),
    ),
    (
        rf"(?P<one>{COUNTED}) were never compared with (?P<other>{COUNTED}) on better",
        never_compared,
    ),
    (
        r"The systems form (?P<n>\d) groups on better that were never compared with each other",
        lambda reading, result, match: int(match["n"]) == len(reading.groups),
    ),
    (
        rf"Among (?P<group>{COUNTED}), (?P<best>{COUNTED}) ha(?:s|ve) the (?:highest|same) win rate: {SIZE} over \d+ items?\.",
        among,
    ),
]


@st.composite
def verdict_lists(draw: st.DrawFn) -> Verdicts:
    """Draw verdicts with leads, ties, cycles, flips, a position bias, and pairs without comparisons."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names, n_items = NAMES[: draw(st.integers(2, 6))], draw(st.sampled_from([1, 3, 5, 10, 20]))
    slight_share = draw(st.sampled_from([0.0, 0.0, 0.7]))
    kind = draw(st.sampled_from(["lead", "even", "circle", "always first", "always second"]))
    met = draw(st.sampled_from([1.0, 1.0, 0.7, 0.3]))
    pairs = [pair for pair in combinations(range(len(names)), 2) if random.random() < met]
    verdicts: Verdicts = []
    for item in range(n_items):
        for a, b in pairs or [(0, 1)]:
            if random.random() < 0.1:
                continue
            ahead = {"lead": a < b, "circle": (b - a) % len(names) <= len(names) // 2}.get(
                kind, random.random() < 0.5
            )
            p = random.choice([1.0, 0.5]) if ahead else random.choice([0.0, 0.5])
            slight = random.random() < slight_share
            p = 0.5 + (p - 0.5) / 50 if slight else p
            first, second = (p, p) if random.random() < 0.8 else (1.0, random.choice([0.0, 0.4]))
            if kind.startswith("always"):
                first, second = (1.0, 0.0) if kind.endswith("first") else (0.0, 1.0)
            verdicts.append(("better", item, names[a], names[b], float(first), float(second)))
    return verdicts or [("better", 0, names[0], names[1], 1.0, 1.0)]


@settings(max_examples=50)
@given(verdict_lists())
@pytest.mark.slow
def test_every_sentence_about_a_ranking_is_true(verdicts: Verdicts) -> None:
    result, reading = run_of(verdicts), Reading(verdicts)
    sentences = finding(result)
    assert sentences
    for sentence in sentences:
        rules = [(rule, m) for form, rule in RULES if (m := re.fullmatch(form, sentence))]
        assert rules, f"no rule says when this is true: {sentence}"
        rule, match = rules[0]
        assert rule(reading, result, match), (sentence, sentences)


def circle_of(n_items: int) -> Verdicts:
    return [
        ("better", item, a, b, 1.0, 1.0)
        for item in range(n_items)
        for a, b in (("s0", "s1"), ("s1", "s2"), ("s2", "s0"))
    ]


def test_wins_in_a_cycle_are_called_a_cycle() -> None:
    headline, sentence = finding(run_of(circle_of(12)))
    assert has_line(headline, "s0, s1 and s2", "same win rate on better", "50%", "12 items")
    assert has_line(
        sentence, "cycle", "s0 against s1 (100%)", "s1 against s2 (100%)", "s2 against s0 (100%)"
    )


def test_one_win_and_nine_ties_make_no_lead() -> None:
    verdicts = [
        ("better", item, "s0", "s1", 1.0 if item == 0 else 0.5, 1.0 if item == 0 else 0.5)
        for item in range(10)
    ]
    headline = finding(run_of(verdicts))[0]
    assert has_line(headline, "No system", "better", "s0 has the highest win rate", "55%")


def test_ties_alone_make_no_lead() -> None:
    verdicts = [("better", item, "s0", "s1", 0.5, 0.5) for item in range(12)]
    (headline,) = finding(run_of(verdicts))
    assert has_line(headline, "No system won", "better", "12 pairs tied")


def test_reversed_verdicts_and_ties_make_no_lead() -> None:
    verdicts = [("better", item, "s0", "s1", 0.5, 0.5) for item in range(12)]
    verdicts += [("better", item, "s0", "s1", 1.0, 0.4) for item in range(12, 20)]
    (headline,) = finding(run_of(verdicts))
    assert has_line(headline, "No system won", "20 pairs", "12 tied", "different texts in 8")


def test_a_system_that_loses_as_many_pairs_as_it_wins_does_not_lead() -> None:
    verdicts = [("better", item, "s0", "s1", 0.9, 0.9) for item in range(10)]
    verdicts += [("better", item, "s0", "s1", 0.49, 0.49) for item in range(10, 20)]
    result = run_of(verdicts)
    assert result.rankings[0].standings[0].low > 0.5
    headline, reason, *_ = finding(result)
    assert has_line(headline, "No system clearly leads", "s0")
    assert has_line(reason, "s0", "10 pairs", "10")


@pytest.mark.parametrize(("first", "second"), [(1.0, 0.0), (0.0, 1.0)])
def test_a_judge_that_prefers_a_position_ranks_nothing(first: float, second: float) -> None:
    verdicts = [
        ("better", item, a, b, first, second)
        for item in range(6)
        for a, b in combinations(NAMES[:3], 2)
    ]
    headline, place = finding(run_of(verdicts))
    assert has_line(headline, "Every verdict on better", "order")
    assert has_line(place, f"shown {'first' if first else 'second'}", "100.0%")


def test_ties_that_become_wins_in_the_other_order_rank_the_systems() -> None:
    verdicts = [("better", item, "s0", "s1", 0.5, 1.0) for item in range(8)]
    headline, *others = finding(run_of(verdicts))
    assert has_line(headline, "s0", "highest win rate", "75%")
    assert not any("Try another judge" in sentence for sentence in others)


def test_systems_that_never_met_are_not_ranked_against_each_other() -> None:
    verdicts = [
        ("better", item, a, b, 1.0, 1.0)
        for item in range(8)
        for a, b in (("s0", "s1"), ("s2", "s3"))
    ]
    result = run_of(verdicts)
    headline, *_ = finding(result)
    assert has_line(headline, "s2 and s3", "never compared", "s0 and s1", "better")
    assert [s.system for s in result.rankings[0].standings] == ["s0", "s1", "s2", "s3"]
    assert result.rankings[0].groups == (("s0", "s1"), ("s2", "s3"))
    assert "group" in result.report()
