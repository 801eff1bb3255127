from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import judge
from judge.cli import app
from judge.core.errors import ConfigError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.report.views.failure_notice import failure_notice
from judge.report.views.finding import finding
from judge.report.views.ranking_failure_notice import ranking_failure_notice
from judge.results.failures import failures_as_worst
from judge.results.result import Result
from judge.results.run_info import RunInfo
from judge.stats.analyze import analyze
from tests.factories import has_line

HOW = Provenance("single")
FIVE = (1.0, 5.0, ("1", "2", "3", "4", "5"))


def run_with(failed: dict[str, range], better: str = "higher", n: int = 12) -> Result:
    """Return two systems on 12 items. `a` is better except in failed judgments."""
    column = Column("fluency", "criterion", Signature("fluency"), *FIVE, "fluency", better=better)
    samples = [Sample(f"i{k}", system, "text") for k in range(n) for system in "ab"]
    worst_first = -1 if better == "lower" else 1
    rows: list[Score | Failure] = []
    for sample in samples:
        k = int(sample.item[1:])
        value = 3.0 + worst_first * (0.5 if sample.system == "a" else -0.5) + k % 3 / 4
        if k in failed.get(sample.system, range(0)):
            rows.append(Failure(sample.item, sample.system, "fluency", "parse", "ParseError", "no"))
        else:
            rows.append(Score(sample.item, sample.system, "fluency", value, Provenance("single")))
    analysis = analyze(samples, [column], rows)
    return Result(
        analysis.table,
        analysis.estimates,
        RunInfo(),
        comparisons=analysis.comparisons,
    )


def test_failures_of_only_the_winner_add_a_notice_with_the_alternative_finding() -> None:
    result = run_with({"a": range(4)})
    assert finding(result)[0] == "a beats b"
    notice = failure_notice(result)
    assert has_line(notice, "a on 4 of 12 items", "b on none")
    assert has_line(notice, "worst score", "No significant difference", "fluency")
    assert "Failures differ between systems" in " ".join(result.report().split())


def test_a_system_without_any_score_is_named() -> None:
    notice = failure_notice(run_with({"b": range(12)}))
    assert has_line(notice, "b on 12 of 12 items", "a on none")
    assert failure_notice(run_with({"a": range(12), "b": range(12)})) == ""


def test_a_mean_names_its_system_if_no_other_system_has_a_score() -> None:
    (headline,) = finding(run_with({"b": range(12)}))
    assert has_line(headline, "fluency of a")


def test_a_criterion_whose_judgments_all_failed_is_named() -> None:
    rows = [{"item": f"i{k}", "system": "a", "output": f"text {k}"} for k in range(6)]
    result = judge.evaluate(
        rows,
        ["clear: Is it clear?", "kind: Is it kind?"],
        model=lambda prompt: "no idea" if "clear" in prompt else 4,
        metrics="none",
        cache=False,
    )
    assert has_line(" ".join(result.report().split()), "No text has a score of clear", "failed")


def test_a_notice_states_that_the_headline_is_unchanged() -> None:
    notice = failure_notice(run_with({"b": range(4)}))
    assert notice.endswith("the headline stays.")


@pytest.mark.parametrize("failed", [{}, {"a": range(3), "b": range(3, 6)}, {"b": range(1)}])
def test_failures_independent_of_the_system_make_no_notice(failed: dict[str, range]) -> None:
    assert failure_notice(run_with(failed)) == ""


@pytest.mark.parametrize(("better", "worst"), [("higher", 1.0), ("lower", 5.0)])
def test_a_failure_counts_as_the_worst_end_of_the_scale(better: str, worst: float) -> None:
    result = failures_as_worst(run_with({"a": range(2)}, better))
    values = [s.value for s in result.table.scores if s.system == "a"]
    assert values[:2] == [worst, worst]
    assert not result.failures
    assert has_line([result.info.notes[0]], "2 failed judgments", "worst score")


def test_comparisons_have_no_worst_score() -> None:
    rows = [{"item": "i", "system": s, "source": "x", "output": s} for s in "ab"]
    ranked = judge.rank(rows, model=judge.ScriptedProvider(lambda _: "A"), cache=False)
    with pytest.raises(ConfigError, match="scores of single texts"):
        failures_as_worst(ranked)


def test_a_report_may_count_failures_as_the_worst_score(tmp_path: Path) -> None:
    run_with({"a": range(4)}).save(tmp_path / "run", pages=False)
    report = ["report", str(tmp_path / "run"), "--failures-as"]
    done = CliRunner().invoke(app, [*report, "worst"])
    assert done.exit_code == 0, done.output
    assert has_line(done.stdout, "No significant difference", "fluency")
    assert has_line(" ".join(done.stdout.split()), "4 failed judgments", "worst score")
    refused = CliRunner().invoke(app, [*report, "zero"])
    assert isinstance(refused.exception, ConfigError)
    assert "the only value is worst" in str(refused.exception)


def ranking_with(values: list[float | None], against: str = "") -> Result:
    """Return a ranking of `a` and `b` from the preference for `a` on each item; None is a failure."""
    column = Column("quality", "criterion", Signature("q@1"), 0.0, 1.0)
    samples = [Sample(f"i{k}", name, "text") for k in range(len(values)) for name in "ab"]
    rows: list[Score | Failure] = []
    for k, value in enumerate(values):
        for system, opponent, preference in (
            ("a", "b", value),
            ("b", "a", value if value is None else 1 - value),
        ):
            if value is None:
                rows.append(
                    Failure(
                        f"i{k}", system, "quality", "parse", "ParseError", "no", opponent=opponent
                    )
                )
            else:
                rows.append(Score(f"i{k}", system, "quality", preference or 0.0, HOW, opponent))
    analysis = analyze(samples, [column], rows, orders=2, against=against)
    return Result(analysis.table, {}, rankings=analysis.rankings)


def test_a_ranking_that_failures_as_losses_would_change_has_a_notice() -> None:
    notice = ranking_failure_notice(ranking_with([1.0] * 8 + [None] * 4))
    assert has_line(notice, "4 comparisons", "a failed", "quality", "as a loss", "not lead")


@pytest.mark.parametrize("values", [[1.0] * 12, [1.0] * 12 + [None], [1.0, 0.0] * 6 + [None] * 4])
def test_a_ranking_that_holds_or_claims_nothing_has_no_notice(values: list[float | None]) -> None:
    assert ranking_failure_notice(ranking_with(values)) == ""


def test_a_win_against_a_named_system_needs_its_failed_comparisons_too() -> None:
    assert "it does not lead" in ranking_failure_notice(ranking_with([1.0] * 8 + [None] * 4, "b"))
