"""Bambi models by way of PyMC: names of data, order of variables, families of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.adapters.bambi.adapter import BambiModel
from corebayes.adapters.exports.density_check import log_density
from corebayes.sample import assembled, variables
from tests.coresets import weighted
from tests.later import bambi

pytestmark = pytest.mark.filterwarnings("ignore:PyTensor could not link")

NUM_ROWS = 150


def frame() -> pandas.DataFrame:
    rng = np.random.default_rng(5)
    table = pandas.DataFrame(
        {
            "x": rng.normal(size=NUM_ROWS) + 3.0,
            "whole": rng.integers(0, 9, size=NUM_ROWS),
            "s": rng.choice(["w", "u", "v"], size=NUM_ROWS),
            "g": rng.choice(list("pqrst"), size=NUM_ROWS),
            "time": rng.exponential(size=NUM_ROWS) + 0.1,
            "hours": rng.uniform(1.0, 2.0, size=NUM_ROWS),
        }
    )
    level = np.digitize(table["x"] - 3.0 + rng.logistic(size=NUM_ROWS), [-1.0, 0.0, 1.0])
    return table.assign(
        rating=pandas.Categorical(level, ordered=True),
        colour=pandas.Categorical(np.array(["red", "green", "blue", "blue"])[level]),
        y=table["x"] + rng.standard_t(4, size=NUM_ROWS),
        count=rng.poisson(2.0, size=NUM_ROWS),
        trials=rng.integers(3, 9, size=NUM_ROWS),
        status=np.where(rng.uniform(size=NUM_ROWS) < 0.3, "right", "none"),
        late=np.minimum(rng.poisson(2.0, size=NUM_ROWS), 2),
    )


def make(formula: Any, family: str, **options: Any) -> Any:
    if family == "t":
        # No built-in model has this prior.
        options.setdefault("priors", {"nu": bambi.Prior("LogNormal", mu=1.0, sigma=0.5)})
    with warnings.catch_warnings():
        # Bambi's dependencies speak of their own future.
        warnings.simplefilter("ignore")
        if isinstance(formula, tuple):
            formula = bambi.Formula(*formula)
        model = bambi.Model(formula, frame(), family=family, **options)
        model.build()
        return model


def adapted(formula: Any, family: str, **options: Any) -> tuple[Any, Any, Any]:
    own = make(formula, family, **options)
    model, data = cb.from_bambi(own)
    assert isinstance(model, BambiModel)
    return own, model, data


MODELS = [
    (("y ~ x + s", "sigma ~ whole + s"), "t", ["X", "y"]),
    ("rating ~ x + s", "cumulative", ["X", "rating"]),
    ("censored(time, status) ~ x", "weibull", None),
    *(
        pytest.param(*model, marks=pytest.mark.slow)
        for model in (
            ("rating ~ x + (1|g)", "cumulative", ["X", "rating", "g"]),
            ("rating ~ whole", "sratio", ["X", "rating"]),
            ("colour ~ x + s", "categorical", ["X", "colour"]),
            ("count ~ x + s + offset(np.log(hours))", "negativebinomial", None),
            ("p(late, trials) ~ whole + s", "binomial", None),
            ("count ~ x", "zero_inflated_poisson", ["X", "count"]),
            ("y ~ x + (1 + whole|g)", "t", ["X", "y", "g", "whole"]),
        )
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "family", "fields"), MODELS)
def test_density_names_and_export(formula, family, fields):
    own, model, data = adapted(formula, family)
    block = data.take(np.arange(NUM_ROWS))
    names = [*block.fields, *data.column_names]
    if fields is not None:
        assert set(block.fields) == set(fields)
    assert not any("constant" in name or name.endswith(("column", "index")) for name in names)
    inner = own.backend.model
    compiled = inner.compile_logp(mode="FAST_COMPILE")
    for theta in np.random.default_rng(0).uniform(-1, 1, size=(2, model.dim)):
        values = model.split(theta)
        point = {inner.rvs_to_values[rv].name: values[rv.name] for rv in inner.free_RVs}
        ours = model.log_prior(theta[None])[0] + model.sum_potentials(theta[None], block)
        np.testing.assert_allclose(ours, compiled(point), rtol=1e-9)
    # What is exported is checked against the coreset's density by itself.
    coreset = weighted(model, data, [1, 5, 22, 40], [20.0, 10.0, 4.0, 26.0])
    if family == "weibull":
        with pytest.raises(ValueError, match="in its own model only"):
            cb.to_pymc(coreset)
    else:
        assert "coreset_weight" in cb.to_pymc(coreset).named_vars
    assert np.isfinite(log_density(coreset, np.zeros(model.dim)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "family", "parent"),
    [
        ("y ~ x + s + whole", "t", "mu"),
        pytest.param("colour ~ x + s", "categorical", "p", marks=pytest.mark.slow),
        pytest.param("rating ~ x + s", "cumulative", "p", marks=pytest.mark.slow),
        pytest.param(("y ~ x", "sigma ~ x"), "t", "mu", marks=pytest.mark.slow),
        pytest.param("y ~ x + (1|g)", "t", "mu", marks=pytest.mark.slow),
    ],
)
def test_bambi_predicts_what_the_model_says(formula, family, parent):
    own, model, _ = adapted(formula, family)
    draws = 0.5 * np.random.default_rng(4).normal(size=(1, 3, model.dim))
    idata = assembled({"posterior": variables(model, draws)}, {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own.predict(idata)
    inner = own.backend.model
    graph = inner.replace_rvs_by_values([inner[parent]])[0]
    inputs = [inner.rvs_to_values[rv] for rv in inner.free_RVs]
    expected = inner.compile_fn(graph, inputs=inputs, mode="FAST_COMPILE", on_unused_input="ignore")
    for number in range(3):
        values = model.split(draws[0, number])
        at = {inner.rvs_to_values[rv].name: values[rv.name] for rv in inner.free_RVs}
        found = idata.posterior[parent].to_numpy()[0, number]
        if family == "cumulative":
            # PyMC's p are P(y ≤ k), but for the last.
            found = np.cumsum(found, axis=1)[:, :-1]
        np.testing.assert_allclose(found, expected(at), atol=1e-9)


@pytest.mark.slow
def test_columns_and_parameters_have_bambis_names():
    _, model, data = adapted("y ~ x + s + (1|g)", "t")
    assert data.column_names == ("x", "s[v]", "s[w]")
    block = data.take(np.arange(NUM_ROWS))
    # As the columns are, though Bambi's matrix is less their means.
    np.testing.assert_array_equal(block.X[:, 0], frame()["x"])
    assert model.parameter_names[:3] == ("Intercept", "x", "s[v]")
    assert "1|g_offset[p]" in model.parameter_names
    assert "5 of the 5 groups of g" in repr(model)


SCRIPT = """
import warnings
warnings.simplefilter("ignore")
from tests.adapters.test_bambi_rows import adapted
import corebayes as cb, numpy as np
_, model, data = adapted("y ~ x + s", "t")
coreset = cb.build(model, data, size=5, seed=3, method=cb.Uniform(), progress=False)
theta = np.linspace(-1.0, 1.0, model.dim)
density = cb.Posterior(model, coreset.rows, coreset.weights).log_density(theta[None])[0]
print(model.parameter_names, coreset.indices.tolist(), coreset.weights.tolist(), density.hex())
"""


@pytest.mark.slow
def test_the_order_of_parameters_is_the_same_in_every_process():
    def run(seed: int) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        command = [sys.executable, "-c", SCRIPT]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    answers = {run(seed) for seed in (1, 3, 4)}
    assert len(answers) == 1 and "nu_log__" in answers.pop()


def test_variables_of_a_family_are_in_the_order_of_their_names():
    _, model, _ = adapted("y ~ x", "t")
    assert [one.name for one in model.parameters] == ["Intercept", "x", "nu", "sigma"]
