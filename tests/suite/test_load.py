"""Load suites from files. Every error has its line and advice."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from judge.config import load_config
from judge.core.budget import Budget
from judge.core.errors import ConfigError
from judge.core.request_options import Judge
from judge.criteria import load as load_criterion
from judge.suite.case import Case
from judge.suite.load import find, load
from judge.suite.schema import Limits, Suite
from tests.factories import has_line

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a suite into a folder with data and two criteria."""
    (tmp_path / "data.jsonl").write_text('{"output": "x"}\n', encoding="utf-8")
    for name in ("mine/politeness.jinja", "mine.jinja"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("---\nscale: [1, 5]\n---\n{{ output }}\n", encoding="utf-8")

    def to(text: str, name: str = "s.judge.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return to


@pytest.fixture
def errors_of(write: Write) -> Callable[..., list[str]]:
    """Return the errors of a suite as `LINE: message`, without the file name."""

    def against(text: str) -> list[str]:
        path = write(text)
        with pytest.raises(ConfigError) as caught:
            load(path)
        lines = str(caught.value).splitlines()
        assert all(line.startswith(f"{path}:") for line in lines)
        return [line.removeprefix(f"{path}:") for line in lines]

    return against


def expected(case: Case) -> dict[str, Any]:
    """Return the keys of a case that belong to its expectation."""
    return case.model_dump(exclude=set(Case.model_fields), exclude_defaults=True)


FULL = """\
data: data.jsonl
map: {output: summary}
criteria: [relevance, mine/politeness.jinja]
model: [scripted/replies.yaml, {name: other, key_env: KEY}]
replay: kept
cache: false
budget: 2usd
limits: {failures: 2%, tokens: 1500, cost: 0.50usd}
baseline: runs/first
undecided: pass
cases:
  - name: first
    criterion: relevance
    item: [7, doc-1]
    system: edited
    expect: {min: 4, max: 5}
  - criterion: politeness
    text: {source: S, output: O, customer_message: hello}
    expect: {label: 1}
    undecided: fail
  - criterion: relevance
    better: edited
    worse: draft
    margin: 0.5
  - name: two texts
    criterion: relevance
    text: {source: S}
    better: {output: good}
    worse: {output: bad, references: [r]}
  - {criterion: relevance, human: {spearman: {min: 0.4}, kendall: {min: 0}}}
  - {criterion: relevance, drift: {max_shift: 0.2, max_flips: 0.1}}
"""


@pytest.fixture
def full(write: Write, tmp_path: Path) -> Suite:
    for name in ("replies.yaml", "kept"):
        (tmp_path / name).write_text("", encoding="utf-8")
    return load(write(FULL, "full.judge.yaml"))


def test_options_are_a_plan_s_with_paths_from_the_file(full: Suite, tmp_path: Path) -> None:
    assert full.options == {
        "data": tmp_path / "data.jsonl",
        "map": {"output": "summary"},
        "criteria": ("relevance", str(tmp_path / "mine/politeness.jinja")),
        "model": (
            Judge(name=f"scripted/{tmp_path / 'replies.yaml'}"),
            Judge(name="other", key_env="KEY"),
        ),
        "replay": tmp_path / "kept",
        "cache": False,
        "budget": Budget(2, "usd"),
    }
    config = load_config(options=full.options)
    assert (config.map, config.model, config.cache) == (
        {"output": "summary"},
        full.options["model"],
        False,
    )


def test_the_suite(full: Suite, tmp_path: Path) -> None:
    assert (full.name, full.undecided, full.baseline) == ("full", "pass", tmp_path / "runs/first")
    assert full.limits == Limits(failures="2%", tokens=1500, cost=Budget(0.5, "usd"))
    assert full.lines["data"] == 1
    assert full.lines["cases"] == 11
    assert [case.line for case in full.cases] == [12, 17, 21, 25, 30, 31]
    assert [case.kind for case in full.cases] == [
        "score_range",
        "label",
        "order",
        "order",
        "agreement",
        "drift",
    ]


def test_the_cases(full: Suite, tmp_path: Path) -> None:
    band, label, order, inline, agreement, drift = full.cases
    assert (band.item, band.system, expected(band)) == (
        ("7", "doc-1"),
        ("edited",),
        {"expect": {"min": 4, "max": 5}},
    )
    assert (label.criterion, label.undecided) == ("mine/politeness.jinja", "fail")
    assert expected(label) == {"expect": {"label": "1"}}
    (text,) = label.texts
    assert (text.item, text.system, text.output, text.source) == (label.name, "text", "O", "S")
    assert text.extra == {"customer_message": "hello"}
    assert text.where == f"{tmp_path / 'full.judge.yaml'}:18"
    assert (expected(order), order.texts) == (
        {"better": "edited", "worse": "draft", "margin": 0.5},
        (),
    )
    assert inline.systems == ("better", "worse")
    assert [(t.item, t.system, t.output, t.source) for t in inline.texts] == [
        ("two texts", "better", "good", "S"),
        ("two texts", "worse", "bad", "S"),
    ]
    assert inline.texts[1].references == ("r",)
    assert expected(agreement) == {"human": {"spearman": {"min": 0.4}, "kendall": {"min": 0}}}
    assert expected(drift) == {"drift": {"max_shift": 0.2, "max_flips": 0.1}}


def test_names_say_the_case_and_differ(full: Suite, write: Write) -> None:
    assert [case.name for case in full.cases] == [
        "first",
        "politeness of “O”: 1",
        "relevance: edited above draft",
        "two texts",
        "relevance of all texts agrees with human ratings",
        "relevance of all texts stays the same",
    ]
    same = "{criterion: relevance, item: x, system: a, expect: {max: 2.5}}"
    many = "{criterion: relevance, item: [a, b, c, d], expect: {min: 1, max: 2}}"
    most = "{criterion: relevance, expect: {label: '1', share: 0.9}}"
    taken = "{name: 'relevance of x by a ≤ 2.5 (2)', criterion: relevance, expect: {min: 1}}"
    loaded = load(
        write(f"data: data.jsonl\ncases: [{same}, {same}, {taken}, {same}, {many}, {most}]\n")
    )
    assert [case.name for case in loaded.cases] == [
        "relevance of x by a ≤ 2.5",
        "relevance of x by a ≤ 2.5 (3)",
        "relevance of x by a ≤ 2.5 (2)",
        "relevance of x by a ≤ 2.5 (4)",
        "relevance of 4 items: 1 to 2",
        "relevance of all texts: 1 for 90%",
    ]


def test_anchors_and_merged_keys(write: Write, errors_of: Callable[..., list[str]]) -> None:
    merged = "data: data.jsonl\ncases:\n  - &base\n    criterion: relevance\n    expect: {min: 3}\n  - <<: *base\n"
    loaded = load(write(merged + "    item: x\n  - {<<: *base, expect: {max: 2}}\n"))
    assert [expected(case)["expect"] for case in loaded.cases] == [
        {"min": 3},
        {"min": 3},
        {"max": 2},
    ]
    assert loaded.cases[1].item == ("x",)
    (error,) = errors_of(merged.replace("min: 3", "min: x"))  # one error, at the line of the anchor
    assert has_line(error, "5: min", "number", "'x'")


def test_levels_of_a_criterion_may_be_numbers_without_quotes(write: Write) -> None:
    criterion = "{name: kind, question: Is it kind?, levels: {1: It is rude., 5: It is warm.}}"
    loaded = load(
        write(f"data: data.jsonl\ncriteria: [{criterion}]\ncases: [{{expect: {{min: 3}}}}]\n")
    )
    (entry,) = loaded.options["criteria"]
    assert load_criterion(entry).levels == (("1", "It is rude."), ("5", "It is warm."))


def test_a_case_may_omit_the_only_criterion(write: Write) -> None:
    one = load(write("data: data.jsonl\ncriteria: mine.jinja\ncases: [{expect: {min: 3}}]\n"))
    assert one.cases[0].criterion == "mine.jinja"
    named = load(
        write(
            "data: data.jsonl\ncases: [{expect: {min: 3}}, {criterion: fluency, expect: {max: 3}}]\n"
        )
    )
    assert [case.criterion for case in named.cases] == ["fluency", "fluency"]
    assert named.options["criteria"] == ("fluency",)


def test_a_case_may_contain_its_text_instead_of_data(write: Write) -> None:
    loaded = load(
        write("cases: [{criterion: relevance, text: {source: s, output: o}, expect: {min: 3}}]\n")
    )
    assert "data" not in loaded.options


HEAD = "data: data.jsonl\ncriteria: [relevance, fluency]\ncases:\n  - {criterion: fluency, expect: {min: 1}}\n"
ONE = "  - {criterion: relevance, expect: {min: 1}}\n"


@pytest.mark.parametrize(
    ("case", "facts"),
    [
        ("expect: {min: 4}\n    better: a\n    worse: b", ("expect (line 6)", "better (line 7)", "worse (line 8)")),
        ("expect: {min: 4}\n    human: {kendall: {min: 0}}", ("expect (line 6)", "human (line 7)", "2 cases")),
        ("item: x", ("no expectation", "expect, pass_rate, better and worse, human", "drift")),
        ("better: a", ("worse is missing",)),
        ("better: a\n    worse: a", ("better and worse are both a",)),
        ("better: a\n    worse: {output: b}", ("better and worse", "two systems", "two texts")),
        ("better: a\n    worse: b\n    system: c", ("better and worse", "leave system out")),
        ("better: a\n    worse: b\n    text: {output: o}", ("better", "system of the data", "text")),
        ("better: {output: a}\n    worse: {output: b}\n    text: {output: o}", ("output is in better and worse",)),
        ("better: {output: a}\n    worse: {source: b}", ("worse:", "output:")),
        ("expect: {min: 4}\n    margin: 1", ("margin does not belong here",)),
        ("text: {output: o}\n    item: x\n    expect: {min: 3}", ("item", "text is in")),
        ("text: {output: o}\n    human: {pearson: {min: 0}}", ("human ratings", "leave text out")),
        ("text: {source: o}\n    expect: {min: 3}", ("text:", "output:")),
        ("text: {output: o, source: [1]}\n    expect: {min: 3}", ("text: source", "list ([1])")),
        ("text: {output: o, item: x}\n    expect: {min: 3}", ("text: item", "column")),
        ("text: {output: o, on: x}\n    expect: {min: 3}", ("the key on", "YAML")),
        ("text: {output: o, when: 2026-01-01}\n    expect: {min: 3}", ("when:", "date")),
        ("text: o\n    expect: {min: 3}", ("text:", "{source: ..., output: ...}")),
        ("expect: {label: no}", ("label:", "false", "quotes")),
        ("expect: {label: 1.0}", ("label:", "float", "quotes")),
        ("expect: {min: 4, max: 3}", ("expect:", "min 4", "max 3")),
        ("expect: {min: .inf}", ("min:", "finite", "not inf")),
        ("expect: 4", ("expect: write keys and values",)),
        ("pass_rate: {min: 1}", ("min:", "less than 1")),
        ("pass_rate: {max: 0.8}", ("max does not belong here",)),
        ("expect: {mim: 4}", ("'mim'", "'min'")),
        ("exspect: {min: 4}", ("'exspect'", "'expect'")),
        ("human: {spearman: {}}", ("min is missing",)),
        ("human: {spearman: {min: 0}, level: text}", ("level:", "'within-items', 'all-texts' or 'systems'")),
        ("human: {level: all-texts}", ("human:", "spearman, kendall or pearson")),
        ("drift: {}", ("drift:", "max_shift, max_drop or max_flips")),
        ("drift: {max_flips: 3}", ("max_flips:", "1", "not 3")),
        ("item: [x, no]\n    expect: {min: 3}", ("item:", "false")),
        ("item: {x: y}\n    expect: {min: 3}", ("item: write a name",)),
        ("item: ''\n    expect: {min: 3}", ("item: the value is empty",)),
        ("expect: {min: 3}\n    expect: {min: 4}", ("expect", "second time")),
        ("item: 010\n    expect: {min: 3}", ("010:", "another number", "quotes")),
        ("item: [a, 1_000]\n    expect: {min: 3}", ("1_000:", "another number")),
        (f"expect: {{min: {'9' * 5000}}}", ("another number",)),
    ],
)  # fmt: skip
def test_a_case_that_is_wrong(
    errors_of: Callable[..., list[str]], case: str, facts: tuple[str, ...]
) -> None:
    (error_line,) = errors_of(f"{HEAD}  - criterion: relevance\n    {case}\n")
    assert has_line(error_line, *facts)
    line = int(error_line.partition(":")[0])
    assert 5 <= line <= 6 + case.count("\n")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("dada: x\n" + HEAD + ONE, ("1:", "'dada'", "'data'")),
        ("metrics: [rouge]\n" + HEAD + ONE, ("1: metrics", "judge run", "leave it out")),
        ("draws: many\n" + HEAD + ONE, ("1: draws:", "integer", "'many'")),
        ("model: [{nmae: x}]\n" + HEAD + ONE, ("1:", "'nmae'", "'name'")),
        ("limits: {failures: 0.02}\n" + HEAD + ONE, ("1: failures:", "number of judgments", "share")),
        ("limits: {failures: 101%}\n" + HEAD + ONE, ("1: failures:", "number of judgments")),
        ("limits: {failures: yes}\n" + HEAD + ONE, ("1: failures:", "number of judgments")),
        ("limits: {cost: 5ktokens}\n" + HEAD + ONE, ("1: cost:", "0.50usd")),
        ("limits: {tokens: 1.5}\n" + HEAD + ONE, ("1: tokens:", "integer", "1.5")),
        ("limits: 0\n" + HEAD + ONE, ("1: limits:", "keys and values")),
        ("undecided: no\n" + HEAD + ONE, ("1: undecided:", "'pass' or 'fail'", "False")),
        ("on: x\n" + HEAD + ONE, ("1:", "key on", "quotes")),
        (HEAD, ("2: criteria:", "relevance")),
        (
            "criteria: [mine/politenes.jinja]\ncases:\n"
            + 2 * "  - {criterion: politeness, text: {output: x}, expect: {min: 1}}\n",
            ("1: criteria: mine/politenes.jinja", "'politeness.jinja'"),
        ),
        (
            "criteria: [mine/politeness.jinja]\ncases:\n"
            "  - {criterion: politenes, text: {output: x}, expect: {min: 1}}\n",
            ("3:", "'politenes'", "'politeness'"),
        ),
        (HEAD + "  - {expect: {min: 1}}\n", ("5: no criterion", "criterion:")),
        (HEAD + "  - {criterion: relevanec, expect: {min: 1}}\n", ("5:", "'relevanec'", "'relevance'")),
        ("data: dada.jsonl\n" + HEAD.partition("\n")[2] + ONE, ("1: data: ",)),
        ("cases: [{criterion: relevance, expect: {min: 1}}]\n", ("1: no texts", "text: {output: ...}")),
        ("cases: [{expect: {min: 1}, text: {output: x}}]\n", ("1: no criterion", "criterion:")),
        ("data: data.jsonl\ncases: []\n", ("2: cases:", "at least one")),
        ("data: data.jsonl\ncases: {}\n", ("2: cases: write a list",)),
        ("data: data.jsonl\n", ("1: cases is missing",)),
        ("data: data.jsonl\ncases: [3]\n", ("2: cases:", "keys and values")),
        ("- data\n", ("1:", "data: and cases:")),
        ("", ("1:", "data: and cases:")),
        ("data: data.jsonl\ncases: [\n", ("3: not YAML: ",)),
        ("data: data.jsonl\ncases: !!python/object:os.system []\n", ("2: not YAML", "constructor")),
        ("data: data.jsonl\nx: *nowhere\n", ("2: not YAML", "alias")),
        ("a: \x01\n", ("1: not YAML: unacceptable character",)),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong(
    errors_of: Callable[..., list[str]], text: str, facts: tuple[str, ...]
) -> None:
    (message,) = errors_of(text)
    assert message.startswith(facts[0])
    assert has_line([message], *facts)


def test_names_are_given_once(errors_of: Callable[..., list[str]]) -> None:
    (message,) = errors_of(
        "data: data.jsonl\ncases: [{name: a, criterion: relevance, expect: {min: 3}}, {name: a, expect: {min: 3}}]\n"
    )
    assert message.startswith("2: name: 'a' ")
    cases = "".join(f"  - {{name: {name}, expect: {{min: 3}}}}\n" for name in ("a", "b", "a"))
    (message,) = errors_of(f"data: data.jsonl\ncriteria: fluency\ncases:\n{cases}")
    assert has_line(message, "6: name: 'a'", "line 4", "unique")


def test_all_mistakes_are_in_one_error_sorted_by_line(errors_of: Callable[..., list[str]]) -> None:
    cases = "".join(f"  - {{expect: {{mim: {n}}}}}\n" for n in range(30))
    messages = errors_of(f"daat: x\ndraws: 0\ncases:\n{cases}")
    assert [int(line.partition(":")[0]) for line in messages[:-1]] == [1, 2, *range(4, 22)]
    assert messages[-1] == " 12 more"


def test_files_that_are_not_there(
    write: Write, errors_of: Callable[..., list[str]], tmp_path: Path
) -> None:
    text = (
        "data: dta.jsonl\nreplay: kept\nmodel: scripted/no.yaml\n" + HEAD.partition("\n")[2] + ONE
    )
    data_error, replay_error, model_error = errors_of(text)
    assert has_line(data_error, f"1: data: {tmp_path / 'dta.jsonl'}", "'data.jsonl'")
    assert has_line(replay_error, f"2: replay: {tmp_path / 'kept'}", "no such file")
    assert has_line(model_error, f"3: model: {tmp_path / 'no.yaml'}", "no such file")
    (tmp_path / "empty").mkdir()
    (lacking,) = errors_of(HEAD.replace("data.jsonl", "empty") + ONE)
    assert has_line(lacking, f"1: data: {tmp_path / 'empty'}", "no data")
    load(write(HEAD.replace("data.jsonl", ".") + ONE))
    load(write(HEAD.replace("data.jsonl", "'*.jsonl'") + ONE))
    fine = load(write(text.replace("dta", "data")), set_elsewhere=("replay", "model"))
    assert fine.options["replay"] == tmp_path / "kept"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no\.judge\.yaml: No such file"):
        load(tmp_path / "no.judge.yaml")
    (tmp_path / "x.judge.yaml").write_bytes(b"data: \xff\n")
    with pytest.raises(ConfigError, match=r"x\.judge\.yaml: not UTF-8 text"):
        load(tmp_path / "x.judge.yaml")


def test_yaml_bombs_are_refused(write: Write) -> None:
    layers = "".join(
        f"  x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9) if n else 'lol'}]\n" for n in range(12)
    )
    with pytest.raises(ConfigError, match=r"aliases.*100,000 values"):
        load(write(f"x:\n{layers}cases: [{{expect: {{min: *x11}}}}]\n"))
    with pytest.raises(ConfigError, match="nested too deeply"):
        load(write(f"x: {'[' * 700}\n"))
    with pytest.raises(ConfigError, match=r"2: an alias \(\*\) inside"):
        load(write("data: data.jsonl\ncases: &c [*c]\n"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=3) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["min", "x", ""]), inner, max_size=2)
    ),
    max_leaves=4,
)


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [at, *(place for key, one in inner for place in _places(one, (*at, key)))]


