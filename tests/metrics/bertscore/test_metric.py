"""The metric from samples to rows, with a fake encoder instead of a model."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

import judge.metrics.bertscore as metric
from judge.core.errors import DataError
from judge.core.records import Failure, Sample, Score
from judge.metrics.base import MetricContext
from judge.metrics.bertscore import BertScore, BertScoreValue, embedder, rescale_linear, score
from judge.metrics.bertscore.encoder import TokenizerInfo
from tests.factories import has_line

LIMIT = 8


class Letters:
    """A fake encoder with a token and a vector for each word. It puts 1 before a text and 2 after it.

    `loaded` lists the encoders of a test, and `seen` the rows of tokens that an encoder computed.
    """

    loaded: ClassVar[list[Letters]] = []
    seen: list[list[int]]

    def __init__(self, model: object, precision: str, device: str | None) -> None:
        self.facts = TokenizerInfo(
            limit=LIMIT, prefix=(1,), suffix=(2,), weightless=(1, 2), pad=0, spaced=False
        )
        self.batch_tokens = 64
        self.seen = []
        Letters.loaded.append(self)

    def tokens(self, text: str) -> list[int]:
        return [3 + zlib.crc32(word.encode()) % 1000 for word in text.split() if word != "~"]

    def hidden(self, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]:
        self.seen += [list(row) for row in ids]
        assert all(len(row) <= LIMIT for row in ids)
        embeddings = []
        for row in ids:
            vectors = [vector(token, position) for position, token in enumerate(row)]
            embeddings.append(np.stack(vectors))
        return embeddings


def vector(token: int, position: int) -> npt.NDArray[np.float32]:
    """Return a vector that is not of unit length and depends on the position in the window, as a model's does."""
    embedding: npt.NDArray[np.float32] = (
        np.random.default_rng(token).uniform(0, 1, 6).astype(np.float32)
    )
    embedding[0] += position / 10
    return embedding


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """Return a folder that looks like a model's, and replace the encoder."""
    Letters.loaded = []
    monkeypatch.setattr(embedder, "TorchEncoder", Letters)
    monkeypatch.setattr(embedder, "huggingface_runtime", lambda who: "torch 1.0|transformers 1.0")
    folder = tmp_path / "letters"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"num_hidden_layers": 4}))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return str(folder)


def sample(output: str, *references: str, n: int = 0, **fields: Any) -> Sample:
    return Sample(f"i{n}", "s", output, references=references, **fields)


def values(rows: Sequence[Score | Failure]) -> list[list[float | str]]:
    flat = [row.value if isinstance(row, Score) else row.error for row in rows]
    return [flat[n : n + 4] for n in range(0, len(flat), 4)]


def test_signatures_of_the_four_columns_name_every_option(model: str) -> None:
    result = BertScore(model=model, layer=2).score([sample("a b", "a c")])
    digest = str(result.columns[0].signature).split("|")[2].removeprefix("letters@")
    end = "nrefs=1|refs=max|long=window8|fp32|torch 1.0|transformers 1.0"
    assert [str(column.signature) for column in result.columns] == [
        f"bertscore|f|letters@{digest}|layer=2|idf=no|rescale=no|{end}",
        f"bertscore_p|p|letters@{digest}|layer=2|idf=no|rescale=no|{end}",
        f"bertscore_r|r|letters@{digest}|layer=2|idf=no|rescale=no|{end}",
        f"bertscore_corrected|f|low=0.65|high=0.85|letters@{digest}|layer=2|idf=no|{end}",
    ]
    assert len(digest) == 8
    assert [row.column for row in result.rows] == [column.name for column in result.columns]
    assert result.notes == ()


@pytest.mark.parametrize("rescale", [False, True])
def test_cosines_have_no_low_end_and_corrected_scores_do(
    model: str, tmp_path: Path, rescale: bool
) -> None:
    (tmp_path / "own.tsv").write_text("LAYER,P,R,F\n2,0.1,0.1,0.1\n")
    options: dict[str, Any] = (
        {"rescale": True, "baseline": str(tmp_path / "own.tsv")} if rescale else {}
    )
    columns = BertScore(model=model, layer=2, **options).score([]).columns
    assert [(column.low, column.high) for column in columns] == [*[(None, 1.0)] * 3, (0.0, 1.0)]


