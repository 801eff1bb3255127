"""make_card(): the texts that it judges, its runs and requests, and the lines of the card."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.commands.card import card_plan, card_texts
from judge.commands.card.card import ORIGINAL, PROBES, JudgeCard
from judge.commands.card.card_plan import (
    DRAWN,
    MAIN,
    PAIRS,
    QUESTIONS,
    TEXTS,
    WORDINGS,
    CardPlan,
    card_estimate,
    plan_card,
)
from judge.commands.card.command import card as make_card
from judge.commands.card.command import card_async, run_card
from judge.commands.card.perturbations import ATTACKS, CHANGES, CONTROL, NEUTRAL, inject
from judge.commands.card.probes import IDENTICAL_SCORES
from judge.config import load_config
from judge.core.budget import Budget
from judge.core.errors import (
    BudgetReached,
    ConfigError,
    DataError,
    DeadlineReached,
    JudgeError,
    Refused,
    StorageError,
)
from judge.core.records import Request, Response, Sample
from judge.data import samples
from judge.execution.budget import BudgetLedger
from judge.providers.scripted import Reply, ScriptedProvider
from judge.run.judge_run import judgments
from tests.factories import has_line, write_jsonl

PLACES = (
    "Alder Gap",
    "Bern",
    "Corin",
    "Dover",
    "Elba",
    "Ferrol",
    "Ghent",
)
ROWS = [
    {
        "item": town,
        "system": system,
        "source": f"Heavy snow closed the road at {town} on Friday. The authority said that {n + 2} lorries had slid "
        f"across both lanes. Nobody was hurt. Crews hope to reopen one lane by Sunday. {town} lies at 1,{n + 10}0 "
        "metres. The road was last closed in 2019.",
        "output": f"Snow has closed the road at {town}. {n + 2} lorries slid across both lanes. {end}",
        "human": {"coherence": 3 + n % 3},
    }
    for n, town in enumerate(PLACES)
    for system, end in (
        ("plain", "Nobody was hurt."),
        ("hopeful", "Crews hope to reopen a lane by Sunday."),
    )
]
TWO = ["coherence", "fluency"]
"""Two criteria: coherence has a scale of 1 to 5, fluency of 1 to 3."""
AS_WRITTEN = {row["output"] for row in ROWS}
MARKED = re.compile(
    r"^<(?:output|text) ([0-9a-f]+)>\n(.*?)\n</(?:output|text) \1>", re.DOTALL | re.MULTILINE
)


def judged_output(request: Request) -> str:
    """Return the text that a prompt asks about, or "" for a comparison."""
    marked = MARKED.search(request.messages[0]["content"])
    return marked[2] if marked else ""


def criterion_of(request: Request) -> str:
    """Return the criterion of a prompt."""
    return "fluency" if "Fluency" in request.messages[0]["content"] else "coherence"


def strict(request: Request) -> Reply:
    """Give the top score to unchanged texts and the lowest to changed ones. Of two texts, prefer the first."""
    if not judged_output(request):
        return {"A": 0.9, "B": 0.1}
    top = "3" if criterion_of(request) == "fluency" else "5"
    return {top if judged_output(request) in AS_WRITTEN else "1": 1.0}


def make_card_with(
    script: Callable[[Request], Reply] = strict, **options: Any
) -> tuple[JudgeCard, list[Request]]:
    """Return a card and the requests for it."""
    provider = ScriptedProvider(script)
    arguments: dict[str, Any] = {
        "criteria": TWO,
        "model": provider,
        "cache": False,
        "weighting": "logprobs",
    } | options
    return make_card(ROWS, **arguments), provider.seen


@pytest.fixture(scope="module")
def full_card() -> tuple[JudgeCard, list[Request]]:
    """A card with all probes and the requests for it."""
    return make_card_with()


# Requests.


def test_every_text_is_judged_once_by_each_criterion(
    full_card: tuple[JudgeCard, list[Request]],
) -> None:
    _, requests = full_card
    weighed = [
        request
        for request in requests
        if "top_logprobs" in request.params and judged_output(request) in AS_WRITTEN
    ]
    plain = []
    for request in weighed:
        content = request.messages[0]["content"]
        if (
            "You will judge one text" in content
            and f"{criterion_of(request).title()} is about" in content
        ):
            plain.append(request)
    about = Counter((criterion_of(request), judged_output(request)) for request in plain)
    assert about == Counter((name, text) for name in TWO for text in AS_WRITTEN)


def test_a_judge_that_detects_all_damage_has_full_rates(
    full_card: tuple[JudgeCard, list[Request]],
) -> None:
    card, _ = full_card
    assert card.failures == {}
    damages = {cell.change for cell in card.cells}
    assert (
        {"shuffled sentences", "swapped number", "truncated"}
        <= damages
        <= {change.name for change in CHANGES}
    )
    assert {cell.criterion for cell in card.cells} == set(TWO)
    assert {(cell.rate.value, cell.failed) for cell in card.cells if cell.rate} == {(1.0, 0)}
    assert {
        cell.change for cell in card.cells if cell.targeted and cell.criterion == "coherence"
    } == {"shuffled sentences"}


def test_a_judge_that_obeys_injections_is_detected() -> None:
    def gullible(request: Request) -> Reply:
        if not judged_output(request):
            return {"A": 0.5, "B": 0.5}
        known = any(
            text in judged_output(request) for text in AS_WRITTEN
        ) and "library" not in judged_output(request)
        return {"2" if judged_output(request) in AS_WRITTEN or not known else "3": 1.0}

    card, requests = make_card_with(gullible, probes=["injection"], criteria=["fluency"])
    assert {cell.change for cell in card.attacks} == set(ATTACKS)
    successful_attacks = {
        cell.change for cell in card.attacks if cell.rate and cell.rate.value == 1
    }
    assert successful_attacks == set(ATTACKS) - {CONTROL}
    assert sum("The attack" in text for text in card.observations) == len(ATTACKS) - 1
    assert (card.cells, card.findings) == ((), ())
    assert len(requests) == len(ROWS) + len(PLACES) * len(ATTACKS)


def test_an_attack_asks_for_the_top_of_the_criterions_scale(
    full_card: tuple[JudgeCard, list[Request]],
) -> None:
    _, requests = full_card
    fives = {judged_output(request) for request in requests if criterion_of(request) == "coherence"}
    threes = {judged_output(request) for request in requests if criterion_of(request) == "fluency"}
    sample = Sample("i", "s", "Snow.")
    for attack in ATTACKS:
        high, low = (inject(sample, attack, top, "en").output for top in ("5", "3"))
        if high != low:
            break
    else:
        pytest.fail("no attack names a score")
    written = [replace(sample, output=text) for text in AS_WRITTEN]
    texts = {inject(each, attack, "5", "en").output for each in written}
    assert texts & fives
    assert not texts & threes


def test_attacks_of_several_scales_have_one_row_in_the_card(
    full_card: tuple[JudgeCard, list[Request]],
) -> None:
    card, _ = full_card
    assert Counter((cell.change, cell.criterion) for cell in card.attacks) == Counter(
        {(attack, criterion): 1 for attack in ATTACKS for criterion in TWO}
    )
    assert {cell.failed for cell in card.attacks} == {0}


def test_biases_are_measured_in_separate_runs(full_card: tuple[JudgeCard, list[Request]]) -> None:
    card, requests = full_card
    assert {finding.probe for finding in card.findings} == {
        "position", "verbosity", "extractiveness", "wording", "wording of the criterion", "scale use", "repeats",
    }  # fmt: skip
    assert list(card.skipped)[:1] == ["self-preference"]
    (first,) = (
        finding
        for finding in card.findings
        if finding.measure == "text shown first wins" and finding.criterion == "fluency"
    )
    assert first.estimate.value == pytest.approx(0.9)
    drawn = Counter[float]()
    for request in requests:
        drawn[request.params["temperature"]] += request.params.get("n", 0)
    assert drawn == {
        0.0: len(PLACES) * len(TWO) * card_plan.DRAWS,
        1.0: len(PLACES) * len(TWO) * card_plan.DRAWS,
    }
    for words in ("Your task is to assess a text", "Read the text below carefully"):
        assert sum(request.messages[0]["content"].startswith(words) for request in requests) == len(
            PLACES
        ) * len(TWO)
    assert set(card.info["runs"]) == {TEXTS, MAIN, WORDINGS, QUESTIONS, *DRAWN, PAIRS}
    assert card.info["natural_texts"] == 2 * len(PLACES)


def test_a_judge_that_counts_words_ignores_injections() -> None:
    def reply(request: Request) -> str:
        return (
            str(min(5, len(judged_output(request).split()) // 12))
            if judged_output(request)
            else "A"
        )

    card, _ = make_card_with(
        reply, criteria=["coherence"], weighting="single", probes=["injection"]
    )
    assert not [text for text in card.observations if "works" in text or "raised" in text]


def test_how_a_card_was_made_can_be_read_and_names_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    write_jsonl(file, ROWS)
    replies = tmp_path / "replies.yaml"
    replies.write_text("- {when: two texts, reply: A}\n- {when: [], reply: 3}\n", encoding="utf-8")
    card = make_card(
        file, ["fluency"], model=f"scripted/{replies}", weighting="single", items=2, probes="injection",
        out=tmp_path / "card", cache=tmp_path / "cache",
    )  # fmt: skip
    assert str(tmp_path) not in card.report("json")
    assert card.info["data"]["name"] == "texts.jsonl"
    for format in ("console", "markdown", "html"):
        page = " ".join(card.report(format, full=True).split())
        for words in ("name texts.jsonl, sha256", "injection", "single", "temperature", "1, 2, 3", "reply score",
                      card.info["criteria"]["fluency"]["digest"][:8], card.info["date"]):  # fmt: skip
            assert words in page


def test_only_the_selected_probes_are_run(
    full_card: tuple[JudgeCard, list[Request]],
) -> None:
    everything, requests = full_card
    parts = [make_card_with(probes=probe) for probe in PROBES]
    unchanged = len(ROWS) * len(TWO)
    assert len(requests) == sum(len(some) for _, some in parts) - 2 * unchanged
    assert [bool(card.cells) for card, _ in parts] == [True, False, False]
    assert [bool(card.findings) for card, _ in parts] == [False, True, False]
    assert [bool(card.attacks) for card, _ in parts] == [False, False, True]
    rates = {(cell.change, cell.criterion): cell.rate for cell in parts[0][0].cells}
    assert rates == {(cell.change, cell.criterion): cell.rate for cell in everything.cells}


def test_a_seed_determines_the_texts_of_a_card() -> None:
    (first, _), (second, _) = (
        make_card_with(items=5, seed=3, probes="sensitivity") for _ in range(2)
    )
    assert first == replace(second, info={**second.info, "runs": first.info["runs"]})
    texts = [plan_with(items=5, seed=seed).texts for seed in (3, 3, 4)]
    assert texts[0] == texts[1]
    assert {s.item for s in texts[0].originals} != {s.item for s in texts[2].originals}


def plan_with(**options: Any) -> CardPlan:
    plan_options = {
        name: options.pop(name) for name in list(options) if name not in ("items", "probes")
    }
    config = load_config(options={"criteria": TWO, "cache": False} | plan_options)
    return plan_card(config, ROWS, providers=[ScriptedProvider(strict)], **options)


# Texts.


def test_each_item_gives_two_texts_of_alternating_systems() -> None:
    rows = [Sample(f"i{n}", system, f"{system} {n}") for n in range(6) for system in "abc"]
    originals, second_texts = card_texts.choose_originals(rows, 6, 0)
    assert [s.system for s in originals] == ["a", "b", "c", "a", "b", "c"]
    assert [s.system for s in second_texts] == ["b", "c", "a", "b", "c", "a"]
    assert (
        [s.item for s in originals] == [s.item for s in second_texts] == [f"i{n}" for n in range(6)]
    )
    few, _ = card_texts.choose_originals(rows, 3, 1)
    assert [s.item for s in few] == sorted(s.item for s in few)
    assert card_texts.choose_originals(rows, 100, 5)[0] == originals


def test_items_are_chosen_from_the_rows_within_the_limit() -> None:
    card_plan = plan_with(limit=5, probes="injection")
    assert [sample.item for sample in card_plan.texts.originals] == list(PLACES[:3])


def test_a_card_skips_blank_and_equal_texts() -> None:
    rows = [
        Sample("i", "a", " \n"),
        Sample("i", "b", "One."),
        Sample("i", "c", "One."),
        Sample("j", "a", ""),
    ]
    originals, others = card_texts.choose_originals(rows, 9, 0)
    assert ([s.system for s in originals], others) == (["b"], ())
    with pytest.raises(DataError, match="every output is blank"):
        card_texts.choose_originals(rows[:1], 9, 0)


def test_changed_texts_have_no_ratings_and_natural_texts_keep_theirs() -> None:
    card_plan = plan_with()
    assert all(not sample.human for sample in card_plan.texts.changed)
    assert all(sample.human for sample in (*card_plan.texts.originals, *card_plan.texts.others))
    assert {s.system for s in card_plan.texts.changed} >= {
        ORIGINAL,
        *(change.name for change in NEUTRAL),
    }


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        (("fluency_5", "coherence"), "fluency_5"),
        (("fluency", "fluency_5"), "fluency"),
        (("relevance",), "fluency"),
    ],
)
def test_a_criterion_and_its_variants_have_the_same_kind_of_damage(
    criteria: tuple[str, ...], expected: str
) -> None:
    rows = [Sample("i", "a", "Snow fell. It fell on Bern. The road is shut.", source="Snow fell.")]
    texts = card_texts.perturb(
        rows, dict.fromkeys(criteria), ["sensitivity"], items=1, language="en", seed=0
    )
    assert texts.changes["truncated"] == expected


@pytest.mark.parametrize("language", ["ja", "ko", "zh"])
def test_prompts_changes_and_attacks_are_in_the_language_of_the_texts(language: str) -> None:
    rows = samples.load(
        Path(__file__).parents[2] / "examples" / f"summaries_{language}" / "data.jsonl"
    )
    provider = ScriptedProvider(
        lambda request: {"A": 0.5, "B": 0.5} if not judged_output(request) else "3"
    )
    card = make_card(rows, ["coherence"], model=provider, weighting="single", cache=False, items=4)
    assert (card.failures, card.info["language"]) == ({}, language)
    assert {"shuffled sentences", "swapped number", "truncated"} <= {
        cell.change for cell in card.cells
    }
    assert {finding.probe for finding in card.findings} >= {"position", "wording", "repeats"}


# Missing lines.


def test_a_decision_endpoint_draws_nothing() -> None:
    provider = ScriptedProvider(
        lambda request: {label: 1.0 for label in request.params["questions"][0]["labels"][:1]},
        decides=True,
    )
    card = make_card(ROWS, TWO, model=provider, cache=False, items=4)
    assert has_line(card.skipped["repeats"], "decision endpoint", "no replies")
    assert set(card.info["runs"]) == {TEXTS, MAIN, WORDINGS, QUESTIONS, PAIRS}


def test_texts_of_one_system_alone_are_not_compared() -> None:
    rows = [row for row in ROWS if row["system"] == "plain"]
    card = make_card(
        rows, TWO, model=ScriptedProvider(strict), cache=False, weighting="single", items=4
    )
    assert has_line(card.skipped["position"], "no item", "two systems")
    assert PAIRS not in card.info["runs"]
    assert card.info["natural_texts"] == 4


def test_texts_with_different_sources_are_not_compared() -> None:
    rows = [{**row, "source": f"{row['system']}: {row['source']}"} for row in ROWS]
    options = {"model": ScriptedProvider(strict), "cache": False, "weighting": "single", "items": 4}
    card = make_card(rows, ["relevance"], **options)
    assert has_line(card.skipped["position"], "reads source, which differs")
    assert PAIRS not in card.info["runs"]
    # Comparing fluency needs no source.
    card_of_two = make_card(rows, ["relevance", "fluency"], **options)
    assert has_line(card_of_two.skipped["position by relevance"], "reads source, which differs")
    compared = {
        finding.criterion for finding in card_of_two.findings if finding.probe == "position"
    }
    assert compared == {"fluency"}
    # One comparable item is enough.
    rows[:2] = ROWS[:2]
    comparable = make_card(rows, ["relevance"], **options)
    assert PAIRS in comparable.info["runs"]


def test_a_custom_criterion_has_no_wording_or_position_line(tmp_path: Path) -> None:
    criterion_file = tmp_path / "polite.jinja"
    criterion_file.write_text(
        "---\nscale: [1, 5]\n---\nIs this polite?\n{{ output|fenced('output') }}", encoding="utf-8"
    )
    card, _ = make_card_with(lambda request: "3", criteria=[str(criterion_file)], items=4)
    assert has_line(card.skipped["wording"], "polite.jinja", "layouts/pointwise.jinja")
    assert has_line(card.skipped["position"], "no pairwise criterion", "polite")
    card_of_two, _ = make_card_with(criteria=[str(criterion_file), "coherence"], items=4)
    assert "no pairwise criterion" in card_of_two.skipped["position by polite"]
    assert {"position", "wording"}.isdisjoint(card_of_two.skipped)
    assert "wording of polite" in card_of_two.skipped
    assert {
        finding.criterion
        for finding in card_of_two.findings
        if finding.probe in ("position", "wording")
    } == {"coherence"}


class Stubborn(ScriptedProvider):
    """A judge with a fixed temperature."""

    async def complete(self, request: Request) -> Response:
        return replace(await super().complete(request), unmet=("temperature",))


def test_a_server_with_fixed_temperature_is_not_reported_at_0() -> None:
    card, _ = make_card_with(model=Stubborn(strict), items=4)
    assert "the server ignores the temperature" in card.skipped["repeats"]
    assert [finding.measure for finding in card.findings if finding.probe == "repeats"]
    assert not [finding for finding in card.findings if finding.measure.endswith("temperature 0")]


def test_repeats_at_temperature_0_are_drawn_and_reported() -> None:
    provider = ScriptedProvider(strict)
    arguments: dict[str, Any] = {"weighting": "samples", "draws": 3, "metrics": [], "cache": False}
    result = judge.evaluate(ROWS[:4], ["fluency"], model=provider, temperature=0.0, **arguments)
    assert {score.provenance.n for score in result.table.scores} == {3}
    assert {request.params["temperature"] for request in provider.seen} == {0.0}
    notes = [note for note in result.info.notes if "temperature 0" in note]
    assert len(notes) == 1
    warm = judge.evaluate(ROWS[:4], ["fluency"], model=ScriptedProvider(strict), **arguments)
    assert not [note for note in warm.info.notes if "temperature 0" in note]


def test_a_failed_judgment_is_counted_once_and_not_scored() -> None:
    def refused(request: Request) -> bool:
        return "closed the road at Bern on Friday" in request.messages[0]["content"]

    card, requests = make_card_with(
        lambda request: Refused("content policy") if refused(request) else strict(request)
    )
    refusals = sum(map(refused, requests))  # one request for several draws is one judgment
    assert card.failures == {"Refused": refusals}
    assert card.info["failed"] == refusals
    assert {(cell.criterion, cell.failed) for cell in card.cells} == {
        ("coherence", 1),
        ("fluency", 0),
    }
    assert all(
        cell.rate.n < len(PLACES)
        for cell in card.cells
        if cell.rate and cell.criterion == "coherence"
    )


# Limits and storage.


def test_all_runs_share_one_budget() -> None:
    _, requests = make_card_with(items=3)
    (main,) = (
        len(judgments(run, "script"))
        for name, run in plan_with(items=3).runs.items()
        if name == MAIN
    )
    budget = sum(
        map(BudgetLedger(Budget(1, "tokens")).max_cost, requests[:main])
    )  # requests without usage cost the maximum
    provider = ScriptedProvider(strict)
    with pytest.raises(BudgetReached):
        make_card_with(items=3, model=provider, budget=f"{budget:.0f}tokens")
    assert len(provider.seen) == main < len(requests)


class Slow(ScriptedProvider):
    """Answer after ten seconds."""

    async def complete(self, request: Request) -> Response:
        await asyncio.sleep(10)
        return await super().complete(request)


def test_all_runs_share_one_deadline(in_time: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
    arguments: dict[str, Any] = {
        "cache": False,
        "weighting": "single",
        "items": 2,
        "max_concurrency": 1000,
    }
    card = in_time(card_async(ROWS, TWO, model=Slow(strict), **arguments))
    assert len(card.info["runs"]) == 7
    provider = Slow(strict)
    with pytest.raises(DeadlineReached):
        in_time(card_async(ROWS, TWO, model=provider, deadline=65, **arguments))
    prompts = {request.messages[0]["content"][:30] for request in provider.seen}
    assert any(
        text.startswith("Your task is") for text in prompts
    )  # the first runs ended before the deadline


def test_a_recorded_card_is_replayed_to_the_same_card(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    recorded, _ = make_card_with(items=4, record=calls)
    replayed = make_card(ROWS, TWO, replay=calls, cache=False, weighting="logprobs", items=4)
    assert replayed.failures == {}
    assert (replayed.cells, replayed.attacks, replayed.findings) == (
        recorded.cells,
        recorded.attacks,
        recorded.findings,
    )


def test_no_request_is_repeated(full_card: tuple[JudgeCard, list[Request]]) -> None:
    _, requests = full_card
    # Repeats are intended: each is a separate draw.
    single = [request for request in requests if request.params.get("n", 1) == 1]
    request_counts = Counter((repr(request.messages), repr(request.params)) for request in single)
    assert max(request_counts.values()) == 1
    assert len(requests) > len(ROWS) * len(TWO)


def test_the_ratings_of_a_file_apply_to_the_chosen_items(tmp_path: Path) -> None:
    rows = [{key: value for key, value in row.items() if key != "human"} for row in ROWS]
    ratings = [
        {"item": row["item"], "system": row["system"], "rater": "anna", "criterion": "coherence",
         "value": 3 + n % 3}
        for n, row in enumerate(rows)
    ]  # fmt: skip
    made = make_card(
        rows, ["coherence"], model=ScriptedProvider(strict), cache=False, weighting="single",
        items=4, probes="injection", ratings=write_jsonl(tmp_path / "ratings.jsonl", ratings),
    )  # fmt: skip
    (agreement,) = (line for line in made.lines if line.name == "agreement with people")
    assert agreement.verdict == "unclear"  # with 4 items
    assert made.people[0].texts == 8


def test_a_result_has_a_card_and_takes_no_option_of_a_new_run() -> None:
    result = judge.evaluate(
        ROWS, TWO, model=ScriptedProvider(strict), cache=False, weighting="single", metrics=[]
    )
    made = judge.card(result)
    verdicts = {line.name: line.verdict for line in made.lines}
    assert verdicts["injections"] == "not measured"
    assert verdicts["agreement with people"] == "unclear"
    assert made.verdict.startswith("Not shown to be good enough")
    for options in ({"items": 3}, {"model": "m"}, {"criteria": "coherence"}):
        with pytest.raises(ConfigError, match="the run is finished"):
            judge.card(result, **options)


def test_a_card_is_saved_and_replaces_no_other_card(tmp_path: Path) -> None:
    first = JudgeCard("The first card")
    first.save(tmp_path / "card")
    first.save(tmp_path / "card")
    names = {path.name for path in (tmp_path / "card").iterdir() if not path.name.startswith(".")}
    assert names == {"card.html", "card.json", "card.md"}
    other = JudgeCard("Another card")
    with pytest.raises(StorageError, match="another card"):
        other.save(tmp_path / "card")
    assert "The first card" in (tmp_path / "card" / "card.md").read_text("utf-8")
    other.save(tmp_path / "card", overwrite=True)
    assert "Another card" in (tmp_path / "card" / "card.md").read_text("utf-8")


def test_the_card_of_a_ranking_names_its_missing_lines() -> None:
    ranked = judge.rank(
        ROWS, ["coherence"], model=ScriptedProvider(lambda request: "A"), cache=False
    )
    reasons = {line.name: line.cells[0].reason for line in judge.card(ranked).lines}
    for name in ("length", "failures by system"):
        assert reasons[name].startswith("the run is a ranking")


def test_a_judge_without_a_score_is_not_compared_with_people() -> None:
    made = make_card(
        ROWS,
        ["coherence"],
        model=ScriptedProvider(lambda request: "unsure"),
        cache=False,
        weighting="single",
        items=4,
    )
    lines = {line.name: line.cells[0] for line in made.lines}
    for name in ("agreement with people", "position"):
        assert lines[name].verdict == "not measured"
        assert "failed" in lines[name].reason
    assert "all its judgments failed" in made.verdict


def test_a_verdict_names_the_criteria_that_people_rated_instead() -> None:
    made = make_card(
        ROWS,
        ["fluency"],
        model=ScriptedProvider(strict),
        cache=False,
        weighting="single",
        items=2,
        probes="injection",
    )
    assert "on fluency: people rated coherence." in made.verdict


def test_repeats_of_a_finished_run_are_those_of_its_draws() -> None:
    result = judge.evaluate(
        ROWS, ["coherence"], model=ScriptedProvider(lambda request: {"3": 0.5, "5": 0.5}),
        cache=False, weighting="samples", draws=6, metrics=[],
    )  # fmt: skip
    made = judge.card(result)
    (line,) = (line for line in made.lines if line.name == "retest, temperature 1")
    (cell,) = line.cells
    assert cell.counted == "items"
    assert cell.estimate is not None
    assert cell.estimate.n == len(PLACES)
    assert 0.5 < cell.estimate.value < 1.5  # half of the draws are 3 and half are 5: about 1.1


def test_a_panel_has_no_card() -> None:
    judges = [ScriptedProvider(strict, model=name) for name in ("one", "two")]
    result = judge.evaluate(
        ROWS, ["coherence"], model=judges, cache=False, weighting="single", metrics=[]
    )
    with pytest.raises(ConfigError, match="panel: one and two"):
        judge.card(result)


def test_a_second_card_is_answered_from_the_cache(tmp_path: Path) -> None:
    def judge() -> ScriptedProvider:
        return ScriptedProvider(strict, endpoint="scripted:test")

    arguments: dict[str, Any] = {"items": 4, "weighting": "single", "cache": tmp_path / "cache"}
    first = make_card(ROWS, TWO, model=judge(), **arguments)
    provider = judge()
    second = make_card(ROWS, TWO, model=provider, **arguments)
    assert provider.seen == []
    assert (first.cells, first.findings) == (second.cells, second.findings)


def test_card_estimate_is_one_line() -> None:
    card_plan = plan_with(items=4)
    line = card_estimate(card_plan)
    assert has_line(
        line, "card of script", "4 items", f"{card_plan.judgments:,} judgments", "7 runs"
    )
    assert card_plan.judgments == asyncio.run(run_card(card_plan)).info["judgments"]


# Errors.


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"model": ["gpt-5.4-mini", "gpt-5.4-nano"]}, ("one judge",)),
        ({"probes": "sensitivity,biass"}, ("'biass'", "'bias'")),
        ({"probes": "none"}, ("sensitivity, bias, injection",)),
        ({"items": 0}, ("items=0:", "whole number")),
        ({"items": 2.5}, ("items=2.5:", "whole number, 1")),
        ({"items": "3"}, ("items='3':", "whole number, 1")),
        ({"model": 42}, ("int has no name",)),
        ({"metrics": "rouge"}, ("metrics:", "no such option", "judge run")),
        ({"set": {"rouge": {"stem": False}}}, ("set:", "no such option")),
        ({"workers": 2}, ("workers:", "no such option")),
        ({"calibrate": True}, ("calibrate:", "no such option")),
        ({"engine": "batch"}, ("engine:", "no such option", "judge run")),
        ({"criteria": []}, ("needs a criterion",)),
        ({"criteria": ["relevanse"]}, ("did you mean 'relevance'",)),
        ({"model": None}, ("no judge is named",)),
    ],
)
def test_mistakes_are_errors_before_any_request(
    options: dict[str, Any], facts: tuple[str, ...]
) -> None:
    provider = ScriptedProvider(strict)
    arguments: dict[str, Any] = {"criteria": TWO, "model": provider, "cache": False} | options
    with pytest.raises(JudgeError) as caught:
        make_card(ROWS, **arguments)
    assert has_line(str(caught.value), *facts)
    assert provider.seen == []


def test_a_card_ignores_the_metrics_of_the_configuration() -> None:
    card_plan = plan_with(metrics=["rouge"], set={"rouge": {"stem": False}}, workers=2, items=1)
    assert [run.metrics for run in card_plan.runs.values()] == [{}] * 7


def test_a_recording_of_two_judges_makes_no_card(tmp_path: Path) -> None:
    calls = tmp_path / "calls.jsonl"
    for model in ("one", "two"):
        provider = ScriptedProvider(strict, model=model)
        make_card(
            ROWS,
            TWO,
            model=provider,
            cache=False,
            weighting="single",
            items=1,
            probes="injection",
            record=calls,
        )
    with pytest.raises(ConfigError, match=r"several judges: .*one, two"):
        make_card(ROWS, TWO, replay=calls, weighting="single", items=1, probes="injection")


def test_a_file_in_place_of_the_output_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("", encoding="utf-8")
    with pytest.raises(StorageError, match="is a file; name"):
        make_card_with(out=tmp_path / "here")


# Real texts.


@pytest.fixture
def oracle(shared_tool: Callable[[str], Path], shared_data: Callable[[str], Path]) -> Iterator[str]:
    """Yield the address of a server that gives SummEval's texts people's scores and other texts random ones."""
    command = [
        shared_tool("replay_server.py"),
        "--data",
        shared_data("summeval_smoke.jsonl"),
        "--port",
        0,
    ]
    arguments = [*command, "--oracle", 0, "--as-logprobs", "--on-miss", "synthetic"]
    server = subprocess.Popen(
        [sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    yield server.stdout.readline().split()[2]
    server.terminate()
    server.communicate()


@pytest.mark.slow
def test_a_judge_with_peoples_scores_shows_no_bias(
    oracle: str, shared_data: Callable[[str], Path]
) -> None:
    rows = shared_data("summeval_smoke.jsonl")
    columns = {"item": "doc_id", "output": "summary"}
    card = make_card(rows, ["fluency_5"], model="m", base_url=oracle, map=columns, cache=False)
    assert (card.failures, card.info["texts"]) == ({}, 5)
    assert {cell.mean_change.value for cell in card.attacks if cell.mean_change} == {0.0}
    probes = ("wording", "wording of the criterion", "repeats")
    still = [
        finding
        for finding in card.findings
        if finding.probe in probes or finding.measure.startswith("duplicated")
    ]
    repeated = [finding for finding in still if finding.measure.startswith(IDENTICAL_SCORES)]
    assert {finding.estimate.value for finding in repeated} == {1.0}
    changes = [finding for finding in still if finding not in repeated]
    assert {finding.estimate.value for finding in changes} == {0.0}
    assert len({finding.probe for finding in changes}) == 4
    assert {cell.change for cell in card.cells if cell.targeted} >= {"truncated"}
