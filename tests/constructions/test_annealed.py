"""AnnealedSparseVI reaches posteriors that greedy steps from the prior do not."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.two_modes import outcome

import corebayes as cb
from corebayes.constructions.annealed.polish import Polish, _rehearsal
from corebayes.constructions.annealed.view import Goal, View
from corebayes.deadline import OutOfTimeError, deadline_at
from corebayes.diagnostics import laplace_kl
from corebayes.problem import Problem
from corebayes.rows import open_rows
from tests.contract.cases import MODELS

CASES = {case.name: case for case in MODELS}

SLOW = pytest.mark.slow


def logistic_rows(num_rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, 5)) @ (np.eye(5) + 0.3 * rng.normal(size=(5, 5)))
    return X, rng.uniform(size=num_rows) < 1 / (1 + np.exp(-X @ [1.5, -2.0, 0.5, 0.0, 0.7]))


@pytest.mark.parametrize("num_rows", [2_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_as_many_points_as_quadratics_have_coefficients(num_rows):
    rows = logistic_rows(num_rows)
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=21)
    assert coreset.size <= 21
    assert laplace_kl(coreset, open_rows(rows)) < 1e-2
    assert coreset.provenance["passes"] < 20


def test_passes_do_not_grow_with_the_rows():
    passes = [
        cb.build(cb.LogisticRegression(prior=cb.Normal()), logistic_rows(n), size=21).provenance[
            "passes"
        ]
        for n in (30_000, 120_000)
    ]
    assert passes[1] < 1.5 * passes[0] + 1.0


def test_a_path_of_sizes_takes_few_passes_and_every_size_is_better_than_the_last():
    rows, sizes = logistic_rows(10_000), [2, 4, 8, 14, 21]
    coresets = cb.build_path(cb.LogisticRegression(prior=cb.Normal()), rows, sizes=sizes)
    data = open_rows(rows)
    kls = [laplace_kl(coreset, data) for coreset in coresets]
    one = laplace_kl(cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, size=1), data)
    # Also with fewer rows than parameters, where most directions are left to the prior.
    assert all(after < before for before, after in itertools.pairwise([one, *kls]))
    # Sizes below the number of parameters are far away, and their steps are luck.
    assert coresets[-1].provenance["passes"] <= 6.0 * len(sizes) + 5.0
    # The trace of each ends with its own rows.
    assert [one.trace[-1]["size"] for one in coresets] == [one.size for one in coresets]


@pytest.mark.parametrize("name", ["gaussian", "linear"])
def test_exact_for_conjugate_models(name):
    coreset = cb.build(CASES[name].model, CASES[name].data(num_rows=3_000), size=10)
    assert coreset.size <= 10
    assert coreset.trace[-1]["kl"] < 1e-7


def test_a_tolerance_alone_chooses_the_size():
    rows = logistic_rows(5_000)
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), rows, tol=0.02)
    assert coreset.reason == f"certified KL(π_w ‖ π) ≤ 0.02, twice, with {coreset.size} rows"
    assert coreset.size <= 40


def test_a_tolerance_on_few_rows_does_not_keep_them_all():
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), logistic_rows(300), tol=0.05)
    assert coreset.reason.startswith("certified") and coreset.size <= 60


@pytest.mark.parametrize("size", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
def test_tiny_sizes_work(size):
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), logistic_rows(2_000), size=size)
    assert 1 <= coreset.size <= size


def test_counts_equal_repeated_rows():
    X, y = logistic_rows(1_500)
    counts = np.random.default_rng(1).integers(0, 4, size=1_500)
    repeated = np.repeat(np.arange(1_500), counts)
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), (X, y), size=21, counts=counts.astype(float)
    )
    everything = open_rows((X[repeated], y[repeated]))
    same = cb.Coreset(
        coreset.indices, coreset.weights, coreset.rows, coreset.model, repeated.size, repeated.size
    )
    assert laplace_kl(same, everything) < 1e-2


@pytest.mark.parametrize("warming", [1.6, 1e9])
def test_temperatures_adapt(warming):
    """A step too far is taken back, and too short ones grow longer."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 10))
    y = rng.random(60_000) < 1 / (1 + np.exp(-2.0 * X @ np.linspace(-1.0, 1.5, 10)))
    model = cb.LogisticRegression(prior=cb.Normal(0.0, 10.0))
    method = cb.AnnealedSparseVI(warming=warming)
    coreset = cb.build(model, (X, y), size=66, method=method)
    assert laplace_kl(coreset, open_rows((X, y))) < 1e-2
    assert coreset.provenance["passes"] < 12


def path_of(sizes, **options):
    return cb.build_path(
        cb.LogisticRegression(prior=cb.Normal()), logistic_rows(2_000), sizes=sizes, **options
    )


