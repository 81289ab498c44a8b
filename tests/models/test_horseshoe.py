"""The regularised horseshoe: its density, its derivatives, and how it enters a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import corebayes as cb
from corebayes.models.priors.shrinkage import LOWEST, HorseshoePrior

UNEQUAL = cb.Horseshoe(global_scale=0.3, slab_scale=1.7, slab_df=5.0, global_df=2.0, local_df=1.0)


def part(horseshoe: cb.Horseshoe = UNEQUAL) -> HorseshoePrior:
    return HorseshoePrior(horseshoe, np.array([0, 2, 3]), np.array([1.0, 0.2, 7.0]), 1, 4)


def by_quadrature(beta: float, unit: float, tau: float, slab: float, df: float) -> float:
    """log ∫ N(β; 0, unit²/(1/(τλ)² + 1/c²)) t⁺(λ) dλ, in log λ, λ a tenth at least."""

    u, step = np.linspace(-30.0, 30.0, 20_001, retstep=True)
    lam = np.exp(u)
    sd = unit / np.sqrt(1.0 / (tau * np.maximum(lam, np.exp(LOWEST))) ** 2 + 1.0 / slab)
    values = stats.norm.pdf(beta, 0.0, sd) * 2.0 * stats.t.pdf(lam, df) * lam
    return float(np.log(step * values.sum()))


@pytest.mark.parametrize(
    ("df", "tau", "slab"),
    [
        (1.0, 0.01, 9.0),
        (3.0, 0.4, 0.3),
        (1.0, 5.0, 0.3),
        *(
            pytest.param(df, tau, slab, marks=pytest.mark.slow)
            for df, tau in ((1.0, 0.01), (1.0, 0.4), (3.0, 0.01), (3.0, 5.0))
            for slab in (0.3, 9.0)
        ),
    ],
)
def test_density_is_the_integral_over_local_scales(df: float, tau: float, slab: float) -> None:
    prior = part(cb.Horseshoe(local_df=df, global_scale=0.3, slab_scale=1.7, slab_df=5.0))
    theta = np.array([0.03, np.log(tau), -0.4, 6.0, np.log(slab)])
    wanted = sum(
        by_quadrature(theta[place], unit, tau, slab, df)
        for place, unit in zip((0, 2, 3), (1.0, 0.2, 7.0), strict=True)
    )
    wanted += float(stats.halfcauchy.logpdf(tau, scale=0.3)) + np.log(tau)
    wanted += float(stats.invgamma.logpdf(slab, 2.5, scale=2.5 * 1.7**2)) + np.log(slab)
    assert prior.log_density(theta[None])[0] == pytest.approx(wanted, abs=0.02)


def test_derivatives_are_those_of_the_density() -> None:
    prior = part()
    theta = np.array([0.4, -0.7, -0.05, 3.0, 0.6])
    gradient, hessian = np.zeros(5), np.zeros((5, 5))
    prior.add_gradient(theta, gradient)
    prior.add_hessian(theta, hessian)
    h = 1e-5
    for place in range(5):
        step = h * np.eye(5)[place]
        up, down = prior.log_density(np.array([theta + step, theta - step]))
        assert gradient[place] == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-7)
        ahead, behind = np.zeros(5), np.zeros(5)
        prior.add_gradient(theta + step, ahead)
        prior.add_gradient(theta - step, behind)
        np.testing.assert_allclose(hessian[place], (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-6)


def test_averages_are_bounds_of_expectations() -> None:
    """Below the mean over many draws, close to it where coefficients vary little; and the slopes
    of the bound itself, by differences."""
    prior = part()
    theta = np.array([0.4, np.log(0.1), -0.05, 3.0, 0.6])
    for share, gap in ((1.0, 2.0), (0.05, 0.2)):
        deviations = share * np.array([0.5, 0.2, 9.0])
        jet = prior.averaged(theta, deviations)
        z = np.random.default_rng(3).standard_normal((20_000, 3))
        x = (theta[prior.places] + deviations * z) / prior.units
        drawn = prior.jet(x, theta[1], theta[4]).value - np.log(prior.units)
        above = drawn.mean(axis=0) - jet.value
        assert np.all(above > -4.0 * drawn.std(axis=0) / np.sqrt(len(z)))
        assert np.all(above < gap)
        h = 1e-5
        for number, place in enumerate(prior.places):
            moved = [theta + sign * h * np.eye(5)[place] for sign in (1.0, -1.0)]
            up, down = (prior.averaged(at, deviations) for at in moved)
            slope = (up.value[number] - down.value[number]) / (2 * h)
            assert jet.first[number, 0] == pytest.approx(slope, rel=1e-6)
        moved = [theta + sign * h * np.eye(5)[1] for sign in (1.0, -1.0)]
        up, down = (prior.averaged(at, deviations).first for at in moved)
        bend = jet.second[:, 1, :2]
        np.testing.assert_allclose(bend, ((up - down) / (2 * h))[:, :2], rtol=1e-5)


def test_draws_have_the_density() -> None:
    """A share of the prior's draws below a number, and the same by the density."""
    prior, rng = part(), np.random.default_rng(0)
    draws = np.empty((40_000, 5))
    prior.draw(rng, draws)
    tau, slab = np.exp(draws[:, 1]), np.exp(draws[:, 4])
    assert stats.kstest(tau / 0.3, lambda v: 2.0 * stats.t.cdf(v, 2.0) - 1.0).pvalue > 1e-3
    assert stats.kstest(slab, stats.invgamma(2.5, scale=2.5 * 1.7**2).cdf).pvalue > 1e-3
    # E of the score is zero, where the density is smooth: in τ and c.
    scores = np.zeros((4000, 5))
    for row, theta in zip(scores, draws, strict=False):
        prior.add_gradient(theta, row)
    for place in (1, 4):
        error = scores[:, place].std() / np.sqrt(len(scores))
        assert abs(scores[:, place].mean()) < 4.0 * error


