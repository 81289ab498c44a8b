"""Priors where nobody gave one: weakly informative on the scale of the data.

As rstanarm, brms and Bambi have them: with s = sd(y) where η is measured in the units of the target
and s = 1 otherwise,

    coefficient of a column x     N(0, (2.5 s / sd(x))²)
    intercept                     N(m, (2.5 s)²) on η at the means of all columns,
                                  m the predictor that goes with the mean of y

to three digits, so that what is printed is what is used. A column of one value other than zero is
the intercept, in a formula or made by hand; a second one and columns of zeros, which have no scale,
count as if sd(x) were their size, or one. The first cutpoint of an ordinal regression is
c = c₀ + x̄ᵀβ, c₀ ~ N(0, 5²) at the means of all columns: its prior is as wide as that makes it.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

import numpy as np

from corebayes.models.priors.horseshoe import Horseshoe, Shrunk
from corebayes.models.priors.moments import ColumnMoments
from corebayes.models.priors.normal import Normal
from corebayes.models.priors.scale import OnLine, ScalePrior
from corebayes.models.priors.stated import DEFAULT, GIVEN, Stated, StatedPriors

# Deviations of the target, or units of η, for a deviation of the column.
WIDTH = 2.5
# A prior's sd is squared and inverted: no number may leave what float64 has.
SMALLEST, LARGEST = 1e-90, 1e90
LARGEST_MEAN = 1e60
INTERCEPTS = ("Intercept", "intercept")
# Of a term in the name of a coefficient: sex[T.m].
LEVEL = re.compile(r"\[[^\]]*\]")


class Scaled(Protocol):
    """What the defaults ask of a family."""

    @property
    def location_family(self) -> bool: ...

    def predictor_of_mean(self, mean: float, count: float) -> float: ...


def stated_priors(
    family: Scaled,
    given: Any,
    names: Sequence[str],
    moments: ColumnMoments,
    known: StatedPriors | None = None,
) -> StatedPriors:
    """Every coefficient's prior: the given one, the one that is `known` already, or the default.

    `given` is None, one prior for all, or a mapping from these names. A family of several linear
    predictors has as many coefficients for each column, those of the first predictor first.
    """
    if given is not None and not isinstance(given, Mapping | Horseshoe):
        return StatedPriors(tuple(Stated(name, given, GIVEN) for name in names))
    if known is not None and set(names) <= set(known.names):
        # Fixed by the data that the model was bound to first.
        return known.of(names)
    width = len(moments.mean) - 2
    blocks = [names[start : start + width] for start in range(0, len(names), width)]
    chosen = _chosen(given, blocks, moments)
    parts = [_from_moments(family, chosen, block, moments) for block in blocks]
    entries = tuple(entry for part, _ in parts for entry in part)
    centred = tuple(k * width + at for k, (_, at) in enumerate(parts) if at is not None)
    return StatedPriors(entries, centred, len(blocks))


def _chosen(
    given: Any, blocks: Sequence[Sequence[str]], moments: ColumnMoments
) -> Mapping[str, Any]:
    """The given priors by name, horseshoes with numbers for what they leave to the rows."""
    if given is None:
        return {}
    if isinstance(given, Horseshoe):
        # Nobody shrinks an intercept to zero.
        places = [k for k in range(len(blocks[0])) if k != _intercept(blocks[0], moments)]
        given = {block[place]: given for block in blocks for place in places}
    chosen = cast(Mapping[str, Any], given)
    under = [one for one in chosen.values() if isinstance(one, Horseshoe)]
    return {
        name: one.for_rows(under.count(one), moments.count) if isinstance(one, Horseshoe) else one
        for name, one in chosen.items()
    }


def _from_moments(
    family: Scaled, chosen: Mapping[str, Any], names: Sequence[str], moments: ColumnMoments
) -> tuple[list[Stated], int | None]:
    """The priors of one linear predictor, and which coefficient is the intercept by default."""
    *means, target, offset = moments.mean.tolist()
    deviations, unit = moments.deviations.tolist(), _unit(family, moments)
    intercept = _intercept(names, moments)
    entries, centred = list[Stated](), None
    for place, name in enumerate(names):
        size = deviations[place] or abs(means[place])
        if name in chosen:
            prior, source = chosen[name], GIVEN
            if isinstance(prior, Horseshoe):
                prior = Shrunk(prior, _width(unit / WIDTH, size) if prior.scaled else 1.0)
        elif place == intercept:
            expected = family.predictor_of_mean(target, moments.count) - offset
            prior, source, centred = Normal(rounded(expected), _width(unit, 1.0)), DEFAULT, place
        else:
            prior, source = Normal(0.0, _width(unit, size)), DEFAULT
        # What cannot be squared has no middle either.
        middle = means[place] if abs(means[place]) < LARGEST_MEAN else 0.0
        entries.append(Stated(name, prior, source, middle))
    return entries, centred


def _intercept(names: Sequence[str], moments: ColumnMoments) -> int | None:
    """A column of one value other than zero: the one that is called so, if there are several."""
    found = [k for k in range(len(names)) if moments.constant[k] and moments.lowest[k] != 0.0]
    called = [k for k in found if names[k].partition("[")[0] in INTERCEPTS]
    return next(iter((*called, *found)), None)


def _unit(family: Scaled, moments: ColumnMoments) -> float:
    """sd(y) where η is measured in the units of the target, one otherwise."""
    spread = float(moments.deviations[-2])
    return spread if family.location_family and 0.0 < spread < np.inf else 1.0


def in_units(prior: ScalePrior, family: Scaled, moments: ColumnMoments) -> ScalePrior:
    """A default prior of a scale, in the units of the target."""
    scale = rounded(min(max(_unit(family, moments), SMALLEST), LARGEST))
    return replace(cast(Any, prior), scale=cast(Any, prior).scale * scale)


def at_any_zero(prior: OnLine, moments: ColumnMoments) -> OnLine:
    """The default prior of a cutpoint, wherever the zeros of the columns are: c₀ + x̄ᵀβ, and what
    the offset is on average. N(0, 5²) as it is would keep a year's coefficient near zero."""
    *means, _, offset = moments.mean.tolist()
    sizes = moments.deviations[:-2].tolist()
    far = [mean / size for mean, size in zip(means, sizes, strict=True) if size > 0.0]
    sd = min(math.hypot(prior.sd, *(WIDTH * one for one in far)), LARGEST)
    return OnLine(rounded(prior.mean + offset), rounded(sd))


