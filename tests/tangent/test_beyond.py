"""What the first degree that a space does not see adds to KL."""

from __future__ import annotations

import numpy as np
import pytest

import corebayes as cb
from corebayes.tangent.geometry import element_of, half_square
from corebayes.tangent.hermite import Hermite
from corebayes.types import Block, Gaussian, Points
from tests.problems import coins


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 0.5, (6000, 6)) - 0.5
    y = coins(rng, X @ np.linspace(-1.0, 1.0, 6)).astype(float)
    model = cb.LogisticRegression(prior=cb.Normal()).with_names(tuple("abcdef"))
    return model, Block({"X": X, "y": y})


def points(rows: Block, number: int, seed: int):
    numbers = np.random.default_rng(seed).choice(len(rows), number, replace=False)
    chosen = Points(numbers, rows.take(numbers))
    return chosen.weighted(np.full(number, len(rows) / number))


def test_of_random_rows_it_is_what_the_next_degree_adds(problem):
    model, rows = problem
    at = Gaussian(np.linspace(-1.0, 1.0, 6), 0.3 * np.eye(6))
    two, three = Hermite(order=2).at(model, at), Hermite(order=3).at(model, at)
    said, found = [], []
    for seed in range(20):
        some = points(rows, 60, seed)
        misses = [
            half_square(space.total(rows).element - element_of(space, some))
            for space in (two, three)
        ]
        found.append(misses[1] - misses[0])
        said.append(two.beyond(some))
    assert 0.7 < np.mean(said) / np.mean(found) < 1.4


def test_all_rows_miss_nothing_and_high_orders_are_not_asked(problem):
    model, rows = problem
    at = Gaussian(np.zeros(6), 0.3 * np.eye(6))
    everything = points(rows, len(rows), 0)
    assert Hermite(order=2).at(model, at).beyond(everything) == 0.0
    assert Hermite(order=5).at(model, at).beyond(points(rows, 60, 0)) == 0.0


def test_a_build_says_what_a_certificate_finds():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40_000, 24))
    y = coins(rng, X @ rng.normal(size=24) / 5.0).astype(float)
    coreset = cb.build(cb.LogisticRegression(prior=cb.Normal()), (X, y), size=325)
    own, kl = coreset.trace[-1]["kl"], cb.certify(coreset, (X, y), draws=1000).reverse_kl
    assert (kl.value - 2.0 * kl.standard_error) / 3.0 < own < 3.0 * (kl.value + kl.standard_error)
