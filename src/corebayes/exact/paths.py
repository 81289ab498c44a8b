"""Proposals by short runs of a local kernel on few rows, where no mixture covers the surrogate.

A move is `inner` steps of hit-and-run slice sampling (Neal 2003), one step of independence
Metropolis from a mixture q, and as many steps of hit and run again: a palindrome of kernels that
are reversible in s, and so reversible itself. Candidates of q and their uniforms belong to a chain
and step, whatever state it is at, and so does where hit and run leads from a candidate. So paths
that parted at a rejection which nobody foresaw are one again as soon as both take a candidate, and
what was drawn ahead is void only up to there. Where q is so poor that they hardly ever do, chains
go ahead by as many steps as are likely to hold: at first a fifth of what is left, then what the
spread of v says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from corebayes.deadline import check_time
from corebayes.samplers.kernel import HitAndRun
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Proposal
from corebayes.types import Array, Gaussian, Indices, Rng

# Moves after which the share of candidates that are taken is known.
FEWEST_MOVES = 100

Move = tuple[int, int, int]
"""Chain, step and the number of the state that it starts from."""


@dataclass(eq=False)
class Meetings:
    """A candidate of q with its uniform for every chain and step, and where it led."""

    rng: Rng
    posterior: Posterior
    proposal: Proposal
    candidates: dict[tuple[int, int], tuple[Array, float, float]] = field(
        default_factory=dict[tuple[int, int], tuple[Array, float, float]]
    )
    """θ, log s/q there, and the log of a uniform."""
    led_to: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    num_asked: int = 0
    num_taken: int = 0

    @property
    def rate(self) -> float | None:
        """The share of candidates that are taken, where it is known."""
        return None if self.num_asked < FEWEST_MOVES else self.num_taken / self.num_asked

    def taken(self, moves: Sequence[Move], chains: Array) -> list[bool]:
        """Which of the moves, now at `chains`, take their candidate. Cost: two densities each."""
        self._draw(list(dict.fromkeys(move[:2] for move in moves)))
        here = self._log_ratios(chains)
        taken: list[bool] = []
        for move, ratio in zip(moves, here.tolist(), strict=True):
            _, there, log_uniform = self.candidates[move[:2]]
            taken.append(np.isfinite(there) and not log_uniform >= there - ratio)
        self.num_asked += len(taken)
        self.num_taken += sum(taken)
        return taken

    def _draw(self, where: list[tuple[int, int]]) -> None:
        new = [place for place in where if place not in self.candidates]
        if not new:
            return
        draws = self.proposal.draw(self.rng, len(new))
        uniforms = np.log(self.rng.random(len(new)))
        ratios = self._log_ratios(draws)
        for place, draw, ratio, uniform in zip(new, draws, ratios, uniforms, strict=True):
            self.candidates[place] = draw, float(ratio), float(uniform)

    def _log_ratios(self, draws: Array) -> Array:
        with np.errstate(all="ignore"):
            return self.posterior.finite_log_density(draws) - self.proposal.log_density(draws)


AHEAD, LEAST_AHEAD = 5, 60
# Rejections that nobody foresaw, on the way ahead of a chain: half as large a share is void.
MOST_VOID = 0.3
# Passes that all steps may be shared out over.
FEWEST_PASSES = 6
KERNEL = HitAndRun()


class Local(NamedTuple):
    """The scales of a local kernel, and the mixture at whose candidates its paths meet."""

    frame: Gaussian
    meeting: Proposal | None


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
    meetings: Meetings | None = None
    states: list[Array] = field(default_factory=list[Array])
    moved: dict[Move, int] = field(default_factory=dict[Move, int])
    name: str = "hit and run"
    longest: int = 0
    """The most steps that were ever left."""

    @classmethod
    def begin(cls, rng: Rng, posterior: Posterior, around: Local, starts: Array) -> Paths:
        """From starts (chains, d); some d steps make one independent draw."""
        inner = int(np.clip(-(-posterior.dim // 2), 3, 20))
        frame, meeting = around
        meetings = None if meeting is None else Meetings(rng, posterior, meeting)
        states: list[Array] = list(starts)
        return cls(rng, posterior, frame, inner, list(range(len(states))), meetings, states)

    def propose(self, moves: Sequence[Move]) -> list[int]:
        """Where each move leads: always to the same place."""
        new = [move for move in moves if move not in self.moved]
        if new:
            chains = self._run(self.draws(np.array([state for _, _, state in new])))
            taken = [False] * len(new)
            if self.meetings is not None:
                taken = self.meetings.taken(new, chains)
            self._finish(new, chains, taken)
        return [self.moved[move] for move in moves]

    def _finish(self, moves: list[Move], chains: Array, taken: list[bool]) -> None:
        """The second half of the moves; from a candidate it is the same for all that take it."""
        left: list[int] = []
        for place, move in enumerate(moves):
            if not taken[place] or self.meetings is None:
                left.append(place)
            elif move[:2] not in self.meetings.led_to:
                chains[place] = self.meetings.candidates[move[:2]][0]
                # Numbers of states are given below, in this order.
                self.meetings.led_to[move[:2]] = len(self.states) + len(left)
                left.append(place)
        ends = self._run(chains[left]) if left else chains[:0]
        numbers = range(len(self.states), len(self.states) + len(left))
        self.states.extend(ends)
        fresh = dict(zip(left, numbers, strict=True))
        for place, move in enumerate(moves):
            if place in fresh:
                self.moved[move] = fresh[place]
            else:
                assert self.meetings is not None
                self.moved[move] = self.meetings.led_to[move[:2]]

    def _run(self, chains: Array) -> Array:
        with np.errstate(all="ignore"):
            for _ in range(self.inner):
                check_time()
                chains = KERNEL(self.rng, self.posterior, self.fit, chains)
        return chains

    def draws(self, states: Indices) -> Array:
        chosen: list[Array] = [self.states[state] for state in states.tolist()]
        return np.stack(chosen)

    def reach(self, left: int, surprise: float | None) -> int:
        self.longest = max(self.longest, left)
        if surprise is None:
            return left if left <= LEAST_AHEAD else -(-left // AHEAD)
        # Of L steps ahead L² · surprise / 2 are void on average; a pass costs something, too.
        likely = int(MOST_VOID / max(surprise, 1e-9))
        ahead = max(LEAST_AHEAD, likely, -(-self.longest // FEWEST_PASSES))
        rate = None if self.meetings is None else self.meetings.rate
        if rate is not None and surprise < 0.5 * MOST_VOID * rate:
            # Paths meet again after some 1 / rate steps, and no more than those are void.
            ahead = left
        return min(left, ahead)
