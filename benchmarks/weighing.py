"""What weighing a reply adds to reading it: CPU microseconds a judgment, against the reading alone, in one run."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from judge.core.records import Choice, Response, Token
from judge.criteria import load
from judge.scoring import strategies
from judge.scoring.strategies import SamplingOptions, Strategy

ROUNDS, CALLS = 9, 2_000
_OTHERS = {"The": 0.01, "I": 0.005, "Score": 0.002} | {
    f"word{n}": 0.0005 for n in range(10)
}
TOP = tuple(
    (text, math.log(p))
    for text, p in (
        {"4": 0.5, " 4": 0.1, "5": 0.25, " 5": 0.05, "3": 0.05, "2": 0.01, "1": 0.005}
        | _OTHERS
    ).items()
)


def cpu(work: Callable[[], Any]) -> float:
    """Median CPU microseconds of one call."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(CALLS):
            work()
        times.append((time.process_time() - start) / CALLS * 1e6)
    return statistics.median(times)


def main() -> None:
    """One token; a reason of 120 tokens before it; and twenty draws."""
    criterion = load("coherence")
    short = Response((Choice("4", "stop", (Token("4", TOP[0][1], TOP),)),))
    words = tuple(Token(f" word{n}", -0.1, TOP) for n in range(120))
    form = (
        Token("\nScore", -0.1),
        Token(":", -0.1),
        Token(" ", -0.1),
        Token("4", TOP[0][1], TOP),
    )
    tokens = (*words, *form)
    long = Response((Choice("".join(t.text for t in tokens), "stop", tokens),))
    draws = [Response((Choice(text),)) for text in "44444444444445555553"]
    reasoned = replace(criterion, reply="reason_then_score")

    def reading(rung: Strategy, answers: list[Response], by: Any) -> float:
        return cpu(lambda: strategies.score_reply(rung, answers, by, SamplingOptions()))

    for what, rung, answers, by in (
        ("one token, 20 alternatives", "logprobs", [short], criterion),
        ("a reason of 120 tokens, then the score", "logprobs", [long], reasoned),
        ("twenty draws", "samples", draws, criterion),
    ):
        weighed = reading(rung, answers, by)  # type: ignore[arg-type]
        single = reading("single", answers[:1], by)
        print(
            f"{what}: {weighed:.1f} us, {weighed - single:.1f} us more than reading one reply ({single:.1f} us)"
        )


if __name__ == "__main__":
    main()
