"""diff(): the differences between two wordings of a criterion in text, prompts and a judge's scores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import spearmanr

from judge import criteria
from judge.commands.criteria_diff.command import diff, plan_diff, run_diff
from judge.commands.criteria_diff.record import CriterionDiff, FlipCount
from judge.config import load_config
from judge.core.errors import BudgetReached, ConfigError, CriterionError, DataError, DeadlineReached
from judge.core.records import Choice, Request, Response, Usage
from judge.core.text_digests import seen_digest
from judge.execution import token_estimates
from judge.providers import pricing
from judge.providers.scripted import Reply, ScriptedProvider
from judge.run.preparation import prompt
from tests.factories import cost_usd, has_line

KIND = """---
title: Kindness
scale: [1, 5]
steps:
  - Read the text.
---
{% extends "layouts/pointwise.jinja" %}
{% block criterion %}
Is the text kind?
{% endblock %}
"""
HUMAN = {"x": (1, 2, 3, 4), "y": (2, 3, 4, 5), "z": (3, 1, 5, 2)}
ROWS: list[dict[str, Any]] = [
    {
        "item": f"i{n}", "system": system, "source": f"The harbour of quay {n} is open.",
        "output": f"{system} on quay {n}.", "human": {"kind": HUMAN[system][n]},
    }
    for n in range(4)
    for system in "xyz"
]  # fmt: skip
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a criterion file with this name and text, after replacements."""

    def write_criterion(name: str, text: str = KIND, **replaced: str) -> str:
        for old, new in replaced.items():
            assert old.replace("_", " ") in text
            text = text.replace(old.replace("_", " "), new)
        path = tmp_path / f"{name}.jinja"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write_criterion


def grades(
    before: Mapping[str, str], after: Mapping[str, str], mark: str = "very kind"
) -> ScriptedProvider:
    """Return a judge that grades a text (`x0`) by `before`, or by `after` if the prompt contains the mark."""

    def script(request: Request) -> Reply:
        words = request.messages[0]["content"]
        text = next(row for row in ROWS if row["output"] in words)
        return (after if mark in words else before)[f"{text['system']}{text['item'][1:]}"]

    return ScriptedProvider(script)


def table(x: str, y: str, z: str) -> dict[str, str]:
    """Return grades by text, from one digit per item of each system."""
    return {
        f"{system}{n}": grade
        for system, row in zip("xyz", (x, y, z), strict=True)
        for n, grade in enumerate(row)
    }


def pair(write: Write) -> tuple[str, str]:
    """Write two wordings of one criterion."""
    return write("kind"), write("kinder", Is_the_text_kind="Is the text very kind")


def judged(
    write: Write, before: Mapping[str, str], after: Mapping[str, str], **options: Any
) -> CriterionDiff:
    arguments = {"model": grades(before, after), "weighting": "single", "cache": False, **options}
    return diff(*pair(write), ROWS, **arguments)


LOW = table("1234", "2345", "3152")
HIGH = table("2345", "2345", "4155")


# Texts


def test_diff_separates_header_and_file_changes(write: Write) -> None:
    old = write("kind")
    new = write(
        "kinder",
        **{"[1,_5]": "{labels: [rude, kind], values: [0, 1]}", "Read_the": "Read all of the"},
    )
    comparison = diff(old, new)
    assert {c.what: (c.before, c.after) for c in comparison.changes if c.what != "digest"} == {
        "scale": ("1–5", "rude (0), kind (1)"),
        "steps": ("Read the text.", "Read all of the text."),
    }
    assert comparison.diff[:2] == (f"--- {old}", f"+++ {new}")
    assert [row for row in comparison.diff if row[0] in "+-" and row[:3] not in ("+++", "---")] == [
        "-scale: [1, 5]", "+scale: {labels: [rude, kind], values: [0, 1]}", "-  - Read the text.",
        "+  - Read all of the text.",
    ]  # fmt: skip
    assert comparison.prompts is None
    assert comparison.judged is None


def test_a_layout_that_differs_is_shown_though_the_files_are_equal(
    write: Write, tmp_path: Path
) -> None:
    old = write("kind")
    (tmp_path / "other" / "layouts").mkdir(parents=True)
    layout = criteria.load(old).layouts["layouts/pointwise.jinja"]
    (tmp_path / "other" / "layouts" / "pointwise.jinja").write_text(
        layout.replace("judge one text", "read one text")
    )
    new = write("other/kind")
    comparison = diff(old, new)
    assert [change.what for change in comparison.changes] == ["digest"]
    assert comparison.diff[:2] == (
        f"--- layouts/pointwise.jinja of {old}",
        f"+++ layouts/pointwise.jinja of {new}",
    )


