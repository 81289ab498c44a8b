"""Draws with the effects integrated out, against quadrature by another road and against NUTS."""

from dataclasses import replace

import numpy as np
import pytest

import corebayes as cb
from corebayes.arrow.start import layout_of
from corebayes.build.groups import all_rows
from corebayes.models.mixed.marginal import MarginalRegression
from corebayes.samplers.automatic import Automatic
from corebayes.samplers.mixed import group_by_group as module
from corebayes.samplers.mixed.frame import fit_of, frame_of
from corebayes.samplers.mixed.group_by_group import group_by_group, is_many_groups
from corebayes.samplers.mixed.integrated import Integrated
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior
from tests.mixed.cases import case

SLOW = ("poisson", "negative-binomial")


def posterior_of(name):
    """Of all rows of a small mixed model."""
    # Two scales are known well enough from more groups only.
    num_rows, num_groups = (9000, 500) if name == "slopes" else (1200, 80)
    problem = case(name, num_rows=num_rows, num_groups=num_groups).problem()
    return Posterior.of(all_rows(problem.model, problem.data))


@pytest.fixture
def few(monkeypatch):
    """Every number of groups counts as many."""
    monkeypatch.setattr(module, "LEAST_PARAMETERS", 10)


@pytest.mark.parametrize(
    "name",
    ["logistic", "slopes", pytest.param("poisson", marks=pytest.mark.slow), "negative-binomial"],
)
def test_the_density_is_that_of_the_marginal_model(name):
    posterior = posterior_of(name)
    frame = frame_of(posterior)
    integrated = Integrated(posterior, frame, 15)
    # Scales far from the fit's: the nodes move with them.
    noise = np.random.default_rng(1).standard_normal((8, integrated.dim))
    phi = frame.wide_mean + 0.3 * noise
    marginal = MarginalRegression(posterior.model, num_nodes=15)
    groups = marginal.group_block(posterior.rows, posterior.weights)
    expected = marginal.sum_potentials(phi, groups) + marginal.log_prior(phi)
    np.testing.assert_allclose(integrated.log_density(phi), expected, atol=0.02)


@pytest.mark.parametrize(
    "name", ["logistic", *(pytest.param(k, marks=pytest.mark.slow) for k in SLOW)]
)
def test_draws_are_those_of_nuts(few, name):
    posterior = posterior_of(name)
    drawn = group_by_group(np.random.default_rng(2), posterior, 1500)
    assert drawn is not None and drawn.independent and drawn.values.shape[1] == 1500
    chains = NUTS(chains=4, num_tune=500).draw(np.random.default_rng(3), posterior, 4000)
    ours, theirs = drawn.flat, chains.flat
    sd = theirs.std(axis=0)
    # Means of so many draws are known to some .03 sd, and dozens of them are looked at.
    assert np.abs((ours.mean(axis=0) - theirs.mean(axis=0)) / sd).max() < 0.15
    np.testing.assert_allclose(ours.std(axis=0) / sd, 1.0, atol=0.12)


@pytest.mark.slow
def test_scales_of_slopes_are_those_of_nuts(few):
    # Two effects of each group; the joint fit is far too narrow in both scales.
    posterior = posterior_of("slopes")
    wide = layout_of(posterior.model).wide_positions
    drawn = group_by_group(np.random.default_rng(2), posterior, 400)
    assert drawn is not None
    chains = NUTS(chains=2, num_tune=300).draw(np.random.default_rng(3), posterior, 800)
    ours, theirs = drawn.flat[:, wide], chains.flat[:, wide]
    assert np.abs((ours.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)).max() < 0.3
    np.testing.assert_allclose(ours.std(axis=0) / theirs.std(axis=0), 1.0, atol=0.25)


def test_a_scale_of_three_groups_is_for_nuts(few):
    # Its posterior is no Gaussian, and of few proposals around one most are refused.
    posterior = posterior_of("gaussian")
    assert group_by_group(np.random.default_rng(2), posterior, 200) is None
    assert "NUTS" in Automatic(num_tune=20).draw(np.random.default_rng(0), posterior, 8).how


def test_few_groups_many_wide_parameters_and_poor_nodes_are_for_nuts(monkeypatch):
    posterior = posterior_of("logistic")
    assert not is_many_groups(posterior)
    monkeypatch.setattr(module, "LEAST_PARAMETERS", 10)
    assert is_many_groups(posterior)
    monkeypatch.setattr(module, "NODES", (1, 9))
    assert group_by_group(np.random.default_rng(0), posterior, 100) is None
    monkeypatch.setattr(module, "MOST_WIDE", 2)
    assert not is_many_groups(posterior)


@pytest.mark.parametrize("name", ["REMEMBERED", "REMEMBERED_BY_ONE", "MOST_CHANGE"])
def test_each_check_can_fail(few, monkeypatch, name):
    monkeypatch.setattr(module, name, 1e-12)
    assert group_by_group(np.random.default_rng(0), posterior_of("logistic"), 60) is None


def test_proposals_that_are_mostly_refused_are_for_nuts(few, monkeypatch):
    monkeypatch.setattr(module, "LEAST_ACCEPTED", 0.999)
    assert group_by_group(np.random.default_rng(0), posterior_of("logistic"), 2000) is None


def test_a_fit_that_is_far_off_is_mended(few, monkeypatch):
    # As joint fits of thousands of small groups are: many of the marginal's deviations away.
    posterior = posterior_of("logistic")

    def off(*arguments, **options):
        found = fit_of(*arguments, **options)
        shift = found.factor @ np.full(found.wide_mean.size, 4.0)
        return replace(found, wide_mean=found.wide_mean + shift, factor=0.3 * found.factor)

    expected = group_by_group(np.random.default_rng(2), posterior, 1000)
    monkeypatch.setattr(module, "fit_of", off)
    drawn = group_by_group(np.random.default_rng(3), posterior, 1000)
    assert drawn is not None and expected is not None
    wide = layout_of(posterior.model).wide_positions
    ours, theirs = drawn.flat[:, wide], expected.flat[:, wide]
    assert np.abs((ours.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)).max() < 0.2
    np.testing.assert_allclose(ours.std(axis=0) / theirs.std(axis=0), 1.0, atol=0.15)


def test_certificates_use_them(few):
    import pandas

    rng = np.random.default_rng(4)
    g = rng.integers(25, size=3000)
    x = rng.normal(size=3000)
    y = rng.uniform(size=3000) < 1.0 / (1.0 + np.exp(-(0.3 * x + 0.8 * rng.normal(size=25)[g])))
    frame = pandas.DataFrame({"x": x, "g": g, "y": y.astype(float)})
    model, data = cb.from_formula("y ~ x + (1|g)", frame, family="bernoulli")
    coreset = cb.build(model, data, size=300, progress=False)
    found = cb.certify(coreset, data, tol=0.1, draws=1000)
    drawn = cb.certify(coreset, data, tol=0.1, draws=1000, sampler=NUTS(chains=4))
    assert found.certified and found.max_rhat == 1.0 and found.num_divergences == 0
    kl, other = found.reverse_kl, drawn.reverse_kl
    assert abs(kl.value - other.value) < 4.0 * (kl.standard_error + other.standard_error)
