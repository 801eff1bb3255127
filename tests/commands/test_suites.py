"""judge.test(): requests and verdicts of a suite, the baseline, the budget, and errors before any request."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.commands import prepared_suites, test
from judge.core.errors import ConfigError, DataError, JudgeError, Refused, StorageError
from judge.core.records import Response, Usage
from judge.execution.progress import Progress
from judge.providers.scripted import Reply, ScriptedProvider
from judge.results.loading import load
from judge.results.result import Result
from judge.suite.case import Verdict
from judge.suite.evaluate import Outcome
from tests.factories import has_line, write_jsonl

ITEMS = ("bridge", "road", "roof", "gate", "wall", "pond", "mill", "barn")
POLITE = """---
scale: [1, 5]
---
Is it polite? The customer wrote: {{ customer }}
{{ output }}
Answer with a number.
"""
SHORTER = """---
scale: {labels: [A, B], values: [1, 0]}
---
Which one is shorter?
{{ first }}
{{ second }}
Answer with A or B.
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with data of two systems (x scores above y) and two criteria."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "item": item,
            "system": system,
            "source": f"The {item} is to be mended.",
            "output": f"{system} {item}",
            "human": {"relevance": 4 + n % 2 if system == "x" else 1 + n % 2},
        }
        for n, item in enumerate(ITEMS)
        for system in "xy"
    ]
    write_jsonl("data.jsonl", rows)
    Path("polite.jinja").write_text(POLITE, encoding="utf-8")
    Path("shorter.jinja").write_text(SHORTER, encoding="utf-8")
    return tmp_path


def suite(text: str, name: str = "one.judge.yaml") -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")
    return name


def grading(x: Reply = "4", y: Reply = "2", **options: Any) -> ScriptedProvider:
    """Return a judge with one grade for x's texts and one for others. Of two texts, it prefers the first."""

    def script(request: Any) -> Reply:
        text = request.messages[0]["content"]
        if "Which one is shorter?" in text or "Text A" in text:
            return "A"
        return x if any(f"x {item}" in text for item in ITEMS) else y

    return ScriptedProvider(script, **options)


def run_suite(path: str, model: Any = None, **options: Any) -> Outcome:
    settings = {
        "model": grading() if model is None else model,
        "weighting": "single",
        "cache": False,
        **options,
    }
    (outcome,) = judge.test(path, **settings)
    return outcome


def verdicts(outcome: Outcome) -> dict[str, Verdict]:
    assert outcome.trouble == ""
    return {verdict.name: verdict for verdict in outcome.verdicts}


def prompts(provider: ScriptedProvider) -> list[str]:
    return [request.messages[0]["content"] for request in provider.seen]


BANDS = """
data: data.jsonl
cases:
  - {name: high, criterion: relevance, item: bridge, system: x, expect: {min: 3}}
  - {name: low, criterion: relevance, item: [road, roof], system: y, expect: {label: "2"}}
  - {name: too high, criterion: fluency_5, item: bridge, system: y, expect: {min: 3}}
"""


def test_judges_only_the_texts_of_the_cases(folder: Path) -> None:
    provider = grading()
    outcome = run_suite(suite(BANDS), provider)
    by_name = verdicts(outcome)
    assert {name: verdict.status for name, verdict in by_name.items()} == {
        "high": "passed", "low": "passed", "too high": "failed", "failures": "passed",
    }  # fmt: skip
    assert not outcome.passed
    assert len(provider.seen) == 4
    assert outcome.result is not None
    assert outcome.ranked is outcome.comparison is None
    judged = {(row.item, row.system, row.column) for row in outcome.result.table.scores}
    assert judged == {
        ("bridge", "x", "relevance"), ("road", "y", "relevance"), ("roof", "y", "relevance"),
        ("bridge", "y", "fluency_5"),
    }  # fmt: skip
    assert "Scripted replies" in outcome.notes[0]
    assert outcome.seconds > 0


def test_a_text_needs_only_the_fields_of_its_own_criteria(folder: Path) -> None:
    text = """
        data: data.jsonl
        cases:
          - {name: a, criterion: relevance, item: bridge, system: x, expect: {min: 3}}
          - {name: b, criterion: polite.jinja, text: {customer: "Where is it?", output: Over there.}, expect: {max: 3}}
        """
    outcome = run_suite(suite(text))
    assert outcome.passed
    assert outcome.result is not None
    assert outcome.result.info.criteria["polite"].needs == ("customer", "output")
    assert [sample.item for sample in outcome.result.table.samples] == ["bridge", "b"]


ORDERS = """
data: data.jsonl
cases:
  - {name: of data, criterion: shorter.jinja, item: [bridge, road], better: x, worse: y}
  - {name: of two texts, criterion: overall, text: {source: Say hi.}, better: {output: Hi.}, worse: {output: Oh.}}
  - {name: equal, criterion: shorter.jinja, better: {output: same}, worse: {output: same}}
"""


