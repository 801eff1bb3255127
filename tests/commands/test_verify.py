"""verify(): an unchanged run of every kind agrees with itself, and a changed value of any kind is found."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judge
from judge.cli import app
from judge.commands.audit import audit
from judge.core.errors import BudgetReached, ConfigError, Refused, StorageError
from judge.core.records import Choice, Failure, Request, Response, Score, Usage
from judge.providers.scripted import Reply, ScriptedProvider
from judge.results.result import load, run_digest
from judge.table import RUN, SAMPLES, SCORES, Table

GRADES = {"x": (5, 4, 4, 3), "y": (3, 2, 3, 1)}
ROWS = [
    {
        "item": f"i{n}", "system": system, "source": f"The bridge of town {n} is to be mended. It has stood for years.",
        "output": f"{system} says {grades[n % 4]}: the bridge of town {n} is {'old' if n % 3 else 'new'}"
        f"{' and is mended' * (system == 'x')}.",
        "references": [f"The bridge of town {n} is old and is mended."],
        "human": {"relevance": min(5, grades[n % 4] + n % 2)}, "length": 10.0 + n,
    }
    for n in range(16)
    for system, grades in GRADES.items()
]  # fmt: skip


def grade(request: Request) -> str:
    return request.messages[0]["content"].split(" says ")[1][0]


def weigh(request: Request) -> Reply:
    """Probabilities; of one town the judge refuses to speak."""
    if "town 7 " in request.messages[0]["content"]:
        return Refused("no")
    return {grade(request): 0.8, "2": 0.15}


def explain(request: Request) -> str:
    """A reason and a score; of one town there is none."""
    return "I cannot tell." if "town 3 " in str(request.messages) else f"It is so.\nScore: {grade(request)}"


def draw(request: Request) -> Reply:
    """Four draws: one is higher, and one has no score."""
    level = int(grade(request))
    return Response(tuple(Choice(str(text)) for text in (level, "no idea", level, min(5, level + 1))))


def evaluate(folder: Path, *models: Any, rows: Any = ROWS, **options: Any) -> None:
    options = {"criteria": ["relevance"], "metrics": [], "cache": False, **options}
    judge.evaluate(rows, model=list(models), out=folder, **options)


def stopped(folder: Path) -> None:
    def costly(request: Request) -> Response:
        return Response((Choice(grade(request)),), usage=Usage(100, 1))

    with pytest.raises(BudgetReached):
        evaluate(folder, ScriptedProvider(costly), metrics=["chrf"], budget="9000tokens", max_concurrency=1)


def retried(folder: Path) -> None:
    """Six requests are refused, then none."""
    seen: list[Request] = []

    def refuse(request: Request) -> Reply:
        seen.append(request)
        return grade(request) if len(seen) > 6 else Refused("no")

    for retry in (False, True):
        evaluate(folder, ScriptedProvider(refuse, endpoint="x"), retry_failed=retry, cache=folder.with_suffix(".cache"))


def streamed(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["judge.commands.preparation"], "_MAX_IN_MEMORY", 10)
        data = folder.with_suffix(".jsonl")
        data.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
        judge.evaluate(data, [], metrics=["chrf"], out=folder)
    assert "streamed" in load(folder).info


MAKERS: dict[str, Callable[[Path], object]] = {
    "scores": lambda folder: evaluate(
        folder, ScriptedProvider(weigh), temperature=0, score_columns={"length": "higher"},
        metrics=["rouge", "bleu", "chrf", "ter", "meteor", "cider", "distinct", "bleu_corpus", "qags", "stats"],
        set={"rouge": {"types": ["rouge1", "rougeLsum", "rougeW", "rougeSU"], "values": ["f", "p"]}},
    ),
    "explained": lambda folder: evaluate(
        folder, ScriptedProvider(explain), reply="reason_then_score", weighting="single", repair="off"
    ),
    "repaired": lambda folder: evaluate(folder, ScriptedProvider(explain), reply="reason_then_score"),
    "samples": lambda folder: evaluate(folder, ScriptedProvider(draw), weighting="samples", draws=4),
    "decisions": lambda folder: evaluate(
        folder, ScriptedProvider(lambda request: {"4": 0.6, "5": 0.3}, decides=True), calibrate=False
    ),
    "panel": lambda folder: evaluate(
        folder, ScriptedProvider(weigh, model="a"), ScriptedProvider(grade, model="b"),
        criteria=["relevance", "coherence"],
    ),
    "calibrated": lambda folder: evaluate(
        folder, ScriptedProvider(grade), calibrate=True,
        rows=[{**row, "human": row["human"] if n < 20 else {}} for n, row in enumerate(ROWS)],
    ),
    "merged": lambda folder: evaluate(
        folder, ScriptedProvider(lambda request: json.dumps({"relevance": int(grade(request)), "coherence": 3})),
        criteria=["relevance", "coherence"], merge_criteria=True, weighting="single",
    ),
    "rank": lambda folder: judge.rank(
        [*ROWS, *({**row, "system": "z"} for row in ROWS if row["system"] == "x")], pairs=30, cache=False, out=folder,
        model=ScriptedProvider(lambda request: {"A": 0.6, "B": 0.3}),
    ),
    "streamed": streamed,
    "stopped": stopped,
    "retried": retried,
    "odd texts": lambda folder: evaluate(
        folder, ScriptedProvider(lambda request: "4"), metrics=["rouge", "bleu", "chrf", "ter", "stats"],
        rows=[{**ROWS[0], "output": ""}, {**ROWS[1], "output": "half \ud800 of it"}, {**ROWS[2], "references": []},
            {**ROWS[3], "references": ["The bridge.", "A bridge"], "when": date(2026, 1, 1)}, *ROWS[4:]],
    ),
    "metrics alone": lambda folder: judge.evaluate(ROWS, [], metrics=["stats", "self_bleu"], out=folder),
    "audited": lambda folder: audit(
        ROWS, ["relevance"], model=ScriptedProvider(lambda request: "4"), out=folder.parent / "audit", cache=False
    ),
    "filtered": lambda folder: judge.load_result(folder.parent / "panel").where(length=[10.0, 11.0, 13.0]).save(folder),
}  # fmt: skip


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a run that was made once; not to be changed."""
    root = tmp_path_factory.mktemp("runs")

    def make(name: str) -> Path:
        if not (root / name).exists():
            MAKERS[name](root / name)
        return root / "audit" / "changed" if name == "audited" else root / name

    return make


