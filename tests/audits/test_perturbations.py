"""Each change damages a text in its own way and leaves everything else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge import text
from judge.audits import perturbations
from judge.audits.perturbations import CHANGES, NEUTRAL, RULES, Perturbation, changed, edits, of_language
from judge.core.records import Sample
from judge.data import samples as data

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LANGUAGES = ("en", "ja", "ko", "zh")
BY_NAME = {change.name: change for change in (*CHANGES, *NEUTRAL)}
FOLDERS = {"en": "compare_systems", "ja": "summaries_ja", "ko": "summaries_ko", "zh": "summaries_zh"}
TEXTS = {language: data.load(EXAMPLES / FOLDERS[language] / "data.jsonl") for language in LANGUAGES}
# Texts of two sentences are too short for some changes.
TEXTS["en"] = [
    replace(sample, output=f"{sample.output} {sample.references[0]}")
    for sample in TEXTS["en"]
    if sample.system == "large-model"
]


def cases(name: str, seeds: int = 3) -> list[tuple[Sample, str]]:
    """The examples' texts that a change applies to, with the changed outputs."""
    made = [
        (sample, found.output)
        for language in BY_NAME[name].languages or text.LANGUAGES
        for sample in TEXTS[language]
        for seed in range(seeds)
        if (found := changed(sample, TEXTS[language], BY_NAME[name], seed)) is not None
    ]
    assert len(made) > len(BY_NAME[name].languages or text.LANGUAGES) * 12
    return made


def one(output: str, source: str | None = None, item: str = "a", references: tuple[str, ...] = ()) -> Sample:
    return Sample(item, "system", output, source, references)


def make(name: str, sample: Sample, others: Sequence[Sample] = (), seed: int = 0) -> str | None:
    found = changed(sample, others, BY_NAME[name], seed)
    return None if found is None else found.output


# What holds of all changes


def test_own_changes_name_their_criterion() -> None:
    assert {change.criterion for change in CHANGES} == {"coherence", "consistency", "fluency", "relevance"}
    assert {change.criterion for change in NEUTRAL} == {""}


def test_all_but_casing_is_there_in_every_language() -> None:
    assert of_language("en") == CHANGES
    for language in ("ja", "ko", "zh"):
        assert [c.name for c in CHANGES if c not in of_language(language)] == ["lost casing"]
    assert of_language("zh", NEUTRAL) == NEUTRAL


@pytest.mark.parametrize("change", [*CHANGES, *NEUTRAL], ids=lambda change: change.name)
def test_the_changed_sample_is_the_same_but_for_output_system_and_ratings(change: Perturbation) -> None:
    sample = replace(TEXTS["en"][2], human={"fluency": 4.0}, ratings={"fluency": (4.0, None)}, extra={"generator": "x"})
    found = changed(sample, TEXTS["en"], change, 7)
    assert found.output != sample.output
    assert found.system == change.name
    assert replace(found, output=sample.output, system=sample.system) == replace(sample, human={}, ratings={})
    assert changed(sample, TEXTS["en"], change, 7) == found


def test_chance_is_drawn_by_seed_and_item() -> None:
    sample = TEXTS["en"][2]
    assert len({make("typos", sample, seed=seed) for seed in range(5)}) == 5
    assert make("typos", sample) != make("typos", replace(sample, item="another"))
    assert make("typos", sample) == make("typos", replace(sample, system="another"))


@settings(max_examples=60)
@given(st.data())
def test_no_text_is_too_odd(drawn: st.DataObject) -> None:
    parts = st.sampled_from(
        ["한다. ", "した。", "了。", "Mr Ed said 4th ", "\n", "»", "\ud800", "٣", "１２個", "第三", "I'd ", "is "]
    )
    anything = st.lists(st.one_of(parts, st.text(max_size=8)), max_size=12).map("".join)
    sample = one(drawn.draw(anything), drawn.draw(st.none() | anything))
    others = [one(drawn.draw(anything), drawn.draw(anything), item="b")]
    for change in BY_NAME.values():
        found = changed(sample, others, change, 0)
        assert found is None or (found.output != sample.output and found.output.strip())