def test_two_texts_are_compared_in_both_orders_by_the_cases_own_criterion(folder: Path) -> None:
    provider = grading()
    outcome = run_suite(suite(ORDERS), provider)
    by_name = verdicts(outcome)
    assert len(provider.seen) == 2 * 2 + 2  # equal texts need no requests
    assert sum("shorter" in prompt for prompt in prompts(provider)) == 4
    assert {verdict.status for verdict in by_name.values() if verdict.kind == "order"} <= {
        "failed",
        "undecided",
    }
    assert outcome.result is None
    assert outcome.ranked is not None
    assert len(outcome.ranked.table.scores) == 6 + 2
    assert {row.column for row in outcome.ranked.table.scores if row.item == "equal"} == {"shorter"}
    assert outcome.ranked.table.failures == ()


def test_scores_and_comparisons_of_one_suite(folder: Path) -> None:
    text = (
        BANDS
        + "  - {name: pair, criterion: shorter.jinja, item: bridge, better: x, worse: y, undecided: pass}\n"
    )
    (ready,) = prepared_suites.prepare_suites(suite(text), model=grading())
    assert ready.judgments == 4 + 2
    outcome = run_suite(suite(text))
    assert set(verdicts(outcome)) == {"high", "low", "too high", "pair", "failures"}
    assert verdicts(outcome)["failures"].found.startswith("0 of 6")
    run_suite("one.judge.yaml", record="calls.jsonl", out="runs")
    assert load("runs").table.scores
    assert load("runs/pairs").rankings
    replayed = run_suite("one.judge.yaml", [], replay="calls.jsonl")
    assert [verdict.status for verdict in replayed.verdicts] == [
        verdict.status for verdict in outcome.verdicts
    ]


def test_the_mean_of_a_panel_decides(folder: Path) -> None:
    text = (
        BANDS
        + "  - {name: pair, criterion: shorter.jinja, better: {output: same}, worse: {output: same}}\n"
    )
    outcome = run_suite(suite(text), [grading(x="5", model="a"), grading(x="2", model="b")])
    by_name = verdicts(outcome)
    assert by_name["high"].found.startswith("3.50")
    assert by_name["failures"].found == "0 of 8"
    assert outcome.ranked is not None
    assert {row.column for row in outcome.ranked.table.scores} == {
        "shorter",
        "shorter/a",
        "shorter/b",
    }


def test_a_function_is_a_judge(folder: Path) -> None:
    assert (
        verdicts(run_suite(suite(BANDS), lambda prompt: 5 if "x bridge" in prompt else 1))[
            "high"
        ].found
        == "5.00"
    )


def test_an_unknown_option_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"metrics: .*no such option"):
        run_suite(suite(BANDS), metrics=["rouge"])
    with pytest.raises(ConfigError, match="'wieghting'; did you mean 'weighting'"):
        run_suite("one.judge.yaml", wieghting="single")


def test_cases_can_use_peoples_ratings(folder: Path) -> None:
    text = "data: data.jsonl\ncases:\n  - {name: people, criterion: relevance, human: {spearman: {min: 0.1}}}\n"
    outcome = run_suite(suite(text))
    people = verdicts(outcome)["people"]
    assert people.found.startswith("spearman 0.")
    assert has_line(people.reason, "too few items", "at least 10")
    assert outcome.result is not None
    assert all(sample.human for sample in outcome.result.table.samples)
    updated = run_suite("one.judge.yaml", out="runs")
    assert updated.result is not None
    assert [rated.criterion for rated in updated.result.rated] == ["relevance"]
    assert load("runs").table.samples == updated.result.table.samples


def test_options_override_the_suite_files(folder: Path) -> None:
    path = suite(
        f"limit: 1\nweighting: logprobs\nmodel: no-such-model\nreplay: none.jsonl\n{BANDS.lstrip()}"
    )
    with pytest.raises(ConfigError, match=r"none\.jsonl: no such file"):
        judge.test(path)
    with pytest.raises(ConfigError, match="unknown item 'road'"):
        run_suite(path)
    outcome = run_suite(path, limit=100, weighting="single")
    assert outcome.result is not None
    assert {row.provenance.method for row in outcome.result.table.scores} == {"single"}
    assert outcome.result.info.model == "script"


def test_a_prompt_option_replaces_the_prompt_of_a_suite(folder: Path) -> None:
    suite(
        "---\nscale: [1, 5]\n---\nIs the other prompt asked?\n{{ output }}\n",
        "other/relevance.jinja",
    )
    provider = grading()
    run_suite(suite(BANDS), provider, criteria="other/relevance.jinja")
    assert sum("other prompt" in prompt for prompt in prompts(provider)) == 3
    with pytest.raises(ConfigError, match="no case is about it"):
        run_suite("one.judge.yaml", criteria="coherence")


