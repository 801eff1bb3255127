"""Data in several languages: detection, errors and notes."""

from __future__ import annotations

import re
from typing import Any

import pytest

import judge
from judge.core.errors import DataError
from judge.data import samples
from judge.providers.scripted import ScriptedProvider
from judge.results.run_info import PromptLanguage
from judge.run.prompt_language import TOO_SHORT, mixed_languages
from tests.factories import has_line

ENGLISH = "The harbour will be closed to large ships while the old crane is taken down and moved."
JAPANESE = "古いクレーンを取り外して移すあいだ、港は大きな船に対して閉鎖されることになった。"
KOREAN = "낡은 기중기를 떼어 옮기는 동안 항구는 큰 배가 들어올 수 없게 닫힌다고 시가 밝혔다."
CHINESE = "港口将在拆除并搬运旧起重机期间对大型船只关闭,市政府于星期二宣布了这一决定。"
THAI = "ท่าเรือจะปิดสำหรับเรือขนาดใหญ่ระหว่างการรื้อถอนปั้นจั่นเก่า"
SPANISH = "El puerto estará cerrado para los barcos grandes mientras se desmonta la vieja grúa, y se abrirá el lunes."
ARABIC = "سيغلق الميناء أمام السفن الكبيرة أثناء تفكيك الرافعة القديمة ونقلها"
TRADITIONAL = "港口將在拆除並搬運舊起重機期間對大型船隻關閉，市政府於星期二宣布了這一決定。"
TEXTS = {"th": THAI, "en": ENGLISH, "ja": JAPANESE, "ko": KOREAN, "zh": CHINESE}
JUDGE: dict[str, Any] = {"model": ScriptedProvider(lambda _: "4"), "metrics": [], "cache": False}


def data(**items: int) -> list[dict[str, Any]]:
    return [
        {
            "item": f"{lang}{n}",
            "system": system,
            "source": TEXTS[lang],
            "output": TEXTS[lang][: 30 + n],
            "lang": lang,
        }
        for lang, number in items.items()
        for n in range(number)
        for system in ("a", "b")
    ]


@pytest.mark.parametrize(
    "items",
    [
        {"en": 1, "ja": 1},
        {"en": 3, "ja": 3},
        {"en": 5, "ja": 1},
        {"zh": 3, "ko": 2, "ja": 1},
        {"th": 1, "en": 1},
    ],
)
def test_any_proportion_of_two_languages_is_mixed(items: dict[str, int]) -> None:
    named = {"Thai" if language == "th" else language: n for language, n in items.items()}
    assert mixed_languages(samples.load(data(**items))) == named
    with pytest.raises(DataError, match=r"several languages .* or where=\{'lang': '"):
        judge.evaluate(data(**items), ["coherence"], **JUDGE)
    assert mixed_languages(samples.load(data(ja=5))) == {}


@pytest.mark.parametrize("output", ["Toyota Prius", "東京都", "42", "", "3.5 km"])
def test_answers_too_short_to_tell_are_of_no_language(output: str) -> None:
    rows = [{"item": f"x{n}", "output": output} for n in range(5)] + data(ja=5)
    assert (
        mixed_languages(
            samples.load([{k: v for k, v in row.items() if k != "system"} for row in rows[:5]] + [])
        )
        == {}
    )
    assert (
        mixed_languages(
            samples.load([{"system": "a", **row} for row in rows if row.get("system", "a") == "a"])
        )
        == {}
    )


def test_the_language_of_an_item_is_that_of_its_source() -> None:
    rows = [row | ({"output": ENGLISH * 3} if row["system"] == "b" else {}) for row in data(ja=4)]
    assert mixed_languages(samples.load(rows)) == {}
    translated = [
        row | {"output": TEXTS["ja" if n % 4 else "en"]} for n, row in enumerate(data(en=8))
    ]
    assert mixed_languages(samples.load(translated)) == {}


def test_a_judge_is_not_asked_about_two_languages_in_one() -> None:
    with pytest.raises(DataError, match=r"languages \(8 items en, 8 ja\)") as caught:
        judge.evaluate(data(en=8, ja=8), ["coherence"], **JUDGE)
    assert "where={'lang': 'en'} or where={'lang': 'ja'}" in str(caught.value)
    assert "language='en'" in str(caught.value)
    with pytest.raises(DataError, match="several languages"):
        judge.rank(data(en=3, ja=3), **{k: v for k, v in JUDGE.items() if k != "metrics"})
    with pytest.raises(DataError, match="several languages"):
        judge.card(data(en=3, ja=3), ["coherence"], model=JUDGE["model"], cache=False)


