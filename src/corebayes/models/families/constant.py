"""The numbers of a family that all rows share: a noise, a shape, a probability of zeros."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from corebayes.models.numbers import check_finite, check_positive
from corebayes.models.priors.scale import ScalePrior

Transform = Literal["log", "logit", "identity"]
# Nats that a prior may fall by to the family's own middle and be called wide.
WIDE = 30.0


class Constant(NamedTuple):
    """A number that all rows share: u = transform(value) is a predictor."""

    name: str
    prior: ScalePrior
    """At u, with the Jacobian; the default where it is learned."""
    transform: Transform = "log"
    in_units_of_target: bool = False
    """Whether its default prior is to be multiplied by the standard deviation of the target."""

    @property
    def label(self) -> str:
        """What the parameter u is called."""
        return self.name if self.transform == "identity" else f"{self.transform} {self.name}"

    def begins(self, usual: ScalePrior) -> float:
        """Where a fit may start: at the prior's mode, or at that of the family's own prior.

        A prior as wide as nothing has its mode far out, where some families have hardly a number
        (a Weibull shape of a hundred).
        """
        own, other = np.array([self.prior.mode]), np.array([usual.mode])
        falls = self.prior.log_density(own) - self.prior.log_density(other)
        wide = not self.in_units_of_target and float(falls[0]) < WIDE
        return float(other[0] if wide else own[0])

    def check(self, value: float | None) -> None:
        """Refuse a value that it cannot have; None is one that is learned."""
        if value is None:
            return
        if self.transform == "identity":
            return check_finite(value, self.name)
        check_positive(value, self.name)
        if self.transform == "logit" and value >= 1.0:
            raise ValueError(f"{self.name} must be between 0 and 1, got {value!r}")

    def on_line(self, value: float) -> float:
        """u of a known value."""
        if self.transform == "identity":
            return float(value)
        return float(np.log(value) - (np.log1p(-value) if self.transform == "logit" else 0.0))
