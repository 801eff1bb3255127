"""Compare entailment by tiny cross-encoders of random weights with transformers, one window at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core import claims
from judge.core.errors import ConfigError
from judge.core.records import Failure, Sample, Score
from judge.metrics.base import ModelError
from judge.metrics.claims import Claims, Job
from judge.metrics.claims.cross_encoder import CrossEncoder, entailment_label, locate
from judge.metrics.nli import Nli
from tests.factories import has_line

SOURCE = "The river rose by two metres. The bridge was closed, said the mayor. Only the old road stayed open."
LONG = " ".join(
    [SOURCE, "Rain is likely until Sunday night, and the mayor sent people over the hill."] * 3
)
SENTENCES = [
    "The bridge was closed.",
    "Two metres of rain closed the old road.",
    "The mayor is likely open until Sunday.",
]
PAIRS = [(source, sentence) for source in (SOURCE, LONG) for sentence in SENTENCES]
OTHER = "船は港に着いた。"
MNLI = {0: "contradiction", 1: "neutral", 2: "entailment"}


@pytest.mark.parametrize(
    ("labels", "option", "index"),
    [
        ({0: "entailment", 1: "neutral", 2: "contradiction"}, None, 0),
        ({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, None, 2),
        ({0: "Contradict", 1: "Entailed", 2: "Neutral"}, None, 1),
        ({0: "entailment", 1: "not_entailment"}, None, 0),
        ({0: "non-entailment", 1: "entailment"}, None, 1),
        ({0: "SUPPORTS", 1: "REFUTES", 2: "NOT ENOUGH INFO"}, None, 0),
        ({0: "hallucinated", 1: "consistent"}, None, 1),
        ({0: "CORRECT", 1: "INCORRECT"}, None, 0),
        ({0: "0", 1: "1"}, None, 1),
        ({0: "LABEL_0"}, None, 0),
        # Label 0 means entailment in GLUE's RTE and QNLI, label 1 in others.
        ({0: "LABEL_0", 1: "LABEL_1"}, None, None),
        ({0: "0", 1: "1", 2: "2"}, None, None),
        ({0: "POSITIVE", 1: "NEGATIVE"}, None, None),
        ({0: "supported", 1: "consistent"}, None, None),
        ({0: "LABEL_0", 1: "LABEL_1"}, "label_0", 0),
        ({0: "LABEL_0", 1: "LABEL_1"}, 1, 1),
        ({0: "yes", 1: "no"}, "0", 0),
        ({0: "1", 1: "0"}, "1", 0),  # names take precedence over numbers
        ({0: "entailment", 1: "neutral"}, "2", None),
        ({0: "entailment", 1: "neutral"}, "maybe", None),
    ],
)
def test_the_label_for_entailment(
    labels: dict[int, str], option: str | int | None, index: int | None
) -> None:
    assert entailment_label(labels, option) == index


class Sure:
    """A verifier that gives every claim a probability of 1."""

    signature = "sure"

    def verify(self, jobs: Sequence[Job]) -> list[list[float] | ModelError]:
        return [[1.0] * len(job.claims) for job in jobs]


torch_needed = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def save_classifier(tiny: Any, folder: Path, kind: str, labels: Mapping[int, str]) -> str:
    """Save a classifier with a window of 48 tokens, which are BERT's word pieces or RoBERTa's bytes."""
    folder.mkdir(exist_ok=True)
    fields: dict[str, Any] = {"initializer_range": 0.5, "id2label": dict(labels)}
    fields["label2id"] = {name: number for number, name in labels.items()}
    if kind == "Bert":
        tokenizer = tiny.word_pieces(folder, [LONG, *SENTENCES])
        fields |= {"vocab_size": len(tokenizer), "max_position_embeddings": 48}
    else:
        tokenizer = tiny.byte_pairs(folder, [LONG, *SENTENCES])
        fields |= {"vocab_size": 400, "max_position_embeddings": 50}
    return str(
        tiny.saved(folder, tiny.made(kind, "ForSequenceClassification", 7, **fields), tokenizer)
    )


@pytest.fixture(scope="session")
def bert(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_classifier(tiny, tmp_path_factory.mktemp("nli") / "bert", "Bert", MNLI)


@pytest.fixture(scope="session")
def finder(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a model with one logit, which is high if the text contains the word `mayor`."""
    torch = tiny.torch
    folder = tmp_path_factory.mktemp("finder")
    tokenizer = tiny.word_pieces(folder, [LONG, *SENTENCES])
    fields = {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": 48,
        "num_hidden_layers": 1,
        "num_labels": 1,
    }
    model = tiny.made("Bert", "ForSequenceClassification", 4, **fields)
    with torch.no_grad():
        for weights in model.parameters():
            weights.zero_()
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.weight.fill_(1.0)
        model.bert.embeddings.word_embeddings.weight[
            tokenizer.convert_tokens_to_ids("mayor"), 0
        ] = 50.0
        layer = model.bert.encoder.layer[0].attention
        layer.self.value.weight.copy_(torch.eye(32))
        layer.output.dense.weight.copy_(torch.eye(32))
        model.bert.pooler.dense.weight.copy_(torch.eye(32))
        model.classifier.weight[0, 0] = 20.0
        model.classifier.bias[0] = -5.0
    return str(tiny.saved(folder, model, tokenizer))