def test_diff_of_a_criterion_with_itself_is_empty() -> None:
    comparison = diff("relevance", "relevance")
    assert (comparison.changes, comparison.diff) == ((), ())
    assert comparison.names == ("relevance (before)", "relevance (after)")
    assert "have the same text" in comparison.report()


@pytest.mark.parametrize(
    ("scale", "shown"),
    [("[-2, 2]", "-2–2"), ("{min: 0, max: 100, step: 10}", "0–100 in 11 labels")],
)
def test_scales_are_named(write: Write, scale: str, shown: str) -> None:
    (change,) = [
        c for c in diff(write("a"), write("b", **{"[1,_5]": scale})).changes if c.what == "scale"
    ]
    assert change.after == shown


# Prompts


def test_shared_prompt_text_is_shown_once(write: Write) -> None:
    comparison = diff(*pair(write), ROWS).prompts
    assert (comparison.texts, comparison.items, comparison.differ, comparison.items_differ) == (
        12,
        4,
        12,
        4,
    )
    (way,) = comparison.differences
    assert way.texts == 12
    changed = [row for row in way.lines[2:] if row[0] in "+-"]
    assert changed == ["-Is the text kind?", "+Is the text very kind?"]
    assert not any("quay" in row for row in way.lines)


def test_the_diff_counts_the_prompts_that_differ(write: Write) -> None:
    """The first item has no note, so its prompt differs from those of the other items."""
    noted = KIND.replace(
        "Is the text", "{% if note is defined %}By the note: {% endif %}Is the text"
    )
    rows = [row | ({"note": "by hand"} if row["item"] in ("i1", "i2") else {}) for row in ROWS]
    old, new = write("a"), write("b", noted)
    prompts = diff(old, new, rows).prompts
    sides = [
        [prompt(name, rows, item=r["item"], system=r["system"]).messages for r in rows]
        for name in (old, new)
    ]
    assert prompts.differ == sum(a != b for a, b in zip(*sides, strict=True)) == 6
    assert prompts.items_differ == 2
    assert sum(way.texts for way in prompts.differences) == 6
    assert diff(old, new, rows, item="i0").prompts.differ == 0  # type: ignore[union-attr]


def test_diff_tokens_are_the_mean_over_prompts(write: Write) -> None:
    old, new = (
        write("a"),
        write("b", Is_the_text_kind="Is the text kind, and would you say so to a friend"),
    )
    prompts = diff(old, new, ROWS).prompts
    for name, mean in zip((old, new), prompts.tokens, strict=True):
        sent = [prompt(name, ROWS, item=r["item"], system=r["system"]) for r in ROWS]
        assert mean == sum(
            token_estimates.estimate_request(Request("", p.messages)) for p in sent
        ) / len(ROWS)


def test_item_and_system_pick_texts(write: Write) -> None:
    old, new = write("a"), write("b", Is_the_text="Is this text")
    sizes = [
        diff(old, new, ROWS, **options).prompts
        for options in ({"item": "i1"}, {"system": "x"}, {"limit": 5})
    ]
    assert [(old.texts, old.items) for old in sizes if old] == [(3, 1), (4, 4), (5, 2)]


def test_criteria_that_compare_two_texts_are_rendered_on_pairs() -> None:
    comparison = diff(
        criteria.load("relevance", pairwise=True), criteria.load("coherence", pairwise=True), ROWS
    )
    assert (comparison.prompts.texts, comparison.prompts.differ) == (
        12,
        12,
    )  # 4 items, 3 pairs of systems
    assert any("Criterion: Coherence" in row for row in comparison.prompts.differences[0].lines)


class Priced(ScriptedProvider):
    """A judge with a price that is not marked as scripted."""

    name, notice = "openai", ""


def test_diff_cost_counts_input_and_estimated_output_tokens(write: Write) -> None:
    model = Priced(lambda _: "3", model="gpt-5.4-mini", endpoint=pricing.DEFAULT_URL)
    old, new = (
        write("a"),
        write("b", Is_the_text_kind="Is the text kind, and would you say so to a friend"),
    )
    prompts = diff(old, new, ROWS, model=model, weighting="single", cache=False).prompts
    assert prompts.cost is not None
    for cost, read in zip(prompts.cost, prompts.tokens, strict=True):
        usd = cost_usd(model.model, model.endpoint, Usage(round(1000 * read), 4000))
        assert cost == pytest.approx(usd)
    report = diff(old, new, ROWS, model=model, cache=False).report()
    assert "cost of 1,000 judgments $" in " ".join(report.split())


