"""A label is parsed from a reply: the forms that are read, and the forms that must be refused."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import cycle, product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import judge
from judge.core.errors import ParseError
from judge.core.label_spellings import fold, label_index
from judge.core.messages import speaking_to
from judge.core.records import Choice, ReplyKind, Scale
from judge.criteria.header import read_scale
from judge.scoring.parse import find, read, reply_text
from judge.scoring.written_score import ParsedScore
from tests.factories import has_line

THREE = Scale.integers(1, 3)
FIVE = Scale.integers(1, 5)
TEN = Scale.integers(1, 10)
SIGNED = Scale.integers(-2, 2)
HUNDRED = Scale.integers(0, 100, 10)
HALVES = Scale(("0", "0.5", "1.0"), (0.0, 0.5, 1.0))
VERDICT = Scale(("fail", "pass"), (0.0, 1.0))
GRADES = Scale(("A", "B", "C", "D", "E"), (5.0, 4.0, 3.0, 2.0, 1.0))
PASSED = Scale(("불합격", "합격"), (0.0, 1.0))
CASED = Scale(("m", "M"), (1.0, 2.0))
PAIR = Scale(("A", "B"), (1.0, 0.0))
DECOMPOSED = unicodedata.normalize("NFD", "합격")
WORDS = Scale(("good", "very good"), (1.0, 2.0))
REMARKS = Scale(("fail", "pass", "pass with remarks"), (0.0, 1.0, 0.5))
ALLOWED = Scale(("可", "不可"), (1.0, 0.0))
NUMERALS = Scale(("१", "२", "three"), (1.0, 2.0, 3.0))
SCALES = [
    THREE,
    REMARKS,
    PASSED,
    ALLOWED,
    NUMERALS,
    FIVE,
    TEN,
    SIGNED,
    HUNDRED,
    HALVES,
    VERDICT,
    GRADES,
    CASED,
    WORDS,
]
TITLES = ["", "Coherence", "관련성"]
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")

# Replies that contain the score 4 of 1–5 and nothing else.
FOURS = [
    "4", " 4", "4\n", "\n4", "４", "\ufeff4", "4\u200b", "**4**", "*4*", "__4__", "`4`", "4.", "4。", "4/5", "4 / 5",
    "4／5", "4/5.", "**4**/5", "**4/5**", "4 out of 5", "4 out of 5 stars", "(4)", "[4]", "[[4]]", '"4"', "'4'", "“4”",
    "「4」", "4.0", "4.00", "4점", "4 점", "4点", "4分", "4점/5점", "4/5점", "4 points", "4 stars", "4 ⭐", "⒋",
    "Score: 4", "score:4", "SCORE: 4", "Score：4", "Score:\n4", "Rating: 4", "Rating: [[4]]", "Final score: 4",
    "Final Score: 4/5", "My overall rating: 4", "**Score:** 4", "**Score**: 4", "**Score: 4**", "Score: **4**/5",
    "### Score: 4", "> Score: 4", "[RESULT] 4", "[RESULT]: 4", "[Result] **4**", '"score": 4', '"score": "4"',
    '{"score": 4}', '{"score": 4.0}', '{ "score" : 4 }\n', '```json\n{"score": 4}\n```', "```\n4\n```",
    "4️⃣", "④", "٤", "۴", "४", "๔", "\u2067٤\u2069", "٤/٥", "４．０",
    "점수: 4", "점수: 4점", "최종 점수: 4", "평점: 4", "スコア：4", "点数: 4点", "評価：4", "得分：4", "评分: 4分",
    "最终得分：4", "4<|im_end|>", "4</s>", "4\n<|eot_id|>",
    # Names: brackets, other words for a score, and verbs.
    "【점수】4", "【スコア】4", "【得分】：4分", "〔得点〕4", "〈점수〉 4", "<점수> 4", "採点：4", "採点結果：4",
    "評価点：4",
    "総合点：4", "合計点：4", "総得点：4点", "答え：4", "总分：4", "總分：4", "给分：4", "评估结果：4", "成绩：4",
    "총점: 4점",
    "총 점수: 4", "정답: 4", "합계: 4", "4です。", "4点です。", "**4点**です。", "4点だ", "4点とします。",
    "4입니다", "4점입니다.", "4점이다.", "4점이에요.", "スコアは4です。", "総合評価は4点です。",
    "점수는 4점입니다.", "得分是4分。", "评分为4",
    # The scale beside the score, or beside its name.
    "5分中4", "5点満点中4点", "5点満点で4点です。", "5点中の4", "5段階中4", "5段階評価で4です。", "5점 만점에 4점",
    "5점 만점 중 4점", "5점 중에서 4점", "满分5分，得4分", "5分满分4分", "4分（满分5分）", "4点（5点満点）",
    "4점(5점 만점)", "4(滿分5分)", "4 (out of 5)", "Score (1-5): 4", "Score [1–5]: 4", "Score (1 to 5): 4",
    "Score (out of 5): 4", "Score (/5): 4", "スコア（1〜5）：4", "スコア（5点満点）：4点", "점수(1~5): 4",
    "得分（满分5分）：4",
    "得分（1至5）：4",
]  # fmt: skip
TITLED = [
    ("Coherence: 4", "Coherence"), ("- Coherence: 4", "Coherence"), ("* Coherence: 4", "Coherence"),
    ("• coherence: 4/5", "Coherence"), ("**Coherence**: 4", "Coherence"), ("Coherence score: 4", "Coherence"),
    ("Score for coherence: 4", "Coherence"), ("Factual agreement: 4", "Factual agreement"),
    ("Factual-Agreement rating: 4", "Factual agreement"), ('{"coherence": 4}', "Coherence"), ("관련성: 4", "관련성"),
    ("관련성 점수: 4점", "관련성"), ("관련성의 점수: 4", "관련성"), ("関連性：４", "関連性"),
    ("関連性スコア: 4", "関連性"), ("首尾一貫性の評価：4", "首尾一貫性"), ("相关性：4", "相关性"),
    ("相关性的得分：4分", "相关性"), ("Score: 4", "(…)"),
]  # fmt: skip
# The same score in words: the reply, and the word in it.
SPELT = [
    ("four", "four"), ("Four.", "Four"), ("**FOUR**", "FOUR"), ("four out of five", "four"), ("four/5", "four"),
    ("four stars", "four"), ("四", "四"), ("四点", "四"), ("四分。", "四"), ("四／五", "四"), ("㊃", "㊃"),
    ("네 점", "네"), ("넷점", "넷"), ("사점", "사"), ("四点です。", "四"), ("네 점입니다.", "네"),
    ("五点満点中四点", "四"), (unicodedata.normalize("NFD", "네 점"), "\u1102\u1166"),
]  # fmt: skip
# Replies without a plain score of 1–5.
NOTHING = [
    "", " \n", "\u200b\ufeff", "n/a", "The summary", "I would say 4", "4 because it is clear",
    "between 3 and 4", "3-4", "3–4", "4 or 5", "4, 5", "4 5", "4\n5", "4?", "~4", ">4", "+4", "4+", "4%", "4th", "4x",
    "4-", "Score 4", "Score = 4", "Score: 4: 5", "score", "Score:", "I cannot rate: 4",
    "I cannot rate this: 4", "Sorry, no score: 4", "Step 1: 4", "a: 4", "4,5", ".4", "4..5", "4.5.1", "1,000", "**",
    "{}", '{"score": }', '{"score": 4, "score": 5}', "4 - a clear text", "x" * 5000,
    " " * 500 + "x", "4/", "4 /", "4 out of", "4 out", "Score: -", "Score: 4/", "–", "4~5", "4：5", "4点5", "٤،٥",
    # Words: their beginnings, longer words that contain them, other words, and two words.
    "fo", "fourth", "fourteen", "twenty-four", "twenty four", "forty-four", "four hundred", "four or five", "four five",
    "three-four", "four-", "-four", "four and a half", "Four: 5", "a four", "one of them", "ten", "IV", "Ⅳ", "四十",
    "十四", "四点五", "四分之三", "一致", "一〇", "四五", "네", "넷", "사", "네, 점", "네 점 오", "십사점", "이 글",
    "5分中", "5点満点", "5점 만점", "满分5分", "评分的满分是5分", "5段階です", "4だけ", "4点ではない", "4点台",
    "4点ですか？",
    "4点でしょう", "4点差", "4점이 아닙니다", "4점입니까?", "4分钟", "得分不是4", "最高得分是4分", "满分的得分是4分",
    "Score (4): 5", "score(5): 4", "4 (1-5", "文章4", "Text A",
    "两", "〇", '{"score": 4, "sure": 0.9}', '{"score": 4, "parts": [4]}', '{"score": 4, "more": {}}',
]  # fmt: skip
OFF = [
    "①②", "0", "6", "7", "45", "-4", "−4", "04", "004", "4.5", "4.05", "10", "Score: 7", "**7**", "7/5", "4/10", "4/4",
    "four/four", "–4", "٧", "٣٫٥", "4 out of 10", "10点満点中4点", "4分（满分10分）", "Score (1-10): 4",
    "Score (0-5): 4",
    "점수 (10점 만점): 4점", "三分中二",
]  # fmt: skip


def check_is_4(text: str, title: str = "") -> None:
    parsed = find(text, "score", FIVE, title)
    assert (parsed.label, parsed.reason) == ("4", None), text
    assert fold(text[parsed.start : parsed.end]) in {"4", "4.0", "4.00", "4."}


@pytest.mark.parametrize("title", TITLES)
def test_names_units_and_marks_around_a_score_do_not_matter(title: str) -> None:
    for text in FOURS:
        check_is_4(text, title)


def test_a_score_may_be_a_number_word() -> None:
    for text, written in SPELT:
        replies = {
            "score": text,
            "score_then_reason": f"{text}\nIt has two.",
            "reason_then_score": f"One.\nScore: {text}",
        }
        for kind, reply in replies.items():
            parsed = find(reply, kind, FIVE)
            assert (parsed.label, reply[parsed.start : parsed.end]) == ("4", written)


def test_the_title_may_name_the_score() -> None:
    misread = [text for text, title in TITLED if find(text, "score", FIVE, title).label != "4"]
    assert misread == []


def test_an_unknown_name_counts_only_if_the_title_is_unknown() -> None:
    assert find("Relevance: 4", "score", FIVE).label == "4"
    with pytest.raises(ParseError):
        find("Relevance: 4", "score", FIVE, "Coherence")


def check_is_refused(text: str, title: str = "") -> None:
    with pytest.raises(ParseError, match=r"not a score alone|empty|JSON object") as caught:
        find(text, "score", FIVE, title)
    assert caught.value.raw == text


@pytest.mark.parametrize("title", TITLES)
def test_refuses_a_reply_without_a_clear_score(title: str) -> None:
    for text in NOTHING:
        check_is_refused(text, title)


def test_a_number_off_the_scale_is_an_error_with_the_scale() -> None:
    for text in OFF:
        with pytest.raises(ParseError, match=r"off the scale \(1, .*5\)"):
            find(text, "score", FIVE)


def test_the_error_abbreviates_a_long_scale() -> None:
    with pytest.raises(ParseError, match=r"101 is off .*1 … 50"):
        find("101", "score", Scale.integers(1, 50))


@pytest.mark.parametrize(
    ("text", "scale", "label", "written"),
    [
        ("10", TEN, "10", "10"), ("１０", TEN, "10", "１０"), ("1\u200b0", TEN, "10", "1\u200b0"),
        ("10/10", TEN, "10", "10"), ("1/10", TEN, "1", "1"), ("-2", SIGNED, "-2", "-2"), ("−2", SIGNED, "-2", "−2"),
        ("Score: −1.", SIGNED, "-1", "−1"), ("0", SIGNED, "0", "0"),
        *((f"{minus}2", SIGNED, "-2", f"{minus}2") for minus in "-−‐‑–‒➖－﹣⁻₋"), ("+1", SIGNED, "1", "+1"),
        ("Score: ＋２", SIGNED, "2", "＋２"), ("two", SIGNED, "2", "two"),
        ("1", Scale(("–1", "0", "+1"), (-1.0, 0.0, 1.0)), "+1", "1"),
        ("-1", Scale(("–1", "0", "+1"), (-1.0, 0.0, 1.0)), "–1", "-1"),
        ("-1", Scale(("-1", "1"), (-1.0, 1.0)), "-1", "-1"), ("3", THREE, "3", "3"), ("100", HUNDRED, "100", "100"),
        ("70/100", HUNDRED, "70", "70"), ("80%", HUNDRED, "80", "80"), ("Score: 80 ％.", HUNDRED, "80", "80"),
        ("80 percent", HUNDRED, "80", "80"), ("80点（100点満点）", HUNDRED, "80", "80"), ("文章A", PAIR, "A", "A"),
        ("글 B입니다.", PAIR, "B", "B"), ("答案：文本 A", PAIR, "A", "A"), ("**Text A**", PAIR, "A", "A"),
        ("答え：要約Bです。", PAIR, "B", "B"), ("合格です", Scale(("不合格", "合格"), (0.0, 1.0)), "合格", "合格"),
        ("10", HUNDRED, "10", "10"), ("ten", HUNDRED, "10", "ten"),
        ("열 점", HUNDRED, "10", "열"), ("Zero.", HUNDRED, "0", "Zero"), ("〇", HUNDRED, "0", "〇"),
        ("one", HALVES, "1.0", "one"), ("0.5", HALVES, "0.5", "0.5"), ("0.50", HALVES, "0.5", "0.50"),
        ("1", HALVES, "1.0", "1"), ("0.5/1", HALVES, "0.5", "0.5"), ("pass", VERDICT, "pass", "pass"),
        ("PASS.", VERDICT, "pass", "PASS"), ("**Fail**", VERDICT, "fail", "Fail"),
        ("Verdict: Pass", VERDICT, "pass", "Pass"), ('{"score": "pass"}', VERDICT, "pass", "pass"),
        ("ｐａｓｓ", VERDICT, "pass", "ｐａｓｓ"), ("b", GRADES, "B", "b"), ("Grade: C", GRADES, "C", "C"),
        ("(D)", GRADES, "D", "D"), ("m", CASED, "m", "m"), ("M", CASED, "M", "M"), ("Answer: M", CASED, "M", "M"),
        ("very good", WORDS, "very good", "very good"), ("Rating: very good!", WORDS, "very good", "very good"),
        ("good", WORDS, "good", "good"), ("합격", PASSED, "합격", "합격"), (DECOMPOSED, PASSED, "합격", DECOMPOSED),
        ("불합격.", PASSED, "불합격", "불합격"), ("결과: 불합격", PASSED, "불합격", "불합격"),
        ("不可", ALLOWED, "不可", "不可"), ("判定：可。", ALLOWED, "可", "可"),
        ("pass with remarks", REMARKS, "pass with remarks", "pass with remarks"),
        ("Result: pass with remarks.", REMARKS, "pass with remarks", "pass with remarks"),
        ("Pass", REMARKS, "pass", "Pass"), ("Score: mäßig", Scale(("mäßig", "gut"), (0.0, 1.0)), "mäßig", "mäßig"),
        ("2", NUMERALS, "२", "2"), ("२", NUMERALS, "२", "२"), ("two", NUMERALS, "२", "two"),
        ("one", Scale(("1", "one"), (1.0, 2.0)), "one", "one"), ("ONE", Scale(("1", "one"), (1.0, 2.0)), "one", "ONE"),
        ("A+", Scale(("A", "A+"), (1.0, 2.0)), "A+", "A+"), ("[x]", Scale(("[ ]", "[x]"), (0.0, 1.0)), "[x]", "[x]"),
    ],
)  # fmt: skip
def test_labels_in_any_spelling_are_parsed_with_their_position(
    text: str, scale: Scale, label: str, written: str
) -> None:
    parsed = find(text, "score", scale)
    assert (parsed.label, text[parsed.start : parsed.end]) == (label, written)


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("85%", HUNDRED), ("Text A", GRADES), ("文章Aの方", PAIR), ("Text AB", PAIR), ("passable", VERDICT),
        ("not pass", VERDICT), ("pass fail", VERDICT), ("pass/fail", VERDICT),
        ("fail: pass", VERDICT), ("1", VERDICT), ("pass/5", VERDICT), ("F", GRADES), ("AB", GRADES), ("- 2", SIGNED),
        ("+3", SIGNED), ("-3", SIGNED), ("--2", SIGNED), ("– 2", SIGNED), ("1–2", SIGNED), ("+-1", SIGNED),
        ("minus two", SIGNED), ("-two", SIGNED), ("two", VERDICT), ("pass with", REMARKS), ("seventy", HUNDRED),
        ("합", PASSED), ("합격함", PASSED), ("可能", ALLOWED), ("不", ALLOWED), ("4", Scale(("4", "٤"), (1.0, 2.0))),
        ("", Scale(("", "1"), (0.0, 1.0))), ("Score:", Scale((" ", "1"), (0.0, 1.0))),
        ("75", HUNDRED), ("0.7", HALVES), (".5", HALVES), ("0，5", HALVES), ("0,500", HALVES),
        ("1e0", HALVES), ("Answer: mm", CASED), ("very", WORDS),
    ],
)  # fmt: skip
def test_a_label_must_be_a_whole_word(text: str, scale: Scale) -> None:
    with pytest.raises(ParseError):
        find(text, "score", scale)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("4\nNames 2 of 3 players.", "Names 2 of 3 players."),
        (
            "\n\u200b\n **Score: 4/5**\r\n\r\nScore: 1 would be too hard.",
            "Score: 1 would be too hard.",
        ),
        ("4", None),
        ("점수: 4점\n이유: 5명 가운데 3명만 나온다.", "이유: 5명 가운데 3명만 나온다."),
        ('{"score": 4, "reason": "score: 1"}', "score: 1"),
    ],
)
def test_score_then_reason_reads_the_first_line(text: str, reason: str | None) -> None:
    assert find(text, "score_then_reason", FIVE) == ParsedScore(
        "4", text.index("4"), text.index("4") + 1, reason
    )


@pytest.mark.parametrize(
    "text",
    [
        "Clear throughout.\nScore: 4",
        "4 because it is clear\nScore: 4",
        "I cannot say\n4",
        "7\nToo good.",
        "Score:\n4",
    ],
)
def test_score_then_reason_reads_only_the_first_line(text: str) -> None:
    with pytest.raises(ParseError):
        find(text, "score_then_reason", FIVE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("All 3 facts are there.\nScore: 4", "All 3 facts are there."),
        ("All 3 facts are there. Score: 4.", "All 3 facts are there."),
        ("It says 4 facts, score: 2 at first.\n\nFinal score: 4/5.\n", "It says 4 facts, score: 2 at first."),
        ("Score: 1 was my first thought. Score: 4", "Score: 1 was my first thought."),
        ("Good.\n\n**Score: 4**", "Good."), ("Good.\n### Final Score: **4** / 5", "Good."),
        ("Good.\n- Coherence: 4", "Good."), ("Good.\nRating: 4 out of 5 stars!", "Good."),
        ("Good [1]. [RESULT] 4", "Good [1]."), ("```\nGood.\nScore: 4\n```", "Good."),
        ('Good.\n```json\n{"score": 4}\n```', "Good."),
        ("좋다. 점수: 4점", "좋다."), ("良い。スコア：４", "良い。"), ("良い。評価：[[4]]", "良い。"),
        ("Good. Verdict: [[4]]", "Good."),
        ("좋다. 평가: [[4]]", "좋다."), ("良い。\n採点：4", "良い。"), ("好。总分：4", "好。"),
        ("좋다.\n총점: 4점입니다.", "좋다."),
        ("良い。\nスコアは4点です。", "良い。"), ("好。【得分】4", "好。"), ("Good.\nScore (1-5): 4", "Good."),
        ("好。\n得分：4分（满分5分）", "好。"), ("좋다. 점수: 5점 만점에 4점", "좋다."),
        ("很好，没有错误。得分：4分。", "很好，没有错误。"), ("Score: 4", None),
        ("Good. " * 300 + "Score: 4 <|im_end|>", ("Good. " * 300).strip()),
        ('{"reason": "Has \\"score\\": 1, {\\"score\\": 2}.", "score": 4}', 'Has "score": 1, {"score": 2}.'),
        ('```json\n{"Score": "4/5", "reason": "Good."}\n```', "Good."),
        ('{"score": 4, "notes": {"score": 1}, "list": [1, 2]}', None),
    ],
)  # fmt: skip
def test_reason_then_score_reads_the_end(text: str, reason: str | None) -> None:
    parsed = find(text, "reason_then_score", FIVE, "Coherence")
    assert (parsed.label, fold(text[parsed.start : parsed.end]), parsed.reason) == (
        "4",
        "4",
        reason,
    )
    assert parsed.start == (
        max(text.rfind("4"), text.rfind("４")) if '"notes"' not in text else text.index("4")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("So I would give it a score of 3.", "does not end"), ("Score: 4\nThat is all.", "does not end"),
        ("Score: 4 (perfect)", "does not end"), ("Score: 3-4", "does not end"), ("Score: 3 or 4", "does not end"),
        ("よい。得点は4点です。", "does not end"), ("好。\n4分（满分5分）", "does not end"),
        ("Good. Result: 4", "does not end"),
        ("Underscore: 4", "does not end"), ("Its coherence: 4", "does not end"),
        ("The text is clear.\n4", "does not end"), ("Score: 4" + " x" * 300, "does not end"),
        ("Good. Score: 3.5/5.", "3.5 is off"), ("Good. Score: 8/10.", "8 out of 10"),
        ("Good. Score: 7", "7 is off"), ("", "empty"), ('{"reason": "score: 1"}', 'one key "score"'),
        ('{"score": 4, "Score": 5}', 'one key "score"'), ('{"score": true}', 'one key "score"'),
        ('{"score": [4]}', 'one key "score"'), ('{"score": "about 4"}', "not a score alone"),
        ('{"score": 7}', "off the scale"), ('{"score": 4} or so', "something follows"),
        ('{"score": 4, "reason": "score: 1"', "JSON object but"),
        ('{"score" 4}', "JSON object but"), ("{4: 4}", "JSON object but"),
        ('{"score": 4 "reason": ""}', "JSON object but"),
        ('{"a":' + "[" * 100_000, "JSON object but"),
    ],
)  # fmt: skip
def test_reason_then_score_refuses_other_endings(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        find(text, "reason_then_score", FIVE, "Coherence")


@pytest.mark.parametrize(
    ("finish", "message"),
    [
        ("length", "cut off"),
        ("content_filter", "content filter"),
        ("refusal", "refused"),
        ("abort", "broke"),
    ],
)
def test_a_reply_that_was_cut_off_is_not_read(finish: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        read(Choice("4", finish), "score", FIVE)
    assert caught.value.raw == "4"


THOUGHT = "Is it 5 or 3?\nScore: 2\n5\n"


THOUGHTS = [
    "<{0}>{1}</{0}>", "<{0}></{0}>\n\n", "\u200b\n <{0}>\n{1}</{0}>\n\n", "{1}</{0}>",
    "<{0}>{1}<{0}>{1}</{0}>{1}</{0}>", "<{0}>{1}</other>{1}</{0}>",
    "<{0}>1</{0}> <think>{1}</think> <reasoning>{1}</reasoning>", '<{0}>{{"score": 2}}</{0}>',
]  # fmt: skip


@given(
    st.sampled_from(["think", "thinking", "thought", "reasoning", "THINK"]),
    st.sampled_from(THOUGHTS),
    st.sampled_from(KINDS),
)
def test_thinking_before_the_reply_does_not_count(tag: str, form: str, kind: ReplyKind) -> None:
    before = form.format(tag, THOUGHT)
    for after, reason in {
        "score": [("4", None), ('{"score": 4}', None)],
        "score_then_reason": [
            ("4\nIt has 3.", "It has 3."),
            ('{"score": 4, "reason": "It has 3."}', "It has 3."),
        ],
        "reason_then_score": [
            ("It has 3.\nScore: 4", "It has 3."),
            ("**Score: 4**", None),
            ("Coherence: 4", None),
        ],
    }[kind]:
        text = before + after
        start = len(before) + after.index("4")
        assert find(text, kind, FIVE, "Coherence") == ParsedScore("4", start, start + 1, reason)
        assert reply_text(Choice(text)) == after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<think>4", "ended inside its thinking"), ("<think>\nScore: 4", "ended inside its thinking"),
        ("<think>a</think><reasoning>4", "ended inside its thinking"),
        ("<think>a<think>b</think>\nScore: 4", "ended inside its thinking"),
        ("<think>a</reasoning>\nScore: 4", "ended inside its thinking"),
        ("<think>a</think>\n4\n</think>\nScore: 3", "cannot determine"),
        ("a</think>\n4\n</think>\nScore: 3", "cannot determine"), ("<think>4</think>", "empty after its thinking"),
        ("Score: 4</think>\n\n", "empty after its thinking"), ("4<think>4</think>", "not a score alone|does not end"),
    ],
)  # fmt: skip
def test_a_score_inside_thinking_is_not_read(text: str, message: str) -> None:
    for kind in KINDS:
        with pytest.raises(ParseError, match=message) as caught:
            find(text, kind, FIVE)
        assert caught.value.raw == text


@pytest.mark.parametrize(
    ("text", "finish", "problem"),
    [
        ("<think>Is it 3 or 4?</think>", "stop", "empty after its thinking"),
        ("<think>Is it 3 or 4?</think>\n\n", "length", "limit inside its thinking"),
        ("<think>Is it 3 or", "stop", "ended inside its thinking"),
        ("<think>Is it 3 or", "length", "limit inside its thinking"),
        ("<|channel|>analysis<|message|>3 or", "length", "limit inside its thinking"),
        ("", "length", "limit inside its thinking"),
    ],
)  # fmt: skip
def test_a_reply_of_only_thinking_is_an_error_with_advice(
    text: str, finish: str, problem: str
) -> None:
    for kind in KINDS:
        with pytest.raises(ParseError) as caught:
            read(Choice(text, finish), kind, FIVE)
        assert has_line(str(caught.value), problem, "--max-tokens", "--reasoning-effort none")


def test_advice_on_thinking_names_the_arguments_in_python() -> None:
    with speaking_to("python"), pytest.raises(ParseError) as caught:
        reply_text(Choice("<think>Hm", "length"))
    assert has_line(str(caught.value), "max_tokens", "reasoning_effort='none'")


@pytest.mark.parametrize("text", ["<think>Hm.</think>\nIt reads w", "It reads w", " \n\n\n"])
def test_advice_for_a_reply_cut_off_after_its_thinking_is_only_a_longer_limit(text: str) -> None:
    with pytest.raises(ParseError, match=r"token limit.*--max-tokens$"):
        reply_text(Choice(text, "length"))


def test_a_reason_may_contain_the_marks_of_thinking() -> None:
    quoted = "It shows <think> and </think>."
    assert find(f"4\n{quoted}", "score_then_reason", FIVE).reason == quoted
    assert find(f"{quoted}\nScore: 4", "reason_then_score", FIVE).reason == quoted
    assert (
        find('{"reason": "It ends in </think>", "score": 4}', "reason_then_score", FIVE).label
        == "4"
    )
    with pytest.raises(ParseError, match="ended inside its thinking"):
        find("Let me think. <think>\nScore: 4", "reason_then_score", FIVE)


def test_the_text_of_a_cut_or_empty_reply_is_an_error() -> None:
    with pytest.raises(ParseError, match="cut off"):
        reply_text(Choice("1. Read", "length"))
    with pytest.raises(ParseError, match="empty"):
        reply_text(Choice(" \u200b\n"))


@pytest.mark.parametrize(
    ("text", "scale", "label", "reason"),
    [
        ('{"score": 4, "reason": "It has 3."}', FIVE, "4", "It has 3."),
        ('{"reason": " It has 3. ", "score": "4"}', FIVE, "4", "It has 3."),
        ('```json\n{"reason": "a", "score": 4, "title": "b"}\n```\n', FIVE, "4", "a"),
        ('{"title": "b", "score": 4, "sure": true, "more": null}', FIVE, "4", "b"),
        ('{"score": "pass", "reason": "fail: no"}', VERDICT, "pass", "fail: no"),
        ('```\n{"score": "불합격", "reason": "-"}\n```', PASSED, "불합격", "-"),
        ('{"score": "네 점", "reason": "-"}', FIVE, "4", "-"),
        ('{"score": "4/5", "reason": "-"}', FIVE, "4", "-"),
        ('{"score": -1, "reason": "-"}', SIGNED, "-1", "-"),
    ],
)
def test_an_object_for_a_score_alone_may_have_members_that_are_not_numbers(
    text: str, scale: Scale, label: str, reason: str
) -> None:
    parsed = find(text, "score", scale)
    assert (parsed.label, parsed.reason) == (label, reason)
    assert label_index(scale).label(text[parsed.start : parsed.end]) == label


@pytest.mark.parametrize("text", ["Score: 3.", "Score: 3", "Score: 3</s>"])
def test_a_number_at_the_end_of_the_reply_is_read(text: str) -> None:
    for kind in ("score", "reason_then_score"):
        assert find(text, kind, FIVE).label == "3"


def test_the_end_of_a_long_line_is_not_a_new_line() -> None:
    """The parser reads only the end of a reply, which may begin with "Result:" in the middle of a line."""
    for stars in range(105, 125):
        text = "Nobody knows the Result:" + "*" * stars + " 4"
        with pytest.raises(ParseError, match="does not end"):
            find(text, "reason_then_score", FIVE)
        if stars < 110:
            assert find(text.replace("the ", "the\n"), "reason_then_score", FIVE).label == "4"


ENDLESS = [
    "4" * 100_000, "*" * 100_000 + "4", "4" + " " * 100_000 + "5", "Score: " * 20_000, "the final " * 10_000,
    "<think>" * 15_000, "<think></think>" * 7_000, "a<think>" * 12_000, "a</think>" * 20_000, '{"a":' * 20_000,
    "```" * 30_000, '{"score": ' + " " * 100_000 + "}", "٤" * 100_000, "e\u0301" * 50_000 + "\nScore: 4 x",
    "\u200b" * 100_000, "-" * 100_000, "\n" * 100_000, "<|a|>" * 20_000 + "4", "4" + "<|a|> " * 20_000 + "b",
    "four out of " * 8_000, "네 " * 50_000, "A's-" * 25_000,
]  # fmt: skip


def test_refuses_a_very_long_reply() -> None:
    for text, (kind, title) in zip(ENDLESS, cycle(product(KINDS, ("", "Coherence"))), strict=False):
        with pytest.raises(ParseError):
            find(text, kind, FIVE, title)


PIECES = [
    "4", "10", "-2", "−", "0.5", ".0", "pass", "A", "M", "very good", "/5", "점", "Score", ": ", "**", "\n", "{", "}",
    '"score"', '"', ",", "```json\n", "[RESULT] ", "Coherence", "관련성", "\u200b", "\u0301", "４", "⒋", " ",
    "It names 3 of 5.", "<|end|>", "<think>", "</think>", "</reasoning>", "four", "One", "四", "네", "٤", "④", "+", "–",
    "1", " out of ", "合", "可", "pass with remarks",
]  # fmt: skip
replies = (
    st.text()
    | st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
    | st.text("0123456789.-−/:*\"'{}[] \n점分score４", max_size=12)
    | st.text(st.characters(categories=["Cs", "Nd", "Mn", "Cf"]))
)


labels = st.text(max_size=4) | st.text("0123456789.-+–٤四", max_size=3) | st.sampled_from(PIECES)
any_scale = st.sampled_from(SCALES) | st.dictionaries(labels, st.floats(-9, 9), max_size=6).map(
    lambda values: Scale(tuple(values), tuple(values.values()))
)


@given(
    replies, st.sampled_from(KINDS), any_scale, st.sampled_from(["", "Coherence", "관련성", "*"])
)
def test_any_text_gives_a_label_or_a_parse_error(
    text: str, kind: ReplyKind, scale: Scale, title: str
) -> None:
    raw = None
    try:
        parsed = find(text, kind, scale, title)
    except ParseError as error:
        raw = error.raw
    if raw is not None:
        assert raw == text
        return
    assert parsed.label in scale.labels
    written, called = fold(text[parsed.start : parsed.end]), label_index(scale)
    # A character such as ⒋ or ⑷ contains more than the label and cannot be split.
    assert parsed.label in {called.label(written), called.label(written.strip("()., "))}
    assert parsed == read(Choice(text), kind, scale, title)


@given(st.text(), st.sampled_from(FOURS), st.sampled_from(KINDS))
def test_thinking_changes_only_the_position(thought: str, text: str, kind: ReplyKind) -> None:
    assume("<" not in thought)
    before = f"<think>{thought}</think>"
    try:
        alone = find(text, kind, FIVE)
    except ParseError as error:
        with pytest.raises(ParseError, match=re.escape(str(error))):
            find(before + text, kind, FIVE)
        return
    moved = ParsedScore("4", alone.start + len(before), alone.end + len(before), alone.reason)
    assert find(before + text, kind, FIVE) == moved


@given(st.sampled_from(SCALES), st.data())
def test_every_label_is_read_in_every_reply_kind(scale: Scale, data: st.DataObject) -> None:
    label = data.draw(st.sampled_from(scale.labels))
    texts = {
        "score": label,
        "score_then_reason": f"{label}\nWhy: 1.",
        "reason_then_score": f"Why: 1.\nScore: {label}",
    }
    for kind in KINDS:
        parsed = find(texts[kind], kind, scale)
        assert (parsed.label, texts[kind][parsed.start : parsed.end]) == (label, label)


# Quotation marks, and scores and sentences inside them.
QUOTES = [
    '""', "''", "“”", "‘’", "«»", "»«", "‹›", "„“", "‚‘", "「」", "『』", "《》", "〝〟", "``", "＂＂", "＇＇", "｢｣",
    ("```\n", "\n```"), ("\n> ", ""),
]  # fmt: skip
FIVES = [
    "Score: 5", "**Final score: 5**", "スコア：5点", "評価：5点です。", "得分：5", "점수: 5점", "[RESULT] 5",
    "【得分】5", '{"score": 5}',
    "Score: [[5]]",
]  # fmt: skip
SENTENCES = st.sampled_from(
    [
        "",
        "It ends with ",
        "Two of 3 names.",
        "It doesn't rhyme. ",
        "文章は",
        "她说：",
        "It's 5'10\". ",
    ]
)


@given(st.sampled_from(QUOTES), st.sampled_from(FIVES), st.data())
def test_a_score_inside_quotation_marks_is_never_the_score(
    marks: Sequence[str], five: str, data: st.DataObject
) -> None:
    opening, closing = marks
    inside = data.draw(
        st.sampled_from(["", "Ignore the rest. ", "良い。", "\n", "So be it.\n", "[1] "])
    )
    quotation = f"{opening}{inside}{five}{closing}"
    before = "".join(data.draw(st.lists(SENTENCES, max_size=3)))
    after = data.draw(st.sampled_from(["", ".", "。", "!", "\n", " .\n\n", "**"]))
    # A fence around the whole reply is not a quotation.
    assume(not (opening.startswith("`") and not before))
    # These quote only a key, and JSON in a fence is a reply.
    assume(five[0] != "{" or closing not in ('"', "＂", "\n```"))
    # A line without the mark is not quoted.
    assume(opening != "\n> " or "\n" not in inside)
    for kind, text in [
        ("reason_then_score", before + quotation + after),
        ("score_then_reason", quotation + "\nGood."),
    ]:
        with pytest.raises(ParseError):
            find(text, kind, FIVE)
    for own_score in ("\nScore: 2", "\n\n**Score**: 2/5", ". Score: 2")[: 3 - (opening == "\n> ")]:
        assert find(f"{before}{quotation}{own_score}", "reason_then_score", FIVE).label == "2"


@given(
    st.lists(
        SENTENCES | st.sampled_from(["He says “so.” ", "a 'b' c", "〈甲〉『乙』。", '"x" and "y"'])
    ),
    st.sampled_from(QUOTES[:-1]),
)
def test_a_score_after_quotations_is_read(sentences: list[str], marks: Sequence[str]) -> None:
    reason = "".join(sentences) + "Its title is {}A b{}".format(*marks)
    for name in ("Score", "スコア", '"score"', "`Score`"):
        assert find(f"{reason}.\n{name}: 2", "reason_then_score", FIVE).label == "2"
    assert find(f"{reason}. Score: `2`", "reason_then_score", FIVE).label == "2"


def test_a_score_after_an_unclosed_quotation_is_refused() -> None:
    for text in (
        "It says “so. Score: 5",
        "文章は「良い。スコア：5",
        'It ends in "this.\n\nScore: 5',
        "> So it is. Score: 5",
        "```\na\n```\nIt has\n```\nScore: 5\n```",
    ):
        with pytest.raises(ParseError, match="inside quotation marks"):
            find(text, "reason_then_score", FIVE)


@pytest.mark.parametrize(
    "text",
    [
        "Relevance score: 2\nCoherence score: 5", "Score: 3\n\nConfidence score: 5", "Score: 2\nMaximum score: 5",
        "Score: 2 (previous score: 5)", "Score: 3. A perfect summary would get a score: 5",
        "관련성 점수: 2\n응집성 점수: 5",
    ],
)  # fmt: skip
def test_a_score_with_another_name_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="does not end with"):
        find(text, "reason_then_score", Scale.integers(1, 5), "Relevance")


@pytest.mark.parametrize(
    ("value", "ends", "step"),
    [
        (4.77, (1, 5), "0.01"), (4.7, (1, 5), "0.1"), (1.33333, (1, 5), "0.01"), (50.25, (0, 100), "0.5"),
        (50.5, (0, 50), None), (7.2, (1, 5), None), (0.5, (1, 5), None), (-0.25, (-1, 1), "0.01"),
    ],
)  # fmt: skip
def test_a_number_between_two_labels_is_an_error_with_the_step_that_allows_it(
    value: float, ends: tuple[int, int], step: str | None
) -> None:
    result = judge.evaluate(
        [{"output": "a b"}],
        {"name": "x", "question": "Good?", "scale": list(ends)},
        model=lambda _: value,
        metrics=[],
    )
    (failure,) = result.failures
    assert ("step:" in failure.message) == (step is not None)
    if step:
        header = {"min": ends[0], "max": ends[1], "step": float(step)}
        assert f"`scale: {{min: {ends[0]}, max: {ends[1]}, step: {step}}}`" in failure.message
        assert read_scale(header).high == ends[1]
