"""The numbers of a report, against closed forms."""

import numpy as np
import pytest

import corebayes as cb
from corebayes.figures.plots import smooth_density
from corebayes.report import cost as cost_module
from corebayes.report.cost import duration, gradient_costs
from corebayes.report.curves import coreset_curve, traced_curve, uniform_curve
from corebayes.report.draws import importance_shares
from corebayes.report.landscape import landscape
from corebayes.rows import open_rows
from corebayes.scan.inline import Inline
from corebayes.scan.passes import Pass, Shard
from corebayes.scan.query import Totals
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.watch.progress import Watched
from tests.coresets import exact_kl, linear, logistic, near, posteriors, weighted
from tests.opened import table


def test_the_correction_leads_to_the_full_posterior():
    model, data = linear(num_rows=80)
    coreset = near(model, data, spread=0.3)
    ours, full = posteriors(coreset, data)
    found = cb.report(coreset, data, draws=4000).findings
    sd = np.sqrt(np.square(ours.factor).sum(axis=1))
    expected = (full.mean - ours.mean) / sd
    assert np.max(np.abs(expected)) > 0.1
    shifts = [parameter.shift for parameter in found.parameters]
    assert np.allclose(shifts, expected, atol=0.1)
    full_sd = np.sqrt(np.square(full.factor).sum(axis=1))
    assert np.allclose([p.corrected[1] for p in found.parameters], full_sd, rtol=0.06)
    assert found.measured.shares.sum() == pytest.approx(1.0)
    assert found.drawn.stats is None and found.drawn.num_gradients == 0.0


def test_shares_are_safe_for_huge_ratios():
    shares = importance_shares(np.array([1e4, 1e4 - np.log(3.0), -1e4]))
    assert np.allclose(shares, [0.75, 0.25, 0.0])


def test_a_weighted_density_has_the_weighted_mean():
    rng = np.random.default_rng(0)
    values, grid = rng.normal(size=300), np.linspace(-8, 8, 2000)
    shares = np.exp(values)
    shares /= shares.sum()
    for weights, mean in ((None, values.mean()), (shares, shares @ values)):
        density = smooth_density(values, grid, weights)
        assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
        assert np.trapezoid(density * grid, grid) == pytest.approx(mean, abs=1e-6)


def test_curves_are_kl_by_size():
    model, data = linear(num_rows=80)
    coreset = cb.build(model, data, size=9, seed=0)
    full = posteriors(coreset, data)[1]
    ours = coreset_curve(coreset, data, full, [3, 6, 40], seed=0)
    assert ours.sizes == [3, 6, coreset.size]
    # Conjugate posteriors are Gaussian, so the Laplace fits are exact.
    assert ours.kls[-1] == pytest.approx(exact_kl(coreset, data)["reverse"], rel=1e-6, abs=1e-12)
    assert ours.kls[0] > ours.kls[1] > ours.kls[2]
    uniform = uniform_curve(model, data, full, seed=0)
    assert uniform.sizes == [10, 20] and min(uniform.kls) > ours.kls[-1]


def test_uniform_subsamples_honour_counts():
    """Rows that count twice are the same as rows that are there twice."""
    model, data = linear(num_rows=48)
    rows = data.take(np.arange(48))
    counted = open_rows((rows.X, rows.y), counts=np.full(48, 2.0))
    doubled = open_rows((np.vstack([rows.X] * 2), np.concatenate([rows.y] * 2)))
    fulls = [
        cb.diagnostics.Gaussian(*posteriors(weighted(model, d, [0], 1.0), d)[1])
        for d in (counted, doubled)
    ]
    assert np.allclose(fulls[0].mean, fulls[1].mean)
    curve = uniform_curve(model, counted, fulls[0], seed=0, sizes=[12])
    # Of 12 rows at weight 8 each; without the counts it would be 4.
    expected = []
    for trial in range(5):
        rng = np.random.default_rng([0, 12, trial])
        part = np.sort(rng.choice(48, 12, replace=False))
        expected.append(exact_kl(weighted(model, doubled, part, 8.0), doubled)["reverse"])
    assert curve.kls[0] == pytest.approx(np.median(expected))


def test_a_trace_gives_the_last_kl_of_each_size():
    model, data = linear()
    steps = [(1, 9.0), (2, 5.0), (2, 4.0), (3, None), (3, 1.0)]
    trace = tuple({"size": size, "kl": kl} for size, kl in steps)
    curve = traced_curve(weighted(model, data, [1], 1.0, trace=trace))
    assert curve.sizes == [1, 2, 3] and curve.kls == [9.0, 4.0, 1.0]


def test_chosen_rows_lie_where_they_are_in_the_data():
    model, data = logistic(num_rows=200)
    coreset = weighted(model, data, [3, 50, 199], [1.0, 2.0, 3.0])
    found = landscape(np.random.default_rng(0), coreset, data)
    assert np.allclose(found.chosen, found.some[[3, 50, 199]])
    # The variances along the axes are the two largest eigenvalues of the correlation matrix.
    values = np.linalg.eigvalsh(np.corrcoef(data.take(np.arange(200)).X.T))
    assert np.allclose(found.some.var(axis=0), values[:-3:-1])
    assert f"{100 * values[-1] / 3:.0f} %" in found.axes[0]


def test_one_column_is_shown_against_the_target():
    X = np.arange(10.0)[:, None]
    data = open_rows((X, np.tile([0.0, 1.0], 5)))
    model = cb.LogisticRegression(intercept=True, prior=cb.Normal()).bind(data)
    found = landscape(np.random.default_rng(0), weighted(model, data, [3, 4], 5.0), data)
    assert np.array_equal(found.chosen, [[3.0, 1.0], [4.0, 0.0]])
    constant = open_rows((np.ones((10, 1)), np.tile([0.0, 1.0], 5)))
    other = weighted(cb.LogisticRegression(prior=cb.Normal()).bind(constant), constant, [3], 5.0)
    assert landscape(np.random.default_rng(0), other, constant) is None


def test_cost_of_all_rows_is_scaled_from_some(monkeypatch):
    model, data = logistic(num_rows=1000)
    monkeypatch.setattr(cost_module, "MEASURED_ROWS", 100)
    monkeypatch.setattr(cost_module, "gradient_seconds", lambda _, rows, *__, **___: len(rows))
    cost = gradient_costs(weighted(model, data, [1, 2], 1.0), data, np.zeros(3))
    assert (cost.coreset_seconds, cost.full_seconds, cost.num_measured) == (2, 1000, 100)


def test_durations_read_well():
    seconds = [3e-6, 0.0123, 0.2803, 61.0, 600.0, 5e4, 1e6]
    assert [duration(s) for s in seconds] == [
        "3 µs",
        "12.3 ms",
        "280 ms",
        "61.0 s",
        "10.0 min",
        "13.9 hours",
        "11.6 days",
    ]


def test_a_watched_pass_gives_the_same_answers_and_says_how_far_it_is():
    model, data = logistic(num_rows=200)
    query = Totals(MonteCarloSpace(model, np.random.default_rng(0).normal(size=(5, 3))))
    work, shards = Pass(query, table(data), 64), [Shard(0, 70, None), Shard(70, 200, None)]
    seen = []
    plain = [answer.total for answer, _ in Inline().map(work, shards)]
    watched = Watched(Inline(), lambda *now: seen.append(now)).map(work, shards)
    assert np.array_equal([answer.total for answer, _ in watched], plain)
    assert seen == [(0, 200), (70, 200), (200, 200)]
