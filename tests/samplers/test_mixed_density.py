"""The compiled density of a mixed model is the one in NumPy, which is the model's own."""

from __future__ import annotations

import ctypes

import numpy as np
import pandas as pd
import pytest

import corebayes as cb
from corebayes.models.compiled import jit
from corebayes.models.priors.scale import Reciprocal
from corebayes.rows import open_rows
from corebayes.samplers.density import Pointer
from corebayes.samplers.mixed.density import MixedDensity, mixed_density
from corebayes.samplers.mixed.frame import frame_of
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior

ONE, SLOPES, OTHER = cb.GroupTerm(group="g"), ("1", "x"), cb.GroupTerm(group="h")
MODELS = {
    "intercepts": (cb.LogisticRegression(prior=cb.Normal()), [ONE], None),
    "no groups": (cb.LogisticRegression(intercept=True, prior=cb.Normal(0.3, 2.0)), [], None),
    "slopes": (
        cb.PoissonRegression(link="log", prior=cb.Normal()),
        [cb.GroupTerm(group="g", effects=SLOPES, scale=(cb.HalfStudentT(3.0, 0.5), cb.Gamma()))],
        None,
    ),
    "crossed": (
        cb.LogisticRegression(prior=cb.Normal(0.1, [[2.0, 0.3], [0.3, 1.0]])),
        [cb.GroupTerm(group="g", effects=SLOPES, scale=cb.Exponential(2.0)), OTHER],
        None,
    ),
    "noise": (
        cb.LinearRegression(noise_sd=1.0, prior=cb.Normal()),
        [ONE, OTHER],
        cb.HalfNormal(2.0),
    ),
    "horseshoe": (
        cb.LinearRegression(prior={"x": cb.Horseshoe(global_scale=0.3)}),
        [ONE],
        None,
    ),
    "other priors": (
        cb.LogisticRegression(
            prior={"intercept": cb.StudentT(3.0, 0.2, 0.7), "x": cb.DoubleExponential(0.1, 0.4)},
            intercept=True,
        ),
        [],
        None,
    ),
    "known noise": (cb.LinearRegression(noise_sd=0.7, prior=cb.Normal()), [ONE], None),
    "scale": (
        cb.StudentTRegression(df=3.0, scale=1.0, prior=cb.Normal()),
        [ONE],
        Reciprocal(cb.HalfStudentT(2.0, 1.5)),
    ),
    "dispersion": (cb.NegativeBinomialRegression(dispersion=0.4, prior=cb.Normal()), [OTHER], None),
}


COMPILED_SLOWLY = ("slopes", "scale", "dispersion")


def posterior_of(name, num_rows=80):
    family, terms, learned = MODELS[name]
    rng = np.random.default_rng(3)
    # Groups of one row beside groups of dozens, so that some effects are known and some are not.
    g, h = np.minimum(rng.geometric(0.2, num_rows), 9), rng.integers(0, 4, num_rows)
    x = rng.standard_normal(num_rows)
    eta = 0.3 + 0.5 * x + 0.8 * rng.standard_normal(10)[g] + 0.3 * rng.standard_normal(4)[h]
    if isinstance(family, cb.LogisticRegression):
        y = (rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    elif isinstance(family, cb.LinearRegression | cb.StudentTRegression):
        y = eta + rng.standard_normal(num_rows)
    else:
        y = rng.poisson(np.exp(eta)).astype(float)
    table = {"one": np.ones(num_rows), "x": x, "g": g, "h": h, "y": y}
    if not terms:
        del table["one"]
    features = [name for name in table if name != "y"]
    rows = open_rows(pd.DataFrame(table).astype(float), target="y", features=features)
    used = {term.group for term in terms}
    apart = [name for name in ("g", "h") if name not in used]
    model = cb.MixedRegression(family=family, terms=terms, learned=learned, slopes_only=apart)
    weights = rng.gamma(1.0, 3.0, num_rows)
    weights[::7] = 0.0
    return Posterior(model.bind(rows), rows.take(np.arange(num_rows)), weights)


def call(pointer, z):
    """The compiled function as nutpie calls it."""
    doubles = ctypes.POINTER(ctypes.c_double)
    signature = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_uint64, doubles, doubles, doubles, ctypes.c_void_p
    )
    z, gradient, value = z.copy(), np.empty_like(z), np.empty(1)
    status = signature(pointer.address)(
        z.size,
        *(array.ctypes.data_as(doubles) for array in (z, gradient, value)),
        pointer.numbers.ctypes.data,
    )
    return status, value[0], gradient


