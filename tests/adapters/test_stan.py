"""What `to_stan` writes, compiled and run by Stan."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import warnings
from typing import Any

import numpy as np
import pytest

from corebayes.adapters.exports.density_check import log_density
from corebayes.adapters.exports.mixed_parts import mixed_parts
from corebayes.adapters.exports.stan import to_stan
from corebayes.samplers.exact import Exact
from corebayes.samplers.posterior import Posterior
from tests.adapters.stan_together import together, together_data
from tests.adapters.test_exports import REGRESSIONS, WEIGHTS, numpyro_coreset, regression
from tests.adapters.test_family_exports import coreset as family_coreset
from tests.adapters.test_mixed_exports import MODELS, QUICK, TERMS, mixed
from tests.mixed.family_cases import NAMES


def test_files_hold_data_and_program(tmp_path):
    export = to_stan(regression("student-t"))
    export.write(tmp_path)
    assert (tmp_path / "model.stan").read_text() == export.program
    data = json.loads((tmp_path / "data.json").read_text())
    assert data["weight"] == WEIGHTS and data["M"] == 5 and data["D"] == 3
    assert data["df"] == 3.0 and data["scale"] == 0.6
    np.testing.assert_array_equal(data["X"], regression("student-t").rows.X)
    assert "target += weight[i] * student_t_lpdf(y[i] | df, eta[i], scale);" in export.program


def test_models_from_elsewhere_get_their_rows_and_the_line_to_add():
    export = to_stan(numpyro_coreset("hierarchical"))
    assert export.program is None and "target += weight[i] *" in export.lines
    assert set(export.data) == {"M", "weight", "X", "group", "y"}
    assert all(isinstance(value, int) for value in export.data["group"])


@pytest.fixture
def stan(tmp_path, monkeypatch):
    """pystan with an empty cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with warnings.catch_warnings():
        # pystan's dependencies speak of their own future, from the import on.
        warnings.simplefilter("ignore")
        yield importlib.import_module("stan")


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """httpstan gives the translation a second, which a busy machine has not."""
    import httpstan.compile

    run = subprocess.run

    def without_haste(*arguments, timeout, **options):
        return run(*arguments, **options)

    monkeypatch.setattr(httpstan.compile.subprocess, "run", without_haste)


def compile_beforehand(program: str) -> None:
    """Put the compiled program where pystan looks for it.

    pystan itself waits five minutes at most, which a busy machine needs, and optimises, which takes
    longer than all that is computed here.
    """
    from httpstan import cache, models

    options = ["-O0", "-std=c++14", "-Wno-sign-compare"]
    said = asyncio.run(models.build_services_extension_module(program, options))
    name = models.calculate_model_name(program)
    cache.dump_services_extension_module_compiler_output(said, name)
    cache.dump_stanc_warnings("", name)


@pytest.mark.slow
def test_stan_has_our_log_density_for_every_family_and_samples(stan):
    """One program with the line of every family, so that Stan compiles once."""
    compile_beforehand(_all_families())
    points = np.random.default_rng(0).normal(size=(4, 3))
    for number, name in enumerate(REGRESSIONS):
        coreset = regression(name)
        built = stan.build(_all_families(), data=_data(to_stan(coreset).data, number))
        theirs = np.array([built.log_prob(list(theta)) for theta in points])
        difference = theirs - [log_density(coreset, theta) for theta in points]
        np.testing.assert_allclose(difference, difference[0], atol=1e-8)
        if name == "linear":
            exact = Exact().fit(Posterior.of(coreset))
            drawn = built.sample(num_chains=1, num_warmup=300, num_samples=600)["beta"]
            sd = np.sqrt(np.diag(exact.factor @ exact.factor.T))
            assert np.all(np.abs(drawn.mean(axis=1) - exact.mean) < 0.3 * sd)
            np.testing.assert_allclose(drawn.std(axis=1), sd, rtol=0.25)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:path is deprecated")
@pytest.mark.parametrize("name", REGRESSIONS)
def test_every_program_is_one_that_stan_accepts(name):
    from httpstan.compile import compile as translate

    program = to_stan(regression(name)).program
    assert program is not None
    code, messages = translate(program, "coreset_model")
    assert "log_prob" in code and "error" not in messages.lower()


