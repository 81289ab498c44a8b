"""Predictions against closed forms, against Bambi's, and from every place that draws come from."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy import stats

import corebayes as cb
from corebayes.predict.prediction import summarised
from tests.later import arviz


def linear(num_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, 3)) * [1.0, 3.0, 0.2] + [0.0, 1.0, -2.0]
    y = X @ [1.0, -0.4, 2.0] + 0.3 + 0.7 * rng.normal(size=num_rows)
    return X, y


@pytest.fixture(scope="module")
def line():
    X, y = linear()
    model = cb.LinearRegression(noise_sd=0.7, intercept=True, prior=cb.Normal(0.0, 5.0))
    return cb.build(model, (X, y), size=15, seed=0)


@pytest.fixture(scope="module")
def schools():
    """A mixed model of a formula: 8 groups, an unknown noise."""
    rng = np.random.default_rng(3)
    g, x = rng.integers(0, 8, 2000), rng.normal(size=2000)
    effects = np.linspace(-2.0, 3.0, 8)
    frame = pd.DataFrame(
        {"x": x, "g": [f"s{k}" for k in g], "y": 5.0 + x + effects[g] + 0.5 * rng.normal(size=2000)}
    )
    model, rows = cb.from_formula("y ~ x + (1 | g)", frame, family="gaussian")
    return cb.build(model, rows, size=120, seed=0), effects


def test_linear_regression_has_the_closed_form(line):
    new = linear(200, seed=1)[0]
    found = cb.predict(line, new, num_draws=4000, interval=0.8)
    posterior = line.model.posterior(line.model.statistics(line.rows, line.weights))
    design = np.column_stack([new, np.ones(len(new))])
    mean, known = design @ posterior.mean, np.sum((design @ posterior.factor) ** 2, axis=1)
    whole, quantile = np.sqrt(known + 0.49), stats.norm.ppf(0.9)
    np.testing.assert_allclose(found.mean, mean, atol=4.0 * np.sqrt(known.max() / 4000))
    np.testing.assert_allclose(found["sd"], whole, rtol=0.06)
    np.testing.assert_allclose(found.lower, mean - quantile * whole, atol=0.08)
    np.testing.assert_allclose(found.upper, mean + quantile * whole, atol=0.08)
    np.testing.assert_allclose(
        found["mean_upper"] - mean, quantile * np.sqrt(known), atol=0.12 * np.sqrt(known.max())
    )


def test_intervals_of_counts_end_at_counts():
    draws = np.random.default_rng(0).poisson(6.0, size=(5, 999)).astype(float)
    found = summarised(np.full((5, 1), 6.0), draws, 0.9)
    ends = np.array([found["lower"], found["upper"]])
    np.testing.assert_array_equal(ends, np.round(ends))
    np.testing.assert_array_equal(ends[:, 0], np.sort(draws[0])[[49, 949]])


def test_draws_know_their_model_also_from_a_file(line, tmp_path):
    new, drawn = linear(50, seed=1)[0], cb.sample(line, draws=100)
    drawn.to_netcdf(str(tmp_path / "draws.nc"))
    again = arviz.from_netcdf(str(tmp_path / "draws.nc"))
    found = [cb.predict(one, new) for one in (drawn, again)]
    found.append(cb.predict(line, new, draws=drawn))
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].mean, other.mean)
        np.testing.assert_array_equal(found[0].upper, other.upper)


def test_laplace_and_arrays_of_draws_predict(line):
    X, y = linear()
    new = linear(50, seed=1)[0]
    exact = cb.laplace(line.model, (X, y), draws=2000)
    theta = np.concatenate(
        [values.values.reshape(2000, -1) for values in exact.posterior.data_vars.values()], axis=1
    )
    one, other = cb.predict(exact, new), cb.predict(line, new, draws=theta)
    np.testing.assert_allclose(one.mean, other.mean, atol=0.01)


def test_a_file_is_written_block_by_block(line, tmp_path):
    new, out = linear(5000, seed=2)[0], tmp_path / "p.parquet"
    kept = cb.predict(line, new, num_draws=200, keep_draws=True)
    told = cb.predict(line, new, num_draws=200, keep_draws=True, out=out)
    frame = pq.read_table(out).to_pandas()
    assert told.num_rows == len(frame) == 5000
    assert told.columns == {}
    for name, values in kept.columns.items():
        np.testing.assert_array_equal(frame[name], values)
    np.testing.assert_array_equal(np.stack(frame["draws"]), kept.draws)


def test_parquet_columns_are_found_by_name(tmp_path):
    X, y = linear()
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    coreset = cb.build(
        cb.LinearRegression(noise_sd=0.7, prior=cb.Normal()), frame, target="y", size=12
    )
    new = pd.DataFrame(linear(100, seed=1)[0], columns=["a", "b", "c"])[["c", "a", "b"]]
    new.assign(other="text").to_parquet(tmp_path / "new.parquet")
    plain = cb.predict(coreset, new[["a", "b", "c"]].to_numpy())
    for rows in (new, tmp_path / "new.parquet"):
        np.testing.assert_allclose(cb.predict(coreset, rows).mean, plain.mean, rtol=1e-12)
    with pytest.raises(ValueError, match="no column 'b'"):
        cb.predict(coreset, new[["c", "a"]])
    with pytest.raises(ValueError, match=r"2 columns, and the model was built with 3: 'a', 'b'"):
        cb.predict(coreset, new[["c", "a"]].to_numpy())
    with pytest.raises(ValueError, match="row 3, column 'b'"):
        cb.predict(coreset, new.assign(b=np.where(np.arange(100) == 3, np.nan, new.b)))


def test_new_groups_have_the_spread_of_the_groups(schools):
    coreset, effects = schools
    new = pd.DataFrame({"x": [0.0, 0.0, 1.0, 0.0], "g": ["s7", "new", "new", "other"]})
    found = cb.predict(coreset, new, num_draws=4000, keep_draws=True)
    assert found.new_groups == {"g": ["new", "other"]}
    assert "2 of 'g' (new, other)" in repr(found)
    drawn = cb.sample(coreset).posterior
    tau = drawn["1|g_sigma"].values.ravel()
    own = 0.5 * (found["mean_upper"] - found["mean_lower"])
    # Known groups are known; a new one is as far from the others as they are from each other.
    assert abs(found.mean[0] - (5.0 + effects[7])) < 0.2
    assert own[0] < 0.15
    spread = np.sqrt(np.mean(tau**2) + np.var(drawn["Intercept"].values))
    np.testing.assert_allclose(np.std(found.draws[1]), np.hypot(spread, 0.5), rtol=0.1)
    # Rows of one new group share its effect, those of two do not.
    together = np.corrcoef(found.draws[1:])
    assert together[0, 1] > 0.8
    assert abs(together[0, 2]) < 0.5


def test_new_groups_are_the_same_in_every_block_and_in_files(schools, tmp_path):
    coreset, _ = schools
    frame = pd.DataFrame({"x": np.zeros(3000), "g": ["n1", "s1", "n2"] * 1000})
    frame.to_parquet(tmp_path / "new.parquet", row_group_size=700)
    one, other = cb.predict(coreset, frame), cb.predict(coreset, tmp_path / "new.parquet")
    np.testing.assert_array_equal(one.mean, other.mean)
    assert len(np.unique(one.mean)) == 3
    assert other.new_groups == {"g": ["n1", "n2"]}


@pytest.mark.parametrize(
    ("model", "distribution"),
    [
        (
            cb.LogisticRegression(prior=cb.Normal()),
            lambda eta: stats.bernoulli(1 / (1 + np.exp(-eta))),
        ),
        (
            cb.PoissonRegression(link="log", prior=cb.Normal()),
            lambda eta: stats.poisson(np.exp(eta)),
        ),
        (
            cb.NegativeBinomialRegression(dispersion=0.5, prior=cb.Normal()),
            lambda eta: stats.nbinom(2.0, 2.0 / (2.0 + np.exp(eta))),
        ),
        (
            cb.StudentTRegression(df=6.0, scale=0.4, prior=cb.Normal()),
            lambda eta: stats.t(6.0, eta, 0.4),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_families_draw_from_their_distributions(model, distribution):
    """At one known θ, against SciPy."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 2))
    theta = np.array([0.8, -0.5])
    y = distribution(X @ theta).rvs(random_state=rng)
    coreset = cb.build(model, (X, y.astype(float)), size=5, method=cb.Uniform())
    new = np.array([[1.0, 0.2], [-1.5, 0.4]])
    found = cb.predict(
        coreset, new, draws=np.tile(theta, (20_000, 1)), num_draws=20_000, keep_draws=True
    )
    known = distribution(new @ theta)
    np.testing.assert_allclose(found.mean, known.mean(), rtol=1e-9)
    np.testing.assert_allclose(found["sd"], known.std(), rtol=0.05)
    np.testing.assert_allclose(found.draws.mean(axis=1), known.mean(), atol=0.04)