@pytest.mark.parametrize("name", MAKERS)
def test_an_unchanged_run_agrees_with_itself(stored: Callable[[str], Path], name: str) -> None:
    folder = stored(name)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    verification = judge.verify(folder)
    assert verification.differences == ()
    assert verification.unchecked == ()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_columns_without_newer_fields_agree(stored: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(stored("panel"), tmp_path / "run")
    content = json.loads((folder / RUN).read_bytes())
    for column in content["columns"]:
        del column["panel"], column["pass_at"]
    content["digests"][RUN] = run_digest(content)
    (folder / RUN).write_text(json.dumps(content), encoding="utf-8")
    assert judge.verify(folder).differences == ()


def in_json(*path: str | int, value: Any = None) -> Callable[[Path], None]:
    """Change a value of run.json: by default a number grows, and a text gets another character."""

    def change(folder: Path) -> None:
        content = json.loads((folder / RUN).read_bytes())
        place = content
        for key in path[:-1]:
            place = place[key]
        old = place[path[-1]]
        place[path[-1]] = value if value is not None else old + "!" if isinstance(old, str) else old * 1.001 + 0.001
        (folder / RUN).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

    return change


def in_table(change: Callable[[Table], Table]) -> Callable[[Path], None]:
    """Replace the tables by changed ones."""

    def write(folder: Path) -> None:
        for name, content in change(Table.load(folder)).files().items():
            (folder / name).write_bytes(content)

    return write


def in_score(column: str, place: int = 0, **fields: Any) -> Callable[[Path], None]:
    """Change fields of a column's score or of its provenance."""

    def change(table: Table) -> Table:
        old = table.column_scores(column)[place]
        own = {name: value for name, value in fields.items() if name in Score.__slots__}
        provenance = {name: value for name, value in fields.items() if name not in own}
        new = replace(old, provenance=replace(old.provenance, **provenance), **own)
        return replace(table, scores=tuple(new if score is old else score for score in table.scores))

    return in_table(change)


def in_sample(**fields: Any) -> Callable[[Path], None]:
    """Change the second text."""
    return in_table(
        lambda table: replace(
            table, samples=(table.samples[0], replace(table.samples[1], **fields), *table.samples[2:])
        )
    )


def drop_score(table: Table) -> Table:
    return replace(table, scores=table.scores[1:])


def drop_failure(table: Table) -> Table:
    return replace(table, failures=table.failures[1:])


def to_score(table: Table) -> Table:
    """Turn the first failure into a score like another one."""
    failure = table.failures[0]
    score = replace(table.column_scores(failure.column)[0], item=failure.item, system=failure.system)
    return replace(table, scores=(*table.scores, score), failures=table.failures[1:])


def to_failure(table: Table) -> Table:
    """Turn the first score of the first column into a failure."""
    score = table.scores[0]
    p = score.provenance
    failure = Failure(score.item, score.system, score.column, "parse", "ParseError", "no", p.raw or "", method=p.method)
    return replace(table, scores=table.scores[1:], failures=(*table.failures, failure))


def swap_systems(column: str) -> Callable[[Table], Table]:
    """Give the values of one system to the other."""
    other = {"x": "y", "y": "x"}

    def change(table: Table) -> Table:
        scores = (replace(s, system=other[s.system]) if s.column == column else s for s in table.scores)
        return replace(table, scores=tuple(scores))

    return change


def in_page(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1), encoding="utf-8")

    return change


