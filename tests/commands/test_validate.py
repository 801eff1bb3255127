"""Compare a result with people's ratings: columns, texts and refused input."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

import judge
from judge.commands.validate.record import Validation
from judge.core.errors import ConfigError, DataError, StorageError
from judge.core.records import Column, Failure, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.metrics import parallel
from judge.providers.scripted import ScriptedProvider
from judge.results.rated_criteria import flat, read
from judge.stats.agreement import agree
from judge.stats.bootstrap import Bootstrap
from judge.stats.human_agreement import Rated
from tests.factories import has_line

SENTENCE = (
    "the old bridge over the river is to be mended before winter and the town will pay for the work"
)
WORDS = SENTENCE.split()
GRADES = {"good": 5, "fair": 4, "poor": 2}
VOTES = {"good": [5, 5, 4], "fair": [4, 3, 4], "poor": [1, 2, None]}


def rows(
    human: Any = lambda system, n: {"relevance": VOTES[system]}, items: int = 6
) -> list[dict[str, Any]]:
    """Return texts of three systems: good, fair and poor. Worse systems write longer texts in their own words."""
    data = []
    for n in range(items):
        for place, system in enumerate(GRADES):
            text = " ".join(
                [*WORDS[n : n + 6], *(f"{system}{k}" for k in range(1 + place * 2 + n % 2))]
            )
            source = " ".join([*WORDS * 2, f"article {n}"])
            data.append(
                {
                    "item": f"i{n}",
                    "system": system,
                    "source": source,
                    "output": text,
                    "references": [SENTENCE],
                }
                | ({"human": human(system, n)} if human(system, n) else {})
            )
    return data


def grade(request: Any) -> str:
    """Answer with the grade of the system that wrote the text."""
    text = request.messages[0]["content"]
    return str(next(value for system, value in GRADES.items() if f"{system}0" in text))


def judged(data: Any, criteria: Any = ("relevance",), **options: Any) -> judge.Result:
    options = {"model": ScriptedProvider(grade, model="grader"), "metrics": [], **options}
    return judge.evaluate(data, list(criteria), cache=False, **options)


def criterion_rows(validation: Validation, criterion: str = "relevance") -> Rated:
    return next(rated for rated in validation.rated if rated.criterion == criterion)


ROUGE = {"rouge": {"multi": "mean", "types": ["rouge1", "rouge2", "rougeLsum"]}}


@cache
def usual() -> Validation:
    """The validation of the unchanged rows."""
    return judge.validate(judged(rows()), n_resamples=50)


def names(rated: Rated) -> dict[str, list[str]]:
    return {
        "judges": [row.name for row in rated.judges],
        "baselines": [row.name for row in rated.baselines],
    }


def test_every_rouge_of_a_run_is_a_baseline_of_its_page() -> None:
    result = judged(rows(), metrics=["rouge"])
    (rated,) = (rated for rated in result.rated if rated.criterion == "relevance")
    assert names(rated)["baselines"] == ["length", "ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-Lsum"]


def test_a_judge_is_compared_with_baselines() -> None:
    rated = criterion_rows(usual())
    baselines = ["length", "ROUGE-1", "ROUGE-2", "ROUGE-Lsum"]
    assert names(rated) == {"judges": ["grader"], "baselines": baselines}
    assert rated.texts == 18
    (judge_row,) = rated.judges
    assert judge_row.correlation.estimates["within-items", "spearman"].value == 1.0
    assert judge_row.signature.startswith("relevance@")
    length = rated.baselines[0].correlation.estimates["within-items", "spearman"]
    assert (length.value, length.n) == (-1.0, 6)
    difference = rated.differences["grader", "length", "within-items"]
    assert (difference.value, difference.high) == (2.0, 2.0)
    # Not every interval of 95% lies above 0, so the four differences hold together.
    quantile = stats.t.ppf(1 - 0.025 / len(baselines), 5)
    assert difference.low == pytest.approx(
        4 * 6 / (6 + quantile**2) - 2
    )  # Wilson's at 6 of 6, on −2 to 2
    assert {key[:2] for key in rated.differences} == {
        ("grader", baseline) for baseline in baselines
    }


def test_the_rouge_of_a_preset_is_shown_once() -> None:
    options = {"rouge": {"preset": "rouge155", "types": ["ROUGE-1", "ROUGE-L"]}}
    result = judged(rows(), metrics=["rouge"], set=options)
    rated = criterion_rows(judge.validate(result, n_resamples=10))
    assert names(rated)["baselines"] == ["length", "ROUGE-1", "ROUGE-L"]


def test_the_report_of_a_run_without_metrics_names_the_baselines_of_validate() -> None:
    """Otherwise "better than length" on the page seems to contradict a verdict with ROUGE."""
    without_metrics = judged(rows()).report("markdown")
    assert has_line(without_metrics.splitlines(), "judge validate also measures ROUGE")
    with_metrics = judged(rows(), metrics=["chrf"]).report("markdown")
    assert not has_line(with_metrics.splitlines(), "also measures ROUGE")


def test_two_texts_per_item_are_correlated_over_all_texts() -> None:
    """Regression: -0.45 was the mean of 11 correlations within items, each 1 or -1, and nothing said so."""
    two_systems = [row for row in rows(items=24) if row["system"] != "poor"]
    result = judged(two_systems)
    assert [rated.usual_level for rated in result.rated] == ["all-texts"]
    validation = judge.validate(result, n_resamples=20)
    assert validation.level == "all-texts"
    text = " ".join(validation.report().split())
    assert has_line(text, "over all texts", "fewer than three")
    signs = judge.validate(result, n_resamples=20, level="within-items")
    assert signs.level == "within-items"
    text = " ".join(signs.report().split())
    assert has_line(text, "only 1 or −1", "fewer than three")
    page = result.report("markdown")
    assert has_line(page.splitlines(), "relevance", "correlation with people over all texts")
    assert "within-items" in {rated.usual_level for rated in usual().rated}


def test_a_card_and_the_warning_name_one_range_of_ratings_on_another_scale() -> None:
    """Regression: the card named the range of the means, the warning that of the ratings."""
    votes = {"good": [80, 100], "fair": [50, 70], "poor": [10, 30]}
    result = judged(rows(human=lambda system, n: {"relevance": votes[system]}))
    (judge_row,) = criterion_rows(judge.validate(result, n_resamples=20)).judges
    assert has_line(judge_row.no_calibration, "from 10 to 100")


def test_texts_without_a_score_do_not_count_for_the_level() -> None:
    """Regression: a judge that failed on one of three systems had a correlation of 1.00 within items."""
    result = judged(rows(items=24))
    samples = [sample for sample in result.table.samples if sample.system != "poor"]
    scored = {sample.key for sample in samples}
    scores = [score for score in result.table.scores if score.key in scored]
    lost = [
        Failure(score.item, score.system, score.column, "parse", "ParseError", "no score")
        for score in result.table.scores
        if score.key not in scored
    ]
    table = replace(result.table, scores=tuple(scores), failures=tuple(lost))
    validation = judge.validate(replace(result, table=table), n_resamples=20)
    assert validation.level == "all-texts"
    (rated,) = validation.rated
    assert {row.correlation.texts for row in rated.judges} == {len(samples)}


def test_one_rater_is_compared_with_the_mean_of_the_others() -> None:
    rated = criterion_rows(usual())
    assert rated.no_rater == ""
    assert rated.rater.signature == "3 raters"
    estimate = rated.rater.correlation.estimates["within-items", "kendall"]
    pairs = (([5, 4, 1], [4.5, 3.5, 2]), ([5, 3, 2], [4.5, 4, 1]), ([4, 4], [5, 3.5]))
    expected = [stats.kendalltau(one, others)[0] for one, others in pairs[:2]]
    assert estimate.value == pytest.approx(
        sum(expected) / 2
    )  # the third rater's ratings are all equal


def test_validate_reuses_stored_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {"rouge": {"multi": "mean", "types": ["rouge1", "rouge2", "rougeLsum"]}}
    result = judged(rows(), metrics=["rouge"], set=measured)
    expected = criterion_rows(judge.validate(result, n_resamples=50)).baselines
    original = judge.metrics.rouge.Rouge.score
    monkeypatch.setattr(
        judge.metrics.rouge.Rouge, "score", lambda *_: pytest.fail("measured again")
    )
    recomputed = criterion_rows(judge.validate(result, n_resamples=50)).baselines
    assert recomputed == expected
    monkeypatch.setattr(judge.metrics.rouge.Rouge, "score", original)
    assert criterion_rows(usual()).baselines == expected


def test_the_rouge_of_a_run_is_the_baseline_as_it_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = [row | {"references": ["the old bridge", *row["references"]]} for row in rows()]
    result = judged(
        data,
        metrics=["rouge"],
        set={"rouge": {"types": ["rouge1"], "multi": "best_f", "stem": False}},
    )
    monkeypatch.setattr(
        judge.metrics.rouge.Rouge, "score", lambda *_: pytest.fail("measured again")
    )
    (baseline,) = [
        row
        for row in criterion_rows(judge.validate(result, n_resamples=10)).baselines
        if row.name == "ROUGE-1"
    ]
    assert baseline.signature == str(result.table.columns[-1].signature)


def test_validate_without_references_has_no_rouge() -> None:
    data = [{key: value for key, value in row.items() if key != "references"} for row in rows()]
    assert names(criterion_rows(judge.validate(judged(data), n_resamples=10)))["baselines"] == [
        "length"
    ]


def test_a_panel_has_its_mean_and_its_judges() -> None:
    kind = ScriptedProvider(lambda _: "5", model="kind")
    result = judged(rows(), model=[ScriptedProvider(grade, model="grader"), kind])
    rated = criterion_rows(judge.validate(result, n_resamples=50))
    assert names(rated)["judges"] == ["panel mean", "grader", "kind"]
    assert [set(row.correlation.lacking.values()) for row in rated.judges] == [
        set(),
        set(),
        {"all values are equal"},
    ]


def test_criteria_without_ratings_are_named_once() -> None:
    run = judged(rows(lambda system, n: {"wit": GRADES[system]}), ["relevance", "fluency"])
    assert len([note for note in run.info.notes if "ratings" in note]) == 1
    with pytest.raises(DataError, match=r"^People rated wit\b.*relevance, fluency"):
        judge.validate(run)


def test_only_rated_texts_count() -> None:
    validation = judge.validate(
        judged(rows(lambda system, n: {"relevance": GRADES[system]} if n < 4 else {}))
    )
    rated = criterion_rows(validation)
    assert (rated.texts, rated.baselines[1].correlation.texts) == (12, 12)
    assert rated.rater is None
    assert "one rating per text" in rated.no_rater
    alone = criterion_rows(
        judge.validate(judged(rows(lambda system, n: {"relevance": [None, GRADES[system]]})))
    )
    assert has_line(alone.no_rater, "no text", "two raters")


def test_all_failed_judgments_give_no_correlation() -> None:
    result = judged(rows(), model=ScriptedProvider(lambda _: "no score", model="mute"))
    (judge_row,) = criterion_rows(judge.validate(result)).judges
    assert (judge_row.correlation.texts, judge_row.correlation.estimates) == (0, {})
    (reason,) = set(judge_row.correlation.lacking.values())
    assert has_line(reason, "no text", "both a value and a rating")


def test_failures_on_texts_that_people_rate_differently_are_a_warning() -> None:
    """The judge refuses seven of the eight poor texts and one fair text."""

    def reply(request: Any) -> str:
        text = request.messages[0]["content"]
        refused = ("poor0" in text and "article 7" not in text) or (
            "fair0" in text and "article 3" in text
        )
        return "I cannot rate this." if refused else grade(request)

    validation = judge.validate(
        judged(rows(items=8), model=ScriptedProvider(reply, model="shy")), n_resamples=20
    )
    (judge_row,) = criterion_rows(validation).judges
    failed = judge_row.failed
    assert (failed.n, failed.of) == (8, 24)
    assert failed.ratings == pytest.approx((7 * 1.5 + 11 / 3) / 8)
    assert failed.scored_ratings == pytest.approx((8 * 14 / 3 + 7 * 11 / 3 + 1.5) / 16)
    assert failed.p == 2 / 2**7  # signs of the seven items with failures
    assert judge_row.correlation.estimates["within-items", "spearman"].value == 1.0
    console = validation.report("console").replace("\n", " ")
    assert has_line(console, "! relevance: 8 of 24", "shy", "1.77", "4.03", "p = 0.016")
    assert " failed  texts" in validation.report()
    assert "33.3%" in validation.report()
    assert "(p = 0.016)." in validation.report("html")
    stored = json.loads(json.dumps(asdict(flat(criterion_rows(validation)))))
    assert read(stored) == criterion_rows(validation)
    del stored["rows"][0]["failed"]  # in runs of earlier versions
    assert read(stored).judges[0].failed is None
    assert "failed" not in usual().report()


def test_raters_agree_with_each_other_and_a_judge_with_their_mean() -> None:
    rated = criterion_rows(usual())
    agreed = rated.rater.agreement
    votes = np.array(
        [[VOTES[system][k] for _ in range(6) for system in GRADES] for k in range(3)], dtype=float
    )
    expected = agree(votes.reshape(3, 6, 3), bootstrap=Bootstrap(50))
    assert agreed == expected
    assert agreed.estimates["icc_2_1"].n == 12  # a third of the texts have a missing vote
    (judge_row,) = rated.judges
    means = {
        system: np.mean([vote for vote in ratings if vote is not None])
        for system, ratings in VOTES.items()
    }
    sides = np.array([[GRADES[s] for s in GRADES] * 6, [means[s] for s in GRADES] * 6]).reshape(
        2, 6, 3
    )
    alpha = agree(sides, ["alpha_interval"], Bootstrap(50)).estimates["alpha_interval"]
    assert judge_row.agreement.estimates["alpha_interval"] == alpha
    # 1.5 is halfway between two labels, and stays.
    rounded = np.where(sides % 1 == 0.5, sides, np.round(sides))
    kappa = agree(rounded, ["kappa_quadratic"], Bootstrap(50)).estimates["kappa_quadratic"]
    assert judge_row.agreement.estimates["kappa_quadratic"] == kappa
    assert all(not row.agreement.estimates and row.calibration is None for row in rated.baselines)


def test_a_judge_is_calibrated_on_its_own_scale() -> None:
    (judge_row,) = criterion_rows(usual()).judges
    assert [(one.low, one.high, one.value, one.people.n) for one in judge_row.calibration.bins] == [
        (1.5, 2.5, 2.0, 6), (3.5, 4.5, 4.0, 6), (4.5, 5.0, 5.0, 6),
    ]  # fmt: skip
    assert judge_row.calibration.bias.value == pytest.approx(
        np.mean([5 - 14 / 3, 4 - 11 / 3, 2 - 1.5])
    )


@pytest.mark.parametrize(("factor", "ends"), [(20, "40 to 100"), (0.2, "0.4 to 1")])
def test_a_different_scale_has_no_calibration_and_no_alt_test(factor: float, ends: str) -> None:
    validation = judge.validate(
        judged(rows(lambda system, n: {"relevance": factor * GRADES[system]})), n_resamples=20
    )
    (judge_row,) = criterion_rows(validation).judges
    why = judge_row.no_calibration
    assert has_line(why, "people", ends, "judge", "1 to 5")
    assert (judge_row.calibration, judge_row.agreement.estimates) == (None, {})
    assert judge_row.correlation.estimates["within-items", "spearman"].value == 1.0
    report = validation.report("markdown").replace("\\", "")
    assert has_line(report, "No agreement and calibration", "grader", why)


def test_words_count_as_their_values(tmp_path: Path) -> None:
    path = tmp_path / "tone.jinja"
    path.write_text(
        '---\nscale: {labels: [poor, fair, good], values: [1, 3, 5]}\n---\n{% extends "layouts/pointwise.jinja" %}\n'
        "{% block criterion %}Tone.{% endblock %}\n",
        encoding="utf-8",
    )
    words = ScriptedProvider(
        lambda request: {"5": "good", "4": "fair", "2": "poor"}[grade(request)], model="words"
    )
    validation = judge.validate(
        judged(rows(lambda system, n: {"tone": VOTES[system]}), [str(path)], model=words),
        n_resamples=20,
    )
    (judge_row,) = criterion_rows(validation, "tone").judges
    assert set(judge_row.agreement.estimates) == {
        "alpha_interval",
        "kappa_quadratic",
        "kappa_linear",
    }
    assert [(one.low, one.high) for one in judge_row.calibration.bins] == [
        (1.0, 2.0),
        (2.0, 4.0),
        (4.0, 5.0),
    ]


def test_judges_of_a_panel_are_compared_in_pairs() -> None:
    fickle = ScriptedProvider(
        lambda request: "4" if "poor0" in str(request.messages) else "3", model="fickle"
    )
    result = judged(rows(), model=[ScriptedProvider(grade, model="grader"), fickle])
    rated = criterion_rows(judge.validate(result, n_resamples=50))
    assert {(one.judge, one.other) for one in rated.versus} == {
        ("panel mean", "grader"), ("panel mean", "fickle"), ("grader", "fickle"),
    }  # fmt: skip
    (within,) = (
        v
        for v in rated.versus
        if (v.judge, v.other, v.level) == ("grader", "fickle", "within-items")
    )
    assert within.spearman.value == pytest.approx(
        1 + np.sqrt(3) / 2
    )  # ranks 3, 2, 1 with 1, 1, 2: −√3/2
    assert within.pearson.p is None
    (over,) = (
        v for v in rated.versus if (v.judge, v.other, v.level) == ("grader", "fickle", "all-texts")
    )
    assert over.pearson.value > 1
    assert over.pearson.p is None  # an item has a text of each system


def test_judges_of_two_runs_are_compared(tmp_path: Path) -> None:
    kind = ScriptedProvider(
        lambda request: "2" if "good0" in str(request.messages) else "4", model="grader"
    )
    for name, model in (("a", ScriptedProvider(grade, model="grader")), ("b", kind)):
        judged(rows(), model=model, out=tmp_path / name)
    validation = judge.validate(tmp_path / "a", tmp_path / "b", n_resamples=50)
    names_ = [f"grader ({tmp_path / name})" for name in "ab"]
    assert names(criterion_rows(validation))["judges"] == names_
    sentences = json.loads(validation.report("json"))["criteria"][0]["sentences"]["within-items"]
    difference = f"{names_[1]} (+1.87 [−0.22, 2.00])"
    assert has_line(sentences, f"{names_[0]}: no significant difference", difference)
    assert names(criterion_rows(validation))["baselines"][-1] == "ROUGE-Lsum"
    one = criterion_rows(judge.validate(tmp_path / "a", n_resamples=50)).judges[0]
    assert criterion_rows(validation).judges[0] == replace(one, name=names_[0])


def test_second_run_counts_only_for_common_texts() -> None:
    first = judged(rows())
    data = rows()
    data[0]["output"] += " poor0 and more"
    other = judged(data[:9], model=ScriptedProvider(lambda _: "3", model="flat"))
    validation = judge.validate(first, other, n_resamples=20)
    assert [row.correlation.texts for row in criterion_rows(validation).judges] == [18, 8]
    assert any("1 text of run 2" in note for note in validation.notes)
    with pytest.raises(DataError, match="run 2 shares no text"):
        judge.validate(first, judged([row | {"item": f"x{row['item']}"} for row in data]))


def test_a_run_named_twice_is_refused(tmp_path: Path) -> None:
    judged(rows(), out=tmp_path / "a")
    with pytest.raises(ConfigError, match="same run is named twice"):
        judge.validate(tmp_path / "a", tmp_path / "a")


def test_a_run_stores_its_agreement_with_ratings(tmp_path: Path) -> None:
    result = judged(rows(), out=tmp_path / "run", seed=3, metrics=["rouge"], set=ROUGE)
    assert result.rated == tuple(
        replace(
            each,
            raters=(),
            judges=tuple(replace(row, alt_test=None) for row in each.judges),
            behind={},
        )
        for each in judge.validate(result, seed=3).rated
    )
    assert judge.load_result(tmp_path / "run") == result
    assert judged(rows(), ["fluency"]).rated == ()
    assert judged(rows(), [], metrics=["rouge"], model=None).rated == ()


def test_a_run_without_rouge_computes_no_rouge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = judged(rows(), metrics=["rouge"], set=ROUGE)
    assert names(chosen.rated[0])["baselines"] == ["length", "ROUGE-1", "ROUGE-2", "ROUGE-Lsum"]
    assert len(criterion_rows(judge.validate(chosen, n_resamples=10)).baselines) == 4

    def refuse(*arguments: Any) -> None:
        raise AssertionError("a metric is measured")

    monkeypatch.setattr(parallel, "score_in_parallel", refuse)
    without = judged(rows())
    assert names(without.rated[0])["baselines"] == ["length"]
    with pytest.raises(AssertionError, match="a metric is measured"):
        judge.validate(without, n_resamples=10)


@pytest.mark.parametrize(("other", "share"), [(5.0, 1.0), (4.5, 0.0)])
def test_alt_test_rounds_scores_if_all_ratings_are_labels(other: float, share: float) -> None:
    """If all ratings are labels, a score of 4.6 counts as 5. With a rating of 4.5 it stays 4.6."""
    held = judged(rows(lambda system, n: {"relevance": [5.0 if n % 2 else other] * 3}))
    table = replace(
        held.table, scores=tuple(replace(score, value=4.6) for score in held.table.scores)
    )
    test = judge.validate(replace(held, table=table), n_resamples=10).rated[0].judges[0].alt_test
    assert test is not None
    assert [(each.judge, each.person) for each in test.raters] == [(share, 1.0)] * 3


def test_raters_ratings_are_stored(tmp_path: Path) -> None:
    judged(rows(), out=tmp_path)
    path = tmp_path / "samples.parquet"
    stored = pq.read_table(path)
    assert criterion_rows(judge.validate(tmp_path, n_resamples=10)).rater is not None
    pq.write_table(stored.drop_columns(["human"]), path)
    with pytest.raises(StorageError):
        judge.validate(tmp_path)


def test_validate_refuses_unusable_input(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no text.*map=\{'rating\.relevance': 'COLUMN'\}"):
        judge.validate(judged(rows(lambda system, n: {})))
    ranked = judge.rank(rows(), ["overall"], model=ScriptedProvider(lambda _: "A"), cache=False)
    with pytest.raises(DataError, match="no preferences on pairs"):
        judge.validate(ranked)
    with pytest.raises(ConfigError, match=r"no run\.json"):
        judge.validate(tmp_path)


def test_samples_keep_their_ratings() -> None:
    samples = [
        Sample(
            row["item"],
            row["system"],
            row["output"],
            row["source"],
            human={"relevance": 3.0 + n % 2},
        )
        for n, row in enumerate(rows())
    ]
    assert criterion_rows(judge.validate(judged(samples), n_resamples=10)).texts == len(samples)
    assert (
        json.loads(judge.validate(judged(samples)).report("json"))["criteria"][0]["criterion"]
        == "relevance"
    )


def test_a_baseline_with_few_items_is_not_compared() -> None:
    result = judged(rows(items=24))
    few = {f"i{n}" for n in range(4)}
    held = Column("bleurt", "metric", Signature("bleurt", "external"))
    scores = [
        Score(s.item, s.system, held.name, float(GRADES[s.system]), Provenance("external"))
        for s in result.table.samples
        if s.item in few
    ]
    table = replace(
        result.table, columns=(*result.table.columns, held), scores=(*result.table.scores, *scores)
    )
    validation = judge.validate(replace(result, table=table))
    (baseline,) = [row for row in criterion_rows(validation).baselines if row.name == "bleurt"]
    assert baseline.correlation.estimates["within-items", "spearman"].value == 1.0
    assert "4 of 24 items" in baseline.few["within-items"]
    assert not any(
        baseline == "bleurt" for _, baseline, _ in criterion_rows(validation).differences
    )
    report = validation.report("markdown")
    assert has_line(report, "bleurt", "4 of 24 items")
    assert "bleurt" not in validation.report()
    assert (
        read(json.loads(json.dumps(asdict(flat(criterion_rows(validation)))))).baselines
        == criterion_rows(validation).baselines
    )


def test_tables_for_a_paper_are_at_the_level() -> None:
    paper = judge.validate(judged(rows()), level="all-texts").report("latex")
    for row in criterion_rows(judge.validate(judged(rows()))).rows:
        assert (
            f"{row.correlation.estimates['all-texts', 'spearman'].value:.2f}".removeprefix("-")
            in paper
        )
    assert has_line(paper, "correlation with people", "all texts")
    with pytest.raises(ConfigError, match="level: 'document' is called within-items"):
        judge.validate(judged(rows()), level="document")


def test_a_rating_outside_the_scale_is_refused() -> None:
    slip = rows(
        lambda system, n: {"relevance": 7 if (system, n) == ("fair", 2) else GRADES[system]}
    )
    with pytest.raises(DataError) as refused:
        judged(slip)
    assert has_line(str(refused.value), "row 8:", "relevance is 7", "1 to 5")


def test_ratings_of_a_later_run_are_not_denied() -> None:
    rows = [
        {"item": f"i{k}", "output": f"text {k}", "human": {"fluency": 1.0 + k % 3}}
        for k in range(8)
    ]
    runs = [
        judge.evaluate(rows, criterion, model=lambda _: "2", metrics="none", cache=False)
        for criterion in ("fluency_5", "fluency")
    ]
    notes = judge.validate(*runs).notes
    assert len(notes) == len(set(notes))
    assert any("fluency_5, but none of fluency" in note for note in notes)
