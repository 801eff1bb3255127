"""The sheets that a run keeps of its prompts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import judge
from judge import criteria
from judge.core.records import Criterion, Sample
from judge.criteria import template_bodies
from judge.criteria.render import Renderer
from judge.criteria.sandbox import fence_digest
from judge.execution.judgments import Judgment
from judge.results.result import load
from judge.run import run_metadata

COHERENCE = criteria.load("coherence")
OVERALL = criteria.load("coherence", pairwise=True)


def made(tmp_path: Path, body: str) -> Criterion:
    file = tmp_path / "own.jinja"
    file.write_text(f"---\nscale: [1, 5]\n---\n{body}", encoding="utf-8")
    return criteria.load(str(file))


def kept(criterion: Criterion, samples: Sequence[Sample]) -> dict[str, Any]:
    judgments = [Judgment(sample, criterion) for sample in samples]
    return run_metadata.prompt_skeletons({"": judgments}, {sample.item for sample in samples})


def filled(
    found: dict[str, Any], criterion: Criterion, sample: Sample, rival: Sample | None = None
) -> list[tuple[str, str]]:
    """What the sheets say was asked about a sample, by another way than the page's."""
    texts = {"source": sample.source, "output": sample.output, "first": sample.output}
    texts |= {"second": rival.output} if rival else {}
    texts |= {f"references {k}": text for k, text in enumerate(sample.references)}
    texts |= {f"extra {name}": text for name, text in sample.extra.items()}
    asked = found["asked"][criterion.name]
    wanted = [sample.item, sample.system, rival.system if rival else ""]
    number = next((n for *named, n in asked["others"] if named == wanted), asked["usual"])
    said = []
    for role, parts in found["sheets"][number]:
        holes = {
            hole: texts[hole[5:]] if hole[:5] == "text " else fence_digest(texts[hole[4:]] or "")
            for hole in parts[1::2]
        }
        said.append((role, "".join(holes[part] if k % 2 else part for k, part in enumerate(parts))))
    return said


def test_one_sheet_serves_every_text() -> None:
    samples = [Sample(f"i{k}", "s", "An output." * k, f"The source of {k}.") for k in range(5)]
    found = kept(COHERENCE, samples)
    assert len(found["sheets"]) == 1
    assert found["asked"] == {"coherence": {"usual": 0, "others": []}}
    holes = found["sheets"][0][0][1][1::2]
    assert holes == [
        "key source",
        "text source",
        "key source",
        "key output",
        "text output",
        "key output",
    ]
    assert json.loads(json.dumps(found)) == found


SOURCES = st.text(min_size=1, max_size=30).filter(lambda text: not text.isspace())


@given(
    st.lists(
        st.tuples(st.text(max_size=30), SOURCES) | st.just(("source", "Criterion: Coherence")),
        min_size=1,
        max_size=4,
    )
)
def test_a_sheet_filled_in_is_the_prompt_to_the_letter(texts: list[tuple[str, str]]) -> None:
    samples = [Sample(str(k), "s", output, source) for k, (output, source) in enumerate(texts)]
    found = kept(COHERENCE, samples)
    renderer = Renderer(COHERENCE, template_bodies(COHERENCE))
    for sample in samples:
        assert filled(found, COHERENCE, sample) == [
            ("user", renderer.render(sample).messages[0]["content"])
        ]


def test_texts_without_marks_lists_and_further_columns_have_their_places(tmp_path: Path) -> None:
    body = (
        "{{ topic }} of {{ year }}: {% for one in references %}{{ one | fenced('r') }}{% endfor %} "
        "{{ output }} {{ output | upper }}"
    )
    criterion = made(tmp_path, body)
    extra = {"topic": "The weather of the north", "year": 1999}
    samples = [
        Sample(
            "1", "s", "A long output, which is known.", references=("One.", "Another."), extra=extra
        ),
        Sample(
            "2",
            "s",
            "Another output of some length.",
            references=("Three.", "Four."),
            extra=extra | {"year": 2000},
        ),
        Sample("3", "s", "short", references=("Alone.",), extra=extra),
    ]
    found = kept(criterion, samples)
    assert "extra topic" in found["sheets"][0][0][1][1]
    assert len(found["sheets"]) == 3  # the year and the upper case are words of the sheet
    renderer = Renderer(criterion, template_bodies(criterion))
    for sample in samples:
        assert filled(found, criterion, sample) == [
            ("user", renderer.render(sample).messages[0]["content"])
        ]


