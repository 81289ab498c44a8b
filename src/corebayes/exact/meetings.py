"""Candidates at which paths of one chain that parted are one again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Proposal
from corebayes.types import Array, Rng

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
