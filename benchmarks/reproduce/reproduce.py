"""Published figures again, from the recorded replies of the judges that made them: README.md beside it.

    python benchmarks/reproduce/reproduce.py FOLDER

The folder holds the public files that `SOURCES` lists. AlpacaEval 2: 805 pairs a model, judged by gpt-4-1106-preview,
whose first token's probabilities were recorded; `judge.rank` in one order has to give each published preference and the
published win rate. G-Eval: twenty recorded replies of GPT-4 to each summary; `judge.evaluate` has to give their own
means, from draws and from the same draws as probabilities. SummEval: how ROUGE goes with people's ratings of 1,600
summaries, the baselines of `judge.validate`.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import judge
from judge.core.records import Choice, Request, Response

PREFERENCE, WIN_RATE, MEAN, CORRELATION = 1e-6, 0.01, 1e-6, 0.002
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-Lsum"}
CRITERIA = ("coherence", "consistency", "fluency", "relevance")
PUBLISHED = {
    "rouge1": ((0.1668, 0.1256), (0.1596, 0.1300), (0.1150, 0.0939), (0.3264, 0.2516)),
    "rouge2": ((0.1839, 0.1391), (0.1868, 0.1554), (0.1588, 0.1282), (0.2899, 0.2194)),
    "rougeLsum": ((0.1286, 0.0991), (0.1151, 0.0917), (0.1050, 0.0842), (0.3111, 0.2373)),
}
"""Spearman and Kendall of each criterion: the ROUGE rows of Yuan et al. 2021."""
_BARTSCORE = "[neulab/BARTScore](https://github.com/neulab/BARTScore), `SUM/SummEval/data.pkl`"
_GEVAL = (
    "[gyuhyeonseo/G-EVAL](https://github.com/gyuhyeonseo/G-EVAL), `results/geval4_rel_{0}_{0}.json`"
)
SOURCES = {
    "alpaca_logprobs/*.json*": (
        "[tatsu-lab/alpaca_eval](https://github.com/tatsu-lab/alpaca_eval), "
        "`results/MODEL/weighted_alpaca_eval_gpt4_turbo/annotations.json`",
        "as published; one file per model, named MODEL.json",
    ),
    "geval_english.json*": (_GEVAL.format("eng"), "as published"),
    "geval_korean.json*": (_GEVAL.format("kor"), "as published"),
    "summeval.jsonl": (
        _BARTSCORE,
        "converted to one object per line: `doc_id`, `system`, `source`, `references` (11), `summary`, `human`",
    ),
}
"""Files by name: where they are public, and the fields that this script reads."""
_TEXT = re.compile(r"<(\w+) ([0-9a-f]+)>\n(.*?)\n</\1 \2>", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """One figure: what it is of, what was published, what came out, and the largest difference of a single value."""

    what: str
    n: int
    requests: int
    published: float
    found: float
    low: float | None
    high: float | None
    worst: float
    met: bool


@dataclass(frozen=True)
class Cell:
    """How one ROUGE goes with people's ratings of one criterion: published, and found with its interval."""

    name: str
    criterion: str
    coefficient: str
    published: float
    found: float
    low: float | None
    high: float | None

    @property
    def met(self) -> bool:
        return abs(self.found - self.published) <= CORRELATION


def main() -> None:
    """Make every figure and write the page; exit 1 if one of them is off, 2 if a file is missing."""
    folder = Path(
        sys.argv[1] if len(sys.argv) > 1 else os.environ.get("JUDGE_SHARED", "../shared") + "/data"
    )
    if missing := [name for name in SOURCES if not any(folder.glob(name))]:
        lines = [f"  {name}: {SOURCES[name][0]}; {SOURCES[name][1]}" for name in missing]
        print(
            f"reproduce: {folder} lacks",
            *lines,
            "Download them, and name their folder.",
            sep="\n",
            file=sys.stderr,
        )
        sys.exit(2)
    alpaca = [
        preferences(path)
        for path in sorted((folder / "alpaca_logprobs").glob("*.json*"))
        if path.stem != "index"
    ]
    geval = [
        estimate(folder, language, how, weighting)
        for language in ("english", "korean")
        for how, weighting in (("20 draws", "samples"), ("token probabilities", "logprobs"))
    ]
    page = Path(__file__).with_name("README.md")
    baselines = correlations(folder / "summeval.jsonl")
    page.write_text(_page(alpaca, geval, baselines), encoding="utf-8")
    print(page.read_text(encoding="utf-8"))
    sys.exit(0 if all(line.met for line in [*alpaca, *geval, *baselines]) else 1)