@pytest.mark.parametrize("output", ["", "  \n ", "Yes", "はい", "네", "是"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_what_is_not_there_cannot_be_damaged(change: Perturbation, output: str) -> None:
    assert changed(one(output), [], change, 0) is None


# Coherence


def test_shuffled_keeps_every_sentence_and_none_in_its_place() -> None:
    for sample, output in cases("shuffled sentences"):
        old, new = edits.sentences(sample.output), edits.sentences(output)
        assert Counter(old) == Counter(new)
        assert all(a != b for a, b in zip(old, new, strict=True))
        assert len(output) == len(sample.output)


def test_a_sentence_that_was_cut_off_stays_last() -> None:
    found = make("shuffled sentences", one("One came. Two went. Three slept. And then there"))
    assert found.endswith(" And then there")


def test_lists_are_shuffled_by_line_and_two_sentences_are_too_few() -> None:
    assert make("shuffled sentences", one("One came. Two went.")) is None
    found = make("shuffled sentences", one("- first\n- second\n- third\n"))
    assert sorted(found.splitlines()) == ["- first", "- second", "- third"]


# Consistency

_ANY_NUMBER = re.compile(
    r"\d+(?:[.,]\d+)*(?:st|nd|rd|th)?|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)\b"
    r"|[二三四五六七八九]|(?:두|세|네|다섯|여섯|일곱|여덟|아홉)(?= )",
    re.IGNORECASE,
)


def test_a_swapped_number_changes_nothing_else_and_is_not_the_sources() -> None:
    for sample, output in cases("swapped number"):
        assert _ANY_NUMBER.sub("#", output) == _ANY_NUMBER.sub("#", sample.output)
        old, new = _ANY_NUMBER.findall(sample.output), _ANY_NUMBER.findall(output)
        differ = {(a, b) for a, b in zip(old, new, strict=True) if a != b}
        assert len(differ) == 1


@pytest.mark.parametrize(
    ("output", "allowed"),
    [
        ("It fell 100 %.", r"It fell [4-9]\d %\."), ("It is 1 metre long, the F-16, on 1 May.", None),
        ("They met on 31 May.", r"They met on (1\d|2[0-8]) May\."),
        ("It opened in 1987.", r"It opened in 19(78|79|8[0-6])\."),
        ("It opened in the 1980s.", r"It opened in the 1[89]\d0s\."), ("He came 3rd.", r"He came (2nd|[4-9]th)\."),
        ("a 15-year-old", r"a 1[02-79]-year-old|a 2[0-8]-year-old"), ("an 11-year-old", r"an 18-year-old"),
        ("They won 3-1.", r"They won [2-9]-1\."), ("It cost 5,000 crowns.", r"It cost [2-9],000 crowns\."),
        ("Two men came.", r"(Three|Four|Five|Six|Seven|Eight|Nine|Ten|Eleven|Twelve) men came\."),
        ("12月に始まる。", r"1[01]月に始まる。"), ("源泉は七つある。", r"源泉は[二三四五六八九]つある。"),
        ("十分な数だ。", None), ("１２３個ある。", r"[２-９]２３個ある。"),
        ("세 사람이 왔다.", r"(두|네|다섯|여섯|일곱|여덟|아홉) 사람이 왔다\."),
        ("一共来了六个人。", r"一共来了[三四五七八九]个人。"), ("他住在三楼，第一次来。", None),
    ],
)  # fmt: skip
def test_numbers_become_what_is_as_likely_there(output: str, allowed: str | None) -> None:
    for seed in range(8):
        found = make("swapped number", one(output), seed=seed)
        assert found is None if allowed is None else found and re.fullmatch(allowed, found), found


def test_the_number_that_is_swapped_is_drawn() -> None:
    whole = "In 1971 it had 38 rooms, 64 beds and 215 guests."
    swapped = {make("swapped number", one(whole), seed=seed) for seed in range(20)}
    kept = [all(number in (output or "") for output in swapped) for number in ("1971", "38", "64", "215")]
    assert kept == [False] * 4


def test_a_number_in_kanji_becomes_one_that_the_text_does_not_have() -> None:
    text = "市は三つの橋を閉じ、五人の係員を置いた。工事は七日で終わる。"
    for seed in range(12):
        found = make("swapped number", one(text), seed=seed)
        assert found is not None
        (new,) = (after for before, after in zip(text, found, strict=True) if before != after)
        assert new in "二四六八九"


def test_a_number_of_the_source_is_taken_and_goes_wherever_it_stands() -> None:
    found = make("swapped number", one("It cost 212 crowns. Of 212, 17 were lost.", "In all 212 crowns were paid."))
    assert "212" not in found
    assert "17 were" in found


def test_a_swapped_entity_is_gone_and_numbers_and_sentences_stay() -> None:
    for sample, output in cases("swapped entity"):
        assert len(edits.sentences(output)) == len(edits.sentences(sample.output))
        assert re.findall(r"\d+", output) == re.findall(r"\d+", sample.output)


SOURCE = (
    "The director, Ruben Aldous, spoke on Monday. Later the engineer Tomas Vesely , 41 , left for Lisbon. "
    "Mr Aldous had praised him. That Vesely left was in an Italian paper."
)


UNKNOWN = ("Cape Canaveral", "the Pacific Northwest", "West Indies", "San Juan", "NASA", "Zealand", "Evil Empire")
AS_THEY_SOUND = "타운센드 바르셀로나 맨체스터 아르헨티나 케빈 레비"


def test_a_name_is_a_whole_word_in_latin_script_and_a_beginning_in_hangul() -> None:
    assert perturbations.mentions("Joann met Ann. Annie left.", ["Ann"]) == {"Ann": [(10, 13)]}
    assert perturbations.mentions("서울에서 만났다. 구서울 역.", ["서울"]) == {"서울": [(0, 2)]}
    assert perturbations.mentions("東京都と東京", ["東京"]) == {"東京": [(0, 2), (4, 6)]}


def test_a_title_is_no_part_of_the_name() -> None:
    found = perturbations.names(RULES["en"], "Then the prize went to Professor Smith, and Mr Jones left.")
    assert {"Smith", "Jones"} <= {name.text for name in found}
    assert not any("Mr" in name.text or "Professor" in name.text for name in found)


@pytest.mark.parametrize(
    ("output", "source", "expected"),
    [
        # A person becomes another of the source, in its case, or another person where the source has none.
        (
            "Ruben Aldous spoke first, and Aldous spoke last.",
            SOURCE,
            r"Tomas Vesely spoke first, and Vesely spoke last\.",
        ),
        ("Ruben aldous spoke first .", SOURCE, r"Tomas vesely spoke first \."),
        ("There aldous spoke.", SOURCE, r"There vesely spoke\."),
        (
            "Then elon musk flew away .",
            "Then NASA saw that Elon Musk flew away. It rained in Cape Canaveral and all over Ohio.",
            r"Then [a-z]+ (carver|langley|hargreaves|ellison|whitfield|marsh|delaney|prentice) flew away \.",
        ),
        # A name that is known becomes another of its kind.
        ("It was an Italian paper.", SOURCE, r"It was an (?!Italian)[AEIOU]\w+ paper\."),
        ("She left for Lisbon.", SOURCE, r"She left for (?!Lisbon)[A-Z][\w ]+\."),
        ("They met on Monday.", SOURCE, r"They met on (?!Monday)\w+day\."),
        ("松原市は12日に発表した。", "松原市と隣の岩瀬市がある。岩瀬市は遠い。", r"(?!松原市)\w+市は12日に発表した。"),
        ("真壁修二さんが話した。", None, r"(?!真壁)\w{4}さんが話した。"),
        ("会議は月曜に開く。", None, r"会議は[火水木金土日]曜に開く。"),
        ("한여울시가 밝혔다.", None, r"(?!한여울)[가-힣]+시가 밝혔다\."),
        ("미국은 반대했다.", None, r"(?!미국)[가-힣]*[영중독일본한국태트남인란덴칸탄을]은 반대했다\."),
        ("法官陶敏华主持了会议。", None, r"法官(?!陶敏华)\w{3}主持了会议。"),
        ("会议在北京举行。", None, r"会议在(?!北京)\w{2}举行。"),
        # One of a kind that is not known, or that the source does not have, is left.
        ("Ellen Marsh spoke.", "Nobody spoke at all.", ""),
        *(
            (
                f"they wrote of {name.lower()} .",
                f"They wrote of {name} before. Elon Musk and FC Tokyo were in it, and {name.split()[-1]} was too.",
                "",
            )
            for name in UNKNOWN
        ),
    ],
)
def test_a_name_becomes_another_that_fits_its_place(output: str, source: str | None, expected: str) -> None:
    for seed in range(5):
        found = make("swapped entity", one(output, source or output), seed=seed)
        assert re.fullmatch(expected, found or ""), found


def test_the_sentence_nearest_to_the_source_is_denied_and_none_without_a_fact_of_it() -> None:
    source = "The tram line opens in May, the town council says."
    for seed in range(5):
        found = make(
            "negated sentence", one("Life is good for us all. The tram line is open in May.", source), seed=seed
        )
        assert found == "Life is good for us all. The tram line is not open in May."
    assert make("negated sentence", one("Life is good for us all.", source)) is None


def test_negation_touches_one_sentence() -> None:
    for sample, output in cases("negated sentence"):
        old, new = edits.sentences(sample.output), edits.sentences(output)
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


OPPOSITES = {
    "en": [
        ("The line is long.", "The line is not long."), ("The line is not long.", "The line is long."),
        ("She can swim.", "She cannot swim."), ("They have won the cup.", "They have not won the cup."),
        ("He did n't pay .", "He did pay ."), ("He won't pay.", "He will pay."),
        ("She took the train.", "She did not take the train."),
        ("He admitted the theft.", "He did not admit the theft."),
        ("The club has a pool.", "The club does not have a pool."), ("It will never end.", "It will end."),
        ("Is the line long?", None), ("He has not paid any tax.", None), ("Trams every day.", None),
        ("Nobody has fallen ill.", None), ("If nothing is done, the roof will fall.", None),
        ("It was larger than anyone had supposed.", None),
        ("They will stay if they are to win.", "They will not stay if they are to win."),
        ("As she played the piano, they left.", None), ("She played the piano and sold it.", None),
    ],
    "ja": [
        ("実験を行う。", "実験を行わない。"), ("結果を発表した。", "結果を発表しなかった。"),
        ("そう話した。", "そう話さなかった。"), ("湯が減っている。", "湯が減っていない。"),
        ("対象外だ。", "対象外ではない。"), ("数は126個であった。", "数は126個ではなかった。"),
        ("来年決まります。", "来年決まりません。"), ("まだ分かりません。", None),
        ("開催されなかった。", "開催された。"), ("値段が高い。", "値段が高くない。"),
        ("線が増えた。", "線が増えなかった。"), ("寒くなった。", "寒くならなかった。"), ("彼は行った。", None),
        ("それは本当だろう。", None),
    ],
    "ko": [
        ("3일 밝혔다.", "3일 밝히지 않았다."), ("신청을 받는다.", "신청을 받지 않는다."),
        ("지도를 공개한다.", "지도를 공개하지 않는다."), ("피해를 입었다.", "피해를 입지 않았다."),
        ("책이다.", "책이 아니다."), ("지도입니다.", "지도가 아닙니다."), ("공개할 계획이다.", "공개할 계획이 아니다."),
        ("이름을 물었다.", None), ("소식을 들었다.", None),  # 묻다, 듣다: the ending does not show the stem
        ("문을 열지 않았다.", None), ("결정하지 않았다.", "결정했다."), ("자리가 있다.", "자리가 없다."),
        ("자격이있었습니다.", "자격이없었습니다."), ("문이 열려 있다.", "문이 열려 있지 않다."),
        ("역으로 가고 있다.", "역으로 가고 있지 않다."), ("역이 설정되었다고합니다.", None),
        ("비가 오기를 기대해 본다.", None), ("자리가 없다.", "자리가 있다."), ("값이 올랐다.", None),
        ("말했습니다.", "말하지 않았습니다."),
    ],
    "zh": [
        ("这是当地的特产。", "这不是当地的特产。"), ("这不是当地的特产。", "这是当地的特产。"),
        ("公司批准了计划。", "公司没有批准计划。"), ("居民支持这项改造。", "居民不支持这项改造。"),
        ("工程已完成。", "工程尚未完成。"), ("工程可以继续。", "工程不可以继续。"), ("但是天气很好。", None),
        ("另有四栋楼正在征求意见。", None), ("这是真的吗？", None),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("language", "sentence", "opposite"), [(language, *pair) for language in LANGUAGES for pair in OPPOSITES[language]]
)
def test_the_opposite_of_a_sentence(language: str, sentence: str, opposite: str | None) -> None:
    places = RULES[language].negated(sentence)
    made = {edits.apply_edits(sentence, [place], Random(0)) for place in places}
    assert made == (set() if opposite is None else {opposite})


# Fluency


def test_typos_keep_words_and_numbers_and_are_at_least_two() -> None:
    for sample, output in cases("typos"):
        assert len(output.split()) == len(sample.output.split())
        assert re.findall(r"\d+", output) == re.findall(r"\d+", sample.output)
        language = text.detect_language([sample.output])
        if language == "ja":  # a kana typed twice makes it longer
            continue
        units = (sample.output.split(), output.split()) if language == "en" else (sample.output, output)
        wrong = sum(a != b for a, b in zip(*units, strict=True))
        assert 2 <= wrong <= max(2, round(len(sample.output) / RULES[language].typo_every))


@pytest.mark.parametrize(
    ("output", "source", "names"),
    [
        (f"{AS_THEY_SOUND} 함께 왔다고 밝혔다.", "없다.", [AS_THEY_SOUND]),
        ("Then vesely quietly praised aldous before leaving.", SOURCE, ["vesely", "aldous"]),
    ],
)
def test_typos_spare_names_in_any_case_and_those_written_as_they_sound(
    output: str, source: str, names: list[str]
) -> None:
    for seed in range(20):
        found = make("typos", one(output, source), seed=seed)
        assert all(name in found for name in names)


_FUNCTION_WORDS = {
    "en": set(
        edits.listed("a an the of to in on at for from by with is are was were be been has have had will and that as")
    ),
    "ja": {"は", "が", "を", "に", "で", "と", "の", "も", "から", "まで"},
    "ko": {*"은이가을를에와로", "에서", "으로"},
    "zh": set("的在把被与对于得"),
}


def test_dropped_function_words_leave_all_else() -> None:
    for sample, output in cases("dropped function words"):
        language = text.detect_language([sample.output])
        if language == "en":
            gone = Counter(sample.output.split()) - Counter(output.split())
            assert set(gone) <= _FUNCTION_WORDS["en"]
            assert sum(gone.values()) >= 2
            assert not Counter(output.split()) - Counter(sample.output.split())
        else:
            gone = Counter(sample.output) - Counter(output)
            assert set(gone) <= set("".join(_FUNCTION_WORDS[language]))
            assert sum(gone.values()) >= 2
            assert len(sample.output) - len(output) == sum(gone.values())


@pytest.mark.parametrize(
    "whole",
    [
        "目的是好的确实存在了解和平", "今年冬季的候鸟调查结果，讨论了很多次，人类的朋友",
        "국가 회의 마을 가을 나이 어린이", "올랜도 시티 데우는 예정대로 배 농가의 카이로 고속도로 ",
    ],
)  # fmt: skip
def test_a_function_word_inside_another_word_stays(whole: str) -> None:
    assert make("dropped function words", one(whole)) is None


def test_lost_casing_loses_nothing_else() -> None:
    for sample, output in cases("lost casing"):
        assert output == output.lower()
        assert output.casefold() == sample.output.casefold()
    assert make("lost casing", one("This has one capital.")) is None


def test_truncated_breaks_off_inside_the_last_sentence() -> None:
    for sample, output in cases("truncated"):
        assert sample.output.startswith(output)
        assert not edits.is_finished(output)
        before = edits.sentences(sample.output)[:-1]
        assert edits.sentences(output)[:-1] == before
        assert len(edits.sentences(output)) == len(before) + 1


def test_a_truncated_sentence_keeps_40_to_80_percent() -> None:
    sentence = "Red kites often seem quite happy above green hills near small quiet towns today."
    cuts = {len(make("truncated", one(sentence), seed=seed) or "") / len(sentence) for seed in range(60)}
    assert len(cuts) > 1
    assert 0.4 <= min(cuts) < max(cuts) <= 0.8


@pytest.mark.parametrize(
    ("sentence", "shortest"),
    [
        ("The bridge opened on a Monday.", 30), ("橋は月曜日の朝に正式に開通した。", 16),
        ("다리는 월요일 아침에 열렸다.", 16), ("桥今天上午已经正式开通。", 12),
    ],
)  # fmt: skip
def test_a_sentence_that_is_too_short_is_not_truncated(sentence: str, shortest: int) -> None:
    assert len(sentence) == shortest
    assert make("truncated", one(sentence)) is not None
    assert make("truncated", one(sentence[1:])) is None


def test_what_already_breaks_off_is_not_truncated() -> None:
    assert make("truncated", one("This goes on and on and on, and it has no end to speak of and")) is None


# Relevance


def test_padding_is_whole_sentences_of_one_other_item() -> None:
    for sample, output in cases("padded"):
        assert output.startswith(sample.output)
        added = edits.sentences(output[len(sample.output) :])
        assert len(added) >= 1
        language = text.detect_language([sample.output])
        owners = [other.item for other in TEXTS[language] if set(added) <= set(edits.sentences(other.output))]
        assert owners
        assert sample.item not in owners


def test_padding_needs_another_item_in_the_language() -> None:
    sample = one("One came. Two went.")
    assert make("padded", sample, [one("Three slept.")]) is None
    assert make("padded", sample, [one("三つある。", item="b")]) is None
    assert make("padded", sample, [one("Three slept.", item="b")]) == "One came. Two went. Three slept."


def test_padding_is_from_the_item_that_shares_least() -> None:
    sample = one("Trams run.", "Trams run on rails in the city of Halvern.")
    others = [
        one("Trams in Halvern.", item="b"), one("Bats sleep in roofs.", item="c"), one("The city runs.", item="d"),
    ]  # fmt: skip
    assert make("padded", sample, others) == "Trams run. Bats sleep in roofs."


def test_the_main_point_is_one_sentence_and_the_others_stay() -> None:
    for sample, output in cases("main point dropped"):
        old, new = edits.sentences(sample.output), edits.sentences(output)
        assert len(new) == len(old) - 1
        assert not Counter(new) - Counter(old)


def test_the_main_point_is_what_the_references_or_the_source_speak_of() -> None:
    output = "It was warm. The tram line opened late. People came."
    assert make("main point dropped", one(output, references=("The tram line opened.",))) == "It was warm. People came."
    source = "Warm days. Warm nights. It was warm, and a tram came."
    assert make("main point dropped", one(output, source)) == "The tram line opened late. People came."
    assert make("main point dropped", one(output)) is None
    assert make("main point dropped", one("Trams run. Trams run.", "Trams run.")) is None


def test_duplicated_sentences_are_twice_in_a_row_and_never_all() -> None:
    for sample, output in cases("duplicated sentences"):
        old, new = edits.sentences(sample.output), edits.sentences(output)
        assert [sentence for sentence, _ in groupby(new)] == old
        assert len(old) < len(new) < 2 * len(old)
    assert make("duplicated sentences", one("Only one.")) is None


# Neutral


def test_duplicated_text_is_the_text_twice() -> None:
    for sample, output in cases("duplicated text"):
        assert edits.sentences(output) == edits.sentences(sample.output) * 2
    assert make("duplicated text", one("No stop")) == "No stop\nNo stop"


def test_empty_phrases_are_added_as_many_as_there_are_sentences() -> None:
    for sample, output in cases("empty phrases"):
        assert output.startswith(sample.output)
        added = edits.sentences(output[len(sample.output) :])
        empty = RULES[text.detect_language([sample.output])].empty
        assert len(added) == len(set(added)) == min(len(edits.sentences(sample.output)), len(empty))
        assert set(added) <= set(empty)


@pytest.mark.parametrize("language", LANGUAGES)
def test_empty_phrases_are_of_their_language_and_one_sentence_each(language: str) -> None:
    for phrase in RULES[language].empty:
        assert text.detect_language([phrase]) == language
        assert edits.sentences(phrase) == [phrase]


def test_the_copied_lead_is_the_sources_start_in_as_many_sentences() -> None:
    for sample, output in cases("copied lead"):
        assert sample.source.startswith(output)
        assert len(edits.sentences(output)) == len(edits.sentences(sample.output))
    assert make("copied lead", one("One. Two.", "Three. Four.")) is None


# Real texts


def test_changes_apply_to_most_of_summeval(shared_data: Callable[[str], Path]) -> None:
    rows = data.load(shared_data("summeval.jsonl"), mapping={"item": "doc_id", "output": "summary"})[::8]
    for change in (*CHANGES, *NEUTRAL):
        made = [found for sample in rows if (found := changed(sample, rows, change, 0))]
        assert len(made) >= 0.7 * len(rows), change.name
        assert all(found.output.strip() for found in made)


def test_a_language_without_rules_has_no_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = {code: entry for code, entry in perturbations.RULES.items() if code != "ko"}
    monkeypatch.setattr(perturbations, "RULES", rules)
    assert of_language("ko") == ()
    assert of_language("ja") != ()
    assert perturbations.rules_for("배가 늦게 도착했다.") is rules["en"]
