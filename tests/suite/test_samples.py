"""The texts that a suite judges, and errors that need its data and criteria."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from judge.core.errors import ConfigError
from judge.suite.load import SuiteTexts, collect_samples, language, load, load_criteria, read
from tests.factories import has_line, write_jsonl

ROWS = [
    {
        "item": item,
        "system": system,
        "source": f"On {item}.",
        "output": f"{system} on {item}",
        "human": {"relevance": n},
    }
    for n, item in enumerate(("mon", "tue", "wed"), 1)
    for system in ("edited", "draft", "lead")
    if (item, system) != ("wed", "draft")
]
LABELS = "---\nscale: {labels: [fail, pass], values: [0, 1]}\n---\n{{ tone }} {{ output | fenced('output') }} yes or no?\n"

Gather = Callable[..., SuiteTexts]


@pytest.fixture
def gather(tmp_path: Path) -> Gather:
    """Return the texts for these cases. The cases start at line 4 of the suite; `top` is line 1."""
    write_jsonl(tmp_path / "data.jsonl", ROWS)
    (tmp_path / "tone.jinja").write_text(LABELS, encoding="utf-8")

    def of(*cases: str, top: str = "undecided: fail", over: tuple[str, ...] = ()) -> SuiteTexts:
        path = tmp_path / "s.judge.yaml"
        lines = [top, "data: data.jsonl", "cases:", *(f"  - {case}" for case in cases)]
        path.write_text("\n".join(lines), encoding="utf-8")
        suite = load(path)
        data = read(suite)
        return collect_samples(suite, data, load_criteria(suite, language(suite, data), over))

    return of


def test_scores_of_the_texts_that_cases_are_about(gather: Gather) -> None:
    gathered = gather(
        "{name: a, criterion: relevance, item: tue, expect: {min: 4}}",
        "{name: b, criterion: relevance, system: lead, expect: {min: 4}}",
        "{name: c, criterion: fluency, item: [wed, mon], system: [lead, edited], expect: {min: 2}}",
        "{name: d, criterion: fluency, better: edited, worse: draft}",
        "{name: e, criterion: tone.jinja, text: {output: o, tone: t}, expect: {label: pass}}",
    )
    keys = {(row["item"], row["system"]) for row in ROWS}
    assert gathered.texts_by_case["a"] == (("tue", "edited"), ("tue", "draft"), ("tue", "lead"))
    assert set(gathered.texts_by_case["b"]) == {key for key in keys if key[1] == "lead"}
    assert gathered.texts_by_case["c"] == (
        ("wed", "edited"),
        ("wed", "lead"),
        ("mon", "edited"),
        ("mon", "lead"),
    )
    assert gathered.texts_by_case["d"] == (
        ("mon", "edited"),
        ("mon", "draft"),
        ("tue", "edited"),
        ("tue", "draft"),
    )
    assert gathered.texts_by_case["e"] == (("e", "text"),)
    assert gathered.judged["texts"].texts_by_criterion == {
        "relevance": {*gathered.texts_by_case["a"], *gathered.texts_by_case["b"]},
        "fluency": {*gathered.texts_by_case["c"], *gathered.texts_by_case["d"]},
        "tone": {("e", "text")},
    }
    assert [(text.item, text.system) for text in gathered.judged["texts"].samples] == [
        *((row["item"], row["system"]) for row in ROWS),
        ("e", "text"),
    ]
    assert gathered.judged["pairs"].samples == ()
    assert {name: one.name for name, one in gathered.criteria.items()} == {
        "relevance": "relevance",
        "fluency": "fluency",
        "tone.jinja": "tone",
    }


def test_texts_that_no_case_is_about_are_not_judged(gather: Gather) -> None:
    gathered = gather("{criterion: relevance, item: tue, system: lead, expect: {min: 4}}")
    assert [(text.item, text.system) for text in gathered.judged["texts"].samples] == [
        ("tue", "lead")
    ]


def test_comparisons_have_items_of_their_own_case(gather: Gather) -> None:
    gathered = gather(
        "{name: a, criterion: overall, better: edited, worse: draft}",
        "{name: b, criterion: pairwise/fluency, better: lead, worse: edited, item: wed}",
        "{name: c, criterion: overall, text: {source: s}, better: {output: x}, worse: {output: y}}",
    )
    assert gathered.judged["texts"].samples == ()
    assert gathered.judged["texts"].texts_by_criterion == {}
    assert [(t.item, t.system, t.output) for t in gathered.judged["pairs"].samples] == [
        *((f"a: {i}", s, f"{s} on {i}") for i in ("mon", "tue") for s in ("edited", "draft")),
        *((f"b: {i}", s, f"{s} on {i}") for i in ("wed",) for s in ("edited", "lead")),
        ("c", "better", "x"),
        ("c", "worse", "y"),
    ]
    keys = [(text.item, text.system) for text in gathered.judged["pairs"].samples]
    assert keys == [key for about in gathered.texts_by_case.values() for key in about]
    assert gathered.judged["pairs"].texts_by_criterion == {
        "overall": {*keys[:4], *keys[6:]},
        "fluency": {*keys[4:6]},
    }
    assert gathered.criteria["pairwise/fluency"].pairwise


def test_suite_with_a_limit(gather: Gather) -> None:
    gathered = gather("{criterion: relevance, expect: {min: 4}}", top="limit: 2")
    assert len(gathered.judged["texts"].samples) == 2


def test_the_language_is_the_texts_own(gather: Gather) -> None:
    case = "{criterion: fluency, text: {output: %s}, expect: {min: 2}}"
    assert gather(case % "o").criteria["fluency"].language == "en"
    top = "language: ko"
    assert gather(case % "o", top=top).criteria["fluency"].language == "ko"


def test_a_criterion_replaces_that_of_the_suite(gather: Gather, tmp_path: Path) -> None:
    other = tmp_path / "other/tone.jinja"
    other.parent.mkdir()
    other.write_text(LABELS.replace("yes or no", "well"), encoding="utf-8")
    case = "{criterion: tone.jinja, text: {output: o, tone: t}, expect: {label: pass}}"
    assert gather(case, over=(str(other),)).criteria["tone.jinja"].path == str(other)
    with pytest.raises(ConfigError, match=r"s\.judge\.yaml: .*'tine'.*'tone'"):
        gather(case, over=("tine.jinja",))


@pytest.mark.parametrize(
    ("case", "facts"),
    [
        ("criterion: relevanec, expect: {min: 3}", ("'relevanec'", "'relevance'")),
        ("criterion: tune.jinja, expect: {min: 3}", ("tune.jinja: no such file",)),
        ("criterion: overall, expect: {min: 0.5}", ("overall", "two texts", "better and worse")),
        ("criterion: relevance, item: mom, expect: {min: 3}", ("item 'mom'", "'mon'")),
        ("criterion: relevance, system: leed, expect: {min: 3}", ("system 'leed'", "'lead'")),
        ("criterion: relevance, better: edited, worse: draught", ("system 'draught'", "'draft'")),
        ("criterion: relevance, better: lead, worse: draft, item: wed", ("item 'wed'", "both")),
        ("criterion: relevance, item: wed, system: draft, expect: {min: 3}", ("none of these items", "'draft'")),
        ("criterion: relevance, expect: {min: 0}", ("min: 0", "relevance", "1 to 5")),
        ("criterion: relevance, expect: {min: 2, max: 5.5}", ("max: 5.5", "relevance", "1 to 5")),
        ("criterion: relevance, expect: pass", ("relevance", "what passes", "pass_at: or threshold:")),
        ("criterion: relevance, pass_rate: {min: 0.9}", ("relevance", "what passes")),
        ("criterion: relevance, expect: {label: 6}", ("label:", "relevance '6'", "1, 2, 3, 4, 5")),
        ("criterion: relevance, better: lead, worse: draft, margin: 4", ("margin: 4", "exceeded", "largest")),
        ("criterion: overall, better: lead, worse: draft, margin: 0.5", ("margin: 0.5", "exceeded", "large")),
        ("criterion: fluency, human: {spearman: {min: 0}}", ("human: no text", "'fluency'")),
        ("criterion: relevance, item: mon, system: lead, expect: {label: 4, share: 0.5}", ("share is for several",)),
        ("criterion: relevance, text: {output: o}, expect: {min: 3}", ("relevance reads source",)),
        (
            "criterion: tone.jinja, text: {output: o, tones: t}, expect: {label: pass}",
            ("tone reads tone",),
        ),
        ("criterion: tone.jinja, text: {output: o, tone: t}, expect: {label: Pass}", ("unknown label of tone 'Pass'",)),
        ("criterion: tone.jinja, item: mon, expect: {label: pass}", ("tone.jinja:4: unknown variable 'tone'",)),
    ],
)  # fmt: skip
def test_a_case_that_cannot_be(
    gather: Gather, tmp_path: Path, case: str, facts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        gather("{criterion: relevance, item: tue, expect: {min: 3}}", f"{{{case}}}")
    error_text = str(caught.value)
    assert error_text.startswith(f"{tmp_path / 's.judge.yaml'}:5: ")
    assert has_line(error_text, *facts)
    assert "\n" not in error_text


def test_a_wrong_key_of_a_criterion_has_the_line_of_the_criteria(
    gather: Gather, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        gather("{expect: {min: 3}}", top="criteria: [{name: tone, questino: Is it kind?}]")
    assert str(caught.value).startswith(f"{tmp_path / 's.judge.yaml'}:1: ")
    assert has_line(str(caught.value), "questino", "question")


def test_all_cases_are_checked_in_one_error(gather: Gather, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        gather(
            "{criterion: relevance, item: x, expect: {min: 3}}",
            "{criterion: relevance, expect: {min: 3}}",
            "{criterion: relevance, expect: {min: 9}}",
        )
    assert [line.partition(" ")[0] for line in str(caught.value).splitlines()] == [
        f"{tmp_path / 's.judge.yaml'}:{n}:" for n in (4, 6)
    ]


def test_two_criteria_of_one_name(gather: Gather, tmp_path: Path) -> None:
    other = tmp_path / "relevance.jinja"
    other.write_text(LABELS, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"s\.judge\.yaml:5: .*same name, relevance"):
        gather(
            "{criterion: relevance, expect: {min: 3}}",
            "{criterion: relevance.jinja, expect: {label: pass}}",
        )
    same = gather(
        "{criterion: relevance, expect: {min: 3}}",
        "{criterion: summarization/relevance, expect: {max: 3}}",
    )
    assert len(same.judged["texts"].texts_by_criterion) == 1


def test_a_case_called_like_a_text_of_the_data(gather: Gather, tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(
        '{"item": "a", "system": "text", "output": "x"}\n', encoding="utf-8"
    )
    (tmp_path / "s.judge.yaml").write_text("", encoding="utf-8")
    path = tmp_path / "t.judge.yaml"
    path.write_text(
        "data: data.jsonl\ncases: [{name: a, criterion: fluency, text: {output: o}, expect: {min: 2}}]\n"
    )
    suite = load(path)
    with pytest.raises(
        ConfigError,
        match=r"t\.judge\.yaml:2: .*item 'a' of system 'text'",
    ):
        collect_samples(suite, read(suite), load_criteria(suite))


def test_names_in_messages_are_few(gather: Gather, tmp_path: Path) -> None:
    rows = [{"item": f"doc-{n}", "system": "s", "output": "x"} for n in range(500)]
    path = tmp_path / "many.judge.yaml"
    write_jsonl(tmp_path / "many.jsonl", rows)
    path.write_text(
        "data: many.jsonl\ncases: [{criterion: fluency, item: doc-x, expect: {min: 2}}]\n"
    )
    suite = load(path)
    with pytest.raises(ConfigError, match=r"'doc-x'; did you mean 'doc-\d+'") as caught:
        collect_samples(suite, read(suite), load_criteria(suite))
    assert len(str(caught.value)) < 600
