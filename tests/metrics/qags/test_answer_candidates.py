"""Themes by language. A person has checked the expected nouns."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge import text
from judge.core.errors import ConfigError, MissingExtra
from judge.metrics.qags import answer_candidates
from judge.metrics.qags.answer_candidates import Nouns, languages
from judge.metrics.qags.pipeline import ModelError

pytestmark = pytest.mark.extra

NEEDS = {"ja": "ja", "ko": "ko", "zh": "zh-words", "sudachi": "sudachi", "kiwi": "kiwi"}
RUSSIAN = "Паром пришёл в порт поздно вечером."


@pytest.fixture(autouse=True, scope="module")
def _no_spacy() -> Iterator[None]:
    """Hide the spaCy models of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answer_candidates, "find_spec", lambda name: None)
        yield


def needs(tool: str) -> None:
    if tool in NEEDS and not text.installed(NEEDS[tool]):
        pytest.skip(f"needs the packages of {tool}")


def themes(text: str, tool: str = "nouns", **options: Any) -> list[str] | ModelError:
    (themes_found,) = Nouns(tool, **options).themes([text])
    return themes_found


@pytest.mark.parametrize("compounds", [True, False])
@pytest.mark.parametrize("tool", ["nouns", "ja", "sudachi"])
def test_nouns_of_a_japanese_sentence_are_themes(tool: str, compounds: bool) -> None:
    needs("sudachi" if tool == "sudachi" else "ja")
    assert themes("交番の隣に喫茶店がある", tool, compounds=compounds) == ["交番", "隣", "喫茶店"]


@pytest.mark.parametrize(
    ("tool", "passage", "together", "single"),
    [
        (
            "ja",
            "東京大学の入学試験で山田太郎氏は3,500円の参考書を三冊買った。これは2024年のことだ。",
            ["東京大学", "入学試験", "山田太郎氏", "3,500円", "参考書", "三冊", "2024年"],
            ["東京大学", "入学", "試験", "山田", "太郎", "参考"],
        ),
        (
            "ko",
            "한국은행은 5월 기준금리를 3.5%로 동결했다. 그것은 이창용 총재의 결정이다.",
            ["한국은행", "5월", "기준금리", "3.5%", "동결", "이창용 총재", "결정"],
            ["한국은행", "기준", "금리", "동결", "이창용", "총재", "결정"],
        ),
        (
            "zh",
            "2024年北京大学的王小明教授在上海发表了论文，他花了3,500元。",
            ["2024年", "北京大学", "王小明教授", "上海", "论文", "3,500元"],
            ["北京大学", "王小明", "教授", "上海", "论文"],
        ),
    ],
)
def test_compounds_and_amounts(
    tool: str, passage: str, together: list[str], single: list[str]
) -> None:
    needs(tool)
    assert themes(passage) == together
    assert themes(passage, tool, compounds=False) == single


@pytest.mark.parametrize(
    ("tool", "passage", "expected"),
    [
        ("ja", "昨年七月、東京で会議があった。", ["昨年七月", "東京", "会議"]),
        (
            "ja",
            "昨日東京で今年3人が火曜日の午後3時に",
            ["昨日", "東京", "今年", "3人", "火曜日", "午後3時"],
        ),
        (
            "ja",
            "正午前、三日後、二年前、12月末、10日朝に",
            ["正午前", "三日後", "二年前", "12月末", "10日朝"],
        ),
        ("ja", "今回のため、以上のとおり、しかし現在は多くが前に", []),
        (
            "sudachi",
            "昨年七月、木曜の会議は三日後、現在は前に",
            ["昨年七月", "木曜", "会議", "三日後"],
        ),
        ("zh", "昨天下午三点，他在星期五离开上海。", ["昨天下午三点", "星期五", "上海"]),
        (
            "zh",
            "村民去年冬天在上海，今年3月5日，去年3人，目前正在",
            ["村民", "去年冬天", "上海", "今年3月5日", "去年", "3人"],
        ),
        (
            "ko",
            "어제 서울에서 금요일 오후에 회의가 있었다.",
            ["어제", "서울", "금요일 오후", "회의"],
        ),
    ],
)
def test_times_are_themes_and_empty_nouns_are_not(
    tool: str, passage: str, expected: list[str]
) -> None:
    needs(tool)
    assert themes(passage, tool) == expected


def test_a_time_alone_is_a_theme_without_compounds() -> None:
    needs("ja")
    assert themes("昨年七月、木曜に会議", "ja", compounds=False) == ["昨年", "七月", "木曜", "会議"]