class PricedWithoutManyDraws(Priced):
    """A priced judge whose server returns one draw for each request."""

    @property
    def learned(self) -> dict[str, Any]:
        return {"n": 1}


def test_diff_cost_of_a_judgment_includes_the_request_of_each_draw(write: Write) -> None:
    model = PricedWithoutManyDraws(
        lambda _: "3", model="gpt-5.4-mini", endpoint=pricing.DEFAULT_URL
    )
    old = write("a")
    new = write("b", Is_the_text="Is this text")
    one_reply = diff(old, new, ROWS, model=model, weighting="single", cache=False).prompts
    five_draws = diff(
        old, new, ROWS, model=model, weighting="samples", draws=5, cache=False
    ).prompts
    assert one_reply.cost is not None
    assert five_draws.cost == pytest.approx([5 * cost for cost in one_reply.cost])


def test_an_unknown_price_is_not_invented(write: Write) -> None:
    model = Priced(lambda _: "3", model="mine", endpoint="http://127.0.0.1:1/v1")
    comparison = diff(
        write("a"), write("b", Is_the_text="Is this text"), ROWS, model=model, cache=False
    )
    assert comparison.prompts.cost is None
    assert has_line(" ".join(comparison.report().split()), "cost is unknown", "server of your own")


# Scores


def test_scores_are_compared_system_by_system(write: Write) -> None:
    scores = judged(write, LOW, HIGH).judged
    rows = {
        row.system: (row.before, row.after) for row in scores.comparison.runs.means if row.system
    }
    assert rows == {"x": (2.5, 3.5), "y": (3.5, 3.5), "z": (2.75, 3.75)}
    assert scores.comparison.runs.means[0].estimate.value == pytest.approx((1 + 0 + 1) / 3)
    assert scores.failed == (0, 0)
    assert scores.judgments == (12, 12)


def test_diff_counts_reversed_preferences(write: Write) -> None:
    scores = judged(write, LOW, table("1234", "1111", "3152")).judged
    # y falls behind x in items 1 to 3 (item 0 becomes a tie) and behind z in items 1 and 3
    assert scores.flips == (
        FlipCount("likeliest label", 4, 12),
        FlipCount("order within items", 3 + 1, 12),
        FlipCount("order of systems", 2, 3),
    )


def test_agreement_is_spearmans_before_and_after_with_an_exact_test_over_items(
    write: Write,
) -> None:
    before, after = table("5432", "2345", "3152"), table("1234", "2345", "3152")
    scores = judged(write, before, after).judged
    assert (scores.rating, scores.level) == ("kind", "within-items")
    rho = [
        [
            spearmanr([int(side[f"{s}{n}"]) for s in "xyz"], [HUMAN[s][n] for s in "xyz"]).statistic
            for n in range(4)
        ]
        for side in (before, after)
    ]
    assert scores.leading.before.value == pytest.approx(sum(rho[0]) / 4)
    assert scores.leading.after.value == pytest.approx(1.0)
    apart = [b - a for a, b in zip(*rho, strict=True)]
    sums = [
        abs(sum(s * d for s, d in zip(signs, apart, strict=True)))
        for signs in product((1, -1), repeat=4)
    ]
    exact = sum(total >= abs(sum(apart)) - 1e-12 for total in sums) / len(sums)
    assert scores.leading.difference.value == pytest.approx(sum(apart) / 4)
    assert scores.leading.difference.p == pytest.approx(exact)
    every = [
        spearmanr(
            [int(side[f"{s}{n}"]) for s in "xyz" for n in range(4)],
            [v for s in "xyz" for v in HUMAN[s]],
        )
        for side in (before, after)
    ]
    (whole,) = [agreement for agreement in scores.agreement if agreement.level == "all-texts"]
    assert [whole.before.value, whole.after.value] == pytest.approx(
        [one.statistic for one in every]
    )


def test_verdict_with_two_texts_an_item_is_over_all_texts(write: Write) -> None:
    rows = [row for row in ROWS if row["system"] != "z"]
    model = grades(table("4321", "5432", "1111"), LOW)
    comparison = diff(*pair(write), rows, model=model, weighting="single", cache=False)
    assert comparison.judged.leading.level == "all-texts"
    assert has_line(
        " ".join(comparison.report().split()), "Spearman over all texts", "+1.691", "8 texts"
    )