def test_a_path_of_sizes_from_one_run():
    data, sizes = open_rows(logistic_rows(2_000)), [40, 5, 10, 20]
    coresets = path_of(sizes)
    assert all(c.size <= size for c, size in zip(coresets, sorted(sizes), strict=True))
    kls = [laplace_kl(coreset, data) for coreset in coresets]
    assert np.all(np.diff(kls) < 0.0) and kls[-1] < 1e-5
    # One run: the passes are those of the path, not of four builds.
    alone = [cb.build(cb.LogisticRegression(prior=cb.Normal()), data, size=size) for size in sizes]
    assert coresets[0].provenance["passes"] < sum(one.provenance["passes"] for one in alone)
    for coreset, again in zip(coresets, path_of(sizes), strict=True):
        assert np.array_equal(coreset.indices, again.indices)
        assert np.array_equal(coreset.weights, again.weights)


def test_a_greedy_method_gives_the_coresets_it_passes():
    coresets = path_of([2, 4, 7], method=cb.SparseVI())
    assert [coreset.size for coreset in coresets] == [2, 4, 7]
    assert set(coresets[0].indices) <= set(coresets[1].indices)
    (alone,) = path_of([4], method=cb.SparseVI())
    assert np.array_equal(alone.weights, coresets[1].weights)


@pytest.mark.parametrize(
    ("sizes", "error"),
    [([], ValueError), (5, TypeError), ("ab", TypeError), ([3, 0], ValueError), ([2.5], TypeError)],
)
def test_bad_sizes_are_named(sizes, error):
    with pytest.raises(error, match="size"):
        path_of(sizes)


def test_stopped_on_the_way_it_has_no_more_rows_than_asked_for():
    coreset = cb.build(
        cb.LogisticRegression(prior=cb.Normal()), logistic_rows(30_000), size=7, max_time=1e-9
    )
    assert coreset.reason.startswith("time limit") and coreset.size == 7
    assert np.all(coreset.weights > 0.0)


def test_few_points_for_many_parameters_are_grown_from_where_they_stand():
    """Selection around π itself is far worse than SparseVI here; the lower KL of both counts."""
    X = np.random.default_rng(0).normal(size=(400, 60)) + np.linspace(-3.0, 3.0, 60)
    model, sizes = cb.GaussianMean(1.0), [1, 5, 15]
    greedy = cb.build_path(model, X, sizes=sizes, method=cb.SparseVI())
    for ours, theirs in zip(cb.build_path(model, X, sizes=sizes), greedy, strict=True):
        assert laplace_kl(ours, open_rows(X)) <= 1.05 * laplace_kl(theirs, open_rows(X))


def test_more_points_than_cubics_use_higher_degrees():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=800), np.ones(800)])
    y = rng.random(800) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), (X, y), size=30)
    # Cubics have nine coefficients in two dimensions; that alone leaves about 1e-8.
    assert laplace_kl(coreset, open_rows((X, y))) < 1e-11


@pytest.mark.slow
def test_a_custom_model_by_its_functions_alone():
    X, y = logistic_rows(1_500)
    X = X[:, :3]

    def log_likelihood(draws, block):
        return -np.logaddexp(0.0, (1.0 - 2.0 * block.y)[:, None] * (block.X @ draws.T))

    def log_prior(draws):
        return -0.5 * np.sum(np.square(draws), axis=1)

    model = cb.CustomModel(log_likelihood, log_prior, 3)
    coreset = cb.build(model, (X, 1.0 * y), size=12)
    certificate = cb.certify(coreset, (X, 1.0 * y), draws=400, tol=0.05)
    assert certificate.certified, certificate.verdict


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cauchy", pytest.param("mixture", marks=pytest.mark.slow)])
def test_two_modes_are_both_right(name):
    result = outcome(name, seed=1)
    assert result.certified, result.verdict
    assert result.kl < 0.01


@pytest.mark.parametrize("num_rows", [1, 3, 8])
def test_fewer_rows_than_parameters(num_rows):
    X, y = logistic_rows(num_rows)
    with pytest.warns(UserWarning, match="linearly dependent|proportional|same"):
        coreset = cb.build(
            cb.LogisticRegression(prior=cb.Normal()), (np.hstack([X, X]), y), size=num_rows
        )
    assert 1 <= coreset.size <= num_rows


