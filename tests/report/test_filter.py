"""A report on some texts of a run has the numbers of a run on only these texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.errors import ConfigError, DataError
from judge.providers.scripted import ScriptedProvider
from judge.results.loading import load
from judge.results.result import Result
from tests.factories import has_line

WORDS = re.findall(
    r"\w+", "the old bridge over the river is mended before winter and the town pays for all of it"
)


def rows() -> list[dict[str, Any]]:
    return [
        {
            "item": f"{channel}{n}", "system": system, "channel": channel, "source": " ".join(WORDS),
            "output": " ".join(WORDS[n % 5 : n % 5 + 3 + place + n % 3]), "references": [" ".join(WORDS[:9])],
            "human": {"coherence": [1 + (n + place) % 5, 1 + (n + 2 * place) % 5]},
        }
        for channel in ("email", "phone")
        for n in range(8)
        for place, system in enumerate(("a", "b", "c"))
    ]  # fmt: skip


def grade(request: Any) -> str:
    return str(1 + len(request.messages[0]["content"]) % 5)


def run(data: Any, **options: Any) -> Result:
    kind = {
        "model": ScriptedProvider(grade, model="grader"),
        "cache": False,
        "metrics": ["rouge"],
        **options,
    }
    return judge.evaluate(data, ["coherence"], **kind)


def test_filtered_numbers_equal_a_run_on_the_subset() -> None:
    whole, alone = run(rows()).where(channel="email"), run(rows(), where={"channel": "email"})
    for name in ("estimates", "comparisons", "overall", "drivers", "rated", "matrices", "repeats"):
        assert getattr(whole, name) == getattr(alone, name), name
    assert whole.table == alone.table
    assert whole.rated[0].rater is not None


@pytest.mark.slow
def test_filtering_a_panel_and_a_ranking() -> None:
    panel = [ScriptedProvider(grade, model="x"), ScriptedProvider(lambda _: "3", model="y")]
    whole, alone = run(rows(), model=panel).where(channel="phone"), run(rows()[24:], model=panel)
    assert (whole.table.columns, whole.table.scores) == (alone.table.columns, alone.table.scores)
    assert (whole.estimates, whole.agreement) == (alone.estimates, alone.agreement)
    first = {"model": ScriptedProvider(lambda _: "A"), "cache": False, "criteria": ["overall"]}
    ranked = judge.rank(rows()[:24:2] + rows()[24:], **first).where(channel="phone")
    assert ranked.rankings == judge.rank(rows()[24:], **first).rankings


def test_a_stored_run_has_the_columns_and_names_the_rows_shown(tmp_path: Path) -> None:
    run(rows(), out=tmp_path)
    shown = load(tmp_path).where(channel=["email"], system="a")
    assert {(s.extra["channel"], s.system) for s in shown.table.samples} == {("email", "a")}
    report = shown.report("markdown")
    assert has_line(report, "channel=email", "system=a", "8 of 48 texts")
    assert has_line([shown.info.notes[0]], "other notices", "whole run")
    shown.save(tmp_path / "part")
    assert load(tmp_path / "part").estimates == shown.estimates


def test_values_of_whole_systems_are_filtered_with_their_texts() -> None:
    whole = judge.evaluate(rows(), [], metrics=["bleu_corpus", "rouge"])
    columns = [
        column.name for column in whole.table.columns if column.name in whole.table.corpus_columns
    ]
    assert columns
    assert not {c.name for c in whole.where(channel="email").table.columns} & {*columns}
    filtered = whole.where(system="a")
    assert {filtered.estimates["a", name] for name in columns} == {
        whole.estimates["a", name] for name in columns
    }


def test_an_unknown_filter_value_is_an_error() -> None:
    result = run(rows(), metrics=[])
    with pytest.raises(DataError, match=r"channel is 'email' \(24\), 'phone' \(24\)"):
        result.where(channel="fax")
    with pytest.raises(DataError, match=r"'chanel'.*'channel'"):
        result.where(chanel="email")
    with pytest.raises(ConfigError, match="name a column"):
        result.where()


@pytest.mark.slow
def test_ratings_are_filtered_with_the_texts() -> None:
    result = run(rows())
    rated = judge.validate(result, where={"channel": "phone"}).rated
    assert rated == judge.validate(run(rows()[24:])).rated
    assert rated != judge.validate(result).rated
