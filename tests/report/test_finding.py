from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import judge
from judge.cli import app
from judge.config import RunConfig
from judge.core.format import rough_count
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views.columns import main_comparison
from judge.report.views.finding import finding
from judge.report.views.leaderboard import view
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.stats.analyze import analyze
from judge.table import Table
from tests.factories import has_line, lines_hold

SCALE = (1.0, 5.0, ("1", "2", "3", "4", "5"))


def result_of(
    values: Mapping[str, Mapping[str, Sequence[float]]], against: str = "", **better: str
) -> Result:
    """Return a run from values by system, column and item."""
    names = list(dict.fromkeys(name for columns in values.values() for name in columns))
    columns = [
        Column(name, "metric", Signature(name), better="lower")
        if better.get(name) == "lower"
        else Column(name, "criterion", Signature(name), *SCALE)
        for name in names
    ]
    samples = [
        Sample(f"i{k}", s, "o")
        for s, rows in values.items()
        for k in range(max(map(len, rows.values())))
    ]
    rows = [
        Score(f"i{k}", system, name, value, Provenance("single"))
        for system, columns_of_system in values.items()
        for name, row in columns_of_system.items()
        for k, value in enumerate(row)
    ]
    analysis = analyze(samples, columns, rows, against=against)
    more = {"comparisons": analysis.comparisons, "overall": analysis.overall}
    return Result(
        analysis.table,
        analysis.estimates,
        RunInfo(config=RunConfig(against=against or None)),
        **more,
    )


def wave(mean: float, n: int = 16) -> list[float]:
    return [mean + (k % 3 - 1) / 2 for k in range(n)]


def of(*names: str, **values: list[float]) -> dict[str, dict[str, list[float]]]:
    """A function that returns values of systems on one criterion, or on the criteria `names`."""
    return {system: dict.fromkeys(names or ("fluency",), row) for system, row in values.items()}


def test_finding_names_the_best_system_and_its_lead() -> None:
    noisy = [value + (0.2 if k % 2 else -0.2) for k, value in enumerate(wave(3.0))]
    headline, trailing = finding(result_of(of(a=wave(4.0), b=noisy)))
    assert headline == "a beats b"
    assert has_line(trailing, "b trails by 1.00", "p < 0.001", "16 of 16 items")
    headline, trailing = finding(result_of(of(a=wave(4.0), b=noisy, c=wave(2.0))))
    assert headline == "a beats both other systems"
    assert has_line(trailing, "b", "next best", "trails by 1.00")


def test_the_lowest_is_best_if_lower_is_better() -> None:
    noisy = [value + (2.0 if k % 2 else -2.0) for k, value in enumerate(wave(60.0))]
    headline, trailing = finding(
        result_of({"a": {"ter": noisy}, "b": {"ter": wave(40.0)}}, ter="lower")
    )
    assert headline == "b beats a"
    assert trailing.startswith("a trails by 20.00 ")


def test_systems_that_share_the_first_rank_are_named_together() -> None:
    a, b = [4.0, 3.0, 5.0, 2.0] * 5, [3.0, 4.0, 4.0, 2.5] * 5
    headline, *_ = finding(result_of(of(a=a, b=b, c=[1.0, 1.5] * 10)))
    assert has_line(headline, "a and b beat c", "no significant difference")


def test_a_pair_behind_the_best_without_a_difference_is_named() -> None:
    b, c = [2.0, 2.5, 3.0, 2.0] * 5, [2.5, 2.0, 2.0, 3.0] * 5
    lines = finding(result_of(of(a=wave(4.5, 20), b=b, c=c)))
    assert has_line(lines, "No significant difference", "b and c")


def test_finding_without_a_difference_names_the_items_needed() -> None:
    a, b = [4.0, 3.0, 5.0, 2.0] * 5, [3.0, 4.0, 4.0, 2.5] * 5
    headline, detail = finding(result_of(of(a=a, b=b)))
    assert has_line(headline, "No significant difference", "fluency")
    # The standard deviation of the differences is 0.916: (1.960 + 0.842)² · 0.916² / 0.125² = 421.2, and ties.
    assert has_line(detail, "a", "highest mean", "3.50", "0.12 above b", "20 items")
    assert has_line(detail, "about 430 items", "80% power")


