"""Published figures again, from the recorded replies of the judges that made them: docs/reproduction.md.

    JUDGE_SHARED=../shared python benchmarks/reproduce/reproduce.py

AlpacaEval 2: 805 pairs a model, judged by gpt-4-1106-preview, whose first token's probabilities were recorded;
`judge rank` in one order has to give each published preference and the published win rate. G-Eval: twenty recorded
replies of GPT-4 to each summary; `judge run` has to give their own means, from draws and from the same draws as
probabilities. SummEval: how ROUGE goes with people's ratings of 1,600 summaries, the baselines of `judge validate`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import judge
from judge.results.result import load

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("JUDGE_SHARED", ROOT.parent / "shared"))
PREFERENCE, WIN_RATE, MEAN, CORRELATION = 1e-6, 0.01, 1e-6, 0.002
ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeLsum": "ROUGE-L"}


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
    """Make every figure and write the page; exit 1 if one of them is off."""
    alpaca = [preferences(path) for path in sorted((SHARED / "data" / "alpaca_logprobs").glob("*.jsonl"))]
    geval = [
        estimate(language, *how)
        for language in ("english", "korean")
        for how in (("20 draws", "samples", ()), ("token probabilities", "logprobs", ("--as-logprobs",)))
    ]
    page = ROOT / "docs" / "reproduction.md"
    baselines = correlations(SHARED / "data" / "summeval.jsonl")
    page.write_text(_page(alpaca, geval, baselines), encoding="utf-8")
    print(page.read_text(encoding="utf-8"))
    sys.exit(0 if all(line.met for line in [*alpaca, *geval, *baselines]) else 1)


def preferences(path: Path) -> Line:
    """One model's answers against the baseline's, beside the published preferences."""
    rows = {row["id"]: row for row in _rows(path)}
    with replayed(path) as url, tempfile.TemporaryDirectory() as out:
        flags = ("--systems", "output_1,output_2", "--map", "item=id,source=instruction", "--orders", "1")
        ranked = _judge("rank", path, url, out, *flags, "--weighting", "logprobs", "--min-mass", "0")
        result = load(out)
    second = {s.item: s.value if s.system == "output_2" else 1 - s.value for s in result.table.scores}
    worst = max(abs(1 + second.get(name, 9.0) - row["preference"]) for name, row in rows.items())
    (standing,) = (s for s in ranked["systems"] if s["system"] == "output_2")
    published = json.loads((path.parent / "index.json").read_text("utf-8"))[path.stem]["win_rate"]
    rate, low, high = (100 * standing[name] for name in ("win_rate", "low", "high"))
    met = worst < PREFERENCE and abs(rate - published) < WIN_RATE
    return Line(path.stem, len(rows), result.info["requests"]["sent"], published, rate, low, high, worst, met)


def estimate(language: str, how: str, weighting: str, options: Sequence[str]) -> Line:
    """The relevance of twenty summaries, beside the means of the recorded replies."""
    path = SHARED / "data" / f"geval_{language}.jsonl"
    recorded = {row["item_id"]: fmean(map(_number, row["responses"])) for row in _rows(path)}
    with replayed(path, *options) as url, tempfile.TemporaryDirectory() as out:
        flags = ("--map", "item=item_id,output=summary", "--criteria", "relevance", "--metrics", "none")
        _judge("run", path, url, out, *flags, "--weighting", weighting)
        result = load(out)
    values = {score.item: score.value for score in result.table.scores}
    worst = max(abs(values.get(item, 9.0) - mean) for item, mean in recorded.items())
    (mean,) = (e for (_, column), e in result.estimates.items() if column == "relevance")
    published = fmean(recorded.values())
    requests = result.info["requests"]["sent"]
    name = f"{language.capitalize()}, {how}"
    return Line(name, len(recorded), requests, published, mean.value, mean.low, mean.high, worst, worst < MEAN)


def correlations(path: Path) -> list[Cell]:
    """The baselines that `judge validate` shows for SummEval, beside the published rows."""
    gold = json.loads(path.with_name("summeval_rouge_correlations.json").read_text("utf-8"))
    options = {"types": list(ROUGE), "multi": "mean"}
    columns = {"item": "doc_id", "output": "summary"}
    result = judge.evaluate(path, [], metrics=["rouge"], set={"rouge": options}, map=columns, cache=False)
    rows = judge.validate(result).rated
    found = []
    for key, name in ROUGE.items():
        published = gold[f"{key}_f_perl155_stem_mean11"]["doc_level"]
        for rated in rows:
            (row,) = (row for row in rated.baselines if row.name == name)
            for coefficient in ("spearman", "kendall"):
                value = published[f"{rated.criterion}_{coefficient}"]
                e = row.correlation.estimates["document", coefficient]
                found.append(Cell(name, rated.criterion, coefficient, value, e.value, e.low, e.high))
    return found


@contextmanager
def replayed(data: Path, *options: str) -> Iterator[str]:
    """The address of a server that answers with the replies recorded in a file."""
    command = [sys.executable, str(SHARED / "tools" / "replay_server.py"), "--port", "0", "--data", str(data), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found is not None, "the replay server did not start"
        yield found[0]
    finally:
        server.terminate()
        server.communicate()


def _judge(command: str, data: Path, url: str, out: str, *flags: str) -> Any:
    """Run the command; what it prints as JSON, where it does."""
    told = [sys.executable, "-c", "from judge.cli import main; main()", command, str(data), "--model", "recorded"]
    told += ["--base-url", url, "--out", out, "--no-cache", *flags]
    told += ["--format", "json"] if command == "rank" else ["--quiet"]
    done = subprocess.run(told, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout) if done.stdout else None


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _number(reply: str) -> float:
    """The score of a recorded reply: all of them end in it ("4", "\\n2", "Relevance: 2")."""
    return float(re.findall(r"\d+", reply)[-1])


def _page(alpaca: Sequence[Line], geval: Sequence[Line], baselines: Sequence[Cell]) -> str:
    return f"""# Reproduced figures

`benchmarks/reproduce/reproduce.py` recomputes published figures from recorded replies and writes this page. No model is
asked. Intervals are judge's own: 95 %, bootstrap over items.

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


def _furthest(baselines: Sequence[Cell]) -> float:
    return max(abs(cell.found - cell.published) for cell in baselines)


def _cells(baselines: Sequence[Cell]) -> str:
    lines = ["| | criterion | Spearman, published | found | Kendall tau-b, published | found |", "|---" * 6 + "|"]
    for spearman, kendall in zip(baselines[::2], baselines[1::2], strict=True):
        figures = " | ".join(f"{cell.published:.3f} | {_found(cell)}" for cell in (spearman, kendall))
        lines.append(f"| {spearman.name} | {spearman.criterion} | {figures} |")
    return "\n".join(lines)


def _found(cell: Cell) -> str:
    interval = "" if cell.low is None or cell.high is None else f" [{cell.low:.3f}, {cell.high:.3f}]"
    return (f"{cell.found:.3f}" if cell.met else f"**{cell.found:.3f}**") + interval


def _table(first: str, against: str, lines: Sequence[Line]) -> str:
    head = f"| {first} | requests | {against} | found | interval | largest difference |"
    return "\n".join([head, "|---" * 6 + "|", *map(_line, lines)])


def _line(line: Line) -> str:
    interval = "–" if line.low is None or line.high is None else f"[{line.low:.2f}, {line.high:.2f}]"
    found = f"{line.found:.4f}" + ("" if line.met else " **off**")
    return f"| {line.what} | {line.requests} | {line.published:.4f} | {found} | {interval} | {line.worst:.1e} |"


if __name__ == "__main__":
    main()
