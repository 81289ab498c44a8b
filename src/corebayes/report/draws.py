"""Draws of the coreset posterior, and each parameter's under the posterior of all rows as well.

For θ_s ~ π_w and the log ratios r(θ_s) = log π/π_w up to a constant, expectations under π are

    E_π h ≈ Σ_s u_s h(θ_s),     u_s = e^{r_s} / Σ_t e^{r_t}        (importance sampling)

so the same draws show both posteriors, and what tells them apart is not the luck of the draws.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from corebayes.coreset import Coreset
from corebayes.report.summary import describe
from corebayes.samplers.chain import import_nutpie
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array

NUM_CHAINS, NUM_TUNE = 4, 500


class Drawn(NamedTuple):
    """Draws (chains, draws, d) of π_w and what was seen while drawing."""

    draws: Array
    seconds: float
    stats: Mapping[str, Array] | None
    """NUTS's statistics of every draw; None when draws are exact and independent."""

    @property
    def flat(self) -> Array:
        return self.draws.reshape(-1, self.draws.shape[2])

    @property
    def num_gradients(self) -> float:
        """Of the whole run; those of tuning at the average of the draws after it."""
        if self.stats is None:
            return 0.0
        chains, number, _ = self.draws.shape
        return float(np.mean(self.stats["n_steps"])) * chains * (number + NUM_TUNE)


class DrawnParameter(NamedTuple):
    """One number of the model: its draws under π_w, and what they come to."""

    name: str
    values: Array
    summary: dict[str, Any]
    corrected: tuple[float, float] | None = None
    """Mean and sd under π."""
    exact: Array | None = None
    """Draws under π, where those under π_w cannot be weighted to show it."""

    @property
    def shift(self) -> float:
        """How far the correction moves the mean, in posterior standard deviations."""
        if self.corrected is None or not self.summary["sd"] > 0.0:
            return 0.0
        return (self.corrected[0] - self.summary["mean"]) / self.summary["sd"]


def draw(coreset: Coreset, num_draws: int, seed: int) -> Drawn:
    """Exact draws of conjugate models; otherwise NUTS, four chains."""
    rng, posterior = np.random.default_rng(seed), Posterior.of(coreset)
    if is_conjugate(coreset.model):
        began = time.perf_counter()
        exact = Exact().draw(rng, posterior, num_draws)
        return Drawn(exact.values, time.perf_counter() - began, None)
    # Loading the library is none of the sampler's time.
    import_nutpie()
    began = time.perf_counter()
    draws = NUTS(num_tune=NUM_TUNE, chains=NUM_CHAINS).draw(rng, posterior, num_draws)
    return Drawn(draws.values, time.perf_counter() - began, draws.stats)


def importance_shares(log_ratios: Array) -> Array:
    """u_s = e^{r_s} / Σ_t e^{r_t}, safe where r is huge."""
    shares = np.exp(log_ratios - log_ratios.max())
    return shares / shares.sum()


def parameters(
    coreset: Coreset, drawn: Drawn, shares: Array | None, exact: Array | None = None
) -> tuple[DrawnParameter, ...]:
    """Every parameter under its own name, with both means and standard deviations."""
    found: list[DrawnParameter] = []
    exactly = {} if exact is None else dict(_named(coreset.model, exact))
    for name, values in _named(coreset.model, drawn.flat):
        corrected, theirs = None, exactly.get(name)
        if theirs is not None:
            corrected = float(theirs.mean()), float(theirs.std(ddof=1))
        if shares is not None:
            mean = float(shares @ values)
            corrected = mean, float(np.sqrt(shares @ np.square(values - mean)))
        summary = describe(name, values.reshape(drawn.draws.shape[:2]))
        found.append(DrawnParameter(name, values, summary, corrected, theirs))
    return tuple(found)


def _named(model: Any, draws: Array) -> Iterator[tuple[str, Array]]:
    """The scalars of the model's own variables, or of θ where it has no others."""
    if not hasattr(model, "constrain"):
        yield from zip(model.parameter_names, draws.T, strict=True)
        return
    for name, values in model.constrain(draws).items():
        axes = model.dims.get(name, ())
        labels = [model.coords.get(axis) for axis in axes] or [None] * (values.ndim - 1)
        for place in np.ndindex(*values.shape[1:]):
            entry = ",".join(
                str(k if names is None else names[k])
                for k, names in zip(place, labels, strict=True)
            )
            yield (f"{name}[{entry}]" if entry else name), np.asarray(values[:, *place], float)
