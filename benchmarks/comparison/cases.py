"""What every tool of the comparison judges: 160 invented replies of a shop, by four criteria from 1 to 5.

Only the standard library is imported, so that the script of each tool can read this in its own environment.
"""

from __future__ import annotations

import json
import math
import os
import random
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

MODEL = "gpt-4.1-mini"
"""A model that every tool knows. The server answers to any name."""
CONCURRENCY = 32
ITEMS_VARIABLE = "JUDGE_COMPARED_ITEMS"
ITEMS = int(os.environ.get(ITEMS_VARIABLE, "40"))
"""Questions, each with four replies; 40 make 640 judgments. Set the variable for a quick try."""
SYSTEMS = ("first", "second", "third", "fourth")
CRITERIA = {
    "clear": "Is the reply easy to understand?",
    "polite": "Does the reply treat the customer with respect?",
    "complete": "Does the reply answer every part of the question?",
    "brief": "Does the reply leave out what the customer does not need?",
}
LABELS = (1, 2, 3, 4, 5)
SCALE = "Give a score from 1 (not at all) to 5 (entirely)."
RUBBISH = (
    "",
    "I'm sorry, but I can't help with that.",
    '{"score": ',
    "I found 4 errors in this text.",
)
RUBBISH_EVERY = 20
"""One in so many replies is rubbish: 5%."""
_NUMBER = re.compile(
    r"order no\. (\d{3})"
)  # "order no. 017" names the text in a prompt


@dataclass(frozen=True)
class Text:
    """A reply to a customer."""

    number: int
    item: str
    system: str
    source: str
    output: str


@dataclass(frozen=True)
class Judged:
    """What a tool made of one text and criterion. Without a score, `error` is what the tool shows instead."""

    number: int
    criterion: str
    score: float | None
    error: str = ""


def texts() -> list[Text]:
    """Return the 160 replies: four systems on 40 questions."""
    chance = random.Random(1)
    words = [
        "parcel",
        "label",
        "refund",
        "shop",
        "address",
        "week",
        "invoice",
        "colour",
    ]
    words += ["size", "exchange", "box", "courier"]
    made = []
    for item in range(ITEMS):
        source = f"Customer {item}: " + " ".join(
            chance.choice(words) for _ in range(120)
        )
        for place, system in enumerate(SYSTEMS):
            number = item * len(SYSTEMS) + place
            body = " ".join(chance.choice(words) for _ in range(60))
            output = f"About your order no. {number:03d}: {body}."
            made.append(Text(number, f"item-{item}", system, source, output))
    return made


def probabilities(number: int, criterion: str) -> dict[int, float]:
    """Return the probability that the server gives each label."""
    chance = random.Random(f"{number} {criterion}")
    weights = {label: math.exp(chance.uniform(-3, 3)) for label in LABELS}
    total = sum(weights.values())
    return {label: weight / total for label, weight in weights.items()}


def expectation(number: int, criterion: str) -> float:
    """Return the mean over the probabilities, from 1 to 5: the score that an exact tool returns."""
    shares = probabilities(number, criterion)
    return sum(label * share for label, share in shares.items())


def label(number: int, criterion: str) -> int:
    """Return the most probable label, which the server writes."""
    shares = probabilities(number, criterion)
    return max(shares, key=shares.__getitem__)


def rubbish(number: int, criterion: str) -> tuple[str, bool] | None:
    """Return the reply without a score for this text and criterion, or None if it has a score.

    The second part says whether the server repeats it; half of them come only once.
    """
    index = number * len(CRITERIA) + list(CRITERIA).index(criterion)
    block, place = divmod(index, RUBBISH_EVERY)
    if place != block % RUBBISH_EVERY:
        return None
    return RUBBISH[block % len(RUBBISH)], block // len(RUBBISH) % 2 == 0


def found_in(prompt: str) -> tuple[int, str] | None:
    """Return the text and the criterion that a prompt asks about, or None if it asks about none."""
    number = _NUMBER.search(prompt)
    names = [name for name, question in CRITERIA.items() if question in prompt]
    if number is None or len(names) != 1:
        return None
    return int(number.group(1)), names[0]


def arguments() -> tuple[str, Path, Path]:
    """Return what a script was started with: base URL, file for the results, folder that survives a kill."""
    url, results, folder = sys.argv[1:]
    return url, Path(results), Path(folder)


def write(path: Path, judged: Iterable[Judged]) -> None:
    """Write what a tool made of the texts, for the script that compares."""
    path.write_text(json.dumps([asdict(each) for each in judged]), encoding="utf-8")
