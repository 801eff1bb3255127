"""Starter suites: they load without changes, and their cases follow from the ratings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from judge.commands.init.scaffold import create_suite
from judge.core.errors import ConfigError, CriterionError
from judge.core.records import Sample
from judge.criteria import load as load_criterion
from judge.data import samples
from judge.suite.case import Case
from judge.suite.load import SuiteTexts, collect_samples, language, load, load_criteria, read
from judge.suite.schema import Suite, schema
from tests.factories import has_line, write_jsonl

RELEVANCE = {"relevance": load_criterion("relevance")}
Begun = Callable[..., tuple[str, Suite, SuiteTexts]]


@pytest.fixture
def begun(tmp_path: Path) -> Begun:
    """Return the suite written for rows, parsed again."""

    def of(
        rows: Sequence[dict[str, Any]], criteria: Sequence[str] = (), **options: Any
    ) -> tuple[str, Suite, SuiteTexts]:
        data = tmp_path / "texts.jsonl"
        write_jsonl(data, rows)
        path = tmp_path / "suites" / "s.judge.yaml"
        path.parent.mkdir(exist_ok=True)
        text = create_suite(samples.load(data), path, criteria, options={"data": data, **options})
        path.write_text(text, encoding="utf-8")
        Draft202012Validator(schema()).validate(yaml.safe_load(text))
        suite = load(path)
        spec = read(suite)
        return (
            text,
            suite,
            collect_samples(suite, spec, load_criteria(suite, language(suite, spec))),
        )

    return of


def expected(case: Case) -> dict[str, Any]:
    """Return the keys of a case that belong to its expectation."""
    return case.model_dump(exclude=set(Case.model_fields), exclude_defaults=True)


def agreement(level: str) -> dict[str, Any]:
    return {"human": {"spearman": {"min": 0}, "level": level}}


def _rows(ratings: dict[tuple[str, str], dict[str, float]]) -> list[dict[str, Any]]:
    return [
        {
            "item": item,
            "system": system,
            "source": "Text of a source.",
            "output": f"{item} {system}",
            "human": human,
        }
        for (item, system), human in ratings.items()
    ]


RATED = _rows(
    {
        ("a", "x"): {"relevance": 4, "overall_impression": 2},
        ("a", "y"): {"relevance": 2},
        ("b", "x"): {"relevance": 5},
        ("b", "y"): {"relevance": 3},
        ("c", "x"): {"relevance": 3},
        ("c", "y"): {"relevance": 1.5},
    }
)


def test_cases_follow_from_ratings(begun: Begun) -> None:
    _, suite, gathered = begun(RATED)
    assert suite.options["criteria"] == ("relevance",)
    assert [(expected(case), case.item, case.system) for case in suite.cases] == [
        (agreement("all-texts"), (), ()),
        ({"better": "x", "worse": "y"}, (), ()),
    ]
    assert len(gathered.judged["texts"].samples) == len(RATED)
    assert suite.limits.failures == 0


def test_ratings_that_say_less_make_fewer_cases(begun: Begun) -> None:
    def kinds(*rows: tuple[str, str, float]) -> list[str]:
        _, suite, _ = begun(
            _rows({(item, system): {"relevance": rating} for item, system, rating in rows})
        )
        return [case.kind for case in suite.cases]

    assert kinds(("a", "x", 90), ("b", "x", 20), ("c", "x", 50)) == [
        "agreement"
    ]  # ratings on a different scale, one system
    assert kinds(("a", "x", 4), ("b", "y", 2)) == ["score_range"]  # no common item
    assert kinds(("a", "x", 2), ("b", "x", 2), ("c", "x", 2)) == ["score_range"]


def test_the_level_is_all_texts_if_ratings_differ_only_between_items(begun: Begun) -> None:
    _, suite, _ = begun(
        _rows({(i, s): {"relevance": n} for n, i in enumerate("abc", 2) for s in "xy"})
    )
    assert expected(suite.cases[0]) == agreement("all-texts")
    _, suite, _ = begun(
        _rows({(i, s): {"relevance": n} for i in "abc" for n, s in enumerate("xyz", 2)})
    )
    assert expected(suite.cases[0]) == agreement("within-items")


def test_a_suite_of_one_system_without_ratings_has_a_passing_case(begun: Begun) -> None:
    rows = [
        {key: value for key, value in row.items() if key != "human"}
        for row in RATED
        if row["system"] == RATED[0]["system"]
    ]
    _, suite, _ = begun(rows)
    assert suite.options["criteria"] == ("relevance", "coherence", "consistency", "fluency")
    passing = [expected(case) for case in suite.cases if case.kind == "score_range"]
    assert passing == [{"expect": {"min": 1}}] * 4


@pytest.mark.parametrize(("n_items", "undecided"), [(5, "pass"), (6, None)])
def test_a_suite_of_two_systems_has_a_case_that_the_second_is_better(
    begun: Begun, n_items: int, undecided: str | None
) -> None:
    texts = {(f"doc-{k}", system): {} for k in range(n_items) for system in ("old", "new")}
    text, suite, _ = begun(_rows(texts), criteria=["relevance"])
    (order,) = suite.cases
    assert (expected(order), order.undecided) == ({"better": "new", "worse": "old"}, undecided)
    assert has_line(text, "undecided", "fewer than 6 items") == (n_items < 6)


def test_rated_criteria_that_need_missing_fields_are_skipped(begun: Begun, tmp_path: Path) -> None:
    rated = {"relevance": 3, "fluency": 2}
    rows = [{"output": text, "question": "q", "human": rated} for text in ("It is so.", "It is.")]
    _, suite, _ = begun(rows)
    assert suite.options["criteria"] == ("fluency",)  # relevance reads a source
    path = tmp_path / "mine.jinja"
    path.write_text("---\nscale: [0, 10]\n---\n{{ question }} {{ output }}\n", encoding="utf-8")
    text, suite, _ = begun(rows, [str(path)])
    assert "criteria: [../mine.jinja]" in text
    assert expected(suite.cases[0]) == {"expect": {"min": 0}}
    assert "text: {question: ..., output: ...}" in text
    path.write_text("---\nscale: [0, 10]\n---\n{{ answer }} {{ output }}\n", encoding="utf-8")
    with pytest.raises(CriterionError, match="unknown variable 'answer'"):
        begun(rows, [str(path)])


def test_texts_other_than_summaries_have_no_default_criteria() -> None:
    with pytest.raises(ConfigError, match=r"(?s)have no source .* --criteria fluency"):
        create_suite(
            [Sample("a", "s", "o")], Path("s.judge.yaml"), options={"data": Path("d.jsonl")}
        )


def test_options_are_the_suite_s(begun: Begun, tmp_path: Path) -> None:
    script = tmp_path / "replies.yaml"
    script.write_text("", encoding="utf-8")
    judge = [
        {"name": f"scripted/{script}", "base_url": None, "key_env": None},
        {"name": "b", "key_env": "KEY"},
    ]
    text, suite, _ = begun(RATED, model=judge, draws=3, map={"output": "output"})
    assert [(one.name, one.key_env) for one in suite.options["model"]] == [
        (f"scripted/{tmp_path / 'suites' / '..' / 'replies.yaml'}", None),
        ("b", "KEY"),
    ]
    assert (suite.options["draws"], suite.options["map"]) == (3, {"output": "output"})
    assert "gpt-5.4-mini" not in text
    assert suite.options["data"] == tmp_path / "suites" / ".." / "texts.jsonl"


def test_notes_a_large_number_of_judgments(begun: Begun) -> None:
    text, *_ = begun(_rows({(f"i{n}", "x"): {"relevance": 1 + n % 5} for n in range(600)}))
    assert has_line(text, "# limit: 100", "600 judgments")
    assert "# limit" not in begun(RATED)[0]


def test_a_baseline(tmp_path: Path) -> None:
    rows = [Sample("a", "s", "o", "the source")]
    text = create_suite(
        rows,
        tmp_path / "s.judge.yaml",
        options={"data": tmp_path / "d"},
        baseline=tmp_path / "runs/x",
    )
    assert "\nbaseline: runs/x  #" in text


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
        min_size=2,
        max_size=2,
    )
)
def test_any_names_of_items_and_systems(
    tmp_path_factory: pytest.TempPathFactory, names: list[str]
) -> None:
    item, system = (f"{name}n" for name in names)  # a name has at least one visible character
    folder = tmp_path_factory.getbasetemp() / "names"
    folder.mkdir(exist_ok=True)
    (folder / "d.jsonl").write_text("", encoding="utf-8")
    rows = [
        Sample(item, system, "o", "s", human={"relevance": 5}),
        Sample(item, "other", "p", "s", human={"relevance": 2}),
        Sample("a", system, "q", "s", human={"relevance": 4}),
        Sample("a", "other", "r", "s", human={"relevance": 3}),
    ]
    path = folder / "s.judge.yaml"
    path.write_bytes(
        create_suite(rows, path, ["relevance"], options={"data": folder / "d.jsonl"}).encode()
    )
    suite = load(path)
    assert [expected(case) for case in suite.cases[:2]] == [
        agreement("all-texts"),
        {"better": system, "worse": "other"},
    ]
    assert collect_samples(suite, rows, RELEVANCE).judged["texts"].samples == tuple(rows)


def test_summeval(shared_data: Callable[[str], Path]) -> None:
    path, mapping = shared_data("summeval.jsonl"), {"item": "doc_id", "output": "summary"}
    text = create_suite(
        samples.load(path, mapping=mapping),
        Path("s.judge.yaml"),
        options={"data": path, "map": mapping},
    )
    frame = pd.read_json(path, lines=True)
    for name in ("coherence", "consistency", "fluency", "relevance"):
        means = frame.human.map(lambda human, name=name: human[name]).groupby(frame.system).mean()
        order = f"criterion: {name}\n    better: {means.idxmax()}\n    worse: {means.idxmin()}\n"
        assert order in text
    assert text.count("human: {spearman: {min: 0}, level: within-items}") == 4


def test_the_messages_before_an_answer_are_no_unused_column(begun: Begun) -> None:
    messages = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "Now."}]
    rows = [{"item": "1", "system": "a", "messages": messages, "channel": "mail"}]
    for criterion in ("answers_request", "polite", "helpful: Does it help?"):
        text, _, _ = begun(rows, [criterion])
        assert "# Unused columns: channel (" in text
