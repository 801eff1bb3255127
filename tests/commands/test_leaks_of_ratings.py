"""Ratings used to make a prompt enter no estimate: every command prints the same numbers without them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import judge
from judge.commands.criteria_diff.shifts import criterion_shifts
from judge.core.errors import ConfigError, DataError
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.core.text_digests import seen_digest
from judge.data import ledger
from judge.providers.scripted import ScriptedProvider
from judge.report.views.disagreements import of_result
from judge.results.loading import load
from judge.results.result import Result
from judge.stats.bootstrap import Bootstrap
from judge.stats.calibration import calibrate
from judge.stats.human_agreement import people
from judge.stats.rated_columns import column_from_table
from judge.suite.agreement import agreement_change
from judge.table import Table
from tests.factories import has_line, write_jsonl

ITEMS, PICKED = 16, ("i0", "i5", "i7")
SENTENCE = (
    "The tram runs again from Monday because the bridge is safe, and the town pays for the work."
)


def grade(system: str, n: int) -> int:
    """Return people's rating of a text."""
    return min(5, max(1, {"good": 4, "poor": 2}[system] + (n * 7) % 3 - 1))


def rows(
    left_out: tuple[str, ...] = (), *, rated: Callable[[int], bool] = lambda n: True
) -> list[dict[str, Any]]:
    """Return texts of two systems for 24 items, without the ratings of `left_out`."""
    stripped = []
    for n in range(ITEMS):
        for system in ("good", "poor"):
            more = "very very surely " * (n % 3) if system == "good" else ""
            text = (
                f"{SENTENCE[: 30 + 5 * (n % 9)]} {system} {n} {more}ends with {grade(system, n)}."
            )
            votes = [grade(system, n), min(5, grade(system, n) + n % 2)]
            human = {"polite": votes} if rated(n) and f"i{n}" not in left_out else {}
            row = {"item": f"i{n}", "system": system, "source": f"{SENTENCE} {n}", "output": text}
            stripped.append({**row, "human": human})
    return stripped


def answer(request: Any) -> str:
    """Answer with the number at the end of the text, one point too high for some texts."""
    text = request.messages[0]["content"]
    mark = next((int(sign) for sign in reversed(text) if sign in "12345"), 3)
    return str(min(5, mark + len(text) % 2))