TWO = [0.5, -0.5, 1.0, -1.0, 0.25, 0.0, -0.5, 1.0, 0.5]
RUNS: dict[str, dict[str, list[float]]] = {
    "two systems": {
        "a": wave(3.0, 9),
        "b": [v - d for v, d in zip(wave(3.0, 9), TWO, strict=True)],
    },
    "five systems": {
        name: [3 + (k * k + n) % (5 + k) / 4 for n in range(24)] for k, name in enumerate("abcde")
    },
    "equal means": {"a": wave(3.0), "b": wave(3.0)[::-1]},
    "two items": {"a": [4.0, 2.0], "b": [3.0, 2.5], "c": [2.0, 1.0]},
    "enough items for two, not for five": {
        name: [3 + (k + n) % 3 / 4 for n in range(7)] for k, name in enumerate("abcde")
    },
}


@pytest.mark.parametrize("values", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("criteria", [["fluency"], ["fluency", "style"]])
def test_items_needed_in_the_finding_equal_power(
    values: dict[str, list[float]], criteria: list[str], tmp_path: Path
) -> None:
    """The sentence, the Python result and `judge plan --pair` have the same number, or all have none."""
    result = result_of(of(*criteria, **values))
    comparison = main_comparison(result)
    assert comparison is not None
    first, second = (rank.system for rank in comparison.ranks[:2])
    text = " ".join(finding(result))
    assert text.startswith("No significant difference")
    named = re.search(r"needs (about [\d,]+) items", text)
    (scatter,) = result.scatters(comparison.column, pair=(first, second))
    items = scatter.pairs[0].needed() if scatter.pairs else None
    if len(result.table.items) < scatter.least:
        assert f"you need at least {scatter.least}" in text or "you need at least 6" in text
        assert named is None
    else:
        assert (named[1] if named else None) == (rough_count(items) if items else None)
    result.save(tmp_path, pages=False)
    pair = ["--pair", f"{first},{second}", "--format", "json"]
    done = CliRunner().invoke(app, ["plan", str(tmp_path), *pair])
    columns = {column["column"]: column for column in json.loads(done.stdout)["columns"]}
    assert [pair["items_for_observed"] for pair in columns[comparison.column]["pairs"]] == (
        [items] if scatter.pairs else []
    )


def on_items(a: list[float], b: list[float], **better: str) -> Result:
    """Return a run in which only the first values of `a` are on items of `b`."""
    return result_of(
        {"a": {"ter" if better else "coherence": a}, "b": {"ter" if better else "coherence": b}},
        **better,
    )


def test_a_leader_by_mean_behind_on_shared_items_does_not_lead() -> None:
    a, b = [4.0] * 8 + [5.0] * 12, [5.0] * 4 + [4.0] * 4
    headline, detail = finding(on_items(a, b))
    assert has_line(headline, "No significant difference", "coherence")
    assert has_line(detail, "a", "highest mean", "4.60")
    lower = finding(on_items([10.0 - v for v in a], [10.0 - v for v in b], ter="lower"))
    assert has_line(lower[1], "a", "lowest mean", "5.40")
    level = finding(on_items(a, [5.0] * 2 + [4.0] * 4 + [3.0] * 2))
    assert has_line(level[1], "a", "highest mean", "4.60")


def test_a_system_that_is_better_on_the_shared_items_beats_the_one_with_the_higher_mean() -> None:
    result = on_items([3.0] * 8 + [5.0] * 22, [4.0, 3.5] * 4)
    comparison = main_comparison(result)
    assert comparison is not None
    assert comparison.best == ("b",)
    assert [(r.system, r.rank, r.low, r.high) for r in comparison.ranks] == [
        ("a", 1, 2, 2),
        ("b", 2, 1, 1),
    ]
    headline, trailing, highest, partly_scored = finding(result)
    assert headline == "b beats a"
    assert has_line(trailing, "a trails by 0.75", "p = 0.008", "8 of 8 shared items")
    assert has_line(highest, "a", "highest mean", "4.47", "worse")
    assert has_line(partly_scored, "b has scores", "8 of 30 items")
    for name in ("console", "markdown", "html"):
        assert "Not every system" in " ".join(result.report(name).split())


def test_systems_without_all_items_are_named_with_their_number_of_items() -> None:
    rows = [
        {"item": f"i{k}", "system": system, "output": f"text {k} of {system}"}
        for k in range(8)
        for system in "ab"
        if system == "a" or k < 3
    ]
    result = judge.evaluate(
        rows, ["clear: Is it clear?"], model=lambda _: "4", metrics="none", cache=False
    )
    report = " ".join(result.report("console", full=True).split())
    assert has_line(report, "Not every system", "(b for 3 of 8)")
    assert has_line(report, "Means over 3 to 8 items.")


def test_the_finding_states_that_systems_share_no_item() -> None:
    rows = [{"item": f"i{k}", "system": "ab"[k % 2], "output": f"text {k}"} for k in range(8)]
    result = judge.evaluate(
        rows, ["clear: Is it clear?"], model=lambda _: "4", metrics="none", cache=False
    )
    report = " ".join(result.report().split())
    assert "Not every system" in report


def test_too_few_items_are_named_with_the_number_that_is_enough() -> None:
    *_, last = finding(result_of(of(a=[4.0, 2.0], b=[3.0, 2.5])))
    assert has_line(last, "2 items", "no difference", "significant", "at least 6")


def test_a_metric_names_no_winner_that_the_judge_does_not_see() -> None:
    values = {
        "a": {"wer": wave(1.0), "fluency": [4.0] * 16},
        "b": {"wer": wave(2.0), "fluency": [4.0] * 16},
    }
    headline, *_ = finding(result_of(values, wer="lower"))
    assert has_line(headline, "cannot be compared", "fluency", "all values are equal")


def test_equal_means_have_no_first_system() -> None:
    values = {"a": wave(3.0), "b": wave(3.0)[1:] + wave(3.0)[:1], "c": wave(3.0)[::-1]}
    headline, detail = finding(result_of(of(**values)))
    assert has_line(headline, "No significant difference", "3 systems", "fluency")
    assert has_line(detail, "a, b and c", "same mean", "2.97")


def test_many_names_are_counted() -> None:
    many = {f"s{k}": wave(3.0 - k / 50)[k:] + wave(3.0 - k / 50)[:k] for k in range(6)}
    headline, *_ = finding(
        result_of(of(**many, low=wave(1.5), lower=wave(1.4), least=wave(1.3), last=wave(1.2)))
    )
    assert has_line(headline, "s0, s1 and 4 more", "beat", "other 4 systems", "among the best 6")


def test_many_systems_behind_two_are_all_the_others() -> None:
    behind = {f"s{k}": wave(1.5 - k / 10) for k in range(4)}
    headline, *_ = finding(result_of(of(a=wave(3.0), b=wave(3.0), **behind)))
    assert has_line(headline, "a and b beat the other 4 systems", "between a and b")


def test_the_systems_without_a_significant_difference_are_named() -> None:
    """Regression: "a and b beat c; no significant difference between them" was read as b and c."""
    values = {"a": wave(3.0), "b": wave(3.0)[1:] + wave(3.0)[:1], "c": wave(1.5)}
    headline, *_ = finding(result_of(of(**values)))
    assert has_line(headline, "a and b beat c", "no significant difference between a and b")


def test_a_difference_on_fewer_items_than_the_means_says_so() -> None:
    """Regression: means of 0.71 and 0.63 stood beside "trails by 0.07", on fewer items."""
    a = [4.0, 3.5] * 10
    _, trailing, *_ = finding(result_of(of(a=a, b=wave(2.0, 17))))
    assert has_line(trailing, "b trails", "17 shared items")
    _, trailing, *_ = finding(result_of(of(a=a, b=wave(2.0, 20))))
    assert has_line(trailing, "b trails", "20 items")


def with_rouge(result: Result) -> Result:
    """Return the result with rouge1 as a metric."""
    metric = Column("rouge1", "metric", Signature("rouge1"), 0.0, 1.0)
    columns = [metric if column.name == "rouge1" else column for column in result.table.columns]
    analysis = analyze(result.table.samples, columns, result.table.rows())
    return Result(
        analysis.table,
        analysis.estimates,
        comparisons=analysis.comparisons,
        overall=analysis.overall,
    )


@pytest.mark.parametrize(
    ("third", "place"), [({}, "last"), ({"third": wave(1.5)}, "2="), ({"third": wave(1.0)}, "2")]
)
def test_the_rank_of_a_metrics_first_system_is_that_of_the_table(
    third: dict[str, list[float]], place: str
) -> None:
    copied = [0.8 + k / 100 for k in range(16)]
    written = [0.3 + k / 100 for k in range(16)]
    systems = {"good": (wave(4.5), written), "copy": (wave(1.5), copied)}
    systems |= {name: (scores, written) for name, scores in third.items()}
    result = result_of(
        {
            name: {"consistency": scores, "rouge1": rouge}
            for name, (scores, rouge) in systems.items()
        }
    )
    assert f"the judge ranks it {place} (" in finding(with_rouge(result))[-1]


def test_a_system_that_only_a_metric_ranks_first_is_named() -> None:
    good = {
        "consistency": wave(4.5),
        "fluency": wave(4.0),
        "rouge1": [0.3 + k / 100 for k in range(16)],
    }
    copy = {
        "consistency": wave(1.5),
        "fluency": wave(4.0),
        "rouge1": [0.8 + k / 100 for k in range(16)],
    }
    result = result_of({"good": good, "copy": copy})
    sentence = finding(with_rouge(result))[-1]
    assert has_line(sentence, "ROUGE-1 ranks copy first", "judge", "last", "consistency 1.47")


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ({"a": wave(3.0)}, ("fluency", "2.97 of 5", "[2.74, 3.20]", "16 items")),
        (
            {"a": [3.0], "b": [4.0]},
            ("cannot be compared", "fluency", "one item"),
        ),
        (
            {"a": [3.0, 3.0], "b": [3.0, 3.0]},
            ("cannot be compared", "fluency", "all values are equal"),
        ),
    ],
)
def test_finding_without_a_comparison_gives_the_mean_or_a_reason(
    values: dict[str, list[float]], facts: tuple[str, ...]
) -> None:
    sentence, *_ = finding(result_of(of(**values)))
    assert has_line(sentence, *facts)


