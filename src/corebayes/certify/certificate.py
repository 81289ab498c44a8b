"""What a certificate says, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from corebayes.certify.kl import Measured
from corebayes.certify.marginals import Marginals, nats
from corebayes.certify.reweighted import Reweighted
from corebayes.coreset import Coreset, nearer, sentence
from corebayes.coreset.check import has_learned_rows
from corebayes.files.markup import element, notebook
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
    upper: float | None = None
    """KL(π_w ‖ π) is at most this, with a confidence of 97.5 %."""
    total_variation: float | None = None
    """A bound on the change of any probability: Pinsker or Bretagnolle–Huber, at + 2 errors."""
    pareto_k: float | None = None
    """k̂ of the importance ratios π/π_w."""
    effective_sample_size: float | None = None
    """Of the importance-weighted draws: how many draws of π they are worth."""
    num_modes: int | None = None
    """The modes that were found and compared, where the model is not log-concave."""
    num_draws: int
    """Draws at which all rows were evaluated; none where KL has a closed form."""
    max_rhat: float = 1.0
    num_divergences: int = 0
    tol: float
    certified: bool
    """Whether KL(π_w ‖ π) plus two standard errors is at most `tol`."""
    fault: str | None = None
    """What stood in the way of a certificate: "coreset", "draws", "search", or "model", under which
    weighted rows have no posterior, however many there are."""
    verdict: str
    marginals: Marginals | None = None
    """Of models whose rows touch few parameters: what changes about single parameters, and about
    those that all rows share."""
    reweighted: Reweighted | None = field(default=None, repr=False, compare=False)
    """The draws with weights under which they are of the posterior of all rows, where KL is given:
    `np.average(found.reweighted.draws, axis=0, weights=found.reweighted.weights)` is its mean."""

    def __str__(self) -> str:
        lines = [self.verdict, ""]
        for label, kl in (
            ("KL(coreset ‖ full)", self.reverse_kl),
            ("KL(full ‖ coreset)", self.forward_kl),
            ("symmetrised KL", self.symmetrised_kl),
        ):
            below = self.num_modes is not None and kl == (LEAST_SEEN, 0.0)
            words = "withheld" if kl is None else f"{'below ' if below else ''}{nats(kl)}"
            lines.append(f"  {label:<20}{words}")
        if self.pareto_k is not None and self.effective_sample_size is not None:
            lines.append(f"  {'Pareto k̂':<21}{self.pareto_k:.2f}")
            lines.append(
                f"  {'effective draws':<20}{self.effective_sample_size:,.0f} of {self.num_draws:,}"
            )
        if self.marginals is not None:
            lines.append(str(self.marginals))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title, _, details = str(self).partition("\n")
        return notebook(title, element("pre", details.strip("\n")))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and None, for JSON."""
        plain = asdict(replace(self, reweighted=None))
        del plain["reweighted"]
        for name in ("reverse_kl", "forward_kl", "symmetrised_kl"):
            kl: Estimate | None = getattr(self, name)
            plain[name] = None if kl is None else kl._asdict()
        if self.marginals is not None:
            plain["marginals"] = {
                name: value._asdict() if isinstance(value, Estimate) else value
                for name, value in self.marginals._asdict().items()
            }
        # JSON has no infinity.
        for name in ("max_rhat", "pareto_k"):
            if plain[name] is not None and not np.isfinite(plain[name]):
                plain[name] = None
        return plain


# Modes with a smaller share of the mass are not looked for, so no smaller KL is given.
LEAST_SEEN = 1e-3


