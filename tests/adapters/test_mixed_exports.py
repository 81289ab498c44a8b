"""Coresets of mixed regressions handed over to other libraries have the same log density there."""

from __future__ import annotations

import functools
from typing import Any

import jax
import numpy as np
import pandas
import pytest
from numpyro.infer.util import potential_energy

import corebayes as cb
from corebayes.adapters.exports.density_check import log_density
from corebayes.models.priors.scale import Reciprocal
from tests.coresets import weighted

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

ROWS = [2, 3, 11, 17, 20, 31]
WEIGHTS = [1.5, 0.0, 4.0, 0.25, 7.0, 2.0]


def frame() -> pandas.DataFrame:
    rng = np.random.default_rng(9)
    table = pandas.DataFrame(
        {
            "x": rng.normal(size=40),
            "z": rng.normal(size=40),
            "g": rng.choice(list("abc"), size=40),
            "h": rng.integers(4, 8, size=40),
        }
    )
    table["late"] = rng.integers(0, 2, size=40)
    table["delay"] = table["x"] + 2.0 * rng.normal(size=40)
    table["bags"] = rng.poisson(2.0, size=40)
    return table


TERMS = "late ~ x + (1 + z | g) + (1 | h)"
QUICK = "bags ~ x + (1 | g)"
MODELS: dict[str, dict[str, Any]] = {
    TERMS: {"family": "bernoulli"},
    "delay ~ x + (0 + z | g)": {
        "family": "gaussian",
        "group_sd": cb.Exponential(0.5),
        "prior": cb.Normal([1.0, -1.0], [[2.0, 0.5], [0.5, 1.0]]),
    },
    "delay ~ x + (1 | h)": {
        "family": "t",
        "learned": cb.Gamma(2.0, 0.5),
        "group_sd": cb.HalfStudentT(3.0, 2.0),
    },
    "bags ~ x + (1 | g:h)": {"family": "poisson", "link": "log"},
    QUICK: {
        "family": "negativebinomial",
        "learned": Reciprocal(cb.HalfStudentT(1.0, 2.0)),
    },
    "bags ~ x": {"family": "negativebinomial"},
}
# The rest has no other pieces.
HEAVY = [formula for formula in MODELS if formula not in (TERMS, QUICK)]
models = pytest.mark.parametrize(
    "formula",
    [pytest.param(f, marks=[pytest.mark.slow] * (f in HEAVY)) for f in MODELS],
)


@functools.cache
def mixed(formula: str) -> Any:
    model, data = cb.from_formula(formula, frame(), **MODELS[formula])
    return weighted(model.bind(data), data, ROWS, WEIGHTS)


def points(dim: int) -> Any:
    return np.random.default_rng(11).normal(size=(4, dim))


def unconstrained(coreset: Any, theta: Any) -> dict[str, Any]:
    """By the names of the parameters: what the exported variables are, on the log scale."""
    model = coreset.model
    values: dict[str, Any] = {"coefficients": theta[: model.num_fixed]}
    for name, value in model.constrain(theta[None]).items():
        values[name] = np.log(value[0]) if f"log {name}" in model.parameter_names else value[0]
    if any(isinstance(prior, Reciprocal) for prior in model.learned.values()):
        values["dispersion_inverse"] = -values["dispersion"]
    return values


@pytest.mark.slow
@models
def test_numpyro(formula):
    coreset = mixed(formula)
    exported = cb.to_numpyro(coreset)
    differences = []
    for theta in points(coreset.model.dim):
        with jax.enable_x64(True):
            energy = potential_energy(exported, (), {}, unconstrained(coreset, theta))
        differences.append(-float(energy) - log_density(coreset, theta))
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)


@models
def test_pymc(formula):
    coreset = mixed(formula)
    exported = cb.to_pymc(coreset)
    compiled = exported.compile_logp(mode="FAST_COMPILE")
    differences = []
    for theta in points(coreset.model.dim):
        named = unconstrained(coreset, theta)
        point = {
            exported.rvs_to_values[variable].name: np.asarray(named[variable.name])
            for variable in exported.free_RVs
        }
        differences.append(float(compiled(point)) - log_density(coreset, theta))
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)
    for term in coreset.model.terms:
        for effect in term.effects:
            dims = exported.named_vars_to_dims[term.called(effect)]
            assert list(exported.coords[dims[0]]) == list(coreset.model.coords[dims[0]])
