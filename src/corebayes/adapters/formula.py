"""A built-in regression from a formula and a data frame.

Wilkinson's notation: y ~ x1 + x2, x1:x2, x1*x2, C(g) for categories, log(x), I(x1 * x2),
poly(x, 3), splines, and an intercept unless it says −1; (1 | g) and (1 + x | g) for effects that
differ from group to group. The columns are called as formulaic and patsy call them, effects as
lme4 and Bambi do, and so are the coefficients in the posterior. Nothing in a formula is evaluated
as Python: see `corebayes.formula`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from corebayes.adapters.family_names import family_named
from corebayes.arguments import check_choices
from corebayes.data import frames
from corebayes.data.warn import warn
from corebayes.formula.beside import ROLES, with_beside
from corebayes.formula.columns import read
from corebayes.formula.design import Design
from corebayes.formula.rows import design_rows, in_units
from corebayes.formula.stored import design_from_data
from corebayes.formula.tree import Binary, Column, Literal
from corebayes.models import GroupTerm, HalfNormal, MixedRegression
from corebayes.models.families.categories import CategoryRegression
from corebayes.models.families.family import Family
from corebayes.models.priors.default import LARGEST, SMALLEST
from corebayes.models.priors.given import Given
from corebayes.models.priors.scale import ScalePrior
from corebayes.rows import Rows
from corebayes.types import Array

# What a formula may have beside the predictor, in words and as it is written.
WRITTEN = {
    "offset": ("offset", "offset()"),
    "trials": ("trials", "p(), prop() or cbind()"),
    "event": ("censored rows", "censored() or Surv()"),
}
# Rows whose spread says how wide the default prior of a standard deviation is.
SPREAD_ROWS = 10_000


def from_formula(
    formula: str,
    frame: Any,
    *,
    family: str | Family = "logistic",
    prior: Given = None,
    group_sd: ScalePrior | Mapping[str, ScalePrior] | None = None,
    learned: ScalePrior | Mapping[str, ScalePrior] | None = None,
    counts: str | None = None,
    missing: str = "refuse",
    memory: str | int | None = None,
    duplicates: str | None = None,
    unit: Any = None,
    **options: Any,
) -> tuple[Family | MixedRegression, Rows]:
    """The pair (model, data) for `build` and everything after it, from a formula and a frame.

    `frame` is a pandas or polars frame, an Arrow table, or Parquet files as `open_rows` takes them
    (a path, a pattern, a folder, an address), whose design is computed part by part in every pass
    unless they are small; `memory` is what that may take. `family` is a name (logistic, poisson,
    linear, student-t, negative-binomial, gamma, beta, binomial, ordinal, categorical, weibull, …;
    `options` are the model's arguments, such as `link="log"` or `noise_sd=0.5`) or a model of one's
    own. Bambi's and R's names are understood too: bernoulli, gaussian, t, negativebinomial,
    cumulative, hurdle_poisson, …. `counts` names a column that says how often a row counts. The
    intercept is a column of the design like any other. Missing values are an error that names all
    columns which have some, or with `missing="drop"` such rows are left out, with a warning.
    `certify(coreset, frame)` finds its columns again. With `duplicates="count"` repeated rows are
    counted, and with `unit`, a column or an array, all rows of one unit (a patient) are kept or
    left out together; see `corebayes.open`.

    The left side is a column of numbers, or of two levels (Yes and No, True and False): the second
    in their order is 1, and the target's name says so, late == 'yes'; write late[no] for the other.
    p(wins, games) are successes of trials, censored(time, status) and Surv(time, event) times of
    which some are censored; offset(log(t)) on the right is added to the predictor as it is. The
    same columns may be named as `trials`, `event`, `offset` and `exposure`.

    A formula with group terms makes a `MixedRegression`: (1 | g), (1 + x | g) and (0 + x | g) give
    every value of g effects of its own, (1 | a:b) every pair, and (1 | a/b) is (1 | a) + (1 | a:b).
    Effects are independent, with | as with ||, each with a standard deviation of its own, whose
    prior is `group_sd`: one for all, or by name, {"1|g": HalfNormal(2.0)}. `learned` is the prior
    of the family's constant (noise_sd of linear, scale of student-t, dispersion of
    negative-binomial regression), or priors by name of several; it is unknown unless `options` say
    what it is. `prior` is that of the coefficients: one for all, or by name,
    {"carat": Normal(0, 10)}; without one they are weakly informative on the scale of the data, and
    the model says which when it is built. The default prior of effects is HalfNormal(s), that of
    slopes in x HalfNormal(s / sd(x)), to two digits, where s is the standard deviation of targets
    that are measured (linear, student-t) and 1 of others. Cost: one design matrix of N·d numbers in
    memory for a frame; for files a pass, and one for each depth of functions such as scale() or
    bs(), of N numbers each.
    """
    named = {role: options.pop(role) for role in ROLES if role in options}
    model = _family(family, prior, options)
    # A model of one's own may name them itself.
    own = {role: getattr(model, role, None) for role in ROLES}
    own = {role: column for role, column in own.items() if isinstance(column, str)}
    model = replace(model, **dict.fromkeys(own)) if own else model
    formula = with_beside(formula, {**own, **named})
    check_choices("raise", duplicates, unit)
    asked: Any = {"missing": missing, "memory": memory, "duplicates": duplicates}
    rows = design_rows(formula, frame, counts=counts, **asked)
    # Defaults that are on the scale of the rows do not depend on who they are of.
    if model.has_cutpoints:
        _warn_of_alphabet(design_from_data(rows.design), frame)
    model = mixed(model, rows, group_sd=group_sd, learned=learned)
    return model, rows if unit is None else in_units(rows, frame, unit)


def mixed(
    family: Family,
    rows: Rows,
    *,
    group_sd: ScalePrior | Mapping[str, ScalePrior] | None = None,
    learned: ScalePrior | Mapping[str, ScalePrior] | None = None,
) -> Family | MixedRegression:
    """The family with the group terms of the rows' design; the family alone if nothing is mixed."""
    design = design_from_data(rows.design)
    family = _with_columns(family, design)
    apart = list(design.slope_names)
    if family.has_cutpoints and "Intercept" in design.fixed_names:
        apart.append("Intercept")
    if group_sd is not None and not design.groups:
        raise ValueError("group_sd is for formulas with group terms such as (1 | g)")
    if not design.groups and learned is None and apart == list(design.slope_names):
        return family
    names = _effect_names(design)
    if not isinstance(group_sd, Mapping):
        group_sd = {} if group_sd is None else dict.fromkeys(names, group_sd)
    unknown = [name for name in group_sd if name not in names]
    if unknown:
        raise ValueError(
            f"group_sd has a prior for {unknown[0]!r}, which is no effect of the formula; those "
            f"are {', '.join(map(repr, names))}"
        )
    priors = {**_default_scales(family, rows, design), **group_sd}
    terms = [
        GroupTerm(
            group=name,
            effects=effects,
            scale=[priors[f"{effect}|{name}"] for effect in effects],
            labels=group.labels,
            by_default=not any(f"{effect}|{name}" in group_sd for effect in effects),
        )
        for group, name, effects in zip(
            design.groups, design.group_names, design.effects, strict=True
        )
    ]
    return MixedRegression(family=family, terms=terms, learned=learned, slopes_only=apart)


