"""Every tangent space of every model keeps the algebra of a Hilbert space of potentials."""

import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import corebayes as cb
from corebayes.rows import open_rows
from corebayes.scan.inline import Inline
from corebayes.scan.query import BestRows, Totals
from corebayes.tangent.geometry import residual_of, scanned_total
from tests.contract.cases import GEOMETRIES, products, some_points
from tests.opened import read, scan, table

WEIGHTS = np.array([9.0, 0.0, 21.0, 4.0])
POINTS = (3, 17, 40, 41)


@cache
def problem_of(case):
    """One for all tests: the modes that guards look for are found once."""
    return case.problem()


def look(case, geometry, **options):
    problem = case.problem(**options) if options else problem_of(case)
    points = some_points(problem, *POINTS)
    space = geometry.space(np.random.default_rng(1), problem, points.at(WEIGHTS))
    return problem, points, space


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1))
def test_operations_agree_with_the_gram_matrix(case, geometry):
    problem, _, space = look(case, geometry)
    block = read(problem.data, 0, problem.data.num_rows)
    vectors = space.embed(block)
    gram = space.gram(vectors)
    weights = np.random.default_rng(2).normal(size=len(block))
    element = space.combine(vectors, weights)
    scale = np.abs(gram).max()
    assert np.allclose(gram, gram.T, rtol=0, atol=1e-12 * scale)
    assert np.linalg.eigvalsh(gram).min() >= -1e-10 * scale * len(block)
    assert np.allclose(np.diag(gram), space.squared_norms(vectors), rtol=1e-9, atol=1e-12 * scale)
    assert np.allclose(
        space.project(vectors, element), gram @ weights, rtol=1e-9, atol=1e-9 * scale
    )
    assert element @ element == pytest.approx(weights @ gram @ weights, rel=1e-8)


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=1))
def test_total_is_the_sum_of_all_rows(case, geometry):
    problem, _, space = look(case, geometry)
    block = read(problem.data, 0, problem.data.num_rows)
    by_rows = space.combine(space.embed(block), np.ones(len(block)))
    size = np.linalg.norm(by_rows)
    for total in (
        geometry.total(problem, space),
        space.total(block),
        scanned_total(problem, space),
    ):
        assert np.allclose(total.element, by_rows, rtol=0, atol=1e-11 * size)


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=2))
def test_subsampled_totals_are_unbiased(case, geometry):
    """Averaged over all leave-some-out subsamples of equal size, U/N is made good."""
    problem, _, space = look(case, geometry)
    exact = scanned_total(problem, space)
    thirds = [scanned_total(problem, space, np.arange(k, 60, 3)) for k in range(3)]
    mean = np.mean([third.element for third in thirds], axis=0)
    assert np.allclose(mean, exact.element, rtol=0, atol=1e-10 * np.linalg.norm(exact.element))
    assert np.mean([third.mean for third in thirds]) == pytest.approx(exact.mean)


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=3))
def test_counts_equal_repeated_rows(case, geometry):
    counts = np.random.default_rng(3).integers(0, 4, size=60).astype(float)
    counts[list(POINTS)] = 1.0
    problem, _, space = look(case, geometry, counts=counts)
    block = read(problem.data, 0, 60)
    repeated = np.repeat(np.arange(60), counts.astype(int))
    by_rows = space.combine(space.embed(block.take(repeated)), np.ones(repeated.size))
    total = geometry.total(problem, space).element
    assert np.allclose(total, by_rows, rtol=0, atol=1e-11 * np.linalg.norm(total))


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=4))
def test_gradient_and_moments_of_the_restriction_agree(case, geometry):
    problem, points, space = look(case, geometry)
    gradient = geometry.restrict(problem, points).gradient(np.random.default_rng(1), WEIGHTS)
    moments = geometry.restrict(problem, points).moments(np.random.default_rng(1), WEIGHTS)
    vectors = space.embed(points.rows)
    residual = residual_of(geometry, problem, space, points.at(WEIGHTS))
    scale = np.abs(moments.cross).max()
    assert np.allclose(gradient, moments.gradient(WEIGHTS), rtol=0, atol=1e-8 * scale)
    assert np.allclose(gradient, -space.project(vectors, residual), rtol=0, atol=1e-6 * scale)
    assert np.allclose(moments.gram, space.gram(vectors), rtol=1e-6, atol=1e-8 * scale)


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=5))
def test_best_rows_are_the_best_by_brute_force(case, geometry):
    problem, points, space = look(case, geometry)
    residual = residual_of(geometry, problem, space, points.at(WEIGHTS))
    block = problem.data.take(np.arange(60))
    vectors = space.embed(block)
    scores = space.project(vectors, residual) / np.sqrt(space.squared_norms(vectors))
    scores[list(POINTS)] = -np.inf
    expected = np.argsort(-scores)[:7]
    best = problem.ask(BestRows(space, residual, 7, np.sort(np.array(POINTS))))
    assert np.array_equal(best.points.indices, expected)
    assert np.allclose(best.scores, scores[expected], rtol=1e-9)
    assert np.array_equal(best.points.rows.X, block.X[expected])


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=6))
def test_a_space_can_be_sent_to_a_worker(case, geometry):
    problem, _, space = look(case, geometry)
    block = read(problem.data, 0, 60)
    again = pickle.loads(pickle.dumps(space))
    assert np.array_equal(again.total(block).element, space.total(block).element)


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=7))
def test_threads_do_not_change_a_bit(case, geometry):
    problem = case.problem(num_rows=300)
    small_shards = open_rows(replace(table(problem.data), shard_rows=37))
    points = some_points(problem, *POINTS)
    space = geometry.space(np.random.default_rng(1), problem, points.at(WEIGHTS))
    one = scan(Totals(space), small_shards, Inline(threads=1)).total
    three = scan(Totals(space), small_shards, Inline(threads=3)).total
    assert np.array_equal(one, three)
    in_one_shard = scanned_total(problem, space).element
    assert np.allclose(one, in_one_shard, rtol=0, atol=1e-12 * np.linalg.norm(one))


def many_draws(geometry):
    if isinstance(geometry, cb.Guard):
        return replace(geometry, geometry=many_draws(geometry.geometry))
    return cb.MonteCarlo(num_draws=40_000) if isinstance(geometry, cb.MonteCarlo) else geometry


@pytest.mark.parametrize(("case", "geometry"), products(GEOMETRIES, models_each=1, start=8))
def test_energy_differences_are_differences_of_kl(case, geometry):
    """KL(q ‖ π) of the Gaussian fit q of π_w, by plain averages over many draws of q."""
    geometry = many_draws(geometry)
    problem = problem_of(case)
    model, block = problem.model, read(problem.data, 0, 60)
    points = some_points(problem, *POINTS)
    energies, kls = [], []
    for weights in (WEIGHTS, np.array([30.0, 20.0, 21.0, 40.0])):
        restriction = geometry.restrict(problem, points)
        energies.append(restriction.moments(np.random.default_rng(1), weights).level.energy)
        mean, factor = cb.Laplace().fit(cb.Posterior(model, points.rows, weights))
        z = np.random.default_rng(2).normal(size=(40_000, model.dim))
        draws = mean + z @ factor.T
        log_q = -0.5 * np.sum(z * z, axis=1) - np.linalg.slogdet(factor)[1]
        log_target = model.sum_potentials(draws, block) + model.log_prior(draws)
        kls.append(np.mean(log_q - log_target))
    assert energies[1] - energies[0] == pytest.approx(kls[1] - kls[0], rel=0.03, abs=0.05)
