"""Compare rouge.implementation=rouge-score, which calls the package, with our code."""

from __future__ import annotations

import pickle
from importlib.metadata import version
from typing import Any

import pytest

from judge.core.errors import ConfigError
from judge.core.records import Failure, Sample, Score
from judge.metrics.rouge import Rouge

SAMPLES = [
    Sample(
        "1",
        "a",
        "The ferries were late. Nobody had told us.",
        references=("The ferry was late; nobody told us.",),
    ),
    Sample(
        "1",
        "b",
        "Late ferries!",
        references=("The ferry was late; nobody told us.", "Ferries are late. Again."),
    ),
    Sample(
        "2",
        "a",
        "U.S. prices rose 3.5% in May. They fell in June.",
        references=("Prices fell, up in May.",),
    ),
    Sample(
        "2",
        "b",
        "no-one ran to the running cats",
        references=("Cats ran.\nNo one runs.", "the running"),
    ),
    Sample("3", "a", "", references=("nothing",)),
    Sample("3", "b", "text", references=()),
]


@pytest.mark.parametrize(
    "options", [{}, {"stem": False}, {"types": "rouge3,rougeLsum", "values": "f,p,r"}]
)
def test_the_package_gives_our_values(options: dict[str, Any]) -> None:
    ours, theirs = (
        Rouge(implementation=name, **options).score(SAMPLES) for name in ("judge", "rouge-score")
    )
    for our_row, their_row in zip(ours.rows, theirs.rows, strict=True):
        assert (our_row.item, our_row.system) == (their_row.item, their_row.system)
        assert our_row.column == their_row.column
        if isinstance(our_row, Score):
            assert isinstance(their_row, Score)
            assert their_row.value == pytest.approx(our_row.value, abs=1e-12)
        else:
            assert our_row == their_row
    assert [column.name for column in theirs.columns] == [column.name for column in ours.columns]


def test_the_signature_names_the_package() -> None:
    metric = pickle.loads(pickle.dumps(Rouge(implementation="rouge-score")))
    assert [str(column.signature) for column in metric.score(SAMPLES[:1]).columns][::3] == [
        f"rouge1|f|nrefs=1|stem=en|tok=en|refs=best|implementation=rouge-score {version('rouge-score')}",
        "rougeLsum|f|nrefs=1|stem=en|tok=en|sent=lines-or-stops|refs=best"
        f"|implementation=rouge-score {version('rouge-score')}",
    ]


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ({"types": "rouge1,rougeW,rougeSU4"}, ".*rougeW, .*rougeSU4"),
        ({"types": "lcs_mead"}, "the type lcs_mead"),
        ({"multi": "jackknife"}, "rouge.multi"),
        ({"preset": "rouge155"}, "rouge.preset"),
        ({"tokenizer": "ja"}, "rouge.tokenizer"),
        ({"stopwords": ["the"]}, "rouge.stopwords"),
        ({"beta": 2}, "rouge.beta"),
    ],
)
def test_refuses_options_the_package_does_not_have(option: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=rf"not support {named}.*: omit .* implementation=judge"):
        Rouge(implementation="rouge-score", **option)


def test_a_script_that_the_package_cannot_read_is_a_failure() -> None:
    samples = [Sample("1", "a", "버스 왔다", references=("버스가 왔다",)), *SAMPLES[:1]]
    result = Rouge(implementation="rouge-score", types="rouge1").score(samples)
    failed, value = result.rows
    assert isinstance(failed, Failure)
    assert (failed.error, isinstance(value, Score)) == ("NotAscii", True)
    assert "use rouge.implementation=judge" in failed.message
    assert "|tok=en|" in str(result.columns[0].signature)
