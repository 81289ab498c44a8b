"""Moves by a local kernel: reversible, the same whenever they are asked for, and soon one again."""

import numpy as np
import pytest
from scipy import stats

from corebayes.exact.paths import Local, Paths
from corebayes.samplers.proposal import Component, Proposal
from corebayes.types import Gaussian

FRAME = Gaussian(np.array([1.0]), np.array([[0.6]]))
# Off the middle and too narrow: few of its candidates are taken.
POOR = Proposal((Component(Gaussian(np.array([0.2]), np.array([[0.3]])), 1.0, 4.0),))


class LogGamma:
    """log s(θ) = 3 θ − e^θ: θ is the logarithm of a Gamma(3, 1), skewed to the left."""

    dim = 1

    def log_density(self, draws):
        return 3.0 * draws[:, 0] - np.exp(draws[:, 0])

    finite_log_density = log_density


def paths(seed, starts, meeting):
    return Paths.begin(np.random.default_rng(seed), LogGamma(), Local(FRAME, meeting), starts)


def small_steps(rng, posterior, fit, chains):
    """Metropolis, which forgets less than slices do of one parameter."""
    moved = chains + 0.3 * rng.standard_normal(chains.shape)
    gain = posterior.log_density(moved) - posterior.log_density(chains)
    return np.where((np.log(rng.random(len(chains))) < gain)[:, None], moved, chains)


def asymmetry(starts, ends):
    """The p-value that as many moves lead from each tenth of s to another as back."""
    tenths = np.quantile(starts, np.linspace(0.0, 1.0, 11)[1:-1])
    counts = np.zeros((10, 10))
    np.add.at(counts, (np.searchsorted(tenths, starts), np.searchsorted(tenths, ends)), 1.0)
    there, back = np.triu_indices(10, 1)
    both = counts[there, back] + counts[back, there]
    known = both > 20
    squares = np.square(counts[there, back] - counts[back, there])[known] / both[known]
    return stats.chi2.sf(squares.sum(), known.sum())


# With q after hit and run alone, which is not reversible, p is below 1e-5.
@pytest.mark.parametrize("meeting", [None, POOR])
def test_a_move_is_reversible(meeting, monkeypatch):
    monkeypatch.setattr("corebayes.exact.paths.KERNEL", small_steps)
    starts = np.log(np.random.default_rng(0).gamma(3.0, size=(50_000, 1)))
    walk = paths(1, starts, meeting)
    walk.inner = 1
    ends = walk.draws(np.array(walk.propose([(k, 0, k) for k in walk.starts])))
    assert asymmetry(starts[:, 0], ends[:, 0]) > 1e-3
    # And s is left as it is: the mean of a log Gamma(3) is ψ(3).
    assert ends.mean() == pytest.approx(1.5 - np.euler_gamma, abs=4.0 * 0.63 / np.sqrt(5e4))


def test_paths_that_parted_meet_again():
    walk = paths(2, np.array([[0.5], [2.0]]), POOR)
    one, other = 0, 1
    met = None
    for step in range(200):
        # Both are states of one chain, as before and after a rejection.
        one, other = walk.propose([(0, step, one), (0, step, other)])
        if met is None and one == other:
            met = step
        assert met is None or one == other
    assert met is not None
    assert walk.meetings is not None
    assert walk.meetings.rate is not None
    assert 0.02 < walk.meetings.rate < 0.6
    assert walk.propose([(0, 7, 0)]) == walk.propose([(0, 7, 0)])


def test_other_chains_never_meet():
    walk = paths(3, np.array([[0.5], [0.5]]), POOR)
    states = [0, 1]
    for step in range(50):
        states = walk.propose([(chain, step, state) for chain, state in enumerate(states)])
        assert states[0] != states[1]


def test_all_steps_ahead_only_where_paths_meet():
    walk, alone = paths(4, np.zeros((1, 1)), POOR), paths(4, np.zeros((1, 1)), None)
    state = 0
    for step in range(150):
        (state,) = walk.propose([(0, step, state)])
    assert walk.reach(1000, 1e-3) == 1000
    assert alone.reach(1000, 1e-3) == 300
    # Rejections by the dozen before paths could meet.
    assert walk.reach(1000, 0.2) < 200