def _texts(request: Request) -> dict[str, str]:
    """The texts of a prompt by the names in their marks."""
    return {name: text for name, _, text in _TEXT.findall(request.messages[0]["content"])}


def preferences(path: Path) -> Line:
    """One model's answers against the baseline's, beside the published preferences (1 to 2, of the second output)."""
    rows = {str(number): row for number, row in enumerate(_rows(path))}
    known = {(row["instruction"], row["output_1"], row["output_2"]): row for row in rows.values()}

    def script(request: Request) -> dict[str, float]:
        texts = _texts(request)
        first, second = texts["A"], texts["B"]
        row = known.get((texts["request"], first, second)) or known[texts["request"], second, first]
        recorded = (
            row.get("top_logprobs")
            or row["raw_completion"]["logprobs"]["content"][0]["top_logprobs"]
        )
        mass = {token["token"]: math.exp(token["logprob"]) for token in recorded}
        m, other = mass.get("m", 0.0), mass.get("M", 0.0)
        share = m / (m + other)
        # The outputs were shown in a random order, which the published preference tells: 2 - share or 1 + share.
        m_is_first = abs(2 - share - row["preference"]) <= abs(1 + share - row["preference"])
        of_first = m if m_is_first == (first == row["output_1"]) else other
        return {"A": of_first, "B": m + other - of_first}

    columns = ("instruction", "output_1", "output_2")
    result = judge.rank(
        [{"item": item, **{name: row[name] for name in columns}} for item, row in rows.items()],
        model=judge.ScriptedProvider(script), systems=columns[1:], map={"source": "instruction"},
        orders=1, weighting="logprobs", min_mass=0, cache=False, language="en",
    )  # fmt: skip
    second = {
        s.item: s.value if s.system == "output_2" else 1 - s.value for s in result.table.scores
    }
    worst = max(abs(1 + second.get(item, 9.0) - row["preference"]) for item, row in rows.items())
    published = 100 * (fmean(row["preference"] for row in rows.values()) - 1)
    (won,) = (
        standing for standing in result.rankings[0].standings if standing.system == "output_2"
    )
    rate, low, high = (100 * (value or 0.0) for value in (won.win_rate, won.low, won.high))
    met = worst < PREFERENCE and abs(rate - published) < WIN_RATE
    return Line(
        path.stem,
        len(rows),
        result.info.requests.sent,
        published,
        rate,
        low,
        high,
        worst,
        met,
    )


def estimate(folder: Path, language: str, how: str, weighting: str) -> Line:
    """The relevance of twenty summaries, beside the means of the recorded replies."""
    (path,) = folder.glob(f"geval_{language}.json*")
    rows = {row.get("summary") or row["system_output"]: row for row in _rows(path)}
    replies = {output: row.get("responses") or row["all_responses"] for output, row in rows.items()}
    recorded = {output: fmean(map(_number, each)) for output, each in replies.items()}

    def script(request: Request) -> Any:
        drawn = replies[_texts(request)["output"]]
        if weighting == "samples":
            return Response(tuple(map(Choice, drawn)))
        return {f"{label:g}": n / len(drawn) for label, n in Counter(map(_number, drawn)).items()}

    result = judge.evaluate(
        [{"item": output, "source": row["source"], "output": output} for output, row in rows.items()],
        "relevance", model=judge.ScriptedProvider(script), metrics=[], weighting=weighting, cache=False,
    )  # fmt: skip
    values = {score.item: score.value for score in result.table.scores}
    worst = max(abs(values.get(item, 9.0) - mean) for item, mean in recorded.items())
    (mean,) = result.estimates.values()
    published = fmean(recorded.values())
    requests = result.info.requests.sent
    name = f"{language.capitalize()}, {how}"
    return Line(
        name,
        len(recorded),
        requests,
        published,
        mean.value,
        mean.low,
        mean.high,
        worst,
        worst < MEAN,
    )