def test_a_pass_fail_scale_reads_as_a_share() -> None:
    result = result_of(of(a=[1.0, 0.0, 1.0, 1.0] * 4))
    column = Column(
        "fluency", "criterion", Signature("f"), 0.0, 1.0, ("pass", "fail"), values=(1.0, 0.0)
    )
    analysis = analyze(result.table.samples, [column], result.table.rows())
    (sentence,) = finding(
        Result(analysis.table, analysis.estimates, comparisons=analysis.comparisons)
    )
    assert re.search(r"probability of pass 75% \[\d+, \d+\].*16 items", sentence)


def test_nothing_is_claimed_if_nothing_was_tested(result: Result, tested: Result) -> None:
    assert finding(result) == ()
    assert finding(replace(tested, comparisons=())) == ()


ROWS = [
    {"item": f"i{k}", "system": s, "source": "x", "output": f"{s} {k}", "references": ["a 1"]}
    for k in range(8)
    for s in "ab"
]


def judged(reply: Callable[[Any], str], models: str = "m", **options: Any) -> Result:
    judges = [judge.ScriptedProvider(reply, model=model) for model in models]
    return judge.evaluate(
        ROWS, model=judges, cache=False, **{"criteria": ["coherence"], "metrics": [], **options}
    )


@pytest.mark.parametrize(
    ("options", "headline"),
    [
        ({}, "No judgment succeeded (16 unreadable)"),
        ({"models": "mn"}, "No judgment succeeded (32 unreadable)"),
        (
            {"metrics": ["rouge"], "set": {"rouge": {"types": ["rouge1"]}}},
            "No judgment succeeded (16 unreadable)",
        ),
    ],
)
def test_the_headline_states_that_all_judgments_failed(
    options: dict[str, Any], headline: str
) -> None:
    assert finding(judged(lambda _: "no", **options))[0] == headline


