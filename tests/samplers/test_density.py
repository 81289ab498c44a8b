"""Compiled densities: the same numbers as the model's own methods, and chains that can be ended."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import corebayes as cb
from corebayes.deadline import OutOfTimeError, deadline_at
from corebayes.models.compiled import jit
from corebayes.rows import open_rows
from corebayes.samplers.density import Frame, Pointer, plain_density, quickest_density

FAMILIES = [
    cb.LogisticRegression(prior=cb.Normal(0.3, 2.0)),
    cb.PoissonRegression(link="log", prior=cb.Normal()),
    cb.PoissonRegression(link="softplus", intercept=True, prior=cb.Normal()),
    cb.NegativeBinomialRegression(dispersion=0.7, prior=cb.Normal()),
    cb.StudentTRegression(df=3.0, scale=0.7, intercept=True, prior=cb.Normal()),
]
IDS = [type(family).__name__ + str(k) for k, family in enumerate(FAMILIES)]
# Each takes a second to compile.
QUICK = (cb.LogisticRegression, cb.StudentTRegression)
SOME = [f if isinstance(f, QUICK) else pytest.param(f, marks=pytest.mark.slow) for f in FAMILIES]


def glm_posterior(family: Any, num_rows: int = 40) -> cb.Posterior:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(num_rows, 4))
    binary = isinstance(family, cb.LogisticRegression)
    y = (rng.random(num_rows) < 0.4) if binary else rng.poisson(2.0, num_rows)
    data = open_rows((X, y.astype(float)))
    weights = rng.uniform(0.0, 5.0, num_rows)
    weights[3] = 0.0
    return cb.Posterior(family.bind(data), data.take(np.arange(num_rows)), weights)


def called(pointer: Pointer, z: np.ndarray) -> tuple[int, float, np.ndarray]:
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64, *[ctypes.c_void_p] * 4)
    gradient, value = np.empty(z.size), np.empty(1)
    places = (array.ctypes.data for array in (z, gradient, value, pointer.numbers))
    return kind(pointer.address)(z.size, *places), float(value[0]), gradient


@pytest.mark.parametrize("family", SOME, ids=IDS)
def test_glm_densities(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    posterior, rng = glm_posterior(family), np.random.default_rng(1)
    dim = posterior.dim
    frame = Frame(0.1 * rng.normal(size=dim), 0.5 * rng.normal(size=(dim, dim)))
    plain, pointer = plain_density(posterior, frame), quickest_density(posterior, frame)
    assert isinstance(pointer, Pointer)
    monkeypatch.setattr(jit, "available", lambda: False)
    in_numpy = quickest_density(posterior, frame)
    assert not isinstance(in_numpy, Pointer)
    for scale in (0.1, 1.0, 20.0):
        z = scale * rng.normal(size=dim)
        value, gradient = plain(z)
        code, *found = called(pointer, z)
        assert code == 0
        for answer in (found, in_numpy(z)):
            assert answer[0] == pytest.approx(value, rel=1e-10)
            np.testing.assert_allclose(answer[1], gradient, rtol=1e-8, atol=1e-8)


def test_what_is_not_finite_is_said() -> None:
    posterior = glm_posterior(FAMILIES[1])
    frame = Frame(np.zeros(4), np.eye(4))
    pointer = quickest_density(posterior, frame)
    assert isinstance(pointer, Pointer)
    assert called(pointer, np.full(4, np.nan))[0] > 0


@pytest.mark.parametrize("compiled_nuts", [True, False])
def test_nuts_is_the_same_on_both(compiled_nuts: bool) -> None:
    posterior = glm_posterior(FAMILIES[0])
    draws = cb.NUTS(compiled=compiled_nuts).draw(np.random.default_rng(0), posterior, 200)
    other = cb.NUTS().draw(np.random.default_rng(0), posterior, 200)
    np.testing.assert_allclose(draws.values, other.values, rtol=1e-6, atol=1e-6)


def jax_posterior(dim: int, num_rows: int = 50, scale: float = 1.0) -> cb.Posterior:
    jnp: Any = pytest.importorskip("jax.numpy")
    rng = np.random.default_rng(2)

    def log_likelihood(draws: Any, block: Any) -> Any:
        residual = block["y"][:, None] - block["X"] @ draws.T
        return -jnp.log1p(jnp.square(residual))

    def log_prior(draws: Any) -> Any:
        return -0.5 * jnp.sum(jnp.square(draws - 0.2), axis=1)

    X = scale * rng.normal(size=(num_rows, dim))
    data = open_rows({"X": X, "y": X[:, 0] + rng.normal(size=num_rows)})
    model = cb.CustomModel(log_likelihood, log_prior, dim).bind(data)
    weights = rng.uniform(0.5, 2.0, num_rows)
    return cb.Posterior(model, data.take(np.arange(num_rows)), weights)


@pytest.mark.parametrize("factor", [np.array([2.0, 0.5, 1.0]), np.eye(3) + 0.3])
def test_jax_densities(factor: np.ndarray) -> None:
    posterior = jax_posterior(3)
    frame = Frame(np.array([0.1, -0.2, 0.4]), factor)
    quick, plain = quickest_density(posterior, frame), plain_density(posterior, frame)
    assert not isinstance(quick, Pointer)
    for z in np.random.default_rng(0).normal(size=(3, 3)):
        (value, gradient), expected = quick(z), plain(z)
        assert value == pytest.approx(expected[0], rel=1e-10)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-6, atol=1e-6)


def test_very_many_parameters() -> None:
    """No Hessian and no dense frame; the density comes from `jax_log_density`."""
    posterior = jax_posterior(250, num_rows=60, scale=0.05)
    drawn = cb.Automatic(chains=2, num_tune=150).draw(np.random.default_rng(0), posterior, 300)
    assert drawn.how == "NUTS, 2 chains" and drawn.diagnosed().max_rhat < 1.15
    heights = posterior.log_density(drawn.flat)
    np.testing.assert_allclose(drawn.stats["lp"].ravel(), heights, rtol=1e-8)


@pytest.mark.parametrize("make", [lambda: glm_posterior(FAMILIES[4]), lambda: jax_posterior(3)])
def test_a_deadline_ends_chains(make: Any) -> None:
    posterior = make()
    # Compiled beforehand.
    cb.NUTS(num_tune=50, chains=1).draw(np.random.default_rng(0), posterior, 20)
    began = time.perf_counter()
    with pytest.raises(OutOfTimeError), deadline_at(began + 0.5):
        cb.NUTS().draw(np.random.default_rng(0), posterior, 10_000_000)
    assert time.perf_counter() - began < 10.0


def test_ctrl_c_ends_chains() -> None:
    posterior = glm_posterior(FAMILIES[4])
    cb.NUTS(num_tune=50, chains=1).draw(np.random.default_rng(0), posterior, 20)
    timer = threading.Timer(0.5, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        cb.NUTS().draw(np.random.default_rng(0), posterior, 10_000_000)
    timer.join()
