"""What to draw from for a posterior with one mode: Gaussians and t's around those of π_w and π."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from corebayes.certify.evidence import Covered, Ratios
from corebayes.coreset import Coreset
from corebayes.rows import Rows
from corebayes.samplers.convergence import pareto_k
from corebayes.samplers.laplace import Laplace, asked_posterior
from corebayes.samplers.parts import Part, draw_parts, log_mixture
from corebayes.samplers.posterior import Posterior
from corebayes.types import Array, Gaussian, Rng

# Proposals at which a mixture is tried on π_w, the largest k̂ of its ratios, and what share of
# them they must be worth.
TRIED, MAX_PARETO_K, LEAST_EFFICIENCY = 1000, 0.5, 0.2


def parts_around(fit: Gaussian) -> list[Part]:
    """A Gaussian, and a t for what is beyond it: the less so the more dimensions there are."""
    return [Part(fit), Part(fit, max(5.0, float(fit.mean.size)))]


def covers(rng: Rng, posterior: Posterior, parts: list[Part]) -> bool:
    """Whether weighted draws of these parts stand for π_w. Cost: M potentials for each."""
    draws = draw_parts(rng, parts, [-(-TRIED // len(parts))] * len(parts))
    with np.errstate(all="ignore"):
        logs = posterior.finite_log_density(draws)
    logs = logs - log_mixture(parts, np.full(len(parts), 1.0 / len(parts)), draws)
    if not np.isfinite(logs.max()):
        return False
    share = np.exp(2.0 * logsumexp(logs) - logsumexp(2.0 * logs)) / logs.size
    shape = pareto_k(np.maximum(logs, logs.max() - 700.0), 1.0)
    return share >= LEAST_EFFICIENCY and shape <= MAX_PARETO_K


class OneMode(Covered):
    """Draws around the mode of π_w and, unless a first look is clear, around that of π."""

    def at_least(self, number: int) -> Ratios:
        if len(self.draws) and len(self.parts) == 2:
            fit = self._full_fit(self.parts[0].fit.mean)
            if fit is not None:
                self.add_parts(parts_around(fit))
        return super().at_least(number)

    def _full_fit(self, start: Array) -> Gaussian | None:
        """The Laplace fit of π. Cost: a pass of N·d² flops for each of a few Newton steps."""
        try:
            with np.errstate(all="ignore"):
                fit = asked_posterior(
                    self.coreset.model, self.rows.ask, start=start, tolerance=1e-3
                )
        except (FloatingPointError, np.linalg.LinAlgError):
            return None
        return fit if np.all(np.isfinite(fit.mean)) and np.all(np.isfinite(fit.factor)) else None


def one_mode(rng: Rng, coreset: Coreset, rows: Rows) -> OneMode | None:
    """Evidence for a log-concave model; None where no Gaussian or t is like π_w."""
    posterior = Posterior.of(coreset)
    fit = Laplace().try_fit(posterior)
    if fit is None or not covers(rng, posterior, parts_around(fit)):
        return None
    return OneMode(rng, coreset, rows, parts_around(fit))
