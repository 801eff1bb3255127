"""The worst texts of a run. Oracle: small results written by hand."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import Any

import pytest

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.records import Column, Provenance, Sample, Score
from judge.core.signature import Signature
from judge.results.result import Result
from judge.results.worst_list import worst_list
from judge.table import Table
from tests.factories import has_line

SOLVED = Column("solved", "criterion", Signature("solved"), 1.0, 5.0, ("1", "2", "3", "4", "5"))
POLITE = Column("polite", "criterion", Signature("polite"), 1.0, 5.0, ("1", "2", "3", "4", "5"))
VALUES = {"late": 1.0, "size": 5.0, "wet": 2.0}


def replies(**extra: Any) -> Result:
    """Return a result of one system with a text for each of VALUES."""
    samples = tuple(
        Sample(item, "shop", f"Reply {item}.", f"Mail {item}?", extra=extra) for item in VALUES
    )
    scores = [
        Score(item, "shop", "solved", value, Provenance("single", reason=f"Why {item}."))
        for item, value in VALUES.items()
    ]
    scores += [Score(item, "shop", "polite", 4.0, Provenance("single")) for item in VALUES]
    return Result(Table(samples, (SOLVED, POLITE), tuple(scores)))


def written(result: Result, n: int, format: str = "console") -> str:
    return plugins.write(plugins.document(worst_list(result, n)), format, full=True)


def test_the_worst_text_is_first_and_no_more_are_shown_than_asked_for() -> None:
    text = written(replies(), 2)
    assert text.index("solved 1: item late") < text.index("solved 2: item wet")
    assert "item size" not in text


def test_a_text_is_shown_with_source_reason_other_scores_and_own_columns() -> None:
    (first, *_) = written(replies(channel="mail"), 1).split("\n\n", 1)[1].split("\n\n2. ")
    assert [line.split(maxsplit=1) for line in first.splitlines()[2:]] == [
        ["source", "Mail late?"],
        ["output", "Reply late."],
        ["reason", "Why late."],
        ["other", "scores  polite 4"],
        ["channel", "mail"],
    ]


def test_a_conversation_is_shown_message_by_message() -> None:
    messages = [{"role": "user", "content": "Where is it?"}]
    text = written(replies(messages=messages), 1)
    assert "user          Where is it?" in text
    assert "messages" not in text


def test_texts_with_the_same_score_as_the_last_one_are_counted() -> None:
    result = replies()
    scores = tuple(replace(score, value=2.0) for score in result.table.scores)
    tied = replace(result, table=replace(result.table, scores=scores))
    assert has_line(written(tied, 1), "2 more texts", "same score")
    assert "same score" not in written(tied, 3)
    assert json.loads(written(tied, 1, "json"))["ties"] == 2


def test_the_order_of_texts_with_equal_scores_is_the_one_that_is_said() -> None:
    result = replies()
    polite = {"late": 4.0, "size": 3.0, "wet": 4.0}
    scores = []
    for score in result.table.scores:
        value = 2.0 if score.column == "solved" else polite[score.item]
        scores.append(replace(score, value=value))
    tied = replace(result, table=replace(result.table, scores=tuple(scores)))
    assert has_line(written(tied, 1), "ordered by their mean")
    rows = csv.DictReader(written(tied, 3, "csv").splitlines())
    assert [row["item"] for row in rows] == ["size", "late", "wet"]


def test_each_row_of_csv_and_json_counts_the_other_texts_with_its_score() -> None:
    result = replies()
    values = {"late": 2.0, "size": 1.0, "wet": 2.0}
    scores = [
        replace(score, value=values[score.item]) if score.column == "solved" else score
        for score in result.table.scores
    ]
    tied = replace(result, table=replace(result.table, scores=tuple(scores)))
    rows = list(csv.DictReader(written(tied, 2, "csv").splitlines()))
    assert [(row["score"], row["same_score"]) for row in rows] == [("1.0", "0"), ("2.0", "1")]
    texts = json.loads(written(tied, 2, "json"))["texts"]
    assert [text["same_score"] for text in texts] == [0, 1]


def test_a_request_comes_before_the_output() -> None:
    text = written(replies(channel="mail", question="Where is it?"), 1)
    assert text.index("Where is it?") < text.index("Reply late.") < text.index("channel")
    assert text.count("Where is it?") == 1


def test_csv_has_a_row_for_each_text_with_the_datas_own_columns() -> None:
    rows = list(csv.DictReader(written(replies(channel="mail", score="A"), 2, "csv").splitlines()))
    assert [row["item"] for row in rows] == ["late", "wet"]
    assert (rows[0]["score"], rows[0]["data.score"], rows[0]["channel"]) == ("1.0", "A", "mail")


@pytest.mark.parametrize("n", [0, -1])
def test_less_than_one_text_is_refused(n: int) -> None:
    with pytest.raises(ConfigError, match="1 text or more"):
        worst_list(replies(), n)


def test_a_ranking_is_refused(ranking: Result) -> None:
    with pytest.raises(ConfigError, match=r"ranking.*single text"):
        worst_list(ranking, 3)


def test_a_run_of_metrics_alone_is_refused() -> None:
    length = Column("length", "metric", Signature("length"), better="")
    table = Table(
        (Sample("a", "s", "x"),), (length,), (Score("a", "s", "length", 1.0, Provenance("")),)
    )
    with pytest.raises(ConfigError, match="no score on a criterion"):
        worst_list(Result(table), 3)
