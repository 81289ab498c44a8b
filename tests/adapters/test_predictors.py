"""Through how many linear predictors rows see their parameters, and what is made of it."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro import factor, plate, sample

import corebayes as cb
from corebayes.adapters.jax_model import float64
from corebayes.adapters.local import bound_with_structure
from corebayes.adapters.predictors import find_predictors
from corebayes.adapters.seen_through import ROUND_OFF, Apart
from corebayes.build.groups import all_rows
from corebayes.certify.measure import measure
from corebayes.models import CustomModel
from corebayes.models.custom import touching as touching_module
from corebayes.models.custom.rescaling import Rescaling
from corebayes.models.custom.touching import may_have_modes
from corebayes.models.custom.touching_traced import Traced
from corebayes.models.structure import is_structured
from corebayes.rows import open_rows
from corebayes.types import Block

N, P = 700, 7


def columns(seed=1, num_rows=N):
    """Of unlike scales, one of them rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.3, 1.0, size=(num_rows, P)) * np.geomspace(0.01, 300.0, P)
    X[:, 2] *= rng.uniform(size=num_rows) < 0.05
    return X, rng


def heavy(theta, rows):
    """A tail of unknown scale and power, of an asymmetric predictor: f_n sees three."""
    z = (rows["y"] - rows["X"] @ theta[:P]) * jnp.exp(-theta[P])
    power = 1.0 + jnp.exp(theta[P + 1])
    return -theta[P] - power * jnp.log1p(z * z / power) + 0.1 * z


def traced():
    X, rng = columns()
    block = Block({"X": X, "y": X[:, 0] + rng.normal(size=N)})
    members = np.arange(3)[:, None] == np.r_[np.zeros(P, dtype=int), 1, 2]
    places = np.array([[1.0], [1e-2]]) * np.r_[0.2 / np.abs(X).max(axis=0), 0.4, -0.3]
    return (
        Traced(
            heavy,
            lambda theta: 0.0 * theta[0],
            np.arange(P + 2),
            members,
            places,
            Rescaling(np.full(P + 2, -1)),
        ),
        block,
    )


def exact_derivatives(block, theta):
    with float64():
        derivatives = heavy, jax.jacrev(heavy), jax.hessian(heavy)
        return [np.asarray(jax.jit(one)(theta, dict(block.fields))) for one in derivatives]


def test_slopes_show_the_predictors():
    X, _ = columns()
    rng = np.random.default_rng(4)
    eta_slopes, scale_slopes, other_slopes = rng.normal(size=(3, 3, N))
    # A rare parameter of its own, beside columns that are zero in most rows.
    other_slopes[:, 20:] = 0.0
    slopes = np.concatenate(
        [scale_slopes[:, :, None], eta_slopes[:, :, None] * X, other_slopes[:, :, None]], axis=2
    )
    np.testing.assert_array_equal(find_predictors(slopes), [1, *[0] * P, 2])


def test_round_off_is_no_predictor():
    X, rng = columns()
    slopes = rng.normal(size=(3, N))[:, :, None] * X
    slopes = slopes * (1.0 + 1e-15 * rng.normal(size=slopes.shape))
    assert find_predictors(slopes).max() == 0
    slopes[1, 5, 3] *= 1.0 + 1e-6
    assert find_predictors(slopes).max() == 1


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_derivatives_at_predictors_are_those_of_the_parameters(seed):
    kernels, block = traced()
    loads = kernels.loads(block)
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=P + 2) * np.r_[0.5 / np.abs(block["X"]).max(axis=0), 0.3, 0.3]
    value, slope, bend = exact_derivatives(block, theta)
    predictors = loads @ theta
    jets = kernels.jets(predictors[:, :, None], loads, block)
    means = kernels.row_means(theta[None], loads, block)
    for found in ((jets.value[:, 0], jets.first[..., 0], jets.second[..., 0]), means[:3]):
        np.testing.assert_allclose(found[0], value, rtol=1e-9)
        first = np.einsum("nk,nkm->nm", found[1], loads)
        np.testing.assert_allclose(first, slope, rtol=1e-6, atol=1e-9 * np.abs(slope).max())
        second = np.einsum("nkm,nkj,njl->nml", loads, found[2], loads)
        np.testing.assert_allclose(second, bend, rtol=1e-6, atol=1e-9 * np.abs(bend).max())


