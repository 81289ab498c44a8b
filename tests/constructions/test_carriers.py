"""Modes that rest on a handful of rows: built with them, or said to be missing."""

import numpy as np
import pytest
from benchmarks.several_modes import FAMILIES, grid, line

import corebayes as cb
from corebayes.problem import Problem


def of_carried(seed):
    """Rows and model; the truth from a row of each kind; and the rows that carry a mode."""
    near = list(FAMILIES["carried"](seed))[1]
    model, rows = near.coreset.model, near.rows
    carries = rows.take(np.arange(rows.num_rows))["carries"]
    counts = np.where(near.coreset.rows["carries"] == 1.0, carries.sum(), np.sum(carries == 0.0))
    truth = grid(model, line(-25.0, 25.0, 20_001), near.coreset.rows, counts)
    return rows, model, truth, np.flatnonzero(carries)


# One row of 20,000, and thirty of 2,000.
@pytest.mark.parametrize("seed", [1, 6])
def test_a_mode_of_few_rows_is_built(seed):
    rows, model, truth, carriers = of_carried(seed)
    coreset = cb.build(model, rows, size=8, seed=seed, progress=False)
    assert np.any(np.isin(coreset.indices, carriers))
    assert truth.kl(coreset) < 1e-3


def test_rows_that_a_mode_rests_on_are_known():
    rows, model, truth, carriers = of_carried(4)
    problem = Problem(model, rows)
    assert problem.carriers.size == 0
    heaviest = truth.places[np.argmax(truth.full)]
    assert problem.places[0] == pytest.approx(heaviest, abs=0.05)
    assert set(carriers) <= set(problem.carriers.tolist())
    (again,) = problem.modes_near(problem.places[1:2])
    assert again.fit.mean == pytest.approx(problem.places[1], abs=0.05)