@pytest.mark.parametrize("name", MODELS)
def test_numpy_density_is_the_models_in_the_frames_coordinates(name):
    posterior = posterior_of(name)
    frame = frame_of(posterior)
    density = MixedDensity(posterior, frame)
    z = 0.7 * np.random.default_rng(5).standard_normal((4, posterior.dim))
    theta = frame.theta(z)
    # dθ/dz is constant but for the powers of τ.
    volumes = [
        np.linalg.slogdet(
            np.column_stack(
                [
                    frame.theta(one + 1e-6 * e) - frame.theta(one - 1e-6 * e)
                    for e in np.eye(one.size)
                ]
            )
            / 2e-6
        )[1]
        for one in z
    ]
    values = np.array([density(one)[0] for one in z])
    expected = posterior.log_density(theta) + np.array(volumes)
    np.testing.assert_allclose(values - values[0], expected - expected[0], rtol=0, atol=1e-6)
    for one in z:
        numeric = [
            (density(one + 1e-5 * e)[0] - density(one - 1e-5 * e)[0]) / 2e-5
            for e in np.eye(one.size)
        ]
        np.testing.assert_allclose(density(one)[1], numeric, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not jit.available(), reason="numba is not installed")
@pytest.mark.parametrize(
    "name",
    # Each family is compiled once, which takes seconds.
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in COMPILED_SLOWLY else [])
        for name in MODELS
    ],
)
def test_compiled_density_is_the_one_in_numpy(name):
    posterior = posterior_of(name)
    frame = frame_of(posterior)
    pointer, density = mixed_density(posterior, frame), MixedDensity(posterior, frame)
    assert isinstance(pointer, Pointer)
    for z in 1.5 * np.random.default_rng(7).standard_normal((5, posterior.dim)):
        status, value, gradient = call(pointer, z)
        in_numpy = density(z)
        assert status == 0
        assert value == pytest.approx(in_numpy[0], rel=1e-10, abs=1e-10)
        scale = np.abs(in_numpy[1]).max()
        np.testing.assert_allclose(gradient, in_numpy[1], rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.skipif(not jit.available(), reason="numba is not installed")
def test_where_the_density_is_not_finite_the_compiled_function_says_so():
    posterior = posterior_of("noise")
    pointer = mixed_density(posterior, frame_of(posterior))
    assert call(pointer, np.full(posterior.dim, 1e4))[0] > 0


def test_families_without_kernels_stay_in_numpy(monkeypatch):
    posterior = posterior_of("intercepts")
    monkeypatch.setattr(jit, "available", lambda: False)
    assert isinstance(mixed_density(posterior, frame_of(posterior)), MixedDensity)


def test_effects_that_rows_say_much_about_are_centred():
    """Then nothing but the mean of all groups, which the intercept takes up, moves with τ."""
    posterior = posterior_of("noise")
    heavy = frame_of(Posterior(posterior.model, posterior.rows, 1e4 * (posterior.weights + 0.1)))
    light = frame_of(Posterior(posterior.model, posterior.rows, 1e-6 * (posterior.weights + 0.1)))

    def unknown(frame):
        blocks = [block for block in (*frame.wide, *frame.own) if block.scale >= 0]
        prior = [np.exp(-2.0 * frame.wide_mean[block.scale]) for block in blocks]
        return [one / (one + block.known) for one, block in zip(prior, blocks, strict=True)]

    shares = np.concatenate(unknown(heavy))
    assert np.sort(shares)[-2] < 0.01 < 0.5 < shares.max()
    assert np.concatenate(unknown(light)).min() > 0.9


def funnel_of(num_groups, num_rows, spread):
    rng = np.random.default_rng(num_groups)
    g = rng.integers(0, num_groups, num_rows)
    x = rng.standard_normal(num_rows)
    eta = 0.5 * x + spread * rng.standard_normal(num_groups)[g]
    y = (rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    rows = open_rows(pd.DataFrame({"one": 1.0, "x": x, "g": g, "y": y}), target="y")
    model = cb.MixedRegression(family=cb.LogisticRegression(prior=cb.Normal()), terms=[ONE]).bind(
        rows
    )
    return Posterior(model, rows.take(np.arange(num_rows)), np.ones(num_rows))


@pytest.mark.parametrize(
    ("num_groups", "num_rows", "spread"),
    [
        (5, 300, 0.7),
        (8, 2000, 0.0),
        pytest.param(5, 4000, 0.7, marks=pytest.mark.slow),
        pytest.param(200, 1000, 0.3, marks=pytest.mark.slow),
    ],
)
def test_nuts_finds_no_funnel(num_groups, num_rows, spread):
    """Few groups and many, known well and hardly, even with no difference between them at all."""
    posterior = funnel_of(num_groups, num_rows, spread)
    drawn = NUTS(chains=4, num_tune=500, tolerated=1.0).draw(
        np.random.default_rng(1), posterior, 4000
    )
    assert drawn.num_divergences <= 2
    assert drawn.diagnosed().max_rhat < 1.02
    assert drawn.stats["n_steps"].mean() < 16.0
