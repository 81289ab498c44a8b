"""Proposals by independence Metropolis on few rows, all of them drawn beforehand.

One move is `inner` steps of independence Metropolis–Hastings for the surrogate density s, whose
candidates come from a fixed mixture q around the modes: reversible in s, whatever q is. Candidates
and uniforms are drawn for every chain and step before anything is known, so a move is a function
of where it starts, and moves from two places with the same numbers end at the same place once both
take the same candidate. That is what happens nearly always, and then a rejection voids nothing that
was evaluated ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corebayes.samplers.independence import log_densities
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Proposal
from corebayes.samplers.wide import WideProposal
from corebayes.types import Array, Indices, Rng

# Moves before the first that counts, and the share of pairs that may not have met after a move.
FIRST_MOVES, APART = 4, 1e-4
FEWEST_INNER, MOST_INNER = 4, 64


def num_inner(time: float) -> int:
    """Steps of a move after which moves from two places have met, where a chain of such steps has
    this autocorrelation time: 2 / (time + 1) of the candidates are taken."""
    staying = np.log((time - 1.0) / (time + 1.0)) if time > 1.0 else -np.inf
    return int(np.clip(np.ceil(np.log(APART) / staying), FEWEST_INNER, MOST_INNER))


@dataclass(frozen=True, eq=False)
class CandidatePool:
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
        proposal: Proposal | WideProposal,
        chains: int,
        steps: int,
        inner: int = 1,
    ) -> CandidatePool:
        """With s the density of the mixture itself when no posterior is given.

        Cost: M potentials for each of chains · steps · inner candidates.
        """
        num_steps = steps + FIRST_MOVES
        number = chains * num_steps * inner
        candidates = proposal.draw(rng, number)
        log_q = proposal.log_density(candidates)
        first = num_steps * inner * np.arange(chains)
        log_ratios = np.zeros(number)
        if posterior is not None:
            with np.errstate(all="ignore"):
                log_ratios = log_densities(posterior, candidates) - log_q
        pool = cls(
            candidates=candidates,
            log_q=log_q,
            log_ratios=log_ratios.tolist(),
            log_uniforms=np.log(rng.random(number)).tolist(),
            starts=[],
            num_steps=num_steps,
            inner=inner,
            name="independence Metropolis",
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

    def reach(self, left: int, surprise: float | None) -> int:
        """Steps to go ahead of what is known: nothing is void, so all."""
        return left