def test_refusals(line):
    X, y = linear()
    with pytest.raises(TypeError, match="needs a coreset, or draws"):
        cb.predict("c.parquet", X)
    with pytest.raises(ValueError, match="interval must be a probability"):
        cb.predict(line, X, interval=90)
    drawn = cb.sample(line, draws=50)
    with pytest.raises(ValueError, match="another model"):
        cb.predict(
            cb.build(cb.LogisticRegression(prior=cb.Normal()), (X[:, :2], y > 0), size=9),
            X,
            draws=drawn,
        )
    del drawn["model"]
    with pytest.raises(ValueError, match="pass the coreset too"):
        cb.predict(drawn, X)

    def density(draws, block):
        return -0.5 * (block.y[:, None] - draws[:, 0]) ** 2

    own = cb.CustomModel(density, lambda draws: -0.5 * np.sum(draws**2, axis=1), 1)
    with pytest.raises(TypeError, match="no way to draw targets"):
        cb.predict(cb.build(own, (X, y), size=5, method=cb.Uniform()), X)


def test_categories_have_probabilities():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 1))
    noise = rng.logistic(size=2000)
    y = np.searchsorted([-1.0, 0.5], 1.2 * X[:, 0] + noise).astype(float)
    coreset = cb.build(cb.OrdinalRegression(prior=cb.Normal()), (X, y), size=40)
    found = cb.predict(coreset, np.array([[-2.0], [0.0], [3.0]]))
    assert list(found.columns)[:3] == ["likeliest", "p[0]", "p_lower[0]"]
    every = np.column_stack([found[f"p[{k}]"] for k in range(3)])
    np.testing.assert_allclose(every.sum(axis=1), 1.0)
    exact = 1 / (1 + np.exp(-(np.array([-1.0, 0.5]) - 1.2 * np.array([[-2.0], [0.0], [3.0]]))))
    known = np.diff(np.column_stack([np.zeros(3), exact, np.ones(3)]), axis=1)
    np.testing.assert_allclose(every, known, atol=0.06)
    np.testing.assert_array_equal(found["likeliest"], known.argmax(axis=1))
    drawn = cb.sample(coreset)
    again = cb.predict(drawn, np.array([[-2.0], [0.0], [3.0]]))
    np.testing.assert_allclose(again["p[1]"], found["p[1]"], atol=0.02)


@pytest.mark.parametrize("scale", ["as it is", "exp", "exp(-)", "expit", "ordered"])
def test_variables_go_back_to_parameters(scale):
    from corebayes.models.variables import Variable, Variables

    entry = Variable("a", np.array([2, 0, 1]), scale, ("k",))
    theta = np.random.default_rng(0).normal(size=(7, 3))
    seen = Variables((entry,), {"k": (0, 1, 2)}).constrain(theta)["a"]
    np.testing.assert_allclose(entry.unscaled(seen), theta[:, [2, 0, 1]], rtol=1e-9)


def test_rows_that_miss_a_value_are_named():
    frame = pd.DataFrame({"x": np.linspace(-1.0, 1.0, 40)})
    frame["y"] = 2.0 * frame["x"] + np.random.default_rng(0).normal(size=40)
    model, rows = cb.from_formula("y ~ x", frame, family="gaussian")
    coreset = cb.build(model, rows, size=8, progress=False)
    with pytest.raises(ValueError, match=r"column 'x' is missing.* nothing can be predicted there"):
        cb.predict(coreset, pd.DataFrame({"x": [0.0, np.nan]}))
