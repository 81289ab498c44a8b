"""Every family handed over to other libraries: the exporters compare log densities themselves."""

from __future__ import annotations

import numpy as np
import pytest

import corebayes as cb
from tests.coresets import weighted
from tests.mixed.family_cases import NAMES, bound

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

# Those with pieces that no other has: several linear predictors, cutpoints, censored rows, shares.
QUICK = ("categorical", "hurdle-negative-binomial")
families = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in NAMES]
)


def coreset(name, **options):
    model, rows = bound(name, **options)
    weights = np.random.default_rng(1).gamma(1.0, 3.0, size=14)
    return weighted(model, rows, np.arange(3, 31, 2), weights)


@families
def test_numpyro(name):
    assert callable(cb.to_numpyro(coreset(name)))


# As compiled there, categories take longest; NumPyro has them above.
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n != QUICK[1])) for n in NAMES]
)
def test_pymc(name):
    exported = cb.to_pymc(coreset(name))
    assert "coefficients" in exported.named_vars


@families
@pytest.mark.filterwarnings("ignore:path is deprecated")
def test_stan_accepts_the_program(name):
    from httpstan.compile import compile as translate

    export = cb.to_stan(coreset(name))
    code, messages = translate(str(export.program), "coreset_model")
    assert "log_prob" in code and "error" not in messages.lower()
    declared = str(export.program).split("parameters {")[0]
    assert all(f" {key}" in declared for key in export.data)


@pytest.mark.parametrize("name", [pytest.param("probit", marks=pytest.mark.slow), "cloglog"])
def test_a_regression_with_nothing_beside(name):
    model, rows = bound(name, groups=False, beside=False)
    plain = model.family.bind(rows)
    small = weighted(plain, rows, np.arange(12), np.linspace(0.5, 4.0, 12))
    assert callable(cb.to_numpyro(small))
    assert cb.to_pymc(small) is not None