def test_the_verdict_keeps_its_level_if_ratings_of_most_texts_are_withheld(
    write: Write,
) -> None:
    """`judge criteria improve` withholds its training texts, and tests at the level of all texts."""
    old, new = pair(write)
    # Two of three texts are left in most items.
    used = [row for row in ROWS if row["system"] == "z" and row["item"] != "i0"]
    digests = [seen_digest(row["source"], row["output"]) for row in used]
    text = Path(new).read_text(encoding="utf-8")
    Path(new).write_text(text.replace("---\n", f"---\nseen: {digests}\n", 1), encoding="utf-8")
    model = grades(LOW, HIGH)
    comparison = diff(old, new, ROWS, model=model, weighting="single", cache=False)
    assert comparison.judged is not None
    assert comparison.judged.leading is not None
    assert comparison.judged.leading.level == "within-items"
    assert "Spearman within items" in " ".join(comparison.report().split())


def test_the_ratings_can_have_a_different_name(write: Write) -> None:
    rows = [{**row, "human": {"warmth": row["human"]["kind"]}} for row in ROWS]
    old, new = pair(write)
    options: dict[str, Any] = {"model": grades(LOW, HIGH), "weighting": "single", "cache": False}
    scores = diff(old, new, rows, human="warmth", **options).judged
    assert (scores.rating, scores.no_agreement) == ("warmth", "")
    scores = diff(old, new, rows, **options).judged
    assert has_line(scores.no_agreement, "No text", "rating of kind", "warmth")


def test_ratings_may_be_rows_of_their_own(write: Write) -> None:
    old, new = pair(write)
    options: dict[str, Any] = {"model": grades(LOW, HIGH), "weighting": "single", "cache": False}
    expected = diff(old, new, ROWS, **options).judged
    unrated = [{key: value for key, value in row.items() if key != "human"} for row in ROWS]
    ratings = [
        {"item": row["item"], "system": row["system"], "kind": row["human"]["kind"]} for row in ROWS
    ]
    compared = diff(old, new, unrated, ratings=ratings, **options)
    assert compared.judged.agreement == expected.agreement
    assert sum("Ratings from" in note for note in compared.notes) == 1


def test_scores_on_different_scales_are_compared_as_shares(write: Write) -> None:
    old, new = (
        write("kind"),
        write("ten", **{"[1,_5]": "[0, 10]", "Is_the_text_kind": "Is the text very kind"}),
    )
    doubled = {name: str(2 * int(grade)) for name, grade in LOW.items()}
    comparison = diff(old, new, ROWS, model=grades(LOW, doubled), weighting="single", cache=False)
    row = next(row for row in comparison.judged.comparison.runs.means if row.system == "x")
    assert (row.before, row.after) == ((2.5 - 1) / 4, 5 / 10)
    assert "shares of their scale" in comparison.notes[0]
    assert [flips.name for flips in comparison.judged.flips] == [
        "order within items",
        "order of systems",
    ]


def test_equal_scores_are_reported(write: Write) -> None:
    report = " ".join(judged(write, LOW, LOW).report().split())
    assert "No significant change in scores" in report
    assert has_line(report, "No significant change", "agreement with people")


def test_failures_are_counted_on_both_sides(write: Write) -> None:
    comparison = judged(write, LOW, {**LOW, "x0": "no idea", "y3": "9"})
    assert comparison.failed == 2
    assert comparison.judged.failed == (0, 2)
    report = " ".join(comparison.report().split())
    assert has_line(report, "failed judgments", "0 of 12", "2 of 12")


def test_diff_has_no_comparison_if_all_judgments_of_one_failed(write: Write) -> None:
    comparison = judged(write, LOW, dict.fromkeys(LOW, "no idea"))
    assert comparison.judged.comparison is None
    assert comparison.failed == 12
    assert has_line(comparison.report(), "No text", "score by both")
    assert has_line(comparison.notes, "12 of 12 judgments failed", "'i0'", "not a score alone")


def test_failures_of_a_panel_are_counted_for_each_judge(write: Write) -> None:
    panel = [grades(LOW, LOW), grades(LOW, dict.fromkeys(LOW, "no idea"))]
    panel[0].model, panel[1].model = "a", "b"
    scores = diff(*pair(write), ROWS, model=panel, weighting="single", cache=False).judged
    assert (scores.judgments, scores.failed) == ((24, 24), (0, 12))


def test_one_item_gets_no_significance_statement(write: Write) -> None:
    text = judged(write, LOW, HIGH, item="i0").report()
    assert has_line(text, "Too few items", "change in scores")
    assert "significant change" not in text