@pytest.mark.parametrize(
    ("output", "language"),
    [
        (ENGLISH, PromptLanguage("en", "detected")),
        (SPANISH, PromptLanguage("en", "not identified: English prompts")),
        (THAI, PromptLanguage("en", "not identified: English prompts")),
        (ARABIC, PromptLanguage("en", "not identified: English prompts")),
        (TRADITIONAL, PromptLanguage("zh", "Traditional Chinese detected")),
        (CHINESE, PromptLanguage("zh", "detected")),
        ("東京都知事選挙結果", PromptLanguage("ja", "detected")),
        ("首相会談", PromptLanguage("ja", "detected")),
    ],
)
def test_the_language_is_only_claimed_if_it_was_identified(
    output: str, language: dict[str, str]
) -> None:
    rows = [{"item": str(n), "output": output} for n in range(3)]
    result = judge.evaluate(rows, ["fluency"], **JUDGE)
    assert result.info.language == language
    is_noted = has_line(result.info.notes, "texts", "Traditional", "prompts", "Simplified")
    assert is_noted == (output == TRADITIONAL)


def test_headlines_that_may_be_chinese_or_japanese_need_the_language() -> None:
    rows = [
        {"item": str(n), "output": output}
        for n, output in enumerate(("北海道地震", "上海市", "文化大革命"))
    ]
    with pytest.raises(DataError, match=r"Chinese or Japanese.*language='zh' or language='ja'"):
        judge.evaluate(rows, ["fluency"], **JUDGE)
    assert judge.evaluate(rows, ["fluency"], language="ja", **JUDGE).info.language.name == "ja"


def test_the_datas_own_language_column_is_named() -> None:
    locales = {"en0": "en-GB", "en1": "en-US", "ja0": "ja-JP"}
    rows = [
        {
            **{key: value for key, value in row.items() if key != "lang"},
            "Locale": locales[row["item"]],
            "id": row["item"],
        }
        for row in data(en=2, ja=1)
    ]
    with pytest.raises(DataError) as caught:
        judge.evaluate(rows, ["coherence"], **JUDGE)
    assert has_line(
        str(caught.value), *(f"where={{'Locale': '{tag}'}}" for tag in ("en-GB", "en-US", "ja-JP"))
    )


def test_mixed_languages_need_a_language_column() -> None:
    rows = [{key: value for key, value in row.items() if key != "lang"} for row in data(en=2, ja=2)]
    with pytest.raises(DataError, match=r"column.*language"):
        judge.evaluate(rows, ["coherence"], **JUDGE)


def test_items_too_short_to_tell_are_counted_too() -> None:
    rows = [*data(en=3, ja=2), {"item": "short", "system": "a", "output": "OK."}]
    counts = mixed_languages(samples.load(rows))
    assert counts == {"en": 3, "ja": 2, TOO_SHORT: 1}


def test_a_chosen_language_is_noted_only_for_mixed_data() -> None:
    both = judge.evaluate(data(en=3, ja=2), ["coherence"], language="en", **JUDGE)
    assert has_line(both.info.notes, "several languages (3 items en, 2 ja)", "in English")
    one = judge.evaluate(data(en=3, ja=2), ["coherence"], where={"lang": "ja"}, **JUDGE)
    assert one.info.language == PromptLanguage("ja", "detected")
    assert "Only rows with lang=ja." in one.info.remarks
    assert not any("several languages" in note for note in one.info.notes)


def test_metrics_of_several_languages_add_a_note_about_their_mean() -> None:
    result = judge.evaluate(data(en=3, ja=3), [], metrics=["distinct"])
    assert has_line(result.info.notes, "a mean over them")
    with_metrics = judge.evaluate(data(en=3, ja=3), [], **{**JUDGE, "metrics": ["claims"]})
    assert with_metrics.info.language.how == "one of several"


