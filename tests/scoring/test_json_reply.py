"""Replies that are JSON, nearly JSON, or contain it: the score, its position, and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from judge.core.errors import ParseError
from judge.core.records import Choice, ReplyKind, Scale, Token
from judge.scoring import json_reply, parse
from judge.scoring.expectation import from_logprobs
from judge.scoring.multi_criteria import split_reply
from judge.scoring.parse import find, read

FIVE = Scale.integers(1, 5)
KINDS: tuple[ReplyKind, ...] = ("score", "score_then_reason", "reason_then_score")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{'score': 4, 'reason': 'It is \\'fine\\', \"ok\"'}", "It is 'fine', \"ok\""),
        ('{"reason": "Good.", "score": 4,}', "Good."), ('{"reason": ["a", "b",], "score": 4}', None),
        ("{reason: “Good.”, score: 4}", "Good."), ("{‘reason’: ‘Good.’， ‘score’：4}", "Good."),
        ('{"sure": True, "more": None, "score": 4.0}', None), ('{"score": 4/5, "reason": "Good."}', "Good."),
        ('{\n  "score": 4, // of 5, not 3\n  # "score": 1\n  "reason": "a \\_b"\n}', "a _b"),
        ('Here is my evaluation: {"score": 4, "reason": "Good."}', "Good."),
        ('It names 3 of 5. {"score": 4}', "It names 3 of 5."), ('[{"score": 4, "reason": "Good."}]', "Good."),
        ('Sure!\n\n```json\n{"reason": "Good.", "score": 4}\n```\nI hope this helps!', "Good."),
        ('{1: {2}} {"name": "x"}\n```json\n{"score": 4,}\n```\n', None),
        ('{"score": 4, "reason": "Good."}\n\n{"score": 4, "reason": "Good."}', "Good."),
        ('{"result": {"score": 4, "reason": "Good."}}', "Good."), ('{"coherence": 4, "reason": "Good."}', "Good."),
        ('{"Coherence_Score": "4/5", "reason": "Good."}', "Good."), ('{"rating": 4, "reason": "Good."}', "Good."),
    ],
)  # fmt: skip
def test_a_score_in_broken_json_is_read_only_in_prose_mode(text: str, reason: str | None) -> None:
    score = find(text, "reason_then_score", FIVE, "Coherence", judged="It has 4 parts.")
    position = text.rindex("4/5" if "4/5" in text else "4")
    assert (score.label, score.start, text[score.start]) == ("4", position, "4")
    if score.reading == "strict":  # its last line has the requested form
        assert text[0] == "["
        return
    assert (score.reading, score.reason) == ("prose", reason)
    with pytest.raises(ParseError):
        find(text, "reason_then_score", FIVE, "Coherence")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"score": 4} {"score": 5}', "different scores"), ('Good.\n{"score": 3}\n{"score": 4}', "different scores"),
        ('{"score": 4, "score": 4,}', "one key"), ("{'score': 4, 'Score': 5}", "one key"),
        ('{"coherence": 4, "rating": 5}', "one key"), ("{'score': True}", "one key"), ("{score: [4]}", "one key"),
        ('{"a": {"score": 4}, "b": {"score": 5}}', "one key"), ('{"a": {"b": {"score": 4}}}', "one key"),
        ('Here:\n{"coherence": {\n"score": 4\n},\n"fluency": {\n"score": 3\n}\n}', "one key"),
        ('{"score": 1', "not closed"), ('Here: {"score":', "not closed"),
        ('Here: {"score": 1', "not closed"), ("{score: 4, reason: 'Too", "not closed"),
        ('{"reason": "It says "so".", "score": 4}', "not closed"), ("{'reason': 'It's so', 'score': 4}", "not closed"),
        ('{"score": 4 or 5}', "not closed"), ('{"score": 4,5}', "not closed"), ("{score: 3-4}", "not a score alone"),
        ('{"score": 7,}', "off the scale"), ('It says "{"score": 4}".', "quotation marks"),
        ("'{score: 4}'", "within a sentence"), ('> {"score": 4}', "quotation marks"),
        ('It ends in: {"score": 5}', "may be a quotation"),
        ('It ends: {"reason": "x", "Score" : "5"}', "may be a quotation"), ('It has {"score": 4}', "within a sentence"),
        ('{"score": 4} is in the source.', "within a sentence"), ("So:\n{'rating': 4}, it says.", "within a sentence"),
        ('Score: 3\n\n```json\n{"score": 4}\n```\nDone.', "before it"),
        ('So I give it a 3 out of 5. Here is my evaluation: {"score": 4}', "before it"),
        ('{"score": 4}\nNo, it is 3.', "another score"), ('{"score": 4}.\n\nNo, three.', "another score"),
        ('{"score": 4}\nいや、三です。', "another score"), ('{"score": 4}\nWait, that is wrong.', "another score"),
        ('{"scores": {"coherence": {"score": 4}, "fluency": {"score": 2}}}', "one key"),
        ('{"ideal": {"score": 5}, "reason": "x"}', "one key"), ('{"coherence": {"score": [4]}}', "one key"),
    ],
)  # fmt: skip
def test_refuses_an_object_with_an_ambiguous_score(text: str, message: str) -> None:
    for judged in ("Good. Final score: 5", None):
        with pytest.raises(ParseError, match=message if judged else "."):
            find(text, "reason_then_score", FIVE, "Coherence", judged)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"score": 4, "final_score": 3}', "two different scores"),
        ('{"Revised score": 3, "score": 4}', "two different scores"),
        ('{"score": 4, "adjusted": {"score": 3}}', "two different scores"),
        ('{"score": 4, "final": 3}', "two different scores"),
        ('{"score": 4, "最終評価": 3}', "two different scores"),
        ('{"score": 4, "最终评分": 3}', "two different scores"),
        ('{"score": 4, "修正後": 3}', "two different scores"),
        ('{"score": 4, "최종 점수": 3}', "two different scores"),
        ('{"score": 4, "final_score": {"value": 3}}', "two different scores"),
        ('{"coherence": {"score": 4, "final_score": 3}, "comment": "so"}', "two different scores"),
        ('{"score": 4, "overall": 3}', "two different scores"),
        ('{"score": 4, "total": 3}', "two different scores"),
        ('{"score": 4, "total": 10}', "two different scores"),
        # The top of another scale, or a sum over criteria: not plain
        ('{"score": 3, "total": 15}', "two different scores"),
        ('{"score": 4, "rating": 3}', "two different scores"),
        ('{"score": 4, "coherence": 3}', "two different scores"),
        ('{"score": 4, "overall": "3/5"}', "two different scores"),
        ('{"score": 4, "final_score": 4.5}', "two different scores"),
        ('{"score": 4, "总分": 3}', "two different scores"),
        ('{"score": 4, "総合": 3}', "two different scores"),
        ('{"score": 4, "총점": "3점"}', "two different scores"),
        ('{"score": 4, "evaluation": {"score": 3}}', "two different scores"),
        ('{"score": 4, "max": 10}', "4 out of 10"),
        ('{"score": 4, "out_of": "10 points"}', "4 out of 10"),
        ('{"score": 4, "scale": "1-10"}', "4 out of 10"),
    ],
)
def test_refuses_an_object_with_another_score_or_scale(text: str, message: str) -> None:
    for reply in (text, f"Here it is: {text}"):
        with pytest.raises(ParseError, match=message):
            find(reply, "reason_then_score", FIVE, "Coherence", judged="It rained.")


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ('{"score": "A", "winner": "B"}', Scale(("A", "B"), (1.0, 0.0))),
        ('{"score": "yes", "verdict": "no"}', Scale(("no", "yes"), (0.0, 1.0))),
        ('{"score": "yes", "pass": false}', Scale(("no", "yes"), (0.0, 1.0))),
    ],
)
def test_refuses_an_object_with_another_label(text: str, scale: Scale) -> None:
    for kind in KINDS:
        with pytest.raises(ParseError):
            find(text, kind, scale, "Coherence", judged="It rained.")


@pytest.mark.parametrize(
    "member",
    [
        '"final_score": 4',
        '"max_score": 5',
        '"fluency_score": 2',
        '"scale": "1-5"',
        '"total": 5',
        '"total": 4',
        '"overall": "good"',
        '"rating": "4/5"',
        '"evaluation": {"clarity": "good", "flow": 3}',
        '"points": ["clear", "short"]',
        '"pass": true',
    ],
)
def test_an_object_may_repeat_its_score_or_state_its_scale(member: str) -> None:
    text = f'{{"score": 4, {member}}}'
    assert find(text, "reason_then_score", FIVE, "Coherence", judged="").label == "4"


YES_OR_NO = Scale(("no", "yes"), (0.0, 1.0))
TWENTIETHS = Scale(tuple(f"{n / 20:g}" for n in range(21)), tuple(n / 20 for n in range(21)))


@pytest.mark.parametrize(
    ("written", "scale", "expected"),
    [
        ("★★★★☆", FIVE, "4"),
        ("はい", YES_OR_NO, "yes"),
        ("아니요", YES_OR_NO, "no"),
        ("不是", YES_OR_NO, "no"),
        (".85", TWENTIETHS, "0.85"),
        ("ぜひ", YES_OR_NO, None),
        ("Yes and no", YES_OR_NO, None),
    ],
)
def test_the_value_of_an_object_may_be_spelled_as_in_a_plain_reply(
    written: str, scale: Scale, expected: str | None
) -> None:
    text = f'{{"score": "{written}", "reason": "So."}}'
    for kind in KINDS:
        if expected is None:
            with pytest.raises(ParseError):
                find(text, kind, scale, "Coherence", judged="It rained.")
            continue
        score = find(text, kind, scale, "Coherence", judged="It rained.")
        assert (score.label, text[score.start : score.end]) == (expected, written)
        with pytest.raises(ParseError):
            find(text, kind, scale, "Coherence", judged="It rained.", strict=True)


@pytest.mark.parametrize(
    "text",
    [
        '{"scores": {"coherence": {"score": 4, "reason": "Clear."}}}',
        '{"coherence": {"score": 4, "reason": "Clear."}}',
        '{"evaluation": {"score": 4}, "reason": "Clear."}',
        '{"scores": {"coherence": 4}, "reason": "Clear."}',
        '{"output": {"score": 4}, "reason": "Clear."}',
        '{"score": {"value": 4, "reason": "Clear."}}',
        'Here it is:\n{"result": {"final_score": "4/5"}, "reason": "Clear."}',
    ],
)
def test_an_object_inside_an_object_has_the_score(text: str) -> None:
    for kind in KINDS:
        score = find(text, kind, FIVE, "Coherence", judged="It rained.")
        assert (score.label, text[score.start], score.reason) == ("4", "4", "Clear.")
        assert score.reading == "prose"
        with pytest.raises(ParseError):
            find(text, kind, FIVE, "Coherence")


@pytest.mark.parametrize("top", ['"max_score": 5', '"out_of": 5', '"total": 5'])
def test_an_object_for_a_score_alone_may_state_its_top(top: str) -> None:
    assert find(f'{{"score": 4, {top}}}', "score", FIVE, judged="").label == "4"
    with pytest.raises(ParseError):
        find(f'{{"score": 4, {top}0}}', "score", FIVE, judged="")


def test_an_object_for_a_score_alone_has_no_other_number() -> None:
    assert find("{'score': 4, 'sure': True}", "score", FIVE, judged="").reason is None
    for text in ("{'score': 4, 'words': 120}", 'Here: {"score": 4, "parts": [1]}'):
        with pytest.raises(ParseError, match="more than a score"):
            find(text, "score", FIVE, judged="")


# Against the standard library.

words = st.text(max_size=6) | st.text("\"'\\{}[]:,\n a“’", max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=5,
)


def _loads(text: str) -> list[tuple[str, Any]] | None:
    """Return the members of a JSON object by the standard library, or None if it is not one."""
    try:
        members = json.JSONDecoder(strict=False, object_pairs_hook=tuple).decode(text)
    except ValueError:
        return None
    return list(members) if isinstance(members, tuple) else None


@given(
    st.dictionaries(words, values, max_size=3), st.sampled_from([None, 1]), st.booleans(), st.data()
)
def test_an_object_is_strict_if_the_standard_library_reads_it(
    reply_object: dict[str, Any], indent: int | None, ascii_only: bool, data: st.DataObject
) -> None:
    text = json.dumps(reply_object, indent=indent, ensure_ascii=ascii_only)
    if data.draw(st.booleans()):
        at, end = sorted(
            (data.draw(st.integers(1, len(text))), data.draw(st.integers(1, len(text))))
        )
        text = text[:at] + data.draw(st.text("\"'\\{}[]:,1. ntu/#：，", max_size=2)) + text[end:]
    item, expected = json_reply.read_object(text, 0), _loads(text)
    assume("NaN" not in text and "Infinity" not in text)
    assert (item.strict and not item.broken and not text[item.end :].strip(" \t\r\n")) == (
        expected is not None
    )
    if expected is not None:
        assert [m.key for m in item.members] == [key for key, _ in expected]
        for member, (_, value) in zip(item.members, expected, strict=True):
            written = json.JSONDecoder(strict=False, object_pairs_hook=tuple).decode(
                text[member.start : member.end]
            )
            assert written == value
            assert (member.kind == "words") == isinstance(value, str)
            assert member.words == value or member.kind != "words"


BREAKS: dict[str, Callable[[str], str]] = {
    "single quotes": lambda t: t.translate({34: "'", 39: '"'}),
    "literal": lambda t: t[:-1] + ', "more": None}',
    "comma": lambda t: t[:-1] + " ,}",
    "bare keys": lambda t: t.replace('"reason"', "reason").replace('"score"', "score"),
    "curly": lambda t: t.replace('"reason"', "“reason”").replace('"score"', "‘score’"),
    "wide": lambda t: t.replace('": ', '"：'),
    "comment": lambda t: t.replace("{", "{ // 5 of 5, {\n", 1),
    "wrapper": lambda t: f'{{"result": {t}}}',
    "sentence": lambda t: f"Here it is: {t}",
    "fence": lambda t: f"Of 5:\n```json\n{t}\n```\nDone.",
    "list": lambda t: f"[{t}]",
    "twice": lambda t: f"{t}\n{t}",
}


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(["It's 5.", '"score": 5', '", "score": 5, "', "{'score': 5}", "}{", "// 5"]),
    st.sampled_from(FIVE.labels),
    st.booleans(),
    st.lists(st.sampled_from(list(BREAKS)), unique=True, max_size=3),
    st.sampled_from(KINDS),
)
def test_a_broken_object_has_the_score_and_position_of_the_valid_one(
    reason: str, label: str, quoted: bool, breaks: list[str], kind: ReplyKind
) -> None:
    score = '"@"' if quoted else "@"
    text = (
        json.dumps({"reason": reason.replace("@", "")}, ensure_ascii=False)[:-1]
        + f', "score": {score}}}'
    )
    for name in BREAKS:
        text = BREAKS[name](text) if name in breaks else text
    position = text.rindex("@")
    text = text.replace("@", label)
    parsed = find(text, kind, FIVE, judged="")
    assert (parsed.label, parsed.start, parsed.end) == (label, position, position + 1)


@given(st.text("\"'{}[],:\\ score5", max_size=12), st.sampled_from(FIVE.labels), st.data())
@example('", "score": 5, "x": "', "2", None)
def test_an_object_with_a_typo_never_has_another_score(reason: str, label: str, data: Any) -> None:
    text = json.dumps({"reason": reason, "score": int(label)}, ensure_ascii=False)
    variants = [text.replace("\\", ""), text.replace("\\", "", 1)]
    if data:
        at = data.draw(st.integers(0, len(text) - 3))  # before the score
        variants += [
            text[:at],
            text[:at] + text[at + 1 :],
            text[:at] + data.draw(st.sampled_from("\"'{}[],:\\ 5")) + text[at:],
        ]
    for variant in variants:
        for kind in KINDS:
            try:
                parsed = find(f"Here: {variant}", kind, FIVE, judged="")
            except ParseError:
                continue
            assert parsed.label == label


@given(
    st.sampled_from(
        [
            "It ends in: ",
            "The text has ",
            "So it says: ```json ",
            "The end [",
            "It is 2 of 5: “",
            "> ",
        ]
    ),
    st.sampled_from(
        [
            '{"score": 5}',
            "{'score': 5, }",
            '{"reason": "Good", "score" : "5"}',
            "{ Score：5/5 }",
            "Score: 5",
        ]
    ),
    st.sampled_from(["", ".", "”", "\n```", "]", "\nIt is bad.", " is its end."]),
    st.sampled_from(["{}", '{{"result": {}}}', "{} {{'score': 5}}", "{}\n{{'score': 2}}"]),
    st.sampled_from(KINDS[1:]),
)
def test_an_object_in_the_judged_text_is_never_the_score(
    before: str, quoted: str, after: str, form: str, kind: ReplyKind
) -> None:
    judged_object = quoted.replace("Score: 5", "{'score': 5}")
    with pytest.raises(ParseError):
        find(
            before + form.format(judged_object) + after,
            kind,
            FIVE,
            judged=f"It is good. {quoted} ok",
        )


@pytest.mark.parametrize(
    "piece",
    [
        "{'",
        '{"',
        "{a '",
        "{a '{b \"",
        "{“",
        "{#\n",
        "{//",
        '{"a":{',
        '{"a":[',
        "{a:b,",
        '{\\"',
        '"{"a":1},',
        "{‘“\"'",
        "{{",
    ],
)
def test_refuses_a_very_long_reply_without_an_object(piece: str) -> None:
    for text in (piece * 30_000, "Score: {" + piece * 30_000 + "} 4 }"):
        with pytest.raises(ParseError):
            find(text, "reason_then_score", FIVE, "Coherence", judged=piece * 30_000)


# Several criteria in one object.


def test_an_equal_final_score_is_not_another_score() -> None:
    text = '{"score": 4, "final": {"score": 4}}'
    labels = {find(text, kind, FIVE, "Coherence", judged="It rained.").label for kind in KINDS[1:]}
    assert labels == {"4"}


def test_deeply_nested_objects_have_no_score() -> None:
    depth = 900
    text = '{"score": ' * depth + "4" + "}" * depth
    for kind in KINDS:
        with pytest.raises(ParseError):
            find(text, kind, FIVE, "Coherence", judged="It rained.")


@pytest.mark.parametrize(
    ("after", "is_read"),
    [
        ("\nAll facts of the source are in the text.", True),
        ("\n```\n**Note:** one fact is missing.", True),
        ("\nNo fact is missing.", False),
        ("\nQuestion 2 is hard.", False),
        ("\nWait, that is wrong.", False),
        (" is my answer.", False),
    ],
)
def test_text_after_several_answers_must_not_change_them(after: str, is_read: bool) -> None:
    answers = Scale(("no", "yes"), (0.0, 1.0))
    fence = "```json\n" if "```" in after else ""
    choice = Choice(f'{fence}{{"a": "yes", "b": "no"}}{after}')
    labels: list[str] = []
    for part in split_reply(choice, ("a", "b"), "It rained.", (answers,)):
        with pytest.raises(ParseError):
            read(part, "score", answers)
        if is_read:
            labels.append(read(part, "score", answers, judged="It rained.").label)
    assert labels == (["yes", "no"] if is_read else [])


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ('{"A": 4, "B": 2}', "42"), ('{"A": 4, "a": 3, "b": 2}', "-2"),
        ("{'a': 4, 'b': '2',}", "42"), ("Here:\n```json\n{a: 4, b: 2}\n```", "42"), ('{"all": {"a": 4, "b": 2}}', "42"),
        ('It is so: {"a": 4, "b": 7}', "4-"), ("{'a': 4, 'b': 2, 'b': 3}", "4-"), ('{"x": {}} {"a": 4, "b": 2}', "42"),
        ('{"a": 4} {"b": 2}', "--"), ('{"a": 4, "b": 2}\nor so', "--"), ("{'a': 4, 'b': 2", "--"),
        ('It says {"a": 5, "b": 2}.', "--"), ('It says "{"a": 4, "b": 2}', "--"), ('{"x": {"y": {"a": 4}}}', "--"),
    ],
)  # fmt: skip
def test_a_reply_to_several_criteria_may_be_broken_json(text: str, scores: str) -> None:
    choice = Choice(
        text, "stop", tuple(Token(piece, -0.1, ((piece, -0.1), ("5", -3.0))) for piece in text)
    )
    parts = split_reply(choice, ("a", "b"), "It ends in a: 5")
    for part, score in zip(parts, scores, strict=True):
        assert part.finish_reason != "stop"
        with pytest.raises(ParseError):
            read(part, "score", FIVE)
        if score == "-":
            with pytest.raises(ParseError):
                read(part, "score", FIVE, judged="")
            continue
        parsed = read(part, "score", FIVE, judged="")
        assert (parsed.label, parsed.reading) == (score, "prose")
        weighed = from_logprobs(part.tokens or (), parsed.start, parsed.label, FIVE)
        assert weighed.distribution[score] > 0.9
        stored = parse.split_replies(parse.join_replies([part, part]))
        assert [read(again, "score", FIVE, judged="") for again in stored] == [parsed, parsed]
