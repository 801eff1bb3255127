from __future__ import annotations

import csv
from io import StringIO

from judge.report import Result
from judge.report.csv import HEADER, render


def test_golden(result: Result, golden) -> None:
    golden("report.csv", render(result))


def test_every_system_and_column_has_a_row_in_full_precision(result: Result) -> None:
    header, *rows = csv.reader(StringIO(render(result)))
    assert tuple(header) == HEADER
    assert len(rows) == 3 * 4
    found = {(row[0], row[1]): row for row in rows}
    for key, estimate in result.estimates.items():
        assert float(found[key][3]) == estimate.value
        assert found[key][6] == str(estimate.n)
    assert found["evil|<b>*sys*", "一貫性"][3:9] == ["", "", "", "0", "3", "3"]
