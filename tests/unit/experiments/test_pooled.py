"""How far runs differ by chance, against many made-up tables."""

import numpy as np
import pytest

from experiments.tables.pooled import Pooled


def test_the_deviation_is_that_of_the_runs_relative_to_their_row():
    found = Pooled.of([[2.0], [1.0, 3.0], [10.0, 10.0, 13.0]])
    # (½² + ½²) + ((1/11)² + (1/11)² + (2/11)²), over 1 + 2 degrees of freedom
    assert found.deviation == pytest.approx(((0.5 + 6 / 121) / 3) ** 0.5)
    assert found.freedom == 3
    assert Pooled.of([[1.0], [], [0.0, 0.0]]) is None


def test_changes_of_rows_that_do_not_differ_lie_within_in_nineteen_of_twenty_tables(generator):
    """SGD and one other row of the same mean, three runs and one; six rows tell the deviation."""
    tables, inside = 4000, 0
    for _ in range(tables):
        rows = generator.normal(20.0, 0.8, size=(6, 3))
        other = generator.normal(20.0, 0.8)
        ratio = other / rows[0].mean()
        inside += abs(ratio - 1) <= Pooled.of(rows).interval(ratio, 1, 3)
    assert abs(inside / tables - 0.95) < 6 * np.sqrt(0.95 * 0.05 / tables)
