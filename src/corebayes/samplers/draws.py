"""Draws of π_w and how they were come by: what every sampler returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from corebayes.samplers import convergence
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian, Indices


@dataclass(frozen=True, eq=False, kw_only=True)
class Draws:
    """Draws of π_w in one or more chains."""

    values: Array
    """(chains, draws, d)."""
    location: Array
    """Where π_w lies, (d,), to start the next draws from."""
    independent: bool = False
    """Whether no draw depends on another. Otherwise errors come from the autocorrelation along
    each chain, and chains must agree."""
    how: str = "chains"
    """The sampler in words, such as "NUTS, 4 chains"."""
    weights: Array | None = None
    """(chains, draws), of mean one, when the draws are of something that covers π_w."""
    pareto_k: float = np.nan
    """k̂ of the ratios of π_w to what was proposed, where there are such."""
    acceptance: float | None = None
    """The share of proposals that were accepted, where there are proposals."""
    modes: tuple[Gaussian, ...] = ()
    """Fits of π_w where the draws lie, if that is in several places."""
    num_divergences: int = 0
    max_rhat: float = np.nan
    """The largest split-R̂ of the parameters, once `diagnosed`; 1 is agreement of the chains."""
    stats: Mapping[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    """What the sampler saw at every draw, (chains, draws), under ArviZ's names."""

    def __post_init__(self) -> None:
        shape, weights = self.values.shape, self.weights
        if len(shape) != 3:
            raise ValueError(f"draws must have the shape (chains, draws, d), got {shape}")
        if weights is not None and not (
            weights.shape == shape[:2] and abs(weights.mean() - 1.0) < 1e-6
        ):
            raise ValueError(
                f"weights of draws must have the shape {shape[:2]} and the mean one, "
                f"got {weights.shape} and {weights.mean():g}"
            )

    @property
    def flat(self) -> Array:
        """All draws, chain after chain, (S, d)."""
        return self.values.reshape(-1, self.values.shape[2])

    @property
    def effective(self) -> float:
        """How many draws of π_w these are worth by their weights: S / mean w²."""
        size = self.values.shape[0] * self.values.shape[1]
        return size if self.weights is None else size / float(np.mean(np.square(self.weights)))

    def diagnosed(self) -> Self:
        """These draws with their R̂; independent draws are chains that agree."""
        rhat = 1.0 if self.independent else convergence.max_rhat(self.values)
        return replace(self, max_rhat=rhat)

    def first(self, number: int) -> Self:
        """The first so many draws of every chain."""
        return replace(
            self,
            values=self.values[:, :number],
            stats={name: values[:, :number] for name, values in self.stats.items()},
        )

    def in_chains(self, chains: int) -> Self:
        """Independent draws, shared out over so many chains; their number must go into it."""

        def shared(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(chains, -1, *values.shape[2:])

        return replace(
            self,
            values=shared(self.values),
            how=self.how if chains == 1 else f"{self.how}, {chains} chains",
            weights=None if self.weights is None else shared(self.weights),
            stats={name: shared(values) for name, values in self.stats.items()},
        )

    def thinned(self, step: int) -> Self:
        """Every `step`-th draw of each chain, with the diagnostics of all of them."""
        weights = None if self.weights is None else self.weights[:, ::step]
        return replace(
            self,
            values=self.values[:, ::step],
            weights=None if weights is None else weights / weights.mean(),
            stats={name: values[:, ::step] for name, values in self.stats.items()},
        )

    def equally_weighted(self, rng: Generator, number: int) -> Array:
        """(number, d) draws of π_w itself: the first, or some in proportion to the weights."""
        if self.weights is None:
            return self.flat[:number]
        return self.flat[systematic(rng, self.weights.ravel(), number)]


class Sampler(Protocol):
    """Draws of π_w."""

    def draw(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
    ) -> Draws:
        """At least `num_draws` draws in all, from `start`, an earlier location, if there is one."""
        ...


def is_sampler(value: object) -> bool:
    """An object that draws: not the name of a sampler, and not its class."""
    return hasattr(value, "draw") and not isinstance(value, type)


def systematic(rng: Generator, weights: Array, number: int) -> Indices:
    """Positions drawn in proportion to the weights, each as near to its share as can be."""
    ticks = (np.arange(number) + rng.uniform()) / number
    shares = np.cumsum(weights) / weights.sum()
    return np.minimum(np.searchsorted(shares, ticks), weights.size - 1)
