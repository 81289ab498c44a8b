"""Rows of a frame, as Bambi's formula makes columns of them, without Bambi."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas
import pytest

import corebayes as cb
from corebayes.sample import assembled, variables
from tests.later import bambi

pytestmark = [
    pytest.mark.filterwarnings("ignore:PyTensor could not link"),
    pytest.mark.filterwarnings("ignore:For backward compatibility"),
]

NUM_ROWS = 120


def frame(seed: int, num_rows: int = NUM_ROWS) -> pandas.DataFrame:
    rng = np.random.default_rng(seed)
    return pandas.DataFrame(
        {
            "x": rng.normal(size=num_rows) + 3.0,
            "z": rng.gamma(2.0, size=num_rows) + 0.1,
            "g": np.resize(list("abcde"), num_rows),
            "h": np.resize(["u", "v", "v"], num_rows),
            "k": np.resize([3, 1, 2, 7], num_rows),
            "y": rng.normal(size=num_rows),
            "s": np.resize(["no", "yes", "no"], num_rows),
            "c": rng.poisson(2.0, size=num_rows),
            "u": rng.beta(2.0, 3.0, size=num_rows),
        }
    )


@pytest.mark.parametrize(
    ("formula", "family"),
    [
        ("y ~ g:h + bs(x, df=4)", "gaussian"),
        ("y ~ z + x:z + scale(x) + {x**2} + C(k)", "t"),
        ("s ~ x*g", "bernoulli"),
        ("c ~ h + (h|g) + (0 + x|k) + (1|g:h)", "negativebinomial"),
        pytest.param("u ~ 0 + g + np.log(z)", "beta", marks=pytest.mark.slow),
        pytest.param("s['yes'] ~ g*h*x", "bernoulli", marks=pytest.mark.slow),
        pytest.param(
            "scale(y) ~ center(x) + I(x > 3) + (0 + h|g)", "gaussian", marks=pytest.mark.slow
        ),
    ],
)
def test_predictions_of_a_frame_are_bambis(formula: str, family: str, tmp_path: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own = bambi.Model(formula, frame(1), family=family)
        own.build()
    model, data = cb.from_bambi(own)
    model = model.bind(data)
    draws = 0.3 * np.random.default_rng(4).normal(size=(1, 50, model.dim))
    idata = assembled({"posterior": variables(model, draws)}, {})
    # In another order, with other numbers, and not all of the levels.
    new = frame(2, 17).iloc[::-2].reset_index(drop=True).drop(columns=["y", "s", "c", "u"])
    theirs = own.predict(idata, data=new, inplace=False).posterior[own.family.likelihood.parent]
    coreset = cb.build(model, data, size=30, method=cb.Uniform(), progress=False)
    coreset.save(tmp_path / "c.parquet")
    found = cb.predict(cb.load(tmp_path / "c.parquet"), new, draws=idata)
    np.testing.assert_allclose(found.mean, theirs.to_numpy()[0].mean(axis=0), rtol=1e-9)


def test_a_function_of_the_user_leaves_columns_to_bambi() -> None:
    def twice(x: Any) -> Any:
        return 2.0 * x

    own = bambi.Model("y ~ twice(x)", frame(1), extra_namespace={"twice": twice})
    own.build()
    model, data = cb.from_bambi(own)
    coreset = cb.build(model, data, size=20, progress=False)
    with pytest.raises(ValueError, match="columns that Bambi computed"):
        cb.predict(coreset, frame(2))