def in_column(place: int, **fields: Any) -> Callable[[Path], None]:
    """Change a column in both files that have it, by default its signature."""

    def change(folder: Path) -> None:
        table = Table.load(folder)
        old = table.columns[place]
        new = replace(old, **fields or {"signature": f"{old.signature}|x"})
        columns = tuple(new if column is old else column for column in table.columns)
        (folder / SAMPLES).write_bytes(replace(table, columns=columns).files()[SAMPLES])
        content = json.loads((folder / RUN).read_bytes())
        content["columns"][place] = asdict(new)
        content["info"]["signatures"][new.name] = new.signature
        (folder / RUN).write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")

    return change


FORGED: dict[str, tuple[str, Callable[[Path], None]]] = {
    # the judge's scores
    "value by probabilities": ("scores", in_score("relevance", value=5.0)),
    "value within rounding of the report": ("scores", in_score("relevance", 3, value=3.6842)),
    "mass": ("scores", in_score("relevance", mass=0.99)),
    "distribution": ("scores", in_score("relevance", distribution={"5": 0.85, "2": 0.1})),
    "entropy": ("scores", in_score("relevance", entropy=0.5)),
    "argmax": ("scores", in_score("relevance", argmax="2")),
    "low": ("scores", in_score("relevance", low=1.0)),
    "high": ("scores", in_score("relevance", high=4.0)),
    "value of a reply": ("explained", in_score("relevance", value=1.0)),
    "label of a reply": ("explained", in_score("relevance", argmax="1")),
    "reply": ("explained", in_score("relevance", raw="It is so.\nScore: 2")),
    "reason": ("explained", in_score("relevance", reason="It is not so.")),
    "reading": ("explained", in_score("relevance", reading="prose")),
    "reply and value": ("explained", in_score("relevance", raw="Hm.\nScore: 2", value=2.0, argmax="2", reason="Hm.")),
    "failure to score": ("explained", in_table(to_score)),
    "score to failure": ("explained", in_table(to_failure)),
    "failure dropped": ("explained", in_table(drop_failure)),
    "strategy": ("explained", in_score("relevance", method="guess")),
    "one draw": ("samples", in_score("relevance", raw='["5", "5", "5", "5"]')),
    "share of draws": ("samples", in_score("relevance", distribution={"5": 1.0})),
    "number of draws": ("samples", in_score("relevance", n=4)),
    "bound of draws": ("samples", in_score("relevance", low=4.5)),
    "value of a decision": ("decisions", in_score("relevance", value=4.5)),
    "bound of a decision": ("decisions", in_score("relevance", high=4.5)),
    "criterion among merged ones": ("merged", in_score("coherence", value=5.0, argmax="5")),
    "mean of a panel": ("panel", in_score("relevance", value=5.0)),
    "note of a panel": ("panel", in_score("relevance", note="a: 5; b: 5")),
    "judge of a panel": ("panel", in_score("relevance/b", value=1.0)),
    "panel's judges swapped": ("panel", in_table(swap_systems("relevance/a"))),
    "result of a comparison": ("rank", in_score("overall", value=0.0)),
    "comparison dropped": ("rank", in_table(drop_score)),
    "number of texts in the data": ("rank", in_json("info", "data", "rows")),
    "tie of other texts": ("rank", in_score("overall", method="identical", value=0.5)),
    "score dropped": ("scores", in_table(drop_score)),
    "systems swapped": ("scores", in_table(swap_systems("relevance"))),
    # metrics
    **{
        f"value of {column}": ("scores", in_score(column, value=0.5))
        for column in ("rouge1", "rouge1_p", "rougeLsum", "rougeW", "rougeSU", "bleu", "chrf", "ter", "meteor", "cider",
            "distinct1", "bleu_corpus", "qags_f1", "stats_coverage", "length")
    },
    "a billionth of ROUGE": ("scores", in_score("rouge1", value=0.3333333)),
    "interval of corpus BLEU": ("scores", in_score("bleu_corpus", low=0.1)),
    "note of corpus BLEU": ("scores", in_score("bleu_corpus", note="exact")),
    "systems of a metric swapped": ("scores", in_table(swap_systems("chrf"))),
    "streamed metric": ("streamed", in_score("chrf", value=99.0)),
    "signature of a metric": ("scores", in_column(1)),
    "signature of a panel": ("panel", in_column(0)),
    "end of a scale": ("scores", in_column(0, high=4.0)),
    "labels of a scale": ("scores", in_column(0, labels=("5", "4", "3", "2", "1"))),
    "better end": ("scores", in_column(1, better="lower")),
    # texts
    "output": ("scores", in_sample(output="y says 3: the bridge of town 0 is as new as ever.")),
    "reference": ("scores", in_sample(references=("The bridge is new.",))),
    "source": ("scores", in_sample(source="The road is open.")),
    "human rating": ("scores", in_sample(human={"relevance": 1.0})),
    "human rating that calibrates": ("calibrated", in_sample(human={"relevance": 1.0})),
    "score column": ("scores", in_sample(extra={"length": 99.0})),
    # run.json
    "mean": ("scores", in_json("estimates", 0, "value")),
    "end of an interval": ("scores", in_json("estimates", 0, "high")),
    "number of texts": ("scores", in_json("estimates", 0, "n", value=3)),
    "method": ("scores", in_json("estimates", 0, "method")),
    "difference": ("scores", in_json("comparisons", 0, "differences", 0, "estimate", "value")),
    "p value": ("scores", in_json("comparisons", 0, "differences", 0, "estimate", "p", value=0.9)),
    "strength": ("rank", in_json("rankings", 0, "standings", 0, "strength")),
    "rank": ("scores", in_json("comparisons", 0, "ranks", 0, "rank", value=2)),
    "wins": ("rank", in_json("rankings", 0, "standings", 0, "wins", value=3)),
    "correlation with people": ("scores", in_json("rated", 0, "rows", 0, "correlations", 0, "value")),
    "calibrated mean": ("calibrated", in_json("calibrated", 0, "means", 0, "estimate", "value")),
    "agreement of a panel": ("panel", in_json("agreement", "coherence", "value")),
    "weight": ("panel", in_json("overall", "weights", "relevance")),
    "driver": ("scores", in_json("drivers", 0, "each", 0, "correlation", "low")),
    "matrix": ("scores", in_json("matrices", 0, "values", 0, 1, value=0.25)),
    "seed": ("scores", in_json("info", "plan", "seed", value=7)),
    "requests": ("scores", in_json("info", "requests", "failed", value=0)),
    "streamed count": ("streamed", in_json("info", "streamed", "texts", "x", value=15)),
    "streamed mean": ("streamed", in_json("estimates", 0, "value")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_changed_value_is_found_although_digests_and_pages_fit_it(
    stored: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    kind, change = FORGED[name]
    folder = shutil.copytree(stored(kind), tmp_path / "run")
    before = [(folder / file).read_bytes() for file in (RUN, SCORES, SAMPLES)]
    change(folder)
    assert [(folder / file).read_bytes() for file in (RUN, SCORES, SAMPLES)] != before
    load(folder).save(folder, overwrite=True)
    verification = judge.verify(folder)
    assert not any(each.place.startswith("sha256") for each in verification.differences)
    assert any(each.place.startswith((SCORES, RUN, "column")) for each in verification.differences)


EDITED: dict[str, tuple[Callable[[Path], None], str]] = {
    "value": (in_score("relevance", value=3.0), SCORES),
    "note of a run": (in_json("info", "notes", 0), RUN),
    "time": (in_json("info", "seconds"), RUN),
    "digest": (in_json("digests", SAMPLES), f"sha256 of {SAMPLES}"),
    "figure on the page": (in_page("report.html", "1.46", "1.47"), "report.html"),
    "figure in Markdown": (in_page("report.md", "1.46", "1.47"), "report.md"),
    "line of Markdown": (in_page("report.md", "\n\n", "\n\nx is best.\n\n"), "report.md"),
}


@pytest.mark.parametrize("name", EDITED)
def test_an_edited_file_is_found(stored: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    change, place = EDITED[name]
    folder = shutil.copytree(stored("scores"), tmp_path / "run")
    change(folder)
    assert any(place in each.place for each in judge.verify(folder).differences)


def test_replies_that_are_no_list_are_found(stored: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(stored("samples"), tmp_path / "run")
    in_score("relevance", raw="5, 5, 5")(folder)
    first, *_, page = judge.verify(folder).differences[1:4]
    assert (first.place, first.recomputed, first.item) == (SCORES, "nothing", "i0")
    assert page.place == "report.html"


def test_without_digests_the_numbers_are_checked_all_the_same(stored: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(stored("rank"), tmp_path / "run")
    content = json.loads((folder / RUN).read_bytes())
    del content["digests"]
    content["rankings"][0]["standings"][0]["low"] = 0.4
    (folder / RUN).write_text(json.dumps(content), encoding="utf-8")
    verification = judge.verify(folder)
    assert verification.unchecked == ("files: the run was stored without digests",)
    assert verification.differences[0].place == f"{RUN} rankings 0 standings 0 low"
    assert verification.differences[0].stored == 0.4


def test_a_metric_that_asks_a_judge_or_a_model_is_named_as_not_checked(tmp_path: Path) -> None:
    evaluate(tmp_path, ScriptedProvider(lambda request: "4"), rows=ROWS[:4], metrics=["qags", "chrf"],
        set={"qags": {"backend": "llm"}})  # fmt: skip
    verification = judge.verify(tmp_path)
    assert verification.unchecked == ("qags_f1: qags needs a judge or a model",)
    assert "chrf: judge, and sacrebleu for 4" in verification.checked


def test_what_is_no_finished_run_is_refused(tmp_path: Path, stored: Callable[[str], Path]) -> None:
    with pytest.raises(ConfigError, match="no run is there"):
        judge.verify(tmp_path)
    folder = shutil.copytree(stored("scores"), tmp_path / "run")
    shutil.copy(stored("panel") / SCORES, folder / SCORES)
    with pytest.raises(StorageError, match="of different runs"):
        judge.verify(folder)
    (folder / RUN).write_text("{", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot read .*run\.json"):
        judge.verify(folder)


def run_command(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["verify", *map(str, arguments)])


def test_the_command_says_in_ten_lines_that_a_run_agrees(stored: Callable[[str], Path]) -> None:
    printed = run_command(stored("scores"))
    lines = printed.stdout.splitlines()
    assert printed.exit_code == 0
    assert len(lines) <= 10
    assert " values recomputed, 0 differences (" in lines[0]
    assert "  chrf: judge, and sacrebleu for 32" in printed.stdout


def test_the_command_lists_twenty_differences_and_exits_with_1(stored: Callable[[str], Path], tmp_path: Path) -> None:
    folder = shutil.copytree(stored("explained"), tmp_path / "run")
    in_table(lambda table: replace(table, scores=tuple(replace(s, value=1.5) for s in table.scores)))(folder)
    printed = run_command(folder)
    assert printed.exit_code == 1
    assert "  item i0, system x, column relevance, scores.parquet value: 1.5 → 5.0\n" in printed.stdout
    assert printed.stdout.count(" → ") == 20
    assert re.search("\n  sha256 of scores.parquet: [0-9a-f]{40,60} → [0-9a-f]{40,60}\n", printed.stdout)
    assert " more: --format json lists them" in printed.stdout
    everything = json.loads(run_command(folder, "--json").stdout)
    assert len(everything["differences"]) > 30
    assert everything["differences"][3].keys() == {"place", "stored", "recomputed", "item", "system", "column"}