def correlations(path: Path) -> list[Cell]:
    """The baselines that `judge validate` shows for SummEval, beside the published rows."""
    options = {"types": list(ROUGE), "multi": "mean"}
    columns = {"item": "doc_id", "output": "summary"}
    result = judge.evaluate(
        path, [], metrics=["rouge"], set={"rouge": options}, map=columns, cache=False
    )
    rows = judge.validate(result).rated
    found = []
    for key, name in ROUGE.items():
        for rated in rows:
            published = PUBLISHED[key][CRITERIA.index(rated.criterion)]
            (row,) = (row for row in rated.baselines if row.name == name)
            for value, coefficient in zip(published, ("spearman", "kendall"), strict=True):
                e = row.correlation.estimates["document", coefficient]
                found.append(
                    Cell(name, rated.criterion, coefficient, value, e.value, e.low, e.high)
                )
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON list or of a file with one object per line."""
    text = path.read_text("utf-8")
    rows: list[dict[str, Any]] = (
        json.loads(text)
        if text.startswith("[")
        else [json.loads(line) for line in text.splitlines()]
    )
    return rows


def _number(reply: str) -> float:
    """The score of a recorded reply: all of them end in it ("4", "\\n2", "Relevance: 2")."""
    return float(re.findall(r"\d+", reply)[-1])


def _page(alpaca: Sequence[Line], geval: Sequence[Line], baselines: Sequence[Cell]) -> str:
    return f"""# Reproduced figures

`benchmarks/reproduce/reproduce.py FOLDER` recomputes published figures from recorded replies and writes this page. No
model is asked. Intervals are judge's own: 95%, over items. Download into the folder:

| file | public source | content |
|---|---|---|
{_sources()}

## AlpacaEval 2 (Dubois et al. 2024)

Win rates in per cent against the baseline on {alpaca[0].n} items, from the first token's probabilities of
gpt-4-1106-preview, with one order per pair as published: `judge rank --orders 1 --weighting logprobs --min-mass 0`.
Equal answers need no request. The last column is the largest difference from a published preference (1 to 2). The
tolerance is {PREFERENCE:g} for a preference and {WIN_RATE:g} points for a win rate.

{_table("model", "published", alpaca)}

## G-Eval (Liu et al. 2023)

Mean relevance of {geval[0].n} summaries from twenty recorded replies of GPT-4 each, and from the same replies as token
probabilities. The last column is the largest difference for one summary.

{_table("language, method", "mean of replies", geval)}

## ROUGE on SummEval (Fabbri et al. 2021; rows as in Yuan et al. 2021)

Correlation of ROUGE with experts' ratings of 1,600 summaries, within each document over 16 systems, averaged over the
documents in which both vary. The published figures used ROUGE-1.5.5 (stemmed, F, mean over 11 references). `judge
validate` computes ROUGE as a baseline with rouge-score's stemmer. The tolerance is {CORRELATION:g}; the largest
difference is {_furthest(baselines):.4f}.

{_cells(baselines)}
"""


def _sources() -> str:
    return "\n".join(
        f"| `{name}` | {source} | {fields} |" for name, (source, fields) in SOURCES.items()
    )


def _furthest(baselines: Sequence[Cell]) -> float:
    return max(abs(cell.found - cell.published) for cell in baselines)


def _cells(baselines: Sequence[Cell]) -> str:
    lines = [
        "| | criterion | Spearman, published | found | Kendall tau-b, published | found |",
        "|---" * 6 + "|",
    ]
    for spearman, kendall in zip(baselines[::2], baselines[1::2], strict=True):
        figures = " | ".join(
            f"{cell.published:.3f} | {_found(cell)}" for cell in (spearman, kendall)
        )
        lines.append(f"| {spearman.name} | {spearman.criterion} | {figures} |")
    return "\n".join(lines)


def _found(cell: Cell) -> str:
    interval = (
        "" if cell.low is None or cell.high is None else f" [{cell.low:.3f}, {cell.high:.3f}]"
    )
    return (f"{cell.found:.3f}" if cell.met else f"**{cell.found:.3f}**") + interval


def _table(first: str, against: str, lines: Sequence[Line]) -> str:
    head = f"| {first} | requests | {against} | found | interval | largest difference |"
    return "\n".join([head, "|---" * 6 + "|", *map(_line, lines)])


def _line(line: Line) -> str:
    interval = (
        "–" if line.low is None or line.high is None else f"[{line.low:.2f}, {line.high:.2f}]"
    )
    found = f"{line.found:.4f}" + ("" if line.met else " **off**")
    return f"| {line.what} | {line.requests} | {line.published:.4f} | {found} | {interval} | {line.worst:.1e} |"


if __name__ == "__main__":
    main()
