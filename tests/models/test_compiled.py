"""Compiled kernels against the formulas in NumPy and SciPy, and against the models' own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log1p, log_ndtr, xlog1py

from corebayes.models.compiled import jit
from corebayes.models.families.cloglog import CloglogRegression
from corebayes.models.families.glm import GLM
from corebayes.models.families.logistic import LogisticRegression
from corebayes.models.families.negative_binomial import NegativeBinomialRegression
from corebayes.models.families.poisson import PoissonRegression
from corebayes.models.families.probit import ProbitRegression
from corebayes.models.families.student_t import StudentTRegression
from corebayes.models.priors.normal import Normal
from corebayes.types import Array

EPS = float(np.finfo(np.float64).eps)


def logistic(eta: Array, y: Array, p0: float, p1: float) -> Array:
    return -np.logaddexp(0.0, -y * eta)


def poisson_softplus(eta: Array, y: Array, p0: float, p1: float) -> Array:
    rate = np.logaddexp(0.0, eta)
    # log log(1 + e^η) = η − e^η/2 + … where the rate underflows
    log_rate = np.where(eta < -40.0, eta, np.log(np.where(eta < -40.0, 1.0, rate)))
    return y * log_rate - rate


def poisson_log(eta: Array, y: Array, p0: float, p1: float) -> Array:
    excess = np.maximum(eta - 300.0, 0.0)
    return y * eta - np.exp(np.minimum(eta, 300.0)) * (1.0 + excess + excess**2 / 2.0)


def student_t(eta: Array, y: Array, df: float, scale: float) -> Array:
    return xlog1py(-0.5 * (df + 1.0), ((y - eta) / scale) ** 2 / df)


def negative_binomial(eta: Array, y: Array, dispersion: float, p1: float) -> Array:
    # −y log(1 + e^{−x}) − r log(1 + eˣ)
    x = eta + np.log(dispersion)
    return -y * np.logaddexp(0.0, -x) - np.logaddexp(0.0, x) / dispersion


def probit(eta: Array, y: Array, p0: float, p1: float) -> Array:
    return log_ndtr(y * eta)


def cloglog(eta: Array, y: Array, p0: float, p1: float) -> Array:
    excess = np.maximum(eta - 300.0, 0.0)
    rate = np.exp(np.minimum(eta, 300.0)) * (1.0 + excess + excess**2 / 2.0)
    with np.errstate(divide="ignore"):
        positive = np.where(eta < -37.0, eta, np.log(-np.expm1(-rate)))
    return np.where(y > 0.0, positive, -rate)


FORMULAS = {
    "logistic": (logistic, 0.0, 0.0),
    "poisson_softplus": (poisson_softplus, 0.0, 0.0),
    "poisson_log": (poisson_log, 0.0, 0.0),
    "student_t": (student_t, 3.5, 0.7),
    "negative_binomial": (negative_binomial, 0.3, 0.0),
    "probit": (probit, 0.0, 0.0),
    "cloglog": (cloglog, 0.0, 0.0),
}


KERNELS = list(FORMULAS)


MODELS: dict[str, GLM] = {
    "logistic": LogisticRegression(prior=Normal()),
    "poisson_softplus": PoissonRegression(link="softplus", prior=Normal()),
    "poisson_log": PoissonRegression(link="log", prior=Normal()),
    "student_t": StudentTRegression(df=3.5, scale=0.7, prior=Normal()),
    "negative_binomial": NegativeBinomialRegression(dispersion=0.3, prior=Normal()),
    "probit": ProbitRegression(prior=Normal()),
    "cloglog": CloglogRegression(prior=Normal()),
}


FUNCTIONS = {name: model.kernel for name, model in MODELS.items()}


LOGISTIC = FUNCTIONS["logistic"]


def targets(kernel: str, rng: np.random.Generator, num_rows: int, largest: float = 30.0) -> Array:
    if kernel in ("logistic", "probit", "cloglog"):
        return rng.choice([-1.0, 1.0], num_rows)
    counts = np.floor(rng.uniform(0.0, largest, num_rows))
    counts[::3] = 0.0
    return counts - 5.3 if kernel == "student_t" else counts


def formula(kernel: str, eta: Array, y: Array) -> Array:
    function, p0, p1 = FORMULAS[kernel]
    return function(eta, y[:, None], p0, p1)


def transformed(kernel: str, eta: Array, y: Array) -> Array:
    _, p0, p1 = FORMULAS[kernel]
    result = eta.copy()
    jit.transform(FUNCTIONS[kernel], result, y, p0, p1)
    return result


def assert_close(kernel: str, actual: Array, eta: Array, y: Array) -> None:
    """To 1e-12 of f, or to a few roundings of the two terms that f is the difference of."""
    expected = formula(kernel, eta, y)
    assert np.all(np.isfinite(actual))
    terms = np.abs(expected)
    if kernel.startswith("poisson"):
        terms = np.abs(y[:, None]) * (1.0 + np.abs(eta))
    bound = np.maximum(1e-12 * np.abs(expected), 8.0 * EPS * terms) + 1e-307
    assert np.all(np.abs(actual - expected) <= bound)


def test_numba_is_there() -> None:
    assert jit.available()


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 7), (64, 7), (41, 100), (3, 1000), (600, 2)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_transform_is_the_formula(kernel: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(shape[0] + 7 * shape[1])
    eta = 3.0 * rng.standard_normal(shape)
    y = targets(kernel, rng, shape[0])
    assert_close(kernel, transformed(kernel, eta, y), eta, y)


@pytest.mark.parametrize("largest", [3.0, 1e6])
@pytest.mark.parametrize("kernel", KERNELS)
def test_extreme_predictors_and_counts(kernel: str, largest: float) -> None:
    rng = np.random.default_rng(0)
    special = [-750.0, -745.2, -708.5, -708.0, -40.0, -1e-300, -0.0, 0.0, 1e-300, 36.7, 300.0]
    eta = np.concatenate([special, [300.1, 709.9, 750.0], np.linspace(-750.0, 750.0, 986)])
    eta = np.repeat(eta[None, :], 20, axis=0)
    y = targets(kernel, rng, 20, largest)
    assert_close(kernel, transformed(kernel, eta, y), eta, y)


@settings(max_examples=200, deadline=None)
@given(
    kernel=st.sampled_from(KERNELS),
    eta=st.floats(-750.0, 750.0),
    count=st.integers(0, 10**6),
)
def test_single_values(kernel: str, eta: float, count: int) -> None:
    y = np.array([1.0 - 2.0 * (count % 2) if kernel == "logistic" else float(count)])
    matrix = np.array([[eta]])
    assert_close(kernel, transformed(kernel, matrix, y), matrix, y)


def test_exp_and_logarithms_to_the_last_digits() -> None:
    """Each family shows one of the polynomials where nothing else rounds."""
    rng = np.random.default_rng(3)
    eta = rng.uniform(-700.0, 290.0, (1, 20000))
    zero, one = np.zeros(1), np.ones(1)
    np.testing.assert_allclose(transformed("poisson_log", eta, zero), -np.exp(eta), rtol=2 * EPS)
    positive = np.abs(eta)
    expected = -log1p(np.exp(-positive))
    np.testing.assert_allclose(transformed("logistic", positive, one), expected, rtol=4 * EPS)
    values = positive.copy()
    jit.transform(FUNCTIONS["student_t"], values, zero, 1.0, 1.0)
    np.testing.assert_allclose(values, -log1p(positive**2), rtol=4 * EPS)
    tiny = 10.0 ** rng.uniform(-140.0, -1.0, (1, 20000))
    values = tiny.copy()
    jit.transform(FUNCTIONS["student_t"], values, zero, 1.0, 1.0)
    np.testing.assert_allclose(values, -log1p(tiny**2), rtol=4 * EPS)


def test_softplus_rate_that_underflows_keeps_its_logarithm() -> None:
    eta = np.linspace(-750.0, -40.0, 997)[None, :]
    for count in (1.0, 1e6):
        values = transformed("poisson_softplus", eta, np.array([count]))
        np.testing.assert_allclose(values, count * eta, rtol=4 * EPS)


@pytest.mark.parametrize("kernel", KERNELS)
def test_agrees_with_the_model(kernel: str) -> None:
    rng = np.random.default_rng(5)
    eta = np.concatenate([3.0 * rng.standard_normal((50, 100)), rng.uniform(-750, 750, (50, 100))])
    y = targets(kernel, rng, 100, 1e3)
    model = MODELS[kernel]
    expected = model.log_density(eta.copy(), y[:, None], np.empty_like(eta))
    jit.transform(FUNCTIONS[kernel], eta, y, *model.constants.values())
    assert np.all(np.abs(eta - expected) <= 1e-12 * (1.0 + np.abs(expected)))


@pytest.mark.parametrize("shape", [(1, 1), (500, 1), (65, 7), (500, 100), (3, 1000)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_weighted_sums(kernel: str, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(11)
    eta = 2.0 * rng.standard_normal(shape)
    before = eta.copy()
    y = targets(kernel, rng, shape[0])
    weights = rng.exponential(size=shape[0]) - 0.5
    weights[1::4] = 0.0
    _, p0, p1 = FORMULAS[kernel]
    sums = jit.weighted_sums(FUNCTIONS[kernel], eta, y, weights, p0, p1)
    potentials = formula(kernel, eta, y)
    bound = 1e-13 * np.abs(weights) @ (1.0 + np.abs(potentials) + np.abs(y[:, None] * eta))
    assert np.all(np.abs(sums - weights @ potentials) <= bound)
    assert np.array_equal(eta, before)


def test_rows_of_weight_zero_are_passed_over() -> None:
    eta = np.array([[1.0, 2.0], [np.nan, np.inf], [3.0, -1.0]])
    y, weights = np.array([1.0, -1.0, -1.0]), np.array([2.0, 0.0, 0.5])
    kept = jit.weighted_sums(LOGISTIC, eta[[0, 2]], y[[0, 2]], weights[[0, 2]])
    assert np.array_equal(jit.weighted_sums(LOGISTIC, eta, y, weights), kept)
    assert np.array_equal(jit.weighted_sums(LOGISTIC, eta, y, np.zeros(3)), np.zeros(2))


@pytest.mark.parametrize("bits", [0x7FF8000000000000, 0x7FF80000000007A2, 0xFFF0000000000FFF])
@pytest.mark.parametrize("kernel", KERNELS)
def test_nan_stays_nan(kernel: str, bits: int) -> None:
    """Also with a payload in the low bits, such as the missing value of R."""
    eta = np.full((3, 9), 0.5)
    eta[1, 4] = np.array([bits], dtype=np.uint64).view(np.float64)[0]
    y = np.ones(3)
    bad = ~np.isfinite(transformed(kernel, eta, y))
    assert np.array_equal(np.argwhere(bad), [[1, 4]])
    _, p0, p1 = FORMULAS[kernel]
    sums = jit.weighted_sums(FUNCTIONS[kernel], eta, y, np.ones(3), p0, p1)
    assert np.array_equal(np.flatnonzero(~np.isfinite(sums)), [4])


@pytest.mark.parametrize("kernel", KERNELS)
def test_threads_give_the_same_bits(kernel: str) -> None:
    rng = np.random.default_rng(8)
    eta = rng.standard_normal((512, 100))
    y, weights = targets(kernel, rng, 512), rng.random(512)
    _, p0, p1 = FORMULAS[kernel]

    def once(_: int) -> tuple[Array, Array]:
        values = transformed(kernel, eta, y)
        return values, jit.weighted_sums(FUNCTIONS[kernel], eta, y, weights, p0, p1)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(once, range(16)))
    for answer in answers[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(answer, answers[0], strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_value_does_not_depend_on_its_place(kernel: str) -> None:
    rng = np.random.default_rng(9)
    eta = 4.0 * rng.standard_normal((5, 103))
    y = targets(kernel, rng, 5)
    together = transformed(kernel, eta, y)
    apart = np.stack([transformed(kernel, eta[:, [s]].copy(), y)[:, 0] for s in range(103)], axis=1)
    terms = np.abs(together) + np.abs(y[:, None] * eta)
    assert np.all(np.abs(together - apart) <= 4.0 * EPS * terms)


def test_read_only_and_strided_targets() -> None:
    rng = np.random.default_rng(4)
    eta = rng.standard_normal((6, 5))
    table = rng.choice([-1.0, 1.0], (6, 3))
    table.flags.writeable = False
    expected = logistic(eta, table[:, 1:2], 0.0, 0.0)
    np.testing.assert_allclose(transformed("logistic", eta, table[:, 1]), expected, rtol=1e-13)
    eta.flags.writeable = False
    sums = jit.weighted_sums(LOGISTIC, eta, table[:, 1], np.ones(6))
    np.testing.assert_allclose(sums, expected.sum(axis=0), rtol=1e-13)


def test_no_rows_or_no_draws() -> None:
    for shape in ((0, 4), (3, 0)):
        y = np.ones(shape[0])
        jit.transform(LOGISTIC, np.empty(shape), y)
        sums = jit.weighted_sums(LOGISTIC, np.empty(shape), y, y)
        assert np.array_equal(sums, np.zeros(shape[1]))


def test_wrong_arguments() -> None:
    eta = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"\(3, 2\).*got shape \(2,\)"):
        jit.transform(LOGISTIC, eta, np.ones(2))
    with pytest.raises(ValueError, match=r"got shape \(3, 1\)"):
        jit.transform(LOGISTIC, eta, np.ones((3, 1)))
    with pytest.raises(ValueError, match=r"got shape \(4,\)"):
        jit.weighted_sums(LOGISTIC, eta, np.ones(3), np.ones(4))
    with pytest.raises(TypeError):
        jit.transform(LOGISTIC, np.asfortranarray(np.zeros((3, 2))), np.ones(3))


@pytest.mark.parametrize("name", ["probit", "cloglog"])
@pytest.mark.parametrize("label", [-1.0, 1.0])
def test_slopes_are_the_derivatives(name: str, label: float) -> None:
    model, eta = MODELS[name], np.append(np.linspace(-50.0, 50.0, 1001), 320.0)
    y = np.full(eta.size, label)
    slopes = eta[:, None].copy()
    jit.transform(model.slope_kernel, slopes, y)
    (expected,) = model.derivatives(eta, y, 1)
    np.testing.assert_allclose(slopes[:, 0], expected, rtol=1e-10, atol=1e-300)
