from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from corebayes.models import CustomModel, LogisticRegression, Normal
from corebayes.models.custom.finite_differences import (
    difference_gradient,
    difference_hessian,
    difference_jacobian,
)
from corebayes.rows import open_rows

MEAN, SD = np.array([0.2, -0.5, 1.0]), np.array([1.0, 2.0, 0.5])
REFERENCE = LogisticRegression(prior=Normal(MEAN, SD))


def log_likelihood(draws, block):
    return -np.logaddexp(0.0, -(2.0 * block.y - 1.0)[:, None] * (block.X @ draws.T))


def log_prior(draws):
    return stats.norm.logpdf(draws, MEAN, SD).sum(axis=1)


def gradient(theta, block, weights):
    chance = 1.0 / (1.0 + np.exp(-block.X @ theta))
    return (weights * (block.y - chance)) @ block.X


def log_prior_gradient(theta):
    return (MEAN - theta) / SD**2


def hessian(theta, block, weights):
    chance = 1.0 / (1.0 + np.exp(-block.X @ theta))
    return -(block.X.T * (weights * chance * (1.0 - chance))) @ block.X


def log_prior_hessian(theta):
    return -np.diag(SD**-2)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return open_rows((X, rng.integers(0, 2, size=60)))


GIVEN = [
    {},
    {"gradient": gradient, "log_prior_gradient": log_prior_gradient},
    {
        "gradient": gradient,
        "hessian": hessian,
        "log_prior_gradient": log_prior_gradient,
        "log_prior_hessian": log_prior_hessian,
    },
]


@pytest.mark.parametrize("given", GIVEN, ids=["none", "gradients", "all"])
def test_agrees_with_the_built_in_model(rows, given):
    model = CustomModel(log_likelihood, log_prior, 3, **given).bind(rows)
    reference, block = REFERENCE.bind(rows), rows.take(np.arange(60))
    rng = np.random.default_rng(1)
    draws, weights = rng.normal(size=(5, 3)), rng.uniform(0.0, 50.0, size=60)
    np.testing.assert_allclose(
        model.potentials(draws, block), reference.potentials(draws, block), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.sum_potentials(draws, block, weights),
        reference.sum_potentials(draws, block, weights),
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        model.sum_potentials(draws, block), reference.sum_potentials(draws, block), rtol=1e-12
    )
    np.testing.assert_allclose(model.log_prior(draws), reference.log_prior(draws), rtol=1e-12)
    theta = draws[0]
    for ours, theirs in [
        (model.gradient(theta, block, weights), reference.gradient(theta, block, weights)),
        *zip(
            model.gradient_and_hessian(theta, block, weights),
            reference.gradient_and_hessian(theta, block, weights),
            strict=True,
        ),
        (model.log_prior_gradient(theta), reference.log_prior_gradient(theta)),
        (model.log_prior_hessian(theta), reference.log_prior_hessian(theta)),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.log_base(block), np.zeros(60))


def test_differences_of_a_polynomial():
    """Exact for polynomials of fourth degree, whatever the direction."""

    def quartic(draws):
        a, b = draws.T
        return a**4 - 3.0 * a**2 * b**2 + 2.0 * a * b**3 - 5.0 * b + a

    def slope(theta):
        a, b = theta
        return np.array([4 * a**3 - 6 * a * b**2 + 2 * b**3 + 1, -6 * a**2 * b + 6 * a * b**2 - 5])

    a, b = theta = np.array([1.5, -40.0])
    curvature = [
        [12 * a**2 - 6 * b**2, -12 * a * b + 6 * b**2],
        [-12 * a * b + 6 * b**2, -6 * a**2 + 12 * a * b],
    ]
    np.testing.assert_allclose(difference_gradient(quartic, theta), slope(theta), rtol=1e-10)
    np.testing.assert_allclose(difference_hessian(quartic, theta), curvature, rtol=1e-7)
    np.testing.assert_allclose(difference_jacobian(slope, theta), curvature, rtol=1e-10)


def test_differences_call_the_function_a_fixed_number_of_times():
    calls = []

    def function(draws):
        calls.append(len(draws))
        return np.square(draws).sum(axis=1)

    difference_gradient(function, np.zeros(5))
    assert calls == [4 * 5]
    calls.clear()
    difference_hessian(function, np.zeros(5))
    assert len(calls) == 2 and sum(calls) == 2 * 5 * 6 + 1