def encoder(folder: str, **options: Any) -> CrossEncoder:
    return CrossEncoder(locate(folder, who="nli", cache=None), device="cpu", **options)


def probabilities(encoder: CrossEncoder, pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the probability of each pair of a text and a claim."""
    results = encoder.verify([(source, (claim,)) for source, claim in pairs])
    return [value for each in results if not isinstance(each, ModelError) for value in each]


def one_by_one(
    folder: str, pairs: list[tuple[str, str]], window: int, index: int | None
) -> list[float]:
    """Return the highest probability of the windows of each pair. transformers cuts and reads one at a time.

    `index` is the label's; None means that the model has one logit.
    """
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    transformers.utils.logging.disable_progress_bar()
    network = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    transformers.utils.logging.enable_progress_bar()
    special = tokenizer.num_special_tokens_to_add(pair=True)
    values = []
    for source, sentence in pairs:
        size = len(tokenizer.encode(sentence, add_special_tokens=False))
        source_tokens = min(window, 48 - special - size)
        encoded = tokenizer(
            source,
            sentence,
            truncation="only_first",
            max_length=source_tokens + size + special,
            stride=source_tokens // 3,
            return_overflowing_tokens=True,
        )
        by_window = []
        for n in range(len(encoded["input_ids"])):
            names = [
                name
                for name in ("input_ids", "attention_mask", "token_type_ids")
                if name in encoded
            ]
            inputs = {name: torch.tensor([encoded[name][n]]) for name in names}
            with torch.inference_mode():
                logits = network(**inputs).logits[0]
            if index is None:
                by_window.append(float(torch.sigmoid(logits[0])))
            else:
                by_window.append(float(torch.softmax(logits, 0)[index]))
        assert len(by_window) > 1 or len(source) < 200
        values.append(max(by_window))
    return values


@pytest.mark.parametrize("kind", ["Bert", "Roberta"])
@pytest.mark.parametrize("window", [350, 20])
@pytest.mark.parametrize(
    ("labels", "index"),
    [(MNLI, 2), ({0: "entailment", 1: "not_entailment"}, 0), ({0: "score"}, None)],
)
class TestProbabilities:
    pytestmark = torch_needed

    def test_probabilities_are_the_highest_of_all_windows_by_transformers(
        self,
        tiny: Any,
        tmp_path: Path,
        kind: str,
        window: int,
        labels: dict[int, str],
        index: int | None,
    ) -> None:
        folder = save_classifier(tiny, tmp_path / "model", kind, labels)
        values = probabilities(encoder(folder, window=window), PAIRS)
        assert values == pytest.approx(one_by_one(folder, PAIRS, window, index), abs=1e-5)
        assert len({round(value, 3) for value in values}) > 3, (
            "the model gives all pairs the same value"
        )
        assert probabilities(
            encoder(folder, window=window, batch_tokens=1), PAIRS
        ) == pytest.approx(values, abs=1e-5)


class TestModel:
    pytestmark = torch_needed

    def test_support_in_any_window_counts(self, finder: str) -> None:
        filler = "The river rose and the old road stayed open. " * 10
        texts = [f"{filler}mayor", f"mayor {filler}", f"{filler} mayor {filler}", filler]
        values = probabilities(
            encoder(finder), [(text, "The bridge was closed.") for text in texts]
        )
        assert [value > 0.5 for value in values] == [True, True, True, False]

    def test_progress_counts_claims(self, bert: str) -> None:
        progress: list[tuple[int, int]] = []
        results = encoder(bert, progress=lambda *done: progress.append(done)).verify(
            [(SOURCE, tuple(SENTENCES))] * 2
        )
        assert results[0] == pytest.approx(results[1], abs=1e-5)
        assert progress[-1] == (6, 6)

    def test_special_tokens_in_a_text_are_read_as_text(self, bert: str) -> None:
        texts = [f"{SOURCE} {word}" for word in ("[SEP]", "[ sep ]")]
        token, spaced = probabilities(encoder(bert), [(text, SENTENCES[0]) for text in texts])
        assert token == pytest.approx(spaced, abs=1e-5)

    def test_unreadable_texts_are_model_errors(self, bert: str) -> None:
        claims = [
            (SOURCE, "road " * 23),
            (SOURCE, "\u200b"),
            (SOURCE, OTHER),
            (OTHER, SENTENCES[0]),
        ]
        results = encoder(bert).verify(
            [(source, (SENTENCES[1], claim)) for source, claim in claims]
        )
        assert results[0].error == "ClaimTooLong"
        assert has_line(results[0].message, "23 tokens", "22")
        assert [each.error for each in results if isinstance(each, ModelError)][1:] == [
            "NoTokens",
            *["UnknownText"] * 2,
        ]
        assert has_line(str(results[2]), "bert", "not know", "claim")
        assert "the words of a text" in str(results[3])

    def test_nan_probabilities_are_model_errors(self, tiny: Any, bert: str, tmp_path: Path) -> None:
        folder = tiny.copied(bert, tmp_path / "model")
        network = tiny.transformers.AutoModelForSequenceClassification.from_pretrained(folder)
        with tiny.torch.no_grad():
            network.classifier.bias.fill_(math.nan)
        tiny.saved(Path(folder), network)
        (error,) = encoder(folder).verify([(SOURCE, (SENTENCES[0],))])
        assert isinstance(error, ModelError)
        assert error.error == "NotFinite"

    def test_unclear_labels_are_listed_with_the_option_that_names_one(
        self, tiny: Any, bert: str, tmp_path: Path
    ) -> None:
        labels = {"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}}
        folder = tiny.copied(bert, tmp_path / "model", config=labels)
        with pytest.raises(
            ConfigError,
            match=r"'LABEL_2': set nli\.label",
        ):
            Nli(model=folder)
        named = probabilities(encoder(folder, label="LABEL_2"), PAIRS[:2])
        assert (
            named
            == probabilities(encoder(folder, label=2), PAIRS[:2])
            == probabilities(encoder(bert), PAIRS[:2])
        )

    def test_a_model_of_another_kind_is_refused(self, tiny: Any, bert: str, tmp_path: Path) -> None:
        folder = tiny.copied(
            bert, tmp_path / "model", config={"architectures": ["BertForMaskedLM"]}
        )
        with pytest.raises(ConfigError, match="it is a BertForMaskedLM"):
            encoder(folder)
        bare = tiny.copied(bert, tmp_path / "bare", config={"architectures": None})
        tiny.saved(Path(bare), tiny.transformers.AutoModel.from_pretrained(bare))
        bare = tiny.copied(
            bare, tmp_path / "bare", config={"architectures": None, "id2label": {"2": "entailment"}}
        )
        with pytest.raises(ConfigError, match="its weights lack classifier"):
            probabilities(encoder(bare), PAIRS[:1])

    def test_code_of_a_model_is_never_run(self, tiny: Any, bert: str, tmp_path: Path) -> None:
        """The folder is like that of HHEM-2.1: it has no tokenizer, and a class in Python code."""
        config = {"auto_map": {"AutoConfig": "own.OwnConfig"}, "model_type": "OwnConfig"}
        folder = Path(tiny.copied(bert, tmp_path / "model", config=config))
        (folder / "own.py").write_text("raise SystemExit('this ran')")
        (folder / "tokenizer.json").unlink()
        with pytest.raises(ConfigError, match=r"\(trust_remote_code"):
            Nli(model=str(folder))
        native = tiny.copied(
            bert, tmp_path / "native", config={"auto_map": {"AutoModel": "own.Own"}}
        )
        assert probabilities(encoder(native), PAIRS[:1]) == probabilities(encoder(bert), PAIRS[:1])


class TestMetric:
    pytestmark = torch_needed

    def test_the_value_is_the_mean_over_sentences_and_the_row_lists_them(self, bert: str) -> None:
        output = f"{SENTENCES[0]} {SENTENCES[1]}\n{SENTENCES[2]}"
        result = Nli(model=bert, device="cpu").score([Sample("1", "a", output, source=LONG)])
        (row,), (column,) = result.rows, result.columns
        each = probabilities(encoder(bert), [(LONG, sentence) for sentence in SENTENCES])
        assert isinstance(row, Score)
        assert row.value == pytest.approx(sum(each) / 3)
        listed = claims.decode(row.provenance.raw)
        assert [claim.text for claim in listed] == SENTENCES
        assert [output[slice(*claim.span or (0, 0))] for claim in listed] == SENTENCES
        assert [claim.probability for claim in listed] == each
        assert (column.name, column.low, column.high, column.better) == ("nli", 0.0, 1.0, "higher")
        assert str(column.signature).startswith(f"nli|mean|{Path(bert).name}@")
        assert "|label=entailment|window=350|torch " in str(column.signature)

    def test_an_unmeasurable_output_is_a_failure(self, bert: str) -> None:
        samples = [
            Sample("1", "a", SENTENCES[0], where="d.jsonl:1"),
            Sample("2", "a", " \n", source=SOURCE),
            Sample("3", "a", f"{SENTENCES[0]} {OTHER}", source=SOURCE),
            Sample("4", "a", SENTENCES[0], source=SOURCE),
        ]
        *failures, value = Nli(model=bert, device="cpu").score(samples).rows
        assert [row.error for row in failures if isinstance(row, Failure)] == [
            "NoSource",
            "NoClaims",
            "UnknownText",
        ]
        assert isinstance(value, Score)

    def test_nli_as_a_verifier_of_claims(self, bert: str) -> None:
        output = " ".join(SENTENCES)
        samples = [Sample("1", "a", output, source=LONG, references=(SOURCE,))]
        metric = Claims(
            unit="sentence", verify=f"nli:{bert}", window=20, device="cpu", threshold=0.4
        )
        metric.check(samples)
        result = metric.score(samples)
        each = probabilities(encoder(bert, window=20), [(LONG, sentence) for sentence in SENTENCES])
        row = result.rows[0]
        assert isinstance(row, Score)
        assert row.value == pytest.approx(sum(value >= 0.4 for value in each) / 3)
        assert 0 < row.value < 1, "all sentences are on the same side of the threshold"
        assert [claim.probability for claim in claims.decode(row.provenance.raw)] == each
        assert f"|verify={Path(bert).name}@" in str(result.columns[0].signature)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"verify": "nli:"}, "claims.verify .*llm or nli:MODEL"),
            ({"verify": "nil:there"}, "claims.verify .*llm or nli:MODEL"),
            ({"label": "maybe"}, "set claims.label"),
            (
                {"verify": "nli:nowhere/./at all"},
                "model 'nowhere/./at all'",
            ),
            (
                {"verify": Sure(), "device": "cpu"},
                "claims.device .*claims.verify=nli:MODEL",
            ),
        ],
    )
    def test_a_wrong_verifier_is_named(
        self, bert: str, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ConfigError, match=message):
            Claims(**{"unit": "sentence", "verify": f"nli:{bert}"} | options)

    def test_a_run_has_the_values_of_the_model(self, bert: str) -> None:
        rows = [
            {"item": str(n), "system": "a", "source": source, "output": sentence}
            for n, (source, sentence) in enumerate(PAIRS)
        ]
        result = judge.evaluate(
            rows, [], metrics="nli", set={"nli": {"model": bert, "device": "cpu"}}, cache=False
        )
        frame = result.to_frame().sort_values("item")
        assert list(frame["value"]) == pytest.approx(probabilities(encoder(bert), PAIRS), abs=1e-5)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"model": None}, "--set nli.model=MODEL"),
            ({"model": 3}, "nli.model must be a text"),
            ({"window": 0}, "nli.window must be"),
            ({"label": True}, "nli.label must be"),
            ({"label": " "}, "nli.label must be"),
            ({"label": "maybe"}, "its labels are 0 'contradiction'"),
            ({"batch_tokens": "many"}, "nli.batch_tokens must be"),
            ({"device": "nowhere"}, "device 'nowhere'"),
        ],
    )
    def test_a_wrong_option_is_named(
        self, bert: str, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(ConfigError, match=message):
            Nli(**{"model": bert} | options).score([Sample("1", "a", SENTENCES[0], source=SOURCE)])