def test_cases_are_chosen_by_name(folder: Path) -> None:
    provider = grading()
    outcome = run_suite(suite(BANDS), provider, cases="HIGH")
    assert set(verdicts(outcome)) == {"high", "too high", "failures"}
    assert len(provider.seen) == 2
    with pytest.raises(ConfigError, match=r"'hihg'; did you mean 'high'"):
        run_suite("one.judge.yaml", cases="hihg")


def test_undecided_cases_count_as_configured(folder: Path) -> None:
    text = "data: data.jsonl\ncases:\n  - {name: a, criterion: relevance, item: bridge, system: x, expect: {min: 3}}\n"
    options: dict[str, Any] = {
        "weighting": "logprobs",
        "model": grading(x={"4": 0.6, "?": 0.001}),
    }  # and .4 on other tokens
    assert verdicts(run_suite(suite(text), **options))["a"].status == "undecided"
    assert not run_suite("one.judge.yaml", **options).passed
    assert run_suite("one.judge.yaml", **options, undecided="pass").passed
    assert not run_suite(suite("undecided: pass\n" + text), **options, undecided="fail").passed
    assert run_suite("one.judge.yaml", **options).passed


async def _beside() -> tuple[Outcome, ...]:
    inside = judge.test("one.judge.yaml", model=grading(), cache=False)
    progress = Progress()
    outcomes = await test.test_async(
        "one.judge.yaml", model=grading(), cache=False, progress=progress
    )
    assert progress.done == 4
    return (*inside, *outcomes)


def test_test_works_in_a_running_event_loop(folder: Path) -> None:
    import asyncio

    suite(BANDS)
    assert len({outcome.verdicts for outcome in asyncio.run(_beside())}) == 1


# Errors


def test_all_mistakes_are_reported_before_any_request(folder: Path) -> None:
    suite(BANDS, "s/a.judge.yaml")
    suite(
        "data: ../data.jsonl\ncases:\n  - {criterion: relevance, item: brigde, expect: {min: 3}}\n",
        "s/b.judge.yaml",
    )
    suite(
        "cases:\n  - {criterion: relevence, text: {output: a}, expect: {min: 3}}\n",
        "s/c.judge.yaml",
    )
    suite("data: ../data.jsonl\ncase: []\n", "s/d.judge.yaml")
    suite(
        "data: ../data.jsonl\ncases:\n  - {criterion: relevance, drift: {max_shift: 1}}\n",
        "s/e.judge.yaml",
    )
    suite(
        "data: ../data.jsonl\nbaseline: there\ncases:\n  - {criterion: relevance, expect: {min: 1}}\n",
        "s/f.judge.yaml",
    )
    provider = grading()
    with pytest.raises(ConfigError) as error:
        judge.test("s", model=provider)
    messages = str(error.value)
    for place, message in (
        ("s/a.judge.yaml:2", "data.jsonl: no such file"),
        ("s/b.judge.yaml:3", "did you mean 'bridge'?"),
        ("s/c.judge.yaml:2", "did you mean 'relevance'?"),
        ("s/d.judge.yaml:2", "did you mean 'cases'?"),
        ("s/e.judge.yaml:3", "drift needs a baseline: write baseline: FOLDER at the top"),
        ("s/f.judge.yaml:2", "there is no run in s/there; update_baseline=True makes a new one"),
    ):
        assert any(line.startswith(place) and message in line for line in messages.splitlines()), (
            place,
            messages,
        )
    assert provider.seen == []