def _width(unit: float, size: float) -> float:
    width = WIDTH * unit / size if 0.0 < size < np.inf else WIDTH * unit
    return rounded(min(max(width, SMALLEST), LARGEST))


def rounded(value: float) -> float:
    """To three digits."""
    return float(f"{value:.3g}")


def by_name(
    given: Any,
    names: Sequence[str],
    columns: Sequence[str] = (),
    constants: Collection[str] = (),
) -> Any:
    """The given priors under the names that the coefficients have; anything but a mapping as it is.

    What is called "Intercept" or "intercept" is the same; the name of one of the `columns` stands
    for its coefficients in all predictors, that of a term, "sex" of sex[T.m], for all its levels;
    `constants` are left out. An error names the nearest for a wrong name.
    """
    if not isinstance(given, Mapping):
        return given
    result = dict[str, Any]()
    for name, prior in cast(Mapping[str, Any], given).items():
        if name in constants:
            continue
        found = name
        if name in INTERCEPTS and name not in (*names, *columns):
            found = next((own for own in INTERCEPTS if own in (*names, *columns)), name)
        places = [found] if found in names else []
        if not places and found in columns:
            places = [own for own in names if own.startswith(f"{found}[")]
        places = places or [own for own in names if LEVEL.sub("", own) == found]
        if not places:
            _refuse_name(name, [*names, *constants])
        if isinstance(prior, ScalePrior):
            raise TypeError(
                f"prior of {name!r} is of a positive number, {prior}, and a coefficient may be "
                "negative: give Normal(0, 2.5), say"
            )
        result |= dict.fromkeys(places, prior)
    return result


def _refuse_name(name: str, names: Sequence[str]) -> None:
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.7)
    hint = f"did you mean {near[0]!r}? The " if near else "the "
    shown = ", ".join(map(repr, names[:10])) + (", …" if len(names) > 10 else "")
    raise ValueError(f"prior names {name!r}, which is no parameter; {hint}parameters are {shown}")