def criterion(folder: Path, name: str = "new", **header: Any) -> str:
    """Write a criterion with this header. Its prompt contains only the text."""
    path = folder / name / "polite.jinja"
    path.parent.mkdir(exist_ok=True)
    head = json.dumps({"scale": [1, 5], **header})[1:-1]
    path.write_text(f"---\n{{{head}}}\n---\nIs it polite?\n{{{{ output }}}}\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def leaking_criterion(tmp_path: Path) -> str:
    """Write a criterion that was made with the texts of three items."""
    digests = [seen_digest(row["source"], row["output"]) for row in rows() if row["item"] in PICKED]
    return criterion(tmp_path, seen=digests)


def run(data: Any, name: str, **options: Any) -> Result:
    options = {"metrics": [], "cache": False, "weighting": "single", **options}
    return judge.evaluate(data, name, model=ScriptedProvider(answer, model="grader"), **options)


def agreement(validated: Any) -> Any:
    gaps = of_result(validated) if isinstance(validated, Result) else validated.disagreements
    return [
        asdict(one) for one in (*(replace(rated, excluded=0) for rated in validated.rated), *gaps)
    ]


def suite(data: Any, name: str, **options: Any) -> Any:
    folder = Path(name).parent
    write_jsonl(folder / "data.jsonl", data)
    (folder / "a.judge.yaml").write_text(
        "data: data.jsonl\ncriteria: [polite.jinja]\nweighting: single\n"
        "cases: [{criterion: polite.jinja, human: {spearman: {min: 0.1}, level: all-texts}}]\n",
        encoding="utf-8",
    )
    model = ScriptedProvider(answer, model="grader")
    (outcome,) = judge.test(folder / "a.judge.yaml", model=model, cache=False, **options)
    assert not outcome.trouble, outcome.trouble
    return outcome


def compared(data: Any, name: str) -> Any:
    """Compare this prompt with an older one that was made without ratings."""
    old = criterion(Path(name).parents[1], "old")
    return judge.validate(run(data, old), run(data, name), n_resamples=50)


def worded(data: Any, name: str) -> Any:
    old = criterion(Path(name).parents[1], "old")
    model = ScriptedProvider(answer, model="grader")
    return judge.diff(old, name, data, model=model, human="polite", cache=False, weighting="single")


def carded(data: Any, name: str) -> Any:
    return judge.card(
        data, name, model=ScriptedProvider(answer, model="grader"), probes="bias", cache=False
    )


COMMANDS: Mapping[str, tuple[Callable[[Any, str], Any], Callable[[Any], Any]]] = {
    "run": (run, agreement),
    "validate": (lambda data, name: judge.validate(run(data, name), n_resamples=50), agreement),
    "validate of two runs": (compared, agreement),
    "filter": (lambda data, name: run(data, name).where(system="good"), agreement),
    "test": (suite, lambda outcome: [(v.name, v.status, v.estimate) for v in outcome.verdicts]),
    "criteria diff": (worded, lambda diff: diff.judged.agreement),
    "card": (carded, lambda card: [f for f in card.findings if "ratings" in repr(f)]),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_estimate_uses_only_the_other_ratings(name: str, leaking_criterion: str) -> None:
    command, numbers = COMMANDS[name]
    full, without_ratings = (
        command(rows(), leaking_criterion),
        command(rows(PICKED), leaking_criterion),
    )
    assert numbers(full) == numbers(without_ratings)
    assert numbers(full)
    n = 3 if name == "filter" else 6  # only one of the two systems
    text = full.report() if name != "test" else " ".join(full.notes)
    assert f"{n} texts excluded" in " ".join(text.split())
    assert "excluded" not in without_ratings.report() if name != "test" else True
    # Otherwise the first assertion could not fail.
    unseen = criterion(Path(leaking_criterion).parents[1], "unseen")
    assert numbers(command(rows(), unseen)) != numbers(full)


def test_calibrated_means_exclude_ratings_and_scores_of_these_texts(
    leaking_criterion: str,
) -> None:
    data = rows(rated=lambda n: n % 3 != 1 or f"i{n}" in PICKED)
    (full,) = run(data, leaking_criterion, calibrate=True).calibrated
    (without_ratings,) = run(
        [row for row in data if row["item"] not in PICKED], leaking_criterion, calibrate=True
    ).calibrated
    assert (full.means, full.differences) == (without_ratings.means, without_ratings.differences)
    assert has_line(full.note, "6 texts excluded", "prompt")
    assert full.note.endswith("drawn at random") or "drawn at random;" in full.note


def test_a_stored_run_keeps_the_ledger(leaking_criterion: str, tmp_path: Path) -> None:
    result = run(rows(), leaking_criterion, out=tmp_path / "run", calibrate=True)
    stored = json.loads((tmp_path / "run" / "run.json").read_bytes())
    assert len(stored["columns"][0]["seen"]) == 6
    assert [rated["excluded"] for rated in stored["rated"]] == [6]
    assert load(tmp_path / "run") == result
    table = result.table
    with pytest.raises(
        DataError,
        match=r"polite: ratings of 6 texts .*\(the first: row 1\)",
    ):
        replace(table, samples=tuple(judge.load_samples(rows())))


@pytest.mark.parametrize("format", ["console", "markdown", "html", "latex", "json"])
def test_every_format_counts_the_excluded_ratings(format: str, leaking_criterion: str) -> None:
    counted = '"excluded": 6' if format == "json" else "6 texts excluded: used to make the prompt."
    for report in (
        run(rows(), leaking_criterion).report(format),
        COMMANDS["validate"][0](rows(), leaking_criterion).report(format),
    ):
        assert counted in " ".join(str(report).split()).replace("% ", "")


def test_examples_in_the_header_are_used_and_their_texts_are_named(tmp_path: Path) -> None:
    """An example without a source matches every text with this output."""
    shown = [row for row in rows() if row["item"] in PICKED]
    examples = [{"output": f"{row['output']}\n", "score": 3} for row in shown[:2]]
    examples += [
        {"output": row["output"], "source": row["source"], "score": 3} for row in shown[2:5]
    ]
    examples += [{"output": shown[5]["output"], "source": "Another source.", "score": 3}]
    path = tmp_path / "polite.yaml"
    path.write_text(
        json.dumps({"question": "Is it polite?", "examples": examples}), encoding="utf-8"
    )
    result = run(rows(), str(path))
    assert [rated.excluded for rated in result.rated] == [5]
    assert has_line(result.info.notes, "5 of the judged texts", "example")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"calibrate": True},
            ConfigError,
            "calibrate.*32 texts excluded.*No rating is left",
        ),
        (
            {},
            DataError,
            "polite: 32 texts excluded.*Rate other texts",
        ),
    ],
)
def test_a_prompt_made_with_all_ratings_gives_no_estimate(
    options: Any, error: Any, message: str, tmp_path: Path
) -> None:
    name = criterion(tmp_path, seen=[seen_digest(row["source"], row["output"]) for row in rows()])
    with pytest.raises(error, match=message):
        judge.validate(run(rows(), name, **options))
    with pytest.raises(ConfigError, match=r"a\.judge\.yaml:4: human: .*'polite'.*\(32 texts"):
        suite(rows(), name)