def test_a_decision_endpoints_question_stands_apart() -> None:
    criterion = replace(COHERENCE, form="decision")
    sample = Sample("1", "s", "output", "source")
    found = kept(criterion, [sample])
    prompt = Renderer(criterion, template_bodies(criterion)).render(sample)
    assert filled(found, criterion, sample) == [
        ("user", prompt.messages[0]["content"]),
        ("question", prompt.question),
    ]


def test_comparisons_have_a_first_and_a_second_text() -> None:
    one, other = (
        Sample("1", "a", "The first one.", "The source."),
        Sample("1", "b", "The other one.", "The source."),
    )
    found = run_metadata.prompt_skeletons(
        {"": [Judgment(one, OVERALL, other), Judgment(other, OVERALL, one)]}, {"1"}
    )
    assert len(found["sheets"]) == 1
    renderer = Renderer(OVERALL, template_bodies(OVERALL))
    for pair in ((one, other), (other, one)):
        assert filled(found, OVERALL, *pair) == [
            ("user", renderer.render(*pair).messages[0]["content"])
        ]


def test_a_prompt_that_cannot_be_made_has_no_sheet(tmp_path: Path) -> None:
    criterion = made(tmp_path, "{{ output }} {{ 1 // (output | length - 1) }}")
    found = kept(
        criterion, [Sample("1", "s", "abc"), Sample("1", "t", "def"), Sample("2", "s", "x")]
    )
    assert found["asked"]["own"]["others"][-1] == ["2", "s", "", None]


def test_sheets_end_at_a_size_and_other_items_have_none(tmp_path: Path) -> None:
    criterion = made(tmp_path, "{{ output | reverse }} {{ output }}")
    samples = [Sample(str(k), "s", f"ab{k}" * 30_000) for k in range(4)]
    found = kept(criterion, samples)
    assert len(found["sheets"]) == 2
    assert found["asked"]["own"] == {
        "usual": None,
        "others": [["0", "s", "", 0], ["1", "s", "", 1]],
    }
    judgments = [
        Judgment(sample, COHERENCE)
        for sample in [Sample("a", "s", "x", "y"), Sample("b", "s", "x", "y")]
    ]
    assert run_metadata.prompt_skeletons({"": judgments}, {"c"}) == {
        "sheets": [],
        "asked": {"coherence": {"usual": None, "others": []}},
    }


def test_a_panels_judges_are_asked_the_same() -> None:
    judgments = [Judgment(Sample("1", "s", "x", "y"), COHERENCE)]
    found = run_metadata.prompt_skeletons({"/a": judgments, "/b": judgments}, {"1"})
    assert len(found["sheets"]) == 1
    assert set(found["asked"]) == {"coherence/a", "coherence/b"}


@pytest.mark.parametrize("run", [judge.evaluate, judge.rank])
def test_a_run_keeps_them(run: Any, tmp_path: Path) -> None:
    rows = [
        {"item": "1", "system": system, "source": "A source.", "output": f"Output of {system}."}
        for system in "ab"
    ]
    answers = judge.ScriptedProvider(lambda request: "A" if run is judge.rank else "4")
    run(
        rows,
        ["coherence"],
        model=answers,
        metrics="none",
        cache=False,
        weighting="single",
        out=tmp_path / "run",
    )
    found = load(tmp_path / "run").info.prompts
    assert len(found["sheets"]) == 1
    assert found["asked"] == {"coherence": {"usual": 0, "others": []}}
