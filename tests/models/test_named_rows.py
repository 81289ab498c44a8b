"""Models of one's own see every column of a frame by its name."""

import numpy as np
import pandas as pd
import pytest

import corebayes as cb


def survival(num_rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=num_rows)
    death = 3.0 * np.exp(0.5 * x) * rng.weibull(1.4, num_rows)
    leaves = rng.exponential(6.0, num_rows)
    return pd.DataFrame(
        {
            "note": ["text"] * num_rows,
            "missing": np.where(rng.random(num_rows) < 0.5, np.nan, 1.0),
            "event": (death <= leaves).astype(float),
            "age x": x,
            "time": np.minimum(death, leaves),
        }
    )


def weibull(draws, block):
    """θ = (intercept, slope, log shape); time is the target by its own name."""
    assert block.X.shape[1] == 1
    scale = draws[:, 0] + block["age x"][:, None] * draws[:, 1]
    logs = np.log(block.time)[:, None]
    z = np.exp(draws[:, 2]) * (logs - scale)
    return block.event[:, None] * (draws[:, 2] - logs + z) - np.exp(z)


def wide(draws):
    return -0.5 * np.sum(draws**2, axis=1) / 25.0


def model():
    return cb.CustomModel(weibull, wide, 3, names=["intercept", "slope", "log shape"])


@pytest.fixture(scope="module")
def coreset():
    return cb.build(model(), survival(), target="time", features=["age x"], size=20)


@pytest.mark.slow
def test_a_censored_weibull_with_wide_priors_builds_and_certifies(coreset, tmp_path):
    frame = survival()
    assert coreset.size == 20
    assert coreset.provenance["column_names"] == ["age x", "event"]
    certificate = cb.certify(coreset, frame, draws=400)
    assert certificate.certified
    drawn = cb.sample(coreset).posterior
    truth = {"intercept": np.log(3.0), "slope": 0.5, "log shape": np.log(1.4)}
    for name, value in truth.items():
        assert abs(float(drawn[name].mean()) - value) < 4.0 * float(drawn[name].std())
    coreset.save(tmp_path / "c.parquet")
    again = cb.load(tmp_path / "c.parquet", model=model())
    theta = np.array([[1.0, 0.4, 0.2]])
    np.testing.assert_array_equal(
        again.model.potentials(theta, again.rows), coreset.model.potentials(theta, coreset.rows)
    )


def test_files_have_the_same_columns(tmp_path):
    survival().to_parquet(tmp_path / "rows.parquet")
    how = {"target": "time", "features": ["age x"], "size": 20, "method": cb.Uniform()}
    first, other = (
        cb.build(model(), rows, **how) for rows in (survival(), tmp_path / "rows.parquet")
    )
    assert other.rows.fields.keys() == first.rows.fields.keys()
    for name, values in first.rows.fields.items():
        np.testing.assert_array_equal(other.rows.fields[name], values)
    theta = np.array([[1.0, 0.4, 0.2]])
    np.testing.assert_array_equal(
        other.model.potentials(theta, other.rows), first.model.potentials(theta, first.rows)
    )
    assert list(other.to_frame()) == ["row_id", "weight", "age x", "event", "time"]


def test_all_columns_are_features_when_none_are_named():
    def by_name(draws, block):
        return -np.abs(block.time[:, None] - block.event[:, None] * draws[:, 0])

    frame = survival()[["event", "age x", "time"]]
    one = cb.CustomModel(by_name, lambda draws: -0.5 * np.sum(draws**2, axis=1), 1)
    coreset = cb.build(one, frame, target="time", size=5, method=cb.Uniform())
    assert coreset.rows.X.shape == (5, 2)
    theta = np.array([[0.3]])
    expected = -np.abs(
        frame.time.to_numpy()[coreset.indices] - 0.3 * frame.event.to_numpy()[coreset.indices]
    )
    np.testing.assert_allclose(coreset.model.potentials(theta, coreset.rows)[:, 0], expected)


def test_a_column_that_is_not_there_is_a_sentence():
    def wrong(draws, block):
        return -np.abs(block.evnt[:, None] - draws[:, 0])

    one = cb.CustomModel(wrong, lambda draws: -0.5 * np.sum(draws**2, axis=1), 1)
    with pytest.raises(AttributeError, match=r"no column 'evnt'; they have 'X', 'y', 'age x'"):
        cb.build(one, survival(), target="time", features=["age x"], size=5)