def _with_columns(family: Family, design: Design) -> Family:
    """The family told which columns of X are offsets, trials and events."""
    kind, levels = type(family).__name__, design.target_levels
    if levels is not None and not hasattr(family, "categories"):
        some = ", ".join(map(str, levels[:5])) + ", …" * (len(levels) > 5)
        raise ValueError(
            f"{kind} needs numbers or two levels, and {design.target_name!r} has {len(levels):,}: "
            f"{some}. Write one of them against all others, {design.target_name}[{levels[0]}] ~ …, "
            "or take an ordinal or a categorical family"
        )
    _check_levels(family, design)
    if "trials" in design.beside and family.of_trials is not None:
        # `binomial` is of labels until there are trials.
        family = family.of_trials(prior=family.prior, intercept=family.intercept)
        kind = type(family).__name__
    taken = {one.name for one in fields(family)}
    for role in design.beside:
        if role not in taken:
            what, written = WRITTEN[role]
            raise ValueError(f"{kind} has no {what}: leave {written} out of the formula")
    if levels is not None and isinstance(family, CategoryRegression) and family.categories is None:
        numbers = tuple(float(number) for number in range(len(levels)))
        family = replace(family, categories=numbers, category_names=tuple(map(str, levels)))
    return replace(family, **design.beside_names) if design.beside else family


