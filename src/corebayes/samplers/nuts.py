"""NUTS draws of π_w, in coordinates where π_w is nearly a standard normal.

With the Laplace fit N(θ̂, L Lᵀ) of π_w the sampler sees z in θ = θ̂ + L z, so huge weights and
narrow or correlated posteriors cost nothing extra (Neal, "MCMC using Hamiltonian dynamics", 2011,
section 4.1). Where π_w is not log-concave its mode may lie far from its mass, as in a hierarchy:
there the tuning also learns correlations. The sampler is nutpie: Hoffman and Gelman's NUTS (2014)
with a faster tuning. It runs on the quickest form of the density that there is (`density.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from corebayes.arguments import check_fields
from corebayes.deadline import check_time
from corebayes.models.custom.touching import is_touching
from corebayes.models.mixed.regression import MixedRegression
from corebayes.samplers.chain import Chain, run_chain
from corebayes.samplers.density import (
    Callback,
    Frame,
    Pointer,
    jax_density,
    plain_density,
    quickest_density,
)
from corebayes.samplers.draws import Draws
from corebayes.samplers.laplace import UNLIKE, fit_or_units, prior_fit
from corebayes.samplers.mixed.density import MixedDensity, mixed_density
from corebayes.samplers.mixed.frame import MixedFrame, frame_of
from corebayes.samplers.mixed.local_frame import LocalFrame, local_frame, local_start
from corebayes.samplers.modes.search import log_mass
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian

# Chains start from fits this many times too wide, so that agreement between them means something.
DISPERSION = 2.0

# Up to so many parameters of a model that is not log-concave frame and tuning know of correlations.
MOST_PARAMETERS = 200

# A place with less than e^−20 of the mass of another is none to start from.
NEGLIGIBLE = 20.0

# ArviZ's names of the statistics, and nutpie's.
STATS = {
    "lp": "logp",
    "energy": "energy",
    "diverging": "diverging",
    "tree_depth": "depth",
    "n_steps": "n_steps",
    "step_size": "step_size",
    "acceptance_rate": "mean_tree_accept",
}


@dataclass(frozen=True, kw_only=True)
class NUTS:
    """Draws of π_w by Hamiltonian Monte Carlo. Cost: about 5 · (tune + draws) gradients, M·d each.

    Chains run one after the other: they would share the interpreter anyway, and so each is the
    same whatever runs beside it. Where `model.log_concave` is False every second chain starts
    from the mode that a draw of the prior leads to, so that a second mode shows as disagreement.
    When more than a share `tolerated` of the draws diverge, the run is repeated with `retry_accept`
    and twice the tuning, but not when more than a share `hopeless` do. No draw takes more than
    2^`max_depth` gradients. Unless `compiled`, the density is the model's Python methods.
    """

    num_tune: int = 300
    chains: int = 2
    target_accept: float = 0.8
    retry_accept: float = 0.99
    tolerated: float = 0.0
    hopeless: float = 1.0
    max_depth: int = 10
    compiled: bool = True

    def __post_init__(self) -> None:
        check_fields(
            self,
            target_accept=(0.0, 1.0),
            retry_accept=(0.0, 1.0),
            tolerated=0.0,
            hopeless=0.0,
        )

    def draw(
        self,
        rng: Generator,
        posterior: Posterior,
        num_draws: int,
        start: Array | None = None,
        *,
        progress: bool = False,
    ) -> Draws:
        """Chains of num_draws / chains draws each, rounded up, after `num_tune` of tuning."""
        frame, places = self._places(rng, posterior, start)
        chains = [Chain(place, int(rng.integers(2**62))) for place in places]
        options = {"draws": -(-num_draws // self.chains), "progress_bar": progress}
        values, stats = self._run(posterior, frame, chains, options)
        diverging = int(stats["diverging"].sum())
        share = diverging / stats["diverging"].size
        if self.tolerated < share <= self.hopeless:
            careful = replace(self, num_tune=2 * self.num_tune, target_accept=self.retry_accept)
            again = careful._run(posterior, frame, chains, options)
            if again[1]["diverging"].sum() <= diverging:
                values, stats = again
        return Draws(
            values=values,
            location=frame.mean,
            how=f"NUTS, {self.chains} chains",
            acceptance=float(stats["acceptance_rate"].mean()),
            num_divergences=int(stats["diverging"].sum()),
            stats=stats,
        )

    def _places(
        self, rng: Generator, posterior: Posterior, start: Array | None
    ) -> tuple[Frame | MixedFrame | LocalFrame, list[Array]]:
        """The coordinates, and where the chains start in them."""
        if isinstance(posterior.model, MixedRegression):
            mixed = frame_of(posterior, start)
            starts = [mixed.start(rng) for _ in range(self.chains)]
            return mixed, [_within_reach(posterior, mixed.mean, mixed.theta, z) for z in starts]
        if is_touching(posterior.model) and posterior.weights.size:
            local = local_frame(posterior, posterior.model, start)
            return local, [local_start(rng, posterior, local) for _ in range(self.chains)]
        fits = _fits(rng, posterior, self.chains, start)
        frame = _frame(posterior, fits)
        return frame, [
            _dispersed(rng, posterior, frame, fits[chain % len(fits)])
            for chain in range(self.chains)
        ]

    def _run(
        self,
        posterior: Posterior,
        frame: Frame | MixedFrame | LocalFrame,
        chains: list[Chain],
        options: dict[str, Any],
    ) -> tuple[Array, dict[str, Array]]:
        """Draws of θ (chains, draws, d) and their statistics."""
        own = {"tune": self.num_tune, "target_accept": self.target_accept}
        options = {**options, **own, "maxdepth": self.max_depth}
        correlated = not posterior.model.log_concave and posterior.dim <= MOST_PARAMETERS
        # The frame of a mixed model knows them already.
        correlated = correlated and not isinstance(frame, MixedFrame)
        options["low_rank_modified_mass_matrix"] = self.compiled and correlated
        if isinstance(frame, MixedFrame):
            quickest = mixed_density if self.compiled else MixedDensity
            density: Callback | Pointer = quickest(posterior, frame)
        elif isinstance(frame, LocalFrame):
            traced = frame.log_density
            density = (
                plain_density(posterior, frame.affine)
                if traced is None
                else jax_density(traced, posterior, frame.affine)
            )
        else:
            density = (quickest_density if self.compiled else plain_density)(posterior, frame)
        names = list(STATS.values())
        traces = [run_chain(density, chain, options, names) for chain in chains]
        z = np.stack([trace.z for trace in traces])
        stats = {
            ours: np.stack([trace.stats[name] for trace in traces]) for ours, name in STATS.items()
        }
        return frame.theta(z), stats


def _fits(rng: Generator, posterior: Posterior, chains: int, start: Array | None) -> list[Gaussian]:
    """Where chains start, in turn: the mode from `start`, and between those, other modes.

    Not from where next to nothing is, such as the spike at scale zero of a hierarchy, from which a
    chain would take very long to return.
    """
    if posterior.dim > MOST_PARAMETERS and not posterior.model.log_concave:
        # Hessians would take longer than the chains.
        at = np.zeros(posterior.dim) if start is None else start
        return [Gaussian(at, np.ones(posterior.dim))]
    first = fit_or_units(posterior, start)
    if posterior.model.log_concave or chains == 1:
        return [first]
    prior = prior_fit(posterior.model, posterior.rows)
    others = [fit_or_units(posterior, theta) for theta in prior.draw(rng, chains // 2)]
    masses = np.array([log_mass(posterior, fit) for fit in (first, *others)])
    heavy = masses >= masses.max() - NEGLIGIBLE
    if not heavy[0]:
        # The mode from `start` is itself such a place.
        first = others[int(np.argmax(masses[1:]))]
    others = [fit if kept else first for fit, kept in zip(others, heavy[1:], strict=True)]
    return [fit for other in others for fit in (first, other)]


def _frame(posterior: Posterior, fits: list[Gaussian]) -> Frame:
    """Coordinates from the fit with the largest mass."""
    if len(fits) == 1:
        return Frame(*fits[0])
    return Frame(*max(fits, key=lambda fit: log_mass(posterior, fit)))


def _dispersed(rng: Generator, posterior: Posterior, frame: Frame, fit: Gaussian) -> Array:
    """A start z in the frame, from the fit made wider."""
    own, offset = Frame(*fit), DISPERSION * rng.standard_normal(fit.mean.size)
    return frame.z(own.theta(_within_reach(posterior, fit.mean, own.theta, offset)))


def _within_reach(
    posterior: Posterior, mean: Array, theta_of: Callable[[Array], Array], offset: Array
) -> Array:
    """The offset from the mean; nearer where the density is not finite, or so low that no chain
    would find its way: beyond the wall that an exponential puts up."""
    height = posterior.value(mean)
    for _ in range(60):
        check_time()
        value, gradient = posterior.value_and_gradient(theta_of(offset))
        inside = value >= height - UNLIKE * (1.0 + 0.5 * float(offset @ offset))
        if inside and np.isfinite(value) and np.all(np.isfinite(gradient)):
            return offset
        offset = 0.5 * offset
    raise ValueError(
        "the log density of the coreset posterior is not finite near its mode; check the model's "
        f"log likelihood and log prior at θ = {mean}"
    )
