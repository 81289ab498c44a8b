"""A subsample with what it misses of all rows added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corebayes as cb
from corebayes.constructions.annealed.surrogate import NEGLIGIBLE, Surrogate, foreseen, total_of
from corebayes.problem import Problem
from corebayes.tangent.gaussian import gaussian_kl
from corebayes.tangent.geometry import element_of, half_square
from corebayes.tangent.hermite import Hermite
from corebayes.types import Block, Gaussian
from tests.problems import coins

NAMES = ("one", "x", "z")


@pytest.fixture(scope="module")
def model():
    return cb.LogisticRegression(prior=cb.Normal(0, 3)).with_names(NAMES)


def rows(num_rows: int, seed: int = 0, spread: float = 1.0) -> Block:
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(num_rows), rng.gamma(2.0, spread, (num_rows, 2))])
    y = coins(rng, X @ [0.5, 0.7, 0.2] - 2.0)
    return Block({"X": X, "y": y.astype(float)})


def counted(block: Block, times: float) -> Block:
    return Block(block.fields, np.full(len(block), times))


def closest(geometry: Hermite, model, at: Gaussian, block: Block) -> Gaussian:
    for _ in range(30):
        space = geometry.at(model, at)
        at, _ = space.newton(space.total(block))
    return at


@pytest.mark.parametrize("order", [2, 3])
def test_it_is_all_rows_where_it_was_made_and_misses_a_polynomial_elsewhere(model, order):
    everything, some = rows(4000), counted(rows(50, seed=1), 80.0)
    geometry = Hermite(order=order)
    there = Gaussian(np.array([-1.0, 0.4, 0.3]), np.diag([0.1, 0.2, 0.05]))
    space = geometry.at(model, there)
    total = space.total(everything)
    surrogate = Surrogate.of(space, total, some)
    np.testing.assert_allclose(surrogate.total(space).element, total.element, atol=1e-8)
    assert surrogate.total(space).mean == pytest.approx(total.mean, rel=1e-12)
    # What is added has the derivatives, of the highest degree, that it has everywhere.
    factor = np.array([[0.2, 0.0, 0.0], [0.1, 0.3, 0.0], [-0.1, 0.05, 0.1]])
    other = geometry.at(model, Gaussian(np.array([0.2, -0.3, 0.9]), factor))
    own = other.total(some)
    added, missed = surrogate.total(other).element - own.element, surrogate.missed
    turn = np.linalg.solve(there.factor, factor)
    highest = missed[-(3**order) :].reshape((3,) * order)
    for _ in range(order):
        highest = np.tensordot(highest, turn, axes=([0], [0]))
    np.testing.assert_allclose(added[-(3**order) :], highest.ravel(), rtol=1e-7, atol=1e-9)


def moved(space, deviations):
    return replace(space, location=space.location + deviations * space.factor.sum(axis=1))


@pytest.mark.parametrize("order", [2, 3])
def test_its_error_elsewhere_is_what_it_says(model, order):
    everything = rows(40_000, 3)
    at = closest(Hermite(order=2), model, Gaussian(np.zeros(3), 0.01 * np.eye(3)), everything)
    space = Hermite(order=order).at(model, at)
    far, total = moved(space, 4.0), space.total(everything)
    truth, said, found = far.total(everything).element, [], []
    for seed in range(20):
        some = everything.take(np.random.default_rng(seed).choice(40_000, 2000, replace=False))
        surrogate = Surrogate.of(space, total, counted(some, 20.0))
        said.append(surrogate.sample.error(far))
        found.append(half_square(surrogate.total(far).element - truth))
    assert 0.5 * np.mean(said) < np.mean(found) < 2.0 * np.mean(said)
    # Of a lower power of the distance than the degrees that are known.
    assert surrogate.sample.error(moved(space, 2.0)) < 0.2 * surrogate.sample.error(far)


def test_a_subsample_that_misses_rows_far_out_does_not_stand_for_them(model):
    everything = rows(20_000, 4)
    some = counted(everything.take(slice(0, 10_000)), 2.0)
    at = closest(Hermite(order=2), model, Gaussian(np.zeros(3), 0.01 * np.eye(3)), everything)
    # Where both labels are as likely, so that they say something.
    away = 20.0 * np.cross(at.mean, [0.0, 0.0, 1.0])
    far = Block({"X": np.tile(away, (3, 1)), "y": np.zeros(3)})
    space = Hermite(order=3).at(model, at)
    near = moved(space, 0.05)
    assert Surrogate.of(space, space.total(everything), some).is_exact(near)
    assert not Surrogate.of(space, space.total(everything.append(far)), some).is_exact(near)
    assert not Surrogate.of(space, space.total(everything), some).is_exact(moved(space, 20.0))


def test_cubes_of_random_rows_do_where_it_is_known_of_all_that_they_count_for_nothing(model):
    everything, at_hand = rows(60_000, 5), np.arange(0, 60_000, 4)
    some = counted(everything.take(at_hand[::10]), 40.0)
    geometry, at = Hermite(order=3), Gaussian(np.array([-1.0, 0.4, 0.3]), 2e-3 * np.eye(3))

    def found(block: Block, at: Gaussian):
        problem = Problem(model, (block.X, block.y))
        space = geometry.at(model, at)
        seen = total_of(geometry, problem, space, some, at_hand)
        return seen.element, space.total(block).element, problem.rows_scanned / len(block)

    seen, truth, passes = found(everything, at)
    np.testing.assert_allclose(seen[:12], truth[:12], rtol=1e-12)
    assert 0.0 < half_square(seen - truth) < NEGLIGIBLE and passes == 1.25
    # Cubes of rows far out, which are not among the random ones, count; and of all rows of a wide
    # posterior, which the random ones tell before.
    far = Block({"X": np.tile([1.0, 60.0, -82.0], (5, 1)), "y": np.zeros(5)})
    wide = Gaussian(at.mean, 10.0 * at.factor)
    for block, there, cost in ((everything.append(far), at, 2.0), (everything, wide, 1.0)):
        seen, truth, passes = found(block, there)
        np.testing.assert_allclose(seen, truth, rtol=1e-12)
        assert passes == cost


@pytest.mark.parametrize("family", [cb.LogisticRegression, cb.PoissonRegression])
def test_many_rows_are_added_up_once_and_matched_as_well(family):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400_000, 4))
    eta = X @ [0.3, -0.2, 0.4, 0.1]
    y = (coins(rng, eta) if family is cb.LogisticRegression else rng.poisson(np.exp(eta))) * 1.0
    model = family(prior=cb.Normal())
    coreset = cb.build(model, (X, y), size=15, reserve=0, progress=False)
    # With the random rows that come before all, and no looks after.
    assert coreset.provenance["passes"] <= 1.25
    problem, geometry = Problem(coreset.model, (X, y)), Hermite(order=2)
    space = geometry.space(rng, problem, coreset.points)
    left = geometry.total(problem, space).element - element_of(space, coreset.points)
    assert half_square(left) < coreset.trace[-1]["kl"] + 2e-8 < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_what_is_foreseen_is_closer_than_a_plain_step_and_off_by_what_it_says(model, seed):
    everything = rows(60_000, seed)
    some = everything.take(np.random.default_rng(seed).choice(60_000, 1500, replace=False))
    some, geometry = counted(some, 40.0), Hermite(order=2)
    start = Gaussian(np.zeros(3), 0.01 * np.eye(3))
    first = geometry.at(model, closest(geometry, model, start, some))
    total = first.total(everything)
    end = closest(geometry, model, first.gaussian, everything)
    found, off, walled, _ = foreseen(geometry, first, total, some)
    plain = first.newton(total)[0]
    assert gaussian_kl(found, end) < 0.3 * gaussian_kl(plain, end)
    assert gaussian_kl(found, end) < 20.0 * off < 1.0
    assert not walled


def test_a_subsample_without_the_rows_that_matter_foresees_nothing(model):
    everything = rows(20_000)
    far = Block({"X": np.tile([1.0, 300.0, 0.0], (40, 1)), "y": np.zeros(40)})
    some = counted(everything.take(slice(0, 1000)), 20.0)
    geometry = Hermite(order=2)
    start = Gaussian(np.zeros(3), 0.01 * np.eye(3))
    first = geometry.at(model, closest(geometry, model, start, some))
    total = first.total(everything.append(far))
    found, off, walled, _ = foreseen(geometry, first, total, some)
    plain = first.newton(total)[0]
    assert off == float("inf") and not walled
    np.testing.assert_array_equal(found.mean, plain.mean)


@pytest.mark.parametrize(
    ("link", "seed"), [("logit", 0), ("log", 0), pytest.param("logit", 1, marks=pytest.mark.slow)]
)
def test_levels_that_are_separated_take_few_passes(link, seed):
    """Too many rows to be kept, and a posterior as wide as its prior: plain steps go back and
    forth, and safe ones on all rows would be some thirty passes."""
    rng = np.random.default_rng(seed)
    level = rng.integers(12, size=20_000)
    eta = 0.1 * level - 0.5
    y = coins(rng, eta) if link == "logit" else rng.poisson(np.exp(eta))
    y[level == 1], y[level == 2] = 0, 1 if link == "logit" else y[level == 2]
    X = np.column_stack([np.ones(20_000), level[:, None] == np.arange(1, 12)]).astype(float)
    family = cb.LogisticRegression if link == "logit" else cb.PoissonRegression
    model = family(prior=cb.Normal(0, 9.0))
    coreset = cb.build(model, (X, y.astype(float)), size=100, seed=seed, progress=False)
    assert coreset.provenance["passes"] <= 9.0
    found = cb.certify(coreset, (X, y.astype(float)), seed=seed + 1)
    assert found.certified and found.reverse_kl.value < 1e-4


def test_no_file_is_read_again_for_the_rows_before_all(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300_000, 3))
    y = coins(rng, X @ [0.3, -0.2, 0.4]) * 1.0
    columns = {name: X[:, k] for k, name in enumerate("abc")}
    pq.write_table(pa.table({**columns, "y": y}), tmp_path / "rows.parquet", row_group_size=50_000)
    model, file = cb.LogisticRegression(prior=cb.Normal()), str(tmp_path / "rows.parquet")
    for memory in (None, "400MB"):
        coreset = cb.build(
            model, file, target="y", size=12, reserve=0, memory=memory, progress=False
        )
        spent = coreset.provenance
        assert spent["rows_decoded"] <= 300_000 * (1.0 + np.floor(spent["passes"]))
