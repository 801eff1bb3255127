"""GPT-3.5 and GPT-4 as judges of SummEval (Shen et al. 2023, LLM_summeval) on recorded replies.

    python benchmarks/reproduce/llm_summeval.py [--write]

A scripted judge repeats each recorded reply. judge reads its score by its own rules, and has to
come to the scores and correlations that follow from the authors' reading.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

from figures import DataFile, Figure, Paper, Table, main, read_rows, shown_texts
from scipy.stats import spearmanr

import judge
from judge.core.records import Request

CRITERIA = ("coherence", "consistency", "fluency", "relevance")
FIVE = [1, 2, 3, 4, 5]
LETTERS = {"labels": ["A", "B", "C", "D", "E"], "values": FIVE}
ORIGIN = (
    "[DAMO-NLP-SG/LLM_summeval](https://github.com/DAMO-NLP-SG/LLM_summeval), "
    "`eval_model_generations/`, as `item_id`, `judge`, `variant`, `criterion`, `responses`, "
    "`scores` and `human`"
)
FILES = (
    DataFile("summeval_judged/gpt-3.5-turbo-0301_rts.jsonl", ORIGIN),
    DataFile("summeval_judged/gpt-3.5-turbo-0301_mcq.jsonl", ORIGIN),
    DataFile("summeval_judged_smoke.jsonl", ORIGIN),
    DataFile("summeval.jsonl", "see `summeval_rouge.py`"),
)
METHOD = (
    "Scores of one reply per summary and criterion by gpt-3.5-turbo-0301 on 1,200 summaries and by "
    "gpt-4-0314 on 20: `judge run` with a criterion of `reply: reason_then_score` (the authors' "
    "RTS) or of the labels A to E (MCQ), then `judge validate --level all-texts`. Published are the "
    "scores that the authors read in the replies; their correlations are scipy's."
)
LEFT_OUT = (
    "the tables of the paper. Their figures follow from the same scores, but we found no copy to "
    "cite."
)


def reproduce(folder: Path) -> Paper:
    """Return means and correlations of two judges and two forms of reply."""
    texts = {row["id"]: row for row in read_rows(folder / "summeval.jsonl")}
    few = read_rows(folder / "summeval_judged_smoke.jsonl")
    recordings = {
        "GPT-3.5 RTS": read_rows(folder / FILES[0].name),
        "GPT-3.5 MCQ": read_rows(folder / FILES[1].name),
        "GPT-4 RTS": [row for row in few if row["judge"] == "gpt-4-0314"],
    }
    means: list[Figure] = []
    correlations: list[Figure] = []
    for name, recorded in recordings.items():
        validation, scores = judged(recorded, texts, letters=name.endswith("MCQ"))
        for criterion in CRITERIA:
            rows = [row for row in recorded if row["criterion"] == criterion]
            authors = {row["item_id"]: float(row["mean_score"]) for row in rows}
            ours = scores[criterion]
            reason = _reason(authors, ours)
            label = f"{name} {criterion}"
            means.append(
                Figure(
                    label,
                    f"{fmean(authors.values()):.3f}",
                    fmean(ours.values()),
                    reason,
                )
            )
            human = [row["human"] for row in rows]
            published = spearmanr(list(authors.values()), human).statistic
            rated = next(
                each for each in validation.rated if each.criterion == criterion
            )
            estimate = rated.judges[0].correlation.estimates["all-texts", "spearman"]
            correlations.append(
                Figure(label, f"{published:.3f}", estimate.value, reason)
            )
    tables = (Table("mean score", means), Table("Spearman, all texts", correlations))
    return Paper(
        "GPT-3.5 and GPT-4 on SummEval (Shen et al. 2023)", METHOD, tables, LEFT_OUT
    )


def judged(
    recorded: list[dict[str, Any]], texts: dict[str, dict[str, Any]], *, letters: bool
) -> tuple[judge.Validation, dict[str, dict[str, float]]]:
    """Return judge's comparison with people, and its scores by criterion and text."""
    replies: dict[tuple[str, str], str] = {
        (row["criterion"], row["item_id"]): row["responses"][0] for row in recorded
    }
    ids = dict.fromkeys(row["item_id"] for row in recorded)

    def recorded_reply(request: Request) -> str:
        if len(request.messages) > 1:
            return "No repair question was recorded."
        prompt = request.messages[0]["content"]
        criterion = next(name for name in CRITERIA if _question(name) in prompt)
        return replies[criterion, shown_texts(request)["text"]]

    rows = [
        {
            "item": texts[text]["doc_id"],
            "system": texts[text]["system"],
            "source": texts[text]["source"],
            "output": texts[text]["summary"],
            "human": texts[text]["human"],
            # Shown in the prompt, so that equal summaries of two systems have their own replies.
            "text": text,
        }
        for text in ids
    ]
    result = judge.evaluate(
        rows,
        [_criterion(name, letters=letters) for name in CRITERIA],
        model=judge.ScriptedProvider(recorded_reply),
        metrics=[],
        weighting="single",
        cache=False,
    )
    names = {(row["item"], row["system"]): row["text"] for row in rows}
    scores: dict[str, dict[str, float]] = {name: {} for name in CRITERIA}
    for score in result.table.scores:
        scores[score.column][names[score.item, score.system]] = score.value
    # The intervals are not shown, so few resamples do.
    return judge.validate(result, n_resamples=10), scores


def _question(criterion: str) -> str:
    return f"How good is the {criterion} of the summary?"


def _criterion(name: str, *, letters: bool) -> dict[str, Any]:
    criterion = {"name": name, "question": _question(name), "show": ["source", "text"]}
    if letters:
        return {**criterion, "scale": LETTERS}
    return {**criterion, "scale": [1, 5], "reply": "reason_then_score"}


def _reason(authors: dict[str, float], ours: dict[str, float]) -> str:
    """Return why the figures differ: replies without a plain score, if all else is equal."""
    if any(authors[text] != score for text, score in ours.items()):
        return ""
    refused = len(authors) - len(ours)
    return (
        f"judge refuses {refused} of {len(authors):,} replies, which have no plain score; all other "
        "scores are equal."
    )


if __name__ == "__main__":
    main(FILES, reproduce)
