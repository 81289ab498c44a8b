"""Groups of a mixed model that come later, or that only some of several coresets have.

A group that has no rows is known by its prior only, and adds nothing to any sum over rows: the
coreset of some groups is one of more groups as it is, once its model has their effects. So before
rows go together every coreset is given the groups of all. Groups by number are the union of the
numbers; groups of a formula are told by their labels, and codes of rows are written again where
coresets have numbered them differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from corebayes.coreset import Coreset
from corebayes.data import frames
from corebayes.data.parquet_files import is_parquet, read_parquet
from corebayes.formula.columns import read
from corebayes.formula.design import Design
from corebayes.formula.groups import Group, NewLevels, codes_of
from corebayes.formula.rows import stored_design
from corebayes.models.mixed.regression import MixedRegression
from corebayes.rows import Rows
from corebayes.types import Array, Block, Model


def with_groups_of_table(coreset: Coreset, source: Any) -> Coreset:
    """The coreset with the groups that a table has as well, where its formula has groups.

    Cost: a reading of the columns that say the group.
    """
    if not isinstance(coreset.model, MixedRegression) or not coreset.model.terms:
        return coreset
    design = stored_design(coreset)
    if design is None or not design.groups:
        return coreset
    needed = sorted({name for group in design.groups for name in group.columns})
    table = source
    if is_parquet(source):
        table = read_parquet(source, lambda _: set(needed))
    elif frames.as_frame(source) is None:
        return coreset
    columns = read(table, needed)
    wider = list[Group]()
    for group in design.groups:
        new = NewLevels(group)
        codes_of(group, columns, new)
        wider.append(group._replace(levels=(*group.levels, *new.codes)))
    return _with_design(coreset, replace(design, groups=tuple(wider)))


def with_groups_of_rows(coreset: Coreset, rows: Rows) -> Coreset:
    """The coreset with the groups, by number, that these rows have as well. Cost: a pass."""
    model = coreset.model
    if not isinstance(model, MixedRegression) or not _are_numbers(model):
        return coreset
    there = model.bind(rows)
    return replace(coreset, model=_with_values(model, [model, there]))


def with_all_groups(coresets: Sequence[Coreset]) -> tuple[Coreset, ...]:
    """Coresets of mixed models, each with the groups of all."""
    models = [coreset.model for coreset in coresets]
    mixed = [model for model in models if isinstance(model, MixedRegression)]
    if len(mixed) < len(models) or not all(model.terms for model in mixed):
        return tuple(coresets)
    if len({tuple(term.group for term in model.terms) for model in mixed}) > 1:
        # What differs is named elsewhere.
        return tuple(coresets)
    if all(_are_numbers(model) for model in mixed):
        pairs = zip(coresets, mixed, strict=True)
        return tuple(replace(one, model=_with_values(model, mixed)) for one, model in pairs)
    designs = [stored_design(coreset) for coreset in coresets]
    known = [design for design in designs if design is not None]
    if len(known) < len(designs) or len({design.group_names for design in known}) > 1:
        return tuple(coresets)
    groups = tuple(
        each[0]._replace(levels=tuple(dict.fromkeys(level for one in each for level in one.levels)))
        for each in zip(*(design.groups for design in known), strict=True)
    )
    return tuple(
        _with_design(coreset, replace(design, groups=groups), design)
        for coreset, design in zip(coresets, known, strict=True)
    )


def grown_size(coreset: Coreset, model: Model) -> int:
    """As many rows for what the model has to match now as the coreset has for what it had."""
    before = coreset.model
    if not isinstance(before, MixedRegression) or not isinstance(model, MixedRegression):
        return coreset.size
    return ceil(coreset.size * model.structure.num_matched / before.structure.num_matched)


def _are_numbers(model: MixedRegression) -> bool:
    return bool(model.terms) and all(term.labels is None for term in model.terms)


def _with_values(model: MixedRegression, models: Sequence[MixedRegression]) -> MixedRegression:
    """The model with the groups of all, by number."""
    every = zip(*(one.known.values for one in models), strict=True)
    values = tuple(np.unique(np.concatenate(each)) for each in every)
    return replace(model, bound=model.known._replace(values=values))


def _with_design(coreset: Coreset, wider: Design, own: Design | None = None) -> Coreset:
    """The coreset with the groups of a design that has all of its own, its rows coded as there."""
    model: Any = coreset.model
    named = dict(zip(wider.group_names, wider.groups, strict=True))
    terms = tuple(replace(term, labels=named[term.group].labels) for term in model.terms)
    values = tuple(np.arange(float(len(named[term.group].levels))) for term in model.terms)
    recoded = dict[int, Array]()
    for group, name in zip(() if own is None else own.groups, wider.group_names, strict=False):
        places = {level: place for place, level in enumerate(named[name].levels)}
        codes = np.array([float(places[level]) for level in group.levels])
        recoded[wider.column_names.index(name)] = codes
    reserve = coreset.reserve
    return replace(
        coreset,
        model=replace(model, terms=terms, bound=model.known._replace(values=values)),
        rows=_recoded(coreset.rows, recoded),
        reserve=None if reserve is None else reserve._replace(rows=_recoded(reserve.rows, recoded)),
        provenance={**coreset.provenance, "design": wider.to_data()},
    )


def _recoded(rows: Block, columns: Mapping[int, Array]) -> Block:
    """Rows whose codes in these columns are what the arrays say of them."""
    X = rows.X.copy()
    for place, codes in columns.items():
        X[:, place] = codes[rows.X[:, place].astype(np.int64)]
    return Block({**rows.fields, "X": X}, rows.counts)