def test_a_baseline_with_a_different_ledger(leaking_criterion: str, tmp_path: Path) -> None:
    """The change of agreement also excludes ratings that only the baseline's prompt used."""
    suite(rows(), leaking_criterion, baseline=tmp_path / "base", update_baseline=True)
    old = criterion(tmp_path, "old")
    full, without = (
        suite(data, old, baseline=tmp_path / "base") for data in (rows(), rows(PICKED))
    )
    assert [(v.name, v.found) for v in full.verdicts] == [
        (v.name, v.found) for v in without.verdicts
    ]
    assert has_line(full.notes, "polite: 6 texts excluded", "prompt")
    assert "baseline" in {v.subject for v in full.verdicts}
    with pytest.raises(DataError, match="ratings of 6 texts used"):
        agreement_change(
            run(rows(), old), run(rows(), leaking_criterion), "polite", criteria=1, seed=0
        )


# Recorded ratings


@cache
def recorded(path: Path) -> tuple[Sample, ...]:
    samples = judge.load_samples(path, map={"output": "summary", "item": "doc_id"})[:160]
    return tuple(
        replace(sample, human={"coherence": sample.human["coherence"]}) for sample in samples
    )


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_an_estimate_with_leaked_examples_is_refused(
    data: Any, shared_data: Callable[[str], Path]
) -> None:
    """If a split of examples and validation texts overlaps, it is refused; otherwise no rating is withheld."""
    samples = recorded(shared_data("summeval.jsonl"))
    places = st.sets(st.integers(0, len(samples) - 1), min_size=1, max_size=60)
    examples, validated = data.draw(places), sorted(data.draw(places))
    texts = [samples[n] for n in validated]
    shown = {
        (" ".join(str(samples[n].source).split()), " ".join(samples[n].output.split()))
        for n in examples
    }
    leaked = [
        s for s in texts if (" ".join(str(s.source).split()), " ".join(s.output.split())) in shown
    ]
    digests = tuple(sorted({seen_digest(samples[n].source, samples[n].output) for n in examples}))
    column = Column(
        "coherence", "criterion", Signature("s"), 1.0, 5.0, criterion="coherence", seen=digests
    )
    values = np.random.default_rng(0).integers(1, 6, len(texts)).tolist()
    scores = [
        Score(*s.key, "coherence", value, Provenance("single"))
        for s, value in zip(texts, values, strict=True)
    ]
    unsigned = Table(tuple(texts), (replace(column, seen=()),), tuple(scores))
    judges = [replace(column_from_table(column, unsigned, "judge"), criterion="coherence")]
    estimates: list[Callable[[], Any]] = [
        lambda: Table(tuple(texts), (column,), tuple(scores)),
        lambda: people(unsigned, judges, Bootstrap(10), measure=False),
    ]
    for estimate in estimates:
        if leaked:
            with pytest.raises(
                DataError, match=f"coherence: ratings of {len(leaked):,} text.*no estimate"
            ):
                estimate()
        else:
            estimate()
    withheld = tuple(ledger.withhold(texts, {"coherence": digests}))
    assert (
        [s.key for s in withheld if not s.human]
        == [s.key for s in leaked]
        == [s.key for s in withheld if s.withheld]
    )
    table = Table(withheld, (column,), tuple(scores))
    others = [s for s in texts if s not in leaked]
    keys = {s.key for s in others}
    bare = Table(tuple(others), (column,), tuple(s for s in scores if s.key in keys))
    agreements, expected = (
        people(each, judges, Bootstrap(10), measure=False) for each in (table, bare)
    )
    # Means of systems need a rating of every system. The second table lacks systems without any.
    compared, wanted = (
        [replace(rated, excluded=0, systems=(), rated_above=()) for rated in each]
        for each in (agreements, expected)
    )
    assert compared == wanted
    assert [rated.excluded for rated in agreements] == [len(leaked)] * bool(others)
    assert [c.means for c in calibrate(table)] == [c.means for c in calibrate(bare)]


def test_a_diff_of_criteria_refuses_leaked_ratings(leaking_criterion: str) -> None:
    unrated = [{**row, "human": {}} for row in rows()]
    before, after = (
        run(unrated, criterion(Path(leaking_criterion).parents[1], "old")),
        run(unrated, leaking_criterion),
    )
    with pytest.raises(DataError, match="ratings of 6 texts"):
        criterion_shifts(before, after, judge.load_samples(rows()))


def test_a_diff_counts_the_excluded_ratings_once_and_knows_that_others_are_left(
    leaking_criterion: str,
) -> None:
    old = criterion(Path(leaking_criterion).parents[1], "old")
    model = ScriptedProvider(answer, model="grader")
    options: dict[str, Any] = {"cache": False, "weighting": "single"}
    report = judge.diff(old, leaking_criterion, rows(), model=model, **options).report(full=True)
    text = " ".join(report.split())
    assert text.count("polite: 6 texts excluded") == 1
    assert "No rating is left" not in text
