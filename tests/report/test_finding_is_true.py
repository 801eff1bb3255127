"""Every sentence of a finding is true. Oracle: an independent analysis of the same table.

The reading has its own means, exact sign flips and Holm correction. A sentence that no rule below knows fails the test:
a new sentence needs a rule that says when it is true.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views.finding import finding
from judge.results.result import Result
from judge.stats.analyze import analyze
from tests.factories import exact_sign_flip_p

Values = Mapping[str, np.ndarray]
"""Values by column (systems × items), NaN if missing."""
EXACT = 10
"""Up to this number of nonzero differences, the analysis enumerates all signs."""
NAMES = [f"s{k}" for k in range(12)]
TITLES = {name: name for name in ("relevance", "style", "coherence", "consistency", "fluency")} | {
    "ROUGE-1": "rouge1"
}
LIST = r"s\d+(?:, s\d+)*(?:(?: and| or) s\d+)?"


def run_of(values: Values) -> Result:
    """Return a run with these values; `rouge1` is a metric, all others are criteria from 1 to 5."""
    columns = [
        Column(name, "metric", Signature(name), 0.0, 1.0)
        if name == "rouge1"
        else Column(name, "criterion", Signature(name), 1.0, 5.0, ("1", "2", "3", "4", "5"), name)
        for name in values
    ]
    n_systems, n_items = next(iter(values.values())).shape
    samples = [
        Sample(f"i{item}", NAMES[system], "text")
        for system, item in product(range(n_systems), range(n_items))
    ]
    rows = [
        Score(f"i{item}", NAMES[system], name, float(matrix[system, item]), Provenance("single"))
        for name, matrix in values.items()
        for system, item in product(range(n_systems), range(n_items))
        if not np.isnan(matrix[system, item])
    ]
    analysis = analyze(samples, columns, rows)
    return Result(
        analysis.table,
        analysis.estimates,
        comparisons=analysis.comparisons,
        overall=analysis.overall,
    )


class Reading:
    """An independent analysis of one column of the table."""

    def __init__(self, values: np.ndarray, shown: Mapping[tuple[str, str], float]) -> None:
        """`shown` are the table's p-values, used if there are too many items to enumerate."""
        self.values = values
        self.known = ~np.isnan(values)
        self.rows = [row for row in range(len(values)) if self.known[row].any()]
        self.means = {row: float(np.nanmean(values[row])) for row in self.rows}
        pairs = [
            (a, b)
            for a, b in combinations(self.rows, 2)
            if (self.known[a] & self.known[b]).sum() > 1
        ]
        p_values = {
            (a, b): exact_sign_flip_p(row)
            if np.count_nonzero(row := self.differences(a, b)) <= EXACT
            else shown[NAMES[a], NAMES[b]]
            for a, b in pairs
        }
        number = len(self.rows) * (len(self.rows) - 1) // 2
        self.wins: set[tuple[str, str]] = set()
        for rank, (pair, p) in enumerate(sorted(p_values.items(), key=lambda entry: entry[1])):
            if p * (number - rank) >= 0.05:
                break
            ahead = self.differences(*pair).mean() > 0
            self.wins.add(tuple(NAMES[row] for row in (pair if ahead else pair[::-1])))

    def differences(self, a: int, b: int) -> np.ndarray:
        both = self.known[a] & self.known[b]
        return np.round(self.values[a][both] - self.values[b][both], 9)

    @property
    def names(self) -> list[str]:
        return [NAMES[row] for row in self.rows]

    def mean(self, name: str) -> float:
        return self.means[NAMES.index(name)]

    def rank(self, name: str) -> int:
        return 1 + sum(mean > self.mean(name) + 1e-9 for mean in self.means.values())

    def beats(self, winners: Sequence[str], losers: Sequence[str]) -> bool:
        return all((a, b) in self.wins for a in winners for b in losers)

    def differ(self, names: Sequence[str]) -> bool:
        return any((a, b) in self.wins for a in names for b in names)

    def coverage(self, name: str) -> tuple[int, int]:
        return int(self.known[NAMES.index(name)].sum()), int(self.known.any(axis=0).sum())


def names_in(text: str) -> list[str]:
    return re.findall(r"s\d+", text)


def readings(values: Values, result: Result) -> dict[str, Reading]:
    shown: dict[str, dict[tuple[str, str], float]] = {}
    for comparison in result.comparisons:
        p_values = shown.setdefault(comparison.column, {})
        for d in comparison.differences:
            p_values[d.system, d.other] = p_values[d.other, d.system] = d.estimate.p
    read = {name: Reading(matrix, shown[name]) for name, matrix in values.items()}
    criteria = [matrix for name, matrix in values.items() if name != "rouge1"]
    if len(criteria) > 1:
        shares = sum((matrix - 1) / 4 for matrix in criteria) / len(criteria)
        read["overall"] = Reading(shares, shown["overall"])
    return read


