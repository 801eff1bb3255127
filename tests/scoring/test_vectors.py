"""The scoring vectors: judge and a scorer written from vectors.md agree with them, and a careless scorer does not.

The expected numbers follow from shares that a person read from each vector. `Independent` uses no code of judge.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from judge.core.errors import ParseError
from judge.core.records import Choice, Criterion, Provenance, Response, Scale, Score, Token
from judge.scoring import strategies
from judge.stats.compared_pairs import verdict

LINES = Path(__file__).with_name("vectors.jsonl").read_text("utf-8").rstrip("\n").split("\n")
VECTORS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
FIELDS = {"logprobs": "tokens", "draws": "draws", "reply": "text", "pair": "orders"}
NUMBERS = {"value", "mass", "low", "high", "ambiguous", "n"}


def differences(vector: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
    """Return the fields in which an answer differs from the expected one."""
    expected = vector["expected"]
    if "error" in expected or "error" in answer:
        both_fail = "error" in expected and "error" in answer
        return [] if both_fail else ["error"]
    different = []
    for field in expected.keys() & answer.keys():
        tolerance = 1e-5 if field in NUMBERS else None
        if not is_equal(answer[field], expected[field], tolerance):
            different.append(field)
    return different


def is_equal(value: Any, expected: Any, tolerance: float | None) -> bool:
    if tolerance is None:
        return bool(value == expected)
    return bool(abs(value - expected) < tolerance)


RULES = sorted({f"{v['kind']}-{v['rule']}" for v in VECTORS})
"""Kind and rule of each vector. Each pair is a test, which lists the vectors that disagree."""


def disagreements(
    rule: str, answer: Callable[[Mapping[str, Any]], Mapping[str, Any]], level: str = ""
) -> list[Any]:
    chosen = [
        v for v in VECTORS if f"{v['kind']}-{v['rule']}" == rule and level in (v["level"], "")
    ]
    return [(v["id"], problems) for v in chosen if (problems := differences(v, answer(v)))]


# judge's scorer.


def logprob(p: float | None) -> float:
    return math.nan if p is None else math.log(p) if p > 0 else -9999.0


def choice(
    vector: Mapping[str, Any], tokens: Sequence[Mapping[str, Any]] | None, text: str = ""
) -> Choice:
    if tokens is None:
        return Choice(text, vector.get("finish", "stop"))
    reply_tokens = tuple(
        Token(t["text"], logprob(t["p"]), tuple((text, logprob(p)) for text, p in t["top"]))
        for t in tokens
    )
    return Choice("".join(t.text for t in reply_tokens), vector.get("finish", "stop"), reply_tokens)


def answer_of_judge(vector: Mapping[str, Any], *, strict: bool) -> dict[str, Any]:
    scale = Scale(tuple(vector["scale"]["labels"]), tuple(map(float, vector["scale"]["values"])))
    criterion = Criterion("c", "", scale, vector["reply"], title=vector.get("title", ""))

    def score(strategy: strategies.Strategy, *choices: Choice) -> tuple[float, Provenance]:
        judged = None if strict else vector.get("judged", "")
        replies = [Response((c,)) for c in choices]
        return strategies.score_reply(
            strategy, replies, criterion, strategies.SamplingOptions(), judged=judged
        )

    try:
        if vector["kind"] == "pair":
            rows = [
                Score("i", "a", "c", *score("logprobs", choice(vector, tokens)))
                for tokens in vector["orders"]
            ]
            combined = verdict(*rows)
            return {"value": combined.preference, "flipped": combined.flipped}
        if vector["kind"] == "logprobs":
            value, provenance = score("logprobs", choice(vector, vector["tokens"]))
        elif vector["kind"] == "draws":
            value, provenance = score(
                "samples", *(choice(vector, None, text) for text in vector["draws"])
            )
        else:
            value, provenance = score("single", choice(vector, None, vector["text"]))
            return {"value": value, "argmax": provenance.argmax}
    except ParseError as error:
        return {"error": str(error)}
    return {
        "value": value,
        "mass": provenance.mass,
        "low": provenance.low,
        "high": provenance.high,
        "argmax": provenance.argmax,
        "n": provenance.n,
    }


@pytest.mark.parametrize("rule", RULES)
def test_judge_agrees_with_every_vector(rule: str) -> None:
    assert disagreements(rule, partial(answer_of_judge, strict=False)) == []
    # The core vectors are read in strict mode, too.
    assert disagreements(rule, partial(answer_of_judge, strict=True), "core") == []


# A scorer written only from the rules in vectors.md.

WORDS = "zero ゼロ|one 一|two 二|three 三|four 四|five 五|six 六|seven 七|eight 八|nine 九|ten 十"
COUNTED = "|일|이 두 两|삼 세|사 네|오|육|칠|팔|구|십"  # words that are a number with a unit only
BEFORE = (
    r"[\s\ufeff*]*(?:```json\s*)?(?:\{.*\"score\":\s*\"?|(?:\w+|文章|文本|글)\s*[:：]\s*"
    r"|[^\d\n]*5[^\d\n]+(?=\d)|文章|文本|글 )?[\s*]*"
)
AFTER = r"(?:/5|点|점|分|입니다|です|[*.。\s]|\"?\}|```)*"


class Independent:
    """Score a vector by the rules of vectors.md."""

    def __init__(self, vector: Mapping[str, Any]) -> None:
        self.vector = vector
        self.values = dict(zip(vector["scale"]["labels"], vector["scale"]["values"], strict=True))
        self.spellings = {label.lower(): label for label in self.values}
        for n, (words, counted) in enumerate(
            zip(WORDS.split("|"), COUNTED.split("|"), strict=True)
        ):
            if str(n) in self.values:
                self.spellings |= dict.fromkeys(
                    [f"+{n}"] * (min(self.values.values()) < 0) + words.split(), str(n)
                )
                self.spellings |= {
                    w + s + u: str(n) for w in counted.split() for s in ("", " ") for u in "点점分"
                }

    def fold(self, text: str) -> str:
        text = unicodedata.normalize("NFKC", re.sub("[\u200b\ufeff]", "", text)).replace(
            "\u2212", "-"
        )
        return text.lower().lstrip(' *`"\n')

    def label(self, text: str) -> str | None:
        text = self.fold(text)
        if "." in text and re.sub(r"\.?0+$", "", text) in self.spellings:
            return self.spellings[re.sub(r"\.?0+$", "", text)]
        for end in range(len(text), 0, -1):
            if text[:end] in self.spellings and re.fullmatch(AFTER, text[end:]):
                return self.spellings[text[:end]]
        return None

    def grown(self, text: str) -> set[str]:
        start = self.fold(text)
        return {
            label
            for name, label in self.spellings.items()
            if name.startswith(start) and name != start
        }

    def start(self, text: str) -> int:
        """Return where the score begins."""
        if self.vector.get("finish", "stop") != "stop":
            raise ValueError("cut")
        start = text.rfind("</think>") + len("</think>") if "</think>" in text else 0
        if "<think>" in text[start:]:
            raise ValueError("in thinking")
        if self.vector["reply"] == "reason_then_score" and not text.startswith("{"):
            name = re.search(r"\n\s*(?:score|スコア|점수|得分)\s*[:：]\s*(?=[^\n]*$)", text, re.I)
            if name is None:
                raise ValueError("no score at the end")
            return name.end()
        return re.compile(BEFORE, re.S).match(text, start).end()  # type: ignore[union-attr]

    def read(self, text: str) -> str | None:
        try:
            line = text[self.start(text) :]
        except ValueError:
            return None
        return self.label(line if self.vector["reply"] == "score" else line.strip().split("\n")[0])

    def weigh(self, tokens: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Follow the written label. Every other token is a label, ambiguous, or no label."""
        text = "".join(t["text"] for t in tokens)
        start = self.start(text)
        at = next(
            i for i in range(len(tokens)) if sum(len(t["text"]) for t in tokens[: i + 1]) > start
        )
        head = text[sum(len(t["text"]) for t in tokens[:at]) : start]
        shares: Counter[str] = Counter()
        doubts: list[tuple[float, set[str | None]]] = []
        prefix, weight, unseen = "", 1.0, 0.0
        for token in tokens[at:]:
            chosen = token["text"]
            listed = {chosen: 0.0}
            for alternative, p in [*token["top"], (chosen, token["p"])]:
                if p is not None and 0 <= p < 1.001:
                    listed[alternative] = max(min(p, 1.0), listed.get(alternative, 0.0))
            total = max(1.0, sum(listed.values()))
            missing = weight * (1 - sum(listed.values()) / total)
            if prefix:
                doubts.append((missing, {self.label(prefix), *self.grown(prefix)}))
            else:
                unseen = missing
            for alternative in listed.keys() - {chosen}:
                written = prefix + (alternative if prefix else alternative.removeprefix(head))
                share = weight * listed[alternative] / total
                label = self.label(written)
                labels = {*self.grown(written), *([label] if label else [])}
                if labels - {label}:
                    doubts.append((share, labels | ({None} if len(labels) == 1 else set())))
                elif label:
                    shares[label] += share
            prefix += chosen.removeprefix(head) if not prefix else chosen
            label, weight = self.label(prefix), weight * listed[chosen] / total
            if not self.grown(prefix):
                break
        if label:
            shares[label] += weight
        return self.describe(shares, [d for d in doubts if d[0] > 1e-12], unseen)

    def describe(
        self,
        shares: Mapping[str, float],
        doubts: Sequence[tuple[float, set[str | None]]],
        unseen: float,
    ) -> dict[str, Any]:
        mass = sum(shares.values())
        if mass < 0.5:
            return {"error": "mass"}
        value = sum(p * self.values[label] for label, p in shares.items()) / mass
        cases = [(value * mass, mass)]
        for p, labels in [*doubts, (unseen, set(self.values))]:
            cases = [
                (s + p * self.values[x], m + p) if x else (s, m) for s, m in cases for x in labels
            ]
        low, high = min(s / m for s, m in cases), max(s / m for s, m in cases)
        slack = 0.001 * (max(self.values.values()) - min(self.values.values()))
        if not low - slack <= value <= high + slack:
            return {"error": "outside its bounds"}
        return {
            "value": value,
            "mass": mass,
            "low": low,
            "high": high,
            "argmax": max(shares, key=shares.__getitem__),
        }

    def answer(self) -> dict[str, Any]:
        try:
            if self.vector["kind"] == "logprobs":
                return self.weigh(self.vector["tokens"])
            if self.vector["kind"] == "pair":
                first, second = (self.weigh(tokens)["value"] for tokens in self.vector["orders"])
                return {"value": (first + 1 - second) / 2}
        except ValueError as error:
            return {"error": str(error)}
        labels = [self.read(text) for text in self.vector["draws"]]
        counts = Counter(label for label in labels if label)
        if not counts:
            return {"error": "no draw"}
        shares = {label: n / len(labels) for label, n in counts.items()}
        mass = sum(shares.values())
        return {
            "value": sum(p * self.values[x] for x, p in shares.items()) / mass,
            "mass": mass,
            "n": counts.total(),
        }


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.startswith("reply-")])
def test_a_scorer_written_from_the_rules_agrees_with_every_vector(rule: str) -> None:
    assert disagreements(rule, lambda vector: Independent(vector).answer()) == []