def _all_families() -> str:
    terms = []
    for number, (model, _) in enumerate(REGRESSIONS.values()):
        line = model.stan
        whole = "_lpmf" in line
        term = line.replace("y[i]", "whole[i]" if whole else "real_y[i]")
        terms.append(f"if (family == {number}) target += weight[i] * {term};")
    return (
        "data { int M; int D; matrix[M, D] X; array[M] int whole; vector[M] real_y;"
        " vector[M] weight; vector[D] prior_mean; cov_matrix[D] prior_covariance; int family;"
        " real noise_sd; real df; real scale; real dispersion; }\n"
        "parameters { vector[D] beta; }\n"
        "model { vector[M] eta = X * beta; beta ~ multi_normal(prior_mean, prior_covariance);\n"
        "for (i in 1:M) {\n" + "\n".join(terms) + "\n} }\n"
    )


def _data(data: dict[str, Any], family: int) -> dict[str, Any]:
    target = data.pop("y")
    constants = {"noise_sd": 1.0, "df": 1.0, "scale": 1.0, "dispersion": 1.0}
    whole = [round(value) for value in target]
    return {**constants, **data, "family": family, "whole": whole, "real_y": target}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:path is deprecated")
@pytest.mark.parametrize("formula", MODELS)
def test_every_mixed_program_is_one_that_stan_accepts(formula):
    from httpstan.compile import compile as translate

    code, messages = translate(str(to_stan(mixed(formula)).program), "coreset_model")
    assert "log_prob" in code and "error" not in messages.lower()


@pytest.mark.slow
@pytest.mark.parametrize("formula", [TERMS, QUICK])
def test_stan_has_our_log_density_of_mixed_models(stan, formula):
    coreset = mixed(formula)
    export = to_stan(coreset)
    compile_beforehand(str(export.program))
    built = stan.build(export.program, data=export.data)
    points = np.random.default_rng(0).normal(size=(4, coreset.model.dim))
    theirs = [built.log_prob(_in_the_order_of_stan(coreset, theta)) for theta in points]
    difference = np.array(theirs) - [log_density(coreset, theta) for theta in points]
    np.testing.assert_allclose(difference, difference[0], atol=1e-8)


@pytest.mark.slow
def test_stan_has_our_log_density_of_every_family(stan):
    """With groups, offsets, trials, events and learned constants; one program of all of them."""
    coresets = {f"f{k}": family_coreset(name) for k, name in enumerate(NAMES)}
    exports = {key: to_stan(one) for key, one in coresets.items()}
    program = together({key: str(export.program) for key, export in exports.items()})
    compile_beforehand(program)
    built = stan.build(program, data=together_data({k: e.data for k, e in exports.items()}))
    rng = np.random.default_rng(0)
    points = {key: rng.uniform(-1.0, 1.0, (4, c.model.dim)) for key, c in coresets.items()}

    def theirs(moved: str, number: int) -> float:
        """All at their first points, but for one."""
        parts = [
            _in_the_order_of_stan(one, points[key][number if key == moved else 0])
            for key, one in coresets.items()
        ]
        return built.log_prob([value for part in parts for value in part])

    first = theirs("", 0)
    for (key, one), name in zip(coresets.items(), NAMES, strict=True):
        ours = [log_density(one, theta) for theta in points[key]]
        rises = [theirs(key, number) - first for number in range(1, 4)]
        np.testing.assert_allclose(
            rises, np.array(ours[1:]) - ours[0], rtol=1e-9, atol=1e-7, err_msg=name
        )


def _in_the_order_of_stan(coreset: Any, theta: Any) -> list[float]:
    """Coefficients, the constants, then the standard deviation of every effect before it."""
    parts = mixed_parts(coreset)
    assert parts is not None
    named = parts.unconstrained(theta)
    names = ["coefficients", *(one.name for one in parts.learned)]
    for effect in parts.effects:
        names += [effect.scale.name, effect.name]
    return np.concatenate([np.atleast_1d(named[name]) for name in names]).tolist()