def test_the_mean_of_a_panel_decides(write: Write) -> None:
    panel = [grades(LOW, HIGH), grades(LOW, LOW)]
    panel[0].model, panel[1].model = "a", "b"
    scores = diff(*pair(write), ROWS, model=panel, weighting="single", cache=False).judged
    first = scores.comparison.runs.means[0]
    assert (first.column, first.system) == ("kind", "")
    assert scores.flips[0].total == 24
    assert scores.judgments == (24, 24)
    assert scores.agreement[0].after.n == 4


def test_both_runs_are_recorded_in_one_file_and_replayed_from_it(
    write: Write, tmp_path: Path
) -> None:
    calls = tmp_path / "calls.jsonl"
    live = judged(write, LOW, HIGH, record=calls)
    names = [str(tmp_path / f"{name}.jinja") for name in ("kind", "kinder")]
    second_run = diff(names[0], names[1], ROWS, replay=calls, weighting="single")
    assert second_run.judged.flips == live.judged.flips
    assert second_run.judged.agreement == live.judged.agreement


def test_both_runs_share_one_budget(write: Write) -> None:
    reply = Response((Choice("3"),), Usage(1_000, 1))
    old, new = pair(write)
    options: dict[str, Any] = {"weighting": "single", "cache": False, "max_concurrency": 1}

    def requests_within(budget: int) -> int:
        model = ScriptedProvider(lambda _: reply)
        with pytest.raises(BudgetReached):
            diff(old, new, ROWS, model=model, budget=f"{budget}tokens", **options)
        return len(model.seen)

    assert 12 < requests_within(20_000) < 24


class Slow(ScriptedProvider):
    """Answer after ten seconds."""

    async def complete(self, request: Request) -> Response:
        await asyncio.sleep(10)
        return await super().complete(request)


def test_both_runs_share_one_deadline(
    write: Write, in_time: Callable[[Coroutine[Any, Any, Any]], Any]
) -> None:
    old, new = pair(write)

    def requests_within(deadline: float) -> tuple[int, bool]:
        config = load_config(options={"weighting": "single", "cache": False, "deadline": deadline})
        model = Slow(lambda _: "3")
        try:
            in_time(run_diff(plan_diff(old, new, config, ROWS, providers=[model])))
        except DeadlineReached:
            return len(model.seen), False
        return len(model.seen), True

    assert requests_within(45) == (24, True)
    seen, completed = requests_within(30)  # enough time for one run, not for two
    assert 12 <= seen < 24
    assert not completed


# Refused input


@pytest.mark.parametrize(
    ("overrides", "error", "facts"),
    [
        ({"data": None, "item": "i0"}, ConfigError, ("no data",)),
        ({"data": None, "replay": "calls.jsonl"}, ConfigError, ("no data",)),
        ({"item": "i9"}, ConfigError, ("unknown item", "'i9'")),
        ({"system": "q"}, ConfigError, ("system:", "'q'")),
        ({"human": "kind"}, ConfigError, ("human:", "needs scores")),
        (
            {"human": "kin", "model": "gpt-5.4-mini"},
            ConfigError,
            ("human:", "'kin'", "'kind'"),
        ),
        ({"model": 42}, ConfigError, ("int has no name",)),
        ({"out": "here"}, ConfigError, ("out:", "no such option", "judge run")),
        ({"metrics": "rouge"}, ConfigError, ("metrics:", "no such option")),
        ({"before": "relevanse"}, CriterionError, ("'relevanse'",)),
        (
            {"before": "overall"},
            ConfigError,
            ("one text", "two"),
        ),
        ({"before": "nowhere.jinja"}, CriterionError, ("nowhere.jinja: no such file",)),
        (
            {"data": [{k: v for k, v in ROWS[0].items() if k != "source"}]},
            DataError,
            ("reads source",),
        ),
    ],
)
def test_diff_refuses_impossible_requests(
    write: Write, overrides: dict[str, Any], error: type, facts: tuple[str, ...]
) -> None:
    options: dict[str, Any] = {"before": write("a"), "after": write("b"), "data": ROWS, **overrides}
    with pytest.raises(error) as caught:
        diff(options.pop("before"), options.pop("after"), options.pop("data"), **options)
    assert has_line(str(caught.value), *facts)


def test_pairwise_criteria_get_no_scores() -> None:
    sides = [criteria.load(name, pairwise=True) for name in ("relevance", "coherence")]
    with pytest.raises(ConfigError, match="judge rank"):
        diff(*sides, ROWS, model=ScriptedProvider(lambda _: "A"))


def test_criterion_objects_are_taken_as_they_are() -> None:
    old = criteria.load("relevance")
    comparison = diff(old, replace(old, weight=2.0))
    assert [(c.what, c.before, c.after) for c in comparison.changes] == [("weight", "1", "2")]
