"""Holes that no particle falls into are found by the digits they leave, or said to be unseen."""

import numpy as np
import pytest
from benchmarks.carried_modes import carried_problem, log_prior
from benchmarks.several_modes import of_rows

import corebayes as cb
from corebayes.certify.measure import measure
from corebayes.rows import open_rows
from corebayes.samplers.modes.holes import find_holes
from corebayes.samplers.posterior import Posterior

NUM_ROWS = 600


def holes_of(model, rows, seed=0):
    """From places around the first mode only, as particles leave them."""
    rng = np.random.default_rng(seed)
    block = rows.take(np.arange(rows.num_rows))
    alike = rows.take(rng.choice(rows.num_rows, 256, replace=False))
    places = 5.0 * rng.standard_normal((1000, model.dim))
    return find_holes(rng, Posterior(model, block, np.ones(len(block))), alike, places)


@pytest.mark.parametrize(
    ("carriers", "dim"), [(1, 1), (30, 5), pytest.param(8, 8, marks=pytest.mark.slow)]
)
def test_the_place_of_a_bump_is_found(carriers, dim):
    problem = carried_problem(np.random.default_rng(dim), NUM_ROWS, carriers, dim)
    found = holes_of(problem.model, problem.rows)
    assert found.silent is None
    block = problem.rows.take(np.arange(1))
    truth = problem.bump.place * np.array([block[f"u{axis}"][0] for axis in range(dim)])
    nearest = np.min(np.linalg.norm(found.places - truth, axis=1))
    # Within half of the radius √(2 s h), from where Newton's method needs no luck.
    assert nearest < 0.5 * np.sqrt(2.0 * problem.bump.squares * problem.height)


def stepped(draws, block):
    """A hole with vertical walls: exactly nothing outside."""
    inside = np.sum(np.square(draws - 10.0), axis=1) < 4.0
    shared = -0.5 * np.sum(np.square(draws), axis=1) / NUM_ROWS
    return shared + 300.0 * block["odd"][:, None] * inside + 0.0 * block["x"][:, None]


def stepped_rows(odd):
    x = np.random.default_rng(1).standard_normal(NUM_ROWS)
    rows = open_rows({"odd": odd, "x": x})
    return rows, cb.CustomModel(stepped, log_prior, 5).bind(rows)


def test_a_rare_value_that_says_nothing_anywhere_is_named():
    odd = np.zeros(NUM_ROWS)
    odd[77] = 1.0
    rows, model = stepped_rows(odd)
    assert holes_of(model, rows).silent == "column 'odd'"
    # A column that the model does not use, without rare values, is nobody's business.
    rows, model = stepped_rows(np.zeros(NUM_ROWS))
    assert holes_of(model, rows).silent is None


@pytest.mark.slow
def test_what_no_search_can_see_is_not_certified():
    odd = np.zeros(NUM_ROWS)
    odd[77] = 1.0
    rows, model = stepped_rows(odd)
    others = np.delete(np.arange(NUM_ROWS), 77)
    weights = np.full(others.size, NUM_ROWS / others.size)
    found = measure(of_rows(model, rows, others, weights), rows, tol=0.05)
    assert not found.certified and found.fault == "search"
    assert "in column 'odd' that is far from all others" in found.verdict


def test_rows_alike_in_all_columns_have_no_holes():
    rows = open_rows({"x": np.ones(50)})
    model = cb.CustomModel(
        lambda d, b: -0.5 * np.square(d[:, 0]) + 0 * b["x"][:, None], log_prior, 1
    )
    found = holes_of(model.bind(rows), open_rows({"x": np.ones(300)}))
    assert found.places.shape == (0, 1) and found.silent is None
