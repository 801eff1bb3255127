"""criteria.examples: examples in a criterion's header, in a file, and in Python. Oracles: files written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import judge
from judge import criteria
from judge.core.errors import JudgeError
from judge.core.records import Criterion, Example, Scale
from tests.factories import has_line, write_jsonl

BODY = '---\n{% extends "layouts/pointwise.jinja" %}\n{% block criterion %}Is it polite?{% endblock %}\n'
ROWS = [
    {"output": "Good morning.", "score": 5, "reason": "It greets."},
    {"output": "Go away.\nNow.", "score": "1", "source": "May I come in?"},
    {"output": "Hm.", "score": 3.0},
]
EXAMPLES = (
    Example("Good morning.", "5", "It greets."),
    Example("Go away.\nNow.", "1", source="May I come in?"),
    Example("Hm.", "3"),
)


def write_criterion(folder: Path, header: str, name: str = "polite.jinja", body: str = BODY) -> str:
    path = folder / name
    path.write_text(f"---\n{header}\n{body}", encoding="utf-8")
    return str(path)


def error_message(path: str) -> str:
    with pytest.raises(JudgeError) as caught:
        criteria.load(path, pairwise=None)
    return str(caught.value).replace(str(Path(path).parent) + "/", "")


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_examples_are_read_from_the_header_or_a_file(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / "examples" / f"rated.{suffix}"
    file.parent.mkdir()
    frame = pd.DataFrame(ROWS).astype({"score": str})
    if suffix == "jsonl":
        write_jsonl(file, ROWS)
    elif suffix == "json":
        file.write_text(json.dumps(ROWS))
    else:
        (frame.to_csv if suffix == "csv" else frame.to_parquet)(file, index=False)
    from_file = criteria.load(write_criterion(tmp_path, f"examples: examples/rated.{suffix}"))
    from_header = criteria.load(
        write_criterion(tmp_path, f"examples: {json.dumps(ROWS)}", "inline.jinja")
    )
    assert from_file.examples == from_header.examples == EXAMPLES


def test_examples_are_part_of_the_digest(tmp_path: Path) -> None:
    rated = tmp_path / "rated.jsonl"
    rated.write_text(json.dumps(ROWS[0]))
    path = write_criterion(tmp_path, "examples: rated.jsonl")
    first = criteria.load(path)
    assert criteria.finalize(replace(first, reply="reason_then_score")).examples == EXAMPLES[:1]
    rated.write_text(json.dumps(ROWS[0] | {"score": 4}))
    digests = {first.digest, criteria.load(path).digest, replace(first, examples=()).digest}
    digests |= {
        criteria.load(write_criterion(tmp_path, f"examples: {json.dumps(ROWS[:n])}")).digest
        for n in (1, 2)
    }
    assert len(digests) == 5
    none = criteria.load(write_criterion(tmp_path, "scale: [1, 5]"))
    assert none.digest == replace(none, header_parts=replace(none, examples=()).prompt_parts).digest


def test_the_score_of_an_example_may_be_a_half_point_or_a_word(tmp_path: Path) -> None:
    header = "allow_half: true\nexamples: [{text: a, score: 4.5}, {text: b, score: '4.0'}]"
    examples = criteria.load(write_criterion(tmp_path, header)).examples
    assert [example.score for example in examples] == ["4.5", "4"]
    header = "scale: {labels: ['yes', 'no'], values: [1, 0]}\nexamples: [{text: a, score: 'Yes'}]"
    (example,) = criteria.load(write_criterion(tmp_path, header)).examples
    assert example.score == "yes"


@pytest.mark.parametrize(
    ("header", "facts"),
    [
        ("title: T\nexamples:\n- {output: a, score: 5}\n- {output: b, score: 6}",
         ("polite.jinja:5: examples:", "'6'", "1, 2, 3, 4, 5")),
        ("examples: [{output: a, score: 4.5}]", ("polite.jinja:2: examples:", "'4.5'")),
        ("scale: [0, 100]\nexamples: [{output: a, score: x}]", ("'x'", "0, …, 100")),
        ("scale: {labels: ['yes', 'no'], values: [1, 0]}\nexamples:\n- output: a\n  score: yes",
         ("polite.jinja:4: examples: score:", "True", "yes, no, on and off")),
        ("examples: [{output: a}]", ("examples: score: is missing",)),
        ("examples: [{score: 1}]", ("examples: output: is missing",)),
        ("examples: [{output: ' ', score: 1}]", ("output is empty",)),
        ("examples: [{output: 7, score: 1}]", ("output:", "string", "not 7")),
        ("examples: [{output: a, score: 1, reason: [b]}]", ("reason:", "string", "['b']")),
        ("examples: [{output: a, text: a, score: 1}]", ("unknown key 'text'",)),
        ("examples: [{output: a, scor: 1}]", ("'scor'", "'score'")),
        ("examples: [a]", ("examples:", "keys and values", "'a'")),
        ("examples: 5", ("polite.jinja:2: examples:", "list", "5")),
        (f"examples: [{'{output: a, score: 1}, ' * 21}]", ("polite.jinja:2: examples:", "more than 20")),
        ("examples: ../rated.jsonl", ("polite.jinja:2: '../rated.jsonl'", "outside")),
        ("examples: /etc/passwd", ("outside the criterion's folder",)),
        ("examples: linked.jsonl", ("'linked.jsonl' is a link",)),
        ("title: T\nexamples: none.jsonl", ("polite.jinja:3: examples: no file 'none.jsonl'",)),
        ("examples: '*.jsonl'", ("no file '*.jsonl'",)),
        ("examples: polite.jinja", ("unknown suffix '.jinja'",)),
        ("seen: [1a2b]", ("polite.jinja:2: seen:", "'1a2b'")),
        ("examples: bad.jsonl", ("bad.jsonl:2: examples:", "'9'")),
        ("examples: bad.csv", ("bad.csv:2: examples:", "'note'", "output, score, reason, source")),
    ],
)  # fmt: skip
def test_bad_examples_are_errors_with_line_and_reason(
    tmp_path: Path, header: str, facts: tuple[str, ...]
) -> None:
    folder = tmp_path / "criteria"
    folder.mkdir()
    files = {
        "bad.jsonl": '{"output": "a", "score": 1}\n{"output": "b", "score": 9}',
        "bad.csv": "output,note\na,b\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    (tmp_path / "rated.jsonl").write_text('{"output": "a", "score": 1}\n')
    (folder / "linked.jsonl").symlink_to(tmp_path / "rated.jsonl")
    assert has_line(error_message(write_criterion(folder, header)), *facts)


def test_examples_of_a_comparison_are_an_error(tmp_path: Path) -> None:
    header = "scale: {labels: [A, B], values: [1, 0]}\nexamples: [{output: a, score: A}]"
    header_error = error_message(
        write_criterion(tmp_path, header, body="---\n{{ first }}{{ second }}\n")
    )
    assert has_line(header_error, "compares two texts", "none")


def test_examples_in_python_are_records_or_mappings() -> None:
    examples = (judge.Example("a", "4.0"), {"text": "b", "score": 2})
    criterion = Criterion(
        "polite", "{{ output }}{{ this.examples }}", Scale.integers(1, 5), examples=examples
    )  # type: ignore[arg-type]
    assert criteria.finalize(criterion).examples == (Example("a", "4"), Example("b", "2"))
    with pytest.raises(judge.JudgeError, match=r"polite\.jinja: examples: .*'7'"):
        judge.render(replace(criterion, examples=(Example("a", "7"),)), {"output": "x"})


def test_a_run_stores_its_examples(tmp_path: Path) -> None:
    (tmp_path / "rated.jsonl").write_text(json.dumps(ROWS[0]))
    run = partial(
        judge.evaluate,
        [{"output": "Hello.", "source": "Hi."}],
        model=judge.ScriptedProvider(lambda request: "4"),
        cache=False,
    )
    with_examples, without = (
        run(criteria=write_criterion(tmp_path, header))
        for header in ("examples: rated.jsonl", "scale: [1, 5]")
    )
    (example,) = with_examples.info.criteria["polite"].examples
    assert example == Example("Good morning.", "5", "It greets.")
    assert not without.info.criteria["polite"].examples
    assert ">5: Good morning.</li>" in with_examples.report("html")
