"""Proposals by short runs of a local kernel on few rows, where no mixture covers the surrogate.

A move is `inner` steps of hit-and-run slice sampling (Neal 2003), reversible in s. What was drawn
ahead of a rejection that nobody foresaw is void, so chains go ahead by as many steps as are likely
to hold: at first a fifth of what is left, then what the spread of v says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from corebayes.deadline import check_time
from corebayes.samplers.kernel import HitAndRun
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian, Indices, Rng

AHEAD, LEAST_AHEAD = 5, 60
# Rejections that nobody foresaw, on the way ahead of a chain.
MOST_VOID = 0.2
# Passes that the steps that are left may be shared out over.
FEWEST_PASSES = 6
KERNEL = HitAndRun()


def frame_of(draws: Array, fit: Gaussian) -> Gaussian:
    """The scales of draws, or of the fit where there are too few draws for them."""
    if len(draws) <= 2 * draws.shape[1]:
        return fit
    try:
        covariance = np.atleast_2d(np.cov(draws, rowvar=False))
        return Gaussian(
            draws.mean(axis=0), np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        )
    except np.linalg.LinAlgError:
        return fit


@dataclass(eq=False)
class Paths:
    """Every state that was drawn, and which move led where."""

    rng: Rng
    posterior: Posterior
    fit: Gaussian
    inner: int
    starts: list[int]
    states: list[Array] = field(default_factory=list[Array])
    moved: dict[tuple[int, int, int], int] = field(default_factory=dict[tuple[int, int, int], int])
    name: str = "hit and run"

    @classmethod
    def begin(cls, rng: Rng, posterior: Posterior, fit: Gaussian, starts: Array) -> Paths:
        """From starts (chains, d); some d steps make one independent draw."""
        inner = int(np.clip(posterior.dim, 5, 40))
        states: list[Array] = list(starts)
        return cls(rng, posterior, fit, inner, list(range(len(states))), states)

    def propose(self, moves: Sequence[tuple[int, int, int]]) -> list[int]:
        """Where each (chain, step, state) is moved to: always to the same place."""
        new = [move for move in moves if move not in self.moved]
        if new:
            chains = self.draws(np.array([state for _, _, state in new]))
            with np.errstate(all="ignore"):
                for _ in range(self.inner):
                    check_time()
                    chains = KERNEL(self.rng, self.posterior, self.fit, chains)
            for place, move in enumerate(new):
                self.moved[move] = len(self.states)
                self.states.append(chains[place])
        return [self.moved[move] for move in moves]

    def draws(self, states: Indices) -> Array:
        chosen: list[Array] = [self.states[state] for state in states.tolist()]
        return np.stack(chosen)

    def reach(self, left: int, surprise: float | None) -> int:
        if surprise is None:
            return left if left <= LEAST_AHEAD else -(-left // AHEAD)
        # Of L steps ahead L² · surprise / 2 are void on average; a pass costs something, too.
        likely = int(MOST_VOID / max(surprise, 1e-9))
        return min(left, max(LEAST_AHEAD, likely, -(-left // FEWEST_PASSES)))