def test_f_is_the_harmonic_mean_and_is_corrected(model: str) -> None:
    ((f, p, r, stretched),) = values(
        BertScore(model=model, layer=2, low=0.2, high=0.99).score([sample("a b", "c d e")]).rows
    )
    assert f == pytest.approx(2 * float(p) * float(r) / (float(p) + float(r)))
    assert stretched == pytest.approx(rescale_linear(float(f), 0.2, 0.99))


def test_an_empty_text_is_a_failure_in_each_column(model: str) -> None:
    rows = (
        BertScore(model=model, layer=2)
        .score(
            [
                sample(" \n", "a b"),
                sample("a b"),
                sample("a b", "", "  "),
                sample("~ ~", "a b"),
                sample("a b", "~", where="data.jsonl:5"),
                sample("a b", " ", "a b"),
                sample("a b", "~", "a b"),
            ]
        )
        .rows
    )
    results = values(rows)
    kinds = ["EmptyOutput", "NoReference", "NoReference", "NoTokens", "NoTokens"]
    assert results[:5] == [[kind] * 4 for kind in kinds]
    assert results[5] == results[6] == pytest.approx([1, 1, 1, 1])
    message = rows[16]
    assert isinstance(message, Failure)
    assert has_line(message.message, "data.jsonl:5", "reference without words")


def test_no_model_is_loaded_without_a_pair(model: str) -> None:
    result = BertScore(model=model, layer=2).score([sample("", "a b")])
    assert values(result.rows) == [["EmptyOutput"] * 4]
    assert Letters.loaded == []


def test_each_distinct_text_is_encoded_once(model: str) -> None:
    samples = [
        sample(out, "a b", ref, n=n)
        for n, (out, ref) in enumerate([("x", "y"), ("x ", "z"), ("y", "x"), ("x", "y")])
    ]
    BertScore(model=model, layer=2).score(samples)
    assert len(Letters.loaded[0].seen) == len({"x", "y", "z", "a b"})


def test_scores_in_parts_equal_scores_of_all(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"w{n} w{n % 7} w{n % 3}", f"w{n % 5} w{n % 2}") for n in range(40)]
    samples = [sample(out, ref, n=n) for n, (out, ref) in enumerate(pairs)]
    whole = BertScore(model=model, layer=2, idf=True).score(samples)
    monkeypatch.setattr(metric, "_BLOCK_TOKENS", 20)
    calls: list[tuple[int, int]] = []
    parts = BertScore(
        context=MetricContext(progress=lambda done, total: calls.append((done, total))),
        model=model,
        layer=2,
        idf=True,
    ).score(samples)
    assert parts.rows == whole.rows
    distinct = len({text for pair in pairs for text in pair})
    assert calls[-1] == (distinct, distinct)
    assert calls == sorted(calls)
    assert len(calls) > 5


def test_long_texts_are_read_in_windows_with_a_note(model: str) -> None:
    long = "a b c d e f g h i"
    result = BertScore(model=model, layer=2).score(
        [sample(long, "a"), sample("a b", "a"), sample("b", long)]
    )
    pieces = [row for row in Letters.loaded[0].seen if len(row) == LIMIT]
    tokens = Letters.loaded[0].tokens(long)
    assert pieces == [[1, *tokens[:6], 2], [1, *tokens[3:], 2]]
    (note,) = result.notes
    assert has_line(note, "bertscore: 1 text", "8 tokens", "windows", "long: cut")
    notes = [row.provenance.note for row in result.rows[::4] if isinstance(row, Score)]
    assert (notes[0], notes[1]) == (notes[2], None)
    assert has_line(notes[0], "longer than", "windows")


def test_a_token_embedding_comes_from_its_most_central_window(model: str) -> None:
    (value,) = score(["a b c d e f g h i"], ["a"], model=model, layer=2)
    assert isinstance(value, BertScoreValue)
    tokens = Letters.loaded[0].tokens("a b c d e f g h i")
    # Six tokens fit, so the windows are 0-5 and 3-8. Token 4, the middle of all nine, is equally central in both.
    positions = [1, 2, 3, 4, 5, 3, 4, 5, 6]
    rows = [vector(token, position) for token, position in zip(tokens, positions, strict=True)]
    reference = [vector(1, 0), vector(tokens[0], 1), vector(2, 2)]
    unit = [[row / np.linalg.norm(row) for row in side] for side in (rows, reference)]
    expected = sum(max(float(x @ y) for y in unit[1]) for x in unit[0]) / 9
    assert value.precision == pytest.approx(expected, abs=1e-6)


