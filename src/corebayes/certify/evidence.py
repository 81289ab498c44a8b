"""Draws with the log ratios of π to π_w there, added to until a verdict is clear.

`Covered` draws come from a mixture q of known density that covers π_w and π both; their weights are
π_w / q, with q the mixture of all that was drawn from so far, so no draw is lost when parts are
added (Veach and Guibas's balance heuristic). Since π / q is bounded, π may be wider than π_w or lie
beside it, and its ratios have no heavy tail all the same. `Chains` are draws of π_w itself, by a
sampler; first every sixteenth of them, then those between.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import logsumexp

from corebayes.certify.reweighted import Reweighted
from corebayes.coreset import Coreset, GroupCoreset
from corebayes.diagnostics import PASS_DRAWS
from corebayes.rows import Rows
from corebayes.samplers.draws import Draws
from corebayes.samplers.modes.cover import CoverMixture
from corebayes.samplers.parts import Part, draw_parts, log_mixture, squared_distances
from corebayes.samplers.posterior import Posterior
from corebayes.scan.heights import Heights
from corebayes.scan.query import Totals
from corebayes.tangent.group_heights import group_heights
from corebayes.tangent.monte_carlo import MonteCarloSpace
from corebayes.types import Array, Gaussian, Indices, Rng

# A draw of less than this weight may lie where the likelihood overflows.
NO_WEIGHT = 1e-3


# Nats to which a log ratio must be known, and R̂ beyond which chains disagree.
DIGITS, MAX_RHAT = 0.01, 1.05


class LostDigitsError(ValueError):
    """Sums so large that what they differ by is lost in rounding."""


class Ratios(NamedTuple):
    """Log ratios of π to π_w, (chains, draws), and the logs of weights of mean one."""

    values: Array
    log_weights: Array | None
    independent: bool


class Evidence(Protocol):
    def at_least(self, number: int) -> Ratios:
        """The ratios of so many draws, those of earlier calls among them."""
        ...

    def reweighted(self) -> Reweighted:
        """All draws so far, with the weights under which they are of the posterior of all rows."""
        ...


class Covered:
    """Independent draws of a mixture. Cost: N potentials for each new one."""

    def __init__(self, rng: Rng, coreset: Coreset, rows: Rows, proposal: CoverMixture) -> None:
        self.rng, self.coreset, self.rows = rng, coreset, rows
        self.posterior = Posterior.of(coreset)
        self.parts: list[Part] = list(proposal.parts)
        self.shares = proposal.shares
        self.counts = np.zeros(len(self.parts))
        self.draws = np.empty((0, coreset.model.dim))
        self.ours, self.ratios = np.empty(0), np.empty(0)

    def add_parts(self, parts: Sequence[Part], share: float) -> None:
        """A share of all draws is of these parts, evenly."""
        if not parts:
            return
        self.parts.extend(parts)
        added = np.full(len(parts), share / len(parts))
        self.shares = np.append((1.0 - share) * self.shares, added)
        self.counts = np.append(self.counts, np.zeros(len(parts)))

    def at_least(self, number: int) -> Ratios:
        missing = number - len(self.draws)
        if missing > 0:
            self._draw(missing)
        return Ratios(self.ratios[None], self.log_weights()[None], independent=True)

    def log_weights(self) -> Array:
        """log π_w / q, of mean one."""
        logs = self.ours - log_mixture(self.parts, self.counts / self.counts.sum(), self.draws)
        return logs - (logsumexp(logs) - np.log(logs.size))

    def reweighted(self) -> Reweighted:
        return Reweighted.of(self.draws, self.log_weights(), self.ratios)

    def shares_near(self, fit: Gaussian) -> tuple[float, float]:
        """The shares of π and of π_w that lie where the draws of a fit do."""
        dim, logs = fit.mean.size, self.log_weights()
        near = squared_distances(fit, self.draws) <= dim + 4.0 * np.sqrt(2.0 * dim)
        full = logs + self.ratios
        shares = [np.exp(values - logsumexp(values)) for values in (full, logs)]
        return float(shares[0][near].sum()), float(shares[1][near].sum())

    def _draw(self, number: int) -> None:
        # Later parts catch up with those that were drawn from before.
        goal = (len(self.draws) + number) * self.shares
        wanted = np.maximum(goal - self.counts, 0.0)
        counts = np.ceil(number * wanted / wanted.sum()).astype(int)
        fresh = draw_parts(self.rng, self.parts, counts.tolist())
        with np.errstate(all="ignore"):
            ours = self.posterior.finite_log_density(fresh)
        ratios = np.zeros(len(fresh))
        seen = np.isfinite(ours)
        anchor = self.parts[0].fit.mean
        ratios[seen] = log_ratios_at(self.coreset, self.rows, anchor, fresh[seen])
        self.counts = self.counts + counts
        self.draws = np.concatenate([self.draws, fresh])
        self.ours = np.concatenate([self.ours, ours])
        self.ratios = np.concatenate([self.ratios, ratios])
        self._drop_overflows()

    def _drop_overflows(self) -> None:
        """Draws that π_w hardly has get no weight where the full likelihood is not finite."""
        bad = ~np.isfinite(self.ratios)
        if not bad.any():
            return
        heavy = np.flatnonzero(bad & (self.log_weights() > np.log(NO_WEIGHT)))
        if heavy.size:
            name_the_row(self.coreset, self.rows, self.draws[heavy[:1]])
        self.ours[bad], self.ratios[bad] = -np.inf, 0.0


class Chains:
    """Draws of a sampler, evaluated a part at a time. Cost: N potentials for each new one."""

    def __init__(self, coreset: Coreset, rows: Rows, draws: Draws) -> None:
        self.coreset, self.rows, self.draws = coreset, rows, draws
        self.ratios: Array = np.full(draws.values.shape[:2], np.nan)

    def reweighted(self) -> Reweighted:
        known = ~np.isnan(self.ratios[0])
        ratios, weights = self.ratios[:, known], self.draws.weights
        with np.errstate(divide="ignore"):
            logs = np.zeros_like(ratios) if weights is None else np.log(weights[:, known])
        return Reweighted.of(self.draws.values[:, known], logs, ratios)

    def evaluated(self, number: int) -> tuple[Array, Array]:
        """The draws (chains, draws, d) that `at_least` this number are, and their ratios."""
        ratios = self.at_least(number).values
        known = ~np.isnan(self.ratios[0])
        places = np.flatnonzero(known)[:: max(1, int(known.sum()) // ratios.shape[1])]
        return self.draws.values[:, places], self.ratios[:, places]

    def at_least(self, number: int) -> Ratios:
        chains, length = map(int, self.draws.values.shape[:2])
        step = max(1, chains * length // number)
        # Nested: every power of four, so that what was evaluated is among what is.
        step = int(4 ** int(np.log(step) / np.log(4.0)))
        places: Indices = np.arange(0, length, step)
        fresh = places[np.isnan(self.ratios[0, places])]
        if fresh.size:
            values = self.draws.values[:, fresh].reshape(-1, self.draws.values.shape[2])
            anchor = self.draws.values[0, 0]
            found = log_ratios_at(self.coreset, self.rows, anchor, values)
            if not np.all(np.isfinite(found)):
                name_the_row(self.coreset, self.rows, values[~np.isfinite(found)][:1])
            self.ratios[:, fresh] = found.reshape(chains, -1)
        weights = self.draws.weights
        logs = None
        if weights is not None:
            taken = weights[:, places]
            with np.errstate(divide="ignore"):
                logs = np.log(taken / taken.mean())
        return Ratios(self.ratios[:, places], logs, self.draws.independent)


def log_ratios_at(coreset: Coreset, rows: Rows, anchor: Array, draws: Array) -> Array:
    """r(θ_s) − r(anchor), not finite where a likelihood is not. Cost: N·S potentials."""
    model = coreset.model
    parts: list[Array] = []
    for first in range(0, len(draws), PASS_DRAWS):
        part = np.concatenate([anchor[None], draws[first : first + PASS_DRAWS]])
        full = _heights(coreset, rows, part)
        if not np.isfinite(full[0]):
            name_the_row(coreset, rows, anchor[None])
        with np.errstate(all="ignore"):
            ours = model.sum_potentials(part, coreset.rows, coreset.weights)
            # Single draws may lie far away; the anchor is a place that π_w has.
            _check_digits(coreset, float(full[0]), float(ours[0]))
            parts.append((full - ours)[1:] - (full - ours)[0])
    return np.concatenate(parts) if parts else np.empty(0)


def _check_digits(coreset: Coreset, full: float, ours: float) -> None:
    """Differences of sums that are all rounding would be zero, and look like a perfect match."""
    size = max(abs(full), abs(ours))
    if size * np.finfo(np.float64).eps > DIGITS:
        raise LostDigitsError(
            f"log densities are sums of size {size:.1e} (the largest weight is "
            f"{float(np.abs(coreset.weights).max(initial=0.0)):.1e}), and what they differ by is "
            "lost in rounding. Build again with a larger size"
        )


def _heights(coreset: Coreset, rows: Rows, draws: Array) -> Array:
    """What all rows say, up to a constant; where groups are units, with their effects out."""
    if not isinstance(coreset, GroupCoreset):
        return rows.ask(Heights(coreset.model, draws))
    level_one, model = coreset.level_one, coreset.marginal
    groups = model.group_block(level_one.rows, level_one.weights)
    return group_heights(model, rows, groups, draws)


def name_the_row(coreset: Coreset, rows: Rows, draw: Array) -> None:
    """The error that names the row whose likelihood is not finite at a draw."""
    rows.ask(Totals(MonteCarloSpace(coreset.model, draw)))


def sampling_trouble(sampled: Draws) -> str | None:
    """Why draws of a sampler show nothing, if they do not."""
    if sampled.max_rhat > MAX_RHAT:
        return (
            f"the chains on the coreset ({sampled.how}) disagree (R̂ = {sampled.max_rhat:.3f}, "
            f"above {MAX_RHAT}): π_w has several modes or a difficult shape. Sample longer with "
            "sampler=NUTS(num_tune=2000, chains=4) and more draws"
        )
    if sampled.num_divergences:
        number = sampled.num_divergences
        return (
            f"{number} draw{'s' * (number > 1)} ({sampled.how}) diverged also with a smaller step, "
            "so parts of π_w are not explored. Reparametrise the model"
        )
    return None
