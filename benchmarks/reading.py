"""How recorded replies of judges are read: strictly, in prose, or not at all. Prints the table of benchmarks/levels.md.

    JUDGE_SHARED=../shared python benchmarks/reading.py

A reading is wrong if it differs from the score that the record's authors read with a parser of their own; their 0 is
a reply that they could not read.
"""

from __future__ import annotations

import sys
from collections import Counter

from common import SHARED, SUMMEVAL, read

from judge.core.errors import ParseError
from judge.core.records import ReplyKind, Scale
from judge.scoring.parse import find

FILES = (
    "summeval_judged/gpt-3.5-turbo-0301_rts", "summeval_judged/gpt-3.5-turbo-0301_mcq", "summeval_judged_smoke",
    "geval_english", "geval_korean",
)  # fmt: skip
FIVE = Scale.integers(1, 5)
VARIANTS: dict[str, tuple[ReplyKind, Scale, str]] = {
    "rts": ("reason_then_score", FIVE, "reason, then score"),
    "stareval": ("score_then_reason", FIVE, "score, then reason"),
    "mcq": ("score", Scale(tuple("ABCDE"), FIVE.values), "a letter"),
    "en": ("score", FIVE, "score, English"),
    "ko": ("score", FIVE, "score, Korean"),
}


def count() -> dict[tuple[str, str], Counter[str]]:
    """Return, by judge and variant, how many replies there are, and how many are read in which way."""
    texts = {row["id"]: row["summary"] for row in read(SUMMEVAL)}
    counts: dict[tuple[str, str], Counter[str]] = {}
    for file in FILES:
        whole = set(counts)  # the small set repeats rows of the others
        for row in read(SHARED / "data" / f"{file}.jsonl"):
            name = row["judge"], row.get("variant") or row["prompt_lang"]
            if name in whole:
                continue
            kind, scale, _ = VARIANTS[name[1]]
            counter = counts.setdefault(name, Counter())
            judged = row.get("summary") or texts[row["item_id"]]
            for text, score in zip(row["responses"], row["scores"], strict=True):
                counter["replies"] += 1
                try:
                    found = find(text, kind, scale, row["criterion"].title(), judged)
                except ParseError:
                    counter["refused"] += 1
                else:
                    counter[found.reading] += 1
                    counter[f"wrong {found.reading}"] += score not in (
                        0,
                        scale.value(found.label),
                    )
    return counts


def main() -> None:
    """Print the table."""
    if missing := [
        file for file in FILES if not (SHARED / "data" / f"{file}.jsonl").exists()
    ]:
        sys.exit(
            f"no recorded replies in {SHARED / 'data'}: {missing[0]}.jsonl; set JUDGE_SHARED to the folder of data/"
        )
    print(
        "| judge | asked for | replies | as requested | from a sentence | refused | wrong |"
    )
    print("|---|---|---|---|---|---|---|")
    for (judge, variant), counter in count().items():
        shares = [
            f"{100 * counter[name] / counter['replies']:.1f}%"
            for name in ("strict", "prose", "refused")
        ]
        wrong = f"{counter['wrong strict']} + {counter['wrong prose']}"
        cells = judge, VARIANTS[variant][2], f"{counter['replies']:,}", *shares, wrong
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
