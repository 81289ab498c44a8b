"""The cheapest exact way to draw from π_w that works.

1. Conjugate models have draws in closed form.
2. Around the one mode of a log-concave π_w, independence Metropolis takes one vectorised call of
   the model; with many rows nearly every proposal is accepted. Where there may be several modes,
   in few parameters, around all that annealing finds (`modes/several.py`).
3. Mixed models of thousands of groups are drawn from with the effects integrated out.
4. Everything else is for NUTS, compiled where the model can be.

What was taken is in `Draws.how`, and what it is worth in its acceptance, R̂ and effective sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from corebayes.arguments import check_fields
from corebayes.models.structure import is_structured
from corebayes.samplers.draws import Draws
from corebayes.samplers.exact import Exact, is_conjugate
from corebayes.samplers.independence import Independence, Pilot, try_proposal
from corebayes.samplers.mixed.group_by_group import group_by_group
from corebayes.samplers.modes.several import pilot_of_all_modes
from corebayes.samplers.nuts import NUTS
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Proposal
from corebayes.samplers.wide import wide_proposal
from corebayes.types import Array

# Newton's method and mixtures with full covariances are for so many parameters; up to the second
# number particles that look for all modes are cheaper than chains.
MOST_PARAMETERS, FEW_PARAMETERS = 200, 5


@dataclass(frozen=True, kw_only=True)
class Automatic:
    """Draws of π_w itself: exact, by independence Metropolis, or by NUTS, in this order.

    `num_tune` and `target_accept` are for NUTS. Cost: a few thousand densities, or some hundred
    thousand gradients.
    """

    chains: int = 4
    num_tune: int = 500
    target_accept: float = 0.8

    def __post_init__(self) -> None:
        check_fields(self, target_accept=(0.0, 1.0))

    def draw(
        self,
        rng: Generator,
        posterior: Posterior,
        num_draws: int,
        start: Array | None = None,
        *,
        progress: bool = False,
    ) -> Draws:
        """Chains of num_draws / chains draws each, rounded up; `progress` is NUTS's."""
        each = -(-num_draws // self.chains)
        if is_conjugate(posterior.model):
            return Exact().draw(rng, posterior, each * self.chains).in_chains(self.chains)
        drawn = self._around_modes(rng, posterior, num_draws, start)
        if drawn is None:
            drawn = self.along_walls(rng, posterior, num_draws, start)
        if drawn is not None:
            return drawn
        drawn = group_by_group(rng, posterior, each * self.chains, start)
        if drawn is not None:
            return drawn.in_chains(self.chains)
        nuts = NUTS(chains=self.chains, num_tune=self.num_tune, target_accept=self.target_accept)
        return nuts.draw(rng, posterior, num_draws, start, progress=progress)

    def _around_modes(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None
    ) -> Draws | None:
        """Draws by independence Metropolis, if proposals cover π_w."""
        one = posterior.model.log_concave
        if posterior.dim > (MOST_PARAMETERS if one else FEW_PARAMETERS):
            return None
        if is_structured(posterior.model):
            # Funnels are no places for a mixture.
            return None
        independence = Independence(chains=self.chains)
        with np.errstate(all="ignore"):
            if one:
                pilot = independence.fit(rng, posterior, start)
            else:
                pilot = pilot_of_all_modes(rng, posterior)
        return None if pilot is None else self._run(rng, posterior, pilot, num_draws)

    def along_walls(
        self, rng: Generator, posterior: Posterior, num_draws: int, start: Array | None = None
    ) -> Draws | None:
        """The same where π_w is walled in some directions, and an ordinary one in all others."""
        with np.errstate(all="ignore"):
            proposal = wide_proposal(posterior, start)
            if proposal is None:
                return None
            pilot = try_proposal(rng, posterior, proposal)
        return self._run(rng, posterior, pilot, num_draws)

    def _run(
        self, rng: Generator, posterior: Posterior, pilot: Pilot, num_draws: int
    ) -> Draws | None:
        """By these proposals or, where one far out in a skewed tail was too heavy, by wider ones,
        which are still far cheaper than chains."""
        drawn = self._weighed(rng, posterior, pilot, num_draws)
        if drawn is None and isinstance(pilot.proposal, Proposal):
            with np.errstate(all="ignore"):
                wider = try_proposal(rng, posterior, pilot.proposal.widened())
            drawn = self._weighed(rng, posterior, wider, num_draws)
        return drawn

    def _weighed(
        self, rng: Generator, posterior: Posterior, pilot: Pilot, num_draws: int
    ) -> Draws | None:
        independence = Independence(chains=self.chains)
        if not independence.covers(pilot):
            return None
        with np.errstate(all="ignore"):
            drawn = independence.run(rng, posterior, pilot, num_draws)
        # The proposals that were made are more than the pilot's, and may have seen more.
        return drawn if drawn.pareto_k <= independence.max_pareto_k else None
