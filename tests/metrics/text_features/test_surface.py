"""Numbers, names and defects. Oracle: values by hand."""

from __future__ import annotations

import pytest

from judge.metrics import text_features
from judge.metrics.text_features import Measure, Sentences, is_fragment


@pytest.mark.parametrize(
    ("output", "numbers"),
    [
        ("In 2019, 1,250 people paid 3.5 million.", ["2019", "1", "250", "3", "5"]),
        ("They won 2-1 at 7:30.", ["2", "1", "7", "30"]),
        ("３人が12月に来た。", ["3", "12"]),
        ("1 , 250 people paid 3 . 5 .", ["1", "250", "3", "5"]),
        ("Seven people came.", []),
    ],
)
def test_numbers_are_written_in_digits(output: str, numbers: list[str]) -> None:
    assert text_features.numbers(output) == numbers


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("The mayor, Ann Field, met Bob. Yesterday Carl left.", ["ann", "field", "bob", "carl"]),
        ("A London man met J. Field.", ["london", "field"]),
        ("She thinks I know NATO's plan.", ["nato"]),  # single letters are no names
        ("ドナルド・スミス氏はNATOの会議に出た。", ["ドナルド", "スミス", "nato"]),
        ("김 시장은 NATO 회의에 갔다.", ["nato"]),
        ("史密斯出席了NATO会议。", ["nato"]),
    ],
)
def test_names_are_capitals_within_sentences_or_katakana_and_latin(
    output: str, names: list[str]
) -> None:
    assert text_features.names(output, Sentences.from_text(output, "char")) == names


@pytest.mark.parametrize(
    ("source", "output", "supported"),
    [
        (
            "ann field was mayor in 2019, with 1,250 votes",
            "In 2019 Ann Field beat Bob, 1 , 250 to 300.",
            (3 / 4, 2 / 3),
        ),
        ("ann field was mayor in 2019, with 1,250 votes", "nothing of this kind", (None, None)),
        ("スミス氏は１２月に来日した。", "スミス氏は12月に来た。", (1, 1)),
    ],
)
def test_support_is_the_share_that_the_source_contains(
    source: str, output: str, supported: tuple[float | None, ...]
) -> None:
    features = Measure(source)(output)
    assert (features.number_support, features.entity_support) == supported


@pytest.mark.parametrize(
    ("output", "no_end"),
    [
        ("It ended.", 0),
        ('"It ended!"', 0),
        ("It ended .", 0),
        ("終わった。", 0),
        ("「終わった」", 0),
        ("끝났다", 1),
        ("It ended and", 1),
        ("One ends.\nThe last does not", 1),
        ("", 0),
    ],
)
def test_a_text_without_an_end_mark_is_a_defect(output: str, no_end: int) -> None:
    assert Measure()(output).no_end == no_end


@pytest.mark.parametrize(
    ("sentence", "cjk", "fragment"),
    [
        ("Scroll down.", False, True),
        ("He left town.", False, False),
        ("They met the mayor and.", False, True),
        ("It is what he lives for.", False, False),
        ("はい。", True, True),
        ("会議は終わった。", True, False),
    ],
)
def test_sentence_fragments_are_recognised(sentence: str, cjk: bool, fragment: bool) -> None:
    assert is_fragment(sentence, Sentences.from_text(sentence, "char").words, cjk) is fragment


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("The the cat sat on on the mat.", 2),
        ("He had had enough; she said that that was it.", 0),
        ("In Paris. Paris is large.", 0),  # a full stop separates them
        ("It was 10 10 times.", 0),
        ("회의가 회의가 끝났다.", 1),
        ("とりあえずとりあえず帰った。", 1),
        ("人々はますます遠くへ行く。", 0),
        ("天天都研究研究。", 0),
    ],
)
def test_doubled_words_are_counted(output: str, count: int) -> None:
    assert Measure()(output).doubled_words == count