def test_failures_of_comparisons_and_of_metrics_count_too(result: Result) -> None:
    ranked = judge.rank(ROWS[:4], model=judge.ScriptedProvider(lambda _: "no"), cache=False)
    assert finding(ranked) == (
        "No judgment succeeded (4 unreadable)",
        "There is nothing to compare.",
    )
    column = Column("chrf", "metric", Signature())
    failures = tuple(
        Failure(s.item, s.system, "chrf", "metric", "DataError", "no") for s in result.table.samples
    )
    for number, words in (
        (9, "No value succeeded (9 unsuitable)"),
        (1, "No value succeeded (1 unsuitable)"),
    ):
        table = Table(result.table.samples[:number], (column,), (), failures[:number])
        assert finding(Result(table, {}))[0].startswith(words)


def test_a_mean_on_a_scale_of_words_names_its_ends() -> None:
    column = Column(
        "tone",
        "criterion",
        Signature(),
        0.0,
        2.0,
        ("rude", "plain", "polite"),
        values=(0.0, 1.0, 2.0),
    )
    samples = tuple(Sample(str(k), "a", "text") for k in range(8))
    scores = tuple(
        Score(s.item, "a", "tone", float(k % 2 + 1), Provenance("single"))
        for k, s in enumerate(samples)
    )
    analysis = analyze(samples, [column], scores)
    result = Result(analysis.table, analysis.estimates)
    assert has_line(finding(result)[0], "tone", "1.50", "rude 0 – polite 2")
    assert "criteria rude 0 – polite 2" in " ".join(result.report().split())


