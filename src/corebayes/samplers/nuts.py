"""NUTS draws of π_w, in coordinates where π_w is nearly a standard normal.

With the Laplace fit N(θ̂, L Lᵀ) of π_w the sampler sees z in θ = θ̂ + L z, so huge weights and
narrow or correlated posteriors cost nothing extra (Neal, "MCMC using Hamiltonian dynamics", 2011,
section 4.1). The sampler is nutpie: Hoffman and Gelman's NUTS (2014) with a faster tuning.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from corebayes.arguments import check_fields
from corebayes.deadline import check_time, current_deadline
from corebayes.samplers.convergence import max_rhat
from corebayes.samplers.laplace import Laplace, prior_fit
from corebayes.samplers.mode_search import log_volume
from corebayes.types import Array, Block, Gaussian, Model

LogDensity = Callable[[Array], tuple[float, Array]]

# Chains start from fits this many times too wide, so that agreement between them means something.
DISPERSION = 2.0

# A place with less than e^−20 of the mass of another is none to start from.
NEGLIGIBLE = 20.0

STATS = ("logp", "energy", "diverging", "depth", "n_steps", "step_size", "mean_tree_accept")


class NutsResult(NamedTuple):
    """Draws (chains, draws, d), the statistics (chains, draws) of every draw, and the mode."""

    draws: Array
    stats: dict[str, Array]
    location: Array
    num_divergences: int
    """After the retry, if there was one."""
    num_retried: int
    """Divergences of the first attempt, which made a second necessary."""

    @property
    def max_rhat(self) -> float:
        """The largest split-R̂ of the parameters; 1 is agreement of the chains."""
        return max_rhat(self.draws)


class Chain(NamedTuple):
    """How one chain is run."""

    start: Array
    seed: int
    num_tune: int
    num_draws: int
    target_accept: float
    max_depth: int
    progress: bool


@dataclass(frozen=True, kw_only=True)
class NUTS:
    """Draws of π_w by Hamiltonian Monte Carlo. Cost: about 5 · (tune + draws) gradients, M·d each.

    Chains run one after the other: they would share the interpreter anyway, and so each is the
    same whatever runs beside it. Where `model.log_concave` is False every second chain starts
    from the mode that a draw of the prior leads to, so that a second mode shows as disagreement.
    When more than a share `tolerated` of the draws diverge, the run is repeated with `retry_accept`
    and twice the tuning. No draw takes more than 2^`max_depth` gradients.
    """

    num_tune: int = 300
    chains: int = 2
    target_accept: float = 0.8
    retry_accept: float = 0.99
    tolerated: float = 0.0
    max_depth: int = 10

    def __post_init__(self) -> None:
        check_fields(
            self,
            target_accept=(0.0, 1.0),
            retry_accept=(0.0, 1.0),
            tolerated=0.0,
        )

    def draw(
        self,
        rng: np.random.Generator,
        model: Model,
        rows: Block,
        weights: Array,
        num_draws: int,
        start: Array | None = None,
    ) -> tuple[Array, Array]:
        """`num_draws` draws shared out among the chains, chain after chain."""
        each = -(-num_draws // self.chains)
        result = self.run(rng, model, rows, weights, num_draws=each, start=start)
        return result.draws.reshape(-1, model.dim)[:num_draws], result.location

    def run(
        self,
        rng: np.random.Generator,
        model: Model,
        rows: Block,
        weights: Array,
        *,
        num_draws: int,
        start: Array | None = None,
        progress: bool = False,
    ) -> NutsResult:
        """`chains` chains of `num_draws` draws each, after `num_tune` draws of tuning."""
        log_density = _log_density(model, rows, weights)
        fits = _fits(rng, model, rows, weights, log_density, self.chains, start)
        frame = max(fits, key=lambda fit: _log_mass(log_density, fit))
        chains = [
            Chain(
                start=_dispersed(rng, log_density, frame, fits[chain % len(fits)]),
                seed=int(rng.integers(2**62)),
                num_tune=self.num_tune,
                num_draws=num_draws,
                target_accept=self.target_accept,
                max_depth=self.max_depth,
                progress=progress,
            )
            for chain in range(self.chains)
        ]
        draws, stats = _run(log_density, frame, chains)
        diverging = int(stats["diverging"].sum())
        retried = diverging if diverging > self.tolerated * stats["diverging"].size else 0
        if retried:
            careful = [
                chain._replace(num_tune=2 * self.num_tune, target_accept=self.retry_accept)
                for chain in chains
            ]
            again = _run(log_density, frame, careful)
            if again[1]["diverging"].sum() <= retried:
                draws, stats = again
        return NutsResult(draws, stats, frame.mean, int(stats["diverging"].sum()), retried)


def import_nutpie() -> Any:
    """nutpie, or what to install. Its imports warn about other libraries' futures: silenced."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module("nutpie")
        except ImportError as error:
            error.add_note('NUTS needs nutpie: pip install "corebayes[sample]"')
            raise


def _log_density(model: Model, rows: Block, weights: Array) -> LogDensity:
    """θ ↦ log π_0(θ) + Σ_i w_i f_i(θ) and its gradient."""

    def log_density(theta: Array) -> tuple[float, Array]:
        # A trajectory may fly off before the step size is tuned; what overflows is rejected.
        with np.errstate(all="ignore"):
            draw = theta[None, :]
            # Rows first: an adapted model computes its prior with them.
            value = model.sum_potentials(draw, rows, weights)[0] + model.log_prior(draw)[0]
            gradient = model.gradient(theta, rows, weights) + model.log_prior_gradient(theta)
        return float(value), gradient

    return log_density


