"""Compare two systems that shorten notices. The judge is scripted: no key, no network."""

from pathlib import Path

import judge

NOTICES = [  # item, notice, text of `plain`, text of `lively`
    (
        "pool",
        "The pool is shut until Friday: its pump broke.",
        "Pool shut until Friday.",
        "News from the pool!",
    ),
    (
        "bus",
        "From 1 May bus 4 stops at the mill, not the inn.",
        "From 1 May bus 4 stops at the mill.",
        "Bus 4 moves!",
    ),
    (
        "fair",
        "The fair is cancelled; stall fees are paid back.",
        "No fair; fees paid back.",
        "What about the fair?",
    ),
    (
        "water",
        "Boil the water in Hill Road until Sunday.",
        "Hill Road: boil water until Sunday.",
        "Thirsty? Read on!",
    ),
    (
        "vote",
        "The vote is on 3 June. Bring a passport.",
        "Vote on 3 June, with a passport.",
        "Vote on 3 June!",
    ),
    (
        "lamp",
        "Lamp 12 is mended. Lamp 14 waits for a part.",
        "Lamp 12 is mended.",
        "One lamp is mended, one waits.",
    ),
    (
        "key",
        "A key was found at the ford. Ask at the inn.",
        "Key found at the ford: ask at the inn.",
        "Lost a key?",
    ),
    (
        "market",
        "The market is on Tuesday this week.",
        "Market on Tuesday this week.",
        "The market is on!",
    ),
]
rows = [
    {"item": item, "system": system, "source": notice, "output": text}
    for item, notice, *texts in NOTICES
    for system, text in zip(("plain", "lively"), texts, strict=True)
]
replies = Path(__file__).with_name("replies.yaml")  # or: model="gpt-5.4-mini"
print(
    judge.evaluate(
        rows, ["relevance"], model=f"scripted/{replies}", metrics=[], cache=False
    ).report()
)
