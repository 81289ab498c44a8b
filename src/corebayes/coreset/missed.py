"""What a reserve misses of the data, as a polynomial: a few hundred numbers beside its rows."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Any, NamedTuple, cast

import numpy as np

from corebayes.types import Array, Gaussian

# A polynomial of this degree has no more numbers than `MOST_NUMBERS` for any d ≥ 1.
MOST_NUMBERS, HIGHEST = 5000, 8


class Missed(NamedTuple):
    """r(θ) = Σ_n c_n f_n − Σ_i v_i f_i up to a constant, as Σ_k ⟨c_k, He_k(L⁻¹(θ − μ))⟩ / k!.

    c_k = E[∂^k r] at N(μ, LLᵀ) in units of L, a symmetric tensor of which `numbers` has every entry
    once, in the order of its sorted indices, for k = 1, …, order. See `tangent/polynomial.py`.
    """

    at: Gaussian
    order: int
    numbers: Array

    def stored(self) -> dict[str, Any]:
        mean, factor = self.at
        return {"mean": mean, "factor": factor, "order": self.order, "numbers": self.numbers}


def num_numbers(dim: int, order: int) -> int:
    """How many a polynomial without its constant has."""
    return comb(dim + order, order) - 1


def read_missed(stored: Any) -> Missed | None:
    """As a file may have it; what it holds is checked with the coreset."""
    if stored is None:
        return None
    if not isinstance(stored, Mapping):
        raise ValueError("what the reserve misses must be a mapping")
    known = cast(Mapping[str, Any], stored)
    mean, factor, numbers = (
        np.asarray(known[name], dtype=np.float64) for name in ("mean", "factor", "numbers")
    )
    return Missed(Gaussian(mean, factor), known["order"], numbers)


def check_missed(missed: Any, dim: int) -> None:
    """ValueError or TypeError for what no build keeps."""
    if missed is None:
        return
    if not isinstance(missed, Missed) or type(missed.order) is not int:
        raise TypeError("what the coreset's reserve misses must be a polynomial, or None")
    (mean, factor), order, numbers = missed
    shapes = np.shape(mean), np.shape(factor), np.shape(numbers)
    fits = 1 <= order <= HIGHEST and num_numbers(dim, order) <= MOST_NUMBERS
    if not fits or shapes != ((dim,), (dim, dim), (num_numbers(dim, order),)):
        raise ValueError(
            f"what the reserve misses is no polynomial of {dim} parameters: it has {shapes[2]} "
            f"numbers of degree {order!s:.20}"
        )
    if not all(np.all(np.isfinite(values)) for values in (mean, factor, numbers)):
        raise ValueError("what the reserve misses has numbers that are not finite")
    if not np.all(np.diag(factor) > 0.0) or np.any(np.triu(factor, 1)):
        raise ValueError("what the reserve misses lies at no Gaussian")
