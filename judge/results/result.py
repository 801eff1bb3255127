"""The result of a run, with its statistics; `judge.results.loading` loads one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, overload

from judge.core import plugins
from judge.core.errors import ConfigError
from judge.core.files import refuse_other_content, store
from judge.core.format import to_json
from judge.core.messages import speaking_to
from judge.core.records import ABSTAINED, Column, Estimate, Failure, Sample, Score
from judge.data import samples
from judge.data.row_filters import Value
from judge.results.claims import claims_frame
from judge.results.estimates import (
    ESTIMATES,
    EstimateRow,
    Estimates,
    estimate_rows,
    estimates_table,
    parquet,
)
from judge.results.joined_frame import joined_frame
from judge.results.matching_texts import matching_part
from judge.results.plot import Plot
from judge.results.power import RunPower, power_of
from judge.results.rated_criteria import flat
from judge.results.run_info import RunInfo
from judge.results.stored_info import FORMAT
from judge.results.tracking import Outlets
from judge.results.wide_rows import wide_frame
from judge.results.worst_texts import worst_frame
from judge.stats import human_agreement
from judge.stats.analyze import analyze
from judge.stats.bootstrap import Bootstrap, item_means
from judge.stats.calibration import Calibrated
from judge.stats.checklists import Checklist, checklists
from judge.stats.correlation_matrix import Matrix
from judge.stats.derived_columns import Overall, overall, pass_columns, pass_table
from judge.stats.human_agreement import Rated
from judge.stats.pairwise import Ranking
from judge.stats.pairwise_agreement import PreferenceAgreement, preference_agreement
from judge.stats.panels import judged_columns
from judge.stats.pass_rates import CalibratedPassRates, calibrated_pass_rates
from judge.stats.power import Scatter
from judge.stats.power import scatter as scatters
from judge.stats.score_drivers import Drivers, looks
from judge.stats.system_differences import Comparison
from judge.table import RUN, Table

if TYPE_CHECKING:
    import pandas as pd

PAGES = {"report.md": "markdown", "report.html": "html"}
"""The pages of a run folder, with their formats."""
_DERIVED = (*PAGES, ESTIMATES)
"""Files that can be made again from the others."""


@dataclass(frozen=True, repr=False)
class Result(Outlets, plugins.Viewed):
    """The result of a run: scores, failures and statistics.

    - `table`: the scores and failures.
    - `info`: the run (model, data, usage, templates, versions), as JSON without a key.
    - `estimates`: means, by (system, column).
    - `comparisons`: the differences between systems, for each column that has a better direction.
    - `overall`: the weights of the overall score. Its values by text are in the wide frame.
    - `rankings`: take the place of the estimates if texts were compared in pairs.
    - `rated`: the judges against people, by criterion.
    - `calibrated`: means on people's scale, if requested.
    - `agreement`: Krippendorff's alpha of a panel, by criterion.
    - `repeats`: the spread of one text's draws, by (system, column).
    - `matrices`: the correlations between columns.
    - `drivers`: the correlations of scores with length and copying.
    """

    VIEW: ClassVar[str] = "judge.report.views.result:view"

    table: Table
    estimates: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    info: RunInfo = field(default_factory=RunInfo)
    agreement: Mapping[str, Estimate] = field(default_factory=dict)
    rankings: tuple[Ranking, ...] = ()
    drivers: tuple[Drivers, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    overall: Overall | None = None
    repeats: Mapping[tuple[str, str], Estimate] = field(default_factory=dict)
    calibrated: tuple[Calibrated, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    rated: tuple[Rated, ...] = ()

    def __repr__(self) -> str:
        table = self.table
        parts = [
            f"{len(table.systems)} systems",
            f"{len(table.items)} items",
            f"{len(table.columns)} columns",
            f"{len(table.scores)} scores",
            f"{len(table.failures)} failures",
        ]
        return f"<Result: {', '.join(parts)}>"

    @property
    def failures(self) -> tuple[Failure, ...]:
        """All judgments and metric values that failed."""
        return self.table.failures

    @property
    def failed(self) -> int:
        """Number of failed values, without abstentions of metrics and missing means of a panel."""
        return single_failure_counts(self).total() - self.abstained

    @property
    def abstained(self) -> int:
        """Number of values from which metrics abstained."""
        metrics = {
            column.name for column in self.table.columns if column.kind == "metric"
        }
        abstained = 0
        for (_, error, _, column), count in failure_counts(self).items():
            if error == ABSTAINED and column in metrics:
                abstained += count
        return abstained

    def to_frame(self, wide: bool = False) -> pd.DataFrame:
        """Return a DataFrame with one row per score or failure; with `wide`, one per item and
        system.

        A wide row has source and output, `overall` (0–1, NaN if a criterion has no score) if there
        is an overall score, the scores, `NAME_reason`, `NAME_quote` and `NAME_rating` (the mean of
        people's ratings) if there are any, `failures`, and the data's own columns; `score.NAME` and
        `data.NAME` are those whose name is taken. In a ranking, a wide row is a comparison.
        """
        return wide_frame(self.table) if wide else self.table.to_frame()

    def estimates_frame(self) -> pd.DataFrame:
        """Return a DataFrame with one row per number of the reports: the long table of
        `estimates.parquet`.
        """
        frame: pd.DataFrame = estimates_table(_estimate_rows(self)).to_pandas()
        return frame

    @cached_property
    def checklists(self) -> tuple[Checklist, ...]:
        """Return the questions of each checklist with the share of yes by system, those that fail
        most first.
        """
        return checklists(self.table)

    @speaking_to("python")
    def where(self, **columns: Value | Sequence[Value]) -> Result:
        """Return the result of the texts whose columns have these values:
        `result.where(channel="email")`.

        A list allows several values. Means, intervals and tests are recomputed; usage and cost
        still cover the whole run. Raises DataError for a column or value that no text has.
        """
        return filter_texts(self, columns)

    @property
    def pass_rates(self) -> Estimates:
        """Shares (0–1) of the scored texts that pass, by (system, column), for criteria with
        `pass_at`.
        """
        rate_columns = pass_columns(self.table.columns)
        criterion_of_rate = {
            rate.name: column_name for column_name, rate in rate_columns.items()
        }
        means = item_means(pass_table(self.table))
        rates: dict[tuple[str, str], Estimate] = {}
        for (system, rate_name), rate in means.items():
            if rate_name in criterion_of_rate:
                rates[system, criterion_of_rate[rate_name]] = rate
        return rates

    @cached_property
    def calibrated_pass_rates(self) -> tuple[CalibratedPassRates, ...]:
        """The pass rates by people's verdicts, if means on people's scale were requested."""
        return calibrated_pass_rates(self.table) if self.calibrated else ()

    @cached_property
    def _tested_columns(self) -> dict[str, tuple[Table, Column]]:
        """The columns with a better end and values of single texts, each with its table."""
        tables = [self.table]
        weighted = overall(self.table)
        if weighted:
            tables.append(weighted.table)
        tested: dict[str, tuple[Table, Column]] = {}
        for table in tables:
            for column in table.ranked_columns:
                tested[column.name] = (table, column)
        return tested

    @speaking_to("python")
    def power(
        self,
        difference: float | None = None,
        *,
        items: int | None = None,
        pair: tuple[str, str] | None = None,
    ) -> RunPower:
        """Return which differences the run can detect with 80% power, and how many items a
        difference needs.

        `difference` is one to detect, in the unit of the columns whose scale it fits, and `items` a
        number of items other than the run's; `pair` are two systems, instead of all. Raises
        ConfigError for a ranking and for an unknown system.
        """
        lengths: dict[str, float] = {}
        for column_name, (_, column) in self._tested_columns.items():
            if column.low is not None and column.high is not None:
                lengths[column_name] = column.high - column.low
        scatters = self.scatters(pair=pair)
        return power_of(
            scatters,
            self.comparisons,
            lengths=lengths,
            difference=difference,
            items=items,
            pair=pair,
            against=self.info.against,
        )

    def scatters(
        self, *columns: str, pair: tuple[str, str] | None = None
    ) -> tuple[Scatter, ...]:
        """Return the spread of the paired differences in these columns (default: all), which
        decides the power.

        Raises ConfigError for a ranking, and for an unknown column or system.
        """
        if self.rankings:
            raise ConfigError(
                "texts were compared in pairs, so there are no differences of scores"
            )
        plugins.require_known("column", columns, list(self._tested_columns))
        plugins.require_known("system", pair or (), list(self.table.systems))
        spreads: list[Scatter] = []
        for column_name in columns or self._tested_columns:
            table, column = self._tested_columns[column_name]
            spreads += scatters(table, [column], pair, self.info.against)
        return tuple(spreads)

    @overload
    def report(self, format: Literal["png"]) -> bytes: ...  # type: ignore[overload-overlap]

    @overload
    def report(
        self,
        format: str = "console",
        *,
        full: bool = False,
        colour: bool = False,
        wide: bool = False,
    ) -> str: ...

    def report(
        self,
        format: str = "console",
        *,
        full: bool = False,
        colour: bool = False,
        wide: bool = False,
    ) -> str | bytes:
        """Return the report as console, markdown, html, latex, csv, json or in a plug-in's format.

        On the console it is the summary and in LaTeX the main table, or with `full` everything. CSV
        has a row per system and column, or with `wide` a row per item and system. `svg` and `png`
        draw the charts below each other; `png` returns bytes and needs the extra of that name.
        Raises ConfigError for an unknown format.
        """
        if format == "png":
            return Plot(plugins.write(plugins.document(self), "svg")).png
        with speaking_to("python"):
            document = plugins.document(self)
            return plugins.write(document, format, full=full, colour=colour, wide=wide)

    @speaking_to("python")
    def plot(self, chart: str = "") -> Plot:
        """Return charts for a notebook, by default the means of the criteria, or the win rates.

        Without criteria, these are the means of the metrics. `result.plot("rouge1")` draws the
        systems' means of a column, `result.plot("people")` the correlation with people, and
        `scores`, `differences`, `correlations` and `drivers` the charts of these sections. Raises
        ConfigError with all names for an unknown one.
        """
        document = plugins.document(self)
        plot = plugins.report("plot")
        svg = plot(document, chart, self._usual_charts())
        return Plot(str(svg), document.language)

    def _usual_charts(self) -> set[str]:
        """Return the names of the charts to draw if none is named."""
        win_rates = {f"win-rate-{ranking.column}" for ranking in self.rankings}
        columns = [column for column in self.table.columns if not column.judge]
        criteria = {column.name for column in columns if column.kind == "criterion"}
        if criteria:
            return {"overall", *criteria, *win_rates}
        return {column.name for column in columns} | win_rates

    def _check_text_scores(self) -> None:
        """Raise ConfigError unless the scores of single texts are here."""
        if self.rankings or self.table.has_pairs:
            raise ConfigError(
                "a ranking has no score for a single text: to_frame() has its pairs"
            )

    @speaking_to("python")
    def worst(self, n: int = 10, column: str = "") -> pd.DataFrame:
        """Return the lowest-scored texts, the worst first.

        Columns: item, system, column, score, reason, source and output. The data's own columns come
        last; `data.NAME` is one whose name is taken. Each text is listed once, with its lowest
        score as a share of the criterion's scale. With `column` only the values of that column
        count. Raises ConfigError for a ranking, for an unknown column and unless `n` is a whole
        number of 0 or more.
        """
        self._check_text_scores()
        return worst_frame(self.table, n, column)

    @speaking_to("python")
    def claims_frame(self) -> pd.DataFrame:
        """Return a DataFrame with one row per claim that the metrics `claims` and `nli` checked.

        Columns: item, system, column, claim, probability (0–1), supported and evidence. The data's
        own columns come last. For each column, the least probable claims come first. Claims of the
        column `claims_recall` are the references'; `evidence` is the most similar sentence. Raises
        ConfigError for a run without claims.
        """
        return claims_frame(self.table)

    @speaking_to("python")
    def join(self, frame: pd.DataFrame, prefix: str = "") -> pd.DataFrame:
        """Return the judged frame, with its order and index, and the scores as further columns.

        Wide data (`systems`) get one column per system, as `SYSTEM.CRITERION`. `prefix` is put
        before these names. Failed values, and rows excluded by `limit` or `where`, are NaN. Raises
        DataError for a frame of other texts or with such a column already, and ConfigError for a
        ranking.
        """
        self._check_text_scores()
        return joined_frame(self.table, self.info.config, frame, prefix)

    @speaking_to("python")
    def save(
        self, folder: str | Path, *, pages: bool = True, overwrite: bool = False
    ) -> None:
        """Write the tables, `run.json` and, with `pages`, the reports and `estimates.parquet`.

        The reports are `report.md` and `report.html`. The files replace another run's files
        together, so that a folder never has files of two runs. A report that fails loses no data.
        Raises StorageError, also if the folder has another run and `overwrite` is False.
        """
        folder = Path(folder)
        content = _run_content(self)
        run_json = json.dumps(content, ensure_ascii=False, allow_nan=False, indent=1)
        files = {**self.table.files(), RUN: f"{run_json}\n".encode()}
        if not overwrite and (folder / RUN).exists():
            refuse_other_content(folder, files, "run")
        if not pages:
            store(folder, files, drop=_DERIVED)
            return
        files[ESTIMATES] = parquet(_estimate_rows(self))
        try:
            for file_name, format in PAGES.items():
                files[file_name] = self.report(format).encode()
        except BaseException:
            # Also for Ctrl-C: the scores are paid for, and a page can be made again.
            for file_name in PAGES:
                files.pop(file_name, None)
            store(folder, files, drop=PAGES)
            raise
        store(folder, files)

    def _repr_html_(self) -> str:
        """The finding, the summary table and what failed, for notebooks."""
        with speaking_to("python"):
            return plugins.fragment(self)


def failure_counts(result: Result) -> Counter[tuple[str, str, str, str]]:
    """Count the failures by stage, error, system and column."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for failure in result.failures:
        counts[failure.stage, failure.error, failure.system, failure.column] += 1
    return counts


def single_failure_counts(result: Result) -> Counter[tuple[str, str, str, str]]:
    """Count the failures like `failure_counts`, without the means of a panel."""
    panels = judged_columns(result.table.columns)
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for (stage, error, system, column), count in failure_counts(result).items():
        if column not in panels:
            counts[stage, error, system, column] = count
    return counts


def preference_agreement_of(result: Result) -> tuple[PreferenceAgreement, ...]:
    """Compare a ranking with the preferences that people stated, or that their ratings imply."""
    info = result.info
    bootstrap = Bootstrap(seed=info.config.seed)
    return preference_agreement(
        result.table,
        info.preferences,
        info.model,
        orders=info.orders or 2,
        bootstrap=bootstrap,
    )


def _estimate_rows(result: Result) -> Iterator[EstimateRow]:
    """Yield all numbers of a result, with those that only a ranking's report computes."""
    preferences = preference_agreement_of(result) if result.rankings else ()
    return estimate_rows(result, preferences)


def analyzed(
    samples: Sequence[Sample],
    columns: Sequence[Column],
    rows: Sequence[Score | Failure],
    info: RunInfo,
) -> Result:
    """Return the result of a run's rows; those of a panel's own columns are computed, not passed.

    `info` has the configuration and the status of the run.
    """
    seed = info.config.seed
    has_criteria = any(column.kind == "criterion" for column in columns)
    is_ranking = info.orders is not None
    # An unfinished run has scores for a part of the texts only, and a ranking none of single texts.
    has_text_scores = has_criteria and not is_ranking and info.status == "complete"
    text_features = looks(samples) if has_text_scores else None
    analysis = analyze(
        samples,
        columns,
        rows,
        orders=info.orders,
        seed=seed,
        looks=text_features,
        people=info.config.calibrate,
        against=info.against,
    )
    rated: tuple[Rated, ...] = ()
    if has_text_scores:
        rated = human_agreement.of_run(analysis.table, info.model, seed)
    # An analysis has the fields of a result but for `info` and `rated`.
    statistics: dict[str, Any] = {}
    for statistic in fields(analysis):
        statistics[statistic.name] = getattr(analysis, statistic.name)
    return Result(**statistics, info=info, rated=rated)


def _run_content(result: Result) -> dict[str, Any]:
    """Return what run.json holds of a result, as plain JSON."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "info": result.info.to_json(),
        "columns": result.table.columns,
    }
    for result_field in fields(result):
        if result_field.name not in ("table", "info"):
            content[result_field.name] = getattr(result, result_field.name)
    # JSON has no keys of two parts.
    for field_name in ("estimates", "repeats"):
        records: list[dict[str, Any]] = []
        for (system, column), estimate in content[field_name].items():
            records.append({"system": system, "column": column, **asdict(estimate)})
        content[field_name] = records
    content["rated"] = [flat(rated) for rated in result.rated]
    return dict(to_json(content))


def filter_texts(result: Result, values: samples.Values) -> Result:
    """Return the result of the texts that have these values; nothing is asked or measured again.

    Corpus-level values remain only for systems that keep all their texts. Raises ConfigError if no
    column is named, DataError for a column or a value that no text has.
    """
    part = matching_part(result.table, values, result.info.config.map)
    info = result.info.with_notes(*part.notes)
    return analyzed(part.samples, part.columns, part.rows, info)
