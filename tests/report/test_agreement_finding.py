"""Every sentence of a validation is true. Oracle: an independent analysis of the table with pandas and scipy."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from judge.commands.validate.record import Validation
from judge.core import plugins
from judge.core.records import Column, Estimate, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.document import Cell, Document, Table
from judge.report.views.agreement_finding import criterion_sentences
from judge.report.views.metrics_table import metrics_table
from judge.stats.bootstrap import Bootstrap
from judge.stats.coefficients import Level, of_pair
from judge.stats.correlation import Correlation, CorrelationWithRatings
from judge.stats.human_agreement import Rated, Row, Versus, people
from judge.stats.rated_columns import RatedColumn
from judge.table import Table as Data
from tests.factories import has_line

CRITERION = "tone"
SCALE = Column(CRITERION, "criterion", Signature(CRITERION, "x"), 1.0, 5.0)
NEAR = 0.0015  # rounding in the report may change the sign of these ends
NUMBERS = r"\(([+−]?[\d.]+)(?: \[(.+?), (.+?)\])?\)"
"""`(+0.310 [0.200, 0.400])`"""


@dataclass(eq=False)  # what was computed of it is cached
class Drawn:
    """Ratings, lengths and the values of each judge and metric: items × systems, NaN for missing values."""

    ratings: pd.DataFrame
    lengths: pd.DataFrame
    judges: dict[str, pd.DataFrame]
    metrics: dict[str, pd.DataFrame]

    @property
    def texts(self) -> list[tuple[str, str]]:
        return [(item, system) for item in self.ratings.index for system in self.ratings.columns]


KINDS = ("people", "noise", "reversed", "constant", "half", "ties")


def column(kind: str, ratings: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """Return a column that follows people, ignores or reverses them, or is constant. `half` has half of the values."""
    noise = random.normal(size=ratings.shape)
    values = {
        "people": ratings + 0.7 * noise,
        "noise": 3 + noise,
        "reversed": 6 - ratings + 0.7 * noise,
        "constant": 0 * ratings + 3,
        "half": (ratings + 0.7 * noise).where(random.random(ratings.shape) < 0.5),
        "ties": (ratings + noise).round(),
    }[kind]
    return pd.DataFrame(values, ratings.index, ratings.columns).clip(1, 5)


@st.composite
def tables(draw: Any) -> Drawn:
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    items = [f"i{n}" for n in range(draw(st.integers(1, 30)))]
    systems = [f"s{n}" for n in range(draw(st.integers(2, 12)))]
    shape = len(items), len(systems)
    spread = draw(st.sampled_from([0, 2, 5]))
    ratings = pd.DataFrame(random.integers(0, spread + 1, shape) % 5 + 1.0, items, systems)
    judges = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    metrics = draw(st.lists(st.sampled_from(KINDS), max_size=2))
    length = column(
        draw(st.sampled_from(["people", "noise", "reversed", "constant"])), ratings, random
    )
    return Drawn(
        ratings,
        (10 * length).round(),
        {f"judge{n}": column(kind, ratings, random) for n, kind in enumerate(judges)},
        {f"metric{n}": column(kind, ratings, random) for n, kind in enumerate(metrics)},
    )


def cells(frame: pd.DataFrame) -> dict[tuple[str, str], float]:
    return {(item, system): float(v) for (item, system), v in frame.stack().items() if v == v}


def rated(drawn: Drawn) -> Rated:
    """Return judge's result for these tables."""
    samples = tuple(
        Sample(
            item,
            system,
            " ".join(["word"] * int(drawn.lengths.loc[item, system])),
            human={CRITERION: float(drawn.ratings.loc[item, system])},
        )
        for item, system in drawn.texts
    )
    columns = tuple(Column(name, "metric", Signature(name, "external")) for name in drawn.metrics)
    scores = tuple(
        Score(*key, name, value, Provenance("external"))
        for name, frame in drawn.metrics.items()
        for key, value in cells(frame).items()
    )
    judges = []
    for name, frame in drawn.judges.items():
        values = cells(frame)
        rows = {key: Score(*key, name, v, Provenance("single")) for key, v in values.items()}
        judges.append(RatedColumn(name, Signature(name), values, CRITERION, SCALE, scores=rows))
    (one,) = people(Data(samples, columns, scores), judges, Bootstrap(20), measure=False)
    return one


# The independent analysis