def test_kinds_of_failures_are_counted(result: Result) -> None:
    rows = [
        Failure(f"i{k}", "a", "coherence", "request", "Refused" if k else "Other", "no")
        for k in range(3)
    ]
    table = replace(result.table, scores=(), failures=tuple(rows))
    headline, _ = finding(replace(result, table=table, estimates={}))
    assert has_line(headline, "No judgment", "2 refused", "1 other")


def test_one_judgment_is_enough_to_compare() -> None:
    assert "succeeded" not in " ".join(
        finding(judged(lambda request: "4" if "a 3" in str(request) else "no"))
    )


def test_columns_with_a_test_come_before_columns_without() -> None:
    values = {
        "a": {"fluency": [4.0], "style": wave(4.0)},
        "b": {"fluency": [3.0], "style": wave(3.0)},
    }
    comparison = main_comparison(result_of(values))
    assert comparison is not None
    assert comparison.column == "style"


def test_a_name_stays_on_its_line_and_within_bounds() -> None:
    headline, *_ = finding(
        result_of({"a\x1b[31m\nb" + "x" * 100: {"fluency": wave(4.0)}, "c": {"fluency": wave(3.0)}})
    )
    assert headline.startswith("a\\x1b[31m bxxx")
    assert headline.index(" beats c") == 60


def test_a_ranking_names_the_winner_and_whether_the_intervals_overlap(ranking: Result) -> None:
    (ranked,) = ranking.rankings
    even = replace(ranked, by_strength=False)
    first, second = ranked.standings[:2]
    headline, detail, *_ = finding(replace(ranking, rankings=(even,)))
    assert has_line(
        headline, "No system", first.system, "highest win rate", "61% [50, 75]", "3 items"
    )
    assert has_line(detail, second.system, "56%", "intervals overlap", "may be as good")
    apart = replace(first, low=0.99, high=1.0)
    clear = replace(ranking, rankings=(replace(even, standings=(apart, *ranked.standings[1:])),))
    assert finding(clear)[1].endswith("; the intervals do not overlap.")
    headline, detail, reason = finding(ranking)[:3]
    assert f"{first.system} has the highest strength" in headline
    assert "0.31 [−0.10, 0.80]" in headline
    assert detail == f"{second.system} follows with strength 0.14."
    assert reason.startswith("Strengths decide, not win rates")


@pytest.mark.parametrize(
    ("preferred", "facts_of_lines"),
    [
        ({}, (("No system won on better", "2 pairs"),)),
        (
            {"clear": "ab"},
            (
                ("No system won on better", "2 pairs"),
                ("a", "highest win rate", "clear"),
            ),
        ),
        ({"better": "ac bc"}, (("a and b", "same win rate on better", "75%", "2 items"),)),
    ],
)
def test_equal_win_rates_have_no_winner(
    preferred: dict[str, str], facts_of_lines: tuple[tuple[str, ...], ...]
) -> None:
    names = "abc" if "ac bc" in preferred.values() else "ab"
    columns = [
        Column(name, "criterion", Signature(name), 0.0, 1.0)
        for name in dict.fromkeys(("better", *preferred))
    ]
    rows = [
        Score(
            item,
            a,
            column.name,
            0.5 + (a + b in won) / 2 - (b + a in won) / 2,
            Provenance("single"),
            b,
        )
        for column in columns
        for won in (preferred.get(column.name, "").split(),)
        for item in ("i1", "i2")
        for a, b in permutations(names, 2)
    ]
    samples = [Sample(item, name, "o") for item in ("i1", "i2") for name in names]
    analysis = analyze(samples, columns, rows, orders=2)
    lines = finding(Result(analysis.table, {}, rankings=analysis.rankings))
    assert lines_hold(lines, facts_of_lines)


