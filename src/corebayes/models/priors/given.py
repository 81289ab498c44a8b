"""What people give as `prior`: nothing, one prior for all coefficients, or some by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from corebayes.models.priors.coefficient import CoefficientPrior
from corebayes.models.priors.horseshoe import Horseshoe, Shrunk
from corebayes.models.priors.normal import Normal
from corebayes.models.priors.scale import ScalePrior, scale_prior_from_config
from corebayes.models.priors.stated import prior_config, prior_from_config

OnePrior = Normal | CoefficientPrior | Horseshoe | ScalePrior
Given = Normal | CoefficientPrior | Horseshoe | Mapping[str, OnePrior] | None


def check_given(given: Any) -> None:
    """Refuse what is no prior."""
    if given is None or isinstance(given, Normal | CoefficientPrior | Horseshoe):
        return
    if isinstance(given, ScalePrior):
        raise TypeError(f"prior is of coefficients, and {given!r} of a positive number: name it")
    if not isinstance(given, Mapping):
        raise TypeError(
            "prior must be a prior such as Normal(0, 2.5), or priors by name, "
            f'{{"x": Normal(0, 2.5)}}, got {given!r}'
        )
    for name, one in cast(Mapping[Any, Any], given).items():
        if not isinstance(name, str):
            raise TypeError(f"prior by name needs names of parameters, got {name!r}")
        if isinstance(one, CoefficientPrior | Horseshoe | ScalePrior):
            continue
        if not isinstance(one, Normal):
            raise TypeError(f"prior of {name!r} must be one such as Normal(0, 2.5), got {one!r}")
        if not one.is_of_one:
            raise ValueError(f"prior of {name!r} must be of one number, Normal(mean, sd)")


def given_config(given: Given) -> Any:
    """As JSON has it; a Normal for all as it always was."""
    if given is None:
        return None
    if isinstance(given, Normal):
        return given.config()
    if isinstance(given, Mapping):
        return {"by name": {name: _config(one) for name, one in given.items()}}
    return given.config()


def given_from_config(config: Any) -> Given:
    if config is None:
        return None
    if "by name" in config:
        return {str(name): _from_config(one) for name, one in config["by name"].items()}
    if "kind" in config:
        return _whole(config)
    return Normal(**config)


def _config(prior: OnePrior) -> Any:
    if isinstance(prior, ScalePrior):
        return {"scale": prior.config()}
    return prior_config(prior)


def _from_config(config: Any) -> OnePrior:
    if "scale" in config and "kind" not in config:
        return scale_prior_from_config(config["scale"])
    return _whole(config)


def _whole(config: Any) -> Normal | CoefficientPrior | Horseshoe:
    prior = prior_from_config(config)
    if isinstance(prior, Shrunk):
        raise ValueError("a horseshoe that is given has no unit")
    return prior


def all_normal(given: Given) -> bool:
    """Whether every prior of a coefficient is Normal."""
    if isinstance(given, Mapping):
        return all(isinstance(one, Normal) for one in given.values())
    return given is None or isinstance(given, Normal)
