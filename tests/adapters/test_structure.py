"""Which parameters rows touch, found from derivatives of models as users write them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import plate, sample

import corebayes as cb
from corebayes.adapters.numpyro.adapter import from_numpyro
from corebayes.adapters.pymc.adapter import from_pymc
from corebayes.adapters.structure import find_row_structure
from corebayes.models import CustomModel
from corebayes.models.structure import is_structured
from corebayes.rows import open_rows
from tests.later import pymc

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

N, G, H = 900, 30, 7


def rows():
    rng = np.random.default_rng(5)
    g = rng.choice(G, size=N, p=rng.dirichlet(np.full(G, 3.0)))
    h = rng.integers(0, H, size=N)
    X = np.column_stack([rng.normal(size=N), rng.integers(0, 2, size=N), rng.normal(size=N)])
    y = (rng.uniform(size=N) < 0.4).astype(np.int64)
    return X, g, h, y


def centred(X, g, y, G):
    mu = sample("mu", dist.Normal(0.0, 1.0))
    tau = sample("tau", dist.HalfNormal(1.0))
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    with plate("groups", G):
        b = sample("b", dist.Normal(mu, tau))
    with plate("rows", X.shape[0]):
        sample("y", dist.Bernoulli(logits=X @ beta + b[g]), obs=y)


def non_centred(X, g, y, G):
    tau = sample("tau", dist.HalfNormal(1.0))
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    z = sample("z", dist.Normal(0.0, 1.0).expand([G]).to_event(1))
    b = numpyro.deterministic("b", tau * z)
    with plate("rows", X.shape[0]):
        sample("y", dist.Bernoulli(logits=X @ beta + b[g]), obs=y)


def crossed_with_slopes(X, g, h, y, G, H):
    tau = sample("tau", dist.HalfNormal(1.0).expand([3]))
    effects = sample("effects", dist.Normal(jnp.zeros((G, 2)), tau[:2]).to_event(2))
    other = sample("other", dist.Normal(jnp.zeros(H), tau[2]).to_event(1))
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    own = effects[g]
    eta = X @ beta + own[:, 0] + own[:, 1] * X[:, 1] + other[h - 1]
    with plate("rows", X.shape[0]):
        sample("y", dist.Bernoulli(logits=eta), obs=y)


def everything(X, y):
    beta = sample("beta", dist.Normal(0.0, 1.0).expand([3]).to_event(1))
    sigma = sample("sigma", dist.HalfNormal(1.0))
    with plate("rows", X.shape[0]):
        sample("y", dist.Normal(X @ beta, sigma), obs=y)


def places(model, name):
    """Positions of a named variable in θ, in its shape."""
    return model.split(np.arange(model.dim))[name]


def found(model, data, **options):
    """Structure and drivers, from rows alone."""
    return find_row_structure(model, model.row_terms, data, **options)


# The next test looks for groups in the same way, once they are centred.
@pytest.mark.slow
@pytest.mark.parametrize(("seed", "unit"), [(0, 3000.0), (0, 1.0), (1, 1.0)])
def test_a_centred_gather(seed, unit):
    X, g, _, y = rows()
    # Columns of miles or dollars: rows are flat at coefficients that are small elsewhere.
    X = X * unit
    model, data = from_numpyro(centred, X, g, y, G)
    structure, drivers, *_ = found(model, data, seed=seed)
    assert structure.shared.tolist() == places(model, "beta").tolist()
    expected = sorted([int(places(model, "mu")), int(places(model, "tau"))])
    assert structure.scales.tolist() == expected
    (term,) = structure.terms
    np.testing.assert_array_equal(term.positions[:, 0], places(model, "b"))
    assert drivers[0].name == "g"


def test_a_non_centred_gather_is_centred_first():
    X, g, _, y = rows()
    model, data = from_numpyro(non_centred, X, g, y, G)
    structure, _, scale_of, *_ = found(model, data)
    tau = int(places(model, "tau"))
    assert set(structure.shared.tolist()) == set(places(model, "beta").tolist())
    assert structure.scales.tolist() == [tau]
    assert np.flatnonzero(scale_of == tau).tolist() == places(model, "z").tolist()
    assert np.all(np.delete(scale_of, places(model, "z")) == -1)
    np.testing.assert_array_equal(structure.terms[0].positions[:, 0], places(model, "z"))
    numbers = np.arange(50)
    block = data.take(numbers)
    np.testing.assert_array_equal(found(model, data).groups(block)[:, 0], g[:50])


@pytest.mark.slow
def test_crossed_terms_and_slopes_that_are_zero_in_many_rows():
    X, g, h, y = rows()
    model, data = from_numpyro(crossed_with_slopes, X, g, h + 1, y, G, H)
    structure, drivers, *_ = found(model, data)
    terms = dict(zip((driver.name for driver in drivers), structure.terms, strict=True))
    assert set(terms) == {"g", "h"}
    positions = terms["g"].positions
    assert positions.shape == (G, 2)
    np.testing.assert_array_equal(np.sort(positions, axis=1), places(model, "effects"))
    np.testing.assert_array_equal(terms["h"].positions[:, 0], places(model, "other"))
    assert structure.shared.tolist() == places(model, "beta").tolist()
    assert structure.scales.tolist() == places(model, "tau").tolist()
    assert drivers[[d.name for d in drivers].index("h")].first == 1


def test_rows_that_touch_everything():
    X, _, _, y = rows()
    model, data = from_numpyro(everything, X, y.astype(float))
    # Through two predictors; with so few parameters that is no gain.
    assert found(model, data).num_predictors == 2 and not is_structured(model)


@pytest.mark.slow
@pytest.mark.parametrize("non_centred", [False, True])
def test_pymc(non_centred):
    X, g, h, y = rows()
    with pymc.Model() as own:
        tau = pymc.HalfNormal("tau", 1.0)
        kappa = pymc.HalfNormal("kappa", 1.0)
        beta = pymc.Normal("beta", 0.0, 1.0, shape=3)
        if non_centred:
            b = tau * pymc.Normal("b", 0.0, 1.0, shape=G)
        else:
            b = pymc.Normal("b", 0.0, tau, shape=G)
        slopes = pymc.Normal("slopes", 0.0, kappa, shape=(2, H))
        eta = X @ beta + b[g] + slopes[0][h] + slopes[1][h] * X[:, 2]
        pymc.Bernoulli("y", logit_p=eta, observed=y)
    model, data = from_pymc(own)
    structure, drivers, *_ = found(model, data)
    assert structure.shared.tolist() == places(model, "beta").tolist()
    assert set(structure.scales.tolist()) == {int(places(model, s)) for s in ("tau", "kappa")}
    by_size = sorted(structure.terms, key=lambda term: term.num_groups)
    np.testing.assert_array_equal(np.sort(by_size[0].positions, axis=1), places(model, "slopes").T)
    np.testing.assert_array_equal(by_size[1].positions[:, 0], places(model, "b"))
    values = {driver.last for driver in drivers}
    assert values == {G - 1, H - 1}


def test_a_custom_model_in_jax():
    X, g, _, y = rows()

    def log_likelihood(draws, block):
        groups = block["X"][:, 3].astype(int)
        eta = block["X"][:, :3] @ draws[:, :3].T + draws[:, 4 : 4 + G].T[groups]
        return block["y"][:, None] * eta - jnp.logaddexp(0.0, eta)

    def log_prior(draws):
        return -0.5 * jnp.sum(draws**2, axis=1)

    model = CustomModel(log_likelihood, log_prior, 4 + G)
    data = open_rows((np.column_stack([X, g]), y.astype(float)))

    def row_terms(theta, fields):
        return log_likelihood(theta[None], cb.types.Block(fields))[:, 0]

    structure, drivers, *_ = find_row_structure(model.bind(data), row_terms, data)
    assert structure.shared.tolist() == [0, 1, 2] and structure.scales.tolist() == [3]
    assert structure.terms[0].positions[:, 0].tolist() == list(range(4, 4 + G))
    assert drivers[0].name == "X[3]"
    assert "30 of the 30 groups of X[3]" in structure.describe()


@pytest.mark.slow
def test_many_groups_with_few_rows_each():
    rng = np.random.default_rng(1)
    many = 4000
    g, X = rng.integers(0, many, size=20_000), rng.normal(size=(20_000, 3))
    model, data = from_numpyro(centred, X, g, (X[:, 0] > 0).astype(int), many)
    structure = found(model, data).structure
    assert structure.terms[0].num_groups == many and structure.shared.size == 3