def careless(vector: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first digit of the reply, weighted by the first token that has one."""
    texts = vector.get("draws") or [vector.get("text", "")]
    if vector["kind"] == "logprobs":
        top = next((t["top"] for t in vector["tokens"] if t["text"].strip().isdecimal()), [])
        listed = [(int(text), p) for text, p in top if text.strip().isdecimal() and p]
        if listed:
            return {"value": sum(n * p for n, p in listed) / sum(p for _, p in listed)}
        texts = ["".join(t["text"] for t in vector["tokens"])]
    digits = [int(digit[0]) for text in texts if (digit := re.search(r"\d", text))]
    return {"value": sum(digits) / len(digits)} if digits else {"error": "no digit"}


@pytest.mark.parametrize(("kind", "share"), [("logprobs", 0.5), ("draws", 0.6), ("reply", 0.4)])
def test_a_careless_scorer_fails_many_vectors(kind: str, share: float) -> None:
    vectors = [v for v in VECTORS if v["kind"] == kind]
    wrong = sum(bool(differences(v, careless(v))) for v in vectors)
    assert wrong > share * len(vectors)


# The file.


def test_every_vector_is_complete_with_consistent_numbers() -> None:
    assert len({v["id"] for v in VECTORS}) == len(VECTORS)
    assert {v["language"] for v in VECTORS} == {"en", "ja", "ko", "zh"}
    for v in VECTORS:
        assert v["id"].startswith(f"{v['kind']}-{v['language']}-{v['rule']}-")
        assert [name for name in ("tokens", "draws", "text", "orders") if name in v] == [
            FIELDS[v["kind"]]
        ]
        values, expected = v["scale"]["values"], v["expected"]
        assert len(values) == len(v["scale"]["labels"]) == len(set(v["scale"]["labels"]))
        assert list(expected) == ["error"] or min(values) <= expected["value"] <= max(values)
        if "low" in expected:
            assert expected["low"] - 1e-3 <= expected["value"] <= expected["high"] + 1e-3
        for token in [*v.get("tokens", []), *(t for order in v.get("orders", []) for t in order)]:
            assert list(token) == ["text", "p", "top"]
            assert all(len(pair) == 2 for pair in token["top"])


def test_every_rule_of_the_vectors_is_in_vectors_md() -> None:
    page = Path(__file__).with_name("vectors.md").read_text("utf-8")
    assert {v["rule"] for v in VECTORS} == set(
        re.findall(r"^- `([a-z-]+)`:", page.partition("## Rules")[2], re.M)
    )