def test_out_names_and_fields():
    data = open_rows({"time": np.arange(1.0, 9.0), "dose": np.ones((8, 2))})
    model = CustomModel(
        lambda draws, block: -block["time"][:, None] * np.exp(draws[:, 0]) + draws[:, 0],
        lambda draws: -0.5 * draws[:, 0] ** 2,
        1,
        names=["log rate"],
        log_concave=True,
    ).bind(data)
    assert model.parameter_names == ("log rate",) and model.log_concave and model.dim == 1
    block, out = data.take(np.arange(8)), np.empty((8, 3))
    draws = np.array([[0.0], [1.0], [-1.0]])
    assert model.potentials(draws, block, out) is out
    np.testing.assert_allclose(out[:, 0], -np.arange(1.0, 9.0))
    assert CustomModel(log_likelihood, log_prior, 2).parameter_names == ("theta[0]", "theta[1]")
    assert not CustomModel(log_likelihood, log_prior, 2).log_concave
    assert repr(CustomModel(log_likelihood, log_prior, 2)) == "CustomModel(log_likelihood, dim=2)"


def test_no_rows_are_never_shown_to_the_function(rows):
    model = CustomModel(log_likelihood, log_prior, 3).bind(rows)
    nothing = rows.take(np.empty(0, dtype=np.int64))

    def fail(*_):
        raise AssertionError

    model._log_likelihood = fail
    np.testing.assert_array_equal(model.sum_potentials(np.ones((2, 3)), nothing), np.zeros(2))
    first, second = model.gradient_and_hessian(np.ones(3), nothing, np.empty(0))
    np.testing.assert_array_equal(first, np.zeros(3))
    np.testing.assert_array_equal(second, np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        (
            {"log_likelihood": lambda d, b: log_likelihood(d, b).T},
            r"log_likelihood must return an array of shape \(n, S\) = \(5, 6\), got \(6, 5\)",
        ),
        (
            {"log_likelihood": lambda d, b: log_likelihood(d, b).sum(axis=0)},
            r"\(n, S\) = \(5, 6\), got \(6,\)",
        ),
        ({"log_prior": lambda d: d}, r"log_prior must return .* \(S,\) = \(6,\), got \(6, 3\)"),
        ({"gradient": lambda t, b, w: 0.0}, r"gradient must return .* = \(3,\), got \(\)"),
        ({"hessian": lambda t, b, w: t}, r"hessian must return .* = \(3, 3\), got \(3,\)"),
        ({"log_prior_gradient": lambda t: t[:2]}, r"log_prior_gradient .* got \(2,\)"),
        ({"log_prior_hessian": lambda t: t}, r"log_prior_hessian must return .* \(3, 3\)"),
    ],
)
def test_wrong_shapes_are_named_at_bind(rows, replaced, message):
    arguments = {"log_likelihood": log_likelihood, "log_prior": log_prior, "dim": 3, **replaced}
    with pytest.raises(ValueError, match=message):
        CustomModel(**arguments).bind(rows)


@pytest.mark.parametrize(
    ("dim", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)]
)
def test_dimensions_are_checked(dim, error):
    with pytest.raises(error, match=f"dim must be .*{dim}"):
        CustomModel(log_likelihood, log_prior, dim)


def test_names_must_fit():
    with pytest.raises(ValueError, match="names has 1 entries for 3 parameters"):
        CustomModel(log_likelihood, log_prior, 3, names=["a"])


# Given derivatives against differences.


def _logistic(eta, y):
    chance = special.expit(eta)
    return -np.logaddexp(0.0, -(2.0 * y - 1.0) * eta), y - chance, -chance * (1.0 - chance)


def _poisson(eta, y):
    return y * eta - np.exp(eta), y - np.exp(eta), -np.exp(eta)


def _student(eta, y):
    u = 1.0 + np.square(y - eta) / 3.0
    return -2.0 * np.log(u), 4.0 / 3.0 * (y - eta) / u, 4.0 / 3.0 * (1.0 - 2.0 / u) / u


def _laplace(eta, y):
    return -np.abs(y - eta), np.sign(y - eta), np.zeros_like(y - eta)


def _huber(eta, y):
    z = y - eta
    inside = np.abs(z) < 1.0
    height = np.where(inside, 0.5 * z**2, np.abs(z) - 0.5)
    return -height, np.clip(z, -1.0, 1.0), -np.where(inside, 1.0, 0.0)


def random_model(family, seed):
    """Functions and derivatives of a regression with columns and prior of random scales."""
    rng = np.random.default_rng(seed)
    dim, num_rows = int(rng.integers(2, 6)), int(rng.integers(5, 60))
    X = rng.normal(size=(num_rows, dim)) * 10.0 ** rng.uniform(-3.0, 3.0, dim)
    y = rng.integers(0, 2, num_rows) if family is _logistic else rng.poisson(3.0, num_rows)
    sd, shift = 10.0 ** rng.uniform(-1.0, 1.0, dim), rng.normal(size=dim)

    functions = {
        "log_likelihood": lambda draws, block: family(block.X @ draws.T, block.y[:, None])[0],
        "log_prior": lambda draws: -0.5 * np.square((draws - shift) / sd).sum(axis=1),
        "dim": dim,
    }
    derivatives = {
        "gradient": lambda t, b, w: (w * family(b.X @ t, b.y)[1]) @ b.X,
        "hessian": lambda t, b, w: (b.X.T * (w * family(b.X @ t, b.y)[2])) @ b.X,
        "log_prior_gradient": lambda t: (shift - t) / sd**2,
        "log_prior_hessian": lambda t: -np.diag(sd**-2.0),
    }
    return functions, derivatives, open_rows((X, y.astype(float)))


