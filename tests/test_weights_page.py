"""The recipes of docs/weights.md give the coreset's posterior: each library's log density against
ours, at a few places."""

from __future__ import annotations

import asyncio
import importlib
import re
import warnings
from typing import Any

import numpy as np
import pytest

import corebayes as cb
from corebayes.samplers.posterior import Posterior
from tests.test_docs import DOCS, PAGES, cells

# intercept, slope, log τ, and what is added to every effect, of places to compare at.
PLACES = ((-1.0, 0.4, -0.3), (0.2, -0.3, 0.4), (-0.6, 1.1, -1.2))


@pytest.fixture(scope="module")
def page() -> dict[str, Any]:
    """The names of the page, without its samplers, on fewer rows."""
    program = [cell for cell in cells("weights") if "pm.sample(" not in cell]
    assert len(program) == 4
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in program:
            exec(cell.replace("50_000", "5_000"), names)
    importlib.import_module("numpyro").enable_x64(False)
    return names


def places(page: dict[str, Any]) -> list[tuple[float, float, float, np.ndarray]]:
    rng = np.random.default_rng(1)
    return [(*place, 0.5 * rng.normal(size=len(page["carriers"]))) for place in PLACES]


def ours(page: dict[str, Any]) -> np.ndarray:
    """log π_w with the Jacobian of log τ, up to a constant."""
    coreset = page["coreset"]
    names = coreset.model.parameter_names
    assert len(names) == 3 + len(page["carriers"]) and "log" in names[2]
    theta = np.array([[a, b, u, *effects] for a, b, u, effects in places(page)])
    return relative(Posterior.of(coreset).log_density(theta))


def relative(values: Any) -> np.ndarray:
    array = np.array(values, dtype=float)
    return array - array[0]


def test_the_rows_are_those_of_the_table(page):
    kept, coreset = page["kept"], page["coreset"]
    np.testing.assert_array_equal(kept["complaints"], coreset.rows.y)
    assert len(kept) == coreset.size <= 100 and set(kept["carrier"]) == set(
        page["frame"]["carrier"]
    )
    assert kept["weight"].sum() == pytest.approx(5_000, rel=0.1)


def test_pymc(page):
    names = ("intercept", "slope", "tau_log__", "effect")
    density = page["in_pymc"].compile_logp(mode="FAST_COMPILE")
    found = [
        density(dict(zip(names, map(np.asarray, place), strict=True))) for place in places(page)
    ]
    np.testing.assert_allclose(relative(found), ours(page), rtol=1e-6)


def test_bambi(page):
    model = page["in_bambi"].backend.model
    density = model.compile_logp(mode="FAST_COMPILE")
    names = ("Intercept", "distance", "1|carrier_sigma_log__", "1|carrier")
    assert {variable.name for variable in model.value_vars} == set(names)
    found = [
        density(dict(zip(names, map(np.asarray, place), strict=True))) for place in places(page)
    ]
    np.testing.assert_allclose(relative(found), ours(page), rtol=1e-6)


def test_numpyro(page):
    numpyro = importlib.import_module("numpyro")
    utilities = importlib.import_module("numpyro.infer.util")
    jax = importlib.import_module("jax")
    names = ("intercept", "slope", "tau", "effect")
    found = []
    with jax.enable_x64(True):
        for place in places(page):
            values = dict(zip(names, map(jax.numpy.asarray, place), strict=True))
            found.append(-float(utilities.potential_energy(page["in_numpyro"], (), {}, values)))
    assert numpyro.__version__
    np.testing.assert_allclose(relative(found), ours(page), rtol=1e-6)


@pytest.mark.slow
def test_stan(page, tmp_path, monkeypatch, request):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (program,) = re.findall(r"^```stan\n(.*?)^```$", PAGES["weights"], re.MULTILINE | re.DOTALL)
    kept = page["kept"]
    data = {
        "M": len(kept),
        "G": len(page["carriers"]),
        "distance": kept["distance"].tolist(),
        "complaints": kept["complaints"].tolist(),
        "carrier": (page["code"] + 1).tolist(),
        "weight": kept["weight"].tolist(),
    }
    with warnings.catch_warnings():
        # pystan's dependencies speak of their own future, from the import on.
        warnings.simplefilter("ignore")
        # pystan asks for the thread's loop and leaves it open.
        loop = asyncio.new_event_loop()
        request.addfinalizer(loop.close)
        asyncio.set_event_loop(loop)
        built = importlib.import_module("stan").build(program, data=data)
        found = [built.log_prob([a, b, u, *effects]) for a, b, u, effects in places(page)]
    np.testing.assert_allclose(relative(found), ours(page), rtol=1e-6)


@pytest.mark.slow
def test_what_r_printed_is_the_posterior_of_these_rows() -> None:
    names: dict[str, Any] = {}
    exec(cells("weights")[0], names)
    drawn = cb.sample(names["coreset"], draws=1000, chains=4, seed=1).posterior
    ours = [drawn[name] for name in ("Intercept", "distance", "1|carrier_sigma")]
    printed = (DOCS / "weights.R.txt").read_text(encoding="utf-8")
    for tool in ("rstanarm", "brms"):
        (line,) = re.findall(rf"^{tool} .*$", printed, re.MULTILINE)
        found = [(float(a), float(b)) for a, b in re.findall(r"(-?[\d.]+) \(([\d.]+)\)", line)]
        assert len(found) == 3
        for (mean, deviation), own in zip(found, ours, strict=True):
            # A few hundred effective draws on the other side.
            assert abs(mean - float(own.mean())) < 0.2 * float(own.std())
            assert 0.75 < deviation / float(own.std()) < 1.3
