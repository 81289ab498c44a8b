"""Exchanges: one of the vectors chosen for another, as long as what is missing becomes less.

A greedy path of M of n vectors ends where its first steps led it. From there on, or from anywhere,

    min_{w ≥ 0, ‖w‖_0 ≤ M} ‖b − Σ_i w_i u_i‖²

falls by exchanges. With K = (U_SᵀU_S)⁻¹, P = K U_SᵀU, the slopes r_j = ⟨u_j, b − Σ w_i u_i⟩ and the
squared distance s_j of u_j from the span of S, vector j in the place of i lowers it by

    (r_j + w_i P_ij / K_ii)² / (s_j + P_ij² / K_ii) − w_i² / K_ii

for all M·n pairs at once, at the price of one least squares.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corebayes.deadline import check_time
from corebayes.types import Array, Indices, Rng
from corebayes.weights.pursuit import Choice

# The least share of what is missing that an exchange is worth, and pairs that are tried for it:
# others' weights may become negative.
WORTH, TRIED = 0.01, 30
# Added to the squared lengths of unit vectors, some of which nearly depend on others.
DAMPING = 1e-13
# The share of a choice that others take the place of, at random, for another start.
GIVEN_UP = 0.5


class GivenProducts(NamedTuple):
    """n unit vectors, by their inner products with each other and with b, and ‖b‖²."""

    gram: Array
    cross: Array
    square: float

    @classmethod
    def of(cls, gram: Array, cross: Array, square: float) -> tuple[GivenProducts, Array]:
        """Of vectors of any length, and their lengths."""
        squares = np.diag(gram)
        lengths = np.sqrt(np.where(squares > 0.0, squares, 1.0))
        return cls(gram / np.outer(lengths, lengths), cross / lengths, square), lengths

    def missing(self, choice: Choice) -> float:
        """‖b − Σ w_i u_i‖²."""
        taken, weights = choice
        return self.square - float(weights @ self.cross[taken])

    def least_squares(self, taken: Indices) -> tuple[Array, Array]:
        """K and the weights, of either sign."""
        gram = self.gram[np.ix_(taken, taken)]
        damped = gram + np.diag(np.full(taken.size, DAMPING))
        inverse: Array = np.asarray(np.linalg.inv(damped), dtype=np.float64)
        return inverse, inverse @ self.cross[taken]

    def solved(self, taken: Indices) -> Choice:
        """The weights of these; those that would be negative leave."""
        while taken.size:
            _, weights = self.least_squares(taken)
            if weights.min() > 0.0:
                return Choice(taken, weights)
            taken = np.delete(taken, np.argmin(weights))
        return Choice(taken, np.empty(0))


def searched(
    candidates: GivenProducts,
    choice: Choice,
    size: int,
    rng: Rng,
    *,
    starts: int,
    most_flops: float,
) -> Choice:
    """The best of several searches, each from the best so far with some of it given up.

    Cost: for every exchange M³ + M²·n flops, no more than about `most_flops` together.
    """
    budget = [most_flops]
    best = exchanged(candidates, choice, size, budget)
    for _ in range(starts):
        if budget[0] <= 0.0:
            break
        start = candidates.solved(_elsewhere(candidates, best, rng))
        other = exchanged(candidates, start, size, budget)
        if candidates.missing(other) < candidates.missing(best):
            best = other
    return best


def _elsewhere(candidates: GivenProducts, choice: Choice, rng: Rng) -> Indices:
    """Some of a choice, and others at random for the rest."""
    given_up = max(1, int(GIVEN_UP * choice.taken.size))
    stay = rng.permutation(choice.taken)[given_up:]
    others = np.setdiff1d(np.flatnonzero(np.diag(candidates.gram) > 0.0), choice.taken)
    return np.append(stay, rng.permutation(others)[:given_up])


def exchanged(candidates: GivenProducts, choice: Choice, size: int, budget: list[float]) -> Choice:
    """From a choice to one that no exchange makes better; vectors enter while there is room."""
    number = candidates.cross.size
    while budget[0] > 0.0:
        check_time()
        taken = choice.taken.size
        budget[0] -= 2.0 * taken**3 + 2.0 * taken**2 * number
        better = _entered(candidates, choice) if taken < min(size, number) else None
        better = better or _exchanged_once(candidates, choice)
        if better is None:
            break
        choice = better
    return choice


def _entered(candidates: GivenProducts, choice: Choice) -> Choice | None:
    taken, weights = choice
    slopes = candidates.cross - weights @ candidates.gram[taken]
    slopes[taken] = -np.inf
    before = candidates.missing(choice)
    for number in np.argsort(-slopes)[:3]:
        if not slopes[number] > 0.0:
            break
        found = candidates.solved(np.append(taken, number))
        if candidates.missing(found) < (1.0 - WORTH) * before:
            return found
    return None


def _exchanged_once(candidates: GivenProducts, choice: Choice) -> Choice | None:
    """The best exchange that leaves all weights positive."""
    taken, weights = choice
    if taken.size == 0:
        return None
    before = candidates.missing(choice)
    inverse, _ = candidates.least_squares(taken)
    products = candidates.gram[taken]
    shares = inverse @ products
    heights = np.maximum(1.0 - np.einsum("in,in->n", products, shares), 0.0)
    slopes = candidates.cross - weights @ products
    own = np.diag(inverse)[:, None]
    rises = slopes + weights[:, None] * shares / own
    falls = np.square(np.maximum(rises, 0.0)) / (heights + np.square(shares) / own + DAMPING)
    falls -= np.square(weights)[:, None] / own
    falls[:, taken] = -np.inf
    pairs = np.argpartition(-falls, min(TRIED, falls.size - 1), axis=None)[:TRIED]
    for pair in pairs[np.argsort(-falls.ravel()[pairs])]:
        leaves, enters = divmod(int(pair), candidates.cross.size)
        if not falls[leaves, enters] > WORTH * before:
            return None
        others = np.append(np.delete(taken, leaves), enters)
        _, values = candidates.least_squares(others)
        if values.min() > 0.0:
            found = Choice(others, values)
            if candidates.missing(found) < (1.0 - WORTH) * before:
                return found
    return None
