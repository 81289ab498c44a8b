"""Flat priors: fine where the rows say everything, named where they leave a direction out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corebayes as cb

RNG = np.random.default_rng(3)
x = RNG.normal(size=80)
y = 0.5 + x + RNG.normal(size=80)
group = np.arange(80) % 4


def numpyro_model(kind: str) -> Any:
    import numpyro
    from numpyro import distributions

    def flat(name: str, constraint: Any = distributions.constraints.real) -> Any:
        return numpyro.sample(name, distributions.ImproperUniform(constraint, (), ()))

    def model(x: Any, y: Any) -> None:
        a, b = flat("a"), flat("b")
        mean = {"proper": a + b * x, "unseen": a + 0.0 * b, "together": (a + 3.0 * b) * x}[kind]
        scale = flat("scale", distributions.constraints.positive)
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("y", distributions.Normal(mean, scale), obs=y)

    return model


def test_a_proper_posterior_under_flat_priors():
    model, data = cb.from_numpyro(numpyro_model("proper"), x, y)
    block = data.take(np.arange(80))
    theta = np.array([[0.4, 1.1, 0.1]])
    # Flat in a, b and the scale: the density is the likelihood, and the Jacobian e^u.
    expected = -0.5 * np.sum((y - 0.4 - 1.1 * x) ** 2) / np.exp(0.2) - 80 * 0.1
    expected += -40 * np.log(2 * np.pi) + 0.1
    found = model.log_prior(theta) + model.sum_potentials(theta, block)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("unseen", "improper: the prior of b is flat, and no row depends on it"),
        ("together", "improper: the prior of a, b is flat, and rows depend on them together only"),
    ],
)
def test_an_improper_posterior_is_named(kind, words):
    with pytest.raises(ValueError, match=words):
        cb.from_numpyro(numpyro_model(kind), x, y)


def test_pymc_flat():
    pymc = pytest.importorskip("pymc")
    with pymc.Model() as model:
        effects = pymc.Flat("effects", shape=5)
        pymc.Normal("y", effects[group], 1.0, observed=y)
    # Group 4 has no rows.
    with pytest.raises(ValueError, match=r"the prior of effects\[4\] is flat, and no row"):
        cb.from_pymc(model)
    with pymc.Model() as model:
        effects = pymc.Flat("effects", shape=4)
        scale = pymc.HalfFlat("scale")
        pymc.Normal("y", effects[group], scale, observed=y)
    assert cb.from_pymc(model)[0].dim == 5
