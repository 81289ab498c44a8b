"""Modes that rest on a handful of rows: built with them, or said to be missing."""

import numpy as np
import pytest
from benchmarks.carried_modes import carried_problem

import corebayes as cb
from corebayes.problem import Problem


# One row of 20,000, and thirty of 2,000; a hole in five dimensions that no particle falls into.
@pytest.mark.parametrize(
    ("number", "carriers", "dim"),
    [
        (20_000, 1, 1),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2000, 30, 1), (20_000, 30, 5))),
    ],
)
def test_a_mode_of_few_rows_is_built(number, carriers, dim):
    problem = carried_problem(np.random.default_rng(dim), number, carriers, dim)
    coreset = cb.build(problem.model, problem.rows, size=8, seed=1, progress=False)
    assert np.any(np.isin(coreset.indices, problem.carriers))
    assert problem.kl(coreset) < 1e-3


def test_rows_that_a_mode_rests_on_are_known():
    rows, model, carriers, bump, _ = carried_problem(np.random.default_rng(4), 20_000, 5, 1)
    problem = Problem(model, rows)
    assert problem.carriers.size == 0
    assert len(problem.places) == 2
    assert np.min(np.abs(problem.places)) < 0.05
    assert np.max(np.abs(problem.places)) == pytest.approx(bump.place, rel=0.3)
    assert set(carriers) <= set(problem.carriers.tolist())
    (again,) = problem.modes_near(problem.places[1:2])
    assert again.fit.mean == pytest.approx(problem.places[1], abs=0.05)
