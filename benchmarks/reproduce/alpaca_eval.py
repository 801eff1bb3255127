"""AlpacaEval 2 (Dubois et al. 2024) from the recorded probabilities of its judge.

    python benchmarks/reproduce/alpaca_eval.py [--write]

Each of 805 instructions has the answer of a model and of the baseline gpt4_1106_preview. The judge,
gpt-4-1106-preview, saw them in one random order. Its first token's probabilities are the replies of
a scripted judge here; `judge.rank` makes win rates of them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from figures import DataFile, Figure, Paper, Table, main, read_rows, shown_texts

import judge
from judge.core.records import Request
from judge.stats.equal_length import win_rates

BASELINE = "gpt4_1106_preview"
PUBLISHED = {
    "NullModel": ("76.9198", "86.5"),
    "claude-2": ("17.1882", "28.2"),
    "gpt-3.5-turbo-1106_verbose": ("12.7632", "22.0"),
    "wizardlm-13b": ("5.8782", "9.8"),
    "gemma-2b-it": ("3.4020", "5.4"),
}
"""Win rate and length-controlled win rate (%) in AlpacaEval's leaderboard
weighted_alpaca_eval_gpt4_turbo_leaderboard.csv: with four decimals, and with the one of its page.
"""
ORIGIN = (
    "[tatsu-lab/alpaca_eval](https://github.com/tatsu-lab/alpaca_eval), "
    "`results/MODEL/weighted_alpaca_eval_gpt4_turbo/annotations.json`, as `instruction`, "
    "`output_1`, `output_2`, `preference` and the first token's `top_logprobs`"
)
FILES = tuple(DataFile(f"alpaca_logprobs/{model}.jsonl", ORIGIN) for model in PUBLISHED)
METHOD = (
    "Win rates in per cent against gpt4_1106_preview on 805 instructions, from the recorded "
    "probabilities of gpt-4-1106-preview: `judge rank --against gpt4_1106_preview --orders 1 "
    "--weighting logprobs --min-mass 0`."
)
WIN_RATES = "No preference differs from the published one by more than {:.0e}:"
EQUAL_LENGTH = (
    "AlpacaEval's length-controlled win rate beside judge's win rate at equal length, which is "
    "another estimate ([decision](../../docs/decisions/"
    "0099-win-rates-at-equal-length-are-not-length-controlled.md)):"
)
ALONE = "The same, with a length coefficient for each model, as AlpacaEval has it:"
OTHER_ESTIMATE = (
    "AlpacaEval's regression also has a difficulty of each instruction, from the models of its "
    "leaderboard, and is drawn towards two runs of the baseline in other lengths. Neither is in "
    "the recorded replies, nor in a user's data. judge has one length coefficient for all models."
)
OTHER_ESTIMATE_ALONE = (
    "The difficulty and the two runs of the baseline. Without them, AlpacaEval's own code gives "
    "these figures within 0.3 points."
)


def reproduce(folder: Path) -> Paper:
    """Return the figures of five models."""
    recorded = {
        model: read_rows(folder / "alpaca_logprobs" / f"{model}.jsonl")
        for model in PUBLISHED
    }
    result = ranked(recorded)
    together = standings(result)
    of_all: list[Figure] = []
    at_equal_length: list[Figure] = []
    alone: list[Figure] = []
    for model, (win_rate, controlled) in PUBLISHED.items():
        standing = together[model]
        of_all.append(Figure(model, win_rate, 100 * standing.win_rate))
        at_equal_length.append(
            Figure(model, controlled, 100 * standing.equal_length.value, OTHER_ESTIMATE)
        )
        own = fitted_alone(recorded[model])
        alone.append(Figure(model, controlled, 100 * own, OTHER_ESTIMATE_ALONE))
    return Paper(
        "AlpacaEval 2 (Dubois et al. 2024)",
        METHOD,
        (
            Table("win rate", of_all, WIN_RATES.format(furthest(result, recorded))),
            Table("length-controlled", at_equal_length, EQUAL_LENGTH),
            Table("length-controlled", alone, ALONE),
        ),
    )


def standings(result: judge.Result) -> dict[str, Any]:
    """Return the standings of a ranking by system."""
    return {standing.system: standing for standing in result.rankings[0].standings}


def fitted_alone(rows: list[dict[str, Any]]) -> float:
    """Return one model's win rate (0–1) at equal length, with a length coefficient of its own."""
    estimates = win_rates(
        items=[str(number) for number in range(len(rows))],
        systems=["the model"] * len(rows),
        preferences=[row["preference"] - 1 for row in rows],
        longer=[len(row["output_2"]) - len(row["output_1"]) for row in rows],
    )
    return estimates["the model"].value


def furthest(result: judge.Result, recorded: dict[str, list[dict[str, Any]]]) -> float:
    """Return the largest difference of a preference from the published one."""
    differences: list[float] = []
    for score in result.table.scores:
        if score.system == BASELINE:
            model = score.opponent
            of_model = 1 - score.value
        else:
            model = score.system
            of_model = score.value
        row = recorded[model][int(score.item)]
        differences.append(abs(1 + of_model - row["preference"]))
    if len(differences) != sum(map(len, recorded.values())):
        raise ValueError("some preferences have no value")
    return max(differences)


def ranked(recorded: dict[str, list[dict[str, Any]]]) -> judge.Result:
    """Return judge's ranking of the models against the baseline."""
    texts: list[dict[str, Any]] = []
    known: dict[tuple[str, str, str], dict[str, Any]] = {}
    baseline: dict[str, dict[str, Any]] = {}
    for model, rows in recorded.items():
        for number, row in enumerate(rows):
            item = {"item": str(number), "source": row["instruction"]}
            texts.append({**item, "system": model, "output": row["output_2"]})
            baseline[item["item"]] = {
                **item,
                "system": BASELINE,
                "output": row["output_1"],
            }
            known[row["instruction"], row["output_1"], row["output_2"]] = row
    texts += baseline.values()

    def recorded_reply(request: Request) -> dict[str, float]:
        shown = shown_texts(request)
        first = shown["A"]
        second = shown["B"]
        row = known.get((shown["request"], first, second))
        baseline_is_first = row is not None
        if row is None:
            row = known[shown["request"], second, first]
        of_baseline, of_model = _probabilities(row)
        if baseline_is_first:
            return {"A": of_baseline, "B": of_model}
        return {"A": of_model, "B": of_baseline}

    return judge.rank(
        texts,
        model=judge.ScriptedProvider(recorded_reply),
        against=BASELINE,
        orders=1,
        weighting="logprobs",
        min_mass=0,
        cache=False,
        language="en",
    )


def _probabilities(row: dict[str, Any]) -> tuple[float, float]:
    """Return the recorded probabilities that the baseline and that the model is better.

    The label `m` is the first answer shown, `M` the second; one that is not recorded counts 0. The
    order is not recorded everywhere, but the published preference (1: the baseline, 2: the model)
    tells it.
    """
    mass = {token["token"]: math.exp(token["logprob"]) for token in row["top_logprobs"]}
    first = mass.get("m", 0.0)
    second = mass.get("M", 0.0)
    share = first / (first + second)
    baseline_was_first = abs(2 - share - row["preference"]) <= abs(
        1 + share - row["preference"]
    )
    if baseline_was_first:
        return first, second
    return second, first


if __name__ == "__main__":
    main(FILES, reproduce)