class Reader:
    """Check a finding sentence by sentence. Remember the column of the headline."""

    def __init__(self, values: Values, result: Result) -> None:
        self.columns = readings(values, result)
        self.main = self.columns.get("overall") or next(iter(self.columns.values()))

    def column(self, title: str) -> Reading:
        return self.columns["overall" if title == "the overall score" else TITLES[title]]

    def read(self, sentence: str) -> bool:
        for pattern, is_true in RULES:
            if match := re.fullmatch(pattern, sentence):
                if match.groupdict().get("on"):
                    self.main = self.column(match["on"])
                return is_true(self, self.main, match)
        raise AssertionError(f"no rule says when this is true: {sentence}")


def all_others(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    others = [name for name in main.names if name != match["best"]]
    number = {"both": 2}.get(match["many"]) or int(match["many"].split()[1])
    return number == len(others) and main.beats([match["best"]], others)


def beats(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    """Check `s0 beats s1, but not significantly s2`. More than three systems are only counted."""
    best = match["best"]
    beaten = {name for name in main.names if (best, name) in main.wins}
    parts = {"behind": beaten, "undecided": set(main.names) - beaten - {best}}
    if not match["undecided"]:
        parts.pop("undecided")
    return all(
        int(match[part].split()[0]) == len(names)
        if match[part].endswith("systems")
        else set(names_in(match[part])) == names
        for part, names in parts.items()
    )


def together(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    """Check `s0 and s1 beat s2; no significant difference between s0 and s1`; long lists end with "2 more"."""
    number = int(match["number"] or len(names_in(match["equal"])))
    ahead = [name for name in main.names if not any((a, name) in main.wins for a in main.names)]
    behind = [name for name in main.names if name not in ahead]
    return (
        number == len(ahead)
        and set(names_in(match["best"])) <= set(ahead)
        and set(names_in(match["equal"] or "")) <= set(ahead)
        and set(names_in(match["behind"])) <= set(behind)
        and main.beats(ahead, behind)
        and not main.differ(ahead)
    )


def listed_wins(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    pairs = re.findall(r"(s\d+) beats (s\d+)", match["wins"])
    return set(pairs) == main.wins


def trailing(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    system, n, worse = match["system"], int(match["n"]), int(match["worse"])
    leaders = [match["leader"]] if match["leader"] else [a for a in main.names if a != system]
    for leader in leaders:
        row = main.differences(NAMES.index(leader), NAMES.index(system))
        shown = abs(float(row.mean())) if len(row) else -1.0
        if (
            (leader, system) in main.wins
            and len(row) == n
            and bool(match["shared"])
            == any(n < main.coverage(name)[0] for name in (leader, system))
            and (row > 0).sum() == worse
            and abs(shown - float(match["gap"])) < 0.00501
        ):
            break
    else:
        return False
    behind = [name for name in main.names if (leader, name) in main.wins]
    ranks = sorted(map(main.rank, main.names))
    if match["what"] == ", the next best,":
        return main.rank(leader) == 1 and main.rank(system) == 2 == ranks[1] and ranks.count(2) == 1
    if match["what"]:
        return all(main.rank(system) < main.rank(name) for name in behind if name != system)
    return True


def no_difference(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    number = {"two systems": 2}.get(match["many"]) or int(match["many"].split()[0])
    return number == len(main.names) and not main.wins


def highest(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    named = names_in(match["systems"])
    value, best = float(match["mean"]), max(main.means.values())
    number = sum(mean >= best - 1e-9 for mean in main.means.values())
    counted = len(named) or int(match["systems"].split()[0])
    all_systems_share_it = number == len(main.rows) > 1
    if all_systems_share_it != (match["which"] == "same"):
        return False
    gap = True
    if match["gap"]:
        row = main.differences(NAMES.index(named[0]), NAMES.index(match["second"]))
        gap = abs(float(row.mean()) - float(match["gap"])) < 0.00501 and len(row) == int(match["n"])
    rest = match["rest"] or ""
    if rest.endswith("from no system"):
        gap = gap and not any(named[0] in win for win in main.wins)
    elif rest.endswith("that both have"):
        gap = gap and any(loser == named[0] for _, loser in main.wins)
    covered = True
    if numbers := re.search(r"(?:for|over) (\d+) of (\d+) items", rest):
        covered = main.coverage(named[0]) == tuple(map(int, numbers.groups()))
    return (
        gap
        and covered
        and counted == number
        and all(main.rank(name) == 1 for name in named)
        and abs(value - best) < 0.00501
    )


def contradiction(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    clauses = match["clauses"].split("; ")
    for clause in clauses:
        if clause.startswith("on "):
            title, text = re.fullmatch(r"on ([\w-]+), (.*)", clause).groups()
            column = reader.column(title)
            claimed = main.wins
            if not claimed:
                criteria = [each for name, each in reader.columns.items() if name != "rouge1"]
                claimed = {win for each in criteria for win in each.wins}
            reversed_wins = {win for win in column.wins if win[::-1] in claimed}
            wins = re.findall(r"(s\d+) beats (s\d+) by ([\d.]+)", text)
            named = {(winner, loser) for winner, loser, _ in wins}
            for winner, loser, gap in wins:
                row = column.differences(NAMES.index(winner), NAMES.index(loser))
                if abs(float(row.mean()) - float(gap)) > 0.00501:
                    return False
            is_count = text[0].isdigit()
            if not named <= reversed_wins or (
                is_count and int(text.split()[0]) > len(reversed_wins)
            ):
                return False
    return True


def metric_disagrees(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    metric, system = reader.column(match["metric"]), match["system"]
    if not main.rows:
        return False
    judges_first = [
        name for name in main.names if not any((a, name) in main.wins for a in main.names)
    ]
    alone = [name for name in metric.names if metric.rank(name) == 1] == [system]
    better = Counter(loser for _, loser in main.wins)
    places = {name: 1 + better[name] for name in main.names}
    is_shared = list(places.values()).count(places[system]) > 1
    if match["place"] == "last":
        right = places[system] == max(places.values()) and not is_shared
    else:
        right = match["place"] == f"{places[system]}{'=' * is_shared}"
    return (
        alone
        and right
        and any((a, system) in main.wins and (system, a) in metric.wins for a in judges_first)
    )


def too_few(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    pairs = len(main.names) * (len(main.names) - 1) // 2
    shared = max(
        ((main.known[a] & main.known[b]).sum() for a, b in combinations(main.rows, 2)), default=0
    )
    least = int(match["least"])
    return (
        int(match["n"]) == shared < least
        and pairs * 2.0 ** (1 - shared) >= 0.05
        and pairs * 2.0 ** (1 - least) < 0.05
    )


def lone_mean(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    column = reader.columns[TITLES.get(match["title"], match["title"])]
    return len(column.rows) == 1 and column.coverage(column.names[0])[0] == int(match["n"])


def undecidable(reader: Reader, main: Reading, match: re.Match[str]) -> bool:
    values = main.values[main.known]
    return {
        "all values are equal": len(np.unique(values)) == 1,
        "one item is too few for intervals and tests": main.known.any(axis=0).sum() == 1,
        "only one system has values": len(main.rows) == 1,
        "no text has a value": not main.rows,
    }.get(match["why"], not main.wins)


Rule = Callable[[Reader, Reading, "re.Match[str]"], bool]
ON = r"(?: on (?P<on>[\w -]+?))?"
RULES: list[tuple[str, Rule]] = [
    (rf"(?P<best>s\d+) beats (?P<many>both|all \d+) other systems{ON}", all_others),
    (
        rf"(?P<best>s\d+) beats (?P<behind>{LIST}|\d+ systems){ON}"
        rf"(?:, but not significantly (?P<undecided>{LIST}|\d+ systems))?",
        beats,
    ),
    (
        rf"(?P<best>{LIST}|s\d+, s\d+ and \d+ more) beat (?P<behind>{LIST}|the other \d+ systems|\d+ systems){ON}; "
        rf"no significant difference (?:between (?P<equal>{LIST})|among the best (?P<number>\d+))",
        together,
    ),
    (r"(?P<wins>s\d+ beats s\d+(?:(?:,| and) s\d+ beats s\d+)*) on (?P<on>[\w -]+)", listed_wins),
    (
        r"(?P<said>\d+) of \d+ pairs of systems differ significantly on (?P<on>[\w -]+)",
        lambda reader, main, match: int(match["said"]) == len(main.wins) > 3,
    ),
    (
        r"(?P<system>s\d+)(?P<what>, the (?:next best|best of those beaten),)? trails(?: (?P<leader>s\d+))? by "
        r"(?P<gap>[\d.]+) \(p [<=] [\d.]+\) and is worse on (?P<worse>\d+) of (?P<n>\d+) (?P<shared>shared )?items\.",
        trailing,
    ),
    (
        r"No significant difference between the (?P<many>two systems|\d+ systems) on (?P<on>[\w -]+)",
        no_difference,
    ),
    (
        rf"No significant difference between (?P<pair>{LIST})\.",
        lambda reader, main, match: not main.differ(names_in(match["pair"])),
    ),
    (
        rf"(?P<systems>{LIST}|\d+ systems) (?:has|have) the (?P<which>highest|same) mean \((?P<mean>[\d.]+)\)"
        r"(?:, (?P<gap>[\d.]+) above (?P<second>s\d+) on (?P<n>\d+) items?)?"
        r"(?P<rest>,? (?:but|over)[^.]*)?\."
        r"(?: If that is real, detecting it needs (?:about|more than) [\d,]+ items \(80% power\)\.)?",
        highest,
    ),
    (
        r"(?P<system>s\d+) has (?:scores|values) for (?P<known>\d+) of (?P<items>\d+) items\.",
        lambda reader, main, match: (
            main.coverage(match["system"]) == (int(match["known"]), int(match["items"]))
        ),
    ),
    (r"The criteria contradict each other: (?P<clauses>.*)\.", contradiction),
    (
        r"(?P<metric>ROUGE-1) ranks (?P<system>s\d+) first; the judge ranks it (?P<place>last|\d+=?)(?: \(.*\))?\.",
        metric_disagrees,
    ),
    (
        r"With (?P<n>\d+) items?, no difference between \d+ systems can be significant: "
        r"you need at least (?P<least>\d+)\.",
        too_few,
    ),
    (r"The systems cannot be compared on (?P<on>[\w -]+): (?P<why>.*)", undecidable),
    (
        r"These differences form a cycle: no system is the best\.",
        lambda reader, main, match: all(
            any(loser == name for _, loser in main.wins) for name in main.names
        ),
    ),
    (r"(?P<title>[\w-]+): [\d.]+.* over (?P<n>\d+) items?\.?", lone_mean),
]


@st.composite
def tables(draw: st.DrawFn) -> dict[str, np.ndarray]:
    """Draw values of 2–12 systems on 1–30 items, with leads, ties, missing values, reversed and constant columns."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_systems = draw(st.sampled_from([2, 3, 3, 4, 5, 12]))
    n_items = draw(st.sampled_from([1, 2, 6, 8, 9, 10, 12, 20, 30]))
    names = draw(st.sampled_from([("relevance",), ("relevance", "style")]))
    step = draw(st.sampled_from([0.25, 1.0]))
    leads = random.choice([0.0, 0.5, 1.0, 2.0, 3.0], (n_systems, 1))
    noise = draw(st.sampled_from([0.0, 0.3, 1.0]))

    def column(leads: np.ndarray) -> np.ndarray:
        raw = 1.5 + leads + noise * random.normal(size=(n_systems, n_items))
        return np.clip(np.round(raw / step) * step, 1.0, 5.0)

    values = {name: column(leads) for name in names}
    if "style" in values and draw(st.booleans()):
        values["style"] = column(3.0 - leads)
    if draw(st.booleans()):
        shift = draw(st.sampled_from([leads, 3.0 - leads, 0 * leads]))
        values["rouge1"] = (column(shift) - 1) / 4
    missing = draw(st.sampled_from(["none", "some", "one system", "one column"]))
    if missing == "some":
        for matrix in values.values():
            matrix[random.random(matrix.shape) < 0.3] = np.nan
    elif missing == "one system":
        lost = random.random(n_items) < draw(st.sampled_from([0.3, 0.8]))
        for matrix in values.values():
            matrix[0, lost] = np.nan
    elif missing == "one column":
        matrix = values[names[-1]]
        matrix[:, random.random(n_items) < 0.9] = np.nan
    return values


@settings(max_examples=50)
@given(tables())
@pytest.mark.slow
def test_every_sentence_is_true(values: dict[str, np.ndarray]) -> None:
    result = run_of(values)
    reader, sentences = Reader(values, result), finding(result)
    for sentence in sentences:
        assert reader.read(sentence), (sentence, sentences)


@pytest.mark.slow
def test_sentences_about_recorded_scores_are_true(shared_data: Callable[[str], Path]) -> None:
    """Use random subsets of the systems and items that GPT-3.5 scored."""
    path = shared_data("summeval_judged/gpt-3.5-turbo-0301_rts.jsonl")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    places = [row["item_id"].split("::") for row in rows]
    items, systems = (sorted({place[end] for place in places}) for end in (0, 1))
    criteria = ("relevance", "coherence", "consistency", "fluency")
    scores = {name: np.full((len(systems), len(items)), np.nan) for name in criteria}
    for row, (item, system) in zip(rows, places, strict=True):
        if row["scores"] and 1 <= row["scores"][0] <= 5:
            place = systems.index(system), items.index(item)
            scores[row["criterion"]][place] = row["scores"][0]
    random = np.random.default_rng(0)
    for _ in range(20):
        some_systems = random.choice(len(systems), random.integers(2, 7), replace=False)
        some_items = random.choice(len(items), random.integers(5, 40), replace=False)
        names = random.choice(criteria, random.integers(1, 5), replace=False)
        values = {name: scores[name][np.ix_(some_systems, some_items)] for name in names}
        result = run_of(values)
        reader, sentences = Reader(values, result), finding(result)
        for sentence in sentences:
            assert reader.read(sentence), (sentence, sentences)
