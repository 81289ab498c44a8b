"""The surrogate-transition kernel: moves made on few rows, accepted on all of them.

A move that is reversible in a surrogate density s, accepted with min(1, e^{v(θ′) − v(θ)}) where
v = log π − log s, leaves π invariant exactly (Liu, "Monte Carlo Strategies in Scientific
Computing", 2001, section 9.4.3; Christen and Fox 2005). With s = π_w and π ∝ π_w e^r that is v = r.
Moves are made ahead on the coreset, along the path on which every one is accepted, or as far as v
can be foreseen from what is known, and v is taken for all of them and all chains in one pass over
the rows; where a move is then rejected, the chain goes on from where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np

from corebayes.types import Array, Indices, Rng

Guess = Callable[[Indices], Array]
# Values of v from which its spread is known, at least and at most.
FEWEST_KNOWN, MOST_KNOWN = 50, 500


class Proposals(Protocol):
    """Moves that are reversible in s, as a function of chain, step and state (a number)."""

    @property
    def starts(self) -> list[int]: ...

    @property
    def name(self) -> str: ...

    def propose(self, moves: Sequence[tuple[int, int, int]]) -> list[int]: ...

    def draws(self, states: Indices) -> Array:
        """θ of the states, (n, d)."""
        ...

    def reach(self, left: int, surprise: float | None) -> int:
        """How many of the steps that are left to go ahead of what is known, where a step is
        rejected unforeseen with this probability; None when nothing is known of it."""
        ...


class Moved(NamedTuple):
    """States of π (chains, steps), whether each was moved to, and v of all that were evaluated."""

    states: Indices
    accepted: Array
    values: dict[int, float]


class TooManyPassesError(ValueError):
    """So few moves are accepted that the draws would take passes without end."""


@dataclass
class SurrogateChains:
    """Chains of π over proposals of s."""

    proposals: Proposals
    evaluate: Callable[[Indices], Array]
    """v of states, in one pass over the rows."""
    log_uniforms: Array
    """(chains, steps): what decides on every move."""
    max_passes: int
    foresee: Callable[[], Guess | None] | None = None
    """Makes of all that is known a guess of v at other states."""
    values: dict[int, float] = field(default_factory=dict[int, float])
    missed: list[float] = field(default_factory=list[float])
    """v less its guess, of all states that had one before they were evaluated."""

    @classmethod
    def over(
        cls,
        rng: Rng,
        proposals: Proposals,
        evaluate: Callable[[Indices], Array],
        steps: int,
        max_passes: int,
        foresee: Callable[[], Guess | None] | None = None,
    ) -> SurrogateChains:
        uniforms = np.log(rng.random((len(proposals.starts), steps)))
        return cls(proposals, evaluate, uniforms, max_passes, foresee)

    def run(self) -> Moved:
        """All steps of all chains. Cost: one pass, and one more whenever a move is needed that was
        not foreseen."""
        num_chains, num_steps = self.log_uniforms.shape
        states = np.empty((num_chains, num_steps), dtype=np.int64)
        accepted = np.zeros((num_chains, num_steps))
        done, at = [0] * num_chains, list(self.proposals.starts)
        passes = 0
        while min(done) < num_steps:
            if passes == self.max_passes:
                raise TooManyPassesError(f"{min(done)} of {num_steps} steps in {passes} passes")
            guessed = self._ahead(done, at)
            if guessed:
                found = self.evaluate(np.array(list(guessed))).tolist()
                self.values.update(zip(guessed, found, strict=True))
                missed = np.array(found) - np.array(list(guessed.values()))
                self.missed.extend(missed[np.isfinite(missed)].tolist())
                passes += 1
            for chain in range(num_chains):
                done[chain], at[chain] = self._commit(
                    chain, done[chain], at[chain], states[chain], accepted[chain]
                )
        return Moved(states, accepted, self.values)

    def _ahead(self, done: list[int], at: list[int]) -> dict[int, float]:
        """States whose v is unknown on the way ahead, on which moves are accepted as v says, or the
        guess of it, or always where there is neither; each with its guess."""
        num_steps = self.log_uniforms.shape[1]
        guess = None if self.foresee is None else self.foresee()
        reach = self.proposals.reach
        surprise = self._surprise(guess)
        ends = [step + reach(num_steps - step, surprise) for step in done]
        where = list(zip(range(len(done)), done, at, strict=True))
        guessed: dict[int, float] = {}
        self._guess(guess, guessed, at)
        while where := [move for move in where if move[1] < ends[move[0]]]:
            moved = self.proposals.propose(where)
            self._guess(guess, guessed, moved)
            for place, ((chain, step, state), new) in enumerate(zip(where, moved, strict=True)):
                gain = self._value(guessed, new) - self._value(guessed, state)
                rejected = self.log_uniforms[chain, step] >= gain
                where[place] = chain, step + 1, state if rejected else new
        return guessed

    def _surprise(self, guess: Guess | None) -> float | None:
        """The probability that a step is rejected or accepted and was not foreseen to be.

        Where v is off by a normal error of deviation σ, differences of two are off by e of √2 σ,
        and |min(0, Δ) − min(0, Δ + e)|, which for small Δ is that probability, is |e| where both
        are negative and none where neither is: E|e| / 2, also with no guess but that all are alike.
        How far a guess is off is known from states that it was made for before they were seen.
        """
        left = np.array(self.missed[-MOST_KNOWN:])
        if guess is None:
            last = islice(reversed(self.values.values()), MOST_KNOWN)
            left = np.array([value for value in last if np.isfinite(value)])
        if left.size < FEWEST_KNOWN:
            return None
        spread = np.sqrt(2.0) * float(np.std(left))
        return float(-0.5 * np.expm1(-np.sqrt(2.0 / np.pi) * spread))

    def _guess(self, guess: Guess | None, guessed: dict[int, float], states: list[int]) -> None:
        unknown = list(dict.fromkeys(s for s in states if s not in self.values))
        unknown = [state for state in unknown if state not in guessed]
        if unknown:
            # What is no number is accepted.
            found = [np.nan] * len(unknown) if guess is None else guess(np.array(unknown)).tolist()
            guessed.update(zip(unknown, found, strict=True))

    def _value(self, guessed: dict[int, float], state: int) -> float:
        known = self.values.get(state)
        return guessed[state] if known is None else known

    def _commit(
        self, chain: int, step: int, state: int, states: Indices, accepted: Array
    ) -> tuple[int, int]:
        """The steps whose moves are all known; where the chain is then."""
        while step < len(states):
            (new,) = self.proposals.propose([(chain, step, state)])
            if new not in self.values:
                break
            if self._accepts(chain, step, state, new):
                accepted[step] = 1.0
                state = new
            states[step] = state
            step += 1
        return step, state

    def _accepts(self, chain: int, step: int, state: int, new: int) -> bool:
        # Also from a start of zero density, whatever the uniform.
        gain = self.values[new] - self.values[state]
        return not self.log_uniforms[chain, step] >= gain
