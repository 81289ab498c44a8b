"""How unlike others a row is, by hand and where a handful of rows differ from all the rest."""

import numpy as np
import pytest

from corebayes.scan.unlike import DOUBLINGS, FURTHEST, MOST_COLUMNS, NUM_SETS, Likeness
from corebayes.types import Block


def distances(found):
    return found**0.5**DOUBLINGS


def test_distances_are_to_the_nearest_of_the_set_that_is_furthest():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)) * [1.0, 30.0] + [5.0, -2.0], rng.exponential(size=40)
    likeness = Likeness.of(Block({"X": X[:25], "y": y[:25]}))
    columns = np.column_stack([X, y])
    scaled = columns / columns[:25].std(axis=0)
    sets = np.array_split(np.arange(25), NUM_SETS)
    apart = np.abs(scaled[:, None] - scaled[None, :25])
    whole = np.sqrt(np.sum(apart**2, axis=2))
    found = distances(likeness.unlikeness(Block({"X": X, "y": y})))
    assert found.shape == (40, likeness.width) == (40, 4)
    expected = np.max([whole[:, one].min(axis=1) for one in sets], axis=0)
    assert found[:, 0] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    expected = np.max([apart[:, one].min(axis=1) for one in sets], axis=0)
    assert found[:, 1:] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_few_rows_are_unlike_others_also_where_one_of_them_is_compared_with():
    rng = np.random.default_rng(2)
    x = rng.normal(size=2000)
    x[:20] = 9.0 + 0.1 * rng.normal(size=20)
    likeness = Likeness.of(Block({"x": np.r_[x[3], x[-255:]]}))
    found = likeness.unlikeness(Block({"x": x}))[:, 1]
    assert found[:20].min() * 16.0 > found[20:].sum()


def test_what_differs_from_a_constant_is_as_far_as_any():
    likeness = Likeness.of(Block({"mark": np.zeros(50), "x": np.tile([1.0, 2.0], 25)}))
    found = distances(likeness.unlikeness(Block({"mark": np.array([0.0, 1.0]), "x": np.ones(2)})))
    assert found[0] == pytest.approx(0.0)
    assert found[1, :2] == pytest.approx(FURTHEST, rel=1e-6)
    assert found[1, 2] == 0.0


@pytest.mark.parametrize("dim", [3, MOST_COLUMNS + 30])
def test_few_rows_elsewhere_outweigh_all_others(dim):
    """Thirty rows six deviations off in no column alone, among twenty thousand."""
    rng = np.random.default_rng(dim)
    X = rng.normal(size=(20_000, dim))
    X[100:130] = np.where(rng.random((30, dim)) < 0.5, -1.0, 1.0) * 6.0 / np.sqrt(dim / 3.0)
    likeness = Likeness.of(Block({"X": X[-128:]}))
    found = likeness.unlikeness(Block({"X": X}))[:, 0]
    others = np.delete(found, np.arange(100, 130))
    if dim <= MOST_COLUMNS:
        assert found[100:130].min() * 64.0 > others.sum()
    else:
        assert likeness.width == 1 + MOST_COLUMNS
        assert np.median(found[100:130]) > np.median(others)


def test_rows_without_numbers_are_like_no_others():
    assert Likeness.of(Block({"name": np.array(["a", "b"])})) is None
    assert Likeness.of(Block({"x": np.ones(1)})) is None