def test_one_mistake_keeps_its_kind(folder: Path) -> None:
    Path("data.jsonl").write_text('{"item": 1}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"data\.jsonl:1"):
        run_suite(suite(BANDS))


def test_a_failing_suite_does_not_stop_the_others(folder: Path) -> None:
    suite(BANDS, "a.judge.yaml")
    Path("replies.yaml").write_text("- {when: [], reply: 4}\n", encoding="utf-8")
    suite(f"model: scripted/replies.yaml\n{BANDS}", "b.judge.yaml")
    gone = ScriptedProvider(lambda _: Refused("the key is not valid", stops="always"))
    first, second = judge.test(["a.judge.yaml", "b.judge.yaml"], model=gone, cache=False)
    assert first.trouble.startswith("the key is not valid")
    assert second.trouble.startswith("the key is not valid")
    assert first.verdicts == ()
    assert not first.passed
    Path("calls.jsonl").write_text("", encoding="utf-8")
    recorded = run_suite("b.judge.yaml", [], record="recorded.jsonl")
    assert recorded.trouble == ""
    with_other = suite(f"replay: recorded.jsonl\n{BANDS.replace('bridge', 'mill')}", "c.judge.yaml")
    missed, whole = judge.test([with_other, "b.judge.yaml"], cache=False)
    assert has_line(missed.trouble, "recorded.jsonl", "not hold the reply")
    assert whole.trouble == ""


def test_the_longest_prompt_and_the_whole_price_are_limited(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = ScriptedProvider(
        lambda _: "4", model="gpt-5.4-mini", endpoint="https://api.openai.com/v1"
    )
    replies.notice = ""
    run_suite(suite(BANDS), replies, record="calls.jsonl", weighting="single")
    text = (
        "replay: calls.jsonl\nweighting: single\nlimits: {tokens: 10000, cost: 0.50usd}\n" + BANDS
    )
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (fits,) = judge.test(suite(text), cache=False)
    assert verdicts(fits)["tokens"].met
    assert verdicts(fits)["cost"].met
    assert 0 < float(verdicts(fits)["cost"].found.removeprefix("$")) < 0.01
    (over,) = judge.test(
        suite(text.replace("10000", "10").replace("0.50usd", "0.00001usd")), cache=False
    )
    assert verdicts(over)["tokens"].status == verdicts(over)["cost"].status == "failed"
    with_base_url = "base_url: http://127.0.0.1:1/v1\n" + text
    (unknown,) = judge.test(suite(with_base_url), cache=False)
    cost = verdicts(unknown)["cost"]
    assert (cost.status, cost.met) == ("error", False)
    assert has_line(cost.reason, "no known price", "`tokens`")


def test_all_suites_share_the_budget_option(folder: Path) -> None:
    def script(request: Any) -> Reply:
        (choice,) = ScriptedProvider(lambda _: "4")._answer(request).choices
        return Response((choice,), Usage(300, 1), "scripted")

    paths = [suite(BANDS, "a.judge.yaml"), suite(BANDS, "b.judge.yaml")]
    # A request is sent if 2,768 tokens are left, its maximum cost. It then costs 301.
    alone = judge.test(
        paths[0],
        model=ScriptedProvider(script),
        weighting="single",
        budget="3800tokens",
        cache=False,
    )
    assert alone[0].trouble == ""
    both = judge.test(
        paths, model=ScriptedProvider(script), weighting="single", budget="3800tokens", cache=False
    )
    assert [bool(outcome.trouble) for outcome in both] == [False, True]
    assert "budget" in both[1].trouble
    in_file = [suite("budget: 3800tokens\n" + BANDS, path) for path in paths]
    each = judge.test(in_file, model=ScriptedProvider(script), weighting="single", cache=False)
    assert [outcome.trouble for outcome in each] == ["", ""]


def test_all_suites_share_the_deadline_option(folder: Path) -> None:
    paths = [suite(BANDS, "a.judge.yaml"), suite("deadline: 100\n" + BANDS, "b.judge.yaml")]
    outcomes = judge.test(paths, model=grading(), deadline=1e-9, cache=False)
    assert all("deadline" in outcome.trouble for outcome in outcomes)


# The baseline

WATCHED = """
data: data.jsonl
baseline: kept/one
cases:
  - {name: band, criterion: relevance, item: bridge, system: x, expect: {min: 2}}
  - {name: same, criterion: relevance, drift: {max_shift: 0.2}}
  - {name: fluent, criterion: fluency_5, system: x, expect: {min: 1}}
"""


def test_later_runs_are_compared_with_the_baseline(folder: Path) -> None:
    path = suite(WATCHED)
    first = run_suite(path, update_baseline=True)
    assert first.passed
    assert set(verdicts(first)) == {
        "band",
        "fluent",
        "failures",
    }  # without a baseline there is no drift
    nothing, written = first.notes[-2:]
    assert has_line(nothing, "no run in kept/one", "1 case of drift not judged")
    assert has_line(written, "New baseline", "kept/one")
    assert sorted(file.name for file in Path("kept/one").iterdir()) == [
        "run.json", "samples.parquet", "scores.parquet",
    ]  # fmt: skip
    same = run_suite(path)
    assert same.passed
    assert verdicts(same)["same"].kind == "drift"
    assert verdicts(same)["fluency_5 against the baseline"].reason == "the same"
    assert same.comparison is not None
    worse = run_suite(path, grading(x="3"))
    # Eight items are too few for the agreement with people, so worse scores count.
    assert {name for name, verdict in verdicts(worse).items() if not verdict.met} == {
        "same", "fluency_5 against the baseline", "relevance against the baseline",
    }  # fmt: skip


def test_update_baseline_accepts_changes_but_not_failing_cases(folder: Path) -> None:
    path = suite(WATCHED)
    run_suite(path, update_baseline=True)
    before = Path("kept/one/scores.parquet").read_bytes()
    unmet = run_suite(path, grading(x="1"), update_baseline=True)
    assert not unmet.passed
    assert has_line(unmet.notes[-1], "Baseline not updated", "kept/one", "1 failure")
    assert Path("kept/one/scores.parquet").read_bytes() == before
    moved = run_suite(path, grading(x="3"), update_baseline=True)
    assert moved.passed
    drift = verdicts(moved)["same"]
    assert (drift.status, drift.met) == ("failed", True)
    assert drift.reason.endswith("accepted as the new baseline")
    assert run_suite(path, grading(x="3")).passed


def test_a_baseline_of_different_data_is_refused(folder: Path) -> None:
    path = suite(WATCHED)
    run_suite(path, update_baseline=True)
    data = Path("data.jsonl").read_text(encoding="utf-8")
    Path("data.jsonl").write_text(data.replace("is to be mended", "was mended"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        run_suite(path)
    message = str(caught.value)
    assert message.startswith("one.judge.yaml:3: baseline: ")
    assert has_line(message, "16 of 16 texts", "source", "'bridge' of system 'x'")
    assert has_line(message, "update_baseline=True")
    with pytest.raises(ConfigError, match=r"^one\.judge\.yaml: baseline: .*data differ"):
        run_suite(path, baseline="kept/one")
    renewed = run_suite(path, update_baseline=True)
    assert renewed.passed
    assert renewed.comparison is None
    assert has_line(renewed.notes[-2], "system 'x'", "1 case of drift not judged")
    Path("data.jsonl").write_text(data.replace('"item": "', '"item": "the '), encoding="utf-8")
    with pytest.raises(ConfigError, match="item 'the bridge'"):
        run_suite(suite(WATCHED.replace("bridge", "the bridge")))


def test_a_few_edited_texts_are_excluded(folder: Path) -> None:
    path = suite(WATCHED)
    run_suite(path, ScriptedProvider(lambda _: "4"), update_baseline=True)
    data = Path("data.jsonl").read_text(encoding="utf-8")
    Path("data.jsonl").write_text(
        data.replace('"output": "x roof"', '"output": "x roof!"'), encoding="utf-8"
    )
    low = ScriptedProvider(
        lambda request: "1" if "roof!" in request.messages[0]["content"] else "4"
    )
    edited = run_suite(path, low)
    by_name = verdicts(edited)
    assert by_name["fluency_5 against the baseline"].reason == "the same"
    assert by_name["same"].found == "0.00"
    assert has_line(edited.notes[-1], "1 of 16 texts edited", "item 'roof' of system 'x'")
    assert (
        by_name["relevance of changed texts against the baseline"].status == "passed"
    )  # one is too few


@pytest.mark.parametrize(
    ("old_grade", "new_grade", "unmet", "facts"),
    [
        (
            "4",
            "3",
            {"fluency_5 of changed texts against the baseline"},
            ("z: worse", "p = 0.008", "−1.00", "judge 0.00"),
        ),
        (
            "3",
            "3",
            {"fluency_5 against the baseline"},
            ("z: no significant change", "p = 1.000", "−1.00", "judge −1.00"),
        ),
        ("4", "4", set(), ("z: no significant change", "p = 1.000", "0.00", "judge 0.00")),
    ],
)
def test_changed_texts_are_compared_without_the_judges_shift(
    folder: Path, old_grade: str, new_grade: str, unmet: set[str], facts: tuple[str, ...]
) -> None:
    def write(output: str) -> None:
        rows = [
            {
                "item": f"i{n}",
                "system": s,
                "source": "Mend it.",
                "output": f"{output if s == 'z' else s} {n}",
            }
            for n in range(8)
            for s in "vwxyz"
        ]
        write_jsonl("data.jsonl", rows)

    path = suite(
        "data: data.jsonl\nbaseline: kept\ncases:\n  - {name: band, criterion: fluency_5, expect: {min: 1}}\n"
    )
    write("old")
    run_suite(path, ScriptedProvider(lambda _: "4"), update_baseline=True)
    write("edited")
    grades = ScriptedProvider(
        lambda r: new_grade if "edited" in r.messages[0]["content"] else old_grade
    )
    by_name = verdicts(run_suite(path, grades))
    assert {name for name, verdict in by_name.items() if not verdict.met} == unmet
    reason = by_name["fluency_5 of changed texts against the baseline"].reason
    assert has_line(reason, *facts)
    judged = by_name["fluency_5 against the baseline"].reason
    assert ("same texts: the judge changed" in judged) == (old_grade == "3")


@pytest.mark.parametrize(
    ("grade", "systems", "status", "facts"),
    [
        ("3", "vwx", "failed", ("v: worse", "p = 0.023", "−1.00", "judge 0.00")),
        (
            "3",
            "vwxyz",
            "failed",
            ("v: worse", "p = 0.039", "too few unchanged texts"),
        ),
        (
            "5",
            "vwxyz",
            "passed",
            ("v: better", "p = 0.039", "too few unchanged texts"),
        ),
    ],
)
def test_a_changed_prompt_of_a_system_is_compared(
    folder: Path, grade: str, systems: str, status: str, facts: tuple[str, ...]
) -> None:
    """At least half of the outputs changed. The judge's shift is measured on the unchanged ones, if any."""

    def write(new: str) -> None:
        rows = [
            {
                "item": f"i{n}",
                "system": s,
                "source": "Mend it.",
                "output": f"{'new' if s in new else 'old'} {s} {n}",
            }
            for n in range(8)
            for s in "vwxyz"
        ]
        write_jsonl("data.jsonl", rows)

    cases = "  - {name: same, criterion: fluency_5, drift: {max_shift: 0.2}}\n"
    cases += "  - {name: band, criterion: fluency_5, expect: {min: 1}}\n"
    path = suite(f"data: data.jsonl\nbaseline: kept\ncases:\n{cases}")
    write("")
    run_suite(path, ScriptedProvider(lambda _: "4"), update_baseline=True)
    write(systems)
    outcome = run_suite(
        path, ScriptedProvider(lambda r: grade if "new" in r.messages[0]["content"] else "4")
    )
    verdict = verdicts(outcome)["fluency_5 of changed texts against the baseline"]
    assert verdict.status == status
    assert has_line(verdict.reason, *facts)
    assert outcome.passed == (status == "passed")
    if systems == "vwxyz":
        assert has_line(outcome.notes, "1 case of drift", "not judged")
        assert has_line(outcome.notes[-2], "40 of 40 texts edited", "item 'i0' of system 'v'")
        assert has_line(outcome.notes[-2], "no unchanged text")
    else:
        assert verdicts(outcome)["same"].found == "0.00"


def test_a_criterion_that_the_baseline_lacks_is_a_note(folder: Path) -> None:
    run_suite(suite(BANDS.replace("- {name: too", "# ")), baseline="kept", update_baseline=True)
    new = run_suite(
        suite(
            BANDS.replace(
                "item: bridge, system: y, expect: {min: 3}", "system: x, expect: {label: '4'}"
            )
        ),
        baseline="kept",
    )
    assert new.passed
    assert [name for name in verdicts(new) if "baseline" in name] == [
        "relevance against the baseline"
    ]
    assert has_line(new.notes[-1], "New", "not in the baseline", "fluency_5")
    alone = (
        BANDS.partition("  - {name: high")[0]
        + "  - {name: f, criterion: fluency_5, item: bridge, expect: {min: 1}}\n"
    )
    assert run_suite(suite(alone), baseline="kept").passed
    drifting = run_suite(
        suite(alone + "  - {name: same, criterion: fluency_5, drift: {max_shift: 1}}\n"),
        baseline="kept",
    )
    assert verdicts(drifting)["same"].status == "error"


def test_a_baseline_does_not_overwrite_a_foreign_report(folder: Path) -> None:
    Path("mine").mkdir()
    Path("mine/one").mkdir()
    Path("mine/one/report.md").write_text("Mine.", encoding="utf-8")
    provider = grading()
    for where, message in (
        ("mine", "mine/one holds a report that is not from judge"),
        ("data.jsonl", "is a file"),
    ):
        with pytest.raises(StorageError, match=message):
            run_suite(suite(BANDS), provider, baseline=where, update_baseline=True)
    assert Path("mine/one/report.md").read_text(encoding="utf-8") == "Mine."
    assert not provider.seen


@pytest.mark.parametrize("limit", ["0", "50%"])
def test_an_incomplete_recording_is_an_error_despite_allowed_failures(
    folder: Path, limit: str
) -> None:
    text = f"data: data.jsonl\nlimits: {{failures: {limit}}}\ncases:\n  - {{criterion: relevance, expect: {{min: 1}}}}\n"
    path = suite(text)
    run_suite(path, record="calls.jsonl", limit=12)
    assert run_suite(path, [], replay="calls.jsonl", limit=12).passed
    outcome = run_suite(path, [], replay="calls.jsonl", max_concurrency=1)
    assert not outcome.verdicts
    assert has_line(outcome.trouble, "4 of 16 texts", "item 'mill' of system 'x' by relevance")
    assert has_line(outcome.trouble, "Cases", "relevance")
    assert has_line(outcome.trouble, "calls.jsonl", "does not hold")
    assert "record='calls.jsonl'" in outcome.trouble


def test_a_limit_of_many_digits(folder: Path) -> None:
    many = "9" * 15
    text = f"data: data.jsonl\nlimit: {many}\nlimits: {{failures: {many}}}\ncases:\n"
    assert run_suite(suite(text + "  - {criterion: relevance, expect: {min: 1}}\n")).passed


def test_texts_that_are_new_are_a_note(folder: Path) -> None:
    data = Path("data.jsonl").read_text(encoding="utf-8").splitlines()
    Path("data.jsonl").write_text("\n".join(data[:-2]), encoding="utf-8")
    run_suite(suite(WATCHED), update_baseline=True)
    Path("data.jsonl").write_text("\n".join(data), encoding="utf-8")
    more = run_suite("one.judge.yaml")
    assert more.passed
    assert has_line(more.notes[-1], "2 of 16 texts", "not in the baseline")


def test_summary_counts_baseline_texts_that_are_missing(folder: Path) -> None:
    run_suite(suite(WATCHED), update_baseline=True)
    data = Path("data.jsonl").read_text(encoding="utf-8").splitlines()
    Path("data.jsonl").write_text("\n".join(data[:-1]), encoding="utf-8")
    fewer = run_suite("one.judge.yaml")
    (warning,) = fewer.warnings
    assert has_line(warning, "1 of 16 texts", "baseline", "item 'barn' of system 'y'")
    assert has_line(fewer.warnings[0], "1 of 16 texts", "missing")
    assert (
        run_suite("one.judge.yaml", cases="band").warnings == ()
    )  # fewer cases are known to miss texts


def test_a_recording_of_two_models_needs_a_model_option(folder: Path) -> None:
    path = suite(BANDS)
    for name in ("small", "large"):
        run_suite(path, grading(model=name), record="calls.jsonl")
    with pytest.raises(ConfigError, match="replies of large and small"):
        judge.test(path, replay="calls.jsonl", cache=False, weighting="single")
    (outcome,) = judge.test(
        path, replay="calls.jsonl", model="small", cache=False, weighting="single"
    )
    assert outcome.trouble == ""


def add_marks() -> None:
    """Add a column of ratings to the data."""
    rows = [json.loads(line) for line in Path("data.jsonl").read_text("utf-8").splitlines()]
    write_jsonl("data.jsonl", [{**row, "mark": 4} for row in rows])


def test_a_mapped_field_that_no_criterion_of_the_suite_reads_is_refused(folder: Path) -> None:
    add_marks()
    path = suite(f"map: {{rating.relevnce: mark}}\n{BANDS.lstrip()}")
    with pytest.raises(ConfigError) as refused:
        run_suite(path)
    assert has_line(str(refused.value), "one.judge.yaml", "did you mean relevance?")


def test_cases_that_run_alone_keep_the_mapping_of_the_others(folder: Path) -> None:
    text = (
        f"map: {{rating.fluency: mark}}\n{BANDS.lstrip()}"
        "  - {name: fluent, criterion: fluency, item: mill, expect: {min: 1}}\n"
    )
    add_marks()
    assert run_suite(suite(text), cases="high").trouble == ""


def test_notes_a_column_that_a_mapping_hides(folder: Path) -> None:
    text = "data: data.jsonl\nmap: {source: customer}\ncases:\n"
    rows = [{"item": "1", "system": "x", "customer": "Where is it?", "output": "Here."}]
    Path("data.jsonl").write_text(json.dumps(rows[0]), encoding="utf-8")
    with pytest.raises(JudgeError, match=r"'customer'.*mapped to source"):
        run_suite(suite(text + "  - {criterion: polite.jinja, expect: {min: 1}}\n"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"update_baseline": True},
            "update_baseline=True.*baseline: FOLDER.*baseline='DIR'",
        ),
        ({"baseline": "data.jsonl"}, "baseline: .*no run in data.jsonl"),
        (
            {"baseline": "b", "update_baseline": True, "cases": "high"},
            "the texts of other cases",
        ),
        ({"baseline": "ranked"}, "no text.*score in ranked"),
        ({"baseline": "broken"}, "cannot read broken/run.json"),
    ],
)
def test_refuses_an_invalid_baseline(folder: Path, options: dict[str, Any], message: str) -> None:
    judge.rank("data.jsonl", ["shorter.jinja"], model=grading(), cache=False, out="ranked", limit=4)
    suite("{", "broken/run.json")
    with pytest.raises(JudgeError, match=message):
        run_suite(suite(BANDS), **options)


def test_comparisons_have_no_baseline(folder: Path) -> None:
    with pytest.raises(ConfigError, match="all cases here compare pairs"):
        run_suite(suite(f"baseline: b\n{ORDERS.lstrip()}"), update_baseline=True)
    outcome = run_suite(suite(ORDERS), baseline="b")
    assert outcome.trouble == ""
    assert outcome.warnings[-1].startswith("Not compared with a baseline")


def test_a_suite_without_a_baseline_folder_is_new(folder: Path) -> None:
    run_suite(suite(BANDS.replace("- {name: too", "# ")), baseline="kept", update_baseline=True)
    assert Path("kept/one/run.json").exists()
    text = BANDS.replace("- {name: too", "# ")
    paths = ["one.judge.yaml", suite(text, "new.judge.yaml")]
    before, after = judge.test(
        paths, model=grading(), weighting="single", cache=False, baseline="kept"
    )
    assert before.comparison is not None
    assert (after.passed, after.comparison) == (True, None)
    (warning,) = after.warnings
    assert has_line(warning, "Not compared", "no run in kept/new")
    assert "Not compared with a baseline" in after.warnings[0]
    with pytest.raises(ConfigError, match=r"baseline='kepd': .*'kept'\?"):
        run_suite("new.judge.yaml", baseline="kepd")
    drifting = run_suite(
        suite(
            text + "  - {name: same, criterion: relevance, drift: {max_shift: 1}}\n", "d.judge.yaml"
        ),
        baseline="kept",
    )
    assert (verdicts(drifting)["same"].status, drifting.passed) == ("error", False)
    assert run_suite(
        suite(text + "  - {name: s, criterion: relevance, item: bridge, expect: {min: 1}}\n"),
        baseline="kept",
    )
    Path("empty").mkdir()
    with pytest.raises(ConfigError, match=r"baseline: .*no run in empty"):
        run_suite("new.judge.yaml", baseline="empty")
    assert run_suite("new.judge.yaml", baseline="kept/one").comparison is not None  # a run folder


def test_each_of_several_suites_has_a_folder(folder: Path) -> None:
    suite(BANDS.replace("- {name: too", "# "), "s/a.judge.yaml")
    suite(BANDS.replace("- {name: too", "# "), "s/b.judge.yaml")
    Path("s/data.jsonl").write_bytes(Path("data.jsonl").read_bytes())
    outcomes = judge.test(
        "s", model=grading(), cache=False, baseline="kept", update_baseline=True, out="runs"
    )
    assert all(outcome.passed for outcome in outcomes)
    assert (Path("kept/a/run.json").exists(), Path("kept/b/run.json").exists()) == (True, True)
    assert Path("runs/b/report.html").exists()
    assert run_suite("s/b.judge.yaml", baseline="kept").comparison is not None
    suite(BANDS, "s/more/a.judge.yaml")
    Path("s/more/data.jsonl").write_bytes(Path("data.jsonl").read_bytes())
    with pytest.raises(ConfigError, match=r"2 suites.*name a"):
        judge.test("s", model=grading(), baseline="kept")


def test_a_suite_on_real_texts(folder: Path, shared_data: Callable[[str], Path]) -> None:
    """The judge gives people's rounded score, so it agrees with them and both ends are within the bands."""
    rows = [
        json.loads(line)
        for line in shared_data("summeval_smoke.jsonl").read_text("utf-8").splitlines()
    ]
    grade_by_text = {row["summary"]: str(int(row["human"]["relevance"] + 0.5)) for row in rows}

    def script(request: Any) -> Reply:
        text = request.messages[0]["content"]
        return next(grade for summary, grade in grade_by_text.items() if summary in text)

    best, worst = (choose(rows, key=lambda row: row["human"]["relevance"]) for choose in (max, min))
    text = f"""
data: {json.dumps(str(shared_data("summeval_smoke.jsonl")))}
map: {{item: doc_id, output: summary}}
weighting: single
cases:
  - {{name: people, criterion: relevance, human: {{spearman: {{min: 0.3}}, level: all-texts}}, undecided: pass}}
  - {{name: best, criterion: relevance, item: {best["doc_id"]}, system: {best["system"]}, expect: {{min: 4}}}}
  - {{name: worst, criterion: relevance, item: {worst["doc_id"]}, system: {worst["system"]}, expect: {{max: 3}}}}
"""
    outcome = run_suite(suite(text), ScriptedProvider(script))
    assert {name: verdict.met for name, verdict in verdicts(outcome).items()} == {
        "people": True, "best": True, "worst": True, "failures": True,
    }  # fmt: skip
    assert isinstance(outcome.result, Result)
    assert outcome.result.rated == ()


def test_a_pass_mark_option_adds_a_pass_rate(tmp_path: Path) -> None:
    (tmp_path / "replies.yaml").write_text('- reply: "4"\n', encoding="utf-8")
    suite = tmp_path / "s.judge.yaml"
    suite.write_text(
        "data: data.jsonl\n"
        "criteria: 'kind: Is it kind?'\n"
        "model: scripted/replies.yaml\n"
        "cases:\n  - {name: rate, pass_rate: {min: 0.1}}\n",
        encoding="utf-8",
    )
    write_jsonl(tmp_path / "data.jsonl", [{"item": f"i{n}", "output": "Hi."} for n in range(8)])
    options: dict[str, Any] = {"weighting": "single", "cache": False}
    with pytest.raises(ConfigError, match="kind does not say"):
        judge.test(suite, **options)
    assert judge.test(suite, pass_at=4, **options).passed
