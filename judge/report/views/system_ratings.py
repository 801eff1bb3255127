"""The systems' means by people beside the judges', and the judges whose best system is another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.core.format import format_p, number, one_line
from judge.report.document import Cell, Content, Table, table
from judge.stats.human_agreement import Rated

_PLACES = 2
_MAX_NAME = 40


def system_table(rated: Rated) -> Table | None:
    """Tabulate the systems' means by people and by each judge, by people's means."""
    if not rated.systems:
        return None
    rows: list[tuple[Content, ...]] = []
    for mean in sorted(rated.systems, key=lambda mean: -mean.people):
        of_judges = [_mean_cell(value) for value in mean.judges.values()]
        system = one_line(mean.system, _MAX_NAME)
        rows.append((system, _mean_cell(mean.people), *of_judges, mean.texts))
    return table(
        ("system", "people", *rated.systems[0].judges, "texts"),
        rows,
        caption=f"{rated.criterion}: means by people and by the judge, over the same texts.",
        name=f"systems-{rated.criterion}",
    )


def _mean_cell(value: float) -> Cell:
    return Cell(number(value, _PLACES), value=value)


def system_finding(criteria: Sequence[Rated], judge: str) -> Iterator[str]:
    """Say on which criteria people rate a system significantly above the judge's best one."""
    for rated in criteria:
        for above in rated.rated_above:
            if above.judge != judge:
                continue
            system = one_line(above.system, _MAX_NAME)
            judges_best = one_line(above.judges_best, _MAX_NAME)
            size = number(abs(above.difference), _PLACES)
            p_value = format_p(above.p)
            yield (
                f"{rated.criterion}: people rate {system} better than {judges_best}, "
                f"the judge's best system, by {size} ({p_value})."
            )