def judged(
    coreset: Coreset,
    found: Measured,
    tol: float,
    *,
    num_draws: int,
    num_modes: int | None = None,
    max_rhat: float = 1.0,
    num_divergences: int = 0,
    because: str = "",
    unseen: str | None = None,
    own_sampler: bool = False,
) -> Certificate:
    """The certificate of what was measured, with its verdict; `because` of what it is not one, and
    why modes may be `unseen`. Modes that the user's `own_sampler` does not visit are the user's."""
    about: dict[str, Any] = {
        "pareto_k": found.pareto_k,
        "effective_sample_size": found.effective,
        "num_modes": num_modes,
        "num_draws": num_draws,
        "max_rhat": max_rhat,
        "num_divergences": num_divergences,
    }
    if found.trouble is not None:
        trouble = (
            f"the importance ratios π/π_w {found.trouble}: π_w is far from π, or misses part of "
            f"it. {sentence(nearer(coreset))}"
        )
        return withheld(coreset, trouble, "coreset", tol, **about)
    fault = _fault(found, tol)
    if num_modes is not None:
        found = found.no_less_than(LEAST_SEEN)
        if fault is None and (unseen is not None or tol < LEAST_SEEN):
            fault = "search"
    forward = found.forward.value + 2.0 * found.forward.standard_error
    variation = total_variation(min(found.upper, forward))
    around = "" if num_modes is None else f", around the {_modes(num_modes)} found"
    if own_sampler:
        around = ", where the draws of this sampler lie"
    return Certificate(
        reverse_kl=found.reverse,
        forward_kl=found.forward,
        symmetrised_kl=found.symmetrised,
        upper=found.upper,
        total_variation=variation,
        tol=tol,
        certified=fault is None,
        fault=fault,
        verdict=_verdict(coreset, found, variation, tol, fault, around, because, unseen),
        **about,
    )


def with_marginals(found: Certificate, marginals: Marginals) -> Certificate:
    """The same with what it says of single parameters, in the verdict where that is more."""
    verdict = found.verdict
    if found.fault == "coreset" and marginals.are_fine(found.tol):
        verdict = f"{verdict} {marginals.sentence}"
    return replace(found, marginals=marginals, verdict=verdict)


def _fault(found: Measured, tol: float) -> str | None:
    if found.upper <= tol:
        return None
    return "draws" if found.reverse.value <= tol else "coreset"


def _verdict(
    coreset: Coreset,
    found: Measured,
    variation: float,
    tol: float,
    fault: str | None,
    around: str,
    because: str,
    unseen: str | None,
) -> str:
    distance = f"{nats(found.reverse)} of the full posterior (KL(π_w‖π))"
    if fault is None:
        return (
            f"T{_name(coreset)[1:]} is within {distance}{around}; no expectation of a bounded "
            f"function moves by more than {_percent(variation)} of its range [Pinsker]."
        )
    if fault == "search" and unseen is not None:
        return (
            f"Not certified: {_name(coreset)} is within {distance}{around}, but no search can tell "
            f"that there is no other, since {unseen}. Where it is known that there is none, "
            "certify with sampler=NUTS(chains=4), or declare the model log-concave."
        )
    if fault == "search":
        return (
            f"Not certified: {_name(coreset)} is within {distance}{around}, and no search for "
            f"others sees less. Certify with a tolerance of {LEAST_SEEN:g} nats or more."
        )
    if fault == "draws":
        return (
            f"Not certified: {_name(coreset)} is within {distance}, but these draws do not show "
            f"that it is at most the tolerance of {tol:g} nats: two standard errors lead above. "
            f"Certify with more draws, or {nearer(coreset)}."
        )
    return (
        f"Not certified: {_name(coreset)} is only within {distance}{around}, more than the "
        f"tolerance of {tol:g} nats with two standard errors to spare{because}. "
        f"{sentence(nearer(coreset))}."
    )


def withheld(coreset: Coreset, trouble: str, fault: str, tol: float, **about: Any) -> Certificate:
    """The certificate when no number can be given, with why and what to do about it."""
    verdict = f"Not certified: no distance can be given for {_name(coreset)}, because {trouble}."
    return Certificate(tol=tol, certified=False, fault=fault, verdict=verdict, **about)


def total_variation(kl: float) -> float:
    """min(√(KL/2), √(1 − e^−KL)): Pinsker for small KL, Bretagnolle and Huber for large."""
    return float(np.sqrt(min(kl / 2.0, -np.expm1(-kl))))


def _modes(number: int) -> str:
    return "one mode that was" if number == 1 else f"{number} modes that were"


def _name(coreset: Coreset) -> str:
    if has_learned_rows(coreset):
        return (
            f"the coreset posterior ({coreset.size:,} learned rows, which cannot be compared with "
            f"the {coreset.num_counted:,} of the data)"
        )
    return f"the coreset posterior ({coreset.size:,} of {coreset.num_counted:,} {coreset.noun})"


def _percent(share: float) -> str:
    """Rounded up, to two digits: it is a bound."""
    percent = 100.0 * share
    if percent <= 0.0:
        return "0 %"
    place = 10.0 ** (np.floor(np.log10(percent)) - 1)
    return f"{np.ceil(percent / place) * place:.3g} %"
