"""Mixed regressions from formulas: the density is the one that the formula says."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from scipy import stats

import corebayes as cb
from corebayes.adapters.formula import from_formula

NUM_ROWS = 240


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    rng = np.random.default_rng(8)
    table = pandas.DataFrame(
        {
            "x": rng.normal(size=NUM_ROWS),
            "hour": rng.uniform(0.0, 2.0, size=NUM_ROWS),
            "carrier": rng.choice(["UA", "AA", "B6"], p=[0.6, 0.3, 0.1], size=NUM_ROWS),
            "gate": rng.integers(3, 7, size=NUM_ROWS),
        }
    )
    eta = 0.4 + table["x"] + 0.8 * (table["carrier"] == "AA") - 0.3 * table["hour"]
    table["late"] = (rng.uniform(size=NUM_ROWS) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
    table["delay"] = 7.0 * eta + 5.0 * rng.normal(size=NUM_ROWS)
    table["bags"] = rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(0.5 * eta)))
    return table


def values(model, theta) -> dict[str, float]:
    """θ by the names of its parameters."""
    return dict(zip(model.parameter_names, theta, strict=True))


def bound(formula, frame, **options):
    model, data = from_formula(formula, frame, **options)
    return model.bind(data), data


def compare(model, data, frame, predictor, density):
    """log π_0 + Σ f + base against what is written out by the names of the parameters."""
    rows = data.take(np.arange(NUM_ROWS))
    draws = 0.5 * np.random.default_rng(1).normal(size=(3, model.dim))
    totals = model.log_prior(draws) + model.sum_potentials(draws, rows) + model.log_base(rows).sum()
    for theta, total in zip(draws, totals, strict=True):
        named = values(model, theta)
        prior, likelihood = density(named, predictor(named))
        assert total == pytest.approx(prior + likelihood, rel=1e-10)


def test_two_terms_with_slopes(frame):
    model, data = bound(
        "late ~ x + (1 + hour | carrier) + (1 | gate)",
        frame,
        family="bernoulli",
        prior=cb.Normal(0.5, 2.0),
        group_sd={"hour|carrier": cb.HalfStudentT(3.0, 0.7)},
    )

    def predictor(named):
        eta = named["Intercept"] + named["x"] * frame["x"]
        eta += frame["carrier"].map(lambda c: named[f"1|carrier[{c}]"])
        eta += frame["hour"] * frame["carrier"].map(lambda c: named[f"hour|carrier[{c}]"])
        return eta + frame["gate"].map(lambda g: named[f"1|gate[{g}]"])

    def density(named, eta):
        prior = stats.norm(0.5, 2.0).logpdf([named["Intercept"], named["x"]]).sum()
        for effect, labels in (("1|carrier", "AA B6 UA"), ("hour|carrier", "AA B6 UA"),
                               ("1|gate", "3 4 5 6")):  # fmt: skip
            u = named[f"log {effect}_sigma"]
            if effect == "hour|carrier":
                prior += np.log(2.0) + stats.t(3.0, scale=0.7).logpdf(np.exp(u)) + u
            else:
                prior += stats.halfnorm.logpdf(np.exp(u)) + u
            effects = [named[f"{effect}[{label}]"] for label in labels.split()]
            prior += stats.norm(0.0, np.exp(u)).logpdf(effects).sum()
        return prior, stats.bernoulli(1.0 / (1.0 + np.exp(-eta))).logpmf(frame["late"]).sum()

    compare(model, data, frame, predictor, density)


def test_the_noise_of_a_mixed_linear_regression_is_learned(frame):
    prior = cb.Normal()
    model, data = bound("delay ~ x + (0 + hour | gate)", frame, family="linear", prior=prior)
    digits = float(f"{np.std(frame['delay']):.3g}")
    assert model.learned == {}
    assert [one.prior for one in model.constants] == [cb.HalfStudentT(4.0, digits)]
    width = float(f"{np.std(frame['delay']) / np.std(frame['hour']):.2g}")
    assert model.terms[0].scales == (cb.HalfNormal(width),)
    assert data.column_names == ("Intercept", "x", "hour", "gate")

    def predictor(named):
        slopes = frame["gate"].map(lambda g: named[f"hour|gate[{g}]"])
        return named["Intercept"] + named["x"] * frame["x"] + frame["hour"] * slopes

    def density(named, eta):
        u, v = named["log noise_sd"], named["log hour|gate_sigma"]
        prior = stats.norm.logpdf([named["Intercept"], named["x"]]).sum()
        prior += np.log(2.0) + stats.t(4.0, scale=digits).logpdf(np.exp(u)) + u
        prior += stats.halfnorm(scale=width).logpdf(np.exp(v)) + v
        effects = [named[f"hour|gate[{g}]"] for g in (3, 4, 5, 6)]
        prior += stats.norm(0.0, np.exp(v)).logpdf(effects).sum()
        return prior, stats.norm(eta, np.exp(u)).logpdf(frame["delay"]).sum()

    compare(model, data, frame, predictor, density)


def test_default_priors_of_effects_follow_the_units_of_the_columns(frame):
    formula = "late ~ x + (1 + hour | carrier) + (1 | gate)"
    plain = from_formula(formula, frame, family="bernoulli")[0]
    small = frame.assign(hour=1e-6 * frame["hour"])
    other = from_formula(formula, small, family="bernoulli")[0]
    for one, unit in ((plain, 1.0), (other, 1e-6)):
        width = float(f"{1.0 / (unit * np.std(frame['hour'])):.2g}")
        assert one.terms[0].scales == (cb.HalfNormal(1.0), cb.HalfNormal(width))
    given = {"hour|carrier": cb.HalfNormal(3.0)}
    named = from_formula(formula, small, family="bernoulli", group_sd=given)[0]
    assert named.terms[0].scales == (cb.HalfNormal(1.0), cb.HalfNormal(3.0))
    assert [term.by_default for term in named.terms] == [False, True]


def test_what_is_said_is_not_learned(frame):
    known = from_formula("delay ~ x + (1 | gate)", frame, family="gaussian", noise_sd=3.0)[0]
    assert known.learned == {} and known.family.noise_sd == 3.0
    own = from_formula(
        "delay ~ x + (1 | gate)", frame, family=cb.LinearRegression(noise_sd=1.0, prior=cb.Normal())
    )[0]
    assert own.learned == {}
    plain = from_formula("delay ~ x", frame, family="linear")[0]
    assert isinstance(plain, cb.LinearRegression)
    assert isinstance(from_formula("late ~ x", frame, family="binomial")[0], cb.LogisticRegression)


@pytest.mark.parametrize(
    ("family", "target", "learned"),
    [
        ("gaussian", "delay", ["log noise_sd"]),
        ("t", "delay", ["log scale", "log df"]),
        ("negativebinomial", "bags", ["log dispersion"]),
    ],
)
def test_names_of_bambi_and_r_learn_their_constant(frame, family, target, learned):
    model = bound(f"{target} ~ x", frame, family=family)[0]
    assert model.parameter_names == ("Intercept", "x", *learned)


def test_a_saved_coreset_has_the_model_and_takes_the_frame(frame, tmp_path):
    model, data = bound("late ~ x + (1 + hour | carrier)", frame)
    numbers = np.arange(0, NUM_ROWS, 5)
    coreset = cb.Coreset(
        indices=numbers,
        weights=np.full(numbers.size, 5.0),
        rows=data.take(numbers),
        model=model,
        num_rows=NUM_ROWS,
        total_count=float(NUM_ROWS),
        reason="every fifth row",
        trace=(),
        provenance={"column_names": list(data.column_names), "design": data.design},
    )
    coreset.save(tmp_path / "coreset.parquet")
    loaded = cb.load(tmp_path / "coreset.parquet")
    assert loaded.model.parameter_names == model.parameter_names
    draws = np.random.default_rng(0).normal(size=(4, model.dim))
    np.testing.assert_array_equal(
        loaded.model.potentials(draws, loaded.rows), model.potentials(draws, coreset.rows)
    )
    np.testing.assert_array_equal(loaded.model.log_prior(draws), model.log_prior(draws))
    from corebayes.formula.rows import as_built

    again = as_built(loaded, frame, target=None, features=None, counts=None)
    np.testing.assert_array_equal(again.take(numbers).X, coreset.rows.X)
    strange = frame.assign(carrier="ZZ")
    with pytest.raises(ValueError, match="row 0, column 'carrier': the group 'ZZ'"):
        as_built(loaded, strange, target=None, features=None, counts=None)


@pytest.mark.parametrize(
    "change",
    [
        {"values": [[1.0, 0.0, 2.0]]},
        {"values": [[0.0, 1.0]]},
        {"values": [[0.0, 1.0, float("nan")]]},
        {"columns": ["Intercept", "x", "hour", "other"]},
        {"terms": []},
        {"learned": {"kind": "os"}},
    ],
)
def test_a_strangers_model_is_refused(frame, change):
    model = bound("late ~ x + (1 + hour | carrier)", frame)[0]
    config = json.loads(json.dumps(model.config())) | change
    with pytest.raises((ValueError, TypeError)):
        cb.models.from_config("MixedRegression", config)


def test_what_is_wrong_is_named(frame):
    with pytest.raises(ValueError, match=r"'1\|gate', which is no effect .* '1\|carrier'"):
        from_formula("late ~ x + (1|carrier)", frame, group_sd={"1|gate": cb.HalfNormal()})
    with pytest.raises(ValueError, match="group_sd is for formulas with group terms"):
        from_formula("late ~ x", frame, group_sd=cb.HalfNormal())
    with pytest.raises(ValueError, match="no family 'gausian'; did you mean 'gaussian'"):
        from_formula("late ~ x", frame, family="gausian")
