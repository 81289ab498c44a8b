"""The priors of a family's constants that are learned: those that are given, and its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np

from corebayes.models.priors.coefficient import Flat
from corebayes.models.priors.scale import OnLine, ScalePrior


def given_learned(family: Any, given: Any) -> dict[str, ScalePrior]:
    """The priors that somebody gave for constants that are to be learned, by name.

    `given` is a mapping by name, one prior alone for the first constant, or None. The family's own
    `prior` may name some as well.
    """
    constants = [one.name for one in family.learnable]
    if given is None:
        given = {}
    elif not isinstance(given, Mapping):
        given = {next(iter(constants), ""): given}
    named = {str(name): as_prior(prior) for name, prior in given.items()}  # pyright: ignore
    for name in named:
        if not constants:
            raise ValueError(f"{type(family).__name__} has no constant that could be learned")
        if name not in constants and not family.may_learn(name):
            raise ValueError(
                f"{type(family).__name__} has no constant {name!r} that could be learned; it has "
                f"{', '.join(constants)}"
            )
    return {**constants_given(family.prior, family.learnable), **named}


def constants_given(prior: Any, learnable: Iterable[Any]) -> dict[str, ScalePrior]:
    """The constants that a family's own `prior` names."""
    if not isinstance(prior, Mapping):
        return {}
    given = cast(Mapping[str, Any], prior)
    named = {one.name: given[one.name] for one in learnable if one.name in given}
    for name, one in named.items():
        if isinstance(one, Flat):
            raise ValueError(
                f"the prior of {name!r} is flat: the posterior of a constant that few rows say "
                "little about need not exist; give HalfNormal(…) or HalfStudentT(4, …)"
            )
    return {name: as_prior(one) for name, one in named.items()}


def learned_priors(family: Any, given: Any) -> dict[str, ScalePrior]:
    """The priors of the constants that are learned, by name, in the family's order: those that are
    given, and the family's own for constants that have no number."""
    unknown = {one.name: one.prior for one in family.unknown}
    every = {**unknown, **given_learned(family, given)}
    return {one.name: every[one.name] for one in family.learnable if one.name in every}


def as_prior(prior: Any) -> ScalePrior:
    """A prior of one number; Normal(mean, sd) is one of a number anywhere on the line."""
    if isinstance(prior, ScalePrior):
        return prior
    mean, sd = getattr(prior, "mean", None), getattr(prior, "sd_or_cov", None)
    if mean is None or sd is None or np.ndim(mean) or np.ndim(sd):
        raise TypeError(f"a prior such as HalfNormal(1.0) is wanted, got {prior!r}")
    return OnLine(float(mean), float(sd))
