"""What families are called: in formulas, on the command line, in Bambi and in R."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from corebayes.models import BUILT_IN
from corebayes.models.families.family import Family

FAMILIES: dict[str, Callable[..., Family]] = {
    name: partial(kind, **settings)
    for kind in BUILT_IN.values()
    if issubclass(kind, Family)
    for name, settings in kind.command_line.items()
}
# Names of Bambi, brms and R, and which they stand for.
ALIASES: dict[str, str] = {
    alias: next(iter(kind.command_line)) for kind in BUILT_IN.values() for alias in kind.also
}


def our_name(name: str, options: Any = ()) -> str:
    """Our own name of a family, or the same again where it is nobody's.

    `binomial` with `trials` among the options is of counts, and of labels otherwise.
    """
    if name == "binomial" and "trials" not in options:
        return "logistic"
    return ALIASES.get(name, ALIASES.get(name.lower(), name))


def family_named(name: str, options: dict[str, Any]) -> Family:
    """The family of this name, or an error that lists the names there are."""
    own = our_name(name, options)
    if own not in FAMILIES:
        near = difflib.get_close_matches(name, [*FAMILIES, *ALIASES], n=1)
        hint = f"did you mean {near[0]!r}? There" if near else "there"
        raise ValueError(
            f"there is no family {name!r}; {hint} are {', '.join(FAMILIES)}, and as Bambi "
            f"and R call them {', '.join(ALIASES)}"
        )
    taken = list(signature(FAMILIES[own]).parameters)
    unknown = [option for option in options if option not in taken]
    if unknown:
        raise TypeError(
            f"family {name!r} has no option {unknown[0]!r}; it takes {', '.join(taken)}"
        )
    return FAMILIES[own](**options)