@pytest.mark.slow
def test_kiwi_finds_nouns_and_names() -> None:
    needs("kiwi")
    assert themes("사과 세 개를 이창용 총재가 샀다.", "kiwi") == ["사과", "이창용 총재"]


def test_each_theme_once_in_order_of_appearance() -> None:
    needs("ja")
    assert themes("交番の隣に喫茶店がある。交番は古い。") == ["交番", "隣", "喫茶店"]


def test_english_without_a_model_names_spacy_and_the_judge() -> None:
    with pytest.raises(MissingExtra, match=r"spacy download en_core_web_sm.*ask the judge"):
        themes("The ferry left.")
    with pytest.raises(MissingExtra, match="need spaCy and a model"):
        Nouns().check(["交番", "The ferry left."])
    Nouns().check(["", RUSSIAN, "交番の隣に喫茶店がある"])
    Nouns("ja" if text.installed("ja") else "nouns").check(["交番"])


def test_a_script_without_a_noun_finder_is_a_model_error() -> None:
    error = themes(RUSSIAN)
    assert isinstance(error, ModelError)
    assert error.error == "NoNounFinder"
    assert "themes=spacy:MODEL" in error.message


def test_another_latin_language_needs_a_named_noun_finder() -> None:
    german = "Die Fähre verließ Oslo am Montag mit zweihundert Passagieren."
    error = themes(german)
    assert isinstance(error, ModelError)
    assert error.error == "NotEnglish"
    assert "themes=spacy:fr_core_news_sm" in error.message


def test_signature_names_the_tools_used() -> None:
    needs("ja")
    finder = Nouns(compounds=False)
    assert finder.signature == "nouns-single"
    finder.themes(["交番の隣に喫茶店がある"])
    assert finder.signature == text.signature("ja").replace("-mecab", "") + "-single"


def test_a_short_han_text_among_japanese_texts_is_japanese() -> None:
    assert languages(["交番の隣に喫茶店がある" * 2, "東京大学", "北京" * 11, "a"]) == [
        "ja",
        "ja",
        "zh",
        "en",
    ]
    assert languages(["清华大学", "北京大学"]) == ["zh", "zh"]


def test_surrogates_and_nul_are_accepted() -> None:
    needs("ja")
    assert themes("交番\0の隣に\ud800ある") == ["交番", "隣"]


def test_wrong_names_and_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="did you mean 'nouns'"):
        Nouns("noun")
    for module in ("judge.metrics.qags.answer_candidates", "judge.text.tokenizers"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'textjudge\[cjk\]'"):
        Nouns("zh")
    with pytest.raises(MissingExtra, match="MeCab and ipadic"):
        Nouns().themes(["交番の隣に喫茶店がある"])


JAPANESE = st.text(st.sampled_from("交番の隣に喫茶店がある。3,5%円お様A x\n"), max_size=30)


@given(JAPANESE, st.booleans())
def test_themes_are_parts_of_the_text(given_text: str, compounds: bool) -> None:
    needs("ja")
    listed = themes(given_text, "ja", compounds=compounds)
    assert isinstance(listed, list)
    assert all(theme and theme in given_text for theme in listed)
    assert len({theme.casefold() for theme in listed}) == len(listed)


# spaCy, replaced by a fake pipeline


LONGEST = 60


class Token(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.text)


def pipeline(parts: str, chunks: Any, entities: list[tuple[int, int]], lang: str = "en") -> Any:
    """Return a pipeline that has tagged one text: `word/POS word/POS`. Chunks and entities are spans of words."""

    class Doc(list[Token]):
        ents = tuple(SimpleNamespace(start=start, end=end) for start, end in entities)

        @property
        def noun_chunks(self) -> Any:
            if isinstance(chunks, Exception):
                raise chunks
            return [SimpleNamespace(start=start, end=end) for start, end in chunks]

    def read(words: str) -> Doc:
        assert len(words) <= LONGEST, "spaCy raises ValueError"
        doc, at = Doc(), 0
        for n, pair in enumerate(parts.split()):
            word, pos = pair.split("/")
            at = words.index(word, at)
            doc.append(Token(text=word, pos_=pos, idx=at, i=n))
            at += len(word)
        return doc

    read.lang, read.max_length = lang, LONGEST  # type: ignore[attr-defined]
    read.meta = {"lang": lang, "name": "tiny", "version": "1.0"}  # type: ignore[attr-defined]
    return read


ENGLISH = "The/DET old/ADJ ferry/NOUN left/VERB New/PROPN York/PROPN and/CCONJ they/PRON slept/VERB"
PLAIN = "The old ferry left New York and they slept"


@pytest.mark.parametrize(
    ("chunks", "compounds", "expected"),
    [
        (
            [(0, 3), (4, 6), (7, 8)],
            True,
            ["old ferry", "New York"],
        ),  # determiners and pronouns are not part of a theme
        ([(0, 3), (5, 6)], True, ["old ferry", "New York"]),  # the entity is longer than the chunk
        (ValueError("no parser"), True, ["ferry", "New York"]),
        ([], False, ["ferry", "New", "York"]),
    ],
)
def test_spacy_chunks_and_entities_are_themes(
    monkeypatch: pytest.MonkeyPatch, chunks: Any, compounds: bool, expected: list[str]
) -> None:
    nlp = pipeline(ENGLISH, chunks, [(4, 6)])
    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name: nlp))
    answer_candidates._spacy.cache_clear()
    finder = Nouns("spacy:tiny", compounds=compounds)
    assert finder.themes([PLAIN]) == [expected]
    assert finder.signature == "spacy-en_tiny1.0" + ("" if compounds else "-single")
    answer_candidates._spacy.cache_clear()


