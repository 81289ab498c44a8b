"""A coreset whose posterior lies elsewhere, at a spike perhaps, and what is beside it."""

import numpy as np

import corebayes as cb
from corebayes.build.missed import posterior_fit
from corebayes.build.wide_draws import seen_at_draws, width_of
from corebayes.compose.places import _own_place, how_far, place_of
from corebayes.problem import Problem
from corebayes.rows import open_rows


def _problem(num_rows=140):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(num_rows, 3)), np.ones(num_rows)])
    y = X @ [0.4, 0.0, -0.3, 0.5] + 1.4 * rng.standard_t(4, size=num_rows)
    rows = open_rows((X, y))
    return (X, y), Problem(cb.StudentTRegression().bind(rows), rows.check())


def _astray(problem):
    """Five rows, of which four lie on a plane."""
    points = problem.points(np.arange(5))
    return points.at(np.full(5, problem.data.num_rows / 5))


def test_a_reserve_is_matched_where_the_posterior_of_all_rows_lies():
    _, problem = _problem()
    model, points = problem.model, _astray(problem)
    everything = problem.points(np.arange(problem.data.num_rows))
    full = posterior_fit(model, everything.at(np.ones(everything.size)))
    own = posterior_fit(model, points)
    assert np.abs(np.linalg.solve(full.factor, own.mean - full.mean)).max() > 3.0
    seen = seen_at_draws(np.random.default_rng(0), problem, points, 70)
    assert seen is not None
    away = np.linalg.solve(full.factor, seen.space.location - full.mean)
    assert np.abs(away).max() < 0.1


def test_the_way_of_the_posterior_is_seen_from_the_reserve():
    data, problem = _problem()
    before = cb.build(cb.StudentTRegression(), data, size=30, seed=0)
    reserve = before.finest.points
    astray = _astray(problem)
    far, near = (how_far([before], before, one).furthest for one in (astray, reserve))
    assert near is not None and near < 0.5 and (far is None or far > 3.0)


def test_few_rows_are_matched_within_the_posterior_and_many_beyond_it():
    model = _problem()[1].model
    widths = [width_of(model, size) for size in (70, 84, 209, 210)]
    assert widths == [1.0, 2.0, 2.0, 3.0]


def test_how_wide_a_reserve_was_matched_is_kept(tmp_path):
    """Rows that match all there is are fewer than were asked for, and say nothing of that."""
    data, _ = _problem()
    first = cb.build(cb.StudentTRegression(), data, size=12, seed=0)
    assert first.provenance["reserve_width"] == 1.0  # of 140 rows no more than half
    first.save(tmp_path / "c.parquet")
    own, place = _own_place(cb.load(tmp_path / "c.parquet")), place_of(first, first.reserve)
    assert np.allclose(own.factor, place.factor)
    grown = cb.update(first, _problem(700)[0], seed=0)
    assert grown.provenance["reserve_width"] == 3.0
    wide, place = _own_place(grown), place_of(grown, grown.reserve)
    assert np.allclose(wide.factor, 3.0 * place.factor)
