from __future__ import annotations

from dataclasses import replace

from judge.report.views.heat_maps import heats
from judge.results.result import Result
from judge.stats.correlation import Matrix
from judge.table import Table


def test_every_level_has_its_cells(tested: Result) -> None:
    found = heats(tested)
    assert [one.level for one in found] == ["Item level", "Document level", "System level"]
    spearman = {m.level: m for m in tested.matrices if m.coefficient == "spearman"}
    for heat, level in zip(found, ("item", "document", "system"), strict=True):
        matrix = spearman[level]
        assert heat.names == matrix.names
        for row, values in enumerate(matrix.values):
            for column, value in enumerate(values):
                cell = heat.cells[row][column]
                if row == column:
                    assert cell.text == ""
                elif value is None:
                    assert cell.text == "–"
                else:
                    assert cell.text == f"{value + 0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def test_colours_and_words_of_a_cell() -> None:
    cells = ((1.0, -0.5), (-0.5, 1.0))
    ends = ((None, -0.75), (-0.75, None)), ((None, -0.25), (-0.25, None))
    matrix = Matrix("document", "spearman", ("a", "b"), cells, *ends, ((9, 8), (8, 9)), note="what was left out")
    (heat,) = heats(replace(_empty(), matrices=(matrix,)))
    cell = heat.cells[0][1]
    assert (cell.side, cell.shade, cell.text) == ("lost", 35, "−0.50")
    assert cell.title == "−0.50 [−0.75, −0.25], 8 items"
    assert heat.caption.endswith("What was left out.")


def test_a_level_without_a_value_is_left_out() -> None:
    cells = ((1.0, None), (None, 1.0))
    none = ((None, None), (None, None))
    matrix = Matrix("system", "spearman", ("a", "b"), cells, none, none, ((2, 2), (2, 2)))
    assert heats(replace(_empty(), matrices=(matrix,))) == ()


def _empty() -> Result:
    return Result(Table((), (), ()))
