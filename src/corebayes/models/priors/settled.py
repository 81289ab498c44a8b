"""The priors of a regression once its rows have been seen: which each parameter has, and why.

Settled when the model is bound, then fixed: bound again, to other rows or to fewer columns, a model
keeps them, and a file has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from corebayes.models.mixed.design import BoundMixed, Learned, MixedDesign
from corebayes.models.priors.default import at_any_zero, by_name, in_units, stated_priors
from corebayes.models.priors.given import Given
from corebayes.models.priors.learned import given_learned, learned_priors
from corebayes.models.priors.moments import ColumnMoments
from corebayes.models.priors.normal import GaussianPrior, Normal
from corebayes.models.priors.scale import OnLine, scale_prior_from_config
from corebayes.models.priors.stated import DEFAULT, GIVEN, PartialGaussian, StatedPriors


class Settled(NamedTuple):
    """The last fields of `BoundMixed`."""

    prior: GaussianPrior | PartialGaussian
    stated: StatedPriors | None
    learned: tuple[Learned, ...]
    given: Given


def settle(
    ready: MixedDesign, moments: ColumnMoments, earlier: BoundMixed | None = None
) -> Settled:
    """The priors of a model that is bound but for these; `earlier` is what it was bound to."""
    family, given = ready.family, ready.family.prior
    if earlier is not None and earlier.given is not given:
        earlier = None
    learned = _learned(ready, moments, earlier)
    if isinstance(given, Normal):
        return Settled(ready.known.prior, None, learned, given)
    constants = {one.name for one in family.learnable}
    names = ready.fixed_names
    chosen = by_name(given, names, ready.design_names, constants)
    known = None if earlier is None else earlier.stated
    stated = stated_priors(family, chosen, names, moments, known)
    return Settled(stated.normal, stated, learned, given)


def _learned(
    ready: MixedDesign, moments: ColumnMoments, earlier: BoundMixed | None
) -> tuple[Learned, ...]:
    family = ready.family
    given = given_learned(family, ready.learned)
    before = {} if earlier is None else {one.name: one for one in earlier.learned}
    units = {one.name for one in family.learnable if one.in_units_of_target}
    result = list[Learned]()
    for name, prior in learned_priors(family, ready.learned).items():
        if name in given:
            result.append(Learned(name, prior, GIVEN))
        elif name in before:
            result.append(before[name])
        else:
            own = in_units(prior, family, moments) if name in units else prior
            if isinstance(own, OnLine):
                own = at_any_zero(own, moments)
            result.append(Learned(name, own, DEFAULT))
    return tuple(result)


def settled_config(bound: BoundMixed) -> dict[str, Any]:
    """As JSON has it."""
    return {
        "priors": None if bound.stated is None else bound.stated.config(),
        "learned": [[one.name, one.prior.config(), one.source] for one in bound.learned],
    }


def settled_from_config(ready: MixedDesign, config: Mapping[str, Any] | None) -> Settled:
    """What gave `settled_config(bound)`; files of earlier versions have none."""
    given, prior = ready.family.prior, ready.known.prior
    if config is None:
        if not isinstance(given, Normal):
            raise ValueError("it does not say what its priors are")
        learned = learned_priors(ready.family, ready.learned)
        return Settled(prior, None, tuple(Learned(k, v, GIVEN) for k, v in learned.items()), given)
    learned = tuple(
        Learned(str(name), scale_prior_from_config(prior), str(source))
        for name, prior, source in config["learned"]
    )
    if tuple(one.name for one in learned) != tuple(one.name for one in ready.constants):
        raise ValueError("its learned constants are not those of its family")
    if config["priors"] is None:
        if not isinstance(given, Normal):
            raise ValueError("it does not say what its priors are")
        return Settled(prior, None, learned, given)
    stated = StatedPriors.from_config(config["priors"])
    if stated.names != ready.fixed_names:
        raise ValueError("its priors are not of its fixed effects")
    return Settled(stated.normal, stated, learned, given)


def without_defaults(config: Any) -> Any:
    """The priors of a config that somebody gave, by name: what two models can be compared by."""
    if config is None:
        return None
    if "learned" in config:
        given = {name: prior for name, prior, source in config["learned"] if source == GIVEN}
        return given, without_defaults(config["priors"])
    entries = config["entries"]
    return {name: prior for name, prior, source, _ in entries if source == GIVEN}
