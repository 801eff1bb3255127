"""`judge verify`: compute every number of a stored run again, offline, and list what differs. Writes nothing."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from itertools import islice, takewhile, zip_longest
from math import isclose
from pathlib import Path
from typing import Any, get_args

from judge.commands import judge_run, metric_setup, preparation, run_metadata
from judge.commands.public import public_api
from judge.commands.validate import check_run
from judge.config import load_config
from judge.core.errors import ConfigError, JudgeError
from judge.core.format import to_json
from judge.core.records import IDENTICAL, Provenance, Sample, Score, is_unwritten
from judge.core.version import __version__
from judge.metrics import Metric, asks_judge, claims, is_rowwise, parallel
from judge.metrics.chrf import Chrf
from judge.metrics.common import references
from judge.metrics.rouge import PACKAGE, Rouge
from judge.results.result import Result, analyzed, check_same_run, file_digests, load, run_content, run_digest
from judge.scoring import checklist, expectation
from judge.scoring.reread import criterion_of, of_judge, reread, scale_of_column, settings_of
from judge.scoring.strategies import Strategy
from judge.stats.analyze import judged_columns, panel_column
from judge.table import RUN, SCORES, Row, Table

_MOST_ROWS = 200
_MOST_LINES = 5
_OPTIONS = {"criteria", "language", "metrics", "model", "score_columns", "seed", "set"}
"""Options of a run that metrics depend on."""
_MODELS = {"models", "llm", "questions", "answers", "bertscore", "corrected"}
"""Options of QAGS, and their values, that may need a model."""
_ABSENT = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """A stored value and the recomputed one. `place` is a file and the key in it."""

    place: str
    stored: Any
    recomputed: Any
    item: str = ""
    system: str = ""
    column: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """What differs in a stored run.

    `checked` counts the recomputed values by what they are and how they were computed. `unchecked` lists the others,
    with the reason.
    """

    run: str
    differences: tuple[Difference, ...]
    checked: Mapping[str, int]
    unchecked: tuple[str, ...]
    seconds: float


@public_api()
def verify(run: str | Path) -> Verification:
    """Recompute the run in a folder: digests, scores from replies, metrics, statistics and pages. Asks no model.

    Numbers may differ by a billionth. Raises ConfigError for a folder without a finished run, and StorageError for
    files that cannot be read or do not belong together.
    """
    folder, started = Path(run), time.monotonic()
    check_run(folder)
    if not (folder / RUN).exists():
        raise ConfigError(f"{folder}: this run was cut short; run the same command again, then verify")
    checks = _Checks(folder)
    differences = (*checks.files(), *checks.replies(), *checks.metrics(), *checks.statistics(), *checks.pages())
    seconds = round(time.monotonic() - started, 3)
    return Verification(str(run), differences, checks.checked, tuple(checks.unchecked), seconds)


class _Checks:
    """Recompute the parts of a stored run. Each method yields differences and counts the values that it checked."""

    def __init__(self, folder: Path) -> None:
        self.checked: dict[str, int] = {}
        self.unchecked: list[str] = []
        self._folder = folder
        self._result = load(folder)
        self._stored = json.loads((folder / RUN).read_bytes())
        self._info = info = self._result.info
        self._plan: Mapping[str, Any] = info.get("plan") or {}
        self._table = self._result.table
        if "streamed" in info:
            self._table = Table.load(folder)
            check_same_run(folder, self._table, self._result.table.columns, {})
        self._columns = {column.name: column for column in self._table.columns}
        self._panels = judged_columns(self._table.columns)
        self._judged = {name for name, column in self._columns.items() if column.kind == "criterion"}
        self._whole = info.get("status") == "complete" and "where" not in info

    def files(self) -> Iterator[Difference]:
        """Compare the digests of the files."""
        if digests := self._stored.get("digests"):
            now = {**file_digests(self._folder), RUN: run_digest(self._stored)}
            self.checked["files: sha256"] = len(now)
            yield from _differences(digests, now, "sha256 of")
        else:
            self.unchecked.append("files: the run was stored without digests")

    def replies(self) -> Iterator[Difference]:
        """Read and weigh the replies again, and look for missing judgments."""
        columns = self._judged - self._panels.keys()
        rows = [row for row in self._table.rows() if row.column in columns and not is_unwritten(row)]
        try:
            run = settings_of(self._info)
            settings = {name: of_judge(run, self._columns[name], self._info) for name in columns}
            criteria = {name: criterion_of(self._columns[name], self._info) for name in columns}
        except ConfigError as error:
            self.unchecked += [f"judgments: {error}"] * bool(rows)
            return
        for name, criterion in criteria.items():
            self._columns[name] = replace(self._columns[name], **scale_of_column(criterion))
        texts = {sample.key: sample.texts for sample in self._table.samples}
        recomputed: list[Row] = []
        for row in rows:
            outputs = [texts[row.item, name][0] for name in (row.system, row.rival) if name]
            method = row.provenance.method if isinstance(row, Score) else row.method
            if isinstance(row, Score) and method == IDENTICAL:
                recomputed += [replace(row, value=0.5, provenance=preparation.TIE)] if len(set(outputs)) == 1 else []
            elif method in (*get_args(Strategy), checklist.METHOD, None):
                with suppress(ValueError, TypeError):  # several replies that are no list
                    column, quotable = row.column, texts[row.item, row.system]
                    read = reread(row, criteria[column], settings[column], "\n".join(outputs), quotable)
                    if (
                        isinstance(read, Score)
                        and read.provenance.method == "logprobs"
                        and read.provenance.distribution is not None
                    ):
                        # Cut bounds that the distribution rules out: else they are the stored ones, which it copies.
                        scale, stored = criteria[column].scale, read.provenance
                        w = expectation.from_probabilities(read.provenance.distribution, scale)
                        rounding = 0.001 * (scale.high - scale.low)
                        low = min(max(stored.low or 0.0, w.low), w.value + rounding)
                        high = max(min(stored.high or 0.0, w.high), w.value - rounding)
                        read = replace(read, provenance=replace(stored, low=low, high=high))
                    recomputed.append(read)
        yield from _row_differences(rows, recomputed)
        self.checked |= {"judgments: read and weighed again": len(rows)} if rows else {}
        if self._whole and self._info.get("all_texts"):
            pairs = [(*key, "") for key in texts]
            if orders := self._plan.get("orders"):
                limit, seed = self._plan.get("pairs"), self._plan["seed"]
                against = self._plan.get("against")
                chosen = preparation.choose_pairs(
                    self._table.samples, orders=orders, budget=limit, seed=seed, against=against
                )
                pairs = [(a.item, a.system, b.system) for a, b in (*chosen.compared, *chosen.equal)]
            keys = {(item, system, name, rival) for name in columns for item, system, rival in pairs}
            missing = sorted(keys - set(map(_key, rows)))
            yield from (Difference(SCORES, _ABSENT, "a row", *key[:3]) for key in missing)

    def metrics(self) -> Iterator[Difference]:
        """Compute the metrics again, and those of some texts with the reference packages."""
        stored: dict[str, list[Row]] = {name: [] for name in self._columns if name not in self._judged}
        for row in self._table.rows():
            stored.get(row.column, []).append(row)
        problems: list[str] = []
        methods: dict[str, list[str]] = {}
        for name, metric in self._metrics():
            if not isinstance(metric, str) and "where" in self._info and not is_rowwise(metric):
                metric = "needs the texts that were filtered out"
            if isinstance(metric, str):
                problems.append(f"{name} {metric}")
                continue
            measured = parallel.score_in_parallel(metric, self._table.samples)
            names = [column.name for column in measured.columns if self._whole or column.name in stored]
            if not names:  # the run was stopped before
                continue
            rows = {_key(row): metric_setup.reject_non_finite(row) for row in measured.rows if row.column in names}
            yield from _row_differences((row for each in names for row in stored.pop(each, ())), rows.values())
            versions = self._info["judge_version"], self._info["versions"]["sacrebleu"]
            if self._whole and versions == (__version__, version("sacrebleu")):
                self._columns.update({column.name: column for column in measured.columns})
            texts = [sample for sample in self._table.samples if references(sample)]
            rng = random.Random(self._plan["seed"])  # noqa: S311  (a sample; no secret)
            package, scores = _by_package(metric, rng.sample(texts, min(_MOST_ROWS, len(texts))))
            yield from _row_differences((rows[_key(score)] for score in scores), scores)
            signed = "judge with sacrebleu" if "sacrebleu" in measured.columns[0].signature else "judge"
            signed = "from the stored claims" if isinstance(metric, claims.StoredClaims) else signed
            how = f"judge, and {package} for {len(scores):,}" if scores else signed
            methods.setdefault(how, []).extend(names)
            self.checked[how] = self.checked.get(how, 0) + len(rows)
        for how, names in methods.items():
            self.checked[f"{', '.join(names)}: {how}"] = self.checked.pop(how)
        if stored:
            reason = "; ".join(problems) or "no metric of the run has these columns"
            self.unchecked.append(f"{', '.join(stored)}: {reason}")

    def _metrics(self) -> Iterator[tuple[str, Metric | str]]:
        """Yield the metrics of the plan by name, or the reason why one cannot be computed again."""
        if "criteria" not in self._plan or "orders" in self._plan:  # of an earlier judge, or a ranking
            return
        config = load_config(given={name: self._plan[name] for name in _OPTIONS & self._plan.keys()} | {"cache": False})
        names, _ = metric_setup.default_metrics(config, self._table.samples)
        for name in names:
            options = config.set.get(name, {})
            only = config.model_copy(update={"set": {name: options}, "score_columns": {}})
            models = _MODELS & {*options, *map(str, options.values()), *str(options.get("similarity")).split(",")}
            if name == "claims":
                columns = tuple(column for column in self._columns.values() if column.name in claims.COLUMNS)
                rows = {_key(row)[:3]: row for row in self._table.rows() if row.column in claims.COLUMNS}
                share = options.get("value") != "mean"
                threshold = options.get("threshold", claims.THRESHOLD) if share else None
                yield name, claims.StoredClaims(columns, rows, threshold)
                continue
            if name == "bertscore" or (name == "qags" and models):
                yield name, "needs a judge or a model"
                continue
            try:
                metric = metric_setup.build_metrics(only, [name], lambda done, total: None, lambda questions: [])[name]
            except JudgeError as error:
                yield name, f"cannot be computed here: {error}"
            else:
                yield name, "needs a judge" if asks_judge(metric) else metric
        if config.score_columns:
            yield "score columns", metric_setup.ScoreColumns(config.score_columns)

    def statistics(self) -> Iterator[Difference]:
        """Analyse the table again and compare the whole of run.json."""
        table, info = self._table, dict(self._info)
        columns = self._columns | {name: panel_column(judges) for name, judges in self._panels.items()}
        if "signatures" in info:  # those of a filtered run may be of more columns
            info["signatures"] = info["signatures"] | {name: column.signature for name, column in columns.items()}
        if self._whole and "rows" in info.get("data", {}):
            info["data"] = info["data"] | {"rows": len(table.samples)}
        models = [*info.get("judges", {}).values(), *(info.get("systems") or {}).values()]
        for name in ("usage", "requests", "unmet") if "judges" in info else ():
            info[name] = run_metadata.add_counts(model[name] for model in models if name in model)
        rows = [row for row in table.rows() if row.column not in self._panels]
        if "streamed" in info:
            seen = judge_run.Seen()
            seen.add(table.samples, rows, table.columns)
            analysis = seen.analysis(table.columns)
            recomputed = Result(analysis.table, analysis.estimates, info | {"streamed": seen.counts()})
        else:
            recomputed = analyzed(table.samples, table.columns, rows, info)
            yield from _row_differences(table.rows(), recomputed.table.rows())
        content = {**run_content(recomputed), "columns": to_json(list(columns.values()))}
        stored = {key: value for key, value in self._stored.items() if key != "digests"}
        stored["columns"] = to_json(self._result.table.columns)  # with what an older judge did not store
        differences = list(_differences(stored, content, RUN))
        self.checked[f"numbers of {RUN}: from the tables"] = _count_numbers(content)
        if differences:
            self._result = recomputed  # which the pages should show
        yield from differences

    def pages(self) -> Iterator[Difference]:
        """Write the pages again and compare their lines."""
        for name, format in (("report.html", "html"), ("report.md", "markdown")):
            path = self._folder / name
            if self._info["judge_version"] != __version__ or not path.exists():
                reason = "is not of this judge" if path.exists() else "is not in the folder"
                self.unchecked.append(f"{name} {reason}")
                continue
            try:
                recomputed_lines = self._result.report(format).split("\n")
            except (ValueError, TypeError, LookupError) as error:  # of values that no run stores
                yield Difference(name, "a page", f"no page can be written: {error!r}")
                continue
            stored_lines = path.read_bytes().decode("utf-8", "replace").split("\n")
            pairs = list(zip_longest(stored_lines, recomputed_lines, fillvalue=""))
            # A page shows half a character as it was; the tables hold U+FFFD in its place.
            differing = ((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b and "\ufffd" not in b)
            for number, stored, recomputed in islice(differing, _MOST_LINES):
                yield Difference(f"{name} line {number}", *excerpts(stored, recomputed))
            self.checked[f"lines of {name}: written again"] = len(pairs)


def excerpts(stored: str, recomputed: str) -> tuple[str, str]:
    """Cut two texts to where they first differ: 20 characters before it and 40 after it."""
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(stored, recomputed, strict=False))))
    excerpt = slice(max(0, same - 20), same + 40)
    return stored[excerpt], recomputed[excerpt]


def _by_package(metric: Metric, samples: list[Sample]) -> tuple[str, list[Score]]:
    """Return a metric's reference package and its scores of these texts; none if the package lacks an option.

    BLEU and TER need no second look: sacrebleu computes them in judge, too.
    """
    if isinstance(metric, Rouge):
        english = [sample for sample in samples if metric.tokenizer_for([sample.output, *references(sample)]) == "en"]
        types = [kind.name for kind in metric.kinds if kind.family in ("n", "l", "lsum")]
        with suppress(ConfigError):
            rows = replace(metric, types=types, implementation=PACKAGE).score(english).rows
            return PACKAGE, [row for row in rows if isinstance(row, Score)]
    if isinstance(metric, Chrf):
        from sacrebleu.metrics.chrf import CHRF

        chrf = CHRF(metric.char_order, metric.word_order, metric.beta, metric.lowercase)  # type: ignore[arg-type]
        values = [chrf.sentence_score(sample.output, references(sample)).score for sample in samples]
        pairs, provenance = zip(samples, values, strict=True), Provenance("metric")
        return "sacrebleu", [Score(s.item, s.system, metric.name, value, provenance) for s, value in pairs]
    return "", []


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.item, row.system, row.column, row.rival


def _row_differences(stored: Iterable[Row], recomputed: Iterable[Row]) -> Iterator[Difference]:
    """Compare the rows of the same texts and columns."""
    old, new = ({_key(row): row for row in rows} for rows in (stored, recomputed))
    for key in old | new:
        first: Any = old.get(key)
        second: Any = new.get(key)
        if first != second and type(first) is type(second):
            yield from _differences(asdict(first), asdict(second), SCORES)
        elif first != second:
            values = [_ABSENT if row is None else getattr(row, "value", "a failure") for row in (first, second)]
            yield Difference(SCORES, values[0], values[1], *key[:3])


def _differences(stored: Any, recomputed: Any, place: str, **names: str) -> Iterator[Difference]:
    """Yield the values that differ by more than rounding, and those that one side lacks."""
    if isinstance(stored, Mapping) and isinstance(recomputed, Mapping):
        names |= {key: stored[key] for key in ("item", "system", "column") if isinstance(stored.get(key), str)}
        for key in {**stored, **recomputed}:
            values = stored.get(key, _ABSENT), recomputed.get(key, _ABSENT)
            yield from _differences(*values, f"{place} {key}", **names)
    elif isinstance(stored, list | tuple) and isinstance(recomputed, list | tuple):
        for number, values in enumerate(zip_longest(stored, recomputed, fillvalue=_ABSENT)):
            yield from _differences(*values, f"{place} {number}", **names)
    elif stored != recomputed:
        numbers = all(isinstance(value, int | float) for value in (stored, recomputed))
        if not (numbers and isclose(stored, recomputed, rel_tol=1e-9, abs_tol=1e-12)):
            yield Difference(place, stored, recomputed, **names)


def _count_numbers(content: Any) -> int:
    parts = content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ()
    return isinstance(content, int | float) + sum(map(_count_numbers, parts))