def ranking_by_position(value_of_first: dict[str, list[float]], against: str = "") -> Result:
    """Return a ranking by a judge that looks only at the position: the value of the first text of each pair."""
    columns = [Column(name, "criterion", Signature(name), 0.0, 1.0) for name in value_of_first]
    pairs = [("i1", "a", "b"), ("i1", "a", "c"), ("i1", "b", "c"), ("i2", "a", "b")]
    rows = [
        Score(item, *systems, value, Provenance("single"), opponent)
        for name, values in value_of_first.items()
        for (item, a, b), value in zip(pairs, values, strict=True)
        for *systems, opponent in ((a, name, b), (b, name, a))
        if against in ("", a, b)
    ]
    samples = [Sample(item, name, "o") for item in ("i1", "i2") for name in "abc"]
    analysis = analyze(samples, columns, rows, orders=2, against=against)
    return Result(analysis.table, {}, rankings=analysis.rankings)


VOID = ("Every verdict on better", "order")


@pytest.mark.parametrize(
    ("values", "facts_of_lines"),
    [
        ([1.0] * 4, (("shown first", "100.0%", "another judge"),)),
        ([0.9, 0.8, 0.9, 0.8], (("shown first", "85.0%", "another judge"),)),
        ([0.0] * 4, (("shown second", "100.0%", "another judge"),)),
        ([1.0, 0.0, 1.0, 0.0], ()),
    ],
)  # fmt: skip
def test_verdicts_that_all_change_with_the_order_support_no_claim(
    values: list[float], facts_of_lines: tuple[tuple[str, ...], ...]
) -> None:
    assert lines_hold(finding(ranking_by_position({"better": values})), (VOID, *facts_of_lines))
    headline, *_ = finding(ranking_by_position({"better": values}, against="a"))
    assert has_line(headline, *VOID)


def test_a_criterion_with_only_flips_has_no_first_system() -> None:
    result = ranking_by_position({"better": [1.0] * 4, "clear": [0.9, 0.8, 0.9, 0.7]})
    assert not any("is first on" in sentence for sentence in finding(result))


def test_against_one_system_the_finding_names_better_worse_and_undecided_systems() -> None:
    base = wave(3.0)
    up, down = (
        [v + sign + (0.2 if k % 2 else -0.2) for k, v in enumerate(base)] for sign in (0.5, -0.5)
    )
    like = [v + (0.4 if k % 2 else -0.3) for k, v in enumerate(base)]
    run = of(now=base, shorter=up, longer=like, vague=down)
    result = result_of(run, against="now")
    (scatter,) = result.scatters("fluency", pair=("longer", "now"))
    headline, better, worse, even = finding(result)
    assert headline == "shorter beats now on fluency"
    assert has_line(better, "Significantly better", "shorter", "+0.50 [0.39, 0.61]")
    assert has_line(worse, "Significantly worse", "vague", "−0.50 [−0.61, −0.39]")
    assert has_line(even, "No significant difference", "longer", "+0.05 [−0.14, 0.24]")
    assert has_line(even, f"{rough_count(scatter.pairs[0].needed() or 0)} items", "80% power")
    headline, better = finding(result_of({s: run[s] for s in ("now", "shorter")}, against="now"))
    assert headline == "shorter beats now on fluency"
    assert has_line(better, "Significantly better", "shorter", "+0.50 [0.39, 0.61]")
    headline, *_ = finding(result_of(run, against="shorter"))
    assert has_line(headline, "shorter beats all 3", "fluency")
    headline, better, *_ = finding(result_of(run, against="longer", fluency="lower"))
    assert headline == "vague beats longer on fluency"
    assert better.startswith("Significantly better: vague (−0.55 ")


def test_against_one_system_too_few_items_are_named() -> None:
    run = of(now=wave(3.0, 6), shorter=wave(4.0, 6), longer=[4.0, 3.5, 3.0, 3.0, 3.0, 3.0])
    headline, few = finding(result_of(run, against="now"))
    assert has_line(headline, "No system beats now", "fluency")
    assert has_line(few, "6 items", "no difference from now", "significant", "at least 7")