def _fits(
    rng: np.random.Generator,
    model: Model,
    rows: Block,
    weights: Array,
    log_density: LogDensity,
    chains: int,
    start: Array | None,
) -> list[Gaussian]:
    """Where chains start, in turn: the mode from `start`, and between those, other modes.

    Not from where next to nothing is, such as the spike at scale zero of a hierarchy, from which a
    chain would take very long to return.
    """
    first = _fit(model, rows, weights, start)
    if model.log_concave or chains == 1:
        return [first]
    prior = prior_fit(model, rows.take(slice(0, 0)))
    others = [_fit(model, rows, weights, theta) for theta in prior.draw(rng, chains // 2)]
    masses = np.array([_log_mass(log_density, fit) for fit in (first, *others)])
    heavy = masses >= masses.max() - NEGLIGIBLE
    if not heavy[0]:
        # The mode from `start` is itself such a place.
        first = others[int(np.argmax(masses[1:]))]
    others = [fit if kept else first for fit, kept in zip(others, heavy[1:], strict=True)]
    return [fit for other in others for fit in (first, other)]


def _fit(model: Model, rows: Block, weights: Array, start: Array | None) -> Gaussian:
    """The Laplace fit from `start`; unit scales there when the density has no usable mode."""
    try:
        with np.errstate(all="ignore"):
            fit = Laplace().fit(model, rows, weights, start)
        if np.all(np.isfinite(fit.mean)) and np.all(np.isfinite(fit.factor)):
            return fit
    except (FloatingPointError, np.linalg.LinAlgError):
        pass
    return Gaussian(np.zeros(model.dim) if start is None else start, np.eye(model.dim))


def _log_mass(log_density: LogDensity, fit: Gaussian) -> float:
    """Laplace's log density · |L|. The height alone would prefer a spike to where the mass is."""
    log_mass = log_density(fit.mean)[0] + log_volume(fit)
    return log_mass if np.isfinite(log_mass) else -np.inf


def _dispersed(
    rng: np.random.Generator, log_density: LogDensity, frame: Gaussian, fit: Gaussian
) -> Array:
    """A start z in the frame, from the fit made wider; nearer where the density is not finite."""
    offset = DISPERSION * rng.standard_normal(fit.mean.size)
    for _ in range(60):
        check_time()
        theta = fit.mean + fit.factor @ offset
        value, gradient = log_density(theta)
        if np.isfinite(value) and np.all(np.isfinite(gradient)):
            z = np.linalg.solve(frame.factor, theta - frame.mean)
            return np.asarray(z, dtype=np.float64)
        offset = 0.5 * offset
    raise ValueError(
        "the log density of the coreset posterior is not finite near its mode; check the model's "
        f"log likelihood and log prior at θ = {fit.mean}"
    )


def _run(
    log_density: LogDensity, frame: Gaussian, chains: list[Chain]
) -> tuple[Array, dict[str, Array]]:
    """Draws of θ (chains, draws, d) and their statistics."""
    traces = [_run_chain(log_density, frame, chain) for chain in chains]
    z = np.stack([trace.posterior["z"].values[0] for trace in traces])
    stats = {
        name: np.stack([trace.sample_stats[name].values[0] for trace in traces]) for name in STATS
    }
    return frame.mean + z @ frame.factor.T, stats


def _run_chain(log_density: LogDensity, frame: Gaussian, chain: Chain) -> Any:
    """nutpie's trace of one chain in z."""
    nutpie = import_nutpie()
    from_pyfunc: Any = importlib.import_module("nutpie.compiled_pyfunc").from_pyfunc
    failures: list[Exception] = []
    deadline = current_deadline()

    def whitened(z: Array) -> tuple[float, Array]:
        # An exception must not cross nutpie's threads: keep it, and raise it when they are done.
        if not failures:
            try:
                deadline.check()
                value, gradient = log_density(frame.mean + frame.factor @ z)
                return value, frame.factor.T @ gradient
            except Exception as error:
                failures.append(error)
        return np.nan, np.full_like(z, np.nan)

    def expand(*_: Any) -> Callable[[Array], dict[str, Array]]:
        return lambda z: {"z": z}

    compiled = from_pyfunc(
        chain.start.size,
        lambda: whitened,
        expand,
        ["float64"],
        [(chain.start.size,)],
        ["z"],
        make_initial_point_fn=lambda _seed: chain.start,  # pyright: ignore[reportUnknownLambdaType]
    )
    sampler = nutpie.sample(
        compiled,
        draws=chain.num_draws,
        tune=chain.num_tune,
        chains=1,
        cores=1,
        seed=chain.seed,
        target_accept=chain.target_accept,
        maxdepth=chain.max_depth,
        save_warmup=False,
        progress_bar=chain.progress,
        blocking=False,
    )
    # Waiting here, not in nutpie, lets an interrupt through instead of returning a short trace.
    try:
        trace = sampler.wait()
    except BaseException:
        sampler.cancel()
        if failures:
            raise failures[0] from None
        raise
    if failures:
        raise failures[0]
    return trace