def _with(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    pairs = dict(value.items() if isinstance(value, dict) else enumerate(value))
    pairs[at[0]] = _with(pairs[at[0]], at[1:], new)
    return pairs if isinstance(value, dict) else list(pairs.values())


@given(st.data())
def test_any_yaml_makes_a_suite_or_an_error_with_a_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.getbasetemp() / "anything"
    folder.mkdir(exist_ok=True)
    for name in ("data.jsonl", "replies.yaml", "kept"):
        (folder / name).write_text("", encoding="utf-8")
    valid = yaml.safe_load(FULL)
    text = yaml.safe_dump(
        _with(valid, data.draw(st.sampled_from(_places(valid)[1:])), data.draw(VALUES))
    )
    path = folder / "s.judge.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        assert load(path).cases
    except ConfigError as error:
        for line in str(error).splitlines():
            match = re.match(re.escape(f"{path}:") + r"(\d+): \S", line)
            assert match, line
            assert 1 <= int(match[1]) <= text.count("\n") + 1


# Finding


def test_find(tmp_path: Path, write: Write) -> None:
    for name in (
        "b.judge.yaml",
        "sub/a.judge.yaml",
        ".hidden/c.judge.yaml",
        "run.yaml",
        "judge.yaml",
    ):
        write("", name)
    paths = [tmp_path / "b.judge.yaml", tmp_path / "sub/a.judge.yaml"]
    assert find([tmp_path]) == paths
    assert find([str(tmp_path / "run.yaml")]) == [tmp_path / "run.yaml"]
    assert find([tmp_path / "sub", tmp_path, tmp_path / "sub/../b.judge.yaml"]) == paths[::-1]
    assert find([tmp_path / ".hidden"]) == [tmp_path / ".hidden/c.judge.yaml"]


def test_find_nothing(tmp_path: Path, write: Write) -> None:
    write("", "b.judge.yaml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"did you mean 'b\.judge\.yaml'\?"):
        find([tmp_path / "c.judge.yaml"])
    with pytest.raises(
        ConfigError,
        match=r"empty: no \*\.judge\.yaml",
    ):
        find([tmp_path, tmp_path / "empty"])
    with pytest.raises(ConfigError, match="no suites: name a"):
        find([])