def test_a_cut_text_is_scored_by_its_beginning_with_a_note(model: str) -> None:
    metric = BertScore(model=model, layer=2, long="cut")
    result = metric.score([sample("a b c d e f g h i", "b c")])
    assert values(result.rows) == values(metric.score([sample("a b c d e f", "b c")]).rows)
    assert has_line(result.notes[0], "1 text", "8 tokens", "cut")
    assert "|long=cut8|" in str(result.columns[0].signature)


def test_idf_of_one_document_is_a_failure(model: str) -> None:
    rows = BertScore(model=model, layer=2, idf=True).score([sample("a b", "a b")]).rows
    assert values(rows) == [["NoWeight"] * 4]
    assert isinstance(rows[0], Failure)
    assert "the one document for idf" in rows[0].message


def test_idf_counts_the_references_of_all_samples_or_the_texts_of_the_option(model: str) -> None:
    samples = [sample("a b", "a c"), sample("a d", "a e"), sample("a d", "a e"), sample("", "a f")]
    counted = BertScore(model=model, layer=2, idf=True).score(samples)
    listed = BertScore(model=model, layer=2, idf=["a c", "a e", "a e", "a f"]).score(samples)
    fewer = BertScore(model=model, layer=2, idf=["a c", "a e"]).score(samples)
    assert counted.rows == listed.rows != fewer.rows
    idf_parts = [
        str(result.columns[0].signature).split("|")[4] for result in (counted, listed, fewer)
    ]
    assert [part[:5] for part in idf_parts] == ["idf=r", "idf=o", "idf=o"]


def test_rescaled_columns_are_signed_and_the_correction_uses_the_plain_f(
    model: str, tmp_path: Path
) -> None:
    (tmp_path / "own.tsv").write_text("LAYER,P,R,F\n0,0,0,0\n2,0.5,0.6,0.7\n")
    samples = [sample("a b", "c d e")]
    ((f, p, r, stretched),) = values(BertScore(model=model, layer=2).score(samples).rows)
    result = BertScore(
        model=model, layer=2, rescale=True, baseline=str(tmp_path / "own.tsv")
    ).score(samples)
    expected = [(float(f) - 0.7) / 0.3, (float(p) - 0.5) / 0.5, (float(r) - 0.6) / 0.4, stretched]
    assert values(result.rows)[0] == pytest.approx(expected)
    assert "|rescale=own@" in str(result.columns[0].signature)
    assert "rescale" not in str(result.columns[3].signature)
    assert result.columns[0].low is None


def test_the_function_for_lists_returns_values_and_failures_in_order(model: str) -> None:
    values = score(["a b", "", "a"], ["a b", "a", ["b", "a"]], model=model, layer=2)
    assert isinstance(values[1], Failure)
    assert values[1].item == "1"
    for value in (values[0], values[2]):
        assert isinstance(value, BertScoreValue)
        assert value.fmeasure == pytest.approx(1)
    with pytest.raises(DataError, match="lists of equal length"):
        score(["a", "b"], ["a"], model=model, layer=2)


def test_a_lone_surrogate_is_read_as_the_replacement_character(model: str) -> None:
    values = score(["a \ud800", "a \ufffd"], ["a b", "a b"], model=model, layer=2)
    assert values[0] == values[1]


def test_an_embedding_with_nan_is_a_failure(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Letters, ids: Sequence[Sequence[int]]) -> list[npt.NDArray[np.float32]]:
        return [np.full((len(row), 6), np.nan, dtype=np.float32) for row in ids]

    monkeypatch.setattr(Letters, "hidden", broken)
    (value,) = score(["a b"], ["a c"], model=model, layer=2)
    assert isinstance(value, Failure)
    assert value.error == "NotFinite"


def test_a_text_of_many_windows_is_scored(model: str) -> None:
    many = " ".join(f"w{n}" for n in range(5000))
    (value,) = score([many], [many + " end"], model=model, layer=2)
    assert isinstance(value, BertScoreValue)
    assert 0.9 < value.fmeasure <= 1