def test_a_system_with_scores_for_few_items_does_not_lead() -> None:
    """The system's items may be easier. Differences between the other systems do not depend on it."""
    alternating = [3.5, 4.5] * 10
    result = result_of(of(a=[5.0] * 3, b=alternating, c=[value - 2 for value in wave(4.0, 20)]))
    comparison = main_comparison(result)
    assert comparison is not None
    assert (comparison.best[0], comparison.partly_scored, comparison.items) == ("b", ("a",), 20)
    headline, _, reason = finding(result)
    assert has_line(headline, "b beats c", "not significantly a")
    assert has_line(reason, "a", "highest mean", "5.00", "3 of 20 items")


def test_finding_names_a_significant_difference_below_the_leader() -> None:
    """The leader has scores for more than half of the items, but too few for a significant difference."""
    leader = [5.0, 1.0, 5.0, 5.0, 5.0, 1.0, 5.0, 5.0, 1.0, 5.0, 5.0]
    b, c = [3.5, 3.75] * 10, [3.0, 2.75] * 10
    headline, reason = finding(result_of(of(a=leader, b=b, c=c)))
    assert headline == "b beats c on fluency"
    assert has_line(reason, "a", "highest mean", "3.91", "11 of 20 items", "from no system")


def test_criteria_that_contradict_each_other_are_named_without_an_overall_difference() -> None:
    up, down = wave(4.0, 20), wave(3.0, 20)[::-1]
    values = {"a": {"style": up, "fluency": down}, "b": {"style": down, "fluency": up}}
    headline, *_, contradiction = finding(result_of(values))
    assert has_line(headline, "No significant difference", "overall score")
    assert has_line(contradiction, "contradict", "on style, a beats b", "on fluency, b beats a")


def test_the_finding_names_its_column_and_the_criteria_that_contradict_it() -> None:
    up, down = wave(4.0, 20), [value - 0.25 for value in wave(3.0, 20)][::-1]
    values = {"a": {"style": up, "fluency": down}, "b": {"style": down, "fluency": up}}
    result = result_of(values)
    no_overall = replace(result, overall=None, comparisons=result.comparisons[:2])
    headline, _, contradiction = finding(no_overall)
    assert headline == "a beats b on style"
    mean_gap = sum(up) / 20 - sum(down) / 20
    assert has_line(contradiction, "contradict", "fluency", f"b beats a by {mean_gap:.2f}")
    # A green banner would hide it.
    assert view(no_overall).tone == "warning"
    assert view(result_of(of(a=up, b=down))).tone == "good"


def test_the_next_best_is_the_next_by_rank() -> None:
    """b shares the first rank, so the best beaten system is not the next best."""
    a, b = [4.0, 3.0, 5.0, 2.0] * 5, [3.0, 4.0, 4.0, 2.5] * 5
    _, trailing, *_ = finding(result_of(of(a=a, b=b, c=[1.0, 1.5] * 10, d=[0.5, 1.0] * 10)))
    assert has_line(trailing, "c", "trails a by 2.25")


@pytest.mark.parametrize(
    ("rouge", "disagrees"),
    [
        ({"good": 0.30, "fair": 0.31, "copy": 0.80}, True),
        ({"good": 0.80, "fair": 0.31, "copy": 0.80}, False),
        ({"good": 0.81, "fair": 0.31, "copy": 0.82}, False),
    ],
    ids=["its own first", "a tie for first", "no significant lead"],
)
def test_a_metric_disagrees_only_if_its_first_systems_are_others(
    rouge: Mapping[str, float], disagrees: bool
) -> None:
    means = {"good": 4.5, "fair": 4.5, "copy": 1.5}
    noise = [(k * 7 % 16) / 100 for k in range(16)]
    turned = {"good": noise, "fair": noise, "copy": noise[::-1]}
    result = result_of(
        {
            name: {
                "fluency": wave(mean),
                "rouge1": [rouge[name] + value for value in turned[name]],
            }
            for name, mean in means.items()
        }
    )
    metric = Column("rouge1", "metric", Signature("rouge1"), 0.0, 1.0)
    columns = [metric if column.name == "rouge1" else column for column in result.table.columns]
    analysis = analyze(result.table.samples, columns, result.table.rows())
    text = " ".join(
        finding(Result(analysis.table, analysis.estimates, comparisons=analysis.comparisons))
    )
    assert ("ROUGE-1 ranks copy first" in text) is disagrees
