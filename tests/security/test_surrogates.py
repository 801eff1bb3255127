"""Lone surrogates, which JSON, YAML and Python allow and no file can hold, are U+FFFD wherever they come in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.core.records import Choice, Sample, whole_value
from judge.data import samples

LONE = "\ud83d"
TEXTS = st.text(st.characters(codec=None, exclude_categories=()) | st.just(LONE), max_size=6)
PLACES = ("item", "system", "output", "source", "own")


def row(place: str) -> dict[str, Any]:
    cells: dict[str, Any] = {"item": "i", "system": "s", "output": "o", "source": "so", "own": "x"}
    return cells | {place: f"a{LONE}b"}


@given(
    st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=5)
)
def test_every_text_in_a_value_can_be_written_and_others_stay(value: Any) -> None:
    cleaned = whole_value(value)
    json.dumps(cleaned, ensure_ascii=False).encode()
    assert whole_value(cleaned) == cleaned
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert cleaned == value


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [".jsonl", ".json", "rows", "samples"])
def test_data_have_no_surrogates_from_any_format(tmp_path: Path, place: str, kind: str) -> None:
    cells = row(place)
    data: Any = [cells]
    if kind == "samples":
        data = [Sample("i", "s", "o", "so", extra={"own": "x"})]
        named = {"item": cells["item"], "system": cells["system"], "output": cells["output"]}
        data = [Sample(**named, source=cells["source"], extra={"own": cells["own"]})]
    if kind.startswith("."):
        data = tmp_path / f"data{kind}"
        data.write_text(json.dumps(cells if kind == ".jsonl" else [cells]) + "\n")
    (sample,) = samples.load(data)
    read = {
        "item": sample.item,
        "system": sample.system,
        "output": sample.output,
        "source": sample.source,
    }
    assert (read | sample.extra)[place] == "a\ufffdb"


@pytest.mark.parametrize(
    "criterion",
    [
        {
            "name": "polite",
            "question": f"Is it polite{LONE}?",
            "levels": {"1": f"no{LONE}", "5": "yes"},
        },
        f"polite: Is it polite{LONE}?",
        '{name: polite, question: "Is it polite\\ud83d?"}',
        judge.Criterion("polite", question=f"Is it polite{LONE}?", title=f"Polite{LONE}"),
    ],
    ids=["dict", "sentence", "yaml", "object"],
)
def test_criteria_have_no_surrogates(tmp_path: Path, criterion: Any) -> None:
    model = judge.ScriptedProvider(lambda _: "4")
    result = judge.evaluate(
        [row("output")], [criterion], model=model, metrics=[], out=tmp_path, cache=False
    )
    prompt = str(model.seen[0].messages[0]["content"])
    assert "Is it polite\ufffd?" in prompt
    prompt.encode()
    assert result.failures == ()


def test_a_criterions_file_with_an_escaped_one_is_read(tmp_path: Path) -> None:
    file = tmp_path / "polite.yaml"
    file.write_text('question: "Is it polite\\ud83d?"\n')
    model = judge.ScriptedProvider(lambda _: "4")
    judge.evaluate([row("source")], [str(file)], model=model, metrics=[], cache=False)
    assert "Is it polite\ufffd?" in str(model.seen[0].messages[0]["content"])


@pytest.mark.parametrize("place", PLACES)
def test_the_commands_show_such_data(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from judge.cli import main

    file = tmp_path / "data.jsonl"
    file.write_text(json.dumps(row(place)) + "\n")
    monkeypatch.setattr("sys.argv", ["judge", "criteria", "render", "relevance", str(file)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    capsys.readouterr().out.encode()


def test_replies_have_no_surrogates(chat_server: Any, make_completion: Any, tmp_path: Path) -> None:
    chat_server.answer = lambda _: (200, {}, make_completion(f"4{LONE}"))
    options = {
        "model": "m",
        "base_url": chat_server.url,
        "metrics": [],
        "weighting": "single",
        "repair": "off",
    }
    result = judge.evaluate([row("output")], ["relevance"], cache=False, **options)
    assert LONE not in repr(result.table.scores) + repr(result.failures)
    assert Choice(f"a{LONE}").text == "a\ufffd"
