"""Priors where nobody gave one: weakly informative on the scale of the data.

As rstanarm, brms and Bambi have them: with s = sd(y) where η is measured in the units of the target
and s = 1 otherwise,

    coefficient of a column x     N(0, (2.5 s / sd(x))²)
    intercept                     N(m, (2.5 s)²) on η at the means of all columns,
                                  m the predictor that goes with the mean of y

to three digits, so that what is printed is what is used. A column of one value other than zero is
the intercept, in a formula or made by hand; a second one and columns of zeros, which have no scale,
count as if sd(x) were their size, or one.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from corebayes.models.moments import Moments
from corebayes.models.prior import Normal
from corebayes.models.stated_prior import DEFAULT, GIVEN, Stated, StatedPriors

# Deviations of the target, or units of η, for a deviation of the column.
WIDTH = 2.5
# A prior's sd is squared and inverted: no number may leave what float64 has.
SMALLEST, LARGEST = 1e-140, 1e140
INTERCEPTS = ("Intercept", "intercept")


class Scaled(Protocol):
    """What the defaults ask of a family."""

    @property
    def location_family(self) -> bool: ...

    def predictor_of_mean(self, mean: float, count: float) -> float: ...


def stated_priors(
    family: Scaled,
    given: Any,
    names: Sequence[str],
    moments: Moments,
    known: StatedPriors | None = None,
) -> StatedPriors:
    """Every coefficient's prior: the given one, the one that is `known` already, or the default.

    `given` is None, one prior for all, or a mapping from names; names that are none of these
    coefficients must have been taken out.
    """
    if given is not None and not isinstance(given, Mapping):
        return StatedPriors(tuple(Stated(name, given, GIVEN) for name in names))
    chosen: Mapping[str, Any] = {} if given is None else cast(Mapping[str, Any], given)
    kept = {} if known is None else known.kept(names)
    if known is not None and len(kept) == len(names):
        # Fixed by the data that the model was bound to first.
        centre = None if known.centred is None else known.entries[known.centred].name
        entries = tuple(kept[name] for name in names)
        return StatedPriors(entries, None if centre is None else list(names).index(centre))
    return _from_moments(family, chosen, names, moments)


def _from_moments(
    family: Scaled, chosen: Mapping[str, Any], names: Sequence[str], moments: Moments
) -> StatedPriors:
    *means, target = moments.mean.tolist()
    *deviations, spread = moments.deviations.tolist()
    unit = 1.0
    if family.location_family and 0.0 < spread < np.inf:
        unit = spread
    constants = [
        place
        for place in range(len(names))
        if moments.constant[place] and moments.lowest[place] != 0.0
    ]
    intercept = constants[0] if constants else None
    entries, centred = list[Stated](), None
    for place, name in enumerate(names):
        if name in chosen:
            entries.append(Stated(name, chosen[name], GIVEN, means[place]))
        elif place == intercept:
            middle = family.predictor_of_mean(target, moments.count)
            entries.append(
                Stated(name, Normal(rounded(middle), _width(unit, 1.0)), DEFAULT, means[place])
            )
            centred = place
        else:
            size = deviations[place] or abs(means[place])
            prior = Normal(0.0, _width(unit, size))
            entries.append(Stated(name, prior, DEFAULT, means[place]))
    return StatedPriors(tuple(entries), centred)


def default_scale(family: Scaled, moments: Moments) -> float:
    """The unit of the target, to three digits."""
    spread = float(moments.deviations[-1])
    return rounded(spread) if family.location_family and 0.0 < spread < np.inf else 1.0


def _width(unit: float, size: float) -> float:
    width = WIDTH * unit / size if 0.0 < size < np.inf else WIDTH * unit
    return rounded(min(max(width, SMALLEST), LARGEST))


def rounded(value: float) -> float:
    """To three digits."""
    return float(f"{value:.3g}")


def by_name(given: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The given priors under the names that the coefficients have; what is called "Intercept" or
    "intercept" is the same. An error names the nearest for a wrong one."""
    result = dict[str, Any]()
    for name, prior in given.items():
        found = name
        if name in INTERCEPTS and name not in names:
            found = next((own for own in INTERCEPTS if own in names), name)
        if found not in names:
            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            shown = ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")
            raise ValueError(
                f"prior names {name!r}, which is no parameter; {hint}Parameters are {shown}"
            )
        result[found] = prior
    return result