def _warn_of_alphabet(design: Design, frame: Any) -> None:
    """Words without an order are sorted, and agree < disagree < neutral is no scale."""
    name, levels = design.target_name, design.target_levels
    if levels is None or "levels" in design.formula.partition("~")[0]:
        return
    if not all(isinstance(level, str) for level in levels) or list(levels) != sorted(levels):
        return
    if frames.as_frame(frame) is not None and getattr(read(frame, [name])[name], "ordered", False):
        return
    warn(
        f"the levels of {name!r} are taken in the order of the alphabet, {' < '.join(levels)}: "
        f'write C({name}, levels=["…", …]) ~ … with the order that is meant, or give an ordered '
        "categorical",
    )


def _check_levels(family: Family, design: Design) -> None:
    """Two words become 0 and 1 for families of labels; for others only where the formula says so,
    late[yes]."""
    match design.target:
        case Binary("==", Column(name), Literal(level)):
            of_labels = family.of_labels or hasattr(family, "categories")
            if not of_labels and "[" not in design.formula.partition("~")[0]:
                raise ValueError(
                    f"{type(family).__name__} needs numbers, and {name!r} has two levels: take a "
                    f"family of labels such as bernoulli, or write {name}[{level}] ~ … for 1 "
                    f"where it is {level} and 0 elsewhere"
                )
        case _:
            pass


def _effect_names(design: Design) -> list[str]:
    return [
        f"{effect}|{name}"
        for name, effects in zip(design.group_names, design.effects, strict=True)
        for effect in effects
    ]


def _default_scales(family: Family, rows: Rows, design: Design) -> dict[str, ScalePrior]:
    """HalfNormal(s) of what each group has for itself, HalfNormal(s / sd(x)) of slopes in x; s is
    the standard deviation of targets that are measured, and 1 of others."""
    if not design.groups:
        return {}
    some = rows.take(rows.some(np.random.default_rng(0), min(SPREAD_ROWS, rows.num_rows)))
    unit = _spread(some.y) if family.location_family else 1.0
    widths = {"1": unit} | {
        effect: unit / _spread(some.X[:, design.column_names.index(effect)])
        for effects in design.effects
        for effect in effects
        if effect != "1"
    }
    return {
        f"{effect}|{name}": HalfNormal(float(f"{widths[effect]:.2g}"))
        for name, effects in zip(design.group_names, design.effects, strict=True)
        for effect in effects
    }


def _spread(values: Array) -> float:
    """The standard deviation; of a constant its size, or one."""
    for spread in (float(np.std(values)), float(np.max(np.abs(values)))):
        if SMALLEST < spread < LARGEST:
            return spread
    return 1.0


def _family(family: str | Family, prior: Given, options: dict[str, Any]) -> Family:
    if isinstance(family, type):
        raise TypeError(f"family must be an object: write {family.__name__}(), with parentheses")
    if not isinstance(family, str):
        if prior is not None or options:
            given = ", ".join([*options, *(["prior"] if prior else [])])
            raise ValueError(f"{given}: give these to the model {family!r} itself")
        if family.intercept:
            raise ValueError(
                "the formula has the intercept (write -1 to leave it out): pass a model "
                "without intercept=True"
            )
        return family
    return family_named(family, {**options, **({} if prior is None else {"prior": prior})})