def by_item(values: pd.DataFrame, ratings: pd.DataFrame) -> pd.Series:
    """Return Spearman's correlation of each item in which both sides vary, as Pearson of the ranks."""
    x, y = shared(values.round(9), ratings)
    vary = (x.nunique(axis=1) > 1) & (y.nunique(axis=1) > 1)
    return x[vary].rank(axis=1).corrwith(y[vary].rank(axis=1), axis=1)


def shared(one: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return one.where(other.notna()), other.where(one.notna())


def lead(one: pd.DataFrame, other: pd.DataFrame, ratings: pd.DataFrame) -> pd.Series:
    """Return the difference of the two coefficients of each item, on texts with both values."""
    first, second = shared(one, other)
    return (by_item(first, ratings) - by_item(second, ratings)).dropna()


def t_interval(values: pd.Series, tests: int = 1) -> tuple[float, float] | None:
    """Return Student's interval of a mean, Bonferroni-corrected for `tests`. None below 5 items."""
    if len(values) < 5:
        return None
    low, high = stats.t.interval(
        1 - 0.05 / tests, len(values) - 1, values.mean(), stats.sem(values)
    )
    return float(low), float(high)


def sign_of_lead(values: pd.Series, tests: int = 1) -> str:
    """Return the sign of a lead. A lead that is equal in all items has no t interval; another method decides."""
    same = len(values) >= 5 and values.round(9).nunique() == 1
    if same:
        return "near" if values.round(9).any() else "equal"
    return sign(t_interval(values, tests))


def wilson(values: pd.Series) -> tuple[float, float] | None:
    """Return the interval of a mean between −1 and 1 (docs/statistics.md, A mean). None below 5 items."""
    n = len(values)
    if n < 5:
        return None
    share, variance = (values.mean() + 1) / 2, values.var() / 4
    tries = n * share * (1 - share) / variance if variance > 1e-12 else n
    t = stats.t.ppf(0.975, n - 1)
    middle = (share + t * t / (2 * tries)) / (1 + t * t / tries)
    half = (
        t
        / (1 + t * t / tries)
        * np.sqrt(max(0.0, share * (1 - share) / tries + t * t / (4 * tries**2)))
    )
    return 2 * (middle - half) - 1, 2 * (middle + half) - 1


def sign(ends: tuple[float, float] | None) -> str:
    """Return the sign of an interval, or `near` if rounding could change it."""
    if ends is None:
        return "untested"
    if min(map(abs, ends)) < NEAR:
        return "near"
    return "above" if ends[0] > 0 else "below" if ends[1] < 0 else "holds 0"


@functools.cache
def items_of_judges(drawn: Drawn) -> list[int]:
    """Return the number of items in which each judge has a correlation with people."""
    return [len(by_item(values, drawn.ratings)) for values in drawn.judges.values()]


@functools.cache
def metrics_with_items(drawn: Drawn) -> dict[str, pd.DataFrame]:
    """Return length and the metrics with at least half as many items as the judges."""
    most = max(items_of_judges(drawn))
    needed = max(most / 2, 10 if most >= 10 else 0, 1)
    return {
        metric: values
        for metric, values in {"length": drawn.lengths, **drawn.metrics}.items()
        if len(by_item(values, drawn.ratings)) >= needed
    }


@functools.cache
def leads(drawn: Drawn, name: str) -> dict[str, tuple[pd.Series, str]]:
    """Return the judge's lead over each reference point, and its sign.

    Unless all intervals lie above 0, they are corrected for all columns but one.
    """
    differences = leads_by_item(drawn, name)
    signs = {sign_of_lead(values) for values in differences.values()}
    if signs == {"above"}:
        return {metric: (values, "above") for metric, values in differences.items()}
    if signs <= {"above", "near"}:  # rounding decides on the correction
        return {metric: (values, "near") for metric, values in differences.items()}
    columns = np.count_nonzero(items_of_judges(drawn)) + len(metrics_with_items(drawn))
    tests = max(1, columns - 1)
    return {metric: (values, sign_of_lead(values, tests)) for metric, values in differences.items()}


def leads_by_item(drawn: Drawn, name: str) -> dict[str, pd.Series]:
    """Return the judge's lead over each reference point, item by item."""
    scores = drawn.judges[name]
    differences = {}
    for metric, values in metrics_with_items(drawn).items():
        difference = lead(scores, values, drawn.ratings)
        if len(difference):
            differences[metric] = difference
    if "length" in differences:
        turned = lead(scores, -drawn.lengths, drawn.ratings)
        if turned.mean() < differences["length"].mean() - 1e-12:
            del differences["length"]
            differences["length reversed"] = turned
    return differences


def expected(drawn: Drawn, name: str) -> str:
    """Return the verdict on a judge by the independent analysis."""
    rhos = by_item(drawn.judges[name], drawn.ratings)
    if not len(rhos):
        return "unknown"
    side = sign(wilson(rhos))
    if side != "above":
        return side
    places = {each for _, each in leads(drawn, name).values()}
    if "near" in places:
        return "near"
    return "star" if places == {"above"} else "no star" if places else "alone"


def validation(drawn: Drawn) -> tuple[Rated, Document]:
    one = rated(drawn)
    return one, plugins.document(Validation("t", (one,)))


def usable(one: Rated) -> bool:
    """Return whether the report has the correlation level of the independent analysis."""
    return any(("within-items", "spearman") in row.correlation.estimates for row in one.rows)


def check_stars(drawn: Drawn, document: Document) -> None:
    (overview,) = (block for block in document.summary if isinstance(block, Table))
    for row, name in zip(overview.rows, drawn.judges, strict=True):
        verdict = expected(drawn, name)
        if verdict != "near":
            assert (row[1].mark == "*") == (verdict == "star"), (name, verdict)


def check_headline(drawn: Drawn, document: Document) -> None:
    headline = document.finding[0]
    name = headline.split()[0]
    verdict = expected(drawn, name)
    words = {
        "agrees with people better than every": {"star"},
        "ranks against people": {"below"},
        "is not significantly better than chance": {"holds 0"},
        "agrees with people less than a baseline": {"no star"},
        "is not significantly better than every baseline": {"no star"},
        "agrees with people better than chance": {"alone"},
        "could not be tested against chance": {"untested"},
        "could not be compared with people": {"unknown"},
    }
    headline = re.sub(
        r"better than \w+, the only baseline,", "better than every baseline", headline
    )
    (position,) = (text for text in words if text in headline)
    assert verdict == "near" or verdict in words[position]


SENTENCES = {
    "significantly better than": {"above"},
    "significantly worse than": {"below"},
    "no significant difference from": {"holds 0"},
    "not tested against": {"untested"},
    "in every item equal to": {"equal"},
}


def pieces(text: str) -> list[tuple[str, str]]:
    """Return each group of a sentence with the names in it."""
    sentences = []
    for part in text.split("; "):
        for words in SENTENCES:
            if part.startswith(words):
                sentences += [
                    (words, name)
                    for name, *_ in re.findall(rf"([\w ]+) {NUMBERS}", part[len(words) :])
                ]
    return [(words, name.strip(" ,")) for words, name in sentences]


def check_comparisons(drawn: Drawn, document: Document) -> None:
    defined = [name for name, values in drawn.judges.items() if len(by_item(values, drawn.ratings))]
    tests = max(1, len(list(combinations(defined, 2))))
    sentences = document.data["criteria"][0]["sentences"]["within-items"]
    by_judge = {name: leads(drawn, name) for name in drawn.judges}
    for sentence in sentences:
        name, _, text = sentence.removesuffix(".").partition(": ")
        own_leads = by_judge.get(name, {})
        for words, other in pieces(text):
            if other == "chance":
                side = sign(wilson(by_item(drawn.judges[name], drawn.ratings)))
            elif other in drawn.judges:
                difference = lead(drawn.judges[name], drawn.judges[other], drawn.ratings)
                side = sign_of_lead(difference, tests)
            else:
                _, side = own_leads[other]
            assert side == "near" or side in SENTENCES[words], sentence
        for words, side in (
            ("not significantly better than chance", "holds 0"),
            ("ranks against people", "below"),
        ):
            if words in text:
                assert sign(wilson(by_item(drawn.judges[name], drawn.ratings))) in (side, "near")


def check(drawn: Drawn) -> None:
    one, document = validation(drawn)
    if usable(one):
        check_stars(drawn, document)
        check_headline(drawn, document)
        check_comparisons(drawn, document)


@settings(max_examples=15)
@given(tables())
@pytest.mark.slow
def test_agreement_findings_follow_from_the_intervals(drawn: Drawn) -> None:
    """A star needs an interval above 0 and a lead over every reference point."""
    check(drawn)


@pytest.mark.slow
def test_agreement_sentences_on_recorded_scores_are_true(
    shared_data: Callable[[str], Path],
) -> None:
    """Use random subsets of SummEval with two recorded judges and a random metric."""
    texts = pd.read_json(shared_data("summeval.jsonl"), lines=True)
    wordings = ("mcq", "rts")
    judged = [
        pd.read_json(shared_data(f"summeval_judged/gpt-3.5-turbo-0301_{each}.jsonl"), lines=True)
        for each in wordings
    ]
    random = np.random.default_rng(0)
    for criterion in ("coherence", "consistency", "fluency", "relevance"):
        texts["rating"] = [human[criterion] for human in texts.human]
        texts["words"] = texts.summary.str.split().str.len()
        values = dict(zip(wordings, judged, strict=True))
        for name, rows in values.items():
            of_text = rows[rows.criterion == criterion].set_index("item_id").mean_score
            texts[name] = texts.id.map(of_text)
        scored = texts.dropna(subset=[*wordings])
        items = random.choice(scored.doc_id.unique(), int(random.integers(2, 31)), replace=False)
        systems = random.choice(scored.system.unique(), int(random.integers(2, 13)), replace=False)
        chosen = scored[scored.doc_id.isin(items) & scored.system.isin(systems)]
        frames = {
            name: chosen.pivot(index="doc_id", columns="system", values=name)
            for name in ("rating", "words", *wordings)
        }
        rated_texts = frames["rating"].dropna(axis=1)
        if rated_texts.empty:
            continue
        columns = {name: frame[rated_texts.columns] for name, frame in frames.items()}
        metrics = {"random": column("noise", columns["rating"], random)}
        drawn = Drawn(
            columns["rating"], columns["words"], {n: columns[n] for n in wordings}, metrics
        )
        check(drawn)


# One test for each fault


def estimate(value: float, low: float | None, high: float | None, n: int = 12) -> Estimate:
    return Estimate("spearman", value, low, high, n, "how")


def criterion(correlation: Estimate, name: str = "tone", **leads_over: Estimate) -> Rated:
    judge = Row("m", "judge", "m", Correlation(36, {("within-items", "spearman"): correlation}, {}))
    baselines = tuple(
        Row(
            each,
            "baseline",
            each,
            Correlation(36, {("within-items", "spearman"): estimate(0, -0.1, 0.1)}, {}),
        )
        for each in leads_over
    )
    differences = {("m", each, "within-items"): e for each, e in leads_over.items()}
    return Rated(name, 36, (judge,), baselines, None, "", differences)


def findings(*criteria: Rated) -> tuple[str, ...]:
    return plugins.document(Validation("t", criteria)).finding


CLEAR, WIN, EVEN = estimate(0.5, 0.3, 0.7), estimate(0.4, 0.2, 0.6), estimate(0.1, -0.1, 0.3)


def test_random_scores_do_not_beat_a_length_that_people_dislike() -> None:
    """People prefer short texts, and the judge's scores are random. The judge must beat the reversed length."""
    random = np.random.default_rng(5)
    starred = compared = 0
    for _ in range(8):
        ratings = pd.DataFrame(
            random.integers(1, 6, (30, 6)).astype(float),
            [f"i{n}" for n in range(30)],
            [f"s{n}" for n in range(6)],
        )
        noise = pd.DataFrame(
            random.integers(1, 6, ratings.shape).astype(float), ratings.index, ratings.columns
        )
        lengths = (60 - 10 * ratings + random.normal(0, 10, ratings.shape)).round().clip(lower=1)
        document = validation(Drawn(ratings, lengths, {"m": noise}, {}))[1]
        starred += document.summary[0].rows[0][1].mark == "*"
        compared += "agrees with people better" in document.finding[0]
    assert (starred, compared) == (0, 0)


@pytest.mark.parametrize(
    ("correlation", "words"),
    [
        (estimate(0.07, -0.08, 0.21), "is not significantly better than chance"),
        (estimate(0.07, 0.0001, 0.21), "is not significantly better than chance"),
        (estimate(-0.4, -0.6, -0.2), "ranks against people"),
    ],
)
def test_an_interval_that_is_not_above_0_has_no_star(correlation: Estimate, words: str) -> None:
    headline, line = findings(criterion(correlation, length=WIN))
    assert headline == f"m {words} on tone"
    assert line.startswith(f"tone: {words.removeprefix('is ')} (")


def test_every_baseline_is_the_claim_and_the_unbeaten_one_is_named() -> None:
    criteria = [criterion(CLEAR, f"c{n}", length=EVEN, bleu=WIN) for n in range(4)]
    headline, *lines = findings(*criteria)
    assert has_line(headline, "m is not significantly better", "4 criteria")
    assert has_line(lines[0], "c0", "no significant difference", "length", "+0.10 [−0.10, 0.30]")
    assert has_line(lines[-1], "length", "c0, c1, c2 and 1 more")


def test_a_single_baseline_is_named_and_not_called_every_baseline() -> None:
    headline, *_ = findings(criterion(CLEAR, length=WIN))
    assert has_line(headline, "better than length, the only baseline", "tone")
    headline, *_ = findings(criterion(CLEAR, length=EVEN))
    assert has_line(headline, "not significantly better than length, the only baseline", "tone")
    headline, *_ = findings(criterion(CLEAR, length=WIN, bleu=WIN))
    assert has_line(headline, "better than every baseline", "tone")


def test_bold_values_follow_the_sentences() -> None:
    """Regression: a judge was "significantly better than" a metric that the table had in bold."""
    level: Level = "within-items"
    rated_criterion = replace(
        criterion(CLEAR, rouge2=estimate(0.158, 0.004, 0.311), bleu=EVEN),
        behind={("rouge2", level): estimate(0.158, -0.05, 0.36), ("bleu", level): WIN},
    )
    (sentence,) = criterion_sentences(rated_criterion, level)
    assert has_line(sentence, "no significant difference from BLEU", "significantly better than")
    table = metrics_table([rated_criterion], level)
    assert table is not None
    tones = {row[0].text: row[1].tone for row in table.rows}
    assert tones == {"m": "good", "ROUGE-2": "", "BLEU": "strong"}


@pytest.mark.parametrize(
    ("lead_in_sentence", "lead_over_all", "tone"), [(WIN, EVEN, ""), (EVEN, WIN, "strong")]
)
def test_bold_values_follow_the_sentences_on_two_judges(
    lead_in_sentence: Estimate, lead_over_all: Estimate, tone: str
) -> None:
    level: Level = "within-items"
    one_judge = criterion(CLEAR, length=WIN)
    weaker = Correlation(36, {(level, "spearman"): estimate(0.3, 0.1, 0.5)}, {})
    two_judges = replace(
        one_judge,
        judges=(*one_judge.judges, Row("k", "judge", "k", weaker)),
        versus=(Versus("m", "k", level, lead_in_sentence, None),),
        behind={("k", level): lead_over_all},
    )
    table = metrics_table([two_judges], level)
    assert table is not None
    tones = {row[0].text: row[1].tone for row in table.rows}
    assert tones["k"] == tone


def best_cell(lead_over_length: Estimate) -> Cell:
    """Return the cell of judge m, which agrees best, in the table of metrics."""
    table = metrics_table([criterion(CLEAR, length=lead_over_length)], "within-items")
    assert table is not None
    return table.rows[0][1]


def test_a_lead_that_rounds_to_0_has_no_star_in_the_table_of_metrics() -> None:
    assert best_cell(estimate(0.2, 0.0006, 0.4)).mark == "*"
    assert best_cell(estimate(0.2, 0.0004, 0.4)).mark == ""


def test_a_metric_whose_lead_rounds_to_0_is_bold_in_the_table_of_metrics() -> None:
    table = metrics_table([criterion(CLEAR, length=estimate(0.2, 0.0004, 0.4))], "within-items")
    assert table is not None
    assert table.rows[1][1].tone == "strong"


def test_a_metric_that_equals_the_best_one_in_every_item_is_bold() -> None:
    equal = criterion(CLEAR, rouge1=estimate(0.0, None, None), bleu=WIN)
    table = metrics_table([equal], "within-items")
    assert table is not None
    tones = {row[0].text: row[1].tone for row in table.rows}
    assert tones == {"m": "good", "ROUGE-1": "strong", "BLEU": ""}


def test_single_baselines_need_corrected_intervals_and_all_of_them_do_not() -> None:
    """All three intervals of 95% lie above 0, or one of them does not."""
    random = np.random.default_rng(3)
    items, systems = [f"i{n}" for n in range(24)], [f"s{n}" for n in range(5)]
    ratings = pd.DataFrame(random.normal(3, 1, (24, 5)), items, systems)

    def with_noise(size: float) -> pd.DataFrame:
        return ratings + size * random.normal(size=ratings.shape)

    lengths = (10 * column("noise", ratings, random)).round().clip(lower=1)
    judges = {"m": with_noise(0.5)}
    weak = {"metric0": with_noise(4.0), "metric1": with_noise(4.0)}
    for metrics, tests in ((weak, 1), ({**weak, "metric2": with_noise(0.5)}, 4)):
        drawn = Drawn(ratings, lengths, judges, metrics)
        difference = rated(drawn).differences["m", "metric0", "within-items"]
        expected_ends = t_interval(lead(judges["m"], metrics["metric0"], ratings), tests)
        assert (difference.low, difference.high) == pytest.approx(expected_ends)


def test_the_worst_verdicts_come_first() -> None:
    against, chance = estimate(-0.4, -0.6, -0.2), estimate(0.0, -0.2, 0.2)
    criteria = [criterion(CLEAR, "good", length=WIN)]
    criteria += [criterion(CLEAR, f"even{n}", length=EVEN) for n in range(3)]
    criteria += [criterion(chance, "chance", length=WIN), criterion(against, "against", length=WIN)]
    headline, *lines = findings(*criteria)
    assert has_line(headline, "m", "better than length", "1 of 6 criteria")
    assert [line.partition(":")[0] for line in lines[:3]] == ["against", "chance", "even0"]
    headline, *_ = findings(*criteria[-2:])
    assert has_line(headline, "against people", "1 of 2", "better than chance", "1 of 2")


def test_a_correlation_without_an_interval_is_not_tested() -> None:
    few = criterion(CLEAR, length=estimate(1.127, None, None, 3))
    text = " ".join(findings(few))
    assert "no significant difference" not in text
    assert has_line(text, "not tested against length", "+1.13", "needs 5 items")
    headline, line = findings(criterion(estimate(0.9, None, None, 3), length=WIN))
    assert has_line(headline, "m could not be tested", "chance", "tone")
    assert has_line(line, "tone: not tested", "chance", "0.90", "needs 5 items")


def test_the_summary_shows_that_an_interval_excludes_0() -> None:
    document = plugins.document(
        Validation("t", (criterion(estimate(0.14, 0.002, 0.28), length=WIN),))
    )
    (cell,) = (cell for cell in document.summary[0].rows[0] if cell.mark == "*")
    assert cell.note == "[0.002, 0.280]"


def equal_judges(random: np.random.Generator, items: int = 12) -> Drawn:
    """Return six judges that follow people equally well."""
    names = [f"i{n}" for n in range(items)], [f"s{n}" for n in range(4)]
    ratings = pd.DataFrame(random.integers(1, 6, (items, 4)).astype(float), *names)
    judges = {f"judge{n}": column("people", ratings, random) for n in range(6)}
    return Drawn(ratings, 0 * ratings + 3, judges, {})


def test_the_best_of_six_equal_judges_is_not_significantly_better() -> None:
    """In this draw an uncorrected 95% interval of the best judge's lead is above 0, but no corrected interval is."""
    drawn = equal_judges(np.random.default_rng(58))
    means = {name: by_item(values, drawn.ratings).mean() for name, values in drawn.judges.items()}
    best = max(means, key=lambda name: means[name])
    others = [values for name, values in drawn.judges.items() if name != best]
    over_others = [lead(drawn.judges[best], values, drawn.ratings) for values in others]
    assert "above" in [sign_of_lead(each) for each in over_others]
    text = " ".join(validation(drawn)[1].finding)
    assert "no significant difference from judge" in text
    assert not re.search("significantly (better|worse) than judge", text)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["within-items", "all-texts"])
def test_equal_judges_seldom_differ(level: Level) -> None:
    """The best of six judges is compared with each of the others."""
    random = np.random.default_rng(1)
    false = 0
    for _ in range(20):
        drawn = equal_judges(random, 20)
        against = CorrelationWithRatings(drawn.ratings.to_numpy(), Bootstrap(2))
        columns = [values.to_numpy() for values in drawn.judges.values()]
        ratings = drawn.ratings.to_numpy()
        value = [of_pair(each, ratings, level, "spearman")(np.ones((1, 20)))[0] for each in columns]
        best = columns.pop(int(np.argmax(value)))
        differences = [against.difference(best, other, level, n_intervals=15) for other in columns]
        false += any(
            each is not None and each.low is not None and each.low > 0 for each in differences
        )
    assert false <= 1
