"""Weighting distributions: the moments they promise, and the spaces they make."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.constructions.hilbert import HilbertTarget
from corebayes.samplers.laplace import full_posterior
from corebayes.tangent.monte_carlo import MonteCarloSpace
from tests.contract.cases import MODELS, some_points

CASES = {case.name: case for case in MODELS}
MANY = 40_000


def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("name", ["gaussian", "linear", "logistic", "custom"])
def test_full_posterior_draws_have_its_moments(name):
    problem = CASES[name].problem()
    exact = full_posterior(problem.model, problem.data)
    draws = cb.FullPosterior(num_draws=MANY).space(rng(), problem).draws
    z = np.linalg.solve(exact.factor, (draws - exact.mean).T)
    assert np.allclose(z.mean(axis=1), 0.0, atol=5 / np.sqrt(MANY))
    assert np.allclose(z @ z.T / MANY, np.eye(3), atol=8 / np.sqrt(MANY))


class Script:
    """A sampler that hands out prepared draws and checks what it is asked for."""

    def __init__(self, draws):
        self.draws = draws

    def draw(self, rng, posterior, num_draws, start=None):
        assert num_draws == len(self.draws)
        assert np.all(posterior.weights == 3.0) and len(posterior.rows) == 60
        return cb.Draws(values=self.draws[None], location=self.draws[0], independent=True)


def test_full_posterior_with_a_sampler_takes_the_moments_of_its_draws():
    problem = CASES["logistic"].problem(counts=np.full(60, 3.0))
    given = rng().standard_t(5, size=(50, 3)) * [1.0, 0.3, 2.0] + [1.0, 5.0, -2.0]
    weighting = cb.FullPosterior(num_draws=None, sampler=Script(given), moment_draws=50)
    space = weighting.space(rng(), problem)
    assert np.allclose(space.location, given.mean(axis=0))
    assert np.allclose(space.factor @ space.factor.T, np.cov(given, rowvar=False))


@pytest.mark.parametrize("name", ["gaussian", "linear", "logistic", "poisson"])
@pytest.mark.parametrize(
    "weighting",
    [cb.FullPosterior, cb.Realistic, lambda **k: cb.SubsamplePosterior(num_rows=20, **k)],
)
def test_exact_inner_products_are_the_limit_of_many_draws(name, weighting):
    problem = CASES[name].problem(num_rows=40)
    block = problem.data.take(np.arange(40))
    exact = weighting(num_draws=None).space(rng(), problem)
    drawn = weighting(num_draws=MANY).space(rng(), problem)
    grams = [space.gram(space.embed(block)) for space in (exact, drawn)]
    scale = np.sqrt(np.outer(np.diag(grams[0]), np.diag(grams[0])))
    assert np.abs((grams[0] - grams[1]) / scale).max() < 0.06


def test_realistic_is_between_prior_and_posterior_without_noise():
    problem = CASES["linear"].problem(num_rows=200)
    prior, full = problem.model.gaussian_prior, problem.full_posterior
    shares = []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        space = cb.Realistic(num_draws=None, noise=0.0).space(generator, problem)
        share = (space.location - prior.mean) / (full.mean - prior.mean)
        covariance = full.factor @ full.factor.T
        expected = prior.covariance + share[0] * (covariance - prior.covariance)
        assert np.allclose(share, share[0])
        assert np.allclose(space.factor @ space.factor.T, expected)
        shares.append(share[0])
    assert 0.0 < min(shares) < 0.2 and 0.8 < max(shares) < 1.0


def test_realistic_noise_is_relative():
    problem = CASES["linear"].problem(num_rows=200)
    ratios, log_scales = [], []
    for seed in range(200):
        noisy = cb.Realistic(num_draws=None).space(np.random.default_rng(seed), problem)
        plain = cb.Realistic(num_draws=None, noise=0.0).space(np.random.default_rng(seed), problem)
        ratios.append(noisy.location / plain.location - 1.0)
        scales = (noisy.factor @ noisy.factor.T) / (plain.factor @ plain.factor.T)
        assert np.allclose(scales, scales[0, 0])
        log_scales.append(np.log(scales[0, 0]))
    assert np.std(ratios) == pytest.approx(0.75, rel=0.1)
    assert np.std(log_scales) == pytest.approx(0.75, rel=0.15)


def test_subsample_posterior_is_that_of_its_rows():
    problem = CASES["gaussian"].problem(counts=np.full(60, 3.0))
    space = cb.SubsamplePosterior(num_rows=60, num_draws=None).space(rng(), problem)
    all_rows = some_points(problem, *range(60))
    expected = cb.ClosedForm().space(rng(), problem, all_rows.at(np.full(60, 3.0)))
    assert np.allclose(space.mean, expected.mean) and np.allclose(space.spread, expected.spread)
    fewer = cb.SubsamplePosterior(num_rows=10, num_draws=None).space(rng(), problem)
    assert np.all(fewer.spread > expected.spread)


def test_given_draws_are_used_as_they_are():
    problem = CASES["logistic"].problem()
    draws = rng().normal(size=(11, 3))
    space = cb.GivenDraws(draws).space(rng(), problem)
    assert isinstance(space, MonteCarloSpace) and np.array_equal(space.draws, draws)
    assert repr(cb.GivenDraws(draws)) == "GivenDraws(11 draws of 3 parameters)"


def test_any_class_that_makes_a_space_is_a_weighting():
    class AtThePrior:
        def space(self, rng, problem):
            return cb.Hermite().space(rng, problem, problem.no_points())

    case = CASES["logistic"]
    coreset = cb.build(case.model, case.data(), size=5, method=cb.GIGA(weighting=AtThePrior()))
    assert coreset.size == 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cb.FullPosterior(num_draws=1), "num_draws must be at least 2"),
        (lambda: cb.Realistic(noise=-1.0), "noise must be finite"),
        (lambda: cb.SubsamplePosterior(num_rows=0), "num_rows must be at least 1"),
        (lambda: cb.GivenDraws([1.0, 2.0]), r"shape \(S, d\)"),
        (lambda: cb.GivenDraws([[1.0], [np.nan]]), "draw 1 has a NaN"),
    ],
)
def test_wrong_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_does_not_fit_the_model_is_named():
    problem = CASES["custom"].problem()
    with pytest.raises(TypeError, match="CustomModel has no exact inner products"):
        cb.FullPosterior(num_draws=None).space(rng(), problem)
    with pytest.raises(ValueError, match="2 parameters, but the model has 3"):
        cb.GivenDraws(np.eye(2)).space(rng(), problem)


def test_a_copied_state_asks_the_same_without_the_kept_vectors():
    import pickle

    from corebayes.scan.every_row import Norms, joined

    problem = CASES["logistic"].problem()
    target = HilbertTarget.of(rng(), problem, cb.FullPosterior(num_draws=50))
    norms = joined(target.ask(problem, Norms(target.space)))
    copy = pickle.loads(pickle.dumps(target))
    assert copy._kept is None
    assert np.array_equal(joined(copy.ask(problem, Norms(copy.space))), norms)