def test_spacy_reads_only_the_characters_its_model_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = pipeline(ENGLISH, [(0, 3)], [(4, 6)])
    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name: nlp))
    answer_candidates._spacy.cache_clear()
    assert themes(PLAIN + " all day long" * 10, "spacy:tiny") == ["old ferry", "New York"]
    answer_candidates._spacy.cache_clear()


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"spacy", "en_core_web_sm", "en_core_web_md"}, "en_core_web_md"),
        ({"spacy", "en_core_web_trf", "en_core_web_lg"}, "en_core_web_trf"),
    ],
)
def test_english_uses_the_largest_installed_model(
    monkeypatch: pytest.MonkeyPatch, installed: set[str], expected: str
) -> None:
    loaded = []

    def load(name: str) -> Any:
        loaded.append(name)
        return pipeline(ENGLISH, [(4, 6)], [])

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    monkeypatch.setattr(answer_candidates, "find_spec", lambda name: name in installed or None)
    answer_candidates._spacy.cache_clear()
    finder = Nouns()
    assert loaded == []  # a model is loaded when a text needs it
    assert finder.themes([PLAIN]) == [["New York"]]
    assert loaded == [expected]
    assert finder.signature.startswith("spacy-en_tiny1.0")
    answer_candidates._spacy.cache_clear()


def test_a_broken_english_model_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        raise OSError("[E050]")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    monkeypatch.setattr(
        answer_candidates, "find_spec", lambda name: name in ("spacy", "en_core_web_sm") or None
    )
    answer_candidates._spacy.cache_clear()
    with pytest.raises(ConfigError, match="cannot load the model 'en_core_web_sm'"):
        Nouns().themes([PLAIN])


def test_spacy_of_a_language_without_spaces_uses_nouns(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = pipeline("交番/NOUN の/ADP 喫茶/NOUN 店/NOUN", [(0, 4)], [], lang="ja")
    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name: nlp))
    answer_candidates._spacy.cache_clear()
    assert themes("交番の喫茶店", "spacy:tiny") == ["交番", "喫茶店"]
    answer_candidates._spacy.cache_clear()


def test_missing_spacy_or_model_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        raise OSError(f"no {name} anywhere")

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=load))
    with pytest.raises(ConfigError, match=r"'none_sm'.*no none_sm"):
        Nouns("spacy:none_sm")
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(MissingExtra, match="pip install spacy"):
        Nouns("spacy:none_sm")


@pytest.mark.parametrize(
    "passage",
    [
        "Die Fähre verließ Oslo am Montag mit zweihundert Passagieren an Bord.",
        "Le ferry a quitté Oslo lundi avec deux cents passagers à bord.",
        "El transbordador salió de Oslo el lunes con doscientos pasajeros a bordo.",
        "De veerboot verliet Oslo op maandag met tweehonderd passagiers aan boord.",
        "Färjan lämnade Oslo på måndagen med tvåhundra passagerare ombord.",
        "Prom opuścił Oslo w poniedziałek z dwustu pasażerami na pokładzie.",
    ],
)
def test_another_language_in_latin_letters_is_recognised(passage: str) -> None:
    assert answer_candidates.is_other_language(passage)


@pytest.mark.parametrize(
    "passage",
    [
        "Storm hits coast: 12 dead, roads closed, schools shut",  # no function word
        "Zoë Ångström of Malmö saw the ferry leave Århus in fog.",
        "Vincent van der Berg plays for Paris, Las Palmas, La Paz, El Paso",
        "Die Fähre verließ Oslo",  # too short to tell
        "",
    ],
)
def test_english_is_not_another_language(passage: str) -> None:
    assert not answer_candidates.is_other_language(passage)
