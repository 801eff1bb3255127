"""Lone surrogates in data, criteria and replies are read as U+FFFD, because no file can contain them.

JSON, YAML and Python allow them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge.core.normalization import whole_value
from judge.core.records import Choice, Sample
from judge.data import samples

LONE = "\ud83d"
TEXTS = st.text(st.characters(codec=None, exclude_categories=()) | st.just(LONE), max_size=6)
COLUMNS = ("item", "system", "output", "source", "team")


def row(column: str) -> dict[str, Any]:
    """Return a row with a lone surrogate in this column."""
    cells: dict[str, Any] = {"item": "i", "system": "s", "output": "o", "source": "so", "team": "x"}
    return cells | {column: f"a{LONE}b"}


@given(
    st.recursive(
        TEXTS, lambda values: st.lists(values) | st.dictionaries(TEXTS, values), max_leaves=5
    )
)
def test_surrogates_in_a_value_are_replaced_and_all_else_is_unchanged(value: Any) -> None:
    cleaned = whole_value(value)
    json.dumps(cleaned, ensure_ascii=False).encode()
    assert whole_value(cleaned) == cleaned
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert cleaned == value


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("kind", [".jsonl", ".json", "rows", "samples"])
def test_data_of_any_format_are_read_without_surrogates(
    tmp_path: Path, column: str, kind: str
) -> None:
    cells = row(column)
    data: Any = [cells]
    if kind == "samples":
        fields = {name: cells[name] for name in ("item", "system", "output", "source")}
        data = [Sample(**fields, extra={"team": cells["team"]})]
    if kind.startswith("."):
        data = tmp_path / f"data{kind}"
        data.write_text(json.dumps(cells if kind == ".jsonl" else [cells]) + "\n")
    (sample,) = samples.load(data)
    value = sample.extra[column] if column == "team" else getattr(sample, column)
    assert value == "a\ufffdb"


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
def test_criteria_of_any_form_are_read_without_surrogates(tmp_path: Path, criterion: Any) -> None:
    model = judge.ScriptedProvider(lambda _: "4")
    result = judge.evaluate(
        [row("output")], [criterion], model=model, metrics=[], out=tmp_path, cache=False
    )
    prompt = str(model.seen[0].messages[0]["content"])
    assert "Is it polite\ufffd?" in prompt
    prompt.encode()
    assert result.failures == ()


def test_an_escaped_surrogate_in_a_criterion_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "polite.yaml"
    file.write_text('question: "Is it polite\\ud83d?"\n')
    model = judge.ScriptedProvider(lambda _: "4")
    judge.evaluate([row("source")], [str(file)], model=model, metrics=[], cache=False)
    assert "Is it polite\ufffd?" in str(model.seen[0].messages[0]["content"])


@pytest.mark.parametrize("column", COLUMNS)
def test_a_command_prints_data_with_surrogates(
    tmp_path: Path, column: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from judge.cli import main

    file = tmp_path / "data.jsonl"
    file.write_text(json.dumps(row(column)) + "\n")
    monkeypatch.setattr("sys.argv", ["judge", "criteria", "render", "relevance", str(file)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    capsys.readouterr().out.encode()


def test_replies_are_read_without_surrogates(
    chat_server: Any, make_completion: Any, tmp_path: Path
) -> None:
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
