"""What a certificate says, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from corebayes.coreset import Coreset
from corebayes.coreset.check import has_learned_rows
from corebayes.types import Estimate


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What `certify` found. KL fields are None when the draws cannot support a number."""

    reverse_kl: Estimate | None = None
    """KL(π_w ‖ π) in nats."""
    forward_kl: Estimate | None = None
    """KL(π ‖ π_w) in nats."""
    symmetrised_kl: Estimate | None = None
    """Their sum."""
    total_variation: float | None = None
    """A bound on the change of any probability: Pinsker or Bretagnolle–Huber, at + 2 errors."""
    pareto_k: float | None = None
    """k̂ of the importance ratios π/π_w."""
    effective_sample_size: float | None = None
    """Of the importance-weighted draws: how many draws of π they are worth."""
    num_draws: int
    max_rhat: float
    num_divergences: int
    tol: float
    certified: bool
    """Whether KL(π_w ‖ π) plus two standard errors is at most `tol`."""
    verdict: str

    def __str__(self) -> str:
        lines = [self.verdict, ""]
        for label, kl in (
            ("KL(coreset ‖ full)", self.reverse_kl),
            ("KL(full ‖ coreset)", self.forward_kl),
            ("symmetrised KL", self.symmetrised_kl),
        ):
            lines.append(f"  {label:<20}" + ("withheld" if kl is None else _nats(kl)))
        if self.pareto_k is not None and self.effective_sample_size is not None:
            lines.append(f"  {'Pareto k̂':<21}{self.pareto_k:.2f}")
            lines.append(
                f"  {'effective draws':<20}{self.effective_sample_size:,.0f} of {self.num_draws:,}"
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and None, for JSON."""
        plain = asdict(self)
        for name in ("reverse_kl", "forward_kl", "symmetrised_kl"):
            kl: Estimate | None = getattr(self, name)
            plain[name] = None if kl is None else kl._asdict()
        # JSON has no infinity.
        for name in ("max_rhat", "pareto_k"):
            if plain[name] is not None and not np.isfinite(plain[name]):
                plain[name] = None
        return plain


def measured(
    coreset: Coreset, kl: Estimate, variation: float, tol: float, *, certified: bool
) -> str:
    """The verdict when there is a number."""
    distance = f"{_nats(kl)} of the full posterior (KL(π_w‖π))"
    if certified:
        return (
            f"T{_name(coreset)[1:]} is within {distance}; no expectation of a bounded function "
            f"moves by more than {_percent(variation)} of its range [Pinsker]."
        )
    return (
        f"Not certified: {_name(coreset)} is only within {distance}, more than the tolerance of "
        f"{tol:g} nats with two standard errors to spare. Build with a larger size."
    )


def withheld(coreset: Coreset, trouble: str) -> str:
    """The verdict when there is none."""
    return f"Not certified: no distance can be given for {_name(coreset)}, because {trouble}."


def _name(coreset: Coreset) -> str:
    if has_learned_rows(coreset):
        return (
            f"the coreset posterior ({coreset.size:,} learned rows, which cannot be compared with "
            f"the {coreset.num_rows:,} of the data)"
        )
    return f"the coreset posterior ({coreset.size:,} of {coreset.num_rows:,} rows)"


def _nats(kl: Estimate) -> str:
    """Two digits of the error, and the value to the same place."""
    value, error = kl
    if error <= 0.0:
        return f"{value:.2g} nats"
    digits = 1 - int(np.floor(np.log10(error)))
    if 0 <= digits <= 6:
        return f"{value:.{digits}f} ± {error:.{digits}f} nats"
    return f"{value:.2e} ± {error:.0e} nats" if digits > 6 else f"{value:.0f} ± {error:.0f} nats"


def _percent(share: float) -> str:
    """Rounded up, to two digits: it is a bound."""
    percent = 100.0 * share
    if percent <= 0.0:
        return "0 %"
    place = 10.0 ** (np.floor(np.log10(percent)) - 1)
    return f"{np.ceil(percent / place) * place:.3g} %"
