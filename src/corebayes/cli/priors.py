"""Priors on the command line: `--prior carat=normal(0,10)`, read and never evaluated."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import corebayes as cb


def _horseshoe(
    global_scale: float = 1.0, slab_scale: float = 2.5, slab_df: float = 4.0
) -> cb.Horseshoe:
    return cb.Horseshoe(global_scale=global_scale, slab_scale=slab_scale, slab_df=slab_df)


# What people write, in lower case without underscores, and what it is.
KINDS: dict[str, Callable[..., Any]] = {
    "normal": cb.Normal,
    "studentt": cb.StudentT,
    "cauchy": partial(cb.StudentT, 1.0),
    "laplace": cb.DoubleExponential,
    "doubleexponential": cb.DoubleExponential,
    "flat": cb.Flat,
    "horseshoe": _horseshoe,
    "halfnormal": cb.HalfNormal,
    "halfstudentt": cb.HalfStudentT,
    "halfcauchy": partial(cb.HalfStudentT, 1.0),
    "exponential": cb.Exponential,
    "gamma": cb.Gamma,
}
SHAPE = re.compile(r"\s*([A-Za-z_]+)\s*(?:\(([^()]*)\))?\s*")
EXAMPLE = "write it as normal(0, 2.5), or x=student_t(3, 0, 2.5) for one coefficient"


def given_prior(texts: Sequence[str] | None, prior_sd: float | None) -> Any:
    """What `--prior` and `--prior-sd` say, None where they say nothing."""
    if prior_sd is not None:
        if texts:
            raise ValueError("--prior-sd is a prior for all coefficients: leave out --prior")
        return cb.Normal(0.0, prior_sd)
    if not texts:
        return None
    named = dict[str, Any]()
    for text in texts:
        # The last sign of equality: a column's name may have others, as in C(g)=2.
        name, sign, written = text.rpartition("=")
        prior = parse_prior(written)
        if not sign:
            if len(texts) > 1:
                raise ValueError(
                    f"--prior {text} is for all coefficients: give no others beside it"
                )
            return prior
        if name.strip() in named:
            raise ValueError(f"--prior names {name.strip()!r} twice")
        named[name.strip()] = prior
    return named


def parse_prior(text: str) -> Any:
    """The prior that a text such as student_t(3, 0, 10) stands for."""
    found = SHAPE.fullmatch(text)
    if found is None:
        raise ValueError(f"--prior {text[:60]!r} cannot be read: {EXAMPLE}")
    kind = found[1].lower().replace("_", "")
    if kind not in KINDS:
        near = difflib.get_close_matches(kind, KINDS, n=1)
        hint = f"did you mean {near[0]}? There" if near else "there"
        raise ValueError(f"there is no prior {found[1]!r}; {hint} are {', '.join(KINDS)}")
    try:
        numbers = [float(part) for part in (found[2] or "").split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"--prior {text[:60]!r} needs numbers: {EXAMPLE}") from None
    try:
        return KINDS[kind](*numbers)
    except TypeError:
        raise ValueError(f"{found[1]} does not take {len(numbers)} numbers: {EXAMPLE}") from None
