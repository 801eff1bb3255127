"""The request and the passages of an answer come from columns with many names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from judge.core.errors import DataError
from judge.core.records import Sample
from judge.data import samples
from judge.data.answers import answer_inputs, column_of, first_column
from judge.data.column_names import PASSAGE_COLUMNS, REFERENCE_COLUMNS, REQUEST_COLUMNS
from tests.factories import write_jsonl


def answer(source: str | None = None, **columns: Any) -> Sample:
    return Sample("1", "s", "On Friday.", source=source, extra=columns)


@pytest.mark.parametrize("column", REQUEST_COLUMNS)
def test_a_request_may_have_any_of_its_names(column: str) -> None:
    assert answer_inputs(answer(**{column: "When?"})) == {"request": "When?"}


@pytest.mark.parametrize("column", PASSAGE_COLUMNS)
def test_passages_may_have_any_of_their_names(column: str) -> None:
    assert answer_inputs(answer(**{column: ["a", "b"]})) == {"passages": ["a", "b"]}


def test_a_source_alone_is_the_request() -> None:
    assert answer_inputs(answer("When?")) == {"request": "When?"}


def test_a_source_beside_a_request_is_the_passage() -> None:
    inputs = answer_inputs(answer("It left on Monday.", question="When?"))
    assert inputs == {"request": "When?", "passages": ["It left on Monday."]}


def test_a_source_that_repeats_the_request_is_not_a_passage() -> None:
    assert answer_inputs(answer("When?", question="When?")) == {"request": "When?"}


def test_contexts_take_precedence_over_a_source() -> None:
    inputs = answer_inputs(answer("the source", question="When?", contexts=["the context"]))
    assert inputs["passages"] == ["the context"]


@pytest.mark.parametrize("empty", [None, "", " ", [], float("nan")])
def test_an_empty_column_is_ignored(empty: Any) -> None:
    assert answer_inputs(answer("When?", question=empty, contexts=empty)) == {"request": "When?"}


@pytest.mark.parametrize("empty", ["[]", "[ ]", "['']", "[None]", "[nan]", ["", " "], [None]])
def test_a_list_without_texts_has_no_passages(empty: Any) -> None:
    assert answer_inputs(answer(question="When?", contexts=empty)) == {"request": "When?"}


@pytest.mark.parametrize(
    ("cell", "passages"),
    [
        ("one text", ["one text"]),
        ('["a", "b"]', ["a", "b"]),
        ("['a' 'b']", ["a", "b"]),
        ("[1] is a footnote", ["[1] is a footnote"]),
        ("[1]", ["[1]"]),
        ("[{'text': 'a', 'id': 7}, {'text': 'b'}]", ["a", "b"]),
        (["a", None, " ", "b"], ["a", "b"]),
        ([{"text": "a", "id": 7}, {"page_content": "b"}], ["a", "b"]),
    ],
)
def test_passages_are_a_text_a_list_or_a_list_in_a_cell(cell: Any, passages: list[str]) -> None:
    assert answer_inputs(answer(contexts=cell))["passages"] == passages


def rows_of(kind: str, folder: Path) -> Any:
    """Return one answer with two contexts, as data of this kind."""
    row = {"item": "1", "question": "When?", "contexts": ["a", "b"], "output": "On Friday."}
    frame = pd.DataFrame([row])
    path = folder / f"answers.{kind}"
    if kind == "frame":
        return frame
    if kind == "jsonl":
        return write_jsonl(path, [row])
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "csv", "frame"])
def test_a_list_of_contexts_is_read_from_every_kind_of_data(kind: str, tmp_path: Path) -> None:
    (sample,) = samples.load(rows_of(kind, tmp_path))
    assert answer_inputs(sample) == {"request": "When?", "passages": ["a", "b"]}


def test_the_only_message_before_an_answer_is_the_request() -> None:
    messages = [{"role": "user", "content": "When?"}]
    assert answer_inputs(answer(messages=messages)) == {"request": "When?"}


def test_a_conversation_of_several_turns_is_the_request() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "When?"},
    ]
    assert answer_inputs(answer(messages=messages)) == {"request": messages}


def test_column_of_returns_the_column_that_fills_a_variable() -> None:
    sample = answer(query="When?", topic="mail")
    columns = [column_of(sample, variable) for variable in ("request", "passages", "topic")]
    assert columns == ["query", "", "topic"]


# Usual column names for tables of answers in each language.
COLUMN_NAMES = [
    ("質問", "文脈", "回答", "正解"),
    ("依頼", "資料", "応答", "参考"),
    ("질문", "문맥", "답변", "정답"),
    ("问题", "上下文", "回答", "参考答案"),
    ("问题", "参考资料", "答案", "标准答案"),
    ("問題", "參考資料", "回覆", "參考答案"),
]


@pytest.mark.parametrize(("question", "context", "output", "reference"), COLUMN_NAMES)
def test_columns_may_have_names_in_each_language(
    question: str, context: str, output: str, reference: str
) -> None:
    row = {question: "When?", context: "It left on Monday.", output: "Soon.", reference: "Friday."}
    if output == "答案":  # also means the correct answer
        with pytest.raises(DataError, match=f"add --map output={output},"):
            samples.load([row])
    else:
        assert samples.load([row])[0].output == "Soon."
    [sample] = samples.load([row], mapping={"output": output})
    assert answer_inputs(sample) == {"request": "When?", "passages": ["It left on Monday."]}
    assert first_column(sample, REFERENCE_COLUMNS) == reference


def test_a_column_about_payment_is_not_a_request() -> None:
    assert answer_inputs(answer(請求="5000")) == {}


@pytest.mark.parametrize(
    ("cell", "request_text"),
    [
        ([{"role": "user", "content": "Why?"}], "Why?"),
        (
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
            "system: Be brief.\n\nuser: Why?",
        ),
        ({"text": "Why?", "id": 3}, "Why?"),
        (["Why?", None, "And when?"], "Why?\n\nAnd when?"),
        (5, "5"),
        ('["Why?"]', '["Why?"]'),
    ],
)
def test_a_request_may_be_messages_or_a_list(cell: Any, request_text: str) -> None:
    assert answer_inputs(Sample("1", "a", "x", extra={"prompt": cell}))["request"] == request_text
