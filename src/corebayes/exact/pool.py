"""Proposals by independence Metropolis on few rows, all of them drawn beforehand.

One move is `inner` steps of independence Metropolis–Hastings for the surrogate density s, whose
candidates come from a fixed mixture q of t distributions: reversible in s, whatever q is. Candidates
and uniforms are drawn for every chain and step before anything is known, so a move is a function
of where it starts, and moves from two places with the same numbers end at the same place as soon as
both take the same candidate. That is what happens nearly always, and then a rejection elsewhere
voids nothing that was evaluated ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corebayes.deadline import check_time
from corebayes.samplers.mixture import propose
from corebayes.samplers.mode_search import Mode
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Indices, Rng

# Draws whose densities are taken at once: a model of one's own holds M · draws numbers.
DENSITIES_AT_ONCE = 4096
# Moves before the first that counts, and the share of pairs that may not have met after a move.
FIRST_MOVES, APART = 4, 1e-4
FEWEST_INNER, MOST_INNER = 4, 48
TRIAL_DRAWS = 1000


def degrees_for(dim: int) -> float:
    """Of the t distributions: more like a Gaussian in many dimensions, where tails cost most."""
    return max(5.0, float(dim))


def log_densities(posterior: Posterior, draws: Array) -> Array:
    """log s at draws (S, d), −∞ where it is no number, some at a time."""
    parts: list[Array] = [np.empty(0)]
    with np.errstate(all="ignore"):
        for first in range(0, len(draws), DENSITIES_AT_ONCE):
            check_time()
            part = draws[first : first + DENSITIES_AT_ONCE]
            parts.append(posterior.finite_log_density(part))
    return np.concatenate(parts)


def acceptance(rng: Rng, posterior: Posterior, modes: list[Mode]) -> float:
    """The share of candidates that independence Metropolis for the density takes, on trial."""
    draws, log_q = propose(rng, modes, TRIAL_DRAWS, degrees_for(posterior.dim))
    log_ratios = log_densities(posterior, draws) - log_q
    if not np.any(np.isfinite(log_ratios)):
        return 0.0
    # E min(1, ω'/ω) for ω of the density and ω' of the mixture
    shares = np.exp(log_ratios - log_ratios.max())
    current = rng.choice(log_ratios, size=TRIAL_DRAWS, p=shares / shares.sum())
    return float(np.mean(np.exp(np.minimum(rng.permutation(log_ratios) - current, 0.0))))


def num_inner(accepted: float) -> int:
    """Steps of a move after which moves from two places have met."""
    if accepted >= 1.0:
        return FEWEST_INNER
    return int(np.clip(np.ceil(np.log(APART) / np.log1p(-accepted)), FEWEST_INNER, MOST_INNER))


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidates (chains, steps, inner) and what a move needs of them, as flat arrays."""

    candidates: Array
    log_q: Array
    log_ratios: list[float]
    """log s/q of every candidate."""
    log_uniforms: list[float]
    starts: list[int]
    """The candidate at which every chain begins."""
    num_steps: int
    inner: int
    name: str

    @classmethod
    def draw(
        cls,
        rng: Rng,
        posterior: Posterior | None,
        modes: list[Mode],
        chains: int,
        steps: int,
        inner: int = 1,
    ) -> Pool:
        """With s the density of the mixture itself when no posterior is given.

        Cost: M potentials for each of chains · steps · inner candidates.
        """
        num_steps = steps + FIRST_MOVES
        number = chains * num_steps * inner
        candidates, log_q = propose(rng, modes, number, degrees_for(modes[0].fit.mean.size))
        first = num_steps * inner * np.arange(chains)
        log_ratios = np.zeros(number)
        if posterior is not None:
            log_ratios = log_densities(posterior, candidates) - log_q
        pool = cls(
            candidates=candidates,
            log_q=log_q,
            log_ratios=log_ratios.tolist(),
            log_uniforms=np.log(rng.random(number)).tolist(),
            starts=[],
            num_steps=num_steps,
            inner=inner,
            name=f"independence Metropolis around {len(modes)} mode{'s' * (len(modes) > 1)}",
        )
        for chain in range(chains):
            state = int(first[chain])
            for step in range(-FIRST_MOVES, 0):
                state = pool._move(chain, step, state)
            pool.starts.append(state)
        return pool

    def propose(self, moves: Sequence[tuple[int, int, int]]) -> list[int]:
        """Where each (chain, step, state) is moved to."""
        return [self._move(*move) for move in moves]

    def _move(self, chain: int, step: int, state: int) -> int:
        first = (chain * self.num_steps + step + FIRST_MOVES) * self.inner
        ratios, uniforms = self.log_ratios, self.log_uniforms
        for candidate in range(first, first + self.inner):
            # Written so that a start outside of the support leaves it.
            if not uniforms[candidate] >= ratios[candidate] - ratios[state]:
                state = candidate
        return state

    def draws(self, states: Indices) -> Array:
        return self.candidates[states]

    def reach(self, left: int) -> int:
        """Steps to go ahead of what is known: nothing is void, so all."""
        return left