@pytest.mark.parametrize(
    ("output", "language", "shares"),
    [
        ("LG OLED TV evo 출시 안내", "en", "67% .*English.*, 33% in Korean"),
        ("삼성전자가 새 Galaxy 를 서울에서 공개했다", "ko", r"83% .* Korean, 17%|"),
        ("새 Galaxy Buds 를 서울에서", "ko", "60% .*Korean, 40% in English"),
        ("新しい Galaxy Buds Pro を発売中", "ja", r"54% .* Japanese, 46%"),
    ],
)
def test_criterion_language_is_the_language_of_most_words(
    output: str, language: str, shares: str
) -> None:
    rows = [{"item": str(n), "output": output} for n in range(3)]
    result = judge.evaluate(rows, ["fluency"], **JUDGE)
    assert result.info.language.name == language
    notes = [note for note in result.info.notes if note.startswith("The texts mix scripts")]
    if shares.endswith("|"):
        assert notes == [], "a name in five words is no mixture"
        return
    assert re.search(shares, notes[0])
    assert (
        "is asked in {}".format({"en": "English", "ko": "Korean", "ja": "Japanese"}[language])
        in notes[0]
    )
    assert "The texts mix scripts" in result.report()
    chosen = judge.evaluate(rows, ["fluency"], language=language, **JUDGE)
    assert not any("mix scripts" in note for note in chosen.info.notes)


def test_the_language_auto_is_the_default() -> None:
    rows = [{"item": "1", "output": KOREAN}]
    result = judge.evaluate(rows, ["fluency"], language="auto", **JUDGE)
    assert result.info.language == PromptLanguage("ko", "detected")


SIMPLIFIED_AND_TRADITIONAL = [
    ("港口將在拆除舊起重機期間關閉", "港口将在拆除旧起重机期间关闭", True),
    ("港口将在拆除旧起重机期间关闭", "港口將在拆除舊起重機期間關閉", True),
    ("港口將在拆除舊起重機期間關閉", "港口將會關閉，因為起重機太舊", False),
    ("港口将在拆除旧起重机期间关闭", "港口很大", False),
    ("港は古い起重機を外す間は閉鎖される", "港口將在拆除舊起重機期間關閉", False),
]


@pytest.mark.parametrize(("output", "reference", "noted"), SIMPLIFIED_AND_TRADITIONAL)
def test_output_and_reference_in_different_chinese_scripts_are_noted(
    output: str, reference: str, noted: bool
) -> None:
    result = judge.evaluate(
        [{"item": "1", "output": output, "references": reference}], [], metrics=["rouge"]
    )
    facts = ("1 of 1 outputs", "Traditional", "references", "Simplified")
    assert has_line(result.info.notes, *facts) is noted


QUESTIONS = {
    "ja": "訳文は自然な日本語で書かれていますか？",
    "ko": "번역문이 자연스러운 한국어로 쓰였습니까?",
    "zh": "译文是否通顺、自然，读起来像中文？",
}


@pytest.mark.parametrize("form", ["sentence", "criterion", "checklist"])
@pytest.mark.parametrize("language", QUESTIONS)
def test_a_question_is_asked_in_its_own_language(language: str, form: str) -> None:
    """The sources are English, so most words of the data are."""
    question = QUESTIONS[language]
    criteria: dict[str, Any] = {
        "sentence": f"fluent: {question}",
        "criterion": judge.Criterion("fluent", question=question),
        "checklist": {"name": "fluent", "questions": [question]},
    }
    asked: list[str] = []

    def reply(request: Any) -> str:
        asked.append(request.messages[0]["content"])
        return "4"

    rows = [{"item": "1", "source": ENGLISH * 3, "output": TEXTS[language]}]
    options: dict[str, Any] = {"metrics": [], "cache": False}
    provider = ScriptedProvider(reply)
    result = judge.evaluate(rows, [criteria[form], "relevance"], model=provider, **options)
    own = next(prompt for prompt in asked if question in prompt)
    other = next(prompt for prompt in asked if question not in prompt)
    assert "You will judge" not in own
    assert "You will judge" in other
    name = {"ja": "Japanese", "ko": "Korean", "zh": "Chinese"}[language]
    assert has_line(result.info.remarks, f"Asked in {name}", "fluent")


@pytest.mark.parametrize("question", ["Is it fluent, like 自然 text?", "正確性", "¿Es fluido?"])
def test_other_questions_are_asked_in_the_language_of_the_data(question: str) -> None:
    assert judge.load_criterion(f"fluent: {question}").language == "en"


def test_a_mixture_of_scripts_is_no_matter_if_no_criterion_is_asked_in_it() -> None:
    rows = [{"item": "1", "source": ENGLISH * 3, "output": JAPANESE}]
    for criterion, is_noted in ((f"fluent: {QUESTIONS['ja']}", False), ("relevance", True)):
        notes = judge.evaluate(rows, criterion, **JUDGE).info.notes
        assert any("mix scripts" in note for note in notes) == is_noted