def custom_problem(num_rows, **options):
    def log_likelihood(draws, block):
        return -np.logaddexp(0.0, (1.0 - 2.0 * block.y)[:, None] * (block.X @ draws.T))

    def log_prior(draws):
        return -0.5 * np.sum(np.square(draws), axis=1)

    X, y = logistic_rows(num_rows)
    data = open_rows((X, 1.0 * y))
    return Problem(cb.CustomModel(log_likelihood, log_prior, 5).bind(data), data, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("geometry", "rehearsed"),
    [
        (None, False),  # draws of π_w itself, by NUTS where need be
        (cb.MonteCarlo(num_draws=50), True),
        # What the others tell is told by these.
        pytest.param(cb.MonteCarlo(num_draws=50, sampler=cb.Laplace()), True, marks=SLOW),
        pytest.param(cb.MonteCarlo(num_draws=50, sampler=cb.NUTS()), False, marks=SLOW),
        (cb.Guard(geometry=cb.MonteCarlo(num_draws=50, sampler=cb.NUTS())), False),
        pytest.param(cb.Guard(geometry=cb.MonteCarlo(num_draws=50)), True, marks=SLOW),
    ],
)
def test_looks_are_rehearsed_where_a_pass_is_what_they_cost(geometry, rehearsed):
    problem = custom_problem(300)
    view = View(np.random.default_rng(0), problem, 10, geometry, pool_rows=100, total_rows=3.0)
    assert view.cost.passes == 1.0 and view.cost.is_passes is rehearsed
    laplace = replace(view, given=cb.MonteCarlo(num_draws=50))
    pilot, rough = (laplace.look(problem.points(rows, weights), None) for rows, weights in PILOTS)
    state = Polish(Goal((4,), open=False), pilot, pilot, (rough.points,))
    rehearsal = _rehearsal(view, state, rough.points)
    assert (rehearsal is not None) is rehearsed


PILOTS = ((np.arange(300), np.ones(300)), (np.arange(4), np.full(4, 75.0)))


def test_looks_in_closed_form_take_no_pass_and_a_rehearsal_keeps_the_deadline():
    problem = CASES["linear"].problem(num_rows=300)
    view = View(np.random.default_rng(0), problem, 10, None, pool_rows=100, total_rows=3.0)
    assert view.cost == (0.0, 0) and not view.cost.is_passes
    # The geometry says so, not the model.
    assert replace(view, given=cb.Hermite()).cost.is_passes
    with deadline_at(time.perf_counter() - 1.0), pytest.raises(OutOfTimeError):
        replace(view.over(problem.points(np.arange(9), np.ones(9))), given=cb.MonteCarlo()).look(
            problem.no_points(), None
        )


@pytest.mark.slow
@pytest.mark.parametrize("size", [60, 300])
def test_passes_have_a_ceiling_however_hard_the_way_is(monkeypatch, size):
    """Separated columns under a wide prior: 35 to 71 passes where nothing ends them."""
    from corebayes.constructions.annealed import method

    monkeypatch.setattr(method, "CHEAP_ROWS", 0)
    rng = np.random.default_rng(1)
    X = (rng.random((6000, 45)) < np.geomspace(0.004, 0.3, 45)).astype(float)
    X[:, 22:] += 0.05 * rng.normal(size=(6000, 23)).cumsum(axis=1)
    y = (rng.random(6000) < 1.0 / (1.0 + np.exp(3.0 - X[:, -5:].sum(axis=1)))).astype(float)
    y[X[:, :8].any(axis=1)] = 0.0
    model = cb.LogisticRegression(intercept=True, prior=cb.Normal(0.0, 30.0))
    coreset = cb.build(model, (X, y), size=size, seed=1, reserve=0, progress=False)
    assert coreset.provenance["passes"] <= method.AnnealedSparseVI().passes(size)[1]


@pytest.mark.slow
def test_passes_to_a_tolerance_have_one_too(monkeypatch):
    """Sizes are begun until half of the passes are made, and what they end in is kept to."""
    from corebayes.build import tolerance
    from corebayes.constructions.annealed import method

    monkeypatch.setattr(method, "CHEAP_ROWS", 0)
    monkeypatch.setattr(tolerance, "CHEAP_ROWS", 0)
    monkeypatch.setattr(method, "OPEN_PASSES", 65.0)
    rng = np.random.default_rng(1)
    X = (rng.random((6000, 12)) < np.geomspace(0.01, 0.3, 12)).astype(float)
    X[:, 6:] += 0.05 * rng.normal(size=(6000, 6)).cumsum(axis=1)
    y = (rng.random(6000) < 1.0 / (1.0 + np.exp(3.0 - X[:, -5:].sum(axis=1)))).astype(float)
    y[X[:, :3].any(axis=1)] = 0.0
    model = cb.LogisticRegression(intercept=True, prior=cb.Normal(0.0, 30.0))
    with pytest.warns(cb.ToleranceWarning, match="of at most 65 passes are made"):
        coreset = cb.build(model, (X, y), tol=1e-12, seed=1, reserve=0, progress=False)
    assert 15.0 <= coreset.provenance["passes"] <= 65.0
