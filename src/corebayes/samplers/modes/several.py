"""Proposals for all modes of a posterior of few rows, so that chains cross between them.

NUTS stays in the mode that it starts in. Particles annealed from the prior find the modes of few
parameters, a mixture around them or around clusters of the particles covers π_w, and what
annealing says of log Z_w must be what the mixture says, or a mode was missed.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from corebayes.samplers.independence import Pilot, try_proposal
from corebayes.samplers.modes import cover
from corebayes.samplers.modes.high_places import with_high_modes
from corebayes.samplers.modes.places import all_places, most_fits, spread
from corebayes.samplers.modes.search import modes_of_particles
from corebayes.samplers.posterior import Posterior
from corebayes.samplers.proposal import Component, Proposal

# Nats by which log Z_w of annealing and of the mixture may differ.
GAP = 0.5


def pilot_of_all_modes(rng: Generator, posterior: Posterior) -> Pilot | None:
    """A mixture that covers π_w around all of its modes; None where none is known to.

    Cost: a thousand particles on M rows, some fits, and a few thousand densities.
    """
    annealed, starts = spread(rng, posterior)
    if annealed is None:
        return None
    modes = modes_of_particles(posterior, starts, most=most_fits(posterior.model))
    modes = with_high_modes(posterior, all_places(rng, posterior, annealed), modes)
    if not modes:
        return None
    covered = cover.cover(rng, posterior, modes, annealed.particles)
    if covered is None or abs(annealed.log_evidence - covered[1].log_evidence) > GAP:
        return None
    parts, shares = covered[0]
    components = zip(parts, shares.tolist(), strict=True)
    proposal = Proposal(tuple(Component(part.fit, s, part.degrees) for part, s in components))
    with np.errstate(all="ignore"):
        return try_proposal(rng, posterior, proposal)
