"""What a weight update is."""

from __future__ import annotations

from typing import Protocol

from corebayes.tangent.geometry import Restriction
from corebayes.types import Array, Rng


class WeightUpdate(Protocol):
    """Moves the weights of a fixed active set towards lower KL(π_w ‖ π), keeping w ≥ 0.

    After a selection the row just selected is the last one, whether it is new (its weight is zero)
    or was active before, so that an update of a single weight knows which one to move.
    """

    def run(self, rng: Rng, restriction: Restriction, weights: Array) -> Array: ...
