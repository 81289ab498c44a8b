"""Regressions from formulas."""

from __future__ import annotations

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import corebayes as cb
from corebayes.adapters.formula import from_formula


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    rng = np.random.default_rng(5)
    num_rows = 300
    table = pandas.DataFrame(
        {
            "x1": rng.normal(size=num_rows),
            "x2": rng.uniform(1.0, 3.0, size=num_rows),
            "g": rng.choice(["north", "south", "west"], size=num_rows),
            "times": rng.integers(1, 4, size=num_rows),
        },
        index=np.arange(num_rows)[::-1],
    )
    eta = table["x1"] - 0.5 * np.log(table["x2"]) + 0.7 * (table["g"] == "south")
    table["y"] = (rng.uniform(size=num_rows) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    table["count"] = rng.poisson(np.exp(0.5 * eta))
    return table


def by_hand(frame: pandas.DataFrame) -> np.ndarray:
    """1, x1, log x2, [g = south], [g = west]: the first level is the base."""
    return np.column_stack(
        [
            np.ones(len(frame)),
            frame["x1"],
            np.log(frame["x2"]),
            frame["g"] == "south",
            frame["g"] == "west",
        ]
    ).astype(float)


@pytest.mark.parametrize(
    "convert", [lambda f: f, polars.from_pandas, lambda f: pyarrow.table(f.reset_index(drop=True))]
)
def test_the_design_is_the_one_of_the_formula(frame, convert):
    model, data = from_formula("y ~ x1 + np.log(x2) + C(g)", convert(frame), family="logistic")
    assert isinstance(model, cb.LogisticRegression) and not model.intercept
    rows = data.take(np.arange(0, len(frame)))
    np.testing.assert_array_equal(rows.X, by_hand(frame))
    np.testing.assert_array_equal(rows.y, frame["y"])
    assert data.target_name == "y"
    assert data.column_names == (
        "Intercept", "x1", "np.log(x2)", "C(g)[T.south]", "C(g)[T.west]"
    )  # fmt: skip


def test_names_reach_the_posterior_and_the_posterior_is_the_plain_models(frame):
    model, data = from_formula("y ~ x1 + C(g)", frame, prior=cb.Normal(0.0, 2.0))
    coreset = cb.build(model, data, size=40, seed=1)
    posterior = cb.sample(coreset, draws=50, chains=1, tune=100).posterior
    assert set(posterior.data_vars) == {"Intercept", "x1", "C(g)"}
    assert list(posterior["C(g)"].coords["C(g)_dim"].values) == ["T.south", "T.west"]
    X = by_hand(frame)[:, [0, 1, 3, 4]]
    plain = cb.build(
        cb.LogisticRegression(prior=cb.Normal(0.0, 2.0)),
        (X, frame["y"].to_numpy()),
        size=40,
        seed=1,
    )
    np.testing.assert_array_equal(coreset.indices, plain.indices)
    np.testing.assert_allclose(coreset.weights, plain.weights, rtol=1e-10)


def test_an_option_that_a_family_does_not_have_is_named(frame):
    with pytest.raises(TypeError, match=r"'student-t' has no option 'noise_sd'; it takes .*scale"):
        cb.from_formula("y ~ a", frame, family="student-t", noise_sd=0.7)


def test_families_options_counts_and_truths(frame):
    model, data = from_formula(
        "count ~ x1 - 1", frame, family="poisson", link="log", counts="times"
    )
    assert model.link == "log" and data.column_names == ("x1",)
    assert data.total_count == frame["times"].sum()
    own = cb.StudentTRegression(df=3.0, scale=0.5, prior=cb.Normal())
    model, data = from_formula("x2 ~ x1*g", frame, family=own)
    assert model is own and len(data.column_names) == 6
    truth = frame.assign(y=frame["y"] == 1)
    np.testing.assert_array_equal(
        from_formula("y ~ x1", truth)[1].take(np.arange(300)).y, frame["y"]
    )


def test_what_is_wrong_is_named(frame):
    with pytest.raises(ValueError, match=r"there is no column 'x3'; the columns are 'x1', 'x2'"):
        from_formula("y ~ x1 + x3", frame)
    with pytest.raises(ValueError, match="no left side"):
        from_formula("x1 + x2", frame)
    with pytest.raises(ValueError, match="there is no family 'logit'; did you mean 'logistic'"):
        from_formula("y ~ x1", frame, family="logit")
    with pytest.raises(ValueError, match=r"needs numbers or two levels, .* g\[north\] ~ "):
        from_formula("g ~ x1", frame)
    with pytest.raises(ValueError, match="without intercept=True"):
        from_formula(
            "y ~ x1", frame, family=cb.LogisticRegression(intercept=True, prior=cb.Normal())
        )
    with pytest.raises(TypeError, match="pass a pandas or polars frame"):
        from_formula("y ~ x1", np.zeros((3, 2)))
    holes = frame.astype({"g": object}).reset_index(drop=True)
    holes.loc[[7, 9], "g"] = None
    with pytest.raises(ValueError, match="row 7, column 'g' is missing; so are 2 of 300"):
        from_formula("y ~ x1 + C(g)", holes)
