"""The surrogate kernel on its own: exact for any surrogate, with few evaluations."""

import numpy as np
import pytest

from corebayes.exact.surrogate import SurrogateChains, TooManyPassesError

STATES = 6
TARGET = np.array([0.05, 0.1, 0.3, 0.25, 0.2, 0.1])
SURROGATE = np.array([0.3, 0.25, 0.05, 0.1, 0.1, 0.2])
VALUES = np.log(TARGET) - np.log(SURROGATE)


class Walk:
    """Metropolis steps of a random walk on a ring, reversible in the surrogate. A state's number
    is its place on the ring plus a multiple of six, so that each is met once."""

    name = "walk"

    def __init__(self, seed, chains, ahead):
        self.rng, self.ahead = np.random.default_rng(seed), ahead
        self.places = list(range(chains))
        self.starts = list(range(chains))
        self.moved = {}

    def propose(self, moves):
        for move in moves:
            if move not in self.moved:
                place = self.places[move[2]]
                other = (place + self.rng.choice([-1, 1])) % STATES
                if self.rng.random() < SURROGATE[other] / SURROGATE[place]:
                    place = other
                self.moved[move] = len(self.places)
                self.places.append(int(place))
        return [self.moved[move] for move in moves]

    def draws(self, states):
        return np.array([[self.places[state]] for state in states], dtype=float)

    def reach(self, left, surprise):
        return min(left, self.ahead)


def run(walk, steps, max_passes=10**6):
    passes = []

    def evaluate(states):
        passes.append(states.size)
        return VALUES[[walk.places[state] for state in states]]

    rng = np.random.default_rng(7)
    chains = SurrogateChains.over(rng, walk, evaluate, steps, max_passes).run()
    return chains, passes


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [1, 5])
def test_the_target_is_invariant_whatever_is_drawn_ahead(ahead):
    walk = Walk(1, 4, ahead)
    chains, passes = run(walk, 10_000)
    places = np.array(walk.places)[chains.states].ravel()
    shares = np.bincount(places, minlength=STATES) / places.size
    # Autocorrelation leaves some 4,000 effective draws.
    np.testing.assert_allclose(shares, TARGET, atol=0.03)
    assert len(passes) < 10_000 / ahead * 2.5


def test_a_state_is_evaluated_once_and_none_without_need():
    walk = Walk(2, 3, 1)
    _, passes = run(walk, 200)
    assert sum(passes) <= 3 + 3 * 200


def test_passes_are_limited():
    with pytest.raises(TooManyPassesError, match="steps in 3 passes"):
        run(Walk(3, 2, 1), 100, max_passes=3)
