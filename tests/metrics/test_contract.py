"""What every metric of the registry promises."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judge import registry
from judge.metrics import Metric
from judge.records import Failure, Provenance, Sample, Score

TEXTS = [
    "The ferry reached the harbour three hours late.",
    "배가 오후 늦게 항구에 도착했다.",
    "船は午後遅くに港へ着いた。",
    "渡轮下午很晚才到达港口。",
    "Паром пришёл в порт поздно вечером.",
    "وصلت العبارة إلى الميناء متأخرة",
]
ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=()), max_size=40),  # lone surrogates as well
    st.lists(st.sampled_from(" ".join(TEXTS).split()), max_size=10).map(" ".join),
)
with_each = pytest.mark.parametrize("name", registry.METRICS)
with_any_text = settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])


def metric(name: str) -> Metric:
    made: Metric = registry.load("metrics", name)()
    return made


def values(name: str, output: str, *references: str) -> list[float]:
    rows = metric(name).score([Sample("1", "a", output, references=references)]).rows
    return [row.value for row in rows if isinstance(row, Score)]


@with_each
def test_columns_are_signed_and_bounded(name: str) -> None:
    columns = metric(name).score([Sample("1", "a", "x", references=("y",))]).columns
    assert len({column.name for column in columns}) == len(columns) > 0
    for column in columns:
        assert column.kind == "metric"
        assert column.signature.split("|")[0] == column.name
        assert column.signature[-1].isdigit()  # the version that made it
        assert column.low is not None
        assert column.high is not None


@with_each
def test_one_row_per_sample_and_column_in_order(name: str) -> None:
    samples = [
        Sample("1", "a", TEXTS[0], references=(TEXTS[0],)),
        Sample("1", "b", TEXTS[1]),
        Sample("2", "a", "", references=(TEXTS[2], "")),
    ]
    result = metric(name).score(samples)
    columns = [column.name for column in result.columns]
    expected = [(s.item, s.system, column) for s in samples for column in columns]
    assert [(row.item, row.system, row.column) for row in result.rows] == expected
    assert all(row.provenance == Provenance(method="metric") for row in result.rows if isinstance(row, Score))
    assert metric(name).score(samples) == result


@with_each
def test_no_samples_no_rows(name: str) -> None:
    result = metric(name).score([])
    assert result.rows == ()
    assert result.columns


@with_each
@pytest.mark.parametrize(("references", "said"), [((), "no reference:"), (("", " \n"), "only blank references:")])
def test_without_reference_is_a_failure(name: str, references: tuple[str, ...], said: str) -> None:
    result = metric(name).score([Sample("7", "a", "x", references=references, where="d.jsonl:3")])
    assert len(result.rows) == len(result.columns)
    for row in result.rows:
        assert isinstance(row, Failure)
        assert (row.item, row.system, row.stage, row.error) == ("7", "a", "metric", "NoReference")
        assert row.message.startswith("d.jsonl:3 has " + said)
        assert "--map references=COLUMN" in row.message
    (first, *_) = metric(name).score([Sample("7", "a", "x")]).rows
    assert isinstance(first, Failure)
    assert first.message.startswith("item 7 has no reference")


@with_each
def test_empty_output_scores_the_lowest(name: str) -> None:
    columns = metric(name).score([]).columns
    for output in ("", " \n"):
        assert values(name, output, TEXTS[0]) == [column.low for column in columns]


@with_each
@pytest.mark.parametrize("whole", TEXTS)
def test_equal_texts_score_the_highest(name: str, whole: str) -> None:
    columns = metric(name).score([]).columns
    found = values(name, whole, "x y z", whole)
    assert found == pytest.approx([column.high for column in columns])


@with_each
@with_any_text
@given(output=ANY_TEXT, references=st.lists(ANY_TEXT, max_size=3))
def test_any_text_scores_in_range(name: str, output: str, references: list[str]) -> None:
    result = metric(name).score([Sample("1", "a", output, references=tuple(references))])
    for row, column in zip(result.rows, result.columns, strict=True):
        if any(reference.strip() for reference in references):
            assert isinstance(row, Score)
            assert column.low <= row.value <= column.high  # type: ignore[operator]
        else:
            assert isinstance(row, Failure)


@with_each
@with_any_text
@given(
    output=ANY_TEXT,
    orders=st.lists(ANY_TEXT, min_size=2, max_size=4).flatmap(lambda r: st.tuples(st.just(r), st.permutations(r))),
)
def test_order_of_references_does_not_matter(name: str, output: str, orders: tuple[list[str], list[str]]) -> None:
    assert values(name, output, *orders[0]) == pytest.approx(values(name, output, *orders[1]), abs=1e-12)


@with_each
def test_blank_references_do_not_count(name: str) -> None:
    assert values(name, TEXTS[0], "", "The ferry came late.", " ") == values(name, TEXTS[0], "The ferry came late.")


@with_each
def test_import_brings_no_package(name: str) -> None:
    code = f"import sys; from judge import registry; registry.load('metrics', {name!r}); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


@with_each
def test_nothing_is_written_to_the_terminal(name: str) -> None:
    code = (
        "from judge import registry; from judge.records import Sample;"
        "samples = [Sample(str(n), 'a', 'x .', references=('y .',)) for n in range(150)];"
        f"registry.load('metrics', {name!r})().score(samples)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