def test_a_row_that_is_flat_at_one_place_is_looked_at_nearer_zero():
    def saturated(theta, rows):
        return -jnp.logaddexp(0.0, -(rows["X"] @ theta))

    X, _ = columns()
    X[3] *= 1e7
    members, places = np.ones((1, P), dtype=bool), np.array([[1.0], [1e-12]]) * np.ones(P)
    kernels = Traced(
        saturated, lambda t: 0.0, np.arange(P), members, places, Rescaling(np.full(P, -1))
    )
    (slopes,) = [kernels.slopes(places[0], Block({"X": np.abs(X)}))]
    assert not slopes[3].any()
    loads = kernels.loads(Block({"X": np.abs(X)}))[:, 0]
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(loads, np.abs(X) / lengths, atol=1e-12)


def custom(likelihood, dim):
    def log_likelihood(draws, block):
        return jax.vmap(lambda theta: likelihood(theta, block), out_axes=1)(draws)

    return CustomModel(log_likelihood, lambda draws: -0.5 * jnp.sum(draws**2, axis=1), dim)


def bound(likelihood, dim):
    X, rng = columns(num_rows=500)
    X = X / np.std(X, axis=0)
    y = X @ np.linspace(-1.0, 1.0, P) + rng.normal(size=len(X))
    return bound_with_structure(custom(likelihood, dim), open_rows((X, y)))


def gaussian(theta, rows):
    z = (rows["y"] - rows["X"] @ theta[:P]) * jnp.exp(-theta[P])
    return -theta[P] - 0.5 * z * z


def test_a_regression_with_an_unknown_scale_has_two():
    model = bound(gaussian, P + 1)
    assert is_structured(model) and model.num_predictors == 2
    assert model.structure.describe() == ("8 parameters; rows see them through 2 linear predictors")
    # Nobody knows that there is no other mode.
    assert may_have_modes(model)


def test_what_round_off_leaves_of_slopes_says_nothing_of_directions():
    """1 − p has no digits where p is nearly one, and does not speak against a predictor."""
    X, rng = columns()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)

    def furthest(last, size):
        slopes = {1.0: unit, 2.0: size * unit + last * rng.normal(size=X.shape)}
        model = SimpleNamespace(
            loads=lambda block: unit[:, None],
            touched_slopes=lambda place, block: slopes[place[0]],
            row_structure=SimpleNamespace(members=np.ones((1, P), dtype=bool)),
        )
        places = np.array([np.full(P, 1.0), np.full(P, 2.0)])
        return Apart(model, places).answer(Block({"X": X}), np.arange(N))

    assert furthest(1e-16, 1e-10) <= ROUND_OFF
    assert furthest(1e-16, 1.0) <= ROUND_OFF
    assert furthest(1e-3, 1.0) > ROUND_OFF
    assert furthest(1e-4, 1e-3) > ROUND_OFF


def mixture(theta, rows):
    means = rows["X"] @ theta.reshape(2, P).T
    return jax.nn.logsumexp(-2.0 * (rows["y"][:, None] - means) ** 2, axis=1)


def squares(theta, rows):
    return -0.5 * (rows["y"] ** 2 - (rows["X"] @ theta) ** 2) ** 2


def corner(theta, rows):
    # Far from zero some rows see another one.
    eta = rows["X"] @ theta
    other = (rows["X"] ** 2) @ theta
    return -0.5 * (rows["y"] - jnp.where(jnp.abs(eta) < 2.0, eta, other)) ** 2


def network(theta, rows):
    return -0.5 * (rows["y"] - jnp.tanh(rows["X"] * theta[:P]) @ theta[P:]) ** 2


@pytest.mark.parametrize(
    ("likelihood", "dim"),
    [
        (squares, P),
        (corner, P),
        pytest.param(mixture, 2 * P, marks=pytest.mark.slow),
        pytest.param(network, 2 * P, marks=pytest.mark.slow),
    ],
)
def test_signs_corners_and_labels_have_no_structure(likelihood, dim):
    assert not is_structured(bound(likelihood, dim))


def counts(num_rows, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.ones(num_rows), rng.normal(size=(num_rows, 6))])
    mean = np.exp(X @ np.array([0.6, 0.3, -0.2, 0.1, 0.4, 0.0, -0.3]))
    return X, rng.negative_binomial(1.5, 1.5 / (1.5 + mean)), rng