FAMILIES = [_logistic, _poisson, _student, _laplace, _huber]


@pytest.mark.parametrize(
    "family",
    [f if f in (_logistic, _huber) else pytest.param(f, marks=pytest.mark.slow) for f in FAMILIES],
    ids=lambda family: family.__name__,
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_right_derivatives_are_never_refused(family, seed):
    functions, derivatives, data = random_model(family, seed)
    CustomModel(**functions, **derivatives).bind(data)
    without = {name: f for name, f in derivatives.items() if "hessian" in name}
    CustomModel(**functions, **without).bind(data)
    single = {name: lambda *a, f=f: f(*a).astype(np.float32) for name, f in derivatives.items()}
    CustomModel(**functions, **single).bind(data)


def _first(values):
    values = values.copy()
    values[0] *= -1.0
    return values


WRONG = {
    "sign": ("gradient", lambda f: lambda t, b, w: -f(t, b, w)),
    "twice": ("gradient", lambda f: lambda t, b, w: 2.0 * f(t, b, w)),
    "zero": ("gradient", lambda f: lambda t, b, w: 0.0 * f(t, b, w)),
    "nan": ("gradient", lambda f: lambda t, b, w: np.nan * f(t, b, w)),
    "one entry": ("gradient", lambda f: lambda t, b, w: _first(f(t, b, w))),
    "no weights": ("gradient", lambda f: lambda t, b, w: f(t, b, np.ones_like(w))),
    "a row left out": ("gradient", lambda f: lambda t, b, w: f(t, b, w * (np.arange(w.size) > 1))),
    "a mean": ("gradient", lambda f: lambda t, b, w: f(t, b, w) / w.sum()),
    "curvature sign": ("hessian", lambda f: lambda t, b, w: -f(t, b, w)),
    "curvature unweighted": ("hessian", lambda f: lambda t, b, w: f(t, b, np.ones_like(w))),
    "one side": ("hessian", lambda f: lambda t, b, w: np.tril(f(t, b, w))),
    "prior sign": ("log_prior_gradient", lambda f: lambda t: -f(t)),
    "prior twice": ("log_prior_gradient", lambda f: lambda t: 2.0 * f(t)),
    "prior curvature": ("log_prior_hessian", lambda f: lambda t: -f(t)),
}


@pytest.mark.parametrize("wrong", WRONG)
@given(seed=st.integers(0, 2**32), family=st.sampled_from([_logistic, _student, _poisson]))
@settings(max_examples=4, deadline=None, derandomize=True)
def test_wrong_derivatives_are_always_refused(wrong, seed, family):
    functions, derivatives, data = random_model(family, seed)
    name, change = WRONG[wrong]
    derivatives[name] = change(derivatives[name])
    with pytest.raises(ValueError, match=rf"^{name}: entry .*theta\[.* at θ = .*differences of"):
        CustomModel(**functions, **derivatives).bind(data)


def test_the_entry_that_differs_is_named(rows):
    def wrong(theta, block, weights):
        return gradient(theta, block, weights) * [1.0, -1.0, 1.0]

    with pytest.raises(ValueError) as refusal:
        CustomModel(log_likelihood, log_prior, 3, gradient=wrong, names=["a", "b", "c"]).bind(rows)
    words = str(refusal.value)
    assert (
        words.startswith("gradient: entry 1 (parameter 'b') is ") and "without the prior" in words
    )
    value, found = (float(x) for x in re.findall(r"(?:\) is|give) (-?[\d.e+-]+\d)", words))
    assert value == pytest.approx(-found, rel=1e-4)


def centred(draws, block):
    return log_likelihood(draws - block.X.mean(axis=0), block)


def scribbling(draws, block):
    block.X[:] *= 2.0
    return log_likelihood(draws, block)


def overwriting(draws, block):
    draws += 1.0
    return log_likelihood(draws, block)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (centred, r"row 0 is .* beside others and .* alone: a row must not look at other rows"),
        (scribbling, r"changes block\['X'\]: copy it"),
        (overwriting, "changes the θ or weights it is given: copy it"),
    ],
)
def test_functions_that_look_or_write_elsewhere_are_refused(rows, function, words):
    before = rows.take(np.arange(5)).X.copy()
    with pytest.raises(ValueError, match=words):
        CustomModel(function, log_prior, 3).bind(rows)
    np.testing.assert_array_equal(rows.take(np.arange(5)).X, before)