def rows(seed: int = 0, num_rows: int = 800, dim: int = 8) -> tuple[Any, np.ndarray]:
    import pandas

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(num_rows, dim)) * 10.0 ** rng.integers(-2, 3, dim)
    beta = np.zeros(dim)
    beta[:2] = [2.0, -1.0]
    y = 3.0 + X / X.std(axis=0) @ beta + rng.normal(size=num_rows)
    names = [f"x{k}" for k in range(dim)]
    return pandas.DataFrame(X, columns=names).assign(y=y), beta / X.std(axis=0)


@pytest.mark.slow
def test_a_model_says_it_and_keeps_it(tmp_path: Any) -> None:
    frame, beta = rows()
    model = cb.LinearRegression(prior=cb.Horseshoe(num_relevant=2), intercept=True)
    coreset = cb.build(model, frame, target="y", size=60, seed=0, progress=False)
    said = coreset.model.statement()
    # 2 of 8 in 800 rows: 2/6/√800
    assert "HalfStudentT(1, 0.0118)" in said
    assert "horseshoe_tau" in said
    assert "intercept" in said.split("Horseshoe")[-1]
    assert coreset.model.parameter_names[-2:] == ("log horseshoe_tau", "log horseshoe_slab")
    coreset.save(tmp_path / "c.parquet")
    again = cb.load(tmp_path / "c.parquet")
    theta = np.random.default_rng(1).normal(size=(3, coreset.model.dim))
    np.testing.assert_array_equal(again.model.log_prior(theta), coreset.model.log_prior(theta))
    assert again.model.statement() == said
    found = cb.sample(coreset, draws=500, chains=4, seed=0, progress=False)
    assert int(found.sample_stats.diverging.sum()) == 0
    units = 1.0 / frame.drop(columns="y").std().to_numpy()
    means = np.array([float(found.posterior[f"x{k}"].mean()) for k in range(8)])
    assert np.all(np.abs(means - beta)[:2] < 0.15 * units[:2])
    # Least squares misses the zeros by a thirtieth each; the horseshoe by less.
    X = np.column_stack([frame.drop(columns="y").to_numpy(), np.ones(len(frame))])
    plain = np.linalg.lstsq(X, frame["y"].to_numpy())[0][:8]
    assert np.abs(means[2:] / units[2:]).sum() < 0.6 * np.abs(plain[2:] / units[2:]).sum()
    assert cb.certify(coreset, frame, seed=1).certified


def test_horseshoes_by_name_share_their_scales_where_they_are_equal() -> None:
    frame, _ = rows(1)
    one, other = cb.Horseshoe(global_scale=0.1), cb.Horseshoe(global_scale=0.2, scaled=False)
    prior = {"x0": one, "x3": other, "x5": cb.Horseshoe(global_scale=0.1)}
    model = cb.LinearRegression(prior=prior, intercept=True).bind(cb.open(frame, target="y"))
    first, second = model.horseshoes
    assert (first.places.tolist(), second.places.tolist()) == ([0, 5], [3])
    assert second.units.tolist() == [1.0]
    spread = frame[["x0", "x5"]].std(ddof=0).to_numpy()
    np.testing.assert_allclose(first.units, frame["y"].std(ddof=0) / spread, rtol=5e-3)
    assert model.parameter_names[-4:] == (
        "log horseshoe_tau",
        "log horseshoe_slab",
        "log horseshoe_tau_2",
        "log horseshoe_slab_2",
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", ["logistic", "linear"])
def test_other_libraries_have_the_same_density(family: str) -> None:
    """Every export compares its density with ours before it is handed over."""
    frame, _ = rows(3, 200, 4)
    model: Any = cb.LinearRegression(prior={"x1": UNEQUAL, "x2": UNEQUAL}, intercept=True)
    if family == "logistic":
        frame["y"] = (frame["y"] > frame["y"].mean()) * 1.0
        model = cb.LogisticRegression(prior=cb.Horseshoe(global_scale=0.2), intercept=True)
    coreset = cb.build(model, frame, target="y", size=20, seed=0, progress=False)
    assert cb.to_numpyro(coreset) is not None
    assert "horseshoe_tau" in [one.name for one in cb.to_pymc(coreset).free_RVs]
    program = cb.to_stan(coreset)
    assert "log_sum_exp(log_weight_1" in str(program)


def test_a_horseshoe_on_the_command_line() -> None:
    from corebayes.cli.priors import given_prior

    assert given_prior(["horseshoe(0.05)"], None) == cb.Horseshoe(global_scale=0.05)
    found = given_prior(["a=horseshoe", "b=normal(0, 1)"], None)
    assert found["a"] == cb.Horseshoe()


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="slab_scale must be positive"):
        cb.Horseshoe(slab_scale=0.0)
    with pytest.raises(ValueError, match="give one of them"):
        cb.Horseshoe(global_scale=0.1, num_relevant=3)
    frame, _ = rows(2)
    model = cb.LinearRegression(prior=cb.Horseshoe(num_relevant=8), intercept=True)
    with pytest.raises(ValueError, match="below the 8 coefficients"):
        model.bind(cb.open(frame, target="y"))