def overdispersed(X, y):
    beta = sample("beta", dist.Normal(0.0, 2.0).expand([7]).to_event(1))
    alpha = sample("alpha", dist.Gamma(2.0, 1.0))
    with plate("rows", X.shape[0]):
        sample("y", dist.NegativeBinomial2(jnp.exp(X @ beta), alpha), obs=y)


@pytest.mark.slow
def test_a_negative_binomial_is_matched_to_the_third_degree():
    X, y, _ = counts(4000, 3)
    model, data = cb.from_numpyro(overdispersed, X, y)
    assert "2 linear predictors" in repr(model)
    few, many = (cb.build(model, data, size=size, reserve=0) for size in (60, 170))
    assert "GroupedPursuit" in few.provenance["method"]
    found = [measure(one, data, draws=500, searching=False) for one in (few, many)]
    assert found[0].reverse_kl.value < 5e-3 and found[1].reverse_kl.value < 1e-4


@pytest.mark.slow
def test_a_tolerance_is_measured_around_the_mode():
    X, rng = columns(num_rows=3000)
    X = X / np.std(X, axis=0)
    data = X, X @ np.linspace(-1.0, 1.0, P) + rng.normal(size=len(X))
    coreset = cb.build(custom(gaussian, P + 1), data, tol=0.01)
    assert coreset.reason.startswith("measured KL(π_w ‖ π) ≤ 0.01 around the modes that were found")
    assert coreset.size < 100 and cb.certify(coreset, data, tol=0.02).certified


@pytest.mark.slow
def test_moments_are_those_of_all_rows():
    X, y, _ = counts(900, 5)
    model, data = cb.from_numpyro(overdispersed, X, y)
    coreset = cb.build(model, data, size=120, reserve=0)
    everything = all_rows(model, data)
    moments = []
    for one in (coreset, everything):
        draws = cb.sample(one, draws=3000, seed=4).posterior
        values = np.column_stack(
            [draws["beta"].values.reshape(-1, 7), draws["alpha"].values.reshape(-1, 1)]
        )
        moments.append((values.mean(axis=0), values.std(axis=0)))
    (mean, sd), (exact_mean, exact_sd) = moments
    np.testing.assert_allclose((mean - exact_mean) / exact_sd, 0.0, atol=0.12)
    np.testing.assert_allclose(sd / exact_sd, 1.0, atol=0.1)


def clustered(X, g, y, G):
    beta = sample("beta", dist.Normal(0.0, 2.0).expand([7]).to_event(1))
    alpha, tau = sample("alpha", dist.Gamma(2.0, 1.0)), sample("tau", dist.HalfNormal(1.0))
    z = sample("z", dist.Normal(0.0, 1.0).expand([G]).to_event(1))
    with plate("rows", X.shape[0]):
        sample("y", dist.NegativeBinomial2(jnp.exp(X @ beta + tau * z[g]), alpha), obs=y)


@pytest.mark.slow
@pytest.mark.parametrize("written", [True, False])
def test_effects_are_seen_through_the_same_predictor(written, monkeypatch):
    X, y, rng = counts(2000, 7)
    if not written:
        monkeypatch.setattr(touching_module, "MOST_WRITTEN", 0)
    model, data = cb.from_numpyro(clustered, X, rng.integers(0, 12, size=len(y)), y, 12)
    assert model.num_predictors == 2 and model.has_jets == written
    coreset = cb.build(model, data, size=150)
    assert cb.certify(coreset, data, draws=400).certified


@pytest.mark.slow
def test_a_factor_of_two_regressions_goes_by_draws():
    X, _, rng = counts(400, 8)
    y = np.where(rng.uniform(size=400) < 0.5, X[:, 1], -X[:, 2]) + 0.3 * rng.normal(size=400)

    def mixture(X, y):
        beta = sample("beta", dist.Normal(0.0, 2.0).expand([2, 7]).to_event(2))
        with plate("rows", X.shape[0]):
            means = jnp.stack([X @ beta[0], X @ beta[1]])
            factor("y", jax.nn.logsumexp(-2.0 * (y - means) ** 2, axis=0))

    model, _ = cb.from_numpyro(mixture, X, y)
    assert not is_structured(model)
